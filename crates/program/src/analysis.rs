//! What is known about a program before it is run: typing, types of totals and noised values, ranges.

use crate::graph::{Lookup, MechanismKind, NodeSection, OpNode};
use crate::guards::Guards;
use crate::{
    CellKind, ColumnSource, DEGREE, Holder, NodeId, Op, Owners, Program, RowColumn, RowFold, ValueType,
};
use base::{Error, limits};
use release::joint::{CLAMP, Combination};

/// Most AND gates that one section may cost by the schoolbook bounds: beyond it a study could exhaust its
/// peer's memory while the circuit is built.
pub const GATES: u64 = 1 << 23;

/// An inclusive range of a node's value, as the number that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRange {
    /// Smallest value.
    pub low: i128,
    /// Largest value.
    pub high: i128,
}

impl ValueRange {
    /// One value.
    #[must_use]
    pub fn exactly(value: i128) -> Self {
        Self { low: value, high: value }
    }

    /// All values of a type; none of one that holds more than `i128` does.
    #[must_use]
    pub fn of_type(ty: ValueType) -> Option<Self> {
        let high = i128::try_from(ty.max()).ok()?;
        Some(Self { low: if ty.signed { -high - 1 } else { 0 }, high })
    }

    /// Whether all of `other` is in it.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// Of all pairs of values, where `f` is extreme at the ends; none where it overflows.
    pub(crate) fn of_ends(self, other: Self, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let ends =
            [(self.low, other.low), (self.low, other.high), (self.high, other.low), (self.high, other.high)];
        let mut values = [0; 4];
        for (value, (x, y)) in values.iter_mut().zip(ends) {
            *value = f(x, y)?;
        }
        Some(Self { low: values.into_iter().min()?, high: values.into_iter().max()? })
    }

    /// Of the squares of its values.
    pub(crate) fn squared(self) -> Option<Self> {
        let [low, high] = [self.low.checked_mul(self.low)?, self.high.checked_mul(self.high)?];
        let least = if self.low <= 0 && self.high >= 0 { 0 } else { low.min(high) };
        Some(Self { low: least, high: low.max(high) })
    }

    /// The most that a term of a sum changes where the row that it is of comes, goes or changes.
    #[must_use]
    pub fn width(self) -> u128 {
        self.high.max(0).abs_diff(self.low.min(0))
    }

    /// The most that it is from 0.
    #[must_use]
    pub fn magnitude(self) -> u128 {
        self.low.unsigned_abs().max(self.high.unsigned_abs())
    }
}

/// What is known about one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFacts {
    /// Whose data it depends on.
    pub owners: Owners,
    /// Its range; `None` of an unsigned value that may be beyond `i128`.
    pub bounds: Option<ValueRange>,
    /// Whether the lower and the upper end of its range come from bits, clamps and constants, whatever the
    /// inputs are. No unsigned value is below 0.
    pub clamped: [bool; 2],
    /// What holds wherever the node is not zero.
    pub guards: Guards,
}

impl NodeFacts {
    /// Its range where both ends come from bits, clamps and constants.
    #[must_use]
    pub fn clamped_range(&self) -> Option<ValueRange> {
        self.bounds.filter(|_| self.clamped == [true; 2])
    }
}

impl Program {
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
        self.check_derived()
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
    let RowColumn { name, ty, holder, source, .. } = column;
    match source {
        ColumnSource::Data { absent } if *absent & !ty.mask() != 0 => {
            Err(format!("the column {name} is {absent} in absent rows, which does not fit {ty}"))
        }
        ColumnSource::Present | ColumnSource::Known(_)
            if *ty != ValueType::BIT || *holder == Holder::Public =>
        {
            Err(format!("the column {name} says whether a row is present: a bit that is not public"))
        }
        _ => check_cells(column),
    }
}

/// What cells say is what the column's type holds.
fn check_cells(column: &RowColumn) -> Result<(), String> {
    let RowColumn { name, ty, cells, holder, .. } = column;
    if cells.missing && holder.only().is_none() {
        return Err(format!("the column {name} is not of one party, and so has no missing cells"));
    }
    crate::names::check_label(&format!("the unit of {name}"), &cells.unit)?;
    match &cells.kind {
        CellKind::Number(scale) if !(1..=CellKind::SCALE).contains(scale) => {
            Err(format!("the column {name} has a scale of {scale}; it is 1 to {}", CellKind::SCALE))
        }
        CellKind::Label(labels) => {
            let most = CellKind::LABELS.min(usize::try_from(ty.max()).unwrap_or(usize::MAX));
            if ty.signed || labels.is_empty() || labels.len() > most {
                let count = labels.len();
                let text = format!("the column {name} has {count} labels, which {ty} does not hold");
                let bits = (usize::BITS - count.leading_zeros()).max(2);
                let write = match (1..=CellKind::LABELS).contains(&count) {
                    true => format!("write u{bits}"),
                    false => format!("{} are the most", CellKind::LABELS),
                };
                return Err(format!("{text}: labels count from 1 in an unsigned type; {write}"));
            }
            let mut seen = std::collections::HashSet::new();
            labels.iter().try_for_each(|label| {
                crate::names::check_label(&format!("a label of {name}"), label)?;
                let fine = !label.is_empty() && seen.insert(label);
                if fine {
                    Ok(())
                } else {
                    Err(format!("the column {name} has the label {label:?} twice, or an empty one"))
                }
            })
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
