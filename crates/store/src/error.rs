//! What can go wrong with state, where a caller acts on it; all of it reads as a [`base::Error`] too.

use crate::log::LogLead;
use base::{Error, clean};
use std::error::Error as Chained;
use std::fmt::Write;

/// Characters of a store's own words that an error repeats at most.
const REASON_CHARS: usize = 300;

/// An operation on state that did not succeed. `place` is the store's URL with the object's name, without
/// credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Another object of this name is there.
    AlreadyExists {
        /// Which one.
        place: String,
    },
    /// No object of this name is there.
    Missing {
        /// Which one.
        place: String,
    },
    /// What is there was not written under this key for this name, run and party, or was changed since.
    Damaged {
        /// Which one.
        place: String,
        /// What does not fit.
        why: &'static str,
    },
    /// Another process leads the log now: this one must stop and tell nobody anything more.
    Fenced {
        /// The log.
        place: String,
        /// Who leads, where it can be read.
        by: Option<LogLead>,
    },
    /// Everything else: the store is out of reach, full or refuses, or the caller broke the contract.
    Failed(Error),
}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::AlreadyExists { place } => Self::input(format!(
                "{place} is there already, and was written by another process; see which one, or name \
                 another place for the state"
            )),
            StoreError::Missing { place } => Self::input(format!(
                "there is no {place}: the state of this run is not whole; name the store that it was begun \
                 with, or begin the run anew in an empty one"
            )),
            StoreError::Damaged { place, why } => Self::input(format!(
                "{place} is not what this party wrote for this run: {why}; restore it, or begin the run anew \
                 in an empty place"
            )),
            StoreError::Fenced { place, by } => Self::input(format!(
                "{place}: {} leads this run now, so this process has stopped; go on with that one, or end it \
                 and run again",
                by.map_or_else(|| "another process".to_owned(), |lead| lead.to_string())
            )),
            StoreError::Failed(error) => error,
        }
    }
}

/// What the library says went wrong while doing `what` (such as "cannot write") with the object at `place`.
pub(crate) fn failed(what: &str, place: &str, remote: bool, error: &object_store::Error) -> StoreError {
    use object_store::Error as Library;
    let reason = reason(error);
    if let Some(keys) = missing_credentials(place, error).filter(|_| remote) {
        return Error::input(format!(
            "{what} {place}: no credentials: none are in the environment, and this machine has no role that \
             gives some ({reason}); set {keys}"
        ))
        .into();
    }
    let place = place.to_owned();
    let bucket = ["NoSuchBucket", "ContainerNotFound", "bucket does not exist"];
    if remote && bucket.iter().any(|no| reason.contains(no)) {
        return Error::input(format!(
            "{what} {place}: there is no such bucket or container; create it first"
        ))
        .into();
    }
    match error {
        Library::AlreadyExists { .. } | Library::Precondition { .. } => StoreError::AlreadyExists { place },
        Library::NotFound { .. } => StoreError::Missing { place },
        Library::PermissionDenied { .. } | Library::Unauthenticated { .. } if remote => {
            Error::input(format!(
                "{what} {place}: the store does not let this party ({reason}); check the credentials in the \
             environment or the machine's role, and what the bucket allows them"
            ))
            .into()
        }
        Library::NotImplemented { .. } | Library::NotSupported { .. } => Error::input(format!(
            "{what} {place}: the store cannot do that ({reason}); take another store or a local folder"
        ))
        .into(),
        _ => {
            let remedy = match () {
                // What is local is state: data are read from files, or from buckets.
                () if remote => "check the address, the network and the credentials, and run again",
                () if reason.contains("os error 28") => {
                    "free some space, or name another place for the state"
                }
                () if reason.contains("os error 13") => {
                    "give the folder to the user that runs this, mode 0700"
                }
                () => "mend it, or name another place for the state",
            };
            let failure = std::io::Error::other(format!("{reason}; {remedy}"));
            Error::io(format_args!("{what} {place}"), &failure).into()
        }
    }
}

/// What to set in the environment, where the library asked the machine for its role in vain: it does so when
/// the environment says nothing.
fn missing_credentials(place: &str, error: &object_store::Error) -> Option<&'static str> {
    let mut cause: Option<&dyn Chained> = Some(error);
    let mut asked = false;
    while let Some(inner) = cause {
        let text = inner.to_string();
        asked |= ["169.254.169.254", "metadata.google.internal"].iter().any(|host| text.contains(host));
        cause = inner.source();
    }
    let keys = match place.split("://").next().unwrap_or_default() {
        "s3" => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        "gs" => "GOOGLE_APPLICATION_CREDENTIALS",
        _ => "AZURE_STORAGE_ACCOUNT_KEY",
    };
    asked.then_some(keys)
}

/// Whether an error is about the range that was asked for: the library has no variant for it.
pub(crate) fn about_range(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::Generic { .. }) && reason(error).to_lowercase().contains("range")
}

/// The innermost cause in one line: a code where the store sent XML, no query of a URL (which may hold a
/// signature), nothing that would move a cursor.
fn reason(error: &object_store::Error) -> String {
    let mut cause: &dyn Chained = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let text = match (&code, text.split_once('<')) {
        (Some((code, _)), Some((head, _))) => format!("{} {code}", head.trim_end()),
        _ => text.clone(),
    };
    let mut words = String::new();
    for word in text.split_whitespace() {
        let bare = if word.contains("://") { word.split('?').next().unwrap_or(word) } else { word };
        let space = if words.is_empty() { "" } else { " " };
        let _ = write!(words, "{space}{bare}");
    }
    clean(&words).chars().take(REASON_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> object_store::Error {
        object_store::Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn an_error_names_the_place_and_what_to_do_and_no_signature() {
        let wrong = generic(
            "Server returned non-2xx status code: 403 Forbidden: <?xml?><Error><Code>SlowDown</Code>\
             <AWSAccessKeyId>AKIA1234</AWSAccessKeyId></Error>",
        );
        let error: Error = failed("cannot write", "s3://b/p/x", true, &wrong).into();
        assert_eq!(
            error.to_string(),
            "cannot write s3://b/p/x: Server returned non-2xx status code: 403 Forbidden: SlowDown; check \
             the address, the network and the credentials, and run again"
        );
        let signed = generic("no answer from https://a.b/c?sig=SECRET at all");
        let error: Error = failed("cannot read", "az://c/x", true, &signed).into();
        assert!(error.to_string().contains("https://a.b/c at all") && !error.to_string().contains("SECRET"));
        let full = object_store::Error::Generic {
            store: "Local",
            source: std::io::Error::from_raw_os_error(28).into(),
        };
        let error: Error = failed("cannot write", "/state/x", false, &full).into();
        assert!(
            error.to_string().ends_with("free some space, or name another place for the state"),
            "{error}"
        );
    }

    #[test]
    fn credentials_that_are_missing_are_named() {
        let asked =
            generic("Error performing PUT http://169.254.169.254/latest/api/token in 5.2s: timed out");
        let error =
            |place: &str, remote| Error::from(failed("cannot list", place, remote, &asked)).to_string();
        for (place, keys) in [
            ("s3://b", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
            ("gs://b/x", "GOOGLE_APPLICATION_CREDENTIALS"),
            ("az://b", "AZURE_STORAGE_ACCOUNT_KEY"),
        ] {
            let error = error(place, true);
            assert!(
                error.starts_with(&format!("cannot list {place}: no credentials: none are in")),
                "{error}"
            );
            assert!(error.ends_with(&format!("; set {keys}")), "{error}");
        }
        assert!(!error("/a", false).contains("no credentials"));
    }
}
