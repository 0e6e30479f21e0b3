//! A circuit as flat layers: what is computed locally between two openings, and which ANDs are opened
//! together.
//!
//! Wires live in recycled slots, so memory is the widest set of live wires and not the circuit. Known bits
//! are loaded when they are first needed. An AND takes a product of shares only where neither operand is
//! public and not both belong to one party; all others are local, on exclusive-or shares as they lie:
//!
//! | class of a wire | shares |
//! |---|---|
//! | public | every party holds the bit itself |
//! | of one party | that party holds the bit, all others hold 0 |
//! | shared | the XOR of all parties' bits |
//!
//! So `public & x` and `x & y` of one party are ANDs of each party's own words. A public wire that meets
//! another class under an XOR is first *lifted*: one party keeps it, the others take 0. A complement is one
//! party's flip. Engines whose shares are of another kind compile circuits whose inputs are all shared
//! ([`crate::entries`]): then nothing but constants is public and nothing is of one party.

use crate::{Circuit, InputBit, Lit, WireDriver};
use base::PartyId;
use std::collections::HashMap;

/// Who knows a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Public,
    Of(PartyId),
    Shared,
}

impl Class {
    fn of_input(input: &InputBit, shared: bool) -> Self {
        match input.owner {
            _ if shared => Self::Shared,
            Some(owner) => Self::Of(owner),
            None => Self::Public,
        }
    }

    /// Who flips a complement and keeps a lifted bit.
    fn holder(self) -> u8 {
        match self {
            Self::Public => EVERYBODY,
            Self::Of(party) => party.0,
            Self::Shared => 0,
        }
    }

    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Public, class) | (class, Self::Public) => class,
            (a, b) if a == b => a,
            _ => Self::Shared,
        }
    }
}

/// In place of a party: all of them.
pub const EVERYBODY: u8 = u8::MAX;
/// In place of a party: none of them.
pub const NOBODY: u8 = u8::MAX - 1;
const LATER: u32 = u32::MAX;

/// Whether `me` is meant by a party's number, [`EVERYBODY`] or [`NOBODY`].
#[must_use]
pub fn concerns(holder: u8, me: PartyId) -> bool {
    holder == me.0 || holder == EVERYBODY
}

/// A wire of the circuit, or a lifted one. Operands are earlier nodes.
#[derive(Clone, Copy)]
enum Node {
    Zero,
    Input(u32),
    Lift(u32, u8),
    Xor(u32, u32),
    /// Operands, and who complements each.
    Local(u32, u32, [u8; 2]),
    /// Operands, and which are complemented.
    Open(u32, u32, [bool; 2]),
}

impl Node {
    fn operands(self) -> impl Iterator<Item = u32> {
        let pair = match self {
            Self::Zero | Self::Input(_) => [None, None],
            Self::Lift(a, _) => [Some(a), None],
            Self::Xor(a, b) | Self::Local(a, b, _) | Self::Open(a, b, _) => [Some(a), Some(b)],
        };
        pair.into_iter().flatten()
    }

    /// Loaded when first needed, because that takes no more room than its operand.
    fn lazy(self) -> bool {
        matches!(self, Self::Zero | Self::Input(_) | Self::Lift(..))
    }
}

/// What is done with slots without talking.
#[derive(Clone, Copy, Debug)]
pub enum LocalStep {
    /// All lanes false.
    Zero {
        /// Where to.
        out: u32,
    },
    /// Loads known bits.
    Input {
        /// An index into [`Layers::inputs`].
        input: u32,
        /// Where to.
        out: u32,
    },
    /// The holder copies, the others take 0.
    Lift {
        /// From where.
        a: u32,
        /// Where to.
        out: u32,
        /// Who copies.
        holder: u8,
    },
    /// XOR.
    Xor {
        /// One operand.
        a: u32,
        /// The other.
        b: u32,
        /// Where to.
        out: u32,
    },
    /// AND of own words.
    And {
        /// One operand.
        a: u32,
        /// The other.
        b: u32,
        /// Where to.
        out: u32,
        /// Who complements which operand.
        flips: [u8; 2],
    },
}

/// An AND that takes a product of shares.
#[derive(Clone, Copy, Debug)]
pub struct AndGate {
    /// One operand.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// Where to.
    pub out: u32,
    /// Which operand is complemented: by party 0, where shares are by party.
    pub flips: [bool; 2],
}

/// A bit that the circuit reads.
#[derive(Clone, Copy, Debug)]
pub struct LayerInput {
    /// Which.
    pub input: InputBit,
    /// Whether it comes in shares.
    pub shared: bool,
}

/// A circuit as layers of flat arrays.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// The bits that the circuit reads.
    pub inputs: Vec<LayerInput>,
    /// Local work of all layers.
    pub locals: Vec<LocalStep>,
    /// ANDs of all layers.
    pub gates: Vec<AndGate>,
    /// Where the local work and the ANDs of each layer end; the last layer has no ANDs.
    pub ends: Vec<(u32, u32)>,
    /// Slot of each root, and whether it is complemented, as a gate's operand.
    pub roots: Vec<(u32, bool)>,
    slots: u32,
}

impl Layers {
    /// Compiles `circuit` down to what `roots` need. An input without owner is known to everybody.
    #[must_use]
    pub fn new(circuit: &Circuit, roots: &[Lit]) -> Self {
        Self::with_shared(circuit, roots, &|_| false)
    }

    /// As [`Layers::new`]; inputs for which `shared` says so are XOR shares of all parties, whatever their
    /// owner.
    #[must_use]
    pub fn with_shared(circuit: &Circuit, roots: &[Lit], shared: &dyn Fn(&InputBit) -> bool) -> Self {
        let mut graph = Graph::default();
        let roots = graph.read(circuit, roots, shared);
        graph.compile(roots)
    }

    /// ANDs that take a product of shares, per lane.
    #[must_use]
    pub fn and_gates(&self) -> u64 {
        self.gates.len() as u64
    }

    /// Openings one after the other: layers with ANDs.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.ends.len() as u64 - 1
    }

    /// Wires alive at once.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// ANDs per lane of each layer.
    pub fn widths(&self) -> impl Iterator<Item = u64> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&(_, end)| u64::from(end - std::mem::replace(&mut start, end)))
    }
}

/// The nodes that the roots need, with what is known of each.
#[derive(Default)]
struct Graph {
    nodes: Vec<Node>,
    classes: Vec<Class>,
    /// Openings before the node's value is there.
    levels: Vec<u32>,
    lifts: HashMap<(u32, u8), u32>,
    inputs: Vec<LayerInput>,
}

impl Graph {
    fn add(&mut self, node: Node, class: Class) -> u32 {
        let before = node.operands().map(|a| self.levels[a as usize]).max().unwrap_or(0);
        self.levels.push(before + u32::from(matches!(node, Node::Open(..))));
        self.nodes.push(node);
        self.classes.push(class);
        self.nodes.len() as u32 - 1
    }

    fn class(&self, node: u32) -> Class {
        self.classes[node as usize]
    }

    /// `node` in shares of the given class.
    fn lifted(&mut self, node: u32, class: Class) -> u32 {
        if self.class(node) != Class::Public || class == Class::Public {
            return node;
        }
        let holder = class.holder();
        if let Some(&lift) = self.lifts.get(&(node, holder)) {
            return lift;
        }
        let lift = self.add(Node::Lift(node, holder), class);
        self.lifts.insert((node, holder), lift);
        lift
    }

    fn xor(&mut self, a: u32, b: u32) -> u32 {
        if a == b {
            return self.add(Node::Zero, Class::Public);
        }
        let class = self.class(a).join(self.class(b));
        let (a, b) = (self.lifted(a, class), self.lifted(b, class));
        self.add(Node::Xor(a, b), class)
    }

    fn and(&mut self, [a, b]: [u32; 2], flips: [bool; 2]) -> u32 {
        let classes = [a, b].map(|node| self.class(node));
        let local =
            classes.contains(&Class::Public) || classes[0] == classes[1] && classes[0] != Class::Shared;
        if !local {
            return self.add(Node::Open(a, b, flips), Class::Shared);
        }
        let who = |i: usize| if flips[i] { classes[i].holder() } else { NOBODY };
        self.add(Node::Local(a, b, [who(0), who(1)]), classes[0].join(classes[1]))
    }

    /// Reads what the roots need; gives the roots as nodes in shares of all parties.
    fn read(
        &mut self,
        circuit: &Circuit,
        roots: &[Lit],
        shared: &dyn Fn(&InputBit) -> bool,
    ) -> Vec<(u32, bool)> {
        let wanted = circuit.wanted(roots);
        let mut place = vec![LATER; circuit.wires.len()];
        for (index, wire) in circuit.wires.iter().enumerate().filter(|(i, _)| wanted[*i]) {
            place[index] = match *wire {
                WireDriver::False => self.add(Node::Zero, Class::Public),
                WireDriver::Input(input) => {
                    let shared = shared(&input);
                    self.inputs.push(LayerInput { input, shared });
                    let index = self.inputs.len() as u32 - 1;
                    self.add(Node::Input(index), Class::of_input(&input, shared))
                }
                WireDriver::Xor(a, b) => self.xor(place[a as usize], place[b as usize]),
                WireDriver::And(a, b) => self.and([a, b].map(|l| place[l.wire()]), [a, b].map(Lit::inverted)),
            };
        }
        let root = |lit: &Lit| (self.lifted(place[lit.wire()], Class::Shared), lit.inverted());
        roots.iter().map(root).collect()
    }

    /// The layer in which each node is worked off.
    fn phases(&self, depth: u32, roots: &[(u32, bool)]) -> Vec<u32> {
        let mut phases = vec![LATER; self.nodes.len()];
        for &(root, _) in roots {
            phases[root as usize] = depth;
        }
        for index in (0..self.nodes.len()).rev() {
            let node = self.nodes[index];
            if !node.lazy() {
                let before = node.operands().map(|a| self.levels[a as usize]).max();
                phases[index] = before.unwrap_or(0);
            }
            for operand in node.operands().map(|a| a as usize) {
                // Overwritten above when the operand is not lazy.
                phases[operand] = phases[operand].min(phases[index]);
            }
        }
        phases
    }

    fn compile(self, roots: Vec<(u32, bool)>) -> Layers {
        let depth = self.levels.iter().copied().max().unwrap_or(0);
        let phases = self.phases(depth, &roots);
        let open = |node: u32| matches!(self.nodes[node as usize], Node::Open(..));
        // In order of layer, local work first; stable, so operands stay before their uses.
        let mut order: Vec<u32> =
            (0..self.nodes.len() as u32).filter(|&i| phases[i as usize] != LATER).collect();
        order.sort_by_key(|&node| (phases[node as usize], open(node)));
        let mut slots = Slots::new(&self.nodes, &order, &roots);
        let mut layers = Layers::default();
        let mut rest = order.as_slice();
        for phase in 0..=depth {
            let (layer, after) = rest.split_at(rest.partition_point(|&n| phases[n as usize] <= phase));
            let (locals, gates) = layer.split_at(layer.partition_point(|&n| !open(n)));
            for &index in locals {
                let node = self.nodes[index as usize];
                let out = slots.take(index);
                node.operands().for_each(|a| slots.release(a));
                layers.locals.push(slots.local(node, out));
            }
            slots.gates(&self.nodes, gates, &mut layers.gates);
            layers.ends.push((layers.locals.len() as u32, layers.gates.len() as u32));
            rest = after;
        }
        layers.roots = roots.iter().map(|&(node, flip)| (slots.place[node as usize], flip)).collect();
        layers.slots = slots.count;
        layers.inputs = self.inputs;
        layers
    }
}

/// Slots given to nodes and taken back after the last use.
struct Slots {
    place: Vec<u32>,
    uses: Vec<u32>,
    free: Vec<u32>,
    count: u32,
}

impl Slots {
    fn new(nodes: &[Node], order: &[u32], roots: &[(u32, bool)]) -> Self {
        let mut uses = vec![0; nodes.len()];
        let operands = order.iter().flat_map(|&node| nodes[node as usize].operands());
        operands.chain(roots.iter().map(|r| r.0)).for_each(|node| uses[node as usize] += 1);
        Self { place: vec![LATER; nodes.len()], uses, free: Vec::new(), count: 0 }
    }

    fn take(&mut self, node: u32) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.count += 1;
            self.count - 1
        });
        self.place[node as usize] = slot;
        if self.uses[node as usize] == 0 {
            self.free.push(slot);
        }
        slot
    }

    fn release(&mut self, node: u32) {
        let uses = &mut self.uses[node as usize];
        *uses -= 1;
        if *uses == 0 {
            self.free.push(self.place[node as usize]);
        }
    }

    fn local(&self, node: Node, out: u32) -> LocalStep {
        let at = |node: u32| self.place[node as usize];
        match node {
            Node::Zero => LocalStep::Zero { out },
            Node::Input(input) => LocalStep::Input { input, out },
            Node::Lift(a, holder) => LocalStep::Lift { a: at(a), out, holder },
            Node::Xor(a, b) => LocalStep::Xor { a: at(a), b: at(b), out },
            Node::Local(a, b, flips) => LocalStep::And { a: at(a), b: at(b), out, flips },
            Node::Open(..) => unreachable!("ANDs that open come after the local work"),
        }
    }

    /// The ANDs of one layer. All operands are read before the first result is written.
    fn gates(&mut self, nodes: &[Node], layer: &[u32], gates: &mut Vec<AndGate>) {
        let first = gates.len();
        for &index in layer {
            let Node::Open(a, b, flips) = nodes[index as usize] else { continue };
            let at = |node: u32| self.place[node as usize];
            gates.push(AndGate { a: at(a), b: at(b), out: LATER, flips });
        }
        for &index in layer {
            nodes[index as usize].operands().for_each(|a| self.release(a));
        }
        for (gate, &index) in gates[first..].iter_mut().zip(layer) {
            gate.out = self.take(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CircuitBuilder;

    fn input(g: &mut CircuitBuilder, owner: Option<u8>, word: u32) -> Lit {
        g.input(InputBit { owner: owner.map(PartyId), word, bit: 0 })
    }

    #[test]
    fn only_ands_across_parties_take_triples() {
        let mut g = CircuitBuilder::default();
        let [p, q] = [None, None].map(|o| input(&mut g, o, 0)).map(|l| l);
        let (a, b) = (input(&mut g, Some(0), 1), input(&mut g, Some(0), 2));
        let c = input(&mut g, Some(1), 3);
        let public = g.and(!p, q);
        let own = g.and(a, !b);
        let scaled = g.and(p, c);
        let mixed = g.xor(own, p);
        let still_own = g.and(mixed, a);
        let across = g.and(still_own, c);
        let roots = [public, own, scaled, across];
        let layers = Layers::new(&g.finish(), &roots);
        assert_eq!((layers.and_gates(), layers.depth()), (1, 1));
    }

    #[test]
    fn memory_is_the_live_width() {
        let mut g = CircuitBuilder::default();
        let mut chain = input(&mut g, Some(0), 0);
        for word in 1..1000 {
            let next = input(&mut g, Some((word % 2) as u8), word);
            chain = g.and(chain, next);
        }
        let layers = Layers::new(&g.finish(), &[chain]);
        assert!(layers.slots() <= 4, "{} slots", layers.slots());
        assert_eq!(layers.depth(), layers.and_gates());
    }

    #[test]
    fn what_no_root_needs_is_left_out() {
        let mut g = CircuitBuilder::default();
        let (a, b) = (input(&mut g, Some(0), 0), input(&mut g, Some(1), 1));
        let _unused = g.and(a, b);
        let sum = g.xor(a, b);
        let layers = Layers::new(&g.finish(), &[sum, Lit::TRUE]);
        assert_eq!((layers.and_gates(), layers.depth(), layers.widths().count()), (0, 0, 1));
    }
}
