//! What a party holds of all bins: keys and payload, dealt to the pieces in which bins are worked off, and
//! the tags and shares that come of them. What does not fit the room lies in sealed files until its piece is
//! due, and is read once.

use super::cuckoo::{CuckooBins, EMPTY, FUNCTIONS};
use super::equal::TagSource;
use super::oprf;
use super::price::PieceShapes;
use crate::identifiers::IdentifierSource;
use crate::memory as room;
use crate::payload::{PayloadLayout, PayloadSource};
use crate::share_table::ShareTable;
use crate::spill::{SpillDeal, SpillQueue, SpillRoom};
use base::{Error, Rng};
use kernels::{Aes128, Block};
use zeroize::Zeroizing;

/// Keys that are hashed at a time.
const KEYS: usize = 1 << 10;
/// Bytes of a block of a queue.
const QUEUE_BYTES: usize = 1 << 16;

/// The keys of all rows, hash function 0, in the order of the rows.
pub(super) struct KeyColumn {
    queue: SpillQueue,
    rows: u64,
}

impl KeyColumn {
    pub fn read(names: &dyn IdentifierSource, seed: &[u8; 32], room: &SpillRoom) -> Result<Self, Error> {
        let (names, mut queue) = (oprf::NameKeys::new(names, seed), SpillQueue::new(room, QUEUE_BYTES));
        let mut keys = Zeroizing::new(Vec::with_capacity(KEYS));
        for first in (0..names.rows()).step_by(KEYS) {
            keys.clear();
            names.read(first..names.rows().min(first + KEYS as u64), &mut keys)?;
            queue.push(Block::bytes_of(&keys))?;
        }
        Ok(Self { queue, rows: names.rows() })
    }

    /// The bins of all keys under a hash.
    fn places(&self, bins: &CuckooBins, hash: &Aes128) -> Result<Vec<[u32; FUNCTIONS]>, Error> {
        let (mut places, mut keys) = (room::reserve("bins of own rows", self.rows)?, Keys::default());
        self.queue.each_block(|bytes| {
            bins.places(hash, keys.of(bytes), &mut places);
            Ok(())
        })?;
        Ok(places)
    }

    /// Lays keys into bins under the hash functions of an attempt; none when they do not fit.
    pub fn lay(&self, bins: &CuckooBins, hash: Aes128, room: &SpillRoom) -> Result<Option<LaidKeys>, Error> {
        let places = self.places(bins, &hash)?;
        let Some(held) = bins.place(&places) else { return Ok(None) };
        let mut deal = SpillDeal::new(room, bins.pieces() as usize);
        let (mut rows, mut keys) = ((0..).zip(&places), Keys::default());
        self.queue.each_block(|bytes| {
            for (key, (row, places)) in keys.of(bytes).iter().zip(rows.by_ref()) {
                let lies = |function: &usize| held[bins.bin(*function, places[*function])] == row;
                let function = (0..FUNCTIONS).find(lies).expect("every row lies in one of its bins");
                let key = oprf::with_function(*key, function);
                deal.push(bins.piece(places[function]), &key.to_bytes())?;
            }
            Ok(())
        })?;
        Ok(Some(LaidKeys { hash, deal, held }))
    }
}

/// A block's bytes as keys.
#[derive(Default)]
struct Keys(Zeroizing<Vec<Block>>);

impl Keys {
    fn of(&mut self, bytes: &[u8]) -> &[Block] {
        self.0.resize(bytes.len() / Block::BYTES, Block::ZERO);
        Block::read_slice(bytes, &mut self.0);
        &self.0
    }
}

/// Where bins are within a piece: by function, in their order.
struct PieceSlots {
    first: u64,
    len: usize,
}

impl PieceSlots {
    fn of(bins: &CuckooBins, piece: u64) -> Self {
        let range = bins.range(piece);
        Self { first: range.start, len: (range.end - range.start) as usize }
    }

    fn all(&self) -> usize {
        FUNCTIONS * self.len
    }

    /// The slots of keys that carry their functions.
    fn slots(&self, bins: &CuckooBins, hash: &Aes128, keys: &[Block]) -> Vec<u32> {
        let whole: Vec<Block> = keys.iter().copied().map(oprf::whole).collect();
        let mut places = Vec::with_capacity(keys.len());
        whole.chunks(KEYS).for_each(|keys| bins.places(hash, keys, &mut places));
        let slot = |(key, places): (&Block, &[u32; FUNCTIONS])| {
            let function = oprf::function(*key);
            (function * self.len) as u32 + (u64::from(places[function]) - self.first) as u32
        };
        keys.iter().zip(&places).map(slot).collect()
    }
}

/// The receiver's keys in their bins.
pub(super) struct LaidKeys {
    hash: Aes128,
    deal: SpillDeal,
    /// The row of each bin, or [`EMPTY`].
    pub held: Vec<u32>,
}

impl LaidKeys {
    /// The keys of a piece, with their functions, one per bin: random where no row lies.
    pub fn take(
        &mut self,
        bins: &CuckooBins,
        piece: u64,
        rng: &mut Rng,
    ) -> Result<Zeroizing<Vec<Block>>, Error> {
        let (slots, mut bytes) = (PieceSlots::of(bins, piece), Zeroizing::new(Vec::new()));
        self.deal.take(piece as usize, &mut bytes)?;
        let mut keys = Keys::default();
        let keys = keys.of(&bytes);
        let mut by_slot = Zeroizing::new(vec![Block::ZERO; slots.all()]);
        for (slot, key) in slots.slots(bins, &self.hash, keys).into_iter().zip(keys) {
            by_slot[slot as usize] = *key;
        }
        for function in 0..FUNCTIONS {
            let start = bins.bin(function, slots.first as u32);
            let held = &self.held[start..start + slots.len];
            let of_function = &mut by_slot[function * slots.len..][..slots.len];
            for (key, _) in of_function.iter_mut().zip(held).filter(|(_, row)| **row == EMPTY) {
                *key = oprf::with_function(oprf::whole(Block::from_bytes(rng.bytes())), function);
            }
        }
        Ok(by_slot)
    }
}

/// The sender's rows: each in the pieces of its three bins, as key and payload.
pub(super) struct DealtRows {
    hash: Aes128,
    deal: SpillDeal,
    width: usize,
}

/// The rows of the sender in one piece, by function and then in their order.
pub(super) struct PieceRows {
    /// With their functions.
    pub keys: Zeroizing<Vec<Block>>,
    /// The bin of each, among those of the piece.
    pub slots: Vec<u32>,
    payload: Zeroizing<Vec<u8>>,
    width: usize,
}

impl DealtRows {
    /// Reads names and payload once, in the order of the rows; those behind the payload's are dummies, with
    /// zeros.
    pub fn deal(
        bins: &CuckooBins,
        hash: Aes128,
        (names, payload): (&oprf::NameKeys<'_>, &dyn PayloadSource),
        room: &SpillRoom,
    ) -> Result<Self, Error> {
        let width = payload.layout().row_bytes();
        let mut dealer = Dealer {
            bins,
            counts: vec![0; bins.pieces() as usize],
            rows: Self { hash, deal: SpillDeal::new(room, bins.pieces() as usize), width },
            names,
            keys: Zeroizing::default(),
            places: Vec::new(),
            record: Zeroizing::default(),
        };
        payload.each(&mut |first, rows| {
            (0..rows.rows()).step_by(KEYS).try_for_each(|at| {
                let count = (rows.rows() - at).min(KEYS as u64);
                let bytes = &rows.bytes()[at as usize * width..][..count as usize * width];
                dealer.take(first + at, count, bytes)
            })
        })?;
        let blank = vec![0; KEYS * width];
        for first in (payload.rows()..names.rows()).step_by(KEYS) {
            let count = (names.rows() - first).min(KEYS as u64);
            dealer.take(first, count, &blank[..count as usize * width])?;
        }
        if dealer.counts.iter().any(|count| *count > bins.most()) {
            return Err(Error::misuse(
                "identifiers fall into bins too unevenly, a matter of chance; run again",
            ));
        }
        Ok(dealer.rows)
    }

    /// The rows of a piece, which are gone then.
    pub fn take(&mut self, bins: &CuckooBins, piece: u64) -> Result<PieceRows, Error> {
        let mut dealt = Zeroizing::new(Vec::new());
        self.deal.take(piece as usize, &mut dealt)?;
        let (size, width) = (Block::BYTES + self.width, self.width);
        let count = dealt.len() / size;
        let mut keys = Zeroizing::new(Vec::with_capacity(count));
        let mut payload = Zeroizing::new(Vec::with_capacity(count * width));
        for function in 0..FUNCTIONS {
            for record in dealt.chunks_exact(size) {
                let (key, row) = record.split_first_chunk().expect("a key comes first");
                let key = Block::from_bytes(*key);
                if oprf::function(key) == function {
                    keys.push(key);
                    payload.extend_from_slice(row);
                }
            }
        }
        let slots = PieceSlots::of(bins, piece).slots(bins, &self.hash, &keys);
        Ok(PieceRows { keys, slots, payload, width })
    }
}

impl PieceRows {
    /// The payload of a row.
    pub fn payload(&self, at: usize) -> &[u8] {
        &self.payload[at * self.width..][..self.width]
    }
}

/// [`DealtRows`] while they are dealt.
struct Dealer<'a> {
    bins: &'a CuckooBins,
    /// Rows of each piece so far.
    counts: Vec<u64>,
    rows: DealtRows,
    names: &'a oprf::NameKeys<'a>,
    keys: Zeroizing<Vec<Block>>,
    places: Vec<[u32; FUNCTIONS]>,
    record: Zeroizing<Vec<u8>>,
}

impl Dealer<'_> {
    /// So many rows from one on, with their payload.
    fn take(&mut self, first: u64, count: u64, payload: &[u8]) -> Result<(), Error> {
        let Self { bins, counts, rows, names, keys, places, record } = self;
        keys.clear();
        names.read(first..first + count, keys)?;
        places.clear();
        bins.places(&rows.hash, keys, places);
        for (row, (key, places)) in keys.iter().zip(&*places).enumerate() {
            for (function, place) in places.iter().enumerate() {
                record.clear();
                record.extend_from_slice(&oprf::with_function(*key, function).to_bytes());
                record.extend_from_slice(&payload[row * rows.width..][..rows.width]);
                let piece = bins.piece(*place);
                counts[piece] += 1;
                rows.deal.push(piece, record)?;
            }
        }
        Ok(())
    }
}

/// Tag and share of every bin, piece by piece; then the tags in the order of the bins.
pub(super) struct BinColumns {
    tags: [SpillQueue; FUNCTIONS],
    pub shares: ShareTable,
    tag: usize,
}

impl BinColumns {
    pub fn new(bins: &CuckooBins, shapes: &PieceShapes, layout: &PayloadLayout, room: &SpillRoom) -> Self {
        let block = QUEUE_BYTES / shapes.tag * shapes.tag;
        let third = bins.all() / FUNCTIONS as u64;
        Self {
            tags: std::array::from_fn(|_| SpillQueue::new(room, block)),
            shares: ShareTable::in_sections(layout.clone(), (FUNCTIONS, third), room),
            tag: shapes.tag,
        }
    }

    /// Adds bins of a function: a tag and a share each.
    pub fn extend(&mut self, function: usize, tags: &[u8], shares: &[u8]) -> Result<(), Error> {
        self.tags[function].push(tags)?;
        self.shares.extend(function, shares, (tags.len() / self.tag) as u64)
    }

    /// The shares, and the tags to compare.
    pub fn finish(self) -> (ShareTable, BinTags) {
        let tags = BinTags { queues: self.tags, next: 0, block: Zeroizing::default(), at: 0, tag: self.tag };
        (self.shares, tags)
    }
}

/// The tags of all bins in order.
pub(super) struct BinTags {
    queues: [SpillQueue; FUNCTIONS],
    next: usize,
    block: Zeroizing<Vec<u8>>,
    at: usize,
    tag: usize,
}

impl TagSource for BinTags {
    fn take(&mut self, count: usize, into: &mut Vec<Block>) -> Result<(), Error> {
        into.clear();
        while into.len() < count {
            let rest = &self.block[self.at..];
            if rest.is_empty() {
                let queue =
                    self.queues.get_mut(self.next).ok_or_else(|| Error::misuse("a bin has no tag"))?;
                queue.pop(&mut self.block)?;
                self.at = 0;
                self.next += usize::from(self.block.is_empty());
                continue;
            }
            let tags = rest.chunks_exact(self.tag).take(count - into.len());
            self.at += tags.len() * self.tag;
            into.extend(tags.map(|tag| {
                let mut word = [0; Block::BYTES];
                word[..tag.len()].copy_from_slice(tag);
                Block::from_bytes(word)
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
