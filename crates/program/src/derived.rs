//! Derived outputs: what everybody who sees noised sums computes from them after the release. They cost no
//! privacy and no message; they are part of the program, so that all parties agree on what is read into a
//! number.

use crate::graph::MechanismKind;
use crate::names::quote;
use crate::{CellKind, Op, Program, Viewer};
use release::rational::{Rational, ratio};
use std::collections::HashSet;
use std::fmt::Write;

/// Most values that a regression explains a value by.
pub const COVARIATES: usize = release::derived::COVARIATES_MAX;
/// Most edges of a histogram of which quantiles are read.
pub const EDGES: usize = 257;

/// A value that sums are of, in whole numbers of `1 / scale` of its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// What is taken off each row's value before it is summed.
    pub origin: i64,
    /// The least value.
    pub low: i64,
    /// The largest value.
    pub high: i64,
    /// Parts of its unit, 1 to [`CellKind::SCALE`].
    pub scale: u64,
}

impl Variable {
    /// A count of rows.
    pub const COUNT: Self = Self { origin: 0, low: 0, high: 1, scale: 1 };

    /// Whether it is 0 or 1.
    #[must_use]
    pub fn is_bit(self) -> bool {
        self == Self::COUNT
    }
}

/// Where a sum lies: of a Gaussian mechanism the output of that number, of a joint one n, S and Q of the cell
/// of that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SumPlace {
    /// The mechanism.
    pub mechanism: u32,
    /// Its output or cell.
    pub place: u32,
}

/// What is derived. Sums and variables follow in the order that is said here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DerivedStatistic {
    /// A sum: one output, one variable.
    Total,
    /// The mean: one joint cell, one variable; of a bit, its share.
    Mean,
    /// The variance: one joint cell, one variable.
    Variance,
    /// Its square root: one joint cell, one variable.
    StandardDeviation,
    /// Difference of two means: two joint cells, the second one taken off; one variable.
    Difference,
    /// Ratio of two means: as `Difference`; of a bit, the risk ratio.
    Ratio,
    /// Ratio of the odds of a bit: as `Difference`.
    OddsRatio,
    /// One over the difference of two shares of a bit: as `Difference`.
    NeededToTreat,
    /// The covariance: n, sums of x, y, x^2, y^2 and x y, an output each; two variables.
    Covariance,
    /// The correlation: as `Covariance`.
    Correlation,
    /// A coefficient of a least-squares fit of y by x1 .. xk with a constant, 0 for the constant: n, sums of
    /// x1 .. xk, of y, of xi xj for i <= j by rows, of xi y, of y^2; variables x1 .. xk, y.
    Coefficient(u32),
    /// A quantile: counts of a histogram's bins, an output each; the edges of the bins; one variable.
    Quantile(Rational, Vec<i64>),
}

impl DerivedStatistic {
    /// Its word in the text form.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Mean => "mean",
            Self::Variance => "variance",
            Self::StandardDeviation => "standard-deviation",
            Self::Difference => "difference",
            Self::Ratio => "ratio",
            Self::OddsRatio => "odds-ratio",
            Self::NeededToTreat => "needed-to-treat",
            Self::Covariance => "covariance",
            Self::Correlation => "correlation",
            Self::Coefficient(_) => "coefficient",
            Self::Quantile(..) => "quantile",
        }
    }

    /// How many sums it is made of, with so many variables.
    fn sums(&self, variables: usize) -> usize {
        match self {
            Self::Total | Self::Mean | Self::Variance | Self::StandardDeviation => 1,
            Self::Difference | Self::Ratio | Self::OddsRatio | Self::NeededToTreat => 2,
            Self::Covariance | Self::Correlation => 6,
            Self::Coefficient(_) => regression_sums(variables.saturating_sub(1)),
            Self::Quantile(_, edges) => edges.len().saturating_sub(1),
        }
    }

    /// How many variables it is of, at least and at most.
    fn variables(&self) -> [usize; 2] {
        match self {
            Self::Covariance | Self::Correlation => [2, 2],
            Self::Coefficient(_) => [2, COVARIATES + 1],
            _ => [1, 1],
        }
    }

    /// Whether its sums are cells of joint mechanisms.
    fn is_of_cells(&self) -> bool {
        matches!(
            self,
            Self::Mean
                | Self::Variance
                | Self::StandardDeviation
                | Self::Difference
                | Self::Ratio
                | Self::OddsRatio
                | Self::NeededToTreat
        )
    }
}

/// Sums of a regression on so many values: n, of each, of y, of products, with y, of y^2.
#[must_use]
pub fn regression_sums(covariates: usize) -> usize {
    1 + covariates + 1 + covariates * (covariates + 1) / 2 + covariates + 1
}

/// A number that its viewer computes from noised sums that it sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedOutput {
    /// Label shown to the user.
    pub label: String,
    /// Who computes it.
    pub to: Viewer,
    /// The unit, or nothing.
    pub unit: String,
    /// What it is.
    pub statistic: DerivedStatistic,
    /// What it is made of.
    pub sums: Vec<SumPlace>,
    /// The values that the sums are of.
    pub variables: Vec<Variable>,
}

impl DerivedOutput {
    /// The line of the canonical text.
    pub(crate) fn to_text(&self, parties: &[String]) -> String {
        let mut text = format!("derive {}", self.statistic.word());
        let _ = match &self.statistic {
            DerivedStatistic::Coefficient(number) => write!(text, " {number}"),
            DerivedStatistic::Quantile(share, _) => write!(text, " {share}"),
            _ => Ok(()),
        };
        let _ = write!(text, " {} {} {} sums", self.to.name(parties), quote(&self.label), quote(&self.unit));
        for at in &self.sums {
            let _ = write!(text, " m{} {}", at.mechanism, at.place);
        }
        for v in &self.variables {
            let _ = write!(text, " of {} {} {} {}", v.origin, v.low, v.high, v.scale);
        }
        if let DerivedStatistic::Quantile(_, edges) = &self.statistic {
            text.push_str(" edges");
            edges.iter().for_each(|edge| {
                let _ = write!(text, " {edge}");
            });
        }
        text
    }

    /// Checks that it is made of what its viewer sees.
    fn check(&self, program: &Program, seen: &SeenSums) -> Result<(), String> {
        let of = format!("the derived output {:?}", self.label);
        let [least, most] = self.statistic.variables();
        let (sums, variables) = (self.sums.len(), self.variables.len());
        if !(least..=most).contains(&variables) || sums != self.statistic.sums(variables) {
            let word = self.statistic.word();
            return Err(format!("{of} has {sums} sums and {variables} variables, which no {word} has"));
        }
        for Variable { origin, low, high, scale } in &self.variables {
            let near = low.checked_sub(*origin).is_some() && high.checked_sub(*origin).is_some();
            if low >= high || !near || !(1..=CellKind::SCALE.into()).contains(scale) {
                return Err(format!("{of}: a variable from {low} to {high} by {scale}"));
            }
        }
        match &self.statistic {
            DerivedStatistic::Coefficient(number) if *number as usize >= variables => {
                return Err(format!("{of}: a fit of {variables} variables has no coefficient {number}"));
            }
            DerivedStatistic::Quantile(share, edges) => {
                let inside = *share > ratio(0, 1) && *share < ratio(1, 1);
                if !inside || edges.len() > EDGES || !edges.is_sorted_by(|a, b| a < b) {
                    return Err(format!("{of}: a quantile is between 0 and 1, of edges that ascend"));
                }
            }
            _ => {}
        }
        if program.class != crate::Class::Dp {
            return Err(format!("{of} is of noised sums; a program of class exact has none"));
        }
        self.sums
            .iter()
            .try_for_each(|at| self.check_sum((program, seen), *at))
            .map_err(|text| format!("{of} {text}"))
    }

    fn check_sum(
        &self,
        (program, seen): (&Program, &SeenSums),
        SumPlace { mechanism, place }: SumPlace,
    ) -> Result<(), String> {
        let made = program.mechanisms.get(mechanism as usize);
        let made = made.filter(|m| m.to == self.to).ok_or("is of a mechanism for another viewer")?;
        let outputs = match &made.kind {
            MechanismKind::Joint { change, clamp, cells } if self.statistic.is_of_cells() => {
                let each = change.combinations(*clamp).len() as u32;
                let bounds = self.variables.iter().all(|v| {
                    v.origin == v.low && v.low.abs_diff(v.high) == u64::try_from(*clamp).unwrap_or(u64::MAX)
                });
                if !bounds || place as usize >= cells.len() {
                    return Err(
                        "is of a cell that is not there, or of another range than its variable".into()
                    );
                }
                place * each..(place + 1) * each
            }
            MechanismKind::Gaussian(folds) if !self.statistic.is_of_cells() => {
                if place as usize >= folds.len() {
                    return Err("is of an output that is not there".into());
                }
                place..place + 1
            }
            _ => return Err("is of a mechanism of another kind".into()),
        };
        let mut outputs = outputs.into_iter();
        if outputs.all(|output| seen.contains(&(self.to, mechanism, output))) {
            Ok(())
        } else {
            Err("is of sums that are not revealed".into())
        }
    }
}

/// The noised sums that each viewer sees: viewer, mechanism, output.
type SeenSums = HashSet<(Viewer, u32, u32)>;

impl Program {
    /// Checks that what is derived is made of what its viewer sees.
    pub(crate) fn check_derived(&self) -> Result<(), String> {
        let sum = |output: &crate::OutputValue| match self.release.node(output.value).op {
            Op::Noised(mechanism, number) => Some((output.to, mechanism, number)),
            _ => None,
        };
        let seen: SeenSums = self.outputs.iter().filter_map(sum).collect();
        self.derived.iter().try_for_each(|derived| derived.check(self, &seen))
    }
}
