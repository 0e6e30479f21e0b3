//! The local steps of Private-ID: functions of columns of elements, without any conversation.

use crate::group::{Element, Refusal, is_canonical};
use base::Rng;

/// Why a peer's message is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its bytes decode to nothing.
    Malformed(&'static str),
    /// It fails the named check.
    Deviated(&'static str),
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Malformed(refusal.text())
    }
}

/// The secret order in which own rows are sent as u: a uniform permutation of all of them. The peer learns, for the
/// elements in this order, which ones are shared.
pub fn secret_order(rows: u64, rng: &mut Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows as u32).collect();
    rng.shuffle(&mut order);
    order
}

/// Sorts a whole column by encoding: the global shuffle of `e_c`, `s_p` and `s'_c`.
///
/// The sorted column is a function of the *set* of its elements, so nothing of the order in which they arrived
/// survives. A shuffle of each chunk on its own would hand out the match count of every chunk.
///
/// # Errors
/// When an element repeats: the peer repeated one of its own, which would mark it through every later step.
pub fn sort_distinct(column: &mut [Element]) -> Result<(), Fault> {
    column.sort_unstable();
    match column.windows(2).all(|w| w[0] != w[1]) {
        true => Ok(()),
        false => Err(Fault::Deviated("its identifiers are unique")),
    }
}

/// Checks a column that the peer must have sorted by [`sort_distinct`].
///
/// # Errors
/// When an element is not canonical, repeats or is out of order.
pub fn check_sorted(column: &[Element]) -> Result<(), Fault> {
    check_canonical(column)?;
    match column.windows(2).all(|w| w[0] < w[1]) {
        true => Ok(()),
        false => Err(Fault::Deviated("its set is sorted and without repeats")),
    }
}

/// Checks that elements are u-coordinates.
///
/// # Errors
/// When an element is not canonical.
pub fn check_canonical(column: &[Element]) -> Result<(), Fault> {
    match column.iter().all(is_canonical) {
        true => Ok(()),
        false => Err(Refusal::NonCanonical.into()),
    }
}

/// Replaces two sorted sets by `a \ b` and `b \ a`, in place and sorted.
pub fn differences(a: &mut Vec<Element>, b: &mut Vec<Element>) {
    let (mut i, mut j, mut kept_a, mut kept_b) = (0, 0, 0, 0);
    while i < a.len() || j < b.len() {
        let order = match (a.get(i), b.get(j)) {
            (Some(x), Some(y)) => x.cmp(y),
            (Some(_), None) => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Greater,
        };
        if order.is_lt() {
            a[kept_a] = a[i];
            kept_a += 1;
        } else if order.is_gt() {
            b[kept_b] = b[j];
            kept_b += 1;
        }
        i += usize::from(order.is_le());
        j += usize::from(order.is_ge());
    }
    a.truncate(kept_a);
    b.truncate(kept_b);
}

/// A row of ours: its universal identifier and its index in the input.
pub type Row = (Element, u32);

/// The positions of our own rows, in input order, among the sorted universal identifiers of both, and a digest of
/// all of them in order.
///
/// # Errors
/// When an identifier occurs twice: the peer sent something else than the protocol says.
pub fn spine(own: &mut [Row], others: &mut [Element]) -> Result<(Vec<u32>, [u8; 32]), Fault> {
    own.sort_unstable();
    others.sort_unstable();
    let mut positions = vec![0; own.len()];
    let mut digest = blake3::Hasher::new();
    let (mut i, mut j, mut last) = (0, 0, None);
    while i < own.len() || j < others.len() {
        let ours = match (own.get(i), others.get(j)) {
            (Some((mine, _)), Some(other)) => mine < other,
            (mine, _) => mine.is_some(),
        };
        let uid = if ours { own[i].0 } else { others[j] };
        if last == Some(uid) {
            return Err(Fault::Deviated("the universal identifiers are distinct"));
        }
        if ours {
            positions[own[i].1 as usize] = (i + j) as u32;
            i += 1;
        } else {
            j += 1;
        }
        digest.update(&uid);
        last = Some(uid);
    }
    Ok((positions, *digest.finalize().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Seed;
    use std::collections::BTreeSet;

    fn column(n: usize, seed: u8) -> Vec<Element> {
        let mut rng = Seed::from_bytes([seed; 32]).into_rng();
        let element = || {
            let mut e: Element = rng.bytes();
            e[31] &= 0x7f;
            e
        };
        std::iter::repeat_with(element).take(n).collect()
    }

    #[test]
    fn what_is_sent_is_a_function_of_the_set() {
        let mut rng = Seed::from_bytes([9; 32]).into_rng();
        let mut sent = column(5000, 1);
        let mut arrived = sent.clone();
        sort_distinct(&mut sent).unwrap();
        for _ in 0..10 {
            rng.shuffle(&mut arrived);
            let mut again = arrived.clone();
            sort_distinct(&mut again).unwrap();
            assert_eq!(again, sent);
        }
        sent[0] = sent[4999];
        assert_eq!(sort_distinct(&mut sent), Err(Fault::Deviated("its identifiers are unique")));
    }

    #[test]
    fn orders_are_permutations_and_do_not_repeat() {
        let mut rng = Seed::from_bytes([2; 32]).into_rng();
        let [first, second] = [(), ()].map(|()| secret_order(10_000, &mut rng));
        assert_ne!(first, second);
        // A fixed point is expected once; a row of a chunk should leave it with probability 1 - 4096/10000.
        let stayed = |order: &[u32]| order[..4096].iter().filter(|&&row| row < 4096).count();
        for mut order in [first, second] {
            assert!((1500..1860).contains(&stayed(&order)), "{}", stayed(&order));
            order.sort_unstable();
            assert!(order.into_iter().eq(0..10_000));
        }
    }

    #[test]
    fn differences_are_those_of_sets() {
        let mut rng = Seed::from_bytes([3; 32]).into_rng();
        for seed in 0..50 {
            let all = column(40, seed);
            let pick = |rng: &mut base::Rng| -> BTreeSet<Element> {
                let share = rng.below(5);
                all.iter().copied().filter(|_| rng.below(4) < share).collect()
            };
            let (a, b) = (pick(&mut rng), pick(&mut rng));
            let (mut left, mut right): (Vec<_>, Vec<_>) =
                (a.iter().copied().collect(), b.iter().copied().collect());
            differences(&mut left, &mut right);
            assert!(left.iter().eq(a.difference(&b)) && right.iter().eq(b.difference(&a)));
        }
    }

    #[test]
    fn a_spine_ranks_every_row() {
        let all = column(300, 4);
        let mut own: Vec<Row> = all[..200].iter().copied().zip(0..).collect();
        let (positions, digest) = spine(&mut own, &mut all[200..].to_vec()).unwrap();
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!((0..200).all(|i| sorted[positions[i] as usize] == all[i]));
        let mut rest: Vec<Row> = all[200..].iter().copied().zip(0..).collect();
        assert_eq!(spine(&mut rest, &mut all[..200].to_vec()).unwrap().1, digest);
        let clash = Err(Fault::Deviated("the universal identifiers are distinct"));
        assert_eq!(spine(&mut own, &mut all[199..].to_vec()), clash);
        own[3].0 = own[4].0;
        assert_eq!(spine(&mut own, &mut []), clash);
        assert_eq!(spine(&mut [], &mut [all[0], all[0]]), clash);
    }

    #[test]
    fn peers_columns_are_checked() {
        let mut sorted = column(10, 5);
        sort_distinct(&mut sorted).unwrap();
        assert_eq!(check_sorted(&sorted), Ok(()));
        let disorder = Err(Fault::Deviated("its set is sorted and without repeats"));
        let mut swapped = sorted.clone();
        swapped.swap(2, 3);
        assert_eq!(check_sorted(&swapped), disorder);
        swapped[2] = swapped[3];
        assert_eq!(check_sorted(&swapped), disorder);
        sorted[9] = [0xff; 32];
        assert_eq!(check_sorted(&sorted), Err(Refusal::NonCanonical.into()));
    }
}
