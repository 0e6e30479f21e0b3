//! The portable twins: bit-sliced AES and lane-by-lane kernels, written without regard to the x86 ones.
//!
//! Eight blocks are processed at once in eight bit planes: bit j of byte p of plane b is bit b of byte p of
//! block j. SubBytes is a boolean circuit over planes, ShiftRows and MixColumns move bytes within a plane.

use crate::Block;

pub mod curve;

/// Blocks of one bit-sliced call.
const SLICED: usize = 8;
type Planes = [u128; 8];

const ROW: [u128; 4] = [
    0x0000_00ff_0000_00ff_0000_00ff_0000_00ff,
    0x0000_ff00_0000_ff00_0000_ff00_0000_ff00,
    0x00ff_0000_00ff_0000_00ff_0000_00ff_0000,
    0xff00_0000_ff00_0000_ff00_0000_ff00_0000,
];

/// Swaps block index and bit index within every byte; its own inverse.
fn transpose_bits(x: &mut Planes) {
    const SWAPS: [(usize, u128); 3] = [
        (1, 0x5555_5555_5555_5555_5555_5555_5555_5555),
        (2, 0x3333_3333_3333_3333_3333_3333_3333_3333),
        (4, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f),
    ];
    for (distance, mask) in SWAPS {
        for j in (0..8).filter(|j| j & distance == 0) {
            let t = (x[j] >> distance ^ x[j + distance]) & mask;
            x[j + distance] ^= t;
            x[j] ^= t << distance;
        }
    }
}

/// The AES S-box on bit planes (plane 0 is the lowest bit): the 113-gate circuit of Boyar and Peralta, "A
/// depth-16 circuit for the AES S-box" (2011). Their U0 and S0 are the highest bits.
fn sub_bytes(p: &mut Planes) {
    let [u7, u6, u5, u4, u3, u2, u1, u0] = *p;
    // Top linear layer: the 22 linear forms that the non-linear middle multiplies.
    let (y14, y13, y9, y8) = (u3 ^ u5, u0 ^ u6, u0 ^ u3, u0 ^ u5);
    let t0 = u1 ^ u2;
    let y1 = t0 ^ u7;
    let (y4, y12, y2, y5) = (y1 ^ u3, y13 ^ y14, y1 ^ u0, y1 ^ u6);
    let y3 = y5 ^ y8;
    let t1 = u4 ^ y12;
    let (y15, y20) = (t1 ^ u5, t1 ^ u1);
    let (y6, y10, y11) = (y15 ^ u7, y15 ^ t0, y20 ^ y9);
    let (y7, y17, y19, y16) = (u7 ^ y11, y10 ^ y11, y10 ^ y8, t0 ^ y11);
    let (y21, y18) = (y13 ^ y16, u0 ^ y16);
    // Middle: inversion in GF(2^8) by way of GF(2^4).
    let (t2, t7, t12) = (y12 & y15, y13 & y16, y9 & y11);
    let (t4, t6) = (y3 & y6 ^ t2, y4 & u7 ^ t2);
    let (t9, t11) = (y5 & y1 ^ t7, y2 & y7 ^ t7);
    let (t14, t16) = (y14 & y17 ^ t12, y8 & y10 ^ t12);
    let (t21, t22) = (t4 ^ t14 ^ y20, t6 ^ t16 ^ y19);
    let (t23, t24) = (t9 ^ t14 ^ y21, t11 ^ t16 ^ y18);
    let (t25, t26, t30) = (t21 ^ t22, t21 & t23, t23 ^ t24);
    let t27 = t24 ^ t26;
    let t29 = t25 & t27 ^ t22;
    let t33 = (t22 ^ t26) & t30 ^ t24;
    let t36 = t24 & (t27 ^ t33);
    let t37 = t36 ^ t23 ^ t33;
    let t40 = t25 ^ t29 & (t27 ^ t36);
    let (t41, t42, t43, t44) = (t40 ^ t37, t29 ^ t33, t29 ^ t40, t33 ^ t37);
    let t45 = t42 ^ t41;
    let (z0, z1, z2) = (t44 & y15, t37 & y6, t33 & u7);
    let (z3, z4, z5) = (t43 & y16, t40 & y1, t29 & y7);
    let (z6, z7, z8) = (t42 & y11, t45 & y17, t41 & y10);
    let (z9, z10, z11) = (t44 & y12, t37 & y3, t33 & y4);
    let (z12, z13, z14) = (t43 & y13, t40 & y5, t29 & y2);
    let (z15, z16, z17) = (t42 & y9, t45 & y14, t41 & y8);
    // Bottom linear layer with the affine constant 0x63.
    let (t46, t48, t50, t53) = (z15 ^ z16, z5 ^ z13, z2 ^ z12, z0 ^ z3);
    let t57 = t50 ^ t53;
    let t58 = z4 ^ t46;
    let t59 = z3 ^ z6 ^ z7;
    let t62 = z7 ^ z8 ^ t58;
    let t63 = z9 ^ z10 ^ t58;
    let t64 = z4 ^ t59;
    let t65 = z14 ^ t57 ^ t62;
    let t66 = z1 ^ t63;
    let s3 = t53 ^ t66;
    let s0 = t59 ^ t63;
    let s1 = !(t64 ^ s3);
    let s2 = !(z16 ^ z17 ^ t64 ^ t65);
    let s4 = z2 ^ z5 ^ t66;
    let s5 = z10 ^ z11 ^ t65;
    let s6 = !(z12 ^ t48 ^ t62);
    let s7 = !(t48 ^ t46 ^ t57);
    *p = [s7, s6, s5, s4, s3, s2, s1, s0];
}

fn shift_rows(x: u128) -> u128 {
    (x & ROW[0])
        | (x & ROW[1]).rotate_right(32)
        | (x & ROW[2]).rotate_right(64)
        | (x & ROW[3]).rotate_right(96)
}

/// Byte r of each column becomes byte r + 1.
fn next_in_column(x: u128) -> u128 {
    (x >> 8 & !ROW[3]) | (x << 24 & ROW[3])
}

/// Byte r of each column becomes byte r + 2.
fn second_in_column(x: u128) -> u128 {
    const LOW: u128 = ROW[0] | ROW[1];
    (x >> 16 & LOW) | (x << 16 & !LOW)
}

fn mix_columns(p: &mut Planes) {
    let next = p.map(next_in_column);
    let sum: Planes = std::array::from_fn(|b| p[b] ^ next[b]);
    for b in 0..8 {
        // Multiplication by x: planes move up by one, the highest comes back in as 0x1b.
        let low = if b == 0 { 0 } else { sum[b - 1] };
        let carry = if matches!(b, 0 | 1 | 3 | 4) { sum[7] } else { 0 };
        p[b] = low ^ carry ^ next[b] ^ second_in_column(sum[b]);
    }
}

fn sub_word(word: u32) -> u32 {
    let mut planes = [0; 8];
    planes[0] = u128::from(word);
    transpose_bits(&mut planes);
    sub_bytes(&mut planes);
    transpose_bits(&mut planes);
    planes[0] as u32
}

/// Round keys of AES-128 (FIPS 197, section 5.2).
pub fn key_schedule(key: Block) -> [Block; 11] {
    const RCON: [u32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
    let mut keys = [key; 11];
    let mut w: [u32; 4] = std::array::from_fn(|i| (key.0 >> (32 * i)) as u32);
    for (round, rcon) in RCON.iter().enumerate() {
        w[0] ^= sub_word(w[3].rotate_right(8)) ^ rcon;
        for i in 1..4 {
            w[i] ^= w[i - 1];
        }
        keys[round + 1] = Block((0..4).fold(0, |k, i| k | u128::from(w[i]) << (32 * i)));
    }
    keys
}

/// Encrypts in place.
pub fn encrypt(keys: &[Block; 11], blocks: &mut [Block]) {
    const BYTES: u128 = 0x0101_0101_0101_0101_0101_0101_0101_0101;
    let spread = |key: &Block| -> Planes { std::array::from_fn(|b| (key.0 >> b & BYTES) * 0xff) };
    let keys: [Planes; 11] = std::array::from_fn(|r| spread(&keys[r]));
    let add = |p: &mut Planes, key: &Planes| p.iter_mut().zip(key).for_each(|(p, k)| *p ^= k);
    for chunk in blocks.chunks_mut(SLICED) {
        let mut p: Planes = std::array::from_fn(|j| chunk.get(j).map_or(0, |b| b.0));
        transpose_bits(&mut p);
        add(&mut p, &keys[0]);
        for key in &keys[1..10] {
            sub_bytes(&mut p);
            p = p.map(shift_rows);
            mix_columns(&mut p);
            add(&mut p, key);
        }
        sub_bytes(&mut p);
        p = p.map(shift_rows);
        add(&mut p, &keys[10]);
        transpose_bits(&mut p);
        chunk.iter_mut().zip(p).for_each(|(b, p)| b.0 = p);
    }
}

/// Counter mode: block i is the encryption of `counter + i`.
pub fn ctr(keys: &[Block; 11], counter: u64, out: &mut [Block]) {
    for (i, block) in out.iter_mut().enumerate() {
        *block = Block(u128::from(counter.wrapping_add(i as u64)));
    }
    encrypt(keys, out);
}

/// The stream from `counter` on, added to `data`.
pub fn ctr_xor(keys: &[Block; 11], counter: u64, data: &mut [Block]) {
    let mut stream = [Block::ZERO; 64];
    for (i, part) in data.chunks_mut(stream.len()).enumerate() {
        let stream = &mut stream[..part.len()];
        ctr(keys, counter.wrapping_add(64 * i as u64), stream);
        part.iter_mut().zip(stream.iter()).for_each(|(data, stream)| *data ^= *stream);
    }
}

/// The streams of all keys in counter mode, folded: `u` is their sum, row j of `v` the sum of those whose
/// index has bit j.
pub fn fold_streams(keys: &[[Block; 11]], counter: u64, u: &mut [Block], v: &mut [Block]) {
    let n = u.len();
    u.fill(Block::ZERO);
    v.fill(Block::ZERO);
    let mut stream = vec![Block::ZERO; n];
    for (index, keys) in keys.iter().enumerate() {
        ctr(keys, counter, &mut stream);
        for i in 0..n {
            u[i] ^= stream[i];
            for j in 0..v.len() / n {
                v[j * n + i] ^= stream[i].when((index >> j) as u64);
            }
        }
    }
}

/// H(x, t) under the key schedule of `start xor t`.
pub fn hash(keys: &[Block; 11], x: &[Block], out: &mut [Block]) {
    out.iter_mut().zip(x).for_each(|(o, x)| *o = x.sigma());
    encrypt(keys, out);
    out.iter_mut().zip(x).for_each(|(o, x)| *o ^= x.sigma());
}

/// Bit 0 of H of every input plus `offset`, packed.
pub fn hash_lsbs(keys: &[Block; 11], x: &[Block], offset: Block, out: &mut [u64]) {
    for (x, out) in x.chunks(64).zip(out) {
        *out = hashed(keys, x, offset).iter().rev().fold(0, |word, h| word << 1 | u64::from(h.lsb()));
    }
}

fn hashed(keys: &[Block; 11], x: &[Block], offset: Block) -> Vec<Block> {
    let shifted: Vec<Block> = x.iter().map(|&x| x ^ offset).collect();
    let mut out = vec![Block::ZERO; x.len()];
    hash(keys, &shifted, &mut out);
    out
}

/// Keys of both halves.
pub type HalfKeys = [[Block; 11]; 2];

/// See [`crate::garble_and`].
pub fn garble_and(
    k: &HalfKeys,
    delta: Block,
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    let (ha0, ha1) = (hashed(&k[0], a, Block::ZERO), hashed(&k[0], a, delta));
    let (hb0, hb1) = (hashed(&k[1], b, Block::ZERO), hashed(&k[1], b, delta));
    for i in 0..a.len() {
        let (pa, pb) = (a[i].lsb_mask(), b[i].lsb_mask());
        let tg = ha0[i] ^ ha1[i] ^ (pb & delta);
        let te = hb0[i] ^ hb1[i] ^ a[i];
        table[2 * i] = tg;
        table[2 * i + 1] = te;
        out[i] = ha0[i] ^ (pa & tg) ^ hb0[i] ^ (pb & (te ^ a[i]));
    }
}

/// See [`crate::eval_and`].
pub fn eval_and(k: &HalfKeys, a: &[Block], b: &[Block], out: &mut [Block], table: &[Block]) {
    let (ha, hb) = (hashed(&k[0], a, Block::ZERO), hashed(&k[1], b, Block::ZERO));
    for i in 0..a.len() {
        let (sa, sb) = (a[i].lsb_mask(), b[i].lsb_mask());
        out[i] = ha[i] ^ (sa & table[2 * i]) ^ hb[i] ^ (sb & (table[2 * i + 1] ^ a[i]));
    }
}

/// See [`crate::garble_and_garbler_known`].
pub fn garble_garbler_known(
    k: &[Block; 11],
    delta: Block,
    a_bits: &[u64],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    let (h0, h1) = (hashed(k, b, Block::ZERO), hashed(k, b, delta));
    for i in 0..b.len() {
        table[i] = h0[i] ^ h1[i] ^ delta.when(crate::bit(a_bits, i));
        out[i] = h0[i] ^ (b[i].lsb_mask() & table[i]);
    }
}

/// See [`crate::eval_and_garbler_known`].
pub fn eval_garbler_known(k: &[Block; 11], b: &[Block], out: &mut [Block], table: &[Block]) {
    let h = hashed(k, b, Block::ZERO);
    for i in 0..b.len() {
        out[i] = h[i] ^ (b[i].lsb_mask() & table[i]);
    }
}

/// See [`crate::garble_and_evaluator_known`].
pub fn garble_evaluator_known(
    k: &[Block; 11],
    delta: Block,
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    let (h0, h1) = (hashed(k, a, Block::ZERO), hashed(k, a, delta));
    for i in 0..a.len() {
        table[i] = h0[i] ^ h1[i] ^ b[i];
        out[i] = h0[i];
    }
}

/// See [`crate::eval_and_evaluator_known`].
pub fn eval_evaluator_known(
    k: &[Block; 11],
    a: &[Block],
    a_bits: &[u64],
    b: &[Block],
    out: &mut [Block],
    table: &[Block],
) {
    let h = hashed(k, a, Block::ZERO);
    for i in 0..a.len() {
        out[i] = h[i] ^ (table[i] ^ b[i]).when(crate::bit(a_bits, i));
    }
}

/// See [`crate::add_local`]: `indices` are the raw words of these rows.
pub fn add_rows(indices: &[Block], secret: &[Block], rows: &mut [Block]) {
    let word = |i: usize| (indices[i / 4].0 >> (32 * (i % 4))) as u32;
    for (i, row) in rows.iter_mut().enumerate() {
        row.0 &= !1;
        for j in 0..crate::LOCALITY {
            *row ^= secret[(word(i * crate::LOCALITY + j) >> 4) as usize % secret.len()];
        }
    }
}

/// Transposes one tile of 128 rows of 128 bits in place: recursive exchange of off-diagonal squares.
pub fn transpose_tile(tile: &mut [[u64; 2]; 128]) {
    for r in 0..64 {
        let (low, high) = (tile[r][1], tile[r + 64][0]);
        (tile[r][1], tile[r + 64][0]) = (high, low);
    }
    let mut mask: u64 = 0x0000_0000_ffff_ffff;
    let mut distance = 32;
    while distance > 0 {
        for pair in tile.chunks_exact_mut(2 * distance) {
            let (upper, lower) = pair.split_at_mut(distance);
            for (u, l) in upper.iter_mut().zip(lower) {
                for h in 0..2 {
                    let t = (u[h] >> distance ^ l[h]) & mask;
                    l[h] ^= t;
                    u[h] ^= t << distance;
                }
            }
        }
        distance /= 2;
        mask ^= mask << distance;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The S-box from its definition: inverse in GF(2^8), then the affine map.
    fn sbox(x: u8) -> u8 {
        let mul = |mut a: u8, mut b: u8| {
            let mut product = 0;
            while b != 0 {
                product ^= a * (b & 1);
                a = (a << 1) ^ (0x1b * (a >> 7));
                b >>= 1;
            }
            product
        };
        let inverse = (0..=255).find(|&y| mul(x, y) == 1).unwrap_or(0);
        (0..5).fold(0x63, |s, i| s ^ inverse.rotate_left(i))
    }

    #[test]
    fn the_circuit_is_the_s_box() {
        for x in 0..=255u8 {
            assert_eq!(sub_word(u32::from(x)) & 0xff, u32::from(sbox(x)), "S({x})");
        }
    }

    #[test]
    fn fips_197_appendix_b() {
        let key = Block::from_bytes(0x2b7e1516_28aed2a6_abf71588_09cf4f3cu128.to_be_bytes());
        let mut block = [Block::from_bytes(0x3243f6a8_885a308d_313198a2_e0370734u128.to_be_bytes())];
        let keys = key_schedule(key);
        assert_eq!(keys[10].to_bytes(), 0xd014f9a8_c9ee2589_e13f0cc8_b6630ca6u128.to_be_bytes());
        encrypt(&keys, &mut block);
        assert_eq!(block[0].to_bytes(), 0x3925841d_02dc09fb_dc118597_196a0b32u128.to_be_bytes());
    }
}
