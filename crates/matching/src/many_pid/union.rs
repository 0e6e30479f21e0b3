//! What party 0 does with the encrypted sets of all parties.

use crate::chunks::CHUNK;
use crate::group::GroupElement;
use crate::spill::{SpillColumn, SpillQueue, SpillRoom};
use base::Error;

/// Bytes of an element, and of which parties have it: bit i for party i.
const MEMBER_BYTES: usize = size_of::<GroupElement>() + size_of::<u16>();

/// The sets of all parties, as they come.
pub(super) struct AllSets(SpillColumn<MEMBER_BYTES>);

impl AllSets {
    /// For about so many elements of all sets.
    pub fn new(room: &SpillRoom, expected: u64) -> Self {
        Self(SpillColumn::new(room, expected))
    }

    /// Adds elements of the set of party `party`, none of which may repeat.
    pub fn add(&mut self, set: &[GroupElement], party: usize) -> Result<(), Error> {
        set.iter().try_for_each(|element| self.0.push(&member(element, 1 << party)))
    }

    /// Whether memory holds those that begin alike.
    pub fn is_spread(&self) -> bool {
        self.0.is_spread()
    }

    /// Their union, in ascending order.
    pub fn unite(self, room: &SpillRoom, parties: usize) -> Result<Union, Error> {
        let members = SpillQueue::new(room, CHUNK as usize * MEMBER_BYTES);
        let mut union = Union { members, len: 0, overlaps: vec![0; 1 << parties] };
        let mut all = self.0.sorted();
        while let Some(first) = all.pop()? {
            let (element, mut who) = split(&first);
            while let Some(same) = all.head()?.map(split).filter(|(same, _)| *same == element) {
                who |= same.1;
                all.pop()?;
            }
            union.members.push(&member(&element, who))?;
            union.len += 1;
            union.overlaps[usize::from(who)] += 1;
        }
        Ok(union)
    }
}

/// The union of all sets, and who has what of it.
pub(super) struct Union {
    members: SpillQueue,
    pub len: u64,
    /// How many members exactly these parties have: at index `m` those of the parties whose bits are set in
    /// `m`.
    pub overlaps: Vec<u64>,
}

impl Union {
    /// Chunk `i` of the members, each with its holders; it stays.
    pub fn chunk(&self, i: u64) -> Result<Vec<(GroupElement, u16)>, Error> {
        let mut bytes = Vec::new();
        self.members.block(i as usize, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(split).collect())
    }
}

fn member(element: &GroupElement, who: u16) -> [u8; MEMBER_BYTES] {
    let mut member = [0; MEMBER_BYTES];
    member[..32].copy_from_slice(element);
    member[32..].copy_from_slice(&who.to_be_bytes());
    member
}

fn split(member: &[u8; MEMBER_BYTES]) -> (GroupElement, u16) {
    let (element, who) = member.split_first_chunk().expect("an element comes first");
    (*element, u16::from_be_bytes(*who.first_chunk().expect("then who has it")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use std::collections::BTreeMap;

    #[test]
    fn a_union_knows_who_has_what() {
        let mut rng = Seed::from_bytes([1; 32]).into_rng();
        for room in [SpillRoom::new(None, None), SpillRoom::on_disk()] {
            for of in [20, 20, 20, 9000u64] {
                let mut expected: BTreeMap<GroupElement, u16> = BTreeMap::new();
                let mut all = AllSets::new(&room, 4 * of);
                for party in 0..4 {
                    let element = |x: u64| *blake3::hash(&x.to_le_bytes()).as_bytes();
                    let set: Vec<GroupElement> = (0..of).filter(|_| rng.below(3) == 0).map(element).collect();
                    set.iter().for_each(|e| *expected.entry(*e).or_default() |= 1 << party);
                    all.add(&set, party).unwrap();
                }
                let union = all.unite(&room, 4).unwrap();
                let chunks = (0..union.len.div_ceil(CHUNK)).flat_map(|i| union.chunk(i).unwrap());
                assert!(union.len == expected.len() as u64 && chunks.eq(expected.clone()));
                let counts = &union.overlaps;
                assert_eq!((counts.len(), counts[0], counts.iter().sum::<u64>()), (16, 0, union.len));
                assert_eq!(counts[5], expected.values().filter(|who| **who == 0b101).count() as u64);
            }
        }
    }
}
