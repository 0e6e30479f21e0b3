//! Carries: parallel prefix over planes, and sums of two sides in groups of bits.
//!
//! **Functionality.** A node says of a run of bits whether it generates a carry and whether it passes one on.
//! Nodes of adjacent runs combine to (g ^ p g', p p'): two ANDs, one where nothing comes in below.
//! [`SeatParty::carry_out`] combines all of them in a tree; [`SeatParty::carries`] gives the carry out of
//! every run from the lowest on, in a network as Brent and Kung's.
//!
//! **Sums of two sides** begin with groups of bits. For every group the two seats of a side know its r bits
//! and enter them one-hot: `[u = a]` for a = 1 .. 2^r - 1. A group generates a carry where the sum over a of
//! `[u = a][v >= 2^r - a]` is 1, and passes one on where that of `[u = a][v = 2^r - 1 - a]` is: one sum of
//! products of a low and a high value each, the price of one product.
//!
//! **Source.** Prefix networks: Brent and Kung (1982). The one-hot groups over two sides are ours.
//!
//! **Cost.** Groups of 3 bits take 14 + 8 bits and save a level and a half of a tree at 12 bits per node:
//! about 11 bits per bit for a carry alone, where single bits take 17. Groups of 2 are the cheapest where all
//! bits are wanted: about 19 bits per bit, where single bits take 21. Rounds: 2 and the depth of the tree or
//! network.

use crate::vectors::planes::transpose;
use crate::vectors::sides::{ClearVector, Side, SideEntry, Term, sum};
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::Block;
use net::Session;

/// Bits of a group where a carry is wanted.
pub(crate) const CARRY_GROUP: u32 = 3;
/// Bits of a group where all bits are wanted.
pub(crate) const SUM_GROUP: u32 = 2;

/// What a run of bits does with carries. The lowest run has nothing below it to pass on.
pub(crate) struct Node {
    pub generate: SharedVector,
    pub propagate: Option<SharedVector>,
}

/// One-hot planes of a group, of its low and of its high side: index a - 1 says whether the group is a.
pub(crate) struct DigitGroup {
    low: Vec<SharedVector>,
    high: Vec<SharedVector>,
}

/// Sizes of the groups of so many bits, the lowest first.
pub(crate) fn group_sizes(width: u32, size: u32) -> Vec<u32> {
    (0..width).step_by(size as usize).map(|from| size.min(width - from)).collect()
}

/// `[group = a]` for a = 1, 2, ..., of planes in the clear.
fn one_hot(planes: &[ClearVector]) -> Vec<ClearVector> {
    let hot = |a: usize| {
        let mut hot = ClearVector::zeros(planes[0].len());
        hot.fill(Block(u128::MAX));
        for (i, plane) in planes.iter().enumerate() {
            let flip = if a >> i & 1 == 1 { 0 } else { u128::MAX };
            hot.iter_mut().zip(plane.iter()).for_each(|(h, p)| h.0 &= p.0 ^ flip);
        }
        hot
    };
    (1..1 << planes.len()).map(hot).collect()
}

impl DigitGroup {
    fn shape(&self) -> (VectorRing, usize) {
        (VectorRing::Z2, self.low[0].len())
    }

    /// The group of the lowest `bits` bits.
    pub fn lowest(&self, bits: u32) -> Result<Self, Error> {
        let size = 1 << bits;
        let marginal =
            |hot: &[SharedVector], a: usize| sum(self.shape(), hot.iter().skip(a - 1).step_by(size));
        let side = |hot: &[SharedVector]| (1..size).map(|a| marginal(hot, a)).collect::<Result<_, _>>();
        Ok(Self { low: side(&self.low)?, high: side(&self.high)? })
    }

    /// Bit i of the low side plus bit i of the high side.
    pub fn half_sum(&self, i: u32) -> Result<SharedVector, Error> {
        let set = (0..self.low.len()).filter(|a| (a + 1) >> i & 1 == 1);
        sum(self.shape(), set.flat_map(|a| [&self.low[a], &self.high[a]]))
    }

    /// `[v >= t]` for t = 1, 2, ...
    fn at_least(&self) -> Result<Vec<SharedVector>, Error> {
        (0..self.high.len()).map(|t| sum(self.shape(), &self.high[t..])).collect()
    }

    /// `[group = 0]` of a side.
    fn zero(&self, side: Side, party: &SeatParty) -> Result<SharedVector, Error> {
        let hot = if side == Side::Low { &self.low } else { &self.high };
        let one = side.constant(self.shape(), party.seat(), Block(u128::MAX));
        sum(self.shape(), hot.iter().chain([&one]))
    }
}

/// Factors of the sums that say what groups do with carries.
struct Factors {
    at_least: Vec<SharedVector>,
    zeros: [SharedVector; 2],
}

impl Factors {
    fn new(group: &DigitGroup, party: &SeatParty) -> Result<Self, Error> {
        let zeros = [group.zero(Side::Low, party)?, group.zero(Side::High, party)?];
        Ok(Self { at_least: group.at_least()?, zeros })
    }

    fn generate<'a>(&'a self, group: &'a DigitGroup) -> Vec<Term<'a>> {
        group.low.iter().zip(self.at_least.iter().rev()).collect()
    }

    fn propagate<'a>(&'a self, group: &'a DigitGroup) -> Vec<Term<'a>> {
        let last = group.low.len() - 1;
        let middle = (0..last).map(|a| (&group.low[a], &group.high[last - 1 - a]));
        let ends = [(&self.zeros[0], &group.high[last]), (&group.low[last], &self.zeros[1])];
        middle.chain(ends).collect()
    }
}

impl SeatParty {
    /// Enters the one-hot planes of all groups of all values, of both sides, and plain planes besides. Values
    /// of `width` low bits lie behind each other in every plane. One round.
    pub(crate) fn enter_groups(
        &mut self,
        session: &mut Session,
        values: &[&SharedVector],
        (width, size): (u32, u32),
        top: bool,
    ) -> Result<(Vec<DigitGroup>, Vec<SharedVector>), Error> {
        let (ring, len) = (values[0].ring(), values[0].len());
        let bits = values.len() * VectorRing::Z2.blocks(len) * 128;
        let sizes = group_sizes(width, size);
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let mut planes = vec![ClearVector::default(); width as usize + usize::from(top)];
            for value in values {
                let of = transpose(ring, len, &side.of(value, self.seat()), planes.len() as u32);
                planes.iter_mut().zip(of).for_each(|(plane, of)| plane.extend_from_slice(&of));
            }
            let mut rest = &planes[..];
            for &size in &sizes {
                let (group, after) = rest.split_at(size as usize);
                rest = after;
                entries.extend(one_hot(group));
            }
            entries.extend(rest.iter().cloned());
        }
        let per_side = entries.len() / 2;
        let all = |planes: &[ClearVector]| ClearVector::joined(planes.iter().map(|p| p.as_slice()));
        let (low, high) = entries.split_at(per_side);
        let shape = (VectorRing::Z2, per_side * bits);
        let entry = |side, planes| SideEntry { side, shape, value: all(planes) };
        let entered = self.enter_sides(session, &[entry(Side::Low, low), entry(Side::High, high)])?;
        let lens = vec![bits; per_side];
        let mut sides = entered.iter().map(|side| crate::vectors::sides::cut(side, &lens).into_iter());
        let (Some(mut low), Some(mut high)) = (sides.next(), sides.next()) else { unreachable!("two sides") };
        let group = |&size: &u32| {
            let hot = (1 << size) - 1;
            DigitGroup { low: low.by_ref().take(hot).collect(), high: high.by_ref().take(hot).collect() }
        };
        let groups = sizes.iter().map(group).collect();
        Ok((groups, low.chain(high).collect()))
    }

    /// What groups do with carries: for every group of the list. One round. The first of them that `bottom`
    /// counts have nothing below; a group of one bit passes on what its bits add up to, without a product.
    pub(crate) fn nodes(
        &mut self,
        session: &mut Session,
        groups: &[DigitGroup],
        bottom: usize,
    ) -> Result<Vec<Node>, Error> {
        let Some(first) = groups.first() else { return Ok(Vec::new()) };
        let shape = first.shape();
        let factors = groups.iter().map(|group| Factors::new(group, self)).collect::<Result<Vec<_>, _>>()?;
        let mut sums = Vec::new();
        for (i, (group, factors)) in groups.iter().zip(&factors).enumerate() {
            sums.push(factors.generate(group));
            if i >= bottom && group.low.len() > 1 {
                sums.push(factors.propagate(group));
            }
        }
        let mut products = self.cross(session, shape, &sums)?.into_iter();
        let mut next = || products.next().expect("one result per sum");
        let mut nodes = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            let generate = next();
            let propagate = match (i < bottom, group.low.len()) {
                (true, _) => None,
                (false, 1) => Some(group.half_sum(0)?),
                (false, _) => Some(next()),
            };
            nodes.push(Node { generate, propagate });
        }
        Ok(nodes)
    }

    /// Nodes of two shared words. One round.
    pub(crate) fn word_nodes(
        &mut self,
        session: &mut Session,
        a: &[SharedVector],
        b: &[SharedVector],
    ) -> Result<Vec<Node>, Error> {
        let generated = self.ands(session, &a.iter().zip(b).collect::<Vec<_>>())?;
        let node = |(i, generate): (usize, SharedVector)| {
            let propagate = if i == 0 { None } else { Some(a[i].plus(&b[i])?) };
            Ok(Node { generate, propagate })
        };
        generated.into_iter().enumerate().map(node).collect()
    }

    /// Combines nodes with those below them. One round.
    fn combine(&mut self, session: &mut Session, pairs: &[(&Node, &Node)]) -> Result<Vec<Node>, Error> {
        let passes =
            |node: &Node| node.propagate.clone().ok_or_else(|| Error::misuse("only the lowest run is last"));
        let above = pairs.iter().map(|(node, _)| passes(node)).collect::<Result<Vec<_>, _>>()?;
        let mut ands = Vec::new();
        for ((_, below), p) in pairs.iter().zip(&above) {
            ands.push((p, &below.generate));
            ands.extend(below.propagate.as_ref().map(|q| (p, q)));
        }
        let mut products = self.ands(session, &ands)?.into_iter();
        let mut next = || products.next().expect("one result per AND");
        let node = |(node, below): &(&Node, &Node)| {
            let generate = node.generate.plus(&next())?;
            Ok(Node { generate, propagate: below.propagate.is_some().then(&mut next) })
        };
        pairs.iter().map(node).collect()
    }

    /// Combines neighbours.
    fn halve(&mut self, session: &mut Session, nodes: &[Node]) -> Result<Vec<Node>, Error> {
        self.combine(session, &nodes.chunks_exact(2).map(|pair| (&pair[1], &pair[0])).collect::<Vec<_>>())
    }

    /// The carry out of all runs.
    pub(crate) fn carry_out(
        &mut self,
        session: &mut Session,
        nodes: Vec<Node>,
    ) -> Result<SharedVector, Error> {
        let mut nodes = nodes;
        while nodes.len() > 1 {
            let mut next = self.halve(session, &nodes)?;
            if nodes.len() % 2 == 1 {
                next.extend(nodes.pop());
            }
            nodes = next;
        }
        nodes.pop().map(|node| node.generate).ok_or_else(|| Error::misuse("a carry has bits below it"))
    }

    /// The carry out of every run from the lowest on.
    pub(crate) fn carries(
        &mut self,
        session: &mut Session,
        nodes: &[Node],
    ) -> Result<Vec<SharedVector>, Error> {
        if nodes.len() < 2 {
            return Ok(nodes.iter().map(|node| node.generate.clone()).collect());
        }
        let halves = self.halve(session, nodes)?;
        let odd = self.carries(session, &halves)?;
        let below = |carry: &SharedVector| Node { generate: carry.clone(), propagate: None };
        let lower: Vec<Node> = odd.iter().map(below).collect();
        let pairs: Vec<_> = nodes.iter().skip(2).step_by(2).zip(&lower).collect();
        let even = self.combine(session, &pairs)?;
        let mut even = even.into_iter().map(|node| node.generate);
        let mut carries = vec![nodes[0].generate.clone()];
        for carry in odd {
            carries.push(carry);
            carries.extend(even.next());
        }
        Ok(carries)
    }

    /// Sums of shared words, modulo `2^width`. 6 bits per bit and those of the network.
    ///
    /// # Errors
    /// Words that differ in shape, and those of [`SeatParty::ands`].
    pub fn add_words(&mut self, session: &mut Session, a: &Planes, b: &Planes) -> Result<Planes, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("add", VectorRing::Z2, width), len, |q| q.add_words(len, width)) {
            return Planes::new(vec![SharedVector::zero(VectorRing::Z2, len); width as usize]);
        }
        let last = a.planes().len() - 1;
        let nodes = self.word_nodes(session, &a.planes()[..last], &b.planes()[..last])?;
        let carries = self.carries(session, &nodes)?;
        let mut sums =
            a.planes().iter().zip(b.planes()).map(|(a, b)| a.plus(b)).collect::<Result<Vec<_>, _>>()?;
        sums.iter_mut().skip(1).zip(&carries).try_for_each(|(sum, carry)| sum.add(carry))?;
        Planes::new(sums)
    }
}

impl RoundQuote {
    /// One-hot planes of groups of so many values, and plain planes.
    pub(crate) fn enter_groups(&mut self, len: usize, values: usize, (width, size): (u32, u32), top: bool) {
        let hot: usize = group_sizes(width, size).iter().map(|size| (1 << size) - 1).sum();
        let bits = (hot + usize::from(top)) * values * VectorRing::Z2.blocks(len) * 128;
        self.enter_sides(&Side::BOTH.map(|side| (side, (VectorRing::Z2, bits))));
    }

    /// The tree over so many nodes.
    pub(crate) fn carry_out(&mut self, len: usize, nodes: usize) {
        let mut left = nodes;
        while left > 1 {
            self.ands(len, left / 2 * 2 - 1);
            left = left.div_ceil(2);
        }
    }

    /// The network over so many nodes.
    pub(crate) fn carries(&mut self, len: usize, nodes: usize) {
        if nodes > 1 {
            self.ands(len, nodes / 2 * 2 - 1);
            self.carries(len, nodes / 2);
            self.ands(len, nodes.div_ceil(2) - 1);
        }
    }

    /// Sums of words.
    pub fn add_words(&mut self, len: usize, width: u32) {
        let below = width as usize - 1;
        self.ands(len, below);
        self.carries(len, below);
    }
}
