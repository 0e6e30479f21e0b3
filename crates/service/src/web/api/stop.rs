//! Why a program gets no ordinary answer, as JSON: the object that `tacit --json` has.

use crate::web::answer::Answer;
use crate::web::visit::Stop;
use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use axum::response::IntoResponse;
use base::{Error, ErrorPlace, Fault};
use serde::Serialize;
use utoipa::ToSchema;

/// What the places of a mistake in a request are in.
pub const REQUEST: &str = "the request";

/// Why there is no other answer.
#[derive(Debug)]
pub struct ApiStop {
    status: StatusCode,
    message: String,
    places: Vec<ErrorPlace>,
}

/// An error.
#[derive(Serialize, ToSchema)]
pub struct ApiFailure {
    /// What it is.
    error: ApiError,
}

/// What it is.
#[derive(Serialize, ToSchema)]
struct ApiError {
    /// Whose turn it is: `input` (this request), `refused` (a rule, a right or a state), `internal`.
    kind: &'static str,
    /// The exit code that the command has for it.
    code: u8,
    /// What is wrong, and what to do.
    message: String,
    /// Where in what was sent, as far as known.
    places: Vec<ApiPlace>,
    /// The status of the answer.
    status: u16,
}

/// A place in what was sent.
#[derive(Serialize, ToSchema)]
struct ApiPlace {
    /// The text: `the study`, `the request`.
    file: String,
    /// The line, from 1.
    line: u64,
    /// The column, from 1.
    column: Option<String>,
}

impl ApiStop {
    /// With words.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), places: Vec::new() }
    }

    /// What is wrong with a request.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, message)
    }

    /// What stands against it.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    /// What is wrong with a body, at its place.
    pub fn at(error: &serde_json::Error) -> Self {
        let (file, column) = (REQUEST.to_owned(), Some(error.column().to_string()));
        let places = vec![ErrorPlace { file, line: error.line() as u64, column }];
        Self { places, ..Self::input(format!("{REQUEST}: {error}")) }
    }

    /// An error whose words are for whoever asks: of a study that they sent, of what may be said about one.
    pub fn told(error: Error) -> Self {
        let status = match error.kind() {
            Fault::Input(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Fault::Refused(_) => StatusCode::CONFLICT,
            _ => return error.into(),
        };
        Self { places: error.places().to_vec(), ..Self::new(status, error.to_string()) }
    }

    /// The same of what stopped a page.
    pub fn said(stop: Stop) -> Self {
        match stop {
            Stop::Failed(error) => Self::told(error),
            stop => stop.into(),
        }
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The answer's body.
    pub fn body(&self) -> Vec<u8> {
        let (kind, code) = match self.status.as_u16() {
            401 | 403 | 409 | 429 => ("refused", 5),
            500.. => ("internal", 1),
            _ => ("input", 2),
        };
        let places = self.places.iter().map(|place| ApiPlace {
            file: place.file.clone(),
            line: place.line,
            column: place.column.clone(),
        });
        let (message, places, status) = (self.message.clone(), places.collect(), self.status.as_u16());
        let failure = ApiFailure { error: ApiError { kind, code, message, places, status } };
        serde_json::to_vec(&failure).unwrap_or_default()
    }
}

impl From<Stop> for ApiStop {
    fn from(stop: Stop) -> Self {
        let (status, message) = match stop {
            Stop::Missing => {
                (StatusCode::NOT_FOUND, "there is nothing of this name that this token may know of")
            }
            Stop::Denied => (StatusCode::FORBIDDEN, "the roles of this token's account do not allow this"),
            Stop::Stale => (
                StatusCode::CONFLICT,
                "the study has another open proposal by now: read it again, and name its `proposal`",
            ),
            Stop::OneStep => {
                (StatusCode::FORBIDDEN, "the account of this token has to set up a second step, on its page")
            }
            Stop::Unproven | Stop::WrongPassword => {
                (StatusCode::FORBIDDEN, "this takes a password, so a person does it on the page")
            }
            Stop::TooFast | Stop::Busy | Stop::TooMany => {
                (StatusCode::TOO_MANY_REQUESTS, "too much at once: wait a second, and send it again")
            }
            Stop::Drawing => (
                StatusCode::TOO_MANY_REQUESTS,
                "other pictures are being drawn: wait a few seconds, and try again",
            ),
            Stop::Failed(error) => return error.into(),
        };
        Self::new(status, message)
    }
}

impl From<Error> for ApiStop {
    fn from(error: Error) -> Self {
        // Programs are of people who may not see paths; the log is the operator's.
        eprintln!("error: {error}");
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "something failed in the service, and nothing was done: its log says what it was",
        )
    }
}

impl From<ApiStop> for Answer {
    fn from(stop: ApiStop) -> Self {
        let answer = Self::json(stop.status, stop.body());
        match stop.status {
            StatusCode::UNAUTHORIZED => answer.with(header::WWW_AUTHENTICATE, "Bearer".to_owned()),
            StatusCode::TOO_MANY_REQUESTS => answer.with(header::RETRY_AFTER, "1".to_owned()),
            _ => answer,
        }
    }
}

impl IntoResponse for ApiStop {
    fn into_response(self) -> Response<Body> {
        Answer::from(self).into_response()
    }
}

/// What no address has.
pub fn missing() -> ApiStop {
    ApiStop::new(StatusCode::NOT_FOUND, "there is no such address: /api/v1/openapi.json has all of them")
}
