//! Rows of a local code: indices cut in whole vectors, entries added in 128-bit registers.

use super::Wide;
use crate::local::LOCALITY;
use crate::{Block, InstructionSet};
use std::arch::x86_64::*;

/// See [`crate::add_local`]: `indices` are the raw words of these rows, and come out cut to byte offsets.
pub fn add_rows(backend: InstructionSet, indices: &mut [Block], secret: &[Block], rows: &mut [Block]) {
    assert!(secret.len().is_power_of_two() && secret.len() <= 1 << 28, "offsets fit 32 bits");
    assert_eq!(indices.len() * 4, rows.len() * LOCALITY, "one index per entry");
    #[target_feature(enable = "aes,avx2,sse4.1")]
    unsafe fn narrow(indices: &mut [Block], secret: &[Block], rows: &mut [Block]) {
        cut::<__m128i>(indices, secret.len());
        add(indices, secret, rows);
    }
    #[target_feature(enable = "vaes,gfni,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2")]
    unsafe fn wide(indices: &mut [Block], secret: &[Block], rows: &mut [Block]) {
        cut::<__m512i>(indices, secret.len());
        add(indices, secret, rows);
    }
    match backend {
        // SAFETY: `backend` was found on this machine, so the features are there; lengths were checked above.
        InstructionSet::Vaes512 => unsafe { wide(indices, secret, rows) },
        // SAFETY: as above; the portable backend never comes here.
        _ => unsafe { narrow(indices, secret, rows) },
    }
}

/// Every 32-bit word becomes the byte offset of an entry: bits 4 and up, below `k` entries.
#[inline(always)]
unsafe fn cut<W: Wide>(indices: &mut [Block], k: usize) {
    let offset = ((k - 1) as u32) << 4;
    let mask = W::splat(Block(u128::from(offset) * 0x1_0000_0001_0000_0001_0000_0001));
    for start in (0..indices.len()).step_by(W::LANES) {
        let n = W::LANES.min(indices.len() - start);
        super::put(super::get::<W>(indices, start, n).and(mask), indices, start, n);
    }
}

/// `indices` hold `LOCALITY` offsets per row, each of a whole block within `secret`.
#[inline(always)]
unsafe fn add(indices: &[Block], secret: &[Block], rows: &mut [Block]) {
    let base: *const u8 = secret.as_ptr().cast();
    let mut offset: *const u32 = indices.as_ptr().cast();
    let upper = _mm_set_epi64x(-1, -2);
    for row in rows {
        let row: *mut __m128i = std::ptr::from_mut(row).cast();
        // Two chains, so that an addition does not wait for the one before.
        let mut sums = [_mm_and_si128(_mm_loadu_si128(row), upper), _mm_setzero_si128()];
        for j in 0..LOCALITY {
            let entry = base.add(*offset.add(j) as usize);
            sums[j % 2] = _mm_xor_si128(sums[j % 2], _mm_loadu_si128(entry.cast()));
        }
        offset = offset.add(LOCALITY);
        _mm_storeu_si128(row, _mm_xor_si128(sums[0], sums[1]));
    }
}
