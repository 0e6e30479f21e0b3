//! Hold, pay, open: how a release with noise that nobody knows reaches those who see it.
//!
//! **Functionality.** A computation leaves every holder a share of the outputs. Either those who see it all
//! get the outputs and every owner has paid, or nobody learns anything and nothing is lost by another try.
//! **Security.** Semi-honest computation; in this protocol any party may deviate, leave or restart at any
//! point. Shares are committed to before any is sent, all hold before any pays, all have paid before any is
//! sent: until its last message nobody knows anything that it could prefer, and from then on the same number
//! comes of what is held. Who sees the outputs may keep them from the others, at the price of a debit of its
//! own. Of four servers one can neither stop nor bend what is held. **Who learns what.** The viewers the
//! outputs; all, how far each one's ledger is with this release, and whether it pays. **Paper.** Instead of
//! the choice among candidates of Private RCT, section 2.5.3. **Cost.** [`price`], exact.
//!
//! | step | message | before it goes out | bytes |
//! |---|---|---|---|
//! | top | all to all: how far my ledger is with this release, and whether it pays | | 38 |
//! | echo | all to all: a hash of all tops heard; who says two things is found here | | 32 |
//! | compute | *engine* | | |
//! | commit | holder to all: a commitment to its share | | 32 |
//! | held | all to all: L, a hash of all commitments | the share is kept | 32 |
//! | paid | owner to all, after `held` of all: that it pays, signed with what it pays for | it is charged | 105 |
//! | open | holder to viewer, after `paid` of all | that it is sent is kept | the share, and 32 |
//! | same | viewer to viewer: a hash of the outputs; to the others that it has them | the outputs are kept | 32, 1 |
//!
//! **Crashes.** `top` finds out where everybody was ([`decide`]): where all hold the same number they go on
//! from `paid`, and nothing is computed or charged again. Otherwise what is held is dropped; who had sent its
//! share is charged again.

use crate::ledger::{
    ATTEMPTS_AHEAD, Bytes32, Debit, DebitTerms, HeldShare, Ledger, PAID_BYTES, PUBLIC, PaymentProof,
    ShareProgress, UNPAID,
};
use base::{Cost, Error, Fault, PartyId};
use engine::OutputShares;
use engine::outputs::{self, OpenedOutputs};
use net::{Identity, Session};
use program::lower::{ReleasePlan, TotalsForm};
use std::sync::{Mutex, MutexGuard};
use zeroize::Zeroizing;

const HELD: &str = "tacit 2026-12 held share 1";
const NUMBER: &str = "tacit 2026-12 number 2";
const OUTPUTS: &str = "tacit 2026-12 outputs 1";
const TOPS: &str = "tacit 2026-12 tops 1";

const TOP_BYTES: usize = 1 + 1 + 4 + 32;
const SALT_BYTES: usize = 32;
/// A number would be read with the wrong width.
const OTHER_LAW: &str = "a result of this release was sent by a version of tacit that draws other noise, or \
                         names results otherwise: run again with that \
     version, which opens it; for another result, which is charged again, change the study";
/// A server of four may lack what it held.
const LACKING: usize = 1;

/// One release, at one participant.
pub struct HeldRelease<'a> {
    /// What is released.
    pub plan: &'a ReleasePlan,
    /// The same at all of a run: what is released, by which gates and tables, of which data.
    pub common: Bytes32,
    /// Names it at all and in ledgers: of this study and data. A later run may choose another engine or
    /// circuit; what was held before is opened all the same, so commitments are to this.
    pub id: Bytes32,
    /// By what noise it is drawn and read: a number that was drawn by another one is never opened.
    pub law: Bytes32,
    /// Who gets shares.
    pub holders: Vec<PartyId>,
    /// Where shares are kept, and what an owner pays.
    pub ledger: &'a Mutex<Ledger>,
    /// What an owner of data pays; none at a server.
    pub owner: Option<OwnerPayment<'a>>,
}

/// What an owner brings to a release and a server does not.
pub struct OwnerPayment<'a> {
    /// What it is charged.
    pub debit: Debit,
    /// What it signs with that it pays.
    pub identity: &'a Identity,
    /// All owners' keys, in the order of the study.
    pub keys: Vec<String>,
}

impl OwnerPayment<'_> {
    /// What is charged for a number: its noise may have been drawn by other tables than a later run's would
    /// be.
    fn debit_of(&self, held: &HeldShare) -> Debit {
        let tau = held.tau.as_ref().unwrap_or(&self.debit.tau).clone();
        Debit { tau, ..self.debit.clone() }
    }

    /// What is paid for, in words that are the same at all.
    fn terms(&self, plan: &ReleasePlan, held: &HeldShare) -> DebitTerms {
        let viewers = match plan.viewer.only() {
            Some(party) => self.keys.get(party.index()).cloned().unwrap_or_default(),
            None => format!("{} {PUBLIC}", self.keys.join(" ")),
        };
        self.debit_of(held).terms(viewers)
    }
}

/// How far a participant's ledger is with a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReleaseTop {
    /// The number that it is at; none before it held one, or after it dropped it.
    pub at: Option<(Bytes32, ShareProgress)>,
    /// How many it has sent before.
    pub attempt: u32,
    /// Whether it would pay for one.
    pub pays: bool,
}

impl ReleaseTop {
    fn bytes(self) -> [u8; TOP_BYTES] {
        let (state, session) = match self.at {
            None => (0, [0; 32]),
            Some((session, ShareProgress::Held)) => (1, session),
            Some((session, ShareProgress::Sent)) => (2, session),
            Some((session, ShareProgress::Out)) => (3, session),
        };
        let all = [&[state, u8::from(self.pays)][..], &self.attempt.to_le_bytes(), &session].concat();
        all.try_into().expect("the parts add up")
    }

    fn read(bytes: &[u8; TOP_BYTES]) -> Option<Self> {
        let session: Bytes32 = bytes[6..].try_into().expect("32 bytes");
        let at = match bytes[0] {
            0 => None,
            1 => Some((session, ShareProgress::Held)),
            2 => Some((session, ShareProgress::Sent)),
            3 => Some((session, ShareProgress::Out)),
            _ => return None,
        };
        let attempt = u32::from_le_bytes(bytes[2..6].try_into().expect("four bytes"));
        (bytes[1] < 2).then_some(Self { at, attempt, pays: bytes[1] == 1 })
    }

    fn has(&self, session: &Bytes32) -> bool {
        self.at.is_some_and(|(own, _)| own == *session)
    }

    fn is_out(&self) -> bool {
        matches!(self.at, Some((_, ShareProgress::Out)))
    }
}

/// What comes after the tops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// A number is computed: which one of this release.
    Compute(u32),
    /// All hold this number: it is paid for and opened.
    Open(Bytes32),
    /// Those who see it have it.
    Over,
}

/// Why there is no next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReleaseStop {
    /// A participant's ledger does not pay.
    Refused(PartyId),
    /// One has the outputs, and another one has lost what it held.
    Lost { has: PartyId, lost: PartyId },
    /// A participant is further ahead than anybody can be.
    Ahead(PartyId),
}

/// What follows from how far all are. `servers` are those of whom one may lack what it held, and who own no
/// data. `held` is the attempt after the last that this participant held: no honest peer has sent more, and
/// how much more is followed is bounded.
pub(crate) fn decide(
    tops: &[(PartyId, ReleaseTop)],
    viewers: &[PartyId],
    servers: &[PartyId],
    held: u32,
) -> Result<NextStep, ReleaseStop> {
    let owner = |party: &PartyId| !servers.contains(party);
    let out = tops.iter().find(|(party, top)| viewers.contains(party) && top.is_out());
    if let Some((_, ReleaseTop { at: Some((number, _)), .. })) = out {
        // Of a number that an owner has not sent, nobody has the outputs, whatever is said.
        let sent = |top: &ReleaseTop| top.has(number) && !matches!(top.at, Some((_, ShareProgress::Held)));
        let seen =
            |party: &PartyId| tops.iter().any(|(p, top)| p == party && top.has(number) && top.is_out());
        if viewers.iter().all(seen) && tops.iter().all(|(party, top)| !owner(party) || sent(top)) {
            return Ok(NextStep::Over);
        }
    }
    let refused = |open: bool| {
        // Who has sent has paid; a server pays nothing.
        let owes = |top: &ReleaseTop| !open || matches!(top.at, Some((_, ShareProgress::Held)) | None);
        let broke = tops.iter().find(|(party, top)| owner(party) && !top.pays && owes(top));
        broke.map(|(party, _)| ReleaseStop::Refused(*party))
    };
    let numbers = tops.iter().filter_map(|(_, top)| top.at.map(|(session, _)| session));
    for session in numbers {
        let lacks = |server: bool| {
            let without = tops.iter().filter(|(_, top)| !top.has(&session));
            without.filter(|(party, _)| owner(party) != server).count()
        };
        if lacks(false) == 0 && lacks(true) <= if servers.is_empty() { 0 } else { LACKING } {
            return refused(true).map_or(Ok(NextStep::Open(session)), Err);
        }
    }
    if let Some((has, top)) = out {
        let other = |(_, other): &&(PartyId, ReleaseTop)| other.at.map(|(s, _)| s) != top.at.map(|(s, _)| s);
        let lost = tops.iter().filter(|(party, _)| owner(party)).find(other);
        return Err(ReleaseStop::Lost { has: *has, lost: lost.map_or(*has, |(party, _)| *party) });
    }
    if let Some((party, _)) = tops.iter().find(|(_, top)| top.attempt > held.saturating_add(ATTEMPTS_AHEAD)) {
        return Err(ReleaseStop::Ahead(*party));
    }
    let attempt = tops.iter().map(|(_, top)| top.attempt).max().unwrap_or(0);
    refused(false).map_or(Ok(NextStep::Compute(attempt)), Err)
}

/// How much of the protocol a run went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepsRun {
    /// All of it.
    Whole,
    /// From `paid` on: the number was held before.
    Opening,
    /// The tops alone: those who see it had it before.
    Nothing,
}

/// What a release came to.
pub struct ReleaseOutcome {
    /// At those who see it: the values of the plan's outputs.
    pub values: Option<Vec<u128>>,
    /// Which number of the release it is, from 0.
    pub attempt: u32,
    /// How much of the protocol it took.
    pub ran: StepsRun,
    /// Servers whose share was not what the others' say.
    pub benders: Vec<PartyId>,
}

/// What to do after most releases that broke off.
pub(crate) const AGAIN: &str = "Run again, with the same study and the same data:";

impl HeldRelease<'_> {
    /// Runs it. `compute` leaves this participant its share.
    ///
    /// # Errors
    /// Those of the computation and of the channels; [`Fault::Refused`] where a ledger does not pay or a
    /// result was lost; a deviation that names who. An owner's say what was spent, what is held, and what to
    /// do next.
    pub fn run(
        &self,
        session: &mut Session,
        compute: impl FnOnce(&mut Session) -> Result<OutputShares, Error>,
    ) -> Result<ReleaseOutcome, Error> {
        self.steps(session, compute).map_err(|error| match (error.kind(), &self.owner) {
            (Fault::Refused(_), _) | (_, None) => error,
            (_, Some(owner)) => match self.left(owner) {
                Ok(left) => error.leaving(left),
                Err(_) => error,
            },
        })
    }

    /// How things stand after a release that broke off.
    fn left(&self, owner: &OwnerPayment<'_>) -> Result<String, Error> {
        let ledger = self.ledger()?;
        let what = owner.debit.what();
        Ok(match (ledger.held_share(&self.id)?, ledger.is_paid(&self.id)?) {
            (Some((_, ShareProgress::Out)), _) => format!(
                "For {what} this side keeps the outcome of the release, and it is paid for. {AGAIN} nothing \
                 more is charged"
            ),
            (Some((_, ShareProgress::Sent)), _) => format!(
                "Spent: {what}, for this side's share of the result went out, or may have, and others may \
                 have the result. Held: that share. {AGAIN} the same result is opened, and nothing more is \
                 charged. Of results that stay so with one peer, the third asks this side's operator"
            ),
            (Some(_), true) => format!(
                "Charged and not spent: {what}; no share has gone out, and nobody knows the result. Held: \
                 this side's share. {AGAIN} it goes on from there without another charge. If another release \
                 begins with the same parties, the charge is given back"
            ),
            (Some(_), false) => format!(
                "Spent on this release: nothing; nobody knows the result. Held: this side's share. {AGAIN} \
                 it goes on from there"
            ),
            (None, true) => format!(
                "Charged and not spent: {what}; nobody knows the result, and nothing is held. {AGAIN} it is \
                 computed anew, and what was charged pays for it"
            ),
            (None, false) => format!(
                "Spent on this release: nothing; nobody knows the result, and nothing is held. {AGAIN} it is \
                 computed anew"
            ),
        })
    }

    fn steps(
        &self,
        session: &mut Session,
        compute: impl FnOnce(&mut Session) -> Result<OutputShares, Error>,
    ) -> Result<ReleaseOutcome, Error> {
        let next = session.step("hold", |s| self.tops(s))?;
        let (held, ran) = match next {
            NextStep::Over => return self.over(),
            NextStep::Open(number) => (self.held(&number)?, StepsRun::Opening),
            NextStep::Compute(attempt) => {
                let left = compute(session)?;
                (session.step("hold", |s| self.hold(s, &left, attempt))?, StepsRun::Whole)
            }
        };
        session.step("pay", |s| self.pay(s, &held))?;
        session.step("open", |s| self.open(s, &held, ran))
    }

    fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("a thread that held the ledger panicked"))
    }

    fn debit(&self) -> Option<&Debit> {
        self.owner.as_ref().map(|owner| &owner.debit)
    }

    /// The other parties' keys, a space between; none at a server.
    fn peers(&self) -> &str {
        self.debit().map_or("", |debit| &debit.peer_key)
    }

    fn viewers(&self) -> Vec<PartyId> {
        outputs::viewers(self.plan).collect()
    }

    fn servers(&self) -> &[PartyId] {
        if self.plan.totals == TotalsForm::Replicated { &self.holders } else { &[] }
    }

    /// Servers that own no data.
    fn pure_servers(&self) -> Vec<PartyId> {
        self.servers().iter().copied().filter(|server| server.index() >= self.plan.parties).collect()
    }

    /// Everybody says how far it is, and everybody heard the same.
    fn tops(&self, session: &mut Session) -> Result<NextStep, Error> {
        let mine = self.top()?;
        let mut all = vec![(session.me(), mine)];
        for (peer, said) in tell_all(session, mine.bytes())? {
            let top = ReleaseTop::read(&said)
                .ok_or_else(|| session.link(peer).malformed("how far its ledger is"))?;
            all.push((peer, top));
        }
        all.sort_by_key(|(party, _)| *party);
        let echo = self.echo(&all);
        if tell_all(session, echo)?.iter().any(|(_, theirs)| *theirs != echo) {
            // Whoever said two things, and not who heard them.
            let everybody: Vec<PartyId> = session.roster().parties().collect();
            return Err(session.accuse_one_of(
                &everybody,
                "one says two things about this release, or is at another one: study, data and noise are the \
                 same at all",
            ));
        }
        let (viewers, servers) = (self.viewers(), self.pure_servers());
        let held = self.ledger()?.numbers_held(&self.id)?.max(mine.attempt);
        decide(&all, &viewers, &servers, held).map_err(|stuck| self.stuck(session, stuck))
    }

    /// A hash of how far all said that they are, in order of the parties.
    fn echo(&self, all: &[(PartyId, ReleaseTop)]) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key(TOPS);
        hasher.update(&self.common);
        for (party, top) in all {
            hasher.update(&[party.0]).update(&top.bytes());
        }
        *hasher.finalize().as_bytes()
    }

    fn top(&self) -> Result<ReleaseTop, Error> {
        let ledger = self.ledger()?;
        let attempt = ledger.next_number(&self.id, self.debit())?;
        let named = |held: &HeldShare| self.number(held.attempt, &held.commitments) == held.number;
        let at = match ledger.held_share(&self.id)? {
            // Nobody has seen it: what was charged pays for the next one. So it is where another run has sent
            // a later one.
            None => None,
            Some((held, ShareProgress::Held)) if held.attempt < attempt || !named(&held) => None,
            // What everybody has is read no more.
            Some((held, progress)) if progress == ShareProgress::Out || named(&held) => {
                Some((held.number, progress))
            }
            Some(_) => return Err(Error::refused(OTHER_LAW)),
        };
        let pays = self.debit().is_none_or(|debit| ledger.check_pay(debit).is_ok());
        Ok(ReleaseTop { at, attempt, pays })
    }

    fn stuck(&self, session: &mut Session, stuck: ReleaseStop) -> Error {
        let name = |party| session.roster().name(party);
        match stuck {
            ReleaseStop::Refused(party) if party == session.me() => {
                let refused = self.debit().map(|debit| self.ledger().and_then(|l| l.check_pay(debit)));
                match refused {
                    Some(Err(error)) => error,
                    _ => Error::misuse("a ledger that does not pay says why"),
                }
            }
            ReleaseStop::Refused(party) => refused(session, party),
            ReleaseStop::Ahead(party) => Error::refused(format!(
                "{0} says that it has sent far more results of this release than were ever held here: its \
                 ledger or this one is not that of the earlier runs, or {0} lies; from here that cannot be \
                 told. Nothing was charged. Put back the newest copy of the ledger that was lost, or ask \
                 {0}'s operator what `tacit ledger show` says there, and run again; for another release, \
                 which is charged, change the study",
                name(party)
            )),
            ReleaseStop::Lost { has, lost } => Error::refused(format!(
                "{} has the result of this release, and {} has lost its share of it: what all see is in the \
                 report of the first; for another one, which is charged again, change the study",
                name(has),
                name(lost)
            )),
        }
    }

    /// Those who see it have it: so do their peers, from now on.
    fn over(&self) -> Result<ReleaseOutcome, Error> {
        let mut ledger = self.ledger()?;
        let attempt = ledger.held_share(&self.id)?.map(|(held, _)| held.attempt);
        let values = ledger.outputs(&self.id)?;
        if let (Some(attempt), None) = (attempt, &values) {
            ledger.store_outputs(&self.id, attempt, self.peers(), &[])?;
        }
        let attempt = attempt.unwrap_or(0);
        Ok(ReleaseOutcome { values, attempt, ran: StepsRun::Nothing, benders: Vec::new() })
    }

    /// What is held of a number; a server may have lost it.
    fn held(&self, number: &Bytes32) -> Result<HeldShare, Error> {
        match self.ledger()?.held_share(&self.id)? {
            Some((held, _)) if held.number == *number => Ok(held),
            _ => {
                let (share, commitments) = (Zeroizing::new(Vec::new()), Vec::new());
                Ok(HeldShare { number: *number, attempt: 0, share, salt: [0; 32], commitments, tau: None })
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
        let tau = self.debit().map(|debit| debit.tau.clone());
        let held = HeldShare { number, attempt, share, salt, commitments, tau };
        let lineage = self.debit().map_or("", |debit| &debit.lineage);
        self.ledger()?.hold(&self.id, &held, self.peers(), lineage)?;
        self.all_hold(session, &number)?;
        Ok(held)
    }

    /// Everybody says which number it holds. Of four servers one may say nothing, or another one: three hold
    /// what it takes, and else it could have one owner pay and stop the other one.
    fn all_hold(&self, session: &mut Session, number: &Bytes32) -> Result<(), Error> {
        let peers: Vec<PartyId> = session.roster().parties().filter(|peer| *peer != session.me()).collect();
        peers.iter().try_for_each(|peer| self.say(session, *peer, number))?;
        let (servers, mut lacking) = (self.pure_servers(), 0);
        for peer in peers {
            let said = session.link(peer).recv_array::<32>();
            if matches!(&said, Ok(theirs) if theirs == number) {
                continue;
            }
            if servers.contains(&peer) && lacking < LACKING {
                lacking += 1;
                continue;
            }
            said?;
            let mut suspects = [&self.holders[..], &[peer]].concat();
            suspects.sort_unstable();
            return Err(
                session.accuse_one_of(&suspects, "one committed to two shares, or holds another number")
            );
        }
        Ok(())
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
        hasher.update(&self.law);
        hasher.update(&[self.plan.viewer.number()]).update(commitments.as_flattened());
        *hasher.finalize().as_bytes()
    }

    /// Every owner is charged and says so, signed; nobody has sent a share until it has heard that of all.
    fn pay(&self, session: &mut Session, held: &HeldShare) -> Result<(), Error> {
        let me = session.me();
        let peers: Vec<PartyId> = session.roster().parties().filter(|peer| *peer != me).collect();
        if let Some(owner) = &self.owner {
            let paid = self.charge(owner, held);
            let said = paid.as_ref().map_or(UNPAID, PaymentProof::bytes);
            peers.iter().try_for_each(|peer| self.say(session, *peer, &said))?;
            paid?;
        }
        let mut signed = Vec::new();
        for peer in (0..self.plan.parties as u8).map(PartyId).filter(|peer| *peer != me) {
            let said = session.link(peer).recv_array()?;
            signed.extend(self.heard(session, peer, held, &said)?);
        }
        let mut ledger = self.ledger()?;
        // Where servers hold the shares, owners have said so with their last word before them.
        if self.servers().is_empty() || !held.share.is_empty() {
            ledger.send(&held.number, &signed)
        } else {
            signed.iter().try_for_each(|(key, paid)| ledger.keep_signature(&held.number, key, paid, key))
        }
    }

    /// Says something to a peer. Where all hold, a server that is gone stops nobody.
    fn say(&self, session: &mut Session, peer: PartyId, bytes: &[u8]) -> Result<(), Error> {
        let mut link = session.link(peer);
        let said = link.send(bytes).and_then(|()| link.flush());
        let needed = peer.index() < self.plan.parties || !self.servers().contains(&peer);
        if needed { said } else { Ok(()) }
    }

    /// What an owner says that pays, with its key; a server has the word alone.
    fn heard(
        &self,
        session: &mut Session,
        peer: PartyId,
        held: &HeldShare,
        said: &[u8; PAID_BYTES],
    ) -> Result<Option<(String, PaymentProof)>, Error> {
        let Some(owner) = &self.owner else {
            return match said[0] {
                1 => Ok(None),
                0 => Err(refused(session, peer)),
                _ => Err(session.link(peer).malformed("whether the release is paid for")),
            };
        };
        let key = owner.keys.get(peer.index()).ok_or_else(|| Error::misuse("every owner has a key"))?;
        match PaymentProof::read(said, key, &owner.terms(self.plan, held), (&held.number, held.attempt)) {
            Ok(Some(paid)) => Ok(Some((key.clone(), paid))),
            Ok(None) => Err(refused(session, peer)),
            Err(what) => Err(session.link(peer).blame(what)),
        }
    }

    /// Charges this party, unless it has paid for this number, and signs what it pays for.
    fn charge(&self, owner: &OwnerPayment<'_>, held: &HeldShare) -> Result<PaymentProof, Error> {
        let (debit, number) = (owner.debit_of(held), (&held.number, held.attempt));
        let signer = owner.identity.fingerprint().to_string();
        let mut ledger = self.ledger()?;
        let signed = match ledger.signature_of(&held.number, &signer)? {
            Some(signed) => signed,
            None => PaymentProof::sign(owner.identity, &owner.terms(self.plan, held), number)?,
        };
        if matches!(ledger.held_share(&self.id)?, Some((_, ShareProgress::Sent | ShareProgress::Out))) {
            ledger.keep_signature(&held.number, &signer, &signed, &debit.peer_key)?;
            return Ok(signed);
        }
        ledger.pay(&debit, number, (&signer, &signed))?;
        if !self.servers().is_empty() {
            ledger.send(&held.number, &[])?;
        }
        Ok(signed)
    }

    /// Holders send their shares; who sees the outputs puts them together, keeps them and says so.
    fn open(&self, session: &mut Session, held: &HeldShare, ran: StepsRun) -> Result<ReleaseOutcome, Error> {
        let (me, viewers) = (session.me(), self.viewers());
        let sees = viewers.contains(&me);
        if self.holders.contains(&me) {
            let mut message = Zeroizing::new([&held.share[..], &held.salt].concat());
            // A server that lost its share says zeros, which nobody committed to: nobody waits for it.
            message.resize(outputs::share_bytes(self.plan) + SALT_BYTES, 0);
            for viewer in viewers.iter().filter(|viewer| **viewer != me) {
                self.say(session, *viewer, &message)?;
            }
        }
        let (mut values, mut benders) = (None, Vec::new());
        if sees {
            let opened = self.collect(session, held)?;
            let outputs = self.plan.values(&opened.bits[self.plan.outputs_of(0)]);
            self.ledger()?.store_outputs(&self.id, held.attempt, self.peers(), &outputs)?;
            self.same(session, held, &opened.bits)?;
            (values, benders) = (Some(outputs), opened.benders);
        } else {
            for viewer in &viewers {
                if session.link(*viewer).recv_array()? != [1] {
                    return Err(session.link(*viewer).malformed("whether it has the outputs"));
                }
            }
            self.ledger()?.store_outputs(&self.id, held.attempt, self.peers(), &[])?;
        }
        Ok(ReleaseOutcome { values, attempt: held.attempt, ran, benders })
    }

    /// All shares, as committed to. Of four servers one may give nothing, or something else.
    fn collect(&self, session: &mut Session, held: &HeldShare) -> Result<OpenedOutputs, Error> {
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
        let mine = *hasher.update(&held.number).update(&outputs::pack(bits)).finalize().as_bytes();
        for peer in session.roster().parties().filter(|peer| *peer != me).collect::<Vec<_>>() {
            self.say(session, peer, if viewers.contains(&peer) { &mine } else { &[1] })?;
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
    let text = "the peer's privacy ledger does not pay for this release: its budget is spent, or its \
                operator is to be asked first; see the peer's own output. Nothing was revealed, and what was \
                charged here pays for the next try";
    Error::new(session.at(Some(peer)), Fault::Refused(text.into()))
}

/// Exact cost of [`HeldRelease::run`] without its computation.
pub fn price(plan: &ReleasePlan, holders: &[PartyId], participants: usize, ran: StepsRun) -> Cost {
    let viewers: Vec<PartyId> = outputs::viewers(plan).collect();
    let others = participants as u64 - 1;
    let mut cost = Cost::zero(participants);
    for (p, sent) in cost.sent.iter_mut().enumerate() {
        let me = PartyId(p as u8);
        let (holds, sees) = (holders.contains(&me), viewers.contains(&me));
        let elsewhere = viewers.iter().filter(|viewer| **viewer != me).count() as u64;
        *sent = others * (TOP_BYTES as u64 + 32);
        if ran == StepsRun::Nothing {
            continue;
        }
        *sent += match (ran, holds) {
            (StepsRun::Whole, true) => (32 + 32) * others,
            (StepsRun::Whole, false) => 32 * others,
            _ => 0,
        };
        *sent += if holds { elsewhere * (outputs::share_bytes(plan) + SALT_BYTES) as u64 } else { 0 };
        *sent += if p < plan.parties { others * PAID_BYTES as u64 } else { 0 };
        *sent += if sees { 32 * elsewhere + (others - elsewhere) } else { 0 };
    }
    // Tops, echoes, commitments, held, paid; shares where viewers answer each other; and the last word.
    let answers = u64::from(viewers.iter().filter(|viewer| holders.contains(viewer)).count() > 1);
    cost.rounds = match ran {
        StepsRun::Whole => 6 + answers,
        StepsRun::Opening => 4 + answers,
        StepsRun::Nothing => 2,
    };
    cost
}

#[cfg(test)]
mod tests;
