//! Every interleaving of saying, hearing and outcome: two parties exhaustively with bounded runs, three by
//! seeded walks. A crash is an outcome, so is a run that never began. What a party may say is what
//! [`ProposalView::may`] allows, so the model is the code.
//!
//! What must hold: parties that hold the same statements show the same state; a final state never changes, at
//! anybody; while it is open somebody can act, and those who are named as awaited can; what may be said
//! counts, and is heard by everybody in the end. Rules that were bent must break one of them.

use crate::acts::{Act, ProposalState, ProposalView, RunOutcome, Standing};
use base::Seed;
use std::collections::HashSet;

/// The rules under test; bent ones replace a function.
#[derive(Clone, Copy)]
struct ModelRules {
    may: fn(&ProposalView, usize, Act) -> bool,
    /// Whether a listener keeps what a speaker says now; else it comes again later.
    keeps: fn(&ProposalView, usize, Act) -> bool,
    state: fn(&ProposalView) -> (ProposalState, u8),
}

/// A receiver keeps none of what is early, which is stricter than the few that it does.
const REAL: ModelRules = ModelRules {
    may: |view, party, act| view.may(party, act).is_ok(),
    keeps: |view, _, act| !view.is_early(act),
    state: |view| (view.state(), 0),
};

/// Who has said what, and how much of it each has heard.
#[derive(Clone)]
struct World {
    chains: Vec<Vec<Act>>,
    /// By listener and speaker.
    heard: Vec<Vec<usize>>,
}

#[derive(Clone, Copy)]
struct Bounds {
    runs: u32,
    consent: u8,
    asks: bool,
    anew: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Move {
    Hear { listener: usize, speaker: usize },
    Say { speaker: usize, act: Act },
}

impl Move {
    /// Whether it takes the study further, and is not a no.
    fn goes(self) -> bool {
        !matches!(self, Self::Say { act: Act::Refuse | Act::Withdraw, .. })
    }
}

impl World {
    fn of(parties: usize) -> Self {
        Self { chains: vec![Vec::new(); parties], heard: vec![vec![0; parties]; parties] }
    }

    fn view(&self, party: usize) -> ProposalView {
        let heard = |speaker: usize| match speaker == party {
            true => self.chains[speaker].len(),
            false => self.heard[party][speaker],
        };
        let standing = |speaker| Standing::of(self.chains[speaker][..heard(speaker)].to_vec(), speaker == 0);
        ProposalView { standings: (0..self.chains.len()).map(standing).collect(), frozen: false }
    }

    fn parties(&self) -> std::ops::Range<usize> {
        0..self.chains.len()
    }

    fn is_quiet(&self) -> bool {
        let all = |listener: usize| {
            self.parties().all(|speaker| {
                speaker == listener || self.heard[listener][speaker] == self.chains[speaker].len()
            })
        };
        self.parties().all(all)
    }

    fn after(&self, step: Move) -> Self {
        let mut next = self.clone();
        match step {
            Move::Hear { listener, speaker } => next.heard[listener][speaker] += 1,
            Move::Say { speaker, act } => next.chains[speaker].push(act),
        }
        next
    }

    fn moves(&self, bounds: Bounds, rules: ModelRules) -> Vec<Move> {
        let mut all = Vec::new();
        for party in self.parties() {
            let view = self.view(party);
            for speaker in self.parties().filter(|speaker| *speaker != party) {
                let next = self.chains[speaker].get(self.heard[party][speaker]);
                if next.is_some_and(|act| (rules.keeps)(&view, speaker, *act)) {
                    all.push(Move::Hear { listener: party, speaker });
                }
            }
            let may = |act: &Act| (rules.may)(&view, party, *act) && self.can_be(party, *act);
            let acts = candidates(&view, party, bounds).into_iter();
            all.extend(acts.filter(may).map(|act| Move::Say { speaker: party, act }));
        }
        all
    }

    /// An answer comes of a process that has met all others.
    fn can_be(&self, party: usize, act: Act) -> bool {
        let Act::Ended { run, outcome: RunOutcome::Answered } = act else { return true };
        let started = |other: &usize| self.chains[*other].contains(&Act::Started { run });
        self.parties().filter(|other| *other != party).all(|other| started(&other))
    }

    fn key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        for chain in &self.chains {
            key.push(u8::try_from(chain.len()).unwrap());
            key.extend(chain.iter().map(|act| code(*act)));
        }
        key.extend(self.heard.iter().flatten().map(|heard| u8::try_from(*heard).unwrap()));
        key
    }
}

fn code(act: Act) -> u8 {
    match act {
        Act::Propose => 1,
        Act::Consent { .. } => 2,
        Act::Refuse => 3,
        Act::Withdraw => 4,
        Act::Note => 5,
        Act::Witness => 6,
        Act::Void => 7,
        Act::Ready { run, goes_on } => 16 * run as u8 + u8::from(goes_on),
        Act::Started { run } => 16 * run as u8 + 2,
        Act::Ended { run, outcome } => 16 * run as u8 + 3 + outcome as u8,
        Act::Asks { run } => 16 * run as u8 + 8,
    }
}

fn candidates(view: &ProposalView, party: usize, bounds: Bounds) -> Vec<Act> {
    let mut all = vec![Act::Propose, Act::Consent { runs: bounds.consent }, Act::Refuse, Act::Withdraw];
    if let Some(run) = view.next_run(party).filter(|run| *run <= bounds.runs) {
        all.push(Act::Ready { run, goes_on: run > 1 });
        if bounds.anew && run > 1 {
            all.push(Act::Ready { run, goes_on: false });
        }
        if bounds.asks {
            all.push(Act::Asks { run });
        }
    }
    for run in 1..=bounds.runs {
        all.push(Act::Started { run });
        all.extend([RunOutcome::Answered, RunOutcome::Failed].map(|outcome| Act::Ended { run, outcome }));
    }
    all
}

/// What must hold in a world, and of every step from it.
fn check(world: &World, moves: &[Move], bounds: Bounds, rules: ModelRules) -> Result<(), String> {
    let states: Vec<_> = world.parties().map(|party| (rules.state)(&world.view(party))).collect();
    let tell = |what: &str| format!("{what}: {:?} heard {:?}, states {states:?}", world.chains, world.heard);
    for step in moves {
        let next = world.after(*step);
        if let Move::Say { speaker, act } = step {
            let mut standing = Standing::of(world.chains[*speaker].to_vec(), *speaker == 0);
            if !standing.take(*act) {
                return Err(tell(&format!("{act:?} of {speaker} may be said and does not count")));
            }
        }
        let (Move::Hear { listener: changed, .. } | Move::Say { speaker: changed, .. }) = *step;
        let after = (rules.state)(&next.view(changed));
        if states[changed].0.is_final() && states[changed] != after {
            return Err(tell(&format!("final at {changed}, then {after:?}")));
        }
    }
    if !world.is_quiet() {
        let hears = moves.iter().any(|step| matches!(step, Move::Hear { .. }));
        return if hears { Ok(()) } else { Err(tell("what was said is never heard")) };
    }
    if states.iter().any(|state| *state != states[0]) {
        return Err(tell("same statements, other states"));
    }
    let view = world.view(0);
    let last = view.newest() >= bounds.runs && view.somebody_ended(view.newest());
    let used_up = world.parties().any(|party| view.begun_anew(party) >= bounds.consent);
    if states[0].0.is_final() || states[0].0 == ProposalState::Empty || last || used_up {
        return Ok(());
    }
    let can = |party: usize| {
        moves.iter().any(|step| step.goes() && matches!(step, Move::Say { speaker, .. } if *speaker == party))
    };
    let awaited = view.awaited();
    if awaited.is_empty() || !awaited.iter().all(|party| can(*party)) {
        return Err(tell(&format!("{awaited:?} are awaited and cannot act")));
    }
    Ok(())
}

/// All worlds of two parties; how many.
fn explore(bounds: Bounds, rules: ModelRules) -> Result<usize, String> {
    let start = World::of(2);
    let mut known = HashSet::from([start.key()]);
    let mut open = vec![start];
    while let Some(world) = open.pop() {
        let moves = world.moves(bounds, rules);
        check(&world, &moves, bounds, rules)?;
        for step in moves {
            let next = world.after(step);
            if known.insert(next.key()) {
                open.push(next);
            }
        }
    }
    Ok(known.len())
}

/// Walks of several parties, until nothing can be said or heard; how many steps.
fn walk(parties: usize, walks: u32, bounds: Bounds, rules: ModelRules) -> Result<usize, String> {
    let mut rng = Seed::from_bytes([100; 32]).into_rng();
    let mut steps = 0;
    for _ in 0..walks {
        let mut world = World::of(parties);
        loop {
            let moves = world.moves(bounds, rules);
            check(&world, &moves, bounds, rules)?;
            // A no is said rarely, or no walk would come to a second run.
            let yes: Vec<Move> = moves.iter().copied().filter(|step| step.goes()).collect();
            let from = if rng.below(12) > 0 && !yes.is_empty() { &yes } else { &moves };
            let Some(step) = from.get(rng.below(from.len().max(1) as u64) as usize) else { break };
            world = world.after(*step);
            steps += 1;
        }
    }
    Ok(steps)
}

const TWO_RUNS: Bounds = Bounds { runs: 2, consent: 5, asks: false, anew: false };

#[test]
fn two_parties_agree_whatever_the_order() {
    let worlds = explore(Bounds { asks: true, ..TWO_RUNS }, REAL).unwrap();
    assert!(worlds > 10_000, "{worlds} worlds");
}

#[test]
fn three_parties_agree_whatever_the_order() {
    let steps = walk(3, 3_000, Bounds { runs: 3, consent: 2, asks: true, anew: true }, REAL).unwrap();
    assert!(steps > 100_000, "{steps} steps");
}

/// `make soak`: three runs of two parties exhaustively, and 10^6 steps of three.
#[test]
#[ignore = "minutes"]
fn longer_lives_agree_as_well() {
    let worlds = explore(Bounds { runs: 3, ..TWO_RUNS }, REAL).unwrap();
    let steps = walk(3, 40_000, Bounds { runs: 3, consent: 2, asks: true, anew: true }, REAL).unwrap();
    println!("{worlds} worlds of two parties, {steps} steps of three");
    assert!(worlds > 50_000 && steps > 1_000_000, "{worlds} worlds, {steps} steps");
}

fn broken(rules: ModelRules) -> String {
    let wrong = explore(TWO_RUNS, rules).expect_err("a bent rule breaks something");
    wrong.split(": [").next().unwrap_or_default().to_owned()
}

/// The first draft of the rules: a party with its answer could still take part back, and what it says then
/// would count. The study turned from closed to answered at the other.
#[test]
fn without_the_answer_rule_a_final_state_changes() {
    let bent = ModelRules {
        may: |view, party, act| {
            let mine = &view.standings[party];
            let withdraws = act == Act::Withdraw && mine.consent.is_some() && !mine.is_running();
            view.may(party, act).is_ok() || withdraws && !view.state().is_final()
        },
        ..REAL
    };
    let wrong = broken(bent);
    assert!(wrong.contains("Withdraw of") && wrong.contains("does not count"), "{wrong}");
}

#[test]
fn refused_and_withdrawn_as_two_states_change_into_each_other() {
    let bent = ModelRules {
        state: |view| {
            let refused = view.standings.iter().any(|party| party.closed && party.consent.is_none());
            (view.state(), u8::from(refused))
        },
        ..REAL
    };
    let wrong = broken(bent);
    assert!(wrong.starts_with("final at"), "{wrong}");
}

#[test]
fn answered_as_soon_as_one_has_it_is_not_final() {
    let bent = ModelRules {
        state: |view| match view.standings.iter().any(Standing::has_answer) {
            true => (ProposalState::Answered, 0),
            false => (view.state(), 0),
        },
        ..REAL
    };
    let wrong = broken(bent);
    assert!(wrong.starts_with("final at"), "{wrong}");
}

#[test]
fn without_reruns_half_an_answer_is_the_end() {
    let bent = ModelRules {
        may: |view, party, act| {
            let half = view.state() == ProposalState::Half && matches!(act, Act::Ready { .. });
            !half && view.may(party, act).is_ok()
        },
        ..REAL
    };
    let wrong = broken(bent);
    assert!(wrong.contains("are awaited and cannot act"), "{wrong}");
}

#[test]
fn without_an_end_of_what_never_began_nobody_can_act() {
    let bent = ModelRules {
        may: |view, party, act| {
            let began = |run| view.standings[party].runs.get(&run).is_some_and(|run| run.started);
            let lapse = matches!(act, Act::Ended { run, .. } if !began(run));
            !lapse && view.may(party, act).is_ok()
        },
        ..REAL
    };
    let wrong = broken(bent);
    assert!(wrong.contains("are awaited and cannot act"), "{wrong}");
}

/// Whoever has withdrawn meanwhile would keep nothing more of what was said rightly before.
#[test]
fn who_keeps_only_what_may_be_said_by_its_own_view_never_hears_the_rest() {
    let bent = ModelRules { keeps: |view, party, act| view.may(party, act).is_ok(), ..REAL };
    let wrong = broken(bent);
    assert!(wrong.contains("never heard"), "{wrong}");
}

#[test]
fn a_run_that_begins_while_one_is_open_does_not_count() {
    let bent = ModelRules {
        may: |view, party, act| {
            let next = matches!(act, Act::Ready { run, .. } if run == view.newest() + 1);
            let agreed = view.standings.iter().all(|party| party.consent.is_some() && !party.closed);
            view.may(party, act).is_ok() || next && agreed && !view.state().is_final()
        },
        ..REAL
    };
    let next_too = broken(bent);
    assert!(next_too.contains("does not count"), "{next_too}");
}
