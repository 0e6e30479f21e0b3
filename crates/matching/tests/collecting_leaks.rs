//! What a party of Collecting PS3I sees: its shape depends on sizes alone, repeats do not show, orders say
//! nothing.

mod common;
#[path = "common/lists.rs"]
mod lists;
#[path = "common/tap.rs"]
mod tap;

use base::Seed;
use lists::{Data, options, random, work};
use matching::{
    MatchOptions,
    group::{Exponent, GroupElement, hash, mul_batch},
};
use net::Session;
use std::collections::{BTreeMap, BTreeSet};
use tap::{Fault, run_both, tapped};

/// Messages of both parties in an honest run.
fn transcript(seed: u8, data: &Data, options: &MatchOptions) -> [Vec<(String, Vec<u8>)>; 2] {
    let (sessions, records) = tapped(seed, 30_000, [Fault::None, Fault::None]);
    run_both(sessions, |s| work(s, data, options).map(drop)).into_iter().for_each(|done| done.unwrap());
    records.map(|r| std::mem::take(&mut *r.lock().unwrap()))
}

fn shape(messages: &[(String, Vec<u8>)]) -> Vec<(String, usize)> {
    messages.iter().map(|(step, bytes)| (step.clone(), bytes.len())).collect()
}

/// All that was sent at a step.
fn sent(messages: &[(String, Vec<u8>)], step: &str) -> Vec<u8> {
    messages.iter().filter(|(s, _)| s == step).flat_map(|(_, bytes)| bytes.clone()).collect()
}

fn elements(messages: &[(String, Vec<u8>)], step: &str) -> Vec<GroupElement> {
    sent(messages, step).as_chunks().0.to_vec()
}

/// Everybody shares everything, nobody shares anything, and something between.
fn samples() -> [Data; 3] {
    let side = |rows: u32, id: &dyn Fn(u32) -> String| -> Vec<Vec<String>> {
        (0..rows).map(|i| vec![id(i), String::new()]).collect()
    };
    let household = |_| "household".to_owned();
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    [
        Data::new([side(20, &household), side(30, &household)], 2),
        Data::new([side(20, &|i| format!("a {i}")), side(30, &|i| format!("b {i}"))], 2),
        random(&mut rng, [20, 30], [2, 2], 15),
    ]
}

#[test]
fn the_shape_of_every_message_follows_from_the_sizes() {
    let options = MatchOptions { slots: 3, degree: 2, ..options() };
    let [first, second, third] = samples().map(|data| transcript(1, &data, &options).map(|m| shape(&m)));
    assert_eq!(first, second);
    assert_eq!(second, third);
    // What precedes the payload, as someone would make it up who knows the sizes only; `tests/collecting.rs`
    // holds all of it to its price.
    let total = |messages: &[(String, usize)], step: &str| -> usize {
        messages.iter().filter(|(s, _)| s == &format!("collecting/{step}")).map(|(_, bytes)| bytes).sum()
    };
    let [a, b] = &first;
    assert_eq!([total(a, "count"), total(b, "count")], [88, 88]);
    assert_eq!([total(a, "names"), total(b, "names")], [20 * 2 * 3 * 32, 30 * 2 * 2 * 32]);
    assert_eq!([total(a, "shuffle"), total(b, "shuffle")], [0, 20 * 2 * 3 * 12]);
}

#[test]
fn identifiers_that_repeat_are_not_seen_to() {
    let options = MatchOptions { slots: 3, degree: 2, ..options() };
    for data in samples() {
        let [a, b] = transcript(2, &data, &options);
        let names = [elements(&a, "collecting/names"), elements(&b, "collecting/names")].concat();
        let tags: Vec<[u8; 12]> = sent(&b, "collecting/shuffle").as_chunks().0.to_vec();
        let all: Vec<_> = names.iter().map(|name| *name.first_chunk().unwrap()).chain(tags).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "an element is sent twice");
    }
    // Lists of the bare identifiers show households to whoever receives them: the attack would have worked.
    let key = Exponent::random(&mut Seed::from_bytes([3; 32]).into_rng());
    let mut bare = ["household"; 20].map(|id| hash(&[id.as_bytes(), &[0]].concat()));
    mul_batch(&mut bare, &key, 1).unwrap();
    assert_eq!(bare.iter().collect::<BTreeSet<_>>().len(), 1);
}

/// A name as party 0 makes it of the only row with an identifier.
fn name(id: &str) -> GroupElement {
    hash(&[id.as_bytes(), &[0; 9]].concat())
}

/// A party 0 that does not shuffle: its rows have two identifiers, of which the first ones of the first
/// `known` rows match. It plays honestly otherwise, up to the arrival of `E_A`; returns which places of `E_A`
/// match.
fn curious(session: &mut Session, rows: u64, known: u64, rows_b: u64) -> Vec<[bool; 2]> {
    let mut rng = Seed::from_bytes([8; 32]).into_rng();
    let key = Exponent::random(&mut rng);
    let peer = session.me().other();
    let mut link = session.link(peer);
    let numbers = [rows, 2, 1, 1, u64::MAX].map(u64::to_le_bytes);
    // It echoes the peer's terms.
    let mut count = [0; 88];
    link.recv(&mut count).unwrap();
    count[..40].copy_from_slice(numbers.as_flattened());
    link.send(&count).unwrap();
    let mut own: Vec<GroupElement> = (0..rows)
        .flat_map(|i| {
            [name(&format!("{} {i}", if i < known { "both" } else { "mine" })), name(&format!("second {i}"))]
        })
        .collect();
    mul_batch(&mut own, &key, 1).unwrap();
    let mut theirs = vec![[0; 32]; 2 * rows_b as usize];
    let step = 2048;
    let chunk = |of: &mut Vec<GroupElement>, i: usize| {
        (2 * step * i).min(of.len())..(2 * step * (i + 1)).min(of.len())
    };
    for i in 0..own.len().max(theirs.len()).div_ceil(2 * step) {
        let (out, into) = (chunk(&mut own, i), chunk(&mut theirs, i));
        link.exchange(own[out].as_flattened(), theirs[into].as_flattened_mut()).unwrap();
    }
    mul_batch(&mut theirs, &key, 1).unwrap();
    let mut shuffled = vec![[[0; 12]; 2]; rows as usize];
    link.recv(shuffled.as_flattened_mut().as_flattened_mut()).unwrap();
    let theirs: BTreeSet<[u8; 12]> = theirs.iter().map(|element| *element.first_chunk().unwrap()).collect();
    shuffled.iter().map(|row| row.map(|tag| theirs.contains(&tag))).collect()
}

#[test]
fn the_order_of_what_comes_back_says_nothing() {
    // The first half of the rows match, by their first identifier: as if party 0 had put those there that it
    // wants to test.
    let (rows, known) = (6000, 3000);
    let row = |i: u64| vec![format!("both {i}"), String::new()];
    let data = Data::new([vec![], (0..known).map(row).collect()], 2);
    let options = MatchOptions { slots: 1, degree: 1, ..options() };
    let (sessions, _) = tapped(4, 30_000, [Fault::None, Fault::None]);
    let mut seen = run_both(sessions, |session| {
        if session.me().0 == 0 {
            return Some(curious(session, rows, known, known));
        }
        work(session, &data, &options).err().unwrap();
        None
    });
    let seen = seen[0].take().unwrap();
    let hits = |rows: &[[bool; 2]]| rows.iter().flatten().filter(|hit| **hit).count();
    assert_eq!(hits(&seen), known as usize);
    // 1500 of the 3000 are expected in either half, 27 is the standard deviation. The first chunk alone has
    // 2048 rows.
    assert!(hits(&seen[..3000]).abs_diff(1500) < 200, "{} in the first half", hits(&seen[..3000]));
    assert!(hits(&seen[..2048]).abs_diff(1024) < 170, "{} in the first chunk", hits(&seen[..2048]));
    // Half of the hits are at the first place of their row.
    let first = seen.iter().filter(|row| row[0]).count();
    assert!(first.abs_diff(1500) < 200, "{first} at the first place");
}

/// Rows of party 0 by the joined row at which they end up, over many runs.
#[test]
fn joined_rows_are_in_an_order_of_their_own() {
    let data = lists::data(&[&["x"], &["y"], &["z"]], &[&["x"], &["y"]]);
    let options = MatchOptions { slots: 1, degree: 1, ..options() };
    let mut seen: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
    for seed in 0..60 {
        let outcome = lists::both(&net::cluster::Cluster::new(2, seed), &data, [&options; 2]);
        *seen.entry(outcome.anchors).or_default() += 1;
    }
    // Six orders, ten times each on average.
    assert_eq!(seen.len(), 6, "{seen:?}");
}
