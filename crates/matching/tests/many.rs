//! What a party of Private-ID among n says when another one sends garbage or deviates.

mod common;

use base::{ChannelError, Error, PartyId, Roster, Seed};
use common::{Column, ids};
use matching::{ManyId, MatchOptions, MatchOutcome, Matcher};
use net::cluster::Cluster;
use net::{Channel, InjectedFault, Session, pair};
use num_bigint::BigUint;
use std::time::Duration;

fn play(cluster: &Cluster, lists: &[Vec<String>]) -> Vec<Result<MatchOutcome, Error>> {
    let columns: Vec<Column> = lists.iter().map(|list| Column::new(list)).collect();
    let options = MatchOptions { threads: 1, ..MatchOptions::default() };
    cluster.run(|s| ManyId.run(s, &columns[s.me().index()].flat(), None, &options))
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
            for fault in [InjectedFault::Truncate, InjectedFault::Corrupt { byte: 3, mask: 0x55 }] {
                let cluster = Cluster::new(3, 1).deadline(Duration::from_millis(600)).fault(
                    PartyId(culprit),
                    format!("many/{step}"),
                    fault,
                );
                // Another element is another identifier, as good as any: a secure channel keeps these whole.
                if matches!((step, fault), ("ring" | "e" | "union", InjectedFault::Corrupt { .. })) {
                    continue;
                }
                let done = play(&cluster, &lists);
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
        let error = play(&cluster, &lists).into_iter().nth(victim.into()).unwrap().unwrap_err();
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
        ManyId.run(&mut session, &Column::new(&lists[me]).flat(), None, &MatchOptions::default()).err()
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
