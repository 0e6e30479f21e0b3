//! One party of the engine: set-up with all peers, evaluation layer by layer, and outputs to their viewers.

use crate::LANES;
use crate::bits::{self, BitRun, tail_mask, words};
use crate::supply::{Next, Supply};
use crate::triples::{Maker, Triples};
use base::{Error, PartyId, Seed};
use circuits::InputBit;
use circuits::Viewers;
use circuits::layers::{AndGate, LayerInput, Layers, LocalStep, concerns};
use kernels::{Aes128, Block};
use net::Session;
use net::talk::{PeerExchange, exchange};
use ot::OtKind;
use std::time::{Duration, Instant};
use zeroize::Zeroize;

/// Fills in the bits of an input over all lanes, packed: bit i is lane i. Called once per evaluation for
/// every input that the circuit needs and this party knows or shares, in the same order at every party.
pub type Known<'a> = dyn FnMut(&InputBit, &mut [u64]) -> Result<(), Error> + 'a;

/// Time spent so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Base OTs, OT set-up and seeds.
    pub setup: Duration,
    /// Triples: what does not depend on inputs.
    pub offline: Duration,
    /// Openings, local gates and outputs.
    pub online: Duration,
}

/// A stream that this party and one peer know.
struct Common {
    key: Aes128,
    position: u64,
}

/// One party's half of GMW with all its peers, for one session.
pub struct GateParty {
    me: PartyId,
    peers: Vec<PartyId>,
    window: usize,
    /// Absent where no triples are made.
    maker: Option<Maker>,
    supply: Supply,
    pool: Triples,
    commons: Vec<Common>,
    wires: Vec<u64>,
    times: Times,
}

impl GateParty {
    /// Sets up OTs and seeds with all other parties of the session at once. All parties call it with the same
    /// `kind` and `expected_ands`, about how many ANDs (over all lanes) will be evaluated; see
    /// [`GateParty::reserve`].
    ///
    /// # Errors
    /// Those of the channels, malformed messages, fewer than two parties, a back end that is out of range.
    pub fn new(session: &mut Session, kind: OtKind, expected_ands: u64) -> Result<Self, Error> {
        Self::set_up(session, Some((kind, expected_ands)))
    }

    /// As [`GateParty::new`] without OTs, for circuits without ANDs that take a triple and for outputs: seeds
    /// only.
    ///
    /// # Errors
    /// As [`GateParty::new`].
    pub fn without_triples(session: &mut Session) -> Result<Self, Error> {
        Self::set_up(session, None)
    }

    /// For exactly so many ANDs: without OTs where there are none.
    ///
    /// # Errors
    /// As [`GateParty::new`].
    pub fn for_ands(session: &mut Session, kind: OtKind, ands: u64) -> Result<Self, Error> {
        Self::set_up(session, (ands > 0).then_some((kind, ands)))
    }

    fn set_up(session: &mut Session, ots: Option<(OtKind, u64)>) -> Result<Self, Error> {
        let start = Instant::now();
        let me = session.me();
        let peers: Vec<PartyId> = session.roster().parties().filter(|&p| p != me).collect();
        if peers.is_empty() {
            return Err(Error::misuse("gmw needs two parties or more"));
        }
        let window = peers.iter().map(|&p| session.link(p).window()).min().unwrap_or(0);
        let (pairs, commons) = session.step("setup", |session| {
            let pairs =
                ots.map(|(kind, expected)| ot::setup_all(session, &peers, kind, expected)).transpose()?;
            Ok((pairs, agree_seeds(session, &peers)?))
        })?;
        let maker = pairs.map(|pairs| Maker::new(me, pairs, window));
        let times = Times { setup: start.elapsed(), ..Times::default() };
        let (supply, pool, wires) = (Supply::default(), Triples::default(), Vec::new());
        Ok(Self { me, peers, window, maker, supply, pool, commons, wires, times })
    }

    /// This party.
    #[must_use]
    pub fn me(&self) -> PartyId {
        self.me
    }

    /// Time spent so far.
    #[must_use]
    pub fn times(&self) -> Times {
        self.times
    }

    /// Announces `ands` more ANDs, so that triples of several evaluations are made together: batches are
    /// filled up to [`crate::TRIPLES_PER_BATCH`]. Without it every evaluation makes exactly its own. All
    /// parties announce the same; triples announced and never used are a waste and nothing else.
    pub fn reserve(&mut self, ands: u64) {
        self.supply.announce(ands);
    }

    /// Evaluates a circuit on `lanes` lanes at once. Returns this party's XOR share of every root, packed:
    /// bit i is lane i, bits beyond the last lane are clear. The shares are not fresh: a root may be an input
    /// as it is. Reveal them with [`GateParty::reveal`], use them as shared inputs, or [`GateParty::refresh`]
    /// them.
    ///
    /// # Errors
    /// Those of `known` and of the channels, and more than [`LANES`] lanes.
    pub fn eval(
        &mut self,
        layers: &Layers,
        lanes: usize,
        known: &mut Known<'_>,
        session: &mut Session,
    ) -> Result<Vec<Vec<u64>>, Error> {
        if lanes > LANES {
            return Err(Error::limit("lanes of one evaluation", lanes as u64, LANES as u64));
        }
        self.supply.ensure(layers.and_gates() * lanes as u64);
        let wide = words(lanes);
        let mut wires = std::mem::take(&mut self.wires);
        wires.resize(layers.slots() * wide, 0);
        let (mut local, mut gate) = (0, 0);
        for &(locals, gates) in &layers.ends {
            let start = Instant::now();
            let own = &layers.locals[local..locals as usize];
            self.locals(own, &layers.inputs, lanes, &mut wires, known)?;
            self.times.online += start.elapsed();
            self.layer(&layers.gates[gate..gates as usize], lanes, &mut wires, session)?;
            (local, gate) = (locals as usize, gates as usize);
        }
        let roots = layers.roots.iter().map(|&(slot, flip)| {
            let flip = self.flip(flip);
            let mut share: Vec<u64> =
                wires[slot as usize * wide..][..wide].iter().map(|word| word ^ flip).collect();
            if let Some(last) = share.last_mut() {
                *last &= tail_mask(lanes);
            }
            share
        });
        let roots = roots.collect();
        wires.zeroize();
        self.wires = wires;
        Ok(roots)
    }

    /// All ones where party 0 complements.
    fn flip(&self, flip: bool) -> u64 {
        u64::from(flip && self.me.0 == 0).wrapping_neg()
    }

    fn locals(
        &self,
        locals: &[LocalStep],
        inputs: &[LayerInput],
        lanes: usize,
        wires: &mut [u64],
        known: &mut Known<'_>,
    ) -> Result<(), Error> {
        let wide = words(lanes);
        let at = |slot: u32| slot as usize * wide;
        let on = |holder: u8| u64::from(concerns(holder, self.me)).wrapping_neg();
        for local in locals {
            match *local {
                LocalStep::Zero { out } => wires[at(out)..][..wide].fill(0),
                LocalStep::Input { input, out } => {
                    let LayerInput { input, shared } = inputs[input as usize];
                    let place = &mut wires[at(out)..][..wide];
                    place.fill(0);
                    if shared || input.owner.is_none_or(|owner| owner == self.me) {
                        known(&input, place)?;
                    }
                }
                LocalStep::Lift { a, out, holder } => {
                    let mask = on(holder);
                    for i in 0..wide {
                        wires[at(out) + i] = wires[at(a) + i] & mask;
                    }
                }
                LocalStep::Xor { a, b, out } => {
                    for i in 0..wide {
                        wires[at(out) + i] = wires[at(a) + i] ^ wires[at(b) + i];
                    }
                }
                LocalStep::And { a, b, out, flips } => {
                    let [fa, fb] = flips.map(on);
                    for i in 0..wide {
                        wires[at(out) + i] = (wires[at(a) + i] ^ fa) & (wires[at(b) + i] ^ fb);
                    }
                }
            }
        }
        Ok(())
    }

    /// The ANDs of one layer: operands are packed gate after gate, opened under triples, and results put
    /// back.
    fn layer(
        &mut self,
        gates: &[AndGate],
        lanes: usize,
        wires: &mut [u64],
        session: &mut Session,
    ) -> Result<(), Error> {
        let all = gates.len() * lanes;
        if all == 0 {
            return Ok(());
        }
        let start = Instant::now();
        let made = self.times.offline;
        let wide = words(lanes);
        let [mut x, mut y] = [BitRun::default(), BitRun::default()];
        for gate in gates {
            for (bits, slot, flip) in [(&mut x, gate.a, gate.flips[0]), (&mut y, gate.b, gate.flips[1])] {
                let flip = self.flip(flip);
                if lanes == 1 {
                    bits.push_bit(wires[slot as usize] ^ flip);
                } else {
                    bits.push(&wires[slot as usize * wide..][..wide], lanes, flip);
                }
            }
        }
        let z = self.multiply(&x, &y, session)?;
        for (index, gate) in gates.iter().enumerate() {
            if lanes == 1 {
                wires[gate.out as usize] = kernels::bit(z.words(), index);
            } else {
                z.read(index * lanes, lanes, &mut wires[gate.out as usize * wide..][..wide]);
            }
        }
        self.times.online += start.elapsed().saturating_sub(self.times.offline - made);
        Ok(())
    }

    /// Shares of the products of shared bits, in as few openings as the limits allow.
    fn multiply(&mut self, x: &BitRun, y: &BitRun, session: &mut Session) -> Result<BitRun, Error> {
        let mut z = BitRun::default();
        while z.len() < x.len() {
            match self.supply.next((x.len() - z.len()) as u64) {
                Next::Make(n) => {
                    let start = Instant::now();
                    let (Some(maker), pool) = (&mut self.maker, &mut self.pool) else {
                        return Err(Error::misuse("this party was set up without triples"));
                    };
                    session.step("triples", |session| maker.make(n as usize, pool, session))?;
                    self.times.offline += start.elapsed();
                }
                Next::Open(n) => {
                    let from = z.len();
                    session.step("online", |session| self.open(x, y, from, n as usize, &mut z, session))?;
                }
            }
        }
        Ok(z)
    }

    /// Opens d = x ^ a and e = y ^ b for `n` ANDs from `from` on; appends z = c ^ d b ^ e a, and d e at party
    /// 0.
    fn open(
        &mut self,
        x: &BitRun,
        y: &BitRun,
        from: usize,
        n: usize,
        z: &mut BitRun,
        session: &mut Session,
    ) -> Result<(), Error> {
        let [mut a, mut b, mut c] = [Vec::new(), Vec::new(), Vec::new()];
        self.pool.take(n, [&mut a, &mut b, &mut c]);
        let [mut d, mut e] = [vec![0; words(n)], vec![0; words(n)]];
        x.read(from, n, &mut d);
        y.read(from, n, &mut e);
        d.iter_mut().zip(&a).for_each(|(d, a)| *d ^= a);
        e.iter_mut().zip(&b).for_each(|(e, b)| *e ^= b);
        let mut mine = Vec::with_capacity(2 * bits::bytes(n) + 16);
        bits::append_bytes(&d, n, &mut mine);
        bits::append_bytes(&e, n, &mut mine);
        let talk =
            |&peer| PeerExchange { send: mine.clone(), hear: vec![0; mine.len()], ..PeerExchange::new(peer) };
        let mut talks: Vec<PeerExchange> = self.peers.iter().map(talk).collect();
        exchange(session, self.window / 4, &mut talks)?;
        for talk in &talks {
            session.link(talk.peer).tally(n as u64, 0);
            let (theirs_d, theirs_e) = talk.hear.split_at(bits::bytes(n));
            bits::xor_bytes(theirs_d, n, &mut d);
            bits::xor_bytes(theirs_e, n, &mut e);
        }
        let first = u64::from(self.me.0 == 0).wrapping_neg();
        for i in 0..c.len() {
            c[i] ^= (d[i] & (b[i] ^ (e[i] & first))) ^ (e[i] & a[i]);
        }
        z.push(&c, n, 0);
        [a, b, c].iter_mut().for_each(Zeroize::zeroize);
        Ok(())
    }

    /// Adds a fresh sharing of zero to shares of all parties: together they are then uniform among all
    /// sharings of their values. Nothing is sent. All parties refresh shares of the same lengths.
    pub fn refresh(&mut self, shares: &mut [Vec<u64>]) {
        let all: usize = shares.iter().map(Vec::len).sum();
        let mut stream = vec![Block::ZERO; all.div_ceil(2)];
        for common in &mut self.commons {
            common.key.ctr(common.position, &mut stream);
            common.position += stream.len() as u64;
            let mut words = stream.iter().flat_map(|block| [block.0 as u64, (block.0 >> 64) as u64]);
            let places = shares.iter_mut().flatten();
            places.zip(words.by_ref()).for_each(|(share, word)| *share ^= word);
        }
        stream.zeroize();
    }

    /// Reveals values of `lanes` bits to their viewers: share i goes, refreshed, to `viewers[i]`. Returns the
    /// packed bits of those that this party sees, `None` for the others.
    ///
    /// # Errors
    /// Those of the channels, and when shares, lanes and viewers do not fit each other.
    pub fn reveal(
        &mut self,
        mut shares: Vec<Vec<u64>>,
        lanes: usize,
        viewers: &[&Viewers],
        session: &mut Session,
    ) -> Result<Vec<Option<Vec<u64>>>, Error> {
        if shares.len() != viewers.len() || shares.iter().any(|share| share.len() != words(lanes)) {
            return Err(Error::misuse("outputs to reveal with other viewers or lanes than theirs"));
        }
        let start = Instant::now();
        self.refresh(&mut shares);
        let of = |party: PartyId| viewers.iter().filter(move |v| v.has(party)).count();
        let talk = |&peer: &PartyId| {
            let mut sent = BitRun::default();
            let theirs = shares.iter().zip(viewers).filter(|(_, v)| v.has(peer));
            theirs.for_each(|(share, _)| sent.push(share, lanes, 0));
            let mut talk = PeerExchange::new(peer);
            bits::append_bytes(sent.words(), sent.len(), &mut talk.send);
            talk.hear = vec![0; bits::bytes(of(self.me) * lanes)];
            talk
        };
        let mut talks: Vec<PeerExchange> = self.peers.iter().map(talk).collect();
        session.step("reveal", |session| exchange(session, self.window / 4, &mut talks))?;
        let mut seen = BitRun::default();
        let own = shares.iter().zip(viewers).filter(|(_, v)| v.has(self.me));
        own.for_each(|(share, _)| seen.push(share, lanes, 0));
        let (count, mut sum) = (seen.len(), seen.words().to_vec());
        talks.iter().for_each(|talk| bits::xor_bytes(&talk.hear, count, &mut sum));
        seen.clear();
        seen.push(&sum, count, 0);
        let mut at = 0;
        let value = |viewers: &&Viewers| {
            viewers.has(self.me).then(|| {
                let mut value = vec![0; words(lanes)];
                seen.read(at, lanes, &mut value);
                at += lanes;
                value
            })
        };
        let values = viewers.iter().map(value).collect();
        self.times.online += start.elapsed();
        Ok(values)
    }
}

/// A seed with every peer, drawn by the lower party of the pair.
fn agree_seeds(session: &mut Session, peers: &[PartyId]) -> Result<Vec<Common>, Error> {
    session.step("seeds", |session| {
        let me = session.me();
        let mut keys = Vec::with_capacity(peers.len());
        for &peer in peers.iter().filter(|&&peer| peer > me) {
            let seed: Seed = session.fork_seed("zero sharing");
            let key: [u8; 16] = seed.into_rng().bytes();
            let mut link = session.link(peer);
            link.send(&key)?;
            link.flush()?;
            keys.push(key);
        }
        for &peer in peers.iter().filter(|&&peer| peer < me) {
            keys.push(session.link(peer).recv_array()?);
        }
        let common = |key| Common { key: Aes128::new(Block::from_bytes(key)), position: 0 };
        Ok(keys.into_iter().map(common).collect())
    })
}
