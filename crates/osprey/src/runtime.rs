//! The runtime of a process: one region, one allocator, one mode, from the environment.
//!
//! **Functionality.** Allocation in the region, events, marks, counters, and what happens at the end.
//! Everything here is safe to call from any thread; what a trace means supposes one compute thread.

mod fork;
mod report;
mod role;

use crate::progress::{ProgressEvent, TouchProgress};
use crate::region::PagedRegion;
use crate::settings::{CLAIM, PassMode, ProcessSettings};
use crate::slab::{ALIGN_MAX, SlabFailure, Slabs};
use crate::stats::{Mark, Stats};
use crate::sys::{inherit, process};
use role::RegionRole;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Exit code of a process whose mode this machine cannot give: no userfaultfd, a range that is taken,
/// settings out of range. The reason is on standard error.
pub const EXIT_UNAVAILABLE: i32 = 69;
/// Marks that a process may set.
pub const MARKS_MAX: usize = 4096;

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();

/// What a process has one of.
#[derive(Debug)]
struct Runtime {
    settings: ProcessSettings,
    region: Arc<PagedRegion>,
    progress: Arc<TouchProgress>,
    slabs: Mutex<Slabs>,
    book: Mutex<Book>,
    role: RegionRole,
    /// Which thread allocated first, as [`this_thread`] calls it.
    thread: AtomicUsize,
}

/// What the report is made of, besides counters that others keep.
#[derive(Debug, Default)]
struct Book {
    marks: Vec<Mark>,
    warnings: Vec<String>,
    finished: bool,
}

/// Starts the runtime by the environment ([`ProcessSettings`]). Whatever allocates first does it too; a
/// second call does nothing.
///
/// # Errors
/// In words: settings out of range, address space that is taken, a kernel without what the mode needs.
pub fn init() -> Result<(), String> {
    started().as_ref().map(|_| ()).map_err(Clone::clone)
}

fn started() -> &'static Result<Runtime, String> {
    RUNTIME.get_or_init(|| settings().and_then(Runtime::start))
}

/// The environment's, for the first process that asks: the region of any other is ordinary memory, and the
/// trace and the report stay with the first.
fn settings() -> Result<ProcessSettings, String> {
    let Some(token) = std::env::var_os(CLAIM) else { return ProcessSettings::from_env() };
    let number = token.to_str().and_then(|text| text.parse().ok());
    match number.map(inherit::take_token) {
        Some(Ok(true)) => return ProcessSettings::from_env(),
        Some(Ok(false)) => {
            let own = std::process::id();
            eprintln!(
                "osprey: warning: process {own} is not paged: another one of this run uses Osprey already"
            );
        }
        _ => eprintln!(
            "osprey: warning: process {} is not paged: descriptors that osprey run handed down were closed \
             on the way; what starts the program must leave them open (close_fds=False in Python)",
            std::process::id()
        ),
    }
    Ok(ProcessSettings::default())
}

/// The runtime; a process that cannot have one ends with [`EXIT_UNAVAILABLE`].
fn runtime() -> &'static Runtime {
    match started() {
        Ok(runtime) => runtime,
        Err(reason) => {
            eprintln!("osprey: {reason}");
            std::process::exit(EXIT_UNAVAILABLE)
        }
    }
}

/// Room in the region for `bytes` bytes at a multiple of `align`, a power of two up to 4096. The content is
/// whatever it is. Never inside a signal handler.
///
/// The process ends with a message when the region is full or `align` is not allowed: [`try_alloc`] says so
/// instead.
#[must_use]
pub fn alloc(bytes: usize, align: usize) -> NonNull<u8> {
    try_alloc(bytes, align).unwrap_or_else(|reason| die(&reason))
}

/// As [`alloc`].
///
/// # Errors
/// In words, when the region is full or `align` is not allowed.
pub fn try_alloc(bytes: usize, align: usize) -> Result<NonNull<u8>, String> {
    let runtime = runtime();
    if fork::happened() && !matches!(runtime.role, RegionRole::Plain) {
        return Err(fork::REASON.to_owned());
    }
    let mut slabs = runtime.slabs();
    let set_live = |chunk, live| runtime.set_live(chunk, live);
    let offset =
        slabs.alloc(bytes, align, set_live).map_err(|failure| runtime.explain(failure, bytes, align))?;
    if let RegionRole::Tracer(tracer) = runtime.role {
        tracer.grow(slabs.reach())?;
        runtime.expect_one_thread();
    }
    runtime.progress.event(ProgressEvent::Alloc(bytes));
    let at = runtime.region.mapping().base().wrapping_add(offset);
    Ok(NonNull::new(at).expect("the region does not begin at zero"))
}

/// Gives back what [`alloc`] gave: `bytes` as there.
///
/// The process ends with a message when `at` is not an allocated object of the region.
///
/// # Safety
/// Nothing may use the object any more.
#[expect(unsafe_code, reason = "the caller promises that the object is unused")]
pub unsafe fn free(at: NonNull<u8>, _bytes: usize) {
    let runtime = runtime();
    let offset = (at.as_ptr() as usize).wrapping_sub(runtime.region.mapping().base() as usize);
    let mut slabs = runtime.slabs();
    if slabs.free(offset, |chunk, live| runtime.set_live(chunk, live)).is_err() {
        die(&format!("{at:p} was released, which is not an allocated object of the region"));
    }
    runtime.progress.event(ProgressEvent::Free(offset));
}

/// Whether an address lies in the region. Does not start the runtime.
#[must_use]
pub fn owns(at: *const u8) -> bool {
    let Some(Ok(runtime)) = RUNTIME.get() else { return false };
    runtime.region.chunk_of(at as usize).is_some()
}

/// Whether this process makes a trace: what is in the region means nothing, and cryptography, network and
/// files are stubbed by touching what they would touch.
#[must_use]
pub fn speculating() -> bool {
    runtime().settings.mode == PassMode::Speculate
}

/// The program is a step further. Programs that allocate rarely call it once in a while, so that the pager
/// knows where they are without waiting for a fault; equally often in every pass.
#[inline]
pub fn tick() {
    runtime().progress.event(ProgressEvent::Tick);
}

/// Notes what the process has used until now, under a name of the program's. The launcher's measurements run
/// from `start` to `stop`. Marks beyond [`MARKS_MAX`] are dropped, with a warning in the report.
pub fn mark(name: &str) {
    let runtime = runtime();
    let (all, own) = (process::usage_of_process(), process::usage_of_thread());
    let at_s = process::clock().as_secs_f64();
    let moved = runtime.role.counters();
    let mark = Mark {
        name: name.to_owned(),
        at_s,
        events: runtime.progress.so_far().0,
        user_s: all.user.as_secs_f64(),
        system_s: all.system.as_secs_f64(),
        thread_s: (own.user + own.system).as_secs_f64(),
        major_faults: all.major_faults,
        minor_faults: all.minor_faults,
        voluntary_switches: all.voluntary_switches,
        thread_voluntary_switches: own.voluntary_switches,
        involuntary_switches: all.involuntary_switches,
        stalls: moved.stalls,
        bytes_read: moved.bytes_read,
        bytes_written: moved.bytes_written,
    };
    let mut book = runtime.book();
    if book.marks.len() < MARKS_MAX {
        book.marks.push(mark);
    } else {
        book.warn(format!("more than {MARKS_MAX} marks: the rest is not in the report"));
    }
}

/// Counters so far.
#[must_use]
pub fn stats() -> Stats {
    let runtime = runtime();
    let counters = runtime.role.counters();
    let peak_chunks = runtime.slabs().peak();
    let (events, allocation_hash) = runtime.progress.so_far();
    let Stats { mode, mut warnings, .. } = counters.clone();
    let book = runtime.book();
    warnings.splice(0..0, book.warnings.iter().cloned());
    Stats {
        mode: if mode.is_empty() { runtime.settings.mode.to_string() } else { mode },
        engine: runtime.settings.engine.to_string(),
        chunk: runtime.settings.chunk as u64,
        peak_chunks,
        events,
        allocation_hash,
        warnings,
        marks: book.marks.clone(),
        ..counters
    }
}

/// Ends what the mode does: the trace is closed, the pager stopped, the report written. What is in the region
/// must not be looked at afterwards; releasing it is fine.
///
/// A process that ends by `exit` or returns from `main` does as much by itself, but for the pager, which then
/// goes with the process: destructors that run later may still look at the region. One that is killed or
/// aborts leaves no report, and its trace is refused as torn.
pub fn finish() {
    end(true);
}

extern "C" fn finish_at_exit() {
    end(false);
}

fn end(stop_pager: bool) {
    let Some(Ok(runtime)) = RUNTIME.get() else { return };
    if fork::happened() || std::mem::replace(&mut runtime.book().finished, true) {
        return;
    }
    let peak_chunks = runtime.slabs().peak();
    if let Err(error) = runtime.role.end(peak_chunks, stop_pager) {
        runtime.book().warn(format!("the trace is not complete: {error}"));
    }
    if let Some(path) = &runtime.settings.report
        && let Err(error) = report::write(path, &stats())
    {
        eprintln!("osprey: cannot write the report {}: {error}", path.display());
    }
}

/// Ends the process for a fault of the program's.
fn die(reason: &str) -> ! {
    eprintln!("osprey: {reason}");
    std::process::abort()
}

/// A number for the calling thread, other than those of threads that run at the same time.
fn this_thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here) as usize)
}

impl Runtime {
    fn start(settings: ProcessSettings) -> Result<Self, String> {
        let region = Arc::new(PagedRegion::reserve(&settings, settings.mode != PassMode::Speculate)?);
        let progress =
            Arc::new(TouchProgress::new().map_err(|e| format!("cannot make an event descriptor: {e}"))?);
        let mut book = Book::default();
        let role = RegionRole::start(&settings, &region, &progress, &mut |text| book.warn(text))?;
        fork::guard(&region, !matches!(role, RegionRole::Plain))?;
        process::at_exit(finish_at_exit).map_err(|e| format!("cannot be called at the end: {e}"))?;
        let slabs = Mutex::new(Slabs::new(region.chunk(), region.chunks()));
        let (book, thread) = (Mutex::new(book), AtomicUsize::new(0));
        Ok(Self { settings, region, progress, slabs, book, role, thread })
    }

    fn set_live(&self, chunk: u32, live: bool) {
        if let (RegionRole::Tracer(tracer), true) = (&self.role, live) {
            tracer.born(chunk);
        }
        self.region.set_live(chunk, live);
    }

    /// A trace is a sequence: with a second thread that allocates, its order may differ from run to run.
    fn expect_one_thread(&self) {
        let here = this_thread();
        if self.thread.load(Ordering::Relaxed) == here {
            return;
        }
        let first = match self.thread.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => here,
            Err(first) => first,
        };
        if first != here {
            self.book().warn("more than one thread allocates in the region: a trace is exact for one".into());
        }
    }

    fn slabs(&self) -> MutexGuard<'_, Slabs> {
        self.slabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn explain(&self, failure: SlabFailure, bytes: usize, align: usize) -> String {
        match failure {
            SlabFailure::Alignment => format!("alignment {align}: expected a power of two up to {ALIGN_MAX}"),
            _ => format!(
                "the region of {} bytes has no room for {bytes} more: allow more with osprey run --region \
                 BYTES (OSPREY_REGION)",
                self.settings.region
            ),
        }
    }
}

impl Book {
    fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            eprintln!("osprey: warning: {text}");
            self.warnings.push(text);
        }
    }
}
