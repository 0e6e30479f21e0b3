//! Dummy rows of a match: what a study asks for, and what they cost this party's privacy.

use crate::study::{Decimal, DummyRule, Matching, Protocol, Study};
use base::{Error, Seed};
use matching::dummies::{Charge, Dummies, Hides};
use num_traits::Zero;
use release::Rational;
use release::rational::ratio;

/// What a protocol shows of sizes.
pub(crate) fn hides(protocol: Protocol) -> Hides {
    match protocol {
        Protocol::CircuitPsi => Hides::Rows,
        _ => Hides::Intersection,
    }
}

/// How many matched pairs one row takes part in, at most.
fn reach(matching: &Matching) -> u64 {
    let keys = matching.identifiers.len() as u64;
    match matching.protocol {
        Protocol::Collecting { slots, degree, .. } => keys.max(slots.into()).max(degree.into()),
        _ => keys,
    }
}

/// The dummies of one run.
///
/// # Errors
/// When the study's epsilon and delta need too many rows.
pub(crate) fn dummies(rule: &DummyRule, seed: &Seed) -> Result<Dummies, Error> {
    let (num, den): (u64, u64) = Decimal::ratio(rule.epsilon);
    let delta = ratio(1u64, 10u64.pow(rule.delta_places.into()));
    Dummies::new(&ratio(num, den), &delta, seed)
}

/// What a match costs each party towards each other one; `None` without dummies, when exact sizes are disclosed and no
/// guarantee covers them.
///
/// # Errors
/// As [`dummies`].
pub fn charge(study: &Study) -> Result<Option<Charge>, Error> {
    let Some(rule) = &study.matching.dummies else { return Ok(None) };
    // A charge does not depend on the seed.
    let dummies = dummies(rule, &Seed::from_bytes([0; 32]))?;
    Ok(Some(dummies.charge(hides(study.matching.protocol), reach(&study.matching))))
}

/// The zCDP of [`charge`]; 0 without one.
///
/// # Errors
/// As [`charge`].
pub(crate) fn rho(study: &Study) -> Result<Rational, Error> {
    Ok(charge(study)?.map_or_else(Rational::zero, |charge| charge.rho))
}
