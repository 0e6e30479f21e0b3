//! A unit of rows: groups of batches in flight, each through all rounds, into sums.
//!
//! No correlation is used twice: every group takes new OTs off the two extensions of the unit, whose own
//! counters run on, and the number of a batch is in each of its tweaks.
//!
//! The parties take turns. In turn r the first one hears the second one's choices and answers of round r - 1,
//! answers, and chooses for round r; the second one hears that, chooses and answers. So every message answers
//! one, no two messages cross, and while one batch waits for the peer the party works on another.

use crate::batch::{Batch, Context, Ots, Scratch};
use crate::inputs::Feed;
use crate::price::BatchCut;
use crate::schedule::Schedule;
use base::{Error, PartyId, limits};
use engine::{PreparedRows, RowInput, RowSource, Share, Shares, StagePrice};
use kernels::TweakedHash;
use net::Session;
use ot::{OtKind, Pair};
use program::eval::closure;
use program::lower::{FoldPlan, JoinedPlan, RowPlan};
use program::{JoinedRows, Program, RowFold, ValueType};
use std::sync::Arc;

/// Rows of a two-party program of sums, made ready.
#[derive(Clone)]
pub struct SumRows {
    lowered: Arc<LoweredSums>,
    cut: BatchCut,
}

/// What does not depend on the OT back end.
struct LoweredSums {
    /// The factored program, which the plan's nodes are of.
    program: Program,
    plan: Plan,
    /// Types of the plan's nodes.
    types: Vec<ValueType>,
    /// By party.
    schedules: [Schedule; 2],
    /// Steps of the conversation, by turn.
    names: Vec<String>,
}

enum Plan {
    /// Over the parties' own columns.
    Own(RowPlan),
    /// Over rows that a match has joined to shares.
    Joined(Arc<JoinedPlan>),
}

impl Plan {
    fn row(&self) -> &RowPlan {
        match self {
            Self::Own(plan) => plan,
            Self::Joined(plan) => &plan.row,
        }
    }

    fn joined(&self) -> Option<&Arc<JoinedPlan>> {
        if let Self::Joined(plan) = self { Some(plan) } else { None }
    }
}

impl SumRows {
    /// Lowers a program. `lanes` bounds the rows of a batch.
    ///
    /// # Errors
    /// When a row takes more oblivious transfers than [`super::COTS_PER_ROW`], and for joined rows those of
    /// [`program::lower::lower_joined`].
    pub fn new(program: &Program, source: RowSource, kind: OtKind, lanes: usize) -> Result<Self, Error> {
        let (program, plan, types) = match source {
            RowSource::Owned => {
                let program = program::lower::factor(program);
                let types = program.row.nodes.iter().map(|node| node.ty).collect();
                let plan = Plan::Own(program::lower::lower_pair(&program));
                (program, plan, types)
            }
            RowSource::Joined(shared) => {
                let plan = program::lower::lower_joined(program, shared)?;
                let types = plan.words.iter().map(|word| plan.word_type(*word)).collect();
                (plan.program.clone(), Plan::Joined(Arc::new(plan)), types)
            }
        };
        let schedule = |party| Schedule::new(plan.row(), plan.joined().map(|plan| &**plan), PartyId(party));
        let schedules = [schedule(0)?, schedule(1)?];
        let names = (0..=schedules[0].rounds.len()).map(|turn| format!("turn-{turn}")).collect();
        let cut = BatchCut::new(&schedules[0], plan.row(), kind, lanes);
        let lowered = Arc::new(LoweredSums { program, plan, types, schedules, names });
        Ok(Self { lowered, cut })
    }

    /// The same over another OT back end.
    #[must_use]
    pub fn with_kind(&self, kind: OtKind) -> Self {
        let mut same = self.clone();
        same.cut.kind = kind;
        same
    }

    /// COTs per row, in both directions.
    #[must_use]
    pub fn cots_per_row(&self) -> u64 {
        self.lowered.schedules[0].cots.iter().map(|c| *c as u64).sum()
    }

    /// How joined rows enter; nothing over columns.
    #[must_use]
    pub fn joined(&self) -> Option<&Arc<JoinedPlan>> {
        self.lowered.plan.joined()
    }
}

impl PreparedRows for SumRows {
    fn price(&self, rows: u64) -> StagePrice {
        self.cut.price(rows)
    }

    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        let mut unit = Side::new(self, session.me()).set_up(rows.count(), session)?;
        match (rows, &self.lowered.plan) {
            (RowInput::Owned(rows), Plan::Own(_)) => {
                let sums = unit.sum(&mut Feed::Rows(rows), session)?;
                Ok(unit.side.shares(&sums))
            }
            (RowInput::Joined(rows), Plan::Joined(plan)) => {
                let count = rows.len();
                let mut sums = unit.sum(&mut Feed::Joined(&mut *rows), session)?;
                unit.side.add_alone(plan, &mut sums, rows, count)?;
                Ok(unit.side.shares(&sums))
            }
            _ => Err(Error::misuse("a stage is run over the rows that it was made ready for")),
        }
    }
}

/// One party's half of a unit.
struct SumUnit<'a> {
    side: Side<'a>,
    cx: Context<'a>,
    /// Where something crosses.
    pair: Option<Pair>,
    /// Those in flight.
    batches: Vec<Batch>,
    /// How many batches there were.
    number: u64,
    talk: Talk,
}

impl SumUnit<'_> {
    /// The sums of a unit's rows.
    fn sum(&mut self, rows: &mut Feed<'_>, session: &mut Session) -> Result<Vec<u128>, Error> {
        let Self { side, cx, pair, batches, number, talk } = self;
        let mut sums = vec![0; side.lowered.plan.row().folds.len()];
        for (from, count) in side.cut.groups(rows.len(), batches.len()) {
            let group = &mut batches[..count.div_ceil(side.cut.lanes as u64) as usize];
            let mut at = from;
            for batch in group.iter_mut() {
                let count = (from + count - at).min(side.cut.lanes as u64) as usize;
                batch.load(cx, *number, rows, (at, count))?;
                (*number, at) = (*number + 1, at + count as u64);
            }
            if let Some(pair) = pair {
                session.step("ots", |session| side.draw(group, pair, &mut cx.ots, session))?;
            }
            side.rounds(group, cx, talk, session)?;
            let mut left = count as usize;
            for batch in group.iter() {
                side.add(&mut sums, batch, left.min(side.cut.lanes));
                left = left.saturating_sub(side.cut.lanes);
            }
            session.report(from + count, rows.len());
        }
        Ok(sums)
    }
}

/// What one party does in a unit.
struct Side<'a> {
    me: PartyId,
    lowered: &'a LoweredSums,
    schedule: &'a Schedule,
    cut: &'a BatchCut,
}

impl<'a> Side<'a> {
    fn new(SumRows { lowered, cut }: &'a SumRows, me: PartyId) -> Self {
        Self { me, lowered, schedule: &lowered.schedules[me.index()], cut }
    }

    fn set_up(self, rows: u64, session: &mut Session) -> Result<SumUnit<'a>, Error> {
        let LoweredSums { program, plan, types, .. } = self.lowered;
        let peer = self.me.other();
        let mut pair = match self.cut.local {
            true => None,
            false => ot::setup_all(session, &[peer], self.cut.kind, self.cut.expected(rows))?.pop(),
        };
        let roots = match plan {
            Plan::Own(plan) => plan.clear_roots(program, self.me),
            Plan::Joined(_) => Vec::new(),
        };
        let hashes = match &mut pair {
            Some(pair) => [pair.sender.pads().start(), pair.receiver.pads().start()],
            None => [kernels::Block::ZERO; 2],
        };
        let cx = Context {
            me: self.me,
            program,
            plan: plan.row(),
            joined: plan.joined().map(|plan| &**plan),
            types,
            schedule: self.schedule,
            wanted: closure(&program.row, roots),
            hashes: hashes.map(TweakedHash::new),
            delta: pair.as_ref().map_or(kernels::Block::ZERO, |pair| pair.sender.delta()),
            rng: session.fork_seed("leaf masks").into_rng(),
            ots: Ots::default(),
            scratch: Scratch::default(),
        };
        let window = if self.cut.local { limits::WINDOW_BYTES } else { session.link(peer).window() };
        let batches = (0..self.cut.flight(window)).map(|_| Batch::default()).collect();
        Ok(SumUnit { side: self, cx, pair, batches, number: 0, talk: Talk::default() })
    }

    /// Draws the OTs of a group, one direction after the other: first those in which the first party
    /// receives.
    fn draw(
        &self,
        group: &mut [Batch],
        pair: &mut Pair,
        ots: &mut Ots,
        session: &mut Session,
    ) -> Result<(), Error> {
        let lanes: usize = group.iter().map(|b| b.lanes).sum();
        let cots = |from: PartyId| self.schedule.cots[from.index()];
        ots.q.clear();
        ots.t.clear();
        for from in [self.cut.first.other(), self.cut.first] {
            let n = lanes * cots(from);
            match from == self.me {
                _ if n == 0 => {}
                true => pair.sender.correlated_random(session, n, &mut ots.q)?,
                false => pair.receiver.correlated_random(session, n, &mut ots.choices, &mut ots.t)?,
            }
        }
        let mut before = 0;
        for batch in group {
            batch.ots = [self.me, self.me.other()].map(|from| before * cots(from));
            before += batch.lanes;
        }
        Ok(())
    }

    /// All rounds of a group.
    fn rounds(
        &self,
        group: &mut [Batch],
        cx: &mut Context<'_>,
        talk: &mut Talk,
        session: &mut Session,
    ) -> Result<(), Error> {
        for (turn, name) in self.lowered.names.iter().enumerate() {
            session.step(name, |session| {
                group.iter_mut().try_for_each(|batch| match self.me == self.cut.first {
                    true => self.lead(turn, batch, cx, talk, session),
                    false => self.follow(turn, batch, cx, talk, session),
                })
            })?;
        }
        Ok(())
    }

    /// A turn of the first party: answers and finishes round `turn - 1`, chooses for round `turn`.
    fn lead(
        &self,
        turn: usize,
        batch: &mut Batch,
        cx: &mut Context<'_>,
        talk: &mut Talk,
        session: &mut Session,
    ) -> Result<(), Error> {
        let (me, peer) = (self.me, self.me.other());
        let rounds = &self.schedule.rounds;
        talk.said.clear();
        if let Some(round) = turn.checked_sub(1).map(|r| &rounds[r]) {
            let (choices, answers) = (
                self.cut.choice_bytes(round, me, batch.lanes),
                self.cut.answer_bytes(round, peer, batch.lanes),
            );
            talk.hear(session, peer, choices + answers)?;
            batch.answer(cx, round, &talk.heard[..choices], &mut talk.said);
            batch.absorb(cx, round, &talk.heard[choices..]);
        }
        batch.alone(cx, turn);
        if let Some(round) = rounds.get(turn) {
            batch.choose(cx, round, &mut talk.said);
        }
        self.tally(turn, batch, session);
        talk.say(session, peer)
    }

    /// A turn of the other party: finishes round `turn - 1`, chooses for and answers round `turn`.
    fn follow(
        &self,
        turn: usize,
        batch: &mut Batch,
        cx: &mut Context<'_>,
        talk: &mut Talk,
        session: &mut Session,
    ) -> Result<(), Error> {
        let (me, peer) = (self.me, self.me.other());
        let rounds = &self.schedule.rounds;
        let (before, now) = (turn.checked_sub(1).map(|r| &rounds[r]), rounds.get(turn));
        let answers = before.map_or(0, |r| self.cut.answer_bytes(r, peer, batch.lanes));
        let choices = now.map_or(0, |r| self.cut.choice_bytes(r, me, batch.lanes));
        talk.hear(session, peer, answers + choices)?;
        talk.said.clear();
        if let Some(round) = before {
            batch.absorb(cx, round, &talk.heard[..answers]);
        }
        batch.alone(cx, turn);
        if let Some(round) = now {
            batch.choose(cx, round, &mut talk.said);
            batch.answer(cx, round, &talk.heard[answers..], &mut talk.said);
        }
        self.tally(turn, batch, session);
        talk.say(session, peer)
    }

    fn tally(&self, turn: usize, batch: &Batch, session: &mut Session) {
        let ands = self.schedule.rounds.get(turn).map_or(0, |r| r.ands() * batch.lanes);
        if ands > 0 {
            session.link(self.me.other()).tally(ands as u64, 0);
        }
    }

    /// Adds the first `count` lanes of a batch.
    fn add(&self, sums: &mut [u128], batch: &Batch, count: usize) {
        let LoweredSums { program, plan, .. } = self.lowered;
        let folds = plan.row().folds.iter().zip(&program.folds);
        for (sum, (place, fold)) in sums.iter_mut().zip(folds) {
            let more = match place {
                FoldPlan::Shared(temp) => total(batch.temp(*temp)[..count].iter().copied()),
                FoldPlan::Alone(owner) if self.totals(*owner) && plan.joined().is_none() => {
                    total(batch.numbers(program.row.ty(fold.value()), fold.value()).take(count))
                }
                FoldPlan::Alone(_) => 0,
            };
            *sum = sum.wrapping_add(more);
        }
    }

    /// Adds what this party totals from its own file, and public terms of every joined row.
    fn add_alone(
        &self,
        plan: &JoinedPlan,
        sums: &mut [u128],
        rows: &mut dyn JoinedRows,
        count: u64,
    ) -> Result<(), Error> {
        for (fold, (sum, place)) in (0..).zip(sums.iter_mut().zip(&plan.row.folds)) {
            match place {
                FoldPlan::Alone(Some(owner)) if *owner == self.me => *sum = rows.alone(fold)?,
                FoldPlan::Alone(None) => *sum = plan.public(fold).wrapping_mul(count.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn shares(&self, sums: &[u128]) -> Shares {
        let share = |((plan, fold), sum): ((&FoldPlan, &RowFold), &u128)| {
            let sum = sum & fold.ty().mask();
            match plan {
                FoldPlan::Shared(_) => Share::Additive(sum),
                FoldPlan::Alone(owner) if self.totals(*owner) => Share::Known(sum),
                FoldPlan::Alone(_) => Share::Absent,
            }
        };
        let folds = self.lowered.plan.row().folds.iter().zip(&self.lowered.program.folds);
        Shares::new(folds.zip(sums).map(share).collect())
    }

    /// Whether this party totals a fold of `owner`, or of everybody, alone.
    fn totals(&self, owner: Option<PartyId>) -> bool {
        owner.is_none_or(|o| o == self.me)
    }
}

/// One message each way.
#[derive(Default)]
struct Talk {
    said: Vec<u8>,
    heard: Vec<u8>,
}

impl Talk {
    fn hear(&mut self, session: &mut Session, peer: PartyId, bytes: usize) -> Result<(), Error> {
        self.heard.resize(bytes, 0);
        if bytes == 0 { Ok(()) } else { session.link(peer).recv(&mut self.heard) }
    }

    /// Sends at once: the peer waits for it while this party goes on with the next batch.
    fn say(&mut self, session: &mut Session, peer: PartyId) -> Result<(), Error> {
        if self.said.is_empty() {
            return Ok(());
        }
        let mut link = session.link(peer);
        link.send(&self.said)?;
        link.flush()
    }
}

fn total(numbers: impl Iterator<Item = u128>) -> u128 {
    numbers.fold(0, u128::wrapping_add)
}
