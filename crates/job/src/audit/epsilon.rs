//! `tacit audit epsilon`: a lower bound on what a release costs, from its outputs.
//!
//! A study is built, verified, scaled and lowered as in a run, and evaluated on the `clear` engine with fresh
//! coins of all parties: many times on each of two neighbouring inputs. Whatever tells the outputs of both
//! apart bounds what they cost from below ([`super::bound`]); a view passes where that is not above what its
//! ledgers charge. Passing is no proof: it is what so many outputs and these statistics
//! ([`super::statistics`]) can see.

use super::bound::{self, Bound};
use super::coverage::Own;
use super::neighbours::{self, Input};
use super::sample::Sample;
use super::statistics::{self, Lattice, Run, Stated};
use super::{Progress, parallel};
use crate::prepare::Built;
use base::{Error, PartyId, Roster, Seed};
use engine::conformance::Table;
use engine::{Clear, Entered, Shares, outputs, run_rows};
use net::Session;
use num_traits::Zero;
use privacy::scales::Scales;
use privacy::{DELTA, PrivacyTotal};
use program::lower::{NoisedAt, ReleasePlan, WordKind};
use program::{Op, Program, Viewer};
use release::Rational;
use release::alias::Sampler;
use release::rational::to_f64;
use serde::Serialize;
use study::{ReleaseMode, Study};

/// Runs evaluated at once.
const PIECE: usize = 1024;
/// R of the studies that are audited where none is given: odd, so that sums move by odd numbers, which low
/// bits must hide.
const CLAMP: u64 = 21;

/// What to audit.
#[derive(Clone, Debug)]
pub struct EpsilonQuestion {
    /// The user's lift study; none: every mode, for every viewer.
    pub study: Option<Study>,
    /// zCDP of each view, where no study says it. The more it is, the larger a part of it is seen.
    pub rho: Rational,
    /// Runs on each of the two inputs.
    pub runs: usize,
    /// Confidence of each bound, in 0..1.
    pub confidence: f64,
    /// What makes the same table again.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct EpsilonReport {
    /// What makes it again.
    pub seed: u64,
    /// Runs on each side.
    pub runs: usize,
    /// Confidence of each bound.
    pub confidence: f64,
    /// All views.
    pub views: Vec<Audited>,
}

/// One view.
#[derive(Clone, Debug, Serialize)]
pub struct Audited {
    /// The study, by what it is.
    pub study: String,
    /// Who sees it.
    pub viewer: String,
    /// The two inputs.
    pub inputs: [String; 2],
    /// zCDP that the ledger charges.
    pub rho: f64,
    /// zCDP that these inputs cost by the stated law.
    pub rho_of_inputs: f64,
    /// zCDP at least, by the outputs and the kind of the noise; 0 where nothing is seen.
    pub rho_seen: f64,
    /// By which statistic.
    pub rho_seen_by: String,
    /// The epsilon that the ledger quotes.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// Epsilon at least, by the outputs, whatever the law of the noise; 0 where nothing is seen.
    pub epsilon_seen: f64,
    /// By which statistic.
    pub epsilon_seen_by: String,
    /// Whether neither is above what is charged.
    pub passes: bool,
}

/// Audits every view that is asked for.
///
/// # Errors
/// When a study is no lift study, or too large to be evaluated.
pub fn run(asked: &EpsilonQuestion, progress: Progress<'_>) -> Result<EpsilonReport, Error> {
    let studies = match &asked.study {
        Some(study) => vec![(study.name.clone(), study.clone())],
        None => samples(&asked.rho)?,
    };
    let owns: Vec<Own<'_>> = studies.iter().map(|(_, study)| Own::new(study)).collect::<Result<_, _>>()?;
    let mut views = Vec::new();
    for ((name, _), own) in studies.iter().zip(&owns) {
        views.extend(viewers(own)?.into_iter().map(|viewer| (name, own, viewer)));
    }
    let audited = parallel(views.len(), asked.threads, progress, |at| {
        let (name, own, viewer) = &views[at];
        let view = View::new(own, *viewer)?;
        let seed = Seed::from_bytes([0; 32]).fork(&format!("epsilon/{}/{name}/{viewer:?}", asked.seed));
        view.audit(name, &view.release, &|_, _| (), asked, &seed)
    })?;
    Ok(EpsilonReport { seed: asked.seed, runs: asked.runs, confidence: asked.confidence, views: audited })
}

/// Every mode; one with outcomes of 0 and 1, with a breakdown and counts, of several advertisers together,
/// and matched by several identifiers, where one row changes several.
fn samples(rho: &Rational) -> Result<Vec<(String, Study)>, Error> {
    let each = |sample: Sample| {
        let rho = || Some(rho.clone());
        Sample { publisher: rho(), advertiser: rho(), public: rho(), ..sample }
    };
    let sums = || Sample::new(ReleaseMode::Sums, CLAMP);
    let mut all: Vec<(String, Sample)> = ReleaseMode::NAMES
        .iter()
        .map(|(name, mode)| (format!("`{name}`"), Sample::new(*mode, CLAMP)))
        .collect();
    all.push(("`sums`, R = 1".into(), Sample::new(ReleaseMode::Sums, 1)));
    let also = &["converters", "conversions"];
    all.push(("`sums`, breakdown and counts".into(), Sample { breakdown: 2, also, ..sums() }));
    all.push(("`sums`, three advertisers together".into(), Sample { advertisers: 3, ..sums() }));
    let by_three = Sample { identifiers: 3, breakdown: 4, also: &["converters"], ..sums() };
    all.push(("`sums`, three identifiers, breakdown and counts".into(), by_three));
    all.into_iter().map(|(name, sample)| Ok((name, each(sample).study()?))).collect()
}

fn viewers(own: &Own<'_>) -> Result<Vec<Viewer>, Error> {
    Ok(own.lift()?.0.releases().map(|(viewer, _)| viewer).collect())
}

/// A release as it is evaluated.
pub(crate) struct Release {
    pub plan: ReleasePlan,
    /// The noise of each output, in the order of the plan.
    pub samplers: Vec<Option<(NoisedAt, Sampler)>>,
}

impl Release {
    /// Of a plan whose outputs are noised totals, or exact.
    pub(crate) fn new(
        program: &Program,
        plan: ReleasePlan,
        sampler: &dyn Fn(NoisedAt) -> Option<Sampler>,
    ) -> Self {
        let of = |(index, _): &(usize, _)| match program.release.node(program.outputs[*index].value).op {
            Op::Noised(mechanism, output) => {
                let at = NoisedAt { mechanism, output };
                sampler(at).map(|sampler| (at, sampler))
            }
            _ => None,
        };
        let samplers = plan.outputs.iter().map(of).collect();
        Self { plan, samplers }
    }

    /// The noise of an output by the coins of some parties, as the circuit leaves it.
    fn noise(&self, output: usize, entered: &Entered, has: &dyn Fn(PartyId) -> bool) -> i128 {
        let Some((at, sampler)) = &self.samplers[output] else { return 0 };
        let mut coins = vec![false; sampler.coins()];
        for (word, value) in self.plan.words.iter().enumerate().map(|(i, word)| (word, entered.get(i))) {
            let WordKind::Coins(of, piece) = word.kind else { continue };
            if of == *at && has(word.owner) {
                let from = usize::from(piece) * 128;
                for (bit, coin) in coins[from..].iter_mut().take(word.width.into()).enumerate() {
                    *coin ^= value.is_some_and(|value| value >> bit & 1 == 1);
                }
            }
        }
        sampler.left(&coins)
    }
}

/// Two neighbouring inputs.
struct Pair {
    /// zCDP that they cost on average over low bits, by the stated law.
    rho: f64,
    inputs: [Input; 2],
    totals: [Shares; 2],
    stated: Vec<Stated>,
}

/// A view with the inputs that are to be told apart.
pub(super) struct View<'a> {
    own: &'a Own<'a>,
    viewer: Viewer,
    pub scales: Scales,
    pub release: Release,
    /// Both inputs, and the totals of their rows.
    pub inputs: [Input; 2],
    totals: [Shares; 2],
    stated: Vec<Stated>,
    /// How many times the rho of normals a shift of the stated lattices looks like, at least 1.
    lattice: f64,
    names: Vec<String>,
}

impl<'a> View<'a> {
    /// Of a study's own noise.
    pub(super) fn new(own: &'a Own<'a>, viewer: Viewer) -> Result<Self, Error> {
        let Built { program, audit, .. } = &own.built;
        let groups = neighbours::groups(&own.lift()?.0, viewer)?;
        let scales = Scales::new(own.study, program, audit, groups)?;
        let plan = scales.plan(&Clear, program, &program.fold_owners(), viewer)?;
        let release = Release::new(program, plan, &|at| scales.sampler(at.mechanism, at.output).cloned());
        Self::of(own, viewer, scales, release)
    }

    /// Of the neighbouring inputs that cost the most by the law that `release` states.
    pub(super) fn of(
        own: &'a Own<'a>,
        viewer: Viewer,
        scales: Scales,
        release: Release,
    ) -> Result<Self, Error> {
        let program = &own.built.program;
        let (lift, layout) = own.lift()?;
        let label = |(index, _): &(usize, _)| program.outputs[*index].label.clone();
        let names = release.plan.outputs.iter().map(label).collect();
        let mut best: Option<Pair> = None;
        for set in neighbours::all(lift, viewer) {
            let found: Vec<(Input, Shares, Vec<i128>)> = set
                .into_iter()
                .map(|input| {
                    let totals = totals(program, &input.columns(lift, layout), input.rows())?;
                    let exact = exact(program, &release, &totals)?;
                    Ok::<_, Error>((input, totals, exact))
                })
                .collect::<Result<_, _>>()?;
            for (i, a) in found.iter().enumerate() {
                for b in &found[i + 1..] {
                    let stated = stated(&release, [&a.2, &b.2]);
                    // What a viewer is told exactly is not hidden from it: no neighbours.
                    let rho = stated.iter().map(Stated::usual_rho).sum::<Option<f64>>();
                    let Some(rho) = rho.filter(|rho| best.as_ref().is_none_or(|best| *rho > best.rho)) else {
                        continue;
                    };
                    let (inputs, totals) = ([a.0.clone(), b.0.clone()], [a.1.clone(), b.1.clone()]);
                    best = Some(Pair { rho, inputs, totals, stated });
                }
            }
        }
        let best = best.ok_or_else(|| Error::misuse("a view hides something"))?;
        let Pair { inputs, totals, stated, .. } = best;
        let lattice = statistics::lattice(&stated);
        Ok(Self { own, viewer, scales, release, inputs, totals, stated, lattice, names })
    }

    /// Evaluates a release on both inputs and says what that shows. `coins` may change what all enter.
    pub(super) fn audit(
        &self,
        name: &str,
        release: &Release,
        coins: &(dyn Fn(&ReleasePlan, &mut Entered) + Sync),
        asked: &EpsilonQuestion,
        seed: &Seed,
    ) -> Result<Audited, Error> {
        let side = |side: usize| self.runs(release, side, coins, asked.runs, &seed.fork(&side.to_string()));
        let runs = [side(0)?, side(1)?];
        let statistics = statistics::all(&self.stated, &runs, &self.names);
        drop(runs);
        let nothing = || Bound { value: 0.0, by: "nothing".into() };
        let at_delta = bound::epsilon(DELTA);
        let best = |score: bound::Score<'_>| {
            bound::best(&statistics, asked.confidence, score).unwrap_or_else(nothing)
        };
        let (epsilon_seen, shift) = (best(&at_delta), best(&bound::shift));
        // What a shift of lattices shows beyond one of normals is the lattice's, and not charged.
        let rho_seen = shift.value.max(0.0).powi(2) / (2.0 * self.lattice);
        let charge = self.scales.charge(self.viewer);
        let (rho, quoted) = (to_f64(charge), PrivacyTotal::new(charge, &Rational::zero(), &Rational::zero()));
        Ok(Audited {
            study: name.to_owned(),
            viewer: self.viewer.name(&self.own.built.program.parties).to_owned(),
            inputs: [0, 1].map(|side: usize| self.inputs[side].about.clone()),
            rho,
            rho_of_inputs: self.stated.iter().filter_map(Stated::rho).sum(),
            rho_seen,
            rho_seen_by: shift.by,
            epsilon: quoted.epsilon,
            delta: quoted.delta,
            epsilon_seen: epsilon_seen.value.max(0.0),
            epsilon_seen_by: epsilon_seen.by,
            passes: rho_seen <= rho && epsilon_seen.value <= quoted.epsilon,
        })
    }

    fn runs(
        &self,
        release: &Release,
        side: usize,
        coins: &(dyn Fn(&ReleasePlan, &mut Entered) + Sync),
        count: usize,
        seed: &Seed,
    ) -> Result<Vec<Run>, Error> {
        let program = &self.own.built.program;
        let parties: Vec<PartyId> = outputs::viewers(&release.plan).collect();
        let mut runs = Vec::with_capacity(count);
        let mut rng = seed.fork("coins").into_rng();
        while runs.len() < count {
            let entered = (0..PIECE.min(count - runs.len())).map(|_| {
                let mut entered = Entered::whole(&release.plan, &self.totals[side], &mut rng)?;
                coins(&release.plan, &mut entered);
                Ok::<_, Error>(entered)
            });
            let entered: Vec<Entered> = entered.collect::<Result<_, _>>()?;
            let bits = Clear::releases(&release.plan, &entered)?;
            runs.extend(entered.iter().zip(&bits).map(|(entered, bits)| {
                let own = |party: &PartyId| {
                    let noise = |output| release.noise(output, entered, &|owner| owner == *party);
                    (0..release.samplers.len()).map(noise).collect()
                };
                Run { outputs: values(program, &release.plan, bits), own: parties.iter().map(own).collect() }
            }));
        }
        Ok(runs)
    }
}

/// The totals of a joined table, by the `clear` engine.
fn totals(program: &Program, columns: &[Vec<u128>], rows: u64) -> Result<Shares, Error> {
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([0; 32]));
    run_rows(&Clear, program, &mut Table::new(program, columns, rows, None), &mut session)
}

/// Signed values of one release's bits.
fn values(program: &Program, plan: &ReleasePlan, bits: &[bool]) -> Vec<i128> {
    let signed = |((index, _), value): (&(usize, _), u128)| {
        program.release.ty(program.outputs[*index].value).to_signed(value)
    };
    plan.outputs.iter().zip(plan.values(bits)).map(signed).collect()
}

/// The outputs without their noise: one release, less what its coins make.
pub(crate) fn exact(program: &Program, release: &Release, totals: &Shares) -> Result<Vec<i128>, Error> {
    let mut rng = Seed::from_bytes([0; 32]).fork("exact").into_rng();
    let entered = [Entered::whole(&release.plan, totals, &mut rng)?];
    let bits = Clear::releases(&release.plan, &entered)?;
    let values = values(program, &release.plan, &bits[0]);
    let less = |(at, value): (usize, i128)| value - release.noise(at, &entered[0], &|_| true);
    Ok(values.into_iter().enumerate().map(less).collect())
}

fn stated(release: &Release, exact: [&Vec<i128>; 2]) -> Vec<Stated> {
    let of = |(at, sampler): (usize, &Option<(NoisedAt, Sampler)>)| Stated {
        exact: exact.map(|values| values[at]),
        noise: sampler.as_ref().map(|(_, sampler)| Lattice::of(sampler)),
    };
    release.samplers.iter().enumerate().map(of).collect()
}
