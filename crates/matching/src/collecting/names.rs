//! What a row is matched by: names that are distinct within a party, whatever identifiers repeat.
//!
//! Rows that share an identifier number themselves: the i-th row of party 0 that carries `x` and the j-th of
//! party 1 are joined by the name `(x, i, j)` and by no other. So a row of party 0 lists
//! `(x, i, 0), (x, i, 1), ..`, one of party 1 `(x, 0, j), (x, 1, j), ..`. No name is in two rows of one
//! party: a peer that sees the hashed lists does not see which rows share an identifier, nor how many do.

use crate::identifiers::{IdentifierSource, NameDomain};
use base::{Error, Rng};

/// The row has no name here: its place is filled with a random one.
pub const NONE: u32 = u32::MAX;

/// A row's number among the rows of its party that carry one identifier, for every row and key.
pub struct IdentifierOccurrences {
    /// [`NONE`] where the row has no identifier, or one that repeats beyond the cap.
    numbers: Vec<u32>,
    keys: usize,
    /// Identifiers that rows lost because more rows than the cap carry them.
    pub dropped: u64,
}

/// An identifier of a row: a keyed hash, a random rank, and where it stands.
struct Entry {
    tag: [u8; 16],
    rank: u32,
    place: u64,
}

impl IdentifierOccurrences {
    /// Numbers the rows by identifier: the rows that carry one are in a uniform order, and those from number
    /// `cap` on lose it. A row that carries an identifier twice counts once.
    ///
    /// # Errors
    /// When an identifier cannot be read. When the first `test` rows and the others share an identifier,
    /// where `test` is given: it names two rows, counted from 1.
    pub fn find(
        identifiers: &dyn IdentifierSource,
        cap: u32,
        test: Option<u64>,
        rng: &mut Rng,
    ) -> Result<Self, Error> {
        let keys = identifiers.keys();
        let mut ranks: Vec<u32> = (0..identifiers.rows() as u32).collect();
        rng.shuffle(&mut ranks);
        let mut entries = read_entries(identifiers, &ranks, rng)?;
        // 128 bits of a keyed hash: two identifiers do not meet by chance.
        entries.sort_unstable_by_key(|e| (e.tag, e.rank, e.place));
        let mut numbers = vec![NONE; identifiers.rows() as usize * keys];
        let mut dropped = 0;
        let row = |entry: &Entry| entry.place / keys as u64;
        for rows in entries.chunk_by(|a, b| a.tag == b.tag) {
            check_lists(rows.iter().map(row), test)?;
            // One rank is one row.
            for (number, same) in (0..).zip(rows.chunk_by(|a, b| a.rank == b.rank)) {
                match number < cap {
                    true => numbers[same[0].place as usize] = number,
                    false => dropped += 1,
                }
            }
        }
        Ok(Self { numbers, keys, dropped })
    }

    /// The number of a row for one of its identifiers, or [`NONE`].
    pub fn number(&self, row: u32, key: usize) -> u32 {
        self.numbers[row as usize * self.keys + key]
    }
}

fn read_entries(
    identifiers: &dyn IdentifierSource,
    ranks: &[u32],
    rng: &mut Rng,
) -> Result<Vec<Entry>, Error> {
    let (hash_key, keys): ([u8; 32], _) = (rng.bytes(), identifiers.keys());
    let (mut entries, mut name) = (Vec::new(), Vec::new());
    for (row, &rank) in (0..).zip(ranks) {
        for key in 0..keys {
            identifiers.read(row, key, &mut name)?;
            if name.is_empty() {
                continue;
            }
            identifiers.domain(row).mark(&mut name);
            let digest = blake3::keyed_hash(&hash_key, &name);
            let tag = *digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
            entries.push(Entry { tag, rank, place: u64::from(row) * keys as u64 + key as u64 });
        }
    }
    Ok(entries)
}

/// Rows of one identifier lie in one list.
fn check_lists(rows: impl Iterator<Item = u64> + Clone, test: Option<u64>) -> Result<(), Error> {
    let Some(test) = test else { return Ok(()) };
    let (first, last) = (rows.clone().min(), rows.max());
    match (first, last) {
        (Some(first), Some(last)) if first < test && last >= test => Err(Error::input(format!(
            "rows {} and {} carry the same identifier in both lists; a unit is in one arm: remove one",
            first + 1,
            last + 1
        ))),
        _ => Ok(()),
    }
}

/// The names of a party's rows, `width` of them each.
pub struct OccurrenceNames<'a> {
    identifiers: &'a dyn IdentifierSource,
    occurrences: IdentifierOccurrences,
    /// Numbers that the peer's rows may have: names per identifier.
    others: u32,
    /// Whether this is party 0.
    first: bool,
    /// Fillers are hashes under this key.
    key: [u8; 32],
}

impl<'a> OccurrenceNames<'a> {
    /// The names of these rows, where a row of the peer has a number below `others`.
    pub fn new(
        identifiers: &'a dyn IdentifierSource,
        occurrences: IdentifierOccurrences,
        others: u32,
        first: bool,
        rng: &mut Rng,
    ) -> Self {
        Self { identifiers, occurrences, others, first, key: rng.bytes() }
    }

    /// Names of a row, fillers included.
    pub fn width(&self) -> usize {
        self.identifiers.keys() * self.others as usize
    }

    /// Identifiers that rows lost because more rows than the cap carry them.
    pub fn dropped(&self) -> u64 {
        self.occurrences.dropped
    }

    /// Name `index` of `row`, ready to be hashed into the group.
    ///
    /// # Errors
    /// When an identifier cannot be read.
    pub fn read(&self, row: u32, index: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let (key, theirs) = (index / self.others as usize, (index % self.others as usize) as u32);
        let ours = self.occurrences.number(row, key);
        if ours == NONE {
            let mut place = [0; 12];
            place[..4].copy_from_slice(&row.to_le_bytes());
            place[4..].copy_from_slice(&(index as u64).to_le_bytes());
            into.clear();
            into.extend_from_slice(blake3::keyed_hash(&self.key, &place).as_bytes());
            NameDomain::Filler.mark(into);
            return Ok(());
        }
        self.identifiers.read(row, key, into)?;
        let numbers = if self.first { [ours, theirs] } else { [theirs, ours] };
        numbers.iter().for_each(|number| into.extend_from_slice(&number.to_le_bytes()));
        self.identifiers.domain(row).mark(into);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use std::collections::{BTreeMap, BTreeSet};

    /// Rows of identifiers, empty where there is none.
    struct Rows(Vec<Vec<&'static str>>);

    impl IdentifierSource for Rows {
        fn rows(&self) -> u64 {
            self.0.len() as u64
        }
        fn keys(&self) -> usize {
            self.0[0].len()
        }
        fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
            into.clear();
            into.extend_from_slice(self.0[row as usize][key].as_bytes());
            Ok(())
        }
    }

    fn all(rows: &Rows, cap: u32, others: u32, first: bool) -> (Vec<BTreeSet<Vec<u8>>>, u64) {
        let mut rng = Seed::from_bytes([cap as u8; 32]).into_rng();
        let occurrences = IdentifierOccurrences::find(rows, cap, None, &mut rng).unwrap();
        let names = OccurrenceNames::new(rows, occurrences, others, first, &mut rng);
        let read = |row, index| {
            let mut name = Vec::new();
            names.read(row, index, &mut name).unwrap();
            name
        };
        let of_row = |row| (0..names.width()).map(|index| read(row, index)).collect();
        ((0..rows.0.len() as u32).map(of_row).collect(), names.dropped())
    }

    fn sample() -> [Rows; 2] {
        let a = [["x", "y"], ["x", ""], ["", "x"], ["z", "z"], ["", ""]];
        let b = [["x", "z"], ["y", "x"], ["w", ""]];
        [Rows(a.map(|r| r.to_vec()).to_vec()), Rows(b.map(|r| r.to_vec()).to_vec())]
    }

    #[test]
    fn names_are_distinct_and_meet_once_per_shared_identifier() {
        let [a, b] = sample();
        let ((of_a, lost_a), (of_b, lost_b)) = (all(&a, 3, 2, true), all(&b, 2, 3, false));
        assert_eq!([lost_a, lost_b], [0, 0]);
        for (names, width) in [(&of_a, 4), (&of_b, 6)] {
            assert!(names.iter().all(|row| row.len() == width), "a name repeats in a row");
            let distinct: BTreeSet<_> = names.iter().flatten().collect();
            assert_eq!(distinct.len(), width * names.len(), "a name is in two rows");
        }
        let mut met = BTreeMap::new();
        for (i, row) in of_a.iter().enumerate() {
            for (j, other) in of_b.iter().enumerate() {
                met.insert((i, j), row.intersection(other).count());
            }
        }
        met.retain(|_, count| *count > 0);
        let expected =
            [((0, 0), 1), ((0, 1), 2), ((1, 0), 1), ((1, 1), 1), ((2, 0), 1), ((2, 1), 1), ((3, 0), 1)];
        assert_eq!(met, BTreeMap::from(expected));
    }

    #[test]
    fn rows_beyond_the_cap_lose_the_identifier() {
        let [a, b] = sample();
        let ((of_a, lost), (of_b, _)) = (all(&a, 2, 2, true), all(&b, 2, 2, false));
        assert_eq!(lost, 1, "three rows carry x");
        let with =
            |other: usize| of_a.iter().filter(|row| row.intersection(&of_b[other]).count() > 0).count();
        // Row 0 of B: two rows by x, one by z.
        assert_eq!(with(0), 3);
        assert!(of_a.iter().all(|row| row.len() == 4));
    }

    #[test]
    fn an_identifier_in_both_lists_is_an_input_error() {
        let [a, _] = sample();
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        let mut find =
            |test| IdentifierOccurrences::find(&a, 9, Some(test), &mut rng).err().map(|e| e.to_string());
        assert!(find(1).unwrap().starts_with("rows 1 and 3 carry the same identifier in both lists"));
        assert_eq!([find(3), find(5)], [None, None]);
    }
}
