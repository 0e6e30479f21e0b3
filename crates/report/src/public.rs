//! The public result of a report by itself: what may be passed on, and byte for byte the same at all parties.
//!
//! It holds nothing that is one party's: no counts of files, sizes of the match, balances of ledgers, bytes
//! or times. What is added to it must be the same in the reports of all parties.

use crate::{ResultView, RunReport, StudyInfo};
use base::Error;
use serde::{Deserialize, Serialize};

/// Format of the JSON.
pub const PUBLIC_FORMAT: &str = "tacit-public/1";

/// What the public result costs whoever reads it and nothing else, and what holds for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublicTerms {
    /// zCDP charged for the public result, exact: `1/10`.
    pub rho: String,
    /// The same as a number.
    pub rho_value: f64,
    /// The epsilon of (epsilon, delta)-DP that this rho implies; absent where there is no noise in it.
    pub epsilon: Option<f64>,
    /// Its delta; absent likewise.
    pub delta: Option<f64>,
    /// What the noise may add to delta because its law is off by a little.
    pub off: f64,
    /// What the guarantee is of one of, as the study says; absent where it does not.
    pub unit: Option<String>,
    /// Which attempt at the public release this is, from 1; absent where the first one came through.
    pub attempt: Option<u32>,
    /// What the guarantee covers and what it does not, one statement per line.
    pub guarantee: Vec<String>,
}

/// The public result of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublicReport {
    /// [`PUBLIC_FORMAT`].
    pub format: String,
    /// The study.
    pub study: StudyInfo,
    /// Names of all parties, in the order of the roster.
    pub parties: Vec<String>,
    /// Names of the servers that computed it, where the parties did not.
    pub servers: Vec<String>,
    /// Release mode, as in a report.
    pub mode: String,
    /// The result.
    pub public: ResultView,
    /// What it costs, and what holds for it.
    pub public_terms: PublicTerms,
}

/// The result without identifiers, which answers that earlier versions stored may name.
fn without_keys(mut view: ResultView) -> ResultView {
    if let ResultView::Program { outputs, lists, .. } = &mut view {
        outputs.iter_mut().for_each(|output| output.key = None);
        lists.iter_mut().for_each(|list| list.keys.clear());
    }
    view
}

impl PublicReport {
    /// Takes it out of a party's report.
    ///
    /// # Errors
    /// Where the report has no public result, or is of a version that did not say what one costs.
    pub fn of(report: &RunReport) -> Result<Self, Error> {
        let Some(public) = &report.public else {
            return Err(Error::input(format!(
                "this report has no public result: study {} shows none to everybody ([release.public]), and \
                 what it shows {} is not to be passed on",
                report.study.name, report.party
            )));
        };
        let Some(terms) = &report.public_terms else {
            return Err(Error::input(
                "this report is of an earlier version, which did not say what its public result costs: pass \
                 on no part of it but the numbers of `public`",
            ));
        };
        let servers = report.servers.iter().flat_map(|servers| &servers.members);
        Ok(Self {
            format: PUBLIC_FORMAT.to_owned(),
            study: report.study.clone(),
            parties: crate::wording::parties(report),
            servers: servers.map(|server| server.name.clone()).collect(),
            mode: report.mode.clone(),
            public: if report.disclosed.public_keys { public.clone() } else { without_keys(public.clone()) },
            public_terms: terms.clone(),
        })
    }
}
