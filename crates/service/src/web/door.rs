//! How a request becomes an answer: who asks, whether the form is one of ours for just this, whether the
//! password has to be given once more; then the page's own function.

use super::answer::{Answer, COOKIE, DEVICE_COOKIE};
use super::pages::second::is_required;
use super::visit::{SignedIn, Stop, Visit};
use super::{House, now, shell};
use crate::names::is_account_name;
use crate::passwords::{DeskBusy, HeldPassword, PasswordVerdict};
use crate::roles::Asker;
use crate::secrets::SecretToken;
use crate::store::{Allowed, RecordedAct, tried_by_proxy};
use axum::Form;
use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, on};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long a form may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Fields of a form.
const FIELDS: usize = 200;

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
    let by_proxy = request.extensions().get::<ByProxy>().map(|ByProxy(header)| header.clone());
    let (mut head, body) = request.into_parts();
    let parts = match Path::<HashMap<String, String>>::from_request_parts(&mut head, &()).await {
        Ok(Path(parts)) => parts,
        Err(_) if matches!(call, Call::Open(_)) => HashMap::new(),
        Err(refused) => return refused.into_response(),
    };
    let knock = Knock {
        house,
        call,
        method: head.method.clone(),
        headers: head.headers.clone(),
        address: address.0,
        by_proxy,
        path: head.uri.path().to_owned(),
        parts,
        token: None,
        fresh: false,
    };
    // Who is not answered is told so before anything is read that they send.
    let looked = tokio::task::spawn_blocking(move || knock.look());
    let knock = match looked.await {
        Ok(Ok(knock)) => knock,
        Ok(Err(answer)) => return answer.into_response(),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let form = match tokio::time::timeout(BODY_TIME, form_of(head, body)).await {
        Ok(Ok(form)) => form,
        Ok(Err(refused)) => return refused,
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let answered = tokio::task::spawn_blocking(move || knock.answer(form).into_response());
    answered.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// The fields of a form, or what stands behind the question mark: counted before they are split.
async fn form_of(head: Parts, body: Body) -> Result<Vec<(String, String)>, Response<Body>> {
    let sent = if head.method.is_safe() {
        Bytes::copy_from_slice(head.uri.query().unwrap_or("").as_bytes())
    } else {
        let sent = Bytes::from_request(Request::from_parts(head.clone(), body), &()).await;
        sent.map_err(IntoResponse::into_response)?
    };
    if sent.iter().filter(|byte| **byte == b'&').count() >= FIELDS {
        return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    }
    let form = Form::<Vec<(String, String)>>::from_request(Request::from_parts(head, Body::from(sent)), &());
    form.await.map(|Form(form)| form).map_err(IntoResponse::into_response)
}

/// A request of which nothing is read yet but its head.
struct Knock {
    house: Arc<House>,
    call: Call,
    method: Method,
    headers: HeaderMap,
    address: IpAddr,
    /// The header in which the proxy names the person.
    by_proxy: Option<String>,
    path: String,
    parts: HashMap<String, String>,
    /// The session.
    token: Option<SecretToken>,
    /// Whether it began with this request.
    fresh: bool,
}

impl Knock {
    fn visit(&self, form: Vec<(String, String)>) -> Visit<'_> {
        let (house, now) = (&self.house, now());
        let site = self.headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
        // Our own cookie comes along from a neighbour's page, but the proxy's word is not ours.
        let from_elsewhere =
            site == Some("cross-site") || site == Some("same-site") && self.by_proxy.is_some();
        Visit {
            house,
            rules: house.rules(),
            now,
            address: self.address,
            by_proxy: self.by_proxy.is_some(),
            signed: None,
            device: cookie_named(&self.headers, DEVICE_COOKIE),
            path: self.path.clone(),
            from_elsewhere,
            parts: self.parts.clone(),
            form,
        }
    }

    /// Finds out who it is, and whether that is somebody who is answered here.
    fn look(mut self) -> Result<Self, Answer> {
        let (barred, token, fresh) = {
            let mut visit = self.visit(Vec::new());
            let begun = match &self.by_proxy {
                None => signed_in(&mut visit, &self.headers).map(|()| false),
                Some(header) => vouched_for(&mut visit, &self.headers, header),
            };
            let fresh = matches!(begun, Ok(true));
            let looked = begun.and_then(|_| not_too_fast(&visit)).and_then(|()| self.barred(&visit));
            let barred = looked.unwrap_or_else(|stop| Some(shell::stopped(&visit, stop)));
            (barred, visit.signed.map(|signed| signed.token), fresh)
        };
        match barred {
            None => {
                (self.token, self.fresh) = (token, fresh);
                Ok(self)
            }
            Some(answer) => Err(match &token {
                Some(token) if fresh => answer.or_session(token),
                _ => answer,
            }),
        }
    }

    /// The answer to somebody who is not let in.
    fn barred(&self, visit: &Visit<'_>) -> Result<Option<Answer>, Stop> {
        match self.call {
            Call::Open(_) => Ok(None),
            _ if visit.signed.is_none() => Ok(Some(shell::to_sign_in(visit, &self.method))),
            _ if lacks_second(visit)? => Err(Stop::OneStep),
            _ => Ok(None),
        }
    }

    fn answer(mut self, form: Vec<(String, String)>) -> Answer {
        let (token, fresh) = (self.token.take(), self.fresh);
        let mut visit = self.visit(form);
        // What was sent took its time: the session may be over, or its roles others.
        let signed = token.map_or(Ok(()), |token| signed_as(&mut visit, token));
        let barred = signed.and_then(|()| self.barred(&visit));
        let answer = match barred {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => run(&visit, self.call),
            Err(stop) => Err(stop),
        };
        let answer = answer.unwrap_or_else(|stop| shell::stopped(&visit, stop));
        match &visit.signed {
            Some(signed) if fresh => answer.or_session(&signed.token),
            _ => answer,
        }
    }
}

/// The token of the session's cookie.
pub fn cookie(headers: &HeaderMap) -> Option<SecretToken> {
    cookie_named(headers, COOKIE).and_then(|value| SecretToken::parse(&value))
}

/// The value of a cookie. Where a browser sends two, something is wrong, and none is taken.
fn cookie_named(headers: &HeaderMap, cookie: &str) -> Option<String> {
    let all = headers.get_all(header::COOKIE);
    let pairs = all.iter().filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(';'));
    let mut ours = pairs.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == cookie);
    let first = ours.next().map(|(_, value)| value.to_owned());
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
    // Another site's page may make the browser come with the proxy's word, and without our cookie: it would
    // begin one session after the other, and each ends the least used one.
    if visit.from_elsewhere {
        return Ok(false);
    }
    if !visit.house.buckets.take_ten(&format!("name {name}")) {
        return Err(Stop::TooFast);
    }
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

fn run(visit: &Visit<'_>, call: Call) -> Result<Answer, Stop> {
    match call {
        Call::Open(run) | Call::Show(run) => run(visit),
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
    let held = own_password(visit, password)?;
    let act = RecordedAct { by: account, what: "gave the password again", to: account, at: visit.now };
    let begun = store.begin_session(&act, &held.kept(store, account)?, Some(token), true)?;
    begun.ok_or(Stop::Stale)
}

/// Compares a password with that of who is signed in. Wrong ones count within the session, and where a proxy
/// signs in, by name as well: there a new session costs nothing.
pub fn own_password(visit: &Visit<'_>, password: &str) -> Result<HeldPassword, Stop> {
    let session = &visit.signed()?.session;
    let (store, account) = (&visit.house.store, &session.account);
    let (name, address) = (tried_by_proxy(account), super::buckets::counted_as(visit.address));
    if visit.by_proxy && store.may_try(&name, Some(&address), visit.now)? != Allowed::Now {
        return Err(Stop::TooMany);
    }
    let kept = store.password_of(account)?;
    match visit.house.desk.compare(password, kept.as_deref()) {
        Err(DeskBusy) => Err(Stop::Busy),
        Ok(PasswordVerdict::Right(held)) => {
            if visit.by_proxy {
                store.forget_tries(&name)?;
            }
            Ok(held)
        }
        Ok(PasswordVerdict::Wrong) => {
            store.wrong_within(session)?;
            if visit.by_proxy {
                store.count_wrong(&name, &address, visit.now)?;
            }
            Err(Stop::WrongPassword)
        }
    }
}
