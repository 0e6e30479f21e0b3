//! What is behind the region's addresses, by mode.

use crate::pager::{self, Pager};
use crate::progress::TouchProgress;
use crate::region::PagedRegion;
use crate::settings::{PagingEngine, PassMode, ProcessSettings};
use crate::speculate::Tracer;
use crate::stats::Stats;
use crate::sys::staging::HUGE;
use crate::trace::{Header, RingWriter, TraceSink, TraceSource, Writer};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is behind the region's addresses.
#[derive(Debug)]
pub(super) enum RegionRole {
    /// Memory of the system's.
    Plain,
    /// Little memory many times, and a trace.
    Tracer(&'static Tracer),
    /// Memory for some of the chunks.
    Paged(Box<Mutex<PagedRole>>),
}

#[derive(Debug)]
pub(super) enum PagedRole {
    Running(Pager),
    /// Its last counters.
    Stopped(Stats),
}

impl RegionRole {
    /// Starts what the mode needs. A trace that is refused is a warning: the program is then paged by what it
    /// touches.
    ///
    /// # Errors
    /// In words, when this machine cannot do it.
    pub fn start(
        settings: &ProcessSettings,
        region: &Arc<PagedRegion>,
        progress: &Arc<TouchProgress>,
        warn: &mut dyn FnMut(String),
    ) -> Result<Self, String> {
        let unpaged = settings.engine == PagingEngine::None || settings.memory == 0;
        match settings.mode {
            PassMode::Speculate => {
                let tracer = Tracer::start(settings, region.clone(), progress.clone(), sink(settings)?)?;
                Ok(Self::Tracer(tracer))
            }
            PassMode::Off => Ok(Self::plain(region)),
            _ if unpaged => Ok(Self::plain(region)),
            _ => {
                let source = source(settings).unwrap_or_else(|reason| {
                    warn(format!("{reason}; chunks are paged by what is touched"));
                    None
                });
                let pager = pager::start(settings, region.clone(), progress.clone(), source)?;
                Ok(Self::Paged(Box::new(Mutex::new(PagedRole::Running(pager)))))
            }
        }
    }

    /// Ordinary memory, of huge pages where paged chunks would have them: so that the two compare. A hint.
    fn plain(region: &PagedRegion) -> Self {
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
                PagedRole::Running(pager) => pager.stats(),
                PagedRole::Stopped(stats) => stats.clone(),
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

impl PagedRole {
    fn stop(&mut self) {
        *self = match std::mem::replace(self, Self::Stopped(Stats::default())) {
            Self::Running(pager) => Self::Stopped(pager.stop()),
            stopped => stopped,
        };
    }
}

fn lock(paging: &Mutex<PagedRole>) -> MutexGuard<'_, PagedRole> {
    paging.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a trace of this process is a trace of.
fn header(settings: &ProcessSettings) -> Header {
    Header {
        chunk: settings.chunk as u64,
        region: settings.region,
        microset: settings.microset as u32,
        key: settings.key,
    }
}

/// Where the trace of this process goes.
fn sink(settings: &ProcessSettings) -> Result<TraceSink, String> {
    if let Some(ring) = settings.ring {
        return RingWriter::open(ring, &header(settings)).map(TraceSink::Ring);
    }
    let path = settings.trace.as_ref().ok_or("speculation needs OSPREY_TRACE or OSPREY_RING")?;
    Writer::create(path, &header(settings))
        .map(TraceSink::File)
        .map_err(|e| format!("cannot write the trace {}: {e}", path.display()))
}

/// Where the trace that this process pages by comes from; nowhere in [`PassMode::Reactive`].
fn source(settings: &ProcessSettings) -> Result<Option<TraceSource>, String> {
    match (settings.mode, settings.ring, &settings.trace) {
        (PassMode::Concurrent, Some(ring), _) => TraceSource::ring(ring, &header(settings)).map(Some),
        (PassMode::Programmed | PassMode::Concurrent, _, Some(path)) => {
            TraceSource::open(path, &header(settings)).map(Some)
        }
        (PassMode::Programmed, Some(_), None) => {
            Err("a programmed pass needs OSPREY_TRACE, not a ring".into())
        }
        _ => Ok(None),
    }
}
