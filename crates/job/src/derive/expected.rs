//! The sums of rows that nobody has, of which no value depends on another.

use base::Error;
use privacy::scales::Scales;
use program::{DerivedOutput, DerivedStatistic, MechanismKind, Op, Program, Variable};

/// How values lie in their ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// Evenly; half of the bits are set.
    Even,
    /// As amounts do: most at the lower end, exponentially, a tenth of the range above it in the mean; of the
    /// bits a tenth is set.
    Low,
    /// As what few have: one row of a hundred has such an amount, all others the lower end; of a hundred bits
    /// one is set.
    Rare,
}

/// The outputs that a number is derived from, by their places among the program's, were there so many rows in
/// each cell.
///
/// # Errors
/// When the viewer does not see a sum.
pub(super) fn numbers(
    program: &Program,
    scales: &Scales,
    derived: &DerivedOutput,
    (rows, shape): (f64, ValueShape),
) -> Result<Vec<(usize, i128)>, Error> {
    let mut numbers = Vec::new();
    for (at, of_row) in derived.sums.iter().zip(of_a_row(derived, shape)) {
        let mechanism = at.mechanism;
        let mut add = |output: u32, sum: f64| {
            let noised = Op::Noised(mechanism, output);
            let is = |one: &program::OutputValue| program.release.node(one.value).op == noised;
            let place = program.outputs.iter().position(|one| one.to == derived.to && is(one));
            let place = place.ok_or_else(|| Error::misuse("a derived number is of sums that are seen"))?;
            numbers.push((place, (sum + scales.mean(mechanism, output)).round() as i128));
            Ok::<_, Error>(())
        };
        match (&program.mechanisms[mechanism as usize].kind, scales.joint(mechanism)) {
            (MechanismKind::Joint { clamp, .. }, Some(family)) => {
                let from_low = Variable { origin: derived.variables[0].low, ..derived.variables[0] };
                let [mean, square] = moments(from_low, shape);
                let mean = mean.min(*clamp as f64);
                let totals = [1.0, mean, square].map(|each| (rows * each).round() as i128);
                let sums = family.encode(totals);
                let first = at.place * sums.len() as u32;
                (first..).zip(sums).try_for_each(|(output, sum)| add(output, sum as f64))?;
            }
            _ => add(at.place, rows * of_row)?,
        }
    }
    Ok(numbers)
}

/// Mean of a value from its origin, and of its square.
fn moments(variable: Variable, shape: ValueShape) -> [f64; 2] {
    let range = (variable.high - variable.low) as f64;
    let low = (variable.low - variable.origin) as f64;
    let (mean, square) = match (shape, variable.is_bit()) {
        (ValueShape::Even, true) => (0.5, 0.5),
        (ValueShape::Low, true) => (LOW, LOW),
        (ValueShape::Rare, true) => (FEW, FEW),
        (ValueShape::Even, false) => (range / 2.0, range * range / 3.0),
        (ValueShape::Low, false) => (range * LOW, 2.0 * (range * LOW).powi(2)),
        (ValueShape::Rare, false) => (FEW * range * LOW, FEW * 2.0 * (range * LOW).powi(2)),
    };
    [low + mean, low * low + 2.0 * low * mean + square]
}

/// The mean of values that crowd at the lower end, as a part of the range.
const LOW: f64 = 0.1;
/// Which part of all rows has what few have.
const FEW: f64 = 0.01;

/// What a row adds to each sum, in their order; of cells of a joint mechanism, nothing that is looked at.
fn of_a_row(derived: &DerivedOutput, shape: ValueShape) -> Vec<f64> {
    let of: Vec<[f64; 2]> = derived.variables.iter().map(|variable| moments(*variable, shape)).collect();
    match &derived.statistic {
        DerivedStatistic::Covariance | DerivedStatistic::Correlation => {
            let ([x, xx], [y, yy]) = (of[0], of[1]);
            vec![1.0, x, y, xx, yy, x * y]
        }
        DerivedStatistic::Coefficient(_) => {
            let y = of.len() - 1;
            let product = |i: usize, j: usize| if i == j { of[i][1] } else { of[i][0] * of[j][0] };
            let pairs = (0..y).flat_map(|i| (i..y).map(move |j| (i, j)));
            let products = pairs.chain((0..y).map(|i| (i, y))).chain([(y, y)]);
            let all = std::iter::once(1.0).chain(of.iter().map(|moments| moments[0]));
            all.chain(products.map(|(i, j)| product(i, j))).collect()
        }
        DerivedStatistic::Quantile(_, edges) => {
            let first = edges.first().copied().unwrap_or_default();
            let whole = edges.last().map_or(1, |last| last - first) as f64;
            let below = |edge: i64| {
                let part = (edge - first) as f64 / whole;
                match shape {
                    ValueShape::Even => part,
                    ValueShape::Low => 1.0 - (-part / LOW).exp(),
                    // Those at the lower end are in the first bucket.
                    ValueShape::Rare if part == 0.0 => 0.0,
                    ValueShape::Rare => 1.0 - FEW * (-part / LOW).exp(),
                }
            };
            edges.windows(2).map(|ends| below(ends[1]) - below(ends[0])).collect()
        }
        _ => vec![0.0; derived.sums.len()],
    }
}
