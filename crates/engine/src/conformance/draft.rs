//! Writes a case: the program and, beside it, what each of its values must be.

use super::{Noise, ProgramCase};
use base::{PartyId, Rng, Seed};
use program::{Class, Holder, NodeId, ProgramBuilder, RowOrder, ValueType, Viewer};
use std::rc::Rc;

/// A column under construction with its values.
#[derive(Clone)]
pub(super) struct Col {
    pub(super) node: NodeId,
    pub(super) ty: ValueType,
    values: Rc<[u128]>,
}

impl Col {
    /// The bit pattern in a row.
    pub(super) fn at(&self, row: usize) -> u128 {
        self.values[row]
    }

    /// The value in a row, extended to 128 bits: what a sum adds.
    pub(super) fn wide(&self, row: usize) -> u128 {
        extend(self.at(row), self.ty)
    }
}

/// The number that a bit pattern stands for, as a 128-bit two's complement pattern.
pub(super) fn extend(pattern: u128, ty: ValueType) -> u128 {
    let negative = ty.signed && pattern >> (ty.width - 1) & 1 == 1;
    if negative && ty.width < 128 { pattern.wrapping_sub(1 << ty.width) } else { pattern }
}

/// The low bits of a number, as a type holds them.
pub(super) fn wrap(number: u128, ty: ValueType) -> u128 {
    if ty.width == 128 { number } else { number % (1 << ty.width) }
}

/// A case under construction.
pub(super) struct Draft {
    pub(super) b: ProgramBuilder,
    pub(super) rng: Rng,
    pub(super) rows: usize,
    name: String,
    columns: Vec<Vec<u128>>,
    pub(super) totals: Vec<u128>,
    pub(super) outputs: Vec<u128>,
    lists: Vec<Vec<bool>>,
}

impl Draft {
    pub(super) fn new(name: String, class: Class, rows: usize, seed: u64) -> Self {
        Self::among(2, name, class, rows, seed)
    }

    /// A case of `parties` parties.
    pub(super) fn among(parties: usize, name: String, class: Class, rows: usize, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let rng = Seed::from_bytes(bytes).fork(&name).into_rng();
        let b = ProgramBuilder::new("conformance", class, (0..parties).map(|p| format!("p{p}")));
        let (columns, totals, outputs, lists) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { b, rng, rows, name, columns, totals, outputs, lists }
    }

    /// A column of random values, extreme and equal ones among them.
    pub(super) fn column(&mut self, ty: ValueType, owner: Option<u8>) -> Col {
        self.column_of(ty, owner.map(PartyId).into())
    }

    /// A column of random values of any holder.
    pub(super) fn column_of(&mut self, ty: ValueType, holder: Holder) -> Col {
        let values = (0..self.rows).map(|_| value(&mut self.rng, ty)).collect();
        self.given_of(ty, holder, values)
    }

    /// A column of given values.
    pub(super) fn given(&mut self, ty: ValueType, owner: Option<u8>, values: Vec<u128>) -> Col {
        self.given_of(ty, owner.map(PartyId).into(), values)
    }

    /// A column of given values of any holder.
    pub(super) fn given_of(&mut self, ty: ValueType, holder: Holder, values: Vec<u128>) -> Col {
        assert_eq!(values.len(), self.rows);
        let name = format!("c{}", self.columns.len());
        let node = self.b.column(&name, ty, holder);
        self.columns.push(values.clone());
        Col { node, ty, values: values.into() }
    }

    /// Whether a party has the row; after all other columns.
    pub(super) fn present(&mut self, party: u8) -> Col {
        let values: Vec<u128> = (0..self.rows).map(|_| u128::from(self.rng.below(4) > 0)).collect();
        let node = self.b.present(PartyId(party));
        self.columns.push(values.clone());
        Col { node, ty: ValueType::BIT, values: values.into() }
    }

    /// Sums a row node; `expected` gives its value in a row, extended to 128 bits.
    pub(super) fn sum(&mut self, value: NodeId, ty: ValueType, expected: impl Fn(usize) -> u128) -> u32 {
        let total = (0..self.rows).fold(0u128, |sum, row| sum.wrapping_add(expected(row)));
        let fold = self.b.sum(value, ty);
        if fold as usize == self.totals.len() {
            self.totals.push(wrap(total, ty));
        }
        fold
    }

    /// Takes the best row; `expected` gives a row's key, `None` where it is not valid. Returns the fold, and
    /// the best row with its key.
    pub(super) fn best(
        &mut self,
        order: RowOrder,
        [key, valid]: [NodeId; 2],
        expected: impl Fn(usize) -> Option<u128>,
    ) -> (u32, Option<(usize, u128)>) {
        let mut best: Option<(usize, u128)> = None;
        for (row, key) in (0..self.rows).filter_map(|row| Some((row, expected(row)?))) {
            let better = match (best, order) {
                (None, _) => true,
                (Some((_, held)), RowOrder::Least) => key < held,
                (Some((_, held)), RowOrder::Greatest) => key > held,
            };
            if better {
                best = Some((row, key));
            }
        }
        let width = self.b.ty(key).width;
        let fold = self.b.best(order, key, valid);
        if fold as usize == self.totals.len() {
            let word = |(row, key)| key | (row as u128) << width | 1 << (u32::from(width) + 32);
            self.totals.push(best.map_or(0, word));
        }
        (fold, best)
    }

    /// Keeps a bit of every row and reveals it; `expected` gives it in a row.
    pub(super) fn list(&mut self, to: u8, bit: NodeId, expected: impl Fn(usize) -> bool) {
        let fold = self.b.collect(bit);
        if fold as usize == self.totals.len() {
            self.totals.push(0);
        }
        self.b.reveal_rows(&format!("list {}", self.lists.len()), PartyId(to), fold);
        self.lists.push((0..self.rows).map(expected).collect());
    }

    /// Reveals a release node whose bit pattern must be `expected`.
    pub(super) fn reveal(&mut self, to: u8, value: NodeId, expected: u128) {
        self.reveal_to(PartyId(to).into(), value, expected);
    }

    /// As [`Draft::reveal`], to any viewer.
    pub(super) fn reveal_to(&mut self, to: Viewer, value: NodeId, expected: u128) {
        self.b.reveal(&format!("output {}", self.outputs.len()), to, value);
        self.outputs.push(expected);
    }

    pub(super) fn finish(self) -> ProgramCase {
        let program = self.b.finish();
        assert_eq!((program.folds.len(), program.outputs.len()), (self.totals.len(), self.outputs.len()));
        ProgramCase {
            name: self.name,
            rows: self.rows as u64,
            columns: self.columns,
            totals: self.totals,
            outputs: self.outputs,
            others: Vec::new(),
            lists: self.lists,
            noise: Noise::None,
            differences: vec![None; program.mechanisms.len()],
            random_shares: true,
            split: None,
            program,
        }
    }
}

/// A value of a type: zero, the ends of its range, small ones (so that two of them are often equal), any.
pub(super) fn value(rng: &mut Rng, ty: ValueType) -> u128 {
    let any = u128::from_le_bytes(rng.bytes());
    let pattern = match rng.below(8) {
        0 => 0,
        1 => u128::MAX,
        2 => 1 << (ty.width - 1),
        3 => (1 << (ty.width - 1)) - 1,
        4 | 5 => any % 5,
        _ => any,
    };
    wrap(pattern, ty)
}
