//! The four computing parties, and where each part of a share lies.

use std::ops::Range;

/// One of the four computing parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(u8);

impl Seat {
    /// All seats.
    pub const ALL: [Self; 4] = [Self(0), Self(1), Self(2), Self(3)];

    /// Seat `index` modulo 4.
    #[must_use]
    pub const fn new(index: usize) -> Self {
        Self((index % 4) as u8)
    }

    /// 0 to 3.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The seat `k` places further on.
    #[must_use]
    pub const fn after(self, k: usize) -> Self {
        Self::new(self.index() + k)
    }

    /// Which part of this seat's share is summand `j`; `None` for its own number, which it does not hold.
    #[must_use]
    pub const fn part_of(self, j: Self) -> Option<usize> {
        match (j.index() + 4 - self.index()) % 4 {
            0 => None,
            distance => Some(distance - 1),
        }
    }

    /// The summand that part `k` (0, 1, 2) of this seat's share is.
    #[must_use]
    pub const fn summand(self, k: usize) -> Self {
        assert!(k < 3, "a share has three parts");
        self.after(k + 1)
    }
}

/// Which half of a vector's blocks: it decides who sends the products C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockHalf {
    /// The first ones, rounded up: seats 0 and 1 send.
    First,
    /// The others: seats 2 and 3 send.
    Second,
}

impl BlockHalf {
    /// Both halves, in order.
    pub const BOTH: [Self; 2] = [Self::First, Self::Second];

    /// Blocks of a vector of `blocks` that are in this half.
    #[must_use]
    pub fn range(self, blocks: usize) -> Range<usize> {
        let middle = blocks.div_ceil(2);
        match self {
            Self::First => 0..middle,
            Self::Second => middle..blocks,
        }
    }

    /// Whether a seat sends its C; if not it vouches for that of the seat two further on.
    #[must_use]
    pub fn sends(self, seat: Seat) -> bool {
        (seat.index() / 2 == 0) == (self == Self::First)
    }

    /// Whether a seat receives the C of the seat after it; if not it is the fourth party of the seat before
    /// it.
    #[must_use]
    pub fn receives(self, seat: Seat) -> bool {
        self.sends(seat.after(1))
    }
}

/// How the blocks of a chunk lie in the halves of its vector: the first ones in the first half, the others in
/// the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHalves {
    first: usize,
    blocks: usize,
}

impl ChunkHalves {
    /// Of the blocks `at` of a vector of `blocks`.
    #[must_use]
    pub fn of(at: &Range<usize>, blocks: usize) -> Self {
        let middle = BlockHalf::First.range(blocks).end;
        Self { first: middle.clamp(at.start, at.end) - at.start, blocks: at.len() }
    }

    /// Blocks of the chunk.
    #[must_use]
    pub fn blocks(self) -> usize {
        self.blocks
    }

    /// Those of a half, counted from the chunk's first.
    #[must_use]
    pub fn range(self, half: BlockHalf) -> Range<usize> {
        match half {
            BlockHalf::First => 0..self.first,
            BlockHalf::Second => self.first..self.blocks,
        }
    }

    /// The half that all of them lie in, if there is one.
    #[must_use]
    pub fn only(self) -> Option<BlockHalf> {
        BlockHalf::BOTH.into_iter().find(|half| self.range(*half).len() == self.blocks)
    }

    /// Those whose C a seat sends.
    #[must_use]
    pub fn sent(self, seat: Seat) -> Range<usize> {
        self.of_half(|half| half.sends(seat))
    }

    /// Those whose C a seat vouches for.
    #[must_use]
    pub fn vouched(self, seat: Seat) -> Range<usize> {
        self.of_half(|half| !half.sends(seat))
    }

    /// Those whose C a seat receives.
    #[must_use]
    pub fn received(self, seat: Seat) -> Range<usize> {
        self.of_half(|half| half.receives(seat))
    }

    /// Those of the half of which something is so; it is so of one.
    fn of_half(self, is: impl Fn(BlockHalf) -> bool) -> Range<usize> {
        self.range(if is(BlockHalf::First) { BlockHalf::First } else { BlockHalf::Second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_summands_are_inverse() {
        for seat in Seat::ALL {
            assert_eq!(seat.part_of(seat), None);
            for k in 0..3 {
                assert_eq!(seat.part_of(seat.summand(k)), Some(k));
            }
        }
    }

    #[test]
    fn every_half_has_two_senders_and_two_receivers() {
        for half in BlockHalf::BOTH {
            assert_eq!(Seat::ALL.iter().filter(|s| half.sends(**s)).count(), 2);
            assert_eq!(Seat::ALL.iter().filter(|s| half.receives(**s)).count(), 2);
            for seat in Seat::ALL {
                // A pair that shares a C has one sender.
                assert_ne!(half.sends(seat), half.sends(seat.after(2)));
                // Who does not receive is the fourth party of a sender.
                assert!(half.receives(seat) || half.sends(seat.after(3)));
            }
        }
        assert_eq!(BlockHalf::BOTH.map(|h| h.range(5)), [0..3, 3..5]);
    }

    #[test]
    fn a_chunk_lies_in_one_half_or_in_both() {
        let of = |at: Range<usize>| ChunkHalves::of(&at, 10);
        assert_eq!([of(0..5).only(), of(2..4).only()], [Some(BlockHalf::First); 2]);
        assert_eq!([of(5..10).only(), of(7..8).only()], [Some(BlockHalf::Second); 2]);
        assert_eq!(of(1..10).only(), None);
        let [first, .., last] = Seat::ALL;
        assert_eq!([of(1..10).sent(first), of(1..10).vouched(first)], [0..4, 4..9]);
        assert_eq!([of(1..10).sent(last), of(1..10).received(last)], [4..9, 0..4]);
        assert_eq!([of(0..5).sent(first), of(0..5).sent(last), of(5..10).vouched(first)], [0..5, 5..5, 0..5]);
    }
}
