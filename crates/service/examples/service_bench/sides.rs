//! Two organisations with a daemon each, and their commands.

use crate::client::Page;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use net::Identity;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["publisher", "advertiser"];
/// Longest wait for a run.
const PATIENCE: Duration = Duration::from_secs(300);

/// Two organisations, the first of which is measured. A third one, `clinic`, has said much and is away.
pub struct Sides {
    tacit: PathBuf,
    folder: tempfile::TempDir,
    pub keys: [Identity; 2],
    pub clinic: Identity,
    running: [Option<Child>; 2],
    options: LiftOptions,
}

impl Sides {
    /// Folders, keys, rows and accepted rules. The first side's rules name these stewards.
    pub fn new(tacit: &Path, stewards: &[String]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let format = FileFormat::Csv;
        let options =
            LiftOptions { rows: 3_000, overlap: 0.5, max_events: 4, clamp: 100, seed: 7, format, files: 1 };
        let [first, second, clinic] = [0; 3].map(|_| Identity::generate().expect("a key"));
        let keys = [first, second];
        let ports: Vec<String> = (0..6).map(|_| base::free_address().expect("a port")).collect();
        lift(folder.path(), &options, &|_, _| ()).expect("made");
        for (side, name) in NAMES.into_iter().enumerate() {
            let home = folder.path().join(name);
            std::fs::create_dir_all(home.join("data")).expect("made");
            keys[side].save(&home.join("own.key")).expect("saved");
            let rows = folder.path().join(format!("{name}.csv"));
            std::fs::rename(rows, home.join("data/rows.csv")).expect("moved");
            let text = rules(side, [&keys[1 - side], &clinic], &ports, stewards);
            std::fs::write(home.join("service.toml"), text).expect("written");
        }
        let tacit = tacit.canonicalize().expect("the tacit command is there");
        let sides = Self { tacit, folder, keys, clinic, running: [None, None], options };
        (0..2).for_each(|side| _ = sides.tacit(side, &["accept"], &[]));
        sides
    }

    pub fn home(&self, side: usize) -> PathBuf {
        self.folder.path().join(NAMES[side])
    }

    /// A study of the first side with the other one, or with the clinic. Another title is another study.
    pub fn study(&self, with_clinic: bool, title: &str) -> String {
        let other = if with_clinic { &self.clinic } else { &self.keys[1] };
        let keys = [&self.keys[0], other].map(|key| key.fingerprint().to_string());
        let text = lift_study(&self.options, &keys[0], &keys[1], false);
        let titled = text.replace("Generated lift study", title);
        study::canonical("the study", &titled).expect("a study")
    }

    /// `tacit service WORDS service.toml MORE --json`.
    pub fn tacit(&self, side: usize, words: &[&str], more: &[&str]) -> Value {
        let done = self.command(side, words).args(more).arg("--json").output().expect("tacit starts");
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
        serde_json::from_slice(&done.stdout).expect("JSON")
    }

    fn command(&self, side: usize, words: &[&str]) -> Command {
        let mut command = Command::new(&self.tacit);
        command.arg("service").args(words).arg(self.home(side).join("service.toml"));
        command
    }

    /// How long `tacit ledger verify` takes over log, statements and ledger of the first side.
    pub fn verify(&self) -> Duration {
        let (begun, home) = (Instant::now(), self.home(0));
        let mut command = Command::new(&self.tacit);
        command.args(["ledger", "verify"]).arg(home.join("own.ledger")).arg("--service").arg(&home);
        let done = command.output().expect("tacit starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        begun.elapsed()
    }

    pub fn start(&mut self, side: usize) -> Page {
        let log = std::fs::File::create(self.home(side).join("log")).expect("a log");
        let mut command = self.command(side, &["run", "--json"]);
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("tacit starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        let told: Value = serde_json::from_str(&line).expect("JSON");
        self.running[side] = Some(child);
        let address = told["address"].as_str().and_then(|text| text.parse().ok()).expect("an address");
        Page::of(&self.home(side), told["page"].as_str().expect("a page"), address)
    }

    pub fn stop(&mut self, side: usize) {
        let mut child = self.running[side].take().expect("it runs");
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    /// The process of the daemon that is measured.
    pub fn process(&self) -> u32 {
        self.running[0].as_ref().expect("it runs").id()
    }

    /// Proposes a study to the other side; where its page is.
    pub fn propose(&self, title: &str) -> String {
        let path = self.folder.path().join("study.toml");
        std::fs::write(&path, self.study(false, title)).expect("written");
        let done = self.tacit(0, &["propose"], &[path.to_str().expect("UTF-8")]);
        format!("/studies/{}", done["study"].as_str().expect("a hash"))
    }

    /// A study from its proposal to both reports; its hash.
    pub fn run_a_study(&self, title: &str) -> String {
        let hash = self.propose(title).trim_start_matches("/studies/").to_owned();
        let until = Instant::now() + PATIENCE;
        self.until(1, &hash, "proposed", until);
        for side in 0..2 {
            self.tacit(side, &["consent"], &[&hash, "--data", "rows", "--yes"]);
        }
        (0..2).for_each(|side| self.until(side, &hash, "answered", until));
        hash
    }

    fn until(&self, side: usize, hash: &str, state: &str, until: Instant) {
        loop {
            let done = self.command(side, &["status"]).args([hash, "--json"]).output();
            let status: Value =
                serde_json::from_slice(&done.expect("tacit starts").stdout).unwrap_or_default();
            if status["state"] == state {
                return;
            }
            assert!(Instant::now() < until, "never {state}: {status:#}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Sides {
    fn drop(&mut self) {
        for child in self.running.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// `service.toml` of a side; the second one dials.
fn rules(side: usize, others: [&Identity; 2], ports: &[String], stewards: &[String]) -> String {
    let port = |at: usize| ports[at].rsplit_once(':').expect("a port").1.to_owned();
    let (run, there) = (port(4 + side), port(5 - side));
    let address = if side == 1 { format!("address = \"{}\"", ports[2]) } else { String::new() };
    let columns =
        [r#"["id", "arm", "seen", "impressions", "region"]"#, r#"["id", "bought", "amount", "age"]"#][side];
    let [other, clinic] = others.map(|key| key.fingerprint().to_string());
    let stewards = serde_json::json!(stewards);
    format!(
        r#"
        format = "tacit-service/1"
        name = "{name}"
        identity = "own.key"
        store = "service.db"
        ledger = "own.ledger"
        data_root = "data"
        [web]
        listen = "{web}"
        [link]
        listen = "{link}"
        run_ports = "{run}-{run}"
        [peers.{peer}]
        key = "{other}"
        {address}
        run_ports = "{there}-{there}"
        kinds = ["lift"]
        [peers.clinic]
        key = "{clinic}"
        kinds = ["lift"]
        [data.rows]
        path = "rows.csv"
        lineage = "{name}"
        columns = {columns}
        peers = ["{peer}", "clinic"]
        stewards = {stewards}
        least_rows = 2
        budget = 100
        delta = "1e-3"
        [policy]
        kinds = ["lift"]
        max_rho = 1
        max_delta = "1e-3"
        "#,
        name = NAMES[side],
        web = ports[side],
        link = ports[2 + side],
        peer = NAMES[1 - side],
    )
}
