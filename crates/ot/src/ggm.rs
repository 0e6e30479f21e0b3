//! All-but-one seeds: a tree of seeds whose owner knows every leaf and whose guest knows every leaf but one.
//!
//! Functionality: 2^d random leaves for the owner; for the guest, who chose a point a of d bits, all leaves
//! but leaf a. The GGM tree of SoftSpoken (Roy, ePrint 2022/192) without the check of the maliciously
//! secure form.
//!
//! Level l decides bit l of the leaf index. For each level one base OT, in which the guest chose bit l of
//! a, hands over the sum of those children that leave the path: the owner masks the sum of the b-children
//! with m_{1-b}, so that the guest's m_{a_l} opens the sum of side 1 - a_l. On level 0 these sums are the
//! two seeds themselves, so the base OT messages serve as seeds and nothing is sent.
//!
//! Cost: 32 B per level but the first, from the owner.

use kernels::{Block, TweakedHash};
use zeroize::Zeroizing;

/// Seeds, wiped when dropped.
pub type Seeds = Zeroizing<Vec<Block>>;

/// Tweak field of this module, so that no other use of the session's hash meets it.
const WORKER: u16 = 0xffff;

/// Bytes the owner sends for a tree of `depth` levels.
pub const fn message_bytes(depth: usize) -> usize {
    32 * (depth - 1)
}

/// Both children of every node; the tweak carries tree, level and side.
fn children(hash: &TweakedHash, tree: usize, level: usize, nodes: &[Block]) -> [Seeds; 2] {
    [0, 1].map(|side| {
        let mut out = Zeroizing::new(vec![Block::ZERO; nodes.len()]);
        hash.hash(Block::tweak(WORKER, tree as u64, level as u64, side), nodes, &mut out);
        out
    })
}

fn sum(blocks: &[Block]) -> Block {
    blocks.iter().fold(Block::ZERO, |s, &b| s ^ b)
}

/// The owner's leaves from the base OT messages of this tree, and (appended to `message`) what the guest
/// needs.
pub fn grow(hash: &TweakedHash, tree: usize, pairs: &[[Block; 2]], message: &mut Vec<u8>) -> Seeds {
    let mut nodes = Zeroizing::new(vec![pairs[0][1], pairs[0][0]]);
    for (level, pair) in pairs.iter().enumerate().skip(1) {
        let [zeros, ones] = children(hash, tree, level, &nodes);
        message.extend((sum(&zeros) ^ pair[1]).to_bytes());
        message.extend((sum(&ones) ^ pair[0]).to_bytes());
        nodes = Zeroizing::new([zeros.as_slice(), ones.as_slice()].concat());
    }
    nodes
}

/// The guest's leaves in the order of `leaf xor point`: the missing one comes first and is zero. `keys` are
/// the base OT messages it chose with the bits of `point`, `message` the owner's. Runs in time independent
/// of `point`.
pub fn graft(hash: &TweakedHash, tree: usize, point: u64, keys: &[Block], message: &[u8]) -> Seeds {
    let mut nodes = Zeroizing::new(vec![Block::ZERO, keys[0]]);
    for (level, key) in keys.iter().enumerate().skip(1) {
        let mask = Block::mask(point >> level);
        let [zeros, ones] = children(hash, tree, level, &nodes);
        // `on` shares the point's bit, `off` leaves the path.
        let [mut on, mut off] = [zeros, ones];
        for (on, off) in on.iter_mut().zip(off.iter_mut()) {
            let swap = (*on ^ *off) & mask;
            *on ^= swap;
            *off ^= swap;
        }
        let mut masked = [Block::ZERO; 2];
        Block::read_slice(&message[32 * (level - 1)..][..32], &mut masked);
        let total = masked[1] ^ ((masked[0] ^ masked[1]) & mask) ^ *key;
        on[0] = Block::ZERO;
        off[0] = Block::ZERO;
        off[0] = total ^ sum(&off);
        nodes = Zeroizing::new([on.as_slice(), off.as_slice()].concat());
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guest_knows_every_leaf_but_one() {
        let hash = TweakedHash::new(Block(99));
        for depth in 1..=8usize {
            let mut random = vec![Block::ZERO; 2 * depth];
            kernels::prg_fill(Block(depth as u128), 0, &mut random);
            let pairs: Vec<[Block; 2]> = random.chunks(2).map(|p| [p[0], p[1]]).collect();
            let mut message = Vec::new();
            let leaves = grow(&hash, 3, &pairs, &mut message);
            assert_eq!((leaves.len(), message.len()), (1 << depth, message_bytes(depth)));
            for point in 0..1u64 << depth {
                let keys: Vec<Block> = (0..depth).map(|l| pairs[l][(point >> l & 1) as usize]).collect();
                let seen = graft(&hash, 3, point, &keys, &message);
                assert!(seen[0] == Block::ZERO);
                assert!((1..leaves.len()).all(|y| seen[y] == leaves[y ^ point as usize]), "{depth} {point}");
            }
        }
    }
}
