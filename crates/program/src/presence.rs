//! What a program makes of a row that a party does not have.
//!
//! Such a row holds fixed values in the party's columns: 0, unless the program says otherwise, and 0 in
//! `present PARTY`. A dummy row is one that no party has. Whether a fold counts it is decided here for every
//! value that other columns may have: ranges of all nodes are derived with the party's columns fixed.

use crate::eval::apply;
use crate::{
    ColumnSource, NodeFacts, NodeId, NodeSection, Op, Owners, Program, RowColumn, RowFold, RowSet, ValueType,
};
use base::PartyId;

impl Program {
    /// Ranges of all row nodes, as bit patterns, in a row that `party` does not have.
    #[must_use]
    pub fn ranges_without(&self, party: PartyId) -> Vec<PatternRange> {
        self.ranges_where(|column| column.without(party))
    }

    /// By fold: whether a row that no party has, a made-up one, can add to it.
    #[must_use]
    pub fn folds_over_made_up(&self) -> Vec<bool> {
        if self.rows == RowSet::Aligned {
            return vec![false; self.folds.len()];
        }
        let parties = || (0..self.parties.len() as u8).map(PartyId);
        let ranges = self.ranges_where(|column| parties().find_map(|party| column.without(party)));
        self.folds.iter().map(|fold| ranges[fold.decider().index()].high != 0).collect()
    }

    /// Ranges of all row nodes where some columns hold what `fixed` says.
    fn ranges_where(&self, fixed: impl Fn(&RowColumn) -> Option<u128>) -> Vec<PatternRange> {
        let mut ranges = Ranges { section: &self.row, low: Vec::new(), all: Vec::new() };
        for node in &self.row.nodes {
            let range = match &node.op {
                Op::Column(c) => match fixed(&self.columns[*c as usize]) {
                    Some(value) => exactly(value),
                    None => full(node.ty),
                },
                op => ranges.of(op, node.ty),
            };
            ranges.low.push([range.low]);
            ranges.all.push(range);
        }
        ranges.all
    }

    /// By fold: the parties without whose row nothing is added, whatever the others' rows hold.
    #[must_use]
    pub fn fold_demands(&self) -> Vec<Owners> {
        let mut demands = vec![Owners::PUBLIC; self.folds.len()];
        if self.rows == RowSet::Aligned {
            return vec![Owners::all(self.parties.len()); self.folds.len()];
        }
        for party in (0..self.parties.len() as u8).map(PartyId) {
            let ranges = self.ranges_without(party);
            for (fold, demands) in self.folds.iter().zip(&mut demands) {
                if ranges[fold.decider().index()].high == 0 {
                    *demands = demands.union(Owners::one(party));
                }
            }
        }
        demands
    }

    /// By row node: the parties whose presence it reads.
    fn asks(&self) -> Vec<Owners> {
        let mut asks: Vec<Owners> = Vec::with_capacity(self.row.nodes.len());
        for node in &self.row.nodes {
            let mut own = Owners::PUBLIC;
            node.op.operands(|a| own = own.union(asks[a.index()]));
            if let Op::Column(c) = node.op
                && self.columns[c as usize].source == ColumnSource::Present
            {
                let holder = self.columns[c as usize].holder.only();
                own = holder.map_or_else(|| Owners::all(self.parties.len()), Owners::one);
            }
            asks.push(own);
        }
        asks
    }

    /// Rule R9: a fold adds nothing in a row that a party of its data does not have, unless it asks whether
    /// the party has it.
    ///
    /// # Errors
    /// The first fold that an absent row reaches, and what to write.
    pub(crate) fn check_absent(&self, facts: &[NodeFacts]) -> Result<(), String> {
        if self.rows == RowSet::Aligned {
            return Ok(());
        }
        let (asks, demands) = (self.asks(), self.fold_demands());
        for ((i, fold), demanded) in (0..).zip(&self.folds).zip(demands) {
            let owners = fold.values().fold(Owners::PUBLIC, |o, id| o.union(facts[id.index()].owners));
            let asked = asks[fold.decider().index()];
            let parties = (0..self.parties.len() as u8).map(PartyId);
            let mut reached =
                parties.filter(|party| owners.has(*party) && !demanded.has(*party) && !asked.has(*party));
            if let Some(party) = reached.next() {
                return Err(self.reached(i, fold, party));
            }
        }
        Ok(())
    }

    fn reached(&self, i: u32, fold: &RowFold, party: PartyId) -> String {
        let (decider, party) = (fold.decider(), &self.parties[party.index()]);
        let (name, ty) = (self.names.row(decider), self.row.ty(decider));
        let here = match ty {
            ValueType::BIT => format!("`{name}-here = and {party}-here {name}`"),
            _ => format!("`none = const 0 {ty}`, `{name}-here = select {party}-here {name} none`"),
        };
        format!(
            "{}: `{name}` need not be 0 in a row that {party} does not have, so that rows of others and \
             made-up rows count; remove `rows any` from the head (then the rows are those that all parties \
             have), or add to the row section `{party}-here = present {party}`, {here}, and fold \
             `{name}-here`",
            self.names.fold(i)
        )
    }
}

/// An inclusive range of bit patterns, by their order as unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternRange {
    /// Smallest pattern.
    pub low: u128,
    /// Largest pattern.
    pub high: u128,
}

struct Ranges<'a> {
    section: &'a NodeSection,
    /// The lower ends, for values that are known.
    low: Vec<[u128; 1]>,
    all: Vec<PatternRange>,
}

fn exactly(value: u128) -> PatternRange {
    PatternRange { low: value, high: value }
}

fn full(ty: ValueType) -> PatternRange {
    PatternRange { low: 0, high: ty.mask() }
}

fn bit(holds: Option<bool>) -> PatternRange {
    holds.map_or(PatternRange { low: 0, high: 1 }, |bit| exactly(bit.into()))
}

impl Ranges<'_> {
    fn of(&self, op: &Op, ty: ValueType) -> PatternRange {
        let mut known = true;
        op.operands(|a| known &= self.get(a).low == self.get(a).high);
        if known {
            let mut value = [0];
            apply(op, ty, self.section, &|id| &self.low[id.index()], &mut value);
            return exactly(value[0]);
        }
        let range = if ty.signed { None } else { self.unsigned(op, ty) };
        // A select and an AND give patterns of their operands, whatever the sign.
        let range = range.or_else(|| self.patterns(op));
        range.filter(|r| r.high <= ty.mask()).unwrap_or(full(ty))
    }

    fn get(&self, id: NodeId) -> PatternRange {
        self.all[id.index()]
    }

    /// Of any type: what is decided by one operand, or by patterns alone.
    fn patterns(&self, op: &Op) -> Option<PatternRange> {
        let zero = |id: NodeId| self.get(id).high == 0;
        Some(match op {
            Op::And(a, b) => PatternRange { low: 0, high: self.get(*a).high.min(self.get(*b).high) },
            Op::Or(a, b) | Op::Xor(a, b) | Op::Add(a, b) if zero(*a) => self.get(*b),
            Op::Or(a, b) | Op::Xor(a, b) | Op::Add(a, b) | Op::Sub(a, b) if zero(*b) => self.get(*a),
            Op::Mul(a, b) if zero(*a) || zero(*b) => exactly(0),
            Op::Select(c, a, b) => match (self.get(*c), self.get(*a), self.get(*b)) {
                (PatternRange { low: 1, .. }, a, _) => a,
                (PatternRange { high: 0, .. }, _, b) => b,
                (_, a, b) => PatternRange { low: a.low.min(b.low), high: a.high.max(b.high) },
            },
            Op::Eq(a, b) => {
                let (a, b) = (self.get(*a), self.get(*b));
                bit((a.high < b.low || b.high < a.low).then_some(false))
            }
            Op::Lt(a, b) if !self.section.ty(*a).signed => {
                let (a, b) = (self.get(*a), self.get(*b));
                bit(if a.high < b.low { Some(true) } else { (a.low >= b.high).then_some(false) })
            }
            _ => return None,
        })
    }

    /// Of unsigned types: by order. `None` where nothing is known, or a result might wrap.
    fn unsigned(&self, op: &Op, ty: ValueType) -> Option<PatternRange> {
        let both = |a: NodeId, b: NodeId, f: &dyn Fn(u128, u128) -> Option<u128>| {
            let (a, b) = (self.get(a), self.get(b));
            Some(PatternRange { low: f(a.low, b.low)?, high: f(a.high, b.high)? })
        };
        let map = |a: NodeId, f: &dyn Fn(u128) -> u128| {
            let a = self.get(a);
            Some(PatternRange { low: f(a.low), high: f(a.high) })
        };
        match op {
            Op::Add(a, b) => both(*a, *b, &u128::checked_add),
            Op::Mul(a, b) => both(*a, *b, &u128::checked_mul),
            Op::Min(a, b) => both(*a, *b, &|x, y| Some(x.min(y))),
            Op::Max(a, b) => both(*a, *b, &|x, y| Some(x.max(y))),
            Op::Clamp(a, cap) => map(*a, &|x| x.min(*cap)),
            Op::Isqrt(a) => map(*a, &u128::isqrt),
            Op::Shr(a, k) => map(*a, &|x| x >> k),
            Op::Cast(a) if !self.section.ty(*a).signed => {
                map(*a, &|x| x).filter(|range| range.high <= ty.mask())
            }
            Op::Div(a, b) if self.get(*b).low > 0 => {
                let (a, b) = (self.get(*a), self.get(*b));
                Some(PatternRange { low: a.low / b.high, high: a.high / b.low })
            }
            Op::Lookup(l) => {
                let most = |ids: &[NodeId]| ids.iter().map(|id| self.get(*id).high).max().unwrap_or(0);
                // No threshold is above `after`: the window is empty.
                let empty = most(&l.keys) <= self.get(l.after).low;
                Some(PatternRange { low: 0, high: if empty { 0 } else { most(&l.values) } })
            }
            _ => None,
        }
    }
}
