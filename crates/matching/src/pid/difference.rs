//! Steps 2 and 4 to 6: the universal identifiers of the rows that only the peer has.
//!
//! `e_c` and `e_p` are merged in slices: those of their elements that begin with the same bits. A slice of
//! `s_p` is a function of the same slice of both sets, and its receiver knows `e_c`, so its size tells
//! nothing that the set `s_p` would not.

use super::price::{PulseBeat, SLICE_LAG, slice_bits, slice_cap};
use super::{Party, Role, fault, steps};
use crate::chunks::CHUNK;
use crate::group::{ELEMENT_BYTES, GroupElement};
use crate::spill::{SortedRecords, SpillColumn, SpillQueue, leading};
use base::Error;
use net::{Session, StepLink};

/// Bytes of a queue's block: a chunk.
const BLOCK: usize = (CHUNK * ELEMENT_BYTES) as usize;

/// Elements of both differences, in their order.
struct Differences {
    /// `e_c \ e_p` at C, `e_p \ e_c` at P: what this party multiplies first.
    todo: SpillQueue,
    /// Rows that only C has, and that only P has.
    only: [u64; 2],
}

impl<'r> Party<'r> {
    /// The universal identifiers of the rows that only the peer has, from `e` of all rows of the peer.
    pub(super) fn others(
        &mut self,
        session: &mut Session,
        e: SpillColumn<32>,
    ) -> Result<SpillColumn<32>, Error> {
        let mut e = e.sorted();
        match self.role {
            Role::C => {
                let differences = session.step("e", |s| self.merge(s, &mut e))?;
                drop(e);
                session.step("difference", |s| self.difference_of_c(s, differences))
            }
            Role::P => {
                let differences = session.step("e", |s| self.send_e(s, &mut e))?;
                drop(e);
                session.step("difference", |s| self.difference_of_p(s, differences))
            }
        }
    }

    /// C receives `e_c`, merges it with its `e_p`, and answers with `s_p`.
    fn merge(&mut self, session: &mut Session, e_p: &mut SortedRecords<32>) -> Result<Differences, Error> {
        let bits = slice_bits(self.rows);
        let [rows_c, rows_p] = self.rows;
        let mut differences = Differences { todo: SpillQueue::new(self.room, BLOCK), only: [0; 2] };
        let (mut arrived, mut e_c, mut own, mut s_p) = (0, Vec::new(), Vec::new(), Vec::new());
        for slice in 0..1 << bits {
            let mut link = session.link(self.peer);
            recv_slice(&mut link, slice, bits, rows_c, &mut e_c)?;
            self.pins.check(&link, u64::from(slice), &e_c)?;
            arrived += e_c.len() as u64;
            take_slice(e_p, slice, bits, &mut own)?.map_err(|f| fault(&link, f))?;
            s_p.clear();
            let todo = &mut differences.todo;
            steps::differences(&own, &e_c, |e| s_p.push(*e), |e| todo.push(e))?;
            differences.only[0] += e_c.len() as u64 - (own.len() - s_p.len()) as u64;
            differences.only[1] += s_p.len() as u64;
            send_slice(&mut link, &s_p)?;
            session.report(arrived, rows_c);
        }
        let link = session.link(self.peer);
        if arrived != rows_c {
            return Err(link.blame("it returns as many elements as it received"));
        }
        self.check_shared(&link, rows_c - differences.only[0])?;
        debug_assert_eq!(rows_c - differences.only[0], rows_p - differences.only[1]);
        Ok(differences)
    }

    /// P sends `e_c` and receives `s_p`.
    fn send_e(&mut self, session: &mut Session, e_c: &mut SortedRecords<32>) -> Result<Differences, Error> {
        let bits = slice_bits(self.rows);
        let [rows_p, rows_c] = self.rows;
        let mut todo = SpillQueue::new(self.room, BLOCK);
        let (mut only_p, mut sent, mut buffer) = (0, 0, Vec::new());
        let slices = 1u64 << bits;
        for slice in 0..slices + SLICE_LAG {
            let mut link = session.link(self.peer);
            if slice < slices {
                take_slice(e_c, slice as u32, bits, &mut buffer)?.map_err(|f| fault(&link, f))?;
                sent += buffer.len() as u64;
                send_slice(&mut link, &buffer)?;
                // The peer merges this slice while the next one is sorted here.
                link.flush()?;
            }
            if let Some(slice) = slice.checked_sub(SLICE_LAG) {
                recv_slice(&mut link, slice as u32, bits, rows_p, &mut buffer)?;
                self.pins.check(&link, slice, &buffer)?;
                only_p += buffer.len() as u64;
                todo.push(buffer.as_flattened())?;
            }
            session.report(sent, rows_c);
        }
        let link = session.link(self.peer);
        let only_c = rows_p.checked_sub(only_p).and_then(|shared| rows_c.checked_sub(shared));
        let only_c = only_c.ok_or_else(|| link.blame("the intersection is not larger than either set"))?;
        self.check_shared(&link, rows_p - only_p)?;
        Ok(Differences { todo, only: [only_c, only_p] })
    }

    /// C multiplies `e_c \ e_p` and then, while P multiplies it in turn, `s'_p`.
    fn difference_of_c(
        &mut self,
        session: &mut Session,
        differences: Differences,
    ) -> Result<SpillColumn<32>, Error> {
        let Differences { mut todo, only } = differences;
        let [c, p] = only.map(|rows| rows.div_ceil(CHUNK));
        let (mut s_c, mut others) =
            (SpillColumn::new(self.room, only[0]), SpillColumn::new(self.room, only[1]));
        let (mut later, mut bytes, mut piece) = (SpillQueue::new(self.room, BLOCK), Vec::new(), Vec::new());
        self.rounds(session, c.max(p), PulseBeat::new(c, 0), |party, s, i| {
            let mut link = s.link(party.peer);
            if i < c {
                todo.pop(&mut bytes)?;
                let column = bytes.as_chunks_mut().0;
                party.mul(&link, column)?;
                column.iter().try_for_each(|e| s_c.push(e))?;
            }
            if i < p {
                recv_piece(&mut link, only[1], i, &mut piece)?;
                party.pin_piece(&link, i, &piece)?;
                // As long as P waits for the own product, its answer has to.
                match i < c {
                    true => later.push(piece.as_flattened())?,
                    false => party.keep_others(&link, &mut piece, &mut others)?,
                }
            }
            Ok(())
        })?;
        // Elements of one product with a secret key: sorted, their order says nothing of e_c's.
        let mut s_c = s_c.sorted();
        self.rounds(session, c, PulseBeat::new(0, c), |party, s, i| {
            let mut link = s.link(party.peer);
            piece.clear();
            while piece.len() < CHUNK as usize
                && let Some(e) = s_c.pop()?
            {
                piece.push(e);
            }
            link.send(piece.as_flattened())?;
            link.flush()?;
            if i < p {
                later.pop(&mut bytes)?;
                party.keep_others(&link, bytes.as_chunks_mut().0, &mut others)?;
            }
            Ok(())
        })?;
        Ok(others)
    }

    /// P multiplies `s_p` and then `s'_c`.
    fn difference_of_p(
        &mut self,
        session: &mut Session,
        differences: Differences,
    ) -> Result<SpillColumn<32>, Error> {
        let Differences { mut todo, only } = differences;
        let [c, p] = only.map(|rows| rows.div_ceil(CHUNK));
        let (mut bytes, mut piece, mut last) = (Vec::new(), Vec::new(), None);
        self.rounds(session, p, PulseBeat::new(0, c), |party, s, _| {
            todo.pop(&mut bytes)?;
            let mut link = s.link(party.peer);
            party.mul(&link, bytes.as_chunks_mut().0)?;
            link.send(&bytes)
        })?;
        let mut others = SpillColumn::new(self.room, only[0]);
        self.rounds(session, c, PulseBeat::new(c, 0), |party, s, i| {
            let mut link = s.link(party.peer);
            recv_piece(&mut link, only[0], i, &mut piece)?;
            party.pin_piece(&link, i, &piece)?;
            steps::check_ascending(&piece, &mut last).map_err(|f| fault(&link, f))?;
            party.keep_others(&link, &mut piece, &mut others)
        })?;
        Ok(others)
    }

    /// Pins piece `i` of `s'_p` or `s'_c`, which come after the slices.
    fn pin_piece(&mut self, link: &StepLink<'_>, i: u64, piece: &[GroupElement]) -> Result<(), Error> {
        let slices = 1u64 << slice_bits(self.rows);
        self.pins.check(link, slices + i, piece)
    }

    /// Multiplies elements of the peer's rows into universal identifiers.
    fn keep_others(
        &self,
        link: &StepLink<'_>,
        elements: &mut [GroupElement],
        others: &mut SpillColumn<32>,
    ) -> Result<(), Error> {
        self.mul(link, elements)?;
        elements.iter().try_for_each(|e| others.push(e))
    }
}

/// Replaces `into` by the elements of one slice, which must not repeat: the peer would have repeated one of
/// its own, which would mark it through every later step.
fn take_slice(
    from: &mut SortedRecords<32>,
    slice: u32,
    bits: u32,
    into: &mut Vec<GroupElement>,
) -> Result<Result<(), steps::StepFault>, Error> {
    into.clear();
    while let Some(e) = from.head()? {
        if leading(e, bits) != slice {
            break;
        }
        into.extend(from.pop()?);
    }
    Ok(steps::check_distinct(into))
}

fn send_slice(link: &mut StepLink<'_>, slice: &[GroupElement]) -> Result<(), Error> {
    link.send(&(slice.len() as u64).to_le_bytes())?;
    if slice.is_empty() { Ok(()) } else { link.send(slice.as_flattened()) }
}

/// Receives a slice of a column of at most `rows` elements, sorted and without repeats.
fn recv_slice(
    link: &mut StepLink<'_>,
    slice: u32,
    bits: u32,
    rows: u64,
    into: &mut Vec<GroupElement>,
) -> Result<(), Error> {
    let count = link.recv_count("elements of a slice", rows.min(slice_cap(rows, bits)))?;
    into.clear();
    into.resize(count as usize, [0; 32]);
    if count > 0 {
        link.recv(into.as_flattened_mut())?;
    }
    steps::check_ascending(into, &mut None).map_err(|f| fault(link, f))?;
    match into.iter().all(|e| leading(e, bits) == slice) {
        true => Ok(()),
        false => Err(link.blame("the elements of a slice are in its range")),
    }
}

/// Receives chunk `i` of a column of `rows` elements.
fn recv_piece(link: &mut StepLink<'_>, rows: u64, i: u64, into: &mut Vec<GroupElement>) -> Result<(), Error> {
    into.clear();
    into.resize(CHUNK.min(rows - i * CHUNK) as usize, [0; 32]);
    link.recv(into.as_flattened_mut())?;
    steps::check_canonical(into).map_err(|f| fault(link, f))
}
