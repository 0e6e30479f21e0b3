//! The fields of the form for a study, in the order of the questions that people have.

use super::FilledForm;
use crate::lift_form::ALIKE;
use crate::roles::{Action, Subject};
use crate::web::visit::Visit;
use page::form::{FormField, choice, hidden, lines_field};
use page::markup::{Markup, element, text, words};

fn group(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("fieldset", &[], [words("legend", "", title)].into_iter().chain(parts))
}

/// A field of one line with what is in it.
fn line(filled: &FilledForm, name: &'static str, label: &str, help: &str) -> Markup {
    FormField { name, label, kind: "text", fill: "off", value: filled.get(name), help }.markup()
}

/// The same, where it may stay empty.
fn perhaps(filled: &FilledForm, name: &'static str, label: &str, help: &str) -> Markup {
    FormField { name, label, kind: "text", fill: "off", value: filled.get(name), help }.optional()
}

fn day<'a>(filled: &'a FilledForm, name: &'a str, label: &'a str, help: &'a str) -> FormField<'a> {
    FormField { name, label, kind: "date", fill: "off", value: filled.get(name), help }
}

fn among(filled: &FilledForm, name: &str, label: &str, all: &[(&str, &str)]) -> Markup {
    let all: Vec<_> = all.iter().map(|(value, shown)| ((*value).to_owned(), (*shown).to_owned())).collect();
    choice(name, label, &all, filled.get(name))
}

/// A study file as it is.
pub fn of_file(filled: &FilledForm) -> Vec<Markup> {
    let help =
        "As docs/studies says: a lift, a program or a match. Keys are those that `tacit keygen` printed.";
    let area = lines_field("text", "Study file", (filled.get("text"), 24), help);
    // Needs the script: without it a browser would send the name of a file and not what is in it.
    let label = element("label", &[("for", "file")], [text("Or take it from a file")]);
    let input = [("id", "file"), ("type", "file"), ("accept", ".toml,text/plain"), ("data-into", "text")];
    let upload = [("class", "field"), ("hidden", ""), ("data-script", "")];
    let upload = element("div", &upload, [label, element("input", &input, [])]);
    vec![hidden("as", "file"), group("The study", [area, upload])]
}

/// A lift study.
pub fn of_lift(visit: &Visit<'_>, filled: &FilledForm) -> Vec<Markup> {
    let peers = visit.settings().peers.keys();
    let peers: Vec<_> = peers.map(|name| (name.clone(), name.clone())).collect();
    let roles =
        [("publisher", "who was treated, and when"), ("advertiser", "what happened to people afterwards")];
    let who = [
        line(
            filled,
            "title",
            "Title",
            "What people read first: on lists, on the consent page, on the report.",
        ),
        line(filled, "name", "Name", "Of a-z, 0-9 and hyphens: polio-1954."),
        choice("peer", "With", &peers, filled.get("peer")),
        among(filled, "role", "This organisation knows", &roles),
    ];
    let alike = ALIKE.map(|(name, shown, _)| (name, shown));
    let same = "A column that both have under this name; neither sees which rows the other one has.";
    let matched = [
        line(filled, "identifier", "Matched by the column", same),
        among(filled, "alike", "Made alike", &alike),
    ];
    let ours = columns(visit);
    let ours = (!ours.is_empty()).then(|| {
        let said = format!("Columns of this organisation that studies may read: {}.", ours.join(", "));
        element("p", &[("class", "note")], [element("bdi", &[], [text(said)])])
    });
    vec![
        hidden("as", "lift"),
        group("Who", who),
        group("Which rows belong together", ours.into_iter().chain(matched)),
        treated(filled),
        happened(filled),
        released(filled),
    ]
}

fn treated(filled: &FilledForm) -> Markup {
    let clocks = [("day", "days"), ("hour", "hours"), ("minute", "minutes"), ("second", "seconds")];
    let range = "All times of both files lie within these days. Narrower is faster.";
    group(
        "Treatment",
        [
            line(filled, "arm", "Column of the arm", ""),
            line(filled, "test", "Treated are", "What the column says of who was treated: vaccine."),
            line(filled, "control", "Compared with", "What it says of the others: placebo."),
            line(
                filled,
                "opportunity",
                "Column of the day of treatment",
                "In both arms: when it was given, or would have been.",
            ),
            day(filled, "from", "First day", range).markup(),
            day(filled, "until", "Last day", "").markup(),
            among(filled, "clock", "Times are told apart by", &clocks),
        ],
    )
}

fn happened(filled: &FilledForm) -> Markup {
    let better = [("higher", "more is better"), ("lower", "less is better: illness, returns")];
    let clamp = "Whoever has more counts as this much. Less of it: less noise.";
    let main = [
        line(
            filled,
            "event",
            "Column of the day of the outcome",
            "An outcome counts when it comes after the treatment.",
        ),
        line(filled, "clamp", "One person counts at most", clamp),
        among(filled, "better", "In the report", &better),
    ];
    let rare = [
        perhaps(filled, "where", "Only lines whose column", "Empty: all lines are outcomes."),
        perhaps(filled, "equals", "says", ""),
        perhaps(filled, "amount", "Column of an amount", "Empty: outcomes are counted."),
        perhaps(filled, "currency", "Unit of the amount", "EUR, days."),
        line(filled, "events", "Outcomes of one person, at most", "The earliest are kept."),
        perhaps(
            filled,
            "within",
            "Within",
            "So many days (or what times are told apart by) after the treatment; empty: at any time.",
        ),
    ];
    let rare = element("details", &[], [words("summary", "", "More about outcomes")].into_iter().chain(rare));
    group("Outcome", main.into_iter().chain([rare]))
}

fn released(filled: &FilledForm) -> Markup {
    let rho = "What the result may tell about people: more of it, less noise. It is taken from both budgets.";
    let own = "Beside the public result, or instead of it; not to be passed on.";
    let least = "Of smaller groups nothing is shown.";
    let rare = [
        perhaps(filled, "rho-them", "Rho of what they alone see", own),
        perhaps(filled, "rho-us", "Rho of what you alone see", own),
        line(filled, "least", "Smallest group that is shown", least),
        perhaps(
            filled,
            "rows-us",
            "Your rows, about",
            "For the smallest effect and the time in the preview; not part of the study.",
        ),
        perhaps(filled, "rows-them", "Their rows, about", ""),
    ];
    let rare = element("details", &[], [words("summary", "", "More about privacy")].into_iter().chain(rare));
    group("Privacy", [perhaps(filled, "rho", "Rho of the public result", rho), rare])
}

/// What is asked for besides the study.
pub fn besides(filled: &FilledForm) -> Markup {
    let note = lines_field(
        "note",
        "Note to the others",
        (filled.get("note"), 4),
        "Why you ask: at most 2,000 characters.",
    );
    let days = line(filled, "days", "Days to decide", "After them the proposal is over: 1 to 90.");
    let rare = [
        day(filled, "run-from", "Runs from", "Empty: at any time.").optional(),
        day(filled, "run-until", "Runs until", "").optional(),
    ];
    let rare = element("details", &[], [words("summary", "", "When it should run")].into_iter().chain(rare));
    group("The proposal", [note, days, rare])
}

/// Columns that studies may read, of data sets whose columns this person sees.
fn columns(visit: &Visit<'_>) -> Vec<String> {
    let sets = visit.settings().data.iter();
    let seen = sets.filter(|(name, _)| visit.may(Action::SeeColumns, Subject::Data(name)));
    let mut all: Vec<String> = seen.flat_map(|(_, set)| set.columns.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}
