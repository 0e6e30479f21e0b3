//! What the parties keep of each other's ledgers: signed statements of where their chains stand.
//!
//! In every run each party says, signed, where its chain with the peer stands, and gives the hash of that
//! chain where the peer last knew it. So a ledger that was wiped, put back from an older copy or rewritten is
//! named by the peer, which gives the statement back; only a statement that this party's own key signed
//! counts as a *claim* here. The way back is [`Ledger::recover`].

use super::bars::{self, BarKind};
use super::chain::{self, ChainHead};
use super::promises::forget_promises;
use super::succession::{self, line, line_of};
use super::{Bytes32, Debit, Ledger, PeerLineage, Statement, VOIDED, begin, date, file, now};
use base::Error;
use net::identity::{Identity, KeyFingerprint};
use num_traits::{Signed, Zero};
use release::Rational;
use release::rational::{shown, small};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

/// The last statement of a peer that this party keeps.
pub type Held = Option<Statement>;

/// A peer's ledger is not the one that it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainMismatch {
    /// Entries in the last statement that this party keeps.
    pub held: u64,
    /// When that was signed, by the peer's clock.
    pub at: u64,
    /// Entries that it says now.
    pub now: u64,
}

impl ChainMismatch {
    /// What happened, for the operator of the party that noticed.
    #[must_use]
    pub fn text(&self, peer: &str) -> String {
        let Self { held, now, .. } = self;
        let day = date(i64::try_from(self.at).unwrap_or(i64::MAX));
        if now < held {
            format!(
                "the ledger of {peer} went back from {held} entries, as it signed on {day}, to {now}: it was \
                 made anew or put back from an older copy"
            )
        } else {
            format!(
                "the ledger of {peer} was rewritten: entry {held} of its {now} is not the one that it signed \
                 on {day}"
            )
        }
    }
}

/// What was taken over from a peer's copy of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecoveredChain {
    /// The peer's key.
    pub peer: String,
    /// The lineage that was charged.
    pub lineage: String,
    /// Entries of the chain that goes on from there.
    pub count: u64,
    /// When the statement was signed: seconds since 1970.
    pub at: u64,
    /// What the statement says was charged in all: a decimal, or `p/q`.
    pub stated: String,
    /// What was charged now, to bring this ledger up to it.
    pub charged: String,
    /// Whether releases are barred, because more may have been spent after the statement.
    pub barred: bool,
}

impl Ledger {
    /// Signs where this party's chain with a peer stands, as the rows give it now.
    ///
    /// # Errors
    /// When the ledger cannot be read, or the identity does not sign.
    pub fn statement(&self, identity: &Identity, peer: KeyFingerprint) -> Result<Statement, Error> {
        let key = peer.to_string();
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let head = self.walk(&key)?.head();
        let rho = charged(&self.connection, "rho", &key).map_err(explain)?;
        let delta = charged(&self.connection, "delta", &key).map_err(explain)?;
        Statement::sign(identity, peer, head, now().unsigned_abs(), (&rho, &delta))
    }

    /// The hash of this party's chain with a peer at a count, as the rows give it now: zeros where it never
    /// stood there.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn hash_at(&self, peer: &str, count: u64) -> Result<Bytes32, Error> {
        Ok(self.walk(peer)?.at(count).unwrap_or_default())
    }

    /// The last statement of a peer towards the key `own` that this party keeps. What was said to another key
    /// of this party's is of another chain.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn held(&self, peer: &str, own: KeyFingerprint) -> Result<Held, Error> {
        held(&self.connection, peer, own).map_err(|e| self.explain("read", &e))
    }

    /// Compares what a peer answers for the count of the statement that is `held` with that statement. Where
    /// it fits, or this side's operator has allowed it since, `said` is kept; else the mismatch is, and
    /// returned. `own` is this party.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub fn met(
        &mut self,
        towards: &PeerLineage,
        own: KeyFingerprint,
        said: &Statement,
        before: &Held,
        answer: &Bytes32,
    ) -> Result<Option<ChainMismatch>, Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let other = before.as_ref().filter(|before| before.head.hash != *answer);
        if let Some(before) = other {
            let id = *blake3::hash(&before.bytes()).as_bytes();
            let lifted = bars::is_lifted(&write, BarKind::Ledger, &towards.peer, &id).map_err(explain)?;
            if lifted != Some(true) {
                let mismatch = ChainMismatch { held: before.head.count, at: before.at, now: said.head.count };
                if lifted.is_none() {
                    let reason = mismatch.text("this peer");
                    bars::put(&write, BarKind::Ledger, towards, (&id, 0), &reason).map_err(explain)?;
                }
                write.commit().map_err(explain)?;
                return Ok(Some(mismatch));
            }
        }
        keep(&write, (&towards.peer, own), said, other.is_some()).map_err(explain)?;
        write.commit().map_err(explain)?;
        Ok(None)
    }

    /// Keeps what a peer signed towards the key `own`, if it says more than what is held.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn keep_statement(&mut self, peer: &str, own: KeyFingerprint, said: &Statement) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        keep(&write, (peer, own), said, false).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// What was found of a peer's ledger in earlier runs and allowed by this side's operator since, oldest
    /// first.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn noticed(&self, peer: &str) -> Result<Vec<String>, Error> {
        let sql = format!(
            "SELECT at, reason FROM bars WHERE kind = 'ledger' AND peer IN {0} AND row <= (SELECT \
             coalesce(max(bars), 0) FROM allows WHERE allows.peer IN {0} AND allows.lineage IN \
             (bars.lineage, '')) ORDER BY row",
            line(1)
        );
        let read =
            |row: &rusqlite::Row<'_>| Ok(format!("{}: {}", date(row.get(0)?), row.get::<_, String>(1)?));
        self.listed(&sql, [peer], read)
    }

    /// Keeps a statement of this party's that a peer gave back, if it says more than this ledger holds and
    /// was not settled: the claim then. `signer` is this party.
    ///
    /// # Errors
    /// When the ledger cannot be read or written.
    pub fn claim(
        &mut self,
        statement: &Statement,
        signer: KeyFingerprint,
        peer: KeyFingerprint,
    ) -> Result<Option<Statement>, Error> {
        let key = peer.to_string();
        let (own, theirs) = (self.line_of(signer)?, self.line_of(peer)?);
        if !statement.is_of_any(&own, &theirs) || !self.is_missing(&key, statement)? {
            return Ok(None);
        }
        let explain = |e: rusqlite::Error| self.explain("write to", &e);
        let sql = "SELECT EXISTS (SELECT 1 FROM claims WHERE peer = ?1 AND statement = ?2 AND settled = 0)";
        let values = params![key, statement.bytes()];
        let kept: bool = self.connection.query_row(sql, values, |row| row.get(0)).map_err(explain)?;
        if !kept {
            self.keep_claim(&key, statement, 0)?;
        }
        Ok(Some(statement.clone()))
    }

    /// What peers gave back and this ledger does not hold, newest of each peer.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn claims(&self) -> Result<Vec<(String, Statement)>, Error> {
        let explain = |e: rusqlite::Error| self.explain("read", &e);
        let sql = "SELECT peer, statement FROM claims WHERE settled = 0 ORDER BY row DESC";
        let mut query = self.connection.prepare(sql).map_err(explain)?;
        let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?));
        let mut newest: Vec<(String, Statement)> = Vec::new();
        for row in query.query_map([], read).map_err(explain)? {
            let (peer, bytes) = row.map_err(explain)?;
            let peer = succession::newest(&self.connection, &peer).map_err(explain)?;
            let Some(statement) = Statement::read(&bytes) else { continue };
            match newest.iter_mut().find(|(known, _)| *known == peer) {
                Some((_, known)) if known.at < statement.at => *known = statement,
                Some(_) => {}
                None => newest.push((peer, statement)),
            }
        }
        let missing = |(peer, statement): &(String, Statement)| self.is_missing(peer, statement);
        newest
            .into_iter()
            .filter_map(|claim| missing(&claim).map(|m| m.then_some(claim)).transpose())
            .collect()
    }

    /// Goes on without what a peer says: statements of this party's up to now count no longer.
    ///
    /// # Errors
    /// When the ledger cannot be written.
    pub fn settle(&mut self, peer: &str, statement: &Statement) -> Result<(), Error> {
        self.keep_claim(peer, statement, now().max(statement.at.cast_signed()))
    }

    /// The day on which this ledger last took over what a peer gave back, or went on without it: what was
    /// charged before, study by study, is not in it.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn recovered_on(&self, peer: &str) -> Result<Option<String>, Error> {
        let sql = format!("SELECT max(at) FROM claims WHERE settled > 0 AND peer IN {}", line(1));
        let at = self.connection.query_row(&sql, [peer], |row| row.get::<_, Option<i64>>(0));
        Ok(at.map_err(|e| self.explain("read", &e))?.map(date))
    }

    /// Whether this ledger does not hold what a statement says, and it was not settled.
    fn is_missing(&self, peer: &str, statement: &Statement) -> Result<bool, Error> {
        let sql = format!("SELECT coalesce(max(settled), 0) FROM claims WHERE peer IN {}", line(1));
        let settled = self.connection.query_row(&sql, [peer], |row| row.get::<_, i64>(0));
        let settled = settled.map_err(|e| self.explain("read", &e))?;
        Ok(statement.at.cast_signed() > settled
            && self.walk(peer)?.at(statement.head.count) != Some(statement.head.hash)
            && statement.head != ChainHead::default())
    }

    fn keep_claim(&mut self, peer: &str, statement: &Statement, settled: i64) -> Result<(), Error> {
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        put_claim(&write, peer, statement, settled).map_err(explain)?;
        write.commit().map_err(explain)
    }

    /// Takes over what peers gave back: charges `lineage` with what the statements say was charged towards
    /// each of them in all, beyond what is in this ledger, and goes on with their chains from there. What was
    /// spent after a statement is not in it, a peer may have kept back a later one, and it does not say on
    /// which lineage: so every lineage is barred towards that peer until the operator allows more, or `spent`
    /// says what was spent. What peers promised in matches that are under way is forgotten: it may be less
    /// than they have promised.
    ///
    /// # Errors
    /// When no peer gave anything back; when several lineages could be meant; when the ledger cannot be
    /// written.
    pub fn recover(
        &mut self,
        lineage: Option<&str>,
        spent: Option<&Rational>,
    ) -> Result<Vec<RecoveredChain>, Error> {
        let claims = self.claims()?;
        if claims.is_empty() {
            return Err(Error::input(format!(
                "no peer has given back a statement that the ledger {} does not hold; there is nothing to \
                 recover",
                self.path.display()
            )));
        }
        let lineage = match lineage {
            Some(lineage) => lineage.to_owned(),
            None => self.only_lineage()?,
        };
        let path = &self.path;
        let explain = |e: rusqlite::Error| file::explain(path, "write to", &e);
        let write = begin(&mut self.connection).map_err(explain)?;
        let one = |(peer, statement): &(String, Statement)| {
            recover_one(
                &write,
                PeerLineage { peer: peer.clone(), lineage: lineage.clone() },
                statement,
                spent,
            )
        };
        let recovered = claims.iter().map(one).collect::<Result<_, _>>().map_err(explain)?;
        forget_promises(&write, None).map_err(explain)?;
        write.commit().map_err(explain)?;
        Ok(recovered)
    }

    /// The one lineage that this ledger knows.
    fn only_lineage(&self) -> Result<String, Error> {
        let sql = "SELECT DISTINCT lineage FROM (SELECT lineage FROM debits WHERE protects = 1 UNION SELECT \
                   lineage FROM bars) WHERE lineage <> ''";
        match &self.listed(sql, [], |row| row.get::<_, String>(0))?[..] {
            [one] => Ok(one.clone()),
            _ => Err(Error::input(
                "give the lineage that is to be charged: --lineage NAME, as in the party file",
            )),
        }
    }
}

fn recover_one(
    write: &Connection,
    towards: PeerLineage,
    statement: &Statement,
    spent: Option<&Rational>,
) -> Result<RecoveredChain, rusqlite::Error> {
    let PeerLineage { peer, lineage } = &towards;
    let claim = put_claim(write, peer, statement, statement.at.cast_signed())?;
    chain::anchor(write, peer, statement.head, claim)?;
    let (stated, here) = match spent {
        // What others made public is in no statement of this peer, and would hide what is lost.
        Some(spent) => (spent.clone(), super::spent_on(write, "rho", &super::sees(2), [lineage, peer])?),
        None => (statement.rho(), charged(write, "rho", peer)?),
    };
    let rho = (&stated - here).max(Rational::zero());
    let delta = (statement.delta() - charged(write, "delta", peer)?).max(Rational::zero());
    let id = [&statement.bytes()[..], lineage.as_bytes()].concat();
    let id = blake3::derive_key("tacit recovered debit 1", &id);
    if rho.is_positive() || delta.is_positive() {
        let debit = Debit {
            lineage: lineage.clone(),
            viewer_key: peer.clone(),
            peer_key: peer.clone(),
            study: [0; 32],
            my_tag: [0; 32],
            peer_tag: [0; 32],
            release_id: id,
            rho: rho.clone(),
            budget: Rational::zero(),
            total: None,
            period: None,
            delta,
            most_delta: Rational::zero(),
            tau: Rational::zero(),
            agreed: None,
            protects: true,
        };
        super::record(write, &debit, 0)?;
    }
    if spent.is_none() {
        let reason = format!(
            "recovered from a statement of {}, which says rho {} and delta {}: more may have been spent \
             after it",
            date(statement.at.cast_signed()),
            shown(&stated),
            page::numbers::power(&small(&statement.delta()))
        );
        // What the peer was charged on other lineages is not told apart: all of them wait for the operator.
        let everywhere = PeerLineage { peer: peer.clone(), lineage: String::new() };
        bars::put(write, BarKind::Noise, &everywhere, (&id, 0), &reason)?;
    }
    Ok(RecoveredChain {
        peer: peer.clone(),
        lineage: lineage.clone(),
        count: statement.head.count,
        at: statement.at,
        stated: shown(&stated),
        charged: shown(&rho),
        barred: spent.is_none(),
    })
}

fn put_claim(
    write: &Connection,
    peer: &str,
    statement: &Statement,
    settled: i64,
) -> Result<i64, rusqlite::Error> {
    let sql = "INSERT INTO claims (at, peer, settled, statement) VALUES (?1, ?2, ?3, ?4)";
    super::put(write, "claims", sql, params![now(), peer, settled, statement.bytes()], &[peer])
}

/// Keeps a statement of a peer, where it is a later one or the operator has allowed it: another run may have
/// heard a later one meanwhile.
fn keep(
    write: &Connection,
    (peer, own): (&str, KeyFingerprint),
    said: &Statement,
    allowed: bool,
) -> Result<(), rusqlite::Error> {
    if !allowed && held(write, peer, own)?.is_some_and(|last| last.head.count >= said.head.count) {
        return Ok(());
    }
    let sql = "INSERT INTO statements (at, peer, statement) VALUES (?1, ?2, ?3)";
    super::put(write, "statements", sql, params![now(), peer, said.bytes()], &[peer]).map(|_| ())
}

fn held(connection: &Connection, peer: &str, own: KeyFingerprint) -> Result<Held, rusqlite::Error> {
    let Ok(key) = peer.parse::<KeyFingerprint>() else { return Ok(None) };
    // The chain of a new key goes on from that of the old one, on either side.
    let (theirs, ours) = (line_of(connection, key)?, line_of(connection, own)?);
    let sql = format!("SELECT statement FROM statements WHERE peer IN {} ORDER BY row DESC", line(1));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([peer])?;
    while let Some(row) = rows.next()? {
        let said = Statement::read(&row.get::<_, Vec<u8>>(0)?).filter(|said| said.is_of_any(&theirs, &ours));
        if said.is_some() {
            return Ok(said);
        }
    }
    Ok(None)
}

/// The hash of the last statement that is kept of a peer: what a bar of its ledger is under.
pub(super) fn newest_said(connection: &Connection, peer: &str) -> Result<Option<Bytes32>, rusqlite::Error> {
    let sql = format!("SELECT statement FROM statements WHERE peer IN {} ORDER BY row DESC LIMIT 1", line(1));
    let said = connection.query_row(&sql, [peer], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(said.map(|said| *blake3::hash(&said).as_bytes()))
}

/// What this party's ledger has charged a peer over all lineages: the sum of a column, `rho` or `delta`.
fn charged(connection: &Connection, column: &str, peer: &str) -> Result<Rational, rusqlite::Error> {
    let sql = format!("SELECT {column} FROM debits WHERE {} AND protects = 1 AND {VOIDED}", super::sees(1));
    super::sum(connection, &sql, &[peer], column)
}
