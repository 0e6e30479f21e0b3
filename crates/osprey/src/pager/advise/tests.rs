//! Programs in child processes, because a process has one region: content survives, memory comes back within
//! the limit, whatever the trace says.
#![expect(unsafe_code, reason = "programs under test touch the region by address")]

use super::*;
use crate::disk::SwapFile;
use crate::progress::ProgressEvent;
use crate::trace::{Footer, Header, RingWriter, TraceBlock, TraceEntry, Writer, ring};
use std::collections::HashSet;
use std::os::fd::IntoRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CHUNKS: u32 = 384;
const CHUNK: usize = 64 << 10;
const MICROSET: usize = 8;
/// Chunks that may be resident.
const FRAMES: u64 = 96;

/// Passes of a program that goes along as fast as it can.
const PASSES: usize = 8;

/// How often the engine may come round, with nothing left to do by its plan, before a program stops waiting
/// for a chunk; and how many of all chunks may be taken whole by the kernel. A slow disk holds the engine up
/// within a round.
const ROUNDS: usize = 100;
const TAKEN: usize = 4;

/// Touches before a late trace begins to come, and those before the program takes its time, so that the plan
/// can catch up.
const LATE: usize = 500;
const CAUGHT_UP: usize = 600;

/// The order in which the program touches chunks, pass by pass: along, two streams, at random; or always
/// along.
fn touches(fast: bool) -> Vec<u32> {
    if fast {
        return (0..PASSES).flat_map(|_| 0..CHUNKS).collect();
    }
    let half = CHUNKS / 2;
    let streams = (0..CHUNKS).map(|i| i / 2 + i % 2 * half);
    let mixed = (0..CHUNKS).map(|i| (i * 389 + 7) % CHUNKS);
    (0..CHUNKS).chain(streams).chain(mixed).collect()
}

/// The trace of such a program, one tick before each touch or none at all; with `read` only first touches
/// write.
fn trace_of(touches: &[u32], ticks: bool, hash: u64, read: bool) -> (Vec<TraceBlock>, Footer) {
    let mut seen = HashSet::new();
    let mut entry = |&chunk| {
        let fresh = seen.insert(chunk);
        TraceEntry { chunk, written: fresh || !read, fresh }
    };
    let blocks = touches.chunks(MICROSET).enumerate().map(|(number, part)| {
        let events = if ticks { (number * MICROSET + 1) as u64 } else { 0 };
        TraceBlock { events, hash, entries: part.iter().map(&mut entry).collect() }
    });
    let blocks = blocks.collect();
    (blocks, Footer { entries: touches.len() as u64, peak_chunks: CHUNKS.into(), other_bytes: 0 })
}

/// The trace as a file.
fn from_file(
    path: &std::path::Path,
    header: &Header,
    (blocks, footer): (Vec<TraceBlock>, Footer),
) -> TraceSource {
    let mut writer = Writer::create(path, header).expect("writable");
    blocks.iter().for_each(|block| writer.block(block).expect("written"));
    writer.finish(&footer).expect("finished");
    TraceSource::open(path, header).expect("good")
}

/// The trace through a ring, from when the program has made so many touches on.
fn late(
    header: &Header,
    (blocks, footer): (Vec<TraceBlock>, Footer),
    place: &Arc<AtomicUsize>,
) -> TraceSource {
    let (theirs, ours) = ring::pair().expect("a pair");
    let (to, place, header) = (theirs.into_raw_fd(), place.clone(), *header);
    std::thread::spawn(move || {
        let mut writer = RingWriter::open(to, &header).expect("the ring");
        while place.load(Ordering::Acquire) < LATE {
            std::thread::sleep(Duration::from_millis(1));
        }
        blocks.iter().for_each(|block| writer.block(block).expect("sent"));
        writer.finish(&footer).expect("sent");
    });
    TraceSource::ring(ours.into_raw_fd(), &header).expect("a ring")
}

/// Touches a chunk as a program would: checks what it wrote there before, page by page, and may write anew.
fn visit(region: &PagedRegion, chunk: u32, visits: &mut [u64], write: bool) {
    let before = visits[chunk as usize];
    visits[chunk as usize] += u64::from(write);
    for page in (0..CHUNK).step_by(PAGE) {
        let at = (region.address(chunk) + page) as *mut u64;
        // SAFETY: a word of a page of the region, which is mapped as a whole and used by this thread alone.
        unsafe {
            let expected = if before == 0 { 0 } else { (u64::from(chunk) << 32 | page as u64) + before };
            assert_eq!(at.read(), expected, "chunk {chunk}, page {page}, visit {before}");
            if write {
                at.write((u64::from(chunk) << 32 | page as u64) + before + 1);
            }
        }
    }
}

/// Waits until the engine has brought the process back under its limit.
fn come_down(limit: u64) {
    let start = Instant::now();
    while way::resident_bytes() > limit {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{} resident, {limit} allowed",
            way::resident_bytes()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the engine has mapped a chunk but for a first page that may be held back. Whether it came.
///
/// The kernel may have taken pages of it since, without being short of memory (DAMON does). The engine looks
/// for those when the program faults, so that a program that only waits would wait for ever: after a while it
/// has to go on. A part that is there says that the chunk had come.
fn await_chunk(region: &PagedRegion, pagemap: &advise::Pagemap, chunk: u32, engine: &Advisor) -> bool {
    let (start, mut rounds, mut cpu) = (Instant::now(), 0, 0.0);
    loop {
        let pages = pagemap.mapped(region.address(chunk) + PAGE, CHUNK - PAGE).expect("readable");
        if pages == CHUNK / PAGE - 1 {
            return true;
        }
        // Its time is counted once in a round.
        let now = engine.stats().pager_cpu_s;
        rounds += usize::from(std::mem::replace(&mut cpu, now) < now);
        if rounds > ROUNDS {
            return pages > 0;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no round for {chunk}: {:?}", engine.stats());
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The child's side: `OSPREY_TEST_ADVISE` = engine, trace (none, right, read, fast, wrong, hash) and whether
/// there are ticks.
#[test]
#[ignore = "the child process of the tests of engines"]
fn a_child_pages() {
    let task = std::env::var("OSPREY_TEST_ADVISE").expect("started by a test");
    let [engine, trace, ticks, folder] = task.split(' ').collect::<Vec<_>>().try_into().expect("four words");
    let engine: PagingEngine = engine.parse().expect("an engine");
    let header = Header { chunk: CHUNK as u64, region: 1 << 30, microset: MICROSET as u32, key: 5 };
    let mut visits = vec![0; CHUNKS as usize];
    let touches = touches(trace == "fast");
    let path = std::path::Path::new(folder).join("trace");
    let told: Vec<u32> = if trace == "wrong" {
        touches.iter().map(|&chunk| (chunk * 77 + 5) % CHUNKS).collect()
    } else {
        touches.clone()
    };
    let hash = if trace == "hash" { 9 } else { 0 };
    let told = trace_of(&told, ticks == "ticks", hash, trace == "read");
    let place = Arc::new(AtomicUsize::new(0));
    let (mode, source) = match trace {
        "none" => (PassMode::Reactive, None),
        "late" => (PassMode::Concurrent, Some(late(&header, told, &place))),
        _ => (PassMode::Programmed, Some(from_file(&path, &header, told))),
    };
    let memory = way::resident_bytes() + FRAMES * CHUNK as u64;
    let settings = ProcessSettings {
        mode,
        engine,
        memory,
        chunk: CHUNK,
        microset: MICROSET,
        region: 1 << 30,
        spill: folder.into(),
        ..ProcessSettings::default()
    };
    let region = Arc::new(PagedRegion::reserve(&settings, true).expect("address space"));
    let progress = Arc::new(TouchProgress::new().expect("event descriptor"));
    (0..CHUNKS).for_each(|chunk| region.set_live(chunk, true));
    let pagemap = advise::Pagemap::open().expect("readable");
    let engine = start(engine, &settings, region.clone(), progress.clone(), source).expect("started");
    let (mut missing, mut held_back) = (0, 0);
    for (i, &chunk) in touches.iter().enumerate() {
        place.store(i, Ordering::Release);
        if trace == "late" && i >= CAUGHT_UP {
            std::thread::sleep(Duration::from_millis(1));
        }
        if ticks == "ticks" {
            progress.event(ProgressEvent::Tick);
        }
        // A late trace has had its time when the next pass begins.
        if trace == "right" || trace == "read" || trace == "late" && i >= 2 * CHUNKS as usize {
            // A program that waits at every chunk until it is there: the plan must never wait for it in turn.
            missing += usize::from(!await_chunk(&region, &pagemap, chunk, &engine));
            assert!(
                missing <= TAKEN,
                "{missing} chunks never came, the last was {chunk}: {:?}",
                engine.stats()
            );
            let first = pagemap.mapped(region.address(chunk), PAGE).expect("readable");
            held_back += usize::from(i >= CHUNKS as usize && first == 0);
        }
        visit(&region, chunk, &mut visits, trace != "read" || i < CHUNKS as usize);
        // A memory group would hold it at its limit.
        if (trace == "fast" || i % 64 == 0) && way::resident_bytes() > memory + FRAMES / 4 * CHUNK as u64 {
            come_down(memory);
        }
    }
    come_down(memory);
    let live = engine.stats();
    let stats = engine.stop();
    assert!(trace != "read" || held_back > TAKEN, "keys that are only read are kept back, too: {held_back}");
    assert!(stats.bytes_read >= live.bytes_read && stats.frames > FRAMES / 2, "{stats:?}");
    (0..CHUNKS).for_each(|chunk| visit(&region, chunk, &mut visits, true));
    println!("{}", serde_json::to_string(&stats).expect("serialises"));
}

/// The child's side of the tests of a disk in trouble: `OSPREY_TEST_TROUBLE` = trouble and folder.
#[test]
#[ignore = "the child process of the tests of a disk in trouble"]
fn a_child_is_in_trouble() {
    let task = std::env::var("OSPREY_TEST_TROUBLE").expect("started by a test");
    let (trouble, folder) = task.split_once(' ').expect("two words");
    let settings = ProcessSettings {
        mode: PassMode::Reactive,
        engine: PagingEngine::File,
        memory: way::resident_bytes() + FRAMES * CHUNK as u64,
        chunk: CHUNK,
        region: 1 << 30,
        spill: folder.into(),
        ..ProcessSettings::default()
    };
    let region = Arc::new(PagedRegion::reserve(&settings, true).expect("address space"));
    let room = room::FileRoom::open(&settings.spill, &region, 0).expect("a file");
    let (room, mapping) = (Arc::new(room), region.mapping());
    mapping.overlay(0, mapping.len(), room.file().as_fd()).expect("mapped");
    room.stand_behind(&region).expect("first in this process");
    let mut visits = vec![0; region.chunks()];
    // One at a time, as an allocator does: each has room when it is touched.
    for chunk in 0..CHUNKS {
        region.set_live(chunk, true);
        visit(&region, chunk, &mut visits, true);
    }
    let last = region.chunks() as u32 - 1;
    match trouble {
        "none" => assert!(room.holds(CHUNKS - 1) && !room.holds(last), "room for what was allocated"),
        // What the disk has lost.
        "torn" => room.file().set_len(0).expect("shortened"),
        "refused" => room.lost(&io::ErrorKind::StorageFull.into()),
        "stray" => visit(&region, last, &mut visits, false),
        other => panic!("{other}"),
    }
    visit(&region, 0, &mut visits, true);
}

/// A disk that fails, or takes no more, ends the process with words; a touch of what nobody allocated is the
/// program's.
#[test]
fn a_disk_in_trouble_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().expect("folder");
    let ending = |trouble: &str, limit: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -c 0; ulimit -f {limit}; exec \"$0\" \"$@\"")]);
        command.arg(std::env::current_exe().expect("this test"));
        command.args(["--exact", "pager::advise::tests::a_child_is_in_trouble", "--ignored", "--nocapture"]);
        command.env("OSPREY_TEST_TROUBLE", format!("{trouble} {}", folder.path().display()));
        let out = command.output().expect("sh");
        (out.status, String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (status, said) = ending("none", "unlimited");
    assert!(status.success(), "{said}");
    let name = folder.path().to_str().expect("text");
    // Units of 512 or 1024 bytes, by the shell: less than the program needs.
    let cases = [
        ("torn", "unlimited", "could be neither read nor written"),
        ("refused", "unlimited", "could not be written"),
        ("none", "8192", "ulimit -f, is reached"),
    ];
    for (trouble, limit, text) in cases {
        let (status, said) = ending(trouble, limit);
        assert_eq!(status.code(), Some(crate::pager::EXIT_PAGING), "{trouble}: {said}");
        assert!(said.contains(name) && said.contains(text), "{trouble}: {said}");
    }
    let (status, said) = ending("stray", "unlimited");
    assert_eq!(status.signal(), Some(libc::SIGBUS), "{said}");
}

/// Runs the child and gives what its engine counted.
fn child(engine: &str, trace: &str, ticks: &str) -> Stats {
    let folder = tempfile::tempdir().expect("folder");
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "pager::advise::tests::a_child_pages", "--ignored", "--nocapture"]);
    command.env("OSPREY_TEST_ADVISE", format!("{engine} {trace} {ticks} {}", folder.path().display()));
    let out = command.output().expect("child");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let line = text.lines().find_map(|line| line.find('{').map(|at| &line[at..])).expect("counters");
    serde_json::from_str(line).expect("counters")
}

/// All traces on one engine.
fn all_traces(engine: &str) {
    let total = 3 * u64::from(CHUNKS) * CHUNK as u64;
    for ticks in ["ticks", "still"] {
        let stats = child(engine, "right", ticks);
        assert_eq!(
            (stats.mode.as_str(), stats.trace_entries),
            ("programmed", 3 * u64::from(CHUNKS)),
            "{stats:?}"
        );
        assert!(stats.first_touches == u64::from(CHUNKS) && stats.warnings.is_empty(), "{stats:?}");
        assert!(0 < stats.bytes_read && stats.bytes_read < total, "{stats:?}");
        // No event tells of the last block's begin.
        let few = stats.key_faults <= MICROSET as u64;
        assert_eq!(few, ticks == "ticks", "keys only where events stand still: {stats:?}");
    }
    // Chunks that are only read leave without a write. Keys among them tell no more than others: the plan
    // stays within.
    let stats = child(engine, "read", "still");
    assert!(stats.mode == "programmed" && stats.dropped_clean > 0 && stats.warnings.is_empty(), "{stats:?}");
    assert!(stats.key_faults > MICROSET as u64, "{stats:?}");
    let stats = child(engine, "wrong", "ticks");
    assert!(stats.bytes_written > 0, "{stats:?}");
    let stats = child(engine, "hash", "ticks");
    assert!(stats.mode == "reactive" && stats.warnings[0].contains("allocates otherwise"), "{stats:?}");
    // Paging by touches until the trace is there, and by the plan then.
    for ticks in ["ticks", "still"] {
        let stats = child(engine, "late", ticks);
        assert!(stats.mode == "concurrent" && stats.warnings.is_empty(), "{stats:?}");
        assert!(stats.trace_entries == 3 * u64::from(CHUNKS) && stats.bytes_read > 0, "{stats:?}");
    }
    let stats = child(engine, "none", "ticks");
    assert!(stats.mode == "reactive" && stats.bytes_written > 0, "{stats:?}");
}

#[test]
fn a_file_pages_by_any_trace() {
    all_traces("file");
}

#[test]
fn swap_pages_by_any_trace() {
    let folder = tempfile::tempdir().expect("folder");
    let _swap = match SwapFile::create(folder.path(), 256 << 20) {
        Ok(swap) => swap,
        Err(error) => return eprintln!("skipped: no swap file can be made here: {error}"),
    };
    all_traces("hint");
}

/// A program without events that computes next to nothing: it overtakes the plan again and again, and the
/// plan stays.
fn overtaken(engine: &str) {
    let stats = child(engine, "fast", "still");
    assert!(stats.mode == "programmed" && stats.warnings.is_empty(), "{stats:?}");
    assert!(stats.trace_entries > PASSES as u64 * u64::from(CHUNKS) / 2, "{stats:?}");
}

#[test]
fn a_file_is_overtaken() {
    overtaken("file");
}

#[test]
fn swap_is_overtaken() {
    let folder = tempfile::tempdir().expect("folder");
    let _swap = match SwapFile::create(folder.path(), 256 << 20) {
        Ok(swap) => swap,
        Err(error) => return eprintln!("skipped: no swap file can be made here: {error}"),
    };
    overtaken("hint");
}

#[test]
fn too_small_a_limit_is_an_error_with_the_least() {
    let settings = |memory| ProcessSettings { memory, ..ProcessSettings::default() };
    let error = frames(&settings(1 << 20), None).expect_err("too small");
    assert!(
        error.contains("a limit of 1048576 bytes is too small") && error.contains("so at least"),
        "{error}"
    );
    let least: u64 = error.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    let enough = frames(&settings(least + (1 << 20)), None).expect("enough");
    assert!(Sizes::of(enough).capacity >= 2 * ProcessSettings::default().microset);
    assert!(frames(&settings(0), None).expect_err("no limit").contains("OSPREY_MEMORY"));
}
