//! What programs ask of the service: the same functions as the pages, by a token in place of a session, with
//! JSON in place of forms. One table has every address; router and OpenAPI document are made of it.

mod acts;
mod document;
mod door;
mod drafts;
mod here;
mod rehearsals;
mod routes;
mod shapes;
mod stop;
mod stream;
mod studies;
#[cfg(test)]
mod tests;

use super::House;
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{any, get};
use std::sync::Arc;

/// What every address begins with: fields are added, never renamed, within a version.
const BASE: &str = "/api/v1";

/// Whether a path is one of these.
pub fn is_ours(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// All of them.
pub fn routes() -> Router<Arc<House>> {
    let mut router = Router::new();
    for route in routes::table() {
        let path = format!("{BASE}{}", route.path);
        router = router.route(&path, door::open(Arc::new(route)));
    }
    router
        .route(&format!("{BASE}/events"), get(stream::stream))
        .route(&format!("{BASE}/health"), get(|| async { StatusCode::OK }))
        .route(&format!("{BASE}/openapi.json"), get(document::show))
        .method_not_allowed_fallback(door::no_method)
        .route("/api/{*rest}", any(|| async { stop::missing().into_response() }))
}
