//! From the tree of a study file to a [`Study`], section by section in the order of the file.

use super::reader::{NAME_RULE, TomlItem, TomlSection, TomlSource, is_name};
use super::{
    Advertiser, Also, Categories, CellType, Compute, ComputeEngine, Confidence, EventLayout, EventValue,
    LiftRule, LiftStudy, LineFilter, MAX_CATEGORIES, MAX_CLAMP, MAX_EVENTS, MAX_RHO, MAX_SCALE, NegativeRule,
    NoiseFrom, Overflow, Participant, PartyRole, ProgramColumn, ProgramSource, ProgramStudy, Publisher,
    Question, ReleaseMode, ReleaseRule, Study, StudyFile,
};
use crate::time::{Clock, Unit};
use ::matching::Matcher;
use base::{Error, limits};
use release::modes::MINIMUM_GROUP;
use release::rational::{Rational, decimal, ratio, shown};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum KindName {
    Lift,
    Program,
    Match,
}

impl KindName {
    /// What a study of this kind may say, in the order of the file.
    fn keys(self) -> Vec<&'static str> {
        let own = match self {
            Self::Lift => "publisher advertiser lift release compute server ring4",
            Self::Program => "program columns release compute server ring4",
            Self::Match => "columns compute",
        };
        "format name kind title party match privacy time".split(' ').chain(own.split(' ')).collect()
    }
}

pub(super) fn file(source: TomlSource<'_>) -> Result<StudyFile, Error> {
    if source.text.len() > limits::STUDY_BYTES {
        return Err(source.error(
            limits::STUDY_BYTES,
            format!("the file is larger than {} bytes; is it the right file?", limits::STUDY_BYTES),
        ));
    }
    let tree = source.table()?;
    // The kind is not known yet: whatever any study may say.
    let half = tree.get_ref().get("unfinished").map(|_| "unfinished");
    let all = [KindName::Lift.keys(), vec!["program", "columns"], Vec::from_iter(half)].concat();
    let root = TomlSection::root(source, &tree, &all)?;
    root.need("format", "format = \"tacit-study/1\"")?.choice(&[("tacit-study/1", ())], &[])?;
    let kinds = [("lift", KindName::Lift), ("program", KindName::Program), ("match", KindName::Match)];
    let kind = root.need("kind", "kind = \"lift\"")?.choice(&kinds, &["market"])?;
    if let Some(item) = root.get("unfinished") {
        return Err(unfinished(&item, kind));
    }
    let root = TomlSection::root(source, &tree, &kind.keys())?;
    let name = root.need("name", "name = \"my-study\"")?.name()?.to_owned();
    let title = root.need("title", "title = \"one line for people\"")?.text()?.to_owned();
    let parties = members(&root, kind)?;
    let apart = kind == KindName::Lift && parties.len() > 2 && !together(&root)?;
    // A lift study whose advertisers are apart is several matches of two.
    let matching = super::matching::parse(&root, kind, if apart { 2 } else { parties.len() })?;
    let unit = root.get("privacy").as_ref().map(unit).transpose()?;
    let (compute, served) = compute(&root)?;
    let servers = super::servers::parse(&root, &parties, &matching, served)?;
    let questions = match kind {
        KindName::Lift if apart => lifts_apart(&root, &parties)?,
        KindName::Lift => vec![(parties.clone(), lift_together(&root, &parties)?)],
        KindName::Program => vec![(parties.clone(), Question::Program(Box::new(program(&root, &parties)?)))],
        KindName::Match => {
            let columns = match_only(&root, &parties, matching.matcher)?;
            vec![(parties.clone(), Question::Match(Box::new(columns)))]
        }
    };
    let run = |(parties, kind)| Study {
        name: name.clone(),
        title: title.clone(),
        parties,
        matching: matching.clone(),
        unit: unit.clone(),
        kind,
        compute,
        servers: servers.clone(),
        part_of: None,
    };
    let mut file = StudyFile { parties, runs: questions.into_iter().map(run).collect() };
    super::servers::check(&root, &file)?;
    if apart {
        let whole = file.hash();
        file.runs.iter_mut().for_each(|run| run.part_of = Some(whole));
    }
    Ok(file)
}

/// One party has begun the study by `tacit init`, and the other has not been there.
fn unfinished(item: &TomlItem<'_, '_>, kind: KindName) -> Error {
    let (who, command) = match (kind, item.text()) {
        (KindName::Lift, Ok("publisher")) => ("publisher", "lift --publisher"),
        (KindName::Lift, _) => ("advertiser", "lift --advertiser"),
        (KindName::Program, _) => ("second party", "program --data"),
        (KindName::Match, _) => ("second party", "match --data"),
    };
    item.error(format!(
        "the study is not finished: it has no {who} yet, who completes it with `tacit init {command} FILE \
         --study {}`",
        item.source.file
    ))
}

/// What one row stands for: a word that fits after "one".
fn unit(item: &TomlItem<'_, '_>) -> Result<String, Error> {
    const LONGEST: usize = 40;
    let item = item.section(&["unit"])?.need("unit", "unit = \"person\"")?;
    let text = item.text()?;
    let plain = |c: char| c.is_alphanumeric() || " -".contains(c);
    if text.len() > LONGEST || text.trim() != text || !text.chars().all(plain) {
        return Err(item.refuse(format!(
            "write what one row stands for in a word or two that fit after \"one\", at most {LONGEST} bytes \
             of letters, digits, spaces and hyphens: \"person\", \"child\", \"household\""
        )));
    }
    Ok(text.to_owned())
}

fn members(root: &TomlSection<'_, '_>, kind: KindName) -> Result<Vec<Participant>, Error> {
    let section = root.need("party", "a section [party.NAME] for each party")?.open_section()?;
    let mut members: Vec<Participant> = Vec::new();
    for (name, item) in section.entries() {
        if !is_name(name) {
            return Err(item.error(format!("party name \"{}\": {NAME_RULE}", super::reader::printable(name))));
        }
        let member = member(name, &item, kind)?;
        if let Some(other) = members.iter().find(|other| other.key == member.key) {
            return Err(
                item.error(format!("{} and {name} have the same key; each needs its own", other.name))
            );
        }
        let alone = member.role != PartyRole::Advertiser;
        if let Some(other) = members.iter().find(|other| alone && other.role == member.role) {
            return Err(
                item.error(format!("{} and {name} have the same role; each needs its own", other.name))
            );
        }
        members.push(member);
    }
    if !(2..=limits::PARTIES).contains(&members.len()) {
        return Err(section.error(format!(
            "{} parties; a study has 2 to {}: a section [party.NAME] for each",
            members.len(),
            limits::PARTIES
        )));
    }
    if kind == KindName::Lift && members.iter().all(|member| member.role == PartyRole::Advertiser) {
        return Err(section.error("no party has role = \"publisher\"; one must"));
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    members.sort_by_key(|member| member.role == PartyRole::Advertiser);
    Ok(members)
}

fn member(name: &str, item: &TomlItem<'_, '_>, kind: KindName) -> Result<Participant, Error> {
    let section = item.section(&["role", "key"])?;
    let role = match kind {
        KindName::Lift => match section.need("role", "role = \"publisher\" or \"advertiser\"")? {
            role if role.choice(&[("publisher", true), ("advertiser", false)], &[])? => PartyRole::Publisher,
            _ => PartyRole::Advertiser,
        },
        KindName::Program | KindName::Match => match section.get("role") {
            Some(role) => PartyRole::Owner(role.name()?.to_owned()),
            None => PartyRole::Owner(name.to_owned()),
        },
    };
    Ok(Participant { name: name.to_owned(), role, key: named_key(&section)? })
}

/// The line `key` of a party or a server.
pub(super) fn named_key(section: &TomlSection<'_, '_>) -> Result<String, Error> {
    let item = section.need("key", "key = \"tacit1:...\", as the party's `tacit keygen` printed it")?;
    let key = item.text()?;
    if !is_key(key) {
        return Err(
            item.refuse("a key is \"tacit1:\" and 32 hex digits in lower case, as `tacit keygen` prints it")
        );
    }
    Ok(key.to_owned())
}

/// `tacit1:` and 32 lower-case hex digits.
pub(crate) fn is_key(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.strip_prefix("tacit1:").is_some_and(|digits| digits.len() == 32 && digits.bytes().all(hex))
}

fn clock(item: &TomlItem<'_, '_>) -> Result<Clock, Error> {
    let section = item.section(&["origin", "unit", "span"])?;
    let origin = section.need("origin", "origin = 1970-01-01")?;
    let seconds = origin_seconds(&origin)?;
    let unit = section.need("unit", "unit = \"day\"")?.choice(&Unit::NAMES, &[])?;
    let span = section.need("span", "span = 365")?;
    let units = span.integer(1..=u64::from(u32::MAX))?;
    Clock::new(seconds, unit, u32::try_from(units).expect("checked")).map_err(|text| span.refuse(text))
}

fn origin_seconds(item: &TomlItem<'_, '_>) -> Result<i64, Error> {
    let rule = "write a date (1954-01-01) or a date-time with offset (1954-01-01T06:00:00Z), without quotes";
    let toml::de::DeValue::Datetime(origin) = item.value.get_ref() else { return Err(item.refuse(rule)) };
    let text = origin.to_string();
    if let Some(days) = base::days_of_date(&text) {
        return Ok(days * 86_400);
    }
    let format = &time::format_description::well_known::Rfc3339;
    match time::OffsetDateTime::parse(&text, format) {
        Ok(at) if at.nanosecond() == 0 => Ok(at.unix_timestamp()),
        Ok(_) => Err(item.refuse("use whole seconds")),
        Err(_) => Err(item.refuse(rule)),
    }
}

/// Whether several advertisers are measured as one; a study from before this could be said means each apart.
fn together(root: &TomlSection<'_, '_>) -> Result<bool, Error> {
    let section = root.need("lift", "a section [lift]")?.open_section()?;
    match section.get("advertisers") {
        Some(item) => item.choice(&[("together", true), ("apart", false)], &[]),
        None => Ok(false),
    }
}

/// The columns of each advertiser: [advertiser] describes the file of all of them, or each has a section
/// [advertiser.NAME].
fn advertisers(root: &TomlSection<'_, '_>, parties: &[Participant]) -> Result<Vec<Advertiser>, Error> {
    let item = root.need("advertiser", "a section [advertiser], or [advertiser.NAME] for each")?;
    let names: Vec<&str> = parties[1..].iter().map(|member| member.name.as_str()).collect();
    let several = names.len() > 1;
    let own = several && item.open_section()?.entries().iter().any(|(key, _)| names.contains(key));
    let section = if own { Some(item.section(&names)?) } else { None };
    let columns = |name: &&str| match &section {
        Some(section) => advertiser(&section.need(name, &format!("a section [advertiser.{name}]"))?),
        None => advertiser(&item),
    };
    names.iter().map(columns).collect()
}

/// What is added up has one unit.
fn one_unit(root: &TomlSection<'_, '_>, lift: &LiftStudy) -> Result<(), Error> {
    let unit =
        |advertiser: &Advertiser| (advertiser.value.unit().map(str::to_owned), advertiser.value.scale());
    let units: Vec<(Option<String>, u32)> = lift.advertisers.iter().map(unit).collect();
    if units.iter().all(|unit| *unit == units[0]) {
        return Ok(());
    }
    let item = root.need("advertiser", "a section [advertiser]")?;
    Err(item.error(
        "advertisers = \"together\" adds up what a person did at all of them: write the same value.unit and \
         value.scale for each, or advertisers = \"apart\"",
    ))
}

fn lift_with(
    root: &TomlSection<'_, '_>,
    parties: &[Participant],
    advertisers: Vec<Advertiser>,
) -> Result<LiftStudy, Error> {
    let clock = clock(&root.need("time", "a section [time]")?)?;
    let publisher = publisher(&root.need("publisher", "a section [publisher]")?)?;
    let scale = advertisers.first().map_or(1, |advertiser| advertiser.value.scale());
    let rule = rule(&root.need("lift", "a section [lift]")?, &clock, scale)?;
    let release = release(&root.need("release", "a section [release]")?, parties, &publisher)?;
    Ok(LiftStudy { clock, publisher, advertisers, rule, release })
}

/// One lift study of all, where a person's outcome is what the events of all add up to.
fn lift_together(root: &TomlSection<'_, '_>, parties: &[Participant]) -> Result<Question, Error> {
    let lift = lift_with(root, parties, advertisers(root, parties)?)?;
    one_unit(root, &lift)?;
    Ok(Question::Lift(Box::new(lift)))
}

/// The publisher's lift study with each advertiser, and its two parties.
fn lifts_apart(
    root: &TomlSection<'_, '_>,
    parties: &[Participant],
) -> Result<Vec<(Vec<Participant>, Question)>, Error> {
    let (publisher, members) = parties.split_first().expect("two parties or more");
    let part = |(member, columns): (&Participant, Advertiser)| {
        let mut lift = lift_with(root, parties, vec![columns])?;
        lift.release.to.retain(|(name, _)| *name == publisher.name || *name == member.name);
        Ok((vec![publisher.clone(), member.clone()], Question::Lift(Box::new(lift))))
    };
    members.iter().zip(advertisers(root, parties)?).map(part).collect()
}

fn publisher(item: &TomlItem<'_, '_>) -> Result<Publisher, Error> {
    let section = item.section(&["arm", "opportunity", "impressions", "breakdown"])?;
    let example = "arm = { column = \"arm\", test = \"test\", control = \"control\" }";
    let arm = section.need("arm", example)?.section(&["column", "test", "control", "leave_out"])?;
    let (test, control) =
        (arm.need("test", "test = \"test\"")?, arm.need("control", "control = \"control\"")?);
    if test.text()? == control.text()? {
        return Err(control.refuse("it is the label of the test arm too; the labels must differ"));
    }
    let impressions = match section.get("impressions") {
        Some(item) => Some(typed_column(&item, "u16")?),
        None => None,
    };
    Ok(Publisher {
        arm: arm.need("column", "column = \"arm\"")?.text()?.to_owned(),
        test: test.text()?.to_owned(),
        control: control.text()?.to_owned(),
        leave_out: arm
            .get("leave_out")
            .map_or(Ok(Vec::new()), |item| other_arms(&item, [test.text()?, control.text()?]))?,
        opportunity: typed_column(
            &section.need("opportunity", "opportunity = { column = \"seen\", type = \"time\" }")?,
            "time",
        )?,
        impressions,
        breakdown: section.get("breakdown").as_ref().map(categories).transpose()?,
    })
}

/// Labels of arms that are not compared.
fn other_arms(item: &TomlItem<'_, '_>, compared: [&str; 2]) -> Result<Vec<String>, Error> {
    let others = labels(item, MAX_CATEGORIES)?;
    for item in item.list()? {
        if compared.contains(&item.text()?) {
            return Err(item.refuse("it is the label of an arm that is compared"));
        }
    }
    Ok(others)
}

/// `{ column = "x", type = "time" }` where only one type makes sense.
fn typed_column(item: &TomlItem<'_, '_>, kind: &str) -> Result<String, Error> {
    let section = item.section(&["column", "type"])?;
    section.need("type", &format!("type = \"{kind}\""))?.choice(&[(kind, ())], &[])?;
    Ok(section.need("column", "column = \"name\"")?.text()?.to_owned())
}

fn categories(item: &TomlItem<'_, '_>) -> Result<Categories, Error> {
    let section = item.section(&["column", "values"])?;
    let column = section.need("column", "column = \"name\"")?.text()?.to_owned();
    let values = section.need("values", "values = [\"a\", \"b\"]")?;
    Ok(Categories { column, values: labels(&values, MAX_CATEGORIES)? })
}

/// A list of 1 to `most` different labels.
fn labels(item: &TomlItem<'_, '_>, most: usize) -> Result<Vec<String>, Error> {
    let items = item.list()?;
    if items.is_empty() || items.len() > most {
        return Err(item.error(format!("{} has {} values; list 1 to {most}", item.path, items.len())));
    }
    let mut labels: Vec<String> = Vec::with_capacity(items.len());
    for item in &items {
        let label = item.text()?;
        if labels.iter().any(|other| other == label) {
            return Err(item.refuse("it is already in the list; remove one"));
        }
        labels.push(label.to_owned());
    }
    Ok(labels)
}

fn advertiser(item: &TomlItem<'_, '_>) -> Result<Advertiser, Error> {
    let section = item.section(&["layout", "event", "value", "where", "max_events", "overflow", "cohort"])?;
    let layout = section
        .need("layout", "layout = \"events\"")?
        .choice(&[("events", EventLayout::Events), ("wide", EventLayout::Wide)], &[])?;
    let events = event_columns(
        &section.need("event", "event = { column = \"time\", type = \"time\" }")?,
        layout,
        "time",
        &["column", "columns", "type"],
    )?;
    let value = value(&section.need("value", "value = { constant = 1 }")?, layout, events.len())?;
    let max_events = section.need("max_events", "max_events = 4")?.integer(1..=u64::from(MAX_EVENTS))?;
    let overflow = section.need("overflow", "overflow = \"keep-earliest\"")?;
    let overflow =
        overflow.choice(&[("error", Overflow::Error), ("keep-earliest", Overflow::KeepEarliest)], &[])?;
    Ok(Advertiser {
        layout,
        events,
        value,
        filter: section.get("where").as_ref().map(filter).transpose()?,
        max_events: u8::try_from(max_events).expect("checked"),
        overflow,
        cohort: section.get("cohort").as_ref().map(categories).transpose()?,
    })
}

/// `column` in the events layout, `columns` in the wide one.
fn event_columns(
    item: &TomlItem<'_, '_>,
    layout: EventLayout,
    kind: &str,
    keys: &[&str],
) -> Result<Vec<String>, Error> {
    let section = item.section(keys)?;
    section.need("type", &format!("type = \"{kind}\""))?.choice(&[(kind, ())], &[])?;
    match (layout, section.get("column"), section.get("columns")) {
        (EventLayout::Events, Some(column), None) => Ok(vec![column.text()?.to_owned()]),
        (EventLayout::Wide, None, Some(columns)) => labels(&columns, usize::from(u8::MAX)),
        (EventLayout::Events, ..) => {
            Err(section.error(format!("{}: the events layout needs column = \"name\"", item.path)))
        }
        (EventLayout::Wide, ..) => {
            Err(section
                .error(format!("{}: the wide layout needs columns = [\"first\", \"second\"]", item.path)))
        }
    }
}

fn value(item: &TomlItem<'_, '_>, layout: EventLayout, events: usize) -> Result<EventValue, Error> {
    let keys = ["constant", "column", "columns", "type", "unit", "scale", "negative"];
    let section = item.section(&keys)?;
    if let Some(constant) = section.get("constant") {
        item.section(&["constant"])?;
        let constant = constant.integer(1..=u64::from(u32::MAX))?;
        return Ok(EventValue::Constant(u32::try_from(constant).expect("checked")));
    }
    let columns = event_columns(item, layout, "u32", &keys)?;
    if columns.len() != events {
        return Err(item.error(format!(
            "{} names {} columns for {events} event columns; name one for each",
            item.path,
            columns.len()
        )));
    }
    let unit = section.get("unit").map(|unit| unit.text().map(str::to_owned)).transpose()?;
    let scale = section.get("scale").map_or(Ok(1), |item| scale(&item))?;
    let negative = section
        .get("negative")
        .map_or(Ok(NegativeRule::Error), |item| item.choice(&NegativeRule::NAMES, &[]))?;
    Ok(EventValue::Columns { columns, unit, scale, negative })
}

/// How many whole numbers make a unit: a power of ten, so that every decimal of a cell is one digit.
fn scale(item: &TomlItem<'_, '_>) -> Result<u32, Error> {
    let scale = item.integer(1..=u64::from(MAX_SCALE))?;
    let power = (0..=6).any(|places| 10u64.pow(places) == scale);
    match power {
        true => Ok(u32::try_from(scale).expect("checked")),
        false => {
            Err(item.refuse("use 1, 10, 100, ..: a cell then has up to as many decimals as it has zeros"))
        }
    }
}

fn filter(item: &TomlItem<'_, '_>) -> Result<LineFilter, Error> {
    let section = item.section(&["column", "equals"])?;
    let column = section.need("column", "column = \"name\"")?.text()?.to_owned();
    let mut equals = labels(&section.need("equals", "equals = [\"a\"]")?, MAX_CATEGORIES)?;
    equals.sort();
    Ok(LineFilter { column, equals })
}

/// Most that a person adds to a total: in the unit of the values, as an exact number of its parts.
fn clamp(item: &TomlItem<'_, '_>, scale: u32) -> Result<u32, Error> {
    if scale == 1 {
        let clamp = item.integer(1..=u64::from(MAX_CLAMP))?;
        return Ok(u32::try_from(clamp).expect("checked"));
    }
    let parts = item.number_text().ok().and_then(|text| program::decimal(&text, scale.into()).ok());
    let clamp =
        parts.and_then(|parts| u32::try_from(parts).ok()).filter(|clamp| (1..=MAX_CLAMP).contains(clamp));
    clamp.ok_or_else(|| {
        let exact = |parts: u32| shown(&ratio(parts, scale));
        item.refuse(format!(
            "use a number from {} to {}, with no more decimals than value.scale = {scale} has zeros: the \
             clamp is in the unit of the values",
            exact(1),
            exact(MAX_CLAMP)
        ))
    })
}

fn rule(item: &TomlItem<'_, '_>, clock: &Clock, scale: u32) -> Result<LiftRule, Error> {
    let section = item.section(&["counts_after", "within", "clamp", "lower_is_better", "advertisers"])?;
    section.need("counts_after", "counts_after = \"opportunity\"")?.choice(&[("opportunity", ())], &[])?;
    let within = match section.get("within") {
        Some(item) => Some(item.integer(1..=u64::from(clock.span()))?),
        None => None,
    };
    let clamp = clamp(&section.need("clamp", "clamp = 1")?, scale)?;
    Ok(LiftRule {
        within: within.map(|w| u32::try_from(w).expect("checked")),
        clamp,
        lower_is_better: section.get("lower_is_better").map_or(Ok(false), |item| item.boolean())?,
    })
}

fn release(
    item: &TomlItem<'_, '_>,
    parties: &[Participant],
    publisher: &Publisher,
) -> Result<ReleaseRule, Error> {
    let keys = ["mode", "confidence", "noise", "candidates", "minimum_group", "also", "to", "public"];
    let section = item.section(&keys)?;
    let mode = section.need("mode", "mode = \"sums\"")?.choice(&ReleaseMode::NAMES, &[])?;
    let confidence = confidence(&section.need("confidence", "confidence = 0.95")?)?;
    let noise = noise(&section, parties.len())?;
    let minimum_group = match section.get("minimum_group") {
        Some(item) => item.integer(MINIMUM_GROUP..=limits::ROWS)?,
        None => MINIMUM_GROUP,
    };
    let mut also = Vec::new();
    if let Some(list) = section.get("also") {
        for item in list.list()? {
            let count = item.choice(&Also::NAMES, &[])?;
            if also.contains(&count) {
                return Err(item.refuse("it is already in the list; remove one"));
            }
            if matches!(count, Also::ReachedConversions | Also::ReachedValue)
                && publisher.impressions.is_none()
            {
                return Err(
                    item.refuse("it needs publisher.impressions = { column = \"...\", type = \"u16\" }")
                );
            }
            also.push(count);
        }
    }
    also.sort_unstable();
    let (to, public) = viewers(&section, parties)?;
    Ok(ReleaseRule { mode, confidence, noise, minimum_group, also, to, public })
}

fn confidence(item: &TomlItem<'_, '_>) -> Result<Confidence, Error> {
    let known = [("0.9", Confidence::P90), ("0.95", Confidence::P95), ("0.99", Confidence::P99)];
    let met = item.number_text().ok().and_then(|text| decimal(&text)).map(|met| shown(&met));
    let found = known.iter().find(|(text, _)| met.as_deref() == Some(text));
    found.map(|&(_, level)| level).ok_or_else(|| item.refuse("use 0.90, 0.95 or 0.99"))
}

/// Where noise comes from: inside the computation where nothing is said. The longer name of the other is that
/// of studies of earlier versions.
fn noise(section: &TomlSection<'_, '_>, parties: usize) -> Result<NoiseFrom, Error> {
    let names = [("inside", true), ("cut-and-choose", false), ("seeded-cut-and-choose", false)];
    let named = section.get("noise");
    let inside =
        named.as_ref().map_or(Ok(true), |item| item.choice(&names, &["statistical-cut-and-choose"]))?;
    let candidates = section.get("candidates");
    if inside {
        return match candidates {
            None => Ok(NoiseFrom::Inside),
            Some(item) => Err(item.refuse("noise drawn inside has no candidates; remove the line")),
        };
    }
    if let (Some(item), true) = (&named, parties != 2) {
        return Err(item.refuse(
            "one of two parties draws candidates for the other, and here are more; write noise = \"inside\", \
             which serves [release.public] and [release.to.NAME] alike",
        ));
    }
    if let (Some(item), Some(_)) = (&named, section.get("public")) {
        return Err(item.refuse(
            "who draws candidates knows the noise, so there is no public number; write noise = \"inside\", \
             or give each party a number of its own: [release.to.NAME] with a rho instead of \
             [release.public]",
        ));
    }
    let candidates = candidates.map_or(Ok(64), |item| item.integer(2..=limits::CANDIDATES as u64))?;
    Ok(NoiseFrom::CutAndChoose(u32::try_from(candidates).expect("checked")))
}

type Spent = (Vec<(String, Rational)>, Option<Rational>);

/// What each viewer alone and what everybody sees costs; at least one of them.
fn viewers(release: &TomlSection<'_, '_>, parties: &[Participant]) -> Result<Spent, Error> {
    let public = match release.get("public") {
        Some(item) => Some(rho(&item.section(&["rho"])?.need("rho", "rho = 0.1")?)?),
        None => None,
    };
    match release.get("to") {
        Some(item) => Ok((own_views(&item, parties)?, public)),
        None if public.is_some() => Ok((Vec::new(), public)),
        None => {
            let wanted = "a section [release.public] for one number that all see, or [release.to.NAME] for \
                          each viewer";
            release.need("public", wanted).map(|_| (Vec::new(), public))
        }
    }
}

fn own_views(item: &TomlItem<'_, '_>, parties: &[Participant]) -> Result<Vec<(String, Rational)>, Error> {
    let section = item.open_section()?;
    let names: Vec<&str> = parties.iter().map(|member| member.name.as_str()).collect();
    let section = if section.entries().is_empty() {
        return Err(section.error("[release.to] names no viewer; add a section [release.to.NAME]"));
    } else {
        item.section(&names)?
    };
    let mut viewers = Vec::new();
    for name in names {
        if let Some(item) = section.get(name) {
            viewers.push((name.to_owned(), rho(&item.section(&["rho"])?.need("rho", "rho = 0.1")?)?));
        }
    }
    Ok(viewers)
}

/// A rho: an exact decimal above 0, at most [`MAX_RHO`].
pub(crate) fn rho(item: &TomlItem<'_, '_>) -> Result<Rational, Error> {
    let rule =
        format!("use a decimal above 0 and at most {MAX_RHO} with at most 9 digits after the point: 0.1");
    let met = decimal(&item.number_text()?).ok_or_else(|| item.refuse(&rule))?;
    let most = ratio(MAX_RHO, 1);
    if met > ratio(0, 1) && met <= most { Ok(met) } else { Err(item.refuse(&rule)) }
}

/// How a study is computed, and whether servers do it.
fn compute(root: &TomlSection<'_, '_>) -> Result<(Compute, bool), Error> {
    let mut compute = Compute { engine: ComputeEngine::Auto, ot: None, circuit: None, shards: 1 };
    let mut served = false;
    let Some(item) = root.get("compute") else { return Ok((compute, served)) };
    let section = item.section(&["engine", "ot", "circuit", "shards"])?;
    if let Some(item) = section.get("engine") {
        let engine = item.choice(&ComputeEngine::NAMES, &[])?;
        (compute.engine, served) = (engine.unwrap_or(compute.engine), engine.is_none());
    }
    if let Some(item) = section.get("ot") {
        compute.ot = named(&item)?;
    }
    if let Some(item) = section.get("circuit") {
        compute.circuit = named(&item)?;
    }
    if let Some(item) = section.get("shards") {
        let shards = item.integer(1..=u64::from(limits::SHARDS))?;
        compute.shards = u32::try_from(shards).expect("checked");
    }
    Ok((compute, served))
}

/// A setting of an engine in the engine's own words; nothing for `auto`.
fn named<T: std::str::FromStr<Err = Error>>(item: &TomlItem<'_, '_>) -> Result<Option<T>, Error> {
    match item.text()? {
        "auto" => Ok(None),
        text => text.parse().map(Some).map_err(|e| item.refuse(format!("use \"auto\" or a name: {e}"))),
    }
}

fn program(root: &TomlSection<'_, '_>, parties: &[Participant]) -> Result<ProgramStudy, Error> {
    let section = root.need("program", "a section [program]")?.section(&["text"])?;
    let item = section.need("text", "text = \"\"\" the program \"\"\"")?;
    let text = item.long_text()?.replace("\r\n", "\n");
    if text.trim().is_empty() {
        return Err(item.error("program.text is empty; write the program between \"\"\" and \"\"\""));
    }
    let clock = root.get("time").as_ref().map(clock).transpose()?;
    let columns = columns(&root.need("columns", "a section [columns]")?, parties, clock.is_some())?;
    let ((to, public), noise) = match root.get("release") {
        Some(item) => {
            let section = item.section(&["noise", "candidates", "to", "public"])?;
            (viewers(&section, parties)?, noise(&section, parties.len())?)
        }
        None => ((Vec::new(), None), NoiseFrom::Inside),
    };
    let text_line = item.source.text_line(item.value.span());
    Ok(ProgramStudy { source: ProgramSource { text, columns, clock }, text_line, to, public, noise })
}

fn columns(
    item: &TomlItem<'_, '_>,
    parties: &[Participant],
    has_clock: bool,
) -> Result<Vec<ProgramColumn>, Error> {
    let section = item.open_section()?;
    let mut columns = Vec::new();
    for (name, item) in section.entries() {
        if !is_name(name) {
            let shown = super::reader::printable(name);
            return Err(item.error(format!("column name \"{shown}\": {NAME_RULE}")));
        }
        columns.push(program_column(name, &item, parties, has_clock)?);
    }
    if columns.is_empty() {
        return Err(section.error("[columns] is empty; add: name = { party = \"...\", column = \"...\" }"));
    }
    columns.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(columns)
}

/// A study that only matches: a spine takes no columns, shares are of some.
fn match_only(
    root: &TomlSection<'_, '_>,
    parties: &[Participant],
    protocol: &dyn Matcher,
) -> Result<ProgramSource, Error> {
    let clock = root.get("time").as_ref().map(clock).transpose()?;
    let columns = match (protocol.features().form.shared().is_some(), root.get("columns")) {
        (true, _) => {
            let item = root.need("columns", "a section [columns]: what the shares are of")?;
            columns(&item, parties, clock.is_some())?
        }
        (false, None) => Vec::new(),
        (false, Some(item)) => {
            return Err(item.error(format!(
                "[columns] are for protocols that give shares of them, and \"{}\" gives positions of rows: \
                 remove the section",
                protocol.name()
            )));
        }
    };
    let mut text = String::from("tacit-program/2\nname \"match\"\nclass dp\n");
    parties.iter().for_each(|member| text += &format!("party {}\n", member.name));
    for column in &columns {
        let ty = match column.cell {
            None | Some(CellType::Integer) => "i64",
            Some(CellType::Time) => "u32",
            Some(CellType::Label(_)) => "u8",
        };
        text += &format!("column {} {ty} {}\n", column.name, column.party);
    }
    text += "row\ncombine\nrelease\n";
    Ok(ProgramSource { text, columns, clock })
}

fn program_column(
    name: &str,
    item: &TomlItem<'_, '_>,
    parties: &[Participant],
    has_clock: bool,
) -> Result<ProgramColumn, Error> {
    let section = item.section(&["party", "column", "type", "values"])?;
    let party = section.need("party", "party = \"the owner's name\"")?;
    let known: Vec<(&str, &str)> = parties.iter().map(|m| (m.name.as_str(), m.name.as_str())).collect();
    let party = party.choice(&known, &[])?.to_owned();
    let column = section.need("column", "column = \"name in the owner's file\"")?.text()?.to_owned();
    let kinds = [("integer", 0), ("time", 1), ("label", 2)];
    let kind = section.get("type").map(|kind| kind.choice(&kinds, &[])).transpose()?;
    let cell = match (kind, section.get("values")) {
        (Some(2), _) => {
            let values = section.need("values", "values = [\"no\", \"yes\"]")?;
            Some(CellType::Label(labels(&values, MAX_CATEGORIES)?))
        }
        (_, Some(values)) => return Err(values.error(format!("{} needs type = \"label\"", values.path))),
        (Some(1), None) if !has_clock => {
            return Err(section.error(format!("columns.{name} is a time; add a section [time]")));
        }
        (Some(1), None) => Some(CellType::Time),
        (Some(_), None) => Some(CellType::Integer),
        (None, None) => None,
    };
    Ok(ProgramColumn { name: name.to_owned(), party, column, cell })
}
