//! An oblivious key-value store: a table of uniform bytes from which each key's value is a sum of entries.
//!
//! Functionality: `encode` takes keys and values and gives a table; `decode` gives a key's value, and for any
//! other key something. Values that are uniform give a table that is uniform, whatever the keys are: entries
//! that the values leave open are drawn at random, so a table is a uniform solution of a linear system of
//! full rank.
//!
//! The row of a key (Garimella, Pinkas, Rosulek, Trieu and Yanai, Crypto 2021; Raghuraman and Rindal, ePrint
//! 2022/320) takes one entry in each of three thirds of the table, and a random subset of [`DENSE`] entries
//! more. Keys are peeled: a key that alone uses an entry is put off. Where none does, a key is set aside;
//! those few are solved by elimination over the dense entries and the sparse ones that nothing else fixes.
//!
//! Failure: encoding fails exactly when the rows are linearly dependent, which has probability at most 2^-64
//! times the expected number of sets of rows whose sparse parts cancel. With at most 1 / 1.15 rows per sparse
//! entry that is below 2^-63 for every number of rows (a test computes the bound). How many keys peeling
//! leaves decides the time, never the outcome.
//!
//! Time depends on the keys (their holder's own data, on its own machine), not on the values.

use base::{Error, Rng};
use kernels::{Aes128, Block, xor_bytes};
use std::collections::BTreeSet;
use zeroize::Zeroizing;

/// Dense entries: each is in a row with probability 1/2.
pub const DENSE: usize = 64;
/// Sparse entries of the smallest table: in a few entries a few rows would cancel.
const SPARSE_LEAST: u64 = 96;
/// The most sparse entries of a third: 64 bits of a hash place a row, and there are `third^3` places.
pub const THIRD_MAX: u64 = 1 << 21;
/// Bits of the dense part that one look-up takes.
const GROUP: usize = 8;

/// How large a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreShape {
    third: usize,
}

impl StoreShape {
    /// For at most `most` keys, where `usual` are expected: 1.25 entries for each of those, so that peeling
    /// leaves hardly any, and 1.15 for the most.
    #[must_use]
    pub fn new(usual: u64, most: u64) -> Self {
        let sparse = (usual * 5).div_ceil(4).max((most * 23).div_ceil(20)).max(SPARSE_LEAST);
        Self { third: sparse.div_ceil(3) as usize }
    }

    /// Entries of the table.
    #[must_use]
    pub fn entries(&self) -> usize {
        3 * self.third + DENSE
    }

    /// Sparse entries of each third.
    #[must_use]
    pub fn third(&self) -> u64 {
        self.third as u64
    }

    fn sparse(&self) -> usize {
        3 * self.third
    }
}

/// Which entries make a key's value.
#[derive(Clone, Copy)]
pub struct StoreRow {
    sparse: [u32; 3],
    dense: u64,
}

/// The rows of keys under a public seed: `cipher` is AES under it.
pub fn rows(cipher: &Aes128, shape: StoreShape, keys: &[Block], out: &mut Vec<StoreRow>) {
    let mut hashed = keys.to_vec();
    cipher.encrypt(&mut hashed);
    out.clear();
    out.extend(hashed.iter().map(|h| {
        // Digits of a fraction of 64 bits in base `third`: each is uniform but for third^3 / 2^64.
        let mut fraction = h.0 as u64;
        let sparse = std::array::from_fn(|segment| {
            let wide = u128::from(fraction) * shape.third as u128;
            fraction = wide as u64;
            (segment * shape.third) as u32 + (wide >> 64) as u32
        });
        StoreRow { sparse, dense: (h.0 >> 64) as u64 }
    }));
}

/// Sums of all subsets of the dense entries, [`GROUP`] at a time.
struct Sums {
    width: usize,
    bytes: Vec<u8>,
}

impl Sums {
    fn new(dense: &[u8], width: usize) -> Self {
        let mut bytes = vec![0; (DENSE / GROUP) * (width << GROUP)];
        for (group, sums) in bytes.chunks_exact_mut(width << GROUP).enumerate() {
            for bit in 0..GROUP {
                let entry = &dense[(group * GROUP + bit) * width..][..width];
                let (low, high) = sums.split_at_mut(width << bit);
                high[..low.len()].copy_from_slice(low);
                high[..low.len()].chunks_exact_mut(width).for_each(|sum| xor_bytes(sum, entry));
            }
        }
        Self { width, bytes }
    }

    fn add(&self, dense: u64, sum: &mut [u8]) {
        for group in 0..DENSE / GROUP {
            let subset = (dense >> (group * GROUP)) as usize & ((1 << GROUP) - 1);
            xor_bytes(sum, &self.bytes[((group << GROUP) + subset) * self.width..][..self.width]);
        }
    }
}

/// The values of `rows`, `width` bytes each, one after the other into `out`.
///
/// # Panics
/// When the table is not of this shape and width.
pub fn decode(shape: StoreShape, table: &[u8], width: usize, rows: &[StoreRow], out: &mut [u8]) {
    assert_eq!(table.len(), shape.entries() * width, "a table of this shape");
    assert_eq!(out.len(), rows.len() * width, "a value per row");
    let (sparse, dense) = table.split_at(shape.sparse() * width);
    let sums = Sums::new(dense, width);
    for (row, out) in rows.iter().zip(out.chunks_exact_mut(width)) {
        let entry = |i: usize| &sparse[row.sparse[i] as usize * width..][..width];
        out.copy_from_slice(entry(0));
        xor_bytes(out, entry(1));
        xor_bytes(out, entry(2));
        sums.add(row.dense, out);
    }
}

/// A table from which every row gives its value, uniform among all such tables.
///
/// # Errors
/// When rows are linearly dependent: see the module's header.
pub fn encode(
    shape: StoreShape,
    rows: &[StoreRow],
    values: &[u8],
    width: usize,
    rng: &mut Rng,
) -> Result<Vec<u8>, Error> {
    assert_eq!(values.len(), rows.len() * width, "a value per row");
    let peeled = Peeled::new(shape, rows);
    let rest = peeled.rest(shape, rows, values, width);
    let solved = eliminate(rest)?;
    // Everything is drawn; what is not free is overwritten, in an order in which it depends on what is there.
    let mut table = super::random_bytes(rng, shape.entries() * width);
    for left in &solved {
        let mut sum = left.value.clone();
        left.entries
            .iter()
            .filter(|e| **e != left.pivot)
            .for_each(|e| xor_bytes(&mut sum, at(&table, *e, width)));
        table[left.pivot as usize * width..][..width].copy_from_slice(&sum);
    }
    let (sparse, dense) = table.split_at_mut(shape.sparse() * width);
    let sums = Sums::new(dense, width);
    let mut sum = Zeroizing::new(vec![0; width]);
    for &(row, entry) in peeled.order.iter().rev() {
        sum.copy_from_slice(&values[row as usize * width..][..width]);
        let row = &rows[row as usize];
        sums.add(row.dense, &mut sum);
        row.sparse.iter().filter(|e| **e != entry).for_each(|e| xor_bytes(&mut sum, at(sparse, *e, width)));
        sparse[entry as usize * width..][..width].copy_from_slice(&sum);
    }
    Ok(table)
}

fn at(table: &[u8], entry: u32, width: usize) -> &[u8] {
    &table[entry as usize * width..][..width]
}

/// The order in which rows were put off, each with its entry, and the rows that were set aside.
struct Peeled {
    order: Vec<(u32, u32)>,
    aside: Vec<u32>,
}

/// How many rows use an entry, and the sum of their numbers.
#[derive(Clone, Copy, Default)]
struct Uses {
    rows: u32,
    sum: u32,
}

impl Peeled {
    fn new(shape: StoreShape, rows: &[StoreRow]) -> Self {
        let mut uses = vec![Uses::default(); shape.sparse()];
        for (index, row) in (0..).zip(rows) {
            for entry in row.sparse {
                let uses = &mut uses[entry as usize];
                (uses.rows, uses.sum) = (uses.rows + 1, uses.sum ^ index);
            }
        }
        let mut alone: Vec<u32> =
            (0..).zip(&uses).filter(|(_, u)| u.rows == 1).map(|(entry, _)| entry).collect();
        let mut this = Self { order: Vec::with_capacity(rows.len()), aside: Vec::new() };
        let mut left = vec![true; rows.len()];
        let mut next = 0;
        while this.order.len() + this.aside.len() < rows.len() {
            let index = match alone.pop() {
                Some(entry) if uses[entry as usize].rows == 1 => {
                    let index = uses[entry as usize].sum;
                    this.order.push((index, entry));
                    index
                }
                Some(_) => continue,
                None => {
                    // Some row is left, and none before `next`.
                    next += left[next as usize..].iter().position(|left| *left).unwrap_or(0) as u32;
                    this.aside.push(next);
                    next
                }
            };
            left[index as usize] = false;
            for entry in rows[index as usize].sparse {
                let uses = &mut uses[entry as usize];
                (uses.rows, uses.sum) = (uses.rows - 1, uses.sum ^ index);
                if uses.rows == 1 {
                    alone.push(entry);
                }
            }
        }
        this
    }

    /// The rows set aside, freed of entries that the peeled ones fix: each of those is replaced by what fixes
    /// it, in the order of peeling, since it brings in entries that are fixed later or not at all.
    fn rest(&self, shape: StoreShape, rows: &[StoreRow], values: &[u8], width: usize) -> Vec<Equation> {
        if self.aside.is_empty() {
            return Vec::new();
        }
        let mut step = vec![u32::MAX; shape.sparse()];
        (0..).zip(&self.order).for_each(|(at, (_, entry))| step[*entry as usize] = at);
        let equation = |&index: &u32| {
            let value = |index: u32| &values[index as usize * width..][..width];
            let mut sum = Zeroizing::new(value(index).to_vec());
            let mut dense = rows[index as usize].dense;
            // Entries in the order in which they go: those that stay are last.
            let mut open: BTreeSet<(u32, u32)> = BTreeSet::new();
            let toggle = |open: &mut BTreeSet<(u32, u32)>, entry: u32| {
                let key = (step[entry as usize], entry);
                if !open.remove(&key) {
                    open.insert(key);
                }
            };
            rows[index as usize].sparse.iter().for_each(|e| toggle(&mut open, *e));
            while let Some(&(at, _)) = open.first() {
                let Some(&(by, _)) = self.order.get(at as usize) else { break };
                xor_bytes(&mut sum, value(by));
                dense ^= rows[by as usize].dense;
                rows[by as usize].sparse.iter().for_each(|e| toggle(&mut open, *e));
            }
            let first = shape.sparse() as u32;
            let dense = (0..DENSE as u32).filter(|bit| dense >> bit & 1 == 1).map(|bit| first + bit);
            let entries = open.into_iter().map(|(_, entry)| entry).chain(dense).collect();
            Equation { pivot: u32::MAX, entries, value: sum }
        };
        self.aside.iter().map(equation).collect()
    }
}

/// The entries of a sum, its value, and the entry that it will fix.
struct Equation {
    pivot: u32,
    entries: BTreeSet<u32>,
    value: Zeroizing<Vec<u8>>,
}

impl Equation {
    fn add(&mut self, other: &Self) {
        for entry in &other.entries {
            if !self.entries.remove(entry) {
                self.entries.insert(*entry);
            }
        }
        xor_bytes(&mut self.value, &other.value);
    }
}

/// Full elimination: every equation fixes its pivot, which is in no other one.
fn eliminate(mut rest: Vec<Equation>) -> Result<Vec<Equation>, Error> {
    for index in 0..rest.len() {
        // The last entry is a dense one, where there is any.
        let Some(&pivot) = rest[index].entries.last() else {
            return Err(Error::misuse("keys of a key-value store are dependent; run again"));
        };
        rest[index].pivot = pivot;
        let (before, from) = rest.split_at_mut(index);
        let (this, after) = from.split_first_mut().expect("index is below the length");
        before.iter_mut().chain(after).filter(|e| e.entries.contains(&pivot)).for_each(|e| e.add(this));
    }
    Ok(rest)
}

#[cfg(test)]
#[path = "okvs_tests.rs"]
mod tests;
