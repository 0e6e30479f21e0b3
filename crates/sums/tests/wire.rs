//! What is said over the wire does not change unnoticed.

use base::{Error, PartyId};
use engine::conformance::{self, Table};
use engine::{PreparedRows, RowInput, RowSource};
use net::cluster::{Cluster, pinned};
use ot::OtKind;
use program::{JoinedRows, ShardRows};
use studies::lift::{JoinedRow, LiftLayout, LiftParameters, bench_row, build};
use sums::{LANES, SumRows};

/// One party's columns of a lift study.
struct LiftTable<'a> {
    lift: &'a LiftParameters,
    layout: &'a LiftLayout,
    rows: &'a [JoinedRow],
}

impl ShardRows for LiftTable<'_> {
    fn len(&self) -> u64 {
        self.rows.len() as u64
    }
    fn read(&mut self, column: u32, from: u64, into: &mut [u128]) -> Result<(), Error> {
        let content = self.layout.columns[column as usize];
        for (out, row) in into.iter_mut().zip(&self.rows[from as usize..]) {
            *out = content.encode(self.lift, row);
        }
        Ok(())
    }
}

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

/// All rounds of a lift row: digits, tree, selection, cells and cohorts, in two batches that are in flight.
fn lift_rows(kind: OtKind) -> String {
    let lift = LiftParameters { cohorts: vec!["x".into()], ..LiftParameters::bench(4) };
    let (program, layout) = build(&lift).unwrap();
    let rows: Vec<JoinedRow> = (0..100).map(|i| bench_row(&lift, 5, i)).collect();
    let stage = SumRows::new(&program, RowSource::Owned, kind, 64).unwrap();
    Cluster::new(2, 9).wire(|session| {
        let mut table = LiftTable { lift: &lift, layout: &layout, rows: &rows };
        stage.run(RowInput::Owned(&mut table), session).map(drop)
    })
}

#[test]
fn the_wire_is_pinned() {
    let case = conformance::case(2, "joint among 2");
    let own = |kind| {
        let stage = SumRows::new(&case.program, RowSource::Owned, kind, LANES).unwrap();
        Cluster::new(2, 9).wire(|session| {
            let mut rows = Table::new(&case.program, &case.columns, case.rows, Some(session.me()));
            stage.run(RowInput::Owned(&mut rows), session).map(drop)
        })
    };
    let joined = |shared| {
        let source = RowSource::Joined(shared);
        let stage = SumRows::new(&case.program, source, OtKind::default(), LANES).unwrap();
        Cluster::new(2, 9).wire(|session| {
            let mut rows = Shared(session.me());
            stage.run(RowInput::Joined(&mut rows), session).map(drop)
        })
    };
    pinned(&[
        ("lift-row", own(OtKind::default()), "fabed5ae8e5bf345"),
        ("lift-row over Ferret", own(OtKind::Ferret), "b58c592183294c36"),
        ("lift-row, a lift study", lift_rows(OtKind::default()), "4251ba046b0510f5"),
        ("lift-row, a lift study over Ferret", lift_rows(OtKind::Ferret), "2d70a282fb5194fd"),
        ("joined-rows, both shared", joined([true, true]), "eefeec6c26204fee"),
        ("joined-rows, one shared", joined([false, true]), "5c16b9c4b2ab81ca"),
    ]);
}
