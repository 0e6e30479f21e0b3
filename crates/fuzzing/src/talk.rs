//! Conversations with a peer that says anything.
//!
//! A protocol runs once among honest parties, and what each says to each is kept. A *play* is one party of it
//! again, in this thread, under the same seed, whose peers say what they said then, but for the edits that
//! the input names. So a party is as deep in the protocol as the edit lies, with honest state, and no peer
//! has to compute. What the party says goes nowhere.
//!
//! Input: byte 0 names the party; then edits, each a place, an action and its bytes (see [`Edit`]).

use base::{ChannelError, Error, PartyId, Roster, Seed};
use net::{Channel, Session};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

type Work = dyn Fn(&mut Session) -> Result<(), Error> + Send + Sync;

/// What each party said to each, `[from][to]`.
type Said = Vec<Vec<Vec<u8>>>;

/// A protocol between some parties.
pub struct Talk {
    parties: usize,
    work: Box<Work>,
    said: OnceLock<Said>,
}

impl Talk {
    /// The protocol of which `work` is one party's half.
    pub fn new(
        parties: usize,
        work: impl Fn(&mut Session) -> Result<(), Error> + Send + Sync + 'static,
    ) -> Self {
        Self { parties, work: Box::new(work), said: OnceLock::new() }
    }

    fn session(&self, me: usize, channels: Vec<(PartyId, Box<dyn Channel>)>) -> Session {
        let roster = Roster::new((0..self.parties).map(|i| format!("p{i}")));
        let seed = Seed::from_bytes([9; 32]).fork(&me.to_string());
        Session::new(PartyId(me as u8), roster, channels, seed)
    }

    /// What the parties said when all were honest.
    fn said(&self) -> &Said {
        self.said.get_or_init(|| {
            let n = self.parties;
            let mut ends: Vec<Vec<(PartyId, Box<dyn Channel>)>> = (0..n).map(|_| Vec::new()).collect();
            let taps: Vec<Vec<Arc<Mutex<Vec<u8>>>>> =
                (0..n).map(|_| (0..n).map(|_| Arc::default()).collect()).collect();
            for a in 0..n {
                for b in a + 1..n {
                    let (left, right) = net::pair(Duration::from_secs(120));
                    let (of_a, of_b) = (taps[a][b].clone(), taps[b][a].clone());
                    ends[a].push((PartyId(b as u8), Box::new(Tap { inner: left, said: of_a })));
                    ends[b].push((PartyId(a as u8), Box::new(Tap { inner: right, said: of_b })));
                }
            }
            std::thread::scope(|scope| {
                for (me, channels) in ends.into_iter().enumerate() {
                    scope.spawn(move || {
                        let mut session = self.session(me, channels);
                        let done = (self.work)(&mut session).and_then(|()| session.finish());
                        done.unwrap_or_else(|e| panic!("an honest run failed: {e}"));
                    });
                }
            });
            let take = |tap: &Arc<Mutex<Vec<u8>>>| std::mem::take(&mut *tap.lock().expect("nobody panicked"));
            taps.iter().map(|row| row.iter().map(take).collect()).collect()
        })
    }

    /// All that party `me` of two hears when both are honest.
    pub fn heard(&self, me: usize) -> Vec<u8> {
        self.said()[1 - me][me].clone()
    }

    /// Party `me` again, with what its peers said, edited.
    fn again(&self, me: usize, edit: impl FnOnce(&mut [Vec<u8>])) -> Result<(), Error> {
        let said = self.said();
        let mut heard: Vec<Vec<u8>> = said.iter().map(|row| row[me].clone()).collect();
        edit(&mut heard);
        let channels = heard.into_iter().enumerate().filter(|(peer, _)| *peer != me).map(|(peer, bytes)| {
            let script: Box<dyn Channel> = Box::new(Script { bytes, at: 0 });
            (PartyId(peer as u8), script)
        });
        let mut session = self.session(me, channels.collect());
        (self.work)(&mut session)
    }

    /// Plays an input.
    pub fn play(&self, data: &[u8]) {
        let Some((who, edits)) = data.split_first() else { return };
        let me = usize::from(*who) % self.parties;
        let _ = self.again(me, |heard| apply(edits, me, heard));
    }

    /// Plays all parties without an edit: what shows that plays are of the honest protocol.
    ///
    /// # Errors
    /// Of the first party that fails.
    pub fn check(&self) -> Result<(), Error> {
        (0..self.parties).try_for_each(|me| self.again(me, |_| ()))
    }

    /// Inputs to begin with: every party without an edit, and with edits spread over what it hears, so that
    /// some fall into each message.
    pub fn seeds(&self) -> Vec<Vec<u8>> {
        let said = self.said();
        let mut seeds = Vec::new();
        for me in 0..self.parties {
            seeds.push(vec![me as u8]);
            let peers = said.iter().enumerate().filter(|(peer, _)| *peer != me);
            for (k, bytes) in peers.map(|(_, row)| row[me].len() as u64).enumerate() {
                if bytes == 0 {
                    continue;
                }
                for i in 0..SEEDED {
                    let at = (bytes - 1) * i / (SEEDED - 1);
                    let action = [XOR, REPLACE, CUT, REMOVE][i as usize % 4];
                    let mut seed = vec![me as u8, k as u8, action << 5];
                    seed.extend_from_slice(&(at as u32).to_le_bytes()[..3]);
                    seed.push(0xff);
                    seeds.push(seed);
                }
            }
        }
        seeds
    }
}

/// Seeds per peer.
const SEEDED: u64 = 16;

const XOR: u8 = 0;
const REPLACE: u8 = 1;
const CUT: u8 = 2;
const REMOVE: u8 = 3;
const INSERT: u8 = 4;
const FILL: u8 = 5;

/// One change of what a peer says.
struct Edit<'a> {
    /// Which of the peers, counted without the party itself, modulo their number.
    peer: u8,
    /// XOR, REPLACE, CUT (all from here on is missing), REMOVE, INSERT or FILL (with one byte), and so many
    /// bytes.
    action: u8,
    len: usize,
    /// Offset in all that the peer says.
    at: usize,
    bytes: &'a [u8],
}

impl<'a> Edit<'a> {
    /// 6 bytes: peer, action in 3 bits and length - 1 in 5, offset in 3 bytes; then the bytes.
    fn next(data: &mut &'a [u8]) -> Option<Self> {
        let (head, rest) = data.split_first_chunk::<5>()?;
        let (action, len) = (head[1] >> 5, usize::from(head[1] & 31) + 1);
        let at = u32::from_le_bytes([head[2], head[3], head[4], 0]) as usize;
        let (bytes, rest) = rest.split_at(match action {
            CUT | REMOVE => 0,
            FILL => rest.len().min(1),
            _ => rest.len().min(len),
        });
        *data = rest;
        Some(Self { peer: head[0], action, len, at, bytes })
    }
}

fn apply(mut edits: &[u8], me: usize, heard: &mut [Vec<u8>]) {
    let peers: Vec<usize> = (0..heard.len()).filter(|peer| *peer != me).collect();
    while let Some(edit) = Edit::next(&mut edits) {
        let bytes = &mut heard[peers[usize::from(edit.peer) % peers.len()]];
        let at = edit.at % (bytes.len() + 1);
        let end = (at + edit.len).min(bytes.len());
        let places = bytes[at..end].iter_mut();
        match edit.action {
            XOR => places.zip(edit.bytes).for_each(|(place, byte)| *place ^= byte),
            REPLACE => places.zip(edit.bytes).for_each(|(place, byte)| *place = *byte),
            CUT => bytes.truncate(at),
            REMOVE => drop(bytes.drain(at..end)),
            INSERT => drop(bytes.splice(at..at, edit.bytes.iter().copied())),
            _ => places.for_each(|place| *place = edit.bytes.first().copied().unwrap_or(0)),
        }
    }
}

/// A channel that keeps what is sent.
struct Tap {
    inner: Box<dyn Channel>,
    said: Arc<Mutex<Vec<u8>>>,
}

impl Channel for Tap {
    fn send(&mut self, bytes: &[u8]) -> Result<(), ChannelError> {
        self.said.lock().expect("nobody panicked").extend_from_slice(bytes);
        self.inner.send(bytes)
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        self.inner.recv(into)
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        self.inner.finish()
    }

    fn private(&self) -> bool {
        true
    }
}

/// A peer that says these bytes and listens to nothing.
pub struct Script {
    bytes: Vec<u8>,
    at: usize,
}

impl Script {
    /// A peer that says `bytes`, and then leaves.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Channel for Script {
    fn send(&mut self, _: &[u8]) -> Result<(), ChannelError> {
        Ok(())
    }

    fn recv(&mut self, into: &mut [u8]) -> Result<(), ChannelError> {
        let said = self.bytes[self.at..].get(..into.len()).ok_or(ChannelError::Closed)?;
        into.copy_from_slice(said);
        self.at += into.len();
        Ok(())
    }

    fn finish(&mut self) -> Result<(), ChannelError> {
        Ok(())
    }

    fn private(&self) -> bool {
        true
    }
}
