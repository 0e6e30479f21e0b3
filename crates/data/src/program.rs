//! Columns of a user's own program, as one party's file holds them.

use super::complaints::Complaints;
use super::gather::{LineReader, SpoolRoom, gather};
use super::keys::KeyColumns;
use super::source::DataLocation;
use super::table::{Files, RowPlace, RowSink, TableCell};
use super::tag::{DataSet, RowBytes};
use super::{InputReport, Row, RowKeys, RowShape, RowStore, Rows, repeated, retain};
use ::program::{Program, ValueType};
use base::Error;
use study::time::Clock;
use study::{Categories, CellType, Duplicates, ProgramColumn, ProgramSource, Question, Study};

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

impl ProgramRows {
    /// Appends a row's cells, eight bytes for each.
    pub(crate) fn append_cells(&self, row: usize, into: &mut Vec<u8>) {
        self.columns.iter().for_each(|column| into.extend(column[row].to_le_bytes()));
    }

    /// Adds a further row's cells; none where these are of no row.
    pub(crate) fn push_cells(&mut self, cells: &[u8]) -> Option<()> {
        let (cells, rest) = cells.as_chunks();
        let fits = cells.len() == self.columns.len() && rest.is_empty();
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(i64::from_le_bytes(*cell)));
        fits.then_some(())
    }

    pub(crate) fn memory(&self) -> u64 {
        self.identifiers.memory() + self.columns.iter().map(|c| 8 * c.capacity() as u64).sum::<u64>()
    }
}

/// Reads the columns of a program study that `party` owns.
///
/// # Errors
/// Everything that is wrong with the input, a line each, cells that do not fit their type in the program
/// among it; or that the study is no program study, or its program does not parse.
pub(crate) fn read(
    data: DataLocation<'_>,
    study: &Study,
    party: &str,
    room: Option<&SpoolRoom<'_>>,
) -> Result<(RowStore, InputReport), Error> {
    let program = match &study.kind {
        Question::Program(own) => &own.source,
        Question::Match(columns) => columns,
        Question::Lift(_) => return Err(Error::misuse("only a program study has program columns")),
    };
    gather(data, Reading::new(study, program, party)?, room)
}

struct Reading<'a> {
    keys: KeyColumns<'a>,
    clock: Option<&'a Clock>,
    own: Vec<Own<'a>>,
    rule: Duplicates,
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
    fn new(study: &'a Study, program: &'a ProgramSource, party: &str) -> Result<Self, Error> {
        let mut keys = KeyColumns::new(&study.matching.identifiers);
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
        Ok(Self { keys, clock: program.clock.as_ref(), own, rule: study.matching.duplicates, rows })
    }
}

impl LineReader for Reading<'_> {
    fn keys(&self) -> &KeyColumns<'_> {
        &self.keys
    }

    fn shape(&self) -> RowShape {
        RowShape::Program { names: self.rows.names.clone() }
    }

    fn bytes(&self) -> u64 {
        self.keys.bytes() + (8 * self.rows.columns.len() * self.keys.places.len()) as u64
    }

    fn append_line(&self, line: usize, into: &mut Vec<u8>) {
        self.rows.append_cells(line, into);
    }

    fn push_line(&mut self, identifier: &[u8], place: RowPlace, cells: &[u8]) -> Option<()> {
        self.keys.push(identifier, place);
        self.rows.push_cells(cells)
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.rows.columns.iter_mut().for_each(Vec::clear);
    }

    fn settle(&mut self, files: &Files, complaints: &mut Complaints, report: &mut InputReport) -> Rows {
        let rule = self.rule;
        let keep = self.keys.settle(rule, files, |_, [here, there]| {
            if rule != Duplicates::First {
                complaints.add_placed(here, || repeated(files, here, there, "duplicates = \"first\""));
            }
        });
        let mut columns: Vec<_> = self.rows.columns.iter_mut().map(std::mem::take).collect();
        if let Some(keep) = keep {
            report.duplicates_dropped += keep.iter().filter(|&&keep| !keep).count() as u64;
            columns.iter_mut().for_each(|column| retain(column, &keep));
        }
        Rows::Program(ProgramRows { identifiers: self.keys.take(), names: self.rows.names.clone(), columns })
    }

    fn finish(&mut self, _: DataLocation<'_>, _: u64, report: &mut InputReport) -> Result<(), Error> {
        report.identifiers = std::mem::take(&mut self.keys.reports);
        Ok(())
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
