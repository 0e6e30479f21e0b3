//! The privacy ledger: what was spent, on which data, for whom; and what a crash must not lose.
//!
//! A single SQLite file that only grows. Budgets are kept per lineage of the protected data and viewer's key,
//! over all studies and versions of the data. A debit is one transaction and on stable storage before the
//! call returns; the sums are exact rationals. The ledger of the party whose data are protected decides; the
//! viewer's only records.
//!
//! A *release* (one viewer's outputs of one study on given data) has *attempts*: attempt 0, and one more each
//! time one broke off whose index was named and the operators on both sides allow more with the peer. An
//! attempt is charged once, however often it is resumed, and has one transcript of noise per side, of which
//! every stage is kept.
//!
//! Rows that concern a peer are in a chain of hashes, whose head both sides sign and keep of each other.
//!
//! What is stored, what survives a crash and how to go on: `docs/protocols/ledger.md`.

mod afford;
mod agreed;
mod backup;
mod bars;
mod chain;
mod export;
mod file;
mod holding;
mod layout;
mod lineages;
mod paid;
mod peers;
mod promises;
mod records;
mod runs;
mod statement;
mod succession;
#[cfg(test)]
pub(crate) mod tests;

pub use afford::{MORE_BUDGET, shortfall};
use afford::{afford, afford_all};
pub use bars::allow_command;
pub use bars::{ATTEMPTS_AHEAD, PeerLineage, PeerRecord};
pub use bars::{barred_error, quoted};
pub use chain::{ChainHead, CheckedChain};
pub use export::{BarRecord, EXPORT_FORMAT, Export, VerifiedExport};
pub use holding::{HeldShare, ShareProgress};
pub use lineages::{JointSpending, MatchStart, StudySpending, ViewerSpending};
pub use paid::{
    DebitTerms, PAID_BYTES, PaymentProof, SignatureRow, SignedDebits, UNPAID, check_budgets, check_signatures,
};
pub use peers::{ChainMismatch, Held, RecoveredChain};
pub use records::{AnswerKey, TranscriptStage};
pub use statement::{STATEMENT_BYTES, Statement};

use base::{Error, PartyId, Seed, hex};
use data::RowStore;
use num_traits::{Signed, Zero};
use program::Viewer;
pub use release::Bytes32;
use release::Rational;
use release::rational::{shown, small};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use study::party::{AgreedBounds, Period};
use study::time::date;

/// How long a writer waits for another one.
const WAIT: Duration = Duration::from_secs(10);

/// An open ledger. Several may be open on one file, in one process or many; their writes exclude each other.
pub struct Ledger {
    connection: Connection,
    path: PathBuf,
    new: bool,
}

/// What one viewer's release is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Debit {
    /// Stable name of the protected data, over all its versions.
    pub lineage: String,
    /// The keys of those who see it, as the study names them, with a space between; [`PUBLIC`] among them
    /// where anybody may.
    pub viewer_key: String,
    /// The other parties' keys, likewise.
    pub peer_key: String,
    /// Hash of the study.
    pub study: Bytes32,
    /// Tag of this party's data ([`Ledger::data_tag`]).
    pub my_tag: Bytes32,
    /// Tag of the peer's data, as the peer gave it.
    pub peer_tag: Bytes32,
    /// Which release: [`release_id`] of one of candidates; of noise drawn inside, the name that all parties
    /// give it.
    pub release_id: Bytes32,
    /// zCDP charged; positive.
    pub rho: Rational,
    /// Most that all releases of this lineage to this viewer may be charged together.
    pub budget: Rational,
    /// Most that all releases of this lineage to all viewers may be charged together; none: no bound.
    pub total: Option<Rational>,
    /// Most that this viewer may be charged within any span of this length; none: no bound but the budget.
    pub period: Option<Period>,
    /// The probability, at most, that the rho does not hold: 0 for noise without tails cut off. Deltas add
    /// up.
    pub delta: Rational,
    /// Most that the deltas of this lineage to this viewer may come to.
    pub most_delta: Rational,
    /// How far, at most, the law of the noise is from the one that the rho is of. Distances add up.
    pub tau: Rational,
    /// Most that the study may be charged at all; none: no bound but those above.
    pub agreed: Option<AgreedBounds>,
    /// Whether this party's data are protected. `false`: this party is the viewer, and only records.
    pub protects: bool,
}

impl Debit {
    /// With whom and about which data it is.
    #[must_use]
    pub fn towards(&self) -> PeerLineage {
        PeerLineage { peer: self.peer_key.clone(), lineage: self.lineage.clone() }
    }

    /// What it spends, within a sentence.
    pub(crate) fn what(&self) -> String {
        match self.protects {
            true => format!("rho {} of lineage {}", shown(&self.rho), self.lineage),
            false => "this release, which charges nothing here,".to_owned(),
        }
    }
}

/// Among the viewers of a debit: anybody.
pub const PUBLIC: &str = "public";

/// One debit, for listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRow {
    /// Row number.
    pub row: u64,
    /// Seconds since 1970, UTC.
    pub at: u64,
    /// The release, 64 hex digits.
    pub release: String,
    /// Which attempt of the release: 0 for the first.
    pub attempt: u32,
    /// The protected data.
    pub lineage: String,
    /// The viewer's key.
    pub viewer_key: String,
    /// The other side's key: what `tacit ledger allow` takes.
    pub peer_key: String,
    /// Hash of the study, 64 hex digits.
    pub study: String,
    /// zCDP charged: a decimal where it is one, else `p/q`.
    pub rho: String,
    /// The budget at that time.
    pub budget: String,
    /// The bound of a period at that time, `0.5 in 90 days`.
    pub period: Option<String>,
    /// Delta charged, likewise.
    pub delta: String,
    /// zCDP charged, exactly: `1/10`.
    pub exact_rho: String,
    /// Delta charged, exactly.
    pub exact_delta: String,
    /// How far the law of the noise may be from the one that the rho is of, exactly.
    pub tau: String,
    /// Whether it counts against a budget here (`false`: this party was the viewer).
    pub protects: bool,
    /// Why this attempt was barred, if it was.
    pub barred: Option<String>,
    /// Whether this side's operator has lifted that since.
    pub lifted: bool,
    /// Whether it was given back: nobody can have seen what it was for.
    pub given_back: bool,
}

impl EntryRow {
    /// Whether it was taken over from what a peer gave back: of no one study, rho and delta of all.
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        self.study.bytes().all(|digit| digit == b'0')
    }
}

/// One stored answer, for listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRow {
    /// Seconds since 1970, UTC.
    pub at: u64,
    /// Hash of the study, 64 hex digits.
    pub study: String,
    /// Its name; empty where the stored report has none.
    pub name: String,
    /// Whether the study was without noise, so that no release was charged.
    pub exact: bool,
    /// Whether noised values were for this party.
    #[serde(default)]
    pub noised_view: bool,
    /// Whether anything was charged here, sizes of a match included.
    #[serde(default)]
    pub charged: bool,
}

/// The name of a data set that a peer is shown: a hash of the data's tag and of the peer's key, so that two
/// peers do not find out that they work with the same data.
#[must_use]
pub fn tag_towards(data_tag: &Bytes32, peer_key: &str) -> Bytes32 {
    let mut hasher = blake3::Hasher::new_derive_key("tacit data tag towards a peer 1");
    hasher.update(data_tag).update(peer_key.as_bytes());
    *hasher.finalize().as_bytes()
}

/// The identity of a release to `viewer`: study, data of all parties (by tag, in party order) and viewer. The
/// same study on the same data is the same release, so that nobody is charged or answered twice. Of two
/// parties both have the same tags, those that they told each other; among more the ids are of this party's
/// own ledger alone.
#[must_use]
pub fn release_id(study: &Bytes32, tags: &[Bytes32], viewer: Viewer) -> Bytes32 {
    let mut hasher = blake3::Hasher::new_derive_key("tacit release 1");
    hasher.update(study).update(&(tags.len() as u64).to_le_bytes());
    for tag in tags {
        hasher.update(tag);
    }
    hasher.update(&[viewer.number()]);
    *hasher.finalize().as_bytes()
}

/// Names an attempt of a release: what its noise is bound to.
#[must_use]
pub fn attempt_id(release: &Bytes32, attempt: u32) -> Bytes32 {
    blake3::derive_key("tacit attempt 1", &[&release[..], &attempt.to_le_bytes()].concat())
}

/// The identity of what a match shows one viewer of sizes: as [`release_id`], and never equal to one.
#[must_use]
pub fn match_id(study: &Bytes32, tags: &[Bytes32], viewer: PartyId) -> Bytes32 {
    blake3::derive_key("tacit match 1", &release_id(study, tags, viewer.into()))
}

/// What the sizes of a match that is begun once more are charged under.
#[must_use]
pub fn match_again_id(match_id: &Bytes32, number: u64) -> Bytes32 {
    blake3::derive_key("tacit match begun again 1", &[&match_id[..], &number.to_le_bytes()].concat())
}

/// A match of this study on these data, whoever sees its sizes.
#[must_use]
pub fn begun_id(study: &Bytes32, tags: &[Bytes32]) -> Bytes32 {
    blake3::derive_key("tacit match begun 1", &[&study[..], tags.as_flattened()].concat())
}

impl Ledger {
    /// Opens the ledger at `path`, or makes an empty one there. Its mode becomes 600.
    ///
    /// # Errors
    /// When the file is no ledger, is empty or damaged, was written by a newer version, is held by another
    /// process, or cannot be read or written; the text says what to do.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_waiting(path, WAIT)
    }

    /// Looks at the ledger at `path` as it is now: a copy in memory, so that whatever is done to it, the file
    /// stays as it is. Where there is no file it is an empty one, and [`Ledger::is_new`].
    ///
    /// # Errors
    /// As [`Ledger::open`]; when the folder is not there.
    pub fn look(path: &Path) -> Result<Self, Error> {
        let (connection, new) = file::look(path, WAIT)?;
        Ok(Self { connection, path: path.to_owned(), new })
    }

    fn open_waiting(path: &Path, wait: Duration) -> Result<Self, Error> {
        let (connection, new) = file::open(path, wait)?;
        Ok(Self { connection, path: path.to_owned(), new })
    }

    /// Whether this call made the file: with a mistyped path, budgets would start anew. Tell the operator.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.new
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A name for the data of a study: under a random key that never leaves this ledger. The same data always
    /// have the same tag here, and it says nothing about them to anybody else. What a peer is shown is
    /// [`tag_towards`] it; `keys` are those of all parties.
    ///
    /// Data that this ledger has an answer or a debit of by their name of before ([`RowStore::ordered_hash`])
    /// keep that name in this study, so that what was stored and paid is found.
    ///
    /// # Errors
    /// When the ledger or the data cannot be read.
    pub fn data_tag(&self, study: &Bytes32, keys: &[&str], data: &RowStore) -> Result<Bytes32, Error> {
        let key = self.key()?;
        let tag = *data.tag(&Seed::from_bytes(key).fork("rows of a data set"))?.as_bytes();
        let known = self.tags_of(study).map_err(|e| self.explain("read", &e))?;
        let names = |tag: &Bytes32| {
            known.contains(tag) || keys.iter().any(|key| known.contains(&tag_towards(tag, key)))
        };
        if known.is_empty() || names(&tag) {
            return Ok(tag);
        }
        let mut hasher = blake3::Hasher::new_keyed(&key);
        hasher.update(b"tacit data tag 1").update(data.ordered_hash()?.as_bytes());
        let before = *hasher.finalize().as_bytes();
        Ok(if names(&before) { before } else { tag })
    }

    /// The tags of this party's data, as they were told, under which a study was paid or answered.
    fn tags_of(&self, study: &Bytes32) -> Result<HashSet<Bytes32>, rusqlite::Error> {
        let sql =
            "SELECT my_tag FROM debits WHERE study = ?1 UNION SELECT my_tag FROM answers WHERE study = ?1";
        let mut query = self.connection.prepare(sql)?;
        query.query_map([study], |row| row.get(0))?.collect()
    }

    /// The seed of this party's dummies in one match: the same for the same study and the same data of all
    /// parties, so that a rerun shows the same sizes, and unrelated for any others; with `afresh`, for that
    /// beginning of the match alone. It never leaves this machine.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn dummies_seed(
        &self,
        study: &Bytes32,
        tags: &[Bytes32],
        afresh: Option<&MatchStart>,
    ) -> Result<Seed, Error> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key()?);
        hasher.update(b"tacit dummies seed 1").update(study);
        tags.iter().for_each(|tag| _ = hasher.update(tag));
        if let Some(begun) = afresh {
            hasher.update(&begun.number.to_le_bytes()).update(&begun.nonce);
        }
        Ok(Seed::from_bytes(*hasher.finalize().as_bytes()))
    }

    /// The random key that never leaves this ledger.
    fn key(&self) -> Result<Bytes32, Error> {
        let sql = "SELECT value FROM settings WHERE name = 'data key'";
        let key = self.connection.query_row(sql, [], |row| row.get::<_, Bytes32>(0));
        key.map_err(|e| self.explain("read", &e))
    }

    /// Charges a release, and returns the row. When this attempt of the release is charged already, with the
    /// same particulars, that row is returned and nothing is added. On return the row is on stable storage.
    ///
    /// # Errors
    /// When the budget does not allow it; when the release is barred; when the same release was charged with
    /// other particulars; when the ledger cannot be written. Nothing is charged then.
    pub fn debit(&mut self, debit: &Debit) -> Result<u64, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "debit", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let row = charge(&write, path, debit)?;
        write.commit().map_err(explain)?;
        Ok(row)
    }

    /// Whether [`Ledger::debit`] would succeed now; nothing is written.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn check_debit(&self, debit: &Debit) -> Result<(), Error> {
        check(debit)?;
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let attempt = self.next_attempt(&debit.release_id)?;
        match charged(&self.connection, debit, attempt).map_err(explain)? {
            Some(_) => Ok(()),
            None => afford(&self.connection, &self.path, debit),
        }
    }

    /// What releases of a lineage to a viewer were charged so far, exactly.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn spent(&self, lineage: &str, viewer_key: &str) -> Result<Rational, Error> {
        spent(&self.connection, "rho", lineage, viewer_key).map_err(|e| self.explain("read", &e))
    }

    /// What releases of a lineage to a viewer were charged of delta so far, exactly.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn spent_delta(&self, lineage: &str, viewer_key: &str) -> Result<Rational, Error> {
        spent(&self.connection, "delta", lineage, viewer_key).map_err(|e| self.explain("read", &e))
    }

    /// Whether this attempt of a release is charged already.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn is_charged(&self, debit: &Debit) -> Result<bool, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let attempt = records::attempt(&self.connection, &debit.release_id).map_err(explain)?;
        Ok(charged(&self.connection, debit, attempt).map_err(explain)?.is_some())
    }

    /// All debits, oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn entries(&self) -> Result<Vec<EntryRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS}, row, at, attempt, NOT ({VOIDED}) AS given_back FROM debits ORDER BY row"
        );
        let read = |row: &rusqlite::Row<'_>| {
            let debit = debit_of(row)?;
            let attempt: u32 = row.get("attempt")?;
            let (barred, lifted) = bars::of(&self.connection, &debit.towards(), &debit.release_id, attempt)?;
            Ok(EntryRow {
                row: row.get::<_, i64>("row")?.unsigned_abs(),
                at: row.get::<_, i64>("at")?.unsigned_abs(),
                release: hex(&debit.release_id),
                attempt,
                lineage: debit.lineage,
                viewer_key: debit.viewer_key,
                peer_key: debit.peer_key,
                study: hex(&debit.study),
                rho: shown(&debit.rho),
                budget: shown(&debit.budget),
                period: debit.period.as_ref().map(Period::words),
                delta: small(&debit.delta),
                exact_rho: debit.rho.to_string(),
                exact_delta: debit.delta.to_string(),
                tau: debit.tau.to_string(),
                protects: debit.protects,
                barred,
                lifted,
                given_back: row.get("given_back")?,
            })
        };
        self.listed(&sql, [], read)
    }

    /// All stored answers, oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn answers(&self) -> Result<Vec<AnswerRow>, Error> {
        let sql = format!(
            "SELECT at, study, report, EXISTS (SELECT 1 FROM debits WHERE debits.study = answers.study AND \
             delta = '0') AS released, EXISTS (SELECT 1 FROM debits WHERE debits.study = answers.study AND \
             protects = 1 AND {VOIDED}) AS charged FROM answers ORDER BY at, row"
        );
        let read = |row: &rusqlite::Row<'_>| {
            // The report may be one of another version: what it does not say stays out.
            let report: String = row.get("report")?;
            let report: serde_json::Value = serde_json::from_str(&report).unwrap_or_default();
            let noised_view = report["privacy"]["rho"] != "0";
            Ok(AnswerRow {
                at: row.get::<_, i64>("at")?.unsigned_abs(),
                study: hex(&row.get::<_, Bytes32>("study")?),
                name: report["study"]["name"].as_str().unwrap_or_default().to_owned(),
                exact: !noised_view && !row.get::<_, bool>("released")?,
                noised_view,
                charged: row.get("charged")?,
            })
        };
        self.listed(&sql, [], read)
    }

    /// All rows of a query.
    fn listed<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<Vec<T>, Error> {
        let query = self.connection.prepare(sql);
        let rows = query.and_then(|mut query| query.query_map(values, read)?.collect());
        rows.map_err(|e| self.explain("read", &e))
    }

    fn explain(&self, what: &str, error: &rusqlite::Error) -> Error {
        file::explain(&self.path, what, error)
    }
}

/// Shows where it is and nothing of what it holds.
impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A transaction that writes; another one waits for its end.
fn begin(connection: &mut Connection) -> Result<rusqlite::Transaction<'_>, rusqlite::Error> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// [`Ledger::debit`] within a transaction.
fn charge(write: &Connection, path: &Path, debit: &Debit) -> Result<u64, Error> {
    check(debit)?;
    let explain = |e: rusqlite::Error| file::explain(path, "debit", &e);
    let attempt = records::attempt(write, &debit.release_id).map_err(explain)?;
    if let Some(reason) = records::bar(write, &debit.release_id, attempt).map_err(explain)? {
        return Err(barred_error(path, &debit.towards(), &reason));
    }
    if let Some((row, recorded)) = charged(write, debit, attempt).map_err(explain)? {
        // The bounds may have been changed since; what was charged may not.
        let Debit { budget, total, most_delta, period, agreed, .. } = debit.clone();
        if (Debit { budget, total, most_delta, period, agreed, ..recorded }) != *debit {
            return Err(Error::misuse("this release was charged before with other particulars"));
        }
        return Ok(row);
    }
    afford(write, path, debit)?;
    record(write, debit, attempt).map(i64::unsigned_abs).map_err(explain)
}

fn check(debit: &Debit) -> Result<(), Error> {
    if debit.lineage.is_empty() || debit.viewer_key.is_empty() {
        return Err(Error::misuse("a debit names the lineage of the data and the viewer's key"));
    }
    if !debit.rho.is_positive()
        || debit.period.as_ref().is_some_and(|period| period.budget.is_negative())
        || [&debit.budget, &debit.delta, &debit.most_delta, &debit.tau].iter().any(|n| n.is_negative())
    {
        return Err(Error::misuse("a debit has a positive rho, and no negative delta or bound"));
    }
    Ok(())
}

/// Writes a row and its link in the chain of each peer that it concerns, in a transaction of the caller's.
/// Returns the row.
fn put(
    write: &Connection,
    table: &'static str,
    sql: &str,
    values: impl rusqlite::Params,
    peers: &[&str],
) -> Result<i64, rusqlite::Error> {
    write.execute(sql, values)?;
    let row = write.last_insert_rowid();
    peers.iter().try_for_each(|peer| chain::link(write, peer, table, row))?;
    Ok(row)
}

/// Writes a debit in a transaction of the caller's.
fn record(write: &Connection, debit: &Debit, attempt: u32) -> Result<i64, rusqlite::Error> {
    let sql = "INSERT INTO debits (at, release, attempt, lineage, viewer, peer, study, my_tag, peer_tag, \
               rho, budget, protects, delta, tau, period, period_budget) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, \
               ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";
    let values = params![
        now(),
        debit.release_id,
        attempt,
        debit.lineage,
        debit.viewer_key,
        debit.peer_key,
        debit.study,
        debit.my_tag,
        debit.peer_tag,
        debit.rho.to_string(),
        debit.budget.to_string(),
        debit.protects,
        debit.delta.to_string(),
        (!debit.tau.is_zero()).then(|| debit.tau.to_string()),
        debit.period.as_ref().map(|period| period.seconds.cast_signed()),
        debit.period.as_ref().map(|period| period.budget.to_string())
    ];
    let peers: Vec<&str> = debit.peer_key.split(' ').collect();
    put(write, "debits", sql, values, &peers)
}

/// Of debits: those that were not given back.
const VOIDED: &str = "row NOT IN (SELECT debit FROM voids)";

/// Of debits: those of what the viewer with the key in a parameter sees, under any key of its line.
fn sees(parameter: u8) -> String {
    succession::has_line("viewer", parameter)
}

/// Of debits: those of what the viewer with the key in a parameter can read: what it sees, and what anybody
/// may.
fn reads(parameter: u8) -> String {
    format!("({} OR instr(' ' || viewer || ' ', ' {PUBLIC} ') > 0)", sees(parameter))
}

/// The sum of a column, `rho` or `delta`.
fn spent(
    connection: &Connection,
    column: &str,
    lineage: &str,
    viewer: &str,
) -> Result<Rational, rusqlite::Error> {
    spent_on(connection, column, &reads(2), [lineage, viewer])
}

/// The same of the debits of a lineage that `whose` picks.
fn spent_on(
    connection: &Connection,
    column: &str,
    whose: &str,
    values: [&str; 2],
) -> Result<Rational, rusqlite::Error> {
    let sql =
        format!("SELECT {column} FROM debits WHERE lineage = ?1 AND {whose} AND protects = 1 AND {VOIDED}");
    sum(connection, &sql, &values, column)
}

/// The exact sum of a column of a query.
fn sum(
    connection: &Connection,
    sql: &str,
    values: &[&str],
    column: &str,
) -> Result<Rational, rusqlite::Error> {
    let mut query = connection.prepare(sql)?;
    let rows = query.query_map(rusqlite::params_from_iter(values), |row| rational_of(row, column))?;
    rows.sum_exactly()
}

/// Exact sums over fallible rows.
trait SumExactly {
    fn sum_exactly(self) -> Result<Rational, rusqlite::Error>;
}

impl<I: Iterator<Item = Result<Rational, rusqlite::Error>>> SumExactly for I {
    fn sum_exactly(mut self) -> Result<Rational, rusqlite::Error> {
        self.try_fold(Rational::zero(), |sum, next| Ok(sum + next?))
    }
}

const COLUMNS: &str = "release, lineage, viewer, peer, study, my_tag, peer_tag, rho, budget, protects, \
                       delta, tau, period, period_budget";

fn charged(
    connection: &Connection,
    debit: &Debit,
    attempt: u32,
) -> Result<Option<(u64, Debit)>, rusqlite::Error> {
    let sql =
        format!("SELECT {COLUMNS}, row FROM debits WHERE release = ?1 AND attempt = ?2 AND protects = ?3");
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>("row")?.unsigned_abs(), debit_of(row)?));
    connection.query_row(&sql, params![debit.release_id, attempt, debit.protects], read).optional()
}

fn debit_of(row: &rusqlite::Row<'_>) -> Result<Debit, rusqlite::Error> {
    Ok(Debit {
        lineage: row.get("lineage")?,
        viewer_key: row.get("viewer")?,
        peer_key: row.get("peer")?,
        study: row.get("study")?,
        my_tag: row.get("my_tag")?,
        peer_tag: row.get("peer_tag")?,
        release_id: row.get("release")?,
        rho: rational_of(row, "rho")?,
        budget: rational_of(row, "budget")?,
        total: None,
        period: match row.get::<_, Option<i64>>("period")? {
            Some(seconds) => {
                let budget = rational_of(row, "period_budget")?;
                Some(Period { seconds: seconds.unsigned_abs(), budget })
            }
            None => None,
        },
        delta: rational_of(row, "delta")?,
        most_delta: Rational::zero(),
        tau: match row.get_ref("tau")? {
            rusqlite::types::ValueRef::Null => Rational::zero(),
            _ => rational_of(row, "tau")?,
        },
        agreed: None,
        protects: row.get("protects")?,
    })
}

/// A rational from the text `p/q`. A sum must not silently leave one out, so any other text is an error.
fn rational_of(row: &rusqlite::Row<'_>, column: &str) -> Result<Rational, rusqlite::Error> {
    let text: String = row.get(column)?;
    let damaged =
        || rusqlite::Error::InvalidColumnName(format!("{column}: {text:?} is not a rational number"));
    text.parse().map_err(|_| damaged())
}

/// A time to the second: `2026-01-31T12:00:00Z`.
fn moment(at: i64) -> String {
    let second = at.rem_euclid(86_400);
    let (hours, minutes, seconds) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{}T{hours:02}:{minutes:02}:{seconds:02}Z", date(at))
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(i64::MAX))
}
