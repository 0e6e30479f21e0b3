//! A party with modified software sends one element many times, or elements that begin alike, so that a
//! column of the other one lies in one partition: whoever gets them blames it before that partition is read.

use crate::collecting::CollectingJoin;
use crate::dummies::PaddedIdentifiers;
use crate::identifiers::FlatIdentifiers;
use crate::many_pid::ManyId;
use crate::matcher::{MatchInput, MatchOptions, Matcher};
use crate::multi_pid::MultiId;
use crate::payload::{PayloadLayout, PayloadTable, TableField};
use crate::ps3i::InnerJoin;
use crate::spill::SpillRoom;
use base::{ChannelError, PartyId, Roster, Seed};
use net::{Channel, Session, pair};
use std::time::Duration;

/// Elements, or tags, of one message in the order in which they travel.
type Change = dyn FnMut(&mut [u8]) + Send;

/// What the party does at one step.
enum Modified {
    /// It changes each message.
    Says(Box<Change>),
    /// It is gone.
    Gone,
}

struct ModifiedChannel {
    inner: Option<Box<dyn Channel>>,
    here: bool,
    at: &'static str,
    modified: Modified,
}

impl ModifiedChannel {
    fn inner(&mut self) -> Result<&mut Box<dyn Channel>, ChannelError> {
        self.inner.as_mut().ok_or(ChannelError::Closed)
    }
}

impl Channel for ModifiedChannel {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut bytes = bytes.to_vec();
        match &mut self.modified {
            Modified::Says(change) if self.here => change(&mut bytes),
            Modified::Gone if self.here => self.inner = None,
            _ => {}
        }
        self.inner()?.send(&bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner()?.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner()?.finish()
    }

    fn at_step(&mut self, step: &str) {
        self.here = step == self.at;
        if let Some(inner) = &mut self.inner {
            inner.at_step(step);
        }
    }
}

/// Rows of a list that is long.
const LONG: u64 = 20_000;

/// Who deviates and who is looked at, at which step of a protocol among parties of so many rows.
struct Attack<'a> {
    talk: (&'static str, &'static dyn Matcher),
    rows: &'a [u64],
    culprit: usize,
    victim: usize,
    at: &'static str,
}

impl Attack<'_> {
    /// What the victim says, and the bytes that it has read back from disk.
    fn run(&self, modified: Modified) -> (Option<String>, u64) {
        let parties = self.rows.len();
        let roster = Roster::new(["registry", "hospitals", "insurers"].into_iter().take(parties));
        let mut channels: Vec<Vec<(PartyId, Box<dyn Channel>)>> = (0..parties).map(|_| Vec::new()).collect();
        let mut modified = Some(modified);
        for i in 0..parties {
            for j in i + 1..parties {
                let (a, b) = pair(Duration::from_secs(20));
                channels[i].push((PartyId(j as u8), a));
                channels[j].push((PartyId(i as u8), b));
            }
        }
        let own = &mut channels[self.culprit];
        let heard = own.iter().position(|(peer, _)| peer.index() == self.victim).unwrap();
        let (peer, inner) = own.remove(heard);
        let (inner, modified) = (Some(inner), modified.take().unwrap());
        own.insert(heard, (peer, Box::new(ModifiedChannel { inner, here: false, at: self.at, modified })));
        std::thread::scope(|scope| {
            let threads: Vec<_> = channels
                .into_iter()
                .enumerate()
                .map(|(me, channels)| {
                    let seed = Seed::from_bytes([5; 32]).fork(&me.to_string());
                    let mut session = Session::new(PartyId(me as u8), roster.clone(), channels, seed);
                    scope.spawn(move || self.party(&mut session))
                })
                .collect();
            let mut done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            done.swap_remove(self.victim)
        })
    }

    fn party(&self, session: &mut Session) -> (Option<String>, u64) {
        let (me, (name, talk)) = (session.me().index(), self.talk);
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for row in 0..self.rows[me] {
            bytes.extend_from_slice(format!("person {row} of {me}").as_bytes());
            ends.push(bytes.len() as u64);
        }
        let own = FlatIdentifiers::new(&bytes, &ends).unwrap();
        let layout = PayloadLayout::new([TableField::bits(1)]).unwrap();
        let payload = PayloadTable::zeros(layout.clone(), self.rows[me]).unwrap();
        let layouts = [layout.clone(), layout];
        let options = MatchOptions { threads: 1, layouts, ..MatchOptions::default() };
        let rows = PaddedIdentifiers::new(&own, None);
        let room = SpillRoom::on_disk();
        let input = MatchInput { rows, payload: Some(&payload), options: &options, room: room.clone() };
        let done = session.step(name, |s| talk.converse(s, &input));
        (done.err().map(|e| e.to_string()), room.spilled().read)
    }

    /// The victim says this, and has read as much as where the culprit was gone before it said anything: not
    /// the column, of which an undisturbed run reads so many bytes more.
    fn is_refused(&self, change: Box<Change>, says: &str, column: u64) {
        let (gone, before) = self.run(Modified::Gone);
        assert!(gone.is_some());
        let (_, whole) = self.run(Modified::Says(Box::new(|_| ())));
        assert!(whole > before + column, "{} {}: {whole} {before}", self.talk.0, self.at);
        assert_eq!(self.run(Modified::Says(change)), (Some(says.to_owned()), before));
    }
}

const PS3I: (&str, &dyn Matcher) = ("ps3i", &InnerJoin);
const COLLECTING: (&str, &dyn Matcher) = ("collecting", &CollectingJoin);
const MULTI: (&str, &dyn Matcher) = ("multi", &MultiId);
const MANY: (&str, &dyn Matcher) = ("many", &ManyId);

/// Every element is the first one.
fn one_element() -> Box<Change> {
    let mut first = None;
    Box::new(move |bytes| {
        for element in bytes.as_chunks_mut::<32>().0 {
            *element = *first.get_or_insert(*element);
        }
    })
}

/// Elements that ascend, and whose significant bytes, from `zeros` on, are zeros.
fn alike<const ZEROS: usize, const COUNTED: usize>(to: fn(u32) -> [u8; 4]) -> Box<Change> {
    let mut count = 0;
    Box::new(move |bytes| {
        for element in bytes.as_chunks_mut::<32>().0 {
            count += 1;
            element[ZEROS..ZEROS + 4].fill(0);
            element[COUNTED..COUNTED + 4].copy_from_slice(&to(count));
            element[31] &= 0x3f;
        }
    })
}

#[test]
fn one_element_many_times_is_refused_before_it_is_read() {
    let unique = "the peer deviated from the protocol: its identifiers are unique";
    let names = "the peer deviated from the protocol: its names are distinct";
    let long = |culprit: usize| if culprit == 0 { [LONG, 10] } else { [10, LONG] };
    for (culprit, says) in [
        (0, format!("hospitals at ps3i/e with registry: {unique}")),
        (1, format!("registry at ps3i/e with hospitals: {unique}")),
    ] {
        let rows = &long(culprit);
        let attack = Attack { talk: PS3I, rows, culprit, victim: 1 - culprit, at: "ps3i/u" };
        attack.is_refused(one_element(), &says, 30 * LONG);
    }
    for (culprit, says) in [
        (0, format!("hospitals at collecting/shuffle with registry: {names}")),
        (1, format!("registry at collecting/join with hospitals: {names}")),
    ] {
        let rows = &long(culprit);
        let attack = Attack { talk: COLLECTING, rows, culprit, victim: 1 - culprit, at: "collecting/names" };
        attack.is_refused(one_element(), &says, 12 * LONG);
    }
    for (culprit, says) in [
        (0, format!("hospitals at multi/e with registry: {unique}")),
        (1, format!("registry at multi/e with hospitals: {unique}")),
    ] {
        let rows = &long(culprit);
        let attack = Attack { talk: MULTI, rows, culprit, victim: 1 - culprit, at: "multi/u" };
        attack.is_refused(one_element(), &says, 12 * LONG);
    }
    let attack = Attack { talk: MANY, rows: &[10, LONG, 10], culprit: 1, victim: 2, at: "many/ring" };
    attack.is_refused(one_element(), &format!("insurers at many/ring with hospitals: {unique}"), 30 * LONG);
}

#[test]
fn elements_that_begin_alike_are_refused_before_they_are_read() {
    let deviated = "the peer deviated from the protocol";
    let attack =
        Attack { talk: COLLECTING, rows: &[LONG, 10], culprit: 1, victim: 0, at: "collecting/shuffle" };
    let tags: Box<Change> = Box::new(|bytes| {
        bytes.as_chunks_mut::<12>().0.iter_mut().for_each(|tag| tag[10..].fill(0));
    });
    let says = format!("registry at collecting/join with hospitals: {deviated}: its names are distinct");
    attack.is_refused(tags, &says, 12 * LONG);
    // Tags of elements are little endian.
    let attack = Attack { talk: MULTI, rows: &[LONG, 10], culprit: 1, victim: 0, at: "multi/e" };
    let says = format!("registry at multi/e with hospitals: {deviated}: its identifiers are unique");
    attack.is_refused(alike::<8, 4>(u32::to_le_bytes), &says, 12 * LONG);
    // What party 1 has at the end is the list of party 2.
    let attack = Attack { talk: MANY, rows: &[10, 10, LONG], culprit: 1, victim: 0, at: "many/e" };
    let says = format!(
        "registry at many/e with hospitals: {deviated}: its set is spread as products of secret keys are"
    );
    attack.is_refused(alike::<0, 4>(u32::to_be_bytes), &says, 30 * LONG);
}
