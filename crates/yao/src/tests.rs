//! Lanes share tweaks, so what they hash must differ: the attack, and the invariant that stops it.

use crate::compile::{GarbledGates, LabelGate, Ref, compile};
use crate::lanes::{Garbler, Packed};
use crate::rows::GarbledRows;
use base::PartyId;
use circuits::{Circuit, CircuitBuilder, InputBit, Lit};
use kernels::{Block, TweakedHash};
use net::cluster::Cluster;
use std::collections::BTreeMap;

const LANES: usize = 64;
const DELTA: Block = Block(0xdead_beef_0123_4567_89ab_cdef_1357_9bdf);

/// A circuit over bits of the evaluator (`x`) and of the garbler (`y`).
fn circuit(build: impl Fn(&mut CircuitBuilder, &[Lit], &[Lit]) -> Lit) -> (Circuit, Lit) {
    let mut g = CircuitBuilder::default();
    let bit =
        |g: &mut CircuitBuilder, owner, word| g.input(InputBit { owner: Some(PartyId(owner)), word, bit: 0 });
    let x: Vec<Lit> = (0..2).map(|i| bit(&mut g, 1, i)).collect();
    let y: Vec<Lit> = (2..6).map(|i| bit(&mut g, 0, i)).collect();
    let root = build(&mut g, &x, &y);
    (g.finish(), root)
}

/// Ways to hash a label that is the same in every lane, if nothing prevents it.
fn traps() -> Vec<(Circuit, Lit)> {
    let shared = |g: &mut CircuitBuilder, x: &[Lit], y: &[Lit]| g.and(x[0], y[0]);
    vec![
        circuit(|g, x, y| {
            let c = shared(g, x, y);
            g.mux(c, y[1], y[2])
        }),
        circuit(|g, x, y| {
            let known = g.and(y[1], y[2]);
            let c = shared(g, x, y);
            g.xor(known, c)
        }),
        circuit(|g, x, y| {
            let c = shared(g, x, y);
            let (a, b) = (g.xor(x[1], y[1]), g.xor(x[1], y[2]));
            g.mux(c, a, b)
        }),
        circuit(|_, _, y| y[0]),
        circuit(|g, _, y| g.xor(y[0], y[1])),
        circuit(|_, _, _| Lit::TRUE),
        // Gates of circuit files are not folded.
        circuit(|g, _, y| g.and_gate(Lit::TRUE, y[0])),
        circuit(|g, _, _| g.and_gate(Lit::TRUE, Lit::TRUE)),
        circuit(|g, x, _| g.and_gate(x[0], Lit::FALSE)),
        circuit(|g, x, _| g.and_gate(x[0], !x[0])),
        circuit(|g, _, y| {
            let (a, b) = (g.and_gate(y[0], y[0]), g.xor(y[1], y[2]));
            let c = g.and_gate(a, !b);
            g.and_gate(c, b)
        }),
    ]
}

/// Active labels that are hashed under each gate, by lane.
fn hashed(c: &GarbledGates, garbler: &Garbler, gate: &LabelGate) -> Vec<Vec<Block>> {
    let of = |place: Ref| garbler.labels.get(place).to_vec();
    match *gate {
        LabelGate::And { a, b, .. } => vec![of(a), of(b)],
        LabelGate::AndGarbler { b, .. } => vec![of(b)],
        LabelGate::AndEvaluator { ot, .. } => vec![of(Ref::Ot(ot))],
        _ => {
            assert!(c.gates.contains(gate));
            Vec::new()
        }
    }
}

/// Labels up to Delta: what an evaluator holds is one of the two.
fn class(label: Block) -> u128 {
    label.0.min((label ^ DELTA).0)
}

fn distinct(labels: &[Block]) -> bool {
    let mut seen = BTreeMap::new();
    labels.iter().all(|l| seen.insert(class(*l), ()).is_none())
}

#[test]
fn no_two_lanes_hash_one_label() {
    for (n, (circuit, root)) in traps().into_iter().enumerate() {
        let c = compile(&circuit, &[root], PartyId(0));
        // Gate by gate, so that no slot is recycled before it is looked at.
        for upto in 0..=c.gates.len() {
            let part = GarbledGates {
                gates: c.gates[..upto].to_vec(),
                ots: c.ots.clone(),
                known: c.known.clone(),
                roots: vec![],
                ..c
            };
            let labels = Cluster::new(2, 1).run(|s| {
                if s.me() == PartyId(1) {
                    let bytes = part.gates.iter().map(units).sum::<usize>() * 16 * LANES;
                    s.link(PartyId(0)).recv(&mut vec![0; bytes])?;
                    return Ok(true);
                }
                let mut garbler = Garbler::new(TweakedHash::new(Block(77)), DELTA);
                garbler.labels.prepare(&c, LANES);
                let random =
                    |i: usize| Block((i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
                garbler.labels.ots = (0..LANES * c.ots.len()).map(random).collect();
                let known: Packed = (0..c.known.len()).map(|i| vec![0x9e37_79b9_7f4a_7c15 << i]).collect();
                garbler.run(&part, &known, s, PartyId(1))?;
                let next = c.gates.get(upto).map(|gate| hashed(&c, &garbler, gate));
                let last = || vec![garbler.root(c.roots[0]).collect()];
                Ok(next.unwrap_or_else(last).iter().all(|labels| distinct(labels)))
            });
            assert!(labels.into_iter().all(|l| l.unwrap()), "trap {n}, before gate {upto} of {:?}", c.gates);
        }
    }
}

fn units(gate: &LabelGate) -> usize {
    match gate {
        LabelGate::And { .. } => 2,
        LabelGate::AndGarbler { .. } | LabelGate::AndEvaluator { .. } => 1,
        _ => 0,
    }
}

#[test]
fn the_lift_row_never_needs_it() {
    use studies::lift::{Also, LiftParameters, build};
    let cells = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    for (within, cohorts, breakdown) in [(None, 0, 0), (Some(9), 0, 0), (None, 3, 2), (Some(9), 3, 2)] {
        for also in [Vec::new(), Also::ALL.to_vec()] {
            let lift = LiftParameters {
                within,
                also,
                impressions: true,
                breakdown: cells(&["north", "south"][..breakdown]),
                cohorts: cells(&["x", "y", "z"][..cohorts]),
                ..LiftParameters::bench(4)
            };
            let (program, _) = build(&lift).unwrap();
            for party in [PartyId(0), PartyId(1)] {
                assert!(!GarbledRows::new(&program, party, 2, crate::LANES).spreads(), "{lift:?}");
            }
        }
    }
}
