//! Columns in memory, as one party holds them.

use base::{Error, PartyId};
use program::ShardRows;
use program::{Holder, Program, RowColumn};

/// The columns that one holder may read: reading a foreign one is an error.
pub struct Table {
    columns: Vec<Option<Vec<u128>>>,
    rows: u64,
}

impl Table {
    /// The columns of `party` and the public ones; everything for `None`, nothing for a server, which is no
    /// party of the program. `columns` has one entry per column.
    #[must_use]
    pub fn new(program: &Program, columns: &[Vec<u128>], rows: u64, party: Option<PartyId>) -> Self {
        // Of a shared column every row is entered by one party in turn.
        let parties = program.parties.len() as u64;
        let part = |v: &[u128], me: PartyId| {
            let mine = |row: u64| row % parties == u64::from(me.0);
            v.iter().enumerate().map(|(row, value)| if mine(row as u64) { *value } else { 0 }).collect()
        };
        let entered = |c: &RowColumn, v: &Vec<u128>| match party {
            Some(me) if me.index() >= program.parties.len() => None,
            Some(me) if c.holder == Holder::Shared => Some(part(v, me)),
            Some(me) => c.holder.held_by(me).then(|| v.clone()),
            None => Some(v.clone()),
        };
        let columns = program.columns.iter().zip(columns).map(|(c, v)| entered(c, v)).collect();
        Self { columns, rows }
    }
}

impl ShardRows for Table {
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
