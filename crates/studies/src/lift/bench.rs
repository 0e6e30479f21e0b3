//! Rows made up from their index, for benchmarks of any length: a party's columns take no memory, and the
//! exact totals can be had from the same rows. Nothing here is secret, so a plain mixing function serves as
//! generator.

use super::layout::NO_VALUE;
use super::{
    Content, JoinedRow, LiftLayout, LiftParameters, PersonEvent, PersonOutcome, TrialArm, TrueTotals, User,
};
use base::{Error, PartyId};
use program::ShardRows;

/// One party's columns of a made-up table (or both parties', for the clear engine).
#[derive(Clone, Debug)]
pub struct BenchRows {
    lift: LiftParameters,
    columns: Vec<Content>,
    party: Option<PartyId>,
    rows: u64,
    seed: u64,
    shard: (u64, u64),
}

impl BenchRows {
    /// The columns of `party`, or of both for `None`, over `rows` rows. The same seed gives the same table.
    #[must_use]
    pub fn new(
        lift: &LiftParameters,
        layout: &LiftLayout,
        party: Option<PartyId>,
        rows: u64,
        seed: u64,
    ) -> Self {
        Self { lift: lift.clone(), columns: layout.columns.clone(), party, rows, seed, shard: (0, 1) }
    }

    /// Only the rows of shard `index` of `of`, dealt round-robin.
    #[must_use]
    pub fn shard(mut self, index: u32, of: u32) -> Self {
        assert!(index < of, "a shard is one of them");
        self.shard = (index.into(), of.into());
        self
    }
}

impl ShardRows for BenchRows {
    fn len(&self) -> u64 {
        let (index, of) = self.shard;
        self.rows.saturating_sub(index).div_ceil(of)
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let content = self.columns.get(column as usize).copied();
        let held = content.filter(|c| self.party.is_none_or(|p| c.owner() == Some(p)));
        let content = held.ok_or_else(|| Error::misuse(format!("column {column} is not held here")))?;
        let (index, of) = self.shard;
        for (i, out) in (from..).zip(into) {
            *out = Source { lift: &self.lift, seed: self.seed, row: index + i * of }.column(content);
        }
        Ok(())
    }
}

/// A row of the made-up table.
#[must_use]
pub fn bench_row(lift: &LiftParameters, seed: u64, row: u64) -> JoinedRow {
    let source = Source { lift, seed, row };
    let outcome = source.outcome().map(|count| PersonOutcome {
        events: (lift.max_events - count..lift.max_events).map(|j| source.event(j)).collect(),
        cohort: source.cohort(),
    });
    JoinedRow { user: source.user(), outcome }
}

/// The exact totals of the made-up table, by the definitions.
#[must_use]
pub fn bench_truth(lift: &LiftParameters, rows: u64, seed: u64) -> TrueTotals {
    let mut totals = TrueTotals::default();
    (0..rows).for_each(|row| totals.add(lift, &bench_row(lift, seed, row)));
    totals
}

/// What is drawn for one row. Each draw has its own number, so a column is found without the others.
#[derive(Clone, Copy)]
enum Draw {
    User,
    Time,
    Breakdown,
    Outcome,
    Cohort,
    Event(u8),
    Value(u8),
}

struct Source<'a> {
    lift: &'a LiftParameters,
    seed: u64,
    row: u64,
}

impl Source<'_> {
    fn draw(&self, draw: Draw) -> u64 {
        let number = match draw {
            Draw::User => 0,
            Draw::Time => 1,
            Draw::Breakdown => 2,
            Draw::Outcome => 3,
            Draw::Cohort => 4,
            Draw::Event(j) => 16 + u64::from(j),
            Draw::Value(j) => 32 + u64::from(j),
        };
        mix(mix(self.seed ^ mix(self.row)) ^ number)
    }

    /// Seven rows of eight have an opportunity.
    fn user(&self) -> Option<User> {
        let draw = self.draw(Draw::User);
        (draw & 7 != 0).then(|| User {
            arm: if draw & 8 == 0 { TrialArm::Test } else { TrialArm::Control },
            time: self.draw(Draw::Time) % self.lift.no_time(),
            reached: draw & 16 == 0,
            breakdown: pick(self.draw(Draw::Breakdown), self.lift.breakdown.len()),
        })
    }

    /// Three rows of four have an outcome, with 0 to K events.
    fn outcome(&self) -> Option<u8> {
        let draw = self.draw(Draw::Outcome);
        let count = (draw >> 8) % (u64::from(self.lift.max_events) + 1);
        (draw & 3 != 0).then_some(count as u8)
    }

    /// Event 0..K lies in its own part of the clock, so events come in order.
    fn event(&self, j: u8) -> PersonEvent {
        let (k, last) = (u128::from(self.lift.max_events), u128::from(self.lift.no_time()));
        let within = u128::from(self.draw(Draw::Event(j))) % last;
        let time = (u128::from(j) * last + within) / k;
        let value = self.draw(Draw::Value(j)) >> (64 - self.lift.value_bits);
        PersonEvent { time: time as u64, value }
    }

    fn cohort(&self) -> Option<u8> {
        pick(self.draw(Draw::Cohort), self.lift.cohorts.len())
    }

    fn column(&self, content: Content) -> u128 {
        let event = |j: u8| {
            let count = self.outcome().unwrap_or(0);
            (j + count >= self.lift.max_events).then(|| self.event(j))
        };
        match content {
            Content::Present | Content::Valid => self.outcome().is_some().into(),
            Content::Cohort => self.outcome().and_then(|_| self.cohort()).map_or(NO_VALUE, u128::from),
            Content::EventTime(j) => event(j).map_or(0, |e| e.time.into()),
            Content::EventValue(j) => event(j).map_or(0, |e| e.value.into()),
            publisher => publisher.encode(self.lift, &JoinedRow { user: self.user(), outcome: None }),
        }
    }
}

/// One of `count` values; one draw of sixteen has none.
fn pick(draw: u64, count: usize) -> Option<u8> {
    (count > 0 && draw >> 60 != 0).then(|| (draw % count as u64) as u8)
}

/// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
