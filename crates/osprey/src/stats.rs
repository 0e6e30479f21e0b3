//! What a run moved and cost, as the runtime counts it and as the report holds it.

use serde::{Deserialize, Serialize};

/// Counters of one process, written as JSON to `OSPREY_REPORT` when it ends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The mode the process ended in: `programmed` becomes `reactive` when its trace was refused or did not
    /// fit.
    pub mode: String,
    /// The paging engine.
    pub engine: String,
    /// Bytes per chunk.
    pub chunk: u64,
    /// Chunks that may be resident at once.
    pub frames: u64,
    /// Most chunks of the region that held data at once.
    pub peak_chunks: u64,
    /// Bytes read from the spill file.
    pub bytes_read: u64,
    /// Bytes written to it.
    pub bytes_written: u64,
    /// Chunks dropped without a write because nothing in them was allocated any more.
    pub dropped_dead: u64,
    /// Chunks dropped without a write because they were as on disk.
    pub dropped_clean: u64,
    /// Chunks made resident without a read because they held nothing yet.
    pub first_touches: u64,
    /// Faults on key chunks held back on purpose.
    pub key_faults: u64,
    /// Faults that the program waited for because a chunk was not there in time.
    pub stalls: u64,
    /// Times that the pager heard of a thread that waits for memory, or found none itself, and gave frames up
    /// for that.
    #[serde(default)]
    pub reliefs: u64,
    /// Seconds that the pager spent planning.
    pub plan_s: f64,
    /// CPU seconds of the pager's thread.
    pub pager_cpu_s: f64,
    /// Entries of the trace: written when speculating, used when programmed.
    pub trace_entries: u64,
    /// Bytes of the trace as written.
    pub trace_bytes: u64,
    /// Events: allocations, releases, ticks, transfers.
    pub events: u64,
    /// Hash over all allocations and releases: equal in every pass of an oblivious program.
    pub allocation_hash: u64,
    /// Warnings, in words.
    pub warnings: Vec<String>,
    /// Marks that the program set, in order.
    pub marks: Vec<Mark>,
}

/// What the process had used when the program set a mark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Mark {
    /// The program's name for it; `start` and `stop` bound what `osprey bench` measures.
    pub name: String,
    /// Seconds on the monotonic clock.
    pub at_s: f64,
    /// Events so far, as a trace counts them: so a plan can be looked at between two marks.
    #[serde(default)]
    pub events: u64,
    /// CPU seconds in user mode, all threads.
    pub user_s: f64,
    /// CPU seconds in the kernel, all threads.
    pub system_s: f64,
    /// CPU seconds of the thread that set the mark.
    pub thread_s: f64,
    /// Major faults, all threads.
    pub major_faults: u64,
    /// Minor faults, all threads.
    pub minor_faults: u64,
    /// Voluntary context switches, all threads.
    pub voluntary_switches: u64,
    /// Voluntary context switches of the thread that set the mark.
    pub thread_voluntary_switches: u64,
    /// Involuntary context switches, all threads.
    pub involuntary_switches: u64,
    /// Touches so far that waited for their chunk.
    #[serde(default)]
    pub stalls: u64,
    /// Bytes read from and written to the spill file so far.
    pub bytes_read: u64,
    /// See `bytes_read`.
    pub bytes_written: u64,
}
