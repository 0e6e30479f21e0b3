//! Lift rows by `sums`: the totals of the clear engine, at the price of the formulas.

use base::{Cost, Error, PartyId};
use engine::{Clear, Engine, PreparedRows, RowInput, RowSource, Share, Shares, run_rows};
use net::cluster::Cluster;
use net::faults::InjectedFault;
use ot::OtKind;
use program::ShardRows;
use program::{Class, Lookup, NodeId, Program, ProgramBuilder, ValueType};
use proptest::prelude::*;
use std::time::Duration;
use studies::lift::*;
use sums::SumRows;

const KIND: OtKind = OtKind::SoftSpoken { k: 4 };

/// Columns of a joined table, those of one party or of both.
struct Table<'a> {
    lift: &'a LiftParameters,
    layout: &'a LiftLayout,
    rows: &'a [JoinedRow],
    party: Option<PartyId>,
}

impl ShardRows for Table<'_> {
    fn len(&self) -> u64 {
        self.rows.len() as u64
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let content = self.layout.columns[column as usize];
        assert!(
            self.party.is_none_or(|p| Some(p) == content.owner()),
            "{content:?} is read by the other party"
        );
        for (out, row) in into.iter_mut().zip(&self.rows[from as usize..]) {
            *out = content.encode(self.lift, row);
        }
        Ok(())
    }
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
    program.folds.iter().enumerate().map(total).collect()
}

fn prepared(program: &Program, lanes: usize) -> Result<SumRows, Error> {
    SumRows::new(program, RowSource::Owned, KIND, lanes)
}

/// Both parties' shares.
fn pair(
    cluster: &Cluster,
    lift: &LiftParameters,
    rows: &[JoinedRow],
    lanes: usize,
) -> Vec<Result<Shares, Error>> {
    let (program, layout) = build(lift).unwrap();
    cluster.run(|session| {
        let mut table = Table { lift, layout: &layout, rows, party: Some(session.me()) };
        let stage = prepared(&program, lanes)?;
        let before = session.traffic().sent("");
        let shares = session.step("rows", |s| stage.run(RowInput::Owned(&mut table), s))?;
        let price = stage.price(rows.len() as u64).cost;
        assert_eq!(session.traffic().sent("") - before, price.sent[session.me().index()]);
        assert_eq!(
            [session.traffic().and_gates(""), session.traffic().ots("")],
            [price.and_gates, price.ots]
        );
        Ok(shares)
    })
}

fn clear(lift: &LiftParameters, rows: &[JoinedRow]) -> Vec<u128> {
    let (program, layout) = build(lift).unwrap();
    let mut session = Cluster::new(1, 1).sessions().remove(0);
    let mut table = Table { lift, layout: &layout, rows, party: None };
    totals(&program, &[run_rows(&Clear, &program, &mut table, &mut session).unwrap()])
}

/// Studies and tables: K = 1, 2, 4, 8, with windows, breakdowns and cohorts or without; small clocks, so that
/// ties and window ends happen; absent rows on either side.
fn cases() -> impl Strategy<Value = (LiftParameters, Vec<JoinedRow>)> {
    let shape = (1u8..=10, prop_oneof![Just(1u8), Just(2), Just(4), Just(8), Just(3)], 1u128..600);
    let rest = (prop::option::of(prop_oneof![0u32..40, Just(u32::MAX)]), 0usize..4, 0usize..4, any::<bool>());
    (shape, rest).prop_flat_map(|((time_bits, k, clamp), (within, breakdown, cohorts, also))| {
        let names = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>();
        let lift = LiftParameters {
            time_bits,
            value_bits: 7,
            clamp,
            within,
            impressions: true,
            breakdown: names(breakdown),
            cohorts: names(cohorts),
            also: if also { Also::ALL.to_vec() } else { Vec::new() },
            ..LiftParameters::bench(k)
        };
        let rows = prop::collection::vec(row(&lift), 0..150);
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
    let event = (times, 0..1u64 << lift.value_bits).prop_map(|(time, value)| PersonEvent { time, value });
    let events = prop::collection::vec(event, 0..=usize::from(lift.max_events));
    let outcome =
        (events, index(lift.cohorts.len())).prop_map(|(events, cohort)| PersonOutcome { events, cohort });
    (prop::option::weighted(0.85, user), prop::option::weighted(0.85, outcome))
        .prop_map(|(user, outcome)| JoinedRow { user, outcome })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn totals_are_those_of_the_clear_engine((lift, rows) in cases(), seed: u64) {
        let (program, _) = build(&lift).unwrap();
        let shares: Vec<Shares> =
            pair(&Cluster::new(2, seed), &lift, &rows, 64).into_iter().map(Result::unwrap).collect();
        prop_assert_eq!(totals(&program, &shares), clear(&lift, &rows));
    }
}

fn made_up(lift: &LiftParameters, rows: u64) -> Vec<JoinedRow> {
    (0..rows).map(|i| bench_row(lift, 5, i)).collect()
}

fn windowed() -> LiftParameters {
    let names = |n: &[&str]| n.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let (breakdown, cohorts) = (names(&["north", "south"]), names(&["x", "y", "z"]));
    LiftParameters { within: Some(1 << 30), breakdown, cohorts, ..LiftParameters::bench(4) }
}

#[test]
fn batches_and_groups_of_any_size() {
    let lift = windowed();
    let (program, _) = build(&lift).unwrap();
    let rows = made_up(&lift, 1500);
    for (lanes, tiny) in [(64, false), (192, false), (1024, false), (64, true), (1024, true)] {
        let cluster = Cluster::new(2, 3);
        let cluster = if tiny { cluster.tiny_window() } else { cluster };
        let shares: Vec<Shares> =
            pair(&cluster, &lift, &rows, lanes).into_iter().map(Result::unwrap).collect();
        assert_eq!(totals(&program, &shares), clear(&lift, &rows), "{lanes} lanes");
    }
}

/// A share says nothing: it is another one for every seed, and half of its bits are set.
#[test]
fn shares_are_random() {
    let lift = LiftParameters::bench(4);
    let (program, _) = build(&lift).unwrap();
    let rows = made_up(&lift, 100);
    let (mut set, mut bits, mut seen) = (0, 0, std::collections::BTreeSet::new());
    for seed in 0..24 {
        for shares in pair(&Cluster::new(2, seed), &lift, &rows, 128) {
            let shares = shares.unwrap();
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

/// Marginal cost of a row, in bits, without the OT extension; and COTs.
fn per_row(program: &Program) -> (u64, u64) {
    let (lanes, kind) = (64, OtKind::SoftSpoken { k: 8 });
    let stage = SumRows::new(program, RowSource::Owned, kind, lanes).unwrap();
    let rows = 64 * 64;
    let (once, twice): (Cost, Cost) = (stage.price(rows).cost, stage.price(2 * rows).cost);
    let cots = twice.ots - once.ots;
    assert_eq!(cots, stage.cots_per_row() * rows);
    // With random choices ceil(128 / 8) - 1 bits per COT.
    let bits = 8 * (twice.bytes() - once.bytes()) - 15 * cots;
    assert_eq!((bits % rows, cots % rows), (0, 0));
    (bits / rows, cots / rows)
}

/// Bits of what `lookup` fields and counts of a study take, from the layout of its totals.
fn width(lift: &LiftParameters, quantity: Quantity) -> u64 {
    let (program, layout) = build(lift).unwrap();
    let total = layout.totals.iter().find(|t| t.quantity == quantity).unwrap();
    program.folds[total.fold as usize].ty().width.into()
}

#[test]
fn a_lift_row_costs_what_the_formulas_say() {
    for k in [1, 2, 4, 8] {
        for breakdown in [0, 1, 3] {
            for cohorts in [0, 1, 3] {
                let names = |n: usize| (0..n).map(|i| format!("v{i}")).collect::<Vec<_>>();
                let lift = LiftParameters {
                    breakdown: names(breakdown),
                    cohorts: names(cohorts),
                    ..LiftParameters::bench(k)
                };
                let n = width(&lift, Quantity::Value) + width(&lift, Quantity::Squares);
                let count = width(&lift, Quantity::Rows);
                let (k, arms) = (u64::from(k), 2);
                let (cells, cohorts) = (arms * (1 + breakdown as u64), cohorts as u64);
                let cots = 32 + 14 * k + k + cells + cohorts;
                // A cohort counts its rows in the arms' cells; its values are products of the arms' cells.
                let cell_bits = cells * n + arms * cohorts * count;
                let bits = 240 * k + 22 * k + k * n + cell_bits + cohorts * arms * n + cots;
                let (program, _) = build(&lift).unwrap();
                assert_eq!(per_row(&program), (bits, cots), "{lift:?}");
            }
        }
    }
}

/// `K` events, three cells, fields of these widths: the rows of the design's table.
fn published(widths: &[u8]) -> Program {
    let mut b = ProgramBuilder::new("published", Class::Exact, ["publisher", "advertiser"]);
    let time = ValueType::u(32);
    let after = b.column("time", time, Some(PartyId(0)));
    let cells: Vec<NodeId> =
        (0..3).map(|c| b.column(&format!("cell{c}"), ValueType::BIT, Some(PartyId(0)))).collect();
    let keys: Vec<NodeId> = (0..4).map(|j| b.column(&format!("t{j}"), time, Some(PartyId(1)))).collect();
    for (f, width) in widths.iter().enumerate() {
        let values = (0..4)
            .map(|j| b.column(&format!("v{f}-{j}"), ValueType::u(8), Some(PartyId(1))))
            .collect::<Vec<_>>();
        let node = b.lookup(Lookup { after, until: None, keys: keys.clone(), values });
        for cell in &cells {
            let value = b.mask(*cell, node);
            b.sum(value, ValueType::u(*width));
        }
    }
    b.finish()
}

#[test]
fn the_published_rows_have_their_bytes() {
    for (widths, n, bytes) in [(&[24, 24, 24, 24, 40][..], 136, 262), (&[40, 32, 32, 56, 72], 232, 346)] {
        assert_eq!(widths.iter().map(|w| u64::from(*w)).sum::<u64>(), n);
        let (bits, cots) = per_row(&published(widths));
        assert_eq!((bits.div_ceil(8), cots), (bytes, 95));
    }
}

#[test]
fn narrow_times_take_fewer_digits() {
    for (time_bits, digits, nodes) in [(9u8, 9, 2), (4, 4, 0), (1, 1, 0), (16, 16, 3)] {
        let (program, _) = build(&LiftParameters { time_bits, ..LiftParameters::bench(4) }).unwrap();
        let (_, cots) = per_row(&program);
        assert_eq!(cots, digits + 2 * nodes * 4 + 4 + 2, "{time_bits} bits");
    }
}

#[test]
fn either_party_cut_at_any_step_stops_the_other_by_name() {
    let lift = LiftParameters { cohorts: vec!["x".into()], ..LiftParameters::bench(2) };
    let rows = made_up(&lift, 300);
    let steps = ["base-ot", "ots", "turn-0", "turn-1", "turn-2", "turn-3", "turn-4", "turn-5", "turn-6"];
    for culprit in [PartyId(0), PartyId(1)] {
        for step in steps {
            let cluster = Cluster::new(2, 4).deadline(Duration::from_secs(20));
            let cluster = cluster.fault(culprit, format!("rows/{step}"), InjectedFault::Cut);
            let ends = pair(&cluster, &lift, &rows, 64);
            for (me, end) in ends.into_iter().enumerate() {
                let text = end.err().unwrap_or_else(|| panic!("{step}: party {me} goes on")).to_string();
                let (me, peer) = (format!("p{me} at rows"), format!(" with p{}", 1 - me));
                assert!(text.starts_with(&me) && text.contains(&peer), "{step}: {text}");
            }
        }
    }
}

#[test]
fn a_short_message_ends_in_an_error_and_a_changed_one_in_no_panic() {
    let lift = LiftParameters::bench(2);
    let rows = made_up(&lift, 100);
    for culprit in [PartyId(0), PartyId(1)] {
        for turn in 0..6 {
            let cluster = || Cluster::new(2, 4).deadline(Duration::from_millis(400));
            let step = format!("rows/turn-{turn}");
            let short =
                pair(&cluster().fault(culprit, step.clone(), InjectedFault::Truncate), &lift, &rows, 64);
            assert!(short.iter().any(Result::is_err), "turn {turn}");
            let changed = InjectedFault::Corrupt { byte: 3, mask: 0x40 };
            let _ = pair(&cluster().fault(culprit, step, changed), &lift, &rows, 64);
        }
    }
}

#[test]
fn a_program_beyond_the_limit_is_refused() {
    let mut b = ProgramBuilder::new("wide", Class::Exact, ["a", "b"]);
    let ty = ValueType::u(128);
    let x = b.column("x", ty, Some(PartyId(0)));
    let y = b.column("y", ty, Some(PartyId(1)));
    let mut value = b.xor(x, y);
    for _ in 0..8 {
        value = b.div(y, value);
    }
    b.sum(value, ty);
    let error = prepared(&b.finish(), 64).err().unwrap().to_string();
    assert!(error.starts_with("oblivious transfers per row: "), "{error}");
}

/// Units are computations by themselves: the same totals, each at its own price, one after the other over the
/// same connection.
#[test]
fn units_by_themselves() {
    let lift = windowed();
    let (program, layout) = build(&lift).unwrap();
    let rows = made_up(&lift, 700);
    for kind in [KIND, OtKind::SoftSpoken { k: 1 }, OtKind::Ferret] {
        let stage = gmw::Gmw::new(kind).rows(&program, RowSource::Owned).unwrap();
        let price = stage.price(350).cost;
        let units = Cluster::new(2, 8).run(|session| {
            let mut all = Vec::new();
            for (i, part) in rows.chunks(350).enumerate() {
                let step = format!("unit-{i}");
                let mut table = Table { lift: &lift, layout: &layout, rows: part, party: Some(session.me()) };
                all.push(session.step(&step, |s| stage.run(RowInput::Owned(&mut table), s))?);
                let ledger = session.traffic();
                assert_eq!(ledger.sent(&step), price.sent[session.me().index()], "{kind}");
                let work = [ledger.and_gates(&step), ledger.ots(&step)];
                assert_eq!(work, [price.and_gates, price.ots], "{kind}");
            }
            Ok(all)
        });
        let mut units: Vec<_> = units.into_iter().map(|done| done.unwrap().into_iter()).collect();
        for part in rows.chunks(350) {
            let shares: Vec<Shares> = units.iter_mut().filter_map(Iterator::next).collect();
            assert_eq!(totals(&program, &shares), clear(&lift, part), "{kind}");
        }
    }
}

/// Batches under way together wait together: a second group costs its turns once, however many batches it
/// has.
#[test]
fn trips_are_those_of_groups() {
    let (program, _) = build(&windowed()).unwrap();
    let stage = prepared(&program, 64).unwrap();
    let trips = |batches: u64| stage.price(64 * batches).trips;
    let (one, sixteen) = (trips(1), trips(16));
    assert_eq!(one, sixteen);
    let (second, third) = (trips(32) - sixteen, trips(48) - sixteen);
    assert!(second > 0 && second <= one, "{second} of {one}");
    assert_eq!(third, 2 * second);
    assert!(stage.price(16 * 64).cost.rounds > sixteen, "turns count every batch");
}

/// A product with a bit that turns out to be constant is there before a sum of it is taken.
#[test]
fn a_constant_selector_comes_before_its_sum() {
    let ty = ValueType::u(8);
    let mut b = ProgramBuilder::new("constant", Class::Exact, ["a", "b"]);
    let [x, y] = [0, 1].map(|p| b.column(&format!("c{p}"), ty, Some(PartyId(p))));
    let both = b.xor(x, y);
    let always = b.eq(both, both);
    let taken = b.mask(always, y);
    let [taken, x] = [taken, x].map(|node| b.cast(node, ValueType::u(16)));
    let value = b.add(taken, x);
    b.sum(value, ValueType::u(32));
    let program = b.finish();
    let shares = Cluster::new(2, 4).run(|session| {
        let mut table =
            engine::conformance::Table::new(&program, &[vec![3; 5], vec![40; 5]], 5, Some(session.me()));
        run_rows(&gmw::Gmw::new(KIND), &program, &mut table, session)
    });
    let shares: Vec<Shares> = shares.into_iter().map(Result::unwrap).collect();
    assert_eq!(totals(&program, &shares), [5 * 43]);
}
