//! The pages, by path.

mod account;
mod accounts;
mod audit;
mod budget;
mod confirmations;
mod data;
mod help;
mod home;
mod operate;
mod peers;
mod rules;
pub mod second;
mod sign_in;

use super::door::{deed, missing, open, proven_deed, send, show};
use super::{House, shell};
use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
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
        .route("/operate", show(operate::show))
        .route("/operate/sessions/{id}/end", deed("end session of another", operate::end_session))
        .route("/help", show(help::list))
        .route("/help/{word}", show(help::one))
        .route("/audit", show(audit::show))
        .route("/audit/verify", deed("verify log", audit::verify))
        .route("/audit/export", deed("export log", audit::export))
        .route("/health", get(|| async { StatusCode::OK }))
        .route("/assets/{hash}/{name}", get(asset))
        .fallback(missing)
}

/// A file that is in the program: for ever the same under its path.
async fn asset(Path((hash, name)): Path<(String, String)>) -> axum::response::Response {
    let path = format!("/assets/{hash}/{name}");
    let (kind, content) = match path.as_str() {
        path if path == shell::style().0 => ("text/css; charset=utf-8", shell::style().1.as_str()),
        shell::ICON_PATH => ("image/svg+xml", shell::ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    let kept = "public, max-age=31536000, immutable";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, kept)], content).into_response()
}
