//! One batch of rows at one party: its shares, and what it says and hears in each round.
//!
//! A correlated OT serves as follows. The sender holds q, the receiver a random bit r and q + r Delta. In its
//! round the receiver says d = r + c, c its choice; then k_0 = q + d Delta and k_1 = k_0 + Delta are such
//! that it holds k_c. Pads are H(index, k, block): the index is the number of the batch and of the COT, and
//! no pair repeats.

use crate::inputs::{Feed, Inputs};
use crate::planes::{ByteTemps, Squeeze, byte_planes, clear, low_planes, pack};
use crate::schedule::{Cross, In, Leaf, Local, PadSlice, PartyStep, Product, Round, Schedule};
use base::{Error, PartyId, Rng};
use kernels::{Block, TweakedHash, xor_masked};
use program::lower::{JoinedPlan, MaskSource, RowPlan};
use program::{NodeId, Program, ValueType};
use zeroize::Zeroize;

/// Tweak field of this protocol, so that no other use of a session's hash meets it.
const WORKER: u16 = 0xfffc;
/// Every byte 1.
const ONES: u128 = u128::MAX / 255;

/// What a batch needs of its lane.
pub(super) struct Context<'a> {
    pub me: PartyId,
    pub program: &'a Program,
    pub plan: &'a RowPlan,
    /// Where nodes are words of rows that enter as shares.
    pub joined: Option<&'a JoinedPlan>,
    /// Types of the nodes.
    pub types: &'a [ValueType],
    pub schedule: &'a Schedule,
    /// Nodes that this party computes in the clear.
    pub wanted: Vec<bool>,
    /// Of the OTs in which this party sends, and in which it receives.
    pub hashes: [TweakedHash; 2],
    pub delta: Block,
    pub rng: Rng,
    /// The OTs of the batches in flight.
    pub ots: Ots,
    pub scratch: Scratch,
}

/// Buffers that live for one operation.
#[derive(Default)]
pub(super) struct Scratch {
    pads: [Vec<Block>; 2],
    keys: Vec<Block>,
    blocks: Vec<Block>,
    numbers: Vec<u128>,
    planes: [Vec<u64>; 2],
    bytes: Vec<u8>,
}

/// OTs of the batches in flight, batch by batch and COT by COT over all lanes.
#[derive(Default)]
pub(super) struct Ots {
    /// Of this party as sender.
    pub q: Vec<Block>,
    /// Of this party as receiver, and its random choices.
    pub t: Vec<Block>,
    pub choices: Vec<u64>,
}

impl Drop for Ots {
    fn drop(&mut self) {
        self.q.zeroize();
        self.t.zeroize();
        self.choices.zeroize();
    }
}

/// Reads what a peer said, piece by piece; the length was stated by this side.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(bytes);
        self.0 = tail;
        head
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("8 bytes per word"))
}

/// One batch.
#[derive(Default)]
pub(super) struct Batch {
    /// Number in the lane: part of every tweak.
    pub number: u64,
    pub lanes: usize,
    words: usize,
    values: Inputs,
    planes: Vec<u64>,
    temps: ByteTemps,
    /// Where its OTs begin, of this party as sender and as receiver.
    pub ots: [usize; 2],
}

impl Batch {
    /// Starts a batch over `count` rows from row `from` on.
    pub fn load(
        &mut self,
        cx: &Context<'_>,
        number: u64,
        feed: &mut Feed<'_>,
        (from, count): (u64, usize),
    ) -> Result<(), Error> {
        (self.number, self.lanes) = (number, count.next_multiple_of(64));
        self.words = self.lanes / 64;
        match feed {
            Feed::Rows(rows) => {
                self.values.evaluate(&cx.program.row, &cx.wanted, (from, count, self.lanes), *rows)?;
            }
            Feed::Joined(rows) => {
                let joined = cx.joined.expect("joined rows have a plan of their own");
                self.values.read(joined, cx.me, (from, count, self.lanes), *rows)?;
            }
        }
        self.planes.clear();
        self.planes.resize(cx.schedule.slots * self.words, 0);
        for entry in &cx.schedule.entries {
            pack(self.values.get(entry.node), &entry.bits, self.words, &mut self.planes);
        }
        clear(&mut self.temps, cx.plan, self.lanes);
        Ok(())
    }

    /// A node as two's complement numbers.
    pub fn numbers(&self, ty: ValueType, node: NodeId) -> impl Iterator<Item = u128> + use<'_> {
        self.values.numbers(ty, node)
    }

    /// This party's shares of a temporary.
    pub fn temp(&self, temp: u32) -> &[u128] {
        &self.temps[temp as usize]
    }

    fn share(&self, of: In, at: usize) -> u64 {
        self.planes[of.slot as usize * self.words + at] ^ u64::from(of.flip).wrapping_neg()
    }

    /// All ones where the share of a bit is 1.
    fn lane_mask(&self, of: In, lane: usize) -> u128 {
        u128::from(self.share(of, lane / 64) >> (lane % 64) & 1).wrapping_neg()
    }

    fn hash(&self, hash: &TweakedHash, cot: u32, half: usize, keys: &[Block], out: &mut Vec<Block>) {
        out.resize(keys.len(), Block::ZERO);
        hash.hash(Block::tweak(WORKER, self.number, cot.into(), half as u8), keys, out);
    }

    /// Works off what this party does alone before round `stage`.
    pub fn alone(&mut self, cx: &mut Context<'_>, stage: usize) {
        for action in &cx.schedule.stages[stage] {
            match action {
                PartyStep::Compute(word) => self.compute(cx, *word),
                PartyStep::Enter(entry) => {
                    pack(self.values.get(entry.node), &entry.bits, self.words, &mut self.planes);
                }
                PartyStep::Gate(gate) => {
                    for i in 0..self.words {
                        let (a, b) = (self.share(gate.a, i), self.share(gate.b, i));
                        self.planes[gate.out as usize * self.words + i] =
                            if gate.and { a & b } else { a ^ b };
                    }
                }
                PartyStep::Local(local) => self.local(cx, *local),
            }
        }
        // The part of every product of bits that this party makes alone.
        let Some(round) = cx.schedule.rounds.get(stage) else { return };
        for cross in &round.crosses {
            for (field, out) in &cross.fields {
                for i in 0..self.words {
                    let both = self.share(cross.selector, i) & self.share(*field, i);
                    self.planes[*out as usize * self.words + i] = both;
                }
            }
        }
    }

    fn local(&mut self, cx: &mut Context<'_>, local: Local) {
        match local {
            Local::Known { temp, node } => {
                let numbers = self.values.numbers(cx.types[node.index()], node);
                add(&mut self.temps[temp as usize], numbers);
            }
            Local::Add { temp, other } => {
                let from = std::mem::take(&mut self.temps[other as usize]);
                add(&mut self.temps[temp as usize], from.iter().copied());
                self.temps[other as usize] = from;
            }
            Local::Square { temp, other } => {
                let from = std::mem::take(&mut self.temps[other as usize]);
                add(&mut self.temps[temp as usize], from.iter().map(|x| x.wrapping_mul(*x)));
                self.temps[other as usize] = from;
            }
            Local::Multiply { selector, source, temp } => {
                let mut numbers = std::mem::take(&mut cx.scratch.numbers);
                self.source(cx.types, source, &mut numbers);
                numbers.iter_mut().enumerate().for_each(|(l, v)| *v &= self.lane_mask(selector, l));
                add(&mut self.temps[temp as usize], numbers.iter().copied());
                cx.scratch.numbers = numbers;
            }
        }
    }

    /// Computes a word that waited for temporaries.
    fn compute(&mut self, cx: &Context<'_>, word: NodeId) {
        let joined = cx.joined.expect("words that wait are those of joined rows");
        self.values.compute(joined, cx.me, word, self.lanes, &self.temps);
    }

    /// What this party multiplies, lane by lane.
    fn source(&self, types: &[ValueType], source: MaskSource, out: &mut Vec<u128>) {
        out.clear();
        let temp = |temp: u32| self.temps[temp as usize].iter();
        match source {
            MaskSource::Constant(value) => out.resize(self.lanes, value),
            MaskSource::Node(node) => out.extend(self.values.numbers(types[node.index()], node)),
            MaskSource::Own(of) | MaskSource::Temp(of) => out.extend(temp(of)),
            MaskSource::Shifted { temp: of, by } => out.extend(temp(of).map(|x| x << by)),
        }
    }

    /// Appends the choices of this party's OTs of a round, each XORed with its random bit.
    pub fn choose(&self, cx: &Context<'_>, round: &Round, message: &mut Vec<u8>) {
        let mut say = |cot: u32, of: In| {
            let random = &cx.ots.choices[self.ots[1] / 64 + cot as usize * self.words..][..self.words];
            for (i, random) in random.iter().enumerate() {
                message.extend_from_slice(&(random ^ self.share(of, i)).to_le_bytes());
            }
        };
        let peer = cx.me.other();
        for leaf in round.leaves.iter().filter(|l| l.sender == peer) {
            for (i, slot) in leaf.choices.iter().enumerate() {
                say(leaf.cot + i as u32, In { slot: *slot, flip: false });
            }
        }
        for cross in &round.crosses {
            if let Some(cot) = cross.cots[peer.index()] {
                say(cot, cross.selector);
            }
        }
        for product in round.products.iter().filter(|p| p.sender == peer) {
            say(product.cot, product.selector);
        }
    }

    /// Answers the peer's choices of a round.
    pub fn answer(&mut self, cx: &mut Context<'_>, round: &Round, choices: &[u8], message: &mut Vec<u8>) {
        let mut choices = Reader(choices);
        let me = cx.me;
        for leaf in round.leaves.iter().filter(|l| l.sender == me) {
            for i in 0..u32::from(leaf.bits) {
                self.correct(cx, leaf.cot + i, &mut choices);
            }
            self.answer_leaf(cx, leaf, message);
        }
        for cross in &round.crosses {
            if let Some(cot) = cross.cots[me.index()] {
                self.correct(cx, cot, &mut choices);
                self.answer_cross(cx, cross, cot, message);
            }
        }
        for product in round.products.iter().filter(|p| p.sender == me) {
            self.correct(cx, product.cot, &mut choices);
            self.answer_product(cx, product, message);
        }
    }

    /// Takes in the peer's answers of a round.
    pub fn absorb(&mut self, cx: &mut Context<'_>, round: &Round, answers: &[u8]) {
        let mut answers = Reader(answers);
        let peer = cx.me.other();
        for leaf in round.leaves.iter().filter(|l| l.sender == peer) {
            self.absorb_leaf(cx, leaf, &mut answers);
        }
        for cross in &round.crosses {
            if let Some(cot) = cross.cots[peer.index()] {
                self.absorb_cross(cx, cross, cot, &mut answers);
            }
        }
        for product in round.products.iter().filter(|p| p.sender == peer) {
            self.absorb_product(cx, product, &mut answers);
        }
    }

    /// The keys of a COT, in which this party sends (0) or receives (1).
    fn range(&self, role: usize, cot: u32) -> std::ops::Range<usize> {
        let at = self.ots[role] + cot as usize * self.lanes;
        at..at + self.lanes
    }

    /// Turns q into k_0, by the peer's correction.
    fn correct(&self, cx: &mut Context<'_>, cot: u32, choices: &mut Reader<'_>) {
        let said = choices.take(8 * self.words);
        let keys = &mut cx.ots.q[self.range(0, cot)];
        for (keys, said) in keys.chunks_mut(64).zip(said.chunks_exact(8)) {
            xor_masked(keys, &[word(said)], cx.delta);
        }
    }

    /// Pads of both keys of a COT in which this party sends.
    fn pads(&self, cx: &mut Context<'_>, cot: u32, half: usize) {
        let Scratch { pads: [zero, one], keys, .. } = &mut cx.scratch;
        let q = &cx.ots.q[self.range(0, cot)];
        keys.clear();
        keys.extend(q.iter().map(|q| *q ^ cx.delta));
        self.hash(&cx.hashes[0], cot, half, q, zero);
        self.hash(&cx.hashes[0], cot, half, keys, one);
    }

    /// The pad of the key that this party holds.
    fn pad(&self, cx: &mut Context<'_>, cot: u32, half: usize) {
        let t = &cx.ots.t[self.range(1, cot)];
        self.hash(&cx.hashes[1], cot, half, t, &mut cx.scratch.pads[0]);
    }

    fn answer_leaf(&mut self, cx: &mut Context<'_>, leaf: &Leaf, message: &mut Vec<u8>) {
        for at in (0..leaf.width()).step_by(8) {
            let bits = (leaf.width() - at).min(8);
            let mut own = std::mem::take(&mut cx.scratch.bytes);
            own.resize(self.lanes, 0);
            rand_core::Rng::fill_bytes(&mut cx.rng, &mut own);
            own.iter_mut().for_each(|byte| *byte &= 0xff >> (8 - bits));
            let mut blocks = std::mem::take(&mut cx.scratch.blocks);
            self.leaves(leaf, at, bits, &own, &mut blocks);
            for i in 0..leaf.bits {
                self.pads(cx, leaf.cot + u32::from(i), at / 8);
                mask_leaves(i, &cx.scratch.pads, &mut blocks);
            }
            // Pads fill whole bytes; what is sent is as wide as a leaf.
            let squeeze = Squeeze::new(bits, leaf.bits);
            let (each, used) = (leaf.plane_bytes(bits), ONES * (0xff >> (8 - bits)));
            let start = message.len();
            message.resize(start + each * self.lanes, 0);
            write(each, &mut message[start..], |l| squeeze.squeeze(blocks[l].0 & used));
            self.put_bytes(leaf, at, &own);
            (cx.scratch.bytes, cx.scratch.blocks) = (own, blocks);
        }
    }

    /// Bits `at ..` of all leaves, XORed with this party's share: leaf x is byte x.
    fn leaves(&self, leaf: &Leaf, at: usize, bits: usize, own: &[u8], blocks: &mut Vec<Block>) {
        blocks.clear();
        blocks.extend(own.iter().map(|byte| Block(ONES * u128::from(*byte))));
        for bit in 0..bits {
            let values = self.values.get(leaf.keys[(at + bit) % leaf.keys.len()]);
            let digits = values.iter().map(|value| (value >> leaf.shift) as u64 & 15);
            if at + bit < leaf.keys.len() {
                blocks.iter_mut().zip(digits).for_each(|(b, d)| b.0 ^= greater(d) << bit);
            } else {
                blocks.iter_mut().zip(digits).for_each(|(b, d)| b.0 ^= equal(d) << bit);
            }
        }
    }

    /// Writes the bytes of all lanes into the slots of a leaf's bits from `at` on.
    fn put_bytes(&mut self, leaf: &Leaf, at: usize, bytes: &[u8]) {
        let words = self.words;
        byte_planes(bytes, |bit, word, plane| {
            if let Some(slot) = leaf.outs.get(at + bit) {
                self.planes[*slot as usize * words + word] = plane;
            }
        });
    }

    fn absorb_leaf(&mut self, cx: &mut Context<'_>, leaf: &Leaf, answers: &mut Reader<'_>) {
        for at in (0..leaf.width()).step_by(8) {
            let bits = (leaf.width() - at).min(8);
            let each = leaf.plane_bytes(bits);
            let squeeze = Squeeze::new(bits, leaf.bits);
            let mut blocks = std::mem::take(&mut cx.scratch.blocks);
            blocks.clear();
            read(each, answers.take(each * self.lanes), |_, block| {
                blocks.push(Block(squeeze.stretch(block)))
            });
            for i in 0..leaf.bits {
                self.pad(cx, leaf.cot + u32::from(i), at / 8);
                kernels::xor_into(&mut blocks, &cx.scratch.pads[0]);
            }
            let mut bytes = std::mem::take(&mut cx.scratch.bytes);
            bytes.clear();
            let digit = |value: &u128| (value >> leaf.shift) as u64 & ((1 << leaf.bits) - 1);
            let values = self.values.get(leaf.bound);
            bytes.extend(blocks.iter().zip(values).map(|(b, v)| pick(*b, digit(v))));
            self.put_bytes(leaf, at, &bytes);
            (cx.scratch.bytes, cx.scratch.blocks) = (bytes, blocks);
        }
    }

    fn answer_cross(&mut self, cx: &mut Context<'_>, cross: &Cross, cot: u32, message: &mut Vec<u8>) {
        self.pads(cx, cot, 0);
        let Scratch { pads, planes: [zero, one], .. } = &mut cx.scratch;
        low_planes(&pads[0], cross.fields.len(), zero);
        low_planes(&pads[1], cross.fields.len(), one);
        for (f, (field, out)) in cross.fields.iter().enumerate() {
            for i in 0..self.words {
                let at = f * self.words + i;
                message.extend_from_slice(&(self.share(*field, i) ^ zero[at] ^ one[at]).to_le_bytes());
                self.planes[*out as usize * self.words + i] ^= zero[at];
            }
        }
    }

    fn absorb_cross(&mut self, cx: &mut Context<'_>, cross: &Cross, cot: u32, answers: &mut Reader<'_>) {
        self.pad(cx, cot, 0);
        let Scratch { pads, planes: [pad, _], .. } = &mut cx.scratch;
        low_planes(&pads[0], cross.fields.len(), pad);
        for (f, (_, out)) in cross.fields.iter().enumerate() {
            let said = answers.take(8 * self.words);
            for (i, said) in said.chunks_exact(8).enumerate() {
                let share = pad[f * self.words + i] ^ self.share(cross.selector, i) & word(said);
                self.planes[*out as usize * self.words + i] ^= share;
            }
        }
    }

    fn answer_product(&mut self, cx: &mut Context<'_>, product: &Product, message: &mut Vec<u8>) {
        let mut numbers = std::mem::take(&mut cx.scratch.numbers);
        let mut hashed = usize::MAX;
        for slice in &product.slices {
            if hashed != slice.word {
                self.pads(cx, product.cot, slice.word);
                hashed = slice.word;
            }
            self.source(cx.types, slice.source, &mut numbers);
            let start = message.len();
            message.resize(start + slice.bytes * self.lanes, 0);
            let mut temp = std::mem::take(&mut self.temps[slice.temp as usize]);
            let [zero, one] = &cx.scratch.pads;
            write(slice.bytes, &mut message[start..], |l| {
                let (v, mine) = (numbers[l], self.lane_mask(product.selector, l));
                let (h0, h1) = (zero[l].0 >> (8 * slice.byte), one[l].0 >> (8 * slice.byte));
                temp[l] = temp[l].wrapping_add(v & mine).wrapping_sub(h0);
                // With this party's share of the bit set, the other one's chooses -v instead of v.
                let signed = (v ^ mine).wrapping_sub(mine);
                signed.wrapping_add(h0).wrapping_sub(h1)
            });
            self.temps[slice.temp as usize] = temp;
        }
        cx.scratch.numbers = numbers;
    }

    fn absorb_product(&mut self, cx: &mut Context<'_>, product: &Product, answers: &mut Reader<'_>) {
        let mut hashed = usize::MAX;
        for PadSlice { temp, bytes, word, byte, .. } in &product.slices {
            if hashed != *word {
                self.pad(cx, product.cot, *word);
                hashed = *word;
            }
            let said = answers.take(bytes * self.lanes);
            let mut shares = std::mem::take(&mut self.temps[*temp as usize]);
            read(*bytes, said, |l, z| {
                let chosen = z & self.lane_mask(product.selector, l);
                let pad = cx.scratch.pads[0][l].0 >> (8 * byte);
                shares[l] = shares[l].wrapping_add(pad).wrapping_add(chosen);
            });
            self.temps[*temp as usize] = shares;
        }
    }
}

/// Calls `$work::<N>` for the number of bytes: copies of a length known to the compiler are plain moves.
macro_rules! by_length {
    ($bytes:expr, $work:ident, $($argument:expr),*) => {
        match $bytes {
            1 => $work::<1>($($argument),*),
            2 => $work::<2>($($argument),*),
            3 => $work::<3>($($argument),*),
            4 => $work::<4>($($argument),*),
            5 => $work::<5>($($argument),*),
            6 => $work::<6>($($argument),*),
            7 => $work::<7>($($argument),*),
            8 => $work::<8>($($argument),*),
            9 => $work::<9>($($argument),*),
            10 => $work::<10>($($argument),*),
            11 => $work::<11>($($argument),*),
            12 => $work::<12>($($argument),*),
            13 => $work::<13>($($argument),*),
            14 => $work::<14>($($argument),*),
            15 => $work::<15>($($argument),*),
            _ => $work::<16>($($argument),*),
        }
    };
}

/// Fills a message with the low `bytes` bytes of a number per lane.
#[inline(always)]
fn write(bytes: usize, message: &mut [u8], number: impl FnMut(usize) -> u128) {
    fn all<const N: usize>(message: &mut [u8], mut number: impl FnMut(usize) -> u128) {
        for (l, out) in message.chunks_exact_mut(N).enumerate() {
            out.copy_from_slice(&number(l).to_le_bytes()[..N]);
        }
    }
    by_length!(bytes, all, message, number);
}

/// Gives every lane's number of a message with `bytes` bytes each.
#[inline(always)]
fn read(bytes: usize, message: &[u8], lane: impl FnMut(usize, u128)) {
    fn all<const N: usize>(message: &[u8], mut lane: impl FnMut(usize, u128)) {
        for (l, said) in message.chunks_exact(N).enumerate() {
            let mut number = [0; 16];
            number[..N].copy_from_slice(said);
            lane(l, u128::from_le_bytes(number));
        }
    }
    by_length!(bytes, all, message, lane);
}

fn add(into: &mut [u128], numbers: impl Iterator<Item = u128>) {
    into.iter_mut().zip(numbers).for_each(|(a, b)| *a = a.wrapping_add(b));
}

/// Byte x is 1 where `digit > x`: bit 4 of digit + 15 - x. Digits are below 16, so no byte carries.
#[inline]
fn greater(digit: u64) -> u128 {
    let all = u128::from(digit * ONES as u64);
    let sums = (all | all << 64) + 0x0001_0203_0405_0607_0809_0a0b_0c0d_0e0f;
    sums >> 4 & ONES
}

/// Byte x is 1 where `digit == x`: bit 4 of 16 - (digit xor x).
#[inline]
fn equal(digit: u64) -> u128 {
    let all = u128::from(digit * ONES as u64);
    let differences = (all | all << 64) ^ 0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100;
    (ONES * 16 - differences) >> 4 & ONES
}

/// Masks leaf x with byte x of the pad of bit `i` of x: a pad of its own for every leaf. Pads that sum whole
/// keys would be linear in x, and four of them would sum to zero.
fn mask_leaves(i: u8, pads: &[Vec<Block>; 2], blocks: &mut [Block]) {
    let ones = (0..16).filter(|x| x >> i & 1 == 1).fold(0, |m: u128, x| m | 0xff << (8 * x));
    for ((block, zero), one) in blocks.iter_mut().zip(&pads[0]).zip(&pads[1]) {
        block.0 ^= zero.0 & !ones | one.0 & ones;
    }
}

/// Byte `x` of a block, by shifts that take the same time for all.
#[inline]
fn pick(block: Block, x: u64) -> u8 {
    let (low, high) = (block.0 as u64, (block.0 >> 64) as u64);
    let half = low ^ (low ^ high) & (x >> 3 & 1).wrapping_neg();
    (half >> (8 * (x & 7))) as u8
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod timing_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_the_table() {
        for digit in 0..16u8 {
            for x in 0..16u8 {
                let byte = |block: u128| pick(Block(block), x.into());
                assert_eq!(byte(greater(digit.into())), u8::from(digit > x));
                assert_eq!(byte(equal(digit.into())), u8::from(digit == x));
            }
        }
    }

    /// The pads of leaves are the slices of one expansion that belong to them. Pads that sum whole keys are
    /// linear: those of leaves 0, 1, 2 and 3 sum to zero, which gives a receiver of one leaf a relation
    /// between the others.
    #[test]
    fn pads_of_leaves_are_not_linear() {
        let hash = TweakedHash::new(Block(7));
        let mut blocks = vec![Block::ZERO];
        for i in 0..4u8 {
            let pads = [0u128, 1].map(|b| {
                let mut out = vec![Block::ZERO];
                hash.hash(
                    Block::tweak(WORKER, 0, i.into(), 0),
                    &[Block(1000 + 2 * u128::from(i) + b)],
                    &mut out,
                );
                out
            });
            mask_leaves(i, &pads, &mut blocks);
            // Leaf x depends on the key of its own bit alone, and on no slice of another leaf.
            for x in 0..16 {
                let mut other = pads.clone();
                other[1 - (x >> i & 1)][0] = Block(99);
                other[x >> i & 1][0].0 ^= !(0xff << (8 * x));
                let (mut a, mut b) = (vec![Block::ZERO], vec![Block::ZERO]);
                mask_leaves(i, &pads, &mut a);
                mask_leaves(i, &other, &mut b);
                assert_eq!(pick(a[0], x as u64), pick(b[0], x as u64));
            }
        }
        let pad = |x: u64| pick(blocks[0], x);
        let mut sums = (0..16u64).flat_map(|x| (0..x).map(move |y| (x, y)));
        let mut relations = 0;
        for x in (0..16).step_by(4) {
            relations += u32::from(pad(x) ^ pad(x + 1) ^ pad(x + 2) ^ pad(x + 3) == 0);
        }
        assert_eq!(relations, 0, "pads of a square of leaves sum to zero");
        assert!(sums.any(|(x, y)| pad(x) != pad(y)));
    }
}
