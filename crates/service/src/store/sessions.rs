//! Sessions: who is signed in. The store has a hash of each cookie.

use super::accounts::{grants_of, living_in};
use super::{RecordedAct, Store};
use crate::roles::Grant;
use crate::secrets::{SecretToken, TokenUse};
use base::Error;
use rusqlite::{OptionalExtension, Transaction, params};

/// A session that is not used for so long ends.
pub(super) const IDLE_SECONDS: u64 = 30 * 60;
/// A session ends after so long, however it is used.
pub(super) const SESSION_SECONDS: u64 = 12 * 3600;
/// How long a password that was given counts as given just now.
const PROVEN_SECONDS: u64 = 5 * 60;
/// How often it is written down that a session is used.
const SEEN_SECONDS: u64 = 60;
/// Most sessions of an account; the one that was used least lately makes room.
pub(super) const SESSIONS: u32 = 10;
/// Wrong passwords within a session that end it.
const WRONG: u32 = 5;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSession {
    /// Its number, for a list.
    pub id: i64,
    /// Whose it is.
    pub account: String,
    /// The roles of the account, as they are now.
    pub grants: Vec<Grant>,
    /// When it began.
    pub begun: u64,
    /// When it was last used, to a minute.
    pub seen: u64,
    /// Whether the password was given in the last five minutes.
    pub proven: bool,
}

impl Store {
    /// Begins a session of an account whose password was compared with `hash`. The one of the cookie `before`
    /// ends with that. Where it `goes_on`, the new one ends no later than it would have. `None` where the
    /// password was changed since it was compared, or the session that would go on was ended.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin_session(
        &self,
        act: &RecordedAct<'_>,
        hash: &str,
        before: Option<&SecretToken>,
        goes_on: bool,
    ) -> Result<Option<SecretToken>, Error> {
        let token = SecretToken::generate()?;
        let begun = self.act_if(act, |transaction| {
            let sql = "SELECT id FROM accounts WHERE name = ?1 AND ended IS NULL AND password = ?2";
            let account =
                transaction.query_row(sql, [act.to, hash], |row| row.get::<_, i64>(0)).optional()?;
            let Some(account) = account else { return Ok(None) };
            let old = before.map(|token| token.hash(TokenUse::Session));
            let begun = match renewed(transaction, old.as_ref(), act.at)? {
                None if goes_on => return Ok(None),
                Some(old) if goes_on => old,
                _ => act.at,
            };
            let sql = "INSERT INTO sessions (hash, account, begun, seen, proven) VALUES (?1, ?2, ?3, ?4, ?4)";
            let hash = token.hash(TokenUse::Session);
            transaction.execute(sql, params![hash, account, begun.cast_signed(), act.at.cast_signed()])?;
            most(transaction, account).map(Some)
        })?;
        Ok(begun.map(|_| token))
    }

    /// Begins a session of an account whose person a proxy has vouched for; `None` where there is no such
    /// account. The password does not count as given.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin_by_proxy(&self, act: &RecordedAct<'_>) -> Result<Option<SecretToken>, Error> {
        let token = SecretToken::generate()?;
        let begun = self.act_if(act, |transaction| {
            let Some(account) = living_in(transaction, act.to)? else { return Ok(None) };
            renewed(transaction, None, act.at)?;
            let at = act.at.cast_signed();
            let sql = "INSERT INTO sessions (hash, account, begun, seen, proven) VALUES (?1, ?2, ?3, ?3, 0)";
            transaction.execute(sql, params![token.hash(TokenUse::Session), account, at])?;
            most(transaction, account).map(Some)
        })?;
        Ok(begun.map(|()| token))
    }

    /// The session of a cookie, if it holds; it is in use.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn session(&self, token: &SecretToken, now: u64) -> Result<Option<OpenSession>, Error> {
        let Some(session) = self.peek(token, now)? else { return Ok(None) };
        if now.saturating_sub(session.seen) >= SEEN_SECONDS {
            let sql = "UPDATE sessions SET seen = ?2 WHERE id = ?1";
            self.change(|transaction| transaction.execute(sql, params![session.id, now.cast_signed()]))?;
        }
        Ok(Some(session))
    }

    /// The session of a cookie, if it holds, for what nobody has asked for: it is no use of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn peek(&self, token: &SecretToken, now: u64) -> Result<Option<OpenSession>, Error> {
        let hash = token.hash(TokenUse::Session);
        let found = self.read(|connection| {
            let sql = "SELECT s.id, s.account, name, begun, seen, proven FROM sessions s \
                       JOIN accounts a ON a.id = s.account WHERE hash = ?1 AND ended IS NULL";
            let mut query = connection.prepare_cached(sql)?;
            let row = |row: &rusqlite::Row<'_>| {
                let time = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                let proven = now.saturating_sub(time(5)?) < PROVEN_SECONDS;
                let account: i64 = row.get(1)?;
                let session = OpenSession {
                    id: row.get(0)?,
                    account: row.get(2)?,
                    grants: Vec::new(),
                    begun: time(3)?,
                    seen: time(4)?,
                    proven,
                };
                Ok((account, session))
            };
            let Some((account, mut session)) = query.query_row([hash], row).optional()? else {
                return Ok(None);
            };
            session.grants = grants_of(connection, account)?;
            Ok(Some(session))
        })?;
        Ok(found.filter(|session| holds(session, now)))
    }

    /// The sessions of an account that hold, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sessions_of(&self, account: &str, now: u64) -> Result<Vec<OpenSession>, Error> {
        let all: Vec<OpenSession> = self.read(|connection| {
            let sql = "SELECT s.id, name, begun, seen FROM sessions s JOIN accounts a ON a.id = s.account \
                       WHERE name = ?1 ORDER BY s.id DESC";
            let mut query = connection.prepare_cached(sql)?;
            let row = |row: &rusqlite::Row<'_>| {
                let time = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                let (id, account, grants) = (row.get(0)?, row.get(1)?, Vec::new());
                Ok(OpenSession { id, account, grants, begun: time(2)?, seen: time(3)?, proven: false })
            };
            query.query_map([account], row)?.collect()
        })?;
        Ok(all.into_iter().filter(|session| holds(session, now)).collect())
    }

    /// All sessions that hold, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn all_sessions(&self, now: u64) -> Result<Vec<OpenSession>, Error> {
        let all: Vec<OpenSession> = self.read(|connection| {
            let sql = "SELECT s.id, a.name, begun, seen, a.id FROM sessions s JOIN accounts a \
                       ON a.id = s.account ORDER BY s.id DESC";
            let mut query = connection.prepare_cached(sql)?;
            let row = |row: &rusqlite::Row<'_>| {
                let time = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
                let (id, account) = (row.get(0)?, row.get(1)?);
                let grants = grants_of(connection, row.get(4)?)?;
                Ok(OpenSession { id, account, grants, begun: time(2)?, seen: time(3)?, proven: false })
            };
            query.query_map([], row)?.collect()
        })?;
        Ok(all.into_iter().filter(|session| holds(session, now)).collect())
    }

    /// Ends a session of an account by its number.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_session(&self, act: &RecordedAct<'_>, id: i64) -> Result<(), Error> {
        let sql =
            "DELETE FROM sessions WHERE id = ?1 AND account = (SELECT id FROM accounts WHERE name = ?2)";
        self.act(act, |transaction| transaction.execute(sql, params![id, act.to]).map(drop))
    }

    /// Counts a wrong password that was given within a session; at the fifth the session ends. An account
    /// whose owner is signed in is not locked by what others try: this is counted apart.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn wrong_within(&self, session: &OpenSession) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute("UPDATE sessions SET wrong = wrong + 1 WHERE id = ?1", [session.id])?;
            let sql = "DELETE FROM sessions WHERE id = ?1 AND wrong >= ?2";
            transaction.execute(sql, params![session.id, WRONG]).map(drop)
        })
    }
}

/// Ends the sessions of an account beyond the most that it may have.
fn most(transaction: &Transaction<'_>, account: i64) -> Result<(), rusqlite::Error> {
    let sql = "DELETE FROM sessions WHERE account = ?1 AND id NOT IN \
               (SELECT id FROM sessions WHERE account = ?1 ORDER BY seen DESC, id DESC LIMIT ?2)";
    transaction.execute(sql, params![account, SESSIONS]).map(drop)
}

fn holds(session: &OpenSession, now: u64) -> bool {
    now.saturating_sub(session.seen) < IDLE_SECONDS && now.saturating_sub(session.begun) < SESSION_SECONDS
}

/// Ends the session of a hash, and says when it began, if it was there. Sessions that are over go, too.
fn renewed(
    transaction: &Transaction<'_>,
    old: Option<&[u8; 32]>,
    now: u64,
) -> Result<Option<u64>, rusqlite::Error> {
    let sql = "DELETE FROM sessions WHERE begun <= ?1 OR seen <= ?2";
    let before = |seconds| now.saturating_sub(seconds).cast_signed();
    transaction.execute(sql, params![before(SESSION_SECONDS), before(IDLE_SECONDS)])?;
    let Some(old) = old else { return Ok(None) };
    let sql = "DELETE FROM sessions WHERE hash = ?1 RETURNING begun";
    let begun: Option<i64> = transaction.query_row(sql, [old], |row| row.get(0)).optional()?;
    Ok(begun.map(i64::unsigned_abs))
}
