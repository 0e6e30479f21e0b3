//! A study as it was proposed: what everybody would learn, what it costs, what was said about it. Here a
//! steward decides.

mod diff;
pub mod said;

use super::decide;
use super::studies::{StudySeen, acted_on, listed, seen, waits_for_people};
use super::told_parts;
use crate::budget::{HeldRho, after, held_by};
use crate::link::otherwise;
use crate::reckoned::{ReckonedFor, RowsFrom, SaidSizes};
use crate::roles::{Action, Subject};
use crate::schedule::OTHERWISE;
use crate::store::ProposalFilter;
use crate::told::StudyTold;
use crate::web::answer::Answer;
use crate::web::shell::{page, section, time};
use crate::web::visit::{Stop, Visit};
use net::KeyFingerprint;
use page::form::{button, choice};
use page::markup::{Markup, element, spans, text, text_lines, words};
use page::svg::{bar, figure};
use privacy::ledger::Ledger;
use release::Rational;
use release::rational::{parse, shown, to_f64};
use statements::{Naming, Said};
use std::sync::Arc;
use study::StudyHash;

/// What stands before what is reckoned.
pub const RECKONED: &str = "What follows is reckoned, to help with the decision. It is no part of what is \
                            signed, and no number of rows goes to the others.";
/// Height of a bar, in pixels.
const HEIGHT: u32 = 22;

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = seen(visit)?;
    let told = told(visit, &study)?;
    Ok(page(visit, study.record.title(), parts(visit, &study, &told)?))
}

/// What the study says, in the words of `tacit check`.
pub fn told(visit: &Visit<'_>, study: &StudySeen) -> Result<Arc<StudyTold>, Stop> {
    let us = visit.us().map(|key| key.to_string()).unwrap_or_default();
    let reckoned = reckoned_for(visit, study)?;
    Ok(visit.house.told.tell(&study.record.proposed().text, &us, &reckoned)?)
}

/// What it is reckoned for: what was said with the proposal, where it was proposed here; else rows of our
/// data as they were last checked, for who may see these.
fn reckoned_for(visit: &Visit<'_>, study: &StudySeen) -> Result<ReckonedFor, Stop> {
    let SaidSizes { rows, mean } = visit.house.store.sizes_said(&study.row.id)?;
    // Rows that somebody typed may be those that there are.
    let rows = rows.filter(|_| visit.may(Action::ReadStudy, study.subject()));
    let rows = match rows {
        Some(rows) => RowsFrom::Said(rows),
        None => decide::checked_rows(visit, study)?.map_or(RowsFrom::Nobody, RowsFrom::Checked),
    };
    Ok(ReckonedFor { rows, mean, engines: false })
}

fn parts(visit: &Visit<'_>, study: &StudySeen, told: &StudyTold) -> Result<Vec<Markup>, Stop> {
    let mut parts = vec![head(visit, study), state(visit, study)?];
    parts.extend(told_parts("h2", &told.sections));
    parts.push(words("p", "note", RECKONED));
    parts.extend(told_parts("h2", &told.reckoned));
    parts.extend(cost(visit, study, told)?);
    parts.extend(decide::data(visit, study)?);
    let mut all = said::table_of(visit, study)?;
    all.extend(said::note_form(visit, study));
    parts.push(section("What was said", all));
    // It names columns, which those who run the machine do not see.
    if visit.may(Action::ReadStudy, study.subject()) {
        parts.push(section("The file", file(visit, study)?));
    }
    let decision = decide::forms(visit, study, told)?;
    parts.push(element("div", &[("id", "decision"), ("data-live", "")], decision));
    Ok(parts)
}

fn head(visit: &Visit<'_>, study: &StudySeen) -> Markup {
    let proposed = study.record.proposed();
    let whose = super::studies::proposer(visit, &study.row);
    let line = element(
        "p",
        &[("class", "meta")],
        [
            text("proposed by "),
            element("bdi", &[], [words("b", "", whose)]),
            text(" on "),
            time(study.row.made_ms / 1_000),
            text(", to be decided until "),
            time(proposed.expires_ms / 1_000),
        ],
    );
    let hash = words("p", "link", format!("hash {}", study.row.study.full()));
    let note = (!proposed.note.is_empty()).then(|| {
        let note = element("p", &[("class", "lines")], [element("bdi", &[], [text_lines(&proposed.note)])]);
        element("blockquote", &[], [note])
    });
    element("div", &[], [line, hash].into_iter().chain(note))
}

/// Where it stands and where to go from here.
pub fn state(visit: &Visit<'_>, study: &StudySeen) -> Result<Markup, Stop> {
    let said = study.record.state_words(Naming(&study.names));
    let turn = waits_for_people(&study.row).then(|| words("p", "", "It is your organisation's turn."));
    let path = study.path();
    let link = |to: &str, label: &str| element("li", &[], [element("a", &[("href", to)], [text(label)])]);
    let mut links = Vec::new();
    if visit.path != path {
        links.push(link(&path, "What was agreed"));
    }
    if study.record.view().newest() > 0 && !visit.path.ends_with("/run") {
        links.push(link(&format!("{path}/run"), "The run"));
    }
    if visit.path == path && decide::decides_now(visit, study) {
        links.push(link("#decision", "Your decision, at the end of this page"));
    }
    if visit.may(Action::ReadStudy, study.subject()) && !study.record.view().state().is_final() {
        links.push(link(&format!("{path}/rehearsal"), "A rehearsal on made-up rows"));
    }
    if study.record.view().state().is_final()
        && visit.may(Action::Propose, Subject::House)
        && visit.may(Action::ReadStudy, study.subject())
    {
        let to = format!("/studies/new?like={}", study.row.study.full());
        links.push(link(&to, "Propose one like it"));
    }
    let has_report = visit.house.store.report_file(&study.row.id, "report.json")?.is_some();
    if has_report && visit.may(Action::ReadReport, study.subject()) {
        links.push(link(&format!("{path}/report"), "The report"));
    }
    let links = (!links.is_empty()).then(|| element("ul", &[("class", "links")], links));
    let otherwise = told_otherwise(visit, study);
    let place = [("class", "box"), ("id", "state"), ("data-live", ""), ("role", "status")];
    let said = element("p", &[], [element("bdi", &[], spans(&said))]);
    Ok(element("div", &place, [said].into_iter().chain(otherwise).chain(turn).chain(links)))
}

/// Who has said something else here than to whom, where that holds the study.
fn told_otherwise(visit: &Visit<'_>, study: &StudySeen) -> Vec<Markup> {
    if study.row.held.as_deref() != Some(otherwise::TOLD) {
        return Vec::new();
    }
    let name = |key: &KeyFingerprint| study.record.place(key).map_or("", |place| study.names[place].as_str());
    let found = otherwise::found(visit.house, &study.record);
    let line = |(author, peer): &(KeyFingerprint, KeyFingerprint)| {
        format!("{} has said something else here than to {}.", name(author), name(peer))
    };
    let lines = found.iter().map(line).chain([format!("No run begins: {OTHERWISE}.")]);
    lines.map(|line| element("p", &[], [element("bdi", &[], [text(line)])])).collect()
}

/// What it takes of the budgets of this organisation, counted in studies like it.
fn cost(visit: &Visit<'_>, study: &StudySeen, told: &StudyTold) -> Result<Vec<Markup>, Stop> {
    let settings = visit.settings();
    let mut parts = Vec::new();
    // What is over is charged, or never will be: it is in what the page of budgets says.
    if study.record.view().state().is_final() {
        return Ok(parts);
    }
    let ledger = settings.ledger.exists().then(|| Ledger::look(&settings.ledger)).transpose()?;
    let held = |us| held_by((&visit.house.store, settings, us), ledger.as_ref(), &study.record);
    let held = visit.us().map(held).transpose()?.unwrap_or_default();
    for (at, party) in told.file.parties.iter().enumerate() {
        let Ok(key) = party.key.parse() else { continue };
        if visit.us() == Some(key) {
            continue;
        }
        let Some(rho) = told.rho.get(&party.name).and_then(|rho| parse(rho)) else { continue };
        for (data, set) in decide::sets(visit, study) {
            if !visit.may(Action::SeeBudget, Subject::Data(data)) {
                continue;
            }
            // Once it was consented to, it is held to that, and what it was charged is spent.
            let own = held.iter().find(|one| one.data == *data && one.viewer == party.key);
            let rho = own.map_or_else(|| rho.clone(), |own| own.left.clone());
            let (spent, more) = after(set, ledger.as_ref(), &party.key, &rho)?;
            let part = |value: &Rational| (100.0 * to_f64(&(value / &set.budget))).min(100.0);
            let [had, takes, budget] = [&spent, &rho, &set.budget].map(shown);
            let said = match own {
                Some(HeldRho { charged, .. }) => {
                    let charged = shown(charged);
                    format!(
                        "{data}: {had} spent, {charged} of it for this study; up to {takes} more is held for \
                         it, of {budget} for ever."
                    )
                }
                None => {
                    let made_of = told.parts_of(&party.name);
                    format!(
                        "{data}: {had} spent, {takes} for this study, of {budget} for ever. {more}.{made_of}"
                    )
                }
            };
            let (from, until) = (part(&spent), part(&(&spent + &rho)));
            let mut drawn = vec![bar(0.0, 100.0, 0, HEIGHT, "track")];
            drawn.extend((from > 0.0).then(|| bar(0.0, from, 0, HEIGHT, "spent")));
            drawn.push(bar(from, until, 0, HEIGHT, "this"));
            let title = format!("Budget of {data} towards {}", party.name);
            let drawn = figure(&format!("cost-{at}-{data}"), &title, &said, HEIGHT, drawn);
            parts.push(element("figure", &[], [drawn, words("figcaption", "", said)]));
        }
    }
    Ok(if parts.is_empty() { parts } else { vec![section("What it takes of our budget", parts)] })
}

/// The text that is agreed on, and what in it differs from an earlier study.
fn file(visit: &Visit<'_>, study: &StudySeen) -> Result<Vec<Markup>, Stop> {
    let text_of = &study.record.proposed().text;
    let whole = element("pre", &[("tabindex", "0"), ("aria-label", "Study file")], [text_lines(text_of)]);
    let mut parts = vec![element("details", &[], [words("summary", "", "As it would be agreed on"), whole])];
    let filter = ProposalFilter { party: Some(study.row.proposer), ..ProposalFilter::default() };
    let earlier = listed(visit, filter, Some(study.row.row))?;
    if earlier.is_empty() {
        return Ok(parts);
    }
    let options: Vec<_> =
        earlier.iter().map(|row| (row.study.full(), format!("{}, {}", row.title, row.study))).collect();
    let compare = [
        choice("with", "Compare with an earlier study", &options, visit.field("with")),
        button("Compare", ""),
    ];
    let place = [("method", "get"), ("action", visit.path.as_str()), ("class", "filters")];
    parts.push(element("form", &place, compare));
    if let Some(other) = earlier.iter().find(|row| row.study.full() == visit.field("with")) {
        let before = study_text(visit, &other.study)?;
        parts.push(diff::markup(&before, text_of));
    }
    Ok(parts)
}

fn study_text(visit: &Visit<'_>, hash: &StudyHash) -> Result<String, Stop> {
    visit.house.store.study_text(hash)?.ok_or(Stop::Missing)
}

/// Writes a note to the others.
pub fn note(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let study = acted_on(visit)?;
    visit.must(Action::Note, study.subject())?;
    let note = visit.field("note").replace("\r\n", "\n").trim().to_owned();
    let length = note.chars().count();
    if length == 0 || length > statements::TEXT_CHARS {
        return Ok(decide::not_done(visit, &study, "A note has 1 to 2,000 characters."));
    }
    decide::say(visit, &study, Said::Note(note))
}
