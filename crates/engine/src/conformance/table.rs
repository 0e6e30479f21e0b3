//! Columns in memory, as one party holds them.

use crate::Rows;
use base::{Error, PartyId};
use program::Program;

/// The columns that one holder may read: reading a foreign one is an error.
pub struct Table {
    columns: Vec<Option<Vec<u128>>>,
    rows: u64,
}

impl Table {
    /// The columns of `party` and the public ones; everything for `None`. `columns` has one entry per column.
    #[must_use]
    pub fn new(program: &Program, columns: &[Vec<u128>], rows: u64, party: Option<PartyId>) -> Self {
        let held = |owner: Option<PartyId>| owner.is_none() || party.is_none() || owner == party;
        let columns =
            program.columns.iter().zip(columns).map(|(c, v)| held(c.owner).then(|| v.clone())).collect();
        Self { columns, rows }
    }
}

impl Rows for Table {
    fn len(&self) -> u64 {
        self.rows
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let values = self.columns.get(column as usize).and_then(Option::as_ref);
        let values = values.ok_or_else(|| Error::misuse(format!("column {column} is not held here")))?;
        let end = from.checked_add(into.len() as u64).filter(|end| *end <= self.rows);
        let end = end.ok_or_else(|| Error::misuse(format!("rows {from}.. are read beyond the last one")))?;
        into.copy_from_slice(&values[from as usize..end as usize]);
        Ok(())
    }
}
