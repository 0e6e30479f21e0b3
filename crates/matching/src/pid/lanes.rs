//! Units of Private-ID over lanes: what a worker is told, does and tells, whether it is a process of its own
//! or not.
//!
//! Over a lane go `v`, then `e` with `d1` and `d2` of the same partition, then `d3`; between them both
//! coordinators pass the barriers. What a unit reads and makes lies in this party's state, sealed under a key
//! of the match. An attempt that failed is made again under the same keys, in this meeting of the parties or
//! a later one, so that a peer must ask the same again: it promises its messages before the first of them,
//! and its promise is pinned before it is answered.
//!
//! No pulses go over a lane: coordinators hear their workers' beats.

mod crew;
mod store;

pub use crew::{LaneBegun, LaneNotes, UnitCrew};
pub use store::{ColumnRuns, LaneStore};

use super::barriers::{SealedDifference, SealedStreams};
use super::difference::{OtherRows, SliceColumns, take_slice};
use super::pins::{MessageDigest, MessagePins, digest_of};
use super::price::{PulseBeat, slice_bits};
use super::stream::{StreamColumns, StreamUnit};
use super::{Partitioning, Party, ROW_BYTES, Role, UnitProgress, exponents, fault, in_order};
use crate::begin::by_party;
use crate::chunks::CHUNK;
use crate::group::GroupElement;
use crate::spill::{SortedRecords, SpillColumn, SpillRoom};
use base::{Error, PartyId, Secret};
use net::{Session, StepLink};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A stage whose units go over lanes, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LaneStage {
    /// Units `v`.
    Streams,
    /// Units `e`, each with `d1` and `d2` of its partition.
    Differences,
    /// Units `d3`.
    Others,
}

impl LaneStage {
    /// Its name, for folders and people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Streams => "v",
            Self::Differences => "e",
            Self::Others => "d3",
        }
    }
}

/// Both keys of a party in a match, for its workers. They do not print, and are wiped on drop.
#[derive(Clone, Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct LaneKeys([[u8; 32]; 2]);

impl LaneKeys {
    pub(super) fn of(keys: &[Secret<[u8; 32]>; 2]) -> Self {
        Self(keys.each_ref().map(|key| *key.expose()))
    }
}

/// One unit, as its worker is told.
#[derive(Clone, Serialize, Deserialize)]
pub struct LaneTask {
    stage: LaneStage,
    part: u32,
    keys: LaneKeys,
    /// Own rows, the peer's rows.
    rows: [u64; 2],
    /// Bits that name a partition.
    bits: u32,
    /// Of `v`: elements of `u` in the partition, own ones and the peer's. Of `d3`: those of `s'_c`.
    sizes: [u64; 2],
    /// The root of the sealed streams, after them.
    root: [u8; 32],
    /// What it reads.
    columns: Vec<ColumnRuns>,
}

/// What came of a unit at this party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneDone {
    /// What it made.
    columns: Vec<ColumnRuns>,
    /// Of `e`: elements of `e_c` and of `s_p`, and at C of `e_c \ e_p`.
    counts: [u64; 3],
    /// Of `v`: digests of own rows and of the peer's.
    digests: [[u8; 32]; 2],
    /// What was said: the same at both.
    pub transcript: [u8; 32],
}

/// What a worker does a unit with.
pub struct LaneWork<'a> {
    /// Where columns lie.
    pub store: &'a LaneStore,
    /// Where it writes what it makes: the name of this attempt, in a folder for each column.
    pub folder: &'a str,
    /// Cores to multiply on.
    pub threads: usize,
    /// Memory for what it makes before it is written.
    pub room: &'a SpillRoom,
    /// Tells its coordinator what the peer asks or answers in this unit, one thing after the other, each
    /// before anything that depends on it leaves; whether it is what the peer did in every attempt before.
    pub pin: &'a mut dyn FnMut([u8; 32]) -> Result<bool, Error>,
}

const SAME: &str = "in each attempt at a unit of the match it asks the same";

impl LaneDone {
    /// Names of the objects that are still to be read of what a stage made, where the next stage is over or
    /// not.
    pub fn needed(&self, stage: LaneStage, next_is_over: bool) -> impl Iterator<Item = &str> {
        // What the next stage alone reads goes when that is over.
        let for_next = match stage {
            LaneStage::Streams => 1..2,
            LaneStage::Differences => 0..2,
            LaneStage::Others => 0..0,
        };
        let needed = move |number: &usize| !(next_is_over && for_next.contains(number));
        let columns = self.columns.iter().enumerate().filter(move |(number, _)| needed(number));
        columns.flat_map(|(_, column)| column.names())
    }
}

impl LaneTask {
    /// Which stage it is of.
    #[must_use]
    pub fn stage(&self) -> LaneStage {
        self.stage
    }

    /// Which partition.
    #[must_use]
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Rows that a progress counts, at most about.
    #[must_use]
    pub fn rows(&self) -> u64 {
        let share = |rows: u64| rows.div_ceil(1 << self.bits);
        match self.stage {
            LaneStage::Streams => 2 * (self.sizes[0] + self.sizes[1]),
            LaneStage::Differences | LaneStage::Others => share(self.rows[0]).max(share(self.rows[1])),
        }
    }

    /// Does it over a lane, in one attempt.
    ///
    /// # Errors
    /// As [`crate::Matcher::run`]; when state cannot be read or written.
    pub fn run(&self, session: &mut Session, mut work: LaneWork<'_>) -> Result<LaneDone, Error> {
        let mut party = self.party(session.me(), &work)?;
        match (self.stage, party.role) {
            (LaneStage::Streams, _) => self.v(&mut party, session, &mut work),
            (LaneStage::Differences, Role::C) => self.e_of_c(&mut party, session, &mut work),
            (LaneStage::Differences, Role::P) => self.e_of_p(&mut party, session, &mut work),
            (LaneStage::Others, Role::C) => self.d3_of_c(&mut party, session, &work),
            (LaneStage::Others, Role::P) => self.d3_of_p(&mut party, session, &mut work),
        }
    }

    fn party<'w>(&self, me: PartyId, work: &LaneWork<'w>) -> Result<Party<'w>, Error> {
        let parts = Partitioning::named(self.bits.into()).filter(|parts| self.part < parts.count());
        let [first, second] = &self.keys.0;
        Ok(Party {
            role: if me == PartyId(0) { Role::C } else { Role::P },
            peer: me.other(),
            threads: work.threads,
            keys: exponents(&[Secret::new(*first), Secret::new(*second)])?,
            rows: self.rows,
            parts: parts.ok_or_else(|| Error::misuse("a unit is of a partition"))?,
            order: in_order,
            room: work.room,
            journal: None,
            pins: MessagePins::none(),
            shared_least: 0,
            goes_on: false,
            hashed: [0; 2],
            progress: UnitProgress::default(),
            replayed: 0,
        })
    }

    /// A column that it reads, at its partition.
    fn column<const B: usize>(&self, number: usize, work: &LaneWork<'_>) -> Result<SortedRecords<B>, Error> {
        let runs = self.columns.get(number).ok_or_else(|| Error::misuse("a unit reads what it is told"))?;
        let mut column = work.store.read(&[runs], self.bits)?;
        column.enter(self.part, self.bits);
        Ok(column)
    }

    fn done(&self, party: &Party<'_>, columns: Vec<ColumnRuns>) -> LaneDone {
        let [said, heard] = party.pins.transcript();
        let both = by_party(party.peer.other(), said, heard);
        let transcript = blake3::derive_key("tacit pid unit over a lane 1", both.as_flattened());
        LaneDone { columns, counts: [0; 3], digests: [[0; 32]; 2], transcript }
    }

    /// Unit `v`. Both first promise their `u`.
    fn v(
        &self,
        party: &mut Party<'_>,
        session: &mut Session,
        work: &mut LaneWork<'_>,
    ) -> Result<LaneDone, Error> {
        let mut u = self.column::<ROW_BYTES>(0, work)?;
        let mine = promise_of_u(&mut u)?;
        u.enter(self.part, self.bits);
        let theirs = session.step("u", |s| {
            let mut link = s.link(party.peer);
            let [own, peer] = self.rows.map(|rows| party.parts.promised(rows));
            let mut told = mine;
            told.resize(own, [0; 32]);
            let mut theirs = vec![[0; 32]; peer];
            link.exchange(told.as_flattened(), theirs.as_flattened_mut())?;
            pinned(&link, work, blake3::hash(theirs.as_flattened()))?;
            Ok(theirs)
        })?;
        party.pins.promised(0, theirs);
        let unit = StreamUnit { part: self.part, rows: self.sizes, through: [0; 2] };
        party.progress = UnitProgress { done: 0, total: 2 * self.sizes.iter().sum::<u64>() };
        let uids = SpillColumn::dealt(work.room, self.sizes[0], self.bits);
        let e = SpillColumn::dealt(work.room, self.sizes[1], self.bits);
        let mut columns = StreamColumns { u, uids, e };
        let done = party.stream(session, unit, &mut columns)?;
        let StreamColumns { u, uids, e } = columns;
        drop(u);
        let written = vec![work.write("uids", self.bits, uids)?, work.write("e", self.bits, e)?];
        let digests = done.digests();
        let both = by_party(session.me(), digests[0], digests[1]);
        let transcript = blake3::derive_key("tacit pid unit v over a lane 1", both.as_flattened());
        Ok(LaneDone { columns: written, counts: [0; 3], digests, transcript })
    }

    /// Units `e`, `d1` and `d2` of a partition at C.
    fn e_of_c(
        &self,
        party: &mut Party<'_>,
        session: &mut Session,
        work: &mut LaneWork<'_>,
    ) -> Result<LaneDone, Error> {
        let e = self.column::<32>(0, work)?;
        let (sealed, slices) = (SealedStreams::passed(self.root), self.slices(party));
        let mut columns = SliceColumns { e, todo: SpillColumn::dealt(work.room, self.share(), self.bits) };
        let only_p = session.step("e", |s| {
            let mut link = s.link(party.peer);
            let mut theirs = vec![[0; 32]; slices.len()];
            link.recv(theirs.as_flattened_mut())?;
            pinned(&link, work, blake3::hash(theirs.as_flattened()))?;
            party.pins.promised(slices.start.into(), theirs);
            party.e_of_c(s, &sealed, self.part, &mut columns)
        })?;
        let (e_c, only_c) = (party.progress.done, columns.todo.len());
        party.pins.free();
        let images = session.step("difference", |s| {
            let todo = (vec![self.part], columns.todo);
            let images =
                party.images_of_c(s, todo, (&self.sizes_of(only_p), only_p), PulseBeat::new(0, 0))?;
            let [_, heard] = party.pins.transcript();
            pinned(&s.link(party.peer), work, heard.into())?;
            Ok(images)
        })?;
        let OtherRows { mut later, uids } = images.others;
        let mut waits = SpillColumn::dealt(work.room, later.bytes() / 32, self.bits);
        let mut block = Vec::new();
        loop {
            later.pop(&mut block)?;
            if block.is_empty() {
                break;
            }
            let elements: &[GroupElement] = block.as_chunks().0;
            elements.iter().try_for_each(|e| waits.push(e))?;
        }
        let raised = images.work.into_raised().0;
        let columns = vec![
            work.write("raised", self.bits, raised)?,
            work.write("later", self.bits, waits)?,
            work.write("others", self.bits, uids)?,
        ];
        Ok(LaneDone { counts: [e_c, only_p, only_c], ..self.done(party, columns) })
    }

    /// The same at P, which promises its `e_c`. What it answers to is pinned as a whole: C could ask for
    /// other elements in each attempt.
    fn e_of_p(
        &self,
        party: &mut Party<'_>,
        session: &mut Session,
        work: &mut LaneWork<'_>,
    ) -> Result<LaneDone, Error> {
        let mut e = self.column::<32>(0, work)?;
        let (sealed, slices) = (SealedStreams::passed(self.root), self.slices(party));
        let (bits, mut slice_of, mut mine) = (slice_bits(self.rows, party.parts), Vec::new(), Vec::new());
        for slice in slices {
            take_slice(&mut e, slice, bits, &mut slice_of)?
                .map_err(|f| fault(&session.link(party.peer), f))?;
            mine.push(digest_of(&slice_of));
        }
        e.enter(self.part, self.bits);
        let mut columns = SliceColumns { e, todo: SpillColumn::dealt(work.room, self.share(), self.bits) };
        let only_p = session.step("e", |s| {
            s.link(party.peer).send(mine.as_flattened())?;
            let only_p = party.e_of_p(s, &sealed, self.part, &mut columns)?;
            let [_, heard] = party.pins.transcript();
            pinned(&s.link(party.peer), work, heard.into())?;
            Ok(only_p)
        })?;
        let e_c = party.progress.done;
        let mut s_p = columns.todo.sorted();
        session.step("difference", |s| {
            party.progress = UnitProgress { done: 0, total: only_p };
            party.d2_of_p(s, self.part, &mut s_p, &mut PulseBeat::new(0, 0))
        })?;
        Ok(LaneDone { counts: [e_c, only_p, 0], ..self.done(party, Vec::new()) })
    }

    /// Unit `d3` at C.
    fn d3_of_c(
        &self,
        party: &mut Party<'_>,
        session: &mut Session,
        work: &LaneWork<'_>,
    ) -> Result<LaneDone, Error> {
        let s_c = self.column::<32>(0, work)?;
        let mut sealed = SealedDifference::passed(s_c, (self.part, self.sizes[0]), party.parts)?;
        let mut others = OtherRows::new(work.room, self.share(), party.parts);
        let mut later = self.column::<32>(1, work)?;
        while let Some(e) = later.pop()? {
            others.later.push(&e)?;
        }
        party.progress = UnitProgress { done: 0, total: self.sizes[0] };
        session.step("difference", |s| {
            party.d3_of_c(s, &mut sealed, self.part, &mut others, &mut PulseBeat::new(0, 0))?;
            while party.raise_later(&s.link(party.peer), &mut others)? {}
            Ok(())
        })?;
        let columns = vec![work.write("others", self.bits, others.uids)?];
        Ok(self.done(party, columns))
    }

    /// Unit `d3` at P.
    fn d3_of_p(
        &self,
        party: &mut Party<'_>,
        session: &mut Session,
        work: &mut LaneWork<'_>,
    ) -> Result<LaneDone, Error> {
        let mut others = SpillColumn::dealt(work.room, self.sizes[0], self.bits);
        party.progress = UnitProgress { done: 0, total: self.sizes[0] };
        let sizes = self.sizes_of(self.sizes[0]);
        session.step("difference", |s| {
            party.d3_of_p(s, self.part, &sizes, &mut others, &mut PulseBeat::new(0, 0))?;
            let [_, heard] = party.pins.transcript();
            pinned(&s.link(party.peer), work, heard.into())
        })?;
        let columns = vec![work.write("others", self.bits, others)?];
        Ok(self.done(party, columns))
    }

    /// Slices of its partition.
    fn slices(&self, party: &Party<'_>) -> std::ops::Range<u32> {
        party.parts.slices(self.part, slice_bits(self.rows, party.parts))
    }

    /// Sizes by partition, where only its own matters.
    fn sizes_of(&self, own: u64) -> Vec<u64> {
        let mut sizes = vec![0; 1 << self.bits];
        sizes[self.part as usize] = own;
        sizes
    }

    /// An even share of the rows of either side.
    fn share(&self) -> u64 {
        self.rows[0].max(self.rows[1]) >> self.bits
    }
}

impl LaneWork<'_> {
    fn write<const B: usize>(
        &self,
        name: &str,
        bits: u32,
        column: SpillColumn<B>,
    ) -> Result<ColumnRuns, Error> {
        self.store.write(&format!("{name}/{}", self.folder), bits, column)
    }
}

/// Has a promise of the peer pinned before anything that depends on it leaves.
fn pinned(link: &StepLink<'_>, work: &mut LaneWork<'_>, promise: blake3::Hash) -> Result<(), Error> {
    match (work.pin)(promise.into())? {
        true => Ok(()),
        false => Err(link.blame(SAME)),
    }
}

/// Digests of the chunks of a partition of `u`, as they will be said.
fn promise_of_u(u: &mut SortedRecords<ROW_BYTES>) -> Result<Vec<MessageDigest>, Error> {
    let (mut promise, mut chunk) = (Vec::new(), Vec::with_capacity(CHUNK as usize));
    loop {
        let record = u.pop()?;
        if let Some(record) = &record {
            chunk.push(*record.first_chunk::<32>().expect("an element comes first"));
        }
        let ends = record.is_none();
        if chunk.len() == CHUNK as usize || (ends && !chunk.is_empty()) {
            promise.push(digest_of(&chunk));
            chunk.clear();
        }
        if ends {
            return Ok(promise);
        }
    }
}
