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
pub(crate) trait DataSet {
    /// What rows of this sort begin with: the role, and names of columns where they are the user's.
    fn head(&self, into: &mut RowBytes);

    /// One or several identifiers per row.
    fn identifiers(&self) -> &RowKeys;

    /// The cells of a row, behind its identifiers.
    fn cells(&self, row: usize, into: &mut RowBytes);

    /// Row numbers in the order in which [`RowsHasher`] takes them.
    fn order(&self) -> Vec<u32> {
        self.identifiers().canonical_order()
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
pub(crate) struct RowBytes(Vec<u8>);

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
pub(crate) struct RowSum<'k> {
    key: &'k Seed,
    head: RowBytes,
    rows: u64,
    /// Modulo 2^256, the lowest word first.
    sum: [u64; 4],
}

impl<'k> RowSum<'k> {
    pub fn new(key: &'k Seed) -> Self {
        Self { key, head: RowBytes::default(), rows: 0, sum: [0; 4] }
    }

    /// Adds rows, all of one sort.
    pub fn add_rows(&mut self, rows: &dyn DataSet) {
        self.head.0.clear();
        rows.head(&mut self.head);
        let mut row = RowBytes::default();
        for i in 0..rows.identifiers().len() {
            rows.fill(i, &mut row);
            self.add(&row);
        }
    }

    fn add(&mut self, row: &RowBytes) {
        let mut hasher = blake3::Hasher::new_keyed(self.key.expose());
        let hash = hasher.update(&self.head.0).update(&row.0).finalize();
        let [a, b, c, d] = hash.as_bytes().as_chunks::<8>().0 else { unreachable!("32 bytes") };
        self.add_number([a, b, c, d].map(|bytes| u64::from_le_bytes(*bytes)));
        self.rows += 1;
    }

    fn add_number(&mut self, number: [u64; 4]) {
        let mut carry = 0;
        for (word, more) in self.sum.iter_mut().zip(number) {
            let sum = u128::from(*word) + u128::from(more) + carry;
            (*word, carry) = (sum as u64, sum >> 64);
        }
    }

    /// Adds other rows of the same sort and key.
    pub fn absorb(&mut self, other: Self) {
        if self.rows == 0 {
            self.head = other.head;
        }
        self.rows += other.rows;
        self.add_number(other.sum);
    }

    pub fn tag(&self) -> RowsTag {
        let mut hasher = blake3::Hasher::new_keyed(self.key.expose());
        hasher.update(b"tacit data set 2").update(&self.head.0).update(&self.rows.to_le_bytes());
        self.sum.iter().for_each(|word| _ = hasher.update(&word.to_le_bytes()));
        RowsTag(*hasher.finalize().as_bytes())
    }
}

/// The hash of all rows in the order of their identifiers, block by block.
#[derive(Default)]
pub(crate) struct RowsHasher(Option<blake3::Hasher>);

impl RowsHasher {
    /// Adds the next rows, all of one sort: those before them come before them in the order too.
    pub fn add_rows(&mut self, rows: &dyn DataSet) {
        let mut row = RowBytes::default();
        let hasher = self.0.get_or_insert_with(|| {
            rows.head(&mut row);
            let mut hasher = blake3::Hasher::new_derive_key("tacit data set 1");
            hasher.update(&row.0);
            hasher
        });
        for i in rows.order() {
            rows.fill(i as usize, &mut row);
            hasher.update(&row.0);
        }
    }

    pub fn finish(self) -> RowsHash {
        let hasher = self.0.unwrap_or_else(|| blake3::Hasher::new_derive_key("tacit data set 1"));
        RowsHash(*hasher.finalize().as_bytes())
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
