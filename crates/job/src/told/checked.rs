//! What `tacit check` prints for people: whether this side is ready, what the study could see and what would
//! be left of the budget; then what is shown to whom, and what it costs. What the numbers rest on comes last.

use super as told;
use crate::check::{CheckReport, placeholders};
use crate::prepare::Built;
use page::lines::{Fact, wrapped};
use report::wording;
use study::{Question, Study, StudyFile};

/// What a check found, in lines of so many columns. `guessed` says that the other side's rows are a guess,
/// `serves` that this side is a server.
#[must_use]
pub fn text(
    checked: &CheckReport,
    (agreed, built): (&StudyFile, &[Built]),
    file: &str,
    (serves, guessed): (bool, bool),
    columns: usize,
) -> String {
    let study = agreed.first();
    let wrap = |facts: Vec<Fact>| facts.iter().flat_map(|fact| fact.lines(columns)).collect::<Vec<_>>();
    let mut lines = wrapped(&next(checked, agreed, file, (serves, guessed)), columns, "", "  ");
    lines.push(String::new());
    lines.extend(wrap(before(checked, agreed)));
    if let Some(inputs) = &checked.inputs {
        lines.push("data       read and valid:".to_owned());
        lines.extend(wording::input_lines(inputs, columns));
    }
    lines.push(String::new());
    let mut facts = told::revealed(checked, built, study, &|_| true);
    facts.extend(told::meanings(built));
    facts.extend(checked.rows.iter().map(|rows| Fact::new("rows", rows)));
    facts.extend(checked.besides.iter().map(|besides| Fact::new("besides", besides)));
    facts.extend(told::servers(study));
    facts.extend(told::runs(checked, agreed));
    facts.extend(told::charges(&checked.plan, &|_| true));
    facts.extend(told::noise_from(checked, study));
    lines.extend(wrap(facts));
    lines.extend(told::noise_lines(&checked.plan, columns));
    lines.push(String::new());
    lines.extend(told::cost(&checked.plan, study, columns));
    let mut facts = told::tells(&checked.plan);
    facts.push(Fact::new("program", &checked.study.program));
    facts.extend(told::assumed(&checked.plan));
    if guessed && study.parties.len() == 2 && checked.inputs.is_some() {
        facts.push(Fact::new("assumed", say_both(study)));
    }
    lines.extend(wrap(facts));
    lines.join("\n")
}

/// What is said before the data: which study it is, what it would detect, and what is left of the budget.
fn before(checked: &CheckReport, agreed: &StudyFile) -> Vec<Fact> {
    let study = agreed.first();
    let mut facts = vec![
        Fact::new("study", format!("{}: {}", study.name, study.title)),
        Fact::new("hash", format!("{}   in full {}", agreed.hash(), checked.study.hash)),
    ];
    if checked.peer_agrees == Some(true) {
        facts.push(Fact::new("peer", "the peer's study says the same"));
    }
    facts.extend(told::left_out(study));
    facts.extend(checked.warnings.iter().map(|warning| Fact::new("warning", warning)));
    facts.extend(told::effects(&checked.plan, study));
    facts.extend(checked.budget.iter().flat_map(told::budget_facts));
    facts
}

/// What to say where the other side's rows are a guess.
fn say_both(study: &Study) -> String {
    let (what, mean) = match study.kind {
        Question::Lift(_) => ("effect, bytes", ", and the control arm's mean: --mean X"),
        _ => ("bytes", ""),
    };
    format!(
        "the other side's rows are a guess (rows, above): {what} and time are for that. State both: --rows \
         N,M with the first party's first{mean}"
    )
}

/// What to do now.
fn next(checked: &CheckReport, agreed: &StudyFile, file: &str, (serves, guessed): (bool, bool)) -> String {
    if checked.refused {
        "This side's policy refuses the study, and its data were not read: see the error".to_owned()
    } else if checked.budget.as_ref().is_some_and(|budget| !budget.refusals.is_empty()) {
        "This side is not ready: see the error".to_owned()
    } else if serves {
        format!("This server is ready: tacit serve {file}, or tacit run {file}")
    } else if checked.inputs.is_some() && checked.shows_nothing {
        match guessed {
            true => format!(
                "Not ready as far as is known: if nobody but the people of this side's file is in the trial, \
                 nothing would be released, and rho is spent all the same. If you know how many are, tacit \
                 check {file} --rows N,M says it for them (data and policy are in order)"
            ),
            false => "Not ready: nothing would be released of so few people, and rho is spent all the same \
                      (data and policy are in order)"
                .to_owned(),
        }
    } else if checked.inputs.is_some() {
        match agreed.first().only_matches() {
            true => format!("This side is ready: tacit match {file} --out FILE"),
            false => format!("This side is ready: tacit run {file}"),
        }
    } else {
        let but = if placeholders(agreed).is_some() { ", but for its keys" } else { "" };
        format!("The study is sound{but}. Check your data, too: tacit check PARTY_FILE")
    }
}
