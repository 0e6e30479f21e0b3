//! What one party gets: its own view of the result, what was disclosed besides, what it cost. Serialises to
//! the JSON of `tacit run --json`; fields are added, never renamed.

mod export;
mod figures;
pub mod html;
mod json;
mod public;
pub mod summary;
pub mod wording;

pub use export::NumberTable;
pub use figures::ReportFigure;
pub use json::{all_from_json, from_json, parts_to_json, public_to_json, stored, to_json};
pub use public::{PUBLIC_FORMAT, PublicReport, PublicTerms};

use base::Cost;
use data::InputReport;
use privacy::PrivacyTotal;
use privacy::dummies::MatchLeakage;
use release::modes::LiftEstimate;
use serde::{Deserialize, Serialize};
use study::{Server, Study, security_name};

/// Format of the JSON.
pub const FORMAT: &str = "tacit-report/1";

/// One party's report of one finished study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// [`FORMAT`].
    pub format: String,
    /// The study.
    pub study: StudyInfo,
    /// This party's name.
    pub party: String,
    /// `publisher`, `advertiser`, or the program's party name.
    pub role: String,
    /// All parties, in the order of the roster.
    pub parties: Vec<PartyInfo>,
    /// Engine of the row program, as in `tacit plan`.
    pub engine: String,
    /// How the engine was set up, and the link as measured where that decided:
    /// `ferret, small circuit: measured 90 Mb/s, 40.0 ms`. Empty for an engine without settings.
    #[serde(default)]
    pub settings: String,
    /// Who computed it, where the parties did not, and what they saw.
    #[serde(default)]
    pub servers: Option<ServersInfo>,
    /// Release mode: `sums`, `variance`, `algorithm1`, `algorithm1-as-published`, or `program`.
    pub mode: String,
    /// Worker pairs that computed at once.
    pub shards: u32,
    /// The workers, where units of the computation were dealt to some. Absent in reports of earlier versions.
    #[serde(default)]
    pub workers: Option<WorkersInfo>,
    /// What this party alone sees; where nothing is for it alone, what everybody sees.
    pub view: ResultView,
    /// What everybody sees and may publish, the same in all reports. Absent where there is no such result,
    /// and in reports of earlier versions.
    #[serde(default)]
    pub public: Option<ResultView>,
    /// What reading the public result costs, and what holds for it. Absent without a public result, and in
    /// reports of earlier versions.
    #[serde(default)]
    pub public_terms: Option<PublicTerms>,
    /// Who sees a result of the study: names of parties, and `everybody` of a public one. Empty in reports of
    /// earlier versions.
    #[serde(default)]
    pub shown_to: Vec<String>,
    /// What this view cost the other party's privacy.
    pub privacy: Privacy,
    /// Releases with each peer that broke off so far, where any did: who leaves when noise is against it
    /// shows here.
    #[serde(default)]
    pub broke_off: Vec<PeerHistory>,
    /// What reading this party's own files did. For this party only.
    pub inputs: InputReport,
    /// What was disclosed beyond the result.
    pub disclosed: Disclosure,
    /// What the guarantee covers and what it does not, one statement per line.
    pub guarantee: Vec<String>,
    /// Where time and bytes went.
    pub stages: Vec<StageReport>,
    /// Seconds from the first byte of matching to this report.
    pub seconds: f64,
    /// Application bytes before TLS that this party sent and received: of two parties, all there are.
    pub bytes: u64,
    /// Largest resident memory of this process, in bytes.
    pub peak_memory_bytes: u64,
    /// CPU seconds of this process, user and system.
    pub cpu_seconds: f64,
    /// Whether this is the stored answer of an earlier run of the same study on the same data (no new noise,
    /// no charge).
    pub stored: bool,
    /// What any reader should know of the run that is no error.
    pub warnings: Vec<String>,
    /// What this party should know of its own files and ledger: exact numbers of its data may be in it. For
    /// this party only.
    #[serde(default)]
    pub own_warnings: Vec<String>,
}

impl RunReport {
    /// Whether the view is what everybody sees.
    #[must_use]
    pub fn is_public(&self) -> bool {
        self.public.as_ref() == Some(&self.view)
    }

    /// Everybody who took part, in the order of the bytes of a stage: the parties, then servers that are
    /// none.
    #[must_use]
    pub fn participants(&self) -> Vec<&str> {
        let own = |name: &str| self.parties.iter().any(|party| party.name == name);
        let servers = self.servers.iter().flat_map(|servers| &servers.members);
        let apart = servers.map(|server| server.name.as_str()).filter(|name| !own(name));
        self.parties.iter().map(|party| party.name.as_str()).chain(apart).collect()
    }

    /// The engine and how it was set up: `gmw (ferret: measured 90 Mb/s, 40.0 ms)`.
    #[must_use]
    pub fn engine_text(&self) -> String {
        match &*self.settings {
            "" => self.engine.clone(),
            settings => format!("{} ({settings})", self.engine),
        }
    }
}

/// Format of the JSON of several reports.
pub const PARTS_FORMAT: &str = "tacit-reports/1";

/// The publisher's reports of a lift study with several advertisers: one run, one release and one charge for
/// each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PartReports {
    /// [`PARTS_FORMAT`].
    pub format: String,
    /// Name of the study.
    pub study: String,
    /// Hash of the whole study, as shown.
    pub hash: String,
    /// The same in full, 64 hex digits. Empty in reports of earlier versions.
    #[serde(default)]
    pub full_hash: String,
    /// This party's name.
    pub party: String,
    /// One report per advertiser, in the order of the study.
    pub parts: Vec<RunReport>,
}

/// The study, for a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyInfo {
    /// Short name.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// `lift` or `program`.
    pub kind: String,
    /// Hash of the study, as shown: `7c41 09aa 5be2`.
    pub hash: String,
    /// The same in full, 64 hex digits, as ledgers have it. Empty in reports of earlier versions.
    #[serde(default)]
    pub full_hash: String,
    /// Of a publisher's run with one of several advertisers: hash of the whole study, which all agreed on, 64
    /// hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_of: Option<String>,
    /// Hash of the program, 64 hex digits.
    pub program: String,
}

/// A party, for a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartyInfo {
    /// Name.
    pub name: String,
    /// Fingerprint of its identity in full.
    pub key: String,
    /// Rows it entered into matching.
    pub rows: u64,
}

/// The computing parties of an outsourced study, for a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServersInfo {
    /// The four, in the order of their names.
    pub members: Vec<ServerInfo>,
    /// `malicious` or `semi-honest`: what one of them may do.
    pub security: String,
    /// What they computed over: `tls`, `shm`, `fabric-tcp`.
    #[serde(default = "over_tls")]
    pub transport: String,
    /// What computed at the party whose report this is, where it is one of them: `cpu`, `cuda:0 (NAME)`. Each
    /// chooses its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// Reports of before had no other.
fn over_tls() -> String {
    "tls".into()
}

/// A computing party, for a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    /// Name.
    pub name: String,
    /// Fingerprint of its identity in full.
    pub key: String,
    /// What it saw, beside random shares.
    pub saw: String,
}

impl ServersInfo {
    /// What the servers of a study saw; nothing where it has none.
    #[must_use]
    pub fn of(study: &Study, disclosed: &Disclosure, transport: &str) -> Option<Self> {
        let servers = study.servers.as_ref()?;
        let sizes = crate::wording::sizes(disclosed);
        let rows = format!("the number of rows ({})", page::numbers::count(disclosed.union));
        let member = |server: &Server| {
            let saw = match study.matching.matcher.features().salted {
                true if servers.joins(server) => format!(
                    "keyed hashes of the identifiers, and so which rows of different parties are equal, not \
                     whose they are; the sizes ({sizes})"
                ),
                true => format!("the sizes ({sizes})"),
                false => rows.clone(),
            };
            ServerInfo { name: server.name.clone(), key: server.key.clone(), saw }
        };
        Some(Self {
            members: servers.members.iter().map(member).collect(),
            security: security_name(servers.security).to_owned(),
            transport: transport.to_owned(),
            device: None,
        })
    }
}

/// What one party sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum ResultView {
    /// A lift study.
    Lift(LiftView),
    /// The outputs of a user's own program.
    Program {
        /// In the order of the program.
        outputs: Vec<ProgramOutput>,
        /// In the order of the program.
        #[serde(default)]
        lists: Vec<ProgramList>,
        /// What the program derives from its noised outputs, in its order.
        #[serde(default)]
        derived: Vec<DerivedView>,
    },
}

impl ResultView {
    /// Whether nothing is in it: no cell of a lift study, no output and no list of a program.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Lift(view) => view.cells.is_empty(),
            Self::Program { outputs, lists, .. } => outputs.is_empty() && lists.is_empty(),
        }
    }
}

/// One revealed list of a program: which rows matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramList {
    /// The program's label.
    pub label: String,
    /// The identifiers of the rows that matched and that this party has.
    pub keys: Vec<String>,
    /// How many others matched.
    pub others: u64,
}

/// One number that a program derives from its noised outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DerivedView {
    /// The program's label.
    pub label: String,
    /// What it is: the word of the program's text, such as `mean`.
    pub statistic: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// The estimate; none where the noised sums say nothing of it.
    pub value: Option<f64>,
    /// Where the value is, at [`DerivedView::level`], sampling and noise together; of a count or a sum, noise
    /// alone. An end that is not there is unbounded. Two of a number needed to treat whose difference may be
    /// none: it may be far in either direction.
    pub intervals: Vec<[Option<f64>; 2]>,
    /// The level of the intervals, 0.95.
    pub level: f64,
    /// Half of the interval that noise alone would leave; none where it leaves all open. It is not cut where
    /// the range of the number ends.
    pub noise: Option<f64>,
    /// The least and the greatest value that there can be, where intervals are cut; an end without a bound is
    /// none. Absent of what has no bound, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[Option<f64>; 2]>,
    /// Of what compares or associates: the two-sided p-value of no difference or no association, by the same
    /// interval: the least p at which the interval of level 1 - p leaves it out. Absent of levels, and in
    /// reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The same, adjusted for all such hypotheses of the view (Holm). Absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holm: Option<f64>,
}

/// One revealed value of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramOutput {
    /// The program's label.
    pub label: String,
    /// The value in decimal: it may have 128 bits.
    pub value: String,
    /// Standard deviation of the noise added to it; absent when none was added to it itself.
    pub sigma: Option<String>,
    /// Whether no sum over rows reached it except through noise: it was noised itself, or computed from
    /// noised values.
    #[serde(default)]
    pub noised: bool,
    /// Whether it was computed from noised values and from exact ones: there is noise in it, of a size that
    /// is not stated.
    #[serde(default)]
    pub mixed: bool,
    /// Whether rows that no party has, made up to hide sizes, may be counted in it.
    #[serde(default)]
    pub made_up: bool,
    /// Where the value is the index of a row: the row's public key. Row 0 where no row was found.
    #[serde(default)]
    pub key: Option<String>,
    /// The unit of the columns that it is made of. Absent where no column says one or it is not kept, and in
    /// reports of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// How many whole parts make one unit: the value, and its sigma, are in parts. Absent where it is 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub scale: u32,
}

impl ProgramOutput {
    /// Whether it holds no noise at all.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.sigma.is_none() && !self.noised && !self.mixed
    }
}

/// One party's view of a lift study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiftView {
    /// Label of the test arm.
    pub test: String,
    /// Label of the control arm.
    pub control: String,
    /// R: most that one person adds, in whole parts of a unit.
    pub clamp: u64,
    /// Unit of the values, when the study has one.
    pub unit: Option<String>,
    /// How many whole parts make one unit. Estimates are in the unit, numbers as released in parts. Absent
    /// where it is 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub scale: u32,
    /// Level of the intervals, 0.90, 0.95 or 0.99.
    pub confidence: f64,
    /// Wording: whether a smaller outcome is the better one.
    pub lower_is_better: bool,
    /// Overall first, then breakdown values, then cohorts.
    pub cells: Vec<CellView>,
}

impl LiftView {
    /// Adjusts the p-values of all cells for their number.
    pub fn adjust(&mut self) {
        let p_value = |cell: &CellView| cell.estimate.map(|e| e.p_value).filter(|p| p.is_finite());
        let adjusted = release::holm(&self.cells.iter().filter_map(p_value).collect::<Vec<_>>());
        let mut adjusted = adjusted.into_iter();
        self.cells.iter_mut().for_each(|cell| cell.holm = p_value(cell).and_then(|_| adjusted.next()));
    }
}

fn one() -> u32 {
    1
}

fn is_one(scale: &u32) -> bool {
    *scale == 1
}

/// One cell of a lift study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellView {
    /// `overall`, `breakdown` or `cohort`.
    pub family: String,
    /// `overall`, or the value.
    pub label: String,
    /// The column that has the value, as the study calls it. Absent of `overall`, of cohorts of which
    /// advertisers have columns of different names, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// Difference of mean clamped outcome per person, test minus control; absent when the cell was refused.
    pub estimate: Option<LiftEstimate>,
    /// The p-value of the estimate, adjusted for all cells of the view that have one (Holm); absent without
    /// an estimate.
    #[serde(default)]
    pub holm: Option<f64>,
    /// Why there is no estimate.
    pub refused: Option<String>,
    /// Numbers that were released for this cell and are not in `counts`, because it was refused.
    #[serde(default)]
    pub held_back: u32,
    /// Every number that was released for this cell, and rows, value and squares as these give them.
    pub counts: Vec<CountView>,
}

/// One released number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountView {
    /// `rows`, `value`, `squares`, `tail`, `centred_value`, `centred_tail`, `converters`, `conversions`,
    /// `matches`, `clamped_users`, `reached_conversions`, `reached_value`, `difference` or `spread`.
    pub quantity: String,
    /// `test` or `control`; absent for what spans both.
    pub arm: Option<String>,
    /// The number as released, in decimal.
    pub value: String,
    /// Standard deviation of the noise in it; absent when exact.
    pub sigma: Option<f64>,
    /// Whether it is computed from the numbers that were released, the mean of their noise taken off.
    #[serde(default)]
    pub derived: bool,
}

/// What a view cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Privacy {
    /// zCDP charged to this viewer for its release, exact: `1/10`.
    pub rho: String,
    /// The same as a number.
    pub rho_value: f64,
    /// The epsilon of (epsilon, delta)-DP that this rho implies, of the release alone; absent where the study
    /// has no noise.
    pub epsilon: Option<f64>,
    /// Its delta; absent likewise.
    pub delta: Option<f64>,
    /// All that this viewer got, the sizes of the match included: the guarantee to quote. Absent where the
    /// study has no noise, and in reports of earlier versions.
    #[serde(default)]
    pub total: Option<PrivacyTotal>,
    /// What this party's own ledger says of the *other* viewer: spent so far on this party's data. Of several
    /// viewers the one with the most.
    pub spent: f64,
    /// The budget of each other viewer on this party's data.
    pub budget: f64,
    /// The lineage of this party's data; absent where nothing is charged, and in reports of earlier versions.
    #[serde(default)]
    pub lineage: Option<String>,
    /// What this party's own ledger says of every other viewer, in the order of the parties; last, where the
    /// study has a public result, of `public`: anybody.
    #[serde(default)]
    pub viewers: Vec<SpentBy>,
    /// Noise candidates per output of cut-and-choose: the other party drew them and knows the noise; one was
    /// used, the others were opened and checked. Absent without noise, and where nobody knows the noise.
    pub candidates: Option<u32>,
    /// What the noise may add to delta because its law is off by a little: 0 for exact noise.
    #[serde(default)]
    pub off: f64,
    /// What the guarantee is of one of, as the study says; absent where it does not.
    #[serde(default)]
    pub unit: Option<String>,
    /// Which attempt at a release this is, from 1; absent where the first one came through, and in reports of
    /// earlier versions.
    #[serde(default)]
    pub attempt: Option<u32>,
}

/// Releases with a peer that broke off, over all studies and data of this party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerHistory {
    /// The peer.
    pub peer: String,
    /// All of them.
    pub releases: u32,
    /// Of these, after the noise index was named.
    pub after_index: u32,
    /// Of these, after this side's share of the result went out, where nobody knows the noise.
    #[serde(default)]
    pub after_payment: u32,
}

impl PeerHistory {
    /// In a sentence.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { peer, releases, after_index, after_payment } = self;
        let what = if *releases == 1 { "release" } else { "releases" };
        let parts = [
            (after_index, "after the noise index was named"),
            (after_payment, "after this side's share went out"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| **count > 0)
            .map(|(count, when)| format!("{count} {when}"))
            .collect();
        let when = if parts.is_empty() {
            "before this side's share of the result went out".to_owned()
        } else {
            parts.join(", ")
        };
        format!("{releases} {what} with {peer} broke off, {when}")
    }
}

/// What one viewer has spent so far on this party's data, over all studies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpentBy {
    /// The viewer: a party's name, or `public`.
    pub viewer: String,
    /// zCDP.
    pub rho: f64,
    /// Delta, rounded up: `1.2e-9`, or `0`.
    pub delta: String,
}

/// What was disclosed beyond the result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disclosure {
    /// The protocol of the match, as the study names it. Empty in reports of earlier versions.
    #[serde(default)]
    pub protocol: String,
    /// Rows of each party as all others saw them: with `dummies`, made-up rows among them.
    pub rows: Vec<u64>,
    /// Size of the union, known to all. With `size_hidden` the largest that it can be.
    pub union: u64,
    /// Between two parties the size of the match, made-up rows included. Among more, and with `size_hidden`,
    /// the largest number of rows that all parties can have.
    pub matched_upper_bound: u64,
    /// Whether not all learnt how many rows matched: nobody did, or only the party that saw the match graph.
    #[serde(default)]
    pub size_hidden: bool,
    /// What hides the exact sizes, if anything does.
    #[serde(default)]
    pub dummies: Option<DummiesInfo>,
    /// What was told besides sizes, or exactly, and `dummies` do not cover.
    #[serde(default)]
    pub uncovered: Vec<MatchLeakage>,
    /// What this party alone counted in the match.
    #[serde(default)]
    pub counts: Vec<MatchCount>,
    /// Whether an earlier process of this run had read and matched the rows, so that nothing was matched now.
    #[serde(default)]
    pub resumed: bool,
    /// Whether the rows lie on the kept spine of an earlier match, so that nothing was matched now.
    #[serde(default)]
    pub kept_spine: bool,
    /// Group sizes that the mode makes public, test and control.
    pub published_groups: Option<[u64; 2]>,
    /// Whether every party holds the same identifiers: the rows were aligned by public keys, not matched in
    /// private.
    #[serde(default)]
    pub public_keys: bool,
}

impl Disclosure {
    /// About how many rows of a match are made up, give or take how many, which is two deviations; none
    /// where that is not said.
    #[must_use]
    pub fn made_up(&self) -> Option<[u64; 2]> {
        let Some(dummies) = &self.dummies else { return Some([0; 2]) };
        Some([dummies.in_match?, dummies.in_match_sigma?.saturating_mul(2)])
    }

    /// The size of the match, where those of the sets and of the union tell it: between two parties. Among
    /// more they do not say how many rows any set of parties has in common.
    #[must_use]
    pub fn matched(&self) -> Option<u64> {
        (self.rows.len() <= 2 && !self.size_hidden).then_some(self.matched_upper_bound)
    }
}

/// Made-up rows that hide sizes, and what this party was charged for the sizes that it showed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DummiesInfo {
    /// Epsilon of the whole match, exact: for one row's worst change.
    pub epsilon: String,
    /// The same as zCDP, exact: what the ledger was charged.
    pub rho: String,
    /// The probability, at most, that these do not hold.
    pub delta: String,
    /// Made-up rows that the size of the match has in the mean; absent where that size does not show, among
    /// more than two parties, and in reports of earlier versions.
    #[serde(default)]
    pub in_match: Option<u64>,
    /// Their standard deviation, rounded up; absent likewise.
    #[serde(default)]
    pub in_match_sigma: Option<u64>,
}

/// A number that a match told one party.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchCount {
    /// What was counted.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// Who computed the units of the computation, and what failed meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkersInfo {
    /// Units of rows.
    pub units: u64,
    /// Those of them that both held before the parties met last: an earlier process of this run computed
    /// them, or this one before the connection broke.
    #[serde(default, alias = "resumed")]
    pub computed_before: u64,
    /// Units of the match that went to workers, of all its stages; 0 where none did, and where rows were
    /// matched before the parties met last.
    #[serde(default)]
    pub match_units: u64,
    /// Those of them that both held before the parties met last.
    #[serde(default)]
    pub match_done_before: u64,
    /// Whether workers were processes of their own; else threads of this one.
    pub processes: bool,
    /// The largest resident memory of the process of each worker of the computation, in bytes; of one whose
    /// process was replaced, of the last one.
    pub peak_memory_bytes: Vec<u64>,
    /// The largest resident memory of every process of this party, as it told last: coordinator, workers of
    /// the match and of the computation, those that ended before the run did among them; of processes before
    /// the parties met last, the largest of each sort. Empty in reports of earlier versions.
    #[serde(default)]
    pub memory: Vec<ProcessPeak>,
    /// Attempts that failed since the parties met last, in order; in reports of earlier versions those of
    /// before come first.
    pub failed: Vec<FailedUnit>,
    /// How many failed before that, over all processes and meetings of this run. What they said is in
    /// [`StageReport::before`] of the stage `again`.
    #[serde(default)]
    pub failed_before: u64,
    /// Of what sort those are. Empty where there were none, and in reports of earlier versions.
    #[serde(default)]
    pub failed_before_by: Vec<FailedCount>,
}

impl WorkersInfo {
    /// How many attempts failed in all.
    #[must_use]
    pub fn failed_in_all(&self) -> u64 {
        let listed = self.failed.len() as u64;
        // Reports of earlier versions list those of before as well.
        if self.failed_before_by.is_empty() { listed } else { listed + self.failed_before }
    }
}

/// The largest resident memory of one process, or of several of a sort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessPeak {
    /// `coordinator` or `worker`.
    pub process: String,
    /// What a worker did last: `match` or `compute`; empty of a coordinator.
    pub stage: String,
    /// The lane of a worker, from 0; null of a coordinator, and of several.
    pub lane: Option<u16>,
    /// In bytes.
    pub peak_memory_bytes: u64,
    /// Whether it ended before the work of its stage did.
    pub ended: bool,
    /// Whether it was there before the parties met last.
    pub before: bool,
}

impl ProcessPeak {
    /// Of the process that leads a party's run.
    #[must_use]
    pub fn of_coordinator(peak_memory_bytes: u64) -> Self {
        let (process, stage) = ("coordinator".to_owned(), String::new());
        Self { process, stage, lane: None, peak_memory_bytes, ended: false, before: false }
    }
}

/// Attempts of one sort that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCount {
    /// As [`FailedUnit::stage`].
    pub stage: String,
    /// Why.
    pub cause: String,
    /// Whether the peer said so.
    pub peer: bool,
    /// How many.
    pub count: u64,
}

/// The stage of units of rows, as [`FailedUnit::stage`] names it.
pub const COMPUTING: &str = "compute";

/// The one stage of units in reports of before.
fn computing() -> String {
    COMPUTING.to_owned()
}

/// An attempt at a unit that came to nothing: the unit was done again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedUnit {
    /// Of which stage: `compute`; of a match `v`, `e` or `d3`.
    #[serde(default = "computing")]
    pub stage: String,
    /// The unit of that stage, from 0.
    pub unit: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// Why.
    pub cause: String,
    /// Whether the peer said so.
    pub peer: bool,
}

/// One stage of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageReport {
    /// `link` (where it was measured), `match`, `noise` (where servers draw it), `compute`, `release`;
    /// `again` is what attempts said that failed, which no price foretells.
    pub name: String,
    /// Wall seconds at this party.
    pub seconds: f64,
    /// Rows handled: spine rows for `match` and `compute`.
    pub rows: u64,
    /// Application bytes sent, by party in the order of the roster, as the ledger counted them; of other
    /// parties what they sent to this one.
    pub bytes_sent: Vec<u64>,
    /// The cost stated before the stage ran (once its sizes were known).
    pub price: Cost,
    /// Whether the ledger agreed with the price: every byte, AND gate and oblivious transfer.
    pub price_held: bool,
    /// What the stage took before the parties met last, in this and earlier processes of the run, and is in
    /// nothing above. Absent where that is nothing, and in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<StageBefore>,
}

/// What a stage took in earlier meetings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StageBefore {
    /// Wall seconds at this party, as far as its processes lived to write them down.
    pub seconds: f64,
    /// Bytes as [`StageReport::bytes_sent`], without those of units that count there.
    pub bytes_sent: Vec<u64>,
}

#[cfg(test)]
mod tests;
