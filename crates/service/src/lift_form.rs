//! A lift study of what a person fills in: the text of `docs/studies/lift.md`, which the study's own reader
//! then judges.

mod again;

pub use again::{FormFields, at, fields_again, first_fields, written};

use page::form::FormMistake;
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

/// Reads a form: each field by its name, and what is wrong with it.
pub struct FormReader<'a> {
    field: &'a dyn Fn(&str) -> &'a str,
    /// What is wrong.
    pub wrong: Vec<FormMistake>,
}

impl<'a> FormReader<'a> {
    /// Of fields by their names.
    pub fn new(field: &'a dyn Fn(&str) -> &'a str) -> Self {
        Self { field, wrong: Vec::new() }
    }

    /// Keeps what is wrong with a field.
    pub fn say(&mut self, name: &str, label: &str, said: impl Into<String>) {
        self.wrong.push(FormMistake::of(name, label, said));
    }

    /// The text, where nothing is wrong.
    pub fn done(self, text: String) -> Result<String, Vec<FormMistake>> {
        if self.wrong.is_empty() { Ok(text) } else { Err(self.wrong) }
    }

    /// What stands in a field, without the blanks around it.
    pub fn plain(&self, name: &str) -> &'a str {
        (self.field)(name).trim()
    }

    /// In quotes; it has to be filled in.
    pub fn text(&mut self, name: &str, label: &str) -> String {
        let value = (self.field)(name).trim();
        if value.is_empty() {
            self.say(name, label, "this has to be filled in.");
        }
        quoted(value)
    }

    fn may(&self, name: &str) -> Option<String> {
        Some((self.field)(name).trim()).filter(|value| !value.is_empty()).map(quoted)
    }

    /// Labels with commas between them, as a list.
    fn labels(&mut self, name: &str, label: &str) -> String {
        let all = listed((self.field)(name));
        if all.is_empty() {
            self.say(name, label, "write them with commas between: north, south.");
        }
        format!("[{}]", all.join(", "))
    }

    /// A column whose values part people, where one is named.
    fn categories(&mut self, name: &str, label: &str) -> Option<String> {
        let column = self.may(name)?;
        let values = self.labels(&format!("{name}-values"), label);
        Some(format!("{{ column = {column}, values = {values} }}"))
    }

    fn ticked(&self, name: &str) -> bool {
        (self.field)(name) == "yes"
    }

    fn number(&mut self, name: &str, label: &str) -> u32 {
        let value = (self.field)(name).trim();
        value.parse().unwrap_or_else(|_| {
            self.say(name, label, "write a whole number, such as 1.");
            1
        })
    }

    /// A rho, where one is said.
    pub fn rho(&mut self, name: &str, label: &str) -> Option<Rational> {
        let value = (self.field)(name).trim();
        if value.is_empty() {
            return None;
        }
        let rho = decimal(value).filter(|rho| *rho > Rational::default());
        if rho.is_none() {
            self.say(name, label, "write a decimal number above 0, such as 0.1.");
        }
        rho
    }

    /// Days since 1970.
    fn day(&mut self, name: &str, label: &str) -> i64 {
        match CellTime::read((self.field)(name).trim()) {
            Some(CellTime::Day(day)) => day,
            _ => {
                self.say(name, label, "write a day, such as 2026-01-31.");
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
) -> Result<String, Vec<FormMistake>> {
    let mut form = FormReader::new(field);
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
    form.done(text)
}

/// Fields of identifiers and of how each is made alike, with their labels; the first has to be there.
pub const IDENTIFIERS: [(&str, &str, &str, &str); 3] = [
    ("identifier", "Matched by the column", "alike", "Made alike"),
    ("identifier-2", "And by the column", "alike-2", "Made alike"),
    ("identifier-3", "And by the third column", "alike-3", "Made alike"),
];

/// The field of the budget.
pub const RHO: &str = "Rho of the public result";

/// How outcomes stand in the file: what the study calls it, and what people read.
pub const LAYOUTS: [(&str, &str); 2] = [
    ("events", "a line each, people with several have several lines"),
    ("wide", "in one line of each person, in several columns"),
];

/// Parts of one that amounts have, and what people read.
pub const PARTS: [(&str, &str); 2] = [("1", "whole numbers"), ("100", "two decimals at most, such as 12.50")];

/// Further counts: what the study calls them, and what people read.
pub const COUNTS: [(&str, &str); 6] = [
    ("converters", "people with an outcome"),
    ("conversions", "outcomes that count"),
    ("matches", "people whom both have"),
    ("clamped_users", "people above the most that one counts"),
    ("reached_conversions", "outcomes of people who were reached"),
    ("reached_value", "amounts of people who were reached"),
];

/// What is shown of both arms: what the study calls it, and what people read.
pub const MODES: [(&str, &str); 3] = [
    ("sums", "totals of each arm, with noise; sizes of the arms with noise"),
    ("variance", "the difference and its variance; exact sizes of the arms"),
    ("algorithm1", "the difference and its standard error; exact sizes of the arms"),
];

/// How sure intervals are.
pub const CONFIDENCE: [(&str, &str); 3] =
    [("0.95", "95 of 100 hold"), ("0.90", "90 of 100 hold"), ("0.99", "99 of 100 hold")];

/// Which of two lines of one identifier counts.
pub const DUPLICATES: [(&str, &str); 3] = [
    ("error", "are a mistake in the file"),
    ("first", "count as the first one"),
    ("merge", "are one row with both"),
];

/// The first name of a list that a field says, or of the list itself.
fn one_of<'l>(chosen: &str, among: &[(&'l str, &str)]) -> &'l str {
    among.iter().find(|(name, _)| *name == chosen).unwrap_or(&among[0]).0
}

/// Texts with commas between them, in quotes.
pub fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(quoted).collect()
}

/// How rows are matched, and the unit of privacy.
pub fn matched(form: &mut FormReader<'_>, text: &mut String) {
    let mut all = Vec::new();
    for (place, (name, label, alike, _)) in IDENTIFIERS.into_iter().enumerate() {
        let column = if place == 0 { Some(form.text(name, label)) } else { form.may(name) };
        let Some(column) = column else { continue };
        let chosen = (form.field)(alike);
        let alike = ALIKE.iter().find(|(name, ..)| *name == chosen).unwrap_or(&ALIKE[0]).2;
        all.push(format!("{{ name = {column}, normalise = {alike} }}"));
    }
    let duplicates = one_of((form.field)("duplicates"), &DUPLICATES);
    let _ = write!(
        text,
        "[match]\nprotocol = \"pid\"\nidentifiers = [{}]\nduplicates = \"{duplicates}\"\n[privacy]\nunit = \
         \"person\"\n",
        all.join(", ")
    );
}

fn treated(form: &mut FormReader<'_>, text: &mut String) {
    let (from, until) = (form.day("from", "First day"), form.day("until", "Last day"));
    let unit = Unit::NAMES.iter().find(|(name, _)| *name == (form.field)("clock"));
    let unit = unit.map_or(Unit::Day, |(_, unit)| *unit);
    let span = (until - from + i64::from(unit != Unit::Day)).saturating_mul(86_400) / unit.seconds();
    if span <= 0 {
        form.say("until", "Last day", "it has to come after the first one.");
    }
    let origin = study::time::date_of_days(from);
    let _ = write!(text, "[time]\norigin = {origin}\nunit = \"{}\"\nspan = {span}\n", unit.name());
    let arm = form.text("arm", "Column of the arm");
    let (test, control) = (form.text("test", "Treated are"), form.text("control", "Compared with"));
    let opportunity = form.text("opportunity", "Column of the day of treatment");
    let left = listed((form.field)("leave-out"));
    let left = (!left.is_empty()).then(|| format!(", leave_out = [{}]", left.join(", ")));
    let left = left.unwrap_or_default();
    let _ = write!(
        text,
        "[publisher]\narm = {{ column = {arm}, test = {test}, control = {control}{left} }}\n\
         opportunity = {{ column = {opportunity}, type = \"time\" }}\n"
    );
    if let Some(column) = form.may("impressions") {
        let _ = writeln!(text, "impressions = {{ column = {column}, type = \"u16\" }}");
    }
    if let Some(breakdown) = form.categories("breakdown", "Groups of the treated") {
        let _ = writeln!(text, "breakdown = {breakdown}");
    }
}

/// The fields of when something happened, and of how much.
pub const EVENT: &str = "Column of the day of the outcome";
pub const AMOUNT: &str = "Column of an amount";

/// One column, or several where outcomes stand beside each other.
fn named(form: &mut FormReader<'_>, name: &str, label: &str, layout: &str) -> String {
    if layout != "wide" {
        return format!("column = {}", form.text(name, label));
    }
    let all = listed((form.field)(name));
    if all.len() < 2 {
        form.say(name, label, "name several, with commas between: onset_1, onset_2.");
    }
    format!("columns = [{}]", all.join(", "))
}

fn happened(form: &mut FormReader<'_>, text: &mut String) {
    let layout = one_of((form.field)("layout"), &LAYOUTS);
    let event = named(form, "event", EVENT, layout);
    let _ = write!(text, "[advertiser]\nlayout = \"{layout}\"\nevent = {{ {event}, type = \"time\" }}\n");
    *text += &match form.may("amount") {
        None => "value = { constant = 1 }\n".to_owned(),
        Some(_) => {
            let column = named(form, "amount", AMOUNT, layout);
            let unit = form.may("currency").map_or_else(String::new, |unit| format!(", unit = {unit}"));
            let parts = match one_of((form.field)("parts"), &PARTS) {
                "1" => String::new(),
                parts => format!(", scale = {parts}"),
            };
            format!("value = {{ {column}, type = \"u32\"{unit}{parts} }}\n")
        }
    };
    let columns = |name: &str| listed((form.field)(name)).len();
    if layout == "wide" && form.may("amount").is_some() && columns("amount") != columns("event") {
        form.say("amount", AMOUNT, "name one for each column of a day, in the same order.");
    }
    if let Some(column) = form.may("where") {
        let equals = form.text("equals", "Only where the column says");
        let _ = writeln!(text, "where = {{ column = {column}, equals = [{equals}] }}");
    }
    let most = form.number("events", "Outcomes of one person, at most");
    let clamp = form.number("clamp", "One person counts at most");
    let _ = write!(text, "max_events = {most}\noverflow = \"keep-earliest\"\n");
    if let Some(cohort) = form.categories("cohort", "Groups of those with outcomes") {
        let _ = writeln!(text, "cohort = {cohort}");
    }
    let _ = write!(text, "[lift]\ncounts_after = \"opportunity\"\nclamp = {clamp}\n");
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
    let mode = one_of((form.field)("mode"), &MODES);
    let confidence = one_of((form.field)("confidence"), &CONFIDENCE);
    let also = COUNTS.iter().filter(|(name, _)| form.ticked(&format!("also-{name}")));
    let also: Vec<String> = also.map(|(name, _)| quoted(name)).collect();
    let _ = write!(
        text,
        "[release]\nmode = \"{mode}\"\nconfidence = {confidence}\nnoise = \"inside\"\nminimum_group = \
         {least}\nalso = [{}]\n",
        also.join(", ")
    );
    let public = form.rho("rho", RHO);
    let own = [("rho-them", "Rho of what they alone see", them), ("rho-us", "Rho of what you alone see", us)];
    let own = own.map(|(name, label, party)| (party, form.rho(name, label)));
    if public.is_none() && own.iter().all(|(_, rho)| rho.is_none()) {
        form.say("rho", RHO, "without any rho nothing is shown to anybody.");
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

    fn made(fields: &BTreeMap<&'static str, &'static str>) -> Result<String, Vec<FormMistake>> {
        study_text(&|name| fields.get(name).copied().unwrap_or(""), US, THEM)
    }

    fn said(wrong: Vec<FormMistake>) -> String {
        wrong.iter().map(FormMistake::to_string).collect::<Vec<_>>().join("\n")
    }

    /// The fields that make a study are found in its text; of a text that no form makes there are none.
    #[test]
    fn a_study_fills_the_form_that_makes_it() {
        let rich = [
            ("role", "advertiser"),
            ("identifier-2", "mail"),
            ("alike-2", "email"),
            ("clock", "hour"),
            ("leave-out", "other, none"),
            ("breakdown", "region"),
            ("breakdown-values", "north, south"),
            ("layout", "wide"),
            ("event", "onset_1, onset_2"),
            ("amount", "cost_1, cost_2"),
            ("currency", "EUR"),
            ("parts", "100"),
            ("within", "48"),
            ("mode", "sums"),
            ("confidence", "0.90"),
            ("rho-them", "0.05"),
            ("also-matches", "yes"),
        ];
        let mut more = polio();
        more.extend(rich);
        more.remove("where");
        more.remove("better");
        for fields in [polio(), more] {
            let text = study::canonical("made", &made(&fields).expect("a study")).expect("canonical");
            let found = fields_again(&text, US, THEM).unwrap_or_else(|| panic!("{text}"));
            for (name, value) in &fields {
                let is = |(field, found): &(String, String)| field == name && found == value;
                assert!(*name == "equals" || found.iter().any(is), "{name}: {found:?}");
            }
            let field = |name: &str| found.iter().find(|(field, _)| field == name).map_or("", |(_, v)| v);
            let again = study_text(&field, US, THEM).expect("a study");
            assert_eq!(study::canonical("made", &again).expect("canonical"), text);
            assert!(fields_again(&text.replace("pid", "psi"), US, THEM).is_none());
            assert!(fields_again(&text, THEM, US).is_some(), "either side proposes it again");
        }
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
    fn everything_that_the_form_asks_stands_in_the_study() {
        let mut fields = polio();
        fields.extend([
            ("identifier-2", "telephone"),
            ("alike-2", "digits"),
            ("duplicates", "first"),
            ("leave-out", "observed, \"none\""),
            ("impressions", "visits"),
            ("breakdown", "region"),
            ("breakdown-values", "north, south"),
            ("cohort", "age_group"),
            ("cohort-values", "6, 7,8"),
            ("also-converters", "yes"),
            ("also-reached_value", "yes"),
            ("confidence", "0.99"),
            ("rho-us", "0.05"),
        ]);
        let text = made(&fields).expect("a study");
        let file = study::StudyFile::parse("made", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let study = file.first();
        let study::Question::Lift(lift) = &study.kind else { panic!("a lift study") };
        let names: Vec<&str> = study.matching.identifiers.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["child_id", "telephone"]);
        assert_eq!(lift.publisher.leave_out, ["observed", "\"none\""]);
        assert_eq!(lift.publisher.breakdown.as_ref().expect("one").values, ["north", "south"]);
        assert_eq!(lift.advertisers[0].cohort.as_ref().expect("one").values, ["6", "7", "8"]);
        assert_eq!(lift.release.also.len(), 2);
        assert_eq!(lift.release.confidence.percent(), 99);
        assert_eq!(lift.release.to.len(), 1);
        // A mode that publishes sizes is a study, too, and what is not filled in is said.
        let mut fields = polio();
        fields.extend([("mode", "variance"), ("breakdown", "region")]);
        let wrong = said(made(&fields).expect_err("no values"));
        assert_eq!(wrong, "Groups of the treated: write them with commas between: north, south.");
        fields.remove("breakdown");
        let text = made(&fields).expect("a study");
        let file = study::StudyFile::parse("made", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let study::Question::Lift(lift) = &file.first().kind else { panic!("a lift study") };
        assert_eq!(lift.release.mode.name(), "variance");
    }

    #[test]
    fn outcomes_may_stand_in_several_columns() {
        let mut fields = polio();
        fields.extend([("layout", "wide"), ("event", "onset_1, onset_2")]);
        fields.extend([("amount", "cost_1,cost_2"), ("parts", "100"), ("clamp", "500"), ("currency", "EUR")]);
        let text = made(&fields).expect("a study");
        let file = study::StudyFile::parse("made", &text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let study::Question::Lift(lift) = &file.first().kind else { panic!("a lift study") };
        let owner = &lift.advertisers[0];
        assert_eq!((owner.layout, &*owner.events.join(" ")), (study::EventLayout::Wide, "onset_1 onset_2"));
        let study::EventValue::Columns { columns, scale, .. } = &owner.value else { panic!("amounts") };
        assert_eq!((&*columns.join(" "), *scale), ("cost_1 cost_2", 100));
        fields.insert("amount", "cost_1");
        fields.insert("event", "onset_1");
        let wrong = made(&fields).expect_err("too few");
        let fields: Vec<&str> = wrong.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(fields, ["event", "amount"], "{}", said(wrong.clone()));
    }

    #[test]
    fn names_of_the_form_are_those_of_studies() {
        for (name, _) in COUNTS {
            assert!(study::Also::NAMES.iter().any(|(known, _)| *known == name), "{name}");
        }
        for (name, _) in MODES {
            assert!(study::ReleaseMode::NAMES.iter().any(|(known, _)| *known == name), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_by_the_labels_that_people_read() {
        let mut fields = polio();
        fields.extend([("until", "1953-01-01"), ("clamp", "x"), ("arm", " "), ("rho", "-1")]);
        let wrong = said(made(&fields).expect_err("wrong"));
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
