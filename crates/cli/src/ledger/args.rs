//! The arguments of `tacit ledger`.

use clap::{Args, Subcommand};
use net::identity::KeyFingerprint;
use release::rational::Rational;
use std::path::PathBuf;

/// The privacy ledger: what was spent of the budget of this party's data, and on whom; and what to do when
/// releases broke off or the file was lost.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit ledger show registry.ledger --party registry.toml\n  tacit ledger allow \
                  registry.ledger 3f9a1c0b --reason \"their disk failed, we spoke\"\n  \
    tacit ledger verify registry.ledger\n  tacit ledger export registry.ledger > \
    registry-ledger.json\n  tacit ledger backup registry.ledger registry-2024-05.ledger\n  \
    tacit ledger recover registry.ledger --lineage trial --spent 0.22"
)]
pub struct LedgerArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: LedgerAction,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with a ledger.
#[derive(Debug, Subcommand)]
pub enum LedgerAction {
    /// Show budgets and studies
    ///
    /// Parties have the names that they had in studies whose answers are kept here; a party file adds those
    /// of its study, and what is left of its bounds.
    #[command(after_help = "Examples:\n  tacit ledger show registry.ledger\n  tacit ledger show \
                            registry.ledger --party registry.toml")]
    Show {
        /// The ledger
        ledger: PathBuf,
        /// A party file of this ledger: names of its study's parties, and what is left of policy.budget and
        /// policy.total
        #[arg(long, value_name = "PARTY_FILE")]
        party: Option<PathBuf>,
    },
    /// Let releases with a peer begin again, after one broke off or its ledger was another one
    ///
    /// A release that stopped after its noise index was named bars all further ones with that peer on that
    /// lineage, in this ledger: a peer that leaves whenever it would be caught would succeed in the end. Find
    /// out what happened, then decide. Nothing is needed of the peer; the next run draws new noise and is
    /// charged again.
    #[command(after_help = "Example:\n  tacit ledger allow registry.ledger tacit1:3f9a1c0b --lineage trial \
                      --reason \"their disk failed, we spoke\"")]
    Allow {
        /// The ledger
        ledger: PathBuf,
        /// The peer: its key as in the study, or the beginning of it
        peer: String,
        /// Only for releases on this lineage of this party's data; else for all
        #[arg(long, value_name = "NAME")]
        lineage: Option<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Check that no other program changed the file, and what the parties signed
    ///
    /// Computes the chain of hashes with every peer anew from the rows, and names the first row that was
    /// changed, is missing or was added; exit code 2 then. Checks every party's signature on every debit, in
    /// a ledger or in an exported one.
    #[command(after_help = "Examples:\n  tacit ledger verify registry.ledger\n  tacit ledger verify \
                            registry-ledger.json\n  tacit ledger verify registry.ledger --service \
                            /srv/tacit --peer hospitals.jsonl")]
    Verify {
        /// The ledger, or what `tacit ledger export` printed or wrote of one
        ledger: PathBuf,
        /// The folder of the organisation's service: checks its audit log, the statements that were signed,
        /// and that what was charged was consented to
        #[arg(long, value_name = "FOLDER")]
        service: Option<PathBuf>,
        /// What a peer wrote by `tacit ledger export --out`: whether both sides hold the same
        #[arg(long, value_name = "FILE")]
        peer: Option<PathBuf>,
        /// Who must have signed a file that `tacit ledger export --out` wrote: the fingerprint of the
        /// organisation's key. Without it, whoever made the file signed it
        #[arg(long, value_name = "FINGERPRINT")]
        signer: Option<KeyFingerprint>,
    },
    /// Print everything that an auditor needs, and nothing secret
    ///
    /// Debits with the signatures of all parties, what was given back, how far each release is, bars, what
    /// was allowed, keys that took the place of others. No held shares, salts, seeds, results or keys: who
    /// has the export can check it and not use it.
    #[command(
        after_help = "Examples:\n  tacit ledger export registry.ledger > ledger.json\n  tacit ledger verify \
                      ledger.json\n  tacit ledger export registry.ledger --csv > debits.csv\n  tacit ledger \
                      export registry.ledger --service /srv/tacit --identity registry.key --out \
                      registry.jsonl"
    )]
    Export {
        /// The ledger
        ledger: PathBuf,
        /// The debits alone, as comma-separated values; else all of it as one JSON object
        #[arg(long, conflicts_with = "json")]
        csv: bool,
        /// Write a new file of JSON lines instead, signed by --identity: the ledger, and with --service the
        /// statements and the audit log
        #[arg(long, value_name = "FILE", requires = "identity", conflicts_with = "csv")]
        out: Option<PathBuf>,
        /// The organisation's key
        #[arg(long, value_name = "KEY_FILE", requires = "out")]
        identity: Option<PathBuf>,
        /// The folder of the organisation's service
        #[arg(long, value_name = "FOLDER", requires = "out")]
        service: Option<PathBuf>,
        /// Only what is about one study: its hash, 64 hex digits
        #[arg(long, value_name = "HASH", requires = "out")]
        study: Option<String>,
    },
    /// Copy the ledger to a new file, whole whatever else goes on with it; never overwrites
    #[command(after_help = "Example:\n  tacit ledger backup registry.ledger registry-2024-05.ledger")]
    Backup {
        /// The ledger
        ledger: PathBuf,
        /// The copy
        file: PathBuf,
    },
    /// After the ledger was lost: take over what this party signed and peers gave back
    ///
    /// Where there is no ledger, an empty one is made, and the run that follows is the first step. A run that
    /// finds that a peer knows more of this ledger than is in it refuses, and keeps what the peer gave back.
    /// This charges what it says was charged in all, and goes on from there. More may have been spent since
    /// it was signed, so releases with that peer stay barred until `tacit ledger allow`, unless --spent says
    /// what was spent.
    #[command(after_help = "Example:\n  tacit ledger recover registry.ledger --lineage trial --spent 0.22")]
    Recover {
        /// The ledger
        ledger: PathBuf,
        /// The lineage to charge; may be left out where the ledger knows only one
        #[arg(long, value_name = "NAME")]
        lineage: Option<String>,
        /// What was spent on that lineage in all, towards each peer that gave something back, as the reports
        /// say
        #[arg(long, value_name = "RHO", value_parser = study::party::parse_rho)]
        spent: Option<Rational>,
    },
}
