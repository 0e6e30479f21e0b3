//! PS3I: what its dummies are, and terms that differ; `tests/suite.rs` has what all protocols do.

mod common;

use base::{PartyId, Seed};
use common::{Column, ids};
use matching::dummies::Dummies;
use matching::{InnerJoin, MatchOptions, Matcher, PayloadLayout, PayloadTable, ShareBackend, TableField};
use net::cluster::Cluster;
use ot::OtKind;
use std::path::Path;

/// What both say when they join ten rows with options of their own.
fn refused(options: impl Fn(usize) -> MatchOptions + Sync) -> Vec<String> {
    let (column, layout) = (Column::new(&ids(0..10)), PayloadLayout::new([TableField::number(8)]).unwrap());
    let done = Cluster::new(2, 1).run(|session| {
        let payload = PayloadTable::zeros(layout.clone(), 10)?;
        let options = MatchOptions {
            threads: 1,
            layouts: [layout.clone(), layout.clone()],
            ..options(session.me().index())
        };
        InnerJoin.run(session, &column.flat(), Some(&payload), &options).map(drop)
    });
    done.into_iter().map(|done| done.unwrap_err().to_string()).collect()
}

#[test]
fn different_terms_end_at_once() {
    let ots = [OtKind::SoftSpoken { k: 2 }, OtKind::Ferret];
    let backends = [ShareBackend::PermuteShare, ShareBackend::Paillier];
    let errors = [
        refused(|me| MatchOptions { ot: Some(ots[me]), ..MatchOptions::default() }),
        refused(|me| MatchOptions { backend: backends[me], ..MatchOptions::default() }),
    ];
    for error in errors.into_iter().flatten() {
        assert!(error.contains("it joins payloads of the layouts that we do"), "{error}");
    }
}

#[test]
fn a_blank_row_is_as_wide_as_others() {
    let wide = |_| MatchOptions { blank: Some(vec![0; 99]), ..MatchOptions::default() };
    assert!(refused(wide)[0].contains("a blank row is as wide as a row of the payload"));
}

#[test]
fn dummies_carry_what_they_are_told_to() {
    let (columns, layout) = (
        [Column::new(&ids(0..50)), Column::new(&ids(30..70))],
        PayloadLayout::new([TableField::number(8)]).unwrap(),
    );
    let done = Cluster::new(2, 9).run(|session| {
        let me = session.me().index();
        let own = columns[me].flat();
        let mut payload = PayloadTable::zeros(layout.clone(), [50, 40][me])?;
        (0..payload.rows()).for_each(|row| payload.set(row, 0, 1));
        let options = MatchOptions {
            threads: 1,
            layouts: [layout.clone(), layout.clone()],
            dummies: Some(Dummies::usual(&Seed::from_bytes([me as u8 + 1; 32]))),
            blank: Some(vec![77, 0, 0, 0, 0, 0, 0, 0]),
            ..MatchOptions::default()
        };
        InnerJoin.run(session, &own, Some(&payload), &options)?.shares()
    });
    let [a, b] = [0, 1].map(|party: usize| done[party].as_ref().unwrap());
    for part in 0..2 {
        let value = |row: u64| {
            let shares = [a, b].map(|joined| match &joined.parts[part] {
                matching::JoinedPart::Shared(table) => {
                    table.get(row, 0, &mut matching::ShareBlock::default()).unwrap()
                }
                _ => panic!("both payloads are shared"),
            });
            TableField::number(8).join(shares[0], shares[1])
        };
        let values: Vec<u128> = (0..a.rows).map(value).collect();
        let of = |what: u128| values.iter().filter(|value| **value == what).count();
        assert_eq!((of(1), of(1) + of(77)), (20, values.len()));
        assert!(of(77) > 0);
    }
}

/// Shares, and what was said, of lists whose columns and payload fit nowhere near `memory`.
fn with_memory(memory: Option<u64>, scratch: &Path) -> Result<Vec<(Vec<u8>, u64)>, Vec<String>> {
    let columns = [Column::new(&ids(0..18_000)), Column::new(&ids(9_000..26_000))];
    let layout = PayloadLayout::new([TableField::number(8), TableField::bits(128), TableField::number(16)]);
    let layout = layout.unwrap();
    let done = Cluster::new(2, 41).run(|session| {
        let me = session.me().index();
        let mut payload = PayloadTable::zeros(layout.clone(), [18_000, 17_000][me])?;
        (0..payload.rows()).for_each(|row| payload.set(row, 1, u128::from(row) << 60));
        let options = MatchOptions {
            threads: 1,
            memory,
            scratch: Some(scratch.to_path_buf()),
            layouts: [layout.clone(), layout.clone()],
            dummies: Some(Dummies::usual(&Seed::from_bytes([me as u8 + 1; 32]))),
            ..MatchOptions::default()
        };
        let joined = InnerJoin.run(session, &columns[me].flat(), Some(&payload), &options)?.shares()?;
        let mut shares = Vec::new();
        for part in &joined.parts {
            let matching::JoinedPart::Shared(table) = part else { panic!("both payloads are shared") };
            shares.extend_from_slice(table.whole()?.bytes());
        }
        Ok((shares, session.traffic().sent("")))
    });
    let errors: Vec<_> = done.iter().filter_map(|d| d.as_ref().err()).map(ToString::to_string).collect();
    done.into_iter().collect::<Result<Vec<_>, _>>().map_err(|_| errors)
}

#[test]
fn what_does_not_fit_lies_on_disk_and_changes_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let whole = with_memory(None, scratch.path()).unwrap();
    assert!(whole.iter().all(|(shares, _)| shares.len() > 2 * 40 * 9_000));
    assert!(with_memory(Some(2 << 20), scratch.path()).unwrap() == whole);
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "files have no name");
    let nowhere = scratch.path().join("nowhere");
    let errors = with_memory(Some(2 << 20), &nowhere).unwrap_err();
    assert!(errors.iter().any(|e| e.contains(" at ps3i") && e.contains("spilling to ")), "{errors:?}");
    assert!(with_memory(None, &nowhere).unwrap() == whole);
}

/// What cannot be moved to disk is said beforehand, by what it takes.
#[test]
fn what_has_to_be_in_memory_is_named() {
    let options = MatchOptions::default();
    let features = InnerJoin.features();
    assert!(features.streams);
    for rows in [1_000_000, 10_000_000] {
        assert_eq!(matching::ps3i::memory([rows, 5], &options), features.bytes_per_row * rows);
        assert_eq!(InnerJoin.memory(&[rows; 2], PartyId(1), 1, &options), features.bytes_per_row * rows);
    }
    assert!(matching::ps3i::memory([10_000_000; 2], &options) < 1 << 30, "half of 2 GiB");
    let paillier = MatchOptions { backend: ShareBackend::Paillier, ..options };
    assert!(matching::ps3i::memory([10_000_000; 2], &paillier) >= 10_000_000 * 54);
}
