//! Both directions of OT with every peer at once, from one run of base OTs per pair of parties.
//!
//! Functionality: for each peer an OT sender with a fresh Delta (bit 0 set) and an OT receiver.
//!
//! Security: semi-honest. In every pair one party *leads* ([`leads`]): it chooses in the base OTs, and so
//! sends first in the extension of its direction. The base OTs of the other direction are 128 random OTs of
//! that extension, in which the follower's fresh Delta are the choice bits: the step of [`crate::SenderHub`].
//!
//! Who learns what: nobody anything beyond the functionality.
//!
//! ```text
//! leader                                follower
//! base OT choices            -->
//!                            <--        base OT reply, trees, correction of 128 OTs (choices: its Delta)
//! trees of the other way     -->
//! ```
//! A party sends its first messages to all peers before it waits for one, then its second, then its third:
//! one and a half round trips however many peers there are. The public-key work of all peers is spread
//! over the cores.
//!
//! Cost: [`crate::ExtensionCost::pair`]; one turn for the leader and one for the follower.

use crate::base_ot::{self, BaseChosen, BasePairs, PairContext};
use crate::ferret;
use crate::hub::{Bases, reverse_start};
use crate::{
    BASE_OTS, CotReceiver, CotSender, FerretReceiver, FerretSender, OtKind, OtReceiver, OtSender,
    fresh_delta, softspoken,
};
use base::{Error, PartyId, Seed};
use kernels::Block;
use net::Session;
use std::num::NonZero;

/// Whether `me` is the one that chooses in the base OTs with `peer`: the lower of two neighbours (indices of
/// different parity), the higher otherwise. Thus every party leads about half of its peers, and nobody does
/// the first step of all pairs alone.
#[must_use]
pub fn leads(me: PartyId, peer: PartyId) -> bool {
    (me < peer) == ((me.0 ^ peer.0) & 1 == 1)
}

/// OTs with one peer, both ways.
pub struct Pair {
    /// The peer.
    pub peer: PartyId,
    /// This party sends.
    pub sender: Box<dyn OtSender>,
    /// This party receives.
    pub receiver: Box<dyn OtReceiver>,
}

/// What [`correlated_all`] gives for one peer: `q` of the direction in which this party sends, `choices`
/// (packed) and `t` of the one in which it receives.
#[derive(Default)]
pub struct Correlated {
    /// q_i, the peer holds q_i + b_i Delta.
    pub q: Vec<Block>,
    /// b_i of this party, `ceil(n / 64)` words, bits from `n` on clear.
    pub choices: Vec<u64>,
    /// q_i + b_i Delta of the peer's q and Delta.
    pub t: Vec<Block>,
}

/// Sets up OTs with each of `peers`, both ways. All parties call it with the same kind, and each party with
/// the peers that call it with this one. `expected` is about how many correlated OTs each direction of a
/// pair will make; both sides of a pair give the same number.
///
/// # Errors
/// Those of the channel, malformed messages, k out of range.
pub fn setup_all(
    session: &mut Session,
    peers: &[PartyId],
    kind: OtKind,
    expected: u64,
) -> Result<Vec<Pair>, Error> {
    let k = kind.k();
    softspoken::check_k(k)?;
    let cores = softspoken_all(session, peers, k)?;
    back_ends(session, cores, kind, expected)
}

/// As [`setup_all`], over base OTs at hand with each of the peers: those of the peers' same fork of
/// [`crate::Hubs`]. Half a round trip.
///
/// # Errors
/// As [`setup_all`].
pub fn setup_over(
    session: &mut Session,
    bases: Bases,
    kind: OtKind,
    expected: u64,
) -> Result<Vec<Pair>, Error> {
    let k = kind.k();
    softspoken::check_k(k)?;
    let cores = session.step("ot-setup", |session| {
        let mut halves = Vec::with_capacity(bases.of.len());
        for (peer, chosen, pairs) in bases.of {
            let (receiver, trees) = softspoken::SoftSpokenReceiver::new(pairs, k)?;
            if !trees.is_empty() {
                session.link(peer).send(&trees)?;
                session.link(peer).flush()?;
            }
            halves.push(Following { peer, receiver, base: chosen });
        }
        graft_all(session, halves, k)
    })?;
    back_ends(session, cores, kind, expected)
}

/// The back ends over extensions set up.
fn back_ends(
    session: &mut Session,
    cores: Vec<Cores>,
    kind: OtKind,
    expected: u64,
) -> Result<Vec<Pair>, Error> {
    let bases = cores.into_iter();
    let bases = bases.map(|(peer, s, r)| (peer, CotSender::over(s, peer), CotReceiver::over(r, peer)));
    match kind {
        OtKind::SoftSpoken { .. } => Ok(bases.map(boxed).collect()),
        OtKind::Ferret => session.step("ot-setup", |session| ferret_all(session, bases.collect(), expected)),
    }
}

fn boxed<S: OtSender + 'static, R: OtReceiver + 'static>((peer, sender, receiver): (PartyId, S, R)) -> Pair {
    Pair { peer, sender: Box::new(sender), receiver: Box::new(receiver) }
}

/// Ferret over an extension at hand with every peer, both ways.
fn ferret_all(
    session: &mut Session,
    mut bases: Vec<(PartyId, CotSender, CotReceiver)>,
    expected: u64,
) -> Result<Vec<Pair>, Error> {
    let mut inputs: Vec<Correlated> = bases.iter().map(|_| Correlated::default()).collect();
    let mut both: Vec<Both> = bases.iter_mut().map(|(peer, s, r)| (*peer, s as _, r as _)).collect();
    make_all(session, &mut both, ferret::inputs(expected), &mut inputs)?;
    let mut pairs = Vec::with_capacity(bases.len());
    for ((peer, sender, receiver), Correlated { q, choices, t }) in bases.into_iter().zip(inputs) {
        let sender = FerretSender::over(session, sender, q, expected)?;
        pairs.push((peer, sender, FerretReceiver::over(receiver, t, &choices, expected)?));
    }
    boot_all(session, &mut pairs)?;
    Ok(pairs.into_iter().map(boxed).collect())
}

/// The part of Ferret's set-up in which the senders speak: as much at once as fits a quarter of the windows.
fn boot_all(
    session: &mut Session,
    pairs: &mut [(PartyId, FerretSender, FerretReceiver)],
) -> Result<(), Error> {
    let ahead = pairs.iter().map(|(peer, s, _)| session.link(*peer).window() / 4 / s.step_bytes().max(1));
    let ahead = ahead.min().unwrap_or(0).max(1);
    while pairs.iter().any(|(_, sender, _)| sender.is_boot()) {
        for (peer, sender, _) in pairs.iter_mut() {
            for _ in 0..ahead {
                if sender.is_boot() {
                    sender.step(session)?;
                }
            }
            session.link(*peer).flush()?;
        }
        for (_, _, receiver) in pairs.iter_mut() {
            for _ in 0..ahead {
                if receiver.is_boot() {
                    receiver.step(session)?;
                }
            }
        }
    }
    Ok(())
}

pub(crate) type Cores = (PartyId, softspoken::SoftSpokenSender, softspoken::SoftSpokenReceiver);

/// Base OTs and set-up of both extensions with every peer.
pub(crate) fn softspoken_all(session: &mut Session, peers: &[PartyId], k: u32) -> Result<Vec<Cores>, Error> {
    let me = session.me();
    let (led, followed): (Vec<PartyId>, Vec<PartyId>) = peers.iter().partition(|&&peer| leads(me, peer));
    let leading = session.step("base-ot", |session| choose_all(session, &led))?;
    let following = session.step("base-ot", |session| reply_all(session, &followed, k))?;
    let mut done = session.step("base-ot", |session| finish_all(session, leading, k))?;
    done.extend(session.step("ot-setup", |session| graft_all(session, following, k))?);
    done.sort_unstable_by_key(|(peer, ..)| peers.iter().position(|p| p == peer));
    Ok(done)
}

/// First step of the leader.
fn choose_all(
    session: &mut Session,
    peers: &[PartyId],
) -> Result<Vec<(PartyId, base_ot::BaseReceiver)>, Error> {
    let me = session.me();
    let tasks = peers.iter().map(|&peer| {
        let context = PairContext::new(session.roster(), peer, me);
        (peer, context, session.fork_seed("base OT receiver"), fresh(session, "Delta"))
    });
    let chosen = on_threads(tasks.collect(), |(peer, context, seed, delta): (_, _, Seed, _)| {
        (peer, base_ot::BaseReceiver::choose(context, delta, &mut seed.into_rng()))
    });
    let mut states = Vec::with_capacity(peers.len());
    for (peer, (state, message)) in chosen {
        session.link(peer).send(&message)?;
        states.push((peer, state));
    }
    flush(session, peers)?;
    Ok(states)
}

fn fresh(session: &mut Session, label: &str) -> Block {
    fresh_delta(&mut session.fork_seed(label).into_rng())
}

fn flush(session: &mut Session, peers: &[PartyId]) -> Result<(), Error> {
    peers.iter().try_for_each(|&peer| session.link(peer).flush())
}

/// The follower between its message and the leader's last.
struct Following {
    peer: PartyId,
    receiver: softspoken::SoftSpokenReceiver,
    base: BaseChosen,
}

/// The follower's step: base OT reply, its trees, and 128 OTs with its own Delta as choices.
fn reply_all(session: &mut Session, peers: &[PartyId], k: u32) -> Result<Vec<Following>, Error> {
    let me = session.me();
    let mut tasks = Vec::with_capacity(peers.len());
    for &peer in peers {
        let message = session.link(peer).recv_array::<{ base_ot::CHOICE_BYTES }>()?;
        let context = PairContext::new(session.roster(), me, peer);
        tasks.push((peer, context, message, session.fork_seed("base OT sender"), fresh(session, "Delta")));
    }
    let replies = on_threads(tasks, |(peer, context, message, seed, delta): (_, _, _, Seed, _)| {
        let base = base_ot::send(&context, &message, &mut seed.into_rng());
        (peer, base.map(|(pairs, reply)| follow(peer, pairs, reply, delta, k)))
    });
    let mut states = Vec::with_capacity(peers.len());
    for (peer, reply) in replies {
        let mut link = session.link(peer);
        let (state, message) = reply.map_err(|what| link.malformed(what))??;
        link.send(&message)?;
        states.push(state);
    }
    flush(session, peers)?;
    Ok(states)
}

fn follow(
    peer: PartyId,
    pairs: BasePairs,
    mut message: Vec<u8>,
    delta: Block,
    k: u32,
) -> Result<(Following, Vec<u8>), Error> {
    let (mut receiver, trees) = softspoken::SoftSpokenReceiver::new(pairs, k)?;
    message.extend(trees);
    let (choices, mut t) = ([delta.0 as u64, (delta.0 >> 64) as u64], Vec::with_capacity(BASE_OTS));
    receiver.prepare(&choices, BASE_OTS, &mut t, &mut message)?;
    let start = reverse_start(receiver.pads().start());
    let [keys] = receiver.pads().expand([&t], 1);
    Ok((Following { peer, receiver, base: BaseChosen { choices: delta, keys, start } }, message))
}

/// Bytes of the follower's message.
pub(crate) fn follow_bytes(k: u32) -> usize {
    base_ot::REPLY_BYTES + softspoken::setup_bytes(k) + softspoken::extension_bytes(k, BASE_OTS)
}

/// Last step of the leader: its own extension, and base OTs for the other one out of it.
fn finish_all(
    session: &mut Session,
    states: Vec<(PartyId, base_ot::BaseReceiver)>,
    k: u32,
) -> Result<Vec<Cores>, Error> {
    let mut tasks = Vec::with_capacity(states.len());
    for (peer, state) in states {
        let mut message = vec![0; follow_bytes(k)];
        session.link(peer).recv(&mut message)?;
        tasks.push((peer, state, message));
    }
    let peers: Vec<PartyId> = tasks.iter().map(|(peer, ..)| *peer).collect();
    let finished = on_threads(tasks, |(peer, state, message)| {
        let (reply, rest) = message.split_at(base_ot::REPLY_BYTES);
        (peer, state.finish(reply).map(|base| lead(&base, rest, k)))
    });
    let mut done = Vec::with_capacity(peers.len());
    for (peer, finished) in finished {
        let mut link = session.link(peer);
        let (sender, receiver, trees) = finished.map_err(|what| link.malformed(what))??;
        if !trees.is_empty() {
            link.send(&trees)?;
        }
        done.push((peer, sender, receiver));
    }
    flush(session, &peers)?;
    Ok(done)
}

fn lead(
    base: &BaseChosen,
    message: &[u8],
    k: u32,
) -> Result<(softspoken::SoftSpokenSender, softspoken::SoftSpokenReceiver, Vec<u8>), Error> {
    let (trees, correction) = message.split_at(softspoken::setup_bytes(k));
    let mut sender = softspoken::SoftSpokenSender::new(base, k, trees)?;
    let mut q = Vec::with_capacity(BASE_OTS);
    sender.absorb(BASE_OTS, correction, &mut q)?;
    let (delta, start) = (sender.delta(), reverse_start(sender.pads().start()));
    let [zeros, ones] = sender.pads().both(&q, delta, 1);
    let pairs = zeros.into_iter().zip(ones).map(|(zero, one)| [zero, one]).collect();
    let (receiver, trees) = softspoken::SoftSpokenReceiver::new(BasePairs { pairs, start }, k)?;
    Ok((sender, receiver, trees))
}

/// The follower's own extension.
fn graft_all(session: &mut Session, states: Vec<Following>, k: u32) -> Result<Vec<Cores>, Error> {
    let mut done = Vec::with_capacity(states.len());
    for Following { peer, receiver, base } in states {
        let mut trees = vec![0; softspoken::setup_bytes(k)];
        if !trees.is_empty() {
            session.link(peer).recv(&mut trees)?;
        }
        done.push((peer, softspoken::SoftSpokenSender::new(&base, k, &trees)?, receiver));
    }
    Ok(done)
}

/// `work` on every item, spread over the cores; results in order.
fn on_threads<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(cores).max(1);
    if share >= items.len() {
        return items.into_iter().map(work).collect();
    }
    let (work, mut items) = (&work, items.into_iter());
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(cores);
        while items.len() > 0 {
            let own: Vec<T> = items.by_ref().take(share).collect();
            threads.push(scope.spawn(move || own.into_iter().map(work).collect::<Vec<R>>()));
        }
        let join = |t: std::thread::ScopedJoinHandle<'_, Vec<R>>| {
            t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect()
    })
}

/// `n` correlated OTs with random choices in both directions with every peer, appended to the entry of
/// `out` for that peer (`choices` by whole words: call it with multiples of 64, or with empty entries).
///
/// Batches fit a quarter of the channels' windows and one is always under way, so that neither side waits
/// for the other's window and a long path stays filled.
///
/// # Errors
/// Those of [`OtSender::take`] and [`OtReceiver::take`], and when `pairs` and `out` differ in length.
pub fn correlated_all(
    session: &mut Session,
    pairs: &mut [Pair],
    n: usize,
    out: &mut [Correlated],
) -> Result<(), Error> {
    let mut both: Vec<Both> = Vec::with_capacity(pairs.len());
    for Pair { peer, sender, receiver } in pairs {
        both.push((*peer, &mut **sender, &mut **receiver));
    }
    make_all(session, &mut both, n, out)
}

/// Both directions with one peer.
type Both<'a> = (PartyId, &'a mut dyn OtSender, &'a mut dyn OtReceiver);

/// OTs of one batch at most.
pub(crate) const BATCH_MAX: usize = 1 << 16;

fn make_all(
    session: &mut Session,
    pairs: &mut [Both],
    n: usize,
    out: &mut [Correlated],
) -> Result<(), Error> {
    crate::flavours::check_call(n)?;
    if pairs.len() != out.len() {
        return Err(Error::misuse(format!("{} peers with {} places", pairs.len(), out.len())));
    }
    let window = pairs.iter().map(|(peer, ..)| session.link(*peer).window()).min().unwrap_or(0);
    // At most 128 bits per OT and direction.
    let batch = (window / 4 / Block::BYTES / 128 * 128).clamp(128, BATCH_MAX);
    let size = |at: usize| batch.min(n - at);
    if n > 0 {
        post_all(session, pairs, size(0))?;
    }
    let mut drawn = Vec::new();
    for at in (0..n).step_by(batch) {
        if at + batch < n {
            post_all(session, pairs, size(at + batch))?;
        }
        for ((_, sender, receiver), out) in pairs.iter_mut().zip(out.iter_mut()) {
            sender.take(session, size(at), &mut out.q)?;
            receiver.take(session, size(at), &mut drawn, &mut out.t)?;
            out.choices.extend_from_slice(&drawn);
        }
    }
    Ok(())
}

fn post_all(session: &mut Session, pairs: &mut [Both], n: usize) -> Result<(), Error> {
    for (peer, sender, receiver) in pairs {
        sender.post(session, n)?;
        receiver.post(session, n)?;
        session.link(*peer).flush()?;
    }
    Ok(())
}
