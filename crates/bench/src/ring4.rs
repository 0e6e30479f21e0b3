//! `bench ring4`: products of shared vectors among four computing parties, each a process of its own.

mod args;
mod devices;
mod grid;
mod rows;
mod scaling;
mod seat;

pub use args::{DeviceName, Ring4Args};
pub use devices::{card_bytes, open};
pub use seat::SeatTask;

use super::party::PartyJob;
use super::{expect, four, tell};
use crate::names::{SecurityName, TransportName};
use accel_cuda::memory;
use args::{ElementBits, HashName};
use base::Error;
use devices::Hardware;
use page::numbers::{bytes, count, counted, duration, median, scaled};
use seat::{NAMES, SeatMeasurement, SeatRun, SeatSetting};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use terminal::machine;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// Blocks of one vector, blocks of one run (about a second), and dependent products of one run, unless the
/// command line says otherwise or a run is a short one.
const SIZES: [u64; 3] = [1 << 14, 16 << 20, 2_000];
/// The same for a device that is simulated.
const SIMULATED_SIZES: [u64; 3] = [1 << 14, 1 << 16, 500];

/// The JSON of `tacit bench ring4 --json`.
#[derive(Debug, Serialize)]
struct Summary {
    what: &'static str,
    security: SecurityName,
    /// What tags are made of; malicious only.
    hash: Option<HashName>,
    bits: u32,
    device: String,
    /// Of each party.
    devices: usize,
    transport: String,
    /// Of libfabric.
    provider: Option<String>,
    /// Whether messages were hidden from the fourth party.
    masked: bool,
    /// Cores that the four parties shared.
    cores: usize,
    /// Of one run.
    products: u64,
    /// Elements multiplied in one round.
    vector: u64,
    repeat: u32,
    /// Medians over the runs, from here on.
    seconds: f64,
    products_per_s: f64,
    /// Of all four processes.
    cpu_ns_per_product: f64,
    /// Elements that all four send, tags apart.
    bytes_per_product: f64,
    /// Tags that all four send in one round.
    tag_bytes_per_round: u64,
    /// Elements that one party sends: what its device gives to the network.
    gbit_per_s: f64,
    /// Products of one block that wait for each other.
    rounds_per_s: f64,
    /// Of a device that is simulated: then times are those of the simulator, whose own CPU time is not among
    /// these.
    hardware: Option<Hardware>,
    peak_memory_bytes: BTreeMap<&'static str, u64>,
    /// Commands that the CPUs of all four took over from devices that they were too short for.
    cpu_took_over: u64,
    /// Whether every party sent what the price says.
    as_priced: bool,
    /// Whether factors and products that were opened fit, and the bytes are those of the price.
    correct: bool,
    elsewhere: Option<Elsewhere>,
}

/// A figure that others report for the same work.
#[derive(Debug, Serialize)]
struct Elsewhere {
    system: &'static str,
    products_per_s: f64,
    note: &'static str,
}

impl Ring4Args {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        if self.hash.is_some() && self.security == SecurityName::SemiHonest {
            let text = "without checks there are no tags; remove --hash, or use --security malicious";
            return Err(Error::input(text));
        }
        if self.provider.is_some() && self.transport != TransportName::Fabric && !self.all {
            return Err(Error::input("--provider goes with --transport fabric; remove --provider"));
        }
        if let Some(rows) = self.rows {
            return rows::run(self, rows, json);
        }
        if self.scaling {
            return scaling::run(self, json);
        }
        expect(if self.all { grid::run(self, json)? } else { self.one(json)? })
    }

    fn one(&self, json: bool) -> Result<bool, Error> {
        let setting = setting(self)?;
        there(&setting)?;
        let working = Working::on(format!("{} products", count(setting.vector * setting.rounds)));
        let summary = measure(&setting)?;
        drop(working);
        tell(&summary, json, text)?;
        Ok(summary.correct)
    }
}

/// Refuses a device or a transport that this machine has not, before four processes do.
fn there(setting: &SeatSetting) -> Result<(), Error> {
    if setting.device != DeviceName::Cpu {
        devices::open(setting.device, 1, 0, usize::MAX)?;
    }
    setting.plain().map_or(Ok(()), |kind| fabric::available(&kind).map_err(Error::input))
}

/// What the command line asks for.
fn setting(args: &Ring4Args) -> Result<SeatSetting, Error> {
    let Ring4Args { security, bits, device, devices, transport, repeat, .. } = *args;
    let hash = args.hash.unwrap_or(HashName::Keyed);
    let lanes = u64::from(128 / bits.count());
    let [vector, run, chain] = if device == DeviceName::Rtl { SIMULATED_SIZES } else { SIZES };
    let vector = args.vector.unwrap_or(vector * lanes).next_multiple_of(lanes);
    let products = args.products.unwrap_or(run * lanes);
    let vector = vector.min(products.next_multiple_of(lanes));
    if vector > ::ring4::ELEMENTS as u64 {
        return Err(Error::limit("ring4::ELEMENTS", vector, ::ring4::ELEMENTS as u64));
    }
    let rounds = products.div_ceil(vector);
    let devices = usize::from(devices);
    let (chain, sample) = (chain.min(products), u64::from(std::process::id()));
    let provider = args.provider.clone().unwrap_or_else(|| "tcp".to_owned());
    Ok(SeatSetting {
        card_bytes: usize::MAX,
        security,
        hash,
        bits,
        device,
        devices,
        transport,
        provider,
        vector,
        rounds,
        repeat,
        chain,
        sample,
    })
}

/// Bytes of a card's memory that each device may take.
fn part_of_card(setting: &SeatSetting) -> Result<usize, Error> {
    let lanes = u64::from(128 / setting.bits.count());
    // Two factors, a product, and the one before it, until that is dropped.
    let vectors = memory::vector_bytes((4 * setting.vector).div_ceil(lanes) as usize);
    let wanted = [memory::least_bytes(), memory::buffer_bytes()].map(|buffers| buffers + vectors);
    devices::card_bytes(setting.device, (setting.devices, 1), wanted)
}

/// Runs the four parties.
fn measure(setting: &SeatSetting) -> Result<Summary, Error> {
    let setting = &SeatSetting { card_bytes: part_of_card(setting)?, ..setting.clone() };
    let job = |place| PartyJob::Ring4(Box::new(SeatTask { setting: setting.clone(), place }));
    let seats: Vec<SeatMeasurement> = four::measure(NAMES, setting.transport, Duration::ZERO, job)?;
    Ok(summary(setting, machine::cores().len(), &seats))
}

fn summary(setting: &SeatSetting, cores: usize, seats: &[SeatMeasurement]) -> Summary {
    let products = setting.vector * setting.rounds;
    let over = |of: fn(&SeatMeasurement) -> &[SeatRun], pick: fn(f64, &SeatRun) -> f64| {
        let runs = 0..setting.repeat as usize;
        median(runs.map(|run| seats.iter().fold(0.0, |all, seat| pick(all, &of(seat)[run]))))
    };
    let slowest = |of| over(of, |all, run| run.seconds.max(all));
    let seconds = slowest(|seat| &seat.runs);
    let cpu_seconds = over(|seat| &seat.runs, |all, run| all + run.cpu_seconds);
    let price = setting.price();
    let as_priced = seats.iter().zip(&price).all(|(seat, price)| seat.bytes_sent == seat.rounds * price);
    let rounds: u64 = seats[0].rounds;
    let sent: u64 = seats.iter().map(|seat| seat.bytes_sent).sum();
    let tags = setting.tags();
    let bytes_per_product = (sent - rounds * tags) as f64 / (rounds * setting.vector) as f64;
    let products_per_s = products as f64 / seconds;
    Summary {
        what: "ring4",
        security: setting.security,
        hash: (setting.security == SecurityName::Malicious).then_some(setting.hash),
        bits: setting.bits.count(),
        device: setting.device.word(),
        devices: setting.devices,
        transport: setting.transport.word(),
        provider: (setting.transport == TransportName::Fabric).then(|| setting.provider.clone()),
        masked: setting.masked(),
        cores,
        products,
        vector: setting.vector,
        repeat: setting.repeat,
        seconds,
        products_per_s,
        cpu_ns_per_product: cpu_seconds * 1e9 / products as f64,
        bytes_per_product,
        tag_bytes_per_round: tags,
        gbit_per_s: products_per_s * bytes_per_product / seats.len() as f64 * 8e-9,
        rounds_per_s: setting.chain as f64 / slowest(|seat| &seat.chains),
        hardware: hardware(setting, seats),
        peak_memory_bytes: NAMES.into_iter().zip(seats.iter().map(|seat| seat.peak_memory_bytes)).collect(),
        as_priced,
        cpu_took_over: seats.iter().map(|seat| seat.taken_over).sum(),
        // Six elements, whatever the ring: what the design says, beside what the price says.
        correct: as_priced && bytes_per_product == expected(setting) && seats.iter().all(|seat| seat.correct),
        elsewhere: elsewhere(setting),
    }
}

/// What the simulated devices of the slowest seat say of the hardware, if they are simulated.
fn hardware(setting: &SeatSetting, seats: &[SeatMeasurement]) -> Option<Hardware> {
    let cycles =
        seats.iter().filter_map(|seat| seat.cycles).max_by_key(|[one, two]| one.saturating_add(*two))?;
    let products = (setting.vector * setting.rounds * u64::from(setting.repeat)) as f64;
    Some(Hardware::new(cycles, products, expected(setting) * 8.0 / seats.len() as f64))
}

/// Six elements of so many bits.
fn expected(setting: &SeatSetting) -> f64 {
    6.0 * f64::from(setting.bits.count()) / 8.0
}

/// The fastest that is known for four parties on one machine over plain TCP.
fn elsewhere(setting: &SeatSetting) -> Option<Elsewhere> {
    use SecurityName::{Malicious, SemiHonest};
    const REP4: &str = "MP-SPDZ rep4-ring, four processes on two cores over plain TCP";
    const F4: &str = "HPMPC Fantastic Four, checks put off to the end: weaker than what runs here";
    let (system, products_per_s, note) = match (setting.security, setting.bits) {
        (SemiHonest, ElementBits::Z128) => ("MP-SPDZ", 8.66e6, REP4),
        (Malicious, ElementBits::Z128) => ("MP-SPDZ", 3.80e6, REP4),
        (Malicious, ElementBits::Z64) => ("HPMPC", 8.8e6, F4),
        (Malicious, ElementBits::Z2) => ("HPMPC", 588e6, F4),
        (SemiHonest, ElementBits::Z64 | ElementBits::Z2) => return None,
    };
    Some(Elsewhere { system, products_per_s, note })
}

fn text(summary: &Summary) -> String {
    let peak: u64 = summary.peak_memory_bytes.values().sum();
    let mut lines = vec![
        format!(
            "{} of {} bits among four parties, {}, on {}, over {}: {} products/s",
            counted(summary.products, "product"),
            summary.bits,
            how(summary.security, summary.hash),
            summary.device,
            summary.transport,
            scaled(summary.products_per_s)
        ),
        format!(
            "  {} a run (median of {}), vectors of {}; {:.2} CPU ns per product in all, {}",
            duration(summary.seconds),
            summary.repeat,
            count(summary.vector),
            summary.cpu_ns_per_product,
            counted(summary.cores as u64, "core")
        ),
        format!(
            "  {} bytes per product in all, {} of tags per round; each party sends {:.2} Gb/s{}",
            summary.bytes_per_product,
            summary.tag_bytes_per_round,
            summary.gbit_per_s,
            if summary.masked { ", masked" } else { "" }
        ),
        format!("  {} dependent rounds/s", scaled(summary.rounds_per_s)),
        format!("  peak memory of all four {}", bytes(peak)),
    ];
    if summary.cpu_took_over > 0 {
        lines.push(format!(
            "  the CPU took over {}, too short for the device",
            counted(summary.cpu_took_over, "command")
        ));
    }
    if let Some(hardware) = &summary.hardware {
        lines.push(simulated(hardware));
    } else if let Some(Elsewhere { system, products_per_s, note }) = &summary.elsewhere {
        let ratio = summary.products_per_s / products_per_s;
        let (ratio, which) = if ratio < 1.0 { (1.0 / ratio, "as many") } else { (ratio, "fewer") };
        let theirs = scaled(*products_per_s);
        lines.push(format!(
            "  {system}, measured elsewhere: {} products/s, {ratio:.1} times {which} ({note})",
            theirs.trim_end()
        ));
    }
    lines.push(format!("  result {}", if summary.correct { "correct, bytes as priced" } else { "WRONG" }));
    lines.join("\n")
}

/// The cycles of hardware that a simulation counts.
fn simulated(hardware: &Hardware) -> String {
    format!(
        "  all of this is the time of a simulator; the hardware takes {:.3} cycles per product (stage 1 \
         {:.3}, stage 2 {:.3}):\n  at {} MHz, assumed, {:.1} Gb/s per party, {:.1} during stage 1",
        hardware.cycles_per_product,
        hardware.stage_1_cycles_per_product,
        hardware.stage_2_cycles_per_product,
        hardware.assumed_mhz,
        hardware.gbit_per_s,
        hardware.stage_1_gbit_per_s
    )
}

fn how(security: SecurityName, hash: Option<HashName>) -> String {
    match (security, hash) {
        (SecurityName::Malicious, Some(HashName::Blake3)) => "malicious (BLAKE3)".to_owned(),
        (SecurityName::Malicious, _) => "malicious".to_owned(),
        (SecurityName::SemiHonest, _) => "semi-honest".to_owned(),
    }
}
