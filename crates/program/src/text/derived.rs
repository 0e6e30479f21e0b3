//! Derived outputs in the text form.

use super::{Parser, TextFault, Tokens, number};
use crate::{DerivedOutput, DerivedStatistic, SumPlace, Variable};
use release::rational;

impl Parser {
    /// What stands behind `derive`.
    pub(super) fn derived(&self, t: &mut Tokens) -> Result<DerivedOutput, TextFault> {
        let (word, at) = t.take("what is derived, such as mean")?;
        let mut statistic = match word.as_str() {
            "coefficient" => {
                DerivedStatistic::Coefficient(t.parsed("its number, 0 for the constant", place)?)
            }
            "quantile" => {
                let share = t.parsed("a share such as 1/4", rational::parse)?;
                DerivedStatistic::Quantile(share, Vec::new())
            }
            word => Self::statistic(word).ok_or_else(|| (at, format!("nothing is derived as {word:?}")))?,
        };
        let to = self.viewer(t)?;
        let (label, unit) = (t.string("a label")?, t.string("a unit, which may be empty")?);
        t.parsed("sums", |word| (word == "sums").then_some(()))?;
        let mut sums = Vec::new();
        while t.peek().is_some_and(|word| !matches!(word, "of" | "edges")) {
            let mechanism = t.parsed("a mechanism", |n| self.mechanisms.get(n).copied())?;
            let place = t.parsed("the number of its output or cell", place)?;
            sums.push(SumPlace { mechanism, place });
        }
        let mut variables = Vec::new();
        while t.peek() == Some("of") {
            t.take("of")?;
            let mut end = |what: &str| t.parsed(what, |n| n.parse::<i64>().ok());
            let (origin, low, high) =
                (end("the origin")?, end("the least value")?, end("the largest value")?);
            let scale = t.parsed("the scale", |n| number(n)?.try_into().ok())?;
            variables.push(Variable { origin, low, high, scale });
        }
        if let DerivedStatistic::Quantile(_, edges) = &mut statistic {
            t.parsed("edges", |word| (word == "edges").then_some(()))?;
            while t.peek().is_some() {
                edges.push(t.parsed("an edge", |n| n.parse().ok())?);
            }
        }
        Ok(DerivedOutput { label, to, unit, statistic, sums, variables })
    }

    fn statistic(word: &str) -> Option<DerivedStatistic> {
        let all = [
            DerivedStatistic::Total,
            DerivedStatistic::Mean,
            DerivedStatistic::Variance,
            DerivedStatistic::StandardDeviation,
            DerivedStatistic::Difference,
            DerivedStatistic::Ratio,
            DerivedStatistic::OddsRatio,
            DerivedStatistic::NeededToTreat,
            DerivedStatistic::Covariance,
            DerivedStatistic::Correlation,
        ];
        all.into_iter().find(|statistic| statistic.word() == word)
    }
}

fn place(text: &str) -> Option<u32> {
    number(text)?.try_into().ok()
}
