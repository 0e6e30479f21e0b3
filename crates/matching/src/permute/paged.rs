//! Planes that do not fit into memory, in a sealed file, and the gates of a network on them.
//!
//! A network's upper levels run through its wires in order, its parts are worked off one after the other.
//! So wires lie in blocks in the order of their numbers. A part that fits is in memory as a whole while its
//! gates run; gates that reach further run on pieces of two blocks. Where `d` upper levels do not fit, every
//! word is read `2 d + 1` times in a network and once more when its rows are handed out, or copied on the
//! way to the next network: four times where half of the wires fit; besides, the blocks at the ends of
//! parts. Which blocks are read when is a function of sizes alone.

use super::Offsets;
use super::gates::SwitchGates;
use super::network::GateRun;
use super::planes::{PlanePacking, PlaneWord};
use crate::spill::{SealedFile, SpillRoom};
use base::Error;
use std::ops::Range;
use zeroize::Zeroize;

/// Bytes of a block, about, and how many are in memory: two for each of both wires of a run of gates, and
/// some more.
const BLOCK_BYTES: usize = 1 << 16;
const BLOCKS: usize = 6;

/// Works on all planes of some wires, with gates among these, which are so many of a batch.
pub(super) type GroupWork<'a> = dyn FnMut(&mut [Vec<PlaneWord>], &[SwitchGates], Range<usize>) + 'a;

/// Planes of rows, zeros at first.
pub(super) struct PagedPlanes {
    room: SpillRoom,
    file: SealedFile,
    planes: usize,
    rows: usize,
    /// Rows of a block.
    block: usize,
    /// Blocks in memory, the one met last behind the others.
    recent: Vec<CachedBlock>,
    /// By block: the number under which it was sealed; none where it was never written.
    sealed: Vec<Option<u64>>,
    next: u64,
    /// Where each part that fits begins, and behind them the end.
    parts: Vec<usize>,
    /// The part that is in memory.
    part: Option<usize>,
    held: Vec<Vec<PlaneWord>>,
    pair: Vec<Vec<PlaneWord>>,
    /// What is still to be added to every row from a number on.
    offsets: Option<(Offsets, usize)>,
    /// Rows that fit.
    fit: usize,
}

struct CachedBlock {
    index: usize,
    changed: bool,
    /// Plane after plane.
    words: Vec<PlaneWord>,
}

/// How planes are cut that do not fit: rows of a block, and of a part, at most.
#[derive(Clone, Copy)]
pub(super) struct PlaneCut {
    pub block: usize,
    pub fit: usize,
}

impl PlaneCut {
    /// Of planes of so many rows, where so much memory does not hold them.
    pub fn of(working: u64, planes: usize, rows: usize) -> Option<Self> {
        let row = planes * size_of::<PlaneWord>();
        let fit = usize::try_from(working).unwrap_or(usize::MAX) / row.max(1);
        if rows <= fit || planes == 0 {
            return None;
        }
        let block = (BLOCK_BYTES / row).max(16);
        Some(Self { block, fit: fit.max(4 * block) })
    }
}

impl PagedPlanes {
    /// Zeros, where they do not fit `room`.
    ///
    /// # Errors
    /// When there is no file to be had.
    pub fn unless_they_fit(room: &SpillRoom, planes: usize, rows: usize) -> Result<Option<Self>, Error> {
        let Some(PlaneCut { block, fit }) = PlaneCut::of(room.working(), planes, rows) else {
            return Ok(None);
        };
        let none = || vec![Vec::new(); planes];
        Ok(Some(Self {
            room: room.clone(),
            file: room.file()?,
            planes,
            rows,
            block,
            recent: Vec::new(),
            sealed: vec![None; rows.div_ceil(block)],
            next: 0,
            parts: parts(rows, fit),
            part: None,
            held: none(),
            pair: none(),
            offsets: None,
            fit,
        }))
    }

    /// Other rows behind the first ones: none, or zeros.
    ///
    /// # Errors
    /// When rows cannot be moved to the file, or not be read back.
    pub fn resize(&mut self, rows: usize) -> Result<(), Error> {
        self.leave()?;
        let blocks = rows.div_ceil(self.block);
        for mut block in self.recent.extract_if(.., |block| block.index >= blocks) {
            block.words.as_flattened_mut().zeroize();
        }
        self.sealed.resize(blocks, None);
        let end = rows % self.block;
        if rows < self.rows && end > 0 {
            let (stride, last) = (self.block, self.block(blocks - 1, true)?);
            let cut = |plane: &mut [PlaneWord]| plane[end..].as_flattened_mut().zeroize();
            last.words.chunks_exact_mut(stride).for_each(cut);
            last.changed = true;
        }
        (self.rows, self.parts) = (rows, parts(rows, self.fit));
        Ok(())
    }

    /// Adds these to all rows, when they are next met.
    pub fn offset(&mut self, offsets: Offsets) {
        self.offsets = Some((offsets, 0));
    }

    /// Adds what is still to be added to rows that are in `planes`, from their row `at` on, and are met in
    /// order.
    fn settle(
        &mut self,
        packing: &PlanePacking,
        rows: Range<usize>,
        planes: &mut [Vec<PlaneWord>],
        at: usize,
    ) {
        let Some((offsets, met)) = &mut self.offsets else { return };
        let first = rows.start.max(*met);
        if first < rows.end {
            offsets.apply(packing, first, planes, at + first - rows.start..at + rows.len());
            *met = rows.end;
        }
        if *met >= self.rows {
            self.offsets = None;
        }
    }

    /// Adds what is still to be added to all rows.
    fn settle_all(&mut self, packing: &PlanePacking) -> Result<(), Error> {
        self.leave()?;
        let mut some = std::mem::take(&mut self.pair);
        for first in (0..self.rows).step_by(self.block) {
            let rows = first..(first + self.block).min(self.rows);
            some.iter_mut().for_each(|plane| plane.resize(rows.len(), [0; 2]));
            self.read(rows.clone(), &mut some, 0)?;
            self.settle(packing, rows.clone(), &mut some, 0);
            self.write(rows, &some, 0)?;
        }
        self.pair = some;
        Ok(())
    }

    /// Rows of whole blocks that take half of what the largest part takes.
    pub fn half_a_part(&self) -> usize {
        let most = self.parts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        (most / 2 / self.block).max(1) * self.block
    }

    /// Hands out the wires of all gates of a batch, in order.
    pub fn each_group(
        &mut self,
        packing: &PlanePacking,
        batch: &[SwitchGates],
        work: &mut GroupWork<'_>,
    ) -> Result<(), Error> {
        let (mut group, mut from, mut at) = (Vec::new(), 0, 0);
        for &gates in batch {
            let run = match gates {
                SwitchGates::Copies { first, len } => {
                    self.run(&mut group, from..at, work);
                    self.copies(packing, first..first + len, at, work)?;
                    (at, from) = (at + len, at + len);
                    continue;
                }
                SwitchGates::Switches(run) => run,
            };
            if self.offsets.is_some() {
                self.settle_all(packing)?;
            }
            let part = self.part_of(run);
            if part.is_none() || part != self.part {
                self.run(&mut group, from..at, work);
                from = at;
            }
            match part {
                Some(part) => {
                    self.enter(part)?;
                    let start = self.parts[part];
                    let run = GateRun { first: run.first - start, second: run.second - start, ..run };
                    group.push(SwitchGates::Switches(run));
                    at += run.len;
                }
                None => {
                    self.leave()?;
                    self.apart(run, at, work)?;
                    at += run.len;
                    from = at;
                }
            }
        }
        self.run(&mut group, from..at, work);
        Ok(())
    }

    /// Copies into these rows, each from the one before it. Gates are handed out from number `at` on; what is
    /// still to be added to a row is added before.
    fn copies(
        &mut self,
        packing: &PlanePacking,
        rows: Range<usize>,
        at: usize,
        work: &mut GroupWork<'_>,
    ) -> Result<(), Error> {
        self.leave()?;
        let mut some = std::mem::take(&mut self.pair);
        for first in rows.clone().step_by(self.block) {
            let len = self.block.min(rows.end - first);
            let met = first - 1..first + len;
            some.iter_mut().for_each(|plane| plane.resize(met.len(), [0; 2]));
            self.read(met.clone(), &mut some, 0)?;
            self.settle(packing, met.clone(), &mut some, 0);
            let lanes = at + first - rows.start;
            work(&mut some, &[SwitchGates::Copies { first: 1, len }], lanes..lanes + len);
            self.write(met, &some, 0)?;
        }
        self.pair = some;
        Ok(())
    }

    /// Gates of the part that is in memory.
    fn run(&mut self, group: &mut Vec<SwitchGates>, lanes: Range<usize>, work: &mut GroupWork<'_>) {
        if !group.is_empty() {
            work(&mut self.held, group, lanes);
            group.clear();
        }
    }

    /// Gates whose wires are in two parts.
    fn apart(&mut self, run: GateRun, at: usize, work: &mut GroupWork<'_>) -> Result<(), Error> {
        for done in (0..run.len).step_by(self.block) {
            let len = self.block.min(run.len - done);
            let wires = [run.first, run.second].map(|first| first + done..first + done + len);
            let mut pair = std::mem::take(&mut self.pair);
            pair.iter_mut().for_each(|plane| plane.resize(2 * len, [0; 2]));
            self.read(wires[0].clone(), &mut pair, 0)?;
            self.read(wires[1].clone(), &mut pair, len)?;
            let gates = SwitchGates::Switches(GateRun { first: 0, second: len, len });
            work(&mut pair, &[gates], at + done..at + done + len);
            self.write(wires[0].clone(), &pair, 0)?;
            self.write(wires[1].clone(), &pair, len)?;
            self.pair = pair;
        }
        Ok(())
    }

    /// The part in which all wires of a run are, if there is one.
    fn part_of(&self, run: GateRun) -> Option<usize> {
        let part = self.parts.partition_point(|start| *start <= run.first) - 1;
        (run.second + run.len <= self.parts[part + 1]).then_some(part)
    }

    fn enter(&mut self, part: usize) -> Result<(), Error> {
        if self.part == Some(part) {
            return Ok(());
        }
        self.leave()?;
        let range = self.parts[part]..self.parts[part + 1];
        let mut held = std::mem::take(&mut self.held);
        held.iter_mut().for_each(|plane| plane.resize(range.len(), [0; 2]));
        self.read(range, &mut held, 0)?;
        (self.held, self.part) = (held, Some(part));
        Ok(())
    }

    fn leave(&mut self) -> Result<(), Error> {
        let Some(part) = self.part.take() else { return Ok(()) };
        let held = std::mem::take(&mut self.held);
        let range = self.parts[part]..self.parts[part + 1];
        let written = self.write(range, &held, 0);
        self.held = held;
        written
    }

    /// Copies rows into `planes`; rows are met in order.
    ///
    /// # Errors
    /// When they cannot be read back, or others that make room not be written.
    pub fn load(
        &mut self,
        packing: &PlanePacking,
        rows: Range<usize>,
        planes: &mut [Vec<PlaneWord>],
    ) -> Result<(), Error> {
        self.leave()?;
        self.read(rows.clone(), planes, 0)?;
        self.settle(packing, rows, planes, 0);
        Ok(())
    }

    /// Copies rows out of `planes`, from their row `at` on.
    ///
    /// # Errors
    /// As [`PagedPlanes::load`].
    pub fn store(&mut self, rows: Range<usize>, planes: &[Vec<PlaneWord>], at: usize) -> Result<(), Error> {
        self.leave()?;
        self.write(rows, planes, at)
    }

    fn read(&mut self, rows: Range<usize>, planes: &mut [Vec<PlaneWord>], at: usize) -> Result<(), Error> {
        for (index, within, to) in pieces(self.block, rows, at) {
            let (stride, block) = (self.block, self.block(index, true)?);
            for (plane, words) in planes.iter_mut().zip(block.words.chunks_exact(stride)) {
                plane[to..to + within.len()].copy_from_slice(&words[within.clone()]);
            }
        }
        Ok(())
    }

    fn write(&mut self, rows: Range<usize>, planes: &[Vec<PlaneWord>], at: usize) -> Result<(), Error> {
        for (index, within, from) in pieces(self.block, rows, at) {
            // What is covered as a whole need not be known.
            let filled = self.block.min(self.rows - index * self.block);
            let (stride, block) = (self.block, self.block(index, within.len() < filled)?);
            for (plane, words) in planes.iter().zip(block.words.chunks_exact_mut(stride)) {
                words[within.clone()].copy_from_slice(&plane[from..from + within.len()]);
            }
            block.changed = true;
        }
        Ok(())
    }

    /// A block in memory, with what is in it where that is `wanted`.
    fn block(&mut self, index: usize, wanted: bool) -> Result<&mut CachedBlock, Error> {
        if let Some(at) = self.recent.iter().position(|block| block.index == index) {
            let met = self.recent.remove(at);
            self.recent.push(met);
        } else {
            let mut words = match self.recent.len() < BLOCKS {
                true => vec![[0; 2]; self.planes * self.block],
                false => self.evict()?,
            };
            match self.sealed[index] {
                Some(number) if wanted => {
                    let bytes = as_bytes(&mut words);
                    self.room.read_back(&self.file, bytes, [(index * bytes.len()) as u64, number])?;
                }
                _ => words.fill([0; 2]),
            }
            self.recent.push(CachedBlock { index, changed: false, words });
        }
        Ok(self.recent.last_mut().expect("it was put there"))
    }

    /// Makes room for a block; its words are anything.
    fn evict(&mut self) -> Result<Vec<PlaneWord>, Error> {
        let CachedBlock { index, changed, mut words } = self.recent.remove(0);
        if changed {
            let bytes = as_bytes(&mut words);
            let (offset, number) = ((index * bytes.len()) as u64, self.next);
            // As many numbers as words, so that no two writes have one in common.
            self.next += (bytes.len() / size_of::<PlaneWord>()) as u64;
            self.file.write(bytes, offset, number).map_err(|e| self.room.spilling(&e))?;
            self.sealed[index] = Some(number);
        }
        Ok(words)
    }
}

impl Drop for PagedPlanes {
    fn drop(&mut self) {
        self.recent.iter_mut().for_each(|block| block.words.as_flattened_mut().zeroize());
        let planes = self.held.iter_mut().chain(&mut self.pair);
        planes.for_each(|plane| plane.as_flattened_mut().zeroize());
    }
}

fn as_bytes(words: &mut [PlaneWord]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// Where each part of a network begins that fits, and behind them the end.
fn parts(rows: usize, fit: usize) -> Vec<usize> {
    let mut starts = Vec::new();
    cut(0..rows, fit, &mut starts);
    starts.push(rows);
    starts
}

/// The parts of a network of which each has at most so many wires.
fn cut(wires: Range<usize>, most: usize, starts: &mut Vec<usize>) {
    if wires.len() <= most {
        return starts.push(wires.start);
    }
    let middle = wires.start + wires.len() / 2;
    cut(wires.start..middle, most, starts);
    cut(middle..wires.end, most, starts);
}

/// Rows by block: the number of the block, the rows within it, and where they are from row `at` on.
fn pieces(block: usize, rows: Range<usize>, at: usize) -> impl Iterator<Item = (usize, Range<usize>, usize)> {
    let first = rows.start;
    (first / block..rows.end.div_ceil(block)).map(move |index| {
        let start = first.max(index * block);
        let end = rows.end.min((index + 1) * block);
        (index, start - index * block..end - index * block, at + start - first)
    })
}

#[cfg(test)]
#[path = "paged_tests.rs"]
mod tests;
