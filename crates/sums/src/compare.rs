//! Comparison of one party's words with a word of the other, digit by digit.
//!
//! The bound is cut into digits of four bits (the top one takes what is left). Per digit one 1-of-16 OT gives
//! shares of `[digit of key > digit of bound]` and `[=]` for all keys at once; a tree joins digits pairwise:
//! (g, e) = (g_h + e_h g_l, e_h e_l). The lowest digit needs no equality, nor does any node that contains it.

use crate::schedule::{In, Leaf, PartyStep, ScheduleBuilder, ShareGate, WireKind};
use program::lower::Compare;
use std::collections::HashMap;

/// Bits of a digit: 2^4 leaves fill the bytes of one block.
pub const DIGIT: u8 = 4;

/// One digit, or a run of them: slots of greater, and of equal unless it holds the lowest digit; by key.
struct Node {
    greater: Vec<u32>,
    equal: Option<Vec<u32>>,
}

/// Which wires comparisons give, and which one first.
pub(super) fn comparisons(builder: &ScheduleBuilder<'_>) -> HashMap<usize, usize> {
    let mut cut = HashMap::new();
    for (at, compare) in builder.plan.compares.iter().enumerate() {
        let wires = compare.less.iter().map(|l| l.wire());
        for wire in wires.filter(|wire| builder.kinds[*wire] == WireKind::Shared) {
            cut.entry(wire).or_insert(at);
        }
    }
    cut
}

/// Schedules a comparison: slots of the results and the stage from which on they are there.
pub(super) fn schedule(builder: &mut ScheduleBuilder<'_>, compare: &Compare) -> (Vec<u32>, usize) {
    // Words that wait for temporaries are there from the same stage on at both parties, whoever computes
    // them.
    let words = compare.keys.iter().chain([&compare.bound]);
    let start = words.map(|word| builder.ready(*word)).max().unwrap_or(0);
    let own = if builder.me == compare.chooser { &[compare.bound][..] } else { &compare.keys };
    for word in own {
        builder.compute(*word);
    }
    let shifts = (0..compare.width).step_by(DIGIT.into());
    let mut nodes: Vec<Node> = shifts.map(|shift| digit(builder, compare, shift, start)).collect();
    let mut level = start + 1;
    while nodes.len() > 1 {
        let mut next = Vec::with_capacity(nodes.len().div_ceil(2));
        let mut rest = nodes.into_iter();
        while let Some(low) = rest.next() {
            next.push(match rest.next() {
                Some(high) => join(builder, low, high, level),
                None => low,
            });
        }
        nodes = next;
        level += 1;
    }
    let root = nodes.pop().expect("a word has a digit");
    (root.greater, level)
}

fn digit(builder: &mut ScheduleBuilder<'_>, compare: &Compare, shift: u8, round: usize) -> Node {
    let bits = DIGIT.min(compare.width - shift);
    let mut slots = || -> Vec<u32> { compare.keys.iter().map(|_| builder.slot()).collect() };
    let greater = slots();
    let equal = (shift > 0).then(slots);
    let choices = if builder.me == compare.chooser {
        (shift..shift + bits).map(|bit| builder.entered(compare.bound, bit.into())).collect()
    } else {
        Vec::new()
    };
    let leaf = Leaf {
        sender: compare.chooser.other(),
        bound: compare.bound,
        keys: compare.keys.clone(),
        shift,
        bits,
        cot: 0,
        choices,
        outs: greater.iter().chain(equal.iter().flatten()).copied().collect(),
    };
    builder.round(round).leaves.push(leaf);
    Node { greater, equal }
}

/// Joins two neighbours in a round; both are there from stage `round` on.
fn join(builder: &mut ScheduleBuilder<'_>, low: Node, high: Node, round: usize) -> Node {
    let plain = |slot: u32| In { slot, flip: false };
    let high_equal = high.equal.expect("only the lowest digit has no equality");
    let mut joined = Node { greater: Vec::new(), equal: low.equal.as_ref().map(|_| Vec::new()) };
    for (k, selector) in high_equal.into_iter().enumerate() {
        let (carried, greater) = (builder.slot(), builder.slot());
        let mut fields = vec![(plain(low.greater[k]), carried)];
        if let (Some(from), Some(to)) = (&low.equal, &mut joined.equal) {
            let equal = builder.slot();
            fields.push((plain(from[k]), equal));
            to.push(equal);
        }
        builder.push_cross(round, plain(selector), fields, [WireKind::Shared; 2]);
        let gate = ShareGate { out: greater, a: plain(high.greater[k]), b: plain(carried), and: false };
        builder.stage(round + 1).push(PartyStep::Gate(gate));
        joined.greater.push(greater);
    }
    joined
}
