//! Microseconds per group operation on one core: the 8-lane kernel where this machine has it, beside one point at a time.
//!
//! `cargo bench -p matching --bench group`

use base::Seed;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use matching::group::{Exponent, Group};
use std::time::Duration;

const ROWS: usize = 1024;

fn group(c: &mut Criterion) {
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    let keys = [Exponent::random(&mut rng), Exponent::random(&mut rng)];
    let bytes: Vec<u8> = (0..ROWS).flat_map(|i| format!("person-{i:08}@example.org").into_bytes()).collect();
    let each = bytes.len() / ROWS;
    let names = |i: usize, name: &mut Vec<u8>| {
        name.clear();
        name.extend_from_slice(&bytes[i * each..][..each]);
        Ok(())
    };
    let mut points = vec![[0; 32]; ROWS];
    let mut twice = points.clone();
    let mut bench = c.benchmark_group("group");
    bench.throughput(Throughput::Elements(ROWS as u64));
    bench.sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for (way, group) in [("one by one", Group::one_by_one()), ("detected", Group::detect())] {
        bench.bench_function(BenchmarkId::new("hash", way), |b| {
            b.iter(|| group.hash_batch(&names, &mut points, 1));
        });
        bench.bench_function(BenchmarkId::new("hash_mul", way), |b| {
            b.iter(|| group.hash_mul_batch(&names, &keys[0], &mut points, 1));
        });
        bench.bench_function(BenchmarkId::new("mul", way), |b| {
            b.iter(|| group.mul_batch(&mut points, &keys[0], 1));
        });
        bench.bench_function(BenchmarkId::new("mul_twice", way), |b| {
            b.iter(|| group.mul_twice_batch(&mut points, &mut twice, &keys[0], &keys[1], 1));
        });
    }
    bench.finish();
}

criterion_group!(benches, group);
criterion_main!(benches);
