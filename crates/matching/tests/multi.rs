//! Private-ID of several identifiers end to end: the spine against its definition, and the price against the
//! ledger.

#[path = "common/people.rs"]
mod people;

use base::{Error, PartyId, Seed};
use matching::dummies::Dummies;
use matching::multi_pid::{self, COUNTED, LISTS};
use matching::{
    ContaminatedRule, IdentifierSource, MatchOptions, MatchOutcome, MatchOutput, MatchSpine, Matcher,
    MultiId, PairSizes, RepeatRule,
};
use net::Traffic;
use net::cluster::Cluster;
use people::Rows;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Done = [Result<(MatchOutcome, Traffic), Error>; 2];

fn one_thread() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

fn both(cluster: &Cluster, rows: [&Rows; 2], options: [&MatchOptions; 2]) -> Done {
    let done = cluster.run(|session| {
        let me = session.me().index();
        let matched = MultiId.run(session, rows[me], None, options[me])?;
        Ok((matched, session.traffic().clone()))
    });
    done.try_into().ok().unwrap()
}

fn honest(rows: [&Rows; 2], options: [&MatchOptions; 2], seed: u64) -> [MatchOutcome; 2] {
    let [c, p] = both(&Cluster::new(2, seed), rows, options).map(|done| done.unwrap());
    assert_eq!(c.0.disclosed.sizes, p.0.disclosed.sizes);
    let price = MultiId.price(&c.0.disclosed.sizes, options[0]);
    assert_eq!(price.sent, [c.1.sent("multi"), p.1.sent("multi")]);
    assert_eq!(price.rounds, c.1.turns("multi").max(p.1.turns("multi")));
    [c.0, p.0]
}

fn spine(outcome: &MatchOutcome) -> &MatchSpine {
    match &outcome.output {
        MatchOutput::Spine(spine) => spine,
        MatchOutput::Shares(_) => panic!("it gives a spine"),
    }
}

/// What a party counted under these words.
fn counted<const N: usize>(outcome: &MatchOutcome, what: [&str; N]) -> [Option<u64>; N] {
    what.map(|what| outcome.disclosed.count(what))
}

/// The pairs of rows that share a position. Checks that positions are all taken, and once per party.
fn pairs([c, p]: &[MatchOutcome; 2]) -> BTreeSet<(usize, usize)> {
    let mut at: BTreeMap<u32, [Option<usize>; 2]> = BTreeMap::new();
    for (party, matched) in [c, p].into_iter().enumerate() {
        for (row, position) in spine(matched).mine.positions().unwrap().into_iter().enumerate() {
            assert!(u64::from(position) < spine(matched).rows);
            let place = &mut at.entry(position).or_default()[party];
            assert_eq!(place.replace(row), None, "two rows at one position");
        }
    }
    at.values().filter_map(|both| Some((both[0]?, both[1]?))).collect()
}

/// The pairs by definition: each the best of both its rows.
fn expected(rows: [&Rows; 2], weights: &[u32]) -> BTreeSet<(usize, usize)> {
    let [c, p] = rows.map(|r| kept(&r.rows));
    let weight = |column: usize| weights.get(column).copied().unwrap_or(0);
    let mut edges = Vec::new();
    for (i, j) in (0..c.len()).flat_map(|i| (0..p.len()).map(move |j| (i, j))) {
        let cells = (0..rows[0].keys).flat_map(|a| (0..rows[1].keys).map(move |b| (a, b)));
        let shared = cells.filter(|&(a, b)| !c[i][a].is_empty() && c[i][a] == p[j][b]);
        let ranks = shared.map(|(a, b)| (u32::MAX - weight(a).min(weight(b)), a, b));
        edges.extend(ranks.min().map(|rank| (rank, i, j)));
    }
    let top = |x: &(_, usize, usize)| {
        let at_ends = edges.iter().filter(|e| e.1 == x.1 || e.2 == x.2);
        at_ends.min().expect("itself") == x
    };
    edges.iter().filter(|edge| top(edge)).map(|&(_, i, j)| (i, j)).collect()
}

/// Identifiers where each has its best place only.
fn kept(rows: &[Vec<String>]) -> Vec<Vec<String>> {
    let mut best = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        for (k, name) in row.iter().enumerate() {
            let place = best.entry(name.clone()).or_insert((k, i));
            *place = (*place).min((k, i));
        }
    }
    let keep = |i: usize, k: usize, name: &String| {
        if best[name] == (k, i) { name.clone() } else { String::new() }
    };
    let row =
        |(i, row): (usize, &Vec<String>)| row.iter().enumerate().map(|(k, name)| keep(i, k, name)).collect();
    rows.iter().enumerate().map(row).collect()
}

fn random_rows(keys: usize, cells: &[u8]) -> Rows {
    let name = |&n: &u8| if n == 0 { String::new() } else { format!("name {n}") };
    Rows { keys, rows: cells.chunks_exact(keys).map(|row| row.iter().map(name).collect()).collect() }
}

/// A name in one column only, so that an only column is never empty.
fn without_gaps(mut rows: Rows) -> Rows {
    if rows.keys == 1 {
        rows.rows.retain(|row| !row[0].is_empty());
    }
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn positions_are_shared_by_the_pairs_of_the_definition(
        keys in (1usize..4, 1usize..4),
        cells in [proptest::collection::vec(0u8..40, 0..40), proptest::collection::vec(0u8..40, 0..40)],
        weights in prop_oneof![Just(vec![]), proptest::collection::vec(0u32..3, 3)],
        seed: u64,
    ) {
        let c = without_gaps(random_rows(keys.0, &cells[0]));
        let p = without_gaps(random_rows(keys.1, &cells[1]));
        let options = MatchOptions { weights: weights.clone(), repeats: RepeatRule::Replace, ..one_thread() };
        let done = honest([&c, &p], [&options; 2], seed);
        let found = pairs(&done);
        prop_assert_eq!(&found, &expected([&c, &p], &weights));
        prop_assert_eq!(spine(&done[0]).rows, c.rows() + p.rows() - found.len() as u64);
        prop_assert_eq!(counted(&done[0], LISTS), [None; 2]);
        prop_assert!(done[1].disclosed.counts.is_empty());
    }
}

/// Whoever has the rows of both pairs them alike.
#[test]
fn pairs_in_the_clear_are_those_of_the_match() {
    for seed in 0..6u8 {
        let cells = |party: u8| -> Vec<u8> {
            (0..120).map(|at| blake3::hash(&[seed, party, at]).as_bytes()[0] % 90).collect()
        };
        let rows = [0, 1].map(|party| {
            let rows = random_rows(3, &cells(party));
            // A row without identifiers takes part in no file.
            let kept = kept(&rows.rows).into_iter().filter(|row| row.iter().any(|name| !name.is_empty()));
            Rows { keys: 3, rows: kept.collect() }
        });
        let weights = if seed % 2 == 0 { vec![] } else { vec![0, 2, 1] };
        let options = MatchOptions { weights: weights.clone(), ..one_thread() };
        let clear = multi_pid::pairs_in_clear([&rows[0], &rows[1]], &options).unwrap();
        let found = clear.iter().enumerate().filter_map(|(c, p)| Some((c, (*p)? as usize)));
        let found: BTreeSet<(usize, usize)> = found.collect();
        let matched = pairs(&honest([&rows[0], &rows[1]], [&options; 2], seed.into()));
        assert!(matched.len() > 3, "{matched:?}");
        assert_eq!((&matched, &expected([&rows[0], &rows[1]], &weights)), (&found, &found));
    }
}

#[test]
fn a_better_column_wins_and_weights_overrule_it() {
    let c = Rows::new(2, &[&["anna@a", "1"], &["bo@b", "2"]]);
    let p = Rows::new(2, &[&["bo@b", "1"], &["", "2"]]);
    // Row 0 of P has the mail of C's row 1 and the phone of C's row 0.
    let plain = honest([&c, &p], [&one_thread(); 2], 1);
    assert_eq!(pairs(&plain), BTreeSet::from([(1, 0)]));
    assert_eq!(counted(&plain[0], COUNTED), [Some(2), Some(2), Some(1), Some(1), None]);
    let phones = MatchOptions { weights: vec![1, 5], ..one_thread() };
    let weighted = honest([&c, &p], [&phones; 2], 1);
    assert_eq!(pairs(&weighted), BTreeSet::from([(0, 0), (1, 1)]));
}

#[test]
fn an_identifier_matches_in_any_column() {
    let c = Rows::new(3, &[&["x", "home", "work"]]);
    let p = Rows::new(2, &[&["y", "work"], &["z", ""]]);
    assert_eq!(pairs(&honest([&c, &p], [&one_thread(); 2], 3)), BTreeSet::from([(0, 0)]));
}

#[test]
fn sizes_at_the_edges() {
    let many: Vec<Vec<String>> = (0..2200).map(|i| vec![format!("m{i}"), format!("p{i}")]).collect();
    let sides = [0, 1, 3, 2048, 2049, 2200].map(|n| Rows { keys: 2, rows: many[..n].to_vec() });
    for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1), (3, 4), (5, 2), (0, 5), (5, 0)] {
        let done = honest([&sides[i], &sides[j]], [&one_thread(); 2], 5);
        assert_eq!(pairs(&done).len() as u64, sides[i].rows().min(sides[j].rows()));
    }
    let single = Rows { keys: 1, rows: many[..9000 % 2200].iter().map(|row| row[..1].to_vec()).collect() };
    assert_eq!(pairs(&honest([&single, &sides[5]], [&one_thread(); 2], 6)).len(), single.rows.len());
}

#[test]
fn repeats_are_refused_or_replaced() {
    let c = Rows::new(2, &[&["a", "x"], &["b", "a"], &["", "b"], &["c", "c"]]);
    let p = Rows::new(2, &[&["a", ""], &["b", "q"], &["c", ""]]);
    let [refused, _] = both(&Cluster::new(2, 1), [&c, &p], [&one_thread(); 2]);
    let text = refused.unwrap_err().to_string();
    assert!(text.starts_with("p0 at multi: rows 1 and 2 carry the same identifier"), "{text}");
    let replace = MatchOptions { repeats: RepeatRule::Replace, ..one_thread() };
    let done = honest([&c, &p], [&replace; 2], 1);
    assert_eq!(pairs(&done), BTreeSet::from([(0, 0), (1, 1), (3, 2)]));
    // Twice in one row is nobody's other row: no reason to refuse.
    let twice = Rows::new(2, &[&["c", "c"]]);
    let done = honest([&twice, &p], [&one_thread(); 2], 1);
    assert_eq!(pairs(&done).len(), 1);
}

#[test]
fn contaminated_rows_are_counted_or_dropped() {
    // C: test rows t1, t2, control rows k1, k2. P's first row matches t1 and k1, its second t2 alone.
    let c = Rows::new(2, &[&["t1", ""], &["t2", "m"], &["k1", ""], &["k2", ""]]);
    let p = Rows::new(2, &[&["t1", "k1"], &["t2", "m"], &["k2", ""]]);
    let run = |rule, lists| {
        let of_c = MatchOptions { contaminated: rule, lists: Some(lists), ..one_thread() };
        let of_p = MatchOptions { contaminated: rule, ..one_thread() };
        honest([&c, &p], [&of_c, &of_p], 9)
    };
    let met = run(ContaminatedRule::Count, 2);
    assert_eq!(pairs(&met), BTreeSet::from([(0, 0), (1, 1), (3, 2)]));
    assert_eq!(counted(&met[0], COUNTED)[4], Some(1));
    assert!(met.iter().all(|party| counted(party, LISTS) == [Some(2); 2]));
    let dropped = run(ContaminatedRule::Drop, 2);
    assert_eq!(pairs(&dropped), BTreeSet::from([(1, 1), (3, 2)]));
    assert_eq!(counted(&dropped[0], COUNTED)[4], Some(1));
    // With all rows in one list nobody is contaminated.
    for lists in [0, 4] {
        assert_eq!(counted(&run(ContaminatedRule::Drop, lists)[0], COUNTED)[4], Some(0));
    }
}

#[test]
fn dummies_hide_sizes_and_are_cut_off() {
    let rows = |start: usize, n: usize| Rows {
        keys: 2,
        rows: (start..start + n).map(|i| vec![format!("m{i}"), format!("p{i}")]).collect(),
    };
    let (c, p) = (rows(0, 60), rows(30, 50));
    let of =
        |seed| MatchOptions { dummies: Some(Dummies::usual(&Seed::from_bytes([seed; 32]))), ..one_thread() };
    let done = honest([&c, &p], [&of(1), &of(2)], 4);
    let shared: BTreeSet<_> = (30..60).map(|i| (i, i - 30)).collect();
    assert_eq!(pairs(&done), shared);
    assert_eq!((spine(&done[0]).mine.len(), spine(&done[1]).mine.len()), (60, 50));
    let seen = done[1].disclosed.sizes.pair();
    assert!(seen.rows[0] > 60 + 370 && seen.rows[1] > 50 + 370 && seen.union > 80 + 370);
    assert!(seen.shared() > 30 + 100);
    let [a, b] = both(&Cluster::new(2, 1), [&c, &p], [&of(1), &one_thread()]);
    for error in [a, b] {
        assert!(error.unwrap_err().to_string().contains("same dummies as we do"));
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let c = Rows::new(2, &[&["a", "b"], &["c", ""]]);
    let text = |c_options: MatchOptions, p_options: MatchOptions, at: usize| {
        let done = both(&Cluster::new(2, 1), [&c, &c], [&c_options, &p_options]);
        done.into_iter().nth(at).unwrap().unwrap_err().to_string()
    };
    let light = MatchOptions { weights: vec![1], ..one_thread() };
    assert!(text(light.clone(), light, 0).contains("weights for fewer columns"));
    let weighted = MatchOptions { weights: vec![1, 2], ..one_thread() };
    assert!(text(weighted, one_thread(), 1).contains("same weights and rule"));
    let counting = MatchOptions { contaminated: ContaminatedRule::Count, ..one_thread() };
    assert!(text(counting.clone(), counting.clone(), 0).contains("say which rows are one"));
    let listed = MatchOptions { lists: Some(1), ..counting.clone() };
    assert!(text(listed.clone(), listed.clone(), 1).contains("lists are party 0's"));
    assert!(
        text(MatchOptions { lists: Some(3), ..counting.clone() }, counting, 0)
            .contains("more rows than there are")
    );
    let small = MatchOptions { memory: Some(100), ..one_thread() };
    let error = text(one_thread(), small, 1);
    assert_eq!(
        error,
        "p1 at multi: this match needs 3 MB of memory and 0 MB are left for it, the data's own memory taken \
         off; raise `memory` by 3 MB, or match fewer rows"
    );
    let few = MatchOptions { peer_rows_max: 1, ..one_thread() };
    assert!(text(few, one_thread(), 0).contains("rows of the peer: 2 is over the limit of 1"));
    let wide = Rows::new(17, &[]);
    let [error, _] = both(&Cluster::new(2, 1), [&wide, &c], [&one_thread(); 2]);
    assert!(error.unwrap_err().to_string().contains("identifiers of a row: 17 is over the limit of 16"));
    let gap = Rows::new(1, &[&["a"], &[""]]);
    let [error, _] = both(&Cluster::new(2, 1), [&gap, &c], [&one_thread(); 2]);
    assert!(error.unwrap_err().to_string().contains("identifier of row 2 is empty"));
}

#[test]
fn a_price_at_scale() {
    let sizes = PairSizes { rows: [1_000_000; 2], keys: [2; 2], union: 1_500_000 };
    // Three columns of two elements, two of one, twelve bytes for each position.
    assert_eq!(multi_pid::price(sizes).bytes() / 1_000_000, 3 * 64 + 2 * 32 + 18);
    let [c, p] = [0, 1].map(|party| multi_pid::multiplications(sizes, PartyId(party)));
    assert_eq!((c, p), (6_000_000, 6_500_000));
    assert_eq!(
        (multi_pid::influence(2, RepeatRule::Error), multi_pid::influence(2, RepeatRule::Replace)),
        (3, 5)
    );
    // What goes to disk is not in it.
    let memory = [0, 1].map(|party| multi_pid::memory([10_000_000; 2], [2; 2], PartyId(party)));
    assert_eq!(memory, [10_000_000 * 20; 2]);
}

#[test]
fn dummies_are_refused_where_contaminated_rows_matter() {
    let rows = Rows::new(1, &[&["a"]]);
    for contaminated in [ContaminatedRule::Count, ContaminatedRule::Drop] {
        let options = |party: usize| MatchOptions {
            contaminated,
            lists: (party == 0).then_some(1),
            dummies: Some(Dummies::usual(&Seed::from_bytes([1; 32]))),
            ..one_thread()
        };
        for error in both(&Cluster::new(2, 1), [&rows, &rows], [&options(0), &options(1)]) {
            let error = error.unwrap_err().to_string();
            assert!(
                error.contains("contaminated rows are counted or dropped without dummies only"),
                "{error}"
            );
        }
    }
}
