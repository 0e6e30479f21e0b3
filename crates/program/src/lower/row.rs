//! The row section: a circuit, masked values, and where each fold's additive shares come from.

use super::bits::SectionGates;
use super::joined::{Entering, GapTerm, JoinedWord as Entered, NodeHolder, gap_bytes};
use crate::graph::Lookup;
use crate::{Holder, NodeFacts, NodeId, Op, Program, RowFold, Sharing, ValueType};
use base::PartyId;
use circuits::gadgets::LitWord;
use circuits::{Circuit, CircuitBuilder, InputBit, Lit, WireDriver};
use std::collections::HashMap;

/// What one row costs and yields, for a given sender. Its nodes are row nodes; those of a
/// [`super::JoinedPlan`] are words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowPlan {
    /// The party that adds public values, and that answers masks where only one party can (garbler of `yao`).
    pub sender: PartyId,
    /// Gates; the inputs' words are row nodes.
    pub circuit: Circuit,
    /// Wires of the circuit that can be had by comparing digits instead of by gates; [`lower_pair`] only.
    pub compares: Vec<Compare>,
    /// Bytes of each temporary: additive shares modulo 2^(8 bytes), one per row.
    pub temps: Vec<u8>,
    /// What to do once the wires are known, in order.
    pub steps: Vec<RowStep>,
    /// Where each fold's total comes from.
    pub folds: Vec<FoldPlan>,
}

/// Comparisons of one party's words with a word of the other: `less[i]` is `[bound < keys[i]]`, unsigned. The
/// circuit computes the same bits by gates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The party that alone knows the bound; the other one alone knows the keys.
    pub chooser: PartyId,
    /// The bound.
    pub bound: NodeId,
    /// The keys.
    pub keys: Vec<NodeId>,
    /// Bits of bound and keys.
    pub width: u8,
    /// The results, one per key.
    pub less: Vec<Lit>,
}

/// One step on temporaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowStep {
    /// `temp += value`, by the party that knows the value (public values: the sender).
    Known {
        /// The temporary.
        temp: u32,
        /// Who adds.
        party: PartyId,
        /// The row node, as a number of its type.
        node: NodeId,
    },
    /// `temp += other`, by both parties on their shares.
    Add {
        /// The temporary.
        temp: u32,
        /// The other one, no narrower.
        other: u32,
    },
    /// `temp += share^2`, by both parties on their own shares of `other` ([`super::lower_joined`] only).
    Square {
        /// The temporary.
        temp: u32,
        /// The other one, no narrower.
        other: u32,
    },
    /// Products of one secret bit with several values.
    Mask(Mask),
}

/// `temp += selector * value` for each field: one masked message per field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Who answers: it knows the values.
    pub sender: PartyId,
    /// The secret bit.
    pub selector: Lit,
    /// What it multiplies.
    pub fields: Vec<MaskField>,
}

/// One product of a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskField {
    /// The value.
    pub source: MaskSource,
    /// Temporary that receives the product.
    pub temp: u32,
}

/// What a mask multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskSource {
    /// A row node that the sender knows.
    Node(NodeId),
    /// A public number, two's complement.
    Constant(u128),
    /// A temporary: the receiver knows the selector and multiplies its own share, the mask covers the
    /// sender's.
    Temp(u32),
    /// The sender's own share of a temporary; another mask covers the other party's (shared bits only).
    Own(u32),
    /// The same times 2^`by` ([`super::lower_joined`] only).
    Shifted {
        /// The temporary.
        temp: u32,
        /// The power of two.
        by: u8,
    },
}

/// Where a fold's total comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldPlan {
    /// One party knows every term: it sums alone. `None`: everybody does.
    Alone(Option<PartyId>),
    /// Both sum their shares of a temporary.
    Shared(u32),
}

impl RowPlan {
    /// Bytes of a temporary as a power of two modulus: `2^(8 bytes)`.
    #[must_use]
    pub fn modulus_mask(&self, temp: u32) -> u128 {
        u128::MAX >> (128 - 8 * u32::from(self.temps[temp as usize]))
    }

    /// Row nodes that `party` computes in the clear: its input bits, masked values, and sums of its own.
    #[must_use]
    pub fn clear_roots(&self, program: &Program, party: PartyId) -> Vec<NodeId> {
        let mut roots = Vec::new();
        for wire in &self.circuit.wires {
            if let WireDriver::Input(i) = wire
                && i.owner.is_none_or(|o| o == party)
            {
                roots.push(NodeId(i.word));
            }
        }
        for step in &self.steps {
            match step {
                RowStep::Known { party: p, node, .. } if *p == party => roots.push(*node),
                RowStep::Mask(mask) if party == mask.sender => {
                    roots.extend(mask.fields.iter().filter_map(|f| match f.source {
                        MaskSource::Node(node) => Some(node),
                        _ => None,
                    }));
                }
                _ => {}
            }
        }
        for compare in &self.compares {
            if party == compare.chooser {
                roots.push(compare.bound);
            } else {
                roots.extend(&compare.keys);
            }
        }
        for (plan, fold) in self.folds.iter().zip(&program.folds) {
            if matches!(plan, FoldPlan::Alone(p) if p.is_none_or(|p| p == party)) {
                roots.push(fold.value());
            }
        }
        roots.sort_unstable();
        roots.dedup();
        roots
    }
}

/// Lowers the row section of a two-party program of sums for garbling by `sender`.
#[must_use]
pub fn lower_row(program: &Program, sender: PartyId) -> RowPlan {
    lower(program, &program.row_facts(), Style::Garbled(sender), None).1
}

/// Lowers the row section of a two-party program of sums for shared bits. [`super::factor`] first makes it
/// cheaper.
#[must_use]
pub fn lower_pair(program: &Program) -> RowPlan {
    lower(program, &program.row_facts(), Style::Shared, None).1
}

/// Lowers it for rows that enter as shares.
pub(super) fn lower_entered<'a>(
    program: &'a Program,
    facts: &'a [NodeFacts],
    entering: Entering<'a>,
) -> (Entering<'a>, RowPlan) {
    let (entering, plan) = lower(program, facts, Style::Shared, Some(entering));
    (entering.expect("what goes in comes out"), plan)
}

/// How an engine holds secret bits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// As labels of this garbler, which alone can multiply them with values that it knows.
    Garbled(PartyId),
    /// As exclusive-or shares, which either party can multiply with what it knows.
    Shared,
}

fn lower<'a>(
    program: &'a Program,
    facts: &'a [NodeFacts],
    style: Style,
    entering: Option<Entering<'a>>,
) -> (Option<Entering<'a>>, RowPlan) {
    super::count();
    debug_assert_eq!(program.sharing(), Sharing::Additive, "engines check what they can run");
    let sender = if let Style::Garbled(sender) = style { sender } else { PartyId(0) };
    let mut lowering = Lowering {
        program,
        facts,
        style,
        sender,
        bits: SectionGates::new(&program.row),
        temps: Vec::new(),
        levels: Vec::new(),
        steps: Vec::new(),
        known: HashMap::new(),
        cheap: Vec::with_capacity(program.row.nodes.len()),
        widest: Vec::new(),
        waits: Vec::new(),
    };
    lowering.bits.owners = (style == Style::Shared && entering.is_none()).then_some(facts);
    lowering.bits.joined = entering;
    lowering.find_cheap();
    lowering.find_widest();
    let folds = program.folds.iter().map(|fold| lowering.fold(fold)).collect();
    let Lowering { bits, temps, steps, .. } = lowering;
    let steps = gather(steps);
    let plan = RowPlan { sender, circuit: bits.gates.finish(), compares: bits.compares, temps, steps, folds };
    (bits.joined, plan)
}

struct Lowering<'a> {
    program: &'a Program,
    facts: &'a [NodeFacts],
    style: Style,
    sender: PartyId,
    bits: SectionGates<'a>,
    temps: Vec<u8>,
    /// Level of each temporary: masks over temporaries come after everything that fills them.
    levels: Vec<u32>,
    steps: Vec<(u32, RowStep)>,
    /// Temporaries by node and bytes.
    known: HashMap<(NodeId, u8), u32>,
    /// By node: whether its shares cost masked values only.
    cheap: Vec<bool>,
    /// By node: the most bytes in which its shares are wanted, where a node is shared once for all its uses.
    widest: Vec<u8>,
    /// By wire: the first level at which it can select.
    waits: Vec<u32>,
}

/// How a node becomes additive shares.
enum Way {
    /// One party knows it (a public one: the sender).
    Known(PartyId),
    /// It enters as shares.
    Entered,
    /// The sum of other nodes' shares.
    Sum([Option<NodeId>; 2]),
    /// A secret bit times a value that the sender knows.
    Mask(NodeId, NodeId),
    /// A bit that the receiver knows times shares.
    MaskShares(NodeId, NodeId),
    /// The second node where the first is set, else the third; shared bits only.
    Select(NodeId, NodeId, NodeId),
    /// A product per value: under garbling all values are known to the sender.
    Lookup,
    /// The node, or the constant where that is less; rows joined to shares only, as all that follow but the
    /// last.
    Clamp(NodeId, u128),
    /// A comparison of numbers.
    Less(NodeId, NodeId),
    /// The square of a number.
    Square(NodeId),
    /// From its bits.
    Bits,
}

impl Lowering<'_> {
    fn fold(&mut self, fold: &RowFold) -> FoldPlan {
        let owners = self.facts[fold.value().index()].owners;
        if owners.is_public() {
            return FoldPlan::Alone(None);
        }
        if let Some(party) = owners.only() {
            return FoldPlan::Alone(Some(party));
        }
        let bytes = fold.ty().width.div_ceil(8);
        FoldPlan::Shared(self.shares(fold.value(), bytes))
    }

    fn ty(&self, id: NodeId) -> ValueType {
        self.program.row.ty(id)
    }

    /// Whether the sender can compute a node alone.
    fn sender_knows(&self, id: NodeId) -> bool {
        self.facts[id.index()].owners.within(self.sender)
    }

    fn temp(&mut self, bytes: u8) -> u32 {
        self.temps.push(bytes);
        self.levels.push(0);
        self.temps.len() as u32 - 1
    }

    fn push(&mut self, level: u32, temp: u32, step: RowStep) {
        let of = &mut self.levels[temp as usize];
        *of = level.max(*of);
        self.steps.push((level, step));
    }

    /// Who holds a node.
    fn held(&self, id: NodeId) -> NodeHolder {
        let owners = self.facts[id.index()].owners;
        match (&self.bits.joined, owners.only()) {
            (Some(joined), _) => joined.held(id),
            _ if owners.is_public() => NodeHolder::Public,
            (None, Some(party)) => NodeHolder::Alone(party),
            (None, None) => NodeHolder::Joint,
        }
    }

    /// Whether a node is shared before it can be multiplied.
    fn is_unknown(&self, id: NodeId) -> bool {
        !matches!(self.held(id), NodeHolder::Public | NodeHolder::Alone(_))
    }

    /// What a plan calls a node; of one that enters as shares, its numbers of so many bytes.
    fn name(&mut self, id: NodeId, bytes: u8) -> NodeId {
        let held = self.held(id);
        match &mut self.bits.joined {
            None => id,
            Some(joined) if held == NodeHolder::Public => joined.word(Entered::Constant(joined.constant(id))),
            Some(joined) => joined.number(id, bytes),
        }
    }

    /// The bytes in which a node is shared for a use of so many.
    fn bytes(&self, id: NodeId, bytes: u8) -> u8 {
        self.widest.get(id.index()).copied().unwrap_or(0).max(bytes)
    }

    /// The temporary of a node that is shared already.
    fn shared(&self, id: NodeId, bytes: u8) -> Option<u32> {
        self.known.get(&(id, self.bytes(id, bytes))).copied()
    }

    /// The temporary of a part of what is being filled.
    fn part(&self, id: NodeId, bytes: u8) -> u32 {
        self.shared(id, bytes).expect("parts are shared first")
    }

    /// A temporary with additive shares of a node's exact value.
    fn shares(&mut self, id: NodeId, bytes: u8) -> u32 {
        // An explicit stack: a program may be a chain of a million nodes.
        let mut stack = vec![id];
        while let Some(&next) = stack.last() {
            if self.shared(next, bytes).is_some() {
                stack.pop();
                continue;
            }
            let way = self.way(next);
            let waiting = stack.len();
            stack.extend(
                self.parts(next, &way).into_iter().filter(|part| self.shared(*part, bytes).is_none()),
            );
            if stack.len() == waiting {
                stack.pop();
                let wide = self.bytes(next, bytes);
                let temp = self.fill(next, &way, wide);
                self.known.insert((next, wide), temp);
            }
        }
        self.part(id, bytes)
    }

    /// How a node becomes additive shares, the cheapest way first.
    fn way(&self, id: NodeId) -> Way {
        match self.held(id) {
            NodeHolder::Public => return Way::Known(self.sender),
            NodeHolder::Alone(party) => return Way::Known(party),
            NodeHolder::Shared => return Way::Entered,
            NodeHolder::Column | NodeHolder::Joint => {}
        }
        let joined = self.bits.joined.is_some();
        match &self.program.row.node(id).op {
            Op::Cast(a) if self.keeps_value(*a, id) => Way::Sum([Some(*a), None]),
            Op::Add(a, b) if self.cannot_wrap(id, *a, *b) => Way::Sum([Some(*a), Some(*b)]),
            Op::Select(c, a, b) if self.style == Style::Shared => Way::Select(*c, *a, *b),
            Op::Lookup(_) if self.style == Style::Shared => Way::Lookup,
            Op::Clamp(a, cap) if joined && self.high(*a).is_some_and(|high| high <= *cap) => {
                Way::Sum([Some(*a), None])
            }
            Op::Clamp(a, cap) if joined && self.cheap[a.index()] && self.ty(*a).width < 128 => {
                Way::Clamp(*a, *cap)
            }
            Op::Lt(a, b) if joined && self.is_gap(*a, *b) => Way::Less(*a, *b),
            Op::Mul(a, b) if joined && a == b && self.cheap[a.index()] && self.has_square(id, *a) => {
                Way::Square(*a)
            }
            Op::Select(c, a, b) if self.program.row.node(*b).op == Op::Const(0) => {
                if self.sender_knows(*a) {
                    return Way::Mask(*c, *a);
                }
                let receivers = self.facts[c.index()].owners.only().is_some_and(|p| p != self.sender);
                if receivers && self.cheap[a.index()] { Way::MaskShares(*c, *a) } else { Way::Bits }
            }
            Op::Lookup(l) if l.values.iter().all(|v| self.sender_knows(*v)) => Way::Lookup,
            _ => Way::Bits,
        }
    }

    /// Whether two words, not both entered, are compared as numbers.
    fn is_gap(&self, a: NodeId, b: NodeId) -> bool {
        let numbers = [a, b].iter().all(|id| self.cheap[id.index()]);
        numbers && self.ty(a).width < 128 && [a, b].iter().any(|id| self.held(*id) == NodeHolder::Joint)
    }

    /// Whether the square of `a` does not wrap in the type of `id`.
    fn has_square(&self, id: NodeId, a: NodeId) -> bool {
        self.high(a)
            .and_then(|high| high.checked_mul(high))
            .is_some_and(|square| square <= self.ty(id).mask())
    }

    /// The largest value of an unsigned node, where it is known.
    fn high(&self, id: NodeId) -> Option<u128> {
        let bounds = self.facts[id.index()].bounds.filter(|_| !self.ty(id).signed)?;
        u128::try_from(bounds.high).ok()
    }

    /// Nodes that must be shared before a node is.
    fn parts(&self, id: NodeId, way: &Way) -> Vec<NodeId> {
        match (way, &self.program.row.node(id).op) {
            (Way::Sum(parts), _) => parts.iter().flatten().copied().collect(),
            (Way::MaskShares(_, a) | Way::Clamp(a, _) | Way::Square(a), _) => vec![*a],
            (Way::Select(_, a, b) | Way::Less(a, b), _) => {
                [*a, *b].into_iter().filter(|part| self.is_unknown(*part)).collect()
            }
            (Way::Lookup, Op::Lookup(l)) => {
                l.values.iter().copied().filter(|part| self.is_unknown(*part)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A new temporary with shares of a node whose parts are shared already.
    fn fill(&mut self, id: NodeId, way: &Way, bytes: u8) -> u32 {
        let temp = self.temp(bytes);
        match way {
            Way::Known(party) => {
                let node = self.name(id, bytes);
                self.push(0, temp, RowStep::Known { temp, party: *party, node });
            }
            Way::Entered => {
                let node = self.name(id, bytes);
                for party in [PartyId(0), PartyId(1)] {
                    self.push(0, temp, RowStep::Known { temp, party, node });
                }
            }
            Way::Sum(parts) => {
                for part in parts.iter().flatten() {
                    let other = self.part(*part, bytes);
                    self.push(self.levels[other as usize], temp, RowStep::Add { temp, other });
                }
            }
            Way::Mask(c, a) => {
                let selector = self.word(*c)[0];
                self.mask(self.sender, 0, selector, MaskSource::Node(*a), temp);
            }
            Way::MaskShares(c, a) => {
                let selector = self.word(*c)[0];
                let source = self.part(*a, bytes);
                let level = self.levels[source as usize] + 1;
                self.mask(self.sender, level, selector, MaskSource::Temp(source), temp);
            }
            Way::Select(c, a, b) => {
                let selector = self.word(*c)[0];
                self.product(selector, *a, temp, bytes);
                self.product(!selector, *b, temp, bytes);
            }
            Way::Lookup => match &self.program.row.node(id).op {
                Op::Lookup(l) => self.lookup(temp, l, bytes),
                _ => unreachable!("only lookups are shared as lookups"),
            },
            Way::Clamp(a, cap) => self.clamp(temp, *a, *cap, bytes),
            Way::Less(a, b) => {
                let width = self.gap_width(*a, *b);
                let terms = [*a, *b].map(|id| self.term(id, bytes.max(gap_bytes(width))));
                let less = self.gap(terms, width);
                self.mask(self.sender, 0, less, MaskSource::Constant(1), temp);
            }
            Way::Square(a) => self.square(temp, self.part(*a, bytes)),
            Way::Bits => self.weigh_bits(temp, id),
        }
        temp
    }

    /// `temp = min(a, cap)`: cap + [a <= cap] (a - cap).
    fn clamp(&mut self, temp: u32, a: NodeId, cap: u128, bytes: u8) {
        let source = self.part(a, bytes);
        let over = self.gap([GapTerm::Constant(cap), GapTerm::Temp(source)], self.clamp_width(a, cap));
        let joined = self.bits.joined.as_mut().expect("clamped as numbers where rows are joined");
        let node = joined.word(Entered::Constant(cap));
        self.push(0, temp, RowStep::Known { temp, party: self.sender, node });
        self.mask(self.sender, 0, !over, MaskSource::Constant(cap.wrapping_neg()), temp);
        self.product_of_shares(!over, source, temp);
    }

    /// `temp = x^2 = x_0^2 + x_1^2 + 2 x_0 x_1`, the last bit by bit of x_0.
    fn square(&mut self, temp: u32, other: u32) {
        let level = self.levels[other as usize] + 1;
        self.push(level, temp, RowStep::Square { temp, other });
        let (chooser, bits) = (PartyId(0), 8 * u16::from(self.temps[temp as usize]));
        for bit in 0..bits - 1 {
            let joined = self.bits.joined.as_mut().expect("squared as numbers where rows are joined");
            let word = joined.word(Entered::Share(other)).0;
            let selector = self.bits.gates.input(InputBit { owner: Some(chooser), word, bit });
            let source = MaskSource::Shifted { temp: other, by: bit as u8 + 1 };
            self.mask(chooser.other(), level, selector, source, temp);
        }
    }

    /// A number of a comparison; what is unknown is shared already.
    fn term(&mut self, id: NodeId, bytes: u8) -> GapTerm {
        match (&self.bits.joined, self.held(id)) {
            (Some(joined), NodeHolder::Public) => GapTerm::Constant(joined.constant(id)),
            _ => GapTerm::Temp(self.shares(id, bytes)),
        }
    }

    /// `[first < second]`.
    fn gap(&mut self, terms: [GapTerm; 2], width: u8) -> Lit {
        let SectionGates { joined, gates, compares, .. } = &mut self.bits;
        joined
            .as_mut()
            .expect("numbers are compared where rows are joined")
            .gap(gates, compares, terms, width)
    }

    /// Bits of the numbers of [`Way::Less`].
    fn gap_width(&self, a: NodeId, b: NodeId) -> u8 {
        match (self.high(a), self.high(b)) {
            (Some(a), Some(b)) => bit_width(a.max(b)),
            _ => self.ty(a).width,
        }
    }

    /// Bits of the numbers of [`Way::Clamp`].
    fn clamp_width(&self, a: NodeId, cap: u128) -> u8 {
        bit_width(self.high(a).unwrap_or(self.ty(a).mask()).max(cap))
    }

    /// Where rows are joined to shares: how wide each node is shared, since every width costs its own
    /// products.
    fn find_widest(&mut self) {
        if self.bits.joined.is_none() {
            return;
        }
        let mut widest = vec![0u8; self.program.row.nodes.len()];
        for fold in &self.program.folds {
            let at = &mut widest[fold.value().index()];
            *at = (*at).max(fold.ty().width.div_ceil(8));
        }
        for id in self.program.row.ids().rev() {
            let (way, bytes) = (self.way(id), widest[id.index()]);
            if bytes == 0 {
                continue;
            }
            let room = match way {
                Way::Clamp(a, cap) => gap_bytes(self.clamp_width(a, cap)),
                Way::Less(a, b) => gap_bytes(self.gap_width(a, b)),
                _ => 0,
            };
            let parts = self.parts(id, &way);
            parts.into_iter().for_each(|p| widest[p.index()] = widest[p.index()].max(bytes).max(room));
        }
        self.widest = widest;
    }

    /// Whether sharing each node needs masked values only, no bit-by-bit conversion. In order, so that a node
    /// costs its operands' lookups and no walk.
    fn find_cheap(&mut self) {
        for id in self.program.row.ids() {
            let owners = self.facts[id.index()].owners;
            let cheap = |a: NodeId| self.cheap[a.index()];
            let joined = self.bits.joined.is_some();
            let is = owners.is_public()
                || owners.only().is_some()
                || match &self.program.row.node(id).op {
                    Op::Lookup(l) if joined => l.values.iter().all(|v| cheap(*v)),
                    Op::Select(_, a, b) if joined => cheap(*a) && cheap(*b),
                    Op::Clamp(a, _) => joined && cheap(*a),
                    Op::Mul(a, b) => joined && a == b && cheap(*a) && self.has_square(id, *a),
                    Op::Lookup(l) => l.values.iter().all(|v| self.sender_knows(*v)),
                    Op::Cast(a) => self.keeps_value(*a, id) && cheap(*a),
                    Op::Add(a, b) => self.cannot_wrap(id, *a, *b) && cheap(*a) && cheap(*b),
                    Op::Select(_, a, b) => {
                        self.program.row.node(*b).op == Op::Const(0) && (self.sender_knows(*a) || cheap(*a))
                    }
                    _ => false,
                };
            self.cheap.push(is);
        }
    }

    fn lookup(&mut self, temp: u32, l: &Lookup, bytes: u8) {
        if !self.bits.is_compared(l) {
            let operands = [l.after].into_iter().chain(l.until).chain(l.keys.iter().copied());
            operands.for_each(|id| drop(self.word(id)));
        }
        let selectors = self.bits.selectors(l);
        for (selector, value) in selectors.into_iter().zip(&l.values) {
            self.product(selector, *value, temp, bytes);
        }
    }

    /// Adds `selector * node` to a temporary: by who knows the node, or by both out of their shares of it.
    fn product(&mut self, selector: Lit, node: NodeId, temp: u32, bytes: u8) {
        match self.program.row.node(node).op {
            Op::Const(0) => return,
            Op::Const(value) => {
                let value = self.ty(node).to_signed(value) as u128;
                return self.mask(self.sender, 0, selector, MaskSource::Constant(value), temp);
            }
            _ => {}
        }
        let sender = match self.held(node) {
            NodeHolder::Public => self.sender,
            NodeHolder::Alone(party) => party,
            _ => return self.product_of_shares(selector, self.part(node, bytes), temp),
        };
        let node = self.name(node, bytes);
        self.mask(sender, 0, selector, MaskSource::Node(node), temp);
    }

    /// Adds `selector * shared` to a temporary, by both out of their shares.
    fn product_of_shares(&mut self, selector: Lit, shared: u32, temp: u32) {
        let level = self.levels[shared as usize] + 1;
        for party in [self.sender, self.sender.other()] {
            self.mask(party, level, selector, MaskSource::Own(shared), temp);
        }
    }

    /// Shares of every bit, weighted: a mask with a public power of two each.
    fn weigh_bits(&mut self, temp: u32, id: NodeId) {
        let signed = self.ty(id).signed;
        let word = self.word(id);
        let top = word.len() - 1;
        for (i, bit) in word.into_iter().enumerate() {
            let power = 1u128 << i;
            let weight = if signed && i == top { power.wrapping_neg() } else { power };
            self.mask(self.sender, 0, bit, MaskSource::Constant(weight), temp);
        }
    }

    fn mask(&mut self, sender: PartyId, level: u32, selector: Lit, source: MaskSource, temp: u32) {
        if selector == Lit::FALSE {
            return;
        }
        let level = self.wait(selector).max(level);
        let fields = vec![MaskField { source, temp }];
        self.push(level, temp, RowStep::Mask(Mask { sender, selector, fields }));
    }

    /// The first level at which a bit can select: after the temporaries that it is computed from.
    fn wait(&mut self, selector: Lit) -> u32 {
        let Some(joined) = &self.bits.joined else { return 0 };
        for wire in self.waits.len()..self.bits.gates.wires() {
            let of = |wire: usize| self.waits[wire];
            self.waits.push(match self.bits.gates.get(wire) {
                WireDriver::False => 0,
                WireDriver::Input(i) => {
                    joined.waits_for(i.word).map(|t| self.levels[t as usize] + 1).max().unwrap_or(0)
                }
                WireDriver::Xor(a, b) => of(*a as usize).max(of(*b as usize)),
                WireDriver::And(a, b) => of(a.wire()).max(of(b.wire())),
            });
        }
        self.waits[selector.wire()]
    }

    fn keeps_value(&self, from: NodeId, to: NodeId) -> bool {
        let (a, b) = (self.ty(from), self.ty(to));
        let fits = self.high(from).is_some_and(|high| high <= b.max());
        fits || (a.signed == b.signed && a.width <= b.width)
    }

    fn cannot_wrap(&self, id: NodeId, a: NodeId, b: NodeId) -> bool {
        let sum = self.high(a).zip(self.high(b)).and_then(|(x, y)| x.checked_add(y));
        sum.is_some_and(|s| s <= self.ty(id).mask())
    }

    fn word(&mut self, id: NodeId) -> LitWord {
        let (facts, section) = (self.facts, &self.program.row);
        let mut leaf = |gates: &mut CircuitBuilder, id: NodeId| -> Option<LitWord> {
            let owners = facts[id.index()].owners;
            let constant = matches!(section.node(id).op, Op::Const(_));
            let width = section.ty(id).width;
            let enter = |gates: &mut CircuitBuilder, owner: Option<PartyId>| -> LitWord {
                (0..width.into()).map(|bit| gates.input(InputBit { owner, word: id.0, bit })).collect()
            };
            if let Op::Column(c) = section.node(id).op
                && self.program.columns[c as usize].holder == Holder::Shared
            {
                let parts = [0, 1].map(|p| enter(gates, Some(PartyId(p))));
                return Some(parts[0].iter().zip(&parts[1]).map(|(a, b)| gates.xor(*a, *b)).collect());
            }
            if constant || !(owners.is_public() || owners.only().is_some()) {
                return None;
            }
            Some(enter(gates, owners.only()))
        };
        self.bits.word(id, &mut leaf)
    }
}

/// Bits of a number, at least 1.
fn bit_width(x: u128) -> u8 {
    (128 - x.leading_zeros()).max(1) as u8
}

/// Orders steps by level and joins masks of one selector, so that one pad expansion serves all its fields.
fn gather(mut steps: Vec<(u32, RowStep)>) -> Vec<RowStep> {
    // Within a level: known values and masks first, then sums of temporaries in the order they were found.
    steps.sort_by_key(|(level, step)| (*level, matches!(step, RowStep::Add { .. })));
    let mut out: Vec<RowStep> = Vec::with_capacity(steps.len());
    let mut place: HashMap<(u32, Lit, PartyId), usize> = HashMap::new();
    for (level, step) in steps {
        match step {
            RowStep::Mask(mask) => match place.get(&(level, mask.selector, mask.sender)) {
                Some(at) => match &mut out[*at] {
                    RowStep::Mask(first) => first.fields.extend(mask.fields),
                    _ => unreachable!("places hold masks"),
                },
                None => {
                    place.insert((level, mask.selector, mask.sender), out.len());
                    out.push(RowStep::Mask(mask));
                }
            },
            step => out.push(step),
        }
    }
    out
}
