//! What rows that do not fit into memory read and write, stage by stage, and whether a disk holds it.

use crate::memory::{self, MemoryShares};
use base::{Error, PartyId};
use data::{DataLocation, RowShape, SpoolRoom};
use page::numbers::bytes;
use serde::Serialize;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use store::{RunState, StateKey, StateStore};
use study::Study;
use study::party::{MEMORY, PartySetup};

/// Bytes that an identifier is taken to have.
const IDENTIFIER: u64 = 24;
/// Bytes of a dealt line besides identifier and cells: two lengths, hash, place.
const LINE: u64 = 24;
/// Bytes of an identifier's length in a block of rows.
const LENGTH: u64 = 4;
/// Bytes of a row and its place on the spine.
const PLACE: u64 = 8;
/// Bytes of a row in a column of the match: an element of the group, and whose it is.
const ELEMENT: u64 = 32;
const OWNED: u64 = ELEMENT + 4;
/// Sealing and what chunks and partitions do not fill: one part in so many.
const SEALING: u64 = 128;

/// What one stage reads and writes in state and files without a name, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpoolPass {
    /// `read`, `settle`, `tag`, `match`, `lay out` or `compute`.
    pub stage: &'static str,
    /// Bytes read.
    pub reads: u64,
    /// Bytes written, at most.
    pub writes: u64,
    /// Bytes on disk at any time of it, at most.
    pub on_disk: u64,
}

/// The passes of one party over rows that do not fit into its memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpoolPasses {
    /// Whose.
    pub party: String,
    /// By stage, in order.
    pub passes: Vec<SpoolPass>,
    /// Bytes on disk at any time, at most.
    pub on_disk: u64,
    /// The least `memory`, in bytes, with these rows.
    pub memory_least: u64,
}

/// Sizes that passes follow from.
#[derive(Clone, Copy, Debug)]
struct SpoolSizes {
    /// Own rows, and the peer's.
    rows: [u64; 2],
    /// Lines of own rows.
    lines: u64,
    /// Bytes of a line's cells, and of a row's.
    cells: [u64; 2],
    /// Bytes of the source.
    source: u64,
    /// Whether the match keeps what it has done.
    journal: bool,
}

/// Whether rows of a study can be outside memory, as far as the study decides it: two parties that match by
/// one identifier, which reads rows in their order.
fn study_spools(study: &Study) -> bool {
    let matching = &study.matching;
    let streams = matching.matcher.features().streams && matching.identifiers.len() == 1;
    streams && !study.only_matches() && study.parties.len() == 2
}

/// Where rows go that do not fit into this party's memory: its state, where the match reads rows in order and
/// nothing else needs all of them at hand.
///
/// Runs with several others at a time would each take that much memory.
///
/// # Errors
/// When there is no such place, or it cannot be asked.
pub(crate) fn spool_room<'a>(
    party: &'a PartySetup,
    study: &Study,
    runs: usize,
) -> Result<Option<SpoolRoom<'a>>, Error> {
    let (Some(place), true) = (&party.state, spools(party, study, runs)) else { return Ok(None) };
    let store = StateStore::open(place, &party.store)?;
    // A bucket is asked now: what rows that do not fit would find, too late.
    if store.folder().is_none() {
        store.list(store::RUNS_FOLDER)?;
    }
    let lanes = study.compute.shards;
    let begin = move || {
        memory::check(party, 0, lanes)?;
        RunState::begin(store.clone(), &StateKey::beside(&party.ledger)?, &party.as_party)
    };
    let shares = MemoryShares::of(party.memory, 0);
    Ok(Some(SpoolRoom::new(shares.reading, begin).always(party.spool)))
}

/// Whether rows of a study can be outside memory.
fn spools(party: &PartySetup, study: &Study, runs: usize) -> bool {
    let at_hand = party.spine.is_some() || party.keep_spine.is_some();
    study_spools(study) && !at_hand && runs == 1
}

/// A place for rows that do not fit does nothing for most studies.
pub(crate) fn state_warning(party: &PartySetup, study: &Study, runs: usize) -> Option<String> {
    (party.state.is_some() && !spools(party, study, runs)).then(|| {
        "`state` serves studies of two parties that match by \"pid\", \"ps3i\" or \"collecting\" and one \
         identifier, and use and keep no spine; all rows of this one have to fit into `memory`"
            .into()
    })
}

impl SpoolSizes {
    /// Of a party's rows, each with as many lines as it has events at most, or one.
    fn of(study: &Study, me: PartyId, rows: [u64; 2]) -> Result<Self, Error> {
        let shape = RowShape::of(study, me)?;
        let width = shape.width() as u64;
        let (lines, cells) = match &shape {
            // A line of the advertiser has an event; two lines a row are common.
            RowShape::Advertiser { .. } => (2 * rows[0], [1 + 8, width]),
            RowShape::Publisher { .. } | RowShape::Program { .. } => (rows[0], [width; 2]),
        };
        Ok(Self { rows, lines, cells, source: 0, journal: false })
    }

    fn dealt(&self) -> u64 {
        sealed(self.lines * (LINE + IDENTIFIER + self.cells[0]))
    }

    fn blocks(&self) -> u64 {
        sealed(self.rows[0] * (LENGTH + IDENTIFIER + self.cells[1]))
    }

    /// Columns of the match at any time: own elements twice and the peer's, then own ones and what comes of
    /// the peer's, with own places.
    fn columns(&self) -> u64 {
        let [own, peer] = self.rows;
        (2 * OWNED * own + ELEMENT * peer).max(OWNED * own + 3 * ELEMENT * peer) + PLACE * own
    }

    fn journal(&self) -> u64 {
        if self.journal { ELEMENT * (2 * self.rows[0] + self.rows[1]) } else { 0 }
    }

    fn laid_out(&self) -> u64 {
        sealed(self.rows[0] * (PLACE + self.cells[1]))
    }

    fn places(&self) -> u64 {
        sealed(self.rows[0] * PLACE)
    }

    fn passes(&self) -> Vec<SpoolPass> {
        let [own, peer] = self.rows;
        let (blocks, places) = (self.blocks(), self.places());
        let matched = 2 * OWNED * own + 3 * ELEMENT * peer + PLACE * own + self.journal();
        let laid = self.laid_out();
        let pass = |stage, reads, writes, on_disk| SpoolPass { stage, reads, writes, on_disk };
        vec![
            pass("read", self.source, self.dealt(), self.dealt()),
            pass("settle", self.dealt(), blocks, self.dealt() + blocks),
            pass("tag", blocks, 0, blocks),
            pass("match", 2 * blocks + matched, matched, blocks + self.columns() + self.journal()),
            pass("lay out", blocks + 2 * places, places + laid, blocks + PLACE * own + places + laid),
            pass("compute", laid, 0, blocks + laid),
        ]
    }

    /// Bytes that are still to come where rows are in their blocks: of state, and of the match's folder.
    fn after_reading(&self) -> [u64; 2] {
        [self.places() + self.laid_out(), self.columns() + self.journal()]
    }
}

fn sealed(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(SEALING)
}

/// The passes of each party of a study over rows that do not fit into `memory`; none of whose do, and of no
/// study whose rows have to. `source` are bytes of a party's files, where they are known.
///
/// # Errors
/// When the study's program does not parse.
pub fn passes(
    study: &Study,
    rows: [u64; 2],
    own: Option<(PartyId, &PartySetup)>,
) -> Result<Vec<SpoolPasses>, Error> {
    let mut all = Vec::new();
    // What a network of shares writes is not in the table.
    if !study_spools(study) || study.matching.matcher.features().form.shared().is_some() {
        return Ok(all);
    }
    for (i, member) in study.parties.iter().enumerate() {
        let me = PartyId(i as u8);
        let party = match own {
            Some((own, party)) if own == me && party.state.is_some() && spools(party, study, 1) => {
                Some(party)
            }
            Some(_) => continue,
            None => None,
        };
        let mut sizes = SpoolSizes::of(study, me, [rows[i], rows[1 - i]])?;
        let memory = party.map_or(MEMORY, |party| party.memory);
        if sizes.dealt() <= memory / 8 && !party.is_some_and(|party| party.spool) {
            continue;
        }
        if let Some(party) = party {
            let data = DataLocation { path: &party.data, store: &party.store };
            sizes.source = data::input_bytes(data)?;
            sizes.journal = party.work.is_some();
        }
        let passes = sizes.passes();
        let on_disk = passes.iter().map(|pass| pass.on_disk).max().unwrap_or(0);
        let memory_least = memory::least(rows[i].max(rows[1 - i]), study.compute.shards);
        all.push(SpoolPasses { party: member.name.clone(), passes, on_disk, memory_least });
    }
    Ok(all)
}

/// Refuses so many rows where the disks of `state` and `work` do not hold what is to come of them, or their
/// `memory` is too little; before rows are read, or where they lie in their blocks.
///
/// # Errors
/// With the numbers, and what to do.
pub fn check_room(
    party: &PartySetup,
    study: &Study,
    me: PartyId,
    rows: [u64; 2],
    read: bool,
) -> Result<(), Error> {
    memory::check(party, rows[0].max(rows[1]), study.compute.shards)?;
    let Some(place) = &party.state else { return Ok(()) };
    // A plan makes no folder.
    let state = match place.split_once("://") {
        None => Some(Path::new(place)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    };
    let sizes = SpoolSizes { journal: party.work.is_some(), ..SpoolSizes::of(study, me, rows)? };
    let blocks = sizes.blocks();
    let [later, matching] = sizes.after_reading();
    let in_state = if read { later } else { (sizes.dealt() + blocks).max(blocks + later) };
    // Both are not there at a time, but for the blocks.
    let together = if read { later.max(matching) } else { in_state.max(blocks + matching) };
    let needs = match (state, party.work.as_deref()) {
        (Some(state), Some(work)) if same_disk(state, work) => vec![(state, together)],
        (Some(state), Some(work)) => vec![(state, in_state), (work, matching)],
        (Some(state), None) => vec![(state, together)],
        // A bucket has no end. The match's columns are local, whatever state is.
        (None, Some(work)) => vec![(work, matching)],
        (None, None) => vec![],
    };
    let temporary = std::env::temp_dir();
    let needs = if needs.is_empty() { vec![(temporary.as_path(), matching)] } else { needs };
    needs
        .into_iter()
        .try_for_each(|(folder, need)| expect_room(rows[0], folder, need, store::free_bytes(folder)))
}

fn same_disk(a: &Path, b: &Path) -> bool {
    let disk = |path: &Path| Some(path.ancestors().find(|at| at.is_dir())?.metadata().ok()?.dev());
    disk(a).is_some_and(|of| disk(b) == Some(of))
}

/// A disk that does not tell its room may have it.
fn expect_room(rows: u64, folder: &Path, need: u64, free: Option<u64>) -> Result<(), Error> {
    let Some(free) = free.filter(|free| *free < need) else { return Ok(()) };
    Err(Error::input(format!(
        "{rows} rows that do not fit into `memory` take up to {} on the disk of {}, and it has {} left: free \
         {}, or name a place on another disk (`state`, `work`; a bucket has no end)",
        bytes(need),
        folder.display(),
        bytes(free),
        bytes(need - free),
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFT: &str = include_str!("../../../examples/lift.toml");

    /// The bytes of a stage per row, at half a billion rows on either side.
    #[test]
    fn passes_are_what_the_stages_write() {
        let study = Study::parse("study.toml", LIFT).unwrap();
        let rows = [500_000_000; 2];
        let [publisher, advertiser] = &passes(&study, rows, None).unwrap()[..] else { panic!("two parties") };
        for passes in [publisher, advertiser] {
            let stages: Vec<&str> = passes.passes.iter().map(|pass| pass.stage).collect();
            assert_eq!(stages, ["read", "settle", "tag", "match", "lay out", "compute"]);
            assert!(passes.passes.iter().all(|pass| pass.on_disk <= passes.on_disk));
            assert_eq!(passes.memory_least, memory::least(rows[0], study.compute.shards));
        }
        // A line of 24 bytes, its identifier and nine of an event; two of them a row.
        let per_row = |bytes: u64| bytes as f64 / rows[0] as f64;
        assert!((per_row(advertiser.passes[0].writes) - 114.0 * 129.0 / 128.0).abs() < 0.1);
        assert!(advertiser.on_disk > publisher.on_disk && advertiser.on_disk < 150_000_000_000);
        assert!(passes(&study, [1000; 2], None).unwrap().is_empty(), "they fit");
        let several = LIFT.replace("protocol    = \"pid\"", "protocol    = \"ps3i\"");
        if let Ok(other) = Study::parse("study.toml", &several) {
            assert!(passes(&other, rows, None).unwrap().is_empty(), "a table is of Private-ID");
        }
    }

    #[test]
    fn what_a_disk_cannot_hold_is_refused_with_numbers() {
        let folder = Path::new("/state");
        expect_room(10, folder, 1000, None).unwrap();
        expect_room(10, folder, 1000, Some(1000)).unwrap();
        let refused = expect_room(10, folder, 3_000_000_000, Some(1_000_000_000)).unwrap_err().to_string();
        for part in [
            "10 rows",
            "take up to 3.00 GB on the disk of /state",
            "has 1.00 GB left",
            "free 2.00 GB",
            "`state`",
        ] {
            assert!(refused.contains(part), "{part}: {refused}");
        }
        let here = tempfile::tempdir().unwrap();
        let later = here.path().join("not/there");
        assert_eq!(store::free_bytes(&later).map(|free| free > 0), Some(true));
        assert!(expect_room(10, &later, u64::MAX, store::free_bytes(&later)).is_err());
        assert!(same_disk(&later, here.path()) && !same_disk(here.path(), Path::new("/proc")));
    }
}
