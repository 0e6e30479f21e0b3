//! The local steps of Private-ID: functions of columns of elements, without any conversation.

use super::ROW_BYTES;
use crate::group::{ElementRefusal, GroupElement, is_canonical};
use crate::spill::SortedRecords;
use base::Error;
use std::cmp::Ordering;

/// Why a peer's message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepFault {
    /// Its bytes decode to nothing.
    Malformed(&'static str),
    /// It fails the named check.
    Deviated(&'static str),
}

impl From<ElementRefusal> for StepFault {
    fn from(refusal: ElementRefusal) -> Self {
        Self::Malformed(refusal.text())
    }
}

/// Checks that a sorted column does not repeat an element.
///
/// # Errors
/// When one does: the peer repeated one of its own.
pub fn check_distinct(column: &[GroupElement]) -> Result<(), StepFault> {
    match column.windows(2).all(|w| w[0] != w[1]) {
        true => Ok(()),
        false => Err(StepFault::Deviated("its identifiers are unique")),
    }
}

/// Checks the next piece of a column that the peer must have sorted: the global shuffle of `u`, `e_c`, `s_p`
/// and `s'_c`.
///
/// A sorted column is a function of the *set* of its elements, so nothing of the order in which they arrived
/// survives. A shuffle of each chunk on its own would hand out the match count of every chunk.
///
/// # Errors
/// When an element is not canonical, repeats or is out of order.
pub fn check_ascending(piece: &[GroupElement], last: &mut Option<GroupElement>) -> Result<(), StepFault> {
    check_canonical(piece)?;
    let follows = last.zip(piece.first()).is_none_or(|(last, first)| last < *first);
    *last = piece.last().copied().or(*last);
    match follows && piece.windows(2).all(|w| w[0] < w[1]) {
        true => Ok(()),
        false => Err(StepFault::Deviated("its set is sorted and without repeats")),
    }
}

/// Checks that elements are u-coordinates.
///
/// # Errors
/// When an element is not canonical.
pub fn check_canonical(column: &[GroupElement]) -> Result<(), StepFault> {
    match column.iter().all(is_canonical) {
        true => Ok(()),
        false => Err(ElementRefusal::NonCanonical.into()),
    }
}

/// Hands out `a \ b` and `b \ a` of two sorted sets, each in order.
///
/// # Errors
/// Those of `only_b`.
pub fn differences(
    a: &[GroupElement],
    b: &[GroupElement],
    mut only_a: impl FnMut(&GroupElement),
    mut only_b: impl FnMut(&GroupElement) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => Ordering::Less,
            _ => Ordering::Greater,
        };
        match order {
            Ordering::Less => only_a(&a[i]),
            Ordering::Greater => only_b(&b[j])?,
            Ordering::Equal => {}
        }
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    Ok(())
}

/// Unit `spine` of one partition: hands out own rows with their positions among the sorted universal
/// identifiers of both, from `first` on, and gives a digest of all of these in order. A record of an own row
/// is its identifier and its number. It is local and tells nothing.
///
/// # Errors
/// The inner ones when an identifier occurs twice: the peer sent something else than the protocol says. The
/// outer ones when a column cannot be read back.
pub fn spine(
    own: &mut SortedRecords<ROW_BYTES>,
    others: &mut SortedRecords<32>,
    first: u64,
    mut place: impl FnMut(u32, u32) -> Result<(), Error>,
) -> Result<Result<[u8; 32], StepFault>, Error> {
    let (mut digest, mut last) = (blake3::Hasher::new(), None);
    for at in first.. {
        let ours = match (own.head()?, others.head()?) {
            (Some(mine), Some(other)) => mine[..32] < other[..],
            (mine, _) => mine.is_some(),
        };
        let uid: GroupElement = if ours {
            let record = own.pop()?.expect("its head was seen");
            let (uid, row) = record.split_first_chunk().expect("an element comes first");
            place(u32::from_le_bytes(*row.first_chunk().expect("then its row")), at as u32)?;
            *uid
        } else {
            match others.pop()? {
                Some(uid) => uid,
                None => break,
            }
        };
        if last == Some(uid) {
            return Ok(Err(StepFault::Deviated("the universal identifiers are distinct")));
        }
        digest.update(&uid);
        last = Some(uid);
    }
    Ok(Ok(*digest.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::{SpillColumn, SpillRoom};
    use base::Seed;
    use std::collections::BTreeSet;

    fn column(n: usize, seed: u8) -> Vec<GroupElement> {
        let mut rng = Seed::from_bytes([seed; 32]).into_rng();
        let element = || {
            let mut e: GroupElement = rng.bytes();
            e[31] &= 0x7f;
            e
        };
        std::iter::repeat_with(element).take(n).collect()
    }

    #[test]
    fn differences_are_those_of_sets() {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        for seed in 0..50 {
            let all = column(40, seed);
            let pick = |rng: &mut base::Rng| -> BTreeSet<GroupElement> {
                let share = rng.below(5);
                all.iter().copied().filter(|_| rng.below(4) < share).collect()
            };
            let (a, b) = (pick(&mut rng), pick(&mut rng));
            let sorted = [&a, &b].map(|set| set.iter().copied().collect::<Vec<_>>());
            let (mut left, mut right) = (Vec::new(), Vec::new());
            let keep = |e: &GroupElement| {
                right.push(*e);
                Ok(())
            };
            super::differences(&sorted[0], &sorted[1], |e| left.push(*e), keep).unwrap();
            assert!(left.iter().eq(a.difference(&b)) && right.iter().eq(b.difference(&a)));
        }
    }

    fn spine_of(own: &[GroupElement], others: &[GroupElement]) -> Result<(Vec<u32>, [u8; 32]), StepFault> {
        let room = SpillRoom::new(None, None);
        let (mut mine, mut theirs) = (SpillColumn::new(&room, 0), SpillColumn::new(&room, 0));
        for (row, uid) in own.iter().enumerate() {
            let record = [&uid[..], &(row as u32).to_le_bytes()].concat();
            mine.push(record.first_chunk().unwrap()).unwrap();
        }
        others.iter().for_each(|uid| theirs.push(uid).unwrap());
        let mut positions = vec![0; own.len()];
        let place = |row: u32, at| {
            positions[row as usize] = at;
            Ok(())
        };
        super::spine(&mut mine.sorted(), &mut theirs.sorted(), 0, place)
            .unwrap()
            .map(|digest| (positions, digest))
    }

    #[test]
    fn a_spine_ranks_every_row() {
        let all = column(300, 4);
        let (positions, digest) = spine_of(&all[..200], &all[200..]).unwrap();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!((0..200).all(|i| sorted[positions[i] as usize] == all[i]));
        assert_eq!(spine_of(&all[200..], &all[..200]).unwrap().1, digest);
        let clash = Err(StepFault::Deviated("the universal identifiers are distinct"));
        assert_eq!(spine_of(&all[..200], &all[199..]), clash);
        assert_eq!(spine_of(&[all[4], all[4]], &[]), clash);
        assert_eq!(spine_of(&[], &[all[0], all[0]]), clash);
        assert_eq!(spine_of(&[], &[]).unwrap().0, [0; 0]);
    }

    #[test]
    fn peers_columns_are_checked() {
        let mut sorted = column(10, 5);
        sorted.sort_unstable();
        let check = |piece: &[GroupElement]| check_ascending(piece, &mut None);
        assert_eq!(check(&sorted), Ok(()));
        let disorder = Err(StepFault::Deviated("its set is sorted and without repeats"));
        let mut swapped = sorted.clone();
        swapped.swap(2, 3);
        assert_eq!(check(&swapped), disorder);
        swapped[2] = swapped[3];
        assert_eq!(check(&swapped), disorder);
        assert_eq!(check_distinct(&swapped[2..4]), Err(StepFault::Deviated("its identifiers are unique")));
        // Order holds between pieces too, over an empty one.
        let mut last = None;
        for (piece, result) in [(5..7, Ok(())), (7..7, Ok(())), (7..8, Ok(())), (7..9, disorder)] {
            assert_eq!(check_ascending(&sorted[piece], &mut last), result);
        }
        sorted[9] = [0xff; 32];
        assert_eq!(check(&sorted), Err(ElementRefusal::NonCanonical.into()));
    }
}
