//! What is in a store, and how one of an earlier version becomes one of this.

use super::{RecordedAct, write_down};
use base::Error;
use rusqlite::{Connection, Transaction};
use std::path::Path;

/// Marks a database as a store of ours (SQLite's `application_id`): "TCSV".
const APPLICATION: i32 = 0x5443_5356;

/// Step n makes a store of version n + 1 of one of version n; version 0 is an empty file.
const STEPS: [LayoutStep; 14] = [
    |transaction| Ok(transaction.execute_batch(V1)?),
    chained,
    |transaction| Ok(transaction.execute_batch(V3)?),
    |transaction| Ok(transaction.execute_batch(V4)?),
    |transaction| Ok(transaction.execute_batch(CONFIRMATIONS)?),
    |transaction| Ok(transaction.execute_batch(APPROVALS)?),
    |transaction| Ok(transaction.execute_batch(GUARDS)?),
    |transaction| Ok(transaction.execute_batch(PAUSED_BY)?),
    |transaction| Ok(transaction.execute_batch(REQUESTS)?),
    |transaction| Ok(transaction.execute_batch(TOKENS)?),
    |transaction| Ok(transaction.execute_batch(TAKEN)?),
    |transaction| Ok(transaction.execute_batch(LINEAGE)?),
    |transaction| Ok(transaction.execute_batch(COMPUTED)?),
    |transaction| Ok(transaction.execute_batch(SIZES)?),
];

type LayoutStep = fn(&Transaction<'_>) -> Result<(), StepFailed>;

/// The version that this program writes.
pub(super) const VERSION: i32 = STEPS.len() as i32;

const V1: &str = "
CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    password TEXT,
    made INTEGER NOT NULL,
    ended INTEGER
) STRICT;
CREATE TABLE grants (
    account INTEGER NOT NULL REFERENCES accounts,
    role TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (account, role, data)
) STRICT, WITHOUT ROWID;
CREATE TABLE links (
    hash BLOB PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES accounts,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    account INTEGER NOT NULL REFERENCES accounts,
    begun INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    proven INTEGER NOT NULL,
    wrong INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_of ON sessions (account);
CREATE TABLE tries (
    name BLOB PRIMARY KEY,
    wrong INTEGER NOT NULL,
    last INTEGER NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE tries_from (
    address TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX tries_by_address ON tries_from (address, at);
CREATE TABLE accepted (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    hash BLOB NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE checks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    data TEXT NOT NULL,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    found TEXT NOT NULL
) STRICT;
CREATE INDEX checks_of ON checks (data, number);
CREATE TABLE acts (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL
) STRICT;
CREATE INDEX acts_by ON acts (by, number);
CREATE INDEX acts_to ON acts (subject, number);
CREATE TRIGGER acts_stay BEFORE UPDATE ON acts BEGIN SELECT RAISE(ABORT, 'acts are never changed'); END;
CREATE TRIGGER acts_are_kept BEFORE DELETE ON acts BEGIN SELECT RAISE(ABORT, 'acts are never deleted'); END;
CREATE TRIGGER accepted_stays BEFORE UPDATE ON accepted
    BEGIN SELECT RAISE(ABORT, 'what was accepted is never changed'); END;
CREATE TRIGGER accepted_is_kept BEFORE DELETE ON accepted
    BEGIN SELECT RAISE(ABORT, 'what was accepted is never deleted'); END;
";

const V2: &str = "
DROP TABLE acts;
CREATE INDEX audit_by ON audit (actor, number);
CREATE INDEX audit_about ON audit (subject, number);
";

const CONFIRMATIONS: &str = "
ALTER TABLE links ADD COLUMN code BLOB;
CREATE TABLE confirmations (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    subject TEXT NOT NULL,
    change TEXT NOT NULL,
    until INTEGER NOT NULL,
    decided INTEGER,
    decided_by TEXT,
    decision TEXT
) STRICT;
CREATE INDEX confirmations_open ON confirmations (until) WHERE decided IS NULL;
CREATE TRIGGER confirmations_stay BEFORE UPDATE ON confirmations
    WHEN OLD.decided IS NOT NULL OR (NEW.number, NEW.at, NEW.by, NEW.subject, NEW.change, NEW.until)
        IS NOT (OLD.number, OLD.at, OLD.by, OLD.subject, OLD.change, OLD.until)
    BEGIN SELECT RAISE(ABORT, 'what was proposed or decided is never changed'); END;
CREATE TRIGGER confirmations_are_kept BEFORE DELETE ON confirmations
    BEGIN SELECT RAISE(ABORT, 'what was proposed is never deleted'); END;
CREATE TABLE paused (peer TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE copies (at INTEGER NOT NULL) STRICT;
ALTER TABLE accounts ADD COLUMN totp BLOB;
ALTER TABLE accounts ADD COLUMN totp_new BLOB;
ALTER TABLE accounts ADD COLUMN totp_step INTEGER NOT NULL DEFAULT 0;
CREATE TABLE recovery (
    account INTEGER NOT NULL REFERENCES accounts,
    hash BLOB NOT NULL,
    PRIMARY KEY (account, hash)
) STRICT, WITHOUT ROWID;
";

/// Studies. What was said lies in the trail's table `statements`; a row of `proposals` follows from it, and
/// is written with it.
const V3: &str = "
CREATE INDEX statements_from ON statements (author, at_ms);
CREATE TABLE proposals (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    id BLOB NOT NULL UNIQUE,
    study BLOB NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    proposer BLOB NOT NULL,
    by TEXT NOT NULL,
    made_ms INTEGER NOT NULL,
    changed_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    open INTEGER NOT NULL,
    ours INTEGER NOT NULL,
    decided INTEGER NOT NULL,
    data TEXT,
    held TEXT,
    next_ms INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX proposals_of ON proposals (study, row);
CREATE INDEX proposals_in ON proposals (state, row);
CREATE INDEX proposals_open ON proposals (row) WHERE open;
CREATE INDEX proposals_for_us ON proposals (row) WHERE ours;
CREATE INDEX proposals_to_decide ON proposals (proposer) WHERE open AND NOT decided;
CREATE TABLE parties (
    party BLOB NOT NULL,
    proposal INTEGER NOT NULL REFERENCES proposals,
    PRIMARY KEY (party, proposal)
) STRICT, WITHOUT ROWID;
CREATE TABLE consents (
    proposal BLOB PRIMARY KEY,
    by TEXT NOT NULL,
    data TEXT NOT NULL,
    salt BLOB NOT NULL,
    tag BLOB NOT NULL,
    version BLOB NOT NULL,
    words TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE outbox (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    peer BLOB NOT NULL,
    proposal BLOB NOT NULL,
    number INTEGER NOT NULL,
    digest BLOB NOT NULL,
    had_ms INTEGER,
    refused TEXT,
    UNIQUE (peer, digest)
) STRICT;
CREATE INDEX outbox_waiting ON outbox (peer, row) WHERE had_ms IS NULL AND refused IS NULL;
CREATE INDEX outbox_of ON outbox (proposal, number);
CREATE TABLE runs (
    proposal BLOB NOT NULL,
    run INTEGER NOT NULL,
    port INTEGER NOT NULL,
    made_ms INTEGER NOT NULL,
    begun_ms INTEGER,
    ended_ms INTEGER,
    outcome TEXT,
    kind TEXT,
    code TEXT,
    message TEXT,
    PRIMARY KEY (proposal, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX runs_open ON runs (proposal) WHERE ended_ms IS NULL;
CREATE TABLE run_lines (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    proposal BLOB NOT NULL,
    run INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    line TEXT NOT NULL
) STRICT;
CREATE INDEX run_lines_of ON run_lines (proposal, run, row);
CREATE TABLE report_files (
    proposal BLOB NOT NULL,
    name TEXT NOT NULL,
    run INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (proposal, name)
) STRICT;
";

/// What people have of studies beside what organisations say.
const V4: &str = "
CREATE TABLE drafts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    account TEXT NOT NULL,
    title TEXT NOT NULL,
    at INTEGER NOT NULL,
    fields TEXT NOT NULL
) STRICT;
CREATE INDEX drafts_of ON drafts (account, id);
CREATE TABLE given (
    proposal BLOB NOT NULL,
    account TEXT NOT NULL,
    PRIMARY KEY (proposal, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE approvals (
    proposal BLOB NOT NULL,
    account TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (proposal, account)
) STRICT, WITHOUT ROWID;
CREATE TABLE weighed (
    proposal BLOB PRIMARY KEY,
    at INTEGER NOT NULL,
    data TEXT NOT NULL,
    said TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Who agreed before agrees again: it was not kept to what.
const APPROVALS: &str = "
DROP TABLE approvals;
CREATE TABLE approvals (
    proposal BLOB NOT NULL,
    account TEXT NOT NULL,
    data TEXT NOT NULL,
    words BLOB NOT NULL,
    runs INTEGER NOT NULL,
    days INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (proposal, account)
) STRICT, WITHOUT ROWID;
";

/// Of consents of before, everything that their study was charged counts. Nothing is said on a proposal of
/// which a party is in `unheard`: it may have more of the own chain than there is here.
const GUARDS: &str = "
ALTER TABLE consents ADD COLUMN debits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE consents ADD COLUMN taken INTEGER NOT NULL DEFAULT 0;
CREATE INDEX proposals_by ON proposals (proposer, made_ms);
CREATE TABLE unheard (
    proposal BLOB NOT NULL,
    peer BLOB NOT NULL,
    PRIMARY KEY (proposal, peer)
) STRICT, WITHOUT ROWID;
";

/// By whom was not kept: an operator could pause as well as a steward, and ends it.
const PAUSED_BY: &str = "
ALTER TABLE paused ADD COLUMN by TEXT NOT NULL DEFAULT '';
ALTER TABLE paused ADD COLUMN as_steward INTEGER NOT NULL DEFAULT 0;
";

/// Consents that wait for a steward's own key.
const REQUESTS: &str = "
CREATE TABLE requests (
    proposal BLOB PRIMARY KEY,
    at INTEGER NOT NULL,
    by TEXT NOT NULL,
    data TEXT NOT NULL,
    request BLOB NOT NULL,
    words TEXT NOT NULL,
    salt BLOB NOT NULL,
    tag BLOB NOT NULL,
    version BLOB NOT NULL,
    rules BLOB,
    days INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// What programs have of people, and what was answered to requests that may come twice.
const TOKENS: &str = "
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hash BLOB NOT NULL UNIQUE,
    account INTEGER NOT NULL REFERENCES accounts,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    data TEXT,
    made INTEGER NOT NULL,
    until INTEGER NOT NULL,
    used INTEGER,
    ended INTEGER
) STRICT;
CREATE INDEX tokens_of ON tokens (account, id);
CREATE TABLE answers (
    token INTEGER NOT NULL REFERENCES tokens,
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    at INTEGER NOT NULL,
    status INTEGER,
    answer BLOB,
    PRIMARY KEY (token, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX answers_at ON answers (at);
CREATE INDEX proposals_changed ON proposals (changed_ms);
";

/// The name of data that were taken is compared, too. Of those taken before it was not kept: they are taken
/// once more.
const TAKEN: &str = "
ALTER TABLE consents ADD COLUMN taken_tag BLOB;
UPDATE consents SET version = zeroblob(32) WHERE taken = 1;
ALTER TABLE consents DROP COLUMN taken;
";

/// The lineage that a consent is charged to. Those of before did not bind it.
const LINEAGE: &str = "
ALTER TABLE consents ADD COLUMN lineage TEXT;
ALTER TABLE requests ADD COLUMN lineage TEXT;
";

/// Whether the own process of a run has computed: a server's consent counts that. Of runs of before their
/// lines say it.
const COMPUTED: &str = "
ALTER TABLE runs ADD COLUMN computed INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET computed = 1 WHERE EXISTS (SELECT 1 FROM run_lines AS said WHERE said.proposal = runs.proposal
    AND said.run = runs.run AND json_valid(line)
    AND json_extract(line, '$.event') IN ('stage', 'stage-done', 'units', 'progress'));
";

/// What who proposed a study here said of rows and outcomes, which no statement has. When a study was over
/// here. Since when a copy is the store, and which rules were accepted last by then: the log may be cut.
const SIZES: &str = "
CREATE TABLE sizes (
    proposal BLOB PRIMARY KEY,
    first INTEGER,
    others INTEGER,
    mean REAL
) STRICT, WITHOUT ROWID;
ALTER TABLE proposals ADD COLUMN over_ms INTEGER;
UPDATE proposals SET over_ms = changed_ms WHERE NOT open;
CREATE INDEX proposals_over ON proposals (over_ms);
CREATE INDEX parties_of ON parties (proposal);
CREATE TABLE restored (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    at_ms INTEGER NOT NULL,
    accepted INTEGER NOT NULL
) STRICT;
INSERT INTO restored (one, at_ms, accepted)
    SELECT 1, used.at_ms, coalesce((SELECT max(number) FROM accepted WHERE at * 1000 <= used.at_ms), 0)
    FROM audit AS used WHERE actor = '(command line)' AND action LIKE 'a copy of % is used from now on'
    ORDER BY used.at_ms DESC LIMIT 1;
";

/// Why a step was not made.
enum StepFailed {
    Sql(rusqlite::Error),
    Told(Error),
}

impl From<rusqlite::Error> for StepFailed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<Error> for StepFailed {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

/// Who did what goes into the chained log, in its order and with its times.
fn chained(transaction: &Transaction<'_>) -> Result<(), StepFailed> {
    trail::create(transaction)?;
    let mut select = transaction.prepare("SELECT at, by, what, subject FROM acts ORDER BY number")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        let (at, by, what): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let mut to: String = row.get(3)?;
        if what == super::checks::CHECKED {
            to = super::checks::subject(&to);
        }
        write_down(transaction, &RecordedAct { by: &by, what: &what, to: &to, at: at.unsigned_abs() })?;
    }
    drop(rows);
    drop(select);
    Ok(transaction.execute_batch(V2)?)
}

/// Makes a store of this version of an empty file or of a store of an earlier one.
pub(super) fn settle(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let failed = |e: rusqlite::Error| super::explain(path, "bring up to date", &e);
    let begun = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
    let transaction = begun.map_err(failed)?;
    let pragma = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let tables = "SELECT count(*) FROM sqlite_schema";
    let tables = transaction.query_row(tables, [], |row| row.get::<_, i64>(0)).map_err(failed)?;
    let version = match (pragma("application_id").map_err(failed)?, pragma("user_version").map_err(failed)?) {
        (APPLICATION, version) if (1..=VERSION).contains(&version) => version,
        (APPLICATION, version) if version > VERSION => {
            return Err(Error::input(format!(
                "the store {} has format {version}, written by a newer tacit; this one reads up to \
                 {VERSION}: use the newer tacit",
                path.display()
            )));
        }
        (0, 0) if tables == 0 => 0,
        _ => {
            return Err(Error::input(format!(
                "{} is a database, and no store of a service: give another path",
                path.display()
            )));
        }
    };
    for step in &STEPS[version.unsigned_abs() as usize..] {
        step(&transaction).map_err(|why| match why {
            StepFailed::Sql(error) => failed(error),
            StepFailed::Told(error) => error,
        })?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(failed)?;
    transaction.commit().map_err(failed)
}
