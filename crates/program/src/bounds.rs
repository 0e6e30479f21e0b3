//! Between which ends a program takes the cells of its columns.

use crate::graph::{NodeId, Op, Program};

/// Ends between which a column's cells are taken: what is beyond counts as the nearer end, and nobody but the
/// column's owner can tell how often that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnBound {
    /// The column, by its place in the program.
    pub column: usize,
    /// The lower end, where there is one.
    pub low: Option<i128>,
    /// The upper end.
    pub high: i128,
}

impl Program {
    /// The bounds that `clamp` and `between` put on columns themselves, each once, in the program's order.
    #[must_use]
    pub fn column_bounds(&self) -> Vec<ColumnBound> {
        let node = |id: &NodeId| &self.row.node(*id).op;
        let number = |id: &NodeId| match node(id) {
            Op::Const(pattern) => Some(self.row.ty(*id).to_signed(*pattern)),
            _ => None,
        };
        let column =
            |id: &NodeId| if let Op::Column(column) = node(id) { Some(*column as usize) } else { None };
        let bound = |op: &Op| match op {
            Op::Clamp(a, cap) => {
                let high = i128::try_from(*cap).unwrap_or(i128::MAX);
                Some(ColumnBound { column: column(a)?, low: None, high })
            }
            Op::Min(above, high) => {
                let Op::Max(a, low) = node(above) else { return None };
                Some(ColumnBound { column: column(a)?, low: number(low), high: number(high)? })
            }
            _ => None,
        };
        let mut bounds = Vec::new();
        for found in self.row.nodes.iter().filter_map(|node| bound(&node.op)) {
            if !bounds.contains(&found) {
                bounds.push(found);
            }
        }
        bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_columns_are_found_once() {
        const TEXT: &str = "tacit-program/2\nname \"Costs\"\nparty registry\nparty trial\n\
                            column cost i20 registry scale 100 unit \"EUR\"\ncolumn age u7 trial\n\
                            column dose u2 trial labels \"none\" \"low\"\nask trial rho 1\nby dose\n\
                            mean variance of cost between -50 450\nmean of age between 0 90\n\
                            mean of cost between -50 450\n";
        let program = Program::parse(TEXT).expect("a program");
        let cost = program.columns.iter().position(|column| column.name == "cost").expect("it is there");
        let age = program.columns.iter().position(|column| column.name == "age").expect("it is there");
        let bounds = program.column_bounds();
        let of = |column: usize, low: Option<i128>, high: i128| ColumnBound { column, low, high };
        assert_eq!(bounds, [of(cost, Some(-5_000), 45_000), of(age, None, 90)]);
    }
}
