//! What a party agrees to at all: the section `[policy]` of its file.

use super::{AgreedBounds, FileKey, PartySettings, Period, RunRate, fill, names};
use crate::reader::TomlItem;
use crate::{Question, Study, StudyFile, StudyHash, rho};
use base::Error;
use release::rational::{Rational, ratio, shown};
use std::path::Path;

const KEYS: &[FileKey] = &[
    ("studies", |to, item, _| {
        fill(&mut to.common.allow_studies, item.list()?.iter().map(study_hash).collect())
    }),
    ("kinds", |to, item, _| fill(&mut to.allow_kinds, item.list()?.iter().map(kind).collect())),
    ("max_rho", |to, item, _| fill(&mut to.max_rho, rho(item).map(|rho| (rho, item.place())))),
    ("budget", |to, item, _| fill(&mut to.budget, rho(item))),
    ("total", |to, item, _| fill(&mut to.total, rho(item))),
    ("period", |to, item, _| fill(&mut to.period_seconds, item.parsed(parse_period))),
    ("period_budget", |to, item, _| fill(&mut to.period_budget, rho(item))),
    ("runs", |to, item, _| fill(&mut to.runs, item.parsed(RunRate::parse))),
    ("max_cells", |to, item, _| fill(&mut to.max_cells, item.integer(1..=1_000_000))),
    ("allow_exact", |to, item, _| fill(&mut to.allow_exact, item.boolean())),
    ("delta", |to, item, _| fill(&mut to.delta_places, crate::matching::delta(item))),
    ("candidates", |to, item, _| fill(&mut to.candidates, candidates(item))),
    ("dummies_seed", |to, item, _| {
        fill(&mut to.fresh_dummies, item.choice(&[("kept", false), ("fresh", true)], &[]))
    }),
    ("agreed", |to, item, _| fill(&mut to.agreed, AgreedBounds::read(item))),
];

/// Reads the section `[policy]`.
pub(super) fn read(to: &mut PartySettings, item: &TomlItem<'_, '_>, home: &Path) -> Result<(), Error> {
    let section = item.section(&names(KEYS))?;
    for (key, item) in section.entries() {
        to.read_value(KEYS, key, &item, home)?;
    }
    match (section.get("period"), section.get("period_budget")) {
        (Some(alone), None) | (None, Some(alone)) => Err(alone.error(
            "period and period_budget belong together: period = \"90d\" and period_budget = 0.5 let no \
             viewer have more than 0.5 in any 90 days",
        )),
        _ => Ok(()),
    }
}

fn kind(item: &TomlItem<'_, '_>) -> Result<String, Error> {
    let kinds = [("lift", "lift"), ("program", "program"), ("match", "match")];
    item.choice(&kinds, &["market"]).map(str::to_owned)
}

fn candidates(item: &TomlItem<'_, '_>) -> Result<u32, Error> {
    item.integer(2..=1024).map(|n| u32::try_from(n).expect("at most 1024"))
}

/// What this party agrees to, whatever a study says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartyPolicy {
    /// Only these studies; `None` is any study of an allowed kind.
    pub studies: Option<Vec<StudyHash>>,
    /// Only these kinds.
    pub kinds: Vec<String>,
    /// Most rho one study may spend on one viewer.
    pub max_rho: Rational,
    /// Where that is said, file and line or flag; `None`: nowhere, so it is the default.
    pub max_rho_at: Option<String>,
    /// Most rho all studies together may spend on one viewer of this data.
    pub budget: Rational,
    /// Most cells of one study.
    pub max_cells: u64,
    /// Whether exact results may be revealed.
    pub allow_exact: bool,
    /// `10^-d` is the most that the deltas of all matches together may come to, towards one viewer of this
    /// data.
    pub delta_places: u8,
    /// Most rho all studies together may spend on all viewers of this data; `None`: no bound but each
    /// viewer's.
    pub total: Option<Rational>,
    /// Most rho on one viewer of this data within any span of some length; `None`: no bound but the budget.
    pub period: Option<(u64, Rational)>,
    /// Most runs with one peer within some time; `None`: any number.
    pub runs: Option<RunRate>,
    /// Least noise candidates of a study with noise: a party that bends its noise goes unnoticed once in so
    /// many times.
    pub candidates: u32,
    /// Whether the made-up rows of a match are drawn afresh, and paid for, each time that it begins.
    pub fresh_dummies: bool,
    /// What was consented to for the one study that may run; `None`: no bound but the others.
    pub agreed: Option<AgreedBounds>,
}

impl Default for PartyPolicy {
    fn default() -> Self {
        Self {
            studies: None,
            kinds: vec!["lift".into()],
            max_rho: ratio(1, 2),
            max_rho_at: None,
            budget: ratio(1, 1),
            max_cells: 100,
            allow_exact: false,
            delta_places: 6,
            total: None,
            period: None,
            runs: None,
            candidates: 64,
            fresh_dummies: false,
            agreed: None,
        }
    }
}

impl PartySettings {
    /// The policy, with defaults for what is not said.
    pub(super) fn policy(&self) -> Result<PartyPolicy, Error> {
        let default = PartyPolicy::default();
        let period = match (self.period_seconds, self.period_budget.clone()) {
            (Some(seconds), Some(budget)) => Some((seconds, budget)),
            (None, None) => None,
            _ => return Err(Error::input("period and period_budget belong together: set both, or neither")),
        };
        let (max_rho, max_rho_at) = self.max_rho.clone().unzip();
        Ok(PartyPolicy {
            studies: self.common.allow_studies.clone(),
            kinds: self.allow_kinds.clone().unwrap_or(default.kinds),
            max_rho: max_rho.unwrap_or(default.max_rho),
            max_rho_at,
            budget: self.budget.clone().unwrap_or(default.budget),
            max_cells: self.max_cells.unwrap_or(default.max_cells),
            allow_exact: self.allow_exact.unwrap_or(default.allow_exact),
            delta_places: self.delta_places.unwrap_or(default.delta_places),
            total: self.total.clone(),
            period,
            runs: self.runs,
            candidates: self.candidates.unwrap_or(default.candidates),
            fresh_dummies: self.fresh_dummies.unwrap_or(default.fresh_dummies),
            agreed: self.agreed.clone(),
        })
    }
}

impl PartyPolicy {
    /// The most that the deltas of all matches together may come to, towards one viewer.
    #[must_use]
    pub fn most_delta(&self) -> Rational {
        ratio(1u64, 10u64.pow(self.delta_places.into()))
    }

    /// The bound of a period, as debits carry it.
    #[must_use]
    pub fn period(&self) -> Option<Period> {
        self.period.clone().map(|(seconds, budget)| Period { seconds, budget })
    }

    /// Whether the party called `own` agrees to a study at all, before anything is sent. What it is to see
    /// itself is the others' to limit.
    ///
    /// # Errors
    /// Says which rule the study breaks and how its owner may change the rule.
    pub fn admit(&self, file: &StudyFile, own: &str) -> Result<(), Error> {
        let hash = file.hash();
        if let Some(allowed) = &self.studies
            && !allowed.contains(&hash)
        {
            return Err(not_listed(file.first(), &hash));
        }
        file.runs.iter().try_for_each(|run| self.admit_run(run, own))
    }

    /// `max_rho`, and where its owner may change it.
    pub fn cap(&self) -> String {
        let place = match &self.max_rho_at {
            Some(place) => place,
            None => "the default; a line max_rho under [policy] of the party file says otherwise",
        };
        format!("this party's policy.max_rho is {} ({place})", shown(&self.max_rho))
    }

    fn admit_run(&self, study: &Study, own: &str) -> Result<(), Error> {
        let (kind, to, public, cells): (_, &[_], _, _) = match &study.kind {
            Question::Lift(lift) => {
                let values = |c: &Option<crate::Categories>| c.as_ref().map_or(0, |c| c.values.len() as u64);
                let cells = 1 + values(&lift.publisher.breakdown) + values(&lift.advertisers[0].cohort);
                ("lift", &lift.release.to, lift.release.public.as_ref(), cells)
            }
            Question::Program(program) => ("program", &program.to, program.public.as_ref(), 1),
            Question::Match(_) => ("match", &[], None, 1),
        };
        if !self.kinds.iter().any(|allowed| allowed == kind) {
            return Err(Error::refused(format!(
                "this party's policy does not allow studies of kind \"{kind}\"; to allow them, add it to \
                 policy.kinds"
            )));
        }
        if let Some((viewer, rho)) = to.iter().find(|(viewer, rho)| viewer != own && *rho > self.max_rho) {
            return Err(Error::refused(format!(
                "the study spends rho {} on {viewer} ([release.to.{viewer}]); {}",
                shown(rho),
                self.cap()
            )));
        }
        if let Some(rho) = public.filter(|rho| **rho > self.max_rho) {
            return Err(Error::refused(format!(
                "the study spends rho {} on what everybody sees ([release.public]); {}",
                shown(rho),
                self.cap()
            )));
        }
        if cells > self.max_cells {
            return Err(Error::refused(format!(
                "the study has {cells} cells; this party's policy.max_cells is {}",
                self.max_cells
            )));
        }
        Ok(())
    }
}

pub(super) fn not_listed(study: &Study, hash: &StudyHash) -> Error {
    Error::refused(format!(
        "study {} ({hash}) is not on this party's list; after you have read the study, add its hash \"{}\" \
         to policy.studies",
        study.name,
        hash.full()
    ))
}

/// Seconds of `90d`, `12w`: from a day to ten years.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_period(text: &str) -> Result<u64, &'static str> {
    const DAY: u64 = 86_400;
    let rule = "write a whole number with d or w, from 1d to 3650d: 90d";
    let (digits, days) = match text.as_bytes().last() {
        Some(b'd') => (&text[..text.len() - 1], 1),
        Some(b'w') => (&text[..text.len() - 1], 7),
        _ => return Err(rule),
    };
    let count: u64 = digits.parse().map_err(|_| rule)?;
    count.checked_mul(days).filter(|days| (1..=3650).contains(days)).map(|days| days * DAY).ok_or(rule)
}

fn study_hash(item: &TomlItem<'_, '_>) -> Result<StudyHash, Error> {
    let rule = "write all 64 hex digits of the study's hash, as `tacit check` prints them";
    StudyHash::parse(item.text()?).ok_or_else(|| item.refuse(rule))
}
