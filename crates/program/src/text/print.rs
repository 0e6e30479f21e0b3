//! The canonical text.

use super::{BINARY, HEADER, list, same_kind};
use crate::graph::{Holder, NodeSection, RowFold, RowOrder};
use crate::names::quote;
use crate::{CellForm, CellKind, Class, ColumnSource, NodeId, Op, Program, RowSet, ValueType};
use std::fmt::Write;

impl Program {
    /// The canonical text. Parsing it gives an equal program.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut t = format!("{HEADER}\nname {}\n", quote(&self.name));
        let class = if self.class == Class::Dp { "dp" } else { "exact" };
        let rows = if self.rows == RowSet::Any { "any" } else { "aligned" };
        let _ = writeln!(t, "class {class}\nrows {rows}");
        for party in &self.parties {
            let _ = writeln!(t, "party {party}");
        }
        for (party, degree) in self.parties.iter().zip(&self.degrees).filter(|(_, d)| **d != 1) {
            let _ = writeln!(t, "degree {party} {degree}");
        }
        for (party, rows) in self.parties.iter().zip(&self.alone).filter(|(_, d)| **d != 1) {
            let _ = writeln!(t, "alone {party} {rows}");
        }
        for c in self.columns.iter().filter(|c| !c.is_built_in()) {
            let holder = match c.holder {
                Holder::Public => "public",
                Holder::Shared => "shared",
                Holder::Party(p) => &self.parties[p.index()],
            };
            let source = match c.source {
                ColumnSource::Data { absent } if absent != 0 => format!(" absent {}", shown(absent, c.ty)),
                ColumnSource::Present => " present".to_owned(),
                ColumnSource::Data { .. } | ColumnSource::Known(_) => String::new(),
            };
            let _ = writeln!(t, "column {} {} {holder}{source}{}", c.name, c.ty, cells(&c.cells));
        }
        t.push_str("row\n");
        self.print_section(&mut t, &self.row);
        t.push_str("combine\n");
        for (i, fold) in self.folds.iter().enumerate() {
            let _ = match fold {
                RowFold::Sum { value, ty } => writeln!(t, "f{i} = sum v{} {ty}", value.0),
                RowFold::Best { order, key, valid, .. } => {
                    let word = if *order == RowOrder::Least { "least" } else { "greatest" };
                    writeln!(t, "f{i} = {word} v{} where v{}", key.0, valid.0)
                }
                RowFold::Collect { value } => writeln!(t, "f{i} = collect v{}", value.0),
            };
        }
        t.push_str("release\n");
        for (i, mechanism) in self.mechanisms.iter().enumerate() {
            let _ = writeln!(t, "m{i} = {}", mechanism.to_text(&self.parties));
        }
        self.print_section(&mut t, &self.release);
        for o in &self.outputs {
            let _ = writeln!(t, "reveal v{} {} {}", o.value.0, o.to.name(&self.parties), quote(&o.label));
        }
        for derived in &self.derived {
            let _ = writeln!(t, "{}", derived.to_text(&self.parties));
        }
        for l in &self.lists {
            let _ = writeln!(t, "reveal-rows f{} {} {}", l.fold, self.parties[l.to.index()], quote(&l.label));
        }
        t
    }

    fn print_section(&self, t: &mut String, section: &NodeSection) {
        for (i, node) in section.nodes.iter().enumerate() {
            let ids = |ids: &[NodeId]| list("v", ids.iter().map(|a| a.0));
            let plain = |name: &str, op: &Op| {
                let mut text = name.to_owned();
                op.operands(|a| text.push_str(&format!(" v{}", a.0)));
                text
            };
            let body = match &node.op {
                Op::Column(c) if self.columns[*c as usize].is_presence() => {
                    self.columns[*c as usize].name.clone()
                }
                Op::Column(c) if let ColumnSource::Known(of) = self.columns[*c as usize].source => {
                    format!("given {}", self.columns[of as usize].name)
                }
                Op::Column(c) if self.columns[*c as usize].cells.missing => {
                    format!("cell {}", self.columns[*c as usize].name)
                }
                Op::Column(c) => format!("column {}", self.columns[*c as usize].name),
                Op::Total(f) => format!("total f{f}"),
                Op::Index(f) => format!("index f{f}"),
                Op::Found(f) => format!("found f{f}"),
                Op::Noised(m, o) => format!("noised m{m} {o}"),
                Op::Const(value) => format!("const {} {}", shown(*value, node.ty), node.ty),
                Op::Popcount(a) => format!("popcount v{} {}", a.0, node.ty),
                Op::Cast(a) => format!("cast v{} {}", a.0, node.ty),
                Op::Shl(a, k) => format!("shl v{} {k}", a.0),
                Op::Shr(a, k) => format!("shr v{} {k}", a.0),
                Op::Clamp(a, cap) => format!("clamp v{} {cap}", a.0),
                Op::Lookup(l) => {
                    let until = l.until.map_or(String::new(), |u| format!(" until v{}", u.0));
                    format!(
                        "lookup after v{}{until} keys{} values{}",
                        l.after.0,
                        ids(&l.keys),
                        ids(&l.values)
                    )
                }
                Op::Not(_) => plain("not", &node.op),
                Op::Isqrt(_) => plain("isqrt", &node.op),
                op => plain(BINARY.iter().find(|(_, make)| same_kind(op, make)).expect("listed").0, op),
            };
            let _ = writeln!(t, "v{i} = {body}");
        }
    }
}

/// The number that a bit pattern is.
fn shown(pattern: u128, ty: ValueType) -> String {
    ty.number(pattern).map_or_else(|| pattern.to_string(), |number| number.to_string())
}

/// What a column line says of its cells.
fn cells(form: &CellForm) -> String {
    let mut text = match &form.kind {
        CellKind::Number(1) => String::new(),
        CellKind::Number(scale) => format!(" scale {scale}"),
        CellKind::Label(labels) => {
            labels.iter().fold(" labels".to_owned(), |text, label| text + " " + &quote(label))
        }
        CellKind::Date => " date".to_owned(),
    };
    if !form.unit.is_empty() {
        text.push_str(&format!(" unit {}", quote(&form.unit)));
    }
    if form.missing {
        text.push_str(" missing");
    }
    text
}
