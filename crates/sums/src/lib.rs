//! Rows of two parties as sums: no adders, no labels, a correlated OT per product.
//!
//! Functionality: row and combine of a two-party program whose folds are sums. Each party enters its columns;
//! each gets an additive share of every total modulo 2^width, or the total itself where it depends on that
//! party's columns alone.
//!
//! Of rows that a match has joined to shares, each party enters shares instead of columns
//! ([`engine::RowSource::Joined`], `docs/protocols/joined-rows.md`).
//!
//! Security: semi-honest, one of two parties; computational parameter 128, from the correlated OTs
//! (`docs/protocols/ot.md`) and the hash H(x, t) = AES_{start xor t}(sigma(x)) xor sigma(x) with t = worker,
//! batch, COT, block, never repeated under one Delta but over the lanes of a batch. Delta is fresh for every
//! session and direction.
//!
//! Who learns what: both the program and the number of rows. What the chooser of an OT sends is its choice
//! under a random bit; what the sender sends is masked by a pad that the chooser cannot compute, a pad of its
//! own for every leaf.
//!
//! Protocol: Goldreich, Micali and Wigderson (STOC 1987) for the ands of exclusive-or shares; 1-of-16 OT from
//! four (Naor and Pinkas, J. Cryptology 2005) with slices of wide pads instead of sums of keys, which would
//! be linear; correlated OT with additive pads (Asharov, Lindell, Schneider and Zohner, CCS 2013) for
//! products with numbers. With a shared bit d = d_0 + d_1 mod 2 and v known to party 0: d v = d_0 v + d_1
//! (1 - 2 d_0) v, the last by one COT whose choice is d_1. [`program::lower::lower_pair`] chooses the
//! products.
//!
//! Deviations, cost and figures: `docs/protocols/lift-row.md`. In short: a comparison of K words of 32 bits
//! takes 32 COTs and 240 K bits for its digits and 14 K COTs and 22 K bits for its tree; an and of shared
//! bits 2 COTs and 2 bits; a product of a bit with numbers of N bits known to one party 1 COT and N bits,
//! with shared numbers twice that; and one bit per COT for its choice. [`SumRows`] states its price exactly,
//! and tests hold the ledger against it.

mod batch;
mod compare;
mod inputs;
mod planes;
mod price;
mod run;
mod schedule;

pub use compare::DIGIT;
pub use run::SumRows;
pub use schedule::COTS_PER_ROW;

/// Rows of a batch unless told otherwise: few enough for a batch's OTs to stay in the cache.
pub const LANES: usize = 1024;
