//! The sender's half.

use super::cuckoo::{CuckooBins, FUNCTIONS};
use super::pieces::{BinColumns, DealtRows, PieceRows};
use super::{ATTEMPTS, Party, equal, okvs, oprf, random_bytes};
use crate::identifiers::IdentifierSource;
use crate::memory as room;
use crate::payload::{JoinedPart, JoinedShares, PayloadSource, ValidEntries};
use crate::spill::SpillQueue;
use base::{Error, Rng};
use kernels::{Block, gf_add_multiples, prg_fill};
use net::Session;
use ot::{VoleSender, fresh_delta, vole};
use zeroize::Zeroizing;

/// Tags and masks of a piece, by function and bin.
struct PieceMasks {
    tags: Zeroizing<Vec<u8>>,
    rows: Zeroizing<Vec<u8>>,
}

impl Party<'_> {
    /// The sender's half.
    pub(super) fn send(
        &self,
        session: &mut Session,
        names: &dyn IdentifierSource,
        payload: &dyn PayloadSource,
        mut rng: Rng,
    ) -> Result<JoinedShares, Error> {
        let mut dealt = session.step("bins", |s| self.dealt(s, names, payload))?;
        let (delta, mut vole) = session.step("vole", |s| self.elements_under(s))?;
        // The masks are the sender's shares.
        let mut columns = BinColumns::new(&self.bins, &self.shapes, self.layout, &self.room);
        session.step("pieces", |s| {
            let (mut store, mut b) = (Vec::new(), Zeroizing::new(Vec::new()));
            let mut sums = Zeroizing::new(Vec::new());
            store.resize(self.shapes.keys.entries(), Block::ZERO);
            sums.resize(self.shapes.keys.entries(), Block::ZERO);
            for piece in 0..self.bins.pieces() {
                s.link(self.peer).recv(Block::bytes_of_mut(&mut store))?;
                vole.pop(&mut b)?;
                Block::read_slice(&b, &mut sums);
                gf_add_multiples(*delta, &store, &mut sums);
                let masks = self.draw(piece, &mut columns, &mut rng)?;
                let rows = dealt.take(&self.bins, piece)?;
                let table = self.answer(&rows, &masks, (*delta, &sums), &mut rng)?;
                let mut link = s.link(self.peer);
                link.send(&table)?;
                link.flush()?;
                s.report(piece + 1, self.bins.pieces());
            }
            Ok(())
        })?;
        drop((vole, dealt));
        let (shares, mut tags) = columns.finish();
        let all = self.bins.all();
        let valid = session.step("equal", |s| equal::shared(s, self.kind, all, &mut tags))?;
        Ok(JoinedShares {
            rows: all,
            slots: 1,
            parts: [JoinedPart::Theirs, JoinedPart::Shared(shares)],
            valid: ValidEntries::Shared(valid),
        })
    }

    /// Own rows in their pieces, under the hash functions that the receiver's rows fit. They are dealt under
    /// the first ones while it finds out: it takes others once in 2^40 runs.
    fn dealt(
        &self,
        session: &mut Session,
        names: &dyn IdentifierSource,
        payload: &dyn PayloadSource,
    ) -> Result<DealtRows, Error> {
        let names = oprf::NameKeys::new(names, &self.seed);
        let deal = |attempt| {
            let hash = CuckooBins::hash(&self.seed, attempt);
            DealtRows::deal(&self.bins, hash, (&names, payload), &self.room)
        };
        let first = deal(0)?;
        let mut link = session.link(self.peer);
        match link.recv_array()? {
            [0] => Ok(first),
            [attempt] if attempt < ATTEMPTS => {
                drop(first);
                deal(attempt)
            }
            _ => Err(link.malformed("there is no such attempt at bins")),
        }
    }

    /// Delta, and the VOLE under it, a block per piece.
    fn elements_under(&self, session: &mut Session) -> Result<(Zeroizing<Block>, SpillQueue), Error> {
        let (total, entries) = (self.elements(), self.shapes.keys.entries());
        let delta = Zeroizing::new(fresh_delta(&mut session.fork_seed("Delta").into_rng()));
        let ot = self.kind.sender(session, self.peer, *delta, vole::expected_ots(total))?;
        let mut vole = VoleSender::new(session, ot, total)?;
        let mut column = SpillQueue::new(&self.room, entries * Block::BYTES);
        let mut piece = Zeroizing::new(room::reserve("VOLE of a piece", entries as u64)?);
        for _ in 0..self.bins.pieces() {
            piece.clear();
            vole.take(session, entries, &mut piece)?;
            column.push(Block::bytes_of(&piece))?;
        }
        Ok((delta, column))
    }

    /// Draws the tags and masks of a piece.
    fn draw(&self, piece: u64, columns: &mut BinColumns, rng: &mut Rng) -> Result<PieceMasks, Error> {
        let (range, width, tag) = (self.bins.range(piece), self.layout.row_bytes(), self.shapes.tag);
        let len = (range.end - range.start) as usize;
        let mut masks = PieceMasks { tags: Zeroizing::default(), rows: Zeroizing::default() };
        let mut drawn = Zeroizing::new(vec![Block::ZERO; len]);
        for function in 0..FUNCTIONS {
            prg_fill(Block::from_bytes(rng.bytes()), 0, &mut drawn);
            drawn.iter().for_each(|word| masks.tags.extend_from_slice(&word.to_bytes()[..tag]));
            masks.rows.extend_from_slice(&random_bytes(rng, len * width));
            let [tags, rows] =
                [(&masks.tags, tag), (&masks.rows, width)].map(|(all, size)| &all[function * len * size..]);
            columns.extend(function, tags, rows)?;
        }
        Ok(masks)
    }

    /// The table of tags and masked payload of a piece.
    fn answer(
        &self,
        rows: &PieceRows,
        masks: &PieceMasks,
        (delta, sums): (Block, &[Block]),
        rng: &mut Rng,
    ) -> Result<Vec<u8>, Error> {
        let (width, tag) = (self.shapes.width, self.shapes.tag);
        let keys = &rows.keys;
        let mut values = Zeroizing::new(vec![0; keys.len() * width]);
        for (at, (value, slot)) in values.chunks_exact_mut(width).zip(&rows.slots).enumerate() {
            let [own_tag, mask] = [(&masks.tags, tag), (&masks.rows, width - tag)]
                .map(|(all, size)| &all[*slot as usize * size..][..size]);
            value[..tag].copy_from_slice(own_tag);
            oprf::mask_row(self.layout, rows.payload(at), mask, &mut value[tag..]);
        }
        let (mut places, mut inputs) = (Vec::new(), Zeroizing::new(vec![Block::ZERO; keys.len()]));
        okvs::rows(&self.shapes.cipher(&self.seed, 0), self.shapes.keys, keys, &mut places);
        let decoded = Block::bytes_of_mut(&mut inputs);
        okvs::decode(self.shapes.keys, Block::bytes_of(sums), Block::BYTES, &places, decoded);
        oprf::lift(delta, keys, &mut inputs);
        oprf::add_pads(&self.seed, &inputs, keys, width, &mut values);
        okvs::rows(&self.shapes.cipher(&self.seed, 1), self.shapes.values, keys, &mut places);
        okvs::encode(self.shapes.values, &places, &values, width, rng)
    }
}
