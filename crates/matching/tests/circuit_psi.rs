//! Circuit-PSI in several pieces, with other terms, and without payload; `tests/suite.rs` has what all
//! protocols do.

mod common;

use base::PartyId;
use common::{Column, ids, with_layouts};
use matching::circuit_psi::memory;
use matching::dummies::Dummies;
use matching::{
    CircuitJoin, JoinedPart, MatchOptions, Matcher, PayloadLayout, PayloadTable, TableField, ValidEntries,
};
use net::cluster::Cluster;
use ot::OtKind;
use std::path::Path;

/// How many rows match, each of the receiver's in one bin, without payload and with the usual OTs.
fn matched(x: &[String], y: &[String], seed: u64) -> usize {
    let columns = [Column::new(x), Column::new(y)];
    let done = Cluster::new(2, seed).run(|session| {
        let me = session.me().index();
        let payload = PayloadTable::zeros(PayloadLayout::default(), y.len() as u64)?;
        let own = (me == 1).then_some(&payload as _);
        CircuitJoin.run(session, &columns[me].flat(), own, &MatchOptions::default())?.shares()
    });
    let [r, s] = [0, 1].map(|party: usize| done[party].as_ref().unwrap());
    let (ValidEntries::Shared(a), ValidEntries::Shared(b)) = (&r.valid, &s.valid) else {
        panic!("nobody knows which rows match")
    };
    let JoinedPart::Mine(held) = &r.parts[0] else { panic!("the receiver knows its bins") };
    assert_eq!(held.iter().filter(|row| **row != matching::payload::ABSENT).count(), x.len());
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones() as usize).sum()
}

#[test]
fn several_pieces_on_either_side() {
    assert_eq!(matched(&ids(0..30_000), &ids(15_000..40_000), 6), 15_000);
    assert_eq!(matched(&ids(0..100), &ids(50..60_000), 7), 50);
    assert_eq!(matched(&ids(0..60_000), &ids(59_990..60_050), 8), 10);
}

#[test]
fn other_ots_are_noticed() {
    let column = Column::new(&ids(0..5));
    let done = Cluster::new(2, 1).run(|session| {
        let me = session.me().index();
        let payload = PayloadTable::zeros(PayloadLayout::default(), 5)?;
        let ot = [OtKind::Ferret, OtKind::SoftSpoken { k: 4 }][me];
        let options = MatchOptions { ot: Some(ot), ..MatchOptions::default() };
        CircuitJoin.run(session, &column.flat(), (me == 1).then_some(&payload as _), &options).map(drop)
    });
    for error in done {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it joins the same columns by the same OTs as we do"), "{error}");
    }
}

#[test]
fn payload_is_the_senders_and_fits() {
    let (column, layout) = (Column::new(&ids(0..5)), PayloadLayout::new([TableField::bits(9)]).unwrap());
    for payload in [Some(PayloadTable::zeros(layout.clone(), 4).unwrap()), None] {
        let done = Cluster::new(2, 1).run(|session| {
            let own = payload.as_ref().filter(|_| session.me().0 == 1).map(|table| table as _);
            let options = with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout.clone()]);
            CircuitJoin.run(session, &column.flat(), own, &options).map(drop)
        });
        assert!(done[1].as_ref().unwrap_err().to_string().contains("a row per identifier"));
    }
}

/// Rows of either side in [`with_memory`], some of them dummies at most.
const ROWS: [u64; 2] = [30_000, 26_000];
const DUMMIES: u64 = 800;

fn wide() -> PayloadLayout {
    PayloadLayout::new([TableField::number(8), TableField::bits(128), TableField::number(16)]).unwrap()
}

/// The least memory of a party, less so many bytes.
fn least(less: u64) -> impl Fn(PartyId) -> Option<u64> + Sync {
    move |party| Some(memory(ROWS.map(|rows| rows + DUMMIES), &wide(), party) - less)
}

/// Shares, where own rows lie, shares of what is valid, and bytes sent.
type Joined = (Vec<u8>, Vec<u32>, Vec<u64>, u64);

/// Those of both parties, or what they say.
fn with_memory(
    memory: impl Fn(PartyId) -> Option<u64> + Sync,
    scratch: &Path,
) -> Result<Vec<Joined>, Vec<String>> {
    let columns = [Column::new(&ids(0..30_000)), Column::new(&ids(9_000..35_000))];
    let done = Cluster::new(2, 41).run(|session| {
        let me = session.me().index();
        let mut payload = PayloadTable::zeros(wide(), ROWS[1])?;
        (0..payload.rows()).for_each(|row| payload.set(row, 1, u128::from(row) << 60));
        let options = MatchOptions {
            memory: memory(session.me()),
            scratch: Some(scratch.to_path_buf()),
            dummies: Some(Dummies::usual(&base::Seed::from_bytes([me as u8 + 1; 32]))),
            ..MatchOptions::default()
        };
        let options = with_layouts(&options, [PayloadLayout::default(), wide()]);
        let own = (me == 1).then_some(&payload as _);
        let joined = CircuitJoin.run(session, &columns[me].flat(), own, &options)?.shares()?;
        let (mut shares, mut mine) = (Vec::new(), Vec::new());
        for part in joined.parts {
            match part {
                JoinedPart::Shared(table) => shares.extend_from_slice(table.whole()?.bytes()),
                JoinedPart::Mine(rows) => mine = rows,
                JoinedPart::Theirs => {}
            }
        }
        let ValidEntries::Shared(valid) = joined.valid else { panic!("nobody knows which rows match") };
        Ok((shares, mine, valid, session.traffic().sent("")))
    });
    let errors: Vec<_> = done.iter().filter_map(|d| d.as_ref().err()).map(ToString::to_string).collect();
    done.into_iter().collect::<Result<Vec<_>, _>>().map_err(|_| errors)
}

#[test]
fn what_does_not_fit_lies_on_disk_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let whole = with_memory(|_| None, scratch.path()).unwrap();
    assert!(whole.iter().all(|(shares, ..)| shares.len() > 40 * 30_000));
    assert!(with_memory(least(0), scratch.path()).unwrap() == whole);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files have no name");
    let nowhere = scratch.path().join("nowhere");
    let errors = with_memory(least(0), &nowhere).unwrap_err();
    assert!(
        errors.iter().any(|e| e.contains(" at circuit-psi/") && e.contains("spilling to ")),
        "{errors:?}"
    );
    // Where memory is not short nothing is written.
    assert!(with_memory(|_| Some(1 << 30), &nowhere).unwrap() == whole);
}

/// What cannot be moved to disk is said beforehand, by what it takes; 10 million rows on either side fit in
/// the half of 2 GiB that a match gets.
#[test]
fn what_has_to_be_in_memory_is_named() {
    let errors = with_memory(least(3 << 20), Path::new("/")).unwrap_err();
    assert!(
        errors.iter().any(|e| e.contains("this match needs ") && e.contains("raise `memory` by ")),
        "{errors:?}"
    );
    let layout = PayloadLayout::new(vec![TableField::number(8); 12]).unwrap();
    let of = |rows| [0, 1].map(|party| memory([rows; 2], &layout, PartyId(party)));
    let options = with_layouts(&MatchOptions::default(), [PayloadLayout::default(), layout.clone()]);
    for (few, many) in of(1_000_000).into_iter().zip(of(10_000_000)) {
        assert!(many < 900 << 20 && few < 260 << 20, "{few} {many}");
    }
    for party in [0, 1] {
        assert_eq!(
            CircuitJoin.memory(&[1_000_000; 2], PartyId(party), 1, &options),
            of(1_000_000)[party as usize]
        );
    }
    let [receiver, sender] = of(100_000_000);
    assert!(receiver > 23 * 100_000_000 && sender < 1 << 30, "{receiver} {sender}");
}
