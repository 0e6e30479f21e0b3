//! What a party of circuit-PSI says when the other one sends garbage or dies: its own name, the peer's and
//! the step.

mod common;
#[path = "common/tap.rs"]
mod tap;

use common::{Column, ids, with_layouts};
use matching::{CircuitJoin, MatchOptions, Matcher, PayloadLayout, PayloadTable, TableField};
use ot::OtKind;
use tap::{Fault, Record, run_both, tapped};

/// The errors of both parties when party `culprit` has this fault, and what was sent; 30 rows against 40.
fn errors(culprit: usize, fault: Fault) -> ([Option<String>; 2], [Record; 2]) {
    let columns = [Column::new(&ids(0..30)), Column::new(&ids(10..50))];
    let layout = PayloadLayout::new([TableField::number(8)]).unwrap();
    let payload = PayloadTable::zeros(layout.clone(), 40).unwrap();
    let mut faults = [Fault::None, Fault::None];
    faults[culprit] = fault;
    let (sessions, records) = tapped(1, 3_000, faults);
    let done = run_both(sessions, |session| {
        let me = session.me().index();
        let options = MatchOptions { ot: Some(OtKind::SoftSpoken { k: 8 }), ..MatchOptions::default() };
        let payload = (me == 1).then_some(&payload as _);
        CircuitJoin
            .run(
                session,
                &columns[me].flat(),
                payload,
                &with_layouts(&options, [PayloadLayout::default(), layout.clone()]),
            )
            .err()
            .map(|e| e.to_string())
    });
    (done, records)
}

/// What the victim of `culprit` says.
fn says(culprit: usize, fault: Fault) -> String {
    let error = errors(culprit, fault).0[1 - culprit].take().expect("the victim fails");
    let names = ["registry", "hospitals"];
    let (me, peer) = (names[1 - culprit], names[culprit]);
    let rest = error.strip_prefix(&format!("{me} at circuit-psi"));
    rest.unwrap_or_else(|| panic!("{error}")).replace(&format!(" with {peer}: "), " | ")
}

fn count<const N: u64>(bytes: &mut [u8]) {
    bytes.copy_from_slice(&N.to_le_bytes());
}

fn ones(bytes: &mut [u8]) {
    bytes.fill(0xff);
}

fn flip(bytes: &mut [u8]) {
    bytes[0] ^= 1;
}

const COUNT: &str = "circuit-psi/count";

#[test]
fn sizes_and_terms_that_cannot_be() {
    let over = says(0, Fault::Change(COUNT, 0, count::<{ u64::MAX }>));
    assert_eq!(over, format!("/count | rows of the peer: {} is over the limit of {}", u64::MAX, u32::MAX));
    // More bins than rows are counted in: refused before anything is allocated.
    let bins = says(0, Fault::Change(COUNT, 0, count::<{ u32::MAX as u64 }>));
    assert!(bins.starts_with(": limits::ROWS, bins of the join: 5669357853 is over the limit of"), "{bins}");
    for culprit in [0, 1] {
        let dummies = says(culprit, Fault::Change(COUNT, 1, flip));
        assert!(
            dummies.starts_with("/count | ") && dummies.ends_with("the same dummies as we do"),
            "{dummies}"
        );
        let columns = says(culprit, Fault::Change(COUNT, 2, flip));
        assert!(
            columns.starts_with("/count | ") && columns.ends_with("by the same OTs as we do"),
            "{columns}"
        );
    }
}

#[test]
fn an_attempt_that_there_is_not() {
    let error = says(0, Fault::Change("circuit-psi/bins", 0, ones));
    assert_eq!(error, "/bins | malformed message from the peer: there is no such attempt at bins");
}

/// A huge claim of the sender's rows: tables of a piece would take gigabytes, and the peer is gone before any
/// comes.
#[test]
fn a_huge_claim_of_rows_that_never_come_ends_clean() {
    for error in errors(1, Fault::Change(COUNT, 0, count::<{ (1 << 32) - 2 }>)).0 {
        assert!(error.expect("both fail").contains(" at circuit-psi"));
    }
}

/// Wrong bytes in tables give wrong shares, not a crash: semi-honest peers do not send them.
#[test]
fn garbage_in_tables_is_shares_of_garbage() {
    for culprit in [0, 1] {
        let (errors, _) = errors(culprit, Fault::Change("circuit-psi/pieces", 0, ones));
        assert_eq!(errors, [None, None]);
    }
}

#[test]
fn base_ots_that_are_none() {
    for culprit in [0, 1] {
        let error = says(culprit, Fault::Change("circuit-psi/vole/base-ot", 0, ones));
        assert!(error.starts_with("/vole/base-ot | malformed message from the peer: "), "{error}");
    }
}
