//! `tacit state`: whether a place can hold the state of runs, and what is kept there.

mod kept;
mod probe;

use base::Error;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use study::party::StoreSettings;
use terminal::output;
use terminal::values::count;

/// Places that hold the state of runs: folders, and buckets of S3, Google Cloud Storage and Azure.
///
/// What a run keeps outside its process is sealed: a store sees names, sizes and times.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit state show party.toml\n  tacit state drop party.toml \
                  1f6b0c6d2a9e4f37\n  tacit state probe /var/lib/tacit/state\n  tacit state probe \
                  s3://bucket/tacit --region eu-central-1\n  tacit state probe s3://bucket/tacit --endpoint \
                  https://minio.example.org:9000 --json")]
pub struct StateArgs {
    /// What to do with it.
    #[command(subcommand)]
    pub action: StateAction,
    /// Print one JSON object
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with a place.
#[derive(Debug, Subcommand)]
pub enum StateAction {
    /// Check that a place keeps what a run relies on, and measure it
    ///
    /// Creates an object twice, which must fail; takes a log over from itself, and sees that the one that was
    /// replaced is stopped; writes, range-reads and deletes a sealed object; deals records to runs and reads
    /// them back sorted. It works below PLACE/probe and leaves nothing there, unless it is killed.
    /// Credentials come from the environment or the machine's role, never from a URL or a file of tacit:
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; GOOGLE_APPLICATION_CREDENTIALS;
    /// AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY.
    #[command(after_help = "Exit code 2: the place does not do (the message says why); 1: it cannot be \
                            reached, or is full.\n\nExample:\n  AWS_ACCESS_KEY_ID=.. \
                            AWS_SECRET_ACCESS_KEY=.. tacit state probe s3://bucket/tacit --size 256M")]
    Probe(PlaceArgs),
    /// Show the runs that a party's state keeps, and how far each has come
    ///
    /// A run that broke off is kept for the time that the party file says (`keep_state`, a week), since it
    /// last came further: `tacit run` with the same study and unchanged data goes on with it. This only
    /// looks: a run under way is not disturbed.
    #[command(after_help = "Example:\n  tacit state show party.toml --json")]
    Show(ShowArgs),
    /// Remove runs that a party's state keeps
    ///
    /// The next run of that study reads, matches and computes anew. What was charged stays charged, and a
    /// number that was released stays the same: the ledger keeps that. With --all, all runs of this party
    /// go.
    #[command(after_help = "Examples:\n  tacit state drop party.toml 1f6b0c6d2a9e4f37\n  tacit state drop \
                            party.toml --all")]
    Drop(DropArgs),
}

/// Whose state.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The party file
    #[arg(value_name = "PARTY")]
    pub party: PathBuf,
}

/// What goes.
#[derive(Debug, Args)]
pub struct DropArgs {
    /// The party file
    #[arg(value_name = "PARTY")]
    pub party: PathBuf,
    /// Runs, as `tacit state show` names them
    #[arg(value_name = "RUN", conflicts_with = "all")]
    pub runs: Vec<String>,
    /// All runs of this party
    #[arg(long)]
    pub all: bool,
}

/// A place, and how it is probed.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// A folder, file:///PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX
    #[arg(value_name = "PLACE")]
    pub place: String,
    /// What a bucket needs to be told.
    #[command(flatten)]
    pub store: StoreSettings,
    /// Seal with the state key beside this ledger, LEDGER.state-key, which is made where there is none; else
    /// with a key of the moment
    #[arg(long, value_name = "LEDGER")]
    pub ledger: Option<PathBuf>,
    /// Bytes of the object that is written and read, such as 256M; up to 4G
    #[arg(long, value_name = "BYTES", value_parser = count, default_value = "64M")]
    pub size: u64,
}

/// Does what is asked of a place.
///
/// # Errors
/// When it does not do, or cannot be reached.
pub fn run(args: &StateArgs) -> Result<(), Error> {
    match &args.action {
        StateAction::Probe(place) => {
            let measured = probe::measure(place)?;
            if args.json { output::print_json(&measured) } else { output::print(&measured.to_string()) }
        }
        StateAction::Show(show) => kept::show(&show.party, args.json),
        StateAction::Drop(dropped) => kept::remove(dropped, args.json),
    }
}
