//! What the verifier derives for random programs against what one row really changes, found by trying all
//! rows of small types.

use base::{PartyId, Rng, Seed};
use program::eval::NodeValues;
use program::{
    Class, ColumnSource, MechanismCharge, MechanismKind, NodeId, Op, Program, ProgramBuilder, ValueType,
    VerifierPolicy, Viewer, verify,
};
use release::rational::{Rational, ratio, to_f64};

/// Programs tried.
const PROGRAMS: u64 = 100_000;
/// Of which so many have to be accepted at least, or the test says little.
const ACCEPTED: usize = 15_000;
const PARTIES: [PartyId; 2] = [PartyId(0), PartyId(1)];

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

/// A program of two parties with a mechanism over some cells, most of which are made to be apart.
fn random(rng: &mut Rng) -> Program {
    let mut b = ProgramBuilder::new("random", Class::Dp, ["p0", "p1"]);
    let mut nodes = Vec::new();
    for (i, (ty, holder)) in [
        (pick(rng, &[ValueType::u(2), ValueType::i(2)]), Some(PARTIES[0])),
        (ValueType::BIT, Some(PARTIES[0])),
        (pick(rng, &[ValueType::i(3), ValueType::u(3)]), Some(PARTIES[1])),
        (pick(rng, &[ValueType::u(2), ValueType::i(2)]), Some(PARTIES[1])),
        (ValueType::BIT, None),
    ]
    .into_iter()
    .enumerate()
    {
        let absent = if rng.below(4) == 0 { rng.below(4).into() } else { 0 };
        let source = ColumnSource::Data { absent: absent & ty.mask() };
        nodes.push(b.column_from(&format!("c{i}"), ty, holder, source));
    }
    nodes.extend(PARTIES.map(|party| b.present(party)));
    for _ in 0..rng.below(12) {
        let node = step(rng, &mut b, &nodes);
        nodes.push(node);
    }
    let here = nodes[5..7].to_vec();
    let selector = pick(rng, &nodes);
    let mut folds = Vec::new();
    for cell in 0..1 + rng.below(3) {
        let value = pick(rng, &nodes);
        let mut term = between(rng, &mut b, value);
        if rng.below(8) > 0 {
            let inside = inside(rng, &mut b, (selector, cell), &nodes);
            term = b.mask(inside, term);
        }
        for present in &here {
            if rng.below(4) > 0 {
                term = b.mask(*present, term);
            }
        }
        let ty = b.ty(term);
        folds.push(b.sum(term, ValueType { width: ty.width + 20, ..ty }));
    }
    let to = [PARTIES[0].into(), PARTIES[1].into(), Viewer::Public][rng.below(3) as usize];
    b.mechanism(to, &ratio(1, 8), MechanismKind::Gaussian(folds));
    b.finish()
}

/// A value between two constants, or as it is.
fn between(rng: &mut Rng, b: &mut ProgramBuilder, value: NodeId) -> NodeId {
    let ty = b.ty(value);
    let mut constant = |rng: &mut Rng| b.constant(u128::from(rng.below(256)) & ty.mask(), ty);
    let (x, y) = (constant(rng), constant(rng));
    match if ty.signed { 0 } else { rng.below(4) } {
        0 => {
            let low = b.max(value, x);
            b.min(low, y)
        }
        1 if !ty.signed => b.clamp(value, rng.below(8).into()),
        2 => b.min(value, y),
        _ => value,
    }
}

/// A bit that is set in one cell.
fn inside(
    rng: &mut Rng,
    b: &mut ProgramBuilder,
    (selector, cell): (NodeId, u64),
    nodes: &[NodeId],
) -> NodeId {
    let ty = b.ty(selector);
    let constant = |b: &mut ProgramBuilder, number: u64| b.constant(u128::from(number) & ty.mask(), ty);
    let bit = match rng.below(4) {
        0 if cell > 0 => {
            let edge = constant(b, cell);
            let below = b.lt(selector, edge);
            b.not(below)
        }
        0 | 1 => {
            let edge = constant(b, cell + 1);
            b.lt(selector, edge)
        }
        _ => {
            let number = constant(b, cell);
            b.eq(selector, number)
        }
    };
    let bits: Vec<NodeId> = nodes.iter().copied().filter(|n| b.ty(*n) == ValueType::BIT).collect();
    let other = pick(rng, &bits);
    match rng.below(6) {
        0 => b.and(bit, other),
        1 => b.or(bit, other),
        _ => bit,
    }
}

/// One more node.
fn step(rng: &mut Rng, b: &mut ProgramBuilder, nodes: &[NodeId]) -> NodeId {
    let x = pick(rng, nodes);
    let ty = b.ty(x);
    let alike: Vec<NodeId> = nodes.iter().copied().filter(|n| b.ty(*n) == ty).collect();
    let y = pick(rng, &alike);
    let bits: Vec<NodeId> = nodes.iter().copied().filter(|n| b.ty(*n) == ValueType::BIT).collect();
    let c = pick(rng, &bits);
    match rng.below(16) {
        0 => b.add(x, y),
        1 => b.sub(x, y),
        2 => b.mul(x, y),
        3 => b.and(x, y),
        4 => b.or(x, y),
        5 => b.xor(x, y),
        6 => b.not(x),
        7 => b.lt(x, y),
        8 => b.min(x, y),
        9 => b.max(x, y),
        10 => b.select(c, x, y),
        11 => b.mask(c, x),
        12 => b.shl(x, 1),
        13 => b.shr(x, 1),
        14 if !ty.signed => b.popcount(x, ValueType::u(3)),
        _ => {
            let width = ty.width.max(2) + rng.below(3) as u8;
            b.cast(x, pick(rng, &[ValueType::u(width), ValueType::i(width)]))
        }
    }
}

/// What a party's columns hold in one row, its `present` last: each set of values once, and none.
fn states(program: &Program, party: PartyId) -> Vec<Vec<u128>> {
    let own = program.columns.iter().filter(|c| c.holder.only() == Some(party) && !c.is_built_in());
    let (mut all, mut absent) = (vec![Vec::new()], Vec::new());
    for column in own {
        let values = 0..=column.ty.mask();
        all = all.iter().flat_map(|state| values.clone().map(|v| [&state[..], &[v]].concat())).collect();
        absent.push(column.without(party).expect("a column of its own"));
    }
    let present = |mut state: Vec<u128>, present: u128| {
        state.push(present);
        state
    };
    let mut states: Vec<_> = all.into_iter().map(|state| present(state, 1)).collect();
    states.push(present(absent, 0));
    states
}

/// Rows of all data that parties can have: the terms of each fold, by state of party 0, of party 1 and of the
/// public column.
struct AllRows {
    sizes: [usize; 3],
    /// By fold.
    terms: Vec<Vec<i128>>,
}

impl AllRows {
    fn of(program: &Program) -> Self {
        let states = PARTIES.map(|party| states(program, party));
        let sizes = [states[0].len(), states[1].len(), 2];
        let lanes = sizes.iter().product();
        let (mut values, all) = (NodeValues::default(), vec![true; program.row.nodes.len()]);
        let mut leaf = |op: &Op, out: &mut [u128]| {
            let Op::Column(c) = op else { unreachable!("a row section has columns only") };
            let column = &program.columns[*c as usize];
            let place = |party: PartyId| {
                let own = program.columns[..*c as usize].iter().filter(|c| c.holder.only() == Some(party));
                if column.is_built_in() { usize::MAX } else { own.filter(|c| !c.is_built_in()).count() }
            };
            for (lane, out) in out.iter_mut().enumerate() {
                let at = [lane / sizes[2] / sizes[1], lane / sizes[2] % sizes[1], lane % sizes[2]];
                *out = column.holder.only().map_or(at[2] as u128, |party| {
                    let state = &states[party.index()][at[party.index()]];
                    *state.get(place(party)).unwrap_or(&state[state.len() - 1])
                });
            }
            Ok(())
        };
        values.evaluate(&program.row, &all, lanes, &mut leaf).expect("all columns are known");
        let term = |id: NodeId| {
            let ty = program.row.ty(id);
            values.get(id).iter().map(|v| ty.number(*v).expect("a small type")).collect()
        };
        Self { sizes, terms: program.folds.iter().map(|fold| term(fold.value())).collect() }
    }

    fn lane(&self, at: [usize; 3]) -> usize {
        (at[0] * self.sizes[1] + at[1]) * self.sizes[2] + at[2]
    }

    /// The largest sum of squared changes over variances when one row of `party` changes, comes or goes.
    fn worst(&self, party: PartyId, variances: &[f64]) -> f64 {
        let (own, other) = (party.index(), 1 - party.index());
        let mut worst = 0.0f64;
        for outer in 0..self.sizes[other] * self.sizes[2] {
            let lane = |state: usize| {
                let mut at = [0, 0, outer % self.sizes[2]];
                (at[own], at[other]) = (state, outer / self.sizes[2]);
                self.lane(at)
            };
            let mut terms: Vec<Vec<i128>> =
                (0..self.sizes[own]).map(|s| self.terms.iter().map(|fold| fold[lane(s)]).collect()).collect();
            if outer / self.sizes[2] == self.sizes[other] - 1 {
                // Nobody else has the row: it may not be in the table at all.
                terms.push(vec![0; self.terms.len()]);
            }
            terms.sort_unstable();
            terms.dedup();
            for (i, a) in terms.iter().enumerate() {
                for b in &terms[..i] {
                    let square = |((x, y), v): ((&i128, &i128), &f64)| ((x - y) as f64).powi(2) / v;
                    worst = worst.max(a.iter().zip(b).zip(variances).map(square).sum());
                }
            }
        }
        worst
    }
}

/// The most of twice rho that one row of those who are protected costs, by variances that are `shrunk`.
fn cost(program: &Program, charge: &MechanismCharge, rows: &AllRows, shrunk: f64) -> f64 {
    let variance = |output| to_f64(&charge.sigma2(output).expect("in range")) * shrunk;
    let variances: Vec<f64> = (0..program.folds.len()).map(variance).collect();
    // A sum that no row changes has no noise, and needs none.
    let free = variances.iter().enumerate().filter(|(_, v)| **v == 0.0);
    for (fold, _) in free {
        assert!(rows.terms[fold].iter().all(|term| *term == 0));
    }
    let variances: Vec<f64> = variances.into_iter().map(|v| if v == 0.0 { 1.0 } else { v }).collect();
    let protected = PARTIES.into_iter().filter(|party| charge.to != Viewer::Party(*party));
    let worst = protected.map(|party| rows.worst(party, &variances)).fold(0.0, f64::max);
    worst / (2.0 * to_f64(&charge.rho))
}

#[test]
fn no_row_costs_more_than_rho_in_random_programs() {
    let policy = VerifierPolicy { max_rho: Rational::from_integer(1.into()), ..VerifierPolicy::default() };
    let (mut accepted, mut signed, mut moving, mut exact, mut caught) = (0, 0, 0, 0, 0);
    for seed in 0..PROGRAMS {
        let mut bytes = [5; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        let program = random(&mut Seed::from_bytes(bytes).into_rng());
        let Ok(audit) = verify(&program, &policy, 1000) else { continue };
        let (charge, rows) = (&audit.charges[0], AllRows::of(&program));
        let cost_of = |shrunk| cost(&program, charge, &rows, shrunk);
        let most = cost_of(1.0);
        assert!(most <= 1.0 + 1e-9, "{most} of rho: {charge:?}\n{}", program.to_text());
        accepted += 1;
        signed += usize::from(program.folds.iter().any(|fold| fold.ty().signed));
        moving += usize::from(charge.changes.iter().any(|change| change.moves > 0));
        // The noise of a program that is charged exactly has no room: less of it is noticed.
        exact += usize::from(most > 1.0 - 1e-9);
        caught += usize::from(cost_of(0.9) > 1.0 + 1e-9);
    }
    println!("{accepted} accepted: {signed} signed, {moving} whose rows move, {exact} charged exactly");
    assert!(accepted >= ACCEPTED && signed > accepted / 10 && moving > accepted / 20);
    assert!(exact > accepted / 4 && caught >= exact, "a tenth less noise is noticed {caught} times");
}
