//! The two organisations: what each has in its folder, and its service as a process.

use super::other;
use crate::demo::PARTIES;
use base::{Error, free_address};
use data::generate::{Generated, polio_thinned};
use net::Identity;
use serde_json::Value;
use service::{COMMAND_LINE, Grant, RecordedAct, RulesFile, Store};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use terminal::output;

/// Everything about the data is a function of it.
const SEED: u64 = 1954;
/// The people of each organisation: named by their roles.
pub const ROLES: [&str; 3] = ["analyst", "steward", "operator"];
/// What the study is called.
const TITLE: &str = "Did the vaccine prevent polio? The field trial of 1954";
/// The study, as the analyst of registry has kept it: examples/lift.toml as fields of the form.
const DRAFT: [(&str, &str); 24] = [
    ("as", "lift"),
    ("title", TITLE),
    ("name", "polio-1954"),
    ("peer", "hospitals"),
    ("role", "publisher"),
    ("identifier", "child_id"),
    ("alike", "plain"),
    ("arm", "arm"),
    ("test", "vaccine"),
    ("control", "placebo"),
    ("opportunity", "injected"),
    ("from", "1954-01-01"),
    ("until", "1955-01-01"),
    ("clock", "day"),
    ("event", "onset"),
    ("clamp", "1"),
    ("better", "lower"),
    ("where", "severity"),
    ("equals", "paralytic"),
    ("events", "4"),
    ("least", "1000"),
    ("rho", "0.1"),
    ("days", "30"),
    ("note", "We hold who was vaccinated; you know who fell ill. Would you take part?"),
];
/// Data set, its columns and its file.
const DATA: [(&str, &str); 2] = [
    ("trial", r#"["child_id", "arm", "injected", "region"]"#),
    ("cases", r#"["child_id", "onset", "severity", "age_group"]"#),
];

/// An organisation.
pub struct DemoSide {
    /// What it is called.
    pub name: &'static str,
    /// Where its page is.
    pub url: String,
    /// Rows of its data.
    pub rows: u64,
    /// Each account with the link that signs it in, once.
    pub people: Vec<(&'static str, String)>,
    /// What it says and hears.
    pub store: Store,
    home: PathBuf,
    child: Option<Child>,
    /// The service ends when this closes.
    holds: Option<ChildStdin>,
}

/// Ports of a side: page, link, runs. Each with its address.
struct DemoPorts {
    page: u16,
    link: String,
    run: u16,
}

impl DemoPorts {
    fn free() -> Result<Self, Error> {
        let port = |address: &str| address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let number = |address: String| {
            port(&address).ok_or_else(|| Error::misuse(format!("{address} is an address without a port")))
        };
        // Browsers look for the names of the pages at 127.0.0.1, which all demos share: two that begin at the
        // same time look for ports at different places.
        let apart = (std::process::id() % 1_024) as u16 * 8;
        let page = loop {
            let page = number(free_address()?)?.saturating_add(apart);
            if TcpListener::bind((Ipv4Addr::LOCALHOST, page)).is_ok() {
                break page;
            }
        };
        Ok(Self { page, link: free_address()?, run: number(free_address()?)? })
    }
}

/// Makes both in a folder: data, keys, rules that hold, accounts, and the draft.
///
/// # Errors
/// When a file cannot be written.
pub fn make(folder: &Path, scale: u64) -> Result<[DemoSide; 2], Error> {
    let ports = [DemoPorts::free()?, DemoPorts::free()?];
    let made = polio_thinned(folder, SEED, scale)?;
    let mut keys = Vec::new();
    for (side, name) in PARTIES.into_iter().enumerate() {
        let home = folder.join(name);
        let failed = |e: std::io::Error| Error::io(format!("cannot use {}", home.display()), &e);
        std::fs::create_dir_all(home.join("data")).map_err(failed)?;
        std::fs::rename(rows_of(&made, side).0, home.join("data").join(file(side))).map_err(failed)?;
        let identity = Identity::generate()?;
        identity.save(&home.join("own.key"))?;
        keys.push(identity.fingerprint().to_string());
    }
    for (side, name) in PARTIES.into_iter().enumerate() {
        let text = rules(side, &keys[1 - side], &ports);
        output::write_file(&folder.join(name).join("service.toml"), text.as_bytes())?;
    }
    let side = |side: usize| {
        DemoSide::settle(side, folder.join(PARTIES[side]), ports[side].page, rows_of(&made, side).1)
    };
    Ok([side(0)?, side(1)?])
}

fn rows_of(made: &Generated, side: usize) -> (&Path, u64) {
    match side {
        0 => (&made.publisher, made.publisher_rows),
        _ => (&made.advertiser, made.advertiser_rows),
    }
}

fn file(side: usize) -> String {
    format!("{}.csv", DATA[side].0)
}

/// A side's service.toml.
fn rules(side: usize, peer_key: &str, ports: &[DemoPorts; 2]) -> String {
    let (name, peer, (data, columns)) = (PARTIES[side], other(side), DATA[side]);
    let (ours, theirs) = (&ports[side], &ports[1 - side]);
    // One dials, the other one listens.
    let address = if side == 1 { format!("address   = \"{}\"\n", theirs.link) } else { String::new() };
    let (page, link, run, their_run) = (ours.page, &ours.link, ours.run, theirs.run);
    format!(
        r#"# The rules of {name} in `tacit service demo`: docs/service.md has every line.
format    = "tacit-service/1"
name      = "{name}"
identity  = "own.key"
store     = "service.db"
ledger    = "own.ledger"
data_root = "data"

[web]
listen = "127.0.0.1:{page}"
names  = ["{name}.localhost:{page}"]

[link]
listen    = "{link}"
run_ports = "{run}-{run}"

[peers.{peer}]
key       = "{peer_key}"
{address}run_ports = "{their_run}-{their_run}"
kinds     = ["lift"]

[data.{data}]
path       = "{file}"
lineage    = "{data}"
columns    = {columns}
peers      = ["{peer}"]
stewards   = ["steward"]
least_rows = 1000
budget     = 1.0
delta      = "1e-6"

[policy]
kinds         = ["lift"]
max_rho       = 0.3
max_delta     = "1e-7"
minimum_group = 1000
"#,
        file = file(side),
    )
}

impl DemoSide {
    /// Lets the rules hold, adds the people, and keeps the draft at who proposes.
    fn settle(side: usize, home: PathBuf, page: u16, rows: u64) -> Result<Self, Error> {
        let name = PARTIES[side];
        let file = home.join("service.toml");
        crate::service::accept_rules(&file)?;
        let store = Store::open(&RulesFile::read(&file)?.settings.store)?;
        let (now, url) = (service::now(), format!("http://{name}.localhost:{page}"));
        let mut people = Vec::new();
        for role in ROLES {
            let grant = Grant::parse(role).ok_or_else(|| Error::misuse(format!("{role} is no role")))?;
            let act = RecordedAct { by: COMMAND_LINE, what: "account added", to: role, at: now };
            let link = store.add_account(&act, &[grant])?;
            let link = link.ok_or_else(|| Error::misuse("a new store has no accounts"))?;
            people.push((role, format!("{url}/enter/{}", link.text())));
        }
        if side == 0 {
            let fields = DRAFT.iter().map(|(field, value)| (*field, (*value).to_owned()));
            // What the preview reckons with: own rows are known, the hospitals' a guess.
            let guesses = [
                ("rows-us", rows.to_string()),
                ("rows-them", "2000".to_owned()),
                ("mean", "0.0006".to_owned()),
            ];
            let fields: Vec<_> =
                fields.chain(guesses).map(|(field, value)| (field.to_owned(), value)).collect();
            let act = RecordedAct { by: ROLES[0], what: "draft of the demo kept", to: ROLES[0], at: now };
            store.keep_draft(&act, None, TITLE, &fields)?;
        }
        Ok(Self { name, url, rows, people, store, home, child: None, holds: None })
    }

    /// The link of a role.
    pub fn link(&self, role: &str) -> &str {
        self.people.iter().find(|(account, _)| *account == role).map_or("", |(_, link)| link)
    }

    /// Its process at the system.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Starts its service, and waits until it listens.
    ///
    /// # Errors
    /// When it ends before that, in its own words.
    pub fn start(&mut self, password: &str) -> Result<(), Error> {
        let failed = |e: std::io::Error| Error::io(format!("cannot start the service of {}", self.name), &e);
        let log = std::fs::File::create(self.home.join("log")).map_err(failed)?;
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.args(["service", "run", "--demo", "--json"]).arg(self.home.join("service.toml"));
        // A group of its own: Ctrl-C at the terminal is for this process alone, which ends the service.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).process_group(0);
        let child = self.child.insert(command.spawn().map_err(failed)?);
        self.holds = child.stdin.take();
        if let Some(stdin) = &mut self.holds {
            // One that ended has said why in its log.
            let _ = writeln!(stdin, "{password}");
        }
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).map_err(failed)?;
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(said) if said["page"].is_string() => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// Stops with what it said where its service has ended.
    ///
    /// # Errors
    /// When it has.
    pub fn is_up(&mut self) -> Result<(), Error> {
        match self.child.as_mut().map(Child::try_wait) {
            Some(Ok(None)) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    fn ended(&self) -> Error {
        let log = std::fs::read_to_string(self.home.join("log")).unwrap_or_default();
        let said = log.trim().lines().last().unwrap_or("without a word").to_owned();
        Error::input(format!("the service of {} ended: {said}", self.name))
    }
}

impl Drop for DemoSide {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Whatever it was told is on disk; its runs end with it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_of_both_sides_parse_and_know_each_other() {
        let key = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
        let ports = [20_000u16, 20_010].map(|first| DemoPorts {
            page: first,
            link: format!("127.0.0.1:{}", first + 1),
            run: first + 2,
        });
        for side in [0, 1] {
            let rules = RulesFile::parse(Path::new("service.toml"), &rules(side, key, &ports)).unwrap();
            let peer = &rules.peers[other(side)];
            assert_eq!(peer.address.is_some(), side == 1);
            assert_eq!(peer.run_ports, Some(ports[1 - side].run..=ports[1 - side].run));
            assert!(rules.policy.separate_duties && rules.data[DATA[side].0].stewards == ["steward"]);
        }
    }
}
