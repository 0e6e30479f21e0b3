//! When triples are made and how many ANDs are opened at once: the schedule that both the engine and its
//! price follow.

use crate::{OPEN_ANDS, TRIPLES_PER_BATCH};

/// Triples announced, and triples at hand.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Supply {
    announced: u64,
    ready: u64,
}

/// What happens next in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// So many triples are made.
    Make(u64),
    /// So many ANDs are opened.
    Open(u64),
}

impl Supply {
    /// `ands` more triples will be wanted.
    pub fn announce(&mut self, ands: u64) {
        self.announced += ands;
    }

    /// `ands` triples will be wanted, of which some may be announced or ready.
    pub fn ensure(&mut self, ands: u64) {
        self.announced += ands.saturating_sub(self.announced + self.ready);
    }

    /// The next thing in a layer of which `left` ANDs are not opened yet; they were ensured.
    pub fn next(&mut self, left: u64) -> Next {
        let wanted = left.min(OPEN_ANDS);
        if self.ready >= wanted {
            self.ready -= wanted;
            return Next::Open(wanted);
        }
        let made = self.announced.min(TRIPLES_PER_BATCH);
        debug_assert!(made > 0, "the layer was ensured");
        self.announced -= made;
        self.ready += made;
        Next::Make(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_made_exactly_and_in_bounded_batches() {
        let layers = [3, 5, TRIPLES_PER_BATCH, 2 * TRIPLES_PER_BATCH + 7, 1];
        let all: u64 = layers.iter().sum();
        let mut supply = Supply::default();
        supply.announce(10);
        supply.ensure(all);
        let mut made = 0;
        for layer in layers {
            let mut left = layer;
            while left > 0 {
                match supply.next(left) {
                    Next::Make(n) => {
                        assert!(n <= TRIPLES_PER_BATCH);
                        made += n;
                    }
                    Next::Open(n) => {
                        assert!(n <= OPEN_ANDS && n > 0);
                        left -= n;
                    }
                }
                assert!(supply.ready < 2 * TRIPLES_PER_BATCH);
            }
        }
        assert_eq!((made, supply.ready, supply.announced), (all, 0, 0));
    }

    #[test]
    fn a_layer_that_fits_a_batch_is_opened_at_once() {
        let mut supply = Supply::default();
        supply.ensure(2 * OPEN_ANDS);
        assert_eq!(supply.next(1), Next::Make(TRIPLES_PER_BATCH));
        assert_eq!(supply.next(1), Next::Open(1));
        assert_eq!(supply.next(OPEN_ANDS), Next::Make(TRIPLES_PER_BATCH));
        assert_eq!(supply.next(OPEN_ANDS), Next::Open(OPEN_ANDS));
    }
}
