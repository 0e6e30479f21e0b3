//! Builds programs. Type mistakes of the caller panic: they are bugs in a study, found by its first test.
//! Programs from text go through the parser, which reports instead.

use crate::graph::{Lookup, MechanismKind, NodeSection, NoiseMechanism, OpNode};
use crate::{
    CellForm, Class, ColumnSource, Holder, List, NodeId, Op, OutputValue, Program, RowColumn, RowFold,
    RowOrder, RowSet, ValueType, Viewer,
};
use base::PartyId;
use release::Rational;
use std::collections::HashMap;

/// Builds a [`Program`]; equal nodes are shared.
pub struct ProgramBuilder {
    program: Program,
    row: HashMap<OpNode, NodeId>,
    release: HashMap<OpNode, NodeId>,
    section: Which,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Row,
    Release,
}

impl ProgramBuilder {
    /// An empty program; the row section is being written.
    #[must_use]
    pub fn new<S: Into<String>>(name: &str, class: Class, parties: impl IntoIterator<Item = S>) -> Self {
        let program = Program::empty(name, class, parties.into_iter().map(Into::into).collect());
        Self { program, row: HashMap::new(), release: HashMap::new(), section: Which::Row }
    }

    /// Which rows the program meets; [`RowSet::Any`] unless it is said.
    pub fn rows(&mut self, rows: RowSet) {
        self.program.rows = rows;
    }

    /// How many joined rows one row of a party can change; 1 unless it is said.
    pub fn degree(&mut self, party: PartyId, degree: u32) {
        self.program.degrees[party.index()] = degree;
    }

    /// How many of its own rows one line of a party can change; 1 unless it is said.
    pub fn alone(&mut self, party: PartyId, rows: u32) {
        self.program.alone[party.index()] = rows;
    }

    /// From here on nodes belong to the release section.
    pub fn release(&mut self) {
        self.section = Which::Release;
    }

    /// The finished program.
    ///
    /// # Panics
    /// When the graph breaks a typing rule: a bug of the study that built it.
    #[must_use]
    pub fn finish(mut self) -> Program {
        self.order_columns();
        if let Err(error) = self.program.check() {
            panic!("the study built an ill-typed program: {error}");
        }
        self.program
    }

    /// Built-in columns come last, as they do when the text is parsed.
    fn order_columns(&mut self) {
        let columns = std::mem::take(&mut self.program.columns);
        let mut order: Vec<usize> = (0..columns.len()).collect();
        order.sort_by_key(|c| columns[*c].is_built_in());
        let place = |c: u32| order.iter().position(|from| *from == c as usize).expect("a permutation") as u32;
        for node in &mut self.program.row.nodes {
            if let Op::Column(c) = &mut node.op {
                *c = place(*c);
            }
        }
        self.program.columns = order.iter().map(|c| columns[*c].clone()).collect();
    }

    fn section(&self) -> &NodeSection {
        match self.section {
            Which::Row => &self.program.row,
            Which::Release => &self.program.release,
        }
    }

    fn push(&mut self, op: Op, ty: ValueType) -> NodeId {
        let (section, known) = match self.section {
            Which::Row => (&mut self.program.row, &mut self.row),
            Which::Release => (&mut self.program.release, &mut self.release),
        };
        let node = OpNode { op, ty };
        *known.entry(node).or_insert_with_key(|node| {
            section.nodes.push(node.clone());
            NodeId(section.nodes.len() as u32 - 1)
        })
    }

    /// Type of a node of the current section.
    #[must_use]
    pub fn ty(&self, a: NodeId) -> ValueType {
        self.section().ty(a)
    }

    /// A column of data that is 0 in rows which its holder does not have.
    pub fn column(&mut self, name: &str, ty: ValueType, holder: impl Into<Holder>) -> NodeId {
        self.column_from(name, ty, holder, ColumnSource::DATA)
    }

    /// A column; `source` says where its values come from.
    pub fn column_from(
        &mut self,
        name: &str,
        ty: ValueType,
        holder: impl Into<Holder>,
        source: ColumnSource,
    ) -> NodeId {
        let (name, holder) = (name.to_owned(), holder.into());
        self.read(RowColumn { name, ty, holder, source, cells: CellForm::default() })
    }

    /// Whether a party has the row, a bit.
    pub fn present(&mut self, party: PartyId) -> NodeId {
        let column = RowColumn::present(party, &self.program.parties[party.index()]);
        self.read(column)
    }

    /// Whether all parties have the row, a bit.
    pub fn matched(&mut self) -> NodeId {
        let parties = 0..self.program.parties.len() as u8;
        let bits: Vec<NodeId> = parties.map(|party| self.present(PartyId(party))).collect();
        bits.into_iter().reduce(|a, b| self.and(a, b)).expect("a program has a party")
    }

    fn read(&mut self, column: RowColumn) -> NodeId {
        let ty = column.ty;
        let index = match self.program.columns.iter().position(|c| c.name == column.name) {
            Some(index) => index,
            None => {
                self.program.columns.push(column);
                self.program.columns.len() - 1
            }
        };
        self.push(Op::Column(index as u32), ty)
    }

    /// A constant.
    pub fn constant(&mut self, value: u128, ty: ValueType) -> NodeId {
        self.push(Op::Const(value & ty.mask()), ty)
    }

    /// The sum of a row node over all rows; returns the fold's index.
    pub fn sum(&mut self, value: NodeId, ty: ValueType) -> u32 {
        self.fold(RowFold::Sum { value, ty })
    }

    /// The valid row with the least or greatest key; returns the fold's index.
    pub fn best(&mut self, order: RowOrder, key: NodeId, valid: NodeId) -> u32 {
        self.fold(RowFold::Best { order, key, valid, ty: self.ty(key) })
    }

    /// A bit of every row, for [`ProgramBuilder::reveal_rows`]; returns the fold's index.
    pub fn collect(&mut self, value: NodeId) -> u32 {
        self.fold(RowFold::Collect { value })
    }

    fn fold(&mut self, fold: RowFold) -> u32 {
        assert!(self.section == Which::Row, "folds are over row nodes");
        if let Some(index) = self.program.folds.iter().position(|f| *f == fold) {
            return index as u32;
        }
        self.program.folds.push(fold);
        self.program.folds.len() as u32 - 1
    }

    /// Adds a mechanism; returns its index.
    pub fn mechanism(&mut self, to: impl Into<Viewer>, rho: &Rational, kind: MechanismKind) -> u32 {
        self.program.mechanisms.push(NoiseMechanism { to: to.into(), rho: rho.clone(), kind });
        self.program.mechanisms.len() as u32 - 1
    }

    /// The total of a fold, in the release section.
    pub fn total(&mut self, fold: u32) -> NodeId {
        let ty = self.program.folds[fold as usize].ty();
        self.push(Op::Total(fold), ty)
    }

    /// The row index of a best row, in the release section.
    pub fn index(&mut self, fold: u32) -> NodeId {
        self.push(Op::Index(fold), RowFold::INDEX)
    }

    /// Whether there was a best row, in the release section.
    pub fn found(&mut self, fold: u32) -> NodeId {
        self.push(Op::Found(fold), ValueType::BIT)
    }

    /// A noised value, in the release section.
    pub fn noised(&mut self, mechanism: u32, output: u32) -> NodeId {
        let ty = self.program.noised_type(mechanism, output).expect("the mechanism has this output");
        self.push(Op::Noised(mechanism, output), ty)
    }

    /// Reveals a release node to one party under a label.
    pub fn reveal(&mut self, label: &str, to: impl Into<Viewer>, value: NodeId) {
        self.program.outputs.push(OutputValue { label: label.to_owned(), to: to.into(), value });
    }

    /// Reveals a collected bit of every row to one party under a label.
    pub fn reveal_rows(&mut self, label: &str, to: PartyId, fold: u32) {
        self.program.lists.push(List { label: label.to_owned(), to, fold });
    }

    /// `a` where `condition`, else `b`.
    pub fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> NodeId {
        self.push(Op::Select(condition, a, b), self.ty(a))
    }

    /// `a` where `condition`, else 0.
    pub fn mask(&mut self, condition: NodeId, a: NodeId) -> NodeId {
        let zero = self.constant(0, self.ty(a));
        self.select(condition, a, zero)
    }

    /// Number of set bits.
    pub fn popcount(&mut self, a: NodeId, ty: ValueType) -> NodeId {
        self.push(Op::Popcount(a), ty)
    }

    /// The same number in another type.
    pub fn cast(&mut self, a: NodeId, ty: ValueType) -> NodeId {
        if self.ty(a) == ty { a } else { self.push(Op::Cast(a), ty) }
    }

    /// Shifted left by a constant.
    pub fn shl(&mut self, a: NodeId, by: u8) -> NodeId {
        self.push(Op::Shl(a, by), self.ty(a))
    }

    /// Shifted right by a constant.
    pub fn shr(&mut self, a: NodeId, by: u8) -> NodeId {
        self.push(Op::Shr(a, by), self.ty(a))
    }

    /// At most `cap`.
    pub fn clamp(&mut self, a: NodeId, cap: u128) -> NodeId {
        self.push(Op::Clamp(a, cap), self.ty(a))
    }

    /// A step function; see [`Lookup`].
    pub fn lookup(&mut self, lookup: Lookup) -> NodeId {
        let ty = self.ty(*lookup.values.first().expect("a lookup has values"));
        self.push(Op::Lookup(Box::new(lookup)), ty)
    }
}

/// Defines the operations on operands alone; the result has the type of the first one unless another is said.
macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($a:ident $(, $b:ident)?) = $op:ident $(: $ty:expr)?;)*) => {
        impl ProgramBuilder {
            $($(#[$doc])*
            pub fn $name(&mut self, $a: NodeId $(, $b: NodeId)?) -> NodeId {
                let ty = [$($ty,)? self.ty($a)][0];
                self.push(Op::$op($a $(, $b)?), ty)
            })*
        }
    };
}

operations! {
    /// `a + b` modulo 2^width.
    add(a, b) = Add;
    /// `a - b` modulo 2^width.
    sub(a, b) = Sub;
    /// `a * b` modulo 2^width.
    mul(a, b) = Mul;
    /// `a / b` rounded down; all ones when `b` is zero. Unsigned.
    div(a, b) = Div;
    /// `a < b`.
    lt(a, b) = Lt: ValueType::BIT;
    /// `a == b`.
    eq(a, b) = Eq: ValueType::BIT;
    /// The smaller one.
    min(a, b) = Min;
    /// The larger one.
    max(a, b) = Max;
    /// Bitwise and.
    and(a, b) = And;
    /// Bitwise or.
    or(a, b) = Or;
    /// Bitwise exclusive or.
    xor(a, b) = Xor;
    /// Integer square root, rounded down. Unsigned.
    isqrt(a) = Isqrt;
    /// Bitwise complement.
    not(a) = Not;
}
