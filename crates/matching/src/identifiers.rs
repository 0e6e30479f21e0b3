//! Identifiers to match: already normalised bytes, one per row.

use crate::spill::{SpillColumn, SpillRoom};
use base::{Error, limits};

/// Identifiers with random access by row: rows are visited in a secret order.
pub trait IdentifierSource: Sync {
    /// Number of rows.
    fn rows(&self) -> u64;

    /// K: most identifiers of a row, the best first.
    fn keys(&self) -> usize {
        1
    }

    /// Replaces `into` by identifier `key` of `row`; leaves it empty where the row has none, which only a row
    /// of several may.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error>;

    /// What sort of name [`IdentifierSource::read`] gives for `row`.
    fn domain(&self, _row: u32) -> NameDomain {
        NameDomain::Identifier
    }
}

/// Sorts of names that are hashed into the group. Names of different sorts never meet, whatever their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NameDomain {
    /// Of a row of somebody's data.
    Identifier = 0,
    /// Of a row that hides sizes; both parties know the list.
    Dummy = 1,
    /// Of nothing: random, known to one party, equal to no other.
    Filler = 2,
    /// Of nothing: random, stands for a matched row.
    Label = 3,
}

impl NameDomain {
    /// Marks a name as one of this sort: what is hashed is the name and one more byte.
    pub fn mark(self, name: &mut Vec<u8>) {
        name.push(self as u8);
    }
}

/// Identifiers in memory: one flat buffer, and where each row ends in it.
#[derive(Clone, Copy)]
pub struct FlatIdentifiers<'a> {
    bytes: &'a [u8],
    ends: &'a [u64],
}

impl<'a> FlatIdentifiers<'a> {
    /// Row `i` is `bytes[ends[i - 1]..ends[i]]`, the first one starts at 0.
    ///
    /// # Errors
    /// When an identifier is empty or longer than `limits::IDENTIFIER_BYTES` (the error counts rows from 1),
    /// when `ends` does not ascend to the length of `bytes`, or when there are more than `limits::ROWS` rows.
    pub fn new(bytes: &'a [u8], ends: &'a [u64]) -> Result<Self, Error> {
        check_rows(ends.len() as u64)?;
        let mut start = 0;
        for (row, &end) in ends.iter().enumerate() {
            let len = end.checked_sub(start).ok_or_else(|| Error::misuse("ends of identifiers descend"))?;
            check_len(row as u64, len)?;
            start = end;
        }
        if start != bytes.len() as u64 {
            return Err(Error::misuse("the ends of identifiers do not cover their bytes"));
        }
        Ok(Self { bytes, ends })
    }
}

impl IdentifierSource for FlatIdentifiers<'_> {
    fn rows(&self) -> u64 {
        self.ends.len() as u64
    }

    fn read(&self, row: u32, _key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let row = row as usize;
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        into.clear();
        into.extend_from_slice(&self.bytes[start as usize..self.ends[row] as usize]);
        Ok(())
    }
}

fn check_rows(rows: u64) -> Result<(), Error> {
    // Rows are counted in 32 bits, and a spine needs a position beyond the last row.
    if rows >= limits::ROWS {
        return Err(Error::limit("limits::ROWS", rows, limits::ROWS - 1));
    }
    Ok(())
}

pub(crate) fn check_len(row: u64, len: u64) -> Result<(), Error> {
    if len == 0 {
        let row = row + 1;
        return Err(Error::input(format!(
            "the identifier of row {row} is empty; remove the row or fill it in"
        )));
    }
    let cap = limits::IDENTIFIER_BYTES as u64;
    if len > cap {
        return Err(Error::limit("limits::IDENTIFIER_BYTES", len, cap));
    }
    Ok(())
}

/// Rows of one digest of a [`ColumnFingerprint`].
pub const FINGERPRINT_ROWS: u64 = 4096;

/// What a column held when it was read: salted digests of [`FINGERPRINT_ROWS`] rows each.
pub struct ColumnFingerprint {
    salt: [u8; 32],
    digests: Vec<[u8; 32]>,
}

impl ColumnFingerprint {
    /// The digest of one row's marked name.
    #[must_use]
    pub fn row(&self, name: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.salt, name).as_bytes()
    }

    /// Checks the rows of digest number `chunk`, read again, by their [`ColumnFingerprint::row`] in order.
    ///
    /// # Errors
    /// When they are not what they were.
    pub fn check<'a>(&self, chunk: u64, rows: impl Iterator<Item = &'a [u8; 32]>) -> Result<(), Error> {
        let mut digest = blake3::Hasher::new();
        for row in rows {
            digest.update(row);
        }
        if self.digests.get(chunk as usize) == Some(digest.finalize().as_bytes()) {
            return Ok(());
        }
        let (first, last) = (chunk * FINGERPRINT_ROWS + 1, (chunk + 1) * FINGERPRINT_ROWS);
        Err(Error::input(format!(
            "identifiers changed while they were being matched (among rows {first} to {last}); leave the \
             input alone and start again"
        )))
    }

    /// A digest of all rows.
    #[must_use]
    pub fn whole(&self) -> [u8; 32] {
        *blake3::keyed_hash(&self.salt, self.digests.as_flattened()).as_bytes()
    }
}

/// Bytes of a tag of an identifier and its row, by which repeats are found.
pub(crate) const TAG_BYTES: u64 = 8 + 4;
/// Bytes that an identifier is taken to have before it is read.
pub(crate) const USUAL_BYTES: u64 = 24;

/// Refuses a column in which two rows carry one identifier, or one that is empty or too long. Reads every row
/// once; 12 bytes per row within `room`.
///
/// A repeated identifier would be visible to the peer: equal elements stay equal through every step.
///
/// # Errors
/// Names the two rows, counted from 1; never the identifier.
pub fn fingerprint(
    identifiers: &dyn IdentifierSource,
    salt: [u8; 32],
    room: &SpillRoom,
) -> Result<ColumnFingerprint, Error> {
    let mut fingerprint = ColumnFingerprint { salt, digests: Vec::new() };
    let mut tags = SpillColumn::<12>::new(room, identifiers.rows());
    let (mut name, mut digest) = (Vec::new(), blake3::Hasher::new());
    for row in 0..identifiers.rows() {
        identifiers.read(row as u32, 0, &mut name)?;
        check_len(row, name.len() as u64)?;
        identifiers.domain(row as u32).mark(&mut name);
        let hash = fingerprint.row(&name);
        digest.update(&hash);
        if (row + 1) % FINGERPRINT_ROWS == 0 || row + 1 == identifiers.rows() {
            fingerprint.digests.push(*digest.finalize().as_bytes());
            digest.reset();
        }
        let mut tag = [0; 12];
        tag[..8].copy_from_slice(&hash[..8]);
        tag[8..].copy_from_slice(&(row as u32).to_be_bytes());
        tags.push(&tag)?;
    }
    refuse_repeats(identifiers, tags)?;
    Ok(fingerprint)
}

/// A run of equal tags is a repeat, or a chance collision of 64 bits under a fresh key: compares the names.
fn refuse_repeats(identifiers: &dyn IdentifierSource, tags: SpillColumn<12>) -> Result<(), Error> {
    let marked = |row: u32, into: &mut Vec<u8>| {
        identifiers.read(row, 0, into)?;
        identifiers.domain(row).mark(into);
        Ok::<(), Error>(())
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let (mut tags, mut run) = (tags.sorted(), (Vec::<u32>::new(), [0; 8]));
    while let Some(record) = tags.pop()? {
        let (tag, row) = record.split_first_chunk::<8>().expect("a tag comes first");
        let row = u32::from_be_bytes(*row.first_chunk().expect("then the row"));
        if *tag != run.1 {
            run.0.clear();
        }
        for &first in &run.0 {
            marked(first, &mut left)?;
            marked(row, &mut right)?;
            if left == right {
                return Err(repeated(first, row));
            }
        }
        run.0.push(row);
        run.1 = *tag;
    }
    Ok(())
}

pub(crate) fn repeated(first: u32, second: u32) -> Error {
    let (first, second) = (u64::from(first) + 1, u64::from(second) + 1);
    Error::input(format!(
        "rows {first} and {second} carry the same identifier; identifiers must be unique, keep one"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(words: &[&str]) -> (Vec<u8>, Vec<u64>) {
        let mut end = 0;
        let ends = words.iter().map(|w| {
            end += w.len() as u64;
            end
        });
        (words.concat().into_bytes(), ends.collect())
    }

    #[test]
    fn a_column_reads_what_was_put_in() {
        let words = ["anna", "b", "carl", "dd"];
        let (bytes, ends) = flat(&words);
        let column = FlatIdentifiers::new(&bytes, &ends).unwrap();
        assert_eq!(column.rows(), 4);
        let mut read = Vec::new();
        for row in [2, 0, 3, 1] {
            column.read(row, 0, &mut read).unwrap();
            assert_eq!(read, words[row as usize].as_bytes());
        }
    }

    #[test]
    fn bad_columns_are_refused() {
        let error = |bytes: &[u8], ends: &[u64]| FlatIdentifiers::new(bytes, ends).err().unwrap().to_string();
        assert!(error(b"ab", &[1, 1, 2]).starts_with("the identifier of row 2 is empty"));
        assert!(error(b"ab", &[2, 1]).contains("descend"));
        assert!(error(b"ab", &[1]).contains("cover"));
        let long = vec![b'x'; limits::IDENTIFIER_BYTES + 1];
        assert!(error(&long, &[long.len() as u64]).starts_with("limits::IDENTIFIER_BYTES"));
        let fits = &long[1..];
        assert!(FlatIdentifiers::new(fits, &[fits.len() as u64]).is_ok());
        assert!(check_rows(limits::ROWS - 1).is_ok() && check_rows(limits::ROWS).is_err());
    }

    #[test]
    fn a_repeat_is_named_by_row_and_not_by_value() {
        let (bytes, ends) = flat(&["anna", "bo", "carl", "bo"]);
        let check = |bytes, ends| {
            let column = FlatIdentifiers::new(bytes, ends).unwrap();
            fingerprint(&column, [1; 32], &SpillRoom::new(None, None)).map(drop)
        };
        let error = check(&bytes, &ends).unwrap_err().to_string();
        assert!(error.starts_with("rows 2 and 4 carry the same identifier"), "{error}");
        assert!(check(&bytes[..10], &ends[..3]).is_ok());
    }

    #[test]
    fn a_fingerprint_knows_its_rows() {
        let words: Vec<String> = (0..5000).map(|i| format!("person {i}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (bytes, ends) = flat(&words);
        let column = FlatIdentifiers::new(&bytes, &ends).unwrap();
        let print = |salt, room: &SpillRoom| fingerprint(&column, [salt; 32], room).unwrap();
        let first = print(1, &SpillRoom::new(None, None));
        assert_eq!(first.whole(), print(1, &SpillRoom::new(Some(1), None)).whole());
        assert_ne!(first.whole(), print(2, &SpillRoom::new(None, None)).whole());
        let marked = |i: usize| [words[i].as_bytes(), &[0]].concat();
        let mut rows: Vec<[u8; 32]> = (4096..5000).map(|i| first.row(&marked(i))).collect();
        assert_eq!(first.check(1, rows.iter()), Ok(()));
        rows.swap(0, 1);
        let error = first.check(1, rows.iter()).unwrap_err().to_string();
        assert!(error.starts_with("identifiers changed while") && error.contains("4097 to 8192"), "{error}");
    }
}
