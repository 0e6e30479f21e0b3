//! `tacit run`: this party's half of a study.

use crate::progress::{Board, Line};
use crate::{args, check, machine, output};
use base::{Error, Kind};
use job::party::PartySettings;
use job::report::Report;
use job::study::Study;
use job::{compose, html, summary};
use std::path::{Path, PathBuf};

/// Runs, prints the report and writes it into the report folder.
///
/// # Errors
/// Input, policy, network or a deviating peer; or a disk that does not take the report, which is kept in the ledger.
pub fn run(args: args::Run) -> Result<(), Error> {
    let nothing = PartySettings::from(args.settings.clone()) == PartySettings::default();
    match &args.party {
        Some(file) => check::expect_party(file)?,
        None if nothing => {
            return Err(Error::input(
                "PARTY_FILE is missing: tacit run registry.toml, or every setting as a flag",
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
    // Before anything is read at length, sent or charged.
    check::identity(&party.identity, &Study::read(&party.study)?.0, &party.as_party)?;
    try_folder(&party.report)?;
    board.show(&Line::Waiting { text: format!("reading {}", party.data.display()) });
    let done = job::run::run(&party, &board.watch());
    board.end();
    let report = done?;
    let files = write(&party.report, &report).map_err(|e| kept(&e));
    if args.json {
        output::print(&compose::to_json(&report)?)?;
    } else {
        output::print(summary::terminal(&report).trim_end())?;
        if files.is_ok() {
            let page: PathBuf = party.report.components().collect::<PathBuf>().join("report.html");
            output::print(&format!("\nReport: {} and report.json beside it", page.display()))?;
        }
    }
    // After a report on standard output, an error there would be a second object.
    match files {
        Err(error) if args.json => {
            eprintln!("warning: {error}");
            Ok(())
        }
        other => other,
    }
}

/// Whether reports can be written into a folder, which is made if need be.
fn try_folder(folder: &Path) -> Result<(), Error> {
    let failed = |e: std::io::Error| {
        Error::io(
            format!("reports cannot be written to {}; change `report` or make room", folder.display()),
            &e,
        )
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut probe = tempfile::tempfile_in(folder).map_err(failed)?;
    std::io::Write::write_all(&mut probe, &[0; 4096]).and_then(|()| probe.sync_all()).map_err(failed)
}

fn write(folder: &Path, report: &Report) -> Result<(), Error> {
    output::write_file(&folder.join("report.json"), compose::to_json(report)?.as_bytes())?;
    output::write_file(&folder.join("report.html"), html::render(report).as_bytes())
}

/// Nothing is lost when a report cannot be written.
fn kept(error: &Error) -> Error {
    let text =
        format!("{error}; the answer is kept in the ledger: make room and run again, at no further charge");
    Error::new(error.at().clone(), Kind::Io(text))
}
