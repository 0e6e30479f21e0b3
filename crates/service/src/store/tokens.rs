//! Tokens: what programs have of people. The store has hashes of them, and what was answered to requests that
//! may come twice.

use super::accounts::{grants_of, living_in};
use super::{RecordedAct, Store};
use crate::roles::{Asker, Grant};
use crate::secrets::{SecretToken, TokenUse};
use base::Error;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde::Serialize;

/// How long a request is remembered by its key.
const REMEMBERED: u64 = 24 * 3600;
/// Answers that are kept for one account at most, and their bytes: the oldest go.
const KEPT: [u64; 2] = [1_000, 4 << 20];
/// After so many seconds the use of a token is written down again.
const USED_SECONDS: u64 = 60;
/// Tokens that one account has at most.
const MOST: i64 = 50;
/// How long a token is listed after it ran out.
const LISTED: u64 = 90 * 24 * 3600;

/// What a token may be used for; its account has to be allowed to do it besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenScope {
    /// See studies, and what they would do.
    Studies,
    /// Keep drafts and propose them; write notes; withdraw what its account proposed.
    Propose,
    /// Withdraw and write notes; with `policy.consent_by_token` also consent and refuse.
    Consent,
    /// See, start and stop runs.
    Run,
    /// Read reports.
    Reports,
    /// See data and checks of them, and check.
    Data,
    /// See budgets.
    Budget,
    /// Read, verify and export the audit log.
    Audit,
    /// See rules and links; test and pause links.
    Operate,
}

impl TokenScope {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Studies,
        Self::Propose,
        Self::Consent,
        Self::Run,
        Self::Reports,
        Self::Data,
        Self::Budget,
        Self::Audit,
        Self::Operate,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Studies => "studies",
            Self::Propose => "propose",
            Self::Consent => "consent",
            Self::Run => "run",
            Self::Reports => "reports",
            Self::Data => "data",
            Self::Budget => "budget",
            Self::Audit => "audit",
            Self::Operate => "operate",
        }
    }

    /// The scope of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// What it is for, in a sentence for a form.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Studies => "see studies, and what they would do",
            Self::Propose => "propose studies, and withdraw your own",
            Self::Consent => "withdraw; consent and refuse only where consent_by_token allows it",
            Self::Run => "see, start and stop runs",
            Self::Reports => "read reports",
            Self::Data => "see and check data",
            Self::Budget => "see budgets",
            Self::Audit => "read the audit log",
            Self::Operate => "see rules and links, test and pause links",
        }
    }
}

/// A token that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiToken {
    /// What its person calls it.
    pub name: String,
    /// What for.
    pub scopes: Vec<TokenScope>,
    /// With which data sets; none: with all that its account has.
    pub data: Option<Vec<String>>,
    /// Until when it holds, in seconds since 1970.
    pub until: u64,
}

/// A token, without what it is known by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ApiToken {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub account: String,
    /// What its person calls it.
    pub name: String,
    /// What for.
    pub scopes: Vec<TokenScope>,
    /// With which data sets; none: with all that its account has.
    pub data: Option<Vec<String>>,
    /// When it was made, in seconds since 1970.
    pub made: u64,
    /// Until when it holds.
    pub until: u64,
    /// When it was used last, to the minute.
    pub used: Option<u64>,
    /// When it was ended.
    pub ended: Option<u64>,
}

impl ApiToken {
    /// Whether it holds.
    #[must_use]
    pub fn holds(&self, now: u64) -> bool {
        self.ended.is_none() && self.until > now
    }

    /// Who asks by it: its account with the roles that it has now, for the token's data alone.
    #[must_use]
    pub fn asker(&self, grants: &[Grant], separate: bool) -> Asker {
        let of = |grant: &Grant| match (&self.data, &grant.data) {
            (None, _) => vec![grant.clone()],
            (Some(own), None) => {
                let one = |data: &String| Grant { role: grant.role, data: Some(data.clone()) };
                own.iter().map(one).collect()
            }
            (Some(own), Some(data)) => own.contains(data).then(|| grant.clone()).into_iter().collect(),
        };
        Asker { name: self.account.clone(), grants: grants.iter().flat_map(of).collect(), separate }
    }
}

/// What is known of a request that comes with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// It came for the first time, and is to be done.
    Fresh,
    /// It was done, with this answer.
    Answered(u16, Vec<u8>),
    /// It is being done, or was broken off.
    Unknown,
    /// The key came with another request.
    Another,
}

const COLUMNS: &str =
    "t.id, a.name, t.name, t.scopes, t.data, t.made, t.until, t.used, t.ended, a.id, a.ended IS NULL";

fn token(row: &Row<'_>) -> Result<(ApiToken, i64, bool), rusqlite::Error> {
    let time = |at: usize| row.get::<_, Option<i64>>(at).map(|at| at.map(i64::unsigned_abs));
    let (scopes, data): (String, Option<String>) = (row.get(3)?, row.get(4)?);
    let token = ApiToken {
        id: row.get(0)?,
        account: row.get(1)?,
        name: row.get(2)?,
        // What this version does not know gives nothing.
        scopes: scopes.split(' ').filter_map(TokenScope::named).collect(),
        data: data.map(|data| data.split(' ').filter(|data| !data.is_empty()).map(str::to_owned).collect()),
        made: time(5)?.unwrap_or_default(),
        until: time(6)?.unwrap_or_default(),
        used: time(7)?,
        ended: time(8)?,
    };
    Ok((token, row.get(9)?, row.get(10)?))
}

impl Store {
    /// Makes a token of the account that an act is about: the text of it, which nobody sees again. `None`
    /// where the account has one of this name that holds, or too many.
    ///
    /// # Errors
    /// When there is no such account that is not ended, or the store cannot be written.
    pub fn add_token(&self, act: &RecordedAct<'_>, new: &NewApiToken) -> Result<Option<String>, Error> {
        let secret = SecretToken::generate()?;
        let none = || Error::input(format!("there is no account {} that can sign in", act.to));
        self.read(|connection| living_in(connection, act.to))?.ok_or_else(none)?;
        let now = act.at.cast_signed();
        let made = self.act_if(act, |transaction| {
            let Some(account) = living_in(transaction, act.to)? else { return Ok(None) };
            forget(transaction, act.at)?;
            let sql = "SELECT count(*), coalesce(sum(name = ?2), 0) FROM tokens \
                       WHERE account = ?1 AND ended IS NULL AND until > ?3";
            let values = params![account, new.name, now];
            let held = transaction.query_row(sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let (all, alike): (i64, i64) = held;
            if all >= MOST || alike > 0 {
                return Ok(None);
            }
            let scopes: Vec<&str> = new.scopes.iter().map(|scope| scope.name()).collect();
            let data = new.data.as_ref().map(|data| data.join(" "));
            let sql = "INSERT INTO tokens (hash, account, name, scopes, data, made, until) \
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            let hash = secret.hash(TokenUse::Api);
            let until = new.until.cast_signed();
            let values = params![hash, account, new.name, scopes.join(" "), data, now, until];
            transaction.execute(sql, values).map(Some)
        })?;
        Ok(made.map(|_| secret.for_programs()))
    }

    /// The tokens of an account, the newest first; of all accounts where none is named.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn tokens_of(&self, account: Option<&str>) -> Result<Vec<ApiToken>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM tokens t JOIN accounts a ON a.id = t.account \
             WHERE ?1 IS NULL OR a.name = ?1 ORDER BY t.id DESC"
        );
        self.read(|connection| {
            let mut query = connection.prepare_cached(&sql)?;
            query.query_map([account], |row| token(row).map(|(token, ..)| token))?.collect()
        })
    }

    /// Ends a token of the account that an act is about; false where it has none of this number that holds.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_token(&self, act: &RecordedAct<'_>, id: i64) -> Result<bool, Error> {
        let sql = "UPDATE tokens SET ended = ?3 WHERE id = ?1 AND ended IS NULL \
                   AND account = (SELECT id FROM accounts WHERE name = ?2)";
        let ended = self.act_if(act, |transaction| {
            let ended = transaction.execute(sql, params![id, act.to, act.at.cast_signed()])?;
            Ok((ended == 1).then_some(()))
        })?;
        Ok(ended.is_some())
    }

    /// The token that somebody shows, if it holds, and the roles that its account has now; it is in use.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn token(&self, shown: &SecretToken, now: u64) -> Result<Option<(ApiToken, Vec<Grant>)>, Error> {
        let found = self.peek_token(shown, now)?;
        if let Some((token, _)) = &found
            && token.used.is_none_or(|used| now.saturating_sub(used) >= USED_SECONDS)
        {
            let sql = "UPDATE tokens SET used = ?2 WHERE id = ?1";
            self.change(|transaction| transaction.execute(sql, params![token.id, now.cast_signed()]))?;
        }
        Ok(found)
    }

    /// The same for what nobody asks for: it is no use of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn peek_token(&self, shown: &SecretToken, now: u64) -> Result<Option<(ApiToken, Vec<Grant>)>, Error> {
        let sql =
            format!("SELECT {COLUMNS} FROM tokens t JOIN accounts a ON a.id = t.account WHERE hash = ?1");
        let hash = shown.hash(TokenUse::Api);
        self.read(|connection| {
            let found = connection.prepare_cached(&sql)?.query_row([hash], token).optional()?;
            let Some((token, account, lives)) = found else { return Ok(None) };
            let held = lives && token.holds(now);
            if held { Ok(Some((token, grants_of(connection, account)?))) } else { Ok(None) }
        })
    }

    /// Remembers that a request of a token comes with a key, and says what is known of it. `request` is the
    /// hash of what is asked for.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn begin_request(
        &self,
        token: i64,
        key: &str,
        request: &[u8; 32],
        now: u64,
    ) -> Result<Replayed, Error> {
        self.change(|transaction| {
            forget(transaction, now)?;
            let known = known(transaction, token, key)?;
            let Some((other, answer)) = known else {
                let sql = "INSERT INTO answers (token, key, request, at) VALUES (?1, ?2, ?3, ?4)";
                transaction.execute(sql, params![token, key, request, now.cast_signed()])?;
                bound(transaction, token, key)?;
                return Ok(Replayed::Fresh);
            };
            Ok(match answer {
                _ if other != *request => Replayed::Another,
                Some((status, answer)) => Replayed::Answered(status, answer),
                None => Replayed::Unknown,
            })
        })
    }

    /// Keeps what was answered to a request; none: nothing was done, and it may come again.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn end_request(&self, token: i64, key: &str, answer: Option<(u16, &[u8])>) -> Result<(), Error> {
        self.change(|transaction| match answer {
            Some((status, answer)) => {
                let sql = "UPDATE answers SET status = ?3, answer = ?4 WHERE token = ?1 AND key = ?2";
                transaction.execute(sql, params![token, key, status, answer])?;
                bound(transaction, token, key)
            }
            None => {
                let sql = "DELETE FROM answers WHERE token = ?1 AND key = ?2";
                transaction.execute(sql, params![token, key]).map(drop)
            }
        })
    }
}

/// The request that a key came with before, and its answer, where there is one.
type KnownRequest = ([u8; 32], Option<(u16, Vec<u8>)>);

fn known(connection: &Connection, token: i64, key: &str) -> Result<Option<KnownRequest>, rusqlite::Error> {
    let sql = "SELECT request, status, answer FROM answers WHERE token = ?1 AND key = ?2";
    let row = |row: &Row<'_>| {
        let (status, answer): (Option<u16>, Option<Vec<u8>>) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, status.zip(answer)))
    };
    connection.prepare_cached(sql)?.query_row(params![token, key], row).optional()
}

/// Takes away the oldest answers of a token's account where there are too many; never that of this key.
fn bound(transaction: &Transaction<'_>, token: i64, key: &str) -> Result<(), rusqlite::Error> {
    let sql = "DELETE FROM answers WHERE (token, key) IN (SELECT token, key FROM ( \
                 SELECT a.token, a.key, row_number() OVER w AS place, \
                        sum(ifnull(length(a.answer), 0)) OVER w AS size \
                 FROM answers a JOIN tokens t ON t.id = a.token \
                 WHERE t.account = (SELECT account FROM tokens WHERE id = ?1) \
                 WINDOW w AS (ORDER BY a.token = ?1 AND a.key = ?2 DESC, a.at DESC, a.token, a.key \
                              ROWS UNBOUNDED PRECEDING)) \
               WHERE place > 1 AND (place > ?3 OR size > ?4))";
    let [most, bytes] = KEPT.map(u64::cast_signed);
    transaction.execute(sql, params![token, key, most, bytes]).map(drop)
}

/// Takes away what nobody needs any more.
fn forget(transaction: &Transaction<'_>, now: u64) -> Result<(), rusqlite::Error> {
    let before = |seconds| now.saturating_sub(seconds).cast_signed();
    let gone = "SELECT id FROM tokens WHERE until < ?2";
    let sql = format!("DELETE FROM answers WHERE at < ?1 OR token IN ({gone})");
    transaction.execute(&sql, params![before(REMEMBERED), before(LISTED)])?;
    transaction.execute("DELETE FROM tokens WHERE until < ?1", [before(LISTED)]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::HouseRole;

    const NOW: u64 = 1_800_000_000;

    fn act<'a>(what: &'a str, to: &'a str, at: u64) -> RecordedAct<'a> {
        RecordedAct { by: "ann", what, to, at }
    }

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(&folder.path().join("service.db")).expect("opens");
        let grants = ["steward=a", "analyst"].map(|text| Grant::parse(text).expect("a role"));
        store.add_account(&act("account added", "ann", NOW), &grants).expect("added").expect("new");
        (folder, store)
    }

    fn new(name: &str) -> NewApiToken {
        NewApiToken {
            name: name.to_owned(),
            scopes: vec![TokenScope::Studies],
            data: Some(vec!["a".to_owned()]),
            until: NOW + 100,
        }
    }

    fn made(store: &Store, name: &str) -> SecretToken {
        let text = store.add_token(&act("token made", "ann", NOW), &new(name)).expect("made").expect("new");
        SecretToken::of_program(&text).expect("a token")
    }

    #[test]
    fn a_token_is_kept_as_a_hash_and_holds_until_its_time() {
        let (folder, store) = store();
        let token = made(&store, "ci");
        let (found, grants) = store.token(&token, NOW + 99).expect("reads").expect("holds");
        assert_eq!((found.name.as_str(), found.used, grants.len()), ("ci", None, 2));
        assert_eq!(store.tokens_of(Some("ann")).expect("reads")[0].used, Some(NOW + 99));
        assert!(store.token(&token, NOW + 100).expect("reads").is_none(), "it ran out");
        assert!(store.add_token(&act("again", "ann", NOW), &new("ci")).expect("asks").is_none());
        drop(store);
        let text = token.for_programs();
        for name in ["service.db", "service.db-wal"] {
            let bytes = std::fs::read(folder.path().join(name)).unwrap_or_default();
            assert!(!bytes.windows(text.len()).any(|part| part == text.as_bytes()), "{name}");
        }
    }

    #[test]
    fn who_asks_has_the_roles_of_now_for_the_data_of_the_token() {
        let (_folder, store) = store();
        let (token, grants) = store.token(&made(&store, "ci"), NOW).expect("reads").expect("holds");
        let of = |role, data: &str| Grant { role, data: Some(data.to_owned()) };
        let asker = token.asker(&grants, true);
        assert_eq!(asker.grants, [of(HouseRole::Analyst, "a"), of(HouseRole::Steward, "a")]);
        let other = ApiToken { data: Some(vec!["b".to_owned()]), ..token.clone() };
        assert_eq!(other.asker(&grants, true).grants, [of(HouseRole::Analyst, "b")]);
        let all = ApiToken { data: None, ..token };
        assert_eq!(all.asker(&grants, true).grants, grants);
    }

    #[test]
    fn other_roles_a_new_link_and_a_button_end_it() {
        let (_folder, store) = store();
        let holds = |token: &SecretToken| store.token(token, NOW).expect("reads").is_some();
        let (one, other) = (made(&store, "one"), made(&store, "other"));
        let ids: Vec<i64> =
            store.tokens_of(Some("ann")).expect("reads").iter().map(|token| token.id).collect();
        assert!(!store.end_token(&act("token ended", "bob", NOW), ids[0]).expect("asks"), "another's");
        assert!(store.end_token(&act("token ended", "ann", NOW), ids[0]).expect("ended"));
        assert!(!store.end_token(&act("token ended", "ann", NOW), ids[0]).expect("asks"), "once");
        assert!(holds(&one) && !holds(&other));
        let analyst = Grant { role: HouseRole::Analyst, data: None };
        store.take_role(&act("role taken", "ann", NOW), &analyst).expect("taken");
        assert!(!holds(&one));
        let third = made(&store, "third");
        store.new_link(&act("link", "ann", NOW), None).expect("made").expect("made");
        assert!(!holds(&third));
    }

    #[test]
    fn a_request_with_a_key_is_done_once() {
        let (_folder, store) = store();
        let id = store.token(&made(&store, "ci"), NOW).expect("reads").expect("holds").0.id;
        let begin = |request: u8, at| store.begin_request(id, "k", &[request; 32], at).expect("asks");
        assert_eq!(begin(1, NOW), Replayed::Fresh);
        assert_eq!(begin(1, NOW), Replayed::Unknown, "it is not over");
        store.end_request(id, "k", Some((201, b"{}"))).expect("kept");
        assert_eq!(begin(1, NOW), Replayed::Answered(201, b"{}".to_vec()));
        assert_eq!(begin(2, NOW), Replayed::Another);
        assert_eq!(begin(2, NOW + REMEMBERED + 1), Replayed::Fresh, "a day later");
        store.end_request(id, "k", None).expect("taken back");
        assert_eq!(begin(3, NOW + REMEMBERED + 1), Replayed::Fresh);
    }

    #[test]
    fn the_oldest_answers_of_an_account_go() {
        let (_folder, store) = store();
        let id = |name| store.token(&made(&store, name), NOW).expect("reads").expect("holds").0.id;
        let (one, other) = (id("one"), id("other"));
        let begin = |token, key: &str, at| store.begin_request(token, key, &[1; 32], at).expect("asks");
        let kept = |token, key: &str, at, answer: &[u8]| {
            assert_eq!(begin(token, key, at), Replayed::Fresh, "{key}");
            store.end_request(token, key, Some((200, answer))).expect("kept");
        };
        let large = vec![b'x'; 1 << 20];
        for (at, key) in (NOW..).zip(["a", "b", "c", "d"]) {
            kept(one, key, at, &large);
        }
        assert!(matches!(begin(one, "a", NOW + 4), Replayed::Answered(..)), "four have their place");
        kept(other, "e", NOW + 4, &large);
        assert_eq!(begin(one, "a", NOW + 5), Replayed::Fresh, "the oldest went, of the other token");
        assert!(matches!(begin(one, "b", NOW + 5), Replayed::Answered(..)));
        let sql = "INSERT INTO answers (token, key, request, at) VALUES (?1, 'n' || ?2, zeroblob(32), ?3)";
        let many = store.change(|transaction| {
            (0..KEPT[0].cast_signed()).try_for_each(|at| {
                transaction.execute(sql, params![other, at, NOW.cast_signed() + 6]).map(drop)
            })
        });
        many.expect("written");
        assert_eq!(begin(one, "new", NOW + 7), Replayed::Fresh);
        assert_eq!(begin(one, "b", NOW + 7), Replayed::Fresh, "a thousand came after it");
    }
}
