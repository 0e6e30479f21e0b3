//! The tables of a ledger, and how a file of an earlier layout is brought up to date.

use super::chain;
use rusqlite::Connection;

/// Version of the layout (SQLite's `user_version`).
pub(super) const VERSION: i32 = 5;

/// Everything but `settings` and the shares in `held` only grows: a statement that changes or deletes a row
/// aborts, unless it takes the trouble to go around the triggers. What was gone around is found by the chains
/// ([`chain::LINKED`]).
const GROW: [&str; 17] = [
    "debits",
    "answers",
    "transcripts",
    "bars",
    "attempts",
    "outputs",
    "allows",
    "statements",
    "claims",
    "chain",
    "sketches",
    "matches",
    "voids",
    "sent",
    "successions",
    "signatures",
    "runs",
];

const SETTINGS: &str = "CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;";

const SCHEMA: &str = "
CREATE TABLE debits (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, release BLOB NOT NULL, attempt INTEGER NOT NULL,
    lineage TEXT NOT NULL, viewer TEXT NOT NULL, peer TEXT NOT NULL, study BLOB NOT NULL, my_tag BLOB NOT \
    NULL,
    peer_tag BLOB NOT NULL, rho TEXT NOT NULL, budget TEXT NOT NULL, protects INTEGER NOT NULL, delta TEXT \
    NOT NULL,
    tau TEXT, period INTEGER, period_budget TEXT, UNIQUE (release, attempt, protects)
) STRICT;
CREATE INDEX debits_of ON debits (lineage, viewer);
CREATE TABLE answers (
    row INTEGER PRIMARY KEY, study BLOB NOT NULL, program BLOB NOT NULL, my_tag BLOB NOT NULL, peer_tag BLOB \
    NOT NULL,
    party INTEGER NOT NULL, at INTEGER NOT NULL, report TEXT NOT NULL, UNIQUE (study, program, my_tag, \
    peer_tag, party)
) STRICT;
CREATE TABLE transcripts (
    row INTEGER PRIMARY KEY, release BLOB NOT NULL, attempt INTEGER NOT NULL, side TEXT NOT NULL, stage \
    INTEGER NOT NULL,
    peer TEXT NOT NULL, lineage TEXT NOT NULL, at INTEGER NOT NULL, record TEXT NOT NULL,
    UNIQUE (release, attempt, side, stage)
) STRICT;
CREATE INDEX transcripts_of ON transcripts (peer, lineage);
CREATE TABLE bars (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, kind TEXT NOT NULL, peer TEXT NOT NULL, lineage TEXT NOT \
    NULL,
    release BLOB NOT NULL, attempt INTEGER NOT NULL, reason TEXT NOT NULL
) STRICT;
CREATE TABLE attempts (
    row INTEGER PRIMARY KEY, release BLOB NOT NULL, attempt INTEGER NOT NULL, peer TEXT NOT NULL, at INTEGER \
    NOT NULL,
    reason TEXT NOT NULL, UNIQUE (release, attempt)
) STRICT;
CREATE TABLE outputs (
    row INTEGER PRIMARY KEY, release BLOB NOT NULL, attempt INTEGER NOT NULL, peer TEXT NOT NULL, at INTEGER \
    NOT NULL,
    outputs TEXT NOT NULL, UNIQUE (release, attempt)
) STRICT;
CREATE TABLE allows (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT NOT NULL, lineage TEXT NOT NULL, bars INTEGER \
    NOT NULL,
    transcripts INTEGER NOT NULL, reason TEXT NOT NULL, numbers INTEGER
) STRICT;
CREATE TABLE statements (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT NOT NULL, statement BLOB NOT NULL
) STRICT;
CREATE TABLE claims (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT NOT NULL, settled INTEGER NOT NULL, statement \
    BLOB NOT NULL
) STRICT;
CREATE TABLE chain (
    row INTEGER PRIMARY KEY, peer TEXT NOT NULL, count INTEGER NOT NULL, source TEXT NOT NULL, item INTEGER \
    NOT NULL,
    salt BLOB NOT NULL, hash BLOB NOT NULL
) STRICT;
CREATE TABLE sketches (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, lineage TEXT NOT NULL, sketch BLOB NOT NULL, unlike TEXT
) STRICT;
CREATE TABLE matches (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, id BLOB NOT NULL, nonce BLOB NOT NULL
) STRICT;
CREATE INDEX matches_of ON matches (id);
CREATE INDEX chain_of ON chain (peer, count);
CREATE INDEX chain_item ON chain (source, item);
";

/// What layout 4 adds.
const HOLDING: &str = "
CREATE TABLE voids (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, debit INTEGER NOT NULL UNIQUE, peer TEXT NOT NULL
) STRICT;
CREATE TABLE held (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, release BLOB NOT NULL, attempt INTEGER NOT NULL,
    session BLOB NOT NULL UNIQUE, peer TEXT NOT NULL, lineage TEXT NOT NULL, share BLOB NOT NULL, salt BLOB \
    NOT NULL,
    commitments BLOB NOT NULL, dropped INTEGER NOT NULL
) STRICT;
CREATE INDEX held_of ON held (release);
CREATE TABLE sent (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, release BLOB NOT NULL, attempt INTEGER NOT NULL,
    session BLOB NOT NULL UNIQUE, peer TEXT NOT NULL
) STRICT;
CREATE INDEX sent_of ON sent (release);
";

/// What layout 5 adds.
const GOVERNING: &str = "
ALTER TABLE held ADD COLUMN tau TEXT;
CREATE TABLE successions (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, old TEXT NOT NULL UNIQUE, new TEXT NOT NULL, statement \
    BLOB NOT NULL
) STRICT;
CREATE TABLE signatures (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, number BLOB NOT NULL, signer TEXT NOT NULL, text TEXT NOT \
    NULL,
    key BLOB NOT NULL, signature BLOB NOT NULL, UNIQUE (number, signer)
) STRICT;
CREATE TABLE runs (
    row INTEGER PRIMARY KEY, at INTEGER NOT NULL, peer TEXT NOT NULL, study BLOB NOT NULL
) STRICT;
CREATE INDEX runs_of ON runs (peer, at);
";

/// From layout 2. The peer of a release is the viewer of the debits that the same study made of this party's
/// data; where it made none it is unknown (''), and a bar then holds towards everybody. What was reopened
/// counts as allowed, so it comes before what was not. A drawer kept no outcome: where it had opened its
/// noise the release counts as ended.
const FROM_2: &str = "
DROP INDEX debits_of;
ALTER TABLE debits RENAME TO old_debits;
ALTER TABLE answers RENAME TO old_answers;
ALTER TABLE transcripts RENAME TO old_transcripts;
ALTER TABLE bars RENAME TO old_bars;
ALTER TABLE outputs RENAME TO old_outputs;
";

const COPY: &str = "
CREATE TEMP TABLE told AS SELECT release, max(lineage) AS lineage, coalesce((SELECT max(viewer) FROM \
old_debits AS own
    WHERE own.study = old_debits.study AND own.protects = 1), '') AS peer FROM old_debits GROUP BY release;
INSERT INTO debits (row, at, release, attempt, lineage, viewer, peer, study, my_tag, peer_tag, rho, budget, \
protects, delta)
    SELECT row, at, release, attempt, lineage, viewer,
    CASE protects WHEN 1 THEN viewer ELSE (SELECT peer FROM told WHERE told.release = old_debits.release) END,
    study, my_tag, peer_tag, rho, budget, protects, delta FROM old_debits ORDER BY row;
INSERT INTO answers (study, program, my_tag, peer_tag, party, at, report)
    SELECT study, program, my_tag, peer_tag, party, at, report FROM old_answers ORDER BY at, rowid;
CREATE TEMP TABLE again AS SELECT old.release, attempt, at, coalesce(peer, '') AS peer, coalesce(lineage, \
'') AS lineage
    FROM reopened AS old LEFT JOIN told USING (release);
CREATE TEMP VIEW transcripts_then AS SELECT old.release, attempt, side, stage, coalesce(peer, '') AS peer,
    coalesce(lineage, '') AS lineage, at, record, old.rowid AS place,
    EXISTS (SELECT 1 FROM again WHERE again.release = old.release AND again.attempt = old.attempt) AS lifted
    FROM old_transcripts AS old LEFT JOIN told USING (release);
CREATE TEMP VIEW bars_then AS SELECT row, at, coalesce(peer, '') AS peer, coalesce(lineage, '') AS lineage, \
old.release,
    attempt, reason, EXISTS (SELECT 1 FROM again WHERE again.release = old.release AND again.attempt = \
    old.attempt) AS lifted
    FROM old_bars AS old LEFT JOIN told USING (release);
INSERT INTO transcripts (release, attempt, side, stage, peer, lineage, at, record)
    SELECT release, attempt, side, stage, peer, lineage, at, record FROM transcripts_then WHERE lifted ORDER \
    BY at, place;
INSERT INTO bars (at, kind, peer, lineage, release, attempt, reason)
    SELECT at, 'noise', peer, lineage, release, attempt, reason FROM bars_then WHERE lifted ORDER BY row;
INSERT INTO allows (at, peer, lineage, bars, transcripts, reason) SELECT max(at), peer, lineage,
    (SELECT coalesce(max(row), 0) FROM bars), (SELECT coalesce(max(row), 0) FROM transcripts), 'reopened'
    FROM again GROUP BY peer, lineage;
INSERT INTO transcripts (release, attempt, side, stage, peer, lineage, at, record)
    SELECT release, attempt, side, stage, peer, lineage, at, record FROM transcripts_then WHERE NOT lifted
    ORDER BY at, place;
INSERT INTO bars (at, kind, peer, lineage, release, attempt, reason)
    SELECT at, 'noise', peer, lineage, release, attempt, reason FROM bars_then WHERE NOT lifted ORDER BY row;
INSERT INTO attempts (release, attempt, peer, at, reason) SELECT old.release, attempt + 1, coalesce(peer, \
''), at, reason
    FROM reopened AS old LEFT JOIN told USING (release) ORDER BY at, old.rowid;
INSERT INTO outputs (release, attempt, peer, at, outputs) SELECT old.release, attempt, coalesce(peer, ''), \
at, outputs
    FROM old_outputs AS old LEFT JOIN told USING (release) ORDER BY at, old.rowid;
INSERT INTO outputs (release, attempt, peer, at, outputs) SELECT release, attempt, peer, at, '' FROM \
transcripts
    WHERE side = 'drawer' AND stage = 3;
DROP VIEW transcripts_then;
DROP VIEW bars_then;
DROP TABLE again;
DROP TABLE told;
DROP TABLE old_debits;
DROP TABLE old_answers;
DROP TABLE old_transcripts;
DROP TABLE old_bars;
DROP TABLE old_outputs;
DROP TABLE reopened;
";

/// Fills an empty file.
pub(super) fn create(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(&format!(
        "BEGIN; {SETTINGS} {SCHEMA} {HOLDING} {GOVERNING} {} COMMIT;",
        triggers(&GROW)
    ))?;
    let key = *base::Seed::from_system().expose();
    connection.execute("INSERT INTO settings VALUES ('data key', ?1)", [&key[..]])?;
    connection.pragma_update(None, "user_version", VERSION)
}

/// Brings a file of layout 1 to 4 up to this one, in one step. What was in it becomes the beginning of the
/// chains.
pub(super) fn update(connection: &Connection) -> Result<(), rusqlite::Error> {
    let write = rusqlite::Transaction::new_unchecked(connection, rusqlite::TransactionBehavior::Immediate)?;
    let version: i32 = write.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // Another process may have done it meanwhile.
    if version < VERSION {
        if version >= 3 {
            if version == 3 {
                // Every viewer's release had a debit of its own.
                write.execute_batch(
                    "ALTER TABLE debits ADD COLUMN tau TEXT; ALTER TABLE allows ADD COLUMN numbers INTEGER",
                )?;
                write.execute_batch(HOLDING)?;
                write.execute_batch(&triggers(&["voids", "sent"]))?;
            }
            write.execute_batch(
                "ALTER TABLE debits ADD COLUMN period INTEGER; ALTER TABLE debits ADD COLUMN period_budget \
                 TEXT",
            )?;
            write.execute_batch(GOVERNING)?;
            write.execute_batch(&triggers(&["successions", "signatures", "runs"]))?;
        } else {
            if version == 1 {
                // Until then nothing was charged a delta.
                write.execute_batch("ALTER TABLE debits ADD COLUMN delta TEXT NOT NULL DEFAULT '0'")?;
            }
            write.execute_batch(FROM_2)?;
            write.execute_batch(SCHEMA)?;
            write.execute_batch(COPY)?;
            write.execute_batch(HOLDING)?;
            write.execute_batch(GOVERNING)?;
            write.execute_batch(&triggers(&GROW))?;
            chain::link_all(&write)?;
        }
        write.pragma_update(None, "user_version", VERSION)?;
    }
    write.commit()
}

/// The first trigger that keeps a table from anything but growing and is not there.
pub(super) fn missing_trigger(connection: &Connection) -> Result<Option<String>, rusqlite::Error> {
    let there = "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'trigger' AND name = ?1 \
                 AND sql LIKE '%RAISE(ABORT%')";
    let mut select = connection.prepare(there)?;
    for name in GROW.iter().flat_map(|table| ["UPDATE", "DELETE"].map(|verb| format!("{table}_{verb}"))) {
        if !select.query_row([&name], |row| row.get::<_, bool>(0))? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn triggers(tables: &[&str]) -> String {
    let trigger = |table: &str, verb: &str| {
        format!(
            "CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN \
             SELECT RAISE(ABORT, 'the ledger only grows'); END;"
        )
    };
    tables.iter().flat_map(|t| [trigger(t, "UPDATE"), trigger(t, "DELETE")]).collect()
}
