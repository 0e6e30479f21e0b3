//! The discrete Gaussian from coins, as gates: what [`release::alias`] says of a draw.
//!
//! **Functionality.** From the coins of one draw, least significant first and in the order of
//! [`Sampler::coins`], the word of Z - 2^(e - 1) (Z itself where e = 0): a table's cell one-hot, the cell's
//! threshold and alias as XORs of those wires with public constants, one comparison, one selection. **Who
//! learns what.** Nothing: coins are inputs of nobody alone, and every wire is a share or a label. **Paper
//! and deviations.** Walker (1977) for the tables; that they cost no gate over one-hot wires, and the low
//! bits, are the project's (`docs/protocols/release.md`). A part's sign needs an increment: it is the carry
//! into the adder that joins the part, and of the first part the carry into the adder of the value that is
//! noised; with low bits it meets their sign in one more adder, which also takes 2^(e - 1) off. **Cost.** A
//! part of 2^k cells 2^k + 62 ANDs (2^k + 180 of depth ceil(log2 k) + 8 where [`Depth::Shallow`]), each part
//! after the first k + 1 for its adder, low bits as many as the word above them is wide, less one.

use super::combine::compare;
use super::release::{Depth, NoisedAt, ReleasePlan, ReleaseWord, SUMMANDS, WordKind, pieces};
use base::PartyId;
use circuits::gadgets::{self, LitWord};
use circuits::{Circuit, CircuitBuilder, InputBit, Lit};
use release::alias::{AliasTable, DrawPart, FRACTION_BITS, Sampler};
use std::borrow::Borrow;

/// What servers draw before the rows: the noises of all releases at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws {
    /// Number of parties of the program.
    pub parties: usize,
    /// Summands of coins, in order.
    pub words: Vec<ReleaseWord>,
    /// Gates; its inputs are the words', of nobody.
    pub circuit: Circuit,
    /// The noises.
    pub drawn: Vec<NoiseDraw>,
}

/// A noise of [`Draws`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseDraw {
    /// Of what.
    pub at: NoisedAt,
    /// Its bits in two's complement.
    pub bits: Vec<Lit>,
    /// Whether a release takes the bits ...
    pub in_gates: bool,
    /// ... or its number.
    pub in_sums: bool,
}

/// Lowers the draws of all releases whose noise servers draw before; none for others.
#[must_use]
pub fn lower_draws<'a>(
    plans: &[impl Borrow<ReleasePlan>],
    sampler: &dyn Fn(NoisedAt) -> &'a Sampler,
    depth: Depth,
) -> Draws {
    let plans = || plans.iter().map(Borrow::borrow);
    let (mut g, mut words, mut drawn) = (CircuitBuilder::default(), Vec::new(), Vec::<NoiseDraw>::new());
    for plan in plans().filter(|plan| plan.is_drawn()) {
        for at in plan.noises() {
            let [in_gates, in_sums] = [plan.sums.is_none(), plan.sums.is_some()];
            if let Some(other) = drawn.iter_mut().find(|other| other.at == at) {
                other.in_gates |= in_gates;
                other.in_sums |= in_sums;
                continue;
            }
            let sampler = sampler(at);
            let coins: LitWord =
                pieces(sampler).flat_map(|piece| coins(&mut g, &mut words, at, piece)).collect();
            let NoiseGates { word, carry } = draw(&mut g, sampler, &coins, depth);
            debug_assert_eq!(word.len(), width(sampler), "what releases take");
            let bits = depth.add(&mut g, &word, &vec![Lit::FALSE; word.len()], carry);
            drawn.push(NoiseDraw { at, bits, in_gates, in_sums });
        }
    }
    Draws { parties: plans().next().map_or(0, |plan| plan.parties), words, circuit: g.finish(), drawn }
}

/// A piece of coins of its summands.
fn coins(
    g: &mut CircuitBuilder,
    words: &mut Vec<ReleaseWord>,
    at: NoisedAt,
    (piece, width): (u8, u8),
) -> LitWord {
    let from = words.len() as u32;
    let word = |j| ReleaseWord { kind: WordKind::CoinSummand(at, piece, j), owner: PartyId(0), width };
    words.extend((0..SUMMANDS).map(word));
    let mut bit = |bit: u8| {
        let summand = |j: u8| InputBit { owner: None, word: from + u32::from(j), bit: bit.into() };
        let all: LitWord = (0..SUMMANDS).map(|j| g.input(summand(j))).collect();
        all.into_iter().reduce(|a, b| g.xor(a, b)).expect("a coin has summands")
    };
    (0..width).map(&mut bit).collect()
}

/// Bits of a draw: those of [`NoiseGates::word`].
pub(super) fn width(sampler: &Sampler) -> usize {
    let last = sampler.parts.last().expect("a draw has a part");
    let top = (last.shift + last.table.bits()) as usize + if sampler.parts.len() > 1 { 2 } else { 1 };
    top + if sampler.low_bits > 0 { sampler.low_bits as usize + 1 } else { 0 }
}

/// A noise in gates: the number that `word` and `carry` add up to, the word by two's complement.
pub(super) struct NoiseGates {
    pub word: LitWord,
    pub carry: Lit,
}

/// One draw.
pub(super) fn draw(g: &mut CircuitBuilder, sampler: &Sampler, coins: &[Lit], depth: Depth) -> NoiseGates {
    let (low, mut rest) = coins.split_at(sampler.low_bits as usize);
    let mut sum: Option<NoiseGates> = None;
    for part in &sampler.parts {
        let (mine, after) = rest.split_at(part.coins());
        let (magnitude, sign) = magnitude(g, part, mine, depth);
        sum = Some(match sum {
            None => first(g, part, &magnitude, sign),
            Some(below) => join(g, below, part, (&magnitude, sign), depth),
        });
        rest = after;
    }
    let noise = sum.expect("a draw has a part");
    match low.split_last() {
        None => noise,
        Some((top, lower)) => {
            // U - 2^(e - 1) has the lower bits of U, and is negative where its top bit is not set.
            let negative = !*top;
            let high = vec![negative; noise.word.len() + 1];
            let above = gadgets::resize(&noise.word, high.len(), true);
            let above = depth.add(g, &above, &high, noise.carry);
            NoiseGates { word: [lower, &[negative], &above].concat(), carry: Lit::FALSE }
        }
    }
}

/// The lowest part: its magnitude, complemented where it is negative.
fn first(g: &mut CircuitBuilder, part: &DrawPart, magnitude: &[Lit], sign: Lit) -> NoiseGates {
    debug_assert_eq!(part.shift, 0, "parts begin at the lowest bit");
    let mut word: LitWord = magnitude.iter().map(|bit| g.xor(*bit, sign)).collect();
    word.push(sign);
    NoiseGates { word, carry: sign }
}

/// Adds a part: below its shift nothing changes.
fn join(
    g: &mut CircuitBuilder,
    below: NoiseGates,
    part: &DrawPart,
    (magnitude, sign): (&[Lit], Lit),
    depth: Depth,
) -> NoiseGates {
    let shift = part.shift as usize;
    let mut own: LitWord = magnitude.iter().map(|bit| g.xor(*bit, sign)).collect();
    own.resize(magnitude.len() + 2, sign);
    // What lies below is narrower: k and shift only grow.
    let word = gadgets::resize(&below.word, shift + own.len(), true);
    let above = depth.add(g, &word[shift..], &own, sign);
    NoiseGates { word: [&word[..shift], &above].concat(), carry: below.carry }
}

/// The magnitude that a part's coins say, and its sign.
fn magnitude(g: &mut CircuitBuilder, part: &DrawPart, coins: &[Lit], depth: Depth) -> (LitWord, Lit) {
    let (cell, rest) = coins.split_at(part.table.bits() as usize);
    let (fraction, sign) = rest.split_at(FRACTION_BITS as usize);
    let cells = one_hot(g, cell);
    let (threshold, change) = looked_up(g, &part.table, &cells);
    let keeps = match depth {
        Depth::Ripple => gadgets::less(g, fraction, &threshold, false),
        Depth::Shallow => compare(g, fraction, &threshold, false).0,
    };
    let changed = gadgets::mask(g, !keeps, &change);
    (cell.iter().zip(changed).map(|(bit, change)| g.xor(*bit, change)).collect(), sign[0])
}

/// One wire per value of a word, of which one is set: halves, and ANDs of all but the first row and column,
/// which are XORs.
fn one_hot(g: &mut CircuitBuilder, bits: &[Lit]) -> LitWord {
    if let [bit] = bits {
        return vec![!*bit, *bit];
    }
    let (low, high) = bits.split_at(bits.len() / 2);
    let (columns, rows) = (one_hot(g, low), one_hot(g, high));
    let inner: Vec<LitWord> = rows[1..]
        .iter()
        .map(|row| columns[1..].iter().map(|column| g.and(*row, *column)).collect())
        .collect();
    let rest = |g: &mut CircuitBuilder, whole: Lit, parts: &mut dyn Iterator<Item = Lit>| {
        parts.fold(whole, |rest, part| g.xor(rest, part))
    };
    let mut all = Vec::with_capacity(columns.len() * rows.len());
    let first_column: LitWord =
        rows[1..].iter().zip(&inner).map(|(row, inner)| rest(g, *row, &mut inner.iter().copied())).collect();
    all.push(rest(g, columns[0], &mut first_column.iter().copied()));
    for (at, column) in columns[1..].iter().enumerate() {
        all.push(rest(g, *column, &mut inner.iter().map(|row| row[at])));
    }
    for (first, inner) in first_column.iter().zip(&inner) {
        all.push(*first);
        all.extend(inner);
    }
    all
}

/// Threshold of the cell, and what its alias changes in it: no gate.
fn looked_up(g: &mut CircuitBuilder, table: &AliasTable, cells: &[Lit]) -> (LitWord, LitWord) {
    let mut word = |width: u32, value: &dyn Fn(usize) -> u64| -> LitWord {
        let bit = |place: u32| {
            let set = cells.iter().enumerate().filter(|(cell, _)| value(*cell) >> place & 1 == 1);
            set.fold(Lit::FALSE, |sum, (_, wire)| g.xor(sum, *wire))
        };
        (0..width).map(bit).collect()
    };
    let threshold = word(FRACTION_BITS, &|cell| table.thresholds()[cell]);
    let change = word(table.bits(), &|cell| u64::from(table.aliases()[cell]) ^ cell as u64);
    (threshold, change)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use release::rational::{Rational, ratio};

    /// The circuit of a draw whose coins are the bits of one input word, and its roots: the word, then the
    /// carry.
    fn circuit(sampler: &Sampler, depth: Depth) -> (circuits::Circuit, LitWord) {
        let mut g = CircuitBuilder::default();
        let coin = |bit| InputBit { owner: None, word: 0, bit };
        let coins: LitWord = (0..sampler.coins() as u16).map(|bit| g.input(coin(bit))).collect();
        let NoiseGates { word, carry } = draw(&mut g, sampler, &coins, depth);
        (g.finish(), [word, vec![carry]].concat())
    }

    fn value((circuit, roots): &(circuits::Circuit, LitWord), coins: &[bool]) -> i128 {
        let bits = circuit.evaluate(|input| coins[usize::from(input.bit)]);
        let bit = |root: &Lit| i128::from(bits[root.wire()] ^ root.inverted());
        let (carry, word) = roots.split_last().expect("a carry");
        let top = word.len() - 1;
        word.iter().enumerate().map(|(i, root)| bit(root) << i).sum::<i128>()
            - (bit(&word[top]) << word.len())
            + bit(carry)
    }

    fn samplers() -> Vec<Sampler> {
        let sampler =
            |d: u64, cells, rho: Rational| Sampler::new(&BigInt::from(d), cells, &rho).expect("in range");
        vec![
            sampler(1, 1, ratio(1, 8)),
            sampler(1, 1, ratio(1, 200)),
            sampler(10, 2, ratio(2, 25)),
            sampler(200, 2, ratio(2, 25)),
            sampler(256, 1, ratio(2, 25)),
            sampler(40_000, 2, ratio(3, 200)),
        ]
    }

    /// A generator of coins that needs no crate: the low bit of a product.
    fn coins(seed: u64, count: usize) -> Vec<bool> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 63 == 1
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_circuit_draws_what_the_sampler_draws() {
        for sampler in samplers() {
            let centre = if sampler.low_bits == 0 { 0 } else { 1i128 << (sampler.low_bits - 1) };
            for depth in [Depth::Ripple, Depth::Shallow] {
                let made = circuit(&sampler, depth);
                for seed in 0..2000 {
                    let coins = coins(seed, sampler.coins());
                    let (_, z) = sampler.draw(&coins);
                    assert_eq!(
                        BigInt::from(value(&made, &coins) + centre),
                        z,
                        "{depth:?} {}",
                        sampler.variance_y
                    );
                }
            }
        }
    }

    #[test]
    fn a_draw_costs_what_is_said() {
        for sampler in samplers() {
            let parts = &sampler.parts;
            let of =
                |of_part: &dyn Fn(u32) -> usize| parts.iter().map(|p| of_part(p.table.bits())).sum::<usize>();
            let [ripple, shallow] = [Depth::Ripple, Depth::Shallow].map(|depth| circuit(&sampler, depth).0);
            let adders: usize = parts[1..].iter().map(|p| p.table.bits() as usize + 1).sum();
            let last = parts.last().expect("a part");
            let first = usize::from(parts.len() == 1);
            let word = (last.shift + last.table.bits()) as usize + 2 - first;
            let low = if sampler.low_bits == 0 { 0 } else { word };
            assert_eq!(ripple.and_gates(), of(&|k| (1 << k) + 62) + adders + low);
            let least = of(&|k| (1 << k) + 180);
            assert!(shallow.and_gates() >= least && shallow.and_depth() <= 14 + 6 * (parts.len() - 1) + 5);
        }
    }

    /// The law of a table is that of its cells and thresholds: every cell, with the fractions on both sides
    /// of its threshold.
    #[test]
    fn both_sides_of_every_threshold() {
        let sampler = Sampler::new(&BigInt::from(1), 1, &ratio(1, 8)).expect("in range");
        let table = &sampler.parts[0].table;
        let word = |cell: u64, fraction: u64, sign: bool| -> Vec<bool> {
            let bits = |value: u64, width: u32| (0..width).map(move |i| value >> i & 1 == 1);
            bits(cell, table.bits()).chain(bits(fraction, FRACTION_BITS)).chain([sign]).collect()
        };
        for depth in [Depth::Ripple, Depth::Shallow] {
            let made = circuit(&sampler, depth);
            for cell in 0..1u64 << table.bits() {
                let threshold = table.thresholds()[cell as usize];
                let alias = i128::from(table.aliases()[cell as usize]);
                let own = i128::from(cell);
                for sign in [false, true] {
                    let signed = |magnitude: i128| if sign { -magnitude } else { magnitude };
                    assert_eq!(value(&made, &word(cell, threshold, sign)), signed(alias));
                    if threshold > 0 {
                        assert_eq!(value(&made, &word(cell, threshold - 1, sign)), signed(own));
                    }
                }
            }
        }
    }
}
