//! Local steps on vectors that stay on the GPU. They are queued on one stream, in order, and not waited for:
//! products and copies, which other streams make, wait for them.

use crate::Cuda;
use crate::device::{eights, ring_number};
use crate::driver::{DeviceBuffer, Lane};
use crate::jobs::{self, CombineTerm, KeyStream, RunPlace, halves};
use accel::{DeviceVector, STEP_TERMS, VectorRing, VectorRun, VectorStep};
use base::Error;
use kernels::Block;

/// Elements of which a thread makes planes, and planes of which it makes elements.
const TILE: u64 = 32;

/// Whether elements fill a block.
fn wide(ring: VectorRing) -> u64 {
    u64::from(ring == VectorRing::Z128)
}

/// Threads for tiles of elements of so many blocks, each of as many words of 32 bits.
fn tiles(ring: VectorRing, blocks: usize, words: u32) -> u64 {
    // Planes are whole blocks of 128 bits.
    ((blocks * ring.lanes()) as u64).div_ceil(4 * TILE) * 4 * u64::from(words)
}

impl Cuda {
    /// Where a run lies.
    fn place(&mut self, run: &VectorRun<'_>) -> Result<RunPlace, Error> {
        let (of, parts) = (run.vector.blocks(), run.parts());
        let buffer = self.buffer(run.vector)?;
        let at = buffer.address(parts.start * of + run.from, 0);
        Ok(RunPlace { at, part: of as u64 })
    }

    /// Where a run of one part begins in its buffer: of so many blocks.
    pub(crate) fn only_part(&self, run: &VectorRun<'_>, blocks: usize) -> Result<usize, Error> {
        let of = run.vector.blocks();
        let within = run.from.checked_add(blocks).is_some_and(|end| end <= of) && run.blocks == blocks;
        let part = run.part.filter(|part| within && *part < 3);
        let wrong = || Error::misuse("a run that a vector does not have, or not of one part");
        Ok(part.ok_or_else(wrong)? * of + run.from)
    }

    /// Does something in lanes with chunks of a run that begins at a block of its buffer.
    pub(crate) fn copy_run<T: Send>(
        &mut self,
        vector: &DeviceVector,
        (at, chunk): (usize, usize),
        some: impl Iterator<Item = T>,
        work: impl Fn(&mut Lane, &DeviceBuffer, usize, T) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        self.session.enter()?;
        self.session.wait()?;
        let buffer = self.buffer(vector)?.clone();
        let jobs = (at..).step_by(chunk).zip(some).collect();
        self.in_lanes(jobs, |lane, (place, some)| work(lane, &buffer, place, some))
    }

    /// Queues a step.
    pub(crate) fn queue_step(&mut self, step: &VectorStep<'_>) -> Result<(), Error> {
        step.check()?;
        self.session.enter()?;
        let z = step.z();
        let (parts, to) = (z.parts().len() as u64, self.place(z)?);
        match *step {
            VectorStep::Combine { ring, terms, constant, .. } => {
                let first = z.parts().start;
                let constant = constant.map(|(part, block)| ((part - first) as u64, halves(block)));
                self.queue_combine(ring, (parts, z.blocks as u64, to), terms, constant)
            }
            VectorStep::Draw { ring, ref x, negative, key, name, first, .. } => {
                self.keys()?;
                let x = x.as_ref().map(|x| self.place(x)).transpose()?;
                let job = jobs::Draw {
                    ring: ring_number(ring),
                    blocks: z.blocks as u64,
                    first,
                    negative: negative.into(),
                    stream: KeyStream { prefix: name.prefix(), part: key as u64 },
                    keys: self.expanded(),
                    x: x.map_or(0, |x| x.at),
                    z: to.at,
                };
                self.session.launch(job, eights(z.blocks))
            }
            VectorStep::Cross { ring, terms, .. } => {
                let mut of = [[0; 2]; STEP_TERMS];
                for (term, [x, y]) in of.iter_mut().zip(terms) {
                    *term = [self.place(x)?.at, self.place(y)?.at];
                }
                let (ring, blocks) = (ring_number(ring), z.blocks as u64);
                self.session
                    .launch(jobs::Local { ring, blocks, terms: terms.len() as u64, z: to.at, of }, blocks)
            }
            VectorStep::Shift { ring, ref x, by, signed, keep, .. } => {
                let (wide, blocks, x) = (wide(ring), z.blocks as u64, self.place(x)?);
                let (by, signed, keep) = (by.into(), signed.into(), keep.into());
                let job = jobs::Shift { wide, parts, blocks, by, signed, keep, x, z: to };
                self.session.launch(job, parts * blocks)
            }
            VectorStep::Planes { ring, x: ref of, from, width, stride, .. } => {
                let threads = parts * tiles(ring, of.blocks, width.div_ceil(32));
                let (wide, blocks, x) = (wide(ring), of.blocks as u64, self.place(of)?);
                let (from, width, stride) = (from.into(), width.into(), stride as u64);
                let job = jobs::ToPlanes { wide, parts, blocks, from, width, stride, x, z: to };
                self.session.launch(job, threads)
            }
            VectorStep::Elements { ring, ref x, width, stride, .. } => {
                let threads = parts * tiles(ring, z.blocks, ring.bits() / 32);
                let (wide, blocks, x) = (wide(ring), z.blocks as u64, self.place(x)?);
                let job = jobs::ToElements {
                    wide,
                    parts,
                    blocks,
                    width: width.into(),
                    stride: stride as u64,
                    x,
                    z: to,
                };
                self.session.launch(job, threads)
            }
        }
    }

    fn queue_combine(
        &mut self,
        ring: VectorRing,
        (parts, blocks, z): (u64, u64, RunPlace),
        terms: &[(VectorRun<'_>, Block)],
        constant: Option<(u64, [u64; 2])>,
    ) -> Result<(), Error> {
        let mut of = [CombineTerm::default(); STEP_TERMS];
        for (term, (x, factor)) in of.iter_mut().zip(terms) {
            *term = CombineTerm { x: self.place(x)?, factor: halves(*factor) };
        }
        // No part has this number.
        let (at, constant) = constant.unwrap_or((u64::MAX, [0; 2]));
        let (ring, terms) = (ring_number(ring), terms.len() as u64);
        let job = jobs::Combine { ring, parts, blocks, terms, at, constant, z, of };
        self.session.launch(job, parts * blocks)
    }
}
