//! Reports as JSON.

use crate::{FORMAT, PARTS_FORMAT, PartReports, PublicReport, ResultView, RunReport};
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

/// The JSON of a public result.
///
/// # Errors
/// As [`to_json`].
pub fn public_to_json(public: &PublicReport) -> Result<String, Error> {
    pretty(public)
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
        Ok(reports) if reports.format == PARTS_FORMAT => Ok(reports.parts.into_iter().map(apart).collect()),
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
    Ok(apart(report))
}

/// What earlier versions said of a party's own rows among the warnings of the run.
const OF_OWN_ROWS: [&str; 2] = [
    " were cut: more than max_events",
    " rows, and no result is shown of fewer than the study's minimum_group",
];

/// Puts what is of this party's own rows where nobody takes it for a part of the result, and adjusts p-values
/// that an earlier version did not.
fn apart(mut report: RunReport) -> RunReport {
    for view in [Some(&mut report.view), report.public.as_mut()].into_iter().flatten() {
        if let ResultView::Lift(view) = view {
            view.adjust();
        }
    }
    let own = |text: &String| OF_OWN_ROWS.iter().any(|of| text.contains(of));
    let (moved, rest) = std::mem::take(&mut report.warnings).into_iter().partition(own);
    report.warnings = rest;
    report.own_warnings = [moved, report.own_warnings].concat();
    report
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
    /// Stored answers of earlier versions have exact numbers of own rows among the warnings of the run.
    #[test]
    fn own_numbers_of_earlier_reports_are_kept_apart() {
        let mut report = crate::html::samples::hospitals();
        let cut = "620 events of 413 identifiers were cut: more than max_events";
        let small = "cohort a, of both arms together, has 973 rows, and no result is shown of fewer than the \
                     study's minimum_group of 1000";
        let run = "the ledger of works went back";
        report.warnings = [cut, run, small].map(str::to_owned).into();
        let mut json = serde_json::to_value(&report).expect("it serialises");
        for newer in ["own_warnings", "public_terms"] {
            json.as_object_mut().expect("an object").remove(newer);
        }
        json["study"].as_object_mut().expect("an object").remove("full_hash");
        let read = super::from_json(&json.to_string()).expect("a report");
        assert_eq!(read.warnings, [run]);
        assert_eq!(read.own_warnings, [cut, small]);
        assert!(read.study.full_hash.is_empty() && read.public_terms.is_none());
    }

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
