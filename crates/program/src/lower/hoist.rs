//! A row section written so that shares compute little, where parties enter columns and nothing that they
//! derive from them: the same totals, fewer gates.
//!
//! Three rewritings, each an identity for all inputs:
//! 1. A lookup whose values are all the same function of other values, a function that maps 0 to 0, is that
//!    function of a lookup of those: a clamp or a square is computed once, of what was found, and not once
//!    per value. What finds no value is 0 either way.
//! 2. A bit times a bit times a value is both bits' AND times the value, however many bits the value has.
//! 3. Running maxima that stand as thresholds of a lookup go: a lookup means them anyway, and gates find the
//!    first threshold above a bound without the maxima.
//!
//! The other way round than [`super::factor`], which is for owners that derive in the clear what costs
//! nothing there.

use crate::graph::{Lookup, NodeSection};
use crate::{NodeId, Op, OpNode, Program, RowFold, ValueType};
use std::collections::HashMap;

/// The same program with a row section of fewer gates. Its text and hash are others: it is for lowering only.
#[must_use]
pub fn hoist(program: &Program) -> Program {
    let mut hoisting = Hoisting { out: NodeSection::default(), places: HashMap::new() };
    let mut moved: Vec<NodeId> = Vec::with_capacity(program.row.nodes.len());
    for node in &program.row.nodes {
        let mut node = node.clone();
        node.op.operands_mut(|a| *a = moved[a.index()]);
        let id = hoisting.rewrite(node);
        moved.push(id);
    }
    let mut out = program.clone();
    let place = |id: &mut NodeId| *id = moved[id.index()];
    for fold in &mut out.folds {
        match fold {
            RowFold::Sum { value, .. } | RowFold::Collect { value } => place(value),
            RowFold::Best { key, valid, .. } => [key, valid].into_iter().for_each(place),
        }
    }
    out.row = hoisting.out;
    out
}

struct Hoisting {
    out: NodeSection,
    places: HashMap<OpNode, NodeId>,
}

impl Hoisting {
    fn rewrite(&mut self, node: OpNode) -> NodeId {
        match node.op {
            Op::Lookup(mut l) => {
                self.loosen(&mut l);
                self.lookup(*l, node.ty)
            }
            Op::Select(bit, value, zero) if self.is_zero(zero) => self.mask(bit, value, zero, node.ty),
            _ => self.push(node),
        }
    }

    fn push(&mut self, node: OpNode) -> NodeId {
        if let Some(at) = self.places.get(&node) {
            return *at;
        }
        let id = NodeId(self.out.nodes.len() as u32);
        self.places.insert(node.clone(), id);
        self.out.nodes.push(node);
        id
    }

    fn is_zero(&self, id: NodeId) -> bool {
        self.out.node(id).op == Op::Const(0)
    }

    /// The value where the bit is set, else zero.
    fn mask(&mut self, bit: NodeId, value: NodeId, zero: NodeId, ty: ValueType) -> NodeId {
        let (bit, value) = match self.out.node(value).op {
            Op::Select(inner, value, none) if self.is_zero(none) => {
                (self.push(OpNode { op: Op::And(bit, inner), ty: ValueType::BIT }), value)
            }
            _ => (bit, value),
        };
        self.push(OpNode { op: Op::Select(bit, value, zero), ty })
    }

    /// Thresholds without the maxima with those before them.
    fn loosen(&self, l: &mut Lookup) {
        let keys = l.keys.clone();
        for (key, pair) in l.keys[1..].iter_mut().zip(keys.windows(2)) {
            match self.out.node(pair[1]).op {
                Op::Max(before, other) | Op::Max(other, before) if before == pair[0] => *key = other,
                _ => {}
            }
        }
    }

    /// The lookup, with what is done to all its values done to its result.
    fn lookup(&mut self, mut l: Lookup, ty: ValueType) -> NodeId {
        // The last function first: functions of functions, however many.
        let (mut functions, mut inner) = (Vec::new(), ty);
        while let Some((function, values)) = self.common(&l.values) {
            functions.push((function, inner));
            inner = self.out.ty(values[0]);
            l.values = values;
        }
        let found = self.push(OpNode { op: Op::Lookup(Box::new(l)), ty: inner });
        functions.into_iter().rev().fold(found, |found, (function, ty)| match function.of(found) {
            Op::Select(bit, value, zero) => self.mask(bit, value, zero, ty),
            op => self.push(OpNode { op, ty }),
        })
    }

    /// A function that all values are of others, of one type, and those.
    fn common(&self, values: &[NodeId]) -> Option<(Function, Vec<NodeId>)> {
        let mut split = values.iter().map(|value| self.split(*value));
        let (op, first) = split.next()??;
        let mut inner = vec![first];
        for part in split {
            let (other, value) = part?;
            if other != op || self.out.ty(value) != self.out.ty(first) {
                return None;
            }
            inner.push(value);
        }
        Some((op, inner))
    }

    /// A node as a function of another one that maps 0 to 0.
    fn split(&self, id: NodeId) -> Option<(Function, NodeId)> {
        Some(match self.out.node(id).op {
            Op::Cast(a) => (Function::Cast, a),
            Op::Clamp(a, cap) => (Function::Clamp(cap), a),
            Op::Shl(a, by) => (Function::Shl(by), a),
            Op::Shr(a, by) => (Function::Shr(by), a),
            Op::Isqrt(a) => (Function::Isqrt, a),
            Op::Popcount(a) => (Function::Popcount, a),
            Op::Mul(a, b) if a == b => (Function::Square, a),
            Op::Select(bit, a, zero) if self.is_zero(zero) => (Function::Mask(bit, zero), a),
            // No unsigned number is less than 0.
            Op::Lt(least, a) if !self.out.ty(a).signed && self.is_constant(least) => {
                (Function::Above(least), a)
            }
            _ => return None,
        })
    }

    fn is_constant(&self, id: NodeId) -> bool {
        matches!(self.out.node(id).op, Op::Const(_))
    }
}

/// What a node is of another one; 0 for 0.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    Cast,
    Clamp(u128),
    Shl(u8),
    Shr(u8),
    Isqrt,
    Popcount,
    Square,
    Mask(NodeId, NodeId),
    Above(NodeId),
}

impl Function {
    fn of(self, a: NodeId) -> Op {
        match self {
            Self::Cast => Op::Cast(a),
            Self::Clamp(cap) => Op::Clamp(a, cap),
            Self::Shl(by) => Op::Shl(a, by),
            Self::Shr(by) => Op::Shr(a, by),
            Self::Isqrt => Op::Isqrt(a),
            Self::Popcount => Op::Popcount(a),
            Self::Square => Op::Mul(a, a),
            Self::Mask(bit, zero) => Op::Select(bit, a, zero),
            Self::Above(least) => Op::Lt(least, a),
        }
    }
}
