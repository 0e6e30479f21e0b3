//! What is spent, on whom, and for which number. [`ledger`] keeps it; [`hold`] holds, pays for and opens a
//! release whose noise is drawn inside; [`cut_and_choose`] is the release of candidates; [`scales`] says
//! how much noise each number gets; [`dummies`] what the sizes of a match cost. This module adds up what a
//! viewer got in all.

pub mod cut_and_choose;
pub mod dummies;
#[doc(hidden)]
pub mod fuzzing;
pub mod hold;
pub mod ledger;
pub mod scales;

use base::{Error, PartyId};
use num_traits::{Signed, Zero};
use page::numbers::up;
use release::Rational;
use release::normal::normal_upper;
use release::rational::{shown, to_f64};
use release::scale::rho_to_epsilon;
use serde::{Deserialize, Serialize};
use study::Study;

/// The delta at which epsilon is quoted.
pub const DELTA: f64 = 1e-6;

/// A sum of charges as zCDP and as (epsilon, delta)-DP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivacyTotal {
    /// zCDP, exact: `11/100`.
    pub rho: String,
    /// The same as a number.
    pub rho_value: f64,
    /// Of it, that of the sizes which a match showed, exact; `0` where they cost nothing, or are exact and
    /// not covered.
    pub sizes: String,
    /// For how many matches the sizes were charged; 0 in reports of earlier versions.
    #[serde(default)]
    pub size_charges: u64,
    /// The day on which the ledger that it is counted by was recovered, or went on without what was lost:
    /// what was got before is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// The epsilon that follows, by the tight conversion of [`rho_to_epsilon`].
    pub epsilon: f64,
    /// Its delta: [`DELTA`], what the rho itself does not hold for included.
    pub delta: f64,
}

/// How often of 100 times the best guess is right whether data say this or that of a person, where both were
/// equally likely before and a result is known at this rho; rounded up. A coin is right 50 times.
#[must_use]
pub fn best_guess(rho: f64) -> u64 {
    let right = 1.0 - normal_upper((rho / 2.0).sqrt());
    (100.0 * right).ceil().clamp(50.0, 100.0) as u64
}

/// What a release may add to delta because its noise is a little off its law: 1e-9.
const MOST_OFF: f64 = 1e-9;

/// What noise that is within `tau` of the law that `rho` is of adds to a delta at which epsilon is quoted.
#[must_use]
pub fn off(rho: &Rational, tau: &Rational) -> f64 {
    (1.0 + rho_to_epsilon(to_f64(rho), DELTA).exp()) * to_f64(tau)
}

/// Refuses where that is too much to release anything; `what` is the noise, as a sentence begins.
///
/// # Errors
/// Then.
pub fn bears(what: &str, rho: &Rational, tau: &Rational) -> Result<(), Error> {
    if !tau.is_positive() || off(rho, tau) <= MOST_OFF {
        return Ok(());
    }
    Err(Error::refused(format!(
        "{what} could be told from exact noise by more than 10⁻⁹ of delta at rho {}: agree on less rho",
        shown(rho)
    )))
}

impl PrivacyTotal {
    /// Of charges that add up to `rho`, which holds but for a probability of `delta`; `sizes` of it are for
    /// sizes, of how many matches nobody says.
    #[must_use]
    pub fn new(rho: &Rational, delta: &Rational, sizes: &Rational) -> Self {
        let (rho_value, own) = (to_f64(rho), to_f64(delta));
        // What the charges themselves leave open comes out of the delta that is quoted, where that is large
        // enough.
        let (converted, quoted) =
            if own <= DELTA / 2.0 { (DELTA - own, DELTA) } else { (DELTA, DELTA + own) };
        let epsilon = rho_to_epsilon(rho_value, converted);
        let sizes = sizes.to_string();
        Self { rho: rho.to_string(), rho_value, sizes, size_charges: 0, since: None, epsilon, delta: quoted }
    }

    /// What `viewer` gets of a study whose releases are charged `released`: that, and the sizes of so many
    /// matches that were charged, of one at least, also where a kept spine tells them once more.
    ///
    /// # Errors
    /// When the study's dummies are out of range.
    pub fn of_view(study: &Study, viewer: PartyId, released: &Rational, matches: u64) -> Result<Self, Error> {
        let owner = PartyId(u8::from(viewer == PartyId(0)));
        let Some(charge) = dummies::charge(study, owner)? else {
            return Ok(Self::new(released, &Rational::zero(), &Rational::zero()));
        };
        let size_charges = matches.max(1);
        let times = Rational::from_integer(size_charges.into());
        let (sizes, delta) = (charge.rho * &times, charge.delta * times);
        Ok(Self { size_charges, ..Self::new(&(released + &sizes), &delta, &sizes) })
    }

    /// [`PrivacyTotal::sizes`] as a number; none of a text that is no number.
    #[must_use]
    pub fn sizes_value(&self) -> Option<f64> {
        self.sizes.parse::<Rational>().ok().map(|sizes| to_f64(&sizes))
    }

    /// `(2.26, 10⁻⁶)-DP`, rounded up.
    #[must_use]
    pub fn words(&self) -> String {
        format!("({}, {})-DP", up(self.epsilon, 3), up(self.delta, 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use release::rational::ratio;

    /// The page for data-protection officers rounds as reports do: what is promised is not less.
    #[test]
    fn the_page_says_what_reports_say() {
        const PAGE: &str = include_str!("../../../docs/privacy.md");
        let rows = PAGE.lines().skip_while(|line| !line.starts_with("| rho | best guess right"));
        let rows: Vec<&str> = rows.skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 7);
        for row in rows {
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let rho = cells[0].parse::<f64>().expect("a number");
            assert_eq!(cells[2], up(rho_to_epsilon(rho, DELTA), 3), "{row}");
            let right: f64 = cells[1].trim_end_matches(" %").parse().expect("a share");
            assert!((right - 0.05..right + 1.05).contains(&(best_guess(rho) as f64)), "{row}");
        }
    }

    /// Release 0.1 and sizes 0.01, as of the example study: 2.26, and not the 2.45 of the release alone by a
    /// looser formula.
    #[test]
    fn the_epsilon_is_of_all_that_a_viewer_got() {
        let delta = Rational::new(93.into(), 100_000_000_000u64.into());
        let total = PrivacyTotal::new(&ratio(11, 100), &delta, &ratio(1, 100));
        assert_eq!((total.rho.as_str(), total.sizes.as_str()), ("11/100", "1/100"));
        assert_eq!(total.words(), "(2.26, 10⁻⁶)-DP");
        assert!((total.epsilon - 2.25617).abs() < 1e-4 && total.delta == DELTA, "{total:?}");
        // A delta that is no smaller than the one quoted adds up.
        let large = PrivacyTotal::new(&ratio(1, 10), &ratio(1, 1_000_000), &ratio(0, 1));
        assert!((large.delta - 2e-6).abs() < 1e-12, "{large:?}");
        const LIFT: &str = include_str!("../../../examples/lift.toml");
        let study = Study::parse("lift.toml", LIFT).expect("a study");
        for viewer in [PartyId(0), PartyId(1)] {
            let total = PrivacyTotal::of_view(&study, viewer, &ratio(1, 10), 1).expect("in range");
            assert_eq!((total.rho.as_str(), total.words().as_str()), ("11/100", "(2.26, 10⁻⁶)-DP"));
            // Six matches that were charged are six times the sizes.
            let six = PrivacyTotal::of_view(&study, viewer, &ratio(1, 10), 6).expect("in range");
            assert_eq!((six.rho.as_str(), six.sizes.as_str(), six.size_charges), ("4/25", "3/50", 6));
        }
    }
}
