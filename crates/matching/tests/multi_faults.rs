//! What a party of multi-identifier Private-ID says when the other one sends garbage, deviates or dies.

#[path = "common/people.rs"]
mod people;
#[path = "common/tap.rs"]
mod tap;

use matching::{MatchOptions, Matcher, MultiId};
use people::Rows;
use tap::{Fault, run_both, tapped};

/// Rows `range` with two identifiers each.
fn rows(range: std::ops::Range<u32>) -> Rows {
    Rows { keys: 2, rows: range.map(|i| vec![format!("mail {i}"), format!("phone {i}")]).collect() }
}

/// The errors of both parties when party `culprit` (0 or 1) has this fault; 40 rows against 30, 20 shared.
fn errors(culprit: usize, fault: Fault) -> [Option<String>; 2] {
    let sides = [rows(0..40), rows(20..50)];
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, _) = tapped(1, 1_000, faults);
    run_both(sessions, |session| {
        let options = MatchOptions { threads: 1, ..MatchOptions::default() };
        let own = &sides[session.me().index()];
        MultiId.run(session, own, None, &options).err().map(|e| e.to_string())
    })
}

/// What the other party than `teller` says, without names.
fn says_to(teller: usize, culprit: usize, fault: Fault) -> String {
    let error = errors(culprit, fault)[teller].take().expect("that party fails");
    let names = ["registry", "hospitals"];
    let rest = error.strip_prefix(&format!("{} at multi/", names[teller]));
    let rest = rest.unwrap_or_else(|| panic!("{error}"));
    rest.replace(&format!(" with {}: ", names[1 - teller]), " | ").replace(DEVIATED, "")
}

/// What the victim of `culprit` says.
fn says(culprit: usize, fault: Fault) -> String {
    says_to(1 - culprit, culprit, fault)
}

const DEVIATED: &str = "the peer deviated from the protocol: ";
const NON_CANONICAL: &str =
    "malformed message from the peer: a group element is not a canonical u-coordinate";
const SMALL_ORDER: &str = "malformed message from the peer: a group element has small order";
const MISSING: &str = "spine | every row of ours is in the spine, once";

fn ones(bytes: &mut [u8]) {
    bytes[..32].fill(0xff);
}

fn zero(bytes: &mut [u8]) {
    bytes[..32].fill(0);
}

fn repeat(bytes: &mut [u8]) {
    bytes.copy_within(..32, 32);
}

/// Exchanges the first two rows of two identifiers.
fn swap_rows(bytes: &mut [u8]) {
    let (a, b) = bytes.split_at_mut(64);
    a.swap_with_slice(&mut b[..64]);
}

/// Exchanges the first two tags.
fn swap_tags(bytes: &mut [u8]) {
    let (a, b) = bytes.split_at_mut(12);
    a.swap_with_slice(&mut b[..12]);
}

/// Another value below `2^255 - 19`, or another digest or seed.
fn other<const AT: usize>(bytes: &mut [u8]) {
    bytes[AT] ^= 1;
}

/// Another number at place `AT` of a message of numbers.
fn number<const AT: usize, const N: u64>(bytes: &mut [u8]) {
    bytes[8 * AT..][..8].copy_from_slice(&N.to_le_bytes());
}

#[test]
fn points_that_are_none() {
    for (culprit, step, message) in [(0, "u", 0), (1, "u", 0), (0, "labels", 1), (1, "uids", 0)] {
        let path = ["multi/u", "multi/labels", "multi/uids"].into_iter().find(|p| p.ends_with(step)).unwrap();
        assert_eq!(says(culprit, Fault::Change(path, message, ones)), format!("{step} | {NON_CANONICAL}"));
        assert_eq!(says(culprit, Fault::Change(path, message, zero)), format!("{step} | {SMALL_ORDER}"));
    }
    assert_eq!(says(1, Fault::Change("multi/e", 0, ones)), format!("e | {NON_CANONICAL}"));
}

#[test]
fn repeats_and_disorder() {
    let unique = "e | its identifiers are unique";
    for culprit in [0, 1] {
        assert_eq!(says(culprit, Fault::Change("multi/u", 0, repeat)), unique);
    }
    assert_eq!(says(1, Fault::Change("multi/e", 0, repeat)), unique);
    let sorted = "e | its rows are sorted and without repeats";
    assert_eq!(says(1, Fault::Change("multi/e", 0, swap_rows)), sorted);
    let spine = "spine | the spine is sorted and without repeats";
    assert_eq!(says(1, Fault::Change("multi/spine", 0, swap_tags)), spine);
}

#[test]
fn elements_that_lead_nowhere() {
    // C misses a row of its own whoever changed what.
    for (culprit, step, message, change) in [
        (0, "multi/labels", 1, other::<3> as fn(&mut [u8])),
        (0, "multi/labels", 0, other::<20>),
        (1, "multi/uids", 0, other::<3>),
    ] {
        assert_eq!(says_to(0, culprit, Fault::Change(step, message, change)), MISSING);
    }
    let receipt = Fault::Change("multi/spine", 0, other::<5>);
    assert_eq!(says(0, receipt), "spine | both spines are the same");
}

#[test]
fn numbers_that_cannot_be() {
    let count = |change: fn(&mut [u8])| says(0, Fault::Change("multi/count", 0, change));
    assert!(count(number::<0, { u64::MAX }>).starts_with("count | rows of the peer: "));
    assert!(count(number::<0, { 1 << 32 }>).contains("count | limits::ROWS, rows of both sides"));
    assert_eq!(count(number::<1, 0>), "count | malformed message from the peer: rows of no identifiers");
    assert!(count(number::<1, 17>).contains("identifiers of a row of the peer: 17 is over the limit of 16"));
    assert!(count(number::<2, 1>).contains("rows of the peer's first list: 1 is over the limit of 0"));
    assert_eq!(count(other::<24>), "count | it has the same weights and rule for contaminated rows as we do");
    assert_eq!(count(other::<40>), "count | it hides sizes with the same dummies as we do");
    let labels = |change: fn(&mut [u8])| says(0, Fault::Change("multi/labels", 0, change));
    assert_eq!(labels(number::<0, 41>), "labels | rows that only the peer has: 41 is over the limit of 40");
    assert_eq!(labels(number::<0, 9>), "labels | there are not more pairs than rows of ours");
}

#[test]
fn a_huge_claim_of_rows_that_never_come_ends_clean() {
    let [_, victim] = errors(0, Fault::Change("multi/count", 0, number::<0, { 1 << 30 }>));
    let error = victim.expect("the victim fails");
    assert!(error.starts_with("hospitals at multi"), "{error}");
}
