//! The head of a text, and what it writes out in the other sections.

use super::{COLUMNS, Fault, Parser, Rows, Tokens, number};
use crate::graph::{Holder, OpNode};
use crate::names::is_name;
use crate::{Class, ColumnSource, DEGREE, NodeId, Op, RowColumn, RowSet, ValueType};
use base::PartyId;

impl Parser {
    pub(super) fn head(&mut self, word: &str, column: usize, t: &mut Tokens) -> Result<(), Fault> {
        let again = match word {
            "name" => std::mem::replace(&mut self.named, true),
            "class" => std::mem::replace(&mut self.classed, true),
            "rows" => self.rows.is_some(),
            _ => false,
        };
        if again {
            let is = if word == "rows" { "are" } else { "is" };
            return Err((column, format!("the {word} {is} given twice")));
        }
        match word {
            "name" => self.program.name = t.string("the program's name")?,
            "class" => {
                let class = |c: &str| match c {
                    "dp" => Some(Class::Dp),
                    "exact" => Some(Class::Exact),
                    _ => None,
                };
                self.program.class = t.parsed("dp or exact", class)?;
            }
            "rows" => {
                let rows = |r: &str| match r {
                    "matched" => Some(Rows::Matched),
                    "any" => Some(Rows::Any),
                    "aligned" => Some(Rows::Aligned),
                    _ => None,
                };
                let rows = t.parsed("matched, any or aligned", rows)?;
                self.rows = Some(rows);
                self.program.rows = if rows == Rows::Aligned { RowSet::Aligned } else { RowSet::Any };
            }
            "party" => self.head_party(column, t)?,
            "degree" | "alone" => self.reach(word, column, t)?,
            "column" => self.column(column, t)?,
            _ => {
                return Err((
                    column,
                    format!("expected name, class, rows, party, degree, column or row, found {word:?}"),
                ));
            }
        }
        t.end()
    }

    fn head_party(&mut self, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let name = t.parsed("a party's name", |n| is_name(n).then(|| n.to_owned()))?;
        if self.program.parties.contains(&name) || name == "public" || name == "shared" {
            return Err((at, format!("the party {name:?} is named twice or reserved")));
        }
        self.program.parties.push(name);
        self.program.degrees.push(1);
        self.program.alone.push(1);
        Ok(())
    }

    /// How many rows one of a party's reaches, joined or alone.
    fn reach(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let party = self.party(t)?;
        let plain = |n: &str| !n.starts_with('0') && n.bytes().all(|b| b.is_ascii_digit());
        let read = |n: &str| n.parse().ok().filter(|d| plain(n) && (2..=DEGREE).contains(d));
        let number = t.parsed("a number of rows, 2 to 65536", read)?;
        let (all, what) = match word {
            "degree" => (&mut self.program.degrees, "degree"),
            _ => (&mut self.program.alone, "number of rows alone"),
        };
        if std::mem::replace(&mut all[party.index()], number) != 1 {
            return Err((at, format!("this party's {what} is given twice")));
        }
        Ok(())
    }

    fn column(&mut self, at: usize, t: &mut Tokens) -> Result<(), Fault> {
        let name = t.parsed("a column's name", |n| is_name(n).then(|| n.to_owned()))?;
        let ty = t.parsed("a type such as bit, u32 or i64", ValueType::parse)?;
        let holder = self.holder(t)?;
        let source = Self::source(holder, ty, t)?;
        if self.program.columns.len() == COLUMNS {
            return Err((at, format!("a program has at most {COLUMNS} columns")));
        }
        if self.program.columns.iter().any(|c| c.name == name) {
            return Err((at, format!("the column {name:?} is named twice")));
        }
        self.program.columns.push(RowColumn { name, ty, holder, source });
        Ok(())
    }

    fn holder(&self, t: &mut Tokens) -> Result<Holder, Fault> {
        let holder = match t.peek() {
            Some("public") => Holder::Public,
            Some("shared") => Holder::Shared,
            _ => return self.party(t).map(Holder::Party),
        };
        t.take("a holder")?;
        Ok(holder)
    }

    /// What a column line ends in: `absent N`, or of a shared bit `present`, or nothing.
    fn source(holder: Holder, ty: ValueType, t: &mut Tokens) -> Result<ColumnSource, Fault> {
        match (t.peek(), holder) {
            (Some("absent"), Holder::Party(_)) => {
                t.take("absent")?;
                let fits = |n: &str| number(n).filter(|n| n & !ty.mask() == 0);
                Ok(ColumnSource::Data { absent: t.parsed(&format!("a number that fits {ty}"), fits)? })
            }
            (Some("present"), Holder::Shared) if ty == ValueType::BIT => {
                t.take("present")?;
                Ok(ColumnSource::Present)
            }
            _ => Ok(ColumnSource::DATA),
        }
    }

    /// The node of whether a party has the row.
    pub(super) fn present(&mut self, party: PartyId) -> NodeId {
        let column = RowColumn::present(party, &self.program.parties[party.index()]);
        let columns = &mut self.program.columns;
        let index = columns.iter().position(|c| c.name == column.name).unwrap_or_else(|| {
            columns.push(column);
            columns.len() - 1
        }) as u32;
        if let Some(known) = self.present.get(&index) {
            return *known;
        }
        let node = self.push_row(Op::Column(index), ValueType::BIT);
        self.present.insert(index, node);
        node
    }

    /// The node of whether all parties have the row.
    pub(super) fn matched(&mut self, at: usize) -> Result<NodeId, Fault> {
        if let Some(known) = self.matched {
            return Ok(known);
        }
        let bits: Vec<NodeId> =
            (0..self.program.parties.len() as u8).map(|party| self.present(PartyId(party))).collect();
        let all = bits.into_iter().reduce(|a, b| self.push_row(Op::And(a, b), ValueType::BIT));
        self.matched = all;
        all.ok_or_else(|| (at, "a program has a party".into()))
    }

    pub(super) fn push_row(&mut self, op: Op, ty: ValueType) -> NodeId {
        self.program.row.nodes.push(OpNode { op, ty });
        self.program.names.row.push(None);
        NodeId(self.program.row.nodes.len() as u32 - 1)
    }

    /// What decides whether a row counts, in a program over the rows that all parties have: 0 in all others.
    pub(super) fn masked(&mut self, value: NodeId, at: usize) -> Result<NodeId, Fault> {
        if self.rows.unwrap_or(Rows::Matched) != Rows::Matched {
            return Ok(value);
        }
        let (matched, ty) = (self.matched(at)?, self.program.row.ty(value));
        if ty == ValueType::BIT {
            return Ok(self.push_row(Op::And(matched, value), ty));
        }
        let zero = self.push_row(Op::Const(0), ty);
        Ok(self.push_row(Op::Select(matched, value, zero), ty))
    }
}
