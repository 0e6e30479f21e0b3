//! A lift study of what a person fills in: the text of `docs/studies/lift.md`, which the study's own reader
//! then judges.

use release::rational::{Rational, decimal, shown};
use std::fmt::Write;
use study::time::{CellTime, Unit};

/// One of the two organisations of a lift study.
#[derive(Clone, Copy, Debug)]
pub struct FormParty<'a> {
    /// Its name in the study.
    pub name: &'a str,
    /// Its key.
    pub key: &'a str,
}

/// How identifiers are made alike: what is sent, what people read, what the study says.
pub const ALIKE: [(&str, &str, &str); 4] = [
    ("plain", "trimmed, in lower case", r#"["trim", "lowercase"]"#),
    ("digits", "digits alone, as of telephone numbers", r#"["digits"]"#),
    ("email", "as e-mail addresses", r#"["email"]"#),
    ("exact", "as they are written", "[]"),
];

/// Reads a form: each field by its name, and what is wrong with it in a sentence.
struct FormReader<'a> {
    field: &'a dyn Fn(&str) -> &'a str,
    wrong: Vec<String>,
}

impl<'a> FormReader<'a> {
    fn text(&mut self, name: &str, label: &str) -> String {
        let value = (self.field)(name).trim();
        if value.is_empty() {
            self.wrong.push(format!("{label}: this has to be filled in."));
        }
        quoted(value)
    }

    fn may(&self, name: &str) -> Option<String> {
        Some((self.field)(name).trim()).filter(|value| !value.is_empty()).map(quoted)
    }

    fn number(&mut self, name: &str, label: &str) -> u32 {
        let value = (self.field)(name).trim();
        value.parse().unwrap_or_else(|_| {
            self.wrong.push(format!("{label}: write a whole number, such as 1."));
            1
        })
    }

    fn rho(&mut self, name: &str, label: &str) -> Option<Rational> {
        let value = (self.field)(name).trim();
        if value.is_empty() {
            return None;
        }
        let rho = decimal(value).filter(|rho| *rho > Rational::default());
        if rho.is_none() {
            self.wrong.push(format!("{label}: write a decimal number above 0, such as 0.1."));
        }
        rho
    }

    /// Days since 1970.
    fn day(&mut self, name: &str, label: &str) -> i64 {
        match CellTime::read((self.field)(name).trim()) {
            Some(CellTime::Day(day)) => day,
            _ => {
                self.wrong.push(format!("{label}: write a day, such as 2026-01-31."));
                0
            }
        }
    }
}

/// The text of a study.
///
/// # Errors
/// What is wrong, field by field. What fields say together is judged by whoever reads the text.
pub fn study_text<'a>(
    field: &'a dyn Fn(&str) -> &'a str,
    us: FormParty<'_>,
    them: FormParty<'_>,
) -> Result<String, Vec<String>> {
    let mut form = FormReader { field, wrong: Vec::new() };
    let mut text = String::from("format = \"tacit-study/1\"\nkind = \"lift\"\n");
    let name = form.text("name", "Name");
    let title = form.text("title", "Title");
    let (ours, theirs) = match field("role") {
        "advertiser" => ("advertiser", "publisher"),
        _ => ("publisher", "advertiser"),
    };
    let _ = write!(text, "name = {name}\ntitle = {title}\n");
    for (party, role) in [(us, ours), (them, theirs)] {
        let (name, key) = (quoted(party.name), quoted(party.key));
        let _ = write!(text, "[party.{name}]\nrole = \"{role}\"\nkey = {key}\n");
    }
    matched(&mut form, &mut text);
    treated(&mut form, &mut text);
    happened(&mut form, &mut text);
    released(&mut form, &mut text, (us.name, them.name));
    text += "[compute]\nengine = \"auto\"\n";
    if form.wrong.is_empty() { Ok(text) } else { Err(form.wrong) }
}

fn matched(form: &mut FormReader<'_>, text: &mut String) {
    let identifier = form.text("identifier", "Matched by");
    let chosen = (form.field)("alike");
    let alike = ALIKE.iter().find(|(name, ..)| *name == chosen).unwrap_or(&ALIKE[0]).2;
    let _ = write!(
        text,
        "[match]\nprotocol = \"pid\"\nidentifiers = [{{ name = {identifier}, normalise = {alike} }}]\n\
         duplicates = \"error\"\n[privacy]\nunit = \"person\"\n"
    );
}

fn treated(form: &mut FormReader<'_>, text: &mut String) {
    let (from, until) = (form.day("from", "First day"), form.day("until", "Last day"));
    let unit = Unit::NAMES.iter().find(|(name, _)| *name == (form.field)("clock"));
    let unit = unit.map_or(Unit::Day, |(_, unit)| *unit);
    let span = (until - from + i64::from(unit != Unit::Day)).saturating_mul(86_400) / unit.seconds();
    if span <= 0 {
        form.wrong.push("Last day: it has to come after the first one.".to_owned());
    }
    let origin = study::time::date_of_days(from);
    let _ = write!(text, "[time]\norigin = {origin}\nunit = \"{}\"\nspan = {span}\n", unit.name());
    let arm = form.text("arm", "Column of the arm");
    let (test, control) = (form.text("test", "Treated are"), form.text("control", "Compared with"));
    let opportunity = form.text("opportunity", "Column of the day of treatment");
    let _ = write!(
        text,
        "[publisher]\narm = {{ column = {arm}, test = {test}, control = {control} }}\n\
         opportunity = {{ column = {opportunity}, type = \"time\" }}\n"
    );
}

fn happened(form: &mut FormReader<'_>, text: &mut String) {
    let event = form.text("event", "Column of the day of the outcome");
    let _ =
        write!(text, "[advertiser]\nlayout = \"events\"\nevent = {{ column = {event}, type = \"time\" }}\n");
    *text += &match form.may("amount") {
        None => "value = { constant = 1 }\n".to_owned(),
        Some(column) => {
            let unit = form.may("currency").map_or_else(String::new, |unit| format!(", unit = {unit}"));
            format!("value = {{ column = {column}, type = \"u32\"{unit} }}\n")
        }
    };
    if let Some(column) = form.may("where") {
        let equals = form.text("equals", "Only where the column says");
        let _ = writeln!(text, "where = {{ column = {column}, equals = [{equals}] }}");
    }
    let most = form.number("events", "Outcomes of one person, at most");
    let clamp = form.number("clamp", "One person counts at most");
    let _ = write!(
        text,
        "max_events = {most}\noverflow = \"keep-earliest\"\n[lift]\ncounts_after = \"opportunity\"\nclamp = \
         {clamp}\n"
    );
    if form.may("within").is_some() {
        let within = form.number("within", "Within");
        let _ = writeln!(text, "within = {within}");
    }
    if (form.field)("better") == "lower" {
        *text += "lower_is_better = true\n";
    }
}

fn released(form: &mut FormReader<'_>, text: &mut String, (us, them): (&str, &str)) {
    let least = form.number("least", "Smallest group that is shown");
    let _ = write!(
        text,
        "[release]\nmode = \"sums\"\nconfidence = 0.95\nnoise = \"inside\"\nminimum_group = {least}\n"
    );
    let public = form.rho("rho", "Rho of the public result");
    let own = [("rho-them", "Rho of what they alone see", them), ("rho-us", "Rho of what you alone see", us)];
    let own = own.map(|(name, label, party)| (party, form.rho(name, label)));
    if public.is_none() && own.iter().all(|(_, rho)| rho.is_none()) {
        form.wrong.push("Rho of the public result: without any rho nothing is shown to anybody.".to_owned());
    }
    if let Some(rho) = public {
        let _ = write!(text, "[release.public]\nrho = {}\n", shown(&rho));
    }
    for (party, rho) in own.iter().filter_map(|(party, rho)| Some((party, rho.as_ref()?))) {
        let _ = write!(text, "[release.to.{}]\nrho = {}\n", quoted(party), shown(rho));
    }
}

/// Text in quotes, as TOML has it: all that JSON escapes TOML escapes alike, and one character more.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const US: FormParty<'_> = FormParty { name: "registry", key: "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11" };
    const THEM: FormParty<'_> =
        FormParty { name: "hospitals", key: "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50" };

    fn polio() -> BTreeMap<&'static str, &'static str> {
        BTreeMap::from([
            ("name", "polio-1954"),
            ("title", "1954 poliomyelitis field trial, placebo-control areas"),
            ("role", "publisher"),
            ("identifier", "child_id"),
            ("alike", "plain"),
            ("from", "1954-01-01"),
            ("until", "1955-01-01"),
            ("clock", "day"),
            ("arm", "arm"),
            ("test", "vaccine"),
            ("control", "placebo"),
            ("opportunity", "injected"),
            ("event", "onset"),
            ("where", "severity"),
            ("equals", "paralytic"),
            ("events", "4"),
            ("clamp", "1"),
            ("better", "lower"),
            ("least", "1000"),
            ("rho", "0.1"),
        ])
    }

    fn made(fields: &BTreeMap<&'static str, &'static str>) -> Result<String, Vec<String>> {
        study_text(&|name| fields.get(name).copied().unwrap_or(""), US, THEM)
    }

    /// What the form makes is what the example says, but for what changes neither rows nor result.
    #[test]
    fn the_form_makes_the_study_of_the_example() {
        let text = made(&polio()).expect("a study");
        let made = study::StudyFile::parse("made", &text).expect("it reads");
        let example = include_str!("../../../examples/lift.toml");
        let example = example
            .replace("shards  = 2", "")
            .replace("[compute]", "[privacy]\nunit = \"person\"\n[compute]");
        let example = study::StudyFile::parse("example", &example).expect("it reads");
        assert_eq!(made.hash(), example.hash(), "{text}");
    }

    #[test]
    fn what_is_wrong_is_said_by_the_labels_that_people_read() {
        let mut fields = polio();
        fields.extend([("until", "1953-01-01"), ("clamp", "x"), ("arm", " "), ("rho", "-1")]);
        let wrong = made(&fields).expect_err("wrong").join("\n");
        for said in ["Last day", "One person counts at most", "Column of the arm", "Rho of the public result"]
        {
            assert!(wrong.contains(said), "{said}: {wrong}");
        }
    }

    #[test]
    fn what_people_write_stays_within_its_quotes() {
        let mut fields = polio();
        fields.insert("title", "a\" # b\n[party.x]");
        let text = made(&fields).expect("text");
        let error = study::StudyFile::parse("made", &text).map(|file| file.first().title.clone());
        assert!(error.is_err() || error.is_ok_and(|title| title == "a\" # b\n[party.x]"), "{text}");
    }
}
