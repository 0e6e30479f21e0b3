//! What parties see: shapes that follow from sizes, sets that are sorted as a whole, nothing twice.

mod common;

use base::{ChannelError, PartyId, Roster, Seed};
use common::{Column, ids};
use matching::{ManyId, MatchOptions, Matcher, group::GroupElement};
use net::{Channel, Session, pair};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What went from one party to another at a step, in order.
type Record = Arc<Mutex<BTreeMap<(usize, usize, String), Vec<u8>>>>;

struct Tap {
    inner: Box<dyn Channel>,
    ends: (usize, usize),
    step: String,
    record: Record,
}

impl Channel for Tap {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let key = (self.ends.0, self.ends.1, self.step.clone());
        self.record.lock().unwrap().entry(key).or_default().extend_from_slice(bytes);
        self.inner.send(bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn window(&self) -> usize {
        self.inner.window()
    }

    fn at_step(&mut self, step: &str) {
        step.clone_into(&mut self.step);
        self.inner.at_step(step);
    }
}

/// All that was said in an honest run.
fn transcript(lists: &[Vec<String>], seed: u8) -> BTreeMap<(usize, usize, String), Vec<u8>> {
    let (n, record) = (lists.len(), Record::default());
    let roster = Roster::new((0..n).map(|i| format!("p{i}")));
    let mut ends: Vec<Vec<(PartyId, Box<dyn Channel>)>> = (0..n).map(|_| Vec::new()).collect();
    for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
        let (left, right) = pair(Duration::from_secs(30));
        for (me, peer, inner) in [(a, b, left), (b, a, right)] {
            let tap = Tap { inner, ends: (me, peer), step: String::new(), record: record.clone() };
            ends[me].push((PartyId(peer as u8), Box::new(tap)));
        }
    }
    std::thread::scope(|scope| {
        for (me, channels) in ends.into_iter().enumerate() {
            let seed = Seed::from_bytes([seed; 32]).fork(&me.to_string());
            let mut session = Session::new(PartyId(me as u8), roster.clone(), channels, seed);
            scope.spawn(move || {
                let options = MatchOptions { threads: 1, ..MatchOptions::default() };
                ManyId.run(&mut session, &Column::new(&lists[me]).flat(), None, &options).unwrap();
                session.finish().unwrap();
            });
        }
    });
    std::mem::take(&mut *record.lock().unwrap())
}

fn elements(bytes: &[u8]) -> Vec<GroupElement> {
    bytes.as_chunks().0.to_vec()
}

#[test]
fn shapes_follow_from_sizes_and_not_from_who_shares_what() {
    // Sizes 30, 30, 30 and a union of 60: shared by neighbours, by one pair, by all three.
    let cases = [
        [ids(0..30), ids(15..45), ids(30..60)],
        [ids(0..30), ids(0..30), ids(30..60)],
        [ids(0..30), [ids(0..15), ids(30..45)].concat(), [ids(0..15), ids(45..60)].concat()],
    ];
    let shapes = cases.map(|lists| {
        let said = transcript(&lists, 1).into_iter();
        said.map(|(at, bytes)| (at, bytes.len())).collect::<BTreeMap<_, _>>()
    });
    assert!(shapes.iter().all(|shape| *shape == shapes[0]));
    // As somebody makes it up who knows the sizes: e in full to party 0, the union from party to party, a
    // byte each.
    let of = |from: usize, to: usize, step: &str| shapes[0][&(from, to, format!("many/{step}"))];
    assert_eq!((of(1, 0, "count"), of(1, 0, "e"), of(2, 0, "e")), (24, 30 * 32, 30 * 32));
    assert_eq!(
        (of(0, 1, "ring"), of(0, 1, "union"), of(1, 2, "union")),
        (4 * 30 * 32, 8 + 1 + 60 * 32, 1 + 60 * 32)
    );
    assert_eq!((of(0, 2, "union"), of(2, 0, "union"), of(2, 0, "spine")), (8 + 1, 1, 60 * 12));
}

#[test]
fn sets_are_sorted_as_a_whole_and_no_element_comes_back() {
    let lists = [ids(0..200), ids(100..300), ids(150..350)];
    let said = transcript(&lists, 2);
    let get = |from: usize, to: usize, step: &str| &said[&(from, to, format!("many/{step}"))];
    let mut seen: Vec<GroupElement> = Vec::new();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        // Round 1: u. Round 2: e, then v. Round 3: v.
        let ring = elements(get(from, to, "ring"));
        assert_eq!(ring.len(), 800);
        let (u, e, v) = (&ring[..200], &ring[200..400], &ring[400..600]);
        assert!(e.is_sorted() && !u.is_sorted() && !v.is_sorted());
        seen.extend(ring);
    }
    for from in [1, 2] {
        let e = elements(get(from, 0, "e"));
        assert!(e.is_sorted() && e.len() == 200);
        seen.extend(e);
    }
    // Parties 1 and 2 send the last e of lists 2 and 0, which share 50: equal elements meet at party 0 and
    // nowhere else.
    let distinct: BTreeSet<&GroupElement> = seen.iter().collect();
    assert_eq!(seen.len() - distinct.len(), 50);
    // The union lacks b_2 when party 2 gets it, and so does what came back as v to party 2, from the same
    // party: its own rows are in it. Nothing else meets.
    for (from, at, own) in [(0, 9, 0), (1, 1, 200)] {
        let set = elements(&get(from, from + 1, "union")[at..]);
        assert!(set.is_sorted() && set.len() == 350);
        assert_eq!(set.iter().filter(|element| distinct.contains(element)).count(), own);
    }
}
