//! Limits, deviations and records of the machine, each by itself.

use crate::record::UnitRecord;
use crate::state::{
    ATTEMPTS, FinishedAttempt, HeldResult, LANE_FAILURES, UnitAction, UnitDeviation, UnitEvent, UnitFailure,
    UnitMachine, UnitsSetting,
};
use crate::word::{FailureCause, UnitStanding, Word};
use std::collections::VecDeque;

const CAUSE: FailureCause = FailureCause::LaneCut;

fn setting(units: u32, lanes: u16, leads: bool) -> UnitsSetting {
    UnitsSetting { run: [1; 32], stage: 1, units, lanes, leads }
}

fn side(units: u32, lanes: u16, leads: bool) -> UnitMachine {
    UnitMachine::new(setting(units, lanes, leads), &[])
}

fn result(attempt: u32, session: u8, transcript: u8) -> HeldResult {
    let (session, transcript) = ([session; 32], [transcript; 32]);
    HeldResult { attempt, session, transcript, object: [0; 32], bytes: 0 }
}

fn finished(unit: u32, held: HeldResult) -> UnitEvent {
    UnitEvent::Finished(FinishedAttempt { unit, held })
}

fn have(unit: u32, HeldResult { attempt, session, transcript, .. }: HeldResult) -> UnitEvent {
    UnitEvent::Heard(Word::Have { unit, attempt, session, transcript })
}

/// Two coordinators and the words between them; workers do as a test says.
struct Pair {
    units: u32,
    lanes: u16,
    sides: [UnitMachine; 2],
    records: [Vec<UnitRecord>; 2],
    /// By side what was begun.
    begun: [Vec<(u32, u32, u16)>; 2],
    ended: Option<UnitFailure>,
    sealed: [Option<[u8; 32]>; 2],
}

impl Pair {
    fn new(units: u32, lanes: u16) -> Self {
        let sides = [side(units, lanes, true), side(units, lanes, false)];
        let (records, begun) = (Default::default(), Default::default());
        Self { units, lanes, sides, records, begun, ended: None, sealed: [None; 2] }
    }

    /// Tells a side, and both whatever follows from it.
    fn tell(&mut self, party: usize, event: UnitEvent) {
        let mut events = VecDeque::from([(party, event)]);
        while let Some((party, event)) = events.pop_front() {
            for action in self.sides[party].step(event).expect("both are honest") {
                match action {
                    UnitAction::Write(record) => self.records[party].push(record),
                    UnitAction::Send(word) => events.push_back((1 - party, UnitEvent::Heard(word))),
                    UnitAction::Start { unit, attempt, lane } => {
                        self.begun[party].push((unit, attempt, lane))
                    }
                    UnitAction::Sealed { root } => self.sealed[party] = Some(root),
                    UnitAction::End(failure) => return self.ended = Some(failure),
                    UnitAction::Cancel { .. } | UnitAction::Again { .. } => {}
                }
            }
        }
    }

    /// Other processes take over, by what was written down.
    fn begin_anew(&mut self) {
        for party in 0..2 {
            self.sides[party] =
                UnitMachine::new(setting(self.units, self.lanes, party == 0), &self.records[party]);
        }
    }

    /// Attempts of which a side has written down that they came to nothing.
    fn failed(&self, party: usize) -> Vec<u32> {
        let failed = |record: &UnitRecord| match record {
            UnitRecord::Failed { attempt, .. } => Some(*attempt),
            _ => None,
        };
        self.records[party].iter().filter_map(failed).collect()
    }

    /// Both have a new connection, and hear each other.
    fn meet(&mut self) {
        // What is said in a step of Met is heard once both have met.
        let said: Vec<_> = (0..2).map(|party| self.sides[party].step(UnitEvent::Met).unwrap()).collect();
        for (party, actions) in said.into_iter().enumerate() {
            for action in actions {
                match action {
                    UnitAction::Write(record) => self.records[party].push(record),
                    UnitAction::Send(word) => self.tell(1 - party, UnitEvent::Heard(word)),
                    UnitAction::End(failure) => return self.ended = Some(failure),
                    _ => {}
                }
            }
        }
    }
}

/// A link that is cut again and again ends a run by its limits: nobody accuses anybody.
#[test]
fn meeting_again_and_again_ends_at_the_limit() {
    let mut pair = Pair::new(2, 1);
    pair.tell(0, UnitEvent::LaneUp(0));
    for _ in 0..1000 {
        pair.meet();
        if pair.ended.is_some() {
            break;
        }
        (0..2).for_each(|party| pair.tell(party, UnitEvent::Cut));
    }
    assert_eq!(pair.ended, Some(UnitFailure::Attempts { unit: 0, cause: CAUSE, peer: false }));
    assert_eq!(pair.begun.map(|begun| begun.len()), [ATTEMPTS as usize; 2]);
}

/// A coordinator that begins anew again and again does not know how often it has failed: numbers end it.
#[test]
fn crashing_again_and_again_ends_too() {
    let mut pair = Pair::new(1, 1);
    for _ in 0..1000 {
        pair.begin_anew();
        pair.tell(0, UnitEvent::LaneUp(0));
        pair.meet();
        if pair.ended.is_some() {
            break;
        }
    }
    assert_eq!(pair.ended, Some(UnitFailure::Numbers { unit: 0 }));
    let numbers: Vec<u32> = pair.begun[0].iter().map(|(_, attempt, _)| *attempt).collect();
    assert!(numbers.windows(2).all(|two| two[0] < two[1]) && numbers.len() > ATTEMPTS as usize);
    for party in 0..2 {
        let begun: Vec<u32> = pair.begun[party].iter().map(|(_, attempt, _)| *attempt).collect();
        assert_eq!(pair.failed(party), begun, "each is written down once");
    }
}

/// Coordinators that begin anew and begin no attempt burn no numbers, and count no failures.
#[test]
fn beginning_anew_burns_what_was_begun_and_no_more() {
    let mut pair = Pair::new(1, 1);
    pair.tell(0, UnitEvent::LaneUp(0));
    pair.meet();
    assert_eq!(pair.begun.each_ref().map(Vec::len), [1, 1]);
    for _ in 0..5 {
        pair.begin_anew();
        pair.meet();
        for party in 0..2 {
            let last = pair.records[party].iter().rev().find(|r| matches!(r, UnitRecord::Floor { .. }));
            assert_eq!(last, Some(&UnitRecord::Floor { unit: 0, attempt: 2 }));
            assert_eq!(pair.failed(party), [1]);
        }
    }
    pair.tell(0, UnitEvent::LaneUp(0));
    assert_eq!(pair.begun[0].last(), Some(&(0, 3, 0)));
}

/// A side whose store loses what both sealed deviates from nothing: the other one says what is gone.
#[test]
fn a_sealed_result_that_one_side_lost_ends_the_run() {
    let mut pair = Pair::new(2, 1);
    pair.tell(0, UnitEvent::LaneUp(0));
    pair.meet();
    for unit in 0..2u8 {
        (0..2).for_each(|party| pair.tell(party, finished(unit.into(), result(1, 1 + unit, 0))));
    }
    assert!(pair.sealed[0].is_some() && pair.ended.is_none());
    // The follower comes back without the seal, which it had not written, and without a result.
    pair.records[1]
        .retain(|record| !matches!(record, UnitRecord::Held { unit: 1, .. } | UnitRecord::Seal { .. }));
    for party in 0..2 {
        let setting = UnitsSetting { run: [1; 32], stage: 1, units: 2, lanes: 1, leads: party == 0 };
        pair.sides[party] = UnitMachine::new(setting, &pair.records[party]);
    }
    pair.meet();
    assert_eq!(pair.ended, Some(UnitFailure::Lost { unit: 1 }));
}

/// What was burnt once and waits for a lane is not burnt at every meeting.
#[test]
fn what_waits_is_burnt_once() {
    let mut pair = Pair::new(1, 1);
    pair.tell(0, UnitEvent::LaneUp(0));
    pair.meet();
    pair.tell(1, UnitEvent::GaveUp { unit: 0, attempt: 1, cause: CAUSE });
    (0..2).for_each(|party| pair.tell(party, UnitEvent::LaneGone(0, CAUSE)));
    pair.meet();
    let written = pair.records.clone().map(|records| records.len());
    (0..500).for_each(|_| pair.meet());
    assert_eq!(pair.records.clone().map(|records| records.len()), written);
    assert_eq!(pair.ended, None);
}

/// A worker that is killed costs one attempt: the lane that it had is not used before it is there again,
/// whoever notices first.
#[test]
fn a_lane_that_failed_is_left_until_it_is_there_again() {
    let (unit, attempt, cause) = (0, 1, FailureCause::WorkerGone);
    for event in [UnitEvent::LaneGone(0, cause), UnitEvent::GaveUp { unit, attempt, cause }] {
        for first in 0..2 {
            let mut pair = Pair::new(1, 1);
            pair.tell(0, UnitEvent::LaneUp(0));
            pair.meet();
            pair.tell(first, event.clone());
            assert_eq!(pair.begun.each_ref().map(Vec::len), [1, 1], "nothing is begun over it");
            (0..2).for_each(|party| pair.tell(party, UnitEvent::LaneGone(0, CAUSE)));
            pair.tell(0, UnitEvent::LaneUp(0));
            assert_eq!(pair.begun.each_ref().map(Vec::len), [2, 2]);
            assert_eq!([0, 1].map(|party| pair.failed(party)), [[1], [1]]);
        }
    }
}

#[test]
fn attempts_and_lanes_that_fail_too_often_end() {
    // One unit fails, over one lane after the other.
    let lanes = 16;
    let mut pair = Pair::new(1, lanes);
    pair.meet();
    for failed in 1..=ATTEMPTS {
        assert_eq!(pair.ended, None, "after {}", failed - 1);
        let lane = failed as u16 % lanes;
        pair.tell(0, UnitEvent::LaneUp(lane));
        assert_eq!(pair.begun[0].len(), failed as usize);
        pair.tell(0, UnitEvent::LaneGone(lane, FailureCause::Store));
    }
    assert_eq!(pair.ended, Some(UnitFailure::Attempts { unit: 0, cause: FailureCause::Store, peer: false }));

    // Ever other units fail over one lane.
    let mut pair = Pair::new(2 * LANE_FAILURES, 1);
    pair.tell(0, UnitEvent::LaneUp(0));
    pair.meet();
    for _ in 0..LANE_FAILURES {
        assert_eq!(pair.ended, None);
        let (unit, attempt, _) = *pair.begun[1].last().unwrap();
        pair.tell(1, UnitEvent::GaveUp { unit, attempt, cause: FailureCause::NoProgress });
        pair.tell(0, UnitEvent::LaneUp(0));
    }
    let failure = UnitFailure::Lane { lane: 0, cause: FailureCause::NoProgress };
    assert_eq!(pair.ended, Some(failure));
}

/// Transcripts that differ are a deviation, sessions that differ are not: whoever finished first.
#[test]
fn results_are_compared_in_either_order() {
    for leads in [true, false] {
        for first in [true, false] {
            let seen = |theirs: HeldResult| {
                let mut own = side(1, 1, leads);
                let units = vec![UnitStanding::default()];
                let (unit, attempt, lane) = (0, 1, 0);
                let opening = match leads {
                    true => Word::Opened { unit, attempt, lane },
                    false => Word::Open { unit, attempt, lane },
                };
                let state = Word::State { run: [1; 32], stage: 1, units };
                for event in [UnitEvent::LaneUp(0), UnitEvent::Met, UnitEvent::Heard(state)] {
                    own.step(event).unwrap();
                }
                own.step(UnitEvent::Heard(opening)).unwrap();
                let mut events = [have(0, theirs), finished(0, result(1, 7, 9))];
                if first {
                    events.reverse();
                }
                let [one, two] = events;
                own.step(one).unwrap();
                own.step(two).map(|actions| {
                    let failed = |action: &UnitAction| {
                        matches!(action, UnitAction::Send(Word::Failed { unit: 0, floor: 2, .. }))
                    };
                    (own.done(), actions.iter().any(failed))
                })
            };
            assert_eq!(seen(result(1, 7, 9)), Ok((1, false)));
            assert_eq!(seen(result(1, 8, 9)), Ok((0, true)));
            let other = UnitDeviation("that both saw the same transcript of a unit");
            assert_eq!(seen(result(1, 7, 8)), Err(other));
        }
    }
}

#[test]
fn words_that_an_honest_peer_does_not_say_are_refused() {
    let state = |units: Vec<UnitStanding>| Word::State { run: [1; 32], stage: 1, units };
    let told = state(vec![UnitStanding::default(); 2]);
    let heard = |leads, words: &[Word]| {
        let mut own = side(2, 1, leads);
        own.step(UnitEvent::LaneUp(0)).unwrap();
        own.step(UnitEvent::Met).unwrap();
        let (last, before) = words.split_last().unwrap();
        before.iter().for_each(|word| drop(own.step(UnitEvent::Heard(word.clone())).unwrap()));
        own.step(UnitEvent::Heard(last.clone()))
    };
    let open = |unit, attempt, lane| Word::Open { unit, attempt, lane };
    let root = [3; 32];
    let of = |attempt, held| state(vec![UnitStanding { floor: attempt, held, session: [0; 8] }; 2]);
    let wrong = [
        (false, vec![open(0, 1, 0)]),
        (false, vec![told.clone(), told.clone()]),
        (false, vec![state(vec![UnitStanding::default()])]),
        (false, vec![Word::State { run: [2; 32], stage: 1, units: vec![UnitStanding::default(); 2] }]),
        (false, vec![Word::State { run: [1; 32], stage: 2, units: vec![UnitStanding::default(); 2] }]),
        (false, vec![of(1, 2)]),
        (false, vec![of(u32::MAX, 0)]),
        (true, vec![told.clone(), open(0, 1, 0)]),
        (false, vec![told.clone(), open(2, 1, 0)]),
        (false, vec![told.clone(), open(0, 1, 1)]),
        (false, vec![told.clone(), open(0, u32::MAX, 0)]),
        (false, vec![told.clone(), Word::Opened { unit: 2, attempt: 1, lane: 0 }]),
        (
            false,
            vec![told.clone(), Word::Have { unit: 0, attempt: 1, session: [0; 32], transcript: [0; 32] }],
        ),
        (true, vec![told.clone(), Word::Failed { unit: 0, floor: u32::MAX, cause: CAUSE }]),
        (false, vec![told.clone(), Word::Seal { root }]),
        (true, vec![told.clone(), Word::Sealed { root }]),
        (true, vec![told.clone(), Word::Beat { rows: 1 }]),
    ];
    for (leads, words) in &wrong {
        assert!(heard(*leads, words).is_err(), "{leads} {words:?}");
    }
    // What crossed is none.
    for (leads, word) in [(false, open(0, 0, 0)), (true, Word::Opened { unit: 0, attempt: 9, lane: 0 })] {
        assert!(heard(leads, &[told.clone(), word]).is_ok());
    }
}

/// Lanes take their own units first, and then anybody's; the seal is one of both; records have it all.
#[test]
fn units_are_dealt_and_what_is_written_is_the_state() {
    let mut pair = Pair::new(7, 2);
    (0..2).for_each(|lane| pair.tell(0, UnitEvent::LaneUp(lane)));
    pair.meet();
    // Lane 0 alone gets on.
    let mut order = Vec::new();
    while let Some((unit, attempt, lane)) = pair.begun[0]
        .iter()
        .copied()
        .find(|(unit, _, lane)| (*lane == 0 || order.len() == 6) && !order.contains(unit))
    {
        order.push(unit);
        assert_eq!(lane == 0, order.len() < 7);
        let session = 1 + unit as u8;
        (0..2).for_each(|party| pair.tell(party, finished(unit, result(attempt, session, 0))));
    }
    assert_eq!(order, [0, 2, 4, 6, 3, 5, 1]);
    let roots = pair.sealed.map(Option::unwrap);
    assert_eq!(roots[0], roots[1]);
    for (side, records) in pair.sides.iter().zip(&pair.records) {
        let setting = UnitsSetting { run: [1; 32], stage: 1, units: 7, lanes: 2, leads: true };
        let again = UnitMachine::new(setting.clone(), records);
        assert_eq!(again.root(), Some(roots[0]));
        (0..7).for_each(|unit| assert_eq!(again.held(unit), side.held(unit)));
        // Every part of what is sealed is in the seal.
        let other = UnitsSetting { stage: 2, ..setting.clone() };
        assert_ne!(UnitMachine::new(other, records).root(), Some(roots[0]));
        let mut records = records.clone();
        let held = records.iter_mut().rev().find_map(|record| match record {
            UnitRecord::Held { held, .. } => Some(held),
            _ => None,
        });
        held.unwrap().session[31] ^= 1;
        assert_ne!(UnitMachine::new(setting, &records).root(), Some(roots[0]));
    }
}
