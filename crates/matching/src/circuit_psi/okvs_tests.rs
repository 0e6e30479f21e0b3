use super::*;
use base::Seed;
use std::f64::consts::LN_2;

fn cipher() -> Aes128 {
    Aes128::new(Block(77))
}

fn keys(n: usize, from: u128) -> Vec<Block> {
    (0..n as u128).map(|i| Block(from + i)).collect()
}

fn rows_of(shape: StoreShape, keys: &[Block]) -> Vec<StoreRow> {
    let mut out = Vec::new();
    rows(&cipher(), shape, keys, &mut out);
    out
}

fn rng(seed: u8) -> Rng {
    Seed::from_bytes([seed; 32]).into_rng()
}

/// Encodes uniform values, and checks that every key gives its own.
fn check(shape: StoreShape, n: usize, width: usize, seed: u8) -> Vec<u8> {
    let rows = rows_of(shape, &keys(n, u128::from(seed) << 64));
    let mut rng = rng(seed);
    let values = super::super::random_bytes(&mut rng, n * width);
    let table = encode(shape, &rows, &values, width, &mut rng).unwrap();
    assert_eq!(table.len(), shape.entries() * width);
    let mut out = vec![0; values.len()];
    decode(shape, &table, width, &rows, &mut out);
    assert!(out == values, "{n} keys of {width} bytes");
    table
}

#[test]
fn every_key_gives_its_value() {
    for n in [0usize, 1, 2, 3, 10, 100, 1000] {
        for width in [1, 16, 25] {
            check(StoreShape::new(n as u64, n as u64), n, width, n as u8);
        }
    }
    check(StoreShape::new(20_000, 20_500), 20_000, 16, 9);
}

/// More keys than peeling can take: many are set aside, and elimination still finds a table.
#[test]
fn tables_as_full_as_the_most_are_solved() {
    let shape = StoreShape::new(1, 3000);
    assert!(shape.sparse() < 3460);
    let rows = rows_of(shape, &keys(3000, 5));
    let aside = Peeled::new(shape, &rows).aside.len();
    assert!(aside > 10, "{aside} keys set aside");
    check(shape, 3000, 8, 5);
    // Keys beyond the entries of the sparse part: the dense ones take them.
    check(StoreShape { third: 100 }, 320, 8, 6);
}

#[test]
fn a_repeated_key_is_refused() {
    let shape = StoreShape::new(10, 10);
    let mut own = keys(10, 1);
    own[9] = own[3];
    let values: Vec<u8> = (0..80).collect();
    assert!(encode(shape, &rows_of(shape, &own), &values, 8, &mut rng(1)).is_err());
}

/// Over uniform values, the bits of a table are balanced and unrelated in every position: entries that keys
/// fix, those that nothing fixes, and the dense ones; whether a table holds many keys or few.
#[test]
fn tables_of_uniform_values_are_uniform() {
    for (n, seeds) in [(0usize, 400u16), (1, 400), (40, 400)] {
        let shape = StoreShape::new(40, 45);
        let mut ones = vec![0u32; shape.entries() * 8];
        let mut pairs = vec![0u32; shape.entries() * 8];
        let rows = rows_of(shape, &keys(n, 3));
        for seed in 0..seeds {
            let mut rng = Seed::from_bytes([7; 32]).fork(&seed.to_string()).into_rng();
            let values = super::super::random_bytes(&mut rng, n);
            let table = encode(shape, &rows, &values, 1, &mut rng).unwrap();
            let bit = |i: usize| u32::from(table[i / 8] >> (i % 8) & 1);
            for i in 0..ones.len() {
                ones[i] += bit(i);
                pairs[i] += bit(i) ^ bit((i + 8) % (8 * table.len()));
            }
        }
        for count in ones.iter().chain(&pairs) {
            let off = (f64::from(*count) - f64::from(seeds) / 2.0) / (f64::from(seeds) / 4.0).sqrt();
            assert!(off.abs() < 6.0, "{count} of {seeds} with {n} keys");
        }
    }
}

fn ln_factorial(n: f64) -> f64 {
    if n < 2.0 {
        return 0.0;
    }
    // Stirling with two terms of its series: an error below 1 / (360 n^3).
    n * n.ln() - n + 0.5 * (2.0 * std::f64::consts::PI * n).ln() + 1.0 / (12.0 * n)
}

/// ln of the probability that `j` balls, an even number, leave an even number in each of `third` bins: exact
/// for few bins, else at most `j! cosh(z)^third / (z third)^j`, which holds for every z > 0.
fn ln_all_even(j: f64, third: f64) -> f64 {
    let choose = |n: f64, k: f64| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    if third < 400.0 {
        let odd = |i: u64| (choose(third, i as f64) + j * (1.0 - 2.0 * i as f64 / third).abs().ln()).exp();
        return (0..=third as u64).map(odd).sum::<f64>().ln() - third * LN_2;
    }
    // At the least: z tanh z = j / third.
    let (mut low, mut high) = (1e-9, j / third + 2.0);
    for _ in 0..60 {
        let z = 0.5 * (low + high);
        if z * z.tanh() < j / third { low = z } else { high = z }
    }
    ln_factorial(j) + third * high.cosh().ln() - j * (high * third).ln()
}

/// log2 of an upper bound of the expected number of non-empty sets among `n` rows whose sparse parts sum to
/// zero, over thirds of `third` entries: sets of j rows throw j balls into each third, and every entry must
/// get an even number.
fn expected_dependencies(n: u64, third: u64) -> f64 {
    let (n, third) = (n as f64, third as f64);
    let term = |half: u64| {
        let j = 2.0 * half as f64;
        let choices = ln_factorial(n) - ln_factorial(j) - ln_factorial(n - j);
        (choices + 3.0 * ln_all_even(j, third).min(0.0)).exp()
    };
    (1..=n as u64 / 2).map(term).sum::<f64>().log2()
}

/// What the header says of failure: with the 64 dense bits it is at most 2^-64 of this number.
#[test]
fn hardly_any_sparse_rows_are_dependent() {
    for most in [2, 3, 5, 10, 30, 60, 84, 100, 130, 180, 300, 1000, 3000, 10_000, 50_000] {
        let shape = StoreShape::new(1, most);
        let log = expected_dependencies(most, shape.third as u64);
        assert!(log < 1.0, "{most} rows: 2^{log}");
    }
}
