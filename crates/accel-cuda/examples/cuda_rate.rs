//! Products per second of one party on a GPU, both stages: with vectors that stay on it, and with all of them
//! streamed over PCIe. One JSON object per line.
//!
//! `cargo run --release -p accel-cuda --example cuda_rate --
//! [--gpu 0] [--masked] [--seconds 1] [--max-log 22]`
//!
//! Communication data is what the party sends and receives: 1.5 elements each per product. Every streamed
//! configuration is compared with the CPU first (`correct`); the resident one runs the same kernels.

use accel::conformance::keys;
use accel::{BlockHalf, Cpu, Device, DeviceCommand, FoldStage, MultiplyStage, VectorRing, Vouch};
use accel_cuda::{Cuda, devices};
use kernels::Block;
use serde_json::json;
use std::time::Instant;

/// Elements that a party sends and receives per product.
const ELEMENTS_MOVED: f64 = 3.0;

#[derive(Clone, Copy)]
struct Case {
    ring: VectorRing,
    malicious: bool,
    masked: bool,
}

struct Options {
    gpu: usize,
    masked: bool,
    seconds: f64,
    max_log: u32,
}

fn options() -> Result<Options, String> {
    let mut options = Options { gpu: 0, masked: false, seconds: 1.0, max_log: 22 };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        if name == "--masked" {
            options.masked = true;
            continue;
        }
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        let bad = |e: &dyn std::fmt::Display| format!("{name} {value}: {e}");
        match name.as_str() {
            "--gpu" => options.gpu = value.parse().map_err(|e| bad(&e))?,
            "--seconds" => options.seconds = value.parse().map_err(|e| bad(&e))?,
            "--max-log" => options.max_log = value.parse().map_err(|e| bad(&e))?,
            _ => return Err(format!("{name}: the options are --gpu, --masked, --seconds, --max-log")),
        }
    }
    Ok(options)
}

fn random(label: u64, blocks: usize) -> Vec<Block> {
    let mut out = vec![Block::ZERO; blocks];
    kernels::prg_fill(Block(label.into()), 0, &mut out);
    out
}

/// The vectors of a half of a batch on the host.
struct Batch {
    half: BlockHalf,
    x: [Vec<Block>; 3],
    y: [Vec<Block>; 3],
    /// What arrives: A, and C where this seat receives it.
    arrived: [Vec<Block>; 2],
    out: Results,
}

#[derive(PartialEq, Eq)]
struct Results {
    z: [Vec<Block>; 3],
    a: Vec<Block>,
    c: Vec<Block>,
    digests: [[Block; 2]; 2],
}

impl Batch {
    fn new(half: BlockHalf, blocks: usize) -> Self {
        let [keys, ..] = keys();
        let seat = keys.seat();
        let zeros = |there: bool| vec![Block::ZERO; if there { blocks } else { 0 }];
        Self {
            half,
            x: [1, 2, 3].map(|label| random(label, blocks)),
            y: [4, 5, 6].map(|label| random(label, blocks)),
            arrived: [random(7, blocks), random(8, if half.receives(seat) { blocks } else { 0 })],
            out: Results {
                z: [(); 3].map(|()| zeros(true)),
                a: zeros(true),
                c: zeros(half.sends(seat)),
                digests: [[Block::ZERO; 2]; 2],
            },
        }
    }

    /// Both stages.
    fn run(&mut self, device: &mut dyn Device, case: Case, round: u64) -> Result<(), base::Error> {
        let Case { ring, malicious, masked } = case;
        let Self { half, x, y, arrived, out } = self;
        let (half, [sent, received]) = (*half, &mut out.digests);
        let [z0, z1, z2] = &mut out.z;
        let vouch = if malicious { Vouch::Digest(sent) } else { Vouch::Nothing };
        let [x, y] = [x, y].map(|parts| parts.each_ref().map(|part| &part[..]));
        let (first, z) = (0, [&mut z0[..], &mut z1[..], &mut z2[..]]);
        let (a, c) = (&mut out.a[..], &mut out.c[..]);
        let stage1 = MultiplyStage { ring, round, first, half, terms: 1, x, y, z, a, c, masked, vouch };
        device.run(&mut DeviceCommand::Multiply(stage1))?;
        let digests = malicious.then_some(received);
        let (z, [a, c]) = ([&mut z1[..], &mut z2[..]], arrived.each_ref());
        device.run(&mut DeviceCommand::Fold(FoldStage { ring, round, first, half, z, a, c, masked, digests }))
    }
}

/// Seconds of one call, by as many as fit the time.
fn timed(
    seconds: f64,
    mut call: impl FnMut(u64) -> Result<(), base::Error>,
) -> Result<(f64, u64), base::Error> {
    call(0)?;
    let (start, mut calls) = (Instant::now(), 0);
    while calls < 3 || start.elapsed().as_secs_f64() < seconds {
        calls += 1;
        call(calls)?;
    }
    Ok((start.elapsed().as_secs_f64() / calls as f64, calls))
}

fn print(
    gpu: &str,
    case: Case,
    mode: &str,
    blocks: usize,
    (seconds, calls): (f64, u64),
    correct: Option<bool>,
) {
    let products = (blocks * case.ring.lanes()) as f64;
    let bits = ELEMENTS_MOVED * products * f64::from(case.ring.bits());
    let line = json!({
        "gpu": gpu,
        "mode": mode,
        "bits": case.ring.bits(),
        "security": if case.malicious { "malicious" } else { "semi-honest" },
        "masked": case.masked,
        "batch": blocks * case.ring.lanes(),
        "runs": calls,
        "products_per_s": products / seconds,
        "gbit_per_s": bits / seconds / 1e9,
        "correct": correct,
    });
    println!("{line}");
}

fn measure(options: &Options) -> Result<bool, base::Error> {
    let mut cuda = Cuda::new(options.gpu)?;
    let gpu = cuda.gpu().name.clone();
    let [keys, ..] = keys();
    cuda.configure(keys.clone())?;
    let mut cpu = Cpu::default();
    cpu.configure(keys)?;
    let mut all_correct = true;
    for ring in VectorRing::ALL {
        for malicious in [false, true] {
            let case = Case { ring, malicious, masked: options.masked };
            for log in (12..=options.max_log.min(18)).step_by(2) {
                // A measured run is many rounds, so that waiting for the last counts for little.
                const ROUNDS: usize = 16;
                let mut resident = cuda.resident(ring, 1 << log, case.masked, malicious)?;
                let (seconds, calls) = timed(options.seconds, |_| resident.run(ROUNDS))?;
                print(&gpu, case, "resident", 2 << log, (seconds / ROUNDS as f64, calls), None);
            }
            for log in (12..=options.max_log).step_by(2) {
                let batch = || BlockHalf::BOTH.map(|half| Batch::new(half, 1 << (log - 1)));
                let mut correct = true;
                for (mut mine, mut expected) in batch().into_iter().zip(batch()) {
                    mine.run(&mut cuda, case, 1)?;
                    expected.run(&mut cpu, case, 1)?;
                    correct &= mine.out == expected.out;
                }
                all_correct &= correct;
                let mut halves = batch();
                let run = |round| halves.iter_mut().try_for_each(|half| half.run(&mut cuda, case, round));
                print(&gpu, case, "streaming", 1 << log, timed(options.seconds, run)?, Some(correct));
            }
        }
    }
    Ok(all_correct)
}

fn main() -> std::process::ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(e) => {
            eprintln!("error: {e}");
            return 2.into();
        }
    };
    if let Err(e) = devices() {
        eprintln!("skipped: {e}");
        return 0.into();
    }
    match measure(&options) {
        Ok(true) => 0.into(),
        Ok(false) => {
            eprintln!("error: the GPU does not give the bits of the CPU");
            1.into()
        }
        Err(e) => {
            eprintln!("error: {e}");
            1.into()
        }
    }
}
