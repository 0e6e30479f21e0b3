//! `bench yao`: 250 independent AND gates per row, whose operands both parties share.
//!
//! Each party holds a word of 32 random bits per row; their XOR is `x`. The gates are `x_i & x_j` over 250
//! distinct pairs of bits. The results are XORed into one bit, so that none can be left out, and the sum of
//! that bit is the output: XOR costs nothing and the sum one masked value.

use super::mix;
use base::{Error, PartyId};
use program::ShardRows;
use program::{Class, NodeId, Program, ProgramBuilder, ValueType};

/// AND gates of a row.
pub const GATES: u64 = 250;
const WIDTH: u8 = 32;
/// Rotations by 1 to 7 pair every bit with another one, each pair once; the rest comes from a rotation by 8.
const WHOLE: u8 = 7;
const REST: u8 = 26;

/// The program: columns 0 and 1 are the parties' words.
///
/// # Panics
/// Never: the program is well typed.
pub fn program() -> Program {
    let mut b = ProgramBuilder::new("bench-yao", Class::Exact, super::PARTIES);
    let word = ValueType::u(WIDTH);
    let [p, q] = [0, 1].map(|i| b.column(["p", "q"][i], word, Some(PartyId(i as u8))));
    let x = b.xor(p, q);
    let mut all: Option<NodeId> = None;
    for by in 1..=WHOLE {
        let turned = rotated(&mut b, x, by);
        let ands = b.and(x, turned);
        all = Some(all.map_or(ands, |all| b.xor(all, ands)));
    }
    let part = ValueType::u(REST);
    let turned = rotated(&mut b, x, WHOLE + 1);
    let (left, right) = (b.cast(x, part), b.cast(turned, part));
    let ands = b.and(left, right);
    let ands = b.cast(ands, word);
    let mut all = b.xor(all.expect("there are whole rotations"), ands);
    for by in [16, 8, 4, 2, 1] {
        let upper = b.shr(all, by);
        all = b.xor(all, upper);
    }
    let bit = b.cast(all, ValueType::BIT);
    let fold = b.sum(bit, ValueType::u(64));
    b.release();
    let total = b.total(fold);
    b.reveal("odd rows", PartyId(0), total);
    b.finish()
}

fn rotated(b: &mut ProgramBuilder, x: NodeId, by: u8) -> NodeId {
    let (up, down) = (b.shl(x, by), b.shr(x, WIDTH - by));
    b.xor(up, down)
}

/// The words of one party, or of both for the clear engine.
pub struct PartyWords {
    /// Rows.
    pub rows: u64,
    /// First row and step, for a shard.
    pub shard: (u64, u64),
}

impl ShardRows for PartyWords {
    fn len(&self) -> u64 {
        let (index, of) = self.shard;
        self.rows.saturating_sub(index).div_ceil(of)
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let (index, of) = self.shard;
        for (i, out) in (from..).zip(into) {
            *out = word(column, index + i * of).into();
        }
        Ok(())
    }
}

fn word(column: u32, row: u64) -> u32 {
    mix(2 * row + u64::from(column)) as u32
}

/// How many rows have an odd number of gates that give 1: from the definition, gate by gate on whole words.
pub fn truth(rows: u64) -> u64 {
    (0..rows).filter(|&row| odd(word(0, row) ^ word(1, row))).count() as u64
}

fn odd(x: u32) -> bool {
    let ones = |by: u8| (x & x.rotate_left(by.into())).count_ones();
    let whole: u32 = (1..=WHOLE).map(ones).sum();
    let rest = x & x.rotate_left(u32::from(WHOLE) + 1) & ((1 << REST) - 1);
    (whole + rest.count_ones()) % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use program::lower::lower_row;
    use std::collections::BTreeSet;

    #[test]
    fn a_row_is_250_gates_on_distinct_pairs() {
        assert_eq!(u64::from(WHOLE) * u64::from(WIDTH) + u64::from(REST), GATES);
        for sender in [PartyId(0), PartyId(1)] {
            let plan = lower_row(&program(), sender);
            assert_eq!((plan.circuit.and_gates() as u64, plan.circuit.and_depth()), (GATES, 1));
        }
        let mut pairs = BTreeSet::new();
        for by in 1..=u32::from(WHOLE) + 1 {
            let bits = if by <= WHOLE.into() { u32::from(WIDTH) } else { REST.into() };
            for i in 0..bits {
                // Bit i of x.rotate_left(by) is bit i - by of x.
                let j = (i + 32 - by) % 32;
                pairs.insert((i.min(j), i.max(j)));
            }
        }
        assert_eq!(pairs.len() as u64, GATES);
    }

    #[test]
    fn the_clear_engine_agrees_with_the_definition() {
        use engine::Share;
        let roster = base::Roster::new(super::super::PARTIES);
        let mut session = net::Session::alone(roster, base::Seed::from_bytes([1; 32]));
        let mut rows = PartyWords { rows: 5000, shard: (0, 1) };
        let shares = engine::run_rows(&engine::Clear, &program(), &mut rows, &mut session).unwrap();
        assert!(shares.folds() == [Share::Known(truth(5000).into())]);
    }
}
