//! The law of noise under attack: all participants but one choose their coins, and what comes out still
//! follows the law.

use super::run::together;
use super::{MakeEngine, Table};
use crate::{DrawnNoise, Engine, Entered, outputs, run_rows};
use base::{Error, PartyId, Roster, Seed};
use net::Session;
use net::cluster::Cluster;
use program::lower::{
    self, DifferenceSizes, Draws, Lowering, NoisedAt, ReleasePlan, ReleaseWord, WordKind, lower_draws,
    lower_release,
};
use program::{Class, MechanismKind, Program, ProgramBuilder, ValueType, Viewer};
use release::alias::Sampler;
use release::rational::ratio;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Noises of one release.
const DRAWS: u32 = 3400;
/// Releases by each choice of coins: 20,400 noises in all, as many as the specification asks for of an
/// engine.
const RELEASES: u64 = 2;
/// sigma^2, of sensitivity 1 at rho 1/10.
const VARIANCE: f64 = 5.0;
/// Numbers this far from 0 and farther are one cell.
const FAR: i128 = 7;
/// Of 14 degrees of freedom: passed once in 10^6 by what follows the law. Seeds are fixed, so it is once and
/// for all.
const MOST: f64 = 52.0;

/// How those who attack choose their coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Zeros,
    Ones,
    /// Those of the last run.
    Same,
}

/// Noises of one release in which all but `honest` choose their coins; honest coins differ from run to run.
type Release<'a> = dyn Fn(Option<PartyId>, Chosen, u64) -> Result<Vec<i128>, Error> + 'a;

/// Runs releases of which all but one of `parties` parties choose the coins, with so many servers beside
/// them; where servers draw, all summands of coins but one are chosen.
///
/// # Errors
/// When the noise does not follow its law; when it does where *all* choose their coins, for then this test
/// sees nothing; and those of the engine.
pub fn check_law(parties: usize, servers: usize, make: &MakeEngine<'_>) -> Result<(), String> {
    // The same at all and in all runs.
    let lowered = OnceLock::new();
    let release = |honest, chosen, run| {
        let cluster = Cluster::new(parties + servers, 1 + run);
        let done = cluster.run(|session| noises((parties, &lowered), make, (honest, chosen), session));
        Ok(together(done)?.swap_remove(0))
    };
    judge(parties, &release)
}

/// As [`check_law`] with an engine that holds all columns in one process.
///
/// # Errors
/// Those of [`check_law`].
pub fn check_law_alone(make: &MakeEngine<'_>) -> Result<(), String> {
    judge(2, &|honest, chosen, run| noises_alone(make, (honest, chosen), run))
}

fn judge(parties: usize, release: &Release<'_>) -> Result<(), String> {
    for (i, chosen) in [Chosen::Zeros, Chosen::Ones, Chosen::Same].into_iter().enumerate() {
        let honest = Some(PartyId((i % parties) as u8));
        let mut drawn = Vec::new();
        for run in 0..RELEASES {
            let noises = release(honest, chosen, run).map_err(|e| e.to_string())?;
            if drawn == noises {
                return Err(format!(
                    "{chosen:?}: two runs have the same noise, though one party's coins are new"
                ));
            }
            drawn.extend(noises);
        }
        let distance = chi_square(&drawn);
        if distance > MOST {
            return Err(format!("{chosen:?}: chi-square {distance:.1} of 14 degrees: not the law"));
        }
    }
    match chi_square(&release(None, Chosen::Zeros, 0).map_err(|e| e.to_string())?) {
        distance if distance > MOST => Ok(()),
        distance => Err(format!("coins that all chose pass for random: chi-square {distance:.1}")),
    }
}

/// A release and its draws, lowered once for all runs.
type LoweredOnce = OnceLock<(Arc<ReleasePlan>, Arc<Draws>)>;

/// One release to everybody of the same bit, many times: its noises.
fn noises(
    (parties, lowered): (usize, &LoweredOnce),
    make: &MakeEngine<'_>,
    (honest, chosen): (Option<PartyId>, Chosen),
    session: &mut Session,
) -> Result<Vec<i128>, Error> {
    let me = session.me();
    let engine = session.step("setup", make)?;
    let program = program(parties);
    let (plan, draws) = lowered.get_or_init(|| lower(&program, &*engine).expect("the program is lowered"));
    // Of four summands of a coin one is of a key that an honest server tossed for.
    let attacks = |word: &ReleaseWord| match word.kind {
        WordKind::Coins(..) => word.owner == me && honest != Some(me),
        WordKind::CoinSummand(.., j) => honest != Some(PartyId(j)),
        _ => false,
    };
    let mut coins = Entered::nothing(draws.words.len());
    choose(&draws.words, &mut coins, chosen, attacks);
    let draw = engine.draw(draws)?;
    let mut noise = session.step("draw", |s| draw.run(&coins, s))?;
    let mut rows = Table::new(&program, &vec![vec![1]; parties], 1, Some(me));
    let totals = session.step("rows", |s| run_rows(&*engine, &program, &mut rows, s))?;
    let mut entered = Entered::new(plan, &totals, me, &mut session.fork_seed("coins").into_rng())?;
    choose(&plan.words, &mut entered, chosen, attacks);
    let release = engine.release(plan)?;
    let left = session.step("release", |s| release.run(&entered, &mut noise, s))?;
    let bits = session.step("open", |s| outputs::open(plan, release.holders(), &left, s))?;
    Ok(bits.map_or_else(Vec::new, |bits| of_bits(plan, &bits)))
}

fn noises_alone(
    make: &MakeEngine<'_>,
    (honest, chosen): (Option<PartyId>, Chosen),
    run: u64,
) -> Result<Vec<i128>, Error> {
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([3; 32]));
    let engine = make(&mut session)?;
    let program = program(2);
    let (plan, _) = lower(&program, &*engine)?;
    let mut rows = Table::new(&program, &[vec![1], vec![1]], 1, None);
    let totals = run_rows(&*engine, &program, &mut rows, &mut session)?;
    let mut coins = Seed::from_bytes([run as u8; 32]).into_rng();
    let mut entered = Entered::whole(&plan, &totals, &mut coins)?;
    let attacks = |word: &ReleaseWord| matches!(word.kind, WordKind::Coins(..)) && honest != Some(word.owner);
    choose(&plan.words, &mut entered, chosen, attacks);
    let left = engine.release(&plan)?.run(&entered, &mut DrawnNoise::none(), &mut session)?;
    Ok(of_bits(&plan, &left.bits(0..plan.bits())))
}

/// Other coins for the words of those who attack.
fn choose(
    words: &[ReleaseWord],
    entered: &mut Entered,
    chosen: Chosen,
    attacks: impl Fn(&ReleaseWord) -> bool,
) {
    let mut same = Seed::from_bytes([9; 32]).into_rng();
    for (index, word) in words.iter().enumerate() {
        let drawn = u128::from_le_bytes(same.bytes());
        if attacks(word) {
            let value = match chosen {
                Chosen::Zeros => 0,
                Chosen::Ones => u128::MAX,
                Chosen::Same => drawn,
            };
            entered.set(index, value & u128::MAX >> (128 - u32::from(word.width)));
        }
    }
}

fn of_bits(plan: &ReleasePlan, bits: &[bool]) -> Vec<i128> {
    // Outputs are of type i16; the exact one is 1.
    plan.values(bits).into_iter().map(|value| i128::from(value as u16 as i16) - 1).collect()
}

/// How many rows all parties have a 1 in, with noise, as often as there are draws.
fn program(parties: usize) -> Program {
    let mut b = ProgramBuilder::new("law", Class::Dp, (0..parties).map(|p| format!("p{p}")));
    let bits = (0..parties as u8).map(|p| b.column(&format!("c{p}"), ValueType::BIT, PartyId(p)));
    let bits: Vec<_> = bits.collect();
    let all = bits.into_iter().reduce(|x, y| b.and(x, y)).expect("a program has a party");
    let fold = b.sum(all, ValueType::u(8));
    let kind = MechanismKind::Gaussian(vec![fold; DRAWS as usize]);
    let mechanism = b.mechanism(Viewer::Public, &ratio(1, 10), kind);
    b.release();
    for draw in 0..DRAWS {
        let value = b.noised(mechanism, draw);
        b.reveal(&format!("{draw}"), Viewer::Public, value);
    }
    b.finish()
}

fn lower(program: &Program, engine: &dyn Engine) -> Result<(Arc<ReleasePlan>, Arc<Draws>), Error> {
    let sampler = Sampler::new(&1.into(), 1, &ratio(1, 10))?;
    let sampler = |_: NoisedAt| &sampler;
    let owners = program.fold_owners();
    let difference = |_: u32| None::<DifferenceSizes>;
    let (totals, depth) = (engine.totals(), engine.release_depth(program.parties.len()));
    let noise = lower::NoiseSource::Coins(&sampler);
    let how = Lowering { totals, depth, owners: &owners, noise, difference: &difference };
    let plan = lower_release(program, Viewer::Public, &how)?;
    let draws = lower_draws(std::slice::from_ref(&plan), &sampler, depth);
    Ok((Arc::new(plan), Arc::new(draws)))
}

/// The distance of a histogram from the discrete Gaussian's, tails pooled.
fn chi_square(drawn: &[i128]) -> f64 {
    let cell = |x: i128| x.clamp(-FAR, FAR);
    let mut counts: BTreeMap<i128, f64> = BTreeMap::new();
    drawn.iter().for_each(|x| *counts.entry(cell(*x)).or_default() += 1.0);
    let mass = |x: i128| (-(x * x) as f64 / (2.0 * VARIANCE)).exp();
    let range = -60..=60i128;
    let whole: f64 = range.clone().map(mass).sum();
    let mut law: BTreeMap<i128, f64> = BTreeMap::new();
    range.for_each(|x| *law.entry(cell(x)).or_default() += mass(x) / whole * drawn.len() as f64);
    law.iter().map(|(x, expected)| (counts.get(x).unwrap_or(&0.0) - expected).powi(2) / expected).sum()
}
