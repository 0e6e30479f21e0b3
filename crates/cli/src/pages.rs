//! What pages tell a reader to type is what the command line reads.

use crate::args::TacitCli;
use clap::error::ErrorKind;

#[test]
fn what_pages_show_is_read() {
    let shown = tidy::shown("tacit");
    assert!(shown.iter().filter(|line| line.whole).count() > 20, "pages show commands");
    let wrong = shown.iter().filter_map(|line| {
        let mistake = TacitCli::read(&line.words).err()?;
        let counts = match mistake.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => false,
            // A sentence may name a flag and not what else must be given; but it names no flag that is not
            // there.
            ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => true,
            _ => line.whole,
        };
        counts.then(|| format!("{}: {}\n{mistake}", line.place, line.words.join(" ")))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} lines are not read:\n{}", wrong.len(), wrong.join("\n"));
}
