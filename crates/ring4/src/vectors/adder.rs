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

use crate::vectors::arithmetic::ArithmeticShares;
use crate::vectors::sides::{Side, SideEntry, Term};
use crate::{Planes, RoundQuote, SeatParty, VectorRing};
use base::Error;
use net::Session;

/// Bits of a group where a carry is wanted.
pub(crate) const CARRY_GROUP: u32 = 3;
/// Bits of a group where all bits are wanted.
pub(crate) const SUM_GROUP: u32 = 2;

/// What a run of bits does with carries. The lowest run has nothing below it to pass on.
pub(crate) struct Node<V> {
    pub generate: V,
    pub propagate: Option<V>,
}

/// One-hot planes of a group, of its low and of its high side: index a - 1 says whether the group is a.
pub(crate) struct DigitGroup<V> {
    low: Vec<V>,
    high: Vec<V>,
}

/// Sizes of the groups of so many bits, the lowest first.
pub(crate) fn group_sizes(width: u32, size: u32) -> Vec<u32> {
    (0..width).step_by(size as usize).map(|from| size.min(width - from)).collect()
}

impl<V: ArithmeticShares> DigitGroup<V> {
    /// The group of the lowest `bits` bits.
    pub fn lowest(&self, party: &mut SeatParty, bits: u32) -> Result<Self, Error> {
        let size = 1 << bits;
        if self.low.len() == size - 1 {
            return Ok(Self { low: self.low.clone(), high: self.high.clone() });
        }
        let mut side = |hot: &[V]| -> Result<Vec<V>, Error> {
            (1..size).map(|a| party.sum_of(hot.iter().skip(a - 1).step_by(size))).collect()
        };
        Ok(Self { low: side(&self.low)?, high: side(&self.high)? })
    }

    /// Bit i of the low side plus bit i of the high side.
    pub fn half_sum(&self, party: &mut SeatParty, i: u32) -> Result<V, Error> {
        let set = (0..self.low.len()).filter(|a| (a + 1) >> i & 1 == 1);
        party.sum_of(set.flat_map(|a| [&self.low[a], &self.high[a]]))
    }

    /// `[v >= t]` for t = 1, 2, ...
    fn at_least(&self, party: &mut SeatParty) -> Result<Vec<V>, Error> {
        (0..self.high.len()).map(|t| party.sum_of(&self.high[t..])).collect()
    }

    /// `[group = 0]` of a side.
    fn zero(&self, side: Side, party: &mut SeatParty) -> Result<V, Error> {
        let hot = if side == Side::Low { &self.low } else { &self.high };
        let terms: Vec<_> = hot.iter().map(|hot| (hot, 1)).collect();
        V::combine(party, &terms, Some((side.summands()[0], 1)))
    }
}

/// Factors of the sums that say what groups do with carries.
struct Factors<V> {
    at_least: Vec<V>,
    zeros: [V; 2],
}

impl<V: ArithmeticShares> Factors<V> {
    fn new(group: &DigitGroup<V>, party: &mut SeatParty) -> Result<Self, Error> {
        let zeros = [group.zero(Side::Low, party)?, group.zero(Side::High, party)?];
        Ok(Self { at_least: group.at_least(party)?, zeros })
    }

    fn generate<'a>(&'a self, group: &'a DigitGroup<V>) -> Vec<Term<'a, V>> {
        group.low.iter().zip(self.at_least.iter().rev()).collect()
    }

    fn propagate<'a>(&'a self, group: &'a DigitGroup<V>) -> Vec<Term<'a, V>> {
        let last = group.low.len() - 1;
        let middle = (0..last).map(|a| (&group.low[a], &group.high[last - 1 - a]));
        let ends = [(&self.zeros[0], &group.high[last]), (&group.low[last], &self.zeros[1])];
        middle.chain(ends).collect()
    }
}

impl SeatParty {
    /// Enters the one-hot planes of all groups of all values, of both sides, and plain planes besides. Values
    /// of `width` low bits lie behind each other in every plane. One round.
    pub(crate) fn enter_groups<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        values: &[&V],
        (width, size): (u32, u32),
        top: bool,
    ) -> Result<(Vec<DigitGroup<V>>, Vec<V>), Error> {
        let (ring, len) = (values[0].ring(), values[0].len());
        let blocks = values.len() * VectorRing::Z2.blocks(len);
        let sizes = group_sizes(width, size);
        let hot: usize = sizes.iter().map(|size| (1 << size) - 1).sum();
        let per_side = hot + usize::from(top);
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let known = values.iter().map(|value| value.side(self, side)).collect::<Result<Vec<_>, _>>()?;
            let planes = V::planes(self, (ring, len), &known, (0, width + u32::from(top)))?;
            let value = V::one_hot(self, &planes, blocks, &sizes)?;
            entries.push(SideEntry { side, shape: (VectorRing::Z2, per_side * blocks * 128), value });
        }
        let entered = values[0].enter(self, session, entries)?;
        let lens = vec![blocks * 128; per_side];
        let mut sides = entered.iter().map(|side| side.cut(&lens).into_iter());
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
    pub(crate) fn nodes<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        groups: &[DigitGroup<V>],
        bottom: usize,
    ) -> Result<Vec<Node<V>>, Error> {
        if groups.is_empty() {
            return Ok(Vec::new());
        }
        let factors = groups.iter().map(|group| Factors::new(group, self)).collect::<Result<Vec<_>, _>>()?;
        let mut sums = Vec::new();
        for (i, (group, factors)) in groups.iter().zip(&factors).enumerate() {
            sums.push(factors.generate(group));
            if i >= bottom && group.low.len() > 1 {
                sums.push(factors.propagate(group));
            }
        }
        let mut products = V::cross(self, session, &sums)?.into_iter();
        let mut next = || products.next().expect("one result per sum");
        let mut nodes = Vec::new();
        for (i, group) in groups.iter().enumerate() {
            let generate = next();
            let propagate = match (i < bottom, group.low.len()) {
                (true, _) => None,
                (false, 1) => Some(group.half_sum(self, 0)?),
                (false, _) => Some(next()),
            };
            nodes.push(Node { generate, propagate });
        }
        Ok(nodes)
    }

    /// Nodes of two shared words. One round.
    pub(crate) fn word_nodes<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        a: &[V],
        b: &[V],
    ) -> Result<Vec<Node<V>>, Error> {
        let generated = self.ands(session, &a.iter().zip(b).collect::<Vec<_>>())?;
        let node = |(i, generate): (usize, V)| {
            let propagate = if i == 0 { None } else { Some(self.plus(&a[i], &b[i])?) };
            Ok(Node { generate, propagate })
        };
        generated.into_iter().enumerate().map(node).collect()
    }

    /// Combines nodes with those below them. One round.
    fn combine<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        pairs: &[(&Node<V>, &Node<V>)],
    ) -> Result<Vec<Node<V>>, Error> {
        let passes = |node: &Node<V>| {
            node.propagate.clone().ok_or_else(|| Error::misuse("only the lowest run is last"))
        };
        let above = pairs.iter().map(|(node, _)| passes(node)).collect::<Result<Vec<_>, _>>()?;
        let mut ands = Vec::new();
        for ((_, below), p) in pairs.iter().zip(&above) {
            ands.push((p, &below.generate));
            ands.extend(below.propagate.as_ref().map(|q| (p, q)));
        }
        let mut products = self.ands(session, &ands)?.into_iter();
        let mut next = || products.next().expect("one result per AND");
        let node = |(node, below): &(&Node<V>, &Node<V>)| {
            let generate = self.plus(&node.generate, &next())?;
            Ok(Node { generate, propagate: below.propagate.is_some().then(&mut next) })
        };
        pairs.iter().map(node).collect()
    }

    /// Combines neighbours.
    fn halve<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        nodes: &[Node<V>],
    ) -> Result<Vec<Node<V>>, Error> {
        self.combine(session, &nodes.chunks_exact(2).map(|pair| (&pair[1], &pair[0])).collect::<Vec<_>>())
    }

    /// The carry out of all runs.
    pub(crate) fn carry_out<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        nodes: Vec<Node<V>>,
    ) -> Result<V, Error> {
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
    pub(crate) fn carries<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        nodes: &[Node<V>],
    ) -> Result<Vec<V>, Error> {
        if nodes.len() < 2 {
            return Ok(nodes.iter().map(|node| node.generate.clone()).collect());
        }
        let halves = self.halve(session, nodes)?;
        let odd = self.carries(session, &halves)?;
        let below = |carry: &V| Node { generate: carry.clone(), propagate: None };
        let lower: Vec<Node<V>> = odd.iter().map(below).collect();
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
    pub fn add_words<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        a: &Planes<V>,
        b: &Planes<V>,
    ) -> Result<Planes<V>, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("add", VectorRing::Z2, width), len, |q| q.add_words(len, width)) {
            return a.zeros(self);
        }
        if let Some([a, b]) = Planes::onto_device(self, [a, b], a.blocks())? {
            let sum = self.add_words(session, &a, &b)?;
            return Planes::from_device(self, sum);
        }
        let last = a.planes().len() - 1;
        let nodes = self.word_nodes(session, &a.planes()[..last], &b.planes()[..last])?;
        let carries = self.carries(session, &nodes)?;
        Planes::new(self.sums(a.planes(), b.planes(), &carries)?)
    }

    /// Sums of bits and of the carries into all but the lowest.
    pub(crate) fn sums<V: ArithmeticShares>(
        &mut self,
        a: &[V],
        b: &[V],
        carries: &[V],
    ) -> Result<Vec<V>, Error> {
        let bit = |(i, (a, b)): (usize, (&V, &V))| {
            let carry = i.checked_sub(1).map(|below| &carries[below]);
            self.sum_of([a, b].into_iter().chain(carry))
        };
        a.iter().zip(b).enumerate().map(bit).collect()
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
