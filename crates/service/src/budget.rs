//! What is left of the budgets, counted in studies: of the ledger, which has the last word, and of what
//! `service.toml` allows.

use crate::schedule::consent_bounds;
use crate::settings::{DataSet, HouseSettings};
use crate::store::{OwnConsent, PAGE, ProposalFilter, Store};
use base::Error;
use net::KeyFingerprint;
use privacy::best_guess;
use privacy::ledger::{EntryRow, Ledger, PUBLIC};
use release::Rational;
use release::rational::{parse, ratio, shown, to_f64};
use statements::{ProposalId, ProposalRecord};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use study::StudyHash;
use study::party::{AgreedBounds, AgreedCharge};

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
    /// Of what is left, what studies that were consented to and are not over may still take; how many these
    /// are.
    pub held: Option<(String, usize)>,
    /// Of what is spent, what everybody sees: it is in the share of each viewer.
    pub public: Option<String>,
    /// What parts of the budget are spent, and spent or held, from 0 to 1.
    pub parts: [f64; 2],
    /// How often of 100 times the best guess about one person is right: after what is spent, and after all of
    /// the budget.
    pub guesses: [u64; 2],
    /// What a study is taken to cost, and how many of these are left beside what is held.
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

/// What a study that was consented to here was charged since, and may still be charged, towards one viewer.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldRho {
    /// The data set.
    pub data: String,
    /// What it is charged to.
    pub lineage: String,
    /// The key of who learns it, or that of everybody.
    pub viewer: String,
    /// Charged since the consent.
    pub charged: Rational,
    /// The most that may come on top.
    pub left: Rational,
}

/// What was consented to here for one study. It does not change: nobody consents twice.
struct OwnBounds {
    study: StudyHash,
    data: String,
    lineage: Option<String>,
    bounds: AgreedBounds,
}

/// What was consented to for studies that are not over: each look at budgets asks for all of these.
#[derive(Default)]
pub struct BoundsShelf(Mutex<BTreeMap<ProposalId, Arc<OwnBounds>>>);

impl OwnBounds {
    /// None where the study is over or nobody consented here.
    fn of(
        (store, settings, us): (&Store, &HouseSettings, KeyFingerprint),
        record: &ProposalRecord,
    ) -> Result<Option<Self>, Error> {
        let (Some(me), Some(own)) = (record.place(&us), store.own_consent(&record.id())?) else {
            return Ok(None);
        };
        let Some(set) = settings.data.get(&own.data).filter(|_| !record.view().state().is_final()) else {
            return Ok(None);
        };
        let bounds = consent_bounds(record, me, &own, set)?;
        let (study, OwnConsent { data, lineage, .. }) = (record.study(), own);
        Ok(bounds.map(|bounds| Self { study, data, lineage, bounds }))
    }

    /// What it holds. No ledger: nothing was charged.
    fn held(&self, settings: &HouseSettings, ledger: Option<&Ledger>) -> Result<Vec<HeldRho>, Error> {
        let Some(set) = settings.data.get(&self.data) else { return Ok(Vec::new()) };
        let one = |most: &AgreedCharge| {
            let charged =
                |ledger: &Ledger| ledger.charged_since(self.study.as_bytes(), &self.bounds, &most.viewer);
            let charged = ledger.map(charged).transpose()?.map_or_else(|| ratio(0, 1), |[rho, _]| rho);
            let left = (&most.rho - &charged).max(ratio(0, 1));
            let lineage = self.lineage.as_ref().unwrap_or(&set.lineage).clone();
            Ok(HeldRho { data: self.data.clone(), lineage, viewer: most.viewer.clone(), charged, left })
        };
        self.bounds.charges.iter().map(one).collect()
    }
}

/// What one proposal holds; nothing where it is over or nobody consented here. No ledger: nothing was
/// charged.
///
/// # Errors
/// When store or ledger cannot be read.
pub fn held_by(
    of: (&Store, &HouseSettings, KeyFingerprint),
    ledger: Option<&Ledger>,
    record: &ProposalRecord,
) -> Result<Vec<HeldRho>, Error> {
    OwnBounds::of(of, record)?.map_or_else(|| Ok(Vec::new()), |own| own.held(of.1, ledger))
}

impl BoundsShelf {
    /// What all proposals that are not over hold, each by itself.
    ///
    /// # Errors
    /// As [`held_by`].
    pub fn held(
        &self,
        of: (&Store, &HouseSettings, KeyFingerprint),
        ledger: Option<&Ledger>,
    ) -> Result<Vec<Vec<HeldRho>>, Error> {
        let shelf = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = shelf().clone();
        let (mut all, mut after) = (BTreeMap::new(), None);
        loop {
            let rows = of.0.list(&ProposalFilter { open: true, ..ProposalFilter::default() }, after)?;
            for row in rows.iter().filter(|row| row.data.is_some()) {
                let own = match known.get(&row.id) {
                    Some(own) => Some(own.clone()),
                    None => {
                        let record = of.0.standing(&row.id)?;
                        let own = record.map(|record| OwnBounds::of(of, &record)).transpose()?;
                        own.flatten().map(Arc::new)
                    }
                };
                all.extend(own.map(|own| (row.id, own)));
            }
            match rows.last() {
                Some(last) if rows.len() == PAGE => after = Some(last.row),
                _ => break,
            }
        }
        shelf().clone_from(&all);
        // What a study was charged is looked for in the whole ledger.
        let charged = ledger.map_or(Ok(BTreeSet::new()), Ledger::charged_studies)?;
        let held =
            |own: &Arc<OwnBounds>| own.held(of.1, ledger.filter(|_| charged.contains(own.study.as_bytes())));
        all.values().map(held).collect()
    }
}

/// What is held of a lineage towards a viewer, and by how many studies: what everybody sees, each viewer
/// does.
fn held_towards(held: &[Vec<HeldRho>], lineage: &str, key: &str) -> (Rational, usize) {
    let of = |study: &Vec<HeldRho>| {
        let named = |viewer: &str| study.iter().find(|one| one.lineage == lineage && one.viewer == viewer);
        let one = named(key).or_else(|| named(AgreedCharge::PUBLIC))?;
        (one.left > ratio(0, 1)).then(|| one.left.clone())
    };
    held.iter().filter_map(of).fold((ratio(0, 1), 0), |(sum, count), left| (sum + left, count + 1))
}

/// The budgets of some data sets. No ledger: nothing was spent yet.
///
/// # Errors
/// When the ledger cannot be read.
pub fn budgets<'a>(
    settings: &HouseSettings,
    ledger: Option<&Ledger>,
    held: &[Vec<HeldRho>],
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
                PUBLIC => "everybody, by public results".to_owned(),
                key => names.get(key).cloned().unwrap_or_else(|| key.to_owned()),
            };
            let public = match key.as_str() {
                PUBLIC => None,
                _ => ledger.map(|ledger| ledger.spent(&set.lineage, PUBLIC)).transpose()?,
            };
            let held = held_towards(held, &set.lineage, key);
            let rho = ViewerRho { budget: &set.budget, spent: &spent, public, held };
            Ok(towards(who, rho, settings.policy.max_rho.as_ref(), debits))
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
    let sees = entry.viewer_key.split(' ').any(|one| one == key || one == PUBLIC);
    entry.protects && !entry.given_back && entry.lineage == lineage && sees
}

/// What is known of a budget towards one viewer.
struct ViewerRho<'a> {
    budget: &'a Rational,
    spent: &'a Rational,
    /// Of it, what everybody sees.
    public: Option<Rational>,
    /// What is held, and by how many studies.
    held: (Rational, usize),
}

fn towards(
    viewer: String,
    of: ViewerRho<'_>,
    max_rho: Option<&Rational>,
    debits: Vec<EntryRow>,
) -> ViewerBudget {
    let ViewerRho { budget, spent, public, held: (held, by) } = of;
    let nothing = ratio(0, 1);
    let left = (budget - spent).max(nothing.clone());
    let free = (&left - &held).max(nothing.clone());
    let mut studies = Vec::new();
    studies.extend(last_cost(&debits, by > 0).and_then(|cost| many(&free, &cost, "like the last one")));
    studies.extend(max_rho.and_then(|most| many(&free, most, "at the most that the rules allow")));
    let part = |value: &Rational| to_f64(&(value / budget)).clamp(0.0, 1.0);
    ViewerBudget {
        viewer,
        rho: [shown(budget), shown(spent), shown(&left)],
        parts: [part(spent), part(&(spent + &held))],
        held: (by > 0).then(|| (shown(&held), by)),
        public: public.filter(|public| *public > nothing).map(|public| shown(&public)),
        guesses: [spent, budget].map(|rho| best_guess(to_f64(rho))),
        studies,
        debits,
    }
}

/// What the newest study was charged that has released something: its release, and before that the sizes of
/// its match. One that is under way, or broke off, was charged for its match alone; so are studies that only
/// match, which count where no other one does.
fn last_cost(debits: &[EntryRow], is_under_way: bool) -> Option<Rational> {
    let known = debits.iter().position(|entry| !entry.is_recovered())?;
    let studies = debits[known..].chunk_by(|one, next| one.study == next.study);
    let mut costs = studies.filter_map(|study| {
        let (mut cost, mut releases) = (ratio(0, 1), 0);
        for entry in study {
            releases += u8::from(entry.delta == "0");
            if releases > 1 {
                break;
            }
            cost += parse(&entry.exact_rho)?;
        }
        Some((releases > 0, cost))
    });
    let newest = costs.next()?;
    let released = std::iter::once(newest.clone()).chain(costs).find(|(released, _)| *released);
    released.or((!is_under_way).then_some(newest)).map(|(_, cost)| cost)
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
        let of = |budget: Rational, spent: Rational, held: Rational, most: Option<&Rational>| {
            let by = usize::from(held > ratio(0, 1));
            let rho =
                ViewerRho { budget: &budget, spent: &spent, public: Some(ratio(1, 10)), held: (held, by) };
            towards("p".into(), rho, most, Vec::new())
        };
        let none = || ratio(0, 1);
        let left = of(ratio(1, 1), ratio(11, 100), none(), Some(&most));
        assert_eq!(left.rho, ["1", "0.11", "0.89"]);
        assert_eq!((left.studies[0].count.as_str(), left.public.as_deref()), ("2", Some("0.1")));
        assert_eq!((left.held, left.guesses), (None, [60, 77]));
        let over = of(ratio(1, 10), ratio(1, 5), none(), Some(&most));
        assert_eq!(
            (over.rho[2].as_str(), over.studies[0].count.as_str(), over.parts),
            ("0", "0", [1.0, 1.0])
        );
        assert!(of(ratio(1, 1), none(), none(), None).studies.is_empty());
        // What a study that was consented to may still take is not there for others.
        let held = of(ratio(1, 1), ratio(1, 100), ratio(4, 10), Some(&most));
        assert_eq!(held.rho, ["1", "0.01", "0.99"]);
        assert_eq!((held.held, held.studies[0].count.as_str()), (Some(("0.4".to_owned(), 1)), "1"));
    }

    #[test]
    fn what_everybody_would_see_is_held_towards_each_viewer() {
        let one = |viewer: &str, left| HeldRho {
            data: "a part of it".to_owned(),
            lineage: "trial".to_owned(),
            viewer: viewer.to_owned(),
            charged: ratio(0, 1),
            left,
        };
        let held = [
            vec![one(AgreedCharge::PUBLIC, ratio(1, 10)), one("a", ratio(11, 100))],
            vec![one("a", ratio(0, 1))],
        ];
        assert_eq!(held_towards(&held, "trial", "a"), (ratio(11, 100), 1));
        assert_eq!(held_towards(&held, "trial", "b"), (ratio(1, 10), 1));
        assert_eq!(held_towards(&held, "other", "a"), (ratio(0, 1), 0));
    }
}
