//! What has come of studies of late, for the first page: which have a report, and which were refused,
//! withdrawn or frozen, by whom and why.

use super::studies::{StudySeen, link, listed_over, seen_as};
use crate::roles::Action;
use crate::web::shell::{section, time};
use crate::web::visit::{Stop, Visit};
use page::markup::{Markup, element, spans, text, words};
use statements::{Naming, ProposalState, Said};

/// For so many days it is said there. Who has looked at it is not kept: what one person has read another one
/// may still wait for.
const DAYS: u64 = 14;
/// So many at most.
const SHOWN: usize = 10;
const DAY_MS: u64 = 86_400_000;

/// The section, the newest first; nothing where nothing has come.
pub fn news(visit: &Visit<'_>) -> Result<Option<Markup>, Stop> {
    let since = (visit.now * 1_000).saturating_sub(DAYS * DAY_MS);
    let mut all: Vec<(u64, Markup)> = Vec::new();
    for row in listed_over(visit, since)? {
        // All that follow were over before these.
        if all.iter().filter(|(at_ms, _)| *at_ms >= row.changed_ms).count() > SHOWN {
            break;
        }
        let study = match seen_as(visit, row) {
            Ok(study) => study,
            Err(Stop::Missing) => continue,
            Err(stop) => return Err(stop),
        };
        let (at_ms, said) = told(visit, &study)?;
        // What is said of a log after a study is over is no news of the study.
        if at_ms >= since {
            all.push((at_ms, said));
        }
    }
    if all.is_empty() {
        return Ok(None);
    }
    all.sort_by_key(|(at_ms, _)| std::cmp::Reverse(*at_ms));
    let more = (all.len() > SHOWN).then(|| {
        let all = element("a", &[("href", "/studies")], [text("All studies")]);
        element("p", &[], [text("There are more: "), all])
    });
    let list = element("ul", &[], all.into_iter().take(SHOWN).map(|(_, said)| said));
    let note = words("p", "note", format!("Each stands here for {DAYS} days."));
    Ok(Some(section("What has come", [list, note].into_iter().chain(more))))
}

/// When a study was over here, and what is said of it.
fn told(visit: &Visit<'_>, study: &StudySeen) -> Result<(u64, Markup), Stop> {
    let report = visit.house.store.report_file(&study.row.id, "report.json")?;
    let at_ms = match &report {
        Some(file) => file.at_ms,
        None => over_ms(visit, study)?,
    };
    let mut parts = vec![time(at_ms / 1_000), text(" ")];
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
    Ok((at_ms, element("li", &[], parts)))
}

/// When the last word on a study came here, by this machine's clock: others may have another one.
fn over_ms(visit: &Visit<'_>, study: &StudySeen) -> Result<u64, Stop> {
    let mut newest = 0;
    for place in 0..study.names.len() {
        let mut words = study.record.chain(place).iter();
        let last = words.rfind(|one| !matches!(one.body().said, Said::Witness { .. }));
        if let Some(last) = last {
            newest = newest.max(visit.house.store.kept_ms(&last.digest())?.unwrap_or_default());
        }
    }
    Ok(newest)
}
