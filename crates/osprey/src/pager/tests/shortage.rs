//! Calls of the pager's own that the system refuses: no memory left in the group for page tables, copies and
//! frames (ENOMEM), and pages that something else has pinned (EBUSY). A child does it to itself, because it
//! has the region and has to be in a group; the parent is the group's guard.

use super::super::chunks::{State, WANTED};
use super::super::frames::Frames;
use super::super::mover::Mover;
use super::super::worker::Worker;
use super::super::{FRAMES_MIN, Job, Link, shares};
use super::{CHUNK, PagingEngine, ProcessSettings};
use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::sys::map::Mapping;
use crate::sys::staging::Staging;
use crate::sys::uring::UringEvent;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CASE: &str = "PAGER_TEST_SHORTAGE";
const GROUP: &str = "PAGER_TEST_GROUP";
const LIMIT: u64 = 32 << 20;
/// What the parent gives to a child that waits.
const RESERVE: u64 = 256 << 10;
const PAGE: usize = 4096;
/// Chunks this far apart are never in the same page table.
const FAR: u32 = (4 << 20) / CHUNK as u32;
/// Frames that stay.
const LEAST: usize = 4;
const POPULATE_WRITE: i32 = 23;

/// A memory group of version 1 whose kill is off. Its child is in no other group, so this goes with it.
struct Group(PathBuf);

impl Group {
    /// `None`, with a printed reason, where there is no such group to be made.
    fn create(name: &str) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let path = own.lines().find_map(|line| line.split_once(":memory:")).map(|(_, path)| path);
        let top = Path::new("/sys/fs/cgroup/memory");
        let below = path.map(|path| top.join(path.trim_start_matches('/'))).filter(|path| path.is_dir());
        let group =
            Self(below.as_deref().unwrap_or(top).join(format!("osprey-test-{name}-{}", std::process::id())));
        let made = fs::create_dir(&group.0)
            .and_then(|()| fs::write(group.0.join("memory.limit_in_bytes"), LIMIT.to_string()))
            .and_then(|()| fs::write(group.0.join("memory.oom_control"), "1"));
        made.map_err(|error| eprintln!("skipped: no memory group of version 1 here: {error}"))
            .ok()
            .map(|()| group)
    }

    fn is_waited_for(&self) -> bool {
        fs::read_to_string(self.0.join("memory.oom_control")).is_ok_and(|text| text.contains("under_oom 1"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..200 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn command(case: &str, engine: PagingEngine) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    let name = "pager::tests::shortage::child";
    command.args([name, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(CASE, format!("{case} {engine}")).stdin(Stdio::null());
    // A trace of calls would need more memory than there is.
    command.env("RUST_BACKTRACE", "0").stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether the child did all; prints why not where this machine has no such engine.
fn did_all(output: &Output, what: &str) -> bool {
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.contains("skipped: ")) {
        eprintln!("{line}");
        return false;
    }
    assert!(output.status.success() && text.contains("DID ALL"), "{what}: {output:?}");
    true
}

#[test]
fn calls_that_find_no_memory_are_tried_again() {
    for engine in super::ENGINES {
        let Some(group) = Group::create(&engine.to_string()) else { return };
        let mut child = command("memory", engine).env(GROUP, &group.0).spawn().expect("a child");
        let mut helped = 0;
        while child.try_wait().expect("a child").is_none() {
            if group.is_waited_for() {
                helped += 1;
                let limit = LIMIT + helped * RESERVE;
                fs::write(group.0.join("memory.limit_in_bytes"), limit.to_string()).expect("a limit");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let output = child.wait_with_output().expect("a child");
        if did_all(&output, &format!("{engine}, helped {helped} times")) {
            assert!(helped > 0, "{engine}: with no frame to give up it waits for others");
        }
    }
}

#[test]
fn a_pinned_chunk_stays_whole_where_it_is() {
    did_all(&command("pinned", PagingEngine::Move).output().expect("a child"), "pinned");
}

/// Otherwise chunks that find no memory in the region are written and come back for ever.
#[test]
fn who_is_written_while_frames_are_owed_gives_his_up() {
    for engine in super::ENGINES {
        did_all(&command("owed", engine).output().expect("a child"), &format!("owed {engine}"));
    }
}

#[test]
#[ignore = "the child process of the other tests"]
fn child() {
    let Ok(case) = std::env::var(CASE) else { return };
    if let Ok(group) = std::env::var(GROUP) {
        fs::write(Path::new(&group).join("cgroup.procs"), "0").expect("joined");
    }
    // SAFETY: a plain call; the signal ends this process, so that a test that waits for ever fails.
    unsafe { libc::alarm(60) };
    let (case, engine) = case.split_once(' ').expect("a case and an engine");
    let engine: PagingEngine = engine.parse().expect("an engine");
    let settings = ProcessSettings { region: 1 << 30, ..super::settings(engine) };
    let region = PagedRegion::reserve(&settings, true).expect("the region");
    if case == "owed" {
        match owed(settings, region) {
            Err(why) => println!("skipped: {why}"),
            Ok(()) => println!("\nDID ALL"),
        }
        return;
    }
    let frames = Frames::new(Staging::new(16, CHUNK).expect("frames"), LEAST, engine == PagingEngine::Copy);
    match Mover::new(engine, &region, &frames) {
        Err(why) => println!("skipped: {why}"),
        Ok(mover) if case == "pinned" => pinned(&mover, frames, &region),
        Ok(mover) => without_memory(&mover, frames, &region, engine),
    }
    println!("\nDID ALL");
}

/// Words that tell chunks apart.
fn pattern(chunk: u32) -> kernels::Block {
    kernels::Block(u128::from(chunk) * 0x0001_0001_0001 + 7)
}

/// A frame with the pattern of a chunk.
fn filled(frames: &mut Frames, chunk: u32) -> u32 {
    let frame = frames.take_zeroed().expect("a frame");
    frames.staging.blocks(frame).fill(pattern(chunk));
    frame
}

/// Whether the region has a chunk's pattern. All its pages must be there.
fn is_there(region: &PagedRegion, chunk: u32) -> bool {
    // SAFETY: a chunk of the region, present, that nobody writes to meanwhile.
    let blocks = unsafe {
        std::slice::from_raw_parts(
            region.address(chunk) as *const kernels::Block,
            CHUNK / kernels::Block::BYTES,
        )
    };
    blocks.iter().all(|block| *block == pattern(chunk))
}

/// Takes what memory the group has left. It fails, as the pager's calls do, and does not wait.
struct Hog(Mapping, usize);

impl Hog {
    fn new() -> Self {
        Self(Mapping::anonymous(None, 4 * LIMIT as usize, false).expect("address space"), 0)
    }

    fn eat(&mut self) {
        while self.0.advise(self.1, PAGE, POPULATE_WRITE).is_ok() {
            self.1 += PAGE;
        }
    }
}

fn without_memory(mover: &Mover, mut frames: Frames, region: &PagedRegion, engine: PagingEngine) {
    let mut hog = Hog::new();
    let chunks = [0, FAR, 2 * FAR, 3 * FAR];
    let mut placed = chunks.map(|chunk| (chunk, filled(&mut frames, chunk))).into_iter();
    let free: Vec<u32> = (0..3).map(|_| frames.take().expect("a frame")).collect();
    free.into_iter().for_each(|frame| frames.give(frame));
    let mut next = || placed.next().expect("enough of them");

    // There is memory.
    let (first, frame) = next();
    assert!(mover.enter(&mut frames, frame, region, first, true).expect("memory"));
    assert!(!frames.was_short() && is_there(region, first));

    // A frame that had none yet gets none: there are so many as have some, and no more.
    hog.eat();
    let free: Vec<u32> = std::iter::from_fn(|| frames.take()).collect();
    assert!(frames.was_short() && frames.live() == frames.count() && frames.available() == 0);
    assert_eq!(free.len(), 3);
    free.into_iter().for_each(|frame| frames.give(frame));

    // There is none for page tables and copies: a free frame gives its own up, or a copy what it has copied.
    let (second, frame) = next();
    let before = (frames.live(), frames.available());
    hog.eat();
    if engine == PagingEngine::Copy {
        // Others could leave first: it stays where it is, whole, and nobody has lost memory.
        assert!(!mover.enter(&mut frames, frame, region, second, true).expect("no failure"));
        assert!(frames.was_short() && (frames.live(), frames.available()) == before);
        assert!(frames.staging.blocks(frame).iter().all(|block| *block == pattern(second)));
        hog.eat();
    }
    assert!(mover.enter(&mut frames, frame, region, second, false).expect("free frames help"));
    assert!(frames.was_short(), "the call found no memory");
    assert!(frames.live() < before.0 && frames.available() < before.1 && is_there(region, second));

    // Nothing is free: it waits until the parent gives some. Whoever is first takes it.
    let (third, frame) = next();
    while frames.take().is_some() {}
    hog.eat();
    assert!(mover.enter(&mut frames, frame, region, third, false).expect("the guard helps"));
    assert!(frames.was_short() && is_there(region, third));

    // A chunk leaves without memory: its pages move, or the spare frame takes its content.
    hog.eat();
    let left = mover.leave(&mut frames, region, third).expect("no memory is needed").expect("not pinned");
    assert!(frames.staging.blocks(left).iter().all(|block| *block == pattern(third)));
    if engine == PagingEngine::Copy {
        assert!(frames.is_spare_lent(), "the call found no memory");
        assert!(!frames.was_short(), "others need not give theirs up for that");
        hog.eat();
        let stays = mover.leave(&mut frames, region, second).expect("refused, which is no failure");
        assert!(stays.is_none() && is_there(region, second), "the spare frame is in use");
        // It does not take the spare frame along.
        hog.eat();
        assert!(!mover.enter(&mut frames, left, region, third, true).expect("no failure"));
        assert!(frames.staging.blocks(left).iter().all(|block| *block == pattern(third)));
        hog.eat();
        frames.give(left);
        mover.leave(&mut frames, region, second).expect("a spare frame").expect("free again");
    }
}

/// A page in the middle of a chunk is pinned by a transfer of the program's own: what was moved goes back.
fn pinned(mover: &Mover, mut frames: Frames, region: &PagedRegion) {
    for chunk in [0, 1] {
        let frame = filled(&mut frames, chunk);
        assert!(mover.enter(&mut frames, frame, region, chunk, true).expect("memory"));
    }
    let ring = io_uring::IoUring::new(2).expect("io_uring");
    let page = libc::iovec { iov_base: (region.address(0) + 5 * PAGE) as *mut _, iov_len: PAGE };
    // SAFETY: a page of the region that is there, and stays until the buffers are given up below.
    unsafe { ring.submitter().register_buffers(&[page]).expect("pinned") };
    for _ in 0..3 {
        assert_eq!(mover.leave(&mut frames, region, 0).expect("no failure"), None);
        assert!(is_there(region, 0), "it is in the region as before");
    }
    let other = mover.leave(&mut frames, region, 1).expect("no failure").expect("nobody has it");
    assert!(frames.staging.blocks(other).iter().all(|block| *block == pattern(1)));
    ring.submitter().unregister_buffers().expect("unpinned");
    let left = mover.leave(&mut frames, region, 0).expect("no failure").expect("nobody has it any more");
    assert!(frames.staging.blocks(left).iter().all(|block| *block == pattern(0)));
    pinned_in_a_row(mover, frames, region, &ring);
}

/// Of chunks in a row those before the pinned one leave; it and those behind it stay.
fn pinned_in_a_row(mover: &Mover, mut frames: Frames, region: &PagedRegion, ring: &io_uring::IoUring) {
    let row: Vec<u32> = (2..6).map(|chunk| filled(&mut frames, chunk)).collect();
    assert!(row.windows(2).all(|pair| pair[0] + 1 == pair[1]), "frames in a row: {row:?}");
    mover.enter_row(&mut frames, row[0], region, 2, 4).expect("memory");
    assert!((2..6).all(|chunk| is_there(region, chunk)));
    let page = libc::iovec { iov_base: (region.address(4) + 5 * PAGE) as *mut _, iov_len: PAGE };
    // SAFETY: a page of the region that is there, and stays until the buffers are given up below.
    unsafe { ring.submitter().register_buffers(&[page]).expect("pinned") };
    let mut hollow: Vec<u32> = row.iter().map(|_| frames.take_hollow()).collect();
    hollow.sort_unstable();
    assert_eq!(hollow, row);
    assert_eq!(mover.leave_row(&mut frames, row[0], region, 2, 4).expect("no failure"), 2);
    for (chunk, &frame) in (2..4).zip(&row) {
        assert!(frames.staging.blocks(frame).iter().all(|block| *block == pattern(chunk)), "chunk {chunk}");
    }
    assert!(is_there(region, 4) && is_there(region, 5), "they are in the region as before");
    ring.submitter().unregister_buffers().expect("unpinned");
    assert_eq!(mover.leave_row(&mut frames, row[2], region, 4, 2).expect("no failure"), 2);
    assert!(frames.staging.blocks(row[3]).iter().all(|block| *block == pattern(5)));
}

/// A chunk is touched while it is written, and one too many has memory.
#[inline(never)] // Its stack is none of the other cases', which have no memory for more.
fn owed(settings: ProcessSettings, region: PagedRegion) -> Result<(), String> {
    const CHUNKS: u32 = 4;
    let (region, frames) = (Arc::new(region), 2 * FRAMES_MIN);
    let progress = Arc::new(TouchProgress::new().expect("a bell"));
    let link = Arc::new(Link { stop: AtomicBool::new(false), stats: Mutex::default() });
    let shares = shares(frames, CHUNK);
    let job = Job { settings, region: region.clone(), progress, source: None, frames, shares };
    let mut worker = Worker::new(job, link)?;
    for chunk in 0..CHUNKS {
        region.set_live(chunk, true);
        assert!(worker.begin_new(chunk)?, "memory for {chunk}");
    }
    assert!(worker.leave(0, u64::MAX)?, "not pinned");
    worker.flush(true)?;
    assert_eq!(worker.chunks.state(0), State::Writing);
    worker.chunks.set(0, WANTED, true);
    let live = worker.frames.live();
    worker.frames.lower(live - 1);
    assert_eq!(worker.frames.excess(), 1);
    let mut events = Vec::new();
    while worker.writing > 0 {
        worker.ring.wait(true, None, &mut events).expect("io_uring");
        for event in events.drain(..) {
            if let UringEvent::Done(number, result) = event {
                worker.transferred(number, result)?;
            }
        }
    }
    assert_eq!((worker.chunks.state(0), worker.frames.live()), (State::Disk, live - 1));
    assert_eq!(worker.frames.excess(), 0, "and nothing is owed any more");
    assert_eq!(worker.demand, [0], "its touch is served when there is room");
    Ok(())
}
