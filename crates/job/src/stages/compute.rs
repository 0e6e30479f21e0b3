//! Row and combine. Its units are ranges of the rows: each runs the rows of the program, prepared once, whole
//! or not at all, and what leaves it are shares, which add up. Between two parties workers compute units,
//! each over a lane of its own ([`crate::workers`]). Among more parties all rows are one unit on the
//! connections of the coordinators; where four servers compute sums, there are as many units as the study's
//! `shards` says, all at once, the first of them there and the others over connections of their own.

use super::Stage;
use crate::align::RangeRows;
use crate::engines::{Estimate, StudyEngine};
use crate::plan::{Link, Speeds};
use crate::ranges::RowRanges;
use crate::run::join::JoinedRange;
use crate::workers::RemoteRows;
use base::{Cost, Error};
use engine::{RowInput, Shares, run_lanes};
use net::Session;
use program::Program;
use std::ops::Range;
use study::Study;

/// The stage's name, in reports and in steps.
pub(crate) const COMPUTE: &str = "compute";

/// Row and combine over so many rows.
pub(crate) struct ComputeStage {
    engines: StudyEngine,
    participants: usize,
    ranges: RowRanges,
}

/// What one unit computes on.
pub(crate) enum UnitRows {
    /// Own columns on a spine.
    Owned(RangeRows),
    /// Shares of rows.
    Joined(JoinedRange),
    /// Either, at the coordinator of a worker process.
    Remote(RemoteRows),
    /// A server's: rows of which it holds no column.
    Blank(BlankRows),
}

impl UnitRows {
    /// At a server, which holds no column.
    pub fn blank(rows: Range<u64>) -> Self {
        Self::Blank(BlankRows(rows))
    }

    /// What an engine gets of them.
    pub fn input(&mut self) -> RowInput<'_> {
        match self {
            Self::Owned(rows) => RowInput::Owned(rows),
            Self::Joined(rows) => RowInput::Joined(rows),
            Self::Remote(rows) => rows.input(),
            Self::Blank(rows) => RowInput::Owned(rows),
        }
    }

    /// How many there are.
    pub fn count(&mut self) -> u64 {
        self.input().count()
    }
}

impl ComputeStage {
    pub fn new(study: &Study, engines: StudyEngine, rows: u64) -> Self {
        let ranges = engines.ranges(rows);
        Self::over(study, engines, ranges)
    }

    fn over(study: &Study, engines: StudyEngine, ranges: RowRanges) -> Self {
        Self { engines, participants: study.roster().len(), ranges }
    }

    /// Its units.
    pub fn ranges(&self) -> &RowRanges {
        &self.ranges
    }

    /// The engine that runs them.
    pub fn engines(&self) -> &StudyEngine {
        &self.engines
    }

    /// Runs all units at once: the first on the connections of the coordinators, the others over `lanes`.
    /// When one fails the others end, and `stop` tells the peers at once: see [`run_lanes`].
    ///
    /// # Errors
    /// When there are more than that, and those of the rows and of the conversation, as `stop` words them.
    pub fn run_whole(
        &self,
        program: &Program,
        units: impl Fn(u64) -> Result<UnitRows, Error>,
        (session, lanes): (&mut Session, &mut [Session]),
        stop: impl Fn(Error) -> Error + Sync,
    ) -> Result<Shares, Error> {
        let units = (0..self.ranges.units()).map(units).collect::<Result<Vec<_>, Error>>()?;
        let stage = self.engines.rows()?;
        let run = |mut rows: UnitRows, session: &mut Session| {
            session.step(self.name(), |s| stage.run(rows.input(), s))
        };
        run_lanes(program, (session, lanes), units, run, stop)
    }
}

impl Stage for ComputeStage {
    type Sizes = ();

    fn name(&self) -> &'static str {
        COMPUTE
    }

    fn items(&self) -> u64 {
        self.ranges.rows()
    }

    fn price(&self, (): &()) -> Result<Cost, Error> {
        Ok(Cost::zero(self.participants) + self.engines.price(&self.ranges)?.cost)
    }

    fn estimate(&self, link: Link, speeds: Speeds) -> Result<Estimate, Error> {
        self.engines.estimate(self.ranges.rows(), link, speeds)
    }
}

/// Rows of which a server holds no column.
pub(crate) struct BlankRows(Range<u64>);

impl program::ShardRows for BlankRows {
    fn len(&self) -> u64 {
        self.0.end - self.0.start
    }

    fn read(&mut self, column: u32, _: u64, _: &mut [u128]) -> Result<(), Error> {
        Err(Error::misuse(format!("a server holds no column, and not column {column}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::align::Aligned;
    use crate::prepare::{Built, build};
    use base::PartyId;
    use data::{AdvertiserRows, PublisherRows, RowKeys, Rows};
    use engine::{Clear, Engine as _, RowSource, Share};
    use net::cluster::Cluster;
    use program::{Holder, ShardRows};
    use std::sync::Arc;
    use study::TrialArm;

    const LIFT: &str = include_str!("../../../../examples/lift.toml");
    /// Rows of the spine.
    const UNION: u64 = 1024;
    /// Into how many units it is cut.
    const UNITS: [u64; 4] = [1, 2, 7, 64];

    fn study(engine: &str) -> Study {
        let text = LIFT.replace("engine  = \"auto\"", &format!("engine  = {engine}"));
        assert!(text.contains(engine));
        Study::parse("study.toml", &text).unwrap()
    }

    fn identifiers(rows: u32) -> RowKeys {
        let mut all = RowKeys::default();
        (0..rows).for_each(|row| all.push(row.to_string().as_bytes()));
        all
    }

    /// What both parties have, each with its places on the spine.
    fn aligned() -> [Arc<Aligned>; 2] {
        let arm = |row: u32| if row.is_multiple_of(3) { TrialArm::Control } else { TrialArm::Test };
        let publisher = PublisherRows {
            identifiers: identifiers(700),
            arm: (0..700).map(arm).collect(),
            opportunity: (0..700).map(|row| row * 7 % 300).collect(),
            impressions: Vec::new(),
            breakdown: Vec::new(),
        };
        let events = |row: u32| (0..row % 4).map(move |j| 40 * j + row % 90);
        let mut starts = vec![0];
        let mut times = Vec::new();
        for row in 0..650 {
            times.extend(events(row));
            starts.push(times.len());
        }
        let starts = starts.into_iter().map(|at| at.try_into().unwrap()).collect();
        let (values, cohort) = (vec![1; times.len()], vec![0; 650]);
        let advertiser = AdvertiserRows { identifiers: identifiers(650), starts, times, values, cohort };
        let place = |step: u32, rows: u32| (0..rows).map(|row| row * step % 1024).collect::<Vec<u32>>();
        let of =
            |rows: Rows, mine: &[u32]| Arc::new(Aligned::new(Arc::new(rows.into()), mine, UNION).unwrap());
        [of(Rows::Publisher(publisher), &place(333, 700)), of(Rows::Advertiser(advertiser), &place(77, 650))]
    }

    /// Columns of both parties.
    struct Both {
        halves: [RangeRows; 2],
        holders: Vec<Holder>,
    }

    impl ShardRows for Both {
        fn len(&self) -> u64 {
            self.halves[0].len()
        }

        fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
            let at = usize::from(self.holders[column as usize] == Holder::Party(PartyId(1)));
            self.halves[at].read(column, from, into)
        }
    }

    fn add(total: &mut Option<Shares>, program: &Program, shares: Shares) -> Result<(), Error> {
        match total {
            None => *total = Some(shares),
            Some(total) => total.add(program, &shares)?,
        }
        Ok(())
    }

    /// The totals in the clear, over so many units.
    fn clear(built: &Built, aligned: &[Arc<Aligned>; 2], units: u64) -> Vec<u128> {
        let rows = Clear.rows(&built.program, RowSource::Owned).unwrap();
        let ranges = RowRanges::new(UNION, units);
        let roster = base::Roster::new(["publisher", "advertiser"]);
        let mut session = Session::alone(roster, base::Seed::from_bytes([1; 32]));
        let mut total = None::<Shares>;
        for unit in 0..ranges.units() {
            let half = |party: usize| {
                let range = ranges.range(unit);
                RangeRows::new(aligned[party].clone(), built, PartyId(party as u8), range).unwrap()
            };
            let holders = built.program.columns.iter().map(|column| column.holder).collect();
            let mut both = Both { halves: [half(0), half(1)], holders };
            let shares = rows.run(RowInput::Owned(&mut both), &mut session).unwrap();
            add(&mut total, &built.program, shares).unwrap();
        }
        totals(&built.program, &[total.unwrap()])
    }

    fn totals(program: &Program, shares: &[Shares]) -> Vec<u128> {
        let total = |(at, fold): (usize, &program::RowFold)| {
            let part = |shares: &Shares| match &shares.folds()[at] {
                Share::Known(x) | Share::Additive(x) => *x,
                Share::Absent => 0,
                _ => panic!("sums are additive or known"),
            };
            shares.iter().map(part).fold(0, u128::wrapping_add) & fold.ty().mask()
        };
        program.folds.iter().enumerate().map(total).collect()
    }

    /// Runs all units, one after the other, and holds what was said against the price; gives the totals.
    fn computed(engine: &str, units: u64, aligned: &[Arc<Aligned>; 2]) -> Vec<u128> {
        let study = study(engine);
        let built = build(&study, &program::VerifierPolicy::default()).unwrap();
        let engines = StudyEngine::of(&study, &built.program).unwrap().with_workers(1);
        let stage = ComputeStage::over(&study, engines, RowRanges::new(UNION, units));
        let done = Cluster::new(2, 5).run(|session| {
            let me = session.me();
            let mut total = None::<Shares>;
            for unit in 0..units {
                let range = stage.ranges().range(unit);
                let mut rows =
                    UnitRows::Owned(RangeRows::new(aligned[me.index()].clone(), &built, me, range)?);
                let shares = session.step(COMPUTE, |s| stage.engines().rows()?.run(rows.input(), s))?;
                add(&mut total, &built.program, shares)?;
            }
            Ok((total.unwrap(), session.traffic().clone()))
        });
        let (shares, traffic): (Vec<_>, Vec<_>) = done.into_iter().map(Result::unwrap).unzip();
        let price = stage.price(&()).unwrap();
        let what = format!("{engine}, {units} units");
        for (party, said) in traffic.iter().enumerate() {
            assert_eq!(said.sent("compute"), price.sent[party], "{what}");
            assert_eq!(
                [said.and_gates("compute"), said.ots("compute")],
                [price.and_gates, price.ots],
                "{what}"
            );
        }
        totals(&built.program, &shares)
    }

    /// However rows are cut, the totals are the same, and what is said is what was priced.
    #[test]
    fn units_change_no_total_and_have_a_price() {
        let aligned = aligned();
        let built = build(&study("\"yao\""), &program::VerifierPolicy::default()).unwrap();
        let all = clear(&built, &aligned, 1);
        assert!(all.iter().any(|total| *total > 10));
        for units in UNITS {
            assert!(clear(&built, &aligned, units) == all, "clear, {units} units");
            for engine in ["\"yao\"", "\"gmw\"\not = \"softspoken:2\"", "\"gmw\"\not = \"ferret\""] {
                // Silent OT takes long to set up.
                if engine.contains("ferret") && units > 7 {
                    continue;
                }
                assert!(computed(engine, units, &aligned) == all, "{engine}, {units}");
            }
        }
    }
}
