//! Releases of a small program under the yao engine, over two ledgers.

use super::*;
use crate::fuzzing::{candidates, counts};
use crate::ledger::{EntryRow, release_id};
use engine::conformance::Table;
use engine::outputs::Proof;
use engine::{Engine, Share, StagePrice, run_rows};
use net::cluster::{Cluster, pinned};
use net::faults::InjectedFault;
use program::Program;
use program::lower::{NoisedAt, WordKind};
use release::Rational;
use release::choose::{Transcript, TranscriptEnd};
use release::rational::ratio;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;
use yao::Yao;

const VIEWER: PartyId = PartyId(0);
const DRAWER: PartyId = PartyId(1);
/// Rows per cell, and their sums.
const TOTALS: [u128; 2] = [3, 4];

fn totals(session: &mut Session) -> Result<Shares, Error> {
    let columns = [vec![1, 1, 1, 1, 2, 2, 2, 2, 0], vec![1, 1, 1, 0, 1, 1, 1, 1, 1]];
    let program = counts();
    let me = Some(session.me());
    run_rows(&Yao::default(), &program, &mut Table::new(&program, &columns, 9, me), session)
}

/// Two ledgers, one study, k.
struct World {
    folder: TempDir,
    study: [u8; 32],
    budget: Rational,
    candidates: usize,
}

impl World {
    fn new(candidates: usize) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), study: [1; 32], budget: ratio(1, 200), candidates }
    }

    fn path(&self, party: PartyId) -> PathBuf {
        self.folder.path().join(format!("{party}"))
    }

    fn ledger(&self, party: PartyId) -> Ledger {
        Ledger::open(&self.path(party)).unwrap()
    }

    fn release(&self) -> [u8; 32] {
        release_id(&self.study, &[[2; 32], [3; 32]], VIEWER.into())
    }

    fn towards(&self, party: PartyId) -> PeerLineage {
        PeerLineage { peer: ["key of drawer", "key"][party.index()].into(), lineage: "lineage".into() }
    }

    /// What keeps `party` from beginning.
    fn barred(&self, party: PartyId) -> Option<String> {
        let ledger = self.ledger(party);
        let running = (self.release(), ledger.attempt(&self.release()).unwrap());
        ledger.barred(&self.towards(party), &[running]).unwrap()
    }

    fn allow(&self, party: PartyId) {
        self.ledger(party).allow(&self.towards(party).peer, None, "looked into").unwrap();
    }

    /// As the parties do before a run: the larger of both sides' numbers.
    fn agree_on_attempt(&self) -> u32 {
        let next = |party| self.ledger(party).next_attempt(&self.release()).unwrap();
        let attempt = next(VIEWER).max(next(DRAWER));
        for party in [VIEWER, DRAWER] {
            let peer = self.towards(party).peer;
            self.ledger(party).begin_attempt(&self.release(), attempt, &peer).unwrap();
        }
        attempt
    }

    fn release_and_setup(&self) -> (Box<dyn PreparedRelease>, Setup) {
        let context = NoiseContext {
            study: self.study,
            release: self.release(),
            session: self.release(),
            data: vec![[2; 32], [3; 32]],
            viewer: VIEWER,
            drawer: DRAWER,
        };
        let (plan, setup) = candidates(self.candidates, context).unwrap();
        (Yao::default().release(&Arc::new(plan)).unwrap(), setup)
    }

    fn noise(&self, session: &mut Session) -> CandidateNoise {
        let (me, (_, setup)) = (session.me(), self.release_and_setup());
        let tags = [[2; 32], [3; 32]];
        let debit = Debit {
            lineage: "lineage".into(),
            viewer_key: "key".into(),
            peer_key: ["key of drawer", "key"][me.index()].into(),
            study: self.study,
            my_tag: tags[me.index()],
            peer_tag: tags[me.other().index()],
            release_id: self.release(),
            tau: ratio(0, 1),
            protects: me == DRAWER,
            ..crate::ledger::tests::debit(0, ratio(1, 200), self.budget.clone())
        };
        let side = if me == VIEWER { CutAndChooseSide::Checker } else { CutAndChooseSide::Drawer };
        let rng = session.fork_seed("noise").into_rng();
        CandidateNoise::new(side, setup, Arc::new(Mutex::new(self.ledger(me))), debit, rng)
    }

    /// One run of the study at both parties.
    fn run(&self, cluster: &Cluster, cheat: Cheat) -> [Result<View, Error>; 2] {
        let (release, setup) = self.release_and_setup();
        let done = cluster.run(|session| {
            let me = session.me();
            let totals = totals(session)?;
            let shares = totals.folds().to_vec();
            let noise = self.noise(session);
            let outputs = if me == DRAWER {
                noise.run(&Bent { release: &*release, cheat, before: &|| () }, &totals, session)
            } else {
                noise.run(&*release, &totals, session)
            };
            let (ledger, price) = (session.traffic(), release.price().cost);
            let view = View {
                sent: STEPS.iter().map(|step| ledger.sent(step)).sum(),
                price: price + CandidateNoise::price(&setup, release.plan()),
                outputs: outputs?,
                shares,
            };
            Ok(view)
        });
        done.try_into().ok().unwrap()
    }

    fn entries(&self, party: PartyId) -> Vec<EntryRow> {
        self.ledger(party).entries().unwrap()
    }

    fn transcript(&self, party: PartyId) -> Option<Transcript> {
        let side = if party == VIEWER { CutAndChooseSide::Checker } else { CutAndChooseSide::Drawer };
        self.ledger(party).transcript(&self.release(), side).unwrap()
    }

    /// The noise that both sides' seeds give, from the drawer's record alone.
    fn noise_by_definition(&self) -> Vec<i128> {
        let record = self
            .ledger(DRAWER)
            .transcript_at(&self.release(), CutAndChooseSide::Drawer, TranscriptStage::Seeded)
            .unwrap()
            .unwrap();
        let index = self.transcript(VIEWER).unwrap().index().unwrap();
        let Resumed::Drawn(drawn) = resume(record, &self.release_and_setup().1).unwrap() else { panic!() };
        drawn.candidates()[index].expose().clone()
    }
}

struct View {
    outputs: Vec<u128>,
    shares: Vec<Share>,
    sent: u64,
    price: Cost,
}

/// Where a release says anything.
const STEPS: [&str; 3] = ["noise", "release", "choose"];

/// What the drawer's engine does.
#[derive(Clone, Copy, PartialEq)]
enum Cheat {
    No,
    /// Enters one more than the seeds give, in all candidates.
    Shift,
    /// Opens other candidates than it entered.
    Flip,
    /// Stops as soon as it knows the index.
    Leave,
    /// Stops before the index is named.
    LeaveEarly,
}

/// A release that is bent, at the drawer.
struct Bent<'a> {
    release: &'a dyn PreparedRelease,
    cheat: Cheat,
    /// What happens before it releases.
    before: &'a (dyn Fn() + Sync),
}

impl PreparedRelease for Bent<'_> {
    fn plan(&self) -> &ReleasePlan {
        self.release.plan()
    }
    fn holders(&self) -> &[PartyId] {
        self.release.holders()
    }
    fn price(&self) -> StagePrice {
        self.release.price()
    }
    fn run(
        &self,
        entered: &Entered,
        noise: &mut DrawnNoise,
        session: &mut Session,
    ) -> Result<OutputShares, Error> {
        let plan = self.plan();
        (self.before)();
        let mut other = Entered::new(
            plan,
            &Shares::new(Vec::new()),
            PartyId(9),
            &mut base::Seed::from_system().into_rng(),
        )?;
        for (at, word) in plan.words.iter().enumerate() {
            let Some(value) = entered.get(at) else { continue };
            let shifts = matches!(word.kind, WordKind::Candidate(NoisedAt { output: 1, .. }, _));
            let shift = u128::from(shifts && self.cheat == Cheat::Shift);
            other.set(at, value.wrapping_add(shift));
        }
        let left = self.release.run(&other, noise, session)?;
        match self.cheat {
            Cheat::LeaveEarly => Err(Error::misuse("gone")),
            // Without a proof nothing is opened.
            Cheat::Leave => Ok(OutputShares::of_bytes(left.bytes().to_vec())),
            Cheat::Flip => {
                let mut bits = left.bits(0..plan.bits());
                (0..plan.candidates.len()).for_each(|j| bits[plan.noise_of(j).start] ^= true);
                Ok(OutputShares::of_bits(&bits).with_proof(Forward(left)))
            }
            Cheat::No | Cheat::Shift => Ok(left),
        }
    }
}

/// The proof of another share.
struct Forward(OutputShares);

impl Proof for Forward {
    fn digest(&self, bits: Range<usize>, values: &[bool]) -> [u8; 32] {
        self.0.proof().unwrap().digest(bits, values)
    }
}

fn cluster(seed: u64) -> Cluster {
    Cluster::new(2, seed).deadline(Duration::from_secs(20))
}

fn signed(program: &Program, outputs: &[u128]) -> Vec<i128> {
    let width = u32::from(program.noised_type(0, 0).unwrap().width);
    outputs.iter().map(|v| ((v << (128 - width)) as i128) >> (128 - width)).collect()
}

#[test]
fn the_viewer_gets_the_totals_and_the_noise_that_was_paid_for() {
    for candidates in [2, 64] {
        let world = World::new(candidates);
        let [viewer, drawer] = world.run(&cluster(1), Cheat::No).map(Result::unwrap);
        assert!(viewer.shares.len() == 2 && drawer.outputs.is_empty());
        let noise = world.noise_by_definition();
        let expected: Vec<i128> = TOTALS.iter().zip(&noise).map(|(t, e)| *t as i128 + e).collect();
        assert_eq!(signed(&counts(), &viewer.outputs), expected);
        assert_ne!(noise, [0, 0]);
        for (view, party) in [(&viewer, VIEWER), (&drawer, DRAWER)] {
            assert_eq!(view.sent, view.price.sent[party.index()], "bytes of {party}, k = {candidates}");
        }
        let (seen, paid) = (world.entries(VIEWER), world.entries(DRAWER));
        assert!(seen.len() == 1 && paid.len() == 1 && paid[0].protects && !seen[0].protects);
        assert_eq!(world.ledger(DRAWER).spent("lineage", "key").unwrap(), ratio(1, 200));
        assert_eq!(world.ledger(VIEWER).spent("lineage", "key").unwrap(), ratio(0, 1));
        for party in [VIEWER, DRAWER] {
            assert_eq!(world.transcript(party).unwrap().outcome(), Some(TranscriptEnd::Done));
        }
        let digests = [VIEWER, DRAWER].map(|p| world.transcript(p).unwrap().shared_digest());
        assert_eq!(digests[0], digests[1]);

        // Again: the same answer from the ledger, no new noise, no new charge.
        let [again, _] = world.run(&cluster(2), Cheat::No).map(Result::unwrap);
        assert_eq!(again.outputs, viewer.outputs);
        assert_eq!(world.entries(DRAWER).len(), 1);
    }
}

#[test]
fn the_wire_is_pinned() {
    let world = World::new(4);
    let (release, _) = world.release_and_setup();
    let wire = cluster(1).wire(|session| {
        let totals = totals(session)?;
        world.noise(session).run(&*release, &totals, session).map(drop)
    });
    pinned(&[("cut-and-choose", wire, "b89ce49483ae33ef")]);
}

#[test]
fn an_exhausted_budget_refuses_before_anything_is_said() {
    let mut world = World::new(4);
    assert!(world.run(&cluster(1), Cheat::No).iter().all(Result::is_ok));
    world.study = [9; 32];
    let [viewer, drawer] = world.run(&cluster(2), Cheat::No).map(|view| view.err().unwrap());
    assert!(matches!(drawer.kind(), Fault::Refused(_)) && matches!(viewer.kind(), Fault::Refused(_)));
    assert!(
        drawer.to_string().contains("budget: 0.005 of 0.005 spent on lineage lineage by viewer key"),
        "{drawer}"
    );
    assert!(viewer.to_string().contains("the peer's privacy ledger"), "{viewer}");
    assert!([VIEWER, DRAWER].iter().all(|p| world.transcript(*p).is_none() && world.entries(*p).len() == 1));
}

/// The budget goes away between the start and the choice: by another run on the same ledger.
#[test]
fn an_unpaid_release_names_no_index() {
    let world = World::new(4);
    let (release, _) = world.release_and_setup();
    let done = cluster(3).run(|session| {
        let totals = totals(session)?;
        let noise = world.noise(session);
        if session.me() == DRAWER {
            let spent = Debit { release_id: [77; 32], ..noise.debit.clone() };
            let before = || _ = world.ledger(DRAWER).debit(&spent).unwrap();
            let bent = Bent { release: &*release, cheat: Cheat::No, before: &before };
            noise.run(&bent, &totals, session)
        } else {
            noise.run(&*release, &totals, session)
        }
    });
    let [viewer, drawer] = <[_; 2]>::try_from(done).unwrap().map(Result::unwrap_err);
    assert!(drawer.to_string().contains("budget: 0.005 of 0.005"), "{drawer}");
    assert!(viewer.to_string().contains("the peer's privacy ledger"), "{viewer}");
    assert_eq!(world.transcript(VIEWER).unwrap().index(), None);
    assert_eq!(world.barred(VIEWER), None);
}

/// Who opens what it did not enter is found by its labels, and barred.
#[test]
fn other_candidates_than_were_entered_are_not_opened() {
    let world = World::new(8);
    let [viewer, _] = world.run(&cluster(17), Cheat::Flip);
    let error = viewer.err().unwrap();
    assert!(error.to_string().contains("what it opens is not what it entered"), "{error}");
    assert!(world.barred(VIEWER).unwrap().contains("deviation before the noise was opened"));
}

#[test]
fn other_noise_than_the_seeds_give_is_detected() {
    let world = World::new(8);
    let [viewer, _] = world.run(&cluster(4), Cheat::Shift);
    let error = viewer.err().unwrap();
    assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
    let record = world.transcript(VIEWER).unwrap();
    assert!(matches!(
        record.outcome(),
        Some(TranscriptEnd::Detected(release::choose::Deviation::Noise { draw: 1, .. }))
    ));
    assert!(world.barred(VIEWER).unwrap().contains("not the noise of the seeds"));
    assert_eq!(world.ledger(VIEWER).outputs(&world.release()).unwrap(), None);
    // Neither side begins before its own operator allows it, and then it is charged again.
    let errors = world.run(&cluster(5), Cheat::No).map(|view| view.err().unwrap().to_string());
    assert!(errors.iter().all(|text| text.contains("barred")), "{errors:?}");
    let mut world = World { budget: ratio(1, 100), ..world };
    world.allow(VIEWER);
    let errors = world.run(&cluster(6), Cheat::No).map(|view| view.err().unwrap().to_string());
    assert!(errors[1].contains("tacit ledger allow"), "{errors:?}");
    world.allow(DRAWER);
    assert_eq!(world.agree_on_attempt(), 1);
    world.budget = ratio(1, 200);
    assert!(world.run(&cluster(7), Cheat::No)[1].is_err(), "the second attempt has to be paid for");
    world.budget = ratio(1, 100);
    assert!(world.run(&cluster(8), Cheat::No).iter().all(Result::is_ok));
    assert_eq!(world.ledger(DRAWER).spent("lineage", "key").unwrap(), ratio(1, 100));
}

#[test]
fn leaving_after_the_index_is_silence() {
    let world = World::new(8);
    let [viewer, _] = world.run(&cluster(9), Cheat::Leave);
    let error = viewer.err().unwrap();
    assert!(matches!(error.kind(), Fault::Channel(_)));
    // What was spent, what is held, and what to do next.
    let error = error.to_string();
    for part in ["Spent: this release, which charges nothing here,", "Held: ", "tacit ledger allow "] {
        assert!(error.contains(part), "{error}");
    }
    let record = world.transcript(VIEWER).unwrap();
    assert_eq!(record.outcome(), Some(TranscriptEnd::Detected(release::choose::Deviation::Silence)));
    let reason = world.barred(VIEWER).unwrap();
    assert!(reason.starts_with("silence after the noise index was named"), "{reason}");
    // The drawer's side, whatever it claims, does not begin again either.
    let errors = world.run(&cluster(10), Cheat::No).map(|view| view.err().unwrap().to_string());
    assert!(errors.iter().all(|text| text.contains("barred")), "{errors:?}");
}

#[test]
fn a_connection_lost_before_the_index_resumes_with_the_same_noise() {
    let world = World::new(8);
    let errors = world.run(&cluster(11), Cheat::LeaveEarly).map(|done| done.err().unwrap().to_string());
    let again = "Run again, with the same study and the same data: the same noise is entered";
    assert!(errors[VIEWER.index()].contains(again), "{errors:?}");
    assert!(errors[VIEWER.index()].contains("Spent on this release: nothing"), "{errors:?}");
    let before = world.transcript(DRAWER).unwrap();
    assert_eq!((before.index(), world.transcript(VIEWER).unwrap().index()), (None, None));
    let [viewer, _] = world.run(&cluster(12), Cheat::No).map(Result::unwrap);
    let noise = world.noise_by_definition();
    let expected: Vec<i128> = TOTALS.iter().zip(&noise).map(|(t, e)| *t as i128 + e).collect();
    assert_eq!(signed(&counts(), &viewer.outputs), expected);
    let seeded = world
        .ledger(DRAWER)
        .transcript_at(&world.release(), CutAndChooseSide::Drawer, TranscriptStage::Seeded)
        .unwrap();
    assert_eq!(seeded.unwrap().shared_digest(), before.shared_digest());
    assert_eq!(world.entries(DRAWER).len(), 1);
}

/// Cuts at every step of the release, at either party: afterwards a rerun either goes on with the same noise,
/// charged once, or is barred; it never draws anew.
#[test]
fn wherever_it_breaks_nothing_is_drawn_twice() {
    let mut outcomes = [0; 2];
    for party in [VIEWER, DRAWER] {
        for (n, step) in ["noise", "release/enter", "choose", "choose/open"].iter().enumerate() {
            let world = World::new(4);
            let fault = cluster(20 + n as u64).fault(party, (*step).to_owned(), InjectedFault::Cut);
            let first = world.run(&fault, Cheat::No);
            if first.iter().all(Result::is_ok) {
                continue;
            }
            let seeds = |party| world.transcript(party).map(|t| (t.commitments(), t.index()));
            let before = [VIEWER, DRAWER].map(seeds);
            let again = world.run(&cluster(40 + n as u64), Cheat::No);
            let after = [VIEWER, DRAWER].map(seeds);
            for (before, after) in before.iter().zip(&after) {
                let Some((commitments, index)) = before else { continue };
                let (now, index_now) = after.as_ref().unwrap();
                assert!(commitments == now && index.is_none_or(|i| Some(i) == *index_now));
            }
            assert!(world.entries(DRAWER).len() <= 1);
            let named = before.iter().flatten().any(|(_, index)| index.is_some());
            assert_eq!(again[0].is_err(), named, "cut at {party}, {step}");
            outcomes[usize::from(named)] += 1;
        }
    }
    assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
}

#[test]
fn a_lost_or_wiped_ledger_is_no_way_to_new_noise() {
    for wiped in [VIEWER, DRAWER] {
        let world = World::new(4);
        assert!(world.run(&cluster(13), Cheat::LeaveEarly).iter().all(Result::is_err));
        std::fs::remove_file(world.path(wiped)).unwrap();
        let errors = world.run(&cluster(14), Cheat::No);
        let error = errors[wiped.other().index()].as_ref().err().unwrap();
        assert!(matches!(error.kind(), Fault::Deviated(_)), "{error}");
        assert!(error.to_string().contains("not those of this release's earlier run"), "{error}");
    }
}

#[test]
fn pieces_that_do_not_belong_together_are_refused() {
    let world = World::new(4);
    let (release, setup) = world.release_and_setup();
    let done = cluster(15).run(|session| {
        let mut noise = world.noise(session);
        noise.debit.release_id = [5; 32];
        noise.run(&*release, &Shares::new(Vec::new()), session)
    });
    assert!(done.iter().all(|d| matches!(d.as_ref().unwrap_err().kind(), Fault::Misuse(_))));
    // The two sides disagree on the noise: nothing is drawn.
    let other = World::new(5);
    let done = cluster(16).run(|session| {
        let totals = totals(session)?;
        let mut noise = world.noise(session);
        if session.me() == VIEWER {
            noise.setup = other.release_and_setup().1;
        }
        noise.run(&*release, &totals, session)
    });
    assert!(done[0].as_ref().unwrap_err().to_string().contains("it agrees to another release"));
    assert!(world.transcript(VIEWER).is_none());
    assert!(super::setup(setup.context().clone(), Vec::new(), 4).is_err(), "no noise");
}
