//! Values of the row section, with what is missing in them.
//!
//! A missing cell is a value of its own. Every operation on it gives a missing value, but for `select`, which
//! gives what it chooses; `known` asks, `default` replaces. Sums, lists and best rows pass it over. Like the
//! rows that a program is over, that is written out when a text is read: beside each value that may be
//! missing there is a bit that says whether it is known.

use super::{Parser, Rows, Stage, TextFault, Tokens, number, pattern};
use crate::graph::OpNode;
use crate::{NodeId, Op, RowColumn, RowFold, ValueType};
use base::PartyId;

impl Parser {
    /// The value that a line of the row section defines.
    pub(super) fn row_value(&mut self, op: &str, at: usize, t: &mut Tokens) -> Result<NodeId, TextFault> {
        match op {
            "present" => self.party(t).map(|party| self.present(party)),
            "matched" => self.matched(at),
            "given" => {
                let column = self.column_of(t, "a column with `missing`, named above")?;
                self.given(column).ok_or_else(|| (at, "no cell of that column is missing".into()))
            }
            "cell" => {
                let column = self.column_of(t, "a column named above")?;
                let ty = self.program.columns[column as usize].ty;
                Ok(self.push_row(Op::Column(column), ty))
            }
            "column" => {
                let column = self.column_of(t, "a column named above")?;
                Ok(self.read_column(column))
            }
            "known" => {
                let value = self.node(t)?;
                Ok(match self.known.get(&value) {
                    Some(known) => *known,
                    None => self.push_row(Op::Const(1), ValueType::BIT),
                })
            }
            "default" => {
                let (value, other) = (self.node(t)?, self.node(t)?);
                self.default_value(value, other, at)
            }
            "clamp" => self.clamp(at, t),
            _ => {
                let node = self.operation(op, at, t)?;
                self.push_checked(node, at)
            }
        }
    }

    fn column_of(&self, t: &mut Tokens, what: &str) -> Result<u32, TextFault> {
        let index = |n: &str| self.program.columns.iter().position(|c| c.name == n);
        t.parsed(what, index).map(|index| index as u32)
    }

    /// A node that has the types it should have; missing where an operand is.
    pub(super) fn push_checked(&mut self, node: OpNode, at: usize) -> Result<NodeId, TextFault> {
        let section = &self.program.row;
        self.program.check_node(&node, section, section.nodes.len(), true).map_err(|text| (at, text))?;
        self.check_operands(&node.op).map_err(|text| (at, text))?;
        let known = match &node.op {
            Op::Select(c, a, b) => self.known_of_choice(*c, [*a, *b]),
            op => {
                let mut operands = Vec::new();
                op.operands(|a| operands.push(a));
                self.all_known(&operands)
            }
        };
        let id = self.push_row(node.op, node.ty);
        self.known.extend(known.map(|known| (id, known)));
        Ok(id)
    }

    /// The bit that some values are all known; nothing where they always are.
    pub(super) fn all_known(&mut self, values: &[NodeId]) -> Option<NodeId> {
        let mut bits: Vec<NodeId> =
            values.iter().filter_map(|value| self.known.get(value)).copied().collect();
        bits.sort_unstable();
        bits.dedup();
        bits.into_iter().reduce(|a, b| self.push_row(Op::And(a, b), ValueType::BIT))
    }

    fn known_of_choice(&mut self, condition: NodeId, branches: [NodeId; 2]) -> Option<NodeId> {
        let of_branches = branches.map(|branch| self.known.get(&branch).copied());
        let chosen = match of_branches {
            [None, None] => None,
            [Some(a), Some(b)] if a == b => Some(a),
            _ => {
                let [a, b] = of_branches
                    .map(|known| known.unwrap_or_else(|| self.push_row(Op::Const(1), ValueType::BIT)));
                Some(self.push_row(Op::Select(condition, a, b), ValueType::BIT))
            }
        };
        let of_condition = self.known.get(&condition).copied();
        match (of_condition, chosen) {
            (Some(a), Some(b)) => Some(self.push_row(Op::And(a, b), ValueType::BIT)),
            (a, b) => a.or(b),
        }
    }

    /// The first value where it is known, else the second one.
    fn default_value(&mut self, value: NodeId, other: NodeId, at: usize) -> Result<NodeId, TextFault> {
        let [ty, of_other] = [value, other].map(|id| self.program.row.ty(id));
        if ty != of_other {
            return Err((at, format!("the value is {ty}, what stands for it {of_other}")));
        }
        self.check_alike(value, other).map_err(|text| (at, text))?;
        let Some(known) = self.known.get(&value).copied() else { return Ok(value) };
        let id = self.push_row(Op::Select(known, value, other), ty);
        if let Some(of_other) = self.known.get(&other).copied() {
            let either = self.push_row(Op::Or(known, of_other), ValueType::BIT);
            self.known.insert(id, either);
        }
        Ok(id)
    }

    /// `clamp a 100`, at most; `clamp a -50 50`, between.
    fn clamp(&mut self, at: usize, t: &mut Tokens) -> Result<NodeId, TextFault> {
        let value = self.node(t)?;
        let ty = self.program.row.ty(value);
        let end = |n: &str| n.parse::<i128>().ok().filter(|n| ty.pattern(*n).is_some());
        let what = format!("a number that {ty} holds");
        if t.peek_after(1).is_none() && !ty.signed {
            let cap = t.parsed("a number", number)?;
            return self.push_checked(OpNode { op: Op::Clamp(value, cap), ty }, at);
        }
        let (low, high) = (t.parsed(&what, end)?, t.parsed(&format!("the upper end, {what}"), end)?);
        if low > high {
            return Err((at, format!("{low} is above {high}: the lower end comes first")));
        }
        Ok(self.between(value, low, high))
    }

    /// A value no lower and no higher than two numbers that its type holds.
    pub(super) fn between(&mut self, value: NodeId, low: i128, high: i128) -> NodeId {
        let ty = self.program.row.ty(value);
        let known = self.known.get(&value).copied();
        let id = if !ty.signed && low == 0 {
            self.push_row(Op::Clamp(value, high.unsigned_abs()), ty)
        } else {
            let [low, high] = [low, high].map(|end| self.constant(end, ty));
            let above = self.push_row(Op::Max(value, low), ty);
            self.push_row(Op::Min(above, high), ty)
        };
        self.known.extend(known.map(|known| (id, known)));
        id
    }

    /// A constant that its type holds.
    pub(super) fn constant(&mut self, value: i128, ty: ValueType) -> NodeId {
        self.push_row(Op::Const(value as u128 & ty.mask()), ty)
    }

    /// `const 5 u8`, `const -5 i8`; or what a column holds for a cell: `const "low" dose`, `const 149.28
    /// spent`.
    pub(super) fn const_value(&self, t: &mut Tokens) -> Result<OpNode, TextFault> {
        let at = t.place();
        let cell =
            if t.is_string() { t.string("a cell")? } else { t.take("a number, or a cell of a column")?.0 };
        let (of, place) = t.take("a type such as u32, or a column")?;
        // A type comes first: canonical text means it, also where a column has such a name.
        let Some(ty) = ValueType::parse(&of) else {
            let column = self.program.columns.iter().find(|c| c.name == of);
            let column = column
                .ok_or_else(|| (place, format!("expected a type such as u32, or a column, found {of:?}")))?;
            let pattern = column.pattern(&cell).map_err(|text| (at, text))?;
            let pattern = pattern.ok_or_else(|| (at, "a missing cell is no constant".to_owned()))?;
            return Ok(OpNode { op: Op::Const(pattern), ty: column.ty });
        };
        let value = pattern(&cell, ty);
        let value =
            value.ok_or_else(|| (at, format!("expected a number that {ty} holds, found {cell:?}")))?;
        Ok(OpNode { op: Op::Const(value), ty })
    }

    /// The node of whether a party has the row.
    pub(super) fn present(&mut self, party: PartyId) -> NodeId {
        self.built_in(RowColumn::present(party, &self.program.parties[party.index()]))
    }

    /// The node of whether the cell of a column is not missing; nothing where none is.
    pub(super) fn given(&mut self, column: u32) -> Option<NodeId> {
        let of = &self.program.columns[column as usize];
        let (name, holder) = (of.cells.missing.then_some(&of.name)?, of.holder);
        let known = RowColumn::known(column, name, holder);
        Some(self.built_in(known))
    }

    /// The node of a column that no line declares.
    fn built_in(&mut self, column: RowColumn) -> NodeId {
        let columns = &mut self.program.columns;
        let index = columns.iter().position(|c| c.name == column.name).unwrap_or_else(|| {
            columns.push(column);
            columns.len() - 1
        }) as u32;
        if let Some(read) = self.built_in.get(&index) {
            return *read;
        }
        let node = self.push_row(Op::Column(index), ValueType::BIT);
        self.built_in.insert(index, node);
        node
    }

    /// The node of whether all parties have the row.
    pub(super) fn matched(&mut self, at: usize) -> Result<NodeId, TextFault> {
        if let Some(known) = self.matched {
            return Ok(known);
        }
        let bits: Vec<NodeId> =
            (0..self.program.parties.len() as u8).map(|party| self.present(PartyId(party))).collect();
        let all = bits.into_iter().reduce(|a, b| self.push_row(Op::And(a, b), ValueType::BIT));
        self.matched = all;
        all.ok_or_else(|| (at, "a program has a party".into()))
    }

    /// A node of the row section; of what a question is written out as, the one that is there already.
    pub(super) fn push_row(&mut self, op: Op, ty: ValueType) -> NodeId {
        let node = OpNode { op, ty };
        let asks = self.stage == Stage::Ask;
        if let Some(same) = self.written_out.get(&node).filter(|_| asks) {
            return *same;
        }
        let id = NodeId(self.program.row.nodes.len() as u32);
        if asks {
            self.written_out.insert(node.clone(), id);
        }
        self.program.row.nodes.push(node);
        self.program.names.row.push(None);
        id
    }

    /// A column's value, missing where its cell is.
    pub(super) fn read_column(&mut self, column: u32) -> NodeId {
        let ty = self.program.columns[column as usize].ty;
        let (value, given) = (self.push_row(Op::Column(column), ty), self.given(column));
        self.known.extend(given.map(|given| (value, given)));
        value
    }

    /// The bit that the program is over a row in which some values are known; nothing where it always is.
    pub(super) fn counts(&mut self, of: &[NodeId], at: usize) -> Result<Option<NodeId>, TextFault> {
        let known = self.all_known(of);
        let matched = match self.rows.unwrap_or(Rows::Matched) {
            Rows::Matched => Some(self.matched(at)?),
            Rows::Any | Rows::Aligned => None,
        };
        Ok(match (matched, known) {
            (Some(a), Some(b)) => Some(self.push_row(Op::And(a, b), ValueType::BIT)),
            (a, b) => a.or(b),
        })
    }

    /// What is summed, collected or decides: 0 in rows that the program is not over, and where one of some
    /// values is missing.
    pub(super) fn masked(&mut self, value: NodeId, of: &[NodeId], at: usize) -> Result<NodeId, TextFault> {
        let Some(counts) = self.counts(of, at)? else { return Ok(value) };
        let ty = self.program.row.ty(value);
        if ty == ValueType::BIT {
            return Ok(self.push_row(Op::And(counts, value), ty));
        }
        Ok(self.select(counts, value))
    }

    /// A value where a bit is set, else 0.
    pub(super) fn select(&mut self, bit: NodeId, value: NodeId) -> NodeId {
        let ty = self.program.row.ty(value);
        let zero = self.constant(0, ty);
        self.push_row(Op::Select(bit, value, zero), ty)
    }

    /// A sum of what is masked so.
    pub(super) fn sum(&mut self, value: NodeId, ty: ValueType, at: usize) -> Result<RowFold, TextFault> {
        Ok(RowFold::Sum { value: self.masked(value, &[value], at)?, ty })
    }
}
