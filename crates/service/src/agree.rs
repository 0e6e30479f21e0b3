//! Signing a consent: what was weighed becomes its terms.

use crate::settings::HouseSettings;
use crate::store::{ApprovedTerms, COMMAND_LINE, ConsentRight, OwnConsent, Speaker, Store};
use crate::weigh::{WeighedCharge, WeighedStudy};
use base::{Error, unhex};
use net::{Identity, KeyFingerprint};
use privacy::ledger::Ledger;
use release::rational::{Rational, parse, ratio};
use statements::{ChargeBound, ConsentTerms, ProposalId, ProposalRecord, commit_to_data, digest_of_words};

const DAY_MS: u64 = 86_400_000;

/// Who consents where no person does: the rule that names the study.
pub const BY_RULE: &str = "(policy.auto)";

/// What somebody consents to.
#[derive(Clone, Debug)]
pub struct AgreeOrder {
    /// Who.
    pub by: String,
    /// To which proposal.
    pub id: ProposalId,
    /// With which data set.
    pub data: String,
    /// Runs that may begin anew.
    pub runs: u8,
    /// Days that it holds.
    pub days: u64,
    /// The text that was read.
    pub words: String,
    /// The hash of the rules by which it is weighed; none: nobody has accepted any.
    pub rules: Option<[u8; 32]>,
}

impl AgreeOrder {
    /// What the other of two stewards has to have agreed to.
    #[must_use]
    pub fn approval(&self) -> ApprovedTerms {
        let words = digest_of_words(&self.words);
        ApprovedTerms { data: self.data.clone(), words, runs: self.runs, days: self.days }
    }
}

/// Consents for this organisation, where nothing stands against it.
///
/// # Errors
/// What stands against it; or when the store cannot be written.
pub fn agree(
    store: &Store,
    settings: &HouseSettings,
    order: &AgreeOrder,
    weighed: &WeighedStudy,
) -> Result<ProposalRecord, Error> {
    if !weighed.refusals.is_empty() {
        return Err(Error::refused(weighed.refusals.join("; ")));
    }
    let identity = Identity::load(&settings.identity)?;
    let hash = |text: &str| unhex::<32>(text).ok_or_else(|| Error::misuse("a hash has 64 digits"));
    let (tag, version, program) = (hash(&weighed.tag)?, hash(&weighed.version)?, hash(&weighed.program)?);
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|e| Error::misuse(format!("no randomness: {e}")))?;
    let at_ms = crate::link::now_ms();
    let set = settings.data.get(&order.data);
    let set = set.ok_or_else(|| Error::input(format!("there is no [data.{}]", order.data)))?;
    let two = set.two_person;
    if two && order.by == COMMAND_LINE {
        return Err(Error::refused(format!(
            "two stewards decide on {} (two_person of service.toml), so it is consented to by the page",
            order.data
        )));
    }
    let by_rule = order.by == BY_RULE;
    let study = store.proposal(&order.id)?.map(|row| row.study);
    if by_rule && (two || !study.is_some_and(|study| settings.policy.auto.contains(&study))) {
        return Err(Error::refused("no rule consents to this study: a steward decides"));
    }
    let approval = order.approval();
    let terms = ConsentTerms {
        program,
        charges: bounds(&weighed.charges, order.runs)?,
        words: approval.words,
        data: commit_to_data(&salt, &tag),
        expires_ms: at_ms + order.days * DAY_MS,
        windows: Vec::new(),
        runs: order.runs,
        persons: match (by_rule, two) {
            (true, _) => 0,
            (false, two) => 1 + u8::from(two),
        },
        seal: None,
    };
    let (by, data, words) = (order.by.clone(), order.data.clone(), order.words.clone());
    // What is charged from here on counts towards the consent.
    let after = Ledger::look(&settings.ledger)?.last_debit()?;
    let own = OwnConsent { by, data, salt, tag, version, words, after, taken: false };
    let separate = settings.policy.separate_duties;
    let approval = two.then_some(&approval);
    let right = ConsentRight { rules: order.rules, stewards: &set.stewards, separate, approval };
    store.consent(Speaker { by: &order.by, identity: &identity, at_ms }, &order.id, terms, &own, &right)
}

/// How many matches of so many runs are paid for: sizes of each from the third one on again.
pub fn matches_paid(runs: u8) -> Rational {
    ratio(runs.saturating_sub(1).max(1), 1_u8)
}

/// What so many runs are charged at most: one release, and sizes of each match from the third one on again.
fn bounds(charges: &[WeighedCharge], runs: u8) -> Result<Vec<ChargeBound>, Error> {
    let value = |text: &str| text.parse::<Rational>().map_err(|_| Error::misuse("a charge is a number"));
    let times = matches_paid(runs);
    let everybody = charges.iter().filter(|charge| charge.viewer.is_none());
    let everybody: Rational = everybody
        .map(|charge| value(&charge.release))
        .try_fold(ratio(0, 1), |sum, one| Ok::<_, Error>(sum + one?))?;
    let mut all = Vec::new();
    for charge in charges {
        let viewer = charge.viewer.as_deref().map(str::parse::<KeyFingerprint>).transpose()?;
        let [rho, delta] = [value(&charge.sizes[0])?, value(&charge.sizes[1])?];
        let mut rho = value(&charge.release)? + rho * &times;
        if viewer.is_some() {
            // Each party sees what everybody sees, and the ledger counts that for it, too.
            rho += &everybody;
        }
        all.push(ChargeBound { viewer, rho: bound(&rho), delta: bound(&(delta * &times)) });
    }
    all.sort_by_key(|bound| bound.viewer.map_or([0; 16], |viewer| viewer.bytes()));
    Ok(all)
}

/// At least a number, as a statement holds it: what sizes cost is a sum of fractions, and may have more
/// digits.
pub fn bound(value: &Rational) -> String {
    let exact = value.to_string();
    if parse(&exact).is_some() && exact.len() <= 80 {
        return exact;
    }
    let places = ratio(10u128.pow(24), 1);
    ((value * &places).ceil() / places).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_paid_for_from_the_third_match_on() {
        let key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
        let charge = |viewer: Option<&str>, release: &str, sizes: [&str; 2]| WeighedCharge {
            viewer: viewer.map(str::to_owned),
            release: release.to_owned(),
            sizes: sizes.map(str::to_owned),
        };
        let charges = [charge(Some(key), "0", ["1/100", "1/1000"]), charge(None, "1/10", ["0", "0"])];
        let of = |runs| {
            let all = bounds(&charges, runs).expect("bounds");
            assert!(all[0].viewer.is_none() && all[0].rho == "1/10" && all[0].delta == "0");
            (all[1].rho.clone(), all[1].delta.clone())
        };
        assert_eq!(of(1), ("11/100".to_owned(), "1/1000".to_owned()));
        assert_eq!(of(2), of(1));
        assert_eq!(of(5), ("7/50".to_owned(), "1/250".to_owned()));
    }

    #[test]
    fn what_has_too_many_digits_is_rounded_up() {
        let long: Rational = format!("1/3{}", "7".repeat(60)).parse().expect("a number");
        let rounded = bound(&long);
        assert!(parse(&rounded).expect("a statement holds it") >= long && rounded.len() <= 80);
        assert_eq!(bound(&ratio(1, 3)), "1/3");
    }
}
