//! The head of a text, and what it writes out in the other sections.

use super::{COLUMNS, Parser, Rows, TextFault, Tokens, number, pattern};
use crate::graph::Holder;
use crate::names::is_name;
use crate::{CellForm, CellKind, Class, ColumnSource, DEGREE, RowColumn, RowSet, ValueType};

impl Parser {
    pub(super) fn head(&mut self, word: &str, column: usize, t: &mut Tokens) -> Result<(), TextFault> {
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
                    format!(
                        "expected name, class, rows, party, degree, alone, column, row or ask, found {word:?}"
                    ),
                ));
            }
        }
        t.end()
    }

    fn head_party(&mut self, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
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
    fn reach(&mut self, word: &str, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
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

    fn column(&mut self, at: usize, t: &mut Tokens) -> Result<(), TextFault> {
        let name = t.parsed("a column's name", |n| is_name(n).then(|| n.to_owned()))?;
        let ty = t.parsed("a type such as bit, u32 or i64", ValueType::parse)?;
        let holder = self.holder(t)?;
        let mut column =
            RowColumn { name, ty, holder, source: ColumnSource::DATA, cells: CellForm::default() };
        while t.peek().is_some() {
            Self::attribute(&mut column, t)?;
        }
        if self.program.columns.len() == COLUMNS {
            return Err((at, format!("a program has at most {COLUMNS} columns")));
        }
        if self.program.columns.iter().any(|c| c.name == column.name) {
            return Err((at, format!("the column {:?} is named twice", column.name)));
        }
        self.program.columns.push(column);
        Ok(())
    }

    /// What stands behind a column's holder.
    fn attribute(column: &mut RowColumn, t: &mut Tokens) -> Result<(), TextFault> {
        let (word, at) = t.take("absent, present, scale, unit, labels, date or missing")?;
        let (ty, of_party) = (column.ty, column.holder.only().is_some());
        match word.as_str() {
            "absent" if of_party => {
                let fits = |n: &str| pattern(n, ty).filter(|n| n & !ty.mask() == 0);
                let absent = t.parsed(&format!("a number that fits {ty}"), fits)?;
                column.source = ColumnSource::Data { absent };
            }
            "present" if column.holder == Holder::Shared && ty == ValueType::BIT => {
                column.source = ColumnSource::Present;
            }
            "scale" => {
                let most = CellKind::SCALE;
                let scale = |n: &str| number(n)?.try_into().ok().filter(|n| (2..=most).contains(n));
                let scale = t.parsed("parts of one: 10 for a decimal place, 100 for two", scale)?;
                column.cells.kind = CellKind::Number(scale);
            }
            "labels" => {
                let mut labels = vec![t.string("a label")?];
                while t.is_string() {
                    labels.push(t.string("a label")?);
                }
                column.cells.kind = CellKind::Label(labels);
            }
            "date" => column.cells.kind = CellKind::Date,
            "unit" => column.cells.unit = t.string("a unit")?,
            "missing" if of_party => column.cells.missing = true,
            "absent" | "missing" => return Err((at, format!("{word:?} is said of one party's column"))),
            _ => {
                let text = "expected absent N, scale N, unit \"..\", labels \"..\" .., date, missing or, of \
                 a \
                            shared bit, present";
                return Err((at, format!("{text}; found {word:?}")));
            }
        }
        Ok(())
    }

    fn holder(&self, t: &mut Tokens) -> Result<Holder, TextFault> {
        let holder = match t.peek() {
            Some("public") => Holder::Public,
            Some("shared") => Holder::Shared,
            _ => return self.party(t).map(Holder::Party),
        };
        t.take("a holder")?;
        Ok(holder)
    }
}
