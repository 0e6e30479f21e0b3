//! The publisher's half: who is in which arm, and since when.

use super::{LiftInitArgs, TrialSide, categories, period, rows};
use crate::init::draft::{StudyDraft, quoted, said};
use crate::init::guess;
use crate::init::making::Making;
use crate::init::period::WholeMonths;
use base::Error;
use data::Rows;
use data::survey::ColumnSurvey;
use page::numbers::count;
use std::collections::BTreeMap;
use study::{Study, TrialArm};

/// Least people of an arm that is shown.
const LEAST: u64 = 1000;

/// Chooses the publisher's columns. Returns the range of its times, by the sample.
pub fn publisher(
    making: &mut Making<'_>,
    draft: &mut StudyDraft,
    args: &LiftInitArgs,
) -> Result<WholeMonths, Error> {
    let arm = arm(making, args)?;
    let [test, control] = labels(making, &arm, args)?;
    making.because("arm", &arm, format!("\"{test}\" against \"{control}\""));
    making.tell(format!("the column {arm} with the labels \"{test}\" (test) and \"{control}\" (control)"));
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
            "Who was treated by chance, and who was not.",
            &format!(
                "arm         = {{ column = {}, test = {}, control = {} }}",
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

/// Columns of times but for these.
pub fn time_columns(making: &Making<'_>, but: &[&str]) -> Vec<String> {
    let is = |column: &&ColumnSurvey| guess::is_time(column) && !but.contains(&column.name.as_str());
    making.survey.columns.iter().filter(is).map(|column| column.name.clone()).collect()
}

fn arm(making: &Making<'_>, args: &LiftInitArgs) -> Result<String, Error> {
    let columns: Vec<&ColumnSurvey> =
        making.survey.columns.iter().filter(|column| guess::is_arm(column)).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut named = columns.iter().filter(|column| guess::is_named_arm(column));
    let sure = named.next().filter(|_| named.next().is_none()).map(|column| column.name.as_str());
    let question = "Which column says in which arm of the trial a person is (two values)?";
    making.pick(args.arm.as_deref(), "--arm COLUMN", question, &names, sure)
}

/// The labels of test and control.
fn labels(making: &Making<'_>, arm: &str, args: &LiftInitArgs) -> Result<[String; 2], Error> {
    if let (Some(test), Some(control)) = (&args.test, &args.control) {
        return Ok([test.clone(), control.clone()]);
    }
    let column = making.column(arm)?;
    let [(one, _), (other, _)] = &column.values[..] else {
        return Err(Error::input(format!(
            "column \"{arm}\" has {} different values, and a lift study compares two arms: say which by \
             --test LABEL and --control LABEL, and leave rows of others out of the file",
            column.distinct
        )));
    };
    let both = [one.as_str(), other.as_str()];
    let known = |label: &str| match both.contains(&label) {
        true => Ok(label.to_owned()),
        false => Err(Error::input(format!(
            "no row of \"{arm}\" is \"{label}\"; there are \"{one}\" and \"{other}\""
        ))),
    };
    let control = match (&args.test, &args.control) {
        (_, Some(control)) => known(control)?,
        (Some(test), None) if known(test)? == *one => other.clone(),
        (Some(_), None) => one.clone(),
        (None, None) => match guess::control(both) {
            Some(control) => control.to_owned(),
            None => {
                let answers = both.map(str::to_owned);
                let question = format!("Which label of \"{arm}\" is of those who were not treated?");
                answers[making.how.choose("--control LABEL", &question, &answers, None)?].clone()
            }
        },
    };
    let test = if control == *one { other.clone() } else { one.clone() };
    Ok([test, control])
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
    let (mut people, mut range) = ([0u64; 2], None::<[u32; 2]>);
    let mut cells = BTreeMap::<(u8, bool), u64>::new();
    let report = rows(making, &lenient, TrialSide::Publisher, |rows| {
        let Rows::Publisher(rows) = rows else { return };
        for (at, (arm, time)) in rows.arm.iter().zip(&rows.opportunity).enumerate() {
            let test = *arm == TrialArm::Test;
            people[usize::from(test)] += 1;
            *cells.entry((rows.breakdown.get(at).copied().unwrap_or_default(), test)).or_default() += 1;
            let [low, high] = range.unwrap_or([*time; 2]);
            range = Some([low.min(*time), high.max(*time)]);
        }
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
    let smallest = cells.values().copied().min().unwrap_or_default();
    if smallest < LEAST {
        let what = if control.min(test) < LEAST { "an arm" } else { "an arm of a value of the breakdown" };
        eprintln!(
            "note: {what} has {} people. Fewer than {} are not shown: a run is refused unless \
             --spend-anyway is said.",
            count(smallest),
            count(LEAST)
        );
    }
    Ok(range.map_or(own, |range| own.with(own.exact(&super::lift(study).clock, range))))
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
