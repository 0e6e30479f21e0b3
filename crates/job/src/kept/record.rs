//! Records of a run's log: a tag, and JSON, or the bytes of [`UnitRecord`].

use super::join::KeptJoin;
use super::seconds;
use super::spent::RunSpent;
use super::under_way::{MatchingRecord, UnitPin};
use crate::prepare::Checked;
use crate::stages::link::LinkFacts;
use crate::workers::{COMPUTE, MATCH_STAGES};
use base::{Error, hex};
use data::{InputContent, InputReport, KeptRows};
use matching::pid::LaneNotes;
use privacy::ledger::Bytes32;
use report::Disclosure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;
use store::{LogRecord, ObjectId, RunObject, RunReader, SealedStore, StoreError};
use units::UnitRecord;

/// Of what this version writes. It reads what those before have written: 1 knew no units of a match.
const FORMAT: u32 = 2;

const BEGUN: u8 = 1;
const MATCHED: u8 = 2;
const RELEASING: u8 = 3;
const MATCHING: u8 = 4;
const PIN: u8 = 5;
const NOTED: u8 = 6;
const VOID: u8 = 7;
const SPENT: u8 = 8;
/// Records of units have their own tags beyond this one, as often as their stage has a number.
const UNITS: u8 = 16;

/// One thing that has come to be.
pub(crate) enum KeptRecord {
    /// Rows are read and laid down.
    Begun(Box<BegunRecord>),
    /// Their match over lanes has begun.
    Matching(Box<MatchingRecord>),
    /// What this party has made by itself in it.
    Noted(Box<LaneNotes>),
    /// What the peer has promised in it.
    Pin(UnitPin),
    /// Nobody goes on with it.
    Void,
    /// What all has cost so far.
    Spent(Box<RunSpent>),
    /// They are matched, and what came of it lies in the state.
    Matched(Box<MatchedRecord>),
    /// A record of the units of a stage: of the computation, or of the match under way.
    Unit(u8, UnitRecord),
    /// All units are computed, and the release begins.
    Releasing,
}

/// What another version of tacit reads of a run's first record, whatever else is in it.
#[derive(Deserialize)]
struct WrittenBy {
    format: u32,
    version: String,
    study: String,
}

/// The first record of a run: whose it is, and where its rows lie.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BegunRecord {
    format: u32,
    /// Of tacit.
    version: String,
    /// The study's hash, its name, and the hash of its program.
    pub study: String,
    pub name: String,
    program: Bytes32,
    /// The version of the input that was read, in hex.
    pub input: String,
    /// What its files held, where they are of this machine and nobody wrote to them meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<InputContent>,
    /// What the ledger calls these rows, and a part of them.
    pub tag: Bytes32,
    pub probe: Bytes32,
    pub rows: KeptRows,
    pub inputs: InputReport,
    /// In seconds of 1970.
    pub begun: u64,
}

/// Own columns along a spine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptColumns {
    pub folder: String,
    /// The runs of [`store::RunWriter`]: name, what tells each from other objects of that name, records.
    runs: Vec<(String, [u8; 32], u64)>,
    pub union: u64,
    pub bits: u32,
}

/// What a match gave, as it lies in the state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum KeptMatch {
    Spine(KeptColumns),
    Joined(KeptJoin),
}

/// Rows are matched: all that the computation goes by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MatchedRecord {
    /// The match, as both parties name it.
    pub name: Bytes32,
    /// The data of both, as they were told.
    pub tags: Vec<Bytes32>,
    #[serde(rename = "columns")]
    pub rows: KeptMatch,
    /// The folder of the results of units.
    pub units: String,
    /// For how many workers rows are cut into units.
    pub workers: u32,
    /// The link by which the engine was settled: bits per second, seconds of a round trip and cores, each as
    /// the bits of its number.
    link: Option<[u64; 3]>,
    pub disclosed: Disclosure,
    /// Whether sizes were charged.
    pub sizes_paid: bool,
}

/// How far a run has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeptStage {
    /// Whether its rows are matched.
    pub matched: bool,
    /// Units of a match over workers' lanes, which is under way, whose results this party holds; null where
    /// none is.
    pub match_units_held: Option<usize>,
    /// Units whose results this party holds.
    pub units_held: usize,
    /// Attempts at units that were opened or burnt.
    pub attempts: u64,
    /// Attempts that came to nothing, in the whole run.
    pub failed: u64,
    /// Whether all units are computed at both.
    pub sealed: bool,
    /// Whether its release had begun.
    pub releasing: bool,
}

impl KeptColumns {
    pub fn new(folder: &str, runs: &[RunObject], (union, bits): (u64, u32)) -> Self {
        let run = |run: &RunObject| (run.name.clone(), run.id.0, run.records);
        Self { folder: folder.to_owned(), runs: runs.iter().map(run).collect(), union, bits }
    }

    pub fn runs(&self) -> Vec<RunObject> {
        let run = |(name, id, records): &(String, [u8; 32], u64)| RunObject {
            name: name.clone(),
            id: ObjectId(*id),
            records: *records,
        };
        self.runs.iter().map(run).collect()
    }
}

impl KeptMatch {
    /// The folder of its objects.
    pub fn folder(&self) -> &str {
        match self {
            Self::Spine(columns) => &columns.folder,
            Self::Joined(joined) => &joined.folder,
        }
    }

    /// Looks whether the store has what was written.
    ///
    /// # Errors
    /// [`StoreError::Missing`] and [`StoreError::Damaged`]; or when the store fails.
    pub fn look(&self, sealed: &SealedStore) -> Result<(), StoreError> {
        match self {
            Self::Spine(columns) => RunReader::open(sealed.clone(), &columns.runs()).map(drop),
            Self::Joined(joined) => joined.look(sealed),
        }
    }
}

impl BegunRecord {
    /// Of a run whose rows are laid down, with the names of them and of a part of them.
    pub fn of(checked: &Checked, (tag, probe): (Bytes32, Bytes32)) -> Result<Self, Error> {
        let rows = checked.rows.kept().ok_or_else(|| Error::misuse("rows in memory are not kept"))?;
        let input = checked.input_version.ok_or_else(|| Error::misuse("rows in state have a version"))?;
        Ok(Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            study: checked.hash.full(),
            name: checked.study.name.clone(),
            program: checked.built.program.hash(),
            input: hex(&input),
            content: checked.input_content,
            tag,
            probe,
            rows,
            inputs: checked.inputs.written(),
            begun: seconds(SystemTime::now()),
        })
    }

    /// Whether the first record of a log is of a study, in whatever version.
    pub fn is_of(record: &LogRecord, study: &str) -> bool {
        serde_json::from_slice::<WrittenBy>(&record.payload).is_ok_and(|by| by.study == study)
    }

    /// Reads the first record of a log, of which the first fields are the same in all versions.
    pub fn read(record: &LogRecord) -> Result<Self, Error> {
        let by: WrittenBy = serde_json::from_slice(&record.payload).map_err(|_| unreadable("it"))?;
        let whole = serde_json::from_slice::<Self>(&record.payload);
        match whole {
            Ok(begun) if record.tag == BEGUN => Ok(begun),
            _ => Err(other_version("a run in `state`", &by.version, by.format)),
        }
    }

    /// Refuses what another version wrote in another way.
    pub fn expect_readable(&self, place: &str) -> Result<(), Error> {
        if (1..=FORMAT).contains(&self.format) {
            return Ok(());
        }
        Err(other_version(place, &self.version, self.format))
    }

    /// Refuses what was computed by another program: another version makes another one of the same study.
    pub fn expect_program(&self, program: &Bytes32, place: &str) -> Result<(), Error> {
        if self.program == *program {
            return Ok(());
        }
        Err(other_version(place, &self.version, self.format))
    }
}

fn other_version(place: &str, version: &str, format: u32) -> Error {
    Error::input(format!(
        "{place} was written by tacit {version} (format {format}), and this is tacit {} (format {FORMAT}): \
         go on with that version, or remove it and begin anew: tacit state drop",
        env!("CARGO_PKG_VERSION")
    ))
}

fn unreadable(place: &str) -> Error {
    Error::input(format!(
        "{place} holds a record that this version of tacit does not read: go on with the version that wrote \
         it, or remove it and begin anew: tacit state drop"
    ))
}

impl MatchedRecord {
    /// Of rows that lie in the state.
    pub fn new(
        (name, tags): (Bytes32, &[Bytes32]),
        rows: KeptMatch,
        units: String,
        (workers, link): (u32, Option<LinkFacts>),
        (disclosed, sizes_paid): (&Disclosure, bool),
    ) -> Self {
        let (tags, disclosed) = (tags.to_vec(), disclosed.clone());
        let link = link.map(LinkFacts::to_bits);
        Self { name, tags, rows, units, workers, link, disclosed, sizes_paid }
    }

    pub fn link(&self) -> Option<LinkFacts> {
        self.link.map(LinkFacts::from_bits)
    }
}

impl KeptRecord {
    pub fn to_log(&self) -> Result<LogRecord, Error> {
        let json = |tag, payload: Result<Vec<u8>, serde_json::Error>| {
            let payload = payload.map_err(|e| Error::misuse(format!("no record: {e}")))?;
            Ok(LogRecord { tag, payload })
        };
        match self {
            Self::Begun(begun) => json(BEGUN, serde_json::to_vec(begun)),
            Self::Matching(matching) => json(MATCHING, serde_json::to_vec(matching)),
            Self::Noted(notes) => json(NOTED, serde_json::to_vec(notes)),
            Self::Pin(pin) => Ok(LogRecord { tag: PIN, payload: pin.encode() }),
            Self::Matched(matched) => json(MATCHED, serde_json::to_vec(matched)),
            Self::Unit(stage, record) => Ok(Self::of_unit(*stage, record)),
            Self::Void => Ok(LogRecord { tag: VOID, payload: Vec::new() }),
            Self::Spent(spent) => json(SPENT, serde_json::to_vec(spent)),
            Self::Releasing => Ok(LogRecord { tag: RELEASING, payload: Vec::new() }),
        }
    }

    pub fn of_unit(stage: u8, record: &UnitRecord) -> LogRecord {
        let (tag, payload) = record.encode();
        LogRecord { tag: UNITS * stage + tag, payload }
    }

    pub fn of_log(record: &LogRecord, place: &str) -> Result<Self, Error> {
        let LogRecord { tag, payload } = record;
        let unreadable = || unreadable(place);
        Ok(match *tag {
            BEGUN => Self::Begun(Box::new(BegunRecord::read(record)?)),
            MATCHING => Self::Matching(Box::new(serde_json::from_slice(payload).map_err(|_| unreadable())?)),
            NOTED => Self::Noted(Box::new(serde_json::from_slice(payload).map_err(|_| unreadable())?)),
            PIN => Self::Pin(UnitPin::decode(payload).ok_or_else(unreadable)?),
            MATCHED => Self::Matched(Box::new(serde_json::from_slice(payload).map_err(|_| unreadable())?)),
            VOID => Self::Void,
            SPENT => Self::Spent(Box::new(serde_json::from_slice(payload).map_err(|_| unreadable())?)),
            RELEASING => Self::Releasing,
            tag => {
                let stage = tag / UNITS;
                let known = stage == COMPUTE || MATCH_STAGES.contains(&stage);
                let unit = UnitRecord::decode(tag % UNITS, payload).filter(|_| known);
                Self::Unit(stage, unit.ok_or_else(unreadable)?)
            }
        })
    }
}

impl KeptStage {
    /// What records say, the first of which begins a run.
    pub(super) fn of(records: &[LogRecord], place: &str) -> Result<Self, Error> {
        let (mut all, mut held, mut floors) = (Self::default(), BTreeSet::new(), BTreeMap::new());
        for record in records.iter().skip(1) {
            match KeptRecord::of_log(record, place)? {
                KeptRecord::Begun(_) | KeptRecord::Noted(_) | KeptRecord::Pin(_) => {}
                // That of a match which is over: what came of it counts.
                KeptRecord::Void if all.matched => {}
                KeptRecord::Void => {
                    (held, floors) = (BTreeSet::new(), BTreeMap::new());
                    all = Self { failed: all.failed, ..Self::default() };
                }
                begins @ (KeptRecord::Matching(_) | KeptRecord::Matched(_)) => {
                    (held, floors) = (BTreeSet::new(), BTreeMap::new());
                    let matched = matches!(begins, KeptRecord::Matched(_));
                    let match_units_held = (!matched).then_some(0);
                    all = Self { matched, match_units_held, failed: all.failed, ..Self::default() };
                }
                // It has those that were written down one by one.
                KeptRecord::Spent(spent) => all.failed = spent.failures(),
                KeptRecord::Unit(stage, UnitRecord::Floor { unit, attempt }) => {
                    floors.insert((stage, unit), u64::from(attempt));
                }
                KeptRecord::Unit(stage, UnitRecord::Held { unit, .. }) => _ = held.insert((stage, unit)),
                KeptRecord::Unit(stage, UnitRecord::Seal { .. }) => all.sealed |= stage == COMPUTE,
                KeptRecord::Unit(_, UnitRecord::Failed { .. }) => all.failed += 1,
                KeptRecord::Releasing => all.releasing = true,
            }
        }
        match &mut all.match_units_held {
            Some(of_match) => *of_match = held.len(),
            None => all.units_held = held.len(),
        }
        all.attempts = floors.values().sum();
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::pinned;
    use units::FailureCause;

    /// As version 0.1 wrote it: what is kept stays readable.
    const BEGUN_1: &str = include_str!("begun_1.json");
    const MATCHED_1: &str = include_str!("matched_1.json");
    const JOINED_1: &str = include_str!("joined_1.json");
    const MATCHING_2: &str = include_str!("matching_2.json");

    const CONTENT: &str = "{\"named\":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7],\
                           \"bytes\":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7]}";

    fn log(tag: u8, payload: &str) -> LogRecord {
        LogRecord { tag, payload: payload.trim_end().as_bytes().to_vec() }
    }

    #[test]
    fn the_wire_is_pinned() {
        let mut hash = blake3::Hasher::new();
        let content = BEGUN_1.replace("\"tag\":", &format!("\"content\":{CONTENT},\"tag\":"));
        assert_ne!(content, BEGUN_1);
        let [begun, touched] = [BEGUN_1, &content].map(|text| log(BEGUN, text));
        for record in [begun, touched, log(MATCHED, MATCHED_1), log(MATCHED, JOINED_1)] {
            let read = KeptRecord::of_log(&record, "here").unwrap();
            assert_eq!(read.to_log().unwrap(), record);
            hash.update(&[record.tag]).update(&record.payload);
        }
        let unit = UnitRecord::Floor { unit: 1, attempt: 2 };
        let failed = UnitRecord::Failed { unit: 1, attempt: 1, cause: FailureCause::LaneCut, peer: true };
        let pin = UnitPin { stage: 3, unit: 7, number: 1, promise: [9; 32] };
        let matching = serde_json::from_str(MATCHING_2.trim_end()).unwrap();
        let more = [
            KeptRecord::Unit(COMPUTE, unit),
            KeptRecord::Unit(COMPUTE, failed),
            KeptRecord::Releasing,
            KeptRecord::Matching(Box::new(matching)),
            KeptRecord::Noted(Box::default()),
            KeptRecord::Pin(pin),
            KeptRecord::Void,
            KeptRecord::Unit(4, unit),
        ];
        for record in more {
            let record = record.to_log().unwrap();
            assert_eq!(KeptRecord::of_log(&record, "here").unwrap().to_log().unwrap(), record);
            hash.update(&[record.tag]).update(&record.payload);
        }
        pinned(&[("resume, records", hash.finalize().to_hex()[..16].to_owned(), "bb27b639b0d53478")]);
        let [unit, failed] = [unit, failed].map(|record| KeptRecord::of_unit(COMPUTE, &record));
        let records = [log(BEGUN, BEGUN_1), log(MATCHED, MATCHED_1), unit, failed];
        let stage = KeptStage::of(&records, "here").unwrap();
        assert_eq!(stage, KeptStage { matched: true, attempts: 2, failed: 1, ..KeptStage::default() });
        // Of a stage that nobody knows, and one of a match.
        let unit = UnitRecord::Floor { unit: 1, attempt: 3 };
        assert!(KeptRecord::of_log(&KeptRecord::of_unit(5, &unit), "here").is_err());
        let records = [log(BEGUN, BEGUN_1), log(MATCHING, MATCHING_2), KeptRecord::of_unit(2, &unit)];
        let stage = KeptStage::of(&records, "here").unwrap();
        assert_eq!(stage, KeptStage { match_units_held: Some(0), attempts: 3, ..KeptStage::default() });
        let void = [&records[..], &[KeptRecord::Void.to_log().unwrap()]].concat();
        assert_eq!(KeptStage::of(&void, "here").unwrap(), KeptStage::default());
    }

    #[test]
    fn another_version_is_named_with_this_one() {
        let newer = BEGUN_1.replace("\"format\":1", "\"format\":3").replace("\"name\"", "\"title\"");
        assert_ne!(newer, BEGUN_1);
        let error = BegunRecord::read(&log(BEGUN, &newer)).unwrap_err().to_string();
        let here = format!("this is tacit {} (format 2)", env!("CARGO_PKG_VERSION"));
        for part in ["(format 3)", &here, "tacit state drop"] {
            assert!(error.contains(part), "{error}");
        }
        let of_format = |format| {
            let readable = BEGUN_1.replace("\"format\":1", &format!("\"format\":{format}"));
            BegunRecord::read(&log(BEGUN, &readable)).unwrap().expect_readable("state")
        };
        assert!(of_format(1).is_ok() && of_format(2).is_ok());
        assert!(of_format(3).unwrap_err().to_string().contains("(format 3)"));
        let unknown = LogRecord { tag: 9, payload: Vec::new() };
        let error = KeptRecord::of_log(&unknown, "state").err().expect("no such record").to_string();
        assert!(error.contains("does not read"), "{error}");
    }

    /// Columns come back as they were noted down.
    #[test]
    fn columns_have_the_runs_that_were_written() {
        let runs = [RunObject { name: "a/0".into(), id: ObjectId([3; 32]), records: 7 }];
        let kept = KeptColumns::new("a", &runs, (70, 4));
        assert_eq!((kept.runs(), kept.union, kept.bits), (runs.to_vec(), 70, 4));
    }
}
