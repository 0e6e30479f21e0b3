//! Private-ID among n parties end to end: the spine against its definition, the price against the ledger, and
//! what goes wrong.

mod common;

use base::{ChannelError, Error, PartyId, Roster, Seed};
use common::{Column, ids};
use matching::{
    ManyId, MatchOptions, Matcher,
    dummies::{Dummies, ShownSizes},
    many_pid,
};
use net::cluster::Cluster;
use net::{Channel, InjectedFault, Session, Traffic, pair};
use num_bigint::BigUint;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

fn one_thread() -> MatchOptions {
    MatchOptions { threads: 1, ..MatchOptions::default() }
}

fn play(
    cluster: &Cluster,
    lists: &[Vec<String>],
    options: &MatchOptions,
) -> Vec<Result<(Matched, Ledger), Error>> {
    let columns: Vec<Column> = lists.iter().map(|list| Column::new(list)).collect();
    cluster.run(|session| {
        let matched = ManyId.run(session, &columns[session.me().index()].flat(), None, options)?;
        Ok((matched, session.ledger().clone()))
    })
}

/// How many identifiers exactly the parties of each set have, from the definition.
fn overlaps(lists: &[Vec<String>]) -> Vec<u64> {
    let mut who: BTreeMap<&String, usize> = BTreeMap::new();
    for (party, list) in lists.iter().enumerate() {
        list.iter().for_each(|id| *who.entry(id).or_default() |= 1 << party);
    }
    let mut counts = vec![0; 1 << lists.len()];
    who.values().for_each(|&set| counts[set] += 1);
    counts
}

/// Plays and checks all of it.
fn check(cluster: &Cluster, lists: &[Vec<String>]) {
    let (done, ledgers): (Vec<Matched>, Vec<Traffic>) =
        play(cluster, lists, &one_thread()).into_iter().map(|d| d.unwrap()).unzip();
    let union: BTreeSet<&String> = lists.iter().flatten().collect();
    let mut at: BTreeMap<u32, &String> = BTreeMap::new();
    for (list, matched) in lists.iter().zip(&done) {
        assert_eq!((matched.spine.rows, matched.spine.mine.len()), (union.len() as u64, list.len()));
        for (id, &position) in list.iter().zip(&matched.spine.mine) {
            assert_eq!(*at.entry(position).or_insert(id), id, "different identifiers share a position");
        }
    }
    // As many positions as identifiers, no identifier at two of them.
    assert!(at.keys().copied().eq(0..union.len() as u32));
    assert_eq!(at.values().collect::<BTreeSet<_>>().len(), union.len());
    let sizes = Sizes { rows: lists.iter().map(|l| l.len() as u64).collect(), union: union.len() as u64 };
    let price = many_pid::price(&sizes);
    let sent: Vec<u64> = ledgers.iter().map(|ledger| ledger.sent("many")).collect();
    assert_eq!(
        (price.sent.clone(), price.rounds),
        (sent, ledgers.iter().map(|l| l.turns("many")).max().unwrap())
    );
    assert_eq!(done[0].overlaps.as_deref(), Some(&overlaps(lists)[..]));
    assert!(done[1..].iter().all(|party| party.overlaps.is_none() && party.rows == sizes.rows));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]
    #[test]
    fn the_spine_is_the_union_of_all(
        held in proptest::collection::vec(proptest::collection::btree_set(0u32..40, 0..25), 2..6),
        seed: u64,
    ) {
        let lists: Vec<Vec<String>> =
            held.iter().map(|list| list.iter().map(|i| format!("person {i}")).collect()).collect();
        check(&Cluster::new(lists.len(), seed), &lists);
    }
}

#[test]
fn long_and_short_lists_in_any_window() {
    let lists = [ids(0..4200), ids(4000..4100), ids(0..0), ids(50..4150)];
    check(&Cluster::new(4, 3), &lists);
    check(&Cluster::new(4, 3).tiny_window(), &lists);
    check(&Cluster::new(2, 3).tiny_window(), &lists[..2]);
}

#[test]
fn order_of_rows_and_threads_do_not_matter() {
    let lists = [ids(0..300), ids(200..600), ids(100..250)];
    let spines = |threads, seed| -> Vec<Vec<u32>> {
        let options = MatchOptions { threads, ..MatchOptions::default() };
        let done = play(&Cluster::new(3, seed), &lists, &options);
        done.into_iter().map(|party| party.unwrap().0.spine.mine).collect()
    };
    assert_eq!(spines(1, 1), spines(3, 1));
    assert_ne!(spines(1, 1), spines(1, 2), "keys are not fresh");
}

#[test]
fn dummies_are_counted_and_cut_off() {
    let lists = [ids(0..20), ids(10..40), ids(15..35)];
    let columns: Vec<Column> = lists.iter().map(|list| Column::new(list)).collect();
    let done = Cluster::new(3, 5).run(|session| {
        let me = session.me().index();
        let dummies = Some(Dummies::usual(&Seed::from_bytes([me as u8; 32])));
        ManyId.run(session, &columns[me].flat(), None, &MatchOptions { dummies, ..one_thread() })
    });
    let done: Vec<Matched> = done.into_iter().map(|party| party.unwrap()).collect();
    let mut at: BTreeMap<&String, u32> = BTreeMap::new();
    for (list, matched) in lists.iter().zip(&done) {
        assert_eq!(matched.spine.mine.len(), list.len());
        for (id, &position) in list.iter().zip(&matched.spine.mine) {
            assert_eq!(*at.entry(id).or_insert(position), position);
        }
    }
    assert_eq!(at.values().collect::<BTreeSet<_>>().len(), 40);
    let range = Dummies::usual(&Seed::from_bytes([0; 32])).rows_range(ShownSizes::Intersection, 3);
    let made_up: Vec<u64> =
        done[2].rows.iter().zip(&lists).map(|(told, list)| told - list.len() as u64).collect();
    assert!(made_up.iter().all(|rows| (range[0]..=range[1]).contains(rows)), "{made_up:?}");
    // Three lists of each party and fillers of which nobody knows how many; and every overlap is noised.
    assert!(done.iter().all(|party| party.spine.rows > 40 + 9 * 370));
    let exact = overlaps(&lists);
    let noised = done[0].overlaps.as_ref().unwrap();
    assert!((1..8).all(|set: usize| noised[set] > exact[set] + 100), "{noised:?}");
}

#[test]
fn bad_input_and_limits_are_named() {
    let mut twice = ids(0..10);
    twice[7] = twice[2].clone();
    let run = |lists: &[Vec<String>], options: &MatchOptions, at: usize| {
        let done = play(&Cluster::new(lists.len(), 1), lists, options);
        done.into_iter().nth(at).unwrap().unwrap_err().to_string()
    };
    let lists = [ids(0..4), twice, ids(0..11)];
    assert!(run(&lists, &one_thread(), 1).starts_with("p1 at many: rows 3 and 8 carry the same identifier"));
    let few = MatchOptions { peer_rows_max: 10, ..one_thread() };
    let lists = [ids(0..4), ids(0..5), ids(0..11)];
    assert_eq!(
        run(&lists, &few, 0),
        "p0 at many/count with p2: rows of the peer: 11 is over the limit of 10"
    );
    let small = MatchOptions { memory: Some(1000), ..one_thread() };
    assert!(run(&lists, &small, 1).contains("or match fewer rows"));
    let alone =
        Cluster::new(1, 1).run(|session| ManyId.run(session, &Column::new(&[]).flat(), None, &one_thread()));
    assert!(alone[0].as_ref().unwrap_err().to_string().contains("two or more parties"));
}

#[test]
fn whatever_goes_wrong_ends_in_errors_that_name_peer_and_step() {
    let lists = [ids(0..30), ids(10..50), ids(20..45)];
    for culprit in 0..3u8 {
        for step in ["count", "ring", "e", "union", "spine"] {
            // At `e` party 0 only listens.
            if culprit == 0 && step == "e" {
                continue;
            }
            for fault in
                [InjectedFault::Cut, InjectedFault::Truncate, InjectedFault::Corrupt { byte: 3, mask: 0x55 }]
            {
                let cluster = Cluster::new(3, 1).deadline(Duration::from_millis(600)).fault(
                    PartyId(culprit),
                    format!("many/{step}"),
                    fault,
                );
                // Another element is another identifier, as good as any: a secure channel keeps these whole.
                if matches!((step, fault), ("ring" | "e" | "union", InjectedFault::Corrupt { .. })) {
                    continue;
                }
                let done = play(&cluster, &lists, &one_thread());
                let errors: Vec<String> =
                    done.into_iter().filter_map(|d| Some(d.err()?.to_string())).collect();
                assert!(!errors.is_empty(), "p{culprit}, {step}, {fault:?} went unseen");
                for error in errors {
                    // A count that was changed may ask for more memory than there is: no peer's fault that we
                    // know.
                    let placed = error.contains(" with p") || error.contains("no memory for");
                    assert!(error.contains(" at many/") && placed, "{error}");
                }
            }
        }
    }
}

#[test]
fn points_that_are_none_are_blamed_on_their_sender() {
    let lists = [ids(0..3), ids(1..4), ids(2..9)];
    for (culprit, step, victim) in [(0u8, "ring", 1u8), (1, "ring", 2), (2, "e", 0), (0, "union", 1)] {
        // The top bit of the first element: not below 2^255 - 19. A count of eight bytes comes before the
        // union.
        let byte = if step == "union" { 8 + 1 + 31 } else { 31 };
        let cluster = Cluster::new(3, 1).deadline(Duration::from_millis(600)).fault(
            PartyId(culprit),
            format!("many/{step}"),
            InjectedFault::Corrupt { byte, mask: 0x80 },
        );
        let error =
            play(&cluster, &lists, &one_thread()).into_iter().nth(victim.into()).unwrap().unwrap_err();
        let text =
            format!("p{victim} at many/{step} with p{culprit}: malformed message from the peer: a group");
        assert!(error.to_string().starts_with(&text), "{error}");
    }
}

/// A party's channel whose set at step `e` is replaced.
struct Forger {
    inner: Box<dyn Channel>,
    at_e: bool,
    forge: fn(&mut Vec<[u8; 32]>),
}

impl Channel for Forger {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        if !self.at_e {
            return self.inner.send(bytes);
        }
        let mut set = bytes.as_chunks().0.to_vec();
        (self.forge)(&mut set);
        set.sort_unstable();
        self.inner.send(set.as_flattened())
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn window(&self) -> usize {
        self.inner.window()
    }

    fn at_step(&mut self, step: &str) {
        self.at_e = step == "many/e";
        self.inner.at_step(step);
    }
}

/// Party 0's error when `culprit` forges its set.
fn forged(culprit: usize, forge: fn(&mut Vec<[u8; 32]>)) -> String {
    let lists = [ids(0..8), ids(2..9), ids(5..12)];
    let roster = Roster::new((0..3).map(|i| format!("p{i}")));
    let mut ends: Vec<Vec<(PartyId, Box<dyn Channel>)>> = (0..3).map(|_| Vec::new()).collect();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        let (left, right) = pair(Duration::from_millis(600));
        let right: Box<dyn Channel> = if (a, b) == (0, culprit) {
            Box::new(Forger { inner: right, at_e: false, forge })
        } else {
            right
        };
        ends[a].push((PartyId(b as u8), left));
        ends[b].push((PartyId(a as u8), right));
    }
    let play = |me: usize, channels| {
        let seed = Seed::from_bytes([me as u8; 32]);
        let mut session = Session::new(PartyId(me as u8), roster.clone(), channels, seed);
        ManyId.run(&mut session, &Column::new(&lists[me]).flat(), None, &one_thread()).err()
    };
    std::thread::scope(|scope| {
        let play = &play;
        let running: Vec<_> =
            ends.into_iter().enumerate().map(|(me, ends)| scope.spawn(move || play(me, ends))).collect();
        let errors: Vec<Option<Error>> = running.into_iter().map(|r| r.join().unwrap()).collect();
        errors[0].as_ref().unwrap().to_string()
    })
}

#[test]
fn elements_outside_the_subgroup_are_blamed_on_who_sent_them() {
    for culprit in [1, 2] {
        let zero = forged(culprit, |set| set[3] = [0; 32]);
        let text =
            format!("p0 at many/union with p{culprit}: malformed message from the peer: a group element has");
        assert!(zero.starts_with(&text), "{zero}");
        // The point of order two added to another one: its u is the inverse, and products are equal.
        let twin = forged(culprit, |set| {
            let prime = (BigUint::from(1u8) << 255) - 19u8;
            let inverse = BigUint::from_bytes_le(&set[3]).modpow(&(&prime - 2u8), &prime).to_bytes_le();
            set[4] = std::array::from_fn(|i| inverse.get(i).copied().unwrap_or(0));
        });
        let text =
            format!("p0 at many/union with p{culprit}: the peer deviated from the protocol: its identifiers");
        assert!(twin.starts_with(&text), "{twin}");
    }
}
