//! Columns of a user's own program, as one party's file holds them.

use super::complaints::Complaints;
use super::gather::{LineReader, SpoolRoom, gather};
use super::keys::KeyColumns;
use super::report::ColumnReport;
use super::source::DataLocation;
use super::table::{Files, RowPlace, RowSink, TableCell};
use super::tag::{DataSet, RowBytes};
use super::time_cells::TimeReport;
use super::{InputReport, Row, RowKeys, RowShape, RowStore, Rows, dates, numbers, repeated, retain};
use ::program::{CellForm, CellKind, ColumnBound, ColumnSource, Program, RowColumn, ValueType};
use base::Error;
use study::format::InputFormat;
use study::time::Clock;
use study::{Categories, CellType, Duplicates, ProgramColumn, ProgramSource, Question, Study};

/// One party's columns of a program, a row per identifier in the order of the files. It does not print.
#[derive(Clone, Default)]
pub struct ProgramRows {
    /// Normalised identifiers, all different.
    pub identifiers: RowKeys,
    /// Names of the program's columns that this party owns, in order: those of its files, and behind them the
    /// bits that cells of some of these are not missing.
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
    gather(data, Reading::new(study, source(study)?, party)?, room)
}

fn source(study: &Study) -> Result<&ProgramSource, Error> {
    match &study.kind {
        Question::Program(own) => Ok(&own.source),
        Question::Match(columns) => Ok(columns),
        Question::Lift(_) => Err(Error::misuse("only a program study has program columns")),
    }
}

/// The columns that a party owns, and those of the program that tell which of their cells are not missing.
struct Owned<'a> {
    columns: Vec<(&'a ProgramColumn, RowColumn)>,
    known: Vec<(usize, RowColumn)>,
    /// Between which ends the program takes some of them.
    bounds: Vec<(usize, ColumnBound)>,
}

impl<'a> Owned<'a> {
    fn new(source: &'a ProgramSource, party: &str) -> Result<Self, Error> {
        let program = Program::parse(&source.text)?;
        let all = &program.columns;
        let mut columns = Vec::new();
        for column in source.columns.iter().filter(|column| column.party == party) {
            let typed = all.iter().find(|typed| typed.name == column.name).cloned();
            let typed =
                typed.ok_or_else(|| Error::input(format!("the program has no column {:?}", column.name)))?;
            columns.push((column, typed));
        }
        let known = all.iter().filter_map(|bit| {
            let ColumnSource::Known(of) = bit.source else { return None };
            let own = columns.iter().position(|(_, typed)| typed.name == all[of as usize].name)?;
            Some((own, bit.clone()))
        });
        let bounds = program.column_bounds().into_iter().filter_map(|bound| {
            let name = &all[bound.column].name;
            Some((columns.iter().position(|(_, typed)| typed.name == *name)?, bound))
        });
        Ok(Self { known: known.collect(), bounds: bounds.collect(), columns })
    }

    /// What is counted of cells: those that may be missing first.
    fn counted(&self) -> Vec<CellCount> {
        let of =
            |own: usize| ColumnReport { name: self.columns[own].1.name.clone(), ..ColumnReport::default() };
        let missing = self.known.iter().map(|(own, _)| CellCount { own: *own, ends: None, report: of(*own) });
        let bounded = self.bounds.iter().map(|(own, ColumnBound { low, high, .. })| {
            // A type without a sign has nothing below 0.
            let ends = [low.unwrap_or(0), *high];
            let scale = f64::from(self.columns[*own].1.cells.scale());
            let range = Some(ends.map(|end| end as f64 / scale));
            CellCount { own: *own, ends: Some(ends), report: ColumnReport { range, ..of(*own) } }
        });
        missing.chain(bounded).collect()
    }

    fn names(&self) -> Vec<String> {
        let bits = self.known.iter().map(|(_, bit)| bit);
        self.columns.iter().map(|(_, typed)| typed).chain(bits).map(|typed| typed.name.clone()).collect()
    }
}

/// Names of the columns of a party's rows ([`ProgramRows::names`]).
pub(crate) fn names(source: &ProgramSource, party: &str) -> Result<Vec<String>, Error> {
    Ok(Owned::new(source, party)?.names())
}

#[derive(Clone)]
struct Reading<'a> {
    keys: KeyColumns<'a>,
    clock: Option<&'a Clock>,
    own: Vec<Own<'a>>,
    /// Of which of these columns there is a bit that a cell is not missing.
    known: Vec<usize>,
    /// What of these is missing, or cut by the program.
    counted: Vec<CellCount>,
    /// What the cells of each of these columns look like, if they are times.
    seen: Vec<TimeReport>,
    rule: Duplicates,
    rows: ProgramRows,
}

/// Cells of a column that are missing, or beyond ends between which the program takes it.
#[derive(Clone)]
struct CellCount {
    /// The column among this party's.
    own: usize,
    /// The ends in the program's numbers.
    ends: Option<[i128; 2]>,
    report: ColumnReport,
}

impl CellCount {
    fn add(&mut self, cell: Option<i64>) {
        let report = &mut self.report;
        match (cell.map(i128::from), self.ends) {
            (None, None) => report.missing += 1,
            (Some(cell), Some([low, high])) => {
                report.below += u64::from(cell < low);
                report.above += u64::from(cell > high);
            }
            _ => {}
        }
    }
}

/// A column that this party owns.
#[derive(Clone)]
struct Own<'a> {
    column: &'a ProgramColumn,
    /// Its place among the cells of a row.
    cell: usize,
    /// What it is in the program: what a cell means there, and must fit.
    typed: RowColumn,
    /// Whether somebody wrote that program, and can change it.
    written: bool,
}

impl Own<'_> {
    /// The numbers that fit both the type and the columns of [`ProgramRows`].
    fn range(&self) -> (i64, i64) {
        let most = i64::try_from(self.typed.ty.max()).unwrap_or(i64::MAX);
        (if self.typed.ty.signed { -most - 1 } else { 0 }, most)
    }

    /// The number that a cell is, `Some(None)` of a missing one; `None` after a complaint.
    fn read(
        &self,
        row: &mut Row<'_>,
        (clock, seen): (Option<&Clock>, &mut TimeReport),
        cell: TableCell<'_>,
    ) -> Option<Option<i64>> {
        let (least, most) = self.range();
        let name = &self.column.column;
        let plain;
        let cell = match cell {
            TableCell::Text(text) if self.is_number() => match numbers::plain(text, row.format.numbers()) {
                Ok(text) => {
                    plain = text;
                    TableCell::Text(&plain)
                }
                Err(problem) => {
                    row.complain(name, || format!("{} {problem}", cell.shown()));
                    return None;
                }
            },
            cell => cell,
        };
        let RowColumn { ty, cells: CellForm { missing, .. }, .. } = &self.typed;
        if cell == TableCell::Empty && (*missing || self.written && !self.has_empty_label()) {
            return match self.typed.pattern("") {
                Ok(_) => Some(None),
                Err(problem) => {
                    row.complain(name, || problem);
                    None
                }
            };
        }
        let value = match (&self.column.cell, clock) {
            (Some(CellType::Label(values)), _) => {
                let categories = Categories { column: name.clone(), values: values.clone() };
                // From 1: an absent row has 0.
                row.category(&categories, cell).map(|index| i64::from(index) + 1)
            }
            (Some(CellType::Time), Some(clock)) => row.time(seen, clock, cell).map(i64::from),
            _ if self.is_whole(cell) => {
                return row.integer(name, cell, least, most).map(Some);
            }
            _ => {
                return match self.meaning(cell, row.format) {
                    Ok(value) => Some(value),
                    Err(problem) => {
                        row.complain(name, || problem);
                        None
                    }
                };
            }
        }?;
        if value > most {
            row.complain(name, || {
                format!(
                    "{} is {value} in the program, whose type {ty} goes to {most}; widen it",
                    cell.shown()
                )
            });
            return None;
        }
        Some(Some(value))
    }

    /// Whether an empty cell is one of the study's labels.
    fn has_empty_label(&self) -> bool {
        matches!(&self.column.cell, Some(CellType::Label(values)) if values.iter().any(String::is_empty))
    }

    /// Whether its cells are numbers.
    fn is_number(&self) -> bool {
        let number = matches!(self.typed.cells.kind, CellKind::Number(_));
        number && !matches!(self.column.cell, Some(CellType::Label(_) | CellType::Time))
    }

    /// Whether it is read as a whole number, as all cells are of which the program says nothing.
    fn is_whole(&self, cell: TableCell<'_>) -> bool {
        let plain = self.typed.cells.kind == CellKind::default() && self.typed.ty != ValueType::BIT;
        let has_decimals = match cell {
            TableCell::Float(_) | TableCell::Decimal(..) => true,
            TableCell::Text(text) => self.written && text.contains('.'),
            _ => false,
        };
        plain && !has_decimals
    }

    /// What a cell means by the program's column.
    fn meaning(&self, cell: TableCell<'_>, format: &InputFormat) -> Result<Option<i64>, String> {
        let RowColumn { ty, cells, .. } = &self.typed;
        let day = match cells.kind {
            CellKind::Date => dates::day(cell, &self.column.column, format),
            _ => None,
        };
        let pattern = match (day, cell) {
            (Some(Ok(day)), _) => ty.pattern(day.into()),
            (Some(Err(problem)), cell) => return Err(format!("{} {problem}", cell.shown())),
            (None, cell) => match cell.number_text() {
                Some(text) => self.typed.pattern(&text)?,
                None => return Err(format!("{} is not what the program's column says", cell.shown())),
            },
        };
        let Some(pattern) = pattern else { return Err(format!("{} does not fit {ty}", cell.shown())) };
        let value = ty.number(pattern).and_then(|number| i64::try_from(number).ok());
        value.map(Some).ok_or_else(|| format!("{} is beyond what a file's column holds", cell.shown()))
    }
}

impl<'a> Reading<'a> {
    fn new(study: &'a Study, program: &'a ProgramSource, party: &str) -> Result<Self, Error> {
        let mut keys = KeyColumns::new(&study.matching.identifiers);
        let owned = Owned::new(program, party)?;
        let names = owned.names();
        let counted = owned.counted();
        let written = matches!(study.kind, Question::Program(_));
        let own = owned.columns.into_iter().map(|(column, typed)| {
            let cell = keys.want(&column.column);
            Own { column, cell, typed, written }
        });
        let own: Vec<Own<'_>> = own.collect();
        let seen = own.iter().map(|own| TimeReport::new(&own.column.column)).collect();
        let known = owned.known.iter().map(|(column, _)| *column).collect();
        let columns = vec![Vec::new(); names.len()];
        let rows = ProgramRows { identifiers: RowKeys::default(), names, columns };
        let rule = study.matching.duplicates;
        Ok(Self { keys, clock: program.clock.as_ref(), own, known, counted, seen, rule, rows })
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
                complaints.add_placed(
                    here,
                    || files.stands(here),
                    || repeated(files, here, there, "duplicates = \"first\""),
                );
            }
        });
        let mut columns: Vec<_> = self.rows.columns.iter_mut().map(std::mem::take).collect();
        if let Some(keep) = keep {
            report.duplicates_dropped += keep.iter().filter(|&&keep| !keep).count() as u64;
            columns.iter_mut().for_each(|column| retain(column, &keep));
        }
        Rows::Program(ProgramRows { identifiers: self.keys.take(), names: self.rows.names.clone(), columns })
    }

    fn count(&mut self, report: &mut InputReport) {
        let columns = std::mem::take(&mut self.counted).into_iter().map(|count| count.report).collect();
        let identifiers = std::mem::take(&mut self.keys.reports);
        let times = self.seen.iter_mut().map(TimeReport::taken).collect();
        report.absorb(InputReport { columns, times, identifiers, ..InputReport::default() });
    }

    fn finish(&self, _: DataLocation<'_>, _: u64, report: &mut InputReport) -> Result<(), Error> {
        report.columns.retain(|of| of.missing + of.below + of.above > 0);
        report.times.retain(|seen| self.clock.is_some_and(|clock| seen.is_doubtful(clock)));
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
        for (own, seen) in self.own.iter().zip(&mut self.seen) {
            values.extend(own.read(row, (self.clock, seen), cells[own.cell].trimmed()));
        }
        if !identified || values.len() < self.own.len() {
            return Ok(());
        }
        self.keys.keep(row.place)?;
        for count in &mut self.counted {
            count.add(values[count.own]);
        }
        let known = self.known.iter().map(|column| i64::from(values[*column].is_some()));
        let cells = values.iter().map(|value| value.unwrap_or(0)).chain(known);
        self.rows.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        Ok(())
    }
}
