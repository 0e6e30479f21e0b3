//! What a party of Collecting PS3I says when the other one sends garbage, deviates or dies: its own name, the
//! peer's and the step.

mod common;
#[path = "common/lists.rs"]
mod lists;
#[path = "common/tap.rs"]
mod tap;

use lists::{options, random, work};
use matching::MatchOptions;
use tap::{Fault, run_both, tapped};

/// What the victim of `culprit` says; 12 rows against 15.
fn says(culprit: usize, fault: Fault) -> String {
    let mut rng = base::Seed::from_bytes([1; 32]).into_rng();
    let data = random(&mut rng, [12, 15], [2, 2], 20);
    let options = MatchOptions { slots: 2, degree: 2, ..options() };
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 2_000, faults);
    let mut errors = run_both(sessions, |s| work(s, &data, &options).err().map(|e| e.to_string()));
    let error = errors[1 - culprit].take().expect("the victim fails");
    let names = ["registry", "hospitals"];
    let rest = error.strip_prefix(&format!("{} at collecting/", names[1 - culprit]));
    rest.unwrap_or_else(|| panic!("{error}")).replace(&format!(" with {}: ", names[culprit]), " | ")
}

fn ones(bytes: &mut [u8]) {
    bytes[..32].fill(0xff);
}

fn zero(bytes: &mut [u8]) {
    bytes[..32].fill(0);
}

fn repeat(bytes: &mut [u8]) {
    bytes.copy_within(..32, 32);
}

fn repeat_tag(bytes: &mut [u8]) {
    bytes.copy_within(..12, 12);
}

/// Sets number `AT` of the message of sizes.
fn number<const AT: usize, const N: u64>(bytes: &mut [u8]) {
    bytes[8 * AT..][..8].copy_from_slice(&N.to_le_bytes());
}

fn terms(bytes: &mut [u8]) {
    bytes[41] ^= 1;
}

#[test]
fn points_that_are_none() {
    let malformed = "malformed message from the peer: a group element";
    for culprit in [0, 1] {
        let says = |change| says(culprit, Fault::Change("collecting/names", 0, change));
        assert_eq!(says(ones), format!("names | {malformed} is not a canonical u-coordinate"));
        assert_eq!(says(zero), format!("names | {malformed} has small order"));
    }
}

#[test]
fn names_that_repeat() {
    let distinct = "the peer deviated from the protocol: its names are distinct";
    let of_0 = says(0, Fault::Change("collecting/names", 0, repeat));
    assert_eq!(of_0, format!("shuffle | {distinct}"));
    let of_1 = [("collecting/names", repeat as fn(&mut [u8])), ("collecting/shuffle", repeat_tag)];
    for (step, change) in of_1 {
        assert_eq!(says(1, Fault::Change(step, 0, change)), format!("join | {distinct}"));
    }
}

#[test]
fn sizes_and_terms_that_cannot_be() {
    let of = |culprit, change| says(culprit, Fault::Change("collecting/count", 0, change));
    for culprit in [0, 1] {
        let rows = of(culprit, number::<0, { u64::MAX }>);
        assert!(
            rows.starts_with("count | rows of the peer: 18446744073709551615 is over the limit of"),
            "{rows}"
        );
        let keys = of(culprit, number::<1, 65>);
        assert_eq!(keys, "count | identifiers of a row of the peer: 65 is over the limit of 64");
        let none = of(culprit, number::<1, 0>);
        assert_eq!(none, "count | the peer deviated from the protocol: its rows have identifiers");
        let caps = "count | the peer deviated from the protocol: its slots and degree are ours";
        assert_eq!([of(culprit, number::<2, 3>), of(culprit, number::<3, 1>)], [caps, caps]);
        let names = of(culprit, number::<0, { 1 << 31 }>);
        assert!(names.contains("of all ") && names.contains(" is over the limit of 4294967295"), "{names}");
        let dummies =
            "count | the peer deviated from the protocol: it hides sizes with the same dummies as we do";
        assert_eq!(of(culprit, terms), dummies);
    }
    let lists = "count | the peer deviated from the protocol: party 0 alone has two lists, and list T is a \
                 part of its rows";
    assert_eq!([of(0, number::<4, 13>), of(1, number::<4, 3>)], [lists, lists]);
}

#[test]
fn a_wrong_count_of_rows_ends_in_an_error() {
    for (culprit, change) in [
        (0, number::<0, 11> as fn(&mut [u8])),
        (0, number::<0, 13>),
        (1, number::<0, 14>),
        (1, number::<0, 16>),
    ] {
        let error = says(culprit, Fault::Change("collecting/count", 0, change));
        assert!(error.contains(" | "), "{error}");
    }
}
