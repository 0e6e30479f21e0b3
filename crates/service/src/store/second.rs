//! The second step of an account: a secret that a telephone has, too, and codes for when it is lost.

use super::{RecordedAct, Store};
use crate::secrets::{SecretToken, SpokenCode, TokenUse};
use crate::totp::{SECRET_BYTES, step_of};
use base::Error;
use rusqlite::{OptionalExtension, Transaction, params};

/// Codes for when the telephone is lost; each counts once.
const RECOVERY: usize = 10;

impl Store {
    /// Whether an account signs in with a second step.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn has_second(&self, account: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM accounts WHERE name = ?1 AND totp IS NOT NULL)";
        self.read(|connection| connection.query_row(sql, [account], |row| row.get(0)))
    }

    /// A fresh secret, which counts from when its first code was given.
    ///
    /// # Errors
    /// When the system gives no random numbers, or the store cannot be written.
    pub fn new_second(&self, account: &str) -> Result<[u8; SECRET_BYTES], Error> {
        let random = SecretToken::generate()?.hash(TokenUse::Second);
        let mut secret = [0; SECRET_BYTES];
        secret.copy_from_slice(&random[..SECRET_BYTES]);
        let sql = "UPDATE accounts SET totp_new = ?2 WHERE name = ?1";
        self.change(|transaction| transaction.execute(sql, params![account, secret]))?;
        Ok(secret)
    }

    /// Takes the first code of the fresh secret, which holds from then on; with new recovery codes, or none
    /// where the code is another one.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin_second(&self, act: &RecordedAct<'_>, code: &str) -> Result<Option<Vec<SpokenCode>>, Error> {
        let fresh = (0..RECOVERY).map(|_| SpokenCode::generate()).collect::<Result<Vec<_>, _>>()?;
        let begun = self.act_if(act, |transaction| {
            let sql = "SELECT id, totp_new FROM accounts WHERE name = ?1 AND totp_new IS NOT NULL";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?));
            let Some((id, secret)) = transaction.query_row(sql, [act.to], row).optional()? else {
                return Ok(None);
            };
            let Some(step) = step_of(&secret, code, act.at, 0) else { return Ok(None) };
            let sql = "UPDATE accounts SET totp = totp_new, totp_new = NULL, totp_step = ?2 WHERE id = ?1";
            transaction.execute(sql, params![id, step.cast_signed()])?;
            transaction.execute("DELETE FROM recovery WHERE account = ?1", [id])?;
            for code in &fresh {
                let sql = "INSERT INTO recovery (account, hash) VALUES (?1, ?2)";
                transaction.execute(sql, params![id, code.hash(TokenUse::Recovery)])?;
            }
            Ok(Some(()))
        })?;
        Ok(begun.map(|()| fresh))
    }

    /// Takes a code of an account that has a second step: of the telephone, or a recovery code, which is used
    /// up. False where it is none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn take_code(&self, account: &str, code: &str, now: u64) -> Result<bool, Error> {
        self.change(|transaction| take_code_in(transaction, account, code, now))
    }

    /// Ends the second step of an account for who has a code of it, and all sessions but the one of that
    /// number; false where the code is none.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_second(&self, act: &RecordedAct<'_>, code: &str, session: i64) -> Result<bool, Error> {
        let ended = self.act_if(act, |transaction| {
            if !take_code_in(transaction, act.to, code, act.at)? {
                return Ok(None);
            }
            let of = "account = (SELECT id FROM accounts WHERE name = ?1)";
            transaction.execute(&format!("DELETE FROM recovery WHERE {of}"), [act.to])?;
            let sql = format!("DELETE FROM sessions WHERE id <> ?2 AND {of}");
            transaction.execute(&sql, params![act.to, session])?;
            let sql = "UPDATE accounts SET totp = NULL, totp_new = NULL, totp_step = 0 WHERE name = ?1";
            transaction.execute(sql, [act.to]).map(Some)
        })?;
        Ok(ended.is_some())
    }
}

fn take_code_in(
    transaction: &Transaction<'_>,
    account: &str,
    code: &str,
    now: u64,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT id, totp, totp_step FROM accounts WHERE name = ?1 AND totp IS NOT NULL";
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?, row.get::<_, i64>(2)?))
    };
    let Some((id, secret, last)) = transaction.query_row(sql, [account], row).optional()? else {
        return Ok(false);
    };
    if let Some(step) = step_of(&secret, code, now, last.unsigned_abs()) {
        let sql = "UPDATE accounts SET totp_step = ?2 WHERE id = ?1";
        return Ok(transaction.execute(sql, params![id, step.cast_signed()])? == 1);
    }
    let Some(code) = SpokenCode::parse(code) else { return Ok(false) };
    let sql = "DELETE FROM recovery WHERE account = ?1 AND hash = ?2";
    Ok(transaction.execute(sql, params![id, code.hash(TokenUse::Recovery)])? == 1)
}
