//! Programs that Python functions make: each operation is a line that `program` reads at once.

use program::{Class, TextDraft, VerifierPolicy, Viewer, verify};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use release::Rational;
use release::rational::ratio;

/// A program in the making.
#[pyclass(module = "tacit._tacit", name = "Draft")]
pub(crate) struct DraftHandle(TextDraft);

#[pymethods]
impl DraftHandle {
    #[new]
    fn new() -> Self {
        Self(TextDraft::default())
    }

    /// Reads the next line, which comes from a line of the caller's. Raises ValueError.
    fn line(&mut self, text: &str, file: &str, line: usize) -> PyResult<()> {
        self.0.line(text, (file, line)).map_err(PyValueError::new_err)
    }

    /// The type of a value of this section.
    fn type_of(&self, value: &str) -> Option<String> {
        self.0.ty(value).map(|ty| ty.to_string())
    }

    /// Parts of one that a value of the row section is counted in.
    fn scale_of(&mut self, value: &str) -> Option<u32> {
        self.0.scale(value)
    }

    /// What a value of the row section holds for a number in its unit, in digits. Raises ValueError.
    fn number(&mut self, value: &str, text: &str) -> PyResult<String> {
        self.0.number(value, text).map(|number| number.to_string()).map_err(PyValueError::new_err)
    }

    /// Verifies the program of all lines over so many rows, apart from what a party's policy allows: by
    /// viewer the rho that it is charged. Raises ValueError. The draft is empty then.
    fn verified(&mut self, rows: u64) -> PyResult<Vec<(String, String)>> {
        let wrong = |error: base::Error| PyValueError::new_err(error.to_string());
        let program = std::mem::take(&mut self.0).finish().map_err(wrong)?;
        let policy = VerifierPolicy {
            max_rho: ratio(u64::MAX, 1),
            max_outputs: usize::MAX,
            allow_exact: program.class == Class::Exact,
        };
        let audit = verify(&program, &policy, rows).map_err(wrong)?;
        let own = program.parties.iter().zip(&audit.rho).map(|(party, rho)| (party.as_str(), rho));
        let all = own.chain([(Viewer::PUBLIC, &audit.public)]);
        let charged = all.filter(|(_, rho)| **rho > ratio(0, 1));
        Ok(charged.map(|(viewer, rho): (&str, &Rational)| (viewer.to_owned(), rho.to_string())).collect())
    }
}
