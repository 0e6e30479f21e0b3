//! Joined rows in the state, for a process that goes on after this one.

use super::{HeldPart, Payloads, Shared};
use crate::kept::{KeptJoin, KeptObject, KeptValid};
use base::{Error, PartyId};
use matching::payload::ValidEntries;
use matching::{ShareTable, StoredRows};
use std::ops::Range;
use store::{ChunkSize, PART_BYTES, RunState, SealedReader, SealedStore};
use zeroize::Zeroizing;

/// Bytes of a total: its fold, and the number.
const TOTAL: usize = 4 + 16;

/// A part that lies in the state.
struct StoredPart(SealedReader);

impl StoredRows for StoredPart {
    fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Error> {
        Ok(self.0.read(range)?)
    }
}

impl Shared {
    /// Rows and entries that [`Self::keep`] tells of; the same at both parties.
    pub fn to_write(&self) -> u64 {
        self.rows + self.rows * self.slots
    }

    /// Writes down what this party holds, and tells how many rows and entries it has come to.
    ///
    /// # Errors
    /// When the state cannot be written, or what is held not be read; or what `written` says.
    pub fn keep(
        &self,
        state: &RunState,
        written: &mut dyn FnMut(u64) -> Result<(), Error>,
    ) -> Result<KeptJoin, Error> {
        let (sealed, folder) = (state.sealed(), state.folder("joined"));
        let mut before = 0;
        let mut part = |at: usize| {
            let entries = self.entries()[at];
            let kept = match &self.parts[at] {
                HeldPart::Theirs => None,
                HeldPart::Table(table) => {
                    let (name, width) = (KeptJoin::part(&folder, at), table.layout().row_bytes().max(1));
                    let mut writer = sealed.writer(&name, ChunkSize::Large)?;
                    table.each(|bytes| {
                        writer.write(bytes)?;
                        written(before + entries.min(writer.len() / width as u64))
                    })?;
                    Some(KeptObject::finish(writer)?)
                }
            };
            before += entries;
            Ok::<_, Error>(kept)
        };
        let parts = [part(0)?, part(1)?];
        let words = |words: &[u64]| {
            let mut writer = sealed.writer(&KeptJoin::valid(&folder), ChunkSize::Large)?;
            words.iter().try_for_each(|word| writer.write(&word.to_le_bytes()))?;
            KeptObject::finish(writer)
        };
        let valid = match &self.valid {
            ValidEntries::All => KeptValid::All,
            ValidEntries::Theirs => KeptValid::Theirs,
            ValidEntries::Shared(all) => KeptValid::Shared(words(all)?),
            ValidEntries::Mine(all) => KeptValid::Mine(words(all)?),
        };
        let mut alone = sealed.writer(&KeptJoin::alone(&folder), ChunkSize::Large)?;
        for (fold, total) in &self.alone {
            alone.write(&fold.to_le_bytes())?;
            alone.write(&total.to_le_bytes())?;
        }
        let alone = KeptObject::finish(alone)?;
        let (rows, slots) = (self.rows, self.slots as u32);
        Ok(KeptJoin { folder, rows, slots, parts, valid, alone })
    }

    /// What an earlier process wrote down.
    ///
    /// # Errors
    /// When it cannot be read, or is not what the parties of this study attach to their rows.
    pub fn reopened(
        payloads: Payloads,
        me: PartyId,
        (state, kept): (&RunState, &KeptJoin),
    ) -> Result<Self, Error> {
        let KeptJoin { folder, rows, slots, parts, valid, alone } = kept;
        let (sealed, other) = (state.sealed(), || Error::input(format!("{}: {OTHER}", state.place())));
        let (rows, slots) = (*rows, u64::from(*slots));
        let (entries, layouts) = (entries(rows, slots), payloads.layouts()?);
        let held = |at: usize| match &parts[at] {
            None => Ok::<_, Error>(HeldPart::Theirs),
            Some(part) => {
                let layout = layouts[at].clone();
                let least = entries[at].checked_mul(layout.row_bytes() as u64).ok_or_else(other)?;
                let reader = part.open(sealed, &KeptJoin::part(folder, at))?;
                let stored = Box::new(StoredPart(reader));
                let table = || HeldPart::Table(ShareTable::stored(layout, entries[at], stored));
                (part.bytes >= least).then(table).ok_or_else(other)
            }
        };
        let words = |words: &KeptObject| {
            let bytes = read(sealed, words, &KeptJoin::valid(folder))?;
            let all: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            if all.len() as u64 >= entries[1].div_ceil(64) { Ok(all) } else { Err(other()) }
        };
        let valid = match valid {
            KeptValid::All => ValidEntries::All,
            KeptValid::Theirs => ValidEntries::Theirs,
            KeptValid::Shared(object) => ValidEntries::Shared(words(object)?),
            KeptValid::Mine(object) => ValidEntries::Mine(words(object)?),
        };
        let alone = read(sealed, alone, &KeptJoin::alone(folder))?;
        let alone = alone.as_chunks::<TOTAL>().0.iter().map(|total| {
            let (fold, total) = total.split_first_chunk().expect("a fold comes first");
            (u32::from_le_bytes(*fold), u128::from_le_bytes(total.try_into().expect("sixteen bytes")))
        });
        let alone = alone.collect();
        if slots != u64::from(payloads.slots) {
            return Err(other());
        }
        Ok(Self { alone, me, rows, slots, parts: [held(0)?, held(1)?], valid, payloads })
    }

    fn entries(&self) -> [u64; 2] {
        entries(self.rows, self.slots)
    }
}

const OTHER: &str = "it holds joined rows of another shape than those of this study: remove this run and \
                     begin anew: tacit state drop";

/// Entries of either party along joined rows.
fn entries(rows: u64, slots: u64) -> [u64; 2] {
    [rows, rows.saturating_mul(slots)]
}

/// All bytes of an object.
fn read(sealed: &SealedStore, object: &KeptObject, name: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let reader = object.open(sealed, name)?;
    let mut all = Zeroizing::new(Vec::with_capacity(object.bytes as usize));
    let (mut start, piece) = (0, PART_BYTES as u64);
    loop {
        let end = object.bytes.min(start + piece);
        all.extend_from_slice(&Zeroizing::new(reader.read(start..end)?));
        start = end;
        if start == object.bytes {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::StudyEngine;
    use crate::kept::KeptMatch;
    use crate::prepare::build;
    use crate::ranges::RowRanges;
    use crate::run::join::JoinedRange;
    use base::Seed;
    use matching::PayloadTable;
    use matching::spill::SpillRoom;
    use program::JoinedRows as _;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;
    use store::{StateKey, StateStore, StoreError, StoreOptions};
    use study::Study;

    const LIFT: &str = include_str!("../../../../../examples/lift.toml");
    const ROWS: u64 = 5_001;

    fn payloads(protocol: &str) -> Payloads {
        let text = LIFT.replace("protocol    = \"pid\"", &format!("protocol    = \"{protocol}\""));
        let study = Study::parse("study.toml", &text).unwrap();
        let built = build(&study, &program::VerifierPolicy::default()).unwrap();
        let engine = StudyEngine::of(&study, &built.program).unwrap();
        Payloads::new(&built, engine.joined().unwrap().clone()).unwrap()
    }

    /// Any shares, where `theirs` says that party 0's values are the peer's, in the clear.
    fn shared(protocol: &str, theirs: bool, valid: fn(Vec<u64>) -> ValidEntries) -> Shared {
        let (payloads, room) = (payloads(protocol), SpillRoom::new(Some(1), None));
        let slots = u64::from(payloads.slots);
        let mut rng = Seed::from_bytes([4; 32]).into_rng();
        let mut table = |at: usize| {
            let layout = payloads.layouts().unwrap()[at].clone();
            let mut table = PayloadTable::zeros(layout, entries(ROWS, slots)[at]).unwrap();
            table.bytes_mut().iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            HeldPart::Table(ShareTable::of(&table, &room).unwrap())
        };
        let parts = [if theirs { HeldPart::Theirs } else { table(0) }, table(1)];
        let words = (0..(ROWS * slots).div_ceil(64)).map(|_| rng.below(u64::MAX)).collect();
        let alone = vec![(0, 7), (3, u128::MAX - 1)];
        Shared { payloads, alone, me: PartyId(1), rows: ROWS, slots, parts, valid: valid(words) }
    }

    fn state(folder: &Path) -> RunState {
        let place = folder.join("state");
        let store = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
        RunState::begin(store, &StateKey::fresh(), "clinic", Duration::MAX).unwrap()
    }

    /// All that a computation reads.
    fn read_all(shared: Shared) -> (Vec<Vec<u128>>, Vec<u128>) {
        let (shared, ranges) = (Arc::new(shared), RowRanges::new(ROWS, 3));
        let mut all = vec![Vec::new(); shared.payloads.plan.entries.len()];
        let mut alone = Vec::new();
        for unit in 0..3 {
            let mut rows = JoinedRange::new(shared.clone(), &ranges, unit).unwrap();
            for (entry, all) in all.iter_mut().enumerate() {
                let mut values = vec![0; rows.len() as usize];
                rows.read(entry, 0, &mut values).unwrap();
                all.extend(values);
            }
            alone.extend([0, 3].map(|fold| rows.alone(fold).unwrap()));
        }
        (all, alone)
    }

    /// Every way in which a party of the protocols holds joined rows.
    #[test]
    fn what_was_written_down_is_what_is_read() {
        type Valid = fn(Vec<u64>) -> ValidEntries;
        let ways: [(&str, bool, Valid); 4] = [
            ("ps3i", false, |_| ValidEntries::All),
            ("circuit-psi", true, ValidEntries::Shared),
            ("collecting", false, ValidEntries::Mine),
            ("collecting", false, |_| ValidEntries::Theirs),
        ];
        let folder = tempfile::tempdir().unwrap();
        for (protocol, theirs, valid) in ways {
            let (state, held) = (state(folder.path()), shared(protocol, theirs, valid));
            let mut told = vec![0];
            let mut written = |rows| {
                told.push(rows);
                Ok(())
            };
            let kept = held.keep(&state, &mut written).unwrap();
            assert!(told.is_sorted() && *told.last().unwrap() == held.to_write(), "{protocol}: {told:?}");
            let kept = serde_json::to_string(&KeptMatch::Joined(kept)).unwrap();
            let KeptMatch::Joined(kept) = serde_json::from_str(&kept).unwrap() else { panic!("a join") };
            kept.look(state.sealed()).unwrap();
            let again = Shared::reopened(payloads(protocol), held.me, (&state, &kept)).unwrap();
            let (again, before) = (read_all(again), read_all(held));
            assert!(again == before && again.1 == [7, u128::MAX - 1, 0, 0, 0, 0], "{protocol}");
        }
    }

    #[test]
    fn what_is_not_what_was_written_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(folder.path());
        let kept = shared("ps3i", false, ValidEntries::Shared).keep(&state, &mut |_| Ok(())).unwrap();
        let more = KeptJoin { rows: 2 * ROWS, ..kept.clone() };
        let error = Shared::reopened(payloads("ps3i"), PartyId(0), (&state, &more)).err().expect("fewer");
        assert!(error.to_string().contains("of another shape"), "{error}");
        let error = Shared::reopened(payloads("collecting"), PartyId(0), (&state, &kept)).err();
        assert!(error.expect("other slots").to_string().contains("of another shape"));
        let store = state.sealed().store();
        for name in
            [KeptJoin::part(&kept.folder, 1), KeptJoin::valid(&kept.folder), KeptJoin::alone(&kept.folder)]
        {
            let bytes = store.get(&name).unwrap();
            store.delete(&name).unwrap();
            assert!(matches!(kept.look(state.sealed()), Err(StoreError::Missing { .. })), "{name}");
            state.sealed().create(&name, b"other").unwrap();
            assert!(matches!(kept.look(state.sealed()), Err(StoreError::Damaged { .. })), "{name}");
            store.put(&name, &bytes[..bytes.len() / 2]).unwrap();
            assert!(matches!(kept.look(state.sealed()), Err(StoreError::Damaged { .. })), "{name}");
            store.put(&name, &bytes).unwrap();
            kept.look(state.sealed()).unwrap();
        }
    }
}
