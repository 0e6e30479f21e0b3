//! A secret bit times values that the garbler knows: additive shares for one ciphertext of the values' width.
//!
//! For a selector wire with labels W0, W1 and colour bits, let K0, K1 be the labels with colour 0 and 1 and
//! pi the colour of W0, so the label of colour c stands for the bit c xor pi. With pads p0 = H(K0), p1 =
//! H(K1), modulo 2^N:
//!   garbler sends  z = (1 - 2 pi) v + p0 - p1   and keeps  s = pi v - p0;
//!   evaluator with colour c takes  r = H(K_c) + c z.
//! Then r + s = (c xor pi) v. z is masked by whichever pad the evaluator cannot compute. This is a correlated
//! OT whose choice is a wire (step 3 of the lift row in the design notes), so sums need no adders.

use crate::lanes::{Garbler, LabelEvaluator};
use base::{Error, PartyId};
use kernels::{Block, WORDS_MAX};
use net::Session;
use program::lower::{Mask, MaskSource, RowPlan, RowStep};

/// One product: where its value and its share lie, and its place in the pad.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MaskSlice {
    pub source: MaskSource,
    pub temp: u32,
    pub bytes: u8,
    pub word: u8,
    pub byte: u8,
}

/// Products of one selector that share one pad of at most [`WORDS_MAX`] blocks per lane.
#[derive(Clone, Debug)]
pub(crate) struct MaskGroup {
    /// Root number of the selector.
    pub root: usize,
    /// Number among all groups: its tweak.
    pub number: u64,
    pub slices: Vec<MaskSlice>,
    pub words: usize,
    /// Bytes per lane on the wire.
    pub bytes: usize,
}

/// The steps of a row plan with masks cut into groups.
#[derive(Clone, Debug)]
pub(crate) enum MaskStep {
    Known { temp: u32, party: PartyId, node: program::NodeId },
    Add { temp: u32, other: u32 },
    Mask(MaskGroup),
}

/// Cuts the masks of a plan into groups; root numbers follow the order of masks.
pub(crate) fn actions(plan: &RowPlan) -> Vec<MaskStep> {
    let mut out = Vec::with_capacity(plan.steps.len());
    let (mut root, mut number) = (0, 0);
    for step in &plan.steps {
        match step {
            RowStep::Known { temp, party, node } => {
                out.push(MaskStep::Known { temp: *temp, party: *party, node: *node });
            }
            RowStep::Add { temp, other } => out.push(MaskStep::Add { temp: *temp, other: *other }),
            RowStep::Square { .. } => unreachable!("a garbler's plan squares bits"),
            RowStep::Mask(mask) => {
                for group in groups(mask, plan, root, &mut number) {
                    out.push(MaskStep::Mask(group));
                }
                root += 1;
            }
        }
    }
    out
}

fn groups(mask: &Mask, plan: &RowPlan, root: usize, number: &mut u64) -> Vec<MaskGroup> {
    let empty = |number: &mut u64| {
        *number += 1;
        MaskGroup { root, number: *number - 1, slices: Vec::new(), words: 0, bytes: 0 }
    };
    let mut out: Vec<MaskGroup> = Vec::new();
    let mut byte = 16;
    for field in &mask.fields {
        let bytes = plan.temps[field.temp as usize];
        // A slice never straddles two blocks of the pad; on the wire there is no gap.
        if byte + usize::from(bytes) > 16 {
            if out.last().is_none_or(|g| g.words == WORDS_MAX) {
                out.push(empty(number));
            }
            out.last_mut().expect("just pushed").words += 1;
            byte = 0;
        }
        let group = out.last_mut().expect("a group is open");
        let word = group.words as u8 - 1;
        group.slices.push(MaskSlice {
            source: field.source,
            temp: field.temp,
            bytes,
            word,
            byte: byte as u8,
        });
        group.bytes += usize::from(bytes);
        byte += usize::from(bytes);
    }
    out
}

impl MaskSlice {
    fn pad(&self, words: &[Block]) -> u128 {
        words[usize::from(self.word)].0 >> (8 * self.byte)
    }

    fn modulus(&self) -> u128 {
        u128::MAX >> (128 - 8 * u32::from(self.bytes))
    }
}

/// Additive shares by temporary and lane.
pub(crate) type LaneTemps = Vec<Vec<u128>>;

/// Scratch of one party's masks.
#[derive(Default)]
pub(crate) struct Pads {
    labels: Vec<Block>,
    pads: [Vec<Block>; 2],
    pub wire: Vec<u8>,
}

fn tweak(batch: u64, gates: usize, number: u64) -> Block {
    Block::tweak(0, batch, gates as u64 + number, 0)
}

/// The garbler's side of one group. `value(slice, lane)` is the multiplied number, as two's complement.
pub(crate) fn garble(
    g: &Garbler,
    pads: &mut Pads,
    (group, root, gates): (&MaskGroup, (crate::compile::Ref, bool), usize),
    value: &dyn Fn(&MaskSlice, usize) -> u128,
    temps: &mut LaneTemps,
    session: &mut Session,
    peer: PartyId,
) -> Result<(), Error> {
    hide(g, pads, (group, root, gates), value, temps);
    session.link(peer).send(&pads.wire)
}

/// The wire of [`garble`] and the garbler's shares.
pub(crate) fn hide(
    g: &Garbler,
    pads: &mut Pads,
    (group, root, gates): (&MaskGroup, (crate::compile::Ref, bool), usize),
    value: &dyn Fn(&MaskSlice, usize) -> u128,
    temps: &mut LaneTemps,
) {
    let lanes = g.labels.lanes();
    let tweak = tweak(g.batch, gates, group.number);
    pads.labels.clear();
    pads.labels.extend(g.root(root));
    for (which, pad) in pads.pads.iter_mut().enumerate() {
        pad.resize(lanes * group.words, Block::ZERO);
        if which == 1 {
            pads.labels.iter_mut().for_each(|label| *label ^= g.delta);
        }
        g.hash.hash_words(tweak, &pads.labels, group.words, pad);
    }
    pads.wire.clear();
    for (lane, label) in pads.labels.iter().enumerate() {
        // The labels now are those of 1; the colour of the label of 0 is the other one.
        let pi = !label.lsb_mask().0;
        let at = lane * group.words..(lane + 1) * group.words;
        let (h0, h1) = (&pads.pads[0][at.clone()], &pads.pads[1][at]);
        for slice in &group.slices {
            let v = value(slice, lane);
            let (a, b) = (slice.pad(h0), slice.pad(h1));
            let swap = (a ^ b) & pi;
            let (p0, p1) = (a ^ swap, b ^ swap);
            // (1 - 2 pi) v is v or -v: negate by mask.
            let signed = (v ^ pi).wrapping_sub(pi);
            let z = signed.wrapping_add(p0).wrapping_sub(p1);
            pads.wire.extend_from_slice(&z.to_le_bytes()[..usize::from(slice.bytes)]);
            let share = (v & pi).wrapping_sub(p0);
            let temp = &mut temps[slice.temp as usize][lane];
            *temp = temp.wrapping_add(share) & slice.modulus();
        }
    }
}

/// The evaluator's side of one group. `selector(lane)` is all ones where the evaluator knows the selector to
/// be 1; only groups that multiply a temporary need it.
pub(crate) fn evaluate(
    e: &LabelEvaluator,
    pads: &mut Pads,
    (group, root, gates): (&MaskGroup, (crate::compile::Ref, bool), usize),
    selector: &dyn Fn(usize) -> u128,
    temps: &mut LaneTemps,
    session: &mut Session,
    peer: PartyId,
) -> Result<(), Error> {
    pads.wire.resize(e.labels.lanes() * group.bytes, 0);
    session.link(peer).recv(&mut pads.wire)?;
    show(e, pads, (group, root, gates), selector, temps);
    Ok(())
}

/// The evaluator's shares from the wire of [`evaluate`].
pub(crate) fn show(
    e: &LabelEvaluator,
    pads: &mut Pads,
    (group, root, gates): (&MaskGroup, (crate::compile::Ref, bool), usize),
    selector: &dyn Fn(usize) -> u128,
    temps: &mut LaneTemps,
) {
    let lanes = e.labels.lanes();
    let labels = e.labels.get(root.0);
    let pad = &mut pads.pads[0];
    pad.resize(lanes * group.words, Block::ZERO);
    e.hash.hash_words(tweak(e.batch, gates, group.number), labels, group.words, pad);
    let mut wire = pads.wire.as_slice();
    for (lane, label) in labels.iter().enumerate() {
        let colour = label.lsb_mask().0;
        let words = &pad[lane * group.words..(lane + 1) * group.words];
        for slice in &group.slices {
            let (head, tail) = wire.split_at(usize::from(slice.bytes));
            wire = tail;
            let mut z = [0; 16];
            z[..head.len()].copy_from_slice(head);
            let mut share = slice.pad(words).wrapping_add(u128::from_le_bytes(z) & colour);
            if let MaskSource::Temp(other) = slice.source {
                share = share.wrapping_add(temps[other as usize][lane] & selector(lane));
            }
            let temp = &mut temps[slice.temp as usize][lane];
            *temp = temp.wrapping_add(share) & slice.modulus();
        }
    }
}

/// Clears the temporaries for a batch.
pub(crate) fn clear(temps: &mut LaneTemps, count: usize, lanes: usize) {
    temps.resize_with(count, Vec::new);
    for temp in temps {
        temp.clear();
        temp.resize(lanes, 0);
    }
}

/// Bytes per lane that the masks of a plan take.
pub(crate) fn bytes_per_lane(actions: &[MaskStep]) -> u64 {
    let bytes = |a: &MaskStep| if let MaskStep::Mask(g) = a { g.bytes as u64 } else { 0 };
    actions.iter().map(bytes).sum()
}
