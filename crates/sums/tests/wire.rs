//! What is said over the wire does not change unnoticed.

use base::{Error, PartyId};
use engine::conformance::{self, Table};
use engine::{BaseOts, PreparedRows, RowInput, RowSource};
use net::cluster::{Cluster, pinned};
use ot::OtKind;
use program::JoinedRows;
use sums::{LANES, SumRows};

/// Shares of joined rows: any number is one.
struct Shared(PartyId);

impl JoinedRows for Shared {
    fn len(&self) -> u64 {
        70
    }
    fn read(&mut self, entry: usize, from: u64, into: &mut [u128]) -> Result<(), Error> {
        for (row, out) in (from..).zip(into) {
            *out = u128::from(row + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15 + u128::from(self.0.0) + entry as u128);
        }
        Ok(())
    }
    fn alone(&mut self, _: u32) -> Result<u128, Error> {
        Ok(7)
    }
}

#[test]
fn the_wire_is_pinned() {
    let case = conformance::case(2, "joint among 2");
    let own = |kind| {
        let stage = SumRows::new(&case.program, RowSource::Owned, kind, LANES).unwrap();
        Cluster::new(2, 9).wire(|session| {
            let mut rows = Table::new(&case.program, &case.columns, case.rows, Some(session.me()));
            stage.run(RowInput::Owned(&mut rows), BaseOts::Own, session).map(drop)
        })
    };
    let joined = |shared| {
        let source = RowSource::Joined(shared);
        let stage = SumRows::new(&case.program, source, OtKind::default(), LANES).unwrap();
        Cluster::new(2, 9).wire(|session| {
            let mut rows = Shared(session.me());
            stage.run(RowInput::Joined(&mut rows), BaseOts::Own, session).map(drop)
        })
    };
    pinned(&[
        ("lift-row", own(OtKind::default()), "fabed5ae8e5bf345"),
        ("lift-row over Ferret", own(OtKind::Ferret), "b58c592183294c36"),
        ("joined-rows, both shared", joined([true, true]), "eefeec6c26204fee"),
        ("joined-rows, one shared", joined([false, true]), "5c16b9c4b2ab81ca"),
    ]);
}
