//! Whether a debit may be made: the budget of each viewer, its bound within a period, the deltas, and the
//! total over all.

use super::{
    Debit, Ledger, PUBLIC, VOIDED, agreed, file, holding, lineages, moment, now, rational_of, reads, spent,
};
use base::{BudgetShortfall, Error};
use num_traits::Signed;
use page::numbers::power;
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
    agreed::names(debit)?;
    readers(connection, path, debit)?
        .iter()
        .try_for_each(|viewer| afford_viewer(connection, path, (debit, ONE), viewer))?;
    let what = format!("{ONE} to viewer {}", debit.viewer_key);
    afford_total(connection, path, (debit, &what))
}

/// A debit by itself, in a refusal.
const ONE: &str = "this release";
/// All debits that a run is about to make.
const ALL: &str = "this run";

/// Whether all bounds allow debits that are about to be made, all together: what is refused now says what
/// they all need, and not what is missing for the first of them.
pub(super) fn afford_all(connection: &Connection, path: &Path, debits: &[&Debit]) -> Result<(), Error> {
    let mut viewers: Vec<String> = Vec::new();
    for debit in debits {
        agreed::names(debit)?;
        let all = readers(connection, path, debit)?;
        viewers.extend(all.into_iter().filter(|viewer| !viewers.contains(viewer)).collect::<Vec<_>>());
    }
    for viewer in viewers {
        let reads = |seen: &str| seen == viewer || seen == PUBLIC;
        let read = debits.iter().filter(|debit| debit.viewer_key.split(' ').any(reads));
        if let Some(all) = together(read) {
            afford_viewer(connection, path, (&all, ALL), &viewer)?;
        }
    }
    together(debits.iter()).map_or(Ok(()), |all| afford_total(connection, path, (&all, ALL)))
}

/// What several debits charge, as one; bounds are of one party's policy, but a debit without a delta has none
/// for that.
fn together<'a>(debits: impl Iterator<Item = &'a &'a Debit>) -> Option<Debit> {
    debits.map(|debit| (*debit).clone()).reduce(|all, next| Debit {
        rho: all.rho + next.rho,
        delta: all.delta + next.delta,
        most_delta: all.most_delta.max(next.most_delta),
        tau: all.tau + next.tau,
        ..all
    })
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
fn afford_total(connection: &Connection, path: &Path, (debit, what): (&Debit, &str)) -> Result<(), Error> {
    let Some(most) = &debit.total else { return Ok(()) };
    let all =
        lineages::spent_by_all(connection, &debit.lineage).map_err(|e| file::explain(path, "read", &e))?;
    if &all + &debit.rho > *most {
        return Err(Error::refused(format!(
            "policy.total: {} of {} spent on lineage {} by all viewers together; {what} needs {}: agree on \
             less rho, or raise policy.total, which bounds what viewers learn together",
            shown(&all),
            shown(most),
            debit.lineage,
            shown(&debit.rho)
        ))
        .falling_short(shortfall("policy.total", &all, most, &debit.rho)));
    }
    Ok(())
}

/// The numbers of a refusal, for its error.
#[must_use]
pub fn shortfall(
    bound: &'static str,
    spent: &Rational,
    budget: &Rational,
    asked: &Rational,
) -> Option<BudgetShortfall> {
    let [spent, budget, asked] = [spent, budget, asked].map(Rational::to_string);
    Some(BudgetShortfall { bound, spent, budget, asked })
}

/// Whether one of those who see a release may.
fn afford_viewer(
    connection: &Connection,
    path: &Path,
    (debit, what): (&Debit, &str),
    viewer: &str,
) -> Result<(), Error> {
    agreed::afford(connection, path, (debit, what), viewer)?;
    let explain = |e: rusqlite::Error| file::explain(path, "read", &e);
    let total = |what: &str| spent(connection, what, &debit.lineage, viewer).map_err(explain);
    let (rho, delta) = (total("rho")?, total("delta")?);
    if &rho + &debit.rho > debit.budget {
        return Err(Error::refused(format!(
            "budget: {} of {} spent on lineage {} by viewer {viewer}; {what} needs {}: {MORE_BUDGET}",
            shown(&rho),
            shown(&debit.budget),
            debit.lineage,
            shown(&debit.rho)
        ))
        .falling_short(shortfall("policy.budget", &rho, &debit.budget, &debit.rho)));
    }
    if let Some(period) = &debit.period {
        afford_period(connection, path, ((&debit.lineage, viewer), what), &debit.rho, period)?;
    }
    if debit.delta.is_positive() && &delta + &debit.delta > debit.most_delta {
        return Err(Error::refused(format!(
            "delta: {} of {} spent on lineage {} by viewer {viewer}; this match needs {}: raise \
             policy.delta, or agree on a smaller delta of match.dummies",
            power(&small(&delta)),
            power(&small(&debit.most_delta)),
            debit.lineage,
            power(&small(&debit.delta))
        ))
        .falling_short(shortfall("policy.delta", &delta, &debit.most_delta, &debit.delta)));
    }
    afford_noise(connection, path, (&debit.lineage, viewer), (&debit.rho, &debit.tau))
}

/// Whether all noise that a viewer of a lineage has seen, and some more of this rho and distance, is still
/// close enough to its law.
fn afford_noise(
    connection: &Connection,
    path: &Path,
    (lineage, viewer): (&str, &str),
    (rho, tau): (&Rational, &Rational),
) -> Result<(), Error> {
    if !tau.is_positive() {
        return Ok(());
    }
    let explain = |e: rusqlite::Error| file::explain(path, "read", &e);
    let rho = spent(connection, "rho", lineage, viewer).map_err(explain)? + rho;
    let tau = holding::spent_tau(connection, lineage, viewer).map_err(explain)? + tau;
    let what =
        format!("delta: with this release the noise of all releases of lineage {lineage} to viewer {viewer}");
    crate::bears(&what, &rho, &tau)
}

/// Whether a viewer's bound within a period allows a charge.
fn afford_period(
    connection: &Connection,
    path: &Path,
    ((lineage, viewer), what): ((&str, &str), &str),
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
        "policy.period_budget: {} of {} spent on lineage {lineage} by viewer {viewer}; {what} needs {}: \
         {when}. Wait, agree on less rho, or raise policy.period_budget",
        shown(&spent),
        period.words(),
        shown(rho)
    ))
    .falling_short(shortfall("policy.period_budget", &spent, &period.budget, rho)))
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
        afford_period(&self.connection, &self.path, (towards, ALL), rho, period)
    }

    /// Whether noise of this rho and distance may be added to what a viewer of a lineage has seen; nothing is
    /// written.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn check_noise(&self, towards: (&str, &str), noise: (&Rational, &Rational)) -> Result<(), Error> {
        afford_noise(&self.connection, &self.path, towards, noise)
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
