//! One stage at one party: which attempts are open, what is held, and what follows from what happens.

use crate::record::UnitRecord;
use crate::word::{FailureCause, UnitStanding, Word};

/// Units of a stage.
pub const UNITS: u32 = 4096;
/// Attempts at one unit that may fail while a coordinator lives.
pub const ATTEMPTS: u32 = 64;
/// Failures of one lane on end.
pub const LANE_FAILURES: u32 = 8;
/// The highest floor, however often coordinators begin anew: each attempt that fails burns another number.
const NUMBERS: u32 = 4 * ATTEMPTS;

/// What both parties agree on before a stage begins.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnitsSetting {
    /// Names the run, the same at both.
    pub run: [u8; 32],
    /// Tells stages of a run apart.
    pub stage: u8,
    /// How many units there are: at most [`UNITS`].
    pub units: u32,
    /// How many lanes.
    pub lanes: u16,
    /// Whether this party opens attempts; the other one follows.
    pub leads: bool,
}

/// A result that a party holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldResult {
    /// Of which attempt.
    pub attempt: u32,
    /// The session of the lane over which it was made: the same at both parties.
    pub session: [u8; 32],
    /// What was said in it, where both have to agree on that; else zeros.
    pub transcript: [u8; 32],
    /// The hash of what is in the store.
    pub object: [u8; 32],
    /// Its bytes.
    pub bytes: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitEvent {
    /// There is a connection to the peer's coordinator, on which nothing was said.
    Met,
    /// There is none any more.
    Cut,
    /// The peer said something that is not about lanes, beats or goodbyes.
    Heard(Word),
    /// A lane is there at this side.
    LaneUp(u16),
    /// It is not any more.
    LaneGone(u16, FailureCause),
    /// Own worker has a result, which lies in the store.
    Finished(FinishedAttempt),
    /// Own worker has given an attempt up, or is believed to have.
    GaveUp {
        /// The unit.
        unit: u32,
        /// The attempt.
        attempt: u32,
        /// Why.
        cause: FailureCause,
    },
}

/// A result that own worker has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedAttempt {
    /// Of which unit.
    pub unit: u32,
    /// What is held from now on.
    pub held: HeldResult,
}

/// What is to be done, in order. A driver may gather the records of several steps as long as all of them are
/// on stable storage before it does anything else of those steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitAction {
    /// Put a record on stable storage.
    Write(UnitRecord),
    /// Say a word to the peer.
    Send(Word),
    /// Have own worker of a lane begin an attempt.
    Start {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// Over which lane.
        lane: u16,
    },
    /// Have it leave an attempt that nobody waits for, and the lane, which comes up again.
    Cancel {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// Over which lane.
        lane: u16,
    },
    /// An attempt has failed: for the report.
    Again {
        /// At which unit.
        unit: u32,
        /// Its number.
        attempt: u32,
        /// Why.
        cause: FailureCause,
        /// Whether the peer said so.
        peer: bool,
    },
    /// Both hold every unit, and know it.
    Sealed {
        /// [`UnitMachine::root`].
        root: [u8; 32],
    },
    /// It goes on no more.
    End(UnitFailure),
}

/// Why a stage goes on no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnitFailure {
    /// [`ATTEMPTS`] attempts at a unit have failed.
    Attempts {
        /// The unit.
        unit: u32,
        /// The last one's cause.
        cause: FailureCause,
        /// Whether the peer said so.
        peer: bool,
    },
    /// [`LANE_FAILURES`] attempts over a lane have failed on end.
    Lane {
        /// The lane.
        lane: u16,
        /// The last one's cause.
        cause: FailureCause,
    },
    /// A unit has no number left, after coordinators that began anew so often.
    Numbers {
        /// The unit.
        unit: u32,
    },
    /// The peer does not have a result any more that both counted on when all were sealed.
    Lost {
        /// Its unit.
        unit: u32,
    },
}

/// A word that an honest peer does not say: what was wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnitDeviation(pub &'static str);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct UnitView {
    floor: u32,
    held: Option<HeldResult>,
    peer: UnitStanding,
    /// Session and transcript of what the peer holds, where it has said so on this connection.
    peer_said: Option<([u8; 32], [u8; 32])>,
    /// Whether the floor is a number that was burnt: this side never begins that attempt.
    burnt: bool,
    /// Whether an earlier coordinator had begun the attempt at the floor, and nobody knows how it ended.
    left: bool,
    /// The lane of the attempt at the floor, from its opening on this connection until it fails.
    open: Option<u16>,
    /// Whether own worker is at it.
    running: bool,
    failures: u32,
    /// Whether a test has what is held below the floor count.
    #[cfg(test)]
    pub(crate) below: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct LaneView {
    up: bool,
    /// The unit of the attempt that has it.
    busy: Option<u32>,
    failures: u32,
}

/// How a stage stands at one party.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnitMachine {
    setting: UnitsSetting,
    units: Vec<UnitView>,
    lanes: Vec<LaneView>,
    /// Whether there is a connection, and what the peer has said of its units on it.
    met: bool,
    told: bool,
    seal: Option<[u8; 32]>,
    /// Whether this connection has heard of it.
    seal_said: bool,
    /// Whether the peer has said that it has sealed, too.
    both: bool,
    /// The rules that a test takes away.
    #[cfg(test)]
    without: Vec<UnitRule>,
}

/// What keeps both sides together. A test takes each away in turn, and sees what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UnitRule {
    /// An attempt is written down before it is opened or begins, so that its number is used once.
    WriteFirst,
    /// An attempt that is opened has a number above both floors. What fails is burnt at either side, so that
    /// a floor was never begun: this rule and those of burning stand in for each other, too.
    OwnNumber,
    /// A result counts at the floor alone.
    #[cfg(test)]
    HeldAtFloor,
    /// A result counts only where its coordinator still waits for it. Alone it does, and so do the next two
    /// together: each is there in case the other fails.
    AwaitedAlone,
    /// What fails is burnt before it is told.
    BurnFailed,
    /// What a party says that it lacks it has burnt before.
    BurnLacking,
    /// The leader seals what both hold.
    SealBoth,
}

type Actions = Vec<UnitAction>;

fn failed_record((unit, attempt): (u32, u32), cause: FailureCause, peer: bool) -> UnitAction {
    UnitAction::Write(UnitRecord::Failed { unit, attempt, cause, peer })
}

impl UnitView {
    /// What counts: a result of the attempt at the floor.
    fn counts(&self) -> Option<&HeldResult> {
        self.held.as_ref().filter(|held| held.attempt == self.floor || self.counts_below())
    }

    #[cfg(not(test))]
    fn counts_below(&self) -> bool {
        false
    }

    #[cfg(test)]
    fn counts_below(&self) -> bool {
        self.below
    }

    /// Opens an attempt over a lane.
    fn open(&mut self, attempt: u32, lane: u16, running: bool) {
        (self.floor, self.burnt, self.left) = (attempt, false, false);
        (self.open, self.running) = (Some(lane), running);
    }

    /// Burns what is at the floor.
    fn burn(&mut self) {
        (self.floor, self.burnt, self.left) = (self.floor + 1, true, false);
    }

    /// What was written down of it, in order, is so again.
    fn recall(&mut self, record: &UnitRecord) {
        match *record {
            UnitRecord::Floor { attempt, .. } => (self.floor, self.burnt, self.left) = (attempt, false, true),
            UnitRecord::Held { held, .. } => self.held = Some(held),
            UnitRecord::Failed { attempt, .. } => {
                self.burnt |= attempt + 1 == self.floor;
                self.left &= !self.burnt && attempt != self.floor;
            }
            UnitRecord::Seal { .. } => {}
        }
    }

    /// The peer has nothing, and has come to a floor.
    fn peer_is_at(&mut self, floor: u32) {
        self.peer = UnitStanding { floor, ..UnitStanding::default() };
        self.peer_said = None;
    }

    /// Whether both hold results of one attempt, as far as both have said.
    fn is_done(&self) -> bool {
        let same = |held: &HeldResult| {
            let UnitStanding { floor, held: theirs, session } = self.peer;
            (floor == held.attempt || self.counts_below())
                && theirs == held.attempt
                && session == held.session[..8]
        };
        self.counts().is_some_and(same)
    }

    fn standing(&self) -> UnitStanding {
        let held = self.counts();
        let session = held.map_or([0; 8], |held| held.session[..8].try_into().expect("eight bytes"));
        UnitStanding { floor: self.floor, held: held.map_or(0, |held| held.attempt), session }
    }
}

impl UnitMachine {
    /// How a stage stands whose records are these: none where it begins.
    #[must_use]
    pub fn new(setting: UnitsSetting, records: &[UnitRecord]) -> Self {
        let units = vec![UnitView::default(); setting.units as usize];
        let lanes = vec![LaneView::default(); setting.lanes.into()];
        let (met, told, seal_said, both) = (false, false, false, false);
        let mut state = Self {
            setting,
            units,
            lanes,
            met,
            told,
            seal: None,
            seal_said,
            both,
            #[cfg(test)]
            without: Vec::new(),
        };
        for record in records {
            match *record {
                UnitRecord::Seal { root } => state.seal = Some(root),
                UnitRecord::Floor { unit, .. }
                | UnitRecord::Held { unit, .. }
                | UnitRecord::Failed { unit, .. } => {
                    state.units.get_mut(unit as usize).into_iter().for_each(|unit| unit.recall(record));
                }
            }
        }
        state
    }

    /// What both hold where all is done: a hash over run, stage, and of every unit attempt, session and
    /// transcript.
    #[must_use]
    pub fn root(&self) -> Option<[u8; 32]> {
        let mut hash = blake3::Hasher::new_derive_key("tacit 2026-12 seal of units v1");
        hash.update(&self.setting.run).update(&[self.setting.stage]);
        for (number, unit) in (0u32..).zip(&self.units) {
            let held = unit.counts()?;
            hash.update(&number.to_le_bytes()).update(&held.attempt.to_le_bytes());
            hash.update(&held.session).update(&held.transcript);
        }
        Some(*hash.finalize().as_bytes())
    }

    /// Goes on without some rules.
    #[cfg(test)]
    pub(crate) fn take_away(&mut self, rules: &[UnitRule]) {
        self.without = rules.to_vec();
        let below = rules.contains(&UnitRule::HeldAtFloor);
        self.units.iter_mut().for_each(|unit| unit.below = below);
    }

    /// Begins to count failures anew.
    #[cfg(test)]
    pub(crate) fn forget_failures(&mut self) {
        self.units.iter_mut().for_each(|unit| unit.failures = 0);
        self.lanes.iter_mut().for_each(|lane| lane.failures = 0);
    }

    #[cfg(not(test))]
    fn keeps(&self, _: UnitRule) -> bool {
        true
    }

    #[cfg(test)]
    fn keeps(&self, rule: UnitRule) -> bool {
        !self.without.contains(&rule)
    }

    /// What this party holds of a unit, if that counts.
    #[must_use]
    pub fn held(&self, unit: u32) -> Option<&HeldResult> {
        self.units.get(unit as usize)?.counts()
    }

    /// How many units both hold, as far as both have said.
    #[must_use]
    pub fn done(&self) -> u32 {
        self.units.iter().filter(|unit| unit.is_done()).count() as u32
    }

    /// Takes a step: what has happened, and what is to be done.
    ///
    /// # Errors
    /// When the peer said what an honest one does not say. The state is of no use then.
    pub fn step(&mut self, event: UnitEvent) -> Result<Actions, UnitDeviation> {
        let mut out = Vec::new();
        match event {
            UnitEvent::Met => self.meet(&mut out),
            UnitEvent::Cut => (self.met, self.told) = (false, false),
            UnitEvent::Heard(word) => self.hear(word, &mut out)?,
            UnitEvent::LaneUp(lane) => self.lane_up(lane),
            UnitEvent::LaneGone(lane, cause) => self.lane_gone(lane, cause, &mut out),
            UnitEvent::Finished(FinishedAttempt { unit, held }) => self.finish(unit, held, &mut out)?,
            UnitEvent::GaveUp { unit, attempt, cause } => self.give_up((unit, attempt), cause, &mut out),
        }
        self.lead(&mut out);
        Ok(out)
    }

    /// Begins on a new connection: what this party says that it lacks it has burnt before.
    fn meet(&mut self, out: &mut Actions) {
        let burns = self.seal.is_none() && self.keeps(UnitRule::BurnLacking);
        (self.met, self.told, self.seal_said) = (true, false, false);
        let mut lost = Vec::new();
        for (number, unit) in (0..).zip(&mut self.units) {
            let open = unit.open.take();
            if let (Some(lane), true) = (open, std::mem::take(&mut unit.running)) {
                out.push(UnitAction::Cancel { unit: number, attempt: unit.floor, lane });
            }
            if !burns || unit.floor == 0 || unit.counts().is_some() {
                continue;
            }
            let failed = Some(unit.floor).filter(|_| open.is_some() || unit.left);
            if !unit.burnt {
                unit.burn();
                out.push(UnitAction::Write(UnitRecord::Floor { unit: number, attempt: unit.floor }));
            }
            if let Some(attempt) = failed {
                out.push(failed_record((number, attempt), FailureCause::LaneCut, false));
                lost.push((number, attempt));
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.busy = None);
        // Who cuts connections sees no more attempts than who cuts lanes.
        lost.into_iter().for_each(|lost| self.count(lost, FailureCause::LaneCut, false, out));
        if let Some(unit) = (0..).zip(&self.units).find(|(_, unit)| unit.floor > NUMBERS) {
            out.push(UnitAction::End(UnitFailure::Numbers { unit: unit.0 }));
        }
        let units = self.units.iter().map(UnitView::standing).collect();
        let UnitsSetting { run, stage, .. } = self.setting;
        out.push(UnitAction::Send(Word::State { run, stage, units }));
    }

    fn hear(&mut self, word: Word, out: &mut Actions) -> Result<(), UnitDeviation> {
        let deviates = |what| Err(UnitDeviation(what));
        if let Word::State { run, stage, units } = word {
            let UnitsSetting { run: ours, stage: own, units: count, .. } = self.setting;
            if self.told || run != ours || stage != own || units.len() != count as usize {
                return deviates("that it tells once how its units of this stage stand");
            }
            if units.iter().any(|said| said.floor > NUMBERS || said.held > said.floor) {
                return deviates("that its attempts are as many as there can be");
            }
            self.units.iter_mut().zip(units).for_each(|(unit, said)| {
                (unit.peer, unit.peer_said) = (said, None);
            });
            self.told = true;
            let lost = |unit: &UnitView| unit.counts().is_some_and(|held| held.attempt != unit.peer.held);
            if let (Some(_), Some(unit)) = (self.seal, self.units.iter().position(lost)) {
                out.push(UnitAction::End(UnitFailure::Lost { unit: unit as u32 }));
            }
            return Ok(());
        }
        if !self.told {
            return deviates("that it first tells how its units stand");
        }
        match word {
            Word::Open { unit, attempt, lane } => self.hear_open((unit, attempt, lane), out),
            Word::Opened { unit, attempt, lane } => {
                let known = self.unit(unit)?;
                if known.floor == attempt && known.open == Some(lane) && !known.running {
                    known.running = true;
                    out.push(UnitAction::Start { unit, attempt, lane });
                }
                Ok(())
            }
            Word::Have { unit, attempt, session, transcript } => {
                self.hear_have((unit, attempt), session, transcript, out)
            }
            Word::Failed { unit, floor, cause } => self.hear_failed((unit, floor), cause, out),
            Word::Seal { root } => self.hear_seal(root, out),
            Word::Sealed { root } => {
                if self.seal != Some(root) || !self.setting.leads {
                    return deviates("that both seal the same");
                }
                self.seal_both(root, out);
                Ok(())
            }
            _ => deviates("that a word is about units"),
        }
    }

    fn unit(&mut self, unit: u32) -> Result<&mut UnitView, UnitDeviation> {
        self.units.get_mut(unit as usize).ok_or(UnitDeviation("that a unit is one of the stage"))
    }

    fn hear_open(
        &mut self,
        (number, attempt, lane): (u32, u32, u16),
        out: &mut Actions,
    ) -> Result<(), UnitDeviation> {
        if self.setting.leads {
            return Err(UnitDeviation("that one side alone opens attempts"));
        }
        if self.seal.is_some() || self.unit(number)?.is_done() {
            return Err(UnitDeviation("that a finished unit is not opened again"));
        }
        if attempt >= NUMBERS || lane >= self.setting.lanes {
            return Err(UnitDeviation("that attempts and lanes are as many as agreed"));
        }
        let lowest = self.unit(number)?.floor + u32::from(self.keeps(UnitRule::OwnNumber));
        if attempt < lowest {
            // It crossed with a word that says so.
            return Ok(());
        }
        // Whatever else this side was doing for the unit the leader has given up. Over the lane own worker
        // may still be ending what the leader's has ended: it begins this one then.
        self.leave(number, out);
        let unit = self.unit(number)?;
        unit.open(attempt, lane, true);
        unit.peer_is_at(attempt);
        self.lanes[usize::from(lane)].busy = Some(number);
        self.write_first(number, attempt, out);
        out.push(UnitAction::Send(Word::Opened { unit: number, attempt, lane }));
        out.push(UnitAction::Start { unit: number, attempt, lane });
        Ok(())
    }

    fn write_first(&self, unit: u32, attempt: u32, out: &mut Actions) {
        if self.keeps(UnitRule::WriteFirst) {
            out.push(UnitAction::Write(UnitRecord::Floor { unit, attempt }));
        }
    }

    fn hear_have(
        &mut self,
        (number, attempt): (u32, u32),
        session: [u8; 32],
        transcript: [u8; 32],
        out: &mut Actions,
    ) -> Result<(), UnitDeviation> {
        let unit = self.unit(number)?;
        if attempt > unit.floor {
            return Err(UnitDeviation("that an attempt is opened before it is finished"));
        }
        if attempt < unit.peer.floor {
            return Ok(());
        }
        let short = session[..8].try_into().expect("eight bytes");
        unit.peer = UnitStanding { floor: attempt, held: attempt, session: short };
        unit.peer_said = Some((session, transcript));
        self.compare((number, attempt), out)
    }

    /// Compares what both hold of an attempt, once they do.
    fn compare(&mut self, (number, attempt): (u32, u32), out: &mut Actions) -> Result<(), UnitDeviation> {
        let unit = self.unit(number)?;
        let held = unit.counts().filter(|held| held.attempt == attempt && unit.peer.held == attempt);
        let Some((held, (session, transcript))) = held.zip(unit.peer_said) else { return Ok(()) };
        match (held.session == session, held.transcript == transcript) {
            (true, true) => Ok(()),
            (true, false) => Err(UnitDeviation("that both saw the same transcript of a unit")),
            // Results of two sessions do not belong together.
            (false, _) => {
                self.burn((number, attempt), FailureCause::LaneCut, out);
                Ok(())
            }
        }
    }

    fn hear_failed(
        &mut self,
        (number, floor): (u32, u32),
        cause: FailureCause,
        out: &mut Actions,
    ) -> Result<(), UnitDeviation> {
        let sealed = self.seal.is_some();
        let unit = self.unit(number)?;
        if floor > NUMBERS || sealed {
            return Err(UnitDeviation("that a unit fails while it may"));
        }
        if floor <= unit.peer.floor {
            return Ok(());
        }
        unit.peer_is_at(floor);
        if unit.floor < floor && unit.open.is_some() {
            let attempt = unit.floor;
            self.leave(number, out);
            out.push(failed_record((number, attempt), cause, true));
            self.count((number, attempt), cause, true, out);
        }
        Ok(())
    }

    fn hear_seal(&mut self, root: [u8; 32], out: &mut Actions) -> Result<(), UnitDeviation> {
        let all = self.seal.is_some() || self.done() == self.setting.units;
        if self.setting.leads || !all || self.root() != Some(root) {
            return Err(UnitDeviation("that what is sealed is what both hold"));
        }
        if self.seal.is_none() {
            self.seal = Some(root);
            out.push(UnitAction::Write(UnitRecord::Seal { root }));
        }
        out.push(UnitAction::Send(Word::Sealed { root }));
        self.seal_both(root, out);
        Ok(())
    }

    fn seal_both(&mut self, root: [u8; 32], out: &mut Actions) {
        if !std::mem::replace(&mut self.both, true) {
            out.push(UnitAction::Sealed { root });
        }
    }

    fn lane_up(&mut self, lane: u16) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            lane.up = true;
        }
    }

    fn lane_gone(&mut self, number: u16, cause: FailureCause, out: &mut Actions) {
        let Some(lane) = self.lanes.get_mut(usize::from(number)) else { return };
        lane.up = false;
        // A follower may have two: one that own worker was about to end, and the next one, which waits.
        for unit in 0..self.setting.units {
            let UnitView { floor, open, .. } = self.units[unit as usize];
            if open == Some(number) {
                self.give_up((unit, floor), cause, out);
            }
        }
    }

    fn finish(&mut self, number: u32, held: HeldResult, out: &mut Actions) -> Result<(), UnitDeviation> {
        let any = !self.keeps(UnitRule::AwaitedAlone);
        let Some(unit) = self.units.get_mut(number as usize) else { return Ok(()) };
        // What nobody waits for any more counts for nothing.
        let awaited = (unit.running || any) && unit.floor == held.attempt;
        if !(awaited || unit.counts_below()) || !self.met {
            return Ok(());
        }
        (unit.held, unit.running) = (Some(held), false);
        if let Some(lane) = unit.open {
            let lane = &mut self.lanes[usize::from(lane)];
            lane.failures = 0;
            lane.busy = lane.busy.filter(|busy| *busy != number);
        }
        let HeldResult { attempt, session, transcript, .. } = held;
        out.push(UnitAction::Write(UnitRecord::Held { unit: number, held }));
        out.push(UnitAction::Send(Word::Have { unit: number, attempt, session, transcript }));
        self.compare((number, attempt), out)
    }

    fn give_up(&mut self, (number, attempt): (u32, u32), cause: FailureCause, out: &mut Actions) {
        let Some(unit) = self.units.get(number as usize) else { return };
        if unit.floor == attempt && unit.open.is_some() && unit.counts().is_none() && self.met {
            self.burn((number, attempt), cause, out);
        }
    }

    /// Burns an attempt, and then says so.
    fn burn(&mut self, (number, attempt): (u32, u32), cause: FailureCause, out: &mut Actions) {
        self.leave(number, out);
        let floor = attempt + 1;
        if self.keeps(UnitRule::BurnFailed) {
            self.units[number as usize].burn();
            out.push(UnitAction::Write(UnitRecord::Floor { unit: number, attempt: floor }));
        }
        out.push(failed_record((number, attempt), cause, false));
        out.push(UnitAction::Send(Word::Failed { unit: number, floor, cause }));
        self.count((number, attempt), cause, false, out);
    }

    /// Has nothing more to do with what is open of a unit. A worker at it leaves the lane as well: what comes
    /// next would fail over it, and waits until the lane is there again.
    fn leave(&mut self, number: u32, out: &mut Actions) {
        let unit = &mut self.units[number as usize];
        let Some(lane) = unit.open.take() else { return };
        let known = &mut self.lanes[usize::from(lane)];
        if std::mem::take(&mut unit.running) {
            known.up = false;
            out.push(UnitAction::Cancel { unit: number, attempt: unit.floor, lane });
        }
        if known.busy == Some(number) {
            known.busy = None;
            known.failures += 1;
        }
    }

    /// Counts a failure, and ends what fails too often.
    fn count(&mut self, (number, attempt): (u32, u32), cause: FailureCause, peer: bool, out: &mut Actions) {
        let unit = &mut self.units[number as usize];
        unit.failures += 1;
        out.push(UnitAction::Again { unit: number, attempt, cause, peer });
        if unit.failures >= ATTEMPTS || cause == FailureCause::Deviation {
            return out.push(UnitAction::End(UnitFailure::Attempts { unit: number, cause, peer }));
        }
        let failing = (0..).zip(&self.lanes).find(|(_, lane)| lane.failures >= LANE_FAILURES);
        if let Some((lane, _)) = failing {
            out.push(UnitAction::End(UnitFailure::Lane { lane, cause }));
        }
    }

    /// What the leader does when it may: opens attempts over lanes that are free, and seals.
    fn lead(&mut self, out: &mut Actions) {
        if !(self.setting.leads && self.met && self.told) {
            return;
        }
        if let Some(root) = self.seal {
            // Said again on every connection.
            if !self.both && !std::mem::replace(&mut self.seal_said, true) {
                out.push(UnitAction::Send(Word::Seal { root }));
            }
            return;
        }
        let own = self.keeps(UnitRule::OwnNumber);
        for lane in 0..self.setting.lanes {
            let view = &self.lanes[usize::from(lane)];
            if !view.up || view.busy.is_some() {
                continue;
            }
            let Some(number) = self.next(lane) else { continue };
            let unit = &mut self.units[number as usize];
            let highest = unit.floor.max(unit.peer.floor);
            let attempt = highest + u32::from(own || highest == 0);
            if attempt >= NUMBERS {
                return out.push(UnitAction::End(UnitFailure::Numbers { unit: number }));
            }
            unit.open(attempt, lane, false);
            self.lanes[usize::from(lane)].busy = Some(number);
            self.write_first(number, attempt, out);
            out.push(UnitAction::Send(Word::Open { unit: number, attempt, lane }));
        }
        if (self.done() == self.setting.units || !self.keeps(UnitRule::SealBoth))
            && let Some(root) = self.root()
        {
            (self.seal, self.seal_said) = (Some(root), true);
            out.push(UnitAction::Write(UnitRecord::Seal { root }));
            out.push(UnitAction::Send(Word::Seal { root }));
        }
    }

    /// The unit that a lane takes next: one of its own while there is one, then anybody's.
    fn next(&self, lane: u16) -> Option<u32> {
        let waits = |unit: &UnitView| unit.open.is_none() && !unit.is_done();
        let mut waiting = (0..).zip(&self.units).filter(|(_, unit)| waits(unit)).map(|(number, _)| number);
        let first = waiting.clone().next();
        let own = |number: &u32| number % u32::from(self.setting.lanes) == u32::from(lane);
        waiting.find(own).or(first)
    }
}
