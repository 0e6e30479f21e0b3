//! Statements in the store: all of them, for ever, as they came.

use crate::failed;
use base::Error;
use rusqlite::{Connection, Transaction, params};
use statements::{ProposalRecord, SignedStatement};
use study::StudyHash;

/// Keeps a statement that this organisation made or that came, in a transaction of the caller's: before it is
/// sent, and before it is acknowledged. Whether it is new.
///
/// # Errors
/// When the store cannot be written.
pub fn keep_statement(
    write: &Transaction<'_>,
    at_ms: u64,
    statement: &SignedStatement,
) -> Result<bool, Error> {
    let body = statement.body();
    let sql = "INSERT INTO statements (at_ms, study, proposal, author, number, digest, statement) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (digest) DO NOTHING";
    let author = statement.author().bytes();
    let about = (body.study.as_bytes(), body.proposal.0);
    let values = params![
        at_ms.cast_signed(),
        about.0,
        about.1,
        author,
        body.number,
        statement.digest(),
        statement.bytes()
    ];
    let kept = write.execute(sql, values).map_err(|e| failed("keep a statement in", &e))?;
    Ok(kept == 1)
}

/// All statements as they came, or those about one study; each has the signature of its author.
///
/// # Errors
/// When the store cannot be read, or holds what nobody signed.
pub fn statements(connection: &Connection, study: Option<&StudyHash>) -> Result<Vec<SignedStatement>, Error> {
    let sql = "SELECT statement FROM statements WHERE ?1 IS NULL OR study = ?1 ORDER BY row";
    let read = connection.prepare_cached(sql).and_then(|mut select| {
        let rows = select.query_map([study.map(StudyHash::as_bytes)], |row| row.get::<_, Vec<u8>>(0))?;
        rows.collect::<Result<Vec<_>, _>>()
    });
    let read = read.map_err(|e| failed("read statements in", &e))?;
    let signed = (1..).zip(&read).map(|(row, bytes)| {
        let changed = |e: Error| Error::input(format!("statement {row} of the store was changed: {e}"));
        SignedStatement::read(bytes).map_err(changed)
    });
    signed.collect()
}

/// The proposals that statements are about, in the order in which they were made.
///
/// # Errors
/// The first statement that does not go on its author's chain.
pub fn proposals(statements: &[SignedStatement]) -> Result<Vec<ProposalRecord>, Error> {
    let mut all: Vec<ProposalRecord> = Vec::new();
    for (row, statement) in (1..).zip(statements) {
        let id = statement.body().proposal;
        let wrong = |why: statements::NotKept| Error::input(format!("statement {row} does not fit: {why}"));
        match all.iter_mut().find(|record| record.id() == id) {
            Some(record) => _ = record.keep(statement.clone()).map_err(wrong)?,
            None => all.push(ProposalRecord::open(statement.clone()).map_err(wrong)?),
        }
    }
    Ok(all)
}
