//! What a party file says, under flags that win over it.

use base::Error;
use clap::Args;
use std::path::{Path, PathBuf};
use study::party::{Consent, PartySettings};

/// What commands take that run a party's half of a study.
#[derive(Debug, Args)]
pub struct HalfArgs {
    /// The party file
    #[arg(value_name = "PARTY_FILE")]
    pub party: Option<PathBuf>,
    /// Flags that win over the party file
    #[command(flatten)]
    pub settings: PartySettings,
    /// Begin with a new ledger although reports or a peer say that there was one: what was spent is forgotten
    #[arg(long)]
    pub new_ledger: bool,
    /// What the operator says for this run alone
    #[command(flatten)]
    pub said: ConsentArgs,
    /// Progress as JSON lines on standard error, for a process that watches this one
    #[arg(long, hide = true)]
    pub events: bool,
}

impl HalfArgs {
    /// Settings of the party file under the flags. `usage` is what to write.
    ///
    /// # Errors
    /// When there are none, or the party file cannot be read.
    pub fn read(&self, usage: &str) -> Result<PartySettings, Error> {
        let flags = self.settings.clone();
        if self.party.is_none() && flags == PartySettings::default() {
            return Err(Error::input(format!("PARTY_FILE is missing: {usage}, or every setting as a flag")));
        }
        settings(self.party.as_deref(), flags)
    }
}

/// What the operator says for one run.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct ConsentArgs {
    /// These data are none of those that the ledger knows under other names, however alike they look; kept in
    /// the ledger
    #[arg(long)]
    pub new_lineage: bool,
    /// Spend rho on arms and cells that are too small to be shown, and go on where the sizes of a lift
    /// study's match say that hardly anybody is in both files: both parties say it, else the run ends there
    #[arg(long)]
    pub spend_anyway: bool,
}

impl From<ConsentArgs> for Consent {
    fn from(said: ConsentArgs) -> Self {
        Self { new_lineage: said.new_lineage, spend_anyway: said.spend_anyway }
    }
}

/// Settings of a party file, if one is named, under the flags.
///
/// # Errors
/// When the party file cannot be read.
pub fn settings(party: Option<&Path>, flags: PartySettings) -> Result<PartySettings, Error> {
    match party {
        Some(path) => flags.over(path),
        None => Ok(flags),
    }
}

#[cfg(test)]
mod tests {
    use crate::args::{TacitCli, TacitCommand};
    use clap::Parser;

    #[test]
    fn peers_are_named_or_alone() {
        let words = ["tacit", "run", "--peer", "a=h:1", "--peer", "b=h:2", "--listen", "0.0.0.0:3"];
        let TacitCommand::Run(run) = TacitCli::try_parse_from(words).unwrap().command else {
            panic!("a run")
        };
        let settings = run.party.settings.common;
        let named = |name: &str, at: &str| (Some(name.to_owned()), at.to_owned());
        assert_eq!(settings.peers, [named("a", "h:1"), named("b", "h:2")]);
        assert_eq!(settings.listen.as_deref(), Some("0.0.0.0:3"));
        let alone = |at| TacitCli::try_parse_from(["tacit", "run", "--peer", at]);
        assert!(alone("h:1").is_ok() && alone("a=h").is_err() && alone("h").is_err());
    }

    #[test]
    fn every_line_of_a_party_file_is_a_flag() {
        let line = "run --study s --as a --identity i --data d --listen 0.0.0.0:1 --allow 10.0.0.0/8 \
                    --memory 64M --ledger l --report r --deadline 1m --lineage x --allow-kind lift --max-rho \
                    0.5 --budget 1 --max-cells 2 --allow-exact --delta 1e-7 --total 2 --candidates 8 \
                    --dummies-seed fresh --work w --keep-spine k";
        let cli = TacitCli::try_parse_from(std::iter::once("tacit").chain(line.split_whitespace())).unwrap();
        let TacitCommand::Run(run) = cli.command else { panic!("a run") };
        let settings = run.party.settings;
        assert_eq!((settings.common.memory, settings.common.deadline_ms), (Some(64 << 20), Some(60_000)));
        assert_eq!(settings.common.allow, Some(vec!["10.0.0.0/8".parse().unwrap()]));
        assert_eq!((settings.max_cells, settings.allow_exact), (Some(2), Some(true)));
        assert_eq!(settings.allow_kinds, Some(vec!["lift".to_owned()]));
        assert_eq!((settings.delta_places, &settings.keep_spine), (Some(7), &Some("k".into())));
        assert_eq!((&settings.total, settings.candidates), (&release::rational::decimal("2"), Some(8)));
        assert_eq!(settings.fresh_dummies, Some(true));
        assert!(settings.complete().is_ok());
    }
}
