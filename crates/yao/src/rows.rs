//! Row and combine, streamed in batches of lanes.

use crate::compile::{GarbledGates, compile};
use crate::lanes::{Garbler, LabelEvaluator, Packed, pack};
use crate::masks::{self, LaneTemps, MaskGroup, MaskStep, Pads};
use crate::{START_BYTES, check_pair, recv_start, send_start};
use base::{Cost, Error, PartyId, limits};
use engine::{PreparedRows, RowInput, Share, Shares, StagePrice};
use net::Session;
use ot::{CotReceiver, CotSender, ExtensionCost, OtReceiver, OtSender};
use program::ShardRows;
use program::eval::{NodeValues, closure};
use program::lower::{FoldPlan, MaskSource, RowPlan, RowStep, lower_row};
use program::{NodeId, Op, Program};
use std::collections::VecDeque;

/// Most batches whose OT messages the evaluator sends ahead, so that a round trip does not stall every batch.
const AHEAD: u64 = 16;

/// Base OTs both ways, trees of the extension, first labels.
const SETUP_TRIPS: u64 = 6;

/// Rows of a program, made ready for one garbler.
pub(crate) struct GarbledRows {
    program: Program,
    garbler: PartyId,
    plan: RowPlan,
    compiled: GarbledGates,
    actions: Vec<MaskStep>,
    k: u32,
    /// Rows of a batch.
    lanes: usize,
}

impl GarbledRows {
    pub fn new(program: &Program, garbler: PartyId, k: u32, lanes: usize) -> Self {
        let plan = lower_row(program, garbler);
        let roots: Vec<_> = plan
            .steps
            .iter()
            .filter_map(|s| if let RowStep::Mask(mask) = s { Some(mask.selector) } else { None })
            .collect();
        let compiled = compile(&plan.circuit, &roots, garbler);
        let actions = masks::actions(&plan);
        Self { program: program.clone(), garbler, plan, compiled, actions, k, lanes }
    }

    /// For the garbler for which a row costs fewer bytes.
    pub fn cheaper(program: &Program, k: u32, lanes: usize) -> Self {
        let [first, second] = [PartyId(0), PartyId(1)].map(|party| Self::new(program, party, k, lanes));
        if second.bytes_per_lane() < first.bytes_per_lane() { second } else { first }
    }

    /// The party it was made ready for.
    pub fn garbler(&self) -> PartyId {
        self.garbler
    }

    /// Whether the rows need no conversation: every total is known to one party.
    fn is_local(&self) -> bool {
        self.plan.folds.iter().all(|f| matches!(f, FoldPlan::Alone(_)))
    }

    #[cfg(test)]
    pub fn spreads(&self) -> bool {
        self.compiled.gates.iter().any(|gate| matches!(gate, crate::compile::LabelGate::Spread { .. }))
    }

    fn table_bytes(&self) -> u64 {
        16 * self.compiled.table_blocks() + masks::bytes_per_lane(&self.actions)
    }

    /// Bytes per row, both ways, in the long run.
    fn bytes_per_lane(&self) -> u64 {
        let ots = self.compiled.ots.len() as u64;
        self.table_bytes() + ExtensionCost::correlated(self.k, 128 * ots).receiver / 128
    }

    /// Batches that the evaluator may ask for before it has heard the current one. What is on its way stays
    /// within half a window: otherwise it could wait to send while the garbler waits to send too.
    fn ahead(&self) -> usize {
        let ots = (self.compiled.ots.len() * self.lanes) as u64;
        let batch = ExtensionCost::correlated(self.k, ots).receiver.max(1);
        (limits::WINDOW_BYTES as u64 / 2 / batch).saturating_sub(1).min(AHEAD) as usize
    }

    fn batch_price(&self, lanes: usize) -> Cost {
        let ots = (self.compiled.ots.len() * lanes) as u64;
        let mut cost = ExtensionCost::correlated(self.k, ots).cost(self.garbler, self.garbler.other(), 2);
        cost.sent[self.garbler.index()] += self.table_bytes() * lanes as u64;
        cost.and_gates = (self.compiled.full + self.compiled.half) * lanes as u64;
        // The garbler hears the OTs of a batch after it has sent the batch before.
        cost.rounds = u64::from(ots > 0);
        cost
    }
}

impl PreparedRows for GarbledRows {
    /// The evaluator asks ahead, so only set-up waits.
    fn price(&self, rows: u64) -> StagePrice {
        let evaluator = self.garbler.other();
        if self.is_local() {
            return StagePrice { trips: SETUP_TRIPS, ..StagePrice::free(2) };
        }
        let mut cost =
            (ExtensionCost::base() + ExtensionCost::setup(self.k)).cost(self.garbler, evaluator, 2);
        cost.sent[self.garbler.index()] += START_BYTES as u64;
        let (full, rest) = (rows / self.lanes as u64, rows % self.lanes as u64);
        cost += &(self.batch_price(self.lanes) * full);
        if rest > 0 {
            cost += &self.batch_price(padded(rest as usize));
        }
        StagePrice { and_gates: cost.and_gates, trips: SETUP_TRIPS, cost }
    }

    /// No correlation is used twice: every batch takes new OTs off the one extension of the unit, whose own
    /// counter runs on, and the number of the batch is in each of its tweaks.
    fn run(&self, rows: RowInput<'_>, session: &mut Session) -> Result<Shares, Error> {
        check_pair(session)?;
        let (me, rows) = (session.me(), rows.owned()?);
        let mut unit = Unit::new(self, me);
        session.step("rows", |session| {
            if self.is_local() {
                unit.alone(rows)
            } else if me == self.garbler {
                let delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
                let mut cot = CotSender::new(session, me.other(), self.k, delta)?;
                let mut garbler = Garbler::new(send_start(session, me.other())?, delta);
                unit.garble(rows, (&mut cot, &mut garbler), session)
            } else {
                let mut cot = CotReceiver::new(session, me.other(), self.k)?;
                let mut evaluator = LabelEvaluator::new(recv_start(session, me.other())?);
                unit.evaluate(rows, (&mut cot, &mut evaluator), session)
            }
        })?;
        Ok(unit.shares())
    }
}

/// Lanes of a batch are whole words; the rows that fill up are zero and count nowhere.
fn padded(rows: usize) -> usize {
    rows.next_multiple_of(64)
}

/// One party's state over one unit.
struct Unit<'a> {
    stage: &'a GarbledRows,
    me: PartyId,
    wanted: Vec<bool>,
    values: NodeValues,
    temps: LaneTemps,
    pads: Pads,
    sums: Vec<u128>,
}

impl<'a> Unit<'a> {
    fn new(stage: &'a GarbledRows, me: PartyId) -> Self {
        let program = &stage.program;
        let wanted = closure(&program.row, stage.plan.clear_roots(program, me));
        Self {
            stage,
            me,
            wanted,
            values: NodeValues::default(),
            temps: LaneTemps::new(),
            pads: Pads::default(),
            sums: vec![0; program.folds.len()],
        }
    }

    /// Row ranges of the batches.
    fn batches(&self, total: u64) -> impl Iterator<Item = (u64, usize)> + use<> {
        let lanes = self.stage.lanes as u64;
        (0..total.div_ceil(lanes)).map(move |b| (b * lanes, lanes.min(total - b * lanes) as usize))
    }

    /// Evaluates this party's own columns for a batch.
    fn load(&mut self, rows: &mut dyn ShardRows, from: u64, count: usize) -> Result<(), Error> {
        let lanes = padded(count);
        self.values.evaluate(&self.stage.program.row, &self.wanted, lanes, &mut |op, out| match op {
            Op::Column(column) => {
                out[count..].fill(0);
                rows.read(*column, from, &mut out[..count])
            }
            _ => Err(Error::misuse("a row section has columns only")),
        })
    }

    fn bits(&self, inputs: &[circuits::InputBit], lanes: usize) -> Packed {
        pack(inputs, lanes, &|word| self.values.get(NodeId(word)))
    }

    /// A row node of this party as two's complement numbers.
    fn number(&self, node: NodeId, lane: usize) -> u128 {
        self.stage.program.row.ty(node).to_signed(self.values.get(node)[lane]) as u128
    }

    fn add_known(&mut self, temp: u32, node: NodeId) {
        let mask = self.stage.plan.modulus_mask(temp);
        for lane in 0..self.temps[temp as usize].len() {
            let number = self.number(node, lane);
            let share = &mut self.temps[temp as usize][lane];
            *share = share.wrapping_add(number) & mask;
        }
    }

    fn add_temp(&mut self, temp: u32, other: u32) {
        let mask = self.stage.plan.modulus_mask(temp);
        let source = std::mem::take(&mut self.temps[other as usize]);
        let into = &mut self.temps[temp as usize];
        into.iter_mut().zip(&source).for_each(|(a, b)| *a = a.wrapping_add(*b) & mask);
        self.temps[other as usize] = source;
    }

    /// Adds a batch to the sums: shares of shared folds, own numbers of own folds.
    fn accumulate(&mut self, count: usize) {
        for (i, plan) in self.stage.plan.folds.iter().enumerate() {
            let sum = match plan {
                FoldPlan::Shared(temp) => {
                    self.temps[*temp as usize][..count].iter().fold(0u128, |s, x| s.wrapping_add(*x))
                }
                FoldPlan::Alone(owner) if owner.is_none_or(|o| o == self.me) => {
                    let node = self.stage.program.folds[i].value();
                    (0..count).fold(0, |s: u128, lane| s.wrapping_add(self.number(node, lane)))
                }
                FoldPlan::Alone(_) => 0,
            };
            self.sums[i] = self.sums[i].wrapping_add(sum);
        }
    }

    /// Ends a batch once the wires are known: temporaries in order, `mask` for products with a wire, then the
    /// sums.
    fn finish(
        &mut self,
        lanes: usize,
        count: usize,
        mut mask: impl FnMut(&mut Self, &MaskGroup) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stage = self.stage;
        masks::clear(&mut self.temps, stage.plan.temps.len(), lanes);
        for action in &stage.actions {
            match action {
                MaskStep::Known { temp, party, node } if *party == self.me => self.add_known(*temp, *node),
                MaskStep::Known { .. } => {}
                MaskStep::Add { temp, other } => self.add_temp(*temp, *other),
                MaskStep::Mask(group) => mask(self, group)?,
            }
        }
        self.accumulate(count);
        Ok(())
    }

    fn shares(&self) -> Shares {
        let share = |((plan, fold), sum): ((&FoldPlan, &program::RowFold), &u128)| {
            let sum = sum & fold.ty().mask();
            match plan {
                FoldPlan::Shared(_) => Share::Additive(sum),
                FoldPlan::Alone(owner) if owner.is_none_or(|o| o == self.me) => Share::Known(sum),
                FoldPlan::Alone(_) => Share::Absent,
            }
        };
        let folds = self.stage.plan.folds.iter().zip(&self.stage.program.folds);
        Shares::new(folds.zip(&self.sums).map(share).collect())
    }

    fn alone(&mut self, rows: &mut dyn ShardRows) -> Result<(), Error> {
        for (from, count) in self.batches(rows.len()) {
            self.load(rows, from, count)?;
            self.accumulate(count);
        }
        Ok(())
    }

    fn garble(
        &mut self,
        rows: &mut dyn ShardRows,
        (cot, garbler): (&mut CotSender, &mut Garbler),
        session: &mut Session,
    ) -> Result<(), Error> {
        let (stage, peer) = (self.stage, self.stage.garbler.other());
        for (from, count) in self.batches(rows.len()) {
            let lanes = padded(count);
            self.load(rows, from, count)?;
            garbler.labels.prepare(&stage.compiled, lanes);
            garbler.labels.ots.clear();
            cot.correlated(session, stage.compiled.ots.len() * lanes, &mut garbler.labels.ots)?;
            let known = self.bits(&stage.compiled.known, lanes);
            garbler.run(&stage.compiled, &known, session, peer)?;
            self.finish(lanes, count, |unit, group| unit.garble_mask(garbler, group, session, peer))?;
            garbler.batch += 1;
            session.report(from + count as u64, rows.len());
        }
        Ok(())
    }

    fn garble_mask(
        &mut self,
        garbler: &Garbler,
        group: &MaskGroup,
        session: &mut Session,
        peer: PartyId,
    ) -> Result<(), Error> {
        let gates = self.stage.compiled.gates.len();
        let root = self.stage.compiled.roots[group.root];
        // The shares that a mask multiplies are complete before it, so they are read from a copy.
        let sources: Vec<(u32, Vec<u128>)> = group
            .slices
            .iter()
            .filter_map(|s| if let MaskSource::Temp(t) = s.source { Some(t) } else { None })
            .map(|t| (t, self.temps[t as usize].clone()))
            .collect();
        let (mut temps, mut pads) = (std::mem::take(&mut self.temps), std::mem::take(&mut self.pads));
        let value = |slice: &masks::MaskSlice, lane: usize| match slice.source {
            MaskSource::Constant(value) => value,
            MaskSource::Node(node) => self.number(node, lane),
            MaskSource::Temp(t) => sources.iter().find(|(s, _)| *s == t).expect("copied above").1[lane],
            MaskSource::Own(_) | MaskSource::Shifted { .. } => {
                unreachable!("a garbler's plan multiplies whole temporaries")
            }
        };
        let done = masks::garble(garbler, &mut pads, (group, root, gates), &value, &mut temps, session, peer);
        (self.temps, self.pads) = (temps, pads);
        done
    }

    fn evaluate(
        &mut self,
        rows: &mut dyn ShardRows,
        (cot, evaluator): (&mut CotReceiver, &mut LabelEvaluator),
        session: &mut Session,
    ) -> Result<(), Error> {
        let (stage, peer) = (self.stage, self.stage.garbler);
        let batches: Vec<(u64, usize)> = self.batches(rows.len()).collect();
        let ahead = stage.ahead();
        let mut waiting = VecDeque::with_capacity(ahead + 1);
        let mut asked = 0;
        for (b, (from, count)) in batches.iter().enumerate() {
            while asked < batches.len() && asked <= b + ahead {
                let (from, count) = batches[asked];
                waiting.push_back(self.ask(cot, rows, (from, count), session)?);
                asked += 1;
            }
            let (labels, choices) = waiting.pop_front().expect("asked above");
            let lanes = padded(*count);
            self.load(rows, *from, *count)?;
            evaluator.labels.prepare(&stage.compiled, lanes);
            evaluator.labels.ots = labels;
            evaluator.run(&stage.compiled, &choices, session, peer)?;
            self.finish(lanes, *count, |unit, group| {
                unit.evaluate_mask(evaluator, group, &choices, session, peer)
            })?;
            evaluator.batch += 1;
            session.report(from + *count as u64, rows.len());
        }
        Ok(())
    }

    /// Sends the OT message of a batch; returns its labels and choice bits.
    fn ask(
        &mut self,
        cot: &mut CotReceiver,
        rows: &mut dyn ShardRows,
        (from, count): (u64, usize),
        session: &mut Session,
    ) -> Result<(Vec<kernels::Block>, Packed), Error> {
        self.load(rows, from, count)?;
        let lanes = padded(count);
        let choices = self.bits(&self.stage.compiled.ots, lanes);
        let flat: Vec<u64> = choices.iter().flatten().copied().collect();
        let n = choices.len() * lanes;
        let mut labels = Vec::with_capacity(n);
        cot.correlated(session, &flat, n, &mut labels)?;
        Ok((labels, choices))
    }

    fn evaluate_mask(
        &mut self,
        evaluator: &LabelEvaluator,
        group: &MaskGroup,
        choices: &Packed,
        session: &mut Session,
        peer: PartyId,
    ) -> Result<(), Error> {
        let gates = self.stage.compiled.gates.len();
        let root = self.stage.compiled.roots[group.root];
        let known = |lane: usize| {
            let crate::compile::Ref::Ot(k) = root.0 else {
                unreachable!("only a bit that the evaluator knows multiplies its share")
            };
            let bit = kernels::bit(&choices[k as usize], lane) ^ u64::from(root.1);
            u128::from(bit).wrapping_neg()
        };
        let (mut temps, mut pads) = (std::mem::take(&mut self.temps), std::mem::take(&mut self.pads));
        let group = (group, root, gates);
        let done = masks::evaluate(evaluator, &mut pads, group, &known, &mut temps, session, peer);
        (self.temps, self.pads) = (temps, pads);
        done
    }
}
