//! PS3I: the rows that two parties have in common, joined, as shares.
//!
//! * **Functionality.** Each party holds rows with one identifier, without repeats, and a payload per row.
//!   Both get, for every identifier that both have, shares of either payload: one joined row each, in an
//!   order that neither can trace to its own rows.
//! * **Security.** Semi-honest, one party corrupted: DDH on Curve25519, `H` a random oracle, and what the
//!   payload moves by ([`crate::permute`] or [`crate::paillier`]).
//! * **Who learns what.** Both sizes and the number of matches, to both; with [`crate::dummies`] in them. A
//!   also: which entry of B's secret order of A's rows meets which entry of B's secret order of its own rows,
//!   which is uniform. B also: which entries of its order of A's rows match, which is uniform as well.
//!   Neither learns which of its own rows match.
//! * **Paper.** Section 2.3 of the private randomised trials paper and its reference 8, variant PS3I. As
//!   shipped, that protocol returns ciphertexts as they were sent, so that each party finds its own rows
//!   among the matched ones; here shares are made by permutations that the owner of a payload cannot follow.
//!   Ours too: `E_A` is sorted as a whole, which is its shuffle; lengths and terms first.
//! * **Cost.** Two multiplications per row and party, the first of them with a hash; 32 bytes per row of
//!   either and 32 more per row of A, one bit per row of A; then a network over the rows of each. [`price`]
//!   is exact for sizes that are known and a test holds it to the ledger.
//!
//! ```text
//!          A = party 0: key a, order pi_A                        B = party 1: key b, order pi_B
//! count    size, terms                                <->        size, terms
//! u        U_A[i] = H(x of row pi_A(i))^a             ->         U_A
//!          U_B                                        <-         U_B[q] = H(y of row pi_B(q))^b
//! e        E_A                                        <-         E_A = sort(U_A^b): E_A[p] = U_A[rho(p)]^b
//! match    pairs (p, q) with E_A[p] = U_B[q]^a; I = {p}  ->      bitmap of I
//! payload  A's payloads in the order of U_A, picked by B's rho along I             -> shares, one per p in I
//!          B's payloads in the order of U_B, picked by A's q along I               -> shares, one per p in I
//! ```
//! What would be fatal cannot be said here: B never hears a `q`, `rho` leaves B in no form, `e` starts when
//! all of `U_A` has come, and keys live for one run.

mod moves;
mod price;
mod talk;

pub use price::{CHUNK, Sizes, memory, price};

use crate::dummies::{self, Dummies, PaddedIdentifiers, ShownSizes};
use crate::identifiers::{self, IdentifierSource};
use crate::memory::check;
use crate::payload::{JoinedPart, JoinedShares, PayloadLayout, PayloadTable, ValidEntries};
use crate::terms;
use base::{Error, limits};
use net::Session;
use ot::OtKind;
use std::fmt;

pub use crate::terms::ShareBackend;

/// How this party runs the protocol. Both give the same dummies, OTs and back end.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cores to multiply on; at least 1.
    pub threads: usize,
    /// The most rows accepted from the peer.
    pub peer_rows_max: u64,
    /// Dummy rows that hide sizes.
    pub dummies: Option<Dummies>,
    /// The payload of a dummy row: as many bytes as a row of the payload has; none: zeros.
    pub blank: Option<Vec<u8>>,
    /// The OTs of [`ShareBackend::PermuteShare`].
    pub ot: OtKind,
    /// What moves payloads into shares.
    pub backend: ShareBackend,
    /// Bytes that the match may take; none: no bound.
    pub memory: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads,
            peer_rows_max: limits::ROWS,
            dummies: None,
            blank: None,
            ot: OtKind::default(),
            backend: ShareBackend::default(),
            memory: None,
        }
    }
}

/// What comes out: the joined rows, and what was disclosed.
pub struct Matched {
    /// One joined row per match, dummies included, both payloads shared.
    pub joined: JoinedShares,
    /// What was disclosed.
    pub disclosed: Disclosed,
}

/// Shares are data: only what was disclosed prints.
impl fmt::Debug for Matched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matched").field("disclosed", &self.disclosed).finish_non_exhaustive()
    }
}

/// What the parties learnt about each other beyond the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// Rows of this party, dummies included, which the peer learnt.
    pub own: u64,
    /// Rows of the peer, dummies included.
    pub peer: u64,
    /// Matches, dummies included; both learnt it.
    pub matched: u64,
}

/// One party's half of PS3I with the other party of a session of two. `payload` has a row per own row;
/// `peer_layout` is that of the peer's.
///
/// # Errors
/// `Input` when an own identifier repeats; `Limit` when a size is over a bound; `Malformed` or `Deviated`
/// when the peer sends what the protocol does not; `Channel` when it is gone. All name party, peer and step.
pub fn run(
    session: &mut Session,
    own: &dyn IdentifierSource,
    payload: &PayloadTable,
    peer_layout: &PayloadLayout,
    options: &Options,
) -> Result<Matched, Error> {
    if session.roster().len() != 2 {
        return Err(Error::misuse("PS3I is a protocol of two parties"));
    }
    session.step("ps3i", |session| {
        if payload.rows() != own.rows() {
            return Err(Error::misuse("there is one payload per row of identifiers"));
        }
        let width = payload.layout().row_bytes();
        let blank = options.blank.clone().unwrap_or_else(|| vec![0; width]);
        if blank.len() != width {
            return Err(Error::misuse("a blank row is as wide as a row of the payload"));
        }
        let plan = dummies::plan(session, options.dummies.as_ref(), ShownSizes::Intersection)?;
        let padded = PaddedIdentifiers::new(own, plan.as_ref());
        let mut rng = session.fork_seed("order and key").into_rng();
        identifiers::check_unique(&padded, &mut rng)?;
        let layouts = terms::layouts(session.me(), payload.layout(), peer_layout);
        let rows = session.step("count", |s| talk::count(s, padded.rows(), &layouts, options))?;
        check(memory(rows, &layouts), options.memory)?;
        let pairs = talk::pairs(session, &padded, rows, options.threads, &mut rng)?;
        let matched = pairs.picks.len() as u64;
        let vector = terms::PayloadVector { payload, order: &pairs.order, blank: &blank };
        let parts = moves::parts(session, &vector, &layouts, rows, &pairs.picks, options)?;
        let me = session.me().index();
        let disclosed = Disclosed { own: rows[me], peer: rows[1 - me], matched };
        let joined = JoinedShares {
            rows: matched,
            slots: 1,
            parts: parts.map(JoinedPart::Shared),
            valid: ValidEntries::All,
        };
        Ok(Matched { joined, disclosed })
    })
}
