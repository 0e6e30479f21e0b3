//! Ferret: silent correlated OT. A few correlated OTs become many by an assumption on decoding, with a
//! fraction of a bit per OT on the wire. The steps without network.
//!
//! Functionality: the sender holds Delta (bit 0 set), both sides hold correlated OTs with random choices;
//! they get more of them: the sender q_i, the receiver random bits b_i and t_i = q_i + b_i Delta.
//!
//! Security: semi-honest, Yang, Weng, Lan, Zhang and Wang, "Ferret: Fast Extension for coRRElated oT with
//! small communication" (CCS 2020, ePrint 2020/924): primal LPN over F2 with regular noise and a 10-local
//! code, without the consistency checks. The single-point OTs are those of Guo, Yang, Wang, Zhang, Xie, Liu
//! and Zhao, "Half-Tree" (Eurocrypt 2023, ePrint 2022/1431). Parameters and attacks: `docs/protocols/ot.md`.
//!
//! Who learns what: nobody anything beyond the functionality, if LPN with these parameters is hard.
//!
//! An extension takes k OTs (r_j, with bits u_j) as the secret and `depth` OTs per tree as the path:
//!   per tree: the sender grows 2^depth leaves v_i whose sum is Delta; the receiver, whose path bits are the
//!             random choices of its OTs, gets w_i = v_i but at one point, w = v + Delta there  ([`tree`])
//!   row i:    q_i = v_i + sum of ten r_j, t_i = w_i + sum of the receiver's ten; b = A u + e   ([`code`])
//! The noise e has one 1 in every tree's rows. Bit 0 of every q is 0, so bit 0 of t is b.
//!
//! Streaming: trees are worked off in groups of 2^14 rows ([`TreeGroup`]), each with a message of its own, as
//! OTs are asked for. The rows of an extension's last trees are not given out: they are the next one's
//! inputs. The memory of a side is the secret of an extension (16 MiB), as much for the next one while it is
//! being made, and one group of rows (256 KiB).
//!
//! Deviations: half-tree instead of GGM trees; the path bits are the receiver's random choices, so the
//! receiver sends nothing; the first extension is small and feeds the large one ([`LpnExtension::first`]).
//!
//! Cost: 16 B per level of a tree, from the sender only: 0.226 bit per OT of the large set.

pub mod code;
mod core;
mod drivers;
pub mod tree;

pub use core::{FerretReceiverCore, FerretSenderCore};
pub(crate) use drivers::inputs;
pub use drivers::{FerretReceiver, FerretSender};

/// Sizes of one LPN instance: noise weight, rows per noise position, secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Trees: the weight t of the noise. Rows are `trees << depth`.
    pub trees: usize,
    /// Levels of a tree: log2 of the rows that share one noise position.
    pub depth: usize,
    /// log2 of the bits k of the secret.
    pub log_k: u32,
}

/// For short runs, and for the inputs of the large set.
pub const SMALL: Params = Params { trees: 1280, depth: 10, log_k: 17 };
/// For long runs.
pub const LARGE: Params = Params { trees: 1280, depth: 13, log_k: 20 };
/// log2 of the rows of a group: what is computed, and said, at once.
const GROUP_BITS: usize = 14;
/// k of the SoftSpoken extension that makes the first inputs: the least communication.
pub(crate) const INPUT_K: u32 = 8;

const _: () = assert!(SMALL.depth <= GROUP_BITS && LARGE.depth <= GROUP_BITS, "a group holds whole trees");
const _: () = assert!(boot_trees() <= SMALL.trees, "one small extension makes the inputs of a large one");

impl Params {
    /// Rows of one tree.
    #[must_use]
    pub const fn leaves(&self) -> usize {
        1 << self.depth
    }

    /// Bits of the secret.
    #[must_use]
    pub const fn k(&self) -> usize {
        1 << self.log_k
    }

    /// Inputs of an extension of so many trees.
    const fn inputs(&self, trees: usize) -> usize {
        self.k() + trees * self.depth
    }

    /// Trees whose rows are the inputs of the next extension.
    const fn reserve(&self) -> usize {
        self.inputs(self.trees).div_ceil(self.leaves())
    }

    /// OTs that one extension gives out.
    #[must_use]
    pub const fn yields(&self) -> usize {
        (self.trees - self.reserve()) << self.depth
    }
}

const fn boot_trees() -> usize {
    LARGE.inputs(LARGE.trees).div_ceil(SMALL.leaves())
}

/// One extension: its LPN instance, and which trees are for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpnExtension {
    params: Params,
    /// The first trees are given out, the others are the next extension's inputs.
    out: usize,
    trees: usize,
}

impl LpnExtension {
    const BOOT: Self = Self { params: SMALL, out: 0, trees: boot_trees() };

    /// The first extension when about `expected` OTs will be asked for: a small one that gives out OTs
    /// itself, or one that makes the inputs of a large one.
    #[must_use]
    pub fn first(expected: u64) -> Self {
        if expected > SMALL.yields() as u64 { Self::BOOT } else { Self::steady(SMALL) }
    }

    fn steady(params: Params) -> Self {
        Self { params, out: params.trees - params.reserve(), trees: params.trees }
    }

    fn next(self) -> Self {
        if self == Self::BOOT { Self::steady(LARGE) } else { self }
    }

    /// Trees of it, those of the reserve included.
    #[must_use]
    pub fn trees(&self) -> usize {
        self.trees
    }

    /// Correlated OTs that it starts from.
    #[must_use]
    pub fn inputs(&self) -> usize {
        self.params.inputs(self.trees)
    }

    /// Whether it only makes inputs.
    fn is_boot(&self) -> bool {
        self.out == 0
    }
}

/// A group of trees, worked off at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeGroup {
    params: Params,
    first: usize,
    trees: usize,
    /// The rows are inputs of the next extension and not given out.
    reserve: bool,
}

impl TreeGroup {
    /// Bytes of the sender's message.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.trees * self.params.depth * kernels::Block::BYTES
    }

    /// OTs it gives out.
    #[must_use]
    pub fn yields(&self) -> usize {
        if self.reserve { 0 } else { self.trees << self.params.depth }
    }
}

/// The order of the work, the same at both sides and in the price.
#[derive(Clone, Copy, Debug)]
pub struct TreeSchedule {
    now: LpnExtension,
    tree: usize,
    number: u64,
}

impl TreeSchedule {
    /// The order of work when about `expected` OTs will be asked for.
    #[must_use]
    pub fn new(expected: u64) -> Self {
        Self { now: LpnExtension::first(expected), tree: 0, number: 0 }
    }

    /// The next step.
    #[must_use]
    pub fn peek(&self) -> TreeGroup {
        let LpnExtension { params, out, trees } = self.now;
        let end = if self.tree < out { out } else { trees };
        let group = 1 << (GROUP_BITS - params.depth);
        TreeGroup { params, first: self.tree, trees: group.min(end - self.tree), reserve: self.tree >= out }
    }

    /// Takes the next step; `true` when it was an extension's last.
    pub fn advance(&mut self) -> bool {
        self.tree += self.peek().trees;
        let last = self.tree == self.now.trees;
        if last {
            (self.now, self.tree, self.number) = (self.now.next(), 0, self.number + 1);
        }
        last
    }

    /// Whether OTs can be given out, or inputs must be made first: that is part of the set-up.
    #[must_use]
    pub fn is_boot(&self) -> bool {
        self.now.is_boot()
    }

    /// Extensions before the current one.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The current extension.
    #[must_use]
    pub fn extension(&self) -> LpnExtension {
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_are_what_the_page_says() {
        assert_eq!((LARGE.trees << LARGE.depth, LARGE.yields()), (10_485_760, 9_412_608));
        assert_eq!((SMALL.trees << SMALL.depth, SMALL.yields()), (1_310_720, 1_166_336));
        let bits = |p: Params| (p.trees * p.depth * 128) as f64 / p.yields() as f64;
        assert!(bits(LARGE) < 0.227 && bits(SMALL) < 1.42, "{} {}", bits(LARGE), bits(SMALL));
    }

    /// Every extension hands over the inputs of the next one, and every tree is worked off once.
    #[test]
    fn a_schedule_feeds_itself() {
        for expected in [0, SMALL.yields() as u64, SMALL.yields() as u64 + 1, u64::MAX] {
            let mut schedule = TreeSchedule::new(expected);
            for number in 0..4 {
                let now = schedule.extension();
                let (mut out, mut reserve, mut tree) = (0, 0, 0);
                loop {
                    let step = schedule.peek();
                    assert_eq!(step.first, tree);
                    assert!(step.trees > 0 && step.trees << step.params.depth <= 1 << GROUP_BITS);
                    tree += step.trees;
                    out += step.yields();
                    reserve += if step.reserve { step.trees << step.params.depth } else { 0 };
                    assert_eq!(schedule.number, number);
                    if schedule.advance() {
                        break;
                    }
                }
                assert_eq!(tree, now.trees);
                assert!(reserve >= schedule.extension().inputs());
                assert_eq!(out, if now.is_boot() { 0 } else { now.params.yields() });
            }
            assert_eq!(schedule.extension().params == LARGE, expected > SMALL.yields() as u64);
        }
    }
}
