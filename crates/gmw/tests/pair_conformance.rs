//! Sums between two parties mean what the conformance suite says at other parameters than the usual ones.

use gmw::Gmw;
use ot::OtKind;

fn check(kind: OtKind, lanes: usize) {
    engine::conformance::check(&|_| Ok(Box::new(Gmw::new(kind).with_lanes(lanes)))).unwrap();
}

#[test]
fn small_batches() {
    check(OtKind::SoftSpoken { k: 1 }, 64);
}

#[test]
fn large_blocks_of_delta() {
    check(OtKind::SoftSpoken { k: 8 }, 192);
}

#[test]
fn silent() {
    check(OtKind::Ferret, 1024);
}
