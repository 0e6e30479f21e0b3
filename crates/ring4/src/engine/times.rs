//! Where the time of rows goes, and what devices do of it, for measurements.

use accel::DeviceWork;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// A part of the work on a chunk of rows, waiting for others among it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPhase {
    /// Reading own columns, and what is computed of them in the clear.
    Read,
    /// Owners enter; public columns are compared.
    Enter,
    /// The gates of the rows.
    Gates,
    /// Bits become numbers, which are multiplied and added up.
    Numbers,
    /// Sums of bits.
    Sums,
    /// Best rows and lists.
    Merges,
}

impl RowPhase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Read, Self::Enter, Self::Gates, Self::Numbers, Self::Sums, Self::Merges];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Enter => "enter",
            Self::Gates => "gates",
            Self::Numbers => "numbers",
            Self::Sums => "sums",
            Self::Merges => "merges",
        }
    }
}

/// Time by phase and what devices did, added up over all ranges of rows that one participant runs, at once or
/// not.
#[derive(Debug, Default)]
pub struct RowTimes {
    phases: [AtomicU64; RowPhase::ALL.len()],
    devices: Mutex<DeviceWork>,
}

impl RowTimes {
    /// Seconds of a phase so far.
    #[must_use]
    pub fn seconds(&self, phase: RowPhase) -> f64 {
        self.phases[phase as usize].load(Relaxed) as f64 * 1e-9
    }

    pub(crate) fn time<T>(&self, phase: RowPhase, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let taken = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.phases[phase as usize].fetch_add(taken, Relaxed);
        done
    }

    /// What devices did so far, of ranges that have ended.
    #[must_use]
    pub fn device_work(&self) -> DeviceWork {
        *self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn book(&self, work: DeviceWork) {
        *self.devices.lock().unwrap_or_else(PoisonError::into_inner) += work;
    }
}
