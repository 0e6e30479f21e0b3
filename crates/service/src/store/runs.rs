//! Runs of proposals: what the service's own process of a run is at, what it said, and what it left; and
//! what of the outbox waits.

use super::studies::{OutboxRow, SERVICE, Speaker, failed, outbox_row, say_in};
use super::{RecordedAct, Store, write_down};
use base::Error;
use net::KeyFingerprint;
use rusqlite::{OptionalExtension, Row, params};
use statements::{ProposalId, ProposalRecord, RunEnd, RunOffer, Said, StatementHead};

/// Lines that are kept of a run.
const LINES: u32 = 1_000;

/// A run, as this organisation's service has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Of which proposal.
    pub proposal: ProposalId,
    /// Its number, from 1.
    pub run: u32,
    /// The own port of the run; 0 where the peer listens.
    pub port: u16,
    /// When this organisation was ready: milliseconds since 1970.
    pub made_ms: u64,
    /// When its process began.
    pub begun_ms: Option<u64>,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// `answered`, `stored`, `failed` or `stopped`.
    pub outcome: Option<String>,
    /// Kind of the error (`docs/cli.md`).
    pub kind: Option<String>,
    /// Its code.
    pub code: Option<String>,
    /// Its message: for people of this organisation alone.
    pub message: Option<String>,
}

/// What a run left here that no peer is told, and when the next one begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLeft<'a> {
    /// The message of its error.
    pub message: Option<&'a str>,
    /// Files of a report, by name.
    pub files: &'a [(String, Vec<u8>)],
    /// Why no run begins by itself until a person says so.
    pub held: Option<&'a str>,
    /// Not before this time does the next run begin: milliseconds since 1970.
    pub next_ms: u64,
}

/// A line that the process of a run printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunLine {
    /// Later ones have larger ones.
    pub row: u64,
    /// When: milliseconds since 1970.
    pub at_ms: u64,
    /// JSON, as `tacit run --events` prints it.
    pub line: String,
}

/// A file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// Of which run.
    pub run: u32,
    /// When it was stored: milliseconds since 1970.
    pub at_ms: u64,
    /// Its bytes.
    pub content: Vec<u8>,
}

impl Store {
    /// Says that this organisation can begin a run, and keeps its row.
    ///
    /// # Errors
    /// As [`Store::say`].
    pub fn offer_run(
        &self,
        speaker: Speaker<'_>,
        id: &ProposalId,
        offer: RunOffer,
    ) -> Result<ProposalRecord, Error> {
        let known = self.known(id)?;
        self.within_one(|write| {
            let record = say_in(write, &speaker, id, known.as_deref(), Said::Ready(offer))?;
            let sql = "INSERT INTO runs (proposal, run, port, made_ms) VALUES (?1, ?2, ?3, ?4)";
            let values = params![id.0, offer.run, offer.port, speaker.at_ms.cast_signed()];
            write.execute(sql, values).map_err(failed)?;
            Ok(record)
        })
    }

    /// Says that the own process of a run runs: before it is started.
    ///
    /// # Errors
    /// As [`Store::say`].
    pub fn start_run(
        &self,
        speaker: Speaker<'_>,
        id: &ProposalId,
        run: u32,
        nonces: Vec<[u8; 16]>,
    ) -> Result<ProposalRecord, Error> {
        let known = self.known(id)?;
        self.within_one(|write| {
            let record = say_in(write, &speaker, id, known.as_deref(), Said::Started { run, nonces })?;
            let sql = "UPDATE runs SET begun_ms = ?3 WHERE proposal = ?1 AND run = ?2";
            write.execute(sql, params![id.0, run, speaker.at_ms.cast_signed()]).map_err(failed)?;
            Ok(record)
        })
    }

    /// Keeps that a run is over here and what it left, all or nothing, whatever may be said of it now:
    /// what a peer says or does takes nobody's report. False where it was over.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_run(
        &self,
        at_ms: u64,
        record: &ProposalRecord,
        end: &RunEnd,
        left: &RunLeft<'_>,
    ) -> Result<bool, Error> {
        let (id, at) = (record.id(), at_ms.cast_signed());
        let done = self.within(|write| -> Result<Option<()>, Error> {
            // A copy that was put back lacks the row of a run that was said since.
            let sql = "INSERT INTO runs (proposal, run, port, made_ms, ended_ms, outcome, kind, code, \
                       message) VALUES (?1, ?2, 0, ?3, ?3, ?4, ?5, ?6, ?7) \
                       ON CONFLICT (proposal, run) DO UPDATE SET ended_ms = ?3, outcome = ?4, \
                       kind = ?5, code = ?6, message = ?7 WHERE ended_ms IS NULL";
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let outcome = end.outcome.name();
            let values = params![id.0, end.run, at, outcome, some(&end.kind), some(&end.code), left.message];
            if write.execute(sql, values).map_err(failed)? == 0 {
                return Ok(None);
            }
            // What a person, or a look, held meanwhile stays held.
            let hold = "UPDATE proposals SET next_ms = ?3, held = CASE WHEN ?4 AND open \
                        AND held IN ('stopped', 'told') THEN held ELSE ?2 END WHERE id = ?1";
            let is_open = !end.outcome.has_answer();
            let values = params![id.0, left.held, left.next_ms.cast_signed(), is_open];
            write.execute(hold, values).map_err(failed)?;
            let (to, at_s) = (record.study().full(), at_ms / 1_000);
            write_down(write, &RecordedAct { by: SERVICE, what: outcome, to: &to, at: at_s })?;
            for (name, content) in left.files {
                let sql = "INSERT INTO report_files (proposal, name, run, at_ms, content) \
                           VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (proposal, name) DO UPDATE \
                           SET run = ?3, at_ms = ?4, content = ?5";
                write.execute(sql, params![id.0, name, end.run, at, content]).map_err(failed)?;
            }
            Ok(Some(()))
        })?;
        self.ring();
        Ok(done.is_some())
    }

    /// The runs of a proposal, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn runs(&self, id: &ProposalId) -> Result<Vec<RunRow>, Error> {
        let sql = format!("SELECT {RUN} FROM runs WHERE proposal = ?1 ORDER BY run");
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([id.0], run_row)?.collect())
    }

    /// Keeps that the own process of a run computes.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn computes(&self, id: &ProposalId, run: u32) -> Result<(), Error> {
        let sql = "UPDATE runs SET computed = 1 WHERE proposal = ?1 AND run = ?2";
        self.change(|write| write.execute(sql, params![id.0, run]).map(drop))
    }

    /// How many runs of a proposal the own process has computed in.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn computed_runs(&self, id: &ProposalId) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM runs WHERE proposal = ?1 AND computed";
        self.read(|connection| connection.query_row(sql, [id.0], |row| row.get::<_, i64>(0)))
            .map(i64::unsigned_abs)
    }

    /// The runs that this organisation was ready for and that are not over, the one that waits longest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn open_runs(&self) -> Result<Vec<RunRow>, Error> {
        let sql = format!("SELECT {RUN} FROM runs WHERE ended_ms IS NULL ORDER BY made_ms, proposal");
        self.read(|connection| connection.prepare_cached(&sql)?.query_map([], run_row)?.collect())
    }

    /// Keeps a line of a run, and of its lines the newest 1,000.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn keep_line(&self, id: &ProposalId, run: u32, at_ms: u64, line: &str) -> Result<(), Error> {
        self.change(|write| {
            let sql = "INSERT INTO run_lines (proposal, run, at_ms, line) VALUES (?1, ?2, ?3, ?4)";
            write.execute(sql, params![id.0, run, at_ms.cast_signed(), line])?;
            let sql = "DELETE FROM run_lines WHERE proposal = ?1 AND run = ?2 AND row <= (SELECT row FROM \
                       run_lines WHERE proposal = ?1 AND run = ?2 ORDER BY row DESC LIMIT 1 OFFSET ?3)";
            write.execute(sql, params![id.0, run, LINES]).map(drop)
        })
    }

    /// Lines of a run after a row, oldest first; the newest `most` of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lines(&self, id: &ProposalId, run: u32, after: u64, most: u32) -> Result<Vec<RunLine>, Error> {
        let sql = "SELECT row, at_ms, line FROM (SELECT row, at_ms, line FROM run_lines WHERE proposal = ?1 \
                   AND run = ?2 AND row > ?3 ORDER BY row DESC LIMIT ?4) ORDER BY row";
        self.read(|connection| {
            let line = |row: &Row<'_>| {
                let number = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
                Ok(RunLine { row: number(0)?, at_ms: number(1)?, line: row.get(2)? })
            };
            let values = params![id.0, run, after.cast_signed(), most];
            connection.prepare_cached(sql)?.query_map(values, line)?.collect()
        })
    }

    /// A file of a proposal's report: `report.json`, `report.html`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn report_file(&self, id: &ProposalId, name: &str) -> Result<Option<ReportFile>, Error> {
        let sql = "SELECT run, at_ms, content FROM report_files WHERE proposal = ?1 AND name = ?2";
        self.read(|connection| {
            let file = |row: &Row<'_>| {
                let at_ms = row.get::<_, i64>(1)?.unsigned_abs();
                Ok(ReportFile { run: row.get(0)?, at_ms, content: row.get(2)? })
            };
            connection.query_row(sql, params![id.0, name], file).optional()
        })
    }

    /// What a peer has not acknowledged yet, oldest first, at most so many; nothing about `but`.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn unsent(
        &self,
        peer: KeyFingerprint,
        but: &[ProposalId],
        most: u32,
    ) -> Result<Vec<OutboxRow>, Error> {
        let sql = "SELECT peer, proposal, number, digest, had_ms, refused FROM outbox WHERE peer = ?1 \
                   AND had_ms IS NULL AND refused IS NULL \
                   AND lower(hex(proposal)) NOT IN (SELECT value FROM json_each(?3)) ORDER BY row LIMIT ?2";
        let but: Vec<String> = but.iter().map(|id| base::hex(&id.0)).collect();
        let values = params![peer.bytes(), most, serde_json::Value::from(but).to_string()];
        self.read(|connection| connection.prepare_cached(sql)?.query_map(values, outbox_row)?.collect())
    }

    /// A statement as it is sent.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn statement(&self, digest: &[u8; 32]) -> Result<Option<Vec<u8>>, Error> {
        let sql = "SELECT statement FROM statements WHERE digest = ?1";
        self.read(|connection| connection.query_row(sql, [digest], |row| row.get(0)).optional())
    }

    /// A peer has acknowledged a statement. Whether it waited for that.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn had(&self, peer: KeyFingerprint, digest: &[u8; 32], at_ms: u64) -> Result<bool, Error> {
        let sql = "UPDATE outbox SET had_ms = ?3 WHERE peer = ?1 AND digest = ?2 AND had_ms IS NULL";
        let values = params![peer.bytes(), digest, at_ms.cast_signed()];
        self.change(|write| write.execute(sql, values).map(|rows| rows == 1))
    }

    /// A peer has refused a statement for good: it is not sent again, and shown with the code.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn not_had(&self, peer: KeyFingerprint, digest: &[u8; 32], code: &str) -> Result<(), Error> {
        let sql = "UPDATE outbox SET refused = ?3 WHERE peer = ?1 AND digest = ?2 AND had_ms IS NULL";
        self.change(|write| write.execute(sql, params![peer.bytes(), digest, code]).map(drop))
    }

    /// A peer says that of this organisation's chain about a proposal it has so many statements: the others
    /// are sent again.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn send_again(&self, peer: KeyFingerprint, id: &ProposalId, from: u32) -> Result<bool, Error> {
        let sql = "UPDATE outbox SET had_ms = NULL, refused = NULL WHERE peer = ?1 AND proposal = ?2 \
                   AND number >= ?3 AND (had_ms IS NOT NULL OR refused IS NOT NULL)";
        let values = params![peer.bytes(), id.0, from];
        let some = self.change(|write| write.execute(sql, values).map(|rows| rows > 0))?;
        if some {
            self.ring();
        }
        Ok(some)
    }

    /// Where the chains of all parties stand in the open proposals that a peer takes part in: what two sides
    /// compare when they meet. The newest `most` proposals.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn heads(
        &self,
        peer: KeyFingerprint,
        most: u32,
    ) -> Result<Vec<(ProposalId, Vec<StatementHead>)>, Error> {
        let open = "SELECT id FROM proposals WHERE open AND row IN (SELECT proposal FROM parties \
                    WHERE party = ?1) ORDER BY row DESC LIMIT ?2";
        let ids: Vec<ProposalId> = self.read(|connection| {
            let mut query = connection.prepare_cached(open)?;
            query.query_map(params![peer.bytes(), most], |row| row.get(0).map(ProposalId))?.collect()
        })?;
        ids.into_iter().map(|id| Ok((id, self.heads_of(&id)?))).collect()
    }

    /// Where the chains about one proposal stand; no statement is read for it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn heads_of(&self, id: &ProposalId) -> Result<Vec<StatementHead>, Error> {
        let heads = "SELECT author, number, digest FROM statements AS one WHERE proposal = ?1 AND number = \
                     (SELECT max(number) FROM statements WHERE proposal = ?1 AND author = one.author) \
                     GROUP BY author ORDER BY author";
        self.read(|connection| {
            let head = |row: &Row<'_>| {
                let author = KeyFingerprint::from_bytes(row.get(0)?);
                Ok(StatementHead { author, count: row.get::<_, u32>(1)? + 1, digest: row.get(2)? })
            };
            connection.prepare_cached(heads)?.query_map([id.0], head)?.collect()
        })
    }

    /// A third party of whom a peer has another statement than this store, by how far it says to have all
    /// chains; none: nobody, as far as both have them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_otherwise(
        &self,
        id: &ProposalId,
        peer: KeyFingerprint,
        heads: &[StatementHead],
    ) -> Result<Option<KeyFingerprint>, Error> {
        let sql =
            "SELECT max(digest = ?4) FROM statements WHERE proposal = ?1 AND author = ?2 AND number = ?3";
        self.read(|connection| {
            let mut query = connection.prepare_cached(sql)?;
            for head in heads.iter().filter(|head| head.author != peer && head.count > 0) {
                let values = params![id.0, head.author.bytes(), head.count - 1, head.digest];
                if query.query_row(values, |row| row.get::<_, Option<bool>>(0))? == Some(false) {
                    return Ok(Some(head.author));
                }
            }
            Ok(None)
        })
    }

    /// A number that changes when another process, such as `tacit service propose`, has written to the store.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn version(&self) -> Result<i64, Error> {
        self.read(|connection| connection.pragma_query_value(None, "data_version", |row| row.get(0)))
    }
}

const RUN: &str = "proposal, run, port, made_ms, begun_ms, ended_ms, outcome, kind, code, message";

fn run_row(row: &Row<'_>) -> Result<RunRow, rusqlite::Error> {
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(|time| time.map(i64::unsigned_abs));
    Ok(RunRow {
        proposal: ProposalId(row.get(0)?),
        run: row.get(1)?,
        port: row.get(2)?,
        made_ms: time(3)?.unwrap_or_default(),
        begun_ms: time(4)?,
        ended_ms: time(5)?,
        outcome: row.get(6)?,
        kind: row.get(7)?,
        code: row.get(8)?,
        message: row.get(9)?,
    })
}
