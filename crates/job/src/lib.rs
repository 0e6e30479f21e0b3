//! One party's run of a study: check, plan, meet, match, compute, release, report.

mod align;
pub mod audit;
pub mod budget;
pub mod check;
mod columns;
pub mod compose;
mod course;
mod derive;
mod devices;
pub mod engines;
pub mod export;
pub mod folders;
mod interpret;
mod joined_program;
pub mod kept;
pub mod memory;
pub mod plan;
pub mod prepare;
mod ranges;
pub mod run;
pub mod simulate;
pub mod small;
pub mod spool;
pub mod stages;
pub mod told;
pub mod usage;
pub mod workers;
