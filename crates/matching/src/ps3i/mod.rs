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
//!   is exact for sizes that are known and a test holds it to the ledger. Columns, payload and shares that do
//!   not fit the memory lie in sealed files without a name; [`memory`] says what has to fit.
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

mod price;
mod talk;

pub use crate::chunks::CHUNK;
pub use price::{memory, price};

use crate::identifiers::{self, IdentifierSource};
use crate::matcher::{
    MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions, MatchOutcome,
    MatchOutput, MatchSizes, Matcher, PairSizes, PlannedRows, ShareBackend, pair_of,
};
use crate::memory::check;
use crate::moves::{EntryMap, PayloadMoves};
use crate::paillier;
use crate::payload::{JoinedPart, JoinedShares, ValidEntries};
use crate::terms::PayloadVector;
use base::{Cost, Error, PartyId};
use net::Session;

/// PS3I.
pub struct InnerJoin;

impl Matcher for InnerJoin {
    fn name(&self) -> &'static str {
        "ps3i"
    }

    fn features(&self) -> MatchFeatures {
        let bytes_per_row = price::NEEDED_BYTES;
        MatchFeatures { streams: true, backends: true, bytes_per_row, ..MatchFeatures::SHARES }
    }

    fn memory(&self, rows: &[u64], _me: PartyId, _keys: u64, options: &MatchOptions) -> u64 {
        memory(pair_of(rows), options)
    }

    fn tells(&self, sizes: &str, _first: &str, _options: &MatchOptions) -> String {
        format!("both learn both set sizes and the size of the match, {sizes}")
    }

    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        price(sizes.pair(), options)
    }

    fn estimate(&self, planned: &PlannedRows<'_>, options: &MatchOptions) -> MatchEstimate {
        let apart = MatchSizes::apart(planned.rows, 1);
        // Everybody who can be in both.
        let most = planned.rows.iter().copied().min().unwrap_or(0);
        let rows = planned.both.unwrap_or(most);
        let multiplications = apart.union;
        let sizes = MatchSizes { union: apart.union - rows, ..apart };
        // Every ciphertext is made, answered or opened by a party that does nothing else meanwhile.
        let encryption_s = match options.backend {
            ShareBackend::PermuteShare => 0.0,
            ShareBackend::Paillier => paillier::seconds(&self.price(&sizes, options)),
        };
        let why = match planned.both {
            Some(_) => "those in both".into(),
            None => "everybody in both; a smaller match is cheaper".into(),
        };
        MatchEstimate { sizes, multiplications, encryption_s, waits: 8.0, rows, why }
    }

    fn disk(&self, rows: &[u64], me: PartyId, options: &MatchOptions) -> Option<MatchDisk> {
        Some(price::disk(pair_of(rows), me, options))
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows: padded, payload, options, room } = input;
        let mut rng = session.fork_seed("order and key").into_rng();
        identifiers::fingerprint(padded, rng.bytes(), room)?;
        let rows = session.step("count", |s| talk::count(s, padded.rows(), options))?;
        check(memory(rows, options), options.memory)?;
        input.expect_disk(&rows, price::disk(rows, session.me(), options), 0)?;
        let pairs = talk::pairs(session, padded, (rows, room), options.threads, &mut rng)?;
        let matched = pairs.picks.len() as u64;
        let vector = PayloadVector::new(*payload, &pairs.places, options)?;
        let (steps, entries) = (["payload-0", "payload-1"], [matched; 2]);
        let moves =
            PayloadMoves { steps, rows, entries, extends: false, map: EntryMap::Held(&pairs.picks), room };
        let parts = moves.run(session, &vector, options)?;
        let joined = JoinedShares {
            rows: matched,
            slots: 1,
            parts: parts.map(JoinedPart::Shared),
            valid: ValidEntries::All,
        };
        let sizes = PairSizes::new(rows, rows[0] + rows[1] - matched);
        Ok(MatchOutcome { output: MatchOutput::Shares(joined), disclosed: MatchDisclosure::of(sizes) })
    }
}
