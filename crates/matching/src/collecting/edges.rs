//! Which rows are joined: steps of party 0 without network.

use crate::tags::{PlacedTag, place, tag};

/// A pair of rows with common names: anchor `p`, row `q` of party 1, and the least of the names, which is
/// pseudorandom and breaks ties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GraphEdge {
    /// Row of party 0, in party 1's secret order.
    pub p: u32,
    /// Row of party 1, in its secret order.
    pub q: u32,
    /// Tie-break: the tag of the name.
    pub name: u128,
}

/// One edge per pair of rows with a common name, sorted. `names` are sorted tags of either side, `widths` of
/// which belong to a row.
pub fn edges(names: [&[PlacedTag]; 2], widths: [u32; 2]) -> Vec<GraphEdge> {
    let ([of_p, of_q], [width_p, width_q]) = (names, widths);
    let (mut i, mut j, mut edges) = (0, 0, Vec::new());
    while let (Some(&a), Some(&b)) = (of_p.get(i), of_q.get(j)) {
        if tag(a) == tag(b) {
            edges.push(GraphEdge { p: place(a) / width_p, q: place(b) / width_q, name: tag(a) });
        }
        i += usize::from(tag(a) <= tag(b));
        j += usize::from(tag(b) <= tag(a));
    }
    edges.sort_unstable();
    edges.dedup_by_key(|edge| (edge.p, edge.q));
    edges
}

/// Rows of party 1 that are joined with rows of list T (those below `test`), of list C, and of both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContaminationCounts {
    /// Joined with a row of T.
    pub test: u64,
    /// Joined with a row of C.
    pub control: u64,
    /// Joined with rows of both. Their edges are dropped.
    pub both: u64,
}

/// Drops the edges of every row of party 1 that is joined with anchors on both sides of `test`.
pub fn drop_contaminated(edges: &mut Vec<GraphEdge>, test: u32) -> ContaminationCounts {
    let mut found = ContaminationCounts::default();
    edges.sort_unstable_by_key(|edge| (edge.q, edge.p));
    let mut kept = Vec::with_capacity(edges.len());
    for row in edges.chunk_by(|a, b| a.q == b.q) {
        let (in_test, in_control) = (row[0].p < test, row[row.len() - 1].p >= test);
        found.test += u64::from(in_test);
        found.control += u64::from(in_control);
        found.both += u64::from(in_test && in_control);
        if !(in_test && in_control) {
            kept.extend_from_slice(row);
        }
    }
    *edges = kept;
    found
}

/// Keeps at most `degree` edges of a row of party 1, and of those at most `slots` of an anchor: always the
/// ones of the least names. Leaves them sorted by anchor and name, and returns how many were dropped.
///
/// Party 1's rows choose first, so a row has a say at no more than `degree` anchors.
pub fn cap(edges: &mut Vec<GraphEdge>, slots: u32, degree: u32) -> u64 {
    let before = edges.len();
    keep_least(edges, |edge| edge.q, degree);
    keep_least(edges, |edge| edge.p, slots);
    (before - edges.len()) as u64
}

fn keep_least(edges: &mut Vec<GraphEdge>, end: impl Fn(&GraphEdge) -> u32, most: u32) {
    edges.sort_unstable_by_key(|edge| (end(edge), edge.name));
    let (mut last, mut seen) = (None, 0);
    edges.retain(|edge| {
        seen = if last == Some(end(edge)) { seen + 1 } else { 0 };
        last = Some(end(edge));
        seen < most
    });
}

/// For each of `slots` slots of each anchor the row of party 1 that stands there, and which slots are taken,
/// packed. A slot without an edge holds any row, here row 0.
pub fn slots(edges: &[GraphEdge], anchors: u64, slots: u32) -> (Vec<u32>, Vec<u64>) {
    let entries = anchors as usize * slots as usize;
    let (mut map, mut valid) = (vec![0; entries], vec![0u64; entries.div_ceil(64)]);
    for anchor in edges.chunk_by(|a, b| a.p == b.p) {
        let first = anchor[0].p as usize * slots as usize;
        for (entry, edge) in (first..).zip(anchor) {
            map[entry] = edge.q;
            valid[entry / 64] |= 1 << (entry % 64);
        }
    }
    (map, valid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::tagged;
    use base::{Rng, Seed};
    use std::collections::{BTreeMap, BTreeSet};

    /// Sorted tags of both sides with these pairs in common, one name each; `width` names per row.
    fn lists(pairs: &[(u32, u32)], rows: [u32; 2], width: usize) -> [Vec<PlacedTag>; 2] {
        let mut next = 1 << 32;
        [0, 1].map(|side| {
            let mut names = Vec::new();
            for row in 0..rows[side] {
                let of_row = (0u64..).zip(pairs).filter(|(_, (p, q))| [*p, *q][side] == row);
                let mut list: Vec<u64> = of_row.map(|(i, _)| i).collect();
                assert!(list.len() <= width);
                list.resize_with(width, || {
                    next += 1;
                    next
                });
                names.extend(list);
            }
            let hash = |i: u64| *blake3::hash(&i.to_le_bytes()).as_bytes();
            let mut tags: Vec<_> = (0..).zip(names).map(|(place, i)| tagged(&hash(i), place)).collect();
            tags.sort_unstable();
            tags
        })
    }

    fn random_pairs(rng: &mut Rng, rows: [u32; 2]) -> Vec<(u32, u32)> {
        let pair = |rng: &mut Rng| (rng.below(rows[0].into()) as u32, rng.below(rows[1].into()) as u32);
        (0..rng.below(25)).map(|_| pair(rng)).collect()
    }

    fn found(pairs: &[(u32, u32)], rows: [u32; 2]) -> Vec<GraphEdge> {
        let [of_p, of_q] = lists(pairs, rows, 25);
        edges([&of_p, &of_q], [25; 2])
    }

    #[test]
    fn pairs_with_a_common_name_are_joined_once() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for _ in 0..50 {
            let pairs = random_pairs(&mut rng, [6, 8]);
            let joined: Vec<_> = found(&pairs, [6, 8]).iter().map(|e| (e.p, e.q)).collect();
            assert!(joined.iter().eq(pairs.iter().collect::<BTreeSet<_>>()));
        }
    }

    /// The rule in other words: an edge stays at its q if fewer than `degree` edges of q have a smaller name,
    /// and of those at its p likewise.
    fn capped(all: &[GraphEdge], slots: u32, degree: u32) -> BTreeSet<GraphEdge> {
        let least =
            |of: &BTreeSet<GraphEdge>, end: fn(&GraphEdge) -> u32, most: u32| -> BTreeSet<GraphEdge> {
                let smaller =
                    |e: &GraphEdge| of.iter().filter(|f| end(f) == end(e) && f.name < e.name).count();
                of.iter().filter(|e| smaller(e) < most as usize).copied().collect()
            };
        least(&least(&all.iter().copied().collect(), |e| e.q, degree), |e| e.p, slots)
    }

    #[test]
    fn degrees_are_bounded_on_both_sides() {
        let mut rng = Seed::from_bytes([2; 32]).into_rng();
        let mut dropped_any = 0;
        for _ in 0..100 {
            let all = found(&random_pairs(&mut rng, [4, 5]), [4, 5]);
            let (slots, degree) = (1 + rng.below(3) as u32, 1 + rng.below(3) as u32);
            let mut kept = all.clone();
            let dropped = cap(&mut kept, slots, degree);
            dropped_any += dropped;
            assert_eq!(dropped as usize, all.len() - kept.len());
            assert_eq!(kept.iter().copied().collect::<BTreeSet<_>>(), capped(&all, slots, degree));
            let (mut of_p, mut of_q) = (BTreeMap::new(), BTreeMap::new());
            for edge in &kept {
                *of_p.entry(edge.p).or_insert(0) += 1;
                *of_q.entry(edge.q).or_insert(0) += 1;
            }
            assert!(of_p.values().all(|&n| n <= slots) && of_q.values().all(|&n| n <= degree));
        }
        assert!(dropped_any > 100);
    }

    /// Anchors whose kept edges differ.
    fn touched(a: &[GraphEdge], b: &[GraphEdge]) -> usize {
        let sets = [a, b].map(|edges| edges.iter().copied().collect::<BTreeSet<_>>());
        sets[0].symmetric_difference(&sets[1]).map(|e| e.p).collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn a_row_of_party_1_touches_at_most_degree_anchors() {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        for _ in 0..200 {
            let mut with = found(&random_pairs(&mut rng, [6, 5]), [6, 5]);
            let mut without: Vec<_> = with.iter().filter(|e| e.q != 2).copied().collect();
            cap(&mut with, 2, 2);
            cap(&mut without, 2, 2);
            assert!(touched(&with, &without) <= 2);
        }
    }

    #[test]
    fn contaminated_rows_lose_all_edges_and_are_counted() {
        // Anchors 0 and 1 are T. Row 0 is hit by T, 1 by both, 2 by C, 3 by nobody.
        let pairs = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2)];
        let mut edges = found(&pairs, [4, 4]);
        let counts = drop_contaminated(&mut edges, 2);
        assert_eq!(counts, ContaminationCounts { test: 2, control: 2, both: 1 });
        let left: BTreeSet<_> = edges.iter().map(|e| (e.p, e.q)).collect();
        assert_eq!(left, BTreeSet::from([(0, 0), (1, 0), (3, 2)]));
    }

    #[test]
    fn slots_hold_the_edges_of_their_anchor() {
        let mut edges = found(&[(0, 3), (2, 1), (2, 0)], [3, 4]);
        cap(&mut edges, 2, 2);
        let (map, valid) = slots(&edges, 3, 2);
        assert_eq!((map.len(), valid.len()), (6, 1));
        assert_eq!(valid[0], 0b110001);
        assert_eq!(map[0], 3);
        assert_eq!(BTreeSet::from([map[4], map[5]]), BTreeSet::from([0, 1]));
    }
}
