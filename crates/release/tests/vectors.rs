//! The eight cases of `release-vectors.json`: everything that is rational is compared exactly; a printed root
//! or decimal is squared, or compared, as a rational to 40 digits.

use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};
use release::fixed::{self, ArmTotals};
use release::rational::{Rational, exp2, ratio, to_f64};
use release::scale::{ClampBounds, Sensitivity, fixed_point};
use release::{ReaderRole, ReleaseMode, modes, normal};
use serde_json::Value;

fn vectors() -> Value {
    serde_json::from_str(include_str!("release-vectors.json")).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("an integer")
}

/// Beyond 64 bits the JSON reader gives a double; the vectors have only powers of two there, which it holds
/// exactly.
fn wide(value: &Value) -> u128 {
    value.as_u64().map_or_else(|| value.as_f64().expect("a number") as u128, u128::from)
}

/// `a`, `a/b`, `1.25` or `3.0E-7`.
fn rational(value: &Value) -> Rational {
    let text = value.as_str().unwrap();
    if let Some((a, b)) = text.split_once('/') {
        return Rational::new(a.parse().unwrap(), b.parse().unwrap());
    }
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all: BigInt = format!("{whole}{part}").parse().unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - part.len() as i32;
    let ten = Rational::from_integer(10.into());
    let power = (0..exponent.abs()).fold(Rational::one(), |p, _| p * &ten);
    if exponent < 0 { Rational::from_integer(all) / power } else { Rational::from_integer(all) * power }
}

fn near(got: &Rational, expected: &Rational, what: &str) {
    let error = if expected.is_zero() { got.abs() } else { ((got - expected) / expected).abs() };
    assert!(error < ratio(1, BigInt::from(10).pow(40)), "{what}: off by {:e}", to_f64(&error));
}

fn near_double(got: f64, expected: &Rational, what: &str) {
    let expected = to_f64(expected);
    assert!((got - expected).abs() <= 4e-15 * expected.abs(), "{what}: {got:e} is not {expected:e}");
}

fn square(value: &Rational) -> Rational {
    value * value
}

struct Case {
    json: Value,
    name: String,
    test: ArmTotals,
    control: ArmTotals,
    clamp: u64,
}

fn cases() -> Vec<Case> {
    let all = vectors()["cases"].as_array().unwrap().clone();
    assert_eq!(all.len(), 8);
    all.into_iter()
        .map(|json| Case {
            name: json["name"].as_str().unwrap().into(),
            test: ArmTotals { n: number(&json["nT"]), s: number(&json["ST"]), q: wide(&json["QT"]) },
            control: ArmTotals { n: number(&json["nC"]), s: number(&json["SC"]), q: wide(&json["QC"]) },
            clamp: number(&json["R"]),
            json,
        })
        .collect()
}

#[test]
fn totals_of_the_raw_outcomes() {
    for case in cases() {
        for (key, arm) in [("x_T", case.test), ("x_C", case.control)] {
            let Some(raw) = case.json[key].as_array() else { continue };
            let clamped: Vec<u64> = raw.iter().map(|x| x.as_u64().unwrap().min(case.clamp)).collect();
            let q = clamped.iter().map(|&x| u128::from(x) * u128::from(x)).sum();
            assert_eq!(
                arm,
                ArmTotals { n: clamped.len() as u64, s: clamped.iter().sum(), q },
                "{}",
                case.name
            );
        }
    }
}

#[test]
fn lift_and_variance() {
    for case in cases() {
        let lift = case.test.mean() - case.control.mean();
        let v = case.test.variance() + case.control.variance();
        assert_eq!(lift, rational(&case.json["lift"]), "{}", case.name);
        assert_eq!(v, rational(&case.json["v"]), "{}", case.name);
        near(&lift, &rational(&case.json["lift_dec"]), &case.name);
        near(&v, &rational(&case.json["v_dec"]), &case.name);
        near(&v, &square(&rational(&case.json["se_dec"])), &case.name);
        near_double(to_f64(&v).sqrt(), &rational(&case.json["se_dec"]), &case.name);
    }
}

#[test]
fn fixed_point_values() {
    for case in cases() {
        let values = fixed::values(&case.test, &case.control, case.clamp).unwrap();
        let expected = &case.json["fixed_point"];
        let as_json = serde_json::json!({
            "F_lift": values.grid.lift, "F_se": values.grid.se, "F_v": values.grid.v,
            "lift": values.lift, "v": values.v, "se": values.se,
        });
        assert_eq!(&as_json, expected, "{}", case.name);
    }
}

#[test]
fn sensitivities() {
    for case in cases() {
        let (sens, n) = (&case.json["sens"], (case.test.n, case.control.n));
        let of = |viewer| Sensitivity::of(viewer, n.0, n.1, case.clamp);
        let publisher = of(ReaderRole::Publisher);
        assert_eq!(publisher.lift, rational(&sens["publisher"]["lift"]));
        assert_eq!(publisher.se2, square(&rational(&sens["publisher"]["se"])));
        assert_eq!(publisher.v, rational(&sens["publisher"]["v"]));
        for viewer in [ReaderRole::Advertiser, ReaderRole::Public] {
            assert_eq!(of(viewer).lift, rational(&sens["advertiser"]["lift"]));
            assert_eq!(of(viewer).v, rational(&sens["advertiser"]["v"]));
            near(&of(viewer).se2, &square(&rational(&sens["advertiser"]["se_dec"])), &case.name);
        }
        let printed = Sensitivity::as_published(n.0, n.1, case.clamp);
        assert_eq!(printed.lift, rational(&sens["paper"]["lift"]));
        near(&printed.se2, &square(&rational(&sens["paper"]["se_dec"])), &case.name);
    }
}

/// z of the vector's alpha, checked against the critical value in use.
fn z_of(w: &Value) -> (Rational, f64) {
    let alpha = w["alpha"].as_str().unwrap();
    let confidence = match alpha {
        "0.10" => 0.90,
        "0.05" => 0.95,
        _ => 0.99,
    };
    let z = rational(&vectors()["z"][alpha]);
    assert_eq!(normal::critical(confidence), to_f64(&z));
    (z, confidence)
}

#[test]
fn noise_scales_and_widths() {
    for case in cases() {
        let n = (case.test.n, case.control.n);
        let v = case.test.variance() + case.control.variance();
        let printed = Sensitivity::as_published(n.0, n.1, case.clamp);
        let publisher = Sensitivity::of(ReaderRole::Publisher, n.0, n.1, case.clamp);
        let advertiser = Sensitivity::of(ReaderRole::Advertiser, n.0, n.1, case.clamp);
        for w in case.json["w"].as_array().unwrap() {
            let (z, _) = z_of(w);
            let (rho1, rho2) = (rational(&w["rho1"]), rational(&w["rho2"]));
            let two = Rational::from_integer(2.into());
            let sigma1 = square(&printed.lift) / (&two * &rho1);
            near(&sigma1, &square(&rational(&w["sigma1_paper"])), &case.name);
            near(&(&printed.se2 / (&two * &rho2)), &square(&rational(&w["sigma2_paper"])), &case.name);
            near(&(square(&z) * (&v + &sigma1)), &square(&rational(&w["w_paper_zero_noise"])), &case.name);
            let own = square(&publisher.lift) / (&two * &rho1);
            near(
                &(square(&z) * (&v + own)),
                &square(&rational(&w["w_publisher_var_zero_noise"])),
                &case.name,
            );
            near(
                &(square(&publisher.v) / (&two * &rho2)),
                &square(&rational(&w["t2_publisher_v"])),
                &case.name,
            );
            near(
                &(square(&advertiser.v) / (&two * &rho2)),
                &square(&rational(&w["t2_advertiser_v"])),
                &case.name,
            );
        }
    }
}

/// The shipped path end to end: splits, grid, scales and reading give the vectors' sigmas and widths. The
/// grid rounds values (by less than 3 steps) and, but as published, sensitivities (2^20 steps or more, plus
/// 3).
#[test]
fn the_modes_agree_with_the_vectors() {
    let mut compared = 0;
    for case in cases() {
        let n = (case.test.n, case.control.n);
        let bounds = ClampBounds { clamp: case.clamp };
        let values = fixed::values(&case.test, &case.control, case.clamp).unwrap();
        for w in case.json["w"].as_array().unwrap() {
            let (z, confidence) = z_of(w);
            let (rho1, rho2) = (rational(&w["rho1"]), rational(&w["rho2"]));
            let rho = &rho1 + &rho2;
            let mode = if rho1 == rho2 { ReleaseMode::Algorithm1AsPublished } else { ReleaseMode::Variance };
            let scale = fixed_point(mode, ReaderRole::Publisher, n, bounds, &rho).unwrap();
            assert_eq!((&scale.lift.rho, &scale.spread.rho), (&rho1, &rho2), "{}", case.name);
            let sigma2 = |m: &release::scale::GaussianMechanism, f: i32| &m.sigma2 * exp2(-2 * f);
            if mode == ReleaseMode::Algorithm1AsPublished {
                near(
                    &sigma2(&scale.lift, scale.grid.lift),
                    &square(&rational(&w["sigma1_paper"])),
                    &case.name,
                );
                near(
                    &sigma2(&scale.spread, scale.grid.se),
                    &square(&rational(&w["sigma2_paper"])),
                    &case.name,
                );
                let read = modes::read_fixed(mode, values.lift as f64, values.se as f64, &scale, confidence);
                let read = read.unwrap();
                let width = 0.5 * (read.interval[1] - read.interval[0]);
                let expected = to_f64(&rational(&w["w_paper_zero_noise"]));
                assert!((width / expected - 1.0).abs() < 4e-6, "{}: {width} {expected}", case.name);
            } else {
                let expected = to_f64(&rational(&w["t2_publisher_v"]));
                let got = to_f64(&sigma2(&scale.spread, scale.grid.v)).sqrt();
                assert!((got / expected - 1.0).abs() < 4e-6, "{}", case.name);
                // The margin sigma_v is part of the width; take it out again to meet the vector.
                let sigma_steps = to_f64(&scale.spread.sigma2).sqrt().round() as i128;
                let spread = i128::from(values.v) - sigma_steps;
                let read =
                    modes::read_fixed(mode, values.lift as f64, spread as f64, &scale, confidence).unwrap();
                let width = to_f64(&z) * read.standard_error;
                let expected = to_f64(&rational(&w["w_publisher_var_zero_noise"]));
                assert!((width / expected - 1.0).abs() < 4e-6, "{}: {width} {expected}", case.name);
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 24);
}
