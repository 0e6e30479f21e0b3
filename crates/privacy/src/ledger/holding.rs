//! What a party keeps of a release whose outputs it holds a share of: the share until it is sent, that it was
//! sent, and what pays for it.
//!
//! A *number* is one computation of a release's outputs, named by its session L. A debit of a release is
//! *unspent* until this party has sent its share of a number that the debit paid for: an unspent one pays for
//! the next number of its attempt, if that costs no more, or is given back: for the number that it does not
//! pay for, or when another release begins with the same peers on the same lineage; then what was held is
//! dropped and can never be sent. So a number that nobody could see
//! costs nothing, and every number that somebody could see was paid for.

use super::paid::{self, PaymentProof};
use super::succession::{has_line, line, newest_of};
use super::{
    Bytes32, Debit, Ledger, PeerLineage, SumExactly, VOIDED, afford, afford_all, barred_error, begin, check,
    file, now, rational_of, record,
};
use base::Error;
use num_traits::Zero;
use release::Rational;
use rusqlite::{Connection, OptionalExtension, params};
use std::path::Path;
use zeroize::Zeroizing;

/// Numbers of one peer and lineage that were sent and of which this side keeps no outcome: one more asks its
/// operator.
const OPEN_NUMBERS: u32 = 2;

/// Where a number is neither paid for nor sent.
const DROPPED: &str = "another run of this party has dropped what this release held; run again";

/// A share of a number's outputs, as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldShare {
    /// Names the number: L.
    pub number: Bytes32,
    /// Which number of the release it is, from 0.
    pub attempt: u32,
    /// The share; empty where this participant has none.
    pub share: Zeroizing<Vec<u8>>,
    /// What its commitment was made with.
    pub salt: Bytes32,
    /// All commitments, in the order of the holders.
    pub commitments: Vec<Bytes32>,
    /// How far the law of its noise may be from the one that the rho is of: a later run may draw by other
    /// tables. None at a server, and of numbers of before.
    pub tau: Option<Rational>,
}

/// How far a number is at this participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareProgress {
    /// It is held.
    Held,
    /// The share was sent, or is about to be.
    Sent,
    /// This party has the outputs, or knows that those who see them have.
    Out,
}

impl Ledger {
    /// The newest number of a release, if it is not dropped, and how far it is.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn held_share(&self, release: &Bytes32) -> Result<Option<(HeldShare, ShareProgress)>, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let sql = "SELECT session, attempt, share, salt, commitments, dropped, tau, EXISTS (SELECT 1 FROM \
                   sent WHERE sent.session = held.session) AS sent, EXISTS (SELECT 1 FROM outputs WHERE \
                   outputs.release = held.release AND outputs.attempt = held.attempt) AS out FROM held WHERE \
                   release = ?1 ORDER BY row DESC LIMIT 1";
        let read = |row: &rusqlite::Row<'_>| {
            let commitments: Vec<u8> = row.get("commitments")?;
            let commitments = commitments.as_chunks().0.to_vec();
            let share = Zeroizing::new(row.get("share")?);
            let (number, attempt, salt) = (row.get("session")?, row.get("attempt")?, row.get("salt")?);
            let tau = match row.get_ref("tau")? {
                rusqlite::types::ValueRef::Null => None,
                _ => Some(rational_of(row, "tau")?),
            };
            let held = HeldShare { number, attempt, share, salt, commitments, tau };
            let progress = match (row.get("out")?, row.get("sent")?) {
                // Outputs of a number whose share never went out are of another one.
                (true, true) => ShareProgress::Out,
                (false, true) => ShareProgress::Sent,
                (_, false) => ShareProgress::Held,
            };
            Ok((!row.get::<_, bool>("dropped")?).then_some((held, progress)))
        };
        Ok(self.connection.query_row(sql, [release], read).optional().map_err(explain)?.flatten())
    }

    /// The least attempt that the next number of a release may have here: after every number that was sent
    /// and every debit that was made, but for a debit that still pays, which is of its own attempt. So a
    /// debit and the number that it pays for have one attempt, and none has that of a debit which was given
    /// back.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn next_number(&self, release: &Bytes32, debit: Option<&Debit>) -> Result<u32, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let unspent = unspent(&self.connection, release).map_err(explain)?;
        let pays = unspent.filter(|unspent| debit.is_some_and(|debit| unspent.rho >= debit.rho));
        let sql = "SELECT coalesce(max(attempt) + 1, 0) FROM debits WHERE release = ?1 AND row IS NOT ?2";
        let row = pays.as_ref().map(|unspent| unspent.row);
        let others: u32 =
            self.connection.query_row(sql, params![release, row], |row| row.get(0)).map_err(explain)?;
        let own = pays.map_or(0, |unspent| unspent.attempt);
        Ok(others.max(own).max(self.numbers_sent(release)?))
    }

    /// The attempt after the last number of a release that this participant has sent.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn numbers_sent(&self, release: &Bytes32) -> Result<u32, Error> {
        let sql = "SELECT coalesce(max(attempt) + 1, 0) FROM sent WHERE release = ?1";
        self.connection.query_row(sql, [release], |row| row.get(0)).map_err(|e| self.explain("read", &e))
    }

    /// The attempt after the last that this participant ever held, sent or not: who has sent one had it held
    /// by all, so no honest peer is further ahead.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn numbers_held(&self, release: &Bytes32) -> Result<u32, Error> {
        let sql = "SELECT coalesce(max(attempt) + 1, 0) FROM held WHERE release = ?1";
        self.connection.query_row(sql, [release], |row| row.get(0)).map_err(|e| self.explain("read", &e))
    }

    /// Keeps a share. On return it is on stable storage. What this release held before and did not send is
    /// dropped.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn hold(
        &mut self,
        release: &Bytes32,
        held: &HeldShare,
        peer: &str,
        lineage: &str,
    ) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "keep a share in", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        drop_shares(&write, release).map_err(explain)?;
        let sql = "INSERT INTO held (at, release, attempt, session, peer, lineage, share, salt, commitments, \
                   dropped, tau) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10)";
        let values = params![
            now(),
            release,
            held.attempt,
            held.number,
            peer,
            lineage,
            &held.share[..],
            held.salt,
            held.commitments.as_flattened(),
            held.tau.as_ref().map(Rational::to_string)
        ];
        write.execute(sql, values).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// Charges a number of a release, unless an unspent debit of this attempt pays for it, and keeps what
    /// this party, with the key `signer`, signs of it. An unspent debit of another attempt, or of less, is
    /// given back for it. On return all of it is on stable storage.
    ///
    /// # Errors
    /// As [`Ledger::debit`]; where too many numbers with one of the peers are open, [`Ledger::open_numbers`];
    /// when another run of this party has dropped the number.
    pub fn pay(
        &mut self,
        debit: &Debit,
        (number, attempt): (&Bytes32, u32),
        (signer, signed): (&str, &PaymentProof),
    ) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "debit", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        check(debit)?;
        let sql = "SELECT EXISTS (SELECT 1 FROM held WHERE session = ?1 AND dropped = 0)";
        if !write.query_row(sql, [number], |row| row.get::<_, bool>(0)).map_err(explain)? {
            return Err(Error::refused(DROPPED));
        }
        check_open(&write, path, debit)?;
        let unspent = unspent(&write, &debit.release_id).map_err(explain)?;
        if !unspent.as_ref().is_some_and(|unspent| unspent.attempt == attempt && unspent.rho >= debit.rho) {
            if unspent.is_some() {
                void_last(&write, &debit.release_id, &debit.peer_key).map_err(explain)?;
            }
            afford(&write, path, debit)?;
            record(&write, debit, attempt).map_err(explain)?;
        }
        let peers: Vec<&str> = debit.peer_key.split(' ').collect();
        paid::keep(&write, number, signer, signed, &peers).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// Whether [`Ledger::pay`] would succeed now, beside what else is about to be charged; nothing is
    /// written.
    ///
    /// # Errors
    /// As [`Ledger::pay`].
    pub fn check_pay(&self, debit: &Debit) -> Result<(), Error> {
        check(debit)?;
        check_open(&self.connection, &self.path, debit)?;
        let unspent = unspent(&self.connection, &debit.release_id).map_err(|e| self.explain("read", &e))?;
        match unspent {
            Some(unspent) if unspent.rho >= debit.rho => Ok(()),
            // It is given back for this one, which takes the difference.
            Some(unspent) => {
                let (rho, none) = (&debit.rho - unspent.rho, Rational::zero());
                let more = Debit { rho, delta: none.clone(), tau: none, ..debit.clone() };
                afford(&self.connection, &self.path, &more)
            }
            None => afford(&self.connection, &self.path, debit),
        }
    }

    /// Whether debits that are about to be made would all succeed; nothing is written.
    ///
    /// # Errors
    /// As [`Ledger::debit`].
    pub fn check_together(&self, debits: &[Debit]) -> Result<(), Error> {
        let protecting: Vec<&Debit> = debits.iter().filter(|debit| debit.protects).collect();
        protecting.iter().try_for_each(|debit| check(debit))?;
        afford_all(&self.connection, &self.path, &protecting)
    }

    /// Whether an unspent debit pays for the next number of a release.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn is_paid(&self, release: &Bytes32) -> Result<bool, Error> {
        has_unspent(&self.connection, release).map_err(|e| self.explain("read", &e))
    }

    /// Says that the share of a number goes out now, or that it may have, and keeps what others `signed` of
    /// it. On return that is on stable storage.
    ///
    /// # Errors
    /// When the number is not held here, or was dropped by another run of this party; when the ledger cannot
    /// be written.
    pub fn send(&mut self, session: &Bytes32, signed: &[(String, PaymentProof)]) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let sql = "SELECT release, attempt, peer FROM held WHERE session = ?1 AND dropped = 0";
        let read = |row: &rusqlite::Row<'_>| {
            Ok((row.get::<_, Bytes32>(0)?, row.get::<_, u32>(1)?, row.get::<_, String>(2)?))
        };
        let found = write.query_row(sql, [session], read).optional().map_err(explain)?;
        let Some((release, attempt, peer)) = found else {
            return Err(Error::refused(DROPPED));
        };
        let sql =
            "INSERT OR IGNORE INTO sent (at, release, attempt, session, peer) VALUES (?1, ?2, ?3, ?4, ?5)";
        write.execute(sql, params![now(), release, attempt, session, peer]).map_err(explain)?;
        signed
            .iter()
            .try_for_each(|(signer, paid)| paid::keep(&write, session, signer, paid, &[signer]))
            .map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// Other releases with any of these peers on this lineage than those that are about to run: what they
    /// hold and have not sent is dropped, and what was charged for it is given back. Returns how many debits
    /// that were.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn give_back(&mut self, peer: &str, lineage: &str, running: &[Bytes32]) -> Result<u32, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let releases = {
            let sql = "SELECT DISTINCT release, peer FROM held WHERE lineage = ?1";
            let mut query = write.prepare(sql).map_err(explain)?;
            let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Bytes32>(0)?, row.get::<_, String>(1)?));
            let rows = query.query_map([lineage], read).map_err(explain)?;
            let all = rows.collect::<Result<Vec<_>, _>>().map_err(explain)?;
            // With these peers under earlier keys as well, whoever else took part: else who leaves with
            // another roster each time would keep what was charged for it.
            let peers = newest_of(&write, peer).map_err(explain)?;
            let with = |(release, held): (Bytes32, String)| {
                let held = newest_of(&write, &held);
                let overlaps =
                    |held: &str| held.split(' ').any(|one| peers.split(' ').any(|peer| peer == one));
                held.map(|held| overlaps(&held).then_some(release)).transpose()
            };
            all.into_iter().filter_map(with).collect::<Result<Vec<_>, _>>().map_err(explain)?
        };
        let mut given = 0;
        for release in releases.iter().filter(|release| !running.contains(release)) {
            if has_unspent(&write, release).map_err(explain)? {
                void_last(&write, release, peer).map_err(explain)?;
                given += 1;
            }
            drop_shares(&write, release).map_err(explain)?;
        }
        write.commit().map_err(explain)?;
        Ok(given)
    }

    /// Why this side's operator is asked before another number with a peer on a lineage: too many were sent
    /// of which this side keeps no outcome. Those of `running` go on.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn open_numbers(
        &self,
        peer: &str,
        lineage: &str,
        running: &[Bytes32],
    ) -> Result<Option<String>, Error> {
        let open = open_numbers(&self.connection, peer, lineage).map_err(|e| self.explain("read", &e))?;
        Ok(too_many(open.iter().filter(|session| !running.contains(session)).count()))
    }
}

/// The numbers with a peer on a lineage that were sent and of which this side keeps no outcome, but for those
/// that its operator has allowed.
fn open_numbers(connection: &Connection, peer: &str, lineage: &str) -> Result<Vec<Bytes32>, rusqlite::Error> {
    let sql = format!(
        "SELECT sent.session FROM sent JOIN held USING (session) WHERE {} AND held.lineage = ?2 \
         AND NOT EXISTS (SELECT 1 FROM outputs WHERE outputs.release = sent.release \
         AND outputs.attempt = sent.attempt) AND sent.row > (SELECT coalesce(max(numbers), 0) FROM allows \
         WHERE allows.peer IN {} AND allows.lineage IN (?2, ''))",
        has_line("held.peer", 1),
        line(1)
    );
    let mut query = connection.prepare(&sql)?;
    query.query_map([peer, lineage], |row| row.get(0))?.collect()
}

/// The numbers of other releases than `release` with a peer on a lineage that are held, paid for and not
/// sent: other runs of this party are about to send them.
fn in_flight(
    connection: &Connection,
    (peer, lineage): (&str, &str),
    release: &Bytes32,
) -> Result<usize, rusqlite::Error> {
    let sql = format!(
        "SELECT DISTINCT release FROM held WHERE {} AND lineage = ?2 AND release <> ?3 AND dropped = 0 \
         AND session NOT IN (SELECT session FROM sent)",
        has_line("peer", 1)
    );
    let mut query = connection.prepare(&sql)?;
    let rows = query.query_map(params![peer, lineage, release], |row| row.get::<_, Bytes32>(0))?;
    let mut count = 0;
    for other in rows {
        count += usize::from(has_unspent(connection, &other?)?);
    }
    Ok(count)
}

fn too_many(open: usize) -> Option<String> {
    (open >= OPEN_NUMBERS as usize).then(|| {
        format!(
            "{open} results were paid for with it and never reported by both sides: whoever ends a run when \
             it has its result, or does not like it, leaves so; a run that is still going on looks the same"
        )
    })
}

/// Refuses to pay for one more number where too many are open with one of the peers: another run of this
/// party may have opened some since this one began.
fn check_open(write: &Connection, path: &Path, debit: &Debit) -> Result<(), Error> {
    let explain = |e: rusqlite::Error| file::explain(path, "read", &e);
    for peer in debit.peer_key.split(' ') {
        let open = open_numbers(write, peer, &debit.lineage).map_err(explain)?.len();
        if let Some(reason) = too_many(open) {
            let towards = PeerLineage { peer: peer.to_owned(), lineage: debit.lineage.clone() };
            return Err(barred_error(path, &towards, &reason));
        }
        let flying = in_flight(write, (peer, &debit.lineage), &debit.release_id).map_err(explain)?;
        if too_many(open + flying).is_some() {
            return Err(Error::refused(format!(
                "{open} results with {peer} were paid for and not reported by both sides, and other runs of \
                 this party are about to send {flying} more: wait for these runs to end, and run again"
            )));
        }
    }
    Ok(())
}

/// What releases were charged and not given back, less what was sent.
fn has_unspent(connection: &Connection, release: &Bytes32) -> Result<bool, rusqlite::Error> {
    let sql = format!(
        "SELECT (SELECT count(*) FROM debits WHERE release = ?1 AND {VOIDED}) > \
         (SELECT count(*) FROM sent WHERE release = ?1)"
    );
    connection.query_row(&sql, [release], |row| row.get(0))
}

/// A debit of a release that no number was sent for.
struct Unspent {
    row: i64,
    attempt: u32,
    rho: Rational,
}

/// The unspent debit of a release: the newest that was not given back, where more were made than numbers
/// sent.
fn unspent(connection: &Connection, release: &Bytes32) -> Result<Option<Unspent>, rusqlite::Error> {
    if !has_unspent(connection, release)? {
        return Ok(None);
    }
    let sql = format!(
        "SELECT row, attempt, rho FROM debits WHERE release = ?1 AND {VOIDED} ORDER BY row DESC LIMIT 1"
    );
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Unspent { row: row.get(0)?, attempt: row.get(1)?, rho: rational_of(row, "rho")? })
    };
    connection.query_row(&sql, [release], read).optional()
}

/// Gives the newest debit of a release back.
fn void_last(write: &Connection, release: &Bytes32, peer: &str) -> Result<(), rusqlite::Error> {
    let sql = format!("SELECT row FROM debits WHERE release = ?1 AND {VOIDED} ORDER BY row DESC LIMIT 1");
    let debit: i64 = write.query_row(&sql, [release], |row| row.get(0))?;
    let peers: Vec<&str> = peer.split(' ').collect();
    let sql = "INSERT INTO voids (at, debit, peer) VALUES (?1, ?2, ?3)";
    super::put(write, "voids", sql, params![now(), debit, peer], &peers).map(|_| ())
}

/// What a release holds and has not sent can never be sent; the shares are wiped.
fn drop_shares(write: &Connection, release: &Bytes32) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE held SET dropped = 1, share = x'', salt = zeroblob(32) WHERE release = ?1 \
               AND session NOT IN (SELECT session FROM sent)";
    write.execute(sql, [release]).map(|_| ())
}

/// What the distances of draws from their laws add up to, towards a viewer of a lineage.
pub(super) fn spent_tau(
    connection: &Connection,
    lineage: &str,
    viewer: &str,
) -> Result<Rational, rusqlite::Error> {
    let sql = format!(
        "SELECT tau FROM debits WHERE lineage = ?1 AND {} AND protects = 1 AND tau IS NOT NULL AND {VOIDED}",
        super::reads(2)
    );
    let mut query = connection.prepare(&sql)?;
    let rows = query.query_map([lineage, viewer], |row| rational_of(row, "tau"))?;
    rows.sum_exactly()
}
