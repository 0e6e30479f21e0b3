//! What the form of a lift study would have had in it, of the text of a study.

use super::{ALIKE, CONFIDENCE, FormParty, IDENTIFIERS, study_text};
use study::time::{CellTime, Unit, date_of_days};
use toml::{Table, Value};

/// Fields of a form by their names.
pub type FormFields = Vec<(String, String)>;

/// A value as somebody writes it into a field; of a list, with commas between.
pub fn written(value: &Value) -> Option<String> {
    Some(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Datetime(day) => day.to_string(),
        Value::Array(all) => all.iter().map(written).collect::<Option<Vec<_>>>()?.join(", "),
        Value::Boolean(_) | Value::Table(_) => return None,
    })
}

/// What stands in a table under names with dots between.
pub fn at<'t>(table: &'t Table, path: &str) -> Option<&'t Value> {
    let mut names = path.split('.');
    let first = table.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// What both forms begin with: title, name, and the columns by which rows belong together.
pub fn first_fields(table: &Table) -> Option<FormFields> {
    let mut fields = FormFields::new();
    let mut fill = |name: &str, value: Option<String>| fields.extend(value.map(|value| (name.into(), value)));
    fill("title", at(table, "title").and_then(written));
    fill("name", at(table, "name").and_then(written));
    let identifiers = at(table, "match.identifiers")?.as_array()?;
    for (identifier, (name, _, alike, _)) in identifiers.iter().zip(IDENTIFIERS) {
        fill(name, identifier.get("name").and_then(written));
        let steps = identifier.get("normalise")?;
        let list = |steps: &str| format!("all = {steps}").parse::<Table>().ok()?.remove("all");
        let (way, ..) = ALIKE.iter().find(|(.., said)| list(said).as_ref() == Some(steps))?;
        fill(alike, Some((*way).to_owned()));
    }
    fill("duplicates", at(table, "match.duplicates").and_then(written));
    Some(fields)
}

/// The form that makes this study, whose text is canonical; nothing where no form does.
pub fn fields_again(text: &str, us: FormParty<'_>, them: FormParty<'_>) -> Option<FormFields> {
    let table: Table = text.parse().ok()?;
    let mut fields = first_fields(&table)?;
    let mut fill = |name: &str, path: &str| {
        fields.extend(at(&table, path).and_then(written).map(|value| (name.to_owned(), value)));
    };
    for (name, path) in PLAIN {
        fill(name, path);
    }
    fill("rho", "release.public.rho");
    let more = [
        ("role", Some(at(&table, "party")?.get(us.name)?.get("role").and_then(written)?)),
        ("rho-us", own_rho(&table, us.name)),
        ("rho-them", own_rho(&table, them.name)),
        ("until", Some(last_day(&table)?)),
        ("better", at(&table, "lift.lower_is_better").map(|_| "lower".to_owned())),
        ("confidence", Some(confidence(&table)?.to_owned())),
    ];
    fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    let also = at(&table, "release.also").and_then(Value::as_array);
    let also = also.into_iter().flatten().filter_map(Value::as_str);
    fields.extend(also.map(|count| (format!("also-{count}"), "yes".to_owned())));
    let field = |name: &str| fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
    let made = study_text(&field, us, them).ok()?;
    (study::canonical("the form", &made).ok()? == text).then_some(fields)
}

/// Fields that have what stands in one place of a study.
const PLAIN: [(&str, &str); 27] = [
    ("from", "time.origin"),
    ("clock", "time.unit"),
    ("arm", "publisher.arm.column"),
    ("test", "publisher.arm.test"),
    ("control", "publisher.arm.control"),
    ("leave-out", "publisher.arm.leave_out"),
    ("opportunity", "publisher.opportunity.column"),
    ("impressions", "publisher.impressions.column"),
    ("breakdown", "publisher.breakdown.column"),
    ("breakdown-values", "publisher.breakdown.values"),
    ("layout", "advertiser.layout"),
    ("event", "advertiser.event.column"),
    ("event", "advertiser.event.columns"),
    ("amount", "advertiser.value.column"),
    ("amount", "advertiser.value.columns"),
    ("currency", "advertiser.value.unit"),
    ("parts", "advertiser.value.scale"),
    ("where", "advertiser.where.column"),
    ("equals", "advertiser.where.equals"),
    ("events", "advertiser.max_events"),
    ("cohort", "advertiser.cohort.column"),
    ("cohort-values", "advertiser.cohort.values"),
    ("clamp", "lift.clamp"),
    ("within", "lift.within"),
    ("least", "release.minimum_group"),
    ("mode", "release.mode"),
    ("as", "kind"),
];

fn own_rho(table: &Table, party: &str) -> Option<String> {
    at(table, "release.to")?.get(party)?.get("rho").and_then(written)
}

fn confidence(table: &Table) -> Option<&'static str> {
    let level = at(table, "release.confidence")?.as_float()?;
    let is = |text: &&str| text.parse::<f64>().is_ok_and(|of| (of - level).abs() < 1e-9);
    CONFIDENCE.iter().map(|(name, _)| *name).find(is)
}

/// The day with which the span of a study ends, as the form asks for it.
fn last_day(table: &Table) -> Option<String> {
    let CellTime::Day(from) = CellTime::read(&written(at(table, "time.origin")?)?)? else { return None };
    let unit = written(at(table, "time.unit")?)?;
    let (_, unit) = Unit::NAMES.iter().find(|(name, _)| *name == unit)?;
    let days = at(table, "time.span")?.as_integer()?.checked_mul(unit.seconds())? / 86_400;
    Some(date_of_days(from.checked_add(days - i64::from(*unit != Unit::Day))?))
}
