//! What is said over the wire does not change unnoticed.

use accel::DeviceQueue;
use base::PartyId;
use engine::conformance::{self, circuit_suite};
use net::cluster::{Cluster, pinned};
use ring4::{Ring4, Security, Settings, TagHash};

/// Two owners come first.
fn ring4(security: Security) -> Ring4 {
    let settings = Settings { security, hash: TagHash::Keyed, masked: security == Security::Malicious };
    Ring4::new(settings, [2, 3, 4, 5].map(PartyId), || Ok(DeviceQueue::default())).with_chunk(512)
}

#[test]
fn the_wire_is_pinned() {
    let noised = conformance::case(2, "joint among 2");
    let of = |security, steps: fn(&str) -> bool| {
        let half = |s: &mut _| conformance::half(&|_| Ok(Box::new(ring4(security))), &noised, s);
        Cluster::new(6, 9).wire_where(steps, half)
    };
    let adder = circuit_suite::case(2, "a + b");
    let circuit = |security| {
        let half = |s: &mut _| circuit_suite::half(&|_| Ok(Box::new(ring4(security))), &adder, s);
        Cluster::new(6, 9).wire(half)
    };
    let (rows, release) = (|step: &str| step.starts_with("rows"), |step: &str| !step.starts_with("rows"));
    pinned(&[
        ("ring4, rows, semi-honest", of(Security::SemiHonest, rows), "fdd94ab2c70ba099"),
        ("ring4, rows, malicious", of(Security::Malicious, rows), "c2d56780c2f39ac7"),
        ("ring4, release, semi-honest", of(Security::SemiHonest, release), "d38260dc3ebabe8d"),
        ("ring4, release, malicious", of(Security::Malicious, release), "38a8f1a2a6e49c52"),
        ("ring4, circuits, semi-honest", circuit(Security::SemiHonest), "4b6c2701d2f158b8"),
        ("ring4, circuits, malicious", circuit(Security::Malicious), "03e965ec2e6471c0"),
    ]);
}
