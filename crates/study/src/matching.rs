//! The section `[match]`: which protocol matches rows, by which identifiers, and what each protocol lets a
//! study set.

use super::KindName;
use super::hash::FieldHasher;
use super::reader::{TomlItem, TomlSection, either};
use crate::phone;
use base::Error;
use matching::dummies::PARTIES_MAX;
use matching::{
    ContaminatedRule, MATCHERS, MatchFeatures, MatchOptions, Matcher, OutputForm, RepeatRule, ShareBackend,
    collecting,
};
use release::rational::{Rational, decimal, nano, ratio, shown};
use toml::de::DeValue;

/// Most identifiers of one row.
pub const MAX_IDENTIFIERS: usize = 8;
/// Largest weight of an identifier.
pub const MAX_WEIGHT: u32 = 1_000_000;
/// Most matches that a collecting lift study keeps of one row of the publisher: as many as its program takes.
pub const MAX_SLOTS: u32 = studies::lift::MAX_SLOTS as u32;
/// Most rows of the publisher that one row of the advertiser may match in a collecting lift study.
pub const MAX_DEGREE: u32 = 64;
/// Largest epsilon of the noise in sizes.
const MAX_EPSILON: u64 = 10;
/// Delta is `10^-d` with d in this range.
const DELTA_PLACES: std::ops::RangeInclusive<u8> = 3..=15;

/// How rows are matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    /// The protocol.
    pub matcher: &'static dyn Matcher,
    /// What turns columns into shares, where the protocol has several back ends.
    pub backend: ShareBackend,
    /// M: most matches kept of one row of the publisher, by "collecting".
    pub slots: u32,
    /// Most rows of the publisher that one row of the advertiser may match, by "collecting".
    pub degree: u32,
    /// What happens to rows of the advertiser that match both arms.
    pub contaminated: ContaminatedRule,
    /// The identifier columns (of the same names at all parties), the best first.
    pub identifiers: Vec<Identifier>,
    /// What happens to a second line of the same identifier.
    pub duplicates: Duplicates,
    /// Dummy rows that hide the exact sizes; `None` discloses these, or the protocol has no use for dummies.
    pub dummies: Option<DummyRule>,
}

/// Noise in the sizes that a match tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DummyRule {
    /// The epsilon of each party's view of the other's sizes.
    pub epsilon: Rational,
    /// Its delta is `10^-delta_places`.
    pub delta_places: u8,
}

impl DummyRule {
    /// The delta as a number.
    #[must_use]
    pub fn delta(&self) -> f64 {
        10f64.powi(-i32::from(self.delta_places))
    }
}

impl Default for DummyRule {
    fn default() -> Self {
        Self { epsilon: ratio(1, 10), delta_places: 9 }
    }
}

/// An identifier column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier {
    /// Its name in all parties' files.
    pub name: String,
    /// Applied in this order, after Unicode NFC.
    pub normalise: Vec<Normaliser>,
    /// What sort of identifier it is: those of one sort may match each other, others never do. The name
    /// unless told.
    pub sort: String,
    /// A match by a heavier identifier is preferred; among equal weights, one by an earlier identifier.
    pub weight: u32,
}

/// One step of normalising an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normaliser {
    /// Removes white space at both ends.
    Trim,
    /// Lower case by Unicode's rules.
    Lowercase,
    /// Removes all white space.
    NoSpaces,
    /// Removes white space at both ends; every other run of it becomes one space.
    SingleSpaces,
    /// Unicode NFKC: full-width and other compatible forms become the usual ones.
    Nfkc,
    /// Keeps the digits 0 to 9 only.
    Digits,
    /// A telephone number as `+` and 7 to 15 digits. One without `+` or what is dialled before another
    /// country's code is a national one: it loses the prefix of national calls and gets this country's
    /// calling code, without which it is refused, as is what can be read in two ways.
    Phone(Option<u16>),
    /// Trims, lowers, drops a dot at the end and checks for exactly one `@` with text on both sides, without
    /// white space, invisible characters and signs of lists.
    Email,
    /// As `email`, and what follows a `+` before the `@` is removed.
    EmailUntagged,
}

impl Normaliser {
    const NAMES: [(&'static str, Self); 9] = [
        ("trim", Self::Trim),
        ("lowercase", Self::Lowercase),
        ("no-spaces", Self::NoSpaces),
        ("single-spaces", Self::SingleSpaces),
        ("nfkc", Self::Nfkc),
        ("digits", Self::Digits),
        ("phone", Self::Phone(None)),
        ("email", Self::Email),
        ("email-untagged", Self::EmailUntagged),
    ];

    /// Its name in a study file: `phone:44` with a country.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Phone(Some(country)) => format!("phone:{country}"),
            other => {
                let found = Self::NAMES.iter().find(|(_, step)| *step == other);
                found.map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
        }
    }

    fn parse(item: &TomlItem<'_, '_>) -> Result<Self, Error> {
        let text = item.text()?;
        let Some(country) = text.strip_prefix("phone:") else { return item.choice(&Self::NAMES, &[]) };
        let rule = "a calling code has 1 to 3 digits and does not begin with 0: phone:44";
        let digits = (1..=3).contains(&country.len()) && country.bytes().all(|b| b.is_ascii_digit());
        match country.parse() {
            Ok(code) if digits && !country.starts_with('0') => match phone::is_known(code) {
                true => Ok(Self::Phone(Some(code))),
                false => Err(item.refuse(format!(
                    "how national numbers are written there is not known: use \"phone\", with + and the \
                     country in every cell, or one of {}",
                    phone::codes()
                ))),
            },
            _ => Err(item.refuse(rule)),
        }
    }

    /// Its name with the version of what it does: two sides that would make other identifiers of a cell hold
    /// other studies.
    fn versioned(self) -> String {
        match self {
            Self::Phone(_) | Self::Email | Self::EmailUntagged => format!("{}/2", self.name()),
            _ => self.name(),
        }
    }
}

/// What happens to a second line of the same identifier. Every case is counted in the owner's report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// It is an error that names both lines.
    Error,
    /// The first line counts; a later line with several identifiers keeps those that are its own. Two arms
    /// for one identifier stay an error.
    First,
    /// The advertiser's lines are put together; on the publisher's side it is an error.
    Merge,
    /// Rows keep identifiers that other rows have too, and lines of the wide layout are all rows of their
    /// own; for `collecting` only. One identifier in both arms stays an error.
    Keep,
}

impl Duplicates {
    const NAMES: [(&'static str, Self); 4] =
        [("error", Self::Error), ("first", Self::First), ("merge", Self::Merge), ("keep", Self::Keep)];
}

const KEYS: [&str; 9] = [
    "protocol",
    "identifiers",
    "duplicates",
    "normalise",
    "dummies",
    "backend",
    "slots",
    "degree",
    "contaminated",
];

pub(super) fn parse(root: &TomlSection<'_, '_>, kind: KindName, parties: usize) -> Result<MatchRule, Error> {
    let item = root.need("match", "a section [match]")?;
    let section = item.section(&KEYS)?;
    let example = "identifiers = [ { name = \"id\", normalise = [\"trim\", \"lowercase\"] } ]";
    let list = section.need("identifiers", example)?;
    let identifiers = identifiers(&section, &list)?;
    let (matcher, features) = matcher_of(&section, &list, kind, parties, identifiers.len())?;
    foreign_settings(&section, matcher.name(), &features)?;
    let backend = match section.get("backend") {
        Some(item) => item.choice(&ShareBackend::NAMES, &[])?,
        None => ShareBackend::default(),
    };
    let [slots, degree] = caps(&section, kind)?;
    let contaminated = contaminated(&section, kind, matcher.name(), &features)?;
    let item = section.need("duplicates", "duplicates = \"error\"")?;
    let choices = &Duplicates::NAMES[..if features.keeps_repeats { 4 } else { 3 }];
    let duplicates = item.choice(choices, &[])?;
    bounded(&item, &features, duplicates, identifiers.len())?;
    let dummies = match section.get("dummies") {
        Some(item) if !features.dummies => {
            return Err(
                item.refuse(format!("\"{}\" has no use for dummies: remove the line", matcher.name()))
            );
        }
        Some(item) => dummies(&item)?,
        None => features.dummies.then(DummyRule::default),
    };
    if parties > PARTIES_MAX && dummies.is_some() {
        return Err(section.error(format!(
            "dummies hide overlaps among at most {PARTIES_MAX} parties, the study has {parties}: write \
             dummies = \"off\""
        )));
    }
    if contaminated != ContaminatedRule::Ignore && dummies.is_some() {
        return Err(section.error(format!(
            "match.contaminated = \"{}\" tells the exact sizes of both arms, which dummies do not hide: \
             write dummies = \"off\", or contaminated = \"ignore\"",
            contaminated.name()
        )));
    }
    Ok(MatchRule { matcher, backend, slots, degree, contaminated, identifiers, duplicates, dummies })
}

/// How far one line of a file reaches must have a bound, or no noise hides it. By several identifiers a line
/// that is put together with others ties any number of them to each other.
fn bounded(
    item: &TomlItem<'_, '_>,
    features: &MatchFeatures,
    duplicates: Duplicates,
    identifiers: usize,
) -> Result<(), Error> {
    let use_instead = match duplicates {
        _ if identifiers == 1 => return Ok(()),
        Duplicates::Merge | Duplicates::First if features.keeps_repeats => "\"error\" or \"keep\"",
        Duplicates::Merge => "\"error\" or \"first\"",
        Duplicates::Error | Duplicates::First | Duplicates::Keep => return Ok(()),
    };
    Err(item.refuse(format!(
        "by several identifiers one line could change any number of rows, which no noise hides: use \
         {use_instead}"
    )))
}

/// The protocol that the study names, for so many parties and identifiers.
fn matcher_of(
    section: &TomlSection<'_, '_>,
    list: &TomlItem<'_, '_>,
    kind: KindName,
    parties: usize,
    identifiers: usize,
) -> Result<(&'static dyn Matcher, MatchFeatures), Error> {
    let item = section.need("protocol", "protocol = \"pid\"")?;
    // More than two parties are one table of all.
    let spines = parties > 2 && kind != KindName::Match;
    let mut all: Vec<(&'static str, &'static dyn Matcher)> = Vec::new();
    for matcher in MATCHERS {
        if all.iter().all(|(name, _)| *name != matcher.name()) {
            all.push((matcher.name(), matcher));
        }
    }
    if item.text()? == "multi-pid" {
        return Err(item.refuse("use \"pid\" and name several identifiers"));
    }
    let joins = |matcher: &dyn Matcher| matcher.features().form != OutputForm::Spine;
    let met = MATCHERS.into_iter().find(|matcher| item.text().is_ok_and(|text| text == matcher.name()));
    if spines && met.is_some_and(joins) {
        return Err(item.refuse(
            "it gives shares of the rows that both have, and this study runs on a common spine; use \"pid\" \
             or \"aligned\"",
        ));
    }
    all.retain(|(_, matcher)| match kind {
        _ if spines => !joins(*matcher),
        KindName::Lift | KindName::Program => true,
        KindName::Match => !matcher.features().salted,
    });
    let named = item.choice(&all, &[])?.name();
    let fits = |matcher: &dyn Matcher| matcher.name() == named && matcher.features().fits(parties);
    if !MATCHERS.into_iter().any(fits) {
        return Err(item.refuse(format!("it is between two parties, and the study has {parties}")));
    }
    let Some(matcher) = matching::matcher(named, parties, identifiers) else {
        let and = if parties > 2 && named == "pid" { " among more than two parties" } else { "" };
        return Err(list.error(format!(
            "match.identifiers names {identifiers} columns; \"{named}\"{and} matches by exactly 1: of \
             several, use \"pid\" between two parties or \"collecting\""
        )));
    };
    Ok((matcher, matcher.features()))
}

/// Slots and degree.
fn caps(section: &TomlSection<'_, '_>, kind: KindName) -> Result<[u32; 2], Error> {
    // A match by itself is bounded by its protocol alone.
    let [most_slots, most_degree] = match kind {
        KindName::Match => [collecting::CAP_MAX; 2],
        KindName::Lift | KindName::Program => [MAX_SLOTS, MAX_DEGREE],
    };
    let whole = |key: &str, most: u32, usual: u32| match section.get(key) {
        Some(item) => item.integer(1..=most.into()).map(|n| n as u32),
        None => Ok(usual),
    };
    Ok([whole("slots", most_slots, 4)?, whole("degree", most_degree, 1)?])
}

fn contaminated(
    section: &TomlSection<'_, '_>,
    kind: KindName,
    name: &str,
    features: &MatchFeatures,
) -> Result<ContaminatedRule, Error> {
    let Some(item) = section.get("contaminated") else { return Ok(ContaminatedRule::Ignore) };
    let contaminated = item.choice(&ContaminatedRule::NAMES, &[])?;
    if kind != KindName::Lift {
        return Err(item.refuse("only a lift study has arms: remove the line"));
    }
    if !features.contaminated.contains(&contaminated) {
        return Err(
            item.refuse(format!("\"{name}\" drops them or does not look: use \"ignore\" or \"drop\""))
        );
    }
    Ok(contaminated)
}

/// A setting of another protocol would be read as if it held.
fn foreign_settings(
    section: &TomlSection<'_, '_>,
    name: &str,
    features: &MatchFeatures,
) -> Result<(), Error> {
    let looks = features.contaminated.len() > 1;
    let owners = [
        ("backend", features.backends, "\"ps3i\""),
        ("slots", features.slots, "\"collecting\""),
        ("degree", features.slots, "\"collecting\""),
        ("contaminated", looks, "\"collecting\" and of \"pid\" by several identifiers"),
    ];
    for (key, own, owner) in owners {
        if let (Some(item), false) = (section.get(key), own) {
            return Err(item.refuse(format!(
                "it is a setting of {owner}, and match.protocol is \"{name}\": remove the line"
            )));
        }
    }
    Ok(())
}

fn identifiers(section: &TomlSection<'_, '_>, list: &TomlItem<'_, '_>) -> Result<Vec<Identifier>, Error> {
    let items = list.list()?;
    if items.is_empty() || items.len() > MAX_IDENTIFIERS {
        return Err(list.error(format!(
            "match.identifiers names {} columns; list 1 to {MAX_IDENTIFIERS}, the best first",
            items.len()
        )));
    }
    let mut all: Vec<Identifier> = Vec::with_capacity(items.len());
    let mut told = Vec::with_capacity(items.len());
    for item in &items {
        let (identifier, says) = identifier(item, items.len() > 1)?;
        if all.iter().any(|other| other.name == identifier.name) {
            return Err(
                item.error(format!("{}: {} is in the list already; remove one", item.path, identifier.name))
            );
        }
        all.push(identifier);
        told.push(says);
    }
    if let Some(table) = section.get("normalise") {
        let names: Vec<&str> = all.iter().map(|identifier| identifier.name.as_str()).collect();
        let table = table.section(&names)?;
        for (identifier, told) in all.iter_mut().zip(told) {
            match table.get(&identifier.name.clone()) {
                Some(list) if told => {
                    return Err(list.error(format!(
                        "{} has normalise in match.identifiers as well; remove one",
                        identifier.name
                    )));
                }
                Some(list) => identifier.normalise = steps(&list)?,
                None => {}
            }
        }
    }
    Ok(all)
}

/// An identifier, and whether it says how it is normalised.
fn identifier(item: &TomlItem<'_, '_>, several: bool) -> Result<(Identifier, bool), Error> {
    if let DeValue::String(_) = item.value.get_ref() {
        let name = item.text()?.to_owned();
        return Ok((Identifier { sort: name.clone(), name, normalise: Vec::new(), weight: 1 }, false));
    }
    let section = item.section(&["name", "normalise", "sort", "weight"])?;
    let name = section.need("name", "name = \"id\"")?.text()?.to_owned();
    for key in ["sort", "weight"] {
        if let (Some(item), false) = (section.get(key), several) {
            return Err(item.refuse("it tells several identifiers apart, and there is one: remove it"));
        }
    }
    let sort = match section.get("sort") {
        Some(item) => item.name()?.to_owned(),
        None => name.clone(),
    };
    let weight = match section.get("weight") {
        Some(item) => item.integer(1..=MAX_WEIGHT.into())? as u32,
        None => 1,
    };
    let normalise = section.get("normalise").as_ref().map(steps).transpose()?;
    let told = normalise.is_some();
    Ok((Identifier { name, normalise: normalise.unwrap_or_default(), sort, weight }, told))
}

fn steps(list: &TomlItem<'_, '_>) -> Result<Vec<Normaliser>, Error> {
    let mut steps = Vec::new();
    for item in list.list()? {
        let step = Normaliser::parse(&item)?;
        if steps.iter().any(|met| std::mem::discriminant(met) == std::mem::discriminant(&step)) {
            return Err(item.refuse("it is already in the list; remove one"));
        }
        steps.push(step);
    }
    Ok(steps)
}

fn dummies(item: &TomlItem<'_, '_>) -> Result<Option<DummyRule>, Error> {
    let usual = DummyRule::default();
    if let DeValue::String(_) = item.value.get_ref() {
        let on = item.choice(&[("on", true), ("off", false)], &[])?;
        return Ok(on.then_some(usual));
    }
    if !matches!(item.value.get_ref(), DeValue::Table(_)) {
        let names = either(&["on", "off"]);
        return Err(item.refuse(format!("use {names}, or {{ epsilon = \"0.1\", delta = \"1e-9\" }}")));
    }
    let section = item.section(&["epsilon", "delta"])?;
    let epsilon = match section.get("epsilon") {
        Some(item) => epsilon(&item)?,
        None => usual.epsilon,
    };
    let delta_places = match section.get("delta") {
        Some(item) => delta(&item)?,
        None => usual.delta_places,
    };
    Ok(Some(DummyRule { epsilon, delta_places }))
}

/// A number as text or as itself.
fn number(item: &TomlItem<'_, '_>) -> Result<String, Error> {
    match item.value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        _ => item.number_text(),
    }
}

fn epsilon(item: &TomlItem<'_, '_>) -> Result<Rational, Error> {
    let rule = format!("use a decimal from 0.001 to {MAX_EPSILON}: \"0.1\"");
    let met = decimal(&number(item)?).ok_or_else(|| item.refuse(&rule))?;
    let range = ratio(1, 1000)..=ratio(MAX_EPSILON, 1);
    if range.contains(&met) { Ok(met) } else { Err(item.refuse(&rule)) }
}

/// The d of a delta `10^-d`, written `1e-9`.
pub(crate) fn delta(item: &TomlItem<'_, '_>) -> Result<u8, Error> {
    parse_delta(&number(item)?).map_err(|rule| item.refuse(rule))
}

/// The d of `1e-d`.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_delta(text: &str) -> Result<u8, &'static str> {
    let text = text.to_ascii_lowercase();
    let places = text.strip_prefix("1e-").or_else(|| text.strip_prefix("1.0e-"));
    let places = places.filter(|digits| digits.len() <= 2).and_then(|digits| digits.parse().ok());
    let rule = "use a power of ten from \"1e-15\" to \"1e-3\"";
    places.filter(|places| DELTA_PLACES.contains(places)).ok_or(rule)
}

impl MatchRule {
    /// What the parties learn from the match besides its result, in one clause. `first` is the name of the
    /// party that the study has first.
    #[must_use]
    pub fn tells(&self, first: &str) -> String {
        let sizes = match &self.dummies {
            Some(rule) => format!(
                "with made-up rows among them that hide the exact numbers (epsilon {}, delta {})",
                shown(&rule.epsilon),
                page::numbers::scientific(rule.delta())
            ),
            None => "exactly".to_owned(),
        };
        self.matcher.tells(&sizes, first, &self.options())
    }

    /// How the match runs, as far as the study says.
    #[must_use]
    pub fn options(&self) -> MatchOptions {
        MatchOptions {
            repeats: match self.duplicates {
                Duplicates::Error => RepeatRule::Error,
                Duplicates::First | Duplicates::Merge => RepeatRule::Replace,
                Duplicates::Keep => RepeatRule::Keep,
            },
            weights: self.identifiers.iter().map(|identifier| identifier.weight).collect(),
            contaminated: self.contaminated,
            slots: self.slots,
            degree: self.degree,
            backend: self.backend,
            ..MatchOptions::default()
        }
    }
}

/// Everything that `[match]` says, into the study's hash.
pub(super) fn encode(matching: &MatchRule, to: &mut FieldHasher) {
    let features = matching.matcher.features();
    to.text("protocol", matching.matcher.name());
    if features.backends {
        to.text("backend", matching.backend.name());
    }
    if features.slots {
        to.number("slots", matching.slots.into());
        to.number("degree", matching.degree.into());
    }
    if features.contaminated.len() > 1 {
        to.text("contaminated", matching.contaminated.name());
    }
    to.number("identifiers", matching.identifiers.len() as u64);
    for identifier in &matching.identifiers {
        to.text("identifier", &identifier.name);
        let steps: Vec<String> = identifier.normalise.iter().map(|step| step.versioned()).collect();
        to.texts("normalise", steps.iter().map(String::as_str));
        to.text("sort", &identifier.sort);
        to.number("weight", identifier.weight.into());
    }
    let rule = Duplicates::NAMES.iter().find(|(_, rule)| *rule == matching.duplicates);
    to.text("duplicates", rule.map_or("", |(name, _)| name));
    to.number("dummies", u64::from(matching.dummies.is_some()));
    if let Some(dummies) = &matching.dummies {
        to.number("nano epsilon", nano(&dummies.epsilon));
        to.number("delta places", dummies.delta_places.into());
    }
}
