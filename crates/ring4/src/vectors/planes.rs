//! Bit planes: bit i of every word of a vector, packed.
//!
//! **Functionality.** [`Planes`] hold a vector of words bit by bit, least significant first. All ANDs of a
//! round go in one message: planes are whole blocks, so vectors of any length lie behind each other without a
//! shift.
//!
//! **Cost.** 6 bits per AND (0.75 B; whole blocks of 128), one round for any number of them.

use crate::vectors::sides::{ClearVector, concat, cut, low_bits};
use crate::{RoundQuote, Seat, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::{Block, transpose128};
use net::Session;
use zeroize::Zeroizing;

/// A vector of shared words, bit by bit.
#[derive(Clone)]
pub struct Planes(Vec<SharedVector>);

impl Planes {
    /// From planes, bit 0 first.
    ///
    /// # Errors
    /// When there is none, or they are not bits of the same length.
    pub fn new(planes: Vec<SharedVector>) -> Result<Self, Error> {
        let fits = planes.first().is_some_and(|first| {
            first.ring() == VectorRing::Z2 && planes.iter().all(|plane| plane.same_shape(first).is_ok())
        });
        if fits {
            Ok(Self(planes))
        } else {
            Err(Error::misuse("planes are bits of one length, at least one"))
        }
    }

    /// Public words.
    #[must_use]
    pub fn public(seat: Seat, width: u32, words: &[u128]) -> Self {
        let bit = |i: u32| words.iter().map(|word| word >> i & 1).collect::<Vec<_>>();
        let plane = |i| {
            SharedVector::public(VectorRing::Z2, words.len(), seat, &crate::pack(VectorRing::Z2, &bit(i)))
        };
        Self((0..width).map(plane).collect())
    }

    /// Bits of a word.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.0.len() as u32
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0[0].len()
    }

    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The planes, bit 0 first.
    #[must_use]
    pub fn planes(&self) -> &[SharedVector] {
        &self.0
    }

    /// The planes, bit 0 first.
    #[must_use]
    pub fn into_planes(self) -> Vec<SharedVector> {
        self.0
    }

    pub(crate) fn same_shape(&self, other: &Self) -> Result<(), Error> {
        if (self.width(), self.len()) == (other.width(), other.len()) {
            return Ok(());
        }
        let shape = |p: &Self| format!("{} words of {} bits", p.len(), p.width());
        Err(Error::misuse(format!("{} and {} do not fit", shape(self), shape(other))))
    }
}

/// The complement of shared bits.
#[must_use]
pub(crate) fn not(x: &SharedVector, seat: Seat) -> SharedVector {
    x.offset(seat, 1)
}

/// Planes `0 .. width` of elements in the clear, where they are known.
pub(crate) fn transpose(ring: VectorRing, len: usize, value: &ClearVector, width: u32) -> Vec<ClearVector> {
    let blocks = VectorRing::Z2.blocks(len);
    if value.is_empty() {
        return vec![ClearVector::default(); width as usize];
    }
    let mut planes = vec![ClearVector::zeros(blocks); width as usize];
    let mut rows = Zeroizing::new([Block::ZERO; 128]);
    let mut columns = Zeroizing::new([Block::ZERO; 128]);
    for block in 0..blocks {
        for (i, row) in rows.iter_mut().enumerate() {
            let at = block * 128 + i;
            let lane = (at % ring.lanes()) as u32;
            let of = |x: &Block| low_bits(VectorRing::Z128, Block(x.0 >> (lane * ring.bits())), ring.bits());
            *row = value.get(at / ring.lanes()).map_or(Block::ZERO, of);
        }
        transpose128(&*rows, &mut *columns);
        planes.iter_mut().zip(columns.iter()).for_each(|(plane, &column)| plane[block] = column);
    }
    planes
}

/// The inverse of [`transpose`]: elements of planes in the clear, where they are known.
pub(crate) fn gather(ring: VectorRing, len: usize, planes: &[ClearVector]) -> ClearVector {
    if planes[0].is_empty() {
        return ClearVector::default();
    }
    let mut value = ClearVector::zeros(ring.blocks(len));
    let mut rows = Zeroizing::new([Block::ZERO; 128]);
    let mut columns = Zeroizing::new([Block::ZERO; 128]);
    for block in 0..VectorRing::Z2.blocks(len) {
        rows.iter_mut().zip(planes).for_each(|(row, plane)| *row = plane[block]);
        transpose128(&*rows, &mut *columns);
        for (i, column) in columns.iter().enumerate() {
            let at = block * 128 + i;
            let lane = (at % ring.lanes()) as u32;
            if let Some(into) = value.get_mut(at / ring.lanes()) {
                into.0 |= column.0 << (lane * ring.bits());
            }
        }
    }
    value
}

impl SeatParty {
    /// ANDs of many pairs of bit vectors. One round.
    ///
    /// # Errors
    /// Shapes that differ within a pair, and those of [`SeatParty::multiply`].
    pub fn ands(
        &mut self,
        session: &mut Session,
        pairs: &[(&SharedVector, &SharedVector)],
    ) -> Result<Vec<SharedVector>, Error> {
        pairs.iter().try_for_each(|(x, y)| x.same_shape(y))?;
        if pairs.iter().any(|(x, _)| x.ring() != VectorRing::Z2) {
            return Err(Error::misuse("an AND is of bits"));
        }
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let (left, right): (Vec<&SharedVector>, Vec<&SharedVector>) = pairs.iter().copied().unzip();
        let product =
            self.multiply(session, &concat(VectorRing::Z2, &left), &concat(VectorRing::Z2, &right))?;
        Ok(cut(&product, &left.iter().map(|x| x.len()).collect::<Vec<_>>()))
    }

    /// The AND of all planes: a tree.
    ///
    /// # Errors
    /// As [`SeatParty::ands`]; when there is no plane.
    pub fn all(&mut self, session: &mut Session, planes: Vec<SharedVector>) -> Result<SharedVector, Error> {
        let mut planes = planes;
        while planes.len() > 1 {
            let pairs: Vec<_> = planes.chunks_exact(2).map(|pair| (&pair[0], &pair[1])).collect();
            let mut next = self.ands(session, &pairs)?;
            if planes.len() % 2 == 1 {
                next.extend(planes.pop());
            }
            planes = next;
        }
        planes.pop().ok_or_else(|| Error::misuse("an AND has planes"))
    }
}

impl RoundQuote {
    /// ANDs of so many pairs of vectors of `len` bits.
    pub fn ands(&mut self, len: usize, pairs: usize) {
        if pairs > 0 {
            self.multiply(VectorRing::Z2, pairs * VectorRing::Z2.blocks(len) * 128);
        }
    }

    /// The AND of so many planes.
    pub fn all(&mut self, len: usize, planes: usize) {
        let mut left = planes;
        while left > 1 {
            self.ands(len, left / 2);
            left = left.div_ceil(2);
        }
    }
}
