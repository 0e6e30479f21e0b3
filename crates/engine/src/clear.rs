//! The clear engine: one process, all columns, no protection. It defines what a program means; tests and dry
//! runs use it.

use crate::{
    DrawnNoise, Engine, Entered, OutputShares, PreparedLists, PreparedRelease, PreparedRows, RowInput,
    RowSource, Share, Shares, StagePrice,
};
use base::{Error, PartyId};
use circuits::{Lit, WireDriver};
use net::Session;
use program::eval::{NodeValues, closure};
use program::lower::ReleasePlan;
use program::{NodeSection, Op, Program, RowFold, RowOrder};
use std::sync::Arc;

/// Rows evaluated at once.
const BATCH: u64 = 4096;

/// The clear engine.
#[derive(Default)]
pub struct Clear;

impl Clear {
    /// Several releases of one plan at once, each of words of its own: the bits of [`ReleasePlan::roots`] of
    /// each.
    ///
    /// # Errors
    /// When a word is not there.
    pub fn releases(plan: &ReleasePlan, entered: &[Entered]) -> Result<Vec<Vec<bool>>, Error> {
        debug_assert!(matches!(plan.circuit.wires[0], WireDriver::False));
        let mut outputs = Vec::with_capacity(entered.len());
        for batch in entered.chunks(64) {
            let words = |one: &Entered| (0..plan.words.len()).map(|word| one.need(word)).collect();
            let words: Vec<Vec<u128>> = batch.iter().map(words).collect::<Result<_, _>>()?;
            let lanes = plan.circuit.evaluate_lanes(|input| {
                let bit = |words: &Vec<u128>| (words[input.word as usize] >> input.bit) as u64 & 1;
                words.iter().enumerate().fold(0, |lanes, (at, words)| lanes | bit(words) << at)
            });
            let bit = |at: usize, root: Lit| lanes[root.wire()] >> at & 1 == 1;
            let one = |at| plan.roots().map(|root| bit(at, root) ^ root.inverted()).collect();
            outputs.extend((0..batch.len()).map(one));
        }
        Ok(outputs)
    }
}

impl Engine for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        source.must_be_owned(self.name())?;
        Ok(Box::new(ClearRows(program.clone())))
    }

    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        Ok(Box::new(ClearRelease(plan.clone())))
    }

    fn lists(&self, program: &Program, viewer: PartyId) -> Result<Box<dyn PreparedLists>, Error> {
        let mine = program.lists.iter().filter(|list| list.to == viewer);
        Ok(Box::new(ClearLists {
            parties: program.parties.len(),
            folds: mine.map(|list| list.fold).collect(),
        }))
    }
}

/// ShardRows of a program, all columns in one process.
struct ClearRows(Program);

impl PreparedRows for ClearRows {
    fn price(&self, _: u64) -> StagePrice {
        StagePrice::free(self.0.parties.len())
    }

    fn run(&self, rows: RowInput<'_>, _: &mut Session) -> Result<Shares, Error> {
        let (program, rows) = (&self.0, rows.owned()?);
        let wanted = closure(&program.row, program.folds.iter().flat_map(RowFold::values));
        let mut totals: Vec<ClearTotal> = program.folds.iter().map(ClearTotal::new).collect();
        let mut values = NodeValues::default();
        let mut from = 0;
        while from < rows.len() {
            let lanes = BATCH.min(rows.len() - from);
            values.evaluate(&program.row, &wanted, lanes as usize, &mut |op, out| match op {
                Op::Column(column) => rows.read(*column, from, out),
                _ => Err(Error::misuse("a row section has columns only")),
            })?;
            totals.iter_mut().zip(&program.folds).for_each(|(t, f)| t.fold(f, &program.row, &values, from));
            from += lanes;
        }
        Ok(Shares::new(totals.into_iter().zip(&program.folds).map(|(t, f)| t.share(f)).collect()))
    }
}

/// A release of all parties' words ([`Entered::whole`]); its share is the outputs.
struct ClearRelease(Arc<ReleasePlan>);

impl PreparedRelease for ClearRelease {
    fn plan(&self) -> &ReleasePlan {
        &self.0
    }

    fn holders(&self) -> &[PartyId] {
        &[PartyId(0)]
    }

    fn price(&self) -> StagePrice {
        StagePrice::free(self.0.parties)
    }

    fn run(&self, entered: &Entered, _: &mut DrawnNoise, _: &mut Session) -> Result<OutputShares, Error> {
        let bits = Clear::releases(&self.0, std::slice::from_ref(entered))?;
        let bits = bits.first().ok_or_else(|| Error::misuse("one release gives one run of outputs"))?;
        Ok(OutputShares::of_bits(bits))
    }
}

/// Lists of one viewer, by fold.
struct ClearLists {
    parties: usize,
    folds: Vec<u32>,
}

impl PreparedLists for ClearLists {
    fn price(&self, _: u64) -> StagePrice {
        StagePrice::free(self.parties)
    }

    fn run(&self, _: u64, totals: &Shares, _: &mut Session) -> Result<Vec<Vec<u64>>, Error> {
        let list = |fold: &u32| match &totals.folds()[*fold as usize] {
            Share::Rows(rows) => Ok(rows.clone()),
            _ => Err(Error::misuse("the clear engine needs whole lists")),
        };
        self.folds.iter().map(list).collect()
    }
}

/// A fold's total in the making, on clear values: what a fold means, and what an engine does where one party
/// knows all.
pub struct ClearTotal(State);

enum State {
    Sum(u128),
    /// Key and row of the best so far.
    Best(Option<(u128, u64)>),
    Rows(Vec<u64>),
}

impl ClearTotal {
    /// Over no rows yet.
    #[must_use]
    pub fn new(fold: &RowFold) -> Self {
        Self(State::new(fold))
    }

    /// Takes in the rows `from ..` of the joined table that `values` holds; `fold` as for
    /// [`ClearTotal::new`].
    pub fn fold(&mut self, fold: &RowFold, row: &NodeSection, values: &NodeValues, from: u64) {
        self.0.fold(fold, row, values, from);
    }

    /// The total as the party that knows it holds it: [`Share::Known`], or [`Share::Rows`] of a list.
    #[must_use]
    pub fn share(self, fold: &RowFold) -> Share {
        self.0.share(fold)
    }
}

impl State {
    fn new(fold: &RowFold) -> Self {
        match fold {
            RowFold::Sum { .. } => Self::Sum(0),
            RowFold::Best { .. } => Self::Best(None),
            RowFold::Collect { .. } => Self::Rows(Vec::new()),
        }
    }

    /// Takes in the rows `from ..` that `values` holds.
    fn fold(&mut self, fold: &RowFold, row: &NodeSection, values: &NodeValues, from: u64) {
        let of = values.get(fold.value());
        match (self, fold) {
            (Self::Sum(total), RowFold::Sum { value, ty }) => {
                let number = |v: &u128| row.ty(*value).to_signed(*v) as u128;
                *total = of.iter().map(number).fold(*total, u128::wrapping_add) & ty.mask();
            }
            (Self::Best(best), RowFold::Best { order, valid, .. }) => {
                let valid = values.get(*valid);
                for (i, key) in of.iter().enumerate().filter(|(i, _)| valid[*i] == 1) {
                    let better = |(held, _): (u128, u64)| match order {
                        RowOrder::Least => *key < held,
                        RowOrder::Greatest => *key > held,
                    };
                    if best.is_none_or(better) {
                        *best = Some((*key, from + i as u64));
                    }
                }
            }
            (Self::Rows(rows), _) => {
                for (i, bit) in of.iter().enumerate() {
                    let at = from as usize + i;
                    rows.resize(at / 64 + 1, 0);
                    rows[at / 64] |= (*bit as u64) << (at % 64);
                }
            }
            _ => unreachable!("a total is made for its fold"),
        }
    }

    fn share(self, fold: &RowFold) -> Share {
        match self {
            Self::Sum(total) => Share::Known(total),
            Self::Rows(rows) => Share::Rows(rows),
            Self::Best(None) => Share::Known(0),
            Self::Best(Some((key, index))) => {
                let found = 1 << (fold.word_bits() - 1);
                Share::Known(key | u128::from(index) << fold.ty().width | found)
            }
        }
    }
}
