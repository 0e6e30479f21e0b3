//! What a viewer is shown: the values of its outputs without noise, by a run's own release, and for many
//! draws of its noise at once.

use crate::audit::epsilon::{Release, exact};
use crate::prepare::Built;
use base::{Error, PartyId, Rng};
use engine::{Clear, Entered, Shares};
use privacy::scales::Scales;
use program::eval::{NodeValues, closure};
use program::lower::{NoisedAt, ReleasePlan, WordKind};
use program::{Op, OutputValue, Program, RowFold, Viewer};
use release::alias::Sampler;
use release::gaussian::DiscreteGaussian;
use study::{NoiseFrom, Study};

/// Values of outputs: the number of each in the program, and its bit pattern.
pub(super) type OutputPatterns = Vec<(usize, u128)>;

/// What one viewer is shown.
pub(super) struct ShownValues<'a> {
    program: &'a Program,
    plan: ReleasePlan,
    totals: &'a Shares,
    /// By fold: its total, of a best row its word.
    words: Vec<u128>,
    wanted: Vec<bool>,
    noised: Vec<NoisedValue>,
    /// Candidates of noise that one party draws, where noise is of those.
    candidates: Option<Candidates>,
}

/// A total with noise.
struct NoisedValue {
    at: NoisedAt,
    exact: i128,
    noise: NoiseLaw,
}

/// How noise is drawn.
enum NoiseLaw {
    /// By coins of all parties.
    Coins(Sampler),
    /// By one party.
    Drawn(DiscreteGaussian, u32),
}

struct Candidates {
    count: usize,
    draws: Vec<(DiscreteGaussian, u32)>,
}

impl NoiseLaw {
    fn sample(&self, rng: &mut Rng) -> Result<i128, Error> {
        match self {
            Self::Coins(sampler) => Ok(sampler.sample(rng)),
            Self::Drawn(gaussian, width) => gaussian.sample_within(rng, *width),
        }
    }
}

impl Candidates {
    fn of(study: &Study, scales: &Scales, plan: &ReleasePlan) -> Result<Option<Self>, Error> {
        let NoiseFrom::CutAndChoose(count) = study.noise() else { return Ok(None) };
        let draws = scales.candidates(plan).into_iter();
        let draws = draws.map(|draw| Ok((DiscreteGaussian::new(&draw.sigma2)?, draw.width)));
        let draws = draws.collect::<Result<_, Error>>()?;
        Ok(Some(Self { count: count as usize, draws }))
    }

    /// What is entered, of each candidate.
    fn sample(&self, rng: &mut Rng) -> Result<Vec<Vec<i128>>, Error> {
        let mut one = || self.draws.iter().map(|(law, width)| law.sample_within(rng, *width)).collect();
        (0..self.count).map(|_| one()).collect()
    }
}

impl<'a> ShownValues<'a> {
    /// What a viewer is shown of these totals.
    ///
    /// # Errors
    /// When the program's release cannot be lowered.
    pub fn new(
        (study, built): (&Study, &'a Built),
        scales: &Scales,
        totals: &'a Shares,
        viewer: Viewer,
    ) -> Result<Self, Error> {
        let program = &built.program;
        let plan = scales.plan(&Clear, program, &program.fold_owners(), viewer)?;
        let section = &program.release;
        let outputs: Vec<usize> = program.outputs_to(viewer).collect();
        let wanted = closure(section, outputs.iter().map(|output| program.outputs[*output].value));
        let word = |fold: u32| totals.word(WordKind::Alone(fold), PartyId(0));
        // A list is no word.
        let words = (0..).zip(&program.folds).map(|(number, fold)| match fold {
            RowFold::Collect { .. } => Ok(0),
            _ => word(number),
        });
        let words = words.collect::<Result<_, _>>()?;
        let mut noised: Vec<NoisedValue> = Vec::new();
        for (id, _) in section.ids().zip(&wanted).filter(|(_, wanted)| **wanted) {
            let Op::Noised(mechanism, output) = section.node(id).op else { continue };
            let at = NoisedAt { mechanism, output };
            if noised.iter().any(|known| known.at == at) {
                continue;
            }
            // A program that shows this value alone.
            let label = String::new();
            let outputs = vec![OutputValue { label, to: viewer, value: id }];
            let own = Program { outputs, ..program.clone() };
            let plan = scales.plan(&Clear, &own, &own.fold_owners(), viewer)?;
            let sampler = scales.sampler(mechanism, output);
            let (exact, noise) = match (Candidates::of(study, scales, &plan)?, sampler) {
                (Some(candidates), _) => drawn(&own, &plan, totals, candidates)?,
                (None, Some(sampler)) => {
                    let release = Release::new(&own, plan, &|_| Some(sampler.clone()));
                    let values = exact(&own, &release, totals)?;
                    (values[0], NoiseLaw::Coins(sampler.clone()))
                }
                (None, None) => return Err(Error::misuse("noise has a law")),
            };
            noised.push(NoisedValue { at, exact, noise });
        }
        let candidates = if noised.is_empty() { None } else { Candidates::of(study, scales, &plan)? };
        Ok(Self { program, plan, totals, words, wanted, noised, candidates })
    }

    /// Whether there is noise in anything that is shown.
    pub fn is_noised(&self) -> bool {
        !self.noised.is_empty()
    }

    /// Without noise.
    ///
    /// # Errors
    /// None that a program which was verified has.
    pub fn exact(&self) -> Result<OutputPatterns, Error> {
        let none = vec![vec![0]; self.noised.len()];
        self.lane(&self.evaluate(&none, 1)?, 0)
    }

    /// As a run would release it: by the program's release, with coins or candidates of all parties.
    ///
    /// # Errors
    /// When a noise is out of range.
    pub fn released(&self, rng: &mut Rng) -> Result<OutputPatterns, Error> {
        let mut entered = Entered::whole(&self.plan, self.totals, rng)?;
        if let Some(candidates) = &self.candidates {
            entered = entered.with_candidates(&self.plan, &candidates.sample(rng)?)?;
        }
        let bits = Clear::releases(&self.plan, &[entered])?;
        let bits = bits.first().ok_or_else(|| Error::misuse("a release has bits"))?;
        let values = self.plan.values(&bits[self.plan.outputs_of(0)]);
        Ok(self.plan.outputs.iter().map(|(output, _)| *output).zip(values).collect())
    }

    /// As many releases as are asked for.
    ///
    /// # Errors
    /// When a noise is out of range.
    pub fn draws(&self, count: usize, rng: &mut Rng) -> Result<Vec<OutputPatterns>, Error> {
        let draw = |of: &NoisedValue| (0..count).map(|_| of.noise.sample(rng)).collect();
        let noise: Vec<Vec<i128>> = self.noised.iter().map(draw).collect::<Result<_, _>>()?;
        let values = self.evaluate(&noise, count)?;
        (0..count).map(|lane| self.lane(&values, lane)).collect()
    }

    /// The release section with this noise, by noised value and lane.
    fn evaluate(&self, noise: &[Vec<i128>], lanes: usize) -> Result<NodeValues, Error> {
        let mut values = NodeValues::default();
        values.evaluate(&self.program.release, &self.wanted, lanes, &mut |op, out| {
            match op {
                Op::Total(fold) => out.fill(self.part(*fold, 0, self.key_bits(*fold))),
                Op::Index(fold) => {
                    out.fill(self.part(*fold, self.key_bits(*fold), RowFold::INDEX.width.into()));
                }
                Op::Found(fold) => {
                    let last = self.key_bits(*fold) + u32::from(RowFold::INDEX.width);
                    out.fill(self.part(*fold, last, 1));
                }
                Op::Noised(mechanism, output) => {
                    let at = NoisedAt { mechanism: *mechanism, output: *output };
                    let found = self.noised.iter().zip(noise).find(|(known, _)| known.at == at);
                    let ty = self.program.noised_type(*mechanism, *output);
                    let (Some((value, noise)), Some(ty)) = (found, ty) else {
                        return Err(Error::misuse("a noised value is of a mechanism"));
                    };
                    let noised = noise.iter().map(|noise| (value.exact + noise) as u128 & ty.mask());
                    out.iter_mut().zip(noised).for_each(|(out, noised)| *out = noised);
                }
                _ => return Err(Error::misuse("a release has totals and noised values")),
            }
            Ok(())
        })?;
        Ok(values)
    }

    fn key_bits(&self, fold: u32) -> u32 {
        self.program.folds[fold as usize].ty().width.into()
    }

    /// Bits of a fold's word.
    fn part(&self, fold: u32, from: u32, bits: u32) -> u128 {
        self.words[fold as usize] >> from & u128::MAX >> (u128::BITS - bits)
    }

    fn lane(&self, values: &NodeValues, lane: usize) -> Result<OutputPatterns, Error> {
        let value = |output: usize| (output, values.get(self.program.outputs[output].value)[lane]);
        Ok(self.program.outputs_to(self.plan.viewer).map(value).collect())
    }
}

/// A value whose noise is one of several candidates: without noise, and how these are drawn.
fn drawn(
    program: &Program,
    plan: &ReleasePlan,
    totals: &Shares,
    mut candidates: Candidates,
) -> Result<(i128, NoiseLaw), Error> {
    let none = vec![vec![0; candidates.draws.len()]; candidates.count];
    // No coin enters.
    let mut coins = base::Seed::from_bytes([0; 32]).into_rng();
    let entered = Entered::whole(plan, totals, &mut coins)?.with_candidates(plan, &none)?;
    let bits = Clear::releases(plan, &[entered])?;
    let value = bits.first().and_then(|bits| plan.values(&bits[plan.outputs_of(0)]).first().copied());
    let (value, law) = value.zip(candidates.draws.pop()).ok_or_else(|| Error::misuse("a value has noise"))?;
    let ty = program.release.ty(program.outputs[0].value);
    Ok((ty.to_signed(value), NoiseLaw::Drawn(law.0, law.1)))
}
