//! Owners who say different things: each is noticed and named before a wrong number is kept or an unpaid one
//! is opened.

use super::*;

/// Owners with random shares of a public result; the third one may deviate.
pub(super) struct Owners {
    folder: TempDir,
    plan: ReleasePlan,
    identities: Vec<Identity>,
    /// By what noise the version of this run draws and reads.
    law: Bytes32,
}

const DEVIANT: PartyId = PartyId(2);

/// How the third owner deviates.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deviates {
    No,
    /// Says to the second owner alone that it would not pay, and echoes to each what that one heard.
    Tops,
    /// Commits to another share towards the second owner, and says to each that it holds what that one holds.
    Commits,
    /// Opens another share than it committed to.
    Opens,
    /// Signs another amount than the others pay.
    Signs,
}

impl Owners {
    fn new() -> Self {
        Self::among(3)
    }

    pub(super) fn among(parties: usize) -> Self {
        let case = engine::conformance::case(parties, &format!("joint among {parties}"));
        let (owners, sampler) = (case.program.fold_owners(), |at| case.noise.sampler(at));
        let how = Lowering { noise: NoiseSource::Coins(&sampler), ..Lowering::exact(&owners) };
        let plan = lower_release(&case.program, program::Viewer::Public, &how).unwrap();
        let identities = (0..parties).map(|_| Identity::generate().unwrap()).collect();
        Self { folder: TempDir::new().unwrap(), plan, identities, law: [6; 32] }
    }

    fn keys(&self) -> Vec<String> {
        self.identities.iter().map(|identity| identity.fingerprint().to_string()).collect()
    }

    fn ledger(&self, party: PartyId) -> Ledger {
        Ledger::open(&self.folder.path().join(format!("{}.ledger", party.0))).unwrap()
    }

    fn charged(&self) -> [usize; 3] {
        [0, 1, 2].map(|party| self.ledger(PartyId(party)).entries().unwrap().len())
    }

    fn debit(&self, me: PartyId) -> Debit {
        let mut others = self.keys();
        others.remove(me.index());
        Debit {
            viewer_key: format!("{} {}", others.join(" "), crate::ledger::PUBLIC),
            peer_key: others.join(" "),
            ..debit("", "data")
        }
    }

    fn run(&self, seed: u64, deviates: Deviates) -> Vec<Result<Option<Vec<u128>>, Error>> {
        self.run_on(Cluster::new(3, seed), deviates)
    }

    fn run_on(&self, cluster: Cluster, deviates: Deviates) -> Vec<Result<Option<Vec<u128>>, Error>> {
        let cluster = cluster.deadline(std::time::Duration::from_secs(20));
        let done = cluster.run(|session| Ok(self.one(session, deviates)));
        done.into_iter().map(|done| done.and_then(|done| done)).collect()
    }

    pub(super) fn one(&self, session: &mut Session, deviates: Deviates) -> Result<Option<Vec<u128>>, Error> {
        let (me, ledger) = (session.me(), Mutex::new(self.ledger(session.me())));
        let holders = session.roster().parties().collect();
        let identity = &self.identities[me.index()];
        let mut owner = OwnerPayment { debit: self.debit(me), identity, keys: self.keys() };
        let deviates = if me == DEVIANT { deviates } else { Deviates::No };
        if deviates == Deviates::Signs {
            owner.debit.rho = release::rational::ratio(1, 2);
        }
        let (common, id, law, owner) = ([5; 32], [4; 32], self.law, Some(owner));
        let release = HeldRelease { plan: &self.plan, common, id, law, holders, ledger: &ledger, owner };
        match deviates {
            Deviates::No | Deviates::Signs => {
                release.run(session, |session| Ok(self.share(session))).map(|outcome| outcome.values)
            }
            _ => {
                let share = self.share(session);
                release.deviate(session, deviates, share).map(|()| None)
            }
        }
    }

    /// A share of as many bits as the outputs have.
    fn share(&self, session: &mut Session) -> OutputShares {
        let mut rng = session.fork_seed("share").into_rng();
        let bits: Vec<bool> = (0..self.plan.bits()).map(|_| rng.below(2) == 1).collect();
        OutputShares::of_bytes(outputs::pack(&bits))
    }
}

impl HeldRelease<'_> {
    /// As [`HeldRelease::run`] of a program that was changed.
    fn deviate(&self, session: &mut Session, deviates: Deviates, left: OutputShares) -> Result<(), Error> {
        if deviates == Deviates::Tops {
            return self.say_two_tops(session);
        }
        let NextStep::Compute(attempt) = self.tops(session)? else { panic!("nothing is held yet") };
        if deviates == Deviates::Commits {
            return self.commit_twice(session, &left, attempt);
        }
        let mut held = self.hold(session, &left, attempt)?;
        self.pay(session, &held)?;
        held.share[0] ^= 1;
        for peer in [A, B] {
            say(session, peer, &[&held.share[..], &held.salt].concat())?;
        }
        linger(session)
    }

    /// One top to each, and to each the echo that it expects.
    fn say_two_tops(&self, session: &mut Session) -> Result<(), Error> {
        let mine = self.top()?;
        let said = [mine, ReleaseTop { pays: false, ..mine }];
        for (peer, top) in [A, B].into_iter().zip(said) {
            say(session, peer, &top.bytes())?;
        }
        let heard = [session.link(A).recv_array::<TOP_BYTES>()?, session.link(B).recv_array()?];
        for (peer, top) in [A, B].into_iter().zip(said) {
            let tops =
                [A, B].into_iter().zip(&heard).map(|(party, said)| (party, ReleaseTop::read(said).unwrap()));
            let all: Vec<(PartyId, ReleaseTop)> = tops.chain([(DEVIANT, top)]).collect();
            say(session, peer, &self.echo(&all))?;
        }
        linger(session)
    }

    /// One commitment to each, and to each the number that it makes of that.
    fn commit_twice(&self, session: &mut Session, left: &OutputShares, attempt: u32) -> Result<(), Error> {
        let mut other = left.bytes().to_vec();
        other[0] ^= 1;
        let said = [left.bytes(), &other].map(|share| self.commitment(attempt, DEVIANT, share, &[7; 32]));
        for (peer, commitment) in [A, B].into_iter().zip(said) {
            say(session, peer, &commitment)?;
        }
        let heard = [session.link(A).recv_array()?, session.link(B).recv_array()?];
        for (peer, commitment) in [A, B].into_iter().zip(said) {
            say(session, peer, &self.number(attempt, &[heard[0], heard[1], commitment]))?;
        }
        linger(session)
    }
}

fn say(session: &mut Session, peer: PartyId, bytes: &[u8]) -> Result<(), Error> {
    session.link(peer).send(bytes)?;
    session.link(peer).flush()
}

/// Stays until the others have ended.
fn linger(session: &mut Session) -> Result<(), Error> {
    for peer in [A, B] {
        while session.link(peer).recv_array::<1>().is_ok() {}
    }
    Ok(())
}

/// What went wrong at the two who follow the protocol, and that nobody of them has a number.
fn noticed(done: &[Result<Option<Vec<u128>>, Error>], text: &str) {
    let errors: Vec<String> = done[..2].iter().map(|done| done.as_ref().unwrap_err().to_string()).collect();
    assert!(errors.iter().any(|error| error.contains(text)), "{text}: {errors:#?}");
}

#[test]
fn a_peer_that_says_different_things_of_its_ledger_stops_all_and_nobody_pays() {
    let world = Owners::new();
    noticed(&world.run(1, Deviates::Tops), "one says two things about this release");
    assert_eq!(world.charged(), [0; 3]);
    honest(&world, 1);
}

#[test]
fn a_peer_that_commits_to_two_shares_stops_all_and_nobody_pays() {
    let world = Owners::new();
    noticed(&world.run(1, Deviates::Commits), "one committed to two shares");
    assert_eq!(world.charged(), [0; 3]);
    honest(&world, 1);
}

/// The two have paid and sent; the number that all hold is the one that is opened when it gives the share it
/// committed to.
#[test]
fn a_peer_that_opens_another_share_is_named_and_no_mixed_number_is_kept() {
    let world = Owners::new();
    noticed(&world.run(1, Deviates::Opens), "its share of the outputs is not the one that it committed to");
    assert_eq!(world.charged(), [1; 3]);
    for party in [A, B] {
        assert_eq!(world.ledger(party).outputs(&[4; 32]).unwrap(), None, "nothing is kept");
    }
    honest(&world, 1);
}

#[test]
fn a_peer_that_signs_for_less_is_named_and_no_share_goes_to_it() {
    let world = Owners::new();
    noticed(&world.run(1, Deviates::Signs), "a signature of what it pays for");
    for party in [A, B] {
        assert_eq!(world.ledger(party).numbers_sent(&[4; 32]).unwrap(), 0, "nothing went out");
    }
    assert_eq!(world.charged(), [1; 3]);
}

/// The same release again, all honest: the same number at all, paid for so many times.
fn honest(world: &Owners, paid: usize) {
    let done = world.run(2, Deviates::No);
    let values: Vec<_> = done.into_iter().map(|done| done.unwrap_or_else(|e| panic!("{e}"))).collect();
    assert!(values[0].is_some() && values.iter().all(|value| *value == values[0]), "{values:?}");
    assert_eq!(world.charged(), [paid; 3]);
}

/// A number is read by the noise that it was drawn by: a version with another one draws anew what nobody can
/// have seen, and opens nothing that somebody may have.
#[test]
fn a_number_of_other_noise_is_never_opened() {
    let cut = |step| Cluster::new(3, 1).fault(A, step, InjectedFault::Cut);
    let mut world = Owners::new();
    assert!(world.run_on(cut("pay"), Deviates::No).iter().any(Result::is_err));
    let held = |world: &Owners| world.ledger(A).held_share(&[4; 32]).unwrap().map(|(held, _)| held.number);
    let before = held(&world).expect("it is held");
    world.law = [7; 32];
    honest(&world, 1);
    assert_ne!(held(&world), Some(before), "it was drawn anew, and paid for by what was charged");
    let mut world = Owners::new();
    assert!(world.run_on(cut("open"), Deviates::No).iter().any(Result::is_err));
    world.law = [7; 32];
    noticed(&world.run(2, Deviates::No), "by a version of tacit that draws other noise");
    world.law = [6; 32];
    honest(&world, 1);
}

/// Computed with another implementation of BLAKE3.
#[test]
fn commitments_and_numbers_are_these() {
    let world = Owners::new();
    let ledger = Mutex::new(world.ledger(A));
    let holders = [A, B].to_vec();
    let (common, id, law) = ([5; 32], [4; 32], world.law);
    let release = HeldRelease { plan: &world.plan, common, id, law, holders, ledger: &ledger, owner: None };
    let hex = |bytes: Bytes32| base::hex(&bytes);
    let first = release.commitment(1, A, &[0xa5, 0x5a, 0x03], &[7; 32]);
    let second = release.commitment(1, B, &[0x5a, 0xa5, 0x00], &[8; 32]);
    assert_eq!(hex(first), "d66fa5a20d56461747d666e0fa94f96407501baa37f6d8b69d5397a4f3abaf4d");
    assert_eq!(hex(second), "098ecf9001f8a1b3483daac28f1ade64a22c74f713aa0c9f8f27af28fa35d14a");
    let number = "7e367a41bd0a6629aec77229fd58b5feb17aca9eab8d3107c6a334f892ddce8b";
    assert_eq!(hex(release.number(1, &[first, second])), number);
}
