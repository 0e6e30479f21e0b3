//! Which rows are joined: steps of party 0 without network.
//!
//! The graph is a few columns, each sorted by what the next step goes by: by pair of rows, by row of party 1,
//! by anchor. What a row has of them is at most its names, so no partition of a column outgrows what it was
//! meant to be, whatever matches.

use super::price::SlotSizes;
use crate::spill::{SortedRecords, SpillColumn, SpillQueue, SpillRoom};
use crate::tags::{PLACED_BYTES, PlacedTag, place, tag};
use base::Error;

/// Bytes of an edge.
pub(super) const EDGE_BYTES: usize = 4 + 16;
/// Bytes of a block of the map.
const MAP_BLOCK: usize = 1 << 16;

/// Tags of names with their places, which need not fit into memory.
pub(super) struct PlacedNames(SpillColumn<PLACED_BYTES>);

impl PlacedNames {
    /// None yet, of about so many.
    pub fn new(room: &SpillRoom, expected: u64) -> Self {
        Self(SpillColumn::new(room, expected))
    }

    /// Adds one.
    ///
    /// # Errors
    /// When it has to go to disk and cannot.
    pub fn push(&mut self, name: PlacedTag) -> Result<(), Error> {
        self.0.push(&name.to_be_bytes())
    }

    /// All of them in ascending order.
    pub fn sorted(self) -> SortedNames {
        let records = self.0.is_spread().then(|| self.0.sorted());
        SortedNames { distinct: records.is_some(), records, last: None }
    }
}

/// Names in ascending order.
pub(super) struct SortedNames {
    /// None where memory would not hold those that begin alike.
    records: Option<SortedRecords<PLACED_BYTES>>,
    last: Option<PlacedTag>,
    /// Whether no two that were handed out are equal, and nothing was held back.
    pub distinct: bool,
}

impl SortedNames {
    /// The next one.
    ///
    /// # Errors
    /// When it cannot be read back.
    pub fn next(&mut self) -> Result<Option<PlacedTag>, Error> {
        let Some(records) = &mut self.records else { return Ok(None) };
        let next = records.pop()?.map(PlacedTag::from_be_bytes);
        if let (Some(last), Some(next)) = (self.last, next) {
            self.distinct &= tag(last) != tag(next);
        }
        self.last = next;
        Ok(next)
    }
}

/// Edges in the order of one of their ends, which is a number below a bound, and of what follows it.
struct EdgeColumn {
    column: SpillColumn<EDGE_BYTES>,
    /// Ends are brought to the top of 32 bits: leading bits deal them.
    shift: u32,
}

impl EdgeColumn {
    /// For ends below `ends`, all of which have about so many edges at most.
    fn new(room: &SpillRoom, ends: u64, expected: u64) -> Self {
        let shift = (ends.saturating_sub(1) as u32).leading_zeros();
        Self { column: SpillColumn::new(room, expected), shift }
    }

    fn push(&mut self, end: u32, rest: u128) -> Result<(), Error> {
        let mut record = [0; EDGE_BYTES];
        record[..4].copy_from_slice(&end.checked_shl(self.shift).unwrap_or(0).to_be_bytes());
        record[4..].copy_from_slice(&rest.to_be_bytes());
        self.column.push(&record)
    }

    fn sorted(self) -> SortedEdges {
        SortedEdges { records: self.column.sorted(), shift: self.shift }
    }
}

struct SortedEdges {
    records: SortedRecords<EDGE_BYTES>,
    shift: u32,
}

impl SortedEdges {
    fn split(&self, record: &[u8; EDGE_BYTES]) -> (u32, u128) {
        let (end, rest) = record.split_first_chunk().expect("an end comes first");
        let rest = u128::from_be_bytes(*rest.first_chunk().expect("16 bytes follow"));
        (u32::from_be_bytes(*end).checked_shr(self.shift).unwrap_or(0), rest)
    }

    fn next(&mut self) -> Result<Option<(u32, u128)>, Error> {
        Ok(self.records.pop()?.map(|record| self.split(&record)))
    }

    /// Replaces `rest` by what follows the next end.
    fn next_end(&mut self, rest: &mut Vec<u128>) -> Result<Option<u32>, Error> {
        rest.clear();
        let Some((end, first)) = self.next()? else { return Ok(None) };
        rest.push(first);
        loop {
            let Some(head) = self.records.head()?.copied() else { return Ok(Some(end)) };
            let (next, more) = self.split(&head);
            if next != end {
                return Ok(Some(end));
            }
            rest.push(more);
            self.records.pop()?;
        }
    }
}

/// Pairs of rows with common names: an anchor in party 1's secret order, a row of party 1 in its own, and
/// the least of the names, which is pseudorandom and breaks ties.
pub(super) struct AnchorGraph {
    /// By row of party 1, by name; then the anchor.
    by_row: EdgeColumn,
    /// How many there are.
    pub pairs: u64,
}

impl AnchorGraph {
    /// The pairs of rows with a common name. `names` are those of either side, so many of each row as `sizes`
    /// say. None where a name repeats on one side.
    ///
    /// # Errors
    /// Those of what does not fit into memory.
    pub fn of(names: [PlacedNames; 2], sizes: SlotSizes, room: &SpillRoom) -> Result<Option<Self>, Error> {
        let widths = [0, 1].map(|party| sizes.width(party) as u32);
        let [mut of_p, mut of_q] = names.map(PlacedNames::sorted);
        let mut by_pair = EdgeColumn::new(room, sizes.rows[0], sizes.names(0));
        let (mut a, mut b) = (of_p.next()?, of_q.next()?);
        while let (Some(left), Some(right)) = (a, b) {
            if tag(left) == tag(right) {
                let [p, q] = [place(left) / widths[0], place(right) / widths[1]];
                by_pair.push(p, u128::from(q) << 96 | tag(left))?;
            }
            if tag(left) <= tag(right) {
                a = of_p.next()?;
            }
            if tag(right) <= tag(left) {
                b = of_q.next()?;
            }
        }
        // Names that are above all of the other side repeat as little as others.
        while of_p.next()?.is_some() || of_q.next()?.is_some() {}
        if !(of_p.distinct && of_q.distinct) {
            return Ok(None);
        }
        let (mut sorted, mut last) = (by_pair.sorted(), None);
        let mut graph = Self { by_row: EdgeColumn::new(room, sizes.rows[1], sizes.names(1)), pairs: 0 };
        while let Some((p, rest)) = sorted.next()? {
            let (q, name) = ((rest >> 96) as u32, rest << 32 >> 32);
            if last.replace((p, q)) != Some((p, q)) {
                graph.by_row.push(q, name << 32 | u128::from(p))?;
                graph.pairs += 1;
            }
        }
        Ok(Some(graph))
    }

    /// Drops all pairs of every row of party 1 that is joined with anchors on both sides of `test`. Keeps at
    /// most `degree` pairs of a row of party 1, and of those at most `slots` of an anchor: always the ones of
    /// the least names.
    ///
    /// Party 1's rows choose first, so a row has a say at no more than `degree` anchors.
    ///
    /// # Errors
    /// Those of what does not fit into memory.
    pub fn fill(self, sizes: SlotSizes, test: Option<u64>, room: &SpillRoom) -> Result<FilledSlots, Error> {
        let mut contamination = test.map(|_| ContaminationCounts::default());
        let mut by_anchor = EdgeColumn::new(room, sizes.rows[0], sizes.names(0));
        let (mut by_row, mut edges, mut met) = (self.by_row.sorted(), Vec::new(), 0);
        while let Some(q) = by_row.next_end(&mut edges)? {
            if let (Some(found), Some(test)) = (&mut contamination, test)
                && found.is_contaminated(edges.iter().map(|edge| u64::from(*edge as u32) < test))
            {
                continue;
            }
            met += edges.len() as u64;
            for edge in edges.iter().take(sizes.degree as usize) {
                by_anchor.push(*edge as u32, edge >> 32 << 32 | u128::from(q))?;
            }
        }
        let mut filled = FilledSlots::new(sizes, room);
        let mut by_anchor = by_anchor.sorted();
        while let Some(p) = by_anchor.next_end(&mut edges)? {
            edges.truncate(sizes.slots as usize);
            filled.anchor(p, edges.iter().map(|edge| *edge as u32))?;
            met -= edges.len() as u64;
        }
        filled.up_to(sizes.entries())?;
        Ok(FilledSlots { pairs: self.pairs, capped: met, contamination, ..filled })
    }
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

impl ContaminationCounts {
    /// Counts a row of party 1 by whether each of its anchors is of list T.
    fn is_contaminated(&mut self, mut anchors: impl Iterator<Item = bool> + Clone) -> bool {
        let (in_test, in_control) = (anchors.clone().any(|test| test), anchors.any(|test| !test));
        self.test += u64::from(in_test);
        self.control += u64::from(in_control);
        self.both += u64::from(in_test && in_control);
        in_test && in_control
    }
}

/// Rows of slots, little-endian numbers. It says whose rows match.
pub(super) struct SlotMap(pub SpillQueue);

/// For each of the slots of each anchor the row of party 1 that stands there, and which slots are taken.
pub(super) struct FilledSlots {
    /// A slot without an edge holds any row, here row 0.
    pub map: SlotMap,
    /// Packed.
    pub valid: Vec<u64>,
    /// Pairs of rows, of these dropped by the caps, and anchors with a taken slot.
    pub pairs: u64,
    pub capped: u64,
    pub anchors: u64,
    /// Where there are two lists.
    pub contamination: Option<ContaminationCounts>,
    slots: u64,
    /// Slots so far.
    done: u64,
}

impl FilledSlots {
    fn new(sizes: SlotSizes, room: &SpillRoom) -> Self {
        Self {
            map: SlotMap(SpillQueue::new(room, MAP_BLOCK)),
            valid: vec![0; sizes.entries().div_ceil(64) as usize],
            pairs: 0,
            capped: 0,
            anchors: 0,
            contamination: None,
            slots: sizes.slots.into(),
            done: 0,
        }
    }

    /// Rows of a further anchor.
    fn anchor(&mut self, p: u32, rows: impl Iterator<Item = u32>) -> Result<(), Error> {
        self.anchors += 1;
        self.up_to(u64::from(p) * self.slots)?;
        for q in rows {
            self.map.0.push(&q.to_le_bytes())?;
            self.valid[self.done as usize / 64] |= 1 << (self.done % 64);
            self.done += 1;
        }
        Ok(())
    }

    /// Slots before this one that hold nothing.
    fn up_to(&mut self, slot: u64) -> Result<(), Error> {
        while self.done < slot {
            self.map.0.push(&0u32.to_le_bytes())?;
            self.done += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tags::tagged;
    use base::{Rng, Seed};
    use std::collections::{BTreeMap, BTreeSet};

    const WIDTH: usize = 25;

    /// An anchor, a row of party 1, and the number of their name.
    type Edge = (u32, u32, u64);

    fn hash(name: u64) -> [u8; 32] {
        *blake3::hash(&name.to_le_bytes()).as_bytes()
    }

    /// Names of both sides with these pairs in common, one name each; others are in one row each.
    fn lists(pairs: &[(u32, u32)], rows: [u32; 2], room: &SpillRoom) -> [PlacedNames; 2] {
        let mut next = 1 << 32;
        [0, 1].map(|side| {
            let (mut names, mut place) = (PlacedNames::new(room, 0), 0);
            for row in 0..rows[side] {
                let of_row = (0u64..).zip(pairs).filter(|(_, (p, q))| [*p, *q][side] == row);
                let mut list: Vec<u64> = of_row.map(|(i, _)| i).collect();
                assert!(list.len() <= WIDTH);
                list.resize_with(WIDTH, || {
                    next += 1;
                    next
                });
                for name in list {
                    names.push(tagged(&hash(name), place)).unwrap();
                    place += 1;
                }
            }
            names
        })
    }

    fn sizes(rows: [u32; 2], slots: u32, degree: u32) -> SlotSizes {
        // As many names as there are in either list.
        SlotSizes { rows: rows.map(u64::from), keys: [1; 2], slots, degree }
    }

    fn random_pairs(rng: &mut Rng, rows: [u32; 2]) -> Vec<(u32, u32)> {
        let pair = |rng: &mut Rng| (rng.below(rows[0].into()) as u32, rng.below(rows[1].into()) as u32);
        (0..rng.below(25)).map(|_| pair(rng)).collect()
    }

    fn graph(pairs: &[(u32, u32)], rows: [u32; 2]) -> AnchorGraph {
        let room = SpillRoom::new(None, None);
        AnchorGraph::of(lists(pairs, rows, &room), sizes(rows, WIDTH as u32, WIDTH as u32), &room)
            .unwrap()
            .expect("names are distinct")
    }

    /// What stands where: (anchor, row) in the order of slots; the counts.
    fn filled(
        pairs: &[(u32, u32)],
        rows: [u32; 2],
        [slots, degree]: [u32; 2],
        test: Option<u64>,
    ) -> (Vec<(u32, u32)>, FilledSlots) {
        let room = SpillRoom::new(None, None);
        let filled = graph(pairs, rows).fill(sizes(rows, slots, degree), test, &room).unwrap();
        let (mut map, mut kept) = (Vec::new(), Vec::new());
        filled
            .map
            .0
            .each_block(|block| {
                map.extend(block.as_chunks().0.iter().map(|row| u32::from_le_bytes(*row)));
                Ok(())
            })
            .unwrap();
        assert_eq!(map.len(), (rows[0] * slots) as usize);
        for (slot, row) in (0..).zip(map) {
            match filled.valid[slot as usize / 64] >> (slot % 64) & 1 == 1 {
                true => kept.push((slot / slots, row)),
                false => assert_eq!(row, 0),
            }
        }
        (kept, filled)
    }

    /// Distinct pairs, each with its least name.
    fn edges(pairs: &[(u32, u32)]) -> Vec<Edge> {
        let mut least: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (name, pair) in (0..).zip(pairs) {
            let known = least.entry(*pair).or_insert(name);
            if tagged(&hash(name), 0) < tagged(&hash(*known), 0) {
                *known = name;
            }
        }
        least.into_iter().map(|((p, q), name)| (p, q, name)).collect()
    }

    #[test]
    fn pairs_with_a_common_name_are_joined_once() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for _ in 0..50 {
            let pairs = random_pairs(&mut rng, [6, 8]);
            let (kept, found) = filled(&pairs, [6, 8], [WIDTH as u32; 2], None);
            let all: BTreeSet<_> = pairs.iter().copied().collect();
            assert_eq!((kept.iter().copied().collect(), kept.len() as u64), (all, found.pairs));
        }
    }

    /// The rule in other words: an edge stays at its q if fewer than `degree` edges of q have a smaller name,
    /// and of those at its p likewise.
    fn capped(all: &[Edge], slots: u32, degree: u32) -> BTreeSet<(u32, u32)> {
        let name = |edge: &Edge| tagged(&hash(edge.2), 0);
        let least = |of: &[Edge], end: fn(&Edge) -> u32, most: u32| -> Vec<Edge> {
            let smaller = |e: &Edge| of.iter().filter(|f| end(f) == end(e) && name(f) < name(e)).count();
            of.iter().filter(|e| smaller(e) < most as usize).copied().collect()
        };
        let kept = least(&least(all, |e| e.1, degree), |e| e.0, slots);
        kept.into_iter().map(|(p, q, _)| (p, q)).collect()
    }

    #[test]
    fn degrees_are_bounded_on_both_sides() {
        let mut rng = Seed::from_bytes([2; 32]).into_rng();
        let mut dropped_any = 0;
        for _ in 0..100 {
            let pairs = random_pairs(&mut rng, [4, 5]);
            let all = edges(&pairs);
            let (slots, degree) = (1 + rng.below(3) as u32, 1 + rng.below(3) as u32);
            let (kept, found) = filled(&pairs, [4, 5], [slots, degree], None);
            dropped_any += found.capped;
            assert_eq!(found.capped as usize, all.len() - kept.len());
            assert_eq!(kept.iter().copied().collect::<BTreeSet<_>>(), capped(&all, slots, degree));
            let (mut of_p, mut of_q) = (BTreeMap::new(), BTreeMap::new());
            for (p, q) in &kept {
                *of_p.entry(p).or_insert(0) += 1;
                *of_q.entry(q).or_insert(0) += 1;
            }
            assert!(of_p.values().all(|&n| n <= slots) && of_q.values().all(|&n| n <= degree));
            assert_eq!(found.anchors as usize, of_p.len());
        }
        assert!(dropped_any > 100);
    }

    #[test]
    fn a_row_of_party_1_touches_at_most_degree_anchors() {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        for _ in 0..200 {
            let pairs = random_pairs(&mut rng, [6, 5]);
            // Names keep their numbers where a row's pairs go to rows that are not there otherwise.
            let without: Vec<_> =
                pairs.iter().map(|(p, q)| if *q == 2 { (6, 5) } else { (*p, *q) }).collect();
            let [with, without] = [pairs, without].map(|pairs| -> BTreeSet<_> {
                let (kept, _) = filled(&pairs, [7, 6], [2; 2], None);
                kept.into_iter().filter(|(p, _)| *p < 6).collect()
            });
            let touched: BTreeSet<u32> = with.symmetric_difference(&without).map(|(p, _)| *p).collect();
            assert!(touched.len() <= 2);
        }
    }

    #[test]
    fn contaminated_rows_lose_all_edges_and_are_counted() {
        // Anchors 0 and 1 are T. Row 0 is hit by T, 1 by both, 2 by C, 3 by nobody.
        let pairs = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 2)];
        let (kept, found) = filled(&pairs, [4, 4], [WIDTH as u32; 2], Some(2));
        assert_eq!(found.contamination, Some(ContaminationCounts { test: 2, control: 2, both: 1 }));
        assert_eq!(kept, [(0, 0), (1, 0), (3, 2)]);
        assert_eq!([found.pairs, found.capped, found.anchors], [5, 0, 3]);
    }

    #[test]
    fn names_that_repeat_are_seen_wherever_they_are() {
        let room = SpillRoom::new(None, None);
        for (side, last) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut names = lists(&[(0, 0)], [2, 2], &room);
            let tags: Vec<_> = {
                let mut sorted = std::mem::replace(&mut names[side], PlacedNames::new(&room, 0)).sorted();
                std::iter::from_fn(|| sorted.next().unwrap()).collect()
            };
            let again = if last == 1 { tags[tags.len() - 1] } else { tags[0] };
            tags.iter().chain([&(again ^ 1)]).for_each(|name| names[side].push(*name).unwrap());
            assert!(AnchorGraph::of(names, sizes([2, 2], 25, 25), &room).unwrap().is_none(), "{side} {last}");
        }
    }

    #[test]
    fn columns_on_disk_give_the_graph_of_those_in_memory() {
        let mut rng = Seed::from_bytes([4; 32]).into_rng();
        let rows = [4000u32, 4000];
        let mut names: [Vec<(u64, u32)>; 2] = Default::default();
        for (side, list) in names.iter_mut().enumerate() {
            let name = |rng: &mut Rng| match rng.below(2) {
                0 => rng.below(60_000),
                _ => rng.below(1 << 40) << 20 | side as u64,
            };
            let all: BTreeSet<u64> = (0..100_000).map(|_| name(&mut rng)).collect();
            let mut all: Vec<u64> = all.into_iter().collect();
            rng.shuffle(&mut all);
            list.extend(all.into_iter().zip(0..));
        }
        let graph = |memory| {
            let room = SpillRoom::new(memory, None);
            let lists = [0, 1].map(|side: usize| {
                let mut placed = PlacedNames::new(&room, 100_000);
                names[side].iter().for_each(|(name, at)| placed.push(tagged(&hash(*name), *at)).unwrap());
                placed
            });
            let shape = sizes(rows, WIDTH as u32, WIDTH as u32);
            let graph = AnchorGraph::of(lists, shape, &room).unwrap().unwrap();
            let filled = graph.fill(sizes(rows, 3, 2), Some(1000), &room).unwrap();
            let mut map = Vec::new();
            filled
                .map
                .0
                .each_block(|block| {
                    map.extend_from_slice(block);
                    Ok(())
                })
                .unwrap();
            let counts = [filled.pairs, filled.capped, filled.anchors];
            ((map, filled.valid, counts, filled.contamination), room.spilled().read)
        };
        let ((whole, none), (spilled, read)) = (graph(None), graph(Some(1)));
        assert!(whole == spilled && none == 0 && read > 0);
        assert!(whole.2[0] > 10_000 && whole.2[1] > 100, "{:?}", whole.2);
    }
}
