//! What the ledger keeps of releases besides debits: answers, outputs and transcripts of noise.

use super::{Bytes32, Ledger, PeerLineage, bars, begin, file, now};
use base::{Error, PartyId};
use release::choose::{CutAndChooseSide, Transcript};
use rusqlite::{Connection, OptionalExtension, params};

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

/// How far a transcript is. A ledger holds at most one transcript per stage, and stages only go up: what was
/// said once (a seed, an index) cannot be said otherwise, by a second run of the same release either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TranscriptStage {
    /// The drawer's commitments are made.
    Committed,
    /// Both sides' seeds are there: the noise is fixed.
    Seeded,
    /// The index is named: from here on nothing resumes.
    Named,
    /// Accepted, or detected.
    Ended,
}

impl TranscriptStage {
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
    /// Keeps the report of a finished study with these peers. The first one stays: a rerun that only a peer
    /// needed changes nothing.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn store_answer(&mut self, key: &AnswerKey, peers: &[&str], report_json: &str) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "keep the answer in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        if answer(&write, key).map_err(explain)?.is_some() {
            return Ok(());
        }
        let sql = "INSERT INTO answers (study, program, my_tag, peer_tag, party, at, report) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values =
            params![key.study, key.program, key.my_tag, key.peer_tag, key.party.0, now(), report_json];
        super::put(&write, "answers", sql, values, peers).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// The report of a finished study: a rerun shows it instead of drawing new noise.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn answer(&self, key: &AnswerKey) -> Result<Option<String>, Error> {
        answer(&self.connection, key).map_err(|e| self.explain("read", &e))
    }

    /// Whether there is an answer of a study on own data of this tag, whatever the others' were.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn has_answer(&self, study: &Bytes32, my_tag: &Bytes32, party: PartyId) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM answers WHERE study = ?1 AND my_tag = ?2 AND party = ?3)";
        let found = self.connection.query_row(sql, params![study, my_tag, party.0], |row| row.get(0));
        found.map_err(|e| self.explain("read", &e))
    }

    /// The newest answer that a version before peer-by-peer tags kept of a study on these data, with the key
    /// it is under: there this party's data had one tag towards everybody.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn old_answer(
        &self,
        study: &Bytes32,
        data_tag: &Bytes32,
        party: PartyId,
    ) -> Result<Option<(AnswerKey, String)>, Error> {
        let sql = "SELECT program, peer_tag, report FROM answers WHERE study = ?1 AND my_tag = ?2 AND party \
                   = ?3 ORDER BY row DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let (study, my_tag) = (*study, *data_tag);
            let key = AnswerKey { study, program: row.get(0)?, my_tag, peer_tag: row.get(1)?, party };
            Ok((key, row.get(2)?))
        };
        let found = self.connection.query_row(sql, params![study, data_tag, party.0], read).optional();
        found.map_err(|e| self.explain("read", &e))
    }

    /// Keeps how a release ended: at the viewer with what it gave, so that a job that dies later need not
    /// reveal it again; elsewhere with nothing. The first end stays. `peer` is the others' keys, a space
    /// between.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn store_outputs(
        &mut self,
        release_id: &Bytes32,
        attempt: u32,
        peer: &str,
        outputs: &[u128],
    ) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "keep the outputs in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM outputs WHERE release = ?1 AND attempt = ?2)";
        if write.query_row(sql, params![release_id, attempt], |row| row.get(0)).map_err(explain)? {
            return Ok(());
        }
        let texts: Vec<String> = outputs.iter().map(u128::to_string).collect();
        let values = params![release_id, attempt, peer, now(), texts.join(" ")];
        let sql = "INSERT INTO outputs (release, attempt, peer, at, outputs) VALUES (?1, ?2, ?3, ?4, ?5)";
        let peers: Vec<&str> = peer.split(' ').collect();
        super::put(&write, "outputs", sql, values, &peers).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// What a viewer's release gave, if it ended well.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn outputs(&self, release_id: &Bytes32) -> Result<Option<Vec<u128>>, Error> {
        let sql = "SELECT outputs FROM outputs WHERE release = ?1 ORDER BY attempt DESC LIMIT 1";
        let found = self.connection.query_row(sql, [release_id], |row| row.get::<_, String>(0));
        let Some(text) = found.optional().map_err(|e| self.explain("read", &e))? else { return Ok(None) };
        let outputs: Result<Vec<u128>, _> = text.split_whitespace().map(str::parse).collect();
        outputs.map(Some).map_err(|_| Error::input("the outputs in the ledger are damaged"))
    }

    /// Keeps a transcript at its stage. On return it is on stable storage. Of a viewer's seeds and index only
    /// where nothing bars the peer at that moment: runs that were begun together would give it as many tries.
    ///
    /// # Errors
    /// When this attempt of the release has a transcript at this stage or a later one;
    /// [`base::Fault::Refused`] when a viewer's is barred, or another one is under way; when the ledger
    /// cannot be written.
    pub fn save_transcript(
        &mut self,
        release_id: &Bytes32,
        side: CutAndChooseSide,
        towards: &PeerLineage,
        transcript: &Transcript,
    ) -> Result<(), Error> {
        let record =
            serde_json::to_string(transcript).map_err(|e| Error::misuse(format!("a transcript: {e}")))?;
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "keep the noise transcript in", &e);
        let stage = TranscriptStage::of(transcript) as u32;
        let write = begin(&mut self.connection).map_err(explain)?;
        let attempt = attempt(&write, release_id).map_err(explain)?;
        let sql = "SELECT max(stage) FROM transcripts WHERE release = ?1 AND attempt = ?2 AND side = ?3";
        let last =
            write.query_row(sql, params![release_id, attempt, name(side)], |r| r.get::<_, Option<u32>>(0));
        if last.map_err(explain)?.is_some_and(|last| last >= stage) {
            return Err(Error::input(
                "another run took this release further meanwhile; end one of the two runs and start again",
            ));
        }
        if side == CutAndChooseSide::Checker
            && [TranscriptStage::Seeded as u32, TranscriptStage::Named as u32].contains(&stage)
        {
            let barred = bars::standing(&write, towards, &[(*release_id, attempt)]).map_err(explain)?;
            if let Some(reason) = barred {
                return Err(bars::barred_error(path, towards, &reason));
            }
        }
        let PeerLineage { peer, lineage } = towards;
        let values = params![release_id, attempt, name(side), stage, peer, lineage, now(), record];
        let sql = "INSERT INTO transcripts (release, attempt, side, stage, peer, lineage, at, record) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        super::put(&write, "transcripts", sql, values, &[peer]).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// The latest transcript of this attempt of a release.
    ///
    /// # Errors
    /// When the ledger cannot be read, or what it holds is damaged.
    pub fn transcript(
        &self,
        release_id: &Bytes32,
        side: CutAndChooseSide,
    ) -> Result<Option<Transcript>, Error> {
        self.transcript_where(release_id, side, "stage >= ?4", 0)
    }

    /// The transcript of this attempt of a release at one stage.
    ///
    /// # Errors
    /// As [`Ledger::transcript`].
    pub fn transcript_at(
        &self,
        release_id: &Bytes32,
        side: CutAndChooseSide,
        stage: TranscriptStage,
    ) -> Result<Option<Transcript>, Error> {
        self.transcript_where(release_id, side, "stage = ?4", stage as u32)
    }

    fn transcript_where(
        &self,
        release_id: &Bytes32,
        side: CutAndChooseSide,
        condition: &str,
        stage: u32,
    ) -> Result<Option<Transcript>, Error> {
        let attempt = self.attempt(release_id)?;
        let sql = format!(
            "SELECT record FROM transcripts WHERE release = ?1 AND attempt = ?2 AND side = ?3 AND \
             {condition} ORDER BY stage DESC LIMIT 1"
        );
        let values = params![release_id, attempt, name(side), stage];
        let found = self.connection.query_row(&sql, values, |row| row.get::<_, String>(0)).optional();
        let text = found.map_err(|e| self.explain("read", &e))?;
        let parse = |text: String| serde_json::from_str(&text);
        text.map(parse).transpose().map_err(|_| Error::input("the noise transcript in the ledger is damaged"))
    }

    /// The present attempt of a release by cut-and-choose; 0 is the first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn attempt(&self, release_id: &Bytes32) -> Result<u32, Error> {
        attempt(&self.connection, release_id).map_err(|e| self.explain("read", &e))
    }
}

/// The present attempt of a release; 0 is the first.
pub(super) fn attempt(connection: &Connection, release_id: &Bytes32) -> Result<u32, rusqlite::Error> {
    let sql = "SELECT coalesce(max(attempt), 0) FROM attempts WHERE release = ?1";
    connection.query_row(sql, [release_id], |row| row.get(0))
}

fn answer(connection: &Connection, key: &AnswerKey) -> Result<Option<String>, rusqlite::Error> {
    let sql = "SELECT report FROM answers WHERE study = ?1 AND program = ?2 AND my_tag = ?3 AND peer_tag = \
               ?4 AND party = ?5";
    let values = params![key.study, key.program, key.my_tag, key.peer_tag, key.party.0];
    connection.query_row(sql, values, |row| row.get(0)).optional()
}

/// Why an attempt of a release is barred, if it is.
pub(super) fn bar(
    connection: &Connection,
    release_id: &Bytes32,
    attempt: u32,
) -> Result<Option<String>, rusqlite::Error> {
    let sql =
        "SELECT reason FROM bars WHERE kind = 'noise' AND release = ?1 AND attempt = ?2 ORDER BY row LIMIT 1";
    connection.query_row(sql, params![release_id, attempt], |row| row.get(0)).optional()
}

fn name(side: CutAndChooseSide) -> &'static str {
    match side {
        CutAndChooseSide::Drawer => "drawer",
        CutAndChooseSide::Checker => "checker",
    }
}
