//! What a row is matched by: names that are distinct within a party, whatever identifiers repeat.
//!
//! Rows that share an identifier number themselves: the i-th row of party 0 that carries `x` and the j-th of
//! party 1 are joined by the name `(x, i, j)` and by no other. So a row of party 0 lists
//! `(x, i, 0), (x, i, 1), ..`, one of party 1 `(x, 0, j), (x, 1, j), ..`. No name is in two rows of one
//! party: a peer that sees the hashed lists does not see which rows share an identifier, nor how many do.
//!
//! Rows are read in their order and sent in a secret one. So identifiers, and numbers, are dealt to parts of
//! the order in which they are sent; a part is in memory while its names are hashed.

use super::parts::PartRows;
use crate::identifiers::{IdentifierSource, NameDomain};
use crate::spill::{SpillColumn, SpillDeal, SpillRoom};
use base::{Error, Rng};
use std::ops::Range;

/// The row has no name here: its place is filled with a random one.
const NONE: u32 = u32::MAX;

/// Bytes of an [`Entry`].
pub(super) const ENTRY_BYTES: usize = 16 + 4 + 4 + 1;
/// Bytes of an identifier in a part that are reckoned with, lengths, numbers and all.
const NAME_BYTES: u64 = 64;

/// An identifier of a row: a keyed hash, a random rank, and where it stands.
#[derive(Clone, Copy)]
struct Entry {
    tag: [u8; 16],
    /// One rank is one row.
    rank: u32,
    row: u32,
    key: u8,
}

impl Entry {
    /// Bytes that ascend as (tag, rank, key) does.
    fn to_bytes(self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..16].copy_from_slice(&self.tag);
        bytes[16..20].copy_from_slice(&self.rank.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.row.to_be_bytes());
        bytes[24] = self.key;
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let (tag, rest) = bytes.split_first_chunk().expect("a tag comes first");
        let [rank, row] = [0, 4].map(|at| u32::from_be_bytes(*rest[at..].first_chunk().expect("four bytes")));
        Self { tag: *tag, rank, row, key: rest[8] }
    }
}

/// The identifiers of all rows, of which those that are equal will lie side by side.
pub(super) struct RowIdentifiers {
    entries: SpillColumn<ENTRY_BYTES>,
}

impl RowIdentifiers {
    /// Reads all rows once.
    ///
    /// # Errors
    /// When an identifier cannot be read, or has to go to disk and cannot.
    pub fn read(identifiers: &dyn IdentifierSource, room: &SpillRoom, rng: &mut Rng) -> Result<Self, Error> {
        let (rows, keys) = (identifiers.rows(), identifiers.keys());
        let mut ranks: Vec<u32> = (0..rows as u32).collect();
        rng.shuffle(&mut ranks);
        let hash_key: [u8; 32] = rng.bytes();
        let (mut entries, mut name) = (SpillColumn::new(room, rows.saturating_mul(keys as u64)), Vec::new());
        for (row, &rank) in (0..).zip(&ranks) {
            for key in 0..keys {
                identifiers.read(row, key, &mut name)?;
                if name.is_empty() {
                    continue;
                }
                identifiers.domain(row).mark(&mut name);
                // 128 bits of a keyed hash: two identifiers do not meet by chance.
                let digest = blake3::keyed_hash(&hash_key, &name);
                let tag = *digest.as_bytes().first_chunk().expect("a digest has 32 bytes");
                entries.push(&Entry { tag, rank, row, key: key as u8 }.to_bytes())?;
            }
        }
        Ok(Self { entries })
    }

    /// Numbers the rows by identifier: the rows that carry one are in a uniform order, and those from number
    /// `cap` on lose it. A row that carries an identifier twice counts once. Hands out row, key and number;
    /// returns how many identifiers rows lost.
    ///
    /// # Errors
    /// When the first `test` rows and the others share an identifier, where `test` is given: it names two
    /// rows, counted from 1. What `take` says, and when what was read cannot be read back.
    fn number(
        self,
        cap: u32,
        test: Option<u64>,
        mut take: impl FnMut(u32, u8, u32) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let (mut entries, mut dropped) = (self.entries.sorted(), 0);
        let mut run: Option<(Entry, u32, [u32; 2])> = None;
        loop {
            let next = entries.pop()?.map(|bytes| Entry::from_bytes(&bytes));
            let (number, met) = match (&run, next) {
                (Some((last, number, [first, latest])), Some(next)) if last.tag == next.tag => {
                    let number = number + u32::from(last.rank != next.rank);
                    let again = last.rank == next.rank;
                    run = Some((next, number, [next.row.min(*first), next.row.max(*latest)]));
                    (number, if again { None } else { Some(next) })
                }
                (last, next) => {
                    if let Some((.., rows)) = last {
                        check_lists(*rows, test)?;
                    }
                    let Some(next) = next else { return Ok(dropped) };
                    run = Some((next, 0, [next.row; 2]));
                    (0, Some(next))
                }
            };
            match met {
                Some(entry) if number < cap => take(entry.row, entry.key, number)?,
                Some(_) => dropped += 1,
                None => {}
            }
        }
    }
}

/// Rows of one identifier lie in one list. `rows` are the first and the last.
fn check_lists([first, last]: [u32; 2], test: Option<u64>) -> Result<(), Error> {
    match test {
        Some(test) if u64::from(first) < test && u64::from(last) >= test => Err(Error::input(format!(
            "rows {} and {} carry the same identifier in both lists; a unit is in one arm: remove one",
            u64::from(first) + 1,
            u64::from(last) + 1
        ))),
        _ => Ok(()),
    }
}

/// How the names of a party's rows follow from their identifiers.
#[derive(Clone, Copy)]
pub(super) struct NameRule {
    /// Rows of this party that may carry an identifier.
    pub cap: u32,
    /// Numbers that the peer's rows may have: names per identifier.
    pub others: u32,
    /// Whether this is party 0.
    pub first: bool,
    /// Fillers are hashes under this key.
    pub filler: [u8; 32],
}

/// The names of a party's rows, as many of each, in the order in which they are sent.
pub(super) struct SentNames {
    rule: NameRule,
    keys: usize,
    parts: PartRows,
    /// By part: place, key and number of every identifier that has one.
    numbers: SpillDeal,
    /// By part: place and row, and of each identifier its length and its bytes, marked.
    names: SpillDeal,
    /// Identifiers that rows lost because more rows than the cap carry them.
    dropped: u64,
    part: NamePart,
}

/// The part that is in memory.
#[derive(Default)]
struct NamePart {
    number: Option<u64>,
    bytes: Vec<u8>,
    /// By place.
    rows: Vec<u32>,
    /// By place and key: where the marked identifier is, and its row's number.
    cells: Vec<(Range<usize>, u32)>,
}

impl SentNames {
    /// Numbers the rows. Names of row r are sent at `places[r]`.
    ///
    /// # Errors
    /// Those of reading back, and an identifier in both lists.
    pub fn number(
        rows: RowIdentifiers,
        (own, places): (&dyn IdentifierSource, &[u32]),
        (rule, test): (NameRule, Option<u64>),
        room: &SpillRoom,
    ) -> Result<Self, Error> {
        let keys = own.keys();
        let width = keys * rule.others as usize;
        let parts = PartRows::new(room, own.rows(), width, keys as u64 * NAME_BYTES);
        let (mut numbers, names) = (parts.deal(room), parts.deal(room));
        let dropped = rows.number(rule.cap, test, |row, key, number| {
            let place = places[row as usize];
            let mut record = [0; NUMBER_BYTES];
            record[..4].copy_from_slice(&place.to_le_bytes());
            record[4..8].copy_from_slice(&number.to_le_bytes());
            record[8] = key;
            numbers.push(parts.of(place.into()), &record)
        })?;
        Ok(Self { rule, keys, parts, numbers, names, dropped, part: NamePart::default() })
    }

    /// Reads the identifiers of all rows once more, before any name is asked for.
    ///
    /// # Errors
    /// When one cannot be read, or has to go to disk and cannot.
    pub fn deal(&mut self, own: &dyn IdentifierSource, places: &[u32]) -> Result<(), Error> {
        let (mut name, mut record) = (Vec::new(), Vec::new());
        for (row, place) in (0u32..).zip(places) {
            record.clear();
            record.extend([place.to_le_bytes(), row.to_le_bytes()].as_flattened());
            for key in 0..self.keys {
                own.read(row, key, &mut name)?;
                own.domain(row).mark(&mut name);
                record.extend((name.len() as u32).to_le_bytes());
                record.extend_from_slice(&name);
            }
            self.names.push(self.parts.of((*place).into()), &record)?;
        }
        Ok(())
    }

    /// Names of a row, fillers included.
    pub fn width(&self) -> usize {
        self.keys * self.rule.others as usize
    }

    /// Identifiers that rows lost because more rows than the cap carry them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Brings the names at these places into memory, which are of one message. Parts are met in their order.
    ///
    /// # Errors
    /// When they cannot be read back.
    pub fn meet(&mut self, places: &Range<u64>) -> Result<(), Error> {
        let number = self.parts.of(places.start) as u64;
        if places.is_empty() || self.part.number == Some(number) {
            return Ok(());
        }
        let (range, keys, part) = (self.parts.range(number), self.keys, &mut self.part);
        let count = (range.end - range.start) as usize;
        part.cells.clear();
        part.cells.resize(count * keys, (0..0, NONE));
        part.rows.clear();
        part.rows.resize(count, 0);
        self.numbers.take(number as usize, &mut part.bytes)?;
        for record in part.bytes.as_chunks::<NUMBER_BYTES>().0 {
            let at = (u64::from(word(record)) - range.start) as usize * keys;
            part.cells[at + usize::from(record[8])].1 = word(&record[4..]);
        }
        self.names.take(number as usize, &mut part.bytes)?;
        let mut at = 0;
        while at < part.bytes.len() {
            let place = (u64::from(word(&part.bytes[at..])) - range.start) as usize;
            part.rows[place] = word(&part.bytes[at + 4..]);
            at += 8;
            for key in 0..keys {
                let start = at + 4;
                at = start + word(&part.bytes[at..]) as usize;
                part.cells[place * keys + key].0 = start..at;
            }
        }
        part.number = Some(number);
        Ok(())
    }

    /// Name `index` of the row at `place`, which [`SentNames::meet`] has met, ready to be hashed into the
    /// group.
    pub fn read(&self, place: u64, index: usize, into: &mut Vec<u8>) {
        let NameRule { others, first, filler, .. } = &self.rule;
        let (key, theirs) = (index / *others as usize, (index % *others as usize) as u32);
        let place = (place % self.parts.rows()) as usize;
        let (span, ours) = &self.part.cells[place * self.keys + key];
        into.clear();
        if *ours == NONE {
            let mut place_bytes = [0; 12];
            place_bytes[..4].copy_from_slice(&self.part.rows[place].to_le_bytes());
            place_bytes[4..].copy_from_slice(&(index as u64).to_le_bytes());
            into.extend_from_slice(blake3::keyed_hash(filler, &place_bytes).as_bytes());
            NameDomain::Filler.mark(into);
            return;
        }
        let (mark, identifier) = self.part.bytes[span.clone()].split_last().expect("it is marked");
        into.extend_from_slice(identifier);
        let numbers = if *first { [*ours, theirs] } else { [theirs, *ours] };
        numbers.iter().for_each(|number| into.extend_from_slice(&number.to_le_bytes()));
        into.push(*mark);
    }
}

/// Bytes of a place, a number and a key.
pub(super) const NUMBER_BYTES: usize = 4 + 4 + 1;

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(*bytes.first_chunk().expect("four bytes"))
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
        let (mut rng, room) = (Seed::from_bytes([cap as u8; 32]).into_rng(), SpillRoom::new(None, None));
        let read = RowIdentifiers::read(rows, &room, &mut rng).unwrap();
        let rule = NameRule { cap, others, first, filler: rng.bytes() };
        // Sent from the last row on.
        let places: Vec<u32> = (0..rows.0.len() as u32).rev().collect();
        let mut names = SentNames::number(read, (rows, &places), (rule, None), &room).unwrap();
        names.deal(rows, &places).unwrap();
        let mut of_row = |row: &u32| {
            let (place, mut name) = (u64::from(*row), Vec::new());
            names.meet(&(place..place + 1)).unwrap();
            let read = |index| {
                names.read(place, index, &mut name);
                name.clone()
            };
            (0..names.width()).map(read).collect()
        };
        (places.iter().map(&mut of_row).collect(), names.dropped())
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
        let (mut rng, room) = (Seed::from_bytes([1; 32]).into_rng(), SpillRoom::new(None, None));
        let mut find = |test| {
            let rows = RowIdentifiers::read(&a, &room, &mut rng).unwrap();
            rows.number(9, Some(test), |_, _, _| Ok(())).err().map(|e| e.to_string())
        };
        assert!(find(1).unwrap().starts_with("rows 1 and 3 carry the same identifier in both lists"));
        assert_eq!([find(3), find(5)], [None, None]);
    }
}
