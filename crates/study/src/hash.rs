//! The hash of a study, and where two studies part.
//!
//! The hash is BLAKE3 over a canonical encoding of the *typed* study: every field in a fixed order, as
//! `length(name) name length(value) value` with 64-bit little-endian lengths, so no two studies share an
//! encoding. Comments, white space, order of keys and defaults written out do not matter; everything else
//! does.

use super::reader::{TomlSource, printable};
use super::{
    Advertiser, Categories, CellType, Compute, ComputeEngine, EventLayout, EventValue, LiftStudy,
    NegativeRule, NoiseFrom, Overflow, Participant, PartyRole, ProgramSource, ProgramStudy, Publisher,
    Question, ReleaseRule, Study,
};
use crate::time::Clock;
use base::Error;
use release::rational::{Rational, decimal, nano, shown};
use std::collections::BTreeMap;
use std::fmt;
use toml::de::DeValue;

/// The hash parties consent to. Shown as twelve hex digits; compared, signed and stored in full.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StudyHash([u8; 32]);

impl StudyHash {
    /// From its bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// From 64 hex digits; spaces between them do not matter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        base::unhex(&text.replace(' ', "")).map(Self)
    }

    /// All 32 bytes: what parties compare.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// All 64 hex digits: what an allow-list holds (twelve could be met by search).
    #[must_use]
    pub fn full(&self) -> String {
        base::hex(&self.0)
    }
}

impl fmt::Display for StudyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = self.full();
        write!(f, "{} {} {}", &hex[..4], &hex[4..8], &hex[8..12])
    }
}

impl fmt::Debug for StudyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full())
    }
}

impl Study {
    /// The hash of what this study says.
    #[must_use]
    pub fn hash(&self) -> StudyHash {
        if let Some(whole) = self.part_of {
            // A part says nothing of its own: the whole and the advertiser fix it.
            let mut to = FieldHasher(blake3::Hasher::new_derive_key("tacit study part 1"));
            to.field("whole", whole.as_bytes());
            self.parties.iter().for_each(|member| to.text("party", &member.name));
            return StudyHash(*to.0.finalize().as_bytes());
        }
        StudyHash::of(&self.parties, std::slice::from_ref(self))
    }

    /// The hash of what decides a match: the parties of this run, what they bring, and the section `[match]`.
    #[must_use]
    pub fn matching_hash(&self) -> StudyHash {
        let mut to = FieldHasher(blake3::Hasher::new_derive_key("tacit matching 1"));
        encode_parties(&self.parties, &mut to);
        super::matching::encode(&self.matching, &mut to);
        StudyHash(*to.0.finalize().as_bytes())
    }
}

impl StudyHash {
    /// Of a study file of these parties and runs. What is the same in all runs is said once.
    pub(super) fn of(parties: &[Participant], runs: &[Study]) -> Self {
        let first = runs.first().expect("a study file asks for a run");
        let mut hasher = FieldHasher(blake3::Hasher::new_derive_key("tacit study 1"));
        let to = &mut hasher;
        to.text("name", &first.name);
        to.text("title", &first.title);
        encode_parties(parties, to);
        super::matching::encode(&first.matching, to);
        // Studies of before say nothing of it, and keep their hash.
        if let Some(unit) = &first.unit {
            to.text("privacy unit", unit);
        }
        if runs.len() > 1 {
            to.text("kind", "lifts");
        }
        for run in runs {
            match &run.kind {
                Question::Lift(lift) => encode_lift(lift, to),
                Question::Program(program) => encode_program(program, to),
                Question::Match(columns) => encode_match(columns, to),
            }
        }
        encode_compute(&first.compute, first.servers.is_some(), to);
        super::servers::encode(first.servers.as_ref(), to);
        Self(*hasher.0.finalize().as_bytes())
    }
}

fn encode_compute(compute: &Compute, served: bool, to: &mut FieldHasher) {
    to.text("engine", ComputeEngine::name((!served).then_some(compute.engine)));
    // What is left to the version adds nothing, so that studies from before these settings keep their hash.
    if let Some(ot) = compute.ot {
        to.text("ot", &ot.to_string());
    }
    if let Some(circuit) = compute.circuit {
        to.text("circuit", &circuit.to_string());
    }
    to.number("shards", u64::from(compute.shards));
}

fn encode_parties(parties: &[Participant], to: &mut FieldHasher) {
    to.number("parties", parties.len() as u64);
    for member in parties {
        to.text("party", &member.name);
        let role = match &member.role {
            PartyRole::Publisher => "lift publisher",
            PartyRole::Advertiser => "lift advertiser",
            PartyRole::Owner(name) => name,
        };
        to.text("role", role);
        to.text("key", &member.key);
    }
}

/// Writes named, length-prefixed fields into a hash.
pub(super) struct FieldHasher(blake3::Hasher);

impl FieldHasher {
    fn field(&mut self, name: &str, value: &[u8]) {
        self.0.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        self.0.update(&(value.len() as u64).to_le_bytes()).update(value);
    }

    pub fn text(&mut self, name: &str, value: &str) {
        self.field(name, value.as_bytes());
    }

    pub fn number(&mut self, name: &str, value: u64) {
        self.field(name, &value.to_le_bytes());
    }

    pub fn texts<'t>(&mut self, name: &str, values: impl ExactSizeIterator<Item = &'t str>) {
        self.number(name, values.len() as u64);
        values.for_each(|value| self.text("item", value));
    }

    /// What may be absent is a list of at most one.
    fn optional(&mut self, name: &str, value: Option<&str>) {
        self.texts(name, value.into_iter());
    }
}

fn encode_clock(clock: &Clock, to: &mut FieldHasher) {
    to.field("origin", &clock.origin_seconds().to_le_bytes());
    to.text("unit", clock.unit().name());
    to.number("span", u64::from(clock.span()));
}

fn encode_lift(lift: &LiftStudy, to: &mut FieldHasher) {
    to.text("kind", "lift");
    encode_clock(&lift.clock, to);
    encode_publisher(&lift.publisher, to);
    lift.advertisers.iter().for_each(|advertiser| encode_advertiser(advertiser, to));
    to.number("within", lift.rule.within.map_or(0, u64::from));
    to.number("clamp", u64::from(lift.rule.clamp));
    to.number("lower is better", u64::from(lift.rule.lower_is_better));
    encode_release(&lift.release, to);
    // Studies from before several advertisers could be measured together have one.
    if lift.advertisers.len() > 1 {
        to.text("advertisers", "together");
    }
}

fn encode_publisher(publisher: &Publisher, to: &mut FieldHasher) {
    to.text("arm", &publisher.arm);
    to.text("test", &publisher.test);
    to.text("control", &publisher.control);
    // Studies of before leave no arm out, and keep their hash.
    if !publisher.leave_out.is_empty() {
        to.texts("arms left out", publisher.leave_out.iter().map(String::as_str));
    }
    to.text("opportunity", &publisher.opportunity);
    to.optional("impressions", publisher.impressions.as_deref());
    encode_categories("breakdown", publisher.breakdown.as_ref(), to);
}

fn encode_categories(name: &str, categories: Option<&Categories>, to: &mut FieldHasher) {
    to.optional(name, categories.map(|c| c.column.as_str()));
    if let Some(categories) = categories {
        to.texts("values", categories.values.iter().map(String::as_str));
    }
}

fn encode_advertiser(advertiser: &Advertiser, to: &mut FieldHasher) {
    to.text(
        "layout",
        match advertiser.layout {
            EventLayout::Events => "events",
            EventLayout::Wide => "wide",
        },
    );
    to.texts("event", advertiser.events.iter().map(String::as_str));
    match &advertiser.value {
        EventValue::Constant(value) => to.number("constant value", u64::from(*value)),
        EventValue::Columns { columns, unit, scale, negative } => {
            to.texts("value columns", columns.iter().map(String::as_str));
            to.optional("value unit", unit.as_deref());
            // Studies of before say nothing of either, and keep their hash.
            if *scale != 1 {
                to.number("value scale", u64::from(*scale));
            }
            if *negative != NegativeRule::Error {
                to.text("negative values", negative.name());
            }
        }
    }
    to.optional("where", advertiser.filter.as_ref().map(|filter| filter.column.as_str()));
    if let Some(filter) = &advertiser.filter {
        to.texts("equals", filter.equals.iter().map(String::as_str));
    }
    to.number("max events", u64::from(advertiser.max_events));
    to.text(
        "overflow",
        match advertiser.overflow {
            Overflow::Error => "error",
            Overflow::KeepEarliest => "keep-earliest",
        },
    );
    encode_categories("cohort", advertiser.cohort.as_ref(), to);
}

fn encode_release(release: &ReleaseRule, to: &mut FieldHasher) {
    to.text("mode", release.mode.name());
    to.number("confidence", u64::from(release.confidence.percent()));
    encode_noise(release.noise, to);
    to.number("minimum group", release.minimum_group);
    to.texts("also", release.also.iter().map(|count| count.name()));
    encode_viewers(&release.to, to);
    encode_public(release.public.as_ref(), to);
}

/// A study of candidates is encoded as before there was any other noise.
fn encode_noise(noise: NoiseFrom, to: &mut FieldHasher) {
    match noise {
        NoiseFrom::CutAndChoose(candidates) => to.number("candidates", u64::from(candidates)),
        NoiseFrom::Inside => to.text("noise", "inside 1"),
    }
}

fn encode_public(rho: Option<&Rational>, to: &mut FieldHasher) {
    if let Some(rho) = rho {
        to.number("public nano rho", nano(rho));
    }
}

fn encode_viewers(viewers: &[(String, Rational)], to: &mut FieldHasher) {
    to.number("viewers", viewers.len() as u64);
    for (name, rho) in viewers {
        to.text("viewer", name);
        to.number("nano rho", nano(rho));
    }
}

fn encode_source(program: &ProgramSource, to: &mut FieldHasher) {
    to.text("text", &program.text);
    to.number("clock", u64::from(program.clock.is_some()));
    if let Some(clock) = &program.clock {
        encode_clock(clock, to);
    }
    to.number("columns", program.columns.len() as u64);
    for column in &program.columns {
        to.text("column", &column.name);
        to.text("party", &column.party);
        to.text("file column", &column.column);
        match &column.cell {
            // What a study that does not say has always meant.
            None | Some(CellType::Integer) => to.text("type", "integer"),
            Some(CellType::Time) => to.text("type", "time"),
            Some(CellType::Label(values)) => {
                // From 1: a study of the same words in which they counted from 0 is another one.
                to.text("type", "label from 1");
                to.texts("values", values.iter().map(String::as_str));
            }
        }
    }
}

fn encode_match(columns: &ProgramSource, to: &mut FieldHasher) {
    to.text("kind", "match");
    encode_source(columns, to);
    // As a program that shows nothing to anybody has been encoded.
    to.number("candidates", 1);
    encode_viewers(&[], to);
}

fn encode_program(program: &ProgramStudy, to: &mut FieldHasher) {
    to.text("kind", "program");
    encode_source(&program.source, to);
    match program.to.is_empty() && program.public.is_none() {
        // What has no noise has always been encoded so.
        true => to.number("candidates", 64),
        false => encode_noise(program.noise, to),
    }
    encode_viewers(&program.to, to);
    encode_public(program.public.as_ref(), to);
}

/// The first place where two study files say different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingDifference {
    /// Line of my file; of the other's where mine has nothing to show.
    pub line: usize,
    /// The dotted name of the setting, `release.to.registry.rho`.
    pub setting: String,
    /// My line, or `(absent)`.
    pub mine: String,
    /// The other's line, or `(absent)`. Control characters are escaped: the text comes from a peer.
    pub theirs: String,
}

/// Holds a peer's study, which errors call `shown`, against this side's.
///
/// # Errors
/// The first difference ([`first_difference`]).
pub fn expect_same(mine: &str, (shown, theirs): (&str, &str)) -> Result<(), Error> {
    match first_difference(mine, theirs) {
        None => Ok(()),
        Some(d) => Err(Error::input(format!(
            "the two studies differ first in line {}, {}: here `{}`, in {shown} `{}`; agree on one file",
            d.line, d.setting, d.mine, d.theirs
        ))),
    }
}

/// Compares what two study files *say*: comments, white space and order of keys are no difference. The first
/// difference in the order of my file, or, failing that, the first setting only the other file has.
/// A file that is not TOML is compared line by line.
#[must_use]
pub fn first_difference(mine: &str, theirs: &str) -> Option<SettingDifference> {
    let (Some(my_settings), Some(their_settings)) = (settings(mine), settings(theirs)) else {
        return first_line(mine, theirs, 0, "");
    };
    let by_name: BTreeMap<&str, &Setting> = their_settings.iter().map(|s| (s.name.as_str(), s)).collect();
    for setting in &my_settings {
        let other = by_name.get(setting.name.as_str());
        if other.is_none_or(|other| other.value != setting.value) {
            if let (Some(a), Some(b)) = (&setting.text, other.and_then(|other| other.text.as_ref()))
                && (a.contains('\n') || b.contains('\n'))
            {
                return first_line(a, b, setting.text_line - 1, &setting.name);
            }
            return Some(SettingDifference {
                line: setting.line,
                setting: setting.name.clone(),
                mine: line_at(mine, setting.line),
                theirs: other.map_or("(absent)".into(), |other| line_at(theirs, other.line)),
            });
        }
    }
    let known: std::collections::BTreeSet<&str> = my_settings.iter().map(|s| s.name.as_str()).collect();
    let extra = their_settings.iter().find(|s| !known.contains(s.name.as_str()))?;
    Some(SettingDifference {
        line: extra.line,
        setting: extra.name.clone(),
        mine: "(absent)".into(),
        theirs: line_at(theirs, extra.line),
    })
}

struct Setting {
    name: String,
    line: usize,
    value: String,
    text: Option<String>,
    text_line: usize,
}

fn first_line(mine: &str, theirs: &str, before: usize, setting: &str) -> Option<SettingDifference> {
    let (mut a, mut b) = (mine.lines(), theirs.lines());
    for line in 1.. {
        let (x, y) = (a.next(), b.next());
        if x.is_none() && y.is_none() {
            break;
        }
        if x.map(str::trim_end) != y.map(str::trim_end) {
            let shown = |line: Option<&str>| line.map_or("(absent)".into(), |l| printable(l.trim()));
            return Some(SettingDifference {
                line: before + line,
                setting: setting.into(),
                mine: shown(x),
                theirs: shown(y),
            });
        }
    }
    None
}

fn line_at(text: &str, line: usize) -> String {
    printable(text.lines().nth(line - 1).unwrap_or("").trim())
}

/// Every leaf of a TOML file by dotted name, in the order of the file.
fn settings(text: &str) -> Option<Vec<Setting>> {
    let source = TomlSource { file: "", text };
    let tree = source.table().ok()?;
    let mut found = Vec::new();
    for (key, value) in tree.get_ref() {
        leaves(source, key.get_ref().to_string(), value, &mut found);
    }
    found.sort_by_key(|(at, _)| *at);
    Some(found.into_iter().map(|(_, setting)| setting).collect())
}

fn leaves(
    source: TomlSource<'_>,
    name: String,
    value: &toml::Spanned<DeValue<'_>>,
    into: &mut Vec<(usize, Setting)>,
) {
    let at = value.span().start;
    let mut leaf = |shown: String, text: Option<String>| {
        let (line, text_line) = (source.place(at).0, source.text_line(value.span()));
        into.push((at, Setting { name: name.clone(), line, value: shown, text, text_line }));
    };
    match value.get_ref() {
        DeValue::Table(table) => {
            for (key, value) in table {
                leaves(source, format!("{name}.{}", key.get_ref()), value, into);
            }
        }
        DeValue::Array(items) => {
            leaf(format!("a list of {}", items.len()), None);
            for (i, value) in items.iter().enumerate() {
                leaves(source, format!("{name}[{i}]"), value, into);
            }
        }
        DeValue::String(text) => leaf(format!("{text:?}"), Some(text.to_string())),
        DeValue::Float(number) => {
            leaf(decimal(number.as_str()).map_or_else(|| number.as_str().into(), |d| shown(&d)), None)
        }
        DeValue::Integer(number) => leaf(number.to_string(), None),
        DeValue::Boolean(value) => leaf(value.to_string(), None),
        DeValue::Datetime(value) => leaf(value.to_string(), None),
    }
}
