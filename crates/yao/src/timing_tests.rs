//! No branch, no address and no time of garbling and evaluation depends on Delta, labels, bits or values.

use super::*;
use crate::masks::{self, LaneTemps, MaskGroup, MaskSlice, Pads};
use circuits::InputBit;
use kernels::InstructionSet;
use program::lower::MaskSource;
use timing::{TimedKernel, done};

const LANES: usize = 67;
const BIT_BLOCKS: usize = LANES.div_ceil(128);
const START: Block = Block(99);

/// One gate of every sort, of which slots are the results.
fn gates() -> Vec<LabelGate> {
    let [a, b] = [Ref::Ot(0), Ref::Ot(1)];
    let slot = Ref::Slot;
    vec![
        LabelGate::Xor { a, b, out: 0, flip: true },
        LabelGate::Known { a: slot(0), bit: 0, out: 1, flip: true },
        LabelGate::Not { a: slot(1), out: 2 },
        LabelGate::Spread { a: slot(2), out: 3, flip: true },
        LabelGate::And { a: slot(3), b, out: 4 },
        LabelGate::AndGarbler { bit: 0, flip: true, b: slot(4), out: 5 },
        LabelGate::AndEvaluator { ot: 0, flip: true, b: slot(5), out: 6 },
    ]
}

fn compiled() -> GarbledGates {
    let gates = gates();
    GarbledGates {
        slots: gates.len() as u32,
        gates,
        ots: vec![],
        known: vec![],
        roots: vec![],
        full: 1,
        half: 2,
    }
}

fn blocks(secret: &[u8]) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut blocks);
    blocks
}

fn packed(blocks: &[Block]) -> Packed {
    vec![blocks.iter().flat_map(|b| [b.0 as u64, (b.0 >> 64) as u64]).collect()]
}

/// One product of 5 bytes and one of 16.
fn group() -> MaskGroup {
    let slice = |bytes, word| MaskSlice {
        source: MaskSource::Constant(0),
        temp: u32::from(word),
        bytes,
        word,
        byte: 0,
    };
    MaskGroup { root: 0, number: 0, slices: vec![slice(5, 0), slice(16, 1)], words: 2, bytes: 21 }
}

fn all(temps: &LaneTemps) {
    temps.iter().for_each(|temp| done(&temp[..]));
}

fn garbler(x: &[Block]) -> (Garbler, Packed) {
    let mut garbler = Garbler::new(TweakedHash::new(START), x[0] | Block::ONE);
    garbler.labels.prepare(&compiled(), LANES);
    garbler.labels.ots = x[1..][..2 * LANES].to_vec();
    (garbler, packed(&x[1 + 2 * LANES..][..BIT_BLOCKS]))
}

fn evaluator(x: &[Block]) -> (LabelEvaluator, Packed) {
    let mut evaluator = LabelEvaluator::new(TweakedHash::new(START));
    evaluator.labels.prepare(&compiled(), LANES);
    evaluator.labels.ots = x[..2 * LANES].to_vec();
    (evaluator, packed(&x[2 * LANES..][..BIT_BLOCKS]))
}

fn garbled(x: &[Block]) {
    let (mut garbler, known) = garbler(x);
    for (index, gate) in gates().iter().enumerate() {
        let mut table = vec![Block::ZERO; units(gate) * LANES];
        garbler.gate(index as u64, gate, &known, &mut table);
        done(&table[..]);
        done(garbler.labels.get(Ref::Slot(index as u32)));
    }
}

fn evaluated(x: &[Block]) {
    let (mut evaluator, choices) = evaluator(x);
    for (index, gate) in gates().iter().enumerate() {
        // What comes from the garbler.
        let table = vec![Block(5); units(gate) * LANES];
        evaluator.gate(index as u64, gate, &choices, &table);
        done(evaluator.labels.get(Ref::Slot(index as u32)));
    }
}

fn hidden(x: &[Block]) {
    let (garbler, _) = garbler(x);
    let (mut pads, mut temps, group) = (Pads::default(), LaneTemps::new(), group());
    masks::clear(&mut temps, 2, LANES);
    let value = |slice: &MaskSlice, lane: usize| x[lane].0 >> slice.word;
    masks::hide(&garbler, &mut pads, (&group, (Ref::Ot(0), true), 7), &value, &mut temps);
    done(&pads.wire[..]);
    all(&temps);
}

fn shown(x: &[Block]) {
    let (evaluator, bits) = evaluator(x);
    let (mut pads, mut temps, group) = (Pads::default(), LaneTemps::new(), group());
    masks::clear(&mut temps, 2, LANES);
    pads.wire = vec![7; LANES * group.bytes];
    let selector = |lane: usize| u128::from(kernels::bit(&bits[0], lane)).wrapping_neg();
    masks::show(&evaluator, &mut pads, (&group, (Ref::Ot(0), true), 7), &selector, &mut temps);
    all(&temps);
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    let case = |name: &str, secret: usize, run: fn(&[Block])| {
        TimedKernel::new(name, secret * Block::BYTES, move |secret| run(&blocks(secret)))
    };
    let known = |x: &[Block]| {
        let words: Vec<u128> = x.iter().map(|x| x.0).collect();
        let wanted = [3, 90].map(|bit| InputBit { owner: None, word: 0, bit });
        pack(&wanted, LANES, &|_| &words).iter().for_each(|bits| done(&bits[..]));
    };
    let garbler = 1 + 2 * LANES + BIT_BLOCKS;
    vec![
        case("gates, garbled: Delta, labels, bits", garbler, garbled),
        case("gates, evaluated: labels, bits", garbler - 1, evaluated),
        case("a bit times values, garbler", garbler, hidden),
        case("a bit times values, evaluator", garbler - 1, shown),
        case("bits of values", LANES, known),
    ]
}

timing::tests!(cases);
