//! Half-gates for imperative programs: wires are labels in memory of the program's own, gates are calls.
//!
//! **Functionality.** Two parties run one program. [`WireParty`] garbles or evaluates what it calls, at once
//! and in order; wires are [`kernels::Block`]s in slices and [`WireArray`]s, which come from an allocator
//! (`osprey::Memory`). Nothing is compiled and nothing is kept but what the program keeps: memory is 16 bytes
//! per wire. Gadgets work on [`WireLanes`]: the same operation on many items side by side, because a kernel
//! call on 64 or more lanes costs one key schedule.
//!
//! **Security model and parameters.** Semi-honest, one of two parties; labels of 128 bits with the colour in
//! bit 0; Delta and the public `start` of the hash fresh per connection; half-gates and hash as in the
//! crate's header. A call of the kernel is at most [`crate::LANES`] lanes under one pair of tweaks, and a
//! counter gives every call another pair.
//!
//! *Lanes that share a tweak must not hash the same label* (the sum of two of their ciphertexts would be
//! Delta or zero). A program is free to put one wire into two lanes, or a constant, so **every** operand of
//! an AND is offset by `2 (lane + 1)` before it is hashed, at both parties: a public relabelling that keeps
//! value and colour. This is enough. An active label is a sum of base labels: constants are zero, inputs and
//! results of ANDs are independent and (pseudo) random. So two lanes' labels either are the same sum, and
//! then the offsets make them differ, or differ by a non-empty sum of random labels, which meets the
//! difference of two offsets (or that and Delta) with probability 2^-127. The hash is secure for inputs known
//! to the evaluator as long as no pair of input and tweak repeats, which is all that constants and the
//! garbler's inputs need.
//!
//! **Who learns what.** The program and all sizes, which are public, and what [`WireParty::reveal`] opens.
//! Addresses and branches of a program cannot depend on values: it never sees one before it reveals it.
//!
//! **Paper and deviations.** Zahur, Rosulek, Evans 2015. Labels of the garbler's inputs are not sent: the
//! active label is expanded from a public seed and the label of 0 is that plus `y Delta`, which is
//! distributed as if the garbler had drawn it and sent it. Labels of the evaluator's inputs by correlated OT
//! (SoftSpoken), in batches of [`STRETCH`]. Paper 004 stubs a library's cryptography for its speculative
//! pass; here the stub is a role: [`WireParty::speculator`] tells the runtime what either party would touch,
//! in the same order and between the same ticks, and computes nothing. Scratch ([`WireLanes`]) is ordinary
//! memory: small, hot, and at addresses that no value decides, so it needs no paging and the speculator
//! leaves it alone.
//!
//! **Cost.** 32 bytes and one AND per bit of what [`ands`] says for a gadget, XOR and NOT are free, a
//! garbler's input is free, an evaluator's is one OT, a revealed wire is a bit each way. [`WireParty::price`]
//! is exact in every role; a speculator's is the price before anybody connects. Tests hold the ledger against
//! it.

pub mod ands;
mod array;
mod calls;
mod gadgets;
mod lanes;
mod party;
mod price;
mod setup;
#[cfg(test)]
mod tests;

pub use array::{Items, WireArray};
pub use lanes::WireLanes;
pub use party::WireParty;
pub use price::Price;

/// Wires that an operation on slices works on at once: a tick of the runtime each, and a message of OTs for
/// inputs.
pub const STRETCH: usize = 1 << 14;
/// Wires that one message of a reveal covers.
pub const REVEAL_PIECE: usize = 1 << 20;
/// Blocks of ciphertext gathered before they are sent: 64 KiB, as in a compiled circuit.
const PIECE_BLOCKS: usize = 4096;
/// Bits of an item that are worked on at once: 512 lanes of them fit the second-level cache twice.
pub const GROUP: usize = 16;
/// Bits of Delta that the OT extension takes at once.
const K: u32 = 2;

/// What a party does in the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Makes labels and ciphertexts.
    Garbler,
    /// Holds one label of every wire.
    Evaluator,
}

impl Role {
    /// The peer's.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Garbler => Self::Evaluator,
            Self::Evaluator => Self::Garbler,
        }
    }
}

/// Who learns what is revealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// Both parties.
    Both,
    /// One of them.
    One(Role),
}

impl To {
    /// Whether a role is told.
    #[must_use]
    pub fn has(self, role: Role) -> bool {
        self == Self::Both || self == Self::One(role)
    }
}
