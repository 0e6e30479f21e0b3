//! Records of a run's log: a tag, and JSON, or the bytes of [`UnitRecord`].

use super::join::KeptJoin;
use super::seconds;
use crate::prepare::Checked;
use crate::stages::link::LinkFacts;
use base::{Error, hex};
use data::{InputContent, InputReport, KeptRows};
use privacy::ledger::Bytes32;
use report::Disclosure;
use serde::{Deserialize, Serialize};
use std::time::SystemTime;
use store::{LogRecord, ObjectId, RunObject, RunReader, SealedStore, StoreError};
use units::UnitRecord;

/// Of what this version writes, and reads.
const FORMAT: u32 = 1;

const BEGUN: u8 = 1;
const MATCHED: u8 = 2;
const RELEASING: u8 = 3;
/// Records of units have their own tags beyond this one.
const UNITS: u8 = 16;

/// One thing that has come to be.
pub(crate) enum KeptRecord {
    /// Rows are read and laid down.
    Begun(Box<BegunRecord>),
    /// They are matched, and what came of it lies in the state.
    Matched(Box<MatchedRecord>),
    /// A record of the units of the computation.
    Unit(UnitRecord),
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
    /// Units whose results this party holds.
    pub units_held: usize,
    /// Attempts at units that were opened or burnt.
    pub attempts: u64,
    /// Attempts that came to nothing.
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
        if self.format == FORMAT {
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
            Self::Matched(matched) => json(MATCHED, serde_json::to_vec(matched)),
            Self::Unit(record) => Ok(Self::of_unit(record)),
            Self::Releasing => Ok(LogRecord { tag: RELEASING, payload: Vec::new() }),
        }
    }

    pub fn of_unit(record: &UnitRecord) -> LogRecord {
        let (tag, payload) = record.encode();
        LogRecord { tag: UNITS + tag, payload }
    }

    pub fn of_log(record: &LogRecord, place: &str) -> Result<Self, Error> {
        let LogRecord { tag, payload } = record;
        let unreadable = || unreadable(place);
        Ok(match *tag {
            BEGUN => Self::Begun(Box::new(BegunRecord::read(record)?)),
            MATCHED => Self::Matched(Box::new(serde_json::from_slice(payload).map_err(|_| unreadable())?)),
            RELEASING => Self::Releasing,
            tag => {
                let unit = tag.checked_sub(UNITS).and_then(|tag| UnitRecord::decode(tag, payload));
                Self::Unit(unit.ok_or_else(unreadable)?)
            }
        })
    }
}

impl KeptStage {
    /// What records say, the first of which begins a run.
    pub(super) fn of(records: &[LogRecord], place: &str) -> Result<Self, Error> {
        let (mut stage, mut held, mut floors) = (Self::default(), Vec::new(), Vec::new());
        for record in records.iter().skip(1) {
            match KeptRecord::of_log(record, place)? {
                KeptRecord::Begun(_) => {}
                KeptRecord::Matched(_) => {
                    (held, floors) = (Vec::new(), Vec::new());
                    stage = Self { matched: true, ..Self::default() };
                }
                KeptRecord::Unit(UnitRecord::Floor { unit, attempt }) => floors.push((unit, attempt)),
                KeptRecord::Unit(UnitRecord::Held { unit, .. }) => held.push(unit),
                KeptRecord::Unit(UnitRecord::Seal { .. }) => stage.sealed = true,
                KeptRecord::Unit(UnitRecord::Failed { .. }) => stage.failed += 1,
                KeptRecord::Releasing => stage.releasing = true,
            }
        }
        held.sort_unstable();
        held.dedup();
        stage.units_held = held.len();
        let floors: std::collections::BTreeMap<u32, u32> = floors.into_iter().collect();
        stage.attempts = floors.values().map(|attempt| u64::from(*attempt)).sum();
        Ok(stage)
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
        for record in [KeptRecord::Unit(unit), KeptRecord::Unit(failed), KeptRecord::Releasing] {
            let record = record.to_log().unwrap();
            assert_eq!(KeptRecord::of_log(&record, "here").unwrap().to_log().unwrap(), record);
            hash.update(&[record.tag]).update(&record.payload);
        }
        pinned(&[("resume, records", hash.finalize().to_hex()[..16].to_owned(), "23608a31b64fbe56")]);
        let [unit, failed] = [unit, failed].map(|record| KeptRecord::of_unit(&record));
        let records = [log(BEGUN, BEGUN_1), log(MATCHED, MATCHED_1), unit, failed];
        let stage = KeptStage::of(&records, "here").unwrap();
        assert_eq!(stage, KeptStage { matched: true, attempts: 2, failed: 1, ..KeptStage::default() });
    }

    #[test]
    fn another_version_is_named_with_this_one() {
        let newer = BEGUN_1.replace("\"format\":1", "\"format\":2").replace("\"name\"", "\"title\"");
        assert_ne!(newer, BEGUN_1);
        let error = BegunRecord::read(&log(BEGUN, &newer)).unwrap_err().to_string();
        let here = format!("this is tacit {} (format 1)", env!("CARGO_PKG_VERSION"));
        for part in ["(format 2)", &here, "tacit state drop"] {
            assert!(error.contains(part), "{error}");
        }
        let readable = BEGUN_1.replace("\"format\":1", "\"format\":2");
        let read = BegunRecord::read(&log(BEGUN, &readable)).unwrap();
        assert!(read.expect_readable("state").unwrap_err().to_string().contains("(format 2)"));
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
