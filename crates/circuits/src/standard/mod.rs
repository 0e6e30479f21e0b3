//! Standard circuits, made with this crate's own builder: AES-128, the SHA-256 compression function and
//! 64-bit arithmetic. They are examples, test vectors of every engine, and parts to copy.
//!
//! Words read as the numbers that the standards print: the first hexadecimal digit is the most significant,
//! so bit 0 of a 128-bit block is the last bit of its last byte.

mod aes;
mod linear;
mod sha256;

use crate::gadgets::{self as gadget, LitWord};
use crate::{CircuitBuilder, InputBit, Lit};
use crate::{InputWord, OutputWord, Viewers, Wired};
use base::PartyId;

/// A standard circuit by name.
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// Its name, as on the command line.
    pub name: &'static str,
    /// What it computes, and its inputs in order.
    pub what: &'static str,
    /// Builds it.
    pub build: fn() -> Wired,
}

/// All standard circuits.
pub const ALL: [Standard; 8] = [
    Standard { name: "aes128", what: "AES-128 of a key (input 0) and a block (input 1)", build: aes128 },
    Standard { name: "sha256", what: "SHA-256 compression of a block (0) and a state (1)", build: sha256 },
    Standard { name: "add64", what: "a + b modulo 2^64", build: add64 },
    Standard { name: "sub64", what: "a - b modulo 2^64", build: sub64 },
    Standard { name: "mul64", what: "a * b modulo 2^64", build: mul64 },
    Standard { name: "div64", what: "a / b rounded down; all ones for b = 0", build: div64 },
    Standard { name: "lt64", what: "whether a < b, unsigned", build: lt64 },
    Standard { name: "eq64", what: "whether a = b", build: eq64 },
];

/// AES-128 (FIPS 197), key schedule included: a key of party 0 and a block of party 1; both learn the
/// ciphertext.
#[must_use]
pub fn aes128() -> Wired {
    two_inputs([128, 128], aes::encrypt)
}

/// The SHA-256 compression function (FIPS 180-4): a 512-bit block of party 0 and a 256-bit state of party 1;
/// both learn the next state. Padding is the caller's.
#[must_use]
pub fn sha256() -> Wired {
    two_inputs([512, 256], sha256::compress)
}

/// `a + b` modulo 2^64.
#[must_use]
pub fn add64() -> Wired {
    two_inputs([64, 64], gadget::add)
}

/// `a - b` modulo 2^64.
#[must_use]
pub fn sub64() -> Wired {
    two_inputs([64, 64], gadget::sub)
}

/// `a * b` modulo 2^64.
#[must_use]
pub fn mul64() -> Wired {
    two_inputs([64, 64], gadget::mul)
}

/// `a / b` rounded down, unsigned; all ones for `b = 0`.
#[must_use]
pub fn div64() -> Wired {
    two_inputs([64, 64], gadget::div)
}

/// Whether `a < b`, unsigned.
#[must_use]
pub fn lt64() -> Wired {
    two_inputs([64, 64], |g, a, b| vec![gadget::less(g, a, b, false)])
}

/// Whether `a = b`.
#[must_use]
pub fn eq64() -> Wired {
    two_inputs([64, 64], |g, a, b| vec![gadget::equal(g, a, b)])
}

/// A circuit of a word of party 0 and a word of party 1, whose result both learn.
fn two_inputs(widths: [u32; 2], build: impl FnOnce(&mut CircuitBuilder, &[Lit], &[Lit]) -> LitWord) -> Wired {
    let mut g = CircuitBuilder::default();
    let inputs = [0, 1].map(|p| InputWord { owner: PartyId(p), width: widths[usize::from(p)] });
    let [a, b] = [0, 1].map(|i| enter(&mut g, &inputs, i));
    let bits = build(&mut g, &a, &b);
    let outputs = vec![OutputWord { to: Viewers::Everyone, bits }];
    Wired { circuit: g.finish(), inputs: inputs.to_vec(), outputs, parties: 2 }
}

/// The bits of an input word.
fn enter(g: &mut CircuitBuilder, inputs: &[InputWord], index: usize) -> LitWord {
    let InputWord { owner, width } = inputs[index];
    let bit = |bit| InputBit { owner: Some(owner), word: index as u32, bit: bit as u16 };
    (0..width).map(|i| g.input(bit(i))).collect()
}
