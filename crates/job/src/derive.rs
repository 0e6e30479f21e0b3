//! From noised sums that a viewer sees to what its program derives from them.

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

/// Everything that a viewer derives, from its outputs by number.
///
/// # Errors
/// When a program derives what its sums are not of.
pub fn derived_views(
    program: &Program,
    scales: &Scales,
    (viewer, numbers): (Viewer, &[(usize, i128)]),
) -> Result<Vec<DerivedView>, Error> {
    let sums = NoisedSums { program, scales, viewer, numbers };
    let own = program.derived.iter().filter(|derived| derived.to == viewer);
    own.filter(|_| !numbers.is_empty()).map(|derived| sums.view(derived)).collect()
}

struct NoisedSums<'a> {
    program: &'a Program,
    scales: &'a Scales,
    viewer: Viewer,
    numbers: &'a [(usize, i128)],
}

impl NoisedSums<'_> {
    fn view(&self, derived: &DerivedOutput) -> Result<DerivedView, Error> {
        let estimate = match &derived.statistic {
            DerivedStatistic::NeededToTreat => return self.treat(derived),
            DerivedStatistic::Total => self.total(derived)?,
            DerivedStatistic::Mean if derived.variables[0].is_bit() => {
                proportion(&self.cell(derived, 0)?, LEVEL)?
            }
            DerivedStatistic::Mean => mean(&self.cell(derived, 0)?, range(derived.variables[0]), LEVEL)?,
            DerivedStatistic::Variance => {
                variance(&self.spread_of(derived, 0)?, range(derived.variables[0]), LEVEL)?
            }
            DerivedStatistic::StandardDeviation => {
                standard_deviation(&self.spread_of(derived, 0)?, range(derived.variables[0]), LEVEL)?
            }
            DerivedStatistic::Difference => self.compare(derived, difference)?,
            DerivedStatistic::Ratio if derived.variables[0].is_bit() => self.compare(derived, risk_ratio)?,
            DerivedStatistic::Ratio => self.compare(derived, ratio)?,
            DerivedStatistic::OddsRatio => self.compare(derived, odds_ratio)?,
            DerivedStatistic::Covariance => covariance(&self.pair(derived)?, self.ranges(derived), LEVEL)?,
            DerivedStatistic::Correlation => correlation(&self.pair(derived)?, self.ranges(derived), LEVEL)?,
            DerivedStatistic::Coefficient(number) => self.coefficient(derived, *number)?,
            DerivedStatistic::Quantile(share, edges) => {
                let scale = derived.variables[0].scale as f64;
                let edges: Vec<f64> = edges.iter().map(|edge| *edge as f64 / scale).collect();
                quantile(&self.sums(derived)?, &edges, to_f64(share), LEVEL)?
            }
        };
        let DerivedEstimate { value, low, high, noise } = estimate;
        Ok(shown(derived, value, vec![[low, high]], noise))
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
    fn total(&self, derived: &DerivedOutput) -> Result<DerivedEstimate, Error> {
        let SumPlace { mechanism, place } = derived.sums[0];
        let (value, variance) = self.output(mechanism, place)?;
        let scale = derived.variables[0].scale as f64;
        let value = (value as f64 - self.scales.mean(mechanism, place)) / scale;
        let noise = normal::critical(LEVEL) * variance.sqrt() / scale;
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
    ) -> Result<DerivedEstimate, Error> {
        let [tested, reference] = self.means(derived)?;
        of(&tested, &reference, LEVEL)
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
    fn coefficient(&self, derived: &DerivedOutput, number: u32) -> Result<DerivedEstimate, Error> {
        let covariates = derived.variables.len() - 1;
        let moved = number == 0;
        let products = self.sums(derived)?.combined(&products(&derived.variables, moved))?;
        Ok(least_squares(&products, covariates, LEVEL)?[number as usize])
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
    }
}
