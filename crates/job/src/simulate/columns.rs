//! The columns of all parties along the joined rows, for an engine that may see them all.

use super::SimulationProgress;
use super::join::JoinedTable;
use crate::align::{Aligned, RangeRows};
use crate::prepare::Built;
use base::{Error, PartyId};
use program::{Holder, ShardRows};
use std::sync::Arc;

/// Where a column comes from.
#[derive(Clone, Copy)]
enum Feed {
    /// One of the readers.
    Reader(usize),
    /// The match: whether all have the row in this slot.
    Shared(usize),
}

/// All columns of a program.
pub(super) struct JoinedColumns<'a> {
    rows: u64,
    feeds: Vec<Feed>,
    readers: Vec<RangeRows>,
    /// By party and slot.
    along: &'a [Vec<Arc<Aligned>>],
    progress: SimulationProgress<'a>,
}

impl<'a> JoinedColumns<'a> {
    /// Of joined rows.
    ///
    /// # Errors
    /// When a column is of nobody's file.
    pub fn new(
        joined: &'a JoinedTable,
        built: &Built,
        progress: SimulationProgress<'a>,
    ) -> Result<Self, Error> {
        let (mut readers, mut places) = (Vec::new(), Vec::new());
        for (party, slots) in joined.along.iter().enumerate() {
            places.push(readers.len());
            for aligned in slots {
                let me = PartyId(party as u8);
                readers.push(RangeRows::new(aligned.clone(), built, me, 0..joined.rows)?);
            }
        }
        // Of a party that brings one row a slot is all there is: several advertisers have one each.
        let slot_of =
            |column: usize| built.lift.as_ref().map_or(0, |(_, layout)| usize::from(layout.slots[column]));
        let feed = |(at, column): (usize, &program::RowColumn)| match column.holder {
            Holder::Party(party) => {
                let slots = joined.along[party.index()].len();
                Ok(Feed::Reader(places[party.index()] + slot_of(at).min(slots - 1)))
            }
            Holder::Shared => Ok(Feed::Shared(slot_of(at))),
            Holder::Public => Err(Error::misuse(format!("column {:?} is of nobody's file", column.name))),
        };
        let feeds = built.program.columns.iter().enumerate().map(feed).collect::<Result<_, _>>()?;
        Ok(Self { rows: joined.rows, feeds, readers, along: &joined.along, progress })
    }
}

impl ShardRows for JoinedColumns<'_> {
    fn len(&self) -> u64 {
        self.rows
    }

    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        (self.progress)("computing, rows", from, self.rows);
        match self.feeds[column as usize] {
            Feed::Reader(at) => self.readers[at].read(column, from, into),
            Feed::Shared(slot) => {
                for (row, value) in (from..).zip(into) {
                    *value = 1;
                    for slots in self.along {
                        *value &= u128::from(slots[slot.min(slots.len() - 1)].has(row)?);
                    }
                }
                Ok(())
            }
        }
    }
}
