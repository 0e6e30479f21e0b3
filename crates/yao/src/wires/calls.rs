//! What a program called so far, in 8 bytes: parties compare them, because a gate that one of them did not
//! mean gives a wrong result and no error.
//!
//! A running hash over public things alone: operations, widths, lengths, items, owners, and which results a
//! gadget takes. Not in it: which of several buffers of equal shape is read or written, since addresses are
//! each party's own. Two programs that differ agree by accident with probability about 2^-64; it is no
//! defence against who looks for that.

/// The operations of a party.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Xor,
    Not,
    And,
    Constant,
    Input,
    Reveal,
    Agree,
    Load,
    Store,
    Number,
    XorLanes,
    NotLanes,
    AndLanes,
    Mask,
    Mux,
    Add,
    AddWide,
    LessThan,
    Equal,
    Popcount,
    Multiply,
    SumGroups,
    Swap,
    Order,
}

/// All calls so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls(u64);

impl Calls {
    /// One more, with what makes it another than its like.
    pub fn add(&mut self, call: Call, of: &[u64]) {
        self.mix(call as u64 | (of.len() as u64) << 32);
        of.iter().for_each(|value| self.mix(*value));
    }

    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// The 8 bytes as a number, which also names what the last call gave.
    pub fn so_far(self) -> u64 {
        self.0
    }
}
