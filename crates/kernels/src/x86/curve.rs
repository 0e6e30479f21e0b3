//! Curve25519, eight points at once: the x-only ladder under one key, and hashing to the curve.
//!
//! Time and addresses do not depend on the key: its bits become lane masks of blends. They do not depend on
//! points either.
//!
//! Contract of every `unsafe fn`: the CPU has AVX-512 F, DQ, BW, VL and IFMA.

use crate::curve::{Key, UCoordinate, Uniform};
use field::{Fe, V, Wide, invert};
use std::arch::x86_64::*;

mod field;
mod map;

/// Lanes of a vector.
const LANES: usize = 8;
/// Elements that share one inversion: enough to make it free, few enough to stay in the cache.
const SHARED: usize = 1024;
/// `(A - 2) / 4` of the doubling formula.
const A24: u64 = 121_665;

/// `x / z`; a z of zero is the neutral element.
#[derive(Clone, Copy)]
struct Fraction {
    x: Fe,
    z: Fe,
}

/// Replaces each point by its product with eight times `key`.
pub fn mul(key: &Key, points: &mut [UCoordinate]) {
    for points in points.chunks_mut(SHARED) {
        // SAFETY: `Curve` comes here only when the CPU has the features.
        unsafe { mul_some(key, points) };
    }
}

/// Maps uniform bytes to points, and multiplies them by eight times the key when there is one.
pub fn map(key: Option<&Key>, uniform: &[Uniform], out: &mut [UCoordinate]) {
    assert_eq!(uniform.len(), out.len(), "one point per name");
    for (uniform, out) in uniform.chunks(SHARED).zip(out.chunks_mut(SHARED)) {
        // SAFETY: as above; lengths are equal.
        unsafe { map_some(key, uniform, out) };
    }
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn mul_some(key: &Key, points: &mut [UCoordinate]) {
    let mut u = Vec::with_capacity(SHARED / LANES);
    for points in points.chunks(LANES) {
        u.push(Fe::from_words(load(points)));
    }
    write(&multiply(key, &u), points);
}

#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn map_some(key: Option<&Key>, uniform: &[Uniform], out: &mut [UCoordinate]) {
    let mut fractions = Vec::with_capacity(SHARED / LANES);
    for uniform in uniform.chunks(LANES) {
        fractions.push(map::hash(&load_long(uniform)));
    }
    let mut u = divide(&fractions);
    if let Some(key) = key {
        u = multiply(key, &u);
    }
    write(&u, out);
}

/// The u of every product.
#[inline(always)]
unsafe fn multiply(key: &Key, u: &[Fe]) -> Vec<Fe> {
    let mut fractions = Vec::with_capacity(SHARED / LANES);
    for u in u {
        fractions.push(ladder(key, u));
    }
    divide(&fractions)
}

/// Where one group of lanes stands: fractions of two points whose difference is the base point.
struct State {
    x2: Wide,
    z2: Wide,
    x3: Wide,
    z3: Wide,
}

/// Eight `key` times the points of base u: 252 steps, then three doublings.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn ladder(key: &Key, base: &Fe) -> Fraction {
    let (zero, one) = (Fe::small(0).wide(), Fe::small(1).wide());
    let mut state = State { x2: one, z2: zero, x3: base.wide(), z3: one };
    // Whether the point kept second is the one that a 0 bit would double.
    let mut crossed = 0;
    for i in (0..252).rev() {
        let bit = key[i / 8] >> (i % 8) & 1;
        state = step((bit ^ crossed).wrapping_neg(), base, &state);
        crossed = bit;
    }
    let lanes = crossed.wrapping_neg();
    let x = Fe::select(lanes, &state.x2.carry(), &state.x3.carry());
    let z = Fe::select(lanes, &state.z2.carry(), &state.z3.carry());
    double(&double(&double(&Fraction { x, z })))
}

/// The first point becomes the double of the first, or of the second in `lanes`; the second becomes the sum
/// of both. A difference of products has either sign and is squared, so only what is doubled has to be
/// selected.
#[inline(always)]
unsafe fn step(lanes: __mmask8, base: &Fe, s: &State) -> State {
    let (a, b) = (s.x2.plus(&s.z2).carry(), s.x2.minus(&s.z2).carry());
    let (c, d) = (s.x3.plus(&s.z3).carry(), s.x3.minus(&s.z3).carry());
    let (da, cb) = (d.mul(&a), c.mul(&b));
    let (plus, minus) = (Fe::select(lanes, &a, &c).square(), Fe::select(lanes, &b, &d).square());
    let (x2, z2) = double_of_squares(&plus, &minus);
    let difference = da.minus(&cb).carry().squared();
    let x3 = da.plus(&cb).carry().square();
    State { x2, z2, x3, z3: base.mul(&difference) }
}

/// The double from `(x + z)^2` and `(x - z)^2`.
#[inline(always)]
unsafe fn double_of_squares(plus: &Wide, minus: &Wide) -> (Wide, Wide) {
    let e = plus.minus(minus).carry();
    let x = plus.carry().mul(&minus.carry());
    (x, plus.plus_times(&e, A24).carry().mul(&e))
}

#[inline(always)]
unsafe fn double(p: &Fraction) -> Fraction {
    let (x, z) = double_of_squares(&p.x.add(&p.z).square(), &p.x.sub(&p.z).square());
    Fraction { x: x.carry(), z: z.carry() }
}

/// The quotients, zero where the denominator is zero, with one inversion for all.
#[inline(always)]
unsafe fn divide(fractions: &[Fraction]) -> Vec<Fe> {
    let (zero, one) = (Fe::small(0), Fe::small(1));
    let mut product = one;
    let mut before = Vec::with_capacity(SHARED / LANES);
    for f in fractions {
        let neutral = f.z.zeros();
        let (x, z) = (Fe::select(neutral, &f.x, &zero), Fe::select(neutral, &f.z, &one));
        before.push((x, z, product));
        product = product.times(&z);
    }
    let mut inverse = invert(&product);
    let mut out = vec![zero; fractions.len()];
    for (out, (x, z, product)) in out.iter_mut().zip(&before).rev() {
        *out = x.times(&inverse.times(product));
        inverse = inverse.times(z);
    }
    out
}

/// Writes the first `out.len()` lanes of `u`.
#[inline(always)]
unsafe fn write(u: &[Fe], out: &mut [UCoordinate]) {
    for (u, out) in u.iter().zip(out.chunks_mut(LANES)) {
        let mut all = [[0; 32]; LANES];
        store(u.words(), &mut all);
        out.copy_from_slice(&all[..out.len()]);
    }
}

/// Words 0 to 3 of up to eight elements, one vector per word; missing elements are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load(points: &[UCoordinate]) -> [V; 4] {
    let mut all = [[0; 32]; LANES];
    all[..points.len()].copy_from_slice(points);
    let row = |i: usize| _mm512_loadu_si512(all[2 * i..].as_ptr().cast());
    let rows = [row(0), row(1), row(2), row(3)];
    // Two words of four elements, then one word of eight.
    let words = |at: i64, r: usize| {
        let index = _mm512_setr_epi64(at, at + 4, at + 8, at + 12, at + 1, at + 5, at + 9, at + 13);
        _mm512_permutex2var_epi64(rows[r], index, rows[r + 1])
    };
    let pair = |at: i64| {
        let (first, second) = (words(at, 0), words(at, 2));
        (
            _mm512_shuffle_i64x2::<0b0100_0100>(first, second),
            _mm512_shuffle_i64x2::<0b1110_1110>(first, second),
        )
    };
    let ((w0, w1), (w2, w3)) = (pair(0), pair(2));
    [w0, w1, w2, w3]
}

/// Inverse of [`load`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn store(w: [V; 4], out: &mut [UCoordinate; LANES]) {
    for i in 0..LANES / 2 {
        // Words 0 and 1, then 2 and 3, of elements 2 i and 2 i + 1.
        let at = 2 * i as i64;
        let index = _mm512_setr_epi64(at, at + 8, 0, 0, at + 1, at + 9, 0, 0);
        let first = _mm512_permutex2var_epi64(w[0], index, w[1]);
        let index = _mm512_setr_epi64(0, 0, at, at + 8, 0, 0, at + 1, at + 9);
        let second = _mm512_permutex2var_epi64(w[2], index, w[3]);
        let row = _mm512_mask_blend_epi64(0b1100_1100, first, second);
        _mm512_storeu_si512(out[2 * i..].as_mut_ptr().cast(), row);
    }
}

/// Both field elements of up to eight names; missing names are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
unsafe fn load_long(uniform: &[Uniform]) -> [Fe; 2] {
    const WORDS: usize = size_of::<Uniform>() / 8;
    let mut all = [[0; size_of::<Uniform>()]; LANES];
    all[..uniform.len()].copy_from_slice(uniform);
    let stride = WORDS as i64;
    let rows =
        _mm512_setr_epi64(0, stride, 2 * stride, 3 * stride, 4 * stride, 5 * stride, 6 * stride, 7 * stride);
    // The bytes are big endian: word 0 is the last.
    let swap = _mm512_set_epi64(
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
        0x0809_0a0b_0c0d_0e0f,
        0x0001_0203_0405_0607,
    );
    let word = |i: usize| {
        let word = _mm512_i64gather_epi64::<8>(rows, all[0][8 * i..].as_ptr().cast());
        _mm512_shuffle_epi8(word, swap)
    };
    let element = |at: usize| {
        let end = at + WORDS / 2 - 1;
        Fe::from_long_words([
            word(end),
            word(end - 1),
            word(end - 2),
            word(end - 3),
            word(end - 4),
            word(end - 5),
        ])
    };
    [element(0), element(WORDS / 2)]
}
