//! Columns of a user's own program, as one party's file holds them.

use super::complaints::Complaints;
use super::keys::KeyColumns;
use super::source::DataLocation;
use super::table::{RowSink, TableCell, read};
use super::tag::{DataSet, RowBytes};
use super::{InputReport, Row, RowKeys, repeated, retain};
use ::program::{Program, ValueType};
use base::Error;
use study::time::Clock;
use study::{Categories, CellType, Duplicates, Identifier, ProgramColumn, ProgramSource, Question, Study};

/// One party's columns of a program, a row per identifier in the order of the files. It does not print.
#[derive(Default)]
pub struct ProgramRows {
    /// Normalised identifiers, all different.
    pub identifiers: RowKeys,
    /// Names of the program's columns that this party owns, in order.
    pub names: Vec<String>,
    /// One vector of cells per name.
    pub columns: Vec<Vec<i64>>,
}

impl DataSet for ProgramRows {
    fn head(&self, into: &mut RowBytes) {
        into.bytes(b"program");
        self.names.iter().for_each(|name| into.bytes(name.as_bytes()));
    }

    fn identifiers(&self) -> &RowKeys {
        &self.identifiers
    }

    fn cells(&self, row: usize, into: &mut RowBytes) {
        self.columns.iter().for_each(|column| into.number(column[row].cast_unsigned()));
    }
}

/// Reads the columns of a program study that `party` owns.
///
/// # Errors
/// Everything that is wrong with the input, a line each, cells that do not fit their type in the program
/// among it; or that the study is no program study, or its program does not parse.
pub fn read_program_columns<'a>(
    data: impl Into<DataLocation<'a>>,
    study: &Study,
    party: &str,
) -> Result<(ProgramRows, InputReport), Error> {
    let program = match &study.kind {
        Question::Program(own) => &own.source,
        Question::Match(columns) => columns,
        Question::Lift(_) => return Err(Error::misuse("only a program study has program columns")),
    };
    let mut sink = Reading::new(&study.matching.identifiers, program, party)?;
    let mut complaints = Complaints::default();
    let (files, rows_read) = read(data.into(), &mut sink, &mut complaints)?;
    let Reading { mut rows, mut keys, .. } = sink;
    let mut report = InputReport { rows_read, ..InputReport::default() };
    let rule = study.matching.duplicates;
    let keep = keys.settle(rule, &files, complaints, |_, [here, there], complaints| {
        if rule != Duplicates::First {
            complaints.add(|| repeated(&files, here, there, "duplicates = \"first\""));
        }
    })?;
    if let Some(keep) = keep {
        report.duplicates_dropped = keep.iter().filter(|&&keep| !keep).count() as u64;
        rows.columns.iter_mut().for_each(|column| retain(column, &keep));
    }
    (rows.identifiers, report.identifiers) = (keys.identifiers, keys.reports);
    report.rows_kept = rows.identifiers.len() as u64;
    report.memory =
        rows.identifiers.memory() + rows.columns.iter().map(|c| 8 * c.capacity() as u64).sum::<u64>();
    Ok((rows, report))
}

struct Reading<'a> {
    keys: KeyColumns<'a>,
    clock: Option<&'a Clock>,
    own: Vec<Own<'a>>,
    rows: ProgramRows,
}

/// A column that this party owns.
struct Own<'a> {
    column: &'a ProgramColumn,
    /// Its place among the cells of a row.
    cell: usize,
    /// Its type in the program: what a cell must fit.
    ty: ValueType,
}

impl Own<'_> {
    /// The numbers that fit both the type and the columns of [`ProgramRows`].
    fn range(&self) -> (i64, i64) {
        let most = i64::try_from(self.ty.max()).unwrap_or(i64::MAX);
        (if self.ty.signed { -most - 1 } else { 0 }, most)
    }

    fn read(&self, row: &mut Row<'_>, clock: Option<&Clock>, cell: TableCell<'_>) -> Option<i64> {
        let (least, most) = self.range();
        let name = &self.column.column;
        let value = match (&self.column.cell, clock) {
            (CellType::Time, Some(clock)) => row.time(name, clock, cell).map(i64::from),
            (CellType::Label(values), _) => {
                let categories = Categories { column: name.clone(), values: values.clone() };
                // From 1: an absent row has 0.
                row.category(&categories, cell).map(|index| i64::from(index) + 1)
            }
            _ => return row.integer(name, cell, least, most),
        }?;
        if value > most {
            let ty = self.ty;
            row.complain(name, || {
                format!(
                    "{} is {value} in the program, whose type {ty} goes to {most}; widen it",
                    cell.shown()
                )
            });
            return None;
        }
        Some(value)
    }
}

impl<'a> Reading<'a> {
    fn new(identifiers: &'a [Identifier], program: &'a ProgramSource, party: &str) -> Result<Self, Error> {
        let mut keys = KeyColumns::new(identifiers);
        let types = Program::parse(&program.text)?.columns;
        let mut own = Vec::new();
        for column in program.columns.iter().filter(|column| column.party == party) {
            let ty = types.iter().find(|typed| typed.name == column.name).map(|typed| typed.ty);
            let ty =
                ty.ok_or_else(|| Error::input(format!("the program has no column {:?}", column.name)))?;
            own.push(Own { column, cell: keys.want(&column.column), ty });
        }
        let rows = ProgramRows {
            identifiers: RowKeys::default(),
            names: own.iter().map(|own| own.column.name.clone()).collect(),
            columns: vec![Vec::new(); own.len()],
        };
        Ok(Self { keys, clock: program.clock.as_ref(), own, rows })
    }
}

impl RowSink for Reading<'_> {
    fn columns(&self) -> Vec<String> {
        self.keys.wanted.clone()
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        let identified = self.keys.read(row, cells);
        let mut values = Vec::with_capacity(self.own.len());
        for own in &self.own {
            values.extend(own.read(row, self.clock, cells[own.cell].trimmed()));
        }
        if !identified || values.len() < self.own.len() {
            return Ok(());
        }
        self.keys.keep(row.place)?;
        self.rows.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        Ok(())
    }
}
