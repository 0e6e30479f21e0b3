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
//!   `n_1` rows into `n_0 M` slots. [`price`] is exact and a test holds it to the ledger. Names, graph,
//!   payload and shares that do not fit the memory lie in sealed files without a name; [`memory`] says what
//!   has to fit.
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
mod names;
mod parts;
mod price;
mod talk;

pub use edges::ContaminationCounts;
pub use price::{SlotSizes, memory, price};

use crate::dummies::ShownSizes;
use crate::matcher::{
    ContaminatedRule, MatchDisclosure, MatchDisk, MatchEstimate, MatchFeatures, MatchInput, MatchOptions,
    MatchOutcome, MatchOutput, MatchSizes, MatchedCount, Matcher, PlannedRows, RepeatRule, RowInfluence,
    pair_of,
};
use crate::moves::{EntryMap, PayloadMoves};
use crate::payload::{JoinedPart, JoinedShares, ValidEntries};
use crate::terms::PayloadVector;
use base::{Cost, Error, PartyId};
use net::Session;

/// Largest value of [`MatchOptions::slots`] and of [`MatchOptions::degree`].
pub const CAP_MAX: u32 = 1 << 10;

/// Most identifiers of a row.
pub const KEYS_MAX: usize = 64;

/// What party 0 counts in the match graph that it sees, in the words of its report.
pub const COUNTED: [&str; 3] = [
    "pairs of rows that share an identifier",
    "of these left out: over the slots of a row or its degree",
    "rows of this party with a match",
];
/// The same, where it has two lists.
pub const CONTAMINATED: [&str; 3] = [
    "rows of the other party that match the test arm",
    "rows of the other party that match the control arm",
    "contaminated rows of the other party: they match both arms, and were dropped",
];
/// Where party 0 has two lists: how long the first is.
pub const TEST: &str = "rows of the publisher's test arm, known to both";
/// Identifiers that own rows lost because more rows than the cap carry them: known to this party alone.
pub const LOST: &str = "own identifiers left out: more rows have them than can match";

/// Collecting PS3I.
pub struct CollectingJoin;

impl Matcher for CollectingJoin {
    fn name(&self) -> &'static str {
        "collecting"
    }

    fn features(&self) -> MatchFeatures {
        MatchFeatures {
            keys: 1..=KEYS_MAX,
            shows_graph: true,
            slots: true,
            streams: true,
            keeps_repeats: true,
            contaminated: &[ContaminatedRule::Ignore, ContaminatedRule::Drop],
            ..MatchFeatures::SHARES
        }
    }

    fn tells(&self, sizes: &str, _first: &str, options: &MatchOptions) -> String {
        let arms = match options.contaminated {
            ContaminatedRule::Ignore | ContaminatedRule::Count => "",
            ContaminatedRule::Drop => " and how many of them are in each arm",
        };
        format!(
            "the advertiser learns how many rows the publisher has{arms}; the publisher learns how many rows \
             the advertiser has, and which of them share identifiers with which of its own, without knowing \
             whose rows they are; numbers {sizes}"
        )
    }

    /// Party 1 sees how many rows party 0 has, and nothing of who matches. Party 0 counts pairs before the
    /// caps. Where rows keep identifiers that others have, another row may have stood at each identifier
    /// where the replaced one goes, and come where it was.
    fn exposure(&self, owner: PartyId, keys: u64, options: &MatchOptions) -> (ShownSizes, u64) {
        let pairs = u64::from(options.degree);
        match (owner, options.repeats) {
            (PartyId(0), _) => (ShownSizes::Rows, 1),
            (_, RepeatRule::Keep) => (ShownSizes::Intersection, pairs * (2 * keys - 1)),
            (_, RepeatRule::Error | RepeatRule::Replace) => (ShownSizes::Intersection, pairs * keys),
        }
    }

    fn influence(&self, keys: u64, options: &MatchOptions) -> RowInfluence {
        let degree = SlotSizes::new([0; 2], [keys; 2], options).reach();
        RowInfluence { degree, slots: options.slots, masked: true, ..RowInfluence::default() }
    }

    fn price(&self, sizes: &MatchSizes, options: &MatchOptions) -> Cost {
        let sizes = sizes.pair();
        price(SlotSizes::new(sizes.rows, sizes.keys, options), options)
    }

    fn estimate(&self, planned: &PlannedRows<'_>, options: &MatchOptions) -> MatchEstimate {
        let rows = pair_of(planned.rows);
        let names = SlotSizes::new(rows, [planned.keys; 2], options);
        MatchEstimate {
            multiplications: names.names(0) + names.names(1),
            waits: 8.0,
            rows: rows[0],
            why: format!("rows of the publisher, {} slots each, however many are in both", options.slots),
            ..MatchEstimate::of(planned)
        }
    }

    fn memory(&self, rows: &[u64], me: PartyId, keys: u64, options: &MatchOptions) -> u64 {
        memory(me, SlotSizes::new(pair_of(rows), [keys; 2], options), options)
    }

    fn disk(&self, rows: &[u64], me: PartyId, options: &MatchOptions) -> Option<MatchDisk> {
        Some(price::disk(me, SlotSizes::new(pair_of(rows), [1; 2], options), options))
    }

    fn converse(&self, session: &mut Session, input: &MatchInput<'_>) -> Result<MatchOutcome, Error> {
        let MatchInput { rows: padded, payload, options, room } = input;
        check(session.me(), padded.real_rows(), options)?;
        let pairs = talk::pairs(session, input)?;
        let SlotSizes { rows, keys, .. } = pairs.sizes;
        let vector = PayloadVector::new(*payload, &pairs.places, options)?;
        let map = match &pairs.role {
            talk::CollectorRole::Joiner(slots) => EntryMap::Queued(&slots.map.0),
            talk::CollectorRole::Other { rho } => EntryMap::Held(rho),
        };
        let (steps, entries) = (["anchors", "slots"], [rows[0], pairs.sizes.entries()]);
        let moves = PayloadMoves { steps, rows, entries, extends: true, map, room };
        let parts = moves.run(session, &vector, options)?.map(JoinedPart::Shared);
        let counts = counted(&pairs);
        let valid = match pairs.role {
            talk::CollectorRole::Joiner(slots) => ValidEntries::Mine(slots.valid),
            talk::CollectorRole::Other { .. } => ValidEntries::Theirs,
        };
        let joined = JoinedShares { rows: rows[0], slots: options.slots, parts, valid };
        let sizes = MatchSizes { rows: rows.into(), keys: keys.into(), union: rows[0] + rows[1] };
        let disclosed = MatchDisclosure { sizes, size_hidden: true, counts };
        Ok(MatchOutcome { output: MatchOutput::Shares(joined), disclosed })
    }
}

/// What this party learnt, in words.
fn counted(pairs: &talk::CollectedPairs) -> Vec<MatchedCount> {
    let mut counts = Vec::new();
    let mut add = |(what, count): (&str, u64)| counts.push(MatchedCount::new(what, count));
    if let talk::CollectorRole::Joiner(slots) = &pairs.role {
        let found = [slots.pairs, slots.capped, slots.anchors];
        COUNTED.into_iter().zip(found).for_each(&mut add);
        let found = slots.contamination.map(|found| [found.test, found.control, found.both]);
        CONTAMINATED.into_iter().zip(found.into_iter().flatten()).for_each(&mut add);
    }
    pairs.test.into_iter().for_each(|test| add((TEST, test)));
    Some(pairs.lost).filter(|lost| *lost > 0).into_iter().for_each(|lost| add((LOST, lost)));
    counts
}

/// Whether caps and lists fit the rows.
fn check(me: PartyId, rows: u64, options: &MatchOptions) -> Result<(), Error> {
    for (name, cap) in [("slots of an anchor", options.slots), ("anchors of a row", options.degree)] {
        if !(1..=CAP_MAX).contains(&cap) {
            return Err(Error::limit(name, cap.into(), CAP_MAX.into()));
        }
    }
    let Some(first) = options.lists else { return Ok(()) };
    if me != PartyId(0) || first > rows {
        return Err(Error::misuse("the first rows of party 0 may be list T, no others"));
    }
    if options.dummies.is_some() {
        return Err(Error::input(
            "two lists disclose exact sizes, which dummies do not hide: declare the sizes public and turn \
             dummies off, or match one list",
        ));
    }
    Ok(())
}
