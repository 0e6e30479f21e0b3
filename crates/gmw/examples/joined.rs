//! Measures lift rows that enter as shares: `joined [ROWS] [OT] [SLOTS]`, both parties in one process.
//!
//! The study is that of `tacit bench lift` (K = 4, 32-bit times and values). With SLOTS above 1 every anchor
//! has so many slots, masked; with SLOTS 0 the publisher knows its rows and the advertiser's are masked, as
//! circuit-PSI leaves them.

use base::{Error, Rng, Seed};
use engine::{Engine, Entries, RowInput, RowSource, Share, Shares, alone};
use gmw::Gmw;
use net::cluster::Cluster;
use ot::OtKind;
use program::JoinedRows;
use program::lower::{EntryKind, JoinedPlan, lower_joined};
use program::{Holder, Program};
use std::time::Instant;
use studies::lift::{
    ADVERTISER, BenchRows, JoinShape, LiftLayout, LiftParameters, PUBLISHER, bench_truth, build,
};

const SEED: u64 = 7;

struct Held {
    entries: Vec<Vec<u128>>,
    alone: Vec<(u32, u128)>,
    rows: u64,
}

impl JoinedRows for Held {
    fn len(&self) -> u64 {
        self.rows
    }
    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error> {
        into.copy_from_slice(&self.entries[entry][from as usize..][..into.len()]);
        Ok(())
    }
    fn alone(&mut self, fold: u32) -> Result<u128, Error> {
        let own = self.alone.iter().find(|(f, _)| *f == fold);
        own.map(|(_, total)| *total).ok_or_else(|| Error::misuse("a fold of the peer"))
    }
}

/// Both parties' halves of a made-up table; what is not a match is garbage.
fn deal(
    lift: &LiftParameters,
    plan: &JoinedPlan,
    layout: &LiftLayout,
    rows: u64,
    rng: &mut Rng,
) -> Result<[Held; 2], Error> {
    let mut table = BenchRows::new(lift, layout, None, rows, SEED);
    let mut entries = [Vec::new(), Vec::new()];
    for (at, entry) in plan.entries.iter().enumerate() {
        let mut own = Entries::of(plan, &[at]);
        own.load(&mut table, 0, rows as usize)?;
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        for value in own.get(at) {
            let mask = if plan.is_shared(at) { u128::from_le_bytes(rng.bytes()) } else { 0 };
            mine.push(mask);
            theirs.push(match entry.kind {
                EntryKind::Bits(_) => value ^ mask,
                EntryKind::Number { .. } => value.wrapping_sub(mask),
            });
        }
        let (first, second) =
            if entry.holder == Holder::Party(PUBLISHER) { (theirs, mine) } else { (mine, theirs) };
        entries[0].push(first);
        entries[1].push(second);
    }
    let [first, second] = entries;
    let mut totals = |party| alone(plan, party, &mut table);
    Ok([(first, PUBLISHER), (second, ADVERTISER)].map(|(entries, party)| (entries, totals(party)))).and_then(
        |halves: [_; 2]| {
            let [a, b] = halves.map(|(entries, alone)| alone.map(|alone| Held { entries, alone, rows }));
            Ok([a?, b?])
        },
    )
}

fn whole(program: &Program, shares: &[Shares]) -> Vec<u128> {
    let part = |share: &Share| match share {
        Share::Known(x) | Share::Additive(x) => *x,
        _ => 0,
    };
    let total = |i: usize| shares.iter().map(|s| part(&s.folds()[i])).fold(0, u128::wrapping_add);
    (0..program.folds.len()).map(|i| total(i) & program.folds[i].ty().mask()).collect()
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| match arguments.get(at) {
        Some(text) => text.parse().map_err(|_| Error::input(format!("{text:?} is not a number"))),
        None => Ok(default),
    };
    let (rows, slots) = (number(0, 1 << 18)?, number(2, 1)?);
    let kind = match arguments.get(1).map(String::as_str) {
        None | Some("softspoken") => OtKind::default(),
        Some("softspoken:4") => OtKind::SoftSpoken { k: 4 },
        Some("ferret") => OtKind::Ferret,
        Some(other) => {
            return Err(Error::input(format!("{other:?} is not softspoken, softspoken:4 or ferret")));
        }
    };
    let shared = [slots > 0, true];
    let matching = JoinShape { masked: slots != 1, slots: slots.max(1) as u8, ..JoinShape::default() };
    let lift = LiftParameters { matching, ..LiftParameters::bench(4) };
    let (program, layout) = build(&lift)?;
    let plan = lower_joined(&program, shared)?;
    let held = deal(&lift, &plan, &layout, rows, &mut Seed::from_bytes([5; 32]).into_rng())?;
    let held = held.map(|half| std::sync::Mutex::new(Some(half)));
    let stage = Gmw::new(kind).rows(&program, RowSource::Joined(shared))?;
    let started = Instant::now();
    let shares: Vec<Shares> = Cluster::new(2, SEED)
        .run(|session| {
            let mut half = held[session.me().index()].lock().expect("unpoisoned").take().expect("one run");
            stage.run(RowInput::Joined(&mut half), session)
        })
        .into_iter()
        .collect::<Result<_, _>>()?;
    let seconds = started.elapsed().as_secs_f64();
    let (cost, trips) = (stage.price(rows).cost, stage.price(rows.min(1024)).trips);
    if matching.slots == 1 {
        let (truth, met) = (bench_truth(&lift, rows, SEED), whole(&program, &shares));
        let right =
            |t: &studies::lift::CellTotal| met[t.fold as usize] == truth.get(t.cell, t.arm, t.quantity);
        assert!(layout.totals.iter().all(right), "a total is wrong");
    }
    println!(
        "{:.0} rows/s; {:.0} B and {:.0} COTs per row; {trips} messages one after the other for one batch",
        rows as f64 / seconds,
        cost.bytes() as f64 / rows as f64,
        cost.ots as f64 / rows as f64,
    );
    Ok(())
}
