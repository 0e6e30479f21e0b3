//! What is known about a node before it is computed: typing, owners, range, boundedness, guards.

use crate::graph::{Lookup, MechanismKind, NodeSection, OpNode};
use crate::{ColumnSource, DEGREE, Holder, NodeId, Op, Owners, Program, RowColumn, RowFold, ValueType};
use base::{Error, limits};
use release::joint::{CLAMP, Combination};
use std::collections::BTreeSet;

/// Most AND gates that one section may cost by the schoolbook bounds: beyond it a study could exhaust its
/// peer's memory while the circuit is built.
pub const GATES: u64 = 1 << 23;

/// Most guards remembered of one node. Forgetting one is sound: cells are then not provably disjoint.
pub(crate) const GUARDS: usize = 64;

/// An inclusive range of a node's value, as unsigned bit patterns; signed nodes have no bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// Smallest value.
    pub low: u128,
    /// Largest value.
    pub high: u128,
}

/// What is known about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Whose data it depends on.
    pub owners: Owners,
    /// Its range; `None` for signed values.
    pub bounds: Option<ValueRange>,
    /// Whether its range comes from a bit, a clamp or a constant, whatever the inputs are.
    pub clamped: bool,
    /// Columns that must equal a constant for the node to be non-zero.
    pub guards: BTreeSet<(u32, u128)>,
}

impl Program {
    /// Facts of every row node, in order.
    #[must_use]
    pub fn row_facts(&self) -> Vec<NodeFacts> {
        let mut facts = Vec::with_capacity(self.row.nodes.len());
        for node in &self.row.nodes {
            let next = facts_of(self, node, &self.row, &facts);
            facts.push(next);
        }
        facts
    }

    /// Whose data each total depends on.
    #[must_use]
    pub fn fold_owners(&self) -> Vec<Owners> {
        let facts = self.row_facts();
        let owners = |id: NodeId| facts[id.index()].owners;
        self.folds.iter().map(|f| f.values().fold(Owners::PUBLIC, |o, id| o.union(owners(id)))).collect()
    }

    /// Type of a mechanism's output: room for the total and for noise 64 times as large.
    #[must_use]
    pub fn noised_type(&self, mechanism: u32, output: u32) -> Option<ValueType> {
        match &self.mechanisms.get(mechanism as usize)?.kind {
            MechanismKind::Gaussian(folds) => {
                let fold = self.folds.get(*folds.get(output as usize)? as usize)?;
                Some(ValueType::i((u32::from(fold.ty().width) + 8).min(limits::WIDTH) as u8))
            }
            kind @ MechanismKind::Joint { .. } => {
                let (combination, [n, s, q]) = kind.combination(output)?;
                // V is at most 7 R^2 for each row, the others are below what bounds n, S or Q.
                let (fold, more) = match combination {
                    Combination::Rows => (n, 0),
                    Combination::Value | Combination::Centred => (s, 0),
                    Combination::Tail => (q, 0),
                    Combination::CentredTail => (q, 3),
                };
                let width = u32::from(self.folds.get(fold as usize)?.ty().width) + more + 8;
                Some(ValueType::i(width.min(limits::WIDTH) as u8))
            }
            MechanismKind::Difference { .. } => (output < 2).then_some(ValueType::i(64)),
        }
    }

    /// Checks structure and types; the text of an error names section and node.
    ///
    /// # Errors
    /// [`base::Fault::Input`] for the first rule broken.
    pub fn check(&self) -> Result<(), Error> {
        if self.parties.is_empty() || self.parties.len() > limits::PARTIES {
            return Err(Error::input(format!("a program has 1 to {} parties", limits::PARTIES)));
        }
        for all in [&self.degrees, &self.alone] {
            if all.len() != self.parties.len() || all.iter().any(|d| !(1..=DEGREE).contains(d)) {
                return Err(Error::input(format!("every party has a degree, 1 to {DEGREE}")));
            }
        }
        crate::names::check(self).map_err(Error::input)?;
        self.columns.iter().try_for_each(check_source).map_err(Error::input)?;
        for (name, section) in [("row", &self.row), ("release", &self.release)] {
            if section.nodes.len() > limits::NODES {
                return Err(Error::limit(
                    "nodes of a section",
                    section.nodes.len() as u64,
                    limits::NODES as u64,
                ));
            }
            for (i, node) in section.nodes.iter().enumerate() {
                self.check_node(node, section, i, name == "row")
                    .map_err(|text| Error::input(format!("{name} section, v{i}: {text}")))?;
            }
            let gates = section.nodes.iter().fold(0u64, |sum, node| sum.saturating_add(gates(node, section)));
            if gates > GATES {
                return Err(Error::limit("AND gates of a section", gates, GATES));
            }
        }
        self.check_tail().map_err(Error::input)
    }

    fn check_tail(&self) -> Result<(), String> {
        for (i, fold) in self.folds.iter().enumerate() {
            self.check_fold(fold).map_err(|text| format!("f{i}: {text}"))?;
        }
        for (i, mechanism) in self.mechanisms.iter().enumerate() {
            if mechanism.to.only().is_some_and(|to| to.index() >= self.parties.len()) {
                return Err(format!("m{i} is for an unknown party"));
            }
            let folds = mechanism.kind.folds();
            if folds.is_empty() || folds.iter().any(|f| *f as usize >= self.folds.len()) {
                return Err(format!("m{i} noises an unknown fold"));
            }
            // The noised value has eight bits more than the total, within 128.
            if let Some(f) =
                folds.iter().find(|f| u32::from(self.folds[**f as usize].ty().width) + 8 > limits::WIDTH)
            {
                return Err(format!("m{i} noises f{f}, which is wider than 120 bits: no room for noise"));
            }
            if let MechanismKind::Joint { clamp, cells, .. } = &mechanism.kind {
                if !(1..=CLAMP).contains(clamp) {
                    return Err(format!("m{i} has a clamp of {clamp}; it is between 1 and {CLAMP}"));
                }
                let sum = |f: &u32| {
                    let fold = &self.folds[*f as usize];
                    matches!(fold, RowFold::Sum { .. }) && !fold.ty().signed
                };
                if let Some(f) = cells.as_flattened().iter().find(|f| !sum(f)) {
                    return Err(format!("m{i} is joint, and f{f} is no unsigned sum"));
                }
            }
        }
        for list in &self.lists {
            let fold = self.folds.get(list.fold as usize);
            if list.to.index() >= self.parties.len() || !matches!(fold, Some(RowFold::Collect { .. })) {
                return Err(format!("the list {:?} names an unknown party or no collect fold", list.label));
            }
        }
        for output in &self.outputs {
            let unknown = output.to.only().is_some_and(|to| to.index() >= self.parties.len());
            if unknown || output.value.index() >= self.release.nodes.len() {
                return Err(format!("the output {:?} names an unknown party or node", output.label));
            }
        }
        Ok(())
    }

    fn check_fold(&self, fold: &RowFold) -> Result<(), String> {
        let ty =
            |id: NodeId| self.row.nodes.get(id.index()).map(|n| n.ty).ok_or("it folds an unknown row node");
        match fold {
            RowFold::Sum { value, ty: sum } => {
                let value = ty(*value)?;
                if value.width > sum.width || value.signed != sum.signed {
                    return Err(format!("a sum of {value} needs a {sum} at least as wide and alike signed"));
                }
            }
            RowFold::Best { key, valid, ty: total, .. } => {
                let (key, valid) = (ty(*key)?, ty(*valid)?);
                if key != *total || key.signed || key.width > RowFold::KEY_BITS || valid != ValueType::BIT {
                    let most = RowFold::KEY_BITS;
                    return Err(format!(
                        "best takes an unsigned key of at most {most} bits and a bit, not {key} and {valid}"
                    ));
                }
            }
            RowFold::Collect { value } => {
                let value = ty(*value)?;
                if value != ValueType::BIT {
                    return Err(format!("collect takes a bit, not {value}"));
                }
            }
        }
        Ok(())
    }

    /// Checks one node, to stand at position `at` of a section.
    pub(crate) fn check_node(
        &self,
        node: &OpNode,
        section: &NodeSection,
        at: usize,
        row: bool,
    ) -> Result<(), String> {
        let mut early = true;
        node.op.operands(|a| early &= a.index() < at);
        if !early {
            return Err("an operand comes later than its use".into());
        }
        match node.op {
            Op::Column(_) | Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Noised(..) => {
                self.check_entry(node, row)
            }
            _ => check_operation(node, section),
        }
    }

    /// A node that reads what comes into its section: it exists there and has the node's type.
    fn check_entry(&self, node: &OpNode, row: bool) -> Result<(), String> {
        let ty = node.ty;
        match &node.op {
            Op::Column(c) => {
                let column = self.columns.get(*c as usize).filter(|_| row).ok_or("unknown column")?;
                if column.ty == ty { Ok(()) } else { Err(format!("column {} is {}", column.name, column.ty)) }
            }
            Op::Total(f) => {
                let fold = self.folds.get(*f as usize).filter(|_| !row).ok_or("unknown fold")?;
                if matches!(fold, RowFold::Collect { .. }) {
                    return Err("a collect fold has no total; reveal its rows".into());
                }
                if fold.ty() == ty { Ok(()) } else { Err(format!("the fold is {}", fold.ty())) }
            }
            Op::Index(f) | Op::Found(f) => {
                let fold = self.folds.get(*f as usize).filter(|_| !row).ok_or("unknown fold")?;
                if !matches!(fold, RowFold::Best { .. }) {
                    return Err("only least and greatest have an index and a found bit".into());
                }
                let wanted = if matches!(node.op, Op::Index(_)) { RowFold::INDEX } else { ValueType::BIT };
                if ty == wanted { Ok(()) } else { Err(format!("it is {wanted}")) }
            }
            Op::Noised(m, o) => {
                let noised = self.noised_type(*m, *o).filter(|_| !row).ok_or("unknown noised value")?;
                if noised == ty { Ok(()) } else { Err(format!("the noised value is {noised}")) }
            }
            _ => Ok(()),
        }
    }
}

/// A node that computes: its operands and its result have the types that the operation is defined on.
fn check_operation(node: &OpNode, section: &NodeSection) -> Result<(), String> {
    let ty = node.ty;
    let same = |ids: &[NodeId]| match ids.iter().find(|a| section.ty(**a) != ty) {
        None => Ok(()),
        Some(a) => Err(format!("an operand is {}, the result {ty}", section.ty(*a))),
    };
    let unsigned =
        || if ty.signed { Err(format!("not defined on {ty}: use an unsigned type")) } else { Ok(()) };
    match &node.op {
        Op::Const(value) if *value & !ty.mask() != 0 => Err(format!("{value} does not fit {ty}")),
        Op::Const(_) | Op::Cast(_) => Ok(()),
        Op::Popcount(a) => {
            let room = u32::BITS - u32::from(section.ty(*a).width).leading_zeros();
            unsigned()?;
            if u32::from(ty.width) >= room { Ok(()) } else { Err(format!("{ty} cannot hold the count")) }
        }
        Op::Not(a) => same(&[*a]),
        Op::Isqrt(a) => unsigned().and(same(&[*a])),
        Op::Clamp(a, _) => unsigned().and(same(&[*a])),
        Op::Shl(a, k) | Op::Shr(a, k) if u32::from(*k) < limits::WIDTH => same(&[*a]),
        Op::Shl(..) | Op::Shr(..) => Err("a shift is below 128".into()),
        Op::Div(a, b) => unsigned().and(same(&[*a, *b])),
        Op::And(a, b) | Op::Or(a, b) | Op::Xor(a, b) | Op::Add(a, b) => same(&[*a, *b]),
        Op::Sub(a, b) | Op::Mul(a, b) | Op::Min(a, b) | Op::Max(a, b) => same(&[*a, *b]),
        Op::Lt(a, b) | Op::Eq(a, b) => {
            let (a, b) = (section.ty(*a), section.ty(*b));
            let bit =
                if ty == ValueType::BIT { Ok(()) } else { Err(format!("a comparison is a bit, not {ty}")) };
            if a == b { bit } else { Err(format!("{a} is compared with {b}")) }
        }
        Op::Select(c, a, b) => {
            let c = section.ty(*c);
            if c == ValueType::BIT {
                same(&[*a, *b])
            } else {
                Err(format!("the condition is {c}, not a bit"))
            }
        }
        Op::Lookup(l) => check_lookup(l, section).and(unsigned()).and(same(&l.values)),
        Op::Column(_) | Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Noised(..) => Ok(()),
    }
}

fn check_source(column: &RowColumn) -> Result<(), String> {
    let RowColumn { name, ty, holder, source } = column;
    match source {
        ColumnSource::Data { absent } if *absent & !ty.mask() != 0 => {
            Err(format!("the column {name} is {absent} in absent rows, which does not fit {ty}"))
        }
        ColumnSource::Present if *ty != ValueType::BIT || *holder == Holder::Public => {
            Err(format!("the column {name} says whether a row is present: a bit that is not public"))
        }
        _ => Ok(()),
    }
}

fn check_lookup(l: &Lookup, section: &NodeSection) -> Result<(), String> {
    let (n, key) = (l.keys.len(), section.ty(l.after));
    if n == 0 || n > 64 {
        return Err("a lookup has 1 to 64 thresholds".into());
    }
    let values = if l.until.is_some() { n * (n + 1) / 2 } else { n };
    if l.values.len() != values {
        return Err(format!("{n} thresholds need {values} values, not {}", l.values.len()));
    }
    if key.signed || l.until.iter().chain(&l.keys).any(|k| section.ty(*k) != key) {
        return Err(format!("thresholds and bounds of a lookup share one unsigned type ({key})"));
    }
    Ok(())
}

/// Upper bound of a node's AND gates when no operand is known in the clear.
fn gates(node: &OpNode, section: &NodeSection) -> u64 {
    let w = u64::from(node.ty.width);
    match &node.op {
        Op::And(..) | Op::Or(..) | Op::Add(..) | Op::Sub(..) | Op::Select(..) => w,
        Op::Mul(..) => w * w,
        Op::Div(..) | Op::Isqrt(..) => 3 * (w + 1) * (w + 1),
        Op::Lt(a, _) | Op::Eq(a, _) | Op::Popcount(a) => u64::from(section.ty(*a).width),
        Op::Min(..) | Op::Max(..) | Op::Clamp(..) => 2 * w,
        Op::Lookup(l) => {
            let key = u64::from(section.ty(l.after).width);
            4 * key * l.keys.len() as u64 + (w + 1) * l.values.len() as u64
        }
        _ => 0,
    }
}

fn facts_of(program: &Program, node: &OpNode, section: &NodeSection, facts: &[NodeFacts]) -> NodeFacts {
    let known = Known { program, node, section, facts };
    let (owners, bounds, clamped) = (known.owners(), known.bounds(), known.is_clamped());
    let mut guards = known.guards();
    while guards.len() > GUARDS {
        guards.pop_last();
    }
    NodeFacts { owners, bounds, clamped, guards }
}

/// A node, and what is known about those before it.
struct Known<'a> {
    program: &'a Program,
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
            return match self.program.columns[c as usize].holder {
                Holder::Public => Owners::PUBLIC,
                Holder::Party(party) => Owners::one(party),
                Holder::Shared => Owners::all(self.program.parties.len()),
            };
        }
        let mut owners = Owners::PUBLIC;
        self.node.op.operands(|a| owners = owners.union(self.of(&a).owners));
        owners
    }

    /// Its operands' range after the operation where its type has room for that, or the range of its type.
    fn bounds(&self) -> Option<ValueRange> {
        let ty = self.node.ty;
        let full = (!ty.signed).then_some(ValueRange { low: 0, high: ty.mask() })?;
        Some(self.range().filter(|range| range.low <= range.high && range.high <= full.high).unwrap_or(full))
    }

    /// The range after the operation, whatever the node's type; `None` where nothing follows from the
    /// operands.
    fn range(&self) -> Option<ValueRange> {
        let of = |id: &NodeId| self.of(id).bounds;
        let (low, high) = match &self.node.op {
            Op::Const(value) => (*value, *value),
            Op::Clamp(a, cap) => {
                let high = of(a).map_or(*cap, |b| b.high.min(*cap));
                (of(a).map_or(0, |b| b.low.min(high)), high)
            }
            Op::Cast(a) => return of(a),
            Op::Add(a, b) => {
                let (x, y) = (of(a)?, of(b)?);
                (x.low.checked_add(y.low)?, x.high.checked_add(y.high)?)
            }
            Op::Mul(a, b) => {
                let (x, y) = (of(a)?, of(b)?);
                (x.low.checked_mul(y.low)?, x.high.checked_mul(y.high)?)
            }
            Op::Min(a, b) => (of(a)?.low.min(of(b)?.low), of(a)?.high.min(of(b)?.high)),
            Op::Max(a, b) => (of(a)?.low.max(of(b)?.low), of(a)?.high.max(of(b)?.high)),
            Op::Select(_, a, b) => (of(a)?.low.min(of(b)?.low), of(a)?.high.max(of(b)?.high)),
            Op::Popcount(a) => (0, u128::from(self.section.ty(*a).width)),
            Op::Shr(a, k) => (of(a)?.low >> k, of(a)?.high >> k),
            Op::Lookup(l) => {
                let high = l.values.iter().map(|v| of(v).map(|b| b.high)).collect::<Option<Vec<_>>>()?;
                (0, high.into_iter().max()?)
            }
            _ => return None,
        };
        Some(ValueRange { low, high })
    }

    fn is_clamped(&self) -> bool {
        let (ty, clamped) = (self.node.ty, |id: &NodeId| self.of(id).clamped);
        let bounded = |a: &NodeId, b: &NodeId| self.of(a).bounds.is_some() && self.of(b).bounds.is_some();
        let derived = match &self.node.op {
            Op::Const(_) => !ty.signed,
            Op::Clamp(..) => true,
            Op::Cast(a) => {
                let fits = self.of(a).bounds.is_some_and(|b| b.high <= ty.max());
                clamped(a) && fits && !ty.signed
            }
            Op::Mul(a, b) => {
                let fits = self.range().is_some_and(|range| range.high <= ty.mask());
                fits && clamped(a) && clamped(b)
            }
            Op::Min(a, b) => bounded(a, b) && (clamped(a) || clamped(b)),
            Op::Max(a, b) => bounded(a, b) && clamped(a) && clamped(b),
            Op::Select(_, a, b) => clamped(a) && clamped(b),
            Op::Lookup(l) => l.values.iter().all(clamped),
            _ => false,
        };
        derived || ty == ValueType::BIT
    }

    fn guards(&self) -> BTreeSet<(u32, u128)> {
        let of = |id: &NodeId| &self.of(id).guards;
        let union = |a: &NodeId, b: &NodeId| of(a).union(of(b)).copied().collect();
        match &self.node.op {
            Op::Column(c) if self.node.ty == ValueType::BIT => BTreeSet::from([(*c, 1)]),
            Op::Clamp(a, _) | Op::Cast(a) => of(a).clone(),
            Op::Mul(a, b) if self.of(a).bounds.and(self.of(b).bounds).is_some() => union(a, b),
            Op::And(a, b) => union(a, b),
            Op::Eq(a, b) => guard_of(self.section, *a, *b).into_iter().collect(),
            // The other branch is zero, so its guards hold whatever the condition is.
            Op::Select(c, a, b) if self.section.node(*b).op == Op::Const(0) => union(c, a),
            Op::Lookup(l) => {
                let mut values = l.values.iter().map(|v| of(v).clone());
                let first = values.next().unwrap_or_default();
                values.fold(first, |all, next| all.intersection(&next).copied().collect())
            }
            _ => BTreeSet::new(),
        }
    }
}

/// The guard of `column == constant`.
pub(crate) fn guard_of(section: &NodeSection, a: NodeId, b: NodeId) -> Option<(u32, u128)> {
    match (&section.node(a).op, &section.node(b).op) {
        (Op::Column(c), Op::Const(v)) | (Op::Const(v), Op::Column(c)) => Some((*c, *v)),
        _ => None,
    }
}
