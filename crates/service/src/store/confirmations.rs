//! What one person proposes and another one confirms. Confirming, the change itself and the line that says
//! so are one transaction, which looks at everybody's roles anew.

use super::accounts::{access_in, end_sessions, give, grants_of, insert, keep_link, living_in};
use super::checks::accept_in;
use super::{RecordedAct, Store, write_down, write_down_with};
use crate::changes::{AccessChange, ChangeDecision, ChangeFacts, PendingChange, ProposedChange, RulesChange};
use crate::roles::Asker;
use crate::secrets::SpokenCode;
use base::Error;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

/// How long a proposal can be confirmed.
const OPEN_SECONDS: u64 = 7 * 24 * 3600;
/// Proposals of one person that may wait.
const OPEN: u32 = 20;

/// What came of confirming.
pub enum Confirmed {
    /// The change was made; with the code that goes with the link, where there is one.
    Made(Option<SpokenCode>),
    /// It was decided, it is too old, or what it is about is gone or another one.
    Gone,
    /// This person may not, or whoever proposed it no longer could.
    Denied,
}

impl Store {
    /// Keeps a proposal until another person confirms it; its number, or none where too many of this person
    /// wait already.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn propose_change(&self, by: &str, change: &ProposedChange, at: u64) -> Result<Option<i64>, Error> {
        let text = serde_json::to_string(change).map_err(|e| Error::misuse(format!("no JSON: {e}")))?;
        let what = format!("proposed: {}", change.words());
        self.act_if(&RecordedAct { by, what: &what, to: change.subject(), at }, |transaction| {
            let sql = "SELECT count(*) FROM confirmations WHERE by = ?1 AND decided IS NULL AND until > ?2";
            let open: u32 = transaction.query_row(sql, params![by, at.cast_signed()], |row| row.get(0))?;
            if open >= OPEN {
                return Ok(None);
            }
            let sql =
                "INSERT INTO confirmations (at, by, subject, change, until) VALUES (?1, ?2, ?3, ?4, ?5)";
            let until = (at + OPEN_SECONDS).cast_signed();
            transaction.execute(sql, params![at.cast_signed(), by, change.subject(), text, until])?;
            Ok(Some(transaction.last_insert_rowid()))
        })
    }

    /// Makes the change that somebody proposed; one of rules with `file`, which writes the text.
    ///
    /// # Errors
    /// When the file or the store cannot be written; nothing has changed then.
    pub fn confirm_change(
        &self,
        actor: &Asker,
        number: i64,
        at: u64,
        file: &dyn Fn(&RulesChange) -> Result<(), Error>,
    ) -> Result<Confirmed, Error> {
        let mut outcome = Confirmed::Gone;
        let explain = |e| self.explain("write", &e);
        let code = SpokenCode::generate()?;
        let made = self.within::<_, Error>(|transaction| {
            let Some(one) = waiting(transaction, number, at).map_err(explain)? else { return Ok(None) };
            let facts = facts(transaction, &one).map_err(explain)?;
            let actor = as_now(transaction, actor).map_err(explain)?;
            if !one.change.may_be_confirmed(&one.by, &actor, &facts) {
                outcome = Confirmed::Denied;
                return Ok(None);
            }
            if !one.change.still_fits(&facts) {
                return Ok(None);
            }
            let linked = match &one.change {
                ProposedChange::Access(change)
                    if apply(transaction, change, &code, at).map_err(explain)? =>
                {
                    change.link.is_some()
                }
                ProposedChange::Rules(change) if accept_in(transaction, change, &actor.name, at)? => {
                    file(change)?;
                    false
                }
                _ => return Ok(None),
            };
            decide(transaction, number, ChangeDecision::Confirmed, &actor.name, at).map_err(explain)?;
            let what = format!("confirmed for {}: {}", one.by, one.change.words());
            let act = RecordedAct { by: &actor.name, what: &what, to: one.change.subject(), at };
            write_down_with(transaction, &act, &one.change.detail())?;
            Ok(Some(linked))
        })?;
        Ok(made.map_or(outcome, |linked| Confirmed::Made(linked.then_some(code))))
    }

    /// Decides that a proposal is not made: who could confirm it refuses it, who made it takes it back. False
    /// where this person may not, or it no longer waits.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn turn_down(&self, actor: &Asker, number: i64, at: u64) -> Result<bool, Error> {
        let explain = |e| self.explain("write", &e);
        let done = self.within::<_, Error>(|transaction| {
            let Some(one) = waiting(transaction, number, at).map_err(explain)? else { return Ok(None) };
            let facts = facts(transaction, &one).map_err(explain)?;
            let actor = as_now(transaction, actor).map_err(explain)?;
            let decision = match one.by == actor.name {
                true => ChangeDecision::Withdrawn,
                false if one.change.is_for(&actor, &facts.subject) => ChangeDecision::Refused,
                false => return Ok(None),
            };
            decide(transaction, number, decision, &actor.name, at).map_err(explain)?;
            let what = format!("{} of {}: {}", decision.name(), one.by, one.change.words());
            let act = RecordedAct { by: &actor.name, what: &what, to: one.change.subject(), at };
            write_down(transaction, &act).map(Some)
        })?;
        Ok(done.is_some())
    }

    /// Proposals that wait.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn waiting_changes(&self, now: u64) -> Result<Vec<PendingChange>, Error> {
        self.read(|connection| {
            listed(connection, "decided IS NULL AND until > ?1 ORDER BY number", now.cast_signed())
        })
    }

    /// The newest that were decided.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn decided_changes(&self, most: u32) -> Result<Vec<PendingChange>, Error> {
        let which = "decided IS NOT NULL ORDER BY number DESC LIMIT ?1";
        self.read(|connection| listed(connection, which, i64::from(most)))
    }
}

fn waiting(connection: &Connection, number: i64, at: u64) -> Result<Option<PendingChange>, rusqlite::Error> {
    let which = "decided IS NULL AND number = ?1";
    Ok(listed(connection, which, number)?.pop().filter(|one| one.until > at))
}

/// Those of a condition; one of a kind that this program does not know is none.
fn listed(connection: &Connection, which: &str, value: i64) -> Result<Vec<PendingChange>, rusqlite::Error> {
    let sql = format!(
        "SELECT number, at, by, change, until, decision, decided, decided_by FROM confirmations WHERE {which}"
    );
    let mut query = connection.prepare_cached(&sql)?;
    let mut rows = query.query([value])?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        let time = |column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let Ok(change) = serde_json::from_str(&row.get::<_, String>(3)?) else { continue };
        let decision: Option<String> = row.get(5)?;
        let decision = ChangeDecision::ALL.into_iter().find(|one| Some(one.name()) == decision.as_deref());
        let decided = decision.map(|decision| Ok::<_, rusqlite::Error>((decision, time(6)?, row.get(7)?)));
        all.push(PendingChange {
            number: row.get(0)?,
            at: time(1)?,
            by: row.get(2)?,
            change,
            until: time(4)?,
            decided: decided.transpose()?,
        });
    }
    Ok(all)
}

fn facts(connection: &Connection, one: &PendingChange) -> Result<ChangeFacts, rusqlite::Error> {
    let grants = |name: &str| living_in(connection, name)?.map(|id| grants_of(connection, id)).transpose();
    Ok(ChangeFacts { proposer: grants(&one.by)?, subject: access_in(connection, one.change.subject())? })
}

/// Who asks, with the roles of this moment; none where the account was ended since the request began.
fn as_now(connection: &Connection, actor: &Asker) -> Result<Asker, rusqlite::Error> {
    let grants = living_in(connection, &actor.name)?.map(|id| grants_of(connection, id)).transpose()?;
    Ok(Asker { grants: grants.unwrap_or_default(), ..actor.clone() })
}

fn decide(
    transaction: &Transaction<'_>,
    number: i64,
    decision: ChangeDecision,
    by: &str,
    at: u64,
) -> Result<(), rusqlite::Error> {
    let sql = "UPDATE confirmations SET decision = ?2, decided_by = ?3, decided = ?4 WHERE number = ?1";
    transaction.execute(sql, params![number, decision.name(), by, at.cast_signed()]).map(drop)
}

/// Makes a change of an account; false where it cannot be made any more.
fn apply(
    transaction: &Transaction<'_>,
    change: &AccessChange,
    code: &SpokenCode,
    at: u64,
) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT id FROM accounts WHERE name = ?1";
    let known = transaction.query_row(sql, [&change.account], |row| row.get::<_, i64>(0)).optional()?;
    let id = match (change.new, living_in(transaction, &change.account)?) {
        (true, _) if known.is_none() => insert(transaction, &change.account, at)?,
        (false, Some(id)) => id,
        _ => return Ok(false),
    };
    end_sessions(transaction, id, at)?;
    change.give.iter().try_for_each(|grant| give(transaction, id, grant))?;
    if let Some(link) = &change.link {
        let Some(link) = base::unhex(link) else { return Ok(false) };
        keep_link(transaction, id, &link, Some(code), at)?;
    }
    Ok(true)
}
