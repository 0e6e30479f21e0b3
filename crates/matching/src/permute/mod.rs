//! Shares of a permuted table: one party knows the permutation, neither sees where a row goes or what it
//! holds.
//!
//! * **Functionality.** A table of n rows is shared between both parties, or one of them, S, holds it and the
//!   other's share is zeros. R holds a permutation. Both get shares of the permuted table; a corrupted party
//!   may choose its own ([`Switchboard::permute`], [`Switchboard::serve_permutation`]). The same for a map of
//!   slots to rows, in which a row may stand in many slots or in none ([`Switchboard::extend`],
//!   [`Switchboard::serve_extension`]).
//! * **Security.** Semi-honest, one party corrupted: that of the correlated OTs, and a tweakable
//!   correlation-robust hash.
//! * **Who learns what.** S the number of rows and slots, R the same; neither anything else.
//! * **Paper.** Oblivious switching networks of Mohassel and Sadeghian ("How to Hide Circuits in MPC", 2013),
//!   with one correlated OT per switch of the width of a row instead of two random pairs; the network is that
//!   of [`network`]. The extended permutation is theirs: permute, replicate, permute.
//! * **Cost.** A switch costs one random correlated OT, one bit from R and one row from S:
//!   [`network::switches`] of them, about `log2(n) - 1` per row. What both send is a stream; no message waits
//!   for an answer but the first. [`TransferBill`] has the exact figures, tests hold them to the ledger.
//!
//! ```text
//!    R: settings c of all gates                                  S: its entries
//!       OT: bits r, keys q + r Delta                                OT: q, Delta
//!       d = c + r                              ->                d        k0 = q + d Delta, k1 = k0 + Delta
//!       z                                      <-                z, of every gate (`gates`)
//! ```
//! The pad of key k at plane w of a row is `H(k, tweak)` with the number of the batch of gates and w in the
//! tweak, so no pair of tweak and OT repeats however wide a row is. In the end both add and subtract offsets
//! which both know: the shares of either party are then uniform jointly, also their sum, which a network
//! keeps.

mod disk;
pub mod extended;
mod gates;
pub mod network;
mod paged;
mod planes;
mod price;

pub(crate) use disk::{MAP_BYTES, MovedRows};
pub use extended::ExtendedMap;
pub use network::{SwitchSettings, route};
pub use planes::PlaneRows;
pub use price::TransferBill;

use base::{Error, PartyId, limits};
use gates::{GateFeed, SwitchGates};
use kernels::{Block, LANES_MAX, TweakedHash, xor_masked};
use net::Session;
use network::{GateRuns, switches};
use ot::{OtKind, Pair};
use planes::{
    LaneArithmetic, PlaneAddition, PlanePacking, PlaneWord, read_words, with_arithmetic, write_words,
};
use std::ops::Range;
use zeroize::Zeroize;

/// Tweak field of this protocol, so that no other use of a session's hash meets it.
const WORKER: u16 = 0xfffb;
/// Bytes of rows that one batch of gates moves, roughly: its pads and messages stay in a cache.
const BATCH_BYTES: usize = 1 << 16;
/// OTs drawn at a time, at most.
const CHUNK: usize = 1 << 16;

/// How gates are cut: into chunks, whose OTs and settings go together, and batches, whose tweaks do.
#[derive(Clone, Copy, Debug)]
struct Cut {
    gates: u64,
    batch: usize,
    chunk: usize,
}

impl Cut {
    /// For so many gates on rows of this width. What R says ahead of S, the OTs of two chunks and the
    /// settings of one, fits the window at up to 16 bytes per OT: so R always comes to hear what S says, and
    /// neither waits for ever. Tweaks follow the cut, so both parties' windows are the same; joins compare
    /// them with their terms.
    fn new(gates: u64, row_bytes: usize, window: usize) -> Self {
        let ahead = (window / 64).clamp(64, CHUNK);
        let batch = (BATCH_BYTES / row_bytes.max(1)).clamp(64, kernels::LANES_MAX.min(ahead)) / 64 * 64;
        // Rows of nothing need no switch.
        let gates = if row_bytes == 0 { 0 } else { gates };
        Self { gates, batch, chunk: ahead / batch * batch }
    }

    fn chunks(self) -> usize {
        self.gates.div_ceil(self.chunk as u64) as usize
    }

    /// Gates of a chunk, 0 behind the last.
    fn chunk_len(self, chunk: usize) -> usize {
        let start = chunk as u64 * self.chunk as u64;
        self.gates.saturating_sub(start).min(self.chunk as u64) as usize
    }

    /// Gates of each batch of a chunk.
    fn batches(self, chunk: usize) -> impl Iterator<Item = usize> {
        let len = self.chunk_len(chunk);
        (0..len).step_by(self.batch).map(move |at| self.batch.min(len - at))
    }
}

/// OTs of one chunk. Wiped when dropped.
#[derive(Default)]
struct Keys {
    keys: Vec<Block>,
    choices: Vec<u64>,
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.keys.zeroize();
        self.choices.zeroize();
    }
}

/// The OTs with the peer, both ways, and the tweaks used up: what shares of permuted tables are made with,
/// any number of times. Both parties make the same calls in the same order, one the half that serves and the
/// other the half that chooses.
pub struct Switchboard {
    pair: Pair,
    /// The direction in which this party serves, and in which it chooses.
    ways: [Way; 2],
    scratch: Scratch,
}

struct Way {
    hash: TweakedHash,
    /// Batches so far: part of every tweak.
    batches: u64,
}

impl Way {
    fn next(&mut self) -> u64 {
        self.batches += 1;
        self.batches - 1
    }
}

/// Buffers of one batch.
#[derive(Default)]
struct Scratch {
    batch: Vec<SwitchGates>,
    keys: Vec<Block>,
    pads: [Vec<Block>; 2],
    masks: Vec<u64>,
    words: Vec<PlaneWord>,
    message: Vec<u8>,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.keys.zeroize();
        self.pads.iter_mut().for_each(Zeroize::zeroize);
        self.masks.zeroize();
    }
}

/// A half of a network: what it needs of the party that serves or of the one that chooses.
enum Half<'a> {
    Serve,
    Choose(&'a SwitchSettings),
}

impl Switchboard {
    /// OTs both ways with the other party of a session of two. `expected` is about how many gates either
    /// direction will have ([`network::switches`]); both parties say the same.
    ///
    /// # Errors
    /// Those of the channel, malformed messages, and a session of more than two parties.
    pub fn new(session: &mut Session, kind: OtKind, expected: u64) -> Result<Self, Error> {
        if session.roster().len() != 2 {
            return Err(Error::misuse("shares of permuted tables are between two parties"));
        }
        let peer = session.me().other();
        let mut pairs = ot::setup_all(session, &[peer], kind, expected)?;
        let mut pair = pairs.pop().ok_or_else(|| Error::misuse("no OTs with the peer"))?;
        let starts = [pair.sender.pads().start(), pair.receiver.pads().start()];
        let ways = starts.map(|start| Way { hash: TweakedHash::new(start), batches: 0 });
        Ok(Self { pair, ways, scratch: Scratch::default() })
    }

    /// This party's shares of rows that the peer permutes. `rows` are its shares before, or the rows.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn serve_permutation(
        &mut self,
        session: &mut Session,
        mut rows: PlaneRows,
    ) -> Result<PlaneRows, Error> {
        session.step("permute", |session| {
            let (count, wiring) =
                (switches(rows.len() as u64), GateRuns::new(rows.len()).map(SwitchGates::Switches));
            self.run(session, &mut rows, count, wiring, &Half::Serve)?;
            self.freshen(&mut rows, &Half::Serve);
            Ok(rows)
        })
    }

    /// This party's shares of rows that it permutes itself, by settings made by [`route`]: row o of the
    /// result is row `permutation[o]`. `rows` are its shares before; zeros when the peer holds the rows.
    ///
    /// # Errors
    /// Those of the channel, and settings of another number of rows.
    pub fn permute(
        &mut self,
        session: &mut Session,
        mut rows: PlaneRows,
        settings: SwitchSettings,
    ) -> Result<PlaneRows, Error> {
        session.step("permute", |session| {
            let count = switches(rows.len() as u64);
            if settings.len() as u64 != count {
                return Err(Error::misuse("a permutation of another number of rows"));
            }
            let wiring = GateRuns::new(rows.len()).map(SwitchGates::Switches);
            self.run(session, &mut rows, count, wiring, &Half::Choose(&settings))?;
            self.freshen(&mut rows, &Half::Choose(&settings));
            Ok(rows)
        })
    }

    /// All gates of a network, in one direction.
    fn run(
        &mut self,
        session: &mut Session,
        rows: &mut PlaneRows,
        gates: u64,
        wiring: impl Iterator<Item = SwitchGates>,
        half: &Half<'_>,
    ) -> Result<(), Error> {
        let peer = self.pair.peer;
        let cut = Cut::new(gates, rows.row_bytes(), session.link(peer).window());
        let mut feed = GateFeed::new(wiring);
        match half {
            Half::Serve => self.serve(session, rows, cut, &mut feed),
            Half::Choose(settings) => self.choose(session, rows, cut, &mut feed, settings),
        }
    }

    fn serve(
        &mut self,
        session: &mut Session,
        rows: &mut PlaneRows,
        cut: Cut,
        feed: &mut GateFeed<impl Iterator<Item = SwitchGates>>,
    ) -> Result<(), Error> {
        let (peer, delta) = (self.pair.peer, self.pair.sender.delta());
        let sender = &mut self.pair.sender;
        let take = |sender: &mut Box<dyn ot::OtSender>, session: &mut Session, n: usize| {
            let mut ots = Keys { keys: Vec::with_capacity(n), choices: Vec::new() };
            if n > 0 {
                sender.take(session, n, &mut ots.keys)?;
            }
            Ok::<_, Error>(ots)
        };
        for chunk in (0..cut.chunks()).take(2) {
            sender.post(session, cut.chunk_len(chunk))?;
        }
        let mut next = take(sender, session, cut.chunk_len(0))?;
        let mut said = Vec::new();
        for chunk in 0..cut.chunks() {
            let len = cut.chunk_len(chunk);
            let mut ots = std::mem::replace(&mut next, take(sender, session, cut.chunk_len(chunk + 1))?);
            recv_bits(session, peer, len, &mut said)?;
            xor_masked(&mut ots.keys, &said, delta);
            if cut.chunk_len(chunk + 2) > 0 {
                sender.post(session, cut.chunk_len(chunk + 2))?;
            }
            let mut keys = &ots.keys[..];
            for batch in cut.batches(chunk) {
                let (head, tail) = keys.split_at(batch);
                keys = tail;
                feed.fill(batch, &mut self.scratch.batch);
                self.scratch.serve(&mut self.ways[0], rows, head, delta)?;
                session.link(peer).send(&self.scratch.message)?;
            }
            session.report(chunk as u64 * cut.chunk as u64 + len as u64, cut.gates);
        }
        session.link(peer).flush()
    }

    fn choose(
        &mut self,
        session: &mut Session,
        rows: &mut PlaneRows,
        cut: Cut,
        feed: &mut GateFeed<impl Iterator<Item = SwitchGates>>,
        settings: &SwitchSettings,
    ) -> Result<(), Error> {
        let peer = self.pair.peer;
        let receiver = &mut self.pair.receiver;
        let take = |receiver: &mut Box<dyn ot::OtReceiver>, session: &mut Session, n: usize| {
            let mut ots = Keys { keys: Vec::with_capacity(n), choices: Vec::new() };
            if n > 0 {
                receiver.take(session, n, &mut ots.choices, &mut ots.keys)?;
            }
            Ok::<_, Error>(ots)
        };
        for chunk in (0..cut.chunks()).take(2) {
            receiver.post(session, cut.chunk_len(chunk))?;
        }
        let mut next = take(receiver, session, cut.chunk_len(0))?;
        let mut heard = Keys::default();
        for chunk in 0..=cut.chunks() {
            let (len, start) = (cut.chunk_len(chunk), chunk * cut.chunk);
            let ots = std::mem::replace(&mut next, take(receiver, session, cut.chunk_len(chunk + 1))?);
            if len > 0 {
                send_bits(session, peer, len, &ots.choices, |word| settings.word(start / 64 + word))?;
            }
            if cut.chunk_len(chunk + 2) > 0 {
                receiver.post(session, cut.chunk_len(chunk + 2))?;
            }
            let ots = std::mem::replace(&mut heard, ots);
            let Some(chunk) = chunk.checked_sub(1) else { continue };
            let (mut keys, mut start) = (&ots.keys[..], chunk * cut.chunk);
            for batch in cut.batches(chunk) {
                let (head, tail) = keys.split_at(batch);
                keys = tail;
                feed.fill(batch, &mut self.scratch.batch);
                self.scratch.message.resize(batch * rows.row_bytes(), 0);
                session.link(peer).recv(&mut self.scratch.message)?;
                self.scratch.choose(&mut self.ways[1], rows, head, settings, start)?;
                start += batch;
            }
            session.report(start as u64, cut.gates);
        }
        Ok(())
    }

    /// Offsets that both know: S adds them, R subtracts them.
    fn freshen(&mut self, rows: &mut PlaneRows, half: &Half<'_>) {
        let serves = matches!(half, Half::Serve);
        let way = &mut self.ways[usize::from(!serves)];
        let mut offsets = Offsets { hash: way.hash.clone(), first: way.batches, serves, places: Vec::new() };
        let len = rows.len();
        way.batches += len.div_ceil(LANES_MAX) as u64;
        let PlaneRows { packing, planes, paged, .. } = rows;
        match paged {
            // They are added when the rows are next met.
            Some(paged) => paged.offset(offsets),
            None => offsets.apply(packing, 0, planes, 0..len),
        }
    }
}

/// What both add to, or subtract from, all rows of a network in the end.
struct Offsets {
    hash: TweakedHash,
    /// The first number of a batch that is theirs.
    first: u64,
    serves: bool,
    places: Vec<Block>,
}

impl Offsets {
    /// Those of the rows from number `row` on, which are `rows` of `planes`.
    fn apply(
        &mut self,
        packing: &PlanePacking,
        mut row: usize,
        planes: &mut [Vec<PlaneWord>],
        rows: Range<usize>,
    ) {
        let (serves, mut start) = (self.serves, rows.start);
        while start < rows.end {
            let (piece, place) = (row / LANES_MAX, row % LANES_MAX);
            let lanes = (LANES_MAX - place).min(rows.end - start);
            self.places.clear();
            self.places.extend((place..place + lanes).map(|place| Block(place as u128)));
            let mut offsets = vec![Block::ZERO; lanes];
            for (w, (plane, words)) in packing.planes.iter().zip(&mut *planes).enumerate() {
                let tweak = Block::tweak(WORKER, self.first + piece as u64, w as u64, 1);
                self.hash.hash(tweak, &self.places, &mut offsets);
                with_arithmetic!(plane.adding, a => {
                    for (word, offset) in words[start..start + lanes].iter_mut().zip(&offsets) {
                        let offset = gates::word(*offset);
                        *word = if serves { a.add(*word, offset) } else { a.sub(*word, offset) };
                    }
                });
            }
            (row, start) = (row + lanes, start + lanes);
        }
    }
}

impl Scratch {
    /// Room for `lanes` gates of all planes.
    fn resize(&mut self, planes: usize, lanes: usize) {
        self.pads.iter_mut().for_each(|pads| pads.resize(planes * lanes, Block::ZERO));
        self.words.resize(planes * lanes, [0; 2]);
    }

    /// S's half of a batch; its message lies in `message` then.
    fn serve(
        &mut self,
        way: &mut Way,
        rows: &mut PlaneRows,
        keys: &[Block],
        delta: Block,
    ) -> Result<(), Error> {
        let (number, lanes, planes) = (way.next(), keys.len(), rows.packing.planes.clone());
        self.keys.clear();
        self.keys.extend(keys.iter().map(|key| *key ^ delta));
        self.resize(planes.len(), lanes);
        let Self { batch, keys: others, pads: [zero, one], words, message, .. } = self;
        for w in 0..planes.len() {
            let (tweak, of) = (Block::tweak(WORKER, number, w as u64, 0), w * lanes..(w + 1) * lanes);
            way.hash.hash(tweak, keys, &mut zero[of.clone()]);
            way.hash.hash(tweak, others, &mut one[of]);
        }
        rows.each_group(batch, lanes, &mut |wires, gates, at| {
            for (w, (plane, wires)) in planes.iter().zip(wires).enumerate() {
                let of = w * lanes + at.start..w * lanes + at.end;
                let pads = [&zero[of.clone()], &one[of.clone()]];
                with_arithmetic!(plane.adding, a => gates::serve(a, wires, gates, pads, &mut words[of]));
            }
        })?;
        message.clear();
        let each = planes.iter().zip(words.chunks_exact(lanes));
        each.for_each(|(plane, words)| write_words(words, plane.used, message));
        Ok(())
    }

    /// R's half of a batch, after S's message, from gate `start` on.
    fn choose(
        &mut self,
        way: &mut Way,
        rows: &mut PlaneRows,
        keys: &[Block],
        settings: &SwitchSettings,
        start: usize,
    ) -> Result<(), Error> {
        let (number, lanes, planes) = (way.next(), keys.len(), rows.packing.planes.clone());
        self.masks.clear();
        self.masks.extend((start..start + lanes).map(|gate| settings.get(gate).wrapping_neg()));
        self.resize(planes.len(), lanes);
        let Self { batch, masks, pads: [pads, _], words, message, .. } = self;
        let mut message = &message[..];
        for (w, plane) in planes.iter().enumerate() {
            let of = w * lanes..(w + 1) * lanes;
            let (head, tail) = message.split_at(lanes * plane.used);
            message = tail;
            read_words(head, plane.used, &mut words[of.clone()]);
            way.hash.hash(Block::tweak(WORKER, number, w as u64, 0), keys, &mut pads[of]);
        }
        rows.each_group(batch, lanes, &mut |wires, gates, at| {
            for (w, (plane, wires)) in planes.iter().zip(wires).enumerate() {
                let (masks, of) = (&masks[at.clone()], w * lanes + at.start..w * lanes + at.end);
                let (pads, words) = (&pads[of.clone()], &words[of]);
                with_arithmetic!(plane.adding, a => gates::choose(a, wires, gates, masks, pads, words));
            }
        })
    }
}

/// Sends `len` settings, each XORed with the random choice of its OT.
fn send_bits(
    session: &mut Session,
    peer: PartyId,
    len: usize,
    choices: &[u64],
    setting: impl Fn(usize) -> u64,
) -> Result<(), Error> {
    let words = choices.iter().enumerate().map(|(word, random)| random ^ setting(word));
    let message: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    session.link(peer).send(&message[..len.div_ceil(8)])
}

/// Receives `len` bits into whole words.
fn recv_bits(session: &mut Session, peer: PartyId, len: usize, words: &mut Vec<u64>) -> Result<(), Error> {
    let mut message = vec![0; len.div_ceil(64) * 8];
    session.link(peer).recv(&mut message[..len.div_ceil(8)])?;
    words.clear();
    words.extend(message.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
    Ok(())
}

/// Bytes of the window that prices assume.
const WINDOW: usize = limits::WINDOW_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_batches_cover_all_gates_and_what_r_says_ahead_fits_the_window() {
        for window in [64 << 10, 1 << 20, WINDOW] {
            for row_bytes in [1, 8, 64, 1000, 1 << 14] {
                for gates in [0, 1, 63, 70_000, 1 << 20] {
                    let cut = Cut::new(gates, row_bytes, window);
                    assert!(
                        cut.batch.is_multiple_of(64) && cut.chunk.is_multiple_of(cut.batch) && cut.chunk > 0
                    );
                    assert!(cut.batch <= kernels::LANES_MAX && 2 * cut.chunk * 16 + cut.chunk / 8 <= window);
                    let all: usize = (0..cut.chunks()).flat_map(|chunk| cut.batches(chunk)).sum();
                    assert_eq!((all as u64, cut.chunk_len(cut.chunks())), (gates, 0));
                }
            }
        }
        assert_eq!(Cut::new(1000, 0, WINDOW).chunks(), 0, "rows of nothing need no switch");
    }
}
