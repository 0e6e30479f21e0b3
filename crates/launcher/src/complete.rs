//! `osprey completions`: what a shell needs to complete commands and flags.

use crate::args::{Completions, OspreyCli};
use base::Error;
use clap::{Command, CommandFactory};
use terminal::output;

/// Prints the completion script of a shell.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &Completions) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown(&OspreyCli::command()), "osprey", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}

/// A command without the flags that its help does not show.
fn shown(command: &Command) -> Command {
    let about = command.get_about().cloned().unwrap_or_default();
    // Names live as long as the process, which ends with this.
    let name: &'static str = command.get_name().to_owned().leak();
    Command::new(name)
        .about(about)
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(shown))
}
