//! Keys, ledgers, made-up data, simulations.

use crate::errors::raised;
use crate::party::GivenData;
use crate::studies::{Printed, StudyHandle, json};
use crate::watched::{StopHandle, watched};
use base::Error;
use data::generate::{FileFormat, Generated, LiftOptions, MadeUpFile, for_study, lift, polio};
use job::simulate::{SimulatedData, SimulationQuestion};
use job::told;
use net::Identity;
use privacy::ledger::Ledger;
use pyo3::prelude::*;
use report::summary::USUAL_COLUMNS;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use study::{Question, StudyFile};

/// Makes an identity in a new file, perhaps in the place of another. Returns its fingerprint.
#[pyfunction]
#[pyo3(signature = (path, succeeds = None))]
pub(crate) fn keygen(py: Python<'_>, path: PathBuf, succeeds: Option<PathBuf>) -> PyResult<String> {
    let make = || {
        let identity = match &succeeds {
            Some(old) => Identity::load(old)?.succeed(old, &path)?,
            None => {
                let identity = Identity::generate()?;
                identity.save(&path)?;
                identity
            }
        };
        Ok::<_, Error>(identity.fingerprint().to_string())
    };
    make().map_err(|e| raised(py, &e))
}

/// The fingerprint of an identity in a file.
#[pyfunction]
pub(crate) fn key_of(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    Ok(Identity::load(&path).map_err(|e| raised(py, &e))?.fingerprint().to_string())
}

/// A privacy ledger, which is there. Every question opens it anew.
#[pyclass(frozen, module = "tacit._tacit", name = "Ledger")]
pub(crate) struct LedgerHandle(PathBuf);

#[pymethods]
impl LedgerHandle {
    #[new]
    fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Debits, what each viewer has got, and names by key: a JSON object.
    fn show(&self, py: Python<'_>) -> PyResult<String> {
        let read = || {
            let ledger = self.open()?;
            let (entries, totals, names) = (ledger.entries()?, ledger.totals()?, ledger.names()?);
            json(&json!({ "entries": entries, "totals": totals, "names": names }))
        };
        read().map_err(|e| raised(py, &e))
    }

    /// What all viewers of a lineage have got together, as a decimal or a fraction.
    fn spent(&self, py: Python<'_>, lineage: &str) -> PyResult<String> {
        let read = || self.open()?.left_of_total(lineage, None);
        Ok(read().map_err(|e| raised(py, &e))?.rho)
    }
}

impl LedgerHandle {
    /// Looking at one must not make one.
    fn open(&self) -> Result<Ledger, Error> {
        if !self.0.exists() {
            let path = self.0.display();
            return Err(Error::input(format!("there is no ledger {path}; a run makes it")));
        }
        Ledger::open(&self.0)
    }
}

/// Tries a study with the data of all parties: what `tacit simulate` prints, as JSON and as text.
#[pyfunction]
#[pyo3(signature = (study, data, draws, seed, threads = None, stop = None))]
pub(crate) fn simulate(
    py: Python<'_>,
    study: &StudyHandle,
    data: BTreeMap<String, GivenData>,
    draws: u64,
    seed: u64,
    threads: Option<usize>,
    stop: Option<&StopHandle>,
) -> PyResult<Printed> {
    let file = study.file.clone();
    let own = |(party, given): (String, GivenData)| {
        let (path, stream) = given.parts();
        if file.member(&party).is_none() {
            let names: Vec<&str> = file.parties.iter().map(|member| member.name.as_str()).collect();
            let text = format!("{party}: the study names no such party, but {}", names.join(", "));
            return Err(raised(py, &Error::input(text)));
        }
        Ok((party, SimulatedData { stream, ..path.into() }))
    };
    let data = data.into_iter().map(own).collect::<PyResult<_>>()?;
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads.filter(|threads| *threads > 0).unwrap_or_else(cores);
    let asked = SimulationQuestion { file: file.clone(), data, made_up: Vec::new(), draws, seed, threads };
    let job = move || {
        let simulation = job::simulate::simulate(&asked, &|_, _, _| ())?;
        Ok::<_, Error>((json(&simulation)?, told::simulated::text(&simulation, USUAL_COLUMNS)))
    };
    watched(py, (None, stop), move |_| job())?.map_err(|e| raised(py, &e))
}

/// Makes up data: of a random trial, of the field trial of 1954, or of a study's columns. What
/// `tacit generate --json` prints.
#[pyfunction]
#[pyo3(signature = (what, out, seed, rows, overlap, events, clamp, format, study = None))]
#[expect(clippy::too_many_arguments, reason = "the words of a call")]
pub(crate) fn generate(
    py: Python<'_>,
    what: String,
    out: PathBuf,
    seed: u64,
    rows: [u64; 2],
    overlap: f64,
    events: u8,
    clamp: u32,
    format: &str,
    study: Option<&StudyHandle>,
) -> PyResult<String> {
    let format = if format == "parquet" { FileFormat::Parquet } else { FileFormat::Csv };
    let study = study.map(|study| study.file.clone());
    let make = move || match (&*what, study) {
        ("polio", _) => json(&side_by_side(&polio(&out, seed)?)),
        ("lift", _) => {
            let most = u32::try_from(rows[0]).map_err(|_| Error::limit("rows", rows[0], 1 << 31))?;
            let options =
                LiftOptions { rows: most, overlap, max_events: events, clamp, seed, format, files: 1 };
            json(&side_by_side(&lift(&out, &options, &|_, _| ())?))
        }
        (_, Some(file)) => json(&own_columns(&out, &file, rows, seed)?),
        (_, None) => Err(Error::input("a study is missing")),
    };
    watched(py, (None, None), move |_| make())?.map_err(|e| raised(py, &e))
}

fn side_by_side(made: &Generated) -> Value {
    let side = |path: &PathBuf, rows: u64| json!({ "file": path.display().to_string(), "rows": rows });
    json!({
        "publisher": side(&made.publisher, made.publisher_rows),
        "advertiser": side(&made.advertiser, made.advertiser_rows),
        "truth": made.truth,
    })
}

fn own_columns(out: &Path, file: &StudyFile, rows: [u64; 2], seed: u64) -> Result<Value, Error> {
    if matches!(file.first().kind, Question::Lift(_)) {
        return Err(Error::input("for a lift study there is tacit.generate.lift, with a known answer"));
    }
    let parties: Vec<String> = file.parties.iter().map(|member| member.name.clone()).collect();
    let made = for_study(out, file, &parties, rows, seed)?;
    let party = |made: &MadeUpFile| {
        let file = made.path.display().to_string();
        json!({ "party": made.party, "file": file, "rows": made.lines })
    };
    Ok(json!({ "parties": made.iter().map(party).collect::<Vec<_>>() }))
}
