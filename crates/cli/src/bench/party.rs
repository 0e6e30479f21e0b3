//! One party of a measurement, in a process of its own: `tacit bench-party TASK`.

use super::{PARTIES, SEED, engines, gates, matches, ring4, spine};
use crate::args::{BenchParty, EngineName, What};
use crate::progress::{Board, Line};
use crate::{machine, output};
use base::{Error, PartyId, Roster, Seed};
use engine::{Clear, Engine, Share, Shares};
use job::usage;
use net::{Endpoint, Fingerprint, Identity, Ledger, Meet, Meeting, Progress, Session, Status, Transport};
use program::Program;
use program::Rows;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use studies::lift::{self, BenchRows, Layout, Lift};
use yao::Yao;

/// A task, by kind of measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Job {
    /// One of two parties, or both.
    Two(Box<Task>),
    /// One of four that multiply.
    Ring4(Box<ring4::Task>),
    /// One of four that run a study.
    Servers(Box<engines::Task>),
}

/// What one party is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub what: What,
    pub engine: EngineName,
    pub rows: u64,
    pub k: u32,
    /// Of the gmw engine.
    pub ot: String,
    pub shards: u32,
    /// Of a match.
    pub matching: matches::Setting,
    /// Which party, 0 or 1.
    pub party: u8,
    /// The peer's address; absent: listen, and say where.
    pub peer: Option<String>,
    /// Absent: plain TCP.
    pub tls: Option<Keys>,
    /// The core to stay on.
    pub core: Option<usize>,
}

impl Task {
    /// The same, with joined shares left in a folder.
    pub fn keeping(mut self, folder: &Path) -> Self {
        self.matching.folder = Some(folder.to_owned());
        self
    }
}

/// Keys of a measurement over TLS.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Keys {
    pub identity: PathBuf,
    pub fingerprints: Vec<String>,
}

impl Keys {
    /// TLS under them.
    pub fn transport(&self) -> Result<Transport, Error> {
        let parse = |text: &String| text.parse::<Fingerprint>();
        let keys = self.fingerprints.iter().map(parse).collect::<Result<_, Error>>()?;
        Ok(Transport::Tls { identity: Arc::new(Identity::load(&self.identity)?), keys })
    }
}

/// What all parties of a measurement agree on.
pub fn agreement() -> [u8; 32] {
    *Seed::from_bytes([0; 32]).fork("tacit bench").expose()
}

/// What one party measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// From the first connection to the last byte. At the party that connects this holds no waiting for a process.
    pub seconds: f64,
    /// Of these, until everybody had met.
    pub meeting_seconds: f64,
    pub bytes_sent: u64,
    pub peak_memory_bytes: u64,
    pub cpu_seconds: f64,
    pub found: Found,
}

/// What a party can say of the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Found {
    /// Its shares of the totals.
    Shares(Vec<Part>),
    /// Its rows in the spine.
    Spine(spine::Digest),
    /// Its shares of a join, in a file.
    Joined(PathBuf),
}

/// A share of a total, in hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Part {
    Additive(String),
    Known(String),
    /// Summands by number, all but this server's own.
    Replicated([Option<String>; engine::SERVERS]),
    Absent,
}

/// Does the task and prints what was measured.
///
/// # Errors
/// Those of the network and of the protocol.
pub fn run(args: &BenchParty) -> Result<(), Error> {
    let job: Job = serde_json::from_str(&args.task)
        .map_err(|e| Error::input(format!("not a task of `tacit bench`: {e}; use `tacit bench`")))?;
    machine::end_with_parent();
    let task = match job {
        Job::Ring4(task) => return output::print_json(&task.run()?),
        Job::Servers(task) => return output::print_json(&task.run()?),
        Job::Two(task) => task,
    };
    if let Some(core) = task.core {
        machine::stay_on(core)?;
    }
    let board = Board::events();
    let measured = match task.engine {
        EngineName::Clear => alone(&task, &board)?,
        EngineName::Yao | EngineName::Gmw | EngineName::Ring4 => together(&task, &board)?,
    };
    output::print_json(&measured)
}

/// The program of an engine's measurement, and its layout.
pub fn program(what: What) -> Result<(Program, Option<(Lift, Layout)>), Error> {
    match what {
        What::Lift => {
            let lift = Lift::bench(super::LIFT_EVENTS);
            let (program, layout) = lift::build(&lift)?;
            Ok((program, Some((lift, layout))))
        }
        What::Yao | What::Match => Ok((gates::program(), None)),
        What::Gmw | What::Ot | What::Market | What::Ring4 | What::Engines => {
            Err(Error::misuse("this measurement has no program of rows"))
        }
    }
}

/// The rows of a shard, of one party or of both.
fn rows(task: &Task, lift: Option<&(Lift, Layout)>, party: Option<PartyId>, shard: u32) -> Box<dyn Rows> {
    match lift {
        Some((lift, layout)) => {
            Box::new(BenchRows::new(lift, layout, party, task.rows, SEED).shard(shard, task.shards))
        }
        None => Box::new(gates::Words { rows: task.rows, shard: (shard.into(), task.shards.into()) }),
    }
}

/// The clear engine: both roles at once.
fn alone(task: &Task, board: &Board) -> Result<Measured, Error> {
    let (program, lift) = program(task.what)?;
    let start = Instant::now();
    let mut session =
        Session::alone(Roster::new(PARTIES), Seed::from_system()).with_progress(board.reporter());
    let mut total: Option<Shares> = None;
    for shard in 0..task.shards {
        let mut rows = rows(task, lift.as_ref(), None, shard);
        let shares = session.step("compute", |s| Clear.rows(&program, &mut *rows, s))?;
        add(&program, &mut total, shares)?;
    }
    Ok(measured(start, 0, Found::Shares(parts(&total.expect("at least one shard")))))
}

pub fn measured(start: Instant, bytes_sent: u64, found: Found) -> Measured {
    Measured {
        seconds: start.elapsed().as_secs_f64(),
        meeting_seconds: 0.0,
        bytes_sent,
        peak_memory_bytes: usage::peak_memory_bytes(),
        cpu_seconds: usage::cpu_seconds(),
        found,
    }
}

fn add(program: &Program, total: &mut Option<Shares>, shares: Shares) -> Result<(), Error> {
    match total {
        Some(total) => total.add(program, &shares),
        None => {
            *total = Some(shares);
            Ok(())
        }
    }
}

pub fn parts(shares: &Shares) -> Vec<Part> {
    let part = |share: &Share| match share {
        Share::Additive(value) => Part::Additive(format!("{value:x}")),
        Share::Known(value) => Part::Known(format!("{value:x}")),
        Share::Replicated(held) => {
            Part::Replicated(held.map(|value| value.map(|value| format!("{value:x}"))))
        }
        // The benches run sums.
        Share::Absent | Share::Boolean(_) | Share::Rows(_) | Share::ReplicatedRows(_) => Part::Absent,
    };
    shares.folds().iter().map(part).collect()
}

/// One of two parties.
fn together(task: &Task, board: &Board) -> Result<Measured, Error> {
    let (me, roster) = (PartyId(task.party), Roster::new(PARTIES));
    let lanes = if task.what == What::Match { 0 } else { task.shards };
    let meet = meet(task, me, &roster, board)?;
    let start = Instant::now();
    let Meeting { control, workers, .. } = meet.meet(lanes)?;
    let meeting_seconds = start.elapsed().as_secs_f64();
    let session = |channels| Session::new(me, roster.clone(), channels, Seed::from_system());
    let mut session_of_control = session(control).with_progress(board.reporter());
    let mut ledger = Ledger::default();
    let found = match task.what {
        What::Match => Done::Match(session_of_control.step("match", |s| task.matching.run(task.party, s))?),
        What::Yao | What::Lift | What::Gmw | What::Ot | What::Market | What::Ring4 | What::Engines => {
            let sessions: Vec<Session> = workers.into_iter().map(session).collect();
            Done::Totals(compute(task, me, sessions, &board.reporter(), &mut ledger)?)
        }
    };
    // Both are done before either stops its clock.
    session_of_control.step("done", |s| s.link(me.other()).exchange(&[1], &mut [0]))?;
    session_of_control.finish()?;
    ledger.merge(session_of_control.ledger());
    // Memory and time are taken before the digest, which is no part of the protocol.
    let mut measured = measured(start, ledger.sent(""), Found::Shares(Vec::new()));
    measured.meeting_seconds = meeting_seconds;
    measured.found = match found {
        Done::Totals(shares) => Found::Shares(parts(&shares)),
        Done::Match(matched) => task.matching.found(task.party, &matched)?,
    };
    Ok(measured)
}

enum Done {
    Totals(Shares),
    Match(matches::Matched),
}

fn engine(task: &Task) -> Result<Box<dyn Engine>, Error> {
    Ok(match task.engine {
        EngineName::Clear => Box::new(Clear),
        EngineName::Yao => Box::new(Yao::new(task.k)),
        EngineName::Gmw => Box::new(gmw::Gmw::new(task.ot.parse()?)),
        EngineName::Ring4 => return Err(Error::misuse("four servers are no two parties")),
    })
}

/// Row and combine on every shard, each on a thread and a connection of its own.
fn compute(
    task: &Task,
    me: PartyId,
    sessions: Vec<Session>,
    progress: &Progress,
    ledger: &mut Ledger,
) -> Result<Shares, Error> {
    let (program, lift) = program(task.what)?;
    let work = |index: usize, session: Session| -> Result<(Shares, Ledger), Error> {
        let mut session = session.with_progress(progress.clone());
        let mut rows = rows(task, lift.as_ref(), Some(me), index as u32);
        let step = format!("compute/{index}");
        let mut engine = engine(task)?;
        let shares = session.step(&step, |s| engine.rows(&program, &mut *rows, s))?;
        session.finish()?;
        Ok((shares, session.ledger().clone()))
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let work = &work;
        let start = |(index, session)| scope.spawn(move || work(index, session));
        let threads: Vec<_> = sessions.into_iter().enumerate().map(start).collect();
        let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
            t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    let mut total = None;
    for worker in done {
        let (shares, said) = worker?;
        ledger.merge(&said);
        add(&program, &mut total, shares)?;
    }
    total.ok_or_else(|| Error::misuse("a measurement has at least one shard"))
}

fn meet(task: &Task, me: PartyId, roster: &Roster, board: &Board) -> Result<Meet, Error> {
    let endpoint = match &task.peer {
        Some(address) => Endpoint::Dial(address.clone()),
        None => Endpoint::Listen("127.0.0.1:0".to_owned()),
    };
    let transport = match &task.tls {
        None => Transport::Tcp,
        Some(keys) => keys.transport()?,
    };
    let board = board.clone();
    let watch = move |status: &Status| {
        let text = match status {
            Status::Listening { at, .. } => at.to_string(),
            other => other.to_string(),
        };
        board.show(&Line::Waiting { text });
    };
    Ok(Meet::new(me, roster.clone(), endpoint, transport, agreement())
        .patience(Duration::from_secs(60))
        .watch(watch))
}
