//! Quantiles of a histogram.

use super::moments::NoisyMoments;
use super::tail::tail;
use super::{DerivedEstimate, critical};
use crate::normal::normal_upper;
use base::Error;

/// The p-quantile, from the noised counts of buckets between public edges, one edge more than counts.
///
/// An end of a bucket is excluded as the quantile where the cumulated count is too far from p n for a
/// Binomial(n, p) with its noise; of either side, each end up to the first that is not excluded is, so one
/// test alone decides whether the interval covers, however many buckets there are. Without noise this is the
/// interval by order statistics (Thompson 1936; Scheffe and Tukey 1945), widened to whole buckets. The value
/// is linear within its bucket.
///
/// Assumed: rows are independent draws from one law between the first and the last edge.
///
/// # Errors
/// When edges do not rise or are not one more than counts, or p or the level is not in 0..1.
pub fn quantile(counts: &NoisyMoments, edges: &[f64], p: f64, level: f64) -> Result<DerivedEstimate, Error> {
    let z = critical(level)?;
    let buckets = counts.len();
    let rising = edges.windows(2).all(|pair| pair[0] < pair[1]);
    counts.demand(buckets > 0 && edges.len() == buckets + 1, "one edge more than buckets")?;
    counts.demand(rising && p > 0.0 && p < 1.0, "edges that rise, and a share between 0 and 1")?;
    let n: f64 = counts.values().iter().sum();
    if n <= 0.0 {
        return Ok(DerivedEstimate::unknown([edges[0], edges[buckets]]));
    }
    let at = |edge: usize| (0..buckets).map(|i| f64::from(u8::from(i < edge)) - p).collect::<Vec<_>>();
    let excluded = |edge: usize, above: bool| {
        let weights = at(edge);
        tail(n, p, counts.variance(&weights), counts.value(&weights), 1.0, above) < normal_upper(z)
    };
    // All rows are above the first edge and below the last.
    let below = (1..buckets).take_while(|edge| excluded(*edge, false)).last().unwrap_or(0);
    let above = (1..buckets).rev().take_while(|edge| excluded(*edge, true)).last().unwrap_or(buckets);
    let shares = Shares::new(counts, edges);
    let value = shares.value(p * n);
    let bucket = edges.partition_point(|edge| *edge <= value).clamp(1, buckets);
    let spread =
        [bucket - 1, bucket].map(|edge| counts.variance(&at(edge)).sqrt()).into_iter().fold(0.0, f64::max);
    let reach = [p * n - z * spread, p * n + z * spread];
    let open = reach[0] <= 0.0 && reach[1] >= n;
    Ok(DerivedEstimate {
        value: Some(value),
        low: edges[below],
        high: edges[above],
        noise: if open { f64::INFINITY } else { 0.5 * (shares.value(reach[1]) - shares.value(reach[0])) },
    })
}

/// Cumulated counts that do not fall.
struct Shares<'a> {
    cumulated: Vec<f64>,
    edges: &'a [f64],
}

impl<'a> Shares<'a> {
    fn new(counts: &NoisyMoments, edges: &'a [f64]) -> Self {
        let (mut sum, mut most) = (0.0, 0.0f64);
        let rest = counts.values().iter().map(|count| {
            sum += count;
            most = most.max(sum);
            most
        });
        Self { cumulated: std::iter::once(0.0).chain(rest).collect(), edges }
    }

    /// Where the cumulated count is this.
    fn value(&self, count: f64) -> f64 {
        let edge = self.cumulated.partition_point(|c| *c < count);
        if edge == 0 || edge >= self.edges.len() {
            return self.edges[if edge == 0 { 0 } else { self.edges.len() - 1 }];
        }
        let [before, after] = [self.cumulated[edge - 1], self.cumulated[edge]];
        let share = (count - before) / (after - before);
        self.edges[edge - 1] + share * (self.edges[edge] - self.edges[edge - 1])
    }
}
