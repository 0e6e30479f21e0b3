//! AND gates of every gadget, pinned: these figures are the price of a program.

use program::circuit::{Gates, Input, Lit};
use program::gadgets as gadget;

fn input(g: &mut Gates, word: u32, width: usize) -> Vec<Lit> {
    (0..width).map(|bit| g.input(Input { owner: None, word, bit: bit as u16 })).collect()
}

/// AND gates of a gadget on two words of `width` bits.
fn ands(width: usize, build: impl FnOnce(&mut Gates, &[Lit], &[Lit])) -> usize {
    let mut g = Gates::default();
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
        let select = |g: &mut Gates, a: &[Lit], b: &[Lit]| {
            let c = g.input(Input { owner: None, word: 9, bit: 0 });
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
    let mut g = Gates::default();
    let a = input(&mut g, 0, 16);
    let (zero, one) = (gadget::constant(0, 16), gadget::constant(1, 16));
    assert_eq!(gadget::add(&mut g, &a, &zero), a);
    assert_eq!(gadget::mul(&mut g, &a, &one), a);
    assert_eq!(gadget::mul(&mut g, &a, &zero), zero);
    assert_eq!(gadget::select(&mut g, Lit::TRUE, &a, &zero), a);
    assert_eq!(g.finish().and_gates(), 0);
}
