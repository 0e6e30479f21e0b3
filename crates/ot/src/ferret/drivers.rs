//! The conversation around the steps of Ferret with one peer. Only the sender speaks, unless choices are
//! chosen.

use super::{FerretReceiverCore, FerretSenderCore, TreeSchedule};
use crate::flavours::{check_call, check_choices, match_post, none_posted};
use crate::{CotReceiver, CotSender, OTS_PER_SESSION, OtReceiver, OtSender, PadHash};
use base::{Error, PartyId};
use kernels::{Block, lsbs, xor_masked};
use net::Session;
use std::collections::VecDeque;

/// OTs posted, and OTs given out, of one side.
#[derive(Default)]
struct Posts {
    waiting: VecDeque<usize>,
    total: usize,
    /// OTs posted in this session.
    ever: u64,
}

impl Posts {
    fn post(&mut self, n: usize) -> Result<(), Error> {
        check_call(n)?;
        self.ever += n as u64;
        if self.ever > OTS_PER_SESSION {
            return Err(Error::limit("OTs per session", self.ever, OTS_PER_SESSION));
        }
        self.waiting.push_back(n);
        self.total += n;
        Ok(())
    }

    fn take(&mut self, n: usize) -> Result<(), Error> {
        match_post(self.waiting.pop_front(), n)?;
        self.total -= n;
        Ok(())
    }
}

/// Correlated OTs that both sides need before the first extension.
pub(crate) fn inputs(expected: u64) -> usize {
    TreeSchedule::new(expected).extension().inputs()
}

/// The sending side of Ferret with one peer. It may run ahead of the receiver.
pub struct FerretSender {
    core: FerretSenderCore,
    pads: PadHash,
    peer: PartyId,
    posts: Posts,
    message: Vec<u8>,
}

impl FerretSender {
    /// Set-up over an extension at hand, which is used up. `expected` is about how many OTs will be asked
    /// for; the peer calls [`FerretReceiver::new`] with the same number.
    ///
    /// # Errors
    /// Those of the channel, and a Delta whose bit 0 is not set.
    pub fn new(session: &mut Session, mut base: CotSender, expected: u64) -> Result<Self, Error> {
        session.step("ot-setup", |session| {
            let mut q = Vec::new();
            base.correlated_random(session, inputs(expected), &mut q)?;
            let mut this = Self::over(session, base, q, expected)?;
            while this.core.is_boot() {
                this.step(session)?;
            }
            Ok(this)
        })
    }

    /// From the inputs of the first extension, made by `base`.
    pub(crate) fn over(
        session: &mut Session,
        base: CotSender,
        inputs: Vec<Block>,
        expected: u64,
    ) -> Result<Self, Error> {
        let (delta, peer, pads) = (base.delta(), base.peer(), base.into_pads());
        let roots = session.fork_seed("silent OT roots").into_rng();
        let core = FerretSenderCore::new(pads.start(), expected, delta, inputs, roots)?;
        Ok(Self { core, pads, peer, posts: Posts::default(), message: Vec::new() })
    }

    /// Whether the set-up is not over: call [`FerretSender::step`].
    pub(crate) fn is_boot(&self) -> bool {
        self.core.is_boot()
    }

    /// Bytes of the next step's message.
    pub(crate) fn step_bytes(&self) -> usize {
        self.core.message_bytes()
    }

    pub(crate) fn step(&mut self, session: &mut Session) -> Result<(), Error> {
        self.message.clear();
        self.core.step(&mut self.message);
        session.link(self.peer).send(&self.message)
    }
}

impl OtSender for FerretSender {
    fn peer(&self) -> PartyId {
        self.peer
    }

    fn delta(&self) -> Block {
        self.core.delta()
    }

    /// The receiver says, after all OTs were made, which of its random choices to flip: one bit per OT.
    fn correlated(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        none_posted(self.posts.waiting.len())?;
        let at = out.len();
        self.correlated_random(session, n, out)?;
        if n == 0 {
            return Ok(());
        }
        let mut flips = vec![0; n.div_ceil(64)];
        let mut bytes = vec![0; n.div_ceil(8)];
        session.link(self.peer).recv(&mut bytes)?;
        for (word, bytes) in flips.iter_mut().zip(bytes.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(whole);
        }
        xor_masked(&mut out[at..], &flips, self.core.delta());
        Ok(())
    }

    fn post(&mut self, session: &mut Session, n: usize) -> Result<(), Error> {
        self.posts.post(n)?;
        while self.core.ready() < self.posts.total {
            self.step(session)?;
        }
        Ok(())
    }

    fn take(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        self.posts.take(n)?;
        self.core.take(n, out);
        let mut link = session.link(self.peer);
        link.tally(0, n as u64);
        // The messages are short: they would wait for more while the receiver has nothing to do.
        link.flush()
    }

    fn pads(&mut self) -> &mut PadHash {
        &mut self.pads
    }
}

/// The receiving side of Ferret with one peer.
pub struct FerretReceiver {
    core: FerretReceiverCore,
    pads: PadHash,
    peer: PartyId,
    posts: Posts,
    message: Vec<u8>,
}

impl FerretReceiver {
    /// Set-up over an extension at hand, which is used up. The peer calls [`FerretSender::new`] with the same
    /// `expected`.
    ///
    /// # Errors
    /// Those of the channel.
    pub fn new(session: &mut Session, mut base: CotReceiver, expected: u64) -> Result<Self, Error> {
        session.step("ot-setup", |session| {
            let (mut choices, mut t) = (Vec::new(), Vec::new());
            base.correlated_random(session, inputs(expected), &mut choices, &mut t)?;
            let mut this = Self::over(base, t, &choices, expected)?;
            while this.core.is_boot() {
                this.step(session)?;
            }
            Ok(this)
        })
    }

    /// From the inputs of the first extension, made by `base`.
    pub(crate) fn over(
        base: CotReceiver,
        inputs: Vec<Block>,
        choices: &[u64],
        expected: u64,
    ) -> Result<Self, Error> {
        let (peer, pads) = (base.peer(), base.into_pads());
        let core = FerretReceiverCore::new(pads.start(), expected, inputs, choices)?;
        Ok(Self { core, pads, peer, posts: Posts::default(), message: Vec::new() })
    }

    /// As [`FerretSender::is_boot`].
    pub(crate) fn is_boot(&self) -> bool {
        self.core.is_boot()
    }

    pub(crate) fn step(&mut self, session: &mut Session) -> Result<(), Error> {
        self.message.resize(self.core.message_bytes(), 0);
        session.link(self.peer).recv(&mut self.message)?;
        self.core.step(&self.message)
    }

    /// Appends `n` OTs to `out`.
    fn draw(&mut self, session: &mut Session, n: usize, out: &mut Vec<Block>) -> Result<(), Error> {
        while self.core.ready() < n {
            self.step(session)?;
        }
        self.core.take(n, out);
        session.link(self.peer).tally(0, n as u64);
        Ok(())
    }
}

impl OtReceiver for FerretReceiver {
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
        check_choices(choices, n)?;
        none_posted(self.posts.waiting.len())?;
        let mut flips = Vec::new();
        self.correlated_random(session, n, &mut flips, out)?;
        if n == 0 {
            return Ok(());
        }
        flips.iter_mut().zip(choices).for_each(|(flip, choice)| *flip ^= choice);
        crate::softspoken::clear_from(&mut flips, n);
        let bytes: Vec<u8> = flips.iter().flat_map(|flip| flip.to_le_bytes()).collect();
        session.link(self.peer).send(&bytes[..n.div_ceil(8)])
    }

    fn post(&mut self, _: &mut Session, n: usize) -> Result<(), Error> {
        self.posts.post(n)
    }

    fn take(
        &mut self,
        session: &mut Session,
        n: usize,
        choices: &mut Vec<u64>,
        out: &mut Vec<Block>,
    ) -> Result<(), Error> {
        self.posts.take(n)?;
        let at = out.len();
        self.draw(session, n, out)?;
        choices.clear();
        choices.resize(n.div_ceil(64), 0);
        lsbs(&out[at..], choices);
        Ok(())
    }

    fn pads(&mut self) -> &mut PadHash {
        &mut self.pads
    }
}
