//! `tacit service`: an organisation's page, and what is done about it on the machine itself.

mod account;
mod demo;
mod studies;
mod token;

use base::Error;
use clap::{Args, Subcommand};
use privacy::ledger::Ledger;
use serde_json::json;
use service::{COMMAND_LINE, DataFindings, House, Listening, RulesFile, RulesStanding, Store};
use std::path::{Path, PathBuf};
use terminal::output;

/// A page for the people of one organisation: their accounts and roles, its data and budgets, and what it
/// allows.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tacit service demo\n  tacit service check service.toml\n  \
                        tacit service account add service.toml olga --role operator\n  \
                        tacit service accept service.toml\n  tacit service run service.toml")]
pub struct ServiceArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: ServiceAction,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do with a service.
#[derive(Debug, Subcommand)]
pub enum ServiceAction {
    Demo(demo::ServiceDemoArgs),
    /// Say in words what a service.toml allows
    Check {
        /// The organisation's service.toml
        file: PathBuf,
    },
    /// Accept what service.toml says now: until then, what was accepted before holds
    Accept {
        /// The organisation's service.toml
        file: PathBuf,
    },
    /// Serve the page until the process is ended
    ///
    /// Whatever it was told is on disk before it answers, so it may be ended in any way at any time.
    Run {
        /// The organisation's service.toml
        file: PathBuf,
        /// For `tacit service demo`: a password comes on standard input, and pages are without TLS
        #[arg(long, hide = true)]
        demo: bool,
    },
    /// Add, list and change accounts
    Account {
        /// What to do.
        #[command(subcommand)]
        action: account::AccountAction,
    },
    /// Make, list and end tokens, by which programs ask for what an account may do
    Token {
        /// What to do.
        #[command(subcommand)]
        action: token::TokenAction,
    },
    /// Check the files of a data set against service.toml
    Data {
        /// The organisation's service.toml
        file: PathBuf,
        /// The data set: NAME of [data.NAME]
        name: String,
        /// End with the process that started this one
        #[arg(long, hide = true)]
        child: bool,
    },
    /// Copy store, ledger and rules into a new folder while the service goes on; the key is kept apart
    Backup {
        /// The organisation's service.toml
        file: PathBuf,
        /// The folder, which must not be there yet
        folder: PathBuf,
    },
    /// Say that a store which is a copy may be used: what was agreed and spent since is unknown
    Restored {
        /// The organisation's service.toml
        file: PathBuf,
    },
    /// Hold a study against a data set for the service, which says rules and study on standard input
    #[command(hide = true)]
    Weigh {
        /// The organisation's service.toml
        file: PathBuf,
        /// The data set: NAME of [data.NAME]
        name: String,
    },
    /// Try a study on made-up rows for the service, which says study, rows and memory on standard input
    #[command(hide = true)]
    Rehearse,
    /// Propose a study to the other organisations
    Propose(studies::ProposeArgs),
    /// List studies, the newest first: those that are not over
    Studies {
        /// The organisation's service.toml
        file: PathBuf,
        /// Also those that are over
        #[arg(long)]
        all: bool,
    },
    /// Say how a study stands: what was said, runs, the report
    Status(studies::NamedStudy),
    /// Consent to a study, with a data set or as a server
    Consent(studies::AgreeArgs),
    /// Refuse a study
    Refuse(studies::ClosingArgs),
    /// Take back what was proposed or consented to
    Withdraw(studies::ClosingArgs),
    /// Let runs of a study begin that wait for a person
    Start(studies::NamedStudy),
}

/// Does what is asked of a service.
///
/// # Errors
/// What is wrong with its file, its store or what was asked.
pub fn run(args: &ServiceArgs) -> Result<(), Error> {
    match &args.action {
        ServiceAction::Check { file } => check(file, args.json),
        ServiceAction::Accept { file } => accept(file, args.json),
        ServiceAction::Demo(what) => demo::run(what, args.json),
        ServiceAction::Run { file, demo } => serve(file, *demo, args.json),
        ServiceAction::Account { action } => account::run(action, args.json),
        ServiceAction::Token { action } => token::run(action, args.json),
        ServiceAction::Data { file, name, child } => data(file, name, *child, args.json),
        ServiceAction::Backup { file, folder } => backup(file, folder, args.json),
        ServiceAction::Restored { file } => restored(file, args.json),
        ServiceAction::Weigh { file, name } => weigh(file, name),
        ServiceAction::Rehearse => rehearse(),
        ServiceAction::Propose(what) => studies::propose(what, args.json),
        ServiceAction::Studies { file, all } => studies::list(file, *all, args.json),
        ServiceAction::Status(study) => studies::status(study, args.json),
        ServiceAction::Consent(what) => studies::consent(what, args.json),
        ServiceAction::Refuse(why) => studies::close(why, false, args.json),
        ServiceAction::Withdraw(why) => studies::close(why, true, args.json),
        ServiceAction::Start(study) => studies::start(study, args.json),
    }
}

fn check(path: &Path, as_json: bool) -> Result<(), Error> {
    let file = RulesFile::read(path)?;
    let (said, hash) = (service::words(&file.settings, &|_| true), base::hex(&file.hash()));
    if as_json {
        let said: Vec<_> =
            said.iter().map(|(about, lines)| json!({ "about": about, "lines": lines })).collect();
        return output::print_json(&json!({ "name": file.settings.name, "hash": hash, "allows": said }));
    }
    let mut lines = vec![format!("{}: what {} allows", file.settings.name, path.display())];
    for (about, sentences) in said {
        lines.push(format!("\n{about}"));
        lines.extend(sentences.iter().map(|sentence| format!("  {sentence}")));
    }
    lines.push(format!("\nHash {hash}. To let it hold: tacit service accept {}", path.display()));
    output::print(&lines.join("\n"))
}

/// Lets a service.toml hold; its hash.
fn accept_rules(path: &Path) -> Result<String, Error> {
    let file = RulesFile::read(path)?;
    let (store, hash) = (Store::open(&file.settings.store)?, file.hash());
    let act =
        service::RecordedAct { by: COMMAND_LINE, what: "service.toml accepted", to: "", at: service::now() };
    store.accept(&act, &file.text, &hash)?;
    Ok(base::hex(&hash))
}

fn accept(path: &Path, as_json: bool) -> Result<(), Error> {
    let hash = accept_rules(path)?;
    match as_json {
        true => output::print_json(&json!({ "accepted": hash })),
        false => output::print(&format!(
            "Accepted: {} as it is now ({}). A service that runs takes it up within 30 seconds.",
            path.display(),
            &hash[..12]
        )),
    }
}

fn backup(path: &Path, folder: &Path, as_json: bool) -> Result<(), Error> {
    let made = service::back_up(path, folder, service::now())?;
    match as_json {
        true => output::print_json(&made),
        false => output::print(&format!(
            "{} has {} files, and the audit log up to entry {}. Keep it as you keep a key; the \
             organisation's key is not in it.",
            folder.display(),
            made.files.len(),
            made.log.0
        )),
    }
}

fn restored(path: &Path, as_json: bool) -> Result<(), Error> {
    let settings = RulesFile::read(path)?.settings;
    let store = Store::open(&settings.store)?;
    let Some(at) = store.is_copy_of()? else {
        return Err(Error::input("this store is no copy, or somebody has said already that it may be used"));
    };
    let day = study::time::date(at.cast_signed());
    if settings.ledger.exists() {
        // The ledger may be a copy, too, and `state` an older one.
        Ledger::open(&settings.ledger)?.forget_promises(None)?;
    }
    store.use_copy(&day, service::now())?;
    // Who was ended since, or lost a role, has it again.
    let accounts = store.accounts(service::now())?;
    if as_json {
        return output::print_json(&json!({ "restored": at, "accounts": accounts }));
    }
    let line = |account: &service::Account| {
        let roles: Vec<String> = account.grants.iter().map(service::Grant::words).collect();
        format!("  {:20}  {:28}  {}", account.name, account.state.words(), roles.join(", "))
    };
    let lines: Vec<String> = accounts.iter().map(line).collect();
    let auto = match settings.policy.auto.is_empty() {
        true => String::new(),
        false => format!(
            " Rules consent (policy.auto) when somebody has accepted them again: tacit service accept {}.",
            path.display()
        ),
    };
    output::print(&format!(
        "The copy of {day} may be used. Everybody signs in anew.{auto} Accounts and roles are those of that \
         day; end who is gone since (tacit service account end, take):\n{}",
        lines.join("\n")
    ))
}

fn serve(path: &Path, demo: bool, as_json: bool) -> Result<(), Error> {
    // Else what hashing passwords and reading studies took stays with the process, once for each thread.
    kernels::return_freed_buffers();
    let house = match demo {
        true => {
            let password = told_password()?;
            let house = House::open(path)?.for_demo(password)?;
            std::thread::spawn(ends_with_stdin);
            house
        }
        false => House::open(path)?,
    };
    let standing = house.rules().standing;
    service::listen(house, |listening| tell(listening, &standing, as_json))
}

/// What the demo says first.
fn told_password() -> Result<String, Error> {
    terminal::machine::end_with_parent();
    let mut password = String::new();
    let told = std::io::stdin().read_line(&mut password);
    told.map_err(|e| Error::io("no password came", &e))?;
    Ok(password.trim().to_owned())
}

/// The demo holds the pipe as long as it lives, so this process ends with it, also where it was gone before
/// this process could ask the system for that.
fn ends_with_stdin() {
    // Whatever comes, the pipe is gone then.
    let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(0);
}

fn tell(listening: &Listening, standing: &RulesStanding, as_json: bool) -> Result<(), Error> {
    let Listening { url, address, certificate } = listening;
    if as_json {
        let accepted = *standing == RulesStanding::Accepted;
        let address = address.to_string();
        return output::print_json_line(
            &json!({ "page": url, "address": address, "certificate": certificate, "accepted": accepted }),
        );
    }
    let mut lines = vec![format!("The page is at {url} (listening on {address}).")];
    lines.extend(
        certificate.as_ref().map(|digits| {
            format!("Its certificate is its own. Compare in the browser, SHA-256:\n  {digits}")
        }),
    );
    lines.extend(standing.notice());
    if !address.ip().is_loopback() {
        lines.push("It can be reached from other machines: keep it within your own network.".to_owned());
    }
    output::print(&lines.join("\n"))
}

fn data(path: &Path, name: &str, child: bool, as_json: bool) -> Result<(), Error> {
    let settings = match child {
        false => RulesFile::read(path)?.settings,
        true => {
            terminal::machine::end_with_parent();
            // The service says which rules hold: the file may say others that nobody has accepted.
            let text =
                std::io::read_to_string(std::io::stdin()).map_err(|e| Error::io("no rules came", &e))?;
            let settings = RulesFile::parse(path, &text)?;
            terminal::machine::limit_memory(settings.policy.jobs_memory);
            settings
        }
    };
    let found = service::check(&settings, name)?;
    match as_json {
        true => output::print_json(&found),
        false => output::print(&in_words(name, &found)),
    }
}

/// What a child is told: the rules that hold, and the study.
#[derive(serde::Deserialize)]
struct WeighInput {
    rules: String,
    study: String,
}

fn weigh(path: &Path, name: &str) -> Result<(), Error> {
    terminal::machine::end_with_parent();
    let told = std::io::read_to_string(std::io::stdin()).map_err(|e| Error::io("nothing came", &e))?;
    let told: WeighInput = serde_json::from_str(&told)
        .map_err(|e| Error::input(format!("neither rules nor study came: {e}")))?;
    let settings = RulesFile::parse(path, &told.rules)?;
    terminal::machine::limit_memory(settings.policy.jobs_memory);
    output::print_json(&service::weigh(&settings, name, &told.study)?)
}

/// What a rehearsal is told: the study, how many people are made up of its first party and of each other
/// one, the mean outcome in the control arm where somebody says it, and the memory that it may take.
#[derive(serde::Deserialize)]
struct RehearsalInput {
    study: String,
    rows: [u64; 2],
    mean: Option<f64>,
    memory: u64,
}

fn rehearse() -> Result<(), Error> {
    terminal::machine::end_with_parent();
    let told = std::io::read_to_string(std::io::stdin()).map_err(|e| Error::io("nothing came", &e))?;
    let told: RehearsalInput =
        serde_json::from_str(&told).map_err(|e| Error::input(format!("no study came: {e}")))?;
    terminal::machine::limit_memory(told.memory);
    terminal::machine::limit_files(told.memory);
    output::print_json(&service::rehearse(&told.study, told.rows, told.mean)?)
}

fn in_words(name: &str, found: &DataFindings) -> String {
    let more = if found.whole { "" } else { "more than " };
    let mut lines = vec![format!("{name}: {more}{}", page::numbers::counted(found.rows, "row"))];
    lines.extend(found.columns.iter().map(|column| {
        let allowed = if column.allowed { "studies may read it" } else { "no study reads it" };
        let empty = page::numbers::counted(column.empty, "empty cell");
        format!("  {:20}  {}; {empty}; {allowed}", column.name, column.looks)
    }));
    lines.extend(found.problems.iter().map(|problem| format!("problem: {problem}")));
    lines.join("\n")
}
