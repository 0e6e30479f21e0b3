//! What a run keeps in `state`, so that it goes on after whatever ended its process.
//!
//! A run whose rows lie in `state` writes a log there: that its rows are laid down and under which names,
//! that they are matched and where what came of it lies, which units are held, that its release begins. The
//! next run of the same party, study and unchanged input opens that state instead of reading, and the two
//! parties leave out what both hold of one match ([`crate::run`]). Shares that a release holds are the
//! ledger's, as always.
//!
//! Who leads the log is the only one that goes on: another process finds its next number taken and stops
//! ([`store::StateLog`]).

mod join;
mod record;

pub(crate) use join::{KeptJoin, KeptObject, KeptValid};
pub use record::KeptStage;
pub(crate) use record::{BegunRecord, KeptColumns, KeptMatch, KeptRecord, MatchedRecord};

use crate::prepare::Checked;
use crate::run::outsourced;
use crate::spool::{spools, state_key, study_spools};
use crate::workers::FinishedWork;
use base::{Error, PartyId};
use data::{DataLocation, InputReport, RowShape, RowStore};
use privacy::ledger::{Bytes32, Ledger};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use store::{KeptName, LogRecord, RunState, StateKey, StateLog, StateStore, StoreError, kept_runs};
use study::Study;
use study::party::PartySetup;
use units::{HeldResult, UnitRecord};

/// Whether a run of a study goes on from its state: units of rows, along a spine or joined to shares, between
/// two who compute themselves.
pub(crate) fn goes_on(study: &Study) -> bool {
    study_spools(study) && outsourced::computes_in_units(study)
}

/// Whether a party has a place for that, of so many runs at a time.
pub(crate) fn may_be_kept(party: &PartySetup, study: &Study, runs: usize) -> bool {
    party.state.is_some() && spools(party, study, runs) && goes_on(study)
}

/// The run of a party and study that broke off, and what it has laid down of its input.
pub(crate) struct KeptRun {
    state: Arc<RunState>,
    begun: BegunRecord,
    stage: KeptStage,
    /// Whether its files were written again since, and hold the same.
    pub touched: bool,
}

/// What a look for such a run finds.
pub(crate) enum KeptFound {
    Nothing,
    /// One of other input: its files were changed since.
    OtherInput,
    Run(Box<KeptRun>),
}

impl KeptRun {
    /// Looks in this party's state, with the version of its input now. Files that were written again are read
    /// where they may hold what they held.
    ///
    /// # Errors
    /// When another process of this machine leads the run, another version of tacit wrote it, the store
    /// fails, or such a file cannot be read.
    pub fn find(
        party: &PartySetup,
        study: &Study,
        (data, input): (DataLocation<'_>, &Bytes32),
    ) -> Result<KeptFound, Error> {
        let Some(place) = &party.state else { return Ok(KeptFound::Nothing) };
        let store = StateStore::open(place, &party.store)?;
        let mut found = KeptFound::Nothing;
        let names = kept_runs(&store)?;
        if names.is_empty() {
            return Ok(found);
        }
        let key = state_key(party)?;
        for (name, begun, records) in own_runs(&store, &key, (party, study), &names)? {
            let touched = begun.input != base::hex(input);
            if touched && !begun.content.map_or(Ok(false), |content| content.is_of(data))? {
                found = KeptFound::OtherInput;
                continue;
            }
            begun.expect_readable(&name.place(&store))?;
            let stage = KeptStage::of(&records, &name.place(&store))?;
            let state = Arc::new(RunState::resume(store.clone(), &key, &name, &party.as_party)?);
            return Ok(KeptFound::Run(Box::new(Self { state, begun, stage, touched })));
        }
        Ok(found)
    }

    /// Whether its rows are matched.
    pub fn matched(&self) -> bool {
        self.stage.matched
    }

    /// Its rows, and what reading them did.
    ///
    /// # Errors
    /// When the study's program does not parse.
    pub fn rows(&self, study: &Study, me: PartyId) -> Result<(RowStore, InputReport), Error> {
        let shape = RowShape::of(study, me)?;
        Ok((RowStore::reopened(self.state.clone(), shape, &self.begun.rows), self.begun.inputs.clone()))
    }
}

/// Runs of a party and study among those that are kept, with the record by which each began, and all.
fn own_runs(
    store: &StateStore,
    key: &StateKey,
    (party, study): (&PartySetup, &Study),
    names: &[KeptName],
) -> Result<Vec<(KeptName, BegunRecord, Vec<LogRecord>)>, Error> {
    let hash = study.hash().full();
    let mut own = Vec::new();
    for name in names {
        let records = match name.records(store, key, &party.as_party) {
            // Another party's, or one that nobody opens any more.
            Err(StoreError::Damaged { .. }) => continue,
            records => records?,
        };
        // One of another study may be of another version: that is the other one's affair.
        if let Some(first) = records.first().filter(|first| BegunRecord::is_of(first, &hash)) {
            let begun = BegunRecord::read(first)?;
            own.push((name.clone(), begun, records));
        }
    }
    Ok(own)
}

/// The log of a run that this process leads.
pub(crate) struct RunLog {
    state: Arc<RunState>,
    log: StateLog,
    begun: BegunRecord,
    matched: Option<MatchedRecord>,
    units: Vec<UnitRecord>,
    /// Whether an earlier process began it.
    resumed: bool,
    /// How often this process has met the other party.
    pub meetings: u32,
    /// Whether the other party keeps what is done as well, as it said last.
    pub shared: bool,
    /// Whether it is counted among the runs that begin with its peer.
    counted: bool,
    /// Whether the computation has ended for good.
    pub gave_up: bool,
    /// Whether no process can go on with it: it is to be removed.
    pub spent: bool,
    /// Whether another process leads it now: then this one says nothing more.
    pub fenced: bool,
}

impl RunLog {
    /// Begins to lead the run of these rows; none where they lie in memory, or their run does not go on, as
    /// that of rows which were handed over.
    ///
    /// # Errors
    /// When another process leads it, or the store fails.
    pub fn lead(party: &PartySetup, checked: &Checked, ledger: &Ledger) -> Result<Option<Self>, Error> {
        // Rows that were handed over, and lie in no file, cannot be known again.
        let may = goes_on(&checked.study) && checked.input_version.is_some();
        let Some((state, _)) = checked.rows.spool().filter(|_| may) else {
            return Ok(None);
        };
        let (mut log, records) = state.lead()?;
        if !records.is_empty() {
            let resumed = Self::resume(state.clone(), log, &records)?;
            resumed.begun.expect_program(&checked.built.program.hash(), &state.place())?;
            resumed.tidy()?;
            if resumed.begun.probe == probe(checked, ledger)? {
                checked.know_tag(resumed.begun.tag);
            }
            return Ok(Some(resumed));
        }
        let begun = BegunRecord::of(checked, (checked.data_tag(ledger)?, probe(checked, ledger)?))?;
        let store = state.sealed().store();
        let (key, names) = (state_key(party)?, kept_runs(store)?);
        let before = own_runs(store, &key, (party, &checked.study), &names)?;
        log.append(&[KeptRecord::Begun(Box::new(begun.clone())).to_log()?])?;
        state.keep()?;
        // One of other input stays until this one would be found in its place.
        before.iter().try_for_each(|(name, ..)| state.replace(name))?;
        Ok(Some(Self::of(state.clone(), log, begun)))
    }

    /// Of a run that has only begun.
    fn of(state: Arc<RunState>, log: StateLog, begun: BegunRecord) -> Self {
        let (matched, units, meetings) = (None, Vec::new(), 0);
        let [resumed, shared, counted, gave_up, spent, fenced] = [false; 6];
        Self { state, log, begun, matched, units, resumed, meetings, shared, counted, gave_up, spent, fenced }
    }

    fn resume(state: Arc<RunState>, log: StateLog, records: &[LogRecord]) -> Result<Self, Error> {
        let place = state.place();
        let begun = records.first().map(BegunRecord::read).transpose()?;
        let begun = begun.ok_or_else(|| Error::misuse("a log that has records has a first one"))?;
        begun.expect_readable(&place)?;
        let (mut matched, mut units) = (None, Vec::new());
        for record in &records[1..] {
            match KeptRecord::of_log(record, &place)? {
                KeptRecord::Begun(_) => return Err(Error::input(format!("{place}: it begins twice"))),
                KeptRecord::Matched(record) => (matched, units) = (Some(*record), Vec::new()),
                KeptRecord::Unit(record) => units.push(record),
                KeptRecord::Releasing => {}
            }
        }
        match matched.as_ref().map(|matched| matched.rows.look(state.sealed())) {
            // The store lost what came of it: the rows are matched again.
            Some(Err(StoreError::Missing { .. } | StoreError::Damaged { .. })) => {
                (matched, units) = (None, Vec::new());
            }
            Some(looked) => looked?,
            None => {}
        }
        let counted = matched.is_some();
        Ok(Self { matched, units, resumed: true, counted, ..Self::of(state, log, begun) })
    }

    /// Removes what nothing that it holds refers to: what was half done.
    fn tidy(&self) -> Result<(), Error> {
        let matched = self.matched.iter().flat_map(|matched| [matched.rows.folder(), &*matched.units]);
        let folders: Vec<&str> = matched.chain([&*self.begun.rows.folder]).collect();
        self.state.retain(&folders)
    }

    /// Whether an earlier process began it, and when, in words.
    pub fn resumed(&self) -> Option<String> {
        let day = || day_of(self.begun.begun);
        self.resumed.then(|| match &self.matched {
            None => format!("goes on with the run of {} that broke off: its rows are read", day()),
            Some(_) => format!(
                "goes on with the run of {} that broke off: its rows are read and matched, and {} units are \
                 computed, as far as this side knows",
                day(),
                self.held().count()
            ),
        })
    }

    /// Whether it was counted before among the runs that begin; from now on it is.
    pub fn counts_again(&mut self) -> bool {
        std::mem::replace(&mut self.counted, true)
    }

    /// The match of these data that is laid out.
    pub fn matched(&self, tags: &[Bytes32]) -> Option<&MatchedRecord> {
        self.matched.as_ref().filter(|matched| matched.tags == tags)
    }

    /// Rows are matched and laid out.
    ///
    /// # Errors
    /// When the store fails, or another process leads.
    pub fn set_matched(&mut self, matched: MatchedRecord) -> Result<(), Error> {
        self.append(&[KeptRecord::Matched(Box::new(matched.clone())).to_log()?])?;
        self.units = Vec::new();
        // Nobody comes back to the match before.
        match self.matched.replace(matched) {
            Some(old) => [old.rows.folder(), &old.units].into_iter().try_for_each(|of| self.state.remove(of)),
            None => Ok(()),
        }
    }

    /// The folder of the results of units that a match to be recorded will have.
    pub fn units_folder(&self) -> String {
        self.state.folder("units")
    }

    /// Records of units, in order.
    pub fn units(&self) -> &[UnitRecord] {
        &self.units
    }

    /// What is held, the last result of each unit.
    fn held(&self) -> impl Iterator<Item = (u32, HeldResult)> + '_ {
        let held = |record: &UnitRecord| match record {
            UnitRecord::Held { unit, held } => Some((*unit, *held)),
            UnitRecord::Floor { .. } | UnitRecord::Seal { .. } | UnitRecord::Failed { .. } => None,
        };
        let last: std::collections::BTreeMap<u32, HeldResult> = self.units.iter().filter_map(held).collect();
        last.into_iter()
    }

    /// How many results of units are held: what a run that is cut again and again has to show for it.
    pub fn progress(&self) -> (bool, usize) {
        (self.matched.is_some(), self.held().count())
    }

    /// The results that are held, as they were put; one that the store lost, or changed, is not held.
    ///
    /// # Errors
    /// When the store fails.
    pub fn held_work(&mut self) -> Result<Vec<(u32, u32, FinishedWork)>, Error> {
        let mut all = Vec::new();
        let held: Vec<(u32, HeldResult)> = self.held().collect();
        let sealed = self.units.iter().any(|record| matches!(record, UnitRecord::Seal { .. }));
        for (unit, held) in held {
            match self.read_work(unit, &held)? {
                Some(work) => all.push((unit, held.attempt, work)),
                None if sealed => {
                    self.spent = true;
                    let place = self.place();
                    return Err(Error::input(format!(
                        "{place} lost the result of unit {unit}, and both parties count on it: remove this \
                         run and begin anew: tacit state drop"
                    )));
                }
                None => self
                    .units
                    .retain(|record| !matches!(record, UnitRecord::Held { unit: of, .. } if *of == unit)),
            }
        }
        Ok(all)
    }

    fn read_work(&self, unit: u32, held: &HeldResult) -> Result<Option<FinishedWork>, Error> {
        let Some(name) = self.work_name(unit, held.attempt) else { return Ok(None) };
        let sealed = self.state.sealed();
        let bytes = match sealed.get(&name) {
            Err(StoreError::Missing { .. } | StoreError::Damaged { .. }) => return Ok(None),
            bytes => zeroize::Zeroizing::new(bytes?),
        };
        let work = FinishedWork::from_object(&bytes);
        Ok(work.filter(|work| *blake3::hash(&work.shares).as_bytes() == held.object))
    }

    /// Puts a result on stable storage, before it is held.
    ///
    /// # Errors
    /// When the store fails.
    pub fn put_work(&mut self, unit: u32, attempt: u32, work: &FinishedWork) -> Result<(), Error> {
        let name = self.work_name(unit, attempt).ok_or_else(|| Error::misuse("units follow a match"))?;
        self.state.sealed().create(&name, &work.to_object()?)?;
        Ok(())
    }

    fn work_name(&self, unit: u32, attempt: u32) -> Option<String> {
        self.matched.as_ref().map(|matched| format!("{}/{unit:04}-{attempt:04}", matched.units))
    }

    /// Puts records of units on stable storage.
    ///
    /// # Errors
    /// When the store fails, or another process leads.
    pub fn write_units(&mut self, records: &[UnitRecord]) -> Result<(), Error> {
        let logged: Vec<LogRecord> = records.iter().map(KeptRecord::of_unit).collect();
        self.append(&logged)?;
        self.units.extend(records);
        if self.log.snapshot_due() {
            self.snapshot()?;
        }
        Ok(())
    }

    /// All units are computed, and what comes next is paid for.
    ///
    /// # Errors
    /// As [`Self::write_units`].
    pub fn releases(&mut self) -> Result<(), Error> {
        self.append(&[KeptRecord::Releasing.to_log()?])
    }

    fn append(&mut self, records: &[LogRecord]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let appended = self.log.append(records);
        self.fenced |= matches!(appended, Err(StoreError::Fenced { .. }));
        appended?;
        // In a bucket its operator may have removed it meanwhile, and its number is free again.
        if !self.state.is_there()? {
            self.fenced = true;
            return Err(StoreError::Fenced { place: self.place(), by: None }.into());
        }
        Ok(())
    }

    /// Everything that counts as one object, so that opening reads few.
    fn snapshot(&mut self) -> Result<(), Error> {
        let mut seen = std::collections::BTreeSet::new();
        // In their order: a failure is of the floor before it.
        let last = |record: &&UnitRecord| match record {
            UnitRecord::Floor { unit, .. } => seen.insert((false, *unit)),
            UnitRecord::Held { unit, .. } => seen.insert((true, *unit)),
            UnitRecord::Seal { .. } | UnitRecord::Failed { .. } => true,
        };
        let mut units: Vec<UnitRecord> = self.units.iter().rev().filter(last).copied().collect();
        units.reverse();
        let mut all = vec![KeptRecord::Begun(Box::new(self.begun.clone())).to_log()?];
        if let Some(matched) = &self.matched {
            all.push(KeptRecord::Matched(Box::new(matched.clone())).to_log()?);
        }
        all.extend(units.iter().map(KeptRecord::of_unit));
        self.log.snapshot(&all)?;
        self.units = units;
        Ok(())
    }

    /// The run is over, and nothing of it stays.
    pub fn done(self) {
        self.state.forget();
    }

    /// Where it is kept, for its operator.
    pub fn place(&self) -> String {
        self.state.place()
    }
}

/// What tells a ledger that these rows' name was given by: the name of a part of them.
fn probe(checked: &Checked, ledger: &Ledger) -> Result<Bytes32, Error> {
    match checked.rows.blocks().next() {
        Some(_) => checked.tag_of(ledger, &checked.rows.block(0)?.into()),
        None => checked.data_tag(ledger),
    }
}

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
            Err(StoreError::Damaged { .. }) => return Ok(empty),
            records => records?,
        };
        let Some(Ok(begun)) = records.first().map(BegunRecord::read) else { return Ok(empty) };
        let Ok(stage) = KeptStage::of(&records, &name.place(&store)) else { return Ok(empty) };
        let (study, day) = (KeptStudy { name: begun.name, hash: begun.study }, day_of(begun.begun));
        Ok(KeptSummary { study: Some(study), begun: Some(day), stage: Some(stage), ..empty })
    };
    names.iter().map(summary).collect()
}

/// Where a party keeps what a match of a study has done, by the study's full hash.
pub(crate) fn journal_of(party: &PartySetup, study: &str) -> Option<PathBuf> {
    party.work.as_ref().map(|folder| folder.join(study))
}

/// Removes runs from a party's state: those of these names, or all that are this party's, and what their
/// matches have in `work`, keys first. Gives the names.
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
        return Ok(Vec::new());
    }
    let key = match state_key(party) {
        // What is named goes, whoever could open it.
        Err(_) if !wanted.is_empty() => None,
        key => Some(key?),
    };
    let mut dropped = Vec::new();
    for name in names {
        let records = key.as_ref().and_then(|key| name.records(&store, key, &party.as_party).ok());
        let is_meant = if wanted.is_empty() { records.is_some() } else { wanted.contains(&name.short()) };
        if !is_meant {
            continue;
        }
        name.remove(&store)?;
        dropped.push(name.short());
        let begun = records.and_then(|records| BegunRecord::read(records.first()?).ok());
        let journal = begun.and_then(|begun| journal_of(party, &begun.study));
        if let Some(journal) = journal.filter(|folder| folder.exists()) {
            matching::forget(&journal)?;
        }
    }
    Ok(dropped)
}

fn opened(party: &PartySetup) -> Result<StateStore, Error> {
    let place = party.state.as_ref().ok_or_else(|| {
        Error::input("this party has no `state`: add state = \"FOLDER\" to the party file, or --state")
    })?;
    StateStore::open(place, &party.store)
}

fn day_of(seconds: u64) -> String {
    study::time::date(seconds as i64)
}

fn seconds(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
