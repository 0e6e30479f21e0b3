//! How two parties begin: greetings that refuse a peer of another kind, base OTs, the garbler's public seeds.

use super::{K, Role};
use base::{Error, PartyId};
use kernels::{Aes128, Block, TweakedHash};
use net::Session;
use ot::{CotReceiver, CotSender};

/// Bytes of a greeting: magic, version, role, k.
pub(super) const HELLO_BYTES: usize = 8;
/// Bytes of the hash's `start` and of the seed of the garbler's input labels.
pub(super) const SEEDS_BYTES: usize = 32;
const MAGIC: [u8; 4] = *b"wire";
const VERSION: u8 = 1;

/// What both roles hold of a connection.
pub(super) struct Line<'s> {
    pub session: &'s mut Session,
    pub peer: PartyId,
    pub hash: TweakedHash,
    /// Expands to the active labels of the garbler's inputs.
    pub inputs: Aes128,
    /// Input bits of the garbler so far.
    pub drawn: u64,
}

fn hello(role: Role) -> [u8; HELLO_BYTES] {
    let [m0, m1, m2, m3] = MAGIC;
    [m0, m1, m2, m3, VERSION, u8::from(role == Role::Evaluator), K as u8, 0]
}

/// Both say who they are before anybody does public-key work.
fn greet(session: &mut Session, peer: PartyId, role: Role) -> Result<(), Error> {
    let (mine, mut theirs) = (hello(role), [0; HELLO_BYTES]);
    let mut link = session.link(peer);
    link.exchange(&mine, &mut theirs)?;
    if theirs == hello(role.other()) {
        return Ok(());
    }
    Err(if theirs == mine {
        link.blame("both parties took the same role; one must garble and the other evaluate")
    } else {
        link.malformed("a greeting of another protocol or version; both parties run the same release")
    })
}

fn line(session: &mut Session, peer: PartyId, seeds: [u8; SEEDS_BYTES]) -> Line<'_> {
    let half = |at: usize| Block::from_bytes(std::array::from_fn(|i| seeds[at + i]));
    let (hash, inputs) = (TweakedHash::new(half(0)), Aes128::new(half(16)));
    Line { session, peer, hash, inputs, drawn: 0 }
}

fn peer(session: &Session) -> Result<PartyId, Error> {
    crate::check_pair(session)?;
    Ok(session.me().other())
}

/// The garbler's side: a line, its OTs and a fresh Delta.
pub(super) fn garbler(session: &mut Session) -> Result<(Line<'_>, CotSender, Block), Error> {
    let peer = peer(session)?;
    let (ot, delta, seeds) = session.step("wires-setup", |s| {
        greet(s, peer, Role::Garbler)?;
        let delta = ot::fresh_delta(&mut s.fork_seed("Delta").into_rng());
        let ot = CotSender::new(s, peer, K, delta)?;
        let seeds: [u8; SEEDS_BYTES] = s.fork_seed("hash start and input labels").into_rng().bytes();
        s.link(peer).send(&seeds)?;
        s.link(peer).flush()?;
        Ok((ot, delta, seeds))
    })?;
    Ok((line(session, peer, seeds), ot, delta))
}

/// The evaluator's side.
pub(super) fn evaluator(session: &mut Session) -> Result<(Line<'_>, CotReceiver), Error> {
    let peer = peer(session)?;
    let (ot, seeds) = session.step("wires-setup", |s| {
        greet(s, peer, Role::Evaluator)?;
        let ot = CotReceiver::new(s, peer, K)?;
        Ok((ot, s.link(peer).recv_array::<SEEDS_BYTES>()?))
    })?;
    Ok((line(session, peer, seeds), ot))
}
