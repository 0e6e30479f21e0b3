//! How a program's budget is split: what each mechanism is charged, and how wide its noise is.

use crate::derive::{ValueShape, expected_view};
use base::Error;
use privacy::scales::Scales;
use program::{DerivedStatistic, MechanismKind, Program};
use release::normal;
use release::rational::to_f64;
use serde::Serialize;
use study::{Question, Study};

/// The noise of one mechanism of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MechanismNoise {
    /// What the program calls it, and where.
    pub name: String,
    /// Who sees it.
    pub to: String,
    /// How many numbers it noises.
    pub outputs: usize,
    /// zCDP charged for it.
    pub rho: f64,
    /// Half of the 95 % interval of the noise, of the output that has most, in what the output counts; of a
    /// joint mechanism, that of the number of rows.
    pub half_width: f64,
}

/// How wide the intervals of a number that a program derives would be, were rows as a plan takes them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DerivedNoise {
    /// What the number is, without the group that it is of.
    pub name: String,
    /// Who sees it.
    pub to: String,
    /// The word of the program's text, such as `mean`.
    pub statistic: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// How many groups have one.
    pub groups: usize,
    /// Rows of each cell that it is computed from.
    pub rows: u64,
    /// zCDP charged for the sums that it is computed from; other numbers may be of the same ones.
    pub rho: f64,
    /// Mechanisms that noise these, by number.
    #[serde(skip)]
    pub mechanisms: Vec<u32>,
    /// Half of the 95 % interval that noise alone leaves, where values lie evenly over their ranges and half
    /// of the bits are set; absent where it leaves all open.
    pub noise: Option<f64>,
    /// The same where most values lie at the lower end, a tenth of the range above it in the mean, and a
    /// tenth of the bits are set.
    pub noise_low: Option<f64>,
    /// The same where one row of a hundred has such a value, all others the lower end, and one of a hundred
    /// bits is set.
    pub noise_rare: Option<f64>,
}

/// What a program derives, one for each number that is alike but for its group, were so many rows in all.
///
/// # Errors
/// None that a program which was verified has.
pub(super) fn derived(
    study: &Study,
    program: &Program,
    scales: &Scales,
    rows: u64,
) -> Result<Vec<DerivedNoise>, Error> {
    let mut all: Vec<DerivedNoise> = Vec::new();
    if !matches!(study.kind, Question::Program(_)) {
        return Ok(all);
    }
    for derived in &program.derived {
        let name = derived.label.split_once(", ").map_or(&*derived.label, |(head, _)| head);
        let to = derived.to.name(&program.parties);
        let mut mechanisms: Vec<u32> = derived.sums.iter().map(|at| at.mechanism).collect();
        mechanisms.sort_unstable();
        mechanisms.dedup();
        let alike =
            |one: &&mut DerivedNoise| (&*one.name, &*one.to, &one.mechanisms) == (name, to, &mechanisms);
        if let Some(known) = all.iter_mut().find(alike) {
            known.groups += 1;
            continue;
        }
        let first = &program.mechanisms[mechanisms[0] as usize].kind;
        let cells = match (&derived.statistic, first) {
            (_, MechanismKind::Joint { cells, .. }) => cells.len(),
            (DerivedStatistic::Quantile(..), kind) => kind.folds().len() / derived.sums.len(),
            (_, kind) => kind.folds().len(),
        };
        let rows = (rows / cells.max(1) as u64).max(1);
        let of = |shape| expected_view(program, scales, derived, (rows as f64, shape));
        let rho = mechanisms.iter().map(|m| to_f64(&program.mechanisms[*m as usize].rho)).sum();
        all.push(DerivedNoise {
            name: name.to_owned(),
            to: to.to_owned(),
            statistic: derived.statistic.word().to_owned(),
            unit: derived.unit.clone(),
            groups: 1,
            rows,
            rho,
            mechanisms,
            noise: of(ValueShape::Even)?.noise,
            noise_low: of(ValueShape::Low)?.noise,
            noise_rare: of(ValueShape::Rare)?.noise,
        });
    }
    Ok(all)
}

/// The mechanisms of a study of a program of its own.
pub(super) fn noise(study: &Study, program: &Program, scales: &Scales) -> Vec<MechanismNoise> {
    if !matches!(study.kind, Question::Program(_)) {
        return Vec::new();
    }
    let of = |(number, mechanism): (u32, &program::NoiseMechanism)| {
        let outputs = mechanism.kind.outputs();
        let deviation = |output: u32| to_f64(scales.sigma2(number, output)).sqrt();
        let widest = match mechanism.kind {
            MechanismKind::Joint { .. } => deviation(0),
            _ => (0..outputs as u32).map(deviation).fold(0.0, f64::max),
        };
        MechanismNoise {
            name: program.names.mechanism(number),
            to: mechanism.to.name(&program.parties).to_owned(),
            outputs,
            rho: to_f64(&mechanism.rho),
            half_width: normal::critical(0.95) * widest,
        }
    };
    (0..).zip(&program.mechanisms).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Assumed, Link, Speeds, plan_file};
    use study::StudyFile;

    fn planned(rows: u64) -> Vec<DerivedNoise> {
        let text = include_str!("../../../../examples/questions.toml");
        let last = "share risk-ratio of ill\n";
        let more = "count\nby all\ncorrelation of cost between -50 450 with ill\n\
                    regression of cost between -50 450 on ill\n";
        let text = text.replace(last, &format!("{last}{more}"));
        let file = StudyFile::parse("study.toml", &text).unwrap();
        let assumed = Assumed { rows: [rows; 2], both: None, outcome: None };
        let link = Link { bits_per_s: 1e10, round_trip_s: 1e-3 };
        plan_file(&file, &assumed, link, Speeds::default()).unwrap().derived_noise
    }

    /// The noise of a mean is that of a sum, divided by the rows; a count's does not hang on them.
    #[test]
    fn noise_is_less_with_more_rows() {
        let (few, many) = (planned(40_000), planned(80_000));
        assert!(few.len() > 3, "{few:?}");
        for (few, many) in few.iter().zip(&many) {
            let [few_noise, many_noise] = [few, many].map(|of| of.noise.unwrap());
            let ratio = few_noise / many_noise;
            match few.statistic.as_str() {
                "total" => assert_eq!(few_noise, many_noise, "{few:?}"),
                "ratio" => assert!(ratio > 1.5, "{few:?} {many:?}"),
                _ => assert!((ratio - 2.0).abs() < 0.2, "{few:?} {many:?}"),
            }
            let low = few.noise_low.unwrap();
            match few.statistic.as_str() {
                "total" => assert_eq!(low, few_noise),
                // Values that vary less say less of how they go together, if anything at all.
                "correlation" => {
                    assert!(low > 3.0 * few_noise, "{few:?}");
                    assert!(few.noise_rare.is_none_or(|rare| rare > 3.0 * low), "{few:?}");
                }
                _ => {}
            }
        }
    }
}
