//! A party's rows: in memory where they fit, else in sealed blocks of its state, one or two of which are in
//! memory at a time.
//!
//! Blocks are cut by the leading bits of a hash of the identifier, without a key: they stay with this party,
//! and an order of rows that depends on the identifiers alone is what [`RowStore::ordered_hash`] is of.

use crate::tag::{RowSum, RowsHash, RowsHasher, RowsTag};
use crate::{RowShape, Rows};
use base::{Error, Seed, in_order};
use std::sync::{Arc, Mutex, PoisonError};
use store::{ChunkSize, ObjectId, RunState, SealedStore, StoreError};

/// Blocks of a reader in memory: two at least, for threads that share a piece of rows may be on both sides of
/// a block's end, and more within so many bytes.
const RECENT: usize = 2;
const RECENT_BYTES: u64 = 32 << 20;
/// Bytes of the length before an identifier.
const LENGTH_BYTES: usize = size_of::<u32>();
/// Bytes that a row in memory is taken to have besides its cells: an identifier, and where it ends.
const ROW_BYTES: usize = 64;

/// A party's rows.
pub struct RowStore {
    rows: u64,
    groups: Option<[u64; 2]>,
    held: Held,
}

enum Held {
    Memory(Arc<Rows>),
    Spool(RowSpool),
}

/// Where rows in sealed blocks lie, for a process that comes later.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KeptRows {
    /// The folder of the blocks in the store.
    pub folder: String,
    /// What tells each block from any other object of its name, and its number of rows.
    blocks: Vec<([u8; 32], u64)>,
    groups: Option<[u64; 2]>,
}

/// Rows in sealed blocks.
pub(crate) struct RowSpool {
    state: Arc<RunState>,
    shape: RowShape,
    folder: String,
    memory: u64,
    blocks: Vec<Block>,
}

/// Blocks that one reader of rows by number has met last: those who read at different places have one each.
#[derive(Default)]
pub struct RecentBlocks(Mutex<Vec<(usize, Arc<Rows>)>>);

impl RecentBlocks {
    /// Gives a block that is here, or loads it.
    fn block(
        &self,
        number: usize,
        load: impl FnOnce() -> Result<Arc<Rows>, Error>,
    ) -> Result<Arc<Rows>, Error> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = recent.iter().position(|(known, _)| *known == number) {
            let met = recent.remove(at);
            recent.push(met);
        } else {
            let held =
                |recent: &[(usize, Arc<Rows>)]| recent.iter().map(|(_, rows)| rows.memory()).sum::<u64>();
            while recent.len() >= RECENT && held(&recent) > RECENT_BYTES {
                recent.remove(0);
            }
            recent.push((number, load()?));
        }
        Ok(recent.last().expect("it was put there").1.clone())
    }
}

/// Rows that were sealed, and have no place among the others yet.
pub(crate) struct SealedBlock {
    id: ObjectId,
    rows: u64,
}

/// One object of the state.
struct Block {
    name: String,
    id: ObjectId,
    /// The first row, and how many there are.
    first: u64,
    rows: u64,
}

impl From<Rows> for RowStore {
    fn from(rows: Rows) -> Self {
        Self::from(Arc::new(rows))
    }
}

/// A block of rows by itself.
impl From<Arc<Rows>> for RowStore {
    fn from(rows: Arc<Rows>) -> Self {
        Self { rows: rows.identifiers().len() as u64, groups: rows.groups(), held: Held::Memory(rows) }
    }
}

impl RowStore {
    pub(crate) fn spooled(spool: RowSpool, groups: Option<[u64; 2]>) -> Self {
        Self { rows: spool.len(), groups, held: Held::Spool(spool) }
    }

    /// Rows that an earlier process laid down in the state of a run.
    #[must_use]
    pub fn reopened(state: Arc<RunState>, shape: RowShape, kept: &KeptRows) -> Self {
        let mut spool =
            RowSpool { state, shape, folder: kept.folder.clone(), memory: RECENT_BYTES, blocks: Vec::new() };
        for (id, rows) in &kept.blocks {
            spool.push(SealedBlock { id: ObjectId(*id), rows: *rows });
        }
        Self::spooled(spool, kept.groups)
    }

    /// Where they lie, for [`Self::reopened`]; none of rows in memory.
    #[must_use]
    pub fn kept(&self) -> Option<KeptRows> {
        let Held::Spool(spool) = &self.held else { return None };
        let blocks = spool.blocks.iter().map(|block| (block.id.0, block.rows)).collect();
        Some(KeptRows { folder: spool.folder.clone(), blocks, groups: self.groups })
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Rows of the test and the control arm, where this party knows arms.
    #[must_use]
    pub fn groups(&self) -> Option<[u64; 2]> {
        self.groups
    }

    /// All rows, where they are in memory.
    ///
    /// # Errors
    /// Where they are not: `what` needs them there, for the error.
    pub fn in_memory(&self, what: &str) -> Result<&Arc<Rows>, Error> {
        match &self.held {
            Held::Memory(rows) => Ok(rows),
            Held::Spool(_) => Err(Error::input(format!(
                "{what} needs all rows of this party in memory, and they do not fit: raise `memory`"
            ))),
        }
    }

    /// The state that holds them and what a row's cells are, where they are not in memory.
    #[must_use]
    pub fn spool(&self) -> Option<(&Arc<RunState>, &RowShape)> {
        match &self.held {
            Held::Memory(_) => None,
            Held::Spool(spool) => Some((&spool.state, &spool.shape)),
        }
    }

    /// How many blocks there are, with the first row and the number of rows of each.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> {
        let (memory, spooled) = match &self.held {
            Held::Memory(_) => (Some((0, self.rows)), &[][..]),
            Held::Spool(spool) => (None, &spool.blocks[..]),
        };
        memory.into_iter().chain(spooled.iter().map(|block| (block.first, block.rows)))
    }

    /// A block of rows.
    ///
    /// # Errors
    /// When it cannot be read.
    ///
    /// # Panics
    /// When there is no such block.
    pub fn block(&self, number: usize) -> Result<Arc<Rows>, Error> {
        match &self.held {
            Held::Memory(rows) => Ok(rows.clone()),
            Held::Spool(spool) => spool.block(number),
        }
    }

    /// The block that holds a row, and the row's place in it, for a reader that has met these blocks.
    ///
    /// # Errors
    /// When it cannot be read.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn locate(&self, row: u64, recent: &RecentBlocks) -> Result<(Arc<Rows>, usize), Error> {
        let Held::Spool(spool) = &self.held else { return Ok((self.block(0)?, row as usize)) };
        let number = spool.blocks.partition_point(|block| block.first <= row) - 1;
        let block = recent.block(number, || spool.block(number))?;
        Ok((block, (row - spool.blocks[number].first) as usize))
    }

    /// All blocks in order, each with the number of its first row.
    ///
    /// # Errors
    /// When one cannot be read; or what `take` says.
    pub fn each_block(&self, mut take: impl FnMut(u64, &Rows) -> Result<(), Error>) -> Result<(), Error> {
        self.blocks().enumerate().try_for_each(|(number, (first, _))| take(first, &*self.block(number)?))
    }

    /// Makes something of each block, on all cores, and takes it in the order of blocks.
    ///
    /// # Errors
    /// When a block cannot be read.
    pub(crate) fn fold_blocks<T: Send>(
        &self,
        make: impl Fn(&Rows) -> T + Sync,
        mut take: impl FnMut(T),
    ) -> Result<(), Error> {
        let spool = match &self.held {
            Held::Memory(rows) => {
                take(make(rows));
                return Ok(());
            }
            Held::Spool(spool) => spool,
        };
        let row_bytes = (spool.shape.width() + ROW_BYTES) as u64;
        let bytes = |at: usize| spool.blocks[at].rows * row_bytes;
        let work = |at: usize| Ok(make(&*spool.block(at)?));
        in_order(spool.blocks.len(), (spool.memory, &bytes), work, |made| {
            take(made);
            Ok(())
        })
    }

    /// The name of these rows under a key, whatever their order.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn tag(&self, key: &Seed) -> Result<RowsTag, Error> {
        let mut sum = RowSum::new(key);
        let part = |rows: &Rows| {
            let mut part = RowSum::new(key);
            part.add_rows(rows.data_set());
            part
        };
        self.fold_blocks(part, |part| sum.absorb(part))?;
        Ok(sum.tag())
    }

    /// The hash of all rows in the order of their identifiers: what data sets were named by before
    /// [`RowStore::tag`].
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn ordered_hash(&self) -> Result<RowsHash, Error> {
        let mut hasher = RowsHasher::default();
        self.each_block(|_, rows| {
            hasher.add_rows(rows.data_set());
            Ok(())
        })?;
        Ok(hasher.finish())
    }
}

impl RowSpool {
    /// No rows yet. Whoever reads several blocks at a time may take `memory` bytes.
    pub fn new(state: Arc<RunState>, shape: RowShape, memory: u64) -> Self {
        let folder = state.folder("rows");
        Self { state, shape, folder, memory, blocks: Vec::new() }
    }

    /// The same without blocks: seals those that are to come.
    pub fn sealer(&self) -> Self {
        let (state, shape, folder) = (self.state.clone(), self.shape.clone(), self.folder.clone());
        Self { state, shape, folder, memory: self.memory, blocks: Vec::new() }
    }

    pub fn len(&self) -> u64 {
        self.blocks.last().map_or(0, |block| block.first + block.rows)
    }

    fn name(&self, number: usize) -> String {
        format!("{}/{number:08}", self.folder)
    }

    /// Seals the rows of a block, by its number among all. They have one identifier each.
    pub fn seal(&self, number: usize, rows: &Rows) -> Result<SealedBlock, Error> {
        let keys = rows.identifiers();
        let mut writer = self.state.sealed().writer(&self.name(number), ChunkSize::Large)?;
        let mut bytes = Vec::new();
        for row in 0..keys.len() {
            bytes.clear();
            let identifier = keys.get(row, 0);
            bytes.extend((identifier.len() as u32).to_le_bytes());
            bytes.extend_from_slice(identifier);
            rows.append_cells(&self.shape, row, &mut bytes);
            writer.write(&bytes)?;
        }
        Ok(SealedBlock { id: writer.finish()?, rows: keys.len() as u64 })
    }

    /// Adds the next block.
    pub fn push(&mut self, SealedBlock { id, rows }: SealedBlock) {
        let (name, first) = (self.name(self.blocks.len()), self.len());
        self.blocks.push(Block { name, id, first, rows });
    }

    fn block(&self, number: usize) -> Result<Arc<Rows>, Error> {
        read_block(self.state.sealed(), &self.shape, &self.blocks[number]).map(Arc::new)
    }
}

fn read_block(sealed: &SealedStore, shape: &RowShape, block: &Block) -> Result<Rows, Error> {
    let damaged = || StoreError::Damaged { place: block.name.clone(), why: "it holds other rows" };
    let reader = sealed.reader(&block.name)?;
    if reader.id() != block.id {
        return Err(damaged().into());
    }
    let (mut rows, mut rest) = (shape.no_rows(), Vec::new());
    reader.stream(|piece| {
        rest.extend_from_slice(piece);
        let mut bytes = &rest[..];
        while let Some((identifier, cells, after)) = split_row(shape, bytes) {
            rows.identifiers_mut().push(identifier);
            rows.push_cells(shape, cells).ok_or_else(damaged)?;
            bytes = after;
        }
        let left = bytes.len();
        rest.drain(..rest.len() - left);
        Ok(())
    })?;
    match rest.is_empty() && rows.identifiers().len() as u64 == block.rows {
        true => Ok(rows),
        false => Err(damaged().into()),
    }
}

/// The identifier and the cells of the first row, and what is behind it; none where it is not whole yet.
fn split_row<'b>(shape: &RowShape, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8], &'b [u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    let (identifier, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (cells, after) = rest.split_at_checked(shape.width())?;
    Some((identifier, cells, after))
}
