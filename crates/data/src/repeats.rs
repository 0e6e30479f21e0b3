//! Rows of one party that share an identifier: no identifier may stand in two of its rows when they are
//! matched, since equal identifiers stay equal under every key and would be counted by the peer.

use super::RowKeys;
use std::collections::{HashMap, HashSet};
use study::Duplicates;

/// What becomes of rows, and of the identifiers in them.
pub(super) struct Settled {
    /// For each row the one that it is put together with: itself, where it stands alone.
    pub into: Vec<u32>,
    /// Places (row times K plus key) of identifiers that belong to an earlier row.
    lost: HashSet<u64>,
}

impl Settled {
    /// The identifiers that row `row` keeps.
    pub fn own<'i>(&self, identifiers: &'i RowKeys, row: u32) -> impl Iterator<Item = &'i [u8]> {
        let base = u64::from(row) * identifiers.keys() as u64;
        let kept = move |(key, identifier): (usize, &'i [u8])| match self.lost.contains(&(base + key as u64))
        {
            true => &[][..],
            false => identifier,
        };
        let kept: Vec<&[u8]> = identifiers.row(row as usize).enumerate().map(kept).collect();
        kept.into_iter()
    }

    /// Whether a row stays: by itself, and with an identifier of its own.
    pub fn stays(&self, identifiers: &RowKeys, row: u32) -> bool {
        self.into[row as usize] == row && self.own(identifiers, row).any(|identifier| !identifier.is_empty())
    }

    /// Whether nothing happened at all.
    pub fn is_quiet(&self) -> bool {
        self.lost.is_empty() && self.into.iter().enumerate().all(|(row, into)| row == *into as usize)
    }
}

/// An identifier of a row that an earlier row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedKey {
    pub row: u32,
    pub key: usize,
    pub earlier: u32,
    /// Whether a better identifier of the same row repeats the same earlier row: one complaint is enough.
    pub again: bool,
}

/// Goes through the rows in the order of `rank`. An identifier belongs to the first row that has it; every
/// later row is a repeat, which `tell` hears of. By `first` the later row loses it, by `merge` both rows are
/// put together, by `keep` both have it. With `absorb` a later row that has no identifier but those of one
/// earlier row is put together with it by every rule, and is no repeat: a further line about the same one.
pub(super) fn settle<R: Ord>(
    identifiers: &RowKeys,
    rank: impl Fn(u32) -> R,
    rule: Duplicates,
    absorb: bool,
    mut tell: impl FnMut(RepeatedKey),
) -> Settled {
    let (rows, keys) = (identifiers.len() as u32, identifiers.keys());
    let shared = shared(identifiers);
    let mut settled = Settled { into: (0..rows).collect(), lost: HashSet::new() };
    let mut involved: Vec<u32> = shared.keys().map(|place| (place / keys as u64) as u32).collect();
    involved.sort_unstable();
    involved.dedup();
    involved.sort_by_key(|row| rank(*row));
    let mut owner: HashMap<u32, u32> = HashMap::new();
    for row in involved {
        let place = |key: usize| u64::from(row) * keys as u64 + key as u64;
        let present = (0..keys).filter(|key| !identifiers.get(row as usize, *key).is_empty());
        let met: Vec<(usize, Option<u32>)> =
            present.map(|key| (key, shared.get(&place(key)).copied())).collect();
        let owners: Vec<Option<u32>> = met
            .iter()
            .map(|(_, group)| owner.get(&(*group)?).map(|earlier| root(&mut settled.into, *earlier)))
            .collect();
        if let (true, Some(Some(one))) = (absorb, owners.first())
            && owners.iter().all(|owner| *owner == Some(*one))
        {
            settled.into[row as usize] = *one;
            continue;
        }
        let mut told: Vec<u32> = Vec::new();
        for ((key, group), earlier) in met.into_iter().zip(owners) {
            let Some(group) = group else { continue };
            let Some(earlier) = earlier else {
                _ = owner.insert(group, row);
                continue;
            };
            tell(RepeatedKey { row, key, earlier, again: told.contains(&earlier) });
            told.push(earlier);
            if rule == Duplicates::Merge {
                let (a, b) = (root(&mut settled.into, earlier), root(&mut settled.into, row));
                // The earliest row of all leads.
                let (first, second) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
                settled.into[second as usize] = first;
            } else if rule != Duplicates::Keep {
                _ = settled.lost.insert(place(key));
            }
        }
    }
    for row in 0..rows {
        _ = root(&mut settled.into, row);
    }
    settled
}

fn root(into: &mut [u32], row: u32) -> u32 {
    let mut top = row;
    while into[top as usize] != top {
        top = into[top as usize];
    }
    let mut at = row;
    while into[at as usize] != top {
        at = std::mem::replace(&mut into[at as usize], top);
    }
    top
}

/// The places of identifiers that more than one row has, with a number for each such identifier. Needs 16
/// bytes per identifier while it runs.
fn shared(identifiers: &RowKeys) -> HashMap<u64, u32> {
    let keys = identifiers.keys() as u64;
    let get = |place: u64| identifiers.get((place / keys) as usize, (place % keys) as usize);
    let tag = |place: u64| {
        let hash = blake3::hash(get(place));
        u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight bytes"))
    };
    let places = 0..identifiers.len() as u64 * keys;
    let mut tagged: Vec<(u64, u64)> =
        places.filter(|place| !get(*place).is_empty()).map(|place| (tag(place), place)).collect();
    tagged.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| get(a.1).cmp(get(b.1))).then(a.1.cmp(&b.1)));
    let mut shared = HashMap::new();
    let groups = tagged.chunk_by(|a, b| a.0 == b.0 && get(a.1) == get(b.1)).filter(|group| group.len() > 1);
    for (number, group) in groups.enumerate() {
        shared.extend(group.iter().map(|(_, place)| (*place, number as u32)));
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[[&str; 2]]) -> RowKeys {
        let mut all = RowKeys::new(2);
        rows.iter().flatten().for_each(|word| all.push(word.as_bytes()));
        all
    }

    fn run(all: &RowKeys, rule: Duplicates, absorb: bool) -> (Settled, Vec<(u32, usize, u32)>) {
        let mut told = Vec::new();
        let settled = settle(
            all,
            |row| row,
            rule,
            absorb,
            |repeat| told.push((repeat.row, repeat.key, repeat.earlier)),
        );
        (settled, told)
    }

    #[test]
    fn the_first_row_keeps_an_identifier_and_later_ones_their_own() {
        let all = rows(&[["a", "1"], ["a", "2"], ["b", ""], ["", "1"], ["c", "3"]]);
        let (settled, told) = run(&all, Duplicates::First, false);
        assert_eq!(told, [(1, 0, 0), (3, 1, 0)]);
        assert_eq!(settled.own(&all, 1).collect::<Vec<_>>(), [&b""[..], b"2"]);
        let stays: Vec<bool> = (0..5).map(|row| settled.stays(&all, row)).collect();
        assert_eq!(stays, [true, true, true, false, true]);
        let quiet = rows(&[["a", "1"], ["b", ""]]);
        assert!(run(&quiet, Duplicates::First, true).0.is_quiet() && !settled.is_quiet());
    }

    #[test]
    fn merged_rows_follow_chains_to_the_earliest() {
        // Row 3 ties row 0 and row 2 together.
        let all = rows(&[["a", "1"], ["b", "2"], ["c", "3"], ["a", "3"]]);
        let (settled, told) = run(&all, Duplicates::Merge, false);
        assert_eq!(told, [(3, 0, 0), (3, 1, 2)]);
        assert_eq!(settled.into, [0, 1, 0, 0]);
    }

    #[test]
    fn a_line_with_some_of_the_identifiers_is_about_the_same_one() {
        let all = rows(&[["a", "1"], ["a", ""], ["", "1"], ["a", "2"], ["x", "1"]]);
        for rule in [Duplicates::Error, Duplicates::First] {
            let (settled, told) = run(&all, rule, true);
            assert_eq!(settled.into, [0, 0, 0, 3, 4]);
            assert_eq!(told, [(3, 0, 0), (4, 1, 0)]);
        }
    }

    /// Identifiers of different rows are all different afterwards, whatever came in.
    #[test]
    fn no_identifier_is_left_in_two_rows() {
        let mut rng = base::Seed::from_bytes([3; 32]).into_rng();
        for rule in [Duplicates::First, Duplicates::Merge] {
            let mut all = RowKeys::new(3);
            for _ in 0..400 {
                (0..3).for_each(|key| {
                    let [n, gap] = rng.bytes::<2>();
                    all.push(if gap < 60 { String::new() } else { format!("{key}{n}") }.as_bytes());
                });
            }
            let settled = settle(&all, |row| u32::MAX - row, rule, false, |_| ());
            let mut seen: HashMap<Vec<u8>, u32> = HashMap::new();
            for row in 0..400 {
                for identifier in settled.own(&all, row).filter(|identifier| !identifier.is_empty()) {
                    let into = settled.into[row as usize];
                    assert_eq!(*seen.entry(identifier.to_vec()).or_insert(into), into, "{rule:?}");
                }
            }
        }
    }
}
