//! What the ledger keeps besides debits: answers, outputs, transcripts of noise, and bars.

use super::{Bytes32, Ledger, file, hex, now};
use base::{Error, PartyId};
use release::choose::{Side, Transcript};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

/// Which answer: the same study and program on the same data, as this party saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerKey {
    /// Hash of the study.
    pub study: Bytes32,
    /// Hash of the program.
    pub program: Bytes32,
    /// Tag of this party's data.
    pub my_tag: Bytes32,
    /// Tag of the peer's data.
    pub peer_tag: Bytes32,
    /// Which party this is.
    pub party: PartyId,
}

/// How far a transcript is. A ledger holds at most one transcript per stage, and stages only go up: what was said once
/// (a seed, an index) cannot be said otherwise, by a second run of the same release either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The drawer's commitments are made.
    Committed,
    /// Both sides' seeds are there: the noise is fixed.
    Seeded,
    /// The index is named: from here on nothing resumes.
    Named,
    /// Accepted, or detected.
    Ended,
}

impl Stage {
    /// The stage of a transcript.
    #[must_use]
    pub fn of(transcript: &Transcript) -> Self {
        if transcript.outcome().is_some() {
            Self::Ended
        } else if transcript.index().is_some() {
            Self::Named
        } else if transcript.is_seeded() {
            Self::Seeded
        } else {
            Self::Committed
        }
    }
}

impl Ledger {
    /// Keeps the report of a finished study. The first one stays: a rerun that only the peer needed changes nothing.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn store_answer(&mut self, key: &AnswerKey, report_json: &str) -> Result<(), Error> {
        let sql = "INSERT OR IGNORE INTO answers VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values =
            params![key.study, key.program, key.my_tag, key.peer_tag, key.party.0, now(), report_json];
        let done = self.connection.execute(sql, values);
        done.map(|_| ()).map_err(|e| self.explain("keep the answer in", &e))
    }

    /// The report of a finished study: a rerun shows it instead of drawing new noise.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn answer(&self, key: &AnswerKey) -> Result<Option<String>, Error> {
        let sql = "SELECT report FROM answers WHERE study = ?1 AND program = ?2 AND my_tag = ?3 AND peer_tag = ?4 \
                   AND party = ?5";
        let values = params![key.study, key.program, key.my_tag, key.peer_tag, key.party.0];
        let found = self.connection.query_row(sql, values, |row| row.get(0)).optional();
        found.map_err(|e| self.explain("read", &e))
    }

    /// Keeps what a viewer's release gave, so that a job that dies later need not reveal it again.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn store_outputs(&mut self, release_id: &Bytes32, outputs: &[u128]) -> Result<(), Error> {
        let attempt = self.attempt(release_id)?;
        let texts: Vec<String> = outputs.iter().map(u128::to_string).collect();
        let values = params![release_id, attempt, now(), texts.join(" ")];
        let done = self.connection.execute("INSERT INTO outputs VALUES (?1, ?2, ?3, ?4)", values);
        done.map(|_| ()).map_err(|e| self.explain("keep the outputs in", &e))
    }

    /// What a viewer's release gave, if it ended well.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn outputs(&self, release_id: &Bytes32) -> Result<Option<Vec<u128>>, Error> {
        let attempt = self.attempt(release_id)?;
        let sql = "SELECT outputs FROM outputs WHERE release = ?1 AND attempt = ?2";
        let found =
            self.connection.query_row(sql, params![release_id, attempt], |row| row.get::<_, String>(0));
        let Some(text) = found.optional().map_err(|e| self.explain("read", &e))? else { return Ok(None) };
        let outputs: Result<Vec<u128>, _> = text.split_whitespace().map(str::parse).collect();
        outputs.map(Some).map_err(|_| Error::input("the outputs in the ledger are damaged"))
    }

    /// Keeps a transcript at its stage. On return it is on stable storage.
    ///
    /// # Errors
    /// When this attempt of the release has a transcript at this stage or a later one; when the ledger cannot be written.
    pub fn save_transcript(
        &mut self,
        release_id: &Bytes32,
        side: Side,
        transcript: &Transcript,
    ) -> Result<(), Error> {
        let record =
            serde_json::to_string(transcript).map_err(|e| Error::misuse(format!("a transcript: {e}")))?;
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "keep the noise transcript in", &e);
        let stage = Stage::of(transcript) as u32;
        let write =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let attempt = attempt(&write, release_id).map_err(explain)?;
        let sql = "SELECT max(stage) FROM transcripts WHERE release = ?1 AND attempt = ?2 AND side = ?3";
        let last =
            write.query_row(sql, params![release_id, attempt, name(side)], |r| r.get::<_, Option<u32>>(0));
        if last.map_err(explain)?.is_some_and(|last| last >= stage) {
            return Err(Error::input(
                "another run took this release further meanwhile; end one of the two runs and start again",
            ));
        }
        let values = params![release_id, attempt, name(side), stage, now(), record];
        write.execute("INSERT INTO transcripts VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// The latest transcript of this attempt of a release.
    ///
    /// # Errors
    /// When the ledger cannot be read, or what it holds is damaged.
    pub fn transcript(&self, release_id: &Bytes32, side: Side) -> Result<Option<Transcript>, Error> {
        self.transcript_where(release_id, side, "stage >= ?4", 0)
    }

    /// The transcript of this attempt of a release at one stage.
    ///
    /// # Errors
    /// As [`Ledger::transcript`].
    pub fn transcript_at(
        &self,
        release_id: &Bytes32,
        side: Side,
        stage: Stage,
    ) -> Result<Option<Transcript>, Error> {
        self.transcript_where(release_id, side, "stage = ?4", stage as u32)
    }

    fn transcript_where(
        &self,
        release_id: &Bytes32,
        side: Side,
        condition: &str,
        stage: u32,
    ) -> Result<Option<Transcript>, Error> {
        let attempt = self.attempt(release_id)?;
        let sql = format!(
            "SELECT record FROM transcripts WHERE release = ?1 AND attempt = ?2 AND side = ?3 AND {condition} \
             ORDER BY stage DESC LIMIT 1"
        );
        let values = params![release_id, attempt, name(side), stage];
        let found = self.connection.query_row(&sql, values, |row| row.get::<_, String>(0)).optional();
        let text = found.map_err(|e| self.explain("read", &e))?;
        let parse = |text: String| serde_json::from_str(&text);
        text.map(parse).transpose().map_err(|_| Error::input("the noise transcript in the ledger is damaged"))
    }

    /// Bars a release until both operators reopen it. The first reason stays.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn bar(&mut self, release_id: &Bytes32, reason: &str) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "bar a release in", &e);
        let write =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let attempt = attempt(&write, release_id).map_err(explain)?;
        if bar(&write, release_id, attempt).map_err(explain)?.is_none() {
            let sql = "INSERT INTO bars (at, release, attempt, reason) VALUES (?1, ?2, ?3, ?4)";
            write.execute(sql, params![now(), release_id, attempt, reason]).map_err(explain)?;
        }
        write.commit().map_err(explain)
    }

    /// Why a release is barred, if it is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn barred(&self, release_id: &Bytes32) -> Result<Option<String>, Error> {
        let attempt = self.attempt(release_id)?;
        bar(&self.connection, release_id, attempt).map_err(|e| self.explain("read", &e))
    }

    /// Gives up the noise of a release that did not end: its next run draws new noise and is charged again. Both
    /// operators have to do it, since neither ledger takes up noise that it does not know.
    ///
    /// # Errors
    /// When the release is unknown here, or ended well; when the ledger cannot be written.
    pub fn reopen(&mut self, release_id: &Bytes32, reason: &str) -> Result<(), Error> {
        if self.outputs(release_id)?.is_some() {
            return Err(Error::input(
                "this release ended well and its answer is kept; there is nothing to reopen",
            ));
        }
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "reopen a release in", &e);
        let write =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(explain)?;
        let attempt = attempt(&write, release_id).map_err(explain)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM transcripts WHERE release = ?1 AND attempt = ?2) \
                   OR EXISTS (SELECT 1 FROM bars WHERE release = ?1 AND attempt = ?2)";
        if !write.query_row(sql, params![release_id, attempt], |row| row.get(0)).map_err(explain)? {
            return Err(Error::input(format!(
                "release {} has not begun in this ledger; there is nothing to reopen",
                hex(release_id)
            )));
        }
        let values = params![release_id, attempt, now(), reason];
        write.execute("INSERT INTO reopened VALUES (?1, ?2, ?3, ?4)", values).map_err(explain)?;
        write.commit().map_err(explain)
    }

    fn attempt(&self, release_id: &Bytes32) -> Result<u32, Error> {
        attempt(&self.connection, release_id).map_err(|e| self.explain("read", &e))
    }
}

/// How often a release was reopened.
pub(super) fn attempt(connection: &Connection, release_id: &Bytes32) -> Result<u32, rusqlite::Error> {
    connection.query_row("SELECT count(*) FROM reopened WHERE release = ?1", [release_id], |row| row.get(0))
}

pub(super) fn bar(
    connection: &Connection,
    release_id: &Bytes32,
    attempt: u32,
) -> Result<Option<String>, rusqlite::Error> {
    let sql = "SELECT reason FROM bars WHERE release = ?1 AND attempt = ?2 ORDER BY row LIMIT 1";
    connection.query_row(sql, params![release_id, attempt], |row| row.get(0)).optional()
}

/// The error of a barred release, with the command that reopens it; LEDGER is the operator's own file.
pub(crate) fn barred_error(release_id: &Bytes32, reason: &str) -> Error {
    Error::refused(format!(
        "this release is barred ({reason}); when both operators agree to try again, with new noise and a new charge, \
         each runs: tacit ledger reopen LEDGER {} --reason \"...\"",
        hex(release_id)
    ))
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Drawer => "drawer",
        Side::Checker => "checker",
    }
}
