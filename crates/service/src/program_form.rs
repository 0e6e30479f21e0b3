//! A program that asks, of what a person fills in: the lines of `docs/questions.md`, which the study's own
//! reader then judges.

mod again;
mod ask;

use crate::lift_form::{FormParty, FormReader, RHO, listed, matched, quoted};
use page::form::FormMistake;
use program::asking::{column_line, column_name, first_lines, label_cells, number_type};
use release::rational::{Rational, decimal, ratio, shown};
use std::fmt::Write;

pub use again::program_fields_again;
pub use ask::{ASKED, GROUPED, GROUPS};

/// Columns that a form has room for.
pub const COLUMNS: usize = 8;
/// Questions that it has room for.
pub const QUESTIONS: usize = 8;

/// What a column's cells are: what is sent, and what people read.
pub const CELLS: [(&str, &str); 4] = [
    ("bit", "yes or no, 1 or 0"),
    ("label", "one of a few labels"),
    ("whole", "a whole number"),
    ("amount", "an amount with two decimals"),
];

/// What a column holds.
enum CellsFilled {
    Bit,
    Labels,
    /// Numbers between two ends, in so many parts of one.
    Numbers {
        ends: [Rational; 2],
        written: [String; 2],
        parts: u32,
    },
}

/// A column that was filled in.
struct FormColumn<'a> {
    /// What the program calls it.
    name: String,
    /// What its owner's file calls it.
    file: &'a str,
    party: &'a str,
    /// `column NAME TYPE PARTY ..`
    line: String,
    holds: CellsFilled,
}

/// The text of a study.
///
/// # Errors
/// What is wrong, field by field. What fields say together is judged by whoever reads the text.
pub fn program_text<'a>(
    field: &'a dyn Fn(&str) -> &'a str,
    us: FormParty<'a>,
    them: FormParty<'a>,
) -> Result<String, Vec<FormMistake>> {
    let mut form = FormReader::new(field);
    let mut text = String::from("format = \"tacit-study/1\"\nkind = \"program\"\n");
    let (name, title) = (form.text("name", "Name"), form.text("title", "Title"));
    let _ = write!(text, "name = {name}\ntitle = {title}\n");
    for FormParty { name, key } in [us, them] {
        let _ = write!(text, "[party.{}]\nkey = {}\n", quoted(name), quoted(key));
    }
    matched(&mut form, &mut text);
    let columns = columns(&mut form, us.name, them.name);
    let rho = form.rho("rho", RHO);
    let asked = ask::lines(&mut form, &columns);
    if rho.is_none() && !form.wrong.iter().any(|one| one.field == "rho") {
        form.say("rho", RHO, "without any rho nothing is shown to anybody.");
    }
    let rho = rho.unwrap_or_default();
    text += "[columns]\n";
    for FormColumn { name, file, party, .. } in &columns {
        let _ = writeln!(text, "{name} = {{ party = {}, column = {} }}", quoted(party), quoted(file));
    }
    let mut lines = first_lines(form.plain("title"), &[us.name, them.name].map(str::to_owned));
    lines.extend(columns.into_iter().map(|column| column.line));
    lines.push(format!("ask public rho {}", shown(&rho)));
    lines.extend(asked);
    let program = quoted(&format!("{}\n", lines.join("\n")));
    let _ = write!(text, "[program]\ntext = {program}\n[release.public]\nrho = {}\n", shown(&rho));
    text += "[compute]\nengine = \"auto\"\n";
    form.done(text)
}

fn columns<'a>(form: &mut FormReader<'a>, us: &'a str, them: &'a str) -> Vec<FormColumn<'a>> {
    let mut all: Vec<FormColumn<'a>> = Vec::new();
    for place in 1..=COLUMNS {
        let of = |what: &str| format!("{what}-{place}");
        let file = form.plain(&of("col"));
        if file.is_empty() {
            continue;
        }
        let party = if form.plain(&of("whose")) == "them" { them } else { us };
        if all.iter().any(|column| (column.file, column.party) == (file, party)) {
            form.say(&of("col"), &column_label(place), "this column stands above already.");
        }
        let mut name = column_name(file);
        let alike = |other: &usize| column_name(form.plain(&format!("col-{other}"))) == name;
        if (1..=COLUMNS).filter(alike).count() > 1 {
            name = format!("{name}-{place}");
        }
        let (cells, holds) = match form.plain(&of("is")) {
            "label" => (labels(form, place), CellsFilled::Labels),
            "whole" => numbers(form, place, 1),
            "amount" => numbers(form, place, 100),
            _ => ("bit".to_owned(), CellsFilled::Bit),
        };
        let line = column_line(&name, party, &format!("{cells} missing"));
        all.push(FormColumn { name, file, party, line, holds });
    }
    if all.is_empty() {
        form.say("col-1", &column_label(1), "name a column.");
    }
    all
}

fn column_label(place: usize) -> String {
    format!("Column {place}")
}

/// A column of labels, of which the others are compared with the first.
fn labels(form: &mut FormReader<'_>, place: usize) -> String {
    let name = format!("values-{place}");
    let values = listed(form.plain(&name));
    if values.len() < 2 {
        let said = "write two labels or more, with commas between: none, low, high.";
        form.say(&name, &format!("{}, labels", column_label(place)), said);
    }
    label_cells(&values)
}

/// A number that may be below zero, of nine digits at most.
fn signed(text: &str) -> Option<Rational> {
    match text.strip_prefix('-') {
        Some(rest) => decimal(rest).map(|value| -value),
        None => decimal(text),
    }
}

/// A number as a program has it.
fn written(value: &Rational) -> String {
    match *value < Rational::default() {
        true => format!("-{}", shown(&-value.clone())),
        false => shown(value),
    }
}

/// A column of numbers in so many parts of one, and where they lie.
fn numbers(form: &mut FormReader<'_>, place: usize, parts: u32) -> (String, CellsFilled) {
    let label = column_label(place);
    let [low, high] = [("low", "from"), ("high", "to")].map(|(what, said)| {
        let name = format!("{what}-{place}");
        signed(form.plain(&name)).unwrap_or_else(|| {
            let why = "write between which two numbers it lies, such as 0 and 500, of nine digits at most.";
            form.say(&name, &format!("{label}, {said}"), why);
            Rational::default()
        })
    });
    if low >= high && form.wrong.iter().all(|one| !one.label.starts_with(&label)) {
        let name = format!("high-{place}");
        form.say(&name, &format!("{label}, to"), "the first number has to be below the second one.");
    }
    // Twice the bounds: what lies beyond them has a place in the type, too.
    let zero = Rational::default();
    let most = |value: &Rational| {
        let value = if *value < zero { -value.clone() } else { value.clone() };
        u64::try_from((value * ratio(2 * parts, 1)).ceil().to_integer()).unwrap_or(u64::MAX)
    };
    // Nine digits in hundredths, doubled, have 38 bits.
    let kind = number_type(most(&low).max(most(&high)), low < zero).unwrap_or_default();
    let scale = if parts > 1 { format!(" scale {parts}") } else { String::new() };
    let unit = form.plain(&format!("unit-{place}"));
    let unit = if unit.is_empty() { String::new() } else { format!(" unit {}", quoted(unit)) };
    let written = [written(&low), written(&high)];
    (kind + &scale + &unit, CellsFilled::Numbers { ends: [low, high], written, parts })
}

#[cfg(test)]
mod tests;
