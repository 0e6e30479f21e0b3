//! Dummy rows of a match: what a study asks for, and what they cost each party's privacy.

use base::{Error, PartyId, Seed};
use matching::ContaminatedRule;
use matching::dummies::{Dummies, ShownSizes, SizeCharge};
use num_traits::Zero;
use release::Rational;
use release::rational::ratio;
use serde::{Deserialize, Serialize};
use study::{DummyRule, Study};

/// What a match tells that no made-up rows cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum MatchLeakage {
    /// One party saw which rows share identifiers with which, in orders that hide whose rows they are.
    MatchGraph {
        /// Who.
        to: String,
    },
    /// The advertiser was told the sizes of both arms, exactly.
    ArmSizes,
    /// One party counted the rows that each set of parties has in common, exactly.
    Overlaps {
        /// Who.
        to: String,
    },
}

/// The dummies of one run.
///
/// # Errors
/// When the study's epsilon and delta need too many rows.
pub fn dummies(rule: &DummyRule, seed: &Seed) -> Result<Dummies, Error> {
    let delta = ratio(1u64, 10u64.pow(rule.delta_places.into()));
    Dummies::new(&rule.epsilon, &delta, seed)
}

/// What the sizes that a match shows of one party's rows cost that party towards each other one; `None`
/// without dummies, when exact sizes are disclosed and no guarantee covers them.
///
/// # Errors
/// As [`dummies`].
pub fn charge(study: &Study, owner: PartyId) -> Result<Option<SizeCharge>, Error> {
    let Some(rule) = &study.matching.dummies else { return Ok(None) };
    // A charge does not depend on the seed.
    let dummies = dummies(rule, &Seed::from_bytes([0; 32]))?;
    let matching = &study.matching;
    let keys = matching.identifiers.len() as u64;
    let (hides, reach) = matching.matcher.exposure(owner, keys, &matching.options());
    Ok(Some(dummies.charge(hides, reach)))
}

/// Made-up rows in the size of a match between two parties: their mean, and their standard deviation rounded
/// up. Nothing without dummies, where that size does not show, and among more parties.
///
/// # Errors
/// As [`dummies`].
pub fn in_match(study: &Study) -> Result<Option<[u64; 2]>, Error> {
    let matching = &study.matching;
    let (Some(rule), 2) = (&matching.dummies, study.parties.len()) else { return Ok(None) };
    let keys = matching.identifiers.len() as u64;
    let shows = |owner: u8| {
        let (hides, _) = matching.matcher.exposure(PartyId(owner), keys, &matching.options());
        hides == ShownSizes::Intersection
    };
    // Both have a part of each other's list.
    let dummies = dummies(rule, &Seed::from_bytes([0; 32]))?;
    Ok((shows(0) && shows(1)).then(|| [2 * dummies.centre(), dummies.pair_sigma()]))
}

/// The zCDP that other parties' rows are charged for what `viewer` sees of sizes; 0 without dummies. Among
/// more parties all are charged alike.
///
/// # Errors
/// As [`charge`].
pub fn rho(study: &Study, viewer: PartyId) -> Result<Rational, Error> {
    let owner = PartyId(u8::from(viewer == PartyId(0)));
    Ok(charge(study, owner)?.map_or_else(Rational::zero, |charge| charge.rho))
}

/// What a match tells besides sizes, or exactly, and no dummies cover.
pub fn uncovered(study: &Study) -> Vec<MatchLeakage> {
    let matching = &study.matching;
    let to = || study.parties[0].name.clone();
    let mut told = Vec::new();
    let features = matching.matcher.features();
    // With dummies the charge covers overlaps too.
    if features.shows_overlaps && matching.dummies.is_none() {
        told.push(MatchLeakage::Overlaps { to: to() });
    }
    if features.shows_graph {
        told.push(MatchLeakage::MatchGraph { to: to() });
    }
    if matching.contaminated != ContaminatedRule::Ignore {
        told.push(MatchLeakage::ArmSizes);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The charge follows what each party sees, in units of a row that moves one noise by one.
    #[test]
    fn each_party_is_charged_for_what_the_other_sees() {
        const LIFT: &str = include_str!("../../../examples/lift.toml");
        let one = "[ { name = \"child_id\", normalise = [\"trim\", \"lowercase\"] } ]";
        let of = |protocol: &str, ids: &str, rule: &str| {
            let text = LIFT.replacen("protocol    = \"pid\"", &format!("protocol = {protocol}"), 1);
            let text = text.replacen(one, ids, 1).replacen("= \"error\"", &format!("= \"{rule}\""), 1);
            let study = Study::parse("study.toml", &text).unwrap_or_else(|e| panic!("{protocol}: {e}"));
            // In units of epsilon: 1/10.
            [0, 1].map(|owner| {
                let charge = charge(&study, PartyId(owner)).expect("in range").expect("dummies");
                (charge.epsilon * ratio(10, 1)).to_string()
            })
        };
        let two = "[ \"mail\", \"phone\" ]";
        assert_eq!(of("\"pid\"", one, "error"), ["2", "2"]);
        assert_eq!(of("\"pid\"", two, "error"), ["4", "4"]);
        assert_eq!(of("\"pid\"", two, "first"), ["10", "10"]);
        let collecting = "\"collecting\"\nslots = 9\ndegree = 3";
        assert_eq!(of(collecting, two, "error"), ["1", "12"]);
        assert_eq!(of(collecting, two, "keep"), ["1", "18"]);
        assert_eq!(of("\"circuit-psi\"", one, "error"), ["1", "1"]);
    }

    /// Both parties' lists are in the size of a match, where it shows: 185 of each, of scale 10.
    #[test]
    fn made_up_rows_in_a_match_have_a_mean() {
        const LIFT: &str = include_str!("../../../examples/lift.toml");
        let of = |protocol: &str| {
            let text = LIFT.replacen("protocol    = \"pid\"", &format!("protocol = {protocol}"), 1);
            in_match(&Study::parse("study.toml", &text).expect("a study")).expect("in range")
        };
        assert_eq!([of("\"pid\""), of("\"circuit-psi\"")], [Some([370, 20]), None]);
        let off = LIFT.replacen("[match]", "[match]\ndummies = \"off\"", 1);
        assert_eq!(in_match(&Study::parse("study.toml", &off).expect("a study")).expect("in range"), None);
    }
}
