//! The one order in which a study's stages come, at owners of data, at servers and in a plan.
//!
//! A run is a value that goes from phase to phase, each made of the one before: [`Matched`], [`Computed`],
//! [`Completed`]. A phase holds all that the later ones need and nothing else, so it can be made of a record
//! as well. What an [`Actor`] does at a stage differs: an owner has rows and a ledger, a server has neither,
//! a plan adds up prices. The order does not.

use crate::engines::StudyEngine;
use crate::prepare::Built;
use crate::stages::compute::ComputeStage;
use crate::stages::link::{LinkFacts, LinkStage};
use crate::stages::matching::MatchStage;
use crate::stages::noise::NoiseStage;
use crate::stages::publish::PublishStage;
use crate::stages::release::{ReleaseStage, ScaledReleases};
use base::Error;
use engine::DrawnNoise;
use privacy::scales::Scales;
use std::sync::Arc;
use study::Study;

/// Who goes through the stages of a study.
pub(crate) trait Actor {
    /// Rows of all parties, brought together.
    type Rows;
    /// Connections of the units of the computation.
    type Workers;
    /// Totals of the rows, as nobody knows them.
    type Totals;
    /// What is seen in the end.
    type Views;

    fn link(&mut self, stage: &LinkStage) -> Result<LinkFacts, Error>;

    /// Brings the rows together, and says how many there are.
    fn join_rows(&mut self, stage: &MatchStage<'_>) -> Result<(Self::Rows, u64), Error>;

    /// The engine is settled for the rows at hand.
    fn settled(&mut self, matched: &Matched<Self::Rows>);

    fn draw(&mut self, stage: &NoiseStage) -> Result<DrawnNoise, Error>;

    fn compute(
        &mut self,
        stage: &ComputeStage,
        matched: &Matched<Self::Rows>,
        workers: Self::Workers,
    ) -> Result<Self::Totals, Error>;

    fn publish(
        &mut self,
        stage: &PublishStage,
        rows: &Self::Rows,
        totals: &Self::Totals,
    ) -> Result<[u64; 2], Error>;

    fn release(
        &mut self,
        stage: &ReleaseStage<'_>,
        matched: &Matched<Self::Rows>,
        totals: &Self::Totals,
        noise: &mut DrawnNoise,
    ) -> Result<Self::Views, Error>;
}

/// Rows are matched, and the engine is settled for them.
pub(crate) struct Matched<R> {
    pub rows: R,
    pub count: u64,
    pub engines: StudyEngine,
    /// The link, where something hung on it.
    pub link: Option<LinkFacts>,
}

/// Totals are there as shares, and all releases are lowered with their noise.
pub(crate) struct Computed<R, T> {
    pub matched: Matched<R>,
    pub totals: T,
    pub scaled: ScaledReleases,
    /// Of servers, the noise that is drawn.
    pub noise: DrawnNoise,
}

/// Everything was released.
pub(crate) struct Completed<R, V> {
    pub matched: Matched<R>,
    pub scaled: ScaledReleases,
    pub views: V,
}

/// A study and its program, whose stages are planned.
#[derive(Clone, Copy)]
pub(crate) struct Course<'a> {
    pub study: &'a Study,
    pub built: &'a Built,
}

impl<'a> Course<'a> {
    /// Goes through all stages from the link on.
    ///
    /// # Errors
    /// Those of the stages.
    pub fn run<A: Actor>(
        self,
        open: StudyEngine,
        stage: &MatchStage<'_>,
        workers: A::Workers,
        actor: &mut A,
    ) -> Result<Completed<A::Rows, A::Views>, Error> {
        let matched = self.settle(open, stage, actor)?;
        actor.settled(&matched);
        let computed = self.compute(matched, workers, actor)?;
        self.release(computed, actor)
    }

    /// Measures the link where the study leaves something to it, matches, and settles the engine: everybody
    /// by the same numbers, and so alike.
    fn settle<A: Actor>(
        self,
        open: StudyEngine,
        stage: &MatchStage<'_>,
        actor: &mut A,
    ) -> Result<Matched<A::Rows>, Error> {
        let probe = LinkStage { parties: self.study.roster().len() };
        let link = if open.asks() { Some(actor.link(&probe)?) } else { None };
        let (rows, count) = actor.join_rows(stage)?;
        let settled = |facts: LinkFacts| open.settled(&self.built.program, count, facts.link, facts.speeds);
        Ok(Matched { rows, count, engines: link.map_or_else(|| open.clone(), settled), link })
    }

    /// Row and combine, and the noise that servers draw: before the rows, unless its scale hangs on group
    /// sizes that are published after them. Parties who compute themselves draw it with the release.
    fn compute<A: Actor>(
        self,
        matched: Matched<A::Rows>,
        workers: A::Workers,
        actor: &mut A,
    ) -> Result<Computed<A::Rows, A::Totals>, Error> {
        let stage = ComputeStage::new(self.study, matched.engines.clone(), matched.count);
        let Some(publish) = PublishStage::new(self.study, self.built) else {
            let (scaled, noise) = self.draw(&matched, None, actor)?;
            let totals = actor.compute(&stage, &matched, workers)?;
            return Ok(Computed { matched, totals, scaled, noise });
        };
        let totals = actor.compute(&stage, &matched, workers)?;
        let groups = Some(actor.publish(&publish, &matched.rows, &totals)?);
        let (scaled, noise) = self.draw(&matched, groups, actor)?;
        Ok(Computed { matched, totals, scaled, noise })
    }

    fn draw<A: Actor>(
        self,
        matched: &Matched<A::Rows>,
        groups: Option<[u64; 2]>,
        actor: &mut A,
    ) -> Result<(ScaledReleases, DrawnNoise), Error> {
        let scaled = ScaledReleases::new(&matched.engines, self.built, self.scales(groups)?)?;
        let noise = match NoiseStage::new(&matched.engines, &scaled)? {
            Some(stage) => actor.draw(&stage)?,
            None => DrawnNoise::none(),
        };
        Ok((scaled, noise))
    }

    /// The noise of all releases, for group sizes where a run publishes them.
    ///
    /// # Errors
    /// When a scale is out of range.
    pub fn scales(self, groups: Option<[u64; 2]>) -> Result<Arc<Scales>, Error> {
        let Built { program, audit, scales, .. } = self.built;
        match (groups, scales) {
            (None, Some(scales)) => Ok(scales.clone()),
            _ => Scales::new(self.study, program, audit, groups).map(Arc::new),
        }
    }

    fn release<A: Actor>(
        self,
        computed: Computed<A::Rows, A::Totals>,
        actor: &mut A,
    ) -> Result<Completed<A::Rows, A::Views>, Error> {
        let Computed { matched, totals, scaled, mut noise } = computed;
        let stage = ReleaseStage::new((self.study, self.built), &matched.engines, &scaled, matched.count)?;
        let views = actor.release(&stage, &matched, &totals, &mut noise)?;
        Ok(Completed { matched, scaled, views })
    }
}
