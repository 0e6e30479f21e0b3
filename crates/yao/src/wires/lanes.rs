//! A number in every lane: scratch of a program, outside the region.

use kernels::Block;
use std::cell::RefCell;
use std::rc::Rc;

/// Blocks between the starts of two rows beyond the lanes: without them the rows of 512 lanes would share the
/// sets of a first-level cache when a gather writes to all of them.
const PAD: usize = 4;

/// Buffers to use again, so that no gadget allocates in the long run.
pub(super) type Pool = Rc<RefCell<Vec<Vec<Block>>>>;

/// Numbers of `width` bits in `count` lanes, bit-major: row j holds the labels of bit j of all lanes. It lies
/// in ordinary memory and goes back to its party when dropped; a speculator's holds nothing.
pub struct WireLanes {
    width: usize,
    count: usize,
    /// What was called when it was made, so that parties know it by the same number.
    made: u64,
    labels: Vec<Block>,
    pool: Pool,
}

impl WireLanes {
    /// Room for numbers; what is in it is not defined. `stored`: whether there are labels at all.
    pub(super) fn take(pool: &Pool, width: usize, count: usize, stored: bool, made: u64) -> Self {
        let mut labels = Vec::new();
        if stored {
            let blocks = width * (count + PAD);
            labels = pool.borrow_mut().pop().unwrap_or_default();
            if labels.len() < blocks {
                labels.resize(blocks, Block::ZERO);
            }
        }
        Self { width, count, made, labels, pool: pool.clone() }
    }

    /// Which of its party's results it is, and its shape.
    pub(super) fn shape(&self) -> [u64; 3] {
        [self.made, self.width as u64, self.count as u64]
    }

    /// The result of another call than of that which took the room.
    pub(super) fn of(self, made: u64) -> Self {
        let mut all = self;
        all.made = made;
        all
    }

    /// Bits per number.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Lanes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Labels of a bit, by lane.
    pub(super) fn row(&self, bit: usize) -> &[Block] {
        debug_assert!(bit < self.width);
        &self.labels[bit * (self.count + PAD)..][..self.count]
    }

    /// Labels of a bit, by lane.
    pub(super) fn row_mut(&mut self, bit: usize) -> &mut [Block] {
        debug_assert!(bit < self.width);
        &mut self.labels[bit * (self.count + PAD)..][..self.count]
    }

    /// Row `into` to write and the other one, of two.
    pub(super) fn pair(&mut self, into: usize) -> (&mut [Block], &[Block]) {
        debug_assert!(self.width == 2 && into < 2);
        let (zero, one) = self.labels.split_at_mut(self.count + PAD);
        let (zero, one) = (&mut zero[..self.count], &mut one[..self.count]);
        if into == 0 { (zero, one) } else { (one, zero) }
    }

    /// All labels, and the blocks from one row to the next.
    pub(super) fn raw(&mut self) -> (&mut [Block], usize) {
        (&mut self.labels, self.count + PAD)
    }

    /// All labels, and the blocks from one row to the next.
    pub(super) fn raw_ref(&self) -> (&[Block], usize) {
        (&self.labels, self.count + PAD)
    }
}

impl Drop for WireLanes {
    fn drop(&mut self) {
        if !self.labels.is_empty() {
            self.pool.borrow_mut().push(std::mem::take(&mut self.labels));
        }
    }
}
