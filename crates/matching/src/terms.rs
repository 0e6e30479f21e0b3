//! What both kinds of joins to shares do alike: their terms, and the payloads that they bring.

use crate::matcher::MatchOptions;
use crate::payload::{PayloadSource, PayloadTable, ShareRing};
use crate::permute::PlaneRows;
use crate::spill::SpillRoom;
use base::Error;

/// Bytes of a [`digest`].
pub(crate) const BYTES: usize = 32;

/// A digest of the layouts of both parties and of how payloads move. The window is part of it since the
/// permutation network cuts its gates by it, and tweaks with them: between two windows every row would come
/// out wrong.
pub(crate) fn digest(options: &MatchOptions, window: usize) -> [u8; BYTES] {
    let MatchOptions { layouts, backend, .. } = options;
    let ot = options.ot.unwrap_or_default();
    let mut hasher = blake3::Hasher::new_derive_key("tacit join terms 2");
    for layout in layouts {
        hasher.update(&(layout.fields().len() as u64).to_le_bytes());
        for field in layout.fields() {
            hasher.update(&[u8::from(field.ring == ShareRing::Add), field.bytes]);
        }
    }
    hasher.update(format!("{backend:?} {ot} {window}").as_bytes());
    *hasher.finalize().as_bytes()
}

/// Own payload in the order in which own rows were sent, dummies among them.
pub(crate) struct PayloadVector<'a> {
    payload: &'a dyn PayloadSource,
    /// The place of each row; those from the payload's length on are dummies.
    places: &'a [u32],
    /// The payload of a dummy.
    blank: Vec<u8>,
}

impl<'a> PayloadVector<'a> {
    /// `payload` with its rows at these places.
    pub fn new(
        payload: Option<&'a dyn PayloadSource>,
        places: &'a [u32],
        options: &MatchOptions,
    ) -> Result<Self, Error> {
        let payload = payload.ok_or_else(|| Error::misuse("a party whose values become shares has some"))?;
        let zeros = || vec![0; payload.layout().row_bytes()];
        Ok(Self { payload, places, blank: options.blank.clone().unwrap_or_else(zeros) })
    }

    /// For a permutation network.
    pub fn rows(&self, room: &SpillRoom) -> Result<PlaneRows, Error> {
        PlaneRows::placed(room, self.payload, self.places, &self.blank)
    }

    /// For encryption.
    pub fn table(&self) -> Result<PayloadTable, Error> {
        let mut table = PayloadTable::zeros(self.payload.layout().clone(), self.places.len() as u64)?;
        let mut put = |row: u64, bytes: &[u8]| {
            table.row_mut(self.places[row as usize].into()).copy_from_slice(bytes);
        };
        self.payload.each(&mut |first, rows| {
            (0..rows.rows()).for_each(|row| put(first + row, rows.row(row)));
            Ok(())
        })?;
        (self.payload.rows()..self.places.len() as u64).for_each(|row| put(row, &self.blank));
        Ok(table)
    }
}

/// The place of each row in an order of all rows.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, row)| places[*row as usize] = place);
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::ShareBackend;
    use crate::payload::{PayloadLayout, TableField};
    use ot::OtKind;
    use std::collections::BTreeSet;

    #[test]
    fn every_term_counts() {
        let layout = |fields: &[TableField]| PayloadLayout::new(fields.to_vec()).unwrap();
        let [number, bits] = [layout(&[TableField::number(8)]), layout(&[TableField::bits(64)])];
        let same = MatchOptions {
            layouts: [number.clone(), number.clone()],
            ot: Some(OtKind::Ferret),
            ..MatchOptions::default()
        };
        let with = |layouts| MatchOptions { layouts, ..same.clone() };
        let digests: BTreeSet<_> = [
            digest(&same, 1 << 20),
            digest(&with([number.clone(), bits.clone()]), 1 << 20),
            digest(&with([bits, number]), 1 << 20),
            digest(&MatchOptions { backend: ShareBackend::Paillier, ..same.clone() }, 1 << 20),
            digest(&MatchOptions { ot: Some(OtKind::SoftSpoken { k: 2 }), ..same.clone() }, 1 << 20),
            digest(&same, 1 << 16),
        ]
        .into();
        assert_eq!(digests.len(), 6);
    }
}
