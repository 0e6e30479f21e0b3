//! What arithmetic over vectors is made of, wherever these lie: in the host's memory ([`SharedVector`]), or
//! with a device ([`DeviceShares`]). Messages are the same, bit for bit, so seats need not have theirs in
//! the same place.

use crate::vectors::sides::{ClearVector, Shape, Side, SideEntry, Term, concat, cut};
use crate::vectors::spare::room;
use crate::{DeviceShares, Seat, SeatParty, SharedVector, VectorRing};
use accel::{elements_of, planes_of, splat};
use base::Error;
use kernels::Block;
use net::Session;
use std::borrow::Cow;

/// Vectors of shares that operations work on. What is written in terms of it is local but for the last four.
pub trait ArithmeticShares: Clone {
    /// What two seats know of a value in common: blocks where they do, nothing elsewhere.
    type Clear;

    /// Of which elements.
    fn ring(&self) -> VectorRing;

    /// Number of elements.
    fn len(&self) -> usize;

    /// Blocks of each part.
    fn blocks(&self) -> usize {
        self.ring().blocks(self.len())
    }

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sum of multiples by public numbers, at least one, and of a public number in one summand of each.
    ///
    /// # Errors
    /// Shapes that differ, and those of devices, here and below.
    fn combine(
        party: &mut SeatParty,
        terms: &[(&Self, u128)],
        constant: Option<(Seat, u128)>,
    ) -> Result<Self, Error>;

    /// Adds another one.
    ///
    /// # Errors
    /// As above.
    fn gain(&mut self, party: &mut SeatParty, term: &Self) -> Result<(), Error>;

    /// Zeros, where others lie.
    ///
    /// # Errors
    /// As above.
    fn zeros(&self, party: &mut SeatParty, ring: VectorRing, len: usize) -> Result<Self, Error>;

    /// Vectors behind each other, each in whole blocks, at least one.
    ///
    /// # Errors
    /// As above.
    fn concat(party: &mut SeatParty, vectors: &[&Self]) -> Result<Self, Error>;

    /// The inverse: vectors of the lengths said.
    #[must_use]
    fn cut(&self, lens: &[usize]) -> Vec<Self>;

    /// The lowest bit of every element.
    ///
    /// # Errors
    /// As above.
    fn lowest(&self, party: &mut SeatParty) -> Result<Self, Error>;

    /// Elements of 64 bits as elements of 128 bits that are the same modulo 2^64.
    ///
    /// # Errors
    /// As above.
    fn widened(&self, party: &mut SeatParty) -> Result<Self, Error>;

    /// The same where another one lies, if vectors of this kind may lie apart.
    ///
    /// # Errors
    /// As above.
    fn near<'a>(&'a self, party: &mut SeatParty, other: &Self) -> Result<Cow<'a, Self>, Error>;

    /// The same elements, with shares of zero in what fills the last block up.
    ///
    /// # Errors
    /// As above.
    fn trimmed(&self, party: &mut SeatParty) -> Result<Self, Error>;

    /// The sum of both summands of a side.
    ///
    /// # Errors
    /// As above.
    fn side(&self, party: &mut SeatParty, side: Side) -> Result<Self::Clear, Error>;

    /// The lowest `keep` bits of elements divided by `2^by`.
    ///
    /// # Errors
    /// As above.
    fn shifted(
        party: &mut SeatParty,
        ring: VectorRing,
        value: &Self::Clear,
        by: u32,
        signed: bool,
        keep: u32,
    ) -> Result<Self::Clear, Error>;

    /// The highest bit of every element, as elements of another ring.
    ///
    /// # Errors
    /// As above.
    fn tops(
        party: &mut SeatParty,
        shape: Shape,
        value: &Self::Clear,
        ring: VectorRing,
    ) -> Result<Self::Clear, Error>;

    /// The complement of bits.
    ///
    /// # Errors
    /// As above.
    fn flipped(party: &mut SeatParty, bits: &Self::Clear) -> Result<Self::Clear, Error>;

    /// Planes `from .. from + width`, behind each other, of elements of several vectors of a shape, which lie
    /// behind each other in every plane.
    ///
    /// # Errors
    /// As above.
    fn planes(
        party: &mut SeatParty,
        shape: Shape,
        values: &[Self::Clear],
        bits: (u32, u32),
    ) -> Result<Self::Clear, Error>;

    /// Elements of a shape of so many planes.
    ///
    /// # Errors
    /// As above.
    fn elements(
        party: &mut SeatParty,
        shape: Shape,
        planes: &Self::Clear,
        width: u32,
    ) -> Result<Self::Clear, Error>;

    /// Groups of planes of so many blocks one-hot: for a = 1, 2, ... whether the group is a. Planes that are
    /// left over stay as they are.
    ///
    /// # Errors
    /// As above.
    fn one_hot(
        party: &mut SeatParty,
        planes: &Self::Clear,
        blocks: usize,
        groups: &[u32],
    ) -> Result<Self::Clear, Error>;

    /// Random values of a side, where `self` lies, whose summands are below `2^bits`.
    ///
    /// # Errors
    /// As above.
    fn random(&self, party: &mut SeatParty, side: Side, shape: Shape, bits: u32) -> Result<Self, Error>;

    /// Enters what sides know, where `self` lies. One round.
    ///
    /// # Errors
    /// Those of joint inputs.
    fn enter(
        &self,
        party: &mut SeatParty,
        session: &mut Session,
        entries: Vec<SideEntry<Self::Clear>>,
    ) -> Result<Vec<Self>, Error>;

    /// Sums of products of low and high values. One round.
    ///
    /// # Errors
    /// Those of joint inputs.
    fn cross(
        party: &mut SeatParty,
        session: &mut Session,
        sums: &[Vec<Term<'_, Self>>],
    ) -> Result<Vec<Self>, Error>;

    /// Products. One round.
    ///
    /// # Errors
    /// Those of [`SeatParty::multiply`].
    fn product(&self, party: &mut SeatParty, session: &mut Session, by: &Self) -> Result<Self, Error>;

    /// Opens to the seats that know low sides. One round.
    ///
    /// # Errors
    /// Those of [`SeatParty::open_to`].
    fn open_low(&self, party: &mut SeatParty, session: &mut Session) -> Result<Self::Clear, Error>;

    /// These vectors with the party's device, if it has one that takes operations whose rounds are of so many
    /// blocks, and they do not lie there.
    ///
    /// # Errors
    /// Those of the device.
    fn onto_device(
        party: &mut SeatParty,
        vectors: &[&Self],
        blocks: usize,
    ) -> Result<Option<Vec<DeviceShares>>, Error>;

    /// And back.
    ///
    /// # Errors
    /// Those of the device.
    fn from_device(party: &mut SeatParty, vectors: Vec<DeviceShares>) -> Result<Vec<Self>, Error>;
}

impl ArithmeticShares for SharedVector {
    type Clear = ClearVector;

    fn ring(&self) -> VectorRing {
        self.ring()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn combine(
        party: &mut SeatParty,
        terms: &[(&Self, u128)],
        constant: Option<(Seat, u128)>,
    ) -> Result<Self, Error> {
        let Some(((first, by), rest)) = terms.split_first() else {
            return Err(Error::misuse("a sum has a term"));
        };
        let mut sum = if *by == 1 { (*first).clone() } else { first.times(*by) };
        for (x, by) in rest {
            match *by {
                1 => sum.add(x)?,
                u128::MAX => sum.sub(x)?,
                by => sum.add(&x.times(by))?,
            }
        }
        if let Some((seat, number)) = constant
            && let Some(part) = party.seat().part_of(seat)
        {
            let (ring, added) = (sum.ring(), splat(sum.ring(), number));
            sum.parts_mut()[part].iter_mut().for_each(|block| *block = ring.add(*block, added));
        }
        Ok(sum)
    }

    fn gain(&mut self, _: &mut SeatParty, term: &Self) -> Result<(), Error> {
        self.add(term)
    }

    fn zeros(&self, _: &mut SeatParty, ring: VectorRing, len: usize) -> Result<Self, Error> {
        Ok(Self::zero(ring, len))
    }

    fn concat(_: &mut SeatParty, vectors: &[&Self]) -> Result<Self, Error> {
        let first = vectors.first().ok_or_else(|| Error::misuse("no vectors to put behind each other"))?;
        Ok(concat(first.ring(), vectors))
    }

    fn cut(&self, lens: &[usize]) -> Vec<Self> {
        cut(self, lens)
    }

    fn lowest(&self, _: &mut SeatParty) -> Result<Self, Error> {
        Ok(crate::lowest(self))
    }

    fn widened(&self, _: &mut SeatParty) -> Result<Self, Error> {
        let halves = |block: &Block| [Block(block.0 & u128::from(u64::MAX)), Block(block.0 >> 64)];
        let part = |part: &[Block]| part.iter().flat_map(halves).take(self.len()).collect();
        Ok(Self::from_parts(VectorRing::Z128, self.len(), self.parts().map(part)))
    }

    fn near<'a>(&'a self, _: &mut SeatParty, _: &Self) -> Result<Cow<'a, Self>, Error> {
        Ok(Cow::Borrowed(self))
    }

    fn trimmed(&self, _: &mut SeatParty) -> Result<Self, Error> {
        Ok(self.without_padding().into_owned())
    }

    fn side(&self, party: &mut SeatParty, side: Side) -> Result<ClearVector, Error> {
        Ok(side.of(self, party.seat()))
    }

    fn shifted(
        _: &mut SeatParty,
        ring: VectorRing,
        value: &ClearVector,
        by: u32,
        signed: bool,
        keep: u32,
    ) -> Result<ClearVector, Error> {
        let mut shifted = value.clone();
        shifted.iter_mut().for_each(|block| *block = accel::shifted(ring, *block, (by, keep), signed));
        Ok(shifted)
    }

    fn tops(
        party: &mut SeatParty,
        (from, _): Shape,
        value: &ClearVector,
        ring: VectorRing,
    ) -> Result<ClearVector, Error> {
        let tops = Self::shifted(party, from, value, from.bits() - 1, false, 1)?;
        if ring == from {
            return Ok(tops);
        }
        // The low halves of elements of 128 bits, as elements of 64.
        let low = |x: &Block| x.0 & u128::from(u64::MAX);
        let pair = |pair: &[Block]| Block(low(&pair[0]) | pair.get(1).map_or(0, low) << 64);
        Ok(ClearVector::new(tops.chunks(2).map(pair).collect()))
    }

    fn flipped(_: &mut SeatParty, bits: &ClearVector) -> Result<ClearVector, Error> {
        let mut flipped = bits.clone();
        flipped.iter_mut().for_each(|block| block.0 = !block.0);
        Ok(flipped)
    }

    fn planes(
        _: &mut SeatParty,
        (ring, len): Shape,
        values: &[ClearVector],
        (from, width): (u32, u32),
    ) -> Result<ClearVector, Error> {
        if values.iter().any(|value| value.is_empty()) {
            return Ok(ClearVector::default());
        }
        let blocks = VectorRing::Z2.blocks(len);
        let stride = values.len() * blocks;
        let mut all = ClearVector::zeros(width as usize * stride);
        for (i, value) in values.iter().enumerate() {
            let of_value = |plane| -> &mut [Block] {
                let plane: &mut [Block] = plane;
                &mut plane[i * blocks..(i + 1) * blocks]
            };
            let mut planes: Vec<&mut [Block]> = all.chunks_mut(stride).map(of_value).collect();
            planes_of(ring, value, from as usize, &mut planes);
        }
        Ok(all)
    }

    fn elements(
        _: &mut SeatParty,
        (ring, len): Shape,
        planes: &ClearVector,
        width: u32,
    ) -> Result<ClearVector, Error> {
        if planes.is_empty() {
            return Ok(ClearVector::default());
        }
        let mut value = ClearVector::zeros(ring.blocks(len));
        let planes: Vec<&[Block]> = planes.chunks(planes.len() / width as usize).collect();
        elements_of(ring, &planes, &mut value);
        Ok(value)
    }

    fn one_hot(
        _: &mut SeatParty,
        planes: &ClearVector,
        blocks: usize,
        groups: &[u32],
    ) -> Result<ClearVector, Error> {
        if planes.is_empty() {
            return Ok(ClearVector::default());
        }
        let hot: usize = groups.iter().map(|bits| (1 << bits) - 1).sum();
        let bits: usize = groups.iter().map(|bits| *bits as usize).sum();
        let mut all = ClearVector::new(room(hot * blocks + planes.len() - bits * blocks));
        let (grouped, rest) = planes.split_at(bits * blocks);
        let mut grouped = grouped.chunks(blocks);
        for &bits in groups {
            let group: Vec<&[Block]> = grouped.by_ref().take(bits as usize).collect();
            for a in 1..1_usize << bits {
                let from = all.len();
                all.resize(from + blocks, Block(u128::MAX));
                for (i, plane) in group.iter().enumerate() {
                    let flip = if a >> i & 1 == 1 { 0 } else { u128::MAX };
                    all[from..].iter_mut().zip(*plane).for_each(|(hot, p)| hot.0 &= p.0 ^ flip);
                }
            }
        }
        all.extend_from_slice(rest);
        Ok(all)
    }

    fn random(&self, party: &mut SeatParty, side: Side, shape: Shape, bits: u32) -> Result<Self, Error> {
        Ok(party.random_side(side, shape, bits))
    }

    fn enter(
        &self,
        party: &mut SeatParty,
        session: &mut Session,
        entries: Vec<SideEntry<ClearVector>>,
    ) -> Result<Vec<Self>, Error> {
        party.enter_sides(session, &entries)
    }

    fn cross(
        party: &mut SeatParty,
        session: &mut Session,
        sums: &[Vec<Term<'_, Self>>],
    ) -> Result<Vec<Self>, Error> {
        let (x, _) =
            sums.first().and_then(|sum| sum.first()).ok_or_else(|| Error::misuse("a sum has a term"))?;
        party.cross(session, (x.ring(), x.len()), sums)
    }

    fn product(&self, party: &mut SeatParty, session: &mut Session, by: &Self) -> Result<Self, Error> {
        party.multiply(session, self, by)
    }

    fn open_low(&self, party: &mut SeatParty, session: &mut Session) -> Result<ClearVector, Error> {
        let opened = party.open_to(session, self, &Side::Low.holders())?;
        Ok(ClearVector::new(opened.unwrap_or_default()))
    }

    fn onto_device(
        party: &mut SeatParty,
        vectors: &[&Self],
        blocks: usize,
    ) -> Result<Option<Vec<DeviceShares>>, Error> {
        // All of a ring at once; the longest first, for where it lies the others go.
        let runs: Vec<&[&Self]> = vectors.chunk_by(|x, y| x.ring() == y.ring()).collect();
        let together = |run: &[&Self]| run.iter().map(|x| x.blocks()).sum::<usize>();
        let Some(longest) = (0..runs.len()).max_by_key(|&i| together(runs[i])) else { return Ok(None) };
        if party.speculates() || !party.queue().takes(blocks) {
            return Ok(None);
        }
        let first = party.keep(&concat(runs[longest][0].ring(), runs[longest]))?;
        let mut kept = Vec::with_capacity(vectors.len());
        for (i, run) in runs.into_iter().enumerate() {
            let all = if i == longest {
                first.clone()
            } else {
                party.keep_beside(&first, &concat(run[0].ring(), run))?
            };
            kept.extend(all.cut(&run.iter().map(|x| x.len()).collect::<Vec<_>>()));
        }
        Ok(Some(kept))
    }

    fn from_device(party: &mut SeatParty, vectors: Vec<DeviceShares>) -> Result<Vec<Self>, Error> {
        let Some(ring) = vectors.first().map(DeviceShares::ring) else { return Ok(Vec::new()) };
        if vectors.iter().any(|x| x.ring() != ring) {
            return Err(Error::misuse("vectors of several rings are taken back one ring at a time"));
        }
        let all = DeviceShares::concat(party, &vectors.iter().collect::<Vec<_>>())?;
        Ok(cut(&party.fetch(&all)?, &vectors.iter().map(DeviceShares::len).collect::<Vec<_>>()))
    }
}

impl SeatParty {
    /// The sum of vectors, at least one.
    pub(crate) fn sum_of<'a, V: ArithmeticShares + 'a>(
        &mut self,
        terms: impl IntoIterator<Item = &'a V>,
    ) -> Result<V, Error> {
        V::combine(self, &terms.into_iter().map(|term| (term, 1)).collect::<Vec<_>>(), None)
    }

    pub(crate) fn plus<V: ArithmeticShares>(&mut self, x: &V, y: &V) -> Result<V, Error> {
        V::combine(self, &[(x, 1), (y, 1)], None)
    }

    pub(crate) fn minus<V: ArithmeticShares>(&mut self, x: &V, y: &V) -> Result<V, Error> {
        V::combine(self, &[(x, 1), (y, u128::MAX)], None)
    }

    /// A multiple, and a public number more.
    pub(crate) fn affine<V: ArithmeticShares>(&mut self, x: &V, by: u128, more: u128) -> Result<V, Error> {
        V::combine(self, &[(x, by)], (more != 0).then_some((Seat::ALL[0], more)))
    }

    /// The complement of bits.
    pub(crate) fn not<V: ArithmeticShares>(&mut self, x: &V) -> Result<V, Error> {
        self.affine(x, 1, 1)
    }
}

/// That two vectors can be computed with element by element.
pub(crate) fn alike<V: ArithmeticShares>(x: &V, y: &V) -> Result<(), Error> {
    if x.ring() == y.ring() && x.len() == y.len() {
        return Ok(());
    }
    let shape = |s: &V| format!("{} elements of {} bits", s.len(), s.ring().bits());
    Err(Error::misuse(format!("{} and {} do not fit", shape(x), shape(y))))
}
