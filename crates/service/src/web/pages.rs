//! The pages, by path.

mod account;
mod accounts;
pub mod audit;
pub mod budget;
mod confirmations;
pub mod course;
pub mod data;
pub mod decide;
pub mod help;
mod home;
mod news;
mod operate;
mod own_key;
pub mod peers;
pub mod propose;
pub mod reading;
pub mod rehearsal;
mod rules;
pub mod second;
mod sign_in;
pub mod studies;
pub mod study;
mod tokens;

use super::door::{deed, missing, open, proven_deed, send, show};
use super::{House, events, shell};
use crate::told::ToldSection;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use base::limits::STUDY_BYTES;
use page::markup::{Markup, element, span_lines, spans, words};
use std::sync::Arc;

/// All of them.
pub fn routes() -> Router<Arc<House>> {
    Router::new()
        .route("/", show(home::show))
        .route("/sign-in", open(sign_in::show).merge(send(sign_in::submit)))
        .route("/sign-out", deed("sign out", sign_in::out))
        .route("/enter/{link}", open(sign_in::link).merge(send(sign_in::enter)))
        .route("/account", show(account::show))
        .route("/account/password", deed("change password", account::password))
        .route("/account/second", proven_deed("new second step", second::new))
        .route("/account/second/begin", proven_deed("begin second step", second::begin))
        .route("/account/second/end", proven_deed("end second step", second::end))
        .route("/account/prove", deed("prove", account::prove))
        .route("/account/sessions/{id}/end", deed("end session", account::end_session))
        .route("/account/tokens", show(tokens::show).merge(proven_deed("make token", tokens::add)))
        .route("/account/tokens/{id}/end", deed("end token", tokens::end))
        .route("/accounts", show(accounts::list).merge(proven_deed("add account", accounts::add)))
        .route("/accounts/{name}", show(accounts::one))
        .route("/accounts/{name}/give", proven_deed("give role", accounts::give))
        .route("/accounts/{name}/take", proven_deed("take role", accounts::take))
        .route("/accounts/{name}/link", proven_deed("make link", accounts::link))
        .route("/accounts/{name}/end", proven_deed("end account", accounts::end))
        .route("/confirmations", show(confirmations::show))
        .route("/confirmations/{number}/confirm", proven_deed("confirm", confirmations::confirm))
        .route("/confirmations/{number}/refuse", proven_deed("turn down", confirmations::turn_down))
        .route("/data", show(data::list))
        .route("/data/{name}", show(data::one))
        .route("/data/{name}/check", deed("check data", data::check))
        .route("/budget", show(budget::show))
        .route("/rules", show(rules::show))
        .route("/rules/preview", deed("preview rules", rules::preview))
        .route("/rules/change/{base}", proven_deed("change rules", rules::change))
        .route("/rules/accept/{hash}", proven_deed("accept rules", rules::accept))
        .route("/peers", show(peers::list).merge(proven_deed("add peer", peers::add)))
        .route("/peers/{name}", show(peers::one))
        .route("/peers/{name}/test", deed("test peer", peers::test))
        .route("/peers/{name}/pause", deed("pause peer", peers::pause))
        .route("/peers/{name}/go-on", proven_deed("go on with peer", peers::go_on))
        .route("/operate", show(operate::show))
        .route("/operate/sessions/{id}/end", deed("end session of another", operate::end_session))
        .route("/help", show(help::list))
        .route("/help/errors", show(help::all_errors))
        .route("/help/{word}", show(help::one))
        .route("/audit", show(audit::show))
        .route("/audit/verify", deed("verify log", audit::verify))
        .route("/audit/export", deed("export log", audit::export))
        .merge(of_studies())
        .route("/events", get(events::stream))
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/assets/{hash}/{name}", get(asset))
        .fallback(missing)
}

/// Pages of studies.
fn of_studies() -> Router<Arc<House>> {
    // Every byte of a study that is pasted may be three on the way.
    let propose = deed("propose study", propose::submit).layer(DefaultBodyLimit::max(3 * STUDY_BYTES));
    Router::new()
        .route("/studies", show(studies::list))
        .route("/studies/new", show(propose::show).merge(propose))
        .route("/drafts/{id}/drop", deed("drop draft", propose::drop_draft))
        .route("/drafts/{id}/rehearsal", show(rehearsal::show_draft))
        .route("/drafts/{id}/rehearse", deed("rehearse draft", rehearsal::begin_draft))
        .route("/studies/{hash}", show(study::show))
        .route("/studies/{hash}/rehearsal", show(rehearsal::show))
        .route("/studies/{hash}/rehearse", deed("rehearse", rehearsal::begin))
        .route("/studies/{hash}/note", deed("write note", study::note))
        .route("/studies/{hash}/consent", deed("consent", decide::consent))
        .route("/studies/{hash}/disagree", deed("take agreement back", decide::disagree))
        .route("/studies/{hash}/request.json", show(own_key::request))
        .route("/studies/{hash}/seal", deed("sign consent", own_key::sign))
        .route("/studies/{hash}/refuse", deed("refuse", decide::refuse))
        .route("/studies/{hash}/withdraw", deed("withdraw", decide::withdraw))
        .route("/studies/{hash}/run", show(course::show))
        .route("/studies/{hash}/stop", deed("stop run", course::stop))
        .route("/studies/{hash}/take", deed("take data", course::take))
        .route("/studies/{hash}/start", deed("start run", course::start))
        .route("/studies/{hash}/report", show(reading::show))
        .route("/studies/{hash}/report/give", deed("give report", reading::give))
        .route("/studies/{hash}/report/take", deed("take report back", reading::take))
        .route("/studies/{hash}/report/{file}", show(reading::file))
}

/// What is said of a study, each under its heading.
fn told_parts(heading: &'static str, sections: &[ToldSection]) -> impl Iterator<Item = Markup> {
    sections.iter().map(move |section| {
        let lines = section.lines.iter().map(|line| element("li", &[], [element("bdi", &[], spans(line))]));
        let lines = (!section.lines.is_empty()).then(|| element("ul", &[], lines));
        let place = [("tabindex", "0"), ("aria-label", section.title.as_str()), ("role", "group")];
        let table = (!section.table.is_empty()).then(|| {
            let table = element("pre", &place, span_lines(&section.table.join("\n")));
            element("details", &[], [words("summary", "", "In numbers"), table])
        });
        let title = words(heading, "", &section.title);
        element("section", &[], [title].into_iter().chain(lines).chain(table))
    })
}

/// A file that is in the program: for ever the same under its path.
async fn asset(Path((hash, name)): Path<(String, String)>) -> axum::response::Response {
    let path = format!("/assets/{hash}/{name}");
    let (kind, content) = match path.as_str() {
        path if path == shell::style().0 => ("text/css; charset=utf-8", shell::style().1.as_str()),
        path if path == shell::script().0 => ("text/javascript; charset=utf-8", shell::script().1),
        shell::ICON_PATH => ("image/svg+xml", shell::ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let kept = "public, max-age=31536000, immutable";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, kept)], content).into_response()
}
