//! Row and combine among n parties: a circuit over all rows at once, then a tree of merges over lanes.
//!
//! **Functionality.** Every party enters its columns; each gets an exclusive-or share of every fold's word
//! and of every list's bits, or the total itself where it depends on that party's columns alone.
//!
//! **Security model, who learns what.** That of the engine; sizes and the program are public.
//!
//! **Paper and deviations.** Choi et al. evaluate one circuit gate by gate. Here the rows are lanes: one
//! circuit for a row, one for each level of the tree (`program::lower::combine`), each evaluated on all its
//! lanes together. What one party knows alone is computed in the clear; a shared column is a sharing as it is
//! entered.
//!
//! **Cost.** The gates of one row times the rows, and those of the trees by formula
//! (`program::lower::combine`); one round per layer of each circuit; triples for all of it are made together.
//! [`RowTree::quote`] goes through the motions.

use crate::bits::words;
use crate::combine::TreeLanes;
use crate::{GateParty, GateQuote, Layers};
use ::engine::{ClearTotal, PreparedRows, RowInput, Share, Shares, StagePrice};
use base::{Error, PartyId};
use circuits::{InputBit, WireDriver};
use net::Session;
use ot::OtKind;
use program::ShardRows;
use program::eval::{NodeValues, closure};
use program::lower::combine::SelectionCircuit;
use program::lower::{BooleanFold, BooleanPlan, EntryRule, INDEX_WORD, Piece, lower_boolean};
use program::{NodeId, Op, Program};
use std::collections::HashMap;
use std::sync::Arc;
use zeroize::Zeroize;

/// Most bits held at once: rows times live bits of a row, 1 GiB.
pub const ROW_BITS: u64 = 1 << 33;
/// Rows read and evaluated in the clear at once; whole words.
const BATCH: usize = 4096;

/// Rows of a program as gates, made ready.
#[derive(Clone)]
pub(crate) struct GateRows {
    lowered: Arc<LoweredGates>,
    kind: OtKind,
}

/// What does not depend on the OT back end.
struct LoweredGates {
    program: Program,
    plan: BooleanPlan,
    /// The circuit of one row, but for the bits of its number.
    leaf: Arc<Layers>,
}

impl GateRows {
    pub fn new(program: &Program, shape: SelectionCircuit, kind: OtKind) -> Self {
        let plan = lower_boolean(program, shape, 1, EntryRule::Derived);
        let leaf = Arc::new(leaf_layers(&plan));
        Self { lowered: Arc::new(LoweredGates { program: program.clone(), plan, leaf }), kind }
    }

    /// The same over another OT back end.
    pub fn with_kind(&self, kind: OtKind) -> Self {
        Self { lowered: self.lowered.clone(), kind }
    }

    /// Layers with ANDs over so many rows, one after the other.
    pub fn depth(&self, rows: u64) -> u64 {
        self.over(rows).stages.iter().map(|s| s.layers.depth()).sum()
    }

    /// All circuits over so many rows.
    fn over(&self, rows: u64) -> RowTree {
        let LoweredGates { program, plan, leaf } = &*self.lowered;
        let plan = plan.clone().with_rows(rows);
        let parties = program.parties.len();
        if plan.is_alone() {
            return RowTree { plan, stages: Vec::new(), parties };
        }
        let shares = |piece: &Piece| Arc::new(Layers::with_shared(&piece.circuit, &piece.roots, &|_| true));
        let layers = if plan.takes_index() { Arc::new(leaf_layers(&plan)) } else { leaf.clone() };
        let mut stages = vec![Stage { layers, lanes: rows }];
        for level in 0..plan.levels() {
            stages.push(Stage { layers: shares(&plan.merge(level)), lanes: plan.lanes(level) / 2 });
        }
        stages.push(Stage { layers: shares(&plan.finish()), lanes: 1 });
        RowTree { plan, stages, parties }
    }
}

fn leaf_layers(plan: &BooleanPlan) -> Layers {
    Layers::with_shared(&plan.leaf.circuit, &plan.leaf.roots, &|input| plan.is_shared(input))
}

impl PreparedRows for GateRows {
    fn price(&self, rows: u64) -> StagePrice {
        let tree = self.over(rows);
        let free = || StagePrice::free(tree.parties);
        tree.quote(self.kind).map_or_else(free, |quote| quote.price())
    }

    /// Exclusive-or shares of totals do not add up: all rows of a program are one unit.
    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        let (program, rows) = (&self.lowered.program, rows.owned()?);
        let tree = self.over(rows.len());
        tree.check(program)?;
        let own = Own::read(&tree.plan, program, rows, session.me())?;
        let (mut trees, mut lists) = (Vec::new(), Vec::new());
        if !tree.stages.is_empty() {
            let ands = tree.and_gates();
            let mut party = GateParty::for_ands(session, self.kind, ands)?;
            party.reserve(ands);
            (trees, lists) = combine(&tree, &mut party, &own, session)?;
        }
        Ok(own.shares(&tree.plan, program, trees, lists))
    }
}

/// A circuit made ready, and on how many lanes it runs.
struct Stage {
    layers: Arc<Layers>,
    lanes: u64,
}

/// A row program over a number of rows.
struct RowTree {
    plan: BooleanPlan,
    /// The row circuit, a merge per level, the finish; nothing where every party works alone.
    stages: Vec<Stage>,
    parties: usize,
}

impl RowTree {
    fn and_gates(&self) -> u64 {
        self.stages.iter().map(|s| s.layers.and_gates().saturating_mul(s.lanes)).sum()
    }

    fn quote(&self, kind: OtKind) -> Option<GateQuote> {
        if self.stages.is_empty() {
            return None;
        }
        let ands = self.and_gates();
        let mut quote = GateQuote::for_ands(self.parties, kind, ands);
        quote.reserve(ands);
        self.stages.iter().for_each(|s| quote.eval(&s.layers, s.lanes as usize));
        Some(quote)
    }

    /// Refuses what would not fit memory, before anything is sent.
    fn check(&self, program: &Program) -> Result<(), Error> {
        let inputs =
            self.plan.leaf.circuit.wires.iter().filter(|w| matches!(w, WireDriver::Input(_))).count();
        let widest = self.stages.iter().map(|s| s.layers.slots()).max().unwrap_or(0);
        let live = (inputs + widest + self.plan.leaf.roots.len()) as u64;
        let most = (ROW_BITS / live.max(1)).min(crate::LANES as u64);
        if self.stages.is_empty() || self.plan.rows <= most {
            return Ok(());
        }
        Err(Error::input(format!(
            "{} rows of the program {} are too many for one computation of gmw: a row holds {live} bits at \
             once, and at most {most} rows of it fit. Split the data into several studies",
            self.plan.rows, program.name
        )))
    }
}

/// The word of every tree, and the bits of every list.
type Combined = (Vec<u128>, Vec<Vec<u64>>);

fn combine(
    tree: &RowTree,
    party: &mut GateParty,
    own: &Own,
    session: &mut Session,
) -> Result<Combined, Error> {
    let plan = &tree.plan;
    let rows = plan.rows;
    let [leaf, merges @ .., finish] = &tree.stages[..] else { return Ok((Vec::new(), Vec::new())) };
    let mut known = |input: &InputBit, place: &mut [u64]| own.fill(input, rows, place);
    let mut roots = party.eval(&leaf.layers, rows as usize, &mut known, session)?.into_iter();
    let mut trees: Vec<TreeLanes> = plan
        .trees()
        .map(|c| TreeLanes::new(roots.by_ref().take(c.lane_bits(0)).collect(), rows as usize))
        .collect();
    let lists = roots.collect();
    for (level, stage) in (0..).zip(merges) {
        let mut known = |input: &InputBit, place: &mut [u64]| {
            trees[input.word as usize / 2].side(input.word % 2, input.bit.into(), place);
            Ok(())
        };
        let mut merged = party.eval(&stage.layers, stage.lanes as usize, &mut known, session)?.into_iter();
        for (tree, combine) in trees.iter_mut().zip(plan.trees()) {
            let lanes = merged.by_ref().take(combine.lane_bits(level + 1)).collect();
            *tree = tree.next(combine, level, lanes);
        }
        session.report(rows - plan.lanes(level + 1), rows);
    }
    let mut known = |input: &InputBit, place: &mut [u64]| {
        place[0] = trees[input.word as usize].only(input.bit.into());
        Ok(())
    };
    let mut words = party.eval(&finish.layers, 1, &mut known, session)?.into_iter();
    let word = |width: usize| {
        words.by_ref().take(width).enumerate().fold(0, |word, (i, bit)| word | u128::from(bit[0]) << i)
    };
    Ok((plan.trees().map(|c| c.word_bits()).map(word).collect(), lists))
}

/// What this party enters, packed, and the folds that it computes alone.
struct Own {
    /// By row node: `[bit][row / 64]`.
    inputs: HashMap<u32, Vec<Vec<u64>>>,
    totals: Vec<Option<ClearTotal>>,
}

impl Own {
    fn read(
        plan: &BooleanPlan,
        program: &Program,
        rows: &mut dyn ShardRows,
        me: PartyId,
    ) -> Result<Self, Error> {
        let mine = |owner: Option<PartyId>| owner.is_none_or(|o| o == me);
        let bits = plan.input_bits(&|input| plan.is_shared(input) || mine(input.owner));
        let inputs = bits.into_iter().map(|(word, bits)| (word, vec![Vec::new(); bits])).collect();
        let total = |(plan, fold): (&BooleanFold, _)| match plan {
            BooleanFold::Alone(owner) if mine(*owner) => Some(ClearTotal::new(fold)),
            _ => None,
        };
        let totals = plan.folds.iter().zip(&program.folds).map(total).collect();
        let mut own = Self { inputs, totals };
        own.evaluate(plan, program, rows, me)?;
        Ok(own)
    }

    fn evaluate(
        &mut self,
        plan: &BooleanPlan,
        program: &Program,
        rows: &mut dyn ShardRows,
        me: PartyId,
    ) -> Result<(), Error> {
        let wanted = closure(&program.row, plan.clear_roots(program, me));
        let mut values = NodeValues::default();
        for from in (0..plan.rows).step_by(BATCH) {
            let lanes = (plan.rows - from).min(BATCH as u64) as usize;
            values.evaluate(&program.row, &wanted, lanes, &mut |op, out| match op {
                Op::Column(column) => rows.read(*column, from, out),
                _ => Err(Error::misuse("a row section has columns only")),
            })?;
            for (word, planes) in &mut self.inputs {
                let values = values.get(NodeId(*word));
                for (bit, plane) in planes.iter_mut().enumerate() {
                    plane.extend(values.chunks(64).map(|chunk| pack(chunk, bit)));
                }
            }
            for (total, fold) in self.totals.iter_mut().zip(&program.folds) {
                if let Some(total) = total {
                    total.fold(fold, &program.row, &values, from);
                }
            }
        }
        Ok(())
    }

    fn fill(&self, input: &InputBit, rows: u64, place: &mut [u64]) -> Result<(), Error> {
        if input.word == INDEX_WORD {
            for row in (0..rows).filter(|row| row >> input.bit & 1 == 1) {
                place[row as usize / 64] |= 1 << (row % 64);
            }
            return Ok(());
        }
        let plane = self.inputs.get(&input.word).and_then(|planes| planes.get(usize::from(input.bit)));
        place.copy_from_slice(plane.ok_or_else(|| Error::misuse("a bit that this party does not know"))?);
        Ok(())
    }

    /// What becomes of every fold.
    fn shares(
        mut self,
        plan: &BooleanPlan,
        program: &Program,
        trees: Vec<u128>,
        lists: Vec<Vec<u64>>,
    ) -> Shares {
        let (mut trees, mut lists) = (trees.into_iter(), lists.into_iter());
        let own = self.totals.drain(..).collect::<Vec<_>>();
        let share =
            |((plan, fold), total): ((&BooleanFold, &program::RowFold), Option<ClearTotal>)| match plan {
                BooleanFold::Alone(_) => total.map_or(Share::Absent, |total| total.share(fold)),
                // Over no rows nothing was combined: shares of zero.
                BooleanFold::Tree(_) => Share::Boolean(trees.next().unwrap_or(0)),
                BooleanFold::Rows => Share::Rows(lists.next().unwrap_or_default()),
                BooleanFold::Numbers(_) => unreachable!("numbers are summed where owners derive nothing"),
            };
        Shares::new(plan.folds.iter().zip(&program.folds).zip(own).map(share).collect())
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.inputs.values_mut().for_each(Zeroize::zeroize);
    }
}

/// One bit of up to 64 values.
fn pack(values: &[u128], bit: usize) -> u64 {
    values.iter().enumerate().fold(0, |word, (i, value)| word | ((value >> bit) as u64 & 1) << i)
}

/// Words of a list of `rows` bits.
pub(crate) fn list_words(rows: u64) -> usize {
    words(rows as usize)
}
