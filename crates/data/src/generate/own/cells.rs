//! Cells that a column could hold.

use super::{FILTERED, Person};
use base::{Error, Rng};
use program::{CellKind, NodeId, Op, Program, RowColumn, ValueType};
use study::time::{Clock, date_of_days};
use study::{CellType, ProgramSource};

/// Numbers of which the program says nothing lie below it.
const MOST: i64 = 1000;
/// The last day that is made up: 2026-01-01.
const LAST_DAY: i64 = 20_454;

/// A column of a party's file.
pub(super) struct MadeColumn {
    pub name: String,
    pub maker: CellMaker,
    /// Whether cells may be missing.
    pub missing: bool,
    /// Of which event of a line it is.
    pub event: Option<u8>,
}

/// How its cells come about.
pub(super) enum CellMaker {
    /// A whole number between these.
    Whole(i64, i64),
    /// The same in parts of so many to one.
    Parts(i64, i64, u32),
    Bit,
    /// One of these.
    Label(Vec<String>),
    /// The same in all lines of a person.
    OfPerson(Vec<String>),
    /// A day between these, after 1970-01-01.
    Day(i64, i64),
    /// A time up to this one.
    Time(Clock, u32),
    /// Of an event: later on average in the test arm.
    Outcome(Clock),
    /// Test and control.
    Arm(String, String),
    /// This, or something else.
    Filter(String),
}

impl MadeColumn {
    pub fn new(name: &str, maker: CellMaker) -> Self {
        Self { name: name.to_owned(), maker, missing: false, event: None }
    }
}

/// A number from `low` to `high`.
fn between(low: i64, high: i64, rng: &mut Rng) -> i64 {
    let width = high.abs_diff(low).saturating_add(1);
    low.saturating_add_unsigned(rng.below(width))
}

impl CellMaker {
    pub fn cell(&self, person: &Person, rng: &mut Rng) -> String {
        match self {
            Self::Whole(low, high) => between(*low, *high, rng).to_string(),
            Self::Parts(low, high, scale) => parts(between(*low, *high, rng), *scale),
            Self::Bit => rng.below(2).to_string(),
            Self::Label(values) => values[rng.below(values.len() as u64) as usize].clone(),
            Self::OfPerson(values) => values[(person.draw % values.len() as u64) as usize].clone(),
            Self::Day(low, high) => date_of_days(between(*low, *high, rng)),
            Self::Time(clock, last) => clock.show(rng.below(u64::from(*last) + 1) as u32),
            Self::Outcome(clock) => {
                let first = if person.test { clock.span() / 4 } else { 0 };
                clock.show(between(first.into(), clock.span().into(), rng) as u32)
            }
            Self::Arm(test, control) => if person.test { test } else { control }.clone(),
            Self::Filter(passing) => match rng.below(FILTERED) {
                0 => format!("not {passing}"),
                _ => passing.clone(),
            },
        }
    }
}

/// A number of parts in decimals; whole, where parts have no decimals.
fn parts(value: i64, scale: u32) -> String {
    let scale = i64::from(scale);
    let found = (0..=9u32).find(|places| 10i64.pow(*places) % scale == 0);
    let Some(places) = found.filter(|places| *places > 0) else { return (value / scale).to_string() };
    let tens = 10i64.pow(places);
    let digits = i128::from(value.unsigned_abs()) * i128::from(tens / scale);
    let (whole, rest) = (digits / i128::from(tens), digits % i128::from(tens));
    format!("{}{whole}.{rest:0width$}", if value < 0 { "-" } else { "" }, width = places as usize)
}

/// The columns that a party owns.
pub(super) fn owned_columns(source: &ProgramSource, party: &str) -> Result<Vec<MadeColumn>, Error> {
    let program = Program::parse(&source.text)?;
    let own = source.columns.iter().filter(|column| column.party == party);
    own.map(|column| {
        let found = program.columns.iter().position(|typed| typed.name == column.name);
        let at = found.ok_or_else(|| Error::input(format!("the program has no column {:?}", column.name)))?;
        let typed = &program.columns[at];
        let maker = match (&column.cell, &source.clock) {
            (Some(CellType::Label(values)), _) => CellMaker::Label(values.clone()),
            (Some(CellType::Time), Some(clock)) => {
                let most = u32::try_from(typed.ty.max()).unwrap_or(u32::MAX);
                CellMaker::Time(*clock, clock.span().min(most))
            }
            _ => by_program(&program, at, typed),
        };
        let missing = typed.cells.missing;
        Ok(MadeColumn { missing, ..MadeColumn::new(&column.column, maker) })
    })
    .collect()
}

fn by_program(program: &Program, at: usize, typed: &RowColumn) -> CellMaker {
    let [low, high] = around(typed.ty, &compared(program, at as u32));
    match &typed.cells.kind {
        CellKind::Label(labels) => CellMaker::Label(labels.clone()),
        CellKind::Date => {
            let known = compared(program, at as u32).is_empty();
            let [low, high] = if known { range_of(typed.ty, 0, LAST_DAY) } else { [low, high] };
            CellMaker::Day(low, high)
        }
        CellKind::Number(1) if typed.ty == ValueType::BIT => CellMaker::Bit,
        CellKind::Number(1) => CellMaker::Whole(low, high),
        CellKind::Number(scale) => CellMaker::Parts(low, high, *scale),
    }
}

/// What fits a type, of these and all between them.
fn range_of(ty: ValueType, low: i64, high: i64) -> [i64; 2] {
    let most = i64::try_from(ty.max()).unwrap_or(i64::MAX);
    let least = if ty.signed { -most - 1 } else { 0 };
    [low, high].map(|end| end.clamp(least, most))
}

/// A range around some numbers, a little beyond them; of one number, from 0 to twice as much.
fn around(ty: ValueType, numbers: &[i64]) -> [i64; 2] {
    let (Some(low), Some(high)) = (numbers.iter().min(), numbers.iter().max()) else {
        return range_of(ty, 0, MOST - 1);
    };
    let (low, high) = match low == high {
        true => (0.min(low.saturating_mul(2)), 1.max(high.saturating_mul(2))),
        false => (*low, *high),
    };
    let beyond = high.saturating_sub(low) / 10;
    range_of(ty, low.saturating_sub(beyond), high.saturating_add(beyond))
}

/// Constants that a column is compared with or cut at.
fn compared(program: &Program, column: u32) -> Vec<i64> {
    let row = &program.row;
    // Which nodes hold the column's number, cut at most.
    let mut is_column = vec![false; row.nodes.len()];
    let mut found = Vec::new();
    let number = |id: NodeId| match row.node(id).op {
        Op::Const(pattern) => i64::try_from(row.ty(id).to_signed(pattern)).ok(),
        _ => None,
    };
    for (at, node) in row.nodes.iter().enumerate() {
        let mut pair = |a: NodeId, b: NodeId| {
            let constant = match [is_column[a.index()], is_column[b.index()]] {
                [true, _] => number(b),
                [_, true] => number(a),
                _ => None,
            };
            found.extend(constant);
            constant.is_some()
        };
        is_column[at] = match &node.op {
            Op::Column(number) => *number == column,
            Op::Cast(a) => is_column[a.index()],
            Op::Min(a, b) | Op::Max(a, b) => pair(*a, *b),
            Op::Clamp(a, most) if is_column[a.index()] => {
                found.extend(i64::try_from(*most));
                found.push(0);
                true
            }
            Op::Lt(a, b) | Op::Eq(a, b) => {
                pair(*a, *b);
                false
            }
            _ => false,
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_the_program_reads_them() {
        for (value, scale, text) in [
            (14_928, 100, "149.28"),
            (-5, 10, "-0.5"),
            (-105, 100, "-1.05"),
            (7, 4, "1.75"),
            (9, 3, "3"),
            (10, 3, "3"),
        ] {
            assert_eq!(parts(value, scale), text);
        }
    }

    #[test]
    fn numbers_lie_around_what_they_are_compared_with() {
        let text = "tacit-program/2\nname \"n\"\nclass exact\nparty a\nparty b\ncolumn x u16 a\ncolumn y i20 \
                    b\nrow\nx = column x\ny = column y\nl = const 29 u16\nh = lt l x\ncombine\ns = sum h \
                    u40\nrelease\nt = total s\nreveal t a \"t\"\n";
        let program = Program::parse(text).unwrap();
        assert_eq!(compared(&program, 0), [29]);
        assert_eq!(around(program.columns[0].ty, &[29]), [0, 63]);
        assert_eq!(around(program.columns[1].ty, &[]), [0, 999]);
        let ask = "tacit-program/2\nname \"n\"\nparty a\nparty b\ncolumn x i20 a scale 100\ncolumn y bit \
                   b\nask b rho 1/10\nby y\nmean of x between -50 450\n";
        let program = Program::parse(ask).unwrap();
        let known = compared(&program, 0);
        assert_eq!((known.iter().min(), known.iter().max()), (Some(&-5000), Some(&45_000)));
    }
}
