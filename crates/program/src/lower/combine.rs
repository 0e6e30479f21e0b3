//! How rows fold into one: a tree over lanes, each level merging lanes 2i and 2i + 1; an odd last lane
//! passes.
//!
//! **Best rows.** Three circuits for one meaning. With w bits of key, k rows, L = ceil(log2 k) levels, d =
//! ceil(log2 w) and I = sum over levels l of l times the merges of level l:
//!
//! | [`SelectionCircuit`] | AND gates | depth |
//! |---|---|---|
//! | `Paper` | w k + (2 w + L)(k - 1) | 1 + (w + 1) L |
//! | `Small` | (2 w + 2)(k - 1) + I + w + L | (w + 2) L + 1 |
//! | `Shallow` | (4 w + 1 - d)(k - 1) + I + w + L | (d + 2) L + 1, from w = 3 on |
//!
//! *Paper* is the circuit of Choi, Hwang, Katz, Malkin and Rubenstein (2012) for their P2P problem: a key
//! that is not valid becomes the worst key, 0 (all ones for the least key), and every index bit is selected
//! at every level, bits that are constant in the clear included. That worst key *is* the paper's "no match":
//! a valid row with it counts as not valid. Where a program reads the found bit, it costs w - 1 gates more,
//! and w more to zero the key of `Least`; where it does not, the bit stays zero and the least key of no match
//! stays all ones, as in the paper.
//!
//! *Small* and *Shallow* keep a valid bit beside the key. Of two lanes the right one is better when
//! `v_r & (!v_l | k_l < k_r)` = `v_r ^ m & !(k_l < k_r)` with `m = v_l & v_r`, and the valid bit of the
//! better one is `v_l ^ v_r ^ m`: two gates in all. The index grows by one bit per level, which is that
//! comparison's result; only the lower bits are selected. At the end key *and index* are masked by the valid
//! bit: without the mask of the index a customer without a match would learn which of the rows that it did
//! not ask for is the best. *Shallow* compares in logarithmic depth, with `m` folded into the last step so
//! that the valid bits cost no depth.
//!
//! Ties: the left lane stays, so the smallest row index wins.
//!
//! **Sums.** Adders of a width that grows by one bit per level up to the total's: with V_l = min(w + l,
//! total) bits at level l, V_{l+1} - 1 gates and as much depth per merge of level l.

use crate::graph::{RowFold, RowOrder};
use crate::{Op, Program};
use base::Error;
use circuits::gadgets::{self, LitWord};
use circuits::{CircuitBuilder, Lit};
use std::fmt;
use std::str::FromStr;

/// Which circuit finds the best row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SelectionCircuit {
    /// The paper's, gate by gate: for comparisons with it.
    Paper,
    /// The fewest gates: for fast links.
    #[default]
    Small,
    /// Logarithmic comparisons: for links with long round trips.
    Shallow,
}

impl SelectionCircuit {
    /// All shapes.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Small, Self::Shallow];
}

impl fmt::Display for SelectionCircuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paper => "paper",
            Self::Small => "small",
            Self::Shallow => "shallow",
        })
    }
}

impl FromStr for SelectionCircuit {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|s| s.to_string() == text)
            .ok_or_else(|| Error::input(format!("unknown circuit '{text}'; use paper, small or shallow")))
    }
}

/// Levels of a tree over so many rows: ceil(log2 rows), 0 for up to one row.
#[must_use]
pub fn levels(rows: u64) -> u32 {
    rows.max(1).next_power_of_two().trailing_zeros()
}

/// Lanes at the start of a level: `rows` at level 0, half of it, rounded up, at each next one.
#[must_use]
pub fn lanes(rows: u64, level: u32) -> u64 {
    // Wider than any number of rows, so that the rounding does not overflow.
    (u128::from(rows)).div_ceil(1 << level) as u64
}

/// How the rows of one fold combine. A *lane* is what is known of a block of 2^level rows, as bits: of a best
/// row key (complemented for `Least`), index within the block and, but for the paper's shape, valid bit; of a
/// sum the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combine {
    kind: Kind,
    rows: u64,
}

/// How the terms of a sum are read, and how wide it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SumTerms {
    /// Bits of a term.
    pub width: usize,
    /// Bits of the total.
    pub total: usize,
    /// Whether terms are in two's complement.
    pub signed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Best { shape: SelectionCircuit, least: bool, key: usize, found: bool },
    Sum { value: usize, total: usize, signed: bool },
}

impl Combine {
    /// For a fold of a program over `rows` rows, 1 to 2^32; `None` for a fold that does not combine rows.
    #[must_use]
    pub fn new(program: &Program, fold: u32, shape: SelectionCircuit, rows: u64) -> Option<Self> {
        let kind = match program.folds[fold as usize] {
            RowFold::Best { order, ty, .. } => {
                let found = program.release.nodes.iter().any(|n| n.op == Op::Found(fold));
                Kind::Best { shape, least: order == RowOrder::Least, key: ty.width.into(), found }
            }
            RowFold::Sum { value, ty } => Kind::Sum {
                value: program.row.ty(value).width.into(),
                total: ty.width.into(),
                signed: ty.signed,
            },
            RowFold::Collect { .. } => return None,
        };
        Some(Self { kind, rows })
    }

    /// The same over another number of rows.
    #[must_use]
    pub fn with_rows(self, rows: u64) -> Self {
        Self { rows, ..self }
    }

    /// What is summed; `None` for a best row. For engines that have something better for sums than merges.
    #[must_use]
    pub fn terms(&self) -> Option<SumTerms> {
        match self.kind {
            Kind::Best { .. } => None,
            Kind::Sum { total, signed, .. } => Some(SumTerms { width: self.lane_bits(0), total, signed }),
        }
    }

    /// Levels of the tree.
    #[must_use]
    pub fn levels(&self) -> u32 {
        levels(self.rows)
    }

    /// Bits of a lane before a level; of the last lane for `levels()`.
    #[must_use]
    pub fn lane_bits(&self, level: u32) -> usize {
        match self.kind {
            Kind::Best { shape: SelectionCircuit::Paper, key, .. } => key + self.levels() as usize,
            Kind::Best { key, .. } => key + level as usize + 1,
            Kind::Sum { value, total, .. } => total.min(value + level as usize),
        }
    }

    /// Bits of the fold's word.
    #[must_use]
    pub fn word_bits(&self) -> usize {
        match self.kind {
            Kind::Best { key, .. } => key + usize::from(RowFold::INDEX.width) + 1,
            Kind::Sum { total, .. } => total,
        }
    }

    /// Whether a leaf takes the row's own index.
    #[must_use]
    pub fn takes_index(&self) -> bool {
        matches!(self.kind, Kind::Best { shape: SelectionCircuit::Paper, .. })
    }

    /// The lane of one row: `value` the key or the term, `valid` for a best row. Where
    /// [`Combine::takes_index`] the `levels()` bits of the row's index come behind it.
    #[must_use]
    pub fn leaf(&self, g: &mut CircuitBuilder, value: &[Lit], valid: Lit) -> LitWord {
        let Kind::Best { shape, least, .. } = self.kind else { return value.to_vec() };
        let key: LitWord = value.iter().map(|b| b.flip(least)).collect();
        if shape == SelectionCircuit::Paper {
            return gadgets::mask(g, valid, &key);
        }
        [key, vec![valid]].concat()
    }

    /// Merges two neighbours of a level.
    #[must_use]
    pub fn merge(&self, g: &mut CircuitBuilder, level: u32, left: &[Lit], right: &[Lit]) -> LitWord {
        match self.kind {
            Kind::Best { shape: SelectionCircuit::Paper, key, .. } => {
                let better = gadgets::less(g, &left[..key], &right[..key], false);
                let mut lane = gadgets::select(g, better, &right[..key], &left[..key]);
                for (a, b) in right[key..].iter().zip(&left[key..]) {
                    let difference = g.xor(*a, *b);
                    let taken = g.and_gate(better, difference);
                    lane.push(g.xor(taken, *b));
                }
                lane
            }
            Kind::Best { shape, key, .. } => {
                let (Some(v_l), Some(v_r)) = (left.last(), right.last()) else { return LitWord::new() };
                let m = g.and(*v_l, *v_r);
                let worse = not_less_where(g, shape, m, &left[..key], &right[..key]);
                let better = g.xor(*v_r, worse);
                let mut lane = gadgets::select(g, better, &right[..right.len() - 1], &left[..left.len() - 1]);
                lane.push(better);
                let either = g.xor(*v_l, *v_r);
                lane.push(g.xor(either, m));
                lane
            }
            Kind::Sum { signed, .. } => {
                let width = self.lane_bits(level + 1);
                let [a, b] = [left, right].map(|lane| gadgets::resize(lane, width, signed));
                gadgets::add(g, &a, &b)
            }
        }
    }

    /// The odd last lane of a level, as a lane of the next one.
    #[must_use]
    pub fn pass(&self, level: u32, lane: &[Lit]) -> LitWord {
        match self.kind {
            Kind::Best { shape: SelectionCircuit::Paper, .. } => lane.to_vec(),
            Kind::Best { .. } => {
                let mut lane = lane.to_vec();
                lane.insert(lane.len() - 1, Lit::FALSE);
                lane
            }
            Kind::Sum { signed, .. } => gadgets::resize(lane, self.lane_bits(level + 1), signed),
        }
    }

    /// The fold's word, [`RowFold::word_bits`] bits, from the last lane.
    #[must_use]
    pub fn finish(&self, g: &mut CircuitBuilder, lane: &[Lit]) -> LitWord {
        match self.kind {
            Kind::Best { shape, least, key, found: wanted } => {
                let plain: LitWord = lane[..key].iter().map(|b| b.flip(least)).collect();
                let index = &lane[key..key + self.levels() as usize];
                if shape != SelectionCircuit::Paper {
                    let found = lane[lane.len() - 1];
                    let [plain, index] = [&plain, index].map(|word| gadgets::mask(g, found, word));
                    return [plain, zero_extended(&index), vec![found]].concat();
                }
                if !wanted {
                    return [plain, zero_extended(index), vec![Lit::FALSE]].concat();
                }
                let zero = gadgets::constant(0, key);
                let found = !gadgets::equal(g, &lane[..key], &zero);
                let plain = if least { gadgets::mask(g, found, &plain) } else { plain };
                [plain, zero_extended(index), vec![found]].concat()
            }
            Kind::Sum { total, signed, .. } => gadgets::resize(lane, total, signed),
        }
    }

    /// The word of all rows at once, in one circuit; `leaves` in order of rows, at least one.
    #[must_use]
    pub fn unroll(&self, g: &mut CircuitBuilder, mut leaves: Vec<LitWord>) -> LitWord {
        debug_assert_eq!(leaves.len() as u64, self.rows, "one leaf per row");
        for level in 0..self.levels() {
            let merged = leaves.chunks(2).map(|pair| match pair {
                [left, right] => self.merge(g, level, left, right),
                last => self.pass(level, &last[0]),
            });
            leaves = merged.collect();
        }
        self.finish(g, &leaves[0])
    }

    /// AND gates over all rows, from the leaves on: the formulas above.
    #[must_use]
    pub fn and_gates(&self) -> u64 {
        let (k, last) = (self.rows, u64::from(self.levels()));
        if k == 0 {
            return 0;
        }
        match self.kind {
            Kind::Best { shape: SelectionCircuit::Paper, least, key, found } => {
                let w = key as u64;
                let extra = if !found { 0 } else { w - 1 + if least { w } else { 0 } };
                w * k + (2 * w + last) * (k - 1) + extra
            }
            Kind::Best { shape, key, .. } => {
                let w = key as u64;
                let index = self.merges().map(|(level, merges)| u64::from(level) * merges).sum::<u64>();
                (better_gates(shape, w) + w) * (k - 1) + index + w + last
            }
            Kind::Sum { .. } => {
                self.merges().map(|(level, merges)| (self.lane_bits(level + 1) as u64 - 1) * merges).sum()
            }
        }
    }

    /// Depth in AND gates from the leaves on, level after level.
    #[must_use]
    pub fn depth(&self) -> u64 {
        let last = u64::from(self.levels());
        match self.kind {
            _ if self.rows == 0 => 0,
            Kind::Best { shape: SelectionCircuit::Paper, least, key, found } => {
                let extra = if !found { 0 } else { u64::from(levels(key as u64)) + u64::from(least) };
                1 + (key as u64 + 1) * last + extra
            }
            Kind::Best { shape: SelectionCircuit::Small, key, .. } => (key as u64 + 2) * last + 1,
            Kind::Best { key, .. } => {
                (u64::from(levels(key as u64)) + if key < 3 { 3 } else { 2 }) * last + 1
            }
            Kind::Sum { .. } => (1..=self.levels()).map(|level| self.lane_bits(level) as u64 - 1).sum(),
        }
    }

    /// Merges of each level.
    fn merges(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let rows = self.rows;
        (0..self.levels()).map(move |level| (level, lanes(rows, level) / 2))
    }
}

/// A row index in full width; an index of one row has no bits of its own.
fn zero_extended(index: &[Lit]) -> LitWord {
    let mut word = index.to_vec();
    word.resize(RowFold::INDEX.width.into(), Lit::FALSE);
    word
}

/// Gates of "the right lane is better" and of the merged valid bit.
fn better_gates(shape: SelectionCircuit, w: u64) -> u64 {
    match shape {
        SelectionCircuit::Shallow if w > 1 => 3 * w + 1 - u64::from(levels(w)),
        _ => w + 2,
    }
}

/// `m & !(a < b)`.
fn not_less_where(g: &mut CircuitBuilder, shape: SelectionCircuit, m: Lit, a: &[Lit], b: &[Lit]) -> Lit {
    if shape != SelectionCircuit::Shallow || a.len() == 1 {
        let less = gadgets::less(g, a, b, false);
        return g.and(m, !less);
    }
    // Of a < b in halves, `high ^ equal & low`: m meets the high half while the low half is still on its way.
    let split = lower_half(a.len());
    let (low, _) = compare(g, &a[..split], &b[..split], false);
    let (high, equal) = compare(g, &a[split..], &b[split..], true);
    let not_high = g.and(m, !high);
    let open = g.and(m, equal);
    let by_low = g.and(open, low);
    g.xor(not_high, by_low)
}

fn lower_half(width: usize) -> usize {
    width.next_power_of_two() / 2
}

/// `(a < b, a == b)` in logarithmic depth; the second is wrong unless `equal` asks for it.
pub(super) fn compare(g: &mut CircuitBuilder, a: &[Lit], b: &[Lit], equal: bool) -> (Lit, Lit) {
    if let ([a], [b]) = (a, b) {
        return (g.and(!*a, *b), !g.xor(*a, *b));
    }
    let split = lower_half(a.len());
    let (low, low_equal) = compare(g, &a[..split], &b[..split], equal);
    let (high, high_equal) = compare(g, &a[split..], &b[split..], true);
    let by_low = g.and(high_equal, low);
    let both = if equal { g.and(high_equal, low_equal) } else { Lit::FALSE };
    (g.xor(high, by_low), both)
}
