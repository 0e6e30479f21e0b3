//! `osprey trace verify`.
//!
//! A program may use a trace if a speculative pass of it, now, gives the same one: entry for entry. Where it
//! does not, its accesses depend on something that is not in its arguments, or the trace is of another build.

use super::figures::blocks;
use base::Error;
use osprey::settings::microset;
use osprey::trace::{Header, TraceBlock, TraceEntry};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use terminal::output::{print, print_json};

/// What to do with a trace of another program.
const ANEW: &str = "give the arguments that it was made with, or make it anew (osprey run --speculative-only \
                    --trace-file FILE -- PROGRAM ARGUMENTS)";
/// What to do where the program is the same.
const DEPENDS: &str = "if its inputs are others now, make it anew; if they are the same, its accesses depend \
                       on something else (data, time, randomness, threads): paging by a trace is then slow, \
                       not wrong, and --mode reactive does as well";

/// Checks a trace, and compares it with a new one of `command` unless that is empty.
///
/// # Errors
/// When the file cannot be read, is not whole, or differs: the first difference.
pub fn run(path: &Path, command: &[OsString], no_isolation: bool, json: bool) -> Result<(), Error> {
    let (header, mut source) = super::open(path)?;
    let (found, footer) = blocks(&mut source).map_err(Error::input)?;
    let compared = !command.is_empty();
    if compared {
        // Memory by the name of its descriptor: nothing is left behind, however we end.
        let fresh = memfd_create("osprey-verify", MemfdFlags::CLOEXEC)
            .map_err(|e| Error::io("making room for a trace", &e.into()))?;
        let name = PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), fresh.as_raw_fd()));
        speculate(&header, command, no_isolation, &name)?;
        let (now, mut source) = super::open(&name)?;
        let (expected, _) = blocks(&mut source).map_err(Error::input)?;
        let other_run = keys(&header, &now, command).map(|how| (how, ANEW));
        if let Some((how, then)) = other_run.or_else(|| Some((difference(&found, &expected)?, DEPENDS))) {
            return Err(Error::input(format!(
                "{} is not a trace of this program now: {how}; {then}",
                path.display()
            )));
        }
    }
    let (entries, blocks) = (footer.entries, found.len());
    if json {
        return print_json(
            &json!({ "whole": true, "same": compared.then_some(true), "blocks": blocks, "entries": entries }),
        );
    }
    let same = if compared { "; a new speculative pass gives the same" } else { "" };
    print(&format!("{} is whole: {entries} touches in {blocks} blocks{same}", path.display()))
}

/// Makes a new trace with the settings of the old one, by `osprey run`.
fn speculate(header: &Header, command: &[OsString], no_isolation: bool, to: &Path) -> Result<(), Error> {
    let usual = microset(header.chunk as usize);
    if header.microset as usize != usual {
        return Err(Error::input(format!(
            "the trace has blocks of {} chunks, osprey run makes blocks of {usual} at this chunk size: it \
             cannot be compared",
            header.microset
        )));
    }
    let io = |e: &std::io::Error| Error::io("starting osprey run", e);
    let mut run = Command::new(std::env::current_exe().map_err(|e| io(&e))?);
    run.args(["run", "--speculative-only", "--quiet"]);
    run.args(["--chunk", &header.chunk.to_string(), "--region", &header.region.to_string()]);
    run.arg("--trace-file").arg(to);
    if no_isolation {
        run.arg("--no-isolation");
    }
    run.arg("--").args(command).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = run.spawn().map_err(|e| io(&e))?;
    let said = child.stderr.take().map(pass_on).unwrap_or_default();
    if child.wait().map_err(|e| io(&e))?.success() {
        return Ok(());
    }
    let said = if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) };
    Err(Error::input(format!("{} gave no trace to compare with{said}", words(command))))
}

/// Shows what a pass says, the program's own lines among it, as it comes. What was wrong by it.
fn pass_on(stderr: ChildStderr) -> Vec<String> {
    let mut wrong = Vec::new();
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // When standard error is gone, the exit code still tells.
        let _ = writeln!(std::io::stderr(), "{line}");
        let told = ["osprey: warning: ", "osprey: error: "].iter().find_map(|mark| line.strip_prefix(mark));
        wrong.extend(told.map(str::to_owned));
    }
    wrong
}

/// A command as it was given.
fn words(command: &[OsString]) -> String {
    command.iter().map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
}

/// A key tells that something differs, not what.
fn keys(found: &Header, expected: &Header, command: &[OsString]) -> Option<String> {
    (found.key != expected.key).then(|| {
        let (binary, arguments) = (command[0].display(), words(&command[1..]));
        format!(
            "its key is {:032x}, and {:032x} is that of the file {binary} as it is now, with the arguments \
             `{arguments}`: it was made by another build of the program, with other arguments, or by another \
             version of osprey",
            found.key, expected.key
        )
    })
}

/// The first place where two traces differ, in words.
fn difference(found: &[TraceBlock], expected: &[TraceBlock]) -> Option<String> {
    for (number, (one, other)) in found.iter().zip(expected).enumerate() {
        if (one.events, one.hash) != (other.events, other.hash) {
            return Some(format!(
                "block {number} begins after {} events with hash {:016x} there, after {} with {:016x} now: \
                 the program allocates otherwise",
                one.events, one.hash, other.events, other.hash
            ));
        }
        if let Some(at) = (0..one.entries.len().max(other.entries.len()))
            .find(|&at| one.entries.get(at) != other.entries.get(at))
        {
            let [there, now] =
                [one, other].map(|block| block.entries.get(at).map_or("nothing".into(), entry));
            return Some(format!("entry {at} of block {number} is {there} there and {now} now"));
        }
    }
    (found.len() != expected.len()).then(|| {
        format!("it has {} blocks and the program now {}, the same up to there", found.len(), expected.len())
    })
}

fn entry(entry: &TraceEntry) -> String {
    let written = if entry.written { "written" } else { "read" };
    let fresh = if entry.fresh { ", empty before" } else { "" };
    format!("chunk {} ({written}{fresh})", entry.chunk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let entries = |chunks: &[u32]| -> Vec<TraceEntry> {
            chunks.iter().map(|&chunk| TraceEntry { chunk, written: chunk == 2, fresh: false }).collect()
        };
        let block = |events, hash, chunks: &[u32]| TraceBlock { events, hash, entries: entries(chunks) };
        let base = [block(1, 1, &[1, 2]), block(5, 1, &[3])];
        assert_eq!(difference(&base, &base), None);
        for (other, expected) in [
            ([block(1, 1, &[1, 2]), block(6, 1, &[3])], "block 1 begins after 5 events"),
            (
                [block(1, 2, &[1, 2]), block(5, 1, &[3])],
                "block 0 begins after 1 events with hash 0000000000000001",
            ),
            (
                [block(1, 1, &[1, 4]), block(5, 1, &[3])],
                "entry 1 of block 0 is chunk 2 (written) there and chunk 4",
            ),
            (
                [block(1, 1, &[1, 2]), block(5, 1, &[])],
                "entry 0 of block 1 is chunk 3 (read) there and nothing now",
            ),
        ] {
            let how = difference(&base, &other).expect("they differ");
            assert!(how.contains(expected), "{how}");
        }
        let shorter = difference(&base, &base[..1]).expect("they differ");
        assert!(shorter.contains("it has 2 blocks and the program now 1"), "{shorter}");
    }
}
