//! A party's own settings: a file that is never shared and not part of the study's hash, and the flags that
//! override it.

mod bounds;
mod bucket;
mod format;
mod node;
mod policy;
mod workers;

use crate::device::ServerDevice;
use crate::format::InputFormat;
use crate::reader::{TomlItem, TomlSection, TomlSource, is_name};
use crate::transport::ServerTransport;
use crate::{StudyHash, parse_delta, read_text};
use base::{Error, PartyId, Roster, limits};
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{ArgAction, Args};
use net::IpNetwork;
use release::rational::{Rational, decimal, ratio};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;
use store::StoreOptions;

pub use bounds::{AgreedBounds, AgreedCharge, Period, RunRate};
pub use bucket::StoreSettings;
pub use node::ServerSetup;
pub use policy::{PartyPolicy, parse_period};
pub use workers::{Expose, WorkerSettings, WorkerSetup};

/// What the party file of any participant says, or its flags: all that a server has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct CommonSettings {
    /// The study file
    #[arg(long, value_name = "FILE")]
    pub study: Option<PathBuf>,
    /// Which party or server of the study this is
    #[arg(long = "as", value_name = "NAME")]
    pub as_party: Option<String>,
    /// The identity made by `tacit keygen`
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Wait for the peer, or for those of several that come, at this address of this machine
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub listen: Option<String>,
    /// Take connections from this network only: 10.0.0.0/8, or an address; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub allow: Option<Vec<IpNetwork>>,
    /// Connect to the peer at this address; with several peers NAME=HOST:PORT, repeated
    #[arg(long = "peer", value_name = "[NAME=]HOST:PORT", value_parser = peer_address)]
    pub peers: Vec<(Option<String>, String)>,
    /// Most memory to use: 512M, 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Give up after so long without progress, 10m unless told: 90s, 1h
    #[arg(long = "deadline", value_name = "TIME", value_parser = parse_deadline)]
    pub deadline_ms: Option<u64>,
    /// Of a server: what the computation goes over, the same at all four: tls, auto (shared memory on one
    /// host, else TLS), shm, fabric, fabric-PROVIDER
    #[arg(long, value_name = "NAME", value_parser = ServerTransport::parse)]
    pub transport: Option<ServerTransport>,
    /// Of a server: messages may go in plain text, for only the operators of the four can touch the network
    /// between them
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub trusted_network: Option<bool>,
    /// Of a server: what computes: cpu, cuda (the first NVIDIA GPU; cuda:1 is the second), rtl (a simulation)
    #[arg(long, value_name = "NAME", value_parser = ServerDevice::parse)]
    pub device: Option<ServerDevice>,
    /// Policy: only this study, by full hash; may be repeated
    #[arg(long = "allow-study", value_name = "HASH", value_parser = full_hash)]
    pub allow_studies: Option<Vec<StudyHash>>,
}

/// A rho, and where it is said: a flag, or file and line.
pub type PlacedRho = (Rational, String);

/// What a party file or the flags of `tacit run` say; every field may be absent. Flags win over the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct PartySettings {
    /// What a server has as well.
    #[command(flatten)]
    pub common: CommonSettings,
    /// CSV, Excel or Parquet: a file, a folder, a pattern, or s3://BUCKET/.., gs://BUCKET/..,
    /// az://CONTAINER/..
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
    /// What a bucket needs to be told.
    #[command(flatten)]
    pub store: StoreSettings,
    /// What form the files have.
    #[command(flatten)]
    pub format: InputFormat,
    /// The privacy ledger
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// The folder for reports
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
    /// The stable name of this data over all its versions: the budget is kept under it
    #[arg(long, value_name = "NAME")]
    pub lineage: Option<String>,
    /// A private folder for what a match keeps while it runs: a match that breaks off goes on there
    #[arg(long, value_name = "FOLDER")]
    pub work: Option<PathBuf>,
    /// A folder or bucket (s3://, gs://, az://) for rows that do not fit into --memory, sealed
    #[arg(long, value_name = "PLACE")]
    pub state: Option<String>,
    /// The key that --state is sealed under, made where there is no such file [default: LEDGER.state-key]
    #[arg(long, value_name = "FILE")]
    pub state_key: Option<PathBuf>,
    /// Rows go to --state even where they fit into --memory: then a run of any size can go on
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub spool: Option<bool>,
    /// How long --state keeps a run that broke off, since it last came further: 7d
    #[arg(long = "keep-state", value_name = "TIME", value_parser = parse_period)]
    pub keep_state_seconds: Option<u64>,
    /// Who computes.
    #[command(flatten)]
    pub workers: WorkerSettings,
    /// Keep the spine of this run in a private file, for later studies of the same parties
    #[arg(long, value_name = "FILE", conflicts_with = "spine")]
    pub keep_spine: Option<PathBuf>,
    /// Use a kept spine instead of matching; all parties do
    #[arg(long, value_name = "FILE")]
    pub spine: Option<PathBuf>,
    /// The salt that all owners share, for a match by "salted-key"
    #[arg(long, value_name = "FILE")]
    pub salt: Option<PathBuf>,
    /// Tell the study's servers to begin; one host of a run does
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub trigger: Option<bool>,
    /// Policy: only these kinds of study; may be repeated
    #[arg(long = "allow-kind", value_name = "KIND", value_parser = ["lift", "program", "match"])]
    pub allow_kinds: Option<Vec<String>>,
    /// Policy: most rho one study may spend on one viewer
    #[arg(long, value_name = "RHO", value_parser = flag_max_rho)]
    pub max_rho: Option<PlacedRho>,
    /// Policy: most rho all studies together may spend on one viewer of this data
    #[arg(long, value_name = "RHO", value_parser = parse_rho)]
    pub budget: Option<Rational>,
    /// Policy: most rho all studies together may spend on all viewers of this data
    #[arg(long, value_name = "RHO", value_parser = parse_rho)]
    pub total: Option<Rational>,
    /// Policy: the length of a period within the budget, with --period-budget: 90d
    #[arg(long = "period", value_name = "TIME", value_parser = parse_period)]
    pub period_seconds: Option<u64>,
    /// Policy: most rho that may be spent on one viewer of this data within any period; nothing refills the
    /// budget
    #[arg(long, value_name = "RHO", value_parser = parse_rho)]
    pub period_budget: Option<Rational>,
    /// Policy: most runs that may begin with one peer within some time: 20/day
    #[arg(long, value_name = "N/TIME", value_parser = RunRate::parse)]
    pub runs: Option<RunRate>,
    /// Policy: least noise candidates of a study; a bent noise goes unnoticed once in so many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub candidates: Option<u32>,
    /// Policy: made-up rows of a match kept for a rerun, or drawn afresh and paid for each time that it
    /// begins
    #[arg(long = "dummies-seed", value_name = "HOW",
          value_parser = PossibleValuesParser::new(["kept", "fresh"]).map(|how| how == "fresh"))]
    pub fresh_dummies: Option<bool>,
    /// Policy: most cells of one study
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_cells: Option<u64>,
    /// Policy: whether exact results may be revealed
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true")]
    pub allow_exact: Option<bool>,
    /// Policy: most that the deltas of all matches may come to, towards one viewer of this data: 1e-6
    #[arg(long = "delta", value_name = "DELTA", value_parser = parse_delta)]
    pub delta_places: Option<u8>,
    /// Policy: what was consented to for this study; in a file alone, that a service writes
    #[arg(skip)]
    pub agreed: Option<AgreedBounds>,
    /// Of a server: further studies that it may be asked to compute; in its file alone
    #[arg(skip)]
    pub studies: Vec<PathBuf>,
}

/// Settings with nothing missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartySetup {
    /// The study file.
    pub study: PathBuf,
    /// Which party of the study this is.
    pub as_party: String,
    /// The identity made by `tacit keygen`.
    pub identity: PathBuf,
    /// CSV, Excel or Parquet: the path of a file or a folder, a pattern, or a URL that names objects of a
    /// bucket.
    pub data: PathBuf,
    /// What a bucket needs to be told.
    pub store: StoreOptions,
    /// What form the files have, as far as it is said.
    pub format: InputFormat,
    /// Whom to talk to.
    pub address: Address,
    /// Most memory to use, in bytes.
    pub memory: u64,
    /// The privacy ledger.
    pub ledger: PathBuf,
    /// The folder for reports.
    pub report: PathBuf,
    /// Milliseconds without progress before giving up.
    pub deadline_ms: u64,
    /// Networks that connections may come from; none for any.
    pub allow: Vec<IpNetwork>,
    /// The stable name of this data: the budget is kept under it. Studies that charge nothing need none.
    pub lineage: Option<String>,
    /// The private folder for what a match keeps while it runs: with it, a match that breaks off goes on
    /// where it was.
    pub work: Option<PathBuf>,
    /// A folder or a bucket for rows that do not fit into `memory`; none: all have to.
    pub state: Option<String>,
    /// The file of the key that it is sealed under; none: the one beside the ledger.
    pub state_key: Option<PathBuf>,
    /// Whether they go there even where they fit.
    pub spool: bool,
    /// How long a run that broke off is kept there, since it last came further.
    pub keep_state: Duration,
    /// Who computes.
    pub workers: WorkerSetup,
    /// Where to keep the spine of this run, for later ones of the same parties.
    pub keep_spine: Option<PathBuf>,
    /// The kept spine to use instead of matching.
    pub spine: Option<PathBuf>,
    /// The salt that the owners share, for a match by keyed hashes.
    pub salt: Option<PathBuf>,
    /// Whether this party tells the servers to begin.
    pub trigger: bool,
    /// What the computation goes over, where this party is one of the servers.
    pub transport: ServerTransport,
    /// Whether this party takes part only if the servers keep TLS: it says so itself.
    pub tls_only: bool,
    /// What computes, where this party is one of the servers; none is said for the CPU.
    pub device: Option<ServerDevice>,
    /// Whether a new ledger may take the place of one that is said to be lost: asked of the operator, never
    /// of the file.
    pub new_ledger: bool,
    /// What this party agrees to at all.
    pub policy: PartyPolicy,
    /// What its operator said for this run alone.
    pub consent: Consent,
}

/// What an operator answers where a run asks: flags of the command, in no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// These data are none of those that the ledger knows, however alike they look.
    pub new_lineage: bool,
    /// Rho may be spent on cells that are too small to be shown.
    pub spend_anyway: bool,
}

impl PartySetup {
    /// The name under which the budget of these data is kept.
    ///
    /// # Errors
    /// When the party file has none; the text proposes one.
    pub fn lineage(&self) -> Result<&str, Error> {
        self.lineage.as_deref().ok_or_else(|| {
            let stem = self.data.file_stem().map(|stem| stem.to_string_lossy());
            let stem = stem.filter(|stem| is_name(stem)).unwrap_or_else(|| self.as_party.as_str().into());
            Error::input(format!(
                "no lineage: the privacy budget is kept under a name of the data that stays over all their \
                 versions, and this study spends some; add lineage = \"{stem}\" to the party file, or \
                 --lineage {stem} to the command"
            ))
        })
    }
}

/// Of every two parties one listens and the other connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Wait here for the peer, or for all of them.
    Listen(String),
    /// The only peer waits there.
    Peer(String),
    /// Some of several peers wait there, by name; the others come to `listen`.
    Peers {
        /// This party's own address.
        listen: Option<String>,
        /// Peers' addresses by name.
        peers: BTreeMap<String, String>,
    },
}

/// Where a party meets the others of a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Own address, for those who come.
    pub listen: Option<String>,
    /// Addresses of those whom this party goes to.
    pub dial: BTreeMap<PartyId, String>,
}

impl Address {
    /// Who dials whom: of two parties the one that has the other's address, of more the later one in the
    /// order of the roster.
    ///
    /// # Errors
    /// Names the address that is missing, or the name that is no party of the study.
    pub fn places(&self, me: PartyId, roster: &Roster) -> Result<Places, Error> {
        self.places_among(me, roster, &roster.parties().collect::<Vec<_>>())
    }

    /// [`Address::places`] where the parties come in another order than that of the roster: each goes to
    /// those before it.
    ///
    /// # Errors
    /// As [`Address::places`].
    pub fn places_among(&self, me: PartyId, roster: &Roster, order: &[PartyId]) -> Result<Places, Error> {
        let rank = |party: PartyId| order.iter().position(|other| *other == party);
        let before = |peer: PartyId| rank(peer) < rank(me);
        let two = roster.len() == 2;
        let (listen, peers) = match self {
            Self::Listen(at) => (Some(at.clone()), BTreeMap::new()),
            Self::Peer(at) if two => {
                let other = roster.parties().find(|p| *p != me).unwrap_or(me);
                (None, BTreeMap::from([(roster.name(other), at.clone())]))
            }
            Self::Peer(_) => {
                return Err(Error::input(format!(
                    "`peer` is for two parties and this study has {}: write a section [peers] with a line \
                     NAME = \"host:port\" for each",
                    roster.len()
                )));
            }
            Self::Peers { listen, peers } => (listen.clone(), peers.clone()),
        };
        if let Some(name) = peers.keys().find(|name| roster.find(name).is_none()) {
            let others: Vec<String> = roster.parties().filter(|p| *p != me).map(|p| roster.name(p)).collect();
            return Err(Error::input(format!(
                "[peers] names {name}, who is no party of the study; the others are {}",
                others.join(", ")
            )));
        }
        let mut dial = BTreeMap::new();
        for peer in roster.parties().filter(|p| *p != me) {
            let name = roster.name(peer);
            match peers.get(&name) {
                Some(at) if before(peer) || (two && listen.is_none()) => _ = dial.insert(peer, at.clone()),
                None if before(peer) && !(two && listen.is_some()) => {
                    return Err(Error::input(format!(
                        "no address of {name}: {}; add {name} = \"host:port\" under [peers], or --peer \
                         {name}=host:port",
                        match order.is_sorted() {
                            true => "parties go to those before them in the study's order",
                            false => "owners go to servers, and each to those before it by name",
                        }
                    )));
                }
                _ if listen.is_none() => {
                    return Err(Error::input(format!(
                        "{name} comes to this party: add listen = \"0.0.0.0:7000\" to the party file, or \
                         --listen"
                    )));
                }
                _ => {}
            }
        }
        Ok(Places { listen, dial })
    }
}

/// Bytes of memory when neither file nor flag says otherwise.
pub const MEMORY: u64 = 1 << 30;
/// How long a run that broke off is kept when neither file nor flag says otherwise.
pub const KEEP_STATE: Duration = Duration::from_secs(7 * 86_400);
/// Least memory that can be asked for.
pub const MEMORY_LEAST: u64 = 64 << 20;

/// A key of a party file, and what reads its value into settings that say nothing there yet. Paths are
/// relative to the folder.
type FileKey = (&'static str, fn(&mut PartySettings, &TomlItem<'_, '_>, &Path) -> Result<(), Error>);

const KEYS: &[FileKey] = &[
    ("study", |to, item, home| fill(&mut to.common.study, path(item, home))),
    ("as", |to, item, _| fill(&mut to.common.as_party, item.name().map(str::to_owned))),
    ("identity", |to, item, home| fill(&mut to.common.identity, path(item, home))),
    ("data", |to, item, home| fill(&mut to.data, bucket::data(item, home))),
    ("listen", |to, item, _| fill(&mut to.common.listen, item.parsed(host_and_port))),
    ("allow", |to, item, _| fill(&mut to.common.allow, networks(item))),
    ("peer", |to, item, _| item.parsed(host_and_port).map(|at| to.common.peers.push((None, at)))),
    // The last of a name counts: a flag's.
    ("peers", |to, item, _| peers(item).map(|named| drop(to.common.peers.splice(0..0, named)))),
    ("memory", |to, item, _| fill(&mut to.common.memory, item.parsed(parse_memory))),
    ("ledger", |to, item, home| fill(&mut to.ledger, path(item, home))),
    ("report", |to, item, home| fill(&mut to.report, path(item, home))),
    ("deadline", |to, item, _| fill(&mut to.common.deadline_ms, item.parsed(parse_deadline))),
    ("lineage", |to, item, _| fill(&mut to.lineage, item.name().map(str::to_owned))),
    ("work", |to, item, home| fill(&mut to.work, path(item, home))),
    ("state", |to, item, home| fill(&mut to.state, place(item, home))),
    ("state_key", |to, item, home| fill(&mut to.state_key, path(item, home))),
    ("spool", |to, item, _| fill(&mut to.spool, item.boolean())),
    ("keep_state", |to, item, _| fill(&mut to.keep_state_seconds, item.parsed(parse_period))),
    ("keep_spine", |to, item, home| fill(&mut to.keep_spine, path(item, home))),
    ("spine", |to, item, home| fill(&mut to.spine, path(item, home))),
    ("salt", |to, item, home| fill(&mut to.salt, path(item, home))),
    ("studies", |to, item, home| {
        to.studies = item.list()?.iter().map(|item| path(item, home)).collect::<Result<_, _>>()?;
        Ok(())
    }),
    ("trigger", |to, item, _| fill(&mut to.trigger, item.boolean())),
    ("transport", |to, item, _| fill(&mut to.common.transport, item.parsed(ServerTransport::parse))),
    ("trusted_network", |to, item, _| fill(&mut to.common.trusted_network, item.boolean())),
    ("device", |to, item, _| fill(&mut to.common.device, item.parsed(ServerDevice::parse))),
    ("store", bucket::read),
    ("format", format::read),
    ("workers", workers::read),
    ("policy", policy::read),
];

/// What a flag says stands.
fn fill<T>(setting: &mut Option<T>, said: Result<T, Error>) -> Result<(), Error> {
    let said = said?;
    setting.get_or_insert(said);
    Ok(())
}

fn names(keys: &[FileKey]) -> Vec<&'static str> {
    keys.iter().map(|(name, _)| *name).collect()
}

impl CommonSettings {
    /// The address of the only peer, and those of several by name. The last of a kind counts.
    fn places(&self) -> (Option<String>, BTreeMap<String, String>) {
        let alone = self.peers.iter().rev().find(|(name, _)| name.is_none()).map(|(_, at)| at.clone());
        (alone, self.peers.iter().filter_map(|(name, at)| Some((name.clone()?, at.clone()))).collect())
    }
}

impl PartySettings {
    /// Reads the text of a party file. Relative paths are kept as they are written.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        Self::default().over_text(file, Path::new(""), text)
    }

    /// These settings, and those of a text where these say nothing. Relative paths in it are relative to
    /// `home`.
    fn over_text(mut self, file: &str, home: &Path, text: &str) -> Result<Self, Error> {
        let source = TomlSource { file, text };
        let tree = source.table()?;
        let root = TomlSection::root(source, &tree, &names(KEYS))?;
        let displaced = self.displaced();
        for (key, item) in root.entries() {
            // What a flag displaces is read, too: it may be wrong.
            let mut dropped = Self::default();
            let to = if displaced.contains(&key) { &mut dropped } else { &mut self };
            to.read_value(KEYS, key, &item, home)?;
        }
        let both = |other: &str| root.get(other).and(root.get("peer"));
        if let Some(peer) = both("listen") {
            return Err(
                peer.error("both listen and peer are set; one side listens, the other connects: remove one")
            );
        }
        if let Some(peer) = both("peers") {
            return Err(peer.error("both peer and [peers] are set; write all addresses under [peers]"));
        }
        Ok(self)
    }

    fn read_value(
        &mut self,
        keys: &[FileKey],
        key: &str,
        item: &TomlItem<'_, '_>,
        home: &Path,
    ) -> Result<(), Error> {
        let (_, read) = keys.iter().find(|(name, _)| *name == key).expect("a section has known keys");
        read(self, item, home)
    }

    /// Keys of a file in whose place these flags stand, though they set another one.
    fn displaced(&self) -> Vec<&'static str> {
        let (peer, peers) = self.common.places();
        // An address in either form replaces that of the file; with [peers], own address and theirs are
        // apart.
        let address = self.common.listen.is_some() || peer.is_some();
        // One of the two in either form replaces the file's.
        let spine = self.keep_spine.is_some() || self.spine.is_some();
        let keys = [
            ("listen", address),
            ("peer", address || !peers.is_empty()),
            ("peers", peer.is_some()),
            ("keep_spine", spine),
            ("spine", spine),
        ];
        keys.into_iter().filter(|(_, displaced)| *displaced).map(|(key, _)| key).collect()
    }

    /// Reads a party file; relative paths in it are relative to its folder.
    ///
    /// # Errors
    /// When the file cannot be read or does not parse.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::default().over(path)
    }

    /// These settings, and those of the party file at `path` where these say nothing.
    ///
    /// # Errors
    /// As [`PartySettings::read`].
    pub fn over(self, path: &Path) -> Result<Self, Error> {
        self.over_text_of(path, &read_text(path)?)
    }

    /// The same, where the text of the file is read.
    ///
    /// # Errors
    /// When it does not parse.
    pub fn over_text_of(self, path: &Path, text: &str) -> Result<Self, Error> {
        refuse_study(path, text)?;
        self.over_text(&path.display().to_string(), path.parent().unwrap_or(Path::new("")), text)
    }

    /// Settings with nothing missing. Memory, deadline, ledger, report and policy have defaults.
    ///
    /// # Errors
    /// Names the setting that is missing, or the two that contradict each other.
    pub fn complete(self) -> Result<PartySetup, Error> {
        fn need<T>(value: Option<T>, name: &str) -> Result<T, Error> {
            value.ok_or_else(|| {
                Error::input(format!(
                    "no {name}: add {name} = \"...\" to the party file, or --{name} to the command"
                ))
            })
        }
        let policy = self.policy()?;
        let common = self.common;
        let (peer, peers) = common.places();
        let address = match (common.listen, peer) {
            (listen, None) if !peers.is_empty() => Address::Peers { listen, peers },
            (Some(listen), None) => Address::Listen(listen),
            (None, Some(peer)) => Address::Peer(peer),
            (Some(_), Some(_)) => {
                return Err(Error::input(
                    "both listen and peer are set; one side listens, the other connects",
                ));
            }
            (None, None) => return Err(Error::input("neither listen nor peer is set; set one of them")),
        };
        let listens = !matches!(address, Address::Peer(_) | Address::Peers { listen: None, .. });
        if self.keep_spine.is_some() && self.spine.is_some() {
            return Err(Error::input(
                "both keep_spine and spine are set: a run makes a spine or uses one; remove one",
            ));
        }
        let as_party = need(common.as_party, "as")?;
        let data = need(self.data, "data")?;
        bucket::check_data(&data)?;
        Ok(PartySetup {
            study: need(common.study, "study")?,
            identity: need(common.identity, "identity")?,
            address,
            memory: default_memory(common.memory),
            ledger: self.ledger.unwrap_or_else(|| format!("{as_party}.ledger").into()),
            report: self.report.unwrap_or_else(|| Path::new("out").join(&as_party)),
            deadline_ms: common.deadline_ms.unwrap_or(limits::DEADLINE_MS),
            allow: common.allow.unwrap_or_default(),
            lineage: self.lineage,
            work: self.work,
            state: self.state,
            state_key: self.state_key,
            spool: self.spool.unwrap_or_default(),
            keep_state: self.keep_state_seconds.map_or(KEEP_STATE, Duration::from_secs),
            workers: self.workers.complete(listens)?,
            keep_spine: self.keep_spine,
            spine: self.spine,
            salt: self.salt,
            trigger: self.trigger.unwrap_or_default(),
            tls_only: common.transport == Some(ServerTransport::Tls),
            device: common.device,
            transport: ServerTransport::of(common.transport, common.trusted_network)?,
            new_ledger: false,
            policy,
            consent: Consent::default(),
            as_party,
            data,
            store: self.store.options(),
            format: self.format.gathered().map_err(Error::input)?,
        })
    }
}

/// Refuses a study file where a party file is expected.
fn refuse_study(path: &Path, text: &str) -> Result<(), Error> {
    let format = text.lines().find(|line| line.trim_start().starts_with("format"));
    if is_party_file(text) || !format.is_some_and(|line| line.contains("tacit-study/")) {
        return Ok(());
    }
    Err(Error::input(format!(
        "{} is a study file; a party file is expected here: it has `study`, `as`, `identity` and `data` \
         (examples/party-registry.toml)",
        path.display()
    )))
}

/// Whether a text is a party file's, which says who this is; a study's never does.
#[must_use]
pub fn is_party_file(text: &str) -> bool {
    let says = |line: &str, key: &str| {
        line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
    };
    let before_tables = || text.lines().take_while(|line| !line.trim_start().starts_with('['));
    !before_tables().any(|line| says(line, "format") && line.contains("tacit-study/"))
        && before_tables().any(|line| ["as", "study", "identity", "data"].iter().any(|key| says(line, key)))
}

fn default_memory(said: Option<u64>) -> u64 {
    said.unwrap_or(MEMORY)
}

fn path(item: &TomlItem<'_, '_>, home: &Path) -> Result<PathBuf, Error> {
    item.text().map(|text| beside(home, text))
}

/// A path from a folder, as people write it: `lift` and `../mails.csv` are `mails.csv`. A folder that is a
/// link stays, for what is above it is somewhere else.
fn beside(home: &Path, text: &str) -> PathBuf {
    let (mut home, mut rest) = (home, Path::new(text));
    while let Ok(above) = rest.strip_prefix("..") {
        let named = matches!(home.components().next_back(), Some(Component::Normal(_)));
        let Some(parent) = home.parent().filter(|_| named && !home.is_symlink()) else { break };
        (home, rest) = (parent, above);
    }
    match (home.as_os_str().is_empty(), rest.as_os_str().is_empty()) {
        (true, true) => ".".into(),
        (false, true) => home.to_owned(),
        _ => home.join(rest),
    }
}

/// A folder, relative to that of the file, or a URL as it stands.
fn place(item: &TomlItem<'_, '_>, home: &Path) -> Result<String, Error> {
    let text = item.text()?;
    Ok(if text.contains("://") { text.to_owned() } else { beside(home, text).display().to_string() })
}

/// Checks `host:port`.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_address(text: &str) -> Result<(), &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(()),
        _ => Err("write host:port, such as hospitals.example.org:7000 or 0.0.0.0:7000"),
    }
}

/// An address as it is, where it is one.
///
/// # Errors
/// The rule that the text breaks.
pub fn host_and_port(text: &str) -> Result<String, &'static str> {
    parse_address(text).map(|()| text.to_owned())
}

/// Reads `host:port` or `name=host:port`.
fn peer_address(text: &str) -> Result<(Option<String>, String), &'static str> {
    if text.ends_with(".toml") {
        return Err(
            "an address is host:port; the peer's study is compared by: tacit check --peer-study FILE",
        );
    }
    match text.split_once('=') {
        Some((name, at)) => Ok((Some(name.to_owned()), host_and_port(at)?)),
        None => Ok((None, host_and_port(text)?)),
    }
}

fn full_hash(text: &str) -> Result<StudyHash, &'static str> {
    StudyHash::parse(text).ok_or("write the full hash, 64 hex digits")
}

/// Reads a privacy parameter.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_rho(text: &str) -> Result<Rational, &'static str> {
    let rho = decimal(text).filter(|rho| *rho > ratio(0, 1));
    rho.ok_or("write a decimal above 0 with at most 9 digits after the point: 0.1")
}

fn flag_max_rho(text: &str) -> Result<PlacedRho, &'static str> {
    parse_rho(text).map(|rho| (rho, "--max-rho".to_owned()))
}

/// Networks that connections may come from, at least one and at most [`limits::NETWORKS`].
fn networks(item: &TomlItem<'_, '_>) -> Result<Vec<IpNetwork>, Error> {
    let list = item.list()?;
    if list.is_empty() {
        return Err(item.error("allow is empty, and nobody could come: name networks, or remove the line"));
    }
    if let Some(beyond) = list.get(limits::NETWORKS) {
        return Err(beyond.error(format!(
            "allow has {} networks, and at most {}",
            list.len(),
            limits::NETWORKS
        )));
    }
    list.iter().map(|item| item.parsed(str::parse)).collect()
}

fn peers(item: &TomlItem<'_, '_>) -> Result<Vec<(Option<String>, String)>, Error> {
    let section = item.open_section()?;
    let entry =
        |(name, item): (&str, TomlItem<'_, '_>)| Ok((Some(name.to_owned()), item.parsed(host_and_port)?));
    section.entries().into_iter().map(entry).collect()
}

/// Bytes of `512M`, `1G`: powers of 1024, at least [`MEMORY_LEAST`].
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_memory(text: &str) -> Result<u64, &'static str> {
    let rule = "write a whole number with M, G or T, at least 64M: 1G";
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => return Err(rule),
    };
    let count: u64 = digits.parse().map_err(|_| rule)?;
    count.checked_mul(1 << shift).filter(|&bytes| bytes >= MEMORY_LEAST).ok_or(rule)
}

/// Milliseconds of `90s`, `10m`, `2h`: from one second to a day.
///
/// # Errors
/// The rule that the text breaks.
pub fn parse_deadline(text: &str) -> Result<u64, &'static str> {
    let rule = "write a whole number with s, m or h, from 1s to 24h: 10m";
    let (digits, unit) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1_000),
        Some(b'm') => (&text[..text.len() - 1], 60_000),
        Some(b'h') => (&text[..text.len() - 1], 3_600_000),
        _ => return Err(rule),
    };
    let count: u64 = digits.parse().map_err(|_| rule)?;
    count.checked_mul(unit).filter(|ms| (1_000..=86_400_000).contains(ms)).ok_or(rule)
}

#[cfg(test)]
mod tests;
