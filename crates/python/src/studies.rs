//! Studies.

use crate::errors::raised;
use crate::watched::watched;
use base::Error;
use job::check::{CheckSizes, CheckedSide, SideReport};
use job::plan::{Link, PlanQuestion};
use job::told;
use pyo3::prelude::*;
use report::summary::USUAL_COLUMNS;
use std::path::PathBuf;
use study::prices::{BytePath, PriceList};
use study::transport::ServerTransport;
use study::{Question, StudyFile};

/// What the command prints with `--json`, and without.
pub(crate) type Printed = (String, String);

/// A study, read and checked. It stays as it is.
#[pyclass(frozen, module = "tacit._tacit", name = "Study")]
pub(crate) struct StudyHandle {
    pub(crate) file: StudyFile,
    pub(crate) text: String,
}

#[pymethods]
impl StudyHandle {
    /// Reads the text of a study; messages call it `name`.
    #[staticmethod]
    fn parse(py: Python<'_>, name: &str, text: String) -> PyResult<Self> {
        let file = StudyFile::parse(name, &text).map_err(|e| raised(py, &e))?;
        Ok(Self { file, text })
    }

    /// Reads a study file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let read = study::expect_study(&path).and_then(|()| StudyFile::read(&path));
        let (file, text) = read.map_err(|e| raised(py, &e))?;
        Ok(Self { file, text })
    }

    /// The text as it was read.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    /// The text of the program, of a study of one.
    #[getter]
    fn program(&self) -> Option<&str> {
        match &self.file.first().kind {
            Question::Program(own) => Some(&own.source.text),
            _ => None,
        }
    }

    /// The hash in full, 64 hex digits.
    #[getter]
    fn hash(&self) -> String {
        self.file.hash().full()
    }

    /// The short name.
    #[getter]
    fn name(&self) -> &str {
        &self.file.first().name
    }

    /// How many runs this party has: with each advertiser one, where they are apart.
    fn runs_of(&self, party: &str) -> usize {
        self.file.runs_of(party).count()
    }

    /// One line for people.
    #[getter]
    fn title(&self) -> &str {
        &self.file.first().title
    }

    /// Names and keys of the parties, in their order.
    #[getter]
    fn parties(&self) -> Vec<(String, String)> {
        self.file.parties.iter().map(|party| (party.name.clone(), party.key.clone())).collect()
    }

    /// What `tacit check` prints of the study alone, as JSON and as text.
    #[pyo3(signature = (rows = None, mean = None, peer = None))]
    fn check(
        &self,
        py: Python<'_>,
        rows: Option<[u64; 2]>,
        mean: Option<f64>,
        peer: Option<(String, String)>,
    ) -> PyResult<Printed> {
        let (file, text) = (self.file.clone(), self.text.clone());
        let job = move || {
            let same = |(shown, theirs): (String, String)| study::expect_same(&text, (&shown, &theirs));
            let peer_agrees = peer.map(|peer| same(peer).map(|()| true)).transpose()?;
            let side = CheckedSide::of_study(file, text)?;
            let found = side.report(&CheckSizes { rows, mean, ..CheckSizes::default() }, peer_agrees)?;
            let printed = checked(&found, rows.is_none())?;
            found.refused?;
            Ok::<_, Error>(printed)
        };
        watched(py, (None, None), move |_| job())?.map_err(|e| raised(py, &e))
    }

    /// What `tacit plan` prints, as JSON and as text.
    #[pyo3(signature = (rows, link, mean, cores, prices, between, both = None))]
    #[expect(clippy::too_many_arguments, reason = "the words of a call")]
    fn plan(
        &self,
        py: Python<'_>,
        rows: [u64; 2],
        link: String,
        mean: Option<f64>,
        cores: u32,
        prices: Option<(String, String)>,
        between: String,
        both: Option<u64>,
    ) -> PyResult<Printed> {
        let file = self.file.clone();
        let job = move || {
            let asked = PlanQuestion {
                rows,
                both,
                mean,
                link: Link::parse(&link).map_err(|e| Error::input(format!("link: {e}")))?,
                cores,
                transport: ServerTransport::Tls,
                prices: prices.map(|(name, text)| PriceList::parse(&name, &text)).transpose()?,
                between: BytePath::parse(&between).map_err(|e| Error::input(format!("between: {e}")))?,
            };
            let plan = asked.plan(&file)?.0;
            Ok::<_, Error>((json(&plan)?, told::plan_text(&plan, file.first(), USUAL_COLUMNS)))
        };
        watched(py, (None, None), move |_| job())?.map_err(|e| raised(py, &e))
    }
}

/// What a study says, in the one text that all studies have that say the same in the same words.
#[pyfunction]
pub(crate) fn canonical(py: Python<'_>, name: &str, text: &str) -> PyResult<String> {
    study::canonical(name, text).map_err(|e| raised(py, &e))
}

/// The text of the prices that the documentation has.
#[pyfunction]
pub(crate) fn prices_2026() -> &'static str {
    include_str!("../../../docs/prices-2026.toml")
}

/// A result as the command prints it.
///
/// # Errors
/// Never for what the command prints.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|e| Error::misuse(format!("a result does not serialise: {e}")))
}

/// What `tacit check` prints of this; `guessed` says that the other side's rows are a guess.
///
/// # Errors
/// As [`json`].
pub(crate) fn checked(side: &SideReport, guessed: bool) -> Result<Printed, Error> {
    let SideReport { report, agreed, built, serves, .. } = side;
    let facts = (*serves, guessed);
    let text = told::checked::text(report, (agreed, built), "PARTY_FILE", facts, USUAL_COLUMNS);
    Ok((json(report)?, text))
}
