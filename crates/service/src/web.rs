//! The page: one process, TLS 1.3 alone but for `tacit service demo`, no script needed. What a person asks
//! for is decided and done by ordinary functions on threads that may wait; only connections are asynchronous.

mod answer;
mod api;
mod buckets;
mod certificate;
mod checking;
mod demo;
mod door;
mod drawing;
mod events;
mod guard;
mod listen;
mod metrics;
mod pages;
mod places;
mod rehearsing;
mod rest;
mod shell;
#[cfg(test)]
mod staff_tests;
#[cfg(test)]
pub(crate) mod tests;
mod visit;
mod watch;
mod weighing;

pub use listen::{Listening, listen};
pub(crate) use weighing::{WeighOrder, Weighed, start as weigh_for};

use crate::budget::BoundsShelf;
use crate::link::{LinkBoard, LinkKeys};
use crate::passwords::PasswordDesk;
use crate::rules::{Rules, RulesNow};
use crate::schedule::Jobs;
use crate::settings::RulesFile;
use crate::store::{RecordedAct, SERVICE, Store};
use crate::told::ToldShelf;
use base::Error;
use buckets::Buckets;
use checking::Checking;
use demo::DemoHouse;
use drawing::DrawingDesk;
use metrics::AnswerCounts;
use net::{Identity, KeyFingerprint};
use places::HeldPlaces;
use rehearsing::Rehearsing;
use statements::ProposalId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use watch::LogWatch;
use weighing::Weighing;

/// Streams of events at once, of all and of one session.
const STREAMS: [usize; 2] = [800, 4];
/// The same for programs, of all and of one account: pages stay reachable by one proxy with its connections.
const LISTENERS: [usize; 2] = [200, 8];

/// All that a running service has.
pub struct House {
    store: Arc<Store>,
    rules: Rules,
    desk: PasswordDesk,
    buckets: Buckets,
    streams: Arc<HeldPlaces>,
    listeners: Arc<HeldPlaces>,
    answers: AnswerCounts,
    /// When it was opened, in seconds since 1970.
    begun: u64,
    checking: Checking,
    watch: LogWatch,
    /// Held while a peer is tested: that takes a thread for up to a minute.
    testing: std::sync::Mutex<()>,
    /// Held while the log's chain is computed: a long one takes a thread for long.
    verifying: std::sync::Mutex<()>,
    weighing: Weighing,
    rehearsing: Rehearsing,
    drawing: DrawingDesk,
    told: ToldShelf,
    bounds: BoundsShelf,
    path: PathBuf,
    identity: Option<Identity>,
    links: LinkBoard,
    link_keys: LinkKeys,
    jobs: Jobs,
    demo: Option<DemoHouse>,
}

impl House {
    /// Opens what `service.toml` names.
    ///
    /// # Errors
    /// What is wrong with the file, or the store.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = RulesFile::read(path)?;
        let store = Store::open(&file.settings.store)?;
        crate::backup::refuse_copy(&store)?;
        // Pages for people need no key; without one nothing is said to other organisations.
        let key = &file.settings.identity;
        let identity = key.exists().then(|| Identity::load(key)).transpose()?;
        let rules = Rules::open(path, file, &store, now())?;
        Ok(Self {
            store: Arc::new(store),
            rules,
            desk: PasswordDesk::open()?,
            buckets: Buckets::default(),
            streams: HeldPlaces::new(STREAMS[0], STREAMS[1]),
            listeners: HeldPlaces::new(LISTENERS[0], LISTENERS[1]),
            answers: AnswerCounts::default(),
            begun: now(),
            checking: Checking::default(),
            watch: LogWatch::default(),
            testing: std::sync::Mutex::default(),
            verifying: std::sync::Mutex::default(),
            weighing: Weighing::default(),
            rehearsing: Rehearsing::default(),
            drawing: DrawingDesk::default(),
            told: ToldShelf::default(),
            bounds: BoundsShelf::default(),
            path: path.to_owned(),
            identity,
            links: LinkBoard::default(),
            link_keys: LinkKeys::default(),
            jobs: Jobs::default(),
            demo: None,
        })
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The organisation's key, where its file was there when the service began.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// How the links to other services stand.
    #[must_use]
    pub fn links(&self) -> &LinkBoard {
        &self.links
    }

    /// TLS for the peers that may speak.
    #[must_use]
    pub(crate) fn link_keys(&self) -> &LinkKeys {
        &self.link_keys
    }

    /// The runs that are under way.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Whether a peer has signed more of the log here than there is, or something else: then what this side
    /// may still spend with it is unknown. Others are not concerned: the word may be false.
    pub(crate) fn log_is_behind_for(&self, peer: &KeyFingerprint) -> bool {
        self.watch.seen().contradicted_by.contains(peer)
    }

    /// Whether the log here is still being held against what peers have signed, after the service began.
    pub(crate) fn log_is_being_read(&self) -> bool {
        self.watch.begins()
    }

    /// Where the folders of runs are: beside the store.
    #[must_use]
    pub fn jobs_folder(&self) -> PathBuf {
        self.rules().settings.store.with_file_name("jobs")
    }

    /// Tells people that something happened to a proposal.
    pub(crate) fn notify(&self, word: &'static str, id: &ProposalId) {
        if let Ok(Some(row)) = self.store.proposal(id) {
            crate::notices::tell(&self.rules().settings.policy.notify, word, &row.study);
        }
    }

    /// Says on standard error what could not be done about a proposal.
    pub(crate) fn complain(&self, id: &ProposalId, error: &Error) {
        eprintln!("warning: proposal {id:?}: {error}");
    }

    /// Writes into the log that a link came or went.
    pub(crate) fn log_link(&self, peer: &KeyFingerprint, what: &'static str) {
        let settings = self.rules().settings;
        let name = crate::link::peer_of(&settings, peer).map_or("", |(name, _)| name);
        let act = RecordedAct { by: SERVICE, what, to: &format!("peer {name}"), at: now() };
        if let Err(error) = self.store.record(&act) {
            eprintln!("warning: {error}");
        }
    }

    /// Looks at the rules anew: another process may have accepted others.
    pub(crate) fn look_at_rules(&self) {
        self.rules.look(&self.store, now());
    }

    /// What holds now.
    #[must_use]
    pub fn rules(&self) -> RulesNow {
        self.rules.now(&self.store, now())
    }
}

/// Seconds since 1970.
#[must_use]
pub fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
