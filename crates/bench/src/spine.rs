//! A check of a spine that needs no table of it.

use super::mix;
use super::people::People;
use base::Error;
use matching::MatchSpine;
use serde::{Deserialize, Serialize};

/// What a party says of its rows in the spine. A sum of hashes does not depend on order, so neither do the
/// sums.
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

/// The digest of a party's rows.
///
/// # Errors
/// When positions cannot be read back.
pub fn digest(people: People, spine: &MatchSpine) -> Result<Digest, Error> {
    let mut digest = Digest { union: spine.rows, ..Digest::default() };
    spine.mine.each(|row, position| {
        let (person, place) = (people.person(row.into()), mix(position.into()));
        if people.is_shared(person) {
            digest.shared = digest.shared.wrapping_add(mix(person ^ place));
            digest.common = digest.common.wrapping_add(place);
        } else {
            digest.own = digest.own.wrapping_add(place);
        }
        Ok(())
    })?;
    Ok(digest)
}

/// Whether both parties gave the shared people the same positions, and all positions of the union are taken
/// once. With dummies there are positions of nobody, so only the shared people are looked at.
pub fn agree(rows: u64, shared: u64, both: [Digest; 2], dummies: bool) -> bool {
    let [a, b] = both;
    let union = 2 * rows - shared;
    if (a.union, a.shared, a.common) != (b.union, b.shared, b.common) {
        return false;
    }
    if dummies {
        return a.union >= union;
    }
    let all = (0..union).fold(0u64, |sum, position| sum.wrapping_add(mix(position)));
    a.union == union && a.own.wrapping_add(b.own).wrapping_add(a.common) == all
}

#[cfg(test)]
mod tests {
    use super::*;
    use matching::OwnPlaces;

    fn spine(mine: &[u32], union: u64) -> MatchSpine {
        MatchSpine { rows: union, mine: OwnPlaces::of(mine.to_vec()) }
    }

    #[test]
    fn a_wrong_spine_is_noticed() {
        // People 0..4, of whom the other party has the last two.
        let check = |a: &[u32], b: &[u32]| {
            let digest = |p, mine| digest(People::new(p, 4, 2), &spine(mine, 6)).unwrap();
            let digests = [digest(0, a), digest(1, b)];
            agree(4, 2, digests, false)
        };
        assert!(check(&[5, 0, 3, 1], &[3, 1, 2, 4]));
        assert!(!check(&[5, 0, 3, 1], &[1, 3, 2, 4]), "the shared ones differ");
        assert!(!check(&[5, 0, 3, 1], &[3, 1, 2, 2]), "a position is taken twice");
        assert!(!check(&[5, 0, 3, 1], &[3, 1, 2, 0]), "a position of the other");
    }
}
