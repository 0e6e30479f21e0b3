//! Local steps on vectors that stay with a device: element by element against plain integers, and nothing but
//! the result changes.

use super::{keys, random};
use crate::{
    DeviceQueue, DeviceVector, STEP_TERMS, Seat, StreamName, Use, VectorMemory, VectorRing, VectorRun,
};
use crate::{VectorStep, splat};
use base::Error;
use kernels::{Block, gf_digest};

/// A vector and what must be in it.
struct Twin {
    vector: DeviceVector,
    parts: [Vec<Block>; 3],
}

impl Twin {
    fn new(queue: &mut DeviceQueue, ring: VectorRing, blocks: usize, label: u64) -> Result<Self, Error> {
        let vector = queue.make(ring, blocks)?;
        let parts: [Vec<Block>; 3] = std::array::from_fn(|k| random(label + k as u64, blocks));
        queue.write(&vector, parts.each_ref().map(Vec::as_slice))?;
        Ok(Self { vector, parts })
    }

    fn run(&self, part: Option<usize>, from: usize, blocks: usize) -> VectorRun<'_> {
        VectorRun { vector: &self.vector, part, from, blocks }
    }

    /// What a run has in its k-th part.
    fn some(&self, run: &VectorRun<'_>, k: usize) -> &[Block] {
        &self.parts[run.parts().start + k][run.from..run.from + run.blocks]
    }

    fn holds(&self, queue: &mut DeviceQueue) -> Result<bool, Error> {
        let mut got: [Vec<Block>; 3] = std::array::from_fn(|_| vec![Block::ZERO; self.vector.blocks()]);
        queue.read(&self.vector, 0, got.each_mut().map(Vec::as_mut_slice))?;
        Ok(got == self.parts)
    }
}

/// Element `at` of blocks.
fn element(ring: VectorRing, blocks: &[Block], at: usize) -> u128 {
    let lane = (at % ring.lanes()) as u32;
    blocks[at / ring.lanes()].0 >> (lane * ring.bits()) & u128::MAX >> (128 - ring.bits())
}

/// The step on the device and on its twin, of which `wanted` says block i of part k.
fn same(
    queue: &mut DeviceQueue,
    z: &Twin,
    step: &VectorStep<'_>,
    wanted: &dyn Fn(usize, usize) -> Block,
    what: &str,
) -> Result<(), String> {
    let word = |e: Error| format!("{what}: {e}");
    queue.step(step).map_err(word)?;
    let run = step.z();
    let mut parts = z.parts.clone();
    for (k, part) in run.parts().enumerate() {
        (0..run.blocks).for_each(|i| parts[part][run.from + i] = wanted(k, i));
    }
    let mut got: [Vec<Block>; 3] = std::array::from_fn(|_| vec![Block::ZERO; z.vector.blocks()]);
    queue.read(&z.vector, 0, got.each_mut().map(Vec::as_mut_slice)).map_err(word)?;
    // For the next step.
    queue.write(&z.vector, z.parts.each_ref().map(Vec::as_slice)).map_err(word)?;
    if got == parts { Ok(()) } else { Err(format!("{what}: not the numbers that were expected")) }
}

/// Blocks of the longest vectors: several chunks and lanes of devices that a test makes small.
const BLOCKS: usize = 400;
/// Lengths of runs, and where they begin.
const RUNS: [(usize, usize); 4] = [(0, 0), (1, 7), (33, 1), (397, 2)];

fn combine(queue: &mut DeviceQueue, ring: VectorRing) -> Result<(), String> {
    let word = |e: Error| e.to_string();
    let z = Twin::new(queue, ring, BLOCKS, 100).map_err(word)?;
    let of: Vec<Twin> = (0..2)
        .map(|i| Twin::new(queue, ring, BLOCKS + 3, 110 + 10 * i))
        .collect::<Result<_, _>>()
        .map_err(word)?;
    let factors = [1, u128::MAX, 2, 0xfedc_ba98_7654_3210_0f1e_2d3c_4b5a_6978].map(|by| splat(ring, by));
    for (blocks, from) in RUNS {
        for (part, terms) in [(None, 0), (None, 3), (Some(0), 1), (Some(2), STEP_TERMS), (None, STEP_TERMS)] {
            for constant in [None, Some((2, splat(ring, 77))), Some((0, Block(u128::MAX)))] {
                let constant = constant.filter(|(at, _)| part.is_none_or(|part| part == *at));
                let run = |i: usize| of[i % 2].run(part.map(|part| (part + i) % 3), from + i % 3, blocks);
                let runs: Vec<_> = (0..terms).map(|i| (run(i), factors[i % 4])).collect();
                let step = VectorStep::Combine { ring, z: z.run(part, from, blocks), terms: &runs, constant };
                let first = part.unwrap_or(0);
                let wanted = |k: usize, i: usize| {
                    let start = constant.filter(|(at, _)| *at == first + k).map_or(Block::ZERO, |(_, c)| c);
                    let term = |sum, (t, (run, by)): (usize, &(VectorRun<'_>, Block))| {
                        ring.add(sum, ring.mul(of[t % 2].some(run, k)[i], *by))
                    };
                    runs.iter().enumerate().fold(start, term)
                };
                same(queue, &z, &step, &wanted, &format!("{ring:?}, {terms} terms of {blocks} blocks"))?;
            }
        }
    }
    // In place, and a sum and a difference, for which devices have commands.
    let [x, y] = [z.run(None, 3, 390), of[0].run(None, 3, 390)];
    for negative in [false, true] {
        let one = splat(ring, 1);
        let terms = [(x, one), (y, if negative { splat(ring, u128::MAX) } else { one })];
        let step = VectorStep::Combine { ring, z: x, terms: &terms, constant: None };
        let apply = |a, b| if negative { ring.sub(a, b) } else { ring.add(a, b) };
        let wanted = |k: usize, i: usize| apply(z.some(&x, k)[i], of[0].some(&y, k)[i]);
        same(queue, &z, &step, &wanted, &format!("{ring:?}: a sum, negative {negative}"))?;
    }
    Ok(())
}

fn draw(queue: &mut DeviceQueue, ring: VectorRing, seat: Seat) -> Result<(), String> {
    let word = |e: Error| e.to_string();
    let z = Twin::new(queue, ring, BLOCKS, 200).map_err(word)?;
    let x = Twin::new(queue, ring, BLOCKS, 210).map_err(word)?;
    let all_keys = keys();
    for (key, (blocks, from)) in (0..12).map(|i| i % 3).zip(RUNS.into_iter().cycle()) {
        for (with, negative) in [(false, false), (false, true), (true, false), (true, true)] {
            let name = StreamName { round: 3 + key as u64, r#use: Use::Wire, channel: [seat, seat.after(2)] };
            let first = 1_000_003 * from as u64;
            let of_x = x.run(Some(key), from, blocks);
            let here = z.run(Some(2 - key), from + 1, blocks);
            let with_x = with.then_some(of_x);
            let step = VectorStep::Draw { ring, z: here, x: with_x, negative, key, name, first };
            let mut stream = vec![Block::ZERO; blocks];
            all_keys[seat.index()].fill(key, name, first, &mut stream);
            let wanted = |_: usize, i: usize| {
                let start = if with { x.some(&of_x, 0)[i] } else { Block::ZERO };
                if negative { ring.sub(start, stream[i]) } else { ring.add(start, stream[i]) }
            };
            same(queue, &z, &step, &wanted, &format!("{ring:?}: a stream of {blocks} blocks"))?;
        }
    }
    Ok(())
}

fn cross(queue: &mut DeviceQueue, ring: VectorRing) -> Result<(), String> {
    let word = |e: Error| e.to_string();
    let z = Twin::new(queue, ring, BLOCKS, 300).map_err(word)?;
    let of: Vec<Twin> = (0..2)
        .map(|i| Twin::new(queue, ring, BLOCKS, 310 + 10 * i))
        .collect::<Result<_, _>>()
        .map_err(word)?;
    for (terms, (blocks, from)) in [0, 1, 3, STEP_TERMS].into_iter().zip(RUNS.into_iter().rev()) {
        let run = |i: usize| of[i / 3 % 2].run(Some(i % 3), from.saturating_sub(i % 2), blocks);
        let pairs: Vec<_> = (0..terms).map(|i| [run(i), run(i + 2)]).collect();
        let step = VectorStep::Cross { ring, z: z.run(Some(1), from, blocks), terms: &pairs };
        let wanted = |_: usize, i: usize| {
            let term = |sum, t: usize| {
                let [x, y] = [t, t + 2].map(|t| of[t / 3 % 2].some(&run(t), 0)[i]);
                ring.add(sum, ring.mul(x, y))
            };
            (0..terms).fold(Block::ZERO, term)
        };
        same(queue, &z, &step, &wanted, &format!("{ring:?}: {terms} local products"))?;
    }
    Ok(())
}

fn shift(queue: &mut DeviceQueue, ring: VectorRing) -> Result<(), String> {
    let word = |e: Error| e.to_string();
    let z = Twin::new(queue, ring, BLOCKS, 400).map_err(word)?;
    let x = Twin::new(queue, ring, BLOCKS, 410).map_err(word)?;
    let bits = ring.bits();
    let cases = [0, 1, 17, 31, 32, 33, 63, 64, 65, 127].into_iter().filter(|by| *by < bits);
    for (by, (blocks, from)) in cases.zip(RUNS.into_iter().cycle()) {
        for (signed, keep) in [(false, bits), (true, bits), (false, 1), (false, 40), (true, 33), (false, 62)]
        {
            let part = [None, Some(1)][by as usize % 2];
            let of_x = x.run(part, from, blocks);
            let step = VectorStep::Shift { ring, z: z.run(part, from, blocks), x: of_x, by, signed, keep };
            let wanted = |k: usize, i: usize| {
                let one = |lane: usize| {
                    let value = element(ring, x.some(&of_x, k), i * ring.lanes() + lane);
                    let up = value << (128 - bits);
                    let down = if signed { (up as i128 >> (128 - bits)) as u128 } else { value };
                    let shifted = if signed { ((down as i128) >> by) as u128 } else { down >> by };
                    let kept = if keep == 128 { shifted } else { shifted % (1 << keep) };
                    kept << (lane as u32 * bits)
                };
                Block((0..ring.lanes()).map(one).fold(0, |all, one| all | one))
            };
            same(queue, &z, &step, &wanted, &format!("{ring:?}: {blocks} blocks by {by} bits, keep {keep}"))?;
        }
    }
    Ok(())
}

fn planes(queue: &mut DeviceQueue, ring: VectorRing) -> Result<(), String> {
    let word = |e: Error| e.to_string();
    let x = Twin::new(queue, ring, BLOCKS, 510).map_err(word)?;
    let bits = ring.bits();
    for (from, width) in [(0, 1), (0, bits), (bits - 1, 1), (31, 3), (5, 33), (0, 17), (1, bits - 1)] {
        for (blocks, part) in [(1, None), (BLOCKS / 3, Some(2)), (BLOCKS - 1, None)] {
            let plane = (blocks * ring.lanes()).div_ceil(128);
            let stride = plane + width as usize % 2;
            let all = (width as usize - 1) * stride + plane;
            let z = Twin::new(queue, VectorRing::Z2, all + 3, 500).map_err(word)?;
            let (of_x, of_z) = (x.run(part, 1, blocks), z.run(part, 2, all));
            let bit = |k: usize, plane: usize, at: usize| {
                let there = at < blocks * ring.lanes();
                let value = if there { element(ring, x.some(&of_x, k), at) } else { 0 };
                value >> (from as usize + plane) & 1
            };
            let step = VectorStep::Planes { ring, z: of_z, x: of_x, from, width, stride };
            let wanted = |k: usize, i: usize| {
                let (of, block) = (i / stride, i % stride);
                if block >= plane {
                    return z.some(&of_z, k)[i];
                }
                Block((0..128).map(|at| bit(k, of, block * 128 + at) << at).fold(0, |all, one| all | one))
            };
            let what = format!("{ring:?}: planes {from}..{} of {blocks} blocks", from + width);
            same(queue, &z, &step, &wanted, &what)?;
            // And back.
            let back = VectorStep::Elements { ring, z: of_x, x: of_z, width, stride };
            let wanted = |k: usize, i: usize| {
                let one = |lane: usize| {
                    let at = i * ring.lanes() + lane;
                    let bit = |of: usize| element(VectorRing::Z2, &z.some(&of_z, k)[of * stride..], at) << of;
                    (0..width as usize).map(bit).fold(0, |all, one| all | one) << (lane as u32 * bits)
                };
                Block((0..ring.lanes()).map(one).fold(0, |all, one| all | one))
            };
            same(queue, &x, &back, &wanted, &format!("{what}, and back"))?;
        }
    }
    Ok(())
}

fn runs(queue: &mut DeviceQueue, ring: VectorRing, seat: Seat) -> Result<(), Error> {
    let mut x = Twin::new(queue, ring, BLOCKS, 600)?;
    let all_keys = keys();
    for (tag, (blocks, from)) in [0, 1, 2, 0].into_iter().zip(RUNS) {
        let some = random(610 + from as u64, blocks);
        queue.write_run(&x.run(Some(tag), from, blocks), &some)?;
        x.parts[tag][from..from + blocks].copy_from_slice(&some);
        let run = x.run(Some(tag), from, blocks);
        let mut got = vec![Block::ZERO; blocks];
        queue.read_run(&run, &mut got)?;
        let wanted = gf_digest(all_keys[seat.index()].tag(tag), Block::ZERO, &some);
        if got != some || !x.holds(queue)? || queue.digest(tag, &run)? != wanted {
            return Err(Error::misuse(format!("{ring:?}: a run of {blocks} blocks is another one")));
        }
    }
    Ok(())
}

/// Misuse is told, not done.
fn misuse(queue: &mut DeviceQueue, other: &mut DeviceQueue) -> Result<(), Error> {
    let ring = VectorRing::Z64;
    let (x, z) = (Twin::new(queue, ring, 10, 700)?, Twin::new(queue, ring, 10, 710)?);
    let foreign = Twin::new(other, ring, 10, 720)?;
    let one = splat(ring, 1);
    let mut combine = |z, x| queue.step(&VectorStep::Combine { ring, z, terms: &[(x, one)], constant: None });
    let whole = z.run(None, 0, 10);
    let mut wrong = vec![
        combine(whole, x.run(None, 1, 9)).is_err(),
        combine(whole, x.run(Some(1), 0, 10)).is_err(),
        combine(z.run(Some(3), 0, 1), x.run(Some(1), 0, 1)).is_err(),
        combine(z.run(None, 8, 3), x.run(None, 7, 3)).is_err(),
        combine(z.run(None, 0, 9), z.run(None, 1, 9)).is_err(),
        combine(whole, foreign.run(None, 0, 10)).is_err(),
        combine(foreign.run(None, 0, 10), x.run(None, 0, 10)).is_err(),
    ];
    let (part, of) = (z.run(Some(0), 0, 1), x.run(Some(0), 0, 10));
    let planes = |z, x, from, width| VectorStep::Planes { ring, z, x, from, width, stride: 1 };
    wrong.push(queue.step(&planes(part, of, 64, 1)).is_err());
    wrong.push(queue.step(&planes(part, of, 0, 2)).is_err());
    wrong.push(queue.step(&planes(z.run(Some(0), 0, 1), z.run(Some(0), 0, 10), 0, 1)).is_err());
    let shift =
        |by, keep| VectorStep::Shift { ring, z: part, x: x.run(Some(0), 0, 1), by, signed: true, keep };
    wrong.push(queue.step(&shift(64, 1)).is_err());
    wrong.push(queue.step(&shift(0, 65)).is_err());
    wrong.push(queue.read_run(&whole, &mut [Block::ZERO; 10]).is_err());
    wrong.push(queue.read_run(&of, &mut [Block::ZERO; 9]).is_err());
    wrong.push(queue.write_run(&x.run(Some(0), 8, 3), &[Block::ZERO; 3]).is_err());
    wrong.push(queue.digest(0, &whole).is_err());
    if z.holds(queue)? && wrong.iter().all(|one| *one) {
        return Ok(());
    }
    Err(Error::misuse(format!("misuse of steps passed: {wrong:?}")))
}

/// All steps at all seats.
pub fn check(queues: &mut [DeviceQueue], reference: &mut DeviceQueue) -> Result<(), String> {
    for (seat, queue) in Seat::ALL.into_iter().zip(queues.iter_mut()) {
        for ring in VectorRing::ALL {
            combine(queue, ring)?;
            draw(queue, ring, seat)?;
            cross(queue, ring)?;
            runs(queue, ring, seat).map_err(|e| e.to_string())?;
        }
        // One seat's planes are another's.
        for ring in [VectorRing::Z128, VectorRing::Z64].into_iter().filter(|_| seat.index() < 2) {
            shift(queue, ring)?;
            planes(queue, ring)?;
        }
    }
    misuse(&mut queues[0], reference).map_err(|e| e.to_string())
}
