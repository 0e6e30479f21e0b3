//! Ways in which a pager and a program could wait for each other for ever. A touch is always served, so where
//! one way out is missing the program goes on by its touches and the plan stands still: that is what the
//! tests find. Each names the way out without which it fails. A child that waits for ever is ended by an
//! alarm.

use super::children::{Outcome, run};
use super::patterns::{Kind, Program};
use super::{ENGINES, ProcessSettings, settings};
use crate::pager::shares;
use crate::plan::{Planner, PlannerAnswer};
use crate::stats::Stats;
use crate::trace::Footer;

/// The least memory, in MiB, that a program can have by its trace: what the refusal of less says.
fn least(settings: &ProcessSettings, program: &Program) -> Option<u64> {
    let settings = ProcessSettings { memory: 4 << 20, ..settings.clone() };
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

/// Runs a program with at most so many frames, but with more than are refused: what the process has beside
/// them varies.
fn tight(settings: &ProcessSettings, program: &Program, frames: u64) -> Option<Stats> {
    let mut settings = ProcessSettings { memory: least(settings, program)? << 20, ..settings.clone() };
    for _ in 0..16 {
        match run(&settings, program, Some(program)) {
            Outcome::Refused(text) if text.contains("is too small") => settings.memory += 24 << 10,
            other => match other.stats()? {
                stats if stats.frames <= frames => return Some(stats),
                stats => settings.memory -= (stats.frames - frames + 8) * settings.chunk as u64,
            },
        }
    }
    panic!("never at most {frames} frames")
}

/// Chunks that the plan has read within so many frames.
fn planned_reads(settings: &ProcessSettings, program: &Program, frames: u64) -> u64 {
    let capacity = shares(frames as usize, settings.chunk).capacity;
    let mut planner = Planner::new(capacity, settings.microset, 0).expect("room for two blocks");
    program.blocks().into_iter().for_each(|block| planner.push(block));
    planner.finish(&Footer::default());
    let mut reads = 0;
    while let PlannerAnswer::Step(step) = planner.next() {
        reads += u64::from(!step.fetch.fresh);
    }
    reads
}

/// Frames run out before a batch of evictions is full: a batch has 64 chunks of a page, and there are fewer
/// frames than that. A fetch that waits for a frame has what is there written (`unblock`). Without that the
/// plan waits until a touch makes room, and touches bring a third more than the plan, up to twice as much.
#[test]
fn no_fetch_waits_for_a_batch_that_cannot_fill() {
    for ticks in [true, false] {
        let small = Program { chunks: 512, length: 5000, chunk: 4 << 10, ticks, ..Program::default() };
        for (engine, kind) in ENGINES.into_iter().zip([Kind::Merge, Kind::Random]) {
            let settings = ProcessSettings { chunk: 4 << 10, ..settings(engine) };
            let program = Program { kind, ..small };
            let Some(stats) = tight(&settings, &program, 56) else { return };
            led(&stats);
            let (reads, planned) =
                (stats.bytes_read / stats.chunk, planned_reads(&settings, &program, stats.frames));
            assert!(reads > 0 && reads < planned * 6 / 5, "{planned} planned: {stats:?}");
        }
    }
}

/// A chunk is held back to learn from its touch where the program is, and that touch never comes: a quarter
/// of those that the trace has. A touch of another one that is to be fetched tells instead
/// (`Schedule::surprised`): without that the plan stands still, and is given up for the touches that it does
/// not foresee.
#[test]
fn no_key_waits_for_a_touch_that_does_not_come() {
    for engine in ENGINES {
        let program = Program { kind: Kind::Sparse, ticks: false, length: 8000, ..Program::default() };
        let trace = Program { kind: Kind::Random, ..program };
        let settings = settings(engine);
        let Some(memory) = least(&settings, &trace) else { return };
        let settings = ProcessSettings { memory: memory << 20, ..settings };
        let Some(stats) = run(&settings, &program, Some(&trace)).stats() else { return };
        led(&stats);
        assert!(stats.key_faults > 0, "{stats:?}");
    }
}

/// Nothing but touches tells where the program is, and it touches what is not fetched yet: that moves the
/// plan on (`Schedule::surprised`). Without that it stands still for ever while the program has nearly every
/// chunk brought by a touch: 7,600 of 8,000, where with it 1,400 to 2,000 waited, beside other builds.
#[test]
fn no_touch_of_what_is_to_be_fetched_waits_for_the_plan() {
    for engine in ENGINES {
        let program = Program { kind: Kind::Merge, ticks: false, length: 8000, ..Program::default() };
        let settings = settings(engine);
        let Some(memory) = least(&settings, &program) else { return };
        let settings = ProcessSettings { memory: memory << 20, ..settings };
        let Some(stats) = run(&settings, &program, Some(&program)).stats() else { return };
        led(&stats);
        assert!(stats.stalls < program.length as u64 * 3 / 4, "the plan stands still: {stats:?}");
    }
}
