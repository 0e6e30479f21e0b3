//! Vector oblivious linear evaluation over the field of 2^128 elements, from correlated OT. The steps without
//! network are [`VoleSenderCore`] and [`VoleReceiverCore`], the conversation [`VoleSender`] and
//! [`VoleReceiver`].
//!
//! Functionality: the sender holds Delta and gets random b_i; the receiver gets random a_i and c_i = a_i
//! Delta + b_i.
//!
//! Security: semi-honest, computational parameter 128. Primal LPN over the field with regular noise and the
//! 10-local binary code of [`crate::ferret`]; single-point VOLE from the half-tree of Guo et al. (ePrint
//! 2022/1431); the shape is that of Weng, Yang, Katz and Wang, "Wolverine" (ePrint 2020/925). Delta is that
//! of the OTs: bit 0 is set, 127 bits are random.
//!
//! The code is binary, so a sample over the field is 128 samples over F2 with the same code, the same rows of
//! which are noisy. Of a set of rows with X noisy ones an attacker can therefore cancel the noise by one
//! F2-linear map of the field, which it finds by linear algebra, with probability min(1, 2^(128 - X)); over
//! F2 it needs X = 0. Parameters for F2 are broken over this field. Hence noise eight times as dense as
//! Ferret's (decision 023; a test computes it).
//!
//! Who learns what: nobody anything beyond the functionality, if LPN with these parameters is hard.
//!
//! ```text
//! base       128 OTs of random choices are an element: c = sum x^j t_j, a = sum x^j bit_j, b = sum x^j q_j
//! extension  of base elements (u, w = u Delta + v), K as the secret, one per tree as the value of its noise
//!   per tree  the sender grows 2^7 leaves r_i (half-tree, hashed), and says sum r_i + v';
//!             the receiver gets s_i = r_i but at one point, s = r + u' Delta there
//!   row i     b_i = r_i + (ten v), c_i = s_i + (ten w), a_i = e_i + (ten u), e = u' at the point
//! ```
//! Up to [`BASE`] elements are base elements themselves. More take extensions, each of which keeps back the
//! base of the next one; the last one has as few trees as it needs.
//!
//! Deviations: base elements from packed OTs instead of a bootstrap by smaller sets; no consistency checks.
//!
//! Cost: [`price`]; 16 B per level and tree and 16 B per tree from the sender, 1.1 B per element in the long
//! run.

mod core;
mod drivers;

pub use core::{VoleReceiverCore, VoleSenderCore};
pub use drivers::{VoleReceiver, VoleSender};

use crate::{OtKind, PriceMeter};
use kernels::{Block, FIELD_BITS};

/// log2 of the elements K of the secret.
pub const LOG_K: u32 = 17;
/// Most trees of an extension: the weight of its noise.
pub const TREES: usize = 10_240;
/// Levels of a tree: log2 of the rows that share one noise position.
pub const DEPTH: usize = 7;
/// Base elements of an extension.
pub const BASE: usize = (1 << LOG_K) + TREES;
/// Elements of one conversation.
pub const ELEMENTS: u64 = 1 << 40;

/// Rows of one tree.
const LEAVES: usize = 1 << DEPTH;
/// Bytes that the sender says per tree.
const TREE_BYTES: usize = (DEPTH + 1) * Block::BYTES;

/// One extension: its trees, and how many rows of it are given out; the others are the next one's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VoleExtension {
    trees: usize,
    out: usize,
}

impl VoleExtension {
    /// Correlated OTs for the paths of its trees.
    #[must_use]
    pub fn ots(&self) -> usize {
        self.trees * DEPTH
    }

    /// Bytes of the sender's message.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.trees * TREE_BYTES
    }
}

/// How many base elements `total` elements take.
#[must_use]
pub fn base_elements(total: u64) -> usize {
    if total <= BASE as u64 { total as usize } else { BASE }
}

/// The extensions that `total` elements take, in order.
pub fn extensions(total: u64) -> impl Iterator<Item = VoleExtension> {
    let mut left = if total <= BASE as u64 { 0 } else { total };
    std::iter::from_fn(move || {
        let all = (TREES * LEAVES) as u64;
        let extension = match left {
            0 => return None,
            left if left <= all => {
                VoleExtension { trees: left.div_ceil(LEAVES as u64) as usize, out: left as usize }
            }
            _ => VoleExtension { trees: TREES, out: TREES * LEAVES - BASE },
        };
        left -= extension.out as u64;
        Some(extension)
    })
}

/// Correlated OTs with random choices that `total` elements take.
#[must_use]
pub fn ots(total: u64) -> u64 {
    let paths: usize = extensions(total).map(|e| e.ots()).sum();
    (base_elements(total) * FIELD_BITS + paths) as u64
}

/// How many OTs to set the back end up for, at both sides: silent OT for few is faster per OT, since its
/// secret fits the caches, and 1.4 bits per OT are little here.
#[must_use]
pub fn expected_ots(total: u64) -> u64 {
    ots(total).min(crate::ferret::SMALL.yields() as u64)
}

/// What `total` elements cost over OTs of this kind, base OTs included.
#[must_use]
pub fn price(kind: OtKind, total: u64) -> PriceMeter {
    let mut meter = PriceMeter::new(kind, expected_ots(total));
    meter.base();
    meter.setup();
    for batch in drivers::base_batches(base_elements(total)) {
        meter.correlated_random(batch * FIELD_BITS);
    }
    for extension in extensions(total) {
        meter.correlated_random(extension.ots());
        meter.sender_says(extension.bytes());
    }
    meter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every extension leaves the base of the next one, and all together give what was asked for.
    #[test]
    fn extensions_feed_each_other() {
        for total in
            [1, BASE as u64, BASE as u64 + 1, 1_310_720, 1_310_721, 1_400_000, 5_000_000, 100_000_000]
        {
            let all: Vec<VoleExtension> = extensions(total).collect();
            let out: usize = all.iter().map(|e| e.out).sum();
            assert_eq!(out as u64, if all.is_empty() { 0 } else { total });
            assert_eq!(all.is_empty(), base_elements(total) as u64 == total);
            let (last, others) = all.split_last().map_or((None, &[][..]), |(l, o)| (Some(l), o));
            assert!(others.iter().all(|e| e.trees * LEAVES - e.out == BASE));
            assert!(last.is_none_or(|e| e.trees <= TREES && e.out <= e.trees * LEAVES));
        }
    }

    /// What the page says of the attack by cancelled noise: among the rows of this code that lie within
    /// 89,945 entries (found by `examples/subsystems.rs` for this size) there are so many noisy ones that a
    /// map cancels all of them with probability 2^128 times the mean of 2^-X.
    #[test]
    fn no_map_cancels_the_noise_of_a_part() {
        let (entries, rows) = (89_945.0, (TREES << DEPTH) as f64);
        assert_eq!((LOG_K, TREES << DEPTH), (crate::ferret::SMALL.log_k, 1_310_720));
        let log2_of_tries = |trees: f64| -128.0 - trees * (1.0 - 1.01 * entries / rows / 2.0).log2();
        assert!(log2_of_tries(TREES as f64) > 380.0);
        // With the noise that is enough over F2, twice and four times that.
        assert!(log2_of_tries(1280.0) < 0.0 && log2_of_tries(2560.0) < 10.0 && log2_of_tries(5120.0) < 140.0);
        // A decoder that needs half of the entries still fails.
        let half = -128.0 - TREES as f64 * (1.0 - 1.01 * entries / rows / 4.0).log2();
        assert!(half > 120.0, "{half}");
    }

    /// What the page says of relations among rows: the first moment of their number by weight, every row as
    /// ten places drawn with repeats, and the weight at which one sum without noise tells a sample from
    /// random.
    #[test]
    fn relations_are_too_heavy_for_a_dual_attack() {
        let (k, n) = (f64::from(1 << LOG_K), (TREES << DEPTH) as f64);
        let factorial =
            |x: f64| if x < 1.0 { 0.0 } else { x * x.ln() - x + (std::f64::consts::TAU * x).ln() / 2.0 };
        let choose =
            |a: f64, b: f64| (factorial(a) - factorial(b) - factorial(a - b)) / std::f64::consts::LN_2;
        // log2 of the sum over j: its greatest term, and that there are k of them.
        let sum = |w: f64| {
            let term = |j: f64| choose(k, j) + 10.0 * w * (1.0 - 2.0 * j / k).log2();
            (0..1 << (LOG_K - 1)).map(|j| term(f64::from(j))).fold(f64::MIN, f64::max) + k.log2()
        };
        let relations = |w: f64| choose(n, w) - k + sum(w);
        let per_row = -(1.0 - 1.0 / LEAVES as f64).log2();
        let needed = (128.0 / per_row).ceil();
        assert!((0.0113..0.0114).contains(&per_row) && needed == 11_313.0, "{per_row} {needed}");
        assert!(relations(needed) < -12_000.0, "{}", relations(needed));
        assert!(relations(14_400.0) < 0.0 && relations(14_420.0) > 0.0);
        assert!(14_400.0 * per_row > 162.0);
    }
}
