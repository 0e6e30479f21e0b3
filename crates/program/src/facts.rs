//! What is known about a row node from those before it.

use crate::analysis::{NodeFacts, ValueRange};
use crate::graph::OpNode;
use crate::guards::{Guards, condition, guarded};
use crate::{NodeId, NodeSection, Op, Owners, Program, ValueType};

impl Program {
    /// Facts of every row node, in order.
    #[must_use]
    pub fn row_facts(&self) -> Vec<NodeFacts> {
        let mut facts = Vec::with_capacity(self.row.nodes.len());
        self.extend_facts(&mut facts);
        facts
    }

    /// Facts of the row nodes behind those whose facts are there.
    pub(crate) fn extend_facts(&self, facts: &mut Vec<NodeFacts>) {
        let known = facts.len();
        for (id, node) in self.row.ids().zip(&self.row.nodes).skip(known) {
            let known = Known { program: self, id, node, section: &self.row, facts };
            let next = NodeFacts {
                owners: known.owners(),
                bounds: known.bounds(),
                clamped: known.clamped(),
                guards: known.guards(),
            };
            facts.push(next);
        }
    }
}

/// A node, and what is known about those before it.
struct Known<'a> {
    program: &'a Program,
    id: NodeId,
    node: &'a OpNode,
    section: &'a NodeSection,
    facts: &'a [NodeFacts],
}

impl Known<'_> {
    fn of(&self, id: &NodeId) -> &NodeFacts {
        &self.facts[id.index()]
    }

    fn owners(&self) -> Owners {
        if let Op::Column(c) = self.node.op {
            return self.program.columns[c as usize].owners(self.program.parties.len());
        }
        let mut owners = Owners::PUBLIC;
        self.node.op.operands(|a| owners = owners.union(self.of(&a).owners));
        owners
    }

    /// Its operands' range after the operation where its type has room for that, or the range of its type.
    fn bounds(&self) -> Option<ValueRange> {
        self.fitting().or_else(|| ValueRange::of_type(self.node.ty))
    }

    /// The range after the operation, where no value of it wraps.
    fn fitting(&self) -> Option<ValueRange> {
        let range = self.range()?;
        let fits = match ValueRange::of_type(self.node.ty) {
            Some(all) => all.contains(range),
            // The type holds more than a range does.
            None => range.low >= 0,
        };
        fits.then_some(range)
    }

    /// The range after the operation, whatever the node's type; `None` where nothing follows from the
    /// operands.
    fn range(&self) -> Option<ValueRange> {
        let of = |id: &NodeId| self.of(id).bounds;
        let (low, high) = match &self.node.op {
            Op::Const(pattern) => return self.node.ty.number(*pattern).map(ValueRange::exactly),
            Op::Clamp(a, cap) => {
                let cap = i128::try_from(*cap).ok()?;
                let high = of(a).map_or(cap, |b| b.high.min(cap));
                (of(a).map_or(0, |b| b.low.min(high)), high)
            }
            Op::Cast(a) => return of(a),
            Op::Add(a, b) => return of(a)?.of_ends(of(b)?, i128::checked_add),
            Op::Sub(a, b) => return of(a)?.of_ends(of(b)?, i128::checked_sub),
            Op::Mul(a, b) if a == b => return of(a)?.squared(),
            Op::Mul(a, b) => return of(a)?.of_ends(of(b)?, i128::checked_mul),
            Op::Min(a, b) => match (of(a), of(b)) {
                (Some(x), Some(y)) => (x.low.min(y.low), x.high.min(y.high)),
                // The other one is unsigned and may be beyond all ranges.
                (Some(x), None) | (None, Some(x)) => (0, x.high),
                (None, None) => return None,
            },
            Op::Max(a, b) => (of(a)?.low.max(of(b)?.low), of(a)?.high.max(of(b)?.high)),
            Op::Select(_, a, b) => (of(a)?.low.min(of(b)?.low), of(a)?.high.max(of(b)?.high)),
            Op::Popcount(a) => (0, i128::from(self.section.ty(*a).width)),
            Op::Shr(a, k) => (of(a)?.low >> k, of(a)?.high >> k),
            Op::Shl(a, k) if *k < 126 => {
                return of(a)?.of_ends(ValueRange::exactly(1 << k), i128::checked_mul);
            }
            Op::Lookup(l) => {
                let high = l.values.iter().map(|v| of(v).map(|b| b.high)).collect::<Option<Vec<_>>>()?;
                (0, high.into_iter().max()?)
            }
            _ => return None,
        };
        Some(ValueRange { low, high })
    }

    /// Whether the ends of the range come from bits, clamps and constants.
    fn clamped(&self) -> [bool; 2] {
        let ty = self.node.ty;
        if ty == ValueType::BIT {
            return [true; 2];
        }
        let of = |id: &NodeId| self.of(id).clamped;
        let fits = self.fitting().is_some();
        let both = |a: &NodeId, b: &NodeId| fits && [of(a), of(b)] == [[true; 2]; 2];
        let [low, high] = match &self.node.op {
            Op::Const(_) | Op::Clamp(..) => [true; 2],
            Op::Cast(a) if fits => of(a),
            Op::Shr(a, _) if fits => of(a),
            Op::Shl(a, _) if fits => of(a),
            Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b) => [both(a, b); 2],
            Op::Min(a, b) => [of(a)[0] && of(b)[0], of(a)[1] || of(b)[1]],
            Op::Max(a, b) => [of(a)[0] || of(b)[0], of(a)[1] && of(b)[1]],
            Op::Select(_, a, b) => [of(a)[0] && of(b)[0], of(a)[1] && of(b)[1]],
            Op::Lookup(l) => [true, l.values.iter().all(|v| of(v)[1])],
            _ => [false; 2],
        };
        [low || !ty.signed, high]
    }

    /// A bit is 1 wherever it is not zero, whatever it is made of.
    fn guards(&self) -> Guards {
        let made = self.guards_of_operands();
        if self.node.ty != ValueType::BIT {
            return made;
        }
        made.both(&Guards::one(Some((guarded(self.section, self.id), ValueRange::exactly(1)))))
    }

    fn guards_of_operands(&self) -> Guards {
        let of = |id: &NodeId| &self.of(id).guards;
        match &self.node.op {
            // Cutting a value may make it zero; it makes no zero anything else.
            Op::Clamp(a, _) | Op::Cast(a) | Op::Shl(a, _) | Op::Shr(a, _) | Op::Popcount(a) => of(a).clone(),
            Op::Mul(a, b) | Op::And(a, b) => of(a).both(of(b)),
            // The smaller of two unsigned values is not zero only where neither is.
            Op::Min(a, b) if !self.node.ty.signed => of(a).both(of(b)),
            Op::Or(a, b) | Op::Xor(a, b) | Op::Add(a, b) | Op::Sub(a, b) | Op::Min(a, b) | Op::Max(a, b) => {
                of(a).either(of(b))
            }
            // Where the other branch is zero, its guards hold whatever the condition is.
            Op::Select(c, a, b) if self.section.node(*b).op == Op::Const(0) => of(c).both(of(a)),
            Op::Select(c, a, b) => of(c).both(of(a)).either(of(b)),
            Op::Lookup(l) => {
                let mut values = l.values.iter().map(|v| of(v).clone());
                let first = values.next().unwrap_or_default();
                values.fold(first, |all, next| all.either(&next))
            }
            _ => Guards::one(condition(self.section, self.id)),
        }
    }
}
