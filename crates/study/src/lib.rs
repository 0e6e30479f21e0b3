//! The study file: what both parties agree on, typed, checked and hashed.
//!
//! A study holds no path and no secret. Two files that say the same have the same [`StudyHash`], whatever
//! their comments, white space and order of keys; nothing runs unless all parties hold the same hash. What a
//! study may say is checked here completely, before any connection: every error names file, line, column, the
//! value met and what to write instead.

mod canonical;
pub mod device;
mod file;
pub mod format;
mod hash;
mod matching;
mod parse;
pub mod party;
pub mod phone;
pub mod prices;
pub mod reader;
pub mod salt;
mod servers;
#[cfg(test)]
mod tests;
pub mod time;
pub mod transport;

pub use canonical::canonical;
pub use file::{StudyFile, expect_study, read_text};
pub use hash::{SettingDifference, StudyHash, expect_same, first_difference};
pub use matching::{
    DummyRule, Duplicates, Identifier, MAX_DEGREE, MAX_IDENTIFIERS, MAX_SLOTS, MAX_WEIGHT, MatchRule,
    Normaliser, parse_delta,
};
pub(crate) use parse::rho;
pub use servers::{JOINERS, SEATS, Server, Servers, hash_name, ring4_settings, security_name};

pub use studies::lift::{Also, ReleaseMode, TrialArm};

use parse::KindName;
use release::rational::Rational;

use crate::time::Clock;
use base::Error;
use ot::OtKind;
use program::lower::combine::SelectionCircuit;

/// Largest K: conversions kept per identifier.
pub const MAX_EVENTS: u8 = 16;
/// Largest R: most that one person adds to a total.
pub const MAX_CLAMP: u32 = 1 << 20;
/// Most parts of a unit of value that are counted.
pub const MAX_SCALE: u32 = 1_000_000;
/// Most values of one breakdown or cohort; each is a charge-free cell that costs gates.
pub const MAX_CATEGORIES: usize = 64;
/// Largest rho one viewer may be given, a bound far above any protection.
pub const MAX_RHO: u64 = 100;

/// What the parties of one run agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Study {
    /// Short name, safe in paths.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Who takes part, in the order of the roster: publisher then advertisers by name in a lift study, else
    /// by name.
    pub parties: Vec<Participant>,
    /// How rows are matched.
    pub matching: MatchRule,
    /// What one row stands for, in a word: `child`. The guarantee is of one such.
    pub unit: Option<String>,
    /// What is computed.
    pub kind: Question,
    /// How it is computed.
    pub compute: Compute,
    /// Who computes it, where its parties do not.
    pub servers: Option<Servers>,
    /// The hash of the file of several runs that asks for this one.
    pub part_of: Option<StudyHash>,
}

/// One party of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// The party's name.
    pub name: String,
    /// What it brings.
    pub role: PartyRole,
    /// The fingerprint of its identity: `tacit1:` and 32 hex digits.
    pub key: String,
}

/// What a party brings to a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PartyRole {
    /// Knows the arm and the opportunity.
    Publisher,
    /// Knows the outcome.
    Advertiser,
    /// Owns columns of a program under this name.
    Owner(String),
}

/// What a study computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Conversion lift of a randomised trial. Of several advertisers, a person's outcome is what the events
    /// of all add up to.
    Lift(Box<LiftStudy>),
    /// The user's own program.
    Program(Box<ProgramStudy>),
    /// Nothing: rows are matched and that is all. The program holds no more than the columns.
    Match(Box<ProgramSource>),
}

/// A lift study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftStudy {
    /// Origin, unit and span of all times.
    pub clock: Clock,
    /// The publisher's columns.
    pub publisher: Publisher,
    /// The columns of each advertiser, in the order of the roster.
    pub advertisers: Vec<Advertiser>,
    /// Which outcomes count.
    pub rule: LiftRule,
    /// What is released.
    pub release: ReleaseRule,
}

/// The publisher's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// The column of the arm.
    pub arm: String,
    /// The label of the test arm.
    pub test: String,
    /// The label of the control arm.
    pub control: String,
    /// Labels of other arms. A row of one is left out and counted; none: a third label is an error.
    pub leave_out: Vec<String>,
    /// The column of the opportunity's time. A row without one is left out and counted.
    pub opportunity: String,
    /// The column of the number of impressions, 0 to 65535.
    pub impressions: Option<String>,
    /// The column by which results are broken down.
    pub breakdown: Option<Categories>,
}

/// A column with a public list of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categories {
    /// The column.
    pub column: String,
    /// Its values; a cell is stored as the index in this list.
    pub values: Vec<String>,
}

/// The advertiser's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertiser {
    /// One line per event, or one per identifier.
    pub layout: EventLayout,
    /// Columns of event times: one in `events` layout, one per event in `wide` layout.
    pub events: Vec<String>,
    /// What an event is worth.
    pub value: EventValue,
    /// Which lines hold events that count; the others keep their identifier, without events.
    pub filter: Option<LineFilter>,
    /// K: events kept per identifier.
    pub max_events: u8,
    /// What happens to more than K events.
    pub overflow: Overflow,
    /// The advertiser's own breakdown.
    pub cohort: Option<Categories>,
}

/// The layout of the advertiser's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventLayout {
    /// One line per (identifier, time, value).
    Events,
    /// One line per identifier, several pairs of columns; an empty time is no event.
    Wide,
}

/// What an event is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventValue {
    /// The same for all.
    Constant(u32),
    /// As these columns say (one per event column), 0 to 2^32 - 1 parts of a unit.
    Columns {
        /// The columns.
        columns: Vec<String>,
        /// The unit, for the report.
        unit: Option<String>,
        /// How many of the whole numbers that are computed with make one unit: 100 for cents.
        scale: u32,
        /// What a negative value is.
        negative: NegativeRule,
    },
}

impl EventValue {
    /// How many of the whole numbers that are computed with make one unit.
    #[must_use]
    pub fn scale(&self) -> u32 {
        match self {
            Self::Constant(_) => 1,
            Self::Columns { scale, .. } => *scale,
        }
    }

    /// The unit, if the study says one.
    #[must_use]
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Constant(_) => None,
            Self::Columns { unit, .. } => unit.as_deref(),
        }
    }

    /// What a negative value is.
    #[must_use]
    pub fn negative(&self) -> NegativeRule {
        match self {
            Self::Constant(_) => NegativeRule::Error,
            Self::Columns { negative, .. } => *negative,
        }
    }
}

/// What a negative value is: a refund, mostly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegativeRule {
    /// A mistake.
    Error,
    /// No event.
    LeaveOut,
    /// Taken off the latest events of the same identifier that are no later, as far as these go.
    Net,
}

impl NegativeRule {
    /// By the name a study file uses.
    pub const NAMES: [(&'static str, Self); 3] =
        [("error", Self::Error), ("leave-out", Self::LeaveOut), ("net", Self::Net)];

    /// The name a study file uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, other)| *other == self).map_or("", |(name, _)| name)
    }
}

/// Lines whose cell in `column` is one of `equals`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFilter {
    /// The column.
    pub column: String,
    /// The cells that pass.
    pub equals: Vec<String>,
}

/// What happens to more than K events of one identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It is an error.
    Error,
    /// The K earliest are kept, the others are counted in the owner's report.
    KeepEarliest,
}

/// Which outcomes count, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiftRule {
    /// Events count when they are strictly later than the opportunity and, with `within` = w, at most w units
    /// later.
    pub within: Option<u32>,
    /// R: most that one person adds to a total, in whole parts of a unit.
    pub clamp: u32,
    /// Wording of the report only.
    pub lower_is_better: bool,
}

/// What is released, to whom, at which price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRule {
    /// Which numbers are noised.
    pub mode: ReleaseMode,
    /// Confidence of the intervals.
    pub confidence: Confidence,
    /// Where noise comes from.
    pub noise: NoiseFrom,
    /// Smallest (noisy) arm that is reported.
    pub minimum_group: u64,
    /// Further counts, in the order of [`Also::NAMES`].
    pub also: Vec<Also>,
    /// The zCDP rho spent on what each viewer alone sees, by party name in the order of the roster.
    pub to: Vec<(String, Rational)>,
    /// The zCDP rho spent on what everybody sees, if there is such a number.
    pub public: Option<Rational>,
}

/// Where the noise of a study comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseFrom {
    /// It is drawn inside the computation, from coins of all parties: nobody knows it.
    Inside,
    /// One party draws so many candidates for the other, which chooses one and looks at the rest: between two
    /// parties.
    CutAndChoose(u32),
}

/// Confidence of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// 90 %.
    P90,
    /// 95 %.
    P95,
    /// 99 %.
    P99,
}

impl Confidence {
    /// In per cent.
    #[must_use]
    pub fn percent(self) -> u32 {
        match self {
            Self::P90 => 90,
            Self::P95 => 95,
            Self::P99 => 99,
        }
    }
}

/// A study of the user's own program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramStudy {
    /// The program.
    pub source: ProgramSource,
    /// The line of the study file where its text begins, to place errors of the program.
    pub text_line: usize,
    /// The zCDP rho each viewer may be shown, by party name; empty for a program without noise.
    pub to: Vec<(String, Rational)>,
    /// The zCDP rho of what everybody may be shown.
    pub public: Option<Rational>,
    /// Where noise comes from.
    pub noise: NoiseFrom,
}

/// A program, and the file columns that feed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramSource {
    /// The program in its text form. A study holds no path, so the text is inline.
    pub text: String,
    /// Which file column feeds which column of the program, in order of the program's names.
    pub columns: Vec<ProgramColumn>,
    /// Needed when a column is a time.
    pub clock: Option<Clock>,
}

/// One column of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramColumn {
    /// Its name in the program.
    pub name: String,
    /// The party whose file holds it.
    pub party: String,
    /// Its name in that file.
    pub column: String,
    /// How a cell becomes a number; where the study does not say, the program's column does.
    pub cell: Option<CellType>,
}

/// How a cell becomes a number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellType {
    /// A whole number, -2^63 to 2^63 - 1.
    Integer,
    /// A time of the study's clock.
    Time,
    /// The index of the cell in this public list.
    Label(Vec<String>),
}

/// How a study is computed. It changes the cost, never the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compute {
    /// The engine.
    pub engine: ComputeEngine,
    /// What makes the oblivious transfers of `gmw`; `None` is the best one of this version.
    pub ot: Option<OtKind>,
    /// The circuit by which `gmw` finds the best row; `None` is the best one of this version.
    pub circuit: Option<SelectionCircuit>,
    /// Pairs of workers that compute at once; there may be more units than that.
    pub shards: u32,
}

/// An engine that the parties run, as the study names it; where four servers compute, [`Study::servers`] says
/// how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputeEngine {
    /// The best one of this version for each section of the study; see `docs/cli.md`.
    Auto,
    /// Garbled circuits, between two parties.
    Yao,
    /// Shared bits, among any number of parties.
    Gmw,
    /// No protection: only inside one process that holds all data anyway.
    Clear,
}

impl ComputeEngine {
    /// By name in a study file; none: four servers, to whom any number of parties share their columns.
    const NAMES: [(&'static str, Option<Self>); 5] = [
        ("auto", Some(Self::Auto)),
        ("yao", Some(Self::Yao)),
        ("gmw", Some(Self::Gmw)),
        ("ring4", None),
        ("clear", Some(Self::Clear)),
    ];

    /// All names that a study file may have.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::NAMES.iter().map(|(name, _)| *name)
    }

    /// The name in a study file.
    fn name(engine: Option<Self>) -> &'static str {
        Self::NAMES.iter().find(|(_, other)| *other == engine).map_or("", |(name, _)| name)
    }
}

impl LiftStudy {
    /// The columns of a party that is no publisher, by its place in the roster.
    #[must_use]
    pub fn advertiser(&self, party: base::PartyId) -> Option<&Advertiser> {
        self.advertisers.get(party.index().checked_sub(1)?)
    }

    /// How many of the whole numbers that are computed with make one unit: the same at all advertisers.
    #[must_use]
    pub fn scale(&self) -> u32 {
        self.advertisers.first().map_or(1, |advertiser| advertiser.value.scale())
    }

    /// The column by whose values results are broken down, and that of the cohorts, where all advertisers
    /// have one of that name.
    #[must_use]
    pub fn cell_columns(&self) -> [Option<&str>; 2] {
        let name = |of: &Option<Categories>| of.as_ref().map(|of| of.column.clone());
        let cohort = self.advertisers.first().and_then(|first| first.cohort.as_ref());
        let alike = |cohort: &&Categories| {
            self.advertisers.iter().all(|other| name(&other.cohort).as_deref() == Some(&*cohort.column))
        };
        let breakdown = self.publisher.breakdown.as_ref();
        [breakdown, cohort.filter(alike)].map(|of| of.map(|of| of.column.as_str()))
    }
}

impl Study {
    /// Reads and checks the text of a study file that asks for one run; `file` is its name in messages.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column; or that it asks for several runs.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        StudyFile::parse(file, text)?.only()
    }

    /// Where noise comes from.
    #[must_use]
    pub fn noise(&self) -> NoiseFrom {
        match &self.kind {
            Question::Lift(lift) => lift.release.noise,
            Question::Program(own) => own.noise,
            Question::Match(_) => NoiseFrom::Inside,
        }
    }

    /// zCDP that the study spends on what a viewer sees, as far as it says.
    #[must_use]
    pub fn stated(&self, viewer: program::Viewer) -> Option<&Rational> {
        let (to, public) = match &self.kind {
            Question::Lift(lift) => (&lift.release.to, &lift.release.public),
            Question::Program(own) => (&own.to, &own.public),
            Question::Match(_) => return None,
        };
        let Some(party) = viewer.only() else { return public.as_ref() };
        let name = &self.parties[party.index()].name;
        to.iter().find(|(viewer, _)| viewer == name).map(|(_, rho)| rho)
    }

    /// Whether rows are matched and nothing is computed.
    #[must_use]
    pub fn only_matches(&self) -> bool {
        matches!(self.kind, Question::Match(_))
    }

    /// The member with this name.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Participant> {
        self.parties.iter().find(|member| member.name == name)
    }

    /// What the guarantee is of, in words.
    #[must_use]
    pub fn unit_words(&self) -> String {
        match &self.unit {
            Some(unit) => format!("one {unit}: the study says that one identifier is one {unit}"),
            None => "one row; the study does not say what a row stands for ([privacy] unit)".to_owned(),
        }
    }

    /// Refuses what must never meet a network: the `clear` engine shows every input to whoever computes.
    ///
    /// # Errors
    /// When the study asks for the `clear` engine.
    pub fn refuse_clear(&self) -> Result<(), Error> {
        if self.compute.engine == ComputeEngine::Clear {
            return Err(Error::input(format!(
                "study {}: compute.engine is \"clear\", which protects nothing and is refused between \
                 processes; use \"auto\", \"yao\" or \"gmw\"",
                self.name
            )));
        }
        Ok(())
    }
}
