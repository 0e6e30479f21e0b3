//! Random circuits and their evaluation.

use base::PartyId;
use circuits::{CircuitBuilder, InputBit, Lit};
use circuits::{InputWord, OutputWord, Viewers, Wired};
use proptest::prelude::*;

/// What a random circuit is made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    parties: usize,
    inputs: Vec<(u8, u32)>,
    gates: Vec<(u8, u16, u16)>,
    outputs: Vec<(u8, Vec<u16>)>,
}

/// Circuits of one to four parties, with constants as operands, equal gates, unread inputs, outputs that are
/// inputs, constants or one another.
pub fn recipe() -> impl Strategy<Value = Recipe> {
    let gates = prop::collection::vec((0u8..8, any::<u16>(), any::<u16>()), 0..60);
    let outputs = prop::collection::vec((0u8..16, prop::collection::vec(any::<u16>(), 1..9)), 1..5);
    (1..5usize, prop::collection::vec((0u8..4, 1u32..9), 0..6), gates, outputs)
        .prop_map(|(parties, inputs, gates, outputs)| Recipe { parties, inputs, gates, outputs })
}

impl Recipe {
    pub fn build(&self) -> Wired {
        let mut g = CircuitBuilder::default();
        let owner = |p: u8| PartyId(p % self.parties as u8);
        let mut lits = vec![Lit::FALSE];
        for (word, (p, width)) in self.inputs.iter().enumerate() {
            let input = |bit| InputBit { owner: Some(owner(*p)), word: word as u32, bit: bit as u16 };
            // The second bit of a word is never read.
            lits.extend((0..*width).filter(|bit| *bit != 1).map(|bit| g.input(input(bit))));
        }
        for (kind, a, b) in &self.gates {
            let pick = |i: &u16| lits[usize::from(*i) % lits.len()];
            let (a, b) = (pick(a).flip(kind & 1 == 1), pick(b).flip(kind & 2 == 2));
            // Late gates are more likely operands.
            let from = lits.len().saturating_sub(6);
            let near = lits[from + usize::from(*kind) % (lits.len() - from)];
            lits.push(match kind {
                0..3 => g.and_gate(a, b),
                3 => g.and(near, b),
                _ => g.xor(near, b),
            });
        }
        let bits = |bits: &Vec<u16>| {
            let lit = |i: &u16| lits[usize::from(*i) % lits.len()].flip(i >> 15 == 1);
            bits.iter().map(lit).collect()
        };
        let viewers = |mask: u8| {
            let parties: Vec<PartyId> =
                (0..self.parties as u8).filter(|p| mask >> p & 1 == 1).map(PartyId).collect();
            if parties.len() == self.parties { Viewers::Everyone } else { Viewers::Parties(parties) }
        };
        let outputs =
            self.outputs.iter().map(|(to, o)| OutputWord { to: viewers(*to), bits: bits(o) }).collect();
        let word = |(p, width): &(u8, u32)| InputWord { owner: owner(*p), width: *width };
        let inputs = self.inputs.iter().map(word).collect();
        Wired { circuit: g.finish(), inputs, outputs, parties: self.parties }
    }
}

/// 64 lanes of inputs, a function of `seed`: `[word][bit]`.
pub fn lanes(wired: &Wired, seed: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut next = || {
        // splitmix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    wired.inputs.iter().map(|w| (0..w.width).map(|_| next()).collect()).collect()
}
