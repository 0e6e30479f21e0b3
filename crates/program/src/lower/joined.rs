//! Rows that a match has joined to shares: nobody holds a column, so owners enter shares of what they
//! computed before.
//!
//! What one party can compute alone it computes from its own rows, in the clear, before they are matched:
//! those nodes are the plan's *entries*. A matching protocol turns them into shares along the joined rows,
//! words of bits by exclusive or and numbers by addition. Where it leaves a party's rows known to their owner
//! (the receiver of circuit-PSI knows which of its rows lies where), that party's entries stay its own.
//!
//! Functionality of the plan: that of [`super::lower_pair`]; only who knows what is different. Three things
//! follow.
//! 1. A bit that enters shared is the sum of two inputs, one of each party.
//! 2. Words are compared as numbers: D = a - b modulo 2^(w+1) is had from shares of a and b without a word
//!    being said, and `[a < b]` is bit w of D = d_0 + d_1: both top bits and the carry
//!    `[2^w - 1 - low d_0 < low d_1]`, which compares what *one* party knows with what the *other* knows. So
//!    it is done by digits, as between owners, and not by a tree of ands over shared bits: 4 rounds instead
//!    of 6 at 32 bits.
//! 3. Sums stay numbers: what is clamped or squared after parties' numbers met is clamped by such a
//!    comparison, and squared by x^2 = x_0^2 + x_1^2 + 2 x_0 x_1, the last by one product per bit of x_0.

use crate::eval::{NodeValues, closure};
use crate::lower::row::{Compare, FoldPlan, RowPlan, lower_entered};
use crate::{Holder, NodeFacts, NodeId, Op, Program, Sharing, ValueType};
use base::{Error, PartyId};
use circuits::gadgets::{self, LitWord};
use circuits::{CircuitBuilder, InputBit, Lit};
use std::collections::HashMap;

/// A row plan over shares.
#[derive(Clone, Debug)]
pub struct JoinedPlan {
    /// The program that the entries' nodes are of: the one that was lowered, factored.
    pub program: Program,
    /// Whose entries arrive as shares of both parties.
    pub shared: [bool; 2],
    /// What is entered, in the order of its discovery.
    pub entries: Vec<JoinedEntry>,
    /// What the nodes of `row` stand for: `NodeId(i)` is word i.
    pub words: Vec<JoinedWord>,
    /// The comparisons by difference.
    pub gaps: Vec<Gap>,
    /// The plan. Its nodes are words.
    pub row: RowPlan,
}

/// A row node whose value enters the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinedEntry {
    /// A node of [`JoinedPlan::program`] that depends on one party's columns only, or a shared column.
    pub node: NodeId,
    /// Whose it is; `Shared` is a column that the match itself gives, such as "this is a match".
    pub holder: Holder,
    /// How it is shared.
    pub kind: EntryKind,
}

/// How an entry is shared. One that its party keeps to itself is `LitWord`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A pattern of so many bits, by exclusive or.
    Bits(u8),
    /// The node's number (signed ones as two's complement), modulo 2^(8 bytes).
    Number {
        /// Bytes, 1 to 16.
        bytes: u8,
    },
}

impl EntryKind {
    /// Bits of a share.
    #[must_use]
    pub fn width(self) -> u8 {
        match self {
            Self::Bits(bits) => bits,
            Self::Number { bytes } => 8 * bytes,
        }
    }

    /// All ones in this width.
    #[must_use]
    pub fn mask(self) -> u128 {
        ValueType::u(self.width()).mask()
    }
}

/// What a node of a joined plan stands for, at either party.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JoinedWord {
    /// This party's share of an entry, or its own value.
    Entry(u32),
    /// A public number, two's complement.
    Constant(u128),
    /// The low bits of this party's share of a gap; the chooser's are complemented.
    Low(u32),
    /// The bit above them, alike.
    Top(u32),
    /// This party's share of a temporary.
    Share(u32),
}

/// A difference of two numbers modulo 2^(width + 1): its top bit says which is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Minuend and subtrahend.
    pub terms: [GapTerm; 2],
    /// Bits of either number.
    pub width: u8,
    /// The party whose share of the difference is the bound.
    pub chooser: PartyId,
}

/// A number of a [`Gap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GapTerm {
    /// A public number, two's complement; the first party's share is the number.
    Constant(u128),
    /// An entry.
    Entry(u32),
    /// A temporary of at least the width.
    Temp(u32),
}

/// Lowers the row section of a two-party program of sums for rows of which those of the parties in `shared`
/// arrive as shares.
///
/// # Errors
/// [`base::Fault::Input`] for what no join to shares can carry: other programs, public columns, rows that
/// nobody shares.
pub fn lower_joined(program: &Program, shared: [bool; 2]) -> Result<JoinedPlan, Error> {
    let refuse = |text: &str| Err(Error::input(format!("the program {}: {text}", program.name)));
    if program.sharing() != Sharing::Additive {
        return refuse("rows joined to shares take sums between two parties; match by pid");
    }
    if !shared.contains(&true) {
        return refuse("both parties know their rows, so nothing is joined to shares; match by pid");
    }
    if let Some(public) = program.columns.iter().find(|c| c.holder == Holder::Public) {
        let name = &public.name;
        return refuse(&format!("nobody can enter the public column {name} for rows joined to shares"));
    }
    let program = super::factor(program);
    let facts = program.row_facts();
    let (entering, row) = lower_entered(&program, &facts, Entering::new(&program, &facts, shared));
    let Entering { entries, words, gaps, .. } = entering;
    Ok(JoinedPlan { shared, entries, words, gaps, row, program })
}

impl JoinedPlan {
    /// Whether an entry arrives as shares of both parties.
    #[must_use]
    pub fn is_shared(&self, entry: usize) -> bool {
        self.entries[entry].holder.only().is_none_or(|p| self.shared[p.index()])
    }

    /// Whether `party` reads an entry: its share, or its own value.
    #[must_use]
    pub fn reads(&self, party: PartyId, entry: usize) -> bool {
        self.is_shared(entry) || self.entries[entry].holder.held_by(party)
    }

    /// The entries that `party` computes from its own rows before they are matched, in order.
    pub fn own(&self, party: PartyId) -> impl Iterator<Item = usize> + use<'_> {
        let mine = move |(_, e): &(usize, &JoinedEntry)| e.holder == Holder::Party(party);
        self.entries.iter().enumerate().filter(mine).map(|(i, _)| i)
    }

    /// The folds that `party` totals alone, from all its rows, joined or not.
    pub fn alone(&self, party: PartyId) -> impl Iterator<Item = u32> + use<'_> {
        let mine = move |plan: &FoldPlan| *plan == FoldPlan::Alone(Some(party));
        (0..).zip(&self.row.folds).filter(move |(_, plan)| mine(plan)).map(|(fold, _)| fold)
    }

    /// What every joined row adds to a fold that depends on nobody's data.
    #[must_use]
    pub fn public(&self, fold: u32) -> u128 {
        let value = self.program.folds[fold as usize].value();
        let constants = constants(&self.program, &self.program.row_facts());
        self.program.row.ty(value).to_signed(constants[value.index()]) as u128
    }

    /// Nodes of [`JoinedPlan::program`] that `party` computes in the clear: its entries, and what it totals
    /// alone.
    #[must_use]
    pub fn clear_roots(&self, party: PartyId) -> Vec<NodeId> {
        let folds = self.alone(party).map(|fold| self.program.folds[fold as usize].value());
        let mut roots: Vec<NodeId> = self.own(party).map(|e| self.entries[e].node).chain(folds).collect();
        roots.sort_unstable();
        roots.dedup();
        roots
    }

    /// What an entry's owner enters for the bit pattern of its node: the pattern, or the number in the
    /// entry's ring.
    #[must_use]
    pub fn entered(&self, entry: usize, pattern: u128) -> u128 {
        let JoinedEntry { node, kind, .. } = self.entries[entry];
        match kind {
            EntryKind::Bits(_) => pattern & kind.mask(),
            EntryKind::Number { .. } => self.program.row.ty(node).to_signed(pattern) as u128 & kind.mask(),
        }
    }

    /// The type in which a word is a number.
    #[must_use]
    pub fn word_type(&self, word: JoinedWord) -> ValueType {
        match word {
            JoinedWord::Entry(e) => match self.entries[e as usize] {
                JoinedEntry { node, kind: EntryKind::Bits(_), .. } => self.program.row.ty(node),
                JoinedEntry { kind, .. } => ValueType::u(kind.width()),
            },
            JoinedWord::Constant(_) => ValueType::i(128),
            JoinedWord::Low(gap) => ValueType::u(self.gaps[gap as usize].width),
            JoinedWord::Top(_) => ValueType::BIT,
            JoinedWord::Share(temp) => ValueType::u(8 * self.row.temps[temp as usize]),
        }
    }
}

/// Who holds a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeHolder {
    /// Everybody.
    Public,
    /// One party, alone.
    Alone(PartyId),
    /// One party computed it, and it enters as shares.
    Shared,
    /// A shared column.
    Column,
    /// It must be computed.
    Joint,
}

/// Entries, words and gaps in the making.
pub(super) struct Entering<'a> {
    program: &'a Program,
    facts: &'a [NodeFacts],
    shared: [bool; 2],
    /// Values of the public nodes.
    constants: Vec<u128>,
    entries: Vec<JoinedEntry>,
    places: HashMap<(NodeId, bool), u32>,
    words: Vec<JoinedWord>,
    known: HashMap<JoinedWord, NodeId>,
    gaps: Vec<Gap>,
    /// What comparisons gave, by terms and width.
    compared: HashMap<([GapTerm; 2], u8), Lit>,
}

impl<'a> Entering<'a> {
    fn new(program: &'a Program, facts: &'a [NodeFacts], shared: [bool; 2]) -> Self {
        Self {
            program,
            facts,
            shared,
            constants: constants(program, facts),
            entries: Vec::new(),
            places: HashMap::new(),
            words: Vec::new(),
            known: HashMap::new(),
            gaps: Vec::new(),
            compared: HashMap::new(),
        }
    }

    pub fn held(&self, id: NodeId) -> NodeHolder {
        let owners = self.facts[id.index()].owners;
        match owners.only() {
            _ if owners.is_public() => NodeHolder::Public,
            Some(party) if !self.shared[party.index()] => NodeHolder::Alone(party),
            Some(_) => NodeHolder::Shared,
            None if matches!(self.program.row.node(id).op, Op::Column(_)) => NodeHolder::Column,
            None => NodeHolder::Joint,
        }
    }

    /// A public node as a number.
    pub fn constant(&self, id: NodeId) -> u128 {
        self.program.row.ty(id).to_signed(self.constants[id.index()]) as u128
    }

    pub fn word(&mut self, word: JoinedWord) -> NodeId {
        *self.known.entry(word).or_insert_with(|| {
            self.words.push(word);
            NodeId(self.words.len() as u32 - 1)
        })
    }

    /// The entry of a node that is held alone or shared; a number has room for so many bytes.
    fn entry(&mut self, id: NodeId, number: Option<u8>) -> u32 {
        let held = self.held(id);
        let bits = EntryKind::Bits(self.program.row.ty(id).width);
        let kind = match (held, number) {
            (NodeHolder::Shared, Some(bytes)) => EntryKind::Number { bytes },
            _ => bits,
        };
        let holder = match self.program.row.node(id).op {
            Op::Column(c) => self.program.columns[c as usize].holder,
            _ => self.facts[id.index()].owners.only().into(),
        };
        let place = *self.places.entry((id, kind != bits)).or_insert_with(|| {
            self.entries.push(JoinedEntry { node: id, holder, kind });
            self.entries.len() as u32 - 1
        });
        if let (EntryKind::Number { bytes: has }, EntryKind::Number { bytes }) =
            (&mut self.entries[place as usize].kind, kind)
        {
            *has = bytes.max(*has);
        }
        place
    }

    /// A node that is held alone or shared, as numbers to add.
    pub fn number(&mut self, id: NodeId, bytes: u8) -> NodeId {
        let entry = self.entry(id, Some(bytes));
        self.word(JoinedWord::Entry(entry))
    }

    /// The bits of a node that need no gates.
    pub fn enter(&mut self, g: &mut CircuitBuilder, id: NodeId) -> Option<LitWord> {
        let width = self.program.row.ty(id).width;
        let held = self.held(id);
        if held == NodeHolder::Joint {
            return None;
        }
        if held == NodeHolder::Public {
            return Some(gadgets::constant(self.constants[id.index()], width.into()));
        }
        let entry = self.entry(id, None);
        let word = self.word(JoinedWord::Entry(entry));
        let input = |party, bit| InputBit { owner: Some(party), word: word.0, bit };
        let bits = 0..u16::from(width);
        Some(match held {
            NodeHolder::Alone(party) => bits.map(|bit| g.input(input(party, bit))).collect(),
            _ => bits.map(|bit| sum(g, word, bit)).collect(),
        })
    }

    /// Whether two words can be compared without their bits: both entered or public.
    pub fn comparable(&self, a: NodeId, b: NodeId) -> bool {
        let known = |id: NodeId| !matches!(self.held(id), NodeHolder::Column | NodeHolder::Joint);
        self.program.row.ty(a).width < 128 && known(a) && known(b)
    }

    /// `[a < b]` of comparable words.
    pub fn less(&mut self, g: &mut CircuitBuilder, compares: &mut Vec<Compare>, a: NodeId, b: NodeId) -> Lit {
        let width = self.program.row.ty(a).width;
        let terms = [a, b].map(|id| match self.held(id) {
            NodeHolder::Public => GapTerm::Constant(self.constant(id)),
            _ => GapTerm::Entry(self.entry(id, Some(gap_bytes(width)))),
        });
        self.gap(g, compares, terms, width)
    }

    /// `[first < second]` of terms of at most `width` bits; notes the comparison that gives its carry.
    pub fn gap(
        &mut self,
        g: &mut CircuitBuilder,
        compares: &mut Vec<Compare>,
        terms: [GapTerm; 2],
        width: u8,
    ) -> Lit {
        if let Some(done) = self.compared.get(&(terms, width)) {
            return *done;
        }
        // The parties take turns at choosing, so that both do half of the work.
        let chooser = PartyId(self.gaps.len() as u8 % 2);
        let gap = self.gaps.len() as u32;
        self.gaps.push(Gap { terms, width, chooser });
        let (low, top) = (self.word(JoinedWord::Low(gap)), self.word(JoinedWord::Top(gap)));
        let [bound, key] = [chooser, chooser.other()].map(|party| -> LitWord {
            let input = |bit| InputBit { owner: Some(party), word: low.0, bit };
            (0..u16::from(width)).map(|bit| g.input(input(bit))).collect()
        });
        let carry = gadgets::less(g, &bound, &key, false);
        let tops = sum(g, top, 0);
        let less = !g.xor(tops, carry);
        compares.push(Compare { chooser, bound: low, keys: vec![low], width, less: vec![carry] });
        self.compared.insert((terms, width), less);
        less
    }

    /// What an input of the circuit waits for.
    pub fn waits_for(&self, word: u32) -> impl Iterator<Item = u32> + use<> {
        let temp = |term: GapTerm| if let GapTerm::Temp(temp) = term { Some(temp) } else { None };
        let temps = match self.words[word as usize] {
            JoinedWord::Low(gap) | JoinedWord::Top(gap) => self.gaps[gap as usize].terms.map(temp),
            JoinedWord::Share(of) => [Some(of), None],
            JoinedWord::Entry(_) | JoinedWord::Constant(_) => [None; 2],
        };
        temps.into_iter().flatten()
    }
}

/// A bit of a word that both parties hold a share of.
fn sum(g: &mut CircuitBuilder, word: NodeId, bit: u16) -> Lit {
    let [a, b] = [0, 1].map(|p| g.input(InputBit { owner: Some(PartyId(p)), word: word.0, bit }));
    g.xor(a, b)
}

/// Bytes of numbers whose difference shows which of two words is less.
pub(super) fn gap_bytes(width: u8) -> u8 {
    (width + 1).div_ceil(8)
}

/// The values of the public nodes; 0 for the others.
fn constants(program: &Program, facts: &[NodeFacts]) -> Vec<u128> {
    let public: Vec<NodeId> = program.row.ids().filter(|id| facts[id.index()].owners.is_public()).collect();
    let wanted = closure(&program.row, public.iter().copied());
    let mut values = NodeValues::default();
    let done = values.evaluate(&program.row, &wanted, 1, &mut |_, _| Err(Error::misuse("no public columns")));
    done.expect("public columns were refused");
    let mut all = vec![0; program.row.nodes.len()];
    public.iter().for_each(|id| all[id.index()] = values.get(*id)[0]);
    all
}
