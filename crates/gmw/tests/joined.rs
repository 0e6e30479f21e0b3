//! Rows joined to shares by `sums`: the totals of the definitions, at the price of the formulas, whatever
//! protocol joined them and whatever lies where nothing was joined.

use base::{Error, Rng, Seed};
use engine::conformance::{Table, suite};
use engine::{Engine, Entries, RowInput, RowSource, Share, Shares, alone};
use gmw::Gmw;
use net::cluster::Cluster;
use ot::OtKind;
use program::lower::{EntryKind, JoinedPlan, lower_joined};
use program::{Holder, NodeId, Op, Program};
use program::{JoinedRows, ShardRows};
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

/// Deals what is entered: shares with random bits above their width, and whole values to those who hold them
/// alone.
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
    let stage = Gmw::new(KIND).with_lanes(LANES).rows(program, RowSource::Joined(shared)).unwrap();
    let done = Cluster::new(2, seed).run(|session| {
        let mut rows = held[session.me().index()].clone();
        let price = stage.price(rows.len()).cost;
        let before = session.traffic().sent("");
        let shares = stage.run(RowInput::Joined(&mut rows), session)?;
        assert_eq!(session.traffic().sent("") - before, price.sent[session.me().index()]);
        assert_eq!(
            [session.traffic().and_gates(""), session.traffic().ots("")],
            [price.and_gates, price.ots]
        );
        Ok((shares, session.traffic().turns(""), price.rounds))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    assert_eq!(done[0].1.max(done[1].1), done[0].2, "turns");
    done.into_iter().map(|(shares, ..)| shares).collect()
}

fn totals(program: &Program, shares: &[Shares]) -> Vec<u128> {
    let total = |(i, fold): (usize, &program::RowFold)| {
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
    lift: &'a LiftParameters,
    layout: &'a LiftLayout,
    rows: &'a [Anchor],
}

impl ShardRows for Columns<'_> {
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
    lift: &LiftParameters,
    layout: &LiftLayout,
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
fn slot_of(plan: &JoinedPlan, layout: &LiftLayout, node: NodeId) -> u8 {
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
    (lift, shared): (&LiftParameters, [bool; 2]),
    file: &[Anchor],
    joined: &[Anchor],
    seed: u64,
) -> (LiftLayout, Vec<u128>, Vec<Shares>) {
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

fn check(lift: &LiftParameters, shared: [bool; 2], file: &[Anchor], joined: &[Anchor], seed: u64) {
    let mut truth = TrueTotals::default();
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

fn anchor(lift: &LiftParameters) -> impl Strategy<Value = Anchor> + use<> {
    let times = 0..lift.no_time();
    let arm = prop_oneof![Just(TrialArm::Test), Just(TrialArm::Control)];
    let user = (arm, times.clone(), any::<bool>(), index(lift.breakdown.len()))
        .prop_map(|(arm, time, reached, breakdown)| User { arm, time, reached, breakdown });
    let event = (times, 0..1u64 << lift.value_bits).prop_map(|(time, value)| PersonEvent { time, value });
    let events = prop::collection::vec(event, 0..=usize::from(lift.max_events));
    let outcome =
        (events, index(lift.cohorts.len())).prop_map(|(events, cohort)| PersonOutcome { events, cohort });
    let outcomes = prop::collection::vec(outcome, 0..=usize::from(lift.matching.slots));
    (prop::option::weighted(0.85, user), outcomes).prop_map(|(user, outcomes)| Anchor { user, outcomes })
}

/// Studies and anchors with few events, small clocks, windows, cells and counts.
fn cases(
    slots: std::ops::RangeInclusive<u8>,
    masked: bool,
) -> impl Strategy<Value = (LiftParameters, Vec<Anchor>)> {
    let shape = (1u8..=10, prop_oneof![Just(1u8), Just(2), Just(4), Just(3)], 1u128..600, slots);
    let rest = (prop::option::of(prop_oneof![0u32..40, Just(u32::MAX)]), 0usize..4, 0usize..4, any::<bool>());
    (shape, rest).prop_flat_map(move |((time_bits, k, clamp, slots), (within, breakdown, cohorts, also))| {
        let names = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>();
        let lift = LiftParameters {
            time_bits,
            value_bits: 7,
            clamp,
            within,
            impressions: true,
            breakdown: names(breakdown),
            cohorts: names(if slots > 1 { 0 } else { cohorts }),
            also: if also { Also::ALL.to_vec() } else { Vec::new() },
            matching: JoinShape { masked, slots, degree: [1, u32::from(slots)], ..JoinShape::default() },
            ..LiftParameters::bench(k)
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

    /// As circuit-PSI gives them: the publisher knows its rows; where nothing matched lies garbage, and some
    /// places are empty.
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

fn made_up(lift: &LiftParameters, rows: u64) -> Vec<Anchor> {
    let anchor = |row: JoinedRow| Anchor { user: row.user, outcomes: row.outcome.into_iter().collect() };
    (0..rows).map(|i| anchor(bench_row(lift, 5, i))).collect()
}

fn masked(slots: u8) -> LiftParameters {
    let matching = JoinShape { masked: true, slots, degree: [1, slots.into()], ..JoinShape::default() };
    LiftParameters { matching, impressions: true, also: Also::ALL.to_vec(), ..LiftParameters::bench(2) }
}

/// What lies where nothing matched changes no total, in a bin or in a slot.
#[test]
fn garbage_counts_nowhere() {
    for slots in [1, 3] {
        let lift = masked(slots);
        let file = made_up(&lift, 150);
        let once = lift_totals((&lift, [true, true]), &file, &file, 1).1;
        for seed in 2..6 {
            assert_eq!(lift_totals((&lift, [true, true]), &file, &file, seed).1, once);
        }
    }
}

/// A share says nothing: it is another one for every seed, and half of its bits are set.
#[test]
fn shares_are_random() {
    for slots in [1, 2] {
        let lift = masked(slots);
        let file = made_up(&lift, 70);
        let (program, _) = build(&lift).unwrap();
        let (mut set, mut bits, mut seen) = (0, 0, std::collections::BTreeSet::new());
        for seed in 0..12 {
            for shares in lift_totals((&lift, [slots > 1, true]), &file, &file, seed).2 {
                for (share, fold) in shares.folds().iter().zip(&program.folds) {
                    if let Share::Additive(x) = share {
                        (set, bits) = (set + x.count_ones(), bits + u32::from(fold.ty().width));
                        assert!(seen.insert(*x), "a share repeats");
                    }
                }
            }
        }
        let off = (f64::from(set) - f64::from(bits) / 2.0).abs();
        assert!(bits > 5000 && off < 6.0 * (f64::from(bits) / 2.0).sqrt(), "{set} of {bits} bits");
    }
}

/// Marginal cost of a row, in bits, without the OT extension; and COTs.
fn per_row(lift: &LiftParameters, shared: [bool; 2]) -> (u64, u64) {
    let (program, _) = build(lift).unwrap();
    let (engine, rows) = (Gmw::new(OtKind::SoftSpoken { k: 8 }).with_lanes(64), 64 * 64);
    let stage = engine.rows(&program, RowSource::Joined(shared)).unwrap();
    let [once, twice] = [1, 2].map(|n| stage.price(n * rows).cost);
    let cots = twice.ots - once.ots;
    // With random choices ceil(128 / 8) - 1 bits per COT.
    let bits = 8 * (twice.bytes() - once.bytes()) - 15 * cots;
    assert_eq!((bits % rows, cots % rows), (0, 0));
    (bits / rows, cots / rows)
}

#[test]
fn a_joined_row_costs_what_the_formulas_say() {
    for k in [1, 2, 4, 8] {
        for breakdown in [0, 3] {
            let breakdown: Vec<String> = (0..breakdown).map(|i| format!("v{i}")).collect();
            let lift = LiftParameters { breakdown, ..LiftParameters::bench(k) };
            let (program, layout) = build(&lift).unwrap();
            let width = |quantity| {
                let total = layout.totals.iter().find(|t| t.quantity == quantity).unwrap();
                u64::from(program.folds[total.fold as usize].ty().width)
            };
            let n = width(Quantity::Value) + width(Quantity::Squares);
            let (k, cells) = (u64::from(k), 2 * (1 + lift.breakdown.len() as u64));
            // A breakdown's cell bit is the owner's: it enters.
            let cots = 32 * k + 14 * k + 2 * k + 2 * cells;
            let bits = 240 * k + 22 * k + 2 * k * n + 2 * cells * n + cots;
            assert_eq!(per_row(&lift, [true, true]), (bits, cots), "{lift:?}");
            // Where the publisher knows its rows, its cell bits take one COT for all of them with the mask.
            let lift =
                LiftParameters { matching: JoinShape { masked: true, ..JoinShape::default() }, ..lift };
            assert_eq!(per_row(&lift, [false, true]), (bits + cells + 1, cots + 1), "{lift:?}");
        }
    }
}

/// Comparisons take as many rounds as between owners, but that both parties speak in the last one; slots take
/// a clamp and a square more.
#[test]
fn few_messages_wait_for_one_another() {
    let trips = |lift: &LiftParameters, source| {
        Gmw::new(KIND).rows(&build(lift).unwrap().0, source).unwrap().price(64).trips
    };
    let (own, both) = (trips(&LiftParameters::bench(4), RowSource::Owned), RowSource::Joined([true, true]));
    assert_eq!(trips(&LiftParameters::bench(4), both), own + 1);
    let lift = LiftParameters {
        matching: JoinShape { masked: true, slots: 4, ..JoinShape::default() },
        clamp: 1 << 20,
        ..LiftParameters::bench(4)
    };
    assert!(trips(&lift, both) <= 2 * own + 8, "{} of {own}", trips(&lift, both));
}

/// The advertiser packs one payload for a row of its own, whatever slots the row will lie in.
#[test]
fn slots_have_one_payload() {
    let lift = masked(3);
    let (program, layout) = build(&lift).unwrap();
    let plan = lower_joined(&program, [true, true]).unwrap();
    let payload = plan.payload(ADVERTISER, 3, &|column| layout.place(column)).unwrap();
    let per_slot = payload.entries[0].len();
    assert!(payload.entries.iter().all(|e| e.len() == per_slot));
    assert_eq!(plan.own(ADVERTISER).count(), 3 * per_slot);
    let packed: usize = payload.fields.iter().map(|f| f.parts.len()).sum();
    assert_eq!(packed, per_slot);
    for (slot, entries) in (0u32..).zip(&payload.entries) {
        for (at, entry) in entries.iter().enumerate() {
            let (s, field, shift) = payload.place(*entry).unwrap();
            assert!(s == slot && payload.fields[field].parts.contains(&(at, shift)));
        }
    }
    // The same row in another slot enters the same.
    let rows: Vec<Anchor> = made_up(&lift, 40).into_iter().filter(|a| !a.outcomes.is_empty()).collect();
    let of = |slot: usize| -> Vec<Vec<u128>> {
        let row = |a: &Anchor| Anchor { user: None, outcomes: vec![a.outcomes[0].clone(); slot + 1] };
        let rows: Vec<Anchor> = rows.iter().map(row).collect();
        let mut table = Columns { lift: &lift, layout: &layout, rows: &rows };
        let mut entries = Entries::of(&plan, &payload.entries[slot]);
        entries.load(&mut table, 0, rows.len()).unwrap();
        payload.entries[slot].iter().map(|entry| entries.get(*entry).collect()).collect()
    };
    assert!(of(0) == of(1) && of(0) == of(2));
    // Bits of an owner share words.
    let own = plan.payload(PUBLISHER, 1, &|column| (0, column)).unwrap();
    let words = own.fields.iter().filter(|f| matches!(f.kind, EntryKind::Bits(_))).count();
    assert!(words == 1 && own.entries[0].len() > 2, "{own:?}");
}

#[test]
fn what_cannot_be_joined_is_refused() {
    let (program, _) = build(&LiftParameters::bench(1)).unwrap();
    let error = |program: &Program, shared| {
        let refused = Gmw::default().rows(program, RowSource::Joined(shared));
        refused.err().expect("it is refused").to_string()
    };
    assert!(error(&program, [false, false]).contains("nothing is joined to shares; match by pid"));
    let mut public = program.clone();
    public.columns[0].holder = Holder::Public;
    assert!(error(&public, [true, true]).contains("nobody can enter the public column"));
    let refused = engine::Clear.rows(&program, RowSource::Joined([true, true]));
    let text = refused.err().expect("it is refused").to_string();
    assert!(text.contains("clear runs no rows that were joined to shares: use gmw"), "{text}");
}

/// Units over base OTs of a hub add up, each on a lane of its own and all on one, and one of them has the
/// publisher's own totals.
#[test]
fn units_over_a_hub() {
    let lift = LiftParameters::bench(3);
    let (program, layout) = build(&lift).unwrap();
    let plan = lower_joined(&program, [true, true]).unwrap();
    let file: Vec<Anchor> = made_up(&lift, 300).into_iter().filter(|a| !a.outcomes.is_empty()).collect();
    let mut rng = rng(9);
    let parts: Vec<[Held; 2]> = file
        .chunks(120)
        .enumerate()
        .map(|(unit, rows)| {
            let entered = entered(&plan, &lift, &layout, rows, &mut rng);
            let mut held = deal(&plan, &entered, rows.len() as u64, &mut rng);
            let mut columns =
                Columns { lift: &lift, layout: &layout, rows: if unit == 0 { &file } else { &[] } };
            held[0].alone = alone(&plan, PUBLISHER, &mut columns).unwrap();
            held
        })
        .collect();
    let stage = Gmw::new(KIND).rows(&program, RowSource::Joined([true, true])).unwrap();
    let mut truth = TrueTotals::default();
    file.iter().for_each(|anchor| truth.add_anchor(&lift, anchor));
    let done = Cluster::new(2, 8).run(|session| {
        let me = session.me().index();
        let mut sum: Option<Shares> = None;
        for (i, unit) in parts.iter().enumerate() {
            let (step, mut rows) = (format!("unit-{i}"), unit[me].clone());
            let shares = session.step(&step, |s| stage.run(RowInput::Joined(&mut rows), s))?;
            match &mut sum {
                Some(sum) => sum.add(&program, &shares)?,
                None => sum = Some(shares),
            }
            assert_eq!(session.traffic().sent(&step), stage.price(unit[me].len()).cost.sent[me]);
        }
        Ok(sum.expect("there are units"))
    });
    let shares: Vec<Shares> = done.into_iter().map(Result::unwrap).collect();
    for total in &layout.totals {
        let want = truth.get(total.cell, total.arm, total.quantity);
        assert_eq!(totals(&program, &shares)[total.fold as usize], want, "{total:?}");
    }
}

/// A message cut short ends in an error that names the turn, whoever sent it.
#[test]
fn a_short_message_ends_in_an_error() {
    let lift = masked(2);
    let (program, layout) = build(&lift).unwrap();
    let plan = lower_joined(&program, [true, true]).unwrap();
    let file = made_up(&lift, 40);
    let mut rng = rng(3);
    let values = entered(&plan, &lift, &layout, &file, &mut rng);
    let mut held = deal(&plan, &values, file.len() as u64, &mut rng);
    held[0].alone =
        alone(&plan, PUBLISHER, &mut Columns { lift: &lift, layout: &layout, rows: &file }).unwrap();
    let stage = Gmw::new(KIND).rows(&program, RowSource::Joined([true, true])).unwrap();
    for culprit in [PUBLISHER, ADVERTISER] {
        for turn in [0, 4, 9] {
            let step = format!("rows/turn-{turn}");
            let cluster = Cluster::new(2, 4).deadline(std::time::Duration::from_millis(400));
            let done = cluster.fault(culprit, step, net::faults::InjectedFault::Truncate).run(|session| {
                let mut rows = held[session.me().index()].clone();
                stage.run(RowInput::Joined(&mut rows), session)
            });
            let errors: Vec<String> =
                done.iter().filter_map(|d| Some(d.as_ref().err()?.to_string())).collect();
            assert!(errors.iter().any(|e| e.contains("at rows/turn-")), "turn {turn}: {errors:?}");
        }
    }
}
