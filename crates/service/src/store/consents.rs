//! Signing a consent: who may decide, and by which rules, is looked at in the transaction that keeps it.
//! Between a click and the signature files are read, which may take long.

use super::accounts::{grants_of, living_in};
use super::backup::accepted_before_copy;
use super::studies::{failed, say_in};
use super::{ALREADY_OPEN, COMMAND_LINE, RecordedAct, Speaker, Store, write_down};
use crate::agree::BY_RULE;
use crate::roles::{Action, Asker, StudySubject, Subject, may};
use crate::serving::{NO_DATA, may_serve};
use base::Error;
use net::KeyFingerprint;
use rusqlite::{Connection, OptionalExtension, Row, params};
use statements::{
    ConsentTerms, ProposalId, ProposalRecord, Said, SignedStatement, StewardSeal, commit_to_data,
};
use study::StudyHash;

const CHANGED: &str = "the rules, or who may decide, changed while the files were read, so nothing was \
                       signed: read the study again";

/// Why no rule consents in a store that is a copy of before.
pub const RULES_OF_BEFORE: &str = "a copy of the store is used, and what rules consented to since it was \
                                   made is unknown: they consent again when somebody has accepted \
                                   service.toml once more";

/// How long the word of the first of two stewards counts.
const APPROVAL_SECONDS: u64 = 7 * 86_400;

/// Data are taken for those of a consent.
pub(super) const TAKE_DATA: &str = "UPDATE consents SET version = ?2, taken_tag = ?3 WHERE proposal = ?1";

/// What one of two stewards agrees to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedTerms {
    /// The data set.
    pub data: String,
    /// The digest of the text that was read.
    pub words: [u8; 32],
    /// Runs that may begin anew.
    pub runs: u8,
    /// Days that it holds.
    pub days: u64,
}

/// Who agrees, when (in seconds since 1970), and to what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalRow {
    /// The account.
    pub by: String,
    /// When.
    pub at: u64,
    /// To what.
    pub terms: ApprovedTerms,
}

/// What only this organisation knows of its consent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnConsent {
    /// Who gave it.
    pub by: String,
    /// The data set.
    pub data: String,
    /// Opens the commitment to the data.
    pub salt: [u8; 32],
    /// The name that the data have in the ledger.
    pub tag: [u8; 32],
    /// Stands for the files as they lay there when they were checked ([`crate::findings::version`]).
    pub version: [u8; 32],
    /// The text that the steward read.
    pub words: String,
    /// The newest row of the ledger's debits before: what was charged up to it was charged before.
    pub after: u64,
    /// The name of other data that a person has taken for those of the consent since.
    pub taken: Option<[u8; 32]>,
    /// The lineage that is charged; none: the consent is of before it was bound.
    pub lineage: Option<String>,
}

impl OwnConsent {
    /// Whether this is what a consent with this commitment was signed for.
    #[must_use]
    pub fn opens(&self, commitment: &[u8; 32]) -> bool {
        commit_to_data(&self.salt, &self.tag, self.lineage.as_deref()) == *commitment
    }
}

/// By what right a consent is signed.
#[derive(Clone, Copy, Debug)]
pub struct ConsentRight<'a> {
    /// The hash of the rules by which it was weighed; none: nobody had accepted any.
    pub rules: Option<[u8; 32]>,
    /// Those who decide on the data set, by these rules.
    pub stewards: &'a [String],
    /// Whether `separate_duties` holds, by these rules.
    pub separate: bool,
    /// What another one has to have agreed to, where two decide.
    pub approval: Option<&'a ApprovedTerms>,
    /// Keys of stewards, of which one has to have signed, by these rules; empty: none has to.
    pub keys: &'a [KeyFingerprint],
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
        let known = self.known(id)?;
        self.within_one(|write| {
            if !holds(write, id, own, right, speaker.at_ms / 1_000).map_err(failed)? {
                return Err(Error::refused(CHANGED));
            }
            if own.by == BY_RULE && accepted_before_copy(write).map_err(failed)? {
                return Err(Error::refused(RULES_OF_BEFORE));
            }
            if own.by == BY_RULE
                && let Some(known) = &known
                && !is_first_by_rule(write, &known.record.study(), &own.data, speaker.identity.fingerprint())
                    .map_err(failed)?
            {
                return Err(Error::refused("a rule consents to a study once, and where nobody refused it"));
            }
            let sealed = |seal: &StewardSeal| right.keys.contains(&seal.steward());
            if !right.keys.is_empty() && !terms.seal.as_ref().is_some_and(sealed) {
                return Err(Error::refused("these data take the signature of a steward's own key"));
            }
            let record = say_in(write, &speaker, id, known.as_deref(), Said::Consent(Box::new(terms)))?;
            let sql = "INSERT INTO consents (proposal, by, data, salt, tag, words, version, debits, lineage) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            let OwnConsent { by, data, salt, tag, words, version, after, lineage, .. } = own;
            let values = params![id.0, by, data, salt, tag, words, version, after.cast_signed(), lineage];
            write.execute(sql, values).map_err(failed)?;
            let data = Some(&own.data).filter(|data| *data != NO_DATA);
            write
                .execute("UPDATE proposals SET data = ?2 WHERE id = ?1", params![id.0, data])
                .map_err(failed)?;
            write.execute("DELETE FROM requests WHERE proposal = ?1", [id.0]).map_err(failed)?;
            Ok(record)
        })
    }

    /// What only this organisation knows of its consent.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn own_consent(&self, id: &ProposalId) -> Result<Option<OwnConsent>, Error> {
        let sql = "SELECT by, data, salt, tag, words, version, debits, taken_tag, lineage FROM consents \
                   WHERE proposal = ?1";
        self.read(|connection| {
            let row = |row: &Row<'_>| {
                let (by, data, salt) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let (tag, words, version) = (row.get(3)?, row.get(4)?, row.get(5)?);
                let (after, taken) = (row.get::<_, i64>(6)?.unsigned_abs(), row.get(7)?);
                let lineage = row.get(8)?;
                Ok(OwnConsent { by, data, salt, tag, version, words, after, taken, lineage })
            };
            connection.query_row(sql, [id.0], row).optional()
        })
    }

    /// Notes that one of two stewards agrees.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn approve(
        &self,
        act: &RecordedAct<'_>,
        id: &ProposalId,
        terms: &ApprovedTerms,
    ) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO approvals (proposal, account, data, words, runs, days, at) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let ApprovedTerms { data, words, runs, days } = terms;
        let (days, at) = (days.cast_signed(), act.at.cast_signed());
        self.act(act, |transaction| {
            transaction.execute(sql, params![id.0, act.by, data, words, runs, days, at]).map(drop)
        })
    }

    /// Takes back that somebody agrees; false where there was nothing to take back.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn disapprove(&self, act: &RecordedAct<'_>, id: &ProposalId) -> Result<bool, Error> {
        let sql = "DELETE FROM approvals WHERE proposal = ?1 AND account = ?2";
        let gone = self.act_if(act, |transaction| {
            Ok((transaction.execute(sql, params![id.0, act.by])? == 1).then_some(()))
        })?;
        Ok(gone.is_some())
    }

    /// Takes data that changed since consent for those of the consent, and lets the run begin, where whoever
    /// acts still decides on them by the rules by which they were weighed.
    ///
    /// # Errors
    /// [`base::Fault`] of a refusal where that is no longer so; or when the store cannot be written.
    pub fn take_weighed(
        &self,
        act: &RecordedAct<'_>,
        id: &ProposalId,
        (data, version, tag): (&str, &[u8; 32], &[u8; 32]),
        right: &ConsentRight<'_>,
    ) -> Result<(), Error> {
        self.within_one(|write| {
            let may = rules_hold(write, right).map_err(failed)?
                && decides(write, id, act.by, data, right).map_err(failed)?
                && is_approved(write, id, act.by, right, act.at).map_err(failed)?;
            let sql = "UPDATE proposals SET held = NULL, next_ms = 0 WHERE id = ?1 AND held = 'data'";
            if !may || write.execute(sql, [id.0]).map_err(failed)? == 0 {
                return Err(Error::refused(CHANGED));
            }
            write.execute(TAKE_DATA, params![id.0, version, tag]).map_err(failed)?;
            write.execute("DELETE FROM approvals WHERE proposal = ?1", [id.0]).map_err(failed)?;
            write_down(write, act)
        })?;
        self.ring();
        Ok(())
    }

    /// Whether a rule may consent to a study: it has not done so with this data set, and nothing of the study
    /// was refused or withdrawn here. Else whoever proposes could go on until the budget is gone. In a copy
    /// that was put back rules consent to nothing before somebody accepts them again.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn may_consent_by_rule(
        &self,
        study: &StudyHash,
        data: &str,
        own: KeyFingerprint,
    ) -> Result<bool, Error> {
        self.read(|connection| {
            Ok(!accepted_before_copy(connection)? && is_first_by_rule(connection, study, data, own)?)
        })
    }

    /// Who has agreed, where two have to, so shortly ago that it counts.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn approvals(&self, id: &ProposalId, now: u64) -> Result<Vec<ApprovalRow>, Error> {
        self.read(|connection| approvals(connection, id, now))
    }

    /// Whether somebody else than `by` agrees to exactly what `right` asks for, and may still decide.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_approved(
        &self,
        id: &ProposalId,
        by: &str,
        right: &ConsentRight<'_>,
        now: u64,
    ) -> Result<bool, Error> {
        self.read(|connection| is_approved(connection, id, by, right, now))
    }
}

fn approvals(
    connection: &Connection,
    id: &ProposalId,
    now: u64,
) -> Result<Vec<ApprovalRow>, rusqlite::Error> {
    let sql = "SELECT account, data, words, runs, days, at FROM approvals \
               WHERE proposal = ?1 AND at > ?2 ORDER BY account";
    let row = |row: &Row<'_>| {
        let (by, data, words, runs) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
        let time = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
        Ok(ApprovalRow { by, at: time(5)?, terms: ApprovedTerms { data, words, runs, days: time(4)? } })
    };
    let since = now.saturating_sub(APPROVAL_SECONDS).cast_signed();
    connection.prepare_cached(sql)?.query_map(params![id.0, since], row)?.collect()
}

fn is_approved(
    connection: &Connection,
    id: &ProposalId,
    by: &str,
    right: &ConsentRight<'_>,
    now: u64,
) -> Result<bool, rusqlite::Error> {
    let Some(terms) = right.approval else { return Ok(true) };
    for one in approvals(connection, id, now)? {
        if one.by != by && one.terms == *terms && decides(connection, id, &one.by, &terms.data, right)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether somebody may still consent, by rules that are still those that hold.
fn holds(
    connection: &Connection,
    id: &ProposalId,
    own: &OwnConsent,
    right: &ConsentRight<'_>,
    now: u64,
) -> Result<bool, rusqlite::Error> {
    if !rules_hold(connection, right)? {
        return Ok(false);
    }
    // Who has the machine has no account, and neither has a rule: it is one of those that hold.
    Ok(own.by == COMMAND_LINE
        || (own.by == BY_RULE && right.rules.is_some())
        || decides(connection, id, &own.by, &own.data, right)?
            && is_approved(connection, id, &own.by, right, now)?)
}

fn is_first_by_rule(
    connection: &Connection,
    study: &StudyHash,
    data: &str,
    own: KeyFingerprint,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM consents JOIN proposals ON consents.proposal = id \
               WHERE study = ?1 AND consents.by = ?2 AND consents.data = ?3)";
    if connection.query_row(sql, params![study.as_bytes(), BY_RULE, data], |row| row.get(0))? {
        return Ok(false);
    }
    // Of two proposals of one study the second one is refused, which is no word about the study.
    // A consent by rule that a copy of before lacks, and a peer has sent back, has no data set here: it may
    // have been this one.
    let known = |id: &ProposalId| {
        let sql = "SELECT EXISTS (SELECT 1 FROM consents WHERE proposal = ?1)";
        connection.prepare_cached(sql)?.query_row([id.0], |row| row.get::<_, bool>(0))
    };
    let ends = |said: &Said, id: &ProposalId| match said {
        Said::Refuse(why) => Ok(why.text != ALREADY_OPEN),
        Said::Consent(terms) if terms.persons == 0 => known(id).map(|known| !known),
        said => Ok(matches!(said, Said::Withdraw(_))),
    };
    let sql = "SELECT statement FROM statements WHERE study = ?1 AND author = ?2";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query(params![study.as_bytes(), own.bytes()])?;
    while let Some(row) = rows.next()? {
        let Ok(one) = SignedStatement::read(row.get_ref(0)?.as_blob()?) else { continue };
        if ends(&one.body().said, &one.body().proposal)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the rules by which something was weighed are those that hold.
fn rules_hold(connection: &Connection, right: &ConsentRight<'_>) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT hash FROM accepted ORDER BY number DESC LIMIT 1";
    let rules = connection.query_row(sql, [], |row| row.get::<_, [u8; 32]>(0)).optional()?;
    Ok(rules == right.rules)
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
    if data == NO_DATA {
        return Ok(may_serve(&asker, &by));
    }
    let subject = StudySubject { by: &by, data: Some(data), given: false };
    let named = right.stewards.iter().any(|steward| steward == account);
    Ok(named && may(&asker, Action::Decide, Subject::Study(subject)))
}
