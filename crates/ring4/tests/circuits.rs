//! Stand-alone circuits between owners and servers.

use accel::DeviceQueue;
use base::PartyId;
use circuits::{CircuitBuilder, InputBit};
use circuits::{InputWord, OutputWord, Viewers, Wired};
use engine::CircuitEngine;
use engine::conformance::circuit_suite::check_served;
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ring4::{Ring4, Security, Settings, TagHash};

fn check(security: Security, parties: usize, seats: [u8; 4], servers: usize) {
    let settings = Settings { security, hash: TagHash::Keyed, masked: true };
    // Some circuits have more lanes than a block.
    let engine = || Ring4::new(settings, seats.map(PartyId), || Ok(DeviceQueue::default())).with_chunk(256);
    check_served(&|_| Ok(Box::new(engine())), parties, servers).unwrap();
}

#[test]
fn two_owners_and_four_servers() {
    check(Security::SemiHonest, 2, [2, 3, 4, 5], 4);
    check(Security::Malicious, 2, [2, 3, 4, 5], 4);
}

#[test]
fn four_parties_are_the_servers() {
    check(Security::SemiHonest, 4, [0, 1, 2, 3], 0);
    check(Security::Malicious, 4, [2, 0, 3, 1], 0);
}

#[test]
fn five_owners_one_of_them_a_server() {
    check(Security::Malicious, 5, [5, 6, 2, 7], 3);
}

/// One AND of a bit of each of two owners, in three blocks; whether it ends well, and what each participant
/// sent.
fn in_blocks(fault: Option<InjectedFault>) -> Vec<(bool, u64)> {
    let mut g = CircuitBuilder::default();
    let [a, b] = [0, 1].map(|i| g.input(InputBit { owner: Some(PartyId(i)), word: i.into(), bit: 0 }));
    let both = g.and_gate(a, b);
    let inputs = [0, 1].map(|i| InputWord { owner: PartyId(i), width: 1 }).to_vec();
    let output = OutputWord { bits: vec![both], to: Viewers::Everyone };
    let wired = Wired { circuit: g.finish(), inputs, outputs: vec![output], parties: 2 };
    let mut cluster = Cluster::new(6, 9).deadline(std::time::Duration::from_secs(20));
    if let Some(fault) = fault {
        cluster = cluster.fault(PartyId(3), "circuit/reveal", fault);
    }
    let ended = cluster.run(|s| {
        let settings = Settings { security: Security::Malicious, hash: TagHash::Keyed, masked: true };
        let seats = [2, 3, 4, 5].map(PartyId);
        let engine = Ring4::new(settings, seats, || Ok(DeviceQueue::default())).with_chunk(256);
        let mine = |i: usize| if s.me().index() == i { vec![vec![0x5a5a; 10]] } else { Vec::new() };
        let words = [mine(0), mine(1)];
        let done = engine.circuit(&wired)?.run(640, &words, s);
        Ok((done.is_ok(), s.traffic().sent("circuit")))
    });
    ended.into_iter().map(|e| e.unwrap_or((false, 0))).collect()
}

#[test]
fn owners_enter_all_lanes_before_an_output_of_any_is_revealed() {
    let whole = in_blocks(None);
    assert!(whole.iter().all(|(done, sent)| *done && *sent > 0), "{whole:?}");
    // Broken at the first message that reveals: the owners have sent all that they ever send.
    let broken = in_blocks(Some(InjectedFault::Cut));
    assert!(!broken[0].0 && !broken[1].0, "{broken:?}");
    assert_eq!([broken[0].1, broken[1].1], [whole[0].1, whole[1].1]);
}
