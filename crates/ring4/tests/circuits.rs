//! Stand-alone circuits between owners and servers.

use accel::Queue;
use base::PartyId;
use engine::conformance::circuits::check_served;
use ring4::{Hash, Ring4, Security, Settings};

fn check(security: Security, parties: usize, seats: [u8; 4], servers: usize) {
    let settings = Settings { security, hash: Hash::Keyed, masked: true };
    // Some circuits have more lanes than a block.
    let engine = || Ring4::new(settings, seats.map(PartyId), || Ok(Queue::default())).with_chunk(256);
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
