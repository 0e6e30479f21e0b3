//! A channel with a tap: records what a party sends at each step, or cuts or changes it there.
#![allow(dead_code, reason = "each test file uses its part")]

use base::{ChannelError, PartyId, Roster, Seed};
use matching::{IdentifierSource, MatchOptions, MatchOutcome, MatchSpine, Matcher, PrivateId};
use net::{Channel, Session, pair};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Messages of one party in order: the step and the bytes.
pub type Record = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// What the tap does to message number `.1` (from 0) sent at the step whose path is `.0`.
pub enum Fault {
    None,
    /// The party is gone instead of sending it.
    Cut(&'static str, usize),
    /// The bytes change.
    Change(&'static str, usize, fn(&mut [u8])),
}

struct Tap {
    inner: Option<Box<dyn Channel>>,
    step: String,
    sent_here: std::collections::HashMap<String, usize>,
    record: Record,
    fault: Fault,
}

impl Tap {
    fn inner(&mut self) -> Result<&mut Box<dyn Channel>, ChannelError> {
        self.inner.as_mut().ok_or(ChannelError::Closed)
    }
}

impl Channel for Tap {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let count = self.sent_here.entry(self.step.clone()).or_default();
        let number = std::mem::replace(count, *count + 1);
        let mut bytes = bytes.to_vec();
        match self.fault {
            Fault::Cut(step, at) if step == self.step && at == number => self.inner = None,
            Fault::Change(step, at, change) if step == self.step && at == number => change(&mut bytes),
            _ => {}
        }
        self.record.lock().unwrap().push((self.step.clone(), bytes.clone()));
        self.inner()?.send(&bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner()?.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner()?.finish()
    }

    fn at_step(&mut self, step: &str) {
        step.clone_into(&mut self.step);
        if let Some(inner) = &mut self.inner {
            inner.at_step(step);
        }
    }
}

/// Two connected sessions named `registry` and `hospitals`, with one tap per party.
pub fn tapped(seed: u8, deadline_ms: u64, faults: [Fault; 2]) -> ([Session; 2], [Record; 2]) {
    let roster = Roster::new(["registry", "hospitals"]);
    let (a, b) = pair(Duration::from_millis(deadline_ms));
    let records: [Record; 2] = Default::default();
    let mut ends =
        [a, b].into_iter().zip(faults).zip(&records).enumerate().map(|(i, ((inner, fault), record))| {
            let (inner, step) = (Some(inner), String::new());
            let tap = Tap { inner, step, sent_here: Default::default(), record: record.clone(), fault };
            let (me, peer) = (PartyId(i as u8), PartyId(1 - i as u8));
            let seed = Seed::from_bytes([seed; 32]).fork(&i.to_string());
            let channel: Box<dyn Channel> = Box::new(tap);
            Session::new(me, roster.clone(), vec![(peer, channel)], seed)
        });
    let sessions = [ends.next().unwrap(), ends.next().unwrap()];
    drop(ends);
    (sessions, records)
}

/// Runs one closure per session, each on its own thread; a party that ends drops its channel.
pub fn run_both<T: Send>(sessions: [Session; 2], work: impl Fn(&mut Session) -> T + Sync) -> [T; 2] {
    let work = &work;
    std::thread::scope(|scope| {
        sessions.map(|mut session| scope.spawn(move || work(&mut session))).map(|t| t.join().unwrap())
    })
}

/// What both parties sent, by step.
pub type Said = [Vec<(String, Vec<u8>)>; 2];

/// One session of Private-ID by both over their folders in `dir`; keys of fresh runs come from `seed`.
pub fn private_id(
    dir: &Path,
    seed: u8,
    columns: [&dyn IdentifierSource; 2],
    faults: [Fault; 2],
    options: &MatchOptions,
) -> ([Result<MatchSpine, String>; 2], Said) {
    let (sessions, records) = tapped(seed, 10_000, faults);
    let done = run_both(sessions, |session| {
        let me = session.me().index();
        let options = MatchOptions { resume: Some(dir.join(format!("party {me}"))), ..options.clone() };
        let done = PrivateId.run(session, columns[me], None, &options);
        done.and_then(MatchOutcome::spine).map_err(|e| e.to_string())
    });
    (done, records.map(|r| std::mem::take(&mut *r.lock().unwrap())))
}
