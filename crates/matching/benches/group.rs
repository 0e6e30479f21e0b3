//! Microseconds per group operation on one core.

use base::Seed;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use matching::group::{Exponent, hash, hash_mul_batch, mul_batch, mul_twice_batch};

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
    let mut group = c.benchmark_group("matching");
    group.throughput(Throughput::Elements(ROWS as u64)).sample_size(20);
    group.bench_function("hash", |b| {
        b.iter(|| (0..ROWS).map(|i| hash(&bytes[i..i + 20])[0]).fold(0u8, u8::wrapping_add));
    });
    group.bench_function("hash_mul", |b| {
        b.iter(|| hash_mul_batch(&names, &keys[0], &mut points, 1));
    });
    hash_mul_batch(&names, &keys[0], &mut points, 1).expect("identifiers are readable");
    group.bench_function("mul", |b| b.iter(|| mul_batch(&mut points, &keys[0], 1)));
    group.bench_function("mul_twice", |b| {
        b.iter(|| mul_twice_batch(&mut points, &mut twice, &keys[0], &keys[1], 1));
    });
    group.finish();
}

criterion_group!(benches, group);
criterion_main!(benches);
