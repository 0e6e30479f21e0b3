//! What is left of the budgets, counted in studies: of the ledger, which has the last word, and of what
//! `service.toml` allows.

use crate::settings::{DataSet, HouseSettings};
use base::Error;
use privacy::ledger::{EntryRow, Ledger};
use release::Rational;
use release::rational::{parse, ratio, shown};
use std::collections::BTreeMap;

/// What is spent of a data set, and what is left.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBudget {
    /// The data set.
    pub data: String,
    /// Its lineage.
    pub lineage: String,
    /// Towards each viewer: those who have seen something, and the peers whose studies may use it.
    pub viewers: Vec<ViewerBudget>,
    /// What all viewers have got together, what several saw counted once.
    pub together: String,
}

/// What one viewer has had of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewerBudget {
    /// Who, by our name.
    pub viewer: String,
    /// Rho of the budget; spent; left.
    pub rho: [String; 3],
    /// What part of the budget is spent, from 0 to 1.
    pub part: f64,
    /// What a study is taken to cost, and how many of these are left.
    pub studies: Vec<StudiesLeft>,
    /// What was charged, the newest first.
    pub debits: Vec<EntryRow>,
}

/// How many more studies of a price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudiesLeft {
    /// What a study of which kind costs, in words.
    pub of: String,
    /// How many.
    pub count: String,
}

/// The budgets of some data sets. No ledger: nothing was spent yet.
///
/// # Errors
/// When the ledger cannot be read.
pub fn budgets<'a>(
    settings: &HouseSettings,
    ledger: Option<&Ledger>,
    sets: impl Iterator<Item = (&'a String, &'a DataSet)>,
) -> Result<Vec<DataBudget>, Error> {
    let entries = ledger.map_or(Ok(Vec::new()), Ledger::entries)?;
    let mut names = ledger.map_or(Ok(BTreeMap::new()), Ledger::names)?;
    names.extend(settings.peers.iter().map(|(name, peer)| (peer.key.to_string(), name.clone())));
    let of = |(name, set): (&'a String, &'a DataSet)| -> Result<DataBudget, Error> {
        let mut keys: Vec<String> =
            ledger.map_or(Ok(Vec::new()), |ledger| ledger.viewers_of(&set.lineage))?;
        for peer in &set.peers {
            let key = settings.peers[peer].key.to_string();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let viewer = |key: &String| {
            let spent = ledger.map_or(Ok(ratio(0, 1)), |ledger| ledger.spent(&set.lineage, key))?;
            let debits = entries.iter().rev().filter(|entry| counts(entry, &set.lineage, key));
            let debits: Vec<EntryRow> = debits.cloned().collect();
            let who = match key.as_str() {
                privacy::ledger::PUBLIC => "everybody, by public results".to_owned(),
                key => names.get(key).cloned().unwrap_or_else(|| key.to_owned()),
            };
            Ok(towards(who, (&set.budget, &spent), settings.policy.max_rho.as_ref(), debits))
        };
        let together = ledger.map_or(Ok(ratio(0, 1)), |ledger| ledger.spent_by_all(&set.lineage))?;
        let (data, lineage) = (name.clone(), set.lineage.clone());
        let viewers = keys.iter().map(viewer).collect::<Result<_, Error>>()?;
        Ok(DataBudget { data, lineage, viewers, together: shown(&together) })
    };
    sets.map(of).collect()
}

/// Whether an entry was charged for what this viewer, or anybody, saw of a lineage.
fn counts(entry: &EntryRow, lineage: &str, key: &str) -> bool {
    let sees = entry.viewer_key.split(' ').any(|one| one == key || one == privacy::ledger::PUBLIC);
    entry.protects && !entry.given_back && entry.lineage == lineage && sees
}

fn towards(
    viewer: String,
    (budget, spent): (&Rational, &Rational),
    max_rho: Option<&Rational>,
    debits: Vec<EntryRow>,
) -> ViewerBudget {
    let nothing = ratio(0, 1);
    let left = (budget - spent).max(nothing.clone());
    let mut studies = Vec::new();
    studies.extend(last_cost(&debits).and_then(|cost| many(&left, &cost, "like the last one")));
    studies.extend(max_rho.and_then(|most| many(&left, most, "at the most that the rules allow")));
    let part = release::rational::to_f64(&(spent / budget)).clamp(0.0, 1.0);
    ViewerBudget { viewer, rho: [shown(budget), shown(spent), shown(&left)], part, studies, debits }
}

/// What the newest study was charged: its release, and before that the sizes of its match.
fn last_cost(debits: &[EntryRow]) -> Option<Rational> {
    let debits = debits.iter().skip_while(|entry| entry.is_recovered());
    let newest = debits.clone().next()?;
    let (mut cost, mut releases) = (ratio(0, 1), 0);
    for entry in debits.take_while(|entry| entry.study == newest.study) {
        releases += u8::from(entry.delta == "0");
        if releases > 1 {
            break;
        }
        cost += parse(&entry.exact_rho)?;
    }
    Some(cost)
}

fn many(left: &Rational, cost: &Rational, what: &str) -> Option<StudiesLeft> {
    let count = (*cost > ratio(0, 1)).then(|| (left / cost).to_integer().to_string())?;
    Some(StudiesLeft { of: format!("{what}, at {}", shown(cost)), count })
}

/// What a viewer has had of a data set, what one study more takes of its budget, and how many like it are
/// left after that. No ledger: nothing was spent yet.
///
/// # Errors
/// When the ledger cannot be read.
pub fn after(
    set: &DataSet,
    ledger: Option<&Ledger>,
    viewer: &str,
    rho: &Rational,
) -> Result<(Rational, String), Error> {
    let spent = ledger.map_or(Ok(ratio(0, 1)), |ledger| ledger.spent(&set.lineage, viewer))?;
    let left = (&set.budget - &spent - rho).max(ratio(0, 1));
    let fits = &spent + rho <= set.budget;
    let more = match (fits, *rho > ratio(0, 1)) {
        (false, _) => "It is more than is left: the ledger would refuse it".to_owned(),
        (true, false) => "It takes nothing".to_owned(),
        (true, true) => format!("{} more like it after this one", (left / rho).to_integer()),
    };
    Ok((spent, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_counted_in_whole_studies() {
        let most = ratio(3, 10);
        let left = towards("p".into(), (&ratio(1, 1), &ratio(11, 100)), Some(&most), Vec::new());
        assert_eq!(left.rho, ["1", "0.11", "0.89"]);
        assert_eq!(left.studies[0].count, "2");
        let over = towards("p".into(), (&ratio(1, 10), &ratio(1, 5)), Some(&most), Vec::new());
        assert_eq!((over.rho[2].as_str(), over.studies[0].count.as_str(), over.part), ("0", "0", 1.0));
        assert!(towards("p".into(), (&ratio(1, 1), &ratio(0, 1)), None, Vec::new()).studies.is_empty());
    }
}
