//! What a data set is called: a name that is the same for any order of its rows, and for any split into files
//! and any form of them, and says nothing about them to who has not the key.
//!
//! The name is a keyed additive multiset hash (Bellare and Micciancio 1997; Clarke and others 2003): each row
//! is hashed by BLAKE3 under a key, and the hashes are added modulo 2^256. Rows may come in any order and
//! from several readers, whose sums are added. Sums of that length resist nobody who knows the key and may
//! choose rows (Wagner 2002: about 2^32 rows); the key is that of this party's ledger, never leaves it, and
//! this party's own rows are all that is named under it.

use crate::RowKeys;
use base::Seed;
use std::fmt;

/// Rows as they enter the computation.
pub trait DataSet {
    /// What rows of this sort begin with: the role, and names of columns where they are the user's.
    fn head(&self, into: &mut RowBytes);

    /// One or several identifiers per row.
    fn identifiers(&self) -> &RowKeys;

    /// The cells of a row, behind its identifiers.
    fn cells(&self, row: usize, into: &mut RowBytes);

    /// Row numbers in the order in which [`DataSet::ordered_hash`] takes them.
    fn order(&self) -> Vec<u32> {
        self.identifiers().canonical_order()
    }

    /// The name of these rows under a key.
    fn tag(&self, key: &Seed) -> RowsTag {
        let mut head = RowBytes::default();
        self.head(&mut head);
        let mut sum = RowSum::default();
        let mut row = RowBytes::default();
        for i in 0..self.identifiers().len() {
            self.fill(i, &mut row);
            sum.add(key, &head, &row);
        }
        sum.tag(key, &head)
    }

    /// The hash of all rows in their order: what data sets were named by before [`DataSet::tag`].
    fn ordered_hash(&self) -> RowsHash {
        let mut hasher = blake3::Hasher::new_derive_key("tacit data set 1");
        let mut row = RowBytes::default();
        self.head(&mut row);
        hasher.update(&row.0);
        for i in self.order() {
            self.fill(i as usize, &mut row);
            hasher.update(&row.0);
        }
        RowsHash(*hasher.finalize().as_bytes())
    }

    /// A row: its identifiers, and its cells.
    fn fill(&self, row: usize, into: &mut RowBytes) {
        into.0.clear();
        self.identifiers().row(row).for_each(|identifier| into.bytes(identifier));
        self.cells(row, into);
    }
}

/// A row as bytes from which it can be read back: texts after their length, numbers in 8 bytes. It does not
/// print.
#[derive(Default)]
pub struct RowBytes(Vec<u8>);

impl RowBytes {
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
}

/// How many rows there are, and the sum of their keyed hashes.
#[derive(Default)]
struct RowSum {
    rows: u64,
    /// Modulo 2^256, the lowest word first.
    sum: [u64; 4],
}

impl RowSum {
    fn add(&mut self, key: &Seed, head: &RowBytes, row: &RowBytes) {
        let mut hasher = blake3::Hasher::new_keyed(key.expose());
        let hash = hasher.update(&head.0).update(&row.0).finalize();
        let mut carry = 0;
        for (word, bytes) in self.sum.iter_mut().zip(hash.as_bytes().as_chunks::<8>().0) {
            let sum = u128::from(*word) + u128::from(u64::from_le_bytes(*bytes)) + carry;
            (*word, carry) = (sum as u64, sum >> 64);
        }
        self.rows += 1;
    }

    fn tag(&self, key: &Seed, head: &RowBytes) -> RowsTag {
        let mut hasher = blake3::Hasher::new_keyed(key.expose());
        hasher.update(b"tacit data set 2").update(&head.0).update(&self.rows.to_le_bytes());
        self.sum.iter().for_each(|word| _ = hasher.update(&word.to_le_bytes()));
        RowsTag(*hasher.finalize().as_bytes())
    }
}

/// A name of what enters the computation, by a key: noise is bound to it. It may be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowsTag([u8; 32]);

impl RowsTag {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RowsTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowsTag(..)")
    }
}

/// A hash of what enters the computation, without a key: a fingerprint of private data, which may be compared
/// and must not be published.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowsHash([u8; 32]);

impl RowsHash {
    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for RowsHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowsHash(..)")
    }
}
