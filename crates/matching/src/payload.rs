//! What an owner attaches to its rows before they are matched, and the shares of it that come out.
//!
//! A [`PayloadTable`] has one row of bytes per record. Its [`PayloadLayout`] says how each [`TableField`]
//! is shared: a word of bits by exclusive or, a number by addition modulo a power of 256. Layouts are public,
//! both parties know both; a table is its holder's secret, whether it holds values or shares.

use crate::share_table::ShareTable;
use base::{Error, limits};
use zeroize::Zeroize;

/// How a field is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShareRing {
    /// By exclusive or of the parties' bytes.
    Xor,
    /// By addition modulo 2^(8 bytes).
    Add,
}

/// One field of a row: a little-endian number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableField {
    /// How it is shared.
    pub ring: ShareRing,
    /// Its width, 1 to 16.
    pub bytes: u8,
}

impl TableField {
    /// A word of so many bits, in whole bytes.
    ///
    /// # Panics
    /// Unless there are 1 to 128 bits: a bug of the caller.
    #[must_use]
    pub fn bits(bits: u8) -> Self {
        assert!((1..=128).contains(&bits), "a field has 1 to 128 bits");
        Self { ring: ShareRing::Xor, bytes: bits.div_ceil(8) }
    }

    /// A number modulo 2^(8 bytes).
    ///
    /// # Panics
    /// Unless there are 1 to 16 bytes: a bug of the caller.
    #[must_use]
    pub fn number(bytes: u8) -> Self {
        assert!((1..=16).contains(&bytes), "a number has 1 to 16 bytes");
        Self { ring: ShareRing::Add, bytes }
    }

    /// All ones in this width.
    #[must_use]
    pub fn mask(self) -> u128 {
        u128::MAX >> (128 - 8 * u32::from(self.bytes))
    }

    /// A share put together with another.
    #[must_use]
    pub fn join(self, a: u128, b: u128) -> u128 {
        match self.ring {
            ShareRing::Xor => (a ^ b) & self.mask(),
            ShareRing::Add => a.wrapping_add(b) & self.mask(),
        }
    }
}

/// The fields of a row, in order, and where each begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PayloadLayout {
    fields: Vec<TableField>,
    starts: Vec<usize>,
    bytes: usize,
}

impl PayloadLayout {
    /// Most bytes of a row.
    pub const ROW_BYTES: usize = 1 << 14;

    /// A row of these fields.
    ///
    /// # Errors
    /// `Limit` when a row is wider than [`PayloadLayout::ROW_BYTES`].
    pub fn new(fields: impl IntoIterator<Item = TableField>) -> Result<Self, Error> {
        let mut layout = Self::default();
        for field in fields {
            layout.starts.push(layout.bytes);
            layout.bytes += usize::from(field.bytes);
            layout.fields.push(field);
        }
        if layout.bytes > Self::ROW_BYTES {
            return Err(Error::limit("bytes of a matched row", layout.bytes as u64, Self::ROW_BYTES as u64));
        }
        Ok(layout)
    }

    /// The fields in order.
    #[must_use]
    pub fn fields(&self) -> &[TableField] {
        &self.fields
    }

    /// Bytes of a row.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.bytes
    }

    /// The bytes of a field within a row.
    ///
    /// # Panics
    /// When there is no such field.
    #[must_use]
    pub fn range(&self, field: usize) -> std::ops::Range<usize> {
        let start = self.starts[field];
        start..start + usize::from(self.fields[field].bytes)
    }
}

/// Rows of a layout, one after the other in one buffer. It does not print and is wiped when dropped.
#[derive(Default)]
pub struct PayloadTable {
    layout: PayloadLayout,
    rows: u64,
    bytes: Vec<u8>,
}

impl PayloadTable {
    /// So many rows of zeros.
    ///
    /// # Errors
    /// `Limit` when there are more than `limits::ROWS` rows, or they do not fit memory.
    pub fn zeros(layout: PayloadLayout, rows: u64) -> Result<Self, Error> {
        if rows >= limits::ROWS {
            return Err(Error::limit("limits::ROWS", rows, limits::ROWS - 1));
        }
        let len = rows.checked_mul(layout.row_bytes() as u64).and_then(|len| usize::try_from(len).ok());
        let mut bytes = Vec::new();
        let len = len.ok_or_else(|| Error::limit("bytes of a table", rows, usize::MAX as u64))?;
        bytes.try_reserve_exact(len).map_err(|_| {
            Error::input(format!("no memory for {rows} rows of {} bytes", layout.row_bytes()))
        })?;
        bytes.resize(len, 0);
        Ok(Self { layout, rows, bytes })
    }

    /// Its layout.
    #[must_use]
    pub fn layout(&self) -> &PayloadLayout {
        &self.layout
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The bytes of one row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, row: u64) -> &[u8] {
        let width = self.layout.row_bytes();
        &self.bytes[row as usize * width..][..width]
    }

    /// The bytes of one row.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row_mut(&mut self, row: u64) -> &mut [u8] {
        let width = self.layout.row_bytes();
        &mut self.bytes[row as usize * width..][..width]
    }

    /// All rows, one after the other.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All rows, one after the other.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// One field of one row.
    ///
    /// # Panics
    /// When there is no such row or field.
    #[must_use]
    pub fn get(&self, row: u64, field: usize) -> u128 {
        let bytes = &self.row(row)[self.layout.range(field)];
        let mut word = [0; 16];
        word[..bytes.len()].copy_from_slice(bytes);
        u128::from_le_bytes(word)
    }

    /// Sets one field of one row to the low bytes of `value`.
    ///
    /// # Panics
    /// When there is no such row or field.
    pub fn set(&mut self, row: u64, field: usize, value: u128) {
        let range = self.layout.range(field);
        let width = range.len();
        self.row_mut(row)[range].copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

impl Drop for PayloadTable {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

/// What an owner attaches to its rows, in their order, a few rows at a time: a table, or what is computed
/// when it is asked for.
pub trait PayloadSource: Sync {
    /// The layout of its rows.
    fn layout(&self) -> &PayloadLayout;

    /// How many rows there are.
    fn rows(&self) -> u64;

    /// Hands out all rows in order, in tables, each with the number of its first row.
    ///
    /// # Errors
    /// When they cannot be read; or what `take` says.
    fn each(&self, take: &mut PayloadTaker<'_>) -> Result<(), Error>;
}

/// Takes the first row's number and some rows of a [`PayloadSource`].
pub type PayloadTaker<'a> = dyn FnMut(u64, &PayloadTable) -> Result<(), Error> + 'a;

impl PayloadSource for PayloadTable {
    fn layout(&self) -> &PayloadLayout {
        &self.layout
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn each(&self, take: &mut PayloadTaker<'_>) -> Result<(), Error> {
        take(0, self)
    }
}

/// "No row of ours lies here", in [`JoinedPart::Mine`].
pub const ABSENT: u32 = u32::MAX;

/// One party's payload along the joined rows, as the other and itself hold it.
pub enum JoinedPart {
    /// This party's shares of it: one row per joined row and slot, the slots of a joined row together.
    Shared(ShareTable),
    /// It is ours, in the clear: for each joined row which of our rows lies there, or [`ABSENT`].
    Mine(Vec<u32>),
    /// It is the peer's, in the clear.
    Theirs,
}

/// Which entries of [`JoinedPart::Shared`] hold a match; the others hold shares of anything.
pub enum ValidEntries {
    /// Every joined row is a match.
    All,
    /// Exclusive-or shares, packed: entry i is bit i mod 64 of word i / 64.
    Shared(Vec<u64>),
    /// This party knows, packed alike.
    Mine(Vec<u64>),
    /// The peer knows.
    Theirs,
}

/// What comes out of a match that joins rows to shares.
pub struct JoinedShares {
    /// Joined rows.
    pub rows: u64,
    /// Entries of a joined row: 1, or M where a row may match several times.
    pub slots: u32,
    /// The payload of party 0 (one entry per joined row) and of party 1 (one per joined row and slot).
    pub parts: [JoinedPart; 2],
    /// Which entries of party 1 are matches.
    pub valid: ValidEntries,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_to_their_bytes() {
        let layout = PayloadLayout::new([
            TableField::bits(9),
            TableField::number(5),
            TableField::number(16),
            TableField::bits(1),
        ])
        .unwrap();
        assert_eq!((layout.row_bytes(), layout.range(2)), (24, 7..23));
        let mut table = PayloadTable::zeros(layout, 3).unwrap();
        for row in 0..3 {
            (0..4).for_each(|field| table.set(row, field, u128::MAX - u128::from(row)));
        }
        table.set(1, 1, 7);
        assert_eq!(table.get(1, 1), 7);
        assert_eq!(table.get(1, 0), 0xfffe);
        assert_eq!(table.get(1, 2), u128::MAX - 1);
        assert_eq!(table.get(0, 3), 0xff);
        assert_eq!(table.bytes().len(), 72);
    }

    #[test]
    fn shares_join() {
        assert_eq!(TableField::number(2).join(0xffff, 2), 1);
        assert_eq!(TableField::bits(16).join(0xffff, 2), 0xfffd);
    }

    #[test]
    fn wide_rows_and_many_rows_are_refused() {
        let wide = std::iter::repeat_n(TableField::number(16), PayloadLayout::ROW_BYTES / 16);
        assert!(PayloadLayout::new(wide.clone()).is_ok());
        assert!(PayloadLayout::new(wide.chain([TableField::bits(1)])).is_err());
        assert!(PayloadTable::zeros(PayloadLayout::default(), limits::ROWS).is_err());
        assert!(PayloadTable::zeros(PayloadLayout::default(), limits::ROWS - 1).is_ok());
    }
}
