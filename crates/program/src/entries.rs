//! A circuit taken apart by who knows what: what a party computes alone from its own inputs, and enters; and
//! what is left for the shares of what was entered.
//!
//! For engines whose shares are not its inputs: a value that one party knows becomes shared by a message, so
//! it is entered where it first meets another's, and not before.

use crate::lower::{EntryRule, Piece};
use base::PartyId;
use circuits::{Circuit, InputBit, Lit, WireDriver};

/// Who knows an input bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knows {
    /// One party, which enters it or what it computes from it.
    Party(PartyId),
    /// Every party knows an exclusive-or share of it and enters that.
    Shares,
    /// Nobody; it is shared already.
    Nobody,
}

/// A circuit taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CircuitSplit {
    /// By party: what it computes from its own inputs, which are without owner here. The roots are what it
    /// enters, in order.
    pub own: Vec<Piece>,
    /// The rest. An input with an owner is an entered bit: `word` is the position in that party's roots,
    /// `bit` 0. Inputs without owner are those that nobody knows, as they were.
    pub joint: Piece,
}

/// Who knows a wire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Constant,
    Of(PartyId),
    Joint,
}

impl Class {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant, class) | (class, Self::Constant) => class,
            (a, b) if a == b => a,
            _ => Self::Joint,
        }
    }
}

const NOWHERE: u32 = u32::MAX;

/// Takes a circuit apart, down to what `roots` need. Under [`EntryRule::Columns`] parties enter input bits
/// and nothing else.
#[must_use]
pub fn entries(
    circuit: &Circuit,
    roots: &[Lit],
    parties: usize,
    knows: &dyn Fn(&InputBit) -> Knows,
    inputs: EntryRule,
) -> CircuitSplit {
    let wanted = circuit.wanted(roots);
    let mut joint = Joint::new(circuit, parties, classes(circuit, knows, inputs));
    for (index, wire) in circuit.wires.iter().enumerate().filter(|(i, _)| wanted[*i]) {
        if joint.classes[index] == Class::Joint {
            joint.take(index, wire, knows);
        }
    }
    let roots = roots.iter().map(|root| joint.literal(*root)).collect();
    let own = (0..parties).map(|p| own(circuit, PartyId(p as u8), &joint.entered[p], knows)).collect();
    CircuitSplit { own, joint: Piece { circuit: Circuit { wires: joint.wires }, roots } }
}

fn classes(circuit: &Circuit, knows: &dyn Fn(&InputBit) -> Knows, inputs: EntryRule) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::with_capacity(circuit.wires.len());
    let join = |a: Class, b: Class| match a.join(b) {
        Class::Of(_) if inputs == EntryRule::Columns => Class::Joint,
        class => class,
    };
    for wire in &circuit.wires {
        classes.push(match wire {
            WireDriver::False => Class::Constant,
            WireDriver::Input(input) => match knows(input) {
                Knows::Party(party) => Class::Of(party),
                Knows::Shares | Knows::Nobody => Class::Joint,
            },
            WireDriver::Xor(a, b) => join(classes[*a as usize], classes[*b as usize]),
            WireDriver::And(a, b) => join(classes[a.wire()], classes[b.wire()]),
        });
    }
    classes
}

/// The joint circuit in the making.
struct Joint<'a> {
    circuit: &'a Circuit,
    classes: Vec<Class>,
    wires: Vec<WireDriver>,
    /// Where each wire of the circuit is in `wires`.
    place: Vec<u32>,
    /// By party, the wires that it enters.
    entered: Vec<Vec<u32>>,
}

impl<'a> Joint<'a> {
    fn new(circuit: &'a Circuit, parties: usize, classes: Vec<Class>) -> Self {
        let mut place = vec![NOWHERE; circuit.wires.len()];
        place[0] = 0;
        Self { circuit, classes, wires: vec![WireDriver::False], place, entered: vec![Vec::new(); parties] }
    }

    fn push(&mut self, wire: WireDriver) -> u32 {
        self.wires.push(wire);
        self.wires.len() as u32 - 1
    }

    /// A bit that a party enters: wire `index` of the circuit.
    fn enter(&mut self, party: PartyId, index: usize) -> u32 {
        let entered = &mut self.entered[party.index()];
        entered.push(index as u32);
        let word = entered.len() as u32 - 1;
        self.push(WireDriver::Input(InputBit { owner: Some(party), word, bit: 0 }))
    }

    fn take(&mut self, index: usize, wire: &WireDriver, knows: &dyn Fn(&InputBit) -> Knows) {
        let wire = match *wire {
            WireDriver::Input(input) if knows(&input) == Knows::Shares => {
                let entered: Vec<u32> =
                    (0..self.entered.len()).map(|p| self.enter(PartyId(p as u8), index)).collect();
                let sum = entered.into_iter().reduce(|a, b| self.push(WireDriver::Xor(a, b)));
                self.place[index] = sum.unwrap_or(0);
                return;
            }
            WireDriver::Input(input) => WireDriver::Input(InputBit { owner: None, ..input }),
            WireDriver::Xor(a, b) => WireDriver::Xor(self.at(a as usize), self.at(b as usize)),
            WireDriver::And(a, b) => WireDriver::And(self.literal(a), self.literal(b)),
            WireDriver::False => return,
        };
        self.place[index] = self.push(wire);
    }

    /// Where a wire of the circuit is; what is not there yet is a constant or is entered here.
    fn at(&mut self, index: usize) -> u32 {
        if self.place[index] == NOWHERE {
            self.place[index] = match (self.classes[index], self.circuit.wires[index]) {
                (Class::Of(party), _) => self.enter(party, index),
                (_, WireDriver::Xor(a, b)) => {
                    let [a, b] = [a, b].map(|operand| self.at(operand as usize));
                    self.push(WireDriver::Xor(a, b))
                }
                (_, WireDriver::And(a, b)) => {
                    let [a, b] = [a, b].map(|operand| self.literal(operand));
                    self.push(WireDriver::And(a, b))
                }
                (_, WireDriver::False | WireDriver::Input(_)) => {
                    unreachable!("wire 0 has a place, and inputs come in order")
                }
            };
        }
        self.place[index]
    }

    fn literal(&mut self, lit: Lit) -> Lit {
        Lit::of(self.at(lit.wire()) as usize).flip(lit.inverted())
    }
}

/// What one party computes of what it enters.
fn own(circuit: &Circuit, party: PartyId, entered: &[u32], knows: &dyn Fn(&InputBit) -> Knows) -> Piece {
    let roots: Vec<Lit> = entered.iter().map(|wire| Lit::of(*wire as usize)).collect();
    let wanted = circuit.wanted(&roots);
    let mut place = vec![0; circuit.wires.len()];
    let mut wires = vec![WireDriver::False];
    for (index, wire) in circuit.wires.iter().enumerate().filter(|(i, _)| wanted[*i]) {
        let literal = |lit: Lit| Lit::of(place[lit.wire()] as usize).flip(lit.inverted());
        let wire = match *wire {
            WireDriver::False => continue,
            WireDriver::Input(input) => {
                debug_assert!(matches!(knows(&input), Knows::Shares) || knows(&input) == Knows::Party(party));
                WireDriver::Input(InputBit { owner: None, ..input })
            }
            WireDriver::Xor(a, b) => WireDriver::Xor(place[a as usize], place[b as usize]),
            WireDriver::And(a, b) => WireDriver::And(literal(a), literal(b)),
        };
        wires.push(wire);
        place[index] = wires.len() as u32 - 1;
    }
    let roots = roots.iter().map(|root| Lit::of(place[root.wire()] as usize)).collect();
    Piece { circuit: Circuit { wires }, roots }
}

#[cfg(test)]
mod tests {
    use super::*;
    use circuits::CircuitBuilder;

    fn input(g: &mut CircuitBuilder, word: u32) -> Lit {
        g.input(InputBit { owner: Some(PartyId(word as u8 % 2)), word, bit: 3 })
    }

    fn knows(input: &InputBit) -> Knows {
        match input.word {
            8 => Knows::Shares,
            9 => Knows::Nobody,
            word => Knows::Party(PartyId(word as u8 % 2)),
        }
    }

    /// Both halves, evaluated one after the other, are the circuit.
    #[test]
    fn the_parts_are_the_whole() {
        the_whole(EntryRule::Derived);
        the_whole(EntryRule::Columns);
    }

    fn the_whole(inputs: EntryRule) {
        let mut g = CircuitBuilder::default();
        let [a, b, c, d] = [0, 1, 2, 3].map(|word| input(&mut g, word));
        let (shared, held) = (input(&mut g, 8), input(&mut g, 9));
        let own = g.and(a, !c);
        let deep = g.xor(own, c);
        let both = g.and(!deep, b);
        let again = g.xor(own, d);
        let more = g.and(shared, !again);
        let last = g.xor(more, held);
        let constant = g.and_gate(Lit::TRUE, Lit::TRUE);
        let masked = g.and_gate(constant, last);
        let roots = [both, !last, masked, Lit::TRUE, !a, constant];
        let circuit = g.finish();
        let parts = entries(&circuit, &roots, 2, &knows, inputs);
        let entered: Vec<usize> = parts.own.iter().map(|own| own.roots.len()).collect();
        let gates = parts.own.iter().flat_map(|own| &own.circuit.wires);
        let derives = gates.filter(|wire| matches!(wire, WireDriver::Xor(..) | WireDriver::And(..))).count();
        match inputs {
            // c alone is not entered: party 0 enters deep, own, a and its share; party 1 b, d and its own
            // share.
            EntryRule::Derived => assert_eq!((&entered[..], derives), (&[4, 3][..], 2)),
            // Party 0 enters a, c and its share, party 1 as before.
            EntryRule::Columns => assert_eq!((&entered[..], derives), (&[3, 3][..], 0)),
        }
        for values in 0u32..1 << 7 {
            // Bit 8 in shares: those of party 0 and of party 1.
            let share = |party: u8| values >> (5 + party) & 1 == 1;
            let bit = |input: &InputBit| match input.word {
                8 => share(0) ^ share(1),
                9 => values >> 4 & 1 == 1,
                word => values >> word & 1 == 1,
            };
            let of = |wires: &[bool], lit: &Lit| wires[lit.wire()] ^ lit.inverted();
            let whole = circuit.evaluate(bit);
            let entered: Vec<Vec<bool>> = (0..2)
                .map(|party| {
                    let own = &parts.own[usize::from(party)];
                    let known = |i: &InputBit| if i.word == 8 { share(party) } else { bit(i) };
                    let wires = own.circuit.evaluate(known);
                    own.roots.iter().map(|root| of(&wires, root)).collect()
                })
                .collect();
            let joint = parts.joint.circuit.evaluate(|input| match input.owner {
                Some(party) => entered[party.index()][input.word as usize],
                None => bit(input),
            });
            for (root, wanted) in parts.joint.roots.iter().zip(&roots) {
                assert_eq!(of(&joint, root), of(&whole, wanted), "{values:b}");
            }
        }
    }
}
