//! The conversation around the steps: base OTs, set-up and extension with one peer.

use crate::base_ot::{self, BaseChosen, BasePairs, PairContext};
use crate::flavours::{BATCH, batches, check_call, check_choices, match_post, none_posted};
use crate::{BASE_OTS, OtReceiver, OtSender, PadHash, softspoken};
use base::{Error, PartyId};
use kernels::Block;
use net::Session;
use std::collections::VecDeque;

/// Base OTs in which this party chooses: they seed an extension in which it sends, with Delta = `choices`.
///
/// # Errors
/// Those of the channel, and malformed elements.
pub(crate) fn choose(session: &mut Session, peer: PartyId, choices: Block) -> Result<BaseChosen, Error> {
    session.step("base-ot", |session| {
        let mut rng = session.fork_seed("base OT receiver").into_rng();
        let context = PairContext::new(session.roster(), peer, session.me());
        let (receiver, message) = base_ot::BaseReceiver::choose(context, choices, &mut rng);
        let mut link = session.link(peer);
        link.send(&message)?;
        let reply = link.recv_array::<{ base_ot::REPLY_BYTES }>()?;
        receiver.finish(&reply).map_err(|what| link.malformed(what))
    })
}

/// Base OTs in which this party sends: they seed an extension in which it receives.
///
/// # Errors
/// Those of the channel, and malformed elements.
pub(crate) fn offer(session: &mut Session, peer: PartyId) -> Result<BasePairs, Error> {
    session.step("base-ot", |session| {
        let mut rng = session.fork_seed("base OT sender").into_rng();
        let context = PairContext::new(session.roster(), session.me(), peer);
        let mut link = session.link(peer);
        let message = link.recv_array::<{ base_ot::CHOICE_BYTES }>()?;
        let done = base_ot::send(&context, &message, &mut rng);
        let (pairs, reply) = done.map_err(|what| link.malformed(what))?;
        link.send(&reply)?;
        Ok(pairs)
    })
}

/// The sending side of SoftSpoken with one peer.
pub struct CotSender {
    core: softspoken::SoftSpokenSender,
    peer: PartyId,
    posted: VecDeque<usize>,
}

impl CotSender {
    pub(crate) fn over(core: softspoken::SoftSpokenSender, peer: PartyId) -> Self {
        Self { core, peer, posted: VecDeque::new() }
    }

    pub(crate) fn into_pads(self) -> PadHash {
        self.core.into_pads()
    }

    /// Base OTs and set-up in one go. `delta` must be fresh for this session; for garbling its bit 0 must
    /// be set ([`crate::fresh_delta`]). The peer calls [`CotReceiver::new`] with the same `k`.
    ///
    /// # Errors
    /// Those of the channel, malformed messages, k out of range.
    pub fn new(session: &mut Session, peer: PartyId, k: u32, delta: Block) -> Result<Self, Error> {
        softspoken::check_k(k)?;
        let base = choose(session, peer, delta)?;
        Self::from_base(session, peer, k, base)
    }

    /// Set-up over base OTs at hand, such as those of [`crate::SenderHub`]. They are used up.
    ///
    /// # Errors
    /// As [`CotSender::new`].
    pub fn from_base(session: &mut Session, peer: PartyId, k: u32, base: BaseChosen) -> Result<Self, Error> {
        softspoken::check_k(k)?;
        session.step("ot-setup", |session| {
            let mut message = vec![0; softspoken::setup_bytes(k)];
            if !message.is_empty() {
                session.link(peer).recv(&mut message)?;
            }
            Ok(Self::over(softspoken::SoftSpokenSender::new(&base, k, &message)?, peer))
        })
    }
}

impl OtSender for CotSender {
    fn peer(&self) -> PartyId {
        self.peer
    }

    fn delta(&self) -> Block {
        self.core.delta()
    }

    fn correlated(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        check_call(n)?;
        none_posted(self.posted.len())?;
        let k = self.core.k();
        let mut message = vec![0; softspoken::extension_bytes(k, n.min(BATCH))];
        let mut link = session.link(self.peer);
        for batch in batches(n) {
            let message = &mut message[..softspoken::extension_bytes(k, batch)];
            link.recv(message)?;
            self.core.absorb(batch, message, out)?;
            link.tally(0, batch as u64);
        }
        Ok(())
    }

    fn post(&mut self, _: &mut Session, n: usize) -> Result<(), Error> {
        check_call(n)?;
        self.posted.push_back(n);
        Ok(())
    }

    fn take(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        match_post(self.posted.pop_front(), n)?;
        let mut message = vec![0; softspoken::random_bytes(self.core.k(), n)];
        let mut link = session.link(self.peer);
        link.recv(&mut message)?;
        self.core.absorb_random(n, &message, out)?;
        link.tally(0, n as u64);
        Ok(())
    }

    fn pads(&mut self) -> &mut PadHash {
        self.core.pads()
    }
}

/// OTs with random choices that were posted and not yet taken.
struct Posted {
    n: usize,
    choices: Vec<u64>,
    t: Vec<Block>,
}

/// The receiving side of SoftSpoken with one peer. It only sends, so it may run ahead of the sender.
pub struct CotReceiver {
    core: softspoken::SoftSpokenReceiver,
    peer: PartyId,
    posted: VecDeque<Posted>,
}

impl CotReceiver {
    pub(crate) fn over(core: softspoken::SoftSpokenReceiver, peer: PartyId) -> Self {
        Self { core, peer, posted: VecDeque::new() }
    }

    pub(crate) fn into_pads(self) -> PadHash {
        self.core.into_pads()
    }

    /// Base OTs and set-up in one go. The peer calls [`CotSender::new`] with the same `k`.
    ///
    /// # Errors
    /// As [`CotSender::new`].
    pub fn new(session: &mut Session, peer: PartyId, k: u32) -> Result<Self, Error> {
        softspoken::check_k(k)?;
        let base = offer(session, peer)?;
        Self::from_base(session, peer, k, base)
    }

    /// Set-up over base OTs at hand, such as those of [`crate::ReceiverHub`]. They are used up.
    ///
    /// # Errors
    /// As [`CotSender::new`].
    pub fn from_base(session: &mut Session, peer: PartyId, k: u32, base: BasePairs) -> Result<Self, Error> {
        session.step("ot-setup", |session| {
            let (core, message) = softspoken::SoftSpokenReceiver::new(base, k)?;
            if !message.is_empty() {
                session.link(peer).send(&message)?;
            }
            Ok(Self::over(core, peer))
        })
    }
}

impl OtReceiver for CotReceiver {
    fn peer(&self) -> PartyId {
        self.peer
    }

    fn correlated(
        &mut self,
        session: &mut Session,
        choices: &[u64],
        n: usize,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        check_call(n)?;
        none_posted(self.posted.len())?;
        check_choices(choices, n)?;
        let mut message = Vec::new();
        let mut link = session.link(self.peer);
        for at in (0..n).step_by(BATCH) {
            let batch = BATCH.min(n - at);
            message.clear();
            self.core.prepare(&choices[at / 64..], batch, out, &mut message)?;
            link.send(&message)?;
            link.tally(0, batch as u64);
        }
        Ok(())
    }

    fn post(&mut self, session: &mut Session, n: usize) -> Result<(), Error> {
        check_call(n)?;
        let (mut choices, mut t, mut message) = (Vec::new(), Vec::with_capacity(n + 127), Vec::new());
        self.core.prepare_random(n, &mut choices, &mut t, &mut message)?;
        let mut link = session.link(self.peer);
        link.send(&message)?;
        link.tally(0, n as u64);
        self.posted.push_back(Posted { n, choices, t });
        Ok(())
    }

    fn take(
        &mut self,
        _: &mut Session,
        n: usize,
        choices: &mut Vec<u64>,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        let posted = self.posted.pop_front();
        match_post(posted.as_ref().map(|p| p.n), n)?;
        if let Some(posted) = posted {
            out.extend_from_slice(&posted.t);
            *choices = posted.choices;
        }
        Ok(())
    }

    fn pads(&mut self) -> &mut PadHash {
        self.core.pads()
    }
}

const _: () = assert!(base_ot::REPLY_BYTES == 32 && base_ot::CHOICE_BYTES == 32 * BASE_OTS);
