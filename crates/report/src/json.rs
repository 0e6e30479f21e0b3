//! Reports as JSON.

use crate::{FORMAT, PARTS_FORMAT, PartReports, RunReport};
use base::Error;

/// The JSON of a report.
///
/// # Errors
/// Never for a report that this crate made: it holds no map with other keys than text.
pub fn to_json(report: &RunReport) -> Result<String, Error> {
    pretty(report)
}

/// The JSON of several reports.
///
/// # Errors
/// As [`to_json`].
pub fn parts_to_json(reports: &PartReports) -> Result<String, Error> {
    pretty(reports)
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Error::misuse(format!("the report does not serialise: {e}")))
}

/// One report, or those of several runs, from their JSON.
///
/// # Errors
/// As [`from_json`].
pub fn all_from_json(text: &str) -> Result<Vec<RunReport>, Error> {
    match serde_json::from_str::<PartReports>(text) {
        Ok(reports) if reports.format == PARTS_FORMAT => Ok(reports.parts),
        _ => Ok(vec![from_json(text)?]),
    }
}

/// A report from its JSON.
///
/// # Errors
/// When it is not a report of this version; line and column say where.
pub fn from_json(text: &str) -> Result<RunReport, Error> {
    let report: RunReport =
        serde_json::from_str(text).map_err(|e| Error::input(format!("not a report: {e}")))?;
    if report.format != FORMAT {
        return Err(Error::input(format!(
            "the report's format is {:?}, this version reads {FORMAT:?}",
            report.format
        )));
    }
    Ok(report)
}

/// The stored answer of an earlier run.
///
/// # Errors
/// As [`from_json`].
pub fn stored(json: &str) -> Result<RunReport, Error> {
    Ok(RunReport { stored: true, ..from_json(json)? })
}

#[cfg(test)]
mod tests {
    /// Stored answers of earlier versions do not say whether an output was computed from noised values.
    #[test]
    fn outputs_without_the_newer_field_are_read() {
        let text = r#"{"label":"gap","value":"-3","sigma":null}"#;
        let output: crate::ProgramOutput = serde_json::from_str(text).expect("an output");
        assert!(!output.noised && output.is_exact());
        let text = r#"{"label":"gap","value":"-3","sigma":null,"noised":true}"#;
        let output: crate::ProgramOutput = serde_json::from_str(text).expect("an output");
        assert!(!output.is_exact());
    }
}
