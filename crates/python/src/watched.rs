//! Blocking calls: on a thread of their own, while the thread that called hands on what happens, and looks
//! for signals.

use crate::errors::misused;
use job::run::{Event, Watch};
use job::workers::WorkerPlace;
use net::{RowProgress, StopSwitch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often signals are looked at.
const LOOK: Duration = Duration::from_millis(25);
/// How long a run that was stopped is waited for: it ends where it next waits for its peer, and holds nothing
/// of Python's until then.
const PATIENCE: Duration = Duration::from_millis(50);
/// Least time between two reports of rows.
const EVERY: Duration = Duration::from_millis(100);

/// The process that imported this module.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Notes which process has imported this.
pub(crate) fn remember_process() {
    PROCESS.get_or_init(std::process::id);
}

/// Ends a call from another thread.
#[pyclass(frozen, module = "tacit._tacit", name = "Stop")]
#[derive(Default)]
pub(crate) struct StopHandle(pub(crate) StopSwitch);

#[pymethods]
impl StopHandle {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Ends the call that was given this.
    fn stop(&self) {
        self.0.stop();
    }

    /// Whether it was ended.
    #[getter]
    fn stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// What happens in a run, for whoever listens.
#[derive(Clone, Debug, Default)]
struct Happening {
    kind: &'static str,
    text: Option<String>,
    stage: Option<String>,
    rows: Option<u64>,
    total: Option<u64>,
    bytes: Option<u64>,
    seconds: Option<f64>,
    retries: Option<u64>,
}

impl Happening {
    fn text(kind: &'static str, text: String) -> Self {
        Self { kind, text: Some(text), ..Self::default() }
    }

    /// An answer that is complete comes with the result, or with the error.
    fn of(event: Event) -> Option<Self> {
        Some(match event {
            Event::Answer { .. } => return None,
            Event::Waiting(text) => Self::text("waiting", text),
            Event::Connected { peer } => Self::text("connected", peer),
            Event::Settled(text) => Self::text("settled", text),
            Event::Warning(text) => Self::text("warning", text),
            Event::Note(text) => Self::text("note", text),
            Event::Stored => Self { kind: "stored", ..Self::default() },
            Event::Stage { name, rows } => {
                Self { kind: "stage", stage: Some(name), total: Some(rows), ..Self::default() }
            }
            Event::StageDone(stage) => Self {
                kind: "stage-done",
                stage: Some(stage.name),
                rows: Some(stage.rows),
                total: Some(stage.rows),
                bytes: Some(stage.bytes_sent.iter().sum()),
                seconds: Some(stage.seconds),
                ..Self::default()
            },
            Event::Units { done, of, again } => Self {
                kind: "units",
                rows: Some(done),
                total: Some(of),
                retries: Some(again),
                ..Self::default()
            },
        })
    }
}

/// What comes over the queue.
enum Told<T> {
    Happened(Happening),
    Done(std::thread::Result<T>),
}

/// Where a call tells what happens, and hears that it is to end.
#[derive(Clone)]
pub(crate) struct Teller {
    tell: Arc<dyn Fn(Happening) + Send + Sync>,
    stop: StopSwitch,
}

impl Teller {
    /// The watch of a job whose workers run there.
    pub(crate) fn watch(&self, workers: WorkerPlace) -> Watch {
        let (rows, tell) = (self.clone(), self.tell.clone());
        Watch {
            progress: rows.progress(),
            events: Arc::new(move |event| Happening::of(event).into_iter().for_each(|what| tell(what))),
            workers,
            stop: self.stop.clone(),
        }
    }

    /// Rows done, not too often.
    fn progress(self) -> RowProgress {
        let said = Mutex::new(Instant::now());
        RowProgress::new(move |step, done, total| {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if done == total || said.elapsed() >= EVERY {
                *said = Instant::now();
                self.rows(step, done, total);
            }
        })
    }

    /// So many rows of a step are done.
    pub(crate) fn rows(&self, step: &str, done: u64, total: u64) {
        let stage = Some(step.to_owned());
        (self.tell)(Happening {
            kind: "progress",
            stage,
            rows: Some(done),
            total: Some(total),
            ..Happening::default()
        });
    }
}

/// Does a job while the thread that called listens: to the job, for signals, and to whoever stops it.
///
/// # Errors
/// What `listener` raised, or the handler of a signal: `KeyboardInterrupt`. The job is stopped then, and
/// nothing of it is returned. Also in a process that was forked, where threads of the first one are missing.
pub(crate) fn watched<T: Send + 'static>(
    py: Python<'_>,
    (listener, stop): (Option<Py<PyAny>>, Option<&StopHandle>),
    job: impl FnOnce(&Teller) -> T + Send + 'static,
) -> PyResult<T> {
    if PROCESS.get().is_some_and(|own| *own != std::process::id()) {
        return Err(misused(
            py,
            "this process was forked after tacit was imported, and threads that tacit needs are not in it: \
             start processes by \"spawn\" (multiprocessing.set_start_method), or import tacit in the child \
             alone",
        ));
    }
    let switch = stop.map(|stop| stop.0.clone()).unwrap_or_default();
    let (sender, mut queue) = channel();
    let happened: Sender<Told<T>> = sender.clone();
    // Nobody listens any more to a call that was left.
    let tell = Arc::new(move |what| drop(happened.send(Told::Happened(what))));
    let teller = Teller { tell, stop: switch.clone() };
    let run = move || {
        let done = catch_unwind(AssertUnwindSafe(|| job(&teller)));
        drop(sender.send(Told::Done(done)));
    };
    std::thread::Builder::new().name("tacit".into()).spawn(run)?;
    loop {
        let (told, again) = next(py, queue, LOOK);
        queue = again;
        let heard = match told {
            Ok(Told::Done(done)) => return finished(done),
            Ok(Told::Happened(what)) => listener.as_ref().map_or(Ok(()), |to| hear(py, to, what)),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("a thread of tacit is gone"));
            }
        };
        if let Err(ended) = heard.and_then(|()| py.check_signals()) {
            switch.stop();
            leave(py, queue);
            return Err(ended);
        }
    }
}

/// The next of a queue, without the interpreter.
fn next<T: Send>(
    py: Python<'_>,
    queue: Receiver<Told<T>>,
    wait: Duration,
) -> (Result<Told<T>, RecvTimeoutError>, Receiver<Told<T>>) {
    py.detach(move || {
        let told = queue.recv_timeout(wait);
        (told, queue)
    })
}

/// Waits a little for a job that was stopped.
fn leave<T: Send>(py: Python<'_>, mut queue: Receiver<Told<T>>) {
    let until = Instant::now() + PATIENCE;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        match next(py, queue, left) {
            (Ok(Told::Happened(_)), again) => queue = again,
            _ => return,
        }
    }
}

fn hear(py: Python<'_>, listener: &Py<PyAny>, what: Happening) -> PyResult<()> {
    let Happening { kind, text, stage, rows, total, bytes, seconds, retries } = what;
    listener.call1(py, (kind, text, stage, rows, total, bytes, seconds, retries)).map(drop)
}

/// A fault of ours is an exception, and ends no process.
fn finished<T>(done: std::thread::Result<T>) -> PyResult<T> {
    done.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
        PyRuntimeError::new_err(format!("a fault of tacit itself: {text}"))
    })
}
