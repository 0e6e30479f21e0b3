//! Products and dot products: stage 1 on a device, the messages, stage 2, and the check.

use crate::seats::check::{Running, VouchedChannel};
use crate::vectors::spare::{give_back, room, wipe, zeros};
use crate::{CHUNK_BLOCKS, CHUNKS_AHEAD, Seat, SeatParty, ShareView, SharedVector, TagHash, VectorRing};
use accel::{BlockHalf, DeviceCommand, FoldStage, MultiplyStage, Vouch};
use base::Error;
use kernels::Block;
use net::Session;
use std::ops::Range;
use zeroize::Zeroizing;

/// The chunks of a vector, in the order in which they are computed and sent: none lies in both halves.
pub(crate) fn chunks(blocks: usize) -> Vec<(BlockHalf, Range<usize>)> {
    chunks_of(blocks, CHUNK_BLOCKS)
}

/// As [`chunks`], of so many blocks each.
pub(crate) fn chunks_of(blocks: usize, most: usize) -> Vec<(BlockHalf, Range<usize>)> {
    let mut chunks = Vec::new();
    for half in BlockHalf::BOTH {
        let range = half.range(blocks);
        for from in range.clone().step_by(most) {
            chunks.push((half, from..range.end.min(from + most)));
        }
    }
    chunks
}

/// Blocks of C that a seat sends, in either half.
pub(crate) fn blocks_of_c(seat: Seat, blocks: usize) -> usize {
    BlockHalf::BOTH.into_iter().filter(|half| half.sends(seat)).map(|half| half.range(blocks).len()).sum()
}

/// What is known of the channels of one round of products at one seat.
pub(crate) struct Checks {
    /// What this seat vouches for: A of the seat before it, C of the one two further on.
    pub vouched: [VouchedChannel; 2],
    /// What it receives: A and C of the seat after it.
    pub received: [VouchedChannel; 2],
    /// Of both.
    pub hashes: [[Running; 2]; 2],
}

impl Checks {
    pub fn new(party: &SeatParty, round: u64, blocks: usize) -> Self {
        let seat = party.seat;
        let [s1, s2, s3] = [1, 2, 3].map(|k| seat.after(k));
        let vouched = [VouchedChannel::new(s3, seat, s2), VouchedChannel::new(s2, seat, s1)];
        let received = [VouchedChannel::new(s1, s2, seat), VouchedChannel::new(s1, s3, seat)];
        let begin = |channels: [VouchedChannel; 2]| {
            let [a, c] = channels;
            [party.begin(a, round, blocks), party.begin(c, round, blocks_of_c(c.sender, blocks))]
        };
        Self { vouched, received, hashes: [begin(vouched), begin(received)] }
    }

    pub fn settle(self, party: &SeatParty, round: u64, session: &mut Session) -> Result<(), Error> {
        let [vouched, received] = self.hashes;
        let vouched = self.vouched.into_iter().zip(vouched).collect();
        let received = self.received.into_iter().zip(received).collect();
        party.settle(session, round, vouched, received)
    }
}

/// Runs `work` with the digests of two channels, where a device may go on with them.
fn with_digests<T>(hashes: &mut [Running; 2], work: impl FnOnce(&mut [Block; 2]) -> T) -> Option<T> {
    let [Running::Keyed(a), Running::Keyed(c)] = hashes else { return None };
    let mut digests = [*a, *c];
    let done = work(&mut digests);
    [*a, *c] = digests;
    Some(done)
}

/// Buffers of one chunk, from round to round the same memory.
struct Buffers {
    a: Vec<Block>,
    c: Vec<Block>,
    /// What is hashed by the host; empty where devices digest.
    vouched: [Vec<Block>; 2],
    /// Both factors of a chunk, where its terms do not lie behind each other.
    gathered: [[Vec<Block>; 3]; 2],
}

impl Buffers {
    /// For chunks of so many blocks.
    fn new(blocks: usize, exposed: bool) -> Self {
        let vouched = if exposed { blocks } else { 0 };
        let (vouched, gathered) = ([zeros(vouched), zeros(vouched)], Default::default());
        Self { a: zeros(blocks), c: zeros(blocks), vouched, gathered }
    }

    /// A, and C where it is there, of a chunk.
    fn messages(&self, blocks: usize, c: bool) -> [&[Block]; 2] {
        [&self.a[..blocks], &self.c[..if c { blocks } else { 0 }]]
    }

    fn messages_mut(&mut self, blocks: usize, c: bool) -> [&mut [Block]; 2] {
        [&mut self.a[..blocks], &mut self.c[..if c { blocks } else { 0 }]]
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let hashed = self.vouched.iter_mut().chain(self.gathered.iter_mut().flatten());
        [&mut self.a, &mut self.c].into_iter().chain(hashed).for_each(|v| give_back(std::mem::take(v)));
    }
}

impl SeatParty {
    /// Products, element by element, of [`SharedVector`] or of what lies in an [`crate::ShareArray`]
    /// ([`ShareView`]). One round.
    ///
    /// # Errors
    /// Shapes that differ, those of the channels and devices, and a tag that does not fit.
    pub fn multiply<'a>(
        &mut self,
        session: &mut Session,
        x: impl Into<ShareView<'a>>,
        y: impl Into<ShareView<'a>>,
    ) -> Result<SharedVector, Error> {
        let (x, y) = (x.into(), y.into());
        x.same_shape(y)?;
        self.dots(session, x.ring(), x.len(), [x.parts(), y.parts()])
    }

    /// Dot products: element i is the sum of `x[t][i] y[t][i]` over the terms t. One round, the price of one
    /// product.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`]; when there is no term.
    pub fn dot(
        &mut self,
        session: &mut Session,
        x: &[&SharedVector],
        y: &[&SharedVector],
    ) -> Result<SharedVector, Error> {
        let Some(first) = x.first().filter(|_| x.len() == y.len()) else {
            return Err(Error::misuse("a dot product has as many terms on both sides, at least one"));
        };
        x.iter().chain(y).try_for_each(|term| first.same_shape(term))?;
        let gather = |terms: &[&SharedVector]| -> [Vec<Block>; 3] {
            std::array::from_fn(|k| terms.iter().map(|term| term.parts()[k]).collect::<Vec<_>>().concat())
        };
        let [x, y] = [gather(x), gather(y)].map(Zeroizing::new);
        let factors = [x.each_ref().map(Vec::as_slice), y.each_ref().map(Vec::as_slice)];
        self.dots(session, first.ring(), first.len(), factors)
    }

    /// As [`SeatParty::dot`], with all terms of a factor behind each other: term t is the `len` elements from
    /// `t len` on. One round, the price of a product of `len` elements.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`]; terms that do not fill blocks ([`VectorRing::lanes`]), or none.
    pub fn dot_runs<'a>(
        &mut self,
        session: &mut Session,
        len: usize,
        x: impl Into<ShareView<'a>>,
        y: impl Into<ShareView<'a>>,
    ) -> Result<SharedVector, Error> {
        let (x, y) = (x.into(), y.into());
        x.same_shape(y)?;
        let (ring, all) = (x.ring(), x.len());
        if len == 0 || all == 0 || !len.is_multiple_of(ring.lanes()) || !all.is_multiple_of(len) {
            return Err(Error::misuse(format!(
                "{all} elements are not terms of {len}: a dot product has at least one term, of a multiple \
                 of {} elements",
                ring.lanes()
            )));
        }
        self.dots(session, ring, len, [x.parts(), y.parts()])
    }

    /// The sum of all products `x[i] y[i]`, as `ring.lanes()` elements: lane l has those with i = l modulo
    /// the lanes. One round, the price of a product of one block.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`]; when there is no element.
    pub fn inner(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        y: &SharedVector,
    ) -> Result<SharedVector, Error> {
        x.same_shape(y)?;
        if x.is_empty() {
            return Err(Error::misuse("an inner product has elements"));
        }
        let x = x.without_padding();
        self.dots(session, x.ring(), x.ring().lanes(), [x.parts(), y.parts()])
    }

    /// `len` sums of products; factors are runs of as many blocks as `len` elements have, one run per term.
    pub(crate) fn dots(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        len: usize,
        factors: [[&[Block]; 3]; 2],
    ) -> Result<SharedVector, Error> {
        if let Some(stub) = &mut self.stub {
            let (blocks, all) = (ring.blocks(len), factors[0][0].len());
            stub.quote.multiply(ring, len);
            // The larger half of both factors, where they are gathered.
            stub.scratch(
                6,
                if all > blocks { all / blocks * blocks.div_ceil(2).min(CHUNK_BLOCKS) } else { 0 },
            );
            touch(blocks, factors);
            return Ok(SharedVector::zero(ring, len));
        }
        self.hidden(session)?;
        let (round, mut z) = (self.next_round(), SharedVector::zero(ring, len));
        let blocks = z.blocks();
        let mut checks = self.settings.checked().then(|| Checks::new(self, round, blocks));
        let chunks = chunks(blocks);
        let (before, after) = (self.at(self.seat.after(3)), self.at(self.seat.after(1)));
        let exposed = self.settings.checked() && self.settings.hash != TagHash::Keyed;
        let mut buffers = Buffers::new(blocks.min(CHUNK_BLOCKS), exposed);
        for at in 0..chunks.len() + CHUNKS_AHEAD {
            if let Some(chunk) = chunks.get(at) {
                self.stage_1(round, chunk, factors, &mut z, &mut buffers, checks.as_mut())?;
                let mut link = session.link(before);
                let messages = buffers.messages(chunk.1.len(), chunk.0.sends(self.seat));
                for message in messages.into_iter().filter(|message| !message.is_empty()) {
                    link.send(Block::bytes_of(message))?;
                }
                link.flush()?;
            }
            let Some(chunk) = at.checked_sub(CHUNKS_AHEAD).and_then(|at| chunks.get(at)) else { continue };
            let mut link = session.link(after);
            let messages = buffers.messages_mut(chunk.1.len(), chunk.0.receives(self.seat));
            for message in messages.into_iter().filter(|message| !message.is_empty()) {
                link.recv(Block::bytes_of_mut(message))?;
            }
            self.stage_2(round, chunk, &mut z, &buffers, checks.as_mut())?;
        }
        checks.map_or(Ok(()), |checks| checks.settle(self, round, session))?;
        Ok(z)
    }

    fn stage_1(
        &mut self,
        round: u64,
        (half, range): &(BlockHalf, Range<usize>),
        factors: [[&[Block]; 3]; 2],
        z: &mut SharedVector,
        buffers: &mut Buffers,
        checks: Option<&mut Checks>,
    ) -> Result<(), Error> {
        let (ring, blocks) = (z.ring(), z.blocks());
        let terms = factors[0][0].len() / blocks;
        let whole = terms == 1 || range.len() == blocks;
        let at = if terms == 1 { range.clone() } else { 0..terms * blocks };
        let Buffers { a, c, vouched: [vouched_a, vouched_c], gathered } = buffers;
        if !whole {
            gather(blocks, range.clone(), factors, gathered);
        }
        let of = |i: usize| -> [&[Block]; 3] {
            std::array::from_fn(|k| if whole { &factors[i][k][at.clone()] } else { &gathered[i][k][..] })
        };
        let part = |there: bool| if there { range.len() } else { 0 };
        let (sent, kept) = (part(half.sends(self.seat)), part(!half.sends(self.seat)));
        let (a, c) = (&mut a[..range.len()], &mut c[..sent]);
        let mut run = |vouch: Vouch<'_>| {
            let z = z.parts_mut().map(|part| &mut part[range.clone()]);
            let command = MultiplyStage {
                ring,
                round,
                first: range.start as u64,
                half: *half,
                terms,
                x: of(0),
                y: of(1),
                z,
                a: &mut *a,
                c: &mut *c,
                masked: self.settings.masked,
                vouch,
            };
            self.queue.run(&mut DeviceCommand::Multiply(command))
        };
        let Some(checks) = checks else { return run(Vouch::Nothing) };
        if let Some(done) = with_digests(&mut checks.hashes[0], |digests| run(Vouch::Digest(digests))) {
            return done;
        }
        let (vouched_a, vouched_c) = (&mut vouched_a[..range.len()], &mut vouched_c[..kept]);
        run(Vouch::Expose { a: &mut *vouched_a, c: &mut *vouched_c })?;
        let [of_a, of_c] = &mut checks.hashes[0];
        self.hash(checks.vouched[0], of_a, vouched_a);
        self.hash(checks.vouched[1], of_c, vouched_c);
        Ok(())
    }

    fn stage_2(
        &mut self,
        round: u64,
        (half, range): &(BlockHalf, Range<usize>),
        z: &mut SharedVector,
        buffers: &Buffers,
        checks: Option<&mut Checks>,
    ) -> Result<(), Error> {
        let (ring, masked) = (z.ring(), self.settings.masked);
        let [a, c] = buffers.messages(range.len(), half.receives(self.seat));
        let mut run = |digests: Option<&mut [Block; 2]>| {
            let [_, z1, z2] = z.parts_mut().map(|part| &mut part[range.clone()]);
            let first = range.start as u64;
            let command = FoldStage { ring, round, first, half: *half, z: [z1, z2], a, c, masked, digests };
            self.queue.run(&mut DeviceCommand::Fold(command))
        };
        let Some(checks) = checks else { return run(None) };
        if let Some(done) = with_digests(&mut checks.hashes[1], |digests| run(Some(digests))) {
            return done;
        }
        run(None)?;
        let [of_a, of_c] = &mut checks.hashes[1];
        self.hash(checks.received[0], of_a, a);
        self.hash(checks.received[1], of_c, c);
        Ok(())
    }
}

/// Puts the same blocks of all terms behind each other, as the terms of a vector of its own.
fn gather(blocks: usize, range: Range<usize>, factors: [[&[Block]; 3]; 2], into: &mut [[Vec<Block>; 3]; 2]) {
    for (part, into) in factors.iter().flatten().zip(into.iter_mut().flatten()) {
        let needed = part.len() / blocks * range.len();
        if into.capacity() < needed {
            give_back(std::mem::replace(into, room(needed)));
        }
        // Who wipes it later sees its length alone.
        let rest = needed.min(into.len());
        wipe(&mut into[rest..]);
        into.clear();
        part.chunks_exact(blocks).for_each(|term| into.extend_from_slice(&term[range.clone()]));
    }
}

/// What is read of factors in the program's memory, in the order of stage 1.
fn touch(blocks: usize, factors: [[&[Block]; 3]; 2]) {
    let several = factors[0][0].len() > blocks;
    for (_, range) in chunks(blocks) {
        for part in factors.into_iter().flatten() {
            osprey::touch_read(if several { part } else { &part[range.clone()] });
        }
    }
}
