//! Rehearsals as programs see them: every answer says that it is made up.

use super::stop::ApiStop;
use crate::web::pages::rehearsal::{self as pages, Rehearsed};
use crate::web::rehearsing::RehearsedSizes;
use crate::web::visit::Visit;
use job::simulate::{SimulatedPart, Simulation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many rows are made up.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiRehearsing {
    /// Of the first party of the study and of each other one, 1 to 100,000; none: as was said with the study,
    /// in the same proportion where that is more, else 10,000 of each.
    pub rows: Option<[u64; 2]>,
    /// The mean outcome of one person of a lift study's control arm; none: as was said with the study.
    pub mean: Option<f64>,
}

/// A study tried on made-up rows.
#[derive(Serialize, ToSchema)]
pub struct ApiRehearsal {
    /// Always true: no number here is about people.
    pub made_up: bool,
    /// The hash of the study.
    pub study: String,
    /// `none`, `runs`, `failed` or `done`.
    pub state: String,
    /// When it was asked for.
    pub at: Option<u64>,
    /// Made-up rows of the first party of the study, and of each other one.
    pub rows: Option<[u64; 2]>,
    /// The mean outcome of one person of the control arm that outcomes were made up for.
    pub mean: Option<f64>,
    /// Why it failed.
    pub why: Option<String>,
    /// What each viewer would be shown.
    pub numbers: Vec<ApiRehearsedNumber>,
}

/// A number of a rehearsal.
#[derive(Serialize, ToSchema)]
pub struct ApiRehearsedNumber {
    /// A party, or `public`.
    pub viewer: String,
    /// What it stands with.
    pub part: String,
    /// What it is.
    pub label: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// Why nothing of its part would be shown.
    pub refused: Option<String>,
    /// As one would read it.
    pub released: Option<f64>,
    /// Its intervals; an open end is null.
    pub intervals: Vec<[Option<f64>; 2]>,
    /// Without noise.
    pub exact: Option<f64>,
    /// Where the middle 95 of 100 results lie.
    pub spread: Option<[Option<f64>; 2]>,
}

fn numbers(found: &Simulation) -> Vec<ApiRehearsedNumber> {
    let views = found.runs.iter().flat_map(|run| &run.views);
    let of_part = |viewer: &str, part: &SimulatedPart| -> Vec<ApiRehearsedNumber> {
        let number = |one: &job::simulate::SimulatedNumber| ApiRehearsedNumber {
            viewer: viewer.to_owned(),
            part: part.title.clone(),
            label: one.label.clone(),
            unit: one.unit.clone(),
            refused: part.refused.clone(),
            released: one.released,
            intervals: one.intervals.clone(),
            exact: one.exact,
            spread: one.spread.as_ref().map(|spread| [spread.low, spread.high]),
        };
        part.numbers.iter().map(number).collect()
    };
    views.flat_map(|view| view.parts.iter().flat_map(|part| of_part(&view.viewer, part))).collect()
}

fn shown(visit: &Visit<'_>, of: &Rehearsed) -> ApiRehearsal {
    let one = visit.house.rehearsing.of(&of.study);
    let (state, why, numbers) = match one.as_ref().map(|one| &one.came) {
        None => ("none", None, Vec::new()),
        Some(None) => ("runs", None, Vec::new()),
        Some(Some(Err(why))) => ("failed", Some(why.clone()), Vec::new()),
        Some(Some(Ok(found))) => ("done", None, numbers(found)),
    };
    ApiRehearsal {
        made_up: true,
        study: of.study.clone(),
        state: state.to_owned(),
        at: one.as_ref().map(|one| one.at),
        rows: one.as_ref().map(|one| one.rows),
        mean: one.and_then(|one| one.mean),
        why,
        numbers,
    }
}

fn begun(visit: &Visit<'_>, of: &Rehearsed, sent: &ApiRehearsing) -> Result<ApiRehearsal, ApiStop> {
    let said = of.sizes();
    let (rows, mean) = (sent.rows.unwrap_or(said.rows), sent.mean.or(said.mean));
    if !rows.iter().all(|rows| pages::is_possible(*rows)) {
        return Err(ApiStop::input("rows are 1 to 100,000 of each side"));
    }
    if !mean.is_none_or(pages::is_mean) {
        return Err(ApiStop::input("mean is a number above 0"));
    }
    pages::rehearse(visit, &of.study, &of.text, RehearsedSizes { rows, mean })?;
    Ok(shown(visit, of))
}

/// That of a study.
pub fn of_study(visit: &Visit<'_>) -> Result<ApiRehearsal, ApiStop> {
    Ok(shown(visit, &pages::proposed(visit)?))
}

/// That of a draft.
pub fn of_draft(visit: &Visit<'_>) -> Result<ApiRehearsal, ApiStop> {
    Ok(shown(visit, &drafted(visit)?))
}

/// Begins one of a study.
pub fn begin(visit: &Visit<'_>, sent: ApiRehearsing) -> Result<ApiRehearsal, ApiStop> {
    begun(visit, &pages::proposed(visit)?, &sent)
}

/// Begins one of a draft.
pub fn begin_draft(visit: &Visit<'_>, sent: ApiRehearsing) -> Result<ApiRehearsal, ApiStop> {
    begun(visit, &drafted(visit)?, &sent)
}

fn drafted(visit: &Visit<'_>) -> Result<Rehearsed, ApiStop> {
    let none = || ApiStop::input("the draft is no study yet: its preview says what is wrong with it");
    pages::drafted(visit)?.ok_or_else(none)
}
