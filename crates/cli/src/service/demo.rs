//! `tacit service demo`: two organisations on this machine, each with a service of its own, and a study that
//! a newcomer takes from proposal to report by clicks.

mod sides;
mod walk;

use crate::demo::PARTIES;
use base::Error;
use clap::Args;
use serde_json::json;
use service::SpokenCode;
use sides::DemoSide;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use terminal::output;
use terminal::progress::Working;
use walk::Walk;

/// How often services and signals are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How often a folder is tried to be removed while a process of a run may still be in it.
const TRIES: usize = 50;

const TEACH: &str = "\
Examples:
  tacit service demo
  tacit service demo --scale 20                  a smaller trial, where the machine is slow
  tacit service demo --dir /tmp/two --json       for programs; the folder stays

It makes keys, rules, accounts and the data of the 1954 poliomyelitis trial for two
organisations, registry and hospitals, starts `tacit service run` for each, and prints links that
sign one person in, once:

  1  the analyst of registry proposes the study, which lies there as a draft
  2  the steward of registry reads what it tells and costs, and consents
  3  the steward of hospitals does, too
  4  the run begins by itself; both sides read the report

The pages are at http://registry.localhost and http://hospitals.localhost, with ports that are
free: browsers look for these names on this machine alone. Pages of a real service go by TLS, and
no setting changes that; so does the link between the two services of the demo, with keys of both.
Ctrl-C ends both services. docs/service.md says how to begin with data of your own.";

/// Two organisations on this machine with made-up people and the polio trial: a study from proposal to report
/// in a browser
#[derive(Debug, Args)]
#[command(after_help = TEACH)]
pub struct ServiceDemoArgs {
    /// A folder that is new or empty, for all that both organisations have; it stays. Without it a temporary
    /// one is removed at the end
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// Leave the temporary folder there
    #[arg(long)]
    pub keep: bool,
    /// One child in so many, of 1 to 100, and all the cases: a quicker run
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100))]
    pub scale: u64,
}

/// Where the demo is.
enum DemoFolder {
    /// Stays.
    Kept(PathBuf),
    /// Goes with the demo.
    Temporary(TempDir),
}

impl DemoFolder {
    fn open(args: &ServiceDemoArgs) -> Result<Self, Error> {
        let Some(path) = &args.dir else {
            let made = tempfile::Builder::new().prefix("tacit-service-demo-").tempdir();
            let made = made.map_err(|e| Error::io("cannot make a temporary folder", &e))?;
            return Ok(if args.keep { Self::Kept(made.keep()) } else { Self::Temporary(made) });
        };
        let failed = |e: std::io::Error| Error::io(format!("cannot use the folder {}", path.display()), &e);
        std::fs::create_dir_all(path).map_err(failed)?;
        if std::fs::read_dir(path).map_err(failed)?.next().is_some() {
            return Err(Error::input(format!(
                "{} holds files already: name a new folder with --dir",
                path.display()
            )));
        }
        // The services have paths of their own to it.
        Ok(Self::Kept(path.canonicalize().map_err(failed)?))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }

    /// Removes it where it is temporary; where it stays, its path.
    fn close(self) -> Result<Option<PathBuf>, Error> {
        let folder = match self {
            Self::Kept(path) => return Ok(Some(path)),
            Self::Temporary(folder) => folder,
        };
        // A run ends a moment after the service that began it, and may write until then.
        for _ in 1..TRIES {
            if std::fs::remove_dir_all(folder.path()).is_ok() {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let path = folder.path().display().to_string();
        match folder.path().exists() {
            false => Ok(None),
            true => folder.close().map(|()| None).map_err(|e| Error::io(format!("cannot remove {path}"), &e)),
        }
    }
}

/// Runs the demo until a signal ends it.
///
/// # Errors
/// When the folder is in use, or a service fails.
pub fn run(args: &ServiceDemoArgs, as_json: bool) -> Result<(), Error> {
    let signals = Signals::new([SIGINT, SIGTERM, SIGHUP]);
    let mut signals = signals.map_err(|e| Error::io("cannot wait for signals", &e))?;
    let folder = DemoFolder::open(args)?;
    let working = Working::on("making keys, rules, accounts and data of two organisations".to_owned());
    let password = SpokenCode::generate()?.text();
    let mut sides = sides::make(folder.path(), args.scale)?;
    sides.iter_mut().try_for_each(|side| side.start(&password))?;
    drop(working);
    match as_json {
        true => output::print_json_line(&told(folder.path(), &sides, &password))?,
        false => output::print(&walk::opening(&sides, &password, folder.path(), args.scale))?,
    }
    let ended = follow(&mut sides, &mut signals, as_json);
    drop(sides);
    let remains = folder.close()?;
    ended?;
    match as_json {
        true => output::print_json_line(&json!({ "remains": remains })),
        false => output::print(&walk::closing(remains.as_deref())),
    }
}

/// Says what has happened and what comes next, until a signal comes.
fn follow(sides: &mut [DemoSide; 2], signals: &mut Signals, as_json: bool) -> Result<(), Error> {
    let mut walk = Walk::default();
    loop {
        if signals.pending().next().is_some() {
            return Ok(());
        }
        sides.iter_mut().try_for_each(DemoSide::is_up)?;
        if !as_json && let Some(said) = walk.look(sides)? {
            output::print(&said)?;
        }
        std::thread::sleep(LOOK);
    }
}

fn told(folder: &Path, sides: &[DemoSide; 2], password: &str) -> serde_json::Value {
    let people = |side: &DemoSide| -> Vec<serde_json::Value> {
        side.people.iter().map(|(account, link)| json!({ "account": account, "link": link })).collect()
    };
    let organisations: Vec<_> = sides
        .iter()
        .map(|side| {
            json!({ "name": side.name, "page": side.url, "rows": side.rows, "people": people(side),
                "process": side.process() })
        })
        .collect();
    json!({ "folder": folder, "password": password, "organisations": organisations })
}

/// The other side.
fn other(side: usize) -> &'static str {
    PARTIES[1 - side]
}
