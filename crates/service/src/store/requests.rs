//! Consents that wait for the signature of a steward's own key: what is to be signed, and what only this
//! organisation knows of it.

use super::{OwnConsent, RecordedAct, Store};
use base::Error;
use rusqlite::{OptionalExtension, Row, params};
use statements::{ConsentRequest, ProposalId};

/// How long a signature is waited for.
const REQUEST_SECONDS: u64 = 7 * 86_400;

/// A consent that waits for a signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealRequest {
    /// What is to be signed.
    pub request: ConsentRequest,
    /// What is kept with the consent; who asked for it.
    pub own: OwnConsent,
    /// The rules by which it was weighed.
    pub rules: Option<[u8; 32]>,
    /// Days that it holds.
    pub days: u64,
}

impl Store {
    /// Keeps what a steward is to sign, in place of an earlier request about the same proposal.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_request(&self, act: &RecordedAct<'_>, asked: &SealRequest) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO requests (proposal, at, by, data, request, words, salt, tag, \
                   version, rules, days, lineage) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
        let SealRequest { request, own, rules, days } = asked;
        let values = params![
            request.proposal.0,
            act.at.cast_signed(),
            own.by,
            own.data,
            request.bytes(),
            own.words,
            own.salt,
            own.tag,
            own.version,
            rules,
            days.cast_signed(),
            own.lineage
        ];
        self.act(act, |transaction| transaction.execute(sql, values).map(drop))
    }

    /// What waits to be signed about a proposal, and not for too long.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn request(&self, id: &ProposalId, now: u64) -> Result<Option<SealRequest>, Error> {
        let sql = "SELECT by, data, request, words, salt, tag, version, rules, days, lineage FROM requests \
                   WHERE proposal = ?1 AND at > ?2";
        let row = |row: &Row<'_>| {
            let (by, data, words) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let (salt, tag, version) = (row.get(4)?, row.get(5)?, row.get(6)?);
            // What is charged counts from when it is signed.
            let (taken, lineage) = (None, row.get(9)?);
            let own = OwnConsent { by, data, salt, tag, version, words, after: 0, taken, lineage };
            let (bytes, rules, days) = (row.get::<_, Vec<u8>>(2)?, row.get(7)?, row.get::<_, i64>(8)?);
            let request = ConsentRequest::read(&bytes);
            Ok(request.map(|request| SealRequest { request, own, rules, days: days.unsigned_abs() }))
        };
        let since = now.saturating_sub(REQUEST_SECONDS).cast_signed();
        let found =
            self.read(|connection| connection.query_row(sql, params![id.0, since], row).optional())?;
        Ok(found.flatten())
    }
}
