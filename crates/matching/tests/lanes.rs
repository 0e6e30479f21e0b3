//! Units of Private-ID over lanes, with columns in a state: the spine of one session, whatever fails; and
//! what a peer may not ask in a second attempt.

mod common;

use base::{Error, Fault, PartyId};
use common::{Column, expected_union, ids};
use matching::pid::{
    self, LaneBegun, LaneDone, LaneNotes, LaneStage, LaneStore, LaneTask, LaneWork, UnitCrew,
};
use matching::spill::SpillRoom;
use matching::{MatchOptions, Matcher, PairSizes, PrivateId};
use net::cluster::Cluster;
use net::{InjectedFault, Session};
use std::collections::HashMap;
use std::sync::{Barrier, Mutex};
use store::{SealedStore, StateKey, StateStore, StoreOptions};

/// A lane whose sender fails at a step.
type LaneFault = (u8, &'static str, InjectedFault);

/// Lanes of both parties, one after the other: one that failed is not used again.
struct Lanes {
    open: Mutex<HashMap<usize, [Option<Session>; 2]>>,
    faults: Vec<LaneFault>,
    /// Where both say what came of an attempt, and hear it.
    said: [Mutex<Outcome>; 2],
    meet: Barrier,
}

/// What came of an attempt: the worst of both sides is that of the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Done,
    Again,
    Over,
}

impl Outcome {
    fn of(done: &Result<LaneDone, Error>) -> Self {
        match done {
            Ok(_) => Self::Done,
            Err(error) if matches!(error.kind(), Fault::Channel(_)) => Self::Again,
            Err(_) => Self::Over,
        }
    }
}

impl Lanes {
    fn new(faults: Vec<LaneFault>) -> Self {
        let said = [Mutex::new(Outcome::Done), Mutex::new(Outcome::Done)];
        Self { open: Mutex::default(), faults, said, meet: Barrier::new(2) }
    }

    fn lane(&self, me: PartyId, number: usize) -> Session {
        let mut open = self.open.lock().unwrap();
        let made = open.entry(number).or_insert_with(|| {
            let cluster = Cluster::new(2, 1000 + number as u64);
            let cluster = match self.faults.get(number) {
                Some((party, step, fault)) => cluster.fault(PartyId(*party), *step, *fault),
                None => cluster,
            };
            let both: [Session; 2] = cluster.sessions().try_into().ok().expect("two parties");
            both.map(Some)
        });
        made[me.index()].take().expect("a lane is used once")
    }

    /// What came of it at both.
    fn both(&self, me: PartyId, own: Outcome) -> Outcome {
        *self.said[me.index()].lock().unwrap() = own;
        self.meet.wait();
        let [a, b] = self.said.each_ref().map(|said| *said.lock().unwrap());
        self.meet.wait();
        a.max(b)
    }
}

/// What a party has written down of a match, which the next meeting goes on with.
struct Kept {
    store: LaneStore,
    state: StateStore,
    begun: Option<LaneBegun>,
    notes: LaneNotes,
    /// By stage, unit and number within it; those of a whole stage have no unit.
    pins: HashMap<(LaneStage, Option<u32>, u8), [u8; 32]>,
    done: HashMap<(LaneStage, u32), LaneDone>,
    sealed: Vec<LaneStage>,
    said: net::Traffic,
    attempts: usize,
}

impl Kept {
    fn new(me: PartyId, folder: &std::path::Path) -> Self {
        let place = folder.join(format!("state {}", me.0));
        let state = StateStore::open(place.to_str().unwrap(), &StoreOptions::default()).unwrap();
        let sealed = SealedStore::new(state.clone(), &StateKey::fresh(), &[me.0; 32], "match");
        let (begun, notes, sealed_stages) = (None, LaneNotes::default(), Vec::new());
        Self {
            store: LaneStore::new(sealed, "match"),
            state,
            begun,
            notes,
            pins: HashMap::new(),
            done: HashMap::new(),
            sealed: sealed_stages,
            said: net::Traffic::default(),
            attempts: 0,
        }
    }
}

struct Crew<'a> {
    me: PartyId,
    lanes: &'a Lanes,
    /// How many there are, as far as partitions hang on it.
    count: u64,
    kept: &'a mut Kept,
    number: usize,
    lane: Option<Session>,
    /// How many attempts it makes before it is killed.
    lives: usize,
}

const KILLED: &str = "it is killed";

impl<'a> Crew<'a> {
    fn new(me: PartyId, lanes: &'a Lanes, (count, lives): (u64, usize), kept: &'a mut Kept) -> Self {
        Self { me, lanes, count, kept, number: 0, lane: None, lives }
    }

    /// None where it is to be made again.
    fn attempt(&mut self, task: &LaneTask) -> Result<Option<LaneDone>, Error> {
        let mut lane = self.lane.take().unwrap_or_else(|| self.lanes.lane(self.me, self.number));
        let room = SpillRoom::new(Some(1), None);
        let (stage, part) = (task.stage(), task.part());
        let Kept { store, pins, attempts, .. } = &mut *self.kept;
        let (folder, mut asked) = (format!("{}-{part}-{attempts}", stage.name()), 0);
        let pin = &mut |promise| {
            asked += 1;
            Ok(*pins.entry((stage, Some(part), asked)).or_insert(promise) == promise)
        };
        let work = LaneWork { store, folder: &folder, threads: 1, room: &room, pin };
        let done = lane.step("pid", |session| task.run(session, work));
        let done = done.and_then(|done| lane.finish().map(|()| done));
        let said = lane.take_traffic();
        // Who has failed leaves, and the other one hears it.
        let left = Some(lane).filter(|_| done.is_ok());
        self.kept.attempts += 1;
        self.lives -= 1;
        let outcome = self.lanes.both(self.me, Outcome::of(&done));
        match (outcome, done) {
            (Outcome::Done, done) => {
                self.lane = left;
                self.kept.said.merge(&said);
                done.map(Some)
            }
            (Outcome::Again, _) => {
                self.number += 1;
                Ok(None)
            }
            (Outcome::Over, done) => done.and_then(|_| Err(Error::misuse("the other side has failed"))),
        }
    }
}

impl UnitCrew for Crew<'_> {
    fn lanes(&self) -> u64 {
        self.count
    }

    fn store(&self) -> &LaneStore {
        &self.kept.store
    }

    fn name(&self) -> [u8; 16] {
        [7; 16]
    }

    fn begun(&mut self) -> Result<Option<LaneBegun>, Error> {
        Ok(self.kept.begun.clone())
    }

    fn begins(&mut self, begun: &LaneBegun) -> Result<(), Error> {
        self.kept.begun = Some(begun.clone());
        Ok(())
    }

    fn keeps(&self) -> bool {
        true
    }

    fn notes(&self) -> LaneNotes {
        self.kept.notes.clone()
    }

    fn note(&mut self, notes: LaneNotes) -> Result<(), Error> {
        self.kept.notes = notes;
        Ok(())
    }

    fn pin(&mut self, stage: LaneStage, told: [u8; 32]) -> Result<bool, Error> {
        Ok(*self.kept.pins.entry((stage, None, 0)).or_insert(told) == told)
    }

    fn is_sealed(&self, stage: LaneStage) -> bool {
        self.kept.sealed.contains(&stage)
    }

    fn run(&mut self, tasks: Vec<LaneTask>) -> Result<Vec<LaneDone>, Error> {
        let (mut all, mut stage) = (Vec::new(), None);
        for task in tasks {
            let at = (task.stage(), task.part());
            stage = Some(task.stage());
            all.push(loop {
                if let Some(done) = self.kept.done.get(&at) {
                    break done.clone();
                }
                if self.lives == 0 {
                    return Err(Error::misuse(KILLED));
                }
                if let Some(done) = self.attempt(&task)? {
                    self.kept.done.insert(at, done);
                }
            });
        }
        self.kept.sealed.extend(stage);
        Ok(all)
    }

    fn forget(&mut self, folder: &str) -> Result<(), Error> {
        for (name, _) in self.kept.state.list(&self.kept.store.folder(folder))? {
            self.kept.state.delete(&name)?;
        }
        Ok(())
    }
}

struct Matched {
    positions: Vec<u32>,
    sent: u64,
    attempts: usize,
}

/// What both parties bring to some meetings over one match.
struct Parties<'a> {
    lists: [&'a [String]; 2],
    options: MatchOptions,
    count: u64,
    kept: [Mutex<Kept>; 2],
    _folder: tempfile::TempDir,
}

impl<'a> Parties<'a> {
    fn new(lists: [&'a [String]; 2], (options, count): (MatchOptions, u64)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kept = [0, 1].map(|me| Mutex::new(Kept::new(PartyId(me), folder.path())));
        Self { lists, options, count, kept, _folder: folder }
    }

    /// One meeting, over lanes of which the first ones have faults, of coordinators who are killed after so
    /// many attempts.
    fn meet(&self, seed: u64, faults: Vec<LaneFault>, lives: usize) -> Vec<Result<Matched, Error>> {
        self.meet_in(Cluster::new(2, seed), faults, lives)
    }

    /// The same, with coordinators' sessions of a cluster.
    fn meet_in(&self, cluster: Cluster, faults: Vec<LaneFault>, lives: usize) -> Vec<Result<Matched, Error>> {
        let columns = self.lists.map(Column::new);
        let lanes = Lanes::new(faults);
        cluster.run(|session| {
            let me = session.me();
            let mut kept = self.kept[me.index()].lock().unwrap();
            let mut crew = Crew::new(me, &lanes, (self.count, lives), &mut kept);
            let own = columns[me.index()].flat();
            let done = PrivateId.run_over_lanes(session, &own, &self.options, &mut crew);
            drop(crew);
            let spine = done?.spine()?;
            assert_eq!(spine.rows, expected_union(self.lists[0], self.lists[1]));
            let mut said = session.traffic().clone();
            said.merge(&kept.said);
            let (positions, attempts) = (spine.mine.positions()?, kept.attempts);
            Ok(Matched { positions, sent: said.sent("pid"), attempts })
        })
    }
}

/// Both parties' matches over lanes of which the first ones have faults.
fn over_lanes(
    seed: u64,
    lists: [&[String]; 2],
    (options, count): (&MatchOptions, u64),
    faults: Vec<LaneFault>,
) -> Vec<Result<Matched, Error>> {
    Parties::new(lists, (options.clone(), count)).meet(seed, faults, usize::MAX)
}

fn dealt(partitions: u32) -> MatchOptions {
    MatchOptions { threads: 1, partitions, memory: Some(1), ..MatchOptions::default() }
}

/// The same in one session.
fn in_one(seed: u64, lists: [&[String]; 2]) -> Vec<Vec<u32>> {
    let columns = lists.map(Column::new);
    let done = Cluster::new(2, seed).run(|session| {
        let own = columns[session.me().index()].flat();
        PrivateId.run(session, &own, None, &dealt(1))?.spine()?.mine.positions()
    });
    done.into_iter().map(Result::unwrap).collect()
}

#[test]
fn every_number_of_partitions_gives_the_spine_of_one_session_for_its_price() {
    let lists = [
        [ids(0..0), ids(0..0)],
        [ids(0..1), ids(0..0)],
        [ids(0..40), ids(0..40)],
        [ids(0..130), ids(70..180)],
        [ids(0..9_000), ids(4_000..9_900)],
    ];
    for (seed, [x, y]) in (0..).zip(lists) {
        let sizes = PairSizes::new([x.len() as u64, y.len() as u64], expected_union(&x, &y));
        let whole = in_one(seed, [&x, &y]);
        for (partitions, count) in [(1, 1), (2, 3), (8, 2)] {
            let done = over_lanes(seed, [&x, &y], (&dealt(partitions), count), Vec::new());
            let price = pid::price_over_lanes(sizes, partitions);
            for ((done, whole), price) in done.into_iter().zip(&whole).zip(&price.sent) {
                let done = done.unwrap();
                assert!(done.positions == *whole, "{seed}: {partitions} partitions");
                assert_eq!(done.sent, *price, "{seed}: {partitions} partitions");
                assert_eq!(done.attempts as u32, 3 * partitions);
            }
        }
    }
}

/// Rows of both are dealt to four units for each lane, where these are worth one.
#[test]
fn many_rows_are_units_for_every_lane() {
    let (x, y) = (ids(0..33_000), ids(30_000..66_000));
    for done in over_lanes(3, [&x, &y], (&dealt(1), 2), Vec::new()) {
        // 69,000 elements are two units of 2^15.
        assert_eq!(done.unwrap().attempts, 3 * 2);
    }
}

#[test]
fn a_unit_whose_lane_is_cut_is_done_again_alone() {
    let (x, y) = (ids(0..9_000), ids(4_000..9_900));
    let whole = in_one(7, [&x, &y]);
    let steps = ["pid/u", "pid/v", "pid/e", "pid/difference"];
    for (party, step) in [0, 1].into_iter().flat_map(|party| steps.map(|step| (party, step))) {
        let cut = || (party, step, InjectedFault::Cut);
        let done = over_lanes(7, [&x, &y], (&dealt(4), 1), vec![cut(), cut(), cut()]);
        for (done, whole) in done.into_iter().zip(&whole) {
            let done = done.unwrap();
            assert!(done.positions == *whole, "{party} {step}");
            assert_eq!(done.attempts, 3 * 4 + 3, "{party} {step}");
        }
    }
}

/// A peer that says something else than what it has promised, or promises something else in a second attempt,
/// gets no answer.
#[test]
fn a_peer_asks_in_a_second_attempt_what_it_has_asked() {
    let (x, y) = (ids(0..9_000), ids(4_000..9_900));
    let blamed = |faults: Vec<LaneFault>, victim: usize, check: &str| {
        let done = over_lanes(7, [&x, &y], (&dealt(1), 1), faults);
        let error = done.into_iter().nth(victim).unwrap().err().expect("it is noticed");
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert!(error.to_string().contains(check), "{error}");
    };
    // Of `u` of 9,000 rows in one partition three digests are promised, of 5,900 two; of `e_c` four slices.
    let (said, asked) = ("what it said before that it will say", "in each attempt at a unit");
    let change = |byte| InjectedFault::Corrupt { byte, mask: 1 };
    blamed(vec![(0, "pid/u", change(3 * 32 + 7))], 1, said);
    blamed(vec![(1, "pid/u", change(2 * 32 + 7))], 0, said);
    blamed(vec![(1, "pid/e", change(4 * 32 + 8 + 7))], 0, said);
    blamed(vec![(0, "pid/v", InjectedFault::Cut), (0, "pid/u", change(5))], 1, asked);
    blamed(vec![(1, "pid/v", InjectedFault::Cut), (1, "pid/u", change(5))], 0, asked);
    blamed(vec![(1, "pid/difference", InjectedFault::Cut), (1, "pid/e", change(5))], 0, asked);
}

/// Wherever both coordinators are killed, the next ones go on: no unit is done twice, the spine is the one of
/// one session, and all that counts costs its price.
#[test]
fn a_match_goes_on_where_it_was() {
    let (x, y) = (ids(0..2_000), ids(1_000..2_300));
    let sizes = PairSizes::new([x.len() as u64, y.len() as u64], expected_union(&x, &y));
    let (whole, price) = (in_one(7, [&x, &y]), pid::price_over_lanes(sizes, 4));
    for lives in 0..=12 {
        let mut parties = Parties::new([&x, &y], (dealt(4), 1));
        let killed = parties.meet(7, Vec::new(), lives);
        for error in killed.into_iter().filter_map(Result::err) {
            assert!(error.to_string().contains(KILLED), "{lives}: {error}");
        }
        // Who has less memory by now, and another number of lanes, goes on with the same match.
        (parties.options.peer_rows_max, parties.count) = (1, 64);
        let done = parties.meet(8 + lives as u64, Vec::new(), usize::MAX);
        for ((done, whole), price) in done.into_iter().zip(&whole).zip(&price.sent) {
            let done = done.unwrap_or_else(|error| panic!("{lives}: {error}"));
            assert!(done.positions == *whole, "{lives}");
            assert_eq!((done.attempts, done.sent), (3 * 4, *price), "{lives}");
        }
    }
}

/// Who is cut off while both hash has its own rows hashed all the same, once.
#[test]
fn a_cut_loses_no_hashing() {
    let (x, y) = (ids(0..9_000), ids(4_000..9_900));
    let parties = Parties::new([&x, &y], (dealt(1), 1));
    let cut = Cluster::new(2, 7).fault(PartyId(0), "pid/u", InjectedFault::Cut);
    for error in parties.meet_in(cut, Vec::new(), usize::MAX).into_iter().map(Result::err) {
        assert!(matches!(error.expect("it is cut").kind(), Fault::Channel(_)));
    }
    let notes = || [0, 1].map(|me: usize| parties.kept[me].lock().unwrap().notes.clone());
    let hashed = notes();
    assert!(hashed.iter().all(|notes| notes.hashed_names().count() > 0), "{hashed:?}");
    assert!(parties.meet(8, Vec::new(), 0).iter().all(Result::is_err));
    assert_eq!(notes(), hashed);
    let whole = in_one(7, [&x, &y]);
    for (done, whole) in parties.meet(9, Vec::new(), usize::MAX).into_iter().zip(whole) {
        assert!(done.unwrap().positions == whole);
    }
}

/// What a peer asked before a cut binds it after it, and own rows are those that the keys were for.
#[test]
fn a_peer_asks_after_a_cut_what_it_has_asked() {
    let (x, y) = (ids(0..9_000), ids(4_000..9_900));
    let change = |byte| InjectedFault::Corrupt { byte, mask: 1 };
    for (party, cut, (step, byte)) in
        [(0, "pid/v", ("pid/u", 5)), (1, "pid/v", ("pid/u", 5)), (1, "pid/difference", ("pid/e", 5))]
    {
        let parties = Parties::new([&x, &y], (dealt(1), 1));
        let lives = if step == "pid/e" { 2 } else { 1 };
        let cut = parties.meet(7, vec![(party, cut, InjectedFault::Cut)], lives);
        assert!(cut.iter().all(Result::is_err), "{step}");
        let done = parties.meet(9, vec![(party, step, change(byte))], usize::MAX);
        let victim = done.into_iter().nth(usize::from(1 - party)).unwrap();
        let error = victim.err().expect("it is noticed");
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert!(error.to_string().contains("in each attempt at a unit"), "{error}");
    }
    let mut parties = Parties::new([&x, &y], (dealt(1), 1));
    drop(parties.meet(7, Vec::new(), 0));
    for kept in &parties.kept {
        let mut kept = kept.lock().unwrap();
        kept.notes = kept.notes.clone().without_hashed();
    }
    let other = ids(1..9_001);
    parties.lists[0] = &other;
    let error = parties.meet(9, Vec::new(), usize::MAX).swap_remove(0).err().expect("rows are others");
    assert!(error.to_string().contains("of other rows"), "{error}");
}
