//! Products of vectors that stay with the devices: only messages come from there and go there.
//!
//! The messages are those of [`SeatParty::multiply`], in the same order, so a seat with its vectors on a GPU
//! works with seats that have them in the host's memory. Chunks have the size that the device likes; several
//! are under way. A device writes its messages where the transport has them and reads them there: no copy is
//! made by the host.

use crate::seats::check::{Running, VouchedChannel};
use crate::seats::courier::{self, Delivery, Letter, OwedChunk};
use crate::seats::product::{Checks, chunks_of};
use crate::vectors::arithmetic::ArithmeticShares;
use crate::vectors::spare::zeros;
use crate::{CHUNK_BLOCKS, SeatParty, ShareView, SharedVector, VectorRing};
use accel::{
    BlockHalf, ChunkHalves, DeviceVector, MessagePiece, StageVouch, VectorMemory, VectorProduct, VouchBy,
};
use base::Error;
use kernels::{Block, GfKey};
use net::{Inlet, Outlet, Session};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use zeroize::Zeroizing;

/// A vector of shared values that stays with the device of a [`SeatParty`]: some blocks of a vector there,
/// which does not change any more.
#[derive(Clone)]
pub struct DeviceShares {
    pub(crate) len: usize,
    pub(crate) vector: Arc<DeviceVector>,
    /// Its first block.
    pub(crate) from: usize,
}

impl DeviceShares {
    /// Of which elements.
    #[must_use]
    pub fn ring(&self) -> VectorRing {
        self.vector.ring()
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Blocks of each part.
    pub(crate) fn blocks(&self) -> usize {
        self.ring().blocks(self.len)
    }

    fn same_shape(&self, other: &Self) -> Result<(), Error> {
        if self.ring() == other.ring() && self.len == other.len {
            return Ok(());
        }
        Err(Error::misuse("vectors on a device that do not fit each other"))
    }
}

/// The chunks of a product on their way through the slots of a device.
struct Chunks {
    all: Vec<Range<usize>>,
    /// Blocks of the product.
    blocks: usize,
    slots: usize,
    started: usize,
    /// Given to who sends and who receives.
    talked: usize,
    folded: usize,
    settled: usize,
}

impl Chunks {
    /// How the blocks of a chunk lie in the halves of the product.
    fn halves(&self, chunk: usize) -> ChunkHalves {
        ChunkHalves::of(&self.all[chunk], self.blocks)
    }
}

/// A and C of a chunk in the pieces in which they are sent, C of these blocks.
fn pieces(halves: ChunkHalves, c: &Range<usize>) -> Vec<MessagePiece> {
    let mut pieces = Vec::new();
    for range in BlockHalf::BOTH.map(|half| halves.range(half)) {
        for from in range.clone().step_by(CHUNK_BLOCKS) {
            let blocks = from..range.end.min(from + CHUNK_BLOCKS);
            pieces.push(MessagePiece { of_c: false, blocks: blocks.clone() });
            if c.contains(&from) {
                pieces.push(MessagePiece { of_c: true, blocks });
            }
        }
    }
    pieces
}

/// The threads that send and receive, and what they tell: of every chunk that is sent, and that has arrived.
struct TalkThreads {
    to_sender: mpsc::Sender<Letter>,
    sent: Receiver<()>,
    to_receiver: mpsc::Sender<Delivery>,
    arrived: Receiver<OwedChunk>,
}

/// A product under way.
struct DeviceProduct<'a> {
    round: u64,
    factors: &'a [[&'a DeviceVector; 2]],
    z: DeviceShares,
    vouch: VouchBy,
    /// Keys of the transport under which the device digests what is sent and received, where it has them.
    keys: [Option<Arc<GfKey>>; 2],
    chunks: Chunks,
    /// Of chunks that are folded and not settled.
    owed: VecDeque<OwedChunk>,
    checks: Option<Checks>,
}

impl SeatParty {
    /// Whether the devices have memory of their own in which vectors stay; without it they lie in the host's.
    pub fn keeps_vectors(&mut self) -> bool {
        self.queue.keeps_vectors()
    }

    /// Copies shares to the device.
    ///
    /// # Errors
    /// When its memory ends, or it failed.
    pub fn keep<'a>(&mut self, shares: impl Into<ShareView<'a>>) -> Result<DeviceShares, Error> {
        let shares = shares.into();
        let vector = self.queue.make(shares.ring(), shares.ring().blocks(shares.len()))?;
        self.queue.write(&vector, shares.parts())?;
        Ok(DeviceShares { len: shares.len(), vector: Arc::new(vector), from: 0 })
    }

    /// As [`SeatParty::keep`], in the host's memory: of vectors that no device is worth.
    ///
    /// # Errors
    /// As there.
    pub fn keep_on_host(&mut self, shares: &SharedVector) -> Result<DeviceShares, Error> {
        let vector = self.queue.make_on_host(shares.ring(), shares.blocks());
        self.queue.write(&vector, shares.parts())?;
        Ok(DeviceShares { len: shares.len(), vector: Arc::new(vector), from: 0 })
    }

    /// As [`SeatParty::keep`], to where another vector lies.
    pub(crate) fn keep_beside(
        &mut self,
        other: &DeviceShares,
        shares: &SharedVector,
    ) -> Result<DeviceShares, Error> {
        let vector = self.queue.make_beside(&other.vector, shares.ring(), shares.blocks())?;
        self.queue.write(&vector, shares.parts())?;
        Ok(DeviceShares { len: shares.len(), vector: Arc::new(vector), from: 0 })
    }

    /// Copies shares back from the device.
    ///
    /// # Errors
    /// When it failed.
    pub fn fetch(&mut self, shares: &DeviceShares) -> Result<SharedVector, Error> {
        let blocks = shares.blocks();
        let mut parts: [Vec<Block>; 3] = std::array::from_fn(|_| zeros(blocks));
        self.queue.read(&shares.vector, shares.from, parts.each_mut().map(Vec::as_mut_slice))?;
        Ok(SharedVector::from_parts(shares.ring(), shares.len, parts))
    }

    /// Sums of vectors on the device, or differences: no message.
    ///
    /// # Errors
    /// Shapes that differ, and those of the device.
    pub fn add_on_device(
        &mut self,
        negative: bool,
        x: &DeviceShares,
        y: &DeviceShares,
    ) -> Result<DeviceShares, Error> {
        let by = if negative { u128::MAX } else { 1 };
        DeviceShares::combine(self, &[(x, 1), (y, by)], None)
    }

    /// As [`SeatParty::dot`], of vectors that stay on the device: one term is a product. One round, the price
    /// of a product.
    ///
    /// # Errors
    /// As there.
    pub fn dot_on_device(
        &mut self,
        session: &mut Session,
        x: &[&DeviceShares],
        y: &[&DeviceShares],
    ) -> Result<DeviceShares, Error> {
        let Some(first) = x.first().filter(|_| x.len() == y.len()) else {
            return Err(Error::misuse("a dot product has as many terms on both sides, at least one"));
        };
        x.iter().chain(y).try_for_each(|term| first.same_shape(term))?;
        let (ring, len, blocks) = (first.ring(), first.len, first.blocks());
        let terms: Vec<&DeviceShares> = x.iter().chain(y).copied().collect();
        let (terms, z) = self.lay_out(&terms)?;
        let (x, y) = terms.split_at(x.len());
        if let Some(stub) = &mut self.stub {
            stub.quote.multiply(ring, len);
            return Ok(z);
        }
        self.hidden(session)?;
        let round = self.next_round();
        let vouch = match (self.settings.checked(), self.settings.hash) {
            (false, _) => VouchBy::Nothing,
            (true, crate::TagHash::Keyed) => VouchBy::Digest,
            (true, crate::TagHash::Blake3) => VouchBy::Expose,
        };
        // Pieces of messages lie in one chunk each.
        let [size, slots] = self.queue.chunks_of(&z.vector);
        let most = (size / CHUNK_BLOCKS * CHUNK_BLOCKS).max(CHUNK_BLOCKS);
        let apart = chunks_of(blocks, most).into_iter().map(|(_, at)| at);
        let joined = self.queue.joins(&z.vector).then_some(0..blocks);
        let all = joined.map_or_else(|| apart.collect(), |all| std::iter::once(all).collect());
        let under_way = Chunks { all, blocks, slots, started: 0, talked: 0, folded: 0, settled: 0 };
        let checks = self.settings.checked().then(|| Checks::new(self, round, blocks));
        let factors: Vec<[&DeviceVector; 2]> =
            x.iter().zip(y).map(|(x, y)| [&*x.vector, &*y.vector]).collect();
        let (keys, chunks, owed) = ([None, None], under_way, VecDeque::new());
        let mut product = DeviceProduct { round, factors: &factors, z, vouch, keys, chunks, owed, checks };
        self.talk(session, &mut product)?;
        while product.chunks.settled < product.chunks.all.len() {
            self.settle_chunk(&mut product)?;
        }
        product.checks.map_or(Ok(()), |checks| checks.settle(self, round, session))?;
        Ok(product.z)
    }

    /// Factors of a product, at least one and each a vector of its own, and room for the result, all in one
    /// memory.
    fn lay_out(&mut self, terms: &[&DeviceShares]) -> Result<(Vec<DeviceShares>, DeviceShares), Error> {
        let near = DeviceShares::together(self, terms)?;
        let mut near = near.iter().map(|term| term.whole(self)).collect::<Result<Vec<_>, Error>>()?;
        let (ring, len, blocks) = (near[0].ring(), near[0].len, near[0].blocks());
        let mut z = self.queue.make_beside(&near[0].vector, ring, blocks)?;
        let all = near.iter().map(|term| &*term.vector).chain([&z]);
        let on_host = all.filter(|vector| self.queue.is_on_host(vector)).count();
        // A device that was full left some of them to the host.
        if on_host != 0 && on_host <= near.len() {
            z = self.queue.make_on_host(ring, blocks);
            for term in &mut near {
                *term = term.on_host(self)?;
            }
        }
        Ok((near, DeviceShares { len, vector: Arc::new(z), from: 0 }))
    }

    /// Sends and receives all pieces of a product's messages: on a thread each, unless all that is sent fits
    /// half a window, so neither waits for the other, nor for what is computed.
    fn talk(&mut self, session: &mut Session, product: &mut DeviceProduct<'_>) -> Result<(), Error> {
        let (before, after) = (self.at(self.seat.after(3)), self.at(self.seat.after(1)));
        let bytes = 2 * product.chunks.blocks * Block::BYTES;
        session.ends(before, after, |outlet, inlet| {
            if outlet.takes(bytes) {
                return self.talk_in_turn(product, outlet, inlet);
            }
            product.keys = [outlet.body_key(), inlet.body_key()];
            let ((to_sender, letters), (tell_sent, sent)) = (mpsc::channel(), mpsc::channel());
            let ((to_receiver, deliveries), (tell_arrived, arrived)) = (mpsc::channel(), mpsc::channel());
            let threads = TalkThreads { to_sender, sent, to_receiver, arrived };
            std::thread::scope(|scope| {
                let sender = scope.spawn(move || courier::send_all(outlet, &letters, &tell_sent));
                let receiver = scope.spawn(move || courier::receive_all(inlet, &deliveries, &tell_arrived));
                let computed = self.compute_all(product, &threads);
                drop(threads);
                let [sent, received] = [sender, receiver]
                    .map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
                // Where several failed it is not the one that computes that ended first.
                sent.and(received).and(computed)
            })
        })
    }

    /// As many chunks as there are slots are sent, then received.
    fn talk_in_turn(
        &mut self,
        product: &mut DeviceProduct<'_>,
        outlet: &mut Outlet<'_>,
        inlet: &mut Inlet<'_>,
    ) -> Result<(), Error> {
        while product.chunks.folded < product.chunks.all.len() {
            let first = product.chunks.folded;
            self.start_chunks(product, first, None)?;
            let started = first..product.chunks.started;
            let letters = started.clone().map(|chunk| self.letter(product, chunk));
            courier::send(outlet, letters.collect::<Result<_, _>>()?)?;
            outlet.flush()?;
            // While the others do as much.
            started.clone().try_for_each(|chunk| self.vouch_for(product, chunk))?;
            let deliveries = started.clone().map(|chunk| self.delivery(product, chunk));
            let owed = courier::receive(inlet, deliveries.collect::<Result<_, _>>()?)?;
            product.owed.extend(owed);
            started.into_iter().try_for_each(|chunk| self.fold_chunk(product, chunk))?;
        }
        Ok(())
    }

    /// Computes all chunks while two other threads send and receive.
    fn compute_all(&mut self, product: &mut DeviceProduct<'_>, threads: &TalkThreads) -> Result<(), Error> {
        for chunk in 0..product.chunks.all.len() {
            self.start_chunks(product, chunk, Some(&threads.sent))?;
            while product.chunks.talked < product.chunks.started {
                let next = product.chunks.talked;
                threads.to_sender.send(self.letter(product, next)?).map_err(|_| ended())?;
                threads.to_receiver.send(self.delivery(product, next)?).map_err(|_| ended())?;
                product.chunks.talked += 1;
            }
            product.owed.push_back(threads.arrived.recv().map_err(|_| ended())?);
            self.vouch_for(product, chunk)?;
            self.fold_chunk(product, chunk)?;
        }
        // Slots are free once what they send is gone.
        while product.chunks.settled < product.chunks.all.len() {
            threads.sent.recv().map_err(|_| ended())?;
            self.settle_chunk(product)?;
        }
        Ok(())
    }

    /// What a chunk sends.
    fn letter(&mut self, product: &DeviceProduct<'_>, chunk: usize) -> Result<Letter, Error> {
        let halves = product.chunks.halves(chunk);
        let outbox = self.queue.outbox(chunk % product.chunks.slots)?;
        Ok(Letter { pieces: pieces(halves, &halves.sent(self.seat)), outbox })
    }

    /// What a chunk receives.
    fn delivery(&mut self, product: &DeviceProduct<'_>, chunk: usize) -> Result<Delivery, Error> {
        let halves = product.chunks.halves(chunk);
        let inbox = self.queue.inbox(chunk % product.chunks.slots)?;
        Ok(Delivery { pieces: pieces(halves, &halves.received(self.seat)), inbox })
    }

    /// Begins stage 2 of a chunk that has arrived.
    fn fold_chunk(&mut self, product: &mut DeviceProduct<'_>, chunk: usize) -> Result<(), Error> {
        self.queue.fold(chunk % product.chunks.slots)?;
        product.chunks.folded = chunk + 1;
        Ok(())
    }

    /// Starts as many chunks as there are free slots, this one among them. A slot is free when its chunk is
    /// folded and sent, of which another thread tells.
    fn start_chunks(
        &mut self,
        product: &mut DeviceProduct<'_>,
        needed: usize,
        told: Option<&Receiver<()>>,
    ) -> Result<(), Error> {
        while product.chunks.started < product.chunks.all.len() {
            let chunks = &product.chunks;
            if chunks.started - chunks.settled >= chunks.slots {
                // The last one that was folded is under way: it is waited for where nothing else can be done.
                let folded = chunks.folded - chunks.settled;
                if folded == 0 || folded == 1 && chunks.started > needed {
                    break;
                }
                told.map_or(Ok(()), Receiver::recv).map_err(|_| ended())?;
                self.settle_chunk(product)?;
            }
            let chunks = &mut product.chunks;
            let at = chunks.all[chunks.started].clone();
            let slot = chunks.started % chunks.slots;
            chunks.started += 1;
            let stage = VectorProduct {
                round: product.round,
                at,
                factors: product.factors,
                z: &product.z.vector,
                masked: self.settings.masked,
                vouch: product.vouch,
                keys: product.keys.each_ref().map(Option::as_ref),
            };
            self.queue.start(slot, &stage)?;
        }
        if product.chunks.started > needed {
            return Ok(());
        }
        Err(Error::misuse("a device has too few slots for its chunks: what it heard lies in all of them"))
    }

    /// Goes on with the hashes of what this seat vouches for.
    fn vouch_for(&mut self, product: &mut DeviceProduct<'_>, chunk: usize) -> Result<(), Error> {
        let Some(checks) = &mut product.checks else { return Ok(()) };
        let halves = product.chunks.halves(chunk);
        let blocks = [halves.blocks(), halves.vouched(self.seat).len()];
        let said = Said::of(self.queue.vouched(chunk % product.chunks.slots)?);
        self.go_on(&mut checks.hashes[0], checks.vouched, blocks, said);
        Ok(())
    }

    /// Goes on with the hashes of A and C, of so many blocks each.
    fn go_on(
        &self,
        hashes: &mut [Running; 2],
        channels: [VouchedChannel; 2],
        blocks: [usize; 2],
        said: Said,
    ) {
        for (k, hash) in hashes.iter_mut().enumerate().filter(|(k, _)| blocks[*k] != 0) {
            match &said {
                Said::Digests(digests) => self.append(channels[k], hash, blocks[k], digests[k]),
                Said::Blocks(blocks) => self.hash(channels[k], hash, &blocks[k]),
                Said::Nothing => {}
            }
        }
    }

    /// Waits for stage 2 of the next chunk, which frees its slot.
    fn settle_chunk(&mut self, product: &mut DeviceProduct<'_>) -> Result<(), Error> {
        let chunks = &mut product.chunks;
        let halves = chunks.halves(chunks.settled);
        let (blocks, received) = (halves.blocks(), halves.received(self.seat));
        let slot = chunks.settled % chunks.slots;
        if let Some(checks) = &mut product.checks {
            // As the device has them: what the transport holds may have changed since.
            let said = Said::of(self.queue.arrived(slot)?);
            self.go_on(&mut checks.hashes[1], checks.received, [blocks, received.len()], said);
        }
        if let Some(owed) = product.owed.pop_front().filter(OwedChunk::is_owed) {
            // Nothing of what was made of it has left this party.
            let (digests, count) = (self.queue.arrived_digests(slot)?, blocks.div_ceil(CHUNK_BLOCKS));
            let pieces = pieces(halves, &received).into_iter();
            let place = |p: MessagePiece| usize::from(p.of_c) * count + p.blocks.start / CHUNK_BLOCKS;
            let digests: Option<Vec<Block>> = pieces.map(|p| digests.get(place(p)).copied()).collect();
            owed.check(&Zeroizing::new(digests.unwrap_or_default()))?;
        }
        self.queue.settle(slot)?;
        chunks.settled += 1;
        Ok(())
    }
}

/// As [`StageVouch`], apart from the device.
enum Said {
    Nothing,
    Digests([Block; 2]),
    Blocks([Zeroizing<Vec<Block>>; 2]),
}

impl Said {
    fn of(said: StageVouch<'_>) -> Self {
        match said {
            StageVouch::Nothing => Self::Nothing,
            StageVouch::Digests(digests) => Self::Digests(digests),
            StageVouch::Blocks(both) => Self::Blocks(both.map(|blocks| Zeroizing::new(blocks.to_vec()))),
        }
    }
}

/// Another thread has ended, and says why.
fn ended() -> Error {
    Error::misuse("who sends or receives has ended")
}
