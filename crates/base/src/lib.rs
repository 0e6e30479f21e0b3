//! Ground: parties, steps, errors, costs, limits, secrets and seeded randomness.
//!
//! Everything above this crate speaks these words. Nothing here does I/O, but for asking the system for a
//! free port.

mod cost;
mod dates;
mod error;
mod free;
mod hex;
pub mod limits;
mod party;
mod pieces;
mod rng;
mod secret;
mod text;

pub use cost::Cost;
pub use dates::days_of_date;
pub use error::{Accusation, At, BudgetShortfall, ChannelError, Error, ErrorPlace, Fault};
pub use free::free_address;
pub use hex::{hex, unhex};
pub use party::{PartyId, Roster};
pub use pieces::in_order;
pub use rng::{Rng, Seed};
pub use secret::Secret;
pub use text::{clean, grouped, is_deceptive};
