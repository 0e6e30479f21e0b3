//! AES-128. The S-box inverts in GF(2^8) as a tower of quadratic extensions, 32 ANDs: three products in
//! GF(2^4) of nine each, and an inversion in GF(2^4) with five (the number, and the shape of that inversion,
//! are from Boyar and Peralta, "A new combinational logic minimization technique with applications to
//! cryptology", 2010). Depth 6.
//!
//! GF(4) = {0, 1, w, w + 1}, w^2 = w + 1, bit 1 the coefficient of w; GF(16) = GF(4)\[z\] / (z^2 + z + w),
//! bits 2..4 the coefficient of z; GF(256) = GF(16)\[y\] / (y^2 + y + [`NU`]), bits 4..8 the coefficient of
//! y.

use super::linear::LinearMap;
use crate::{CircuitBuilder, Lit};

/// Any element without a root of y^2 + y + NU.
const NU: u8 = 8;

/// A product in a quadratic extension whose generator satisfies x^2 = x + c; `times` multiplies below, `by`
/// is c.
fn product(a: u8, b: u8, half: u32, by: u8, times: fn(u8, u8) -> u8) -> u8 {
    let low = (1 << half) - 1;
    let (a1, a0, b1, b0) = (a >> half, a & low, b >> half, b & low);
    let (high, both) = (times(a1, b1), times(a1 ^ a0, b1 ^ b0));
    let one = times(a0, b0);
    (both ^ one) << half | one ^ times(high, by)
}

fn times2(a: u8, b: u8) -> u8 {
    a & b
}

fn times4(a: u8, b: u8) -> u8 {
    product(a, b, 1, 1, times2)
}

fn times16(a: u8, b: u8) -> u8 {
    product(a, b, 2, 2, times4)
}

fn times256(a: u8, b: u8) -> u8 {
    product(a, b, 4, NU, times16)
}

/// The linear maps of an S-box.
struct Sbox {
    /// From the standard's basis to the tower.
    into: LinearMap,
    /// From the tower through the standard's affine map, without its constant.
    out: LinearMap,
}

impl Sbox {
    fn new() -> Self {
        let powers = |x: u8| {
            let mut all = [1u8; 8];
            (1..8).for_each(|i| all[i] = times256(all[i - 1], x));
            all
        };
        // The standard's generator is any root of x^8 + x^4 + x^3 + x + 1.
        let is_root = |x: &u8| {
            let p = powers(*x);
            times256(p[7], *x) == p[4] ^ p[3] ^ p[1] ^ 1
        };
        let into = powers((2..=255).find(is_root).expect("the polynomial splits in GF(256)"));
        let image = |x: u8| (0..8).filter(|i| x >> i & 1 == 1).fold(0, |sum, i| sum ^ into[i]);
        let preimage = |y: u8| (0..=255).find(|x| image(*x) == y).expect("a change of basis is one to one");
        let affine = |x: u8| (0..5).fold(0, |sum, by| sum ^ x.rotate_left(by));
        let out = std::array::from_fn(|i| affine(preimage(1 << i)));
        Self { into: LinearMap::new(&into), out: LinearMap::new(&out) }
    }

    fn apply(&self, g: &mut CircuitBuilder, x: &[Lit]) -> Vec<Lit> {
        let x = self.into.apply(g, x);
        let inverse = invert256(g, &x);
        let mut y = self.out.apply(g, &inverse);
        (0..8).filter(|i| 0x63 >> i & 1 == 1).for_each(|i| y[i] = !y[i]);
        y
    }
}

fn sum(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    a.iter().zip(b).map(|(a, b)| g.xor(*a, *b)).collect()
}

/// Three ANDs.
fn mul4(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    let (high, low) = (g.and(a[1], b[1]), g.and(a[0], b[0]));
    let (a, b) = (g.xor(a[0], a[1]), g.xor(b[0], b[1]));
    let both = g.and(a, b);
    vec![g.xor(low, high), g.xor(both, low)]
}

/// Nine ANDs.
fn mul16(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
    let (high, low) = (mul4(g, &a[2..], &b[2..]), mul4(g, &a[..2], &b[..2]));
    let (a, b) = (sum(g, &a[2..], &a[..2]), sum(g, &b[2..], &b[..2]));
    let both = mul4(g, &a, &b);
    // w (h1 w + h0) = (h1 + h0) w + h1.
    let by_w = [high[1], g.xor(high[1], high[0])];
    let mut product = sum(g, &low, &by_w);
    product.extend(sum(g, &both, &low));
    product
}

/// Five ANDs, depth 4, between two changes of basis.
fn invert16(g: &mut CircuitBuilder, x: &[Lit]) -> Vec<Lit> {
    let (x1, x2, x3, x4) = (g.xor(x[0], x[1]), x[1], x[3], x[2]);
    let x13 = g.and(x1, x3);
    let (a, s) = (g.xor(x4, x13), g.xor(x1, x2));
    let sa = g.and(s, a);
    let y1 = g.xor(sa, x2);
    let (b, x34) = (g.xor(x2, x13), g.xor(x3, x4));
    let bx = g.and(b, x34);
    let y2 = g.xor(bx, x4);
    let ay = g.xor(a, y2);
    let q = g.and(x4, ay);
    let (qx, aq) = (g.xor(q, x3), g.xor(a, q));
    let y3 = g.xor(qx, y2);
    let yaq = g.and(y1, aq);
    let y4 = g.xor(s, yaq);
    let y12 = g.xor(y1, y2);
    vec![g.xor(y12, y4), g.xor(y1, y3), y2, y3]
}

/// 32 ANDs; zero stays zero. (h y + l) (h y + h + l) = NU h^2 + h l + l^2 is in GF(16).
fn invert256(g: &mut CircuitBuilder, x: &[Lit]) -> Vec<Lit> {
    let (low, high) = x.split_at(4);
    let both = sum(g, low, high);
    let square = |x: u8| times16(x, x);
    let map =
        |f: &dyn Fn(u8) -> u8| LinearMap::new(&std::array::from_fn(|i| if i < 4 { f(1 << i) } else { 0 }));
    let padded = |half: &[Lit]| [half, &[Lit::FALSE; 4]].concat();
    // l (h + l) + NU h^2: the square is linear.
    let part = map(&|h| times16(square(h), NU)).apply(g, &padded(high));
    let cross = mul16(g, low, &both);
    let norm = sum(g, &cross, &part[..4]);
    let inverse = invert16(g, &norm);
    let mut out = mul16(g, &both, &inverse);
    out.extend(mul16(g, high, &inverse));
    out
}

/// Bytes in the order of the standard; bits of a byte least significant first.
type Bytes = Vec<Vec<Lit>>;

fn bytes(word: &[Lit]) -> Bytes {
    word.chunks(8).rev().map(<[Lit]>::to_vec).collect()
}

/// Encrypts `block` under `key`, 128 bits each.
pub(super) fn encrypt(g: &mut CircuitBuilder, key: &[Lit], block: &[Lit]) -> Vec<Lit> {
    let sbox = Sbox::new();
    let mut key = bytes(key);
    let mut state: Bytes = bytes(block).iter().zip(&key).map(|(s, k)| sum(g, s, k)).collect();
    let mut round_constant = 1u8;
    for round in 1..=10 {
        state = state.iter().map(|byte| sbox.apply(g, byte)).collect();
        // Row r moves r columns to the left; byte i is in row i % 4.
        state = (0..16).map(|i| state[(i + 4 * (i % 4)) % 16].clone()).collect();
        if round < 10 {
            state = state.chunks(4).flat_map(|column| mix(g, column)).collect();
        }
        key = next_key(g, &sbox, &key, round_constant);
        round_constant = (round_constant << 1) ^ ((round_constant >> 7) * 0x1b);
        state = state.iter().zip(&key).map(|(s, k)| sum(g, s, k)).collect();
    }
    state.into_iter().rev().flatten().collect()
}

fn next_key(g: &mut CircuitBuilder, sbox: &Sbox, key: &Bytes, constant: u8) -> Bytes {
    let mut next = key.clone();
    for i in 0..16 {
        let mut add = if i < 4 { sbox.apply(g, &key[12 + (i + 1) % 4]) } else { next[i - 4].clone() };
        if i == 0 {
            (0..8).for_each(|bit| add[bit] = add[bit].flip(constant >> bit & 1 == 1));
        }
        next[i] = sum(g, &key[i], &add);
    }
    next
}

/// 2 a0 + 3 a1 + a2 + a3 = a0 + (a0 + a1 + a2 + a3) + 2 (a0 + a1), and so on around.
fn mix(g: &mut CircuitBuilder, column: &[Vec<Lit>]) -> Bytes {
    let pairs: Bytes = (0..4).map(|i| sum(g, &column[i], &column[(i + 1) % 4])).collect();
    let all = sum(g, &pairs[0], &pairs[2]);
    let mut mixed = Bytes::new();
    for (byte, pair) in column.iter().zip(&pairs) {
        let mut double = pair.clone();
        double.rotate_right(1);
        for bit in [1, 3, 4] {
            double[bit] = g.xor(double[bit], pair[7]);
        }
        let rest = sum(g, byte, &all);
        mixed.push(sum(g, &rest, &double));
    }
    mixed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InputBit;

    /// From the definition in the standard, without the tower.
    fn expected(x: u8) -> u8 {
        let times = |a: u8, b: u8| {
            let step = |p: u16| if p & 0x100 == 0 { p } else { p ^ 0x11b };
            (0..8).rev().fold(0, |p: u16, i| step(p << 1) ^ if b >> i & 1 == 1 { a.into() } else { 0 }) as u8
        };
        let inverse = (0..=255).find(|y| times(x, *y) == 1).unwrap_or(0);
        (0..8).fold(0x63, |out, i| {
            let bit = [0, 4, 5, 6, 7].iter().fold(0, |sum, by| sum ^ inverse >> ((i + by) % 8) & 1);
            out ^ bit << i
        })
    }

    #[test]
    fn the_sbox_is_the_table_with_32_ands() {
        let mut g = CircuitBuilder::default();
        let x: Vec<Lit> = (0..8).map(|bit| g.input(InputBit { owner: None, word: 0, bit })).collect();
        let y = Sbox::new().apply(&mut g, &x);
        let circuit = g.finish();
        assert_eq!((circuit.and_gates(), circuit.and_depth()), (32, 6));
        for x in 0..=255u8 {
            let wires = circuit.evaluate(|i| x >> i.bit & 1 == 1);
            let bit = |(i, lit): (usize, &Lit)| u8::from(wires[lit.wire()] ^ lit.inverted()) << i;
            assert_eq!(y.iter().enumerate().map(bit).sum::<u8>(), expected(x), "{x:#04x}");
        }
        assert_eq!([expected(0), expected(0x53), expected(0xff)], [0x63, 0xed, 0x16]);
    }
}
