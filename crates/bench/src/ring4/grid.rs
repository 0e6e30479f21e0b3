//! `bench ring4 --all`: every setting that this machine can run, in one table.
//!
//! The CPU over every transport; other devices over shared memory, where the transport is in the way the
//! least.

use super::args::{DeviceName, ElementBits};
use super::seat::SeatSetting;
use super::{Ring4Args, Summary, how, measure, setting, there};
use crate::names::{SecurityName, TransportName};
use base::Error;
use page::numbers::{counted, duration, scaled};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use terminal::output;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

const SECURITY: [SecurityName; 2] = [SecurityName::SemiHonest, SecurityName::Malicious];
const BITS: [ElementBits; 3] = [ElementBits::Z128, ElementBits::Z64, ElementBits::Z2];
/// What is measured with what.
const PLACES: [(DeviceName, TransportName); 6] = [
    (DeviceName::Cpu, TransportName::Tcp),
    (DeviceName::Cpu, TransportName::Tls),
    (DeviceName::Cpu, TransportName::Shm),
    (DeviceName::Cpu, TransportName::Fabric),
    (DeviceName::Cuda, TransportName::Shm),
    (DeviceName::Rtl, TransportName::Shm),
];

const NOTE: &str = "\
    CPU ns and B: of all four per product; Gb/s: sent by each; elsewhere: MP-SPDZ (128 bits) and HPMPC (64, \
    1; checks put\n\
    off to the end), as measured elsewhere, four processes over plain TCP. A simulator's times are no rates \
    of hardware: those\n\
    stand behind them, at an assumed 275 MHz";

/// The JSON of `tacit bench ring4 --all --json`.
#[derive(Serialize)]
struct Table {
    what: &'static str,
    settings: Vec<Summary>,
    left_out: Vec<LeftOut>,
    correct: bool,
}

/// What this machine cannot run.
#[derive(Serialize)]
struct LeftOut {
    device: String,
    transport: String,
    why: String,
}

/// Measures and prints; whether all was correct.
pub fn run(args: &Ring4Args, json: bool) -> Result<bool, Error> {
    let (mut wanted, mut left_out) = (Vec::new(), Vec::new());
    for (device, transport) in PLACES {
        let here = Ring4Args { device, transport, ..args.clone() };
        match there(&setting(&here)?) {
            Ok(()) => wanted.push(here),
            Err(why) => {
                let (device, transport) = (device.word(), transport.word());
                left_out.push(LeftOut { device, transport, why: why.to_string() });
            }
        }
    }
    let each = |here: &Ring4Args| {
        let models = SECURITY.into_iter().flat_map(|security| BITS.map(|bits| (security, bits)));
        models
            .map(|(security, bits)| setting(&Ring4Args { security, bits, ..here.clone() }))
            .collect::<Vec<_>>()
    };
    let wanted = wanted.iter().flat_map(each).collect::<Result<Vec<_>, Error>>()?;
    let settings = all(&wanted, json)?;
    let correct = settings.iter().all(|summary| summary.correct);
    if json {
        output::print_json(&Table { what: "ring4", settings, left_out, correct })?;
    } else {
        left_out.iter().try_for_each(|it| output::print(&missing(it)))?;
        output::print(NOTE)?;
    }
    Ok(correct)
}

/// One setting after the other, with a word before each of how long the rest will take.
fn all(wanted: &[SeatSetting], json: bool) -> Result<Vec<Summary>, Error> {
    let expected: f64 = wanted.iter().map(seconds).sum();
    let settings = counted(wanted.len() as u64, "setting");
    // Nobody needs to hear it where nobody listens.
    let _ = writeln!(std::io::stderr(), "{settings}, about {} in all", duration(expected));
    if !json {
        output::print(&heading())?;
    }
    let (start, mut settings, mut done) = (Instant::now(), Vec::new(), 0.0);
    for setting in wanted {
        // As fast as it went until now, in terms of what was expected.
        let pace = if settings.is_empty() { 1.0 } else { start.elapsed().as_secs_f64() / done };
        let left = duration((expected - done) * pace);
        let working = Working::on(format!("{} of {}; about {left} left", settings.len() + 1, wanted.len()));
        let summary = measure(setting)?;
        drop(working);
        if !json {
            output::print(&row(&summary))?;
        }
        settings.push(summary);
        done += seconds(setting);
    }
    Ok(settings)
}

/// What a setting takes, roughly, on two cores: to start and meet, for the products of a block, and for one
/// round.
fn seconds(setting: &SeatSetting) -> f64 {
    let (meet, block, round) = match setting.device {
        DeviceName::Cpu => (1.0, 6e-8, 6e-5),
        DeviceName::Cuda => (4.0, 6e-8, 2e-4),
        DeviceName::Rtl => (1.0, 2e-5, 8e-4),
    };
    let blocks = (setting.vector * setting.rounds).div_ceil(setting.ring().lanes() as u64);
    meet + f64::from(setting.repeat) * (blocks as f64 * block + setting.chain as f64 * round)
}

fn missing(it: &LeftOut) -> String {
    format!("left out: {} over {}: {}", it.device, it.transport, it.why)
}

fn heading() -> String {
    format!(
        "{:19} {:6} {:9} {:>4}  {:>12} {:>9} {:>8} {:>7} {:>9}  {:>12}",
        "security",
        "device",
        "transport",
        "bits",
        "products/s",
        "CPU ns",
        "B",
        "Gb/s",
        "rounds/s",
        "elsewhere"
    )
}

fn row(summary: &Summary) -> String {
    let theirs = match (&summary.hardware, &summary.elsewhere) {
        (Some(hardware), _) => format!("  simulated; hardware: {:.1} Gb/s", hardware.gbit_per_s),
        (None, Some(elsewhere)) => format!("  {:>12}", scaled(elsewhere.products_per_s)),
        (None, None) => String::new(),
    };
    format!(
        "{:19} {:6} {:9} {:>4}  {:>12} {:>9.2} {:>8} {:>7.2} {:>9}{theirs}{}",
        how(summary.security, summary.hash),
        summary.device,
        summary.transport,
        summary.bits,
        scaled(summary.products_per_s),
        summary.cpu_ns_per_product,
        summary.bytes_per_product,
        summary.gbit_per_s,
        scaled(summary.rounds_per_s),
        if summary.correct { "" } else { "  WRONG" }
    )
}
