//! GMW: boolean circuits among n >= 2 parties, semi-honest, any n - 1 corrupted.
//!
//! Functionality: a circuit of XOR and AND gates is evaluated on many lanes at once; every output goes to its
//! viewers.
//!
//! Security: semi-honest, static corruption of up to n - 1 parties, computational parameter 128 (that of the
//! OTs and of AES). Goldreich, Micali and Wigderson, "How to play any mental game" (STOC 1987), with the
//! preprocessing of Beaver (Crypto '91) over correlated OT; Choi, Hwang, Katz, Malkin and Rubenstein
//! implement it with OTs online.
//!
//! Who learns what: a viewer its outputs; everybody the circuit and the number of lanes, which are public;
//! nobody anything else. Openings are one-time padded by the triples, and every output is refreshed by a
//! sharing of zero before its shares leave, because shares of XORs of inputs are the inputs.
//!
//! Deviations from Choi et al.: triples ahead of the inputs; correlated OT extension instead of 1-of-4 OTs;
//! an input is shared as (the bit, 0, .., 0), which costs nothing; layers over lanes instead of gates.
//!
//! Cost, per AND and lane: 2 bits online to each peer; n - 1 correlated OTs in each direction, and 2 bits to
//! each peer but one. One round per layer. [`GateQuote`] has it exactly. The page is `docs/protocols/gmw.md`.

mod bits;
mod circuit_engine;
mod combine;
mod engine;
mod party;
mod quote;
mod release;
mod rows;
mod supply;
#[cfg(test)]
mod timing_tests;
mod triples;

pub use crate::engine::{Gmw, TransferRows};
pub use circuits::Layers;
pub use party::{GateParty, Known, Times};
pub use quote::GateQuote;
pub use rows::ROW_BITS;

/// Triples made at once: 128 KiB per share and peer.
pub const TRIPLES_PER_BATCH: u64 = 1 << 20;
/// ANDs opened in one message per peer; longer layers take several. At most [`TRIPLES_PER_BATCH`].
pub const OPEN_ANDS: u64 = 1 << 20;
/// Lanes of one evaluation.
pub const LANES: usize = 1 << 26;

const _: () = assert!(OPEN_ANDS <= TRIPLES_PER_BATCH, "a batch of triples serves at least one opening");
