//! `tacit serve`: a headless node, which computes studies on its list when it is told to begin.
//!
//! Its log goes to standard error and what became of each study to standard output, with `--json` one object
//! a line each.

use crate::settings;
use crate::watch::{board, watch};
use base::Error;
use clap::Args;
use job::prepare::Opened;
use job::run::{NodeEvent, ServerReport, Watch, compute_study, serve};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use study::StudyFile;
use study::party::{CommonSettings, PartySettings, ServerSetup};
use terminal::output::{self, log_line};
use terminal::progress::Board;

/// How long a node that waits may take to notice that it is to stop; one that computes is broken off.
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// Serves studies that four servers compute: waits until a party of one says to begin it, takes part, and
/// waits again.
///
/// The party file of a server has no `data`. A node computes only studies whose full hash is under
/// policy.studies; what it may be told is to begin one of them, and nothing else. The error of a run is
/// logged and does not end the node. SIGTERM and SIGINT end it; a study under way is broken off, and nothing
/// of it is revealed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit serve server-2.toml\n  tacit serve server-2.toml --once --json")]
pub struct ServeArgs {
    /// The server's party file
    #[arg(value_name = "PARTY_FILE", required_unless_present = "party")]
    pub file: Option<PathBuf>,
    /// The same
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub party: Option<PathBuf>,
    /// Flags that win over the party file
    #[command(flatten)]
    pub settings: CommonSettings,
    /// End after one study, with its error if it fails
    #[arg(long)]
    pub once: bool,
    /// The log and the reports as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// End with the process that started this one
    #[arg(long, hide = true)]
    pub child: bool,
}

/// What ended the wait.
enum Ended {
    Node(Result<(), Error>),
    Signal(i32),
}

/// Runs a node until a signal, or until its only study is done.
///
/// # Errors
/// What is wrong with its files or address; with `--once`, the error of the study.
pub fn run(args: ServeArgs) -> Result<(), Error> {
    if args.child {
        terminal::machine::end_with_parent();
    }
    let ServeArgs { file, party, settings, once, json, .. } = args;
    let flags = PartySettings { common: settings, ..PartySettings::default() };
    let node = settings::settings(file.or(party).as_deref(), flags)?.complete_node()?;
    let (tell, ended) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    catch(tell.clone(), stop.clone())?;
    std::thread::spawn(move || {
        let watch = if json { Watch::none() } else { watch(&Board::stderr()) };
        let log = move |event| say(&event, json);
        let _ = tell.send(Ended::Node(serve(&node, once, &stop, &log, &watch)));
    });
    match ended.recv() {
        Ok(Ended::Node(done)) => done,
        Err(_) => Err(Error::misuse("a node ended without a word")),
        Ok(Ended::Signal(signal)) => match ended.recv_timeout(STOPS_WITHIN) {
            Ok(Ended::Node(done)) => done,
            Ok(Ended::Signal(_)) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // The others find the connections closed and stop, too.
                log_line(
                    json,
                    "broken-off",
                    &format!("signal {signal}: the study under way is broken off"),
                    json!({}),
                );
                Ok(())
            }
        },
    }
}

/// From now on SIGTERM and SIGINT say `stop`.
fn catch(tell: std::sync::mpsc::Sender<Ended>, stop: Arc<AtomicBool>) -> Result<(), Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(|e| Error::io("cannot catch signals", &e))?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            stop.store(true, Ordering::Relaxed);
            let _ = tell.send(Ended::Signal(signal));
        }
    });
    Ok(())
}

/// One line of the log; a report goes to standard output.
fn say(event: &NodeEvent, json: bool) {
    match event {
        NodeEvent::Waiting { at, studies } => {
            let names = studies.iter().map(|(name, hash)| format!("{name} ({hash})")).collect::<Vec<_>>();
            let text = format!("waiting at {at} for word to begin {}", names.join(", "));
            let list = studies.iter().map(|(name, hash)| json!({ "name": name, "hash": hash.full() }));
            log_line(json, "waiting", &text, json!({ "at": at, "studies": list.collect::<Vec<_>>() }));
        }
        NodeEvent::Closed { why, again_s } => {
            let text = format!("{why}; tries again in {again_s} s");
            log_line(json, "closed", &text, json!({ "again_s": again_s }));
        }
        NodeEvent::Refused { from, why } => {
            log_line(json, "refused", &format!("refused {from}: {why}"), json!({ "from": from }));
        }
        NodeEvent::Begun { by, study, hash } => {
            let text = format!("{by} says to begin {study} ({hash})");
            log_line(json, "begun", &text, json!({ "by": by, "study": study, "hash": hash.full() }));
        }
        NodeEvent::Done(report) => {
            let _ = show(report, json);
            log_line(json, "done", &format!("{} is done", report.study), json!({ "study": report.study }));
        }
        NodeEvent::Failed(error) => {
            let kind = output::verdict(error).name;
            log_line(json, "failed", &format!("the study failed: {error}"), json!({ "kind": kind }));
        }
        NodeEvent::Stopped => log_line(json, "stopped", "stopped", json!({})),
    }
}

fn show(report: &ServerReport, json: bool) -> Result<(), Error> {
    if !json {
        return output::print(&report.text());
    }
    output::print_json_line(report)
}

/// `tacit run` for a server: one study now, told by nobody. Nothing where the settings are those of an owner.
///
/// # Errors
/// As `tacit run`.
pub fn run_once(settings: &PartySettings, json: bool, events: bool) -> Result<Option<()>, Error> {
    let Some(path) = settings.common.study.clone() else { return Ok(None) };
    if settings.data.is_some() {
        return Ok(None);
    }
    let read = StudyFile::read(&path)?;
    if !settings.serves(read.0.first()) {
        return Ok(None);
    }
    let node: ServerSetup = settings.clone().complete_node()?;
    let opened = Opened::new(read, &node.name, &node.identity)?;
    let board = board(events);
    let done = compute_study(&node, opened, &watch(&board));
    board.end();
    let report = done?;
    if json {
        output::print_json(&report)?
    } else {
        output::print(&report.text())?
    }
    Ok(Some(()))
}
