//! What the tests of lift share.

use release::rational::ratio;
use studies::lift::{Also, LiftParameters, ReleaseMode};

/// A study with all cells and all counts.
pub fn full(mode: ReleaseMode) -> LiftParameters {
    let sums = mode == ReleaseMode::Sums;
    let names =
        |list: &[&str]| if sums { list.iter().map(|s| (*s).to_owned()).collect() } else { Vec::new() };
    LiftParameters {
        time_bits: 9,
        value_bits: 6,
        max_events: 4,
        clamp: 100,
        within: Some(30),
        impressions: true,
        arms: ["vaccine".into(), "placebo \"B\"".into()],
        breakdown: names(&["north", "south", "é"]),
        cohorts: names(&["6", "7"]),
        mode,
        rho: vec![ratio(1, 10), ratio(3, 70)],
        public: ratio(0, 1),
        also: Also::ALL.to_vec(),
        ..LiftParameters::bench(4)
    }
}
