//! No branch, no address and no time of tags on a channel depends on keys or contents.

use super::*;
use kernels::InstructionSet;
use timing::{TimedKernel, done};

/// Whole blocks and a rest.
const BODY: usize = 1000;

/// What the sender of a frame computes, and what its receiver compares.
fn frame(secret: &[u8]) {
    let (drawn, body) = secret.split_at(2 * KEY_BYTES);
    let drawn = drawn.as_chunks::<KEY_BYTES>().0;
    let mut keys = PairKeys::derive(PartyId(0), PartyId(1), &drawn[0], &drawn[1]);
    let head = keys.send.head(body);
    done(&head);
    let tag = keys.recv.digests(body)[1] ^ keys.recv.next()[1];
    done(&[tag.to_bytes().ct_eq(&head[16..]).unwrap_u8()]);
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    vec![TimedKernel::new("frame: keys, content", 2 * KEY_BYTES + BODY, |secret| frame(secret))]
}

timing::tests!(cases);
