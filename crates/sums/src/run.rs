//! A shard: groups of batches in flight, each through all rounds, into sums.
//!
//! The parties take turns. In turn r the first one hears the second one's choices and answers of round r - 1,
//! answers, and chooses for round r; the second one hears that, chooses and answers. So every message answers
//! one, no two messages cross, and while one batch waits for the peer the party works on another.

use crate::batch::{Batch, Context, Ots, Scratch};
use crate::inputs::Feed;
use crate::price::Shape;
use crate::schedule::Schedule;
use base::{Error, PartyId, limits};
use engine::{Share, Shares};
use kernels::TweakedHash;
use net::Session;
use ot::{Bases, OtKind, Pair};
use program::eval::closure;
use program::lower::{FoldPlan, JoinedPlan, RowPlan};
use program::{JoinedRows, ShardRows};
use program::{NodeId, Program, RowFold, ValueType};

/// A two-party program of sums made ready for one party.
pub struct Prepared {
    /// The factored program, which the plan's nodes are of.
    program: Program,
    plan: Plan,
    /// Types of the plan's nodes.
    types: Vec<ValueType>,
    schedule: Schedule,
    me: PartyId,
    shape: Shape,
    /// Steps of the conversation, by turn.
    names: Vec<String>,
}

enum Plan {
    /// Over the parties' own columns.
    Own(RowPlan),
    /// Over rows that a match has joined to shares.
    Joined(Box<JoinedPlan>),
}

impl Plan {
    fn row(&self) -> &RowPlan {
        match self {
            Self::Own(plan) => plan,
            Self::Joined(plan) => &plan.row,
        }
    }

    fn joined(&self) -> Option<&JoinedPlan> {
        if let Self::Joined(plan) = self { Some(plan) } else { None }
    }
}

/// Where a shard's sums stand.
struct Sums(Vec<u128>);

impl Prepared {
    /// Lowers a program for party `me`. `lanes` bounds the rows of a batch.
    ///
    /// # Errors
    /// When a row takes more oblivious transfers than [`super::COTS_PER_ROW`].
    pub fn new(program: &Program, me: PartyId, kind: OtKind, lanes: usize) -> Result<Self, Error> {
        let program = program::lower::factor(program);
        let plan = Plan::Own(program::lower::lower_pair(&program));
        let types = program.row.nodes.iter().map(|node| node.ty).collect();
        Self::with_plan(program, plan, types, me, (kind, lanes))
    }

    /// Lowers a program for rows that a match has joined to shares, those of the parties in `shared`.
    ///
    /// # Errors
    /// Those of [`program::lower::lower_joined`], and those of [`Prepared::new`].
    pub fn joined(
        program: &Program,
        shared: [bool; 2],
        me: PartyId,
        kind: OtKind,
        lanes: usize,
    ) -> Result<Self, Error> {
        let plan = program::lower::lower_joined(program, shared)?;
        let types = plan.words.iter().map(|word| plan.word_type(*word)).collect();
        Self::with_plan(plan.program.clone(), Plan::Joined(Box::new(plan)), types, me, (kind, lanes))
    }

    fn with_plan(
        program: Program,
        plan: Plan,
        types: Vec<ValueType>,
        me: PartyId,
        (kind, lanes): (OtKind, usize),
    ) -> Result<Self, Error> {
        let schedule = Schedule::new(plan.row(), plan.joined(), me)?;
        let shape = Shape::new(&schedule, plan.row(), kind, lanes);
        let names = (0..=schedule.rounds.len()).map(|turn| format!("turn-{turn}")).collect();
        Ok(Self { program, plan, types, schedule, me, shape, names })
    }

    /// The same over base OTs of a hub: prices, and [`Prepared::run_over`].
    #[must_use]
    pub fn over_hub(mut self) -> Self {
        self.shape.over = true;
        self
    }

    /// What a shard of so many rows costs.
    #[must_use]
    pub fn price(&self, rows: u64) -> base::Cost {
        self.shape.price(rows)
    }

    /// Messages of a shard that must cross the path one after the other: while batches are under way
    /// together, their turns wait together.
    #[must_use]
    pub fn trips(&self, rows: u64) -> u64 {
        self.shape.trips(rows)
    }

    /// COTs per row, in both directions.
    #[must_use]
    pub fn cots_per_row(&self) -> u64 {
        self.schedule.cots.iter().map(|c| *c as u64).sum()
    }

    /// Runs one shard, with base OTs of its own unless some are at hand.
    ///
    /// # Errors
    /// Those of the rows and of the conversation.
    pub fn run(
        &self,
        rows: &mut dyn ShardRows,
        bases: Option<Bases>,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        let sums = self.shard(&mut Feed::Rows(rows), bases, session)?;
        Ok(sums.shares(self))
    }

    /// Runs one shard of rows joined to shares, with base OTs of its own unless some are at hand.
    ///
    /// # Errors
    /// Those of the rows and of the conversation.
    pub fn run_joined(
        &self,
        rows: &mut dyn JoinedRows,
        bases: Option<Bases>,
        session: &mut Session,
    ) -> Result<Shares, Error> {
        let count = rows.len();
        let mut sums = self.shard(&mut Feed::Joined(rows), bases, session)?;
        sums.alone(self, rows, count)?;
        Ok(sums.shares(self))
    }

    fn shard(&self, rows: &mut Feed<'_>, bases: Option<Bases>, session: &mut Session) -> Result<Sums, Error> {
        let plan = self.plan.row();
        let mut sums = Sums(vec![0; plan.folds.len()]);
        let peer = self.me.other();
        let expected = self.shape.expected(rows.len());
        let mut pair = match bases {
            _ if self.shape.local => None,
            Some(bases) => ot::setup_over(session, bases, self.shape.kind, expected)?.pop(),
            None => ot::setup_all(session, &[peer], self.shape.kind, expected)?.pop(),
        };
        let roots = match &self.plan {
            Plan::Own(plan) => plan.clear_roots(&self.program, self.me),
            Plan::Joined(_) => Vec::new(),
        };
        let wanted = closure(&self.program.row, roots);
        let hashes = match &mut pair {
            Some(pair) => [pair.sender.pads().start(), pair.receiver.pads().start()],
            None => [kernels::Block::ZERO; 2],
        };
        let mut cx = Context {
            me: self.me,
            program: &self.program,
            plan,
            joined: self.plan.joined(),
            types: &self.types,
            schedule: &self.schedule,
            wanted: &wanted,
            hashes: hashes.map(TweakedHash::new),
            delta: pair.as_ref().map_or(kernels::Block::ZERO, |pair| pair.sender.delta()),
            rng: session.fork_seed("leaf masks").into_rng(),
            ots: Ots::default(),
            scratch: Scratch::default(),
        };
        let total = rows.len();
        let window = if self.shape.local { limits::WINDOW_BYTES } else { session.link(peer).window() };
        let flight = self.shape.flight(window);
        let mut batches: Vec<Batch> = (0..flight).map(|_| Batch::default()).collect();
        let mut talk = Talk::default();
        let mut number = 0;
        for (from, count) in self.shape.groups(total, flight) {
            let group = &mut batches[..count.div_ceil(self.shape.lanes as u64) as usize];
            let mut at = from;
            for batch in group.iter_mut() {
                let count = (from + count - at).min(self.shape.lanes as u64) as usize;
                batch.load(&cx, number, rows, (at, count))?;
                (number, at) = (number + 1, at + count as u64);
            }
            if let Some(pair) = &mut pair {
                session.step("ots", |session| self.draw(group, pair, &mut cx.ots, session))?;
            }
            self.rounds(group, &mut cx, &mut talk, session)?;
            let mut left = count as usize;
            for batch in group.iter() {
                sums.add(self, batch, left.min(self.shape.lanes));
                left = left.saturating_sub(self.shape.lanes);
            }
            session.report(from + count, total);
        }
        Ok(sums)
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
        for from in [self.shape.first.other(), self.shape.first] {
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
        for (turn, name) in self.names.iter().enumerate() {
            session.step(name, |session| {
                group.iter_mut().try_for_each(|batch| match self.me == self.shape.first {
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
                self.shape.choice_bytes(round, me, batch.lanes),
                self.shape.answer_bytes(round, peer, batch.lanes),
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
        let answers = before.map_or(0, |r| self.shape.answer_bytes(r, peer, batch.lanes));
        let choices = now.map_or(0, |r| self.shape.choice_bytes(r, me, batch.lanes));
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

impl Sums {
    /// Adds the first `count` lanes of a batch.
    fn add(&mut self, prepared: &Prepared, batch: &Batch, count: usize) {
        let folds = prepared.plan.row().folds.iter().zip(&prepared.program.folds);
        for (sum, (plan, fold)) in self.0.iter_mut().zip(folds) {
            let more = match plan {
                FoldPlan::Shared(temp) => total(batch.temp(*temp)[..count].iter().copied()),
                FoldPlan::Alone(owner) if prepared.totals(*owner) && prepared.plan.joined().is_none() => {
                    total(batch.numbers(prepared.ty(fold.value()), fold.value()).take(count))
                }
                FoldPlan::Alone(_) => 0,
            };
            *sum = sum.wrapping_add(more);
        }
    }

    /// Adds what this party totals from its own file, and public terms of every joined row.
    fn alone(&mut self, prepared: &Prepared, rows: &mut dyn JoinedRows, count: u64) -> Result<(), Error> {
        let plan = prepared.plan.joined().ok_or_else(|| Error::misuse("rows that were not joined"))?;
        for (fold, (sum, place)) in (0..).zip(self.0.iter_mut().zip(&plan.row.folds)) {
            match place {
                FoldPlan::Alone(Some(owner)) if *owner == prepared.me => *sum = rows.alone(fold)?,
                FoldPlan::Alone(None) => *sum = plan.public(fold).wrapping_mul(count.into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn shares(&self, prepared: &Prepared) -> Shares {
        let share = |((plan, fold), sum): ((&FoldPlan, &RowFold), &u128)| {
            let sum = sum & fold.ty().mask();
            match plan {
                FoldPlan::Shared(_) => Share::Additive(sum),
                FoldPlan::Alone(owner) if prepared.totals(*owner) => Share::Known(sum),
                FoldPlan::Alone(_) => Share::Absent,
            }
        };
        let folds = prepared.plan.row().folds.iter().zip(&prepared.program.folds);
        Shares::new(folds.zip(&self.0).map(share).collect())
    }
}

impl Prepared {
    /// Whether this party totals a fold of `owner`, or of everybody, alone.
    fn totals(&self, owner: Option<PartyId>) -> bool {
        owner.is_none_or(|o| o == self.me)
    }

    fn ty(&self, node: NodeId) -> ValueType {
        self.program.row.ty(node)
    }
}

fn total(numbers: impl Iterator<Item = u128>) -> u128 {
    numbers.fold(0, u128::wrapping_add)
}
