//! Half-gates (Zahur, Rosulek, Evans, ePrint 2014/756) over many lanes at once: lane i is the same gate of
//! row i.
//!
//! Functionality: the garbler makes, per lane, the label of 0 of the result and a table; the evaluator, who
//! holds one label of each operand, gets the label of the result and learns nothing else. Security:
//! semi-honest evaluator, with the multi-instance-secure hash of [`TweakedHash`]; lanes share tweaks, which
//! costs a factor of their number in the bound. Cost: two blocks per lane and four hashes to garble, two to
//! evaluate; one block and half of that where one side knows an operand.
//!
//! Labels: a wire has the label W0 for 0 and W1 = W0 xor Delta for 1; the colour is bit 0 and bit 0 of
//! Delta is set, so the two colours differ. The garbler's colour of W0 is the wire's permute bit. All lanes
//! of a call share the tweaks; under one Delta a tweak is never used again.

use crate::backend::by_backend;
use crate::{Block, TweakedHash};

fn check(lanes: usize, others: &[usize], table: usize, per_lane: usize) {
    assert!(others.iter().all(|&n| n == lanes), "one label per lane in every operand");
    assert_eq!(table, lanes * per_lane, "{per_lane} ciphertexts per lane");
}

fn check_bits(lanes: usize, bits: &[u64]) {
    assert!(bits.len() * 64 >= lanes, "one bit per lane");
}

/// Garbles `a AND b` in every lane. `a`, `b`: labels of 0; `out`: label of 0 of the result; `table`: two
/// blocks per lane, TG at `2 i`, TE at `2 i + 1`. `t0` and `t1` are the tweaks of the garbler's and the
/// evaluator's half.
///
/// TG = H(A0) + H(A1) + p_b Delta, TE = H(B0) + H(B1) + A0, C0 = H(A0) + p_a TG + H(B0) + p_b (TE + A0).
///
/// # Panics
/// When lengths do not fit or bit 0 of `delta` is clear.
#[allow(clippy::too_many_arguments, reason = "the operands of the gate, by their names in the paper")]
pub fn garble_and(
    hash: &TweakedHash,
    t0: Block,
    t1: Block,
    delta: Block,
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    check(a.len(), &[b.len(), out.len()], table.len(), 2);
    assert!(delta.lsb(), "the colour bit of Delta is set");
    let keys = [hash.keys(t0), hash.keys(t1)];
    by_backend!(hash.backend, garble_and(&keys, delta, a, b, out, table))
}

/// Evaluates `a AND b` in every lane from the labels held and the table of [`garble_and`].
///
/// C = H(A) + s_a TG + H(B) + s_b (TE + A).
///
/// # Panics
/// When lengths do not fit.
pub fn eval_and(
    hash: &TweakedHash,
    t0: Block,
    t1: Block,
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    table: &[Block],
) {
    check(a.len(), &[b.len(), out.len()], table.len(), 2);
    let keys = [hash.keys(t0), hash.keys(t1)];
    by_backend!(hash.backend, eval_and(&keys, a, b, out, table))
}

/// Garbles `a AND b` where the garbler knows `a` in the clear (bit i of `a_bits` is lane i): one block per
/// lane.
///
/// T = H(B0) + H(B1) + a Delta, C0 = H(B0) + p_b T.
///
/// # Panics
/// When lengths do not fit or bit 0 of `delta` is clear.
pub fn garble_and_garbler_known(
    hash: &TweakedHash,
    tweak: Block,
    delta: Block,
    a_bits: &[u64],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    check(b.len(), &[out.len()], table.len(), 1);
    check_bits(b.len(), a_bits);
    assert!(delta.lsb(), "the colour bit of Delta is set");
    let keys = hash.keys(tweak);
    by_backend!(hash.backend, garble_garbler_known(&keys, delta, a_bits, b, out, table))
}

/// Evaluates the gate of [`garble_and_garbler_known`]: C = H(B) + s_b T.
///
/// # Panics
/// When lengths do not fit.
pub fn eval_and_garbler_known(
    hash: &TweakedHash,
    tweak: Block,
    b: &[Block],
    out: &mut [Block],
    table: &[Block],
) {
    check(b.len(), &[out.len()], table.len(), 1);
    let keys = hash.keys(tweak);
    by_backend!(hash.backend, eval_garbler_known(&keys, b, out, table))
}

/// Garbles `a AND b` where the evaluator knows `a` in the clear; `a` holds the labels of 0 of the wire it
/// knows. One block per lane.
///
/// T = H(A0) + H(A1) + B0, C0 = H(A0).
///
/// # Panics
/// When lengths do not fit or bit 0 of `delta` is clear.
pub fn garble_and_evaluator_known(
    hash: &TweakedHash,
    tweak: Block,
    delta: Block,
    a: &[Block],
    b: &[Block],
    out: &mut [Block],
    table: &mut [Block],
) {
    check(a.len(), &[b.len(), out.len()], table.len(), 1);
    assert!(delta.lsb(), "the colour bit of Delta is set");
    let keys = hash.keys(tweak);
    by_backend!(hash.backend, garble_evaluator_known(&keys, delta, a, b, out, table))
}

/// Evaluates the gate of [`garble_and_evaluator_known`]; `a` holds the evaluator's labels, bit i of
/// `a_bits` their clear value: C = H(A) + a (T + B).
///
/// # Panics
/// When lengths do not fit.
pub fn eval_and_evaluator_known(
    hash: &TweakedHash,
    tweak: Block,
    a: &[Block],
    a_bits: &[u64],
    b: &[Block],
    out: &mut [Block],
    table: &[Block],
) {
    check(a.len(), &[b.len(), out.len()], table.len(), 1);
    check_bits(a.len(), a_bits);
    let keys = hash.keys(tweak);
    by_backend!(hash.backend, eval_evaluator_known(&keys, a, a_bits, b, out, table))
}
