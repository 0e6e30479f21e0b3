//! From a row plan to rounds: which oblivious transfers, in which direction, after which.
//!
//! Everything that crosses between the parties is a correlated OT of one of three shapes, and belongs to a
//! round. What a party can do alone lies in the stage before a round. A schedule is one party's reading of
//! the plan: of the same plan both parties make the same rounds in the same order, and each resolves literals
//! to what it holds of them.

use crate::compare::{comparisons, schedule};
use base::{Error, PartyId};
use circuits::{Lit, WireDriver};
use program::NodeId;
use program::lower::{GapTerm, JoinedPlan, JoinedWord, Mask, MaskSource, RowPlan, RowStep};
use std::collections::{HashMap, HashSet};

/// Most COTs of one row in one direction. Bounds memory; a program beyond it is better garbled.
pub const COTS_PER_ROW: usize = 1 << 16;
/// Most bit products that share one pad of a block.
const FIELDS: usize = 128;
/// Most blocks of one pad of additive products: they are counted in the 8 bits of a tweak.
const PAD_WORDS: usize = 64;

/// Who holds a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum WireKind {
    /// Both hold its value.
    Public,
    /// One party holds its value, the other one's share is zero.
    Known(PartyId),
    /// Both hold exclusive-or shares.
    Shared,
}

impl WireKind {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Public, x) | (x, Self::Public) => x,
            (x, y) if x == y => x,
            _ => Self::Shared,
        }
    }

    /// Whether a party's share may be other than zero.
    fn has(self, party: PartyId) -> bool {
        !matches!(self, Self::Known(p) if p != party)
    }

    /// Who adds a constant to the shares.
    fn adds(self, party: PartyId) -> bool {
        match self {
            Self::Public => true,
            Self::Known(p) => p == party,
            Self::Shared => party.0 == 0,
        }
    }
}

/// This party's share of a literal: a slot of packed bits (slot 0: zeros), complemented or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct In {
    pub slot: u32,
    pub flip: bool,
}

/// A gate on own shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShareGate {
    pub out: u32,
    pub a: In,
    pub b: In,
    pub and: bool,
}

/// A step on own shares of temporaries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Local {
    Known { temp: u32, node: NodeId },
    Add { temp: u32, other: u32 },
    Square { temp: u32, other: u32 },
    Multiply { selector: In, source: MaskSource, temp: u32 },
}

/// What a party does alone.
#[derive(Clone, Debug)]
pub(super) enum PartyStep {
    /// Computes a word that waited for temporaries.
    Compute(NodeId),
    /// Enters bits of such a word.
    Enter(EnteredBits),
    Gate(ShareGate),
    Local(Local),
}

/// What a party does alone before a round, in order.
pub(super) type StageSteps = Vec<PartyStep>;

/// One digit of the bound of a comparison against all keys: one of 2^bits leaves, by `bits` COTs.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub sender: PartyId,
    pub bound: NodeId,
    pub keys: Vec<NodeId>,
    /// Position of the digit's lowest bit.
    pub shift: u8,
    pub bits: u8,
    /// First COT, of the sender's.
    pub cot: u32,
    /// At the receiver, slots of the digit's bits.
    pub choices: Vec<u32>,
    /// Slots of `[digit(key) > x]` for every key, then, but for the lowest digit, of `[digit(key) == x]`.
    pub outs: Vec<u32>,
}

impl Leaf {
    /// Bits of a leaf.
    pub fn width(&self) -> usize {
        self.outs.len()
    }

    /// Bytes per lane of eight of its bits, or of the last few.
    pub fn plane_bytes(&self, bits: usize) -> usize {
        (bits << self.bits).div_ceil(8)
    }

    /// Bytes per lane on the wire.
    pub fn bytes(&self) -> usize {
        (0..self.width()).step_by(8).map(|at| self.plane_bytes((self.width() - at).min(8))).sum()
    }
}

/// A shared bit times shared bits: `out ^= selector * field`, one COT in each direction that needs one.
#[derive(Clone, Debug)]
pub(super) struct Cross {
    pub selector: In,
    pub fields: Vec<(In, u32)>,
    /// The COT in which each party sends.
    pub cots: [Option<u32>; 2],
}

/// One product of a [`Product`]: its place in the pad.
#[derive(Clone, Copy, Debug)]
pub(super) struct PadSlice {
    pub source: MaskSource,
    pub temp: u32,
    pub bytes: usize,
    pub word: usize,
    pub byte: u32,
}

/// A shared bit times numbers that the sender knows, as additive shares: one COT.
#[derive(Clone, Debug)]
pub(super) struct Product {
    pub sender: PartyId,
    pub selector: In,
    pub cot: u32,
    pub slices: Vec<PadSlice>,
    /// Blocks of the pad.
    pub words: usize,
}

impl Product {
    /// Bytes per lane on the wire.
    pub fn bytes(&self) -> usize {
        self.slices.iter().map(|s| s.bytes).sum()
    }
}

/// What crosses at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    pub leaves: Vec<Leaf>,
    pub crosses: Vec<Cross>,
    pub products: Vec<Product>,
}

impl Round {
    /// COTs in which `sender` sends.
    pub fn cots(&self, sender: PartyId) -> usize {
        let leaves = self.leaves.iter().filter(|l| l.sender == sender).map(|l| usize::from(l.bits));
        let crosses = self.crosses.iter().filter(|c| c.cots[sender.index()].is_some()).count();
        let products = self.products.iter().filter(|p| p.sender == sender).count();
        leaves.sum::<usize>() + crosses + products
    }

    /// Bits per lane of `sender`'s answers.
    pub fn answer_bits(&self, sender: PartyId) -> usize {
        let leaves = self.leaves.iter().filter(|l| l.sender == sender).map(|l| 8 * l.bytes());
        let crosses = self.crosses.iter().filter(|c| c.cots[sender.index()].is_some());
        let products = self.products.iter().filter(|p| p.sender == sender).map(|p| 8 * p.bytes());
        leaves.sum::<usize>() + crosses.map(|c| c.fields.len()).sum::<usize>() + products.sum::<usize>()
    }

    /// Products of two bits.
    pub fn ands(&self) -> usize {
        self.crosses.iter().map(|c| c.fields.len()).sum()
    }
}

/// Bits of a node that this party enters.
#[derive(Clone, Debug)]
pub(super) struct EnteredBits {
    pub node: NodeId,
    /// Bit and slot.
    pub bits: Vec<(u16, u32)>,
}

/// One party's rounds of a row plan. `stages[r]` precedes `rounds[r]`; there is one stage more.
#[derive(Clone, Debug, Default)]
pub(super) struct Schedule {
    pub entries: Vec<EnteredBits>,
    pub slots: usize,
    pub stages: Vec<StageSteps>,
    pub rounds: Vec<Round>,
    /// COTs per row, by sender.
    pub cots: [usize; 2],
}

impl Schedule {
    /// One party's reading of a plan made by [`program::lower::lower_pair`], or of that of `joined`.
    ///
    /// # Errors
    /// When a row takes more than [`COTS_PER_ROW`].
    pub fn new(plan: &RowPlan, joined: Option<&JoinedPlan>, me: PartyId) -> Result<Self, Error> {
        let mut builder = ScheduleBuilder::new(plan, joined, me);
        builder.steps();
        let schedule = builder.finish();
        let most = schedule.cots[0].max(schedule.cots[1]);
        if most > COTS_PER_ROW {
            return Err(Error::limit("oblivious transfers per row", most as u64, COTS_PER_ROW as u64));
        }
        Ok(schedule)
    }
}

/// Where a wire's share lies, once it is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct WirePlace {
    pub slot: u32,
    /// To be complemented by who adds constants.
    pub flip: bool,
    /// Stage from which on it is there.
    pub level: usize,
}

pub(super) struct ScheduleBuilder<'a> {
    pub plan: &'a RowPlan,
    joined: Option<&'a JoinedPlan>,
    pub me: PartyId,
    pub kinds: Vec<WireKind>,
    places: Vec<Option<WirePlace>>,
    /// Wires that comparisons give, and which one.
    cut: HashMap<usize, usize>,
    /// Stage from which on a temporary is there.
    there: Vec<usize>,
    /// Words that waited for temporaries and are computed.
    computed: HashSet<NodeId>,
    /// Ands that cross, by round: operands and result.
    pending: Vec<Vec<(Lit, Lit, u32)>>,
    out: Schedule,
}

impl<'a> ScheduleBuilder<'a> {
    fn new(plan: &'a RowPlan, joined: Option<&'a JoinedPlan>, me: PartyId) -> Self {
        let mut kinds: Vec<WireKind> = Vec::with_capacity(plan.circuit.wires.len());
        for wire in &plan.circuit.wires {
            kinds.push(match wire {
                WireDriver::False => WireKind::Public,
                WireDriver::Input(i) => i.owner.map_or(WireKind::Public, WireKind::Known),
                WireDriver::Xor(a, b) => kinds[*a as usize].join(kinds[*b as usize]),
                WireDriver::And(a, b) => kinds[a.wire()].join(kinds[b.wire()]),
            });
        }
        let places = vec![None; kinds.len()];
        let out = Schedule { slots: 1, ..Schedule::default() };
        let (there, pending) = (vec![0; plan.temps.len()], Vec::new());
        let (cut, computed) = (HashMap::new(), HashSet::new());
        let mut builder = Self { plan, joined, me, kinds, places, cut, there, computed, pending, out };
        builder.places[0] = Some(WirePlace { slot: 0, flip: false, level: 0 });
        builder.cut = comparisons(&builder);
        builder
    }

    pub fn slot(&mut self) -> u32 {
        self.out.slots += 1;
        self.out.slots as u32 - 1
    }

    pub fn stage(&mut self, level: usize) -> &mut StageSteps {
        if self.out.stages.len() <= level {
            self.out.stages.resize_with(level + 1, StageSteps::default);
        }
        &mut self.out.stages[level]
    }

    pub fn round(&mut self, round: usize) -> &mut Round {
        if self.out.rounds.len() <= round {
            self.out.rounds.resize_with(round + 1, Round::default);
        }
        &mut self.out.rounds[round]
    }

    fn place(&self, wire: usize) -> WirePlace {
        self.places[wire].expect("wires are placed in order")
    }

    /// This party's share of a literal in a sum or product of a kind.
    fn read(&self, lit: Lit, of: WireKind) -> In {
        self.read_wire(lit.wire(), lit.inverted(), of)
    }

    fn read_wire(&self, wire: usize, inverted: bool, of: WireKind) -> In {
        let (kind, place) = (self.kinds[wire], self.place(wire));
        let adds = if kind == WireKind::Public { of.adds(self.me) } else { kind.adds(self.me) };
        if kind == WireKind::Public && !adds {
            return In { slot: 0, flip: false };
        }
        In { slot: place.slot, flip: (place.flip ^ inverted) && adds }
    }

    /// Places a wire and what it needs, and says where it is.
    fn demand(&mut self, root: usize) -> WirePlace {
        let mut stack = vec![root];
        while let Some(&at) = stack.last() {
            if self.places[at].is_none() {
                if let Some(compare) = self.cut.get(&at).copied() {
                    self.compare(compare);
                    continue;
                }
                let wire = self.plan.circuit.wires[at];
                let waiting = stack.len();
                let operands = match wire {
                    WireDriver::Xor(a, b) => vec![a as usize, b as usize],
                    WireDriver::And(a, b) => vec![a.wire(), b.wire()],
                    _ => Vec::new(),
                };
                stack.extend(operands.into_iter().filter(|w| self.places[*w].is_none()));
                if stack.len() > waiting {
                    continue;
                }
                self.places[at] = Some(self.wire(at, &wire));
            }
            stack.pop();
        }
        self.place(root)
    }

    /// Schedules a comparison and places the wires that it gives.
    fn compare(&mut self, at: usize) {
        let compare = &self.plan.compares[at];
        let (slots, level) = schedule(self, compare);
        for (less, slot) in compare.less.iter().zip(slots) {
            if self.cut.get(&less.wire()) == Some(&at) {
                self.places[less.wire()] = Some(WirePlace { slot, flip: less.inverted(), level });
            }
        }
    }

    /// Stage from which on a word is there: 0, but for what is computed from temporaries.
    pub fn ready(&self, word: NodeId) -> usize {
        let Some(joined) = self.joined else { return 0 };
        let there =
            |term: &GapTerm| if let GapTerm::Temp(temp) = term { self.there[*temp as usize] } else { 0 };
        match joined.words[word.index()] {
            JoinedWord::Low(gap) | JoinedWord::Top(gap) => {
                joined.gaps[gap as usize].terms.iter().map(there).max().unwrap_or(0)
            }
            JoinedWord::Share(temp) => self.there[temp as usize],
            JoinedWord::Entry(_) | JoinedWord::Constant(_) => 0,
        }
    }

    /// Has a word computed that waits for temporaries; says from which stage on it is there.
    pub fn compute(&mut self, word: NodeId) -> usize {
        let level = self.ready(word);
        if self.waits(word) && self.computed.insert(word) {
            self.stage(level).push(PartyStep::Compute(word));
        }
        level
    }

    fn waits(&self, word: NodeId) -> bool {
        let late = |term: &GapTerm| matches!(term, GapTerm::Temp(_));
        self.joined.is_some_and(|joined| match joined.words[word.index()] {
            JoinedWord::Low(gap) | JoinedWord::Top(gap) => joined.gaps[gap as usize].terms.iter().any(late),
            JoinedWord::Share(_) => true,
            JoinedWord::Entry(_) | JoinedWord::Constant(_) => false,
        })
    }

    fn wire(&mut self, at: usize, wire: &WireDriver) -> WirePlace {
        let kind = self.kinds[at];
        let mine = kind.has(self.me);
        if let WireDriver::Input(input) = *wire {
            let word = NodeId(input.word);
            let slot = if mine { self.entered(word, input.bit) } else { 0 };
            return WirePlace { slot, flip: false, level: self.ready(word) };
        }
        if let WireDriver::Xor(a, b) = *wire {
            // The sum of what one party knows and what the other one knows is a sharing as it is.
            let level = self.place(a as usize).level.max(self.place(b as usize).level);
            let known =
                |of: PartyId| [a, b].into_iter().find(|w| self.kinds[*w as usize] == WireKind::Known(of));
            if let (Some(own), Some(_)) = (known(self.me), known(self.me.other())) {
                return WirePlace { slot: self.place(own as usize).slot, flip: false, level };
            }
        }
        let slot = if mine { self.slot() } else { 0 };
        let (a, b) = match *wire {
            WireDriver::False | WireDriver::Input(_) => unreachable!("placed above"),
            WireDriver::Xor(a, b) => ((a as usize, false), (b as usize, false)),
            WireDriver::And(a, b) => ((a.wire(), a.inverted()), (b.wire(), b.inverted())),
        };
        let level = self.place(a.0).level.max(self.place(b.0).level);
        let public = [a, b].iter().any(|x| self.kinds[x.0] == WireKind::Public);
        if let (WireDriver::And(a, b), WireKind::Shared, false) = (wire, kind, public) {
            if self.pending.len() <= level {
                self.pending.resize_with(level + 1, Vec::new);
            }
            self.pending[level].push((*a, *b, slot));
            return WirePlace { slot, flip: false, level: level + 1 };
        }
        if mine {
            let and = matches!(wire, WireDriver::And(..));
            // A public factor of a product is everybody's.
            let of =
                |x: usize| if and && self.kinds[x] == WireKind::Public { WireKind::Public } else { kind };
            let (a, b) = (self.read_wire(a.0, a.1, of(a.0)), self.read_wire(b.0, b.1, of(b.0)));
            self.stage(level).push(PartyStep::Gate(ShareGate { out: slot, a, b, and }));
        }
        WirePlace { slot, flip: false, level }
    }

    /// A slot for a bit of a word that this party knows.
    pub fn entered(&mut self, node: NodeId, bit: u16) -> u32 {
        let slot = self.slot();
        if self.waits(node) {
            let level = self.compute(node);
            match self.stage(level).last_mut() {
                Some(PartyStep::Enter(last)) if last.node == node => last.bits.push((bit, slot)),
                _ => self.stage(level).push(PartyStep::Enter(EnteredBits { node, bits: vec![(bit, slot)] })),
            }
            return slot;
        }
        match self.out.entries.last_mut() {
            Some(last) if last.node == node => last.bits.push((bit, slot)),
            _ => self.out.entries.push(EnteredBits { node, bits: vec![(bit, slot)] }),
        }
        slot
    }

    /// Joins ands of one operand, so that one COT serves many.
    fn cross(&mut self, round: usize, ands: &[(Lit, Lit, u32)]) {
        let mut uses: HashMap<Lit, u32> = HashMap::new();
        for (a, b, _) in ands {
            *uses.entry(*a).or_default() += 1;
            *uses.entry(*b).or_default() += 1;
        }
        let mut open: HashMap<(Lit, WireKind), usize> = HashMap::new();
        for (a, b, out) in ands {
            let (x, v) = if uses[b] > uses[a] { (*b, *a) } else { (*a, *b) };
            let kinds = [x, v].map(|l| self.kinds[l.wire()]);
            let (selector, field) = (self.read(x, kinds[0]), (self.read(v, kinds[1]), *out));
            let crosses = &mut self.round(round).crosses;
            let full = |at: &&usize| crosses[**at].fields.len() < FIELDS;
            if let Some(at) = open.get(&(x, kinds[1])).filter(full) {
                crosses[*at].fields.push(field);
            } else {
                open.insert((x, kinds[1]), crosses.len());
                self.push_cross(round, selector, vec![field], kinds);
            }
        }
    }

    /// A product of bits held as `kinds` says, selector first.
    pub fn push_cross(&mut self, round: usize, selector: In, fields: Vec<(In, u32)>, kinds: [WireKind; 2]) {
        let needs = |sender: PartyId| kinds[1].has(sender) && kinds[0].has(sender.other());
        // Numbers are given out at the end, in order.
        let cots = [0, 1].map(|p| needs(PartyId(p)).then_some(0));
        self.round(round).crosses.push(Cross { selector, fields, cots });
    }

    fn steps(&mut self) {
        let plan = self.plan;
        let read = self.read_temps();
        let mut masks: Vec<(&Mask, Vec<usize>)> = Vec::new();
        for step in &plan.steps {
            match step {
                RowStep::Known { temp, party, node } => {
                    if *party == self.me {
                        self.stage(0).push(PartyStep::Local(Local::Known { temp: *temp, node: *node }));
                    }
                }
                RowStep::Add { temp, other } => {
                    self.combine(*temp, *other, Local::Add { temp: *temp, other: *other })
                }
                RowStep::Square { temp, other } => {
                    self.combine(*temp, *other, Local::Square { temp: *temp, other: *other });
                }
                RowStep::Mask(mask) => {
                    let levels = self.levels(mask);
                    if self.crosses(mask) {
                        masks.push((mask, levels));
                    } else if mask.sender == self.me {
                        let selector = self.read(mask.selector, WireKind::Public);
                        for (field, level) in mask.fields.iter().zip(levels) {
                            let (source, temp) = (field.source, field.temp);
                            let local = Local::Multiply { selector, source, temp };
                            self.stage(level).push(PartyStep::Local(local));
                        }
                    }
                }
            }
        }
        self.masks(&masks, &read);
        for round in 0..self.pending.len() {
            let ands = std::mem::take(&mut self.pending[round]);
            self.cross(round, &ands);
        }
    }

    /// Which temporaries something waits for.
    fn read_temps(&self) -> Vec<bool> {
        let mut read = vec![false; self.plan.temps.len()];
        let mut mark = |temp: u32| read[temp as usize] = true;
        for step in &self.plan.steps {
            match step {
                RowStep::Add { other, .. } | RowStep::Square { other, .. } => mark(*other),
                RowStep::Mask(mask) => mask.fields.iter().for_each(|f| match f.source {
                    MaskSource::Own(temp) | MaskSource::Shifted { temp, .. } => mark(temp),
                    _ => {}
                }),
                RowStep::Known { .. } => {}
            }
        }
        for term in self.joined.iter().flat_map(|j| &j.gaps).flat_map(|gap| gap.terms) {
            if let GapTerm::Temp(temp) = term {
                mark(temp);
            }
        }
        read
    }

    /// A step of both parties on their own shares of another temporary.
    fn combine(&mut self, temp: u32, other: u32, local: Local) {
        let level = self.there[other as usize];
        let there = &mut self.there[temp as usize];
        *there = level.max(*there);
        self.stage(level).push(PartyStep::Local(local));
    }

    /// The stages from which on the fields of a mask can be multiplied; notes when the products are there.
    fn levels(&mut self, mask: &Mask) -> Vec<usize> {
        let level = self.demand(mask.selector.wire()).level;
        let of = |f: &program::lower::MaskField| match f.source {
            MaskSource::Own(temp) | MaskSource::Shifted { temp, .. } => level.max(self.there[temp as usize]),
            _ => level,
        };
        let levels: Vec<usize> = mask.fields.iter().map(of).collect();
        let crosses = usize::from(self.crosses(mask));
        for (field, level) in mask.fields.iter().zip(&levels) {
            let there = &mut self.there[field.temp as usize];
            *there = (*there).max(level + crosses);
        }
        levels
    }

    /// Whether a mask takes a COT: not where its sender knows the selector.
    fn crosses(&self, mask: &Mask) -> bool {
        let kind = self.kinds[mask.selector.wire()];
        kind != WireKind::Public && kind != WireKind::Known(mask.sender)
    }

    /// Places products: each as early as it can be, but one that nothing waits for joins the last round of
    /// its selector.
    fn masks(&mut self, masks: &[(&Mask, Vec<usize>)], read: &[bool]) {
        let mut last: HashMap<(Lit, PartyId), usize> = HashMap::new();
        for (mask, levels) in masks {
            let latest = last.entry((mask.selector, mask.sender)).or_default();
            *latest = levels.iter().copied().fold(*latest, usize::max);
        }
        let mut groups: HashMap<(usize, Lit, PartyId), usize> = HashMap::new();
        for (mask, levels) in masks {
            for (field, level) in mask.fields.iter().zip(levels) {
                let key = (mask.selector, mask.sender);
                let round = if read[field.temp as usize] { *level } else { last[&key] };
                let bytes = usize::from(self.plan.temps[field.temp as usize]);
                let at = groups.get(&(round, key.0, key.1)).copied();
                let at = at.filter(|at| fits(&self.round(round).products[*at], bytes));
                let at = at.unwrap_or_else(|| {
                    let selector = self.read(mask.selector, WireKind::Shared);
                    let products = &mut self.round(round).products;
                    let (sender, slices) = (mask.sender, Vec::new());
                    products.push(Product { sender, selector, cot: 0, slices, words: 0 });
                    groups.insert((round, key.0, key.1), products.len() - 1);
                    products.len() - 1
                });
                push_slice(&mut self.round(round).products[at], field.source, field.temp, bytes);
            }
        }
    }

    /// Numbers the COTs and evens out stages and rounds.
    fn finish(mut self) -> Schedule {
        let rounds = self.out.rounds.len().max(self.out.stages.len().saturating_sub(1));
        self.out.rounds.resize_with(rounds, Round::default);
        self.out.stages.resize_with(rounds + 1, StageSteps::default);
        let cots = &mut self.out.cots;
        let mut next = |sender: PartyId, count: usize| {
            cots[sender.index()] += count;
            (cots[sender.index()] - count) as u32
        };
        for round in &mut self.out.rounds {
            round.leaves.iter_mut().for_each(|l| l.cot = next(l.sender, l.bits.into()));
            for cross in &mut round.crosses {
                for (p, cot) in cross.cots.iter_mut().enumerate() {
                    *cot = cot.map(|_| next(PartyId(p as u8), 1));
                }
            }
            round.products.iter_mut().for_each(|p| p.cot = next(p.sender, 1));
        }
        self.out
    }
}

/// Whether a field still has room in a pad.
fn fits(product: &Product, bytes: usize) -> bool {
    product.words < PAD_WORDS || product.slices.last().is_none_or(|s| s.byte as usize + s.bytes + bytes <= 16)
}

/// A slice never straddles two blocks of the pad; on the wire there is no gap.
fn push_slice(product: &mut Product, source: MaskSource, temp: u32, bytes: usize) {
    let after = product.slices.last().map_or(16, |s| s.byte as usize + s.bytes);
    let byte = if after + bytes > 16 {
        product.words += 1;
        0
    } else {
        after as u32
    };
    product.slices.push(PadSlice { source, temp, bytes, word: product.words - 1, byte });
}
