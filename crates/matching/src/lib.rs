//! Private matching: parties bring the rows that they have in common together, and learn nothing about whose
//! rows are shared.
//!
//! Each protocol is a folder with an implementation of [`Matcher`], and a line in [`MATCHERS`]. Two forms of
//! output exist: a *spine*, on which each party knows where its own rows lie; or *shares* of what the parties
//! attached to the rows that match. [`identifiers`] are hashed into a [`group`] and work is on its elements.

pub mod aligned;
#[cfg(test)]
mod alike_tests;
mod begin;
mod chunks;
pub mod circuit_psi;
pub mod collecting;
mod disk;
pub mod dummies;
pub mod group;
pub mod identifiers;
pub mod many_pid;
mod matcher;
mod memory;
mod meter;
mod moves;
pub mod multi_pid;
pub mod paillier;
pub mod payload;
pub mod permute;
pub mod pid;
mod placed;
mod places;
pub mod ps3i;
pub mod salted_key;
mod share_table;
pub mod spill;
mod tags;
mod terms;
#[cfg(test)]
mod timing_tests;

pub use aligned::AlignedRows;
pub use circuit_psi::CircuitJoin;
pub use collecting::CollectingJoin;
pub use identifiers::{FlatIdentifiers, IdentifierSource, NameDomain};
pub use many_pid::ManyId;
pub use matcher::{
    ContaminatedRule, MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions,
    MatchOutcome, MatchOutput, MatchRoles, MatchSizes, MatchSpine, MatchedCount, Matcher, OutputForm,
    PairSizes, PlannedRows, RepeatRule, RestartPermit, RowInfluence, ShareBackend,
};
pub use multi_pid::MultiId;
pub use payload::{
    JoinedPart, JoinedShares, PayloadLayout, PayloadSource, PayloadTable, PayloadTaker, ShareRing,
    TableField, ValidEntries,
};
pub use pid::{PrivateId, forget, is_cut, other_rows};
pub use places::OwnPlaces;
pub use ps3i::InnerJoin;
pub use salted_key::SaltedKey;
pub use share_table::{ShareBlock, ShareTable, StoredRows};

/// All protocols. Of those that share a name the first that fits is taken.
pub static MATCHERS: [&dyn Matcher; 8] =
    [&PrivateId, &MultiId, &ManyId, &InnerJoin, &CollectingJoin, &CircuitJoin, &AlignedRows, &SaltedKey];

/// The protocol of this name for so many parties and identifiers of a row.
#[must_use]
pub fn matcher(name: &str, parties: usize, keys: usize) -> Option<&'static dyn Matcher> {
    let fits = |matcher: &&&dyn Matcher| {
        let features = matcher.features();
        matcher.name() == name && features.parties.contains(&parties) && features.keys.contains(&keys)
    };
    MATCHERS.iter().find(fits).copied()
}
