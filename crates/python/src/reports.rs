//! Reports.

use crate::errors::raised;
use crate::studies::json;
use pyo3::prelude::*;
use report::{NumberTable, PublicReport, RunReport, html, summary};
use std::path::PathBuf;
use terminal::output::write_file;

/// A report of a run. It stays as it is.
#[pyclass(frozen, module = "tacit._tacit", name = "Report")]
pub(crate) struct ReportHandle(pub(crate) RunReport);

#[pymethods]
impl ReportHandle {
    /// The report or the reports of a `report.json`.
    #[staticmethod]
    fn all_of(py: Python<'_>, text: &str) -> PyResult<Vec<Self>> {
        let all = report::all_from_json(text).map_err(|e| raised(py, &e))?;
        Ok(all.into_iter().map(Self).collect())
    }

    /// What `tacit run --json` prints.
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        report::to_json(&self.0).map_err(|e| raised(py, &e))
    }

    /// What `tacit run` prints, for who has the report in hand.
    fn text(&self) -> String {
        summary::told(&self.0, summary::USUAL_COLUMNS, "report.numbers").trim_end().to_owned()
    }

    /// The page that `tacit run` writes.
    fn html(&self) -> String {
        html::render(&self.0)
    }

    /// The numbers as `tacit report --csv` has them: titles of the columns, and a JSON array of
    /// an object each.
    fn numbers(&self, py: Python<'_>) -> PyResult<(Vec<String>, String)> {
        let table = NumberTable::of(&self.0);
        let (titles, rows) = table.objects();
        Ok((titles.to_vec(), json(&rows).map_err(|e| raised(py, &e))?))
    }

    /// The public result alone: JSON, and a page. Refused where there is none.
    fn public(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let made = || {
            let public = PublicReport::of(&self.0)?;
            Ok::<_, base::Error>((report::public_to_json(&public)?, html::render_public(&public)))
        };
        made().map_err(|e| raised(py, &e))
    }

    /// Writes `report.json` and `report.html` into a folder, which is made if need be.
    fn save(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let write = || {
            write_file(&folder.join("report.json"), report::to_json(&self.0)?.as_bytes())?;
            write_file(&folder.join("report.html"), html::render(&self.0).as_bytes())
        };
        write().map_err(|e| raised(py, &e))
    }
}
