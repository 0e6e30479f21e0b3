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

use crate::compile::{Compiled, compile};
use crate::lanes::{Evaluator, Garbler, Packed};
use crate::{START_BYTES, recv_start, send_start};
use base::{Cost, Error, PartyId};
use circuits::{InputBit, Lit};
use engine::outputs::{self, Proof};
use engine::{Entered, OutputShares};
use kernels::Block;
use net::Session;
use ot::{CotReceiver, CotSender, ExtensionCost, OtReceiver, OtSender};
use program::lower::ReleasePlan;
use std::ops::Range;
use zeroize::Zeroizing;

/// A release made ready.
struct Prepared {
    garbler: PartyId,
    compiled: Compiled,
    /// Words that the evaluator enters, in order.
    entered: Vec<u32>,
    ots: usize,
}

impl Prepared {
    fn new(plan: &ReleasePlan) -> Self {
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
        Self { garbler, compiled, entered, ots }
    }

    /// The OT in which each input of the circuit was entered.
    fn ots_of(&self, plan: &ReleasePlan) -> Vec<usize> {
        let mut offsets = vec![0; plan.words.len()];
        let mut at = 0;
        for word in &self.entered {
            offsets[*word as usize] = at;
            at += usize::from(plan.words[*word as usize].width);
        }
        let of = |input: &InputBit| offsets[input.word as usize] + usize::from(input.bit);
        self.compiled.ots.iter().map(of).collect()
    }
}

/// Exact cost.
pub(crate) fn price(plan: &ReleasePlan, k: u32) -> Cost {
    if plan.alone().is_some() || plan.bits() == 0 {
        return Cost::zero(2);
    }
    let Prepared { garbler, compiled, ots, .. } = Prepared::new(plan);
    let ots = ExtensionCost::base() + ExtensionCost::setup(k) + ExtensionCost::correlated(k, ots as u64);
    let mut cost = ots.cost(garbler, garbler.other(), 2);
    cost.sent[garbler.index()] += START_BYTES as u64 + 16 * compiled.table_blocks();
    cost.and_gates = compiled.full + compiled.half;
    // At the garbler: the base OTs' reply, and the OT message.
    cost.rounds += 1;
    cost
}

/// Runs a release at either party.
pub(crate) fn run(
    plan: &ReleasePlan,
    k: u32,
    entered: &Entered,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    if let Some(alone) = outputs::alone(plan, entered, session.me())? {
        return Ok(alone);
    }
    if plan.bits() == 0 {
        return Ok(OutputShares::none());
    }
    let prepared = Prepared::new(plan);
    if session.me() == prepared.garbler {
        garble(plan, &prepared, k, entered, session)
    } else {
        evaluate(plan, &prepared, k, entered, session)
    }
}

fn garble(
    plan: &ReleasePlan,
    prepared: &Prepared,
    k: u32,
    entered: &Entered,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    let (compiled, peer) = (&prepared.compiled, prepared.garbler.other());
    let delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
    let mut cot = CotSender::new(session, peer, k, delta)?;
    let mut garbler = Garbler::new(send_start(session, peer)?, delta);
    let mut zeros = Vec::new();
    session.step("enter", |s| cot.correlated(s, prepared.ots, &mut zeros))?;
    garbler.labels.prepare(compiled, 1);
    garbler.labels.ots = prepared.ots_of(plan).into_iter().map(|ot| zeros[ot]).collect();
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

fn evaluate(
    plan: &ReleasePlan,
    prepared: &Prepared,
    k: u32,
    entered: &Entered,
    session: &mut Session,
) -> Result<OutputShares, Error> {
    let (compiled, peer) = (&prepared.compiled, prepared.garbler);
    let mut cot = CotReceiver::new(session, peer, k)?;
    let mut evaluator = Evaluator::new(recv_start(session, peer)?);
    let mut bits = Zeroizing::new(vec![0u64; prepared.ots.div_ceil(64)]);
    let mut at = 0;
    for word in &prepared.entered {
        let value = entered.need(*word as usize)?;
        for bit in 0..plan.words[*word as usize].width {
            bits[at / 64] |= ((value >> bit & 1) as u64) << (at % 64);
            at += 1;
        }
    }
    let mut active = Vec::new();
    session.step("enter", |s| cot.correlated(s, &bits, prepared.ots, &mut active))?;
    evaluator.labels.prepare(compiled, 1);
    let ots = prepared.ots_of(plan).into_iter();
    let (labels, choices): (Vec<Block>, Packed) =
        ots.map(|ot| (active[ot], vec![kernels::bit(&bits, ot)])).unzip();
    evaluator.labels.ots = labels;
    session.step("circuit", |s| evaluator.run(compiled, &choices, s, peer))?;
    let labels = compiled.roots.iter().map(|root| evaluator.labels.get(root.0)[0]).collect();
    let labels: Zeroizing<Vec<Block>> = Zeroizing::new(labels);
    Ok(share(labels, None))
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
