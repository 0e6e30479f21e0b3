//! What is behind the region's addresses, by mode.

use crate::pager::{self, Pager};
use crate::progress::Progress;
use crate::region::Region;
use crate::settings::{Engine, Mode, Settings};
use crate::speculate::Tracer;
use crate::stats::Stats;
use crate::sys::staging::HUGE;
use crate::trace::{Header, RingWriter, Sink, Source, Writer};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is behind the region's addresses.
#[derive(Debug)]
pub(super) enum Role {
    /// Memory of the system's.
    Plain,
    /// Little memory many times, and a trace.
    Tracer(&'static Tracer),
    /// Memory for some of the chunks.
    Paged(Box<Mutex<Paging>>),
}

#[derive(Debug)]
pub(super) enum Paging {
    Running(Pager),
    /// Its last counters.
    Stopped(Stats),
}

impl Role {
    /// Starts what the mode needs. A trace that is refused is a warning: the program is then paged by what it
    /// touches.
    ///
    /// # Errors
    /// In words, when this machine cannot do it.
    pub fn start(
        settings: &Settings,
        region: &Arc<Region>,
        progress: &Arc<Progress>,
        warn: &mut dyn FnMut(String),
    ) -> Result<Self, String> {
        let unpaged = settings.engine == Engine::None || settings.memory == 0;
        match settings.mode {
            Mode::Speculate => {
                let tracer = Tracer::start(settings, region.clone(), progress.clone(), sink(settings)?)?;
                Ok(Self::Tracer(tracer))
            }
            Mode::Off => Ok(Self::plain(region)),
            _ if unpaged => Ok(Self::plain(region)),
            _ => {
                let source = source(settings).unwrap_or_else(|reason| {
                    warn(format!("{reason}; chunks are paged by what is touched"));
                    None
                });
                let pager = pager::start(settings, region.clone(), progress.clone(), source)?;
                Ok(Self::Paged(Box::new(Mutex::new(Paging::Running(pager)))))
            }
        }
    }

    /// Ordinary memory, of huge pages where paged chunks would have them: so that the two compare. A hint.
    fn plain(region: &Region) -> Self {
        if region.chunk() >= HUGE {
            let _hint = region.mapping().advise(0, region.mapping().len(), libc::MADV_HUGEPAGE);
        }
        Self::Plain
    }

    /// What tracer or pager have counted.
    pub fn counters(&self) -> Stats {
        match self {
            Self::Plain => Stats::default(),
            Self::Tracer(tracer) => {
                let traced = tracer.so_far();
                Stats { trace_entries: traced.entries, trace_bytes: traced.bytes, ..Stats::default() }
            }
            Self::Paged(paging) => match &*lock(paging) {
                Paging::Running(pager) => pager.stats(),
                Paging::Stopped(stats) => stats.clone(),
            },
        }
    }

    /// Completes the trace; stops the pager if that is wanted.
    ///
    /// # Errors
    /// The system's, for the file or ring of the trace.
    pub fn end(&self, peak_chunks: u64, stop_pager: bool) -> io::Result<()> {
        match self {
            Self::Tracer(tracer) => return tracer.finish(peak_chunks),
            Self::Paged(paging) if stop_pager => lock(paging).stop(),
            Self::Plain | Self::Paged(_) => {}
        }
        Ok(())
    }
}

impl Paging {
    fn stop(&mut self) {
        *self = match std::mem::replace(self, Self::Stopped(Stats::default())) {
            Self::Running(pager) => Self::Stopped(pager.stop()),
            stopped => stopped,
        };
    }
}

fn lock(paging: &Mutex<Paging>) -> MutexGuard<'_, Paging> {
    paging.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a trace of this process is a trace of.
fn header(settings: &Settings) -> Header {
    Header {
        chunk: settings.chunk as u64,
        region: settings.region,
        microset: settings.microset as u32,
        key: settings.key,
    }
}

/// Where the trace of this process goes.
fn sink(settings: &Settings) -> Result<Sink, String> {
    if let Some(ring) = settings.ring {
        return RingWriter::open(ring, &header(settings)).map(Sink::Ring);
    }
    let path = settings.trace.as_ref().ok_or("speculation needs OSPREY_TRACE or OSPREY_RING")?;
    Writer::create(path, &header(settings))
        .map(Sink::File)
        .map_err(|e| format!("cannot write the trace {}: {e}", path.display()))
}

/// Where the trace that this process pages by comes from; nowhere in [`Mode::Reactive`].
fn source(settings: &Settings) -> Result<Option<Source>, String> {
    match (settings.mode, settings.ring, &settings.trace) {
        (Mode::Concurrent, Some(ring), _) => Source::ring(ring, &header(settings)).map(Some),
        (Mode::Programmed | Mode::Concurrent, _, Some(path)) => {
            Source::open(path, &header(settings)).map(Some)
        }
        (Mode::Programmed, Some(_), None) => Err("a programmed pass needs OSPREY_TRACE, not a ring".into()),
        _ => Ok(None),
    }
}
