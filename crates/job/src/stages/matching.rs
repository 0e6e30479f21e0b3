//! The match: the study's protocol brings the rows of all owners together. Its units are sets of rows that
//! are matched by themselves; today there is one, of all rows.

use super::columns::LayoutPulses;
use super::{Stage, Tells};
use crate::engines::{Estimate, StageTime, StudyEngine, row_source};
use crate::plan::{Link, Speeds};
use crate::prepare::Built;
use crate::run::join::{Payloads, column_layouts};
use crate::run::outsourced;
use crate::spool::of_parties;
use base::{Cost, Error, PartyId, limits};
use engine::RowSource;
use matching::pid::{self, UnitCrew};
use matching::{
    IdentifierSource, MatchDisclosure, MatchDisk, MatchEstimate, MatchOptions, MatchOutcome, MatchSizes,
    Matcher, PayloadSource, PlannedRows, PrivateId,
};
use net::Session;
use privacy::dummies;
use report::{Disclosure, MatchCount};
use study::Study;

/// What of a match's work for its products one core does alone, whatever there are: what is neither a product
/// nor a hash to the group (`docs/protocols/pid.md`, measured by `perf record`).
const ALONE: f64 = 0.09;

/// The match of a study.
pub(crate) struct MatchStage<'a> {
    study: &'a Study,
    matcher: &'static dyn Matcher,
    /// What all agree on.
    pub agreed: MatchOptions,
    rows: [u64; 2],
    /// Rows that are taken to be in the files of both.
    both: Option<u64>,
}

/// What an owner brings to one unit.
pub(crate) struct MatchUnit<'a> {
    pub identifiers: &'a dyn IdentifierSource,
    /// A row per own row, where this party's values become shares.
    pub payload: Option<&'a dyn PayloadSource>,
    /// [`MatchStage::agreed`], with what is this party's own affair.
    pub options: MatchOptions,
}

impl<'a> MatchStage<'a> {
    /// The match of a study. `rows` are those of party 0 and of each other one, as a plan assumes them; in a
    /// run a party knows its own, and takes those of a peer to be as many.
    ///
    /// # Errors
    /// When a row is too wide to be matched.
    pub fn new(
        study: &'a Study,
        built: &Built,
        engines: &StudyEngine,
        rows: [u64; 2],
    ) -> Result<Self, Error> {
        let layouts = match (row_source(study), engines.joined()) {
            (RowSource::Owned, _) => Default::default(),
            // The study only matches.
            (RowSource::Joined(_), None) => column_layouts(&built.program, study.matching.dummies.is_some())?,
            (RowSource::Joined(_), Some(plan)) => Payloads::new(built, plan.clone())?.layouts()?,
        };
        let (ot, roles) = (study.compute.ot, outsourced::roles(study));
        let agreed = MatchOptions { layouts, ot, roles, ..study.matching.options() };
        Ok(Self { study, matcher: study.matching.matcher, agreed, rows, both: None })
    }

    /// The same where so many rows are taken to be in the files of both.
    ///
    /// # Errors
    /// When it is not between two parties, or one has fewer rows.
    pub fn with_both(self, both: Option<u64>) -> Result<Self, Error> {
        let Some(shared) = both else { return Ok(self) };
        if self.study.parties.len() != 2 || self.matcher.features().public_identifiers {
            return Err(Error::input("how many rows are in both files is assumed of a match of two parties"));
        }
        match shared > self.rows[0].min(self.rows[1]) {
            true => Err(Error::input(format!(
                "{shared} rows in both of {} and {}: no more are in both than the smaller one has",
                self.rows[0], self.rows[1]
            ))),
            false => Ok(Self { both, ..self }),
        }
    }

    /// The least memory for own columns, where the protocol moves what does not fit to disk.
    ///
    /// # Errors
    /// When a study says how to hide sizes and that cannot be.
    pub fn memory(&self, me: PartyId) -> Result<u64, Error> {
        let keys = self.study.matching.identifiers.len() as u64;
        Ok(self.matcher.memory(&self.padded()?.0, me, keys, &self.agreed))
    }

    /// What it takes on disk, where so much memory is for columns; none where the protocol does not say it.
    ///
    /// # Errors
    /// As [`Self::memory`].
    pub fn disk(&self, me: PartyId, memory: Option<u64>) -> Result<Option<MatchDisk>, Error> {
        let options = MatchOptions { memory, ..self.agreed.clone() };
        Ok(self.matcher.disk(&self.padded()?.0, me, &options))
    }

    /// Rows of each party with the most made-up ones, and how many these are.
    fn padded(&self) -> Result<(Vec<u64>, u64), Error> {
        let (study, features) = (self.study, self.matcher.features());
        let dummies = study.matching.dummies.as_ref();
        let dummies =
            dummies.map(|rule| dummies::dummies(rule, &base::Seed::from_bytes([0; 32]))).transpose()?;
        let most = dummies.map_or(0, |dummies| dummies.rows_range(features.shown, study.parties.len())[1]);
        let rows = of_parties(study, self.rows);
        Ok((rows.into_iter().map(|rows| rows.saturating_add(most)).collect(), most))
    }

    /// An owner's part in one attempt at one unit.
    ///
    /// # Errors
    /// Those of [`Matcher::run`].
    pub fn run(&self, unit: &MatchUnit<'_>, session: &mut Session) -> Result<MatchOutcome, Error> {
        let MatchUnit { identifiers, payload, options } = unit;
        session.step(self.name(), |s| self.matcher.run(s, *identifiers, *payload, options))
    }

    /// The same, with its units over lanes of a crew.
    ///
    /// # Errors
    /// Those of [`PrivateId::run_over_lanes`].
    pub fn run_over_lanes(
        &self,
        unit: &MatchUnit<'_>,
        session: &mut Session,
        crew: &mut dyn UnitCrew,
    ) -> Result<MatchOutcome, Error> {
        let MatchUnit { identifiers, options, .. } = unit;
        session.step(self.name(), |s| PrivateId.run_over_lanes(s, *identifiers, options, crew))
    }

    /// What that costs, of so many units in each stage.
    pub fn price_over_lanes(&self, sizes: &MatchSizes, units: u32) -> Cost {
        let cost = pid::price_over_lanes(sizes.pair(), units);
        let pulses = self.pulses(sizes).cost(cost.sent.len());
        cost + pulses
    }

    /// A server's part in it, with so many bytes of memory.
    ///
    /// # Errors
    /// Those of [`Matcher::serve`].
    pub fn serve(&self, memory: u64, session: &mut Session) -> Result<MatchSizes, Error> {
        let options = MatchOptions { memory: Some(memory), ..self.agreed.clone() };
        session.step(self.name(), |s| self.matcher.serve(s, &options))
    }

    /// What it takes with the most made-up rows, and as many matches as make it dearest.
    ///
    /// # Errors
    /// When there are more rows than can be matched.
    pub fn dearest(&self) -> Result<MatchEstimate, Error> {
        let (padded, most) = self.padded()?;
        let all = padded.iter().fold(0, |all: u64, rows| all.saturating_add(*rows));
        if all > limits::ROWS && !self.matcher.features().public_identifiers {
            return Err(Error::limit("limits::ROWS, rows of both sides", all, limits::ROWS));
        }
        let keys = self.study.matching.identifiers.len() as u64;
        let planned = PlannedRows { rows: &padded, keys, both: self.both };
        let mut estimate = self.matcher.estimate(&planned, &self.agreed);
        if most > 0 {
            estimate.why += &format!(", {} made-up rows of each at most", page::numbers::count(most));
        }
        Ok(estimate)
    }

    /// What the two owners say to each other while they lay out their columns.
    pub fn pulses(&self, sizes: &MatchSizes) -> LayoutPulses {
        LayoutPulses::of(self.study, sizes)
    }

    /// What it told of sizes and counts, as reports say it.
    pub fn disclosure(&self, told: MatchDisclosure) -> Disclosure {
        let (rows, union) = (told.sizes.rows, told.sizes.union);
        let least = rows.iter().copied().min().unwrap_or(0);
        let matched = match told.size_hidden {
            true => least,
            false => least.min(in_all(&rows, union)),
        };
        let count = |met: matching::MatchedCount| MatchCount { what: met.what, count: met.count };
        Disclosure {
            protocol: self.matcher.name().into(),
            matched_upper_bound: matched.min(union),
            rows,
            union,
            size_hidden: told.size_hidden,
            counts: told.counts.into_iter().map(count).collect(),
            public_keys: self.matcher.features().public_identifiers,
            ..Disclosure::default()
        }
    }
}

/// Most rows that all parties can have, by the sizes of their sets and of the union: each of them is counted
/// once more for every party but one. Between two parties it is how many matched.
fn in_all(rows: &[u64], union: u64) -> u64 {
    let more = rows.iter().sum::<u64>().saturating_sub(union);
    more / (rows.len() as u64).saturating_sub(1).max(1)
}

impl Stage for MatchStage<'_> {
    type Sizes = MatchSizes;

    fn name(&self) -> &'static str {
        "match"
    }

    fn items(&self) -> u64 {
        self.rows[0]
    }

    fn price(&self, sizes: &MatchSizes) -> Result<Cost, Error> {
        let cost = self.matcher.price(sizes, &self.agreed);
        let pulses = self.pulses(sizes).cost(cost.sent.len());
        Ok(cost + pulses)
    }

    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        let dearest = self.dearest()?;
        let cost = self.price(&dearest.sizes)?;
        let products = dearest.multiplications as f64 / speeds.multiplications_per_s;
        // Transfers of a join are made as those of `gmw` are, by one pair of cores.
        let [transfers, other] = speeds.ots_per_s.map(|rate| cost.ots as f64 / rate);
        let products_s = products * self.study.parties.len() as f64;
        let core_s = products_s + dearest.encryption_s + transfers + other;
        // Chunks are exchanged in lock step, a few on the way at once; some messages wait for each other.
        let time = StageTime {
            computing_s: products * (ALONE + (1.0 - ALONE) / speeds.cores)
                + dearest.encryption_s / speeds.cores
                + transfers,
            sending_s: link.seconds(&cost),
            waiting_s: dearest.waits * link.round_trip_s,
        };
        Ok(Estimate { and_gates: cost.and_gates, round_trips: cost.rounds, core_s, time, cost })
    }

    fn tells(&self) -> Vec<Tells> {
        vec![Tells::everybody(self.study.matching.tells(&self.study.parties[0].name))]
    }
}

#[cfg(test)]
mod tests {
    use super::in_all;

    /// Of two parties the size of the match; of more no more than any of them has.
    #[test]
    fn rows_of_all_are_bounded_by_sizes_and_union() {
        assert_eq!(in_all(&[300, 260], 460), 100);
        assert_eq!(in_all(&[16_012, 11_142, 11_258, 11_200], 26_194), 7_806);
        assert_eq!(in_all(&[1000; 6], 1000), 1000);
    }
}
