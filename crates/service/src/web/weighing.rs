//! A consent on its way, or data that changed since: the study is held against our data by a process of its
//! own, and what was asked for is done when nothing stands against it.

use super::House;
use super::checking::{CHECK, watch};
use crate::agree::{AgreeOrder, ChangeOrder, agree, take};
use crate::settings::{HouseSettings, RulesFile};
use crate::store::{RecordedAct, Store};
use crate::weigh::WeighedStudy;
use base::Error;
use serde_json::json;
use statements::ProposalId;
use std::collections::HashSet;
use std::process::Command;
use std::sync::{Arc, Mutex};

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

/// What is done when nothing stands against it.
pub enum Weighed {
    /// A consent is signed.
    Consent(AgreeOrder),
    /// Data that changed since consent are taken for those of the consent.
    Change(ChangeOrder),
}

/// What is asked for, and its study.
pub struct WeighOrder {
    /// What is done.
    pub what: Weighed,
    /// The hash of the study, for the log.
    pub study: String,
    /// Its text.
    pub text: String,
}

impl Weighed {
    /// Who asks, about which proposal and data set.
    fn about(&self) -> (&str, &ProposalId, &str) {
        match self {
            Self::Consent(AgreeOrder { by, id, data, .. })
            | Self::Change(ChangeOrder { by, id, data, .. }) => (by, id, data),
        }
    }
}

/// Starts it; false where it is under way, or too many others are. Rules are those that hold, not what the
/// file says by now; where others hold when all is read, nothing is done.
pub fn start(house: &House, mut order: WeighOrder) -> Result<bool, Error> {
    let accepted = house.store.accepted()?;
    let accepted = accepted.ok_or_else(|| Error::refused("nobody has accepted service.toml yet"))?;
    let settings = RulesFile::parse(&house.path, &accepted.text)?;
    match &mut order.what {
        Weighed::Consent(order) => order.rules = Some(accepted.hash),
        Weighed::Change(order) => order.rules = Some(accepted.hash),
    }
    let program = std::env::current_exe().map_err(|e| Error::io("cannot find this program", &e))?;
    let (_, id, data) = order.what.about();
    if !house.weighing.begin(id) {
        return Ok(false);
    }
    let mut command = Command::new(program);
    command.args(["service", "weigh", "--json"]).arg(&house.path).arg(data);
    let input = json!({ "rules": accepted.text, "study": order.text }).to_string();
    let (store, weighing) = (house.store.clone(), house.weighing.clone());
    watch(command, input, CHECK, move |found| {
        let said = match done(&store, &settings, &order, &found) {
            Ok(()) => String::new(),
            Err(why) => why,
        };
        let (by, id, data) = order.what.about();
        let act = RecordedAct { by, what: "study held against data", to: &order.study, at: super::now() };
        // Where it cannot be kept, the page still shows whether the consent is there.
        let _ = store.keep_weighed(&act, id, data, &said);
        weighing.end(id);
        store.ring();
    });
    Ok(true)
}

/// Does it, where nothing stands against it.
fn done(store: &Store, settings: &HouseSettings, order: &WeighOrder, found: &str) -> Result<(), String> {
    let value: serde_json::Value = serde_json::from_str(found).map_err(|e| e.to_string())?;
    if let Some(message) = value["error"]["message"].as_str() {
        return Err(message.to_owned());
    }
    let weighed: WeighedStudy = serde_json::from_value(value).map_err(|e| e.to_string())?;
    let done = match &order.what {
        Weighed::Consent(order) => agree(store, settings, order, &weighed).map(drop),
        Weighed::Change(change) => take(store, settings, change, &order.study, &weighed),
    };
    done.map_err(|error| error.to_string())
}
