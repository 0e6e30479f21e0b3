//! What is sent and what comes back, as JSON. Times with `_ms` are milliseconds since 1970, others seconds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Nothing.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiNothing {}

/// Whose token this is.
#[derive(Serialize, ToSchema)]
pub struct ApiSelf {
    /// The organisation.
    pub organisation: String,
    /// The account.
    pub account: String,
    /// Its roles, as far as the token has them: `analyst`, `steward=trial`.
    pub roles: Vec<String>,
}

/// A study in a list.
#[derive(Serialize, ToSchema)]
pub struct ApiStudy {
    /// Its hash, 64 hex digits.
    pub study: String,
    /// Its proposal, 32 hex digits: what is done to a study names it.
    pub proposal: String,
    /// Its title, as its author wrote it.
    pub title: String,
    /// `lift`, `program` or `match`.
    pub kind: String,
    /// Who proposed it, by our name.
    pub proposer: String,
    /// The account here that proposed it; none: another organisation did.
    pub by: Option<String>,
    /// How it stands, in a word.
    pub state: String,
    /// Whether it is this organisation's turn.
    pub ours: bool,
    /// The data set that it reads here, once somebody has consented.
    pub data: Option<String>,
    /// Why no run begins by itself.
    pub held: Option<String>,
    /// When it was proposed.
    pub made_ms: u64,
    /// When something changed last.
    pub changed_ms: u64,
}

/// Studies, the newest first.
#[derive(Serialize, ToSchema)]
pub struct ApiStudies {
    /// At most 50.
    pub studies: Vec<ApiStudy>,
    /// What `after` has to say for those that come next; none: there are no more.
    pub next: Option<u64>,
}

/// A study.
#[derive(Serialize, ToSchema)]
pub struct ApiStudyWhole {
    /// As in a list.
    #[serde(flatten)]
    pub row: ApiStudy,
    /// How it stands, in words.
    pub words: String,
    /// What its next run waits for.
    pub waits: Option<String>,
    /// Its parties, by our names, in the order of their places.
    pub parties: Vec<String>,
    /// Its text, as it is agreed on, for who reads studies: it names columns.
    pub text: Option<String>,
    /// What its proposer wrote besides.
    pub note: String,
    /// Until when it can be consented to.
    pub expires_ms: u64,
    /// Whether its report is here.
    pub reported: bool,
    /// Whether files are being read for a consent that will then be signed.
    pub weighing: bool,
    /// What stood against the last consent that was tried.
    pub against: Option<String>,
}

/// What was said about a study.
#[derive(Serialize, ToSchema)]
pub struct ApiStatements {
    /// By the clock of who said it, the newest first, at most 100.
    pub statements: Vec<ApiStatement>,
    /// What `after` has to say for those that come next; none: there are no more.
    pub next: Option<String>,
}

/// Something that an organisation has signed.
#[derive(Serialize, ToSchema)]
pub struct ApiStatement {
    /// Who, by our name.
    pub by: String,
    /// Which of its statements about this proposal, from 0.
    pub number: u32,
    /// What, in a word or two.
    pub said: String,
    /// The same in a sentence.
    pub words: Option<String>,
    /// When, by its clock.
    pub at_ms: u64,
    /// Of our own: whether all others have it.
    pub received: Option<bool>,
}

/// What a study would do, in the words that a steward reads.
#[derive(Serialize, ToSchema)]
pub struct ApiSummary {
    /// The hash of the words that a consent is signed for, which it names.
    pub words: String,
    /// Under headings: these words, then what is reckoned and not signed.
    pub sections: Vec<ApiSection>,
    /// The data sets here that it could use.
    pub sets: Vec<ApiUsable>,
    /// Whether this organisation would compute it as a server, without data, and the account of this token
    /// decides on that.
    pub serves: bool,
    /// The most that is charged, by how many runs may begin anew.
    pub charges: Vec<ApiBound>,
}

/// Words under a heading.
#[derive(Serialize, ToSchema)]
pub struct ApiSection {
    /// The heading.
    pub title: String,
    /// Sentences.
    pub lines: Vec<String>,
    /// A table as text, by line.
    pub table: Vec<String>,
}

/// A data set that a study could use.
#[derive(Serialize, ToSchema)]
pub struct ApiUsable {
    /// Its name.
    pub data: String,
    /// Whether the account of this token decides on it.
    pub decides: bool,
    /// Whether two stewards have to, which no token does.
    pub two_person: bool,
}

/// What so many runs are charged at most.
#[derive(Serialize, ToSchema)]
pub struct ApiBound {
    /// Runs that may begin anew.
    pub runs: u8,
    /// How much, in words.
    pub most: String,
}

/// What a study would take and could see with so many rows.
#[derive(Serialize, ToSchema)]
pub struct ApiPlan {
    /// Under headings.
    pub sections: Vec<ApiSection>,
}

/// A draft that is kept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiDraftSent {
    /// What its author calls it.
    pub title: String,
    /// The study file.
    pub text: String,
    /// Days that the others have to decide, 1 to 90; unsaid: 30.
    pub days: Option<u64>,
    /// What the others read besides.
    pub note: Option<String>,
    /// The `version` of the draft that this one takes the place of; unsaid: whichever there is.
    pub version: Option<String>,
}

/// A draft.
#[derive(Serialize, ToSchema)]
pub struct ApiDraft {
    /// Its number.
    pub id: u64,
    /// What its author calls it.
    pub title: String,
    /// When it was kept.
    pub at: u64,
    /// The study file; none: it was filled in on the page.
    pub text: Option<String>,
    /// A word for its content, which changes with it.
    pub version: String,
}

/// Drafts of the account, the newest first.
#[derive(Serialize, ToSchema)]
pub struct ApiDrafts {
    /// At most 20.
    pub drafts: Vec<ApiDraft>,
}

/// What a draft would do.
#[derive(Serialize, ToSchema)]
pub struct ApiPreview {
    /// The hash of the study that it is.
    pub study: String,
    /// Its title.
    pub title: String,
    /// Its text in the one form that is agreed on.
    pub text: String,
    /// In the words that stewards read.
    pub sections: Vec<ApiSection>,
    /// Rules of this organisation that it breaks: with one it is not proposed.
    pub against: Vec<String>,
}

/// Which study a draft was when it was read.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiProposing {
    /// The hash that the preview gave.
    pub study: String,
}

/// What was done.
#[derive(Serialize, ToSchema)]
pub struct ApiDone {
    /// The study.
    pub study: String,
    /// The proposal.
    pub proposal: String,
    /// In a word; `weighing`: files are read first, and how that ends stands in the study's `state` and
    /// `against`.
    pub done: String,
}

/// Which proposal something is done to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiWhich {
    /// The proposal that was read.
    pub proposal: String,
}

/// What is consented to.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiConsent {
    /// The proposal that was read.
    pub proposal: String,
    /// The hash of the words that were read, of the summary.
    pub words: String,
    /// With which data set; unsaid: as a server, without data.
    pub data: Option<String>,
    /// Runs that may begin anew, 1 to 5; of a server, runs in which it computes.
    pub runs: u64,
    /// Days that it holds, 1 to 90.
    pub days: u64,
}

/// Why not.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiReason {
    /// The proposal that was read.
    pub proposal: String,
    /// `purpose`, `data`, `budget`, `policy` or `other`.
    pub code: String,
    /// In words, 1 to 2,000 characters: the other parties read it.
    pub text: String,
}

/// A question or an answer to the others.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiNote {
    /// The proposal that was read.
    pub proposal: String,
    /// 1 to 2,000 characters.
    pub text: String,
}

/// How runs of a study go.
#[derive(Serialize, ToSchema)]
pub struct ApiCourse {
    /// How the study stands, in words.
    pub words: String,
    /// What the next run waits for.
    pub waits: Option<String>,
    /// All runs here, the oldest first.
    pub runs: Vec<ApiRun>,
    /// The stages of the newest one.
    pub stages: Vec<ApiStage>,
}

/// A run.
#[derive(Serialize, ToSchema)]
pub struct ApiRun {
    /// Its number, from 1.
    pub run: u32,
    /// How it ended, in a word; none: it has not.
    pub outcome: Option<String>,
    /// Of an error: whose turn it is.
    pub kind: Option<String>,
    /// Of an error: its code.
    pub code: Option<String>,
    /// Of an error: its words, for who may start runs.
    pub message: Option<String>,
    /// When its process began.
    pub begun_ms: Option<u64>,
    /// When it was over.
    pub ended_ms: Option<u64>,
}

/// A stage of a run.
#[derive(Serialize, ToSchema)]
pub struct ApiStage {
    /// What it is called.
    pub name: String,
    /// Rows that it handles, for who checks these data.
    pub rows: Option<u64>,
    /// Its newest step.
    pub step: Option<String>,
    /// How much of that step is done: in rows for who checks these data, else in hundredths.
    pub done: u64,
    /// Of how much.
    pub total: u64,
    /// Seconds that it took; none: it is not over.
    pub seconds: Option<f64>,
    /// Bytes that it sent, for who checks these data.
    pub bytes: Option<u64>,
}

/// What is left of budgets.
#[derive(Serialize, ToSchema)]
pub struct ApiBudgets {
    /// By data set.
    pub sets: Vec<ApiBudgetOf>,
}

/// What is left of the budget of a data set.
#[derive(Serialize, ToSchema)]
pub struct ApiBudgetOf {
    /// The data set.
    pub data: String,
    /// The name that its budget is kept under.
    pub lineage: String,
    /// What all viewers have had together, in rho.
    pub together: String,
    /// By viewer.
    pub viewers: Vec<ApiViewer>,
}

/// What a viewer has had. Numbers are as people read them.
#[derive(Serialize, ToSchema)]
pub struct ApiViewer {
    /// Who, by our name.
    pub viewer: String,
    /// All of it, in rho.
    pub budget: String,
    /// Of this spent.
    pub spent: String,
    /// Of what is spent, what everybody gets by public results: it is in the share of each viewer.
    pub public: String,
    /// And left.
    pub left: String,
    /// Of what is left, the most that studies may still take which were consented to and are not over.
    pub held: String,
    /// How many more studies, beside these.
    pub studies: Vec<ApiLeft>,
    /// What was charged, the newest first, at most 50.
    pub debits: Vec<ApiDebit>,
}

/// How many more studies of a price.
#[derive(Serialize, ToSchema)]
pub struct ApiLeft {
    /// How many.
    pub count: String,
    /// Of which.
    pub of: String,
}

/// What was charged.
#[derive(Serialize, ToSchema)]
pub struct ApiDebit {
    /// When.
    pub at: u64,
    /// The study's hash; empty: it was given back by a peer after a loss.
    pub study: String,
    /// Rho, exactly.
    pub rho: String,
    /// Delta, exactly.
    pub delta: String,
}

/// Data sets.
#[derive(Serialize, ToSchema)]
pub struct ApiDataSets {
    /// By name.
    pub sets: Vec<ApiDataSet>,
}

/// A data set.
#[derive(Serialize, ToSchema)]
pub struct ApiDataSet {
    /// Its name.
    pub data: String,
    /// The name that its budget is kept under.
    pub lineage: String,
    /// Whose studies may use it.
    pub peers: Vec<String>,
    /// Servers that may compute on it.
    pub servers: Vec<String>,
    /// Whether its files are being read.
    pub checking: bool,
    /// When they were read last.
    pub checked: Option<u64>,
    /// By whom.
    pub checked_by: Option<String>,
    /// Rows, for who may see that.
    pub rows: Option<u64>,
    /// Whether that is all of them.
    pub whole: Option<bool>,
    /// Whether they have what `service.toml` says; none: nobody has looked.
    pub fits: Option<bool>,
    /// What stands against it.
    pub problems: Vec<String>,
    /// Their columns, for who sees them.
    pub columns: Option<Vec<ApiColumn>>,
}

/// A column.
#[derive(Serialize, ToSchema)]
pub struct ApiColumn {
    /// Its name.
    pub name: String,
    /// What its cells look like.
    pub looks: String,
    /// How many are empty.
    pub empty: u64,
    /// Whether studies may read it.
    pub allowed: bool,
}

/// Other organisations.
#[derive(Serialize, ToSchema)]
pub struct ApiPeers {
    /// By our name.
    pub peers: Vec<ApiPeer>,
}

/// Another organisation.
#[derive(Serialize, ToSchema)]
pub struct ApiPeer {
    /// Our name for it.
    pub name: String,
    /// Its key.
    pub key: String,
    /// Where it is reached; none: it comes to us.
    pub address: Option<String>,
    /// Since when there is a link; none: there is none.
    pub since_ms: Option<u64>,
    /// Why there is none.
    pub error: Option<String>,
    /// When it was heard last.
    pub heard_ms: Option<u64>,
    /// By how much its clock is ahead of ours.
    pub ahead_ms: Option<i64>,
    /// Its software.
    pub version: Option<String>,
    /// Whether somebody has paused the link.
    pub paused: bool,
    /// Proposals of it that wait here.
    pub proposals_open: u64,
    /// Proposals of it within a day.
    pub proposals_today: u64,
}

/// Whether a link is paused.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiPause {
    /// Whether it shall be; only `true` is for programs.
    pub paused: bool,
}

/// A test of a link.
#[derive(Serialize, ToSchema)]
pub struct ApiTrial {
    /// As far as it came.
    pub steps: Vec<ApiStep>,
}

/// A step of it.
#[derive(Serialize, ToSchema)]
pub struct ApiStep {
    /// What it is.
    pub step: String,
    /// Whether it went well.
    pub done: bool,
    /// What came of it.
    pub told: String,
}

/// What the organisation allows.
#[derive(Serialize, ToSchema)]
pub struct ApiRules {
    /// The hash of the text that holds; none: nobody has accepted one.
    pub hash: Option<String>,
    /// Who accepted it.
    pub by: Option<String>,
    /// When.
    pub at: Option<u64>,
    /// What stands between the file and what holds.
    pub notice: Option<String>,
    /// What it says, under headings.
    pub sections: Vec<ApiSection>,
}

/// Entries of the audit log, the newest first.
#[derive(Serialize, ToSchema)]
pub struct ApiLog {
    /// At most 50.
    pub entries: Vec<ApiEntry>,
    /// What `after` has to say for those that come next; none: there are no more.
    pub next: Option<u64>,
}

/// An entry.
#[derive(Serialize, ToSchema)]
pub struct ApiEntry {
    /// Its number, from 1.
    pub number: u64,
    /// When.
    pub at_ms: u64,
    /// Who.
    pub actor: String,
    /// What.
    pub action: String,
    /// To what.
    pub subject: String,
    /// More, as JSON in a text, for who sees columns of all data.
    pub detail: Option<String>,
    /// The hash of the entry before.
    pub previous: String,
    /// Its own.
    pub hash: String,
}

/// Whether the chain of the log fits.
#[derive(Serialize, ToSchema)]
pub struct ApiChain {
    /// Whether it does.
    pub fits: bool,
    /// The first entry that is there.
    pub first: Option<u64>,
    /// The newest.
    pub last: Option<u64>,
    /// Its hash.
    pub hash: Option<String>,
    /// What does not fit.
    pub error: Option<String>,
}
