//! All parties of a protocol in one process, for tests: seeded, with deadlines and faults.

use crate::channel::{CHUNK_BYTES, WINDOW_CHUNKS, pair_with};
use crate::faults::{Faulty, InjectedFault, Planned};
use crate::{Channel, Session};
use base::{Error, PartyId, Roster, Seed};
use std::time::Duration;

/// A cluster of parties on threads of this process, connected by bounded in-process pipes.
pub struct Cluster {
    roster: Roster,
    seed: [u8; 32],
    deadline: Duration,
    window: (usize, usize),
    /// Whose, towards whom (everybody: `None`), and what.
    faults: Vec<(PartyId, Option<PartyId>, Planned)>,
    digests: bool,
}

impl Cluster {
    /// `parties` parties named `p0`, `p1`, ...; every generator derives from `seed`.
    #[must_use]
    pub fn new(parties: usize, seed: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            roster: Roster::new((0..parties).map(|i| format!("p{i}"))),
            seed: bytes,
            deadline: Duration::from_secs(60),
            window: (WINDOW_CHUNKS, CHUNK_BYTES),
            faults: Vec::new(),
            digests: false,
        }
    }

    /// Other deadline than a minute.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Windows of two buffers of 32 KiB: a protocol that relies on more between two receives ends at the
    /// deadline. Every protocol that streams has one test under it.
    #[must_use]
    pub fn tiny_window(mut self) -> Self {
        self.window = (2, 32 << 10);
        self
    }

    /// Something goes wrong with what `party` sends to each of its peers at `step` and under it.
    #[must_use]
    pub fn fault(mut self, party: PartyId, step: impl Into<String>, fault: InjectedFault) -> Self {
        self.faults.push((party, None, Planned { step: step.into(), fault }));
        self
    }

    /// As [`Cluster::fault`] with what `party` sends to `peer` only.
    #[must_use]
    pub fn fault_towards(
        mut self,
        party: PartyId,
        peer: PartyId,
        step: impl Into<String>,
        fault: InjectedFault,
    ) -> Self {
        self.faults.push((party, Some(peer), Planned { step: step.into(), fault }));
        self
    }

    /// Sessions hash what they send: see [`Session::digests`].
    #[must_use]
    pub fn digests(mut self) -> Self {
        self.digests = true;
        self
    }

    /// One session per party, connected pairwise.
    #[must_use]
    pub fn sessions(&self) -> Vec<Session> {
        let n = self.roster.len();
        let mut ends: Vec<Vec<(PartyId, Box<dyn Channel>)>> = (0..n).map(|_| Vec::new()).collect();
        for a in 0..n {
            for b in a + 1..n {
                let (end_a, end_b) = pair_with(self.deadline, self.window.0, self.window.1);
                let (party_a, party_b) = (PartyId(a as u8), PartyId(b as u8));
                ends[a].push((party_b, Faulty::wrap(end_a, self.faults_of(party_a, party_b))));
                ends[b].push((party_a, Faulty::wrap(end_b, self.faults_of(party_b, party_a))));
            }
        }
        let seed = Seed::from_bytes(self.seed);
        let session = |(i, channels)| {
            let me = PartyId(i as u8);
            let session = Session::new(me, self.roster.clone(), channels, seed.fork(&format!("party {i}")));
            if self.digests { session.with_digests() } else { session }
        };
        ends.into_iter().enumerate().map(session).collect()
    }

    fn faults_of(&self, party: PartyId, peer: PartyId) -> Vec<Planned> {
        let of_party = self
            .faults
            .iter()
            .filter(|(whose, towards, _)| *whose == party && towards.is_none_or(|towards| towards == peer));
        of_party.map(|(_, _, planned)| planned.clone()).collect()
    }

    /// Runs `work` for every party on its own thread. Results come in party order; a party that ends drops
    /// its channels, so the others see it as closed.
    pub fn run<T: Send>(
        &self,
        work: impl Fn(&mut Session) -> Result<T, Error> + Sync,
    ) -> Vec<Result<T, Error>> {
        let work = &work;
        std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .sessions()
                .into_iter()
                .map(|mut session| {
                    scope.spawn(move || {
                        let done = work(&mut session)?;
                        session.finish()?;
                        Ok(done)
                    })
                })
                .collect();
            let join = |t: std::thread::ScopedJoinHandle<'_, _>| {
                t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }

    /// A digest of everything that all parties say in `work`: see [`pinned`].
    ///
    /// # Panics
    /// When a party fails.
    #[must_use]
    pub fn wire(self, work: impl Fn(&mut Session) -> Result<(), Error> + Sync) -> String {
        self.wire_where(|_| true, work)
    }

    /// The same of the steps that `of` picks, where others do not repeat under one seed: signatures, for one.
    ///
    /// # Panics
    /// When a party fails.
    #[must_use]
    pub fn wire_where(
        self,
        of: impl Fn(&str) -> bool,
        work: impl Fn(&mut Session) -> Result<(), Error> + Sync,
    ) -> String {
        let done = self.digests().run(|session| work(session).map(|()| session.digests()));
        let mut hash = blake3::Hasher::new();
        let said = |done: Result<_, Error>| -> Vec<(PartyId, String, [u8; 32])> {
            done.unwrap_or_else(|error| panic!("nothing to pin: {error}"))
        };
        for (peer, step, said) in done.into_iter().flat_map(said).filter(|(_, step, _)| of(step)) {
            hash.update(&[peer.0]).update(step.as_bytes()).update(&said);
        }
        hash.finalize().to_hex()[..PIN].to_owned()
    }
}

/// Digits of a pinned digest.
const PIN: usize = 16;

/// Holds what is said ([`Cluster::wire`]) against what was said when the test was written:
/// `(of what, digest, pinned)`. A test `the_wire_is_pinned` of every protocol calls it; the first word of a
/// name is the protocol's page in `docs/protocols`.
///
/// # Panics
/// Where something else is said.
pub fn pinned(wires: &[(&str, String, &str)]) {
    let changed = wires.iter().filter(|(_, said, pinned)| said != pinned).map(|(what, said, _)| {
        format!(
            "the wire of {what} changed: raise net's FORMAT_VERSION if two versions cannot talk, say it in \
             CHANGELOG.md, then pin {said}"
        )
    });
    let changed: Vec<String> = changed.collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}
