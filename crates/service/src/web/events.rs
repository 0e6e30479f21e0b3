//! Word to open pages that something has changed: they then ask for themselves again. An event holds nothing
//! that has to be kept from anybody.

use super::door::cookie;
use super::places::PlaceTaken;
use super::{House, now};
use crate::secrets::SecretToken;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::unfold;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a word is said that holds a connection open, and a session is looked at.
const ALIVE: Duration = Duration::from_secs(15);

/// What one page waits for.
struct PulseReader {
    house: Arc<House>,
    token: SecretToken,
    changes: watch::Receiver<u64>,
    session: i64,
    /// Its place among the streams of its session.
    place: Option<PlaceTaken>,
}

/// A stream of words for one page, until its session ends. A browser keeps six connections to one service
/// at most: streams never take all of them.
pub async fn stream(State(house): State<Arc<House>>, headers: HeaderMap) -> Response<Body> {
    let Some(token) = cookie(&headers) else { return StatusCode::UNAUTHORIZED.into_response() };
    let changes = house.store.changes();
    let listening = PulseReader { house, token, changes, session: 0, place: None };
    let Some(mut listening) = is_signed_in(listening).await else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
    let who = format!("session {}", listening.session);
    if !listening.house.buckets.take(&who) {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    listening.place = listening.house.streams.take(who);
    if listening.place.is_none() {
        return StatusCode::TOO_MANY_REQUESTS.into_response();
    }
    let events = unfold(listening, |mut listening| async {
        loop {
            let changed = tokio::time::timeout(ALIVE, listening.changes.changed()).await;
            listening = is_signed_in(listening).await?;
            match changed {
                Ok(Ok(())) => {
                    let seen = *listening.changes.borrow_and_update();
                    let event = Event::default().event("changed").data(seen.to_string());
                    return Some((Ok::<_, Infallible>(event), listening));
                }
                Ok(Err(_)) => return None,
                Err(_) => {}
            }
        }
    });
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

/// The same while its session holds; to wait is no use of it.
async fn is_signed_in(mut listening: PulseReader) -> Option<PulseReader> {
    let found = tokio::task::spawn_blocking(move || {
        let held = listening.house.store.peek(&listening.token, now()).ok().flatten()?;
        listening.session = held.id;
        Some(listening)
    });
    found.await.ok().flatten()
}
