//! Lowers word operations to what two-party and n-party engines run.
//!
//! Three ideas decide the price of a row (reasons and figures: `docs/protocols/yao.md`):
//! 1. What depends on one party's columns only is never a gate: its bits are known inputs.
//! 2. A sum is never a boolean adder. The engine ends a row with *additive* shares, which add up locally for free.
//! 3. A secret bit times a value that the sender knows is one masked value on the wire ([`Mask`]), whatever its width.
//!
//! The sender is the party that can answer a correlated OT on a wire: the garbler of `yao`.

mod bits;
mod reference;
mod release;
mod row;

pub use release::{Difference, ReleasePlan, ReleaseWord, WordKind, lower_release};
pub use row::{Field, FoldPlan, Mask, RowPlan, Source, Step, lower_row};
