//! Errors as exceptions of the package.

use base::{BudgetShortfall, Error};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use terminal::output::{ExitVerdict, verdict};

/// The exception that an error is: what the command would print with `--json`, and what to do next.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    exception(py, error, None).map_or_else(|failed| failed, PyErr::from_value)
}

/// The same of a call of a party, which is who reports what nobody else does.
pub(crate) fn raised_by(py: Python<'_>, party: Option<&str>, error: &Error) -> PyErr {
    exception(py, error, party).map_or_else(|failed| failed, PyErr::from_value)
}

/// The exception itself, and whose call it ended.
///
/// # Errors
/// When the package is not whole.
pub(crate) fn exception<'py>(
    py: Python<'py>,
    error: &Error,
    caller: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let ExitVerdict { code, name } = verdict(error);
    let at = error.at();
    let fields = PyDict::new(py);
    fields.set_item("message", error.to_string())?;
    fields.set_item("kind", name)?;
    fields.set_item("code", code)?;
    let party = Some(at.party.as_str()).filter(|party| !party.is_empty()).or(caller);
    fields.set_item("party", party)?;
    fields.set_item("peer", &at.peer)?;
    fields.set_item("step", (!at.step.is_empty()).then_some(&at.step))?;
    fields.set_item("hint", error.left())?;
    let place = |place: &base::ErrorPlace| (place.file.clone(), place.line, place.column.clone());
    fields.set_item("places", error.places().iter().map(place).collect::<Vec<_>>())?;
    if let Some(BudgetShortfall { bound, spent, budget, asked }) = error.shortfall() {
        fields.set_item("shortfall", (bound, spent, budget, asked))?;
    }
    py.import("tacit._errors")?.getattr("_made")?.call((), Some(&fields))
}

/// Mistakes of a call, as the command's of a flag.
pub(crate) fn misused(py: Python<'_>, text: impl Into<String>) -> PyErr {
    raised(py, &Error::input(text))
}
