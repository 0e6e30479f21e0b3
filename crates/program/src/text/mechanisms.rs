//! Mechanisms in the text form.

use super::{Parser, TextFault, Tokens, list};
use crate::graph::{DifferenceStatistic, MechanismKind, NoiseMechanism};
use release::joint::Change;

impl NoiseMechanism {
    /// What stands behind the name: `gaussian works 1/10 f0 f1`.
    pub(super) fn to_text(&self, parties: &[String]) -> String {
        let (to, rho) = (self.to.name(parties), &self.rho);
        match &self.kind {
            MechanismKind::Gaussian(folds) => {
                format!("gaussian {to} {rho}{}", list("f", folds.iter().copied()))
            }
            MechanismKind::Joint { change, clamp, cells } => {
                let (rows, folds) = (change_word(*change), list("f", cells.as_flattened().iter().copied()));
                format!("joint {to} {rho} rows {rows} clamp {clamp}{folds}")
            }
            MechanismKind::Difference { statistic, test, control } => {
                let (word, arms) = (statistic_word(*statistic), test.iter().chain(control).copied());
                format!("{word} {to} {rho}{}", list("f", arms))
            }
        }
    }
}

impl Parser {
    pub(super) fn mechanism(&self, op: &str, at: usize, t: &mut Tokens) -> Result<NoiseMechanism, TextFault> {
        let to = self.viewer(t)?;
        let rho = t.parsed("a share of rho such as 1/40 or 0.025", release::rational::parse)?;
        let joint = if op == "joint" { Some(Self::joint(t)?) } else { None };
        let mut folds = Vec::new();
        while t.peek().is_some() {
            folds.push(self.fold(t)?);
        }
        let kind = if let Some((change, clamp)) = joint {
            let (cells, rest) = folds.as_chunks();
            if !rest.is_empty() {
                return Err((at, "joint takes n, S, Q of each cell: three folds a cell".to_owned()));
            }
            MechanismKind::Joint { change, clamp, cells: cells.to_vec() }
        } else if op == "gaussian" {
            MechanismKind::Gaussian(folds)
        } else {
            let &[a, b, c, d, e, f] = folds.as_slice() else {
                return Err((
                    at,
                    format!("{op} takes n, S, Q of the test arm and of the control arm: six folds"),
                ));
            };
            let statistic = match op {
                "variance" => DifferenceStatistic::Variance,
                "algorithm1" => DifferenceStatistic::Algorithm1,
                _ => DifferenceStatistic::Algorithm1AsPublished,
            };
            MechanismKind::Difference { statistic, test: [a, b, c], control: [d, e, f] }
        };
        Ok(NoiseMechanism { to, rho, kind })
    }

    /// `rows hidden clamp 200`: whether the viewer knows n, and R.
    fn joint(t: &mut Tokens) -> Result<(Change, u128), TextFault> {
        t.parsed("rows", |word| (word == "rows").then_some(()))?;
        let both = [Change::Outcome, Change::Person];
        let change =
            t.parsed("known or hidden", |word| both.into_iter().find(|c| change_word(*c) == word))?;
        t.parsed("clamp", |word| (word == "clamp").then_some(()))?;
        let clamp = t.parsed("the most that a row adds, a whole number", |word| word.parse().ok())?;
        Ok((change, clamp))
    }
}

fn change_word(change: Change) -> &'static str {
    match change {
        Change::Outcome => "known",
        Change::Person => "hidden",
    }
}

fn statistic_word(statistic: DifferenceStatistic) -> &'static str {
    match statistic {
        DifferenceStatistic::Variance => "variance",
        DifferenceStatistic::Algorithm1 => "algorithm1",
        DifferenceStatistic::Algorithm1AsPublished => "algorithm1-as-published",
    }
}
