//! Guards: what holds of other values wherever a value is not zero. Cells whose guards exclude each other are
//! disjoint.

use crate::analysis::ValueRange;
use crate::{NodeId, NodeSection, Op, ValueType};
use std::collections::BTreeMap;

/// Most guards remembered of one node. Forgetting one is sound: cells are then not provably disjoint.
const GUARDS: usize = 64;

/// What a guard is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarded {
    /// A column, whichever node reads it.
    Column(u32),
    /// A row node that computes.
    Node(NodeId),
}

/// Ranges in which values are, wherever a node is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guards(BTreeMap<Guarded, ValueRange>);

impl Guards {
    /// One guard alone, or none.
    pub(crate) fn one(condition: Option<(Guarded, ValueRange)>) -> Self {
        Self(condition.into_iter().collect())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (Guarded, ValueRange)> {
        self.0.iter().map(|(guarded, range)| (*guarded, *range))
    }

    /// Those of a value that is not zero only where two others are not: both hold.
    pub(crate) fn both(&self, other: &Self) -> Self {
        let mut all = self.clone();
        for (guarded, range) in other.iter() {
            let known = all.0.entry(guarded).or_insert(range);
            let met = ValueRange { low: known.low.max(range.low), high: known.high.min(range.high) };
            // Where both cannot hold, the value is 0 and any guard is true.
            if met.low <= met.high {
                *known = met;
            }
        }
        while all.0.len() > GUARDS {
            all.0.pop_last();
        }
        all
    }

    /// Those of a value that is zero where two others are: either holds.
    pub(crate) fn either(&self, other: &Self) -> Self {
        let hull = |(guarded, range): (Guarded, ValueRange)| {
            let met = other.0.get(&guarded)?;
            Some((guarded, ValueRange { low: range.low.min(met.low), high: range.high.max(met.high) }))
        };
        Self(self.iter().filter_map(hull).collect())
    }

    /// What excludes that two values are not zero at a time.
    pub(crate) fn separating(&self, other: &Self) -> Vec<Guarded> {
        let apart = |(guarded, range): (Guarded, ValueRange)| {
            let met = other.0.get(&guarded)?;
            (range.high < met.low || met.high < range.low).then_some(guarded)
        };
        self.iter().filter_map(apart).collect()
    }

    /// Whether they say that a condition holds.
    pub(crate) fn imply(&self, (guarded, range): (Guarded, ValueRange)) -> bool {
        self.0.get(&guarded).is_some_and(|known| range.contains(*known))
    }
}

/// The condition that a bit is, where it is one of the range of one value: a column of one bit, a comparison
/// with a constant, or what negates one of these.
pub(crate) fn condition(section: &NodeSection, bit: NodeId) -> Option<(Guarded, ValueRange)> {
    match &section.node(bit).op {
        Op::Column(c) if section.ty(bit) == ValueType::BIT => {
            Some((Guarded::Column(*c), ValueRange::exactly(1)))
        }
        Op::Eq(a, b) => {
            let (a, value) =
                constant(section, *b).map(|v| (*a, v)).or_else(|| Some((*b, constant(section, *a)?)))?;
            Some((guarded(section, a), ValueRange::exactly(value)))
        }
        Op::Lt(..) => less(section, bit, true),
        // The other value of a bit, if it is no comparison.
        Op::Not(a) if section.ty(bit) == ValueType::BIT => {
            let not = || Some((guarded(section, *a), ValueRange::exactly(0)));
            less(section, *a, false).or_else(not)
        }
        _ => None,
    }
}

/// Of a comparison with a constant that holds, or does not.
fn less(section: &NodeSection, bit: NodeId, holds: bool) -> Option<(Guarded, ValueRange)> {
    let Op::Lt(a, b) = section.node(bit).op else { return None };
    let all = ValueRange::of_type(section.ty(a))?;
    let (of, low, high) = match (constant(section, a), constant(section, b)) {
        (None, Some(value)) if holds => (a, all.low, value - 1),
        (None, Some(value)) => (a, value, all.high),
        (Some(value), None) if holds => (b, value + 1, all.high),
        (Some(value), None) => (b, all.low, value),
        _ => return None,
    };
    (low <= high).then(|| (guarded(section, of), ValueRange { low, high }))
}

pub(crate) fn guarded(section: &NodeSection, id: NodeId) -> Guarded {
    match section.node(id).op {
        Op::Column(column) => Guarded::Column(column),
        _ => Guarded::Node(id),
    }
}

/// The number that a constant is, where `i128` holds it with its neighbours.
fn constant(section: &NodeSection, id: NodeId) -> Option<i128> {
    let Op::Const(pattern) = section.node(id).op else { return None };
    let value = section.ty(id).number(pattern)?;
    (value.checked_sub(1).is_some() && value.checked_add(1).is_some()).then_some(value)
}
