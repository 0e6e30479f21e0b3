//! Accounts, their roles, and links to set a password with.

use super::{RecordedAct, Store};
use crate::changes::AccountAccess;
use crate::roles::{Grant, HouseRole};
use crate::secrets::{SecretToken, SpokenCode, TokenUse};
use base::Error;
use rusqlite::{Connection, OptionalExtension, Transaction, params};
use serde::Serialize;

/// How long a link holds.
const LINK_SECONDS: u64 = 24 * 3600;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its roles.
    pub grants: Vec<Grant>,
    /// Whether it can sign in.
    pub state: AccountState,
    /// When it last signed in, in seconds since 1970.
    pub signed_in: Option<u64>,
}

/// Whether an account can sign in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccountState {
    /// It has a password.
    Active,
    /// It has a link, and no password yet.
    Invited,
    /// It has neither: its link ran out.
    Waiting,
    /// It was ended.
    Ended,
}

impl AccountState {
    /// In words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Invited => "has a link, no password yet",
            Self::Waiting => "its link ran out; make another one",
            Self::Ended => "ended",
        }
    }
}

/// Why somebody may set a password.
#[derive(Clone, Copy)]
pub enum PasswordRight<'a> {
    /// A link, which is used up.
    Link(&'a SecretToken),
    /// A link, and the code that a second person has for it.
    Coded(&'a SecretToken, &'a SpokenCode),
    /// The hash of the password until now, which was given.
    Old(&'a str),
}

/// Who a link is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkOwner {
    /// The account.
    pub account: String,
    /// Whether it takes the code of a second person besides.
    pub coded: bool,
}

impl Store {
    /// Adds an account with roles, and a link with which its person sets a password; `None` where the name
    /// was taken, by an ended account too.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn add_account(&self, act: &RecordedAct<'_>, grants: &[Grant]) -> Result<Option<SecretToken>, Error> {
        let token = SecretToken::generate()?;
        if self.account(act.to, act.at)?.is_some() {
            return Ok(None);
        }
        self.act(act, |transaction| {
            let id = insert(transaction, act.to, act.at)?;
            grants.iter().try_for_each(|grant| give(transaction, id, grant))?;
            keep_link(transaction, id, &token.hash(TokenUse::Link), None, act.at)
        })?;
        Ok(Some(token))
    }

    /// Makes a link in place of the ones before, with which a person sets another password. Sessions end.
    /// Where it was decided by what the account `held`, none is made when that is something else by now.
    ///
    /// # Errors
    /// When there is no such account that is not ended, or the store cannot be written.
    pub fn new_link(
        &self,
        act: &RecordedAct<'_>,
        held: Option<&AccountAccess>,
    ) -> Result<Option<SecretToken>, Error> {
        let (token, id) = (SecretToken::generate()?, self.living(act.to)?);
        let made = self.act_if(act, |transaction| {
            if let Some(held) = held
                && access_in(transaction, act.to)? != *held
            {
                return Ok(None);
            }
            end_sessions(transaction, id, act.at)?;
            keep_link(transaction, id, &token.hash(TokenUse::Link), None, act.at).map(Some)
        })?;
        Ok(made.map(|()| token))
    }

    /// The account that a link is for, while it holds.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn link_is_for(&self, link: &SecretToken, now: u64) -> Result<Option<LinkOwner>, Error> {
        self.read(|connection| {
            let sql = "SELECT name, code IS NOT NULL FROM links JOIN accounts ON account = id \
                       WHERE hash = ?1 AND until > ?2";
            let owner = |row: &rusqlite::Row<'_>| Ok(LinkOwner { account: row.get(0)?, coded: row.get(1)? });
            let hash = link.hash(TokenUse::Link);
            connection.query_row(sql, params![hash, now.cast_signed()], owner).optional()
        })
    }

    /// Sets the password of an account, which ends its links and sessions; false where the right to do so is
    /// gone: the link was used or replaced, its code is another one, or the password is another one since.
    ///
    /// # Errors
    /// When there is no such account that is not ended, or the store cannot be written.
    pub fn set_password(
        &self,
        act: &RecordedAct<'_>,
        hash: &str,
        right: PasswordRight<'_>,
    ) -> Result<bool, Error> {
        let id = self.living(act.to)?;
        let set = self.act_if(act, |transaction| {
            let held = match right {
                PasswordRight::Link(link) => use_link(transaction, id, link, None, act.at)?,
                PasswordRight::Coded(link, code) => use_link(transaction, id, link, Some(code), act.at)?,
                PasswordRight::Old(old) => {
                    let sql = "SELECT EXISTS (SELECT 1 FROM accounts WHERE id = ?1 AND password = ?2)";
                    usize::from(transaction.query_row(sql, params![id, old], |row| row.get::<_, bool>(0))?)
                }
            };
            if held == 0 {
                return Ok(None);
            }
            end_sessions(transaction, id, act.at)?;
            transaction.execute("DELETE FROM links WHERE account = ?1", [id])?;
            transaction.execute("DELETE FROM tries WHERE name = ?1", [super::tries::hashed(act.to)])?;
            let sql = "UPDATE accounts SET password = ?2 WHERE id = ?1 AND ended IS NULL";
            Ok(Some(transaction.execute(sql, params![id, hash])?).filter(|set| *set == 1))
        })?;
        Ok(set.is_some())
    }

    /// Keeps the same password under other costs, unless it was changed since.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn rehash(&self, account: &str, old: &str, hash: &str) -> Result<(), Error> {
        let sql = "UPDATE accounts SET password = ?3 WHERE name = ?1 AND password = ?2";
        self.change(|transaction| transaction.execute(sql, [account, old, hash]).map(drop))
    }

    /// The hash of an account's password, where it has one and was not ended.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn password_of(&self, account: &str) -> Result<Option<String>, Error> {
        let sql = "SELECT password FROM accounts WHERE name = ?1 AND ended IS NULL";
        let found = self.read(|connection| connection.query_row(sql, [account], |row| row.get(0)).optional());
        found.map(Option::flatten)
    }

    /// Gives a role. What an account may do changes, so its sessions end.
    ///
    /// # Errors
    /// When there is no such account that is not ended, or the store cannot be written.
    pub fn give_role(&self, act: &RecordedAct<'_>, grant: &Grant) -> Result<(), Error> {
        let id = self.living(act.to)?;
        self.act(act, |transaction| {
            end_sessions(transaction, id, act.at)?;
            give(transaction, id, grant)
        })
    }

    /// Takes a role; the sessions end.
    ///
    /// # Errors
    /// As [`Self::give_role`].
    pub fn take_role(&self, act: &RecordedAct<'_>, grant: &Grant) -> Result<(), Error> {
        let id = self.living(act.to)?;
        self.act(act, |transaction| {
            end_sessions(transaction, id, act.at)?;
            let sql = "DELETE FROM grants WHERE account = ?1 AND role = ?2 AND data = ?3";
            let data = grant.data.as_deref().unwrap_or("");
            transaction.execute(sql, params![id, grant.role.name(), data]).map(drop)
        })
    }

    /// Ends an account for good: nobody signs in by it, and its name is not given again.
    ///
    /// # Errors
    /// As [`Self::give_role`].
    pub fn end_account(&self, act: &RecordedAct<'_>) -> Result<(), Error> {
        let id = self.living(act.to)?;
        self.act(act, |transaction| {
            end_sessions(transaction, id, act.at)?;
            transaction.execute("DELETE FROM links WHERE account = ?1", [id])?;
            transaction.execute("DELETE FROM grants WHERE account = ?1", [id])?;
            let sql = "UPDATE accounts SET password = NULL, ended = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id, act.at.cast_signed()]).map(drop)
        })
    }

    /// All accounts, by name.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn accounts(&self, now: u64) -> Result<Vec<Account>, Error> {
        self.read(|connection| listed(connection, "1 OR name = ?2", "", now))
    }

    /// One account.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn account(&self, name: &str, now: u64) -> Result<Option<Account>, Error> {
        self.read(|connection| Ok(listed(connection, "name = ?2", name, now)?.pop()))
    }

    /// What whoever gets into an account may do and read.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn access(&self, name: &str) -> Result<AccountAccess, Error> {
        self.read(|connection| access_in(connection, name))
    }

    /// The number of an account that was not ended.
    fn living(&self, name: &str) -> Result<i64, Error> {
        self.read(|connection| living_in(connection, name))?.ok_or_else(|| {
            Error::input(format!("there is no account {name} that can sign in; `tacit service account list`"))
        })
    }
}

/// The number of an account that was not ended.
pub(super) fn living_in(connection: &Connection, name: &str) -> Result<Option<i64>, rusqlite::Error> {
    let sql = "SELECT id FROM accounts WHERE name = ?1 AND ended IS NULL";
    connection.query_row(sql, [name], |row| row.get(0)).optional()
}

/// What an account has, and the data of the reports that were given to it; nothing where it was ended.
pub(super) fn access_in(connection: &Connection, name: &str) -> Result<AccountAccess, rusqlite::Error> {
    let Some(id) = living_in(connection, name)? else { return Ok(AccountAccess::default()) };
    let sql = "SELECT DISTINCT p.data FROM given g LEFT JOIN proposals p ON p.id = g.proposal \
               WHERE g.account = ?1 ORDER BY p.data";
    let mut query = connection.prepare_cached(sql)?;
    let reports = query.query_map([name], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(AccountAccess { grants: grants_of(connection, id)?, reports })
}

/// Adds an account without anything; its number.
pub(super) fn insert(transaction: &Transaction<'_>, name: &str, at: u64) -> Result<i64, rusqlite::Error> {
    let sql = "INSERT INTO accounts (name, made) VALUES (?1, ?2)";
    transaction.execute(sql, params![name, at.cast_signed()])?;
    Ok(transaction.last_insert_rowid())
}

/// Uses a link up; 0 where it does not hold.
fn use_link(
    transaction: &Transaction<'_>,
    id: i64,
    link: &SecretToken,
    code: Option<&SpokenCode>,
    at: u64,
) -> Result<usize, rusqlite::Error> {
    let sql = "DELETE FROM links WHERE hash = ?1 AND account = ?2 AND until > ?3 \
               AND (code IS NULL OR code = ?4)";
    let code = code.map(|code| code.hash(TokenUse::Code));
    transaction.execute(sql, params![link.hash(TokenUse::Link), id, at.cast_signed(), code])
}

pub(super) fn give(transaction: &Transaction<'_>, id: i64, grant: &Grant) -> Result<(), rusqlite::Error> {
    let sql = "INSERT OR IGNORE INTO grants (account, role, data) VALUES (?1, ?2, ?3)";
    let data = grant.data.as_deref().unwrap_or("");
    transaction.execute(sql, params![id, grant.role.name(), data]).map(drop)
}

/// Keeps the hash of a link in place of the ones before, and of the password.
pub(super) fn keep_link(
    transaction: &Transaction<'_>,
    id: i64,
    link: &[u8; 32],
    code: Option<&SpokenCode>,
    now: u64,
) -> Result<(), rusqlite::Error> {
    transaction
        .execute("DELETE FROM links WHERE until <= ?1 OR account = ?2", params![now.cast_signed(), id])?;
    // Who lost the telephone gets in again by a link, as who lost the password.
    let sql =
        "UPDATE accounts SET password = NULL, totp = NULL, totp_new = NULL, totp_step = 0 WHERE id = ?1";
    transaction.execute(sql, [id])?;
    transaction.execute("DELETE FROM recovery WHERE account = ?1", [id])?;
    let until = (now + LINK_SECONDS).cast_signed();
    let sql = "INSERT INTO links (hash, account, until, code) VALUES (?1, ?2, ?3, ?4)";
    let code = code.map(|code| code.hash(TokenUse::Code));
    transaction.execute(sql, params![link, id, until, code]).map(drop)
}

/// Ends the sessions of an account, and its tokens: both were made by who it was and what it might do before.
pub(super) fn end_sessions(transaction: &Transaction<'_>, id: i64, at: u64) -> Result<(), rusqlite::Error> {
    transaction.execute("DELETE FROM sessions WHERE account = ?1", [id])?;
    let sql = "UPDATE tokens SET ended = ?2 WHERE account = ?1 AND ended IS NULL";
    transaction.execute(sql, params![id, at.cast_signed()]).map(drop)
}

fn listed(
    connection: &Connection,
    which: &str,
    name: &str,
    now: u64,
) -> Result<Vec<Account>, rusqlite::Error> {
    let sql = format!(
        "SELECT id, name, password IS NOT NULL, ended IS NOT NULL, \
         EXISTS (SELECT 1 FROM links WHERE account = id AND until > ?1), \
         (SELECT max(at_ms) / 1000 FROM audit WHERE actor = name AND action = 'signed in') FROM accounts \
         WHERE {which} ORDER BY name"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let rows = query.query_map(params![now.cast_signed(), name], |row| {
        let state = match (row.get(3)?, row.get(2)?, row.get(4)?) {
            (true, _, _) => AccountState::Ended,
            (false, true, _) => AccountState::Active,
            (false, false, true) => AccountState::Invited,
            (false, false, false) => AccountState::Waiting,
        };
        let signed_in = row.get::<_, Option<i64>>(5)?.map(i64::unsigned_abs);
        Ok((row.get::<_, i64>(0)?, Account { name: row.get(1)?, grants: Vec::new(), state, signed_in }))
    })?;
    let with_roles = |row: Result<(i64, Account), rusqlite::Error>| {
        let (id, mut account) = row?;
        account.grants = grants_of(connection, id)?;
        Ok(account)
    };
    rows.map(with_roles).collect()
}

/// The roles of an account.
pub(super) fn grants_of(connection: &Connection, id: i64) -> Result<Vec<Grant>, rusqlite::Error> {
    let sql = "SELECT role, data FROM grants WHERE account = ?1 ORDER BY role, data";
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map([id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    let mut grants = Vec::new();
    for row in rows {
        let (role, data) = row?;
        // A role that this version does not know gives nothing.
        let role = HouseRole::named(&role);
        grants.extend(role.map(|role| Grant { role, data: Some(data).filter(|data| !data.is_empty()) }));
    }
    Ok(grants)
}
