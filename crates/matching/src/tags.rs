//! Tags: the first 96 bits of elements that look uniform, with the place of each, sorted as numbers.
//!
//! 2^32 of them are distinct but for one chance in 2^33; where two of one list are equal, a protocol ends
//! with an error. One each of two such lists that agree by chance, one case in 2^32, look like a match.

use crate::places::OwnPlaces;
use crate::spill::{SortedRecords, SpillColumn, SpillRoom};
use base::Error;

/// Bytes of a tag on the wire.
pub(crate) const TAG_BYTES: u64 = 12;

/// A tag on the wire, little endian.
pub(crate) type WireTag = [u8; TAG_BYTES as usize];

/// A tag above the 32-bit number of its place.
pub(crate) type PlacedTag = u128;

/// The tag of `bytes` above `place`.
pub(crate) fn tagged(bytes: &[u8; 32], place: u32) -> PlacedTag {
    let first = bytes.first_chunk().expect("16 of 32 bytes");
    u128::from_le_bytes(*first) << 32 | u128::from(place)
}

/// The tag alone.
pub(crate) fn tag(entry: PlacedTag) -> u128 {
    entry >> 32
}

/// The place alone.
pub(crate) fn place(entry: PlacedTag) -> u32 {
    entry as u32
}

/// A tag as it travels.
pub(crate) fn to_wire(entry: PlacedTag) -> WireTag {
    *tag(entry).to_le_bytes().first_chunk().expect("12 of 16 bytes")
}

/// The tag that travelled.
pub(crate) fn from_wire(bytes: &WireTag) -> u128 {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(wide)
}

/// Bytes of a tag and its place in a column that is sorted: most significant ones first.
pub(crate) const PLACED_BYTES: usize = size_of::<PlacedTag>();

/// Finds own rows in a sorted spine that comes piece by piece.
pub(crate) struct PositionFinder {
    /// Own tags; places are rows of the input.
    own: SortedRecords<PLACED_BYTES>,
    /// Rows that have a position to be told.
    real_rows: u64,
    mine: OwnPlaces,
    position: u32,
    last: Option<u128>,
    digest: blake3::Hasher,
}

impl PositionFinder {
    /// `own` are [`PlacedTag`]s in big endian; positions of rows from `real_rows` on are nobody's affair.
    pub fn new(own: SpillColumn<PLACED_BYTES>, real_rows: u64, room: &SpillRoom) -> Self {
        let (own, mine, digest) = (own.sorted(), OwnPlaces::queued(room), blake3::Hasher::new());
        Self { own, real_rows, mine, position: 0, last: None, digest }
    }

    /// The next tags of the spine; the check that they fail, if there is one.
    ///
    /// # Errors
    /// When own tags cannot be read back, or positions cannot be written.
    pub fn take(&mut self, piece: &[WireTag]) -> Result<Result<(), &'static str>, Error> {
        self.digest.update(piece.as_flattened());
        for bytes in piece {
            let uid = from_wire(bytes);
            if self.last >= Some(uid) {
                return Ok(Err("the spine is sorted and without repeats"));
            }
            self.last = Some(uid);
            let own = self.own.head()?.map(|own| u128::from_be_bytes(*own));
            if let Some(own) = own.filter(|own| tag(*own) == uid) {
                self.own.pop()?;
                if u64::from(place(own)) < self.real_rows {
                    self.mine.push(place(own), self.position)?;
                }
            }
            self.position = self.position.wrapping_add(1);
        }
        Ok(Ok(()))
    }

    /// The positions of own rows, and a digest of the spine; or the check that failed.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn finish(mut self) -> Result<Result<(OwnPlaces, [u8; 32]), &'static str>, Error> {
        Ok(match self.own.head()? {
            None => Ok((self.mine, *self.digest.finalize().as_bytes())),
            Some(_) => Err("every row of ours is in the spine, once"),
        })
    }
}
