//! The audit log: by whom, what, about what and when; whether its chain fits; and as a file.

use crate::roles::{Action, Subject};
use crate::store::TrailFilter;
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table, time, with_status};
use crate::web::visit::{Stop, Visit};
use axum::http::StatusCode;
use page::form::{FormField, button, form, hidden, mistakes, query_form};
use page::markup::{Markup, element, text, words};
use page::numbers::count;
use serde_json::json;
use trail::{TrailEntry, VerifiedLog, WitnessStanding, log_head};

/// Entries of a page.
const PAGE: u32 = 50;
/// Entries of a file.
const FILE: u32 = 100_000;
/// Fields of the filter.
const FIELDS: [&str; 5] = ["actor", "action", "subject", "from", "until"];

/// The page.
pub fn show(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeAudit, Subject::House)?;
    let filter = match filter(visit) {
        Ok(filter) => filter,
        Err(why) => {
            let parts = [mistakes(&[why]), fields(visit)];
            return Ok(with_status(visit, StatusCode::UNPROCESSABLE_ENTITY, "Audit", parts));
        }
    };
    let below = visit.field("below").parse().ok();
    let mut entries = visit.house.store.trail_page(&filter, below, PAGE + 1)?;
    let more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let rows = entries.iter().map(|entry| {
        let actor = element("bdi", &[], [text(&entry.actor)]);
        vec![
            text(count(entry.number)),
            time(entry.at_ms / 1_000),
            actor,
            text(&entry.action),
            text(short(&entry.subject)),
        ]
    });
    let columns = ["Entry", "When", "Who", "What", "To what"];
    let mut log = vec![fields(visit)];
    log.push(match entries.is_empty() {
        true => words("p", "", "There is no such entry."),
        false => table("Entries, the newest first", &columns, rows.collect::<Vec<_>>()),
    });
    if let Some(last) = entries.last().filter(|_| more) {
        let path = older(visit, last.number);
        log.push(element("p", &[], [element("a", &[("href", &path)], [text("Older entries")])]));
    }
    let file = FIELDS.map(|name| hidden(name, visit.field(name)));
    let file = file.into_iter().chain([button("Export these as JSON lines", "")]);
    log.push(form("/audit/export", visit.word("export log", "").as_deref(), file));
    Ok(page(visit, "Audit", [section("The chain", chain(visit)?), section("Entries", log)]))
}

/// A study's hash is long, and its beginning is enough to know it by.
fn short(subject: &str) -> &str {
    if subject.len() == 64 { &subject[..12] } else { subject }
}

fn chain(visit: &Visit<'_>) -> Result<Vec<Markup>, Stop> {
    let head = log_head(&visit.house.store.reader()?)?;
    let seen = visit.house.watch.seen();
    let before = match head.first {
        0 | 1 => "",
        _ => " Those before were written out and taken away.",
    };
    let held = format!("Entries {} to {}.{before}", count(head.first), count(head.last));
    let mut parts = vec![words("p", "", held)];
    parts.push(match &seen.verified {
        None => words("p", "", "Nobody has computed the chain since this service began."),
        Some((at, found)) => {
            let said = match found {
                Ok(log) => format!("The chain fits up to entry {}; computed ", count(log.last)),
                Err(why) => format!("{why} Found "),
            };
            element("p", &[], [text(said), time(*at), text(".")])
        }
    });
    for (peer, word, standing) in &seen.of_own {
        let said = match standing {
            WitnessStanding::Fits => "has signed that it saw this log up to entry",
            WitnessStanding::Cut => "has signed what was taken away since, entry",
            WitnessStanding::Gone => "has signed an entry that is not here:",
            WitnessStanding::Another => "has signed another entry than the one that is here:",
        };
        let told = [
            element("bdi", &[], [text(peer)]),
            text(format!(" {said} {}, ", count(word.entry))),
            time(word.at_ms / 1_000),
            text("."),
        ];
        parts.push(element("p", &[], told));
    }
    for (peer, word, bent) in &seen.of_peers {
        let said = if *bent { "is another one than before, or ends earlier" } else { "was seen here" };
        parts.push(words("p", "", format!("The log of {peer} {said}, up to entry {}.", count(word.entry))));
    }
    parts.push(form("/audit/verify", visit.word("verify log", "").as_deref(), [button("Verify now", "")]));
    Ok(parts)
}

fn fields(visit: &Visit<'_>) -> Markup {
    let field = |name, label, help| {
        let field = FormField { name, label, kind: "text", fill: "off", value: visit.field(name), help };
        field.optional()
    };
    let fields = [
        field("actor", "Who", "An account, (command line), (service), or peer and its name."),
        field("action", "What, by its first words", ""),
        field("subject", "To what", "An account, or all 64 digits of a study's hash."),
        field("from", "From the day", "2026-11-27, UTC."),
        field("until", "To the day", ""),
    ];
    let look = button("Look", "");
    let summary = words("summary", "", "Look for some of them");
    element("details", &[], [summary, query_form("/audit", fields.into_iter().chain([look]))])
}

/// Which entries somebody asks for, or what is wrong with that.
pub fn filter(visit: &Visit<'_>) -> Result<TrailFilter, String> {
    let day = |name: &str| match visit.field(name).trim() {
        "" => Ok(None),
        text => {
            let at = study::time::wall_seconds(&format!("{text}T00:00:00"));
            let at = at.and_then(|at| u64::try_from(at).ok());
            at.map(Some).ok_or_else(|| format!("{text} is no day: write 2026-11-27."))
        }
    };
    let said = |name: &str| visit.field(name).trim().to_owned();
    Ok(TrailFilter {
        actor: said("actor"),
        action: said("action"),
        subject: said("subject"),
        from: day("from")?,
        until: day("until")?.map(|day| day + 24 * 3600),
    })
}

/// The address of the next page, with the same filter.
fn older(visit: &Visit<'_>, below: u64) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let byte = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    let fields = FIELDS.into_iter().filter(|name| !visit.field(name).is_empty());
    let pairs =
        fields.map(|name| format!("&{name}={}", visit.field(name).bytes().map(byte).collect::<String>()));
    format!("/audit?below={below}{}", pairs.collect::<String>())
}

/// Computes the chain anew.
pub fn verify(visit: &Visit<'_>) -> Result<Answer, Stop> {
    let _ = computed(visit)?;
    Ok(Answer::go("/audit"))
}

/// The same, with what was found.
pub fn computed(visit: &Visit<'_>) -> Result<Result<VerifiedLog, String>, Stop> {
    visit.must(Action::SeeAudit, Subject::House)?;
    let _held = visit.house.verifying.try_lock().map_err(|_| Stop::Busy)?;
    let found = trail::verify(&visit.house.store.reader()?).map_err(|error| error.to_string());
    let what = if found.is_ok() { "audit log verified" } else { "audit log verified: it does not fit" };
    visit.house.store.record(&visit.act(what, "")?)?;
    visit.house.watch.seen().verified = Some((visit.now, found.clone()));
    Ok(found)
}

/// Whether somebody sees details of all entries: texts of rules have names of columns.
pub fn sees_details(visit: &Visit<'_>) -> bool {
    let mut names = visit.settings().data.keys();
    names.all(|name| visit.may(Action::SeeColumns, Subject::Data(name)))
}

/// The entries of the filter as JSON lines. Texts of rules have names of columns, so their details are for
/// who sees those of all data sets.
pub fn export(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeAudit, Subject::House)?;
    let filter = filter(visit).map_err(|_| Stop::Missing)?;
    let whole = sees_details(visit);
    let entries = visit.house.store.trail_page(&filter, None, FILE)?;
    visit.house.store.record(&visit.act("audit log exported", "")?)?;
    let line = |entry: &TrailEntry| {
        let mut line = json!(entry);
        if !whole && entry.detail != "null" {
            line["detail"] = json!("(for who sees columns)");
        }
        format!("{line}\n")
    };
    let body: String = entries.iter().rev().map(line).collect();
    Ok(Answer::file("application/x-ndjson", "audit.jsonl", body.into_bytes()))
}
