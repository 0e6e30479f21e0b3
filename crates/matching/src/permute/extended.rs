//! Extended permutations: rows into slots, where a row may stand in many slots or in none.
//!
//! Permute, so that the slots of one row come together and its row lies in the first of them; replicate, each
//! slot from the one before it; permute to where the slots belong.

use super::gates::SwitchGates;
use super::network::{SwitchSettings, route, switches};
use super::{Half, PlaneRows, Switchboard};
use base::Error;
use net::Session;
use zeroize::Zeroize;

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
        if map.iter().any(|&row| row as usize >= rows) {
            return Err(Error::misuse("a slot of a row that is not there"));
        }
        let slots = map.len();
        // Slots by row; `order[k]` is the slot that stands at place k.
        let mut order: Vec<u32> = (0..slots as u32).collect();
        order.sort_unstable_by_key(|&slot| (map[slot as usize], slot));
        let row_at = |place: usize| map[order[place] as usize];
        let mut copies = SwitchSettings::straight(slots.saturating_sub(1));
        let wires = rows.max(slots);
        let (mut used, mut permutation) = (vec![false; wires], vec![u32::MAX; wires]);
        for place in 0..slots {
            if place > 0 && row_at(place) == row_at(place - 1) {
                copies.set(place - 1, true);
            } else {
                permutation[place] = row_at(place);
                used[row_at(place) as usize] = true;
            }
        }
        let mut free = (0..wires as u32).filter(|&row| !used[row as usize]);
        for place in permutation.iter_mut().filter(|place| **place == u32::MAX) {
            *place = free.next().expect("as many places as rows are free");
        }
        let first = route(&permutation)?;
        permutation.zeroize();
        let mut place_of = vec![0; slots];
        order.iter().enumerate().for_each(|(place, &slot)| place_of[slot as usize] = place as u32);
        let last = route(&place_of)?;
        place_of.zeroize();
        order.zeroize();
        Ok(Self { rows, slots, first, copies, last })
    }

    /// Slots of the map.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
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
        let rows = self.serve_permutation(session, rows.resized(wires))?;
        let mut rows = rows.resized(slots);
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
        let rows = self.permute(session, rows.resized(wires), map.first)?;
        let mut rows = rows.resized(slots);
        session.step("copy", |session| {
            let half = Half::Choose(&map.copies);
            self.run(session, &mut rows, slots.saturating_sub(1) as u64, copies(slots), &half)
        })?;
        self.permute(session, rows, map.last)
    }
}
