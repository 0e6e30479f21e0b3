//! What a party does with its own rows before they are matched: it computes its entries in the clear, and the
//! totals that it needs nobody for.

use crate::{ClearTotal, Share};
use base::{Error, PartyId};
use program::ShardRows;
use program::eval::{NodeValues, closure};
use program::lower::JoinedPlan;
use program::{Op, RowFold};

/// Rows evaluated at once where totals are taken.
const BATCH: u64 = 4096;

/// One party's entries of a batch of its own rows.
pub struct Entries<'a> {
    plan: &'a JoinedPlan,
    wanted: Vec<bool>,
    values: NodeValues,
}

impl<'a> Entries<'a> {
    /// For these entries: one slot's of a [`program::lower::RowPayload`], or all of a party
    /// ([`JoinedPlan::own`]).
    #[must_use]
    pub fn of(plan: &'a JoinedPlan, entries: &[usize]) -> Self {
        let nodes = entries.iter().map(|entry| plan.entries[*entry].node);
        Self { plan, wanted: closure(&plan.program.row, nodes), values: NodeValues::default() }
    }

    /// Computes the entries of rows `from .. from + count` of `rows`, whose columns are those of the plan's
    /// program.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn load(&mut self, rows: &mut dyn ShardRows, from: u64, count: usize) -> Result<(), Error> {
        self.values.evaluate(&self.plan.program.row, &self.wanted, count, &mut |op, out| match op {
            Op::Column(column) => rows.read(*column, from, out),
            _ => Err(Error::misuse("a row section has columns only")),
        })
    }

    /// What is entered for an entry, row by row: bits, or numbers in its ring.
    pub fn get(&self, entry: usize) -> impl Iterator<Item = u128> + use<'_> {
        let values = self.values.get(self.plan.entries[entry].node);
        values.iter().map(move |pattern| self.plan.entered(entry, *pattern))
    }
}

/// The totals that `party` computes alone from all its rows, as ([`fold`](program::Program::folds), total).
///
/// # Errors
/// Those of the rows.
pub fn alone(plan: &JoinedPlan, party: PartyId, rows: &mut dyn ShardRows) -> Result<Vec<(u32, u128)>, Error> {
    let folds: Vec<(u32, &RowFold)> =
        plan.alone(party).map(|fold| (fold, &plan.program.folds[fold as usize])).collect();
    let section = &plan.program.row;
    let wanted = closure(section, folds.iter().map(|(_, fold)| fold.value()));
    let mut totals: Vec<ClearTotal> = folds.iter().map(|(_, fold)| ClearTotal::new(fold)).collect();
    let mut values = NodeValues::default();
    for from in (0..rows.len()).step_by(BATCH as usize) {
        let lanes = BATCH.min(rows.len() - from) as usize;
        values.evaluate(section, &wanted, lanes, &mut |op, out| match op {
            Op::Column(column) => rows.read(*column, from, out),
            _ => Err(Error::misuse("a row section has columns only")),
        })?;
        totals.iter_mut().zip(&folds).for_each(|(total, (_, fold))| total.fold(fold, section, &values, from));
    }
    let known = |(total, (index, fold)): (ClearTotal, &(u32, &RowFold))| match total.share(fold) {
        Share::Known(total) => Ok((*index, total)),
        _ => Err(Error::misuse("a sum has one total")),
    };
    totals.into_iter().zip(&folds).map(known).collect()
}
