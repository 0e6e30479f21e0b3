//! Curve25519 one point at a time: numbers in four 64-bit words, affine formulas as they stand in the
//! textbook. The map takes its roots and signs by definition, so it shares no shortcut with the 8-lane
//! kernel. The ladder is fixed time in the key; the map branches on names, which is why nothing but
//! comparisons may use it.

use crate::curve::{Key, UCoordinate, Uniform};

const A: Fe = Fe([486_662, 0, 0, 0]);
const ONE: Fe = Fe([1, 0, 0, 0]);
const ZERO: Fe = Fe([0; 4]);
/// p = 2^255 - 19.
const P: [u64; 4] = [u64::MAX - 18, u64::MAX, u64::MAX, u64::MAX >> 1];

/// An element of GF(p), below p, little endian.
#[derive(Clone, Copy, PartialEq)]
struct Fe([u64; 4]);

/// `x + y + carry` in four words, and the carry out of them.
fn add_words(x: [u64; 4], y: [u64; 4], mut carry: u64) -> ([u64; 4], u64) {
    let sum = std::array::from_fn(|i| {
        let sum = u128::from(x[i]) + u128::from(y[i]) + u128::from(carry);
        carry = (sum >> 64) as u64;
        sum as u64
    });
    (sum, carry)
}

impl Fe {
    fn from_bytes(bytes: &UCoordinate) -> Self {
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|j| bytes[8 * i + j]));
        Self([word(0), word(1), word(2), word(3) & u64::MAX >> 1]).reduced()
    }

    fn to_bytes(self) -> UCoordinate {
        std::array::from_fn(|i| self.0[i / 8].to_le_bytes()[i % 8])
    }

    /// Subtracts p once when the number is not below it. The number is below `2^255`.
    fn reduced(self) -> Self {
        // A carry: p could be taken away.
        let (less, carry) = add_words(self.0, P.map(|word| !word), 1);
        Self::select(carry == 1, self, Self(less))
    }

    /// A number in eight words, modulo p.
    fn from_long(mut x: [u64; 8]) -> Self {
        // 2^256 = 38: once from the upper half, then from what is left above bit 255, with 2^255 = 19.
        let mut carry = 0;
        for i in 0..4 {
            let sum = u128::from(x[i]) + u128::from(x[4 + i]) * 38 + carry;
            (x[i], carry) = (sum as u64, sum >> 64);
        }
        let mut low = [x[0], x[1], x[2], x[3]];
        let mut over = (carry as u64) << 1;
        // Twice, since the first addition may reach bit 255 again.
        for _ in 0..2 {
            over |= low[3] >> 63;
            low[3] &= u64::MAX >> 1;
            (low, _) = add_words(low, [19 * over, 0, 0, 0], 0);
            over = 0;
        }
        Self(low).reduced()
    }

    /// A number below `2^256`, modulo p.
    fn from_four(x: [u64; 4]) -> Self {
        Self::from_long([x[0], x[1], x[2], x[3], 0, 0, 0, 0])
    }

    fn add(self, y: Self) -> Self {
        Self::from_four(add_words(self.0, y.0, 0).0)
    }

    fn negate(self) -> Self {
        Self::from_four(add_words(P, self.0.map(|word| !word), 1).0)
    }

    fn sub(self, y: Self) -> Self {
        self.add(y.negate())
    }

    fn mul(self, y: Self) -> Self {
        let mut out = [0u64; 8];
        for i in 0..4 {
            let mut carry = 0;
            for j in 0..4 {
                let sum = u128::from(self.0[i]) * u128::from(y.0[j]) + u128::from(out[i + j]) + carry;
                (out[i + j], carry) = (sum as u64, sum >> 64);
            }
            out[i + 4] = carry as u64;
        }
        Self::from_long(out)
    }

    /// A public power.
    fn power(self, exponent: [u64; 4]) -> Self {
        let mut out = ONE;
        for i in (0..256).rev() {
            out = out.mul(out);
            if exponent[i / 64] >> (i % 64) & 1 == 1 {
                out = out.mul(self);
            }
        }
        out
    }

    /// `1 / x`; zero of zero.
    fn invert(self) -> Self {
        self.power([P[0] - 2, P[1], P[2], P[3]])
    }

    /// `x`, or `y` where the condition holds.
    fn select(holds: bool, x: Self, y: Self) -> Self {
        // Out of the compiler's sight: it made a branch of a mask that it knew to be all zeros or all ones.
        let mask = std::hint::black_box(u64::from(holds).wrapping_neg());
        Self(std::array::from_fn(|i| x.0[i] & !mask | y.0[i] & mask))
    }

    /// A square root when there is one: `x^((p + 3) / 8)`, times a root of -1 where that is needed.
    fn root(self) -> Option<Self> {
        // (p + 3) / 8 = 2^252 - 2, (p - 1) / 4 = 2^253 - 5.
        let root = self.power([u64::MAX - 1, u64::MAX, u64::MAX, u64::MAX >> 4]);
        let other = root.mul(ONE.add(ONE).power([u64::MAX - 4, u64::MAX, u64::MAX, u64::MAX >> 3]));
        [root, other].into_iter().find(|r| r.mul(*r) == self)
    }
}

/// See [`crate::Curve::mul`].
pub fn mul(key: &Key, points: &mut [UCoordinate]) {
    for point in points {
        *point = times_eight_key(key, Fe::from_bytes(point)).to_bytes();
    }
}

/// See [`crate::Curve::map`].
pub fn map(key: Option<&Key>, uniform: &[Uniform], out: &mut [UCoordinate]) {
    let one: Key = std::array::from_fn(|i| u8::from(i == 0));
    for (uniform, out) in uniform.iter().zip(out) {
        let (r, s) = uniform.split_at(48);
        let sum = add_points(elligator(from_big_endian(r)), elligator(from_big_endian(s)));
        let u = sum.map_or(ZERO, |(u, _)| times_eight_key(&one, u));
        *out = key.map_or(u, |key| times_eight_key(key, u)).to_bytes();
    }
}

fn from_big_endian(bytes: &[u8]) -> Fe {
    let mut words = [0u64; 8];
    for (i, byte) in bytes.iter().rev().enumerate() {
        words[i / 8] |= u64::from(*byte) << (8 * (i % 8));
    }
    Fe::from_long(words)
}

/// The ladder of RFC 7748 on all 255 bits of `8 key`; zero is the neutral element.
fn times_eight_key(key: &Key, u: Fe) -> Fe {
    let (mut x2, mut z2, mut x3, mut z3) = (ONE, ZERO, u, ONE);
    for i in (0..255usize).rev() {
        let bit = i >= 3 && key[(i.max(3) - 3) / 8] >> ((i.max(3) - 3) % 8) & 1 == 1;
        (x2, x3) = (Fe::select(bit, x2, x3), Fe::select(bit, x3, x2));
        (z2, z3) = (Fe::select(bit, z2, z3), Fe::select(bit, z3, z2));
        // Difference addition: x = (x2 x3 - z2 z3)^2, z = u (x2 z3 - x3 z2)^2.
        let sum_x = x2.mul(x3).sub(z2.mul(z3));
        let sum_z = x2.mul(z3).sub(x3.mul(z2));
        // Doubling: x = (x^2 - z^2)^2, z = 4 x z (x^2 + A x z + z^2).
        let (xx, zz, xz) = (x2.mul(x2), z2.mul(z2), x2.mul(z2));
        let twice = xx.sub(zz);
        let four_xz = xz.add(xz).add(xz).add(xz);
        (x2, z2) = (twice.mul(twice), four_xz.mul(xx.add(A.mul(xz)).add(zz)));
        (x3, z3) = (sum_x.mul(sum_x), u.mul(sum_z.mul(sum_z)));
        (x2, x3) = (Fe::select(bit, x2, x3), Fe::select(bit, x3, x2));
        (z2, z3) = (Fe::select(bit, z2, z3), Fe::select(bit, z3, z2));
    }
    x2.mul(z2.invert())
}

/// Elligator 2 as RFC 9380, 6.7.1 states it: the u among `-A / (1 + 2 r^2)` and `-A - u` for which
/// `u^3 + A u^2 + u` is a square; v is odd for the first and even for the second.
fn elligator(r: Fe) -> (Fe, Fe) {
    let square = r.mul(r);
    let first = A.negate().mul(ONE.add(square).add(square).invert());
    let right = |u: Fe| u.mul(u.mul(u).add(A.mul(u)).add(ONE));
    let (u, v, odd) = match right(first).root() {
        Some(v) => (first, v, 1),
        None => {
            let second = A.negate().sub(first);
            (second, right(second).root().expect("one of both is a square"), 0)
        }
    };
    (u, if v.0[0] & 1 == odd { v } else { v.negate() })
}

/// The sum of two points; none when it is the neutral element.
fn add_points((u1, v1): (Fe, Fe), (u2, v2): (Fe, Fe)) -> Option<(Fe, Fe)> {
    let slope = if u1 != u2 {
        v2.sub(v1).mul(u2.sub(u1).invert())
    } else if v1 == v2 && v1 != ZERO {
        // (3 u^2 + 2 A u + 1) / 2 v.
        let u = u1.mul(u1);
        let top = u.add(u).add(u).add(A.mul(u1).add(A.mul(u1))).add(ONE);
        top.mul(v1.add(v1).invert())
    } else {
        return None;
    };
    let u = slope.mul(slope).sub(A).sub(u1).sub(u2);
    Some((u, slope.mul(u1.sub(u)).sub(v1)))
}
