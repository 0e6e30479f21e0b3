//! Steps on vectors of the host.

use crate::SeatKeys;
use crate::host_vectors::HostVectors;
use crate::steps::{VectorRun, VectorStep};
use base::Error;
use kernels::{Block, VectorRing, gf_digest, ring_add, ring_sub, transpose128};
use zeroize::Zeroizing;

/// A result, before it goes to its place.
type Result3 = Vec<Zeroizing<Vec<Block>>>;

/// Elements of 64 or 128 bits divided by `2^by` and rounded down, of which the lowest `keep` bits are kept:
/// `by` is less than their bits, `keep` not more.
#[must_use]
pub fn shifted(ring: VectorRing, x: Block, (by, keep): (u32, u32), signed: bool) -> Block {
    let bits = ring.bits();
    let kept = if keep == 128 { u128::MAX } else { (1 << keep) - 1 };
    let down =
        |up: u128| if signed { ((up as i128) >> (128 - bits + by)) as u128 } else { up >> (128 - bits + by) };
    match ring {
        VectorRing::Z64 => Block(down(x.0 << 64) & kept | (down(x.0) & kept) << 64),
        VectorRing::Z128 | VectorRing::Z2 => Block(down(x.0) & kept),
    }
}

/// Planes of elements, from bit `from` on, as many as there is room for.
///
/// # Panics
/// When elements do not have that many bits, or planes are too short.
pub fn planes_of(ring: VectorRing, elements: &[Block], from: usize, planes: &mut [&mut [Block]]) {
    let mask = u128::MAX >> (128 - ring.bits());
    let mut rows = Zeroizing::new([Block::ZERO; 128]);
    let mut columns = Zeroizing::new([Block::ZERO; 128]);
    for block in 0..(elements.len() * ring.lanes()).div_ceil(128) {
        for (i, row) in rows.iter_mut().enumerate() {
            let at = block * 128 + i;
            let lane = (at % ring.lanes()) as u32;
            let of = |x: &Block| Block(x.0 >> (lane * ring.bits()) & mask);
            *row = elements.get(at / ring.lanes()).map_or(Block::ZERO, of);
        }
        transpose128(&*rows, &mut *columns);
        let wanted = &columns[from..from + planes.len()];
        planes.iter_mut().zip(wanted).for_each(|(plane, &column)| plane[block] = column);
    }
}

/// The inverse: as many blocks of elements as `elements` has, from their lowest planes.
///
/// # Panics
/// When there are more planes than an element has bits.
pub fn elements_of(ring: VectorRing, planes: &[&[Block]], elements: &mut [Block]) {
    elements.fill(Block::ZERO);
    let mut rows = Zeroizing::new([Block::ZERO; 128]);
    let mut columns = Zeroizing::new([Block::ZERO; 128]);
    for block in 0..(elements.len() * ring.lanes()).div_ceil(128) {
        rows.iter_mut().zip(planes).for_each(|(row, plane)| *row = plane[block]);
        transpose128(&*rows, &mut *columns);
        for (i, column) in columns.iter().enumerate() {
            let at = block * 128 + i;
            let lane = (at % ring.lanes()) as u32;
            if let Some(into) = elements.get_mut(at / ring.lanes()) {
                into.0 |= column.0 << (lane * ring.bits());
            }
        }
    }
}

impl HostVectors {
    /// The blocks of a run in one of its parts, by their number among these.
    fn run(&mut self, run: &VectorRun<'_>, k: usize) -> Result<&mut [Block], Error> {
        let part = run.parts().start + k;
        Ok(&mut self.parts(run.vector)?[part][run.from..run.from + run.blocks])
    }

    pub fn step(&mut self, keys: &SeatKeys, step: &VectorStep<'_>) -> Result<(), Error> {
        step.check()?;
        let z = step.z();
        let results = z.parts().map(|_| Zeroizing::new(vec![Block::ZERO; z.blocks])).collect();
        let results = self.results(keys, step, results)?;
        for (k, result) in results.iter().enumerate() {
            self.run(z, k)?.copy_from_slice(result);
        }
        Ok(())
    }

    fn results(
        &mut self,
        keys: &SeatKeys,
        step: &VectorStep<'_>,
        mut results: Result3,
    ) -> Result<Result3, Error> {
        let first = step.z().parts().start;
        for (k, out) in results.iter_mut().enumerate() {
            match *step {
                VectorStep::Combine { ring, terms, constant, .. } => {
                    if let Some((_, added)) = constant.filter(|(part, _)| *part == first + k) {
                        out.fill(added);
                    }
                    for (x, factor) in terms {
                        let x = self.run(x, k)?.iter();
                        out.iter_mut().zip(x).for_each(|(z, &x)| *z = ring.add(*z, ring.mul(x, *factor)));
                    }
                }
                VectorStep::Draw { ring, ref x, negative, key, name, first, .. } => {
                    if let Some(x) = x {
                        out.copy_from_slice(self.run(x, k)?);
                    }
                    let mut stream = Zeroizing::new(vec![Block::ZERO; out.len()]);
                    keys.fill(key, name, first, &mut stream);
                    if negative { ring_sub(ring, out, &stream) } else { ring_add(ring, out, &stream) }
                }
                VectorStep::Cross { ring, terms, .. } => {
                    for [x, y] in terms {
                        let x = Zeroizing::new(self.run(x, k)?.to_vec());
                        let factors = x.iter().zip(&*self.run(y, k)?);
                        out.iter_mut()
                            .zip(factors)
                            .for_each(|(z, (&x, &y))| *z = ring.add(*z, ring.mul(x, y)));
                    }
                }
                VectorStep::Shift { ring, ref x, by, signed, keep, .. } => {
                    let x = self.run(x, k)?.iter();
                    out.iter_mut().zip(x).for_each(|(z, &x)| *z = shifted(ring, x, (by, keep), signed));
                }
                VectorStep::Planes { ring, ref x, from, stride, .. } => {
                    // What lies between planes stays.
                    out.copy_from_slice(self.run(step.z(), k)?);
                    let mut planes: Vec<&mut [Block]> = out.chunks_mut(stride.max(1)).collect();
                    planes_of(ring, self.run(x, k)?, from as usize, &mut planes);
                }
                VectorStep::Elements { ring, ref x, width, stride, .. } => {
                    let all = self.run(x, k)?;
                    let planes: Vec<&[Block]> = (0..width as usize).map(|i| &all[i * stride..]).collect();
                    elements_of(ring, &planes, out);
                }
            }
        }
        Ok(results)
    }

    pub fn digest(&mut self, keys: &SeatKeys, key: usize, x: &VectorRun<'_>) -> Result<Block, Error> {
        Ok(gf_digest(keys.tag(key), Block::ZERO, self.some(x)?))
    }

    /// A run of one part, if it is there.
    pub fn some(&mut self, run: &VectorRun<'_>) -> Result<&mut [Block], Error> {
        let wrong = || Error::misuse("a run that a vector does not have, or not of one part");
        let end = run.from.checked_add(run.blocks).ok_or_else(wrong)?;
        let part = run.part.filter(|part| *part < 3).ok_or_else(wrong)?;
        self.parts(run.vector)?[part].get_mut(run.from..end).ok_or_else(wrong)
    }
}
