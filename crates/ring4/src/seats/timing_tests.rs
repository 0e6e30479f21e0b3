//! No branch, no address and no time of tags depends on keys or contents.

use super::*;
use crate::Settings;
use accel::SeatKeys;
use kernels::InstructionSet;
use std::sync::Arc;
use timing::{TimedKernel, done};

const BLOCKS: usize = 37;
/// K and the element of tags, by part.
const KEYS: usize = 6;

/// A voucher hashes what another one sends; the receiver compares.
fn tag(hash: TagHash, secret: &[u8]) {
    let mut x = vec![Block::ZERO; secret.len() / Block::BYTES];
    Block::read_slice(secret, &mut x);
    let mut party = SeatParty::speculator(Seat::new(1), Settings { hash, ..Settings::default() });
    party.keys = Arc::new(SeatKeys::new(party.seat, [x[0], x[1], x[2]], [x[3], x[4], x[5]]));
    let channel = VouchedChannel::new(Seat::new(2), Seat::new(3), Seat::new(1));
    let mut running = party.begin(channel, 3, BLOCKS);
    party.hash(channel, &mut running, &x[KEYS..]);
    let tag = party.tag(channel, 3, running);
    done(&tag);
    done(&[tag.ct_eq(&[7; TAG_BYTES]).unwrap_u8()]);
}

fn cases() -> Vec<TimedKernel<'static>> {
    println!("\nbackend {:?}", InstructionSet::detect());
    let bytes = (KEYS + BLOCKS) * Block::BYTES;
    vec![
        TimedKernel::new("tag, polynomial: keys, content", bytes, |secret| tag(TagHash::Keyed, secret)),
        TimedKernel::new("tag, keyed BLAKE3: keys, content", bytes, |secret| tag(TagHash::Blake3, secret)),
    ]
}

timing::tests!(cases);
