//! The units `hash` and `v`: own rows hashed, and both columns under all keys of both parties.

use super::barriers::{ChunkDigest, DoneStream};
use super::journal::{ChunkAt, ChunkRepeat, JournalLog};
use super::price::{PulseBeat, StreamMove, stream};
use super::{Party, ROW_BYTES, fault, steps};
use crate::chunks::{CHUNK, chunk, chunks, len};
use crate::group::{self, GroupElement};
use crate::identifiers::{ColumnFingerprint, FINGERPRINT_ROWS, IdentifierSource};
use crate::spill::{SortedRecords, SpillColumn};
use base::Error;
use net::Session;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

const _: () = assert!(FINGERPRINT_ROWS == CHUNK);

/// What the units `v` read and make, dealt by prefix: it outlives them.
pub(super) struct StreamColumns {
    /// `u` of own rows.
    pub u: SortedRecords<ROW_BYTES>,
    /// Own rows as universal identifiers.
    pub uids: SpillColumn<ROW_BYTES>,
    /// `e` of the peer's rows.
    pub e: SpillColumn<32>,
}

/// One unit `v`.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamUnit {
    pub part: u32,
    /// Own elements of `u` that begin with its bits, and the peer's.
    pub rows: [u64; 2],
    /// Chunks of both that an earlier session has done, which was cut.
    pub through: [u64; 2],
}

impl StreamUnit {
    /// Rows of both that are still to be said.
    pub fn todo(&self) -> [u64; 2] {
        [0, 1].map(|side| self.rows[side] - self.rows[side].min(self.through[side] * CHUNK))
    }
}

impl Party<'_> {
    /// Unit `hash`: `H(x)` to the first key of all own rows, dealt by prefix. Sorted, they are `u`: under a
    /// secret key that is a secret order. Hands each on to `keep`, with its row. Tells nothing but pulses, in
    /// the order of the input.
    pub(super) fn hash_own(
        &mut self,
        session: &mut Session,
        own: &dyn IdentifierSource,
        fingerprint: &ColumnFingerprint,
        keep: &mut dyn FnMut(&[u8; ROW_BYTES]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let [mine, theirs] = self.hashed;
        let mut u = vec![[0; 32]; CHUNK as usize];
        for (i, rows) in (0..mine).zip(chunks(own.rows())) {
            let journal = self.journal.as_ref().expect("a run that goes on has a journal");
            journal.get(JournalLog::U, ChunkAt(0, i), &mut u[..len(&rows)])?;
            keep_rows(keep, &u[..len(&rows)], rows)?;
        }
        let left = |rows: u64, chunks: u64| rows - rows.min(chunks * CHUNK);
        let mut beat = PulseBeat::new(left(own.rows(), mine), left(self.rows[1], theirs));
        let (todo, all) = ((mine..).zip(chunks(own.rows()).skip(mine as usize)), own.rows().div_ceil(CHUNK));
        for (i, rows) in todo {
            let u = &mut u[..len(&rows)];
            self.hash_chunk(own, fingerprint, rows.clone(), u)?;
            if let Some(journal) = &mut self.journal {
                journal.put(JournalLog::U, ChunkAt(0, i), u, &ChunkDigest::default())?;
            }
            keep_rows(keep, u, rows.clone())?;
            session.report(i + 1 - mine, all - mine);
            self.pulse(session, &mut beat, rows.end - rows.start)?;
        }
        self.last_pulses(session, &beat)
    }

    /// The same of what is left after the first `done` rows, whole chunks, where the peer is gone.
    pub(super) fn hash_rest(
        &self,
        own: &dyn IdentifierSource,
        fingerprint: &ColumnFingerprint,
        done: u64,
        keep: &mut dyn FnMut(&[u8; ROW_BYTES]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut u = vec![[0; 32]; CHUNK as usize];
        for rows in chunks(own.rows()).filter(|rows| rows.start >= done) {
            let u = &mut u[..len(&rows)];
            self.hash_chunk(own, fingerprint, rows.clone(), u)?;
            keep_rows(keep, u, rows)?;
        }
        Ok(())
    }

    /// Hashes the rows of one chunk, which must be those that the fingerprint was taken of.
    fn hash_chunk(
        &self,
        own: &dyn IdentifierSource,
        fingerprint: &ColumnFingerprint,
        rows: Range<u64>,
        u: &mut [GroupElement],
    ) -> Result<(), Error> {
        // Names are read on several cores, each row's digest in its own place.
        let digests: Vec<Mutex<[u8; 32]>> = u.iter().map(|_| Mutex::default()).collect();
        let names = |i: usize, name: &mut Vec<u8>| {
            let row = rows.start as u32 + i as u32;
            own.read(row, 0, name)?;
            own.domain(row).mark(name);
            *digests[i].lock().expect("nobody panics with it") = fingerprint.row(name);
            Ok(())
        };
        group::hash_mul_batch(&names, &self.keys[0], u, self.threads)?;
        let digests: Vec<[u8; 32]> =
            digests.into_iter().map(|d| d.into_inner().expect("nobody panicked with it")).collect();
        fingerprint.check(rows.start / CHUNK, digests.iter())
    }

    /// Unit `v` of one partition: `u` of it in chunks, both parties at once, each answered in its order. What
    /// is told of it, how many elements it has and how many chunks of them an earlier session has done, came
    /// before it.
    pub(super) fn stream(
        &mut self,
        session: &mut Session,
        unit: StreamUnit,
        columns: &mut StreamColumns,
    ) -> Result<DoneStream, Error> {
        columns.u.enter(unit.part, self.parts.bits());
        let mut state = Stream {
            unit,
            columns,
            last_u: None,
            sent: VecDeque::new(),
            last_peer: None,
            once: vec![[0; 32]; CHUNK as usize],
            twice: vec![[0; 32]; CHUNK as usize],
            digests: [blake3::Hasher::new(), blake3::Hasher::new()],
        };
        self.replay(session, &mut state)?;
        let [own, peer] = unit.todo();
        for step in stream(own, peer) {
            self.progress.done += match step {
                StreamMove::SendU(rows) => self.send_u(session, &mut state, len(&rows))?,
                StreamMove::AnswerV(rows) => {
                    self.answer_v(session, &mut state, unit.through[1] + rows.start / CHUNK)?
                }
                StreamMove::TakeV(rows) => {
                    self.take_v(session, &mut state, unit.through[0] + rows.start / CHUNK)?
                }
            };
            session.report(self.progress.done, self.progress.total);
        }
        Ok(DoneStream::of(unit.part, state.digests))
    }

    /// Takes what an earlier session has done from the journal.
    fn replay(&mut self, session: &mut Session, state: &mut Stream<'_>) -> Result<(), Error> {
        let StreamUnit { part, rows, through: [own, peer] } = state.unit;
        let Some(journal) = self.journal.as_ref().filter(|_| own + peer > 0) else {
            return Ok(());
        };
        let replayed = &mut self.replayed;
        let all = self.rows.iter().sum::<u64>();
        session.step("resume", |session| {
            for (i, rows) in (0..peer).zip(chunks(rows[1])) {
                let chunk = &mut state.once[..len(&rows)];
                let digest = journal.get(JournalLog::E, ChunkAt(part, i), chunk)?;
                state.digests[1].update(&digest);
                chunk.iter().try_for_each(|e| state.columns.e.push(e))?;
            }
            for (i, rows) in (0..own).zip(chunks(rows[0])) {
                state.next_u(len(&rows))?;
                let digest = journal.get(JournalLog::V, ChunkAt(part, i), &mut state.once[..len(&rows)])?;
                state.keep_uids(len(&rows), &digest)?;
            }
            *replayed += [own, peer].iter().map(|chunks| chunks * CHUNK).sum::<u64>();
            session.report(*replayed, all.max(*replayed));
            Ok(())
        })
    }

    fn send_u(&self, session: &mut Session, state: &mut Stream<'_>, rows: usize) -> Result<u64, Error> {
        session.step("u", |s| {
            state.next_u(rows)?;
            s.link(self.peer).send(state.once[..rows].as_flattened())?;
            // It is ready before the other party asks: hand it over, and then do other work.
            s.link(self.peer).flush()?;
            Ok(rows as u64)
        })
    }

    fn answer_v(&mut self, session: &mut Session, state: &mut Stream<'_>, i: u64) -> Result<u64, Error> {
        let StreamUnit { part, rows, .. } = state.unit;
        let n = len(&chunk(rows[1], i));
        let (e, v) = (&mut state.once[..n], &mut state.twice[..n]);
        session.step("u", |s| {
            let mut link = s.link(self.peer);
            link.recv(e.as_flattened_mut())?;
            steps::check_ascending(e, &mut state.last_peer).map_err(|f| fault(&link, f))?;
            self.parts.check_range(&link, part, e)?;
            self.pins.expect(&link, i, e)?;
            let mut said = blake3::Hasher::new();
            said.update(e.as_flattened());
            let [first, second] = &self.keys;
            group::mul_twice_batch(e, v, first, second, self.threads)
                .map_err(|refusal| fault(&link, refusal.into()))?;
            let digest = *said.update(v.as_flattened()).finalize().as_bytes();
            state.digests[1].update(&digest);
            match self.log(JournalLog::E, ChunkAt(part, i), e, &digest)? {
                ChunkRepeat::Same => Ok(()),
                ChunkRepeat::Other => Err(link.blame("what it sends again is what it sent before")),
            }
        })?;
        e.iter().try_for_each(|e| state.columns.e.push(e))?;
        session.step("v", |s| s.link(self.peer).send(v.as_flattened()))?;
        Ok(2 * n as u64)
    }

    fn take_v(&mut self, session: &mut Session, state: &mut Stream<'_>, i: u64) -> Result<u64, Error> {
        let StreamUnit { part, rows, .. } = state.unit;
        let rows = len(&chunk(rows[0], i));
        session.step("v", |s| {
            let uids = &mut state.once[..rows];
            let mut link = s.link(self.peer);
            link.recv(uids.as_flattened_mut())?;
            let answer = |said: &mut blake3::Hasher| *said.update(uids.as_flattened()).finalize().as_bytes();
            let digest = state.sent.front_mut().map(|(_, said)| answer(said));
            let digest = digest.expect("an answer is to a chunk that was sent");
            self.mul(&link, uids)?;
            if self.log(JournalLog::V, ChunkAt(part, i), uids, &digest)? == ChunkRepeat::Other {
                return Err(link.blame("what it answers again is what it answered before"));
            }
            state.keep_uids(rows, &digest)?;
            Ok(rows as u64)
        })
    }

    fn log(
        &mut self,
        log: JournalLog,
        at: ChunkAt,
        chunk: &[GroupElement],
        digest: &ChunkDigest,
    ) -> Result<ChunkRepeat, Error> {
        self.journal.as_mut().map_or(Ok(ChunkRepeat::Same), |journal| journal.put(log, at, chunk, digest))
    }
}

/// What a party holds during a unit `v`.
struct Stream<'c> {
    unit: StreamUnit,
    columns: &'c mut StreamColumns,
    last_u: Option<GroupElement>,
    /// Rows of the chunks of u that are on their way, and what was said of them, oldest first.
    sent: VecDeque<(Vec<u32>, blake3::Hasher)>,
    last_peer: Option<GroupElement>,
    once: Vec<GroupElement>,
    twice: Vec<GroupElement>,
    /// Of digests of own chunks with their answers, and of the peer's.
    digests: [blake3::Hasher; 2],
}

impl Stream<'_> {
    /// Puts the next chunk of `u` into `once` and remembers whose it is.
    fn next_u(&mut self, rows: usize) -> Result<(), Error> {
        let mut whose = Vec::with_capacity(rows);
        for place in &mut self.once[..rows] {
            let record = self.columns.u.pop()?.expect("u has as many rows as the identifiers");
            let (u, row) = record.split_first_chunk().expect("an element comes first");
            *place = *u;
            if self.last_u.replace(*u) == Some(*u) {
                return Err(Error::input(
                    "two rows carry the same identifier; identifiers must be unique, keep one",
                ));
            }
            whose.push(u32::from_le_bytes(*row.first_chunk().expect("then its row")));
        }
        let mut said = blake3::Hasher::new();
        said.update(self.once[..rows].as_flattened());
        self.sent.push_back((whose, said));
        Ok(())
    }

    /// Keeps the universal identifiers in `once` with the rows of the oldest chunk on its way, and the digest
    /// of what was said of it.
    fn keep_uids(&mut self, rows: usize, digest: &ChunkDigest) -> Result<(), Error> {
        let (whose, _) = self.sent.pop_front().expect("an answer is to a chunk that was sent");
        self.digests[0].update(digest);
        let mut rows = self.once[..rows].iter().zip(whose);
        rows.try_for_each(|(uid, row)| self.columns.uids.push(&record_of(uid, row)))
    }
}

fn record_of(element: &GroupElement, row: u32) -> [u8; ROW_BYTES] {
    let mut record = [0; ROW_BYTES];
    record[..32].copy_from_slice(element);
    record[32..].copy_from_slice(&row.to_le_bytes());
    record
}

fn keep_rows(
    keep: &mut dyn FnMut(&[u8; ROW_BYTES]) -> Result<(), Error>,
    elements: &[GroupElement],
    rows: Range<u64>,
) -> Result<(), Error> {
    elements.iter().zip(rows).try_for_each(|(element, row)| keep(&record_of(element, row as u32)))
}
