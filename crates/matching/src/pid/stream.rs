//! Steps 1 to 3: own rows hashed, and both columns under all keys of both parties.

use super::journal::{ChunkRepeat, JournalLog};
use super::price::{PulseBeat, StreamMove, stream};
use super::{Party, ROW_BYTES, fault, steps};
use crate::chunks::{CHUNK, chunks, len};
use crate::group::{self, GroupElement};
use crate::identifiers::{ColumnFingerprint, FINGERPRINT_ROWS, IdentifierSource};
use crate::spill::{SortedRecords, SpillColumn};
use base::Error;
use net::Session;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

const _: () = assert!(FINGERPRINT_ROWS == CHUNK);

/// Own rows as sent or as universal identifiers, and `e` of the peer's.
type Columns = (SpillColumn<ROW_BYTES>, SpillColumn<32>);

impl<'r> Party<'r> {
    /// `H(x)` to the first key, of all own rows. Sorted, they are `u`: under a secret key that is a secret
    /// order.
    pub(super) fn hash_own(
        &mut self,
        session: &mut Session,
        own: &dyn IdentifierSource,
        fingerprint: &ColumnFingerprint,
    ) -> Result<SpillColumn<ROW_BYTES>, Error> {
        let mut column = SpillColumn::new(self.room, own.rows());
        let [mine, theirs] = self.start.hashed;
        let mut u = vec![[0; 32]; CHUNK as usize];
        for (i, rows) in chunks(own.rows()).enumerate().take(mine as usize) {
            let journal = self.journal.as_ref().expect("a run that goes on has a journal");
            journal.get(JournalLog::U, i as u64, &mut u[..len(&rows)])?;
            push_rows(&mut column, &u[..len(&rows)], rows)?;
        }
        let todo = own.rows().div_ceil(CHUNK) - mine;
        let beat = PulseBeat::new(todo, self.rows[1].div_ceil(CHUNK) - theirs);
        self.rounds(session, todo, beat, |party, _, i| {
            let i = i + mine;
            let rows = i * CHUNK..own.rows().min((i + 1) * CHUNK);
            let u = &mut u[..len(&rows)];
            party.hash_chunk(own, fingerprint, rows.clone(), u)?;
            if let Some(journal) = &mut party.journal {
                journal.put(JournalLog::U, i, u)?;
            }
            push_rows(&mut column, u, rows)
        })?;
        Ok(column)
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

    /// Both columns in chunks, both parties at once: own rows as universal identifiers, and `e` of the peer's
    /// rows.
    pub(super) fn stream(
        &mut self,
        session: &mut Session,
        u: SpillColumn<ROW_BYTES>,
    ) -> Result<Columns, Error> {
        let [own, peer] = self.rows;
        let mut state = Stream {
            u: u.sorted(),
            last_u: None,
            rows: VecDeque::new(),
            last_peer: None,
            uids: SpillColumn::new(self.room, own),
            e: SpillColumn::new(self.room, peer),
            once: vec![[0; 32]; CHUNK as usize],
            twice: vec![[0; 32]; CHUNK as usize],
        };
        self.replay(session, &mut state)?;
        let from = self.start.through.map(|chunks| chunks * CHUNK);
        let [own, peer] = [own.saturating_sub(from[0]), peer.saturating_sub(from[1])];
        let (mut done, total) = (0, 2 * (own + peer));
        let within = |rows: Range<u64>, side: usize| rows.start + from[side]..rows.end + from[side];
        for step in stream(own, peer) {
            done += match step {
                StreamMove::SendU(rows) => self.send_u(session, &mut state, len(&rows))?,
                StreamMove::AnswerV(rows) => self.answer_v(session, &mut state, within(rows, 1))?,
                StreamMove::TakeV(rows) => self.take_v(session, &mut state, within(rows, 0))?,
            };
            session.report(done, total);
        }
        Ok((state.uids, state.e))
    }

    /// Takes what an earlier session has done from the journal.
    fn replay(&self, session: &mut Session, state: &mut Stream) -> Result<(), Error> {
        let [own, peer] = self.start.through;
        let Some(journal) = self.journal.as_ref().filter(|_| own + peer > 0) else {
            return Ok(());
        };
        session.step("resume", |session| {
            for (i, rows) in chunks(self.rows[1]).enumerate().take(peer as usize) {
                journal.get(JournalLog::E, i as u64, &mut state.once[..len(&rows)])?;
                state.once[..len(&rows)].iter().try_for_each(|e| state.e.push(e))?;
            }
            for (i, rows) in chunks(self.rows[0]).enumerate().take(own as usize) {
                state.next_u(len(&rows))?;
                journal.get(JournalLog::V, i as u64, &mut state.once[..len(&rows)])?;
                state.keep_uids(len(&rows))?;
            }
            let done = [own, peer].iter().map(|chunks| chunks * CHUNK).sum();
            session.report(done, self.rows.iter().sum::<u64>().max(done));
            Ok(())
        })
    }

    fn send_u(&self, session: &mut Session, state: &mut Stream, rows: usize) -> Result<u64, Error> {
        session.step("u", |s| {
            state.next_u(rows)?;
            s.link(self.peer).send(state.once[..rows].as_flattened())?;
            // It is ready before the other party asks: hand it over, and then do other work.
            s.link(self.peer).flush()?;
            Ok(rows as u64)
        })
    }

    fn answer_v(
        &mut self,
        session: &mut Session,
        state: &mut Stream,
        rows: Range<u64>,
    ) -> Result<u64, Error> {
        let n = len(&rows);
        let (e, v) = (&mut state.once[..n], &mut state.twice[..n]);
        session.step("u", |s| {
            let mut link = s.link(self.peer);
            link.recv(e.as_flattened_mut())?;
            steps::check_ascending(e, &mut state.last_peer).map_err(|f| fault(&link, f))?;
            let [first, second] = &self.keys;
            group::mul_twice_batch(e, v, first, second, self.threads)
                .map_err(|refusal| fault(&link, refusal.into()))?;
            if self.log(JournalLog::E, rows.start, e)? == ChunkRepeat::Other {
                return Err(link.blame("what it sends again is what it sent before"));
            }
            Ok(())
        })?;
        e.iter().try_for_each(|e| state.e.push(e))?;
        session.step("v", |s| s.link(self.peer).send(v.as_flattened()))?;
        Ok(2 * n as u64)
    }

    fn take_v(&mut self, session: &mut Session, state: &mut Stream, rows: Range<u64>) -> Result<u64, Error> {
        session.step("v", |s| {
            let uids = &mut state.once[..len(&rows)];
            let mut link = s.link(self.peer);
            link.recv(uids.as_flattened_mut())?;
            self.mul(&link, uids)?;
            if self.log(JournalLog::V, rows.start, uids)? == ChunkRepeat::Other {
                return Err(link.blame("what it answers again is what it answered before"));
            }
            state.keep_uids(len(&rows))?;
            Ok(len(&rows) as u64)
        })
    }

    fn log(&mut self, log: JournalLog, first: u64, chunk: &[GroupElement]) -> Result<ChunkRepeat, Error> {
        self.journal.as_mut().map_or(Ok(ChunkRepeat::Same), |journal| journal.put(log, first / CHUNK, chunk))
    }
}

/// What a party holds while both stream.
struct Stream {
    u: SortedRecords<ROW_BYTES>,
    last_u: Option<GroupElement>,
    /// Rows of the chunks of u that are on their way, oldest first.
    rows: VecDeque<Vec<u32>>,
    last_peer: Option<GroupElement>,
    uids: SpillColumn<ROW_BYTES>,
    e: SpillColumn<32>,
    once: Vec<GroupElement>,
    twice: Vec<GroupElement>,
}

impl Stream {
    /// Puts the next chunk of `u` into `once` and remembers whose it is.
    fn next_u(&mut self, rows: usize) -> Result<(), Error> {
        let mut whose = Vec::with_capacity(rows);
        for place in &mut self.once[..rows] {
            let record = self.u.pop()?.expect("u has as many rows as the identifiers");
            let (u, row) = record.split_first_chunk().expect("an element comes first");
            *place = *u;
            if self.last_u.replace(*u) == Some(*u) {
                return Err(Error::input(
                    "two rows carry the same identifier; identifiers must be unique, keep one",
                ));
            }
            whose.push(u32::from_le_bytes(*row.first_chunk().expect("then its row")));
        }
        self.rows.push_back(whose);
        Ok(())
    }

    /// Keeps the universal identifiers in `once` with the rows of the oldest chunk on its way.
    fn keep_uids(&mut self, rows: usize) -> Result<(), Error> {
        let whose = self.rows.pop_front().expect("an answer is to a chunk that was sent");
        self.once[..rows].iter().zip(whose).try_for_each(|(uid, row)| push_row(&mut self.uids, uid, row))
    }
}

fn push_row(column: &mut SpillColumn<ROW_BYTES>, element: &GroupElement, row: u32) -> Result<(), Error> {
    let mut record = [0; ROW_BYTES];
    record[..32].copy_from_slice(element);
    record[32..].copy_from_slice(&row.to_le_bytes());
    column.push(&record)
}

fn push_rows(
    column: &mut SpillColumn<ROW_BYTES>,
    elements: &[GroupElement],
    rows: Range<u64>,
) -> Result<(), Error> {
    elements.iter().zip(rows).try_for_each(|(element, row)| push_row(column, element, row as u32))
}
