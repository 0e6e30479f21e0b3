//! What organisations say to each other about a proposed study, and what follows from it.
//!
//! A **statement** is what one organisation says about one proposal: that it proposes the study, consents,
//! refuses, is ready for a run, has its answer. It is signed by the organisation's identity key, numbered,
//! and bound to the one before; nobody changes or deletes it, and every party keeps all of them. The
//! **state** of a proposal is a function of the set of statements alone: it has no clock and does not depend
//! on the order in which they came, so parties that hold the same statements show the same state.
//!
//! Nothing here reads a clock, a file or the network: whoever calls brings the time, the bytes and the key.
//! `docs/protocols/statements.md` has functionality, model, bytes, states and guards.

mod acts;
mod body;
pub mod fuzzing;
mod guard;
mod limits;
#[cfg(test)]
mod model_tests;
mod record;
#[cfg(test)]
mod record_tests;
mod said;
mod signed;
mod steward;
mod words;

pub use acts::{Act, ProposalState, ProposalView, RunOutcome, RunStanding, Standing};
pub use body::{ProposalId, StatementBody};
pub use guard::Objection;
pub use record::{KeptStatement, NotKept, ProposalRecord, StatementHead};
pub use said::{
    ChargeBound, ClosingCode, ClosingReason, ConsentTerms, DebitLine, ProposedStudy, RunEnd, RunOffer,
    RunWindow, Said,
};
pub use signed::SignedStatement;
pub use steward::{ConsentFile, ConsentRequest, StewardSeal, commit_to_data, digest_of_words, ssh_key};
pub use words::{Naming, moment};

/// Version of the bytes of a statement.
pub const STATEMENT_VERSION: u16 = 1;
/// Characters of a note, a reason or a remark.
pub const TEXT_CHARS: usize = 2_000;
/// Notes of one party on one proposal.
pub const NOTES: usize = 50;
/// Most runs begun anew that a party may consent to.
pub const RUNS_ANEW: u8 = 5;
/// Runs of one proposal, those that go on from an earlier one included.
pub const RUNS_IN_ALL: u32 = 1_000;
/// Statements of one party on one proposal.
pub const CHAIN_STATEMENTS: u32 = 8_192;
/// Bytes of one party's words about runs on an open proposal, after which it begins no further one: a
/// thousand runs of two parties have fewer.
pub const RUN_BYTES: usize = 5 << 18;
/// Runs that a party may begin on a proposal before all consents were heard.
pub const EARLY_RUNS: usize = 8;
/// Words about the log of each other party on an open proposal: one a day, for longer than it can be open.
pub const WITNESSES: usize = 256;
/// Spans of time in one statement.
pub const WINDOWS: usize = 8;
/// Lines of debits in one `ended`.
pub const DEBITS: usize = 64;
/// Days that a proposal or a consent holds at most.
pub const DAYS: u64 = 90;
/// Bytes of a statement with its signature.
pub const SIGNED_BYTES: usize = base::limits::STUDY_BYTES + (64 << 10);
