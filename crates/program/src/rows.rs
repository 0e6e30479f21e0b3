//! Rows as whoever computes on them reads them.

use base::Error;

/// Columns of one unit of rows, row by row on demand, so that memory does not grow with rows.
pub trait ShardRows: Send {
    /// Number of rows; the same at every party.
    fn len(&self) -> u64;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the values of column `column` for rows `from ..`, as bit patterns of the column's
    /// type.
    ///
    /// # Errors
    /// When the column is not held here, or its source fails.
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error>;
}

/// Rows that a match has joined to shares, as one party holds them: entries of a [`crate::lower::JoinedPlan`]
/// on demand.
pub trait JoinedRows: Send {
    /// Number of joined rows of this unit; the same at both parties.
    fn len(&self) -> u64;

    /// Whether there are no rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with this party's shares of entry `entry` for joined rows `from ..`, or with its own
    /// values where it alone holds them; never called for what the peer alone holds. Bits above the entry's
    /// width count nowhere.
    ///
    /// # Errors
    /// When the entry is not held here, or its source fails.
    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error>;

    /// This unit's part of the total of a fold that this party computes alone, from all rows of its own
    /// file, joined or not: the same number whatever protocol joined the rows. One unit has the total and
    /// the others 0, or each a part.
    ///
    /// # Errors
    /// When the fold is not this party's alone, or its source fails.
    fn alone(&mut self, fold: u32) -> Result<u128, Error>;
}
