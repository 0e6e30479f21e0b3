//! A consent on its way: the study is held against our data by a process of its own, and signed when nothing
//! stands against it.

use super::House;
use super::checking::watch;
use crate::settings::{HouseSettings, RulesFile};
use crate::store::{OwnConsent, RecordedAct, Speaker, Store};
use crate::weigh::{WeighedCharge, WeighedStudy};
use base::{Error, unhex};
use net::{Identity, KeyFingerprint};
use release::rational::{Rational, parse, ratio};
use serde_json::json;
use statements::{ChargeBound, ConsentTerms, ProposalId, commit_to_data, digest_of_words};
use std::collections::HashSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

const DAY_MS: u64 = 86_400_000;
/// Studies that are held against data at a time.
const AT_ONCE: usize = 2;

/// The proposals whose consent is on its way.
#[derive(Clone, Default)]
pub struct Weighing(Arc<Mutex<HashSet<[u8; 16]>>>);

impl Weighing {
    /// Whether the consent to a proposal is on its way.
    pub fn has(&self, id: &ProposalId) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains(&id.0)
    }

    fn begin(&self, id: &ProposalId) -> bool {
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.len() < AT_ONCE && all.insert(id.0)
    }

    fn end(&self, id: &ProposalId) {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&id.0);
    }
}

/// What a steward consents to.
#[derive(Clone, Debug)]
pub struct WeighOrder {
    /// Who.
    pub by: String,
    /// To which proposal.
    pub id: ProposalId,
    /// The hash of its study, for the log.
    pub study: String,
    /// Its text.
    pub text: String,
    /// With which data set.
    pub data: String,
    /// Runs that may begin anew.
    pub runs: u8,
    /// Days that it holds.
    pub days: u64,
    /// People who agreed.
    pub persons: u8,
    /// The text that was read.
    pub words: String,
}

/// Starts it; false where it is under way, or too many others are. Rules are those that hold, not what the
/// file says by now.
pub fn start(house: &House, settings: &Arc<HouseSettings>, order: WeighOrder) -> Result<bool, Error> {
    let rules = match house.store.accepted()? {
        Some(accepted) => accepted.text,
        None => RulesFile::read(&house.path)?.text,
    };
    let program = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
    if !house.weighing.begin(&order.id) {
        return Ok(false);
    }
    let mut command = Command::new(program);
    command.args(["service", "weigh", "--child", "--json"]).arg(&house.path).arg(&order.data);
    let input = json!({ "rules": rules, "study": order.text }).to_string();
    let (store, settings, weighing) = (house.store.clone(), settings.clone(), house.weighing.clone());
    watch(command, input, move |found| {
        let said = match signed(&store, &settings, &order, &found) {
            Ok(()) => String::new(),
            Err(why) => why,
        };
        let act = RecordedAct { by: &order.by, what: "study held against data", to: &order.study, at: super::now() };
        // Where it cannot be kept, the page still shows whether the consent is there.
        let _ = store.keep_weighed(&act, &order.id, &order.data, &said);
        weighing.end(&order.id);
    });
    Ok(true)
}

/// Signs, where nothing stands against it.
fn signed(store: &Store, settings: &HouseSettings, order: &WeighOrder, found: &str) -> Result<(), String> {
    let value: serde_json::Value = serde_json::from_str(found).map_err(|e| e.to_string())?;
    if let Some(message) = value["error"]["message"].as_str() {
        return Err(message.to_owned());
    }
    let weighed: WeighedStudy = serde_json::from_value(value).map_err(|e| e.to_string())?;
    if !weighed.refusals.is_empty() {
        return Err(weighed.refusals.join(". "));
    }
    sign(store, settings, order, &weighed).map_err(|error| error.to_string())
}

fn sign(
    store: &Store,
    settings: &HouseSettings,
    order: &WeighOrder,
    weighed: &WeighedStudy,
) -> Result<(), Error> {
    let identity = Identity::load(&settings.identity)?;
    let hash = |text: &str| unhex::<32>(text).ok_or_else(|| Error::misuse("a hash has 64 digits"));
    let (tag, program) = (hash(&weighed.tag)?, hash(&weighed.program)?);
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|e| Error::misuse(format!("no randomness: {e}")))?;
    let at_ms = super::now() * 1_000;
    let terms = ConsentTerms {
        program,
        charges: bounds(&weighed.charges, order.runs)?,
        words: digest_of_words(&order.words),
        data: commit_to_data(&salt, &tag),
        expires_ms: at_ms + order.days * DAY_MS,
        windows: Vec::new(),
        runs: order.runs,
        persons: order.persons,
        seal: None,
    };
    let (by, data, words) = (order.by.clone(), order.data.clone(), order.words.clone());
    let own = OwnConsent { by, data, salt, tag, words };
    store.consent(Speaker { by: &order.by, identity: &identity, at_ms }, &order.id, terms, &own).map(drop)
}

/// What so many runs are charged at most: one release, and sizes of each match from the third one on again.
fn bounds(charges: &[WeighedCharge], runs: u8) -> Result<Vec<ChargeBound>, Error> {
    let value = |text: &str| parse(text).ok_or_else(|| Error::misuse("a charge is a number"));
    let times: Rational = ratio(runs.saturating_sub(1).max(1), 1_u8);
    let mut all = Vec::new();
    for charge in charges {
        let viewer = charge.viewer.as_deref().map(str::parse::<KeyFingerprint>).transpose()?;
        let [rho, delta] = [value(&charge.sizes[0])?, value(&charge.sizes[1])?];
        let rho = value(&charge.release)? + rho * &times;
        all.push(ChargeBound { viewer, rho: rho.to_string(), delta: (delta * &times).to_string() });
    }
    all.sort_by_key(|bound| bound.viewer.map_or([0; 16], |viewer| viewer.bytes()));
    Ok(all)
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
        assert_eq!(of(1), ("1/100".to_owned(), "1/1000".to_owned()));
        assert_eq!(of(2), of(1));
        assert_eq!(of(5), ("1/25".to_owned(), "1/250".to_owned()));
    }
}
