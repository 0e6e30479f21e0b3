//! One error type for every protocol: who, with whom, at which step, and whose fault it is.

use std::fmt;

/// Who, with whom, doing what. Filled in by `net`, never by protocols.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// The party that reports the error, by name.
    pub party: String,
    /// The peer it was talking to, by name.
    pub peer: Option<String>,
    /// The step, as a path: `match/pid/exchange`.
    pub step: String,
}

/// What can happen to a byte pipe between two parties.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelError {
    /// The peer ended the conversation in good order and left; we expected more of it.
    Closed,
    /// The connection ended without a goodbye: the peer failed or died, or the network cut it.
    Cut,
    /// Nothing arrived (or nothing could be sent) for this many milliseconds.
    Deadline {
        /// The limit that passed.
        limit_ms: u64,
    },
    /// The operating system or TLS said no; its text never comes from the peer.
    Io(String),
    /// This party's own operator ended the run.
    Stopped,
}

/// Whose fault an error is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The environment: a connection, a disk. Retrying the job may help.
    Channel(ChannelError),
    /// The peer sent bytes that decode to nothing.
    Malformed(&'static str),
    /// The peer failed a named check: abort.
    Deviated(&'static str),
    /// One of our own bounds: its name, the value met and the cap.
    Limit {
        /// Name of the constant in [`crate::limits`] or of the setting.
        name: &'static str,
        /// The value met.
        value: u64,
        /// The cap.
        cap: u64,
    },
    /// Our caller broke the contract.
    Misuse(String),
    /// What this side was given does not do: a file, a study, a setting. The text says what to change.
    Input(String),
    /// A local disk or file operation failed.
    Io(String),
    /// A policy or privacy budget says no: this party's own, and the text says which rule; or a peer's, which
    /// does not say why.
    Refused(String),
}

/// Who says of whom that they deviated, by name. Nobody can tell from here who did: whoever accuses may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accusation {
    /// Who found a check failed. Where it is the party that holds the error, it is no suspect of its own.
    pub by: String,
    /// The parties of which one, in the accuser's words, deviated: of four servers the one that sent and the
    /// one that vouched for it.
    pub accused: Vec<String>,
    /// The accuser's step.
    pub step: String,
    /// Who passed it on, where the accuser's own word did not come.
    pub through: Option<String>,
}

impl Accusation {
    /// Of whom at least one deviated, as `party` sees it: the accused, the accuser and whoever passed it on,
    /// but never itself.
    #[must_use]
    pub fn suspects(&self, party: &str) -> Vec<&str> {
        let said = [Some(&self.by), self.through.as_ref()].into_iter().flatten();
        let mut names: Vec<&str> = said.chain(&self.accused).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| *name != party);
        names
    }
}

/// A place in a party's input or in one of its files of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPlace {
    /// The file, or what the rows were called that were handed over.
    pub file: String,
    /// The line, or the row where a file has no lines; from 1.
    pub line: u64,
    /// The column's name in data, its number (from 1) in a file of settings.
    pub column: Option<String>,
}

/// The numbers of a refusal by a budget: exact fractions as text, `3/4` or `1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetShortfall {
    /// The bound of the policy that does not allow it, as a party file names it: `policy.budget`.
    pub bound: &'static str,
    /// What was spent before.
    pub spent: String,
    /// What may be spent in all.
    pub budget: String,
    /// What was asked for.
    pub asked: String,
}

/// An error with its place. One word wide in every `Result`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    at: At,
    kind: Fault,
    accusation: Option<Accusation>,
    /// How things stand on this side after it, and what to do next.
    left: Option<String>,
    places: Vec<ErrorPlace>,
    shortfall: Option<BudgetShortfall>,
}

impl Error {
    /// An error at a place.
    #[must_use]
    pub fn new(at: At, kind: Fault) -> Self {
        let (accusation, left, places, shortfall) = (None, None, Vec::new(), None);
        Self(Box::new(Inner { at, kind, accusation, left, places, shortfall }))
    }

    /// The same error, which says of whom one deviated.
    #[must_use]
    pub fn accusing(mut self, accusation: Accusation) -> Self {
        self.0.accusation = Some(accusation);
        self
    }

    /// The same error, which says how things stand on this side after it, and what to do next. The first such
    /// word stays.
    #[must_use]
    pub fn leaving(mut self, text: impl Into<String>) -> Self {
        self.0.left.get_or_insert_with(|| text.into());
        self
    }

    /// The same error, which says one more thing of how things stand on this side after it.
    #[must_use]
    pub fn leaving_too(mut self, text: &str) -> Self {
        let left = self.0.left.take();
        self.0.left = Some(left.map_or_else(|| text.to_owned(), |left| format!("{left}. {text}")));
        self
    }

    /// The same error, which stands at these places of what this party has written, as its text says, too.
    #[must_use]
    pub fn standing_at(mut self, places: Vec<ErrorPlace>) -> Self {
        self.0.places = places;
        self
    }

    /// The same error, of a budget that does not allow what was asked for.
    #[must_use]
    pub fn falling_short(mut self, shortfall: Option<BudgetShortfall>) -> Self {
        self.0.shortfall = shortfall;
        self
    }

    /// The numbers of a budget of this party's that does not allow what was asked for.
    #[must_use]
    pub fn shortfall(&self) -> Option<&BudgetShortfall> {
        self.0.shortfall.as_ref()
    }

    /// Where in what this party has written it stands; nowhere for most errors.
    #[must_use]
    pub fn places(&self) -> &[ErrorPlace] {
        &self.0.places
    }

    /// How things stand on this side after it, and what to do next.
    #[must_use]
    pub fn left(&self) -> Option<&str> {
        self.0.left.as_deref()
    }

    /// Who says of whom that they deviated: of an error of [`Fault::Deviated`], found here or told by a peer.
    #[must_use]
    pub fn accusation(&self) -> Option<&Accusation> {
        self.0.accusation.as_ref()
    }

    /// An error before any conversation: bad input. `text` names file, line and column where there is one.
    #[must_use]
    pub fn input(text: impl Into<String>) -> Self {
        Self::new(At::default(), Fault::Input(text.into()))
    }

    /// A refusal by this party's own policy or budget.
    #[must_use]
    pub fn refused(text: impl Into<String>) -> Self {
        Self::new(At::default(), Fault::Refused(text.into()))
    }

    /// An error of the caller.
    #[must_use]
    pub fn misuse(text: impl Into<String>) -> Self {
        Self::new(At::default(), Fault::Misuse(text.into()))
    }

    /// A failed file operation: what was tried, on what, and what the system said.
    #[must_use]
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::new(At::default(), Fault::Io(format!("{what}: {error}")))
    }

    /// A file that somebody named cannot be read: bad input where there is none, else a failed operation.
    #[must_use]
    pub fn reading(what: impl fmt::Display, error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::input(format!("{what}: {error}")),
            _ => Self::io(what, error),
        }
    }

    /// One of our own bounds was met.
    #[must_use]
    pub fn limit(name: &'static str, value: u64, cap: u64) -> Self {
        Self::new(At::default(), Fault::Limit { name, value, cap })
    }

    /// Where it happened.
    #[must_use]
    pub fn at(&self) -> &At {
        &self.0.at
    }

    /// What happened.
    #[must_use]
    pub fn kind(&self) -> &Fault {
        &self.0.kind
    }

    /// The same error with a place, where it had none.
    #[must_use]
    pub fn place(mut self, at: impl FnOnce() -> At) -> Self {
        if self.0.at.party.is_empty() {
            self.0.at = at();
        }
        self
    }
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => write!(f, "the peer closed the connection; see the peer's own output"),
            Self::Cut => {
                write!(f, "the connection broke off before the peer was done; see the peer's own output")
            }
            Self::Deadline { limit_ms } => write!(
                f,
                "no progress for {:.1} s; check that the peer is running, or raise the deadline",
                *limit_ms as f64 / 1e3
            ),
            Self::Io(text) => write!(f, "{text}"),
            Self::Stopped => write!(f, "stopped here, by this party's operator"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(e) => e.fmt(f),
            Self::Malformed(what) => write!(f, "malformed message from the peer: {what}"),
            Self::Deviated(check) => write!(f, "the peer deviated from the protocol: {check}"),
            Self::Limit { name, value, cap } => write!(f, "{name}: {value} is over the limit of {cap}"),
            Self::Misuse(text) | Self::Input(text) | Self::Io(text) | Self::Refused(text) => {
                f.write_str(text)
            }
        }
    }
}

impl Accusation {
    /// As a party words it that has it from others.
    fn told(&self, f: &mut fmt::Formatter<'_>, party: &str) -> fmt::Result {
        let Self { by, accused, step, through } = self;
        if let Some(through) = through {
            write!(f, "{through} passes on that ")?;
        }
        write!(f, "{by} accuses {} of deviating from the protocol at {step}. ", accused.join(" and "))?;
        match &self.suspects(party)[..] {
            [one] => write!(f, "It may be wrong of {one} to say so; see its own output"),
            all => write!(
                f,
                "At least one of these deviated, and it may be the accuser: {}; see their own output",
                all.join(", ")
            ),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { at, kind, accusation, left, places: _, shortfall: _ } = &*self.0;
        if !at.party.is_empty() {
            write!(f, "{}", at.party)?;
            if !at.step.is_empty() {
                write!(f, " at {}", at.step)?;
            }
            if let Some(peer) = &at.peer {
                write!(f, " with {peer}")?;
            }
            write!(f, ": ")?;
        }
        match accusation {
            Some(told) if told.by != at.party => told.told(f, &at.party)?,
            _ => kind.fmt(f)?,
        }
        left.iter().try_for_each(|left| write!(f, ". {left}"))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_party_step_peer_and_what() {
        let at = At { party: "registry".into(), peer: Some("hospitals".into()), step: "match/pid".into() };
        let error = Error::new(at, Fault::Channel(ChannelError::Closed));
        assert_eq!(
            error.to_string(),
            "registry at match/pid with hospitals: the peer closed the connection; see the peer's own output"
        );
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn an_error_says_how_things_stand_after_it() {
        let error = Error::input("x").leaving("Nothing was charged: run again").leaving("later words");
        assert_eq!(error.to_string(), "x. Nothing was charged: run again");
    }

    #[test]
    fn a_place_is_given_once() {
        let here = || At { party: "a".into(), peer: None, step: "s".into() };
        let there = || At { party: "b".into(), peer: None, step: "t".into() };
        let error = Error::input("x").place(here).place(there);
        assert_eq!(error.to_string(), "a at s: x");
    }

    #[test]
    fn an_accusation_names_three_suspects() {
        let told = |through: Option<&str>| Accusation {
            by: "server-1".into(),
            accused: vec!["server-3".into(), "server-4".into()],
            step: "release/1/open".into(),
            through: through.map(str::to_owned),
        };
        let at = |party: &str| At { party: party.into(), peer: Some("server-1".into()), step: "open".into() };
        let check = || Fault::Deviated("what was sent is not what was vouched for");
        let error = Error::new(at("registry"), check()).accusing(told(None));
        assert_eq!(
            error.to_string(),
            "registry at open with server-1: server-1 accuses server-3 and server-4 of deviating from the \
             protocol at release/1/open. At least one of these deviated, and it may be the accuser: \
             server-1, server-3, server-4; see their own output"
        );
        let error = Error::new(at("registry"), check()).accusing(told(Some("server-2")));
        assert!(error.to_string().contains(": server-2 passes on that server-1 accuses"), "{error}");
        assert_eq!(error.accusation().unwrap().suspects("registry").len(), 4);
        // Who found it words it itself, and is no suspect of its own.
        let error = Error::new(at("server-1"), check()).accusing(told(None));
        assert!(error.to_string().contains("the peer deviated from the protocol: what was sent"), "{error}");
        assert_eq!(error.accusation().unwrap().suspects("server-1"), ["server-3", "server-4"]);
    }
}
