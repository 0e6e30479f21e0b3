//! Two parties, sums: rows without boolean sums, by correlated OT alone.
mod batch;
mod compare;
mod planes;
mod price;
mod run;
mod schedule;

pub use compare::DIGIT;
pub use run::Prepared;
pub use schedule::COTS_PER_ROW;

/// Rows of a batch unless told otherwise: few enough for a batch's OTs to stay in the cache.
pub const LANES: usize = 1024;
