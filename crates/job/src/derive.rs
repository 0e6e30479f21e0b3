//! From noised sums that a viewer sees to what its program derives from them.

mod expected;

use base::Error;
use privacy::scales::Scales;
use program::{DerivedOutput, DerivedStatistic, MechanismKind, Op, Program, SumPlace, Variable, Viewer};
use release::derived::{
    CellMean, DerivedEstimate, NoisyMoments, correlation, covariance, difference, least_squares, mean,
    needed_to_treat, odds_ratio, proportion, quantile, ratio, risk_ratio, standard_deviation, variance,
};
use release::normal;
use release::rational::to_f64;
use report::DerivedView;

/// The level of every interval.
const LEVEL: f64 = 0.95;
/// The least p-value that is told apart: below it intervals lie beyond where their coverage was simulated.
const LEAST_P: f64 = 1e-6;
/// How often the range of p-values is halved: to a hundred-thousandth of what is found.
const HALVINGS: u32 = 20;

/// Everything that a viewer derives, from its outputs by number.
///
/// # Errors
/// When a program derives what its sums are not of.
pub fn derived_views(
    program: &Program,
    scales: &Scales,
    seen: (Viewer, &[(usize, i128)]),
) -> Result<Vec<DerivedView>, Error> {
    let (own, sums) = NoisedSums::of(program, scales, seen);
    let tested =
        |derived: &&DerivedOutput| Ok(DerivedView { p_value: sums.p_value(derived)?, ..sums.view(derived)? });
    let mut views = own.iter().map(tested).collect::<Result<Vec<_>, Error>>()?;
    adjust(&own, &mut views);
    Ok(views)
}

/// The same without p-values, each of which takes as many intervals as its range is halved: for many draws.
///
/// # Errors
/// As [`derived_views`].
pub fn untested_views(
    program: &Program,
    scales: &Scales,
    seen: (Viewer, &[(usize, i128)]),
) -> Result<Vec<DerivedView>, Error> {
    let (own, sums) = NoisedSums::of(program, scales, seen);
    own.iter().map(|derived| sums.view(derived)).collect()
}

pub use expected::ValueShape;

/// What a viewer would derive of a number if each of its cells had so many rows, whose values lay so in their
/// ranges and did not depend on each other: how wide its intervals are then.
///
/// # Errors
/// As [`derived_views`].
pub fn expected_view(
    program: &Program,
    scales: &Scales,
    derived: &DerivedOutput,
    rows: (f64, ValueShape),
) -> Result<DerivedView, Error> {
    let numbers = expected::numbers(program, scales, derived, rows)?;
    let seen = (derived.to, &numbers[..]);
    NoisedSums::of(program, scales, seen).1.view(derived)
}

/// What a derived number tests: sums, and which coefficient of a regression. A difference, a ratio and odds
/// of the same two cells test one hypothesis.
fn hypothesis(derived: &DerivedOutput) -> (&[SumPlace], u32) {
    let number = if let DerivedStatistic::Coefficient(number) = derived.statistic { number } else { 0 };
    (&derived.sums, number)
}

/// Adjusts p-values for the number of hypotheses. Of several tests of one hypothesis the largest p-value
/// counts: it holds for each of them.
fn adjust(own: &[&DerivedOutput], views: &mut [DerivedView]) {
    let mut tested: Vec<((&[SumPlace], u32), f64)> = Vec::new();
    for (derived, view) in own.iter().zip(views.iter()) {
        let (of, Some(p_value)) = (hypothesis(derived), view.p_value) else { continue };
        match tested.iter_mut().find(|(met, _)| *met == of) {
            Some((_, largest)) => *largest = largest.max(p_value),
            None => tested.push((of, p_value)),
        }
    }
    let adjusted = release::holm(&tested.iter().map(|(_, p_value)| *p_value).collect::<Vec<_>>());
    for (derived, view) in own.iter().zip(views.iter_mut()).filter(|(_, view)| view.p_value.is_some()) {
        let place = tested.iter().position(|(met, _)| *met == hypothesis(derived));
        view.holm = place.map(|at| adjusted[at]);
    }
}

/// Where there is no difference, or no association; none of a level, which nothing is compared with.
fn no_effect(statistic: &DerivedStatistic) -> Option<f64> {
    match statistic {
        DerivedStatistic::Ratio | DerivedStatistic::OddsRatio => Some(1.0),
        DerivedStatistic::Difference
        | DerivedStatistic::NeededToTreat
        | DerivedStatistic::Covariance
        | DerivedStatistic::Correlation
        | DerivedStatistic::Coefficient(1..) => Some(0.0),
        _ => None,
    }
}

/// The least p at which the interval of level 1 - p leaves `none` out, from above; no less than [`LEAST_P`].
fn inverted(none: f64, interval: impl Fn(f64) -> Result<[f64; 2], Error>) -> Result<f64, Error> {
    let leaves_out = |p: f64| interval(1.0 - p).map(|[low, high]| low > none || high < none);
    if leaves_out(LEAST_P)? {
        return Ok(LEAST_P);
    }
    let (mut kept, mut left_out) = (LEAST_P.ln(), 0.0f64);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (kept + left_out);
        *(if leaves_out(middle.exp())? { &mut left_out } else { &mut kept }) = middle;
    }
    Ok(left_out.exp())
}

struct NoisedSums<'a> {
    program: &'a Program,
    scales: &'a Scales,
    viewer: Viewer,
    numbers: &'a [(usize, i128)],
}

impl<'a> NoisedSums<'a> {
    /// What a viewer derives, and what from.
    fn of(
        program: &'a Program,
        scales: &'a Scales,
        (viewer, numbers): (Viewer, &'a [(usize, i128)]),
    ) -> (Vec<&'a DerivedOutput>, Self) {
        let own = program.derived.iter().filter(|derived| derived.to == viewer && !numbers.is_empty());
        (own.collect(), Self { program, scales, viewer, numbers })
    }

    fn view(&self, derived: &DerivedOutput) -> Result<DerivedView, Error> {
        if derived.statistic == DerivedStatistic::NeededToTreat {
            return self.treat(derived);
        }
        let DerivedEstimate { value, low, high, noise } = self.estimate(derived, LEVEL)?;
        Ok(shown(derived, value, vec![[low, high]], noise))
    }

    fn p_value(&self, derived: &DerivedOutput) -> Result<Option<f64>, Error> {
        let interval = |level: f64| self.estimate(derived, level).map(|found| [found.low, found.high]);
        no_effect(&derived.statistic).map(|none| inverted(none, interval)).transpose()
    }

    /// At another level than a report's: its ends alone. Of a number needed to treat the difference of shares
    /// that it is one over.
    fn estimate(&self, derived: &DerivedOutput, level: f64) -> Result<DerivedEstimate, Error> {
        Ok(match &derived.statistic {
            DerivedStatistic::Total => self.total(derived, level)?,
            DerivedStatistic::Mean if derived.variables[0].is_bit() => {
                proportion(&self.cell(derived, 0)?, level)?
            }
            DerivedStatistic::Mean => mean(&self.cell(derived, 0)?, range(derived.variables[0]), level)?,
            DerivedStatistic::Variance => {
                variance(&self.spread_of(derived, 0)?, range(derived.variables[0]), level)?
            }
            DerivedStatistic::StandardDeviation => {
                standard_deviation(&self.spread_of(derived, 0)?, range(derived.variables[0]), level)?
            }
            DerivedStatistic::Difference | DerivedStatistic::NeededToTreat => {
                self.compare(derived, difference, level)?
            }
            DerivedStatistic::Ratio if derived.variables[0].is_bit() => {
                self.compare(derived, risk_ratio, level)?
            }
            DerivedStatistic::Ratio => self.compare(derived, ratio, level)?,
            DerivedStatistic::OddsRatio => self.compare(derived, odds_ratio, level)?,
            DerivedStatistic::Covariance => covariance(&self.pair(derived)?, self.ranges(derived), level)?,
            DerivedStatistic::Correlation => correlation(&self.pair(derived)?, self.ranges(derived), level)?,
            DerivedStatistic::Coefficient(number) => self.coefficient(derived, (*number, level))?,
            DerivedStatistic::Quantile(share, edges) => {
                let scale = derived.variables[0].scale as f64;
                let edges: Vec<f64> = edges.iter().map(|edge| *edge as f64 / scale).collect();
                quantile(&self.sums(derived)?, &edges, to_f64(share), level)?
            }
        })
    }

    /// An output of a mechanism without the mean of its noise, and the variance of that.
    fn output(&self, mechanism: u32, output: u32) -> Result<(i128, f64), Error> {
        let shown = |(index, _): &&(usize, i128)| {
            let node = self.program.outputs[*index].value;
            self.program.release.node(node).op == Op::Noised(mechanism, output)
        };
        let (_, value) = self.numbers.iter().find(shown).ok_or_else(|| {
            Error::misuse(format!("{} does not see output {output} of mechanism {mechanism}", {
                self.viewer.name(&self.program.parties)
            }))
        })?;
        Ok((*value, to_f64(self.scales.sigma2(mechanism, output))))
    }

    /// Independent sums of Gaussian mechanisms; one that stands there twice is the same one.
    fn sums(&self, derived: &DerivedOutput) -> Result<NoisyMoments, Error> {
        let mut places: Vec<SumPlace> = Vec::new();
        for at in &derived.sums {
            if !places.contains(at) {
                places.push(*at);
            }
        }
        let (mut values, mut variances) = (Vec::new(), Vec::new());
        for SumPlace { mechanism, place } in &places {
            let (value, variance) = self.output(*mechanism, *place)?;
            values.push(value as f64 - self.scales.mean(*mechanism, *place));
            variances.push(variance);
        }
        let row = |at: &SumPlace| places.iter().map(|of| f64::from(u8::from(of == at))).collect();
        let weights: Vec<Vec<f64>> = derived.sums.iter().map(row).collect();
        NoisyMoments::independent(values, &variances)?.combined(&weights)
    }

    /// A sum in its unit; its interval is of noise alone.
    fn total(&self, derived: &DerivedOutput, level: f64) -> Result<DerivedEstimate, Error> {
        let SumPlace { mechanism, place } = derived.sums[0];
        let (value, variance) = self.output(mechanism, place)?;
        let scale = derived.variables[0].scale as f64;
        let value = (value as f64 - self.scales.mean(mechanism, place)) / scale;
        let noise = normal::critical(level) * variance.sqrt() / scale;
        Ok(DerivedEstimate { value: Some(value), low: value - noise, high: value + noise, noise })
    }

    /// n, S and Q of a cell in the variable's unit, from its lower end; of a bit, n and S.
    fn cell(&self, derived: &DerivedOutput, number: usize) -> Result<NoisyMoments, Error> {
        let moments = self.spread_of(derived, number)?;
        if !derived.variables[0].is_bit() {
            return Ok(moments);
        }
        moments.combined(&[vec![1.0, 0.0, 0.0], vec![0.0, 1.0, 0.0]])
    }

    fn spread_of(&self, derived: &DerivedOutput, number: usize) -> Result<NoisyMoments, Error> {
        let SumPlace { mechanism, place } = derived.sums[number];
        let kind = &self.program.mechanisms[mechanism as usize].kind;
        let (MechanismKind::Joint { change, clamp, .. }, Some(family)) = (kind, self.scales.joint(mechanism))
        else {
            return Err(Error::misuse("a cell is one of a joint mechanism"));
        };
        let each = change.combinations(*clamp).len() as u32;
        let noised = (place * each..(place + 1) * each).map(|output| Ok(self.output(mechanism, output)?.0));
        let values = family.decode(&noised.collect::<Result<Vec<_>, Error>>()?, 0);
        let covariance = family.covariance().map(Vec::from);
        let unit = 1.0 / derived.variables[0].scale as f64;
        let scaled = [vec![1.0, 0.0, 0.0], vec![0.0, unit, 0.0], vec![0.0, 0.0, unit * unit]];
        NoisyMoments::new(values.to_vec(), &covariance)?.combined(&scaled)
    }

    fn means(&self, derived: &DerivedOutput) -> Result<[CellMean; 2], Error> {
        let variable = derived.variables[0];
        let one = |number: usize| {
            let moments = self.cell(derived, number)?;
            if variable.is_bit() {
                CellMean::of_bit(&moments)
            } else {
                CellMean::of_value(&moments, range(variable))
            }
        };
        Ok([one(0)?, one(1)?])
    }

    fn compare(
        &self,
        derived: &DerivedOutput,
        of: fn(&CellMean, &CellMean, f64) -> Result<DerivedEstimate, Error>,
        level: f64,
    ) -> Result<DerivedEstimate, Error> {
        let [tested, reference] = self.means(derived)?;
        of(&tested, &reference, level)
    }

    /// Two intervals where an effect may be none: more with the outcome, or fewer (counted below 0).
    fn treat(&self, derived: &DerivedOutput) -> Result<DerivedView, Error> {
        let [treated, control] = self.means(derived)?;
        let number = needed_to_treat(&treated, &control, LEVEL)?;
        let fewer = number.fewer.map(|[least, most]| [-most, -least]);
        let intervals = [fewer, number.more].into_iter().flatten().collect();
        let relative = number.value.map(|value| number.difference.noise * value * value);
        Ok(shown(derived, number.value, intervals, relative.unwrap_or(f64::INFINITY)))
    }

    fn ranges(&self, derived: &DerivedOutput) -> [[f64; 2]; 2] {
        [0, 1].map(|at| range(derived.variables[at]))
    }

    /// n, Sx, Sy, Sxx, Sxy, Syy in the variables' units, from their lower ends.
    fn pair(&self, derived: &DerivedOutput) -> Result<NoisyMoments, Error> {
        let [x, y] = [0, 1].map(|at| derived.variables[at]);
        // A row's number, from its origin, is c; from the lower end of its range it is (c + h) / scale.
        let from_low = |v: Variable| [(v.origin - v.low) as f64, 1.0 / v.scale as f64];
        let ([h, a], [k, b]) = (from_low(x), from_low(y));
        let weights = [
            vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            vec![a * h, a, 0.0, 0.0, 0.0, 0.0],
            vec![b * k, 0.0, b, 0.0, 0.0, 0.0],
            vec![a * a * h * h, 2.0 * a * a * h, 0.0, a * a, 0.0, 0.0],
            vec![a * b * h * k, a * b * k, a * b * h, 0.0, 0.0, a * b],
            vec![b * b * k * k, 0.0, 2.0 * b * b * k, 0.0, b * b, 0.0],
        ];
        self.sums(derived)?.combined(&weights)
    }

    /// Slopes are those of centred values, which the sums are of; the constant is that of the values.
    fn coefficient(
        &self,
        derived: &DerivedOutput,
        (number, level): (u32, f64),
    ) -> Result<DerivedEstimate, Error> {
        let covariates = derived.variables.len() - 1;
        let moved = number == 0;
        let products = self.sums(derived)?.combined(&products(&derived.variables, moved))?;
        Ok(least_squares(&products, covariates, level)?[number as usize])
    }
}

/// Products of 1 and the variables in their units, row by row of the upper triangle, as weights of the sums
/// of [`DerivedStatistic::Coefficient`]; from their origins, or `moved` to where they are.
fn products(variables: &[Variable], moved: bool) -> Vec<Vec<f64>> {
    let (count, k) = (variables.len(), variables.len() - 1);
    let sums = program::regression_sums(k);
    // Where the sum of a product lies; 0 stands for the factor 1.
    let place = |i: usize, j: usize| match (i.min(j), i.max(j)) {
        (0, j) => j,
        (i, j) if j <= k => 1 + count + (1..i).map(|row| k + 1 - row).sum::<usize>() + j - i,
        (i, _) if i <= k => 1 + count + k * (k + 1) / 2 + i - 1,
        _ => sums - 1,
    };
    // 1 is 1; a value is (c + origin) / scale.
    let parts = |i: usize| match i.checked_sub(1).map(|at| variables[at]) {
        None => [1.0, 0.0],
        Some(v) => {
            let origin = if moved { v.origin as f64 } else { 0.0 };
            [origin / v.scale as f64, 1.0 / v.scale as f64]
        }
    };
    let mut weights = Vec::new();
    for i in 0..=count {
        for j in i..=count {
            let ([a0, a1], [b0, b1]) = (parts(i), parts(j));
            let mut row = vec![0.0; sums];
            row[place(0, 0)] += a0 * b0;
            row[place(0, j)] += a0 * b1;
            row[place(0, i)] += a1 * b0;
            if a1 * b1 != 0.0 {
                row[place(i, j)] += a1 * b1;
            }
            weights.push(row);
        }
    }
    weights
}

fn range(variable: Variable) -> [f64; 2] {
    [variable.low, variable.high].map(|end| end as f64 / variable.scale as f64)
}

/// The least and the greatest value that a number can have, where it has bounds: there intervals are cut.
fn possible(derived: &DerivedOutput) -> Option<[Option<f64>; 2]> {
    let variables = &derived.variables;
    let width = |at: usize| {
        let [low, high] = range(variables[at]);
        high - low
    };
    let [least, most] = match &derived.statistic {
        DerivedStatistic::Mean => range(variables[0]),
        DerivedStatistic::Variance => [0.0, 0.25 * width(0) * width(0)],
        DerivedStatistic::StandardDeviation => [0.0, 0.5 * width(0)],
        DerivedStatistic::Difference => [-width(0), width(0)],
        DerivedStatistic::Covariance => [-1.0, 1.0].map(|sign| sign * 0.25 * width(0) * width(1)),
        DerivedStatistic::Correlation => [-1.0, 1.0],
        DerivedStatistic::Ratio if range(variables[0])[0] >= 0.0 => return Some([Some(0.0), None]),
        DerivedStatistic::OddsRatio => return Some([Some(0.0), None]),
        DerivedStatistic::Quantile(_, edges) => {
            let end = |edge: Option<&i64>| edge.map(|edge| *edge as f64 / variables[0].scale as f64);
            return Some([end(edges.first()), end(edges.last())]);
        }
        _ => return None,
    };
    Some([Some(least), Some(most)])
}

fn shown(derived: &DerivedOutput, value: Option<f64>, intervals: Vec<[f64; 2]>, noise: f64) -> DerivedView {
    let finite = |number: f64| number.is_finite().then_some(number);
    DerivedView {
        label: derived.label.clone(),
        statistic: derived.statistic.word().to_owned(),
        unit: derived.unit.clone(),
        value: value.and_then(finite),
        intervals: intervals.into_iter().map(|ends| ends.map(finite)).collect(),
        level: LEVEL,
        noise: finite(noise),
        range: possible(derived),
        p_value: None,
        holm: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an interval of normal theory, the p-value is that of normal theory.
    #[test]
    fn an_interval_is_inverted() {
        let around = |estimate: f64| {
            move |level: f64| {
                let z = normal::critical(level);
                Ok([estimate - z, estimate + z])
            }
        };
        for estimate in [0.0f64, 0.01, 0.5, 1.0, -1.96, 3.0, 4.8] {
            let p_value = inverted(0.0, around(estimate)).expect("a level between 0 and 1");
            let exact = 2.0 * normal::normal_upper(estimate.abs());
            assert!(p_value >= exact && p_value <= exact * (1.0 + 2e-5), "{estimate}: {p_value} {exact}");
        }
        assert_eq!(inverted(0.0, around(9.0)).expect("in range"), LEAST_P);
        assert_eq!(inverted(0.0, |_| Ok([f64::NEG_INFINITY, f64::INFINITY])).expect("in range"), 1.0);
    }

    /// Statistics of the same two cells are one hypothesis, for which the largest p-value counts.
    #[test]
    fn what_says_the_same_counts_once() {
        let place = |place: u32| SumPlace { mechanism: 0, place };
        let one = |statistic: DerivedStatistic, other: u32| DerivedOutput {
            label: String::new(),
            to: Viewer::Public,
            statistic,
            sums: vec![place(0), place(other)],
            variables: vec![Variable::COUNT],
            unit: String::new(),
        };
        let derived = [
            (one(DerivedStatistic::Difference, 1), Some(0.02)),
            (one(DerivedStatistic::Ratio, 1), Some(0.03)),
            (one(DerivedStatistic::Difference, 2), Some(0.04)),
            (one(DerivedStatistic::Mean, 1), None),
        ];
        let mut views: Vec<DerivedView> = derived
            .iter()
            .map(|(of, p_value)| DerivedView { p_value: *p_value, ..shown(of, Some(0.0), Vec::new(), 1.0) })
            .collect();
        adjust(&derived.iter().map(|(of, _)| of).collect::<Vec<_>>(), &mut views);
        // Two hypotheses, of 0.03 and 0.04.
        let holm: Vec<Option<f64>> = views.iter().map(|view| view.holm).collect();
        assert_eq!(holm, [Some(0.06), Some(0.06), Some(0.06), None]);
    }
}
