//! What was consented to for one study: the most that it is charged since then, whatever budgets are left,
//! and how many matches may begin.

use super::afford::shortfall;
use super::promises::silent_match;
use super::{Bytes32, Debit, Ledger, VOIDED, begun_id, file, rational_of, reads};
use base::Error;
use page::numbers::power;
use release::Rational;
use release::rational::{ratio, shown, small};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::BTreeSet;
use std::path::Path;
use study::party::AgreedBounds;

/// What to do where it does not pay.
const AGAIN: &str = "the consent allows no more: whoever wants it proposes the study again";

/// Whether all who see what a debit is for may be charged anything at all, and on these data's account.
pub(super) fn names(debit: &Debit) -> Result<(), Error> {
    let Some(agreed) = &debit.agreed else { return Ok(()) };
    agreed.charges_to(&debit.lineage)?;
    match debit.viewer_key.split(' ').find(|viewer| agreed.of(viewer).is_none()) {
        Some(viewer) => {
            let none = ratio(0, 1);
            Err(Error::refused(format!(
                "consent: no charge towards viewer {viewer} was consented to; {AGAIN}"
            ))
            .falling_short(shortfall("study.charges", &none, &none, &debit.rho)))
        }
        None => Ok(()),
    }
}

/// Whether a debit, with what its study was charged since the consent, stays within what was consented to
/// towards a viewer.
pub(super) fn afford(
    connection: &Connection,
    path: &Path,
    (debit, what): (&Debit, &str),
    viewer: &str,
) -> Result<(), Error> {
    let Some(agreed) = &debit.agreed else { return Ok(()) };
    // Who else can read a public number of these data is no viewer of this study.
    let Some(most) = agreed.of(viewer) else { return Ok(()) };
    let spent = charged_since(connection, &debit.study, agreed, viewer);
    let [rho, delta] = spent.map_err(|e| file::explain(path, "read", &e))?;
    let refused = |text: String, [spent, most, asked]: [&Rational; 3]| {
        Err(Error::refused(text).falling_short(shortfall("study.charges", spent, most, asked)))
    };
    if &rho + &debit.rho > most.rho {
        let text = format!(
            "consent: of rho {} that was consented to for this study towards viewer {viewer}, {} is charged; \
             {what} needs {}: {AGAIN}",
            shown(&most.rho),
            shown(&rho),
            shown(&debit.rho)
        );
        return refused(text, [&rho, &most.rho, &debit.rho]);
    }
    if &delta + &debit.delta > most.delta {
        let [all, spent, asked] = [&most.delta, &delta, &debit.delta].map(|delta| power(&small(delta)));
        let text = format!(
            "consent: of delta {all} that was consented to for this study towards viewer {viewer}, {spent} \
             is charged; {what} needs {asked}: {AGAIN}"
        );
        return refused(text, [&delta, &most.delta, &debit.delta]);
    }
    Ok(())
}

/// Whether one more match may begin.
pub(super) fn may_begin(
    connection: &Connection,
    path: &Path,
    id: &Bytes32,
    agreed: &AgreedBounds,
) -> Result<(), Error> {
    let sql = "SELECT count(*) FROM matches WHERE id = ?1 AND at >= ?2";
    let begun = connection.query_row(sql, params![id, agreed.at.cast_signed()], |row| row.get::<_, i64>(0));
    let begun = begun.map_err(|e| file::explain(path, "read", &e))?.unsigned_abs();
    if begun < agreed.matches {
        return Ok(());
    }
    let [have, most, one] = [begun, agreed.matches, 1].map(|number| ratio(number, 1));
    Err(Error::refused(format!(
        "consent: a match of this study has begun as often ({begun}) as was consented to, and there is \
         none to go on with; {AGAIN}"
    ))
    .falling_short(shortfall("study.runs", &have, &most, &one)))
}

/// Rho and delta that a study was charged towards a viewer since a consent. A row counts that is later by its
/// number or by its time: a ledger that was put back, and a clock that was, free nothing by themselves.
fn charged_since(
    connection: &Connection,
    study: &Bytes32,
    agreed: &AgreedBounds,
    viewer: &str,
) -> Result<[Rational; 2], rusqlite::Error> {
    let sql = format!(
        "SELECT rho, delta FROM debits WHERE study = ?1 AND protects = 1 AND {VOIDED} AND (row > ?3 OR at >= \
         ?4) AND {}",
        reads(2)
    );
    let mut query = connection.prepare_cached(&sql)?;
    let values = params![study, viewer, agreed.after.cast_signed(), agreed.at.cast_signed()];
    let rows = query.query_map(values, |row| Ok([rational_of(row, "rho")?, rational_of(row, "delta")?]))?;
    rows.into_iter().try_fold([ratio(0, 1), ratio(0, 1)], |[all_rho, all_delta], row| {
        let [rho, delta] = row?;
        Ok([all_rho + rho, all_delta + delta])
    })
}

impl Ledger {
    /// Rho and delta that a study was charged towards a viewer since what was consented to, exactly.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn charged_since(
        &self,
        study: &Bytes32,
        agreed: &AgreedBounds,
        viewer: &str,
    ) -> Result<[Rational; 2], Error> {
        charged_since(&self.connection, study, agreed, viewer).map_err(|e| self.explain("read", &e))
    }

    /// The studies that were charged anything.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn charged_studies(&self) -> Result<BTreeSet<Bytes32>, Error> {
        let read = |connection: &Connection| -> Result<BTreeSet<Bytes32>, rusqlite::Error> {
            let mut query = connection.prepare("SELECT DISTINCT study FROM debits")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        read(&self.connection).map_err(|e| self.explain("read", &e))
    }

    /// The newest debit's row; 0: there is none.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn last_debit(&self) -> Result<u64, Error> {
        let sql = "SELECT coalesce(max(row), 0) FROM debits";
        let row = self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        row.map(i64::unsigned_abs).map_err(|e| self.explain("read", &e))
    }

    /// Whether a run of a study would take up what is here, without another match: its answer, what it gave
    /// this party, this party's share of a number that was paid for, or the last match that was charged, in
    /// which nothing was said yet but how many rows there are.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn takes_up(&self, study: &Bytes32) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM answers WHERE study = ?1) OR EXISTS (SELECT 1 FROM debits \
                   WHERE study = ?1 AND (release IN (SELECT release FROM outputs) OR release IN (SELECT \
                   release FROM held WHERE dropped = 0)))";
        let kept = self.connection.query_row(sql, [study], |row| row.get(0));
        let found = kept.and_then(|kept: bool| Ok(kept || is_silent(&self.connection, study)?));
        found.map_err(|e| self.explain("read", &e))
    }
}

/// Whether nothing was said in the match that a study was charged for last.
fn is_silent(connection: &Connection, study: &Bytes32) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT my_tag, peer_tag FROM debits WHERE study = ?1 ORDER BY row DESC LIMIT 1";
    let tags = |row: &rusqlite::Row<'_>| Ok([row.get::<_, Bytes32>(0)?, row.get(1)?]);
    let Some([own, other]) = connection.query_row(sql, [study], tags).optional()? else { return Ok(false) };
    // Which of the two comes first the study says.
    for tags in [[own, other], [other, own]] {
        if silent_match(connection, &begun_id(study, &tags))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
