//! What is kept in a party's state, for its operator: to be shown, and to be removed.

use super::promises::{self, matches_of};
use super::{BegunRecord, KeptStage, day_of, seconds};
use crate::spool::state_key;
use base::Error;
use privacy::ledger::{Bytes32, Ledger};
use std::path::PathBuf;
use store::{KeptName, StateKey, StateStore, StoreError, kept_runs};
use study::party::PartySetup;

/// A run that is kept in a party's state, for its operator.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KeptSummary {
    /// By what it is named.
    pub run: String,
    /// The study; none where the run is another party's, or cannot be opened.
    pub study: Option<KeptStudy>,
    /// The day on which it began, of such a run.
    pub begun: Option<String>,
    /// How far it has come, of such a run.
    pub stage: Option<KeptStage>,
    /// Bytes in the store.
    pub bytes: u64,
    /// The day after which the next run removes it, where the store tells.
    pub until: Option<String>,
}

/// The study of a run that is kept.
#[derive(Clone, Debug, serde::Serialize)]
pub struct KeptStudy {
    /// Its name.
    pub name: String,
    /// Its full hash, in hex.
    pub hash: String,
}

/// What is kept in the state of a party.
///
/// # Errors
/// When it has none, or the store fails.
pub fn summaries(party: &PartySetup) -> Result<Vec<KeptSummary>, Error> {
    let store = opened(party)?;
    let names = kept_runs(&store)?;
    let key = if names.is_empty() { None } else { Some(state_key(party)?) };
    let summary = |name: &KeptName| {
        let (bytes, written) = name.size(&store)?;
        let until = written.map(|at| day_of(seconds(at + party.keep_state)));
        let empty = KeptSummary { run: name.short(), study: None, begun: None, stage: None, bytes, until };
        let Some(key) = &key else { return Ok(empty) };
        let records = match name.records(&store, key, &party.as_party) {
            Err(StoreError::Damaged { .. } | StoreError::Missing { .. }) => return Ok(empty),
            records => records?,
        };
        let Some(Ok(begun)) = records.first().map(BegunRecord::read) else { return Ok(empty) };
        let Ok(stage) = KeptStage::of(&records, &name.place(&store)) else { return Ok(empty) };
        let (study, day) = (KeptStudy { name: begun.name, hash: begun.study }, day_of(begun.begun));
        Ok(KeptSummary { study: Some(study), begun: Some(day), stage: Some(stage), ..empty })
    };
    let all = names.iter().map(summary).collect::<Result<Vec<_>, Error>>()?;
    // One that was removed meanwhile is none that cannot be read.
    let still: Vec<String> = kept_runs(&store)?.iter().map(KeptName::short).collect();
    Ok(all.into_iter().filter(|run| run.study.is_some() || still.contains(&run.run)).collect())
}

/// Whether the next run of a study goes on with a match: its rows lie matched in the party's state, or its
/// half of one that is under way does, there or in `work`.
///
/// # Errors
/// When the store fails.
pub fn is_under_way(party: &PartySetup, study: &str) -> Result<bool, Error> {
    if journal_of(party, study).is_some_and(|folder| matching::is_cut(&folder)) {
        return Ok(true);
    }
    if party.state.is_none() {
        return Ok(false);
    }
    let is_of = |kept: &KeptSummary| {
        let stage = kept.stage.as_ref().filter(|_| kept.study.as_ref().is_some_and(|of| of.hash == study));
        stage.is_some_and(|stage| stage.matched || stage.match_units_held.is_some())
    };
    Ok(summaries(party)?.iter().any(is_of))
}

/// Where a party keeps what a match of a study has done, by the study's full hash.
pub(crate) fn journal_of(party: &PartySetup, study: &str) -> Option<PathBuf> {
    party.work.as_ref().map(|folder| folder.join(study))
}

/// Removes runs from a party's state: those of these names, or all that are this party's, and what their
/// matches have in `work`, keys first. Gives the names. Their matches do not go on if they come back; where
/// all are removed, or a run cannot be read, no match that the ledger knows does.
///
/// # Errors
/// When there is none of such a name, a process of this machine leads one, or the store fails.
pub fn drop_kept(party: &PartySetup, wanted: &[String]) -> Result<Vec<String>, Error> {
    let store = opened(party)?;
    let names = kept_runs(&store)?;
    let unknown = wanted.iter().find(|run| !names.iter().any(|name| name.short() == **run));
    if let Some(run) = unknown {
        return Err(Error::input(format!("{}: no run {run} is kept there", store.url())));
    }
    if names.is_empty() {
        return promises::forget(&party.ledger, None).map(|()| Vec::new());
    }
    let key = match state_key(party) {
        // What is named goes, whoever could open it.
        Err(_) if !wanted.is_empty() => None,
        key => Some(key?),
    };
    let (mut dropped, mut matches) = (Vec::new(), Some(Vec::new()).filter(|_| !wanted.is_empty()));
    for name in names {
        let records = key.as_ref().and_then(|key| name.records(&store, key, &party.as_party).ok());
        let is_meant = if wanted.is_empty() { records.is_some() } else { wanted.contains(&name.short()) };
        if !is_meant {
            continue;
        }
        name.remove(&store)?;
        dropped.push(name.short());
        let own = records.as_ref().and_then(|records| matches_of(records, &name.place(&store)));
        let own = own.map(|own| own.into_iter().map(|(id, _)| id).collect());
        matches = matches.zip(own).map(|(all, own): (_, Vec<Bytes32>)| [all, own].concat());
        let begun = records.and_then(|records| BegunRecord::read(records.first()?).ok());
        let journal = begun.and_then(|begun| journal_of(party, &begun.study));
        if let Some(journal) = journal.filter(|folder| folder.exists()) {
            matching::forget(&journal)?;
        }
    }
    promises::forget(&party.ledger, matches.as_deref())?;
    Ok(dropped)
}

/// Before a run begins, which removes what was kept for long enough: their matches go on no more, whoever
/// puts their folders back. A run that this party cannot open has none that it could end.
///
/// # Errors
/// When another process of this machine has the folder, or the store or the ledger fails.
pub(crate) fn forget_expired(party: &PartySetup, store: &StateStore, key: &StateKey) -> Result<(), Error> {
    // Who leads a run may wait for its peer for longer than that, and writes nothing meanwhile.
    let _lock = store.lock()?;
    for name in kept_runs(store)? {
        let (_, written) = name.size(store)?;
        let expired = written.is_some_and(|at| at.elapsed().is_ok_and(|age| age > party.keep_state));
        let records = expired.then(|| name.records(store, key, &party.as_party).ok()).flatten();
        let matches = records.and_then(|records| matches_of(&records, &name.place(store)));
        if let Some(matches) = matches.filter(|matches| !matches.is_empty() && party.ledger.exists()) {
            promises::end(&mut Ledger::open(&party.ledger)?, &matches)?;
        }
    }
    Ok(())
}

fn opened(party: &PartySetup) -> Result<StateStore, Error> {
    let place = party.state.as_ref().ok_or_else(|| {
        Error::input("this party has no `state`: add state = \"FOLDER\" to the party file, or --state")
    })?;
    StateStore::open(place, &party.store)
}
