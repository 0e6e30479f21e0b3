//! `bench yao` and `bench lift`: rows of two parties under an engine.

use super::names::{OtChoice, TransportName, only};
use super::party::{PartyJob, PartyMeasurement, PartyResult, PartyTask, TotalShare, Work};
use super::two::{self, PairSummary, core_each};
use super::{PARTIES, SEED, expect, gates, tell};
use base::{Error, PartyId};
use clap::{Args, ValueEnum};
use engine::{Clear, Engine, PreparedRows, RowSource};
use gmw::Gmw;
use program::lower::lower_row;
use program::{Program, RowFold, ShardRows};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use studies::lift::{self, BenchRows, LiftCell, LiftLayout, LiftParameters, Quantity, TrialArm, bench_truth};
use sums::SumRows;
use terminal::follow::Children;
use terminal::machine;
use terminal::progress::{Board, Working};
use terminal::values::NamedValue as _;
use terminal::values::count;
use yao::Yao;

/// K of `bench lift`.
pub const LIFT_EVENTS: u8 = 4;

/// Measures AND gates.
#[derive(Clone, Debug, Args)]
pub struct YaoArgs {
    #[command(flatten)]
    sizes: Sizes,
    /// The engine; `clear` runs both roles in one process, without protection
    #[arg(long, default_value = "yao", value_parser = only(&[PairEngine::Yao, PairEngine::Clear]))]
    engine: PairEngine,
    /// Bits of Delta that SoftSpoken OT takes at once: small for fast links, large for slow ones; 2 unless
    /// told otherwise
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=8))]
    k: Option<u32>,
}

/// Measures rows of a lift study.
#[derive(Clone, Debug, Args)]
pub struct LiftArgs {
    #[command(flatten)]
    sizes: Sizes,
    /// The engine; `clear` runs both roles in one process, without protection
    #[arg(long, default_value = "yao")]
    engine: PairEngine,
    #[command(flatten)]
    ots: OtChoice,
}

/// How many rows, and how they travel.
#[derive(Clone, Debug, Args)]
struct Sizes {
    /// Rows of each side
    #[arg(long, value_name = "N", value_parser = count)]
    rows: u64,
    /// Worker pairs, each on a connection of its own; they share the party's one core
    #[arg(long, value_name = "S", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=256))]
    shards: u32,
    /// How bytes travel; tcp unless told otherwise
    #[arg(long, value_name = "NAME", value_parser = only(&TransportName::TWO))]
    transport: Option<TransportName>,
}

/// An engine of two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PairEngine {
    /// Garbled circuits.
    Yao,
    /// Correlated OT alone.
    Gmw,
    /// The reference: no protection.
    Clear,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowKind {
    /// AND gates.
    Gates,
    /// A person of a lift study.
    Lift,
}

/// What two parties compute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowWork {
    pub of: RowKind,
    pub engine: PairEngine,
    pub rows: u64,
    pub k: u32,
    /// Of the gmw engine.
    pub ot: String,
    pub shards: u32,
}

impl YaoArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        let ots = OtChoice { ot: None, k: self.k };
        self.sizes.run(RowKind::Gates, self.engine, &ots, json)
    }
}

impl LiftArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        self.sizes.run(RowKind::Lift, self.engine, &self.ots, json)
    }
}

impl Sizes {
    fn run(&self, of: RowKind, engine: PairEngine, ots: &OtChoice, json: bool) -> Result<(), Error> {
        if engine != PairEngine::Gmw && ots.ot.is_some() {
            return Err(Error::input("--ot goes with --engine gmw; remove --ot"));
        }
        let unused = self.transport.map(|_| "--transport").or(ots.given());
        if let Some(flag) = unused.filter(|_| engine == PairEngine::Clear) {
            return Err(Error::input(format!("{flag} does nothing with --engine clear; remove {flag}")));
        }
        let work = RowWork::new(of, engine, self.rows, ots)?;
        let work = RowWork { shards: self.shards, ..work };
        let transport = self.transport.unwrap_or(TransportName::Tcp);
        let (board, folder) = (Board::stderr(), two::folder()?);
        let alone = engine == PairEngine::Clear;
        let names: &[&str] = if alone { &["clear"] } else { &PARTIES };
        let parties = if alone {
            clear(&work, &board)?
        } else {
            let secrets = two::keys(transport, &PARTIES, folder.path())?;
            let both = Work::Rows(work.clone());
            two::measure(&both, secrets.as_deref(), core_each(), Duration::ZERO, Some(&board))?
        };
        board.end();
        let working = Working::on("checking the result");
        let correct = work.correct(&parties)?;
        drop(working);
        let summary = PairSummary::new(of.word(), self.rows, names, &parties, correct);
        let transport = if alone { "none".to_owned() } else { transport.word() };
        tell(&PairSummary { transport, ..work.told(summary)? }, json, PairSummary::text)?;
        expect(correct)
    }
}

/// Both roles in one process.
fn clear(work: &RowWork, board: &Board) -> Result<Vec<PartyMeasurement>, Error> {
    let mut children = Children::default();
    let core = machine::cores().first().copied();
    let task = PartyTask { work: Work::Rows(work.clone()), party: 0, peer: None, tls: None, core };
    two::start(&mut children, "clear", &PartyJob::Two(Box::new(task)))?;
    children.finish(|_, line| board.show(line))
}

impl RowKind {
    fn word(self) -> &'static str {
        match self {
            Self::Gates => "yao",
            Self::Lift => "lift",
        }
    }

    /// The program.
    pub fn program(self) -> Result<Program, Error> {
        match self {
            Self::Gates => Ok(gates::program()),
            Self::Lift => Ok(lift_study()?.0),
        }
    }
}

/// The program of `bench lift`, and where its columns and totals are.
pub fn lift_study() -> Result<(Program, LiftParameters, LiftLayout), Error> {
    let lift = LiftParameters::bench(LIFT_EVENTS);
    let (program, layout) = lift::build(&lift)?;
    Ok((program, lift, layout))
}

impl RowWork {
    /// On one shard.
    pub fn new(of: RowKind, engine: PairEngine, rows: u64, ots: &OtChoice) -> Result<Self, Error> {
        let ot = ots.kind()?.to_string();
        Ok(Self { of, engine, rows, k: ots.k.unwrap_or(super::names::K), ot, shards: 1 })
    }

    /// The engine of both parties.
    pub fn engine(&self) -> Result<Box<dyn Engine>, Error> {
        Ok(match self.engine {
            PairEngine::Clear => Box::new(Clear),
            PairEngine::Yao => Box::new(Yao::new(self.k)),
            PairEngine::Gmw => Box::new(Gmw::new(self.ot.parse()?)),
        })
    }

    /// The rows of a shard, of one party or of both.
    pub fn rows(&self, party: Option<PartyId>, shard: u32) -> Result<Box<dyn ShardRows>, Error> {
        Ok(match self.of {
            RowKind::Gates => {
                Box::new(gates::PartyWords { rows: self.rows, shard: (shard.into(), self.shards.into()) })
            }
            RowKind::Lift => {
                let (_, lift, layout) = lift_study()?;
                Box::new(BenchRows::new(&lift, &layout, party, self.rows, SEED).shard(shard, self.shards))
            }
        })
    }

    fn correct(&self, parties: &[PartyMeasurement]) -> Result<bool, Error> {
        match self.of {
            RowKind::Gates => {
                let truth = [u128::from(gates::truth(self.rows))];
                Ok(totals(&gates::program(), parties).is_some_and(|totals| totals == truth))
            }
            RowKind::Lift => lift_correct(self.rows, parties),
        }
    }

    /// A summary with what is known of the engine.
    fn told(&self, summary: PairSummary) -> Result<PairSummary, Error> {
        let (program, by_gmw) = (self.of.program()?, self.engine == PairEngine::Gmw);
        let by_ot = by_gmw.then(|| SumRows::new(&program, RowSource::Owned, self.ot.parse()?, sums::LANES));
        let by_ot = by_ot.transpose()?;
        let gates = match (&by_ot, self.of) {
            (Some(stage), _) => stage.price(self.rows).and_gates,
            (None, RowKind::Gates) => gates::GATES * self.rows,
            (None, RowKind::Lift) => {
                let garbler = Yao::new(self.k).garbler(&program);
                lower_row(&program, garbler).circuit.and_gates() as u64 * self.rows
            }
        };
        Ok(PairSummary {
            engine: Some(self.engine),
            shards: self.shards,
            k: self.k,
            ot: by_gmw.then(|| self.ot.clone()),
            and_per_s: gates as f64 / summary.seconds,
            cots_per_row: by_ot.map(|stage| stage.cots_per_row() as f64),
            ..summary
        })
    }
}

/// The totals, put together from the parties' shares.
fn totals(program: &Program, parties: &[PartyMeasurement]) -> Option<Vec<u128>> {
    let mut shares = Vec::new();
    for party in parties {
        let PartyResult::Shares(parts) = &party.found else { return None };
        shares.push(parts);
    }
    let number = |text: &str| u128::from_str_radix(text, 16).ok();
    let total = |(index, fold): (usize, &RowFold)| {
        let (mut total, mut summands) = (0u128, None);
        for parts in &shares {
            match parts.get(index)? {
                TotalShare::Additive(text) => total = total.wrapping_add(number(text)?),
                TotalShare::Known(text) => return number(text),
                // Every summand is held by three: it counts once.
                TotalShare::Replicated(held) => {
                    let all = summands.get_or_insert([const { None }; engine::SERVERS]);
                    all.iter_mut().zip(held).for_each(|(one, held)| *one = one.or(held.as_ref()));
                }
                TotalShare::Absent => {}
            }
        }
        for summand in summands.into_iter().flatten() {
            total = total.wrapping_add(number(summand?)?);
        }
        Some(total & fold.ty().mask())
    };
    program.folds.iter().enumerate().map(total).collect()
}

/// Whether the parties' shares are those of the true totals of `bench lift`.
pub fn lift_correct(rows: u64, parties: &[PartyMeasurement]) -> Result<bool, Error> {
    let (program, lift, layout) = lift_study()?;
    let Some(totals) = totals(&program, parties) else { return Ok(false) };
    let truth = bench_truth(&lift, rows, SEED);
    let known = |arm, quantity| truth.get(LiftCell::Overall, arm, quantity);
    let of = |arm, quantity| {
        let fold = layout.fold(LiftCell::Overall, arm, quantity)?;
        totals.get(fold as usize).copied()
    };
    Ok(TrialArm::BOTH.iter().all(|&arm| Quantity::CORE.iter().all(|&q| of(arm, q) == Some(known(arm, q)))))
}
