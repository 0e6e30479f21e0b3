//! The coordinator of a match whose units go over lanes: local steps, sizes and barriers are its own, over
//! its session with the peer's.

use super::super::barriers::{DoneStream, SealedDifference, SealedStreams};
use super::super::stream::StreamUnit;
use super::super::{Party, ROW_BYTES, Role};
use super::{ColumnRuns, LaneDone, LaneKeys, LaneStage, LaneStore, LaneTask};
use crate::dummies::PaddedIdentifiers;
use crate::identifiers::ColumnFingerprint;
use crate::matcher::MatchOutcome;
use crate::spill::SortedRecords;
use base::Error;
use net::Session;

/// Who has the units of a stage done, over lanes to the peer's workers.
pub trait UnitCrew {
    /// How many lanes there are, the same at both parties.
    fn lanes(&self) -> u64;

    /// Where columns lie.
    fn store(&self) -> &LaneStore;

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

impl Party<'_> {
    /// All units, those between two parties over lanes.
    pub(in crate::pid) fn over_lanes(
        mut self,
        session: &mut Session,
        (own, fingerprint): (&PaddedIdentifiers<'_>, &ColumnFingerprint),
        (keys, crew): (&LaneKeys, &mut dyn UnitCrew),
    ) -> Result<MatchOutcome, Error> {
        let bits = self.parts.bits();
        let mut u = crew.store().column("u", bits)?;
        session.step("u", |s| self.hash_own(s, own, fingerprint, &mut |record| u.push(record)))?;
        let u = u.finish()?;
        let sizes = crew.store().read::<ROW_BYTES>(&[&u], bits)?.part_lens(bits);
        let units = session.step("count", |s| self.deal(s, sizes))?;
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
        let column = crew.store().read(&[&e], self.parts.bits())?;
        session.step("e", |s| self.check_e(&s.link(self.peer), &column))?;
        drop(column);
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
                let raised = crew.store().read(&[&raised], parts.bits())?;
                let sealed = SealedDifference::of_raised(raised, only_c, parts)?;
                let mut link = s.link(peer);
                parts.tell_sizes(&mut link, sealed.sizes())?;
                // What comes next is said over lanes.
                link.flush()?;
                Ok(sealed.sizes().to_vec())
            }
            Role::P => parts.hear_sizes(&mut s.link(peer), only_c),
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
}
