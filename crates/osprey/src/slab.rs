//! The allocator of the region.
//!
//! **What must hold.** Addresses depend on the sequence of sizes and releases alone: never on addresses of
//! other memory, on time or on content. Two passes of an oblivious program therefore see the same addresses.
//! Nothing is kept inside the region, so that neither an allocation nor a release touches a chunk.
//!
//! **Paper and deviations** (section 4.2). Slabs by size class, the fullest slab first: of the slabs with
//! room the one with the fewest free slots, the lowest address among equals. Freed objects are so replaced
//! where chunks are in use anyway, and slabs with little in them drain and give their chunks back. Slabs are
//! whole chunks instead of pages.
//!
//! **Cost.** An allocation or a release is a bit in a bitmap of two levels; a logarithm in the number of
//! slabs comes up once per slab that fills or drains. Free runs of chunks are searched from the lowest
//! address.

use std::collections::{BTreeMap, BTreeSet};

/// Smallest class, and the alignment that every object has.
const GRAIN: usize = 16;
/// Up to here classes are multiples of [`GRAIN`]; above, four classes to each power of two.
const FINE: usize = 64;
/// Objects of more chunks than this are runs of chunks of their own.
const SLAB_OBJECT_CHUNKS: usize = 4;
/// Chunks of a slab at most; eight suffice to waste an eighth at most for every class.
const SLAB_CHUNKS: usize = 8;
/// Runs of chunks that wait to be taken again before they join the free ones.
const GIVEN: usize = 4;
/// Strongest alignment.
pub(crate) const ALIGN_MAX: usize = 4096;

/// Owner of a chunk that nothing lies in.
const FREE: u32 = u32::MAX;
/// Owner of a chunk of a large object.
const LARGE: u32 = u32::MAX - 1;

/// Why an allocation or a release failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlabFailure {
    /// No room of that size is left in the region.
    Exhausted,
    /// An alignment that is no power of two up to [`ALIGN_MAX`].
    Alignment,
    /// A release of what is not an allocated object.
    NotAllocated,
}

/// The allocator: offsets from the region's base.
#[derive(Debug)]
pub(crate) struct Slabs {
    chunk: usize,
    classes: Vec<Class>,
    slabs: Vec<Slab>,
    spare: Vec<u32>,
    pool: Pool,
    owners: Vec<Owner>,
    live: Live,
}

/// What lies in a chunk.
#[derive(Clone, Copy, Debug)]
struct Owner {
    /// Number of a slab, [`LARGE`] or [`FREE`].
    slab: u32,
    /// Objects of the slab that lie in the chunk, wholly or in part; for a large object its chunks, in its
    /// first one.
    count: u32,
}

#[derive(Debug)]
struct Class {
    size: usize,
    chunks: u32,
    slots: u32,
    /// The slab that allocations come from: it has room and the fewest free slots, unless `doubt`.
    current: Option<u32>,
    /// Whether a release may have made another slab the fullest.
    doubt: bool,
    /// The other slabs with room: (free slots, first chunk, slab). The count may be too low, since releases
    /// do not move an entry: who takes the first one looks whether it is true, and puts it back where it
    /// belongs otherwise.
    partial: BTreeSet<(u32, u32, u32)>,
}

#[derive(Debug, Default)]
struct Slab {
    class: u32,
    first: u32,
    free: u32,
    /// The count under which it stands in `partial`; 0: not there.
    key: u32,
    /// One bit per slot that is free.
    bits: Vec<u64>,
    /// One bit per word of `bits` that is not zero.
    summary: Vec<u64>,
}

#[derive(Debug, Default)]
struct Live {
    now: u64,
    peak: u64,
}

impl Slabs {
    /// An empty region of `chunks` chunks of `chunk` bytes.
    pub fn new(chunk: usize, chunks: usize) -> Self {
        let largest = class_index(SLAB_OBJECT_CHUNKS * chunk);
        let classes = (0..=largest).map(|index| Class::new(class_size(index), chunk)).collect();
        let pool = Pool {
            runs: BTreeMap::new(),
            given: Vec::with_capacity(GIVEN),
            top: 0,
            reach: 0,
            limit: chunks as u64,
        };
        Self {
            chunk,
            classes,
            slabs: Vec::new(),
            spare: Vec::new(),
            pool,
            owners: Vec::new(),
            live: Live::default(),
        }
    }

    /// Room for `bytes` bytes; none for zero bytes is room for one. `set_live` hears of chunks that had
    /// nothing in them until now.
    ///
    /// # Errors
    /// [`SlabFailure::Exhausted`], [`SlabFailure::Alignment`].
    pub fn alloc(
        &mut self,
        bytes: usize,
        align: usize,
        mut set_live: impl FnMut(u32, bool),
    ) -> Result<usize, SlabFailure> {
        if !align.is_power_of_two() || align > ALIGN_MAX {
            return Err(SlabFailure::Alignment);
        }
        let Some(class) = self.class_for(bytes.max(1), align) else {
            return self.alloc_large(bytes, set_live);
        };
        let slab = self.fullest(class)?;
        let slot = self.take_slot(slab);
        let size = self.classes[class].size;
        let offset = self.slabs[slab as usize].first as usize * self.chunk + slot as usize * size;
        for chunk in offset / self.chunk..=(offset + size - 1) / self.chunk {
            let count = &mut self.owners[chunk].count;
            *count += 1;
            if *count == 1 {
                self.live.born();
                set_live(chunk as u32, true);
            }
        }
        Ok(offset)
    }

    /// Takes an object back. `set_live` hears of chunks that have nothing in them any more.
    ///
    /// # Errors
    /// [`SlabFailure::NotAllocated`], and nothing has changed.
    pub fn free(&mut self, offset: usize, mut set_live: impl FnMut(u32, bool)) -> Result<(), SlabFailure> {
        let at = offset / self.chunk;
        let owner = *self.owners.get(at).ok_or(SlabFailure::NotAllocated)?;
        if owner.slab == LARGE {
            return self.free_large(offset, owner.count, set_live);
        }
        let slab = self.slabs.get_mut(owner.slab as usize).ok_or(SlabFailure::NotAllocated)?;
        let class = &mut self.classes[slab.class as usize];
        let within = offset - slab.first as usize * self.chunk;
        let slot = (within / class.size) as u32;
        if !within.is_multiple_of(class.size) || slot >= class.slots || !slab.give(slot) {
            return Err(SlabFailure::NotAllocated);
        }
        let last = (offset + class.size - 1) / self.chunk;
        for chunk in at..=last {
            let count = &mut self.owners[chunk].count;
            *count -= 1;
            if *count == 0 {
                self.live.died();
                set_live(chunk as u32, false);
            }
        }
        if slab.free == class.slots {
            self.drop_slab(owner.slab);
        } else if class.current == Some(owner.slab) {
            class.doubt = true;
        } else if slab.key == 0 {
            class.partial.insert(slab.entry(owner.slab));
            class.doubt = true;
        }
        Ok(())
    }

    /// Chunks from the region's base that were ever in use.
    pub fn reach(&self) -> usize {
        self.pool.reach as usize
    }

    /// Most chunks that held something at once.
    pub fn peak(&self) -> u64 {
        self.live.peak
    }

    /// The class for an object, `None` for a large one.
    fn class_for(&self, bytes: usize, align: usize) -> Option<usize> {
        if bytes > SLAB_OBJECT_CHUNKS * self.chunk {
            return None;
        }
        let index = class_index(bytes.next_multiple_of(align));
        (index..self.classes.len()).find(|&index| self.classes[index].size.is_multiple_of(align))
    }

    /// The slab with room that has the fewest free slots, a new one where there is none.
    fn fullest(&mut self, class: usize) -> Result<u32, SlabFailure> {
        let Class { current, doubt, partial, .. } = &mut self.classes[class];
        while current.is_none() || *doubt {
            let Some(&(key, first, number)) = partial.first() else { break };
            let fuller = |at: u32| {
                let slab = &self.slabs[at as usize];
                (slab.free, slab.first) < (key, first)
            };
            if current.is_some_and(fuller) {
                break;
            }
            partial.pop_first();
            let slab = &mut self.slabs[number as usize];
            if slab.free != key {
                partial.insert(slab.entry(number));
                continue;
            }
            slab.key = 0;
            if let Some(before) = current.replace(number) {
                partial.insert(self.slabs[before as usize].entry(before));
            }
        }
        *doubt = false;
        match *current {
            Some(slab) => Ok(slab),
            None => self.new_slab(class),
        }
    }

    fn new_slab(&mut self, index: usize) -> Result<u32, SlabFailure> {
        let class = &self.classes[index];
        let (chunks, slots) = (class.chunks, class.slots);
        let first = self.pool.take(u64::from(chunks)).ok_or(SlabFailure::Exhausted)?;
        let number = self.spare.pop().unwrap_or_else(|| {
            self.slabs.push(Slab::default());
            self.slabs.len() as u32 - 1
        });
        self.slabs[number as usize].open(index as u32, first, slots);
        self.own(first, chunks, Owner { slab: number, count: 0 });
        self.classes[index].current = Some(number);
        Ok(number)
    }

    /// A slot of the current slab of its class, which has room.
    fn take_slot(&mut self, number: u32) -> u32 {
        let slab = &mut self.slabs[number as usize];
        let slot = slab.take();
        if slab.free == 0 {
            self.classes[slab.class as usize].current = None;
        }
        slot
    }

    fn drop_slab(&mut self, number: u32) {
        let slab = &mut self.slabs[number as usize];
        let class = &mut self.classes[slab.class as usize];
        if class.current == Some(number) {
            class.current = None;
        } else if slab.key != 0 {
            class.partial.remove(&(slab.key, slab.first, number));
        }
        let (first, chunks) = (slab.first, class.chunks);
        self.spare.push(number);
        self.own(first, chunks, Owner { slab: FREE, count: 0 });
        self.pool.give(first, u64::from(chunks));
    }

    fn alloc_large(
        &mut self,
        bytes: usize,
        mut set_live: impl FnMut(u32, bool),
    ) -> Result<usize, SlabFailure> {
        let chunks = bytes.div_ceil(self.chunk) as u64;
        let first = self.pool.take(chunks).ok_or(SlabFailure::Exhausted)?;
        let chunks = chunks as u32;
        self.own(first, chunks, Owner { slab: LARGE, count: 0 });
        self.owners[first as usize].count = chunks;
        for chunk in first..first + chunks {
            self.live.born();
            set_live(chunk, true);
        }
        Ok(first as usize * self.chunk)
    }

    fn free_large(
        &mut self,
        offset: usize,
        chunks: u32,
        mut set_live: impl FnMut(u32, bool),
    ) -> Result<(), SlabFailure> {
        if chunks == 0 || !offset.is_multiple_of(self.chunk) {
            return Err(SlabFailure::NotAllocated);
        }
        let first = (offset / self.chunk) as u32;
        self.own(first, chunks, Owner { slab: FREE, count: 0 });
        for chunk in first..first + chunks {
            self.live.died();
            set_live(chunk, false);
        }
        self.pool.give(first, u64::from(chunks));
        Ok(())
    }

    fn own(&mut self, first: u32, chunks: u32, owner: Owner) {
        let (first, end) = (first as usize, (first + chunks) as usize);
        if self.owners.len() < end {
            self.owners.resize(end, Owner { slab: FREE, count: 0 });
        }
        self.owners[first..end].fill(owner);
    }
}

impl Class {
    /// Slabs of as few chunks as waste an eighth at most.
    fn new(size: usize, chunk: usize) -> Self {
        let slots = |chunks: usize| chunks * chunk / size;
        let thrifty = |chunks: &usize| (chunks * chunk - slots(*chunks) * size) * 8 <= chunks * chunk;
        let chunks =
            (1..=SLAB_CHUNKS).filter(|&n| slots(n) > 0).find(thrifty).expect("eight chunks waste little");
        Self {
            size,
            chunks: chunks as u32,
            slots: slots(chunks) as u32,
            current: None,
            doubt: false,
            partial: BTreeSet::new(),
        }
    }
}

impl Slab {
    fn open(&mut self, class: u32, first: u32, slots: u32) {
        let Self { bits, summary, .. } = self;
        ones(bits, slots as usize);
        ones(summary, bits.len());
        (self.class, self.first, self.free, self.key) = (class, first, slots, 0);
    }

    /// What it stands in `partial` as, from now on.
    fn entry(&mut self, number: u32) -> (u32, u32, u32) {
        self.key = self.free;
        (self.free, self.first, number)
    }

    /// Takes the lowest free slot; there is one.
    fn take(&mut self) -> u32 {
        let top = self.summary.iter().position(|&word| word != 0).expect("a slab with room");
        let word = top * 64 + self.summary[top].trailing_zeros() as usize;
        let bits = &mut self.bits[word];
        let slot = word * 64 + bits.trailing_zeros() as usize;
        *bits &= *bits - 1;
        if *bits == 0 {
            self.summary[top] &= self.summary[top] - 1;
        }
        self.free -= 1;
        slot as u32
    }

    /// Takes a slot back; false when it is free already.
    fn give(&mut self, slot: u32) -> bool {
        let word = slot as usize / 64;
        let bit = 1 << (slot % 64);
        if self.bits[word] & bit != 0 {
            return false;
        }
        self.bits[word] |= bit;
        self.summary[word / 64] |= 1 << (word % 64);
        self.free += 1;
        true
    }
}

/// `count` bits that are one, the rest of the last word zero.
fn ones(words: &mut Vec<u64>, count: usize) {
    words.clear();
    words.resize(count.div_ceil(64), u64::MAX);
    if let (Some(last), 1..) = (words.last_mut(), count % 64) {
        *last = (1 << (count % 64)) - 1;
    }
}

/// Number of the smallest class of at least `bytes` bytes.
fn class_index(bytes: usize) -> usize {
    if bytes <= FINE {
        return bytes.max(1).div_ceil(GRAIN) - 1;
    }
    let power = (bytes - 1).ilog2() as usize;
    let quarter = (bytes - 1) >> (power - 2);
    FINE / GRAIN + (power - 6) * 4 + (quarter - 4)
}

/// Bytes of a class.
fn class_size(index: usize) -> usize {
    match index.checked_sub(FINE / GRAIN) {
        None => (index + 1) * GRAIN,
        Some(above) => (above % 4 + 5) << (above / 4 + 4),
    }
}

/// Chunks that belong to nothing.
#[derive(Debug)]
struct Pool {
    /// Free runs below `top`, no two of them neighbours: first chunk and chunks.
    runs: BTreeMap<u32, u64>,
    /// Runs given back last, which are not among them yet: temporaries give slabs back and take them again at
    /// once.
    given: Vec<(u32, u64)>,
    /// From here on everything is free.
    top: u64,
    reach: u64,
    limit: u64,
}

impl Pool {
    /// The lowest run of `chunks` chunks: one just given back, with nothing free below it, or else the first
    /// that is long enough. Both are what a search through all free chunks would find.
    fn take(&mut self, chunks: u64) -> Option<u32> {
        if let Some(lowest) = (0..self.given.len()).min_by_key(|&at| self.given[at].0) {
            let (first, len) = self.given[lowest];
            if len == chunks && self.runs.first_key_value().is_none_or(|(&run, _)| first < run) {
                return Some(self.given.swap_remove(lowest).0);
            }
            self.merge_given();
        }
        let found = self.runs.iter().find(|&(_, &len)| len >= chunks).map(|(&first, &len)| (first, len));
        if let Some((first, len)) = found {
            self.runs.remove(&first);
            if len > chunks {
                self.runs.insert(first + chunks as u32, len - chunks);
            }
            return Some(first);
        }
        let first = self.top;
        let end = first.checked_add(chunks).filter(|&end| end <= self.limit)?;
        self.top = end;
        self.reach = self.reach.max(end);
        Some(first as u32)
    }

    fn give(&mut self, first: u32, chunks: u64) {
        if self.given.len() == GIVEN {
            self.merge_given();
        }
        self.given.push((first, chunks));
    }

    fn merge_given(&mut self) {
        while let Some((first, chunks)) = self.given.pop() {
            self.merge(first, chunks);
        }
    }

    /// Adds a run to the free ones.
    fn merge(&mut self, mut first: u32, mut chunks: u64) {
        if let Some((&before, &len)) = self.runs.range(..first).next_back()
            && u64::from(before) + len == u64::from(first)
        {
            self.runs.remove(&before);
            (first, chunks) = (before, chunks + len);
        }
        let end = u64::from(first) + chunks;
        if end == self.top {
            self.top = u64::from(first);
            return;
        }
        if let Some(len) = self.runs.remove(&(end as u32)) {
            chunks += len;
        }
        self.runs.insert(first, chunks);
    }
}

impl Live {
    fn born(&mut self) {
        self.now += 1;
        self.peak = self.peak.max(self.now);
    }

    fn died(&mut self) {
        self.now -= 1;
    }
}

#[cfg(test)]
mod tests;
