//! Microseconds per group operation on one core: the 8-lane kernel where this machine has it, beside one
//! point at a time.
//!
//! `cargo bench -p matching --bench group`

use base::Seed;
use criterion::{BenchmarkId, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use matching::group::{CurveGroup, Exponent};
use std::time::Duration;

/// Rows per sample, short enough that some samples run undisturbed on a busy machine.
const LANES_ROWS: usize = 1024;
const POINTS_ROWS: usize = 128;

fn group(c: &mut Criterion) {
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    let keys = [Exponent::random(&mut rng), Exponent::random(&mut rng)];
    let bytes: Vec<u8> =
        (0..LANES_ROWS).flat_map(|i| format!("person-{i:08}@example.org").into_bytes()).collect();
    let each = bytes.len() / LANES_ROWS;
    let names = |i: usize, name: &mut Vec<u8>| {
        name.clear();
        name.extend_from_slice(&bytes[i * each..][..each]);
        Ok(())
    };
    let mut points = vec![[0; 32]; LANES_ROWS];
    let mut twice = points.clone();
    let mut bench = c.benchmark_group("group");
    bench.sampling_mode(SamplingMode::Flat).sample_size(50);
    bench.warm_up_time(Duration::from_millis(100)).measurement_time(Duration::from_millis(200));
    let ways = [
        ("one by one", CurveGroup::one_by_one(), POINTS_ROWS),
        ("detected", CurveGroup::detect(), LANES_ROWS),
    ];
    for (way, group, rows) in ways {
        let (points, twice) = (&mut points[..rows], &mut twice[..rows]);
        bench.throughput(Throughput::Elements(rows as u64));
        bench.bench_function(BenchmarkId::new("hash", way), |b| {
            b.iter(|| group.hash_batch(&names, points, 1));
        });
        bench.bench_function(BenchmarkId::new("hash_mul", way), |b| {
            b.iter(|| group.hash_mul_batch(&names, &keys[0], points, 1));
        });
        bench.bench_function(BenchmarkId::new("mul", way), |b| {
            b.iter(|| group.mul_batch(points, &keys[0], 1));
        });
        bench.bench_function(BenchmarkId::new("mul_twice", way), |b| {
            b.iter(|| group.mul_twice_batch(points, twice, &keys[0], &keys[1], 1));
        });
    }
    bench.finish();
}

criterion_group!(benches, group);
criterion_main!(benches);
