//! What every request passes and every answer carries: names that are ours, forms that say where they come
//! from, and headers that keep a browser from doing more than show a page.

use super::answer::Answer;
use super::{House, shell};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use axum::middleware::Next;
use std::sync::Arc;

/// What a page may load and do: its own style and images, forms to itself.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src \
                      'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
                      require-trusted-types-for 'script'";

/// On every answer, unless it says something else itself.
const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// Stands before everything.
pub async fn guard(State(house): State<Arc<House>>, request: Request, next: Next) -> Response<Body> {
    let mut response = match refused(&house, &request) {
        Some(answer) => answer.into_response(),
        None => next.run(request).await,
    };
    house.answers.take(response.status());
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    // Browsers must not be held to a certificate that only this machine vouches for.
    if house.rules().settings.web.tls.is_some() {
        let value = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    response
}

fn refused(house: &House, request: &Request) -> Option<Answer> {
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = request.uri().authority().map(|authority| authority.as_str()).or(text(header::HOST));
    if !host.is_some_and(|host| house.rules().settings.web.is_named(host)) {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let said = "This service has another name: [web] names of service.toml lists those it answers under.";
        return Some(shell::plain(status, "Another name", said));
    }
    let asks = request.method().is_safe();
    // No browser speaks to programs' addresses by itself: they take no cookie.
    let asks = asks || super::api::is_ours(request.uri().path());
    if !asks && text(header::ORIGIN).is_none() && !headers.contains_key("sec-fetch-site") {
        let said = "The browser did not say which page this form came from, so it was not taken.";
        return Some(shell::plain(StatusCode::FORBIDDEN, "A form from nowhere", said));
    }
    None
}

/// What a form of another site gets.
pub fn from_another_site() -> Response<Body> {
    let said = "This form was sent by another site, so nothing was done. If you did not mean to send \
                anything, close that site.";
    shell::plain(StatusCode::FORBIDDEN, "A form of another site", said).into_response()
}
