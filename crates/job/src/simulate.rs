//! A study tried on one machine, with the files of all parties or with made-up ones, before anything is sent
//! or charged.
//!
//! Files are read as in a run and joined in the clear, totals come from the program that a run would compute
//! by the `clear` engine, and what each viewer would be shown is read as its report reads it: once without
//! any noise, once as a run releases it, and over many draws of the noise. No ledger, no key and no network
//! is touched.

mod columns;
mod join;
mod numbers;
mod shown;
mod spread;
mod words;

use crate::interpret::{Seen, view};
use crate::plan::policy;
use crate::prepare::{Built, build_all};
use base::{Error, PartyId, Roster, Seed};
use columns::JoinedColumns;
use data::{DataLocation, InputReport, ReadingMemory, RowStore, RowStream, SpoolRoom, read_rows};
use engine::{Clear, Share, Shares, run_rows};
use join::JoinedTable;
use net::Session;
use numbers::{NumberReader, PartName, ReadNumber, ReadPart};
use page::numbers::{count, counted};
use privacy::dummies;
use privacy::scales::Scales;
use program::Viewer;
use release::rational::to_f64;
use report::{ProgramList, ResultView};
use serde::{Deserialize, Serialize};
use shown::ShownValues;
use spread::DrawnParts;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use store::StoreOptions;
use study::format::InputFormat;
use study::{Question, Study, StudyFile};

/// Format of the JSON.
pub const FORMAT: &str = "tacit-simulation/1";
/// Most rows of all parties together: everything is in memory.
pub const SIMULATED_ROWS: u64 = 20_000_000;
/// Most numbers that all draws of one view give.
pub const SIMULATED_VALUES: u64 = 100_000_000;

/// What is said at the top of whatever a simulation prints.
pub const NOT_FOR_PASSING_ON: &str = "This shows exact values of the data of all parties: it is for those \
                                      who may see all of them, and not for passing on.";

/// Told what is going on, and how much of how much is done, from any thread.
pub type SimulationProgress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

/// Where one party's data are, and what is said of them: what its party file says, or nothing but the path.
#[derive(Clone, Debug)]
pub struct SimulatedData {
    /// A file, a folder, a pattern or objects of a bucket.
    pub path: PathBuf,
    /// What a bucket needs to be told.
    pub store: StoreOptions,
    /// What form the files have.
    pub format: InputFormat,
    /// Rows that are handed over, in the place of files; `path` is their name then.
    pub stream: Option<RowStream>,
}

impl From<PathBuf> for SimulatedData {
    fn from(path: PathBuf) -> Self {
        Self { path, store: StoreOptions::default(), format: InputFormat::NONE, stream: None }
    }
}

/// What to simulate.
pub struct SimulationQuestion {
    /// The study.
    pub file: StudyFile,
    /// By party, where its data are.
    pub data: BTreeMap<String, SimulatedData>,
    /// Those whose file was made up for the purpose.
    pub made_up: Vec<String>,
    /// Releases to draw; none: exact values alone.
    pub draws: u64,
    /// What makes the same draws again.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
}

/// What a study would show, and how far from the exact answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Simulation {
    /// [`FORMAT`].
    pub format: String,
    /// [`NOT_FOR_PASSING_ON`].
    pub warning: String,
    /// Name of the study.
    pub study: String,
    /// One line for people.
    pub title: String,
    /// Its hash in full, 64 hex digits.
    pub hash: String,
    /// The files.
    pub parties: Vec<SimulatedParty>,
    /// Releases that were drawn; 0: exact values alone.
    pub draws: u64,
    /// What makes the same draws again.
    pub seed: u64,
    /// One, or one of the publisher with each of several advertisers.
    pub runs: Vec<SimulatedRun>,
}

/// One party's file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedParty {
    /// Its name.
    pub name: String,
    /// Its file; none where it was made up for the purpose.
    pub data: Option<PathBuf>,
    /// Its rows that take part.
    pub rows: u64,
    /// What reading it did, as its owner's report says it.
    pub inputs: InputReport,
}

/// One run of a study.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedRun {
    /// Its parties.
    pub parties: Vec<String>,
    /// Joined rows.
    pub joined: u64,
    /// Of these, the ones that all parties have.
    pub shared: u64,
    /// What a reader should know of it.
    pub notes: Vec<String>,
    /// What each viewer would be shown.
    pub views: Vec<SimulatedView>,
}

/// What one viewer would be shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedView {
    /// A party, or `everybody`.
    pub viewer: String,
    /// zCDP that a run would charge for it; 0 where nothing is noised.
    pub rho: f64,
    /// Its numbers: of a lift study a part for each cell; of a program what it derives, and its outputs.
    pub parts: Vec<SimulatedPart>,
    /// Its lists: which rows matched.
    pub lists: Vec<ProgramList>,
}

/// Numbers that are shown together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedPart {
    /// The cell; `derived` or `outputs` of a program.
    pub name: String,
    /// The same for people: with the column that a cell's value is of.
    pub title: String,
    /// Why the one release shows nothing of it.
    pub refused: Option<String>,
    /// In what share of the draws it would be refused; none without draws.
    pub refused_share: Option<f64>,
    /// The numbers.
    pub numbers: Vec<SimulatedNumber>,
}

/// One number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SimulatedNumber {
    /// What it is.
    pub label: String,
    /// `output`: a number that is released; `derived`, `estimate`: what a report computes from such.
    pub what: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// Whether it is a sum that other numbers are made of, and tells people nothing by itself.
    #[serde(default, skip_serializing_if = "is_shown")]
    pub behind: bool,
    /// Without noise; none where these data do not give it.
    pub exact: Option<f64>,
    /// The same in full, of a whole number.
    pub exact_digits: Option<String>,
    /// Where it is the number of a row: the row's identifier in the viewer's file.
    pub key: Option<String>,
    /// In one release; none where it is not shown, or there is no noise.
    pub released: Option<f64>,
    /// The same in full, of a whole number.
    pub released_digits: Option<String>,
    /// The intervals of that release, chance and noise together; an open end is none.
    pub intervals: Vec<[Option<f64>; 2]>,
    /// Over all draws; none without noise.
    pub spread: Option<NumberSpread>,
}

fn is_shown(behind: &bool) -> bool {
    !*behind
}

/// How a released number lies around the exact one, over all draws.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NumberSpread {
    /// Draws in which it is shown.
    pub shown: u64,
    /// Mean of the released values, less the exact one.
    pub mean_error: Option<f64>,
    /// Standard deviation of the released values.
    pub deviation: Option<f64>,
    /// 2.5 % quantile of the released values.
    pub low: Option<f64>,
    /// 97.5 % quantile.
    pub high: Option<f64>,
    /// Share of the releases whose interval, chance and noise together, holds the exact value.
    pub interval_held: Option<f64>,
    /// The same of the interval of noise alone, at the same level.
    pub noise_held: Option<f64>,
    /// How often values lie where; none where all are alike.
    pub bins: Option<Bins>,
}

/// Counts of values in equally wide bins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Bins {
    /// Where the first begins.
    pub from: f64,
    /// Where the last ends.
    pub to: f64,
    /// How many lie in each.
    pub counts: Vec<u64>,
}

/// Tries a study.
///
/// # Errors
/// What is wrong with the study or a file, as a run would say it; when there are too many rows or draws for
/// memory; when the study only matches.
pub fn simulate(asked: &SimulationQuestion, progress: SimulationProgress<'_>) -> Result<Simulation, Error> {
    let file = &asked.file;
    let first = file.first();
    if first.only_matches() {
        return Err(Error::input(format!(
            "study {} is of kind match: it brings rows together and computes nothing, so there is nothing to \
             simulate",
            first.name
        )));
    }
    let built = build_all(&file.runs, &policy())?;
    let rows = Files::read(asked, SIMULATED_ROWS, progress)?;
    let runs = built.iter().map(|(run, built)| rows.simulate((run, built), asked, progress));
    let runs = runs.collect::<Result<_, _>>()?;
    Ok(Simulation {
        format: FORMAT.to_owned(),
        warning: NOT_FOR_PASSING_ON.to_owned(),
        study: first.name.clone(),
        title: first.title.clone(),
        hash: file.hash().full(),
        parties: rows.parties,
        draws: asked.draws,
        seed: asked.seed,
        runs,
    })
}

/// Everybody's rows.
struct Files {
    parties: Vec<SimulatedParty>,
    /// By party.
    rows: BTreeMap<String, Arc<RowStore>>,
}

impl Files {
    /// Reads each party's file as its run would, and no more than so many rows of all of them.
    fn read(asked: &SimulationQuestion, most: u64, progress: SimulationProgress<'_>) -> Result<Self, Error> {
        let (mut parties, mut rows) = (Vec::new(), BTreeMap::new());
        let mut left = most;
        for (number, member) in asked.file.parties.iter().enumerate() {
            let run = asked.file.runs_of(&member.name).next();
            let run = run.ok_or_else(|| Error::misuse("a member takes part in a run"))?;
            let files = asked.data.get(&member.name).ok_or_else(|| {
                Error::input(format!("no file of {0}: add --data {0}=FILE, or --made-up ROWS", member.name))
            })?;
            progress("reading, files", number as u64, asked.file.parties.len() as u64);
            let at = run.parties.iter().position(|party| party.name == member.name).unwrap_or_default();
            let SimulatedData { path, store, format, stream } = files;
            let location = DataLocation { path, store, format, stream: stream.as_ref() };
            let (own, inputs) = read_rows(location, run, PartyId(at as u8), Some(&memory_for(left, most)))?;
            left = left.saturating_sub(own.len());
            parties.push(SimulatedParty {
                name: member.name.clone(),
                data: (!asked.made_up.contains(&member.name)).then(|| files.path.clone()),
                rows: own.len(),
                inputs,
            });
            rows.insert(member.name.clone(), Arc::new(own));
        }
        Ok(Self { parties, rows })
    }

    fn simulate(
        &self,
        (study, built): (&Study, &Built),
        asked: &SimulationQuestion,
        progress: SimulationProgress<'_>,
    ) -> Result<SimulatedRun, Error> {
        let seed = seed_of(asked, study);
        let names: Vec<String> = study.parties.iter().map(|member| member.name.clone()).collect();
        let rows: Vec<Arc<RowStore>> = names.iter().map(|name| self.rows[name].clone()).collect();
        let joined = JoinedTable::of(study, &rows, &seed.fork("join"))?;
        let mut columns = JoinedColumns::new(&joined, built, progress)?;
        let mut session = Session::alone(Roster::new(["all"]), seed.fork("session"));
        let totals = run_rows(&Clear, &built.program, &mut columns, &mut session)?;
        let trial = Trial { study, built, joined: &joined, totals, scales: scales(study, built, &rows)? };
        let mut views = Vec::new();
        for viewer in built.program.viewers() {
            views.extend(trial.view(viewer, asked, (&seed, progress))?);
        }
        let mut notes = joined.notes.clone();
        if joined.shared == 0 {
            let made_up =
                if asked.made_up.is_empty() { "" } else { ": identifiers of made-up files are made up" };
            notes.push(format!("no row is in the files of all parties{made_up}"));
        }
        notes.extend(hidden_sizes(study)?);
        Ok(SimulatedRun { parties: names, joined: joined.rows, shared: joined.shared, notes, views })
    }
}

fn seed_of(asked: &SimulationQuestion, study: &Study) -> Seed {
    let names: Vec<&str> = study.parties.iter().map(|member| member.name.as_str()).collect();
    Seed::from_bytes([0; 32]).fork(&format!("simulate/{}/{}", asked.seed, names.join("/")))
}

/// Memory for `left` more rows of `most`, and nothing beyond it.
fn memory_for(left: u64, most: u64) -> SpoolRoom<'static> {
    let memory = ReadingMemory { rows: left, ..ReadingMemory::UNBOUNDED };
    SpoolRoom::new(memory, move || {
        Err(Error::input(format!(
            "all parties' files together have more than {} rows, and a simulation holds all of them in \
             memory (SIMULATED_ROWS): take a part of the files, or --made-up ROWS",
            count(most)
        )))
    })
}

/// What a reader should know of the rows that a run makes up.
fn hidden_sizes(study: &Study) -> Result<Option<String>, Error> {
    if study.matching.dummies.is_none() {
        return Ok(None);
    }
    let many = dummies::in_match(study)?.map_or_else(String::new, |[mean, sigma]| {
        format!(" (about {}, give or take {}, in the size of the match)", count(mean), count(2 * sigma))
    });
    Ok(Some(format!(
        "sizes are exact here: rows of nobody hide them in a run{many}, and a program over `rows any` \
         counts these"
    )))
}

/// The noise of a study, whose groups are known where a mode publishes them.
fn scales(study: &Study, built: &Built, rows: &[Arc<RowStore>]) -> Result<Arc<Scales>, Error> {
    let published = built.lift.as_ref().and_then(|(_, layout)| layout.published);
    match (&study.kind, published, &built.scales) {
        (Question::Lift(lift), Some(_), _) => {
            let groups = rows.iter().find_map(|rows| rows.groups());
            let groups = groups.ok_or_else(|| Error::misuse("a publisher knows its arms"))?;
            release::modes::check_public_groups(groups[0], groups[1], lift.release.minimum_group)?;
            Ok(Arc::new(Scales::new(study, &built.program, &built.audit, Some(groups))?))
        }
        (_, _, Some(scales)) => Ok(scales.clone()),
        _ => Err(Error::misuse("noise that hangs on no groups is known with the study")),
    }
}

/// A run whose totals are known.
struct Trial<'a> {
    study: &'a Study,
    built: &'a Built,
    joined: &'a JoinedTable,
    totals: Shares,
    scales: Arc<Scales>,
}

impl Trial<'_> {
    /// What a viewer would be shown; none where there is nothing for it.
    fn view(
        &self,
        viewer: Viewer,
        asked: &SimulationQuestion,
        (seed, progress): (&Seed, SimulationProgress<'_>),
    ) -> Result<Option<SimulatedView>, Error> {
        let program = &self.built.program;
        if program.outputs_to(viewer).next().is_none() {
            let (_, lists) = self.rows_of(viewer, &[])?;
            let name = viewer.name(&program.parties).to_owned();
            let view = SimulatedView { viewer: name, rho: 0.0, parts: Vec::new(), lists };
            return Ok((!view.lists.is_empty()).then_some(view));
        }
        let shown = ShownValues::new((self.study, self.built), &self.scales, &self.totals, viewer)?;
        let silent = self.scales.without_noise();
        let reader = |scales| NumberReader { study: self.study, built: self.built, scales, viewer };
        let (as_exact, as_released) = (reader(&silent), reader(&self.scales));
        let values = shown.exact()?;
        let (names, exact) = (as_exact.names(&values)?, as_exact.read(&values)?);
        let (keys, lists) = self.rows_of(viewer, &values)?;
        let seed = seed.fork(&format!("view/{}", viewer.name(&program.parties)));
        let draws = if shown.is_noised() { asked.draws } else { 0 };
        let numbers: u64 = exact.iter().map(|part| part.numbers.len() as u64).sum();
        if numbers.saturating_mul(draws) > SIMULATED_VALUES {
            return Err(Error::input(format!(
                "{} draws of {} are more than memory is taken for ({}, SIMULATED_VALUES): write fewer \
                 --draws",
                count(draws),
                counted(numbers, "number"),
                count(SIMULATED_VALUES)
            )));
        }
        let drawn = (draws > 0).then(|| -> Result<_, Error> {
            let one = shown.released(&mut seed.fork("release").into_rng())?;
            let terms = (draws, &seed, asked.threads);
            Ok((as_released.read(&one)?, DrawnParts::make(&shown, &as_released, &exact, terms, progress)?))
        });
        let mut parts = put_together(names, exact, drawn.transpose()?, draws);
        // Only outputs are rows, and they are in order.
        let outputs = parts.iter_mut().filter(|part| part.name == "outputs").flat_map(|p| &mut p.numbers);
        outputs.zip(keys).for_each(|(number, key)| number.key = key);
        let (viewer, charge) = (viewer.name(&program.parties).to_owned(), self.scales.charge(viewer));
        Ok(Some(SimulatedView { viewer, rho: to_f64(charge), parts, lists }))
    }

    /// The keys of rows that a viewer's outputs are, output by output, and its lists: its own identifiers.
    fn rows_of(
        &self,
        viewer: Viewer,
        values: &[(usize, u128)],
    ) -> Result<(Vec<Option<String>>, Vec<ProgramList>), Error> {
        let program = &self.built.program;
        let own = program.lists.iter().filter(|list| viewer.only() == Some(list.to));
        let bits = own.map(|list| match &self.totals.folds()[list.fold as usize] {
            Share::Rows(rows) => Ok(rows.clone()),
            _ => Err(Error::misuse("the clear engine has whole lists")),
        });
        let bits: Vec<Vec<u64>> = bits.collect::<Result<_, _>>()?;
        let (Some(party), None) = (viewer.only(), &self.built.lift) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let aligned = self.joined.along[party.index()].first().map(|aligned| &**aligned);
        let seen = Seen { viewer, values, lists: &bits, aligned };
        match view(self.study, self.built, &self.scales, &seen)? {
            ResultView::Program { lists, outputs, .. } => {
                Ok((outputs.into_iter().map(|output| output.key).collect(), lists))
            }
            ResultView::Lift(_) => Err(Error::misuse("a lift study shows no rows")),
        }
    }
}

type Drawn = (Vec<ReadPart>, DrawnParts);

/// Exact numbers with those of a release and of all draws beside them.
fn put_together(
    names: Vec<PartName>,
    exact: Vec<ReadPart>,
    drawn: Option<Drawn>,
    draws: u64,
) -> Vec<SimulatedPart> {
    let part = |(at, (PartName { name, title, numbers: names }, exact)): (usize, (PartName, ReadPart))| {
        let released = drawn.as_ref().map(|(released, _)| &released[at]);
        let spreads = drawn.as_ref().map(|(_, parts)| &parts.spreads[at]);
        let number = |(i, (name, exact)): (usize, (numbers::NumberName, ReadNumber))| {
            let released = released.and_then(|part| part.numbers.get(i)).cloned().unwrap_or_default();
            SimulatedNumber {
                label: name.label,
                what: name.what.to_owned(),
                unit: name.unit,
                behind: name.behind,
                exact: exact.value,
                exact_digits: exact.digits,
                key: None,
                released: released.value,
                released_digits: released.digits,
                intervals: released.intervals,
                spread: spreads.map(|spreads| spreads[i].clone()),
            }
        };
        SimulatedPart {
            name,
            title,
            refused: released.and_then(|part| part.refused.clone()),
            refused_share: drawn.as_ref().map(|(_, parts)| parts.refused[at] as f64 / draws as f64),
            numbers: names.into_iter().zip(exact.numbers).enumerate().map(number).collect(),
        }
    };
    let parts = names.into_iter().zip(exact).enumerate().map(part);
    parts.filter(|part| !part.numbers.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use data::generate;
    use std::path::Path;

    /// Reading ends at the bound: what is wrong with later lines is not met.
    #[test]
    fn rows_beyond_the_bound_are_refused_before_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, _) = StudyFile::read(Path::new("../../examples/lift.toml")).unwrap();
        let names: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
        let made = generate::for_study(folder.path(), &file, &names, [60, 40], 7).unwrap();
        let data: BTreeMap<String, SimulatedData> =
            made.iter().map(|made| (made.party.clone(), PathBuf::from(&made.path).into())).collect();
        let asked = SimulationQuestion { file, data, made_up: names, draws: 0, seed: 7, threads: 1 };
        let read = |most| Files::read(&asked, most, &|_, _, _| {});
        let parties = read(1_000).unwrap_or_else(|e| panic!("{e}")).parties;
        let rows = parties.iter().map(|party| party.inputs.rows_read).sum();
        assert!(read(rows).is_ok());
        let path = &asked.data[&asked.file.parties[1].name].path;
        let mut text = std::fs::read_to_string(path).unwrap();
        text.push_str("one,field,and,many,others\n");
        std::fs::write(path, text).unwrap();
        let error = |most| read(most).err().unwrap().to_string();
        let refused = error(rows - 1);
        assert!(refused.starts_with("all parties' files together have more than "), "{refused}");
        assert!(refused.contains("SIMULATED_ROWS"), "{refused}");
        assert!(error(rows).contains("fields where the header has"), "{}", error(rows));
    }
}
