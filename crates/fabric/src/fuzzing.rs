//! What the crate `fuzzing` feeds with bytes.

use crate::libfabric::meet;

/// Length of what [`card`] takes.
pub const CARD_BYTES: usize = meet::CARD_BYTES;

/// What a peer says of its endpoint of libfabric.
pub fn card(bytes: &[u8; CARD_BYTES]) {
    meet::try_card(bytes);
}
