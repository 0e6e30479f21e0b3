//! Studies as programs see them.

use super::shapes::{
    ApiBound, ApiCourse, ApiPlan, ApiRun, ApiSection, ApiStage, ApiStatement, ApiStatements, ApiStudies,
    ApiStudy, ApiStudyWhole, ApiSummary, ApiUsable,
};
use super::stop::ApiStop;
use crate::reckoned::{ReckonedFor, SaidSizes};
use crate::roles::Action;
use crate::serving::NO_DATA;
use crate::store::{PAGE, ProposalFilter, ProposalRow, RunRow, kind_of};
use crate::told::{StudyTold, ToldSection, tell};
use crate::web::answer::Answer;
use crate::web::pages::course::StageProgress;
use crate::web::pages::studies::{StudySeen, listed, name_of, seen, seen_as};
use crate::web::pages::study::said::{self, SaidAt};
use crate::web::pages::{course as courses, decide, reading, study as pages};
use crate::web::visit::{Stop, Visit};
use statements::{Naming, ProposalId, ProposalState, RUNS_ANEW, digest_of_words};

/// A study in a list.
pub fn row(visit: &Visit<'_>, row: &ProposalRow) -> ApiStudy {
    let proposer = name_of(visit.settings(), visit.us(), &row.proposer);
    ApiStudy {
        study: row.study.full(),
        proposal: base::hex(&row.id.0),
        title: row.title.clone(),
        kind: row.kind.clone(),
        proposer: proposer.unwrap_or_else(|| row.proposer.to_string()),
        by: Some(row.by.clone()).filter(|by| !by.is_empty()),
        state: row.state.name().to_owned(),
        ours: row.ours,
        data: row.data.clone(),
        held: row.held.clone(),
        made_ms: row.made_ms,
        changed_ms: row.changed_ms,
    }
}

/// Those that the token's account may know of.
pub fn list(visit: &Visit<'_>) -> Result<ApiStudies, ApiStop> {
    let said = |name| Some(visit.field(name)).filter(|said| !said.is_empty());
    let state = match said("state") {
        None => None,
        Some(name) => {
            let state = ProposalState::named(name);
            Some(state.ok_or_else(|| ApiStop::input(format!("there is no state {}", base::clean(name))))?)
        }
    };
    let party = match said("peer") {
        None => None,
        Some(name) => {
            let peer = visit.settings().peers.get(name);
            let none = || ApiStop::input(format!("no organisation is called {} here", base::clean(name)));
            Some(peer.ok_or_else(none)?.key)
        }
    };
    let filter =
        ProposalFilter { state, party, open: said("open") == Some("yes"), ..ProposalFilter::default() };
    let rows = listed(visit, filter, number(visit, "after")?)?;
    let next = rows.last().map(|row| row.row).filter(|_| rows.len() == PAGE);
    Ok(ApiStudies { studies: rows.iter().map(|one| row(visit, one)).collect(), next })
}

/// A number behind the question mark.
pub fn number(visit: &Visit<'_>, name: &str) -> Result<Option<u64>, ApiStop> {
    match visit.field(name) {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| ApiStop::input(format!("{name} is a number"))),
    }
}

/// The study of the path: the proposal that its hash stands for, or the one behind the question mark.
fn asked(visit: &Visit<'_>) -> Result<StudySeen, Stop> {
    let proposal = visit.field("proposal");
    if proposal.is_empty() {
        return seen(visit);
    }
    let id = base::unhex(proposal).map(ProposalId).ok_or(Stop::Missing)?;
    let row = visit.house.store.proposal(&id)?.filter(|row| row.study.full() == visit.part("hash"));
    seen_as(visit, row.ok_or(Stop::Missing)?)
}

/// One of them.
pub fn one(visit: &Visit<'_>) -> Result<ApiStudyWhole, ApiStop> {
    let study = asked(visit)?;
    let (house, proposed) = (visit.house, study.record.proposed());
    let ours = study.row.data.as_deref().unwrap_or_default();
    let about = |data: &str| if data.is_empty() { ours.to_owned() } else { data.to_owned() };
    let against = house.store.weighed(&study.row.id)?;
    let against = against.filter(|(_, data, _)| decide::sees_against(visit, &study, &about(data)));
    let reads = visit.may(Action::ReadStudy, study.subject());
    Ok(ApiStudyWhole {
        row: row(visit, &study.row),
        words: study.record.state_words(Naming(&study.names)),
        waits: courses::waits(visit, &study.row)?,
        parties: study.names.clone(),
        text: reads.then(|| proposed.text.clone()),
        note: proposed.note.clone(),
        expires_ms: proposed.expires_ms,
        reported: house.store.report_file(&study.row.id, "report.json")?.is_some(),
        weighing: house.weighing.has(&study.row.id),
        against: against.map(|(_, data, why)| match data.as_str() {
            NO_DATA => why,
            data => format!("with {data}: {why}"),
        }),
    })
}

/// What was said about one, the newest first.
pub fn statements(visit: &Visit<'_>) -> Result<ApiStatements, ApiStop> {
    let study = asked(visit)?;
    let after = match visit.field("after") {
        "" => None,
        text => {
            let after = text.parse::<SaidAt>();
            Some(after.map_err(|()| ApiStop::input("after is `next` of the list before"))?)
        }
    };
    let sent = visit.house.store.sent(&study.row.id)?;
    let (shown, next) = said::newest(&study.record, after);
    let one = |SaidAt { party, number, .. }: SaidAt| {
        let one = study.record.chain(party).get(number)?;
        let body = one.body();
        let mut out = sent.iter().filter(|row| row.digest == one.digest()).peekable();
        Some(ApiStatement {
            by: study.names.get(party)?.clone(),
            number: body.number,
            said: kind_of(&body.said).to_owned(),
            words: study.record.statement_words(party, number, Naming(&study.names)),
            at_ms: body.at_ms,
            received: out.peek().is_some().then(|| out.all(|row| row.had_ms.is_some())),
        })
    };
    let statements = shown.into_iter().filter_map(one).collect();
    Ok(ApiStatements { statements, next: next.map(|next| next.to_string()) })
}

/// Words under a heading.
fn section(section: &ToldSection) -> ApiSection {
    let ToldSection { title, lines, table } = section.clone();
    ApiSection { title, lines, table }
}

/// What is said of a study: what is signed for, then what is reckoned.
pub fn sections(told: &StudyTold) -> Vec<ApiSection> {
    told.sections.iter().chain(&told.reckoned).map(section).collect()
}

/// What it would do, and what a consent to it names.
pub fn summary(visit: &Visit<'_>) -> Result<ApiSummary, ApiStop> {
    let study = asked(visit)?;
    let told = pages::told(visit, &study)?;
    let us = visit.us().map(|key| key.to_string()).unwrap_or_default();
    let usable = decide::known_sets(visit, &study).map(|(name, set)| ApiUsable {
        data: name.clone(),
        decides: decide::decides(visit, &study, (name, set)),
        two_person: set.two_person,
    });
    Ok(ApiSummary {
        words: base::hex(&digest_of_words(&told.words())),
        sections: sections(&told),
        sets: usable.collect(),
        serves: decide::serves(visit, &study),
        charges: (1..=RUNS_ANEW).map(|runs| ApiBound { runs, most: told.bound(&us, runs) }).collect(),
    })
}

/// What it takes with so many rows.
pub fn plan(visit: &Visit<'_>) -> Result<ApiPlan, ApiStop> {
    let study = asked(visit)?;
    let rows = match visit.field("rows") {
        "" => None,
        text => {
            let both = text.split_once(',').and_then(|(a, b)| Some([a.parse().ok()?, b.parse().ok()?]));
            let both = both.filter(|both: &[u64; 2]| both.iter().all(|rows| (1..=1 << 40).contains(rows)));
            Some(both.ok_or_else(|| ApiStop::input("rows are two numbers: 50000,40000"))?)
        }
    };
    let us = visit.us().map(|key| key.to_string()).unwrap_or_default();
    let reckoned = ReckonedFor::said(SaidSizes { rows, mean: None });
    let told = tell(&study.record.proposed().text, &us, &reckoned).map_err(ApiStop::told)?;
    Ok(ApiPlan { sections: sections(&told) })
}

fn run(row: &RunRow, sees: bool) -> ApiRun {
    ApiRun {
        run: row.run,
        outcome: row.outcome.clone(),
        kind: row.kind.clone(),
        code: row.code.clone(),
        // Messages may hold names of files.
        message: row.message.clone().filter(|_| sees),
        begun_ms: row.begun_ms,
        ended_ms: row.ended_ms,
    }
}

/// A stage as the page shows it: with numbers of rows, or without.
fn stage(shown: StageProgress, counts: bool) -> ApiStage {
    let (step, done, total) = match shown.step {
        Some((step, done, total)) if counts => (Some(step), done, total),
        Some((step, done, total)) => (Some(step), courses::share(done, total), 100),
        None => (None, 0, 0),
    };
    let (seconds, bytes) = shown.done.unzip();
    let (rows, bytes) = (counts.then_some(shown.rows), bytes.filter(|_| counts));
    ApiStage { name: shown.name, rows, step, done, total, seconds, bytes }
}

/// How its runs go.
pub fn course(visit: &Visit<'_>) -> Result<ApiCourse, ApiStop> {
    let study = asked(visit)?;
    let (house, sees) = (visit.house, visit.may(Action::Run, study.subject()));
    let runs = house.store.runs(&study.row.id)?;
    let lines = match runs.last() {
        Some(run) => house.store.lines(&study.row.id, run.run, 0, courses::READ)?,
        None => Vec::new(),
    };
    let counts = courses::counts(visit, &study.row);
    let stages = courses::stages(lines.iter().map(|line| line.line.as_str()));
    let stages = stages.into_iter().map(|shown| stage(shown, counts));
    Ok(ApiCourse {
        words: study.record.state_words(Naming(&study.names)),
        waits: courses::waits(visit, &study.row)?,
        runs: runs
            .iter()
            .map(|row| run(row, sees && courses::sees_message(visit, &study.row, row)))
            .collect(),
        stages: stages.collect(),
    })
}

/// Its report; of who was given a public result, that.
pub fn report(visit: &Visit<'_>) -> Result<Answer, ApiStop> {
    let [whole, public] = match visit.field("as") {
        "" | "json" => ["report.json", "public.json"],
        "html" => ["report.html", "public.html"],
        "csv" => ["numbers.csv", "public.csv"],
        _ => return Err(ApiStop::input("a report comes `as` json, html or csv")),
    };
    Ok(match reading::take_along(visit, whole) {
        Err(Stop::Missing) => reading::take_along(visit, public)?,
        read => read?,
    })
}

/// A file of it.
pub fn report_file(visit: &Visit<'_>) -> Result<Answer, ApiStop> {
    Ok(reading::file(visit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_see_counts_sees_shares() {
        let (step, done) = (Some(("match/blind".to_owned(), 40, 160)), Some((1.5, 2_000)));
        let shown = StageProgress { name: "match".to_owned(), rows: 160, step, done };
        let whole = stage(shown.clone(), true);
        assert_eq!((whole.rows, whole.done, whole.total, whole.bytes), (Some(160), 40, 160, Some(2_000)));
        let share = stage(shown, false);
        assert_eq!((share.rows, share.done, share.total, share.bytes), (None, 25, 100, None));
    }
}
