//! `tacit manual`: the pages of `man`, made of what `--help` says.

use crate::args::TacitCli;
use base::Error;
use clap::builder::Resettable;
use clap::{Args, CommandFactory};
use std::path::PathBuf;

/// Writes the pages of `man` into a folder: tacit.1, and one for each command.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tacit manual --out ~/.local/share/man/man1 && man tacit-run")]
pub struct ManualArgs {
    /// The folder, made if need be; pages there of the same names are replaced
    #[arg(long, value_name = "FOLDER")]
    pub out: PathBuf,
}

/// Writes the pages.
///
/// # Errors
/// When the folder cannot be written.
pub fn run(args: &ManualArgs) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::io(format!("cannot write pages into {}", args.out.display()), &e);
    std::fs::create_dir_all(&args.out).map_err(failed)?;
    // What this machine can do is no part of a page.
    let command = TacitCli::command().long_version(Resettable::Reset);
    clap_mangen::generate_to(command, &args.out).map_err(failed)
}
