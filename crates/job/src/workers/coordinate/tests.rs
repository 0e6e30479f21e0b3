use super::*;
use crate::kept::tests::{DONE, finish_of, lead, matched, matching, state};
use crate::workers::{COMPUTE, UnitWork, WORD_CHANNELS, WorkerPlace};
use base::{At, ChannelError, PartyId, Roster};
use net::RowProgress;
use std::cell::RefCell;
use units::UnitStanding;

/// A stage of one unit, which nobody does here.
struct OneUnit(u8);

impl UnitsStage for OneUnit {
    fn number(&self) -> u8 {
        self.0
    }

    fn of(&self) -> [u8; 32] {
        [7; 32]
    }

    fn units(&self) -> u32 {
        1
    }

    fn name(&self) -> &'static str {
        "one"
    }

    fn what(&self) -> String {
        String::new()
    }

    fn rows(&self, _: u32) -> u64 {
        1
    }

    fn work(&self, _: u32, _: u32) -> Result<UnitWork, Error> {
        Err(Error::misuse("nobody does it"))
    }
}

fn job<'a>(
    (roster, place): (&'a Roster, &'a WorkerPlace),
    log: Option<RefCell<&'a mut RunLog>>,
) -> UnitsJob<'a> {
    UnitsJob {
        run: [1; 32],
        me: PartyId(0),
        roster,
        lanes: 1,
        engine: None,
        step: "one",
        place,
        host: None,
        allow: &[],
        deadline: Duration::from_secs(60),
        progress: RowProgress::none(),
        events: &|_| (),
        log,
    }
}

/// What this party's coordinator and its peer's say and hear by.
fn words() -> [(WordLink, WordReader); 2] {
    let (mut own, mut peers) = (Vec::new(), Vec::new());
    let deadline = Duration::from_secs(60);
    for _ in 0..WORD_CHANNELS {
        let (mine, theirs) = net::pair(deadline);
        own.push(vec![(PartyId(1), mine)]);
        peers.push(vec![(PartyId(0), theirs)]);
    }
    [(own, PartyId(0)), (peers, PartyId(1))]
        .map(|(channels, me)| word_link(channels, me, &At::default(), deadline).unwrap())
}

fn port() -> LanePort {
    LanePort::Dials(String::new())
}

/// Who deviates on a lane and cuts the words at once has deviated all the same, though its silence was heard
/// first.
#[test]
fn a_deviation_counts_where_words_were_cut_first() {
    let (roster, place, port) = (Roster::new(["a", "b"]), WorkerPlace::Threads, port());
    let job = job((&roster, &place), None);
    let cut = || Error::new(At::default(), Fault::Channel(ChannelError::Closed));
    let deviates = || Error::new(At::default(), Fault::Deviated("what it promised"));
    let causes = [(FailureCause::LaneCut, cut()), (FailureCause::Deviation, deviates())];
    for ((cause, error), said) in causes.into_iter().zip([ByeReason::Failed, ByeReason::Deviation]) {
        let [(words, _own), (_peers, reader)] = words();
        let (sender, inputs) = sync_channel(INPUTS);
        let (told, hears) = sync_channel(INPUTS);
        reader.start(told).unwrap();
        let of_crew = (sender.clone(), inputs);
        let (mut coordinator, _) = Coordinator::new(&job, Box::new(OneUnit(2)), words, of_crew).unwrap();
        let running = Running { unit: 0, attempt: 1, rows: 0, progressed: Instant::now() };
        coordinator.lanes[0].running = Some(running);
        let at = UnitAttempt { stage: 2, unit: 0, attempt: 1 };
        let event = WorkerEvent::GaveUp { at, cause, error, traffic: Traffic::default() };
        sender.send(CoordinatorInput::Crew(CrewEvent { lane: 0, start: 0, event })).unwrap();
        let open = Some(coordinator);
        let mut crew = UnitsCrew { job: &job, port: &port, words: None, inputs: (sender, None), open };
        let error = crew.close::<()>(Err(cut())).unwrap_err();
        let is_deviation = matching::pid::is_deviation(&error);
        assert_eq!(is_deviation, said == ByeReason::Deviation, "it ends the keys of the match: {error}");
        let heard = hears.recv().unwrap();
        assert!(matches!(heard, CoordinatorInput::Word(Word::Bye { reason }) if reason == said));
    }
}

/// What is over a bound ends the keys of a match where the peer said it, not where this party met its own.
#[test]
fn a_bound_of_its_own_is_no_deviation() {
    let limit = |peer: Option<&str>| {
        let at = At { peer: peer.map(str::to_owned), ..At::default() };
        Error::new(at, Fault::Limit { name: "LOG_OBJECT_BYTES", value: 2, cap: 1 })
    };
    assert!(matching::pid::is_deviation(&limit(Some("b"))));
    assert!(!matching::pid::is_deviation(&limit(None)));
}

/// A peer whose store lost what both have sealed ends the run for good; in a match it ends the match, which
/// is made anew of rows that are read.
#[test]
fn what_the_peer_lost_of_a_match_ends_the_match_alone() {
    let (roster, place, port) = (Roster::new(["a", "b"]), WorkerPlace::Threads, port());
    for stage in [2, COMPUTE] {
        let folder = tempfile::tempdir().unwrap();
        let state = state(folder.path());
        let mut log = if stage == COMPUTE { lead(&state) } else { matching(&state) };
        if stage == COMPUTE {
            let of_match = matched(&log);
            log.set_matched(of_match).unwrap();
        }
        finish_of((&mut log, stage), 0, 1, DONE);
        log.write_units(stage, &[UnitRecord::Seal { root: [4; 32] }]).unwrap();
        let job = job((&roster, &place), Some(RefCell::new(&mut log)));
        let [(words, _own), _peers] = words();
        let of_crew = sync_channel(INPUTS);
        let (mut coordinator, _) = Coordinator::new(&job, Box::new(OneUnit(stage)), words, of_crew).unwrap();
        coordinator.step(UnitEvent::Met).unwrap();
        let units = vec![UnitStanding { floor: 1, held: 0, session: [0; 8] }];
        let word = CoordinatorInput::Word(Word::State { run: [7; 32], stage, units });
        let error = coordinator.take(word, &port).unwrap_err().to_string();
        drop(coordinator);
        drop(job);
        assert!(log.gave_up && error.contains("lost the result of unit 0"), "{error}");
        let advice =
            if stage == COMPUTE { "tacit state drop" } else { "run again, and the match is made anew" };
        assert!(error.contains(advice) && log.spent == (stage == COMPUTE), "{error}");
        drop(log);
        assert!(!lead(&state).is_matching());
    }
}

/// Nothing may happen for so long only; whose workers were awaited is said then.
#[test]
fn where_nothing_happens_it_is_said_who_was_awaited() {
    let (roster, place, port) = (Roster::new(["a", "b"]), WorkerPlace::Threads, port());
    let job = job((&roster, &place), None);
    let [(words, _own), _peers] = words();
    let of_crew = sync_channel(INPUTS);
    let (mut coordinator, first) =
        Coordinator::new(&job, Box::new(OneUnit(COMPUTE)), words, of_crew).unwrap();
    coordinator.take_lane_actions(first, &port).unwrap();
    let ended = |coordinator: &mut Coordinator| {
        let now = Instant::now();
        (coordinator.stood, coordinator.looked) = (now - IDLE - TICK, now);
        coordinator.look_at_clocks(&port).unwrap_err().to_string()
    };
    // A worker that is called and has not come is heard of all the same.
    let hears = |coordinator: &mut Coordinator, event| {
        coordinator.take_event(CrewEvent { lane: 0, start: 0, event }, &port).unwrap();
    };
    hears(&mut coordinator, WorkerEvent::Beat(WorkerBeat::default()));
    assert!(ended(&mut coordinator).contains("none of this party's workers was there for 600 s"));
    let fingerprint = KeyFingerprint::of_key(&[]);
    hears(&mut coordinator, WorkerEvent::Door { generation: 1, fingerprint, port: None });
    assert!(ended(&mut coordinator).contains("none of the peer's workers was there for 600 s"));
    coordinator.lanes[0].peer = Some(PeerDoor { generation: 1, fingerprint, address: String::new() });
    assert!(ended(&mut coordinator).contains("no progress for 600.0 s"));
}
