//! One party's rows as the peer is to see them: K names each, every name once, in a secret order.

use crate::chunks::CHUNK;
use crate::identifiers::{IdentifierSource, NameDomain};
use crate::matcher::RepeatRule;
use crate::placed::PlacedItems;
use crate::spill::{QueueRecords, SpillColumn, SpillQueue, SpillRoom};
use crate::tags::{PLACED_BYTES, place, tag, tagged};
use crate::terms;
use base::{Error, Rng, Secret, limits};
use zeroize::Zeroize;

/// Cells (places of identifiers) are numbered row by row: cell `row K + key`.
pub(super) type NameCell = u32;

/// Rows with repeats and gaps filled.
pub(super) struct UniqueRows<'a> {
    identifiers: &'a dyn IdentifierSource,
    keys: usize,
    /// Cells whose name must not be used, a bit each.
    blank: Vec<u64>,
    /// Key of the random names of such cells.
    fillers: Secret<[u8; 32]>,
}

/// The same in a secret order.
pub(super) struct ShuffledRows {
    /// Names of all cells.
    pub names: PlacedItems,
    /// The input row at each place.
    pub order: QueueRecords<4>,
}

impl<'a> UniqueRows<'a> {
    /// Reads all names once. Tags of names are within `room`.
    ///
    /// # Errors
    /// When a name is longer than its limit or cannot be read; when the only name of a row is empty; when
    /// there are more than `limits::ROWS` cells; when a name repeats and `repeats` says so.
    pub fn new(
        identifiers: &'a dyn IdentifierSource,
        repeats: RepeatRule,
        rng: &mut Rng,
        room: &SpillRoom,
    ) -> Result<Self, Error> {
        let (rows, keys) = (identifiers.rows(), identifiers.keys());
        let cells = rows * keys as u64;
        if cells > limits::ROWS {
            return Err(Error::limit("limits::ROWS, identifiers of all rows", cells, limits::ROWS));
        }
        let blank = vec![0; cells.div_ceil(64) as usize];
        let mut this = Self { identifiers, keys, blank, fillers: Secret::new(rng.bytes()) };
        this.make_unique(repeats, rng, room)?;
        Ok(this)
    }

    /// Draws the order, rows below `first` in one and the others in another, and deals names to it. It and
    /// its inverse, eight bytes per row, are in memory meanwhile.
    ///
    /// # Errors
    /// When a name cannot be read, or has to go to disk and cannot.
    pub fn shuffled(&self, first: u64, rng: &mut Rng, room: &SpillRoom) -> Result<ShuffledRows, Error> {
        let mut order: Vec<u32> = (0..self.identifiers.rows() as u32).collect();
        let (front, rest) = order.split_at_mut(first as usize);
        rng.shuffle(front);
        rng.shuffle(rest);
        let mut rows = SpillQueue::new(room, CHUNK as usize * size_of::<u32>());
        order.iter().try_for_each(|row| rows.push(&row.to_be_bytes()))?;
        let mut places = terms::places(&order);
        order.zeroize();
        drop(order);
        let names = self.deal(&places, room);
        places.zeroize();
        Ok(ShuffledRows { names: names?, order: QueueRecords::new(rows) })
    }

    fn deal(&self, places: &[u32], room: &SpillRoom) -> Result<PlacedItems, Error> {
        let mut names = PlacedItems::new((places.len() * self.keys) as u64, room);
        let mut name = Vec::new();
        for (row, place) in (0..).zip(places) {
            for key in 0..self.keys {
                self.name(row, key, &mut name)?;
                names.put(place * self.keys as u32 + key as u32, &name)?;
            }
        }
        Ok(names)
    }

    /// Blanks empty cells, and all but the best of those that share a name.
    fn make_unique(&mut self, repeats: RepeatRule, rng: &mut Rng, room: &SpillRoom) -> Result<(), Error> {
        let mut names = self.tags(rng, room)?.sorted();
        let (mut run, mut last) = (Vec::<NameCell>::new(), None);
        loop {
            let entry = names.pop()?.map(u128::from_be_bytes);
            if entry.map(tag) != last {
                self.keep_best(&run, repeats)?;
                run.clear();
                last = entry.map(tag);
            }
            match entry {
                Some(entry) => run.push(place(entry)),
                None => return Ok(()),
            }
        }
    }

    /// Blanks all but the best of cells of one name.
    fn keep_best(&mut self, cells: &[NameCell], repeats: RepeatRule) -> Result<(), Error> {
        let by_priority = |cell: &NameCell| (cell % self.keys as u32, cell / self.keys as u32);
        let Some(best) = cells.iter().copied().min_by_key(by_priority) else { return Ok(()) };
        for &cell in cells.iter().filter(|&&cell| cell != best) {
            let rows = [best, cell].map(|cell| cell / self.keys as u32);
            if repeats == RepeatRule::Error && rows[0] != rows[1] {
                return Err(crate::identifiers::repeated(rows[0].min(rows[1]), rows[0].max(rows[1])));
            }
            self.set_blank(cell);
        }
        Ok(())
    }

    /// A tag per name, under a fresh key: equal ones belong to equal names (but for one chance in 2^53 among
    /// four million).
    fn tags(&mut self, rng: &mut Rng, room: &SpillRoom) -> Result<SpillColumn<PLACED_BYTES>, Error> {
        let (key, mut name): ([u8; 32], _) = (rng.bytes(), Vec::new());
        let (rows, keys) = (self.identifiers.rows(), self.keys as u32);
        let mut tags = SpillColumn::new(room, rows * u64::from(keys));
        for row in 0..rows as u32 {
            for column in 0..keys {
                let cell = row * keys + column;
                self.identifiers.read(row, column as usize, &mut name)?;
                if name.is_empty() && keys > 1 {
                    self.set_blank(cell);
                    continue;
                }
                crate::identifiers::check_len(row.into(), name.len() as u64)?;
                self.identifiers.domain(row).mark(&mut name);
                tags.push(&tagged(blake3::keyed_hash(&key, &name).as_bytes(), cell).to_be_bytes())?;
            }
        }
        Ok(tags)
    }

    fn set_blank(&mut self, cell: NameCell) {
        self.blank[cell as usize / 64] |= 1 << (cell % 64);
    }

    fn is_blank(&self, cell: NameCell) -> bool {
        self.blank[cell as usize / 64] >> (cell % 64) & 1 == 1
    }

    /// The name to hash for a cell: an identifier, or a random name where there is none.
    fn name(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let cell = row * self.keys as u32 + key as u32;
        if self.is_blank(cell) {
            let name = blake3::keyed_hash(self.fillers.expose(), &cell.to_le_bytes());
            into.clear();
            into.extend_from_slice(name.as_bytes());
            NameDomain::Filler.mark(into);
            return Ok(());
        }
        self.identifiers.read(row, key, into)?;
        self.identifiers.domain(row).mark(into);
        Ok(())
    }
}
