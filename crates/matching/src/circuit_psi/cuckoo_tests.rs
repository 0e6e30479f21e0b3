use super::*;
use crate::circuit_psi::oprf::whole;
use std::f64::consts::{LN_2, PI};

fn keys(n: u128) -> Vec<Block> {
    (0..n).map(|i| whole(Block(i << 2))).collect()
}

fn all_places(bins: &CuckooBins, attempt: u8, keys: &[Block]) -> Vec<[u32; FUNCTIONS]> {
    let mut places = Vec::new();
    bins.places(&CuckooBins::hash(&[1; 32], attempt), keys, &mut places);
    places
}

#[test]
fn every_key_lies_in_one_of_its_bins() {
    for n in [0u64, 1, 2, 100, 5000, 60_000] {
        let bins = CuckooBins::new([n, 10]);
        let keys = keys(n.into());
        let places = all_places(&bins, 0, &keys);
        let held = bins.place(&places).unwrap();
        assert_eq!(held.len() as u64, bins.all());
        let mut seen = vec![false; n as usize];
        for (bin, &key) in held.iter().enumerate().filter(|(_, key)| **key != EMPTY) {
            assert!((0..FUNCTIONS).any(|i| bins.bin(i, places[key as usize][i]) == bin));
            assert!(!std::mem::replace(&mut seen[key as usize], true), "a key in two bins");
        }
        assert!(seen.into_iter().all(|seen| seen), "a key in no bin");
        assert!(all_places(&bins, 1, &keys) != places || n == 0, "another attempt, other bins");
    }
}

#[test]
fn keys_that_do_not_fit_are_found_out() {
    let bins = CuckooBins::new([4, 4]);
    assert_eq!(bins.place(&[[7, 8, 9]; 4]), None);
    let three = bins.place(&[[7, 8, 9]; 3]).unwrap();
    assert_eq!(three.iter().filter(|key| **key != EMPTY).count(), 3);
}

/// Ranges of pieces cover every third.
#[test]
fn pieces_partition_bins() {
    for rows in [[10, 20], [10, 3_000_000], [100_000, 10], [40_000, 40_000]] {
        let bins = CuckooBins::new(rows);
        let mut next = 0;
        for piece in 0..bins.pieces() {
            let range = bins.range(piece);
            assert_eq!(range.start, next);
            assert!(3 * (range.end - range.start) <= bins.piece_bins() && !range.is_empty());
            assert!([range.start, range.end - 1].iter().all(|p| bins.piece(*p as u32) as u64 == piece));
            next = range.end;
        }
        assert_eq!(3 * next, bins.all());
        assert!(bins.usual() <= bins.most() && bins.most() <= 3 * rows[1]);
    }
}

fn ln_factorial(n: f64) -> f64 {
    if n < 2.0 { 0.0 } else { n * n.ln() - n + 0.5 * (2.0 * PI * n).ln() + 1.0 / (12.0 * n) }
}

/// ln of an upper bound of the ways in which `balls` fall into `bins` so that each gets two or more.
fn crowded(balls: f64, bins: f64) -> f64 {
    if balls < 2.0 * bins {
        return f64::NEG_INFINITY;
    }
    // balls! [z^balls] (e^z - 1 - z)^bins, at most the value at any z; by bisection of the derivative.
    let (mut low, mut high) = (1e-6, 60.0f64);
    for _ in 0..60 {
        let z = 0.5 * (low + high);
        if bins * z.exp_m1() / (z.exp_m1() - z) > balls / z { high = z } else { low = z }
    }
    ln_factorial(balls) + bins * (low.exp_m1() - low).ln() - balls * low.ln()
}

/// log2 of the expected number of sets of k bins, with two rows or more in each, that hold all bins of k + 1
/// rows: such a set there is whenever rows do not fit. The splits of k over the thirds are counted as if all
/// were the most frequent.
fn expected_obstructions(n: u64, third: f64) -> f64 {
    let rows = n as f64;
    let choose = |n: f64, k: f64| ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k);
    let step = (n / 2000).max(1);
    let few = (3..n.min(600)).map(|k| (k, 1));
    let many = (600..n).step_by(step as usize).map(|k| (k, step));
    let terms = few.chain(many).map(|(k, weight)| {
        let (bins, balls) = (k as f64 / 3.0, k as f64 + 1.0);
        let inside = choose(third, bins) + crowded(balls, bins) - balls * third.ln();
        (choose(rows, balls) + 3.0 * inside + 2.0 * (k as f64).ln() + (weight as f64).ln()).exp()
    });
    terms.sum::<f64>().ln() / LN_2
}

/// What the header says: rows fit but with probability 2^-40.
#[test]
fn rows_fit_by_the_first_moment() {
    for n in [
        4, 16, 64, 128, 200, 256, 300, 400, 512, 700, 1000, 2000, 4096, 20_000, 200_000, 1_000_000,
        20_000_000,
    ] {
        let bins = CuckooBins::new([n, 1]);
        let log = expected_obstructions(n, bins.third as f64);
        assert!(log < -40.0, "{n} rows: 2^{log}");
    }
}
