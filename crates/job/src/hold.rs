//! Hold, pay, open: how a release with noise that nobody knows reaches those who see it.
//!
//! **Functionality.** A computation leaves every holder a share of the outputs. Either those who see it all get the outputs and
//! every owner has paid, or nobody learns anything and nothing is lost by another try.
//! **Security.** Semi-honest computation; in this protocol any party may deviate, leave or restart at any point. Shares are
//! committed to before any is sent, all hold before any pays, all have paid before any is sent: until its last message nobody
//! knows anything that it could prefer, and from then on the same number comes of what is held. Who sees the outputs may keep
//! them from the others, at the price of a debit of its own. Of four servers one can neither stop nor bend what is held.
//! **Who learns what.** The viewers the outputs; all, how far each one's ledger is with this release, and whether it pays.
//! **Paper.** Instead of the choice among candidates of Private RCT (001), section 2.5.3.
//! **Cost.** [`price`], exact.
//!
//! | step | message | before it goes out | bytes |
//! |---|---|---|---|
//! | top | all to all: how far my ledger is with this release, and whether it pays | | 38 |
//! | echo | all to all: a hash of all tops heard; who says two things is found here | | 32 |
//! | compute | *engine* | | |
//! | commit | holder to all: a commitment to its share | | 32 |
//! | held | all to all: L, a hash of all commitments | the share is kept | 32 |
//! | paid | owner to all, after `held` of all | it is charged | 1 |
//! | open | holder to viewer, after `paid` of all | that it is sent is kept | the share, and 32 |
//! | same | viewer to viewer: a hash of the outputs; to the others that it has them | the outputs are kept | 32, 1 |
//!
//! **Crashes.** `top` finds out where everybody was ([`decide`]): where all hold the same number they go on from `paid`, and
//! nothing is computed or charged again. Otherwise what is held is dropped; who had sent its share is charged again.

use crate::ledger::{ATTEMPTS_AHEAD, Bytes32, Debit, HeldShare, Ledger, Progress};
use base::{Cost, Error, Kind, PartyId};
use engine::OutputShares;
use engine::outputs::{self, Opened};
use net::Session;
use program::lower::{ReleasePlan, Totals};
use std::sync::{Mutex, MutexGuard};
use zeroize::Zeroizing;

const HELD: &str = "tacit 2026-12 held share 1";
const NUMBER: &str = "tacit 2026-12 number 1";
const OUTPUTS: &str = "tacit 2026-12 outputs 1";
const TOPS: &str = "tacit 2026-12 tops 1";

const TOP_BYTES: usize = 1 + 1 + 4 + 32;
const SALT_BYTES: usize = 32;
/// A server of four may lack what it held.
const LACKING: usize = 1;

/// One release, at one participant.
pub(crate) struct Release<'a> {
    pub plan: &'a ReleasePlan,
    /// The same at all of a run: what is released, by which gates and tables, of which data.
    pub common: Bytes32,
    /// Names it at all and in ledgers: of this study and data. A later run may choose another engine or circuit; what was held
    /// before is opened all the same, so commitments are to this.
    pub id: Bytes32,
    /// Who gets shares.
    pub holders: Vec<PartyId>,
    pub ledger: &'a Mutex<Ledger>,
    /// What this party is charged; none at a server.
    pub debit: Option<Debit>,
    /// With whom and of which data, as in the debit.
    pub peer: String,
    pub lineage: String,
}

/// How far a participant's ledger is with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Top {
    /// The number that it is at; none before it held one, or after it dropped it.
    pub at: Option<(Bytes32, Progress)>,
    /// How many it has sent before.
    pub attempt: u32,
    /// Whether it would pay for one.
    pub pays: bool,
}

impl Top {
    fn bytes(self) -> [u8; TOP_BYTES] {
        let (state, session) = match self.at {
            None => (0, [0; 32]),
            Some((session, Progress::Held)) => (1, session),
            Some((session, Progress::Sent)) => (2, session),
            Some((session, Progress::Out)) => (3, session),
        };
        let all = [&[state, u8::from(self.pays)][..], &self.attempt.to_le_bytes(), &session].concat();
        all.try_into().expect("the parts add up")
    }

    fn read(bytes: &[u8; TOP_BYTES]) -> Option<Self> {
        let session: Bytes32 = bytes[6..].try_into().expect("32 bytes");
        let at = match bytes[0] {
            0 => None,
            1 => Some((session, Progress::Held)),
            2 => Some((session, Progress::Sent)),
            3 => Some((session, Progress::Out)),
            _ => return None,
        };
        let attempt = u32::from_le_bytes(bytes[2..6].try_into().expect("four bytes"));
        (bytes[1] < 2).then_some(Self { at, attempt, pays: bytes[1] == 1 })
    }

    fn has(&self, session: &Bytes32) -> bool {
        self.at.is_some_and(|(own, _)| own == *session)
    }

    fn is_out(&self) -> bool {
        matches!(self.at, Some((_, Progress::Out)))
    }
}

/// What comes after the tops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A number is computed: which one of this release.
    Compute(u32),
    /// All hold this number: it is paid for and opened.
    Open(Bytes32),
    /// Those who see it have it.
    Over,
}

/// Why there is no next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// A participant's ledger does not pay.
    Refused(PartyId),
    /// One has the outputs, and another one has lost what it held.
    Lost { has: PartyId, lost: PartyId },
    /// A participant is further ahead than anybody can be.
    Ahead(PartyId),
}

/// What follows from how far all are. `servers` are those of whom one may lack what it held.
pub(crate) fn decide(
    tops: &[(PartyId, Top)],
    viewers: &[PartyId],
    servers: &[PartyId],
    mine: u32,
) -> Result<Next, Stuck> {
    let seen = |party: &PartyId| tops.iter().any(|(p, top)| p == party && top.is_out());
    if viewers.iter().all(seen) {
        return Ok(Next::Over);
    }
    let refused = |open: bool| {
        // Who has sent has paid.
        let owes = |top: &Top| !open || matches!(top.at, Some((_, Progress::Held)) | None);
        tops.iter().find(|(_, top)| !top.pays && owes(top)).map(|(party, _)| Stuck::Refused(*party))
    };
    let numbers = tops.iter().filter_map(|(_, top)| top.at.map(|(session, _)| session));
    for session in numbers {
        let lacks = |server: bool| {
            let without = tops.iter().filter(|(_, top)| !top.has(&session));
            without.filter(|(party, _)| servers.contains(party) == server).count()
        };
        if lacks(false) == 0 && lacks(true) <= if servers.is_empty() { 0 } else { LACKING } {
            return refused(true).map_or(Ok(Next::Open(session)), Err);
        }
    }
    if let Some((has, top)) = tops.iter().find(|(_, top)| top.is_out()) {
        let lost = tops.iter().find(|(_, other)| other.at.map(|(s, _)| s) != top.at.map(|(s, _)| s));
        return Err(Stuck::Lost { has: *has, lost: lost.map_or(*has, |(party, _)| *party) });
    }
    if let Some((party, _)) = tops.iter().find(|(_, top)| top.attempt > mine.saturating_add(ATTEMPTS_AHEAD)) {
        return Err(Stuck::Ahead(*party));
    }
    let attempt = tops.iter().map(|(_, top)| top.attempt).max().unwrap_or(0);
    refused(false).map_or(Ok(Next::Compute(attempt)), Err)
}

/// How much of the protocol a run went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// All of it.
    Whole,
    /// From `paid` on: the number was held before.
    Opening,
    /// The tops alone: those who see it had it before.
    Nothing,
}

/// What a release came to.
pub(crate) struct Outcome {
    /// At those who see it: the values of the plan's outputs.
    pub values: Option<Vec<u128>>,
    /// Which number of the release it is, from 0.
    pub attempt: u32,
    pub ran: Ran,
    /// Servers whose share was not what the others' say.
    pub benders: Vec<PartyId>,
}

impl Release<'_> {
    /// Runs it. `compute` leaves this participant its share.
    ///
    /// # Errors
    /// Those of the computation and of the channels; [`Kind::Refused`] where a ledger does not pay or a result was lost; a
    /// deviation that names who.
    pub fn run(
        &self,
        session: &mut Session,
        compute: impl FnOnce(&mut Session) -> Result<OutputShares, Error>,
    ) -> Result<Outcome, Error> {
        let next = session.step("hold", |s| self.tops(s))?;
        let (held, ran) = match next {
            Next::Over => return self.over(),
            Next::Open(number) => (self.held(&number)?, Ran::Opening),
            Next::Compute(attempt) => {
                let left = compute(session)?;
                (session.step("hold", |s| self.hold(s, &left, attempt))?, Ran::Whole)
            }
        };
        session.step("pay", |s| self.pay(s, &held))?;
        session.step("open", |s| self.open(s, &held, ran))
    }

    fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("a thread that held the ledger panicked"))
    }

    fn viewers(&self) -> Vec<PartyId> {
        outputs::viewers(self.plan).collect()
    }

    fn servers(&self) -> &[PartyId] {
        if self.plan.totals == Totals::Replicated { &self.holders } else { &[] }
    }

    /// Everybody says how far it is, and everybody heard the same.
    fn tops(&self, session: &mut Session) -> Result<Next, Error> {
        let mine = self.top()?;
        let mut all = vec![(session.me(), mine)];
        for (peer, said) in tell_all(session, mine.bytes())? {
            let top =
                Top::read(&said).ok_or_else(|| session.link(peer).malformed("how far its ledger is"))?;
            all.push((peer, top));
        }
        all.sort_by_key(|(party, _)| *party);
        let mut hasher = blake3::Hasher::new_derive_key(TOPS);
        hasher.update(&self.common);
        for (party, top) in &all {
            hasher.update(&[party.0]).update(&top.bytes());
        }
        let echo = *hasher.finalize().as_bytes();
        if let Some((peer, _)) = tell_all(session, echo)?.into_iter().find(|(_, theirs)| *theirs != echo) {
            return Err(session.link(peer).blame(
                "it heard other words about this release, or is at another one: study, data and noise are the same at all",
            ));
        }
        let (viewers, servers) = (self.viewers(), self.servers().to_vec());
        decide(&all, &viewers, &servers, mine.attempt).map_err(|stuck| self.stuck(session, stuck))
    }

    fn top(&self) -> Result<Top, Error> {
        let ledger = self.ledger()?;
        let at = ledger.held_share(&self.id)?.map(|(held, progress)| (held.session, progress));
        let attempt = ledger.numbers_sent(&self.id)?;
        let pays = self.debit.as_ref().is_none_or(|debit| ledger.check_pay(debit).is_ok());
        Ok(Top { at, attempt, pays })
    }

    fn stuck(&self, session: &mut Session, stuck: Stuck) -> Error {
        let name = |party| session.roster().name(party);
        match stuck {
            Stuck::Refused(party) if party == session.me() => {
                let refused = self.debit.as_ref().map(|debit| self.ledger().and_then(|l| l.check_pay(debit)));
                match refused {
                    Some(Err(error)) => error,
                    _ => Error::misuse("a ledger that does not pay says why"),
                }
            }
            Stuck::Refused(party) => refused(session, party),
            Stuck::Ahead(party) => session.link(party).malformed("the number of a release"),
            Stuck::Lost { has, lost } => Error::refused(format!(
                "{} has the result of this release, and {} has lost its share of it: what all see is in the report of the \
                 first; for another one, which is charged again, change the study",
                name(has),
                name(lost)
            )),
        }
    }

    /// Those who see it have it: so do their peers, from now on.
    fn over(&self) -> Result<Outcome, Error> {
        let mut ledger = self.ledger()?;
        let attempt = ledger.held_share(&self.id)?.map_or(0, |(held, _)| held.attempt);
        let values = ledger.outputs(&self.id)?;
        if values.is_none() {
            ledger.store_outputs(&self.id, attempt, &self.peer, &[])?;
        }
        Ok(Outcome { values, attempt, ran: Ran::Nothing, benders: Vec::new() })
    }

    /// What is held of a number; a server may have lost it.
    fn held(&self, number: &Bytes32) -> Result<HeldShare, Error> {
        match self.ledger()?.held_share(&self.id)? {
            Some((held, _)) if held.session == *number => Ok(held),
            _ => {
                let (share, commitments) = (Zeroizing::new(Vec::new()), Vec::new());
                Ok(HeldShare { session: *number, attempt: 0, share, salt: [0; 32], commitments })
            }
        }
    }

    /// Commits to the share, hears the other commitments, keeps all, and hears that all do.
    fn hold(&self, session: &mut Session, left: &OutputShares, attempt: u32) -> Result<HeldShare, Error> {
        let me = session.me();
        let salt: Bytes32 = session.fork_seed("held share").into_rng().bytes();
        let share = Zeroizing::new(left.bytes().to_vec());
        let mine = self.commitment(attempt, me, &share, &salt);
        let peers: Vec<PartyId> = session.roster().parties().filter(|peer| *peer != me).collect();
        if self.holders.contains(&me) {
            for peer in &peers {
                session.link(*peer).send(&mine)?;
                session.link(*peer).flush()?;
            }
        }
        let mut commitments = Vec::with_capacity(self.holders.len());
        for holder in &self.holders {
            commitments.push(if *holder == me { mine } else { session.link(*holder).recv_array()? });
        }
        let number = self.number(attempt, &commitments);
        let held = HeldShare { session: number, attempt, share, salt, commitments };
        self.ledger()?.hold(&self.id, &held, &self.peer, &self.lineage)?;
        match tell_all(session, number)?.into_iter().find(|(_, theirs)| *theirs != number) {
            None => Ok(held),
            Some((peer, _)) => {
                Err(session.link(peer).blame("it holds another number: somebody committed to two shares"))
            }
        }
    }

    fn commitment(&self, attempt: u32, holder: PartyId, share: &[u8], salt: &Bytes32) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key(HELD);
        hasher.update(&self.id).update(&attempt.to_le_bytes()).update(&[holder.0]);
        hasher.update(&(share.len() as u64).to_le_bytes()).update(share).update(salt);
        *hasher.finalize().as_bytes()
    }

    fn number(&self, attempt: u32, commitments: &[Bytes32]) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key(NUMBER);
        hasher.update(&self.id).update(&attempt.to_le_bytes());
        hasher.update(&[self.plan.viewer.number()]).update(commitments.as_flattened());
        *hasher.finalize().as_bytes()
    }

    /// Every owner is charged and says so; nobody has sent a share until it has heard that of all.
    fn pay(&self, session: &mut Session, held: &HeldShare) -> Result<(), Error> {
        let me = session.me();
        let owners: Vec<PartyId> = (0..self.plan.parties as u8).map(PartyId).collect();
        let peers: Vec<PartyId> = session.roster().parties().filter(|peer| *peer != me).collect();
        if owners.contains(&me) {
            let paid = self.charge(held);
            for peer in &peers {
                session.link(*peer).send(&[u8::from(paid.is_ok())])?;
                session.link(*peer).flush()?;
            }
            paid?;
        }
        for owner in owners.into_iter().filter(|owner| *owner != me) {
            match session.link(owner).recv_array()? {
                [1] => {}
                [0] => return Err(refused(session, owner)),
                _ => return Err(session.link(owner).malformed("whether the release is paid for")),
            }
        }
        // Where servers hold the shares, owners have said so with their last word before them.
        if self.servers().is_empty() || !held.share.is_empty() {
            self.ledger()?.send(&held.session)
        } else {
            Ok(())
        }
    }

    /// Charges this party, unless it has paid for this number.
    fn charge(&self, held: &HeldShare) -> Result<(), Error> {
        let debit = self.debit.as_ref().ok_or_else(|| Error::misuse("an owner is charged"))?;
        let mut ledger = self.ledger()?;
        if matches!(ledger.held_share(&self.id)?, Some((_, Progress::Sent | Progress::Out))) {
            return Ok(());
        }
        ledger.pay(debit, held.attempt)?;
        if self.servers().is_empty() { Ok(()) } else { ledger.send(&held.session) }
    }

    /// Holders send their shares; who sees the outputs puts them together, keeps them and says so.
    fn open(&self, session: &mut Session, held: &HeldShare, ran: Ran) -> Result<Outcome, Error> {
        let (me, viewers) = (session.me(), self.viewers());
        let sees = viewers.contains(&me);
        if self.holders.contains(&me) && !held.share.is_empty() {
            let message = Zeroizing::new([&held.share[..], &held.salt].concat());
            for viewer in viewers.iter().filter(|viewer| **viewer != me) {
                session.link(*viewer).send(&message)?;
                session.link(*viewer).flush()?;
            }
        }
        let (mut values, mut benders) = (None, Vec::new());
        if sees {
            let opened = self.collect(session, held)?;
            let outputs = self.plan.values(&opened.bits[self.plan.outputs_of(0)]);
            self.ledger()?.store_outputs(&self.id, held.attempt, &self.peer, &outputs)?;
            self.same(session, held, &opened.bits)?;
            (values, benders) = (Some(outputs), opened.benders);
        } else {
            for viewer in &viewers {
                if session.link(*viewer).recv_array()? != [1] {
                    return Err(session.link(*viewer).malformed("whether it has the outputs"));
                }
            }
            self.ledger()?.store_outputs(&self.id, held.attempt, &self.peer, &[])?;
        }
        Ok(Outcome { values, attempt: held.attempt, ran, benders })
    }

    /// All shares, as committed to. Of four servers one may give nothing, or something else.
    fn collect(&self, session: &mut Session, held: &HeldShare) -> Result<Opened, Error> {
        let (me, bytes) = (session.me(), outputs::share_bytes(self.plan));
        let mut shares: Vec<Option<Zeroizing<Vec<u8>>>> = Vec::with_capacity(self.holders.len());
        let mut astray = None;
        for (at, holder) in self.holders.iter().enumerate() {
            if *holder == me {
                shares.push((!held.share.is_empty()).then(|| held.share.clone()));
                continue;
            }
            let mut said = Zeroizing::new(vec![0; bytes + SALT_BYTES]);
            let heard = session.link(*holder).recv(&mut said).and_then(|()| {
                let (share, salt) = said.split_at(bytes);
                let salt: Bytes32 = salt.try_into().expect("32 bytes");
                if held.commitments.get(at) == Some(&self.commitment(held.attempt, *holder, share, &salt)) {
                    return Ok(Zeroizing::new(share.to_vec()));
                }
                Err(session
                    .link(*holder)
                    .blame("its share of the outputs is not the one that it committed to"))
            });
            match heard {
                Ok(share) => shares.push(Some(share)),
                Err(_) if !self.servers().is_empty() && astray.is_none() => {
                    astray = Some(*holder);
                    shares.push(None);
                }
                Err(error) => return Err(error),
            }
        }
        let shares: Vec<Option<&[u8]>> = shares.iter().map(|share| share.as_ref().map(|s| &s[..])).collect();
        let mut opened = outputs::combine(self.plan, &self.holders, &shares, session)?;
        opened.benders.extend(astray);
        Ok(opened)
    }

    /// Those who see it have the same.
    fn same(&self, session: &mut Session, held: &HeldShare, bits: &[bool]) -> Result<(), Error> {
        let (me, viewers) = (session.me(), self.viewers());
        let mut hasher = blake3::Hasher::new_derive_key(OUTPUTS);
        let mine = *hasher.update(&held.session).update(&outputs::pack(bits)).finalize().as_bytes();
        for peer in session.roster().parties().filter(|peer| *peer != me).collect::<Vec<_>>() {
            if viewers.contains(&peer) {
                session.link(peer).send(&mine)?;
            } else {
                session.link(peer).send(&[1])?;
            }
            session.link(peer).flush()?;
        }
        for peer in viewers.into_iter().filter(|peer| *peer != me) {
            if session.link(peer).recv_array::<32>()? != mine {
                return Err(session.link(peer).blame("it says that the released number is another one"));
            }
        }
        Ok(())
    }
}

/// Says the same to everybody else and hears as much from each, in order of the parties.
fn tell_all<const N: usize>(session: &mut Session, mine: [u8; N]) -> Result<Vec<(PartyId, [u8; N])>, Error> {
    let peers: Vec<PartyId> = session.roster().parties().filter(|peer| *peer != session.me()).collect();
    for peer in &peers {
        session.link(*peer).send(&mine)?;
        session.link(*peer).flush()?;
    }
    peers.iter().map(|peer| Ok((*peer, session.link(*peer).recv_array()?))).collect()
}

fn refused(session: &Session, peer: PartyId) -> Error {
    let text = "the peer's privacy ledger does not pay for this release: its budget is spent; see the peer's own output. \
                Nothing was revealed, and nothing that was charged here is lost";
    Error::new(session.at(Some(peer)), Kind::Refused(text.into()))
}

/// Exact cost of [`Release::run`] without its computation.
pub(crate) fn price(plan: &ReleasePlan, holders: &[PartyId], participants: usize, ran: Ran) -> Cost {
    let viewers: Vec<PartyId> = outputs::viewers(plan).collect();
    let others = participants as u64 - 1;
    let mut cost = Cost::zero(participants);
    for (p, sent) in cost.sent.iter_mut().enumerate() {
        let me = PartyId(p as u8);
        let (holds, sees) = (holders.contains(&me), viewers.contains(&me));
        let elsewhere = viewers.iter().filter(|viewer| **viewer != me).count() as u64;
        *sent = others * (TOP_BYTES as u64 + 32);
        if ran == Ran::Nothing {
            continue;
        }
        *sent += match (ran, holds) {
            (Ran::Whole, true) => (32 + 32) * others,
            (Ran::Whole, false) => 32 * others,
            _ => 0,
        };
        *sent += if holds { elsewhere * (outputs::share_bytes(plan) + SALT_BYTES) as u64 } else { 0 };
        *sent += if p < plan.parties { others } else { 0 };
        *sent += if sees { 32 * elsewhere + (others - elsewhere) } else { 0 };
    }
    // Tops, echoes, commitments, held, paid; shares where viewers answer each other; and the last word.
    let answers = u64::from(viewers.iter().filter(|viewer| holders.contains(viewer)).count() > 1);
    cost.rounds = match ran {
        Ran::Whole => 6 + answers,
        Ran::Opening => 4 + answers,
        Ran::Nothing => 2,
    };
    cost
}

#[cfg(test)]
mod tests;
