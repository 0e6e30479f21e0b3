//! The meaning of operations on clear values, many rows at a time. The `clear` engine runs whole programs
//! with it; the secure engines run with it what one party can compute alone.

use crate::graph::{Lookup, NodeSection};
use crate::{NodeId, Op, ValueType};
use base::Error;

/// Values of a section's nodes over a batch of rows; nodes that were not wanted are absent.
#[derive(Default)]
pub struct NodeValues {
    nodes: Vec<Vec<u128>>,
    present: Vec<bool>,
    lanes: usize,
}

/// Gives the leaves of a section: columns, totals, noised values.
pub type LeafValue<'a> = dyn FnMut(&Op, &mut [u128]) -> Result<(), Error> + 'a;

impl NodeValues {
    /// Evaluates the wanted nodes of `section` on `lanes` rows. `leaf` fills columns, totals and noised
    /// values with bit patterns of their type. Buffers of an earlier batch are reused.
    ///
    /// # Errors
    /// Those of `leaf`.
    pub fn evaluate(
        &mut self,
        section: &NodeSection,
        wanted: &[bool],
        lanes: usize,
        leaf: &mut LeafValue<'_>,
    ) -> Result<(), Error> {
        let count = section.nodes.len();
        self.nodes.resize_with(count, Vec::new);
        self.present = wanted.to_vec();
        self.lanes = lanes;
        for (i, node) in section.nodes.iter().enumerate().filter(|(i, _)| wanted[*i]) {
            let (before, rest) = self.nodes.split_at_mut(i);
            let out = &mut rest[0];
            out.clear();
            out.resize(lanes, 0);
            if node.op.is_leaf() {
                leaf(&node.op, out)?;
                debug_assert!(out.iter().all(|v| v & !node.ty.mask() == 0), "a leaf fits its type");
            } else {
                apply(&node.op, node.ty, section, &|id| &before[id.index()], out);
            }
        }
        Ok(())
    }

    /// The values of a wanted node, one per row.
    #[must_use]
    pub fn get(&self, id: NodeId) -> &[u128] {
        debug_assert!(self.present[id.index()], "the node was not wanted");
        &self.nodes[id.index()][..self.lanes]
    }
}

/// The nodes that `roots` need, roots included.
#[must_use]
pub fn closure(section: &NodeSection, roots: impl IntoIterator<Item = NodeId>) -> Vec<bool> {
    let mut wanted = vec![false; section.nodes.len()];
    for root in roots {
        wanted[root.index()] = true;
    }
    for id in section.ids().rev() {
        if wanted[id.index()] {
            section.node(id).op.operands(|a| wanted[a.index()] = true);
        }
    }
    wanted
}

/// One operation on values of its operands, which `get` gives; not a leaf.
pub(crate) fn apply<'a>(
    op: &Op,
    ty: ValueType,
    section: &NodeSection,
    get: &dyn Fn(NodeId) -> &'a [u128],
    out: &mut [u128],
) {
    let mask = ty.mask();
    let sort = |id: NodeId| section.ty(id);
    let mut zip = |a: NodeId, b: NodeId, f: &dyn Fn(u128, u128) -> u128| {
        for ((out, x), y) in out.iter_mut().zip(get(a)).zip(get(b)) {
            *out = f(*x, *y) & mask;
        }
    };
    match op {
        Op::And(a, b) => zip(*a, *b, &|x, y| x & y),
        Op::Or(a, b) => zip(*a, *b, &|x, y| x | y),
        Op::Xor(a, b) => zip(*a, *b, &|x, y| x ^ y),
        Op::Add(a, b) => zip(*a, *b, &u128::wrapping_add),
        Op::Sub(a, b) => zip(*a, *b, &u128::wrapping_sub),
        Op::Mul(a, b) => zip(*a, *b, &u128::wrapping_mul),
        Op::Div(a, b) => zip(*a, *b, &|x, y| x.checked_div(y).unwrap_or(mask)),
        Op::Lt(a, b) => zip(*a, *b, &|x, y| u128::from(less(sort(*a), x, y))),
        Op::Eq(a, b) => zip(*a, *b, &|x, y| u128::from(x == y)),
        Op::Min(a, b) => zip(*a, *b, &|x, y| if less(ty, y, x) { y } else { x }),
        Op::Max(a, b) => zip(*a, *b, &|x, y| if less(ty, x, y) { y } else { x }),
        Op::Select(c, a, b) => {
            for (i, out) in out.iter_mut().enumerate() {
                *out = if get(*c)[i] == 1 { get(*a)[i] } else { get(*b)[i] };
            }
        }
        Op::Lookup(l) => lookup(l, get, out),
        _ => unary(op, mask, section, get, out),
    }
}

fn unary<'a>(
    op: &Op,
    mask: u128,
    section: &NodeSection,
    get: &dyn Fn(NodeId) -> &'a [u128],
    out: &mut [u128],
) {
    let mut map = |a: NodeId, f: &dyn Fn(u128) -> u128| {
        for (out, x) in out.iter_mut().zip(get(a)) {
            *out = f(*x) & mask;
        }
    };
    match op {
        Op::Const(value) => out.fill(*value),
        Op::Not(a) => map(*a, &|x| !x),
        Op::Isqrt(a) => map(*a, &|x| x.isqrt()),
        Op::Popcount(a) => map(*a, &|x| u128::from(x.count_ones())),
        Op::Clamp(a, cap) => map(*a, &|x| x.min(*cap)),
        Op::Shl(a, k) => map(*a, &|x| x << k),
        Op::Cast(a) => map(*a, &|x| section.ty(*a).to_signed(x) as u128),
        Op::Shr(a, k) if section.ty(*a).signed => map(*a, &|x| (section.ty(*a).to_signed(x) >> k) as u128),
        Op::Shr(a, k) => map(*a, &|x| x >> k),
        _ => unreachable!("leaves and two-operand operations are handled by the callers"),
    }
}

fn less(ty: ValueType, x: u128, y: u128) -> bool {
    if ty.signed { ty.to_signed(x) < ty.to_signed(y) } else { x < y }
}

fn lookup<'a>(l: &Lookup, get: &dyn Fn(NodeId) -> &'a [u128], out: &mut [u128]) {
    let keys: Vec<&[u128]> = l.keys.iter().map(|k| get(*k)).collect();
    let values: Vec<&[u128]> = l.values.iter().map(|v| get(*v)).collect();
    let (after, until) = (get(l.after), l.until.map(get));
    for (row, out) in out.iter_mut().enumerate() {
        let mut top = 0;
        let mut first = None;
        let mut last = None;
        for (j, key) in keys.iter().enumerate() {
            top = top.max(key[row]);
            if first.is_none() && top > after[row] {
                first = Some(j);
            }
            if until.is_none_or(|u| top <= u[row]) {
                last = Some(j);
            }
        }
        *out = match (first, last) {
            (Some(i), _) if until.is_none() => values[i][row],
            (Some(i), Some(m)) if i <= m => values[Lookup::triangle(keys.len(), i, m)][row],
            _ => 0,
        };
    }
}
