//! A circuit taken apart by who knows what: what a party computes alone from its own inputs, and enters; and
//! what is left for the shares of what was entered.
//!
//! For engines whose shares are not its inputs: a value that one party knows becomes shared by a message, so
//! it is entered where it first meets another's, and not before.

use crate::lower::{Inputs, Piece};
use base::PartyId;
use circuits::{Circuit, Input, Lit, Wire};

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
pub struct Entries {
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

/// Takes a circuit apart, down to what `roots` need. Under [`Inputs::Columns`] parties enter input bits and
/// nothing else.
#[must_use]
pub fn entries(
    circuit: &Circuit,
    roots: &[Lit],
    parties: usize,
    knows: &dyn Fn(&Input) -> Knows,
    inputs: Inputs,
) -> Entries {
    let wanted = circuit.wanted(roots);
    let mut joint = Joint::new(circuit, parties, classes(circuit, knows, inputs));
    for (index, wire) in circuit.wires.iter().enumerate().filter(|(i, _)| wanted[*i]) {
        if joint.classes[index] == Class::Joint {
            joint.take(index, wire, knows);
        }
    }
    let roots = roots.iter().map(|root| joint.literal(*root)).collect();
    let own = (0..parties).map(|p| own(circuit, PartyId(p as u8), &joint.entered[p], knows)).collect();
    Entries { own, joint: Piece { circuit: Circuit { wires: joint.wires }, roots } }
}

fn classes(circuit: &Circuit, knows: &dyn Fn(&Input) -> Knows, inputs: Inputs) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::with_capacity(circuit.wires.len());
    let join = |a: Class, b: Class| match a.join(b) {
        Class::Of(_) if inputs == Inputs::Columns => Class::Joint,
        class => class,
    };
    for wire in &circuit.wires {
        classes.push(match wire {
            Wire::False => Class::Constant,
            Wire::Input(input) => match knows(input) {
                Knows::Party(party) => Class::Of(party),
                Knows::Shares | Knows::Nobody => Class::Joint,
            },
            Wire::Xor(a, b) => join(classes[*a as usize], classes[*b as usize]),
            Wire::And(a, b) => join(classes[a.wire()], classes[b.wire()]),
        });
    }
    classes
}

/// The joint circuit in the making.
struct Joint<'a> {
    circuit: &'a Circuit,
    classes: Vec<Class>,
    wires: Vec<Wire>,
    /// Where each wire of the circuit is in `wires`.
    place: Vec<u32>,
    /// By party, the wires that it enters.
    entered: Vec<Vec<u32>>,
}

impl<'a> Joint<'a> {
    fn new(circuit: &'a Circuit, parties: usize, classes: Vec<Class>) -> Self {
        let mut place = vec![NOWHERE; circuit.wires.len()];
        place[0] = 0;
        Self { circuit, classes, wires: vec![Wire::False], place, entered: vec![Vec::new(); parties] }
    }

    fn push(&mut self, wire: Wire) -> u32 {
        self.wires.push(wire);
        self.wires.len() as u32 - 1
    }

    /// A bit that a party enters: wire `index` of the circuit.
    fn enter(&mut self, party: PartyId, index: usize) -> u32 {
        let entered = &mut self.entered[party.index()];
        entered.push(index as u32);
        let word = entered.len() as u32 - 1;
        self.push(Wire::Input(Input { owner: Some(party), word, bit: 0 }))
    }

    fn take(&mut self, index: usize, wire: &Wire, knows: &dyn Fn(&Input) -> Knows) {
        let wire = match *wire {
            Wire::Input(input) if knows(&input) == Knows::Shares => {
                let entered: Vec<u32> =
                    (0..self.entered.len()).map(|p| self.enter(PartyId(p as u8), index)).collect();
                let sum = entered.into_iter().reduce(|a, b| self.push(Wire::Xor(a, b)));
                self.place[index] = sum.unwrap_or(0);
                return;
            }
            Wire::Input(input) => Wire::Input(Input { owner: None, ..input }),
            Wire::Xor(a, b) => Wire::Xor(self.at(a as usize), self.at(b as usize)),
            Wire::And(a, b) => Wire::And(self.literal(a), self.literal(b)),
            Wire::False => return,
        };
        self.place[index] = self.push(wire);
    }

    /// Where a wire of the circuit is; what is not there yet is a constant or is entered here.
    fn at(&mut self, index: usize) -> u32 {
        if self.place[index] == NOWHERE {
            self.place[index] = match (self.classes[index], self.circuit.wires[index]) {
                (Class::Of(party), _) => self.enter(party, index),
                (_, Wire::Xor(a, b)) => {
                    let [a, b] = [a, b].map(|operand| self.at(operand as usize));
                    self.push(Wire::Xor(a, b))
                }
                (_, Wire::And(a, b)) => {
                    let [a, b] = [a, b].map(|operand| self.literal(operand));
                    self.push(Wire::And(a, b))
                }
                (_, Wire::False | Wire::Input(_)) => {
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
fn own(circuit: &Circuit, party: PartyId, entered: &[u32], knows: &dyn Fn(&Input) -> Knows) -> Piece {
    let roots: Vec<Lit> = entered.iter().map(|wire| Lit::of(*wire as usize)).collect();
    let wanted = circuit.wanted(&roots);
    let mut place = vec![0; circuit.wires.len()];
    let mut wires = vec![Wire::False];
    for (index, wire) in circuit.wires.iter().enumerate().filter(|(i, _)| wanted[*i]) {
        let literal = |lit: Lit| Lit::of(place[lit.wire()] as usize).flip(lit.inverted());
        let wire = match *wire {
            Wire::False => continue,
            Wire::Input(input) => {
                debug_assert!(matches!(knows(&input), Knows::Shares) || knows(&input) == Knows::Party(party));
                Wire::Input(Input { owner: None, ..input })
            }
            Wire::Xor(a, b) => Wire::Xor(place[a as usize], place[b as usize]),
            Wire::And(a, b) => Wire::And(literal(a), literal(b)),
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
    use circuits::Gates;

    fn input(g: &mut Gates, word: u32) -> Lit {
        g.input(Input { owner: Some(PartyId(word as u8 % 2)), word, bit: 3 })
    }

    fn knows(input: &Input) -> Knows {
        match input.word {
            8 => Knows::Shares,
            9 => Knows::Nobody,
            word => Knows::Party(PartyId(word as u8 % 2)),
        }
    }

    /// Both halves, evaluated one after the other, are the circuit.
    #[test]
    fn the_parts_are_the_whole() {
        the_whole(Inputs::Derived);
        the_whole(Inputs::Columns);
    }

    fn the_whole(inputs: Inputs) {
        let mut g = Gates::default();
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
        let derives = gates.filter(|wire| matches!(wire, Wire::Xor(..) | Wire::And(..))).count();
        match inputs {
            // c alone is not entered: party 0 enters deep, own, a and its share; party 1 b, d and its own
            // share.
            Inputs::Derived => assert_eq!((&entered[..], derives), (&[4, 3][..], 2)),
            // Party 0 enters a, c and its share, party 1 as before.
            Inputs::Columns => assert_eq!((&entered[..], derives), (&[3, 3][..], 0)),
        }
        for values in 0u32..1 << 7 {
            // Bit 8 in shares: those of party 0 and of party 1.
            let share = |party: u8| values >> (5 + party) & 1 == 1;
            let bit = |input: &Input| match input.word {
                8 => share(0) ^ share(1),
                9 => values >> 4 & 1 == 1,
                word => values >> word & 1 == 1,
            };
            let of = |wires: &[bool], lit: &Lit| wires[lit.wire()] ^ lit.inverted();
            let whole = circuit.evaluate(bit);
            let entered: Vec<Vec<bool>> = (0..2)
                .map(|party| {
                    let own = &parts.own[usize::from(party)];
                    let known = |i: &Input| if i.word == 8 { share(party) } else { bit(i) };
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
