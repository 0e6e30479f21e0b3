//! Three processes: a program of three parties, and lift with two advertisers.

use crate::support::parties::{PartyFile, make_key};
use crate::support::{Done, Running, command, tacit};
use base::free_address;
use data::generate::{FileFormat, LiftOptions, lift};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const CLINICS: [&str; 3] = ["east", "north", "west"];

/// Three parties in a folder, each with its own file.
pub struct Three {
    folder: tempfile::TempDir,
    pub names: [&'static str; 3],
    addresses: [String; 3],
}

impl Three {
    /// `places` says of each party whether others come to it, and to whom it goes.
    fn new(names: [&'static str; 3], study: &str, places: [(bool, &[usize]); 3]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut text = study.to_owned();
        for (name, digit) in names.iter().zip(["1", "2", "3"]) {
            text = text.replace(&format!("tacit1:{}", digit.repeat(32)), &make_key(folder.path(), name));
        }
        std::fs::write(folder.path().join("study.toml"), text).unwrap();
        let addresses = [0; 3].map(|_| free_address().unwrap());
        for ((name, at), (listens, to)) in names.iter().zip(&addresses).zip(places) {
            let file = PartyFile::owner(folder.path(), name)
                .with(&if listens { format!("listen = \"{at}\"") } else { String::new() })
                .peers(to.iter().map(|peer| (names[*peer], &*addresses[*peer])))
                .policy("kinds = [\"lift\", \"program\"]\nallow_exact = true");
            file.write();
        }
        Self { folder, names, addresses }
    }

    /// The example of three clinic groups: district i has i, 2 i and 60 cases.
    fn clinics() -> Self {
        let study = include_str!("../../../../examples/aligned.toml");
        let three = Self::new(CLINICS, study, [(true, &[]), (true, &[0]), (false, &[0, 1])]);
        for (group, name) in CLINICS.iter().enumerate() {
            let column = if group == 2 { "patients" } else { "cases" };
            let rows: String = (0..40).map(|i| format!("d{i:02},{}\n", [i, 2 * i, 60][group])).collect();
            std::fs::write(three.path(&format!("{name}.csv")), format!("district,{column}\n{rows}")).unwrap();
        }
        three
    }

    /// A publisher and two advertisers, apart, with the same purchases, in columns of other names.
    fn shops() -> (Self, f64) {
        let names = ["paper", "bakery", "cinema"];
        let text =
            include_str!("../../../../examples/lift-several.toml").replace("\"together\"", "\"apart\"");
        let (head, _) = text.split_once("[release.public]").unwrap();
        let study = head.to_owned() + &names.map(|name| format!("[release.to.{name}]\nrho = 0.1\n")).concat();
        let three = Self::new(names, &study, [(false, &[1, 2]), (true, &[]), (true, &[])]);
        let truth = three.sell(3000);
        (three, truth)
    }

    /// The same as one study with one public result.
    pub fn together() -> Self {
        let study = include_str!("../../../../examples/lift-several.toml");
        let places: [(bool, &[usize]); 3] = [(true, &[]), (true, &[0]), (true, &[0, 1])];
        let three = Self::new(["paper", "bakery", "cinema"], study, places);
        three.sell(2600);
        three
    }

    /// Writes the files of a publisher and two advertisers; what the lift at each of them is.
    fn sell(&self, rows: u32) -> f64 {
        let options = LiftOptions {
            rows,
            overlap: 0.6,
            max_events: 4,
            clamp: 100,
            seed: 5,
            format: FileFormat::Csv,
            files: 1,
        };
        let made = lift(self.folder.path(), &options, &|_, _| ()).unwrap();
        std::fs::rename(&made.publisher, self.path("paper.csv")).unwrap();
        let events = std::fs::read_to_string(&made.advertiser).unwrap();
        let renamed = events.replacen("bought", "visited", 1).replacen("amount", "spent", 1);
        std::fs::write(self.path("cinema.csv"), renamed).unwrap();
        std::fs::write(self.path("bakery.csv"), events).unwrap();
        made.truth.lift()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn start(&self, party: usize, more: &[&str]) -> Running {
        let file = self.path(&format!("{}.toml", self.names[party]));
        let mut command = command(["run".as_ref(), file.as_os_str(), "--json".as_ref()]);
        command.args(more);
        Running::start(command)
    }

    fn all(&self) -> [Done; 3] {
        [0, 1, 2].map(|i| self.start(i, &[])).map(Running::end)
    }
}

#[test]
fn three_parties_run_a_program() {
    let three = Three::clinics();
    let shown = tacit(["check".as_ref(), three.path("study.toml").as_os_str()]).fine().stdout;
    for line in [
        "revealed   to north, EXACTLY: districts with 100 cases or more; which rows: those districts",
        "revealed   to west, EXACTLY: whether there is such a district; the worst of them",
        "besides    the identifiers are public: all files must hold the same",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    let [east, north, west] = three.all().map(|done| done.fine().json());
    // 3 i + 60 cases: 100 or more from district 14 on.
    let cases: u64 = (0..40).map(|i| 3 * i + 60).sum();
    assert_eq!(east["view"]["outputs"][0]["value"], cases.to_string());
    assert_eq!(east["view"]["outputs"][1]["value"], "26");
    assert_eq!(north["view"]["lists"][0]["keys"].as_array().unwrap().len(), 26);
    assert_eq!(north["view"]["lists"][0]["keys"][0], "d14");
    assert_eq!(west["view"]["outputs"][1]["key"], "d39");
    assert_eq!((&east["engine"], &east["disclosed"]["public_keys"]), (&"gmw".into(), &true.into()));
    assert_eq!(east["parties"].as_array().unwrap().len(), 3);
    let report = three.path("out-north/report.json");
    let shown = tacit(["report".as_ref(), report.as_os_str()]).fine().stdout;
    assert!(shown.contains("those districts: d14, d15"), "{shown}");
}

#[test]
fn peers_may_be_flags() {
    let three = Three::clinics();
    let at = &three.addresses;
    let file = three.path("west.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let cut = text.find("[peers]").unwrap();
    std::fs::write(&file, format!("{}{}", &text[..cut], &text[text.find("[policy]").unwrap()..])).unwrap();
    three.start(2, &[]).end().failed(2, &["neither listen nor peer is set"]);
    let first = [0, 1].map(|i| three.start(i, &[]));
    let named = [format!("east={}", at[0]), format!("north={}", at[1])];
    let west = three.start(2, &["--peer", &named[0], "--peer", &named[1]]);
    west.end().fine();
    for running in first {
        running.end().fine();
    }
}

#[test]
fn every_party_names_the_one_that_is_missing() {
    let three = Three::clinics();
    let short = ["--deadline", "4s"];
    let mut east = three.start(0, &short);
    east.hear("waiting for north, west");
    let north = three.start(1, &short);
    let done = east.end();
    done.failed(3, &["east at meet with west", "west did not come to"]);
    assert_eq!(done.json()["error"]["peer"], "west");
    north.end().failed(3, &["north at meet with "]);
}

#[test]
fn every_party_names_the_one_that_was_killed() {
    let three = Three::clinics();
    // Enough rows that a run is under way when the party dies.
    for (group, name) in CLINICS.iter().enumerate() {
        let column = if group == 2 { "patients" } else { "cases" };
        let rows: String = (0..200_000).map(|i| format!("d{i:06},{}\n", i % 90)).collect();
        std::fs::write(three.path(&format!("{name}.csv")), format!("district,{column}\n{rows}")).unwrap();
    }
    let others = [0, 1].map(|i| three.start(i, &[]));
    let mut west = three.start(2, &["--events"]);
    west.hear("\"compute\"");
    west.kill();
    for (running, name) in others.into_iter().zip(CLINICS) {
        let done = running.end();
        done.failed(3, &[&format!("{name} at "), "west"]);
        let error = &done.json()["error"];
        assert_eq!((&error["peer"], &error["party"]), (&"west".into(), &name.into()), "{error}");
        assert!(!error["step"].as_str().unwrap().is_empty());
    }
}

#[test]
fn a_publisher_and_two_advertisers() {
    let (three, truth) = Three::shops();
    let [paper, bakery, cinema] = three.all().map(|done| done.fine().json());
    assert_eq!((&paper["format"], &paper["study"]), (&"tacit-reports/1".into(), &"spring".into()));
    let parts = paper["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    for report in parts.iter().chain([&bakery, &cinema]) {
        let estimate = &report["view"]["cells"][0]["estimate"];
        let number = |name: &str| estimate[name].as_f64().unwrap();
        // Eight standard deviations: fails once in 10^14 runs if the program is right.
        assert!((number("lift") - truth).abs() < 8.0 * number("standard_error"), "{truth}: {estimate}");
    }
    assert_eq!(parts[0]["study"]["hash"], bakery["study"]["hash"]);
    assert_eq!(parts[1]["study"]["hash"], cinema["study"]["hash"]);
    assert!(written(&three.path("out-paper/bakery")) && written(&three.path("out-paper/cinema")));
    let report = three.path("out-paper/report.json");
    let shown = tacit(["report".as_ref(), report.as_os_str()]).fine().stdout;
    assert_eq!(shown.matches("seen by paper (publisher)").count(), 2);
    let page = three.path("all.html");
    let words = ["report".as_ref(), report.as_os_str(), "--html".as_ref(), page.as_os_str()];
    tacit(words).failed(2, &["holds 2 reports"]);
}

fn written(folder: &Path) -> bool {
    folder.join("report.json").exists() && folder.join("report.html").exists()
}

/// What `tacit generate --advertisers` makes runs end to end: one publisher, three advertisers, one public
/// result.
#[test]
fn a_generated_study_of_three_advertisers_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let words = ["generate", "lift", "--advertisers", "3", "--rows", "2600", "--out", out, "--json"];
    let made = tacit(words).fine().json();
    let truth = made["truth"]["lift"].as_f64().unwrap();
    let parties = made["parties"].as_array().unwrap();
    let file = |party: &serde_json::Value| party["party_file"].as_str().unwrap().to_owned();
    let shown = tacit(["check".to_owned(), file(&parties[3])]).fine().stdout;
    let overlaps = "publisher alone also counts, for every set of parties, the identifiers";
    assert!(shown.contains(overlaps), "{shown}");
    assert!(shown.contains("spent towards public"), "{shown}");
    // Of its own 1,300 people alone nothing would be shown; of those of the publisher there is a result.
    assert!(shown.starts_with("Not ready as far as is known") && shown.contains("--rows N,M"), "{shown}");
    let known = tacit(["check".to_owned(), file(&parties[3]), "--rows".into(), "2600,1300".into()]);
    assert!(known.fine().stdout.starts_with("This side is ready: tacit run "));
    let run = |party| Running::start(command(["run".to_owned(), file(party), "--json".to_owned()]));
    let all: Vec<Running> = parties.iter().map(run).collect();
    let reports: Vec<_> = all.into_iter().map(|running| running.end().fine().json()).collect();
    assert_eq!(reports.len(), 4);
    for report in &reports {
        assert!(report["guarantee"].to_string().contains("publisher alone also counted"), "{report}");
        assert_eq!(report["public"], reports[0]["public"]);
        let estimate = &report["public"]["cells"][0]["estimate"];
        let number = |name: &str| estimate[name].as_f64().unwrap();
        // Eight standard deviations: fails once in 10^14 runs if the program is right.
        assert!((number("lift") - truth).abs() < 8.0 * number("standard_error"), "{truth}: {estimate}");
        let viewers = report["privacy"]["viewers"].as_array().unwrap();
        assert_eq!((viewers.len(), &viewers[3]["viewer"]), (4, &"public".into()));
    }
    // Data may be made anew; identities are not, so the study stays the same.
    let study = folder.path().join("study.toml");
    let before = std::fs::read(&study).unwrap();
    tacit(words).fine();
    assert_eq!(std::fs::read(&study).unwrap(), before);
}

/// One of three refuses by itself: both others hear it at once, and not why.
#[test]
fn who_refuses_tells_all_who_wait() {
    let three = Three::together();
    let mut others = [0, 1].map(|i| three.start(i, &[]));
    others[0].hear("waiting for ");
    others[1].hear("waiting for ");
    let start = Instant::now();
    three.start(2, &["--max-rho", "0.05"]).end().failed(5, &["policy.max_rho is 0.05"]);
    for running in others {
        let done = running.end();
        done.failed(5, &["cinema takes no part"]);
        assert!(!done.stderr.contains("max_rho"), "{}", done.stderr);
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Apart, each advertiser shares a result with the publisher: `check` does not speak of one result for all.
#[test]
fn check_says_whose_a_public_result_is_among_advertisers_apart() {
    let three = Three::together();
    let file = three.path("study.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace("\"together\"", "\"apart\"");
    std::fs::write(&file, text).unwrap();
    let shown = tacit(["check".as_ref(), file.as_os_str()]).fine().stdout;
    for line in [
        "revealed   to everybody, a result per advertiser which its two parties see alike and may publish",
        "one result of all of them is [lift] advertisers = \"together\"",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    assert!(!shown.contains("for every set of parties"), "its runs are of two: {shown}");
    // Each advertiser can read what anybody may of the other's run; the contract and the ledger say which
    // runs.
    let party = three.path("paper.toml");
    let text = std::fs::read_to_string(&party).unwrap();
    let shown = tacit(["check".as_ref(), party.as_os_str()]);
    let shown = shown.stdout;
    for line in [
        "spent towards bakery; this study takes up to 0.21 in 2 runs, 0.1 of it for public results of runs with",
        "spent towards public; this study takes up to 0.2 in 2 runs",
        "public, that is anybody: rho 0.1 (1/10) for this view of each run",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}\n{text}");
    }
}

/// Modes that publish group sizes say so before anybody runs them.
#[test]
fn check_says_that_a_mode_publishes_group_sizes() {
    let three = Three::together();
    let file = three.path("lift.toml");
    let text = include_str!("../../../../examples/lift.toml");
    let told = "everybody learns how many rows the test and the control arm have, EXACTLY: mode";
    for (mode, tells) in [("sums", false), ("variance", true), ("algorithm1", true)] {
        let other = text.replacen("mode       = \"sums\"", &format!("mode = \"{mode}\""), 1);
        std::fs::write(&file, other).unwrap();
        let shown = tacit(["check".as_ref(), file.as_os_str()]).fine().stdout;
        assert_eq!(shown.contains(told), tells, "{mode}: {shown}");
        let json = tacit(["check".as_ref(), file.as_os_str(), "--json".as_ref()]).fine().json();
        assert_eq!(json["besides"].as_array().unwrap().len(), 1 + usize::from(tells), "{json}");
    }
}
