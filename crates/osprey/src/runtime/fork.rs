//! Forked children: the region stays with the parent.
//!
//! Nothing in a child serves a touch of a chunk that is away, and a copy of half of the chunks would be worse
//! than none. So the region is left out of children, and a child that touches it, or allocates there, is told
//! why it ends. In [`PassMode::Off`](crate::Mode::Off) the region is ordinary memory in children too. Trace
//! and report are the parent's to write in every mode. What `exec` or `posix_spawn` start is another program
//! and not concerned.

use super::{EXIT_UNAVAILABLE, RUNTIME};
use crate::region::PagedRegion;
use crate::sys::{process, signal};
use std::sync::atomic::{AtomicBool, Ordering};

/// Why a child cannot go on.
pub(super) const REASON: &str = "a forked child used the content-oblivious region, which stays with its \
                                 parent: do that work in the parent, or before the fork";

static FORKED: AtomicBool = AtomicBool::new(false);
static EXCLUDED: AtomicBool = AtomicBool::new(false);

/// From now on children know what they are, and do not have the region where it is `excluded`.
///
/// # Errors
/// In words.
pub(super) fn guard(region: &PagedRegion, excluded: bool) -> Result<(), String> {
    if excluded {
        region.keep_from_children().map_err(|e| format!("cannot keep the region from children: {e}"))?;
    }
    EXCLUDED.store(excluded, Ordering::Release);
    process::in_forked_children(in_child).map_err(|e| format!("cannot notice a fork: {e}"))
}

/// Whether this is a forked child.
pub(super) fn happened() -> bool {
    FORKED.load(Ordering::Relaxed)
}

extern "C" fn in_child() {
    // A child of a child has all of it already.
    if !FORKED.swap(true, Ordering::AcqRel) && EXCLUDED.load(Ordering::Acquire) {
        // Without the handler such a touch ends the child all the same, only without words.
        signal::answer_segv(answer).unwrap_or(());
    }
}

fn answer(touch: signal::SignalTouch) -> bool {
    if let Some(Ok(runtime)) = RUNTIME.get()
        && runtime.region.chunk_of(touch.address).is_some()
    {
        signal::leave(REASON, EXIT_UNAVAILABLE);
    }
    false
}
