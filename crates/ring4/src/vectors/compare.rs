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

use crate::vectors::arithmetic::{ArithmeticShares, alike};
use crate::vectors::sides::{Side, SideEntry};
use crate::{Planes, RoundQuote, SeatParty, VectorRing};
use base::Error;
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
    pub fn less<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        y: &V,
        number: Number,
    ) -> Result<V, Error> {
        alike(x, y)?;
        if let Some(both) = V::onto_device(self, &[x, y], x.blocks())? {
            let below = self.less(session, &both[0], &both[1], number)?;
            return Ok(V::from_device(self, vec![below])?.remove(0));
        }
        let difference = self.minus(x, y)?;
        if number.bits < x.ring().bits() {
            return Ok(self.bit(session, &[&difference], number.bits)?.remove(0));
        }
        let tops = self.bit(session, &[&difference, x, y], number.bits - 1)?;
        let [below, x, y] = &tops[..] else { unreachable!("three bits of three vectors") };
        let decides = if number.signed { x } else { y };
        let [differ, other] = [self.plus(x, y)?, self.plus(below, decides)?];
        let differ = self.ands(session, &[(&differ, &other)])?;
        self.plus(below, &differ[0])
    }

    /// Whether the lowest `bits` bits of x and y are the same.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn equal<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        y: &V,
        bits: u32,
    ) -> Result<V, Error> {
        alike(x, y)?;
        let (ring, len) = (x.ring(), x.len());
        if ring == VectorRing::Z2 || bits == 0 || bits > ring.bits() {
            return Err(Error::misuse(format!(
                "no {bits} bits can be compared of elements of {}",
                ring.bits()
            )));
        }
        if self.left_out(("equal", ring, bits), len, |q| q.equal(len, bits)) {
            return x.zeros(self, VectorRing::Z2, len);
        }
        if let Some(both) = V::onto_device(self, &[x, y], x.blocks())? {
            let same = self.equal(session, &both[0], &both[1], bits)?;
            return Ok(V::from_device(self, vec![same])?.remove(0));
        }
        let shape = (VectorRing::Z2, bits as usize * VectorRing::Z2.blocks(len) * 128);
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let difference = if side == Side::Low { self.minus(x, y)? } else { self.minus(y, x)? };
            let known = difference.side(self, side)?;
            let value = V::planes(self, (ring, len), &[known], (0, bits))?;
            entries.push(SideEntry { side, shape, value });
        }
        let entered = x.enter(self, session, entries)?;
        let agree = V::combine(self, &[(&entered[0], 1), (&entered[1], 1)], Some((crate::Seat::ALL[0], 1)))?;
        self.all(session, agree.cut(&vec![len; bits as usize]))
    }

    /// a < b of words.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn less_words<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        a: &Planes<V>,
        b: &Planes<V>,
        signed: bool,
    ) -> Result<V, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("less", VectorRing::Z2, width), len, |q| q.less_words(len, width)) {
            return a.planes()[0].zeros(self, VectorRing::Z2, len);
        }
        if let Some([a, b]) = Planes::onto_device(self, [a, b], a.blocks())? {
            let below = self.less_words(session, &a, &b, signed)?;
            return Ok(V::from_device(self, vec![below])?.remove(0));
        }
        let mut complement = a.planes().iter().map(|plane| self.not(plane)).collect::<Result<Vec<_>, _>>()?;
        let mut b = b.planes().to_vec();
        if signed {
            // The signs change places: a negative number is the smaller one.
            for planes in [&mut complement, &mut b] {
                if let Some(top) = planes.last_mut() {
                    *top = self.not(top)?;
                }
            }
        }
        let nodes = self.word_nodes(session, &complement, &b)?;
        self.carry_out(session, nodes)
    }

    /// Whether words are the same.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn equal_words<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        a: &Planes<V>,
        b: &Planes<V>,
    ) -> Result<V, Error> {
        a.same_shape(b)?;
        let (len, width) = (a.len(), a.width());
        if self.left_out(("equal", VectorRing::Z2, width), len, |q| q.equal_words(len, width)) {
            return a.planes()[0].zeros(self, VectorRing::Z2, len);
        }
        if let Some([a, b]) = Planes::onto_device(self, [a, b], a.blocks())? {
            let same = self.equal_words(session, &a, &b)?;
            return Ok(V::from_device(self, vec![same])?.remove(0));
        }
        let agree = |(a, b): (&V, &V)| V::combine(self, &[(a, 1), (b, 1)], Some((crate::Seat::ALL[0], 1)));
        let planes = a.planes().iter().zip(b.planes()).map(agree).collect::<Result<_, Error>>()?;
        self.all(session, planes)
    }

    /// `condition ? a : b` of words.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn select_words<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        condition: &V,
        a: &Planes<V>,
        b: &Planes<V>,
    ) -> Result<Planes<V>, Error> {
        a.same_shape(b)?;
        let mut differences = Vec::new();
        for (a, b) in a.planes().iter().zip(b.planes()) {
            differences.push(self.plus(a, b)?);
        }
        let pairs: Vec<_> = differences.iter().map(|difference| (condition, difference)).collect();
        let chosen = self.ands(session, &pairs)?;
        let planes = chosen.iter().zip(b.planes()).map(|(c, b)| self.plus(c, b));
        Planes::new(planes.collect::<Result<_, _>>()?)
    }

    /// `condition ? a : b` by 0 or 1 over the same ring. One round.
    ///
    /// # Errors
    /// As [`SeatParty::multiply`].
    pub fn select<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        condition: &V,
        a: &V,
        b: &V,
    ) -> Result<V, Error> {
        let difference = self.minus(a, b)?;
        let chosen = condition.product(self, session, &difference)?;
        self.plus(&chosen, b)
    }

    /// `condition ? a : b` of elements by a bit. Three rounds.
    ///
    /// # Errors
    /// As [`SeatParty::bits_to_ring`] and [`SeatParty::multiply`].
    pub fn select_by_bit<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        condition: &V,
        a: &V,
        b: &V,
    ) -> Result<V, Error> {
        if let Some(all) = V::onto_device(self, &[condition, a, b], a.blocks())? {
            let chosen = self.select_by_bit(session, &all[0], &all[1], &all[2])?;
            return Ok(V::from_device(self, vec![chosen])?.remove(0));
        }
        let difference = self.minus(a, b)?;
        // Bits are shorter than the elements that they become.
        let condition = condition.near(self, &difference)?;
        let condition = self.bits_to_ring(session, a.ring(), &[&*condition])?;
        let chosen = condition[0].product(self, session, &difference)?;
        self.plus(&chosen, b)
    }

    /// The smaller and the larger of x and y.
    ///
    /// # Errors
    /// As [`SeatParty::less`].
    pub fn min_max<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        x: &V,
        y: &V,
        number: Number,
    ) -> Result<(V, V), Error> {
        let below = self.less(session, x, y, number)?;
        let least = self.select_by_bit(session, &below, x, y)?;
        let most = V::combine(self, &[(x, 1), (y, 1), (&least, u128::MAX)], None)?;
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
