//! Operations on values of the row section that are counted in different things.
//!
//! Two values are compared, chosen between or added by the numbers that they hold. Of two lists, units or
//! scales these numbers say different things, so the operation is refused. `shl NAME 0` is the number alone.

use super::Parser;
use crate::names::quote;
use crate::{NodeId, Op};

impl Parser {
    /// Parts of one that a value is counted in: those of the columns that it is made of by operations that
    /// keep them, else 1.
    pub(super) fn scale(&mut self, value: NodeId) -> u32 {
        self.count_in();
        self.counted_in[value.index()].scale
    }

    /// The unit of a column that a value is, or is made of by operations that keep it.
    pub(super) fn unit(&mut self, value: NodeId) -> String {
        self.count_in();
        self.counted_in[value.index()].unit.to_string()
    }

    /// Refuses an operation on two values that are counted in different things.
    pub(super) fn check_operands(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Add(a, b) | Op::Sub(a, b) | Op::Min(a, b) | Op::Max(a, b) => self.check_alike(*a, *b),
            Op::Eq(a, b) | Op::Lt(a, b) | Op::Select(_, a, b) => self.check_alike(*a, *b),
            _ => Ok(()),
        }
    }

    /// Refuses two values that are counted in different things. A constant is in what it stands beside, and a
    /// value without scale and unit may be a number of parts that the text has computed.
    pub(super) fn check_alike(&mut self, a: NodeId, b: NodeId) -> Result<(), String> {
        if self.is_constant(a) || self.is_constant(b) {
            return Ok(());
        }
        self.count_in();
        let [a, b] = [a, b].map(|id| &self.counted_in[id.index()]);
        if let (Some(a), Some(b)) = (a.labels, b.labels) {
            self.check_labels(a, b)?;
        }
        let bare = "or write `shl NAME 0` of each, the whole number that is held";
        if a.scale > 1 && b.scale > 1 && a.scale != b.scale {
            let [a, b] = [a.scale, b.scale];
            return Err(format!(
                "one of these is counted in 1/{a}, the other one in 1/{b}: give both columns one scale, \
                 {bare}"
            ));
        }
        let named = !a.unit.is_empty() && !b.unit.is_empty();
        if a.scale == b.scale && a.unit != b.unit && (named || a.scale > 1) {
            let [a, b] = [a, b].map(|of| match &*of.unit {
                "" => "no unit".to_owned(),
                unit => format!("{unit:?}"),
            });
            return Err(format!(
                "one of these is counted in {a}, the other one in {b}: give both columns one unit, {bare}"
            ));
        }
        Ok(())
    }

    /// Refuses two columns whose labels are not the same list.
    fn check_labels(&self, a: u32, b: u32) -> Result<(), String> {
        let [a, b] = [a, b].map(|column| &self.program.columns[column as usize]);
        let [of_a, of_b] = [a, b].map(|column| column.cells.labels());
        if of_a == of_b {
            return Ok(());
        }
        let at = of_a.iter().zip(of_b).take_while(|(a, b)| a == b).count();
        let said = |labels: &[String]| labels.get(at).map_or("not there".to_owned(), |label| quote(label));
        let own = quote(of_a.first().map_or("", String::as_str));
        let (a, b, number) = (&a.name, &b.name, at + 1);
        let (of_a, of_b) = (said(of_a), said(of_b));
        Err(format!(
            "the labels of {a} and {b} are not one list: number {number} is {of_a} in the one, {of_b} in the \
             other; give both columns the same labels in the same order, or compare each with its own, as in \
             `const {own} {a}`"
        ))
    }

    fn is_constant(&self, value: NodeId) -> bool {
        self.program.row.is_constant(value)
    }

    fn count_in(&mut self) {
        self.program.count_rows_in(&mut self.counted_in);
    }
}
