//! What party 0 does with the encrypted sets of all parties.

use crate::group::GroupElement;

/// An element, and which parties have it: bit i for party i.
pub(super) type UnionMember = (GroupElement, u16);

/// Merges a sorted set of party `party` into the sorted union of others.
pub(super) fn merge(union: &[UnionMember], set: &[GroupElement], party: usize) -> Vec<UnionMember> {
    let mut merged = Vec::with_capacity(union.len() + set.len());
    let (mut old, mut new) = (union.iter().peekable(), set.iter().peekable());
    let bit = 1u16 << party;
    loop {
        let order = match (old.peek(), new.peek()) {
            (Some((a, _)), Some(b)) => a.cmp(b),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return merged,
        };
        let known = if order.is_le() { old.next() } else { None };
        let added = if order.is_ge() { new.next() } else { None };
        match (known, added) {
            (Some((element, who)), None) => merged.push((*element, *who)),
            (Some((element, who)), Some(_)) => merged.push((*element, who | bit)),
            (None, Some(element)) => merged.push((*element, bit)),
            (None, None) => {}
        }
    }
}

/// How many members exactly these parties have: at index `m` those of the parties whose bits are set in `m`.
pub(super) fn overlaps(union: &[UnionMember], parties: usize) -> Vec<u64> {
    let mut counts = vec![0; 1 << parties];
    union.iter().for_each(|(_, who)| counts[usize::from(*who)] += 1);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use std::collections::BTreeMap;

    #[test]
    fn a_union_knows_who_has_what() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for _ in 0..200 {
            let mut expected: BTreeMap<GroupElement, u16> = BTreeMap::new();
            let mut union = Vec::new();
            for party in 0..4 {
                let set: Vec<GroupElement> =
                    (0..20u8).filter(|_| rng.below(3) == 0).map(|x| [x; 32]).collect();
                set.iter().for_each(|e| *expected.entry(*e).or_default() |= 1 << party);
                union = merge(&union, &set, party);
            }
            assert!(union.iter().copied().eq(expected));
            let counts = overlaps(&union, 4);
            assert_eq!((counts.len(), counts[0], counts.iter().sum::<u64>()), (16, 0, union.len() as u64));
            assert_eq!(counts[5], union.iter().filter(|(_, who)| *who == 0b101).count() as u64);
        }
    }
}
