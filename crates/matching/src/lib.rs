//! Private matching: two parties learn where their own rows lie among the rows of both, and nothing about
//! whose rows are shared.
//!
//! [`pid`] is Private-ID for one unique identifier per row. It hashes [`identifiers`] into a [`group`] and
//! works on 32-byte elements of it.

pub mod circuit_psi;
pub mod collecting;
pub mod dummies;
pub mod group;
pub mod identifiers;
pub mod many;
mod memory;
mod meter;
pub mod multi;
pub mod paillier;
pub mod payload;
pub mod permute;
pub mod pid;
pub mod ps3i;
pub mod spill;
mod tags;
mod terms;
#[cfg(test)]
mod timing_tests;

pub use identifiers::{FlatIdentifiers, IdentifierSource, IdentifierSpool, NameDomain};
pub use payload::{
    JoinedPart, JoinedShares, PayloadField, PayloadLayout, PayloadTable, ShareRing, ValidEntries,
};
pub use pid::{Disclosed, Options, Sizes, Spine};
