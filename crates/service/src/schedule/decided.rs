//! What the rules decide without a person: a proposal that they do not allow is refused, with the rule's
//! name; one of a study that `policy.auto` names is consented to.

use super::Look;
use crate::agree::{AgreeOrder, BY_RULE};
use crate::policy::refusal;
use crate::serving::{NO_DATA, server_of, serving_rules};
use crate::store::{ALREADY_OPEN, SERVICE, Speaker};
use crate::web::{WeighOrder, Weighed, weigh_for};
use base::Error;
use page::numbers::counted;
use statements::{Act, ClosingCode, ClosingReason, Said};

/// How often a proposal that waits is held against the rules, in milliseconds.
pub const AGAIN_MS: u64 = 30_000;
/// When a consent that came to nothing is tried again.
const TRIED_MS: u64 = 3_600_000;
/// Runs that may begin anew: the second one is charged nothing more, and a run may break off once.
const RUNS: u8 = 2;
/// Days that it holds.
const DAYS: u64 = 30;

/// Decides, where the rules do; whether something was said.
pub fn decides(look: &Look<'_>) -> Result<bool, Error> {
    let (jobs, id) = (look.house.jobs(), look.row.id);
    if look.view.may(look.me, Act::Refuse).is_err() || !jobs.is_to_decide(&id, look.now_ms) {
        return Ok(false);
    }
    let reason = if look.record.proposer() == look.me { None } else { refused(look)? };
    let refuses = reason.is_some();
    match (reason, look.house.identity()) {
        (Some(reason), Some(identity)) => {
            let speaker = Speaker { by: SERVICE, identity, at_ms: look.now_ms };
            look.house.store().say(speaker, &id, Said::Refuse(reason))?;
        }
        _ => consents(look)?,
    }
    // Only what was done is not done again: a kill, or a full disk, before that changes nothing.
    jobs.was_decided(id, look.now_ms);
    Ok(refuses)
}

/// Why a peer's proposal is refused; so is one of a study of which another one is open.
fn refused(look: &Look<'_>) -> Result<Option<ClosingReason>, Error> {
    let first = look.house.store().proposal_of(&look.record.study())?;
    if first.is_none_or(|row| row.id == look.row.id) {
        return Ok(refusal(&look.settings, look.record.parties()[look.me], &look.record));
    }
    Ok(Some(ClosingReason { code: ClosingCode::Policy, text: ALREADY_OPEN.to_owned() }))
}

/// Begins a consent by rule, where `policy.auto` names the study and its data set, on which one steward could
/// decide. Nothing else is spared: the study is held against data, budget and all rules as for a steward.
fn consents(look: &Look<'_>) -> Result<(), Error> {
    let (house, study) = (look.house, look.record.study());
    let accepted = house.rules().standing == crate::RulesStanding::Accepted;
    let own = look.record.parties()[look.me];
    let (file, key) = (look.file()?, own.to_string());
    let serves = server_of(file.first(), &key).is_some();
    let named = match serves {
        true => look.settings.serves_by_rule(&study).then_some(NO_DATA),
        false => look.settings.consents_with(&study),
    };
    let Some(data) = named.filter(|_| accepted) else { return Ok(()) };
    if !house.store().may_consent_by_rule(&study, data, own)? {
        return Ok(());
    }
    let tried = house.store().weighed(&look.row.id)?;
    if tried.is_some_and(|(at, ..)| look.now_ms.saturating_sub(at * 1_000) < TRIED_MS) {
        return Ok(());
    }
    let text = look.record.proposed().text.clone();
    let me = file.parties.iter().find(|party| party.key == key);
    let fits = match (me, look.settings.data.get(data)) {
        (None, _) => serves && serving_rules(&look.settings, &file, own).is_empty(),
        (Some(me), Some(set)) => {
            !set.two_person
                && set.steward_keys.is_empty()
                && crate::weigh::rules(&look.settings, set, &file, me).is_empty()
        }
        (Some(_), None) => false,
    };
    if !fits {
        return Ok(());
    }
    let with = if serves { "as a server".to_owned() } else { format!("with the data set {data}") };
    let words = format!(
        "Without a person, by the rule policy.auto of service.toml, which names this study: {} ({}), \
         {with}, in at most {} begun anew.\nThe study:\n{text}",
        base::clean(look.record.title()),
        study.full(),
        counted(u64::from(RUNS), "run")
    );
    let (by, id, data) = (BY_RULE.to_owned(), look.row.id, data.to_owned());
    let agree = AgreeOrder { by, id, data, runs: RUNS, days: DAYS, words, rules: None };
    weigh_for(house, WeighOrder { what: Weighed::Consent(agree), study: study.full(), text }).map(drop)
}
