//! Proposals on which nothing is said, because a party may have more of what was said here than this store:
//! it may be an older copy, and another word under a number that was used is proof against its author.

use super::shelf::{KnownRecord, load};
use super::studies::{failed, log, refresh};
use super::{Speaker, Store};
use base::Error;
use net::KeyFingerprint;
use rusqlite::{Connection, params};
use statements::{KeptStatement, ProposalId, SignedStatement};

/// Why nothing is said on a proposal.
pub const UNHEARD: &str = "another party has not been heard since this service began, or has more of what \
                           was said here than this store: nothing is said on this study before all have \
                           the same";
/// What follows for a study that somebody refuses or withdraws meanwhile.
pub const HELD: &str = "Until then it is held: no run of it begins here before somebody says so; say it \
                        again then";
/// Own statements that a party sends back at once.
const SENT_BACK: u32 = 64;

/// Whether a party has to be heard on a proposal first.
pub(super) fn is_unheard(connection: &Connection, id: &ProposalId) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM unheard WHERE proposal = ?1)";
    connection.prepare_cached(sql)?.query_row([id.0], |row| row.get(0))
}

impl Store {
    /// A process begins: of each open proposal all these peers have to be heard first.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn hear_anew(&self, peers: &[KeyFingerprint]) -> Result<(), Error> {
        let peers: Vec<String> = peers.iter().map(|peer| base::hex(&peer.bytes())).collect();
        let peers = serde_json::Value::from(peers).to_string();
        let sql = "INSERT INTO unheard (proposal, peer) SELECT id, party FROM proposals JOIN parties \
                   ON proposal = row WHERE open \
                   AND lower(hex(party)) IN (SELECT value FROM json_each(?1))";
        self.change(|write| {
            write.execute("DELETE FROM unheard", [])?;
            write.execute(sql, [peers]).map(drop)
        })
    }

    /// A peer has compared all chains: where it says that it has more of the own one than there is here
    /// (`ahead`), it has to be heard still. Where it was heard before that counts only if it has `proven` it
    /// by a statement that only this organisation can have signed; else it would keep others from saying
    /// anything by a word. Of proposals that are over, or that it is no party of, it is not asked.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn heard(
        &self,
        peer: KeyFingerprint,
        ahead: &[ProposalId],
        proven: &[ProposalId],
    ) -> Result<bool, Error> {
        let list = |ids: &[ProposalId]| {
            serde_json::Value::from(ids.iter().map(|id| base::hex(&id.0)).collect::<Vec<_>>()).to_string()
        };
        let gone = "DELETE FROM unheard WHERE peer = ?2 \
                    AND lower(hex(proposal)) NOT IN (SELECT value FROM json_each(?1))";
        let come = "INSERT OR IGNORE INTO unheard (proposal, peer) \
                    SELECT id, party FROM proposals JOIN parties ON proposal = row \
                    WHERE open AND party = ?2 AND lower(hex(id)) IN (SELECT value FROM json_each(?1)) \
                    AND lower(hex(id)) IN (SELECT value FROM json_each(?3))";
        let left = "SELECT EXISTS (SELECT 1 FROM unheard WHERE peer = ?1)";
        let (peer, all, proven) = (peer.bytes(), list(ahead), list(proven));
        let (changed, left) = self.change(|write| {
            let changed = write.execute(gone, params![all, peer])?;
            let changed = changed + write.execute(come, params![all, peer, proven])?;
            Ok((changed, write.query_row(left, params![peer], |row| row.get(0))?))
        })?;
        if changed > 0 {
            self.ring();
        }
        Ok(left)
    }

    /// Whether nothing is said on a proposal now.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_unheard(&self, id: &ProposalId) -> Result<bool, Error> {
        self.read(|connection| is_unheard(connection, id))
    }

    /// When somebody said something on a proposal last, milliseconds since 1970; 0 for never.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn said_last_ms(&self, id: &ProposalId, author: KeyFingerprint) -> Result<u64, Error> {
        let sql = "SELECT coalesce(max(at_ms), 0) FROM statements WHERE proposal = ?1 AND author = ?2";
        let found = self.read(|connection| {
            connection.query_row(sql, params![id.0, author.bytes()], |row| row.get::<_, i64>(0))
        })?;
        Ok(found.unsigned_abs())
    }

    /// Whether somebody is a party of a proposal.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn is_party(&self, id: &ProposalId, party: KeyFingerprint) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM parties JOIN proposals ON proposal = row \
                   WHERE id = ?1 AND party = ?2)";
        self.read(|connection| connection.query_row(sql, params![id.0, party.bytes()], |row| row.get(0)))
    }

    /// The parties of a proposal; none where it is not here.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn parties(&self, id: &ProposalId) -> Result<Vec<KeyFingerprint>, Error> {
        let sql = "SELECT party FROM parties JOIN proposals ON proposal = row WHERE id = ?1";
        self.read(|connection| {
            let mut query = connection.prepare_cached(sql)?;
            let parties = query.query_map([id.0], |row| row.get(0).map(KeyFingerprint::from_bytes))?;
            parties.collect()
        })
    }

    /// What a party has said on a proposal, from a number on: the first few.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn said_by(&self, id: &ProposalId, author: KeyFingerprint, from: u32) -> Result<Vec<Vec<u8>>, Error> {
        let sql = "SELECT statement FROM statements WHERE proposal = ?1 AND author = ?2 AND number >= ?3 \
                   ORDER BY number LIMIT ?4";
        let values = params![id.0, author.bytes(), from, SENT_BACK];
        self.read(|connection| connection.prepare_cached(sql)?.query_map(values, |row| row.get(0))?.collect())
    }

    /// Keeps an own statement that this store had lost and a party has sent back; false where it does not go
    /// on the own chain. It binds as it did: nobody else can have signed it.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn take_back(
        &self,
        speaker: Speaker<'_>,
        from: KeyFingerprint,
        statement: &SignedStatement,
    ) -> Result<bool, Error> {
        let (own, body) = (speaker.identity.fingerprint(), statement.body());
        let known = self.known(&body.proposal)?;
        let done = self.within(|write| -> Result<Option<()>, Error> {
            let loaded = load(write, &body.proposal, known.as_deref())?;
            let Some(KnownRecord { mut record, .. }) = loaded else { return Ok(None) };
            if !matches!(record.keep(statement.clone()), Ok(KeptStatement::New { .. })) {
                return Ok(None);
            }
            if !trail::keep_statement(write, speaker.at_ms, statement)? {
                return Ok(None);
            }
            refresh(write, &record, own, speaker.at_ms)?;
            let sql = "INSERT OR IGNORE INTO outbox (peer, proposal, number, digest, had_ms) \
                       VALUES (?1, ?2, ?3, ?4, ?5)";
            for peer in &body.recipients {
                let had = (*peer == from).then_some(speaker.at_ms.cast_signed());
                let values = params![peer.bytes(), body.proposal.0, body.number, statement.digest(), had];
                write.execute(sql, values).map_err(failed)?;
            }
            log(write, speaker.by, "own statement taken back", statement, speaker.at_ms)?;
            Ok(Some(()))
        })?;
        self.ring();
        Ok(done.is_some())
    }
}
