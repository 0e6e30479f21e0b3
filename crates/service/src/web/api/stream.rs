//! What happens, as it happens, for programs: studies that change and lines of runs, as far as their token's
//! account may know of them. Who was away goes on where it was.

use super::door::{ApiKnock, bearer, sign};
use super::stop::ApiStop;
use super::studies::row as shown;
use crate::roles::{Action, StudySubject, Subject};
use crate::secrets::SecretToken;
use crate::store::{FeedPlace, ProposalRow, TokenScope};
use crate::web::door::ClientAddress;
use crate::web::pages::course::{counts, without_counts};
use crate::web::places::PlaceTaken;
use crate::web::visit::Visit;
use crate::web::{House, now};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::unfold;
use serde_json::json;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a word is said that holds a connection open, and a token is looked at.
const ALIVE: Duration = Duration::from_secs(15);

/// Where who listens was before.
const LAST: &str = "last-event-id";

/// Who listens, and how far they have heard.
struct Listener {
    house: Arc<House>,
    text: String,
    place: FeedPlace,
    changes: watch::Receiver<u64>,
    waiting: VecDeque<Event>,
    /// Whether more has come than was read at once.
    more: bool,
    /// Its place among the streams of its account.
    _held: PlaceTaken,
}

/// A stream of events for one program, until its token ends.
pub async fn stream(State(house): State<Arc<House>>, request: Request) -> Response<Body> {
    let Some(ClientAddress(address)) = request.extensions().get::<ClientAddress>().copied() else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let (head, _) = request.into_parts();
    let scopes = &[TokenScope::Studies];
    let knock = match ApiKnock::of((house, address), scopes, head, HashMap::new()).await {
        Ok(knock) => knock,
        Err(stop) => return stop.into_response(),
    };
    let listener = match tokio::task::spawn_blocking(move || begin(&knock)).await {
        Ok(Ok(listener)) => listener,
        Ok(Err(stop)) => return stop.into_response(),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let events = unfold(listener, |mut listener| async {
        loop {
            if let Some(event) = listener.waiting.pop_front() {
                return Some((Ok::<_, Infallible>(event), listener));
            }
            if !listener.more {
                match tokio::time::timeout(ALIVE, listener.changes.changed()).await {
                    Ok(Err(_)) => return None,
                    Ok(Ok(())) => _ = listener.changes.borrow_and_update(),
                    Err(_) => {}
                }
            }
            listener = heard(listener).await?;
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

/// Lets who may listen begin, from where they were.
fn begin(knock: &ApiKnock) -> Result<Listener, ApiStop> {
    let token = knock.look()?;
    let (house, headers) = (knock.house.clone(), &knock.headers);
    let held = house.listeners.take(token.account).ok_or_else(|| {
        let said = "this account has as many streams of events as it may, or the service has: end one first";
        ApiStop::new(StatusCode::TOO_MANY_REQUESTS, said)
    })?;
    let last = headers.get(LAST).map(|value| value.to_str().unwrap_or_default().parse::<FeedPlace>());
    let (changes, end, mut waiting) = (house.store.changes(), house.store.feed_end()?, VecDeque::new());
    let place = match last {
        Some(Ok(place)) => place,
        // What was heard before is unknown: who listens has to look at everything again.
        Some(Err(())) => {
            waiting.push_back(Event::default().event("reset").id(end.to_string()).data("{}"));
            end
        }
        None => end,
    };
    let text = bearer(headers).map(|token| token.for_programs()).unwrap_or_default();
    Ok(Listener { house, text, place, changes, waiting, more: true, _held: held })
}

/// The same with what has come since, while its token holds.
async fn heard(mut listener: Listener) -> Option<Listener> {
    let done = tokio::task::spawn_blocking(move || hear(&mut listener).map(|()| listener));
    done.await.ok().flatten()
}

fn hear(listener: &mut Listener) -> Option<()> {
    let token = SecretToken::of_program(&listener.text)?;
    let house = listener.house.clone();
    let (found, grants) = house.store.peek_token(&token, now()).ok().flatten()?;
    let mut visit = Visit {
        house: &house,
        rules: house.rules(),
        now: now(),
        address: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        signed: None,
        device: None,
        path: String::new(),
        from_elsewhere: false,
        by_proxy: false,
        parts: HashMap::new(),
        form: Vec::new(),
    };
    sign(&mut visit, token, &found, &grants).ok()?;
    if !visit.has_scope(TokenScope::Studies) {
        return None;
    }
    let rows = house.store.changed_since(listener.place).ok()?;
    for row in &rows {
        (listener.place.changed_ms, listener.place.row) = (row.changed_ms, row.row);
        if knows(&visit, row) {
            let data = json!(shown(&visit, row)).to_string();
            let event = Event::default().event("study").id(listener.place.to_string());
            listener.waiting.push_back(event.data(data));
        }
    }
    let lines = house.store.lines_since(listener.place).ok()?;
    for line in &lines {
        listener.place.line = line.line.row;
        let row = house.store.proposal(&line.proposal).ok().flatten();
        let Some(row) = row.filter(|row| visit.has_scope(TokenScope::Run) && knows(&visit, row)) else {
            continue;
        };
        let said = match counts(&visit, &row) {
            true => Some(serde_json::from_str(&line.line.line).unwrap_or_default()),
            false => without_counts(&line.line.line),
        };
        let Some(said) = said else { continue };
        let data = json!({
            "study": row.study.full(), "proposal": base::hex(&row.id.0), "run": line.run,
            "at_ms": line.line.at_ms, "line": said,
        });
        let event = Event::default().event("line").id(listener.place.to_string());
        listener.waiting.push_back(event.data(data.to_string()));
    }
    listener.more = !rows.is_empty() || !lines.is_empty();
    Some(())
}

/// Whether who listens may know of a study.
fn knows(visit: &Visit<'_>, row: &ProposalRow) -> bool {
    let account = visit.signed.as_ref().map_or("", |signed| &signed.session.account);
    let given = visit.house.store.is_given(&row.id, account).unwrap_or(false);
    let subject = StudySubject { by: &row.by, data: row.data.as_deref(), given };
    visit.may(Action::SeeStudy, Subject::Study(subject))
}
