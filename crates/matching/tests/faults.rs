//! What a party says when the other one sends garbage, deviates or dies: its own name, the peer's and the step.

mod common;
#[path = "common/tap.rs"]
mod tap;

use common::{Column, ids};
use matching::{Options, pid};
use tap::{Fault, run_both, tapped};

/// The errors of both parties when party `culprit` (0 or 1) has this fault; 30 rows against 40, 20 shared.
fn errors(culprit: usize, fault: Fault) -> [Option<String>; 2] {
    let columns = [Column::new(&ids(0..30)), Column::new(&ids(10..50))];
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 1_000, faults);
    run_both(sessions, |session| {
        let own = columns[session.me().index()].flat();
        let options = Options { threads: 1, ..Options::default() };
        pid::run(session, &own, &options).err().map(|e| e.to_string())
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
    bytes.copy_from_slice(&N.to_le_bytes());
}

/// Messages at `pid/difference`. C: count, s_p, pulse, s'_c, pulse; P: pulse, s'_p, pulse.
const S_P: usize = 1;
const S_C_PRIME: usize = 3;
const S_P_PRIME: usize = 1;

const NON_CANONICAL: &str =
    "malformed message from the peer: a group element is not a canonical u-coordinate";
const SMALL_ORDER: &str = "malformed message from the peer: a group element has small order";
const UNSORTED: &str = "the peer deviated from the protocol: its set is sorted and without repeats";

#[test]
fn points_that_are_none() {
    for culprit in [0, 1] {
        for step in ["u", "v"] {
            let path = if step == "u" { "pid/u" } else { "pid/v" };
            assert_eq!(says(culprit, Fault::Change(path, 0, ones)), format!("{step} | {NON_CANONICAL}"));
            assert_eq!(says(culprit, Fault::Change(path, 0, zero)), format!("{step} | {SMALL_ORDER}"));
            assert_eq!(says(culprit, Fault::Change(path, 0, one_point)), format!("{step} | {SMALL_ORDER}"));
        }
    }
    assert_eq!(says(1, Fault::Change("pid/e", 0, ones)), format!("e | {NON_CANONICAL}"));
    // Zero sorts first, so only the multiplication sees it.
    assert_eq!(says(1, Fault::Change("pid/e", 0, zero)), format!("difference | {SMALL_ORDER}"));
    for (culprit, message) in [(0, S_P), (0, S_C_PRIME), (1, S_P_PRIME)] {
        let ones = Fault::Change("pid/difference", message, ones);
        assert_eq!(says(culprit, ones), format!("difference | {NON_CANONICAL}"));
        let zero = Fault::Change("pid/difference", message, zero);
        assert_eq!(says(culprit, zero), format!("difference | {SMALL_ORDER}"));
    }
}

#[test]
fn repeated_elements() {
    let unique = "e | the peer deviated from the protocol: its identifiers are unique";
    assert_eq!(says(0, Fault::Change("pid/u", 0, repeat)), unique);
    assert_eq!(says(1, Fault::Change("pid/u", 0, repeat)), unique);
    assert_eq!(says(1, Fault::Change("pid/e", 0, repeat)), format!("e | {UNSORTED}"));
    assert_eq!(says(1, Fault::Change("pid/e", 0, swap)), format!("e | {UNSORTED}"));
    for message in [S_P, S_C_PRIME] {
        let fault = Fault::Change("pid/difference", message, repeat);
        assert_eq!(says(0, fault), format!("difference | {UNSORTED}"));
    }
    let distinct = "spine | the peer deviated from the protocol: the universal identifiers are distinct";
    assert_eq!(says(1, Fault::Change("pid/difference", S_P_PRIME, repeat)), distinct);
    for culprit in [0, 1] {
        assert_eq!(says(culprit, Fault::Change("pid/v", 0, repeat)), distinct);
    }
}

#[test]
fn a_changed_element_gives_different_spines() {
    let differ = "spine | the peer deviated from the protocol: both spines are the same";
    for culprit in [0, 1] {
        assert_eq!(says(culprit, Fault::Change("pid/v", 0, other)), differ);
        assert_eq!(says(culprit, Fault::Change("pid/spine", 0, other)), differ);
    }
    assert_eq!(says(1, Fault::Change("pid/difference", S_P_PRIME, other)), differ);
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
    // P has 40 rows, C 30: s_p has 10 to 40 rows.
    let more = says(0, Fault::Change("pid/difference", 0, count::<41>));
    assert_eq!(more, "difference | rows that only we have: 41 is over the limit of 40");
    let fewer = says(0, Fault::Change("pid/difference", 0, count::<9>));
    let check = "the peer deviated from the protocol: the intersection is not larger than its own set";
    assert_eq!(fewer, format!("difference | {check}"));
}

#[test]
fn a_huge_claim_of_rows_that_never_come_ends_clean() {
    // 2^32 - 41 rows of 32 bytes are 128 GiB: room is reserved, not touched, or refused with an error.
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
fn a_peer_that_dies_at_any_step() {
    let of_c = [
        ("pid/count", 0),
        ("pid/u", 0),
        ("pid/v", 0),
        ("pid/difference", S_P),
        ("pid/difference", S_C_PRIME),
    ];
    let of_p = [("pid/count", 0), ("pid/u", 0), ("pid/v", 0), ("pid/e", 0), ("pid/difference", S_P_PRIME)];
    let spine = [("pid/spine", 0)];
    for (culprit, cuts) in
        [(0, of_c), (1, of_p)].iter().flat_map(|(c, s)| s.iter().chain(&spine).map(move |s| (*c, s)))
    {
        let error = says(culprit, Fault::Cut(cuts.0, cuts.1));
        assert!(error.ends_with("see the peer's own output"), "{error}");
        let step = cuts.0.strip_prefix("pid/").unwrap();
        assert!(error.starts_with(step), "{error}, died at {step}");
    }
}
