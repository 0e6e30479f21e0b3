//! A program for the tests of `osprey run`: sweeps over memory of the region, and misbehaves in the way asked
//! for.
//!
//! `subject MIB [BEHAVIOUR [ARGUMENT]]` prints one line: the sum over what it computed, which it also checks.

use osprey::OspVec;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// Words of 8 bytes per piece of memory: 1 MiB.
const PIECE: usize = (1 << 20) / 8;
const SWEEPS: u64 = 3;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|text| text.parse::<usize>().ok());
    let pieces = number(0).unwrap_or(1);
    let behaviour = args.get(1).map_or("", String::as_str);
    let argument = args.get(2).map_or("", String::as_str);
    let speculating = osprey::speculating();
    let order: Vec<usize> = match behaviour {
        "random" => shuffled(pieces),
        _ => (0..pieces).collect(),
    };
    let mut extra = Vec::new();
    match behaviour {
        "crash" if speculating => {
            eprintln!("the subject crashes on purpose");
            std::process::abort();
        }
        "hang" if speculating => std::thread::sleep(Duration::from_secs(3600)),
        "secret" => {
            // Allocations that depend on what differs from pass to pass.
            for size in shuffled(64) {
                extra.push(OspVec::<u64>::zeroed(64 + 8 * size));
            }
        }
        "file" => std::fs::write(argument, if speculating { "speculated" } else { "real" }).expect("written"),
        "spawn" => {
            let mut sleeper = Command::new("sleep");
            sleeper.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            drop(sleeper.spawn().expect("sleep"));
        }
        "child" => {
            // It links the runtime, too, and ends before this process.
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            let ended = child.arg("2").stdout(Stdio::null()).status();
            assert!(ended.expect("a child").success());
        }
        "connect" => {
            let connected = std::net::TcpStream::connect(argument).is_ok();
            assert_eq!(connected, !speculating, "only the real pass has a network");
        }
        _ => {}
    }
    let input = if behaviour == "stdin" { read_input() } else { 0 };
    let heap = number(2).filter(|_| behaviour == "grow" && !speculating).unwrap_or(0);
    let pace = [[behaviour, argument].contains(&"slow"), behaviour != "still"];
    let sweeps = number(2).filter(|_| behaviour == "sweeps").map_or(SWEEPS, |sweeps| sweeps as u64);
    let sum = sweep(&order, sweeps, pace, heap << 20).wrapping_add(input);
    drop(extra);
    println!("{sum}");
    if speculating || sum == expected(pieces, sweeps).wrapping_add(input) {
        ExitCode::from(u8::try_from(number(2).filter(|_| behaviour == "exit").unwrap_or(0)).unwrap_or(0))
    } else {
        ExitCode::from(99)
    }
}

/// Writes and reads everything several times; `heap` bytes of ordinary memory are filled at once when all was
/// touched.
fn sweep(order: &[usize], sweeps: u64, [slow, ticks]: [bool; 2], heap: usize) -> u64 {
    let mut memory: Vec<OspVec<u64>> = order.iter().map(|_| OspVec::zeroed(PIECE)).collect();
    osprey::mark("start");
    let mut sum = 0u64;
    let mut grown = Vec::new();
    for round in 0..sweeps {
        if round == 1 {
            grown = vec![1u8; heap];
        }
        for &piece in order {
            for (at, word) in memory[piece].iter_mut().enumerate() {
                *word = word.wrapping_mul(3).wrapping_add((piece * PIECE + at) as u64 + round);
            }
            sum = sum.wrapping_add(memory[piece].iter().fold(0, |sum: u64, word| sum.wrapping_add(*word)));
            if ticks {
                osprey::tick();
            }
            if slow {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
    osprey::mark("stop");
    assert!(grown.iter().all(|byte| *byte == 1), "what was allocated beside the region is as it was");
    sum
}

/// What [`sweep`] gives, in ordinary memory. The order does not matter.
fn expected(pieces: usize, sweeps: u64) -> u64 {
    let mut sum = 0u64;
    for index in 0..(pieces * PIECE) as u64 {
        let mut word = 0u64;
        for round in 0..sweeps {
            word = word.wrapping_mul(3).wrapping_add(index + round);
            sum = sum.wrapping_add(word);
        }
    }
    sum
}

/// 0..n in an order that is another in every process.
fn shuffled(n: usize) -> Vec<usize> {
    let mut seed = [0u8; 8];
    std::fs::File::open("/dev/urandom").expect("random").read_exact(&mut seed).expect("bytes");
    let mut state = u64::from_le_bytes(seed) | 1;
    let mut order: Vec<usize> = (0..n).collect();
    for at in (1..n).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        order.swap(at, (state % (at as u64 + 1)) as usize);
    }
    order
}

/// All of standard input, in memory of the region as long as it.
fn read_input() -> u64 {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).expect("read");
    let kept: OspVec<u8> = OspVec::zeroed(bytes.len().max(1));
    drop(kept);
    let sum = bytes.iter().map(|byte| u64::from(*byte)).sum();
    writeln!(std::io::stderr(), "read {} bytes", bytes.len()).expect("standard error");
    sum
}
