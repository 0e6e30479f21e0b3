//! A match that is under way over lanes, as a run's log has it: which it is, what this party has made by
//! itself, what the peer has promised, and units of its stages.
//!
//! Its keys lie in an object beside its columns, which goes first when the match is over: the log, which
//! nothing is removed from, has their hash alone. Where `state` is a bucket nothing of it is written down:
//! its operator may keep the keys for ever.

use super::record::KeptRecord;
use crate::workers::{FinishedWork, MATCH_STAGES, stage_of_match};
use base::Error;
use matching::pid::{LaneDone, LaneNotes, LaneStage};
use privacy::ledger::Bytes32;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::File;
use std::path::Path;
use store::{LogRecord, RunState, StoreError};
use units::{HeldResult, UnitRecord};
use zeroize::Zeroizing;

/// A promise of the peer's in a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitPin {
    pub stage: u8,
    /// [`Self::ALL`] for one that is of all units.
    pub unit: u32,
    /// Which one of the unit, from 0.
    pub number: u8,
    pub promise: Bytes32,
}

const PIN_BYTES: usize = 1 + 4 + 1 + 32;

impl UnitPin {
    pub const ALL: u32 = u32::MAX;

    fn place(&self) -> (u8, u32, u8) {
        (self.stage, self.unit, self.number)
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        [&[self.stage][..], &self.unit.to_le_bytes(), &[self.number], &self.promise].concat()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [stage, a, b, c, d, number, promise @ ..] = *<&[u8; PIN_BYTES]>::try_from(bytes).ok()?;
        let unit = u32::from_le_bytes([a, b, c, d]);
        MATCH_STAGES.contains(&stage).then_some(Self { stage, unit, number, promise })
    }
}

/// Which beginning in the ledger the made-up rows of a match are of: a match that goes on has those that it
/// began with, whatever the ledger counts and the policy says by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatchDraw {
    pub number: u64,
    pub nonce: Bytes32,
    /// Whether they are drawn for it alone.
    pub afresh: bool,
}

/// A match has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MatchingRecord {
    /// What both parties call it: the name of the meeting in which it began.
    pub name: Bytes32,
    /// The data of both, as they were told.
    pub tags: Vec<Bytes32>,
    /// The folder of its columns, results and keys.
    pub folder: String,
    /// The hash of its keys and what goes with them.
    secrets: Bytes32,
    pub draw: MatchDraw,
}

impl MatchingRecord {
    fn secrets_name(&self) -> String {
        format!("{}/secrets", self.folder)
    }
}

/// How far it is.
pub(super) struct UnderWay {
    pub record: MatchingRecord,
    pub notes: LaneNotes,
    /// In the order in which they were written, which the ledger's hash is of.
    pins: Vec<UnitPin>,
    /// What is promised at each place.
    known: BTreeMap<(u8, u32, u8), Bytes32>,
    /// The running hashes: of no promise, and of each with all before it.
    heads: Vec<Bytes32>,
    /// Records of its units, by stage.
    units: BTreeMap<u8, Vec<UnitRecord>>,
    /// Whether it is written down, and goes on in another meeting.
    pub durable: bool,
}

impl UnderWay {
    /// As its record says.
    pub fn of(record: MatchingRecord) -> Self {
        let (notes, pins, known, units) = Default::default();
        let heads = vec![blake3::derive_key("tacit 2026-11 no promise in a match v1", &record.name)];
        Self { record, notes, pins, known, heads, units, durable: true }
    }

    /// One that begins; its secrets are on stable storage then, where it is to be written down.
    pub fn begin(
        state: &RunState,
        (name, tags, draw): (Bytes32, &[Bytes32], MatchDraw),
        folder: &str,
        secrets: &[u8],
    ) -> Result<Self, Error> {
        let (tags, folder, hash) = (tags.to_vec(), folder.to_owned(), *blake3::hash(secrets).as_bytes());
        let record = MatchingRecord { name, tags, folder, secrets: hash, draw };
        let durable = state.sealed().store().folder().is_some();
        if durable {
            state.sealed().create(&record.secrets_name(), secrets)?;
        }
        Ok(Self { durable, ..Self::of(record) })
    }

    /// Its keys, and what goes with them; none where the store has lost them.
    pub fn secrets(&self, state: &RunState) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let secrets = match state.sealed().get(&self.record.secrets_name()) {
            Err(StoreError::Missing { .. } | StoreError::Damaged { .. }) => return Ok(None),
            secrets => Zeroizing::new(secrets?),
        };
        Ok(Some(secrets).filter(|secrets| *blake3::hash(secrets).as_bytes() == self.record.secrets))
    }

    /// Removes it, keys first: they are gone from stable storage, too, when this returns.
    pub fn remove(&self, state: &RunState) -> Result<(), Error> {
        let store = state.sealed().store();
        if let Some(local) = store.folder().filter(|_| self.durable) {
            delete(state, &self.record.secrets_name())?;
            sync_folder(&local.join(&self.record.folder))?;
        }
        state.remove(&self.record.folder)
    }

    /// The records of its units, of one stage.
    pub fn units(&self, stage: u8) -> &[UnitRecord] {
        self.units.get(&stage).map_or(&[], Vec::as_slice)
    }

    pub fn units_mut(&mut self, stage: u8) -> &mut Vec<UnitRecord> {
        self.units.entry(stage).or_default()
    }

    /// Whether no unit of a stage is opened any more.
    pub fn is_sealed(&self, stage: u8) -> bool {
        self.units(stage).iter().any(|record| matches!(record, UnitRecord::Seal { .. }))
    }

    /// How many results of units it holds.
    pub fn held(&self) -> usize {
        MATCH_STAGES.map(|stage| held(self.units(stage)).count()).sum()
    }

    /// Where a result lies.
    pub fn work_name(&self, stage: u8, (unit, attempt): (u32, u32)) -> String {
        format!("{}/done/{stage}-{unit:04}-{attempt:04}", self.record.folder)
    }

    /// What was pinned first is there: whether this is it. None where it is the first.
    pub fn known(&self, pin: &UnitPin) -> Option<bool> {
        self.known.get(&pin.place()).map(|promise| *promise == pin.promise)
    }

    pub fn pin(&mut self, pin: UnitPin) {
        if self.known(&pin).is_none() {
            self.heads.push(self.head_with(&pin));
            self.known.insert(pin.place(), pin.promise);
            self.pins.push(pin);
        }
    }

    /// The running hash of what is promised.
    pub fn head(&self) -> Bytes32 {
        self.heads[self.heads.len() - 1]
    }

    /// What it is with one promise more.
    pub fn head_with(&self, pin: &UnitPin) -> Bytes32 {
        next_head(self.head(), pin)
    }

    /// Whether it was so at some time.
    pub fn comes_to(&self, head: &Bytes32) -> bool {
        self.heads.contains(head)
    }

    /// All that counts of it, in an order that gives it again.
    pub fn records(&self) -> Result<Vec<LogRecord>, Error> {
        let mut all = vec![
            KeptRecord::Matching(Box::new(self.record.clone())).to_log()?,
            KeptRecord::Noted(Box::new(self.notes.clone())).to_log()?,
        ];
        for pin in &self.pins {
            all.push(KeptRecord::Pin(*pin).to_log()?);
        }
        for (stage, units) in &self.units {
            all.extend(last_of(units).iter().map(|record| KeptRecord::of_unit(*stage, record)));
        }
        Ok(all)
    }

    /// Looks whether the store has what it goes on from. A result that was lost is held no more; where no
    /// unit of its stage is opened any more, nobody goes on with this match.
    pub fn look(&mut self, state: &RunState) -> Result<bool, Error> {
        if self.secrets(state)?.is_none() {
            return Ok(false);
        }
        let there = state.sealed().store().list(&self.record.folder)?;
        let there: HashSet<String> = there.into_iter().map(|(name, _)| name).collect();
        if !self.is_sealed(*MATCH_STAGES.start())
            && !self.notes.hashed_names().all(|name| there.contains(name))
        {
            self.notes = std::mem::take(&mut self.notes).without_hashed();
        }
        let mut needed: HashSet<String> = self.notes.hashed_names().map(str::to_owned).collect();
        needed.insert(self.record.secrets_name());
        for stage in MATCH_STAGES {
            let next_is_over = self.is_sealed(stage + 1);
            let mut lost = Vec::new();
            for (unit, held) in held(self.units(stage)) {
                let name = self.work_name(stage, (unit, held.attempt));
                let work = read_work(state, &name, &held)?;
                let done = work.and_then(|work| serde_json::from_slice::<LaneDone>(&work.shares).ok());
                let columns = |done: LaneDone| {
                    let names = done.needed(stage_of_match(stage)?, next_is_over).map(str::to_owned);
                    Some(names.collect::<Vec<String>>())
                };
                match done.and_then(columns).filter(|names| names.iter().all(|name| there.contains(name))) {
                    Some(names) => needed.extend(names.into_iter().chain([name])),
                    None => lost.push(unit),
                }
            }
            if self.is_sealed(stage) && !lost.is_empty() {
                return Ok(false);
            }
            lost.into_iter().for_each(|unit| forget_held(self.units_mut(stage), unit));
        }
        // What attempts that came to nothing have left.
        there.difference(&needed).try_for_each(|name| delete(state, name))?;
        Ok(true)
    }

    /// Removes what earlier attempts at a unit have left, but for a result that is held: a peer that fails
    /// again and again fills no disk.
    pub fn forget_attempts(
        &self,
        state: &RunState,
        stage: u8,
        (unit, attempt): (u32, u32),
    ) -> Result<(), Error> {
        let held = held(self.units(stage)).find(|(of, _)| *of == unit).map(|(_, held)| held.attempt);
        let name = stage_of_match(stage).map_or("", LaneStage::name);
        // Of its columns, and of its result.
        let prefixes = [format!("{name}-{unit:04}-"), format!("{stage}-{unit:04}-")];
        let goes = |part: &str| {
            let number = prefixes.iter().find_map(|prefix| part.strip_prefix(prefix)?.parse().ok());
            number.is_some_and(|number: u32| number < attempt && Some(number) != held)
        };
        let there = if attempt > 1 { state.sealed().store().list(&self.record.folder)? } else { Vec::new() };
        let left = there.iter().filter(|(object, _)| object.split('/').any(goes));
        left.into_iter().try_for_each(|(object, _)| delete(state, object))
    }
}

fn next_head(head: Bytes32, pin: &UnitPin) -> Bytes32 {
    let bytes = [&head[..], &pin.encode()].concat();
    blake3::derive_key("tacit 2026-11 one promise more in a match v1", &bytes)
}

/// Removes an object that may be gone already.
fn delete(state: &RunState, name: &str) -> Result<(), Error> {
    match state.sealed().store().delete(name) {
        Ok(()) | Err(StoreError::Missing { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What was removed from a folder stays so after a power failure. One that is gone went from the one above.
fn sync_folder(folder: &Path) -> Result<(), Error> {
    let there = folder.ancestors().find(|path| path.is_dir()).unwrap_or(folder);
    let synced = File::open(there).and_then(|folder| folder.sync_all());
    synced.map_err(|e| Error::io(format_args!("cannot write {}", there.display()), &e))
}

/// What is held by these records, the last result of each unit.
pub(super) fn held(records: &[UnitRecord]) -> impl Iterator<Item = (u32, HeldResult)> + use<> {
    let held = |record: &UnitRecord| match record {
        UnitRecord::Held { unit, held } => Some((*unit, *held)),
        UnitRecord::Floor { .. } | UnitRecord::Seal { .. } | UnitRecord::Failed { .. } => None,
    };
    let last: BTreeMap<u32, HeldResult> = records.iter().filter_map(held).collect();
    last.into_iter()
}

/// A result that was lost is not held.
pub(super) fn forget_held(records: &mut Vec<UnitRecord>, unit: u32) {
    records.retain(|record| !matches!(record, UnitRecord::Held { unit: of, .. } if *of == unit));
}

/// Records by which a stage stands as by all of these: of each unit the last floor, the last result and the
/// last failure. How many failed is in [`super::spent::RunSpent`].
pub(super) fn last_of(records: &[UnitRecord]) -> Vec<UnitRecord> {
    let [mut floors, mut results, mut failures] = [const { BTreeSet::new() }; 3];
    // In their order: a failure is of the floor before it.
    let last = |record: &&UnitRecord| match record {
        UnitRecord::Floor { unit, .. } => floors.insert(*unit),
        UnitRecord::Held { unit, .. } => results.insert(*unit),
        // What burnt the last floor counts, though another one may have been written after it.
        UnitRecord::Failed { unit, .. } => failures.insert(*unit) || !floors.contains(unit),
        UnitRecord::Seal { .. } => true,
    };
    let mut units: Vec<UnitRecord> = records.iter().rev().filter(last).copied().collect();
    units.reverse();
    units
}

/// A result as it was put; none where the store lost it, or has another one.
pub(super) fn read_work(
    state: &RunState,
    name: &str,
    held: &HeldResult,
) -> Result<Option<FinishedWork>, Error> {
    let bytes = match state.sealed().get(name) {
        Err(StoreError::Missing { .. } | StoreError::Damaged { .. }) => return Ok(None),
        bytes => Zeroizing::new(bytes?),
    };
    let work = FinishedWork::from_object(&bytes);
    Ok(work.filter(|work| *blake3::hash(&work.shares).as_bytes() == held.object))
}
