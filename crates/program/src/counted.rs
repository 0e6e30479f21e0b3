//! What values are counted in: parts of one, a unit, or places in a list of labels, as columns say. Sums and
//! noised values are in what their rows are in.

use crate::graph::{MechanismKind, NodeSection};
use crate::{NodeId, Op, Program};
use release::joint::Combination;
use std::sync::Arc;

/// What a value is counted in: that of the columns that it is made of by operations that keep it, else
/// nothing that could be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedIn {
    /// Parts of one.
    pub scale: u32,
    /// Empty where no column says one.
    pub unit: Arc<str>,
    /// The column that has its labels.
    pub(crate) labels: Option<u32>,
}

impl CountedIn {
    fn nothing() -> Self {
        Self { scale: 1, unit: "".into(), labels: None }
    }
}

impl NodeSection {
    pub(crate) fn is_constant(&self, value: NodeId) -> bool {
        matches!(self.node(value).op, Op::Const(_))
    }

    /// Goes on with what the nodes are counted in, `leaf` being that of what comes from outside the section.
    fn count_in(&self, counted: &mut Vec<CountedIn>, leaf: impl Fn(&Op) -> CountedIn) {
        for id in counted.len()..self.nodes.len() {
            let next = self.counted_by(&self.nodes[id].op, counted, &leaf);
            counted.push(next);
        }
    }

    fn counted_by(&self, op: &Op, counted: &[CountedIn], leaf: impl Fn(&Op) -> CountedIn) -> CountedIn {
        let of = |id: &NodeId| counted[id.index()].clone();
        // A constant is in what it stands beside.
        let of_both = |a: &NodeId, b: &NodeId| match (self.is_constant(*a), self.is_constant(*b)) {
            (true, _) => of(b),
            (_, true) => of(a),
            _ => {
                let [a, b] = [of(a), of(b)];
                let labels = a.labels.filter(|_| b.labels.is_some());
                match (a.scale, &a.unit) == (b.scale, &b.unit) {
                    true => CountedIn { labels, ..a },
                    false => CountedIn { labels, ..CountedIn::nothing() },
                }
            }
        };
        match op {
            op if op.is_leaf() => leaf(op),
            Op::Clamp(a, _) | Op::Cast(a) => of(a),
            Op::Min(a, b) | Op::Max(a, b) | Op::Select(_, a, b) => of_both(a, b),
            Op::Add(a, b) | Op::Sub(a, b) => CountedIn { labels: None, ..of_both(a, b) },
            _ => CountedIn::nothing(),
        }
    }
}

impl Program {
    /// Goes on with what the values of the row section are counted in.
    pub(crate) fn count_rows_in(&self, counted: &mut Vec<CountedIn>) {
        self.row.count_in(counted, |op| match op {
            Op::Column(c) => {
                let cells = &self.columns[*c as usize].cells;
                let labels = (!cells.labels().is_empty()).then_some(*c);
                CountedIn { scale: cells.scale(), unit: cells.unit.as_str().into(), labels }
            }
            _ => CountedIn::nothing(),
        });
    }

    /// What the values of the release section are counted in, node by node: sums, best keys and noised sums
    /// in what their rows are, and squares, products and quotients in nothing that a column says.
    #[must_use]
    pub fn counted_in(&self) -> Vec<CountedIn> {
        let (mut rows, mut counted) = (Vec::new(), Vec::new());
        self.count_rows_in(&mut rows);
        let of_fold = |fold: u32| rows[self.folds[fold as usize].value().index()].clone();
        self.release.count_in(&mut counted, |op| match op {
            Op::Total(fold) => of_fold(*fold),
            Op::Noised(mechanism, output) => match &self.mechanisms[*mechanism as usize].kind {
                MechanismKind::Gaussian(folds) => of_fold(folds[*output as usize]),
                kind => match kind.combination(*output) {
                    Some((Combination::Rows, [n, _, _])) => of_fold(n),
                    Some((Combination::Value | Combination::Centred, [_, s, _])) => of_fold(s),
                    _ => CountedIn::nothing(),
                },
            },
            _ => CountedIn::nothing(),
        });
        counted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums, noise and differences stay in hundredths of a unit; counts, products and sums of two units are
    /// in nothing that can be said.
    #[test]
    fn released_values_are_in_what_their_rows_are() {
        let program = Program::parse(
            "tacit-program/2\nname \"n\"\nclass dp\nrows any\nparty a\nparty b\n\
             column spent u16 b scale 100 unit \"EUR\"\ncolumn days u16 b unit \"days\"\n\
             column ill bit a\nrow\nspent = column spent\ndays = column days\nill = column ill\n\
             zero = const 0 u16\nmost = clamp spent 500\nof-ill = select ill most zero\n\
             short = clamp days 30\nof-days = select ill short zero\nparts = shl of-ill 0\n\
             combine\ns = sum of-ill u48\nd = sum of-days u48\nn = sum ill u40\np = sum parts u48\n\
             release\nm = gaussian a 1/8 s\nk = gaussian a 1/8 d\no = gaussian a 1/8 p\n\
             t = noised m 0\nu = noised k 0\nv = noised o 0\nw = sub t u\nx = mul t t\n\
             two = const 2 i56\ny = add t two\nz = total n\n\
             reveal t a \"t\"\nreveal u a \"u\"\nreveal v a \"v\"\nreveal w a \"w\"\nreveal x a \"x\"\n\
             reveal y a \"y\"\nreveal z a \"z\"\n",
        )
        .expect("a program");
        let counted = program.counted_in();
        let told = |label: &str| {
            let output = program.outputs.iter().find(|output| output.label == label).expect("an output");
            let CountedIn { scale, unit, .. } = &counted[output.value.index()];
            format!("1/{scale} {unit}")
        };
        let of = ["t", "u", "v", "w", "x", "y", "z"].map(told);
        assert_eq!(of, ["1/100 EUR", "1/1 days", "1/1 ", "1/1 ", "1/1 ", "1/100 EUR", "1/1 "]);
    }
}
