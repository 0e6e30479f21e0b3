//! Word operations of a section as gates.

use super::joined::Entering;
use super::row::Compare;
use crate::graph::{Lookup, NodeSection};
use crate::{NodeFacts, NodeId, Op};
use circuits::gadgets::{self, LitWord};
use circuits::{CircuitBuilder, Lit};
use std::collections::HashSet;

/// Gates of a section, node by node on demand.
pub(super) struct SectionGates<'a> {
    pub(super) section: &'a NodeSection,
    pub(super) gates: CircuitBuilder,
    /// Bits of the nodes that are done: inputs first, then whatever was asked for.
    pub(super) done: Vec<Option<LitWord>>,
    /// Row facts, when comparisons between two parties' own words are to be noted in `compares`.
    pub(super) owners: Option<&'a [NodeFacts]>,
    pub(super) compares: Vec<Compare>,
    /// Where words come from when rows are joined to shares.
    pub(super) joined: Option<Entering<'a>>,
    noted: HashSet<(NodeId, Vec<NodeId>)>,
}

impl<'a> SectionGates<'a> {
    pub(super) fn new(section: &'a NodeSection) -> Self {
        Self {
            section,
            gates: CircuitBuilder::default(),
            done: vec![None; section.nodes.len()],
            owners: None,
            compares: Vec::new(),
            joined: None,
            noted: HashSet::new(),
        }
    }

    /// The bits of a node. Its leaves must have been entered into `done`, or be given by `leaf`.
    pub(super) fn word(
        &mut self,
        id: NodeId,
        leaf: &mut dyn FnMut(&mut CircuitBuilder, NodeId) -> Option<LitWord>,
    ) -> LitWord {
        // An explicit stack: a program may be a chain of a million nodes.
        let mut stack = vec![id];
        while let Some(&next) = stack.last() {
            if self.done[next.index()].is_some() {
                stack.pop();
                continue;
            }
            let entered = match &mut self.joined {
                Some(joined) => joined.enter(&mut self.gates, next),
                None => leaf(&mut self.gates, next),
            };
            if let Some(word) = entered {
                self.done[next.index()] = Some(word);
                stack.pop();
                continue;
            }
            let waiting = stack.len();
            let mut wait = |a: NodeId| {
                if self.done[a.index()].is_none() {
                    stack.push(a);
                }
            };
            match &self.section.node(next).op {
                Op::Lt(a, b) if self.comparable(*a, *b) => {}
                Op::Lookup(l) if self.is_compared(l) => l.values.iter().copied().for_each(wait),
                op => op.operands(&mut wait),
            }
            if stack.len() == waiting {
                let word = self.lower(next);
                self.done[next.index()] = Some(word);
                stack.pop();
            }
        }
        self.get(id)
    }

    fn get(&self, id: NodeId) -> LitWord {
        self.done[id.index()].clone().expect("operands are lowered first")
    }

    fn lower(&mut self, id: NodeId) -> LitWord {
        let node = self.section.node(id);
        let width = usize::from(node.ty.width);
        let two = |a: &NodeId, b: &NodeId| (self.get(*a), self.get(*b));
        match &node.op {
            Op::Const(value) => gadgets::constant(*value, width),
            Op::Not(a) => self.get(*a).into_iter().map(|x| !x).collect(),
            Op::And(a, b) => self.zip(*a, *b, CircuitBuilder::and),
            Op::Or(a, b) => self.zip(*a, *b, CircuitBuilder::or),
            Op::Xor(a, b) => self.zip(*a, *b, CircuitBuilder::xor),
            Op::Add(a, b) => two(a, b).apply(&mut self.gates, gadgets::add),
            Op::Sub(a, b) => two(a, b).apply(&mut self.gates, gadgets::sub),
            Op::Mul(a, b) => two(a, b).apply(&mut self.gates, gadgets::mul),
            Op::Div(a, b) => two(a, b).apply(&mut self.gates, gadgets::div),
            Op::Eq(a, b) => vec![two(a, b).apply(&mut self.gates, gadgets::equal)],
            Op::Lt(a, b) => vec![self.less(*a, *b)],
            Op::Min(a, b) => self.choose(*a, *b, false),
            Op::Max(a, b) => self.choose(*a, *b, true),
            Op::Select(c, a, b) => {
                let (c, (a, b)) = (self.get(*c)[0], two(a, b));
                gadgets::select(&mut self.gates, c, &a, &b)
            }
            Op::Isqrt(a) => gadgets::isqrt(&mut self.gates, &self.done[a.index()].clone().expect("lowered")),
            Op::Popcount(a) => {
                let a = self.get(*a);
                gadgets::popcount(&mut self.gates, &a, width)
            }
            Op::Cast(a) => gadgets::resize(&self.get(*a), width, self.section.ty(*a).signed),
            Op::Shl(a, k) => {
                let mut word = vec![Lit::FALSE; usize::from(*k).min(width)];
                word.extend(self.get(*a));
                word.truncate(width);
                word
            }
            Op::Shr(a, k) => {
                let word = self.get(*a);
                let kept = &word[usize::from(*k).min(width - usize::from(node.ty.signed))..];
                if kept.is_empty() {
                    vec![Lit::FALSE; width]
                } else {
                    gadgets::resize(kept, width, node.ty.signed)
                }
            }
            Op::Clamp(a, cap) => self.clamp(*a, *cap, width),
            Op::Lookup(l) => self.lookup(l, width),
            Op::Column(_) | Op::Total(_) | Op::Index(_) | Op::Found(_) | Op::Noised(..) => {
                unreachable!("leaves are inputs")
            }
        }
    }

    fn zip(&mut self, a: NodeId, b: NodeId, gate: fn(&mut CircuitBuilder, Lit, Lit) -> Lit) -> LitWord {
        let (a, b) = (self.get(a), self.get(b));
        a.into_iter().zip(b).map(|(x, y)| gate(&mut self.gates, x, y)).collect()
    }

    /// Whether two words are compared without their bits: where rows are joined to shares.
    fn comparable(&self, a: NodeId, b: NodeId) -> bool {
        self.joined.as_ref().is_some_and(|joined| joined.comparable(a, b))
    }

    /// Whether a lookup's thresholds are.
    pub(super) fn is_compared(&self, l: &Lookup) -> bool {
        let sorted = l.keys.windows(2).all(|k| is_maximum_with(self.section, k[0], k[1]));
        let mut bounds = [l.after].into_iter().chain(l.until);
        sorted && bounds.all(|bound| l.keys.iter().all(|k| self.comparable(bound, *k)))
    }

    /// `[a < b]` of comparable words.
    fn compare(&mut self, a: NodeId, b: NodeId) -> Lit {
        let joined = self.joined.as_mut().expect("comparable words are entered");
        joined.less(&mut self.gates, &mut self.compares, a, b)
    }

    fn less(&mut self, a: NodeId, b: NodeId) -> Lit {
        if self.comparable(a, b) {
            return self.compare(a, b);
        }
        let signed = self.section.ty(a).signed;
        let (x, y) = (self.get(a), self.get(b));
        let less = gadgets::less(&mut self.gates, &x, &y, signed);
        if !signed {
            self.note_compare(a, &[b], &[less]);
        }
        less
    }

    /// Notes that `less[i]` is `[bound < keys[i]]`, where one party alone knows the bound and the other the
    /// keys.
    fn note_compare(&mut self, bound: NodeId, keys: &[NodeId], less: &[Lit]) {
        let Some(facts) = self.owners else { return };
        let owner = |id: NodeId| facts[id.index()].owners.only();
        let (Some(chooser), Some(sender)) = (owner(bound), owner(keys[0])) else { return };
        let apart = chooser != sender && keys.iter().all(|k| owner(*k) == Some(sender));
        if apart && self.noted.insert((bound, keys.to_vec())) {
            let width = self.section.ty(bound).width;
            self.compares.push(Compare { chooser, bound, keys: keys.to_vec(), width, less: less.to_vec() });
        }
    }

    fn choose(&mut self, a: NodeId, b: NodeId, larger: bool) -> LitWord {
        let less = self.less(a, b);
        let (a, b) = (self.get(a), self.get(b));
        gadgets::select(&mut self.gates, less.flip(larger), &a, &b)
    }

    fn clamp(&mut self, a: NodeId, cap: u128, width: usize) -> LitWord {
        let a = self.get(a);
        if width < 128 && cap >> width != 0 {
            return a;
        }
        let cap = gadgets::constant(cap, width);
        let over = gadgets::less(&mut self.gates, &cap, &a, false);
        gadgets::select(&mut self.gates, over, &cap, &a)
    }

    /// One selector per value of a lookup, at most one of them set: `(value index, selector)`.
    pub(super) fn selectors(&mut self, l: &Lookup) -> Vec<Lit> {
        let mut steps: Vec<Vec<Lit>> = match self.is_compared(l) {
            true => self.steps_of_shares(l),
            false => self.steps(l),
        };
        let beyond = l.until.and_then(|_| steps.pop());
        let above = steps.pop().expect("a lookup has a lower bound");
        // b_j = [after < key_j] is monotone, so "first set" is an XOR of neighbours.
        let first: Vec<Lit> = (0..above.len())
            .map(|j| if j == 0 { above[0] } else { self.gates.xor(above[j], above[j - 1]) })
            .collect();
        let Some(beyond) = beyond else { return first };
        let last: Vec<Lit> = (0..beyond.len())
            .map(|j| {
                let next = beyond.get(j + 1).copied().unwrap_or(Lit::TRUE);
                self.gates.xor(beyond[j], next)
            })
            .collect();
        let n = l.keys.len();
        let mut pairs = Vec::with_capacity(l.values.len());
        for (i, from) in first.iter().enumerate() {
            pairs.extend((i..n).map(|m| self.gates.and(*from, last[m])));
        }
        pairs
    }

    /// Of `after`, and of `until`: whether it is below each threshold, or below one before it.
    fn steps(&mut self, l: &Lookup) -> Vec<Vec<Lit>> {
        // How many keys are running maxima already: an owner has made them so in the clear.
        let maxima = l.keys.windows(2).take_while(|k| is_maximum_with(self.section, k[0], k[1])).count();
        let mut steps = |bound: NodeId| -> Vec<Lit> {
            let word = self.get(bound);
            let mut less: Vec<Lit> = Vec::with_capacity(l.keys.len());
            for key in &l.keys {
                let key = self.get(*key);
                let below = gadgets::less(&mut self.gates, &word, &key, false);
                // Below a maximum is below one of what it is of: an OR, where the maximum would be a
                // comparison and a choice.
                let below = match less.last() {
                    Some(before) if less.len() > maxima => self.gates.or(*before, below),
                    _ => below,
                };
                less.push(below);
            }
            if less.len() == maxima + 1 {
                self.note_compare(bound, &l.keys, &less);
            }
            less
        };
        [l.after].into_iter().chain(l.until).map(&mut steps).collect()
    }

    /// The same by differences of what was entered.
    fn steps_of_shares(&mut self, l: &Lookup) -> Vec<Vec<Lit>> {
        let mut steps =
            |bound: NodeId| -> Vec<Lit> { l.keys.iter().map(|key| self.compare(bound, *key)).collect() };
        [l.after].into_iter().chain(l.until).map(&mut steps).collect()
    }

    fn lookup(&mut self, l: &Lookup, width: usize) -> LitWord {
        let selectors = self.selectors(l);
        let mut result = vec![Lit::FALSE; width];
        for (selector, value) in selectors.into_iter().zip(&l.values) {
            let value = self.get(*value);
            for (bit, v) in result.iter_mut().zip(value) {
                let taken = self.gates.and(selector, v);
                *bit = self.gates.xor(*bit, taken);
            }
        }
        result
    }
}

/// Whether `key` is `max(before, ..)`: the owner has made it no smaller than the key before it, in the clear.
pub(super) fn is_maximum_with(section: &NodeSection, before: NodeId, key: NodeId) -> bool {
    matches!(&section.node(key).op, Op::Max(a, b) if *a == before || *b == before)
}

/// Calls a two-word gadget with a pair of words.
trait Apply {
    fn apply<T>(
        self,
        g: &mut CircuitBuilder,
        gadget: impl FnOnce(&mut CircuitBuilder, &[Lit], &[Lit]) -> T,
    ) -> T;
}

impl Apply for (LitWord, LitWord) {
    fn apply<T>(
        self,
        g: &mut CircuitBuilder,
        gadget: impl FnOnce(&mut CircuitBuilder, &[Lit], &[Lit]) -> T,
    ) -> T {
        gadget(g, &self.0, &self.1)
    }
}
