//! `tacit completions`: what a shell needs to complete commands and flags.

use crate::args::TacitCli;
use base::Error;
use clap::Args;
use clap::CommandFactory;
use terminal::output;

/// Prints a completion script.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit completions bash > \
                  ~/.local/share/bash-completion/completions/tacit\n  \
                        tacit completions zsh > ~/.zfunc/_tacit")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Prints the completion script of a shell.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(args: &CompletionsArgs) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut TacitCli::command(), "tacit", &mut script);
    output::print(String::from_utf8_lossy(&script).trim_end())
}
