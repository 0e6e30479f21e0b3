use super::*;
use crate::spill::distinct;
use crate::tags::tagged;
use base::{Rng, Seed};
use std::collections::{BTreeMap, BTreeSet};

/// Identifiers of the rows of one party, by column; 0 is none.
type List = Vec<Vec<u32>>;

fn rng(seed: u64) -> Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Seed::from_bytes(bytes).into_rng()
}

fn tags(list: &List, room: &SpillRoom) -> TaggedCells {
    let cells = list.iter().flatten().zip(0..).filter(|(name, _)| **name != 0);
    let element = |name: u32| *blake3::hash(&name.to_le_bytes()).as_bytes();
    let mut tags = SpillColumn::new(room, 0);
    for (&name, cell) in cells {
        tags.push(&tagged(&element(name), cell).to_be_bytes()).unwrap();
    }
    QueueRecords::new(distinct(tags, (room, 16, 64)).unwrap().expect("cells differ"))
}

struct Rule {
    keys: [usize; 2],
    weights: Vec<u32>,
    lists: Option<u64>,
    drop: bool,
}

fn picked(lists: [&List; 2], rule: &Rule) -> (Vec<Option<u32>>, MatchGraph) {
    picked_within(lists, rule, &SpillRoom::new(None, None))
}

fn picked_within(lists: [&List; 2], rule: &Rule, room: &SpillRoom) -> (Vec<Option<u32>>, MatchGraph) {
    let cells = lists.map(|list| tags(list, room));
    let order = EdgeOrder::new(rule.keys, &rule.weights);
    let rows = lists.map(|list| list.len() as u64);
    let (mut pairs, graph) = pick(cells, rows, &order, rule.lists, (rule.drop, room)).unwrap();
    ((0..rows[0] as u32).map(|row| pairs.partner(row).unwrap()).collect(), graph)
}

#[test]
fn pairs_on_disk_are_those_in_memory() {
    let mut rng = rng(9);
    for keys in [1, 3] {
        let lists = [(); 2].map(|()| {
            let row = |rng: &mut Rng| (0..keys).map(|_| rng.below(9000) as u32).collect();
            unique(&(0..4000).map(|_| row(&mut rng)).collect())
        });
        let mut rule = rule(&mut rng, [keys; 2], 1500);
        (rule.lists, rule.drop) = (Some(1500), true);
        let lists = [&lists[0], &lists[1]];
        let (whole, room) = (picked(lists, &rule), SpillRoom::on_disk());
        assert!(picked_within(lists, &rule, &room) == whole && whole.1.pairs > 500, "{:?}", whole.1);
        assert!(room.spilled().read > 0);
    }
}

/// The rank of an edge, from the definition: the best of its shared identifiers.
fn rank(c: &[u32], p: &[u32], weights: &[u32]) -> Option<(std::cmp::Reverse<u32>, usize, usize)> {
    let weight = |column: usize| weights.get(column).copied().unwrap_or(0);
    let shared = |a: usize, b: usize| c[a] == p[b] && c[a] != 0;
    let cells = (0..c.len()).flat_map(|a| (0..p.len()).map(move |b| (a, b))).filter(|&(a, b)| shared(a, b));
    cells.map(|(a, b)| (std::cmp::Reverse(weight(a).min(weight(b))), a, b)).min()
}

/// Pairs and counts, from the definition.
fn reference(lists: [&List; 2], rule: &Rule) -> (Vec<Option<u32>>, MatchGraph) {
    let [c, p] = lists;
    let edge = |i: usize, j: usize| rank(&c[i], &p[j], &rule.weights);
    let of_c = |i: usize| (0..p.len()).filter_map(|j| Some((edge(i, j)?, j))).collect::<Vec<_>>();
    let of_p = |j: usize| (0..c.len()).filter_map(|i| Some((edge(i, j)?, i))).collect::<Vec<_>>();
    let dirty = |j: usize| {
        let first = |i: usize| (i as u64) < rule.lists.unwrap();
        rule.lists.is_some() && of_p(j).iter().map(|&(_, i)| first(i)).collect::<BTreeSet<_>>().len() == 2
    };
    let partner = |i: usize| {
        let (_, j) = of_c(i).into_iter().min()?;
        let (_, back) = of_p(j).into_iter().min()?;
        (back == i && !(rule.drop && dirty(j))).then_some(j as u32)
    };
    let pairs: Vec<_> = (0..c.len()).map(partner).collect();
    let more = |n: usize| {
        let at_c = (0..c.len()).filter(|&i| of_c(i).len() > n).count() as u64;
        [at_c, (0..p.len()).filter(|&j| of_p(j).len() > n).count() as u64]
    };
    let graph = MatchGraph {
        candidates: more(0),
        conflicts: more(1),
        pairs: pairs.iter().flatten().count() as u64,
        contaminated: rule.lists.map(|_| (0..p.len()).filter(|&j| dirty(j)).count() as u64),
    };
    (pairs, graph)
}

/// A small list; identifiers repeat across rows unless made unique.
fn list(rng: &mut Rng, rows: u64, keys: usize, names: u64) -> List {
    (0..rng.below(rows + 1)).map(|_| (0..keys).map(|_| rng.below(names) as u32).collect()).collect()
}

/// Keeps the best place of each identifier: best column, then first row.
fn unique(list: &List) -> List {
    let mut best: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for (row, names) in list.iter().enumerate() {
        for (column, &name) in names.iter().enumerate() {
            let place = best.entry(name).or_insert((column, row));
            *place = (*place).min((column, row));
        }
    }
    let keep = |row: usize, column: usize, name: u32| if best[&name] == (column, row) { name } else { 0 };
    let cells = |(row, names): (usize, &Vec<u32>)| {
        names.iter().enumerate().map(|(column, &name)| keep(row, column, name)).collect()
    };
    list.iter().enumerate().map(cells).collect()
}

fn rule(rng: &mut Rng, keys: [usize; 2], lists: u64) -> Rule {
    let weights = if rng.below(2) == 0 { vec![] } else { (0..3).map(|_| rng.below(3) as u32).collect() };
    Rule { keys, weights, lists: (rng.below(2) == 0).then_some(lists), drop: rng.below(2) == 0 }
}

#[test]
fn pairs_are_those_of_the_definition() {
    let mut rng = rng(1);
    let mut seen = [0; 3];
    for _ in 0..4000 {
        let keys = [1 + rng.below(3) as usize, 1 + rng.below(3) as usize];
        let [c, p] = keys.map(|k| unique(&list(&mut rng, 7, k, 12)));
        let first = rng.below(c.len() as u64 + 1);
        let mut rule = rule(&mut rng, keys, first);
        rule.drop &= rule.lists.is_some();
        let (pairs, graph) = picked([&c, &p], &rule);
        assert_eq!((pairs, graph), reference([&c, &p], &rule), "{c:?} {p:?}");
        seen[0] += graph.pairs;
        seen[1] += graph.conflicts[0];
        seen[2] += graph.contaminated.unwrap_or(0);
    }
    assert!(seen.iter().all(|&n| n > 100), "{seen:?}");
}

/// Rows of C and rows of P whose partner differs between two lists of C or of P that differ by the row `at`,
/// which the longer one of them has.
fn touched(before: [&List; 2], after: [&List; 2], party: usize, at: usize, rule: [&Rule; 2]) -> [usize; 2] {
    let pairs = |lists: [&List; 2], rule: &Rule| -> BTreeSet<(usize, usize)> {
        let (pairs, _) = picked(lists, rule);
        pairs.into_iter().enumerate().filter_map(|(i, j)| Some((i, j? as usize))).collect()
    };
    let (before, after) = (pairs(before, rule[0]), pairs(after, rule[1]));
    // The row goes from the longer list: those behind it move up.
    let moved = |x: usize| if x >= at { x + 1 } else { x };
    let before: BTreeSet<_> =
        before.into_iter().map(|(i, j)| if party == 0 { (moved(i), j) } else { (i, moved(j)) }).collect();
    let changed: Vec<_> = before.symmetric_difference(&after).collect();
    let rows = |end: fn(&&(usize, usize)) -> usize| changed.iter().map(end).collect::<BTreeSet<_>>().len();
    [rows(|pair| pair.0), rows(|pair| pair.1)]
}

/// The most rows of either side that change partner when a row comes or goes, over random small graphs.
fn worst(keys: usize, repeats: bool, rounds: u64) -> usize {
    let mut rng = rng(keys as u64);
    let mut worst = 0;
    for _ in 0..rounds {
        let names = 6 + rng.below(10);
        let raw = [(); 2].map(|()| list(&mut rng, 7, keys, names));
        let raw = if repeats { raw } else { raw.map(|l| unique(&l)) };
        let party = rng.below(2) as usize;
        if raw[party].is_empty() {
            continue;
        }
        let at = rng.below(raw[party].len() as u64) as usize;
        let mut less = raw.clone();
        less[party].remove(at);
        let (raw, less) = (raw.map(|l| unique(&l)), less.map(|l| unique(&l)));
        let first = rng.below(raw[0].len() as u64 + 1);
        let with = rule(&mut rng, [keys; 2], first);
        let lists = with.lists.map(|n| if party == 0 && (at as u64) < n { n - 1 } else { n });
        let without = Rule { weights: with.weights.clone(), lists, ..with };
        let rows = touched([&less[0], &less[1]], [&raw[0], &raw[1]], party, at, [&without, &with]);
        worst = worst.max(rows[0]).max(rows[1]);
    }
    worst
}

#[test]
fn one_row_changes_the_partner_of_few() {
    use crate::matcher::RepeatRule;
    use crate::multi_pid::influence;
    for keys in [1, 2, 3] {
        let bound = influence(keys as u64, RepeatRule::Error) as usize;
        let found = worst(keys, false, 20_000);
        assert!(found <= bound, "{keys} identifiers: {found}");
        assert!(found >= keys, "{keys} identifiers: only {found} found, so the search is weak");
        let bound = influence(keys as u64, RepeatRule::Replace) as usize;
        assert!(worst(keys, true, 20_000) <= bound, "{keys} identifiers, repeats replaced");
    }
}

#[test]
fn replaced_repeats_carry_further_than_one_row_and_its_partners() {
    assert!(worst(2, true, 60_000) > 3, "then influence(2, Replace) could be 3 as well");
}

/// Pairs in order of rank, each taken if both its rows are free: what this module does not do.
fn greedy([c, p]: [&List; 2]) -> BTreeSet<(usize, usize)> {
    let all = (0..c.len()).flat_map(|i| (0..p.len()).map(move |j| (i, j)));
    let mut edges: Vec<_> = all.filter_map(|(i, j)| Some((rank(&c[i], &p[j], &[])?, i, j))).collect();
    edges.sort_unstable();
    let (mut used, mut pairs) = ([BTreeSet::new(), BTreeSet::new()], BTreeSet::new());
    for (_, i, j) in edges {
        if !used[0].contains(&i) && !used[1].contains(&j) {
            used[0].insert(i);
            used[1].insert(j);
            pairs.insert((i, j));
        }
    }
    pairs
}

/// A path C0 P0 C1 P1 ... in which each edge is better than the next one. With greedy picking, a new first
/// row rewires all.
#[test]
fn greedy_picking_would_let_one_row_rewire_a_chain() {
    let n = 20usize;
    let keys = 2 * n + 2;
    // The edge number e of the path has identifier e + 1, in column e of both.
    let row = |edges: [usize; 2]| -> Vec<u32> {
        (0..keys).map(|column| if edges.contains(&column) { column as u32 + 1 } else { 0 }).collect()
    };
    let p: List = (0..n).map(|j| row([2 * j + 1, 2 * j])).collect();
    let with: List = (0..n).map(|i| row([2 * i, (2 * i).wrapping_sub(1)])).collect();
    let without = with[1..].to_vec();
    let shifted: BTreeSet<_> = greedy([&without, &p]).into_iter().map(|(i, j)| (i + 1, j)).collect();
    let chain = greedy([&with, &p]).symmetric_difference(&shifted).count();
    assert!(chain >= 2 * n - 2, "{chain}");
    let rule = Rule { keys: [keys; 2], weights: vec![], lists: None, drop: false };
    let rows = touched([&without, &p], [&with, &p], 0, 0, [&rule, &rule]);
    assert!(rows[0] <= 3 && rows[1] <= 2, "{rows:?}");
}
