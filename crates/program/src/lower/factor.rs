//! A row section written so that shared bits multiply little: the same totals, fewer oblivious transfers.
//!
//! Three rewritings, each an identity for all inputs:
//! 1. A lookup's thresholds that one party holds become explicit running maxima: their owner sorts them in
//!    the clear.
//! 2. A lookup whose values are all zero unless one party's bit is set is that bit times the lookup without
//!    it.
//! 3. Of two bits around a value, not of one party, the one that came out of a lookup goes outside. What is
//!    inside is then the same for all values of that bit, and is computed once.
//!
//! Together they turn cohorts (the advertiser's bit inside every value) into one product of a finished row.

use super::bits::is_maximum_with;
use crate::graph::{Lookup, NodeSection};
use crate::{NodeFacts, NodeId, Op, OpNode, Program, RowFold};
use base::PartyId;
use std::collections::HashMap;

/// The same program with a row section of fewer products. Its text and hash are others: it is for lowering
/// only.
#[must_use]
pub fn factor(program: &Program) -> Program {
    let facts = program.row_facts();
    let mut factoring = Factoring {
        section: &program.row,
        facts: &facts,
        out: NodeSection::default(),
        owners: Vec::new(),
        places: HashMap::new(),
        moved: Vec::with_capacity(facts.len()),
        pulled: HashMap::new(),
    };
    for id in program.row.ids() {
        let moved = factoring.rewrite(id);
        factoring.moved.push(moved);
    }
    let mut out = program.clone();
    for fold in &mut out.folds {
        if let RowFold::Sum { value, .. } = fold {
            *value = factoring.moved[value.index()];
        }
    }
    out.row = factoring.out;
    out
}

struct Factoring<'a> {
    section: &'a NodeSection,
    facts: &'a [NodeFacts],
    out: NodeSection,
    /// Who alone knows each new node.
    owners: Vec<Option<PartyId>>,
    places: HashMap<OpNode, NodeId>,
    /// New ids of the old nodes.
    moved: Vec<NodeId>,
    /// New nodes that are a bit pulled out of a lookup, times the rest: bit, rest, zero.
    pulled: HashMap<NodeId, [NodeId; 3]>,
}

impl Factoring<'_> {
    fn rewrite(&mut self, id: NodeId) -> NodeId {
        let mut node = self.section.node(id).clone();
        node.op.operands_mut(|a| *a = self.moved[a.index()]);
        let owner = self.facts[id.index()].owners.only();
        match &node.op {
            Op::Lookup(l) if owner.is_none() => {
                let mut l = l.clone();
                self.sort(&mut l);
                self.pull(l, &node)
            }
            Op::Select(bit, a, zero) if owner.is_none() => match self.pulled.get(a).copied() {
                Some([outer, rest, _]) if self.is_zero(*zero) && self.apart(*bit, outer) => {
                    let inner = self.push(OpNode { op: Op::Select(*bit, rest, *zero), ty: node.ty }, None);
                    self.push(OpNode { op: Op::Select(outer, inner, *zero), ty: node.ty }, None)
                }
                _ => self.push(node, owner),
            },
            _ => self.push(node, owner),
        }
    }

    fn push(&mut self, node: OpNode, owner: Option<PartyId>) -> NodeId {
        if let Some(at) = self.places.get(&node) {
            return *at;
        }
        let id = NodeId(self.out.nodes.len() as u32);
        self.places.insert(node.clone(), id);
        self.out.nodes.push(node);
        self.owners.push(owner);
        id
    }

    fn is_zero(&self, id: NodeId) -> bool {
        self.out.node(id).op == Op::Const(0)
    }

    /// Whether `outer`, one party's, is not a bit of the same party.
    fn apart(&self, bit: NodeId, outer: NodeId) -> bool {
        let [bit, outer] = [bit, outer].map(|id| self.owners[id.index()]);
        outer.is_some() && bit != outer
    }

    /// Makes thresholds of one owner running maxima.
    fn sort(&mut self, l: &mut Lookup) {
        let owner = self.owners[l.keys[0].index()];
        if owner.is_none() || l.keys.iter().any(|k| self.owners[k.index()] != owner) {
            return;
        }
        for j in 1..l.keys.len() {
            let (before, key) = (l.keys[j - 1], l.keys[j]);
            if !is_maximum_with(&self.out, before, key) {
                let ty = self.out.ty(key);
                l.keys[j] = self.push(OpNode { op: Op::Max(before, key), ty }, owner);
            }
        }
    }

    /// The lookup, with a bit that is a factor of all its values pulled out.
    fn pull(&mut self, mut l: Box<Lookup>, node: &OpNode) -> NodeId {
        let factors = |id: NodeId| match self.out.node(id).op {
            Op::Select(bit, value, zero) if self.is_zero(zero) => Some([bit, value, zero]),
            _ => None,
        };
        let split: Option<Vec<[NodeId; 3]>> = l.values.iter().map(|v| factors(*v)).collect();
        let common = split.filter(|s| {
            let bit = s[0][0];
            self.owners[bit.index()].is_some() && s.iter().all(|f| f[0] == bit)
        });
        let Some(split) = common else { return self.push(OpNode { op: Op::Lookup(l), ty: node.ty }, None) };
        let [bit, _, zero] = split[0];
        l.values = split.iter().map(|f| f[1]).collect();
        let rest = self.push(OpNode { op: Op::Lookup(l), ty: node.ty }, None);
        let whole = self.push(OpNode { op: Op::Select(bit, rest, zero), ty: node.ty }, None);
        self.pulled.insert(whole, [bit, rest, zero]);
        whole
    }
}
