//! Own names in the secret order in which they are sent.

use crate::chunks::CHUNK;
use crate::group::{self, Exponent, GroupElement};
use crate::identifiers::IdentifierSource;
use crate::spill::{SpillDeal, SpillRoom};
use base::Error;
use std::ops::Range;

/// Bytes of a name with its place and length that are reckoned with.
const NAME_BYTES: u64 = 64;
/// Rows of a part of [`SentNames`], at most.
const PART_ROWS: u64 = 1 << 16;

/// Own names in the order in which they are sent: read in the order of rows, and dealt to parts of that
/// order.
pub(crate) struct SentNames {
    deal: SpillDeal,
    /// Rows of a part: whole chunks.
    part_rows: u64,
    rows: u64,
    /// The part in memory, and where the name of each of its rows is.
    part: Option<u64>,
    bytes: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl SentNames {
    /// `places` has the place of each row.
    ///
    /// # Errors
    /// When a name cannot be read, or has to go to disk and cannot.
    pub fn deal(own: &dyn IdentifierSource, places: &[u32], room: &SpillRoom) -> Result<Self, Error> {
        let fit = (room.working() / NAME_BYTES).clamp(CHUNK, PART_ROWS);
        let (rows, part_rows) = (own.rows(), fit / CHUNK * CHUNK);
        let mut deal = SpillDeal::new(room, rows.div_ceil(part_rows) as usize);
        let (mut name, mut record) = (Vec::new(), Vec::new());
        for (row, place) in (0..).zip(places) {
            own.read(row, 0, &mut name)?;
            own.domain(row).mark(&mut name);
            record.clear();
            record.extend([place.to_le_bytes(), (name.len() as u32).to_le_bytes()].as_flattened());
            record.extend_from_slice(&name);
            deal.push((u64::from(*place) / part_rows) as usize, &record)?;
        }
        Ok(Self { deal, part_rows, rows, part: None, bytes: Vec::new(), spans: Vec::new() })
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
        let part = places.start / self.part_rows;
        if self.part != Some(part) && !places.is_empty() {
            self.load(part)?;
        }
        Ok((places.start - part * self.part_rows) as usize)
    }

    fn load(&mut self, part: u64) -> Result<(), Error> {
        let first = part * self.part_rows;
        self.deal.take(part as usize, &mut self.bytes)?;
        self.spans.clear();
        self.spans.resize((self.rows - first).min(self.part_rows) as usize, 0..0);
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
