//! The conformance suite: every engine passes it, and then means what `clear` means.
//!
//! [`suite`] makes [`ProgramCase`]s: a program, its columns, and the totals and outputs that it must give.
//! The expectations are ordinary Rust written from the definitions of the operations; nothing of
//! `program::eval` or of a lowering is used for them. [`check`] runs all cases with one engine object per
//! party, each party holding its own columns only, and compares results, the kind of every share, the
//! randomness of additive shares, and the price with what the ledger booked, byte for byte and turn for turn.
//! [`check_alone`] runs an engine that holds all columns in one process. [`suite_among`], [`check_among`] and
//! [`check_among_alone`] are the same for programs whose totals are shared by exclusive or: any number of
//! parties, best rows, lists, shared columns. With [`check_served`] and [`check_among_served`] servers that
//! hold no column take part: they make the same calls, and prices and ledgers are compared for them too. An
//! engine's test is one line:
//!
//! ```ignore
//! engine::conformance::check(&|session| Ok(Box::new(Yao::new(session)?))).unwrap();
//! ```

pub mod circuit_suite;
mod draft;
mod law;
mod noise;
mod operations;
mod party_cases;
mod release_cases;
mod replicated;
mod row_cases;
mod run;
mod table;

pub use law::{check_law, check_law_alone};
pub use noise::Noise;
pub use run::{
    MakeEngine, check, check_alone, check_among, check_among_alone, check_among_served, check_served, half,
    run, run_alone, run_served,
};
pub use table::Table;

use program::Program;
use program::lower::DifferenceSizes;

/// A program with its input and everything that must come of it.
#[derive(Clone, Debug)]
pub struct ProgramCase {
    /// What it is about; a failure names it.
    pub name: String,
    /// The program.
    pub program: Program,
    /// Number of rows.
    pub rows: u64,
    /// One vector per column of the program, bit patterns of the column's type.
    pub columns: Vec<Vec<u128>>,
    /// The total of every fold, as a bit pattern of its word; 0 for a list.
    pub totals: Vec<u128>,
    /// The value of every output, in the order of `Program::outputs`, as a bit pattern of its node's type;
    /// with candidates of noise those of the first one.
    pub outputs: Vec<u128>,
    /// The same of every further candidate.
    pub others: Vec<Vec<u128>>,
    /// The bits of every list by row, in the order of `Program::lists`.
    pub lists: Vec<Vec<bool>>,
    /// The noise that is drawn.
    pub noise: Noise,
    /// Parameters of `DifferenceSizes` mechanisms, by mechanism.
    pub differences: Vec<Option<DifferenceSizes>>,
    /// Whether additive shares must look random. Not so where a fold adds values that their owners know:
    /// there a share is the owner's own sum.
    pub random_shares: bool,
    /// Rows of the first unit, where one lane runs two units whose shares are added.
    pub split: Option<u64>,
}

/// The cases for a seed. Every operation, in the row and in the release section; columns of either party and
/// public ones; 0, 1, 2, 1000 and 4097 rows; exact outputs to both parties and to the public; noise of coins
/// and of candidates; the `DifferenceSizes` mechanisms.
#[must_use]
pub fn suite(seed: u64) -> Vec<ProgramCase> {
    let mut cases = row_cases::all(seed);
    cases.extend(release_cases::all(seed));
    cases
}

/// The cases of programs of `parties` parties whose totals are shared by exclusive or. Every operation of a
/// row; sums, best rows and lists of columns of every holder; 0, 1, 2, 3, 63 to 65 and 1000 rows; ties, and
/// no valid row. With more than three parties fewer of them, with more than five a few.
#[must_use]
pub fn suite_among(parties: usize, seed: u64) -> Vec<ProgramCase> {
    party_cases::all(parties, seed)
}

/// The first case of so many parties whose name begins like this; of two parties one of [`suite`].
///
/// # Panics
/// When there is none.
#[must_use]
pub fn case(parties: usize, name: &str) -> ProgramCase {
    let all = if parties == 2 { suite(5) } else { suite_among(parties, 5) };
    let found = all.into_iter().find(|case| case.name.starts_with(name));
    found.unwrap_or_else(|| panic!("no case {name}"))
}
