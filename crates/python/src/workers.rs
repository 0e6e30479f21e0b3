//! Workers of a run from Python: processes of this machine, or those that a launcher of the package starts.
//!
//! A launcher is asked by Rust and answers from Python, and no object of Python is on a thread of Rust: what
//! is asked waits here until a thread of Python takes it.

use crate::errors::raised;
use job::workers::{CallAnswer, CalledWorker, WorkerCall, WorkerCommand, WorkerLauncher, WorkerPlace};
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Where a run has its workers.
#[derive(FromPyObject)]
pub(crate) enum GivenWorkers {
    /// A launcher's.
    Launched(Py<LauncherHandle>),
    /// Processes that this starts: a program and its arguments.
    Command(Vec<String>),
}

impl GivenWorkers {
    pub(crate) fn place(workers: Option<Self>) -> WorkerPlace {
        match workers {
            None => WorkerPlace::Threads,
            Some(Self::Launched(launcher)) => WorkerPlace::Launched(launcher.get().0.clone()),
            Some(Self::Command(words)) => match words.split_first() {
                None => WorkerPlace::Threads,
                Some((program, arguments)) => WorkerPlace::Processes(WorkerCommand {
                    program: PathBuf::from(program),
                    arguments: arguments.to_vec(),
                }),
            },
        }
    }
}

/// What a launcher is asked.
enum LauncherAsk {
    Start { number: u64, call: WorkerCall },
    Stop { number: u64 },
}

/// What is asked, and what waits for an answer.
struct LauncherDesk {
    door: (String, u16),
    cores: usize,
    ask: Mutex<(u64, Sender<LauncherAsk>)>,
    asked: Mutex<Receiver<LauncherAsk>>,
    answers: Mutex<HashMap<u64, CallAnswer>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WorkerLauncher for LauncherDesk {
    fn door(&self) -> (String, u16) {
        self.door.clone()
    }

    fn cores(&self) -> usize {
        self.cores
    }

    fn start(&self, call: WorkerCall) -> u64 {
        let mut ask = lock(&self.ask);
        ask.0 += 1;
        let number = ask.0;
        lock(&self.answers).insert(number, call.answer.clone());
        // Whoever asks has the other end, too.
        let _ = ask.1.send(LauncherAsk::Start { number, call });
        number
    }

    fn stop(&self, number: u64) {
        lock(&self.answers).remove(&number);
        let _ = lock(&self.ask).1.send(LauncherAsk::Stop { number });
    }
}

/// What the package's launcher is asked, for a thread of Python that carries it out.
#[pyclass(frozen, module = "tacit._tacit", name = "Launcher")]
pub(crate) struct LauncherHandle(Arc<LauncherDesk>);

/// A number, what to tell the worker (none: it is to be stopped), its lane and which start of it.
type Asked = (u64, Option<String>, u16, u32);

#[pymethods]
impl LauncherHandle {
    /// Workers reach this process at `host`; `port` is opened there, or any where it is 0. A worker has so
    /// many cores.
    #[new]
    fn new(host: String, port: u16, cores: usize) -> Self {
        let (sender, asked) = channel();
        Self(Arc::new(LauncherDesk {
            door: (host, port),
            cores,
            ask: Mutex::new((0, sender)),
            asked: Mutex::new(asked),
            answers: Mutex::default(),
        }))
    }

    /// What is asked next, within so many seconds.
    fn next(&self, py: Python<'_>, seconds: f64) -> Option<Asked> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let asked = py.detach(|| lock(&self.0.asked).recv_timeout(wait)).ok()?;
        Some(match asked {
            LauncherAsk::Start { number, call } => (number, Some(call.summons), call.lane, call.start),
            LauncherAsk::Stop { number } => (number, None, 0, 0),
        })
    }

    /// A worker is there, has the key of this fingerprint, and peers' workers reach it at this host.
    fn has_key(&self, py: Python<'_>, number: u64, fingerprint: &str, host: &str) -> PyResult<()> {
        let answer = lock(&self.0.answers).get(&number).cloned();
        let done = answer.map_or(Ok(()), |answer| answer.has_key(fingerprint, host));
        done.map_err(|e| raised(py, &e))
    }

    /// A worker does not come, or is no more.
    fn is_gone(&self, number: u64, why: String) {
        if let Some(answer) = lock(&self.0.answers).remove(&number) {
            answer.is_gone(why);
        }
    }
}

/// A worker that a launcher has started, in this process.
#[pyclass(frozen, module = "tacit._tacit", name = "Worker")]
pub(crate) struct WorkerHandle(CalledWorker);

#[pymethods]
impl WorkerHandle {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        CalledWorker::new().map(Self).map_err(|e| raised(py, &e))
    }

    /// The fingerprint of its key.
    #[getter]
    fn key(&self) -> String {
        self.0.key()
    }

    /// Does what the coordinator says that the summons names, until it ends.
    fn work(&self, py: Python<'_>, summons: &str) -> PyResult<()> {
        py.detach(|| self.0.work(summons)).map_err(|e| raised(py, &e))
    }

    /// Ends it.
    fn stop(&self) {
        self.0.stop();
    }
}

/// A worker process of a run of this machine, until the run ends. Only `tacit/_worker.py` calls it.
#[pyfunction]
pub(crate) fn run_worker(py: Python<'_>) -> PyResult<()> {
    terminal::machine::end_with_parent();
    py.detach(job::workers::run_worker).map_err(|e| PySystemExit::new_err(e.to_string()))
}
