//! Who takes part.

use serde::{Deserialize, Serialize};
use std::{fmt, sync::Arc};

/// Index of a party in the roster of a session: 0, 1, ... in the order the study names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PartyId(pub u8);

impl PartyId {
    /// The index as `usize`, for tables by party.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The other one of two parties.
    #[must_use]
    pub fn other(self) -> Self {
        debug_assert!(self.0 < 2, "only a two-party protocol has *the* other party");
        Self(1 - self.0)
    }
}

/// The names of all parties of a session, shared by everything that words an error or a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roster(Arc<[String]>);

impl Roster {
    /// A roster from names in party order. At most [`crate::limits::PARTIES`] names.
    #[must_use]
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        let names: Arc<[String]> = names.into_iter().map(Into::into).collect();
        assert!(names.len() <= crate::limits::PARTIES, "more parties than limits::PARTIES");
        Self(names)
    }

    /// Number of parties.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody takes part.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of a party; `party N` when the roster does not know it.
    #[must_use]
    pub fn name(&self, party: PartyId) -> String {
        self.0.get(party.index()).cloned().unwrap_or_else(|| party.to_string())
    }

    /// The party with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<PartyId> {
        self.0.iter().position(|n| n == name).map(|i| PartyId(i as u8))
    }

    /// All parties in order.
    pub fn parties(&self) -> impl Iterator<Item = PartyId> + use<> {
        (0..self.0.len()).map(|i| PartyId(i as u8))
    }
}

impl fmt::Display for PartyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "party {}", self.0)
    }
}
