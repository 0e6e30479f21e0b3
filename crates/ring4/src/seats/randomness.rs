//! Random bits that nobody knows, and doubly shared ones.
//!
//! **Functionality.** b = b1 xor b2 over Z_2^128 or Z_2^64: b1 from the streams of K_2 and K_3, which seats 0
//! and 1 hold, b2 from those of K_0 and K_1, which seats 2 and 3 hold. No seat knows both, and none can
//! choose either.
//!
//! **daBits.** The lowest bits of the summands of b over Z_2^k are summands of b over Z_2: the doubly shared
//! bit costs no more.
//!
//! **Source.** Dalskov, Escudero and Keller (USENIX Security 2021); that the bits come of streams, so that
//! nobody has to prove that it entered a bit, and the free daBit, are deviations.
//!
//! **Cost.** 6 elements, 2 rounds: b1 and b2 entered, then their product, of which two messages vanish.

use crate::vectors::arithmetic::ArithmeticShares;
use crate::vectors::convert::lowest;
use crate::vectors::sides::{Side, SideEntry};
use crate::{RoundQuote, SeatParty, SharedVector, VectorRing};
use base::Error;
use net::Session;

impl SeatParty {
    /// Random bits over Z_2^128 or Z_2^64. Two rounds, 6 elements.
    ///
    /// # Errors
    /// Those of joint inputs.
    pub fn random_bits(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        len: usize,
    ) -> Result<SharedVector, Error> {
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let bits = self.random_side(side, (VectorRing::Z2, len), 1);
            let known = bits.side(self, side)?;
            let value = SharedVector::elements(self, (ring, len), &known, 1)?;
            entries.push(SideEntry { side, shape: (ring, len), value });
        }
        let entered = self.enter_sides(session, &entries)?;
        self.exclusive_or(session, &entered[0], &entered[1])
    }

    /// a + b - 2 a b of bits over a ring, one low and one high. One round, 4 elements.
    pub(crate) fn exclusive_or<V: ArithmeticShares>(
        &mut self,
        session: &mut Session,
        low: &V,
        high: &V,
    ) -> Result<V, Error> {
        let doubled = self.affine(low, 2, 0)?;
        let products = V::cross(self, session, &[vec![(&doubled, high)]])?;
        V::combine(self, &[(low, 1), (high, 1), (&products[0], u128::MAX)], None)
    }

    /// The same random bits over Z_2 and over a ring. Two rounds, 6 elements.
    ///
    /// # Errors
    /// As [`SeatParty::random_bits`].
    pub fn dabits(
        &mut self,
        session: &mut Session,
        ring: VectorRing,
        len: usize,
    ) -> Result<(SharedVector, SharedVector), Error> {
        let bits = self.random_bits(session, ring, len)?;
        Ok((lowest(&bits), bits))
    }
}

impl RoundQuote {
    /// Random bits.
    pub fn random_bits(&mut self, ring: VectorRing, len: usize) {
        self.enter_sides(&Side::BOTH.map(|side| (side, (ring, len))));
        self.cross((ring, len), 1);
    }

    /// Random bits over Z_2 and a ring.
    pub fn dabits(&mut self, ring: VectorRing, len: usize) {
        self.random_bits(ring, len);
    }
}
