//! The engine means what the conformance suites say, and costs what it says.

use gmw::Gmw;
use ot::OtKind;
use program::lower::combine::SelectionCircuit;

fn among(parties: usize, shape: SelectionCircuit) {
    let kind = OtKind::default();
    engine::conformance::check_among(parties, &|_| Ok(Box::new(Gmw::new(kind).with_shape(shape)))).unwrap();
}

#[test]
fn two_parties_and_sums() {
    engine::conformance::check(&|_| Ok(Box::new(Gmw::default()))).unwrap();
}

#[test]
fn two_parties() {
    among(2, SelectionCircuit::Small);
}

#[test]
fn three_parties() {
    among(3, SelectionCircuit::Small);
}

#[test]
fn three_parties_with_shallow_circuits() {
    among(3, SelectionCircuit::Shallow);
}

#[test]
fn five_parties() {
    among(5, SelectionCircuit::Small);
}

#[test]
fn thirteen_parties() {
    among(13, SelectionCircuit::Small);
}

#[test]
fn one_honest_party_makes_the_noise() {
    for parties in [2, 3, 5] {
        engine::conformance::check_law(parties, 0, &|_| Ok(Box::new(Gmw::default()))).unwrap();
    }
}
