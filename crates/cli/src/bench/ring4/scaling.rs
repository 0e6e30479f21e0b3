//! `bench ring4 --scaling`: how much one seat's devices give to the network, by how many of them are behind its queue.
//!
//! Devices alone: both stages of products on random vectors, as long as a long command, with nothing sent; what arrives
//! in stage 2 is what stage 1 gave. So the figure is what the devices could fill, whatever the network is.

use super::seat::{Setting, cpu_seconds, devices};
use super::{how, median};
use crate::args::{Bench, SecurityName};
use crate::{machine, output};
use accel::{Command, Fold, Half, Multiply, Queue, Seat, Vouch, conformance};
use base::{Error, Seed};
use kernels::Block;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Devices behind the queue, at most; as the paper's figure.
const DEVICES: usize = 6;
/// Blocks of a command: every one of so many devices gets its share.
const BLOCKS: usize = 1 << 17;
/// A link that the paper fills.
const LINK_GBIT_PER_S: f64 = 100.0;
/// One run.
const RUN: Duration = Duration::from_millis(200);

/// The JSON of `tacit bench ring4 --scaling --json`.
#[derive(Serialize)]
struct Summary {
    what: &'static str,
    security: SecurityName,
    bits: u32,
    device: &'static str,
    cores: usize,
    repeat: u32,
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
    cpu_ns_per_product: f64,
}

/// Measures and prints.
///
/// # Errors
/// Those of the devices.
pub fn run(args: &Bench, setting: &Setting) -> Result<(), Error> {
    let points = (1..=DEVICES).map(|n| point(setting, n)).collect::<Result<Vec<_>, Error>>()?;
    let filled = points.iter().find(|point| point.gbit_per_s >= LINK_GBIT_PER_S);
    let summary = Summary {
        what: "ring4",
        security: setting.security,
        bits: setting.bits.count(),
        device: setting.device.word(),
        cores: machine::cores().len(),
        repeat: setting.repeat,
        saturated_by: filled.map(|point| point.devices),
        paper_saturated_by: if setting.security == SecurityName::Malicious { 4 } else { 6 },
        by_devices: points,
    };
    if args.json {
        return output::print_json(&summary);
    }
    output::print(&text(&summary, setting))
}

fn point(setting: &Setting, n: usize) -> Result<Point, Error> {
    let mut queue = devices(setting.device, n);
    queue.configure(&conformance::keys()[0])?;
    let mut vectors = Vectors::new();
    vectors.pass(&mut queue, setting)?;
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
    let products = (2 * BLOCKS * setting.ring().lanes()) as f64;
    let seconds = median(seconds);
    // A with both halves, C with one.
    let bits = (3 * BLOCKS * 128) as f64;
    Ok(Point {
        devices: n,
        gbit_per_s: bits / seconds * 1e-9,
        products_per_s: products / seconds,
        cpu_ns_per_product: median(cpu) / products * 1e9,
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
    fn new() -> Self {
        let mut rng = Seed::from_system().into_rng();
        let mut random = || -> Vec<Block> { (0..BLOCKS).map(|_| Block::from_bytes(rng.bytes())).collect() };
        let factors = std::array::from_fn(|_| std::array::from_fn(|_| random()));
        let zero = || vec![Block::ZERO; BLOCKS];
        let digests = [[Block::ZERO; 2]; 2];
        Self { factors, z: std::array::from_fn(|_| zero()), a: zero(), c: zero(), digests, round: 0 }
    }

    /// Both stages of a vector of twice as many blocks, half by half.
    fn pass(&mut self, queue: &mut Queue, setting: &Setting) -> Result<(), Error> {
        let (ring, masked, checked) = (setting.ring(), setting.masked(), setting.settings().checked());
        self.round += 1;
        for half in Half::BOTH {
            let (round, first) = (self.round, half.range(2 * BLOCKS).start as u64);
            let there = |is: bool| if is { BLOCKS } else { 0 };
            let [sent, received] = &mut self.digests;
            let stage_1 = Multiply {
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
            queue.run(&mut Command::Multiply(stage_1))?;
            let [_, z1, z2] = &mut self.z;
            let c = &self.c[..there(half.receives(Seat::ALL[0]))];
            let digests = checked.then_some(received);
            let stage_2 = Fold { ring, round, first, half, z: [z1, z2], a: &self.a, c, masked, digests };
            queue.run(&mut Command::Fold(stage_2))?;
        }
        Ok(())
    }
}

fn text(summary: &Summary, setting: &Setting) -> String {
    let mut lines = vec![format!(
        "{} devices of one seat alone, {} bits, {}; nothing is sent ({})",
        summary.device,
        summary.bits,
        how(setting.security, Some(setting.hash)),
        output::counted(summary.cores as u64, "core")
    )];
    lines.push(format!("{:>8} {:>10} {:>14} {:>9}", "devices", "Gb/s", "products/s", "CPU ns"));
    for point in &summary.by_devices {
        lines.push(format!(
            "{:>8} {:>10.1} {:>14} {:>9.2}",
            point.devices,
            point.gbit_per_s,
            output::scaled(point.products_per_s).trim_end(),
            point.cpu_ns_per_product
        ));
    }
    lines.push(match summary.saturated_by {
        Some(n) => format!("100 Gb/s are filled by {}", output::counted(n as u64, "device")),
        None => format!("100 Gb/s are not filled by {DEVICES} devices on this machine"),
    });
    lines.push(format!(
        "the paper, published: {} accelerators fill them (FPGA at 275 MHz)",
        summary.paper_saturated_by
    ));
    lines.join("\n")
}
