//! Signing a consent: what was weighed becomes its terms.

use crate::serving::NO_DATA;
use crate::settings::{DataSet, HouseSettings};
use crate::store::{
    ApprovedTerms, COMMAND_LINE, ConsentRight, OwnConsent, RecordedAct, SealRequest, Speaker, Store,
};
use crate::weigh::{WeighedCharge, WeighedStudy};
use base::{Error, unhex};
use net::{Identity, KeyFingerprint};
use privacy::ledger::Ledger;
use release::rational::{Rational, parse, ratio};
use statements::{
    ChargeBound, ConsentRequest, ConsentTerms, ProposalId, ProposalRecord, RunWindow, StewardSeal,
    commit_to_data, digest_of_words,
};

const DAY_MS: u64 = 86_400_000;

/// Who consents where no person does: the rule that names the study.
pub const BY_RULE: &str = "(policy.auto)";

/// Why changed data are not taken where `steward_keys` names keys.
pub const OTHER_DATA_SIGNED: &str = "a steward's own key has signed for other data (steward_keys): withdraw \
                                     the study, have it proposed again, and sign for these data";

/// What somebody consents to.
#[derive(Clone, Debug)]
pub struct AgreeOrder {
    /// Who.
    pub by: String,
    /// To which proposal.
    pub id: ProposalId,
    /// With which data set; [`NO_DATA`]: as a server.
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

/// Data that changed since consent, and somebody takes.
#[derive(Clone, Debug)]
pub struct ChangeOrder {
    /// Who.
    pub by: String,
    /// Of which proposal.
    pub id: ProposalId,
    /// The data set.
    pub data: String,
    /// What stands for its files as they were on the page.
    pub version: [u8; 32],
    /// The hash of the rules by which they are weighed.
    pub rules: Option<[u8; 32]>,
}

impl ChangeOrder {
    /// What the other of two stewards has to have agreed to: the same files.
    #[must_use]
    pub fn approval(&self) -> ApprovedTerms {
        ApprovedTerms { data: self.data.clone(), words: self.version, runs: 0, days: 0 }
    }
}

/// Takes data that changed since consent for those of the consent, as somebody ordered who decides on them.
///
/// # Errors
/// As [`taken_tag`]; or when the store cannot be written.
pub fn take(
    store: &Store,
    settings: &HouseSettings,
    order: &ChangeOrder,
    study: &str,
    weighed: &WeighedStudy,
) -> Result<(), Error> {
    let tag = taken_tag(store, settings, (&order.id, &order.data, &order.version), weighed)?;
    let set = set_of(settings, &order.data)?;
    let (approval, separate) = (order.approval(), settings.policy.separate_duties);
    let approval = set.two_person.then_some(&approval);
    let right = ConsentRight { rules: order.rules, stewards: &set.stewards, separate, approval, keys: &[] };
    let at = crate::link::now_ms() / 1_000;
    let act = RecordedAct { by: &order.by, what: "data taken as they are", to: study, at };
    store.take_weighed(&act, &order.id, (&order.data, &order.version, &tag), &right)
}

/// The name of data that changed since consent, where nothing stands against taking them: the rules hold, the
/// program is the one that was consented to, nobody is charged more than the consent allows, and no steward's
/// own key has signed for other data.
///
/// # Errors
/// What stands against it; or when the store cannot be read.
pub fn taken_tag(
    store: &Store,
    settings: &HouseSettings,
    (id, data, version): (&ProposalId, &str, &[u8; 32]),
    weighed: &WeighedStudy,
) -> Result<[u8; 32], Error> {
    if !weighed.refusals.is_empty() {
        return Err(Error::refused(weighed.refusals.join("; ")));
    }
    if !set_of(settings, data)?.steward_keys.is_empty() {
        return Err(Error::refused(OTHER_DATA_SIGNED));
    }
    if unhex(&weighed.version) != Some(*version) {
        return Err(Error::refused("the data changed again while they were read: look again"));
    }
    let record = store.standing(id)?;
    let identity = Identity::load(&settings.identity)?.fingerprint();
    let record = record.ok_or_else(|| Error::input("there is no such proposal"))?;
    let terms = record.place(&identity).and_then(|me| record.terms(me));
    let terms = terms.ok_or_else(|| Error::refused("this organisation has not consented"))?;
    if let Some(why) = crate::policy::delta_beyond(&settings.policy, &terms.charges) {
        return Err(Error::refused(why));
    }
    if unhex(&weighed.program) != Some(terms.program) {
        return Err(Error::refused("the study would run another program than was consented to"));
    }
    if !within(&bounds(&weighed.charges, terms.runs)?, &terms.charges) {
        return Err(Error::refused("with these data it would charge more than was consented to"));
    }
    unhex(&weighed.tag).ok_or_else(|| Error::misuse("a name of data has 64 digits"))
}

/// Whether nobody is charged more than some bounds say.
fn within(charges: &[ChargeBound], bounds: &[ChargeBound]) -> bool {
    let value = |text: &str| text.parse::<Rational>().ok();
    charges.iter().all(|charge| {
        let bound = bounds.iter().find(|bound| bound.viewer == charge.viewer);
        bound.is_some_and(|bound| {
            value(&charge.rho).zip(value(&bound.rho)).is_some_and(|(rho, most)| rho <= most)
                && value(&charge.delta).zip(value(&bound.delta)).is_some_and(|(delta, most)| delta <= most)
        })
    })
}

/// What stands against a consent in which so many runs may begin anew, in sentences; empty: nothing.
///
/// # Errors
/// When what was weighed has no numbers.
pub fn stands_against(
    settings: &HouseSettings,
    runs: u8,
    weighed: &WeighedStudy,
) -> Result<Vec<String>, Error> {
    let delta = crate::policy::delta_beyond(&settings.policy, &bounds(&weighed.charges, runs)?);
    let delta = delta.filter(|why| !weighed.refusals.contains(why));
    Ok(weighed.refusals.iter().cloned().chain(delta).collect())
}

/// What came of a consent that nothing stands against.
#[derive(Clone, Debug)]
pub enum ConsentStep {
    /// It is signed.
    Signed(Box<ProposalRecord>),
    /// It waits for the signature of a steward's own key.
    Asked,
}

/// Consents for this organisation, where nothing stands against it; where the data set takes a steward's own
/// key, keeps what is to be signed by it.
///
/// # Errors
/// What stands against it; or when the store cannot be written.
pub fn agree(
    store: &Store,
    settings: &HouseSettings,
    order: &AgreeOrder,
    weighed: &WeighedStudy,
) -> Result<ConsentStep, Error> {
    let against = stands_against(settings, order.runs, weighed)?;
    if !against.is_empty() {
        return Err(Error::refused(against.join("; ")));
    }
    let identity = Identity::load(&settings.identity)?;
    let set = (order.data != NO_DATA).then(|| set_of(settings, &order.data)).transpose()?;
    let two = set.is_some_and(|set| set.two_person);
    if two && order.by == COMMAND_LINE {
        return Err(Error::refused(format!(
            "two stewards decide on {} (two_person of service.toml), so it is consented to by the page",
            order.data
        )));
    }
    let by_rule = order.by == BY_RULE;
    let keyed = set.is_some_and(|set| !set.steward_keys.is_empty());
    let study = store.proposal(&order.id)?.map(|row| row.study);
    let is_named = study.as_ref().is_some_and(|study| match set {
        None => settings.serves_by_rule(study),
        Some(_) => settings.consents_with(study) == Some(order.data.as_str()),
    });
    if by_rule && (two || keyed || !is_named) {
        return Err(Error::refused("no rule consents to this study: a steward decides"));
    }
    let at_ms = crate::link::now_ms();
    let record = store.standing(&order.id)?;
    let record = record.ok_or_else(|| Error::input("there is no such proposal"))?;
    let windows = windows_of(&record, at_ms, order.days)?;
    let (terms, own) = terms(settings, order, weighed, windows, at_ms)?;
    if !keyed {
        let approval = order.approval();
        let separate = settings.policy.separate_duties;
        let approval = two.then_some(&approval);
        let stewards = set.map_or(&[][..], |set| &set.stewards);
        let right = ConsentRight { rules: order.rules, stewards, separate, approval, keys: &[] };
        let speaker = Speaker { by: &order.by, identity: &identity, at_ms };
        let record = store.consent(speaker, &order.id, terms, &own, &right)?;
        return Ok(ConsentStep::Signed(Box::new(record)));
    }
    let organisation = identity.fingerprint();
    let recipients = record.parties().iter().filter(|party| **party != organisation).copied().collect();
    let (study, proposal) = (record.study(), order.id);
    let request = ConsentRequest { study, proposal, organisation, recipients, terms };
    let to = record.study().full();
    let what = "consent waits for a steward's own key";
    let act = RecordedAct { by: &order.by, what, to: &to, at: at_ms / 1_000 };
    store.keep_request(&act, &SealRequest { request, own, rules: order.rules, days: order.days })?;
    Ok(ConsentStep::Asked)
}

fn set_of<'s>(settings: &'s HouseSettings, data: &str) -> Result<&'s DataSet, Error> {
    settings.data.get(data).ok_or_else(|| Error::input(format!("there is no [data.{data}]")))
}

/// When runs may begin by a consent of so many days: within the days that its proposal names.
fn windows_of(record: &ProposalRecord, at_ms: u64, days: u64) -> Result<Vec<RunWindow>, Error> {
    let windows = &record.proposed().windows;
    let until_ms = at_ms + days * DAY_MS;
    if windows.is_empty() || windows.iter().any(|one| one.until_ms > at_ms && one.from_ms < until_ms) {
        return Ok(windows.clone());
    }
    let over = windows.iter().all(|one| one.until_ms <= at_ms);
    Err(Error::refused(match over {
        true => "the days that the proposal names for its runs are over: have it proposed again".to_owned(),
        false => format!(
            "the days that the proposal names for its runs begin after a consent of {days} days has run out: \
             let it hold for longer"
        ),
    }))
}

/// The terms of a consent, and what only this organisation knows of them.
fn terms(
    settings: &HouseSettings,
    order: &AgreeOrder,
    weighed: &WeighedStudy,
    windows: Vec<RunWindow>,
    at_ms: u64,
) -> Result<(ConsentTerms, OwnConsent), Error> {
    let hash = |text: &str| unhex::<32>(text).ok_or_else(|| Error::misuse("a hash has 64 digits"));
    let (tag, version, program) = (hash(&weighed.tag)?, hash(&weighed.version)?, hash(&weighed.program)?);
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|e| Error::misuse(format!("no randomness: {e}")))?;
    // A server has no data, and nothing is charged for them.
    let set = settings.data.get(&order.data);
    let (lineage, two) = (set.map(|set| set.lineage.clone()), set.is_some_and(|set| set.two_person));
    let terms = ConsentTerms {
        program,
        charges: bounds(&weighed.charges, order.runs)?,
        words: digest_of_words(&order.words),
        data: commit_to_data(&salt, &tag, lineage.as_deref()),
        expires_ms: at_ms + order.days * DAY_MS,
        windows,
        runs: order.runs,
        persons: if order.by == BY_RULE { 0 } else { 1 + u8::from(two) },
        seal: None,
    };
    let (by, data, words) = (order.by.clone(), order.data.clone(), order.words.clone());
    let (after, taken) = (last_debit(settings)?, None);
    Ok((terms, OwnConsent { by, data, salt, tag, version, words, after, taken, lineage }))
}

/// What is charged from here on counts towards a consent.
fn last_debit(settings: &HouseSettings) -> Result<u64, Error> {
    Ledger::look(&settings.ledger)?.last_debit()
}

/// Consents with the signature of a steward's own key, for whoever asked for it.
///
/// # Errors
/// When nothing waits for it, it is of another key or for something else, or other rules hold by now; or when
/// the store cannot be written.
pub fn seal(
    store: &Store,
    settings: &HouseSettings,
    by: &str,
    id: &ProposalId,
    seal: StewardSeal,
) -> Result<ProposalRecord, Error> {
    let at_ms = crate::link::now_ms();
    let SealRequest { request, own, rules, days } = store.request(id, at_ms / 1_000)?.ok_or_else(|| {
        Error::refused("nothing waits for a steward's signature, or it has waited for a week: consent again")
    })?;
    if own.by != by {
        return Err(Error::refused(format!("{} asked for this signature, and gives it", own.by)));
    }
    let set = set_of(settings, &own.data)?;
    let key = seal.steward();
    if !set.steward_keys.contains(&key) {
        let data = &own.data;
        return Err(Error::refused(format!(
            "{key} is no key of a steward of {data} (steward_keys of service.toml)"
        )));
    }
    if !seal.is_of(&request) {
        return Err(Error::refused(
            "the signature is for something else: another study, other words or other terms. Sign the \
             request that waits now",
        ));
    }
    let own = OwnConsent { after: last_debit(settings)?, ..own };
    let ConsentTerms { words, runs, .. } = request.terms;
    let approval = ApprovedTerms { data: own.data.clone(), words, runs, days };
    let separate = settings.policy.separate_duties;
    let approval = set.two_person.then_some(&approval);
    let right = ConsentRight { rules, stewards: &set.stewards, separate, approval, keys: &set.steward_keys };
    let identity = Identity::load(&settings.identity)?;
    let speaker = Speaker { by, identity: &identity, at_ms };
    store.consent(speaker, id, ConsentTerms { seal: Some(seal), ..request.terms }, &own, &right)
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
