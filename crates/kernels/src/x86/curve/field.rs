//! Eight elements of GF(2^255 - 19) at once, in radix 2^51: vector i holds limb i of all lanes.
//!
//! # Bounds
//! `VPMADD52` multiplies the low 52 bits of its operands, so a limb of an operand must be below `2^52`. There
//! are two types, and only the first may be multiplied:
//!
//! * [`Fe`]: every limb is below `2^51 + 2^14`;
//! * [`Wide`]: every limb is below `2^60`. A product, a sum of two products or a difference of two products
//!   is one.
//!
//! Let `B = 2^50`. For operands below `2^51 + 2^14` the upper half of a limb product is at most `B + 2^15`,
//! the lower half is below `4 B`. Column `5 + k` of a product has `5 - k` upper halves, taken twice, and
//! `4 - k` lower halves: less than `(26 - 6k) B + 2^19`. Column `k` has `k` upper halves, taken twice,
//! `k + 1` lower halves, and 19 times column `5 + k`: less than
//! `(4 + 6k) B + 19 (26 - 6k) B + 2^24 = (498 - 108k) B + 2^24`, hence below `499 B`, which is below
//! `2^59 - 2^52`. So:
//!
//! * a sum of two products is below `2^60`;
//! * `2^8 p` has every limb at least `2^59 - 2^13`, which is more than a product's: `x + 2^8 p - y` neither
//!   goes below zero nor reaches `2^60`;
//! * a carry moves less than `2^9` up one limb and less than `19 * 2^9 < 2^14` from the top to the bottom:
//!   one pass in parallel makes an [`Fe`] of a [`Wide`].
//!
//! Products are left uncarried until something multiplies them again: additions and subtractions come first,
//! on 64-bit limbs, and share the one carry.
//!
//! Contract of every `unsafe fn`: the CPU has AVX-512 F, DQ, BW, VL and IFMA.

use std::arch::x86_64::*;

/// One 64-bit limb of each lane.
pub type V = __m512i;

/// Bits of a limb.
const RADIX: u32 = 51;
const MASK: u64 = (1 << RADIX) - 1;
/// `2^8 p`.
const BIAS: [u64; 5] = [(MASK - 18) << 8, MASK << 8, MASK << 8, MASK << 8, MASK << 8];

/// Carried: what may be multiplied.
#[derive(Clone, Copy)]
pub struct Fe(pub [V; 5]);

/// Not carried.
#[derive(Clone, Copy)]
pub struct Wide(pub [V; 5]);

/// The same word in every lane.
#[inline(always)]
pub unsafe fn splat(word: u64) -> V {
    _mm512_set1_epi64(word as i64)
}

#[inline(always)]
unsafe fn zero() -> V {
    _mm512_setzero_si512()
}

#[inline(always)]
unsafe fn add(x: V, y: V) -> V {
    _mm512_add_epi64(x, y)
}

#[inline(always)]
unsafe fn low(sum: V, x: V, y: V) -> V {
    _mm512_madd52lo_epu64(sum, x, y)
}

#[inline(always)]
unsafe fn high(sum: V, x: V, y: V) -> V {
    _mm512_madd52hi_epu64(sum, x, y)
}

#[inline(always)]
unsafe fn times_19(x: V) -> V {
    _mm512_mullo_epi64(x, splat(19))
}

/// `x >> 51` of every limb but the last, moved up by one; 19 times that of the last comes first.
#[inline(always)]
unsafe fn carries(x: &[V; 5]) -> [V; 5] {
    let up = |i: usize| _mm512_srli_epi64::<RADIX>(x[i]);
    [times_19(up(4)), up(0), up(1), up(2), up(3)]
}

/// Ten columns of a product to five: `2^255 = 19`.
#[inline(always)]
unsafe fn fold(columns: &[V; 10]) -> Wide {
    Wide(each(|k| add(columns[k], times_19(columns[5 + k]))))
}

impl Wide {
    #[inline(always)]
    pub unsafe fn carry(&self) -> Fe {
        let c = carries(&self.0);
        let mask = splat(MASK);
        Fe(each(|i| add(_mm512_and_si512(self.0[i], mask), c[i])))
    }

    /// The sum of two products.
    #[inline(always)]
    pub unsafe fn plus(&self, y: &Self) -> Self {
        Self(each(|i| add(self.0[i], y.0[i])))
    }

    /// The difference of two products.
    #[inline(always)]
    pub unsafe fn minus(&self, y: &Self) -> Self {
        Self(each(|i| _mm512_sub_epi64(add(self.0[i], splat(BIAS[i])), y.0[i])))
    }

    /// A product plus `factor < 2^20` times `x`: more by less than `5 B`, so still below `2^59`.
    #[inline(always)]
    pub unsafe fn plus_times(&self, x: &Fe, factor: u64) -> Self {
        let factor = splat(factor);
        let up = each(|i| high(zero(), x.0[i], factor));
        let up = each(|i| add(up[i], up[i]));
        let up = [times_19(up[4]), up[0], up[1], up[2], up[3]];
        Self(each(|i| low(add(self.0[i], up[i]), x.0[i], factor)))
    }
}

/// Carries limb by limb up to the top; returns what leaves it.
#[inline(always)]
unsafe fn chain(x: &mut [V; 5]) -> V {
    let mask = splat(MASK);
    let mut carry = zero();
    for limb in x {
        let sum = add(*limb, carry);
        *limb = _mm512_and_si512(sum, mask);
        carry = _mm512_srli_epi64::<RADIX>(sum);
    }
    carry
}

/// An array of five from their indices, unrolled.
#[inline(always)]
fn each(f: impl Fn(usize) -> V) -> [V; 5] {
    [f(0), f(1), f(2), f(3), f(4)]
}

impl Fe {
    /// A constant, from its limbs.
    #[inline(always)]
    pub unsafe fn constant(limbs: [u64; 5]) -> Self {
        Self(each(|i| splat(limbs[i])))
    }

    #[inline(always)]
    pub unsafe fn small(x: u64) -> Self {
        Self::constant([x, 0, 0, 0, 0])
    }

    /// As a term of a sum.
    #[inline(always)]
    pub fn wide(&self) -> Wide {
        Wide(self.0)
    }

    /// The limbs of a number below `2^256` given in four 64-bit words. Bit 255 is dropped.
    #[inline(always)]
    pub unsafe fn from_words(w: [V; 4]) -> Self {
        let mask = splat(MASK);
        let cut = |x: V| _mm512_and_si512(x, mask);
        Self([
            cut(w[0]),
            cut(_mm512_or_si512(_mm512_srli_epi64::<51>(w[0]), _mm512_slli_epi64::<13>(w[1]))),
            cut(_mm512_or_si512(_mm512_srli_epi64::<38>(w[1]), _mm512_slli_epi64::<26>(w[2]))),
            cut(_mm512_or_si512(_mm512_srli_epi64::<25>(w[2]), _mm512_slli_epi64::<39>(w[3]))),
            cut(_mm512_srli_epi64::<12>(w[3])),
        ])
    }

    /// A number of 384 bits in six 64-bit words, modulo p.
    #[inline(always)]
    pub unsafe fn from_long_words(w: [V; 6]) -> Self {
        let low = Self::from_words([w[0], w[1], w[2], w[3]]);
        let mask = splat(MASK);
        // Limbs 5 to 7: bits 255, 306 and 357 on. With the factor 19 they stay below 2^56.
        let tops = [
            _mm512_or_si512(_mm512_srli_epi64::<63>(w[3]), _mm512_slli_epi64::<1>(w[4])),
            _mm512_or_si512(_mm512_srli_epi64::<50>(w[4]), _mm512_slli_epi64::<14>(w[5])),
            _mm512_srli_epi64::<37>(w[5]),
        ];
        let mut sum = low.0;
        for i in 0..3 {
            sum[i] = add(sum[i], times_19(_mm512_and_si512(tops[i], mask)));
        }
        Wide(sum).carry()
    }

    #[inline(always)]
    pub unsafe fn mul(&self, y: &Self) -> Wide {
        let (x, y) = (&self.0, &y.0);
        // The upper half of x_i y_j has the weight 2^(51 (i + j) + 52): twice in the next column.
        let mut columns = [zero(); 10];
        for i in 0..5 {
            for j in 0..5 {
                columns[i + j + 1] = high(columns[i + j + 1], x[i], y[j]);
            }
        }
        for n in 1..10 {
            columns[n] = add(columns[n], columns[n]);
        }
        for i in 0..5 {
            for j in 0..5 {
                columns[i + j] = low(columns[i + j], x[i], y[j]);
            }
        }
        fold(&columns)
    }

    /// As [`Fe::mul`], with every mixed product once and then twice. Operands cannot be doubled beforehand:
    /// twice `2^51 + 2^14` has 53 bits.
    #[inline(always)]
    pub unsafe fn square(&self) -> Wide {
        let x = &self.0;
        let mut columns = [zero(); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                columns[i + j + 1] = high(columns[i + j + 1], x[i], x[j]);
            }
        }
        for n in 2..9 {
            columns[n] = add(columns[n], columns[n]);
        }
        for i in 0..5 {
            columns[2 * i + 1] = high(columns[2 * i + 1], x[i], x[i]);
            for j in i + 1..5 {
                columns[i + j] = low(columns[i + j], x[i], x[j]);
            }
        }
        for n in 1..10 {
            columns[n] = add(columns[n], columns[n]);
        }
        for i in 0..5 {
            columns[2 * i] = low(columns[2 * i], x[i], x[i]);
        }
        fold(&columns)
    }

    /// `x` where the lane's bit is clear, `y` where it is set.
    #[inline(always)]
    pub unsafe fn select(lanes: __mmask8, x: &Self, y: &Self) -> Self {
        Self(each(|i| _mm512_mask_blend_epi64(lanes, x.0[i], y.0[i])))
    }

    #[inline(always)]
    pub unsafe fn times(&self, y: &Self) -> Self {
        self.mul(y).carry()
    }

    #[inline(always)]
    pub unsafe fn squared(&self) -> Self {
        self.square().carry()
    }

    #[inline(always)]
    pub unsafe fn add(&self, y: &Self) -> Self {
        self.wide().plus(&y.wide()).carry()
    }

    #[inline(always)]
    pub unsafe fn sub(&self, y: &Self) -> Self {
        self.wide().minus(&y.wide()).carry()
    }

    /// The representative below p, in limbs below `2^51`.
    #[inline(always)]
    pub unsafe fn canonical(&self) -> [V; 5] {
        let mut x = self.0;
        // Below 2^255 + 19 after one chain, since at most 1 leaves the top.
        let top = chain(&mut x);
        x[0] = add(x[0], times_19(top));
        // x >= p exactly when x + 19 reaches 2^255.
        let mut probe = x;
        probe[0] = add(probe[0], splat(19));
        let over = chain(&mut probe);
        x[0] = add(x[0], times_19(over));
        chain(&mut x);
        x
    }

    /// The lanes that are zero modulo p.
    #[inline(always)]
    pub unsafe fn zeros(&self) -> __mmask8 {
        let x = self.canonical();
        let any = _mm512_or_si512(_mm512_or_si512(x[0], x[1]), _mm512_or_si512(x[2], x[3]));
        let any = _mm512_or_si512(any, x[4]);
        _mm512_testn_epi64_mask(any, any)
    }

    /// The lanes whose canonical representative is odd.
    #[inline(always)]
    pub unsafe fn odds(&self) -> __mmask8 {
        let x = self.canonical();
        _mm512_test_epi64_mask(x[0], splat(1))
    }

    /// The representative below p in four 64-bit words.
    #[inline(always)]
    pub unsafe fn words(&self) -> [V; 4] {
        let x = self.canonical();
        [
            _mm512_or_si512(x[0], _mm512_slli_epi64::<51>(x[1])),
            _mm512_or_si512(_mm512_srli_epi64::<13>(x[1]), _mm512_slli_epi64::<38>(x[2])),
            _mm512_or_si512(_mm512_srli_epi64::<26>(x[2]), _mm512_slli_epi64::<25>(x[3])),
            _mm512_or_si512(_mm512_srli_epi64::<39>(x[3]), _mm512_slli_epi64::<12>(x[4])),
        ]
    }
}

/// `x^(2^n)`, of N elements side by side.
#[inline(always)]
unsafe fn square_times<const N: usize>(x: &[Fe; N], n: usize) -> [Fe; N] {
    let mut x = *x;
    for _ in 0..n {
        for x in &mut x {
            *x = x.squared();
        }
    }
    x
}

#[inline(always)]
unsafe fn times_all<const N: usize>(x: &[Fe; N], y: &[Fe; N]) -> [Fe; N] {
    let mut out = *x;
    for (out, y) in out.iter_mut().zip(y) {
        *out = out.times(y);
    }
    out
}

/// `x^(2^250 - 1)` and `x^11`.
#[inline(always)]
unsafe fn power_tail<const N: usize>(x: &[Fe; N]) -> ([Fe; N], [Fe; N]) {
    let two = square_times(x, 1);
    let nine = times_all(&square_times(&two, 2), x);
    let eleven = times_all(&nine, &two);
    let ones_5 = times_all(&square_times(&eleven, 1), &nine);
    let ones_10 = times_all(&square_times(&ones_5, 5), &ones_5);
    let ones_20 = times_all(&square_times(&ones_10, 10), &ones_10);
    let ones_40 = times_all(&square_times(&ones_20, 20), &ones_20);
    let ones_50 = times_all(&square_times(&ones_40, 10), &ones_10);
    let ones_100 = times_all(&square_times(&ones_50, 50), &ones_50);
    let ones_200 = times_all(&square_times(&ones_100, 100), &ones_100);
    (times_all(&square_times(&ones_200, 50), &ones_50), eleven)
}

/// `1 / x`; zero of zero.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,avx512ifma")]
pub unsafe fn invert(x: &Fe) -> Fe {
    let (ones_250, eleven) = power_tail(&[*x]);
    times_all(&square_times(&ones_250, 5), &eleven)[0]
}

/// `x^((p - 5) / 8)` of N elements side by side.
#[inline(always)]
pub unsafe fn root_power<const N: usize>(x: &[Fe; N]) -> [Fe; N] {
    let (ones_250, _) = power_tail(x);
    times_all(&square_times(&ones_250, 2), x)
}
