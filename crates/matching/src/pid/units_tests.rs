//! Units in another order than that of their partitions.

use super::{MatchInput, PaddedIdentifiers, Partitioning, UnitOrder, in_order, with_journal};
use crate::identifiers::{FlatIdentifiers, IdentifierSource};
use crate::matcher::MatchOptions;
use crate::spill::SpillRoom;
use base::{Rng, Seed};
use net::cluster::Cluster;

fn backwards(parts: Partitioning) -> Vec<u32> {
    (0..parts.count()).rev().collect()
}

fn scattered(parts: Partitioning) -> Vec<u32> {
    let mut order = in_order(parts);
    Seed::from_bytes([parts.bits() as u8; 32]).into_rng().shuffle(&mut order);
    order
}

fn positions(lists: &[Vec<String>; 2], partitions: u32, order: UnitOrder) -> Vec<Vec<u32>> {
    let options = MatchOptions { threads: 1, partitions, ..MatchOptions::default() };
    let done = Cluster::new(2, 7).run(|session| {
        let list = &lists[session.me().index()];
        let ends: Vec<u64> = list
            .iter()
            .scan(0, |end, name| {
                *end += name.len() as u64;
                Some(*end)
            })
            .collect();
        let bytes = list.concat();
        let own = FlatIdentifiers::new(bytes.as_bytes(), &ends)?;
        let rows = PaddedIdentifiers::new(&own as &dyn IdentifierSource, None);
        let input = MatchInput { rows, payload: None, options: &options, room: SpillRoom::new(None, None) };
        with_journal(session, &input, None, None, order)?.spine()?.mine.positions()
    });
    done.into_iter().map(Result::unwrap).collect()
}

#[test]
fn units_may_be_taken_in_any_order() {
    let mut rng: Rng = Seed::from_bytes([4; 32]).into_rng();
    for _ in 0..10 {
        let [x, shared, y] = [80, 50, 80].map(|most| rng.below(most) as u32);
        let name = |i: u32| format!("person {i}");
        let mut lists: [Vec<String>; 2] =
            [(0..x + shared).map(name).collect(), (x..x + shared + y).map(name).collect()];
        lists.iter_mut().for_each(|list| rng.shuffle(list));
        let whole = positions(&lists, 1, in_order);
        for partitions in [2, 4, 8, 16, 32, 64] {
            for order in [in_order as UnitOrder, backwards, scattered] {
                assert!(positions(&lists, partitions, order) == whole, "{partitions}");
            }
        }
    }
}
