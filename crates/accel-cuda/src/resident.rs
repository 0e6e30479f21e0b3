//! Vectors that stay on the GPU: what its kernels do when PCIe is not in the way.

use crate::device::{ChunkLayout, Stage1, Stage2, StageHalves, StageRound, launch_fold};
use crate::driver::Lane;
use crate::{Cuda, digest};
use accel::{BlockHalf, VectorRing, VouchBy};
use base::Error;
use kernels::Block;

/// Products of two vectors of a GPU, both halves, of which both stages can be run again and again: two are
/// under way, as are chunks of vectors that stay. What
/// comes in at stage 2 is what this seat would send: the content of messages makes no difference to the time
/// that they take.
pub struct Resident<'a> {
    /// Whose keys the kernels use.
    _cuda: &'a mut Cuda,
    lanes: [[Lane; 2]; 2],
    layout: ChunkLayout,
    stages: [(Stage1, Stage2); 2],
    round: u64,
}

impl Cuda {
    /// A product of `blocks` blocks in each half.
    ///
    /// # Errors
    /// When there are no keys yet, the blocks are none or too many, or the GPU failed.
    pub fn resident(
        &mut self,
        ring: VectorRing,
        blocks: usize,
        masked: bool,
        digests: bool,
    ) -> Result<Resident<'_>, Error> {
        if blocks == 0 || blocks > self.chunk_max {
            return Err(Error::misuse(format!("1 to {} blocks per half stay on the GPU", self.chunk_max)));
        }
        let layout = ChunkLayout::new(blocks, 1, 1);
        let stages = [
            self.stages(ring, BlockHalf::First, masked, digests)?,
            self.stages(ring, BlockHalf::Second, masked, digests)?,
        ];
        let device = 12 * blocks + 2 * digest::scratch(blocks, self.host_digest);
        let lane = || Lane::new(self.session.module(), 6 * blocks, device);
        let mut lanes = [[lane()?, lane()?], [lane()?, lane()?]];
        for lane in lanes.iter_mut().flatten() {
            for (i, block) in lane.host()?[..6 * blocks].iter_mut().enumerate() {
                *block = Block((i as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
            }
            lane.upload(0, 0, 6 * blocks)?;
            lane.wait()?;
        }
        Ok(Resident { _cuda: self, lanes, layout, stages, round: 0 })
    }

    fn stages(
        &self,
        ring: VectorRing,
        half: BlockHalf,
        masked: bool,
        digests: bool,
    ) -> Result<(Stage1, Stage2), Error> {
        let round = StageRound { ring, round: 0, halves: StageHalves::only(half), masked };
        let vouch = if digests { VouchBy::Digest } else { VouchBy::Nothing };
        Ok((self.stage1(round, vouch)?, self.stage2(round, digests)?))
    }
}

impl Resident<'_> {
    /// Runs both stages `times` times and waits for the last.
    ///
    /// # Errors
    /// When the GPU failed.
    pub fn run(&mut self, times: usize) -> Result<(), Error> {
        let Self { lanes, layout, stages, round, .. } = self;
        let blocks = layout.blocks;
        for _ in 0..times {
            let first = *round * blocks as u64;
            let lanes = &mut lanes[*round as usize % 2];
            for (lane, (stage1, stage2)) in lanes.iter_mut().zip(&*stages) {
                layout.cross(lane, stage1.ring, 1, false)?;
                layout.seal(lane, stage1, first)?;
                // Parts 0 to 2, A and C follow one another in what stage 1 gives.
                let z = [1, 2].map(|k| lane.address(layout.out + k * blocks, blocks));
                let places = [layout.out + 3 * blocks, layout.scratch];
                launch_fold(lane, stage2, first, blocks, z, places)?;
            }
            *round += 1;
        }
        lanes.iter_mut().flatten().try_for_each(Lane::wait)
    }
}
