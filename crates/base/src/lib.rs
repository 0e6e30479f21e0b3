//! Ground: parties, steps, errors, costs, limits, secrets and seeded randomness.
//!
//! Everything above this crate speaks these words. Nothing here does I/O.

mod cost;
mod error;
pub mod limits;
mod party;
mod rng;
mod secret;
mod text;

pub use cost::{Cost, Stage};
pub use error::{Accusation, At, ChannelError, Error, Kind};
pub use party::{PartyId, Roster};
pub use rng::{Rng, Seed};
pub use secret::Secret;
pub use text::{clean, is_deceptive};
