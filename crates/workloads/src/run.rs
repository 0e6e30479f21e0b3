//! One party of a workload: meets the other one, computes, and says what was found.

use crate::args::{Args, Workload, print};
use crate::binfclayer::Binfclayer;
use crate::ljoin::Ljoin;
use crate::mvmul::Mvmul;
use crate::order::{OrderNetwork, OrderedRecords};
use crate::task::Task;
use base::{Error, PartyId, Roster, Seed};
use net::{ChannelSecurity, Meet, OperatorTerms, Rendezvous, Session, Status};
use osprey::{Memory, Oblivious};
use serde::Serialize;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use yao::wires::{Price, Role, To, WireParty};

/// The parties' names in messages.
const PARTIES: [&str; 2] = ["garbler", "evaluator"];
const TERMS: OperatorTerms = OperatorTerms {
    document: "workload",
    differ: "give both parties the same workload, --size and --no-check",
    key: "nowhere: parties have no keys here",
    keys: "nowhere: parties have no keys here",
    identity: "nowhere: parties have no keys here",
    address: "--peer",
    allow: "nowhere: it takes connections from everywhere",
};
/// How long to wait for the other party: its speculative pass may come first.
const PATIENCE: Duration = Duration::from_secs(600);

/// The line of results.
#[derive(Debug, Serialize)]
struct Outcome {
    workload: Workload,
    size: usize,
    party: u8,
    /// From the end of the inputs to the end of the computation.
    seconds: f64,
    /// Absent with `--no-check`.
    correct: Option<bool>,
    region_bytes: usize,
    and_gates: u64,
    ands_per_s: f64,
    /// CPU of this thread, per AND gate.
    cpu_ns_per_and: f64,
    /// Sent by this party, everything included.
    bytes_sent: u64,
}

/// What a pass of a workload found.
#[derive(Debug, PartialEq)]
pub struct PassResult {
    pub seconds: f64,
    /// CPU seconds of this thread in the same time.
    pub cpu_seconds: f64,
    /// Of the computation alone.
    pub and_gates: u64,
    /// `None` when nothing was revealed to this party.
    pub correct: Option<bool>,
    pub bytes: usize,
    /// Of everything.
    pub price: Price,
}

/// Runs a party, after [`osprey::init`]; whether its result is right.
///
/// # Errors
/// Bad sizes and addresses; those of the network and the protocol.
pub fn run(args: &Args) -> Result<bool, Error> {
    let (Some(workload), Some(me)) = (args.workload, args.party) else {
        return Err(Error::input("say which workload and which party; osprey-boolean --help shows how"));
    };
    let size = workload.size(args.size)?;
    let role = if me == 0 { Role::Garbler } else { Role::Evaluator };
    if osprey::speculating() {
        let found = pass(workload, size, !args.no_check, &Oblivious, &mut WireParty::speculator(role))?;
        debug_assert_eq!(found.correct, None);
        return Ok(true);
    }
    let mut session = meet(args, workload, size, PartyId(me))?;
    let found = session.step(&workload.name(), |session| {
        let mut party = match role {
            Role::Garbler => WireParty::garbler(session)?,
            Role::Evaluator => WireParty::evaluator(session)?,
        };
        pass(workload, size, !args.no_check, &Oblivious, &mut party)
    })?;
    session.finish()?;
    report(workload, size, me, role, &found)?;
    Ok(found.correct.unwrap_or(true))
}

fn report(workload: Workload, size: usize, party: u8, role: Role, found: &PassResult) -> Result<(), Error> {
    let outcome = Outcome {
        workload,
        size,
        party,
        seconds: found.seconds,
        correct: found.correct,
        region_bytes: found.bytes,
        and_gates: found.and_gates,
        ands_per_s: found.and_gates as f64 / found.seconds,
        cpu_ns_per_and: found.cpu_seconds * 1e9 / found.and_gates as f64,
        bytes_sent: found.price.sent(role),
    };
    let line = serde_json::to_string(&outcome);
    print(&(line.map_err(|e| Error::misuse(format!("a result does not serialise: {e}")))? + "\n"))
}

/// A workload from its inputs to its check.
///
/// # Errors
/// Those of the channel.
pub fn pass<M: Memory>(
    workload: Workload,
    size: usize,
    check: bool,
    memory: &M,
    p: &mut WireParty<'_>,
) -> Result<PassResult, Error> {
    let mut task = task(workload, size, memory);
    task.input(p)?;
    // Both are done with the inputs before either starts its clock.
    p.agree()?;
    let before = p.price().and_gates;
    let start = Instant::now();
    osprey::mark("start");
    task.compute(p)?;
    p.flush()?;
    osprey::mark("stop");
    let (seconds, cpu_seconds) = (start.elapsed().as_secs_f64(), thread_seconds());
    let and_gates = p.price().and_gates - before;
    let opened = if check { p.reveal(To::Both, task.results().wires())? } else { None };
    if p.speculates() && check {
        drop(std::hint::black_box(vec![1u8; task.beside()]));
    }
    let correct = opened.map(|results| task.check(&results));
    Ok(PassResult { seconds, cpu_seconds, and_gates, correct, bytes: task.bytes(), price: p.price() })
}

fn task<M: Memory>(workload: Workload, size: usize, memory: &M) -> Box<dyn Task<M>> {
    match workload {
        Workload::Merge => Box::new(OrderedRecords::new(OrderNetwork::Merge, memory, size)),
        Workload::Sort => Box::new(OrderedRecords::new(OrderNetwork::Sort, memory, size)),
        Workload::Ljoin => Box::new(Ljoin::new(memory, size)),
        Workload::Mvmul => Box::new(Mvmul::new(memory, size)),
        Workload::Binfclayer => Box::new(Binfclayer::new(memory, size)),
    }
}

/// CPU seconds of this thread between the two marks, which are the last that were set.
fn thread_seconds() -> f64 {
    let marks = osprey::stats().marks;
    let at = |name: &str| marks.iter().rev().find(|mark| mark.name == name).map_or(0.0, |mark| mark.thread_s);
    at("stop") - at("start")
}

fn meet(args: &Args, workload: Workload, size: usize, me: PartyId) -> Result<Session, Error> {
    let endpoint = match (&args.listen, &args.peer) {
        (Some(at), _) => Rendezvous::Listen(at.clone()),
        (None, Some(at)) => Rendezvous::Dial(at.clone()),
        (None, None) => return Err(Error::input("say where to meet: --listen ADDRESS or --peer ADDRESS")),
    };
    let name = format!("osprey-boolean {} {size} {}", workload.name(), args.no_check);
    let agreement = *Seed::from_bytes([0; 32]).fork(&name).expose();
    let roster = Roster::new(PARTIES);
    // Attempts come every second, and what is said of them stays the same.
    let told = Mutex::new(String::new());
    let watch = move |status: &Status| {
        let text = status.to_string();
        let Ok(mut told) = told.lock() else { return };
        if *told != text {
            let _ = writeln!(std::io::stderr(), "{text}");
            *told = text;
        }
    };
    let meeting = Meet::new(me, roster.clone(), endpoint, ChannelSecurity::Tcp, agreement)
        .terms(TERMS)
        .patience(PATIENCE)
        .watch(watch)
        .meet(0)?;
    Ok(Session::new(me, roster, meeting.control, Seed::from_system()))
}
