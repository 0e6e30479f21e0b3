//! `bench ring4 --scaling`: how much one seat's devices give to the network, by how many of them are behind
//! its queue.
//!
//! Devices alone: both stages of products on random vectors, as long as a long command, with nothing sent;
//! what arrives in stage 2 is what stage 1 gave. So the figure is what the devices could fill, whatever the
//! network is. Of devices that are simulated it is what the hardware could at the assumed clock, from the
//! cycles that the simulators count.

use super::Ring4Args;
use super::args::DeviceName;
use super::devices::{self, Hardware};
use super::seat::{SeatSetting, cpu_seconds};
use crate::names::SecurityName;
use accel::{BlockHalf, DeviceCommand, DeviceQueue, FoldStage, MultiplyStage, Seat, Vouch, conformance};
use base::{Error, Seed};
use kernels::Block;
use page::numbers::{counted, median, scaled};
use serde::Serialize;
use std::time::{Duration, Instant};
use terminal::machine;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// Devices behind the queue, at most; as the paper's figure.
const DEVICES: usize = 6;
/// Blocks of a command: every one of so many devices gets its share. Of a simulation, which takes its time,
/// fewer.
const BLOCKS: usize = 1 << 17;
const SIMULATED_BLOCKS: usize = 1 << 14;
/// A link that the paper fills.
const LINK_GBIT_PER_S: f64 = 100.0;
/// One run.
const RUN: Duration = Duration::from_millis(200);

/// The JSON of `tacit bench ring4 --scaling --json`.
#[derive(Serialize)]
struct Summary {
    what: &'static str,
    bits: u32,
    device: String,
    masked: bool,
    cores: usize,
    repeat: u32,
    /// The clock that rates of simulated devices are at.
    assumed_mhz: Option<f64>,
    models: Vec<Model>,
}

/// One security model.
#[derive(Serialize)]
struct Model {
    security: SecurityName,
    by_devices: Vec<Point>,
    /// Devices after which 100 Gb/s are filled; absent: not by as many as were tried.
    saturated_by: Option<usize>,
    /// The paper's accelerators that fill it: an FPGA at 275 MHz.
    paper_saturated_by: usize,
}

/// So many devices.
#[derive(Serialize)]
struct Point {
    devices: usize,
    /// Elements that this seat sends.
    gbit_per_s: f64,
    products_per_s: f64,
    /// Of this process; nothing of hardware that is simulated.
    cpu_ns_per_product: Option<f64>,
    hardware: Option<Hardware>,
}

/// Measures and prints.
pub fn run(args: &Ring4Args, json: bool) -> Result<(), Error> {
    let setting = super::setting(args)?;
    devices::open(setting.device, 1, 0, usize::MAX)?;
    let models = [SecurityName::SemiHonest, SecurityName::Malicious]
        .into_iter()
        .map(|security| Model::measure(&SeatSetting { security, ..setting.clone() }))
        .collect::<Result<Vec<_>, Error>>()?;
    let hardware = models[0].by_devices[0].hardware;
    let summary = Summary {
        what: "ring4",
        bits: setting.bits.count(),
        device: setting.device.word(),
        masked: setting.masked(),
        cores: machine::cores().len(),
        repeat: setting.repeat,
        assumed_mhz: hardware.map(|hardware| hardware.assumed_mhz),
        models,
    };
    crate::tell(&summary, json, text)
}

impl Model {
    fn measure(setting: &SeatSetting) -> Result<Self, Error> {
        let security = setting.security;
        let point = |n: usize| {
            let _working = Working::on(format!("{}: {}", security.word(), counted(n as u64, "device")));
            point(setting, n)
        };
        let by_devices = (1..=DEVICES).map(point).collect::<Result<Vec<_>, Error>>()?;
        let filled = by_devices.iter().find(|point| point.gbit_per_s >= LINK_GBIT_PER_S);
        let saturated_by = filled.map(|point| point.devices);
        let paper_saturated_by = if security == SecurityName::Malicious { 4 } else { 6 };
        Ok(Self { security, by_devices, saturated_by, paper_saturated_by })
    }
}

fn point(setting: &SeatSetting, n: usize) -> Result<Point, Error> {
    let simulated = setting.device == DeviceName::Rtl;
    let blocks = if simulated { SIMULATED_BLOCKS } else { BLOCKS };
    let (queue, cycles) = devices::open(setting.device, n, 0, usize::MAX)?;
    let mut queue = queue.with_least(blocks / DEVICES);
    queue.configure(&conformance::keys()[0])?;
    let mut vectors = Vectors::new(blocks);
    let products = (2 * blocks * setting.ring().lanes()) as f64;
    // A with both halves, C with one.
    let bits = (3 * blocks * 128) as f64;
    vectors.pass(&mut queue, setting)?;
    if let Some(cycles) = cycles.slowest() {
        let hardware = Hardware::new(cycles, products, bits / products);
        let (gbit_per_s, products_per_s) = (hardware.gbit_per_s, hardware.products_per_s);
        let hardware = Some(hardware);
        return Ok(Point { devices: n, gbit_per_s, products_per_s, cpu_ns_per_product: None, hardware });
    }
    let (mut seconds, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..setting.repeat {
        let (start, used, mut passes) = (Instant::now(), cpu_seconds(), 0.0);
        while start.elapsed() < RUN {
            vectors.pass(&mut queue, setting)?;
            passes += 1.0;
        }
        seconds.push(start.elapsed().as_secs_f64() / passes);
        cpu.push((cpu_seconds() - used) / passes);
    }
    let seconds = median(seconds);
    Ok(Point {
        devices: n,
        gbit_per_s: bits / seconds * 1e-9,
        products_per_s: products / seconds,
        cpu_ns_per_product: Some(median(cpu) / products * 1e9),
        hardware: None,
    })
}

/// What the commands work on.
struct Vectors {
    factors: [[Vec<Block>; 3]; 2],
    z: [Vec<Block>; 3],
    a: Vec<Block>,
    c: Vec<Block>,
    digests: [[Block; 2]; 2],
    round: u64,
}

impl Vectors {
    fn new(blocks: usize) -> Self {
        let mut rng = Seed::from_system().into_rng();
        let mut random = || -> Vec<Block> { (0..blocks).map(|_| Block::from_bytes(rng.bytes())).collect() };
        let factors = std::array::from_fn(|_| std::array::from_fn(|_| random()));
        let zero = || vec![Block::ZERO; blocks];
        let digests = [[Block::ZERO; 2]; 2];
        Self { factors, z: std::array::from_fn(|_| zero()), a: zero(), c: zero(), digests, round: 0 }
    }

    /// Both stages of a vector of twice as many blocks, half by half.
    fn pass(&mut self, queue: &mut DeviceQueue, setting: &SeatSetting) -> Result<(), Error> {
        let (ring, masked, checked) = (setting.ring(), setting.masked(), setting.settings().checked());
        let blocks = self.a.len();
        self.round += 1;
        for half in BlockHalf::BOTH {
            let (round, first) = (self.round, half.range(2 * blocks).start as u64);
            let there = |is: bool| if is { blocks } else { 0 };
            let [sent, received] = &mut self.digests;
            let stage_1 = MultiplyStage {
                ring,
                round,
                first,
                half,
                terms: 1,
                x: self.factors[0].each_ref().map(Vec::as_slice),
                y: self.factors[1].each_ref().map(Vec::as_slice),
                z: self.z.each_mut().map(Vec::as_mut_slice),
                a: &mut self.a,
                c: &mut self.c[..there(half.sends(Seat::ALL[0]))],
                masked,
                vouch: if checked { Vouch::Digest(sent) } else { Vouch::Nothing },
            };
            queue.run(&mut DeviceCommand::Multiply(stage_1))?;
            let [_, z1, z2] = &mut self.z;
            let c = &self.c[..there(half.receives(Seat::ALL[0]))];
            let digests = checked.then_some(received);
            let stage_2 = FoldStage { ring, round, first, half, z: [z1, z2], a: &self.a, c, masked, digests };
            queue.run(&mut DeviceCommand::Fold(stage_2))?;
        }
        Ok(())
    }
}

fn text(summary: &Summary) -> String {
    let mut lines = vec![format!(
        "{} devices of one seat alone, {} bits, {}; nothing is sent ({})",
        summary.device,
        summary.bits,
        if summary.masked { "masked" } else { "not masked" },
        counted(summary.cores as u64, "core")
    )];
    if let Some(mhz) = summary.assumed_mhz {
        lines.push(format!(
            "hardware that is simulated: cycles as counted, rates at {mhz} MHz, which is assumed"
        ));
    }
    summary.models.iter().for_each(|model| model.tell(&mut lines));
    lines.join("\n")
}

impl Model {
    fn tell(&self, lines: &mut Vec<String>) {
        let last = if self.by_devices[0].hardware.is_some() { "cycles" } else { "CPU ns" };
        lines.push(format!(
            "{:12} {:>8} {:>10} {:>14} {:>9}",
            self.security.word(),
            "devices",
            "Gb/s",
            "products/s",
            last
        ));
        for point in &self.by_devices {
            let cost = point.cpu_ns_per_product.or(point.hardware.map(|h| h.cycles_per_product));
            lines.push(format!(
                "{:12} {:>8} {:>10.1} {:>14} {:>9.3}",
                "",
                point.devices,
                point.gbit_per_s,
                scaled(point.products_per_s),
                cost.unwrap_or_default()
            ));
        }
        let filled = match self.saturated_by {
            Some(n) => format!("{} fill 100 Gb/s", counted(n as u64, "device")),
            None => format!("{DEVICES} devices on this machine do not fill 100 Gb/s"),
        };
        lines.push(format!(
            "{filled}; the paper, published: {} accelerators do (FPGA at 275 MHz)",
            self.paper_saturated_by
        ));
    }
}
