//! Memory programming (paper 004): a program whose accesses to memory do not depend on secrets is run once
//! with its cryptography stubbed and its data aliased to a few pages, which gives the exact trace of what it
//! will touch; the real run then pages by that trace, with Belady's rule, before the program waits.
//!
//! **Functionality.** Programs put data that never decides an address or a branch (labels, shares,
//! ciphertexts) into the *content-oblivious region*: [`OspVec`], [`Memory`], C and C++ (crate `osprey-c`).
//! The launcher `osprey run` sets the mode by the environment ([`ProcessSettings`]); without it the region is
//! ordinary memory.
//!
//! **Who learns what.** Chunks on disk are encrypted under a key that lives in the process alone (engines
//! `move` and `copy`); the order and the number of accesses are public by assumption, as are sizes. A trace
//! holds chunk numbers.
//!
//! **Paper and deviations.** Chunks of 64 KiB or 2 MiB instead of pages; userfaultfd MOVE and io_uring
//! instead of `madvise` and swap; tracing by signal in the program's own thread instead of a handler thread;
//! a plan by MIN instead of hints by lookahead; speculation beside the real run, which the paper leaves to
//! future work. `docs/osprey.md` has the reasons and the figures.
//!
//! **Cost.** A trace of about a byte or two per chunk touched; planning is linear up to a logarithm in its
//! length; pages moved are what MIN at the given memory moves, and a wrong trace costs time, never a result.

pub mod disk;
pub mod launch;
mod memory;
mod pager;
pub mod plan;
mod progress;
mod region;
mod runtime;
pub mod settings;
mod slab;
mod speculate;
pub mod stats;
mod sys;
pub mod trace;
pub mod transfer;
mod vec;

pub use memory::{Heap, Memory, Oblivious};
pub use runtime::{
    EXIT_UNAVAILABLE, MARKS_MAX, alloc, finish, free, init, mark, owns, speculating, stats, tick, try_alloc,
};
pub use settings::{PagingEngine, PassMode, ProcessSettings};
pub use stats::{Mark, Stats};
pub use vec::{IntoIter, OspVec, touch_read, touch_write};
