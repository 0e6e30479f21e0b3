//! Boolean circuits over lanes: XOR and AND gates on literals, built with constant folding and sharing.
//!
//! A literal is a wire with a polarity, so NOT is free and never a gate. Wire 0 is the constant false.

use base::PartyId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A wire with a polarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lit(u32);

impl Lit {
    /// The constant false.
    pub const FALSE: Self = Self(0);
    /// The constant true.
    pub const TRUE: Self = Self(1);

    /// A constant.
    #[must_use]
    pub fn constant(value: bool) -> Self {
        Self(u32::from(value))
    }

    /// Wire `wire` itself.
    #[must_use]
    pub fn of(wire: usize) -> Self {
        debug_assert!(wire < 1 << 31);
        Self((wire as u32) << 1)
    }

    /// The wire, without polarity.
    #[must_use]
    pub fn wire(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether the literal is the wire's complement.
    #[must_use]
    pub fn inverted(self) -> bool {
        self.0 & 1 == 1
    }

    /// The constant this literal is, if it is one.
    #[must_use]
    pub fn as_constant(self) -> Option<bool> {
        (self.wire() == 0).then_some(self.inverted())
    }

    /// This literal, complemented when `yes`.
    #[must_use]
    pub fn flip(self, yes: bool) -> Self {
        Self(self.0 ^ u32::from(yes))
    }
}

impl std::ops::Not for Lit {
    type Output = Self;
    fn not(self) -> Self {
        self.flip(true)
    }
}

/// One bit of a word that somebody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputBit {
    /// Who knows it; `None`: everybody.
    pub owner: Option<PartyId>,
    /// The word: a row node, or an entry of a release plan's words.
    pub word: u32,
    /// The bit, 0 is least significant.
    pub bit: u16,
}

/// What drives a wire. Operands are earlier wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WireDriver {
    /// The constant false; wire 0 only.
    False,
    /// A known bit.
    Input(InputBit),
    /// Exclusive or of two wires (polarity is carried by the literals that use this wire).
    Xor(u32, u32),
    /// And of two literals.
    And(Lit, Lit),
}

/// A boolean circuit in topological order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Wires; entry 0 is `False`.
    pub wires: Vec<WireDriver>,
}

impl Circuit {
    /// Number of AND gates.
    #[must_use]
    pub fn and_gates(&self) -> usize {
        self.wires.iter().filter(|w| matches!(w, WireDriver::And(..))).count()
    }

    /// Longest chain of AND gates.
    #[must_use]
    pub fn and_depth(&self) -> usize {
        self.and_depths().into_iter().max().unwrap_or(0) as usize
    }

    /// Longest chain of AND gates that ends at each wire, its own gate included.
    #[must_use]
    pub fn and_depths(&self) -> Vec<u32> {
        let mut depth = vec![0; self.wires.len()];
        for (i, wire) in self.wires.iter().enumerate() {
            depth[i] = match wire {
                WireDriver::Xor(a, b) => depth[*a as usize].max(depth[*b as usize]),
                WireDriver::And(a, b) => 1 + depth[a.wire()].max(depth[b.wire()]),
                _ => 0,
            };
        }
        depth
    }

    /// By wire, whether one of `roots` needs it.
    #[must_use]
    pub fn wanted(&self, roots: &[Lit]) -> Vec<bool> {
        let mut wanted = vec![false; self.wires.len()];
        for root in roots {
            wanted[root.wire()] = true;
        }
        for (index, wire) in self.wires.iter().enumerate().rev() {
            let operands = match *wire {
                WireDriver::False | WireDriver::Input(_) => continue,
                WireDriver::Xor(a, b) => [a as usize, b as usize],
                WireDriver::And(a, b) => [a.wire(), b.wire()],
            };
            if wanted[index] {
                operands.into_iter().for_each(|a| wanted[a] = true);
            }
        }
        wanted
    }

    /// Evaluates on one row of clear bits: the definition that garbled evaluation is tested against.
    #[must_use]
    pub fn evaluate(&self, mut input: impl FnMut(&InputBit) -> bool) -> Vec<bool> {
        let lanes = self.evaluate_lanes(|i| u64::from(input(i)));
        lanes.into_iter().map(|lanes| lanes & 1 == 1).collect()
    }

    /// The same on 64 rows at once: bit i of a word is of row i.
    #[must_use]
    pub fn evaluate_lanes(&self, mut input: impl FnMut(&InputBit) -> u64) -> Vec<u64> {
        let mut values: Vec<u64> = Vec::with_capacity(self.wires.len());
        let inverted = |lit: Lit| if lit.inverted() { u64::MAX } else { 0 };
        for wire in &self.wires {
            let value = match *wire {
                WireDriver::False => 0,
                WireDriver::Input(ref i) => input(i),
                WireDriver::Xor(a, b) => values[a as usize] ^ values[b as usize],
                WireDriver::And(a, b) => (values[a.wire()] ^ inverted(a)) & (values[b.wire()] ^ inverted(b)),
            };
            values.push(value);
        }
        values
    }
}

/// Hashes what drives a wire: every gate that is built is looked up, which most of the time of building
/// would go to. Wires are numbered here, so nobody else chooses what would collide.
#[derive(Default)]
struct WireHasher(u64);

impl WireHasher {
    /// An odd number whose bits look random: the golden ratio's.
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
}

impl Hasher for WireHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let product = u128::from(self.0.rotate_left(32) ^ value ^ Self::ODD) * u128::from(Self::ODD);
        // Both halves: tables take low bits for the place and high ones for the tag.
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// Builds a [`Circuit`]; constants fold and equal gates are shared.
pub struct CircuitBuilder {
    wires: Vec<WireDriver>,
    known: HashMap<WireDriver, u32, BuildHasherDefault<WireHasher>>,
}

impl Default for CircuitBuilder {
    fn default() -> Self {
        Self { wires: vec![WireDriver::False], known: HashMap::default() }
    }
}

impl CircuitBuilder {
    fn wire(&mut self, wire: WireDriver) -> Lit {
        let index = *self.known.entry(wire).or_insert_with(|| {
            self.wires.push(wire);
            self.wires.len() as u32 - 1
        });
        Lit(index << 1)
    }

    /// Wires so far.
    #[must_use]
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// A wire so far.
    #[must_use]
    pub fn get(&self, wire: usize) -> &WireDriver {
        &self.wires[wire]
    }

    /// A known bit.
    pub fn input(&mut self, input: InputBit) -> Lit {
        self.wire(WireDriver::Input(input))
    }

    /// `a ^ b`.
    pub fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let flip = a.inverted() ^ b.inverted();
        let (a, b) = (a.wire().min(b.wire()), a.wire().max(b.wire()));
        if a == b {
            return Lit::constant(flip);
        }
        if a == 0 {
            return Lit((b as u32) << 1).flip(flip);
        }
        self.wire(WireDriver::Xor(a as u32, b as u32)).flip(flip)
    }

    /// `a & b`.
    pub fn and(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = (a.min(b), a.max(b));
        match (a, b) {
            (Lit::FALSE, _) => Lit::FALSE,
            (Lit::TRUE, _) => b,
            _ if a == b => a,
            _ if a == !b => Lit::FALSE,
            _ => self.wire(WireDriver::And(a, b)),
        }
    }

    /// `a & b` as a gate of its own, where [`CircuitBuilder::and`] would fold a constant or share an equal
    /// gate too: for circuits that match published ones gate by gate.
    pub fn and_gate(&mut self, a: Lit, b: Lit) -> Lit {
        self.wires.push(WireDriver::And(a, b));
        Lit((self.wires.len() as u32 - 1) << 1)
    }

    /// `a | b`.
    pub fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    /// `a` where `c`, else `b`: one AND.
    pub fn mux(&mut self, c: Lit, a: Lit, b: Lit) -> Lit {
        let difference = self.xor(a, b);
        let taken = self.and(c, difference);
        self.xor(taken, b)
    }

    /// The circuit.
    #[must_use]
    pub fn finish(self) -> Circuit {
        Circuit { wires: self.wires }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_and_gates_are_shared() {
        let mut g = CircuitBuilder::default();
        let x = g.input(InputBit { owner: None, word: 0, bit: 0 });
        let y = g.input(InputBit { owner: None, word: 0, bit: 1 });
        assert_eq!(g.and(x, Lit::TRUE), x);
        assert_eq!(g.and(x, !x), Lit::FALSE);
        assert_eq!(g.xor(x, !x), Lit::TRUE);
        assert_eq!(g.xor(x, Lit::TRUE), !x);
        assert_eq!(g.and(x, y), g.and(y, x));
        assert_eq!(g.xor(!x, y), !g.xor(x, y));
        assert_eq!(g.finish().and_gates(), 1);
    }

    /// A table of gates would be a list if these fell together.
    #[test]
    fn gates_of_neighbours_have_hashes_far_apart() {
        use std::hash::BuildHasher;
        let hash = BuildHasherDefault::<WireHasher>::default();
        let pairs = (0..256).flat_map(|a| (a..256).map(move |b| (a, b)));
        let xors = pairs.clone().map(|(a, b)| WireDriver::Xor(a, b));
        let ands = pairs.map(|(a, b)| WireDriver::And(Lit(a), Lit(b)));
        let hashes: Vec<u64> = xors.chain(ands).map(|gate| hash.hash_one(gate)).collect();
        let distinct = |part: &dyn Fn(u64) -> u64| {
            let all: std::collections::HashSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
            all.len()
        };
        assert_eq!(distinct(&|hash| hash), hashes.len());
        // There are twice as many places: random ones take 79 % of as many as they are.
        let places = distinct(&|hash| hash % hashes.len().next_power_of_two() as u64);
        assert!(places > hashes.len() * 7 / 10, "{places} of {}", hashes.len());
        assert_eq!(distinct(&|hash| hash >> 57), 128);
    }
}
