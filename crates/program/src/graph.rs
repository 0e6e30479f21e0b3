//! The typed SSA graph of a program.

use crate::names::ValueNames;
use crate::{DerivedOutput, ValueType};
use base::PartyId;
use release::Rational;
use release::joint::{Change, Combination};
use std::collections::BTreeSet;

/// Index of a node within its section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As a table index.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Who sees a value of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Viewer {
    /// One party.
    Party(PartyId),
    /// Every party, and whoever they show it to.
    Public,
}

impl Viewer {
    /// What a text calls [`Viewer::Public`]; no party has this name.
    pub const PUBLIC: &str = "public";

    /// The one party that it is.
    #[must_use]
    pub fn only(self) -> Option<PartyId> {
        if let Self::Party(party) = self { Some(party) } else { None }
    }

    /// Whether a party is among those who see.
    #[must_use]
    pub fn has(self, party: PartyId) -> bool {
        self.only().is_none_or(|only| only == party)
    }

    /// Whether all who see it know what depends on the data of `owners` alone.
    #[must_use]
    pub fn knows(self, owners: crate::Owners) -> bool {
        self.only().map_or(owners.is_public(), |party| owners.within(party))
    }

    /// Its name among those of the parties.
    #[must_use]
    pub fn name(self, parties: &[String]) -> &str {
        self.only().map_or(Self::PUBLIC, |party| &parties[party.index()])
    }

    /// A number of its own: a party's, or the one after the last that a party can have.
    #[must_use]
    pub fn number(self) -> u8 {
        self.only().map_or(u8::MAX, |party| party.0)
    }
}

impl From<PartyId> for Viewer {
    fn from(party: PartyId) -> Self {
        Self::Party(party)
    }
}

/// An operation. Operands are earlier nodes of the same section. Arithmetic wraps modulo 2^width.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// The value of a column (row section only).
    Column(u32),
    /// The total of a fold (release section only): the sum, or the key of the best row, 0 when there is none.
    Total(u32),
    /// The row index of a best row (release section only), [`RowFold::INDEX`]; 0 when there is none.
    Index(u32),
    /// Whether any row was valid for a best row (release section only); a bit.
    Found(u32),
    /// Output `1` of mechanism `0` (release section only).
    Noised(u32, u32),
    /// A constant bit pattern.
    Const(u128),
    /// Bitwise complement.
    Not(NodeId),
    /// Bitwise and; operands of the result's type.
    And(NodeId, NodeId),
    /// Bitwise or.
    Or(NodeId, NodeId),
    /// Bitwise exclusive or.
    Xor(NodeId, NodeId),
    /// Sum modulo 2^width.
    Add(NodeId, NodeId),
    /// Difference modulo 2^width.
    Sub(NodeId, NodeId),
    /// Product modulo 2^width.
    Mul(NodeId, NodeId),
    /// Quotient rounded down, unsigned; division by zero gives all ones.
    Div(NodeId, NodeId),
    /// Integer square root, unsigned, rounded down.
    Isqrt(NodeId),
    /// Strictly less, by the operands' signedness; a bit.
    Lt(NodeId, NodeId),
    /// Equal; a bit.
    Eq(NodeId, NodeId),
    /// The second operand where the first (a bit) is set, else the third.
    Select(NodeId, NodeId, NodeId),
    /// The smaller one.
    Min(NodeId, NodeId),
    /// The larger one.
    Max(NodeId, NodeId),
    /// Number of set bits, in the result's type.
    Popcount(NodeId),
    /// The same number in another type: zero- or sign-extended by the operand's type, or cut.
    Cast(NodeId),
    /// Shifted left by a constant.
    Shl(NodeId, u8),
    /// Shifted right by a constant; arithmetic for signed types.
    Shr(NodeId, u8),
    /// At most the constant, unsigned: the clamp that bounds one row's influence.
    Clamp(NodeId, u128),
    /// Step function over thresholds; see [`Lookup`].
    Lookup(Box<Lookup>),
}

/// `values[w]` of the window of thresholds in `(after, until]`, 0 when no threshold lies in it.
///
/// Thresholds are made non-decreasing by a running maximum, so the meaning does not depend on the owner
/// sorting them. Let i be the first threshold strictly above `after` and m the last one not above `until` (K
/// without `until`). Without `until`, `values` has K entries and the result is `values[i]`. With it, `values`
/// is the upper triangle `(0,0), (0,1) .. (0,K-1), (1,1) ..` and the result is `values[(i, m)]`, 0 when i >
/// m. Whatever the inputs, the result is one of the values or 0, which is what bounds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lookup {
    /// Thresholds count when strictly above this.
    pub after: NodeId,
    /// ... and not above this.
    pub until: Option<NodeId>,
    /// The thresholds, all of the type of `after`.
    pub keys: Vec<NodeId>,
    /// The values, all of the result's type.
    pub values: Vec<NodeId>,
}

impl Lookup {
    /// Index into `values` of the window from threshold `first` to threshold `last` (both inclusive).
    #[must_use]
    pub fn triangle(keys: usize, first: usize, last: usize) -> usize {
        first * keys - first * (first + 1) / 2 + last
    }
}

/// An operation with its result's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OpNode {
    /// What is computed.
    pub op: Op,
    /// The result's type.
    pub ty: ValueType,
}

/// Calls `$visit` with every operand of an operation, borrowed as `$borrow` says.
macro_rules! operands {
    ($op:expr, $visit:expr, $iter:ident, $($borrow:tt)+) => {{
        let mut visit = $visit;
        match $op {
            Op::Column(_) | Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Noised(..) | Op::Const(_) => {}
            Op::Not(a) | Op::Isqrt(a) | Op::Popcount(a) | Op::Cast(a) => visit(a),
            Op::Shl(a, _) | Op::Shr(a, _) | Op::Clamp(a, _) => visit(a),
            Op::And(a, b) | Op::Or(a, b) | Op::Xor(a, b) | Op::Add(a, b) | Op::Sub(a, b) | Op::Mul(a, b)
            | Op::Div(a, b) | Op::Lt(a, b) | Op::Eq(a, b) | Op::Min(a, b) | Op::Max(a, b) => {
                [a, b].into_iter().for_each(visit);
            }
            Op::Select(a, b, c) => [a, b, c].into_iter().for_each(visit),
            Op::Lookup(lookup) => {
                let Lookup { after, until, keys, values } = $($borrow)+ **lookup;
                visit(after);
                until.$iter().chain(keys.$iter()).chain(values.$iter()).for_each(visit);
            }
        }
    }};
}

impl Op {
    /// Whether its value comes from outside the section: columns, totals, noised values.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        matches!(self, Op::Column(_) | Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Noised(..))
    }

    /// Calls `visit` with every operand.
    pub fn operands(&self, mut visit: impl FnMut(NodeId)) {
        operands!(self, |a: &NodeId| visit(*a), iter, &)
    }

    /// Calls `visit` with a place for every operand, in the order of [`Op::operands`].
    pub fn operands_mut(&mut self, visit: impl FnMut(&mut NodeId)) {
        operands!(self, visit, iter_mut, &mut)
    }
}

/// Nodes in evaluation order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeSection {
    /// The nodes; operands come first.
    pub nodes: Vec<OpNode>,
}

impl NodeSection {
    /// A node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &OpNode {
        &self.nodes[id.index()]
    }

    /// Adds a node behind the others.
    pub fn push(&mut self, node: OpNode) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A node's type.
    #[must_use]
    pub fn ty(&self, id: NodeId) -> ValueType {
        self.nodes[id.index()].ty
    }

    /// All ids in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }
}

/// Most joined rows that one row may change.
pub const DEGREE: u32 = 1 << 16;

/// Who holds a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holder {
    /// Everybody.
    Public,
    /// One party.
    Party(PartyId),
    /// Every row's value is the exclusive or of what the parties enter: a provider enters the rows that are
    /// its own, the others enter zero.
    Shared,
}

impl Holder {
    /// The one party that holds it.
    #[must_use]
    pub fn only(self) -> Option<PartyId> {
        if let Self::Party(party) = self { Some(party) } else { None }
    }

    /// Whether `party` enters values for it.
    #[must_use]
    pub fn held_by(self, party: PartyId) -> bool {
        self.only().is_none_or(|p| p == party)
    }
}

impl From<PartyId> for Holder {
    fn from(party: PartyId) -> Self {
        Self::Party(party)
    }
}

impl From<Option<PartyId>> for Holder {
    /// `None` is everybody.
    fn from(party: Option<PartyId>) -> Self {
        party.map_or(Self::Public, Self::Party)
    }
}

/// Where a column's values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The holder's data.
    Data {
        /// What it is in a row that its holder does not have. Of a public or shared column it says nothing.
        absent: u128,
    },
    /// The match. A bit: whether its holder has the row; of a shared column, set in no row that a party does
    /// not have.
    Present,
    /// The holder's data. A bit: whether the cell of another column of its own is not missing; 0 in a row
    /// that the holder does not have.
    Known(u32),
}

impl ColumnSource {
    /// Data whose absent rows hold zero.
    pub const DATA: Self = Self::Data { absent: 0 };
}

/// What the cells of a column say.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CellForm {
    /// What a cell is.
    pub kind: CellKind,
    /// What numbers are counted in, for readers; nothing where the text does not say.
    pub unit: String,
    /// Whether a cell may be missing: it holds 0 then, and the bit of [`RowColumn::known`] is 0.
    pub missing: bool,
}

/// What one cell of a column is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellKind {
    /// A number, in whole parts of so many to one, 1 to [`CellKind::SCALE`].
    Number(u32),
    /// One of these, by its place from 1.
    Label(Vec<String>),
    /// A day, as days after 1970-01-01.
    Date,
}

impl CellKind {
    /// Most parts of one.
    pub const SCALE: u32 = 1_000_000_000;
    /// Most labels of a column.
    pub const LABELS: usize = 1024;
}

impl Default for CellKind {
    fn default() -> Self {
        Self::Number(1)
    }
}

impl CellForm {
    /// Parts of one that a number is counted in.
    #[must_use]
    pub fn scale(&self) -> u32 {
        if let CellKind::Number(scale) = self.kind { scale } else { 1 }
    }

    /// The labels, of a column that has some.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        if let CellKind::Label(labels) = &self.kind { labels } else { &[] }
    }
}

/// A column of the row section: one value per row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowColumn {
    /// Name, unique in the program.
    pub name: String,
    /// Type.
    pub ty: ValueType,
    /// Who holds it.
    pub holder: Holder,
    /// Where its values come from.
    pub source: ColumnSource,
    /// What its cells say.
    pub cells: CellForm,
}

impl RowColumn {
    /// Whether the cell of a column of that name and number is not missing: what `known COLUMN` reads. It has
    /// a name that no text can give to a column.
    #[must_use]
    pub fn known(of: u32, name: &str, holder: Holder) -> Self {
        let (name, source) = (format!("known {name}"), ColumnSource::Known(of));
        Self { name, ty: ValueType::BIT, holder, source, cells: CellForm::default() }
    }

    /// Whether a party has the row: what `present PARTY` reads. It has a name that no text can give to a
    /// column.
    #[must_use]
    pub fn present(party: PartyId, name: &str) -> Self {
        let name = format!("present {name}");
        let (holder, source) = (Holder::Party(party), ColumnSource::Present);
        Self { name, ty: ValueType::BIT, holder, source, cells: CellForm::default() }
    }

    /// Whose data it depends on, among so many parties.
    #[must_use]
    pub fn owners(&self, parties: usize) -> crate::Owners {
        match self.holder {
            Holder::Public => crate::Owners::PUBLIC,
            Holder::Party(party) => crate::Owners::one(party),
            Holder::Shared => crate::Owners::all(parties),
        }
    }

    /// Whether no line of a text declares it: that of `present PARTY`, which no party's data feed, or of
    /// `known COLUMN`.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.is_presence() || matches!(self.source, ColumnSource::Known(_))
    }

    /// Whether it is the one of `present PARTY`, which the match feeds.
    #[must_use]
    pub fn is_presence(&self) -> bool {
        self.source == ColumnSource::Present && self.holder.only().is_some()
    }

    /// Its value where `party` does not have the row, if that says what it is.
    #[must_use]
    pub fn without(&self, party: PartyId) -> Option<u128> {
        match (self.source, self.holder) {
            (ColumnSource::Data { absent }, Holder::Party(holder)) => (holder == party).then_some(absent),
            (ColumnSource::Present | ColumnSource::Known(_), Holder::Party(holder)) => {
                (holder == party).then_some(0)
            }
            (ColumnSource::Present, Holder::Shared) => Some(0),
            _ => None,
        }
    }
}

/// Which rows a program meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowSet {
    /// Those of any party, and made-up ones: a party need not have a row.
    Any,
    /// Those that every party has, by what the parties agreed on beforehand: no row is absent anywhere.
    Aligned,
}

/// Which row is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOrder {
    /// The smallest key.
    Least,
    /// The largest key.
    Greatest,
}

/// An associative fold over all rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowFold {
    /// The sum modulo 2^width of the fold's type; `verify` proves that it cannot wrap.
    Sum {
        /// Row node to sum.
        value: NodeId,
        /// Type of the sum.
        ty: ValueType,
    },
    /// The valid row with the least or greatest key; of equal keys the row with the smallest index. Its total
    /// is the key, the index and whether there was a valid row at all, all zero when there was none.
    Best {
        /// Which key wins.
        order: RowOrder,
        /// Row node of the key; unsigned, at most [`RowFold::KEY_BITS`] wide.
        key: NodeId,
        /// Row node, a bit: which rows may win.
        valid: NodeId,
        /// Type of the key.
        ty: ValueType,
    },
    /// A bit of every row, kept apart for a [`List`].
    Collect {
        /// Row node, a bit.
        value: NodeId,
    },
}

impl RowFold {
    /// Type of a row index.
    pub const INDEX: ValueType = ValueType::u(32);
    /// Widest key of a best row: with its index and the bit that it was found it is one word of 128 bits.
    pub const KEY_BITS: u8 = 95;

    /// The type of [`Op::Total`]; of a `Collect`, that of one entry.
    #[must_use]
    pub fn ty(&self) -> ValueType {
        match self {
            Self::Sum { ty, .. } | Self::Best { ty, .. } => *ty,
            Self::Collect { .. } => ValueType::BIT,
        }
    }

    /// The row node that is summed, compared or collected.
    #[must_use]
    pub fn value(&self) -> NodeId {
        match self {
            Self::Sum { value, .. } | Self::Collect { value } => *value,
            Self::Best { key, .. } => *key,
        }
    }

    /// Bits of the word that leaves a unit of rows: for a best row key, index and found bit, from the least
    /// significant.
    #[must_use]
    pub fn word_bits(&self) -> u8 {
        let extra = if matches!(self, Self::Best { .. }) { Self::INDEX.width + 1 } else { 0 };
        self.ty().width + extra
    }

    /// The bits of [`RowFold::word_bits`].
    #[must_use]
    pub fn word_mask(&self) -> u128 {
        u128::MAX >> (128 - u32::from(self.word_bits()))
    }

    /// The row node that decides whether a row counts: where it is 0 the fold is as if the row were not
    /// there.
    #[must_use]
    pub fn decider(&self) -> NodeId {
        match self {
            Self::Sum { value, .. } | Self::Collect { value } => *value,
            Self::Best { valid, .. } => *valid,
        }
    }

    /// The row nodes that are folded.
    pub fn values(&self) -> impl Iterator<Item = NodeId> + use<> {
        let valid = if let Self::Best { valid, .. } = self { Some(*valid) } else { None };
        [Some(self.value()), valid].into_iter().flatten()
    }
}

/// A built-in way to make a value noised. Sensitivity and sigma are derived by `verify`, never stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseMechanism {
    /// The viewer whose view this noise makes private.
    pub to: Viewer,
    /// Share of zero-concentrated differential privacy spent on it.
    pub rho: Rational,
    /// What is noised.
    pub kind: MechanismKind,
}

/// The built-in mechanisms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MechanismKind {
    /// One total per disjoint cell, each plus a discrete Gaussian.
    Gaussian(Vec<u32>),
    /// n, S and Q of every cell by [`release::joint`]: rows, the sum and the sum of squares of what each
    /// adds.
    Joint {
        /// What is hidden; it says which combinations of the three are released.
        change: Change,
        /// R: the most that a row adds to S.
        clamp: u128,
        /// Folds n, S, Q of each cell.
        cells: Vec<[u32; 3]>,
    },
    /// Difference of two arms' means with a measure of its uncertainty, in fixed point (`release.md`).
    Difference {
        /// Which uncertainty is released, and how it is calibrated.
        statistic: DifferenceStatistic,
        /// Folds n, S, Q of the test arm.
        test: [u32; 3],
        /// Folds n, S, Q of the control arm.
        control: [u32; 3],
    },
}

impl MechanismKind {
    /// The folds that it noises: of a difference those of the test arm, then those of the control arm.
    #[must_use]
    pub fn folds(&self) -> Vec<u32> {
        match self {
            Self::Gaussian(folds) => folds.clone(),
            Self::Joint { cells, .. } => cells.concat(),
            Self::Difference { test, control, .. } => [*test, *control].concat(),
        }
    }
}

/// What the `Difference` mechanism releases beside the difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DifferenceStatistic {
    /// The squared standard error: no square root in the circuit.
    Variance,
    /// The standard error with the corrected sensitivity.
    Algorithm1,
    /// The standard error exactly as printed in the paper, for reproduction.
    Algorithm1AsPublished,
}

impl MechanismKind {
    /// Number of noised values it yields.
    #[must_use]
    pub fn outputs(&self) -> usize {
        match self {
            Self::Gaussian(folds) => folds.len(),
            Self::Joint { change, clamp, cells } => cells.len() * change.combinations(*clamp).len(),
            Self::Difference { .. } => 2,
        }
    }

    /// Of an output of a joint mechanism: the folds of its cell, and which combination of them it is.
    #[must_use]
    pub fn combination(&self, output: u32) -> Option<(Combination, [u32; 3])> {
        let Self::Joint { change, clamp, cells } = self else { return None };
        let each = change.combinations(*clamp);
        let cell = cells.get(output as usize / each.len())?;
        Some((each[output as usize % each.len()], *cell))
    }
}

/// A value revealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputValue {
    /// Label shown to the user.
    pub label: String,
    /// Who learns it.
    pub to: Viewer,
    /// Release node.
    pub value: NodeId,
}

/// One bit per row revealed to one party: which rows matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List {
    /// Label shown to the user.
    pub label: String,
    /// Who learns it.
    pub to: PartyId,
    /// A `Collect` fold.
    pub fold: u32,
}

/// How the totals of a program leave its units of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Additive shares: two parties and sums only.
    Additive,
    /// Exclusive-or shares.
    Boolean,
}

/// What kind of guarantee the outputs carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Every output depends on its viewer's data alone or is noised for that viewer.
    Dp,
    /// Outputs are exact; each owner's local policy must allow it.
    Exact,
}

/// A program: row, combine, release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name.
    pub name: String,
    /// Guarantee.
    pub class: Class,
    /// Which rows it meets.
    pub rows: RowSet,
    /// Names of the parties, in order.
    pub parties: Vec<String>,
    /// By party: how many rows of the joined table one of its own rows can change, 1 to [`DEGREE`]. It is 1
    /// unless a row may be joined to several others.
    pub degrees: Vec<u32>,
    /// By party: how many of its own rows one line of its data can change, 1 to [`DEGREE`]: sums of its
    /// columns alone move by so many. It is 1 unless lines that share identifiers are settled among
    /// themselves.
    pub alone: Vec<u32>,
    /// Columns of the row section.
    pub columns: Vec<RowColumn>,
    /// What is computed for one row.
    pub row: NodeSection,
    /// How rows combine.
    pub folds: Vec<RowFold>,
    /// How totals become noised.
    pub mechanisms: Vec<NoiseMechanism>,
    /// Scalar program on totals and noised values.
    pub release: NodeSection,
    /// What is revealed, in order.
    pub outputs: Vec<OutputValue>,
    /// What its viewers compute from noised sums among them.
    pub derived: Vec<DerivedOutput>,
    /// Lists revealed after them.
    pub lists: Vec<List>,
    /// What its text calls things.
    pub names: ValueNames,
}

impl Program {
    /// Without anything but parties.
    pub(crate) fn empty(name: &str, class: Class, parties: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            class,
            rows: RowSet::Any,
            degrees: vec![1; parties.len()],
            alone: vec![1; parties.len()],
            parties,
            columns: Vec::new(),
            row: NodeSection::default(),
            folds: Vec::new(),
            mechanisms: Vec::new(),
            release: NodeSection::default(),
            outputs: Vec::new(),
            derived: Vec::new(),
            lists: Vec::new(),
            names: ValueNames::default(),
        }
    }

    /// The canonical hash: BLAKE3 of the canonical text.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        *blake3::hash(self.to_text().as_bytes()).as_bytes()
    }

    /// How totals leave units of rows.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        let sums = self.folds.iter().all(|f| matches!(f, RowFold::Sum { .. }));
        if self.parties.len() == 2 && sums { Sharing::Additive } else { Sharing::Boolean }
    }

    /// Positions in `outputs` of what is revealed to exactly this viewer.
    pub fn outputs_to(&self, viewer: Viewer) -> impl Iterator<Item = usize> {
        self.outputs.iter().enumerate().filter(move |(_, o)| o.to == viewer).map(|(i, _)| i)
    }

    /// Mechanisms of which nothing reaches an output: their noise is paid for, and nobody sees it.
    #[must_use]
    pub fn unrevealed(&self) -> Vec<u32> {
        let nodes = &self.release.nodes;
        let mut reached = vec![false; nodes.len()];
        self.outputs.iter().for_each(|output| reached[output.value.index()] = true);
        // Operands stand before what is computed of them.
        for (i, node) in nodes.iter().enumerate().rev() {
            if reached[i] {
                node.op.operands(|operand| reached[operand.index()] = true);
            }
        }
        let seen = nodes.iter().zip(reached).filter(|(_, reached)| *reached);
        let seen = seen.filter_map(|(node, _)| match node.op {
            Op::Noised(mechanism, _) => Some(mechanism),
            _ => None,
        });
        let seen: BTreeSet<u32> = seen.collect();
        (0..self.mechanisms.len() as u32).filter(|mechanism| !seen.contains(mechanism)).collect()
    }

    /// Everybody to whom a release may go: the parties in order, and the public.
    pub fn viewers(&self) -> impl Iterator<Item = Viewer> + use<> {
        (0..self.parties.len() as u8).map(|party| PartyId(party).into()).chain([Viewer::Public])
    }
}
