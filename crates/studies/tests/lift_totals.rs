//! The program computes what the definitions say.

mod common;

use base::Error;
use common::full;
use engine::{Clear, Share, run_rows};
use net::cluster::Cluster;
use program::Program;
use program::ShardRows;
use proptest::prelude::*;
use release::rational::ratio;
use studies::lift::*;

/// Columns of a joined table in memory.
struct Table(Vec<Vec<u128>>);

impl Table {
    fn new(lift: &LiftParameters, layout: &LiftLayout, rows: &[JoinedRow]) -> Self {
        let column = |c: &Content| rows.iter().map(|row| c.encode(lift, row)).collect();
        Self(layout.columns.iter().map(column).collect())
    }
}

impl ShardRows for Table {
    fn len(&self) -> u64 {
        self.0[0].len() as u64
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let from = from as usize;
        into.copy_from_slice(&self.0[column as usize][from..from + into.len()]);
        Ok(())
    }
}

/// Totals of all folds under the clear engine.
fn clear_totals(program: &Program, rows: &mut dyn ShardRows) -> Vec<u128> {
    let mut session = Cluster::new(1, 1).sessions().remove(0);
    let shares = run_rows(&Clear, program, rows, &mut session).unwrap();
    let known = |share: &Share| match share {
        Share::Known(total) => *total,
        _ => panic!("the clear engine knows its totals"),
    };
    shares.folds().iter().map(known).collect()
}

/// Studies and tables that fit: small clocks so that ties and window ends happen.
fn cases() -> impl Strategy<Value = (LiftParameters, Vec<JoinedRow>)> {
    let shape = (1u8..=10, prop_oneof![Just(1u8), Just(4), Just(16), 1u8..=16], 1u8..=8, 1u128..600);
    let rest = (prop::option::of(prop_oneof![0u32..40, Just(u32::MAX)]), 0usize..4, 0usize..4);
    (shape, rest).prop_flat_map(|((time_bits, k, value_bits, clamp), (within, breakdown, cohorts))| {
        let names = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>();
        let lift = LiftParameters {
            time_bits,
            value_bits,
            max_events: k,
            clamp,
            within,
            breakdown: names(breakdown),
            cohorts: names(cohorts),
            ..full(ReleaseMode::Sums)
        };
        let rows = prop::collection::vec(row(&lift), 0..30);
        (Just(lift), rows)
    })
}

fn index(count: usize) -> BoxedStrategy<Option<u8>> {
    if count == 0 { Just(None).boxed() } else { prop::option::of(0..count as u8).boxed() }
}

fn row(lift: &LiftParameters) -> impl Strategy<Value = JoinedRow> + use<> {
    let times = 0..lift.no_time();
    let arm = prop_oneof![Just(TrialArm::Test), Just(TrialArm::Control)];
    let user = (arm, times.clone(), any::<bool>(), index(lift.breakdown.len()))
        .prop_map(|(arm, time, reached, breakdown)| User { arm, time, reached, breakdown });
    // Times come in any order: the meaning is by running maximum.
    let event = (times, 0..1u64 << lift.value_bits).prop_map(|(time, value)| PersonEvent { time, value });
    let events = prop::collection::vec(event, 0..=usize::from(lift.max_events));
    let outcome =
        (events, any::<bool>(), index(lift.cohorts.len())).prop_map(|(mut events, sort, cohort)| {
            if sort {
                events.sort_by_key(|e| e.time);
            }
            PersonOutcome { events, cohort }
        });
    (prop::option::weighted(0.9, user), prop::option::weighted(0.9, outcome))
        .prop_map(|(user, outcome)| JoinedRow { user, outcome })
}

fn assert_totals(lift: &LiftParameters, layout: &LiftLayout, got: &[u128], want: &TrueTotals) {
    for total in &layout.totals {
        let want = want.get(total.cell, total.arm, total.quantity);
        let met = got[total.fold as usize];
        assert_eq!(met, want, "{:?} {:?} {:?} of {lift:?}", total.quantity, total.cell, total.arm);
    }
    assert_eq!(
        layout.totals.len(),
        9 * 2 * lift.families().iter().map(|f| lift.cells(*f).len()).sum::<usize>()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn totals_equal_the_definitions((lift, rows) in cases()) {
        let (program, layout) = build(&lift).unwrap();
        let got = clear_totals(&program, &mut Table::new(&lift, &layout, &rows));
        assert_totals(&lift, &layout, &got, &truth(&rows, &lift));
    }

    #[test]
    fn made_up_rows_are_their_columns(seed: u64, k in 1u8..=16, party in 0u8..2) {
        let lift = LiftParameters { max_events: k, within: None, clamp: 100, ..full(ReleaseMode::Sums) };
        let (_, layout) = build(&lift).unwrap();
        let rows: Vec<_> = (0..100).map(|i| bench_row(&lift, seed, i)).collect();
        let mut made = BenchRows::new(&lift, &layout, Some(base::PartyId(party)), 100, seed).shard(1, 3);
        prop_assert_eq!(made.len(), 33);
        for (c, content) in layout.columns.iter().enumerate() {
            let mut met = [0; 32];
            let done = made.read(c as u32, 1, &mut met);
            prop_assert_eq!(done.is_ok(), content.owner() == Some(base::PartyId(party)));
            if done.is_ok() {
                let want: Vec<u128> = (1..33).map(|i| content.encode(&lift, &rows[1 + 3 * i])).collect();
                prop_assert_eq!(met.to_vec(), want);
            }
        }
    }
}

/// Rows of a table with an outcome of each advertiser.
struct Several<'a> {
    lift: &'a LiftParameters,
    layout: &'a LiftLayout,
    rows: Vec<(Option<User>, Vec<Option<PersonOutcome>>)>,
}

impl ShardRows for Several<'_> {
    fn len(&self) -> u64 {
        self.rows.len() as u64
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let (content, slot) = (self.layout.columns[column as usize], self.layout.slots[column as usize]);
        for (value, (user, outcomes)) in into.iter_mut().zip(&self.rows[from as usize..]) {
            let row = JoinedRow { user: user.clone(), outcome: outcomes[usize::from(slot)].clone() };
            *value = content.encode(self.lift, &row);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// What a person did at several advertisers adds up, and is clamped and squared as a whole.
    #[test]
    fn several_advertisers_add_up((lift, rows) in cases(), count in 2u8..=4) {
        let advertisers = (0..count).map(|i| format!("a{i}")).collect();
        let rho = vec![ratio(1, 10); usize::from(count) + 1];
        let lift = LiftParameters { advertisers, rho, cohorts: Vec::new(), ..lift };
        let (program, layout) = build(&lift).unwrap();
        let policy = program::VerifierPolicy { max_outputs: 4096, ..Default::default() };
            program::verify(&program, &policy, base::limits::ROWS).unwrap();
        prop_assert_eq!(Program::parse(&program.to_text()).unwrap(), program.clone());
        let outcomes = |i: usize| (0..usize::from(count)).map(|j| {
            let outcome = rows[(i + j) % rows.len()].outcome.clone();
            outcome.map(|outcome| PersonOutcome { cohort: None, ..outcome })
        }).collect::<Vec<_>>();
        let joined: Vec<_> = (0..rows.len()).map(|i| (rows[i].user.clone(), outcomes(i))).collect();
        let mut want = TrueTotals::default();
        for (user, outcomes) in &joined {
            let outcomes = outcomes.iter().flatten().cloned().collect();
            want.add_anchor(&lift, &Anchor { user: user.clone(), outcomes });
        }
        for (i, column) in program.columns.iter().enumerate() {
            let (content, slot) = (layout.columns[i], layout.slots[i]);
            prop_assert_eq!(column.holder.only(), content.owner_in(&lift, slot));
        }
        let got = clear_totals(&program, &mut Several { lift: &lift, layout: &layout, rows: joined });
        assert_totals(&lift, &layout, &got, &want);
    }
}

fn person(arm: TrialArm, time: u64, events: &[(u64, u64)]) -> JoinedRow {
    let user = User { arm, time, reached: false, breakdown: None };
    let events = events.iter().map(|(time, value)| PersonEvent { time: *time, value: *value }).collect();
    JoinedRow { user: Some(user), outcome: Some(PersonOutcome { events, cohort: None }) }
}

/// The definitions themselves, by hand: the reference must not share a mistake with the program.
#[test]
fn by_hand() {
    let lift = LiftParameters {
        within: Some(10),
        clamp: 5,
        breakdown: vec![],
        cohorts: vec![],
        ..full(ReleaseMode::Sums)
    };
    let mut rows = vec![
        // 2 + 4 = 6, clamped to 5; 20 and 31 do not count
        person(TrialArm::Test, 20, &[(20, 1), (21, 2), (30, 4), (31, 8)]),
        person(TrialArm::Test, 20, &[(19, 60)]),
        person(TrialArm::Test, 0, &[(0, 3)]),
        person(TrialArm::Control, 20, &[(25, 3)]),
        person(TrialArm::Control, 509, &[(510, 5)]), // a window that ends after the clock; 5 is not above R
    ];
    let stranger = JoinedRow { user: None, outcome: rows[0].outcome.clone() };
    let unmatched = JoinedRow { user: rows[3].user.clone(), outcome: None };
    rows.extend([stranger, unmatched, JoinedRow::default()]);
    let totals = truth(&rows, &lift);
    let want = [
        (Quantity::Rows, [3, 3]),
        (Quantity::Value, [5, 8]),
        (Quantity::Squares, [25, 34]),
        (Quantity::Converters, [1, 2]),
        (Quantity::Conversions, [2, 2]),
        (Quantity::Matches, [3, 2]),
        (Quantity::ClampedUsers, [1, 0]),
        (Quantity::ReachedValue, [0, 0]),
    ];
    for (quantity, [test, control]) in want {
        assert_eq!(totals.get(LiftCell::Overall, TrialArm::Test, quantity), test, "{quantity:?}");
        assert_eq!(totals.get(LiftCell::Overall, TrialArm::Control, quantity), control, "{quantity:?}");
    }
    let (program, layout) = build(&lift).unwrap();
    assert_totals(&lift, &layout, &clear_totals(&program, &mut Table::new(&lift, &layout, &rows)), &totals);
}

#[test]
fn the_bench_has_the_totals_it_claims() {
    for k in [1, 4, 16] {
        let lift = LiftParameters::bench(k);
        let (program, layout) = build(&lift).unwrap();
        let got = clear_totals(&program, &mut BenchRows::new(&lift, &layout, None, 5000, 7));
        let want = bench_truth(&lift, 5000, 7);
        for total in &layout.totals {
            assert_eq!(got[total.fold as usize], want.get(total.cell, total.arm, total.quantity));
            assert!(got[total.fold as usize] > 1000, "{total:?}: the benchmark has work to do");
        }
        assert_ne!(want, bench_truth(&lift, 5000, 8));
    }
}
