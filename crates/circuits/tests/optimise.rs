//! The optimiser: same function, never larger, and what each rule is there for.

mod common;

use circuits::optimise::optimise;
use circuits::standard;
use circuits::{CircuitBuilder, InputBit, Lit};
use circuits::{InputWord, OutputWord, Viewers, Wired};
use common::{lanes, recipe};
use proptest::prelude::*;

fn sizes(wired: &Wired) -> (usize, usize) {
    (wired.and_gates(), wired.depth())
}

/// Optimises and compares on 64 random lanes.
fn checked(wired: &Wired, seed: u64) -> Wired {
    let small = optimise(wired);
    small.check().unwrap();
    let inputs = lanes(wired, seed);
    assert_eq!(wired.evaluate_lanes(&inputs), small.evaluate_lanes(&inputs));
    assert!(small.and_gates() <= wired.and_gates() && small.depth() <= wired.depth());
    small
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_function_stays_and_nothing_grows(recipe in recipe(), seed in any::<u64>()) {
        let wired = recipe.build();
        let small = checked(&wired, seed);
        // It is done: another run finds nothing, and always the same.
        prop_assert_eq!(sizes(&optimise(&small)), sizes(&small));
        prop_assert_eq!(optimise(&wired), small);
    }
}

#[test]
fn standard_circuits_stay_right() {
    for circuit in standard::ALL {
        let wired = (circuit.build)();
        let small = checked(&wired, 3);
        assert!(small.xor_gates() <= wired.xor_gates(), "{}", circuit.name);
    }
}

/// A circuit of four bits and one output.
fn of(build: impl Fn(&mut CircuitBuilder, [Lit; 4]) -> Lit) -> Wired {
    let mut g = CircuitBuilder::default();
    let owner = base::PartyId(0);
    let x = [0, 1, 2, 3].map(|bit| g.input(InputBit { owner: Some(owner), word: 0, bit }));
    let outputs = vec![OutputWord { to: Viewers::Everyone, bits: vec![build(&mut g, x)] }];
    Wired { circuit: g.finish(), inputs: vec![InputWord { owner, width: 4 }], outputs, parties: 1 }
}

#[test]
fn every_rule_saves_what_it_says() {
    let rules: [(&str, Wired, (usize, usize)); 12] = [
        ("constants fold", of(|g, [a, ..]| g.and_gate(Lit::TRUE, a)), (0, 0)),
        ("equal operands", of(|g, [a, ..]| g.and_gate(a, a)), (0, 0)),
        ("complements", of(|g, [a, ..]| g.and_gate(a, !a)), (0, 0)),
        (
            "equal gates",
            of(|g, [a, b, c, _]| {
                let (x, y) = (g.and_gate(a, b), g.and_gate(b, a));
                let y = g.and_gate(y, c);
                g.xor(x, y)
            }),
            // x y + (x y) c: a product and one more.
            (2, 2),
        ),
        (
            "sums in another order",
            of(|g, [a, b, c, d]| {
                let (ab, bc) = (g.xor(a, b), g.xor(b, c));
                let (left, right) = (g.xor(ab, c), g.xor(a, bc));
                let (x, y) = (g.and_gate(left, d), g.and_gate(right, d));
                g.and_gate(x, y)
            }),
            (1, 1),
        ),
        (
            "other polarities",
            of(|g, [a, b, c, _]| {
                let (x, y) = (g.and_gate(a, b), g.and_gate(!a, !b));
                let z = g.xor(x, c);
                g.xor(z, y)
            }),
            // x y + (1 + x) (1 + y) = 1 + x + y.
            (0, 0),
        ),
        (
            "absorption",
            of(|g, [a, b, ..]| {
                let x = g.and_gate(a, b);
                g.and_gate(a, !x)
            }),
            (1, 1),
        ),
        (
            "a multiplexer of ANDs and an OR",
            of(|g, [a, b, c, _]| {
                let (x, y) = (g.and_gate(a, b), g.and_gate(!a, c));
                !g.and_gate(!x, !y)
            }),
            (1, 1),
        ),
        (
            "a common factor",
            of(|g, [a, b, c, _]| {
                let (x, y) = (g.and_gate(a, b), g.and_gate(a, c));
                g.xor(x, y)
            }),
            (1, 1),
        ),
        (
            "a common factor far apart",
            of(|g, [a, b, c, d]| {
                let (x, y, z) = (g.and_gate(a, b), g.and_gate(c, b), g.and_gate(d, !b));
                let (s, t) = (g.xor(x, a), g.xor(y, d));
                let u = g.xor(s, z);
                g.xor(u, t)
            }),
            (1, 1),
        ),
        ("double negation", of(|g, [a, b, ..]| !g.and_gate(!!a, b)), (1, 1)),
        (
            "what nobody needs",
            of(|g, [a, b, c, _]| {
                g.and_gate(a, b);
                c
            }),
            (0, 0),
        ),
    ];
    for (rule, wired, expected) in rules {
        assert_eq!(sizes(&checked(&wired, 11)), expected, "{rule}");
    }
}
