//! Cases about the release section: every operation on totals, noise, and the fixed-point mechanisms.

use super::draft::{Draft, extend, wrap};
use super::operations::{operations, root};
use super::{Noise, ProgramCase};
use base::PartyId;
use program::lower::{DifferenceSizes, NoisedAt};
use program::{Class, DifferenceStatistic, MechanismKind, NodeId, ValueType, Viewer};
use release::alias::{FRACTION_BITS, Sampler};
use release::joint::Change;
use release::rational::ratio;

pub(super) fn all(seed: u64) -> Vec<ProgramCase> {
    let types = [
        ValueType::BIT,
        ValueType::u(7),
        ValueType::u(32),
        ValueType::u(64),
        ValueType::u(128),
        ValueType::i(9),
        ValueType::i(64),
        ValueType::i(128),
    ];
    let mut cases: Vec<ProgramCase> = types.into_iter().map(|ty| every_operation(seed, ty)).collect();
    cases.push(holders(seed));
    cases.extend([0, 7, 1000].map(|rows| gaussian(2, seed, rows)));
    cases.push(joint(2, seed, 40));
    cases.push(every_cell(2, seed));
    cases.extend([(7, 3), (40, 64)].map(|(rows, count)| candidates(seed, rows, count)));
    for (statistic, places) in [
        (DifferenceStatistic::Variance, [12, 20]),
        (DifferenceStatistic::Algorithm1, [0, 10]),
        (DifferenceStatistic::Algorithm1AsPublished, [20, 15]),
        (DifferenceStatistic::Variance, [-3, -2]),
    ] {
        cases.push(difference(seed, statistic, places));
    }
    cases
}

/// Each operation on two totals of both parties' data, revealed to both.
fn every_operation(seed: u64, ty: ValueType) -> ProgramCase {
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
    ProgramCase { random_shares: false, ..d.finish() }
}

/// Totals that one party knows, or everybody, beside shared ones; constants; thresholds; the same total
/// twice.
fn holders(seed: u64) -> ProgramCase {
    let mut d = Draft::new("release: totals of every holder".into(), Class::Exact, 50, seed);
    let ty = ValueType::u(40);
    let columns = [Some(0), Some(1), None].map(|owner| d.column(ValueType::u(10), owner));
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
    let nothing = d.b.constant(0, ValueType::BIT);
    d.reveal(1, nothing, 0);
    let shares = [folds[0], shared].map(|f| d.b.total(f));
    release_lookup(&mut d, shares, [folds[0], shared]);
    ProgramCase { random_shares: false, ..d.finish() }
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

/// Draws whose tables, parts and low bits differ: a sensitivity, cells that one change moves, and 1 / rho.
const DRAWS: [(u64, u32, u64); 5] = [(1, 1, 8), (1, 2, 200), (10, 2, 12), (256, 1, 12), (40_000, 2, 60)];

/// Coins of a draw of some kind.
fn draw(d: &mut Draft, which: usize) -> (Sampler, Vec<bool>) {
    let (sensitivity, cells, inverse) = DRAWS[which % DRAWS.len()];
    let rho = ratio(1, inverse);
    let sampler = Sampler::new(&sensitivity.into(), cells, &rho).expect("in range");
    let coins = (0..sampler.coins()).map(|_| d.rng.below(2) == 1).collect();
    (sampler, coins)
}

/// Cells of columns of two parties, disjoint by those of the first one.
fn cells(d: &mut Draft) -> [u32; 2] {
    let arm = d.column(ValueType::u(2), Some(0));
    let outcome = d.column(ValueType::BIT, Some(1));
    [1, 2].map(|which| {
        let constant = d.b.constant(which, ValueType::u(2));
        let inside = d.b.eq(arm.node, constant);
        let both = d.b.and(inside, outcome.node);
        d.sum(both, ValueType::u(40), |r| u128::from(arm.at(r) == which) & outcome.at(r))
    })
}

/// Two disjoint cells per mechanism, a mechanism for each of two parties and one for the public, and
/// post-processing of what is noised. What is for the public may go to a party in another form.
pub(super) fn gaussian(parties: usize, seed: u64, rows: usize) -> ProgramCase {
    let name = format!("gaussian among {parties}, {rows} rows");
    let mut d = Draft::among(parties, name, Class::Dp, rows, seed);
    let cells = cells(&mut d);
    let rho = ratio(1, 8);
    let viewers = [PartyId(0).into(), PartyId(1).into(), Viewer::Public];
    let mechanisms = viewers.map(|to| d.b.mechanism(to, &rho, MechanismKind::Gaussian(cells.to_vec())));
    let drawn: Vec<Vec<(Sampler, Vec<bool>)>> =
        (0..3).map(|m| (0..2).map(|o| draw(&mut d, 2 * m + o)).collect()).collect();
    let noise = Noise::Coins(drawn);
    d.b.release();
    let ty = ValueType::i(48);
    let mut noised = Vec::new();
    for (to, mechanism) in viewers.into_iter().zip(mechanisms) {
        let values = [0, 1].map(|output| {
            let value = d.totals[cells[output as usize] as usize];
            let value = value.wrapping_add(noise.drawn(NoisedAt { mechanism, output }) as u128);
            (d.b.noised(mechanism, output), wrap(value, ty))
        });
        for (node, value) in values {
            d.reveal_to(to, node, value);
        }
        let difference = d.b.sub(values[0].0, values[1].0);
        d.reveal_to(to, difference, wrap(values[0].1.wrapping_sub(values[1].1), ty));
        noised.push(values);
    }
    let [(a, x), (b, y)] = noised[2];
    let sum = d.b.add(a, b);
    d.reveal(1, sum, wrap(x.wrapping_add(y), ty));
    // For one party a comparison as well, of noise that the others see in sums.
    let larger = d.b.max(a, b);
    d.reveal(1, larger, if extend(x, ty).cast_signed() > extend(y, ty).cast_signed() { x } else { y });
    ProgramCase { random_shares: parties == 2 && rows > 2, noise, ..d.finish() }
}

/// Every cell of a table, on both sides of its threshold and of either sign: all that one part's circuit can
/// decide.
pub(super) fn every_cell(parties: usize, seed: u64) -> ProgramCase {
    let mut d = Draft::among(parties, format!("every cell among {parties}"), Class::Dp, 5, seed);
    let cells = cells(&mut d);
    let sampler = Sampler::new(&1.into(), 1, &ratio(1, 8)).expect("in range");
    let [part] = &sampler.parts[..] else { panic!("a small variance is drawn by one part") };
    let mut drawn = Vec::new();
    for (cell, threshold) in (0u64..).zip(part.table.thresholds()) {
        for fraction in [0, threshold.saturating_sub(1), *threshold, (1 << FRACTION_BITS) - 1] {
            for sign in [0, 1] {
                let bits = |value: u64, width: u32| (0..width).map(move |i| value >> i & 1 == 1);
                let coins =
                    bits(cell, part.table.bits()).chain(bits(fraction, FRACTION_BITS)).chain(bits(sign, 1));
                drawn.push((sampler.clone(), coins.collect()));
            }
        }
    }
    let folds: Vec<u32> = (0..drawn.len()).map(|output| cells[output % 2]).collect();
    let rho = ratio(1, 8);
    let mechanism = d.b.mechanism(Viewer::Public, &rho, MechanismKind::Gaussian(folds.clone()));
    let noise = Noise::Coins(vec![drawn]);
    d.b.release();
    for (output, fold) in (0..).zip(folds) {
        let value = d.totals[fold as usize].cast_signed() + noise.drawn(NoisedAt { mechanism, output });
        let node = d.b.noised(mechanism, output);
        d.reveal_to(Viewer::Public, node, wrap(value.cast_unsigned(), ValueType::i(48)));
    }
    ProgramCase { random_shares: parties == 2, noise, ..d.finish() }
}

/// n, S and Q of two cells by joint mechanisms: for one that knows n, one that does not, and the public.
pub(super) fn joint(parties: usize, seed: u64, rows: usize) -> ProgramCase {
    // Its digits are of either sign.
    const R: u64 = 11;
    let mut d = Draft::among(parties, format!("joint among {parties}, {rows} rows"), Class::Dp, rows, seed);
    let arm = d.column(ValueType::u(2), Some(0));
    let outcome = d.column(ValueType::u(6), Some(1));
    let clamped = d.b.clamp(outcome.node, R.into());
    let squared = d.b.cast(clamped, ValueType::u(12));
    let squared = d.b.mul(squared, squared);
    let cells = [1, 2].map(|which| {
        let constant = d.b.constant(which, ValueType::u(2));
        let inside = d.b.eq(arm.node, constant);
        let (s, q) = (d.b.mask(inside, clamped), d.b.mask(inside, squared));
        let (arm, outcome) = (arm.clone(), outcome.clone());
        let counts = move |r: usize, power: u32| match arm.at(r) == which {
            true => outcome.at(r).min(R.into()).pow(power),
            false => 0,
        };
        let of = |power| {
            let counts = counts.clone();
            move |r: usize| counts(r, power)
        };
        [
            d.sum(inside, ValueType::u(16), of(0)),
            d.sum(s, ValueType::u(24), of(1)),
            d.sum(q, ValueType::u(32), of(2)),
        ]
    });
    let rho = ratio(1, 8);
    let viewers = [
        (PartyId(0).into(), Change::Outcome),
        (PartyId(1).into(), Change::Person),
        (Viewer::Public, Change::Person),
    ];
    let mechanisms = viewers.map(|(to, change)| {
        let kind = MechanismKind::Joint { change, clamp: R.into(), cells: cells.to_vec() };
        (to, change.combinations(R.into()), d.b.mechanism(to, &rho, kind))
    });
    let drawn = mechanisms
        .map(|(_, each, m)| (0..2 * each.len()).map(|o| draw(&mut d, m as usize + o)).collect::<Vec<_>>());
    let noise = Noise::Coins(drawn.into());
    d.b.release();
    for (to, each, mechanism) in mechanisms {
        let all = cells.iter().flat_map(|cell| each.iter().map(move |combination| (cell, combination)));
        for (output, (cell, combination)) in (0..).zip(all) {
            let totals = cell.map(|fold| d.totals[fold as usize].cast_signed());
            let exact: i128 = combination.weights(R.into()).iter().zip(totals).map(|(w, t)| w * t).sum();
            let value = exact + noise.drawn(NoisedAt { mechanism, output });
            let node = d.b.noised(mechanism, output);
            let ty = d.b.ty(node);
            d.reveal_to(to, node, wrap(value.cast_unsigned(), ty));
        }
    }
    ProgramCase { random_shares: parties == 2 && rows > 2, noise, ..d.finish() }
}

/// Cells with candidates that one party draws for the other.
fn candidates(seed: u64, rows: usize, count: usize) -> ProgramCase {
    const WIDTH: u8 = 21;
    let mut d = Draft::new(format!("gaussian, {rows} rows, {count} candidates"), Class::Dp, rows, seed);
    let cells = cells(&mut d);
    let rho = ratio(1, 8);
    let mechanisms =
        [0, 1].map(|to| d.b.mechanism(PartyId(to), &rho, MechanismKind::Gaussian(cells.to_vec())));
    let noise = |d: &mut Draft| {
        let number = u128::from_le_bytes(d.rng.bytes());
        extend(wrap(number, ValueType::i(WIDTH)), ValueType::i(WIDTH)) as i128
    };
    let drawn: Vec<Vec<Vec<i128>>> =
        (0..count).map(|_| (0..2).map(|_| (0..2).map(|_| noise(&mut d)).collect()).collect()).collect();
    d.b.release();
    let ty = ValueType::i(48);
    let mut others = vec![Vec::new(); count - 1];
    for (to, mechanism) in [(0, mechanisms[0]), (1, mechanisms[1])] {
        let value = |d: &Draft, j: usize, o: usize| {
            let noise: i128 = drawn[j][mechanism as usize][o];
            wrap(d.totals[cells[o] as usize].wrapping_add(noise as u128), ty)
        };
        let nodes = [0, 1].map(|output| d.b.noised(mechanism, output));
        let difference = d.b.sub(nodes[0], nodes[1]);
        for j in 0..count {
            let [x, y] = [0, 1].map(|o| value(&d, j, o));
            let values = [x, y, wrap(x.wrapping_sub(y), ty)];
            match j {
                0 => [nodes[0], nodes[1], difference]
                    .into_iter()
                    .zip(values)
                    .for_each(|(node, value)| d.reveal(to, node, value)),
                _ => others[j - 1].extend(values),
            }
        }
    }
    ProgramCase { random_shares: rows > 2, noise: Noise::Candidates(WIDTH, drawn), others, ..d.finish() }
}

/// Two arms of the first party, outcomes of the second; difference and uncertainty in fixed point, for both
/// viewers.
fn difference(seed: u64, statistic: DifferenceStatistic, places: [i32; 2]) -> ProgramCase {
    const R: u64 = 50;
    let rows = 120;
    let mut d = Draft::new(format!("difference: {statistic:?}, places {places:?}"), Class::Dp, rows, seed);
    let arms = (0..rows).map(|r| u128::from(r % 5 < 2)).collect();
    let arm = d.given(ValueType::BIT, Some(0), arms);
    let outcomes = (0..rows).map(|_| u128::from(d.rng.below(2 * R))).collect();
    let outcome = d.given(ValueType::u(8), Some(1), outcomes);
    let (value, wide) = (d.b.clamp(outcome.node, R.into()), ValueType::u(13));
    let value = d.b.cast(value, wide);
    let square = d.b.mul(value, value);
    let clamped = |r: usize| outcome.at(r).min(R.into());
    let zero = d.b.constant(0, wide);
    let mut sizes = Vec::new();
    let groups = [1, 0].map(|which| {
        let constant = d.b.constant(which, ValueType::BIT);
        let inside = d.b.eq(arm.node, constant);
        let sum = d.b.select(inside, value, zero);
        let squares = d.b.select(inside, square, zero);
        let here = |r: usize| u128::from(arm.at(r) == which);
        sizes.push((0..rows).map(here).sum::<u128>());
        [
            d.sum(inside, ValueType::u(20), here),
            d.sum(sum, ValueType::u(40), |r| here(r) * clamped(r)),
            d.sum(squares, ValueType::u(60), |r| here(r) * clamped(r) * clamped(r)),
        ]
    });
    let parameters =
        DifferenceSizes { n: [sizes[0], sizes[1]], lift_places: places[0], spread_places: places[1] };
    let [test, control] = groups;
    let value = expected_difference(&d.totals, [test, control], statistic, &parameters);
    let drawn = (0..2).map(|m| (0..2).map(|o| draw(&mut d, m + 2 * o)).collect()).collect();
    let noise = Noise::Coins(drawn);
    let kind = || MechanismKind::Difference { statistic, test, control };
    let rho = ratio(1, 8);
    let mechanisms = [0, 1].map(|to| d.b.mechanism(PartyId(to), &rho, kind()));
    d.b.release();
    for (to, mechanism) in [(0, mechanisms[0]), (1, mechanisms[1])] {
        for output in 0..2 {
            let node = d.b.noised(mechanism, output);
            let noise = noise.drawn(NoisedAt { mechanism, output });
            d.reveal(to, node, wrap((value[output as usize] + noise) as u128, ValueType::i(64)));
        }
    }
    ProgramCase { noise, differences: vec![Some(parameters); 2], random_shares: false, ..d.finish() }
}

/// `release.md`: floors per arm, then their difference or sum; the root last.
fn expected_difference(
    totals: &[u128],
    groups: [[u32; 3]; 2],
    statistic: DifferenceStatistic,
    parameters: &DifferenceSizes,
) -> [i128; 2] {
    let scale = |x: u128, places: i32| if places < 0 { x >> -places } else { x << places };
    let total = |f: u32| totals[f as usize];
    let mean = |g: usize| (scale(total(groups[g][1]), parameters.lift_places) / parameters.n[g]) as i128;
    let rooted = statistic != DifferenceStatistic::Variance;
    let places = parameters.spread_places * if rooted { 2 } else { 1 };
    let spread = |g: usize| {
        let (n, s, q) = (parameters.n[g], total(groups[g][1]), total(groups[g][2]));
        scale(n * q - s * s, places) / (n * n * (n - 1))
    };
    let variance = spread(0) + spread(1);
    [mean(0) - mean(1), if rooted { root(variance) } else { variance } as i128]
}
