//! AND gates of every gadget, pinned: these figures are the price of a program.

use circuits::gadgets as gadget;
use circuits::{CircuitBuilder, InputBit, Lit};

fn input(g: &mut CircuitBuilder, word: u32, width: usize) -> Vec<Lit> {
    (0..width).map(|bit| g.input(InputBit { owner: None, word, bit: bit as u16 })).collect()
}

/// AND gates of a gadget on two words of `width` bits.
fn ands(width: usize, build: impl FnOnce(&mut CircuitBuilder, &[Lit], &[Lit])) -> usize {
    let mut g = CircuitBuilder::default();
    let (a, b) = (input(&mut g, 0, width), input(&mut g, 1, width));
    build(&mut g, &a, &b);
    g.finish().and_gates()
}

#[test]
fn one_and_gate_per_bit() {
    for w in [1, 2, 7, 32, 64, 128] {
        assert_eq!(ands(w, |g, a, b| drop(gadget::add(g, a, b))), w - 1, "add {w}");
        assert_eq!(ands(w, |g, a, b| drop(gadget::sub(g, a, b))), w - 1, "sub {w}");
        assert_eq!(
            ands(w, |g, a, b| {
                gadget::less(g, a, b, false);
            }),
            w,
            "less {w}"
        );
        assert_eq!(
            ands(w, |g, a, b| {
                gadget::less(g, a, b, true);
            }),
            w,
            "signed less {w}"
        );
        assert_eq!(
            ands(w, |g, a, b| {
                gadget::equal(g, a, b);
            }),
            w - 1,
            "equal {w}"
        );
        assert_eq!(ands(w, |g, a, b| drop(gadget::mask(g, a[0], b))), w, "mask {w}");
        let select = |g: &mut CircuitBuilder, a: &[Lit], b: &[Lit]| {
            let c = g.input(InputBit { owner: None, word: 9, bit: 0 });
            gadget::select(g, c, a, b);
        };
        assert_eq!(ands(w, select), w, "select {w}");
    }
}

#[test]
fn larger_gadgets_cost_what_they_did() {
    for (w, mul, div, isqrt, popcount) in [(4, 13, 17, 10, 3), (8, 57, 61, 33, 7), (32, 993, 829, 423, 31)] {
        let counts = [
            ands(w, |g, a, b| drop(gadget::mul(g, a, b))),
            ands(w, |g, a, b| drop(gadget::div(g, a, b))),
            ands(w, |g, a, _| drop(gadget::isqrt(g, a))),
            ands(w, |g, a, _| drop(gadget::popcount(g, a, 8))),
        ];
        assert_eq!(counts, [mul, div, isqrt, popcount], "{w}");
    }
}

#[test]
fn constants_are_free() {
    let mut g = CircuitBuilder::default();
    let a = input(&mut g, 0, 16);
    let (zero, one) = (gadget::constant(0, 16), gadget::constant(1, 16));
    assert_eq!(gadget::add(&mut g, &a, &zero), a);
    assert_eq!(gadget::mul(&mut g, &a, &one), a);
    assert_eq!(gadget::mul(&mut g, &a, &zero), zero);
    assert_eq!(gadget::select(&mut g, Lit::TRUE, &a, &zero), a);
    assert_eq!(g.finish().and_gates(), 0);
}

/// Shallow adders are right on every input of few bits, at every carry, and as shallow as they say.
#[test]
fn shallow_sums_are_sums() {
    for width in 1..=5usize {
        let mut g = CircuitBuilder::default();
        let bit = |g: &mut CircuitBuilder, word, bit| g.input(InputBit { owner: None, word, bit });
        let words: Vec<Vec<Lit>> =
            (0..4).map(|w| (0..width as u16).map(|b| bit(&mut g, w, b)).collect()).collect();
        let carry = bit(&mut g, 4, 0);
        let two = gadget::add_shallow(&mut g, &words[0], &words[1], carry);
        let four = gadget::sum_shallow(&mut g, words.clone());
        let circuit = g.finish();
        let mask = (1u32 << width) - 1;
        for case in 0..1u32 << (2 * width + 1) {
            let value = |word: u32| match word {
                0 => case & mask,
                1 => case >> width & mask,
                2 => case.wrapping_mul(0x9e37_79b9) >> 7 & mask,
                3 => case.wrapping_mul(0x85eb_ca6b) >> 11 & mask,
                _ => case >> (2 * width) & 1,
            };
            let wires = circuit.evaluate(|i| value(i.word) >> i.bit & 1 == 1);
            let read = |lits: &[Lit]| {
                lits.iter()
                    .enumerate()
                    .fold(0, |v, (i, l)| v | u32::from(wires[l.wire()] ^ l.inverted()) << i)
            };
            assert_eq!(read(&two), (value(0) + value(1) + value(4)) & mask);
            assert_eq!(read(&four), (0..4).map(value).sum::<u32>() & mask);
        }
    }
    for (width, depth) in [(8, 4), (40, 7), (64, 7), (128, 8)] {
        let mut g = CircuitBuilder::default();
        let word = |g: &mut CircuitBuilder, word| -> Vec<Lit> {
            (0..width).map(|bit| g.input(InputBit { owner: None, word, bit })).collect()
        };
        let (a, b) = (word(&mut g, 0), word(&mut g, 1));
        gadget::add_shallow(&mut g, &a, &b, Lit::FALSE);
        assert!(g.finish().and_depth() <= depth, "{width}");
    }
}
