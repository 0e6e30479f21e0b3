//! Bit planes: bit i of every word of a vector, packed.
//!
//! **Functionality.** [`Planes`] hold a vector of words bit by bit, least significant first. All ANDs of a
//! round go in one message: planes are whole blocks, so vectors of any length lie behind each other without a
//! shift.
//!
//! **Cost.** 6 bits per AND (0.75 B; whole blocks of 128), one round for any number of them.

use crate::vectors::arithmetic::{ArithmeticShares, alike};
use crate::{DeviceShares, RoundQuote, Seat, SeatParty, SharedVector, VectorRing};
use base::Error;
use net::Session;

/// A vector of shared words, bit by bit.
#[derive(Clone)]
pub struct Planes<V = SharedVector>(Vec<V>);

impl Planes {
    /// Public words.
    #[must_use]
    pub fn public(seat: Seat, width: u32, words: &[u128]) -> Self {
        let bit = |i: u32| words.iter().map(|word| word >> i & 1).collect::<Vec<_>>();
        let plane = |i| {
            SharedVector::public(VectorRing::Z2, words.len(), seat, &crate::pack(VectorRing::Z2, &bit(i)))
        };
        Self((0..width).map(plane).collect())
    }
}

impl<V: ArithmeticShares> Planes<V> {
    /// From planes, bit 0 first.
    ///
    /// # Errors
    /// When there is none, or they are not bits of the same length.
    pub fn new(planes: Vec<V>) -> Result<Self, Error> {
        let fits = planes.first().is_some_and(|first| {
            first.ring() == VectorRing::Z2 && planes.iter().all(|plane| alike(plane, first).is_ok())
        });
        if fits {
            Ok(Self(planes))
        } else {
            Err(Error::misuse("planes are bits of one length, at least one"))
        }
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

    /// Blocks of all planes together.
    pub(crate) fn blocks(&self) -> usize {
        self.0.iter().map(V::blocks).sum()
    }

    /// The planes, bit 0 first.
    #[must_use]
    pub fn planes(&self) -> &[V] {
        &self.0
    }

    /// The planes, bit 0 first.
    #[must_use]
    pub fn into_planes(self) -> Vec<V> {
        self.0
    }

    pub(crate) fn same_shape(&self, other: &Self) -> Result<(), Error> {
        if (self.width(), self.len()) == (other.width(), other.len()) {
            return Ok(());
        }
        let shape = |p: &Self| format!("{} words of {} bits", p.len(), p.width());
        Err(Error::misuse(format!("{} and {} do not fit", shape(self), shape(other))))
    }

    /// Zeros of the same shape.
    pub(crate) fn zeros(&self, party: &mut SeatParty) -> Result<Self, Error> {
        let zero = self.0[0].zeros(party, VectorRing::Z2, self.len())?;
        Ok(Self(vec![zero; self.0.len()]))
    }

    /// As [`ArithmeticShares::onto_device`].
    pub(crate) fn onto_device<const N: usize>(
        party: &mut SeatParty,
        words: [&Self; N],
        blocks: usize,
    ) -> Result<Option<[Planes<DeviceShares>; N]>, Error> {
        let all: Vec<&V> = words.iter().flat_map(|word| &word.0).collect();
        let Some(all) = V::onto_device(party, &all, blocks)? else { return Ok(None) };
        let mut all = all.into_iter();
        Ok(Some(words.map(|word| Planes(all.by_ref().take(word.0.len()).collect()))))
    }

    /// As [`ArithmeticShares::from_device`].
    pub(crate) fn from_device(party: &mut SeatParty, words: Planes<DeviceShares>) -> Result<Self, Error> {
        V::from_device(party, words.0).map(Self)
    }
}

impl SeatParty {
    /// ANDs of many pairs of bit vectors. One round.
    ///
    /// # Errors
    /// Shapes that differ within a pair, and those of [`SeatParty::multiply`].
    pub fn ands<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        pairs: &[(&V, &V)],
    ) -> Result<Vec<V>, Error> {
        pairs.iter().try_for_each(|(x, y)| alike(*x, *y))?;
        if pairs.iter().any(|(x, _)| x.ring() != VectorRing::Z2) {
            return Err(Error::misuse("an AND is of bits"));
        }
        if pairs.is_empty() {
            return Ok(Vec::new());
        }
        let (left, right): (Vec<&V>, Vec<&V>) = pairs.iter().copied().unzip();
        let [x, y] = [V::concat(self, &left)?, V::concat(self, &right)?];
        let product = x.product(self, session, &y)?;
        Ok(product.cut(&left.iter().map(|x| x.len()).collect::<Vec<_>>()))
    }

    /// The AND of all planes: a tree.
    ///
    /// # Errors
    /// As [`SeatParty::ands`]; when there is no plane.
    pub fn all<V: ArithmeticShares>(&mut self, session: &mut Session, planes: Vec<V>) -> Result<V, Error> {
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
