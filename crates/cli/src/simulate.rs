//! `tacit simulate`: a study tried on one machine, before it is run or charged.

mod figure;

use crate::args::rows_pair;
use base::{Error, Fault};
use clap::{Args, ValueEnum};
use data::generate;
use job::simulate::{SimulatedData, Simulation, SimulationProgress, SimulationQuestion, simulate};
use job::told;
use page::numbers::count;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use study::StudyFile;
use study::party::{PartySettings, PartySetup};
use terminal::output;
use terminal::progress::Working;
use terminal::{values, width};

/// Tries a study on this machine with the files of all parties, own or made up: what each viewer would see,
/// beside the exact values, and how far the noise of many releases lies from these.
///
/// Files are read as in a run, and complaints are the same. Nothing is sent, no ledger and no key is touched,
/// and nothing is charged. What it prints shows exact values of all parties' data.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit simulate study.toml --data registry=registry.csv --data \
                  hospitals=hospitals.csv\n  tacit simulate lift/study.toml --data \
                  publisher=lift/publisher.toml --data advertiser=lift/advertiser.toml\n  tacit \
                  simulate study.toml --made-up 5k\n  tacit simulate study.toml --data \
                  registry=registry.csv --made-up 5k,2k --figure spread.html\n  tacit \
                  simulate study.toml --made-up 5k --noise off --json")]
pub struct SimulateArgs {
    /// The study file
    pub study: PathBuf,
    /// The file of a party, the folder of its files, or its party file (.toml), which says where its data are
    /// and what form they have; once for each party
    #[arg(long, value_name = "PARTY=FILE", value_parser = party_file)]
    pub data: Vec<(String, PathBuf)>,
    /// Make up the files of the parties that have no --data: so many people of the first party, and of each
    /// other one
    #[arg(long, value_name = "N[,M]", value_parser = rows_pair)]
    pub made_up: Option<[u64; 2]>,
    /// off: exact values alone
    #[arg(long, value_enum, default_value_t = NoiseSwitch::On)]
    pub noise: NoiseSwitch,
    /// Releases that are drawn to show how they spread
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "10000")]
    pub draws: u64,
    /// Other draws, and other made-up files
    #[arg(long, value_name = "N", default_value_t = 7)]
    pub seed: u64,
    /// Threads; else one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Write a page of plots: how the releases of each number lie around the exact one
    #[arg(long, value_name = "FILE")]
    pub figure: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Whether releases are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NoiseSwitch {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Reads `registry=registry.csv`.
fn party_file(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((party, file)) if !party.is_empty() && !file.is_empty() => Ok((party.to_owned(), file.into())),
        _ => Err("write a party's name and its file: registry=registry.csv".to_owned()),
    }
}

/// Tries the study and prints what came of it.
///
/// # Errors
/// What is wrong with the study, a file or a flag.
pub fn run(args: &SimulateArgs) -> Result<(), Error> {
    study::expect_study(&args.study)?;
    let (file, _) = StudyFile::read(&args.study)?;
    let mut data = named(args, &file)?;
    // Made-up files are gone with it.
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a folder for made-up files", &e))?;
    let missing: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
    let missing: Vec<String> = missing.into_iter().filter(|name| !data.contains_key(name)).collect();
    let made = match args.made_up {
        Some(rows) if !file.first().only_matches() => {
            let _working = (!missing.is_empty()).then(|| Working::on("making up files"));
            generate::for_study(folder.path(), &file, &missing, rows, args.seed)?
        }
        _ => Vec::new(),
    };
    let made_up: Vec<String> = made.iter().map(|made| made.party.clone()).collect();
    data.extend(made.into_iter().map(|made| (made.party, made.path.into())));
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let asked = SimulationQuestion {
        file,
        data,
        made_up,
        draws: if args.noise == NoiseSwitch::On { args.draws } else { 0 },
        seed: args.seed,
        threads: args.threads.map_or_else(cores, usize::from),
    };
    let simulation = watched(&asked).map_err(|error| by_party_file(error, args))?;
    if let Some(page) = &args.figure {
        figure::write(page, &simulation)?;
    }
    match args.json {
        true => output::print_json(&simulation),
        false => output::print(&told::simulated::text(&simulation, width::columns())),
    }
}

/// Forms of files are flags of other commands, and so is what a file calls a column otherwise; here each
/// party has its own.
fn by_party_file(error: Error, args: &SimulateArgs) -> Error {
    let plain = args.data.iter().any(|(_, path)| path.extension().is_none_or(|of| of != "toml"));
    match error.kind() {
        Fault::Input(text) if text.contains("[format] of the party file") => Error::input(format!(
            "{text}\n`tacit simulate` has no flags for the form of files: each party's stands in its party \
             file (--data PARTY=PARTY_FILE.toml)"
        )),
        Fault::Input(text) if plain && text.contains(": no column \"") => Error::input(format!(
            "{text}\nWhere a party's file calls a column otherwise than the study, its party file says so: \
             give that in place of the data (--data PARTY=PARTY_FILE.toml)"
        )),
        _ => error,
    }
}

/// The data of a party's path: of a party file, what it says of its data and their form.
fn files(party: &str, path: &Path) -> Result<SimulatedData, Error> {
    if path.extension().is_none_or(|extension| extension != "toml") {
        return Ok(path.to_owned().into());
    }
    let PartySetup { as_party, data, store, format, .. } = PartySettings::read(path)?.complete()?;
    if as_party != party {
        return Err(Error::input(format!(
            "--data {party}={}: the party file is of {as_party} (`as`), not of {party}",
            path.display()
        )));
    }
    Ok(SimulatedData { path: data, store, format, stream: None })
}

/// The files of `--data`, each of a party of the study.
fn named(args: &SimulateArgs, file: &StudyFile) -> Result<BTreeMap<String, SimulatedData>, Error> {
    let mut data = BTreeMap::new();
    for (party, path) in &args.data {
        if file.member(party).is_none() {
            let names: Vec<&str> = file.parties.iter().map(|member| member.name.as_str()).collect();
            return Err(Error::input(format!(
                "--data {party}={}: the study names no such party, but {}",
                path.display(),
                names.join(", ")
            )));
        }
        if data.insert(party.clone(), files(party, path)?).is_some() {
            return Err(Error::input(format!(
                "--data {party} stands there twice; several files of one party go into a folder"
            )));
        }
    }
    Ok(data)
}

/// Least time between two lines where nobody watches a terminal, and before the first one.
const LINE_EVERY: Duration = Duration::from_secs(2);

fn watched(asked: &SimulationQuestion) -> Result<Simulation, Error> {
    let (board, said) = (Working::on("simulating"), Mutex::new(Instant::now()));
    let progress: SimulationProgress<'_> = &|what, done, of| {
        let Ok(mut said) = said.lock() else { return };
        let every = if board.is_live() { LINE_EVERY / 20 } else { LINE_EVERY };
        if said.elapsed() >= every {
            *said = Instant::now();
            board.tell(format!("{what}: {} of {}", count(done), count(of)));
        }
    };
    simulate(asked, progress)
}
