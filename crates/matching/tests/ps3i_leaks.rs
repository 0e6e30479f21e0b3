//! What a curious party sees of PS3I, and what a party says when the other one sends garbage, deviates or
//! dies.

mod common;
#[path = "common/tap.rs"]
mod tap;

use common::{Column, ids, with_layouts};
use matching::{
    InnerJoin, JoinedPart, MatchOptions, Matcher, PayloadLayout, PayloadTable, TableField, ps3i::CHUNK,
};
use std::collections::BTreeSet;
use tap::{Fault, run_both, tapped};

fn layout() -> PayloadLayout {
    PayloadLayout::new([TableField::number(8), TableField::bits(64)]).unwrap()
}

fn options() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

/// A payload of ones in every bit.
fn ones(rows: usize) -> PayloadTable {
    let mut table = PayloadTable::zeros(layout(), rows as u64).unwrap();
    table.bytes_mut().fill(0xff);
    table
}

type Messages = Vec<(String, Vec<u8>)>;

/// What both parties said, and their shares of both payloads, in an honest run.
fn transcript(seed: u8, people: [&[String]; 2]) -> [(Messages, [Vec<u8>; 2]); 2] {
    let columns = people.map(Column::new);
    let (sessions, records) = tapped(seed, 30_000, [Fault::None, Fault::None]);
    let shares = run_both(sessions, |session| {
        let me = session.me().index();
        let (own, table) = (columns[me].flat(), ones(people[me].len()));
        let matched = InnerJoin
            .run(session, &own, Some(&table), &with_layouts(&options(), [layout(), layout()]))
            .unwrap();
        matched.shares().unwrap().parts.map(|part| match part {
            JoinedPart::Shared(table) => table.whole().unwrap().bytes().to_vec(),
            _ => panic!("a part is not shared"),
        })
    });
    let mut shares = shares.into_iter();
    records.map(|record| (std::mem::take(&mut *record.lock().unwrap()), shares.next().unwrap()))
}

fn shape(messages: &Messages) -> Vec<(String, usize)> {
    messages.iter().map(|(step, bytes)| (step.clone(), bytes.len())).collect()
}

fn at(messages: &Messages, step: &str) -> Vec<u8> {
    messages.iter().filter(|(s, _)| s == step).flat_map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn the_view_has_the_shape_that_sizes_give() {
    // Twenty matches at the beginning, at the end, and all over the list, of either side.
    let x = ids(0..50);
    let spread: Vec<String> = (0..20).map(|i| format!("person {}", i * 2 + 1)).chain(ids(100..110)).collect();
    let cases = [ids(0..20), ids(30..50)].map(|shared| [shared, ids(100..110)].concat());
    let seen = cases.iter().chain([&spread]).map(|y| transcript(1, [&x, y]).map(|(said, _)| shape(&said)));
    let seen: Vec<_> = seen.collect();
    assert!(seen.iter().all(|shapes| *shapes == seen[0]));
    let [a, b] = &seen[0];
    let line = |step: &str, bytes: usize| (format!("ps3i/{step}"), bytes);
    assert_eq!(a[..3], [line("count", 56), line("u", 50 * 32), line("match", 7)]);
    assert_eq!(b[..3], [line("count", 56), line("u", 30 * 32), line("e", 50 * 32)]);
    // What follows is between the OTs and the networks: nothing of the match is said outside of them.
    let rest = a[3..].iter().chain(&b[3..]).map(|(step, _)| step.split('/').nth(1).unwrap());
    assert!(rest.collect::<BTreeSet<_>>().into_iter().eq(["ot", "payload-0", "payload-1"]));
}

/// How often each position of `E_A` matched, and each row of B's order was hit by the first match, over many
/// runs. A's first half matches, in its own order; so do B's last rows.
#[test]
fn matched_positions_are_uniform_whatever_the_order_of_rows() {
    const RUNS: u8 = 60;
    let (x, y) = (ids(0..16), [ids(100..108), ids(0..8)].concat());
    let mut hits = [0u32; 16];
    for seed in 0..RUNS {
        let [(a, _), _] = transcript(seed, [&x, &y]);
        let bitmap = at(&a, "ps3i/match");
        (0..16).for_each(|p| hits[p] += u32::from(bitmap[p / 8] >> (p % 8) & 1));
    }
    assert_eq!(hits.iter().sum::<u32>(), 8 * u32::from(RUNS), "eight matches in each run");
    // Each is binomial, 60 runs at one half: mean 30, deviation 3.9. The sum of squares over 15 is about one.
    let spread: f64 = hits.iter().map(|h| (f64::from(*h) - 30.0).powi(2) / 15.0).sum();
    assert!(hits.iter().all(|h| (12..=48).contains(h)), "{hits:?}");
    assert!(spread < 40.0, "{hits:?}: {spread}");
    let first: u32 = hits[..8].iter().sum();
    assert!((200..280).contains(&first), "{first} of 480 in the first half: the order of rows shows");
}

#[test]
fn shares_are_fresh_and_unlike_what_was_sent() {
    let (x, y) = (ids(0..600), ids(100..700));
    let [(said_a, of_a), (said_b, of_b)] = transcript(1, [&x, &y]);
    let [(_, again), _] = transcript(2, [&x, &y]);
    for shares in of_a.iter().chain(&of_b) {
        assert_eq!(shares.len(), 500 * 16);
        let mut counts = [0u32; 256];
        shares.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        // 255 degrees of freedom: mean 255, deviation 23.
        let expected = shares.len() as f64 / 256.0;
        let spread: f64 = counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
        assert!(spread < 400.0, "{spread}");
        assert_eq!(shares.chunks(16).collect::<BTreeSet<_>>().len(), 500, "a share repeats");
    }
    assert!(of_a[0] != again[0] && of_a[1] != again[1]);
    // No row of either result crosses the channel, and no payload does.
    let said: Vec<u8> = said_a.iter().chain(&said_b).flat_map(|(_, bytes)| bytes.clone()).collect();
    let windows: BTreeSet<&[u8]> = said.windows(16).collect();
    let rows = of_a.iter().chain(&of_b).flat_map(|shares| shares.chunks(16));
    assert!(rows.chain([&[0xff; 16][..]]).all(|row| !windows.contains(row)));
    // The total of a party's shares is no constant of the network.
    let total = |shares: &[u8]| {
        shares
            .chunks(16)
            .fold(0u64, |sum, row| sum.wrapping_add(u64::from_le_bytes(*row.first_chunk().unwrap())))
    };
    assert!(total(&of_a[0]) != 0 && total(&of_b[0]) != 0);
}

#[test]
fn elements_meet_in_no_column_and_orders_are_secret() {
    let n = CHUNK as u32 + 100;
    let (x, y) = (ids(0..n), ids(0..n));
    let [(a, _), (b, _)] = transcript(3, [&x, &y]);
    let columns = [at(&a, "ps3i/u"), at(&b, "ps3i/u"), at(&b, "ps3i/e")];
    let elements: Vec<&[u8]> = columns.iter().flat_map(|column| column.chunks(32)).collect();
    assert_eq!(elements.iter().collect::<BTreeSet<_>>().len(), 3 * n as usize);
    assert!(columns[2].chunks(32).is_sorted(), "E_A is sorted as a whole, not chunk by chunk");
    assert!(!columns[0].chunks(32).is_sorted());
}

/// The errors of both parties when party `culprit` has this fault; 30 rows against 40, 20 shared.
fn errors(culprit: usize, fault: Fault) -> [Option<String>; 2] {
    let people = [ids(0..30), ids(10..50)];
    let columns = people.each_ref().map(|p| Column::new(p));
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 1_000, faults);
    run_both(sessions, |session| {
        let me = session.me().index();
        let (own, table) = (columns[me].flat(), ones(people[me].len()));
        InnerJoin
            .run(session, &own, Some(&table), &with_layouts(&options(), [layout(), layout()]))
            .err()
            .map(|e| e.to_string())
    })
}

/// What the victim of `culprit` says.
fn says(culprit: usize, fault: Fault) -> String {
    let error = errors(culprit, fault)[1 - culprit].take().expect("the victim fails");
    let names = ["registry", "hospitals"];
    let rest = error.strip_prefix(&format!("{} at ps3i/", names[1 - culprit]));
    rest.unwrap_or_else(|| panic!("{error}")).replace(&format!(" with {}: ", names[culprit]), " | ")
}

fn all_ones(bytes: &mut [u8]) {
    bytes[..32].fill(0xff);
}

fn zero(bytes: &mut [u8]) {
    bytes[..32].fill(0);
}

fn repeat(bytes: &mut [u8]) {
    bytes.copy_within(..32, 32);
}

fn swap(bytes: &mut [u8]) {
    let (a, b) = bytes.split_at_mut(32);
    a.swap_with_slice(&mut b[..32]);
}

fn last_bit(bytes: &mut [u8]) {
    *bytes.last_mut().unwrap() |= 0x80;
}

const MALFORMED: &str = "malformed message from the peer: ";
const DEVIATED: &str = "the peer deviated from the protocol: ";

#[test]
fn points_that_are_none_and_rows_that_repeat() {
    for culprit in [0, 1] {
        let point = says(culprit, Fault::Change("ps3i/u", 0, all_ones));
        assert_eq!(point, format!("u | {MALFORMED}a group element is not a canonical u-coordinate"));
        let point = says(culprit, Fault::Change("ps3i/u", 0, zero));
        assert_eq!(point, format!("u | {MALFORMED}a group element has small order"));
        let rows = says(culprit, Fault::Change("ps3i/u", 0, repeat));
        assert_eq!(rows, format!("e | {DEVIATED}its identifiers are unique"));
    }
    let point = says(1, Fault::Change("ps3i/e", 0, all_ones));
    assert_eq!(point, format!("e | {MALFORMED}a group element is not a canonical u-coordinate"));
    for change in [repeat as fn(&mut [u8]), swap] {
        let sorted = says(1, Fault::Change("ps3i/e", 0, change));
        assert_eq!(sorted, format!("e | {DEVIATED}its set is sorted and without repeats"));
    }
}

#[test]
fn bitmaps_and_sizes_that_cannot_be() {
    let beyond = says(0, Fault::Change("ps3i/match", 0, last_bit));
    assert_eq!(beyond, format!("match | {MALFORMED}a bitmap of matches has bits beyond the rows"));
    let over = says(0, Fault::Change("ps3i/count", 0, |bytes| bytes[..8].fill(0xff)));
    assert!(over.starts_with("count | rows of the peer: "), "{over}");
    let terms = says(1, Fault::Change("ps3i/count", 0, |bytes| bytes[30] ^= 1));
    assert!(terms.starts_with(&format!("count | {DEVIATED}it joins payloads of the layouts")), "{terms}");
    let dummies = says(1, Fault::Change("ps3i/count", 0, |bytes| bytes[9] ^= 1));
    assert!(dummies.starts_with(&format!("count | {DEVIATED}it hides sizes")), "{dummies}");
}

#[test]
fn more_matches_than_rows_are_refused() {
    let people = [ids(0..40), ids(10..20)];
    let columns = people.each_ref().map(|p| Column::new(p));
    let fault = Fault::Change("ps3i/match", 0, |bytes| bytes.fill(0xff));
    let (sessions, _) = tapped(1, 1_000, [fault, Fault::None]);
    let [_, error] = run_both(sessions, |session| {
        let me = session.me().index();
        let (own, table) = (columns[me].flat(), ones(people[me].len()));
        InnerJoin
            .run(session, &own, Some(&table), &with_layouts(&options(), [layout(), layout()]))
            .err()
            .map(|e| e.to_string())
    });
    assert!(error.unwrap().ends_with(&format!("{DEVIATED}no more rows match than we have")));
}

#[test]
fn a_peer_that_dies_at_any_step() {
    let of_a = [
        "ps3i/count",
        "ps3i/u",
        "ps3i/match",
        "ps3i/ot/base-ot",
        "ps3i/payload-0/permute",
        "ps3i/payload-1/permute",
    ];
    let of_b = [
        "ps3i/count",
        "ps3i/u",
        "ps3i/e",
        "ps3i/ot/base-ot",
        "ps3i/payload-0/permute",
        "ps3i/payload-1/permute",
    ];
    for (culprit, steps) in [(0, of_a), (1, of_b)] {
        for step in steps {
            let error = says(culprit, Fault::Cut(step, 0));
            assert!(error.ends_with("see the peer's own output"), "{step}: {error}");
        }
    }
}
