//! Correlated OTs per second of each side of SoftSpoken and Ferret, without a network: `cargo bench -p ot`.
#![allow(missing_docs, reason = "criterion generates public items")]

use base::{PartyId, Roster, Seed};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernels::Block;
use ot::base_ot::{self, BaseChosen, BasePairs, PairContext};
use ot::ferret::{self, LpnExtension};
use ot::softspoken::{SoftSpokenReceiver, SoftSpokenSender};
use std::time::Duration;

const N: usize = 1 << 14;

fn base_ots() -> (BasePairs, BaseChosen) {
    let roster = Roster::new(["a", "b"]);
    let context = || PairContext::new(&roster, PartyId(1), PartyId(0));
    let rng = |label: &str| Seed::from_bytes([3; 32]).fork(label).into_rng();
    let (chooser, message) = base_ot::BaseReceiver::choose(context(), Block(0x1234_5677), &mut rng("c"));
    let (pairs, reply) = base_ot::send(&context(), &message, &mut rng("s")).expect("honest");
    (pairs, chooser.finish(&reply).expect("honest"))
}

fn extension(c: &mut Criterion) {
    let mut group = c.benchmark_group("softspoken");
    group.throughput(Throughput::Elements(N as u64));
    let choices = vec![0x9e37_79b9_7f4a_7c15; N / 64];
    for k in [1, 2, 4, 8] {
        let (pairs, chosen) = base_ots();
        let (mut receiver, setup) = SoftSpokenReceiver::new(pairs, k).expect("valid k");
        let mut sender = SoftSpokenSender::new(&chosen, k, &setup).expect("honest set-up");
        let (mut out, mut message) = (Vec::with_capacity(N), Vec::new());
        group.bench_function(BenchmarkId::new("receiver", k), |b| {
            b.iter(|| {
                out.clear();
                message.clear();
                receiver.prepare(&choices, N, &mut out, &mut message).expect("within limits");
            });
        });
        group.bench_function(BenchmarkId::new("sender", k), |b| {
            b.iter(|| {
                out.clear();
                sender.absorb(N, &message, &mut out).expect("honest message");
            });
        });
    }
    group.finish();
    c.bench_function("base OTs, both sides", |b| b.iter(base_ots));
}

/// Inputs of Ferret, as the definition of correlated OT has them.
fn inputs(n: usize, delta: Block) -> (Vec<Block>, Vec<Block>, Vec<u64>) {
    let (mut q, mut choices) = (vec![Block::ZERO; n], vec![Block::ZERO; n.div_ceil(128)]);
    kernels::prg_fill(Block(1), 0, &mut q);
    kernels::prg_fill(Block(2), 0, &mut choices);
    let choices: Vec<u64> = choices.iter().flat_map(|c| [c.0 as u64, (c.0 >> 64) as u64]).collect();
    let t = (0..n).map(|i| q[i] ^ delta.when(kernels::bit(&choices, i))).collect();
    (q, t, choices)
}

/// Takes a group of 2^14 OTs of either set, both sides.
fn silent(c: &mut Criterion) {
    const GROUP: usize = 1 << 14;
    let mut group = c.benchmark_group("ferret");
    group.throughput(Throughput::Elements(GROUP as u64));
    let delta = Block(0x1234_5677);
    for (set, expected) in [("small", 0), ("large", u64::MAX)] {
        let (q, t, choices) = inputs(LpnExtension::first(expected).inputs(), delta);
        let rng = Seed::from_bytes([4; 32]).into_rng();
        let mut sender =
            ferret::FerretSenderCore::new(Block(5), expected, delta, q, rng).expect("enough inputs");
        let mut receiver =
            ferret::FerretReceiverCore::new(Block(5), expected, t, &choices).expect("enough inputs");
        let mut messages = Vec::new();
        let mut out = Vec::with_capacity(2 * GROUP);
        group.bench_function(BenchmarkId::new("sender", set), |b| {
            b.iter(|| {
                out.clear();
                while sender.ready() < GROUP {
                    let mut message = Vec::new();
                    sender.step(&mut message);
                    messages.push(message);
                }
                sender.take(GROUP, &mut out);
            });
        });
        let mut waiting = messages.into_iter();
        group.bench_function(BenchmarkId::new("receiver", set), |b| {
            b.iter(|| {
                out.clear();
                while receiver.ready() < GROUP {
                    let message = waiting.next().unwrap_or_else(|| vec![0; receiver.message_bytes()]);
                    receiver.step(&message).expect("of the right length");
                }
                receiver.take(GROUP, &mut out);
            });
        });
    }
    group.finish();
}

fn quick() -> Criterion {
    let warm_up = Duration::from_millis(200);
    Criterion::default().warm_up_time(warm_up).measurement_time(Duration::from_millis(500)).sample_size(20)
}

criterion_group! { name = all; config = quick(); targets = extension, silent }
criterion_main!(all);
