//! What the crate `fuzzing` feeds with bytes.

/// The simulator's answer to a command of so many blocks.
pub fn answer(bytes: &[u8], blocks: usize) {
    let _ = crate::command::Done::read(bytes, blocks);
}
