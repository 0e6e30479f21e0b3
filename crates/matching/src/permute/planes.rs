//! Rows as a network works on them: packed into planes of 16 bytes, so that a run of switches is a loop over
//! neighbouring words.
//!
//! Every field keeps its width. A word of 16 bytes holds several fields, which are added without carries
//! between them: with `top` the highest bit of every field, `a + b` is
//! `((a & !top) + (b & !top)) ^ ((a ^ b) & top)`. Bytes that are shared by exclusive or are fields of one
//! bit. What is sent per row is what a row has.

use super::gates::SwitchGates;
use super::paged::{GroupWork, PagedPlanes};
use crate::payload::{PayloadLayout, PayloadSource, PayloadTable, ShareRing};
use crate::share_table::ShareTable;
use crate::spill::{SpillDeal, SpillRoom};
use base::Error;
use kernels::LANES_MAX;
use zeroize::Zeroize;

/// 16 bytes of a row.
pub(super) type PlaneWord = [u64; 2];

/// Bytes of a [`PlaneWord`].
const BYTES: usize = 16;

/// How a plane adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaneAddition {
    /// By exclusive or.
    Bits,
    /// Two numbers of 64 bits.
    Numbers,
    /// Fields that lie within a half: their top bits.
    Halves(PlaneWord),
    /// Fields anywhere.
    Whole(u128),
}

/// One plane: how it adds, and how many of its bytes are used, from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PayloadPlane {
    pub adding: PlaneAddition,
    pub used: usize,
}

/// Bytes of a row that lie together in a plane.
#[derive(Clone, Copy, Debug)]
struct Piece {
    row: usize,
    plane: usize,
    offset: usize,
    len: usize,
}

/// Where the bytes of a layout lie: numbers first, the widest first, then bits wherever there is room.
#[derive(Clone, Debug)]
pub(super) struct PlanePacking {
    pub planes: Vec<PayloadPlane>,
    pieces: Vec<Piece>,
}

/// A plane being filled.
#[derive(Default)]
struct Draft {
    used: usize,
    top: u128,
    numbers: bool,
    /// A number lies in both halves.
    straddled: bool,
}

impl Draft {
    fn plane(&self) -> PayloadPlane {
        let halves = [self.top as u64, (self.top >> 64) as u64];
        let adding = match () {
            () if !self.numbers => PlaneAddition::Bits,
            () if self.straddled => PlaneAddition::Whole(self.top),
            () if halves.iter().all(|half| half & !(1 << 63) == 0) => PlaneAddition::Numbers,
            () => PlaneAddition::Halves(halves),
        };
        PayloadPlane { adding, used: self.used }
    }
}

impl PlanePacking {
    pub fn new(layout: &PayloadLayout) -> Self {
        let (mut drafts, mut pieces) = (Vec::<Draft>::new(), Vec::new());
        let mut numbers: Vec<usize> = (0..layout.fields().len()).collect();
        let (mut bits, mut open) = (numbers.clone(), 0);
        numbers.retain(|&f| layout.fields()[f].ring == ShareRing::Add);
        bits.retain(|&f| layout.fields()[f].ring == ShareRing::Xor);
        numbers.sort_by_key(|&f| std::cmp::Reverse(layout.range(f).len()));
        for range in numbers.into_iter().map(|f| layout.range(f)) {
            let len = range.len();
            let plane = drafts.iter().position(|d| d.used + len <= BYTES).unwrap_or(drafts.len());
            if plane == drafts.len() {
                drafts.push(Draft::default());
            }
            let draft = &mut drafts[plane];
            pieces.push(Piece { row: range.start, plane, offset: draft.used, len });
            draft.straddled |= draft.used < BYTES / 2 && draft.used + len > BYTES / 2;
            draft.numbers = true;
            draft.used += len;
            draft.top |= 1 << (8 * draft.used - 1);
        }
        for range in bits.into_iter().map(|f| layout.range(f)) {
            let mut row = range.start;
            while row < range.end {
                while drafts.get(open).is_some_and(|d| d.used == BYTES) {
                    open += 1;
                }
                if open == drafts.len() {
                    drafts.push(Draft::default());
                }
                let draft = &mut drafts[open];
                let len = (range.end - row).min(BYTES - draft.used);
                pieces.push(Piece { row, plane: open, offset: draft.used, len });
                draft.top |= u128::MAX >> (128 - 8 * len) << (8 * draft.used);
                draft.used += len;
                row += len;
            }
        }
        Self { planes: drafts.iter().map(Draft::plane).collect(), pieces }
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.planes.iter().map(|plane| plane.used).sum()
    }

    /// Writes a row where there are zeros.
    fn set(&self, planes: &mut [Vec<PlaneWord>], at: usize, row: &[u8]) {
        for piece in &self.pieces {
            let word = &mut planes[piece.plane][at];
            *word = halves(number(word) | read(&row[piece.row..][..piece.len]) << (8 * piece.offset));
        }
    }

    /// Reads a row.
    fn get(&self, planes: &[Vec<PlaneWord>], at: usize, row: &mut [u8]) {
        for piece in &self.pieces {
            let bytes = (number(&planes[piece.plane][at]) >> (8 * piece.offset)).to_le_bytes();
            row[piece.row..][..piece.len].copy_from_slice(&bytes[..piece.len]);
        }
    }
}

/// Rows of a layout in planes: one party's shares of them, or their values. Wiped when dropped.
pub struct PlaneRows {
    layout: PayloadLayout,
    pub(super) packing: PlanePacking,
    rows: usize,
    /// Where planes go that do not fit.
    room: SpillRoom,
    /// All planes, where they are in memory.
    pub(super) planes: Vec<Vec<PlaneWord>>,
    /// All planes, where they are not.
    pub(super) paged: Option<Box<PagedPlanes>>,
}

impl Drop for PlaneRows {
    fn drop(&mut self) {
        self.planes.iter_mut().for_each(|plane| plane.as_flattened_mut().zeroize());
    }
}

impl PlaneRows {
    /// So many rows of zeros: shares of what the peer holds.
    ///
    /// # Errors
    /// When they do not fit memory.
    pub fn zeros(layout: &PayloadLayout, rows: usize) -> Result<Self, Error> {
        Self::zeros_within(&SpillRoom::new(None, None), layout, rows)
    }

    /// The same; what does not fit `room` is outside memory.
    pub(crate) fn zeros_within(room: &SpillRoom, layout: &PayloadLayout, rows: usize) -> Result<Self, Error> {
        let (packing, layout) = (PlanePacking::new(layout), layout.clone());
        let planes = vec![Vec::new(); packing.planes.len()];
        let none = Self { layout, packing, rows: 0, room: room.clone(), planes, paged: None };
        none.resized(rows)
    }

    /// Row `places[i]` is row i of `payload`, and `blank` for every i behind its last one. Places are those
    /// of a permutation.
    pub(crate) fn placed(
        room: &SpillRoom,
        payload: &dyn PayloadSource,
        places: &[u32],
        blank: &[u8],
    ) -> Result<Self, Error> {
        let mut into = Self::zeros_within(room, payload.layout(), places.len())?;
        let Self { packing, planes, paged, rows, .. } = &mut into;
        let Some(paged) = paged else {
            each_placed(payload, places, blank, |place, row| {
                packing.set(planes, place as usize, row);
                Ok(())
            })?;
            return Ok(into);
        };
        let part = paged.half_a_part();
        let mut deal = SpillDeal::new(room, rows.div_ceil(part));
        each_placed(payload, places, blank, |place, row| {
            let number = place as usize / part;
            deal.push(number, &place.to_le_bytes())?;
            deal.push(number, row)
        })?;
        let (mut bytes, mut some) = (Vec::new(), vec![vec![[0; 2]; part]; packing.planes.len()]);
        for (number, first) in (0..*rows).step_by(part).enumerate() {
            deal.take(number, &mut bytes)?;
            some.iter_mut().for_each(|plane| plane.fill([0; 2]));
            for record in bytes.chunks_exact(size_of::<u32>() + packing.row_bytes()) {
                let (place, row) = record.split_first_chunk().expect("a place comes first");
                packing.set(&mut some, u32::from_le_bytes(*place) as usize - first, row);
            }
            paged.store(first..(first + part).min(*rows), &some, 0)?;
        }
        bytes.zeroize();
        some.iter_mut().for_each(|plane| plane.as_flattened_mut().zeroize());
        Ok(into)
    }

    /// All rows of a table in order.
    ///
    /// # Errors
    /// When they do not fit memory.
    pub fn of(table: &PayloadTable) -> Result<Self, Error> {
        let mut into = Self::zeros(table.layout(), table.rows() as usize)?;
        (0..into.rows).for_each(|i| into.packing.set(&mut into.planes, i, table.row(i as u64)));
        Ok(into)
    }

    /// Hands out the wires of all gates of a batch, with these, in order.
    pub(super) fn each_group(
        &mut self,
        batch: &[SwitchGates],
        lanes: usize,
        work: &mut GroupWork<'_>,
    ) -> Result<(), Error> {
        match &mut self.paged {
            Some(paged) => paged.each_group(&self.packing, batch, work),
            None => {
                work(&mut self.planes, batch, 0..lanes);
                Ok(())
            }
        }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Their layout.
    #[must_use]
    pub fn layout(&self) -> &PayloadLayout {
        &self.layout
    }

    /// Bytes of a row, in memory of the caller and on the wire.
    #[must_use]
    pub fn row_bytes(&self) -> usize {
        self.packing.row_bytes()
    }

    /// The first rows, or more of them: further ones are zeros.
    ///
    /// # Errors
    /// When they do not fit memory, or cannot be moved out of it.
    pub fn resized(mut self, rows: usize) -> Result<Self, Error> {
        if self.paged.is_none() && rows > self.rows {
            self.paged =
                PagedPlanes::unless_they_fit(&self.room, self.packing.planes.len(), rows)?.map(Box::new);
            if let Some(paged) = &mut self.paged {
                paged.store(0..self.rows, &self.planes, 0)?;
                self.planes.iter_mut().for_each(|plane| plane.as_flattened_mut().zeroize());
                self.planes.clear();
            }
        }
        if let Some(paged) = &mut self.paged {
            paged.resize(rows)?;
        }
        for plane in &mut self.planes {
            let cut = rows.min(plane.len());
            plane[cut..].as_flattened_mut().zeroize();
            let more = rows - cut;
            plane.truncate(cut);
            plane.try_reserve_exact(more).map_err(|_| {
                Error::input(format!("no memory for {rows} rows of {} bytes", self.layout.row_bytes()))
            })?;
            plane.resize(rows, [0; 2]);
        }
        self.rows = rows;
        Ok(self)
    }

    /// The first `rows` rows as a table.
    ///
    /// # Errors
    /// When they do not fit memory.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn table(&self, rows: usize) -> Result<PayloadTable, Error> {
        assert!(rows <= self.rows, "no more rows than there are");
        let mut table = PayloadTable::zeros(self.layout.clone(), rows as u64)?;
        (0..rows).for_each(|i| self.packing.get(&self.planes, i, table.row_mut(i as u64)));
        Ok(table)
    }

    /// The first `rows` rows as shares, wherever they are.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn into_shares(mut self, rows: usize, room: &SpillRoom) -> Result<ShareTable, Error> {
        assert!(rows <= self.rows, "no more rows than there are");
        let mut shares = ShareTable::new(self.layout.clone(), room);
        let mut row = vec![0; self.layout.row_bytes()];
        let Self { packing, planes, paged, .. } = &mut self;
        let mut some = vec![vec![[0; 2]; LANES_MAX]; packing.planes.len()];
        for first in (0..rows).step_by(LANES_MAX) {
            let count = LANES_MAX.min(rows - first);
            let at = match paged {
                None => first,
                Some(paged) => {
                    paged.load(packing, first..first + count, &mut some)?;
                    0
                }
            };
            let from = if paged.is_some() { &some } else { &*planes };
            for i in at..at + count {
                packing.get(from, i, &mut row);
                shares.push(&row)?;
            }
        }
        row.zeroize();
        some.iter_mut().for_each(|plane| plane.as_flattened_mut().zeroize());
        Ok(shares)
    }
}

/// Hands out the place and the bytes of every row, as [`PlaneRows::placed`] says.
fn each_placed(
    payload: &dyn PayloadSource,
    places: &[u32],
    blank: &[u8],
    mut put: impl FnMut(u32, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    payload.each(&mut |first, table| {
        (first..)
            .take(table.rows() as usize)
            .try_for_each(|row| put(places[row as usize], table.row(row - first)))
    })?;
    places[payload.rows() as usize..].iter().try_for_each(|place| put(*place, blank))
}

fn read(bytes: &[u8]) -> u128 {
    let mut word = [0; BYTES];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}

fn number(word: &PlaneWord) -> u128 {
    u128::from(word[1]) << 64 | u128::from(word[0])
}

fn halves(word: u128) -> PlaneWord {
    [word as u64, (word >> 64) as u64]
}

/// The words of a plane as sent: their used bytes, one after the other.
pub(super) fn write_words(words: &[PlaneWord], used: usize, message: &mut Vec<u8>) {
    let at = message.len();
    // A whole word is stored each time and the next one covers what is not used of it.
    message.resize(at + words.len() * used + BYTES - used, 0);
    for (i, word) in words.iter().enumerate() {
        let place: &mut [u8; BYTES] = message[at + i * used..].first_chunk_mut().expect("room for a word");
        *place = number(word).to_le_bytes();
    }
    message.truncate(at + words.len() * used);
}

/// The words of a plane out of their used bytes.
pub(super) fn read_words(bytes: &[u8], used: usize, words: &mut [PlaneWord]) {
    let mask = u128::MAX >> (128 - 8 * used);
    for (i, word) in words.iter_mut().enumerate() {
        let rest = &bytes[i * used..];
        *word = halves(match rest.first_chunk() {
            Some(chunk) => u128::from_le_bytes(*chunk) & mask,
            None => read(&rest[..used]),
        });
    }
}

/// Sums and differences of words.
pub(super) trait LaneArithmetic: Copy {
    fn add(self, a: PlaneWord, b: PlaneWord) -> PlaneWord;
    fn sub(self, a: PlaneWord, b: PlaneWord) -> PlaneWord;
}

#[derive(Clone, Copy)]
pub(super) struct BitLanes;

impl LaneArithmetic for BitLanes {
    #[inline(always)]
    fn add(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        [a[0] ^ b[0], a[1] ^ b[1]]
    }

    #[inline(always)]
    fn sub(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        self.add(a, b)
    }
}

#[derive(Clone, Copy)]
pub(super) struct NumberLanes;

impl LaneArithmetic for NumberLanes {
    #[inline(always)]
    fn add(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
    }

    #[inline(always)]
    fn sub(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        [a[0].wrapping_sub(b[0]), a[1].wrapping_sub(b[1])]
    }
}

#[derive(Clone, Copy)]
pub(super) struct HalfLanes(pub PlaneWord);

impl LaneArithmetic for HalfLanes {
    #[inline(always)]
    fn add(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        let add = |i: usize, top: u64| ((a[i] & !top).wrapping_add(b[i] & !top)) ^ ((a[i] ^ b[i]) & top);
        [add(0, self.0[0]), add(1, self.0[1])]
    }

    #[inline(always)]
    fn sub(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        let sub = |i: usize, top: u64| ((a[i] | top).wrapping_sub(b[i] & !top)) ^ ((a[i] ^ !b[i]) & top);
        [sub(0, self.0[0]), sub(1, self.0[1])]
    }
}

#[derive(Clone, Copy)]
pub(super) struct WholeLanes(pub u128);

impl LaneArithmetic for WholeLanes {
    #[inline(always)]
    fn add(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        let (a, b, top) = (number(&a), number(&b), self.0);
        halves((a & !top).wrapping_add(b & !top) ^ ((a ^ b) & top))
    }

    #[inline(always)]
    fn sub(self, a: PlaneWord, b: PlaneWord) -> PlaneWord {
        let (a, b, top) = (number(&a), number(&b), self.0);
        halves((a | top).wrapping_sub(b & !top) ^ ((a ^ !b) & top))
    }
}

/// Calls `$work` with the arithmetic of a plane.
macro_rules! with_arithmetic {
    ($adding:expr, $name:ident => $work:expr) => {
        match $adding {
            PlaneAddition::Bits => {
                let $name = crate::permute::planes::BitLanes;
                $work
            }
            PlaneAddition::Numbers => {
                let $name = crate::permute::planes::NumberLanes;
                $work
            }
            PlaneAddition::Halves(top) => {
                let $name = crate::permute::planes::HalfLanes(top);
                $work
            }
            PlaneAddition::Whole(top) => {
                let $name = crate::permute::planes::WholeLanes(top);
                $work
            }
        }
    };
}
pub(super) use with_arithmetic;

#[cfg(test)]
#[path = "planes_tests.rs"]
mod tests;
