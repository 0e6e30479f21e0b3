//! How far a protocol has come, for whoever watches: a progress bar, a log, nobody.

use std::{fmt, sync::Arc};

/// Where rows done are reported. Cloneable, so that the threads of one party report to one watcher; nobody
/// watches by default.
#[derive(Clone)]
pub struct RowProgress(Option<Arc<Watcher>>);

type Watcher = dyn Fn(&str, u64, u64) + Send + Sync;

impl RowProgress {
    /// Reports go to `watcher(step, done, total)`. It is called from protocol threads: it must be quick.
    #[must_use]
    pub fn new(watcher: impl Fn(&str, u64, u64) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(watcher)))
    }

    /// Nobody watches.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// `done` of `total` rows of the step are done.
    pub fn report(&self, step: &str, done: u64, total: u64) {
        if let Some(watcher) = &self.0 {
            watcher(step, done, total);
        }
    }
}

impl Default for RowProgress {
    fn default() -> Self {
        Self::none()
    }
}

impl fmt::Debug for RowProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(watched)" } else { "Progress(none)" })
    }
}
