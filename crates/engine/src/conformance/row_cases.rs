//! Cases about the row section: every operation, and the ways a row becomes additive shares.

use super::ProgramCase;
use super::draft::{Col, Draft, extend, wrap};
use super::operations::operations;
use program::{Class, Lookup, NodeId, ValueType};

pub(super) fn all(seed: u64) -> Vec<ProgramCase> {
    let mut cases = Vec::new();
    for (ty, rows) in [
        (ValueType::BIT, 300),
        (ValueType::u(5), 1000),
        (ValueType::u(16), 4097),
        (ValueType::u(33), 90),
        (ValueType::u(64), 20),
        (ValueType::u(128), 6),
        (ValueType::i(2), 300),
        (ValueType::i(16), 1000),
        (ValueType::i(64), 20),
        (ValueType::i(128), 6),
    ] {
        cases.push(every_operation(seed, ty, rows));
    }
    for rows in [0, 1, 2, 1000, 4097] {
        cases.push(owners(seed, rows));
        cases.push(masks(seed, rows));
        cases.push(lookups(seed, rows));
        cases.push(linear(seed, rows));
        cases.push(corners(seed, rows));
        cases.push(present(seed, rows));
    }
    cases.push(ProgramCase { split: Some(1001), ..masks(seed ^ 1, 4099) });
    cases.push(ProgramCase { split: Some(0), ..lookups(seed ^ 1, 5) });
    cases
}

/// A sum's type with room for any number of rows of `ty`, where 128 bits have it.
fn sum_type(ty: ValueType) -> ValueType {
    let width = ty.width.saturating_add(40).min(128);
    if ty.signed { ValueType::i(width) } else { ValueType::u(width) }
}

/// Each operation on one value of each party, summed.
fn every_operation(seed: u64, ty: ValueType, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("every operation on {ty}, {rows} rows"), Class::Exact, rows, seed);
    let (x, y) = (d.column(ty, Some(0)), d.column(ty, Some(1)));
    for op in operations(ty) {
        let node = (op.build)(&mut d.b, x.node, y.node);
        d.sum(node, sum_type(op.ty), |row| extend((op.meaning)(x.at(row), y.at(row)), op.ty));
    }
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

/// The same few operations on every pair of owners, public columns among them.
fn owners(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("owners, {rows} rows"), Class::Exact, rows, seed);
    let ty = ValueType::u(9);
    let holders = [None, Some(0), Some(1)];
    let left: Vec<Col> = holders.iter().map(|o| d.column(ty, *o)).collect();
    let right: Vec<Col> = holders.iter().map(|o| d.column(ty, *o)).collect();
    for x in &left {
        for y in &right {
            let (product, less) = (d.b.mul(x.node, y.node), d.b.lt(x.node, y.node));
            d.sum(product, ValueType::u(50), |r| wrap(x.at(r).wrapping_mul(y.at(r)), ty));
            d.sum(less, ValueType::u(45), |r| u128::from(x.at(r) < y.at(r)));
        }
    }
    // A fold that wraps means its type's modulus, whatever `verify` says of it.
    let both = d.b.xor(left[1].node, right[2].node);
    d.sum(both, ty, |r| left[1].at(r) ^ right[2].at(r));
    // Constants alone; a fold of no column at all.
    let seven = d.b.constant(7, ty);
    d.sum(seven, ValueType::u(30), |_| 7);
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

/// Rows that a party does not have: counts and sums over those that both have, and over those of one alone.
fn present(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("present, {rows} rows"), Class::Exact, rows, seed);
    let (x, y) = (d.column(ValueType::u(12), Some(0)), d.column(ValueType::u(12), Some(1)));
    let here = [d.present(0), d.present(1)];
    let matched = d.b.matched();
    let has = |r: usize, party: usize| here[party].at(r) == 1;
    let both = |r: usize| has(r, 0) && has(r, 1);
    for (value, of) in [(&x, [0, 1]), (&y, [1, 0])] {
        let (all, absent) = (d.b.mask(matched, value.node), d.b.not(here[of[1]].node));
        d.sum(all, ValueType::u(50), |r| if both(r) { value.at(r) } else { 0 });
        let alone = d.b.and(here[of[0]].node, absent);
        d.sum(alone, ValueType::u(40), |r| u128::from(has(r, of[0]) && !has(r, of[1])));
    }
    let less = d.b.lt(x.node, y.node);
    let less = d.b.and(matched, less);
    d.sum(less, ValueType::u(40), |r| u128::from(both(r) && x.at(r) < y.at(r)));
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

/// Products of bits with values: bits of one party and of both, nested, values of either party, signed
/// values.
fn masks(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("masks, {rows} rows"), Class::Exact, rows, seed);
    let bits = [d.column(ValueType::BIT, Some(0)), d.column(ValueType::BIT, Some(1))];
    let mixed = (d.b.xor(bits[0].node, bits[1].node), bits.clone());
    let mixed_at = |r: usize| mixed.1[0].at(r) ^ mixed.1[1].at(r);
    let mut values = Vec::new();
    for ty in [ValueType::u(20), ValueType::i(20), ValueType::u(128)] {
        values.extend([Some(0), Some(1), None].map(|owner| d.column(ty, owner)));
    }
    for v in &values {
        let ty = sum_type(v.ty);
        for bit in &bits {
            let node = d.b.mask(bit.node, v.node);
            d.sum(node, ty, |r| bit.at(r) * v.wide(r).wrapping_mul(1));
        }
        let node = d.b.mask(mixed.0, v.node);
        d.sum(node, ty, |r| if mixed_at(r) == 1 { v.wide(r) } else { 0 });
        // Either party's bit around the secret one, then both: chains, whose inner sum stays shared.
        let mut chain = node;
        for (depth, bit) in [&bits[0], &bits[1], &bits[0]].into_iter().enumerate() {
            chain = d.b.mask(bit.node, chain);
            let held = &bits;
            d.sum(chain, ty, |r| {
                let open = (0..=depth).all(|i| held[i % 2].at(r) == 1) && mixed_at(r) == 1;
                if open { v.wide(r) } else { 0 }
            });
        }
        // The other branch is a value as well.
        let other = d.b.not(v.node);
        let node = d.b.select(mixed.0, v.node, other);
        d.sum(node, ty, |r| if mixed_at(r) == 1 { v.wide(r) } else { extend(wrap(!v.at(r), v.ty), v.ty) });
    }
    sums_and_casts(&mut d, mixed.0, mixed_at, &values);
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

/// Masked values added and cast before the sum: with room, and without (then it wraps in the row).
fn sums_and_casts(d: &mut Draft, bit: NodeId, set: impl Fn(usize) -> u128 + Copy, values: &[Col]) {
    let (x, y, z) = (values[0].clone(), values[1].clone(), values[4].clone());
    let (a, b) = (d.b.mask(bit, x.node), d.b.mask(bit, y.node));
    let narrow = d.b.add(a, b);
    let total = |r: usize| set(r) * (x.at(r) + y.at(r));
    d.sum(narrow, ValueType::u(60), |r| wrap(total(r), x.ty));
    let (a, b) = (d.b.cast(a, ValueType::u(30)), d.b.cast(b, ValueType::u(30)));
    let wide = d.b.add(a, b);
    d.sum(wide, ValueType::u(70), total);
    let cut = d.b.cast(wide, ValueType::u(7));
    d.sum(cut, ValueType::u(70), |r| total(r) % 128);
    let signed = d.b.mask(bit, z.node);
    for to in [ValueType::i(40), ValueType::i(5), ValueType::u(40)] {
        let node = d.b.cast(signed, to);
        d.sum(node, sum_type(to), |r| extend(wrap(set(r).wrapping_mul(z.wide(r)), to), to));
    }
}

/// Who holds what of a lookup, and whether its thresholds come sorted.
struct Shape {
    after: u8,
    keys: u8,
    /// 0, 1: that party's; 2: of both.
    values: u8,
    sorted: bool,
    window: bool,
}

fn lookups(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("lookups, {rows} rows"), Class::Exact, rows, seed);
    let holders = [(0, 1), (1, 0), (0, 0), (1, 1)];
    let cohort = d.column(ValueType::u(2), Some(1));
    let arm = d.column(ValueType::BIT, Some(0));
    for (after, keys) in holders {
        for values in [0, 1, 2] {
            for (sorted, window) in [(false, false), (true, false), (false, true), (true, true)] {
                let alike = (after, keys) == (0, 0) || (after, keys) == (1, 1);
                // Where all inputs are one party's there is nothing to share; where bound and keys are, one
                // value is.
                if alike && (u8::from(sorted) + u8::from(window) != 1 || values == after) {
                    continue;
                }
                one_lookup(&mut d, &Shape { after, keys, values, sorted, window }, &arm, &cohort);
            }
        }
    }
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

fn one_lookup(d: &mut Draft, shape: &Shape, arm: &Col, cohort: &Col) {
    const K: usize = 3;
    let time = ValueType::u(6);
    let after = d.column(time, Some(shape.after));
    let until = shape.window.then(|| d.column(time, Some(shape.after)));
    let mut keys: Vec<Vec<u128>> =
        (0..d.rows).map(|_| (0..K).map(|_| u128::from(d.rng.below(64))).collect()).collect();
    for (row, keys) in keys.iter_mut().enumerate() {
        if shape.sorted {
            keys.sort_unstable();
        }
        if row % 3 == 0 {
            keys[1] = keys[0];
        }
        if row % 7 == 0 {
            keys[2] = after.at(row);
        }
    }
    let columns: Vec<Col> =
        (0..K).map(|j| d.given(time, Some(shape.keys), keys.iter().map(|k| k[j]).collect())).collect();
    let mut nodes: Vec<NodeId> = columns.iter().map(|c| c.node).collect();
    if shape.sorted {
        for j in 1..K {
            nodes[j] = d.b.max(nodes[j - 1], nodes[j]);
        }
    }
    let count = if shape.window { K * (K + 1) / 2 } else { K };
    let ty = ValueType::u(11);
    let parts: Vec<(Col, Col)> = (0..count).map(|_| (d.column(ty, Some(0)), d.column(ty, Some(1)))).collect();
    let value = |i: usize, r: usize| match shape.values {
        0 => parts[i].0.at(r),
        1 => parts[i].1.at(r),
        _ => parts[i].0.at(r) ^ parts[i].1.at(r),
    };
    let values = parts.iter().map(|(x, y)| match shape.values {
        0 => x.node,
        1 => y.node,
        _ => d.b.xor(x.node, y.node),
    });
    let lookup = Lookup {
        after: after.node,
        until: until.as_ref().map(|u| u.node),
        keys: nodes,
        values: values.collect(),
    };
    let node = d.b.lookup(lookup);
    let result = |r: usize| {
        let chosen = window(after.at(r), until.as_ref().map(|u| u.at(r)), &keys[r]);
        chosen.map_or(0, |i| value(i, r))
    };
    d.sum(node, ValueType::u(60), result);
    // As in a lift study: the arm around the lookup, then the cohort around both.
    let in_arm = d.b.mask(arm.node, node);
    d.sum(in_arm, ValueType::u(60), |r| arm.at(r) * result(r));
    let two = d.b.constant(2, ValueType::u(2));
    let in_cohort = d.b.eq(cohort.node, two);
    let cell = d.b.mask(in_cohort, in_arm);
    d.sum(cell, ValueType::u(60), |r| if cohort.at(r) == 2 { arm.at(r) * result(r) } else { 0 });
}

/// Index of the value that a lookup yields, from its definition.
fn window(after: u128, until: Option<u128>, keys: &[u128]) -> Option<usize> {
    let tops: Vec<u128> = (0..keys.len()).map(|j| *keys[..=j].iter().max().expect("not empty")).collect();
    let first = tops.iter().position(|t| *t > after)?;
    let Some(until) = until else { return Some(first) };
    let last = tops.iter().rposition(|t| *t <= until).filter(|last| *last >= first)?;
    // Rows of the upper triangle before this one hold K, K - 1, ... entries.
    let before: usize = (0..first).map(|i| keys.len() - i).sum();
    Some(before + last - first)
}

/// Two shapes that a lowering may get wrong: keys of which only the last is a maximum, and bits that are
/// constant.
fn corners(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("corners, {rows} rows"), Class::Exact, rows, seed);
    let ty = ValueType::u(5);
    let after = d.column(ty, Some(0));
    let keys = [0, 1, 2].map(|_| d.column(ty, Some(1)));
    let last = d.b.max(keys[1].node, keys[2].node);
    let values = [0, 1, 2].map(|_| d.column(ValueType::u(50), Some(1)));
    let lookup = Lookup {
        after: after.node,
        until: None,
        keys: vec![keys[0].node, keys[1].node, last],
        values: values.iter().map(|v| v.node).collect(),
    };
    let node = d.b.lookup(lookup);
    d.sum(node, ValueType::u(90), |r| {
        let all = [keys[0].at(r), keys[1].at(r), keys[1].at(r).max(keys[2].at(r))];
        window(after.at(r), None, &all).map_or(0, |i| values[i].at(r))
    });
    let both = d.b.xor(after.node, keys[0].node);
    let ones = d.b.constant(0b11010, ty);
    let some = d.b.or(both, ones);
    d.sum(some, ValueType::u(60), |r| (after.at(r) ^ keys[0].at(r)) | 0b11010);
    let wide = d.b.cast(some, ValueType::u(64));
    let product = d.b.mul(wide, wide);
    let lowest = d.b.cast(some, ValueType::BIT);
    let masked = d.b.mask(lowest, product);
    d.sum(masked, ValueType::u(100), |r| {
        let value = (after.at(r) ^ keys[0].at(r)) | 0b11010;
        if value % 2 == 1 { value * value } else { 0 }
    });
    ProgramCase { random_shares: rows > 2, ..d.finish() }
}

/// Folds that are sums of values each of which somebody knows: no gates, and a share is its owner's own sum.
fn linear(seed: u64, rows: usize) -> ProgramCase {
    let mut d = Draft::new(format!("linear, {rows} rows"), Class::Exact, rows, seed);
    let (x, y, z) = (
        d.column(ValueType::u(20), Some(0)),
        d.column(ValueType::u(20), Some(1)),
        d.column(ValueType::u(20), None),
    );
    let wide: Vec<NodeId> = [&x, &y, &z].map(|c| d.b.cast(c.node, ValueType::u(30))).to_vec();
    let pair = d.b.add(wide[0], wide[1]);
    d.sum(pair, ValueType::u(70), |r| x.at(r) + y.at(r));
    let all = d.b.add(pair, wide[2]);
    d.sum(all, ValueType::u(71), |r| x.at(r) + y.at(r) + z.at(r));
    let twice = d.b.add(all, pair);
    d.sum(twice, ValueType::u(128), |r| 2 * (x.at(r) + y.at(r)) + z.at(r));
    ProgramCase { random_shares: false, ..d.finish() }
}
