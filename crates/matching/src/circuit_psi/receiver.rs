//! The receiver's half.

use super::cuckoo::{CuckooBins, FUNCTIONS};
use super::pieces::{BinColumns, KeyColumn, LaidKeys};
use super::{AHEAD, ATTEMPTS, Party, equal, okvs, oprf};
use crate::dummies::PaddedIdentifiers;
use crate::memory as room;
use crate::payload::{ABSENT, JoinedPart, JoinedShares, ValidEntries};
use crate::spill::SpillQueue;
use base::{Error, Rng};
use kernels::{Block, xor_bytes};
use net::Session;
use ot::{VoleReceiver, vole};
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// A piece whose answer the receiver waits for.
struct Pending {
    keys: Zeroizing<Vec<Block>>,
    inputs: Zeroizing<Vec<Block>>,
}

/// Both columns of the VOLE, a block of each per piece.
struct VoleColumns([SpillQueue; 2]);

impl VoleColumns {
    /// Replaces `into` by the next piece's.
    fn pop(&mut self, into: &mut [Zeroizing<Vec<u8>>; 2]) -> Result<(), Error> {
        self.0.iter_mut().zip(into).try_for_each(|(queue, into)| queue.pop(into))
    }
}

impl Party<'_> {
    /// The receiver's half.
    pub(super) fn receive(
        &self,
        session: &mut Session,
        names: &PaddedIdentifiers<'_>,
        mut rng: Rng,
    ) -> Result<JoinedShares, Error> {
        let mut laid = session.step("bins", |s| self.lay(s, names))?;
        let mut vole = session.step("vole", |s| self.elements_of(s))?;
        let mut columns = BinColumns::new(&self.bins, &self.shapes, self.layout, &self.room);
        session.step("pieces", |s| {
            let (mut waiting, mut elements) = (VecDeque::new(), <[Zeroizing<Vec<u8>>; 2]>::default());
            let pieces = self.bins.pieces();
            let ahead = (s.link(self.peer).window() / 2 / self.shapes.key_bytes()).min(AHEAD) as u64;
            for piece in 0..pieces + ahead {
                if piece < pieces {
                    vole.pop(&mut elements)?;
                    waiting.push_back(self.ask(s, piece, &mut laid, &elements, &mut rng)?);
                }
                if piece >= ahead {
                    let pending = waiting.pop_front().expect("a piece is under way for every answer");
                    self.take_answer(s, &pending, &mut columns)?;
                    s.report(piece + 1 - ahead, pieces);
                }
            }
            Ok(())
        })?;
        drop(vole);
        let LaidKeys { mut held, .. } = laid;
        let (shares, mut tags) = columns.finish();
        let all = self.bins.all();
        let valid = session.step("equal", |s| equal::shared(s, self.kind, all, &mut tags))?;
        // A dummy row of ours is no row of the caller's.
        held.iter_mut().filter(|row| u64::from(**row) >= names.real_rows()).for_each(|row| *row = ABSENT);
        Ok(JoinedShares {
            rows: all,
            slots: 1,
            parts: [JoinedPart::Mine(held), JoinedPart::Shared(shares)],
            valid: ValidEntries::Shared(valid),
        })
    }

    /// Lays the receiver's keys into bins; tells which attempt at hash functions did it.
    fn lay(&self, session: &mut Session, names: &PaddedIdentifiers<'_>) -> Result<LaidKeys, Error> {
        let keys = KeyColumn::read(names, &self.seed, &self.room)?;
        for attempt in 0..ATTEMPTS {
            let hash = CuckooBins::hash(&self.seed, attempt);
            if let Some(laid) = keys.lay(&self.bins, hash, &self.room)? {
                let mut link = session.link(self.peer);
                link.send(&[attempt])?;
                link.flush()?;
                return Ok(laid);
            }
        }
        Err(Error::misuse("rows do not fit their bins, a matter of chance; run again"))
    }

    /// Makes the VOLE, piece by piece.
    fn elements_of(&self, session: &mut Session) -> Result<VoleColumns, Error> {
        let (total, entries) = (self.elements(), self.shapes.keys.entries());
        let ot = self.kind.receiver(session, self.peer, vole::expected_ots(total))?;
        let mut vole = VoleReceiver::new(ot, total)?;
        let mut columns = [(); 2].map(|()| SpillQueue::new(&self.room, entries * Block::BYTES));
        let piece = || Ok::<_, Error>(Zeroizing::new(room::reserve("VOLE of a piece", entries as u64)?));
        let mut pieces = [piece()?, piece()?];
        for _ in 0..self.bins.pieces() {
            pieces.iter_mut().for_each(|piece| piece.clear());
            let [a, c] = &mut pieces;
            vole.take(session, entries, [a, c])?;
            for (column, piece) in columns.iter_mut().zip(&pieces) {
                column.push(Block::bytes_of(piece))?;
            }
        }
        Ok(VoleColumns(columns))
    }

    /// The receiver's message for a piece: its keys' store under the VOLE's mask.
    fn ask(
        &self,
        session: &mut Session,
        piece: u64,
        laid: &mut LaidKeys,
        [a, c]: &[Zeroizing<Vec<u8>>; 2],
        rng: &mut Rng,
    ) -> Result<Pending, Error> {
        let keys = laid.take(&self.bins, piece, rng)?;
        let (shape, mut rows) = (self.shapes.keys, Vec::new());
        okvs::rows(&self.shapes.cipher(&self.seed, 0), shape, &keys, &mut rows);
        let mut store = okvs::encode(shape, &rows, Block::bytes_of(&keys), Block::BYTES, rng)?;
        xor_bytes(&mut store, a);
        let mut link = session.link(self.peer);
        link.send(&store)?;
        link.flush()?;
        let mut inputs = Zeroizing::new(vec![Block::ZERO; keys.len()]);
        okvs::decode(shape, c, Block::BYTES, &rows, Block::bytes_of_mut(&mut inputs));
        Ok(Pending { keys, inputs })
    }

    /// The sender's answer for a piece: tag and share of the payload per bin.
    fn take_answer(
        &self,
        session: &mut Session,
        pending: &Pending,
        columns: &mut BinColumns,
    ) -> Result<(), Error> {
        let Pending { keys, inputs } = pending;
        let (shape, width, tag) = (self.shapes.values, self.shapes.width, self.shapes.tag);
        let mut table = room::reserve("bytes of a table", (shape.entries() * width) as u64)?;
        table.resize(shape.entries() * width, 0);
        session.link(self.peer).recv(&mut table)?;
        let (mut rows, mut values) = (Vec::new(), Zeroizing::new(vec![0; keys.len() * width]));
        okvs::rows(&self.shapes.cipher(&self.seed, 1), shape, keys, &mut rows);
        okvs::decode(shape, &table, width, &rows, &mut values);
        oprf::add_pads(&self.seed, inputs, keys, width, &mut values);
        let [mut tags, mut shares] = [(); 2].map(|()| Zeroizing::new(Vec::new()));
        for (function, values) in values.chunks(keys.len() / FUNCTIONS * width).enumerate() {
            tags.clear();
            shares.clear();
            for value in values.chunks_exact(width) {
                tags.extend_from_slice(&value[..tag]);
                shares.extend_from_slice(&value[tag..]);
            }
            columns.extend(function, &tags, &shares)?;
        }
        Ok(())
    }
}
