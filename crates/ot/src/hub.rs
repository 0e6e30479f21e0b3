//! Fresh base OTs for every worker connection, out of one run of public-key base OTs per pair of parties.
//!
//! The sender's Delta *is* its choice bits in the base OTs, and every connection needs a fresh Delta. So
//! seeds cannot be derived locally from one run of base OTs: that would repeat Delta. Instead the hub is
//! itself an extension, with the roles turned round: the party that will send in the workers' extensions
//! receives in the hub's. Per worker 128 of the hub's random OTs, with a fresh Delta as choice bits, take the
//! place of the worker's base OTs. That costs 2 KiB per worker instead of 4 KiB and about 400 group
//! operations, and no waiting. [`Hubs`] are both directions with every peer: [`crate::setup_all`] of
//! extensions that serve nothing else.
//!
//! Security: composition of random OT with chosen bits; semi-honest like the extension. Worker seeds are
//! independent: distinct tweaks, and a start value derived from the hub's and the worker's number.

use crate::base_ot::{BaseChosen, BasePairs};
use crate::{BASE_OTS, CotReceiver, CotSender, OtReceiver, OtSender, fresh_delta, pair};
use base::{Error, PartyId};
use kernels::Block;
use net::Session;

/// k of the hub's extension: it is short, so the cheapest set-up wins.
pub(crate) const HUB_K: u32 = 1;

/// Start value of a worker's session: public, different for every worker of every hub.
fn worker_start(hub: Block, worker: u64) -> Block {
    let mut hash = blake3::Hasher::new_derive_key("tacit 2026 OT worker start");
    hash.update(&hub.to_bytes()).update(&worker.to_le_bytes());
    let mut bytes = [0; 16];
    hash.finalize_xof().fill(&mut bytes);
    Block::from_bytes(bytes)
}

/// Start value of the extension the other way round between two parties: no worker has this number.
pub(crate) fn reverse_start(start: Block) -> Block {
    worker_start(start, u64::MAX)
}

/// Base OTs of one connection to each of some peers, both directions. They are used up by
/// [`crate::setup_over`].
pub struct Bases {
    pub(crate) of: Vec<(PartyId, BaseChosen, BasePairs)>,
}

/// Hubs with every peer, both directions.
pub struct Hubs(Vec<(PartyId, SenderHub, ReceiverHub)>);

impl Hubs {
    /// One run of base OTs with each of `peers`, which call this too.
    ///
    /// # Errors
    /// Those of the channel and malformed messages.
    pub fn new(session: &mut Session, peers: &[PartyId]) -> Result<Self, Error> {
        let cores = session.step("ot-hub", |session| pair::softspoken_all(session, peers, HUB_K))?;
        let hubs = cores.into_iter().map(|(peer, sender, receiver)| {
            let sends = SenderHub { cot: CotReceiver::over(receiver, peer), workers: 0 };
            (peer, sends, ReceiverHub { cot: CotSender::over(sender, peer), workers: 0 })
        });
        Ok(Self(hubs.collect()))
    }

    /// Base OTs for `workers` more connections to every peer, in order.
    ///
    /// # Errors
    /// As [`SenderHub::fork`].
    pub fn fork(&mut self, session: &mut Session, workers: usize) -> Result<Vec<Bases>, Error> {
        let mut forked: Vec<Bases> = (0..workers).map(|_| Bases { of: Vec::new() }).collect();
        let mut chosen = Vec::with_capacity(self.0.len());
        for (peer, sender, _) in &mut self.0 {
            chosen.push(sender.fork(session, workers)?);
            session.link(*peer).flush()?;
        }
        for ((peer, _, receiver), chosen) in self.0.iter_mut().zip(chosen) {
            let pairs = receiver.fork(session, workers)?;
            for ((bases, chosen), pairs) in forked.iter_mut().zip(chosen).zip(pairs) {
                bases.of.push((*peer, chosen, pairs));
            }
        }
        Ok(forked)
    }
}

/// Hub of the party that *sends* in the workers' extensions.
pub struct SenderHub {
    cot: CotReceiver,
    workers: u64,
}

impl SenderHub {
    /// Runs the base OTs with `peer`, which calls [`ReceiverHub::new`].
    ///
    /// # Errors
    /// As [`CotReceiver::new`].
    pub fn new(session: &mut Session, peer: PartyId) -> Result<Self, Error> {
        let cot = session.step("ot-hub", |session| CotReceiver::new(session, peer, HUB_K))?;
        Ok(Self { cot, workers: 0 })
    }

    /// Base OTs for `workers` more connections, in order, each with a fresh Delta whose bit 0 is set.
    ///
    /// # Errors
    /// Those of the channel, and more workers than [`crate::OTS_PER_CALL`] allows.
    pub fn fork(&mut self, session: &mut Session, workers: usize) -> Result<Vec<BaseChosen>, Error> {
        let deltas: Vec<Block> = {
            let mut rng = session.fork_seed("worker Delta").into_rng();
            (0..workers).map(|_| fresh_delta(&mut rng)).collect()
        };
        let choices: Vec<u64> = deltas.iter().flat_map(|d| [d.0 as u64, (d.0 >> 64) as u64]).collect();
        let n = workers.saturating_mul(BASE_OTS);
        let keys = session.step("ot-hub", |session| self.cot.random(session, &choices, n, 1))?;
        let start = self.cot.pads().start();
        let seed = |(keys, choices): (&[Block], Block)| {
            let start = worker_start(start, self.workers);
            self.workers += 1;
            BaseChosen { choices, keys: keys.to_vec(), start }
        };
        Ok(keys.chunks_exact(BASE_OTS).zip(deltas).map(seed).collect())
    }
}

/// Hub of the party that *receives* in the workers' extensions.
pub struct ReceiverHub {
    cot: CotSender,
    workers: u64,
}

impl ReceiverHub {
    /// Runs the base OTs with `peer`, which calls [`SenderHub::new`].
    ///
    /// # Errors
    /// As [`CotSender::new`].
    pub fn new(session: &mut Session, peer: PartyId) -> Result<Self, Error> {
        let delta = fresh_delta(&mut session.fork_seed("hub Delta").into_rng());
        let cot = session.step("ot-hub", |session| CotSender::new(session, peer, HUB_K, delta))?;
        Ok(Self { cot, workers: 0 })
    }

    /// Base OTs for `workers` more connections, in order.
    ///
    /// # Errors
    /// Those of the channel, and more workers than [`crate::OTS_PER_CALL`] allows.
    pub fn fork(&mut self, session: &mut Session, workers: usize) -> Result<Vec<BasePairs>, Error> {
        let n = workers.saturating_mul(BASE_OTS);
        let [zeros, ones] = session.step("ot-hub", |session| self.cot.random(session, n, 1))?;
        let start = self.cot.pads().start();
        let seed = |(zeros, ones): (&[Block], &[Block])| {
            let start = worker_start(start, self.workers);
            self.workers += 1;
            BasePairs { pairs: zeros.iter().zip(ones).map(|(&z, &o)| [z, o]).collect(), start }
        };
        Ok(zeros.chunks_exact(BASE_OTS).zip(ones.chunks_exact(BASE_OTS)).map(seed).collect())
    }
}
