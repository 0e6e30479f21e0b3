//! Made-up files for a study's own columns: cells that its parties could have, without a known answer.
//!
//! A number lies around what the program compares it with, so that rows fall on both sides; labels and times
//! are any of those that the study names. Half of the people of the smaller side are known to everybody,
//! where nobody says how many.

mod cells;
mod people;

use super::files::{FileFormat, Out, TableFile};
use base::{Error, PartyId, Rng, Seed};
use cells::{CellMaker, MadeColumn, owned_columns};
use people::{IdentifierMaker, MadeUpPeople};
use std::path::{Path, PathBuf};
use study::{Advertiser, EventLayout, EventValue, LiftStudy, Question, Study, StudyFile};

/// Of so many people one is known to lack an identifier, where there are several.
const LACKS: u64 = 7;
/// Of so many cells that may be missing one is.
const MISSING: u64 = 20;
/// Of so many lines one does not pass a filter.
const FILTERED: u64 = 5;

/// How many people are made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeUpRows {
    /// Of the first party of the study, and of each other one.
    pub rows: [u64; 2],
    /// Of these whom everybody has; none: half of the smaller side.
    pub common: Option<u64>,
}

impl From<[u64; 2]> for MadeUpRows {
    fn from(rows: [u64; 2]) -> Self {
        Self { rows, common: None }
    }
}

/// What is made up of one party.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeUpFile {
    /// The party.
    pub party: String,
    /// Its file.
    pub path: PathBuf,
    /// Lines in it.
    pub lines: u64,
}

/// Writes `PARTY.csv` into `folder` (made if need be) for each of `parties`, with so many people of the first
/// party of the study and of each other one.
///
/// # Errors
/// When all parties have to have the same rows and are asked for different ones, an identifier cannot be made
/// up, or a file cannot be written.
pub fn for_study(
    folder: &Path,
    file: &StudyFile,
    parties: &[String],
    rows: impl Into<MadeUpRows>,
    seed: u64,
) -> Result<Vec<MadeUpFile>, Error> {
    let MadeUpRows { rows, common } = rows.into();
    let aligned = file.first().matching.matcher.features().public_identifiers;
    if aligned && rows[0] != rows[1] {
        return Err(Error::input("every party of an aligned study has the same rows; write one number"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|e| Error::io(format!("cannot create {}", folder.display()), &e))?;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let seed = Seed::from_bytes(bytes);
    let people = MadeUpPeople { rows, common, aligned };
    let mut written = Vec::new();
    for (number, member) in file.parties.iter().enumerate() {
        if !parties.contains(&member.name) {
            continue;
        }
        let run = file.runs_of(&member.name).next().ok_or_else(|| Error::misuse("a member has a run"))?;
        let at = run.parties.iter().position(|party| party.name == member.name).unwrap_or_default();
        let path = folder.join(format!("{}.csv", member.name));
        let own = Owner { study: run, me: PartyId(at as u8), people: people.of(number), seed: &seed };
        let lines = own.write(&path)?;
        written.push(MadeUpFile { party: member.name.clone(), path, lines });
    }
    Ok(written)
}

/// One party while its file is written.
struct Owner<'a> {
    study: &'a Study,
    me: PartyId,
    /// Numbers of its people.
    people: Vec<u32>,
    seed: &'a Seed,
}

impl Owner<'_> {
    fn write(mut self, path: &Path) -> Result<u64, Error> {
        let name = &self.study.parties[self.me.index()].name;
        let mut rng = self.seed.fork(&format!("file/{name}")).into_rng();
        rng.shuffle(&mut self.people);
        match &self.study.kind {
            Question::Program(own) => {
                let columns = owned_columns(&own.source, name)?;
                self.plain(path, &columns, &mut rng)
            }
            Question::Match(source) => self.plain(path, &owned_columns(source, name)?, &mut rng),
            Question::Lift(lift) => match lift.advertiser(self.me) {
                None => self.plain(path, &publisher(lift), &mut rng),
                Some(advertiser) => self.events(path, (lift, advertiser), &mut rng),
            },
        }
    }

    /// One line for each of the people.
    fn plain(&self, path: &Path, columns: &[MadeColumn], rng: &mut Rng) -> Result<u64, Error> {
        let mut table = LineTable::create(path, self.study, columns)?;
        for person in &self.people {
            let person = self.person(*person);
            table.line(&person, rng, |column, rng| column.maker.cell(&person, rng))?;
        }
        table.table.finish()
    }

    /// One line for each event, or for each of the people with all of their events.
    fn events(
        &self,
        path: &Path,
        (lift, own): (&LiftStudy, &Advertiser),
        rng: &mut Rng,
    ) -> Result<u64, Error> {
        let columns = advertiser(lift, own);
        let mut table = LineTable::create(path, self.study, &columns)?;
        for person in &self.people {
            let person = self.person(*person);
            let most = u64::from(own.max_events).max(1);
            let events = 1 + rng.below(most);
            let lines = if own.layout == EventLayout::Events { events } else { 1 };
            for _ in 0..lines {
                table.line(&person, rng, |column, rng| match column.event {
                    Some(event) if own.layout == EventLayout::Wide && u64::from(event) >= events => {
                        String::new()
                    }
                    _ => column.maker.cell(&person, rng),
                })?;
            }
        }
        table.table.finish()
    }

    fn person(&self, number: u32) -> Person {
        let rng = self.seed.fork(&format!("person/{number}")).into_rng();
        Person::new(number, rng)
    }
}

/// What all parties would say alike of a person.
struct Person {
    number: u32,
    test: bool,
    /// For a value that all lines of the person have.
    draw: u64,
}

impl Person {
    fn new(number: u32, mut rng: Rng) -> Self {
        Self { number, test: rng.below(2) == 1, draw: rng.below(1 << 32) }
    }
}

/// A file that is being written, identifiers first; a column that is an identifier as well stands there once.
struct LineTable<'a> {
    table: TableFile,
    identifiers: Vec<IdentifierMaker<'a>>,
    columns: Vec<&'a MadeColumn>,
    cells: Vec<String>,
}

impl<'a> LineTable<'a> {
    fn create(path: &Path, study: &'a Study, columns: &'a [MadeColumn]) -> Result<Self, Error> {
        let identifiers = IdentifierMaker::all(&study.matching, columns)?;
        let own: Vec<&MadeColumn> = columns
            .iter()
            .enumerate()
            .filter(|(at, column)| {
                let before = columns[..*at].iter().any(|other| other.name == column.name);
                !before && identifiers.iter().all(|identifier| identifier.name() != column.name)
            })
            .map(|(_, column)| column)
            .collect();
        let names = identifiers.iter().map(IdentifierMaker::name).chain(own.iter().map(|c| c.name.as_str()));
        let head: Vec<(&str, bool)> = names.map(|name| (name, false)).collect();
        let table = TableFile::create(path, FileFormat::Csv, &head)?;
        Ok(Self { table, identifiers, columns: own, cells: Vec::new() })
    }

    fn line(
        &mut self,
        person: &Person,
        rng: &mut Rng,
        mut cell: impl FnMut(&MadeColumn, &mut Rng) -> String,
    ) -> Result<(), Error> {
        self.cells.clear();
        for (key, identifier) in self.identifiers.iter().enumerate() {
            let lacks = key > 0 && (u64::from(person.number) + key as u64).is_multiple_of(LACKS);
            self.cells.push(if lacks { String::new() } else { identifier.cell(person.number)? });
        }
        for column in &self.columns {
            let missing = column.missing && rng.below(MISSING) == 0;
            self.cells.push(if missing { String::new() } else { cell(column, rng) });
        }
        self.table.row(&self.cells.iter().map(|cell| Out::Text(cell)).collect::<Vec<_>>())
    }
}

/// The publisher's columns of a lift study.
fn publisher(lift: &LiftStudy) -> Vec<MadeColumn> {
    let own = &lift.publisher;
    let mut columns = vec![
        MadeColumn::new(&own.arm, CellMaker::Arm(own.test.clone(), own.control.clone())),
        MadeColumn::new(&own.opportunity, CellMaker::Time(lift.clock, lift.clock.span() / 2)),
    ];
    columns.extend(own.impressions.iter().map(|name| MadeColumn::new(name, CellMaker::Whole(0, 3))));
    let breakdown = own.breakdown.iter();
    columns.extend(breakdown.map(|of| MadeColumn::new(&of.column, CellMaker::Label(of.values.clone()))));
    columns
}

/// An advertiser's columns of a lift study.
fn advertiser(lift: &LiftStudy, own: &Advertiser) -> Vec<MadeColumn> {
    let event = |(name, number): (&String, u8), maker| MadeColumn {
        event: Some(number),
        ..MadeColumn::new(name, maker)
    };
    let times = own.events.iter().zip(0..);
    let mut columns: Vec<MadeColumn> = times.map(|of| event(of, CellMaker::Outcome(lift.clock))).collect();
    if let EventValue::Columns { columns: values, .. } = &own.value {
        let most = i64::from(lift.rule.clamp).max(1);
        columns.extend(values.iter().zip(0..).map(|of| event(of, CellMaker::Whole(1, most))));
    }
    if let Some(filter) = &own.filter {
        let passing = filter.equals.first().cloned().unwrap_or_default();
        columns.push(MadeColumn::new(&filter.column, CellMaker::Filter(passing)));
    }
    let cohort = own.cohort.iter();
    columns.extend(cohort.map(|of| MadeColumn::new(&of.column, CellMaker::OfPerson(of.values.clone()))));
    columns
}
