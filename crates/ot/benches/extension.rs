//! Correlated OTs per second of each side of SoftSpoken, without a network: `cargo bench -p ot`.
#![allow(missing_docs, reason = "criterion generates public items")]

use base::{PartyId, Roster, Seed};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernels::Block;
use ot::base_ot::{self, BaseChosen, BasePairs, Context};
use ot::softspoken::{Receiver, Sender};
use std::time::Duration;

const N: usize = 1 << 14;

fn base_ots() -> (BasePairs, BaseChosen) {
    let roster = Roster::new(["a", "b"]);
    let context = || Context::new(&roster, PartyId(1), PartyId(0));
    let rng = |label: &str| Seed::from_bytes([3; 32]).fork(label).into_rng();
    let (chooser, message) = base_ot::Receiver::choose(context(), Block(0x1234_5677), &mut rng("c"));
    let (pairs, reply) = base_ot::send(&context(), &message, &mut rng("s")).expect("honest");
    (pairs, chooser.finish(&reply).expect("honest"))
}

fn extension(c: &mut Criterion) {
    let mut group = c.benchmark_group("softspoken");
    group.throughput(Throughput::Elements(N as u64));
    let choices = vec![0x9e37_79b9_7f4a_7c15; N / 64];
    for k in [1, 2, 4, 8] {
        let (pairs, chosen) = base_ots();
        let (mut receiver, setup) = Receiver::new(pairs, k).expect("valid k");
        let mut sender = Sender::new(&chosen, k, &setup).expect("honest set-up");
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

fn quick() -> Criterion {
    let warm_up = Duration::from_millis(200);
    Criterion::default().warm_up_time(warm_up).measurement_time(Duration::from_millis(500)).sample_size(20)
}

criterion_group! { name = all; config = quick(); targets = extension }
criterion_main!(all);
