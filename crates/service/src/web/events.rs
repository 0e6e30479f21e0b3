//! Word to open pages that something has changed: they then ask for themselves again. An event holds nothing
//! that has to be kept from anybody.

use super::door::cookie;
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
}

/// A stream of words for one page, until its session ends.
pub async fn stream(State(house): State<Arc<House>>, headers: HeaderMap) -> Response<Body> {
    let Some(token) = cookie(&headers) else { return StatusCode::UNAUTHORIZED.into_response() };
    let changes = house.store.changes();
    let listening = PulseReader { house, token, changes };
    let Some(listening) = is_signed_in(listening).await else {
        return StatusCode::UNAUTHORIZED.into_response();
    };
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
async fn is_signed_in(listening: PulseReader) -> Option<PulseReader> {
    let found = tokio::task::spawn_blocking(move || {
        let held = listening.house.store.peek(&listening.token, now());
        held.ok().flatten().map(|_| listening)
    });
    found.await.ok().flatten()
}
