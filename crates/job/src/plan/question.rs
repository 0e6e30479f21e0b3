//! What a plan is asked, by the command and by the Python package.

use super::{Assumed, BillTerms, Link, OutcomeGuess, Plan, Speeds, clamp_effects, plan_file, plan_priced};
use base::Error;
use page::numbers::with_unit;
use study::prices::{BytePath, PriceList};
use study::transport::ServerTransport;
use study::{Study, StudyFile};

/// For which sizes, link and machines a study is planned.
#[derive(Clone, Debug)]
pub struct PlanQuestion {
    /// Rows of party 0, and of each other one.
    pub rows: [u64; 2],
    /// Rows that both of two have; none: as many as make the match dearest.
    pub both: Option<u64>,
    /// The control arm's mean outcome per person, as somebody guesses it.
    pub mean: Option<f64>,
    /// The wire between the parties.
    pub link: Link,
    /// Cores of each party.
    pub cores: u32,
    /// What four servers compute over.
    pub transport: ServerTransport,
    /// What cores and bytes cost, where dollars are wanted.
    pub prices: Option<PriceList>,
    /// Between what the parties' bytes go then.
    pub between: BytePath,
}

impl PlanQuestion {
    /// The plan, and what it is for.
    ///
    /// # Errors
    /// When the study is refused, or rows differ where every party has the same.
    pub fn plan(&self, file: &StudyFile) -> Result<(Plan, Assumed), Error> {
        let (study, link) = (file.first(), self.link);
        same_rows(study, self.rows)?;
        let speeds = Speeds { cores: f64::from(self.cores), ..Speeds::default() };
        let told = self.mean.map(OutcomeGuess::told);
        let outcome = told.or_else(|| OutcomeGuess::of(study, None, self.rows[0]));
        let assumed = Assumed { rows: self.rows, both: self.both, outcome };
        let mut plan = match &self.prices {
            Some(prices) => {
                let terms = BillTerms { prices, between: self.between };
                plan_priced(file, &assumed, link, speeds, &terms)?
            }
            None => plan_file(file, &assumed, link, speeds)?,
        };
        plan.clamp_effects = clamp_effects(file, &assumed, None, (&plan, &[]));
        plan.say_link(link);
        if !plan.spool.is_empty() {
            let text = "1G, what a party has whose file says nothing; --party FILE plans for what it says";
            plan.assumptions.insert("memory".to_owned(), text.to_owned());
        }
        Ok((plan.over(study, &self.transport, link)?, assumed))
    }
}

impl Link {
    /// Reads `10gbps,1ms`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rule = || "write bandwidth and round-trip time: 10gbps,1ms or 100mbps,20ms".to_owned();
        let (rate, time) = text.split_once(',').ok_or_else(rule)?;
        let number = |text: &str, units: [(&str, f64); 3]| -> Option<f64> {
            let lower = text.trim().to_ascii_lowercase();
            let (digits, unit) =
                units.iter().find_map(|(name, unit)| Some((lower.strip_suffix(name)?, unit)))?;
            let value = digits.trim().parse::<f64>().ok()? * unit;
            (value.is_finite() && value >= 0.0).then_some(value)
        };
        let bits = number(rate, [("gbps", 1e9), ("mbps", 1e6), ("kbps", 1e3)]).filter(|rate| *rate > 0.0);
        let seconds = number(time, [("ms", 1e-3), ("us", 1e-6), ("s", 1.0)]);
        match (bits, seconds) {
            (Some(bits_per_s), Some(round_trip_s)) => Ok(Self { bits_per_s, round_trip_s }),
            _ => Err(rule()),
        }
    }
}

impl Plan {
    /// States the link in the units in which people buy it.
    pub fn say_link(&mut self, link: Link) {
        let rate = with_unit(link.bits_per_s, "bit/s");
        let text = format!("{rate}, {} ms round trip", link.round_trip_s * 1e3);
        self.assumptions.insert("link".to_owned(), text);
    }
}

/// Refuses different numbers of rows where every party has the same.
///
/// # Errors
/// When the study is aligned and they differ.
pub(crate) fn same_rows(study: &Study, rows: [u64; 2]) -> Result<(), Error> {
    if !study.matching.matcher.features().public_identifiers || rows[0] == rows[1] {
        return Ok(());
    }
    Err(Error::input("every party of an aligned study has the same rows; give --rows one number"))
}
