//! Every program of the conformance suites, between owners and servers: what it means, who holds what, and
//! what it costs, byte for byte and turn for turn.

use accel::DeviceQueue;
use base::PartyId;
use engine::conformance::{check_among_served, check_served};
use program::lower::combine::SelectionCircuit;
use ring4::{Ring4, Security, Settings, TagHash};

const SEMI_HONEST: Settings =
    Settings { security: Security::SemiHonest, hash: TagHash::Keyed, masked: false };
const MALICIOUS: Settings = Settings { security: Security::Malicious, hash: TagHash::Keyed, masked: true };

fn ring4(settings: Settings, seats: [u8; 4]) -> Ring4 {
    // Small chunks, so that rows come in several.
    Ring4::new(settings, seats.map(PartyId), || Ok(DeviceQueue::default())).with_chunk(512)
}

/// Programs between two parties, with so many servers that are neither.
fn pair(settings: Settings, seats: [u8; 4], servers: usize) {
    check_served(servers, &|_| Ok(Box::new(ring4(settings, seats)))).unwrap();
}

/// Programs of any number of parties.
fn among(settings: Settings, parties: usize, seats: [u8; 4], servers: usize, shape: SelectionCircuit) {
    let make = |_: &mut _| -> Result<Box<dyn engine::Engine>, base::Error> {
        Ok(Box::new(ring4(settings, seats).with_shape(shape)))
    };
    check_among_served(parties, servers, &make).unwrap();
}

#[test]
fn two_owners_and_four_servers_semi_honest() {
    pair(SEMI_HONEST, [2, 3, 4, 5], 4);
}

#[test]
fn two_owners_and_four_servers_malicious() {
    pair(MALICIOUS, [2, 3, 4, 5], 4);
}

#[test]
fn owners_may_be_servers() {
    pair(MALICIOUS, [2, 1, 3, 0], 2);
    among(MALICIOUS, 3, [5, 1, 3, 4], 3, SelectionCircuit::Small);
}

#[test]
fn four_parties_are_the_servers() {
    among(SEMI_HONEST, 4, [0, 1, 2, 3], 0, SelectionCircuit::Small);
    among(MALICIOUS, 4, [3, 1, 0, 2], 0, SelectionCircuit::Small);
}

#[test]
fn two_owners() {
    among(MALICIOUS, 2, [2, 3, 4, 5], 4, SelectionCircuit::Small);
}

#[test]
fn three_owners_with_other_circuits() {
    among(SEMI_HONEST, 3, [3, 4, 5, 6], 4, SelectionCircuit::Shallow);
    among(MALICIOUS, 3, [3, 4, 5, 6], 4, SelectionCircuit::Shallow);
}

#[test]
fn many_owners() {
    among(MALICIOUS, 5, [5, 6, 7, 8], 4, SelectionCircuit::Small);
    among(SEMI_HONEST, 9, [9, 10, 11, 12], 4, SelectionCircuit::Small);
}

#[test]
#[ignore = "20,400 draws take a minute: make soak"]
fn one_honest_summand_makes_the_noise() {
    engine::conformance::check_law(2, 4, &|_| Ok(Box::new(ring4(MALICIOUS, [2, 3, 4, 5])))).unwrap();
}
