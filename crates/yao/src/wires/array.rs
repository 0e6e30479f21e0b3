//! Items of equal width in the program's memory, a record's wires one after the other, and which of them a
//! gadget takes.

use kernels::Block;
use osprey::Memory;
use std::ops::{DerefMut, Range};

/// `items` of `width` wires each; item i has the wires `i * width ..`.
pub struct WireArray<B> {
    wires: B,
    width: usize,
}

impl<B: DerefMut<Target = [Block]>> WireArray<B> {
    /// An array from an allocator. Its wires mean nothing until they are written.
    ///
    /// # Panics
    /// When the number of wires overflows, or the allocator has no memory.
    pub fn new<M: Memory<Buffer<Block> = B>>(memory: &M, items: usize, width: usize) -> Self {
        let wires = items.checked_mul(width).expect("wires of an array fit the address space");
        Self { wires: memory.untouched::<Block>(wires), width }
    }

    /// Wires per item.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// All wires.
    #[must_use]
    pub fn wires(&self) -> &[Block] {
        &self.wires
    }

    /// All wires, to write.
    pub fn wires_mut(&mut self) -> &mut [Block] {
        &mut self.wires
    }

    /// Bytes of all wires.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&self.wires[..])
    }
}

/// Which items the lanes of a gadget are: lane l is item `start + (l / run) * stride + (l % run)`, or minus
/// where it is mirrored. It depends on sizes only, by construction: a program has no value to put into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Items {
    start: usize,
    run: usize,
    stride: usize,
    count: usize,
    mirrored: bool,
}

impl Items {
    /// Neighbours: `start, start + 1, ..`.
    #[must_use]
    pub fn range(items: Range<usize>) -> Self {
        Self::grid(items.start, items.len().max(1), 0, items.len())
    }

    /// The same item in every lane.
    #[must_use]
    pub fn same(item: usize, count: usize) -> Self {
        Self::grid(item, 1, 0, count)
    }

    /// Runs of `run` neighbours, the starts of two runs `stride` items apart; `count` lanes in all.
    ///
    /// # Panics
    /// When `run` is 0.
    #[must_use]
    pub fn grid(start: usize, run: usize, stride: usize, count: usize) -> Self {
        assert!(run > 0, "a run has an item");
        Self { start, run, stride, count, mirrored: false }
    }

    /// As [`Items::grid`], with every run going down from its start.
    #[must_use]
    pub fn mirrored(start: usize, run: usize, stride: usize, count: usize) -> Self {
        Self { mirrored: true, ..Self::grid(start, run, stride, count) }
    }

    /// Lanes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The lanes `from .. from + count` of these: whole runs, or a part of one.
    ///
    /// # Panics
    /// When they are neither.
    #[must_use]
    pub fn part(&self, from: usize, count: usize) -> Self {
        assert!(from + count <= self.count, "a part of the lanes");
        let (runs, inside) = (from / self.run, from % self.run);
        assert!(inside == 0 || inside + count <= self.run, "whole runs, or a part of one");
        let start = self.start + runs * self.stride;
        let start = if self.mirrored { start - inside } else { start + inside };
        Self { start, run: self.run - inside, count, ..*self }
    }

    /// All that says which items these are.
    pub(super) fn shape(&self) -> [u64; 5] {
        [self.start, self.run, self.stride, self.count, usize::from(self.mirrored)].map(|part| part as u64)
    }

    /// Runs as (lowest item, items).
    pub(super) fn runs(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.count).step_by(self.run).map(move |lane| {
            let (from, len) = (self.start + lane / self.run * self.stride, self.run.min(self.count - lane));
            (if self.mirrored { from + 1 - len } else { from }, len)
        })
    }

    /// The items, lane by lane.
    pub(super) fn each(self) -> impl Iterator<Item = usize> {
        let mirrored = self.mirrored;
        self.runs().flat_map(move |(low, len)| {
            (0..len).map(move |i| if mirrored { low + len - 1 - i } else { low + i })
        })
    }
}

/// Reads bits of items into rows that lie `stride` blocks apart: `work(place in the row, label)`.
pub(super) fn gather(
    (wires, width): (&[Block], usize),
    bits: Range<usize>,
    items: Items,
    (rows, stride): (&mut [Block], usize),
    work: impl Fn(&mut Block, Block),
) {
    for (lane, item) in items.each().enumerate() {
        let labels = &wires[item * width..][..width][bits.clone()];
        for (row, label) in rows[lane..].iter_mut().step_by(stride).zip(labels) {
            work(row, *label);
        }
    }
}

/// Writes rows to bits of items: `work(wire, label in the row)`.
pub(super) fn scatter(
    (rows, stride): (&[Block], usize),
    bits: Range<usize>,
    items: Items,
    (wires, width): (&mut [Block], usize),
    work: impl Fn(&mut Block, Block),
) {
    for (lane, item) in items.each().enumerate() {
        let labels = &mut wires[item * width..][..width][bits.clone()];
        for (label, row) in labels.iter_mut().zip(rows[lane..].iter().step_by(stride)) {
            work(label, *row);
        }
    }
}

/// What a stub tells the runtime: stretches of wires, of which a trace tells apart no more than the chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    /// Bytes per chunk.
    pub chunk: usize,
}

impl Touch {
    /// The stretches of wires that a gather or scatter touches, in its order, as few as possible: two that
    /// lie less than a chunk apart are one, since every chunk from one to the other is touched anyway.
    pub fn stretches(
        self,
        width: usize,
        bits: Range<usize>,
        items: Items,
        mut touch: impl FnMut(Range<usize>),
    ) {
        let bytes = |items: usize| items * width * Block::BYTES;
        let whole = |low: usize, len: usize| low * width + bits.start..(low + len - 1) * width + bits.end;
        let small = bytes(1) <= self.chunk || bits.len() == width;
        let (mut runs, last) = (items.runs(), items.runs().last());
        if small && items.stride == 0 {
            return runs.next().into_iter().for_each(|(low, len)| touch(whole(low, len)));
        }
        if small && items.stride >= items.run && bytes(items.stride - items.run) < self.chunk {
            let ends = runs.next().zip(last);
            return ends.into_iter().for_each(|((low, _), (high, len))| touch(whole(low, high + len - low)));
        }
        for (low, len) in runs {
            if small {
                touch(whole(low, len));
            } else {
                (low..low + len).for_each(|item| touch(whole(item, 1)));
            }
        }
    }
}
