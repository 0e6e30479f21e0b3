//! What lies in memory and what on disk changes no byte, and is read a few times.

use super::*;
use crate::identifiers::FlatIdentifiers;
use crate::spill::MEMORY_MIN;
use base::{Rng, Seed};
use net::cluster::Cluster;

/// Random lists of so many parties, out of a pool in which many are shared.
fn lists(parties: usize, most: u64, rng: &mut Rng) -> Vec<(Vec<u8>, Vec<u64>)> {
    let list = |party: usize, rng: &mut Rng| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        // One of the parties may have nothing.
        let share = if party == 1 { rng.below(3) } else { 1 + rng.below(3) };
        let mut names: Vec<u64> = (0..most).filter(|_| rng.below(3) < share).collect();
        rng.shuffle(&mut names);
        for name in names {
            bytes.extend_from_slice(format!("person {name}").as_bytes());
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    };
    (0..parties).map(|party| list(party, rng)).collect()
}

/// Positions of everybody, what everybody disclosed, and bytes read by each.
type Done = (Vec<Vec<u32>>, Vec<MatchDisclosure>, Vec<u64>);

fn run(lists: &[(Vec<u8>, Vec<u64>)], room: &(dyn Fn() -> SpillRoom + Sync)) -> Done {
    let done = Cluster::new(lists.len(), 7).run(|session| {
        let (bytes, ends) = &lists[session.me().index()];
        let (own, options) = (FlatIdentifiers::new(bytes, ends)?, MatchOptions::default());
        let room = room();
        let input = MatchInput {
            rows: PaddedIdentifiers::new(&own, None),
            payload: None,
            options: &options,
            room: room.clone(),
        };
        let outcome = ManyId.converse(session, &input)?;
        let disclosed = outcome.disclosed.clone();
        Ok((outcome.spine()?.mine.positions()?, disclosed, room.spilled().read))
    });
    let done: Vec<_> = done.into_iter().map(Result::unwrap).collect();
    let mut all = Done::default();
    for (positions, disclosed, read) in done {
        all.0.push(positions);
        all.1.push(disclosed);
        all.2.push(read);
    }
    all
}

/// Bytes of everything that a party may have on disk once, where names are of so many bytes: each of these
/// is read once. What is sorted is there twice, as it came and in its order.
fn once(rows: &[u64], union: u64, me: usize, name: u64) -> u64 {
    let n = rows.len();
    let fingerprint = 12 * rows[me];
    let names = (8 + name + 1 + 4) * rows[me];
    let rounds: u64 = (1..n).map(|round| (2 * 32 + 32) * rows[held((me + n - 1) % n, round, n)]).sum();
    let sets = if me == 0 { 34 * rows.iter().sum::<u64>() + 34 * union } else { 0 };
    let turn = 2 * 32 * union + 16 * rows[me];
    fingerprint + names + rounds + sets + turn
}

#[test]
fn columns_on_disk_change_nothing_and_are_read_a_few_times() {
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    for (parties, most) in [(2, 6000), (3, 1500), (4, 900), (5, 700), (3, 3)] {
        let lists = lists(parties, most, &mut rng);
        let whole = run(&lists, &|| SpillRoom::new(None, None));
        let spilled = run(&lists, &SpillRoom::on_disk);
        assert!(spilled.0 == whole.0, "{parties} parties: other positions");
        assert_eq!(spilled.1, whole.1);
        assert!(whole.2.iter().all(|read| *read == 0));
        let sizes = &whole.1[0].sizes;
        for (me, read) in spilled.2.into_iter().enumerate() {
            let most = once(&sizes.rows, sizes.union, me, 12);
            assert!(read <= most, "{parties} parties: {me} read {read} of {most} bytes");
            assert!(sizes.union < 100 || 8 * read > most, "{me} read {read} of {most}: what was counted?");
        }
        // Who shares a name shares its position.
        let mut at = std::collections::BTreeMap::new();
        for ((bytes, ends), positions) in lists.iter().zip(&whole.0) {
            let own = FlatIdentifiers::new(bytes, ends).unwrap();
            let mut name = Vec::new();
            for (row, position) in (0..).zip(positions) {
                own.read(row, 0, &mut name).unwrap();
                assert_eq!(at.entry(name.clone()).or_insert(*position), position);
            }
        }
        assert_eq!(at.len() as u64, sizes.union);
    }
}

#[test]
fn what_cannot_be_on_disk_is_refused_before_anything_is_sent_of_it() {
    let mut rng = Seed::from_bytes([6; 32]).into_rng();
    let lists = lists(3, 60, &mut rng);
    let done = Cluster::new(3, 8).run(|session| {
        let (bytes, ends) = &lists[session.me().index()];
        let own = FlatIdentifiers::new(bytes, ends)?;
        let options = MatchOptions { memory: Some(MEMORY_MIN - 1), ..MatchOptions::default() };
        let refused = ManyId.run(session, &own, None, &options).unwrap_err();
        Ok((refused.to_string(), session.traffic().sent("many/ring")))
    });
    for (text, sent) in done.into_iter().map(Result::unwrap) {
        assert!(text.contains("needs 3 MB of memory and 2 MB are left"), "{text}");
        assert_eq!(sent, 0);
    }
    assert_eq!(memory(&[1_000_000, 5, 5], 0), 16_000_000);
    assert_eq!(memory(&[100, 5, 5], 1), MEMORY_MIN);
    assert!(memory(&[100_000_000; 5], 1) < 2_000_000_000, "sixteen bytes of an own row");
}
