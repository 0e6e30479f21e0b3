//! `bench match`: identifiers made up as they are read, and a check of the spine that needs no table of it.
//!
//! Party 0 holds people `0..n`, party 1 people `n - shared..2n - shared`.

use super::mix;
use base::Error;
use matching::{Identifiers, Spine};
use serde::{Deserialize, Serialize};
use std::io::Write;

/// People `start..start + rows`.
#[derive(Clone, Copy, Debug)]
pub struct People {
    /// The first one.
    pub start: u64,
    /// How many.
    pub rows: u64,
}

impl Identifiers for People {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn read(&self, row: u32, _key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        let person = self.start + u64::from(row);
        write!(into, "person-{person:010}@example.org").map_err(|e| Error::io("writing to memory", &e))
    }
}

/// What a party says of its rows in the spine. A sum of hashes does not depend on order, so neither do the sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Rows of the spine.
    pub union: u64,
    /// Over the people whom both have: hash of person and position.
    pub shared: u64,
    /// Over the people whom only this party has: hash of the position.
    pub own: u64,
    /// Over the people whom both have: hash of the position.
    pub common: u64,
}

/// People of each party who are shared, at an overlap.
pub fn shared(rows: u64, overlap: f64) -> u64 {
    (rows as f64 * overlap).round() as u64
}

/// The party's people.
pub fn people(party: u8, rows: u64, shared: u64) -> People {
    People { start: if party == 0 { 0 } else { rows - shared }, rows }
}

/// The digest of a party's rows.
pub fn digest(people: People, rows: u64, shared: u64, spine: &Spine) -> Digest {
    let mut digest = Digest { union: spine.rows, ..Digest::default() };
    for (person, &position) in (people.start..).zip(&spine.mine) {
        let place = mix(u64::from(position));
        if (rows - shared..rows).contains(&person) {
            digest.shared = digest.shared.wrapping_add(mix(person ^ place));
            digest.common = digest.common.wrapping_add(place);
        } else {
            digest.own = digest.own.wrapping_add(place);
        }
    }
    digest
}

/// Whether both parties gave the shared people the same positions, and all positions of the union are taken once.
pub fn agree(rows: u64, shared: u64, both: [Digest; 2]) -> bool {
    let [a, b] = both;
    let union = 2 * rows - shared;
    let all = (0..union).fold(0u64, |sum, position| sum.wrapping_add(mix(position)));
    a.union == union
        && b.union == union
        && a.shared == b.shared
        && a.common == b.common
        && a.own.wrapping_add(b.own).wrapping_add(a.common) == all
}

#[cfg(test)]
mod tests {
    use super::*;
    use matching::Disclosed;

    fn spine(mine: &[u32], union: u64) -> Spine {
        let disclosed = Disclosed { own: mine.len() as u64, peer: mine.len() as u64, union };
        Spine { rows: union, mine: mine.to_vec(), disclosed }
    }

    #[test]
    fn a_wrong_spine_is_noticed() {
        // People 0..4 and 2..6, two shared.
        let check = |a: &[u32], b: &[u32]| {
            let digests = [(0, a), (1, b)].map(|(p, mine)| digest(people(p, 4, 2), 4, 2, &spine(mine, 6)));
            agree(4, 2, digests)
        };
        assert!(check(&[5, 0, 3, 1], &[3, 1, 2, 4]));
        assert!(!check(&[5, 0, 3, 1], &[1, 3, 2, 4]), "the shared ones differ");
        assert!(!check(&[5, 0, 3, 1], &[3, 1, 2, 2]), "a position is taken twice");
        assert!(!check(&[5, 0, 3, 1], &[3, 1, 2, 0]), "a position of the other");
    }
}
