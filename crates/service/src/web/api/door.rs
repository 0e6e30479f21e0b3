//! How a request of a program becomes an answer: whose token it has and what for, whether it came before;
//! then the function of its address.

use super::stop::ApiStop;
use crate::roles::Grant;
use crate::secrets::{API_MARK, SecretToken};
use crate::store::{ApiToken, OpenSession, Replayed, TokenScope};
use crate::web::answer::Answer;
use crate::web::buckets::counted_as;
use crate::web::door::ClientAddress;
use crate::web::pages::second::is_required;
use crate::web::visit::{SignedIn, Stop, Visit};
use crate::web::{House, now};
use axum::Form;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Bytes of a body that has no study in it.
pub const BODY_BYTES: usize = 64 << 10;
/// Letters of the key of a request that may come twice.
const KEY_LETTERS: usize = 64;
const KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// An address: what it is for, and what does it.
pub struct ApiRoute {
    /// How it is asked for.
    pub method: Method,
    /// Where, after the base.
    pub path: &'static str,
    /// One of these is needed; none: any token will do.
    pub scopes: &'static [TokenScope],
    /// What it does, in a sentence.
    pub said: &'static str,
    /// What may stand behind the question mark, and what it says.
    pub query: &'static [(&'static str, &'static str)],
    /// What is sent.
    pub sent: Option<ApiShape>,
    /// What comes back.
    pub back: ApiBack,
    /// Bytes of a body at most.
    pub most: usize,
    run: ApiCall,
}

type ApiCall = Box<dyn Fn(&Visit<'_>, &[u8]) -> Result<ApiReply, ApiStop> + Send + Sync>;

/// What comes back from an address.
pub enum ApiBack {
    /// An object of a shape, with a status.
    Object(StatusCode, ApiShape),
    /// Bytes, of one of these kinds.
    File(&'static [&'static str]),
}

/// A shape that the document has.
#[derive(Clone, Copy)]
pub struct ApiShape {
    /// What it is called.
    pub name: fn() -> Cow<'static, str>,
    /// It, and all that it is made of.
    pub all: fn(&mut Vec<(String, RefOr<Schema>)>),
}

impl ApiShape {
    fn of<T: ToSchema>() -> Self {
        let all = |to: &mut Vec<(String, RefOr<Schema>)>| {
            to.push((T::name().into_owned(), T::schema()));
            T::schemas(to);
        };
        Self { name: T::name, all }
    }
}

enum ApiReply {
    Object(StatusCode, Vec<u8>),
    File(Answer),
}

fn object(status: StatusCode, answer: &impl Serialize) -> Result<ApiReply, ApiStop> {
    let body = serde_json::to_vec(answer).map_err(|e| base::Error::misuse(format!("an answer: {e}")))?;
    Ok(ApiReply::Object(status, body))
}

/// An address that is looked at.
pub fn get<A: Serialize + ToSchema + 'static>(
    path: &'static str,
    scopes: &'static [TokenScope],
    said: &'static str,
    run: fn(&Visit<'_>) -> Result<A, ApiStop>,
) -> ApiRoute {
    let status = StatusCode::OK;
    ApiRoute {
        method: Method::GET,
        path,
        scopes,
        said,
        query: &[],
        sent: None,
        back: ApiBack::Object(status, ApiShape::of::<A>()),
        most: BODY_BYTES,
        run: Box::new(move |visit, _| object(status, &run(visit)?)),
    }
}

/// An address that gives a file, by a function of the pages.
pub fn file(
    path: &'static str,
    scopes: &'static [TokenScope],
    said: &'static str,
    kinds: &'static [&'static str],
    run: fn(&Visit<'_>) -> Result<Answer, ApiStop>,
) -> ApiRoute {
    ApiRoute {
        method: Method::GET,
        path,
        scopes,
        said,
        query: &[],
        sent: None,
        back: ApiBack::File(kinds),
        most: BODY_BYTES,
        run: Box::new(move |visit, _| Ok(ApiReply::File(run(visit)?))),
    }
}

/// An address that something is sent to.
pub fn send<B: DeserializeOwned + ToSchema + 'static, A: Serialize + ToSchema + 'static>(
    (method, path): (Method, &'static str),
    scopes: &'static [TokenScope],
    said: &'static str,
    run: fn(&Visit<'_>, B) -> Result<A, ApiStop>,
) -> ApiRoute {
    let status = StatusCode::OK;
    ApiRoute {
        method,
        path,
        scopes,
        said,
        query: &[],
        sent: Some(ApiShape::of::<B>()),
        back: ApiBack::Object(status, ApiShape::of::<A>()),
        most: BODY_BYTES,
        run: Box::new(move |visit, body| {
            let body = if body.is_empty() { b"{}" } else { body };
            let body = serde_json::from_slice(body).map_err(|error| ApiStop::at(&error))?;
            object(status, &run(visit, body)?)
        }),
    }
}

impl ApiRoute {
    /// With what may stand behind the question mark.
    pub fn asking(mut self, query: &'static [(&'static str, &'static str)]) -> Self {
        self.query = query;
        self
    }

    /// With larger bodies.
    pub fn up_to(mut self, most: usize) -> Self {
        self.most = most;
        self
    }

    /// Whether each use is written into the log: what changes something, and what shows results.
    fn is_logged(&self) -> bool {
        self.method != Method::GET || self.scopes.contains(&TokenScope::Reports)
    }
}

/// The door of an address.
pub fn open(route: Arc<ApiRoute>) -> MethodRouter<Arc<House>> {
    let filter = MethodFilter::try_from(route.method.clone()).unwrap_or(MethodFilter::TRACE);
    on(filter, move |State(house): State<Arc<House>>, request: Request| enter(house, route.clone(), request))
}

/// What an address is not asked by.
pub async fn no_method() -> Response<Body> {
    ApiStop::new(StatusCode::METHOD_NOT_ALLOWED, "this address is not asked for in this way").into_response()
}

async fn enter(house: Arc<House>, route: Arc<ApiRoute>, request: Request) -> Response<Body> {
    let Some(ClientAddress(address)) = request.extensions().get::<ClientAddress>().copied() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let (mut head, body) = request.into_parts();
    let Ok(Path(parts)) = Path::<HashMap<String, String>>::from_request_parts(&mut head, &()).await else {
        return super::stop::missing().into_response();
    };
    let knock = match ApiKnock::of((house, address), route.scopes, head, parts).await {
        Ok(knock) => knock,
        Err(stop) => return stop.into_response(),
    };
    // Who is not answered is told so before anything is read that they send.
    let looked = tokio::task::spawn_blocking(move || knock.look().map(|_| knock));
    let knock = match looked.await {
        Ok(Ok(knock)) => knock,
        Ok(Err(stop)) => return stop.into_response(),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(body, route.most)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            let said = format!("the body has more than {} bytes, or broke off", route.most);
            return ApiStop::new(StatusCode::PAYLOAD_TOO_LARGE, said).into_response();
        }
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
    };
    let answered = tokio::task::spawn_blocking(move || {
        let answer = answer(&knock, &route, &body);
        answer.unwrap_or_else(Answer::from).into_response()
    });
    answered.await.unwrap_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response())
}

/// A request of which nothing is read yet but its head.
pub struct ApiKnock {
    /// The service.
    pub house: Arc<House>,
    /// All of its head.
    pub headers: HeaderMap,
    address: IpAddr,
    scopes: &'static [TokenScope],
    path: String,
    parts: HashMap<String, String>,
    form: Vec<(String, String)>,
}

impl ApiKnock {
    /// Of a head, with the variable parts of its path.
    pub async fn of(
        (house, address): (Arc<House>, IpAddr),
        scopes: &'static [TokenScope],
        head: Parts,
        parts: HashMap<String, String>,
    ) -> Result<Self, ApiStop> {
        let asked = Request::builder().uri(head.uri.clone()).body(Body::empty()).unwrap_or_default();
        let Ok(Form(form)) = Form::<Vec<(String, String)>>::from_request(asked, &()).await else {
            let said = "what stands behind the question mark is none";
            return Err(ApiStop::new(StatusCode::BAD_REQUEST, said));
        };
        let path = head.uri.path().to_owned();
        Ok(Self { house, headers: head.headers, address, scopes, path, parts, form })
    }

    fn visit(&self) -> Visit<'_> {
        Visit {
            house: &self.house,
            rules: self.house.rules(),
            now: now(),
            address: self.address,
            signed: None,
            device: None,
            path: self.path.clone(),
            from_elsewhere: false,
            by_proxy: false,
            parts: self.parts.clone(),
            form: self.form.clone(),
        }
    }

    /// Whose token it is, where that may be used here: a use of it, which counts.
    pub fn look(&self) -> Result<ApiToken, ApiStop> {
        let mut visit = self.visit();
        not_in_address(&visit)?;
        let shown = bearer(&self.headers);
        let found = shown.as_ref().map(|shown| self.house.store.token(shown, visit.now)).transpose()?;
        let (Some(shown), Some((token, grants))) = (shown, found.flatten()) else {
            let who = format!("api {}", counted_as(self.address));
            return Err(if self.house.buckets.take(&who) { unknown() } else { Stop::TooFast.into() });
        };
        if !self.house.buckets.take(&format!("token {}", token.id)) {
            return Err(Stop::TooFast.into());
        }
        sign(&mut visit, shown, &token, &grants)?;
        has_one(&visit, self.scopes)?;
        Ok(token)
    }

    /// The request by its token: since that was looked at it may have ended, or have other roles.
    fn signed(&self) -> Result<(Visit<'_>, ApiToken), ApiStop> {
        let mut visit = self.visit();
        let shown = bearer(&self.headers).ok_or_else(unknown)?;
        let found = self.house.store.peek_token(&shown, visit.now)?;
        let (token, grants) = found.ok_or_else(unknown)?;
        sign(&mut visit, shown, &token, &grants)?;
        has_one(&visit, self.scopes)?;
        Ok((visit, token))
    }
}

fn has_one(visit: &Visit<'_>, scopes: &[TokenScope]) -> Result<(), ApiStop> {
    if scopes.is_empty() || scopes.iter().any(|scope| visit.has_scope(*scope)) {
        return Ok(());
    }
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
    let said = format!("this takes a token with the scope {}", scopes.join(" or "));
    Err(ApiStop::new(StatusCode::FORBIDDEN, said))
}

fn answer(knock: &ApiKnock, route: &ApiRoute, body: &[u8]) -> Result<Answer, ApiStop> {
    let ((visit, token), headers) = (knock.signed()?, &knock.headers);
    let visit = &visit;
    is_json(route, headers, body)?;
    let key = key_of(route, headers)?;
    if route.is_logged() {
        let subject = ["hash", "name", "id"].map(|name| visit.part(name)).into_iter().find(|p| !p.is_empty());
        let what = format!("by token {}: {} {}", token.name, route.method, route.path);
        visit.house.store.record(&visit.act(&what, subject.unwrap_or_default())?)?;
    }
    let run = |visit: &Visit<'_>| (route.run)(visit, body);
    let reply = match key {
        None => run(visit)?,
        Some(key) => return once(visit, &token, key, (route, body), run),
    };
    Ok(match reply {
        ApiReply::Object(status, body) => Answer::json(status, body),
        ApiReply::File(answer) => answer,
    })
}

/// Does what comes with a key once: who asks again gets the answer that there was.
fn once(
    visit: &Visit<'_>,
    token: &ApiToken,
    key: &str,
    (route, body): (&ApiRoute, &[u8]),
    run: impl FnOnce(&Visit<'_>) -> Result<ApiReply, ApiStop>,
) -> Result<Answer, ApiStop> {
    let mut hash = blake3::Hasher::new();
    hash.update(route.method.as_str().as_bytes()).update(b" ").update(visit.path.as_bytes());
    hash.update(b"\n").update(body);
    let store = &visit.house.store;
    match store.begin_request(token.id, key, hash.finalize().as_bytes(), visit.now)? {
        Replayed::Fresh => {}
        Replayed::Answered(status, body) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            let name = HeaderName::from_static("idempotency-replayed");
            return Ok(Answer::json(status, body).with(name, "true".to_owned()));
        }
        Replayed::Unknown => {
            let said = "a request with this Idempotency-Key is being done, or was broken off: see how what \
                        it is about stands";
            return Err(ApiStop::refused(said));
        }
        Replayed::Another => {
            return Err(ApiStop::input("this Idempotency-Key came with another request: take a new one"));
        }
    }
    let (answer, kept) = match run(visit) {
        Ok(ApiReply::Object(status, body)) => {
            (Answer::json(status, body.clone()), Some((status.as_u16(), body)))
        }
        Ok(ApiReply::File(answer)) => (answer, None),
        // What may be otherwise in a moment comes again.
        Err(stop) => {
            let status = stop.status().as_u16();
            let kept = (status < 500 && status != 429).then(|| (status, stop.body()));
            (stop.into(), kept)
        }
    };
    store.end_request(token.id, key, kept.as_ref().map(|(status, body)| (*status, body.as_slice())))?;
    Ok(answer)
}

fn not_in_address(visit: &Visit<'_>) -> Result<(), ApiStop> {
    let is_secret = |text: &str| text.contains(API_MARK);
    let named = |(name, value): &(String, String)| {
        is_secret(value) || is_secret(name) || ["token", "access_token"].contains(&name.as_str())
    };
    if visit.form.iter().any(named) || is_secret(&visit.path) {
        let said = "a token in an address is kept in logs: end it, and send a new one as `Authorization: \
                    Bearer`";
        return Err(ApiStop::new(StatusCode::BAD_REQUEST, said));
    }
    Ok(())
}

/// What who shows no token that holds is told.
fn unknown() -> ApiStop {
    let said = "this takes a token that holds, as `Authorization: Bearer tacit_...`: it ran out, was ended, \
                or the roles of its account have changed";
    ApiStop::new(StatusCode::UNAUTHORIZED, said)
}

/// Signs a program in by its token: for its account, with the roles that it has now, and no password given.
/// Cookies are not looked at.
pub fn sign(
    visit: &mut Visit<'_>,
    shown: SecretToken,
    token: &ApiToken,
    grants: &[Grant],
) -> Result<(), Stop> {
    if is_required(visit, grants) && !visit.house.store.has_second(&token.account)? {
        return Err(Stop::OneStep);
    }
    let actor = token.asker(grants, visit.settings().policy.separate_duties);
    let session = OpenSession {
        // No session has this number.
        id: 0,
        account: token.account.clone(),
        grants: actor.grants.clone(),
        begun: token.made,
        seen: visit.now,
        proven: false,
    };
    visit.signed = Some(SignedIn { token: shown, session, actor, scopes: token.scopes.clone() });
    Ok(())
}

/// The token of the one header that has it.
pub fn bearer(headers: &HeaderMap) -> Option<SecretToken> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let text = all.next().filter(|_| all.next().is_none())?.to_str().ok()?;
    let (scheme, rest) = text.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") { SecretToken::of_program(rest.trim()) } else { None }
}

fn is_json(route: &ApiRoute, headers: &HeaderMap, body: &[u8]) -> Result<(), ApiStop> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if route.sent.is_none() || body.is_empty() || kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let said = "send it as JSON, with `Content-Type: application/json`";
    Err(ApiStop::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, said))
}

fn key_of<'h>(route: &ApiRoute, headers: &'h HeaderMap) -> Result<Option<&'h str>, ApiStop> {
    let Some(value) = headers.get(KEY).filter(|_| route.sent.is_some()) else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| (1..=KEY_LETTERS).contains(&key.len()));
    let said = format!("an Idempotency-Key has 1 to {KEY_LETTERS} letters and digits");
    key.map(Some).ok_or_else(|| ApiStop::new(StatusCode::BAD_REQUEST, said))
}
