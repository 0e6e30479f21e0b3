//! Beaver triples from correlated OT between every pair of parties.
//!
//! Functionality: XOR shares of uniformly random bits a, b and of c = a & b.
//!
//! Every party i has random bits a_i and b_i, and c = sum of a_i b_j over all i, j. The terms i = j are
//! local. For every ordered pair (i, j) one correlated OT with random choice v of j is hashed to one bit per
//! message:
//!
//! ```text
//! i: r = H(q), s = H(q) ^ H(q + Delta)            j: w = H(q + v Delta) = r ^ v s
//! j -> i: v ^ a_j         i -> j: s ^ b_i
//! i: r ^ (v ^ a_j) s                              j: w ^ a_j (s ^ b_i)          XOR of both: a_j b_i
//! ```
//! The parties stand in a ring, and each takes its a_i (as v) and b_i (as s) from the two OTs with the next
//! party: no corrections go there. For two parties none are left.
//!
//! Security: semi-honest, any n - 1 corrupted. Towards a peer, v and s are uniform by the OT, and each masks
//! one bit once: a correction is uniform. H is the hash of `kernels` with multi-instance security; up to
//! [`LANES`] OTs share a tweak, and a tweak is used once in each direction of a pair.
//!
//! Cost: per AND and ordered pair one correlated OT, and 2 bits from each party to each peer but the next.

use crate::bits::{self, BitRun, words};
use base::{Error, PartyId};
use kernels::{Block, TweakedHash};
use net::Session;
use net::talk::{PeerExchange, exchange};
use ot::Pair;
use zeroize::Zeroize;

/// OTs that share one tweak.
const LANES: usize = 1 << 10;
/// Tweak field of this module, so that no other use of the session's hash meets it.
const WORKER: u16 = 0x676d;
/// OTs of one post: small enough for the cache.
const POST: usize = 1 << 13;
/// OTs under way with all peers together, 16 bytes each: a long path stays filled, and memory does not grow
/// with peers.
const UNDER_WAY: usize = 1 << 17;

/// Shares of triples not used yet: bit i of each is triple i.
#[derive(Default)]
pub(crate) struct Triples {
    pub a: BitRun,
    pub b: BitRun,
    pub c: BitRun,
    used: usize,
}

impl Triples {
    /// Makes room for more: what was used is wiped.
    fn compact(&mut self) {
        for bits in [&mut self.a, &mut self.b, &mut self.c] {
            bits.keep_from(self.used);
        }
        self.used = 0;
    }

    /// Moves `n` triples out, each once. They are there.
    pub fn take(&mut self, n: usize, into: [&mut Vec<u64>; 3]) {
        for (bits, into) in [&self.a, &self.b, &self.c].into_iter().zip(into) {
            into.resize(words(n), 0);
            bits.read(self.used, n, into);
        }
        self.used += n;
    }
}

/// A hash with its counter of tweaks: one direction of a pair.
struct Tweaks {
    hash: TweakedHash,
    batch: u64,
}

impl Tweaks {
    fn new(start: Block) -> Self {
        Self { hash: TweakedHash::new(start), batch: 0 }
    }

    fn next(&mut self) -> Block {
        self.batch += 1;
        Block::tweak(WORKER, self.batch - 1, 0, 0)
    }

    /// Appends bit 0 of H to `out`, for whole words of inputs.
    fn bits(&mut self, x: &[Block], out: &mut Vec<u64>) {
        for x in x.chunks(LANES) {
            let (tweak, at) = (self.next(), out.len());
            out.resize(at + words(x.len()), 0);
            self.hash.hash_lsbs(tweak, x, &mut out[at..]);
        }
    }

    /// Appends bit 0 of H to `zero`, and its sum with that of the inputs plus `delta` to `sum`.
    fn both(&mut self, delta: Block, x: &[Block], zero: &mut Vec<u64>, sum: &mut Vec<u64>) {
        for x in x.chunks(LANES) {
            let (tweak, at) = (self.next(), zero.len());
            zero.resize(at + words(x.len()), 0);
            sum.resize(at + words(x.len()), 0);
            self.hash.hash_lsbs_both(tweak, delta, x, &mut zero[at..], &mut sum[at..]);
            sum[at..].iter_mut().zip(&zero[at..]).for_each(|(s, z)| *s ^= z);
        }
    }
}

/// One-bit OTs with one peer, both ways: packed, bit i is OT i.
#[derive(Default)]
struct OneBit {
    /// r and s of the direction in which this party sends.
    zero: Vec<u64>,
    sum: Vec<u64>,
    /// v and w of the direction in which it receives.
    choices: Vec<u64>,
    chosen: Vec<u64>,
}

impl Drop for OneBit {
    fn drop(&mut self) {
        for bits in [&mut self.zero, &mut self.sum, &mut self.choices, &mut self.chosen] {
            bits.zeroize();
        }
    }
}

struct Peer {
    pair: Pair,
    outgoing: Tweaks,
    incoming: Tweaks,
    bits: OneBit,
}

impl Peer {
    /// Takes the OTs of one post and hashes them while they are in the cache.
    fn take(&mut self, n: usize, session: &mut Session, blocks: &mut Vec<Block>) -> Result<(), Error> {
        let bits = &mut self.bits;
        blocks.clear();
        self.pair.sender.take(session, n, blocks)?;
        self.outgoing.both(self.pair.sender.delta(), blocks, &mut bits.zero, &mut bits.sum);
        blocks.clear();
        let mut choices = Vec::new();
        self.pair.receiver.take(session, n, &mut choices, blocks)?;
        bits.choices.extend_from_slice(&choices);
        self.incoming.bits(blocks, &mut bits.chosen);
        Ok(())
    }

    fn post(&mut self, n: usize, session: &mut Session) -> Result<(), Error> {
        self.pair.sender.post(session, n)?;
        self.pair.receiver.post(session, n)?;
        session.link(self.pair.peer).flush()
    }
}

/// Makes triples with all peers.
pub(crate) struct Maker {
    /// In order of party.
    peers: Vec<Peer>,
    me: PartyId,
    window: usize,
}

/// The party whose OTs give `me` its own bits.
pub(crate) fn next(me: PartyId, parties: usize) -> PartyId {
    PartyId(((me.index() + 1) % parties) as u8)
}

/// OTs per post and posts under way with each of `peers` peers, on channels of this window. OTs take up to 16
/// bytes of the window.
pub(crate) fn posts(window: usize, peers: usize) -> (usize, usize) {
    let post = (window / 64 / LANES * LANES).clamp(LANES, POST);
    let room = window / (32 * post);
    (post, (UNDER_WAY / POST / peers).min(room).max(2))
}

impl Maker {
    pub fn new(me: PartyId, pairs: Vec<Pair>, window: usize) -> Self {
        let peer = |mut pair: Pair| {
            let outgoing = Tweaks::new(pair.sender.pads().start());
            let incoming = Tweaks::new(pair.receiver.pads().start());
            Peer { pair, outgoing, incoming, bits: OneBit::default() }
        };
        Self { peers: pairs.into_iter().map(peer).collect(), me, window }
    }

    /// Adds `n` triples to `pool`.
    ///
    /// # Errors
    /// Those of the channels and of the OTs.
    pub fn make(&mut self, n: usize, pool: &mut Triples, session: &mut Session) -> Result<(), Error> {
        self.transfer(n, session)?;
        let (parties, me) = (self.peers.len() + 1, self.me);
        let ring = next(me, parties);
        let own = self.peers.iter().find(|p| p.pair.peer == ring).expect("every party has a next one");
        let (a, b) = (own.bits.choices.clone(), own.bits.sum.clone());
        let mut c: Vec<u64> = a.iter().zip(&b).map(|(a, b)| a & b).collect();
        let mut talks = self.corrections(n, &a, &b);
        exchange(session, self.window / 4, &mut talks)?;
        for (peer, talk) in self.peers.iter_mut().zip(&talks) {
            fold(&peer.bits, &talk.hear, n, &a, &mut c);
        }
        pool.compact();
        for (bits, mut words) in [(&mut pool.a, a), (&mut pool.b, b), (&mut pool.c, c)] {
            bits.push(&words, n, 0);
            words.zeroize();
        }
        Ok(())
    }

    /// `n` one-bit OTs in both directions with every peer.
    fn transfer(&mut self, n: usize, session: &mut Session) -> Result<(), Error> {
        let (post, ahead) = posts(self.window, self.peers.len());
        let sizes: Vec<usize> = (0..n).step_by(post).map(|at| post.min(n - at)).collect();
        for peer in &mut self.peers {
            for bits in
                [&mut peer.bits.zero, &mut peer.bits.sum, &mut peer.bits.choices, &mut peer.bits.chosen]
            {
                bits.clear();
            }
        }
        for &size in sizes.iter().take(ahead) {
            self.peers.iter_mut().try_for_each(|peer| peer.post(size, session))?;
        }
        let mut blocks = Vec::with_capacity(post + 127);
        for (i, &size) in sizes.iter().enumerate() {
            self.peers.iter_mut().try_for_each(|peer| peer.take(size, session, &mut blocks))?;
            if let Some(&size) = sizes.get(i + ahead) {
                self.peers.iter_mut().try_for_each(|peer| peer.post(size, session))?;
            }
        }
        Ok(())
    }

    /// What this party tells every peer, and room for what it hears.
    fn corrections(&self, n: usize, a: &[u64], b: &[u64]) -> Vec<PeerExchange> {
        let parties = self.peers.len() + 1;
        let talk = |peer: &Peer| {
            let mut talk = PeerExchange::new(peer.pair.peer);
            if next(self.me, parties) != talk.peer {
                for (own, drawn) in [(a, &peer.bits.choices), (b, &peer.bits.sum)] {
                    let sum: Vec<u64> = own.iter().zip(drawn).map(|(x, y)| x ^ y).collect();
                    bits::append_bytes(&sum, n, &mut talk.send);
                }
            }
            if next(talk.peer, parties) != self.me {
                talk.hear = vec![0; 2 * bits::bytes(n)];
            }
            talk
        };
        self.peers.iter().map(talk).collect()
    }
}

/// Adds this party's shares of both cross terms with a peer to `c`. `heard` are the peer's corrections, empty
/// where there are none.
fn fold(bits: &OneBit, heard: &[u8], n: usize, a: &[u64], c: &mut [u64]) {
    let [mut choice, mut sum] = [vec![0; words(n)], vec![0; words(n)]];
    if !heard.is_empty() {
        let (choices, sums) = heard.split_at(bits::bytes(n));
        bits::xor_bytes(choices, n, &mut choice);
        bits::xor_bytes(sums, n, &mut sum);
    }
    for (i, c) in c.iter_mut().enumerate() {
        *c ^= bits.zero[i] ^ (choice[i] & bits.sum[i]) ^ bits.chosen[i] ^ (a[i] & sum[i]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::cluster::Cluster;
    use ot::OtKind;

    /// Opened, triples multiply; a and b are balanced, and every party's shares are its own.
    #[test]
    fn triples_multiply_and_look_random() {
        for (parties, n) in [(2, 3 * POST + 77), (3, 1000), (5, 129)] {
            let done = Cluster::new(parties, 3).run(|s| {
                let peers: Vec<PartyId> = s.roster().parties().filter(|&p| p != s.me()).collect();
                let pairs = ot::setup_all(s, &peers, OtKind::default(), n as u64)?;
                let mut maker = Maker::new(s.me(), pairs, base::limits::WINDOW_BYTES);
                let mut pool = Triples::default();
                maker.make(n - 50, &mut pool, s)?;
                pool.take(10, [&mut Vec::new(), &mut Vec::new(), &mut Vec::new()]);
                maker.make(60, &mut pool, s)?;
                let [mut a, mut b, mut c] = [Vec::new(), Vec::new(), Vec::new()];
                pool.take(n, [&mut a, &mut b, &mut c]);
                assert_eq!(pool.used, pool.a.len(), "made exactly");
                Ok([a, b, c])
            });
            let done: Vec<[Vec<u64>; 3]> = done.into_iter().map(Result::unwrap).collect();
            let sum = |which: usize, i: usize| done.iter().fold(0, |sum, shares| sum ^ shares[which][i]);
            assert!((0..words(n)).all(|i| sum(0, i) & sum(1, i) == sum(2, i)), "{parties} parties");
            for shares in done.iter().flatten() {
                let ones: u32 = shares.iter().map(|word| word.count_ones()).sum();
                let off = (f64::from(ones) - n as f64 / 2.0).abs() / (n as f64 / 4.0).sqrt();
                assert!(off < 6.0, "{ones} ones of {n}");
            }
        }
    }

    #[test]
    fn the_ring_spares_every_party_one_peer() {
        for parties in 2..=base::limits::PARTIES {
            let spared = |p: u8| next(PartyId(p), parties);
            let mut all: Vec<u8> = (0..parties as u8).map(|p| spared(p).0).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..parties as u8) && (0..parties as u8).all(|p| spared(p).0 != p));
        }
    }

    #[test]
    fn what_is_under_way_fits_every_window() {
        for window in [64 << 10, 1 << 20, base::limits::WINDOW_BYTES] {
            for peers in 1..base::limits::PARTIES {
                let (post, ahead) = posts(window, peers);
                assert!(post.is_multiple_of(LANES) && ahead >= 2 && 16 * post * ahead <= window / 2);
            }
        }
    }
}
