//! The row section among n parties whose totals leave as exclusive-or shares: a circuit per row, then a tree
//! of merges ([`super::combine`]), then each fold's word.
//!
//! What one party knows alone enters as its input, whatever it was computed from ([`EntryRule::Derived`]); a
//! total that it knows alone is no gate at all. A shared column is a sharing already: what the parties enter
//! *are* the shares.

use super::bits::SectionGates;
use super::combine::{Combine, SelectionCircuit, lanes, levels};
use super::numbers::{NumberScan, RowNumbers};
use crate::{Holder, NodeFacts, NodeId, Op, Program, RowFold};
use base::PartyId;
use circuits::gadgets::LitWord;
use circuits::{Circuit, CircuitBuilder, InputBit, Lit, WireDriver};
use std::collections::HashMap;

/// The word of a row's own index, where a circuit reads it as an input. Everybody knows it; it enters as the
/// first party's, because in the paper's circuit selecting it is a gate like any other.
pub const INDEX_WORD: u32 = u32::MAX;

/// The row program of n parties for a number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BooleanPlan {
    /// What is done for one row. Its inputs' words are row nodes, or [`INDEX_WORD`]; its roots are the lanes
    /// of all trees, then the bits of all lists, then those of `numbers`.
    pub leaf: Piece,
    /// What is multiplied and summed as numbers.
    pub numbers: RowNumbers,
    /// By fold, what becomes of it.
    pub folds: Vec<BooleanFold>,
    /// Number of rows.
    pub rows: u64,
    /// The leaf without the number of a row.
    row: Piece,
    shared: Vec<bool>,
}

/// What becomes of a fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BooleanFold {
    /// One party knows every row: it folds alone. `None`: everybody does.
    Alone(Option<PartyId>),
    /// Rows are merged.
    Tree(Combine),
    /// One bit of every row is kept.
    Rows,
    /// Numbers are summed: the sum of [`BooleanPlan::numbers`] at this place.
    Numbers(usize),
}

/// A circuit and the literals wanted of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The gates.
    pub circuit: Circuit,
    /// What is wanted.
    pub roots: Vec<Lit>,
}

/// What a party may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRule {
    /// Whatever it can compute alone: fewer gates, and it is trusted to compute it as the program says.
    Derived,
    /// Its columns and nothing else: what depends on them is gates, so that a clamp holds whatever was
    /// entered.
    Columns,
}

/// Lowers the row section for `rows` rows, at most 2^32.
#[must_use]
pub fn lower_boolean(
    program: &Program,
    shape: SelectionCircuit,
    rows: u64,
    inputs: EntryRule,
) -> BooleanPlan {
    super::count();
    let facts = program.row_facts();
    let owners = program.fold_owners();
    let mut bits = SectionGates::new(&program.row);
    let mut leaf = |g: &mut CircuitBuilder, id: NodeId| enter(program, &facts, inputs, g, id);
    let mut numbers = match inputs {
        EntryRule::Derived => NumberScan::default(),
        EntryRule::Columns => NumberScan::new(program, &owners, &mut bits, &mut leaf),
    };
    let (mut lanes, mut kept) = (LitWord::new(), LitWord::new());
    let mut folds = Vec::with_capacity(program.folds.len());
    for (index, fold) in program.folds.iter().enumerate() {
        let owner = owners[index];
        let Some(combine) = Combine::new(program, index as u32, shape, rows) else {
            kept.push(bits.word(fold.value(), &mut leaf)[0]);
            folds.push(BooleanFold::Rows);
            continue;
        };
        if owner.is_public() || owner.only().is_some() {
            folds.push(BooleanFold::Alone(owner.only()));
            continue;
        }
        if let Some(place) = numbers.place(fold, &mut bits, &mut leaf) {
            folds.push(BooleanFold::Numbers(place));
            continue;
        }
        let value = bits.word(fold.value(), &mut leaf);
        let valid = match fold {
            RowFold::Best { valid, .. } => bits.word(*valid, &mut leaf)[0],
            _ => Lit::TRUE,
        };
        lanes.extend(combine.leaf(&mut bits.gates, &value, valid));
        folds.push(BooleanFold::Tree(combine));
    }
    lanes.extend(kept);
    let (numbers, roots) = numbers.finish();
    lanes.extend(roots);
    let shared = program.row.ids().map(|id| is_shared(program, id)).collect();
    let row = Piece { circuit: bits.gates.finish(), roots: lanes };
    BooleanPlan { leaf: row.clone(), numbers, folds, rows, row, shared }.with_rows(rows)
}

fn is_shared(program: &Program, id: NodeId) -> bool {
    matches!(program.row.node(id).op, Op::Column(c) if program.columns[c as usize].holder == Holder::Shared)
}

/// The bits of a node that need no gates: what somebody knows, and shared columns.
fn enter(
    program: &Program,
    facts: &[NodeFacts],
    inputs: EntryRule,
    g: &mut CircuitBuilder,
    id: NodeId,
) -> Option<LitWord> {
    let (owners, node) = (facts[id.index()].owners, program.row.node(id));
    if inputs == EntryRule::Columns && !matches!(node.op, Op::Column(_)) {
        return None;
    }
    let known = owners.is_public() || owners.only().is_some();
    if matches!(node.op, Op::Const(_)) || !(known || is_shared(program, id)) {
        return None;
    }
    let input = |bit| InputBit { owner: owners.only(), word: id.0, bit };
    Some((0..node.ty.width.into()).map(|bit| g.input(input(bit))).collect())
}

impl BooleanPlan {
    /// The same plan over another number of rows. What is done for one row stays, but for the bits of a row's
    /// number, which the paper's shape enters as such.
    #[must_use]
    pub fn with_rows(mut self, rows: u64) -> Self {
        self.rows = rows;
        self.folds.iter_mut().for_each(|fold| {
            if let BooleanFold::Tree(combine) = fold {
                *combine = combine.with_rows(rows);
            }
        });
        if self.takes_index() {
            self.leaf = self.indexed();
        }
        self
    }

    /// Whether the leaf hangs on the number of rows.
    #[must_use]
    pub fn takes_index(&self) -> bool {
        self.trees().any(Combine::takes_index)
    }

    /// The row's circuit with the bits of its number behind the lanes that take them.
    fn indexed(&self) -> Piece {
        let (mut circuit, mut roots) = (self.row.circuit.clone(), LitWord::new());
        let first = circuit.wires.len();
        let input = |bit| WireDriver::Input(InputBit { owner: Some(PartyId(0)), word: INDEX_WORD, bit });
        circuit.wires.extend((0..levels(self.rows) as u16).map(input));
        let index: LitWord = (first..circuit.wires.len()).map(Lit::of).collect();
        let mut row = self.row.roots.iter().copied();
        for combine in self.trees() {
            let number = if combine.takes_index() { &index[..] } else { &[] };
            roots.extend(row.by_ref().take(combine.lane_bits(0) - number.len()));
            roots.extend(number);
        }
        roots.extend(row);
        Piece { circuit, roots }
    }

    /// Whether an input of the row circuit holds exclusive-or shares of all parties.
    #[must_use]
    pub fn is_shared(&self, input: &InputBit) -> bool {
        self.shared.get(input.word as usize).copied().unwrap_or(false)
    }

    /// By word of the row circuit's inputs, how many of its bits are entered, among those that are `mine`.
    /// The number of a row is nobody's.
    #[must_use]
    pub fn input_bits(&self, mine: &dyn Fn(&InputBit) -> bool) -> HashMap<u32, usize> {
        let mut bits: HashMap<u32, usize> = HashMap::new();
        for wire in &self.leaf.circuit.wires {
            if let WireDriver::Input(input) = wire
                && input.word != INDEX_WORD
                && mine(input)
            {
                let width = bits.entry(input.word).or_default();
                *width = (*width).max(usize::from(input.bit) + 1);
            }
        }
        bits
    }

    /// The trees, in order of folds.
    pub fn trees(&self) -> impl Iterator<Item = &Combine> {
        self.folds
            .iter()
            .filter_map(|f| if let BooleanFold::Tree(combine) = f { Some(combine) } else { None })
    }

    /// Whether every fold is one party's own, or there are no rows: nothing is shared.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.rows == 0 || self.folds.iter().all(|f| matches!(f, BooleanFold::Alone(_)))
    }

    /// Row nodes that `party` computes in the clear: its input bits, its shares, and folds of its own.
    #[must_use]
    pub fn clear_roots(&self, program: &Program, party: PartyId) -> Vec<NodeId> {
        let mine = |input: &InputBit| {
            input.word != INDEX_WORD && (self.is_shared(input) || input.owner.is_none_or(|o| o == party))
        };
        let mut roots: Vec<NodeId> = Vec::new();
        for wire in &self.leaf.circuit.wires {
            if let WireDriver::Input(input) = wire
                && mine(input)
            {
                roots.push(NodeId(input.word));
            }
        }
        for (plan, fold) in self.folds.iter().zip(&program.folds) {
            if matches!(plan, BooleanFold::Alone(owner) if owner.is_none_or(|o| o == party)) {
                roots.extend(fold.values());
            }
        }
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// Levels of the trees.
    #[must_use]
    pub fn levels(&self) -> u32 {
        if self.trees().next().is_some() { levels(self.rows) } else { 0 }
    }

    /// Lanes that a level starts with.
    #[must_use]
    pub fn lanes(&self, level: u32) -> u64 {
        lanes(self.rows, level)
    }

    /// Merges the lanes of all trees at a level. Inputs: word 2t is the left lane of tree t, word 2t + 1 the
    /// right one; they are shares.
    #[must_use]
    pub fn merge(&self, level: u32) -> Piece {
        let mut g = CircuitBuilder::default();
        let mut roots = LitWord::new();
        for (tree, combine) in self.trees().enumerate() {
            let width = combine.lane_bits(level);
            let [left, right] = [0, 1].map(|side| enter_shares(&mut g, 2 * tree as u32 + side, width));
            roots.extend(combine.merge(&mut g, level, &left, &right));
        }
        Piece { circuit: g.finish(), roots }
    }

    /// The words of all trees from their last lanes. Inputs: word t is the lane of tree t, as shares.
    #[must_use]
    pub fn finish(&self) -> Piece {
        let mut g = CircuitBuilder::default();
        let mut roots = LitWord::new();
        for (tree, combine) in self.trees().enumerate() {
            let lane = enter_shares(&mut g, tree as u32, combine.lane_bits(combine.levels()));
            roots.extend(combine.finish(&mut g, &lane));
        }
        Piece { circuit: g.finish(), roots }
    }
}

fn enter_shares(g: &mut CircuitBuilder, word: u32, width: usize) -> LitWord {
    (0..width as u16).map(|bit| g.input(InputBit { owner: None, word, bit })).collect()
}
