//! The paper's cut-and-choose: the other party draws candidates of noise, and who sees the result looks at
//! all but one. An option between two parties; releases are of noise that nobody knows unless a study says
//! otherwise ([`crate::hold`]).
//!
//! Functionality: [`release::choose`], between the drawer (whose data the noise protects) and the viewer. All
//! candidates enter one computation, which leaves the outputs with each of them, and the candidates
//! themselves, in shares. The release ends with the viewer's outputs under the candidate that it chose, or
//! with a record of why not. Security: covert in the choice of the noise, deterrence 1 - 1/k; the engine is
//! semi-honest. What the drawer opens it proves by its labels ([`engine::outputs::Proof`]), so it opens what
//! it had entered. It may still add a constant to its share of a total: what the deterrence covers is this
//! step alone. Free retries would let a cheating drawer win, so after the index is named nothing resumes: see
//! below. Who learns what: as `release::choose`; the drawer knows the noise, so the result is the viewer's
//! alone. Besides, each side learns whether the other's ledger lets the release begin and, at the viewer,
//! whether the drawer's ledger paid. Paper: Private RCT, section 2.5.3; deviations as in
//! `release::choose`. Before the index is named, the drawer says that its ledger has paid: an exhausted
//! budget is then not mistaken for a refusal to open. Cost: [`CandidateNoise::price`], exact; the computation
//! has the adders of all candidates.
//!
//! | step | drawer | message | viewer |
//! |---|---|---|---|
//! | begin | may this release begin? | <- 1 byte -> | may it? or is it done? |
//! | draw | commits; keeps that | setup id, commitments -> | compares the id |
//! | | keeps them, draws | <- seeds | draws seeds; keeps them |
//! | | *engine*: enters all candidates | | |
//! | choose | debits | 1 byte: paid -> | debits (a record) |
//! | | keeps it | <- index | names one; keeps it |
//! | | keeps that | openings; the others' bits and proof -> | |
//! | check | | <- 1 byte: accepted | compares; keeps the verdict |
//! | open | | share of the outputs and proof -> | keeps the outputs |
//!
//! **Crashes.** Until an index is kept on either side, a rerun takes up the same commitments and seeds: the
//! drawer enters the same noise again. Afterwards the drawer knows which candidate stays closed, and the
//! computation that held it to its entries is gone: entering once more would be unchecked. Then nothing with
//! noise begins with this peer on this lineage, whatever study and data, until this side's own operator
//! allows it (`tacit ledger allow`); the next attempt has new noise and is charged again. A release whose
//! outputs reached the viewer's ledger is never run again: they are taken from there.

#[cfg(test)]
mod tests;

use crate::hold::AGAIN;
use crate::ledger::{Bytes32, Debit, Ledger, PeerLineage, TranscriptStage, allow_command, barred_error};
use base::{Cost, Error, Fault, PartyId, Rng};
use engine::{DrawnNoise, Entered, OutputShares, PreparedRelease, Shares, outputs};
use net::Session;
use program::lower::ReleasePlan;
use release::choose::{
    Accepted, Checker, CheckerVerdict, CheckerWaiting, CutAndChooseSide, Debited, Draw, Drawer,
    DrawerCandidates, Named, NoiseContext, Resumed, Setup, resume,
};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use subtle::ConstantTimeEq;

/// First word between the two sides.
const READY: u8 = 1;
/// The viewer has the outputs already.
const DONE: u8 = 2;
/// This side's ledger does not let the release begin, or did not pay.
const REFUSED: u8 = 3;

const SETUP_BYTES: usize = 32;
const DIGEST_BYTES: usize = 32;
const PROOFS: &str = "tacit 2026-12 cut-and-choose proofs 1";

/// How long a release waits for another one with the same peer to end, before the viewer says seeds or an
/// index.
const TURN: Duration = Duration::from_secs(5);
const TURN_PAUSE: Duration = Duration::from_millis(50);

/// The noise of one viewer's release, at one party.
pub struct CandidateNoise {
    side: CutAndChooseSide,
    setup: Setup,
    ledger: Arc<Mutex<Ledger>>,
    debit: Debit,
    towards: PeerLineage,
    rng: Rng,
    state: State,
}

/// Where this side is.
enum State {
    Fresh,
    /// Both sides said that the release may begin.
    Begun,
    Drawn(DrawerCandidates),
    Seeded(Checker),
    /// The drawer handed out openings.
    Opened,
    /// The viewer named an index.
    Chosen(CheckerWaiting),
    Accepted,
    /// A release of this kind ended, well or not.
    Over,
}

/// The agreement on these draws with k candidates.
///
/// # Errors
/// When there is no draw, or k, a variance or a width is out of range.
pub fn setup(context: NoiseContext, draws: Vec<Draw>, candidates: usize) -> Result<Setup, Error> {
    Setup::new(context, draws, candidates)
}

/// An agreement of the right size: prices do not depend on the hashes in it.
///
/// # Errors
/// As [`setup`].
pub fn setup_for_price(draws: Vec<Draw>, viewer: PartyId, candidates: u32) -> Result<Setup, Error> {
    let none = [0; 32];
    let drawer = viewer.other();
    let context =
        NoiseContext { study: none, release: none, session: none, data: vec![none; 2], viewer, drawer };
    setup(context, draws, candidates as usize)
}

impl CandidateNoise {
    /// One party's side of the noise of one release. `debit` is what this party's ledger is charged:
    /// `protects` at the drawer, a record at the viewer. `rng` is fresh.
    #[must_use]
    pub fn new(
        side: CutAndChooseSide,
        setup: Setup,
        ledger: Arc<Mutex<Ledger>>,
        debit: Debit,
        rng: Rng,
    ) -> Self {
        let towards = debit.towards();
        Self { side, setup, ledger, debit, towards, rng, state: State::Fresh }
    }

    /// Exact cost of [`CandidateNoise::run`] on top of the engine's release.
    #[must_use]
    pub fn price(setup: &Setup, plan: &ReleasePlan) -> Cost {
        let (drawer, viewer) = (setup.context().drawer.index(), setup.context().viewer.index());
        let opened = plan.candidates.iter().skip(1).map(Vec::len).sum::<usize>().div_ceil(8) + DIGEST_BYTES;
        let outputs = plan.outputs_of(0).len().div_ceil(8) + DIGEST_BYTES;
        let mut cost = Cost::zero(2);
        // Whether it may begin; the agreement and the commitments; whether it is paid; the openings; the
        // outputs.
        let said =
            1 + SETUP_BYTES + setup.commitments_bytes() + 1 + setup.openings_bytes() + opened + outputs;
        cost.sent[drawer] = said as u64;
        cost.sent[viewer] = (1 + setup.seeds_bytes() + Setup::INDEX_BYTES + 1) as u64;
        // At the viewer: the beginning, the openings and the outputs; the rest travels with the engine's
        // turns.
        cost.rounds = 3;
        cost
    }

    /// Runs a release: at the viewer its outputs, elsewhere nothing. Whatever goes wrong after the index is
    /// named bars the peer here. Outputs that an earlier run got are taken from the ledger.
    ///
    /// # Errors
    /// Those of the engine and of the ledger, here or at the peer.
    pub fn run(
        mut self,
        release: &dyn PreparedRelease,
        totals: &Shares,
        session: &mut Session,
    ) -> Result<Vec<u128>, Error> {
        self.check_parts(session)?;
        if let Some(outputs) = session.step("noise", |s| self.begin(s))? {
            return Ok(outputs);
        }
        let result = self.steps(release, totals, session);
        self.close(result).map_err(|error| match (error.kind(), self.left()) {
            (Fault::Refused(_), _) | (_, Err(_)) => error,
            (_, Ok(left)) => error.leaving(left),
        })
    }

    fn steps(
        &mut self,
        release: &dyn PreparedRelease,
        totals: &Shares,
        session: &mut Session,
    ) -> Result<Vec<u128>, Error> {
        let plan = release.plan();
        let drawn = session.step("noise", |s| match self.side {
            CutAndChooseSide::Drawer => self.draw_as_drawer(s),
            CutAndChooseSide::Checker => self.draw_as_viewer(s).map(|()| Vec::new()),
        })?;
        let mut coins = session.fork_seed("coins").into_rng();
        let mut entered = Entered::new(plan, totals, session.me(), &mut coins)?;
        if self.side == CutAndChooseSide::Drawer {
            entered = entered.with_candidates(plan, &drawn)?;
        }
        let left = release.run(&entered, &mut DrawnNoise::none(), session)?;
        session.step("choose", |s| match std::mem::replace(&mut self.state, State::Over) {
            State::Drawn(drawn) => self.choose_as_drawer(drawn, plan, &left, s).map(|()| Vec::new()),
            State::Seeded(checker) => self.choose_as_viewer(checker, plan, &left, s),
            _ => Err(Error::misuse("an index is chosen once, after the noise is drawn")),
        })
    }

    fn peer(&self) -> PartyId {
        match self.side {
            CutAndChooseSide::Drawer => self.setup.context().viewer,
            CutAndChooseSide::Checker => self.setup.context().drawer,
        }
    }

    fn id(&self) -> Bytes32 {
        self.setup.context().release
    }

    fn ledger(&self) -> Result<MutexGuard<'_, Ledger>, Error> {
        self.ledger.lock().map_err(|_| Error::misuse("a thread that held the ledger panicked"))
    }

    /// Whether the caller's pieces belong together.
    fn check_parts(&self, session: &Session) -> Result<(), Error> {
        let (context, debit) = (self.setup.context(), &self.debit);
        let me = match self.side {
            CutAndChooseSide::Drawer => context.drawer,
            CutAndChooseSide::Checker => context.viewer,
        };
        let fits = debit.release_id == context.release
            && debit.study == context.study
            && debit.protects == (self.side == CutAndChooseSide::Drawer);
        if fits && session.me() == me {
            return Ok(());
        }
        Err(Error::misuse("the debit is not that of this side of this release"))
    }

    /// Both sides say whether the release may begin, so that neither starts what the other will not end.
    /// Returns outputs when the viewer has them.
    fn begin(&mut self, session: &mut Session) -> Result<Option<Vec<u128>>, Error> {
        let kept = match self.side {
            CutAndChooseSide::Checker => self.ledger()?.outputs(&self.id())?,
            CutAndChooseSide::Drawer => None,
        };
        let mine = if kept.is_some() { Ok(()) } else { self.may_begin() };
        let word = match (&mine, &kept) {
            (_, Some(_)) => DONE,
            (Ok(()), None) => READY,
            (Err(_), None) => REFUSED,
        };
        let mut theirs = [0];
        let peer = self.peer();
        session.link(peer).exchange(&[word], &mut theirs)?;
        match (self.side, theirs[0]) {
            _ if kept.is_some() => return Ok(kept),
            // Nothing is given away by believing this: the drawer sends nothing.
            (CutAndChooseSide::Drawer, DONE) => {
                self.end(&[])?;
                return Ok(Some(Vec::new()));
            }
            _ => mine?,
        }
        match theirs[0] {
            READY => {
                self.state = State::Begun;
                Ok(None)
            }
            REFUSED => Err(refused(session, peer)),
            _ => Err(session.link(peer).malformed("whether the release may begin")),
        }
    }

    /// Whether this side's ledger lets the release begin: nothing bars the peer, this attempt has not named
    /// an index, and it is affordable.
    fn may_begin(&self) -> Result<(), Error> {
        let (id, ledger) = (self.id(), self.ledger()?);
        let running = (id, ledger.attempt(&id)?);
        if let Some(reason) = ledger.barred(&self.towards, &[running])? {
            return Err(barred_error(ledger.path(), &self.towards, &reason));
        }
        if ledger
            .transcript(&id, self.side)?
            .is_some_and(|record| TranscriptStage::of(&record) >= TranscriptStage::Named)
        {
            return Err(Error::refused(
                "this attempt of the release has named its index before; run again, and both sides agree on \
                 a new one",
            ));
        }
        ledger.check_debit(&self.debit)
    }

    /// Keeps a transcript. Where another release with this peer is at the same point, it waits for its turn.
    fn save(&self, transcript: &release::choose::Transcript) -> Result<(), Error> {
        let until = Instant::now() + TURN;
        loop {
            let kept = self.ledger()?.save_transcript(&self.id(), self.side, &self.towards, transcript);
            match kept {
                Err(e) if matches!(e.kind(), Fault::Refused(_)) && Instant::now() < until => {
                    std::thread::sleep(TURN_PAUSE);
                }
                kept => return kept,
            }
        }
    }

    /// The drawer's half of `draw`: the same messages whether it is the first time or a rerun.
    fn draw_as_drawer(&mut self, session: &mut Session) -> Result<Vec<Vec<i128>>, Error> {
        let peer = self.peer();
        let (committed, seeded) = {
            let ledger = self.ledger()?;
            let at =
                |stage| ledger.transcript_at(&self.setup.context().release, CutAndChooseSide::Drawer, stage);
            (at(TranscriptStage::Committed)?, at(TranscriptStage::Seeded)?)
        };
        let (drawer, commitments) = match committed {
            None => {
                let (drawer, commitments) = Drawer::commit(self.setup.clone(), &mut self.rng);
                self.save(drawer.transcript())?;
                (drawer, commitments)
            }
            Some(record) => {
                let commitments = record.commitments();
                let Resumed::Drawer(drawer) = resume(record, &self.setup)? else { return Err(damaged()) };
                (drawer, commitments)
            }
        };
        session.link(peer).send(&[&self.setup.id()[..], &commitments].concat())?;
        let mut seeds = vec![0; self.setup.seeds_bytes()];
        session.link(peer).recv(&mut seeds)?;
        let drawn = drawer.draw(&seeds)?;
        match seeded {
            None => self.save(drawn.transcript())?,
            // Other seeds would be other noise on the same totals: their mean would be less noisy than paid
            // for.
            Some(before) if before.shared_digest() != drawn.transcript().shared_digest() => {
                return Err(session.link(peer).blame(
                    "its noise seeds are not those of this release's earlier run: it lost or replaced its \
                     ledger",
                ));
            }
            Some(_) => {}
        }
        let candidates = drawn.candidates().iter().map(|candidate| candidate.expose().clone()).collect();
        self.state = State::Drawn(drawn);
        Ok(candidates)
    }

    /// The viewer's half of `draw`.
    fn draw_as_viewer(&mut self, session: &mut Session) -> Result<(), Error> {
        let peer = self.peer();
        let id: Bytes32 = session.link(peer).recv_array()?;
        if id != self.setup.id() {
            return Err(session
                .link(peer)
                .blame("it agrees to another release: study, data, noise, candidates or session differ"));
        }
        let mut commitments = vec![0; self.setup.commitments_bytes()];
        session.link(peer).recv(&mut commitments)?;
        let record = self.ledger()?.transcript(&self.id(), CutAndChooseSide::Checker)?;
        let (checker, seeds) = match record {
            None => {
                let (checker, seeds) = Checker::new(self.setup.clone(), &commitments, &mut self.rng)?;
                self.save(checker.transcript())?;
                (checker, seeds)
            }
            Some(record) if record.commitments() != commitments => {
                return Err(session.link(peer).blame(
                    "its noise commitments are not those of this release's earlier run: it lost or replaced \
                     its ledger",
                ));
            }
            Some(record) => {
                let Resumed::Checker(checker) = resume(record, &self.setup)? else { return Err(damaged()) };
                let seeds = checker.seeds();
                (checker, seeds)
            }
        };
        session.link(peer).send(&seeds)?;
        self.state = State::Seeded(checker);
        Ok(())
    }

    /// The hash of what fixed the noise: agreement with its session, commitments, seeds. The same at both
    /// sides, and in every rerun, since the same noise is entered then.
    fn digest(&self, transcript: &release::choose::Transcript) -> Bytes32 {
        let mut hasher = blake3::Hasher::new_derive_key("tacit noise entered 1");
        hasher.update(&self.setup.context().session).update(&transcript.shared_digest());
        *hasher.finalize().as_bytes()
    }

    fn pay(&self) -> Result<Debited, Error> {
        let row = self.ledger()?.debit(&self.debit)?;
        Ok(Debited::committed(&self.setup, row))
    }

    fn choose_as_drawer(
        &mut self,
        drawn: DrawerCandidates,
        plan: &ReleasePlan,
        left: &OutputShares,
        session: &mut Session,
    ) -> Result<(), Error> {
        let peer = self.peer();
        let digest = self.digest(drawn.transcript());
        let entered = drawn.entered(digest);
        let paid = self.pay();
        session.link(peer).send(&[if paid.is_ok() { READY } else { REFUSED }])?;
        let paid = paid?;
        let index: [u8; Setup::INDEX_BYTES] = session.link(peer).recv_array()?;
        let named: Named = entered.named(paid, &index)?;
        let chosen = named.index();
        self.save(named.transcript())?;
        let (transcript, openings) = named.open();
        self.state = State::Opened;
        self.save(&transcript)?;
        session.step("open", |s| {
            s.link(peer).send(&openings)?;
            prove(plan, left, others(plan, chosen), peer, s)?;
            // A viewer that did not accept has left, and this side bars itself.
            if s.link(peer).recv_array()? != [READY] {
                return Err(s.link(peer).malformed("whether it accepts the noise"));
            }
            prove(plan, left, [plan.outputs_of(chosen)], peer, s)
        })
    }

    fn choose_as_viewer(
        &mut self,
        checker: Checker,
        plan: &ReleasePlan,
        left: &OutputShares,
        session: &mut Session,
    ) -> Result<Vec<u128>, Error> {
        let peer = self.peer();
        let digest = self.digest(checker.transcript());
        let entered = checker.entered(digest);
        match session.link(peer).recv_array()? {
            [READY] => {}
            [REFUSED] => return Err(refused(session, peer)),
            _ => return Err(session.link(peer).malformed("whether the release is paid for")),
        }
        let chosen = entered.choose(self.pay()?, &mut self.rng)?;
        self.save(chosen.transcript())?;
        let (index, message) = (chosen.index(), chosen.message());
        self.state = State::Chosen(chosen);
        session.link(peer).send(&message)?;
        session.step("open", |s| {
            let mut openings = vec![0; self.setup.openings_bytes()];
            s.link(peer).recv(&mut openings)?;
            let bits = proven(left, others(plan, index), peer, s)?;
            self.verdict(&openings, &self.candidates(&bits))?;
            s.link(peer).send(&[READY])?;
            s.link(peer).flush()?;
            let bits = proven(left, [plan.outputs_of(index)], peer, s)?;
            Ok(plan.values(&bits))
        })
    }

    /// Cuts the bits of opened candidates into numbers.
    fn candidates(&self, bits: &[bool]) -> Vec<Vec<i128>> {
        let mut rest = bits;
        let mut word = |draw: &Draw| {
            let (own, after) = rest.split_at(draw.width as usize);
            rest = after;
            let value = own.iter().enumerate().fold(0u128, |value, (i, bit)| value | u128::from(*bit) << i);
            let shift = 128 - draw.width;
            ((value << shift) as i128) >> shift
        };
        let draws = self.setup.draws();
        (1..self.setup.candidates()).map(|_| draws.iter().map(&mut word).collect()).collect()
    }

    /// Compares what the computation opened with the seeds, and keeps the verdict.
    fn verdict(&mut self, openings: &[u8], opened: &[Vec<i128>]) -> Result<(), Error> {
        let State::Chosen(chosen) = std::mem::replace(&mut self.state, State::Over) else {
            return Err(Error::misuse("noise is checked once, after an index is named"));
        };
        match chosen.check(openings, opened)? {
            CheckerVerdict::Accepted(accepted) => self.accept(&accepted),
            CheckerVerdict::Detected(detected) => {
                self.save(detected.transcript())?;
                let error = detected.error();
                let reason = format!("{error}: {:?}", detected.deviation());
                self.ledger()?.bar(&self.id(), &self.towards, &reason)?;
                Err(error)
            }
        }
    }

    fn accept(&mut self, accepted: &Accepted) -> Result<(), Error> {
        self.save(accepted.transcript())?;
        self.state = State::Accepted;
        Ok(())
    }

    /// Keeps how the release ended.
    fn close(&mut self, result: Result<Vec<u128>, Error>) -> Result<Vec<u128>, Error> {
        match (result, std::mem::replace(&mut self.state, State::Over)) {
            (Ok(outputs), State::Accepted | State::Opened) => {
                self.end(&outputs)?;
                Ok(outputs)
            }
            (Ok(_), _) => Err(Error::misuse("the engine revealed outputs before their noise was settled")),
            (Err(error), State::Chosen(chosen)) => {
                self.save(chosen.silent().transcript())?;
                self.bar(error, "before the noise was opened")
            }
            (Err(error), State::Accepted) => {
                self.bar(error, "after the noise was accepted, before the outputs")
            }
            // At the drawer the transcript bars by itself, until the viewer says that it has the outputs.
            (Err(error), _) => Err(error),
        }
    }

    /// Keeps how this attempt ended.
    fn end(&self, outputs: &[u128]) -> Result<(), Error> {
        let (id, mut ledger) = (self.id(), self.ledger()?);
        let attempt = ledger.attempt(&id)?;
        ledger.store_outputs(&id, attempt, &self.towards.peer, outputs)
    }

    /// Bars the peer, and returns the error that was the cause.
    fn bar<T>(&self, error: Error, when: &str) -> Result<T, Error> {
        let reason = reason(&error, when);
        self.ledger()?.bar(&self.id(), &self.towards, &reason)?;
        Err(error)
    }

    /// How things stand after a release that broke off: what was spent, what is held, and what to do next.
    fn left(&self) -> Result<String, Error> {
        let (id, ledger, what) = (self.debit.release_id, self.ledger()?, self.debit.what());
        if ledger.outputs(&id)?.is_some() {
            return Ok(format!("Spent: {what}. Held: the result. {AGAIN} nothing more is charged"));
        }
        let stage = ledger.transcript(&id, self.side)?.map(|record| TranscriptStage::of(&record));
        if stage.is_some_and(|stage| stage >= TranscriptStage::Named) {
            return Ok(format!(
                "Spent: {what}, for the index of its noise was named, and the viewer may have the result. \
                 Held: what was said, and no share. Nothing goes on from there: each side's operator looks \
                 into it, and {} lets the next attempt begin, with new noise and a new charge",
                allow_command(ledger.path(), &self.towards)
            ));
        }
        Ok(match (ledger.is_charged(&self.debit)?, stage) {
            (true, _) => format!(
                "Charged and not spent: {what}; no index was named, and nobody knows the result. Held: the \
                 seeds of the noise. {AGAIN} the same noise is entered, and nothing more is charged"
            ),
            (false, Some(_)) => format!(
                "Spent on this release: nothing; nobody knows the result. Held: what fixes its noise. \
                 {AGAIN} the same noise is entered. Of releases that stop so with one peer, the third asks \
                 this side's operator"
            ),
            (false, None) => format!(
                "Spent on this release: nothing; nobody knows the result, and nothing is held. {AGAIN} it is \
                 computed anew"
            ),
        })
    }
}

/// Why a release is barred that stopped after its index was named.
fn reason(error: &Error, when: &str) -> String {
    match error.kind() {
        Fault::Channel(e) => format!("silence after the noise index was named, {when}: {e}"),
        Fault::Deviated(check) => format!("deviation {when}: {check}"),
        Fault::Malformed(what) => format!("deviation {when}: malformed {what}"),
        _ => format!("interrupted on this side {when}"),
    }
}

/// The bits of all candidates but the chosen one.
fn others(plan: &ReleasePlan, chosen: usize) -> Vec<Range<usize>> {
    (0..plan.candidates.len()).filter(|j| *j != chosen).map(|j| plan.noise_of(j)).collect()
}

/// Opens bits of this side's share, and proves that they are what was computed.
fn prove(
    plan: &ReleasePlan,
    left: &OutputShares,
    ranges: impl IntoIterator<Item = Range<usize>>,
    peer: PartyId,
    session: &mut Session,
) -> Result<(), Error> {
    debug_assert_eq!(plan.viewer.only(), Some(peer), "the viewer is shown its outputs");
    let (mut bits, mut hasher) = (Vec::new(), blake3::Hasher::new_derive_key(PROOFS));
    for range in ranges {
        let own = left.bits(range.clone());
        hasher.update(&left.proof()?.digest(range, &own));
        bits.extend(own);
    }
    session.link(peer).send(&outputs::pack(&bits))?;
    session.link(peer).send(hasher.finalize().as_bytes())?;
    session.link(peer).flush()
}

/// Hears the peer's share of some bits and what proves it; the bits.
fn proven(
    left: &OutputShares,
    ranges: impl IntoIterator<Item = Range<usize>>,
    peer: PartyId,
    session: &mut Session,
) -> Result<Vec<bool>, Error> {
    let ranges: Vec<Range<usize>> = ranges.into_iter().collect();
    let count: usize = ranges.iter().map(Range::len).sum();
    let mut theirs = vec![0; count.div_ceil(8)];
    session.link(peer).recv(&mut theirs)?;
    let proof: [u8; DIGEST_BYTES] = session.link(peer).recv_array()?;
    let mut hasher = blake3::Hasher::new_derive_key(PROOFS);
    let mut bits = Vec::with_capacity(count);
    for range in ranges {
        let at = bits.len();
        let mine = left.bits(range.clone());
        let own = mine.iter().enumerate().map(|(i, bit)| bit ^ outputs::bit(&theirs, at + i));
        let values: Vec<bool> = own.collect();
        hasher.update(&left.proof()?.digest(range, &values));
        bits.extend(values);
    }
    if !bool::from(hasher.finalize().as_bytes()[..].ct_eq(&proof)) {
        return Err(session.link(peer).blame("what it opens is not what it entered and computed"));
    }
    Ok(bits)
}

fn refused(session: &Session, peer: PartyId) -> Error {
    let text = "the peer's privacy ledger does not allow this release: its budget is spent or the release is \
                barred there; see the peer's own output";
    Error::new(session.at(Some(peer)), Fault::Refused(text.into()))
}

fn damaged() -> Error {
    Error::input("the noise transcript in the ledger is damaged")
}

/// Shows where it stands and nothing of the noise.
impl std::fmt::Debug for CandidateNoise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Noise").field("side", &self.side).finish_non_exhaustive()
    }
}
