//! What C does with the encrypted columns of both: the anonymous match graph, and the pairs picked from it.
//!
//! A **cell** is a place of an identifier in a row. Identifiers are unique within a party, so a cell has at
//! most one equal at the other party. Rows with equal cells are joined by an edge.
//!
//! Equal pairs of cells are ranked by a fixed public order: weight (the smaller one of both columns), then
//! C's column, then P's. An edge ranks as its best pair. Two edges that meet never rank equal: at a row of C
//! they use different columns of C, at a row of P different columns of P. So "the top edge of a row" is well
//! defined and no ties remain to be broken by chance.

use crate::spill::{QueueRecords, SortedRecords, SpillColumn, SpillRoom};
use crate::tags::{PLACED_BYTES, place, tag};
use base::Error;
use std::cmp::{Ordering, Reverse};

/// Cells of one party with their tags, sorted, no two alike.
pub(super) type TaggedCells = QueueRecords<PLACED_BYTES>;

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

/// Numbers of rows as the first bytes of records: nearly uniform where rows are, and in their order.
#[derive(Clone, Copy)]
pub(super) struct RowPrefix {
    shift: u32,
}

impl RowPrefix {
    /// Of so many rows.
    pub fn new(rows: u64) -> Self {
        Self { shift: (rows.saturating_sub(1) as u32).leading_zeros().min(u32::BITS - 1) }
    }

    pub fn first_bytes(self, row: u32) -> [u8; 4] {
        (row << self.shift).to_be_bytes()
    }

    pub fn row(self, record: &[u8]) -> u32 {
        number(record, 0) >> self.shift
    }
}

/// Number `at` of a record of such numbers.
pub(super) fn number(record: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*record[4 * at..].first_chunk().expect("a record has so many numbers"))
}

/// A row, the rank of an edge of it, and the row at the other end.
type EdgeRecord = [u8; 12];
/// Two numbers.
pub(super) type PairRecord = [u8; 8];

fn edge(first: [u8; 4], rank: u32, other: u32) -> EdgeRecord {
    let parts = [first, rank.to_be_bytes(), other.to_be_bytes()];
    *parts.as_flattened().first_chunk().expect("three numbers")
}

pub(super) fn pair(first: [u8; 4], second: u32) -> PairRecord {
    *[first, second.to_be_bytes()].as_flattened().first_chunk().expect("two numbers")
}

/// All edges of one row, best first.
struct RowEdges {
    row: u32,
    /// The row at the other end of the best one.
    top: u32,
    /// Whether they end at more than one row.
    conflict: bool,
    /// Whether they end below the bound, and at it or above.
    sides: [bool; 2],
}

/// The edges of the next row.
fn next_row(edges: &mut SortedRecords<12>, order: RowPrefix, bound: u64) -> Result<Option<RowEdges>, Error> {
    let Some(first) = edges.pop()? else { return Ok(None) };
    let (row, top) = (order.row(&first), number(&first, 2));
    let mut all = RowEdges { row, top, conflict: false, sides: [false; 2] };
    let mut next = Some(first);
    while let Some(edge) = next {
        let other = number(&edge, 2);
        all.conflict |= other != top;
        all.sides[usize::from(u64::from(other) >= bound)] = true;
        let same = edges.head()?.is_some_and(|edge| order.row(edge) == row);
        next = if same { edges.pop()? } else { None };
    }
    Ok(Some(all))
}

/// Who is paired with whom, in the order of C's rows.
pub(super) struct RowPairs {
    sorted: SortedRecords<8>,
    order: RowPrefix,
}

impl RowPairs {
    /// The row of P that is paired with a row of C; rows are asked for in their order.
    pub fn partner(&mut self, row: u32) -> Result<Option<u32>, Error> {
        let order = self.order;
        if self.sorted.head()?.is_none_or(|pair| order.row(pair) != row) {
            return Ok(None);
        }
        Ok(self.sorted.pop()?.map(|pair| number(&pair, 1)))
    }
}

/// Joins the tagged cells of C and of P, and picks the edges that are the top edge of both their ends.
///
/// `lists` has the length of C's first list where contaminated rows of P are to be found; `drop` takes these
/// out of all pairs, *after* the pairs are picked: so nobody gains a partner because somebody else lost one.
///
/// # Errors
/// When what does not fit cannot be written or read back.
pub(super) fn pick(
    cells: [TaggedCells; 2],
    rows: [u64; 2],
    order: &EdgeOrder,
    lists: Option<u64>,
    (drop, room): (bool, &SpillRoom),
) -> Result<(RowPairs, MatchGraph), Error> {
    let orders = rows.map(RowPrefix::new);
    let [at_c, at_p] = edges(cells, orders, order, room)?;
    let mut graph =
        MatchGraph { candidates: [0; 2], conflicts: [0; 2], pairs: 0, contaminated: lists.map(|_| 0) };
    let mut tops = SpillColumn::<8>::new(room, at_c.len());
    let mut at_c = at_c.sorted();
    while let Some(RowEdges { row, top, conflict, .. }) = next_row(&mut at_c, orders[0], 0)? {
        graph.candidates[0] += 1;
        graph.conflicts[0] += u64::from(conflict);
        tops.push(&pair(orders[1].first_bytes(top), row))?;
    }
    std::mem::drop(at_c);
    let mut pairs = SpillColumn::<8>::new(room, tops.len());
    let (mut tops, mut at_p) = (tops.sorted(), at_p.sorted());
    while let Some(edges) = next_row(&mut at_p, orders[1], lists.unwrap_or(0))? {
        let RowEdges { row, top, conflict, sides } = edges;
        graph.candidates[1] += 1;
        graph.conflicts[1] += u64::from(conflict);
        let contaminated = sides == [true; 2];
        graph.contaminated.iter_mut().for_each(|count| *count += u64::from(contaminated));
        // Every row of C whose top edge ends here.
        while tops.head()?.is_some_and(|edge| orders[1].row(edge) == row) {
            let mutual = tops.pop()?.is_some_and(|edge| number(&edge, 1) == top);
            if mutual && !(drop && contaminated) {
                pairs.push(&pair(orders[0].first_bytes(top), row))?;
            }
        }
    }
    graph.pairs = pairs.len();
    Ok((RowPairs { sorted: pairs.sorted(), order: orders[0] }, graph))
}

/// Edges by rows of C, and the same by rows of P: one for each pair of equal cells.
fn edges(
    [mut c, mut p]: [TaggedCells; 2],
    orders: [RowPrefix; 2],
    order: &EdgeOrder,
    room: &SpillRoom,
) -> Result<[SpillColumn<12>; 2], Error> {
    let most = c.len().min(p.len());
    let mut edges = [(); 2].map(|()| SpillColumn::new(room, most));
    let entry = |record: Option<&[u8; PLACED_BYTES]>| record.map(|record| u128::from_be_bytes(*record));
    while let (Some(mine), Some(theirs)) = (entry(c.head()?), entry(p.head()?)) {
        let order_of_tags = tag(mine).cmp(&tag(theirs));
        if order_of_tags != Ordering::Greater {
            c.pop()?;
        }
        if order_of_tags != Ordering::Less {
            p.pop()?;
        }
        if order_of_tags == Ordering::Equal {
            let ((i, a), (j, b)) = (order.split(0, place(mine)), order.split(1, place(theirs)));
            let rank = order.ranks[a * order.keys[1] + b];
            edges[0].push(&edge(orders[0].first_bytes(i), rank, j))?;
            edges[1].push(&edge(orders[1].first_bytes(j), rank, i))?;
        }
    }
    Ok(edges)
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
