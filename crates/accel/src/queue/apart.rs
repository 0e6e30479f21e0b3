//! Vectors of a queue in two memories: a device has those that it is worth and has room for, the host the
//! others.

use crate::steps::{VectorRun, VectorStep};
use crate::{DeviceQueue, DeviceVector, VectorMemory, VectorRing};
use base::Error;
use kernels::Block;
use zeroize::Zeroizing;

impl DeviceQueue {
    /// A vector in the host's memory, whatever its length.
    pub fn make_on_host(&mut self, ring: VectorRing, blocks: usize) -> DeviceVector {
        self.vectors.make(ring, blocks)
    }

    /// Whether a vector lies in the host's memory.
    #[must_use]
    pub fn is_on_host(&self, vector: &DeviceVector) -> bool {
        self.vectors.has(vector)
    }

    /// A copy of a run where another vector lies, in a vector of its own.
    ///
    /// # Errors
    /// As [`VectorMemory::make`], and those of copies.
    pub fn move_beside(&mut self, other: &DeviceVector, run: &VectorRun<'_>) -> Result<DeviceVector, Error> {
        let moved = self.make_beside(other, run.vector.ring(), run.blocks)?;
        self.copy_run(run, &VectorRun { vector: &moved, from: 0, ..*run })?;
        self.work.moved += 1;
        Ok(moved)
    }

    /// A copy of a run in the host's memory, in a vector of its own.
    ///
    /// # Errors
    /// Those of copies.
    pub fn move_to_host(&mut self, run: &VectorRun<'_>) -> Result<DeviceVector, Error> {
        let moved = self.vectors.make(run.vector.ring(), run.blocks);
        self.copy_run(run, &VectorRun { vector: &moved, from: 0, ..*run })?;
        self.work.moved += 1;
        Ok(moved)
    }

    /// Copies between runs of one length and of the same parts, wherever they lie.
    fn copy_run(&mut self, from: &VectorRun<'_>, to: &VectorRun<'_>) -> Result<(), Error> {
        let mut blocks = Zeroizing::new(vec![Block::ZERO; from.blocks]);
        for part in from.parts() {
            self.read_run(&VectorRun { part: Some(part), ..*from }, &mut blocks)?;
            self.write_run(&VectorRun { part: Some(part), ..*to }, &blocks)?;
        }
        Ok(())
    }

    /// A step some of whose vectors lie with a device and some with the host, which does it: there is always
    /// room there.
    pub(super) fn step_apart(&mut self, step: &VectorStep<'_>) -> Result<(), Error> {
        step.check()?;
        let runs: Vec<&VectorRun<'_>> = step.reads().into_iter().chain([step.z()]).collect();
        let mut copies = Vec::with_capacity(runs.len());
        for run in &runs {
            let here = self.is_on_host(run.vector);
            copies.push(if here { None } else { Some(self.move_to_host(run)?) });
        }
        let mut near = Vec::with_capacity(runs.len());
        for (run, copy) in runs.iter().zip(&copies) {
            near.push(match copy {
                None => **run,
                Some(vector) => VectorRun { vector, from: 0, ..**run },
            });
        }
        let Some(z) = near.pop() else { return Ok(()) };
        match *step {
            VectorStep::Combine { ring, terms, constant, .. } => {
                let terms: Vec<_> = near.into_iter().zip(terms).map(|(x, (_, by))| (x, *by)).collect();
                self.step(&VectorStep::Combine { ring, z, terms: &terms, constant })?;
            }
            VectorStep::Draw { ring, negative, key, name, first, .. } => {
                let x = near.pop();
                self.step(&VectorStep::Draw { ring, z, x, negative, key, name, first })?;
            }
            VectorStep::Cross { ring, .. } => {
                let terms: Vec<_> = near.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
                self.step(&VectorStep::Cross { ring, z, terms: &terms })?;
            }
            VectorStep::Shift { ring, by, signed, keep, .. } => {
                self.step(&VectorStep::Shift { ring, z, x: near[0], by, signed, keep })?;
            }
            VectorStep::Planes { ring, from, width, stride, .. } => {
                self.step(&VectorStep::Planes { ring, z, x: near[0], from, width, stride })?;
            }
            VectorStep::Elements { ring, width, stride, .. } => {
                self.step(&VectorStep::Elements { ring, z, x: near[0], width, stride })?;
            }
        }
        if z.vector.same_vector(step.z().vector) { Ok(()) } else { self.copy_run(&z, step.z()) }
    }
}
