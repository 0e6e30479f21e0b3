//! Extended permutations: rows into slots, where a row may stand in many slots or in none.
//!
//! Permute, so that the slots of one row come together and its row lies in the first of them; replicate, each
//! slot from the one before it; permute to where the slots belong.

use super::gates::SwitchGates;
use super::network::{SwitchSettings, route, switches};
use super::{Half, PlaneRows, Switchboard};
use crate::spill::{SpillColumn, SpillQueue, SpillRoom};
use base::Error;
use net::Session;
use zeroize::{Zeroize, Zeroizing};

/// A map of slots to rows made ready: settings of both networks and of the copies between them.
pub struct ExtendedMap {
    rows: usize,
    slots: usize,
    first: SwitchSettings,
    copies: SwitchSettings,
    last: SwitchSettings,
}

impl ExtendedMap {
    /// Slot t gets row `map[t]` of so many rows.
    ///
    /// # Errors
    /// `Misuse` when the map names a row that is not there.
    pub fn new(rows: usize, map: &[u32]) -> Result<Self, Error> {
        let each = |take: &mut dyn FnMut(u32) -> Result<(), Error>| map.iter().try_for_each(|row| take(*row));
        Self::within(&SpillRoom::new(None, None), [rows, map.len()], each)
    }

    /// The same for a map of so many slots that `each` hands out; what is sorted lies in `room`.
    pub(crate) fn within(
        room: &SpillRoom,
        [rows, slots]: [usize; 2],
        each: impl FnOnce(&mut dyn FnMut(u32) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut sorted = SlotOrder::new(room, [rows, slots]);
        // The slots of row 0 come first anyway: there may be so many of them that no part of memory holds
        // them.
        let shift = (rows.saturating_sub(1) as u32).leading_zeros();
        let (mut others, mut slot) = (SpillColumn::<8>::new(room, slots as u64), 0u32);
        each(&mut |row| {
            if row as usize >= rows {
                return Err(Error::misuse("a slot of a row that is not there"));
            }
            match row {
                0 => sorted.push(0, slot)?,
                _ => others.push(&(u64::from(row) << shift << 32 | u64::from(slot)).to_be_bytes())?,
            }
            slot += 1;
            Ok(())
        })?;
        let mut others = others.sorted();
        while let Some(bytes) = others.pop()? {
            let entry = u64::from_be_bytes(bytes);
            sorted.push((entry >> 32 >> shift) as u32, entry as u32)?;
        }
        drop(others);
        sorted.routed(rows)
    }

    /// Slots of the map.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }
}

/// Slots in the order of their rows, as they come.
struct SlotOrder {
    /// The slot at each place.
    slots: SpillQueue,
    place: usize,
    last: Option<u32>,
    copies: SwitchSettings,
    /// The row at each place that is its first one.
    first: Vec<u32>,
    /// Rows that stand somewhere, packed.
    used: Zeroizing<Vec<u64>>,
}

/// Bytes of a block of [`SlotOrder::slots`].
const BLOCK: usize = 1 << 16;

impl SlotOrder {
    fn new(room: &SpillRoom, [rows, slots]: [usize; 2]) -> Self {
        let wires = rows.max(slots);
        Self {
            slots: SpillQueue::new(room, BLOCK),
            place: 0,
            last: None,
            copies: SwitchSettings::straight(slots.saturating_sub(1)),
            first: vec![u32::MAX; wires],
            used: Zeroizing::new(vec![0; wires.div_ceil(64)]),
        }
    }

    fn push(&mut self, row: u32, slot: u32) -> Result<(), Error> {
        if self.last.replace(row) == Some(row) {
            self.copies.set(self.place - 1, true);
        } else {
            self.first[self.place] = row;
            self.used[row as usize / 64] |= 1 << (row % 64);
        }
        self.place += 1;
        self.slots.push(&slot.to_le_bytes())
    }

    /// Both networks. One is routed after the other: it takes more memory than all that stays.
    fn routed(mut self, rows: usize) -> Result<ExtendedMap, Error> {
        let mut free = (0..self.first.len()).filter(|row| kernels::bit(&self.used, *row) == 0);
        for place in self.first.iter_mut().filter(|place| **place == u32::MAX) {
            *place = free.next().expect("as many places as rows are free") as u32;
        }
        let first = route(std::mem::take(&mut self.first))?;
        let mut place_of = vec![0; self.place];
        let mut place = 0;
        self.slots.each_block(|block| {
            for slot in block.as_chunks().0 {
                place_of[u32::from_le_bytes(*slot) as usize] = place;
                place += 1;
            }
            Ok(())
        })?;
        let Self { place: slots, copies, .. } = &mut self;
        let copies = std::mem::replace(copies, SwitchSettings::straight(0));
        Ok(ExtendedMap { rows, slots: *slots, first, copies, last: route(place_of)? })
    }
}

/// They say which slots are of one row.
impl Drop for SlotOrder {
    fn drop(&mut self) {
        self.first.zeroize();
    }
}

/// Gates of an extended permutation of `rows` rows into `slots` slots.
#[must_use]
pub fn gates(rows: u64, slots: u64) -> u64 {
    switches(rows.max(slots)) + slots.saturating_sub(1) + switches(slots)
}

fn copies(slots: usize) -> impl Iterator<Item = SwitchGates> {
    (slots > 1).then_some(SwitchGates::Copies { first: 1, len: slots.saturating_sub(1) }).into_iter()
}

impl Switchboard {
    /// This party's shares of slots that the peer fills from rows. `rows` are its shares of them, or the
    /// rows.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn serve_extension(
        &mut self,
        session: &mut Session,
        rows: PlaneRows,
        slots: usize,
    ) -> Result<PlaneRows, Error> {
        let wires = rows.len().max(slots);
        let rows = self.serve_permutation(session, rows.resized(wires)?)?;
        let mut rows = rows.resized(slots)?;
        session.step("copy", |session| {
            self.run(session, &mut rows, slots.saturating_sub(1) as u64, copies(slots), &Half::Serve)
        })?;
        self.serve_permutation(session, rows)
    }

    /// This party's shares of slots that it fills itself. `rows` are its shares of the rows; zeros when the
    /// peer holds them.
    ///
    /// # Errors
    /// Those of the channel, and a map from another number of rows.
    pub fn extend(
        &mut self,
        session: &mut Session,
        rows: PlaneRows,
        map: ExtendedMap,
    ) -> Result<PlaneRows, Error> {
        if rows.len() != map.rows {
            return Err(Error::misuse("a map from another number of rows"));
        }
        let (wires, slots) = (map.rows.max(map.slots), map.slots);
        let rows = self.permute(session, rows.resized(wires)?, map.first)?;
        let mut rows = rows.resized(slots)?;
        session.step("copy", |session| {
            let half = Half::Choose(&map.copies);
            self.run(session, &mut rows, slots.saturating_sub(1) as u64, copies(slots), &half)
        })?;
        self.permute(session, rows, map.last)
    }
}
