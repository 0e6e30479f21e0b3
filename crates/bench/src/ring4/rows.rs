//! `bench ring4 --rows`: rows of a lift study among four parties, and where the time of a lane goes.

use super::args::{DeviceName, Ring4Args};
use super::{expect, tell};
use crate::engines::{EngineTask, NAMES, RowsMeasurement, RowsSetting};
use crate::four;
use crate::names::{SecurityName, TransportName};
use crate::party::PartyJob;
use crate::rows::lift_correct;
use ::ring4::RowPhase;
use accel_cuda::memory;
use base::Error;
use engine::PreparedRows as _;
use page::numbers::{bytes, count, counted, duration, scaled};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use terminal::machine;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// The JSON of `tacit bench ring4 --rows N --json`.
#[derive(Debug, Serialize)]
struct RowsSummary {
    what: &'static str,
    security: SecurityName,
    device: String,
    transport: String,
    /// Cores that the four parties shared.
    cores: usize,
    rows: u64,
    /// Ranges computed at once, each over connections of its own.
    shards: u32,
    repeat: u32,
    /// Of the median run, from here on; after everybody has met.
    seconds: f64,
    rows_per_s: f64,
    /// Of all four processes.
    cpu_us_per_row: f64,
    bytes_per_row: f64,
    /// Seconds of a lane by phase, on average over lanes and parties.
    phases: BTreeMap<&'static str, f64>,
    peak_memory_bytes: u64,
    /// Commands that the devices of all four ran, operations that were handed over to their memory, and
    /// commands that the CPUs took over.
    device_commands: u64,
    handed_over: u64,
    cpu_took_over: u64,
    /// Whether every party sent what the price says.
    as_priced: bool,
    /// Whether the totals are those of the study's definition, and the bytes those of the price.
    correct: bool,
}

/// Measures and prints.
pub fn run(args: &Ring4Args, rows: u64, json: bool) -> Result<(), Error> {
    if args.transport == TransportName::Tcp {
        return Err(Error::input(
            "--rows agrees on keys as a study does, which plain TCP does not hide: use --transport tls, shm \
             or fabric",
        ));
    }
    let mut setting = RowsSetting {
        security: args.security,
        rows,
        lanes: u32::from(args.shards),
        device: args.device,
        transport: args.transport,
        provider: args.provider.clone().unwrap_or_else(|| "tcp".to_owned()),
        card_bytes: usize::MAX,
    };
    let vectors = setting.stage()?.device_blocks(memory::least_handed());
    let wanted = [memory::least_bytes(), memory::buffer_bytes() + memory::vector_bytes(vectors)];
    setting.card_bytes = super::card_bytes(args.device, (1, usize::from(args.shards)), wanted)?;
    if setting.device != DeviceName::Cpu {
        super::open(setting.device, 1, 0, usize::MAX)?;
    }
    let mut runs = Vec::new();
    for _ in 0..args.repeat {
        let working = Working::on(format!("{} rows", count(rows)));
        let job = |place| PartyJob::Servers(Box::new(EngineTask { setting: setting.clone(), place }));
        runs.push(four::measure::<RowsMeasurement>(NAMES, setting.transport, Duration::ZERO, job)?);
        drop(working);
    }
    let summary = summary(&setting, args.repeat, &runs)?;
    tell(&summary, json, text)?;
    expect(summary.correct)
}

/// After everybody has met, of the slowest.
fn seconds(run: &[RowsMeasurement]) -> f64 {
    run.iter().fold(0.0, |most: f64, one| (one.party.seconds - one.party.meeting_seconds).max(most))
}

fn summary(setting: &RowsSetting, repeat: u32, runs: &[Vec<RowsMeasurement>]) -> Result<RowsSummary, Error> {
    let mut by_time: Vec<&Vec<RowsMeasurement>> = runs.iter().collect();
    by_time.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)));
    let run = by_time[by_time.len() / 2];
    let stage = setting.stage()?;
    let priced =
        |party: usize| -> u64 { setting.ranges().map(|rows| stage.price(rows).cost.sent[party]).sum() };
    let (mut as_priced, mut correct) = (true, true);
    for run in runs {
        let sent = run.iter().map(|one| one.party.bytes_sent).enumerate();
        as_priced &= sent.into_iter().all(|(party, bytes)| bytes == priced(party));
        let parties: Vec<_> = run.iter().map(|one| one.party.clone()).collect();
        correct &= lift_correct(setting.rows, &parties)?;
    }
    let (seconds, rows) = (seconds(run), setting.rows as f64);
    let all = |of: fn(&RowsMeasurement) -> f64| run.iter().map(of).sum::<f64>();
    let lanes = (run.len() * setting.lanes as usize) as f64;
    let did = |at: usize| run.iter().map(|one| one.device[at]).sum();
    let phase = |(at, phase): (usize, RowPhase)| {
        (phase.name(), run.iter().map(|one| one.phases[at]).sum::<f64>() / lanes)
    };
    Ok(RowsSummary {
        what: "ring4-rows",
        security: setting.security,
        device: setting.device.word(),
        transport: setting.transport.word(),
        cores: machine::cores().len(),
        rows: setting.rows,
        shards: setting.lanes,
        repeat,
        seconds,
        rows_per_s: rows / seconds,
        cpu_us_per_row: all(|one| one.party.cpu_seconds) * 1e6 / rows,
        bytes_per_row: all(|one| one.party.bytes_sent as f64) / rows,
        phases: RowPhase::ALL.into_iter().enumerate().map(phase).collect(),
        peak_memory_bytes: run.iter().map(|one| one.party.peak_memory_bytes).sum(),
        device_commands: did(0),
        handed_over: did(1),
        cpu_took_over: did(2),
        as_priced,
        correct: as_priced && correct,
    })
}

fn text(summary: &RowsSummary) -> String {
    let phases = RowPhase::ALL.map(|phase| {
        let of = summary.phases.get(phase.name()).copied().unwrap_or_default();
        format!("{} {}", phase.name(), duration(of))
    });
    let mut lines = vec![
        format!(
            "{} of a lift study among four parties, {}, on {}, over {}, {} at once: {} rows/s",
            counted(summary.rows, "row"),
            summary.security.word(),
            summary.device,
            summary.transport,
            counted(summary.shards.into(), "range"),
            scaled(summary.rows_per_s).trim_end()
        ),
        format!(
            "  {} a run (median of {}); {:.2} CPU us per row in all, {}; {:.0} bytes per row",
            duration(summary.seconds),
            summary.repeat,
            summary.cpu_us_per_row,
            counted(summary.cores as u64, "core"),
            summary.bytes_per_row
        ),
        format!("  of each range, waiting among it: {}", phases.join(", ")),
        format!("  peak memory of all four {}", bytes(summary.peak_memory_bytes)),
    ];
    if summary.cpu_took_over > 0 {
        lines.push(format!(
            "  the devices ran {} and took over {} on the host's vectors; the CPU ran {}, too short for them",
            counted(summary.device_commands, "command"),
            counted(summary.handed_over, "operation"),
            counted(summary.cpu_took_over, "command")
        ));
    }
    lines.push(format!("  result {}", if summary.correct { "correct, bytes as priced" } else { "WRONG" }));
    lines.join("\n")
}
