//! The example of `docs/program.md` parses, is allowed, and gives what its text says.

use base::{PartyId, Roster, Seed};
use engine::conformance::Table;
use engine::{Clear, DrawnNoise, Engine, Entered, Share, run_rows};
use net::Session;
use program::eval::NodeValues;
use program::lower::{Lowering, NoiseSource, lower_release};
use program::{Op, Program, VerifierPolicy, verify};
use release::rational::ratio;
use std::sync::Arc;

fn example() -> Program {
    let page = include_str!("../../../docs/program.md");
    let start = page.split_once("```tacit\n").expect("the page has an example").1;
    Program::parse(start.split_once("```").expect("the example ends").0).unwrap()
}

#[test]
fn the_example_is_allowed_and_charged_as_the_page_says() {
    let audit = verify(&example(), &VerifierPolicy::default(), 1_000_000).unwrap();
    assert_eq!(audit.rho, [ratio(1, 8), ratio(0, 1)]);
    // D^2 / (2 rho) = 100^2 * 4: the arm is the viewer's own, so no row moves.
    assert_eq!(audit.charges[0].sigma2(0), Some(ratio(40_000, 1)));
}

#[test]
fn the_example_runs() {
    let program = example();
    let columns = [vec![1, 2, 1, 0, 2], vec![30, 500, 200, 60, 1]];
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([1; 32]));
    let mut table = Table::new(&program, &columns, 5, None);
    let totals = run_rows(&Clear, &program, &mut table, &mut session).unwrap();
    let owners = program.fold_owners();
    let width = |_| 16;
    let how = Lowering { noise: NoiseSource::Candidates(1, &width), ..Lowering::exact(&owners) };
    let plan = Arc::new(lower_release(&program, PartyId(0).into(), &how).unwrap());
    let mut coins = Seed::from_bytes([2; 32]).into_rng();
    let entered = Entered::whole(&plan, &totals, &mut coins).unwrap();
    let entered = entered.with_candidates(&plan, &[vec![-300, 7]]).unwrap();
    let outputs = Clear.release(&plan).unwrap().run(&entered, &mut DrawnNoise::none(), &mut session).unwrap();
    let outputs = plan.values(&outputs.bits(plan.outputs_of(0)));
    // Two people in the test arm; 30 + 100 - 300 and 100 + 1 + 7; values are 56-bit two's complement.
    let signed = |v: i128| (v as u128) % (1 << 56);
    assert_eq!(outputs, [2, signed(-170), signed(108), signed(-278)]);
}

/// The worked programs of `docs/questions.md` in the clear: every total is the sum of what its fold adds for
/// each row, over rows that either party, both or nobody has.
#[test]
fn the_worked_programs_add_up_in_the_clear() {
    const ROWS: usize = 200;
    let page = include_str!("../../../docs/questions.md");
    for text in page.split("```tacit\n").skip(1).map(|rest| rest.split_once("```").expect("it ends").0) {
        let program = Program::parse(text).unwrap();
        verify(&program, &VerifierPolicy { max_rho: ratio(5, 1), ..VerifierPolicy::default() }, 1_000_000)
            .unwrap();
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        let columns: Vec<Vec<u128>> = program
            .columns
            .iter()
            .map(|column| (0..ROWS).map(|_| u128::from(rng.below(1 << 20)) & column.ty.mask()).collect())
            .collect();
        let (mut values, all) = (NodeValues::default(), vec![true; program.row.nodes.len()]);
        let mut leaf = |op: &Op, out: &mut [u128]| {
            let Op::Column(column) = op else { unreachable!("a row reads columns") };
            out.copy_from_slice(&columns[*column as usize]);
            Ok(())
        };
        values.evaluate(&program.row, &all, ROWS, &mut leaf).unwrap();
        let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([1; 32]));
        let mut table = Table::new(&program, &columns, ROWS as u64, None);
        let totals = run_rows(&Clear, &program, &mut table, &mut session).unwrap();
        let added = program.folds.iter().map(|fold| {
            let ty = program.row.ty(fold.value());
            let sum: i128 =
                values.get(fold.value()).iter().map(|v| ty.number(*v).expect("a short type")).sum();
            sum as u128 & fold.ty().mask()
        });
        for (total, added) in totals.folds().iter().zip(added) {
            let (Share::Known(word) | Share::Additive(word) | Share::Boolean(word)) = total else {
                panic!("a total that nobody knows")
            };
            assert_eq!(*word, added, "{}", program.name);
        }
    }
}
