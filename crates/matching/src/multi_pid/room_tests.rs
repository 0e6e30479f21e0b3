//! What lies in memory and what on disk changes no byte, and is read a few times.

use super::*;
use base::Seed;
use net::cluster::Cluster;

/// Rows of so many names each; an empty one is none.
struct Names(Vec<Vec<String>>, usize);

impl IdentifierSource for Names {
    fn rows(&self) -> u64 {
        self.0.len() as u64
    }

    fn keys(&self) -> usize {
        self.1
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.extend_from_slice(self.0[row as usize][key].as_bytes());
        Ok(())
    }
}

fn names(rows: u64, keys: usize, rng: &mut Rng) -> Names {
    let name = |rng: &mut Rng| match rng.below(4) {
        0 if keys > 1 => String::new(),
        _ => format!("name {}", rng.below(rows * keys as u64)),
    };
    let all: Vec<Vec<String>> = (0..rows).map(|_| (0..keys).map(|_| name(rng)).collect()).collect();
    Names(all, keys)
}

fn run(lists: [&Names; 2], first: Option<u64>, room: &(dyn Fn() -> SpillRoom + Sync)) -> Vec<Done> {
    let done = Cluster::new(2, 7).run(|session| {
        let me = session.me().index();
        let options = MatchOptions {
            repeats: RepeatRule::Replace,
            contaminated: if first.is_some() { ContaminatedRule::Drop } else { ContaminatedRule::Ignore },
            lists: first.filter(|_| me == 0),
            ..MatchOptions::default()
        };
        let rows = PaddedIdentifiers::new(lists[me], None);
        let room = room();
        let input = MatchInput { rows, payload: None, options: &options, room: room.clone() };
        let outcome = MultiId.converse(session, &input)?;
        let disclosed = outcome.disclosed.clone();
        Ok((outcome.spine()?.mine.positions()?, disclosed, room.spilled().read))
    });
    done.into_iter().map(Result::unwrap).collect()
}

/// Positions, what was disclosed, and bytes read.
type Done = (Vec<u32>, MatchDisclosure, u64);

/// Bytes of everything that a party may have on disk once: each of these is read once. What is sorted is
/// there twice, as it came and in its order.
fn once(rows: [u64; 2], keys: [u64; 2], union: u64, me: usize) -> u64 {
    let [n_c, _] = rows;
    let [c, p] = [0, 1].map(|party: usize| rows[party] * keys[party]);
    let own = [c, p][me] * (16 + 8 + 33) + 4 * rows[me];
    own + match me {
        0 => 2 * 16 * (c + p) + 2 * 12 * c.min(p) + 2 * 8 * n_c + 16 * n_c,
        _ => (2 * 16 + 32 + 40) * c + (4 + 8 + 36) * n_c + 2 * 16 * union,
    }
}

#[test]
fn columns_on_disk_change_nothing_and_are_read_a_few_times() {
    let mut rng = Seed::from_bytes([5; 32]).into_rng();
    for (rows, keys, first) in
        [([3000, 2500], [1, 1], None), ([1500, 1200], [3, 2], Some(700)), ([4, 900], [2, 3], None)]
    {
        let lists = [0, 1].map(|party: usize| names(rows[party], keys[party], &mut rng));
        let lists = [&lists[0], &lists[1]];
        let whole = run(lists, first, &|| SpillRoom::new(None, None));
        let spilled = run(lists, first, &SpillRoom::on_disk);
        for (me, (whole, spilled)) in whole.into_iter().zip(spilled).enumerate() {
            assert!(whole.0 == spilled.0, "party {me}: other positions");
            assert_eq!((&whole.1, whole.2), (&spilled.1, 0));
            let most = once(rows, keys.map(|keys| keys as u64), whole.1.sizes.union, me);
            assert!(spilled.2 <= most, "party {me} read {} of {most} bytes", spilled.2);
            assert!(rows[me] < 1000 || 4 * spilled.2 > most, "party {me} read {} of {most}", spilled.2);
        }
    }
}
