//! What C does with the encrypted columns of both: the anonymous match graph, and the pairs picked from it.
//!
//! A **cell** is a place of an identifier in a row. Identifiers are unique within a party, so a cell has at
//! most one equal at the other party. Rows with equal cells are joined by an edge.
//!
//! Equal pairs of cells are ranked by a fixed public order: weight (the smaller one of both columns), then
//! C's column, then P's. An edge ranks as its best pair. Two edges that meet never rank equal: at a row of C
//! they use different columns of C, at a row of P different columns of P. So "the top edge of a row" is well
//! defined and no ties remain to be broken by chance.

use crate::tags::{PlacedTag, place, tag};
use std::cmp::Reverse;

/// No edge.
const NONE: u64 = u64::MAX;

/// Bits of what is known of a row.
const CONFLICT: u8 = 1;
const FIRST_LIST: u8 = 2;
const SECOND_LIST: u8 = 4;

/// What party 0 learnt about the rows of both, which nobody can tell by name. Dummies count as rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatchGraph {
    /// Rows of each party that share an identifier with some row of the other.
    pub candidates: [u64; 2],
    /// Rows of each party that share identifiers with more than one row of the other.
    pub conflicts: [u64; 2],
    /// Pairs that became one position of the spine.
    pub pairs: u64,
    /// Rows of party 1 that share identifiers with rows of both lists of party 0, where there are two.
    pub contaminated: Option<u64>,
}

/// The public order of pairs of columns.
pub(super) struct EdgeOrder {
    keys: [usize; 2],
    /// Rank of the columns `(a, b)` of C and P at `a K_P + b`; 0 is best.
    ranks: Vec<u32>,
}

impl EdgeOrder {
    /// The order of `keys` columns; `weights` has one entry per column, or none: then all weigh the same.
    pub fn new(keys: [usize; 2], weights: &[u32]) -> Self {
        let weight = |a: usize, b: usize| {
            let of = |column: usize| weights.get(column).copied().unwrap_or(0);
            of(a).min(of(b))
        };
        let pairs = keys[0] * keys[1];
        let mut sorted: Vec<usize> = (0..pairs).collect();
        sorted.sort_by_key(|pair| {
            let (a, b) = (pair / keys[1], pair % keys[1]);
            (Reverse(weight(a, b)), a, b)
        });
        let mut ranks = vec![0; pairs];
        sorted.into_iter().zip(0..).for_each(|(pair, rank)| ranks[pair] = rank);
        Self { keys, ranks }
    }

    /// Row and column of a cell.
    fn split(&self, party: usize, cell: u32) -> (u32, usize) {
        let keys = self.keys[party] as u32;
        (cell / keys, (cell % keys) as usize)
    }
}

/// The top edges of all rows.
struct Tops {
    /// Per row of each party: rank of its top edge, then the row at the other end.
    edges: [Vec<u64>; 2],
    flags: [Vec<u8>; 2],
}

impl Tops {
    fn new(rows: [u64; 2]) -> Self {
        Self { edges: rows.map(|n| vec![NONE; n as usize]), flags: rows.map(|n| vec![0; n as usize]) }
    }

    /// Enters an edge at one of its ends.
    fn enter(&mut self, party: usize, row: u32, rank: u32, other: u32) {
        let edge = u64::from(rank) << 32 | u64::from(other);
        let top = &mut self.edges[party][row as usize];
        if *top != NONE && *top as u32 != other {
            self.flags[party][row as usize] |= CONFLICT;
        }
        *top = edge.min(*top);
    }

    fn count(&self, party: usize, bits: u8) -> u64 {
        self.flags[party].iter().filter(|&&flags| flags & bits == bits).count() as u64
    }
}

/// Joins the tagged cells of C and of P, both sorted, and picks the edges that are the top edge of both their
/// ends. Returns, for each row of C, its row of P.
///
/// `lists` has the length of C's first list where contaminated rows of P are to be found; `drop` takes these
/// out of all pairs, *after* the pairs are picked: so nobody gains a partner because somebody else lost one.
pub(super) fn pick(
    cells: [&[PlacedTag]; 2],
    rows: [u64; 2],
    order: &EdgeOrder,
    lists: Option<u64>,
    drop: bool,
) -> (Vec<Option<u32>>, MatchGraph) {
    let mut tops = Tops::new(rows);
    let (mut c, mut p) = (0, 0);
    while let (Some(&mine), Some(&theirs)) = (cells[0].get(c), cells[1].get(p)) {
        let order_of_tags = tag(mine).cmp(&tag(theirs));
        c += usize::from(order_of_tags.is_le());
        p += usize::from(order_of_tags.is_ge());
        if order_of_tags.is_eq() {
            let ((i, a), (j, b)) = (order.split(0, place(mine)), order.split(1, place(theirs)));
            let rank = order.ranks[a * order.keys[1] + b];
            tops.enter(0, i, rank, j);
            tops.enter(1, j, rank, i);
            let list = if lists.is_some_and(|first| u64::from(i) < first) { FIRST_LIST } else { SECOND_LIST };
            tops.flags[1][j as usize] |= list;
        }
    }
    let both = FIRST_LIST | SECOND_LIST;
    let partner = |(i, &top): (usize, &u64)| {
        let j = (top != NONE).then_some(top as u32)?;
        let mutual = tops.edges[1][j as usize] as u32 == i as u32;
        let dropped = drop && tops.flags[1][j as usize] & both == both;
        (mutual && !dropped).then_some(j)
    };
    let pairs: Vec<Option<u32>> = tops.edges[0].iter().enumerate().map(partner).collect();
    let candidates = [0, 1].map(|party| tops.edges[party].iter().filter(|&&top| top != NONE).count() as u64);
    let graph = MatchGraph {
        candidates,
        conflicts: [0, 1].map(|party| tops.count(party, CONFLICT)),
        pairs: pairs.iter().flatten().count() as u64,
        contaminated: lists.map(|_| tops.count(1, both)),
    };
    (pairs, graph)
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
