//! State of a run, outside the process: in a local folder or in a bucket of S3, GCS or Azure.
//!
//! Four layers, each over the one before:
//!
//! * [`StateStore`]: named objects. They are created, written, read by ranges, listed and deleted; the
//!   library's runtime stays inside.
//! * [`SealedStore`]: objects that only this party reads, each bound to its name, run and party.
//! * [`StateLog`]: records in one order that are only ever created, so that of two processes that lead a run
//!   one finds its next number taken and stops.
//! * [`RunWriter`] and [`RunReader`]: records dealt to partitions and read back sorted, each byte written
//!   once and read once.
//!
//! Beside them, [`InputStore`] only reads: objects of a bucket that others wrote, a party's data.
//!
//! Nothing is opened, made or sent by being linked: a study that keeps no state touches no store.
//! `docs/store.md` has the formats, what the sealing promises and what not, limits and costs.

mod address;
mod error;
pub mod fuzzing;
mod input;
mod key;
mod lock;
mod log;
mod name;
mod object;
mod probe;
mod run_state;
mod runs;
mod seal;
mod sealed;
mod state;
#[cfg(test)]
mod testing;

pub use address::{CONNECT_MS, REQUEST_MS, RETRIES, RETRY_MS, StoreOptions, bucket_schemes};
pub use error::StoreError;
pub use input::{InputObject, InputPart, InputStore, is_url};
pub use key::StateKey;
pub use log::{LOG_OBJECT_BYTES, LOG_RECORDS, LogLead, LogRecord, SNAPSHOT_EVERY, StateLog};
pub use object::{OBJECT_PARTS, ObjectWriter, PART_BYTES};
pub use run_state::{KeptName, RUNS_FOLDER, RunState, kept_runs};
pub use runs::{
    PARTITIONS, PartitionRecords, RUN_MEMORY, RUNS, RecordSize, RunObject, RunReader, RunWriter, RunWriters,
};
pub use seal::{ChunkSize, ObjectId, sealed_len};
pub use sealed::{SealedReader, SealedStore, SealedWriter};
pub use state::{OBJECT_BYTES, ObjectTraffic, StateStore, StoreLock, free_bytes};
