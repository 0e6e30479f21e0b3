//! Cases about the release section: every operation on totals, noise, and the fixed-point mechanisms.

use super::draft::{Draft, extend, wrap};
use super::operations::{operations, root};
use super::{Case, Noise};
use base::PartyId;
use program::lower::Difference;
use program::{Class, MechanismKind, NodeId, Ratio, Statistic, Type};

pub(super) fn all(seed: u64) -> Vec<Case> {
    let types = [
        Type::BIT,
        Type::u(7),
        Type::u(32),
        Type::u(64),
        Type::u(128),
        Type::i(9),
        Type::i(64),
        Type::i(128),
    ];
    let mut cases: Vec<Case> = types.into_iter().map(|ty| every_operation(seed, ty)).collect();
    cases.push(holders(seed));
    for (rows, candidates, talks) in
        [(0, 1, false), (7, 1, true), (7, 3, false), (1000, 5, false), (40, 64, true)]
    {
        cases.push(gaussian(seed, rows, candidates, talks));
    }
    for (statistic, places) in [
        (Statistic::Variance, [12, 20]),
        (Statistic::Algorithm1, [0, 10]),
        (Statistic::Algorithm1AsPublished, [20, 15]),
        (Statistic::Variance, [-3, -2]),
    ] {
        cases.push(difference(seed, statistic, places));
    }
    cases
}

/// Each operation on two totals of both parties' data, revealed to both.
fn every_operation(seed: u64, ty: Type) -> Case {
    let mut d = Draft::new(format!("release: every operation on {ty}"), Class::Exact, 3, seed);
    let folds = [0, 1].map(|_| {
        let (x, y) = (d.column(ty, Some(0)), d.column(ty, Some(1)));
        let node = d.b.xor(x.node, y.node);
        d.sum(node, ty, |r| extend(x.at(r) ^ y.at(r), ty))
    });
    let [a, b] = folds.map(|f| d.totals[f as usize]);
    d.b.release();
    let [x, y] = folds.map(|f| d.b.total(f));
    for (i, op) in operations(ty).into_iter().enumerate() {
        let node = (op.build)(&mut d.b, x, y);
        let value = (op.meaning)(a, b);
        d.reveal(0, node, value);
        if i % 3 == 0 {
            d.reveal(1, node, value);
        }
    }
    Case { random_shares: false, ..d.finish() }
}

/// Totals that one party knows, or everybody, beside shared ones; constants; thresholds; the same total twice.
fn holders(seed: u64) -> Case {
    let mut d = Draft::new("release: totals of every holder".into(), Class::Exact, 50, seed);
    let ty = Type::u(40);
    let columns = [Some(0), Some(1), None].map(|owner| d.column(Type::u(10), owner));
    let folds = columns.clone().map(|c| d.sum(c.node, ty, |r| c.at(r)));
    let both = d.b.xor(columns[0].node, columns[1].node);
    let shared = d.sum(both, ty, |r| columns[0].at(r) ^ columns[1].at(r));
    d.b.release();
    let mut sum = d.b.constant(5, ty);
    let mut value = 5;
    for fold in folds.into_iter().chain([shared]) {
        let total = d.b.total(fold);
        let known = d.totals[fold as usize];
        d.reveal(0, total, known);
        d.reveal(1, total, known);
        sum = d.b.add(sum, total);
        value += known;
        d.reveal((fold % 2) as u8, sum, value);
    }
    let least = d.b.constant(1000, ty);
    let few = d.b.lt(sum, least);
    d.reveal(0, few, u128::from(value < 1000));
    let nothing = d.b.constant(0, Type::BIT);
    d.reveal(1, nothing, 0);
    let shares = [folds[0], shared].map(|f| d.b.total(f));
    release_lookup(&mut d, shares, [folds[0], shared]);
    Case { random_shares: false, ..d.finish() }
}

/// A step function of totals.
fn release_lookup(d: &mut Draft, [x, y]: [NodeId; 2], folds: [u32; 2]) {
    let ty = d.b.ty(x);
    let [a, b] = folds.map(|f| d.totals[f as usize]);
    let keys = [a + 1, a, a + 9].map(|k| d.b.constant(k, ty)).to_vec();
    let values = vec![y, x, x];
    let node = d.b.lookup(program::Lookup { after: x, until: None, keys, values });
    d.reveal(0, node, b);
}

/// Two disjoint cells per mechanism, one mechanism per viewer, and post-processing of what is noised.
fn gaussian(seed: u64, rows: usize, candidates: usize, talks: bool) -> Case {
    const WIDTH: u8 = 21;
    let name =
        format!("gaussian, {rows} rows, {candidates} candidates{}", if talks { ", talking" } else { "" });
    let mut d = Draft::new(name, Class::Dp, rows, seed);
    let arm = d.column(Type::u(2), Some(0));
    let outcome = d.column(Type::BIT, Some(1));
    let total = Type::u(40);
    let cells = [1, 2].map(|which| {
        let constant = d.b.constant(which, Type::u(2));
        let inside = d.b.eq(arm.node, constant);
        let both = d.b.and(inside, outcome.node);
        d.sum(both, total, |r| u128::from(arm.at(r) == which) & outcome.at(r))
    });
    let rho = Ratio::new(1, 8).expect("not zero");
    let mechanisms =
        [0, 1].map(|to| d.b.mechanism(PartyId(to), rho, MechanismKind::Gaussian(cells.to_vec())));
    let noise = |d: &mut Draft| {
        let number = u128::from_le_bytes(d.rng.bytes());
        extend(wrap(number, Type::i(WIDTH)), Type::i(WIDTH)) as i128
    };
    let drawn: Vec<Vec<Vec<i128>>> =
        (0..candidates).map(|_| (0..2).map(|_| (0..2).map(|_| noise(&mut d)).collect()).collect()).collect();
    let chosen = candidates / 2;
    d.b.release();
    for (to, mechanism) in [(0, mechanisms[0]), (1, mechanisms[1])] {
        let ty = Type::i(48);
        let values = [0, 1].map(|o| {
            let noised =
                d.totals[cells[o] as usize].wrapping_add(drawn[chosen][mechanism as usize][o] as u128);
            (d.b.noised(mechanism, o as u32), wrap(noised, ty))
        });
        for (node, value) in values {
            d.reveal(to, node, value);
        }
        let difference = d.b.sub(values[0].0, values[1].0);
        d.reveal(to, difference, wrap(values[0].1.wrapping_sub(values[1].1), ty));
    }
    let noise = Noise { width: WIDTH, candidates: drawn, chosen, talks };
    Case { random_shares: rows > 2, noise, ..d.finish() }
}

/// Two arms of the first party, outcomes of the second; difference and uncertainty in fixed point, for both viewers.
fn difference(seed: u64, statistic: Statistic, places: [i32; 2]) -> Case {
    const R: u64 = 50;
    let rows = 120;
    let mut d = Draft::new(format!("difference: {statistic:?}, places {places:?}"), Class::Dp, rows, seed);
    let arms = (0..rows).map(|r| u128::from(r % 5 < 2)).collect();
    let arm = d.given(Type::BIT, Some(0), arms);
    let outcomes = (0..rows).map(|_| u128::from(d.rng.below(2 * R))).collect();
    let outcome = d.given(Type::u(8), Some(1), outcomes);
    let (value, wide) = (d.b.clamp(outcome.node, R.into()), Type::u(13));
    let value = d.b.cast(value, wide);
    let square = d.b.mul(value, value);
    let clamped = |r: usize| outcome.at(r).min(R.into());
    let zero = d.b.constant(0, wide);
    let mut sizes = Vec::new();
    let groups = [1, 0].map(|which| {
        let constant = d.b.constant(which, Type::BIT);
        let inside = d.b.eq(arm.node, constant);
        let sum = d.b.select(inside, value, zero);
        let squares = d.b.select(inside, square, zero);
        let here = |r: usize| u128::from(arm.at(r) == which);
        sizes.push((0..rows).map(here).sum::<u128>());
        [
            d.sum(inside, Type::u(20), here),
            d.sum(sum, Type::u(40), |r| here(r) * clamped(r)),
            d.sum(squares, Type::u(60), |r| here(r) * clamped(r) * clamped(r)),
        ]
    });
    let parameters = Difference { n: [sizes[0], sizes[1]], lift_places: places[0], spread_places: places[1] };
    let [test, control] = groups;
    let value = expected_difference(&d.totals, [test, control], statistic, &parameters);
    let drawn: Vec<Vec<Vec<i128>>> = vec![vec![vec![-77, 123], vec![5, -9]], vec![vec![1, 2], vec![3, 4]]];
    let kind = || MechanismKind::Difference { statistic, test, control };
    let rho = Ratio::new(1, 8).expect("not zero");
    let mechanisms = [0, 1].map(|to| d.b.mechanism(PartyId(to), rho, kind()));
    d.b.release();
    for (to, mechanism) in [(0, mechanisms[0]), (1, mechanisms[1])] {
        for output in 0..2 {
            let node = d.b.noised(mechanism, output as u32);
            let noise = drawn[0][mechanism as usize][output];
            d.reveal(to, node, wrap((value[output] + noise) as u128, Type::i(64)));
        }
    }
    let noise = Noise { width: 12, candidates: drawn, chosen: 0, talks: false };
    Case { noise, differences: vec![Some(parameters); 2], random_shares: false, ..d.finish() }
}

/// `release.md`: floors per arm, then their difference or sum; the root last.
fn expected_difference(
    totals: &[u128],
    groups: [[u32; 3]; 2],
    statistic: Statistic,
    parameters: &Difference,
) -> [i128; 2] {
    let scale = |x: u128, places: i32| if places < 0 { x >> -places } else { x << places };
    let total = |f: u32| totals[f as usize];
    let mean = |g: usize| (scale(total(groups[g][1]), parameters.lift_places) / parameters.n[g]) as i128;
    let rooted = statistic != Statistic::Variance;
    let places = parameters.spread_places * if rooted { 2 } else { 1 };
    let spread = |g: usize| {
        let (n, s, q) = (parameters.n[g], total(groups[g][1]), total(groups[g][2]));
        scale(n * q - s * s, places) / (n * n * (n - 1))
    };
    let variance = spread(0) + spread(1);
    [mean(0) - mean(1), if rooted { root(variance) } else { variance } as i128]
}
