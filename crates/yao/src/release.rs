//! The release of one viewer, on one lane. The viewer garbles.
//!
//! 1. Base OTs and `start`; the other party draws its noise candidates (the ceremony's business).
//! 2. The other party enters its shares and *all* candidates by OT: from here on they are fixed.
//! 3. The ceremony settles the candidate i (and debits the ledger).
//! 4. The other party opens the candidates j != i: their bits and one digest of their labels. A bit that was not entered
//!    has a label the opener cannot know, so the digest catches it.
//! 5. The ceremony checks the opened candidates against their seeds.
//! 6. The viewer garbles; the other evaluates, and returns the outputs' colours with a digest of their labels.

use crate::compile::{Compiled, compile};
use crate::lanes::{Evaluator, Garbler, Packed};
use crate::{START_BYTES, recv_start, send_start};
use base::{Cost, Error, PartyId, limits};
use engine::{Ceremony, Shares};
use kernels::Block;
use net::Session;
use ot::{CotReceiver, CotSender, OtReceiver, OtSender, Price};
use program::circuit::Input;
use program::lower::{ReleasePlan, WordKind};
use subtle::ConstantTimeEq;

const DIGEST_BYTES: usize = 32;

/// A release made ready: what the other party enters, in order.
struct Entry {
    compiled: Compiled,
    /// Words other than noise that the other party enters.
    shares: Vec<u32>,
    /// Noise words.
    noises: Vec<u32>,
    share_bits: usize,
    noise_bits: usize,
}

impl Entry {
    fn new(plan: &ReleasePlan) -> Self {
        let roots: Vec<_> = plan.outputs.iter().flat_map(|(_, lits)| lits.iter().copied()).collect();
        let compiled = compile(&plan.circuit, &roots, plan.viewer);
        let other = |noise: bool| {
            let entered = |(_, word): &(usize, &program::lower::ReleaseWord)| {
                word.owner != plan.viewer && matches!(word.kind, WordKind::Noise(..)) == noise
            };
            plan.words.iter().enumerate().filter(entered).map(|(i, _)| i as u32).collect::<Vec<u32>>()
        };
        let (shares, noises) = (other(false), other(true));
        let bits = |words: &[u32]| words.iter().map(|w| usize::from(plan.words[*w as usize].width)).sum();
        let (share_bits, noise_bits) = (bits(&shares), bits(&noises));
        Self { compiled, shares, noises, share_bits, noise_bits }
    }

    /// Whether the viewer knows everything itself.
    fn is_local(&self) -> bool {
        self.shares.is_empty() && self.noises.is_empty()
    }

    fn ots(&self, candidates: usize) -> usize {
        self.share_bits + candidates * self.noise_bits
    }

    /// The OT in which a bit was entered, with candidate `chosen` for noise.
    fn ot_of(&self, plan: &ReleasePlan, input: &Input, chosen: usize) -> usize {
        let offset = |words: &[u32]| {
            let before = words.iter().take_while(|w| **w != input.word);
            before.map(|w| usize::from(plan.words[*w as usize].width)).sum::<usize>()
        };
        let bit = usize::from(input.bit);
        match plan.words[input.word as usize].kind {
            WordKind::Noise(..) => self.share_bits + chosen * self.noise_bits + offset(&self.noises) + bit,
            _ => offset(&self.shares) + bit,
        }
    }

    /// OTs of all candidates but the chosen one, in order.
    fn opened(&self, candidates: usize, chosen: usize) -> impl Iterator<Item = usize> + use<> {
        let (base, size) = (self.share_bits, self.noise_bits);
        (0..candidates)
            .filter(move |j| *j != chosen)
            .flat_map(move |j| base + j * size..base + (j + 1) * size)
    }
}

/// Exact cost without the ceremony's own messages.
pub(crate) fn price(plan: &ReleasePlan, k: u32, candidates: usize) -> Cost {
    let entry = Entry::new(plan);
    let (viewer, other) = (plan.viewer, plan.viewer.other());
    if entry.is_local() {
        return Cost::zero(2);
    }
    let ots = Price::base() + Price::setup(k) + Price::correlated(k, entry.ots(candidates) as u64);
    let mut cost = ots.cost(viewer, other, 2);
    let outputs: usize = plan.outputs.iter().map(|(_, lits)| lits.len()).sum();
    cost.sent[viewer.index()] += START_BYTES as u64 + 16 * entry.compiled.table_blocks();
    cost.sent[other.index()] += (outputs.div_ceil(8) + DIGEST_BYTES) as u64;
    if candidates > 1 && entry.noise_bits > 0 {
        let opened = (candidates - 1) * entry.noise_bits;
        cost.sent[other.index()] += (opened.div_ceil(8) + DIGEST_BYTES) as u64;
    }
    cost.and_gates = entry.compiled.full + entry.compiled.half;
    // At the viewer: the base OTs' reply, the OT message, and the outputs.
    cost.rounds += 2;
    cost
}

/// Runs a release at either party.
pub(crate) fn run(
    plan: &ReleasePlan,
    k: u32,
    totals: &Shares,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<Vec<u128>, Error> {
    let entry = Entry::new(plan);
    let me = session.me();
    if entry.is_local() {
        choose(&entry, 1, ceremony, session)?;
        return if me == plan.viewer { local(plan, totals, me) } else { Ok(Vec::new()) };
    }
    let candidates = ceremony.candidates();
    if candidates == 0 || candidates > limits::CANDIDATES {
        return Err(Error::limit("limits::CANDIDATES", candidates as u64, limits::CANDIDATES as u64));
    }
    if me == plan.viewer {
        garble(plan, &entry, k, totals, ceremony, session)
    } else {
        evaluate(plan, &entry, k, totals, ceremony, session)?;
        Ok(Vec::new())
    }
}

fn local(plan: &ReleasePlan, totals: &Shares, me: PartyId) -> Result<Vec<u128>, Error> {
    let words = plan.words.iter().map(|w| totals.word(w.kind, me)).collect::<Result<Vec<u128>, Error>>()?;
    let bits = plan.circuit.evaluate(|input| words[input.word as usize] >> input.bit & 1 == 1);
    Ok(values(plan, plan.outputs.iter().flat_map(|(_, l)| l).map(|l| bits[l.wire()] ^ l.inverted())))
}

/// Cuts output bits into values.
fn values(plan: &ReleasePlan, mut bits: impl Iterator<Item = bool>) -> Vec<u128> {
    let value = |lits: &Vec<program::circuit::Lit>| {
        let bits = bits.by_ref().take(lits.len()).enumerate();
        bits.fold(0, |v, (i, bit)| v | u128::from(bit) << i)
    };
    plan.outputs.iter().map(|(_, lits)| lits).map(value).collect()
}

fn garble(
    plan: &ReleasePlan,
    entry: &Entry,
    k: u32,
    totals: &Shares,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<Vec<u128>, Error> {
    let (me, peer, candidates) = (plan.viewer, plan.viewer.other(), ceremony.candidates());
    let delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
    let mut cot = CotSender::new(session, peer, k, delta)?;
    if !entry.noises.is_empty() {
        session.step("noise", |s| ceremony.draw(s))?;
    }
    let mut garbler = Garbler::new(send_start(session, peer)?, delta);
    let mut zeros = Vec::new();
    session.step("enter", |s| cot.correlated(s, entry.ots(candidates), &mut zeros))?;
    let chosen = choose(entry, candidates, ceremony, session)?;
    if candidates > 1 && !entry.noises.is_empty() {
        let opened =
            session.step("open", |s| recv_opened(plan, entry, &zeros, delta, (candidates, chosen), s))?;
        session.step("noise", |s| ceremony.check(&opened, s))?;
    }
    garbler.labels.prepare(&entry.compiled, 1);
    garbler.labels.ots = entry.compiled.ots.iter().map(|i| zeros[entry.ot_of(plan, i, chosen)]).collect();
    let mut known: Packed = Vec::with_capacity(entry.compiled.known.len());
    for input in &entry.compiled.known {
        let word = totals.word(plan.words[input.word as usize].kind, me)?;
        known.push(vec![(word >> input.bit & 1) as u64]);
    }
    session.step("circuit", |s| garbler.run(&entry.compiled, &known, s, peer))?;
    session.step("reveal", |s| {
        let mut colours = vec![0; entry.compiled.roots.len().div_ceil(8)];
        s.link(peer).recv(&mut colours)?;
        let zero: Vec<Block> = entry.compiled.roots.iter().flat_map(|r| garbler.root(*r)).collect();
        let colour = |i: usize| colours[i / 8] >> (i % 8) & 1;
        let bits: Vec<u8> = zero.iter().enumerate().map(|(i, z)| colour(i) ^ u8::from(z.lsb())).collect();
        let active = zero.iter().zip(&bits).map(|(z, bit)| *z ^ delta.when(u64::from(*bit)));
        let expected = digest("outputs", active);
        if !same(&s.link(peer).recv_array()?, &expected) {
            return Err(s.link(peer).blame("the output labels are not those of this circuit"));
        }
        Ok(values(plan, bits.into_iter().map(|b| b == 1)))
    })
}

fn evaluate(
    plan: &ReleasePlan,
    entry: &Entry,
    k: u32,
    totals: &Shares,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<(), Error> {
    let (me, peer, candidates) = (plan.viewer.other(), plan.viewer, ceremony.candidates());
    let mut cot = CotReceiver::new(session, peer, k)?;
    let drawn = if entry.noises.is_empty() {
        vec![Vec::new()]
    } else {
        session.step("noise", |s| ceremony.draw(s))?
    };
    let mut evaluator = Evaluator::new(recv_start(session, peer)?);
    let bits = entered(plan, entry, totals, &drawn, candidates, me)?;
    let mut active = Vec::new();
    session.step("enter", |s| cot.correlated(s, &bits, entry.ots(candidates), &mut active))?;
    let chosen = choose(entry, candidates, ceremony, session)?;
    if candidates > 1 && !entry.noises.is_empty() {
        session.step("open", |s| {
            let opened: Vec<usize> = entry.opened(candidates, chosen).collect();
            let mut packed = vec![0u8; opened.len().div_ceil(8)];
            for (n, ot) in opened.iter().enumerate() {
                packed[n / 8] |= (kernels::bit(&bits, *ot) as u8) << (n % 8);
            }
            s.link(peer).send(&packed)?;
            s.link(peer).send(&digest("opened", opened.iter().map(|ot| active[*ot])))
        })?;
    }
    evaluator.labels.prepare(&entry.compiled, 1);
    let ots = entry.compiled.ots.iter().map(|i| entry.ot_of(plan, i, chosen));
    let (labels, choices): (Vec<Block>, Packed) =
        ots.map(|ot| (active[ot], vec![kernels::bit(&bits, ot)])).unzip();
    evaluator.labels.ots = labels;
    session.step("circuit", |s| evaluator.run(&entry.compiled, &choices, s, peer))?;
    session.step("reveal", |s| {
        let roots: Vec<Block> = entry.compiled.roots.iter().map(|r| evaluator.labels.get(r.0)[0]).collect();
        let mut colours = vec![0u8; roots.len().div_ceil(8)];
        roots.iter().enumerate().for_each(|(i, l)| colours[i / 8] |= u8::from(l.lsb()) << (i % 8));
        s.link(peer).send(&colours)?;
        s.link(peer).send(&digest("outputs", roots.into_iter()))
    })
}

/// Settles the candidate; without noise there is nothing to settle, but the ledger is debited all the same.
fn choose(
    entry: &Entry,
    candidates: usize,
    ceremony: &mut dyn Ceremony,
    session: &mut Session,
) -> Result<usize, Error> {
    let chosen = session.step("noise", |s| ceremony.choose(s))?;
    if entry.noises.is_empty() {
        return Ok(0);
    }
    if chosen >= candidates {
        return Err(Error::limit("noise candidate", chosen as u64, candidates as u64 - 1));
    }
    Ok(chosen)
}

/// Bits that the other party enters: its shares, then every candidate's noises.
fn entered(
    plan: &ReleasePlan,
    entry: &Entry,
    totals: &Shares,
    drawn: &[Vec<i128>],
    candidates: usize,
    me: PartyId,
) -> Result<Vec<u64>, Error> {
    let mut bits = vec![0u64; entry.ots(candidates).div_ceil(64)];
    let mut at = 0;
    let mut push = |value: u128, width: u8| {
        for bit in 0..usize::from(width) {
            bits[at / 64] |= ((value >> bit & 1) as u64) << (at % 64);
            at += 1;
        }
    };
    for word in &entry.shares {
        let word = &plan.words[*word as usize];
        push(totals.word(word.kind, me)?, word.width);
    }
    if !entry.noises.is_empty() && drawn.len() != candidates {
        return Err(Error::misuse("the ceremony drew another number of candidates than it announced"));
    }
    for candidate in drawn.iter().filter(|_| !entry.noises.is_empty()) {
        if candidate.len() != entry.noises.len() {
            return Err(Error::misuse("the ceremony drew another number of noises than the release has"));
        }
        for (noise, word) in candidate.iter().zip(&entry.noises) {
            let width = plan.words[*word as usize].width;
            if width < 128 && !(-(1i128 << (width - 1))..1i128 << (width - 1)).contains(noise) {
                return Err(Error::misuse("a noise is outside its declared width"));
            }
            push(*noise as u128, width);
        }
    }
    Ok(bits)
}

/// The viewer's side of step 4: bits, and the digest that ties them to what was entered.
fn recv_opened(
    plan: &ReleasePlan,
    entry: &Entry,
    zeros: &[Block],
    delta: Block,
    (candidates, chosen): (usize, usize),
    session: &mut Session,
) -> Result<Vec<Vec<i128>>, Error> {
    let peer = plan.viewer.other();
    let ots: Vec<usize> = entry.opened(candidates, chosen).collect();
    let mut packed = vec![0u8; ots.len().div_ceil(8)];
    session.link(peer).recv(&mut packed)?;
    let bit = |n: usize| u64::from(packed[n / 8] >> (n % 8) & 1);
    let active = ots.iter().enumerate().map(|(n, ot)| zeros[*ot] ^ delta.when(bit(n)));
    let expected = digest("opened", active);
    if !same(&session.link(peer).recv_array()?, &expected) {
        return Err(session.link(peer).blame("the noise opened is not the noise that was entered"));
    }
    let mut at = 0;
    let mut word = |width: u8| {
        let value = (0..width).fold(0u128, |v, i| v | u128::from(bit(at + usize::from(i))) << i);
        at += usize::from(width);
        let shift = 128 - u32::from(width);
        ((value << shift) as i128) >> shift
    };
    let candidate = |_| entry.noises.iter().map(|w| word(plan.words[*w as usize].width)).collect();
    Ok((1..candidates).map(candidate).collect())
}

/// Whether two digests are equal, in a time that does not tell where they differ.
fn same(theirs: &[u8; DIGEST_BYTES], mine: &[u8; DIGEST_BYTES]) -> bool {
    theirs.ct_eq(mine).into()
}

/// A digest of labels. The labels carry 127 bits of entropy each, so it says nothing about the other label.
fn digest(what: &str, labels: impl Iterator<Item = Block>) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit 2026 yao label digest");
    hasher.update(what.as_bytes());
    labels.for_each(|label| {
        hasher.update(&label.to_bytes());
    });
    *hasher.finalize().as_bytes()
}
