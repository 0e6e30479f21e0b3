//! Rows of n parties as circuits: what they compute, and that gates and depth are what the formulas say.

use base::{PartyId, Rng, Seed};
use circuits::Lit;
use circuits::Wired;
use program::lower::combine::{Combine, SelectionCircuit, lanes};
use program::lower::{BooleanFold, BooleanPlan, EntryRule, INDEX_WORD, Piece, hoist, lower_boolean, unroll};
use program::{Class, Holder, Lookup, Program, ProgramBuilder, RowOrder, ValueType};

/// The P2P problem of the paper: the customer's bit says which rows it asks for.
fn select(order: RowOrder, width: u8, found: bool) -> Program {
    let mut b = ProgramBuilder::new("select", Class::Exact, ["customer", "one", "two"]);
    let key = b.column("value", ValueType::u(width), Holder::Shared);
    let wanted = b.column("wanted", ValueType::BIT, PartyId(0));
    let best = b.best(order, key, wanted);
    b.release();
    let (key, index) = (b.total(best), b.index(best));
    b.reveal("key", PartyId(0), key);
    b.reveal("row", PartyId(0), index);
    if found {
        let found = b.found(best);
        b.reveal("found", PartyId(0), found);
    }
    b.finish()
}

fn total(ty: ValueType, sum: ValueType) -> Program {
    let mut b = ProgramBuilder::new("total", Class::Exact, ["a", "b", "c"]);
    let value = b.column("value", ty, Holder::Shared);
    let fold = b.sum(value, sum);
    b.release();
    let total = b.total(fold);
    b.reveal("total", PartyId(1), total);
    b.finish()
}

fn rng(label: &str) -> Rng {
    Seed::from_bytes([9; 32]).fork(label).into_rng()
}

/// Evaluates a piece on one lane; `input` gives the bit of (word, bit).
fn run(piece: &Piece, input: &dyn Fn(u32, u16) -> bool) -> Vec<bool> {
    let values = piece.circuit.evaluate(|i| input(i.word, i.bit));
    piece.roots.iter().map(|l| values[l.wire()] ^ l.inverted()).collect()
}

/// Runs a plan of one tree level by level in the clear: the fold's word. Counts gates and depth on the way.
fn run_levels(plan: &BooleanPlan, rows: &[[u128; 2]]) -> (u128, u64, u64) {
    let leaf = |row: usize| {
        run(&plan.leaf, &|word, bit| {
            let value = if word == INDEX_WORD { row as u128 } else { rows[row][word as usize] };
            value >> bit & 1 == 1
        })
    };
    let combine = plan.trees().next().expect("one tree");
    let mut lanes: Vec<Vec<bool>> = (0..rows.len()).map(leaf).collect();
    let mut gates = plan.leaf.circuit.and_gates() * rows.len();
    let mut depth = plan.leaf.circuit.and_depth();
    for level in 0..plan.levels() {
        assert_eq!(lanes.len() as u64, plan.lanes(level));
        assert!(lanes.iter().all(|l| l.len() == combine.lane_bits(level)));
        let merge = plan.merge(level);
        let pair = |pair: &[Vec<bool>]| match pair {
            [left, right] => run(&merge, &|word, bit| [left, right][word as usize][usize::from(bit)]),
            last => pass(combine, level, &last[0]),
        };
        gates += merge.circuit.and_gates() * (lanes.len() / 2);
        depth += merge.circuit.and_depth();
        lanes = lanes.chunks(2).map(pair).collect();
    }
    let finish = plan.finish();
    gates += finish.circuit.and_gates();
    depth += finish.circuit.and_depth();
    let word = run(&finish, &|_, bit| lanes[0][usize::from(bit)]);
    (number(&word), gates as u64, depth as u64)
}

fn pass(combine: &Combine, level: u32, lane: &[bool]) -> Vec<bool> {
    let lits: Vec<Lit> = lane.iter().map(|b| Lit::constant(*b)).collect();
    combine.pass(level, &lits).iter().map(|l| l.as_constant().expect("a constant")).collect()
}

fn number(bits: &[bool]) -> u128 {
    bits.iter().enumerate().fold(0, |n, (i, b)| n | u128::from(*b) << i)
}

/// Outputs of a stand-alone circuit whose inputs are the values in their order.
fn run_flat(wired: &Wired, values: &[u128]) -> Vec<u128> {
    wired.check().expect("an unrolled program is well formed");
    let bits = |(word, value): (&circuits::InputWord, &u128)| {
        (0..word.width).map(|bit| value >> bit & 1 == 1).collect()
    };
    let inputs: Vec<Vec<bool>> = wired.inputs.iter().zip(values).map(bits).collect();
    wired.evaluate(&inputs).iter().map(|word| number(word)).collect()
}

/// Values by party, as an unrolled `select` wants them: the customer's bits, then each provider's rows.
fn by_party(rows: &[[u128; 2]], owner: &dyn Fn(u64) -> PartyId) -> Vec<u128> {
    let mut values: Vec<u128> = rows.iter().map(|r| r[1]).collect();
    for party in [1, 2].map(PartyId) {
        values.extend(rows.iter().enumerate().filter(|(i, _)| owner(*i as u64) == party).map(|(_, r)| r[0]));
    }
    values
}

/// `[key, row, found]` from the definition.
fn expected(order: RowOrder, rows: &[[u128; 2]]) -> [u128; 3] {
    let valid = rows.iter().enumerate().filter(|(_, r)| r[1] == 1);
    // `min_by_key` gives the first of equal ones, and so does `max_by_key` of the reversed rows.
    let best = match order {
        RowOrder::Least => valid.min_by_key(|(_, r)| r[0]),
        RowOrder::Greatest => valid.rev().max_by_key(|(_, r)| r[0]),
    };
    best.map_or([0; 3], |(row, r)| [r[0], row as u128, 1])
}

fn table(rng: &mut Rng, rows: u64, width: u8, ones: u64, low: u64) -> Vec<[u128; 2]> {
    let span = (1u64 << width.min(60)) - 2 * low;
    let value = |rng: &mut Rng| {
        // Half of the values are of a few, so that there are ties.
        let below = if rng.below(2) == 0 { span.min(3) } else { span };
        u128::from(low + rng.below(below))
    };
    (0..rows).map(|_| [value(rng), u128::from(rng.below(8) < ones)]).collect()
}

#[test]
fn best_rows_are_found_with_the_gates_that_the_formulas_say() {
    let mut rng = rng("best");
    let owner = |row: u64| PartyId(1 + (row % 2) as u8);
    for rows in [1, 2, 3, 4, 5, 7, 8, 9, 31, 33] {
        for (order, width) in [RowOrder::Least, RowOrder::Greatest].into_iter().zip([16, 16]).chain([
            (RowOrder::Least, 1),
            (RowOrder::Greatest, 2),
            (RowOrder::Greatest, 3),
            (RowOrder::Least, 5),
            (RowOrder::Greatest, 40),
        ]) {
            for shape in SelectionCircuit::ALL {
                // The paper's shape takes the worst key for "not valid"; of one bit there is hardly another.
                if shape == SelectionCircuit::Paper && width == 1 {
                    continue;
                }
                let program = select(order, width, true);
                let plan = lower_boolean(&program, shape, rows, EntryRule::Derived);
                let combine = *plan.trees().next().expect("one tree");
                let flat = unroll(&program, rows, shape, &owner).expect("few rows");
                assert_eq!(flat.and_gates() as u64, combine.and_gates(), "{shape} {rows} {width}");
                // In one circuit the valid bits of width 2 are there before the comparison waits for them.
                let depth = flat.depth() as u64;
                assert!(
                    depth == combine.depth() || width == 2 && depth < combine.depth(),
                    "{shape} {rows} {width}"
                );
                let low = u64::from(shape == SelectionCircuit::Paper);
                for ones in [0, 1, 4, 8] {
                    let table = table(&mut rng, rows, width, ones, low);
                    let wanted = expected(order, &table);
                    let (word, gates, depth) = run_levels(&plan, &table);
                    let parts =
                        [word % (1 << width), word >> width & u128::from(u32::MAX), word >> (width + 32)];
                    assert_eq!(parts, wanted, "{shape} {order:?} {table:?}");
                    assert_eq!((gates, depth), (combine.and_gates(), combine.depth()), "{shape} {rows}");
                    assert_eq!(
                        run_flat(&flat, &by_party(&table, &owner)),
                        wanted,
                        "{shape} {order:?} {table:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_papers_circuit_has_the_papers_gates() {
    let owner = |row: u64| PartyId(1 + (row % 2) as u8);
    let program = select(RowOrder::Greatest, 16, false);
    for (rows, gates, depth) in [(100, 5_461, 120), (5_000, 304_955, 222)] {
        let flat = unroll(&program, rows, SelectionCircuit::Paper, &owner).expect("few rows");
        assert_eq!((flat.and_gates(), flat.depth()), (gates, depth));
        let combine = Combine::new(&program, 0, SelectionCircuit::Paper, rows).expect("a tree");
        assert_eq!((combine.and_gates(), combine.depth()), (gates as u64, depth as u64));
    }
}

#[test]
fn the_other_circuits_are_smaller_and_shallower() {
    let program = select(RowOrder::Greatest, 16, true);
    for (shape, rows, gates, depth) in [
        (SelectionCircuit::Small, 100, 3_484, 127),
        (SelectionCircuit::Small, 5_000, 174_987, 235),
        (SelectionCircuit::Shallow, 100, 6_157, 43),
        (SelectionCircuit::Shallow, 5_000, 309_960, 79),
    ] {
        let combine = Combine::new(&program, 0, shape, rows).expect("a tree");
        assert_eq!((combine.and_gates(), combine.depth()), (gates, depth), "{shape} {rows}");
    }
}

#[test]
fn the_paper_says_no_match_by_its_worst_key() {
    for (order, none) in [(RowOrder::Greatest, 0), (RowOrder::Least, 0xffff)] {
        let program = select(order, 16, false);
        let plan = lower_boolean(&program, SelectionCircuit::Paper, 5, EntryRule::Derived);
        let (word, ..) = run_levels(&plan, &[[7, 0], [9, 0], [3, 0], [1, 0], [8, 0]]);
        assert_eq!(word, none, "the key says so, and the row is 0");
        let (word, ..) = run_levels(&plan, &[[7, 0], [9, 1], [3, 1], [9, 1], [3, 0]]);
        let wanted = expected(order, &[[7, 0], [9, 1], [3, 1], [9, 1], [3, 0]]);
        assert_eq!([word % (1 << 16), word >> 16], wanted[..2]);
    }
}

#[test]
fn sums_grow_as_the_rows_add_up() {
    let mut rng = rng("sums");
    for (ty, sum) in [
        (ValueType::BIT, ValueType::u(20)),
        (ValueType::u(7), ValueType::u(7)),
        (ValueType::u(7), ValueType::u(9)),
        (ValueType::i(6), ValueType::i(6)),
        (ValueType::i(6), ValueType::i(30)),
        (ValueType::u(128), ValueType::u(128)),
    ] {
        for rows in [1, 2, 3, 6, 13, 64] {
            let program = total(ty, sum);
            let plan = lower_boolean(&program, SelectionCircuit::Small, rows, EntryRule::Derived);
            let table: Vec<[u128; 2]> =
                (0..rows).map(|_| [u128::from_le_bytes(rng.bytes()) & ty.mask(), 0]).collect();
            let number = |v: u128| ty.to_signed(v) as u128;
            let wanted = table.iter().fold(0u128, |s, r| s.wrapping_add(number(r[0]))) & sum.mask();
            let (word, gates, depth) = run_levels(&plan, &table);
            let combine = plan.trees().next().expect("one tree");
            assert_eq!(word, wanted, "{ty} {sum} {rows}");
            assert_eq!((gates, depth), (combine.and_gates(), combine.depth()), "{ty} {sum} {rows}");
        }
    }
}

#[test]
fn nothing_that_one_party_knows_is_a_gate() {
    let mut b = ProgramBuilder::new("known", Class::Exact, ["a", "b", "c"]);
    let (x, y) = (b.column("x", ValueType::u(8), PartyId(1)), b.column("y", ValueType::u(8), PartyId(1)));
    let public = b.column("p", ValueType::u(8), None);
    let z = b.column("z", ValueType::BIT, PartyId(2));
    let product = b.mul(x, y);
    let own = b.sum(product, ValueType::u(30));
    let all = b.sum(public, ValueType::u(30));
    let less = b.lt(x, y);
    let list = b.collect(less);
    let best = b.best(RowOrder::Least, product, z);
    b.release();
    let found = b.found(best);
    b.reveal("found", PartyId(0), found);
    b.reveal_rows("rows", PartyId(0), list);
    let program = b.finish();
    let plan = lower_boolean(&program, SelectionCircuit::Small, 9, EntryRule::Derived);
    assert_eq!(plan.leaf.circuit.and_gates(), 0);
    let alone = |fold: u32| plan.folds[fold as usize];
    assert_eq!(alone(own), BooleanFold::Alone(Some(PartyId(1))));
    assert_eq!(alone(all), BooleanFold::Alone(None));
    assert_eq!(alone(list), BooleanFold::Rows);
    assert!(matches!(alone(best), BooleanFold::Tree(_)));
    assert_eq!(plan.clear_roots(&program, PartyId(0)), [public]);
    let mut own = vec![z, public];
    own.sort_unstable();
    assert_eq!(plan.clear_roots(&program, PartyId(2)), own);
}

#[test]
fn an_unrolled_program_is_bounded_and_draws_no_noise() {
    let program = select(RowOrder::Least, 16, true);
    let owner = |_| PartyId(1);
    let wrong =
        |rows| unroll(&program, rows, SelectionCircuit::Small, &owner).map(|_| ()).expect_err("out of range");
    for rows in [0, program::lower::UNROLLED_ROWS + 1] {
        assert!(wrong(rows).to_string().contains("rows of an unrolled program"), "{}", wrong(rows));
    }
    let nobody =
        unroll(&program, 2, SelectionCircuit::Small, &|_| PartyId(3)).map(|_| ()).expect_err("party 3");
    assert!(nobody.to_string().contains("does not take part"), "{nobody}");
}

#[test]
fn shapes_have_names_and_levels_halve() {
    for shape in SelectionCircuit::ALL {
        assert_eq!(shape.to_string().parse::<SelectionCircuit>().expect("its own name"), shape);
    }
    assert!(
        "large"
            .parse::<SelectionCircuit>()
            .expect_err("no such shape")
            .to_string()
            .contains("paper, small or shallow")
    );
    assert_eq!([0, 1, 2, 3].map(|level| lanes(5, level)), [5, 3, 2, 1]);
    assert_eq!(lanes(1 << 32, 32), 1);
}

/// Where parties need not follow the program they enter columns only, and every operation is gates.
#[test]
fn columns_are_all_that_enters() {
    let mut b = program::ProgramBuilder::new("clamped", program::Class::Exact, ["a", "b", "c"]);
    let spent = b.column("spent", program::ValueType::u(16), PartyId(0));
    let wanted = b.column("wanted", program::ValueType::BIT, PartyId(1));
    let most = b.clamp(spent, 100);
    let value = b.mask(wanted, most);
    b.sum(value, program::ValueType::u(20));
    b.release();
    let program = b.finish();
    let entered = |inputs: EntryRule| -> Vec<u32> {
        let plan = lower_boolean(&program, SelectionCircuit::Small, 5, inputs);
        let words = plan.leaf.circuit.wires.iter().filter_map(|wire| match wire {
            circuits::WireDriver::Input(input) => Some(input.word),
            _ => None,
        });
        let mut words: Vec<u32> = words.collect();
        words.dedup();
        words.sort_unstable();
        words
    };
    assert_eq!(entered(EntryRule::Derived), [wanted.0, most.0], "the clamped value is the owner's word");
    assert_eq!(entered(EntryRule::Columns), [spent.0, wanted.0], "the clamp is gates");
    let plan = lower_boolean(&program, SelectionCircuit::Small, 5, EntryRule::Columns);
    for (spent, wanted) in [(7u128, 1), (100, 1), (101, 1), (65535, 1), (65535, 0)] {
        let wires = plan.leaf.circuit.evaluate(|input| match input.word {
            0 => spent >> input.bit & 1 == 1,
            _ => wanted == 1,
        });
        let value = plan.leaf.roots.iter().enumerate();
        let value = value.fold(0, |v, (i, l)| v | u128::from(wires[l.wire()] ^ l.inverted()) << i);
        assert_eq!(value, if wanted == 1 { spent.min(100) } else { 0 });
    }
}

/// One more threshold of a lookup is a comparison, an OR and a selection: no maximum, no clamp and no square
/// of its own.
#[test]
fn what_is_done_to_all_values_is_done_once() {
    const WIDTH: u64 = 12;
    let gates = |thresholds: u64| {
        let ty = ValueType::u(WIDTH as u8);
        let mut b = ProgramBuilder::new("squares", Class::Exact, ["a", "b"]);
        let after = b.column("after", ty, PartyId(0));
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for i in 0..thresholds {
            let key = b.column(&format!("time{i}"), ty, PartyId(1));
            keys.push(keys.last().map_or(key, |before| b.max(*before, key)));
            let value = b.column(&format!("value{i}"), ty, PartyId(1));
            let value = b.clamp(value, 1000);
            values.push(b.mul(value, value));
        }
        let square = b.lookup(Lookup { after, until: None, keys, values });
        b.sum(square, ValueType::u(40));
        let program = hoist(&b.finish());
        lower_boolean(&program, SelectionCircuit::Small, 5, EntryRule::Columns).leaf.circuit.and_gates()
            as u64
    };
    for thresholds in 1..5 {
        assert_eq!(gates(thresholds + 1) - gates(thresholds), 2 * WIDTH + 1);
    }
}
