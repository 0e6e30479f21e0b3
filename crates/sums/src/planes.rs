//! Lanes as packed bits, and as bytes of a block: what moves between the two.

use kernels::{Block, transpose128};
use program::lower::RowPlan;

/// Lanes of one transposition.
const TILE: usize = 128;
/// Bits of one word from which a transposition is cheaper than picking them one by one.
const PICKED: usize = 4;

/// Packs bit `bits[i].0` of all values into the words from `bits[i].1 * words` on.
pub(super) fn pack(values: &[u128], bits: &[(u16, u32)], words: usize, planes: &mut [u64]) {
    if bits.len() <= PICKED {
        for (bit, slot) in bits {
            let plane = &mut planes[*slot as usize * words..][..words];
            for (word, values) in plane.iter_mut().zip(values.chunks(64)) {
                *word = values.iter().enumerate().fold(0, |w, (i, v)| w | ((v >> bit) as u64 & 1) << i);
            }
        }
        return;
    }
    let (mut rows, mut columns) = ([Block::ZERO; TILE], [Block::ZERO; TILE]);
    for (tile, values) in values.chunks(TILE).enumerate() {
        rows[values.len()..].fill(Block::ZERO);
        rows.iter_mut().zip(values).for_each(|(row, value)| *row = Block(*value));
        transpose128(&rows, &mut columns);
        for (bit, slot) in bits {
            put(columns[usize::from(*bit)], tile, &mut planes[*slot as usize * words..][..words]);
        }
    }
}

/// Two words of a plane; the second one where there is room.
fn put(column: Block, tile: usize, plane: &mut [u64]) {
    plane[2 * tile] = column.0 as u64;
    if let Some(high) = plane.get_mut(2 * tile + 1) {
        *high = (column.0 >> 64) as u64;
    }
}

/// Packs the lowest `count` bits of all blocks: plane f lies at `f * words` of `out`.
pub(super) fn low_planes(blocks: &[Block], count: usize, out: &mut Vec<u64>) {
    let words = blocks.len().div_ceil(64);
    out.clear();
    out.resize(count * words, 0);
    if count <= PICKED {
        for (word, blocks) in blocks.chunks(64).enumerate() {
            for f in 0..count {
                let bits = blocks.iter().enumerate().fold(0, |w, (i, b)| w | (b.0 as u64 >> f & 1) << i);
                out[f * words + word] = bits;
            }
        }
        return;
    }
    let (mut rows, mut columns) = ([Block::ZERO; TILE], [Block::ZERO; TILE]);
    for (tile, blocks) in blocks.chunks(TILE).enumerate() {
        rows[blocks.len()..].fill(Block::ZERO);
        rows[..blocks.len()].copy_from_slice(blocks);
        transpose128(&rows, &mut columns);
        for (f, plane) in out.chunks_exact_mut(words).enumerate() {
            put(columns[f], tile, plane);
        }
    }
}

/// The eight bits of every byte as planes: `sink(bit, word, packed)`.
pub(super) fn byte_planes(bytes: &[u8], mut sink: impl FnMut(usize, usize, u64)) {
    for (word, bytes) in bytes.chunks(64).enumerate() {
        let mut planes = [0u64; 8];
        for (eight, bytes) in bytes.chunks(8).enumerate() {
            let mut tile = [0; 8];
            tile[..bytes.len()].copy_from_slice(bytes);
            let columns = transpose8(u64::from_le_bytes(tile)).to_le_bytes();
            planes.iter_mut().zip(columns).for_each(|(p, c)| *p |= u64::from(c) << (8 * eight));
        }
        planes.into_iter().enumerate().for_each(|(bit, plane)| sink(bit, word, plane));
    }
}

/// Transposes a matrix of 8 by 8 bits, a row per byte.
fn transpose8(x: u64) -> u64 {
    let swap = |x: u64, mask: u64, shift: u32| {
        let t = (x ^ x >> shift) & mask;
        x ^ t ^ t << shift
    };
    let x = swap(x, 0x00aa_00aa_00aa_00aa, 7);
    let x = swap(x, 0x0000_cccc_0000_cccc, 14);
    swap(x, 0x0000_0000_f0f0_f0f0, 28)
}

/// Packs the low `t` bits of the first `2^d` bytes of a block without gaps, and back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Squeeze {
    steps: [(u128, u32, u32); 4],
    depth: usize,
}

impl Squeeze {
    pub fn new(t: usize, d: u8) -> Self {
        let mut steps = [(0, 0, 0); 4];
        let depth = if t == 8 { 0 } else { usize::from(d) };
        for (s, step) in steps[..depth].iter_mut().enumerate() {
            let (field, container) = (t << s, 8usize << s);
            let low = (0..128).step_by(2 * container).fold(0, |m: u128, at| m | ((1u128 << field) - 1) << at);
            *step = (low, field as u32, (container - field) as u32);
        }
        Self { steps, depth }
    }

    pub fn squeeze(&self, mut x: u128) -> u128 {
        for (low, field, gap) in &self.steps[..self.depth] {
            x = x & low | x >> gap & low << field;
        }
        x
    }

    pub fn stretch(&self, mut x: u128) -> u128 {
        for (low, field, gap) in self.steps[..self.depth].iter().rev() {
            x = x & low | (x & low << field) << gap;
        }
        x
    }
}

/// Additive shares by temporary and lane; only the low bytes of each temporary count.
pub(super) type ByteTemps = Vec<Vec<u128>>;

/// Clears the temporaries for a batch.
pub(super) fn clear(temps: &mut ByteTemps, plan: &RowPlan, lanes: usize) {
    temps.resize_with(plan.temps.len(), Vec::new);
    for temp in temps {
        temp.clear();
        temp.resize(lanes, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(i: usize) -> u128 {
        (i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }

    #[test]
    fn planes_are_the_bits() {
        for lanes in [64usize, 128, 192, 320] {
            let values: Vec<u128> = (0..lanes).map(noise).collect();
            let words = lanes / 64;
            for bits in [vec![(3u16, 1u32)], (0..40).map(|b| (3 * b, u32::from(b))).collect::<Vec<_>>()] {
                let mut planes = vec![0; 40 * words];
                pack(&values, &bits, words, &mut planes);
                for (bit, slot) in &bits {
                    let plane = &planes[*slot as usize * words..][..words];
                    assert!((0..lanes).all(|l| kernels::bit(plane, l) == (values[l] >> bit) as u64 & 1));
                }
            }
            let blocks: Vec<Block> = values.iter().map(|v| Block(*v)).collect();
            for count in [1, 2, 5, 128] {
                let mut out = Vec::new();
                low_planes(&blocks, count, &mut out);
                for f in 0..count {
                    assert!(
                        (0..lanes).all(|l| kernels::bit(&out[f * words..], l) == (values[l] >> f) as u64 & 1)
                    );
                }
            }
            let bytes: Vec<u8> = values.iter().map(|v| *v as u8).collect();
            byte_planes(&bytes, |bit, word, plane| {
                assert!((0..64).all(|i| plane >> i & 1 == u64::from(bytes[64 * word + i] >> bit & 1)));
            });
        }
    }

    #[test]
    fn squeezing_leaves_no_gap() {
        for d in 1..=4u8 {
            for t in 1..=8usize {
                let squeeze = Squeeze::new(t, d);
                let leaves = 1usize << d;
                let bytes: Vec<u8> = (0..leaves).map(|x| (noise(x + t) as u8) & (0xff >> (8 - t))).collect();
                let wide = bytes.iter().rev().fold(0u128, |w, b| w << 8 | u128::from(*b));
                let narrow = squeeze.squeeze(wide);
                assert!(t * leaves == 128 || narrow >> (t * leaves) == 0);
                for (x, b) in bytes.iter().enumerate() {
                    assert_eq!(
                        (narrow >> (t * x)) as u8 & (0xff >> (8 - t)),
                        *b,
                        "{t} bits, {leaves} leaves"
                    );
                }
                assert_eq!(squeeze.stretch(narrow), wide);
            }
        }
    }
}
