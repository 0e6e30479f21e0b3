//! `tacit match`: this party's half of a match, and its part in a file.

use crate::progress::{Board, Line};
use crate::{args, check, machine, output};
use base::Error;
use job::party::PartySettings;
use job::study::Study;

/// Runs, writes this party's part and says what was disclosed.
///
/// # Errors
/// Input, policy, network or a deviating peer; or a disk that does not take the file.
pub fn run(args: args::Match) -> Result<(), Error> {
    let nothing = PartySettings::from(args.settings.clone()) == PartySettings::default();
    match &args.party {
        Some(file) => check::expect_party(file)?,
        None if nothing => {
            return Err(Error::input(
                "PARTY_FILE is missing: tacit match registry.toml --out spine.parquet, or every setting as a flag",
            ));
        }
        None => {}
    }
    let party = args::settings(args.party.as_ref(), args.settings)?.complete()?;
    let board = if args.events {
        machine::end_with_parent();
        Board::events()
    } else {
        Board::stderr()
    };
    let study = Study::read(&party.study)?.0;
    check::identity(&party.identity, &study, &party.as_party)?;
    board.show(&Line::Waiting { text: format!("reading {}", party.data.display()) });
    let done = job::run::match_rows(&party, &args.out, &board.watch());
    board.end();
    let report = done?;
    if args.json { output::print_json(&report) } else { output::print(&report.text()) }
}
