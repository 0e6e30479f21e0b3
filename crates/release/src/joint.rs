//! n, S and Q of a cell by one mechanism: charged for what one person can do to all three at once.
//!
//! Functionality: from the totals n (rows), S (sum of outcomes s in 0..=R) and Q (sum of s^2) of every cell
//! of a family to noised integers, and back to n, S, Q with their covariance. A row is (1, s, s^2): a curve,
//! not a box. Released are
//!
//! | [`Change`] | outputs per cell ([`Combination`]) | sigma^2 | moved by |
//! |---|---|---|---|
//! | `Outcome` | S | R^2 / (2 rho) | a = \|s - s'\| |
//! | | T = R S - Q | R^4 / (22 rho) | at most a (R - a) |
//! | `Person` | n | 2 c / rho | 1 |
//! | | U = 2 S - R n | 2 c R^2 / rho | w = \|2 s - R\|, or 2 a where the cell stays |
//! | | V = 32 (R S - Q) - R^2 n | 512 c R^4 / (5 rho) | 7 R^2 - 8 w^2, or at most 32 a (R - a) |
//!
//! with c = 517 / 512. The noises are independent discrete Gaussians. Why T is nearly free: it moves where S
//! or U moves less than at most, and not at all where they move most. Why U: a mean m needs S - m n, whose
//! sensitivity is least around the middle; at these shares its noise is within 1 % of the least possible for
//! m = 0, R / 2 and R, and at most 1.09 times the least (as a standard deviation) between. Why V has n in it:
//! it makes the variance of outcomes near R / 2 sharper. For R = 1 there is no T and no V, and c = 1: Q = S.
//!
//! Security model: zCDP (Bun and Steinke 2016), which independent Gaussians spend at the largest sum over
//! outputs of delta_j^2 / (2 sigma_j^2), not at the sum of the largest (so do matrix mechanisms: Li et al.
//! 2010; Nikolov, Talwar and Zhang 2013). The discrete Gaussian costs the same (Canonne, Kamath and Steinke
//! 2020). The sums are polynomials in one number, so [`FamilyMechanism::charge`] bounds them exactly, by
//! Bernstein's coefficients (1912), and the constructors widen the noise by as much as the bound is above
//! rho: the shares above decide accuracy, never privacy. Cells of a family are disjoint; a change touches one
//! or two of them, however many there are: one charge.
//!
//! It rests on Q's rows being the squares of S's rows, in the same cell. Who verifies a program must derive
//! that. Figures and what was not chosen: `docs/decisions/050-joint-sums.md`.

use crate::alias::Sampler;
use crate::rational::{Rational, exp2, ratio, to_f64};
use base::Error;
use num_bigint::BigInt;
use num_traits::{One, Signed, Zero};

/// The largest clamp R: values have 32 bits.
pub const CLAMP: u128 = 1 << 32;
/// On lattices an output's sensitivity is at least 2^8 steps, where it is that large: rounding up to steps
/// then costs about 1 % of rho.
pub const STEP_BITS: u32 = 8;
/// How many times R S - Q is in V for each R^2 n.
pub const TAIL: i128 = 32;
/// Noise is widened by multiples of 1/1024.
const WIDER: u32 = 1024;
/// Halvings of the interval on which a polynomial is bounded.
const HALVINGS: u32 = 4;

/// What a release hides: which change of the data costs rho.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// The outcome of one person becomes another, in its cell; the viewer knows n. (The publisher's own
    /// cells.)
    Outcome,
    /// One person comes, goes, moves to another cell with another outcome, or has another outcome where it
    /// is; n is hidden. (The advertiser's view, cohorts, public releases.)
    Person,
}

impl Change {
    /// Whether the viewer has n from elsewhere, exactly.
    #[must_use]
    pub fn knows_rows(self) -> bool {
        self != Self::Person
    }

    /// What is released of a cell, in order. T of outcomes 0 and 1 is 0, and V repeats n.
    #[must_use]
    pub fn combinations(self, clamp: u128) -> &'static [Combination] {
        use Combination::{Centred, CentredTail, Rows, Tail, Value};
        match (self, clamp > 1) {
            (Self::Outcome, false) => &[Value],
            (Self::Outcome, true) => &[Value, Tail],
            (Self::Person, false) => &[Rows, Centred],
            (Self::Person, true) => &[Rows, Centred, CentredTail],
        }
    }
}

/// A sum of multiples of n, S and Q.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combination {
    /// n.
    Rows,
    /// S.
    Value,
    /// T = R S - Q.
    Tail,
    /// U = 2 S - R n.
    Centred,
    /// V = 32 (R S - Q) - R^2 n.
    CentredTail,
}

impl Combination {
    /// How many times n, S and Q are in it.
    ///
    /// # Panics
    /// When the clamp R is above [`CLAMP`].
    #[must_use]
    pub fn weights(self, clamp: u128) -> [i128; 3] {
        assert!(clamp <= CLAMP, "a clamp within its limit");
        let r = clamp.cast_signed();
        match self {
            Self::Rows => [1, 0, 0],
            Self::Value => [0, 1, 0],
            Self::Tail => [0, r, -1],
            Self::Centred => [-r, 2, 0],
            Self::CentredTail => [-r * r, TAIL * r, -TAIL],
        }
    }

    /// D: the most that a change moves it in one cell. Outcomes are integers.
    fn sensitivity(self, clamp: u128) -> BigInt {
        let r = BigInt::from(clamp);
        match self {
            Self::Rows => BigInt::one(),
            Self::Value => r,
            Self::Tail => &r * &r / 4,
            Self::Centred => r * 2,
            Self::CentredTail => BigInt::from(TAIL) * (&r * &r / BigInt::from(4)),
        }
    }

    /// The variance of its noise at rho = 1, without low bits.
    fn variance(self, clamp: u128) -> Rational {
        let square = Rational::from_integer(BigInt::from(clamp) * clamp);
        match self {
            Self::Rows => ratio(2, 1),
            Self::Value => square * ratio(1, 2),
            Self::Tail => &square * &square * ratio(1, 22),
            Self::Centred => square * ratio(2, 1),
            Self::CentredTail => &square * &square * ratio(TAIL * TAIL, 10),
        }
    }
}

/// One noised integer of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoisedOutput {
    /// What it is.
    pub combination: Combination,
    /// D: the most that a change moves it in one cell. At least 1.
    pub sensitivity: BigInt,
    /// e: the noise is 2^e Y + U with U uniform on -2^(e - 1)..2^(e - 1), as in [`crate::alias`]; 0 is the
    /// plain discrete Gaussian Y.
    pub low_bits: u32,
    /// m = ceil(D / 2^e): the steps of Y that D is.
    pub steps: BigInt,
    /// The variance of Y, in steps squared: m^2 / (2 [`NoisedOutput::rho`]).
    pub variance_y: Rational,
}

impl NoisedOutput {
    /// What it would cost alone, in one cell. These add up to more than the mechanism costs.
    #[must_use]
    pub fn rho(&self) -> Rational {
        Rational::from_integer(&self.steps * &self.steps) / (&self.variance_y * BigInt::from(2))
    }

    /// How coins give its noise.
    ///
    /// # Errors
    /// When the noise is wider than parts reach.
    pub fn sampler(&self) -> Result<Sampler, Error> {
        Sampler::with_low_bits(&self.sensitivity, 1, &self.rho(), self.low_bits)
    }

    /// The variance of the noise, low bits included, in the output's units squared.
    #[must_use]
    pub fn variance(&self) -> Rational {
        let square = exp2(2 * self.low_bits.cast_signed());
        &square * &self.variance_y + (square - BigInt::one()) / BigInt::from(12)
    }

    /// The noise's mean, which is taken off outside: -1/2 where there are low bits, as a circuit leaves it.
    #[must_use]
    pub fn mean(&self) -> Rational {
        if self.low_bits == 0 { Rational::zero() } else { ratio(-1, 2) }
    }
}

/// The mechanism of one family: the same in each of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyMechanism {
    change: Change,
    clamp: u128,
    rho: Rational,
    outputs: Vec<NoisedOutput>,
    /// [`NoisedOutput::variance`] of each.
    variances: Vec<f64>,
}

impl FamilyMechanism {
    /// The mechanism with plain discrete Gaussians: every `low_bits` is 0. Where a row of a party changes d
    /// people, pass rho / d^2 (their changes add up, at most in length).
    ///
    /// # Errors
    /// When rho is not positive, or the clamp R is not in 1..=[`CLAMP`].
    pub fn new(change: Change, clamp: u128, rho: &Rational) -> Result<Self, Error> {
        Self::with(change, clamp, rho, |_| 0)
    }

    /// The same with as many low bits as leave 2^[`STEP_BITS`] steps, for noise that is drawn in a circuit:
    /// about half a per cent wider, and the gates do not grow with R.
    ///
    /// # Errors
    /// Those of [`FamilyMechanism::new`].
    pub fn on_lattices(change: Change, clamp: u128, rho: &Rational) -> Result<Self, Error> {
        let low_bits = |d: &BigInt| d.bits().saturating_sub(u64::from(STEP_BITS) + 1) as u32;
        Self::with(change, clamp, rho, low_bits)
    }

    fn with(
        change: Change,
        clamp: u128,
        rho: &Rational,
        low_bits: impl Fn(&BigInt) -> u32,
    ) -> Result<Self, Error> {
        if !rho.is_positive() {
            return Err(Error::input("rho is a positive number, for example 0.1"));
        }
        if !(1..=CLAMP).contains(&clamp) {
            return Err(Error::input(format!("the clamp is between 1 and {CLAMP}")));
        }
        let output = |combination: &Combination| {
            let sensitivity = combination.sensitivity(clamp);
            let low_bits = low_bits(&sensitivity);
            let steps = (&sensitivity + (BigInt::one() << low_bits) - 1) >> low_bits;
            let variance_y = combination.variance(clamp) / rho / exp2(2 * low_bits.cast_signed());
            NoisedOutput { combination: *combination, sensitivity, low_bits, steps, variance_y }
        };
        let outputs = change.combinations(clamp).iter().map(output).collect();
        let mut joint = Self { change, clamp, rho: rho.clone(), outputs, variances: Vec::new() };
        let wider = (joint.charge() / rho * BigInt::from(WIDER)).ceil() / BigInt::from(WIDER);
        if wider > Rational::one() {
            joint.outputs.iter_mut().for_each(|output| output.variance_y *= &wider);
        }
        assert!(joint.charge() <= joint.rho, "noise so much wider costs rho at most");
        joint.variances = joint.outputs.iter().map(|output| to_f64(&output.variance())).collect();
        Ok(joint)
    }

    /// The same without any noise: what it reads is exact.
    #[must_use]
    pub fn without_noise(&self) -> Self {
        let exact = |output: &NoisedOutput| NoisedOutput {
            low_bits: 0,
            variance_y: Rational::zero(),
            ..output.clone()
        };
        let outputs: Vec<NoisedOutput> = self.outputs.iter().map(exact).collect();
        let variances = vec![0.0; outputs.len()];
        Self { outputs, variances, ..self.clone() }
    }

    /// Whether nothing that it reads has noise.
    #[must_use]
    pub fn is_without_noise(&self) -> bool {
        self.variances.iter().all(|variance| *variance == 0.0)
    }

    /// What is hidden.
    #[must_use]
    pub fn change(&self) -> Change {
        self.change
    }

    /// The outputs of a cell, in their order.
    #[must_use]
    pub fn outputs(&self) -> &[NoisedOutput] {
        &self.outputs
    }

    /// The budget that it was made for.
    #[must_use]
    pub fn rho(&self) -> &Rational {
        &self.rho
    }

    /// An upper bound of the zCDP charge of any change, over all cells together. Exact arithmetic; at most
    /// [`FamilyMechanism::rho`].
    #[must_use]
    pub fn charge(&self) -> Rational {
        let r = Rational::from_integer(self.clamp.into());
        let (zero, square) = (Rational::zero(), &r * &r);
        // By t in 0..=1. Another outcome in the same cell, a = R t: by at most a (R - a) for T.
        let line = |slope: Rational| [zero.clone(), slope, zero.clone()];
        let arch = |times: i128| {
            let height = &square * BigInt::from(times);
            [zero.clone(), height.clone(), -height]
        };
        match self.change {
            Change::Outcome => self.most(&[line(r), arch(1)]),
            Change::Person => {
                let stays = self.most(&[line(zero.clone()), line(&r * BigInt::from(2)), arch(TAIL)]);
                // One cell that a person comes to or leaves, w = R t; the other cell has an outcome of its
                // own.
                let one = [Rational::one(), zero.clone(), zero.clone()];
                let quarter = &square * ratio(TAIL, 4);
                let cell = self.most(&[one, line(r), [&quarter - &square, zero.clone(), -quarter]]);
                (cell * BigInt::from(2)).max(stays)
            }
        }
    }

    /// The most, over t in 0..=1, that outputs cost which are moved by these polynomials.
    ///
    /// An output moved by x moves by ceil(|x| / g) of its steps g = 2^e. With h = g - 1 that is at most
    /// (|x| + h) / g, whose square is at most ((1 + u) x^2 + (1 + 1 / u) h^2) / g^2 for any u > 0; u = 2 /
    /// 2^[`STEP_BITS`]. Exact for g = 1.
    fn most(&self, moved: &[[Rational; 3]]) -> Rational {
        let u = exp2(1 - STEP_BITS.cast_signed());
        let mut sum = vec![Rational::zero(); 5];
        for (output, moved) in self.outputs.iter().zip(moved) {
            if moved.iter().all(Zero::is_zero) {
                continue;
            }
            let step = exp2(output.low_bits.cast_signed());
            let rest = &step - BigInt::one();
            let unit = (&step * &step * &output.variance_y * BigInt::from(2)).recip();
            let (wider, added) = match output.low_bits {
                0 => (Rational::one(), Rational::zero()),
                _ => (&u + BigInt::one(), (u.recip() + BigInt::one()) * &rest * &rest),
            };
            sum[0] += added * &unit;
            for (i, a) in moved.iter().enumerate() {
                for (j, b) in moved.iter().enumerate() {
                    sum[i + j] += a * b * &wider * &unit;
                }
            }
        }
        most_on_unit(&bernstein(&sum), HALVINGS)
    }

    /// The exact outputs of a cell with these n, S and Q.
    ///
    /// # Panics
    /// When the totals are not those of at most 2^32 rows.
    #[must_use]
    pub fn encode(&self, totals: [i128; 3]) -> Vec<i128> {
        let sum = |output: &NoisedOutput| {
            output.combination.weights(self.clamp).iter().zip(totals).map(|(w, total)| w * total).sum()
        };
        self.outputs.iter().map(sum).collect()
    }

    /// n, S and Q of a cell from its noised outputs; unbiased. `rows` is n where the viewer knows it, else
    /// not looked at.
    ///
    /// # Panics
    /// When there are not as many numbers as outputs.
    #[must_use]
    pub fn decode(&self, noised: &[i128], rows: i128) -> [f64; 3] {
        assert_eq!(noised.len(), self.outputs.len(), "one number per output");
        // Exact up to the last step: R S and Q may be close.
        let values: Vec<Rational> = noised
            .iter()
            .zip(&self.outputs)
            .map(|(&value, output)| Rational::from_integer(value.into()) - output.mean())
            .collect();
        let r = BigInt::from(self.clamp);
        let (n, s, tail) = match self.change {
            Change::Person => {
                let (n, s) = (values[0].clone(), (&values[1] + &values[0] * &r) / BigInt::from(2));
                let tail = values.get(2).map(|v| (v + &n * &r * &r) / BigInt::from(TAIL));
                (n, s, tail)
            }
            _ => (Rational::from_integer(rows.into()), values[0].clone(), values.get(1).cloned()),
        };
        let q = &s * r - tail.unwrap_or_else(Rational::zero);
        [n, s, q].map(|value| to_f64(&value))
    }

    /// The noise of an estimator: the variance of e . `gradient`, where e is the noise of (n, S, Q) as
    /// decoded.
    #[must_use]
    pub fn noise(&self, gradient: [f64; 3]) -> f64 {
        self.together(gradient, gradient)
    }

    /// How the noises of two estimators vary together.
    fn together(&self, one: [f64; 3], other: [f64; 3]) -> f64 {
        let slopes = self.slopes(one).into_iter().zip(self.slopes(other));
        slopes.zip(&self.variances).map(|((a, b), variance)| a * b * variance).sum()
    }

    /// How an estimator moves with each output: S = (U + R n) / 2, Q = R S - T, T = (V + R^2 n) / 32.
    fn slopes(&self, [n, s, q]: [f64; 3]) -> Vec<f64> {
        let r = self.clamp as f64;
        let (by_sum, tail) = (s + r * q, if self.clamp == 1 { 0.0 } else { 1.0 / TAIL as f64 });
        match self.change {
            Change::Person => vec![n + 0.5 * r * by_sum - r * r * q * tail, 0.5 * by_sum, -q * tail],
            _ => vec![by_sum, -q],
        }
    }

    /// The covariance of the noise of (n, S, Q) as decoded.
    #[must_use]
    pub fn covariance(&self) -> [[f64; 3]; 3] {
        let unit = |i: usize| std::array::from_fn::<f64, 3, _>(|k| f64::from(u8::from(k == i)));
        std::array::from_fn(|i| std::array::from_fn(|j| self.together(unit(i), unit(j))))
    }

    /// What an arm of `n` rows is read as, on average, where outcomes have this mean and variance.
    #[must_use]
    pub fn expected(&self, n: f64, mean: f64, variance: f64) -> ArmReading {
        let noise = self.noise([-mean, 1.0, 0.0]) / (n * n);
        let of_variance = self.noise([mean * mean - 2.0 * variance, -2.0 * mean, 1.0]);
        ArmReading { rows: n, mean, sampling: variance / n, noise, tau2: of_variance / n.powi(4) }
    }

    /// Mean and variances of one arm of decoded totals: what an interval is made of
    /// (`docs/protocols/release.md`).
    #[must_use]
    pub fn arm(&self, [n, s, q]: [f64; 3]) -> ArmReading {
        let mean = (s / n).clamp(0.0, self.clamp as f64);
        // d(S / n) = (e_S - m e_n) / n; the same noise makes S^2 / n too large by its variance over n.
        let of_mean = self.noise([-mean, 1.0, 0.0]);
        let sampling = (q - (s * s - of_mean) / n) / ((n - 1.0) * n);
        // d((Q - S^2 / n) / n^2) = (e_Q - 2 m e_S + (m^2 - 2 v) e_n) / n^2, v the variance of one outcome.
        let person = (sampling * n).max(0.0);
        let of_variance = self.noise([mean * mean - 2.0 * person, -2.0 * mean, 1.0]);
        ArmReading { rows: n, mean, sampling, noise: of_mean / (n * n), tau2: of_variance / n.powi(4) }
    }
}

/// One arm as read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ArmReading {
    /// n.
    pub rows: f64,
    /// S / n, kept in 0..=R.
    pub mean: f64,
    /// The sampling variance of the mean, unbiased under the noise; may be negative.
    pub sampling: f64,
    /// The variance that noise adds to the mean.
    pub noise: f64,
    /// The variance of `sampling` from noise.
    pub tau2: f64,
}

/// The standard deviation that the interval of test minus control is made of: chance, its margin, and noise.
#[must_use]
pub fn standard_error(test: &ArmReading, control: &ArmReading) -> f64 {
    let chance = test.sampling + control.sampling + (test.tau2 + control.tau2).sqrt();
    (chance.max(0.0) + test.noise + control.noise).sqrt()
}

/// The Bernstein coefficients on 0..=1 of a polynomial of degree 4, given by its coefficients of t^0 to t^4.
fn bernstein(power: &[Rational]) -> Vec<Rational> {
    let choose = |n: i64, k: i64| (0..k).fold(ratio(1, 1), |product, i| product * ratio(n - i, i + 1));
    let one = |i: i64| (0..=i).map(|k| &power[k as usize] * choose(i, k) / choose(4, k)).sum();
    (0..power.len() as i64).map(one).collect()
}

/// A polynomial lies below its largest Bernstein coefficient; halves are bounded apart, which brings the
/// bound close.
fn most_on_unit(coefficients: &[Rational], halvings: u32) -> Rational {
    if halvings == 0 {
        return coefficients.iter().max().expect("a polynomial has coefficients").clone();
    }
    let (low, high) = halves(coefficients);
    most_on_unit(&low, halvings - 1).max(most_on_unit(&high, halvings - 1))
}

/// The coefficients on both halves, by the algorithm of de Casteljau.
fn halves(coefficients: &[Rational]) -> (Vec<Rational>, Vec<Rational>) {
    let (mut row, mut low, mut high) = (coefficients.to_vec(), Vec::new(), Vec::new());
    while let (Some(first), Some(last)) = (row.first(), row.last()) {
        low.push(first.clone());
        high.push(last.clone());
        row = row.windows(2).map(|pair| (&pair[0] + &pair[1]) / BigInt::from(2)).collect();
    }
    high.reverse();
    (low, high)
}
