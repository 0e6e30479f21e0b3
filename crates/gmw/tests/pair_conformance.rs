//! Rows of two parties mean what the conformance suite says, and cost what they say.

mod pairs;

use ot::OtKind;
use pairs::Pairs;

fn check(kind: OtKind, lanes: usize) {
    engine::conformance::check(&|_| Ok(Box::new(Pairs::new(kind, lanes)))).unwrap();
}

#[test]
fn the_suite_passes() {
    check(OtKind::default(), gmw::pair::LANES);
}

#[test]
fn the_suite_passes_at_other_parameters() {
    check(OtKind::SoftSpoken { k: 1 }, 64);
    check(OtKind::SoftSpoken { k: 8 }, 192);
}
