//! What an organisation has and allows, as programs see it: budgets, data, links, rules, the log.

use super::shapes::{
    ApiBudgetOf, ApiBudgets, ApiChain, ApiColumn, ApiDataSet, ApiDataSets, ApiDebit, ApiEntry, ApiLeft,
    ApiLog, ApiNothing, ApiPause, ApiPeer, ApiPeers, ApiRules, ApiSection, ApiSelf, ApiStep, ApiTrial,
    ApiViewer,
};
use super::stop::ApiStop;
use super::studies::number;
use crate::budget::{DataBudget, ViewerBudget, budgets as of_ledger};
use crate::findings::without_columns;
use crate::link::{now_ms, test_peer};
use crate::roles::{Action, Grant, Subject};
use crate::settings::{DataSet, ServicePeer, words};
use crate::web::answer::Answer;
use crate::web::checking::{read, start};
use crate::web::pages::budget::held;
use crate::web::pages::{audit, data as pages, peers as links};
use crate::web::visit::{Stop, Visit};
use privacy::ledger::Ledger;

/// Debits of one viewer that are shown.
const DEBITS: usize = 50;
/// Entries of a list.
const PAGE: u32 = 50;

/// Whose token this is.
pub fn me(visit: &Visit<'_>) -> Result<ApiSelf, ApiStop> {
    let signed = visit.signed()?;
    let role = |grant: &Grant| match &grant.data {
        Some(data) => format!("{}={data}", grant.role.name()),
        None => grant.role.name().to_owned(),
    };
    Ok(ApiSelf {
        organisation: visit.settings().name.clone(),
        account: signed.session.account.clone(),
        roles: signed.actor.grants.iter().map(role).collect(),
    })
}

/// What is left of the budgets that the account sees.
pub fn budgets(visit: &Visit<'_>) -> Result<ApiBudgets, ApiStop> {
    let settings = visit.settings();
    let sees = |(name, _): &(&String, &DataSet)| visit.may(Action::SeeBudget, Subject::Data(name));
    let ledger = settings.ledger.exists().then(|| Ledger::look(&settings.ledger)).transpose()?;
    let held = held(visit, ledger.as_ref())?;
    let all = of_ledger(settings, ledger.as_ref(), &held, settings.data.iter().filter(sees))?;
    if all.is_empty() {
        return Err(Stop::Denied.into());
    }
    Ok(ApiBudgets { sets: all.into_iter().map(budget_of).collect() })
}

fn budget_of(one: DataBudget) -> ApiBudgetOf {
    let DataBudget { data, lineage, viewers, together } = one;
    ApiBudgetOf { data, lineage, together, viewers: viewers.into_iter().map(viewer).collect() }
}

fn viewer(one: ViewerBudget) -> ApiViewer {
    let [budget, spent, left] = one.rho;
    let debits = one.debits.iter().take(DEBITS).map(|entry| ApiDebit {
        at: entry.at,
        study: if entry.is_recovered() { String::new() } else { entry.study.clone() },
        rho: entry.exact_rho.clone(),
        delta: entry.exact_delta.clone(),
    });
    let debits = debits.collect();
    let studies = one.studies.into_iter().map(|left| ApiLeft { count: left.count, of: left.of }).collect();
    let held = one.held.map_or_else(|| "0".to_owned(), |(held, _)| held);
    let public = one.public.unwrap_or_else(|| "0".to_owned());
    ApiViewer { viewer: one.viewer, budget, spent, public, left, held, studies, debits }
}

/// The same of one data set and one viewer.
pub fn budget(visit: &Visit<'_>) -> Result<ApiBudgetOf, ApiStop> {
    let mut sets = budgets(visit)?.sets.into_iter();
    let mut set = sets.find(|set| set.data == visit.part("name")).ok_or(Stop::Missing)?;
    set.viewers.retain(|viewer| viewer.viewer == visit.part("peer"));
    if set.viewers.is_empty() { Err(Stop::Missing.into()) } else { Ok(set) }
}

/// Data sets that the account may know of.
pub fn sets(visit: &Visit<'_>) -> Result<ApiDataSets, ApiStop> {
    let known = visit.settings().data.iter().filter(|(name, _)| pages::sees(visit, name));
    let sets = known.map(|(name, set)| shown(visit, name, set)).collect::<Result<Vec<_>, _>>()?;
    if sets.is_empty() { Err(Stop::Denied.into()) } else { Ok(ApiDataSets { sets }) }
}

/// One of them.
pub fn set(visit: &Visit<'_>) -> Result<ApiDataSet, ApiStop> {
    let name = visit.part("name");
    let set = visit.settings().data.get(name).filter(|_| pages::sees(visit, name)).ok_or(Stop::Missing)?;
    shown(visit, name, set)
}

fn shown(visit: &Visit<'_>, name: &str, set: &DataSet) -> Result<ApiDataSet, ApiStop> {
    let subject = Subject::Data(name);
    let (counts, columns) = (visit.may(Action::CheckData, subject), visit.may(Action::SeeColumns, subject));
    let check = visit.house.store.checks_of(name, 1)?.pop();
    let found = check.as_ref().map(|check| read(&check.found));
    let mut shown = ApiDataSet {
        data: name.to_owned(),
        lineage: set.lineage.clone(),
        peers: set.peers.clone(),
        servers: set.servers.clone(),
        checking: visit.house.checking.has(name),
        checked: check.as_ref().map(|check| check.at),
        checked_by: check.map(|check| check.by),
        rows: None,
        whole: None,
        fits: found.as_ref().map(|found| found.as_ref().is_ok_and(|found| found.problems.is_empty())),
        problems: Vec::new(),
        columns: None,
    };
    match found {
        None => {}
        // Why a check failed names files.
        Some(Err(why)) => {
            shown.problems.push(if columns { why } else { "the check failed".to_owned() });
        }
        Some(Ok(found)) => {
            (shown.rows, shown.whole) = (counts.then_some(found.rows), counts.then_some(found.whole));
            let problem = |problem: &String| match columns {
                true => problem.clone(),
                false => without_columns(problem).to_owned(),
            };
            shown.problems = found.problems.iter().map(problem).collect();
            let column = |one: crate::findings::FoundColumn| ApiColumn {
                name: one.name,
                looks: one.looks,
                empty: one.empty,
                allowed: one.allowed,
            };
            shown.columns = columns.then(|| found.columns.into_iter().map(column).collect());
        }
    }
    Ok(shown)
}

/// Begins to check one.
pub fn check(visit: &Visit<'_>, _: ApiNothing) -> Result<ApiDataSet, ApiStop> {
    let name = visit.part("name");
    let signed = visit.must(Action::CheckData, Subject::Data(name))?;
    let set = visit.settings().data.get(name).ok_or(Stop::Missing)?;
    match start(visit.house, &signed.session.account, name)? {
        false if !visit.house.checking.has(name) => Err(Stop::Busy.into()),
        _ => shown(visit, name, set),
    }
}

/// Other organisations.
pub fn peers(visit: &Visit<'_>) -> Result<ApiPeers, ApiStop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let all = visit.settings().peers.iter().map(|(name, peer)| link(visit, name, peer));
    Ok(ApiPeers { peers: all.collect::<Result<_, _>>()? })
}

/// One of them.
pub fn peer(visit: &Visit<'_>) -> Result<ApiPeer, ApiStop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let (name, peer) = links::of_path(visit)?;
    link(visit, name, peer)
}

fn link(visit: &Visit<'_>, name: &str, peer: &ServicePeer) -> Result<ApiPeer, ApiStop> {
    let standing = visit.house.links().of(&peer.key);
    let used = visit.house.store.used_by(peer.key, now_ms())?;
    Ok(ApiPeer {
        name: name.to_owned(),
        key: peer.key.to_string(),
        address: peer.address.clone(),
        since_ms: standing.since_ms,
        error: standing.last_error.map(|(_, why)| why).filter(|_| standing.since_ms.is_none()),
        heard_ms: standing.heard_ms,
        ahead_ms: standing.ahead_ms,
        version: standing.version,
        paused: visit.house.store.paused()?.contains(name),
        proposals_open: used.open,
        proposals_today: used.today,
    })
}

/// Tests whether one can be reached.
pub fn test(visit: &Visit<'_>, _: ApiNothing) -> Result<ApiTrial, ApiStop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let (_, peer) = links::of_path(visit)?;
    let _held = visit.house.testing.try_lock().map_err(|_| Stop::Busy)?;
    let steps = test_peer(visit.house, peer).into_iter().map(|step| {
        let done = step.told.is_ok();
        ApiStep { step: step.name.to_owned(), done, told: step.told.unwrap_or_else(|why| why) }
    });
    Ok(ApiTrial { steps: steps.collect() })
}

/// Pauses its link; to end that takes a password, on the page.
pub fn pause(visit: &Visit<'_>, sent: ApiPause) -> Result<ApiPeer, ApiStop> {
    let (name, peer) = links::of_path(visit)?;
    match sent.paused {
        true => links::begin_pause(visit, name, peer)?,
        // Ending a pause takes a password on the page.
        false => return Err(Stop::Unproven.into()),
    }
    link(visit, name, peer)
}

/// What the organisation allows, in words.
pub fn rules(visit: &Visit<'_>) -> Result<ApiRules, ApiStop> {
    visit.must(Action::SeeRules, Subject::House)?;
    let accepted = visit.house.store.accepted()?;
    let said = words(visit.settings(), &|name| visit.may(Action::SeeColumns, Subject::Data(name)));
    let section = |(title, lines)| ApiSection { title, lines, table: Vec::new() };
    Ok(ApiRules {
        hash: accepted.as_ref().map(|text| base::hex(&text.hash)),
        at: accepted.as_ref().map(|text| text.at),
        by: accepted.map(|text| text.by),
        notice: visit.rules.standing.notice(),
        sections: said.into_iter().map(section).collect(),
    })
}

/// Entries of the log.
pub fn log(visit: &Visit<'_>) -> Result<ApiLog, ApiStop> {
    visit.must(Action::SeeAudit, Subject::House)?;
    let filter = audit::filter(visit).map_err(ApiStop::input)?;
    let mut entries = visit.house.store.trail_page(&filter, number(visit, "after")?, PAGE + 1)?;
    let more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let whole = audit::sees_details(visit);
    let next = entries.last().map(|entry| entry.number).filter(|_| more);
    let entries = entries.into_iter().map(|entry| ApiEntry {
        number: entry.number,
        at_ms: entry.at_ms,
        actor: entry.actor,
        action: entry.action,
        subject: entry.subject,
        detail: Some(entry.detail).filter(|detail| whole || detail == "null"),
        previous: entry.previous,
        hash: entry.hash,
    });
    Ok(ApiLog { entries: entries.collect(), next })
}

/// Computes its chain anew.
pub fn verify(visit: &Visit<'_>, _: ApiNothing) -> Result<ApiChain, ApiStop> {
    let (found, error) = match audit::computed(visit)? {
        Ok(found) => (Some(found), None),
        Err(why) => (None, Some(why)),
    };
    Ok(ApiChain {
        fits: found.is_some(),
        first: found.as_ref().map(|log| log.first),
        last: found.as_ref().map(|log| log.last),
        hash: found.map(|log| log.hash),
        error,
    })
}

/// Its entries as JSON lines.
pub fn export(visit: &Visit<'_>) -> Result<Answer, ApiStop> {
    visit.must(Action::SeeAudit, Subject::House)?;
    audit::filter(visit).map_err(ApiStop::input)?;
    Ok(audit::export(visit)?)
}
