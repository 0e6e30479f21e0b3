//! Lowers word operations to what two-party and n-party engines run.
//!
//! Three ideas decide the price of a row (reasons and figures: `docs/protocols/yao.md`):
//! 1. What depends on one party's columns only is never a gate: its bits are known inputs.
//! 2. A sum is never a boolean adder. The engine ends a row with *additive* shares, which add up locally for
//!    free.
//! 3. A secret bit times a value that the sender knows is one masked value on the wire ([`Mask`]), whatever
//!    its width.
//!
//! Under garbling the sender is the party that can answer a correlated OT on a wire: the garbler of `yao`.
//! Under shared bits ([`lower_pair`]) either party answers for the values that it knows, products of shares
//! go both ways, and comparisons between the two parties' own words are noted, so that the engine need not do
//! them by gates.
//!
//! Rows that a match has joined to shares enter as shares ([`lower_joined`]): their owners computed before
//! what they know.
//!
//! Programs of more parties, and of best rows and lists, are gates throughout: [`lower_boolean`] for rows as
//! lanes and [`combine`] for how they merge; [`unroll`] makes one stand-alone circuit of a whole program.

mod bits;
mod boolean;
pub mod combine;
mod factor;
mod hoist;
mod joined;
mod linear;
mod noise;
mod numbers;
mod payload;
mod reference;
mod release;
mod row;
mod unroll;

use std::sync::atomic::{AtomicU64, Ordering};

pub use boolean::{BooleanFold, BooleanPlan, EntryRule, INDEX_WORD, Piece, lower_boolean};
pub use factor::factor;
pub use hoist::hoist;
pub use joined::{EntryKind, Gap, GapTerm, JoinedEntry, JoinedPlan, JoinedWord, lower_joined};
pub use linear::LinearSum;
pub use noise::{Draws, NoiseDraw, lower_draws};
pub use numbers::{NumberSum, RowNumber, RowNumbers};
pub use payload::{PayloadField, RowPayload};
pub use release::{
    Depth, DifferenceSizes, Lowering, NoiseSource, NoisedAt, ReleasePlan, ReleaseWord, SUMMANDS, TotalsForm,
    WordKind, lower_release,
};
pub use row::{Compare, FoldPlan, Mask, MaskField, MaskSource, RowPlan, RowStep, lower_pair, lower_row};
pub use unroll::{UNROLLED_ROWS, UNROLLED_WIRES, unroll};

static LOWERINGS: AtomicU64 = AtomicU64::new(0);

/// How many row sections this process has lowered: for a test that a run lowers its program once.
#[doc(hidden)]
#[must_use]
pub fn lowerings() -> u64 {
    LOWERINGS.load(Ordering::Relaxed)
}

/// Notes that a row section is lowered.
fn count() {
    LOWERINGS.fetch_add(1, Ordering::Relaxed);
}
