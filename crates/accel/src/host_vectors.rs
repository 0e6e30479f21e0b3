//! Vectors of devices that have no memory of their own: they lie in that of the host, and every stage is a
//! command.

use crate::steps::VectorRun;
use crate::vectors::{
    Copying, DeviceVector, Inbox, MessagePiece, Outbox, StageVouch, VectorProduct, VectorTable, VouchBy,
    check_pieces,
};
use crate::{BlockHalf, DeviceCommand, FoldStage, LinearStage, MultiplyStage, Seat, VectorRing, Vouch};
use base::Error;
use kernels::{Block, Place};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::{Zeroize, Zeroizing};

/// Blocks of a chunk: it and its factors fit a second-level cache.
pub const HOST_CHUNK_BLOCKS: usize = 4096;
/// Chunks under way.
pub const HOST_SLOTS: usize = 16;

/// Parts of a vector, wiped on drop.
#[derive(Default)]
struct HostVector([Vec<Block>; 3]);

impl HostVector {
    fn zero(blocks: usize) -> Self {
        Self(std::array::from_fn(|_| vec![Block::ZERO; blocks]))
    }
}

impl Drop for HostVector {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

/// A chunk under way.
struct HostChunk {
    ring: VectorRing,
    round: u64,
    at: Range<usize>,
    half: BlockHalf,
    z: u64,
    masked: bool,
    vouch: VouchBy,
    sent: Arc<HostMessages>,
    exposed: [Vec<Block>; 2],
    vouched: [Block; 2],
    inbox: Arc<HostInbox>,
    /// What was in there when stage 2 began.
    arrived: [Vec<Block>; 2],
    received: [Block; 2],
}

impl HostChunk {
    fn vouch_of<'a>(&self, digests: [Block; 2], [a, c]: &'a [Vec<Block>; 2]) -> StageVouch<'a> {
        match self.vouch {
            VouchBy::Nothing => StageVouch::Nothing,
            VouchBy::Digest => StageVouch::Digests(digests),
            VouchBy::Expose => StageVouch::Blocks([a, c]),
        }
    }
}

impl Drop for HostChunk {
    fn drop(&mut self) {
        self.exposed.iter_mut().chain(&mut self.arrived).for_each(Zeroize::zeroize);
    }
}

/// A and C of a chunk, wiped on drop.
struct HostMessages([Vec<Block>; 2]);

impl Drop for HostMessages {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Outbox for Arc<HostMessages> {
    fn copy(&mut self, pieces: &[MessagePiece], to: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        check_pieces(pieces, to, self.0[0].len())?;
        for (piece, places) in pieces.iter().zip(to) {
            let some = self.0[usize::from(piece.of_c)].get(piece.blocks.clone());
            let some = some.ok_or_else(|| Error::misuse("a piece of what the chunk does not send"))?;
            Place::write_all(places, Block::bytes_of(some));
        }
        Ok(Box::new(Copied))
    }
}

/// A and C that arrive for a chunk, wiped on drop.
struct HostInbox(Mutex<[Vec<Block>; 2]>);

impl HostInbox {
    /// All of it: what comes later has no room.
    fn take(&self) -> [Vec<Block>; 2] {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for HostInbox {
    fn drop(&mut self) {
        self.take().iter_mut().for_each(Zeroize::zeroize);
    }
}

impl Inbox for Arc<HostInbox> {
    fn copy(&mut self, pieces: &[MessagePiece], from: &[Vec<Place>]) -> Result<Box<dyn Copying>, Error> {
        let mut arrived = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        check_pieces(pieces, from, arrived[0].len())?;
        for (piece, places) in pieces.iter().zip(from) {
            let some = arrived[usize::from(piece.of_c)].get_mut(piece.blocks.clone());
            let some = some.ok_or_else(|| Error::misuse("a piece of what the chunk does not receive"))?;
            Place::read_all(places, Block::bytes_of_mut(some));
        }
        Ok(Box::new(Copied))
    }
}

/// The host has copied when it says so.
struct Copied;

impl Copying for Copied {
    /// Digests are made where the messages lie.
    fn wait(self: Box<Self>) -> Result<Zeroizing<Vec<Block>>, Error> {
        Ok(Zeroizing::default())
    }
}

/// What runs a command.
pub type RunCommand<'a> = dyn FnMut(&mut DeviceCommand<'_>) -> Result<(), Error> + 'a;

/// All vectors and chunks.
#[derive(Default)]
pub struct HostVectors {
    table: VectorTable<HostVector>,
    chunks: [Option<HostChunk>; HOST_SLOTS],
}

impl HostVectors {
    pub fn make(&mut self, ring: VectorRing, blocks: usize) -> DeviceVector {
        drop(self.table.dropped());
        self.table.insert(ring, blocks, HostVector::zero(blocks))
    }

    /// Whether a vector lies here.
    pub fn has(&self, vector: &DeviceVector) -> bool {
        self.table.id(vector).is_ok()
    }

    pub fn parts(&mut self, vector: &DeviceVector) -> Result<&mut [Vec<Block>; 3], Error> {
        let id = self.table.id(vector)?;
        Ok(&mut self.table.at(id)?.0)
    }

    pub fn write(&mut self, to: &DeviceVector, parts: [&[Block]; 3]) -> Result<(), Error> {
        let own = self.parts(to)?;
        if own.iter().zip(parts).any(|(own, part)| own.len() != part.len()) {
            return Err(Error::misuse("what is written is not as long as the vector"));
        }
        own.iter_mut().zip(parts).for_each(|(own, part)| own.copy_from_slice(part));
        Ok(())
    }

    pub fn read(&mut self, from: &DeviceVector, at: usize, parts: [&mut [Block]; 3]) -> Result<(), Error> {
        for (own, part) in self.parts(from)?.iter().zip(parts) {
            let end = at.checked_add(part.len());
            let some = end.and_then(|end| own.get(at..end));
            part.copy_from_slice(some.ok_or_else(|| Error::misuse("what is read is not in the vector"))?);
        }
        Ok(())
    }

    /// A sum or difference of all parts, by a command.
    pub fn linear(
        &mut self,
        negative: bool,
        ring: VectorRing,
        [x, y, z]: [&VectorRun<'_>; 3],
        run: &mut RunCommand<'_>,
    ) -> Result<(), Error> {
        let mut of = |v: &VectorRun<'_>| -> Result<HostVector, Error> {
            let here = v.from..v.from + v.blocks;
            Ok(HostVector(self.parts(v.vector)?.each_ref().map(|part| part[here.clone()].to_vec())))
        };
        let [x, y] = [of(x)?, of(y)?];
        let here = z.from..z.from + z.blocks;
        let z = self.parts(z.vector)?.each_mut().map(|part| &mut part[here.clone()]);
        let [x, y] = [&x, &y].map(|v| v.0.each_ref().map(Vec::as_slice));
        let stage = LinearStage { ring, x, y, z };
        run(&mut if negative { DeviceCommand::Sub(stage) } else { DeviceCommand::Add(stage) })
    }

    pub fn start(
        &mut self,
        seat: Seat,
        slot: usize,
        product: &VectorProduct<'_>,
        run: &mut RunCommand<'_>,
    ) -> Result<(), Error> {
        let terms = product.terms()?;
        let half = product.halves().only().ok_or_else(|| Error::misuse("a chunk in both halves"))?;
        let (at, n, of) = (product.at.clone(), product.at.len(), product.z.blocks());
        if self.chunk(slot).is_ok() {
            return Err(Error::misuse("a chunk is under way in this slot"));
        }
        let mut factors = [HostVector::default(), HostVector::default()];
        for pair in product.factors {
            for (into, from) in factors.iter_mut().zip(pair) {
                for (into, part) in into.0.iter_mut().zip(self.parts(from)?) {
                    part.chunks(of).for_each(|term| into.extend_from_slice(&term[at.clone()]));
                }
            }
        }
        let [x, y] = factors;
        let (sends, receives) = (half.sends(seat), half.receives(seat));
        let some = |there: bool| vec![Block::ZERO; if there { n } else { 0 }];
        let exposes = product.vouch == VouchBy::Expose;
        let mut chunk = HostChunk {
            ring: product.z.ring(),
            round: product.round,
            at: at.clone(),
            half,
            z: self.table.id(product.z)?,
            masked: product.masked,
            vouch: product.vouch,
            sent: Arc::new(HostMessages(Default::default())),
            exposed: [some(exposes), some(exposes && !sends)],
            vouched: [Block::ZERO; 2],
            inbox: Arc::new(HostInbox(Mutex::new([some(true), some(receives)]))),
            arrived: Default::default(),
            received: [Block::ZERO; 2],
        };
        let z = self.parts(product.z)?.each_mut().map(|part| &mut part[at.clone()]);
        let mut sent = HostMessages([some(true), some(sends)]);
        let [a, c] = &mut sent.0;
        let [of_a, of_c] = &mut chunk.exposed;
        let vouch = match product.vouch {
            VouchBy::Nothing => Vouch::Nothing,
            VouchBy::Digest => Vouch::Digest(&mut chunk.vouched),
            VouchBy::Expose => Vouch::Expose { a: of_a, c: of_c },
        };
        run(&mut DeviceCommand::Multiply(MultiplyStage {
            ring: chunk.ring,
            round: chunk.round,
            first: at.start as u64,
            half: chunk.half,
            terms,
            x: x.0.each_ref().map(Vec::as_slice),
            y: y.0.each_ref().map(Vec::as_slice),
            z,
            a,
            c,
            masked: chunk.masked,
            vouch,
        }))?;
        chunk.sent = Arc::new(sent);
        self.chunks[slot] = Some(chunk);
        Ok(())
    }

    fn chunk(&mut self, slot: usize) -> Result<&mut HostChunk, Error> {
        let none = || Error::misuse("no chunk is under way in this slot");
        self.chunks.get_mut(slot).and_then(Option::as_mut).ok_or_else(none)
    }

    pub fn vouched(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        let chunk = self.chunk(slot)?;
        Ok(chunk.vouch_of(chunk.vouched, &chunk.exposed))
    }

    pub fn outbox(&mut self, slot: usize) -> Result<Box<dyn Outbox>, Error> {
        Ok(Box::new(self.chunk(slot)?.sent.clone()))
    }

    pub fn inbox(&mut self, slot: usize) -> Result<Box<dyn Inbox>, Error> {
        Ok(Box::new(self.chunk(slot)?.inbox.clone()))
    }

    pub fn fold(&mut self, slot: usize, run: &mut RunCommand<'_>) -> Result<(), Error> {
        let none = || Error::misuse("no chunk is under way in this slot");
        let chunk = self.chunks.get_mut(slot).and_then(Option::as_mut).ok_or_else(none)?;
        chunk.arrived = chunk.inbox.take();
        let [_, z1, z2] = self.table.at(chunk.z)?.0.each_mut().map(|part| &mut part[chunk.at.clone()]);
        let [a, c] = &chunk.arrived;
        run(&mut DeviceCommand::Fold(FoldStage {
            ring: chunk.ring,
            round: chunk.round,
            first: chunk.at.start as u64,
            half: chunk.half,
            z: [z1, z2],
            a,
            c,
            masked: chunk.masked,
            digests: (chunk.vouch == VouchBy::Digest).then_some(&mut chunk.received),
        }))
    }

    pub fn arrived(&mut self, slot: usize) -> Result<StageVouch<'_>, Error> {
        let chunk = self.chunk(slot)?;
        Ok(chunk.vouch_of(chunk.received, &chunk.arrived))
    }

    pub fn settle(&mut self, slot: usize) -> Result<(), Error> {
        self.chunk(slot)?;
        self.chunks[slot] = None;
        Ok(())
    }
}
