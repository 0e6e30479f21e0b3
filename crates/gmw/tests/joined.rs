//! Rows joined to shares by `gmw::pair`: the totals of the definitions, at the price of the formulas, whatever protocol
//! joined them and whatever lies where nothing was joined.

use base::{Error, Rng, Seed};
use engine::conformance::{Table, suite};
use engine::{Engine, Entries, JoinedRows, Rows, Share, Shares, alone};
use gmw::Gmw;
use net::cluster::Cluster;
use ot::OtKind;
use program::lower::{EntryKind, JoinedPlan, lower_joined};
use program::{Holder, NodeId, Op, Program};
use proptest::prelude::*;
use studies::lift::*;

const KIND: OtKind = OtKind::SoftSpoken { k: 4 };
const LANES: usize = 64;

/// What one party holds: a share or a value of every entry and row, and its own totals.
#[derive(Clone, Default)]
struct Held {
    entries: Vec<Option<Vec<u128>>>,
    alone: Vec<(u32, u128)>,
    rows: u64,
}

impl JoinedRows for Held {
    fn len(&self) -> u64 {
        self.rows
    }
    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let values = self.entries[entry].as_ref().expect("the peer's own entries are not read");
        into.copy_from_slice(&values[from as usize..][..into.len()]);
        Ok(())
    }
    fn alone(&mut self, fold: u32) -> Result<u128, Error> {
        Ok(self.alone.iter().find(|(f, _)| *f == fold).expect("a fold of this party's alone").1)
    }
}

fn rng(seed: u64) -> Rng {
    let mut bytes = [3; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Seed::from_bytes(bytes).into_rng()
}

/// Deals what is entered: shares with random bits above their width, and whole values to those who hold them alone.
fn deal(plan: &JoinedPlan, entered: &[Vec<u128>], rows: u64, rng: &mut Rng) -> [Held; 2] {
    let mut held = [0, 1].map(|_| Held { rows, ..Held::default() });
    for (entry, values) in entered.iter().enumerate() {
        if !plan.is_shared(entry) {
            let owner = plan.entries[entry].holder.only().unwrap();
            held[owner.index()].entries.push(Some(values.clone()));
            held[owner.other().index()].entries.push(None);
            continue;
        }
        let mask: Vec<u128> = values.iter().map(|_| u128::from_le_bytes(rng.bytes())).collect();
        let rest = values.iter().zip(&mask).map(|(v, m)| match plan.entries[entry].kind {
            EntryKind::Bits(_) => v ^ m,
            EntryKind::Number { .. } => v.wrapping_sub(*m),
        });
        held[1].entries.push(Some(rest.collect()));
        held[0].entries.push(Some(mask));
    }
    held
}

/// Runs both parties; every time price and ledger are compared.
fn run(program: &Program, shared: [bool; 2], held: &[Held; 2], seed: u64) -> Vec<Shares> {
    let done = Cluster::new(2, seed).run(|session| {
        let mut rows = held[session.me().index()].clone();
        let mut engine = Gmw::new(KIND).with_lanes(LANES);
        engine.check_joined(program, shared)?;
        let price = engine.price_joined(program, shared, rows.len());
        let before = session.ledger().sent("");
        let shares = engine.joined(program, shared, &mut rows, session)?;
        assert_eq!(session.ledger().sent("") - before, price.sent[session.me().index()]);
        assert_eq!([session.ledger().and_gates(""), session.ledger().ots("")], [price.and_gates, price.ots]);
        Ok((shares, session.ledger().turns(""), price.rounds))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    assert_eq!(done[0].1.max(done[1].1), done[0].2, "turns");
    done.into_iter().map(|(shares, ..)| shares).collect()
}

fn totals(program: &Program, shares: &[Shares]) -> Vec<u128> {
    let total = |(i, fold): (usize, &program::Fold)| {
        let part = |s: &Shares| match &s.folds()[i] {
            Share::Known(x) | Share::Additive(x) => *x,
            Share::Absent => 0,
            _ => panic!("sums are additive or known"),
        };
        shares.iter().map(part).fold(0, u128::wrapping_add) & fold.ty().mask()
    };
    // What nobody's data matter to is known to both.
    let public = |i: usize| {
        matches!((&shares[0].folds()[i], &shares[1].folds()[i]), (Share::Known(_), Share::Known(_)))
    };
    let one = |(i, fold)| {
        if public(i) {
            let Share::Known(x) = &shares[0].folds()[i] else { unreachable!() };
            *x
        } else {
            total((i, fold))
        }
    };
    program.folds.iter().enumerate().map(one).collect()
}

/// Columns by slot of the anchors of a study, as the program names them.
struct Columns<'a> {
    lift: &'a Lift,
    layout: &'a Layout,
    rows: &'a [Anchor],
}

impl Rows for Columns<'_> {
    fn len(&self) -> u64 {
        self.rows.len() as u64
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let (content, slot) = (self.layout.columns[column as usize], self.layout.slots[column as usize]);
        for (out, anchor) in into.iter_mut().zip(&self.rows[from as usize..]) {
            let row = JoinedRow {
                user: anchor.user.clone(),
                outcome: anchor.outcomes.get(usize::from(slot)).cloned(),
            };
            *out = content.encode(self.lift, &row);
        }
        Ok(())
    }
}

/// What every entry has in each row; garbage where a slot holds no match.
fn entered(
    plan: &JoinedPlan,
    lift: &Lift,
    layout: &Layout,
    rows: &[Anchor],
    rng: &mut Rng,
) -> Vec<Vec<u128>> {
    let mut table = Columns { lift, layout, rows };
    let mut out = Vec::new();
    for (at, entry) in plan.entries.iter().enumerate() {
        let mut entries = Entries::of(plan, &[at]);
        entries.load(&mut table, 0, rows.len()).unwrap();
        let mut values: Vec<u128> = entries.get(at).collect();
        if lift.matching.masked && entry.holder == Holder::Party(ADVERTISER) {
            let slot = usize::from(slot_of(plan, layout, entry.node));
            for (value, _) in values.iter_mut().zip(rows).filter(|(_, a)| a.outcomes.len() <= slot) {
                *value = u128::from_le_bytes(rng.bytes());
            }
        }
        out.push(values);
    }
    out
}

/// The slot of any column below a node.
fn slot_of(plan: &JoinedPlan, layout: &Layout, node: NodeId) -> u8 {
    let mut stack = vec![node];
    while let Some(id) = stack.pop() {
        if let Op::Column(c) = plan.program.row.node(id).op {
            return layout.slots[c as usize];
        }
        plan.program.row.node(id).op.operands(|a| stack.push(a));
    }
    0
}

/// The totals of a study over joined rows, those of the publisher's file included.
fn lift_totals(
    (lift, shared): (&Lift, [bool; 2]),
    file: &[Anchor],
    joined: &[Anchor],
    seed: u64,
) -> (Layout, Vec<u128>, Vec<Shares>) {
    let (program, layout) = build(lift).unwrap();
    let plan = lower_joined(&program, shared).unwrap();
    let mut rng = rng(seed);
    let entered = entered(&plan, lift, &layout, joined, &mut rng);
    let mut held = deal(&plan, &entered, joined.len() as u64, &mut rng);
    let mut columns = Columns { lift, layout: &layout, rows: file };
    for (party, held) in [PUBLISHER, ADVERTISER].into_iter().zip(&mut held) {
        held.alone = alone(&plan, party, &mut columns).unwrap();
    }
    let shares = run(&program, shared, &held, seed);
    (layout, totals(&program, &shares), shares)
}

fn check(lift: &Lift, shared: [bool; 2], file: &[Anchor], joined: &[Anchor], seed: u64) {
    let mut truth = Totals::default();
    file.iter().for_each(|anchor| truth.add_anchor(lift, anchor));
    let (layout, met, _) = lift_totals((lift, shared), file, joined, seed);
    for total in &layout.totals {
        let want = truth.get(total.cell, total.arm, total.quantity);
        assert_eq!(met[total.fold as usize], want, "{total:?} of {lift:?}");
    }
}

fn index(count: usize) -> BoxedStrategy<Option<u8>> {
    if count == 0 { Just(None).boxed() } else { prop::option::of(0..count as u8).boxed() }
}

fn anchor(lift: &Lift) -> impl Strategy<Value = Anchor> + use<> {
    let times = 0..lift.no_time();
    let arm = prop_oneof![Just(Arm::Test), Just(Arm::Control)];
    let user = (arm, times.clone(), any::<bool>(), index(lift.breakdown.len()))
        .prop_map(|(arm, time, reached, breakdown)| User { arm, time, reached, breakdown });
    let event = (times, 0..1u64 << lift.value_bits).prop_map(|(time, value)| Event { time, value });
    let events = prop::collection::vec(event, 0..=usize::from(lift.max_events));
    let outcome = (events, index(lift.cohorts.len())).prop_map(|(events, cohort)| Outcome { events, cohort });
    let outcomes = prop::collection::vec(outcome, 0..=usize::from(lift.matching.slots));
    (prop::option::weighted(0.85, user), outcomes).prop_map(|(user, outcomes)| Anchor { user, outcomes })
}

/// Studies and anchors with few events, small clocks, windows, cells and counts.
fn cases(slots: std::ops::RangeInclusive<u8>, masked: bool) -> impl Strategy<Value = (Lift, Vec<Anchor>)> {
    let shape = (1u8..=10, prop_oneof![Just(1u8), Just(2), Just(4), Just(3)], 1u128..600, slots);
    let rest = (prop::option::of(prop_oneof![0u32..40, Just(u32::MAX)]), 0usize..4, 0usize..4, any::<bool>());
    (shape, rest).prop_flat_map(move |((time_bits, k, clamp, slots), (within, breakdown, cohorts, also))| {
        let names = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>();
        let lift = Lift {
            time_bits,
            value_bits: 7,
            clamp,
            within,
            impressions: true,
            breakdown: names(breakdown),
            cohorts: names(if slots > 1 { 0 } else { cohorts }),
            also: if also { Also::ALL.to_vec() } else { Vec::new() },
            matching: Matching { masked, slots, degree: [1, u32::from(slots)] },
            ..Lift::bench(k)
        };
        let rows = prop::collection::vec(anchor(&lift), 0..100);
        (Just(lift), rows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// As PS3I gives them: pairs only, all shared.
    #[test]
    fn inner_joins((lift, file) in cases(1..=1, false), seed: u64) {
        let joined: Vec<Anchor> = file.iter().filter(|a| !a.outcomes.is_empty()).cloned().collect();
        check(&lift, [true, true], &file, &joined, seed);
    }

    /// As circuit-PSI gives them: the publisher knows its rows; where nothing matched lies garbage, and some places are empty.
    #[test]
    fn bins((lift, file) in cases(1..=1, true), seed: u64) {
        let mut joined = file.clone();
        joined.extend((0..7).map(|_| Anchor { user: None, outcomes: Vec::new() }));
        check(&lift, [false, true], &file, &joined, seed);
        check(&lift, [true, true], &file, &joined, seed);
    }

    /// As collecting gives them: several slots, garbage in some.
    #[test]
    fn slots((lift, file) in cases(2..=3, true), seed: u64) {
        check(&lift, [true, true], &file, &file, seed);
    }
}

/// Every operation of a row, for every holder. Nobody can enter a public column: it comes shared here.
#[test]
fn every_operation_of_a_row() {
    for (at, mut case) in suite(7).into_iter().enumerate().filter(|(_, case)| case.rows <= 100) {
        let shared = [[true, true], [true, false], [false, true]][at % 3];
        let public = case.program.columns.iter_mut().filter(|c| c.holder == Holder::Public);
        public.for_each(|c| c.holder = Holder::Shared);
        let plan = lower_joined(&case.program, shared).unwrap();
        let mut table = Table::new(&case.program, &case.columns, case.rows, None);
        let entered: Vec<Vec<u128>> = (0..plan.entries.len())
            .map(|entry| {
                let mut entries = Entries::of(&plan, &[entry]);
                entries.load(&mut table, 0, case.rows as usize).unwrap();
                entries.get(entry).collect()
            })
            .collect();
        let mut held = deal(&plan, &entered, case.rows, &mut rng(at as u64));
        for (party, held) in [PUBLISHER, ADVERTISER].into_iter().zip(&mut held) {
            held.alone = alone(&plan, party, &mut table).unwrap();
        }
        let shares = run(&case.program, shared, &held, at as u64);
        assert_eq!(totals(&case.program, &shares), case.totals, "{} {shared:?}", case.name);
    }
}
