//! Lines of a party file as flags.

use crate::args::{address, peer, rho, study_hash};
use base::Error;
use clap::{ArgAction, Args};
use net::IpNetwork;
use std::path::{Path, PathBuf};
use study::party::{PartySettings, RunRate, parse_deadline, parse_memory};
use study::transport::ServerTransport;
use study::{Decimal, parse_delta};

/// What the party file of any participant says, as flags: all that a server has.
#[derive(Clone, Debug, Default, Args)]
pub struct ServerSettings {
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
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub listen: Option<String>,
    /// Take connections from this network only: 10.0.0.0/8, or an address; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<IpNetwork>,
    /// Connect to the peer at this address; with several peers NAME=HOST:PORT, repeated
    #[arg(long, value_name = "[NAME=]HOST:PORT", value_parser = peer)]
    pub peer: Vec<(Option<String>, String)>,
    /// Most memory to use: 512M, 1G
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    pub memory: Option<u64>,
    /// Give up after so long without progress: 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_deadline)]
    pub deadline: Option<u64>,
    /// Of a server: what the computation goes over, the same at all four: tls, auto (shared memory on one
    /// host, else TLS), shm, fabric, fabric-PROVIDER
    #[arg(long, value_name = "NAME", value_parser = ServerTransport::parse)]
    pub transport: Option<ServerTransport>,
    /// Of a server: messages may go in plain text, for only the operators of the four can touch the network
    /// between them
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub trusted_network: Option<bool>,
    /// Policy: only this study, by full hash; may be repeated
    #[arg(long, value_name = "HASH", value_parser = study_hash)]
    pub allow_study: Vec<study::StudyHash>,
}

/// Every line of a party file as a flag.
#[derive(Clone, Debug, Default, Args)]
pub struct PartyFlags {
    #[command(flatten)]
    pub any: ServerSettings,
    /// CSV or Parquet, or a folder of them
    #[arg(long, value_name = "PATH")]
    pub data: Option<PathBuf>,
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
    #[arg(long, value_name = "KIND", value_parser = ["lift", "program", "match"])]
    pub allow_kind: Vec<String>,
    /// Policy: most rho one study may spend on one viewer
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub max_rho: Option<Decimal>,
    /// Policy: most rho all studies together may spend on one viewer of this data
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub budget: Option<Decimal>,
    /// Policy: most rho all studies together may spend on all viewers of this data
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub total: Option<Decimal>,
    /// Policy: the length of a period within the budget, with --period-budget: 90d
    #[arg(long, value_name = "TIME", value_parser = study::party::parse_period)]
    pub period: Option<u64>,
    /// Policy: most rho that may be spent on one viewer of this data within any period; nothing refills the
    /// budget
    #[arg(long, value_name = "RHO", value_parser = rho)]
    pub period_budget: Option<Decimal>,
    /// Policy: most runs that may begin with one peer within some time: 20/day
    #[arg(long, value_name = "N/TIME", value_parser = RunRate::parse)]
    pub runs: Option<RunRate>,
    /// Policy: least noise candidates of a study; a bent noise goes unnoticed once in so many times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub candidates: Option<u32>,
    /// Policy: made-up rows of a match kept for a rerun, or drawn afresh and paid for each time that it
    /// begins
    #[arg(long, value_name = "HOW", value_parser = ["kept", "fresh"])]
    pub dummies_seed: Option<String>,
    /// Policy: most cells of one study
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_cells: Option<u64>,
    /// Policy: whether exact results may be revealed
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1,
          default_missing_value = "true")]
    pub allow_exact: Option<bool>,
    /// Policy: most that the deltas of all matches may come to, towards one viewer of this data: 1e-6
    #[arg(long, value_name = "DELTA", value_parser = parse_delta)]
    pub delta: Option<u8>,
}

/// What the operator says for one run.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Said {
    /// These data are none of those that the ledger knows under other names, however alike they look; kept in
    /// the ledger
    #[arg(long)]
    pub new_lineage: bool,
    /// Spend rho on arms and cells that are too small to be shown
    #[arg(long)]
    pub spend_anyway: bool,
}

impl From<Said> for study::party::Consent {
    fn from(said: Said) -> Self {
        Self { new_lineage: said.new_lineage, spend_anyway: said.spend_anyway }
    }
}

impl From<ServerSettings> for PartySettings {
    fn from(flags: ServerSettings) -> Self {
        let (named, alone): (Vec<_>, Vec<_>) = flags.peer.into_iter().partition(|(name, _)| name.is_some());
        Self {
            study: flags.study,
            as_party: flags.as_party,
            identity: flags.identity,
            listen: flags.listen,
            peer: alone.into_iter().next_back().map(|(_, at)| at),
            peers: named.into_iter().filter_map(|(name, at)| Some((name?, at))).collect(),
            memory: flags.memory,
            deadline_ms: flags.deadline,
            allow: listed(flags.allow),
            transport: flags.transport,
            trusted_network: flags.trusted_network,
            allow_studies: listed(flags.allow_study),
            ..Self::default()
        }
    }
}

fn listed<T>(list: Vec<T>) -> Option<Vec<T>> {
    (!list.is_empty()).then_some(list)
}

impl From<PartyFlags> for PartySettings {
    fn from(flags: PartyFlags) -> Self {
        Self {
            data: flags.data,
            ledger: flags.ledger,
            report: flags.report,
            lineage: flags.lineage,
            allow_kinds: listed(flags.allow_kind),
            max_rho: flags.max_rho,
            max_rho_at: flags.max_rho.map(|_| "--max-rho".to_owned()),
            budget: flags.budget,
            max_cells: flags.max_cells,
            allow_exact: flags.allow_exact,
            delta_places: flags.delta,
            total: flags.total,
            period_seconds: flags.period,
            period_budget: flags.period_budget,
            runs: flags.runs,
            candidates: flags.candidates,
            fresh_dummies: flags.dummies_seed.map(|how| how == "fresh"),
            work: flags.work,
            keep_spine: flags.keep_spine,
            spine: flags.spine,
            salt: flags.salt,
            trigger: flags.trigger,
            ..flags.any.into()
        }
    }
}

/// Settings of a party file, if one is named, under the flags.
///
/// # Errors
/// When the party file cannot be read.
pub fn settings(party: Option<&Path>, flags: impl Into<PartySettings>) -> Result<PartySettings, Error> {
    let file = party.map(PartySettings::read).transpose()?.unwrap_or_default();
    Ok(flags.into().over(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{TacitCli, TacitCommand};
    use clap::Parser;

    #[test]
    fn peers_are_named_or_alone() {
        assert_eq!(peer("h:1"), Ok((None, "h:1".to_owned())));
        assert_eq!(peer("a=h:1"), Ok((Some("a".to_owned()), "h:1".to_owned())));
        assert!(peer("a=h").is_err() && peer("h").is_err());
        let words = ["tacit", "run", "--peer", "a=h:1", "--peer", "b=h:2", "--listen", "0.0.0.0:3"];
        let TacitCommand::Run(run) = TacitCli::try_parse_from(words).unwrap().command else {
            panic!("a run")
        };
        let settings = PartySettings::from(run.settings);
        assert_eq!((settings.peers.len(), settings.peer), (2, None));
        assert_eq!(settings.listen.as_deref(), Some("0.0.0.0:3"));
    }

    #[test]
    fn every_line_of_a_party_file_is_a_flag() {
        let line = "run --study s --as a --identity i --data d --listen 0.0.0.0:1 --allow 10.0.0.0/8 \
                    --memory 64M --ledger l --report r --deadline 1m --lineage x --allow-kind lift --max-rho \
                    0.5 --budget 1 --max-cells 2 --allow-exact --delta 1e-7 --total 2 --candidates 8 \
                    --dummies-seed fresh --work w --keep-spine k";
        let cli = TacitCli::try_parse_from(std::iter::once("tacit").chain(line.split_whitespace())).unwrap();
        let TacitCommand::Run(run) = cli.command else { panic!("a run") };
        let settings = PartySettings::from(run.settings);
        assert_eq!((settings.memory, settings.deadline_ms), (Some(64 << 20), Some(60_000)));
        assert_eq!(settings.allow, Some(vec!["10.0.0.0/8".parse().unwrap()]));
        assert_eq!((settings.max_cells, settings.allow_exact), (Some(2), Some(true)));
        assert_eq!(settings.allow_kinds, Some(vec!["lift".to_owned()]));
        assert_eq!((settings.delta_places, &settings.keep_spine), (Some(7), &Some("k".into())));
        assert_eq!((settings.total, settings.candidates), (Decimal::parse("2"), Some(8)));
        assert_eq!(settings.fresh_dummies, Some(true));
        assert!(settings.complete().is_ok());
    }
}
