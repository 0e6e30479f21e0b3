//! The machine against everything that can happen to two coordinators and their workers: explored
//! exhaustively where budgets of failures are small, and at random where they are large. The same rules were
//! first explored as a model, without code.

use crate::record::UnitRecord;
use crate::state::{FinishedAttempt, HeldResult, UnitAction, UnitEvent, UnitMachine, UnitRule, UnitsSetting};
use crate::word::{FailureCause, Word};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;

/// How often each kind of failure may happen: crashes by party, cuts, workers by party.
type Budget = [u8; 5];

/// How far a machine without some rules is explored.
const WORLDS: usize = 200_000;

/// A worker at an attempt; its session is 0 until it has met its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Worker {
    party: usize,
    unit: u32,
    attempt: u32,
    lane: u16,
    session: u8,
    /// Whether it has everything, and writes next.
    whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    sides: [Option<UnitMachine>; 2],
    /// On stable storage: the last of each kind and unit.
    records: [Vec<UnitRecord>; 2],
    /// On the way to each.
    words: [VecDeque<Word>; 2],
    connected: bool,
    /// Who has not noticed yet that a connection was cut.
    cut: [bool; 2],
    workers: BTreeSet<Worker>,
    /// Lanes that are gone, by party: whether it has noticed.
    gone: [BTreeMap<u16, bool>; 2],
    sealed: [Option<[u8; 32]>; 2],
    budget: Budget,
}

struct Explorer {
    units: u32,
    lanes: u16,
    without: &'static [UnitRule],
}

/// What is wrong with a world.
type Wrong = String;

impl Explorer {
    fn setting(&self, party: usize) -> UnitsSetting {
        let (run, stage, units, lanes) = ([1; 32], 1, self.units, self.lanes);
        UnitsSetting { run, stage, units, lanes, leads: party == 0 }
    }

    fn begin(&self, budget: Budget) -> World {
        let (records, words, workers) = (Default::default(), Default::default(), BTreeSet::new());
        let (connected, cut, gone, sealed) = (false, [false; 2], Default::default(), [None; 2]);
        World { sides: [None, None], records, words, connected, cut, workers, gone, sealed, budget }
    }

    fn session(session: u8) -> [u8; 32] {
        [session; 32]
    }

    /// Carries out what a side decides.
    fn tell(&self, world: &mut World, party: usize, event: UnitEvent) -> Result<(), Wrong> {
        let Some(side) = &mut world.sides[party] else { return Ok(()) };
        let actions = side.step(event).map_err(|wrong| format!("{party} holds of its peer: {wrong:?}"))?;
        for action in actions {
            match action {
                UnitAction::Write(record) => world.write(party, record)?,
                UnitAction::Send(word) if world.connected => world.words[1 - party].push_back(word),
                UnitAction::Start { unit, attempt, lane } => {
                    let worker = Worker { party, unit, attempt, lane, session: 0, whole: false };
                    if !world.workers.insert(worker) {
                        return Err(format!("{party} starts attempt {attempt} at {unit} twice"));
                    }
                }
                UnitAction::Sealed { root } => {
                    if world.sealed[party].is_some_and(|known| known != root) {
                        return Err("another seal".into());
                    }
                    world.sealed[party] = Some(root);
                    self.check_seal(world)?;
                }
                // A cancelled worker may live on: it is one that is believed dead. Its lane does not; of a
                // follower's nothing depends on that.
                UnitAction::Cancel { lane, .. } if party == 0 => {
                    _ = world.gone[0].entry(lane).or_insert(true)
                }
                UnitAction::Send(_) | UnitAction::Cancel { .. } | UnitAction::Again { .. } => {}
                UnitAction::End(failure) => return Err(format!("{failure:?} after few failures")),
            }
        }
        Ok(())
    }

    /// Who is sealed uses its results: both must have some of the same attempt and session of every unit.
    fn check_seal(&self, world: &World) -> Result<(), Wrong> {
        for unit in 0..self.units {
            let held = |party: usize| {
                world.records[party].iter().rev().find_map(|record| match record {
                    UnitRecord::Held { unit: of, held } if *of == unit => Some((held.attempt, held.session)),
                    _ => None,
                })
            };
            match [held(0), held(1)] {
                [Some(a), Some(b)] if a == b => {}
                held => return Err(format!("sealed over {held:?} of unit {unit}")),
            }
        }
        Ok(())
    }

    /// Every next world, with whether a failure led there.
    fn next(&self, world: &World) -> Result<Vec<(World, bool)>, Wrong> {
        let mut out = Vec::new();
        for party in 0..2 {
            if world.sides[party].is_none() {
                let mut next = world.clone();
                let mut side = UnitMachine::new(self.setting(party), &world.records[party]);
                side.take_away(self.without);
                next.sides[party] = Some(side);
                out.push((next, false));
            }
            if let (Some(_), Some(word)) = (&world.sides[party], world.words[party].front()) {
                let mut next = world.clone();
                next.words[party].pop_front();
                self.tell(&mut next, party, UnitEvent::Heard(word.clone()))?;
                out.push((next, false));
            }
        }
        if !world.connected && world.sides.iter().all(Option::is_some) {
            let mut next = world.clone();
            (next.connected, next.cut, next.words) = (true, [false; 2], Default::default());
            for party in 0..2 {
                self.tell(&mut next, party, UnitEvent::Met)?;
                for lane in 0..self.lanes {
                    if !next.gone[party].contains_key(&lane) {
                        self.tell(&mut next, party, UnitEvent::LaneUp(lane))?;
                    }
                }
            }
            out.push((next, false));
        }
        self.notice(world, &mut out)?;
        for worker in &world.workers {
            self.work(world, *worker, &mut out)?;
        }
        self.fail(world, &mut out);
        Ok(out)
    }

    /// A side notices that its connection was cut, or a lane, or that a lane is there again.
    fn notice(&self, world: &World, out: &mut Vec<(World, bool)>) -> Result<(), Wrong> {
        for party in 0..2 {
            if world.cut[party] {
                let mut next = world.clone();
                next.cut[party] = false;
                next.words[party].clear();
                self.tell(&mut next, party, UnitEvent::Cut)?;
                out.push((next, false));
            }
            for (&lane, &noticed) in &world.gone[party] {
                let mut next = world.clone();
                if !noticed {
                    next.gone[party].insert(lane, true);
                    self.tell(&mut next, party, UnitEvent::LaneGone(lane, FailureCause::LaneCut))?;
                    self.back(&mut next, 1, lane)?;
                } else if world.gone[1 - party].get(&lane) != Some(&false) {
                    self.back(&mut next, party, lane)?;
                } else {
                    continue;
                }
                out.push((next, false));
            }
        }
        Ok(())
    }

    /// A lane that a party knows to be gone is there again. Of a follower's nothing depends on when.
    fn back(&self, world: &mut World, party: usize, lane: u16) -> Result<(), Wrong> {
        if world.gone[party].get(&lane) == Some(&true) {
            world.gone[party].remove(&lane);
            self.tell(world, party, UnitEvent::LaneUp(lane))?;
        }
        Ok(())
    }

    fn work(&self, world: &World, worker: Worker, out: &mut Vec<(World, bool)>) -> Result<(), Wrong> {
        let Worker { party, unit, attempt, session, whole, .. } = worker;
        let same = |other: &&Worker| {
            other.party != party && (other.unit, other.attempt, other.lane) == (unit, attempt, worker.lane)
        };
        let peer = world.workers.iter().find(same);
        let mut without = world.clone();
        without.workers.remove(&worker);
        match (session, whole) {
            (0, _) => match peer {
                Some(peer) if peer.session == 0 => {
                    if party == 0 {
                        without.workers.remove(peer);
                        let used = world.workers.iter().map(|worker| worker.session);
                        let held = world.records.iter().flatten().filter_map(|record| match record {
                            UnitRecord::Held { held, .. } => Some(held.session[0]),
                            _ => None,
                        });
                        let session = used.chain(held).max().unwrap_or(0) + 1;
                        for worker in [worker, *peer] {
                            without.workers.insert(Worker { session, ..worker });
                        }
                        out.push((without, false));
                    }
                }
                // The peer's worker may be about to come: its word is on the way.
                None if world.words[1 - party].iter().any(|word| {
                    matches!(word, Word::Open { unit: u, attempt: a, .. }
                             | Word::Opened { unit: u, attempt: a, .. } if (*u, *a) == (unit, attempt))
                }) => {}
                _ => {
                    self.give_up(&mut without, worker)?;
                    out.push((without, false));
                }
            },
            (_, false) => {
                let finished = world.records[1 - party].iter().any(|record| {
                    matches!(record, UnitRecord::Held { unit: u, held }
                             if (*u, held.attempt, held.session) == (unit, attempt, Self::session(session)))
                });
                if finished || peer.is_some_and(|peer| peer.session == session) {
                    without.workers.insert(Worker { whole: true, ..worker });
                } else {
                    self.give_up(&mut without, worker)?;
                }
                out.push((without, false));
            }
            (_, true) => {
                let session = Self::session(session);
                let held = HeldResult { attempt, session, transcript: [0; 32], object: [0; 32], bytes: 0 };
                self.tell(&mut without, party, UnitEvent::Finished(FinishedAttempt { unit, held }))?;
                out.push((without, false));
            }
        }
        let budget = 3 + party;
        if world.budget[budget] > 0 {
            for lives_on in [false, true] {
                let mut next = world.clone();
                next.budget[budget] -= 1;
                if lives_on {
                    self.give_up(&mut next, worker)?;
                } else {
                    self.die(&mut next, worker)?;
                }
                out.push((next, true));
            }
        }
        Ok(())
    }

    fn give_up(&self, world: &mut World, worker: Worker) -> Result<(), Wrong> {
        let Worker { party, unit, attempt, .. } = worker;
        self.tell(world, party, UnitEvent::GaveUp { unit, attempt, cause: FailureCause::LaneCut })
    }

    /// A worker is no more, with all that it was told to do; its peer notices at its own time.
    fn die(&self, world: &mut World, Worker { party, lane, .. }: Worker) -> Result<(), Wrong> {
        world.workers.retain(|worker| (worker.party, worker.lane) != (party, lane));
        world.gone[party].insert(lane, true);
        world.gone[1 - party].insert(lane, false);
        self.tell(world, party, UnitEvent::LaneGone(lane, FailureCause::WorkerGone))?;
        self.back(world, 1, lane)
    }

    fn fail(&self, world: &World, out: &mut Vec<(World, bool)>) {
        for party in 0..2 {
            if world.sides[party].is_some() && world.budget[party] > 0 {
                for with_workers in [false, true] {
                    let mut next = world.clone();
                    next.budget[party] -= 1;
                    next.leave(party);
                    next.words = Default::default();
                    if with_workers {
                        next.workers.retain(|worker| worker.party != party);
                    }
                    out.push((next, true));
                }
                // Another coordinator of this party takes over, while what this one said is on its way.
                let mut next = world.clone();
                next.budget[party] -= 1;
                next.leave(party);
                next.words[party].clear();
                out.push((next, true));
            }
        }
        if world.connected && world.budget[2] > 0 {
            let mut next = world.clone();
            next.budget[2] -= 1;
            (next.connected, next.cut, next.words) = (false, [true; 2], Default::default());
            out.push((next, true));
        }
    }

    /// Explores everything; how many worlds there are.
    fn explore(&self, budget: Budget) -> Result<usize, Wrong> {
        let begin = Rc::new(self.begin(budget));
        let mut known = HashMap::from([(begin.clone(), 0usize)]);
        let (mut order, mut before) = (vec![begin], vec![Vec::new()]);
        let mut at = 0;
        // What is wrong without a rule shows early.
        while at < order.len() && (self.without.is_empty() || order.len() < WORLDS) {
            for (mut next, failure) in self.next(&Rc::clone(&order[at]))? {
                self.forget(&mut next);
                let next = Rc::new(next);
                let number = *known.entry(Rc::clone(&next)).or_insert_with(|| {
                    order.push(next);
                    before.push(Vec::new());
                    order.len() - 1
                });
                if !failure {
                    before[number].push(at);
                }
            }
            at += 1;
        }
        // From everywhere both seal, if nothing more fails.
        let mut reaches: Vec<bool> = order.iter().map(|world| world.is_over()).collect();
        let mut queue: Vec<usize> = (0..order.len()).filter(|at| reaches[*at]).collect();
        while let Some(at) = queue.pop() {
            for from in &before[at] {
                if !std::mem::replace(&mut reaches[*from], true) {
                    queue.push(*from);
                }
            }
        }
        match reaches.iter().position(|reaches| !reaches) {
            Some(_) if at < order.len() => Ok(order.len()),
            Some(at) => Err(format!("stuck: {:#?}", order[at])),
            None => Ok(order.len()),
        }
    }

    /// Workers of attempts that both have given up tell nothing new, nor do counts far from their limits.
    fn forget(&self, world: &mut World) {
        world.sides.iter_mut().flatten().for_each(UnitMachine::forget_failures);
        if self.without.contains(&UnitRule::HeldAtFloor) {
            return;
        }
        let floor = |party: usize, unit: u32| {
            let floors = world.records[party].iter().filter_map(|record| match record {
                UnitRecord::Floor { unit: of, attempt } if *of == unit => Some(*attempt),
                _ => None,
            });
            floors.max().unwrap_or(0)
        };
        let floors: Vec<u32> = (0..self.units).map(|unit| floor(0, unit).min(floor(1, unit))).collect();
        world.workers.retain(|worker| worker.attempt >= floors[worker.unit as usize]);
    }

    /// One way through, at random.
    fn walk(&self, budget: Budget, mut coin: impl FnMut(usize) -> usize) -> Result<(), Wrong> {
        let mut world = self.begin(budget);
        for _ in 0..5000 {
            if world.is_over() {
                return Ok(());
            }
            let next = self.next(&world)?;
            let wanted = coin(8) == 0;
            let of = |failure: bool| next.iter().filter(move |(_, failed)| *failed == failure);
            let failure = wanted && of(true).next().is_some() || of(false).next().is_none();
            let count = of(failure).count();
            if count == 0 {
                return Err(format!("stuck: {world:#?}"));
            }
            world = of(failure).nth(coin(count)).expect("it is one of them").0.clone();
            self.forget(&mut world);
        }
        Err("no end".into())
    }
}

impl World {
    fn is_over(&self) -> bool {
        self.sealed.iter().all(Option::is_some)
    }

    /// A coordinator is no more. What its peer says until it notices reaches nobody.
    fn leave(&mut self, party: usize) {
        self.sides[party] = None;
        self.gone[party].clear();
        self.cut[party] = false;
        self.cut[1 - party] |= self.connected;
        self.connected = false;
    }

    fn write(&mut self, party: usize, record: UnitRecord) -> Result<(), Wrong> {
        // Of failures that one counts which came after the floor, whatever its cause.
        let record = match record {
            UnitRecord::Failed { unit, attempt, .. } => {
                UnitRecord::Failed { unit, attempt, cause: FailureCause::LaneCut, peer: false }
            }
            record => record,
        };
        let same = |other: &UnitRecord| match (other, &record) {
            (UnitRecord::Floor { unit: a, .. }, UnitRecord::Floor { unit: b, .. })
            | (UnitRecord::Held { unit: a, .. }, UnitRecord::Held { unit: b, .. })
            | (UnitRecord::Failed { unit: a, .. }, UnitRecord::Failed { unit: b, .. })
            | (UnitRecord::Failed { unit: a, .. }, UnitRecord::Floor { unit: b, .. }) => a == b,
            (UnitRecord::Seal { root: a }, UnitRecord::Seal { root: b }) => a == b,
            _ => false,
        };
        if let (UnitRecord::Seal { root }, true) =
            (record, self.records[party].iter().any(|r| matches!(r, UnitRecord::Seal { .. })))
        {
            return Err(format!("{party} seals twice: {root:?}"));
        }
        self.records[party].retain(|other| !same(other));
        self.records[party].push(record);
        self.records[party].sort_by_key(|record| record.encode());
        Ok(())
    }
}

/// Everything that can happen to one unit with few failures of each kind, and to two with fewer.
#[test]
fn everything_that_can_happen_ends_sealed() {
    let mut worlds = 0;
    for (units, lanes, budget) in [
        (1, 1, [1, 1, 0, 1, 1]),
        (1, 1, [0, 0, 1, 1, 1]),
        (1, 1, [1, 1, 1, 0, 0]),
        (1, 2, [1, 0, 0, 1, 0]),
        (2, 1, [0, 0, 1, 0, 0]),
        (2, 2, [0, 1, 0, 0, 0]),
        (2, 2, [0, 0, 0, 1, 0]),
        (2, 1, [0, 0, 0, 0, 1]),
    ] {
        let explorer = Explorer { units, lanes, without: &[] };
        let count = explorer.explore(budget).unwrap_or_else(|wrong| panic!("{units} {budget:?}: {wrong}"));
        println!("{units} units, {lanes} lanes, {budget:?}: {count} worlds");
        worlds += count;
    }
    assert!(worlds > 10_000, "{worlds}");
}

/// Each rule is needed: without it something goes wrong, and is found. Two that stand in for each other are
/// taken away together.
#[test]
fn every_rule_is_needed() {
    use UnitRule::*;
    let rules: [&[UnitRule]; 7] = [
        &[WriteFirst],
        &[OwnNumber, BurnFailed],
        &[OwnNumber, BurnLacking],
        &[HeldAtFloor],
        &[AwaitedAlone, BurnFailed],
        &[AwaitedAlone, BurnLacking],
        &[SealBoth],
    ];
    for without in rules {
        let found = [[0, 0, 1, 1, 1], [1, 1, 0, 1, 1]]
            .into_iter()
            .find_map(|budget| Explorer { units: 1, lanes: 1, without }.explore(budget).err());
        let found = found.unwrap_or_else(|| panic!("nothing is wrong without {without:?}"));
        println!("{without:?}: {}", &found[..found.len().min(100)]);
    }
}

/// Of those two each is enough alone: nothing goes wrong, whatever happens.
#[test]
fn rules_stand_in_for_each_other() {
    use UnitRule::*;
    let rules: [&[UnitRule]; 4] = [&[OwnNumber], &[AwaitedAlone], &[BurnFailed], &[BurnLacking]];
    for without in rules {
        let count = Explorer { units: 1, lanes: 1, without }.explore([0, 0, 1, 1, 1]);
        let count = count.unwrap_or_else(|wrong| panic!("{without:?}: {wrong}"));
        println!("{without:?}: {count} worlds");
        assert!(count < WORLDS, "{without:?} was not explored to its end");
    }
}

/// Many units, many failures: all ends sealed all the same.
#[test]
fn whatever_happens_ends_sealed() {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut coin = |of: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % of as u64) as usize
    };
    for run in 0..10_000 {
        let (units, lanes) = (1 + coin(4) as u32, 1 + coin(3) as u16);
        let budget = [4, 4, 4, 6, 6];
        let explorer = Explorer { units, lanes, without: &[] };
        explorer.walk(budget, &mut coin).unwrap_or_else(|wrong| panic!("run {run}: {wrong}"));
    }
}
