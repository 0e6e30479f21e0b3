//! `tacit init lift`: one party says who was treated, the other what happened.

mod events;
mod offers;
mod trial;

use super::draft::{StudyDraft, comment, quoted, said};
use super::guess::{self, left_beyond, round_up};
use super::making::{Beginning, Making};
use super::matching::{compute, privacy};
use super::period::{DayCounts, SaidMonths, WholeMonths};
use super::{InitCommon, ProposedPrice};
use base::{Error, PartyId};
use clap::{ArgGroup, Args};
use data::RowStore;
use data::survey::{TimeKind, TimeSurvey};
use std::path::PathBuf;
use study::time::Unit;
use study::{EventValue, LiftStudy, MAX_CLAMP, Question, Study};
use terminal::output;

/// Makes study, party file and key of a lift study: one party begins it, the other completes it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  tacit init lift --publisher mails.csv --out lift\n  \
                  tacit init lift --publisher mails.csv --arm group --control holdout --yes\n  \
                  tacit init lift --publisher mails.csv --test \"Mens E-Mail\" --control \"No E-Mail\"\n  \
                  tacit init lift --advertiser sales.csv --study lift/study.toml\n  \
                  tacit init lift --advertiser sales.xlsx --study study.toml --value amount --clamp 500\n\
                  Either party may begin. Without a terminal every question is a flag: the error says it.")]
#[command(group = ArgGroup::new("side").args(["publisher", "advertiser"]).required(true))]
pub struct LiftInitArgs {
    /// The data of who knows the arms: CSV, Excel or Parquet, a file, a folder or a pattern
    #[arg(long, value_name = "DATA")]
    pub publisher: Option<PathBuf>,
    /// The data of who knows the outcomes
    #[arg(long, value_name = "DATA")]
    pub advertiser: Option<PathBuf>,
    /// What each kind takes.
    #[command(flatten)]
    pub common: InitCommon,
    /// Publisher: the column of the arm
    #[arg(long, value_name = "COLUMN", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub arm: Option<String>,
    /// The label of those who were treated
    #[arg(long, value_name = "LABEL", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub test: Option<String>,
    /// The label of those who were not
    #[arg(long, value_name = "LABEL", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub control: Option<String>,
    /// A label of few rows, or spelt like another one, that is an arm as well, whose rows are left out;
    /// repeated for others. Other labels of the file are left out without it
    #[arg(long, value_name = "LABEL", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub leave_out: Vec<String>,
    /// The column that says when a person could first be treated: in both arms
    #[arg(long, value_name = "COLUMN", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub opportunity: Option<String>,
    /// The column of the number of impressions: enables counts of those who were reached
    #[arg(long, value_name = "COLUMN", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub impressions: Option<String>,
    /// A column of at most 20 values by which results are broken down
    #[arg(long, value_name = "COLUMN", conflicts_with = "advertiser", help_heading = "Publisher")]
    pub breakdown: Option<String>,
    /// The column that says when something happened; repeated where a line has several
    #[arg(long, value_name = "COLUMN", conflicts_with = "publisher", help_heading = "Advertiser")]
    pub event: Vec<String>,
    /// The column of its value, one for each --event; 1 to count events
    #[arg(long, value_name = "COLUMN|1", conflicts_with = "publisher", help_heading = "Advertiser")]
    pub value: Vec<String>,
    /// The unit of values: EUR; or none
    #[arg(long, value_name = "UNIT", conflicts_with = "publisher", help_heading = "Advertiser")]
    pub unit: Option<String>,
    /// Values below zero: net takes them off earlier ones, leave-out drops them, error refuses them
    #[arg(long, value_name = "RULE", value_parser = ["net", "leave-out", "error"],
          conflicts_with = "publisher", help_heading = "Advertiser")]
    pub negative: Option<String>,
    /// Only lines whose column has this value are events; may be repeated for one column
    #[arg(
        long = "where",
        value_name = "COLUMN=VALUE",
        conflicts_with = "publisher",
        help_heading = "Advertiser"
    )]
    pub filter: Vec<String>,
    /// A column of at most 20 values: results for each of them
    #[arg(long, value_name = "COLUMN", conflicts_with = "publisher", help_heading = "Advertiser")]
    pub cohort: Option<String>,
    /// Events of one person that count at most, 1 to 16
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(1..=16),
          conflicts_with = "publisher", help_heading = "Advertiser")]
    pub max_events: Option<u8>,
    /// Most that one person adds to the total, in the unit of values
    #[arg(long, value_name = "R", conflicts_with = "publisher", help_heading = "Advertiser")]
    pub clamp: Option<String>,
    /// The report calls a smaller outcome better: illness, returns
    #[arg(long, conflicts_with_all = ["publisher", "higher_is_better"], help_heading = "Advertiser")]
    pub lower_is_better: bool,
    /// The report calls a larger outcome better: purchases. So it is unless told
    #[arg(long, conflicts_with = "publisher", help_heading = "Advertiser")]
    pub higher_is_better: bool,
    /// The unit of times: second, minute, hour or day; the finest that the files have unless told
    #[arg(long, value_name = "UNIT", value_parser = ["second", "minute", "hour", "day"])]
    pub time_unit: Option<String>,
    /// The months that the study says times are in, first and last; those of the file unless told
    #[arg(long, value_name = "YYYY-MM..YYYY-MM", value_parser = SaidMonths::parse)]
    pub months: Option<SaidMonths>,
    /// What it costs.
    #[command(flatten)]
    pub price: ProposedPrice,
}

/// Which half of the study is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TrialSide {
    Publisher,
    Advertiser,
}

impl TrialSide {
    fn name(self) -> &'static str {
        if self == Self::Publisher { "publisher" } else { "advertiser" }
    }

    fn other(self) -> Self {
        if self == Self::Publisher { Self::Advertiser } else { Self::Publisher }
    }
}

/// Makes this party's half.
///
/// # Errors
/// As [`super::run`].
pub fn run(args: &LiftInitArgs) -> Result<(), Error> {
    let (side, data) = match (&args.publisher, &args.advertiser) {
        (Some(data), _) => (TrialSide::Publisher, data),
        (None, Some(data)) => (TrialSide::Advertiser, data),
        (None, None) => return Err(Error::misuse("the command line has a side")),
    };
    let other = format!("lift --{}", side.other().name());
    let beginning = Beginning { kind: "lift", lacks: [side.name(), side.other().name()], other: &other };
    let (mut making, mut draft) = Making::begin(&args.common, data, &beginning)?;
    let theirs = match making.completes {
        true => Some(typed(&draft, side, None)?),
        false => None,
    };
    match &theirs {
        Some(study) => making.identifiers_of(study)?,
        None => begin(&mut making, &mut draft, args)?,
    }
    let own = match side {
        TrialSide::Publisher => trial::publisher(&mut making, &mut draft, args)?,
        TrialSide::Advertiser => events::advertiser(&mut making, &mut draft, args)?,
    };
    let own = match &args.time_unit {
        Some(said) => own.in_unit(unit(said)),
        None => own,
    };
    let before = theirs.as_ref().map(|study| WholeMonths::of_study(lift(study)));
    let both = |own: WholeMonths| before.map_or(own, |before| before.with(own));
    let exact = match making.is_read_whole()? {
        true => {
            let study = typed(&draft, side, Some(both(own).wide()?))?;
            match side {
                TrialSide::Publisher => trial::settle(&mut making, &mut draft, &study, own)?,
                TrialSide::Advertiser => events::settle(&mut making, &mut draft, &study, (own, args))?,
            }
        }
        false => {
            if side == TrialSide::Advertiser {
                let study = typed(&draft, side, Some(both(own).wide()?))?;
                events::settle_unread(&mut making, &mut draft, &study, args)?;
            }
            own
        }
    };
    let exact = args.months.map_or(Ok(exact), |months| exact.said(months))?;
    let period = both(exact);
    making.tell(period.shown());
    draft.set("time", period.section(making.completes));
    let study = typed(&draft, side, None)?;
    making.limit(&study)?;
    let title = title(&draft, &study);
    making.entitle(&mut draft, &title)?;
    let draft = if making.completes { draft.finished() } else { draft };
    making.finish(&draft, beginning.other)
}

/// What a study is about, by what is known of it.
fn title(draft: &StudyDraft, study: &Study) -> String {
    let LiftStudy { publisher, advertisers, .. } = lift(study);
    let outcome =
        advertisers.iter().filter(|_| draft.get("advertiser").is_some()).map(|own| match &own.value {
            EventValue::Columns { columns, .. } => columns.join(", "),
            EventValue::Constant(_) => format!("events ({})", own.events.join(", ")),
        });
    let arms = draft.get("publisher").map(|_| format!("{} against {}", publisher.test, publisher.control));
    outcome.chain(arms).collect::<Vec<_>>().join(": ")
}

fn unit(said: &str) -> Unit {
    Unit::NAMES.iter().find(|(name, _)| *name == said).map_or(Unit::Second, |(_, unit)| *unit)
}

fn lift(study: &Study) -> &LiftStudy {
    match &study.kind {
        Question::Lift(lift) => lift,
        _ => unreachable!("the draft is of a lift study"),
    }
}

/// Sections that who begins the study writes for both.
fn begin(making: &mut Making<'_>, draft: &mut StudyDraft, args: &LiftInitArgs) -> Result<(), Error> {
    draft.set("match", making.matching("pid")?);
    privacy(draft);
    let rho = args.price.rho()?;
    let lines = [
        (
            "The difference of the arms per person, its interval, and the sums behind it.",
            "mode       = \"sums\"",
        ),
        ("Of every interval.", "confidence = 0.95"),
        ("An arm with fewer people is not shown; 1000 is the least there is.", "minimum_group = 1000"),
    ];
    let lines: String = lines.iter().map(|(why, line)| said(why, line)).collect();
    draft.set("release", format!("[release]\n{lines}"));
    let price = said(
        "zCDP: what the result costs the data of each party. Smaller: more noise. `tacit plan` says what \
         could be seen.",
        &format!("rho = {rho}"),
    );
    draft.set(
        "release.public",
        format!(
            "{}[release.public]\n{price}",
            comment("One result, the same for both, which both may publish.")
        ),
    );
    compute(draft);
    making.because("rho", rho, "a tenth of the budget of the party file");
    Ok(())
}

/// The study that a draft will be, with what it lacks made up; with another clock where one is given.
fn typed(draft: &StudyDraft, side: TrialSide, clock: Option<String>) -> Result<Study, Error> {
    let mut draft = draft.clone().finished();
    if let Some(clock) = clock {
        draft.set("time", clock);
    }
    for (role, digit) in [("publisher", "0"), ("advertiser", "f")] {
        let has = |name: &str| {
            draft
                .get(&format!("party.{name}"))
                .is_some_and(|text| text.contains(&format!("role = \"{role}\"")))
        };
        if !draft.parties().any(has) {
            let key = format!("tacit1:{}", digit.repeat(32));
            let text = format!("[party.made-up-{role}]\nrole = \"{role}\"\nkey = \"{key}\"\n");
            draft.set(&format!("party.made-up-{role}"), text);
        }
    }
    let made_up = [
        (
            "publisher",
            "[publisher]\narm = { column = \"arm\", test = \"1\", control = \"0\" }\nopportunity = { column \
             = \"time\", type = \"time\" }\n",
        ),
        (
            "advertiser",
            "[advertiser]\nlayout = \"events\"\nevent = { column = \"time\", type = \"time\" }\nvalue = { \
             constant = 1 }\nmax_events = 1\noverflow = \"error\"\n",
        ),
        ("lift", "[lift]\ncounts_after = \"opportunity\"\nclamp = 1\n"),
    ];
    for (name, text) in made_up {
        if draft.get(name).is_none() {
            draft.set(name, text.to_owned());
        }
    }
    let file = draft.parse("the study").map_err(|error| {
        let whose = if side == TrialSide::Publisher { "publisher's" } else { "advertiser's" };
        Error::input(format!("with the {whose} half: {error}"))
    })?;
    file.only()
}

/// Reads all rows of this party as the study says.
fn read(making: &Making<'_>, study: &Study, side: TrialSide) -> Result<(RowStore, data::InputReport), Error> {
    data::read_rows(making.location(), study, PartyId(u8::from(side == TrialSide::Advertiser)), None)
}

/// Says what of the times hangs on few rows.
fn note_thin_ends(making: &mut Making<'_>, days: &DayCounts) {
    for end in days.thin_ends() {
        output::say(&format!(
            "note: {end}. The study tells that month to the other party: correct the rows if they are a \
             mistake, or say round months by --months 2026-01..2026-12"
        ));
        making.because("time", "whole months of all rows", end);
    }
}

/// The unit and the range of a column's times.
fn period(ways: &[TimeSurvey]) -> WholeMonths {
    let counted = ways.iter().any(|way| way.kind == TimeKind::Seconds);
    // Midnights of a clock that is not that of UTC are no midnights here any more.
    let days = ways.iter().all(|way| way.kind == TimeKind::Day || way.midnight);
    let unit = if days && !counted { Unit::Day } else { Unit::Second };
    let low = ways.iter().map(|way| way.low).min().unwrap_or_default();
    let high = ways.iter().map(|way| way.high).max().unwrap_or_default();
    WholeMonths::of(unit, low, high, counted)
}

/// Values of a column by which results are shown, for a study.
fn categories(making: &mut Making<'_>, column: &str) -> Result<String, Error> {
    let seen = making.column(column)?;
    if seen.values.is_empty() || seen.empty > 0 {
        return Err(Error::input(format!(
            "column \"{column}\" has {} different values and {} empty cells (of a sample): results are \
             shown by columns of at most 20 values without empty cells",
            seen.distinct, seen.empty
        )));
    }
    if let Some((value, rows)) = guess::rare(seen).next() {
        return Err(Error::input(format!(
            "column \"{column}\": {} with {}, and a value that fewer than {} rows have is not told to \
             the other party: put small values together in the file",
            page::numbers::counted(*rows, "row"),
            quoted(value),
            guess::LABEL_ROWS
        )));
    }
    let values: Vec<&str> = seen.values.iter().map(|(value, _)| value.as_str()).collect();
    let text =
        format!("{{ column = {}, values = {} }}", quoted(column), super::draft::list(values.iter().copied()));
    let told = format!("the values of {column}: {}", values.join(", "));
    making.tell(told);
    Ok(text)
}

/// Parts of a unit as a number of units.
fn in_units(parts: u64, scale: u64) -> String {
    release::rational::shown(&release::rational::ratio(parts, scale))
}

/// The clamp for totals of people, in parts, rounded up: what but one of a hundred do not reach, and of few
/// people but four, or but one.
fn clamp(totals: &mut [u64]) -> u64 {
    totals.sort_unstable();
    let Some(last) = totals.len().checked_sub(1) else { return 1 };
    let at = last - left_beyond(totals.len() as u64) as usize;
    round_up(totals[at].max(1)).min(MAX_CLAMP.into())
}
