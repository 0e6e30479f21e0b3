//! The yao engine means what the conformance suite says, and costs what it says.

use yao::Yao;

#[test]
fn yao_passes_the_suite() {
    engine::conformance::check(&|_| Ok(Box::new(Yao::default()))).unwrap();
}

#[test]
fn yao_passes_the_suite_at_other_parameters() {
    for (k, lanes) in [(1, 64), (4, 1024), (8, 128)] {
        engine::conformance::check(&|_| Ok(Box::new(Yao::new(k).with_lanes(lanes)))).unwrap();
    }
}

#[test]
fn one_honest_party_makes_the_noise() {
    engine::conformance::check_law(2, 0, &|_| Ok(Box::new(Yao::default()))).unwrap();
}
