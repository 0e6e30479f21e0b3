//! What the command calls, for Python: the module `tacit._tacit`, below the package in `python/tacit`.
//!
//! No Python object crosses into another thread: what happens in a run comes over a queue to the thread that
//! called ([`watched`]). Results cross as the JSON that the command prints; the package makes objects of it.

mod arrow;
mod drafts;
mod errors;
mod party;
mod reports;
mod studies;
mod tools;
mod watched;
mod workers;

use pyo3::prelude::*;

/// What the command calls, for the package `tacit`.
#[pymodule]
mod _tacit {
    #[pymodule_export]
    use super::arrow::{GivenRows, ShownTable};
    #[pymodule_export]
    use super::drafts::DraftHandle;
    #[pymodule_export]
    use super::party::PartyHandle;
    #[pymodule_export]
    use super::reports::ReportHandle;
    #[pymodule_export]
    use super::studies::{StudyHandle, canonical, prices_2026};
    #[pymodule_export]
    use super::tools::{LedgerHandle, generate, key_of, keygen, simulate};
    #[pymodule_export]
    use super::watched::StopHandle;
    #[pymodule_export]
    use super::workers::{LauncherHandle, WorkerHandle, run_worker};
    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::watched::remember_process();
        module.add("__commit__", option_env!("TACIT_COMMIT").filter(|commit| !commit.is_empty()))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
