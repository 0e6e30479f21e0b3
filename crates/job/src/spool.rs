//! What rows that do not fit into memory read and write, stage by stage, and whether a disk holds it.

use crate::engines::StudyEngine;
use crate::kept::{self, goes_on};
use crate::memory::{self, IDENTIFIER, LINES, MatchNeeds, MemoryShares};
use crate::prepare::Built;
use base::{Error, PartyId};
use data::{DataLocation, RowShape, SpoolRoom};
use matching::{ContaminatedRule, MatchDisk, OutputForm};
use page::numbers::bytes;
use serde::Serialize;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use store::{RunState, StateKey, StateStore};
use study::Study;
use study::party::{MEMORY, PartySetup};

/// Bytes of a dealt line besides identifier and cells: two lengths, hash, place.
const LINE: u64 = 24;
/// Bytes of an identifier's length in a block of rows.
const LENGTH: u64 = 4;
/// Bytes of a row and its place on the spine.
const PLACE: u64 = 8;
/// Bytes of an element of the group, of which the match's journal has some for each row.
const ELEMENT: u64 = 32;
/// Sealing and what chunks and partitions do not fill: one part in so many.
const SEALING: u64 = 128;

/// What one stage reads and writes in state and files without a name, in bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpoolPass {
    /// `read`, `settle`, `tag`, `match`, `lay out` (along a spine), `keep` (shares of rows) or `compute`.
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
    /// Own rows.
    rows: u64,
    /// Lines of own rows.
    lines: u64,
    /// Bytes of a line's cells, and of a row's.
    cells: [u64; 2],
}

/// How a match goes through rows, and what it takes on disk.
#[derive(Clone, Copy, Debug)]
struct MatchPasses {
    disk: MatchDisk,
    /// How often it reads them.
    times: u64,
    /// Whether rows are laid out along a spine, and not joined to shares.
    lays_out: bool,
    /// Bytes that a match keeps which can go on after a cut; 0 of others.
    journal: u64,
    /// Bytes of columns of a match over lanes, which stay until rows are laid out; 0 of others.
    columns: u64,
    /// Bytes of shares that are written down; 0 where none are.
    kept: u64,
}

/// Whether rows of a study can be outside memory, as far as the study decides it: by one identifier, in a
/// match that reads rows in their order.
pub(crate) fn study_spools(study: &Study) -> bool {
    let matching = &study.matching;
    let streams = matching.matcher.features().streams && matching.identifiers.len() == 1;
    streams && !study.only_matches()
}

/// Rows of each party where party 0 has the first number of them, and every other one the second.
pub(crate) fn of_parties(study: &Study, rows: [u64; 2]) -> Vec<u64> {
    (0..study.parties.len()).map(|party| rows[usize::from(party > 0)]).collect()
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
    let begin = move || {
        memory::check(party, [0; 2])?;
        let key = state_key(party)?;
        kept::forget_expired(party, &store, &key)?;
        RunState::begin(store.clone(), &key, &party.as_party, party.keep_state)
    };
    let shares = MemoryShares::of(party.memory, 0);
    Ok(Some(SpoolRoom::new(shares.reading, begin).always(party.spool)))
}

/// The key that a party's state is sealed under.
///
/// # Errors
/// As [`StateKey::beside`].
pub(crate) fn state_key(party: &PartySetup) -> Result<StateKey, Error> {
    match &party.state_key {
        Some(path) => StateKey::at(path),
        None => StateKey::beside(&party.ledger),
    }
}

/// Whether rows of a study can be outside memory.
pub(crate) fn spools(party: &PartySetup, study: &Study, runs: usize) -> bool {
    let at_hand = party.spine.is_some() || party.keep_spine.is_some();
    study_spools(study) && !at_hand && runs == 1
}

/// A place for rows that do not fit does nothing for most studies.
pub(crate) fn state_warning(party: &PartySetup, study: &Study, runs: usize) -> Option<String> {
    (party.state.is_some() && !spools(party, study, runs)).then(|| {
        "`state` serves studies that match by \"pid\", \"ps3i\", \"collecting\" or \"circuit-psi\" and one \
         identifier, in one run, and use and keep no spine; all rows of this one have to fit into `memory`"
            .into()
    })
}

impl SpoolSizes {
    /// Of a party's rows, each with as many lines as it has events at most, or one.
    fn of(study: &Study, me: PartyId, rows: u64) -> Result<Self, Error> {
        let shape = RowShape::of(study, me)?;
        let width = shape.width() as u64;
        let (lines, cells) = match &shape {
            // A line of the advertiser has an event.
            RowShape::Advertiser { .. } => (LINES * rows, [1 + 8, width]),
            RowShape::Publisher { .. } | RowShape::Program { .. } => (rows, [width; 2]),
        };
        Ok(Self { rows, lines, cells })
    }

    fn dealt(&self) -> u64 {
        sealed(self.lines * (LINE + IDENTIFIER + self.cells[0]))
    }

    fn blocks(&self) -> u64 {
        sealed(self.rows * (LENGTH + IDENTIFIER + self.cells[1]))
    }

    fn laid_out(&self) -> u64 {
        sealed(self.rows * (PLACE + self.cells[1]))
    }

    fn places(&self) -> u64 {
        sealed(self.rows * PLACE)
    }

    /// By stage; `source` are bytes of the party's files.
    fn passes(&self, matching: &MatchPasses, source: u64) -> Vec<SpoolPass> {
        let MatchPasses { disk, times, lays_out, journal, columns, kept } = *matching;
        let (dealt, blocks, places) = (self.dealt(), self.blocks(), self.places());
        let pass = |stage, reads, writes, on_disk| SpoolPass { stage, reads, writes, on_disk };
        let mut passes = vec![
            pass("read", source, dealt, dealt),
            pass("settle", dealt, blocks, dealt + blocks),
            pass("tag", blocks, 0, blocks),
            pass(
                "match",
                times * blocks + disk.read + journal,
                disk.written + journal,
                blocks + disk.at_most + journal,
            ),
        ];
        if lays_out {
            let laid = self.laid_out();
            let all = blocks + disk.stays + columns + places + laid;
            passes.push(pass("lay out", blocks + disk.stays + places, places + laid, all));
            passes.push(pass("compute", laid, 0, blocks + laid));
        } else {
            let all = blocks + disk.stays + kept;
            passes.extend((kept > 0).then(|| pass("keep", disk.stays, kept, all)));
            passes.push(pass("compute", disk.stays, 0, all));
        }
        passes
    }
}

impl MatchPasses {
    /// Of a party; `all` are the rows of each, and `work` says whether it keeps what a match goes on from.
    fn of(
        study: &Study,
        (me, all): (PartyId, &[u64]),
        work: bool,
        needs: &MatchNeeds,
    ) -> Result<Self, Error> {
        let features = study.matching.matcher.features();
        let disk = needs.disk.ok_or_else(|| Error::misuse("this match has all in memory"))?;
        let keeps = work && features.resumes;
        let [own, every]: [u64; 2] = [all[me.index()], all.iter().sum()];
        let journal = if keeps { ELEMENT * (own + every) } else { 0 };
        let lays_out = features.form == OutputForm::Spine;
        // Own rows twice raised, with their places, and the peer's.
        let columns = match features.lanes && goes_on(study) && !work {
            true => sealed(ELEMENT * every + PLACE / 2 * own),
            false => 0,
        };
        // Identifiers twice. Own values of a join once, and once what is totalled alone.
        let (identifiers, values, totals) = if lays_out { (2, 0, 0) } else { (2, 1, 1) };
        // Who has arms reads them, and in an order by arm goes through all rows once for each.
        let by_arm = me == PartyId(0) && study.matching.contaminated != ContaminatedRule::Ignore;
        let times = if by_arm { 1 + 2 * (identifiers + values) } else { identifiers + values } + totals;
        let kept = match lays_out || !goes_on(study) {
            true => 0,
            // With a bit for each entry, that says whether it is a match.
            false => {
                let entries = all.iter().sum::<u64>() * u64::from(study.matching.options().slots);
                sealed(disk.stays + entries.div_ceil(8))
            }
        };
        Ok(Self { disk, times, lays_out, journal, columns, kept })
    }

    /// Bytes that are still to come where rows are in their blocks: of state, of the match's folder, and of
    /// both at a time.
    fn after_reading(&self, sizes: &SpoolSizes) -> [u64; 3] {
        let matching = self.disk.at_most + self.journal;
        match self.lays_out {
            true => {
                let laid = self.columns + sizes.places() + sizes.laid_out();
                [laid, matching, laid.max(matching)]
            }
            // Shares are written down beside those that the match left.
            false => [self.kept, matching, matching.max(self.disk.stays + self.kept)],
        }
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
pub(crate) fn passes(
    (study, built): (&Study, &Built),
    rows: [u64; 2],
    own: Option<(PartyId, &PartySetup)>,
) -> Result<Vec<SpoolPasses>, Error> {
    let mut all = Vec::new();
    if !study_spools(study) {
        return Ok(all);
    }
    let (by_party, engine) = (of_parties(study, rows), StudyEngine::of(study, &built.program)?);
    for (i, member) in study.parties.iter().enumerate() {
        let me = PartyId(i as u8);
        let party = match own {
            Some((own, party)) if own == me && party.state.is_some() && spools(party, study, 1) => {
                Some(party)
            }
            Some(_) => continue,
            None => None,
        };
        let sizes = SpoolSizes::of(study, me, by_party[i])?;
        let memory = party.map_or(MEMORY, |party| party.memory);
        if sizes.dealt() <= memory / 8 && !party.is_some_and(|party| party.spool) {
            continue;
        }
        let source = match party {
            Some(party) => data::input_bytes(DataLocation {
                path: &party.data,
                store: &party.store,
                format: &party.format,
                stream: None,
            })?,
            None => 0,
        };
        let needs = MatchNeeds::of((study, built), &engine, (me, memory), rows)?;
        let work = party.is_some_and(|party| party.work.is_some());
        let passes = sizes.passes(&MatchPasses::of(study, (me, &by_party), work, &needs)?, source);
        let on_disk = passes.iter().map(|pass| pass.on_disk).max().unwrap_or(0);
        let memory_least = needs.beside_state();
        all.push(SpoolPasses { party: member.name.clone(), passes, on_disk, memory_least });
    }
    Ok(all)
}

/// Whether so many rows of a party go to its state.
///
/// # Errors
/// When the study's program does not parse.
pub(crate) fn goes_to_state(
    party: &PartySetup,
    study: &Study,
    (me, rows): (PartyId, u64),
    runs: usize,
) -> Result<bool, Error> {
    if party.state.is_none() || !spools(party, study, runs) {
        return Ok(false);
    }
    Ok(party.spool || SpoolSizes::of(study, me, rows)?.dealt() > party.memory / 8)
}

/// What is known of rows where disks are asked for room.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RowsKnown {
    /// They are to be read.
    Announced,
    /// They lie in their blocks.
    Read,
}

/// Refuses so many rows, of each party, where the disks of `state` and `work` do not hold what is to come of
/// them, or their `memory` is too little; before rows are read, or where they lie in their blocks.
///
/// # Errors
/// With the numbers, and what to do.
pub(crate) fn check_room(
    party: &PartySetup,
    study: &Study,
    (me, rows): (PartyId, &[u64]),
    needs: &MatchNeeds,
    known: RowsKnown,
) -> Result<(), Error> {
    let sizes = SpoolSizes::of(study, me, rows[me.index()])?;
    memory::check(party, needs.longest())?;
    let Some(place) = &party.state else { return Ok(()) };
    // A plan makes no folder.
    let state = match place.split_once("://") {
        None => Some(Path::new(place)),
        Some(("file", path)) => Some(Path::new(path)),
        Some(_) => None,
    };
    let blocks = sizes.blocks();
    let matching = MatchPasses::of(study, (me, rows), party.work.is_some(), needs)?;
    let ([later, matching, most], read) = (matching.after_reading(&sizes), matches!(known, RowsKnown::Read));
    let in_state = if read { later } else { (sizes.dealt() + blocks).max(blocks + later) };
    let together = if read { most } else { in_state.max(blocks + most) };
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
        .try_for_each(|(folder, need)| expect_room(sizes.rows, folder, need, store::free_bytes(folder)))
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
    use crate::plan::policy;
    use crate::prepare::build_all;

    const LIFT: &str = include_str!("../../../examples/lift.toml");

    fn of(text: &str, rows: [u64; 2]) -> Vec<SpoolPasses> {
        let study = Study::parse("study.toml", text).unwrap();
        let [(study, built)] = &build_all([&study], &policy()).unwrap()[..] else { panic!("one run") };
        passes((study, built), rows, None).unwrap()
    }

    /// The bytes of a stage per row, at half a billion rows on either side.
    #[test]
    fn passes_are_what_the_stages_write() {
        let rows = [500_000_000; 2];
        let [publisher, advertiser] = &of(LIFT, rows)[..] else { panic!("two parties") };
        for passes in [publisher, advertiser] {
            let stages: Vec<&str> = passes.passes.iter().map(|pass| pass.stage).collect();
            assert_eq!(stages, ["read", "settle", "tag", "match", "lay out", "compute"]);
            assert!(passes.passes.iter().all(|pass| pass.on_disk <= passes.on_disk));
        }
        // A line of 24 bytes, its identifier and nine of an event; two of them a row.
        let per_row = |bytes: u64| bytes as f64 / rows[0] as f64;
        assert!((per_row(advertiser.passes[0].writes) - 114.0 * 129.0 / 128.0).abs() < 0.1);
        assert!(advertiser.on_disk > publisher.on_disk && advertiser.on_disk < 150_000_000_000);
        assert!(of(LIFT, [1000; 2]).is_empty(), "they fit");
    }

    /// What a join takes is in the table: what its own formula says, besides rows, which it reads four times.
    #[test]
    fn joins_have_their_passes() {
        let rows = [20_000_000, 30_000_000];
        for protocol in ["ps3i", "circuit-psi", "collecting"] {
            let text = LIFT.replace("protocol    = \"pid\"", &format!("protocol    = \"{protocol}\""));
            let study = Study::parse("study.toml", &text).unwrap();
            let [(study, built)] = &build_all([&study], &policy()).unwrap()[..] else { panic!("one run") };
            let engine = StudyEngine::of(study, &built.program).unwrap();
            let tables = passes((study, built), rows, None).unwrap();
            assert_eq!(tables.len(), 2, "{protocol}");
            for (party, table) in (0..).zip(&tables) {
                let stages: Vec<&str> = table.passes.iter().map(|pass| pass.stage).collect();
                assert_eq!(stages, ["read", "settle", "tag", "match", "keep", "compute"]);
                let needs = MatchNeeds::of((study, built), &engine, (PartyId(party), MEMORY), rows).unwrap();
                let disk = needs.disk.unwrap();
                let [.., settle, tag, matched, kept, computed] = &table.passes[..] else {
                    panic!("six passes")
                };
                assert_eq!((matched.writes, matched.reads), (disk.written, disk.read + 4 * settle.writes));
                assert_eq!(matched.on_disk, tag.on_disk + disk.at_most);
                assert_eq!((computed.reads, computed.writes), (disk.stays, 0));
                assert!((disk.stays..2 * disk.stays).contains(&kept.writes) && kept.reads == disk.stays);
                assert_eq!(kept.on_disk, tag.on_disk + disk.stays + kept.writes);
                assert!(disk.stays > rows[0] && disk.at_most >= disk.stays && disk.written > disk.at_most);
                assert_eq!(table.memory_least, needs.beside_state());
            }
        }
    }

    /// Planes are gone through as often as the memory of the party says.
    #[test]
    fn less_memory_is_more_to_read() {
        let text = LIFT.replace("protocol    = \"pid\"", "protocol    = \"ps3i\"");
        let study = Study::parse("study.toml", &text).unwrap();
        let [(study, built)] = &build_all([&study], &policy()).unwrap()[..] else { panic!("one run") };
        let engine = StudyEngine::of(study, &built.program).unwrap();
        let of = |memory| {
            let needs =
                MatchNeeds::of((study, built), &engine, (PartyId(0), memory), [20_000_000; 2]).unwrap();
            (needs.beside_state(), needs.disk.unwrap().read)
        };
        let (least, most) = of(0);
        assert_eq!(of(least), (least, most));
        assert!(of(64 << 30).1 < most / 2, "all of it fits");
    }

    /// Among more parties each has a table, and party 0 the sets of all.
    #[test]
    fn each_of_three_parties_has_its_passes() {
        let text = include_str!("../../../examples/aligned.toml");
        let text = text.replace("\"aligned\"", "\"pid\"").replace("rows aligned\n", "");
        let all = of(&text, [100_000_000, 50_000_000]);
        let [first, second, third] = &all[..] else { panic!("three parties") };
        // Orders of own rows take half of what a match gets.
        assert!(first.memory_least > 2 * 16 * 100_000_000 && first.memory_least > second.memory_least);
        assert!(first.on_disk > second.on_disk && second.on_disk >= third.on_disk);
        assert!(of(&text, [1000; 2]).is_empty(), "they fit");
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
