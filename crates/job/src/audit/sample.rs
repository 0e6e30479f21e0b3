//! The studies that are audited where the user names none.

use base::Error;
use release::rational::{Rational, shown};
use study::{ReleaseMode, Study};

/// A lift study with nothing in it but what changes noise.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub mode: ReleaseMode,
    /// R.
    pub clamp: u64,
    /// zCDP of the publisher's own view, if it has one.
    pub publisher: Option<Rational>,
    /// Of the first advertiser's own view.
    pub advertiser: Option<Rational>,
    /// Of the public result.
    pub public: Option<Rational>,
    /// Values of the breakdown; 0: there is none.
    pub breakdown: usize,
    /// Further counts.
    pub also: &'static [&'static str],
    /// By how many identifiers rows are matched; of several a row may be joined to as many, and more change.
    pub identifiers: usize,
    /// Advertisers, whose outcomes are added up.
    pub advertisers: usize,
}

impl Sample {
    /// Of one advertiser, without breakdown and counts; what is seen is to be said.
    pub(crate) fn new(mode: ReleaseMode, clamp: u64) -> Self {
        let (publisher, advertiser, public) = (None, None, None);
        Self {
            mode,
            clamp,
            publisher,
            advertiser,
            public,
            breakdown: 0,
            also: &[],
            identifiers: 1,
            advertisers: 1,
        }
    }

    /// The study, read as a file of the same text is.
    pub(crate) fn study(&self) -> Result<Study, Error> {
        Study::parse("the study of the audit", &self.text())
    }

    fn text(&self) -> String {
        let advertisers: String = (1..=self.advertisers)
            .map(|i| format!("[party.advertiser-{i}]\nrole = \"advertiser\"\nkey = \"tacit1:{i:032x}\"\n"))
            .collect();
        let identifiers: Vec<String> = (1..=self.identifiers).map(|i| format!("\"id-{i}\"")).collect();
        let values: Vec<String> = (0..self.breakdown).map(|i| format!("\"{i}\"")).collect();
        let breakdown = match self.breakdown {
            0 => String::new(),
            _ => format!("breakdown = {{ column = \"cell\", values = [{}] }}\n", values.join(", ")),
        };
        let value = match self.clamp {
            1 => "{ constant = 1 }",
            _ => "{ column = \"amount\", type = \"u32\" }",
        };
        let together = if self.advertisers > 1 { "advertisers = \"together\"\n" } else { "" };
        let also: Vec<String> = self.also.iter().map(|count| format!("\"{count}\"")).collect();
        let seen = [
            ("to.publisher", &self.publisher),
            ("to.advertiser-1", &self.advertiser),
            ("public", &self.public),
        ];
        let seen: String = seen
            .iter()
            .filter_map(|(who, rho)| {
                rho.as_ref().map(|rho| format!("[release.{who}]\nrho = {}\n", shown(rho)))
            })
            .collect();
        format!(
            r#"format = "tacit-study/1"
name = "audit"
kind = "lift"
title = "What an audit looks at"
[party.publisher]
role = "publisher"
key = "tacit1:{zero:032x}"
{advertisers}[match]
protocol = "pid"
identifiers = [ {identifiers} ]
duplicates = "error"
[time]
origin = 1970-01-01
unit = "day"
span = 5
[publisher]
arm = {{ column = "arm", test = "test", control = "control" }}
opportunity = {{ column = "time", type = "time" }}
{breakdown}[advertiser]
layout = "events"
event = {{ column = "time", type = "time" }}
value = {value}
max_events = 2
overflow = "keep-earliest"
[lift]
counts_after = "opportunity"
clamp = {clamp}
{together}[release]
mode = "{mode}"
confidence = 0.95
also = [{also}]
{seen}[compute]
engine = "auto"
"#,
            zero = 0,
            clamp = self.clamp,
            mode = self.mode.name(),
            also = also.join(", "),
            identifiers = identifiers.join(", "),
        )
    }
}
