//! Programs, as sequences of touches, and their traces by definition.

use super::MICROSET;
use crate::progress::{ProgressEvent, TouchProgress};
use crate::trace::{Footer, Header, TraceBlock, TraceEntry, Writer};
use std::collections::HashSet;
use std::path::Path;

/// What a program does with a chunk.
#[derive(Clone, Copy, Debug)]
pub enum Access {
    Touch { chunk: u32, write: bool },
    Free { chunk: u32 },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// One chunk after the other, again and again, read and written.
    Sequential,
    /// Two streams at half the distance, each round closer.
    Merge,
    /// Any chunk, a third of them written.
    Random,
    /// All written once, then read in cycles.
    Reread,
    /// Every chunk is used for a while, then freed.
    Temporary,
    /// As `Random`, without the touches of every fourth chunk.
    Sparse,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Sequential, Self::Merge, Self::Random, Self::Reread, Self::Temporary];
    /// In the order of their numbers.
    const NAMED: [Self; 6] =
        [Self::Sequential, Self::Merge, Self::Random, Self::Reread, Self::Temporary, Self::Sparse];
}

#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub kind: Kind,
    pub chunks: usize,
    pub chunk: usize,
    pub length: usize,
    pub seed: u64,
    /// Whether every access counts as an event.
    pub ticks: bool,
    /// Bytes of its one allocation: part of the hash.
    pub alloc: usize,
}

impl Default for Program {
    fn default() -> Self {
        Self {
            kind: Kind::Sequential,
            chunks: 1024,
            chunk: 64 << 10,
            length: 2600,
            seed: 1,
            ticks: true,
            alloc: 64,
        }
    }
}

pub fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 31).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ x >> 32
}

impl Program {
    pub fn accesses(&self) -> Vec<Access> {
        let n = self.chunks as u64;
        let touch = |chunk: u64, write| Access::Touch { chunk: chunk as u32, write };
        (0..self.length as u64)
            .map(|i| match self.kind {
                Kind::Sequential => touch(i % n, true),
                Kind::Merge => {
                    let half = (n / 2) >> (i / n % 4);
                    let (pair, side) = (i % n / 2, i % 2);
                    touch(pair / half * 2 * half + pair % half + side * half, true)
                }
                Kind::Random | Kind::Sparse => {
                    let draw = mix(self.seed << 32 ^ i);
                    touch(draw % n, i < n / 2 || draw >> 50 & 3 == 0)
                }
                Kind::Reread => touch(i % n, i < n),
                // Chunk k is written at step 8 k, read in between, freed 4 chunks later.
                Kind::Temporary => {
                    let (k, step) = (i / 8, i % 8);
                    match step {
                        0 => touch(k % n, true),
                        7 if k >= 4 => Access::Free { chunk: ((k - 4) % n) as u32 },
                        _ => touch(k.saturating_sub(step % 4) % n, step % 2 == 1),
                    }
                }
            })
            .filter(|access| match access {
                Access::Touch { chunk, .. } => self.kind != Kind::Sparse || chunk % 4 != 3,
                Access::Free { .. } => true,
            })
            .collect()
    }

    /// Blocks by the definition in [`crate::trace`].
    pub fn blocks(&self) -> Vec<TraceBlock> {
        let progress = TouchProgress::new().expect("a bell");
        progress.event(ProgressEvent::Alloc(self.alloc));
        let mut blocks: Vec<TraceBlock> = Vec::new();
        let mut mapped: [Vec<u32>; 2] = Default::default();
        let mut used = HashSet::new();
        for access in self.accesses() {
            match access {
                Access::Free { chunk } => {
                    used.remove(&chunk);
                }
                Access::Touch { chunk, write } => {
                    if !mapped.iter().flatten().any(|&c| c == chunk) {
                        if blocks
                            .last()
                            .is_none_or(|block| block.entries.len() == MICROSET.min(self.microset()))
                        {
                            let (events, hash) = progress.so_far();
                            blocks.push(TraceBlock { events, hash, entries: Vec::new() });
                            mapped.swap(0, 1);
                            mapped[1].clear();
                        }
                        mapped[1].push(chunk);
                        let entry = TraceEntry { chunk, written: false, fresh: used.insert(chunk) };
                        blocks.last_mut().expect("just made").entries.push(entry);
                    }
                    if write {
                        let entries =
                            blocks.iter_mut().rev().take(2).flat_map(|b| b.entries.iter_mut().rev());
                        entries.filter(|e| e.chunk == chunk).take(1).for_each(|e| e.written = true);
                    }
                }
            }
            if self.ticks {
                progress.event(ProgressEvent::Tick);
            }
        }
        blocks
    }

    fn microset(&self) -> usize {
        if self.chunk > 512 << 10 { 2 } else { MICROSET }
    }

    pub fn write_trace(&self, path: &Path, header: &Header) {
        let mut writer = Writer::create(path, header).expect("a file");
        let mut entries = 0;
        for block in self.blocks() {
            entries += block.entries.len() as u64;
            writer.block(&block).expect("written");
        }
        let footer = Footer { entries, peak_chunks: self.chunks as u64, other_bytes: 6 << 20 };
        writer.finish(&footer).expect("written");
    }

    /// For the environment of a child.
    pub fn to_text(self) -> String {
        let kind = self.kind as usize;
        let Self { chunks, chunk, length, seed, alloc, .. } = self;
        format!("{kind} {chunks} {chunk} {length} {seed} {} {alloc}", u8::from(self.ticks))
    }

    pub fn from_text(text: &str) -> Self {
        let numbers: Vec<usize> = text.split(' ').map(|n| n.parse().expect("a number")).collect();
        let [kind, chunks, chunk, length, seed, ticks, alloc] = numbers[..] else { panic!("seven numbers") };
        Self { kind: Kind::NAMED[kind], chunks, chunk, length, seed: seed as u64, ticks: ticks == 1, alloc }
    }
}
