//! What is read in one order and needed in another: names of own rows, in the secret order in which they are
//! sent.

use crate::chunks::{self, CHUNK};
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::{IdentifierSource, USUAL_BYTES};
use crate::spill::{SpillDeal, SpillRoom};
use base::Error;
use std::ops::Range;

/// Bytes of an item with its place and length that are reckoned with.
const ITEM_BYTES: u64 = 64;
/// Bytes of a name with its place, length and mark, while it is dealt.
pub(crate) const NAME_BYTES: u64 = 4 + 4 + USUAL_BYTES + 1;
/// Items of a part, at most.
const PART_ITEMS: u64 = 1 << 16;

/// Names or elements in the order of their places: they come in any order, and are dealt to parts of that
/// one.
pub(crate) struct PlacedItems {
    deal: SpillDeal,
    /// Items of a part: whole chunks.
    part_items: u64,
    items: u64,
    /// The part in memory, and where each of its items is.
    part: Option<u64>,
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl PlacedItems {
    /// For so many, none of which is there yet.
    pub fn new(items: u64, room: &SpillRoom) -> Self {
        let fit = (room.working() / ITEM_BYTES).clamp(CHUNK, PART_ITEMS);
        let part_items = fit / CHUNK * CHUNK;
        let deal = SpillDeal::new(room, items.div_ceil(part_items) as usize);
        Self { deal, part_items, items, part: None, bytes: Vec::new(), spans: Vec::new() }
    }

    /// The names of all rows; `places` has the place of each row.
    ///
    /// # Errors
    /// When a name cannot be read, or has to go to disk and cannot.
    pub fn names(own: &dyn IdentifierSource, places: &[u32], room: &SpillRoom) -> Result<Self, Error> {
        let (mut names, mut name) = (Self::new(own.rows(), room), Vec::new());
        for (row, place) in (0..).zip(places) {
            own.read(row, 0, &mut name)?;
            own.domain(row).mark(&mut name);
            names.put(*place, &name)?;
        }
        Ok(names)
    }

    /// Puts an item at its place.
    ///
    /// # Errors
    /// When it has to go to disk and cannot.
    pub fn put(&mut self, place: u32, item: &[u8]) -> Result<(), Error> {
        let part = (u64::from(place) / self.part_items) as usize;
        self.deal.push(part, [place.to_le_bytes(), (item.len() as u32).to_le_bytes()].as_flattened())?;
        self.deal.push(part, item)
    }

    /// Appends the items at these places, which are of one chunk, to `out`.
    ///
    /// # Errors
    /// When they cannot be read back.
    pub fn append(&mut self, places: &Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let first = self.meet(places)?;
        let spans = self.spans.iter().skip(first).take(chunks::len(places));
        spans.for_each(|span| out.extend_from_slice(&self.bytes[span.clone()]));
        Ok(())
    }

    /// `out` becomes the hashes of the names at these places, which are of one chunk, to the power of `key`.
    ///
    /// # Errors
    /// When they cannot be read back.
    pub fn hash(
        &mut self,
        places: &Range<u64>,
        (key, threads): (&Exponent, usize),
        out: &mut [GroupElement],
    ) -> Result<(), Error> {
        let first = self.meet(places)?;
        let Self { bytes, spans, .. } = self;
        let names = |i: usize, name: &mut Vec<u8>| {
            name.clear();
            name.extend_from_slice(&bytes[spans[first + i].clone()]);
            Ok(())
        };
        group::hash_mul_batch(&names, key, out, threads)
    }

    /// Brings the names at these places into memory, which are of one chunk. Where the first one's span is.
    fn meet(&mut self, places: &Range<u64>) -> Result<usize, Error> {
        let part = places.start / self.part_items;
        if self.part != Some(part) && !places.is_empty() {
            self.load(part)?;
        }
        Ok((places.start - part * self.part_items) as usize)
    }

    fn load(&mut self, part: u64) -> Result<(), Error> {
        let first = part * self.part_items;
        self.deal.take(part as usize, &mut self.bytes)?;
        self.spans.clear();
        self.spans.resize((self.items - first).min(self.part_items) as usize, 0..0);
        let mut at = 0;
        while let Some((head, _)) = self.bytes[at..].split_first_chunk::<8>() {
            let [place, len] =
                [0, 4].map(|i| u32::from_le_bytes(*head[i..].first_chunk().expect("four bytes")));
            let start = at + head.len();
            at = start + len as usize;
            self.spans[place as usize - first as usize] = start..at;
        }
        self.part = Some(part);
        Ok(())
    }
}
