//! Two-party garbled circuits: half-gates over many rows at once, streaming, with sums as additive shares.
//!
//! **Functionality.** Row and combine: each party enters its columns; each gets an additive share of every
//! total (or the total itself where it depends on that party's columns alone). Release: each gets a share of
//! the outputs' bits.
//!
//! **Security model and parameters.** Semi-honest, one of two parties; 128-bit labels with the colour in bit
//! 0 and a global Delta that is fresh for every connection; half-gates (Zahur, Rosulek, Evans 2015) with the
//! tweaked hash H(x, t) = AES_{start xor t}(sigma(x)) xor sigma(x) (Guo, Katz, Wang, Weng, Yu 2020), `start`
//! 128 public random bits per connection, t = batch, gate, half; the lanes of a batch share t. Evaluator
//! inputs by correlated OT (SoftSpoken). A release leaves the outputs' bits in two shares, label colours,
//! which neither party can tell from coins; the noise is drawn inside, from coins of both. No more is
//! claimed: a modified program can enter false shares, shift a result by its share, and a modified garbler
//! can garble another circuit.
//!
//! **Who learns what.** Sizes and the program, which are public. Nothing else but the outputs.
//!
//! **Paper and deviations.** The paper garbles the lift game with emp-sh2pc (Private RCT, section 3.1).
//! Here (a) what one party can compute alone is never a gate; (b) a bit `y` that the garbler knows has the
//! all-zero active label and `W0 = y Delta`: it costs no byte, and XOR with it is an offset (the view is
//! that of a garbling whose active label was fixed first, which has the same distribution; where such a
//! label would be hashed, each lane gets another public one, because lanes share tweaks); (c) an AND with
//! an operand that either party knows is one ciphertext; (d) sums are additive shares by masked values
//! (`masks.rs`) instead of adders; (e) the garbler is the party for which the program is cheaper, which is
//! the one with more input bits wherever that decides.
//!
//! **Cost.** Per row 32 B for an AND of two shared bits, 16 B for an AND with a known one, ceil(width / 8) B
//! per product of a bit and a value, 16 ceil(128 / k) / 128 B per evaluator bit; prices of stages are exact
//! and tests hold the ledger against them.

mod circuit;
mod compile;
mod lanes;
mod masks;
mod release;
mod rows;
#[cfg(test)]
mod tests;
pub mod wires;

use crate::circuit::GarbledCircuit;
use crate::release::GarbledRelease;
use crate::rows::GarbledRows;
use base::{Error, PartyId};
use circuits::Wired;
use engine::{
    CircuitEngine, Engine, PreparedCircuit, PreparedRelease, PreparedRows, RowSource, must_be_sums,
};
use kernels::{Block, TweakedHash};
use net::Session;
use program::Program;
use program::lower::ReleasePlan;
use std::sync::Arc;

/// The garbling engine.
#[derive(Clone, Copy, Debug)]
pub struct Yao {
    k: u32,
    lanes: usize,
}

/// Rows garbled at once: enough to amortise a key schedule, few enough for the labels to stay in the cache.
pub const LANES: usize = 512;

impl Default for Yao {
    fn default() -> Self {
        Self::new(2)
    }
}

impl Yao {
    /// An engine whose OT extension takes `k` bits of Delta at once: 1..=8, small for fast links, large for
    /// slow ones. Both parties must agree.
    #[must_use]
    pub fn new(k: u32) -> Self {
        Self { k, lanes: LANES }
    }

    /// Another number of rows at once; a multiple of 64, at most [`kernels::LANES_MAX`]. For measurements.
    #[must_use]
    pub fn with_lanes(mut self, lanes: usize) -> Self {
        assert!(lanes > 0 && lanes.is_multiple_of(64), "lanes come in words of 64");
        assert!(lanes <= kernels::LANES_MAX, "more lanes than may share a tweak");
        self.lanes = lanes;
        self
    }

    /// The party that garbles the rows of a program: the one for which they cost fewer bytes.
    #[must_use]
    pub fn garbler(&self, program: &Program) -> PartyId {
        GarbledRows::cheaper(program, self.k, self.lanes).garbler()
    }
}

impl Engine for Yao {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn rows(&self, program: &Program, source: RowSource) -> Result<Box<dyn PreparedRows>, Error> {
        source.must_be_owned("yao")?;
        must_be_sums(program, "yao")?;
        Ok(Box::new(GarbledRows::cheaper(program, self.k, self.lanes)))
    }

    fn release(&self, plan: &Arc<ReleasePlan>) -> Result<Box<dyn PreparedRelease>, Error> {
        Ok(Box::new(GarbledRelease::new(plan.clone(), self.k)))
    }
}

impl CircuitEngine for Yao {
    fn name(&self) -> &'static str {
        "yao"
    }

    fn circuit<'a>(&self, wired: &'a Wired) -> Result<Box<dyn PreparedCircuit + 'a>, Error> {
        wired.check()?;
        if wired.parties != 2 {
            return Err(other_parties());
        }
        Ok(Box::new(GarbledCircuit::cheaper(wired, self.k, self.lanes)))
    }
}

fn check_pair(session: &Session) -> Result<(), Error> {
    engine::check_parties(2, session).map_err(|_| other_parties())
}

fn other_parties() -> Error {
    Error::input("the yao engine is for exactly two parties; use gmw among more")
}

/// Bytes of the public `start` of the hash, sent by the garbler.
const START_BYTES: usize = 16;

/// The garbler draws and sends `start`.
fn send_start(session: &mut Session, peer: PartyId) -> Result<TweakedHash, Error> {
    let start: [u8; START_BYTES] = session.fork_seed("hash start").into_rng().bytes();
    session.link(peer).send(&start)?;
    Ok(TweakedHash::new(Block::from_bytes(start)))
}

fn recv_start(session: &mut Session, peer: PartyId) -> Result<TweakedHash, Error> {
    Ok(TweakedHash::new(Block::from_bytes(session.link(peer).recv_array()?)))
}
