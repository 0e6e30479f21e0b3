//! The section `[match]`: which protocol matches rows, by which identifiers, and what each protocol lets a
//! study set.

use super::Decimal;
use super::KindName;
use super::Participant;
use super::hash::FieldHasher;
use super::reader::{TomlItem, TomlSection, either};
use super::servers::JOINERS;
use crate::phone;
use base::Error;
use matching::collecting;
use matching::dummies::PARTIES_MAX;
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
    pub protocol: Protocol,
    /// The identifier columns (of the same names at all parties), the best first.
    pub identifiers: Vec<Identifier>,
    /// What happens to a second line of the same identifier.
    pub duplicates: Duplicates,
    /// Dummy rows that hide the exact sizes; `None` discloses these, or the protocol has no use for dummies.
    pub dummies: Option<DummyRule>,
}

/// A matching protocol, with what a study may set of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Private-ID by one identifier per row, among any number of parties: a common spine.
    Pid,
    /// Private-ID by several identifiers per row, between two parties: a common spine.
    MultiPid {
        /// What happens to rows of the advertiser that match both arms.
        contaminated: Contaminated,
    },
    /// Private inner join: shares of the columns of those rows that both have.
    Ps3i {
        /// What turns columns into shares.
        backend: Backend,
    },
    /// Private inner join where a row of the publisher may match several rows of the advertiser.
    Collecting {
        /// M: most matches kept of one row of the publisher.
        slots: u32,
        /// Most rows of the publisher that one row of the advertiser may match.
        degree: u32,
        /// What happens to rows of the advertiser that match both arms.
        contaminated: Contaminated,
    },
    /// Circuit-PSI: shares of who is in both, so that not even their number is told.
    CircuitPsi,
    /// Every party has the same rows, by an identifier that is known to all. For programs, with any number of
    /// parties.
    Aligned,
    /// Two of four servers join rows by keyed hashes of one identifier; the owners share the key. For studies
    /// that servers compute.
    SaltedKey,
}

impl Protocol {
    /// Its name in a study file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pid | Self::MultiPid { .. } => "pid",
            Self::Ps3i { .. } => "ps3i",
            Self::Collecting { .. } => "collecting",
            Self::CircuitPsi => "circuit-psi",
            Self::Aligned => "aligned",
            Self::SaltedKey => "salted-key",
        }
    }

    /// Whether what comes out are shares of the columns rather than positions on a common spine.
    #[must_use]
    pub fn joins(self) -> bool {
        matches!(self, Self::Ps3i { .. } | Self::Collecting { .. } | Self::CircuitPsi)
    }

    /// What happens to contaminated rows.
    #[must_use]
    pub fn contaminated(self) -> Contaminated {
        match self {
            Self::MultiPid { contaminated } | Self::Collecting { contaminated, .. } => contaminated,
            Self::Pid | Self::Ps3i { .. } | Self::CircuitPsi | Self::Aligned | Self::SaltedKey => {
                Contaminated::Ignore
            }
        }
    }

    /// Whether dummy rows can hide the sizes that it tells.
    fn takes_dummies(self) -> bool {
        !matches!(self, Self::Aligned | Self::SaltedKey)
    }

    /// The settings of `[match]` that only some protocols have.
    fn own_settings(self) -> &'static [&'static str] {
        match self {
            Self::Pid | Self::CircuitPsi | Self::Aligned | Self::SaltedKey => &[],
            Self::MultiPid { .. } => &["contaminated"],
            Self::Ps3i { .. } => &["backend"],
            Self::Collecting { .. } => &["slots", "degree", "contaminated"],
        }
    }
}

/// What turns columns into shares in a `ps3i` study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A permutation network over oblivious transfer.
    PermuteShare,
    /// Additively homomorphic encryption: fewer rounds, much more computation.
    Paillier,
}

impl Backend {
    const NAMES: [(&'static str, Self); 2] =
        [("permute-share", Self::PermuteShare), ("paillier", Self::Paillier)];

    /// Its name in a study file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, backend)| *backend == self).map_or("", |(name, _)| name)
    }
}

/// What happens to contaminated rows: those of the advertiser that match both arms of the publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contaminated {
    /// Nobody looks for them: the advertiser does not learn how large the arms are.
    Ignore,
    /// They are counted, in the publisher's report, and matched as everybody is.
    Count,
    /// They are counted, and matched with nobody.
    Drop,
}

impl Contaminated {
    const NAMES: [(&'static str, Self); 3] =
        [("ignore", Self::Ignore), ("count", Self::Count), ("drop", Self::Drop)];

    /// Its name in a study file.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, rule)| *rule == self).map_or("", |(name, _)| name)
    }
}

/// Noise in the sizes that a match tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DummyRule {
    /// The epsilon of each party's view of the other's sizes.
    pub epsilon: Decimal,
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
        Self { epsilon: Decimal::from_nano(100_000_000), delta_places: 9 }
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
    let protocol = protocol(&section, kind, parties, identifiers.len())?;
    if identifiers.len() > 1 && !matches!(protocol, Protocol::MultiPid { .. } | Protocol::Collecting { .. }) {
        let and = if parties > 2 && protocol == Protocol::Pid { " among more than two parties" } else { "" };
        return Err(list.error(format!(
            "match.identifiers names {} columns; \"{}\"{and} matches by exactly 1: of several, use \"pid\" \
             between two parties or \"collecting\"",
            identifiers.len(),
            protocol.name()
        )));
    }
    let item = section.need("duplicates", "duplicates = \"error\"")?;
    let collecting = matches!(protocol, Protocol::Collecting { .. });
    let choices = &Duplicates::NAMES[..if collecting { 4 } else { 3 }];
    let duplicates = item.choice(choices, &[])?;
    bounded(&item, protocol, duplicates, identifiers.len())?;
    let dummies = match section.get("dummies") {
        Some(item) if !protocol.takes_dummies() => {
            return Err(
                item.refuse(format!("\"{}\" has no use for dummies: remove the line", protocol.name()))
            );
        }
        Some(item) => dummies(&item)?,
        None => protocol.takes_dummies().then(DummyRule::default),
    };
    if protocol == Protocol::Pid && parties > PARTIES_MAX && dummies.is_some() {
        return Err(section.error(format!(
            "dummies hide overlaps among at most {PARTIES_MAX} parties, the study has {parties}: write \
             dummies = \"off\""
        )));
    }
    if protocol.contaminated() != Contaminated::Ignore && dummies.is_some() {
        return Err(section.error(format!(
            "match.contaminated = \"{}\" tells the exact sizes of both arms, which dummies do not hide: \
             write dummies = \"off\", or contaminated = \"ignore\"",
            protocol.contaminated().name()
        )));
    }
    Ok(MatchRule { protocol, identifiers, duplicates, dummies })
}

/// How far one line of a file reaches must have a bound, or no noise hides it. By several identifiers a line
/// that is put together with others ties any number of them to each other.
fn bounded(
    item: &TomlItem<'_, '_>,
    protocol: Protocol,
    duplicates: Duplicates,
    identifiers: usize,
) -> Result<(), Error> {
    let use_instead = match (protocol, duplicates) {
        (Protocol::MultiPid { .. }, Duplicates::Merge) => "\"error\" or \"first\"",
        (Protocol::Collecting { .. }, Duplicates::Merge | Duplicates::First) if identifiers > 1 => {
            "\"error\" or \"keep\""
        }
        _ => return Ok(()),
    };
    Err(item.refuse(format!(
        "by several identifiers one line could change any number of rows, which no noise hides: use \
         {use_instead}"
    )))
}

/// What a study file calls a protocol.
#[derive(Clone, Copy, PartialEq)]
enum ProtocolName {
    Pid,
    Ps3i,
    Collecting,
    CircuitPsi,
    Aligned,
    SaltedKey,
}

impl ProtocolName {
    const ALL: [(&str, Self); 6] = [
        ("pid", Self::Pid),
        ("ps3i", Self::Ps3i),
        ("collecting", Self::Collecting),
        ("circuit-psi", Self::CircuitPsi),
        ("aligned", Self::Aligned),
        ("salted-key", Self::SaltedKey),
    ];

    fn read(section: &TomlSection<'_, '_>, kind: KindName, parties: usize) -> Result<Self, Error> {
        let item = section.need("protocol", "protocol = \"pid\"")?;
        let all = Self::ALL;
        let (program, alone) = ([all[0], all[4], all[5]], [all[0], all[1], all[2], all[3], all[4]]);
        // Several advertisers together are one table of all parties.
        let spines = kind == KindName::Program || kind == KindName::Lift && parties > 2;
        let known: &[(&str, Self)] = match kind {
            _ if spines => &program,
            KindName::Lift | KindName::Program => &all,
            KindName::Match => &alone,
        };
        if item.text()? == "multi-pid" {
            return Err(item.refuse("use \"pid\" and name several identifiers"));
        }
        let met = all.iter().find(|(name, _)| item.text().is_ok_and(|text| text == *name));
        if let (Some((_, Self::Ps3i | Self::Collecting | Self::CircuitPsi)), true) = (met, spines) {
            return Err(item.refuse(
                "it gives shares of the rows that both have, and this study runs on a common spine; use \
                 \"pid\" or \"aligned\"",
            ));
        }
        item.choice(known, &[])
    }
}

fn protocol(
    section: &TomlSection<'_, '_>,
    kind: KindName,
    parties: usize,
    identifiers: usize,
) -> Result<Protocol, Error> {
    let protocol = match ProtocolName::read(section, kind, parties)? {
        ProtocolName::Pid if identifiers > 1 && parties == 2 => {
            Protocol::MultiPid { contaminated: contaminated(section, kind == KindName::Lift)? }
        }
        ProtocolName::Pid => Protocol::Pid,
        ProtocolName::Ps3i => Protocol::Ps3i {
            backend: match section.get("backend") {
                Some(item) => item.choice(&Backend::NAMES, &[])?,
                None => Backend::PermuteShare,
            },
        },
        ProtocolName::Collecting => collecting_protocol(section, kind)?,
        ProtocolName::CircuitPsi => Protocol::CircuitPsi,
        ProtocolName::Aligned => Protocol::Aligned,
        ProtocolName::SaltedKey => Protocol::SaltedKey,
    };
    foreign_settings(section, protocol)?;
    Ok(protocol)
}

fn collecting_protocol(section: &TomlSection<'_, '_>, kind: KindName) -> Result<Protocol, Error> {
    // A match by itself is bounded by its protocol alone.
    let [most_slots, most_degree] = match kind {
        KindName::Match => [collecting::CAP_MAX; 2],
        KindName::Lift | KindName::Program => [MAX_SLOTS, MAX_DEGREE],
    };
    let whole = |key: &str, most: u32, usual: u32| match section.get(key) {
        Some(item) => item.integer(1..=most.into()).map(|n| n as u32),
        None => Ok(usual),
    };
    let slots = whole("slots", most_slots, 4)?;
    let degree = whole("degree", most_degree, 1)?;
    let contaminated = contaminated(section, kind != KindName::Match)?;
    if let (Some(item), Contaminated::Count) = (section.get("contaminated"), contaminated) {
        return Err(item.refuse("\"collecting\" drops them or does not look: use \"ignore\" or \"drop\""));
    }
    Ok(Protocol::Collecting { slots, degree, contaminated })
}

fn contaminated(section: &TomlSection<'_, '_>, has_arms: bool) -> Result<Contaminated, Error> {
    let Some(item) = section.get("contaminated") else { return Ok(Contaminated::Ignore) };
    let contaminated = item.choice(&Contaminated::NAMES, &[])?;
    if !has_arms {
        return Err(item.refuse("only a lift study has arms: remove the line"));
    }
    Ok(contaminated)
}

/// A setting of another protocol would be read as if it held.
fn foreign_settings(section: &TomlSection<'_, '_>, protocol: Protocol) -> Result<(), Error> {
    let owners = [
        ("backend", "\"ps3i\""),
        ("slots", "\"collecting\""),
        ("degree", "\"collecting\""),
        ("contaminated", "\"collecting\" and of \"pid\" by several identifiers"),
    ];
    for (key, owner) in owners {
        if let Some(item) = section.get(key)
            && !protocol.own_settings().contains(&key)
        {
            return Err(item.refuse(format!(
                "it is a setting of {owner}, and match.protocol is \"{}\": remove the line",
                protocol.name()
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

fn epsilon(item: &TomlItem<'_, '_>) -> Result<Decimal, Error> {
    let rule = format!("use a decimal from 0.001 to {MAX_EPSILON}: \"0.1\"");
    let met = Decimal::parse(&number(item)?).ok_or_else(|| item.refuse(&rule))?;
    let range = Decimal::from_nano(1_000_000)..=Decimal::from_nano(MAX_EPSILON * 1_000_000_000);
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
    /// What these parties of one run learn from the match besides its result, in one clause.
    #[must_use]
    pub fn tells(&self, parties: &[Participant]) -> String {
        let sizes = match &self.dummies {
            Some(rule) => format!(
                "with made-up rows among them that hide the exact numbers (epsilon {}, delta {:e})",
                rule.epsilon,
                rule.delta()
            ),
            None => "exactly".to_owned(),
        };
        match self.protocol {
            Protocol::Pid => {
                let overlaps = match parties {
                    [first, _, _, ..] => format!(
                        "; {} alone also counts, for every set of parties, the identifiers that these and no \
                         others have, {sizes}",
                        first.name
                    ),
                    _ => String::new(),
                };
                format!("all learn the sizes of all sets and of the match, {sizes}{overlaps}")
            }
            Protocol::MultiPid { contaminated } => {
                let arms = match contaminated {
                    Contaminated::Ignore => "",
                    Contaminated::Count | Contaminated::Drop => {
                        "; the advertiser learns the sizes of both arms exactly"
                    }
                };
                format!(
                    "both learn both set sizes and the size of the match, {sizes}; the publisher (of a \
                     program the first party) also sees which rows share identifiers with which, without \
                     knowing whose rows they are{arms}"
                )
            }
            Protocol::Ps3i { .. } => format!("both learn both set sizes and the size of the match, {sizes}"),
            Protocol::Collecting { contaminated, .. } => {
                let arms = match contaminated {
                    Contaminated::Ignore | Contaminated::Count => "",
                    Contaminated::Drop => " and how many of them are in each arm",
                };
                format!(
                    "the advertiser learns how many rows the publisher has{arms}; the publisher learns how \
                     many rows the advertiser has, and which of them share identifiers with which of its \
                     own, without knowing whose rows they are; numbers {sizes}"
                )
            }
            Protocol::CircuitPsi => {
                format!("both learn both set sizes, {sizes}, and nothing of the match, not even its size")
            }
            Protocol::Aligned => "the identifiers are public: all files must hold the same".to_owned(),
            Protocol::SaltedKey => format!(
                "the parties learn the sizes of all sets and of the match, exactly; {JOINERS} servers that \
                 own no data see keyed hashes of the identifiers, and so which rows of different parties are \
                 equal, not whose they are; the others see the sizes"
            ),
        }
    }
}

/// Everything that `[match]` says, into the study's hash.
pub(super) fn encode(matching: &MatchRule, to: &mut FieldHasher) {
    to.text("protocol", matching.protocol.name());
    match matching.protocol {
        Protocol::Ps3i { backend } => to.text("backend", backend.name()),
        Protocol::Collecting { slots, degree, contaminated } => {
            to.number("slots", slots.into());
            to.number("degree", degree.into());
            to.text("contaminated", contaminated.name());
        }
        Protocol::MultiPid { contaminated } => to.text("contaminated", contaminated.name()),
        Protocol::Pid | Protocol::CircuitPsi | Protocol::Aligned | Protocol::SaltedKey => {}
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
        to.number("nano epsilon", dummies.epsilon.nano());
        to.number("delta places", dummies.delta_places.into());
    }
}
