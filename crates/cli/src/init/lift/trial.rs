//! The publisher's half: who is in which arm, and since when.

use super::offers::{offer, refuse_small};
use super::{LiftInitArgs, TrialSide, categories, note_thin_ends, period, read};
use crate::init::ask::Answering;
use crate::init::draft::{StudyDraft, list, quoted, said};
use crate::init::guess;
use crate::init::making::Making;
use crate::init::period::{DayCounts, WholeMonths};
use base::Error;
use data::Rows;
use data::survey::ColumnSurvey;
use page::numbers::{count, counted};
use study::reader::nearest;
use study::{Study, TrialArm};
use terminal::output;

/// A label is slight that so many times fewer rows have than an arm that is compared.
const SLIGHT: u64 = 100;
/// Least people of an arm that is shown.
const LEAST: u64 = 1000;

/// Chooses the publisher's columns. Returns the range of its times, by the sample.
pub fn publisher(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    args: &LiftInitArgs,
) -> Result<WholeMonths, Error> {
    let arm = arm(making, args)?;
    let ArmLabels { test, control, others } = labels(making, &arm, args)?;
    making.because("arm", &arm, format!("\"{test}\" against \"{control}\""));
    making.tell(format!("the column {arm} with the labels \"{test}\" (test) and \"{control}\" (control)"));
    let leave_out = leave_out(making, &arm, &others)?;
    let times = time_columns(making, &[&arm]);
    let names: Vec<&str> = times.iter().map(String::as_str).collect();
    let question = "Which column says when a person could first be treated, in both arms?";
    let opportunity =
        making.pick(args.opportunity.as_deref(), "--opportunity COLUMN", question, &names, None)?;
    let way = making.times(&opportunity)?;
    let empty = making.column(&opportunity)?.empty;
    making.because(
        "opportunity",
        &opportunity,
        match empty {
            0 => "the times of this column".to_owned(),
            _ => format!("the times of this column; {} of the sample are empty, and left out", count(empty)),
        },
    );
    making.tell(format!("the column {opportunity}"));
    let mut text = format!(
        "[publisher]\n{}{}",
        said(
            match others[..] {
                [] => "Who was treated by chance, and who was not.",
                _ => {
                    "Who was treated by chance, and who was not. Rows of the other arms are left out, as if \
                     they were in no file; any further label is an error."
                }
            },
            &format!(
                "arm         = {{ column = {}, test = {}, control = {}{leave_out} }}",
                quoted(&arm),
                quoted(&test),
                quoted(&control)
            ),
        ),
        said(
            "Outcomes count after it. A row without one is left out.",
            &format!("opportunity = {{ column = {}, type = \"time\" }}", quoted(&opportunity)),
        ),
    );
    if let Some(name) = &args.impressions {
        let name = making.column(name)?.name.clone();
        making.tell(format!("the column {name}"));
        let line = format!("impressions = {{ column = {}, type = \"u16\" }}", quoted(&name));
        text += &said("How often a person was reached, for counts of those who were.", &line);
    }
    if let Some(name) = &args.breakdown {
        let values = categories(making, name)?;
        text +=
            &said("Results for each of these; the values are public.", &format!("breakdown   = {values}"));
    }
    draft.set("publisher", text);
    Ok(period(&[way]))
}

/// What the study says of arms that are left out.
fn leave_out(making: &mut Making<'_>, arm: &str, others: &[String]) -> Result<String, Error> {
    if others.is_empty() {
        return Ok(String::new());
    }
    let column = making.column(arm)?;
    let of = if making.is_seen_whole() { "" } else { " of the sample" };
    let rows = |label: &String| {
        let rows = column.values.iter().find(|(value, _)| value == label).map_or(0, |(_, rows)| *rows);
        format!("\"{label}\" {}{of}", counted(rows, "row"))
    };
    let why: Vec<String> = others.iter().map(rows).collect();
    let labels = list(others.iter().map(String::as_str));
    making.because("leave_out", &labels, format!("{}: as if they were in no file", why.join(", ")));
    making.tell(format!("the labels of arms whose rows are left out: {}", others.join(", ")));
    Ok(format!(", leave_out = {labels}"))
}

/// Columns of times but for these.
pub fn time_columns(making: &Making<'_>, but: &[&str]) -> Vec<String> {
    let is = |column: &&ColumnSurvey| guess::is_time(column) && !but.contains(&column.name.as_str());
    making.survey.columns.iter().filter(is).map(|column| column.name.clone()).collect()
}

/// Whether one of its labels says that it is of those who were not treated.
fn untreated(column: &ColumnSurvey) -> bool {
    let labels: Vec<&str> = column.values.iter().map(|(value, _)| value.as_str()).collect();
    guess::control(&labels).is_some()
}

/// No column has the labels that were said.
fn no_such_labels(making: &Making<'_>, said: &[&str]) -> Error {
    let mut all: Vec<&str> = making
        .survey
        .columns
        .iter()
        .flat_map(|column| column.values.iter().map(|(value, _)| value.as_str()))
        .collect();
    all.sort_unstable();
    let near = said.iter().filter(|label| !all.contains(label)).find_map(|label| nearest(label, &all));
    let hint = near.map_or(String::new(), |near| format!("; did you mean {}?", quoted(near)));
    let labels: Vec<String> = said.iter().map(|label| quoted(label)).collect();
    Error::input(format!(
        "no column of at most 20 values has {}; say the arm's column by --arm COLUMN{hint}",
        labels.join(" and ")
    ))
}

fn arm(making: &Making<'_>, args: &LiftInitArgs) -> Result<String, Error> {
    let said: Vec<&str> = [&args.test, &args.control].into_iter().flatten().map(String::as_str).collect();
    let has = |column: &ColumnSurvey, label: &str| column.values.iter().any(|(value, _)| value == label);
    let fits = |column: &&ColumnSurvey| match (&said[..], column.values.len()) {
        (_, 0 | 1) => false,
        // A name in nearly every row of a small file is no arm.
        ([], 2) => guess::is_named_arm(column) || guess::rare(column).next().is_none(),
        ([], _) => guess::is_named_arm(column) || untreated(column),
        (labels, _) => labels.iter().all(|label| has(column, label)),
    };
    let columns: Vec<&ColumnSurvey> = making.survey.columns.iter().filter(fits).collect();
    if columns.is_empty() && args.arm.is_none() && !said.is_empty() {
        return Err(no_such_labels(making, &said));
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut named = columns.iter().filter(|column| guess::is_named_arm(column));
    let sure = named.next().filter(|_| named.next().is_none()).map(|column| column.name.as_str());
    let question = match &said[..] {
        [] => "Which column says in which arm of the trial a person is?".to_owned(),
        labels => format!(
            "Which column says in which arm of the trial a person is, and has {}?",
            labels.iter().map(|label| quoted(label)).collect::<Vec<_>>().join(" and ")
        ),
    };
    making.pick(args.arm.as_deref(), "--arm COLUMN", &question, &names, sure)
}

/// The labels of test and control, and those of arms that are left out.
struct ArmLabels {
    test: String,
    control: String,
    others: Vec<String>,
}

fn labels(making: &Making<'_>, arm: &str, args: &LiftInitArgs) -> Result<ArmLabels, Error> {
    let column = making.column(arm)?;
    let all: Vec<&str> = column.values.iter().map(|(value, _)| value.as_str()).collect();
    if all.len() < 2 && (args.test.is_none() || args.control.is_none()) {
        return Err(Error::input(format!(
            "column \"{arm}\" has {} different values, and an arm has 2 to 20: say which are compared by \
             --test LABEL and --control LABEL, or another column by --arm",
            count(column.distinct)
        )));
    }
    let known =
        |label: &String| match all.contains(&label.as_str()) || !making.is_seen_whole() || all.is_empty() {
            true => Ok(label.clone()),
            false => Err(Error::input(format!(
                "no row of \"{arm}\" is \"{label}\"; there are {}",
                all.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")
            ))),
        };
    let said = [args.test.as_ref(), args.control.as_ref()];
    let mut left: Vec<&str> = all.clone();
    left.retain(|value| !args.leave_out.iter().chain(said.into_iter().flatten()).any(|said| said == value));
    let choose = |flag: &str, left: &[&str], which: &str| match left {
        [] => Err(Error::input(format!("no label of \"{arm}\" is left for those who were {which}: {flag}"))),
        [only] => Ok((*only).to_owned()),
        _ => {
            let answers: Vec<String> = left.iter().map(|label| (*label).to_owned()).collect();
            let question = format!("Which label of \"{arm}\" is of those who were {which}?");
            making.how.choose(flag, &question, &answers, None).map(|at| answers[at].clone())
        }
    };
    let control = match (said[1], guess::control(&left)) {
        (Some(said), _) => known(said)?,
        (None, Some(guessed)) => guessed.to_owned(),
        (None, None) => choose("--control LABEL", &left, "not treated")?,
    };
    left.retain(|value| *value != control);
    let test = match said[0] {
        Some(said) => known(said)?,
        None => choose("--test LABEL", &left, "treated")?,
    };
    if test == control {
        return Err(Error::input(format!("\"{test}\" cannot be the label of both arms")));
    }
    for (label, flag, said) in [(&control, "--control", said[1]), (&test, "--test", said[0])] {
        if let Some((_, rows)) = guess::rare(column).find(|(rare, _)| rare == label && said.is_none()) {
            return Err(Error::input(format!(
                "{} of \"{arm}\" with \"{label}\": a label that fewer than {} rows have is told to the \
                 other party only if it is said: {flag} \"{label}\", or another column by --arm",
                counted(*rows, "row"),
                guess::LABEL_ROWS
            )));
        }
    }
    args.leave_out.iter().try_for_each(|label| known(label).map(|_| ()))?;
    let others = others(making, column, [&test, &control], &args.leave_out)?;
    Ok(ArmLabels { test, control, others })
}

/// Whether so few rows have a label, beside those that are compared, that it may be a slip of the pen.
fn is_slight(rows: u64, column: &ColumnSurvey, compared: [&String; 2]) -> bool {
    let of = column.values.iter().filter(|(label, _)| compared.contains(&label)).map(|(_, rows)| *rows);
    rows < guess::LABEL_ROWS || of.min().is_some_and(|least| rows * SLIGHT < least)
}

/// Asks whether a label of few rows is another arm; where nobody is asked, one of very few is none.
fn is_arm(
    making: &Making<'_>,
    column: &ColumnSurvey,
    (label, rows): (&str, u64),
    compared: [&String; 2],
) -> Result<bool, Error> {
    if !is_slight(rows, column, compared) {
        return Ok(true);
    }
    let name = &column.name;
    let known: Vec<&str> = column.values.iter().map(|(known, _)| known.as_str()).collect();
    let others: Vec<&str> = known.into_iter().filter(|known| *known != label).collect();
    let near = nearest(label, &others).map_or(String::new(), |near| format!(", as \"{near}\" is spelt"));
    let rows_told = counted(rows, "row");
    let question = format!(
        "\"{label}\" of \"{name}\" stands in {rows_told} alone. Is it an arm? (Left out, its label is told \
         to the other party.)"
    );
    let answers =
        [format!("a mistake: stop, to correct the file{near}"), "an arm, which is left out".to_owned()];
    match making.how {
        Answering::Asked => Ok(making.how.choose("--leave-out LABEL", &question, &answers, Some(0))? == 1),
        _ if rows < guess::LABEL_ROWS => Ok(false),
        _ => {
            output::say(&format!(
                "note: \"{label}\" of \"{name}\" stands in {rows_told} alone, and is taken for an arm that \
                 is left out: correct the file if it is a mistake"
            ));
            Ok(true)
        }
    }
}

/// Labels of arms that are left out: those that were said, and all others that the column has. One that is
/// another but for its spelling, or that hardly any row has, is no arm by itself: nobody is left out for a
/// slip of the pen.
fn others(
    making: &Making<'_>,
    column: &ColumnSurvey,
    compared: [&String; 2],
    said: &[String],
) -> Result<Vec<String>, Error> {
    let name = &column.name;
    if let Some(both) = said.iter().find(|label| compared.contains(label)) {
        return Err(Error::input(format!("--leave-out \"{both}\" is the label of an arm that is compared")));
    }
    let mut others = said.to_vec();
    for (label, rows) in &column.values {
        if compared.contains(&label) || said.contains(label) {
            continue;
        }
        let alike = compared.iter().find(|compared| guess::same_name(compared, label));
        let what = match alike {
            Some(alike) => format!("is \"{alike}\" but for its spelling: correct the file"),
            None if !is_arm(making, column, (label, *rows), compared)? => {
                "would be told to the other party, though few rows have it: correct the file".to_owned()
            }
            None => {
                others.push(label.clone());
                continue;
            }
        };
        return Err(Error::input(format!(
            "column \"{name}\" has {} with \"{label}\", which {what}, or say by --leave-out \"{label}\" that \
             it is another arm",
            counted(*rows, "row")
        )));
    }
    Ok(others)
}

/// Reads all rows: their exact times, and whether identifiers repeat.
pub fn settle(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    study: &Study,
    own: WholeMonths,
) -> Result<WholeMonths, Error> {
    let mut lenient = study.clone();
    if making.common.duplicates.is_none() && lenient.matching.duplicates == study::Duplicates::Error {
        lenient.matching.duplicates = study::Duplicates::First;
    }
    let (rows, report) = read(making, &lenient, TrialSide::Publisher)?;
    let (mut people, mut days) = ([0u64; 2], DayCounts::default());
    let clock = &super::lift(study).clock;
    rows.each_block(|_, rows| {
        let Rows::Publisher(rows) = rows else { return Ok(()) };
        rows.arm.iter().for_each(|arm| people[usize::from(*arm == TrialArm::Test)] += 1);
        rows.opportunity.iter().for_each(|time| days.add(clock, *time));
        Ok(())
    })?;
    if report.duplicates_dropped > 0 && lenient.matching.duplicates != study.matching.duplicates {
        repeated(making, draft, &count(report.duplicates_dropped))?;
    }
    let publisher = &super::lift(study).publisher;
    let [control, test] = people;
    if let Some(label) =
        [(control, &publisher.control), (test, &publisher.test)].iter().find(|arm| arm.0 == 0)
    {
        return Err(Error::input(format!(
            "nobody with \"{}\" in column \"{}\" has a time in column \"{}\": an opportunity is when a \
             person could first be treated, in both arms, or the arms cannot be compared; fill the cells \
             (with the day on which the trial began, say), or name another column by --opportunity",
            label.1, publisher.arm, publisher.opportunity
        )));
    }
    making.because(
        "minimum_group",
        count(LEAST),
        format!("test {} people, control {}", count(test), count(control)),
    );
    let smallest = control.min(test);
    if smallest < LEAST {
        output::say(&format!(
            "note: an arm has {} people. Fewer than {} are not shown: a run is refused unless --spend-anyway \
             is said.",
            count(smallest),
            count(LEAST)
        ));
    }
    refuse_small(&lenient, TrialSide::Publisher, &rows)?;
    offer(making, &lenient, TrialSide::Publisher, &rows)?;
    note_thin_ends(making, &days);
    // Times of rows that are dropped have to be within the study's as well; those of other arms need not.
    let exact = days.period(&own).unwrap_or(own);
    Ok(if report.duplicates_dropped > 0 { own.with(exact) } else { exact })
}

/// Asks what identifiers that repeat are.
fn repeated(making: &mut Making<'_>, draft: &mut StudyDraft, rows: &str) -> Result<(), Error> {
    let question = format!(
        "{rows} rows have the identifier of an earlier row. What about them? (first: the first row of each \
         counts; error: they are refused)"
    );
    let answers = ["first", "error"].map(str::to_owned);
    let rule = &answers[making.how.choose("--duplicates RULE", &question, &answers, Some(0))?];
    making.because("duplicates", rule, format!("{rows} rows have the identifier of an earlier row"));
    if rule == "first" {
        making.tell("that identifiers may repeat (duplicates)".to_owned());
        duplicates(draft, rule);
    }
    Ok(())
}

/// Puts another rule into the section `[match]`.
pub fn duplicates(draft: &mut StudyDraft, rule: &str) {
    let text = draft.get("match").unwrap_or_default();
    let line = |line: &str| match line.starts_with("duplicates ") {
        true => format!("duplicates  = \"{rule}\"\n"),
        false => format!("{line}\n"),
    };
    draft.set("match", text.lines().map(line).collect());
}
