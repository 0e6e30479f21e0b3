//! Traces: which chunks a program touches, in which order.
//!
//! The speculative pass keeps the last one to two *blocks* of chunks mapped. A block is `microset` first
//! touches of chunks that were not mapped; when a block is full, all chunks that were mapped by the block
//! before it are unmapped. So an entry of block b says: the chunk is first touched at this place, perhaps
//! touched again until block b + 2 begins, and any later touch is an entry of its own. Plans keep the chunk
//! resident for that long; an entry in block b is a use of its chunk in blocks b and b + 1.
//!
//! A trace does not depend on a limit of memory: one serves all.

mod codec;
mod read;
pub mod ring;
mod write;

pub use read::{TraceFeed, TraceSource};
pub use ring::RingWriter;
pub use write::{TraceSink, Writer};

/// A touch of a chunk that was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// Number of the chunk, from the region's base.
    pub chunk: u32,
    /// Whether it was written to before it was unmapped; otherwise it was only read.
    pub written: bool,
    /// Whether it held nothing before: first touch since it was handed out, or handed out anew.
    pub fresh: bool,
}

/// `microset` entries (the last block of a trace may have fewer), with what the program had done when it came
/// to the first of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TraceBlock {
    /// Events (allocations, releases, ticks, transfers) before the first entry. The program is past the first
    /// touch of this block as soon as its own count is higher.
    pub events: u64,
    /// Hash over the allocations and releases among them.
    pub hash: u64,
    /// The touches.
    pub entries: Vec<TraceEntry>,
}

/// What a trace is a trace of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Bytes per chunk.
    pub chunk: u64,
    /// Bytes of the region.
    pub region: u64,
    /// Entries per block.
    pub microset: u32,
    /// Hash of binary and arguments.
    pub key: u128,
}

/// What is known at the end of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Footer {
    /// Entries in all.
    pub entries: u64,
    /// Chunks of the region that were in use at once, at most.
    pub peak_chunks: u64,
    /// Bytes of memory outside the region, at most: what a limit must leave room for.
    pub other_bytes: u64,
}
