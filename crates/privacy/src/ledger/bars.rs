//! What broke off with a peer, and whether this side's operator allows more.
//!
//! Bars are kept under the peer's key and the lineage of this party's data, whatever study, title and version
//! of the data a release was of: all of these are for a peer to choose. They are lifted by this side's
//! operator alone.

use super::succession::{has_line, line};
use super::{BarRecord, Bytes32, Ledger, begin, file, moment, now, peers, records};
use base::Error;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

/// With whom, and about which of this party's data: what bars are kept under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLineage {
    /// The peer's key, as the study names it.
    pub peer: String,
    /// Stable name of this party's data, over all their versions.
    pub lineage: String,
}

/// How far from its own number of attempts a party follows its peer: each further one is new noise, charged
/// again.
pub const ATTEMPTS_AHEAD: u32 = 64;

/// Releases whose seeds were exchanged, and that never named an index, before a viewer asks its operator: by
/// leaving there a drawer picks among honest noises.
const UNNAMED: u32 = 2;

/// How many releases with a peer broke off so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerRecord {
    /// All, those that were lifted since included.
    pub releases: u32,
    /// Of these, after the index of the noise was named.
    pub after_index: u32,
    /// Of these, after they were paid for, with noise that nobody knows.
    pub after_payment: u32,
}

/// What a bar is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BarKind {
    /// A release that broke off.
    Noise,
    /// A peer whose ledger is not the one of before.
    Ledger,
}

impl BarKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Noise => "noise",
            Self::Ledger => "ledger",
        }
    }
}

/// Rows of `bars` and of `transcripts` up to which this side's operator has lifted what they bar.
struct Lifted {
    bars: i64,
    transcripts: i64,
}

fn lifted(connection: &Connection, towards: &PeerLineage) -> Result<Lifted, rusqlite::Error> {
    let sql = format!(
        "SELECT coalesce(max(bars), 0), coalesce(max(transcripts), 0) FROM allows WHERE peer IN {} AND \
         lineage IN (?2, '')",
        line(1)
    );
    connection.query_row(&sql, [&towards.peer, &towards.lineage], |row| {
        Ok(Lifted { bars: row.get(0)?, transcripts: row.get(1)? })
    })
}

/// The lineages on which an operator allowed a peer by name after a bar.
fn allowed(connection: &Connection, peer: &str, bar: i64) -> Result<Vec<String>, rusqlite::Error> {
    let sql = format!(
        "SELECT DISTINCT lineage FROM allows WHERE peer IN {} AND bars >= ?2 AND lineage <> '' ORDER BY \
         lineage",
        line(1)
    );
    let mut query = connection.prepare(&sql)?;
    let rows = query.query_map(params![peer, bar], |row| row.get(0))?;
    rows.collect()
}

impl Ledger {
    /// Bars all releases to and from a peer on a lineage until this side's operator allows more. Of one
    /// attempt the first reason stays.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn bar(&mut self, release_id: &Bytes32, towards: &PeerLineage, reason: &str) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "bar a release in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let attempt = records::attempt(&write, release_id).map_err(explain)?;
        if records::bar(&write, release_id, attempt).map_err(explain)?.is_none() {
            put(&write, BarKind::Noise, towards, (release_id, attempt), reason).map_err(explain)?;
        }
        write.commit().map_err(explain)
    }

    /// Why nothing with noise may begin with a peer on a lineage, if so. `running` are the attempts of
    /// releases about to run: one of them that stopped before its index was named goes on, with the same
    /// noise. Another attempt has other noise.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn barred(&self, towards: &PeerLineage, running: &[(Bytes32, u32)]) -> Result<Option<String>, Error> {
        standing(&self.connection, towards, running).map_err(|e| self.explain("read", &e))
    }

    /// What barred peers, oldest first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn bars(&self) -> Result<Vec<BarRecord>, Error> {
        let sql = "SELECT at, kind, peer, lineage, reason, row, release FROM bars ORDER BY row";
        self.listed(sql, [], |row| {
            let towards = PeerLineage { peer: row.get(2)?, lineage: row.get(3)? };
            let number = row.get::<_, i64>(5)?;
            let all = number <= lifted(&self.connection, &towards)?.bars;
            let one_by_one = all || !towards.lineage.is_empty();
            let allowed =
                if one_by_one { Vec::new() } else { allowed(&self.connection, &towards.peer, number)? };
            let kind: String = row.get(1)?;
            let over = kind == BarKind::Ledger.name()
                && peers::newest_said(&self.connection, &towards.peer)? != Some(row.get(6)?);
            let PeerLineage { peer, lineage } = towards;
            let stands = !all && !over;
            let (at, reason) = (moment(row.get(0)?), row.get(4)?);
            Ok(BarRecord { at, kind, peer, lineage, reason, stands, allowed })
        })
    }

    /// Why a run with a peer is refused as long as its ledger is the one that was met last, if so.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn was_another(&self, peer: &str) -> Result<Option<BarRecord>, Error> {
        let ledger = BarKind::Ledger.name();
        for bar in self.bars()?.into_iter().rev().filter(|bar| bar.stands && bar.kind == ledger) {
            if self.newest(&bar.peer)? == self.newest(peer)? {
                return Ok(Some(bar));
            }
        }
        Ok(None)
    }

    /// Lifts what bars a peer, on one lineage or on all: what breaks off later bars again. Takes nothing back
    /// that was charged. Returns what that was, in words: bars with their reasons, and releases that were not
    /// finished.
    ///
    /// # Errors
    /// When nothing bars this peer; when the ledger cannot be written.
    pub fn allow(&mut self, peer: &str, lineage: Option<&str>, reason: &str) -> Result<Vec<String>, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let towards = PeerLineage { peer: peer.to_owned(), lineage: lineage.unwrap_or_default().to_owned() };
        let open = open(&write, &towards).map_err(explain)?;
        if open.is_empty() {
            return Err(Error::input(format!(
                "nothing bars {peer} in this ledger{}; there is nothing to allow",
                lineage.map_or_else(String::new, |lineage| format!(" on lineage {lineage}"))
            )));
        }
        let sql = "INSERT INTO allows (at, peer, lineage, bars, transcripts, reason, numbers) SELECT ?1, ?2, \
                   ?3, (SELECT coalesce(max(row), 0) FROM bars), (SELECT coalesce(max(row), 0) FROM \
                   transcripts), ?4, (SELECT coalesce(max(row), 0) FROM sent)";
        super::put(&write, "allows", sql, params![now(), towards.peer, towards.lineage, reason], &[peer])
            .map_err(explain)?;
        write.commit().map_err(explain)?;
        Ok(open)
    }

    /// The key of a peer of this ledger, by the key or the beginning of it.
    ///
    /// # Errors
    /// When no peer's key begins so, or several do.
    pub fn peer_by(&self, prefix: &str) -> Result<String, Error> {
        let sql = "SELECT DISTINCT peer FROM chain WHERE peer <> '' ORDER BY peer";
        let all: Vec<String> = self.listed(sql, [], |row| row.get(0))?;
        let short = |key: &&String| {
            key.starts_with(prefix) || key.strip_prefix("tacit1:").is_some_and(|key| key.starts_with(prefix))
        };
        let mut found = all.iter().filter(short);
        match (found.next(), found.next()) {
            (Some(peer), None) => self.newest(peer),
            (Some(_), Some(_)) => Err(Error::input(format!(
                "several peers of this ledger have a key that begins with {prefix}: write more of it"
            ))),
            _ if all.is_empty() => Err(Error::input("this ledger knows no peer yet")),
            _ => Err(Error::input(format!(
                "no peer of this ledger has a key that begins with {prefix}; it knows {}",
                all.join(", ")
            ))),
        }
    }

    /// How many releases with a peer broke off so far, over all lineages.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn broken_off(&self, peer: &str) -> Result<PeerRecord, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let sql = format!(
            "SELECT count(*), coalesce(sum(stage >= 2 OR EXISTS (SELECT 1 FROM bars WHERE bars.release = \
             broken.release AND bars.attempt = broken.attempt)), 0) FROM (SELECT release, attempt, \
             max(stage) AS stage FROM transcripts WHERE peer IN {} GROUP BY release, attempt HAVING \
             max(stage) > 0) AS broken WHERE NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.release = \
             broken.release AND outputs.attempt = broken.attempt)",
            line(1)
        );
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?));
        let (releases, after_index) = self.connection.query_row(&sql, [peer], read).map_err(explain)?;
        // Of noise that nobody knows: every number that was held and has no outcome.
        let sql = format!(
            "SELECT count(*), coalesce(sum(EXISTS (SELECT 1 FROM sent WHERE sent.session = held.session)), \
             0) FROM held WHERE {} AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.release = \
             held.release AND outputs.attempt = held.attempt)",
            has_line("peer", 1)
        );
        let (numbers, after_payment) = self.connection.query_row(&sql, [peer], read).map_err(explain)?;
        Ok(PeerRecord { releases: releases + numbers, after_index, after_payment })
    }

    /// The attempt that this side would run of a release: a new one where the index of the last was named. A
    /// viewer that has its outputs wants no other.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn next_attempt(&self, release_id: &Bytes32) -> Result<u32, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let attempt = self.attempt(release_id)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM bars WHERE release = ?1 AND attempt = ?2) OR EXISTS (SELECT \
                   1 FROM transcripts AS t WHERE release = ?1 AND attempt = ?2 AND stage >= 2 AND NOT (side \
                   = 'checker' AND EXISTS (SELECT 1 FROM outputs WHERE outputs.release = ?1 AND \
                   outputs.attempt = ?2)))";
        let over: bool = self
            .connection
            .query_row(sql, params![release_id, attempt], |row| row.get(0))
            .map_err(explain)?;
        Ok(attempt + u32::from(over))
    }

    /// Goes on to an attempt that both sides agreed on. Nothing where it is the present one.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn begin_attempt(&mut self, release_id: &Bytes32, attempt: u32, peer: &str) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        if records::attempt(&write, release_id).map_err(explain)? >= attempt {
            return Ok(());
        }
        let sql = "INSERT INTO attempts (release, attempt, peer, at, reason) VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![release_id, attempt, peer, now(), "agreed with the peer"];
        super::put(&write, "attempts", sql, values, &[peer]).map_err(explain)?;
        write.commit().map_err(explain)
    }
}

/// What an operator would lift for a peer, on one lineage or, where that is empty, on all.
fn open(connection: &Connection, towards: &PeerLineage) -> Result<Vec<String>, rusqlite::Error> {
    let before = lifted(connection, towards)?;
    let values = params![towards.peer, towards.lineage, before.bars];
    let sql = format!(
        "SELECT at, reason FROM bars WHERE (peer = '' OR peer IN {}) AND (?2 = '' OR lineage IN (?2, '')) \
         AND row > ?3 ORDER BY row",
        line(1)
    );
    let read =
        |row: &rusqlite::Row<'_>| Ok(format!("{}: {}", super::date(row.get(0)?), row.get::<_, String>(1)?));
    let mut all = connection.prepare(&sql)?.query_map(values, read)?.collect::<Result<Vec<_>, _>>()?;
    let sql = format!(
        "SELECT max(at), max(stage) FROM transcripts AS t WHERE (peer = '' OR peer IN {}) AND (?2 = '' OR \
         lineage IN (?2, '')) \
         AND row > ?3 AND stage > 0 AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.release = t.release \
         AND outputs.attempt = t.attempt) AND NOT EXISTS (SELECT 1 FROM bars WHERE bars.release = t.release \
         AND bars.attempt = t.attempt) GROUP BY release, attempt ORDER BY min(row)",
        line(1)
    );
    let values = params![towards.peer, towards.lineage, before.transcripts];
    let read = |row: &rusqlite::Row<'_>| {
        let named = row.get::<_, u32>(1)? >= records::TranscriptStage::Named as u32;
        let when =
            if named { "after its index was named" } else { "after the seeds of its noise were exchanged" };
        Ok(format!("{}: a release that was not finished, {when}", super::date(row.get(0)?)))
    };
    all.extend(connection.prepare(&sql)?.query_map(values, read)?.collect::<Result<Vec<_>, _>>()?);
    let sql = format!(
        "SELECT sent.at FROM sent JOIN held USING (session) WHERE {} AND (?2 = '' OR held.lineage = ?2) AND \
         NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.release = sent.release AND outputs.attempt = \
         sent.attempt) AND sent.row > (SELECT coalesce(max(numbers), 0) FROM allows WHERE allows.peer IN {} \
         AND allows.lineage IN (?2, '')) ORDER BY sent.row",
        has_line("held.peer", 1),
        line(1)
    );
    let values = params![towards.peer, towards.lineage];
    let read = |row: &rusqlite::Row<'_>| {
        Ok(format!(
            "{}: a result that was paid for, and of which this side keeps no outcome",
            super::date(row.get(0)?)
        ))
    };
    all.extend(connection.prepare(&sql)?.query_map(values, read)?.collect::<Result<Vec<_>, _>>()?);
    Ok(all)
}

/// Why nothing with noise may begin with a peer on a lineage, if so: see [`Ledger::barred`].
pub(super) fn standing(
    connection: &Connection,
    towards: &PeerLineage,
    running: &[(Bytes32, u32)],
) -> Result<Option<String>, rusqlite::Error> {
    let lifted = lifted(connection, towards)?;
    let sql = format!(
        "SELECT reason FROM bars WHERE kind = 'noise' AND (peer = '' OR peer IN {}) AND lineage IN (?2, '') \
         AND row > ?3 ORDER BY row LIMIT 1",
        line(1)
    );
    let values = params![towards.peer, towards.lineage, lifted.bars];
    let found = connection.query_row(&sql, values, |row| row.get::<_, String>(0)).optional()?;
    if found.is_some() {
        return Ok(found);
    }
    let sql = format!(
        "SELECT max(stage), side, at, release, attempt FROM transcripts AS t WHERE (peer = '' OR peer IN {}) \
         AND lineage IN (?2, '') AND row > ?3 AND NOT EXISTS (SELECT 1 FROM outputs \
         WHERE outputs.release = t.release AND outputs.attempt = t.attempt) GROUP BY release, attempt, side",
        line(1)
    );
    let mut query = connection.prepare(&sql)?;
    let values = params![towards.peer, towards.lineage, lifted.transcripts];
    let read = |row: &rusqlite::Row<'_>| {
        let this: (Bytes32, u32) = (row.get(3)?, row.get(4)?);
        Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?, this))
    };
    let mut unnamed = 0;
    for row in query.query_map(values, read)? {
        let (stage, side, at, this) = row?;
        if stage >= records::TranscriptStage::Named as u32 {
            return Ok(Some(format!(
                "the index of a release's noise was named on {}, and this side keeps no outcome of it; a run \
                 that is still going on looks the same",
                super::date(at)
            )));
        }
        let seeded = stage == records::TranscriptStage::Seeded as u32 && side == "checker";
        unnamed += u32::from(seeded && !running.contains(&this));
    }
    Ok((unnamed >= UNNAMED).then(|| {
        format!(
            "{unnamed} attempts at releases stopped after the seeds of their noise were exchanged and did \
             not go on: who leaves there picks among noises; runs that are still going on look the same"
        )
    }))
}

/// Why an attempt of a release was barred, and whether this side's operator has lifted that.
pub(super) fn of(
    connection: &Connection,
    towards: &PeerLineage,
    release: &Bytes32,
    attempt: u32,
) -> Result<(Option<String>, bool), rusqlite::Error> {
    let sql = "SELECT reason, row FROM bars WHERE kind = 'noise' AND release = ?1 AND attempt = ?2 ORDER BY \
               row LIMIT 1";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    let Some((reason, row)) = connection.query_row(sql, params![release, attempt], read).optional()? else {
        return Ok((None, false));
    };
    Ok((Some(reason), row <= lifted(connection, towards)?.bars))
}

/// Writes a bar in a transaction of the caller's.
pub(super) fn put(
    write: &Connection,
    kind: BarKind,
    towards: &PeerLineage,
    (release, attempt): (&Bytes32, u32),
    reason: &str,
) -> Result<(), rusqlite::Error> {
    let sql = "INSERT INTO bars (at, kind, peer, lineage, release, attempt, reason) VALUES (?1, ?2, ?3, ?4, \
               ?5, ?6, ?7)";
    let values = params![now(), kind.name(), towards.peer, towards.lineage, release, attempt, reason];
    super::put(write, "bars", sql, values, &[&towards.peer]).map(|_| ())
}

/// Whether this side's operator lifted a bar of a peer; `None` where there is no such bar.
pub(super) fn is_lifted(
    connection: &Connection,
    kind: BarKind,
    peer: &str,
    release: &Bytes32,
) -> Result<Option<bool>, rusqlite::Error> {
    let sql = format!(
        "SELECT row <= (SELECT coalesce(max(bars), 0) FROM allows WHERE peer IN {0} \
         AND allows.lineage IN (bars.lineage, '')) FROM bars \
         WHERE kind = ?1 AND peer IN {0} AND release = ?3 ORDER BY row DESC LIMIT 1",
        line(2)
    );
    connection.query_row(&sql, params![kind.name(), peer, release], |row| row.get(0)).optional()
}

/// The error of a barred release, with the command that lifts the bar.
pub fn barred_error(ledger: &std::path::Path, towards: &PeerLineage, reason: &str) -> Error {
    let PeerLineage { peer, lineage } = towards;
    Error::refused(format!(
        "releases with {peer} on lineage {lineage} are barred ({reason}); this side's operator alone decides \
         whether to try \
         again, with new noise and a new charge: {}",
        allow_command(ledger, towards)
    ))
}

/// What this side's operator says to let releases with a peer begin again.
pub fn allow_command(ledger: &std::path::Path, towards: &PeerLineage) -> String {
    format!(
        "tacit ledger allow {} {} --lineage {} --reason \"...\"",
        quoted(&ledger.display().to_string()),
        towards.peer,
        quoted(&towards.lineage)
    )
}

/// As a shell reads it as one word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
