//! Proposals and what was said about them. The statements are the truth; a row of `proposals` is what lists
//! need of them, and is written in the same transaction.
//!
//! What this organisation says is stored, put into the outbox of each other party and written into the log,
//! all or nothing, before anything is sent. What another party says is stored before it is acknowledged.

use super::consents::TAKE_DATA;
use super::shelf::{KnownRecord, load};
use super::unheard::{UNHEARD, is_unheard};
use super::{RecordedAct, Store};
use base::{Error, hex};
use net::{Identity, KeyFingerprint};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use statements::{
    KeptStatement, NotKept, ProposalId, ProposalRecord, ProposalState, ProposedStudy, Said, SignedStatement,
};
use std::collections::HashMap;
use study::{StudyFile, StudyHash};

/// Rows of a page of a list.
pub const PAGE: usize = 50;
/// Who acts where nobody asked for it.
pub const SERVICE: &str = "(service)";
/// Why a study is not proposed a second time.
pub const ALREADY_OPEN: &str = "this study is proposed already: that proposal has to be over first (withdraw \
                                or refuse it)";
/// Why no run of a proposal begins where a person stopped one.
pub const STOPPED: &str = "stopped";
/// What the log has of a person who stops one.
pub const RUN_STOPPED: &str = "run stopped";
const DAY_MS: u64 = 86_400_000;
/// Bytes of statements that a peer may send in a day.
const BYTES_PER_DAY: u64 = 4 << 20;
/// Statements that a peer may send in a day: each is held against all before it.
const STATEMENTS_PER_DAY: u64 = 2_000;

/// Statements of a party on a proposal that are kept though they do not count.
const UNCOUNTED: u32 = 64;

/// Who says something: the name of an account, [`SERVICE`] or the command line; by which key; and when, in
/// milliseconds since 1970.
#[derive(Clone, Copy)]
pub struct Speaker<'a> {
    /// Who, for the log.
    pub by: &'a str,
    /// The organisation's key.
    pub identity: &'a Identity,
    /// This machine's clock.
    pub at_ms: u64,
}

/// A proposal as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProposalRow {
    /// Where a list goes on: proposals made later have larger ones.
    pub row: u64,
    /// Its name.
    pub id: ProposalId,
    /// The hash of the study.
    pub study: StudyHash,
    /// The title of the study, as its author wrote it.
    pub title: String,
    /// `lift`, `program` or `match`.
    pub kind: String,
    /// Who proposed it.
    pub proposer: KeyFingerprint,
    /// The account that proposed it, or [`super::COMMAND_LINE`]; empty where a peer did.
    pub by: String,
    /// When it was proposed or came: milliseconds since 1970, this machine's clock.
    pub made_ms: u64,
    /// When something was last said about it.
    pub changed_ms: u64,
    /// When it was over here, if it is.
    pub over_ms: Option<u64>,
    /// Where it stands.
    pub state: ProposalState,
    /// Whether this organisation acts next.
    pub ours: bool,
    /// Whether this organisation has consented, refused or withdrawn.
    pub decided: bool,
    /// The data set that this organisation gave, once somebody said which.
    pub data: Option<String>,
    /// Why no run begins by itself until a person says so: `stopped`, or the kind of an error.
    pub held: Option<String>,
    /// Not before this time does the next run begin; 0: at any time.
    pub next_ms: u64,
}

/// Counts of lists: each goes through all of its rows.
#[derive(Default)]
pub(super) struct KnownCounts {
    /// The state of the store that they are of.
    at: (i64, u64),
    all: HashMap<String, u64>,
}

impl KnownCounts {
    /// Counts that are kept.
    const MOST: usize = 256;

    fn get(&self, at: (i64, u64), asked: &str) -> Option<u64> {
        self.all.get(asked).copied().filter(|_| self.at == at)
    }

    fn put(&mut self, at: (i64, u64), asked: String, count: u64) {
        if self.at != at || self.all.len() >= Self::MOST {
            self.all.clear();
        }
        self.at = at;
        self.all.insert(asked, count);
    }
}

/// Which proposals a list has. The default has all.
#[derive(Clone, Debug, Default)]
pub struct ProposalFilter<'a> {
    /// Only in this state.
    pub state: Option<ProposalState>,
    /// Only with this party.
    pub party: Option<KeyFingerprint>,
    /// Only of this study.
    pub study: Option<StudyHash>,
    /// Only those that are not over.
    pub open: bool,
    /// Only those where this organisation acts next.
    pub ours: bool,
    /// Only what somebody may see: see [`SeenBy`].
    pub seen_by: Option<SeenBy<'a>>,
}

/// What somebody may see of the list: what they proposed, what reads one of their data sets, and what no data
/// set was given to yet where `undecided`.
#[derive(Clone, Debug)]
pub struct SeenBy<'a> {
    /// The account.
    pub account: &'a str,
    /// Data sets.
    pub data: Vec<String>,
    /// Whether proposals without a data set are seen.
    pub undecided: bool,
}

/// How far an own statement has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// To whom.
    pub peer: KeyFingerprint,
    /// About which proposal.
    pub proposal: ProposalId,
    /// Its number in the own chain.
    pub number: u32,
    /// Its digest.
    pub digest: [u8; 32],
    /// When the peer acknowledged it; none: not yet.
    pub had_ms: Option<u64>,
    /// The code with which the peer refused it.
    pub refused: Option<String>,
}

/// How much of what a peer may ask of this organisation it has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerUse {
    /// Its proposals that wait for a decision here.
    pub open: u64,
    /// Its proposals of the last 24 hours.
    pub today: u64,
    /// Its statements of the last 24 hours.
    pub statements: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Who sent a statement, and what it may send.
#[derive(Clone, Copy, Debug)]
pub struct PeerSender<'a> {
    /// Our name for it.
    pub name: &'a str,
    /// The key that it has proven on the connection.
    pub key: KeyFingerprint,
    /// Most proposals that may wait for a decision.
    pub most_open: u64,
    /// Most proposals of a day.
    pub most_per_day: u64,
}

/// What became of bytes that a peer sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absorbed {
    /// They are kept: tell the peer.
    Have {
        /// The digest that they are acknowledged by.
        digest: [u8; 32],
        /// What they are about.
        proposal: ProposalId,
        /// Whether it changes where the proposal stands, or proves that its author signed another thing.
        new: bool,
    },
    /// They are not kept. The code is one of `malformed`, `author`, `other`, `gap`, `no-proposal`, `study`,
    /// `limit`.
    No {
        /// What the peer is told.
        code: &'static str,
        /// The digest, where the bytes were a statement.
        digest: [u8; 32],
        /// From which number on statements are missing (`gap`).
        from: u32,
    },
}

impl Store {
    /// Proposes a study: the statement, its place in outboxes and the entry of the log are one transaction.
    ///
    /// # Errors
    /// When the text is no study of this organisation and others, a proposal of it is open, or the store
    /// cannot be written.
    pub fn propose(&self, speaker: Speaker<'_>, proposed: ProposedStudy) -> Result<ProposalRecord, Error> {
        let first = ProposalRecord::propose(speaker.identity, speaker.at_ms, proposed)?;
        let record = ProposalRecord::open(first.clone())
            .map_err(|why| if let NotKept::Study(error) = why { error } else { refused(&why) })?;
        self.within_one(|write| {
            if proposal_of(write, &record.study()).map_err(failed)?.is_some_and(|row| !row.state.is_final()) {
                return Err(Error::refused(ALREADY_OPEN));
            }
            keep(write, speaker.at_ms, &first)?;
            insert(write, &record, speaker.by, speaker.at_ms)?;
            said(write, &speaker, &record, &first)?;
            Ok(record)
        })
    }

    /// Says something about a proposal that is here: `consent` goes by [`Self::consent`].
    ///
    /// # Errors
    /// [`base::Fault`] of a refusal, with why it may not be said now; or when there is no such proposal, or
    /// the store cannot be written.
    pub fn say(&self, speaker: Speaker<'_>, id: &ProposalId, what: Said) -> Result<ProposalRecord, Error> {
        let known = self.known(id)?;
        self.within_one(|write| say_in(write, &speaker, id, known.as_deref(), what))
    }

    /// Takes what a peer sent. What is not kept has changed nothing.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn absorb(
        &self,
        own: KeyFingerprint,
        from: PeerSender<'_>,
        at_ms: u64,
        bytes: &[u8],
    ) -> Result<Absorbed, Error> {
        let no = |code, digest, from| Ok(Absorbed::No { code, digest, from });
        let Ok(statement) = SignedStatement::read(bytes) else { return no("malformed", [0; 32], 0) };
        let (digest, proposal) = (statement.digest(), statement.body().proposal);
        if statement.author() != from.key || from.key == own {
            return no("author", digest, 0);
        }
        if !statement.body().recipients.contains(&own) {
            return no("other", digest, 0);
        }
        // What is sent again costs nothing but this look, also where it was signed once more.
        if self.statement(&digest)?.is_some() {
            return Ok(Absorbed::Have { digest, proposal, new: false });
        }
        // What it has used, and whether it is a study at all, before others wait for this transaction.
        let used = self.used_by(from.key, at_ms)?;
        let is_known = self.proposal(&proposal)?.is_some();
        let proposes_too_much = used.open >= from.most_open || used.today >= from.most_per_day;
        if used.statements >= STATEMENTS_PER_DAY
            || used.bytes + bytes.len() as u64 > BYTES_PER_DAY
            || (!is_known && proposes_too_much)
        {
            return no("limit", digest, 0);
        }
        let first = match (!is_known).then(|| ProposalRecord::open(statement.clone())).transpose() {
            Ok(first) => first,
            Err(why) => return no(why.code(), digest, 0),
        };
        // By its author's clock it holds 90 days at most; one of the year 9999 would not run out here.
        let latest_ms = at_ms.saturating_add((statements::DAYS + 1) * DAY_MS);
        if first.as_ref().is_some_and(|first| first.proposed().expires_ms > latest_ms) {
            return no("study", digest, 0);
        }
        let known = self.known(&proposal)?;
        let known = (first, known.as_deref());
        match self.within(|write| take(write, own, from, at_ms, &statement, known)) {
            Ok(done) => {
                self.ring();
                Ok(Absorbed::Have { digest, proposal, new: done == Some(true) })
            }
            Err(Untaken::No(code, from)) => no(code, digest, from),
            Err(Untaken::Store(error)) => Err(error),
        }
    }

    /// Everything that was said about a proposal.
    ///
    /// # Errors
    /// When the store cannot be read, or holds what nobody signed.
    pub fn standing(&self, id: &ProposalId) -> Result<Option<ProposalRecord>, Error> {
        Ok(self.known(id)?.map(|known| known.record.clone()))
    }

    /// The canonical text of a study that was proposed here, by any proposal of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn study_text(&self, hash: &StudyHash) -> Result<Option<String>, Error> {
        let Some(row) = self.proposal_of(hash)? else { return Ok(None) };
        Ok(self.standing(&row.id)?.map(|record| record.proposed().text.clone()))
    }

    /// Proposals, the newest first: at most [`PAGE`] of them, made before `after` (a [`ProposalRow::row`]).
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn list(&self, filter: &ProposalFilter<'_>, after: Option<u64>) -> Result<Vec<ProposalRow>, Error> {
        let (mut sql, mut values) = conditions(&ProposalFilter { party: None, ..filter.clone() });
        let (mut from, mut row) = ("proposals", "row");
        if let Some(party) = filter.party {
            // Those of a party are gone through by its own rows: there may be few of them, or all.
            (from, row) = ("parties CROSS JOIN proposals ON row = proposal", "proposal");
            values.push(party.bytes().to_vec().into());
            sql.push_str(&format!(" AND party = ?{}", values.len()));
        }
        if let Some(after) = after {
            values.push(after.cast_signed().into());
            sql.push_str(&format!(" AND {row} < ?{}", values.len()));
        }
        let sql = format!("SELECT {COLUMNS} FROM {from} WHERE {sql} ORDER BY {row} DESC LIMIT {PAGE}");
        self.read(|connection| {
            let mut query = connection.prepare_cached(&sql)?;
            query.query_map(rusqlite::params_from_iter(values), proposal_row)?.collect()
        })
    }

    /// How many proposals a list has.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn count(&self, filter: &ProposalFilter<'_>) -> Result<u64, Error> {
        let (sql, values) = conditions(filter);
        let sql = format!("SELECT count(*) FROM proposals WHERE {sql}");
        let version = |connection: &Connection| {
            connection.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0))
        };
        // What other processes changed, and this one.
        let at = (self.read(version)?, *self.changed.borrow());
        let known = || self.counts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let asked = format!("{sql} {values:?}");
        if let Some(count) = known().get(at, &asked) {
            return Ok(count);
        }
        let count = self.read(|connection| {
            let mut query = connection.prepare_cached(&sql)?;
            query.query_row(rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0))
        })?;
        known().put(at, asked, count.unsigned_abs());
        Ok(count.unsigned_abs())
    }

    /// One proposal.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn proposal(&self, id: &ProposalId) -> Result<Option<ProposalRow>, Error> {
        let sql = format!("SELECT {COLUMNS} FROM proposals WHERE id = ?1");
        self.read(|connection| connection.prepare_cached(&sql)?.query_row([id.0], proposal_row).optional())
    }

    /// The proposal that a study's hash stands for: of open ones the first, so that nobody takes its place by
    /// proposing the same again; else the newest, and one with an answer before others.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn proposal_of(&self, study: &StudyHash) -> Result<Option<ProposalRow>, Error> {
        self.read(|connection| proposal_of(connection, study))
    }

    /// How far own statements about a proposal have come, oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sent(&self, id: &ProposalId) -> Result<Vec<OutboxRow>, Error> {
        let sql = "SELECT peer, proposal, number, digest, had_ms, refused FROM outbox \
                   WHERE proposal = ?1 ORDER BY number, peer";
        self.read(|connection| connection.prepare_cached(sql)?.query_map([id.0], outbox_row)?.collect())
    }

    /// Says why no run of a proposal begins by itself, or that it may again; `next_ms` is when at the
    /// earliest.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn hold(
        &self,
        act: &RecordedAct<'_>,
        id: &ProposalId,
        held: Option<&str>,
        next_ms: u64,
    ) -> Result<(), Error> {
        let sql = "UPDATE proposals SET held = ?2, next_ms = ?3 WHERE id = ?1";
        self.act(act, |write| write.execute(sql, params![id.0, held, next_ms.cast_signed()]).map(drop))?;
        self.ring();
        Ok(())
    }

    /// Takes the data as they are now, of this version and name, for those of the consent: who has the
    /// machine has said so.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn take_data(
        &self,
        act: &RecordedAct<'_>,
        id: &ProposalId,
        (version, tag): (&[u8; 32], &[u8; 32]),
    ) -> Result<(), Error> {
        self.act(act, |write| write.execute(TAKE_DATA, params![id.0, version, tag]).map(drop))
    }

    /// An own statement on its way to a peer.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn sent_to(&self, peer: KeyFingerprint, digest: &[u8; 32]) -> Result<Option<OutboxRow>, Error> {
        let sql = "SELECT peer, proposal, number, digest, had_ms, refused FROM outbox \
                   WHERE peer = ?1 AND digest = ?2";
        self.read(|connection| {
            connection.query_row(sql, params![peer.bytes(), digest], outbox_row).optional()
        })
    }

    /// How much of what a peer may send it has used.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn used_by(&self, peer: KeyFingerprint, now_ms: u64) -> Result<PeerUse, Error> {
        used_by(&self.lock(), peer, now_ms)
    }

    pub(super) fn within_one<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = self.within(|write| change(write).map(Some))?;
        self.ring();
        done.ok_or_else(|| Error::misuse("a change that does not refuse was refused"))
    }
}

pub(super) const COLUMNS: &str = "row, id, study, title, kind, proposer, by, made_ms, changed_ms, state, \
                                  ours, decided, data, held, next_ms, over_ms";

pub(super) fn proposal_row(row: &Row<'_>) -> Result<ProposalRow, rusqlite::Error> {
    let time = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    let state: String = row.get(9)?;
    Ok(ProposalRow {
        row: time(0)?,
        id: ProposalId(row.get(1)?),
        study: StudyHash::from_bytes(row.get(2)?),
        title: row.get(3)?,
        kind: row.get(4)?,
        proposer: KeyFingerprint::from_bytes(row.get(5)?),
        by: row.get(6)?,
        made_ms: time(7)?,
        changed_ms: time(8)?,
        state: ProposalState::named(&state).unwrap_or(ProposalState::Frozen),
        ours: row.get(10)?,
        decided: row.get(11)?,
        data: row.get(12)?,
        held: row.get(13)?,
        next_ms: time(14)?,
        over_ms: row.get::<_, Option<i64>>(15)?.map(i64::unsigned_abs),
    })
}

fn proposal_of(connection: &Connection, study: &StudyHash) -> Result<Option<ProposalRow>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM proposals WHERE study = ?1 ORDER BY open DESC, CASE WHEN open THEN row END, \
         state = '{}' DESC, row DESC LIMIT 1",
        ProposalState::Answered.name()
    );
    connection.prepare_cached(&sql)?.query_row([study.as_bytes()], proposal_row).optional()
}

pub(super) fn outbox_row(row: &Row<'_>) -> Result<OutboxRow, rusqlite::Error> {
    Ok(OutboxRow {
        peer: KeyFingerprint::from_bytes(row.get(0)?),
        proposal: ProposalId(row.get(1)?),
        number: row.get(2)?,
        digest: row.get(3)?,
        had_ms: row.get::<_, Option<i64>>(4)?.map(i64::unsigned_abs),
        refused: row.get(5)?,
    })
}

/// The condition of a filter, and its values in order.
pub(super) fn conditions(filter: &ProposalFilter<'_>) -> (String, Vec<rusqlite::types::Value>) {
    let (mut sql, mut values) = (String::from("1"), Vec::<rusqlite::types::Value>::new());
    let mut add = |condition: &str, value: rusqlite::types::Value| {
        values.push(value);
        sql.push_str(" AND ");
        sql.push_str(&condition.replace('?', &format!("?{}", values.len())));
    };
    if let Some(state) = filter.state {
        add("state = ?", state.name().to_owned().into());
    }
    if let Some(party) = filter.party {
        let condition = "EXISTS (SELECT 1 FROM parties WHERE party = ? AND proposal = row)";
        add(condition, party.bytes().to_vec().into());
    }
    if let Some(study) = &filter.study {
        add("study = ?", study.as_bytes().to_vec().into());
    }
    if let Some(SeenBy { account, data, undecided }) = &filter.seen_by {
        let list = serde_json::Value::from(data.clone()).to_string();
        let nothing = if *undecided { "data IS NULL OR " } else { "" };
        let data = format!("({nothing}data IN (SELECT value FROM json_each(?))");
        add(&data, list.into());
        let by = values_after(&mut values, (*account).to_owned());
        sql.push_str(&format!(" OR by = {by})"));
    }
    if filter.open {
        sql.push_str(" AND open");
    }
    if filter.ours {
        sql.push_str(" AND ours");
    }
    (sql, values)
}

fn values_after(values: &mut Vec<rusqlite::types::Value>, value: String) -> String {
    values.push(value.into());
    format!("?{}", values.len())
}

fn keep(write: &Transaction<'_>, at_ms: u64, statement: &SignedStatement) -> Result<(), Error> {
    trail::keep_statement(write, at_ms, statement).map(drop)
}

/// Says something within a transaction.
pub(super) fn say_in(
    write: &Transaction<'_>,
    speaker: &Speaker<'_>,
    id: &ProposalId,
    known: Option<&KnownRecord>,
    what: Said,
) -> Result<ProposalRecord, Error> {
    let found = load(write, id, known)?;
    let KnownRecord { mut record, .. } =
        found.ok_or_else(|| Error::input("there is no such proposal here"))?;
    if is_unheard(write, id).map_err(failed)? {
        return Err(Error::refused(UNHEARD));
    }
    let signed = record.say(speaker.identity, speaker.at_ms, what)?;
    record.keep(signed.clone()).map_err(|why| refused(&why))?;
    keep(write, speaker.at_ms, &signed)?;
    said(write, speaker, &record, &signed)?;
    Ok(record)
}

/// What follows when this organisation has said something.
fn said(
    write: &Transaction<'_>,
    speaker: &Speaker<'_>,
    record: &ProposalRecord,
    signed: &SignedStatement,
) -> Result<(), Error> {
    refresh(write, record, speaker.identity.fingerprint(), speaker.at_ms)?;
    let body = signed.body();
    let sql = "INSERT INTO outbox (peer, proposal, number, digest) VALUES (?1, ?2, ?3, ?4)";
    for peer in &body.recipients {
        let values = params![peer.bytes(), body.proposal.0, body.number, signed.digest()];
        write.execute(sql, values).map_err(failed)?;
    }
    log(write, speaker.by, kind_of(&body.said), signed, speaker.at_ms)
}

/// Writes a statement into the log: whose, of which kind and number, and its digest.
pub(super) fn log(
    write: &Transaction<'_>,
    actor: &str,
    action: &str,
    signed: &SignedStatement,
    at_ms: u64,
) -> Result<(), Error> {
    let body = signed.body();
    let detail = serde_json::json!({
        "proposal": hex(&body.proposal.0), "number": body.number, "statement": hex(&signed.digest()),
    });
    let subject = body.study.full();
    let entry = trail::NewEntry { at_ms, actor, action, subject: &subject, detail: &detail };
    trail::append(write, &entry).map(drop)
}

/// The word of the log for what is said.
#[must_use]
pub fn kind_of(said: &Said) -> &'static str {
    match said {
        Said::Propose(_) => "study proposed",
        Said::Consent(_) => "study consented to",
        Said::Refuse(_) => "study refused",
        Said::Withdraw(_) => "study withdrawn",
        Said::Note(_) => "note written",
        Said::Ready(_) => "run offered",
        Said::Started { .. } => "run started",
        Said::Ended(_) => "run ended",
        Said::Asks { .. } => "run asked for",
        Said::Witness { .. } => "log witnessed",
    }
}

fn insert(write: &Transaction<'_>, record: &ProposalRecord, by: &str, at_ms: u64) -> Result<(), Error> {
    let file = StudyFile::parse("the study", &record.proposed().text)?;
    let kind = crate::policy::kind_of(file.first());
    let sql = "INSERT INTO proposals (id, study, title, kind, proposer, by, made_ms, changed_ms, state, \
               open, ours, decided) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, 'proposed', 1, 0, 0)";
    let proposer = record.parties()[record.proposer()].bytes();
    let (id, study) = (record.id(), record.study());
    let values = params![id.0, study.as_bytes(), record.title(), kind, proposer, by, at_ms.cast_signed()];
    write.execute(sql, values).map_err(failed)?;
    let row = write.last_insert_rowid();
    for party in record.parties() {
        let sql = "INSERT INTO parties (party, proposal) VALUES (?1, ?2)";
        write.execute(sql, params![party.bytes(), row]).map_err(failed)?;
    }
    Ok(())
}

/// Writes what follows from the statements into the row.
pub(super) fn refresh(
    write: &Transaction<'_>,
    record: &ProposalRecord,
    own: KeyFingerprint,
    at_ms: u64,
) -> Result<(), Error> {
    let view = record.view();
    let (state, place) = (view.state(), record.place(&own));
    let mine = place.and_then(|place| view.standings.get(place));
    let decided = mine.is_some_and(|mine| mine.has_consented() || mine.is_closed());
    let ours = place.is_some_and(|place| view.awaited().contains(&place));
    let sql = "UPDATE proposals SET state = ?2, open = ?3, ours = ?4, decided = ?5, changed_ms = ?6, \
               over_ms = CASE WHEN ?3 THEN NULL ELSE coalesce(over_ms, ?6) END WHERE id = ?1";
    let values = params![record.id().0, state.name(), !state.is_final(), ours, decided, at_ms.cast_signed()];
    write.execute(sql, values).map(drop).map_err(failed)
}

/// Why a statement was not taken.
pub(super) enum Untaken {
    Store(Error),
    No(&'static str, u32),
}

impl From<Error> for Untaken {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Keeps what a peer said, of a proposal that is not here yet the `first`; whether it changes something.
/// None: it was there.
fn take(
    write: &Transaction<'_>,
    own: KeyFingerprint,
    from: PeerSender<'_>,
    at_ms: u64,
    statement: &SignedStatement,
    (first, known): (Option<ProposalRecord>, Option<&KnownRecord>),
) -> Result<Option<bool>, Untaken> {
    let body = statement.body();
    let no = |why: NotKept| match why {
        NotKept::Gap(from) => Untaken::No("gap", from),
        other => Untaken::No(other.code(), 0),
    };
    let (record, changes) = match load(write, &body.proposal, known)? {
        Some(KnownRecord { mut record, .. }) => {
            let forks = record.forks().len();
            let is_full = record.place(&from.key).is_some_and(|place| record.is_full(place, &body.said));
            let changes = match record.keep(statement.clone()).map_err(no)? {
                KeptStatement::Known => return Ok(None),
                // One pair of an author is proof: more would be room that it fills.
                KeptStatement::Fork if record.forks().len() == forks => {
                    return Err(Untaken::No("other", 0));
                }
                KeptStatement::Fork => true,
                // Nobody proposes one thing twice, and a study is long.
                KeptStatement::New { counts: false }
                    if record.uncounted(&from.key) > UNCOUNTED || matches!(body.said, Said::Propose(_)) =>
                {
                    return Err(Untaken::No("limit", 0));
                }
                KeptStatement::New { counts: true } if is_full => return Err(Untaken::No("limit", 0)),
                KeptStatement::New { counts } => counts,
            };
            (record, changes)
        }
        None => {
            let record = first.ok_or(Untaken::No("no-proposal", 0))?;
            insert(write, &record, "", at_ms)?;
            (record, true)
        }
    };
    if !trail::keep_statement(write, at_ms, statement)? {
        return Ok(None);
    }
    refresh(write, &record, own, at_ms)?;
    log(write, &format!("peer {}", from.name), kind_of(&body.said), statement, at_ms)?;
    Ok(Some(changes))
}

fn used_by(connection: &Connection, peer: KeyFingerprint, now_ms: u64) -> Result<PeerUse, Error> {
    let since = now_ms.saturating_sub(DAY_MS).cast_signed();
    let one = |sql: &str, of: &[&dyn rusqlite::ToSql]| {
        connection.prepare_cached(sql)?.query_row(of, |row| Ok([row.get::<_, i64>(0)?, row.get(1)?]))
    };
    let key = peer.bytes();
    let said = "SELECT count(*), coalesce(sum(length(statement)), 0) FROM statements \
                WHERE author = ?1 AND at_ms > ?2";
    // Each by an index: a peer may have proposed much before.
    let made = "SELECT (SELECT count(*) FROM proposals WHERE proposer = ?1 AND open AND NOT decided), \
                (SELECT count(*) FROM proposals WHERE proposer = ?1 AND made_ms > ?2)";
    let found = one(said, &[&key, &since]).and_then(|said| Ok((said, one(made, &[&key, &since])?)));
    let ([statements, bytes], [open, today]) = found.map_err(failed)?;
    let [open, today, statements, bytes] = [open, today, statements, bytes].map(i64::unsigned_abs);
    Ok(PeerUse { open, today, statements, bytes })
}

pub(super) fn refused(why: &NotKept) -> Error {
    Error::input(format!("what the store holds about this proposal does not fit: {why}"))
}

pub(super) fn failed(error: rusqlite::Error) -> Error {
    Error::io("cannot read or write the service's store", &std::io::Error::other(error.to_string()))
}
