//! Ways in which a pager and a program can wait for each other for ever. A child that does is ended by an alarm. Most of
//! these situations have more than one way out: a test fails when none is left.

use super::children::{Outcome, run};
use super::patterns::{Kind, Program};
use super::{ENGINES, Settings, settings};
use crate::stats::Stats;

/// The least memory, in MiB, that a program can have by its trace: what the refusal of less says.
fn least(settings: &Settings, program: &Program) -> Option<u64> {
    let settings = Settings { memory: 4 << 20, ..settings.clone() };
    match run(&settings, program, Some(program)) {
        Outcome::Refused(text) if text.contains("allow at least ") => {
            text.split("allow at least ").nth(1)?.split(' ').next()?.parse().ok()
        }
        Outcome::Refused(text) => {
            eprintln!("skipped: {text}");
            None
        }
        _ => panic!("it started"),
    }
}

fn led(stats: &Stats) {
    assert!(stats.mode == "programmed" && stats.warnings.is_empty(), "{stats:?}");
}

/// Frames run out before a batch of evictions is full, and the next fetch waits for one of them: a batch of 64 chunks of a
/// page, and fewer frames than that to run ahead in.
#[test]
fn no_fetch_waits_for_a_batch_that_cannot_fill() {
    for ticks in [true, false] {
        let small = Program { chunks: 400, length: 9000, chunk: 4 << 10, ticks, ..Program::default() };
        for (engine, kind) in ENGINES.into_iter().zip([Kind::Merge, Kind::Random]) {
            let settings = Settings { chunk: 4 << 10, ..settings(engine) };
            let program = Program { kind, ..small };
            let Some(memory) = least(&settings, &program) else { return };
            let settings = Settings { memory: memory << 20, ..settings };
            let Some(stats) = run(&settings, &program, Some(&program)).stats() else { return };
            assert!(stats.frames * 15 / 100 < 64, "a batch does not fit: {stats:?}");
            led(&stats);
        }
    }
}

/// A chunk is held back to learn from its touch where the program is, and that touch never comes: a quarter of those that
/// the trace has. The plan goes on, and keeps no
/// frame for it, of which there are fewer than such chunks.
#[test]
fn no_key_waits_for_a_touch_that_does_not_come() {
    for engine in ENGINES {
        let program = Program { kind: Kind::Sparse, ticks: false, length: 8000, ..Program::default() };
        let trace = Program { kind: Kind::Random, ..program };
        let settings = settings(engine);
        let Some(memory) = least(&settings, &trace) else { return };
        let settings = Settings { memory: memory << 20, ..settings };
        let Some(stats) = run(&settings, &program, Some(&trace)).stats() else { return };
        led(&stats);
        assert!(stats.key_faults > 0, "{stats:?}");
    }
}

/// Nothing but touches tells where the program is, and it touches what is not fetched yet: that moves the plan on.
#[test]
fn no_touch_of_what_is_to_be_fetched_waits_for_the_plan() {
    for engine in ENGINES {
        let program = Program { kind: Kind::Merge, ticks: false, length: 8000, ..Program::default() };
        let settings = settings(engine);
        let Some(memory) = least(&settings, &program) else { return };
        let settings = Settings { memory: memory << 20, ..settings };
        let Some(stats) = run(&settings, &program, Some(&program)).stats() else { return };
        led(&stats);
    }
}
