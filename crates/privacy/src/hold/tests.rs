//! What follows from how far all are, and runs of a small release with ledgers that are cut off anywhere.

use super::*;
use engine::conformance::{ProgramCase, Table};
use engine::{Engine, Entered, run_rows};
use net::cluster::{Cluster, pinned};
use net::faults::InjectedFault;
use program::lower::{Lowering, NoiseSource, lower_draws, lower_release};
use std::sync::Arc;
use tempfile::TempDir;

mod deviants;

use deviants::{Deviates, Owners};

const A: PartyId = PartyId(0);
const B: PartyId = PartyId(1);

fn top(at: Option<(u8, ShareProgress)>, attempt: u32) -> ReleaseTop {
    ReleaseTop { at: at.map(|(session, progress)| ([session; 32], progress)), attempt, pays: true }
}

#[test]
fn a_top_is_read_as_it_was_said() {
    for state in
        [None, Some((7, ShareProgress::Held)), Some((8, ShareProgress::Sent)), Some((9, ShareProgress::Out))]
    {
        for pays in [true, false] {
            let top = ReleaseTop { pays, ..top(state, 41) };
            assert_eq!(ReleaseTop::read(&top.bytes()), Some(top));
        }
    }
    let mut bytes = top(None, 0).bytes();
    bytes[0] = 4;
    assert_eq!(ReleaseTop::read(&bytes), None);
}

#[test]
fn what_all_hold_is_opened_and_anything_else_is_computed_anew() {
    use ShareProgress::{Held, Out, Sent};
    let both = [A, B];
    let next = |a, b| decide(&[(A, a), (B, b)], &both, &[], 0);
    assert_eq!(next(top(None, 0), top(None, 0)), Ok(NextStep::Compute(0)));
    assert_eq!(next(top(Some((1, Held)), 0), top(Some((1, Held)), 0)), Ok(NextStep::Open([1; 32])));
    assert_eq!(next(top(Some((1, Sent)), 1), top(Some((1, Held)), 0)), Ok(NextStep::Open([1; 32])));
    assert_eq!(next(top(Some((1, Out)), 1), top(Some((1, Sent)), 1)), Ok(NextStep::Open([1; 32])));
    assert_eq!(next(top(Some((1, Out)), 1), top(Some((1, Out)), 1)), Ok(NextStep::Over));
    // One lost what it held: another number, which is another attempt where one had sent its share.
    assert_eq!(next(top(Some((1, Held)), 0), top(None, 0)), Ok(NextStep::Compute(0)));
    assert_eq!(next(top(Some((1, Sent)), 1), top(None, 0)), Ok(NextStep::Compute(1)));
    assert_eq!(next(top(Some((1, Held)), 0), top(Some((2, Held)), 0)), Ok(NextStep::Compute(0)));
    // One has the outputs and the other lost its share: nothing is drawn anew.
    assert_eq!(next(top(Some((1, Out)), 1), top(None, 0)), Err(ReleaseStop::Lost { has: A, lost: B }));
    assert_eq!(next(top(None, 70), top(None, 0)), Err(ReleaseStop::Ahead(A)));
    assert_eq!(next(top(None, 64), top(None, 0)), Ok(NextStep::Compute(64)));
    // A lone viewer that says it has a number which this side never sent: it gets none for nothing, now or
    // later.
    let lone = |a, b| decide(&[(A, a), (B, b)], &[B], &[], 0);
    assert_eq!(lone(top(None, 0), top(Some((9, Out)), 1)), Err(ReleaseStop::Lost { has: B, lost: A }));
    assert_eq!(
        lone(top(Some((1, Held)), 0), top(Some((9, Out)), 1)),
        Err(ReleaseStop::Lost { has: B, lost: A })
    );
    assert_eq!(lone(top(Some((1, Held)), 0), top(Some((1, Out)), 1)), Ok(NextStep::Open([1; 32])));
    assert_eq!(lone(top(Some((1, Sent)), 1), top(Some((1, Out)), 1)), Ok(NextStep::Over));
    // Who cannot pay stops it, unless it has sent.
    let broke = |at| ReleaseTop { pays: false, ..top(at, 0) };
    assert_eq!(next(broke(None), top(None, 0)), Err(ReleaseStop::Refused(A)));
    assert_eq!(next(top(Some((1, Held)), 0), broke(Some((1, Held)))), Err(ReleaseStop::Refused(B)));
    assert_eq!(next(broke(Some((1, Sent))), top(Some((1, Held)), 0)), Ok(NextStep::Open([1; 32])));
}

/// A liar among three says the largest attempt that is followed, and one of the others breaks off before it
/// sends that number: the honest one that did send it is not out of reach, for the other one had held it.
#[test]
fn a_liar_cannot_bring_an_honest_peer_out_of_reach() {
    let c = PartyId(2);
    let folder = TempDir::new().unwrap();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let decide = |ledger: &Ledger, tops: &[(PartyId, ReleaseTop)]| {
        decide(tops, &[A, B, c], &[], ledger.numbers_held(&[4; 32]).unwrap())
    };
    let lie = [(A, top(None, 0)), (B, top(None, 0)), (c, top(None, ATTEMPTS_AHEAD))];
    let Ok(NextStep::Compute(attempt)) = decide(&ledger, &lie) else { panic!("it is followed") };
    let (share, commitments) = (Zeroizing::new(vec![1]), vec![[9; 32]; 3]);
    let held = HeldShare { number: [1; 32], attempt, share, salt: [0; 32], commitments, tau: None };
    ledger.hold(&[4; 32], &held, "b c", "data").unwrap();
    assert_eq!(ledger.numbers_sent(&[4; 32]).unwrap(), 0);
    // It has lost nothing, and the liar says the truth now.
    let sent = top(Some((1, ShareProgress::Sent)), attempt + 1);
    let tops = [(A, top(Some((1, ShareProgress::Held)), 0)), (B, sent), (c, top(None, 0))];
    assert_eq!(decide(&ledger, &tops), Ok(NextStep::Compute(attempt + 1)));
    // From a lie to the next one it is as far, and no further.
    let more = [(A, top(None, 0)), (B, sent), (c, top(None, attempt + 1 + ATTEMPTS_AHEAD + 1))];
    assert_eq!(decide(&ledger, &more), Err(ReleaseStop::Ahead(c)));
}

#[test]
fn of_four_servers_one_may_have_lost_its_share() {
    let servers = [2, 3, 4, 5].map(PartyId);
    let held = top(Some((1, ShareProgress::Held)), 0);
    let all = |lost: &[u8]| -> Vec<(PartyId, ReleaseTop)> {
        (0..6).map(|p| (PartyId(p), if lost.contains(&p) { top(None, 0) } else { held })).collect()
    };
    assert_eq!(decide(&all(&[]), &[A], &servers, 0), Ok(NextStep::Open([1; 32])));
    assert_eq!(decide(&all(&[4]), &[A], &servers, 0), Ok(NextStep::Open([1; 32])));
    assert_eq!(decide(&all(&[3, 4]), &[A], &servers, 0), Ok(NextStep::Compute(0)));
    assert_eq!(decide(&all(&[1]), &[A], &servers, 0), Ok(NextStep::Compute(0)));
    // What a server says of budgets, or of outputs that are not for it, stops nobody.
    let mut lies = all(&[4]);
    lies[3].1.pays = false;
    lies[4].1 = top(Some((7, ShareProgress::Out)), 0);
    assert_eq!(decide(&lies, &[A], &servers, 0), Ok(NextStep::Open([1; 32])));
    // An owner at a seat pays: it is not the one that may lack what it held.
    let owns = &servers[1..];
    assert_eq!(decide(&all(&[2]), &[A], owns, 0), Ok(NextStep::Compute(0)));
}

/// What an owner pays for a public release, `other` being the only other one.
fn debit(other: &str, lineage: &str) -> Debit {
    let one = release::rational::ratio(1, 1);
    Debit {
        lineage: lineage.into(),
        viewer_key: format!("{other} {}", crate::ledger::PUBLIC),
        peer_key: other.into(),
        total: Some(one.clone()),
        tau: release::rational::ratio(0, 1),
        ..crate::ledger::tests::debit(4, one.clone(), one)
    }
}

/// Two owners and four servers that compute a real release, with ledgers in files.
struct Served {
    folder: TempDir,
    case: ProgramCase,
    /// Of the owners.
    identities: [Identity; 2],
}

const SERVERS: [PartyId; 4] = [PartyId(2), PartyId(3), PartyId(4), PartyId(5)];

type Seen = (Option<Vec<u128>>, Vec<PartyId>);

impl Served {
    fn new() -> Self {
        let all = engine::conformance::suite(3);
        let case = all.into_iter().find(|case| case.name.starts_with("joint among 2")).expect("it is there");
        let identities = [A, B].map(|_| Identity::generate().unwrap());
        Self { folder: TempDir::new().unwrap(), case, identities }
    }

    fn ledger(&self, party: PartyId) -> Ledger {
        Ledger::open(&self.folder.path().join(format!("{}.ledger", party.0))).unwrap()
    }

    fn charged(&self) -> [usize; 2] {
        [A, B].map(|owner| self.ledger(owner).entries().unwrap().len())
    }

    fn keys(&self) -> Vec<String> {
        self.identities.iter().map(|identity| identity.fingerprint().to_string()).collect()
    }

    fn debit(&self, me: PartyId) -> Debit {
        let other = self.keys().swap_remove(me.other().index());
        debit(&other, "data")
    }

    /// One try of everybody. `bends` says something else than what it computed, and commits to that.
    fn run(&self, cluster: Cluster, bends: Option<PartyId>) -> Vec<Result<Seen, Error>> {
        let done = cluster.run(|session| Ok(self.one(session, bends)));
        done.into_iter().map(|done| done.and_then(|done| done)).collect()
    }

    fn one(&self, session: &mut Session, bends: Option<PartyId>) -> Result<Seen, Error> {
        let (me, program) = (session.me(), &self.case.program);
        let engine =
            ring4::Ring4::new(ring4::Settings::default(), SERVERS, || Ok(accel::DeviceQueue::default()));
        let (owners, sampler) = (program.fold_owners(), |at| self.case.noise.sampler(at));
        let how = Lowering {
            totals: TotalsForm::Replicated,
            noise: NoiseSource::Coins(&sampler),
            ..Lowering::exact(&owners)
        };
        let plan = Arc::new(lower_release(program, program::Viewer::Public, &how)?);
        let draws = Arc::new(lower_draws(std::slice::from_ref(&plan), &sampler, how.depth));
        let mut coins = Entered::nothing(draws.words.len());
        self.case.noise.deal(&draws.words, &mut coins, me);
        let mut noise = engine.draw(&draws)?.run(&coins, session)?;
        let mut rows = Table::new(program, &self.case.columns, self.case.rows, Some(me));
        let totals = run_rows(&engine, program, &mut rows, session)?;
        let identity = self.identities.get(me.index());
        let owner =
            identity.map(|identity| OwnerPayment { debit: self.debit(me), identity, keys: self.keys() });
        let ledger = Mutex::new(self.ledger(me));
        let release = HeldRelease {
            plan: &plan,
            common: [5; 32],
            id: [4; 32],
            law: [6; 32],
            holders: SERVERS.to_vec(),
            ledger: &ledger,
            owner,
        };
        let outcome = release.run(session, |session| {
            let mut rng = session.fork_seed("coins").into_rng();
            let entered = Entered::new(&plan, &totals, me, &mut rng)?;
            let left = engine.release(&plan)?.run(&entered, &mut noise, session)?;
            let mut bytes = left.bytes().to_vec();
            if bends == Some(me) {
                bytes[9] ^= 2;
            }
            Ok(OutputShares::of_bytes(bytes))
        })?;
        Ok((outcome.values, outcome.benders))
    }

    /// Everybody honest: the result, paid for once.
    fn ends(&self, what: &str) {
        for owner in self.run(Cluster::new(6, 9), None).into_iter().take(2) {
            let (values, benders) = owner.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(values.as_deref(), Some(&self.expected()[..]), "{what}");
            assert!(benders.is_empty(), "{what}: {benders:?}");
        }
        assert_eq!(self.charged(), [1, 1], "{what}");
    }

    fn expected(&self) -> Vec<u128> {
        self.case.program.outputs_to(program::Viewer::Public).map(|i| self.case.outputs[i]).collect()
    }
}

/// All that hold, open and their echoes say. `pay` is signed with keys of this run, by signatures that never
/// repeat.
#[test]
fn the_wire_is_pinned() {
    let world = Served::new();
    let said = |step: &str| ["hold", "open"].contains(&step);
    let served = Cluster::new(6, 9).wire_where(said, |session| world.one(session, None).map(drop));
    let among = |parties| {
        let owners = Owners::among(parties);
        Cluster::new(parties, 9).wire_where(said, |session| owners.one(session, Deviates::No).map(drop))
    };
    pinned(&[
        ("release, held and opened by four servers", served, "5e68fbde3197637c"),
        ("release, held and opened between two", among(2), "4008f141102f61d6"),
        ("release, held and opened among three", among(3), "a721673e76780ec1"),
    ]);
}

/// It commits to what it bends, so that nothing but the other servers' copies tells: the result is right, it
/// is named, and each owner has paid once.
#[test]
fn a_server_that_commits_to_another_share_is_convicted_by_two_others() {
    for culprit in SERVERS {
        let world = Served::new();
        for owner in world.run(Cluster::new(6, 7), Some(culprit)).into_iter().take(2) {
            assert_eq!(owner.unwrap(), (Some(world.expected()), vec![culprit]));
        }
        assert_eq!(world.charged(), [1, 1]);
    }
}

/// A server that says something else before all hold: in the draw, the rows, the sums, or of how far it is
/// and to what it commits. Nothing is charged, and the next try costs one. If it says to one owner alone that
/// it holds another number, it stops nobody.
#[test]
fn what_a_server_bends_before_all_hold_is_never_charged() {
    // Tops of 38 bytes, echoes of 32, a commitment and what it holds of 32 each.
    let bent =
        [("draw", 40), ("draw", 400), ("rows", 900), ("hold", 3), ("hold", 45), ("hold", 80), ("hold", 120)];
    for (i, (step, byte)) in bent.into_iter().enumerate() {
        let culprit = SERVERS[i % 4];
        let what = format!("p{} at {step}, byte {byte}", culprit.0);
        // What A goes to the seat before, and what is said to all to an owner.
        let towards = if step == "hold" { PartyId(i as u8 % 2) } else { SERVERS[(i + 3) % 4] };
        let world = Served::new();
        let cluster = Cluster::new(6, 8).deadline(std::time::Duration::from_secs(20));
        let fault = InjectedFault::Corrupt { byte, mask: 8 };
        let done = world.run(cluster.fault_towards(culprit, towards, step, fault), None);
        if byte == 120 {
            // All owners and three servers hold it: the one that says something else of that is passed over.
            let owners = done.into_iter().take(2).map(|owner| owner.unwrap().0);
            assert!(owners.into_iter().all(|values| values == Some(world.expected())), "{what}");
            assert_eq!(world.charged(), [1, 1], "{what}");
            continue;
        }
        assert!(done.iter().any(Result::is_err), "{what}: nobody noticed");
        let accused = |error: &Error| {
            let peer = error.at().peer.clone().unwrap_or_default();
            matches!(error.kind(), Fault::Deviated(_) | Fault::Malformed(_))
                && peer.contains(&format!("p{}", culprit.0))
        };
        let errors: Vec<&Error> = done.iter().filter_map(|done| done.as_ref().err()).collect();
        assert!(errors.iter().any(|error| accused(error)), "{what}: {errors:#?}");
        assert!(done.iter().all(|done| !matches!(done, Ok((Some(_), _)))), "{what}");
        assert_eq!(world.charged(), [0, 0], "{what}");
        world.ends(&what);
    }
}
