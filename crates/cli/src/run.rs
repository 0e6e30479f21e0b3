//! `tacit run`: this party's half of a study.

use crate::serve;
use crate::settings::HalfArgs;
use base::{Error, Fault};
use clap::Args;
use job::folders::make_report_folder;
use job::memory;
use job::prepare::Opened;
use job::run::{Event, Part, Watch};
use report::{PARTS_FORMAT, PartReports, RunReport};
use report::{html, summary};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use study::StudyFile;
use study::party::{PartySettings, PartySetup};
use terminal::progress::{Board, ProgressLine};
use terminal::width::columns;
use terminal::{machine, output};

/// Runs this party's half of a study; the other party does the same on its machine.
///
/// Every line of the party file is also a flag, and the flag wins. The report goes to standard output, and as
/// report.json and report.html into the report folder; progress goes to standard error.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tacit run registry.toml\n  tacit run registry.toml --listen 0.0.0.0:7001 \
                  --json > report.json\n  tacit run --study study.toml --as hospitals --identity \
                  hospitals.key --data hospitals.csv --peer registry.example.org:7000"
)]
pub struct RunArgs {
    /// Which party, and how
    #[command(flatten)]
    pub party: HalfArgs,
    /// Print the report as one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Runs, prints the report and writes it into the report folder. Where the run fails and this party's own
/// answer is complete all the same, it is written and printed, too, and the exit code is the error's.
pub fn run(args: RunArgs) -> ExitCode {
    let (json, mut answer) = (args.json, None);
    match steps(args, &mut answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let beside = answer
                .map_or_else(|| serde_json::json!({}), |answer| serde_json::json!({ "answer": answer }));
            output::fail_with(&error, json, &beside)
        }
    }
}

/// # Errors
/// Input, policy, network or a deviating peer; or a disk that does not take the report, which is kept in the
/// ledger.
fn steps(args: RunArgs, answer: &mut Option<RunReport>) -> Result<(), Error> {
    let settings = args.party.read("tacit run registry.toml")?;
    // The party file of a server computes without data.
    if serve::run_once(&settings, args.json, args.party.events)?.is_some() {
        return Ok(());
    }
    let (party, opened, board) = start(settings, &args.party)?;
    // Before anything is read at length, sent or charged.
    make_report_folder(&party.report)?;
    board.show(&ProgressLine::Waiting { text: format!("reading {}", party.data.display()) });
    let done = job::run::run_parts(&party, &opened, &watch(&board, &party.report));
    board.end();
    let mut parts = done?;
    if parts.len() > 1 {
        return several(&party, &opened.file, parts, args.json);
    }
    let Some(part) = parts.pop() else { return Err(Error::misuse("a party takes part in a run")) };
    match (part.report, part.own_answer) {
        (Ok(report), _) => one(&party, &report, args.json),
        (Err(error), None) => Err(error),
        (Err(error), Some(kept)) => {
            let files = write(&party.report, &kept);
            if !args.json {
                output::print(summary::terminal(&kept, columns()).trim_end())?;
                output::print("")?;
            }
            files.err().iter().for_each(|unwritten| eprintln!("warning: {unwritten}"));
            *answer = Some(kept);
            Err(error)
        }
    }
}

/// What a board shows; an answer that is complete while others wait for theirs is written at once, whatever
/// becomes of the run.
fn watch(board: &Board, folder: &Path) -> Watch {
    let (shown, folder) = (crate::watch::watch(board), folder.to_owned());
    let events = shown.events.clone();
    let events = move |event| {
        if let Event::Answer { with, report } = &event {
            let folder = with.as_ref().map_or_else(|| folder.clone(), |with| folder.join(with));
            if let Err(error) = make_report_folder(&folder).and_then(|()| write(&folder, report)) {
                eprintln!("warning: {error}");
            }
        }
        events(event);
    };
    Watch { events: Arc::new(events), ..shown }
}

/// This party, its study and key, and where progress is shown.
///
/// # Errors
/// When settings are missing or wrong, or the key is not the study's.
pub fn start(settings: PartySettings, args: &HalfArgs) -> Result<(PartySetup, Opened, Board), Error> {
    let (consent, new_ledger) = (args.said.into(), args.new_ledger);
    let bounded = settings.common.memory.is_some();
    let party = PartySetup { consent, new_ledger, ..settings.complete()? };
    let board = crate::watch::board(args.events);
    let opened = Opened::of(&party)?;
    if bounded {
        kernels::return_freed_buffers();
        // Above what the program keeps to by itself, and only where somebody said a bound.
        let workers = memory::workers(&party, 0);
        machine::limit_memory(memory::backstop(party.memory, machine::cores().len() as u64, workers));
    }
    Ok((party, opened, board))
}

/// Shows and keeps the report of the only run.
fn one(party: &PartySetup, report: &RunReport, json: bool) -> Result<(), Error> {
    let files = write(&party.report, report).map_err(|e| kept(&e));
    if json {
        output::print(&report::to_json(report)?)?;
    } else {
        output::print(summary::terminal(report, columns()).trim_end())?;
        if files.is_ok() {
            let page = tidy(&party.report).join("report.html");
            output::print(&format!("\nReport: {} and report.json beside it", page.display()))?;
            let pass_on = crate::report::pass_on(report, &page.with_file_name("report.json"));
            pass_on.map_or(Ok(()), |pass_on| output::print(&pass_on))?;
        }
    }
    after(files, json)
}

/// Shows and keeps the reports of the publisher's runs with several advertisers: one folder for each, and all
/// of them in one file. A run that failed does not take the others' reports away.
fn several(party: &PartySetup, file: &StudyFile, parts: Vec<Part>, json: bool) -> Result<(), Error> {
    let (mut reports, mut shown, mut failed, mut files) = (Vec::new(), Vec::new(), Vec::new(), Ok(()));
    for part in parts {
        match part.report {
            Ok(report) => {
                let folder = party.report.join(&part.with);
                let made = make_report_folder(&folder).and_then(|()| write(&folder, &report));
                files = files.and(made.map_err(|e| kept(&e)));
                reports.push(report);
                shown.push(part.with);
            }
            Err(error) => {
                if let Some(kept) = part.own_answer {
                    let folder = party.report.join(&part.with);
                    files = files.and(make_report_folder(&folder).and_then(|()| write(&folder, &kept)));
                }
                failed.push((part.with, error));
            }
        }
    }
    let all = PartReports {
        format: PARTS_FORMAT.to_owned(),
        study: file.first().name.clone(),
        hash: file.hash().to_string(),
        full_hash: file.hash().full(),
        party: party.as_party.clone(),
        parts: reports,
    };
    let text = report::parts_to_json(&all)?;
    let path = party.report.join("report.json");
    files = files.and(output::write_file(&path, text.as_bytes()).map_err(|e| kept(&e)));
    if failed.is_empty() && json {
        output::print(&text)?;
    } else if !json {
        for report in &all.parts {
            output::print(summary::terminal(report, columns()).trim_end())?;
            output::print("")?;
        }
        if files.is_ok() && !all.parts.is_empty() {
            let folder = tidy(&party.report);
            output::print(&format!("Reports: a folder for each advertiser in {}", folder.display()))?;
            for (report, with) in all.parts.iter().zip(&shown) {
                let file = folder.join(with).join("report.json");
                crate::report::pass_on(report, &file).map_or(Ok(()), |pass_on| output::print(&pass_on))?;
            }
        }
    }
    for (with, error) in failed.iter().skip(1) {
        eprintln!("error: with {with}: {error}");
    }
    match failed.into_iter().next() {
        Some((_, error)) => Err(error),
        None => after(files, json),
    }
}

/// After a report on standard output, an error there would be a second object.
fn after(files: Result<(), Error>, json: bool) -> Result<(), Error> {
    match files {
        Err(error) if json => {
            eprintln!("warning: {error}");
            Ok(())
        }
        other => other,
    }
}

fn tidy(folder: &Path) -> PathBuf {
    folder.components().collect()
}

fn write(folder: &Path, report: &RunReport) -> Result<(), Error> {
    output::write_file(&folder.join("report.json"), report::to_json(report)?.as_bytes())?;
    output::write_file(&folder.join("report.html"), html::render(report).as_bytes())
}

/// Nothing is lost when a report cannot be written.
fn kept(error: &Error) -> Error {
    let text =
        format!("{error}; the answer is kept in the ledger: make room and run again, at no further charge");
    Error::new(error.at().clone(), Fault::Io(text))
}
