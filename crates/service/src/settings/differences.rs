//! What one text of `service.toml` allows that another does not. Whatever is not plainly tighter is looser:
//! what loosens a rule takes two people.

use super::{DataSet, HouseSettings, ServicePeer, ServicePolicy};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A rule that is another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleDifference {
    /// Its name in the file: `data.trial.budget`.
    pub rule: String,
    /// The data set that it is about; none: the organisation.
    pub data: Option<String>,
    /// What of it changed.
    pub turn: RuleTurn,
}

/// Which way a rule was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleTurn {
    /// It allows less.
    Tighter,
    /// It allows more, or something else.
    Looser,
    /// It is about the machine: where files lie, what listens, what is run.
    Machine,
}

/// What somebody changed, by comparing what two texts say.
struct FoundDifferences {
    found: Vec<RuleDifference>,
    place: String,
    data: Option<String>,
}

/// All rules in which two texts differ.
#[must_use]
pub fn differences(before: &HouseSettings, after: &HouseSettings) -> Vec<RuleDifference> {
    let mut all = FoundDifferences { found: Vec::new(), place: String::new(), data: None };
    for (rule, same) in [
        ("name", before.name == after.name),
        ("identity", before.identity == after.identity),
        ("store", before.store == after.store),
        ("ledger", before.ledger == after.ledger),
        ("data_root", before.data_root == after.data_root),
        ("web", before.web == after.web),
        ("link", before.link == after.link),
        ("keep.folder", before.keep.folder == after.keep.folder),
        ("policy.notify", before.policy.notify == after.policy.notify),
    ] {
        all.note(rule, (!same).then_some(RuleTurn::Machine));
    }
    for name in before.peers.keys().chain(after.peers.keys()).collect::<BTreeSet<_>>() {
        all.place = format!("peers.{name}");
        match (before.peers.get(name), after.peers.get(name)) {
            (Some(before), Some(after)) => all.peer(before, after),
            (before, _) => all.there(before.is_some()),
        }
    }
    for name in before.data.keys().chain(after.data.keys()).collect::<BTreeSet<_>>() {
        (all.place, all.data) = (format!("data.{name}"), Some(name.clone()));
        match (before.data.get(name), after.data.get(name)) {
            (Some(before), Some(after)) => all.data_set(before, after),
            (before, _) => all.there(before.is_some()),
        }
    }
    (all.place, all.data) = ("policy".to_owned(), None);
    all.policy(&before.policy, &after.policy);
    all.place = "keep".to_owned();
    let days = |days: Option<u64>| Reverse(days.unwrap_or(u64::MAX));
    all.note("log_days", more(&days(before.keep.log_days), &days(after.keep.log_days)));
    all.note("reports_days", more(&days(before.keep.reports_days), &days(after.keep.reports_days)));
    all.found
}

impl FoundDifferences {
    fn note(&mut self, rule: &str, turn: Option<RuleTurn>) {
        let Some(turn) = turn else { return };
        let dot = if self.place.is_empty() || rule.is_empty() { "" } else { "." };
        let rule = format!("{}{dot}{rule}", self.place);
        self.found.push(RuleDifference { rule, data: self.data.clone(), turn });
    }

    /// A whole table that came or went.
    fn there(&mut self, before: bool) {
        self.note("", Some(if before { RuleTurn::Tighter } else { RuleTurn::Looser }));
    }

    fn peer(&mut self, before: &ServicePeer, after: &ServicePeer) {
        self.note("key", other(&before.key, &after.key));
        self.note("address", other(&before.address, &after.address));
        self.note("run_ports", other(&before.run_ports, &after.run_ports));
        self.note("proposals_open", more(&before.proposals_open, &after.proposals_open));
        self.note("proposals_per_day", more(&before.proposals_per_day, &after.proposals_per_day));
        self.note("kinds", longer(&before.kinds, &after.kinds));
    }

    fn data_set(&mut self, before: &DataSet, after: &DataSet) {
        self.note("path", other(&before.path, &after.path));
        self.note("lineage", other(&before.lineage, &after.lineage));
        self.note("salt", other(&before.salt, &after.salt));
        self.note("columns", longer(&before.columns, &after.columns));
        self.note("peers", longer(&before.peers, &after.peers));
        self.note("servers", longer(&before.servers, &after.servers));
        self.note("stewards", longer(&before.stewards, &after.stewards));
        self.note("least_rows", more(&Reverse(before.least_rows), &Reverse(after.least_rows)));
        self.note("budget", more(&before.budget, &after.budget));
        let period = match (&before.period, &after.period) {
            (before, after) if before == after => None,
            (None, Some(_)) => Some(RuleTurn::Tighter),
            (Some((days, rho)), Some((longer, less))) if longer >= days && less <= rho => {
                Some(RuleTurn::Tighter)
            }
            _ => Some(RuleTurn::Looser),
        };
        self.note("period", period);
        let delta = |places: Option<u8>| places.map(Reverse);
        self.note("delta", more(&delta(before.delta_places), &delta(after.delta_places)));
        self.note("data_change", more(&before.changes_allowed, &after.changes_allowed));
        self.note("two_person", more(&Reverse(before.two_person), &Reverse(after.two_person)));
        self.note("steward_keys", only(&before.steward_keys, &after.steward_keys));
    }

    fn policy(&mut self, before: &ServicePolicy, after: &ServicePolicy) {
        self.note("kinds", longer(&before.kinds, &after.kinds));
        self.note("studies", only(&before.studies, &after.studies));
        self.note("auto", longer(&before.auto, &after.auto));
        self.note("max_rho", more(&before.max_rho, &after.max_rho));
        let delta = |places: Option<u8>| places.map(Reverse);
        self.note("max_delta", more(&delta(before.max_delta_places), &delta(after.max_delta_places)));
        self.note("max_cells", more(&before.max_cells, &after.max_cells));
        self.note("minimum_group", more(&Reverse(before.minimum_group), &Reverse(after.minimum_group)));
        self.note("allow_exact", more(&before.allow_exact, &after.allow_exact));
        self.note("dummies", more(&before.without_dummies, &after.without_dummies));
        self.note("candidates", more(&Reverse(before.candidates), &Reverse(after.candidates)));
        self.note("quiet_hours", longer(&after.quiet_hours, &before.quiet_hours));
        self.note("max_jobs", more(&before.max_jobs, &after.max_jobs));
        self.note("jobs_memory", more(&before.jobs_memory, &after.jobs_memory));
        let longest = match (before.longest_run, after.longest_run) {
            (Some(before), Some(after)) => more(&before, &after),
            (before, after) => other(&before, &after),
        };
        self.note("longest_run", longest);
        self.note("second_step", longer(&after.second_step, &before.second_step));
        let separate = (Reverse(before.separate_duties), Reverse(after.separate_duties));
        self.note("separate_duties", more(&separate.0, &separate.1));
        self.note("consent_by_token", more(&before.consent_by_token, &after.consent_by_token));
    }
}

/// What has no order.
fn other<T: PartialEq>(before: &T, after: &T) -> Option<RuleTurn> {
    (before != after).then_some(RuleTurn::Looser)
}

/// What allows more the greater it is.
fn more<T: PartialOrd>(before: &T, after: &T) -> Option<RuleTurn> {
    if after > before {
        Some(RuleTurn::Looser)
    } else if after < before {
        Some(RuleTurn::Tighter)
    } else {
        None
    }
}

/// What allows more the more it lists.
fn longer<T: PartialEq>(before: &[T], after: &[T]) -> Option<RuleTurn> {
    if after.iter().any(|one| !before.contains(one)) {
        return Some(RuleTurn::Looser);
    }
    before.iter().any(|one| !after.contains(one)).then_some(RuleTurn::Tighter)
}

/// What allows more the more it lists, and everything where it lists nothing.
fn only<T: PartialEq>(before: &[T], after: &[T]) -> Option<RuleTurn> {
    match (before.is_empty(), after.is_empty()) {
        (true, false) => Some(RuleTurn::Tighter),
        (false, true) => Some(RuleTurn::Looser),
        _ => longer(before, after),
    }
}
