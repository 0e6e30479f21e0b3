//! The first rows of a party's data with all their columns, before any study says which are wanted.

use crate::Row;
use crate::complaints::Complaints;
use crate::source::DataLocation;
use crate::table::{RowSink, TableCell, read};
use base::Error;

/// What was seen of a party's data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeekedTable {
    /// Names of all columns of the first file that have one, in its order.
    pub columns: Vec<String>,
    /// How many rows were seen.
    pub rows: u64,
    /// What form the files turned out to have, in words, where it is not the usual one: `separator ";"`.
    pub forms: Vec<String>,
}

/// What sees rows: names of columns, cells, and the place of the row in words.
type SeeRow<'b> = dyn FnMut(&[String], &[TableCell<'_>], &dyn Fn() -> String) + 'b;

struct Peeking<'a, 'b> {
    table: PeekedTable,
    most: u64,
    each: &'a mut SeeRow<'b>,
}

impl RowSink for Peeking<'_, '_> {
    fn columns(&self) -> Vec<String> {
        self.table.columns.clone()
    }

    /// Further files have the columns of the first. One without a name can be in no study: spreadsheet
    /// programs end their lines with separators of columns that are empty.
    fn all_columns(&mut self, found: &[String]) {
        if self.table.columns.is_empty() {
            self.table.columns = found.iter().filter(|name| !name.is_empty()).cloned().collect();
        }
    }

    fn surveys(&self) -> bool {
        true
    }

    fn takes_more(&self) -> bool {
        self.table.rows < self.most
    }

    fn row(&mut self, row: &mut Row<'_>, cells: &[TableCell<'_>]) -> Result<(), Error> {
        self.table.rows += 1;
        (self.each)(&self.table.columns, cells, &|| row.files.show(row.place));
        Ok(())
    }
}

/// Hands the first `rows` rows of the data to `each`, every one with the names of the columns, a cell for
/// each of them, and what says in words where it stands.
///
/// # Errors
/// When files cannot be read, have no rows or two columns of one name, or rows of them have too few fields.
pub fn peek<'a>(
    data: impl Into<DataLocation<'a>>,
    rows: u64,
    each: &mut SeeRow<'_>,
) -> Result<PeekedTable, Error> {
    let mut complaints = Complaints::default();
    let mut peeking = Peeking { table: PeekedTable::default(), most: rows.max(1), each };
    let (files, _) = read(data.into(), &mut peeking, &mut complaints)?;
    complaints.finish()?;
    Ok(PeekedTable { forms: files.forms().to_vec(), ..peeking.table })
}
