//! How far released numbers are from the exact ones, over many draws.

use super::numbers::{NumberReader, ReadNumber, ReadPart};
use super::shown::ShownValues;
use super::{Bins, NumberSpread, SimulationProgress};
use crate::audit::parallel;
use base::{Error, Seed};
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws that one task makes.
const PIECE: u64 = 250;
/// Bins of a picture of draws.
const BINS: usize = 40;

/// What came of all draws of a view.
pub(super) struct DrawnParts {
    /// By part, how often it was refused.
    pub refused: Vec<u64>,
    /// By part and number.
    pub spreads: Vec<Vec<NumberSpread>>,
}

/// What is kept of one number.
#[derive(Clone, Default)]
struct DrawnNumber {
    values: Vec<f64>,
    held: u64,
    held_of_noise: u64,
    intervals: u64,
    of_noise: u64,
}

/// Of one part.
#[derive(Clone, Default)]
struct DrawnPart {
    refused: u64,
    numbers: Vec<DrawnNumber>,
}

impl DrawnParts {
    /// Makes so many draws and reads each like a release; `exact` says what they are compared with.
    ///
    /// # Errors
    /// When a noise is out of range, or a draw cannot be read.
    pub fn make(
        shown: &ShownValues<'_>,
        reader: &NumberReader<'_>,
        exact: &[ReadPart],
        (count, seed, threads): (u64, &Seed, usize),
        progress: SimulationProgress<'_>,
    ) -> Result<Self, Error> {
        let done = AtomicU64::new(0);
        let pieces = parallel(count.div_ceil(PIECE) as usize, threads, &|_, _| (), |piece| {
            let piece = piece as u64;
            let here = PIECE.min(count - piece * PIECE);
            let mut rng = seed.fork(&format!("draws/{piece}")).into_rng();
            let mut parts = parts_of(exact);
            for draw in shown.draws(here as usize, &mut rng)? {
                let read = reader.read(&draw)?;
                parts
                    .iter_mut()
                    .zip(&read)
                    .zip(exact)
                    .for_each(|((part, read), exact)| part.add(read, exact));
            }
            progress("drawing noise, releases", done.fetch_add(here, Ordering::Relaxed) + here, count);
            Ok(parts)
        })?;
        let mut all = parts_of(exact);
        pieces.into_iter().for_each(|piece| all.iter_mut().zip(piece).for_each(|(all, one)| all.join(one)));
        let spreads = |(part, exact): (&mut DrawnPart, &ReadPart)| {
            let numbers = part.numbers.iter_mut().zip(&exact.numbers);
            numbers.map(|(number, exact)| number.spread(exact.value)).collect()
        };
        let refused = all.iter().map(|part| part.refused).collect();
        Ok(Self { refused, spreads: all.iter_mut().zip(exact).map(spreads).collect() })
    }
}

fn parts_of(exact: &[ReadPart]) -> Vec<DrawnPart> {
    let part =
        |part: &ReadPart| DrawnPart { refused: 0, numbers: vec![DrawnNumber::default(); part.numbers.len()] };
    exact.iter().map(part).collect()
}

impl DrawnPart {
    fn add(&mut self, read: &ReadPart, exact: &ReadPart) {
        self.refused += u64::from(read.refused.is_some());
        let numbers = self.numbers.iter_mut().zip(&read.numbers).zip(&exact.numbers);
        numbers.for_each(|((number, read), exact)| number.add(read, exact.value));
    }

    fn join(&mut self, other: Self) {
        self.refused += other.refused;
        self.numbers.iter_mut().zip(other.numbers).for_each(|(number, other)| number.join(other));
    }
}

impl DrawnNumber {
    fn add(&mut self, read: &ReadNumber, exact: Option<f64>) {
        self.values.extend(read.value);
        let Some(exact) = exact else { return };
        if !read.intervals.is_empty() {
            let holds = |[low, high]: &[Option<f64>; 2]| {
                low.is_none_or(|low| low <= exact) && high.is_none_or(|high| exact <= high)
            };
            self.intervals += 1;
            self.held += u64::from(read.intervals.iter().any(holds));
        }
        if let (Some(noise), Some(value)) = (read.noise, read.value) {
            self.of_noise += 1;
            self.held_of_noise += u64::from((value - exact).abs() <= noise);
        }
    }

    fn join(&mut self, other: Self) {
        self.values.extend(other.values);
        self.held += other.held;
        self.held_of_noise += other.held_of_noise;
        self.intervals += other.intervals;
        self.of_noise += other.of_noise;
    }

    fn spread(&mut self, exact: Option<f64>) -> NumberSpread {
        self.values.sort_unstable_by(f64::total_cmp);
        let values = &self.values;
        let count = values.len() as f64;
        // From the middle value: numbers may be large and close to each other.
        let middle = values.get(values.len() / 2).copied().unwrap_or_default();
        let mean = values.iter().map(|value| value - middle).sum::<f64>() / count;
        let square = values.iter().map(|value| (value - middle - mean).powi(2)).sum::<f64>() / count;
        let some = |value: f64| (!values.is_empty()).then_some(value);
        let share = |held: u64, of: u64| (of > 0).then(|| held as f64 / of as f64);
        NumberSpread {
            shown: values.len() as u64,
            mean_error: exact.and_then(|exact| some(middle - exact + mean)),
            deviation: some(square.sqrt()),
            low: quantile(values, 0.025),
            high: quantile(values, 0.975),
            interval_held: share(self.held, self.intervals),
            noise_held: share(self.held_of_noise, self.of_noise),
            bins: bins(values, exact),
        }
    }
}

/// A quantile of sorted values, between two of them in proportion.
fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let at = share * values.len().checked_sub(1)? as f64;
    let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

/// How often values lie where, of nearly all of them and of the exact one.
fn bins(values: &[f64], exact: Option<f64>) -> Option<Bins> {
    let inner = [quantile(values, 0.001)?, quantile(values, 0.999)?];
    let from = exact.map_or(inner[0], |exact| exact.min(inner[0]));
    let to = exact.map_or(inner[1], |exact| exact.max(inner[1]));
    if !(to - from).is_finite() || to <= from {
        return None;
    }
    // Bins between which whole steps fall unevenly would show a comb.
    let (first, width, bins) = match step(values) {
        Some(step) => {
            let first = values[0] + ((from - values[0]) / step).floor() * step;
            let points = ((to - first) / step).floor() + 1.0;
            let each = (points / BINS as f64).ceil();
            (first - 0.5 * step, each * step, (points / each).ceil() as usize)
        }
        None => (from, (to - from) / BINS as f64, BINS),
    };
    let mut counts = vec![0; bins];
    for value in values.iter().filter(|value| (from..=to).contains(*value)) {
        let bin = ((value - first) / width) as usize;
        counts[bin.min(bins - 1)] += 1;
    }
    Some(Bins { from: first, to: first + width * bins as f64, counts })
}

/// The largest whole step by which all values are apart; none where one is no whole number.
fn step(values: &[f64]) -> Option<f64> {
    /// Whole numbers are exact up to here.
    const WHOLE: f64 = (1u64 << 52) as f64;
    let (mut step, first) = (0u64, values.first()?);
    for value in values {
        if value.fract() != 0.0 || value.abs() > WHOLE {
            return None;
        }
        let mut apart = (value - first).abs() as u64;
        while apart > 0 {
            (step, apart) = (apart, step % apart);
        }
    }
    (step > 0).then_some(step as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step that lies between bins would leave some of them empty and others twice as full.
    #[test]
    fn whole_steps_fall_evenly_into_bins() {
        for (low, high, apart) in [(-30, 31, 1), (-200, 201, 8), (0, 5, 1), (1_000, 1_107, 1)] {
            let mut values: Vec<f64> =
                (low..high).filter(|of| of % apart == 0).flat_map(|of| [f64::from(of); 10]).collect();
            values.sort_unstable_by(f64::total_cmp);
            let bins = bins(&values, Some(f64::from(low))).unwrap();
            let (_, inner) = bins.counts.split_last().unwrap();
            assert!(inner.iter().all(|count| *count == inner[0]) && inner[0] > 0, "{:?}", bins.counts);
            assert!(bins.counts.len() <= BINS && bins.from < f64::from(low), "{bins:?}");
        }
        let halves: Vec<f64> = (0..100).map(|of| 0.5 * f64::from(of)).collect();
        assert_eq!(bins(&halves, None).unwrap().counts.len(), BINS);
    }
}
