#![allow(missing_docs, reason = "criterion generates public items")]
//! Both stages of a product at one party: what an element costs of its time, on the CPU device and in the
//! naive way.
//!
//! `cargo bench -p accel`. An element of the throughput is one product; both halves of a vector are computed,
//! so half of the messages C are sent and half are vouched for, as in a session. `semi-honest` vouches for
//! nothing.

use accel::conformance::keys;
use accel::{BlockHalf, Cpu, Device, DeviceCommand, FoldStage, MultiplyStage, VectorRing, Vouch};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernels::Block;
use std::time::Duration;

mod naive;

/// Blocks of one half: both halves of all vectors fit the second-level cache.
const HALF: usize = 2048;
/// Blocks of one half of vectors that do not.
const LARGE: usize = 1 << 18;

#[derive(Clone, Copy)]
struct Setting {
    ring: VectorRing,
    terms: usize,
    malicious: bool,
    masked: bool,
}

struct Party {
    device: Box<dyn Device>,
    /// Factors, results, messages out, messages in.
    x: [Vec<Block>; 3],
    y: [Vec<Block>; 3],
    z: [Vec<Block>; 3],
    sent: [Vec<Block>; 2],
    received: [Vec<Block>; 2],
    digests: [Block; 4],
}

impl Party {
    fn new(mut device: Box<dyn Device>, blocks: usize, terms: usize) -> Self {
        let [keys, ..] = keys();
        device.configure(keys).expect("a device of this process");
        let vector = |label: u128, n: usize| {
            let mut out = vec![Block::ZERO; n];
            kernels::prg_fill(Block(label), 0, &mut out);
            out
        };
        let parts = |label: u128, n| [0, 1, 2].map(|k| vector(label + k, n));
        let pair = |label: u128| [0, 1].map(|k| vector(label + k, blocks));
        Self {
            device,
            x: parts(1, blocks * terms),
            y: parts(4, blocks * terms),
            z: parts(7, blocks),
            sent: pair(10),
            received: pair(12),
            digests: [Block::ZERO; 4],
        }
    }

    /// Both stages of one half.
    fn product(&mut self, s: Setting, half: BlockHalf) {
        let (seat, n) = (accel::Seat::ALL[0], self.z[0].len());
        let [digest_a, digest_c, digest_from_a, digest_from_c] = self.digests;
        let (mut vouched, mut received) = ([digest_a, digest_c], [digest_from_a, digest_from_c]);
        let Setting { ring, terms, malicious, masked } = s;
        let [z0, z1, z2] = &mut self.z;
        let [a, c] = &mut self.sent;
        let multiply = MultiplyStage {
            ring,
            round: 1,
            first: 0,
            half,
            terms,
            x: self.x.each_ref().map(|part| &**part),
            y: self.y.each_ref().map(|part| &**part),
            z: [z0, z1, z2],
            a,
            c: &mut c[..if half.sends(seat) { n } else { 0 }],
            masked,
            vouch: if malicious { Vouch::Digest(&mut vouched) } else { Vouch::Nothing },
        };
        self.device.run(&mut DeviceCommand::Multiply(multiply)).expect("slices that fit");
        let [_, z1, z2] = &mut self.z;
        let [a, c] = &self.received;
        let fold = FoldStage {
            ring,
            round: 1,
            first: 0,
            half,
            z: [z1, z2],
            a,
            c: &c[..if half.receives(seat) { n } else { 0 }],
            masked,
            digests: malicious.then_some(&mut received),
        };
        self.device.run(&mut DeviceCommand::Fold(fold)).expect("slices that fit");
        self.digests = [vouched[0], vouched[1], received[0], received[1]];
    }
}

fn device(name: &str) -> Box<dyn Device> {
    if name == "cpu" { Box::new(Cpu::default()) } else { Box::new(naive::Naive::default()) }
}

fn settings(ring: VectorRing, terms: usize) -> impl Iterator<Item = (String, Setting)> {
    [(false, false), (false, true), (true, false), (true, true)].into_iter().map(
        move |(malicious, masked)| {
            let security = if malicious { "malicious" } else { "semi-honest" };
            let name = format!("{security}{}", if masked { ", masked" } else { "" });
            (name, Setting { ring, terms, malicious, masked })
        },
    )
}

fn measure(c: &mut Criterion, what: &str, blocks: usize, terms: usize, names: &[&str]) {
    for ring in VectorRing::ALL {
        let mut group = c.benchmark_group(format!("{what} over {ring:?}"));
        group.throughput(Throughput::Elements((2 * blocks * ring.lanes()) as u64));
        for (setting, s) in settings(ring, terms) {
            for name in names {
                let mut party = Party::new(device(name), blocks, terms);
                group.bench_function(BenchmarkId::new(*name, &setting), |b| {
                    b.iter(|| BlockHalf::BOTH.into_iter().for_each(|half| party.product(s, half)));
                });
            }
        }
        group.finish();
    }
}

fn products(c: &mut Criterion) {
    measure(c, "products", HALF, 1, &["cpu", "naive"]);
}

fn from_memory(c: &mut Criterion) {
    measure(c, "products from memory", LARGE, 1, &["cpu"]);
}

fn dot_products(c: &mut Criterion) {
    measure(c, "dot products of 16 terms", HALF / 8, 16, &["cpu"]);
}

criterion_group! {
    name = stages;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300));
    targets = products, dot_products, from_memory
}
criterion_main!(stages);
