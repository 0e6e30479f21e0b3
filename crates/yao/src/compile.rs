//! Compiles a boolean circuit for one garbler into a flat list of lane-wide gates on recycled slots.
//!
//! Whose input a wire is decides what a gate costs (header of `lib.rs`): a bit that the garbler knows is
//! absorbed into offsets, and an AND with an operand that either party knows needs one ciphertext instead of
//! two.

use base::{PartyId, Rng, Seed};
use circuits::{Circuit, InputBit, Lit, WireDriver};

/// Where labels lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ref {
    /// The constant false: the all-zero label at both parties.
    Zero,
    /// The evaluator's input bit of this number; its label came from the OT of this number.
    Ot(u32),
    /// A slot.
    Slot(u32),
}

/// One lane-wide gate. Complements cost nothing: the garbler adds Delta where `flip` says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelGate {
    /// `out = a ^ b`.
    Xor { a: Ref, b: Ref, out: u32, flip: bool },
    /// `out = a ^ bit` with a bit that the garbler knows.
    Known { a: Ref, bit: u32, out: u32, flip: bool },
    /// `out = !a`.
    Not { a: Ref, out: u32 },
    /// `out = a`, with an active label that differs between lanes: see [`Compiler::hashed`].
    Spread { a: Ref, out: u32, flip: bool },
    /// `out = a & b`: two ciphertexts.
    And { a: Ref, b: Ref, out: u32 },
    /// `out = bit & b` with a bit (complemented: `flip`) that the garbler knows: one ciphertext.
    AndGarbler { bit: u32, flip: bool, b: Ref, out: u32 },
    /// `out = ot & b` with a bit (complemented: `flip`) that the evaluator knows: one ciphertext.
    AndEvaluator { ot: u32, flip: bool, b: Ref, out: u32 },
}

/// A compiled circuit.
#[derive(Debug)]
pub(crate) struct GarbledGates {
    pub gates: Vec<LabelGate>,
    /// Slots used at once.
    pub slots: u32,
    /// Bits that the evaluator enters, by OT number.
    pub ots: Vec<InputBit>,
    /// Bits that the garbler knows, by number.
    pub known: Vec<InputBit>,
    /// Where each root's labels lie and whether they stand for its complement.
    pub roots: Vec<(Ref, bool)>,
    /// AND gates with two ciphertexts, and with one.
    pub full: u64,
    pub half: u64,
}

impl GarbledGates {
    /// Ciphertext blocks per lane.
    pub fn table_blocks(&self) -> u64 {
        2 * self.full + self.half
    }
}

/// What a wire is to this garbler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    False,
    GarblerKnown(u32),
    Ot(u32),
    Gate,
}

/// Compiles the part of `circuit` that `roots` need.
pub(crate) fn compile(circuit: &Circuit, roots: &[Lit], garbler: PartyId) -> GarbledGates {
    let needed = needed(circuit, roots);
    let mut compiler = Compiler::new(circuit, &needed, garbler);
    compiler.count_uses(&needed, roots);
    for wire in (0..circuit.wires.len()).filter(|w| needed[*w]) {
        match circuit.wires[wire] {
            WireDriver::Xor(a, b) => compiler.xor(wire, a as usize, b as usize),
            WireDriver::And(a, b) => compiler.and(wire, a, b),
            WireDriver::False | WireDriver::Input(_) => {}
        }
    }
    let out: Vec<(Ref, bool)> = roots.iter().map(|root| compiler.root(*root)).collect();
    GarbledGates {
        full: compiler.gates.iter().filter(|g| matches!(g, LabelGate::And { .. })).count() as u64,
        half: compiler
            .gates
            .iter()
            .filter(|g| matches!(g, LabelGate::AndGarbler { .. } | LabelGate::AndEvaluator { .. }))
            .count() as u64,
        gates: compiler.gates,
        slots: compiler.slots,
        ots: compiler.ots,
        known: compiler.known,
        roots: out,
    }
}

fn needed(circuit: &Circuit, roots: &[Lit]) -> Vec<bool> {
    let mut needed = vec![false; circuit.wires.len()];
    roots.iter().for_each(|root| needed[root.wire()] = true);
    for (i, wire) in circuit.wires.iter().enumerate().rev() {
        if needed[i] {
            match wire {
                WireDriver::Xor(a, b) => (needed[*a as usize], needed[*b as usize]) = (true, true),
                WireDriver::And(a, b) => (needed[a.wire()], needed[b.wire()]) = (true, true),
                WireDriver::False | WireDriver::Input(_) => {}
            }
        }
    }
    needed
}

struct Compiler<'a> {
    circuit: &'a Circuit,
    kinds: Vec<Kind>,
    /// Slot of a gate's output (or of a known bit made into a wire), and whether it holds the complement.
    places: Vec<Option<(u32, bool)>>,
    /// Uses that are still to come; a slot is recycled after its last one.
    uses: Vec<u32>,
    /// Which OTs and ANDs a wire's labels are the sum of, as a sum of random marks: zero for the empty set,
    /// and for no other set but with probability 2^-128.
    marks: Vec<u128>,
    rng: Rng,
    free: Vec<u32>,
    slots: u32,
    gates: Vec<LabelGate>,
    ots: Vec<InputBit>,
    known: Vec<InputBit>,
}

impl<'a> Compiler<'a> {
    fn new(circuit: &'a Circuit, needed: &[bool], garbler: PartyId) -> Self {
        let (mut ots, mut known) = (Vec::new(), Vec::new());
        let kind = |(i, wire): (usize, &WireDriver)| match wire {
            WireDriver::False => Kind::False,
            WireDriver::Input(_) if !needed[i] => Kind::False,
            WireDriver::Input(input) if input.owner.is_none_or(|o| o == garbler) => {
                known.push(*input);
                Kind::GarblerKnown(known.len() as u32 - 1)
            }
            WireDriver::Input(input) => {
                ots.push(*input);
                Kind::Ot(ots.len() as u32 - 1)
            }
            WireDriver::Xor(..) | WireDriver::And(..) => Kind::Gate,
        };
        let kinds = circuit.wires.iter().enumerate().map(kind).collect();
        let n = circuit.wires.len();
        let (places, uses, marks) = (vec![None; n], vec![0; n], vec![0; n]);
        // Marks never leave this function; any randomness gives the same gates.
        let rng = Seed::from_system().into_rng();
        let (free, gates) = (Vec::new(), Vec::new());
        let mut compiler =
            Self { circuit, kinds, places, uses, marks, rng, free, slots: 0, gates, ots, known };
        for wire in 0..n {
            if matches!(compiler.kinds[wire], Kind::Ot(_)) {
                compiler.mark(wire);
            }
        }
        compiler
    }

    /// A wire whose labels are independent of all others'.
    fn mark(&mut self, wire: usize) {
        self.marks[wire] = u128::from_le_bytes(self.rng.bytes());
    }

    fn count_uses(&mut self, needed: &[bool], roots: &[Lit]) {
        for (i, wire) in self.circuit.wires.iter().enumerate().filter(|(i, _)| needed[*i]) {
            debug_assert!(needed[i]);
            match wire {
                WireDriver::Xor(a, b) => {
                    self.uses[*a as usize] += 1;
                    self.uses[*b as usize] += 1;
                }
                WireDriver::And(a, b) => {
                    self.uses[a.wire()] += 1;
                    self.uses[b.wire()] += 1;
                }
                WireDriver::False | WireDriver::Input(_) => {}
            }
        }
        // A root's labels are read after the last gate: its slot is never recycled.
        roots.iter().for_each(|root| self.uses[root.wire()] += 1);
    }

    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        })
    }

    fn used(&mut self, wire: usize) {
        self.uses[wire] -= 1;
        if self.uses[wire] == 0
            && let Some((slot, _)) = self.places[wire]
        {
            self.free.push(slot);
        }
    }

    /// Labels of a wire and whether they stand for its complement. A known bit becomes a wire on first need.
    fn labels(&mut self, wire: usize) -> (Ref, bool) {
        match self.kinds[wire] {
            Kind::False => (Ref::Zero, false),
            Kind::Ot(k) => (Ref::Ot(k), false),
            Kind::Gate | Kind::GarblerKnown(_) => {
                if let (None, Kind::GarblerKnown(bit)) = (self.places[wire], self.kinds[wire]) {
                    let out = self.slot();
                    self.gates.push(LabelGate::Known { a: Ref::Zero, bit, out, flip: false });
                    self.places[wire] = Some((out, false));
                }
                let (slot, complement) = self.places[wire].expect("operands are compiled first");
                (Ref::Slot(slot), complement)
            }
        }
    }

    /// An XOR's polarity is free; it takes the one in which an AND reads it first.
    fn wanted_polarity(&self, wire: usize) -> bool {
        // Carry chains read an XOR in the very next gates, so a short look ahead finds it.
        let next = self.circuit.wires[wire + 1..].iter().take(8).find_map(|w| match w {
            WireDriver::And(a, _) if a.wire() == wire => Some(a.inverted()),
            WireDriver::And(_, b) if b.wire() == wire => Some(b.inverted()),
            _ => None,
        });
        next.unwrap_or(false)
    }

    fn xor(&mut self, wire: usize, a: usize, b: usize) {
        self.marks[wire] = self.marks[a] ^ self.marks[b];
        let complement = self.wanted_polarity(wire);
        let (a, b) = if matches!(self.kinds[a], Kind::GarblerKnown(_)) { (b, a) } else { (a, b) };
        let (left, left_flip) = self.labels(a);
        let gate = if let Kind::GarblerKnown(bit) = self.kinds[b] {
            let out = self.slot();
            self.places[wire] = Some((out, complement));
            LabelGate::Known { a: left, bit, out, flip: left_flip ^ complement }
        } else {
            let (right, right_flip) = self.labels(b);
            let out = self.slot();
            self.places[wire] = Some((out, complement));
            LabelGate::Xor { a: left, b: right, out, flip: left_flip ^ right_flip ^ complement }
        };
        self.gates.push(gate);
        self.used(a);
        self.used(b);
    }

    /// Labels of a literal that are about to be hashed. Lanes share tweaks, so no two lanes may hash one
    /// active label under one tweak: the pads would be equal, and the sum of two ciphertexts would be Delta.
    /// A wire that depends on the garbler's bits alone has the all-zero active label in every lane; it gets
    /// one that is public and different in every lane, for this use only (sums of such labels would be zero
    /// again).
    fn hashed(&mut self, lit: Lit) -> (Ref, Option<u32>) {
        if self.marks[lit.wire()] != 0 {
            return self.literal(lit);
        }
        let (a, complement) = self.labels(lit.wire());
        let out = self.slot();
        self.gates.push(LabelGate::Spread { a, out, flip: complement ^ lit.inverted() });
        (Ref::Slot(out), Some(out))
    }

    /// Labels of a literal in its own polarity; adds a NOT where they are held in the other one.
    fn literal(&mut self, lit: Lit) -> (Ref, Option<u32>) {
        let (place, complement) = self.labels(lit.wire());
        if complement == lit.inverted() {
            return (place, None);
        }
        let out = self.slot();
        self.gates.push(LabelGate::Not { a: place, out });
        (Ref::Slot(out), Some(out))
    }

    fn and(&mut self, wire: usize, a: Lit, b: Lit) {
        let known = |lit: Lit| !matches!(self.kinds[lit.wire()], Kind::Gate);
        let by_garbler = |lit: Lit| matches!(self.kinds[lit.wire()], Kind::GarblerKnown(_));
        // The operand that somebody knows comes first; the garbler's before the evaluator's, which needs no
        // label.
        let (a, b) = if by_garbler(b) || (known(b) && !known(a)) { (b, a) } else { (a, b) };
        let mut spare = [None, None];
        let gate = match self.kinds[a.wire()] {
            Kind::GarblerKnown(bit) => {
                let b = self.hashed(b);
                spare[0] = b.1;
                let out = self.slot();
                LabelGate::AndGarbler { bit, flip: a.inverted(), b: b.0, out }
            }
            Kind::Ot(ot) => {
                let b = self.literal(b);
                spare[0] = b.1;
                let out = self.slot();
                LabelGate::AndEvaluator { ot, flip: a.inverted(), b: b.0, out }
            }
            Kind::Gate | Kind::False => {
                let (a, b) = (self.hashed(a), self.hashed(b));
                spare = [a.1, b.1];
                let out = self.slot();
                LabelGate::And { a: a.0, b: b.0, out }
            }
        };
        let out = match gate {
            LabelGate::And { out, .. }
            | LabelGate::AndGarbler { out, .. }
            | LabelGate::AndEvaluator { out, .. } => out,
            _ => unreachable!("an AND"),
        };
        self.places[wire] = Some((out, false));
        self.mark(wire);
        self.gates.push(gate);
        self.free.extend(spare.into_iter().flatten());
        self.used(a.wire());
        self.used(b.wire());
    }

    fn root(&mut self, lit: Lit) -> (Ref, bool) {
        // Masks hash their selectors.
        if self.marks[lit.wire()] == 0 {
            return (self.hashed(lit).0, false);
        }
        let (place, complement) = self.labels(lit.wire());
        (place, complement ^ lit.inverted())
    }
}
