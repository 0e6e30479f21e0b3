//! How much noise each released number of one viewer gets, and what that costs: derived, never stated.

use crate::dummies;
use crate::ledger::Bytes32;
use base::{Error, PartyId};
use engine::Engine;
use num_bigint::BigInt;
use num_traits::{One, Zero};
use program::lower::{
    DifferenceSizes, Draws, Lowering, NoiseSource, NoisedAt, ReleasePlan, WordKind, lower_draws,
    lower_release,
};
use program::{Audit, DifferenceStatistic, MechanismCharge, MechanismKind, Owners, Program, Viewer};
use release::alias::Sampler;
use release::choose::Draw;
use release::gaussian::DiscreteGaussian;
use release::joint::{self, Change, FamilyMechanism};
use release::scale::{self, ClampBounds, FixedScale, GaussianMechanism, ReleaseMode, fixed_point};
use release::{Rational, SumChange};
use std::borrow::Borrow;
use study::{NoiseFrom, Question, Study};

/// The noise of all mechanisms of a program, once public group sizes are known where a mechanism needs them.
pub struct Scales {
    /// How each output of each mechanism is noised.
    noises: Vec<Vec<OutputNoise>>,
    /// Whom each mechanism is for.
    to: Vec<Viewer>,
    /// Fixed-point scales of `Difference` mechanisms.
    fixed: Vec<Option<FixedScale>>,
    /// Of `Joint` mechanisms.
    joint: Vec<Option<FamilyMechanism>>,
    /// Group sizes, where published.
    groups: Option<[u64; 2]>,
    /// zCDP charged by party for what it alone sees, in party order, and last for what everybody sees.
    charge: Vec<Rational>,
    /// Where noise comes from.
    from: NoiseFrom,
}

/// Bits of the standard deviation of what is drawn for a printed scale, above the bits that are uniform.
const LATTICE_BITS: u64 = 14;

/// The noise of one output of a mechanism.
#[derive(Clone)]
struct OutputNoise {
    /// Of the noise that is drawn.
    variance: Rational,
    /// How coins give it; none where a party draws candidates.
    sampler: Option<Sampler>,
}

impl OutputNoise {
    /// Of candidates: exactly of this variance.
    fn of_variance(variance: Rational) -> Self {
        Self { variance, sampler: None }
    }

    /// Of a fixed-point value, and how many times its stated charge it costs. Where the variance is that of a
    /// whole sensitivity, 1; printed ones are drawn on a lattice, which moves what one change moves by less
    /// than a step more.
    fn of_fixed(mechanism: &GaussianMechanism) -> Result<(Self, Rational), Error> {
        let square = &mechanism.sigma2 * &mechanism.rho * BigInt::from(2);
        let whole = square.to_integer().sqrt();
        if square.is_integer() && &whole * &whole == square.to_integer() {
            let sampler = Sampler::new(&whole, 1, &mechanism.rho)?;
            return Ok((Self { variance: sampler.variance(), sampler: Some(sampler) }, Rational::one()));
        }
        let bits = mechanism.sigma2.to_integer().sqrt().bits();
        let low_bits = u32::try_from(bits.saturating_sub(LATTICE_BITS)).unwrap_or(0);
        let sampler = Sampler::on_lattice(&mechanism.sigma2, low_bits)?;
        let wider = Rational::one() + Rational::new(BigInt::one() << low_bits, whole.max(BigInt::one()));
        Ok((Self { variance: sampler.variance(), sampler: Some(sampler) }, &wider * &wider))
    }

    /// Of an output that one row changes so.
    fn of_change(change: &SumChange, rho: &Rational) -> Result<Self, Error> {
        let sampler = Sampler::of_change(change, rho)?;
        Ok(Self { variance: sampler.variance(), sampler: Some(sampler) })
    }
}

impl Scales {
    /// Derives all scales.
    ///
    /// # Errors
    /// When a scale is out of range, or a mechanism needs group sizes that are not there.
    pub fn new(
        study: &Study,
        program: &Program,
        audit: &Audit,
        groups: Option<[u64; 2]>,
    ) -> Result<Self, Error> {
        let mut scales = Self {
            noises: Vec::with_capacity(program.mechanisms.len()),
            to: program.mechanisms.iter().map(|mechanism| mechanism.to).collect(),
            fixed: Vec::with_capacity(program.mechanisms.len()),
            joint: Vec::with_capacity(program.mechanisms.len()),
            groups,
            charge: vec![Rational::zero(); program.parties.len() + 1],
            from: study.noise(),
        };
        for (mechanism, charge) in program.mechanisms.iter().zip(&audit.charges) {
            let (mut fixed, mut joint) = (None, None);
            let (spent, noises) = match &mechanism.kind {
                MechanismKind::Gaussian(folds) => {
                    let of = |o| scales.gaussian(charge, o);
                    let noises = (0..folds.len()).map(of).collect::<Result<_, _>>()?;
                    (charge.rho.clone(), noises)
                }
                MechanismKind::Joint { change, clamp, cells } => {
                    let of = joint.insert(scales.joint_noise(charge, *change, *clamp)?);
                    let each: Vec<OutputNoise> =
                        of.outputs().iter().map(|o| scales.of_joint(o)).collect::<Result<_, _>>()?;
                    (charge.rho.clone(), vec![each; cells.len()].concat())
                }
                MechanismKind::Difference { statistic, .. } => {
                    let scale = difference(study, *statistic, mechanism.to, &mechanism.rho, groups)?;
                    let (noises, times) = scales.fixed_noises(&scale)?;
                    (&fixed.insert(scale).charge * times, noises)
                }
            };
            let at = scales.place(mechanism.to);
            scales.charge[at] += spent;
            scales.noises.push(noises);
            scales.fixed.push(fixed);
            scales.joint.push(joint);
        }
        Ok(scales)
    }

    /// The same without any noise: by it, what totals say without noise is read as a release is.
    #[must_use]
    pub fn without_noise(&self) -> Self {
        let none = |noises: &Vec<OutputNoise>| vec![OutputNoise::of_variance(Rational::zero()); noises.len()];
        Self {
            noises: self.noises.iter().map(none).collect(),
            to: self.to.clone(),
            fixed: self.fixed.iter().map(|of| of.as_ref().map(FixedScale::without_noise)).collect(),
            joint: self.joint.iter().map(|of| of.as_ref().map(FamilyMechanism::without_noise)).collect(),
            groups: self.groups,
            charge: self.charge.clone(),
            from: self.from,
        }
    }

    fn joint_noise(
        &self,
        charge: &MechanismCharge,
        change: Change,
        clamp: u128,
    ) -> Result<FamilyMechanism, Error> {
        let rho = charge.joint.as_ref().ok_or_else(|| Error::misuse("a joint mechanism has a rho"))?;
        match self.from {
            NoiseFrom::Inside => FamilyMechanism::on_lattices(change, clamp, rho),
            NoiseFrom::CutAndChoose(_) => FamilyMechanism::new(change, clamp, rho),
        }
    }

    fn of_joint(&self, output: &joint::NoisedOutput) -> Result<OutputNoise, Error> {
        match self.from {
            NoiseFrom::Inside => {
                Ok(OutputNoise { variance: output.variance(), sampler: Some(output.sampler()?) })
            }
            NoiseFrom::CutAndChoose(_) => Ok(OutputNoise::of_variance(output.variance())),
        }
    }

    fn gaussian(&self, charge: &MechanismCharge, output: usize) -> Result<OutputNoise, Error> {
        match self.from {
            NoiseFrom::Inside => {
                // Not of all changed rows as one: in as many cells, each would move by a whole step of the
                // lattice.
                OutputNoise::of_change(&charge.changes[output], &charge.rho_per_row())
            }
            NoiseFrom::CutAndChoose(_) => {
                let variance = charge.sigma2(output).ok_or_else(|| {
                    Error::input("a mechanism's noise is out of range; clamp lower or spend more rho")
                })?;
                Ok(OutputNoise::of_variance(variance))
            }
        }
    }

    fn fixed_noises(&self, fixed: &FixedScale) -> Result<(Vec<OutputNoise>, Rational), Error> {
        let both = [&fixed.lift, &fixed.spread];
        if let NoiseFrom::CutAndChoose(_) = self.from {
            let of = |m: &GaussianMechanism| OutputNoise::of_variance(m.sigma2.clone());
            return Ok((both.map(of).into(), Rational::one()));
        }
        let [(lift, a), (spread, b)] = [OutputNoise::of_fixed(both[0])?, OutputNoise::of_fixed(both[1])?];
        Ok((vec![lift, spread], a.max(b)))
    }

    fn place(&self, viewer: Viewer) -> usize {
        viewer.only().map_or(self.charge.len() - 1, PartyId::index)
    }

    fn noise(&self, at: NoisedAt) -> &OutputNoise {
        &self.noises[at.mechanism as usize][at.output as usize]
    }

    fn sampler_of(&self, at: NoisedAt) -> &Sampler {
        self.noise(at).sampler.as_ref().expect("noise that is drawn inside has a sampler")
    }

    /// The variance of the noise of an output of a mechanism.
    #[must_use]
    pub fn sigma2(&self, mechanism: u32, output: u32) -> &Rational {
        &self.noise(NoisedAt { mechanism, output }).variance
    }

    /// How coins give the noise of an output of a mechanism; none where a party draws candidates.
    #[must_use]
    pub fn sampler(&self, mechanism: u32, output: u32) -> Option<&Sampler> {
        self.noise(NoisedAt { mechanism, output }).sampler.as_ref()
    }

    /// How far, at most, the law of all noises for a viewer is from the one that its rho is of.
    #[must_use]
    pub fn distance(&self, plan: &ReleasePlan) -> Rational {
        let of = |at: NoisedAt| self.noise(at).sampler.as_ref().map(Sampler::distance);
        plan.noises().into_iter().filter_map(of).sum()
    }

    /// The same of all that a party sees.
    #[must_use]
    pub fn most_distance(&self, party: PartyId) -> Rational {
        self.distance_to(party.into()) + self.distance_to(Viewer::Public)
    }

    /// The same of the release to a viewer alone.
    #[must_use]
    pub fn distance_to(&self, viewer: Viewer) -> Rational {
        let seen = self.noises.iter().zip(&self.to).filter(|(_, to)| **to == viewer);
        let of = |noise: &OutputNoise| noise.sampler.as_ref().map(Sampler::distance);
        seen.flat_map(|(noises, _)| noises.iter().filter_map(of)).sum()
    }

    /// Refuses a study whose noise could be told from its law by somebody who sees all that a party does, the
    /// sizes of the match among it, and `elsewhere`: rho and distance of what becomes public of the study's
    /// other runs, which a ledger counts as read.
    ///
    /// # Errors
    /// Then; or when the study's dummies are out of range.
    pub fn bear(&self, study: &Study, elsewhere: (&Rational, &Rational)) -> Result<(), Error> {
        (0..).map(PartyId).zip(&study.parties).try_for_each(|(party, member)| {
            let rho = self.seen_by(party) + dummies::rho(study, party)? + elsewhere.0;
            let what = format!("the study's noise is too little: that of all that {} sees", member.name);
            crate::bears(&what, &rho, &(self.most_distance(party) + elsewhere.1))
        })
    }

    /// Names the noise of all that a viewer sees: numbers that were drawn by it are read by it. The same
    /// whatever engine runs the release; another version of this program may draw another one.
    #[must_use]
    pub fn law(&self, viewer: Viewer) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key("tacit law of noise 1");
        for (m, _) in self.to.iter().enumerate().filter(|(_, to)| **to == viewer) {
            for noise in &self.noises[m] {
                let low_bits = noise.sampler.as_ref().map(|sampler| sampler.low_bits);
                hasher.update(format!("{m} {} {low_bits:?}\n", noise.variance).as_bytes());
            }
            if let Some(fixed) = &self.fixed[m] {
                hasher.update(format!("{m} {:?}\n", fixed.grid).as_bytes());
            }
        }
        *hasher.finalize().as_bytes()
    }

    /// The mean of the noise of an output of a mechanism: low bits leave -1/2.
    #[must_use]
    pub fn mean(&self, mechanism: u32, output: u32) -> f64 {
        let sampler = self.noise(NoisedAt { mechanism, output }).sampler.as_ref();
        if sampler.is_some_and(|sampler| sampler.low_bits > 0) { -0.5 } else { 0.0 }
    }

    /// How n, S and Q of a `Joint` mechanism are read.
    #[must_use]
    pub fn joint(&self, mechanism: u32) -> Option<&FamilyMechanism> {
        self.joint[mechanism as usize].as_ref()
    }

    /// The fixed-point scale of a `Difference` mechanism.
    #[must_use]
    pub fn fixed(&self, mechanism: u32) -> Option<&FixedScale> {
        self.fixed[mechanism as usize].as_ref()
    }

    /// zCDP that the release to a viewer is charged; what a party sees in all is that of its own and of the
    /// public one.
    #[must_use]
    pub fn charge(&self, viewer: Viewer) -> &Rational {
        &self.charge[self.place(viewer)]
    }

    /// Group sizes, where they are published.
    #[must_use]
    pub fn groups(&self) -> Option<[u64; 2]> {
        self.groups
    }

    /// zCDP of all that a party sees.
    #[must_use]
    pub fn seen_by(&self, party: PartyId) -> Rational {
        self.charge(party.into()) + self.charge(Viewer::Public)
    }

    /// The release of a viewer as a circuit for an engine.
    ///
    /// # Errors
    /// When a noise does not fit the type it is added in.
    pub fn plan(
        &self,
        engine: &dyn Engine,
        program: &Program,
        owners: &[Owners],
        viewer: Viewer,
    ) -> Result<ReleasePlan, Error> {
        let widths = self.widths(program)?;
        let width = |at: NoisedAt| widths[at.mechanism as usize][at.output as usize];
        let sampler = |at| self.sampler_of(at);
        let noise = match self.from {
            _ if program.mechanisms.is_empty() => NoiseSource::None,
            NoiseFrom::Inside => NoiseSource::Coins(&sampler),
            NoiseFrom::CutAndChoose(candidates) => NoiseSource::Candidates(candidates as usize, &width),
        };
        let parameters = |m: u32| {
            let (fixed, groups) = (self.fixed(m)?, self.groups?);
            let spread_places = match program.mechanisms[m as usize].kind {
                MechanismKind::Difference { statistic: DifferenceStatistic::Variance, .. } => fixed.grid.v,
                _ => fixed.grid.se,
            };
            Some(DifferenceSizes { n: groups.map(u128::from), lift_places: fixed.grid.lift, spread_places })
        };
        let (totals, depth) = (engine.totals(), engine.release_depth(program.parties.len()));
        let how = Lowering { totals, depth, owners, noise, difference: &parameters };
        lower_release(program, viewer, &how)
    }

    /// What an engine draws before the rows of these releases; nothing where noise is drawn with a release.
    #[must_use]
    pub fn draws(&self, engine: &dyn Engine, plans: &[impl Borrow<ReleasePlan>]) -> Draws {
        let parties = plans.first().map_or(0, |plan| plan.borrow().parties);
        lower_draws(plans, &|at| self.sampler_of(at), engine.release_depth(parties))
    }

    /// Refuses noise that does not fit the type it is added in: no release of it can be lowered.
    ///
    /// # Errors
    /// Then, with what to do.
    pub fn expect_room(&self, program: &Program) -> Result<(), Error> {
        self.widths(program).map(drop)
    }

    /// Bits of each noise, which fit the type it is added in.
    fn widths(&self, program: &Program) -> Result<Vec<Vec<u8>>, Error> {
        let width = |m: usize, o: usize, noise: &OutputNoise| {
            let width = match &noise.sampler {
                None => DiscreteGaussian::new(&noise.variance)?.width(),
                Some(sampler) => {
                    u32::try_from(sampler.most().bits()).unwrap_or(u32::MAX) + 1 + sampler.low_bits
                }
            };
            let room = program.noised_type(m as u32, o as u32).map_or(0, |ty| u32::from(ty.width));
            if width >= room {
                return Err(Error::input(format!(
                    "the noise of mechanism m{m} needs {width} bits and is added in {room}; spend more rho \
                     on it"
                )));
            }
            Ok(width as u8)
        };
        let row = |(m, noises): (usize, &Vec<OutputNoise>)| {
            noises.iter().enumerate().map(|(o, noise)| width(m, o, noise)).collect()
        };
        self.noises.iter().enumerate().map(row).collect()
    }

    /// The draws of a release whose noise is of candidates, in the order in which those of one candidate
    /// enter.
    #[must_use]
    pub fn candidates(&self, plan: &ReleasePlan) -> Vec<Draw> {
        let draw = |word: &program::lower::ReleaseWord| match word.kind {
            WordKind::Candidate(at, 0) => {
                Some(Draw { sigma2: self.noise(at).variance.clone(), width: u32::from(word.width) })
            }
            _ => None,
        };
        plan.words.iter().filter_map(draw).collect()
    }
}

fn difference(
    study: &Study,
    statistic: DifferenceStatistic,
    to: Viewer,
    rho: &Rational,
    groups: Option<[u64; 2]>,
) -> Result<FixedScale, Error> {
    let Question::Lift(lift) = &study.kind else {
        return Err(Error::input("a program study noises sums only: use gaussian mechanisms"));
    };
    let [test, control] =
        groups.ok_or_else(|| Error::misuse("a difference is scaled after the group sizes are published"))?;
    let mode = match statistic {
        DifferenceStatistic::Variance => ReleaseMode::Variance,
        DifferenceStatistic::Algorithm1 => ReleaseMode::Algorithm1,
        DifferenceStatistic::Algorithm1AsPublished => ReleaseMode::Algorithm1AsPublished,
    };
    // What everybody sees hides the publisher's rows as well: as what the advertiser sees.
    let publisher = to == studies::lift::PUBLISHER.into();
    let viewer = if publisher { scale::ReaderRole::Publisher } else { scale::ReaderRole::Advertiser };
    let bounds = ClampBounds { clamp: lift.rule.clamp.into() };
    fixed_point(mode, viewer, (test, control), bounds, rho)
}

/// The most that the release to a viewer can be charged, before group sizes are known: what is stated, but
/// for `algorithm1-as-published`. As printed, the standard error's sensitivity is too small: by sqrt(N / (N -
/// 1)) for the publisher's view and by another sqrt(2) for the advertiser's, on half of rho
/// (`docs/protocols/release.md`).
#[must_use]
pub fn most_charged(study: &Study, audit: &Audit, viewer: Viewer) -> Rational {
    let stated = viewer.only().map_or(&audit.public, |party| &audit.rho[party.index()]);
    let published = match &study.kind {
        Question::Lift(lift) => lift.release.mode == ReleaseMode::Algorithm1AsPublished,
        Question::Program(_) | Question::Match(_) => false,
    };
    if !published {
        return stated.clone();
    }
    // Groups have at least 1000 rows, and the grid adds less than a thousandth: one per cent covers both.
    let per_cent = if viewer == studies::lift::PUBLISHER.into() { 101 } else { 151 };
    stated * Rational::new(BigInt::from(per_cent), BigInt::from(100))
}

/// The most that a party can be charged for all that it sees.
#[must_use]
pub fn most_seen(study: &Study, audit: &Audit, party: PartyId) -> Rational {
    most_charged(study, audit, party.into()) + most_charged(study, audit, Viewer::Public)
}
