//! What has come of studies of late, for the first page: which have a report, and which were refused,
//! withdrawn or frozen, by whom and why.

use super::studies::{StudySeen, link, listed_over, seen_as};
use crate::roles::Action;
use crate::web::shell::{section, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, spans, text, words};
use statements::{Naming, ProposalState};

/// For so many days it is said there. Who has looked at it is not kept: what one person has read another one
/// may still wait for.
const DAYS: u64 = 14;
/// So many at most.
const SHOWN: usize = 10;
const DAY_MS: u64 = 86_400_000;

/// The section, the newest first; nothing where nothing has come.
pub fn news(visit: &Visit<'_>) -> Result<Option<Markup>, Stop> {
    let since = (visit.now * 1_000).saturating_sub(DAYS * DAY_MS);
    let mut all = Vec::new();
    let rows = listed_over(visit, since, SHOWN + 1)?;
    let is_more = rows.len() > SHOWN;
    for row in rows.into_iter().take(SHOWN) {
        match seen_as(visit, row) {
            Ok(study) => all.push(told(visit, &study)?),
            Err(Stop::Missing) => (),
            Err(stop) => return Err(stop),
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    let more = is_more.then(|| {
        let all = element("a", &[("href", "/studies")], [text("All studies")]);
        element("p", &[], [text("There are more: "), all])
    });
    let list = element("ul", &[], all);
    let note = words("p", "note", format!("Each stands here for {DAYS} days."));
    Ok(Some(section("What has come", [list, note].into_iter().chain(more))))
}

/// What is said of a study that is over, and when it was so here.
fn told(visit: &Visit<'_>, study: &StudySeen) -> Result<Markup, Stop> {
    let report = visit.house.store.report_file(&study.row.id, "report.json")?;
    let mut parts = vec![time(study.row.over_ms.unwrap_or_default() / 1_000), text(" ")];
    let is_answered = study.record.view().state() == ProposalState::Answered;
    match report.is_some() && visit.may(Action::ReadReport, study.subject()) {
        true => {
            let to = format!("{}/report", study.path());
            let title = element("bdi", &[], [text(&study.row.title)]);
            parts.extend([text("A report came: "), element("a", &[("href", &to)], [title])]);
        }
        false if is_answered => parts.extend([text("Answered: "), link(&study.row)]),
        false => parts.push(link(&study.row)),
    }
    if !is_answered {
        let why = study.record.state_words(Naming(&study.names));
        parts.extend([text(": "), element("bdi", &[], spans(&why))]);
    }
    Ok(element("li", &[], parts))
}
