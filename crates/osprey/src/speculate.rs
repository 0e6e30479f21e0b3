//! The speculative pass: the exact trace of a program's touches, by signals in its own thread.
//!
//! **Functionality.** The region's addresses all lead to one small piece of memory, of which nothing is
//! mapped at first. A touch of a chunk that is not mapped is a SIGBUS in the thread that touched; the handler
//! notes an entry, maps the chunk (for reading only, when it was read, so that a later write is noticed too)
//! and returns. The last one to two blocks of chunks stay mapped ([`crate::trace`]), so that the program runs
//! at full speed where it touches what it just touched.
//!
//! **What must hold.** Content never decides an address or a branch, since chunks share memory here. System
//! calls touch the region through [`crate::transfer`] only: a kernel that touches an unmapped chunk fails
//! with EFAULT. SIGBUS stays with this handler and is not blocked.
//!
//! **Who learns what.** The trace holds chunk numbers, in which programs keep nothing secret by assumption.
//!
//! **Paper and deviations** (sections 4 and 5). The paper traces pages by a thread that is woken for every
//! fault; a signal in the thread itself costs an eighth of that, and there is one per chunk instead of one
//! per page. Which chunks are only read is noticed too.
//!
//! **Cost.** One signal and one system call per first touch of a chunk, the same again for a write after a
//! read, one system call per run of chunks that a block unmaps:
//! `cargo run --release -p osprey --example speculation` measures it.
#![expect(
    unsafe_code,
    reason = "state that a signal handler shares with the program, with the argument at each"
)]

use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::settings::{MICROSET_MAX, ProcessSettings};
use crate::sys::map::{self, Mapping};
use crate::sys::signal::{self, SignalTouch};
use crate::sys::uffd::{MINOR, Uffd, WRITE_PROTECT, feature};
use crate::sys::{PAGE, process};
use crate::trace::{Footer, TraceBlock, TraceEntry, TraceSink};
use std::cell::UnsafeCell;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicUsize, Ordering};

/// Bytes that the region leads to at least; more where two blocks of chunks are more.
const ALIAS: usize = 16 << 20;
/// Exit code when the trace cannot be written.
const EXIT_IO: i32 = 74;

/// Bits of a chunk's state: where it stands in its block, and the flags.
const INDEX: u16 = (1 << 10) - 1;
const _: () = assert!(MICROSET_MAX <= INDEX as usize + 1, "every place in a block has a number");
const LATER: u16 = 1 << 10;
const MAPPED: u16 = 1 << 11;
const WRITABLE: u16 = 1 << 12;
const TOUCHED: u16 = 1 << 13;
/// The entry stands and nothing is mapped yet: a stub said that it touches the chunk, and no instruction has.
const STUBBED: u16 = 1 << 14;

/// The tracer of this process, for the signal handler.
static TRACER: AtomicPtr<Tracer> = AtomicPtr::new(std::ptr::null_mut());

/// What the handler works on. It lives as long as the process.
#[derive(Debug)]
pub(crate) struct Tracer {
    region: Arc<PagedRegion>,
    progress: Arc<TouchProgress>,
    uffd: Uffd,
    /// The kernel maps pages only to be written, as before Linux 6.4: they are protected once they are there.
    in_two_steps: bool,
    alias: OwnedFd,
    alias_len: usize,
    /// Bytes of the region, from its base, that lead to `alias`.
    reach: AtomicUsize,
    /// A state per chunk.
    states: Mapping,
    /// What the system says of this process's memory.
    statm: File,
    busy: AtomicBool,
    blocks: UnsafeCell<Blocks>,
}

// SAFETY: `blocks` is only reached through `locked`, by one thread at a time; all else may be shared.
unsafe impl Sync for Tracer {}

/// The blocks whose chunks are mapped.
#[derive(Debug)]
struct Blocks {
    older: TraceBlock,
    newer: TraceBlock,
    /// Which of the two values of [`LATER`] the chunks of `newer` have.
    later: u16,
    microset: usize,
    /// Room to sort the chunks of a block in.
    sorted: Vec<u32>,
    entries: u64,
    /// Chunks that are mapped, and the most that were at once.
    mapped: usize,
    mapped_most: usize,
    /// Most bytes that were resident outside the region when a block began: peaks of all and of the region
    /// alone need not coincide.
    other_most: u64,
    /// Bytes of the finished trace.
    bytes: u64,
    /// `None` once the trace is finished: touches are mapped and not noted.
    sink: Option<TraceSink>,
}

/// How much was traced.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traced {
    pub entries: u64,
    pub bytes: u64,
}

impl Tracer {
    /// Takes the region over. From now on touches are traced, of what [`Tracer::grow`] was called for. Once
    /// per process.
    ///
    /// # Errors
    /// In words: no userfaultfd here, or a kernel without the features.
    pub fn start(
        settings: &ProcessSettings,
        region: Arc<PagedRegion>,
        progress: Arc<TouchProgress>,
        sink: TraceSink,
    ) -> Result<&'static Self, String> {
        let uffd = open_uffd()?;
        let alias_len = ALIAS.max(2 * settings.microset * settings.chunk);
        let no_memory = |e: io::Error| format!("cannot make the memory that speculation runs in: {e}");
        let alias = map::memfd(c"osprey-speculation", alias_len, false).map_err(no_memory)?;
        fill(&alias, alias_len).map_err(no_memory)?;
        let states = region.chunks() * size_of::<AtomicU16>();
        let states = Mapping::anonymous(None, states.next_multiple_of(PAGE), false).map_err(no_memory)?;
        let mut tracer = Self {
            region,
            progress,
            uffd,
            in_two_steps: false,
            alias,
            alias_len,
            reach: AtomicUsize::new(0),
            states,
            statm: File::open("/proc/self/statm")
                .map_err(|e| format!("cannot read /proc/self/statm: {e}"))?,
            busy: AtomicBool::new(false),
            blocks: UnsafeCell::new(Blocks::new(settings.microset, sink)),
        };
        tracer.grow(1)?;
        tracer.check_protection()?;
        let tracer = Box::leak(Box::new(tracer));
        TRACER.store(tracer, Ordering::Release);
        signal::answer_bus(answer).map_err(|e| format!("cannot handle SIGBUS: {e}"))?;
        Ok(tracer)
    }

    /// Makes the first `chunks` chunks of the region touchable.
    ///
    /// # Errors
    /// In words, when the system has no more mappings to give.
    pub fn grow(&self, chunks: usize) -> Result<(), String> {
        let (need, all) = (chunks * self.region.chunk(), self.region.mapping().len());
        while self.reach.load(Ordering::Relaxed) < need {
            let at = self.reach.load(Ordering::Relaxed);
            let len = self.alias_len.min(all - at);
            let start = self.region.mapping().base() as usize + at;
            self.region
                .mapping()
                .overlay(at, len, self.alias.as_fd())
                .and_then(|()| self.region.mapping().advise(at, len, libc::MADV_DONTFORK))
                .and_then(|()| self.uffd.register(start, len, MINOR | WRITE_PROTECT))
                .map_err(|e| {
                    format!(
                        "speculation cannot map more than {at} bytes of the region: {e}; more mappings per \
                         process (vm.max_map_count) may help"
                    )
                })?;
            self.reach.store(at + len, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The allocator's word that a chunk holds something again. The next touch is its first, unless the chunk
    /// is mapped still: then it may be touched without notice, and counts as touched.
    pub fn born(&self, chunk: u32) {
        let state = self.state(chunk);
        if state.load(Ordering::Relaxed) & MAPPED == 0 {
            state.fetch_and(!TOUCHED, Ordering::Relaxed);
        }
    }

    /// Writes what is left and the footer; later touches are not noted. Nothing the second time.
    ///
    /// # Errors
    /// The system's, for the file or ring.
    pub fn finish(&self, peak_chunks: u64) -> io::Result<()> {
        let other_bytes = self.other_bytes();
        self.locked(|blocks| {
            let Some(mut sink) = blocks.sink.take() else { return Ok(()) };
            for block in [&blocks.older, &blocks.newer] {
                if !block.entries.is_empty() {
                    sink.block(block)?;
                }
            }
            sink.finish(&Footer { entries: blocks.entries, peak_chunks, other_bytes })?;
            blocks.bytes = sink.bytes();
            Ok(())
        })
    }

    /// Entries and bytes of the trace so far.
    pub fn so_far(&self) -> Traced {
        self.locked(|blocks| Traced {
            entries: blocks.entries,
            bytes: blocks.sink.as_ref().map_or(blocks.bytes, TraceSink::bytes),
        })
    }

    /// Peak memory outside the region.
    fn other_bytes(&self) -> u64 {
        self.locked(|blocks| {
            self.look_outside(blocks);
            let mapped = (blocks.mapped_most * self.region.chunk()) as u64;
            process::peak_resident().saturating_sub(mapped).max(blocks.other_most)
        })
    }

    /// Notes how much is resident outside the region now.
    fn look_outside(&self, blocks: &mut Blocks) {
        let mapped = (blocks.mapped * self.region.chunk()) as u64;
        let other = process::resident(&self.statm).saturating_sub(mapped);
        blocks.other_most = blocks.other_most.max(other);
    }

    /// Makes a touch good: in the handler.
    fn touched(&self, chunk: u32, touch: SignalTouch) -> io::Result<()> {
        let (address, len) = (self.region.address(chunk), self.region.chunk());
        self.locked(|blocks| {
            let before = self.note(blocks, chunk, touch.write)?;
            let writable = touch.write || before & WRITABLE != 0;
            if before & MAPPED == 0 || before & STUBBED != 0 {
                self.state(chunk).fetch_and(!STUBBED, Ordering::Relaxed);
                blocks.mapped += 1;
                blocks.mapped_most = blocks.mapped_most.max(blocks.mapped);
                return self.map(address, len, !writable);
            }
            if touch.write && before & WRITABLE == 0 {
                // Faster than to lift the protection, which leaves a fault per page to the system.
                self.unmap(chunk, 1)?;
                return self.map(address, len, false);
            }
            // Another thread was faster, or the system took the page away: this page alone, as those beside
            // it may be there.
            self.map(touch.address & !(PAGE - 1), PAGE, !writable)
        })
    }

    /// A stub's word that it touches a chunk: noted as if an instruction did it, and nothing is mapped.
    fn stubbed(&self, chunk: u32, write: bool) -> io::Result<()> {
        let known = if write { MAPPED | WRITABLE } else { MAPPED };
        if self.state(chunk).load(Ordering::Relaxed) & known == known {
            return Ok(());
        }
        self.locked(|blocks| {
            let before = self.note(blocks, chunk, write)?;
            if before & MAPPED != 0 && before & STUBBED == 0 {
                // Mapped for reading: an instruction that writes must find it as it is noted.
                self.unmap(chunk, 1)?;
                blocks.mapped -= 1;
            }
            self.state(chunk).fetch_or(STUBBED, Ordering::Relaxed);
            Ok(())
        })
    }

    /// Notes a touch where it says something new, and gives the state before.
    fn note(&self, blocks: &mut Blocks, chunk: u32, write: bool) -> io::Result<u16> {
        let state = self.state(chunk);
        let before = state.load(Ordering::Relaxed);
        if before & MAPPED == 0 {
            if blocks.newer.entries.len() == blocks.microset {
                self.rotate(blocks)?;
            }
            let next = blocks.note(&self.progress, chunk, write, before & TOUCHED == 0);
            state.store(next, Ordering::Relaxed);
        } else if write && before & WRITABLE == 0 {
            state.store(before | WRITABLE, Ordering::Relaxed);
            let block = if before & LATER == blocks.later { &mut blocks.newer } else { &mut blocks.older };
            block.entries[(before & INDEX) as usize].written = true;
        }
        Ok(before)
    }

    /// In two steps another thread may write in between, without notice: the trace then says that the chunk
    /// was only read.
    fn map(&self, start: usize, len: usize, protect: bool) -> io::Result<()> {
        let later = protect && self.in_two_steps;
        again(|| self.uffd.map_present(start, len, protect && !later))?;
        if later { again(|| self.uffd.protect(start, len, true)) } else { Ok(()) }
    }

    fn unmap(&self, first: u32, chunks: usize) -> io::Result<()> {
        let len = self.region.chunk();
        self.region.mapping().advise(first as usize * len, chunks * len, libc::MADV_DONTNEED)
    }

    /// Begins a block: the older one of the two is written and its chunks are unmapped, runs of neighbours at
    /// once.
    fn rotate(&self, blocks: &mut Blocks) -> io::Result<()> {
        self.look_outside(blocks);
        let Blocks { older, newer, sorted, sink, mapped, .. } = blocks;
        sorted.clear();
        for entry in &older.entries {
            if self.state(entry.chunk).fetch_and(TOUCHED, Ordering::Relaxed) & STUBBED == 0 {
                sorted.push(entry.chunk);
            }
        }
        sorted.sort_unstable();
        *mapped -= sorted.len();
        for run in sorted.chunk_by(|a, b| a + 1 == *b) {
            self.unmap(run[0], run.len())?;
        }
        if let Some(sink) = sink
            && !older.entries.is_empty()
        {
            sink.block(older)?;
        }
        older.entries.clear();
        std::mem::swap(older, newer);
        blocks.later ^= LATER;
        Ok(())
    }

    fn state(&self, chunk: u32) -> &AtomicU16 {
        assert!((chunk as usize) < self.region.chunks(), "a chunk of the region");
        // SAFETY: the mapping has a state for each chunk, zero at first, aligned, and reached as atomics
        // alone.
        unsafe { &*self.states.base().cast::<AtomicU16>().add(chunk as usize) }
    }

    /// One thread at a time. Nothing in there touches the region, so that a handler never waits for its own
    /// thread.
    fn locked<R>(&self, then: impl FnOnce(&mut Blocks) -> R) -> R {
        while self.busy.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            std::thread::yield_now();
        }
        // SAFETY: `busy` was false and is ours until it is stored again.
        let result = then(unsafe { &mut *self.blocks.get() });
        self.busy.store(false, Ordering::Release);
        result
    }

    /// How this kernel maps pages protected, by trying it on the first page.
    fn check_protection(&mut self) -> Result<(), String> {
        let start = self.region.address(0);
        let mut tried = self.map(start, PAGE, true);
        if tried.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::EINVAL)) {
            self.in_two_steps = true;
            tried = self.map(start, PAGE, true);
        }
        tried
            .and_then(|()| self.region.mapping().advise(0, PAGE, libc::MADV_DONTNEED))
            .map_err(|e| format!("this kernel's userfaultfd cannot map pages write-protected: {e}"))
    }
}

impl Blocks {
    fn new(microset: usize, sink: TraceSink) -> Self {
        let block = || TraceBlock { entries: Vec::with_capacity(microset), ..TraceBlock::default() };
        Self {
            older: block(),
            newer: block(),
            later: 0,
            microset,
            sorted: Vec::with_capacity(microset),
            entries: 0,
            mapped: 0,
            mapped_most: 0,
            other_most: 0,
            bytes: 0,
            sink: Some(sink),
        }
    }

    /// Adds an entry, for which there is room, and gives the state of its chunk.
    fn note(&mut self, progress: &TouchProgress, chunk: u32, written: bool, fresh: bool) -> u16 {
        let block = &mut self.newer;
        if block.entries.is_empty() {
            (block.events, block.hash) = progress.so_far();
        }
        let index = block.entries.len() as u16;
        block.entries.push(TraceEntry { chunk, written, fresh });
        self.entries += u64::from(self.sink.is_some());
        index | self.later | MAPPED | TOUCHED | if written { WRITABLE } else { 0 }
    }
}

/// Calls again while the process's mappings change under the kernel's hands.
fn again(mut call: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    loop {
        match call() {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => {}
            other => return other,
        }
    }
}

fn open_uffd() -> Result<Uffd, String> {
    let must =
        feature::SIGBUS | feature::MINOR_SHMEM | feature::PAGEFAULT_FLAG_WP | feature::WP_HUGETLBFS_SHMEM;
    Uffd::open(must, 0, true).map_err(|e| {
        format!(
            "speculation needs userfaultfd with minor faults and write protection on shared memory (Linux \
             5.19): {e}"
        )
    })
}

/// Puts a page of zeros everywhere: the kernel only maps what is there. By writes, since a mapping would
/// count as memory of the program's.
fn fill(file: &OwnedFd, len: usize) -> io::Result<()> {
    let mut file = File::from(file.try_clone()?);
    let zeros = [0; 16 * PAGE];
    (0..len).step_by(zeros.len()).try_for_each(|at| file.write_all(&zeros[..zeros.len().min(len - at)]))
}

/// For stubs: touches `len` bytes at `address` as an instruction would, without mapping or touching anything.
/// Whether it did: not where nothing is traced, or outside the region.
pub(crate) fn touch(address: usize, len: usize, write: bool) -> bool {
    // SAFETY: null, or a tracer that is never freed.
    let Some(tracer) = (unsafe { TRACER.load(Ordering::Acquire).as_ref() }) else { return false };
    let chunk = |address| tracer.region.chunk_of(address);
    let (Some(first), Some(last)) = (chunk(address), chunk(address + len.saturating_sub(1))) else {
        return false;
    };
    for chunk in if len == 0 { 0..0 } else { first..last + 1 } {
        tracer.stubbed(chunk, write).unwrap_or_else(|error| fail(&error));
    }
    true
}

/// The handler's part that knows the region.
fn answer(touch: SignalTouch) -> bool {
    // SAFETY: null, or a tracer that is never freed.
    let Some(tracer) = (unsafe { TRACER.load(Ordering::Acquire).as_ref() }) else { return false };
    let Some(chunk) = tracer.region.chunk_of(touch.address) else { return false };
    tracer.touched(chunk, touch).unwrap_or_else(|error| fail(&error));
    true
}

/// Ends the process when a touch cannot be noted.
fn fail(error: &io::Error) -> ! {
    if error.kind() == io::ErrorKind::BrokenPipe {
        signal::leave("the real run has ended, and with it the speculation for it", 0);
    }
    let text = match error.raw_os_error() {
        Some(libc::ENOSPC) => "the trace cannot be written: no space left on its disk",
        Some(libc::ENOMEM) => "speculation is out of memory",
        _ => "speculation failed in a system call; the real run can do without (--mode reactive)",
    };
    signal::leave(text, EXIT_IO)
}
