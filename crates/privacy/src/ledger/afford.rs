//! Whether a debit may be made: the budget of each viewer, its bound within a period, the deltas, and the
//! total over all.

use super::{Debit, Ledger, PUBLIC, VOIDED, file, holding, lineages, moment, now, rational_of, reads, spent};
use base::Error;
use num_traits::Signed;
use release::Rational;
use release::rational::{shown, small};
use rusqlite::{Connection, params};
use std::path::Path;
use study::party::Period;

/// Whether all bounds allow a debit.
pub(super) fn afford(connection: &Connection, path: &Path, debit: &Debit) -> Result<(), Error> {
    if !debit.protects {
        return Ok(());
    }
    readers(connection, path, debit)?
        .iter()
        .try_for_each(|viewer| afford_viewer(connection, path, debit, viewer))?;
    afford_total(connection, path, debit)
}

/// Who can read what a debit is for: those it names, and then, where anybody may, every other viewer of the
/// lineage.
pub(super) fn readers(connection: &Connection, path: &Path, debit: &Debit) -> Result<Vec<String>, Error> {
    let mut readers: Vec<String> = debit.viewer_key.split(' ').map(str::to_owned).collect();
    if readers.iter().any(|reader| reader == PUBLIC) {
        let all =
            lineages::viewers(connection, &debit.lineage).map_err(|e| file::explain(path, "read", &e))?;
        let others: Vec<String> = all.into_iter().filter(|viewer| !readers.contains(viewer)).collect();
        readers.extend(others);
    }
    Ok(readers)
}

/// Whether what all viewers learn together stays within its bound; what several see is counted once.
pub(super) fn afford_total(connection: &Connection, path: &Path, debit: &Debit) -> Result<(), Error> {
    let Some(most) = &debit.total else { return Ok(()) };
    let all =
        lineages::spent_by_all(connection, &debit.lineage).map_err(|e| file::explain(path, "read", &e))?;
    if &all + &debit.rho > *most {
        return Err(Error::refused(format!(
            "policy.total: {} of {} spent on lineage {} by all viewers together; this release to viewer {} \
             needs {}: agree on less rho, or raise policy.total, which bounds what viewers learn together",
            shown(&all),
            shown(most),
            debit.lineage,
            debit.viewer_key,
            shown(&debit.rho)
        )));
    }
    Ok(())
}

/// Whether one of those who see a release may.
pub(super) fn afford_viewer(
    connection: &Connection,
    path: &Path,
    debit: &Debit,
    viewer: &str,
) -> Result<(), Error> {
    let explain = |e: rusqlite::Error| file::explain(path, "read", &e);
    let total = |what: &str| spent(connection, what, &debit.lineage, viewer).map_err(explain);
    let (rho, delta) = (total("rho")?, total("delta")?);
    if &rho + &debit.rho > debit.budget {
        return Err(Error::refused(format!(
            "budget: {} of {} spent on lineage {} by viewer {viewer}; this release needs {}: {MORE_BUDGET}",
            shown(&rho),
            shown(&debit.budget),
            debit.lineage,
            shown(&debit.rho)
        )));
    }
    if let Some(period) = &debit.period {
        afford_period(connection, path, (&debit.lineage, viewer), &debit.rho, period)?;
    }
    if debit.delta.is_positive() && &delta + &debit.delta > debit.most_delta {
        return Err(Error::refused(format!(
            "delta: {} of {} spent on lineage {} by viewer {viewer}; this match needs {}: raise \
             policy.delta, or agree on a smaller delta of match.dummies",
            small(&delta),
            small(&debit.most_delta),
            debit.lineage,
            small(&debit.delta)
        )));
    }
    let tau = holding::spent_tau(connection, &debit.lineage, viewer).map_err(explain)? + &debit.tau;
    if debit.tau.is_positive() && !crate::bears(&(&rho + &debit.rho), &tau) {
        return Err(Error::refused(format!(
            "delta: with this release the noise of all releases of lineage {} to viewer {viewer} could be \
             told from exact noise by more than 1e-9 of delta at rho {}: agree on less rho",
            debit.lineage,
            shown(&(rho + &debit.rho))
        )));
    }
    Ok(())
}

/// Whether a viewer's bound within a period allows a charge.
fn afford_period(
    connection: &Connection,
    path: &Path,
    (lineage, viewer): (&str, &str),
    rho: &Rational,
    period: &Period,
) -> Result<(), Error> {
    let explain = |e: rusqlite::Error| file::explain(path, "read", &e);
    let within = within(connection, lineage, viewer, period.seconds).map_err(explain)?;
    let spent: Rational = within.iter().map(|(_, rho)| rho).sum();
    if &spent + rho <= period.budget {
        return Ok(());
    }
    let when = match frees(&within, rho, period) {
        Some(at) => format!("it may be made at {} or later", moment(at)),
        None => "it is more than any period allows".to_owned(),
    };
    Err(Error::refused(format!(
        "policy.period_budget: {} of {} spent on lineage {lineage} by viewer {viewer}; this release needs \
         {}: {when}. Wait, agree on less rho, or raise policy.period_budget",
        shown(&spent),
        period.words(),
        shown(rho)
    )))
}

impl Ledger {
    /// What a viewer of a lineage was charged within a period that ends now, exactly.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn spent_within(&self, lineage: &str, viewer: &str, period: &Period) -> Result<Rational, Error> {
        let within = within(&self.connection, lineage, viewer, period.seconds);
        Ok(within.map_err(|e| self.explain("read", &e))?.iter().map(|(_, rho)| rho).sum())
    }

    /// Whether a charge fits a period now; nothing is written.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn check_period(&self, towards: (&str, &str), rho: &Rational, period: &Period) -> Result<(), Error> {
        afford_period(&self.connection, &self.path, towards, rho, period)
    }
}

/// What a viewer was charged within the last `seconds` and dated later than now, if the clock was set back:
/// when and how much, oldest first.
fn within(
    connection: &Connection,
    lineage: &str,
    viewer: &str,
    seconds: u64,
) -> Result<Vec<(i64, Rational)>, rusqlite::Error> {
    let since = now().saturating_sub_unsigned(seconds);
    let sql = format!(
        "SELECT at, rho FROM debits WHERE lineage = ?1 AND {} AND protects = 1 AND {VOIDED} AND at > ?3 \
         ORDER BY at",
        reads(2)
    );
    let mut query = connection.prepare(&sql)?;
    let rows = query
        .query_map(params![lineage, viewer, since], |row| Ok((row.get(0)?, rational_of(row, "rho")?)))?;
    rows.collect()
}

/// When enough of what was charged lies so far back that a charge fits a period; never, if it is more than
/// one allows.
fn frees(within: &[(i64, Rational)], rho: &Rational, period: &Period) -> Option<i64> {
    let mut rest: Rational = within.iter().map(|(_, rho)| rho).sum();
    for (at, charged) in within {
        rest -= charged;
        if &rest + rho <= period.budget {
            return Some(at.saturating_add_unsigned(period.seconds));
        }
    }
    None
}

/// What to do when a budget does not pay.
pub const MORE_BUDGET: &str =
    "agree on less rho, or raise policy.budget, which bounds what this viewer learns of these data in all";
