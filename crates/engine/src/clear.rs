//! The clear engine: one process, all columns, no protection. It defines what a program means; tests and dry runs use it.

use crate::{Ceremony, Engine, Rows, Share, Shares};
use base::{Cost, Error};
use net::Session;
use program::circuit::Wire;
use program::eval::{Values, closure};
use program::lower::{ReleasePlan, WordKind};
use program::{Op, Program};

/// Rows evaluated at once.
const BATCH: u64 = 4096;

/// The clear engine.
#[derive(Default)]
pub struct Clear;

impl Engine for Clear {
    fn name(&self) -> &'static str {
        "clear"
    }

    fn price_rows(&self, program: &Program, _: u64) -> Cost {
        Cost::zero(program.parties.len())
    }

    fn rows(&mut self, program: &Program, rows: &mut dyn Rows, _: &mut Session) -> Result<Shares, Error> {
        let wanted = closure(&program.row, program.folds.iter().map(|f| f.value()));
        let mut totals = vec![0u128; program.folds.len()];
        let mut values = Values::default();
        let mut from = 0;
        while from < rows.len() {
            let lanes = BATCH.min(rows.len() - from);
            values.evaluate(&program.row, &wanted, lanes as usize, &mut |op, out| match op {
                Op::Column(column) => rows.read(*column, from, out),
                _ => Err(Error::misuse("a row section has columns only")),
            })?;
            for (total, fold) in totals.iter_mut().zip(&program.folds) {
                let ty = program.row.ty(fold.value());
                let mut numbers = values.get(fold.value()).iter().map(|v| ty.to_signed(*v) as u128);
                *total = numbers.by_ref().fold(*total, u128::wrapping_add) & fold.ty().mask();
            }
            from += lanes;
        }
        Ok(Shares::new(totals.into_iter().map(Share::Known).collect()))
    }

    fn price_release(&self, _: &ReleasePlan, _: usize) -> Cost {
        Cost::zero(2)
    }

    /// Holds both parties' roles: the ceremony draws, chooses and checks here.
    fn release(
        &mut self,
        plan: &ReleasePlan,
        totals: &Shares,
        ceremony: &mut dyn Ceremony,
        session: &mut Session,
    ) -> Result<Vec<u128>, Error> {
        let candidates = ceremony.draw(session)?;
        let chosen = ceremony.choose(session)?;
        let opened: Vec<_> =
            (0..candidates.len()).filter(|j| *j != chosen).map(|j| candidates[j].clone()).collect();
        ceremony.check(&opened, session)?;
        let mut noises = candidates[chosen].iter();
        let mut words = Vec::with_capacity(plan.words.len());
        for word in &plan.words {
            words.push(match word.kind {
                WordKind::Noise(..) => *noises.next().ok_or_else(|| Error::misuse("too few noises"))? as u128,
                // In one process the whole total is one party's "share" and the others hold zero.
                WordKind::Share(fold) | WordKind::Alone(fold) => match totals.folds()[fold as usize] {
                    Share::Known(total) if word.kind == WordKind::Alone(fold) || word.owner.0 == 0 => total,
                    Share::Known(_) => 0,
                    _ => return Err(Error::misuse("the clear engine needs whole totals")),
                },
            });
        }
        let bits = plan.circuit.evaluate(|input| words[input.word as usize] >> input.bit & 1 == 1);
        debug_assert!(matches!(plan.circuit.wires[0], Wire::False));
        let value = |lits: &[program::circuit::Lit]| {
            let bit = |l: &program::circuit::Lit| u128::from(bits[l.wire()] ^ l.inverted());
            lits.iter().enumerate().fold(0, |v, (i, l)| v | bit(l) << i)
        };
        Ok(plan.outputs.iter().map(|(_, lits)| value(lits)).collect())
    }
}
