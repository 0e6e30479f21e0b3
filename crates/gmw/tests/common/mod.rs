//! Random circuits and inputs, the same at every party.
#![allow(dead_code, reason = "each test file uses a part")]

use base::PartyId;
use circuits::{Circuit, CircuitBuilder, InputBit, Lit};
use gmw::{GateParty, Layers};
use net::Session;
use ot::OtKind;

/// A deterministic generator for public test data.
pub struct Source(pub u64);

impl Source {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }
}

/// A circuit of `gates` random gates over bits of all parties and of everybody, with roots of all kinds.
pub fn circuit(parties: usize, gates: usize, seed: u64) -> (Circuit, Vec<Lit>) {
    let mut source = Source(seed);
    let mut g = CircuitBuilder::default();
    let mut lits = vec![Lit::FALSE];
    for word in 0..2 * parties as u32 + 3 {
        let owner = (word as usize % (parties + 1)).checked_sub(1).map(|p| PartyId(p as u8));
        lits.push(g.input(InputBit { owner, word, bit: (word % 3) as u16 }));
    }
    for _ in 0..gates {
        let [a, b] = [(); 2].map(|()| lits[source.below(lits.len())].flip(source.below(2) == 1));
        lits.push(if source.below(5) < 2 { g.xor(a, b) } else { g.and(a, b) });
    }
    let mut roots = vec![Lit::TRUE, Lit::FALSE, lits[1], !lits[2], lits[3]];
    roots.extend(lits.iter().rev().take(9).enumerate().map(|(i, lit)| lit.flip(i % 2 == 1)));
    (g.finish(), roots)
}

/// The value of an input in a lane.
pub fn value(input: &InputBit, lane: usize) -> bool {
    Source((u64::from(input.word) << 40) ^ (u64::from(input.bit) << 32) ^ lane as u64).word() & 1 == 1
}

/// Input bits over lanes, packed.
pub fn fill(input: &InputBit, lanes: usize, into: &mut [u64]) {
    for lane in (0..lanes).filter(|&lane| value(input, lane)) {
        into[lane / 64] |= 1 << (lane % 64);
    }
}

/// The roots from the definition, packed over lanes.
pub fn truth(circuit: &Circuit, roots: &[Lit], lanes: usize) -> Vec<Vec<u64>> {
    let mut out = vec![vec![0; lanes.div_ceil(64)]; roots.len()];
    for lane in 0..lanes {
        let wires = circuit.evaluate(|input| value(input, lane));
        for (out, root) in out.iter_mut().zip(roots) {
            out[lane / 64] |= u64::from(wires[root.wire()] ^ root.inverted()) << (lane % 64);
        }
    }
    out
}

/// Evaluates on the test's inputs; this party's shares.
pub fn eval(
    party: &mut GateParty,
    layers: &Layers,
    lanes: usize,
    session: &mut Session,
) -> Result<Vec<Vec<u64>>, base::Error> {
    let me = party.me();
    party.eval(
        layers,
        lanes,
        &mut |input, into| {
            assert!(input.owner.is_none_or(|owner| owner == me), "only known bits are asked for");
            fill(input, lanes, into);
            Ok(())
        },
        session,
    )
}

pub fn party(session: &mut Session) -> GateParty {
    GateParty::new(session, OtKind::default(), 0).unwrap()
}
