//! Oblivious transfer: base OTs over ristretto255, two extensions behind one interface; correlated, random
//! and chosen.
//!
//! [`OtSender`] and [`OtReceiver`] are what engines use; [`OtKind`] names what implements them: SoftSpoken
//! ([`CotSender`], [`CotReceiver`]) or Ferret, silent OT ([`FerretSender`], [`FerretReceiver`]).
//! [`setup_all`] sets up both directions with every peer at once, [`correlated_all`] makes OTs in all of
//! them, [`probe`] measures a link, [`PriceMeter`] says what a conversation costs. [`Hubs`] turn one run of
//! base OTs per pair of parties into fresh base OTs, with a fresh Delta, for every worker connection;
//! [`setup_over`] takes those. The steps without network are in [`base_ot`], [`softspoken`] and [`ferret`].
//! [`vole`] turns OTs into correlations over a field.
//!
//! Semi-honest throughout; the protocol page is `docs/protocols/ot.md`.

pub mod base_ot;
mod choose;
mod cost;
mod drivers;
pub mod ferret;
mod flavours;
mod ggm;
mod hub;
mod kind;
mod pair;
mod price;
pub mod softspoken;
#[cfg(test)]
mod timing_tests;
pub mod vole;

pub use choose::{LinkProbe, PROBE_BYTES, probe};
pub use cost::ExtensionCost;
pub use drivers::{CotReceiver, CotSender};
pub use ferret::{FerretReceiver, FerretSender};
pub use flavours::{OtReceiver, OtSender, PadHash};
pub use hub::{Bases, Hubs, ReceiverHub, SenderHub};
pub use kind::OtKind;
pub use pair::{Correlated, Pair, correlated_all, leads, setup_all, setup_over};
pub use price::PriceMeter;
pub use vole::{VoleReceiver, VoleSender};

use kernels::Block;

/// Base OTs under one extension: bits of Delta.
pub const BASE_OTS: usize = 128;
/// Extended OTs of one call. Bounds the memory of a call, 16 bytes each.
pub const OTS_PER_CALL: usize = 1 << 24;
/// Extended OTs of one session, a counter that must never wrap.
pub const OTS_PER_SESSION: u64 = 1 << 48;

/// A fresh Delta for garbling and correlated OT: random, with the colour bit set.
#[must_use]
pub fn fresh_delta(rng: &mut base::Rng) -> Block {
    Block::from_bytes(rng.bytes()) | Block::ONE
}
