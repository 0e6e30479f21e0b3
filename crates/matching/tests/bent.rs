//! One message of every matching protocol, bent: the party that gets it ends with an error or a result, in
//! time, and never by a panic. A fixed sample; which messages are bent, and how, follows from the seed of a
//! protocol.

mod common;
#[path = "common/lists.rs"]
mod lists;

use base::{ChannelError, PartyId, Rng, Roster, Seed};
use common::{Column, ids, with_layouts};
use matching::{
    CircuitJoin, InnerJoin, ManyId, MatchOptions, Matcher, MultiId, PayloadLayout, PayloadTable, PrivateId,
    ShareBackend, TableField,
};
use net::{Channel, Session, pair};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(2);

/// A channel that bends message `at`.
struct Tap {
    inner: Box<dyn Channel>,
    sent: Arc<AtomicU64>,
    at: u64,
    how: u64,
}

fn bend(bytes: &mut Vec<u8>, how: u64) {
    let (end, kind) = (bytes.len(), how % 9);
    let first = end.min(8);
    match kind {
        _ if end == 0 => {}
        0 => bytes.fill(0),
        1 => bytes.fill(0xff),
        2 => bytes[(how / 9) as usize % end] ^= 1 << (how % 8),
        3 => {
            let mut rng = Seed::from_bytes([how as u8; 32]).into_rng();
            bytes.iter_mut().for_each(|byte| *byte = rng.bytes::<1>()[0]);
        }
        4 => bytes[..first].copy_from_slice(&u64::MAX.to_le_bytes()[..first]),
        5 => bytes[..first].copy_from_slice(&(1u64 << 31).to_le_bytes()[..first]),
        6 => bytes.reverse(),
        7 => bytes.truncate(end / 2),
        _ => bytes[end - first..].fill(0),
    }
}

impl Channel for Tap {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut bytes = bytes.to_vec();
        if self.sent.fetch_add(1, Ordering::SeqCst) == self.at {
            bend(&mut bytes, self.how);
        }
        self.inner.send(&bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn at_step(&mut self, step: &str) {
        self.inner.at_step(step);
    }
}

type Work = fn(&mut Session, &Column, usize) -> Result<(), base::Error>;

const MEMORY: Option<u64> = Some(64 << 20);

/// Runs both parties; message `at` of party `culprit` is bent. How many it sent, and what the other one says.
fn run(work: Work, culprit: usize, at: u64, how: u64) -> (u64, Result<(), String>) {
    let roster = Roster::new(["registry", "hospitals"]);
    let (a, b) = pair(DEADLINE);
    let sent = Arc::new(AtomicU64::new(0));
    let lists = [ids(0..30), ids(10..50)].map(|ids| Column::new(&ids));
    let done = std::thread::scope(|scope| {
        let mut parties = [a, b].into_iter().enumerate().map(|(i, inner)| {
            let bent = i == culprit;
            let (sent, at) = if bent { (sent.clone(), at) } else { (Arc::default(), u64::MAX) };
            let tap: Box<dyn Channel> = Box::new(Tap { inner, sent, at, how });
            let (me, peer) = (PartyId(i as u8), PartyId(1 - i as u8));
            let seed = Seed::from_bytes([3; 32]).fork(&i.to_string());
            let mut session = Session::new(me, roster.clone(), vec![(peer, tap)], seed);
            let list = &lists[i];
            scope.spawn(move || work(&mut session, list, i).map_err(|e| e.to_string()))
        });
        let threads = [parties.next().unwrap(), parties.next().unwrap()];
        threads.map(std::thread::ScopedJoinHandle::join)
    });
    let honest = done.into_iter().nth(1 - culprit).unwrap();
    (sent.load(Ordering::SeqCst), honest.expect("the party that gets a bent message does not panic"))
}

/// `runs` runs of a protocol with a message bent in each. In how many it was noticed.
fn sample(work: Work, seed: u8, runs: usize) -> usize {
    let sent = [0, 1].map(|culprit| {
        let (sent, done) = run(work, culprit, u64::MAX, 0);
        done.unwrap_or_else(|e| panic!("without a fault: {e}"));
        sent
    });
    let mut rng: Rng = Seed::from_bytes([seed; 32]).into_rng();
    let mut noticed = 0;
    for _ in 0..runs {
        let culprit = rng.below(2) as usize;
        let (at, how) = (rng.below(sent[culprit]), rng.below(1 << 20));
        let begin = Instant::now();
        let (_, done) = run(work, culprit, at, how);
        let took = begin.elapsed();
        assert!(took < 20 * DEADLINE, "message {at} of party {culprit}, {how}: {took:?}");
        if let Err(error) = done {
            noticed += 1;
            let other = ["registry", "hospitals"][1 - culprit];
            assert!(error.starts_with(&format!("{other} at ")), "an error without its place: {error}");
        }
    }
    noticed
}

fn run_pid(session: &mut Session, list: &Column, _: usize) -> Result<(), base::Error> {
    PrivateId
        .run(session, &list.flat(), None, &MatchOptions { threads: 1, ..MatchOptions::default() })
        .map(|_| ())
}

fn run_multi(session: &mut Session, list: &Column, _: usize) -> Result<(), base::Error> {
    let options = MatchOptions { threads: 1, memory: MEMORY, ..Default::default() };
    MultiId.run(session, &list.flat(), None, &options).map(|_| ())
}

fn run_many(session: &mut Session, list: &Column, _: usize) -> Result<(), base::Error> {
    let options = MatchOptions { threads: 1, memory: MEMORY, ..Default::default() };
    ManyId.run(session, &list.flat(), None, &options).map(|_| ())
}

fn run_circuit(session: &mut Session, list: &Column, me: usize) -> Result<(), base::Error> {
    let layout = PayloadLayout::new([TableField::number(8)])?;
    let payload = PayloadTable::zeros(layout.clone(), 40)?;
    let ot = ot::OtKind::SoftSpoken { k: 8 };
    let options = MatchOptions { ot: Some(ot), memory: Some(1 << 30), ..Default::default() };
    CircuitJoin
        .run(
            session,
            &list.flat(),
            (me == 1).then_some(&payload as _),
            &with_layouts(&options, [PayloadLayout::default(), layout.clone()]),
        )
        .map(|_| ())
}

fn run_ps3i(session: &mut Session, list: &Column, me: usize) -> Result<(), base::Error> {
    let layout = PayloadLayout::new([TableField::number(8), TableField::bits(9)])?;
    let payload = PayloadTable::zeros(layout.clone(), [30, 40][me])?;
    let ot = ot::OtKind::SoftSpoken { k: 8 };
    let backend = ShareBackend::PermuteShare;
    let options = MatchOptions { threads: 1, ot: Some(ot), backend, memory: MEMORY, ..Default::default() };
    InnerJoin
        .run(session, &list.flat(), Some(&payload), &with_layouts(&options, [layout.clone(), layout]))
        .map(|_| ())
}

fn run_collecting(session: &mut Session, _: &Column, _: usize) -> Result<(), base::Error> {
    let mut rng = Seed::from_bytes([1; 32]).into_rng();
    let data = lists::random(&mut rng, [12, 15], [2, 2], 20);
    let options = MatchOptions { slots: 2, degree: 2, memory: MEMORY, ..lists::options() };
    lists::work(session, &data, &options).map(|_| ())
}

#[test]
fn a_bent_message_is_an_error_or_another_result() {
    let protocols: [(Work, usize); 6] = [
        (run_pid, 30),
        (run_multi, 30),
        (run_many, 30),
        (run_ps3i, 12),
        (run_collecting, 10),
        (run_circuit, 8),
    ];
    let noticed: usize = std::thread::scope(|scope| {
        let threads = protocols
            .into_iter()
            .enumerate()
            .map(|(seed, (work, runs))| scope.spawn(move || sample(work, seed as u8 + 7, runs)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    // Masked bits that change, and elements that are other elements, are other inputs.
    assert!(noticed > 30, "{noticed} of 120 were noticed");
}
