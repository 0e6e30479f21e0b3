//! Made-up data with a known truth: the demo's field trial and larger random studies.
//!
//! Everything is a function of a seed. The truth is computed here from the generated people by plain code
//! written from the definition of the study; it shares nothing with the code that reads files or computes
//! privately.

mod files;
mod own;
mod parts;
mod polio;
mod synthetic;
#[cfg(test)]
mod tests;
mod truth;

pub use files::FileFormat;
pub use own::{MadeUpFile, MadeUpRows, for_study};
pub use parts::WritingProgress;
pub use polio::{POLIO_COUNTS, PolioCounts, polio, polio_thinned};
pub use synthetic::{LiftOptions, lift, lift_several, lift_study, lift_truth, several_study};
pub use truth::{ArmTruth, Truth};

use std::path::PathBuf;

/// What a generator wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// The publisher's file, or the folder of its files.
    pub publisher: PathBuf,
    /// The advertiser's file, or the folder of its files.
    pub advertiser: PathBuf,
    /// Rows of the publisher.
    pub publisher_rows: u64,
    /// Rows of the advertiser.
    pub advertiser_rows: u64,
    /// The answer.
    pub truth: Truth,
}

/// What a generator wrote for several advertisers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedSeveral {
    /// Party, file or folder of files, and rows: the publisher's, then each advertiser's.
    pub files: Vec<(String, PathBuf, u64)>,
    /// The answer, of all advertisers together.
    pub truth: Truth,
}
