//! Signing a consent: who may decide, and by which rules, is looked at in the transaction that keeps it.
//! Between a click and the signature files are read, which may take long.

use super::accounts::{grants_of, living_in};
use super::studies::{failed, say_in};
use super::{COMMAND_LINE, OwnConsent, Speaker, Store};
use crate::roles::{Action, Asker, StudySubject, Subject, may};
use base::Error;
use rusqlite::{Connection, OptionalExtension, params};
use statements::{ConsentTerms, ProposalId, ProposalRecord, Said};

const CHANGED: &str = "the rules, or who may decide, changed while the files were read, so nothing was \
                       signed: read the study again";

/// By what right a consent is signed.
#[derive(Clone, Copy, Debug)]
pub struct ConsentRight<'a> {
    /// The hash of the rules by which it was weighed; none: nobody had accepted any.
    pub rules: Option<[u8; 32]>,
    /// Those who decide on the data set, by these rules.
    pub stewards: &'a [String],
    /// Whether `separate_duties` holds, by these rules.
    pub separate: bool,
}

impl Store {
    /// Consents, and keeps what only this organisation knows of it.
    ///
    /// # Errors
    /// [`base::Fault`] of a refusal where it may not be said now, or not by this account or by these rules
    /// any more; or when there is no such proposal, or the store cannot be written.
    pub fn consent(
        &self,
        speaker: Speaker<'_>,
        id: &ProposalId,
        terms: ConsentTerms,
        own: &OwnConsent,
        right: &ConsentRight<'_>,
    ) -> Result<ProposalRecord, Error> {
        self.within_one(|write| {
            if !holds(write, id, own, right).map_err(failed)? {
                return Err(Error::refused(CHANGED));
            }
            let record = say_in(write, &speaker, id, Said::Consent(Box::new(terms)))?;
            let sql = "INSERT INTO consents (proposal, by, data, salt, tag, words, version) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let values = params![id.0, own.by, own.data, own.salt, own.tag, own.words, own.version];
            write.execute(sql, values).map_err(failed)?;
            write
                .execute("UPDATE proposals SET data = ?2 WHERE id = ?1", params![id.0, own.data])
                .map_err(failed)?;
            Ok(record)
        })
    }
}

/// Whether somebody may still consent, by rules that are still those that hold.
fn holds(
    connection: &Connection,
    id: &ProposalId,
    own: &OwnConsent,
    right: &ConsentRight<'_>,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT hash FROM accepted ORDER BY number DESC LIMIT 1";
    let rules = connection.query_row(sql, [], |row| row.get::<_, [u8; 32]>(0)).optional()?;
    // Who has the machine has no account.
    Ok(rules == right.rules
        && (own.by == COMMAND_LINE || decides(connection, id, &own.by, &own.data, right)?))
}

/// Whether an account decides on a proposal and a data set, as its roles are now.
fn decides(
    connection: &Connection,
    id: &ProposalId,
    account: &str,
    data: &str,
    right: &ConsentRight<'_>,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT by FROM proposals WHERE id = ?1";
    let by = connection.query_row(sql, [id.0], |row| row.get::<_, String>(0)).optional()?.unwrap_or_default();
    let Some(number) = living_in(connection, account)? else { return Ok(false) };
    let grants = grants_of(connection, number)?;
    let asker = Asker { name: account.to_owned(), grants, separate: right.separate };
    let subject = StudySubject { by: &by, data: Some(data), given: false };
    let named = right.stewards.iter().any(|steward| steward == account);
    Ok(named && may(&asker, Action::Decide, Subject::Study(subject)))
}
