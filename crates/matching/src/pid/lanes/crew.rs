//! The coordinator of a match whose units go over lanes: local steps, sizes and barriers are its own, over
//! its session with the peer's.

use super::super::barriers::{DoneStream, SealedDifference, SealedStreams};
use super::super::journal::JournalRun;
use super::super::partitions::Partitioning;
use super::super::price::PulseBeat;
use super::super::stream::StreamUnit;
use super::super::{Party, ROW_BYTES, Role};
use super::{ColumnRuns, LaneDone, LaneKeys, LaneStage, LaneStore, LaneTask, SAME};
use crate::chunks::{chunks, len};
use crate::dummies::PaddedIdentifiers;
use crate::identifiers::{ColumnFingerprint, IdentifierSource as _};
use crate::matcher::MatchOutcome;
use crate::spill::SortedRecords;
use base::{Error, Fault, Secret};
use net::Session;
use serde::{Deserialize, Serialize};

/// What a match over lanes may be gone on with after a cut: its keys, and what they may be used for. Who
/// keeps it keeps it secret, and for no longer than the match.
#[derive(Clone, Serialize, Deserialize)]
pub struct LaneBegun {
    keys: LaneKeys,
    /// Of the fingerprint of own rows.
    salt: [u8; 32],
    fingerprint: [u8; 32],
    /// Own rows, the peer's rows.
    rows: [u64; 2],
    /// Bits that name a partition.
    bits: u32,
}

/// What a coordinator has made by itself in a match: it is not made again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneNotes {
    /// Own rows are hashed: `u`, and how many of it each partition has.
    hashed: Option<(ColumnRuns, Vec<u64>)>,
    /// At C, the sizes of all partitions of `s'_c`, once the second barrier is passed.
    raised: Option<Vec<u64>>,
}

/// Who has the units of a stage done, over lanes to the peer's workers.
pub trait UnitCrew {
    /// How many lanes there are, the same at both parties.
    fn lanes(&self) -> u64;

    /// Where columns lie.
    fn store(&self) -> &LaneStore;

    /// What both parties call the match, in every meeting.
    fn name(&self) -> [u8; 16];

    /// What an earlier meeting began, where both go on with it.
    ///
    /// # Errors
    /// When the store fails.
    fn begun(&mut self) -> Result<Option<LaneBegun>, Error>;

    /// Writes down what begins now, before anything that depends on its keys leaves.
    ///
    /// # Errors
    /// When the store fails.
    fn begins(&mut self, begun: &LaneBegun) -> Result<(), Error>;

    /// Whether that outlives this meeting.
    fn keeps(&self) -> bool;

    /// What this party has made by itself in any meeting.
    fn notes(&self) -> LaneNotes;

    /// Writes that down.
    ///
    /// # Errors
    /// When the store fails.
    fn note(&mut self, notes: LaneNotes) -> Result<(), Error>;

    /// Pins what the peer has told of all units of a stage, before anything that depends on it leaves:
    /// whether it is what it told in every meeting before.
    ///
    /// # Errors
    /// When the store fails.
    fn pin(&mut self, stage: LaneStage, told: [u8; 32]) -> Result<bool, Error>;

    /// Whether both parties hold all units of a stage: none of them is opened again.
    fn is_sealed(&self, stage: LaneStage) -> bool;

    /// Has all units of one stage done, one for each partition in their order; what came of each. Both
    /// parties hold all of them then, and know it.
    ///
    /// # Errors
    /// When an attempt has failed too often, or the peer deviates or is gone.
    fn run(&mut self, tasks: Vec<LaneTask>) -> Result<Vec<LaneDone>, Error>;

    /// Removes what nobody reads any more: all that lies in a folder of the match.
    ///
    /// # Errors
    /// When the store fails.
    fn forget(&mut self, folder: &str) -> Result<(), Error>;
}

/// Rows that only the peer has, as they are known after the units `e`.
struct ImagesOnLanes {
    /// Rows that only C has.
    only_c: u64,
    /// At C what it raised, what of the peer's waits for its product, and what does not.
    columns: [ColumnRuns; 3],
}

impl LaneNotes {
    pub(in crate::pid) fn is_hashed(&self) -> bool {
        self.hashed.is_some()
    }

    /// Names of the objects of own hashed rows.
    pub fn hashed_names(&self) -> impl Iterator<Item = &str> {
        self.hashed.iter().flat_map(|(u, _)| u.names())
    }

    /// Without them: the store has lost one.
    #[must_use]
    pub fn without_hashed(self) -> Self {
        Self { hashed: None, ..self }
    }
}

impl LaneBegun {
    /// Of a match that begins, of rows with this salt and fingerprint.
    pub(in crate::pid) fn new(
        keys: &LaneKeys,
        (salt, fingerprint): ([u8; 32], [u8; 32]),
        party: &Party<'_>,
    ) -> Self {
        let (rows, bits) = (party.rows, party.parts.bits());
        Self { keys: keys.clone(), salt, fingerprint, rows, bits }
    }

    pub(in crate::pid) fn salt(&self) -> [u8; 32] {
        self.salt
    }

    /// The run, by its name.
    pub(in crate::pid) fn run(&self, name: [u8; 16]) -> JournalRun {
        let Self { keys: LaneKeys([first, second]), salt, fingerprint, rows, bits } = self;
        JournalRun {
            keys: [Secret::new(*first), Secret::new(*second)],
            salt: *salt,
            fingerprint: *fingerprint,
            name,
            rows: *rows,
            parts: Partitioning::named(u64::from(*bits)),
        }
    }
}

impl Party<'_> {
    /// All units, those between two parties over lanes.
    pub(in crate::pid) fn over_lanes(
        mut self,
        session: &mut Session,
        (own, fingerprint): (&PaddedIdentifiers<'_>, Option<&ColumnFingerprint>),
        (keys, crew): (&LaneKeys, &mut dyn UnitCrew),
    ) -> Result<MatchOutcome, Error> {
        let bits = self.parts.bits();
        let (u, sizes) = self.hash_on_lanes(session, (own, fingerprint), crew)?;
        let units = session.step("count", |s| {
            let units = self.deal(s, sizes)?;
            let peer: Vec<u64> = units.iter().map(|unit| unit.rows[1]).collect();
            self.pin_sizes(s, (LaneStage::Streams, &peer), crew)?;
            Ok(units)
        })?;
        let (done, sealed) = self.v_on_lanes(session, (keys, crew), &units, u)?;
        let column = |number: usize| ColumnRuns::all(done.iter().map(|done| &done.columns[number]));
        let (uids, e) = (column(0), column(1));
        drop(done);
        let images = self.e_on_lanes(session, (keys, crew), &sealed, e)?;
        let others = self.d3_on_lanes(session, (keys, crew), (&sealed, images))?;
        let uids: SortedRecords<ROW_BYTES> = crew.store().read(&[&uids], bits)?;
        let others: SortedRecords<32> = crew.store().read(&[&others], bits)?;
        session.step("spine", |s| self.spine(s, &sealed, (uids, others), own.real_rows()))
    }

    /// Own rows hashed, by who has done so in an earlier meeting as well: its pulses are said all the same,
    /// for the other one may be at it still.
    fn hash_on_lanes(
        &mut self,
        session: &mut Session,
        (own, fingerprint): (&PaddedIdentifiers<'_>, Option<&ColumnFingerprint>),
        crew: &mut dyn UnitCrew,
    ) -> Result<(ColumnRuns, Vec<u64>), Error> {
        if let Some(hashed) = crew.notes().hashed {
            session.step("u", |s| {
                let mut beat = PulseBeat::new(own.rows(), self.rows[1]);
                chunks(own.rows()).try_for_each(|rows| self.pulse(s, &mut beat, len(&rows) as u64))?;
                self.last_pulses(s, &beat)
            })?;
            return Ok(hashed);
        }
        let fingerprint = fingerprint.ok_or_else(|| Error::misuse("rows have a fingerprint"))?;
        let bits = self.parts.bits();
        if self.goes_on {
            // What was noted down may have been lost since: other objects get its names now.
            crew.note(crew.notes().without_hashed())?;
        }
        // What an earlier process has left of it is half of a column.
        crew.forget("u")?;
        let (mut u, mut rows) = (crew.store().column("u", bits)?, 0);
        let keep = &mut |record: &[u8; ROW_BYTES]| {
            rows += 1;
            u.push(record)
        };
        let said = session.step("u", |s| self.hash_own(s, own, fingerprint, keep));
        match &said {
            // Who is cut off loses no work that needs nobody.
            Err(error) if crew.keeps() && matches!(error.kind(), Fault::Channel(_)) => {
                self.hash_rest(own, fingerprint, rows, &mut |record| u.push(record))?;
            }
            Err(_) => return Err(said.expect_err("it is one")),
            Ok(()) => {}
        }
        let u = u.finish()?;
        let sizes = crew.store().read::<ROW_BYTES>(&[&u], bits)?.part_lens(bits);
        let hashed = (u, sizes);
        crew.note(LaneNotes { hashed: Some(hashed.clone()), ..crew.notes() })?;
        said.map(|()| hashed)
    }

    /// Sizes of the peer's are the same in every meeting.
    fn pin_sizes(
        &self,
        session: &mut Session,
        (stage, sizes): (LaneStage, &[u64]),
        crew: &mut dyn UnitCrew,
    ) -> Result<(), Error> {
        let mut told = blake3::Hasher::new_derive_key("tacit pid sizes over lanes 1");
        sizes.iter().for_each(|size| _ = told.update(&size.to_le_bytes()));
        match crew.pin(stage, told.finalize().into())? {
            true => Ok(()),
            false => Err(session.link(self.peer).blame(SAME)),
        }
    }

    fn task(&self, keys: &LaneKeys, (stage, part): (LaneStage, u32), columns: &[&ColumnRuns]) -> LaneTask {
        LaneTask {
            stage,
            part,
            keys: keys.clone(),
            rows: self.rows,
            bits: self.parts.bits(),
            sizes: [0; 2],
            root: [0; 32],
            columns: columns.iter().map(|column| (*column).clone()).collect(),
        }
    }

    /// The units `v`, and the first barrier.
    fn v_on_lanes(
        &mut self,
        session: &mut Session,
        (keys, crew): (&LaneKeys, &mut dyn UnitCrew),
        units: &[StreamUnit],
        u: ColumnRuns,
    ) -> Result<(Vec<LaneDone>, SealedStreams), Error> {
        let task = |unit: &StreamUnit| LaneTask {
            sizes: unit.rows,
            ..self.task(keys, (LaneStage::Streams, unit.part), &[&u])
        };
        let done = crew.run(units.iter().map(task).collect())?;
        crew.forget("u")?;
        let streams = units.iter().zip(&done).map(|(unit, done)| DoneStream::told(unit.part, done.digests));
        let streams = streams.collect();
        let sealed = session.step("seal", |s| self.seal_streams(s, streams))?;
        Ok((done, sealed))
    }

    /// The units `e`, `d1` and `d2`.
    fn e_on_lanes(
        &mut self,
        session: &mut Session,
        (keys, crew): (&LaneKeys, &mut dyn UnitCrew),
        sealed: &SealedStreams,
        e: ColumnRuns,
    ) -> Result<ImagesOnLanes, Error> {
        // It is gone once nobody opens a unit any more, and was looked at before the first one.
        if !crew.is_sealed(LaneStage::Differences) {
            let column = crew.store().read(&[&e], self.parts.bits())?;
            session.step("e", |s| self.check_e(&s.link(self.peer), &column))?;
        }
        let task = |part| LaneTask {
            root: *sealed.root(),
            ..self.task(keys, (LaneStage::Differences, part), &[&e])
        };
        let done = crew.run((0..self.parts.count()).map(task).collect())?;
        crew.forget("e")?;
        let count = |number: usize| done.iter().map(|done| done.counts[number]).sum::<u64>();
        let only = session.step("e", |s| self.check_slices(&s.link(self.peer), count(0), count(1)))?;
        let of = |number: usize| ColumnRuns::all(done.iter().filter_map(|done| done.columns.get(number)));
        Ok(ImagesOnLanes { only_c: only[0], columns: [of(0), of(1), of(2)] })
    }

    /// The second barrier, and the units `d3`: universal identifiers of rows that only the peer has.
    fn d3_on_lanes(
        &mut self,
        session: &mut Session,
        (keys, crew): (&LaneKeys, &mut dyn UnitCrew),
        (sealed, images): (&SealedStreams, ImagesOnLanes),
    ) -> Result<ColumnRuns, Error> {
        let (parts, peer) = (self.parts, self.peer);
        let ImagesOnLanes { only_c, columns: [raised, later, at_once] } = images;
        let sizes = session.step("difference", |s| match self.role {
            Role::C => {
                let sizes = self.pass_second_barrier((&raised, only_c), crew)?;
                let mut link = s.link(peer);
                parts.tell_sizes(&mut link, &sizes)?;
                // What comes next is said over lanes.
                link.flush()?;
                Ok(sizes)
            }
            Role::P => {
                let sizes = parts.hear_sizes(&mut s.link(peer), only_c)?;
                self.pin_sizes(s, (LaneStage::Others, &sizes), crew)?;
                Ok(sizes)
            }
        })?;
        let task = |(part, size): (u32, &u64)| LaneTask {
            sizes: [*size, 0],
            root: *sealed.root(),
            ..self.task(keys, (LaneStage::Others, part), &[&raised, &later])
        };
        let done = crew.run((0..).zip(&sizes).map(task).collect())?;
        crew.forget("raised")?;
        crew.forget("later")?;
        let others = done.iter().flat_map(|done| &done.columns);
        Ok(ColumnRuns::all(others.chain([&at_once])))
    }

    /// The second barrier at C: the sizes of `s'_c`, of which all is raised. In a later meeting they are
    /// those that were noted down.
    fn pass_second_barrier(
        &self,
        (raised, only_c): (&ColumnRuns, u64),
        crew: &mut dyn UnitCrew,
    ) -> Result<Vec<u64>, Error> {
        let notes = crew.notes();
        if let Some(sizes) = notes.raised {
            return Ok(sizes);
        }
        let raised = crew.store().read(&[raised], self.parts.bits())?;
        let sizes = SealedDifference::of_raised(raised, only_c, self.parts)?.sizes().to_vec();
        crew.note(LaneNotes { raised: Some(sizes.clone()), ..notes })?;
        Ok(sizes)
    }
}
