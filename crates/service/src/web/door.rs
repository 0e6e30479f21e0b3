//! How a request becomes an answer: who asks, whether the form is one of ours for just this, whether the
//! password has to be given once more; then the page's own function.

use super::answer::{Answer, COOKIE};
use super::pages::second::is_required;
use super::visit::{SignedIn, Stop, Visit};
use super::{House, now, shell};
use crate::names::is_account_name;
use crate::passwords::{DeskBusy, PasswordVerdict};
use crate::roles::Asker;
use crate::secrets::SecretToken;
use crate::store::RecordedAct;
use axum::Form;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, on};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a form may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);

/// What a page's function is.
pub type PageOf = fn(&Visit<'_>) -> Result<Answer, Stop>;

/// Where a request comes from, as the listener saw it.
#[derive(Clone, Copy, Debug)]
pub struct ClientAddress(pub IpAddr);

/// That a request came through the proxy, which names the person in this header.
#[derive(Clone, Debug)]
pub struct ByProxy(pub String);

/// What a form does.
#[derive(Clone, Copy)]
pub struct Deed {
    /// Its name, to which the form's word is bound, with the variable parts of the path.
    pub what: &'static str,
    /// Whether the password must have been given in the last five minutes.
    pub proven: bool,
    /// What does it.
    pub run: PageOf,
}

#[derive(Clone, Copy)]
enum Call {
    /// For anybody.
    Open(PageOf),
    /// For those who are signed in.
    Show(PageOf),
    /// A form of somebody who is signed in.
    Do(Deed),
}

/// What anybody may see.
pub fn open(show: PageOf) -> MethodRouter<Arc<House>> {
    through(axum::routing::MethodFilter::GET, Call::Open(show))
}

/// What anybody may send.
pub fn send(run: PageOf) -> MethodRouter<Arc<House>> {
    through(axum::routing::MethodFilter::POST, Call::Open(run))
}

/// What those who are signed in see, as far as they may.
pub fn show(show: PageOf) -> MethodRouter<Arc<House>> {
    through(axum::routing::MethodFilter::GET, Call::Show(show))
}

/// What those who are signed in do, as far as they may.
pub fn deed(what: &'static str, run: PageOf) -> MethodRouter<Arc<House>> {
    through(axum::routing::MethodFilter::POST, Call::Do(Deed { what, proven: false, run }))
}

/// The same, for what needs the password again unless it was just given.
pub fn proven_deed(what: &'static str, run: PageOf) -> MethodRouter<Arc<House>> {
    through(axum::routing::MethodFilter::POST, Call::Do(Deed { what, proven: true, run }))
}

fn through(filter: axum::routing::MethodFilter, call: Call) -> MethodRouter<Arc<House>> {
    on(filter, move |State(house): State<Arc<House>>, request: Request| enter(house, call, request))
}

/// The page of a path that is none.
pub async fn missing(State(house): State<Arc<House>>, request: Request) -> Response<Body> {
    enter(house, Call::Open(|_| Err(Stop::Missing)), request).await
}

async fn enter(house: Arc<House>, call: Call, request: Request) -> Response<Body> {
    let Some(address) = request.extensions().get::<ClientAddress>().copied() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let by_proxy = request.extensions().get::<ByProxy>().cloned();
    let (mut head, body) = request.into_parts();
    let parts = match Path::<HashMap<String, String>>::from_request_parts(&mut head, &()).await {
        Ok(Path(parts)) => parts,
        Err(_) if matches!(call, Call::Open(_)) => HashMap::new(),
        Err(refused) => return refused.into_response(),
    };
    let (headers, method) = (head.headers.clone(), head.method.clone());
    let path = head.uri.path().to_owned();
    let form = Form::<Vec<(String, String)>>::from_request(Request::from_parts(head, body), &());
    let form = match tokio::time::timeout(BODY_TIME, form).await {
        Ok(Ok(Form(form))) => form,
        Ok(Err(refused)) => return refused.into_response(),
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let answered = tokio::task::spawn_blocking(move || {
        let from_elsewhere = headers.get("sec-fetch-site").is_some_and(|site| site == "cross-site");
        let (now, rules) = (now(), house.rules());
        let ClientAddress(address) = address;
        let mut visit =
            Visit { house: &house, rules, now, address, signed: None, path, from_elsewhere, parts, form };
        let begun = match &by_proxy {
            None => signed_in(&mut visit, &headers).map(|()| false),
            Some(ByProxy(header)) => vouched_for(&mut visit, &headers, header),
        };
        let fresh = matches!(begun, Ok(true));
        let answer = begun.and_then(|_| not_too_fast(&visit)).and_then(|()| answer(&visit, call, &method));
        let answer = answer.unwrap_or_else(|stop| shell::stopped(&visit, stop));
        match &visit.signed {
            Some(signed) if fresh => answer.or_session(&signed.token).into_response(),
            _ => answer.into_response(),
        }
    });
    answered.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The token of the session's cookie. Where a browser sends two, something is wrong, and none is taken.
pub fn cookie(headers: &HeaderMap) -> Option<SecretToken> {
    let all = headers.get_all(header::COOKIE);
    let pairs = all.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    let mut ours = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == COOKIE);
    let first = ours.next().and_then(|(_, value)| SecretToken::parse(value));
    if ours.next().is_none() { first } else { None }
}

/// Finds out who asks.
fn signed_in(visit: &mut Visit<'_>, headers: &HeaderMap) -> Result<(), Stop> {
    match cookie(headers) {
        Some(token) => signed_as(visit, token),
        None => Ok(()),
    }
}

fn signed_as(visit: &mut Visit<'_>, token: SecretToken) -> Result<(), Stop> {
    let Some(session) = visit.house.store.session(&token, visit.now)? else { return Ok(()) };
    let separate = visit.settings().policy.separate_duties;
    let actor = Asker { name: session.account.clone(), grants: session.grants.clone(), separate };
    visit.signed = Some(SignedIn { token, session, actor, scopes: Vec::new() });
    Ok(())
}

/// Finds out whom the proxy names; whether a session begins with that. A cookie of somebody else is nothing.
fn vouched_for(visit: &mut Visit<'_>, headers: &HeaderMap, header: &str) -> Result<bool, Stop> {
    signed_in(visit, headers)?;
    // Of two names none is taken: one could be the client's own.
    let mut named = headers.get_all(header).iter().filter_map(|value| value.to_str().ok());
    let name = named.next().filter(|name| named.next().is_none() && is_account_name(name));
    if visit.signed.as_ref().map(|signed| signed.session.account.as_str()) == name {
        return Ok(false);
    }
    visit.signed = None;
    let Some(name) = name else { return Ok(false) };
    let act = RecordedAct { by: name, what: "signed in by the proxy", to: name, at: visit.now };
    let Some(token) = visit.house.store.begin_by_proxy(&act)? else { return Ok(false) };
    signed_as(visit, token)?;
    Ok(visit.signed.is_some())
}

/// Who is signed in has a measure of their own; all others of one address share one.
fn not_too_fast(visit: &Visit<'_>) -> Result<(), Stop> {
    let who = match &visit.signed {
        Some(signed) => format!("session {}", signed.session.id),
        None => super::buckets::counted_as(visit.address),
    };
    if visit.house.buckets.take(&who) { Ok(()) } else { Err(Stop::TooFast) }
}

fn answer(visit: &Visit<'_>, call: Call, method: &Method) -> Result<Answer, Stop> {
    match call {
        Call::Open(run) => run(visit),
        Call::Show(_) | Call::Do(_) if visit.signed.is_none() => Ok(shell::to_sign_in(visit, method)),
        Call::Show(_) | Call::Do(_) if lacks_second(visit)? => Err(Stop::OneStep),
        Call::Show(run) => run(visit),
        Call::Do(deed) => done(visit, deed),
    }
}

/// Whether somebody has to set up a second step before anything else, by `policy.second_step`.
fn lacks_second(visit: &Visit<'_>) -> Result<bool, Stop> {
    let signed = visit.signed()?;
    let own = visit.path == "/account" || visit.path.starts_with("/account/") || visit.path == "/sign-out";
    let asked = !own && is_required(visit, &signed.actor.grants);
    Ok(asked && !visit.house.store.has_second(&signed.session.account)?)
}

fn done(visit: &Visit<'_>, deed: Deed) -> Result<Answer, Stop> {
    let signed = visit.signed()?;
    let subject = subject(&visit.parts, visit.field("proposal"));
    if !signed.token.is_form_word(deed.what, &subject, visit.field("csrf")) {
        return Err(Stop::Stale);
    }
    if deed.proven && !signed.session.proven {
        return Err(Stop::Unproven);
    }
    (deed.run)(visit)
}

/// What a form's word is bound to besides its deed: the variable parts of the path, in order of their names,
/// and the proposal that was on the page, where the form names one.
pub fn subject(parts: &HashMap<String, String>, proposal: &str) -> String {
    let mut all: Vec<(&str, &str)> =
        parts.iter().map(|(name, part)| (name.as_str(), part.as_str())).collect();
    all.sort_unstable();
    let proposal = Some(proposal).filter(|proposal| !proposal.is_empty());
    all.into_iter().map(|(_, part)| part).chain(proposal).collect::<Vec<_>>().join("/")
}

/// Takes a password for that of the person; the session goes on under the new cookie.
pub fn prove(visit: &Visit<'_>, password: &str) -> Result<SecretToken, Stop> {
    let SignedIn { token, session, .. } = visit.signed()?;
    let (store, account) = (&visit.house.store, &session.account);
    let kept = store.password_of(account)?;
    match visit.house.desk.compare(password, kept.as_deref()) {
        Err(DeskBusy) => Err(Stop::Busy),
        Ok(PasswordVerdict::Wrong) => {
            store.wrong_within(session)?;
            Err(Stop::WrongPassword)
        }
        Ok(PasswordVerdict::Right(held)) => {
            let act =
                RecordedAct { by: account, what: "gave the password again", to: account, at: visit.now };
            let begun = store.begin_session(&act, &held.kept(store, account)?, Some(token), true)?;
            begun.ok_or(Stop::Stale)
        }
    }
}
