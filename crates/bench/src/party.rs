//! One party of a measurement, in a process of its own: `tacit bench party TASK`.

use super::rows::{PairEngine, RowWork};
use super::{PARTIES, engines, matches, ring4, spine};
use base::{Error, PartyId, Roster, Seed};
use clap::Args;
use engine::{Clear, RowInput, RowSource, Share, Shares, run_rows};
use job::usage;
use net::{
    ChannelSecurity, Identity, KeyFingerprint, Meet, Meeting, Rendezvous, RowProgress, Session, Status,
    Traffic,
};
use program::Program;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::progress::{Board, ProgressLine};
use terminal::{machine, output};

/// One party of a measurement: what `tacit bench` starts.
#[derive(Debug, Args)]
pub struct PartyArgs {
    /// What to do, as JSON
    task: String,
}

/// A task, by kind of measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartyJob {
    /// One of two parties, or both.
    Two(Box<PartyTask>),
    /// One of four that multiply.
    Ring4(Box<ring4::SeatTask>),
    /// One of four that run a study.
    Servers(Box<engines::EngineTask>),
}

/// What one party is to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartyTask {
    pub work: Work,
    /// Which party, 0 or 1.
    pub party: u8,
    /// The peer's address; absent: listen, and say where.
    pub peer: Option<String>,
    /// Absent: plain TCP.
    pub tls: Option<TlsKeys>,
    /// The core to stay on.
    pub core: Option<usize>,
}

/// What two parties do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Work {
    /// Rows under an engine.
    Rows(RowWork),
    /// A match.
    Match(matches::MatchSetting),
}

/// Keys of a measurement over TLS.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TlsKeys {
    pub identity: PathBuf,
    pub fingerprints: Vec<String>,
}

impl TlsKeys {
    /// TLS under them.
    pub fn transport(&self) -> Result<ChannelSecurity, Error> {
        let parse = |text: &String| text.parse::<KeyFingerprint>();
        let keys = self.fingerprints.iter().map(parse).collect::<Result<_, Error>>()?;
        Ok(ChannelSecurity::Tls { identity: Arc::new(Identity::load(&self.identity)?), keys })
    }
}

/// What all parties of a measurement agree on.
pub fn agreement() -> [u8; 32] {
    *Seed::from_bytes([0; 32]).fork("tacit bench").expose()
}

/// What one party measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartyMeasurement {
    /// From the first connection to the last byte. At the party that connects this holds no waiting for a
    /// process.
    pub seconds: f64,
    /// Of these, until everybody had met.
    pub meeting_seconds: f64,
    pub bytes_sent: u64,
    pub peak_memory_bytes: u64,
    pub cpu_seconds: f64,
    pub found: PartyResult,
}

/// What a party can say of the result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PartyResult {
    /// Its shares of the totals.
    Shares(Vec<TotalShare>),
    /// Its rows in the spine.
    Spine(spine::Digest),
    /// Its shares of a join, in a file.
    Joined(PathBuf),
}

/// A share of a total, in hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum TotalShare {
    Additive(String),
    Known(String),
    /// Summands by number, all but this server's own.
    Replicated([Option<String>; engine::SERVERS]),
    Absent,
}

impl PartyArgs {
    /// Does the task and prints what was measured.
    pub fn run(&self) -> Result<(), Error> {
        let job: PartyJob = serde_json::from_str(&self.task)
            .map_err(|e| Error::input(format!("not a task of `tacit bench`: {e}; use `tacit bench`")))?;
        machine::end_with_parent();
        let task = match job {
            PartyJob::Ring4(task) => return output::print_json(&task.run()?),
            PartyJob::Servers(task) => return output::print_json(&task.run()?),
            PartyJob::Two(task) => task,
        };
        if let Some(core) = task.core {
            machine::stay_on(core)?;
        }
        let board = Board::events();
        let steps = board.clone();
        let progress = RowProgress::new(move |step, done, total| steps.progress(step, done, total));
        output::print_json(&match &task.work {
            Work::Rows(work) if work.engine == PairEngine::Clear => alone(work, progress)?,
            Work::Rows(_) | Work::Match(_) => together(&task, &board, &progress)?,
        })
    }
}

/// The clear engine: both roles at once.
fn alone(work: &RowWork, progress: RowProgress) -> Result<PartyMeasurement, Error> {
    let program = work.of.program()?;
    let start = Instant::now();
    let mut session = Session::alone(Roster::new(PARTIES), Seed::from_system()).with_progress(progress);
    let mut total: Option<Shares> = None;
    for shard in 0..work.shards {
        let mut rows = work.rows(None, shard)?;
        let shares = session.step("compute", |s| run_rows(&Clear, &program, &mut *rows, s))?;
        add(&program, &mut total, shares)?;
    }
    Ok(measured(start, 0, PartyResult::Shares(parts(&total.expect("at least one shard")))))
}

/// What this process used since `start`.
pub fn measured(start: Instant, bytes_sent: u64, found: PartyResult) -> PartyMeasurement {
    PartyMeasurement {
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

pub fn parts(shares: &Shares) -> Vec<TotalShare> {
    let part = |share: &Share| match share {
        Share::Additive(value) => TotalShare::Additive(format!("{value:x}")),
        Share::Known(value) => TotalShare::Known(format!("{value:x}")),
        Share::Replicated(held) => {
            TotalShare::Replicated(held.map(|value| value.map(|value| format!("{value:x}"))))
        }
        // The benches run sums.
        Share::Absent | Share::Boolean(_) | Share::Rows(_) | Share::ReplicatedRows(_) => TotalShare::Absent,
    };
    shares.folds().iter().map(part).collect()
}

/// One of two parties.
fn together(task: &PartyTask, board: &Board, progress: &RowProgress) -> Result<PartyMeasurement, Error> {
    let (me, roster) = (PartyId(task.party), Roster::new(PARTIES));
    let lanes = match &task.work {
        Work::Rows(work) => work.shards,
        Work::Match(_) => 0,
    };
    let meet = meet(task, me, &roster, board)?;
    let start = Instant::now();
    let Meeting { control, workers, .. } = meet.meet(lanes)?;
    let meeting_seconds = start.elapsed().as_secs_f64();
    let session = |channels| {
        Session::new(me, roster.clone(), channels, Seed::from_system()).with_progress(progress.clone())
    };
    let mut control = session(control);
    let mut ledger = Traffic::default();
    let done = match &task.work {
        Work::Match(setting) => {
            Done::Match(setting, Box::new(control.step("match", |s| setting.run(task.party, s))?))
        }
        Work::Rows(work) => {
            let sessions = workers.into_iter().map(session).collect();
            Done::Totals(compute(work, me, sessions, &mut ledger)?)
        }
    };
    // Both are done before either stops its clock.
    control.step("done", |s| s.link(me.other()).exchange(&[1], &mut [0]))?;
    control.finish()?;
    ledger.merge(control.traffic());
    // Memory and time are taken before the digest, which is no part of the protocol.
    let measured = measured(start, ledger.sent(""), PartyResult::Shares(Vec::new()));
    let found = match done {
        Done::Totals(shares) => PartyResult::Shares(parts(&shares)),
        Done::Match(setting, matched) => setting.found(task.party, &matched)?,
    };
    Ok(PartyMeasurement { meeting_seconds, found, ..measured })
}

enum Done<'a> {
    Totals(Shares),
    Match(&'a matches::MatchSetting, Box<matching::MatchOutput>),
}

/// Row and combine on every shard, each on a thread and a connection of its own.
fn compute(
    work: &RowWork,
    me: PartyId,
    sessions: Vec<Session>,
    ledger: &mut Traffic,
) -> Result<Shares, Error> {
    let program = &work.of.program()?;
    let stage = work.engine()?.rows(program, RowSource::Owned)?;
    let shard = |index: usize, mut session: Session| -> Result<(Shares, Traffic), Error> {
        let mut rows = work.rows(Some(me), index as u32)?;
        let step = format!("compute/{index}");
        let rows = RowInput::Owned(&mut *rows);
        let shares = session.step(&step, |s| stage.run(rows, s))?;
        session.finish()?;
        Ok((shares, session.traffic().clone()))
    };
    let done: Vec<_> = std::thread::scope(|scope| {
        let shard = &shard;
        let start = |(index, session)| scope.spawn(move || shard(index, session));
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
        add(program, &mut total, shares)?;
    }
    total.ok_or_else(|| Error::misuse("a measurement has at least one shard"))
}

fn meet(task: &PartyTask, me: PartyId, roster: &Roster, board: &Board) -> Result<Meet, Error> {
    let endpoint = match &task.peer {
        Some(address) => Rendezvous::Dial(address.clone()),
        None => Rendezvous::Listen("127.0.0.1:0".to_owned()),
    };
    let transport = match &task.tls {
        None => ChannelSecurity::Tcp,
        Some(keys) => keys.transport()?,
    };
    let board = board.clone();
    let watch = move |status: &Status| {
        let text = match status {
            Status::Listening { at, .. } => at.to_string(),
            other => other.to_string(),
        };
        board.show(&ProgressLine::Waiting { text });
    };
    Ok(Meet::new(me, roster.clone(), endpoint, transport, agreement())
        .patience(Duration::from_secs(60))
        .watch(watch))
}
