//! Units of work of a run between two parties, and how each is done once at both, whatever fails.
//!
//! Functionality: a stage has units; an attempt at a unit leaves a result at either party, and results of the
//! same attempt belong together. Both parties come to hold results of one attempt at every unit, and know
//! that they do, before either uses any.
//!
//! Security model: semi-honest, like the protocols whose units these are. What a peer says is checked against
//! what was agreed: a word that an honest peer cannot have said ends the run as a deviation. Fail-stop errors
//! of any process, of connections and of stores' writes lose no unit that both hold and never join results of
//! two attempts.
//!
//! Who learns what: sizes, times, and which attempts failed for which of seven causes. No text of an error
//! and nothing of a result crosses.
//!
//! The paper (Movahedi et al. 2021, section 2.4) has coordinators, workers and an aggregator and says nothing
//! of failures. The rules here were explored exhaustively, with crashes of either side, cuts and workers that
//! are believed dead; see `docs/protocols/units.md` and the tests of this crate.
//!
//! Cost: of each unit four words of at most 78 bytes and, where state is kept, two records at either party;
//! one round trip before an attempt begins.
//!
//! Everything here is pure: no clock, no file, no connection, no thread. A driver tells a [`UnitMachine`]
//! what has happened and carries out what it answers, in order.

mod codec;
mod lanes;
#[cfg(test)]
mod model_tests;
mod record;
mod state;
#[cfg(test)]
mod state_tests;
mod word;

pub use lanes::{LaneAction, LaneBook, LaneEvent};
pub use record::UnitRecord;
pub use state::{
    ATTEMPTS, FinishedAttempt, HeldResult, LANE_FAILURES, UNITS, UnitAction, UnitDeviation, UnitEvent,
    UnitFailure, UnitMachine, UnitsSetting,
};
pub use word::{ADDRESS_BYTES, ByeReason, FailureCause, UnitStanding, WORD_BYTES, Word};
