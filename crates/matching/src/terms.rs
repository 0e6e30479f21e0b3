//! What both sides of a join to shares must have in common.

use crate::payload::{Layout, Ring};
use ot::OtKind;

/// What moves payloads into shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// Permutation networks over correlated OT.
    #[default]
    PermuteShare,
    /// Paillier encryption: see [`crate::paillier`].
    Paillier,
}

/// Bytes of a [`digest`].
pub(crate) const BYTES: usize = 32;

/// A digest of the layouts of both parties and of how payloads move. The window is part of it since the permutation network
/// cuts its gates by it, and tweaks with them: between two windows every row would come out wrong.
pub(crate) fn digest(layouts: &[Layout; 2], backend: Backend, ot: OtKind, window: usize) -> [u8; BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("tacit join terms 2");
    for layout in layouts {
        hasher.update(&(layout.fields().len() as u64).to_le_bytes());
        for field in layout.fields() {
            hasher.update(&[u8::from(field.ring == Ring::Add), field.bytes]);
        }
    }
    hasher.update(format!("{backend:?} {ot} {window}").as_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::Field;
    use std::collections::BTreeSet;

    #[test]
    fn every_term_counts() {
        let layout = |fields: &[Field]| Layout::new(fields.to_vec()).unwrap();
        let [number, bits] = [layout(&[Field::number(8)]), layout(&[Field::bits(64)])];
        let same = [number.clone(), number.clone()];
        let digests: BTreeSet<_> = [
            digest(&same, Backend::PermuteShare, OtKind::Ferret, 1 << 20),
            digest(&[number.clone(), bits.clone()], Backend::PermuteShare, OtKind::Ferret, 1 << 20),
            digest(&[bits, number], Backend::PermuteShare, OtKind::Ferret, 1 << 20),
            digest(&same, Backend::Paillier, OtKind::Ferret, 1 << 20),
            digest(&same, Backend::PermuteShare, OtKind::SoftSpoken { k: 2 }, 1 << 20),
            digest(&same, Backend::PermuteShare, OtKind::Ferret, 1 << 16),
        ]
        .into();
        assert_eq!(digests.len(), 6);
    }
}
