//! Collecting PS3I: all matches of rows with several identifiers, many to many, as shares.
//!
//! * **Functionality.** Each party holds rows with up to K identifiers, which may repeat, and a payload per
//!   row. Two rows match when they share an identifier. Party 0's rows are *anchors*. Both get, for every
//!   anchor, shares of its payload and of the payloads of up to M (`slots`) rows of party 1 that match it;
//!   party 0 knows which slots are taken. No row of party 1 stands in more than `degree` anchors. With two
//!   lists, the rows of party 1 that match both are dropped.
//! * **Security.** Semi-honest, one party corrupted: DDH on Curve25519, `H` a random oracle, and what the
//!   payload moves by ([`crate::permute`] or [`crate::paillier`]).
//! * **Who learns what.** Party 1: party 0's number of rows, K, M, and with lists the size of either. Party
//!   0: party 1's number of rows and K, and the **match graph without names**: anchors and rows in party 1's
//!   secret orders, and how many identifiers each matched pair shares. Nothing of rows that do not match but
//!   their number. What a graph without names can still tell its reader is in `docs/protocols/collecting.md`.
//! * **Paper.** Section 2.3 of the private randomised trials paper, which gives the functionality; the
//!   protocol is PS3I with lists in place of identifiers. Ours: names by occurrence (`names`), so that an
//!   identifier that repeats is not seen to; the cap on both sides, and an extended permutation into a fixed
//!   number of slots.
//! * **Cost.** `W_0 = M K_0` and `W_1 = degree K_1` elements per row; party 0 sends `n_0 W_0` of them, party
//!   1 `n_1 W_1` and `n_0 W_0` tags of 12 bytes. Then a permutation of `n_0` rows and an extended one of
//!   `n_1` rows into `n_0 M` slots. [`price`] is exact and a test holds it to the ledger.
//!
//! ```text
//!          A = party 0: key a, order pi_A                        B = party 1: key b, orders pi_B and rho
//! count    sizes, K, caps                            <->        sizes, K, caps
//! names    U_A[i] = {H(name)^a : names of row pi_A(i)} ->        U_A
//!          U_B                                        <-        U_B[q] = {H(name)^b : names of row pi_B(q)}
//! shuffle  E_A                                        <-        E_A[p] = tags of shuffle{U_A[rho(p)]^b}
//!          pairs (p, q) with a common element in E_A[p] and U_B[q]^a; caps; map: slot -> q
//! anchors  A's payloads in the order of U_A, permuted by B's rho                   -> shares, one per anchor
//! slots    B's payloads in the order of U_B, filled into slots by A's map          -> shares, M per anchor
//! ```

mod edges;
mod moves;
mod names;
mod price;
mod talk;

pub use edges::ContaminationCounts;
pub use price::{Sizes, memory, price};

use crate::dummies::{self, Dummies, PaddedIdentifiers, ShownSizes};
use crate::identifiers::IdentifierSource;
use crate::payload::{JoinedPart, JoinedShares, PayloadLayout, PayloadTable, ValidEntries};
use crate::terms;
use base::{Error, PartyId, limits};
use net::Session;
use ot::OtKind;
use std::fmt;

pub use crate::terms::ShareBackend;

/// Largest value of [`Options::slots`] and of [`Options::degree`].
pub const CAP_MAX: u32 = 1 << 10;

/// Most identifiers of a row.
pub const KEYS_MAX: u64 = 64;

/// How this party runs the protocol. Both give the same caps, back end, OTs and dummies.
#[derive(Clone, Debug)]
pub struct Options {
    /// Cores to multiply on; at least 1.
    pub threads: usize,
    /// The most rows accepted from the peer.
    pub peer_rows_max: u64,
    /// M: rows of party 1 that an anchor collects, at most. Also how many rows of party 1 may use one
    /// identifier.
    pub slots: u32,
    /// Anchors that a row of party 1 stands in, at most. Also how many anchors may use one identifier; 1
    /// where party 0's identifiers are unique, which is many-to-one.
    pub degree: u32,
    /// Party 0 alone, and only if its rows are two lists: how many of them, the first ones, are list T.
    pub test: Option<u64>,
    /// Dummy rows that hide sizes. Not with two lists.
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
            slots: 4,
            degree: 1,
            test: None,
            dummies: None,
            blank: None,
            ot: OtKind::default(),
            backend: ShareBackend::default(),
            memory: None,
        }
    }
}

impl Options {
    fn check(&self, me: PartyId, rows: &dyn IdentifierSource, payload: &PayloadTable) -> Result<(), Error> {
        for (name, cap) in [("slots of an anchor", self.slots), ("anchors of a row", self.degree)] {
            if !(1..=CAP_MAX).contains(&cap) {
                return Err(Error::limit(name, cap.into(), CAP_MAX.into()));
            }
        }
        if !(1..=KEYS_MAX).contains(&(rows.keys() as u64)) {
            return Err(Error::limit("identifiers of a row", rows.keys() as u64, KEYS_MAX));
        }
        if payload.rows() != rows.rows() {
            return Err(Error::misuse("there is one payload per row of identifiers"));
        }
        if self.blank.as_ref().is_some_and(|blank| blank.len() != payload.layout().row_bytes()) {
            return Err(Error::misuse("a blank row is as wide as a row of the payload"));
        }
        if let Some(test) = self.test {
            if me != PartyId(0) || test > rows.rows() {
                return Err(Error::misuse("the first rows of party 0 may be list T, no others"));
            }
            if self.dummies.is_some() {
                return Err(Error::input(
                    "two lists disclose exact sizes, which dummies do not hide: declare the sizes public and \
                     turn dummies off, or match one list",
                ));
            }
        }
        Ok(())
    }
}

/// What comes out: the joined rows, and what was disclosed.
pub struct Collected {
    /// One joined row per anchor, dummies included, in an order that only party 1 knows, and `slots` entries
    /// each. Both payloads are shared; party 0 knows which entries are matches.
    pub joined: JoinedShares,
    /// What was disclosed.
    pub disclosed: Disclosed,
    /// Identifiers that own rows lost because more rows than the cap carry them: known to this party alone.
    pub lost: u64,
}

/// Positions and shares are data: only what was disclosed prints.
impl fmt::Debug for Collected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collected").field("disclosed", &self.disclosed).finish_non_exhaustive()
    }
}

/// What the parties learnt about each other beyond the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disclosed {
    /// Rows of this party, dummies included, which the peer learnt.
    pub own: u64,
    /// Rows of the peer, dummies included.
    pub peer: u64,
    /// Anchors in list T, where there are two lists: both know it.
    pub test: Option<u64>,
    /// At party 0: counts of the match graph that it saw.
    pub graph: Option<Graph>,
}

/// Counts of the match graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Matched pairs, before any was dropped.
    pub pairs: u64,
    /// Pairs that the caps dropped.
    pub capped: u64,
    /// Anchors with at least one taken slot.
    pub anchors: u64,
    /// Rows of party 1 that match list T, list C and both; those of both were dropped.
    pub contamination: Option<ContaminationCounts>,
}

/// One party's half of Collecting PS3I with the other party of a session of two. `payload` has a row per own
/// row, `peer_layout` is that of the peer's.
///
/// # Errors
/// `Input` when an identifier cannot be read, or lies in both lists; `Limit` when a size is over a bound;
/// `Malformed` or `Deviated` when the peer sends what the protocol does not; `Channel` when it is gone. All
/// name party, peer and step.
pub fn run(
    session: &mut Session,
    identifiers: &dyn IdentifierSource,
    payload: &PayloadTable,
    peer_layout: &PayloadLayout,
    options: &Options,
) -> Result<Collected, Error> {
    if session.roster().len() != 2 {
        return Err(Error::misuse("Collecting PS3I is a protocol of two parties"));
    }
    session.step("collecting", |session| {
        options.check(session.me(), identifiers, payload)?;
        let plan = dummies::plan(session, options.dummies.as_ref(), ShownSizes::Intersection)?;
        let padded = PaddedIdentifiers::new(identifiers, plan.as_ref());
        let layouts = terms::layouts(session.me(), payload.layout(), peer_layout);
        let matched = talk::pairs(session, &padded, &layouts, options)?;
        let anchors = matched.sizes.rows[0];
        let parts = moves::parts(session, payload, &layouts, &matched, options)?;
        let valid = match &matched.role {
            talk::CollectorRole::Joiner { valid, .. } => ValidEntries::Mine(valid.clone()),
            talk::CollectorRole::Other { .. } => ValidEntries::Theirs,
        };
        let me = session.me().index();
        let graph = match matched.role {
            talk::CollectorRole::Joiner { graph, .. } => Some(graph),
            talk::CollectorRole::Other { .. } => None,
        };
        Ok(Collected {
            joined: JoinedShares {
                rows: anchors,
                slots: options.slots,
                parts: parts.map(JoinedPart::Shared),
                valid,
            },
            disclosed: Disclosed {
                own: matched.sizes.rows[me],
                peer: matched.sizes.rows[1 - me],
                test: matched.test,
                graph,
            },
            lost: matched.lost,
        })
    })
}
