//! `tacit circuit run`: all parties are threads of this process, or with a configuration file one of several
//! hosts ([`super::hosts`]).

use super::args::{CircuitRun, EngineName};
use super::{hosts, inputs};
use base::{Error, Fault, PartyId, Roster, Seed};
use circuits::files::values;
use circuits::{Viewers, Wired};
use engine::{CircuitEngine, Clear};
use net::{Channels, Session, Traffic};
use ot::OtKind;
use page::numbers::{bytes, counted};
use serde::Serialize;
use std::time::{Duration, Instant};
use terminal::output;
use yao::Yao;

/// How long one party waits for another.
const PATIENCE: Duration = Duration::from_secs(600);

/// The JSON of `tacit circuit run --json`.
#[derive(Serialize)]
pub struct CircuitSummary {
    engine: &'static str,
    parties: usize,
    /// Among hosts: which party this is, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    party: Option<usize>,
    /// In order, hexadecimal; `null` where nobody learns it, among hosts where this party does not.
    outputs: Vec<Option<String>>,
    /// Who learns each output: parties from 1.
    viewers: Vec<Vec<usize>>,
    and_gates: usize,
    depth: usize,
    /// Application bytes that all parties sent; among hosts, that this party sent.
    bytes: u64,
    rounds: u64,
    seconds: f64,
    /// Where all inputs are here.
    #[serde(skip_serializing_if = "Option::is_none")]
    correct_vs_clear: Option<bool>,
}

/// What one party saw.
pub struct CircuitView {
    outputs: Vec<Option<Vec<bool>>>,
    ledger: Traffic,
}

/// An engine and what the flags say of it.
#[derive(Clone, Copy)]
pub struct EngineOptions {
    pub name: EngineName,
    /// Of the gmw engine.
    pub ot: OtKind,
}

impl EngineOptions {
    /// What the flags say, `default` where they say nothing.
    ///
    /// # Errors
    /// When `--ot` names no OT or the engine is not gmw.
    pub fn of(args: &CircuitRun, default: EngineName) -> Result<Self, Error> {
        let name = args.engine.unwrap_or(default);
        if args.ot.is_some() && name != EngineName::Gmw {
            return Err(Error::input("--ot is for --engine gmw; remove one of them"));
        }
        let ot = args.ot.as_deref().map(str::parse).transpose()?.unwrap_or_default();
        Ok(Self { name, ot })
    }

    fn engine(self) -> Box<dyn CircuitEngine> {
        match self.name {
            EngineName::Clear => Box::new(Clear),
            EngineName::Yao => Box::new(Yao::default()),
            EngineName::Gmw => Box::new(gmw::Gmw::new(self.ot)),
        }
    }
}

/// Runs a circuit and prints its outputs.
///
/// # Errors
/// When the file or the inputs are refused, a party fails, or the result is not that of the clear engine.
pub fn run(args: &CircuitRun, json: bool) -> Result<(), Error> {
    if let Some(config) = &args.config {
        return hosts::run(args, config, json);
    }
    let chosen = EngineOptions::of(args, EngineName::Clear)?;
    let file = args.file.as_deref().ok_or_else(|| Error::misuse("the flags want a file or --config"))?;
    let (wired, format) = super::read(file)?;
    let wired = inputs::deal(wired, format, args.parties, &args.party_of_input)?;
    let values = inputs::values(&wired, &args.inputs)?;
    let start = Instant::now();
    let views = match chosen.name {
        EngineName::Clear => vec![alone(&wired, &values)?],
        _ => together(&wired, &values, chosen)?,
    };
    let seconds = start.elapsed().as_secs_f64();
    let correct = is_correct(chosen.name, &wired, &values, &views);
    let summary = CircuitSummary {
        correct_vs_clear: Some(correct),
        ..CircuitSummary::new(chosen, &wired, &views, seconds)
    };
    summary.print(json)?;
    if correct {
        return Ok(());
    }
    Err(Error::misuse("the result is not that of the clear engine; this must not happen, please report it"))
}

/// One lane.
pub fn packed(value: &[bool]) -> Vec<Vec<u64>> {
    value.iter().map(|bit| vec![u64::from(*bit)]).collect()
}

///
/// # Errors
/// Those of the engine, and of what it sends last.
pub fn evaluate(
    chosen: EngineOptions,
    wired: &Wired,
    inputs: &[Vec<Vec<u64>>],
    session: &mut Session,
) -> Result<CircuitView, Error> {
    let outputs = chosen.engine().circuit(wired)?.run(1, inputs, session)?;
    session.finish()?;
    let bits = |word: Vec<Vec<u64>>| word.iter().map(|lanes| lanes[0] & 1 == 1).collect();
    let outputs = outputs.into_iter().map(|word| word.map(bits)).collect();
    Ok(CircuitView { outputs, ledger: session.traffic().clone() })
}

fn alone(wired: &Wired, values: &[Vec<bool>]) -> Result<CircuitView, Error> {
    let mut session = Session::alone(Roster::new(["all"]), Seed::from_system());
    let inputs: Vec<_> = values.iter().map(|v| packed(v)).collect();
    evaluate(EngineOptions { name: EngineName::Clear, ot: OtKind::default() }, wired, &inputs, &mut session)
}

/// Every party on a thread of its own; views in party order.
fn together(wired: &Wired, values: &[Vec<bool>], chosen: EngineOptions) -> Result<Vec<CircuitView>, Error> {
    if wired.parties < 2 {
        return Err(Error::input(
            "a protocol takes two parties: give --parties 2 or more, or --engine clear",
        ));
    }
    let roster = Roster::new((1..=wired.parties).map(|p| format!("party {p}")));
    let done: Vec<Result<CircuitView, Error>> = std::thread::scope(|scope| {
        let roster = &roster;
        let party = |(me, channels): (PartyId, Channels)| {
            scope.spawn(move || {
                let own = |(word, value): (&circuits::InputWord, &Vec<bool>)| {
                    if word.owner == me { packed(value) } else { Vec::new() }
                };
                let inputs: Vec<_> = wired.inputs.iter().zip(values).map(own).collect();
                let mut session = Session::new(me, roster.clone(), channels, Seed::from_system());
                evaluate(chosen, wired, &inputs, &mut session)
            })
        };
        let threads: Vec<_> = roster.parties().zip(pipes(roster)).map(party).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
            t.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
        };
        threads.into_iter().map(join).collect()
    });
    let (views, mut errors): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    // A broken pipe is what another party's error looks like.
    errors.sort_by_key(|e| matches!(e, Err(e) if matches!(e.kind(), Fault::Channel(_))));
    errors.into_iter().chain(views).collect()
}

/// Pipes between all parties, by party.
fn pipes(roster: &Roster) -> Vec<Channels> {
    let mut ends: Vec<Channels> = roster.parties().map(|_| Vec::new()).collect();
    for (a, b) in roster.parties().flat_map(|b| (0..b.0).map(move |a| (PartyId(a), b))) {
        let (at_a, at_b) = net::pair(PATIENCE);
        ends[a.index()].push((b, at_a));
        ends[b.index()].push((a, at_b));
    }
    ends
}

/// Whether every party saw what it should.
fn is_correct(engine: EngineName, wired: &Wired, values: &[Vec<bool>], views: &[CircuitView]) -> bool {
    let expected = wired.evaluate(values);
    let learns =
        |k: usize, party: usize| engine == EngineName::Clear || wired.outputs[k].to.has(PartyId(party as u8));
    views.iter().enumerate().all(|(party, view)| {
        let wanted = expected.iter().enumerate().map(|(k, bits)| learns(k, party).then_some(bits));
        view.outputs.iter().map(Option::as_ref).eq(wanted)
    })
}

impl CircuitSummary {
    /// What the parties of `views` saw and sent.
    fn new(chosen: EngineOptions, wired: &Wired, views: &[CircuitView], seconds: f64) -> Self {
        let seen = |k: usize| views.iter().find_map(|view| view.outputs[k].as_ref());
        let viewers =
            |to: &Viewers| (0..wired.parties).filter(|p| to.has(PartyId(*p as u8))).map(|p| p + 1).collect();
        let turns = |ledger: &Traffic, peer: usize| {
            let entries = ledger.entries().iter().filter(|e| e.peer.index() == peer);
            entries.map(|e| e.turns).sum::<u64>()
        };
        let rounds = views.iter().flat_map(|v| (0..wired.parties).map(|p| turns(&v.ledger, p))).max();
        Self {
            engine: chosen.engine().name(),
            parties: wired.parties,
            party: None,
            outputs: (0..wired.outputs.len()).map(|k| seen(k).map(|bits| values::format(bits))).collect(),
            viewers: wired.outputs.iter().map(|o| viewers(&o.to)).collect(),
            and_gates: wired.and_gates(),
            depth: wired.depth(),
            bytes: views.iter().map(|v| v.ledger.sent("")).sum(),
            rounds: rounds.unwrap_or(0),
            seconds,
            correct_vs_clear: None,
        }
    }

    /// What one of several hosts saw and sent.
    pub fn of_host(
        me: PartyId,
        chosen: EngineOptions,
        wired: &Wired,
        view: CircuitView,
        seconds: f64,
    ) -> Self {
        Self { party: Some(me.index() + 1), ..Self::new(chosen, wired, &[view], seconds) }
    }

    /// Prints it, as text or as one JSON object.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print(&self, json: bool) -> Result<(), Error> {
        if json { output::print_json(self) } else { output::print(&text(self)) }
    }
}

fn text(summary: &CircuitSummary) -> String {
    let mut lines = Vec::new();
    for (k, (value, viewers)) in summary.outputs.iter().zip(&summary.viewers).enumerate() {
        let who: Vec<String> = viewers.iter().map(ToString::to_string).collect();
        let whom = match viewers.len() {
            0 => "for nobody".to_owned(),
            n if n == summary.parties => "for everyone".to_owned(),
            1 => format!("for party {}", who[0]),
            _ => format!("for parties {}", who.join(", ")),
        };
        lines.push(format!("output {k}  {}  ({whom})", value.as_deref().unwrap_or("-")));
    }
    lines.push(format!(
        "{} among {} parties: {}, depth {}, {}{}, {}, {:.3} s",
        summary.engine,
        summary.parties,
        counted(summary.and_gates as u64, "AND gate"),
        summary.depth,
        bytes(summary.bytes),
        summary.party.map_or_else(String::new, |p| format!(" sent by party {p}")),
        counted(summary.rounds, "round"),
        summary.seconds
    ));
    lines.join("\n")
}
