//! No branch and no address of packed bits depends on what they hold.

use crate::bits::{BitRun, words};
use kernels::InstructionSet;
use timing::{TimedKernel, done};

const LANES: usize = 67;

/// Planes, each flipped by a secret bit, one after the other in a row.
fn rows(secret: &[u8]) {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let planes: Vec<u64> = secret.chunks_exact(8).map(word).collect();
    let mut row = BitRun::default();
    planes.chunks(words(LANES)).for_each(|plane| row.push(plane, LANES, planes[0] & 1));
    row.push_bit(planes[1]);
    done(row.words());
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    vec![TimedKernel::new("bits of lanes", 7 * 8 * words(LANES), |secret| rows(secret))]
}

timing::tests!(cases);
