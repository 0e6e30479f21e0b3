//! CPU kernels with run-time dispatch: AES, tweaked hashing, half-gates, bit transpose, local codes,
//! Curve25519.
//!
//! This is the only crate with `unsafe` for the CPU. Every kernel exists in two independent forms: a
//! portable one (bit-sliced, constant time, no tables) and one for x86-64 that is generic over the vector
//! width (AES-NI on 128 bits, VAES on 512). They agree bit for bit; the tests compare them at many lengths
//! on every path the machine has. `TACIT_PORTABLE=1` in the environment, read once, forces the portable
//! path.
//!
//! All kernels run in time independent of their data: no branch and no address depends on a secret.

mod aes;
mod backend;
mod block;
pub mod curve;
mod gates;
mod gf128;
mod hash;
mod local;
mod pages;
mod portable;
mod ring;
mod shared;
#[cfg(test)]
mod timing_tests;
mod transpose;
mod words;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use aes::{Aes128, fold_streams, prg_fill};
pub use backend::InstructionSet;
pub use block::Block;
pub use gates::{
    eval_and, eval_and_evaluator_known, eval_and_garbler_known, garble_and, garble_and_evaluator_known,
    garble_and_garbler_known,
};
pub use gf128::{FIELD_BITS, GfKey, gf_add_multiples, gf_add_multiples_on, gf_digest, gf_digest_on, gf_pack};
pub use hash::{LANES_MAX, TweakedHash, WORDS_MAX};
pub use local::{LOCALITY, add_local};
pub use pages::{prefer_large_pages, return_freed_buffers, return_while_resting};
pub use ring::{
    JointMask, Keystream, VectorRing, Write, ring_add, ring_add_on, ring_cross, ring_cross_on, ring_sub,
    ring_sub_on, stream,
};
pub use shared::{Place, SharedMemory};
pub use transpose::{transpose128, transpose128_on};
pub use words::{bit, lsbs, xor_bytes, xor_into, xor_masked, xor_when, xor_when_on};
