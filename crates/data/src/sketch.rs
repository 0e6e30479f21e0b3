//! Whether two lineages are the same data under different names: 32 bytes per lineage and identifier column
//! that say how alike two columns are, and nothing of who is in them. Case, white space, what sort an
//! identifier is of and which others a study matches by make no difference.
//!
//! Of a column, 128 minima of keyed hashes are taken and 2 bits of each are kept (b-bit minwise hashing, Li
//! and König 2010). Two sets with Jaccard similarity J agree in a place with probability J + (1 - J) / 4, so
//! J is estimated as (agreement - 1/4) / (3/4), with a standard error of about 0.05. A larger sketch would be
//! a membership list: whoever has the key tests names against it. The key is that of this party's identity
//! file, so that the ledger alone holds nothing to test; neither is ever sent.
//! `docs/decisions/042-lineages-are-named-and-compared.md`.

use crate::{RowKeys, RowStore, Rows, plain_text};
use base::{Error, Seed};
use std::fmt;

/// Minima of a sketch, and bits kept of each.
const MINIMA: usize = 128;
const BITS: usize = 2;
/// From this similarity on two lineages are taken for the same data.
pub const ALIKE: f64 = 0.25;
/// Identifiers below which no sketch is made: it would say too much of each.
const LEAST: usize = 100;
/// What the key is derived from an identity for.
pub const PURPOSE: &str = "tacit 2026-11 sketch of identifiers v1";

/// What a column of identifiers looks like. It does not print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sketch([u8; MINIMA * BITS / 8]);

impl Sketch {
    /// The sketches of all identifier columns, whatever the order of rows; none of columns with fewer than
    /// 100.
    ///
    /// # Errors
    /// When the rows cannot be read.
    pub fn all(key: &Seed, rows: &RowStore) -> Result<Vec<Self>, Error> {
        let offsets: Vec<u64> = {
            let mut stream = vec![0; 8 * MINIMA];
            blake3::Hasher::new_keyed(key.expose()).update(b"offsets").finalize_xof().fill(&mut stream);
            stream.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
        };
        let of_block = |block: &Rows| -> Vec<ColumnMinima> {
            let identifiers = block.identifiers();
            let column = |column| ColumnMinima::of(key, &offsets, identifiers, column);
            (0..identifiers.keys()).map(column).collect()
        };
        let mut columns: Vec<ColumnMinima> = Vec::new();
        rows.fold_blocks(of_block, |block| {
            columns.resize_with(block.len(), ColumnMinima::default);
            columns.iter_mut().zip(block).for_each(|(all, block)| all.absorb(&block));
        })?;
        Ok(columns.iter().filter_map(ColumnMinima::sketch).collect())
    }

    /// The estimated similarity of two sets, 0 to 1: shared identifiers by all that are in either.
    #[must_use]
    pub fn similarity(&self, other: &Self) -> f64 {
        let at = |bytes: &Self, i: usize| bytes.0[i / 4] >> (BITS * (i % 4)) & 3;
        let agree = (0..MINIMA).filter(|i| at(self, *i) == at(other, *i)).count();
        ((agree as f64 / MINIMA as f64 - 0.25) / 0.75).max(0.0)
    }

    /// Its bytes, for the ledger.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// From the ledger; none of another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

/// The minima of one column so far.
struct ColumnMinima {
    minima: [u64; MINIMA],
    count: usize,
}

impl Default for ColumnMinima {
    fn default() -> Self {
        Self { minima: [u64::MAX; MINIMA], count: 0 }
    }
}

impl ColumnMinima {
    /// Adds those of further rows.
    fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.minima.iter_mut().zip(other.minima).for_each(|(least, other)| *least = (*least).min(other));
    }

    /// Of one column of some rows.
    fn of(key: &Seed, offsets: &[u64], identifiers: &RowKeys, column: usize) -> Self {
        let (mut of, mut text) = (Self::default(), Vec::new());
        for row in 0..identifiers.len() {
            let identifier = identifiers.get(row, column);
            if identifier.is_empty() {
                continue;
            }
            of.count += 1;
            fold_case(plain_text(identifier, identifiers.keys()), &mut text);
            let hash = blake3::keyed_hash(key.expose(), &text);
            let [word, ..] = hash.as_bytes().as_chunks::<8>().0 else { unreachable!("32 bytes") };
            let word = u64::from_le_bytes(*word);
            for (least, offset) in of.minima.iter_mut().zip(offsets) {
                *least = (*least).min(mixed(word ^ offset));
            }
        }
        of
    }

    fn sketch(&self) -> Option<Sketch> {
        let mut bytes = [0; MINIMA * BITS / 8];
        for (i, least) in self.minima.iter().enumerate() {
            bytes[i / 4] |= ((least & 3) as u8) << (BITS * (i % 4));
        }
        (self.count >= LEAST).then_some(Sketch(bytes))
    }
}

impl fmt::Debug for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sketch(..)")
    }
}

/// A text in lower case, without white space.
fn fold_case(text: &[u8], into: &mut Vec<u8>) {
    into.clear();
    if text.is_ascii() {
        into.extend(text.iter().filter(|byte| !byte.is_ascii_whitespace()).map(u8::to_ascii_lowercase));
        return;
    }
    let text = String::from_utf8_lossy(text);
    let folded = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase);
    into.extend_from_slice(folded.collect::<String>().as_bytes());
}

/// A permutation of 64-bit words in which every bit depends on all.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProgramRows;

    fn set(people: std::ops::Range<u32>) -> RowKeys {
        let mut all = RowKeys::new(1);
        people.for_each(|i| all.push(format!("person-{i}@example.org").as_bytes()));
        all
    }

    fn all(key: u8, identifiers: RowKeys) -> Vec<Sketch> {
        let rows = Rows::Program(ProgramRows { identifiers, ..ProgramRows::default() });
        Sketch::all(&Seed::from_bytes([key; 32]), &rows.into()).unwrap()
    }

    fn sketch(key: u8, people: std::ops::Range<u32>) -> Sketch {
        all(key, set(people))[0]
    }

    #[test]
    fn the_estimate_is_the_similarity_of_the_sets() {
        // Shared by all: 0, 1/3, 2/3, 1. Over eight keys the standard error is about 0.02.
        for (shift, truth) in [(1000, 0.0), (500, 1.0 / 3.0), (200, 2.0 / 3.0), (0, 1.0)] {
            let of = |key| sketch(key, 0..1000).similarity(&sketch(key, shift..shift + 1000));
            let mean = (0..8).map(of).sum::<f64>() / 8.0;
            // Below 0 an estimate is 0, so that of strangers is a little above.
            assert!((mean - truth).abs() < 0.07, "{truth}: {mean}");
        }
    }

    #[test]
    fn order_case_and_other_columns_change_nothing_and_the_key_does_everything() {
        let mut two = RowKeys::new(2);
        (0..1000).rev().for_each(|i| {
            two.push(format!("number\0{i}").as_bytes());
            two.push(format!("email\0 Person-{i}@Example.org").as_bytes());
        });
        let [other, same] = all(1, two)[..] else { panic!("two columns") };
        assert_eq!(same, sketch(1, 0..1000));
        assert!(other.similarity(&same) < ALIKE);
        assert!(sketch(1, 0..1000).similarity(&sketch(2, 0..1000)) < ALIKE);
        assert!(all(1, set(0..99)).is_empty());
        assert!(!format!("{same:?}").contains(char::is_numeric));
        assert_eq!(Sketch::from_bytes(same.as_bytes()), Some(same));
        assert_eq!(same.as_bytes().len(), 32);
    }
}
