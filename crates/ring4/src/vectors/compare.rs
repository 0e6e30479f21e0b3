//! Comparison, selection, minimum and maximum.
//!
//! **Functionality.** x < y is the sign of x - y where numbers have fewer bits than the ring; with as many,
//! their signs decide where they differ. x = y where u and -v, the sides of x - y, agree in every bit. Of
//! words in planes, a < b is the carry of ~a + b. A selection is b + c (a - b).
//!
//! **Source.** Dalskov, Escudero and Keller (USENIX Security 2021); selection is Beaver's.
//!
//! **Cost**, w bits, e elements:
//!
//! | what | cost | rounds |
//! |---|---|---|
//! | less, w below the ring's | about 11 w bits | 2 + log2(w / 3), rounded up |
//! | less, w the ring's | three times that and 6 bits | one more |
//! | equal | 8 w bits | 1 + log2(w), rounded up |
//! | less, of planes | about 17 w bits | 1 + log2(w), rounded up |
//! | equal, of planes | 6 w bits | log2(w), rounded up |
//! | selection of planes | 6 w bits | 1 |
//! | selection of elements by an element, by a bit | 6 e, 12 e | 1, 3 |
//! | minimum and maximum, together | less, and 12 e | those of less, and 3 |

use crate::vectors::planes::{not, transpose};
use crate::vectors::sides::{Side, SideEntry, cut};
use crate::vectors::spare::ClearVector;
use crate::{Planes, RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use kernels::Block;
use net::Session;

/// What numbers a vector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// Bits, the sign among them.
    pub bits: u32,
    /// Two's complement; else not negative.
    pub signed: bool,
}

impl Number {
    /// Numbers from 0 to 2^bits - 1.
    #[must_use]
    pub fn unsigned(bits: u32) -> Self {
        Self { bits, signed: false }
    }

    /// Numbers from -2^(bits - 1) to 2^(bits - 1) - 1.
    #[must_use]
    pub fn signed(bits: u32) -> Self {
        Self { bits, signed: true }
    }
}

impl SeatParty {
    /// x < y, as bits.
    ///
    /// # Errors
    /// Shapes that differ, numbers that the ring does not have, and those of the messages.
    pub fn less(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        y: &SharedVector,
        number: Number,
    ) -> Result<SharedVector, Error> {
        let difference = x.minus(y)?;
        if number.bits < x.ring().bits() {
            return Ok(self.bit(session, &[&difference], number.bits)?.remove(0));
        }
        let tops = self.bit(session, &[&difference, x, y], number.bits - 1)?;
        let [below, x, y] = &tops[..] else { unreachable!("three bits of three vectors") };
        let decides = if number.signed { x } else { y };
        let differ = self.ands(session, &[(&x.plus(y)?, &below.plus(decides)?)])?;
        below.plus(&differ[0])
    }

    /// Whether the lowest `bits` bits of x and y are the same.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn equal(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        y: &SharedVector,
        bits: u32,
    ) -> Result<SharedVector, Error> {
        let (ring, len, difference) = (x.ring(), x.len(), x.minus(y)?);
        if ring == VectorRing::Z2 || bits == 0 || bits > ring.bits() {
            return Err(Error::misuse(format!(
                "no {bits} bits can be compared of elements of {}",
                ring.bits()
            )));
        }
        if self.left_out(("equal", ring, bits), len, |q| q.equal(len, bits)) {
            return Ok(SharedVector::zero(VectorRing::Z2, len));
        }
        let shape = (VectorRing::Z2, bits as usize * VectorRing::Z2.blocks(len) * 128);
        let entry = |side: Side| {
            let mut value = side.of(&difference, self.seat());
            if side == Side::High {
                value.iter_mut().for_each(|v| *v = ring.sub(Block::ZERO, *v));
            }
            let planes = transpose(ring, len, &value, bits);
            let value = planes.iter().flat_map(|plane| plane.iter()).copied().collect();
            SideEntry { side, shape, value: ClearVector::new(value) }
        };
        let entries = Side::BOTH.map(entry);
        let entered = self.enter_sides(session, &entries)?;
        let agree = not(&entered[0].plus(&entered[1])?, self.seat());
        self.all(session, cut(&agree, &vec![len; bits as usize]))
    }

    /// a < b of words.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn less_words(
        &mut self,
        session: &mut Session,
        a: &Planes,
        b: &Planes,
        signed: bool,
    ) -> Result<SharedVector, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("less", VectorRing::Z2, width), len, |q| q.less_words(len, width)) {
            return Ok(SharedVector::zero(VectorRing::Z2, len));
        }
        let mut complement: Vec<SharedVector> =
            a.planes().iter().map(|plane| not(plane, self.seat())).collect();
        let mut b = b.planes().to_vec();
        if signed {
            // The signs change places: a negative number is the smaller one.
            for planes in [&mut complement, &mut b] {
                planes.last_mut().into_iter().for_each(|top| *top = not(top, self.seat()));
            }
        }
        let nodes = self.word_nodes(session, &complement, &b)?;
        self.carry_out(session, nodes)
    }

    /// Whether words are the same.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn equal_words(
        &mut self,
        session: &mut Session,
        a: &Planes,
        b: &Planes,
    ) -> Result<SharedVector, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("equal", VectorRing::Z2, width), len, |q| q.equal_words(len, width)) {
            return Ok(SharedVector::zero(VectorRing::Z2, len));
        }
        let agree = |(a, b): (&SharedVector, &SharedVector)| Ok(not(&a.plus(b)?, self.seat()));
        let planes = a.planes().iter().zip(b.planes()).map(agree).collect::<Result<_, Error>>()?;
        self.all(session, planes)
    }

    /// `condition ? a : b` of words.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn select_words(
        &mut self,
        session: &mut Session,
        condition: &SharedVector,
        a: &Planes,
        b: &Planes,
    ) -> Result<Planes, Error> {
        a.same_shape(b)?;
        let differences =
            a.planes().iter().zip(b.planes()).map(|(a, b)| a.plus(b)).collect::<Result<Vec<_>, _>>()?;
        let pairs: Vec<_> = differences.iter().map(|difference| (condition, difference)).collect();
        let chosen = self.ands(session, &pairs)?;
        Planes::new(chosen.iter().zip(b.planes()).map(|(c, b)| c.plus(b)).collect::<Result<_, _>>()?)
    }

    /// `condition ? a : b` by 0 or 1 over the same ring. One round.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`].
    pub fn select(
        &mut self,
        session: &mut Session,
        condition: &SharedVector,
        a: &SharedVector,
        b: &SharedVector,
    ) -> Result<SharedVector, Error> {
        self.multiply(session, condition, &a.minus(b)?)?.plus(b)
    }

    /// `condition ? a : b` of elements by a bit. Three rounds.
    ///
    /// # Errors
    /// As [`SeatParty::bits_to_ring`] and [`SeatParty::multiply`].
    pub fn select_by_bit(
        &mut self,
        session: &mut Session,
        condition: &SharedVector,
        a: &SharedVector,
        b: &SharedVector,
    ) -> Result<SharedVector, Error> {
        let condition = self.bits_to_ring(session, a.ring(), &[condition])?;
        self.select(session, &condition[0], a, b)
    }

    /// The smaller and the larger of x and y.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn min_max(
        &mut self,
        session: &mut Session,
        x: &SharedVector,
        y: &SharedVector,
        number: Number,
    ) -> Result<(SharedVector, SharedVector), Error> {
        let below = self.less(session, x, y, number)?;
        let least = self.select_by_bit(session, &below, x, y)?;
        let most = x.plus(y)?.minus(&least)?;
        Ok((least, most))
    }
}

impl RoundQuote {
    /// x < y.
    pub fn less(&mut self, ring: VectorRing, len: usize, number: Number) {
        if number.bits < ring.bits() {
            return self.bit(len, 1, number.bits);
        }
        self.bit(len, 3, number.bits - 1);
        self.ands(len, 1);
    }

    /// Whether x and y are the same in so many bits.
    pub fn equal(&mut self, len: usize, bits: u32) {
        let shape = (VectorRing::Z2, bits as usize * VectorRing::Z2.blocks(len) * 128);
        self.enter_sides(&Side::BOTH.map(|side| (side, shape)));
        self.all(len, bits as usize);
    }

    /// a < b of words.
    pub fn less_words(&mut self, len: usize, width: u32) {
        self.ands(len, width as usize);
        self.carry_out(len, width as usize);
    }

    /// Whether words are the same.
    pub fn equal_words(&mut self, len: usize, width: u32) {
        self.all(len, width as usize);
    }

    /// A selection of words.
    pub fn select_words(&mut self, len: usize, width: u32) {
        self.ands(len, width as usize);
    }

    /// A selection of elements by elements.
    pub fn select(&mut self, ring: VectorRing, len: usize) {
        self.multiply(ring, len);
    }

    /// A selection of elements by bits.
    pub fn select_by_bit(&mut self, ring: VectorRing, len: usize) {
        self.bits_to_ring(ring, len, 1);
        self.select(ring, len);
    }

    /// Minimum and maximum.
    pub fn min_max(&mut self, ring: VectorRing, len: usize, number: Number) {
        self.less(ring, len, number);
        self.select_by_bit(ring, len);
    }
}
