//! What a party says when the other one sends garbage, deviates or dies: its own name, the peer's and the
//! step.

mod common;
#[path = "common/tap.rs"]
mod tap;

use base::PartyId;
use common::{Column, ids};
use matching::{IdentifierSource, MatchOptions, Matcher, PrivateId};
use net::cluster::Cluster;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tap::{Fault, run_both, tapped};

/// The errors of both parties when party `culprit` (0 or 1) has this fault; 30 rows against 40, 20 shared.
fn errors(culprit: usize, fault: Fault) -> [Option<String>; 2] {
    let columns = [Column::new(&ids(0..30)), Column::new(&ids(10..50))];
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 1_000, faults);
    run_both(sessions, |session| {
        let own = columns[session.me().index()].flat();
        let options = MatchOptions { threads: 1, ..MatchOptions::default() };
        PrivateId.run(session, &own, None, &options).err().map(|e| e.to_string())
    })
}

/// What the victim of `culprit` says.
fn says(culprit: usize, fault: Fault) -> String {
    let error = errors(culprit, fault)[1 - culprit].take();
    let error = error.expect("the victim fails");
    let names = ["registry", "hospitals"];
    let (me, peer) = (names[1 - culprit], names[culprit]);
    let rest = error.strip_prefix(&format!("{me} at pid/"));
    rest.unwrap_or_else(|| panic!("{error}")).replace(&format!(" with {peer}: "), " | ")
}

fn first(bytes: &mut [u8], element: [u8; 32]) {
    bytes[..32].copy_from_slice(&element);
}

fn zero(bytes: &mut [u8]) {
    first(bytes, [0; 32]);
}

fn ones(bytes: &mut [u8]) {
    first(bytes, [0xff; 32]);
}

fn one_point(bytes: &mut [u8]) {
    first(bytes, std::array::from_fn(|i| u8::from(i == 0)));
}

fn repeat(bytes: &mut [u8]) {
    bytes.copy_within(..32, 32);
}

/// Another value below `2^255 - 19`: not the element that was sent.
fn other(bytes: &mut [u8]) {
    bytes[3] ^= 1;
}

fn swap(bytes: &mut [u8]) {
    let (a, b) = bytes.split_at_mut(32);
    a.swap_with_slice(&mut b[..32]);
}

fn count<const N: u64>(bytes: &mut [u8]) {
    bytes[..8].copy_from_slice(&N.to_le_bytes());
}

/// Columns of elements by step and message. Each party sends at `u` a pulse and `u`, at `e` a count and its
/// column; at `difference` C a pulse and s'_c, P s'_p and a pulse.
const U: (&str, usize) = ("pid/u", 1);
const V: (&str, usize) = ("pid/v", 0);
const E: (&str, usize) = ("pid/e", 1);
const S_P: (&str, usize) = ("pid/e", 1);
const S_C_PRIME: (&str, usize) = ("pid/difference", 1);
const S_P_PRIME: (&str, usize) = ("pid/difference", 0);

fn change(at: (&'static str, usize), how: fn(&mut [u8])) -> Fault {
    Fault::Change(at.0, at.1, how)
}

const NON_CANONICAL: &str =
    "malformed message from the peer: a group element is not a canonical u-coordinate";
const SMALL_ORDER: &str = "malformed message from the peer: a group element has small order";
const OTHER_STREAMS: &str = "the peer deviated from the protocol: all of u and v is said before any of e, \
                             and both have the same of it";
const UNSORTED: &str = "the peer deviated from the protocol: its set is sorted and without repeats";

#[test]
fn points_that_are_none() {
    for (culprit, at) in [(0, U), (1, U), (0, V), (1, V), (0, S_C_PRIME), (1, S_P_PRIME)] {
        let step = at.0.strip_prefix("pid/").unwrap();
        assert_eq!(says(culprit, change(at, ones)), format!("{step} | {NON_CANONICAL}"));
        assert_eq!(says(culprit, change(at, zero)), format!("{step} | {SMALL_ORDER}"));
    }
    for (culprit, at) in [(0, U), (1, V)] {
        let error = says(culprit, change(at, one_point));
        assert!(error.ends_with(&format!(" | {SMALL_ORDER}")), "{error}");
    }
    // Zero sorts first, so only the multiplication sees it.
    for (culprit, at) in [(1, E), (0, S_P)] {
        assert_eq!(says(culprit, change(at, ones)), format!("e | {NON_CANONICAL}"));
        assert_eq!(says(culprit, change(at, zero)), format!("difference | {SMALL_ORDER}"));
    }
}

#[test]
fn repeated_elements() {
    for (culprit, at) in [(0, U), (1, U), (1, E), (0, S_P), (0, S_C_PRIME)] {
        let step = at.0.strip_prefix("pid/").unwrap();
        for disorder in [repeat, swap] {
            assert_eq!(says(culprit, change(at, disorder)), format!("{step} | {UNSORTED}"));
        }
    }
    let distinct = "spine | the peer deviated from the protocol: the universal identifiers are distinct";
    assert_eq!(says(1, change(S_P_PRIME, repeat)), distinct);
    // What was answered is compared before anything follows from it.
    for culprit in [0, 1] {
        assert_eq!(says(culprit, change(V, repeat)), format!("seal | {OTHER_STREAMS}"));
    }
}

#[test]
fn a_changed_element_gives_different_spines() {
    let differ = "spine | the peer deviated from the protocol: both spines are the same";
    for (culprit, at) in [(1, S_P_PRIME), (0, ("pid/spine", 0)), (1, ("pid/spine", 0))] {
        assert_eq!(says(culprit, change(at, other)), differ);
    }
    for (culprit, at) in [(0, V), (1, V), (0, ("pid/seal", 0)), (1, ("pid/seal", 0))] {
        assert_eq!(says(culprit, change(at, other)), format!("seal | {OTHER_STREAMS}"));
    }
}

#[test]
fn sizes_that_cannot_be() {
    let over = says(0, Fault::Change("pid/count", 0, count::<{ u64::MAX }>));
    assert_eq!(over, format!("count | rows of the peer: {} is over the limit of {}", u64::MAX, 1u64 << 32));
    let both = says(0, Fault::Change("pid/count", 0, count::<{ 1 << 32 }>));
    assert!(
        both.starts_with("count | limits::ROWS, rows of both sides: 4294967336 is over the limit"),
        "{both}"
    );
    // P has 40 rows, C 30: s_p has 10 to 40 rows, e_c 30.
    for (culprit, size) in [(0, count::<41> as fn(&mut [u8])), (1, count::<31>)] {
        let more = says(culprit, Fault::Change("pid/e", 0, size));
        let (size, cap) = if culprit == 0 { (41, 40) } else { (31, 30) };
        assert_eq!(more, format!("e | elements of a slice: {size} is over the limit of {cap}"));
    }
    let fewer = says(0, Fault::Change("pid/e", 0, count::<9>));
    let check = "the peer deviated from the protocol: the intersection is not larger than either set";
    assert_eq!(fewer, format!("e | {check}"));
    let fewer = says(1, Fault::Change("pid/e", 0, count::<29>));
    let check = "the peer deviated from the protocol: it returns as many elements as it received";
    assert_eq!(fewer, format!("e | {check}"));
}

#[test]
fn sides_that_hide_sizes_differently() {
    let terms = |bytes: &mut [u8]| bytes[8] ^= 1;
    let error = "count | the peer deviated from the protocol: it hides sizes with the same dummies as we do";
    assert_eq!(says(0, Fault::Change("pid/count", 0, terms)), error);
    let partitions = |bytes: &mut [u8]| bytes[64] += 1;
    let error =
        "count | the peer deviated from the protocol: it deals elements into as many partitions as we do";
    assert_eq!(says(0, Fault::Change("pid/count", 0, partitions)), error);
}

#[test]
fn elements_of_another_slice() {
    // Two slices: the last element of the first one moves beyond its range.
    let columns = [Column::new(&ids(0..5000)), Column::new(&ids(0..10))];
    let beyond = |bytes: &mut [u8]| {
        let last = bytes.len() - 32;
        bytes[last] |= 0x80;
    };
    let (sessions, _) = tapped(1, 10_000, [Fault::None, Fault::Change("pid/e", 1, beyond)]);
    let errors = run_both(sessions, |session| {
        let own = columns[session.me().index()].flat();
        let options = MatchOptions { threads: 1, ..MatchOptions::default() };
        PrivateId.run(session, &own, None, &options).err().map(|e| e.to_string())
    });
    let error = errors[0].as_ref().unwrap();
    assert!(error.ends_with("the elements of a slice are in its range"), "{error}");
}

#[test]
fn identifiers_of_no_or_many_bytes_and_some_that_change() {
    let refused = |ids: &[Vec<u8>], error: &str| {
        let column = Changing { ids: ids.to_vec(), reads: AtomicUsize::new(0), change: false };
        let (sessions, records) = tapped(1, 1_000, [Fault::None, Fault::None]);
        let errors = run_both(sessions, |session| {
            PrivateId
                .run(session, &column, None, &MatchOptions { threads: 1, ..MatchOptions::default() })
                .unwrap_err()
                .to_string()
        });
        assert!(errors[0].starts_with(&format!("registry at pid: {error}")), "{}", errors[0]);
        assert!(records.iter().all(|r| r.lock().unwrap().is_empty()), "something was sent");
    };
    let cap = base::limits::IDENTIFIER_BYTES;
    refused(&[b"a".to_vec(), Vec::new()], "the identifier of row 2 is empty");
    refused(&[vec![b'x'; cap + 1]], "limits::IDENTIFIER_BYTES");
    let long = [vec![b'x'; cap], vec![b'y'; cap], vec![b'x'; cap - 1]];
    for change in [false, true] {
        let column = Changing { ids: long.to_vec(), reads: AtomicUsize::new(0), change };
        let (sessions, _) = tapped(1, 10_000, [Fault::None, Fault::None]);
        let done = run_both(sessions, |session| {
            let own: &dyn IdentifierSource = &column;
            PrivateId.run(session, own, None, &MatchOptions { threads: 1, ..MatchOptions::default() })
        });
        match change {
            false => {
                let mine = done.map(|done| done.unwrap().spine().unwrap().mine.positions().unwrap());
                assert_eq!(mine[0], mine[1]);
            }
            true => {
                let errors: Vec<_> =
                    done.iter().map(|d| d.as_ref().map_err(ToString::to_string).err()).collect();
                let changed = errors.iter().flatten().any(|e| e.contains("identifiers changed while"));
                assert!(changed, "{errors:?}");
            }
        }
    }
}

/// Identifiers that become others after they were read once.
struct Changing {
    ids: Vec<Vec<u8>>,
    reads: AtomicUsize,
    change: bool,
}

impl IdentifierSource for Changing {
    fn rows(&self) -> u64 {
        self.ids.len() as u64
    }

    fn read(&self, row: u32, _key: usize, into: &mut Vec<u8>) -> Result<(), base::Error> {
        into.clone_from(&self.ids[row as usize]);
        // Both parties read this column once before they hash it.
        if self.change && self.reads.fetch_add(1, Ordering::Relaxed) >= 2 * self.ids.len() {
            into[0] ^= 1;
        }
        Ok(())
    }
}

#[test]
fn a_huge_claim_of_rows_that_never_come_ends_clean() {
    // 2^32 - 41 rows of 32 bytes are 128 GiB, of which nothing is touched.
    let [_, victim] = errors(0, Fault::Change("pid/count", 0, count::<{ (1 << 32) - 41 }>));
    let error = victim.expect("the victim fails");
    assert!(error.starts_with("hospitals at pid"), "{error}");
}

#[test]
fn a_wrong_count_of_rows_ends_in_an_error_on_both_sides() {
    for (culprit, change) in
        [(0, count::<29> as fn(&mut [u8])), (0, count::<31>), (1, count::<39>), (1, count::<0>)]
    {
        for error in errors(culprit, Fault::Change("pid/count", 0, change)) {
            let error = error.expect("both fail");
            assert!(error.contains(" at pid/") && error.contains(" with "), "{error}");
        }
    }
}

#[test]
fn a_peer_that_stalls_at_any_step() {
    let columns = [Column::new(&ids(0..30)), Column::new(&ids(10..50))];
    let stall = &|step: &str, culprit: u8| {
        let fault = net::InjectedFault::Delay(Duration::from_millis(1500));
        let cluster = Cluster::new(2, 1).deadline(Duration::from_millis(400));
        let done = cluster.fault(PartyId(culprit), step, fault).run(|session| {
            let own = columns[session.me().index()].flat();
            PrivateId.run(session, &own, None, &MatchOptions { threads: 1, ..MatchOptions::default() })
        });
        let error = done[1 - culprit as usize].as_ref().unwrap_err().to_string();
        assert!(error.contains(" at pid/") && error.contains("no progress for"), "{step}: {error}");
    };
    std::thread::scope(|scope| {
        for step in ["count", "u", "v", "seal", "e", "difference", "spine"] {
            for culprit in [0, 1] {
                scope.spawn(move || stall(&format!("pid/{step}"), culprit));
            }
        }
    });
}
