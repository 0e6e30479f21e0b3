//! `bench market`: the P2P problem of Choi et al. (2012) among a customer and providers, all of them threads
//! of this process, with everything counted: connections, keys or base OTs and triples, the circuit, the
//! answer at the customer. On `ring4` the first four participants compute; where there are fewer parties,
//! servers without data fill up.

use super::four::SEATS;
use super::gmw::{Threads, TravelTime};
use super::names::{OtChoice, SecurityName, TransportName, only, parties};
use super::{SEED, expect, figures, tell};
use ::ring4::{Ring4, Settings};
use accel::DeviceQueue;
use base::{Cost, Error};
use clap::{Args, ValueEnum};
use engine::{Engine, PreparedRelease, PreparedRows, RowInput, RowSource, outputs};
use gmw::Gmw;
use net::{Session, Traffic};
use page::numbers::{bytes, count, duration};
use program::Program;
use program::lower::combine::SelectionCircuit;
use program::lower::{Lowering, ReleasePlan, TotalsForm, lower_release};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use studies::market::{CUSTOMER, MarketAnswer, MarketSample, Problem, program};
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// The problem that the paper measures.
const PROBLEM: Problem = Problem::P2p;

/// Measures the best of many resources.
#[derive(Clone, Debug, Args)]
pub struct MarketArgs {
    /// Resources of all providers together
    #[arg(long, value_name = "K", default_value_t = 1000,
          value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub resources: u64,
    /// Parties
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parties)]
    pub parties: usize,
    /// The circuit; paper (gate by gate the published one), small (fewest gates), shallow (for long round
    /// trips)
    #[arg(long, value_name = "NAME", default_value = "small", value_parser = shape)]
    pub circuit: SelectionCircuit,
    /// Measure figures 3 to 5 of the paper again, for some minutes, and write them as a page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resources", "parties", "circuit", "delay_ms"])]
    pub figures: Option<PathBuf>,
    /// The engine
    #[arg(long, default_value = "gmw")]
    pub engine: MarketEngine,
    /// What a corrupted party may do, on ring4; malicious unless told otherwise
    #[arg(long, value_name = "MODEL")]
    pub security: Option<SecurityName>,
    #[command(flatten)]
    pub ots: OtChoice,
    /// How bytes travel; tcp unless told otherwise, on ring4 tls
    #[arg(long, value_name = "NAME", value_parser = only(&TransportName::THREADS))]
    pub transport: Option<TransportName>,
    #[command(flatten)]
    pub delay: TravelTime,
}

/// An engine among many parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MarketEngine {
    /// Boolean circuits among all of them.
    Gmw,
    /// Four servers.
    Ring4,
}

/// The JSON of `tacit bench market --json`.
#[derive(Clone, Debug, Serialize)]
pub struct MarketSummary {
    what: &'static str,
    pub resources: u64,
    pub parties: usize,
    pub circuit: String,
    engine: &'static str,
    /// `ring4` only.
    pub security: Option<SecurityName>,
    transport: String,
    /// What makes the OTs; `gmw` only.
    ot: Option<String>,
    /// Delay of the network: there and back.
    pub round_trip_ms: u64,
    /// From the first connection to the customer's answer.
    pub seconds: f64,
    pub and_gates: u64,
    /// AND gates one after the other; `gmw` only.
    pub depth: Option<u64>,
    /// Turns of the busiest party with one peer.
    pub rounds: u64,
    /// Application bytes of all parties.
    pub bytes: u64,
    /// Whether the customer learned the true answer, and the bytes and gates were those of the price.
    pub correct: bool,
}

/// What one party found.
struct Done {
    answer: Option<MarketAnswer>,
    ledger: Traffic,
}

impl MarketArgs {
    /// Measures and prints, one setting or all of the figures.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        self.check()?;
        if let Some(file) = &self.figures {
            return expect(figures::run(self, file, json)?);
        }
        let working = Working::on("computing");
        let summary = self.measure()?;
        drop(working);
        tell(&summary, json, text)?;
        expect(summary.correct)
    }

    /// Refuses a flag that does nothing for the engine.
    fn check(&self) -> Result<(), Error> {
        match self.engine {
            MarketEngine::Gmw if self.security.is_some() => {
                Err(Error::input("--security goes with --engine ring4; remove --security"))
            }
            MarketEngine::Gmw => Ok(()),
            MarketEngine::Ring4 => match (self.transport, self.ots.given()) {
                (Some(TransportName::Tcp), _) => Err(Error::input(
                    "ring4 enters rows over private channels only; use --transport tls or memory",
                )),
                (_, Some(flag)) => Err(Error::input(format!("ring4 makes no OTs; remove {flag}"))),
                _ => Ok(()),
            },
        }
    }

    /// Measures one setting.
    pub fn measure(&self) -> Result<MarketSummary, Error> {
        let (kind, shape) = (self.ots.kind()?, self.circuit);
        let names =
            (0..self.parties).map(|p| if p == 0 { "customer".into() } else { format!("provider-{p}") });
        let sample = MarketSample::new(PROBLEM, program(PROBLEM, names, shape), self.resources, SEED);
        let security = self.security.unwrap_or(SecurityName::Malicious);
        let ring4 = || {
            let settings = Settings { security: security.model(), ..Settings::default() };
            Ring4::new(settings, SEATS, || Ok(DeviceQueue::default())).with_shape(shape)
        };
        let gmw = Gmw::new(kind).with_shape(shape);
        let on_servers = self.engine == MarketEngine::Ring4;
        let engine: Box<dyn Engine> = if on_servers { Box::new(ring4()) } else { Box::new(gmw) };
        let rows = engine.rows(sample.program(), RowSource::Owned)?;
        let release = engine.release(&Arc::new(plan(sample.program(), engine.totals())?))?;
        let participants = if on_servers { self.parties.max(SEATS.len()) } else { self.parties };
        let usual = if on_servers { TransportName::Tls } else { TransportName::Tcp };
        let transport = self.transport.unwrap_or(usual);
        let threads = Threads { parties: participants, transport, delay: self.delay };
        let start = Instant::now();
        let done = threads.run(|session| party(&*rows, &*release, &sample, session))?;
        let seconds = start.elapsed().as_secs_f64();
        let of_rows = rows.price(self.resources);
        let price = of_rows.cost + outputs::price_exact(&*release);
        let and_gates = if on_servers { of_rows.and_gates } else { price.and_gates };
        let priced = as_priced(&done, &price) && (on_servers || as_gated(&done, &price));
        let correct = done[CUSTOMER.index()].answer.as_ref() == Some(&sample.truth()?) && priced;
        let depth = (!on_servers).then(|| {
            let rows = gmw.prepare(sample.program(), RowSource::Owned)?.depth(self.resources);
            Ok::<_, Error>(rows + release.plan().circuit.and_depth() as u64)
        });
        let pairs = done.iter().flat_map(|d| (0..participants).map(|peer| turns(&d.ledger, peer)));
        Ok(MarketSummary {
            what: "market",
            resources: self.resources,
            parties: self.parties,
            circuit: shape.to_string(),
            engine: if on_servers { "ring4" } else { "gmw" },
            security: on_servers.then_some(security),
            transport: transport.word(),
            ot: (!on_servers).then(|| kind.to_string()),
            round_trip_ms: 2 * self.delay.delay_ms,
            seconds,
            and_gates,
            depth: depth.transpose()?,
            rounds: pairs.max().unwrap_or(0),
            bytes: done.iter().map(|d| d.ledger.sent("")).sum(),
            correct,
        })
    }
}

/// Reads the name of a circuit.
fn shape(text: &str) -> Result<SelectionCircuit, String> {
    text.parse().map_err(|e: Error| e.to_string())
}

fn plan(program: &Program, totals: TotalsForm) -> Result<ReleasePlan, Error> {
    let owners = program.fold_owners();
    lower_release(program, CUSTOMER.into(), &Lowering { totals, ..Lowering::exact(&owners) })
}

fn party(
    rows: &dyn PreparedRows,
    release: &dyn PreparedRelease,
    sample: &MarketSample,
    session: &mut Session,
) -> Result<Done, Error> {
    let me = session.me();
    let shares = rows.run(RowInput::Owned(&mut sample.part(Some(me))), session)?;
    let values = outputs::exact(release, &shares, session)?.unwrap_or_default();
    session.finish()?;
    let answer = match values[..] {
        [row, score] => Some(MarketAnswer::Best((score != 0).then_some((row as u64, score)))),
        [row, score, found] => Some(MarketAnswer::Best((found == 1).then_some((row as u64, score)))),
        _ => None,
    };
    Ok(Done { answer, ledger: session.traffic().clone() })
}

/// Turns with one peer.
fn turns(ledger: &Traffic, peer: usize) -> u64 {
    ledger.entries().iter().filter(|e| e.peer.index() == peer).map(|e| e.turns).sum()
}

/// Whether bytes are those of the price.
fn as_priced(done: &[Done], price: &Cost) -> bool {
    done.len() == price.sent.len() && done.iter().zip(&price.sent).all(|(d, sent)| d.ledger.sent("") == *sent)
}

/// Whether gates are those of the price.
fn as_gated(done: &[Done], price: &Cost) -> bool {
    let peers = done.len() as u64 - 1;
    done.iter().all(|d| d.ledger.and_gates("") == peers * price.and_gates)
}

fn text(summary: &MarketSummary) -> String {
    let delay = match summary.round_trip_ms {
        0 => String::new(),
        ms => format!(" with {ms} ms round trips"),
    };
    [
        format!(
            "best of {} resources among {} parties over {}{delay}: {}",
            count(summary.resources),
            summary.parties,
            summary.transport,
            duration(summary.seconds)
        ),
        format!(
            "  {} AND gates, {}{} rounds ({} circuit, {})",
            count(summary.and_gates),
            summary.depth.map_or_else(String::new, |depth| format!("depth {depth}, ")),
            summary.rounds,
            summary.circuit,
            how(summary)
        ),
        format!("  {} between all parties", bytes(summary.bytes)),
        format!("  result {}", if summary.correct { "correct, cost as priced" } else { "WRONG" }),
    ]
    .join("\n")
}

/// The engine with its setting.
fn how(summary: &MarketSummary) -> String {
    let setting = summary.ot.clone().or(summary.security.map(|model| model.word()));
    format!("{}, {}", summary.engine, setting.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_of_a_best_row_has_no_gates() {
        for shape in SelectionCircuit::ALL {
            let program = program(PROBLEM, ["customer", "a", "b"], shape);
            let plan = plan(&program, TotalsForm::Split).unwrap();
            assert_eq!(plan.circuit.and_gates(), 0);
        }
    }
}
