//! Statistical cut-and-choose, the paper's: the drawer's noises are its own draws, and the checker tests them.
//!
//! Functionality: as in [`crate::choose`], but the k - 1 opened candidates are tested against their law instead of
//! being recomputed. Five tests per output: mean, sum of squares, largest magnitude, Anderson-Darling, chi-square in 16
//! cells; each gets beta / 5, and each of several outputs its equal share, so honest noise fails with at most beta.
//! Security: a drawer that bends its noise by less than the tests can see passes (k = 256, beta 1e-6: a shift of every
//! noise by a third of sigma passes half the time). The one candidate in use is never tested, hence |e| <= 6.5 sigma,
//! which the computation has to check itself. Prefer the seeded kind: it has neither false alarms nor this slack.
//! The bound cuts the Gaussian's tails, so the guarantee becomes approximate: an output that costs rho gets a delta of
//! P(N > 6.5 - sqrt(2 rho)), 7e-10 at rho 0.1.
//! Paper: Private RCT (001), section 2.5.3; the tests and their levels are ours.
//! Cost: k entered and k - 1 opened vectors; the tests take milliseconds.
//!
//! The noises are integers, with ties when sigma is small. The tests see them through the randomised probability
//! transform (a uniform point within the step of the distribution function), which makes honest noise exactly normal.

use crate::choose::{Debited, Setup};
use crate::gaussian::DiscreteGaussian;
use crate::normal::{chi_square_lower, chi_square_upper, erfc, normal_quantile_upper, normal_upper};
use crate::rational::{Rational, ratio, to_f64, unsigned};
use base::{Error, Rng, Secret};
use num_traits::ToPrimitive;

/// Candidates for which the levels were checked.
pub const CANDIDATES: usize = 256;
/// Probability that honest noise is refused.
pub const FALSE_ABORT: f64 = 1e-6;

/// Cells of the chi-square test.
const CELLS: usize = 16;
/// Above this sigma the law is taken as normal, with rounding: the difference is below 1e-7 of a sigma.
const FINE: f64 = 1024.0;
/// Where the transformed noise saturates, in sigmas; the largest-magnitude test looks at the noise itself.
const SATURATED: f64 = 9.0;

/// Which test refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// The mean is 0.
    Mean,
    /// The sum of squares is chi-square, on both sides.
    SumOfSquares,
    /// The largest magnitude is possible.
    Largest,
    /// Anderson-Darling.
    AndersonDarling,
    /// Pearson's chi-square in 16 equally likely cells.
    ChiSquare,
}

const TESTS: [Test; 5] =
    [Test::Mean, Test::SumOfSquares, Test::Largest, Test::AndersonDarling, Test::ChiSquare];

/// A refusal: honest noise is refused with probability [`FALSE_ABORT`] or what the caller allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Refusal {
    /// Position among the draws.
    pub draw: usize,
    /// The test.
    pub test: Test,
    /// Its p-value.
    pub p: f64,
}

/// The largest magnitude the computation lets pass: floor(6.5 sigma).
#[must_use]
pub fn bound(sigma2: &Rational) -> u128 {
    unsigned(&(sigma2 * ratio(169, 4)).floor().to_integer()).sqrt().to_u128().unwrap_or(u128::MAX)
}

/// The drawer's candidates: k vectors of one noise per draw, each redrawn until within its bound.
///
/// # Errors
/// None for a checked setup.
pub fn draw(setup: &Setup, rng: &mut Rng) -> Result<Vec<Secret<Vec<i128>>>, Error> {
    let laws: Vec<(DiscreteGaussian, u128, u32)> = setup
        .draws()
        .iter()
        .map(|draw| Ok((DiscreteGaussian::new(&draw.sigma2)?, bound(&draw.sigma2), draw.width)))
        .collect::<Result<_, Error>>()?;
    let mut one = |(law, bound, width): &(DiscreteGaussian, u128, u32)| loop {
        let noise = law.sample_within(rng, *width)?;
        if noise.unsigned_abs() <= *bound {
            return Ok(noise);
        }
    };
    (0..setup.candidates())
        .map(|_| laws.iter().map(&mut one).collect::<Result<_, _>>().map(Secret::new))
        .collect()
}

/// The checker's index, uniform. Like the seeded kind, only after the debit.
///
/// # Errors
/// Misuse, when the debit is for another release.
pub fn choose(setup: &Setup, debited: Debited, rng: &mut Rng) -> Result<usize, Error> {
    debited.spend(setup)?;
    Ok(rng.below(setup.candidates() as u64) as usize)
}

/// Tests the k - 1 opened candidates, each a vector of one noise per draw, at `false_abort` overall.
/// `rng` is the checker's own: the drawer must not know its coins.
///
/// # Errors
/// Misuse, when `revealed` has another shape or `false_abort` is not in 0..1.
pub fn check(
    setup: &Setup,
    revealed: &[Vec<i128>],
    false_abort: f64,
    rng: &mut Rng,
) -> Result<Option<Refusal>, Error> {
    let draws = setup.draws().len();
    if revealed.len() + 1 != setup.candidates() || revealed.iter().any(|noises| noises.len() != draws) {
        return Err(Error::misuse("the revealed candidates are k - 1 vectors of one noise per draw"));
    }
    if !(false_abort > 0.0 && false_abort < 1.0) {
        return Err(Error::misuse("the false-abort probability is between 0 and 1"));
    }
    let level = false_abort / (TESTS.len() * draws) as f64;
    for (position, draw) in setup.draws().iter().enumerate() {
        let noises: Vec<i128> = revealed.iter().map(|candidate| candidate[position]).collect();
        let p_values = p_values(&draw.sigma2, &noises, rng);
        if let Some((&test, p)) = TESTS.iter().zip(p_values).find(|(_, p)| *p < level) {
            return Ok(Some(Refusal { draw: position, test, p }));
        }
    }
    Ok(None)
}

/// The p-values of the five tests, in the order of [`Test`], of noises that should be N_Z(0, sigma2).
/// In the tails, where they are compared, they are at least the true ones; `noises` is not empty.
#[must_use]
pub fn p_values(sigma2: &Rational, noises: &[i128], rng: &mut Rng) -> [f64; 5] {
    let mut z = normal_scores(to_f64(sigma2).sqrt(), noises, rng);
    z.sort_by(f64::total_cmp);
    [
        mean_p(&z),
        squares_p(&z),
        largest_p(to_f64(sigma2).sqrt(), noises),
        anderson_darling_p(&z),
        chi_square_p(&z),
    ]
}

/// Noises as standard normal scores, by the randomised probability transform.
fn normal_scores(sigma: f64, noises: &[i128], rng: &mut Rng) -> Vec<f64> {
    let mut uniform = || (rand_core::Rng::next_u64(rng) >> 11) as f64 / (1u64 << 53) as f64;
    if sigma > FINE {
        return noises
            .iter()
            .map(|&x| ((x as f64 + uniform() - 0.5) / sigma).clamp(-SATURATED, SATURATED))
            .collect();
    }
    let reach = (SATURATED * sigma).ceil() as usize + 2;
    let mut weights: Vec<f64> = (0..=reach).map(|x| (-0.5 * (x as f64 / sigma).powi(2)).exp()).collect();
    let total = weights[0] + 2.0 * weights[1..].iter().rev().sum::<f64>();
    weights.iter_mut().for_each(|w| *w /= total);
    // beyond[x] = P(X > x), summed from the small end.
    let mut beyond = vec![0.0; reach + 1];
    for x in (0..reach).rev() {
        beyond[x] = beyond[x + 1] + weights[x + 1];
    }
    let mut score = |x: i128| {
        let step = uniform();
        let magnitude = match usize::try_from(x.unsigned_abs()) {
            Ok(x) if x < reach => normal_quantile_upper((beyond[x] + step * weights[x]).max(1e-300)),
            _ => SATURATED,
        };
        magnitude.clamp(-SATURATED, SATURATED) * if x < 0 { -1.0 } else { 1.0 }
    };
    noises.iter().map(|&x| score(x)).collect()
}

fn mean_p(z: &[f64]) -> f64 {
    2.0 * normal_upper((z.iter().sum::<f64>() / (z.len() as f64).sqrt()).abs())
}

fn squares_p(z: &[f64]) -> f64 {
    let (sum, degrees) = (z.iter().map(|x| x * x).sum(), z.len() as f64);
    (2.0 * chi_square_upper(sum, degrees).min(chi_square_lower(sum, degrees))).min(1.0)
}

/// A union bound: P(|X| >= m) <= 2 P(N > (m - 1) / sigma) for the discrete Gaussian.
fn largest_p(sigma: f64, noises: &[i128]) -> f64 {
    let largest = noises.iter().map(|x| x.unsigned_abs()).max().unwrap_or(0) as f64;
    (2.0 * noises.len() as f64 * normal_upper((largest - 1.0) / sigma)).min(1.0)
}

/// The tail of A^2 from the leading term of its limit law: the chi-square with the largest weight, 1/2, times the
/// product over j >= 2 of (1 - 2 / (j (j + 1)))^(-1/2) = sqrt 3. It is 5 % low at p = .01 and converges; hence 1.1.
fn anderson_darling_p(z: &[f64]) -> f64 {
    let n = z.len() as f64;
    let weighted: f64 = z
        .iter()
        .zip(z.iter().rev())
        .enumerate()
        .map(|(i, (low, high))| (2 * i + 1) as f64 * (normal_upper(-low).ln() + normal_upper(*high).ln()))
        .sum();
    let statistic = (-n - weighted / n).max(0.0);
    (1.1 * 3f64.sqrt() * erfc(statistic.sqrt())).min(1.0)
}

/// With few noises per cell the multinomial's tail is heavier than the chi-square's: at k = 256 and levels down to
/// 1e-8 the exact probability (a test computes it) stays below the factor here.
fn chi_square_p(z: &[f64]) -> f64 {
    let mut cells = [0u32; CELLS];
    for &score in z {
        cells[((normal_upper(-score) * CELLS as f64) as usize).min(CELLS - 1)] += 1;
    }
    let expected = z.len() as f64 / CELLS as f64;
    let statistic: f64 = cells.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
    (CHI_SQUARE_FACTOR * chi_square_upper(statistic, (CELLS - 1) as f64)).min(1.0)
}

/// See [`chi_square_p`].
const CHI_SQUARE_FACTOR: f64 = 6.0;

#[cfg(test)]
mod tests {
    use super::*;

    /// P(sum of squared counts >= `least`) of `n` balls in 16 cells, exactly: cells are filled one after the other.
    fn exact_tail(n: usize, least: usize) -> f64 {
        let log_factorial: Vec<f64> = (0..=n)
            .scan(0.0, |sum, i| {
                *sum += if i == 0 { 0.0 } else { (i as f64).ln() };
                Some(*sum)
            })
            .collect();
        // state[balls left][sum of squares so far], below `least`; what reaches it is counted at once.
        let mut state = vec![vec![0.0; least]; n + 1];
        state[n][0] = 1.0;
        let mut tail = 0.0;
        for cell in 0..CELLS {
            let p = 1.0 / (CELLS - cell) as f64;
            let mut next = vec![vec![0.0; least]; n + 1];
            for left in 0..=n {
                let chance: Vec<f64> = (0..=left)
                    .map(|c| match cell {
                        15 => f64::from(c == left),
                        _ => (log_factorial[left] - log_factorial[c] - log_factorial[left - c]
                            + c as f64 * p.ln()
                            + (left - c) as f64 * (1.0 - p).ln())
                        .exp(),
                    })
                    .collect();
                for (squares, &weight) in state[left].iter().enumerate() {
                    if weight < 1e-25 {
                        continue;
                    }
                    for (c, chance) in chance.iter().enumerate() {
                        match next[left - c].get_mut(squares + c * c) {
                            Some(slot) => *slot += weight * chance,
                            None => tail += weight * chance,
                        }
                    }
                }
            }
            state = next;
        }
        tail
    }

    #[test]
    fn the_chi_square_level_is_kept_exactly() {
        let n = CANDIDATES - 1;
        for level in [2e-7, 1e-8] {
            // The least sum of squares that the test refuses at this level.
            let expected = n as f64 / CELLS as f64;
            let refused = |squares: usize| {
                let statistic = squares as f64 / expected - n as f64;
                CHI_SQUARE_FACTOR * chi_square_upper(statistic, 15.0) < level
            };
            let least = (4065..20_000).find(|&s| refused(s)).unwrap();
            let exact = exact_tail(n, least);
            println!("level {level:e}: exact {exact:e}");
            assert!(exact <= level && exact > level / 100.0, "{exact:e} at {level:e}");
        }
    }
}
