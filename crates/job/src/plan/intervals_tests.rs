use super::*;
use crate::plan::{Link, Speeds};
use data::OutcomeSums;
use study::StudyFile;

const LINK: Link = Link { bits_per_s: 1e10, round_trip_s: 1e-3 };

fn curves(text: &str, rows: u64, own: Option<&InputReport>) -> Vec<IntervalCurve> {
    let file = StudyFile::parse("study.toml", text).unwrap();
    let outcome = OutcomeGuess::of(file.first(), own, rows);
    interval_curves(file.first(), &Assumed { rows: [rows; 2], both: None, outcome }, own).unwrap()
}

fn halves(curve: &IntervalCurve) -> Vec<Halves> {
    curve.points.iter().map(|point| point.half.clone().unwrap()).collect()
}

#[test]
fn intervals_are_wider_with_less_rho_a_larger_clamp_and_fewer_rows() {
    let text = include_str!("../../../../examples/lift.toml");
    let [rho, clamp, rows, mode] = &curves(text, 400_000, None)[..] else { panic!("four settings") };
    assert_eq!([rho.setting, clamp.setting, rows.setting, mode.setting], ["rho", "clamp", "rows", "mode"]);
    assert_eq!([rho.chosen, clamp.chosen, rows.chosen], [0.1, 1.0, 400_000.0]);
    for (curve, falls) in [(rho, true), (clamp, false), (rows, true)] {
        let found = halves(curve);
        assert!(found.len() >= 4, "{curve:?}");
        for pair in found.windows(2) {
            assert_eq!(pair[0].whole > pair[1].whole, falls, "{curve:?}");
        }
        assert!(found.iter().all(|half| half.whole > half.chance), "{curve:?}");
    }
    // Chance hangs on rows alone, where outcomes stay as they are.
    let chance = |curve: &IntervalCurve| halves(curve).iter().map(|half| half.chance).collect::<Vec<_>>();
    assert!(chance(rho).windows(2).all(|pair| pair[0] == pair[1]));
    assert!(chance(rows).windows(2).all(|pair| pair[0] > pair[1]));
    // The study as it is, by each curve.
    let at = |curve: &IntervalCurve| {
        let point = curve.points.iter().find(|point| point.at == curve.chosen).unwrap();
        point.half.clone().unwrap().whole
    };
    assert!((at(rho) / at(rows) - 1.0).abs() < 1e-9 && (at(clamp) / at(rows) - 1.0).abs() < 1e-9);
    assert!(mode.points[0].half.is_ok(), "{mode:?}");
}

/// A clamp above what events come to is that sum, for chance as for noise.
#[test]
fn a_clamp_that_no_events_reach_widens_nothing() {
    let text = include_str!("../../../../examples/lift.toml");
    let larger = text.replace("clamp        = 1 ", "clamp        = 64 ");
    assert_ne!(text, larger);
    let [own, wide] = [text, &larger].map(|text| curves(text, 400_000, None));
    for (at, setting) in [(0, "rho"), (2, "rows")] {
        let found = halves(&wide[at]);
        assert!(found.iter().all(|half| half.whole > half.chance), "{setting}: {found:?}");
    }
    let found = halves(&wide[1]);
    let last = found.len() - 1;
    assert!((found[last].whole / found[last - 1].whole - 1.0).abs() < 1e-9, "{found:?}");
    assert_eq!(own[1].setting, "clamp");
}

#[test]
fn a_party_file_says_what_smaller_clamps_cut() {
    let text =
        include_str!("../../../../examples/lift.toml").replace("clamp        = 1 ", "clamp        = 8 ");
    let mut own = InputReport::default();
    for (clamp, total) in data::clamps_around(8).into_iter().zip([10.0, 18.0, 30.0, 40.0, 40.0, 40.0, 40.0]) {
        own.outcomes.by_clamp.push((clamp, OutcomeSums { total, squares: total * f64::from(clamp) }));
    }
    let all = curves(&text, 100_000, Some(&own));
    let found = halves(&all[1]);
    assert!(found.windows(2).take(3).all(|pair| pair[0].chance < pair[1].chance), "{found:?}");
    // Of a mean that was told, the study as it is has one interval, and nothing is of the file.
    let file = StudyFile::parse("study.toml", &text).unwrap();
    let assumed = Assumed { rows: [100_000; 2], both: None, outcome: Some(OutcomeGuess::told(0.5)) };
    let told = |own| interval_curves(file.first(), &assumed, own).unwrap();
    assert_eq!(told(Some(&own)), told(None));
}

#[test]
fn nothing_is_drawn_of_outcomes_that_nobody_guesses() {
    let text = include_str!("../../../../examples/lift.toml").replace(
        "value       = { constant = 1 }",
        "value = { column = \"amount\", type = \"u32\", unit = \"cent\" }",
    );
    let file = StudyFile::parse("study.toml", &text).unwrap();
    let outcome = OutcomeGuess::of(file.first(), None, 1000);
    assert_eq!(outcome, None, "an amount has no usual size");
    let refused =
        interval_curves(file.first(), &Assumed { rows: [1000; 2], both: None, outcome }, None).unwrap_err();
    assert!(refused.to_string().contains("--mean X"), "{refused}");
}

/// Half the clamp and double beside the study's own, each with the mean that it leaves.
#[test]
fn the_clamps_around_are_tried() {
    let text = include_str!("../../../../examples/lift.toml")
        .replace("clamp        = 1 ", "clamp        = 8 ")
        .replace("{ constant = 1 }", "{ column = \"paid\", type = \"u32\", unit = \"EUR\" }");
    let mut own = InputReport::default();
    for (clamp, total) in data::clamps_around(8).into_iter().zip([10.0, 18.0, 30.0, 40.0, 44.0, 44.0, 44.0]) {
        own.outcomes.by_clamp.push((clamp, OutcomeSums { total, squares: total * f64::from(clamp) }));
    }
    let tried = |text: &str, own: Option<&InputReport>| {
        let file = StudyFile::parse("study.toml", text).unwrap();
        let outcome = OutcomeGuess::of(file.first(), own, 100_000);
        let assumed = Assumed { rows: [100_000; 2], both: None, outcome };
        let plan = crate::plan::plan_file(&file, &assumed, LINK, Speeds::default()).unwrap();
        (clamp_effects(&file, &assumed, own, (&plan, &[])), plan)
    };
    let (found, plan) = tried(&text, Some(&own));
    assert_eq!(found.iter().map(|of| of.clamp).collect::<Vec<_>>(), [4.0, 8.0, 16.0]);
    assert_eq!(found.iter().map(|of| of.mean).collect::<Vec<_>>(), [30e-5, 40e-5, 44e-5]);
    let effects: Vec<f64> = found.iter().map(|of| of.effect.unwrap()).collect();
    assert!(effects[0] < effects[1] && effects[1] < effects[2], "{effects:?}");
    assert_eq!(found[1].effect, plan.public_effect.or(plan.minimum_detectable_effect));
    // Of one event that counts once no larger clamp cuts anything.
    let lift = include_str!("../../../../examples/lift.toml");
    for (text, clamps) in
        [(lift, &[1.0, 2.0][..]), (&lift.replace("max_events  = 4", "max_events  = 1"), &[1.0])]
    {
        let (found, _) = tried(text, None);
        assert_eq!(found.iter().map(|of| of.clamp).collect::<Vec<_>>(), clamps);
    }
    // Amounts that nobody guesses have no effect at any clamp.
    assert!(tried(&text, None).0.is_empty());
}
