//! What goes wrong around a pager: no permission, no room, an end in the middle.

use super::children::{HARM, Outcome, command, run_with};
use super::patterns::{Kind, Program};
use super::streams::{HARM_LATE, HARM_PAUSE};
use super::{EXIT_PAGING, PagingEngine, ProcessSettings, settings};
use crate::progress::TouchProgress;
use crate::sys::process::{peak_resident, resident};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::process::Stdio;
use std::time::Duration;

/// A child that uses more and more memory beside the region.
pub const GROWING: &str = "growing heap";
/// Bytes per access that it grows by, when, and its limit.
const GROWTH: usize = 16 << 10;
const GROWS: std::ops::Range<usize> = 600..2520;
const GROWING_LIMIT: u64 = 56 << 20;

/// Accesses after which the pager is given time to look, and that time: more than it lets pass between two
/// looks.
const PAUSE_EVERY: usize = 32;
const PAUSE: Duration = Duration::from_millis(25);

/// In the child, at every access: the heap grows by 30 MiB in all, and what the process has stays below its
/// limit. Between two looks of the pager it grows by half a MiB: slack is for twice as much, however busy the
/// machine.
pub fn grow(heap: &mut Vec<Vec<u8>>, number: usize, progress: &TouchProgress) {
    if GROWS.contains(&number) {
        heap.push(vec![1; GROWTH]);
        if number.is_multiple_of(PAUSE_EVERY) {
            let statm = File::open("/proc/self/statm").expect("/proc");
            for _ in 0..400 {
                std::thread::sleep(PAUSE);
                progress.ring();
                if resident(&statm) + (1 << 20) <= GROWING_LIMIT {
                    break;
                }
            }
        }
    }
    if number == GROWS.end {
        assert!(peak_resident() <= GROWING_LIMIT, "{} bytes were resident", peak_resident());
    }
}

/// Frames are given up for what the process uses beside the region, and the plan goes on with fewer.
#[test]
fn frames_make_room_for_a_heap_that_grows() {
    let program = Program { kind: Kind::Random, ..Program::default() };
    for engine in super::ENGINES {
        let settings = ProcessSettings { memory: GROWING_LIMIT, ..settings(engine) };
        let outcome = run_with(&settings, &program, Some(&program), |c| {
            c.env(HARM, GROWING);
        });
        let Some(stats) = outcome.stats() else { return };
        assert!(stats.mode == "programmed" && stats.warnings.is_empty(), "{engine}: {stats:?}");
        let left = GROWING_LIMIT - (GROWS.len() * GROWTH) as u64;
        assert!(stats.frames * super::CHUNK as u64 <= left, "{engine}: {stats:?}");
    }
}

/// Harm that a child does to itself before it starts.
pub fn suffer(harm: &str) {
    match harm {
        "no userfaultfd" => forbid(libc::SYS_userfaultfd),
        "no io_uring" => forbid(libc::SYS_io_uring_setup),
        "small files" => limit_files(24 << 20),
        "none" | GROWING | ALTERED | HARM_LATE | HARM_PAUSE => {}
        other => panic!("no such harm: {other}"),
    }
}

/// A filter under which one system call is not permitted.
fn forbid(call: libc::c_long) {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let (load, equal, give) = (0x20, 0x15, 0x06);
    let mut program = [
        statement(load, 0),
        libc::sock_filter { code: equal, jt: 0, jf: 1, k: call as u32 },
        statement(give, 0x0005_0000 | libc::EPERM as u32),
        statement(give, 0x7FFF_0000),
    ];
    let filter = libc::sock_fprog { len: 4, filter: program.as_mut_ptr() };
    // SAFETY: both calls take what they are documented to take; the filter lives until the second returns.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, 2, &filter), 0);
    }
}

fn limit_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the structure that the call reads.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) }, 0);
}

#[test]
fn what_is_not_permitted_is_said_with_what_to_do() {
    let program = Program::default();
    for (harm, expected) in
        [("no userfaultfd", "vm.unprivileged_userfaultfd"), ("no io_uring", "kernel.io_uring_disabled")]
    {
        let outcome = run_with(&settings(PagingEngine::Move), &program, None, |c| {
            c.env(HARM, harm);
        });
        let Outcome::Refused(text) = outcome else { panic!("{harm}: it started") };
        if harm == "no io_uring" && text.contains("userfaultfd") {
            return eprintln!("skipped: {text}");
        }
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn no_room_on_disk_ends_the_run_with_a_message() {
    let program = Program { kind: Kind::Sequential, ..Program::default() };
    for trace in [None, Some(&program)] {
        let outcome = run_with(&settings(PagingEngine::Move), &program, trace, |c| {
            c.env(HARM, "small files");
        });
        match outcome {
            Outcome::Refused(text) => return eprintln!("skipped: {text}"),
            Outcome::Finished(stats) => panic!("64 MiB in 16 MiB and a file of 24: {stats:?}"),
            Outcome::Other(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(EXIT_PAGING), "{text}");
                assert!(text.contains("no room for paging: the file in") && text.contains("MiB"), "{text}");
            }
        }
    }
}

/// Somebody writes to the disk.
pub const ALTERED: &str = "altered file";
/// The access before which that happens.
pub const ALTERED_AT: usize = 700;

/// In the child: changes a bit in every chunk's place in the file, by way of the descriptor that the pager
/// has.
pub fn alter_file() {
    let (mut bit, mut places) = ([0], 0);
    for entry in std::fs::read_dir("/proc/self/fd").expect("/proc").map_while(Result::ok) {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if !target.to_string_lossy().ends_with(" (deleted)") {
            continue;
        }
        let file = File::options().read(true).write(true).open(entry.path()).expect("the file");
        for at in (0..file.metadata().expect("its length").len()).step_by(super::CHUNK) {
            file.read_exact_at(&mut bit, at).expect("read");
            file.write_all_at(&[bit[0] ^ 4], at).expect("written");
            places += 1;
        }
    }
    assert!(places > 0, "the pager has a file");
}

#[test]
fn a_file_that_was_written_to_ends_the_run_with_a_message() {
    let program = Program { kind: Kind::Sequential, ..Program::default() };
    for engine in super::ENGINES {
        for trace in [None, Some(&program)] {
            let outcome = run_with(&settings(engine), &program, trace, |c| {
                c.env(HARM, ALTERED);
            });
            match outcome {
                Outcome::Refused(text) => return eprintln!("skipped: {text}"),
                Outcome::Finished(stats) => panic!("{engine}: an altered file was taken: {stats:?}"),
                Outcome::Other(output) => {
                    let text = String::from_utf8_lossy(&output.stderr);
                    assert_eq!(output.status.code(), Some(EXIT_PAGING), "{engine}: {text}");
                    assert!(text.contains("is not what was paged out there"), "{engine}: {text}");
                }
            }
        }
    }
}

/// What is freed makes room: a file that is too small for all that ever was is enough for what is.
#[test]
fn room_of_dead_chunks_is_used_again() {
    let program = Program { kind: Kind::Temporary, ..Program::default() };
    let outcome = run_with(&settings(PagingEngine::Move), &program, None, |c| {
        c.env(HARM, "small files");
    });
    assert!(outcome.stats().is_none_or(|stats| stats.warnings.is_empty()));
}

#[test]
fn a_directory_that_cannot_be_used_is_named() {
    let settings = ProcessSettings { spill: "/proc/self".into(), ..settings(PagingEngine::Move) };
    match run_with(&settings, &Program::default(), None, |_| {}) {
        Outcome::Refused(text) if text.contains("userfaultfd") => eprintln!("skipped: {text}"),
        Outcome::Refused(text) => {
            assert!(text.contains("/proc/self") && text.contains("OSPREY_SPILL"), "{text}")
        }
        _ => panic!("it started"),
    }
}

#[test]
fn a_limit_that_is_too_small_is_refused_with_the_least() {
    let program = Program::default();
    let settings = ProcessSettings { memory: 6 << 20, ..settings(PagingEngine::Move) };
    let Outcome::Refused(text) = run_with(&settings, &program, Some(&program), |_| {}) else {
        panic!("it started")
    };
    let least = text.split("allow at least ").nth(1).and_then(|t| t.split(' ').next()?.parse::<u64>().ok());
    let settings = ProcessSettings { memory: least.expect("a number") << 20, ..settings };
    let outcome = run_with(&settings, &program, Some(&program), |_| {});
    assert!(outcome.stats().is_none_or(|stats| stats.bytes_read > 0));
}

/// A process that is killed in the middle leaves nothing in the spill directory.
#[test]
fn a_kill_leaves_nothing_behind() {
    let (spill, directory) = [(); 2].map(|()| tempfile::tempdir().expect("a directory")).into();
    let settings = ProcessSettings { spill: spill.path().into(), ..settings(PagingEngine::Move) };
    let program = Program { kind: Kind::Sequential, length: 1 << 20, ..Program::default() };
    let mut command = command(&settings, &program, None, directory.path());
    let mut child = command.env(HARM, "none").stdout(Stdio::piped()).spawn().expect("a child");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains("HALFWAY") || line.contains("REFUSED"));
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(found.is_some(), "it came to its middle");
    assert_eq!(std::fs::read_dir(spill.path()).expect("the directory").count(), 0);
}
