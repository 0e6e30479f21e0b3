//! The x86-64 kernels, generic over the vector width: one block (AES-NI) or four (VAES, AVX-512).
//!
//! Contract of every `unsafe fn` below: the CPU has the features of the vector type `W`. The safe functions
//! at the end uphold it: they are reached only with a backend that `InstructionSet` found on this machine,
//! and lengths were checked by the public function above them. Pointers are always taken from a slice at `i`
//! with `n` lanes left.
#![expect(
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    clippy::needless_range_loop,
    reason = "CPU intrinsics under the one contract of the header; counted loops stay unrolled vectors"
)]

use crate::portable::HalfKeys;
use crate::{Aes128, Block, InstructionSet};
use std::arch::x86_64::*;

pub mod curve;
mod gf128;
mod local;
pub use gf128::{add_multiples, digest, has_field};
pub use local::add_rows;

type Keys = [Block; 11];
/// Vectors in flight in a main loop.
const FLIGHT: usize = 4;

/// Defines methods of a vector that are one instruction on it and another one.
macro_rules! instructions {
    ($($name:ident = $instruction:ident),*) => {
        $(#[inline(always)]
        unsafe fn $name(self, other: Self) -> Self {
            $instruction(self, other)
        })*
    };
}

/// A vector of `LANES` blocks.
trait Wide: ring::HalfSums {
    const LANES: usize;
    unsafe fn splat(block: Block) -> Self;
    /// Block i is `counter + i`.
    unsafe fn count(counter: u64) -> Self;
    /// Block i is all ones when bit i of `bits` is set, else zero.
    unsafe fn spread(bits: u64) -> Self;
    unsafe fn load(from: *const Block) -> Self;
    /// Loads the first `n < LANES` blocks; the others are zero.
    unsafe fn load_some(from: *const Block, n: usize) -> Self;
    unsafe fn store(self, to: *mut Block);
    unsafe fn store_some(self, to: *mut Block, n: usize);
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn sigma(self) -> Self;
    /// All ones in every block whose bit 0 is set.
    unsafe fn lsb_mask(self) -> Self;
    /// Bit 0 of every block: bit i is that of block i.
    unsafe fn lsbs(self) -> u64;
    unsafe fn round(self, key: Self) -> Self;
    unsafe fn last_round(self, key: Self) -> Self;
    /// Interleaves blocks: `x0 y0 x1 y1 ..` in two vectors.
    unsafe fn zip(x: Self, y: Self) -> (Self, Self);
    /// Inverse of `zip`.
    unsafe fn unzip(low: Self, high: Self) -> (Self, Self);
}

impl Wide for __m128i {
    const LANES: usize = 1;
    #[inline(always)]
    unsafe fn splat(block: Block) -> Self {
        _mm_loadu_si128((&raw const block).cast())
    }
    #[inline(always)]
    unsafe fn count(counter: u64) -> Self {
        _mm_set_epi64x(0, counter as i64)
    }
    #[inline(always)]
    unsafe fn spread(bits: u64) -> Self {
        _mm_set1_epi64x((bits & 1).wrapping_neg() as i64)
    }
    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        _mm_loadu_si128(from.cast())
    }
    #[inline(always)]
    unsafe fn load_some(_: *const Block, _: usize) -> Self {
        _mm_setzero_si128()
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        _mm_storeu_si128(to.cast(), self);
    }
    #[inline(always)]
    unsafe fn store_some(self, _: *mut Block, _: usize) {}
    instructions!(xor = _mm_xor_si128, and = _mm_and_si128);
    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        let upper = _mm_and_si128(self, _mm_set_epi64x(-1, 0));
        _mm_xor_si128(_mm_shuffle_epi32::<0x4e>(self), upper)
    }
    #[inline(always)]
    unsafe fn lsb_mask(self) -> Self {
        _mm_shuffle_epi32::<0>(_mm_srai_epi32::<31>(_mm_slli_epi32::<31>(self)))
    }
    #[inline(always)]
    unsafe fn lsbs(self) -> u64 {
        _mm_cvtsi128_si64(self) as u64 & 1
    }
    instructions!(round = _mm_aesenc_si128, last_round = _mm_aesenclast_si128);
    #[inline(always)]
    unsafe fn zip(x: Self, y: Self) -> (Self, Self) {
        (x, y)
    }
    #[inline(always)]
    unsafe fn unzip(low: Self, high: Self) -> (Self, Self) {
        (low, high)
    }
}

/// Mask of the 64-bit halves of the first `n` blocks.
#[inline(always)]
fn halves(n: usize) -> __mmask8 {
    ((1u32 << (2 * n)) - 1) as __mmask8
}

impl Wide for __m512i {
    const LANES: usize = 4;
    #[inline(always)]
    unsafe fn splat(block: Block) -> Self {
        _mm512_broadcast_i32x4(_mm_loadu_si128((&raw const block).cast()))
    }
    #[inline(always)]
    unsafe fn count(counter: u64) -> Self {
        let start = _mm512_maskz_set1_epi64(0b0101_0101, counter as i64);
        _mm512_add_epi64(start, _mm512_set_epi64(0, 3, 0, 2, 0, 1, 0, 0))
    }
    #[inline(always)]
    unsafe fn spread(bits: u64) -> Self {
        let mask = _pdep_u32(bits as u32, 0x55) * 3;
        _mm512_maskz_set1_epi64(mask as __mmask8, -1)
    }
    #[inline(always)]
    unsafe fn load(from: *const Block) -> Self {
        _mm512_loadu_si512(from.cast())
    }
    #[inline(always)]
    unsafe fn load_some(from: *const Block, n: usize) -> Self {
        _mm512_maskz_loadu_epi64(halves(n), from.cast())
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut Block) {
        _mm512_storeu_si512(to.cast(), self);
    }
    #[inline(always)]
    unsafe fn store_some(self, to: *mut Block, n: usize) {
        _mm512_mask_storeu_epi64(to.cast(), halves(n), self);
    }
    instructions!(xor = _mm512_xor_si512, and = _mm512_and_si512);
    #[inline(always)]
    unsafe fn sigma(self) -> Self {
        let swapped = _mm512_shuffle_epi32::<0x4e>(self);
        _mm512_mask_xor_epi64(swapped, 0b1010_1010, swapped, self)
    }
    #[inline(always)]
    unsafe fn lsb_mask(self) -> Self {
        _mm512_shuffle_epi32::<0>(_mm512_srai_epi32::<31>(_mm512_slli_epi32::<31>(self)))
    }
    #[inline(always)]
    unsafe fn lsbs(self) -> u64 {
        let set = _mm512_test_epi64_mask(self, _mm512_set_epi64(0, 1, 0, 1, 0, 1, 0, 1));
        u64::from(_pext_u32(set.into(), 0x55))
    }
    instructions!(round = _mm512_aesenc_epi128, last_round = _mm512_aesenclast_epi128);
    #[inline(always)]
    unsafe fn zip(x: Self, y: Self) -> (Self, Self) {
        let low = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
        let high = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
        (_mm512_permutex2var_epi64(x, low, y), _mm512_permutex2var_epi64(x, high, y))
    }
    #[inline(always)]
    unsafe fn unzip(low: Self, high: Self) -> (Self, Self) {
        let even = _mm512_set_epi64(13, 12, 9, 8, 5, 4, 1, 0);
        let odd = _mm512_set_epi64(15, 14, 11, 10, 7, 6, 3, 2);
        (_mm512_permutex2var_epi64(low, even, high), _mm512_permutex2var_epi64(low, odd, high))
    }
}

/// `n` lanes from `i` on (`n <= LANES`).
#[inline(always)]
unsafe fn get<W: Wide>(from: &[Block], i: usize, n: usize) -> W {
    debug_assert!(i + n <= from.len());
    let from = from.as_ptr().add(i);
    if n >= W::LANES { W::load(from) } else { W::load_some(from, n) }
}

#[inline(always)]
unsafe fn put<W: Wide>(x: W, to: &mut [Block], i: usize, n: usize) {
    debug_assert!(i + n <= to.len());
    let to = to.as_mut_ptr().add(i);
    if n >= W::LANES { x.store(to) } else { x.store_some(to, n) }
}

/// `n` pairs of blocks from pair `i` on, taken apart.
#[inline(always)]
unsafe fn get_pairs<W: Wide>(from: &[Block], i: usize, n: usize) -> (W, W) {
    let first = (2 * n).min(W::LANES);
    W::unzip(get(from, 2 * i, first), get(from, 2 * i + first, 2 * n - first))
}

#[inline(always)]
unsafe fn put_pairs<W: Wide>(x: W, y: W, to: &mut [Block], i: usize, n: usize) {
    let first = (2 * n).min(W::LANES);
    let (low, high) = W::zip(x, y);
    put(low, to, 2 * i, first);
    put(high, to, 2 * i + first, 2 * n - first);
}

/// Packed bits of `LANES` lanes from lane `i` on; `i` is a multiple of `LANES`, so they lie in one word.
#[inline(always)]
unsafe fn get_bits<W: Wide>(bits: &[u64], i: usize) -> W {
    W::spread(bits[i / 64] >> (i % 64))
}

/// AES of G groups of N vectors, all under the same keys.
#[inline(always)]
unsafe fn aes<W: Wide, const G: usize, const N: usize>(x: &mut [[W; N]; G], keys: &Keys) {
    let first = W::splat(keys[0]);
    for g in 0..G {
        for j in 0..N {
            x[g][j] = x[g][j].xor(first);
        }
    }
    for key in &keys[1..10] {
        let key = W::splat(*key);
        for g in 0..G {
            for j in 0..N {
                x[g][j] = x[g][j].round(key);
            }
        }
    }
    let last = W::splat(keys[10]);
    for g in 0..G {
        for j in 0..N {
            x[g][j] = x[g][j].last_round(last);
        }
    }
}

/// H of N vectors.
#[inline(always)]
unsafe fn hash_one<W: Wide, const N: usize>(x: &[W; N], keys: &Keys) -> [W; N] {
    let mut s = [*x];
    for s in &mut s[0] {
        *s = s.sigma();
    }
    let forward = s[0];
    aes(&mut s, keys);
    for j in 0..N {
        s[0][j] = s[0][j].xor(forward[j]);
    }
    s[0]
}

/// H of N vectors and of the same vectors plus `delta`.
#[inline(always)]
unsafe fn hash_two<W: Wide, const N: usize>(x: &[W; N], delta: W, keys: &Keys) -> [[W; N]; 2] {
    let mut s = [*x, *x];
    let shift = delta.sigma();
    for j in 0..N {
        s[0][j] = x[j].sigma();
        s[1][j] = s[0][j].xor(shift);
    }
    let forward = s;
    aes(&mut s, keys);
    for j in 0..N {
        s[0][j] = s[0][j].xor(forward[0][j]);
        s[1][j] = s[1][j].xor(forward[1][j]);
    }
    s
}

#[inline(always)]
unsafe fn get_all<W: Wide, const N: usize>(from: &[Block], i: usize, n: usize) -> [W; N] {
    let mut x = [W::splat(Block::ZERO); N];
    for (j, x) in x.iter_mut().enumerate() {
        *x = get(from, i + j * W::LANES, n);
    }
    x
}

/// Runs `$step::<W, N>(i, n, ..)` over all lanes: `FLIGHT` full vectors at a time, then one vector of `n`
/// lanes at a time.
macro_rules! sweep {
    ($step:ident, $lanes:expr, $($argument:expr),*) => {{
        let (lanes, mut i) = ($lanes, 0);
        while i + FLIGHT * W::LANES <= lanes {
            $step::<W, FLIGHT>(i, W::LANES, $($argument),*);
            i += FLIGHT * W::LANES;
        }
        while i < lanes {
            let n = W::LANES.min(lanes - i);
            $step::<W, 1>(i, n, $($argument),*);
            i += n;
        }
    }};
}

/// Defines a kernel: its step over N vectors of `n` lanes from lane `i` on, and the safe function that runs
/// it on a backend over all lanes.
macro_rules! kernel {
    ($name:ident, $step:ident, lanes $lanes:expr,
     ($($arg:ident : $type:ty),*), ($i:ident, $n:ident) $body:block) => {
        #[inline(always)]
        #[allow(clippy::too_many_arguments, reason = "the operands of the gate")]
        unsafe fn $step<W: Wide, const N: usize>($i: usize, $n: usize, $($arg: $type),*) $body

        #[allow(clippy::too_many_arguments, reason = "the operands of the gate")]
        pub fn $name(backend: InstructionSet, $($arg: $type),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "the operands of the gate")]
            unsafe fn all<W: Wide>($($arg: $type),*) {
                sweep!($step, $lanes, $($arg),*);
            }
            #[target_feature(enable = "aes,avx2,sse4.1")]
            #[allow(clippy::too_many_arguments, reason = "the operands of the gate")]
            unsafe fn narrow($($arg: $type),*) {
                all::<__m128i>($($arg),*);
            }
            #[target_feature(enable = "vaes,gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
            #[allow(clippy::too_many_arguments, reason = "the operands of the gate")]
            unsafe fn wide($($arg: $type),*) {
                all::<__m512i>($($arg),*);
            }
            match backend {
                // SAFETY: `backend` was found on this machine, so the features are there.
                InstructionSet::Vaes512 => unsafe { wide($($arg),*) },
                // SAFETY: as above; the portable backend never comes here.
                _ => unsafe { narrow($($arg),*) },
            }
        }
    };
}

pub mod ring;

kernel!(encrypt, encrypt_step, lanes x.len(), (keys: &Keys, x: &mut [Block]), (i, n) {
    let mut s = [get_all::<W, N>(x, i, n)];
    aes(&mut s, keys);
    for j in 0..N {
        put(s[0][j], x, i + j * W::LANES, n);
    }
});

kernel!(ctr, ctr_step, lanes out.len(), (keys: &Keys, counter: u64, out: &mut [Block]), (i, n) {
    let x = stream::<W, N>(keys, counter, i);
    for j in 0..N {
        put(x[j], out, i + j * W::LANES, n);
    }
});

kernel!(ctr_xor, ctr_xor_step, lanes data.len(), (keys: &Keys, counter: u64, data: &mut [Block]), (i, n) {
    let x = stream::<W, N>(keys, counter, i);
    let y = get_all::<W, N>(data, i, n);
    for j in 0..N {
        put(x[j].xor(y[j]), data, i + j * W::LANES, n);
    }
});

kernel!(xor_masked_by, xor_masked_by_step, lanes sums.len(),
    (sums: &mut [Block], x: &[Block], mask: Block), (i, n) {
    let (sum, x, mask) = (get_all::<W, N>(sums, i, n), get_all::<W, N>(x, i, n), W::splat(mask));
    for j in 0..N {
        put(sum[j].xor(x[j].and(mask)), sums, i + j * W::LANES, n);
    }
});

kernel!(hash, hash_step, lanes out.len(), (keys: &Keys, x: &[Block], out: &mut [Block]), (i, n) {
    let h = hash_one::<W, N>(&get_all(x, i, n), keys);
    for j in 0..N {
        put(h[j], out, i + j * W::LANES, n);
    }
});

/// ORs bit 0 of the first `n` blocks of `x` into the bits from lane `i` on, which lie in one word.
#[inline(always)]
unsafe fn put_lsbs<W: Wide>(x: W, to: &mut [u64], i: usize, n: usize) {
    to[i / 64] |= (x.lsbs() & ((1 << n) - 1)) << (i % 64);
}

kernel!(hash_lsbs, hash_lsbs_step, lanes x.len(), (keys: &Keys, x: &[Block], out: &mut [u64]), (i, n) {
    let h = hash_one::<W, N>(&get_all(x, i, n), keys);
    for j in 0..N {
        put_lsbs(h[j], out, i + j * W::LANES, n);
    }
});

kernel!(hash_lsbs_both, hash_lsbs_both_step, lanes x.len(),
(keys: &Keys, delta: Block, x: &[Block], zero: &mut [u64], one: &mut [u64]), (i, n) {
    let h = hash_two(&get_all::<W, N>(x, i, n), W::splat(delta), keys);
    for j in 0..N {
        put_lsbs(h[0][j], zero, i + j * W::LANES, n);
        put_lsbs(h[1][j], one, i + j * W::LANES, n);
    }
});

kernel!(garble_and, garble_and_step, lanes a.len(),
(keys: &HalfKeys, delta: Block, a: &[Block], b: &[Block], out: &mut [Block], table: &mut [Block]), (i, n) {
    let d = W::splat(delta);
    let (a, b) = (get_all::<W, N>(a, i, n), get_all::<W, N>(b, i, n));
    let ha = hash_two(&a, d, &keys[0]);
    let hb = hash_two(&b, d, &keys[1]);
    for j in 0..N {
        let (pa, pb) = (a[j].lsb_mask(), b[j].lsb_mask());
        let tg = ha[0][j].xor(ha[1][j]).xor(pb.and(d));
        let u = hb[0][j].xor(hb[1][j]);
        let c = ha[0][j].xor(pa.and(tg)).xor(hb[0][j]).xor(pb.and(u));
        put(c, out, i + j * W::LANES, n);
        put_pairs(tg, u.xor(a[j]), table, i + j * W::LANES, n);
    }
});

kernel!(eval_and, eval_and_step, lanes a.len(),
(keys: &HalfKeys, a: &[Block], b: &[Block], out: &mut [Block], table: &[Block]), (i, n) {
    let (a, b) = (get_all::<W, N>(a, i, n), get_all::<W, N>(b, i, n));
    let (ha, hb) = (hash_one(&a, &keys[0]), hash_one(&b, &keys[1]));
    for j in 0..N {
        let (tg, te) = get_pairs::<W>(table, i + j * W::LANES, n);
        let c = ha[j].xor(hb[j]).xor(a[j].lsb_mask().and(tg));
        put(c.xor(b[j].lsb_mask().and(te.xor(a[j]))), out, i + j * W::LANES, n);
    }
});

kernel!(garble_garbler_known, garble_garbler_step, lanes b.len(),
(keys: &Keys, delta: Block, a_bits: &[u64], b: &[Block], out: &mut [Block], table: &mut [Block]), (i, n) {
    let d = W::splat(delta);
    let b = get_all::<W, N>(b, i, n);
    let h = hash_two(&b, d, keys);
    for j in 0..N {
        let i = i + j * W::LANES;
        let t = h[0][j].xor(h[1][j]).xor(get_bits::<W>(a_bits, i).and(d));
        put(h[0][j].xor(b[j].lsb_mask().and(t)), out, i, n);
        put(t, table, i, n);
    }
});

kernel!(eval_garbler_known, eval_garbler_step, lanes b.len(),
(keys: &Keys, b: &[Block], out: &mut [Block], table: &[Block]), (i, n) {
    let b = get_all::<W, N>(b, i, n);
    let h = hash_one(&b, keys);
    for j in 0..N {
        let i = i + j * W::LANES;
        put(h[j].xor(b[j].lsb_mask().and(get(table, i, n))), out, i, n);
    }
});

kernel!(garble_evaluator_known, garble_evaluator_step, lanes a.len(),
(keys: &Keys, delta: Block, a: &[Block], b: &[Block], out: &mut [Block], table: &mut [Block]), (i, n) {
    let h = hash_two(&get_all::<W, N>(a, i, n), W::splat(delta), keys);
    for j in 0..N {
        let i = i + j * W::LANES;
        put(h[0][j], out, i, n);
        put(h[0][j].xor(h[1][j]).xor(get(b, i, n)), table, i, n);
    }
});

kernel!(eval_evaluator_known, eval_evaluator_step, lanes a.len(),
(keys: &Keys, a: &[Block], a_bits: &[u64], b: &[Block], out: &mut [Block], table: &[Block]), (i, n) {
    let h = hash_one(&get_all::<W, N>(a, i, n), keys);
    for j in 0..N {
        let i = i + j * W::LANES;
        let t: W = get::<W>(table, i, n).xor(get(b, i, n));
        put(h[j].xor(get_bits::<W>(a_bits, i).and(t)), out, i, n);
    }
});

kernel!(fold_streams, fold_step, lanes u.len(),
(keys: &[Aes128], counter: u64, u: &mut [Block], v: &mut [Block]), (i, n) {
    match keys.len() {
        2 => fold::<W, N, 1>(keys, counter, u, v, i, n),
        4 => fold::<W, N, 2>(keys, counter, u, v, i, n),
        8 => fold::<W, N, 3>(keys, counter, u, v, i, n),
        16 => fold::<W, N, 4>(keys, counter, u, v, i, n),
        32 => fold::<W, N, 5>(keys, counter, u, v, i, n),
        64 => fold::<W, N, 6>(keys, counter, u, v, i, n),
        128 => fold::<W, N, 7>(keys, counter, u, v, i, n),
        _ => fold::<W, N, 8>(keys, counter, u, v, i, n),
    }
});

/// The fold of 2^D streams. A binary counter of partial sums: two neighbours of level l merge into one of
/// level l + 1, and the right one counts for bit l. Two additions per stream instead of one per stream and
/// bit.
#[inline(always)]
unsafe fn fold<W: Wide, const N: usize, const D: usize>(
    keys: &[Aes128],
    counter: u64,
    u: &mut [Block],
    v: &mut [Block],
    i: usize,
    n: usize,
) {
    let keys = &keys[..1 << D];
    let mut rows = [[W::splat(Block::ZERO); N]; D];
    let mut left = rows;
    let mut total = [W::splat(Block::ZERO); N];
    for index in 0..1 << D {
        let mut sum = stream::<W, N>(&keys[index].keys, counter, i);
        let merges = index.trailing_ones() as usize;
        for level in 0..D {
            if level == merges {
                left[level] = sum;
                break;
            }
            for j in 0..N {
                rows[level][j] = rows[level][j].xor(sum[j]);
                sum[j] = sum[j].xor(left[level][j]);
            }
        }
        total = sum;
    }
    let length = u.len();
    for j in 0..N {
        put(total[j], u, i + j * W::LANES, n);
        for level in 0..D {
            put(rows[level][j], v, level * length + i + j * W::LANES, n);
        }
    }
}

/// Blocks `counter + i ..` of a counter-mode stream.
#[inline(always)]
unsafe fn stream<W: Wide, const N: usize>(keys: &Keys, counter: u64, i: usize) -> [W; N] {
    let mut x = [[W::splat(Block::ZERO); N]];
    for (j, x) in x[0].iter_mut().enumerate() {
        *x = W::count(counter.wrapping_add((i + j * W::LANES) as u64));
    }
    aes(&mut x, keys);
    x[0]
}

/// One round of the key schedule. SubWord comes from `aesenclast` on four equal columns, which ShiftRows
/// leaves alone; the prefix sums of the four words from two shifted additions.
#[inline(always)]
unsafe fn next_key(key: __m128i, rcon: i32) -> __m128i {
    // Every column becomes RotWord of the last one.
    let rotate = _mm_set1_epi32(0x0c0f_0e0d);
    let word = _mm_aesenclast_si128(_mm_shuffle_epi8(key, rotate), _mm_set1_epi32(rcon));
    let sum = _mm_xor_si128(key, _mm_slli_si128::<4>(key));
    _mm_xor_si128(_mm_xor_si128(sum, _mm_slli_si128::<8>(sum)), word)
}

/// Round keys of AES-128.
pub fn key_schedule(key: Block) -> Keys {
    #[target_feature(enable = "aes,avx2,sse4.1")]
    unsafe fn expand(key: Block) -> Keys {
        const RCON: [i32; 10] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];
        let mut keys = [key; 11];
        let mut k = __m128i::splat(key);
        for (round, rcon) in RCON.into_iter().enumerate() {
            k = next_key(k, rcon);
            k.store(&raw mut keys[round + 1]);
        }
        keys
    }
    // SAFETY: reached only with an x86 backend, and all of them have AES-NI.
    unsafe { expand(key) }
}

/// See [`crate::transpose128`].
pub fn transpose128(backend: InstructionSet, rows: &[Block], out: &mut [Block]) {
    /// The portable code, compiled for 256-bit vectors.
    #[target_feature(enable = "avx2")]
    unsafe fn narrow(rows: &[Block], out: &mut [Block]) {
        crate::transpose::portable_transpose(rows, out);
    }
    match backend {
        // SAFETY: the backend was found on this machine.
        InstructionSet::Vaes512 => unsafe { transpose_wide(rows, out) },
        // SAFETY: as above; every x86 backend has AVX2.
        _ => unsafe { narrow(rows, out) },
    }
}

/// Index vector of bytes `f(0) .. f(63)`.
const fn bytes_of(table: [u8; 64]) -> [i64; 8] {
    let mut words = [0i64; 8];
    let mut i = 0;
    while i < 64 {
        words[i / 8] |= (table[i] as i64) << (8 * (i % 8));
        i += 1;
    }
    words
}

/// Picks, out of 8 rows of 16 bytes, bytes `first ..` of every row side by side: qword c holds byte `first
/// + c` of rows 7 down to 0 (GFNI numbers matrix rows from the last byte).
const fn gather_bytes(first: usize) -> [i64; 8] {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (column, row) = (i / 8, 7 - i % 8);
        table[i] = (row * 16 + first + column) as u8;
        i += 1;
    }
    bytes_of(table)
}

/// Out of 16 qwords (bit-transposed 8x8 squares, one per group of 8 rows) takes byte c of each into output
/// row `first + c`.
const fn scatter_bytes(first: usize) -> [i64; 8] {
    let mut table = [0; 64];
    let mut i = 0;
    while i < 64 {
        let (row, group) = (i / 16, i % 16);
        table[i] = (group * 8 + first + row) as u8;
        i += 1;
    }
    bytes_of(table)
}

/// Tile by tile: bytes of 8 rows side by side, 8x8 bit squares by GFNI, squares of one column together,
/// bytes back into rows.
#[target_feature(enable = "gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
unsafe fn transpose_wide(rows: &[Block], out: &mut [Block]) {
    const GATHER: [[i64; 8]; 2] = [gather_bytes(0), gather_bytes(8)];
    const SCATTER: [[i64; 8]; 2] = [scatter_bytes(0), scatter_bytes(4)];
    // Byte i of the source operand is the unit vector e_i: the product with a matrix is its column i.
    let units = _mm512_set1_epi64(0x8040_2010_0804_0201_u64 as i64);
    let gather = GATHER.map(|t| _mm512_loadu_si512(t.as_ptr().cast()));
    let scatter = SCATTER.map(|t| _mm512_loadu_si512(t.as_ptr().cast()));
    let per_row = rows.len() / 128;
    for (column, out) in out.chunks_exact_mut(128).enumerate() {
        // squares[c][r]: byte column c, row group r.
        let mut squares = [[0u64; 16]; 16];
        for group in 0..16 {
            let row = |r: usize| _mm_loadu_si128(rows[(8 * group + r) * per_row + column..].as_ptr().cast());
            let four = |r: usize| {
                let x = _mm512_castsi128_si512(row(r));
                let x = _mm512_inserti32x4::<1>(x, row(r + 1));
                let x = _mm512_inserti32x4::<2>(x, row(r + 2));
                _mm512_inserti32x4::<3>(x, row(r + 3))
            };
            let (upper, lower) = (four(0), four(4));
            for half in 0..2 {
                let bytes = _mm512_permutex2var_epi8(upper, gather[half], lower);
                let square = _mm512_gf2p8affine_epi64_epi8::<0>(units, bytes);
                let mut words = [0u64; 8];
                _mm512_storeu_si512(words.as_mut_ptr().cast(), square);
                for c in 0..8 {
                    squares[8 * half + c][group] = words[c];
                }
            }
        }
        for (squares, out) in squares.iter().zip(out.chunks_exact_mut(8)) {
            let low = _mm512_loadu_si512(squares.as_ptr().cast());
            let high = _mm512_loadu_si512(squares[8..].as_ptr().cast());
            for (scatter, out) in scatter.iter().zip(out.chunks_exact_mut(4)) {
                let rows = _mm512_permutex2var_epi8(low, *scatter, high);
                _mm512_storeu_si512(out.as_mut_ptr().cast(), rows);
            }
        }
    }
}
