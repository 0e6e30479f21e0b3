//! The release of one viewer, on one lane.
//!
//! 1. Base OTs and `start`; the evaluator enters its shares, and its coins or candidates of noise, by OT:
//!    from here on they are fixed. The garbler's are XORed into the offsets of those labels, at no cost.
//! 2. The garbler garbles and the evaluator evaluates. Of every output bit the evaluator has the colour of
//!    its active label and the garbler that of its label of 0: their exclusive or is the bit, and either
//!    alone is a coin.
//!
//! Of a single viewer's release the other one garbles, of a public one party 0. Where one party drew
//! candidates of noise the viewer garbles: who evaluates can then prove by its labels, which it cannot make
//! up, what it had entered.

use crate::compile::{GarbledGates, compile};
use crate::lanes::{Garbler, LabelEvaluator, Packed};
use crate::{START_BYTES, check_pair, recv_start, send_start};
use base::{Error, PartyId};
use circuits::{InputBit, Lit};
use engine::outputs::{self, Proof};
use engine::{DrawnNoise, Entered, OutputShares, PreparedRelease, StagePrice};
use kernels::Block;
use net::Session;
use ot::{CotReceiver, CotSender, ExtensionCost, OtReceiver, OtSender};
use program::lower::ReleasePlan;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A release, made ready.
pub(crate) struct GarbledRelease {
    plan: Arc<ReleasePlan>,
    garbler: PartyId,
    compiled: GarbledGates,
    /// Words that the evaluator enters, in order.
    entered: Vec<u32>,
    ots: usize,
    k: u32,
}

impl GarbledRelease {
    pub fn new(plan: Arc<ReleasePlan>, k: u32) -> Self {
        let garbler = match plan.viewer.only() {
            Some(viewer) if plan.candidates.is_empty() => viewer.other(),
            Some(viewer) => viewer,
            None => PartyId(0),
        };
        let roots: Vec<Lit> = plan.roots().collect();
        let compiled = compile(&plan.circuit, &roots, garbler);
        let words = plan.words.iter().enumerate().filter(|(_, word)| word.owner != garbler);
        let entered: Vec<u32> = words.map(|(i, _)| i as u32).collect();
        let ots = entered.iter().map(|w| usize::from(plan.words[*w as usize].width)).sum();
        Self { plan, garbler, compiled, entered, ots, k }
    }

    /// The OT in which each input of the circuit was entered.
    fn ots_of(&self) -> Vec<usize> {
        let plan = &self.plan;
        let mut offsets = vec![0; plan.words.len()];
        let mut at = 0;
        for word in &self.entered {
            offsets[*word as usize] = at;
            at += usize::from(plan.words[*word as usize].width);
        }
        let of = |input: &InputBit| offsets[input.word as usize] + usize::from(input.bit);
        self.compiled.ots.iter().map(of).collect()
    }

    fn garble(&self, entered: &Entered, session: &mut Session) -> Result<OutputShares, Error> {
        let (compiled, peer) = (&self.compiled, self.garbler.other());
        let delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
        let mut cot = CotSender::new(session, peer, self.k, delta)?;
        let mut garbler = Garbler::new(send_start(session, peer)?, delta);
        let mut zeros = Vec::new();
        session.step("enter", |s| cot.correlated(s, self.ots, &mut zeros))?;
        garbler.labels.prepare(compiled, 1);
        garbler.labels.ots = self.ots_of().into_iter().map(|ot| zeros[ot]).collect();
        let mut known: Packed = Vec::with_capacity(compiled.known.len());
        for input in &compiled.known {
            let word = entered.need(input.word as usize)?;
            known.push(vec![(word >> input.bit & 1) as u64]);
        }
        session.step("circuit", |s| garbler.run(compiled, &known, s, peer))?;
        let labels: Zeroizing<Vec<Block>> =
            Zeroizing::new(compiled.roots.iter().flat_map(|root| garbler.root(*root)).collect());
        Ok(share(labels, Some(delta)))
    }

    fn evaluate(&self, entered: &Entered, session: &mut Session) -> Result<OutputShares, Error> {
        let (compiled, peer) = (&self.compiled, self.garbler);
        let mut cot = CotReceiver::new(session, peer, self.k)?;
        let mut evaluator = LabelEvaluator::new(recv_start(session, peer)?);
        let mut bits = Zeroizing::new(vec![0u64; self.ots.div_ceil(64)]);
        let mut at = 0;
        for word in &self.entered {
            let value = entered.need(*word as usize)?;
            for bit in 0..self.plan.words[*word as usize].width {
                bits[at / 64] |= ((value >> bit & 1) as u64) << (at % 64);
                at += 1;
            }
        }
        let mut active = Vec::new();
        session.step("enter", |s| cot.correlated(s, &bits, self.ots, &mut active))?;
        evaluator.labels.prepare(compiled, 1);
        let ots = self.ots_of().into_iter();
        let (labels, choices): (Vec<Block>, Packed) =
            ots.map(|ot| (active[ot], vec![kernels::bit(&bits, ot)])).unzip();
        evaluator.labels.ots = labels;
        session.step("circuit", |s| evaluator.run(compiled, &choices, s, peer))?;
        let labels = compiled.roots.iter().map(|root| evaluator.labels.get(root.0)[0]).collect();
        let labels: Zeroizing<Vec<Block>> = Zeroizing::new(labels);
        Ok(share(labels, None))
    }
}

impl PreparedRelease for GarbledRelease {
    fn plan(&self) -> &ReleasePlan {
        &self.plan
    }

    fn holders(&self) -> &[PartyId] {
        &[PartyId(0), PartyId(1)]
    }

    fn price(&self) -> StagePrice {
        if self.plan.alone().is_some() || self.plan.bits() == 0 {
            return StagePrice::free(2);
        }
        let garbler = self.garbler;
        let ots = ExtensionCost::base()
            + ExtensionCost::setup(self.k)
            + ExtensionCost::correlated(self.k, self.ots as u64);
        let mut cost = ots.cost(garbler, garbler.other(), 2);
        cost.sent[garbler.index()] += START_BYTES as u64 + 16 * self.compiled.table_blocks();
        cost.and_gates = self.compiled.full + self.compiled.half;
        // At the garbler: the base OTs' reply, and the OT message.
        cost.rounds += 1;
        StagePrice::of(cost)
    }

    fn run(
        &self,
        entered: &Entered,
        _: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        check_pair(session)?;
        session.step("release", |session| {
            if let Some(alone) = outputs::alone(&self.plan, entered, session.me())? {
                return Ok(alone);
            }
            match self.plan.bits() {
                0 => Ok(OutputShares::none()),
                _ if session.me() == self.garbler => self.garble(entered, session),
                _ => self.evaluate(entered, session),
            }
        })
    }
}

/// The colours of the roots' labels, and the labels to prove by.
fn share(labels: Zeroizing<Vec<Block>>, delta: Option<Block>) -> OutputShares {
    let colours: Zeroizing<Vec<bool>> = Zeroizing::new(labels.iter().map(|label| label.lsb()).collect());
    OutputShares::of_bits(&colours).with_proof(Labels { labels, delta })
}

/// The labels of the roots: at the evaluator the active ones, at the garbler those of 0.
struct Labels {
    labels: Zeroizing<Vec<Block>>,
    delta: Option<Block>,
}

impl Proof for Labels {
    /// A digest of active labels. They carry 127 bits of entropy each, so it says nothing about the other
    /// label.
    fn digest(&self, bits: Range<usize>, values: &[bool]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 yao label digest");
        for (label, value) in self.labels[bits].iter().zip(values) {
            let active = self.delta.map_or(*label, |delta| *label ^ delta.when(u64::from(*value)));
            hasher.update(&active.to_bytes());
        }
        *hasher.finalize().as_bytes()
    }
}
