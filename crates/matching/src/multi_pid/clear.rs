//! The same pairs, where one process has the rows of both: to try a study before it is run.

use super::CHUNK;
use super::graph::{EdgeOrder, TaggedCells, pick};
use crate::identifiers::IdentifierSource;
use crate::matcher::{ContaminatedRule, MatchOptions};
use crate::spill::{QueueRecords, SpillColumn, SpillRoom, distinct};
use crate::tags::{TAG_BYTES, tagged};
use base::Error;

/// For each row of party 0 the row of party 1 that it is paired with. Rows of party 0's first list come
/// first, where `options` have lists.
///
/// # Errors
/// When a row cannot be read, or an identifier stands in two rows of a party.
pub fn pairs_in_clear(
    rows: [&dyn IdentifierSource; 2],
    options: &MatchOptions,
) -> Result<Vec<Option<u32>>, Error> {
    let room = SpillRoom::new(None, None);
    let cells = [cells(rows[0], &room)?, cells(rows[1], &room)?];
    let order = EdgeOrder::new(rows.map(IdentifierSource::keys), &options.weights);
    let drop = options.contaminated == ContaminatedRule::Drop;
    let counts = rows.map(IdentifierSource::rows);
    let (mut pairs, _) = pick(cells, counts, &order, options.lists, (drop, &room))?;
    (0..counts[0] as u32).map(|row| pairs.partner(row)).collect()
}

/// Hashes of all identifiers with the cells that they stand in: no group element is needed among friends.
fn cells(rows: &dyn IdentifierSource, room: &SpillRoom) -> Result<TaggedCells, Error> {
    let keys = rows.keys();
    let mut tags = SpillColumn::new(room, rows.rows() * keys as u64);
    let mut name = Vec::new();
    for row in 0..rows.rows() as u32 {
        for key in 0..keys {
            rows.read(row, key, &mut name)?;
            if !name.is_empty() {
                let cell = row * keys as u32 + key as u32;
                tags.push(&tagged(blake3::hash(&name).as_bytes(), cell).to_be_bytes())?;
            }
        }
    }
    let tags = distinct(tags, (room, TAG_BYTES as usize, CHUNK))?;
    tags.map(QueueRecords::new).ok_or_else(|| Error::misuse("an identifier stands in two rows of a party"))
}
