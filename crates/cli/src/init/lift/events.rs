//! The advertiser's half: what happened, when, and what it is worth.

use super::offers::{offer, refuse_small};
use super::trial::{duplicates, time_columns};
use super::{LiftInitArgs, TrialSide, categories, clamp, in_units, note_thin_ends, period, read};
use crate::init::draft::{StudyDraft, list, quoted, said};
use crate::init::guess;
use crate::init::making::Making;
use crate::init::period::{DayCounts, WholeMonths};
use crate::init::units::unit;
use base::Error;
use data::survey::ColumnSurvey;
use data::{InputReport, Rows};
use job::plan::proposed_clamp;
use page::numbers::{count, counted, percent};
use study::time::Clock;
use study::{EventValue, MAX_CLAMP, MAX_EVENTS, Study};
use terminal::output;

/// Chooses the advertiser's columns. Returns the range of its times, by the sample.
pub fn advertiser(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    args: &LiftInitArgs,
) -> Result<WholeMonths, Error> {
    let events = events(making, args)?;
    let ways = events.iter().map(|name| making.times(name)).collect::<Result<Vec<_>, _>>()?;
    making.because("event", events.join(", "), "the times of this column");
    making.tell(format!("when events happened stands in {}", events.join(", ")));
    let (value, scale) = value(making, &events, args)?;
    let wide = events.len() > 1;
    let column = match wide {
        true => format!("columns = {}", list(events.iter().map(String::as_str))),
        false => format!("column = {}", quoted(&events[0])),
    };
    let layout = match wide {
        true => "A line per person, with several events.",
        false => {
            "A line per event; a line without a time is of somebody without an event. Keep such people in \
             the file: without them the size of the match tells who had one."
        }
    };
    let mut text = format!(
        "[advertiser]\n{}{}{value}",
        said(layout, &format!("layout     = \"{}\"", if wide { "wide" } else { "events" })),
        said("When it happened.", &format!("event      = {{ {column}, type = \"time\" }}")),
    );
    if let Some(filter) = filter(making, args)? {
        text +=
            &said("Other lines keep their identifier, without an event.", &format!("where      = {filter}"));
    }
    if let Some(name) = &args.cohort {
        let values = categories(making, name)?;
        text += &said("Results for each of these; the values are public.", &format!("cohort     = {values}"));
    }
    draft.set("advertiser", text);
    draft.set("lift", format!("[lift]\n{}", better(making, args)?));
    limits(draft, (MAX_EVENTS, false), (&in_units(MAX_CLAMP.into(), scale), ClampRule::People));
    Ok(period(&ways))
}

/// The line that says which outcome is the better one.
fn better(making: &mut Making<'_>, args: &LiftInitArgs) -> Result<String, Error> {
    let answers = ["more is better (purchases)", "less is better (illness, returns)"].map(str::to_owned);
    let question = "Which outcome is the better one? Reports word the result by it.";
    let flag = "--higher-is-better or --lower-is-better";
    let (lower, why) = match (args.lower_is_better, args.higher_is_better) {
        (false, false) => {
            let lower = making.how.offer(flag, question, &answers, 0)? == 1;
            (lower, format!("{} (--lower-is-better)", making.how.why()))
        }
        (lower, _) => (lower, "as it was said".to_owned()),
    };
    making.because("lower_is_better", lower.to_string(), why);
    making.tell(format!("that {} is better", if lower { "less" } else { "more" }));
    Ok(said("Whether reports call a smaller outcome the better one.", &format!("lower_is_better = {lower}")))
}

fn events(making: &Making<'_>, args: &LiftInitArgs) -> Result<Vec<String>, Error> {
    if !args.event.is_empty() {
        return args.event.iter().map(|name| Ok(making.column(name)?.name.clone())).collect();
    }
    let times = time_columns(making, &[]);
    // bought_1, bought_2, ..: a line per person.
    let stem =
        |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || " _-.".contains(c)).to_lowercase();
    let numbered = |name: &String| name.ends_with(|c: char| c.is_ascii_digit());
    if times.len() > 1 && times.iter().all(numbered) && times.iter().all(|name| stem(name) == stem(&times[0]))
    {
        return Ok(times);
    }
    let names: Vec<&str> = times.iter().map(String::as_str).collect();
    let question = "Which column says when what is measured happened (a purchase, an illness)?";
    Ok(vec![making.pick(None, "--event COLUMN", question, &names, None)?])
}

/// The lines of what an event is worth, and how many parts make a unit.
fn value(making: &mut Making<'_>, events: &[String], args: &LiftInitArgs) -> Result<(String, u64), Error> {
    let columns = value_columns(making, events, args)?;
    if columns.is_empty() {
        making.because("value", "1", "events are counted");
        making.tell("events are counted, and have no value".to_owned());
        return Ok((said("Events are counted.", "value      = { constant = 1 }"), 1));
    }
    let (mut decimals, mut negative) = (0, 0);
    for name in &columns {
        making.decimals(name)?;
        let column = making.column(name)?;
        let numbers =
            column.numbers.as_ref().ok_or_else(|| {
                Error::input(guess::stray_amount(column).unwrap_or_else(|| {
                    format!("column \"{name}\" is no value of events: its cells are empty")
                }))
            })?;
        (decimals, negative) = (decimals.max(numbers.decimals), negative + numbers.negative);
    }
    let places = match decimals {
        0 => 0,
        1 | 2 => 2,
        3..=6 => decimals,
        _ => {
            return Err(Error::input(format!(
                "column \"{}\" has numbers of {decimals} decimals, and 6 are the most: round them",
                columns[0]
            )));
        }
    };
    let scale = 10u64.pow(places);
    let rule = match (&args.negative, negative) {
        (Some(rule), _) => rule.clone(),
        (None, 0) => "error".to_owned(),
        (None, some) => {
            let answers = ["net", "leave-out", "error"].map(str::to_owned);
            let question = format!(
                "{} values of the sample are below zero. Are they refunds? (net: taken off earlier events \
                 of the person; leave-out: no events; error: refused)",
                count(some)
            );
            let rule = answers[making.how.choose("--negative RULE", &question, &answers, Some(0))?].clone();
            making.because("negative", &rule, format!("{} (--negative RULE)", making.how.why()));
            rule
        }
    };
    let unit = unit(making.how, making.column(&columns[0])?, args.unit.as_deref(), "--unit UNIT")?;
    making.because("unit", unit.name.as_deref().unwrap_or("none"), unit.why);
    let unit = unit.name;
    let numbers = match decimals {
        0 => "whole numbers".to_owned(),
        _ => format!("numbers with up to {decimals} decimals: parts of which {scale} are 1"),
    };
    let facts = format!("{numbers}; {} below zero", count(negative));
    making.because("value", columns.join(", "), facts);
    let kind = if places == 0 { "whole numbers".to_owned() } else { format!("up to {places} decimals") };
    let mut told = format!("values stand in {}: {kind}", columns.join(", "));
    told += &unit.as_ref().map_or(String::new(), |unit| format!(", in {unit}"));
    if rule != "error" {
        told += ", some of them below zero";
    }
    making.tell(told);
    Ok((value_line(events, &columns, unit, (scale, &rule)), scale))
}

/// The line of values in these columns.
fn value_line(
    events: &[String],
    columns: &[String],
    unit: Option<String>,
    (scale, rule): (u64, &str),
) -> String {
    let column = match columns.len() {
        1 if events.len() == 1 => format!("column = {}", quoted(&columns[0])),
        _ => format!("columns = {}", list(columns.iter().map(String::as_str))),
    };
    let unit = unit.map_or(String::new(), |unit| format!(", unit = {}", quoted(&unit)));
    let scaled = if scale > 1 { format!(", scale = {scale}") } else { String::new() };
    let negative = if rule == "error" { String::new() } else { format!(", negative = \"{rule}\"") };
    let why = match (scale, rule) {
        (1, "error") => "Whole numbers.",
        (_, "net") => {
            "Computed in whole parts of the unit (scale). Negative values are refunds, taken off earlier \
             events."
        }
        (_, "leave-out") => {
            "Computed in whole parts of the unit (scale). Lines with negative values are no events."
        }
        _ => "Computed in whole parts of the unit (scale): nothing is rounded.",
    };
    let line = format!("value      = {{ {column}, type = \"u32\"{unit}{scaled}{negative} }}");
    said(why, &line)
}

fn value_columns(making: &Making<'_>, events: &[String], args: &LiftInitArgs) -> Result<Vec<String>, Error> {
    match &args.value[..] {
        [one] if one == "1" => return Ok(Vec::new()),
        [] => {}
        names => return names.iter().map(|name| Ok(making.column(name)?.name.clone())).collect(),
    }
    let mut found: Vec<(u32, &str)> = Vec::new();
    for column in &making.survey.columns {
        let sure = guess::money(column);
        if sure > 0 && !events.contains(&column.name) && !guess::may_be_numbering(column) {
            found.push((sure, &column.name));
        }
    }
    if events.len() > 1 && !found.is_empty() {
        // As many as there are events, or none.
        return match found.len() == events.len() {
            true => Ok(found.iter().map(|(_, name)| (*name).to_owned()).collect()),
            false => Err(Error::input(
                "which columns are the values of the events? Say each by --value COLUMN, or --value 1",
            )),
        };
    }
    let most = found.iter().map(|(sure, _)| *sure).max().unwrap_or_default();
    let best: Vec<&str> = found.iter().filter(|(sure, _)| *sure == most).map(|(_, name)| *name).collect();
    match best[..] {
        [] => unclaimed(making, events, args),
        [only] => Ok(vec![only.to_owned()]),
        _ => ask_value(making, events, &best),
    }
}

/// Asks which of these columns is the value of an event, if any.
fn ask_value(making: &Making<'_>, events: &[String], names: &[&str]) -> Result<Vec<String>, Error> {
    if events.len() > 1 {
        let question = format!(
            "Are values of the events in {}? --value COLUMN, once for each event, says in which columns they \
             are. Or shall events be counted (1)?",
            names.join(", ")
        );
        return events_alone(making, &question).map(|()| Vec::new());
    }
    let mut answers: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    answers.push("1".to_owned());
    let question = "Which column is the value of an event (1: events are counted)?";
    let at = making.how.choose("--value COLUMN or --value 1", question, &answers, None)?;
    Ok(if at == names.len() { Vec::new() } else { vec![answers[at].clone()] })
}

/// What events are worth where no column looks like amounts: another column of numbers may be it, and
/// whether events are counted though there is one, or though the file or a flag says otherwise, is asked.
fn unclaimed(making: &Making<'_>, events: &[String], args: &LiftInitArgs) -> Result<Vec<String>, Error> {
    let rows = making.survey.sampled;
    let other = |column: &ColumnSurvey| {
        events.contains(&column.name) || guess::identifies(column, rows).is_some_and(|score| score >= 60)
    };
    let is = |column: &&ColumnSurvey| {
        guess::may_be_amounts(column) && column.filled > 0 && !other(column) && !guess::is_time(column)
    };
    if let Some(stray) = making.survey.columns.iter().filter(is).find_map(guess::stray_amount) {
        let question = format!("{stray}. Or shall events be counted, without amounts (1)?");
        return events_alone(making, &question).map(|()| Vec::new());
    }
    if expect_outcomes(making, events)? {
        return Ok(Vec::new());
    }
    let filtered =
        |name: &str| args.filter.iter().any(|said| said.split_once('=').is_some_and(|of| of.0 == name));
    let taken = |name: &str| {
        making.is_identifier(name) || filtered(name) || args.cohort.as_deref().is_some_and(|of| of == name)
    };
    let may_be = |column: &&ColumnSurvey| {
        let amount = guess::is_named_money(column) || !other(column);
        guess::may_be_values(column) && amount && !events.contains(&column.name) && !taken(&column.name)
    };
    let names: Vec<&str> =
        making.survey.columns.iter().filter(may_be).map(|column| column.name.as_str()).collect();
    if !names.is_empty() {
        return ask_value(making, events, &names);
    }
    if let Some(unit) = args.unit.as_deref().filter(|unit| *unit != "none") {
        events_alone(
            making,
            &format!(
                "--unit {unit} is of amounts, and no column looks like these: --value COLUMN says which has \
                 them. Or shall events be counted, without amounts (1)?"
            ),
        )?;
    }
    Ok(Vec::new())
}

/// Asks whether events are counted, where the file looks otherwise.
fn events_alone(making: &Making<'_>, question: &str) -> Result<(), Error> {
    let read = |text: &str| match text {
        "1" => Ok(()),
        _ => Err("1 counts events; else end this (Ctrl-C), and begin again with another file".to_owned()),
    };
    making.how.words("--value 1", question, None, read)
}

/// Asks whether a file is the advertiser's that has arms, as the publisher's has, and no amounts. Whether it
/// asked: then events are counted.
fn expect_outcomes(making: &Making<'_>, events: &[String]) -> Result<bool, Error> {
    let is = |column: &&ColumnSurvey| {
        let labels: Vec<&str> = column.values.iter().map(|(label, _)| label.as_str()).collect();
        labels.len() > 1 && guess::is_named_arm(column) && guess::control(&labels).is_some()
    };
    let Some(arm) = making.survey.columns.iter().find(is) else { return Ok(false) };
    let labels: Vec<String> = arm.values.iter().map(|(label, _)| quoted(label)).collect();
    events_alone(
        making,
        &format!(
            "The file has arms (column \"{}\": {}) and no amounts, as the publisher's file has. The \
             advertiser's says what happened afterwards, and when. Is this the right file, and shall the \
             times of \"{}\" be counted as what happened (1)?",
            arm.name,
            labels.join(", "),
            events.join(", ")
        ),
    )
    .map(|()| true)
}

fn filter(making: &mut Making<'_>, args: &LiftInitArgs) -> Result<Option<String>, Error> {
    let mut values = Vec::new();
    let mut of = None;
    for said in &args.filter {
        let Some((column, value)) = said.split_once('=') else {
            return Err(Error::input(format!("--where is {said}; write COLUMN=VALUE: status=paid")));
        };
        if of.is_some_and(|of| of != column) {
            return Err(Error::input(
                "--where takes values of one column; repeat it for further values of that one",
            ));
        }
        of = Some(column);
        values.push(value);
    }
    let Some(column) = of else { return Ok(None) };
    let column = making.column(column)?.name.clone();
    making.tell(format!("events are lines whose {column} is {}", values.join(" or ")));
    Ok(Some(format!("{{ column = {}, equals = {} }}", quoted(&column), list(values))))
}

/// By what a clamp is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClampRule {
    /// Somebody said it.
    Said,
    /// What the study would detect.
    Effect,
    /// What most people do not exceed: for so few that nothing would be shown.
    People,
}

impl ClampRule {
    /// The comment of the study.
    fn why(self) -> &'static str {
        match self {
            Self::Said => "Chosen by the advertiser.",
            Self::Effect => {
                "Chosen by the file, if everybody of it were in the trial: of 1, 2 or 5 and zeros the one \
                 for which the part of the mean that this study would detect, over the part of all outcomes \
                 that is left, is smallest. A larger one makes more noise, a smaller one cuts more off. It \
                 is at most what 99 of 100 people with an event do not exceed (of up to 500 such people all \
                 but four, of fewer than 40 all but one in ten), rounded up. It tells the other party \
                 roughly how large outcomes are. `tacit check --clamp R` says what another one would detect."
            }
            Self::People => {
                "Chosen by the file: 99 of 100 people with an event have no larger total (of up to 500 such \
                 people all but four, of fewer than 40 all but one in ten), rounded up to 1, 2 or 5 and \
                 zeros. It tells the other party roughly how large outcomes are."
            }
        }
    }
}

/// The lines of how much of a person counts; whether somebody chose the number of events, for the data did
/// not, and by what the clamp is what it is.
fn limits(draft: &mut StudyDraft, (most, said_events): (u8, bool), (clamp, rule): (&str, ClampRule)) {
    let text = draft.get("advertiser").unwrap_or_default();
    let text = text.rsplit_once("# K: ").map_or(text, |(before, _)| before);
    let events = match said_events {
        false => "It is 1, 2, 4, 8 or 16, chosen by the file: it tells roughly how many events people have.",
        true => "Chosen by the advertiser.",
    };
    let events = said(
        &format!("K: events of one person that count, the earliest. {events}"),
        &format!("max_events = {most}"),
    );
    draft.set("advertiser", format!("{text}{events}overflow   = \"keep-earliest\"\n"));
    let why = rule.why();
    let clamp = said(
        &format!(
            "R, the clamp: the most that one person adds. What somebody has above it does not count, and \
             the estimate is of outcomes cut so. Noise is as wide as R is large. {why}"
        ),
        &format!("clamp        = {clamp}"),
    );
    let counts = said("Events strictly later than the opportunity.", "counts_after = \"opportunity\"");
    // What is better was said before.
    let before = draft.get("lift").unwrap_or_default();
    let better = before.find("# Whether reports").map_or("", |at| &before[at..]);
    draft.set("lift", format!("[lift]\n{counts}{clamp}{better}"));
}

fn scale(study: &Study) -> u64 {
    super::lift(study).scale().into()
}

/// What was seen of people.
#[derive(Default)]
struct SeenPeople {
    people: u64,
    /// Of those who have events: what they add up to.
    totals: Vec<u64>,
    /// And how many they are.
    events: Vec<usize>,
    /// When they were.
    days: DayCounts,
}

impl SeenPeople {
    fn add(&mut self, clock: &Clock, rows: &Rows) {
        let Rows::Advertiser(rows) = rows else { return };
        self.people += rows.len() as u64;
        for at in 0..rows.len() {
            let (times, values) = rows.events(at);
            if !times.is_empty() {
                times.iter().for_each(|time| self.days.add(clock, *time));
                self.totals.push(values.iter().map(|value| u64::from(*value)).sum::<u64>());
                self.events.push(times.len());
            }
        }
    }
}

/// Reads all rows: exact times, events and totals of people.
pub fn settle(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    study: &Study,
    (own, args): (WholeMonths, &LiftInitArgs),
) -> Result<WholeMonths, Error> {
    let mut lenient = study.clone();
    let wide = super::lift(study).advertisers[0].layout == study::EventLayout::Wide;
    if wide && lenient.matching.duplicates == study::Duplicates::Error && making.common.duplicates.is_none() {
        lenient.matching.duplicates = study::Duplicates::Merge;
    }
    let mut seen = SeenPeople::default();
    let (rows, report) = read(making, &lenient, TrialSide::Advertiser)?;
    let clock = &super::lift(study).clock;
    rows.each_block(|_, rows| {
        seen.add(clock, rows);
        Ok(())
    })?;
    refuse_small(&lenient, TrialSide::Advertiser, &rows)?;
    let SeenPeople { mut totals, events, days, people } = seen;
    if wide && report.duplicates_merged > 0 && lenient.matching.duplicates != study.matching.duplicates {
        making.because(
            "duplicates",
            "merge",
            format!("{} lines are of people with another line", count(report.duplicates_merged)),
        );
        making.tell("that a person may have several lines (duplicates)".to_owned());
        duplicates(draft, "merge");
    }
    if people > 0 && people == events.len() as u64 {
        output::say(
            "note: everybody in the file has an event. People whom it could have, and who have none, belong \
             into it, in a line without a time: else the size of the match tells who had one.",
        );
    }
    let most = max_events(making, args, (people, &events));
    let (clamp, rule) = clamp_of(making, args, (study, &report), &mut totals)?;
    tell_bounds(making, study, (most, args.max_events.is_some()), (&clamp, rule == ClampRule::Said));
    limits(draft, (most, args.max_events.is_some()), (&clamp, rule));
    offer(making, &lenient, TrialSide::Advertiser, &rows)?;
    note_thin_ends(making, &days);
    // Times of refunds, and of events beyond K, have to be within the study's as well.
    Ok(days.period(&own).map_or(own, |exact| own.with(exact)))
}

/// How many events of a person count: of so many people, what those with events have.
fn max_events(making: &mut Making<'_>, args: &LiftInitArgs, (people, events): (u64, &[usize])) -> u8 {
    let share = |part: usize| percent(part as f64 / events.len().max(1) as f64);
    let beyond = |most: u8| events.iter().filter(|count| **count > usize::from(most)).count();
    let most = match args.max_events {
        Some(most) => most,
        None => {
            let left = guess::left_beyond(events.len() as u64) as usize;
            [1, 2, 4, 8].into_iter().find(|most| beyond(*most) <= left).unwrap_or(MAX_EVENTS)
        }
    };
    making.because(
        "max_events",
        most.to_string(),
        format!(
            "{} of {} people have events, and {} of those more than {most}",
            count(events.len() as u64),
            count(people),
            share(beyond(most))
        ),
    );
    most
}

/// How much of a person's total counts, and by what that is chosen: by what people with events have in all.
fn clamp_of(
    making: &mut Making<'_>,
    args: &LiftInitArgs,
    (study, report): (&Study, &InputReport),
    totals: &mut [u64],
) -> Result<(String, ClampRule), Error> {
    let scale = scale(study);
    let most = clamp(totals);
    let found = proposed_clamp(study, report, most as u32).filter(|_| args.clamp.is_none());
    let by_effect = || Some(in_units((found.as_ref()?.clamp * scale as f64).round() as u64, scale));
    let (text, rule) = match (&args.clamp, by_effect()) {
        (Some(said), _) => (said.clone(), ClampRule::Said),
        (None, Some(found)) => (found, ClampRule::Effect),
        (None, None) => (in_units(most, scale), ClampRule::People),
    };
    let units: f64 = text.parse().map_err(|_| Error::input(format!("--clamp is {text}; write a number")))?;
    let over = totals.iter().filter(|total| **total as f64 > units * scale as f64 + 0.5).count();
    let mut why = format!(
        "{} of the people with events have a larger total; what is above does not count",
        percent(over as f64 / totals.len().max(1) as f64)
    );
    if let Some(of) = &found
        && let (Some(part), Some(kept)) = (of.of_mean(), of.kept)
    {
        why += &format!(
            " ({} of all outcomes is left). If everybody of the file were in the trial, the study would \
             detect a difference of {} of the mean; other round clamps see less or cut more",
            percent(kept),
            percent(part)
        );
    }
    making.because("clamp", &text, why);
    if over as u64 * 10 > totals.len() as u64 * 9 {
        output::say(&format!(
            "note: the clamp ({text}) cuts {} of the people with events: what is left is how many people \
             have an event, times the clamp. Are the values amounts? --value says another column (1: events \
             are counted), and --clamp another clamp",
            percent(over as f64 / totals.len() as f64)
        ));
    }
    Ok((text, rule))
}

/// Says what the bounds tell of people: nothing where somebody chose them.
fn tell_bounds(making: &mut Making<'_>, study: &Study, events: (u8, bool), clamp: (&str, bool)) {
    let unit = match &super::lift(study).advertisers[0].value {
        EventValue::Columns { unit: Some(unit), .. } => format!(" {unit}"),
        _ => String::new(),
    };
    let what = [
        (
            format!("max_events: {} of a person", counted(events.0.into(), "event")),
            events.1,
            "which few in the file exceed (rounded up)",
        ),
        (
            format!("clamp: {}{unit} of a person", clamp.0),
            clamp.1,
            "chosen by the file (1, 2 or 5 and zeros)",
        ),
    ];
    for (what, chosen, by_file) in what {
        making.tell(match chosen {
            true => format!("{what}, as somebody said, whatever the file shows"),
            false => format!("{what}, {by_file}"),
        });
    }
}

/// What cannot be seen in a sample of lines has to be said.
pub fn settle_unread(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    study: &Study,
    args: &LiftInitArgs,
) -> Result<(), Error> {
    let large = "The data are too large to look at every person.";
    let number =
        |text: &str| text.parse::<f64>().map(|_| text.to_owned()).map_err(|_| "a number, such as 500".into());
    let clamp = match &args.clamp {
        Some(text) => text.clone(),
        None => {
            let question = format!("{large} What is the most that one person shall add to the total?");
            making.how.words("--clamp R", &question, None, number)?
        }
    };
    let most = match args.max_events {
        Some(most) => most,
        None => {
            let question = format!("{large} How many events of one person count at most (1 to 16)?");
            let read = |text: &str| {
                text.parse::<u8>()
                    .ok()
                    .filter(|most| (1..=16).contains(most))
                    .ok_or_else(|| "1 to 16".to_owned())
            };
            making.how.words("--max-events K", &question, Some("4"), read)?
        }
    };
    making.because("max_events", most.to_string(), "as it was said");
    making.because("clamp", &clamp, "as it was said");
    tell_bounds(making, study, (most, true), (&clamp, true));
    limits(draft, (most, true), (&clamp, ClampRule::Said));
    Ok(())
}
