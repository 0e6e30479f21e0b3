//! The sampler against pinned vectors, its own law, and the discrete Gaussian.

use num_bigint::BigInt;
use num_traits::{One, Zero};
use release::alias::{AliasTable, DrawPart, Sampler};
use release::rational::{Rational, exp2, ratio, to_f64};
use serde_json::Value;

const VECTORS: &str = include_str!("noise-vectors.json");

fn cases() -> Vec<Value> {
    serde_json::from_str(VECTORS).unwrap()
}

fn fraction(text: &str) -> Rational {
    let (a, b) = text.split_once('/').unwrap_or((text, "1"));
    Rational::new(a.parse().unwrap(), b.parse().unwrap())
}

fn sampler(case: &Value) -> Sampler {
    let sensitivity = BigInt::from(case["sensitivity"].as_u64().unwrap());
    let cells = case["cells"].as_u64().unwrap() as u32;
    Sampler::new(&sensitivity, cells, &fraction(case["rho"].as_str().unwrap())).unwrap()
}

#[test]
fn tables_are_the_pinned_ones() {
    for case in cases() {
        let made = sampler(&case);
        assert_eq!(u64::from(made.low_bits), case["e"].as_u64().unwrap());
        assert_eq!(made.steps, BigInt::from(case["steps"].as_u64().unwrap()));
        assert_eq!(made.variance_y, fraction(case["sigma2_y"].as_str().unwrap()));
        let parts = case["parts"].as_array().unwrap();
        assert_eq!(made.parts.len(), parts.len());
        for (part, said) in made.parts.iter().zip(parts) {
            assert_eq!(u64::from(part.table.bits()), said["k"].as_u64().unwrap());
            assert_eq!(u64::from(part.shift), said["shift"].as_u64().unwrap());
            assert_eq!(*part.table.variance(), fraction(said["variance"].as_str().unwrap()));
            let thresholds: Vec<String> =
                part.table.thresholds().iter().map(|t| format!("{t:016x}")).collect();
            assert_eq!(thresholds, serde_json::from_value::<Vec<String>>(said["threshold"].clone()).unwrap());
            let aliases: Vec<u16> = serde_json::from_value(said["alias"].clone()).unwrap();
            assert_eq!(part.table.aliases(), aliases);
        }
    }
}

#[test]
fn draws_are_the_pinned_ones() {
    for case in cases() {
        let made = sampler(&case);
        for draw in case["draws"].as_array().unwrap() {
            let coins: Vec<bool> = draw["coins"].as_str().unwrap().bytes().map(|b| b == b'1').collect();
            let (y, z) = made.draw(&coins);
            assert_eq!(y, BigInt::from(draw["y"].as_i64().unwrap()));
            assert_eq!(z, BigInt::from(draw["z"].as_i64().unwrap()));
        }
    }
}

/// A table's cells, read as they are drawn, give its weights, which add up.
#[test]
fn a_table_draws_its_weights() {
    for (bits, variance) in [(3, ratio(13, 10)), (5, ratio(12, 1)), (7, ratio(200, 1)), (8, ratio(800, 1))] {
        let table = AliasTable::new(bits, &variance).unwrap();
        let full = 1u128 << 63;
        let mut drawn = vec![0u128; 1 << bits];
        for (cell, (threshold, alias)) in table.thresholds().iter().zip(table.aliases()).enumerate() {
            drawn[cell] += u128::from(*threshold);
            drawn[usize::from(*alias)] += full - u128::from(*threshold);
        }
        assert_eq!(drawn, table.weights());
        assert_eq!(drawn.iter().sum::<u128>(), 1 << (bits + 63));
    }
}

/// The law of a sum of parts, as weights by value.
fn law(parts: &[DrawPart]) -> (std::collections::BTreeMap<i64, BigInt>, BigInt) {
    let mut sum = std::collections::BTreeMap::from([(0i64, BigInt::one())]);
    let mut all = BigInt::one();
    for part in parts {
        let mut next = std::collections::BTreeMap::new();
        for (value, weight) in &sum {
            for (i, own) in part.table.weights().iter().enumerate().filter(|(_, own)| **own > 0) {
                let step = (i as i64) << part.shift;
                let own = BigInt::from(*own) * weight;
                *next.entry(value + step).or_insert_with(BigInt::zero) += &own;
                *next.entry(value - step).or_insert_with(BigInt::zero) += own;
            }
        }
        (sum, all) = (next, all << (part.table.bits() + 64));
    }
    (sum, all)
}

/// The stated distance bounds the one that enumeration finds.
#[test]
fn the_law_is_as_near_as_stated() {
    for sigma2 in [ratio(1, 1), ratio(49, 1), ratio(400, 1), ratio(2500, 1)] {
        // Sensitivity 1, one cell: the variance is 1 / (2 rho).
        let made = Sampler::new(&BigInt::one(), 1, &(ratio(1, 2) / &sigma2)).unwrap();
        assert_eq!((made.low_bits, &made.variance_y), (0, &sigma2));
        let (law, all) = law(&made.parts);
        assert_eq!(law.values().sum::<BigInt>(), all);
        let sigma = to_f64(&sigma2).sqrt();
        let mass = |z: i64| (-(z as f64).powi(2) / (2.0 * sigma * sigma)).exp();
        let total: f64 = (-(40.0 * sigma) as i64 - 50..=(40.0 * sigma) as i64 + 50).map(mass).sum();
        let mut worst = 0.0f64;
        for (z, weight) in &law {
            let drawn = to_f64(&Rational::new_raw(weight.clone(), all.clone()));
            worst = worst.max((drawn - mass(*z) / total).abs());
        }
        // Doubles see 2^-52 of a mass.
        assert!(worst < 1e-15, "{sigma2}: {worst}");
        assert!(made.distance() < exp2(-57), "{sigma2}");
        let second: BigInt = law.iter().map(|(z, w)| w * z * z).sum();
        // On integers the variance is a little below the stated one where that is small.
        let variance = to_f64(&Rational::new(second, all.clone()));
        assert!((variance / to_f64(&sigma2) - 1.0).abs() < 1e-6, "{sigma2}: {variance}");
    }
}

#[test]
fn parts_and_low_bits_are_few() {
    let of = |d: i64, rho| Sampler::new(&BigInt::from(d), 1, &rho).unwrap();
    // Of a power of two nearly all bits are low; of others as many as cost 1 % of variance.
    assert_eq!(of(256, ratio(1, 10)).low_bits, 7);
    assert_eq!(of(256, ratio(1, 20)).low_bits, 8);
    assert_eq!(of(1 << 32, ratio(1, 10)).low_bits, 31);
    assert!(of(250, ratio(1, 10)).low_bits < 7);
    for (sigma, most) in [(50, 2), (400, 3), (10_000, 5), (1_000_000, 6)] {
        let made = of(1, ratio(1, 2 * i64::from(sigma) * i64::from(sigma)));
        assert!(made.parts.len() <= most, "{sigma}");
    }
    let low = of(997, ratio(1, 100));
    let wider = to_f64(&low.variance()) / (997.0f64.powi(2) / (2.0 * 0.01));
    assert!((1.0..=1.01).contains(&wider), "{wider}");
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let one = BigInt::one();
    assert!(Sampler::new(&BigInt::zero(), 1, &ratio(1, 2)).is_err());
    assert!(Sampler::new(&one, 0, &ratio(1, 2)).is_err());
    assert!(Sampler::new(&one, 1, &ratio(0, 1)).is_err());
    let error = Sampler::new(&one, 1, &exp2(-80)).unwrap_err().to_string();
    assert!(error.contains("spend more rho"), "{error}");
    assert!(AliasTable::new(9, &ratio(1, 1)).is_err());
}
