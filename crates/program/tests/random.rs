//! Random well-typed programs: text, facts and lowering against the meaning of the operations.

use base::{PartyId, Rng, Seed};
use program::eval::NodeValues;
use program::lower::combine::SelectionCircuit;
use program::lower::{
    BooleanFold, EntryRule, FoldPlan, Lowering, factor, hoist, lower_boolean, lower_pair, lower_release,
    lower_row,
};
use program::{
    Class, ColumnSource, Guarded, Lookup, NodeId, Op, Program, ProgramBuilder, ValueType, VerifierPolicy,
    verify,
};
use proptest::prelude::*;

const LANES: usize = 24;

fn rng(seed: u64) -> Rng {
    let mut bytes = [1; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Seed::from_bytes(bytes).into_rng()
}

fn pick<T: Copy>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize]
}

fn number(rng: &mut Rng, ty: ValueType) -> u128 {
    let any = u128::from_le_bytes(rng.bytes());
    [0, 1, any % 4, ty.max(), any, any][rng.below(6) as usize] & ty.mask()
}

fn some_type(rng: &mut Rng) -> ValueType {
    let width = [1, 2, 3, 8, 13, 64, 127, 128, 1 + rng.below(128) as u8][rng.below(9) as usize];
    if width > 1 && rng.below(3) == 0 { ValueType::i(width) } else { ValueType::u(width) }
}

/// A program of two parties with `count` random row nodes, every one of them summed.
fn random(rng: &mut Rng, count: usize) -> Program {
    let mut b = ProgramBuilder::new("random", Class::Exact, ["p0", "p1"]);
    let types = [some_type(rng), some_type(rng), ValueType::u(6), ValueType::BIT];
    let mut nodes = Vec::new();
    for (i, ty) in types.into_iter().enumerate() {
        for (o, owner) in [None, Some(0), Some(1)].into_iter().enumerate() {
            let source = ColumnSource::Data { absent: owner.map_or(0, |_| number(rng, ty)) };
            nodes.push(b.column_from(&format!("c{i}-{o}"), ty, owner.map(PartyId), source));
        }
    }
    nodes.extend([0, 1].map(|party| b.present(PartyId(party))));
    for _ in 0..count {
        let node = step(rng, &mut b, &nodes);
        nodes.push(node);
    }
    for node in nodes {
        let ty = b.ty(node);
        let width = ty.width.saturating_add(rng.below(40) as u8).min(128);
        b.sum(node, if ty.signed { ValueType::i(width) } else { ValueType::u(width) });
    }
    b.finish()
}

/// One more node, of any operation that the chosen operand's type allows.
fn step(rng: &mut Rng, b: &mut ProgramBuilder, nodes: &[NodeId]) -> NodeId {
    let x = pick(rng, nodes);
    let ty = b.ty(x);
    let alike: Vec<NodeId> = nodes.iter().copied().filter(|n| b.ty(*n) == ty).collect();
    let y = pick(rng, &alike);
    let bits: Vec<NodeId> = nodes.iter().copied().filter(|n| b.ty(*n) == ValueType::BIT).collect();
    let c = pick(rng, &bits);
    let by = rng.below(128) as u8;
    let narrow = ty.width <= 32;
    match rng.below(if ty.signed { 17 } else { 23 }) {
        0 => b.add(x, y),
        1 => b.sub(x, y),
        2 if narrow => b.mul(x, y),
        3 => b.and(x, y),
        4 => b.or(x, y),
        5 => b.xor(x, y),
        6 => b.not(x),
        7 => b.lt(x, y),
        8 => {
            let value = number(rng, ty);
            let constant = b.constant(value, ty);
            b.eq(x, constant)
        }
        9 => b.min(x, y),
        10 => b.max(x, y),
        11 => b.shl(x, by % 8),
        12 => b.shr(x, by),
        13 => b.select(c, x, y),
        14 => b.mask(c, x),
        15 => {
            let value = number(rng, ty);
            b.constant(value, ty)
        }
        17 | 18 => {
            let cap = number(rng, ty);
            b.clamp(x, cap)
        }
        19 => b.popcount(x, ValueType::u(8)),
        20 if narrow => b.div(x, y),
        21 if narrow => b.isqrt(x),
        22 => {
            let mut keys: Vec<NodeId> = (0..1 + rng.below(3)).map(|_| pick(rng, &alike)).collect();
            for j in 1..keys.len() {
                // Some keys are made maxima of the one before by their owner, some are not.
                if rng.below(2) == 0 {
                    keys[j] = b.max(keys[j - 1], keys[j]);
                }
            }
            let until = (rng.below(2) == 0).then_some(y);
            let count = if until.is_some() { keys.len() * (keys.len() + 1) / 2 } else { keys.len() };
            let mut values: Vec<NodeId> = (0..count).map(|_| pick(rng, &alike)).collect();
            let (cap, change) = (number(rng, ty), rng.below(10));
            for value in &mut values {
                *value = match change {
                    0 => b.clamp(*value, cap),
                    1 => b.mask(c, *value),
                    2 if narrow => b.mul(*value, *value),
                    3 => b.shr(*value, by),
                    4 => {
                        let cap = b.constant(cap, ty);
                        b.lt(cap, *value)
                    }
                    _ => *value,
                };
            }
            b.lookup(Lookup { after: x, until, keys, values })
        }
        _ => {
            let to = some_type(rng);
            b.cast(x, to)
        }
    }
}

/// Random columns, and the values of all nodes.
fn values(rng: &mut Rng, program: &Program) -> NodeValues {
    let columns: Vec<Vec<u128>> =
        program.columns.iter().map(|c| (0..LANES).map(|_| number(rng, c.ty)).collect()).collect();
    evaluate(program, &|c| columns[c as usize].clone())
}

/// The values of all nodes of a program with the columns of another one's values; columns come first in both.
fn again(program: &Program, before: &NodeValues) -> NodeValues {
    evaluate(program, &|c| before.get(NodeId(c)).to_vec())
}

/// Whether a node depends on a column of a kind.
fn reads(program: &Program, root: NodeId, kind: &dyn Fn(u32) -> bool) -> bool {
    let wanted = program::eval::closure(&program.row, [root]);
    let mut nodes = program.row.nodes.iter().zip(wanted).filter(|(_, wanted)| *wanted);
    nodes.any(|(node, _)| matches!(node.op, Op::Column(c) if kind(c)))
}

fn evaluate(program: &Program, columns: &dyn Fn(u32) -> Vec<u128>) -> NodeValues {
    let mut values = NodeValues::default();
    let all = vec![true; program.row.nodes.len()];
    let mut leaf = |op: &Op, out: &mut [u128]| {
        let Op::Column(c) = op else { unreachable!("a row section has columns only") };
        out.copy_from_slice(&columns(*c));
        Ok(())
    };
    values.evaluate(&program.row, &all, LANES, &mut leaf).unwrap();
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn text_round_trips(seed: u64) {
        let program = random(&mut rng(seed), 30);
        let text = program.to_text();
        let again = Program::parse(&text).unwrap();
        prop_assert_eq!(&again, &program);
        prop_assert_eq!(again.hash(), program.hash());
    }

    /// Ranges hold; where a node is not zero its guards hold.
    #[test]
    fn facts_are_sound(seed: u64) {
        let mut rng = rng(seed);
        let program = random(&mut rng, 40);
        let (facts, values) = (program.row_facts(), values(&mut rng, &program));
        let number = |id: NodeId, lane: usize| program.row.ty(id).number(values.get(id)[lane]);
        for (id, fact) in program.row.ids().zip(&facts) {
            prop_assert!(fact.bounds.is_some() || program.row.ty(id) == ValueType::u(128));
            for lane in 0..LANES {
                let value = values.get(id)[lane];
                if let Some(b) = fact.bounds {
                    let of = number(id, lane);
                    let inside = of.is_some_and(|of| (b.low..=b.high).contains(&of));
                    prop_assert!(inside, "v{} = {value} is outside {b:?}", id.0);
                }
                for (guarded, range) in fact.guards.iter().filter(|_| value != 0) {
                    let at = match guarded {
                        Guarded::Node(node) => node,
                        Guarded::Column(c) => {
                            let of = |n: &NodeId| program.row.node(*n).op == Op::Column(c);
                            program.row.ids().find(of).unwrap()
                        }
                    };
                    let holds = number(at, lane).is_some_and(|of| (range.low..=range.high).contains(&of));
                    prop_assert!(holds, "v{} is {value} where v{} is not in {range:?}", id.0, at.0);
                }
            }
        }
    }

    /// In rows that a party does not have, values lie in the ranges for it; and a program that passes has
    /// nothing to add there unless it asks.
    #[test]
    fn what_is_said_of_absent_rows_holds(seed: u64, party in 0u8..2) {
        let mut rng = rng(seed);
        let (program, party) = (random(&mut rng, 40), PartyId(party));
        let ranges = program.ranges_without(party);
        let without = |c: u32| program.columns[c as usize].without(party);
        let others: Vec<Vec<u128>> =
            program.columns.iter().map(|c| (0..LANES).map(|_| number(&mut rng, c.ty)).collect()).collect();
        let values = evaluate(&program, &|c| {
            without(c).map_or(others[c as usize].clone(), |v| vec![v; LANES])
        });
        for (id, range) in program.row.ids().zip(&ranges) {
            for value in values.get(id) {
                prop_assert!((range.low..=range.high).contains(value), "v{} = {value} is outside \
                    {range:?}", id.0);
            }
        }
        let facts = program.row_facts();
        for (fold, demands) in program.folds.iter().zip(program.fold_demands()) {
            let (id, mut alone) = (fold.value(), program.clone());
            let zero = values.get(id).iter().all(|value| *value == 0);
            prop_assert!(!demands.has(party) || zero);
            // R9 alone: everything but this fold, and what else there is to refuse, left out.
            alone.folds = vec![fold.clone()];
            let policy = VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() };
            let passes = match verify(&alone, &policy, 0) {
                Ok(_) => true,
                Err(error) => {
                    prop_assert!(error.to_string().contains("R9 (absent rows)"), "{error}");
                    false
                }
            };
            let present = format!("present p{}", party.0);
            let asks = reads(&alone, id, &|c| program.columns[c as usize].name == present);
            prop_assert!(!passes || zero || asks || !facts[id.index()].owners.has(party));
        }
    }

    /// What the two parties' shares add up to is the clear value, whoever is the sender, and with shared
    /// bits.
    #[test]
    fn shares_add_up_to_the_clear_value(seed: u64, sender in 0u8..3) {
        let mut rng = rng(seed);
        let mut program = random(&mut rng, 25);
        let before = values(&mut rng, &program);
        let old: Vec<NodeId> = program.folds.iter().map(|f| f.value()).collect();
        let shared = sender == 2;
        if shared {
            program = factor(&program);
        }
        let facts = program.row_facts();
        let plan = if shared { lower_pair(&program) } else { lower_row(&program, PartyId(sender)) };
        prop_assert!(shared || plan.compares.is_empty());
        let values = again(&program, &before);
        for lane in 0..LANES {
            let mut random = || u128::from_le_bytes(rng.bytes());
            let shares = plan.reference(&program, &facts, &|id| values.get(id)[lane], &mut random).unwrap();
            for ((place, fold), old) in plan.folds.iter().zip(&program.folds).zip(&old) {
                let owners = facts[fold.value().index()].owners;
                prop_assert_eq!(values.get(fold.value())[lane], before.get(*old)[lane]);
                match place {
                    FoldPlan::Alone(None) => prop_assert!(owners.is_public()),
                    FoldPlan::Alone(party) => prop_assert_eq!(*party, owners.only()),
                    FoldPlan::Shared(temp) => {
                        let [a, b] = shares[*temp as usize];
                        let ty = program.row.ty(fold.value());
                        let clear = ty.to_signed(values.get(fold.value())[lane]) as u128;
                        prop_assert_eq!(a.wrapping_add(b) & fold.ty().mask(), clear & fold.ty().mask());
                    }
                }
            }
        }
    }

    /// Rewritten for shares that compute everything, the values to be summed are the same, known to the same
    /// parties; so are those of the gates.
    #[test]
    fn hoisted_rows_are_the_same(seed: u64) {
        let mut rng = rng(seed);
        let program = random(&mut rng, 25);
        let hoisted = hoist(&program);
        let before = values(&mut rng, &program);
        let after = again(&hoisted, &before);
        let (facts, hoisted_facts) = (program.row_facts(), hoisted.row_facts());
        for (old, new) in program.folds.iter().zip(&hoisted.folds) {
            prop_assert_eq!(before.get(old.value()), after.get(new.value()));
            prop_assert_eq!(program.row.ty(old.value()), hoisted.row.ty(new.value()));
            let owners = [facts[old.value().index()].owners, hoisted_facts[new.value().index()].owners];
            prop_assert_eq!(owners[0], owners[1]);
        }
        let plan = lower_boolean(&hoisted, SelectionCircuit::Small, 3, EntryRule::Columns);
        for lane in 0..LANES {
            let wires = plan.leaf.circuit.evaluate(|i| after.get(NodeId(i.word))[lane] >> i.bit & 1 == 1);
            let mut roots = plan.leaf.roots.iter().map(|l| u128::from(wires[l.wire()] ^ l.inverted()));
            for (place, fold) in plan.folds.iter().zip(&hoisted.folds) {
                if matches!(place, BooleanFold::Tree(_)) {
                    let bits = roots.by_ref().take(hoisted.row.ty(fold.value()).width.into());
                    let word = bits.enumerate().fold(0, |word, (i, bit)| word | bit << i);
                    prop_assert_eq!(word, after.get(fold.value())[lane]);
                }
            }
        }
    }

    /// Gates of every operation at random widths give what `eval` gives.
    #[test]
    fn gates_mean_what_eval_says(seed: u64) {
        let mut rng = rng(seed);
        let mut b = ProgramBuilder::new("release", Class::Exact, ["p0", "p1"]);
        let (ty, bit) = (some_type(&mut rng), ValueType::BIT);
        let columns = [("x", ty), ("y", ty), ("z", bit)].map(|(n, t)| (b.column(n, t, Some(PartyId(0))), t));
        let folds = columns.map(|(node, t)| b.sum(node, t));
        b.release();
        let mut nodes = folds.map(|f| b.total(f)).to_vec();
        for _ in 0..20 {
            let node = step(&mut rng, &mut b, &nodes);
            nodes.push(node);
        }
        for (i, node) in nodes.iter().enumerate() {
            b.reveal(&format!("{i}"), PartyId(1), *node);
        }
        let program = b.finish();
        let owners = program.fold_owners();
        let plan = lower_release(&program, PartyId(1).into(), &Lowering::exact(&owners)).unwrap();
        let inputs = folds.map(|f| number(&mut rng, program.folds[f as usize].ty()));
        let mut clear = NodeValues::default();
        let all = vec![true; program.release.nodes.len()];
        clear.evaluate(&program.release, &all, 1, &mut |op, out| {
            let Op::Total(f) = op else { unreachable!("there is no noise") };
            out[0] = inputs[*f as usize];
            Ok(())
        }).unwrap();
        let word = |w: u32| match plan.words[w as usize].kind {
            program::lower::WordKind::Alone(f) => inputs[f as usize],
            _ => unreachable!("one party knows every total"),
        };
        let wires = plan.circuit.evaluate(|i| word(i.word) >> i.bit & 1 == 1);
        for (output, lits) in &plan.outputs {
            let bit = |l: &circuits::Lit| u128::from(wires[l.wire()] ^ l.inverted());
            let value = lits.iter().enumerate().fold(0, |v, (i, l)| v | bit(l) << i);
            let node = program.outputs[*output].value;
            prop_assert_eq!(value, clear.get(node)[0], "{:?}", program.release.node(node));
        }
    }
}
