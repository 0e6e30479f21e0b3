//! Marketplaces: programs against the reference, answers by hand, circuits of the paper.

use base::{PartyId, Roster, Seed};
use engine::{Clear, DrawnNoise, Engine, Entered, run_rows};
use net::Session;
use program::ShardRows;
use program::lower::combine::{Combine, SelectionCircuit};
use program::lower::{Lowering, lower_release};
use program::{Program, VerifierPolicy, verify};
use std::sync::Arc;
use studies::market::{
    CUSTOMER, MarketAnswer, MarketSample, Problem, program, provider, study_program, wired,
};

const NAMES: [&str; 4] = ["customer", "a", "b", "c"];

/// What the customer learns, by the clear engine.
fn clear(program: &Program, rows: &mut dyn ShardRows) -> MarketAnswer {
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([3; 32]));
    let totals = run_rows(&Clear, program, rows, &mut session).unwrap();
    if !program.lists.is_empty() {
        let lists = Clear.lists(program, CUSTOMER).unwrap();
        let lists = lists.run(rows.len(), &totals, &mut session).unwrap();
        let bit = |row: u64| lists[0][row as usize / 64] >> (row % 64) & 1 == 1;
        return MarketAnswer::All((0..rows.len()).map(bit).collect());
    }
    let owners = program.fold_owners();
    let plan = Arc::new(lower_release(program, CUSTOMER.into(), &Lowering::exact(&owners)).unwrap());
    let entered = Entered::whole(&plan, &totals, &mut Seed::from_bytes([4; 32]).into_rng()).unwrap();
    let release = Clear.release(&plan).unwrap();
    let outputs = release.run(&entered, &mut DrawnNoise::none(), &mut session).unwrap();
    let outputs = plan.values(&outputs.bits(0..plan.bits()));
    // In the paper's shape the score says whether there was a match.
    let found = outputs.get(2).map_or(outputs[1] != 0, |found| *found == 1);
    MarketAnswer::Best(found.then_some((outputs[0] as u64, outputs[1])))
}

#[test]
fn programs_are_what_the_reference_says() {
    for problem in Problem::ALL {
        for rows in [1, 2, 3, 7, 40, 300] {
            for seed in 0..4 {
                let sample =
                    MarketSample::new(problem, program(problem, NAMES, SelectionCircuit::Small), rows, seed);
                let found = clear(sample.program(), &mut sample.part(None));
                assert_eq!(found, sample.truth().unwrap(), "{problem}, {rows} rows, seed {seed}");
            }
        }
    }
}

#[test]
fn samples_have_matches_and_misses() {
    for problem in Problem::ALL {
        let answers: Vec<MarketAnswer> = (0..20)
            .map(|seed| {
                MarketSample::new(problem, program(problem, NAMES, SelectionCircuit::Small), 12, seed)
                    .truth()
                    .unwrap()
            })
            .collect();
        let some = |a: &MarketAnswer| {
            matches!(a, MarketAnswer::Best(Some(_))) || matches!(a, MarketAnswer::All(l) if l.contains(&true))
        };
        assert!(answers.iter().any(some), "{problem}");
        assert!(answers.windows(2).any(|pair| pair[0] != pair[1]), "{problem}");
    }
}

#[test]
fn what_the_parties_enter_adds_up() {
    for problem in Problem::ALL {
        let sample = MarketSample::new(problem, program(problem, NAMES, SelectionCircuit::Small), 9, 1);
        for (index, column) in sample.program().columns.iter().enumerate() {
            let read = |party: Option<PartyId>| {
                let mut values = vec![0; 9];
                let done = sample.part(party).read(index as u32, 0, &mut values);
                done.map(|()| values)
            };
            let whole = read(None).unwrap();
            let mut sum = vec![0; 9];
            for party in (0..4).map(PartyId).filter(|p| column.holder.held_by(*p)) {
                let own = read(Some(party)).unwrap();
                sum.iter_mut().zip(&own).for_each(|(s, v)| *s ^= v);
            }
            assert_eq!(sum, whole, "{problem} {}", column.name);
            let foreign = (0..4).map(PartyId).find(|p| !column.holder.held_by(*p));
            assert!(foreign.is_none_or(|p| read(Some(p)).is_err()));
        }
    }
}

#[test]
fn files_hold_own_columns_and_zeros_in_others_rows() {
    let sample = MarketSample::new(Problem::Car, program(Problem::Car, NAMES, SelectionCircuit::Small), 7, 2);
    let customer = sample.csv(CUSTOMER);
    assert!(customer.starts_with("id,wanted\noffer-00000,"), "{customer}");
    assert_eq!(customer.lines().count(), 8);
    let first = sample.csv(PartyId(1));
    assert!(first.starts_with("id,price,on_offer\noffer-00000,"), "{first}");
    for (row, line) in first.lines().skip(1).enumerate() {
        let own = row % 3 == 0;
        assert!(line.starts_with(&sample.key(row as u64)) && (own || line.ends_with(",0,0")), "{line}");
    }
    assert_eq!((provider(4, 4), provider(4, 1)), (PartyId(2), PartyId(0)));
}

/// A study file feeds columns of one owner: the same answers from the parties' files, at no gate more.
#[test]
fn study_programs_read_the_parties_files() {
    struct Files(Program, Vec<Vec<Vec<u128>>>, Vec<Vec<String>>);
    impl ShardRows for Files {
        fn len(&self) -> u64 {
            self.1[0].len() as u64
        }
        fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), base::Error> {
            let column = &self.0.columns[column as usize];
            let owner = column.holder.only().unwrap().index();
            let name = if owner == 0 { &column.name } else { column.name.rsplit_once('_').unwrap().0 };
            let field = self.2[owner].iter().position(|n| n == name).unwrap();
            let rows = &self.1[owner][from as usize..];
            into.iter_mut().zip(rows).for_each(|(out, row)| *out = row[field]);
            Ok(())
        }
    }
    for problem in Problem::ALL {
        let shared = program(problem, NAMES, SelectionCircuit::Small);
        let sample = MarketSample::new(problem, shared.clone(), 20, 5);
        let study = study_program(problem, NAMES);
        let texts: Vec<String> = (0..4).map(|p| sample.csv(PartyId(p))).collect();
        let split = |line: &str| line.split(',').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let names = texts.iter().map(|t| split(t.lines().next().unwrap())).collect();
        let number = |line: &str| split(line).iter().map(|v| v.parse().unwrap()).collect();
        let values = texts.iter().map(|t| t.lines().skip(1).map(number).collect()).collect();
        let found = clear(&study, &mut Files(study.clone(), values, names));
        assert_eq!(found, sample.truth().unwrap(), "{problem}");
        let gates = |p: &Program| {
            program::lower::lower_boolean(p, SelectionCircuit::Small, 20, program::lower::EntryRule::Derived)
                .leaf
                .circuit
                .and_gates()
        };
        assert_eq!(gates(&study), gates(&shared), "{problem}");
    }
}

/// Three users at known places, by hand: a tie in distance, one too far, one without the interest.
#[test]
fn distances_and_interests_by_hand() {
    struct Town;
    impl Town {
        const USERS: [[u128; 3]; 5] =
            [[0, 0, 0b111], [103, 104, 0b011], [97, 96, 0b111], [106, 108, 0b001], [65_535, 65_535, 0b111]];
    }
    struct Table(Program, [u128; 4]);
    impl ShardRows for Table {
        fn len(&self) -> u64 {
            5
        }
        fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), base::Error> {
            for (row, out) in (from as usize..).zip(into) {
                let name = self.0.columns[column as usize].name.as_str();
                *out = match ["x", "y", "interests", "at_x", "at_y", "wanted", "radius"]
                    .iter()
                    .position(|n| *n == name)
                {
                    Some(field @ 0..3) => Town::USERS[row][field],
                    Some(field) => self.1[field - 3],
                    None => 0,
                };
            }
            Ok(())
        }
    }
    let ask = |problem, question| {
        let program = program(problem, NAMES, SelectionCircuit::Small);
        clear(&program, &mut Table(program.clone(), question))
    };
    // At (100, 100): distances 5, 5, 10 and far away.
    assert_eq!(ask(Problem::MobileClosest, [100, 100, 0b010, 5]), MarketAnswer::Best(Some((1, 25))));
    assert_eq!(ask(Problem::MobileClosest, [100, 100, 0b100, 5]), MarketAnswer::Best(Some((2, 25))));
    assert_eq!(ask(Problem::MobileClosest, [100, 100, 0b010, 4]), MarketAnswer::Best(None));
    assert_eq!(ask(Problem::MobileResource, [100, 100, 0b110, 10]), MarketAnswer::Best(Some((2, 2))));
    assert_eq!(ask(Problem::MobileResource, [100, 100, 0b1000, 10]), MarketAnswer::Best(Some((1, 0))));
    let within = [false, true, true, true, false];
    assert_eq!(ask(Problem::MobileAll, [100, 100, 0b001, 10]), MarketAnswer::All(within.to_vec()));
    assert_eq!(
        ask(Problem::MobileAll, [100, 100, 0, 9]),
        MarketAnswer::All(vec![false, true, true, false, false])
    );
    assert_eq!(ask(Problem::MobileClosest, [0, 0, 0b111, 65_535]), MarketAnswer::Best(Some((0, 0))));
    // The widest distance does not wrap.
    assert_eq!(
        ask(Problem::MobileAll, [0, 65_535, 0, 65_535]),
        MarketAnswer::All(vec![true, true, true, true, true])
    );
}

#[test]
fn the_papers_circuits_as_files_have_the_papers_gates() {
    for (rows, gates, depth) in [(100, 5_461, 120), (5_000, 304_955, 222)] {
        let circuit = wired("p2p", rows, SelectionCircuit::Paper).unwrap();
        circuit.check().unwrap();
        assert_eq!((circuit.and_gates(), circuit.depth()), (gates, depth));
        assert_eq!(circuit.input_bits(CUSTOMER), rows);
        assert_eq!(circuit.input_bits(PartyId(1)), 16 * rows / 2);
    }
    let circuit = wired("p2p", 5_000, SelectionCircuit::Small).unwrap();
    assert_eq!((circuit.and_gates(), circuit.depth()), (174_987, 235));
    let circuit = wired("p2p", 5_000, SelectionCircuit::Shallow).unwrap();
    assert_eq!((circuit.and_gates(), circuit.depth()), (309_960, 79));
}

#[test]
fn stand_alone_circuits_give_the_true_answer() {
    let number = |bits: &[bool]| bits.iter().enumerate().fold(0, |n, (i, b)| n | u128::from(*b) << i);
    for problem in Problem::ALL {
        for shape in SelectionCircuit::ALL {
            let names = ["customer", "provider-1", "provider-2"];
            let sample = MarketSample::new(problem, program(problem, names, shape), 11, 4);
            let circuit = wired(&problem.to_string(), 11, shape).unwrap();
            let mut inputs = Vec::new();
            for party in (0..3).map(PartyId) {
                let held = (0..).zip(&sample.program().columns).filter(|(_, c)| c.holder.held_by(party));
                for (index, column) in held {
                    let mut values = vec![0; 11];
                    sample.part(Some(party)).read(index, 0, &mut values).unwrap();
                    let mine = |row: &usize| {
                        column.holder.only() == Some(party) || provider(*row as u64, 3) == party
                    };
                    let bits = |row: usize| (0..column.ty.width).map(|b| values[row] >> b & 1 == 1).collect();
                    inputs.extend((0..11).filter(mine).map(bits).collect::<Vec<Vec<bool>>>());
                }
            }
            let outputs = circuit.evaluate(&inputs);
            let found = match sample.truth().unwrap() {
                MarketAnswer::All(rows) => outputs == [rows],
                MarketAnswer::Best(Some((row, score))) => {
                    [number(&outputs[0]), number(&outputs[1])] == [u128::from(row), score]
                }
                MarketAnswer::Best(None) => number(&outputs[0]) == 0,
            };
            assert!(found, "{problem}, {shape}");
        }
    }
}

#[test]
fn every_program_needs_leave_for_exact_results() {
    for problem in Problem::ALL {
        let program = program(problem, NAMES, SelectionCircuit::Small);
        assert_eq!(Program::parse(&program.to_text()).unwrap(), program, "{problem}");
        let allowed = VerifierPolicy { allow_exact: true, ..VerifierPolicy::default() };
        verify(&program, &allowed, 5_000).unwrap();
        let refused = verify(&program, &VerifierPolicy::default(), 5_000).unwrap_err();
        assert!(refused.to_string().contains("exact"), "{refused}");
        assert!(
            program.outputs.iter().all(|o| o.to == CUSTOMER.into())
                && program.lists.iter().all(|l| l.to == CUSTOMER)
        );
    }
}

/// The page of the study states these.
#[test]
fn gates_per_row() {
    for (problem, gates) in [
        (Problem::P2p, 0),
        (Problem::Car, 1),
        (Problem::CloudPrice, 33),
        (Problem::CloudQuality, 33),
        (Problem::MobileAll, 940),
        (Problem::MobileClosest, 940),
        (Problem::MobileResource, 939),
    ] {
        let program = program(problem, NAMES, SelectionCircuit::Small);
        let plan = program::lower::lower_boolean(
            &program,
            SelectionCircuit::Small,
            64,
            program::lower::EntryRule::Derived,
        );
        assert_eq!(plan.leaf.circuit.and_gates(), gates, "{problem}");
        assert_eq!(
            Combine::new(&program, 0, SelectionCircuit::Small, 64).is_none(),
            problem == Problem::MobileAll
        );
    }
    assert!("bazaar".parse::<Problem>().unwrap_err().to_string().contains("there are p2p, cloud-price"));
}

/// The studies under `examples/` hold the programs that are built here.
#[test]
fn examples_hold_these_programs() {
    for (study, problem) in [
        (include_str!("../../../examples/market-p2p.toml"), Problem::P2p),
        (include_str!("../../../examples/market-car.toml"), Problem::Car),
        (include_str!("../../../examples/market-cloud.toml"), Problem::CloudPrice),
        (include_str!("../../../examples/market-mobile.toml"), Problem::MobileClosest),
    ] {
        let text = study.split("\"\"\"").nth(1).unwrap().trim_start();
        let program = Program::parse(text).unwrap();
        assert_eq!(program, study_program(problem, program.parties.clone()), "{problem}");
    }
}

/// Constants that the paper carries as wires survive both file formats.
#[test]
fn the_papers_circuit_survives_files() {
    use circuits::files::{NetlistFormat, read, write};
    let circuit = wired("p2p", 100, SelectionCircuit::Paper).unwrap();
    for format in [NetlistFormat::Gmw, NetlistFormat::Bristol] {
        let mut text = Vec::new();
        write(&circuit, format, &mut text).unwrap();
        let (back, found) = read(&text[..], "paper").unwrap();
        assert_eq!((found, back.and_gates(), back.depth()), (format, 5_461, 120));
    }
}
