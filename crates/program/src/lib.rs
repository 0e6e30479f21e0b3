//! The program model: what is computed for one matched **row**, how rows **combine**, and what is
//! **released**.
//!
//! A [`Program`] is data: a typed SSA graph with a readable text form ([`Program::to_text`],
//! [`Program::parse`]) and a hash. Row count never appears in it: rows are lanes. [`verify`] is the policy:
//! it derives owners, ranges, sensitivities and the privacy charge, and refuses what a study may not do.
//! [`lower`] turns word operations into boolean circuits and correlated-OT products, which the engines run
//! and price.

mod analysis;
pub mod asking;
mod bounds;
mod builder;
mod cells;
mod counted;
mod derived;
pub mod entries;
pub mod eval;
mod facts;
mod graph;
mod guards;
pub mod lower;
mod names;
mod presence;
mod rows;
mod text;
mod types;
mod verify;

pub use analysis::GATES;
pub use analysis::{NodeFacts, ValueRange};
pub use bounds::ColumnBound;
pub use builder::ProgramBuilder;
pub use cells::{DecimalError, decimal};
pub use counted::CountedIn;
pub use derived::{DerivedOutput, DerivedStatistic, SumPlace, Variable, regression_sums};
pub use graph::{
    CellForm, CellKind, Class, ColumnSource, DEGREE, DifferenceStatistic, Holder, List, Lookup,
    MechanismKind, NodeId, NodeSection, NoiseMechanism, Op, OpNode, OutputValue, Program, RowColumn, RowFold,
    RowOrder, RowSet, Sharing, Viewer,
};
pub use guards::{Guarded, Guards};
pub use names::{LABEL_BYTES, ValueNames};
pub use rows::{JoinedRows, ShardRows};
pub use text::TextDraft;
pub use types::{Owners, ValueType};
pub use verify::{Audit, MechanismCharge, VerifierPolicy, verify};
