//! The SHA-256 compression function. Choice and majority take one AND per bit; sums of several words go
//! through `gadgets::sum`.

use crate::gadgets::{self as gadget, LitWord};
use crate::{CircuitBuilder, Lit};

/// Fractional bits of the cube roots of the first 64 primes.
fn constants() -> [u32; 64] {
    let is_prime = |n: &u128| (2..*n).take_while(|d| d * d <= *n).all(|d| !n.is_multiple_of(d));
    let mut primes = (2u128..).filter(is_prime);
    std::array::from_fn(|_| {
        let prime = primes.next().expect("primes do not end");
        // The largest r with r^3 <= prime * 2^96: its low 32 bits are the fraction.
        let target = prime << 96;
        let root = (0..36).rev().fold(0u128, |r, bit| {
            let next = r | 1 << bit;
            if next.pow(3) <= target { next } else { r }
        });
        root as u32
    })
}

fn rotate(x: &[Lit], by: usize) -> LitWord {
    let mut word = x.to_vec();
    word.rotate_left(by);
    word
}

fn shift(x: &[Lit], by: usize) -> LitWord {
    let mut word = x[by..].to_vec();
    word.resize(x.len(), Lit::FALSE);
    word
}

fn xor3(g: &mut CircuitBuilder, words: [LitWord; 3]) -> LitWord {
    let bit = |i: usize| {
        let two = g.xor(words[0][i], words[1][i]);
        g.xor(two, words[2][i])
    };
    (0..32).map(bit).collect()
}

/// The sum of three rotations.
fn rotations(g: &mut CircuitBuilder, x: &[Lit], by: [usize; 3]) -> LitWord {
    xor3(g, by.map(|by| rotate(x, by)))
}

/// `(x & y) ^ (x & z) ^ (y & z)`.
fn majority(g: &mut CircuitBuilder, x: &[Lit], y: &[Lit], z: &[Lit]) -> LitWord {
    let bit = |i: usize| {
        let (xy, yz) = (g.xor(x[i], y[i]), g.xor(y[i], z[i]));
        let both = g.and(xy, yz);
        g.xor(both, y[i])
    };
    (0..32).map(bit).collect()
}

/// Words in the order of the standard; bits of a word least significant first.
fn words(value: &[Lit]) -> Vec<LitWord> {
    value.chunks(32).rev().map(<[Lit]>::to_vec).collect()
}

/// The next state of a block (512 bits) and a state (256 bits).
pub(super) fn compress(g: &mut CircuitBuilder, block: &[Lit], state: &[Lit]) -> LitWord {
    let mut schedule = words(block);
    for t in 16..64 {
        let (old, recent) = (&schedule[t - 15], &schedule[t - 2]);
        let small0 = xor3(g, [rotate(old, 7), rotate(old, 18), shift(old, 3)]);
        let small1 = xor3(g, [rotate(recent, 17), rotate(recent, 19), shift(recent, 10)]);
        let next = gadget::sum(g, &[schedule[t - 16].clone(), schedule[t - 7].clone(), small0, small1]);
        schedule.push(next);
    }
    let before = words(state);
    let mut s = before.clone();
    for (word, constant) in schedule.iter().zip(constants()) {
        let constant = gadget::constant(constant.into(), 32);
        let big1 = rotations(g, &s[4], [6, 11, 25]);
        let choice: LitWord = (0..32).map(|i| g.mux(s[4][i], s[5][i], s[6][i])).collect();
        let first = gadget::sum(g, &[constant, word.clone(), s[7].clone(), choice, big1]);
        let big0 = rotations(g, &s[0], [2, 13, 22]);
        let major = majority(g, &s[0], &s[1], &s[2]);
        let a = gadget::sum(g, &[first.clone(), big0, major]);
        s.rotate_right(1);
        s[4] = gadget::add(g, &s[4].clone(), &first);
        s[0] = a;
    }
    let next = s.iter().zip(&before).map(|(s, b)| gadget::add(g, s, b));
    next.collect::<Vec<LitWord>>().into_iter().rev().flatten().collect()
}
