//! Many identifiers, compactly: one per row, or the same number of them, of which some may be missing.

/// K identifiers per row in one buffer: 8 bytes of overhead each. Of several, a missing one is empty. It does
/// not print.
#[derive(Clone)]
pub struct RowKeys {
    keys: usize,
    bytes: Vec<u8>,
    ends: Vec<u64>,
}

impl Default for RowKeys {
    fn default() -> Self {
        Self::new(1)
    }
}

impl RowKeys {
    /// None yet, of `keys` per row.
    #[must_use]
    pub fn new(keys: usize) -> Self {
        Self { keys: keys.max(1), bytes: Vec::new(), ends: Vec::new() }
    }

    /// K: identifiers of a row.
    #[must_use]
    pub fn keys(&self) -> usize {
        self.keys
    }

    /// Appends the next identifier: of the last row, if that has fewer than K.
    pub fn push(&mut self, identifier: &[u8]) {
        self.bytes.extend_from_slice(identifier);
        self.ends.push(self.bytes.len() as u64);
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() / self.keys
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Identifier `key` of row `i`; empty where it is missing.
    ///
    /// # Panics
    /// When there is none at this place.
    #[must_use]
    pub fn get(&self, i: usize, key: usize) -> &[u8] {
        let at = i * self.keys + key;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    /// The identifiers of row `i`, the best first.
    ///
    /// # Panics
    /// When there is no row `i`.
    pub fn row(&self, i: usize) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.keys).map(move |key| self.get(i, key))
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory(&self) -> u64 {
        (self.bytes.capacity() + 8 * self.ends.capacity()) as u64
    }

    /// Bytes that they need: of what is held, up to half may be room for more.
    pub(crate) fn bytes(&self) -> u64 {
        (self.bytes.len() + 8 * self.ends.len()) as u64
    }

    /// Whether two rows have the same identifiers.
    pub(crate) fn same(&self, a: u32, b: u32) -> bool {
        self.row(a as usize).eq(self.row(b as usize))
    }

    /// What decides first where a row stands in [`Self::canonical_order`].
    pub(crate) fn order_hash(&self, row: usize) -> u64 {
        let hash = match self.keys {
            1 => blake3::hash(self.get(row, 0)),
            _ => {
                let mut hasher = blake3::Hasher::new();
                for identifier in self.row(row) {
                    hasher.update(&(identifier.len() as u64).to_le_bytes()).update(identifier);
                }
                hasher.finalize()
            }
        };
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
    }

    /// Forgets all identifiers.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Row numbers in an order that depends on the identifiers only, not on the order of the rows; rows with
    /// equal identifiers stand together, in the order of their rows. Rows are at most 2^32.
    pub(crate) fn canonical_order(&self) -> Vec<u32> {
        let mut keyed: Vec<(u64, u32)> = (0..self.len()).map(|i| (self.order_hash(i), i as u32)).collect();
        keyed.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| self.row(a.1 as usize).cmp(self.row(b.1 as usize)))
                .then_with(|| a.1.cmp(&b.1))
        });
        keyed.into_iter().map(|(_, row)| row).collect()
    }

    /// Row numbers in the order of the identifiers' bytes.
    pub fn sorted(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.len() as u32).collect();
        rows.sort_unstable_by(|a, b| self.row(*a as usize).cmp(self.row(*b as usize)));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canonical_order_ignores_the_order_of_rows() {
        let words = ["b", "a", "ccc", "", "a", "zebra"];
        for keys in [1, 2, 3] {
            let order = |words: &[&str]| -> Vec<Vec<Vec<u8>>> {
                let mut all = RowKeys::new(keys);
                words.iter().for_each(|word| {
                    (0..keys).for_each(|k| all.push(&word.as_bytes()[..word.len().min(k + 1)]))
                });
                let rows = all.canonical_order();
                rows.iter().map(|&i| all.row(i as usize).map(<[u8]>::to_vec).collect()).collect()
            };
            let mut turned = words;
            turned.reverse();
            assert_eq!(order(&words), order(&turned));
        }
    }

    #[test]
    fn rows_have_their_identifiers_side_by_side() {
        let mut all = RowKeys::new(2);
        ["a", "", "", "d"].iter().for_each(|word| all.push(word.as_bytes()));
        assert_eq!(
            (all.len(), all.get(0, 0), all.get(1, 0), all.get(1, 1)),
            (2, &b"a"[..], &b""[..], &b"d"[..])
        );
        assert!(!all.same(0, 1) && all.same(1, 1));
    }
}
