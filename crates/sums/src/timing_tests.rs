//! No branch, no address and no time of tables of digits and of planes depends on what they hold.

use super::*;
use kernels::InstructionSet;
use timing::{TimedKernel, done};

const LANES: usize = 67;

fn blocks(secret: &[u8]) -> Vec<Block> {
    let mut blocks = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut blocks);
    blocks
}

/// Tables of both comparisons at secret digits, masked by secret pads, and what is picked of them at secret
/// places.
fn leaves(x: &[Block]) {
    let (values, pads) = x.split_at(LANES);
    let digits = values.iter().map(|value| value.0 as u64 & 15);
    let mut tables: Vec<Block> = digits.map(|d| Block(greater(d) ^ equal(d) << 1)).collect();
    mask_leaves(1, &[pads[..LANES].to_vec(), pads[LANES..].to_vec()], &mut tables);
    done(&tables[..]);
    let picked: Vec<u8> = tables.iter().zip(values).map(|(t, v)| pick(*t, (v.0 >> 64) as u64 & 15)).collect();
    done(&picked[..]);
}

/// Values to planes of bits.
fn planes(x: &[Block]) {
    let values: Vec<u128> = x.iter().map(|x| x.0).collect();
    let words = LANES.div_ceil(64);
    let mut planes = vec![0; 7 * words];
    let bits: Vec<(u16, u32)> = (0..5).map(|i| (3 * i, i.into())).collect();
    pack(&values, &bits, words, &mut planes);
    pack(&values, &[(90, 5), (91, 6)], words, &mut planes);
    done(&planes[..]);
    done(&planes[..]);
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    let case = |name: &str, secret: usize, run: fn(&[Block])| {
        TimedKernel::new(name, secret * Block::BYTES, move |secret| run(&blocks(secret)))
    };
    vec![
        case("tables of digits: digits, pads", 3 * LANES, leaves),
        case("planes of bits: values", LANES, planes),
    ]
}

timing::tests!(cases);
