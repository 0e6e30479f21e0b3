//! A party of a study, and what it does.

use crate::arrow::{GivenRows, ShownTable};
use crate::errors::{exception, misused, raised, raised_by};
use crate::reports::ReportHandle;
use crate::studies::{Printed, StudyHandle, checked, json};
use crate::watched::{StopHandle, watched};
use crate::workers::GivenWorkers;
use base::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use data::RowStream;
use job::check::{CheckSizes, CheckedSide};
use job::folders::expect_report_folder;
use job::prepare::Opened;
use job::run::Part;
use pyo3::prelude::*;
use std::path::PathBuf;
use study::StudyFile;
use study::party::{Consent, PartySettings, PartySetup};
use study::reader::{nearest, printable};

/// Settings as words, as on the command line.
#[derive(Parser)]
#[command(name = "Party", no_binary_name = true, disable_help_flag = true)]
struct PartyWords {
    #[command(flatten)]
    settings: PartySettings,
}

/// A party's settings. They stay as they are.
#[pyclass(frozen, module = "tacit._tacit", name = "Party")]
pub(crate) struct PartyHandle {
    settings: PartySettings,
    study: Option<(StudyFile, String)>,
}

/// A party's data: where they lie, or rows of a data frame.
#[derive(FromPyObject)]
pub(crate) enum GivenData {
    /// Rows that were handed over.
    Rows(Py<GivenRows>),
    /// A file, a folder, a pattern or objects of a bucket.
    Path(PathBuf),
}

impl GivenData {
    /// The path, or what the rows are called; and the rows.
    pub(crate) fn parts(self) -> (PathBuf, Option<RowStream>) {
        match self {
            Self::Path(path) => (path, None),
            Self::Rows(rows) => {
                let stream = rows.get().stream();
                (stream.name().into(), Some(stream))
            }
        }
    }
}

/// What an operator says for one run: other data than those that look alike, rho for what is too small, a
/// ledger in the place of one that is lost.
type Said = (bool, bool, bool);

/// A party that is ready to begin, but for its key, which its thread reads.
struct ReadyParty {
    party: PartySetup,
    /// The folder for reports, where one was said: without it nothing is written.
    report: Option<PathBuf>,
    study: Option<(StudyFile, String)>,
    stream: Option<RowStream>,
}

impl ReadyParty {
    fn open(self) -> Result<(PartySetup, Opened), Error> {
        let Self { party, report, study, stream } = self;
        report.iter().try_for_each(|folder| expect_report_folder(folder))?;
        let opened = match study {
            Some(study) => Opened::new(study, &party.as_party, &party.identity)?,
            None => Opened::of(&party)?,
        };
        Ok((party, Opened { stream, ..opened }))
    }
}

#[pymethods]
impl PartyHandle {
    /// From settings as words, which win over the party file where one is named. A study takes the place of a
    /// study file.
    #[new]
    fn new(
        py: Python<'_>,
        words: Vec<String>,
        file: Option<PathBuf>,
        study: Option<&StudyHandle>,
    ) -> PyResult<Self> {
        let read = PartyWords::try_parse_from(words).map_err(|e| misused(py, rule(&e)))?.settings;
        let mut settings = match file {
            Some(path) => read.over(&path).map_err(|e| raised(py, &e))?,
            None => read,
        };
        let study = study.map(|study| (study.file.clone(), study.text.clone()));
        if let Some((file, _)) = &study {
            settings.common.study = Some(file.first().name.clone().into());
        }
        Ok(Self { settings, study })
    }

    /// The study, as it was given or as the party file names it.
    fn study(&self, py: Python<'_>) -> PyResult<StudyHandle> {
        let read = || match (&self.study, &self.settings.common.study) {
            (Some(study), _) => Ok(study.clone()),
            (None, Some(path)) => StudyFile::read(path),
            (None, None) => Err(Error::input("no study: give one, or a party file that names one")),
        };
        let (file, text) = read().map_err(|e| raised(py, &e))?;
        Ok(StudyHandle { file, text })
    }

    /// Which party it is.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.settings.common.as_party.as_deref()
    }

    /// The folder for reports, where one was said.
    #[getter]
    fn report(&self) -> Option<PathBuf> {
        self.settings.report.clone()
    }

    /// What `tacit check` prints, as JSON and as text, and what a run would be refused for.
    #[pyo3(signature = (data, said, rows = None, mean = None, stop = None))]
    fn check<'py>(
        &self,
        py: Python<'py>,
        data: Option<GivenData>,
        said: Said,
        rows: Option<[u64; 2]>,
        mean: Option<f64>,
        stop: Option<&StopHandle>,
    ) -> PyResult<(Printed, Option<Bound<'py, PyAny>>)> {
        let ready = self.ready(py, data, said)?;
        let job = move || {
            let (party, opened) = ready.open()?;
            let side = CheckedSide::of_party(party, opened)?;
            let found = side.report(&CheckSizes { rows, mean, ..CheckSizes::default() }, None)?;
            Ok::<_, Error>((checked(&found, rows.is_none())?, found.refused))
        };
        let (found, refused) = watched(py, (None, stop), move |_| job())?.map_err(|e| self.raised(py, &e))?;
        Ok((found, refused.err().map(|e| exception(py, &e, self.name())).transpose()?))
    }

    /// This party's half of a study. Of each run: with whom, its report or the error, and this party's own
    /// answer where it was complete before the error.
    #[pyo3(signature = (data, said, listener = None, stop = None, workers = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        data: Option<GivenData>,
        said: Said,
        listener: Option<Py<PyAny>>,
        stop: Option<&StopHandle>,
        workers: Option<GivenWorkers>,
    ) -> PyResult<Vec<RunPart<'py>>> {
        let (ready, workers) = (self.ready(py, data, said)?, GivenWorkers::place(workers));
        let parts = watched(py, (listener, stop), move |teller| {
            let (party, opened) = ready.open()?;
            job::run::run_parts(&party, &opened, &teller.watch(workers))
        })?;
        let part = |Part { with, report, own_answer }: Part| {
            let answer = own_answer.map(ReportHandle);
            Ok(match report {
                Ok(report) => (with, Some(ReportHandle(report)), None, answer),
                Err(error) => (with, None, Some(exception(py, &error, self.name())?), answer),
            })
        };
        parts.map_err(|e| self.raised(py, &e))?.into_iter().map(part).collect()
    }

    /// This party's half of a match, whose part goes to the Parquet file `out`, by workers there: what `tacit
    /// match --json` prints, and without a file the part.
    #[pyo3(signature = (data, out_by, said, listener = None, stop = None))]
    fn r#match(
        &self,
        py: Python<'_>,
        data: Option<GivenData>,
        out_by: (Option<PathBuf>, Option<GivenWorkers>),
        said: Said,
        listener: Option<Py<PyAny>>,
        stop: Option<&StopHandle>,
    ) -> PyResult<(String, Option<ShownTable>)> {
        let (ready, (out, workers)) = (self.ready(py, data, said)?, out_by);
        let workers = GivenWorkers::place(workers);
        let done = watched(py, (listener, stop), move |teller| {
            let (party, opened) = ready.open()?;
            let (report, part) =
                job::run::run_match(&party, &opened, out.as_deref(), &teller.watch(workers))?;
            Ok::<_, Error>((json(&report)?, part.map(ShownTable::of_part)))
        })?;
        done.map_err(|e| self.raised(py, &e))
    }
}

/// With whom; a report; an error; an own answer.
type RunPart<'py> = (String, Option<ReportHandle>, Option<Bound<'py, PyAny>>, Option<ReportHandle>);

impl PartyHandle {
    fn raised(&self, py: Python<'_>, error: &Error) -> PyErr {
        raised_by(py, self.name(), error)
    }

    fn ready(&self, py: Python<'_>, data: Option<GivenData>, said: Said) -> PyResult<ReadyParty> {
        let (mut settings, mut stream) = (self.settings.clone(), None);
        if let Some(data) = data {
            let (path, rows) = data.parts();
            (settings.data, stream) = (Some(path), rows);
        }
        if settings.common.memory.is_some() {
            kernels::return_freed_buffers();
        }
        let (new_lineage, spend_anyway, new_ledger) = said;
        let consent = Consent { new_lineage, spend_anyway };
        let report = settings.report.clone();
        let party = settings.complete().map_err(|e| self.raised(py, &e))?;
        Ok(ReadyParty {
            report,
            party: PartySetup { consent, new_ledger, ..party },
            study: self.study.clone(),
            stream,
        })
    }
}

/// What is wrong with a word, without how a command is used.
fn rule(error: &clap::Error) -> String {
    let unknown = error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument);
    if let Some(ContextValue::String(flag)) = unknown {
        return no_setting(flag.trim_start_matches('-').split('=').next().unwrap_or_default());
    }
    let text = error.to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    text.trim().trim_start_matches("error: ").to_owned()
}

/// A setting that there is none of, all that there are, and which one may be meant.
fn no_setting(name: &str) -> String {
    let command = PartyWords::command();
    let names: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
    let meant = nearest(&name.replace('_', "-"), &names);
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean \"{meant}\"?"));
    format!("no setting \"{}\"; there are: {}{meant}", printable(name), names.join(", "))
}
