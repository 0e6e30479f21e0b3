//! `service.toml`: who this organisation is, what it has, and what it agrees to. Every line has a default
//! that refuses: what is not written down is not allowed.

mod differences;
mod edit;
mod hours;
mod parse;
#[cfg(test)]
mod tests;
mod words;

pub use differences::{RuleDifference, RuleTurn, differences};
pub use edit::{edit, rules, with_peer};
pub use hours::QuietHours;
pub use words::words;

use base::Error;
use net::KeyFingerprint;
use release::Rational;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use study::StudyHash;

/// What a file of this format begins with.
pub const FORMAT: &str = "tacit-service/1";

/// A file and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesFile {
    /// Its text.
    pub text: String,
    /// What the text says.
    pub settings: HouseSettings,
}

/// What `service.toml` says. Paths are relative to the folder of the file, and made whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HouseSettings {
    /// What this organisation calls itself.
    pub name: String,
    /// The organisation's key, as `tacit keygen` makes it.
    pub identity: PathBuf,
    /// The database of the service.
    pub store: PathBuf,
    /// The privacy ledger.
    pub ledger: PathBuf,
    /// The folder below which all data lie.
    pub data_root: Option<PathBuf>,
    /// The page.
    pub web: WebSettings,
    /// Where other organisations come to.
    pub link: Option<LinkSettings>,
    /// The other organisations, by our names for them.
    pub peers: BTreeMap<String, ServicePeer>,
    /// This organisation's data, by name.
    pub data: BTreeMap<String, DataSet>,
    /// What this organisation agrees to at all.
    pub policy: ServicePolicy,
    /// How long what was done is kept.
    pub keep: KeepRule,
}

/// `[keep]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeepRule {
    /// Days after which entries of the audit log are taken away; none: never.
    pub log_days: Option<u64>,
    /// Days after which reports are taken away; none: never.
    pub reports_days: Option<u64>,
    /// The folder into which they are written before.
    pub folder: Option<PathBuf>,
}

/// `[web]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebSettings {
    /// Where the page listens.
    pub listen: SocketAddr,
    /// The names, with a port where it is not 443, under which it may be called; lower case.
    pub names: Vec<String>,
    /// Files of a certificate chain and its key; none: one of its own.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// A proxy that says who somebody is.
    pub proxy: Option<WebProxy>,
    /// The Unix socket on which programs that watch the machine read numbers.
    pub metrics: Option<PathBuf>,
}

/// `[web.proxy]`: a program on this machine that people have signed in to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebProxy {
    /// The Unix socket on which it is listened to.
    pub socket: PathBuf,
    /// The user whose process it is: nobody else is listened to there.
    pub uid: u32,
    /// The header in which it names the account.
    pub user_header: String,
}

/// `[link]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkSettings {
    /// Where it listens.
    pub listen: String,
    /// Ports of runs.
    pub run_ports: RangeInclusive<u16>,
}

/// `[peers.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePeer {
    /// Its key.
    pub key: KeyFingerprint,
    /// Where it is; none: it comes to us.
    pub address: Option<String>,
    /// Ports that its runs may have.
    pub run_ports: Option<RangeInclusive<u16>>,
    /// Most proposals that may wait for a decision.
    pub proposals_open: u64,
    /// Most proposals of a day.
    pub proposals_per_day: u64,
    /// Kinds of studies that it may propose.
    pub kinds: Vec<String>,
}

/// `[data.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSet {
    /// A file, folder or pattern below [`HouseSettings::data_root`].
    pub path: String,
    /// The name under which its budget is kept.
    pub lineage: String,
    /// The salt that it shares with the other owners of a study that servers match by keyed hashes.
    pub salt: Option<PathBuf>,
    /// The only columns that a study may read.
    pub columns: Vec<String>,
    /// Whose studies may read it.
    pub peers: Vec<String>,
    /// Who may compute on it as a server, and so holds a share of each row.
    pub servers: Vec<String>,
    /// Accounts that decide on it.
    pub stewards: Vec<String>,
    /// Fewest rows with which it takes part.
    pub least_rows: u64,
    /// Most rho that one viewer may have, for ever.
    pub budget: Rational,
    /// Most rho that one viewer may have in any so many days, inside the budget.
    pub period: Option<(u64, Rational)>,
    /// `10^-d`: the most that deltas may come to.
    pub delta_places: Option<u8>,
    /// Whether a run may go on with data that changed since consent.
    pub changes_allowed: bool,
    /// Whether two stewards must agree.
    pub two_person: bool,
    /// Keys of stewards, of which one signs each consent; empty: none is asked for.
    pub steward_keys: Vec<KeyFingerprint>,
}

/// A study that needs no steward.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoStudy {
    /// Which.
    pub study: StudyHash,
    /// With which data set; none: with the only one.
    pub data: Option<String>,
}

impl AutoStudy {
    /// Whether it is about a study, and a data set may be the one.
    #[must_use]
    pub fn names(&self, study: &StudyHash, data: &str) -> bool {
        self.study == *study && self.data.as_deref().is_none_or(|named| named == data)
    }
}

impl HouseSettings {
    /// Whether `policy.auto` consents to computing a study without data.
    #[must_use]
    pub fn serves_by_rule(&self, study: &StudyHash) -> bool {
        self.policy.auto.iter().any(|auto| auto.study == *study && auto.data.is_none())
    }

    /// The data set with which `policy.auto` consents to a study; none: a person decides. It follows from
    /// what is named alone: what other rules allow, one person can make less, and so choose between two.
    #[must_use]
    pub fn consents_with(&self, study: &StudyHash) -> Option<&str> {
        let named = |data: &&String| self.policy.auto.iter().any(|auto| auto.names(study, data));
        let is_told = self.policy.auto.iter().any(|auto| auto.study == *study && auto.data.is_some());
        let mut fits = self.data.keys().filter(named);
        match (fits.next(), fits.next()) {
            (Some(data), None) if is_told || self.data.len() == 1 => Some(data.as_str()),
            _ => None,
        }
    }
}

/// `[policy]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePolicy {
    /// Kinds of studies.
    pub kinds: Vec<String>,
    /// If not empty, the only studies.
    pub studies: Vec<StudyHash>,
    /// Studies that need no steward.
    pub auto: Vec<AutoStudy>,
    /// Most rho of one study and viewer; none: no study may spend anything.
    pub max_rho: Option<Rational>,
    /// `10^-d`: most delta of one study; none: no study may have one.
    pub max_delta_places: Option<u8>,
    /// Most cells of a study.
    pub max_cells: u64,
    /// Least group that a study must ask for.
    pub minimum_group: u64,
    /// Whether exact results may be revealed.
    pub allow_exact: bool,
    /// Whether a study without dummies may run.
    pub without_dummies: bool,
    /// Least number of candidates of the cut-and-choose.
    pub candidates: u64,
    /// When no run begins.
    pub quiet_hours: Vec<QuietHours>,
    /// Most runs at once.
    pub max_jobs: u64,
    /// Most memory of all runs, in bytes.
    pub jobs_memory: u64,
    /// Most seconds of one run; none: by what it is expected to take.
    pub longest_run: Option<u64>,
    /// Whether who proposed a study may not consent to it.
    pub separate_duties: bool,
    /// Whether a token may consent and refuse for its steward.
    pub consent_by_token: bool,
    /// Roles whose people sign in with a second step.
    pub second_step: Vec<String>,
    /// The command that tells people of something.
    pub notify: Vec<String>,
}

impl RulesFile {
    /// Reads a file.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line and column.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = study::read_text(path)?;
        let settings = Self::parse(path, &text)?;
        Ok(Self { text, settings })
    }

    /// What a text of the file at `path` says.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn parse(path: &Path, text: &str) -> Result<HouseSettings, Error> {
        let home = path.parent().unwrap_or(Path::new(""));
        parse::parse(&path.display().to_string(), home, text)
    }

    /// What an operator accepts.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Self::hash_of(&self.text)
    }

    /// The same of a text.
    #[must_use]
    pub fn hash_of(text: &str) -> [u8; 32] {
        blake3::derive_key("tacit 2026-12 service file v1", text.as_bytes())
    }
}

impl WebSettings {
    /// Whether a request's `Host` is one of ours.
    #[must_use]
    pub fn is_named(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix(":443").unwrap_or(&host);
        self.hosts().any(|name| name == host)
    }

    /// All names, the address itself where it is of this machine alone.
    pub fn hosts(&self) -> impl Iterator<Item = String> + '_ {
        let own = self.listen.ip().is_loopback();
        let local = [self.listen.to_string(), format!("localhost:{}", self.listen.port())];
        self.names.iter().cloned().chain(local.into_iter().filter(move |_| own))
    }

    /// The address to show people.
    #[must_use]
    pub fn url(&self) -> String {
        let first = self.names.first().cloned();
        format!("https://{}", first.unwrap_or_else(|| self.listen.to_string()))
    }
}
