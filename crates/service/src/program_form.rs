//! A program that asks for counts, means and shares, of what a person fills in: the text of
//! `docs/questions.md`, which the study's own reader then judges.

use crate::lift_form::{FormParty, FormReader, listed, matched, quoted};
use release::rational::{Rational, decimal, ratio, shown};
use std::fmt::Write;

/// Columns that a form has room for.
pub const COLUMNS: usize = 6;

/// What a column's cells are: what is sent, and what people read.
pub const CELLS: [(&str, &str); 4] = [
    ("bit", "yes or no, 1 or 0"),
    ("label", "one of a few labels"),
    ("whole", "a whole number"),
    ("amount", "an amount with two decimals"),
];

/// What is asked of a column: what is sent, what people read, the words of the program.
pub const ASKED: [(&str, &str, &str); 6] = [
    ("none", "nothing but the groups", ""),
    ("mean", "the mean of numbers", "mean"),
    ("compare", "the mean, and its difference between groups", "mean difference"),
    ("sum", "the sum of numbers", "sum"),
    ("share", "the share of yes", "share"),
    ("risk", "the share of yes, its difference and ratio between groups", "share risk-difference risk-ratio"),
];

/// A column that was filled in.
struct FormColumn<'a> {
    /// What the program calls it.
    name: String,
    /// What its owner's file calls it.
    file: &'a str,
    party: &'a str,
    /// Its type and what its cells are, with the holder's place between.
    cells: [String; 2],
    /// Where its numbers lie; of what has none, nothing.
    bounds: Option<[String; 2]>,
    asked: &'static str,
}

/// The text of a study.
///
/// # Errors
/// What is wrong, field by field. What fields say together is judged by whoever reads the text.
pub fn program_text<'a>(
    field: &'a dyn Fn(&str) -> &'a str,
    us: FormParty<'a>,
    them: FormParty<'a>,
) -> Result<String, Vec<String>> {
    let mut form = FormReader::new(field);
    let mut text = String::from("format = \"tacit-study/1\"\nkind = \"program\"\n");
    let (name, title) = (form.text("name", "Name"), form.text("title", "Title"));
    let _ = write!(text, "name = {name}\ntitle = {title}\n");
    for FormParty { name, key } in [us, them] {
        let _ = write!(text, "[party.{}]\nkey = {}\n", quoted(name), quoted(key));
    }
    matched(&mut form, &mut text);
    let columns = columns(&mut form, us.name, them.name);
    let rho = form.rho("rho", "Rho of the public result").unwrap_or_default();
    let by = group(&mut form, &columns);
    if form.wrong.is_empty() && rho == Rational::default() {
        form.wrong.push("Rho of the public result: without any rho nothing is shown to anybody.".to_owned());
    }
    text += "[columns]\n";
    for FormColumn { name, file, party, .. } in &columns {
        let _ = writeln!(text, "{name} = {{ party = {}, column = {} }}", quoted(party), quoted(file));
    }
    let program = program(field("title"), [us.name, them.name], &columns, by, &rho);
    let _ = write!(text, "[program]\ntext = {}\n[release.public]\nrho = {}\n", quoted(&program), shown(&rho));
    text += "[compute]\nengine = \"auto\"\n";
    if form.wrong.is_empty() { Ok(text) } else { Err(form.wrong) }
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
        let name = column_name(file, place);
        let asked = form.plain(&of("ask"));
        let asked = ASKED.iter().find(|(known, ..)| *known == asked).unwrap_or(&ASKED[0]).2;
        let label = format!("Column {place}");
        let (cells, bounds) = match form.plain(&of("is")) {
            "label" => (labels(form, &of("values"), &label), None),
            "whole" => numbers(form, place, &label, 1),
            "amount" => numbers(form, place, &label, 100),
            _ => (["bit".to_owned(), String::new()], None),
        };
        all.push(FormColumn { name, file, party, cells, bounds, asked });
    }
    if all.is_empty() {
        form.wrong.push("Column 1: name a column, and what is asked of it.".to_owned());
    }
    all
}

/// What the program calls a column: with its number no word of the language, nor the name of another one.
fn column_name(file: &str, place: usize) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let name: String = file.chars().map(plain).take(32).collect();
    let named = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if named { format!("{name}-{place}") } else { format!("column-{place}") }
}

/// A column of labels, of which the others are compared with the first.
fn labels(form: &mut FormReader<'_>, name: &str, label: &str) -> [String; 2] {
    let values = listed(form.plain(name));
    if values.len() < 2 {
        form.wrong.push(format!("{label}: write two labels or more, with commas between: none, low, high."));
    }
    let bits = (usize::BITS - values.len().leading_zeros()).max(2);
    [format!("u{bits}"), format!(" labels {}", values.join(" "))]
}

/// A column of numbers in so many parts of one, and where they lie.
fn numbers(
    form: &mut FormReader<'_>,
    place: usize,
    label: &str,
    parts: u32,
) -> ([String; 2], Option<[String; 2]>) {
    /// Bits of the types of numbers.
    const WIDTHS: [u32; 4] = [8, 16, 32, 40];
    let mut end = |name: &str| {
        let value = decimal(form.plain(&format!("{name}-{place}")).trim_start_matches('-'));
        let minus = form.plain(&format!("{name}-{place}")).starts_with('-');
        if value.is_none() {
            form.wrong.push(format!(
                "{label}: write between which two numbers it lies, such as 0 and 500, of nine digits at most."
            ));
        }
        let value = value.unwrap_or_default();
        if minus { -value } else { value }
    };
    let [low, high] = [end("low"), end("high")];
    if low >= high && form.wrong.is_empty() {
        form.wrong.push(format!("{label}: the first number has to be below the second one."));
    }
    // Twice the bounds: what lies beyond them has a place in the type, too.
    let zero = Rational::default();
    let most = |value: &Rational| {
        let value = if *value < zero { -value.clone() } else { value.clone() };
        (value * ratio(2 * parts, 1)).ceil()
    };
    let most = most(&low).max(most(&high));
    let signed = low < zero;
    // Nine digits in hundredths, doubled, have 38 bits.
    let width = WIDTHS.into_iter().find(|width| most < ratio(1u128 << (width - u32::from(signed)), 1));
    let kind = format!("{}{}", if signed { 'i' } else { 'u' }, width.unwrap_or(40));
    let scale = if parts > 1 { format!(" scale {parts}") } else { String::new() };
    let unit = form.plain(&format!("unit-{place}"));
    let unit = if unit.is_empty() { String::new() } else { format!(" unit {}", quoted(unit)) };
    let written = |value: &Rational| match *value < zero {
        true => format!("-{}", shown(&-value.clone())),
        false => shown(value),
    };
    ([kind, scale + &unit], Some([written(&low), written(&high)]))
}

/// The column by which rows are counted apart, where one is named.
fn group<'c>(form: &mut FormReader<'_>, columns: &'c [FormColumn<'_>]) -> Option<&'c str> {
    let by = form.plain("by");
    let found = columns.iter().find(|column| column.file == by && column.bounds.is_none());
    if !by.is_empty() && found.is_none() {
        form.wrong
            .push("Groups by: name one of the columns above that is of labels, or yes or no.".to_owned());
    }
    found.map(|column| column.name.as_str())
}

fn program(
    title: &str,
    parties: [&str; 2],
    columns: &[FormColumn<'_>],
    by: Option<&str>,
    rho: &Rational,
) -> String {
    // A program has no sign for a quote in its texts.
    let title = title.trim().replace(['"', '\\'], "'").replace(char::is_control, " ");
    let mut text = format!("tacit-program/2\nname \"{title}\"\n");
    let mut parties = parties;
    parties.sort_unstable();
    for party in parties {
        let _ = writeln!(text, "party {party}");
    }
    for FormColumn { name, party, cells: [kind, cells], .. } in columns {
        let _ = writeln!(text, "column {name} {kind} {party}{cells} missing");
    }
    let _ = writeln!(text, "ask public rho {}", shown(rho));
    if let Some(by) = by {
        let _ = writeln!(text, "by {by}");
    }
    text += "count\n";
    for FormColumn { name, bounds, asked, .. } in columns.iter().filter(|column| !column.asked.is_empty()) {
        // Without groups there is nothing to compare.
        let asked = if by.is_some() { asked } else { asked.split(' ').next().unwrap_or(asked) };
        let _ = match bounds {
            Some([low, high]) => writeln!(text, "{asked} of {name} between {low} {high}"),
            None => writeln!(text, "{asked} of {name}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const US: FormParty<'_> = FormParty { name: "registry", key: "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11" };
    const THEM: FormParty<'_> = FormParty { name: "trial", key: "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50" };

    fn costs() -> BTreeMap<&'static str, &'static str> {
        let text = "name=cost-by-dose;title=What it costs by \"dose\";identifier=person;alike=plain;rho=0.1;\
                    col-1=eur;whose-1=us;is-1=amount;low-1=-50;high-1=450;unit-1=EUR;ask-1=compare;\
                    col-2=ill;whose-2=us;is-2=bit;ask-2=risk;\
                    col-3=arm;whose-3=them;is-3=label;values-3=none, low, high;ask-3=none;\
                    col-4=count;whose-4=them;is-4=whole;low-4=0;high-4=20;ask-4=sum;by=arm";
        text.split(';').filter_map(|field| field.split_once('=')).collect()
    }

    fn made(fields: &BTreeMap<&'static str, &'static str>) -> Result<String, Vec<String>> {
        program_text(&|name| fields.get(name).copied().unwrap_or(""), US, THEM)
    }

    #[test]
    fn the_form_makes_a_study_that_is_read_and_priced() {
        let text = made(&costs()).expect("a study");
        let told = crate::told::tell(&text, US.key, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let words = told.words();
        assert!(words.contains("eur") && words.contains("arm"), "{words}");
        assert_eq!(told.rho["public"], "1/10");
        let source = match &told.file.first().kind {
            study::Question::Program(program) => &program.source,
            _ => panic!("a program"),
        };
        let holds = |party: &str| source.columns.iter().filter(|column| column.party == party).count();
        assert_eq!((holds("registry"), holds("trial")), (2, 2));
        // Without groups there is nothing to compare, and the study is still one.
        let mut alone = costs();
        alone.remove("by");
        let text = made(&alone).expect("a study");
        assert!(!text.contains("difference"), "{text}");
        crate::told::tell(&text, US.key, None).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }

    #[test]
    fn what_is_wrong_is_said_by_the_labels_that_people_read() {
        for (name, value, why) in [
            ("low-1", "much", "Column 1: write between which two numbers it lies"),
            ("high-1", "-60", "Column 1: the first number has to be below"),
            ("values-3", "one", "Column 3: write two labels or more"),
            ("by", "eur", "Groups by: name one of the columns above"),
            ("rho", "", "Rho of the public result"),
            ("high-4", "9000000000", "Column 4: write between which two numbers it lies"),
        ] {
            let mut fields = costs();
            fields.insert(name, value);
            let wrong = made(&fields).expect_err("wrong").join("\n");
            assert!(wrong.contains(why), "{name}: {wrong}");
        }
        let wrong = made(&BTreeMap::new()).expect_err("empty").join("\n");
        assert!(wrong.contains("Column 1: name a column"), "{wrong}");
    }
}
