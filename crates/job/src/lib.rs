//! Jobs: study files, data, coordinator, workers, aggregator, privacy ledger and reports.

mod align;
pub mod budget;
pub mod ceremony;
pub mod compose;
pub mod data;
pub mod engines;
pub mod export;
pub mod generate;
pub mod hiding;
pub mod html;
mod interpret;
pub mod ledger;
pub mod party;
pub mod plan;
pub mod prepare;
pub mod privacy;
pub mod report;
pub mod run;
pub mod salt;
pub mod scales;
pub mod sketch;
pub mod study;
pub mod summary;
pub mod time;
pub mod transport;
pub mod usage;
mod wording;
