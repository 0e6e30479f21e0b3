#![allow(missing_docs, reason = "criterion generates public items")]
//! Kernels side by side on every backend, beside the two-call fixed-key hash that older garblers use.
//!
//! `cargo bench -p kernels`

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kernels::*;
use std::hint::black_box;
use std::time::Duration;

const LANES: usize = 512;

fn blocks(n: usize, seed: u64) -> Vec<Block> {
    let mut out = vec![Block::ZERO; n];
    prg_fill(Block(u128::from(seed)), 0, &mut out);
    out
}

/// TMMO: pi(pi(x) xor t) xor pi(x) with one fixed key; twice the cipher calls of the tweaked hash.
fn two_call(pi: &Aes128, tweak: Block, x: &[Block], out: &mut [Block]) {
    let mut inner = [Block::ZERO; LANES];
    let inner = &mut inner[..x.len()];
    inner.copy_from_slice(x);
    pi.encrypt(inner);
    out.iter_mut().zip(inner.iter()).for_each(|(o, x)| *o = *x ^ tweak);
    pi.encrypt(out);
    xor_into(out, inner);
}

fn hashes(c: &mut Criterion) {
    let mut group = c.benchmark_group("hash");
    group.throughput(Throughput::Elements(LANES as u64));
    let (x, mut out) = (blocks(LANES, 1), blocks(LANES, 2));
    for backend in InstructionSet::available() {
        let hash = TweakedHash::on(backend, Block(7));
        group.bench_function(BenchmarkId::new("tweaked", format!("{backend:?}")), |b| {
            b.iter(|| hash.hash(Block(9), black_box(&x), &mut out));
        });
        let pi = Aes128::on(backend, Block(7));
        group.bench_function(BenchmarkId::new("two-call", format!("{backend:?}")), |b| {
            b.iter(|| two_call(&pi, Block(9), black_box(&x), &mut out));
        });
    }
    group.finish();
}

fn gates(c: &mut Criterion) {
    let mut group = c.benchmark_group("and");
    group.throughput(Throughput::Elements(LANES as u64));
    let (a, b, delta) = (blocks(LANES, 1), blocks(LANES, 2), Block(0x55 << 80 | 1));
    let (mut out, mut table) = (blocks(LANES, 3), blocks(2 * LANES, 4));
    let bits = vec![0x9e37_79b9_7f4a_7c15; LANES / 64];
    for backend in InstructionSet::available() {
        let hash = TweakedHash::on(backend, Block(7));
        let id = |what| BenchmarkId::new(what, format!("{backend:?}"));
        group.bench_function(id("garble"), |m| {
            m.iter(|| {
                garble_and(&hash, Block(2), Block(3), delta, black_box(&a), &b, &mut out, &mut table);
            });
        });
        group.bench_function(id("evaluate"), |m| {
            m.iter(|| eval_and(&hash, Block(2), Block(3), black_box(&a), &b, &mut out, &table));
        });
        let half = &mut table[..LANES];
        group.bench_function(id("garbler-known"), |m| {
            m.iter(|| {
                garble_and_garbler_known(&hash, Block(2), delta, &bits, black_box(&b), &mut out, half);
            });
        });
        group.bench_function(id("evaluator-known"), |m| {
            m.iter(|| garble_and_evaluator_known(&hash, Block(2), delta, &a, black_box(&b), &mut out, half));
        });
    }
    group.finish();
}

/// The steps of a product among four parties, on blocks in the first-level cache.
fn ring(c: &mut Criterion) {
    const PASS: usize = 128;
    let [x0, x1, x2, y0, y1, y2] = [1, 2, 3, 4, 5, 6].map(|seed| blocks(PASS, seed));
    let (mut sums, tag) =
        ([7, 8, 9].map(|seed| blocks(PASS, seed)), GfKey::new(Block(0x1234_5678 << 90 | 7)));
    for ring in VectorRing::ALL {
        let mut group = c.benchmark_group(format!("ring {ring:?}"));
        group.throughput(Throughput::Elements(PASS as u64));
        for backend in InstructionSet::available() {
            let id = |what| BenchmarkId::new(what, format!("{backend:?}"));
            group.bench_function(id("local products"), |m| {
                m.iter(|| {
                    let [a, b, c] = &mut sums;
                    ring_cross_on(backend, ring, Write::Set, [&x0, &x1, &x2], [&y0, &y1, &y2], [a, b, c]);
                });
            });
            let keys = [10, 11].map(|key| Aes128::on(backend, Block(key)));
            let [mask, wire] = [0, 1].map(|k| Keystream { key: &keys[k], prefix: 5, first: 0 });
            group.bench_function(id("stream added"), |m| m.iter(|| black_box(mask).add(ring, &mut sums[0])));
            for (what, wire) in [("joint value", None), ("joint value, hidden", Some(wire))] {
                group.bench_function(id(what), |m| {
                    m.iter(|| {
                        let [values, masks, rests] = &mut sums;
                        let (to_mask, to_rest) = ((Write::Add, &mut masks[..]), (Write::Add, &mut rests[..]));
                        JointMask { mask, wire, to_mask, to_rest }.split(ring, black_box(values));
                    });
                });
            }
            group.bench_function(id("digest"), |m| {
                m.iter(|| gf_digest_on(backend, &tag, black_box(Block::ONE), &x0));
            });
        }
        group.finish();
    }
}

fn extension(c: &mut Criterion) {
    let n = 2048;
    let mut group = c.benchmark_group("extension");
    group.throughput(Throughput::Elements(n as u64));
    let (rows, mut out) = (blocks(n, 1), blocks(n, 2));
    for backend in InstructionSet::available() {
        group.bench_function(BenchmarkId::new("transpose", format!("{backend:?}")), |b| {
            b.iter(|| transpose128_on(backend, black_box(&rows), &mut out));
        });
        for depth in [2usize, 4] {
            let keys: Vec<Aes128> = blocks(1 << depth, 5).iter().map(|&k| Aes128::on(backend, k)).collect();
            let (mut u, mut v) = (blocks(n / 128, 6), blocks(depth * n / 128, 7));
            let id = BenchmarkId::new(format!("fold-{depth}"), format!("{backend:?}"));
            // One of the 128 / depth blocks of an extension.
            group.bench_function(id, |b| b.iter(|| fold_streams(black_box(&keys), 0, &mut u, &mut v)));
        }
    }
    group.bench_function("lsbs", |b| {
        let mut bits = vec![0; n / 64];
        b.iter(|| lsbs(black_box(&rows), &mut bits));
    });
    group.bench_function("xor_masked", |b| {
        let bits = vec![0x9e37_79b9_7f4a_7c15; n / 64];
        b.iter(|| xor_masked(&mut out, black_box(&bits), Block(0x77)));
    });
    group.finish();
}

/// What a pager does to a chunk of 64 KiB: encrypt it in place, digest it.
fn chunks(c: &mut Criterion) {
    const CHUNK: usize = 4096;
    let mut group = c.benchmark_group("chunk");
    group.throughput(Throughput::Bytes(16 * CHUNK as u64));
    let (mut x, digest_key) = (blocks(CHUNK, 1), GfKey::new(Block(0x1234_5678 << 64 | 9)));
    for backend in InstructionSet::available() {
        let key = Aes128::on(backend, Block(7));
        group.bench_function(BenchmarkId::new("ctr-xor", format!("{backend:?}")), |b| {
            b.iter(|| key.ctr_xor(1, black_box(&mut x)));
        });
        group.bench_function(BenchmarkId::new("digest", format!("{backend:?}")), |b| {
            b.iter(|| gf_digest_on(backend, &digest_key, Block::ZERO, black_box(&x)));
        });
    }
    group.finish();
}

fn quick() -> Criterion {
    let warm_up = Duration::from_millis(200);
    Criterion::default().warm_up_time(warm_up).measurement_time(Duration::from_millis(500)).sample_size(20)
}

criterion_group! { name = all; config = quick(); targets = hashes, gates, ring, extension, chunks }
criterion_main!(all);
