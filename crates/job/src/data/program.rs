//! Columns of a user's own program, as one party's file holds them.

use super::complaints::Complaints;
use super::report::DataHasher;
use super::table::{Cell, Files, Place, Sink, read};
use super::{DataHash, Identifiers, InputReport, Row, retain, want};
use crate::study::{Categories, CellType, Duplicates, Identifier, Kind, ProgramColumn, ProgramStudy, Study};
use crate::time::Clock;
use ::program::{Program, Type};
use base::{Error, limits};
use std::path::Path;

/// One party's columns of a program, a row per identifier in the order of the files. It does not print.
#[derive(Default)]
pub struct ProgramRows {
    /// Normalised identifiers, all different.
    pub identifiers: Identifiers,
    /// Names of the program's columns that this party owns, in order.
    pub names: Vec<String>,
    /// One vector of cells per name.
    pub columns: Vec<Vec<i64>>,
}

/// Reads the columns of a program study that `party` owns.
///
/// # Errors
/// Everything that is wrong with the input, a line each, cells that do not fit their type in the program among it; or
/// that the study is no program study, or its program does not parse.
pub fn read_program_columns(
    path: &Path,
    study: &Study,
    party: &str,
) -> Result<(ProgramRows, DataHash, InputReport), Error> {
    let Kind::Program(program) = &study.kind else {
        return Err(Error::misuse("only a program study has program columns"));
    };
    let mut sink = Reading::new(&study.matching.identifier, program, party)?;
    let mut complaints = Complaints::default();
    let (files, rows_read) = read(path, &mut sink, &mut complaints)?;
    let Reading { mut rows, places, .. } = sink;
    let mut report = InputReport { rows_read, ..InputReport::default() };
    let order = rows.identifiers.canonical_order();
    let mut keep = vec![true; rows.identifiers.len()];
    let same = |a: &u32, b: &u32| rows.identifiers.get(*a as usize) == rows.identifiers.get(*b as usize);
    for group in order.chunk_by(same) {
        for &row in &group[1..] {
            keep[row as usize] = false;
            let (here, there) = (places[row as usize], places[group[0] as usize]);
            if study.matching.duplicates != Duplicates::First {
                complaints.add(|| {
                    format!(
                        "{}: the same identifier as {}; remove one, or agree on duplicates = \"first\"",
                        files.show(here),
                        files.show_beside(there, here)
                    )
                });
            }
        }
    }
    complaints.finish()?;
    report.duplicates_dropped = keep.iter().filter(|&&keep| !keep).count() as u64;
    rows.identifiers.retain(&keep);
    rows.columns.iter_mut().for_each(|column| retain(column, &keep));
    report.rows_kept = rows.identifiers.len() as u64;
    report.memory =
        rows.identifiers.memory() + rows.columns.iter().map(|c| 8 * c.capacity() as u64).sum::<u64>();
    let hash = hash(&rows);
    Ok((rows, hash, report))
}

fn hash(rows: &ProgramRows) -> DataHash {
    let mut hasher = DataHasher::new("program");
    rows.names.iter().for_each(|name| hasher.bytes(name.as_bytes()));
    for row in rows.identifiers.canonical_order() {
        hasher.bytes(rows.identifiers.get(row as usize));
        rows.columns.iter().for_each(|column| hasher.number(column[row as usize].cast_unsigned()));
    }
    hasher.finish()
}

struct Reading<'a> {
    identifier: &'a Identifier,
    clock: Option<&'a Clock>,
    wanted: Vec<String>,
    own: Vec<Own<'a>>,
    rows: ProgramRows,
    places: Vec<Place>,
}

/// A column that this party owns.
struct Own<'a> {
    column: &'a ProgramColumn,
    /// Its place among the cells of a row.
    cell: usize,
    /// Its type in the program: what a cell must fit.
    ty: Type,
}

impl Own<'_> {
    /// The numbers that fit both the type and the columns of [`ProgramRows`].
    fn range(&self) -> (i64, i64) {
        let most = i64::try_from(self.ty.max()).unwrap_or(i64::MAX);
        (if self.ty.signed { -most - 1 } else { 0 }, most)
    }

    fn read(&self, row: &mut Row<'_>, clock: Option<&Clock>, cell: Cell<'_>) -> Option<i64> {
        let (least, most) = self.range();
        let name = &self.column.column;
        let value = match (&self.column.cell, clock) {
            (CellType::Time, Some(clock)) => row.time(name, clock, cell).map(i64::from),
            (CellType::Label(values), _) => {
                let categories = Categories { column: name.clone(), values: values.clone() };
                row.category(&categories, cell).map(i64::from)
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
    fn new(identifier: &'a Identifier, program: &'a ProgramStudy, party: &str) -> Result<Self, Error> {
        let types = Program::parse(&program.text)?.columns;
        let mut wanted = vec![identifier.name.clone()];
        let mut own = Vec::new();
        for column in program.columns.iter().filter(|column| column.party == party) {
            let ty = types.iter().find(|typed| typed.name == column.name).map(|typed| typed.ty);
            let ty =
                ty.ok_or_else(|| Error::input(format!("the program has no column {:?}", column.name)))?;
            own.push(Own { column, cell: want(&mut wanted, &column.column), ty });
        }
        let rows = ProgramRows {
            names: own.iter().map(|own| own.column.name.clone()).collect(),
            columns: vec![Vec::new(); own.len()],
            ..ProgramRows::default()
        };
        Ok(Self { identifier, clock: program.clock.as_ref(), wanted, own, rows, places: Vec::new() })
    }
}

impl Sink for Reading<'_> {
    fn columns(&self) -> Vec<String> {
        self.wanted.clone()
    }

    fn row(
        &mut self,
        files: &Files,
        place: Place,
        cells: &[Cell<'_>],
        complaints: &mut Complaints,
    ) -> Result<(), Error> {
        let mut row = Row { files, place, complaints };
        let identifier = row.identifier(self.identifier, cells[0]);
        let mut values = Vec::with_capacity(self.own.len());
        for own in &self.own {
            values.extend(own.read(&mut row, self.clock, cells[own.cell].trimmed()));
        }
        let Some(identifier) = identifier else { return Ok(()) };
        if values.len() < self.own.len() {
            return Ok(());
        }
        if self.places.len() >= u32::MAX as usize {
            return Err(Error::limit("rows of one side", self.places.len() as u64 + 1, limits::ROWS - 1));
        }
        self.rows.identifiers.push(identifier.as_bytes());
        self.rows.columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
        self.places.push(place);
        Ok(())
    }
}
