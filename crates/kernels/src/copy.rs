//! Copies of what this core will not look at soon: written past the caches, so that the memory of the target
//! is not read first.

use crate::Block;

/// Copies all blocks. On x86-64 they are written past the caches; elsewhere as any copy is.
///
/// # Panics
/// Lengths that differ.
pub fn copy_past_caches(to: &mut [Block], from: &[Block]) {
    assert_eq!(to.len(), from.len(), "a copy is as long as what is copied");
    #[cfg(target_arch = "x86_64")]
    x86::copy(to, from);
    #[cfg(not(target_arch = "x86_64"))]
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "stores past the caches, with the argument at each")]
mod x86 {
    use crate::Block;
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    /// Blocks of a line of a cache, which is written as one.
    const LINE: usize = 4;

    pub fn copy(to: &mut [Block], from: &[Block]) {
        // The first and the last blocks may share a line with what is not copied.
        let head = to.as_ptr().align_offset(LINE * Block::BYTES).min(to.len());
        let (first, to) = to.split_at_mut(head);
        let (of_first, from) = from.split_at(head);
        first.copy_from_slice(of_first);
        let (lines, last) = to.as_chunks_mut::<LINE>();
        let (of_lines, of_last) = from.as_chunks::<LINE>();
        for (line, from) in lines.iter_mut().zip(of_lines) {
            let (to, from) = (line.as_mut_ptr().cast::<__m128i>(), from.as_ptr().cast::<__m128i>());
            for i in 0..LINE {
                // SAFETY: both are four blocks long, SSE2 is part of x86-64, and a Block is aligned to its 16
                // bytes.
                unsafe { _mm_stream_si128(to.add(i), _mm_loadu_si128(from.add(i))) };
            }
        }
        last.copy_from_slice(of_last);
        // SAFETY: SSE2 is part of x86-64. Other threads and devices see what was written before what follows.
        unsafe { _mm_sfence() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_copied_wherever_it_lies() {
        let from: Vec<Block> = (0..70).map(|i| Block(u128::MAX / (i + 1))).collect();
        for start in 0..5 {
            for len in (0..40).chain([64, 65]) {
                let mut to = vec![Block::ONE; 75];
                copy_past_caches(&mut to[start + 1..][..len], &from[start..][..len]);
                assert_eq!(to[start + 1..][..len], from[start..][..len]);
                let rest = to[..start + 1].iter().chain(&to[start + 1 + len..]);
                assert!(rest.into_iter().all(|block| *block == Block::ONE), "{start} {len}");
            }
        }
    }
}
