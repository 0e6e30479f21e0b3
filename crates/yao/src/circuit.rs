//! Stand-alone circuits (circuit files), over lanes.
//!
//! **Functionality.** A circuit of two parties' words is evaluated on many lanes; every output goes to its
//! viewers alone.
//!
//! **Model, who learns what.** As for rows (header of `lib.rs`). An output is decoded from the colour of its
//! active label, which the evaluator holds, and the colour of its label of 0, which the garbler holds: each
//! sends its colours of the other's outputs, and of no other wire. A viewer learns the output and, from that,
//! nothing else: it could compute the other's colour from its own.
//!
//! **Deviations.** The garbler is the party for which a lane costs fewer bytes, which is the one with more
//! input bits wherever that decides. Circuits from files may combine the garbler's bits in any way;
//! `Compiler::hashed` keeps the labels of lanes apart as everywhere.
//!
//! **Cost.** 32 B per AND of shared bits, 16 B with a known one, 16 ceil(128 / k) / 128 B per evaluator bit,
//! a bit per output bit and viewer; [`PreparedCircuit::price`] is exact.

use crate::compile::{GarbledGates, compile};
use crate::lanes::{Garbler, LabelEvaluator, Packed};
use crate::{START_BYTES, check_pair, recv_start, send_start};
use base::{Cost, Error, PartyId};
use circuits::Wired;
use circuits::{InputBit, Lit};
use engine::PreparedCircuit;
use engine::circuit_engine::check_inputs;
use kernels::Block;
use net::Session;
use ot::{CotReceiver, CotSender, ExtensionCost, OtReceiver, OtSender};
use std::collections::VecDeque;

/// Most bytes of labels of one batch; wide circuits take fewer lanes at once, at least 64.
const LABEL_BYTES: usize = 256 << 20;
/// Most batches whose OT messages the evaluator sends ahead.
const AHEAD: u64 = 16;

/// A circuit made ready for one garbler.
pub(crate) struct GarbledCircuit<'a> {
    wired: &'a Wired,
    garbler: PartyId,
    compiled: GarbledGates,
    /// The outputs that somebody learns; their bits are the roots, in order.
    seen: Vec<usize>,
    k: u32,
    /// Most lanes at once.
    most: usize,
}

/// Lanes of a batch.
#[derive(Clone, Copy)]
struct Batch {
    from: usize,
    count: usize,
}

impl<'a> GarbledCircuit<'a> {
    pub fn new(wired: &'a Wired, garbler: PartyId, k: u32, most: usize) -> Self {
        let is_seen = |k: &usize| [garbler, garbler.other()].iter().any(|p| wired.outputs[*k].to.has(*p));
        let seen: Vec<usize> = (0..wired.outputs.len()).filter(is_seen).collect();
        let roots: Vec<Lit> = seen.iter().flat_map(|k| wired.outputs[*k].bits.iter().copied()).collect();
        let compiled = compile(&wired.circuit, &roots, garbler);
        Self { wired, garbler, compiled, seen, k, most }
    }

    /// The party for which a lane costs fewer bytes garbles; a tie goes to party 0.
    pub fn cheaper(wired: &'a Wired, k: u32, most: usize) -> Self {
        let [first, second] = [PartyId(0), PartyId(1)].map(|party| Self::new(wired, party, k, most));
        if second.bytes_per_lane() < first.bytes_per_lane() { second } else { first }
    }

    /// Bytes per lane, both ways, in the long run.
    fn bytes_per_lane(&self) -> u64 {
        let ots = self.compiled.ots.len() as u64;
        16 * self.compiled.table_blocks() + ExtensionCost::correlated(self.k, 128 * ots).receiver / 128
    }

    /// Roots that a party learns.
    fn roots_of(&self, party: PartyId) -> impl Iterator<Item = usize> + '_ {
        let mut at = 0;
        self.seen.iter().flat_map(move |k| {
            let output = &self.wired.outputs[*k];
            let roots = at..at + output.bits.len();
            at = roots.end;
            if output.to.has(party) { roots } else { 0..0 }
        })
    }

    fn batches(&self, lanes: usize) -> Vec<Batch> {
        let labels = self.compiled.slots as usize + self.compiled.ots.len();
        let fit = LABEL_BYTES / (Block::BYTES * labels.max(1)) / 64 * 64;
        let size = self.most.min(fit).max(64);
        (0..lanes).step_by(size).map(|from| Batch { from, count: size.min(lanes - from) }).collect()
    }

    fn garble(
        &self,
        batches: &[Batch],
        inputs: &[Vec<Vec<u64>>],
        colours: &mut [Vec<u64>],
        session: &mut Session,
    ) -> Result<(), Error> {
        let peer = self.garbler.other();
        let delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
        let ots = self.compiled.ots.len();
        let mut cot = if ots > 0 { Some(CotSender::new(session, peer, self.k, delta)?) } else { None };
        let mut garbler = Garbler::new(send_start(session, peer)?, delta);
        for batch in batches {
            garbler.labels.prepare(&self.compiled, batch.count);
            garbler.labels.ots.clear();
            if let Some(cot) = &mut cot {
                cot.correlated(session, ots * batch.count, &mut garbler.labels.ots)?;
            }
            let known = bits(&self.compiled.known, inputs, *batch);
            garbler.run(&self.compiled, &known, session, peer)?;
            for (root, colours) in self.compiled.roots.iter().zip(colours.iter_mut()) {
                append_colours(garbler.root(*root), colours);
            }
            garbler.batch += 1;
            report(session, *batch, batches);
        }
        Ok(())
    }

    fn evaluate(
        &self,
        batches: &[Batch],
        inputs: &[Vec<Vec<u64>>],
        colours: &mut [Vec<u64>],
        session: &mut Session,
    ) -> Result<(), Error> {
        let peer = self.garbler;
        let ots = self.compiled.ots.len();
        let mut cot = if ots > 0 { Some(CotReceiver::new(session, peer, self.k)?) } else { None };
        let mut evaluator = LabelEvaluator::new(recv_start(session, peer)?);
        let mut waiting = VecDeque::new();
        let mut asked = batches.iter();
        // What is on its way stays within half a window: otherwise both parties could wait to send.
        let message = ExtensionCost::correlated(self.k, (ots * batches[0].count) as u64).receiver.max(1);
        let ahead = (session.link(peer).window() as u64 / 2 / message).clamp(1, AHEAD) as usize;
        for batch in batches {
            while waiting.len() < ahead
                && let Some(next) = asked.next()
            {
                let choices = bits(&self.compiled.ots, inputs, *next);
                let mut labels = Vec::new();
                if let Some(cot) = &mut cot {
                    cot.correlated(session, &flat(&choices, next.count), ots * next.count, &mut labels)?;
                }
                waiting.push_back((labels, choices));
            }
            let (labels, choices) = waiting.pop_front().expect("asked above");
            evaluator.labels.prepare(&self.compiled, batch.count);
            evaluator.labels.ots = labels;
            evaluator.run(&self.compiled, &choices, session, peer)?;
            for (root, colours) in self.compiled.roots.iter().zip(colours.iter_mut()) {
                append_colours(evaluator.labels.get(root.0).iter().copied(), colours);
            }
            evaluator.batch += 1;
            report(session, *batch, batches);
        }
        Ok(())
    }

    /// Each party sends its colours of what the other learns, and turns its own into the values of what it
    /// learns.
    fn reveal(&self, lanes: usize, colours: &mut [Vec<u64>], session: &mut Session) -> Result<(), Error> {
        let (me, peer) = (session.me(), session.me().other());
        let bytes = lanes.div_ceil(8);
        let mut mine = Vec::new();
        for root in self.roots_of(peer) {
            let words = colours[root].iter().flat_map(|word| word.to_le_bytes());
            mine.extend(words.take(bytes));
        }
        let mut theirs = vec![0; self.roots_of(me).count() * bytes];
        session.link(peer).exchange(&mine, &mut theirs)?;
        let live = u64::MAX >> (64 * lanes.div_ceil(64) - lanes);
        for (root, theirs) in self.roots_of(me).zip(theirs.chunks(bytes)) {
            for (word, theirs) in colours[root].iter_mut().zip(theirs.chunks(8)) {
                let mut wide = [0; 8];
                wide[..theirs.len()].copy_from_slice(theirs);
                *word ^= u64::from_le_bytes(wide);
            }
            // The peer's bits past the last lane are nobody's.
            *colours[root].last_mut().expect("there is a lane") &= live;
        }
        Ok(())
    }
}

impl PreparedCircuit for GarbledCircuit<'_> {
    fn price(&self, lanes: usize) -> Cost {
        let mut cost = Cost::zero(2);
        if self.seen.is_empty() || lanes == 0 {
            return cost;
        }
        let (k, garbler, evaluator) = (self.k, self.garbler, self.garbler.other());
        let batches = self.batches(lanes);
        let (ots, tables) = (self.compiled.ots.len(), self.compiled.table_blocks());
        if ots > 0 {
            cost += &(ExtensionCost::base() + ExtensionCost::setup(k)).cost(garbler, evaluator, 2);
            for batch in &batches {
                let n = (ots * batch.count) as u64;
                cost += &ExtensionCost::correlated(k, n).cost(garbler, evaluator, 2);
            }
            // The garbler waits for the OTs of a batch after the tables of the one before, if it has any.
            cost.rounds += if tables > 0 { batches.len() as u64 } else { 1 };
        }
        cost.sent[garbler.index()] += START_BYTES as u64 + 16 * tables * lanes as u64;
        let colours = |viewer| (self.roots_of(viewer).count() * lanes.div_ceil(8)) as u64;
        cost.sent[garbler.index()] += colours(evaluator);
        cost.sent[evaluator.index()] += colours(garbler);
        cost.and_gates = (self.compiled.full + self.compiled.half) * lanes as u64;
        let answers = ots == 0 || tables > 0 || colours(evaluator) > 0;
        cost.rounds += u64::from(colours(garbler) > 0 && answers);
        cost
    }

    fn run(
        &self,
        lanes: usize,
        inputs: &[Vec<Vec<u64>>],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<Vec<u64>>>>, Error> {
        check_pair(session)?;
        let me = session.me();
        check_inputs(self.wired, lanes, inputs, Some(me))?;
        let mut colours = vec![Vec::with_capacity(lanes.div_ceil(64)); self.compiled.roots.len()];
        if !self.seen.is_empty() && lanes > 0 {
            let batches = self.batches(lanes);
            session.step("circuit", |s| {
                if me == self.garbler {
                    self.garble(&batches, inputs, &mut colours, s)
                } else {
                    self.evaluate(&batches, inputs, &mut colours, s)
                }
            })?;
            session.step("reveal", |s| self.reveal(lanes, &mut colours, s))?;
        }
        let mut bits = colours.into_iter();
        let mut values = vec![None; self.wired.outputs.len()];
        for output in &self.seen {
            let word = bits.by_ref().take(self.wired.outputs[*output].bits.len()).collect();
            values[*output] = self.wired.outputs[*output].to.has(me).then_some(word);
        }
        Ok(values)
    }
}

fn report(session: &mut Session, batch: Batch, batches: &[Batch]) {
    let last = batches.last().expect("there is a batch");
    session.report((batch.from + batch.count) as u64, (last.from + last.count) as u64);
}

/// The lanes of a batch of some input bits; bits past the last lane are zero.
fn bits(wanted: &[InputBit], inputs: &[Vec<Vec<u64>>], batch: Batch) -> Packed {
    let words = batch.from / 64..(batch.from + batch.count).div_ceil(64);
    let live = u64::MAX >> (64 * words.len() - batch.count);
    let cut = |input: &InputBit| {
        let mut lanes = inputs[input.word as usize][usize::from(input.bit)][words.clone()].to_vec();
        *lanes.last_mut().expect("there is a lane") &= live;
        lanes
    };
    wanted.iter().map(cut).collect()
}

/// The first `count` lanes of every bit, one after the other.
fn flat(bits: &Packed, count: usize) -> Vec<u64> {
    let mut out = vec![0; (bits.len() * count).div_ceil(64) + 1];
    for (k, lanes) in bits.iter().enumerate() {
        for (i, word) in lanes.iter().enumerate() {
            let at = k * count + 64 * i;
            out[at / 64] |= word << (at % 64);
            // In two steps: a shift by 64 is none.
            out[at / 64 + 1] |= word >> 1 >> (63 - at % 64);
        }
    }
    out
}

/// Packs the colours of a batch after those of earlier ones, which are whole words.
fn append_colours(labels: impl Iterator<Item = Block>, into: &mut Vec<u64>) {
    for (lane, label) in labels.enumerate() {
        if lane % 64 == 0 {
            into.push(0);
        }
        *into.last_mut().expect("pushed above") |= u64::from(label.lsb()) << (lane % 64);
    }
}
