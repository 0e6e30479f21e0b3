//! One party's rows as the peer is to see them: K names each, every name once, in a secret order.

use crate::identifiers::{IdentifierSource, NameDomain};
use crate::matcher::RepeatRule;
use crate::tags::{PlacedTag, place, tag, tagged};
use base::{Error, Rng, Secret, limits};

/// Cells (places of identifiers) are numbered row by row: cell `row K + key`.
pub(super) type NameCell = u32;

/// Rows with repeats and gaps filled, in a secret order.
pub(super) struct ShuffledRows<'a> {
    identifiers: &'a dyn IdentifierSource,
    keys: usize,
    /// Input rows in the order in which the peer sees them.
    pub order: Vec<u32>,
    /// Cells whose name must not be used, a bit each.
    blank: Vec<u64>,
    /// Key of the random names of such cells.
    fillers: Secret<[u8; 32]>,
}

impl<'a> ShuffledRows<'a> {
    /// Reads all names once, and draws the order: rows below `first` in one secret order, then the others in
    /// another.
    ///
    /// # Errors
    /// When a name is longer than its limit or cannot be read; when the only name of a row is empty; when
    /// there are more than `limits::ROWS` cells; when a name repeats and `repeats` says so.
    pub fn new(
        identifiers: &'a dyn IdentifierSource,
        first: u64,
        repeats: RepeatRule,
        rng: &mut Rng,
    ) -> Result<Self, Error> {
        let (rows, keys) = (identifiers.rows(), identifiers.keys());
        let cells = rows * keys as u64;
        if cells > limits::ROWS {
            return Err(Error::limit("limits::ROWS, identifiers of all rows", cells, limits::ROWS));
        }
        let mut this = Self {
            identifiers,
            keys,
            order: (0..rows as u32).collect(),
            blank: vec![0; cells.div_ceil(64) as usize],
            fillers: Secret::new(rng.bytes()),
        };
        this.make_unique(repeats, rng)?;
        let (first, rest) = this.order.split_at_mut(first as usize);
        rng.shuffle(first);
        rng.shuffle(rest);
        Ok(this)
    }

    pub fn len(&self) -> u64 {
        self.order.len() as u64
    }

    /// Blanks empty cells, and all but the best of those that share a name.
    fn make_unique(&mut self, repeats: RepeatRule, rng: &mut Rng) -> Result<(), Error> {
        let mut names = self.tags(rng)?;
        names.sort_unstable();
        for run in names.chunk_by(|a, b| tag(*a) == tag(*b)) {
            let cells = run.iter().map(|&entry| place(entry));
            let by_priority = |&cell: &NameCell| (cell % self.keys as u32, cell / self.keys as u32);
            let best = cells.clone().min_by_key(by_priority).expect("a run is not empty");
            for cell in cells.filter(|&cell| cell != best) {
                let rows = [best, cell].map(|cell| cell / self.keys as u32);
                if repeats == RepeatRule::Error && rows[0] != rows[1] {
                    return Err(crate::identifiers::repeated(rows[0].min(rows[1]), rows[0].max(rows[1])));
                }
                self.set_blank(cell);
            }
        }
        Ok(())
    }

    /// A tag per name, under a fresh key: equal ones belong to equal names (but for one chance in 2^53 among
    /// four million).
    fn tags(&mut self, rng: &mut Rng) -> Result<Vec<PlacedTag>, Error> {
        let (key, mut name) = (rng.bytes(), Vec::new());
        let mut tags = crate::memory::reserve("own identifiers", self.len() * self.keys as u64)?;
        for row in 0..self.order.len() as u32 {
            for column in 0..self.keys {
                let cell = row * self.keys as u32 + column as u32;
                self.identifiers.read(row, column, &mut name)?;
                if name.is_empty() && self.keys > 1 {
                    self.set_blank(cell);
                    continue;
                }
                crate::identifiers::check_len(row.into(), name.len() as u64)?;
                self.identifiers.domain(row).mark(&mut name);
                tags.push(tagged(blake3::keyed_hash(&key, &name).as_bytes(), cell));
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

    /// The name to hash for cell `at` of the secret order: an identifier, or a random name where there is
    /// none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn name(&self, at: u64, into: &mut Vec<u8>) -> Result<(), Error> {
        let (row, key) = (self.order[at as usize / self.keys], at as usize % self.keys);
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
