//! Single-point OT: 2^d leaves for the sender, whose sum is Delta; the same leaves for the receiver but at
//! one point, where its leaf is the sender's plus Delta.
//!
//! The correlated GGM tree of "Half-Tree" (Guo et al., ePrint 2022/1431), semi-honest: a node x has the
//! children H(x) and x + H(x), so all levels have the same sum, Delta. Per level one correlated OT (q; b, q +
//! b Delta) and one block c = q + (sum of the side of bit 1): c + t is the sum of side 1 - b, so the path bit
//! of a level is the receiver's random choice.
//!
//! Level l decides bit l of the leaf's index; the child of bit 0 stays where its parent was. H is the tweaked
//! hash with a tweak per tree and level: half a hash per leaf, at most 2^12 inputs under a tweak.
//!
//! The receiver's point is its secret: it neither branches on it nor indexes with it.
//!
//! Cost: 16 B per level from the sender, nothing from the receiver.

use kernels::{Block, TweakedHash, xor_into, xor_when};

/// Tweak field of this module, so that no other use of the session's hash meets it.
const WORKER: u16 = 0xfffd;
/// A digit of a place, in a masked addition.
const DIGIT: usize = 8;
/// Lanes of the near part of a masked addition: two digits.
const NEAR: usize = DIGIT * DIGIT;

fn tweak(tree: u64, level: usize) -> Block {
    Block::tweak(WORKER, tree, level as u64, 0)
}

/// The level below `low`: children of bit 0 in place, those of bit 1 in `high`. Gives the sum of `high`.
fn double(hash: &TweakedHash, tweak: Block, low: &mut [Block], high: &mut [Block]) -> Block {
    hash.hash(tweak, low, high);
    xor_into(low, high);
    high.iter().fold(Block::ZERO, |sum, &x| sum ^ x)
}

/// The sender's leaves of one tree from its first node and the q of `log2(leaves.len())` correlated OTs; the
/// message for the receiver is appended. `tree` is never used twice under one Delta.
pub fn grow(
    hash: &TweakedHash,
    tree: u64,
    delta: Block,
    root: Block,
    q: &[Block],
    leaves: &mut [Block],
    message: &mut Vec<u8>,
) {
    (leaves[0], leaves[1]) = (root ^ delta, root);
    message.extend((root ^ q[0]).to_bytes());
    for (level, &q) in q.iter().enumerate().skip(1) {
        let (low, rest) = leaves.split_at_mut(1 << level);
        let sum = double(hash, tweak(tree, level), low, &mut rest[..1 << level]);
        message.extend((sum ^ q).to_bytes());
    }
}

/// The receiver's leaves of one tree from the t of its correlated OTs (bit 0 is the choice) and the sender's
/// message. Gives the point and what is missing there; the leaf itself is zero.
pub fn graft(
    hash: &TweakedHash,
    tree: u64,
    t: &[Block],
    message: &[u8],
    leaves: &mut [Block],
) -> (u64, Block) {
    let bit = |t: Block| t.0 as u64 & 1;
    let sums = message.chunks_exact(Block::BYTES).map(|c| Block::from_bytes(c.try_into().expect("a block")));
    let mut off = t.iter().zip(sums).map(|(&t, c)| (bit(t), t ^ c)).enumerate();
    let (mut point, mut known) = (0, Block::ZERO);
    if let Some((_, (on, sum))) = off.next() {
        (leaves[0], leaves[1]) = (sum.when(on), sum.when(on ^ 1));
        (point, known) = (on, sum);
    }
    for (level, (on, sum)) in off {
        let (low, rest) = leaves.split_at_mut(1 << level);
        let high = &mut rest[..1 << level];
        let tweak = tweak(tree, level);
        // The node on the path is zero: both its children come out as the hash of zero.
        let mut junk = [Block::ZERO];
        hash.hash(tweak, &[Block::ZERO], &mut junk);
        let junk = junk[0];
        let upper = double(hash, tweak, low, high);
        let sibling = sum ^ upper ^ known.when(on) ^ junk;
        add_at(low, point, junk ^ sibling.when(on));
        add_at(high, point, junk ^ sibling.when(on ^ 1));
        known ^= sibling;
        point |= on << level;
    }
    (point, known)
}

/// 1 when `a == b`, else 0, without a branch; both below 2^63.
fn same(a: u64, b: u64) -> u64 {
    (a ^ b).wrapping_neg() >> 63 ^ 1
}

/// Adds `value` to the block at `point`, which no branch and no address depends on.
pub fn add_at(blocks: &mut [Block], point: u64, value: Block) {
    let digit = |at: u64| -> [Block; DIGIT] {
        std::array::from_fn(|i| Block::mask(same(i as u64, at % DIGIT as u64)))
    };
    let (low, high) = (digit(point), digit(point / DIGIT as u64));
    let mut near = [Block::ZERO; NEAR];
    let used = blocks.len().min(NEAR);
    near[..used].iter_mut().enumerate().for_each(|(i, n)| *n = value & low[i % DIGIT] & high[i / DIGIT]);
    for (chunk, blocks) in (0..).zip(blocks.chunks_mut(NEAR)) {
        xor_when(blocks, &near[..blocks.len()], same(chunk, point / NEAR as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_differ_at_the_point_and_by_delta() {
        let hash = TweakedHash::new(Block(99));
        for depth in 1..=8usize {
            let mut random = vec![Block::ZERO; depth + 2];
            kernels::prg_fill(Block(depth as u128), 0, &mut random);
            let delta = random[depth] | Block::ONE;
            let q: Vec<Block> = random[..depth].iter().map(|&q| Block(q.0 & !1)).collect();
            for point in 0..1u64 << depth {
                let t: Vec<Block> = (0..depth).map(|l| q[l] ^ delta.when(point >> l)).collect();
                let (mut v, mut w) = (vec![Block::ZERO; 1 << depth], vec![Block::ONES; 1 << depth]);
                let mut message = Vec::new();
                grow(&hash, 5, delta, random[depth + 1], &q, &mut v, &mut message);
                assert_eq!(message.len(), 16 * depth);
                let (at, missing) = graft(&hash, 5, &t, &message, &mut w);
                assert_eq!(at, point);
                assert!(w[point as usize] == Block::ZERO);
                add_at(&mut w, at, missing);
                for i in 0..v.len() {
                    let differ = delta.when(same(i as u64, point));
                    assert!(v[i] ^ w[i] == differ, "leaf {i} at depth {depth}, point {point}");
                }
            }
        }
    }

    #[test]
    fn a_masked_addition_meets_one_block() {
        for n in [1usize, 2, 64, 65, 200] {
            for point in (0..n).step_by(7) {
                let mut blocks = vec![Block(9); n];
                add_at(&mut blocks, point as u64, Block(6));
                assert!((0..n).all(|i| blocks[i] == Block(if i == point { 15 } else { 9 })));
            }
        }
    }
}
