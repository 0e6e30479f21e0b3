//! Traces survive files and rings; whatever is wrong with one is said in words.

mod common;

use osprey::ProcessSettings;
use osprey::trace::{
    Footer, Header, RingWriter, TraceBlock, TraceEntry, TraceFeed, TraceSource, Writer, ring,
};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

const HEADER: Header = Header { chunk: 65536, region: 1 << 30, microset: 4, key: 0x1234_5678 << 80 | 9 };

/// A stream of blocks: near and far chunks, all flags, events that stand still and hashes that do too.
fn block(number: u64) -> TraceBlock {
    let mix = |i: u64| (number * 4 + i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17;
    let entries = (0..4).map(|i| TraceEntry {
        chunk: if i == 3 { mix(i) as u32 % 16384 } else { (number * 3 + i) as u32 % 16384 },
        written: mix(i + 100).is_multiple_of(2),
        fresh: mix(i + 200).is_multiple_of(3),
    });
    TraceBlock { events: number / 2 * 7, hash: number / 3, entries: entries.collect() }
}

fn footer(blocks: u64) -> Footer {
    Footer { entries: 4 * blocks, peak_chunks: 16384, other_bytes: 123_456_789 }
}

fn written(folder: &Path, blocks: u64) -> PathBuf {
    let path = folder.join("trace");
    let mut writer = Writer::create(&path, &HEADER).expect("writable");
    for number in 0..blocks {
        writer.block(&block(number)).expect("written");
    }
    writer.finish(&footer(blocks)).expect("finished");
    assert_eq!(std::fs::metadata(&path).expect("there").len(), writer.bytes());
    path
}

/// Reads to the end; the blocks that came before an error.
fn read(source: &mut TraceSource) -> (u64, Result<Footer, String>) {
    let mut blocks = 0;
    loop {
        match source.next() {
            Ok(TraceFeed::Block(got)) => {
                assert_eq!(got, block(blocks));
                blocks += 1;
            }
            Ok(TraceFeed::End(footer)) => return (blocks, Ok(footer)),
            Ok(TraceFeed::Wait) => wait(source),
            Err(error) => return (blocks, Err(error)),
        }
    }
}

/// Until the ring has more.
fn wait(source: &TraceSource) {
    let bell = source.bell().expect("only a ring waits").as_raw_fd();
    let mut poll = libc::pollfd { fd: bell, events: libc::POLLIN, revents: 0 };
    #[expect(unsafe_code, reason = "there is no poll in the standard library")]
    // SAFETY: one structure, as stated.
    let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
    assert!(ready == 1 || std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted);
}

#[test]
fn a_file_gives_back_what_was_written() {
    let folder = tempfile::tempdir().expect("folder");
    for blocks in [0, 1, 5000] {
        let mut source = TraceSource::open(&written(folder.path(), blocks), &HEADER).expect("good");
        assert_eq!(source.footer(), Some(&footer(blocks)));
        assert_eq!(read(&mut source), (blocks, Ok(footer(blocks))));
        assert_eq!(source.next(), Ok(TraceFeed::End(footer(blocks))), "the end stays the end");
    }
    let (header, _) = TraceSource::inspect(&folder.path().join("trace")).expect("good");
    assert_eq!(header, HEADER);
}

#[test]
fn a_last_block_may_be_short_and_extremes_fit() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("trace");
    let header = Header { chunk: 4096, region: 16 << 40, microset: 1024, key: u128::MAX };
    let entry = |chunk| TraceEntry { chunk, written: true, fresh: true };
    let far = TraceBlock {
        events: u64::MAX >> 1,
        hash: u64::MAX,
        entries: (0..1024).map(|i| entry(if i % 2 == 0 { 0 } else { u32::MAX - i })).collect(),
    };
    let short = TraceBlock { entries: vec![entry(u32::MAX)], ..far.clone() };
    let end = Footer { entries: 1025, peak_chunks: u64::MAX, other_bytes: u64::MAX };
    let mut writer = Writer::create(&path, &header).expect("writable");
    writer.block(&far).expect("written");
    writer.block(&short).expect("written");
    let wrong = writer.finish(&Footer { entries: 7, ..end }).expect_err("counted");
    assert!(wrong.to_string().contains("a footer of 7 entries after 1025"));
    writer.finish(&end).expect("finished");
    let mut source = TraceSource::open(&path, &header).expect("good");
    let got: Vec<_> = (0..3).map(|_| source.next().expect("good")).collect();
    assert_eq!(got, [TraceFeed::Block(far), TraceFeed::Block(short), TraceFeed::End(end)]);
}

#[test]
fn another_run_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), 3);
    for (expected, text) in [
        (Header { chunk: 4096, ..HEADER }, "has chunks (bytes) of 65536, this run has 4096"),
        (Header { region: 1 << 31, ..HEADER }, "has a region (bytes) of 1073741824, this run has 2147483648"),
        (Header { microset: 32, ..HEADER }, "has blocks (entries) of 4, this run has 32"),
        (Header { key: 7, ..HEADER }, "is of another binary, or of other arguments"),
    ] {
        let error = TraceSource::open(&path, &expected).expect_err("refused");
        assert!(error.contains(text) && error.contains("speculate again"), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    let error = TraceSource::open(&folder.path().join("none"), &HEADER).expect_err("refused");
    assert!(error.contains("cannot read") && error.contains("No such file"), "{error}");
}

#[test]
fn every_truncation_is_torn() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), 9);
    let whole = std::fs::read(&path).expect("readable");
    for length in 0..whole.len() {
        std::fs::write(&path, &whole[..length]).expect("written");
        let error = TraceSource::open(&path, &HEADER).expect_err("refused");
        assert!(error.contains("is torn after") && error.contains("did not end"), "at {length}: {error}");
    }
    let longer = [&whole[..], &[0]].concat();
    std::fs::write(&path, longer).expect("written");
    let error = TraceSource::open(&path, &HEADER).expect_err("refused");
    assert!(error.contains("goes on after its end"), "{error}");
}

#[test]
fn every_flipped_bit_is_noticed() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), 9);
    let whole = std::fs::read(&path).expect("readable");
    let mut named = 0;
    for bit in 0..8 * whole.len() {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).expect("written");
        let error = TraceSource::open(&path, &HEADER).expect_err("refused");
        let expected: &[&str] = match bit / 8 {
            0..8 => &["is no trace"],
            8..12 => &["is of format version"],
            12..52 => &["is corrupt in its header"],
            // A length that grew may reach beyond the end of the file.
            _ => &["is corrupt at block", "is torn after"],
        };
        assert!(expected.iter().any(|text| error.contains(text)), "bit {bit}: {error}");
        named += usize::from(error.contains("is corrupt at block"));
    }
    assert!(named > 7 * (whole.len() - 52), "only lengths may look torn: {named}");
}

#[test]
fn frames_cannot_be_dropped_or_swapped() {
    let folder = tempfile::tempdir().expect("folder");
    let path = written(folder.path(), 1000);
    let whole = std::fs::read(&path).expect("readable");
    // Frames by their length bytes, which are below 128 here.
    let mut starts = vec![52];
    while let Some(&length) = whole.get(*starts.last().expect("one")) {
        starts.push(starts.last().expect("one") + 1 + usize::from(length) + 4);
    }
    let frame = |i: usize| &whole[starts[i]..starts[i + 1]];
    let without = [&whole[..starts[500]], &whole[starts[501]..]].concat();
    let twice = [&whole[..starts[501]], frame(500), &whole[starts[501]..]].concat();
    let swapped = [&whole[..starts[500]], frame(501), frame(500), &whole[starts[502]..]].concat();
    for (bytes, at) in [(without, 500), (twice, 501), (swapped, 500)] {
        std::fs::write(&path, bytes).expect("written");
        let error = TraceSource::open(&path, &HEADER).expect_err("refused");
        assert!(error.contains(&format!("is corrupt at block {at}:")), "{error}");
    }
}

/// A child that writes to an inherited ring.
fn writer(part: &str, blocks: u64) -> (Child, TraceSource) {
    let (writer, reader) = ring::pair().expect("sockets");
    let settings = ProcessSettings { ring: Some(writer.as_raw_fd()), ..ProcessSettings::default() };
    let mut command = common::child(&format!("{part} {blocks}"), &settings);
    common::inherit(&mut command, &writer);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("child");
    drop(writer);
    // The source takes the descriptor over, as it does in a child.
    (child, TraceSource::ring(reader.into_raw_fd(), &HEADER).expect("adopted"))
}

/// The child's side; the others start it.
#[test]
#[ignore = "the child process of the tests of rings"]
fn child() {
    let case = common::case();
    let (part, blocks) = case.split_once(' ').expect("a part and its blocks");
    let fd = ProcessSettings::from_env().expect("settings").ring.expect("a ring");
    let header = if part == "other" { Header { key: 1, ..HEADER } } else { HEADER };
    let mut ring = match RingWriter::open(fd, &header) {
        Ok(ring) => ring,
        Err(error) if error.contains("cannot write to the ring of the real run") => std::process::exit(7),
        Err(error) => panic!("{error}"),
    };
    let blocks = blocks.parse().expect("number");
    for number in 0..blocks {
        if let Err(error) = ring.block(&block(number)) {
            assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
            std::process::exit(7);
        }
    }
    if part == "die" {
        std::process::abort();
    }
    ring.finish(&footer(blocks)).expect("finished");
}

#[test]
fn a_ring_carries_a_trace_between_processes() {
    let (mut child, mut source) = writer("finish", 20_000);
    assert_eq!(source.footer(), None);
    assert_eq!(read(&mut source), (20_000, Ok(footer(20_000))));
    assert_eq!(source.footer(), Some(&footer(20_000)));
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_full_ring_holds_its_writer_back() {
    let (mut child, mut source) = writer("finish", 100_000);
    // Until the writer sleeps and has sent nothing more since it was last looked at.
    let proc = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).expect("running");
    let sent = || -> u64 {
        let text = proc("io");
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("a line of it");
        line.parse().expect("number")
    };
    let mut before = 0;
    loop {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let now = sent();
        if now > 0 && now == before && proc("status").contains("State:\tS") {
            break;
        }
        before = now;
    }
    assert!(before < 1 << 20, "{before} bytes were sent before anything was read");
    assert_eq!(read(&mut source), (100_000, Ok(footer(100_000))));
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_writer_that_dies_is_noticed() {
    let (mut child, mut source) = writer("die", 50);
    let (blocks, end) = read(&mut source);
    let error = end.expect_err("no footer");
    assert!(blocks == 50 && error.contains("ends after 50 blocks: the speculative process died"), "{error}");
    assert!(!child.wait().expect("ended").success());
    let (mut child, mut source) = writer("finish", u64::MAX);
    assert!(matches!(source.next(), Ok(TraceFeed::Block(_) | TraceFeed::Wait)));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(read_to_error(&mut source).contains("the speculative process died"));
}

fn read_to_error(source: &mut TraceSource) -> String {
    loop {
        match source.next() {
            Ok(TraceFeed::Block(_)) => {}
            Ok(TraceFeed::Wait) => wait(source),
            Ok(TraceFeed::End(_)) => panic!("the trace ended"),
            Err(error) => return error,
        }
    }
}

#[test]
fn a_reader_that_goes_frees_its_writer() {
    for read_first in [false, true] {
        let (mut child, mut source) = writer("finish", u64::MAX);
        if read_first {
            wait(&source);
            source.next().expect("a block");
        }
        drop(source);
        assert_eq!(child.wait().expect("ended").code(), Some(7));
    }
}

#[test]
fn a_ring_of_another_program_is_refused() {
    let (mut child, mut source) = writer("other", 1);
    let error = read_to_error(&mut source);
    assert!(error.contains("is of another binary, or of other arguments"), "{error}");
    child.wait().expect("ended");
    let error = TraceSource::ring(1000, &HEADER).expect_err("no such descriptor");
    assert!(error.contains("OSPREY_RING = 1000 is no descriptor"), "{error}");
}
