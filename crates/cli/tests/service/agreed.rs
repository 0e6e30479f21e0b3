//! Two services agree on a study and run it: real processes, TLS, SQLite and ledgers, nothing but commands.
//! Either is killed (SIGKILL) on the way and started again; the study ends with both reports, and each side
//! has paid once.
//!
//! `TACIT_KILLS` is how many studies are killed at other moments, and how many orders of who is killed at
//! which transition are gone through; without it none, and two, of which one kills at each transition
//! whom the other one leaves alone.

use crate::hostile::{dial, receive, send};
use crate::houses::Houses;
use base::Seed;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use net::Identity;
use privacy::ledger::{Ledger, PUBLIC};
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::{Duration, Instant};

pub const NAMES: [&str; 2] = ["publisher", "advertiser"];

/// Two organisations with rows of a study of both.
pub struct Two(Houses);

impl Deref for Two {
    type Target = Houses;

    fn deref(&self) -> &Houses {
        &self.0
    }
}

impl DerefMut for Two {
    fn deref_mut(&mut self) -> &mut Houses {
        &mut self.0
    }
}

impl Two {
    pub fn new() -> Self {
        Self::with(|_, _| String::new())
    }

    /// With what `more` says for a side of the study before its data and policy: lines of `service.toml`.
    pub fn with(more: impl Fn(usize, &str) -> String) -> Self {
        let mut houses = Houses::new(&NAMES);
        let format = FileFormat::Csv;
        let options =
            LiftOptions { rows: 3_000, overlap: 0.5, max_events: 4, clamp: 100, seed: 7, format, files: 1 };
        lift(houses.folder.path(), &options, &|_, _| ()).expect("made");
        let study = lift_study(&options, &houses.keys[0], &houses.keys[1], false);
        for (side, name) in NAMES.into_iter().enumerate() {
            let rows = houses.folder.path().join(format!("{name}.csv"));
            std::fs::rename(rows, houses.home(side).join("data/rows.csv")).expect("moved");
            houses.rule(side, &(more(side, &study) + &sets(side, ["", "jobs_memory = \"1G\""])));
        }
        houses.begin(&study);
        Self(houses)
    }

    /// Both have their answer, and have paid for it once.
    pub fn is_answered_once(&self) {
        let results = [0, 1].map(|side| {
            let status = self.until(side, "the answer", |status| status["state"] == "answered");
            let report = &status["report"];
            let hash = report["study"]["full_hash"].as_str().or(report["full_hash"].as_str());
            assert!(hash.is_none_or(|hash| hash == self.hash) && report.is_object(), "{status:#}");
            report.clone()
        });
        assert!(results.iter().all(|report| report.get("error").is_none()));
        for (side, name) in NAMES.into_iter().enumerate() {
            let path = self.home(side).join("own.ledger");
            let entries = Ledger::look(&path).and_then(|ledger| ledger.entries()).expect("a ledger");
            let paid = entries.iter().filter(|entry| entry.protects && !entry.given_back);
            let paid: Vec<&str> = paid
                .filter(|entry| entry.study == self.hash)
                .map(|entry| entry.viewer_key.as_str())
                .collect();
            // The result, which everybody sees, and the sizes of the match, which the other side does.
            let viewers: BTreeSet<&str> = paid.iter().copied().collect();
            let public = paid.iter().filter(|viewers| viewers.split(' ').any(|one| one == PUBLIC)).count();
            assert!(paid.len() == viewers.len() && public == 1, "{name} paid {paid:?}");
            self.verifies(side, &path);
        }
    }

    /// Identifiers of a side that the other one does not know, and where its files lie.
    fn canaries(&self, side: usize) -> Vec<String> {
        let ids = |side: usize| -> BTreeSet<String> {
            let text = std::fs::read_to_string(self.home(side).join("data/rows.csv")).expect("rows");
            let first = |line: &str| line.split(',').next().expect("a cell").to_owned();
            text.lines().skip(1).map(first).collect()
        };
        let there = self.home(side).to_str().expect("UTF-8").to_owned();
        let all: Vec<String> = ids(side).difference(&ids(1 - side)).take(5).cloned().chain([there]).collect();
        assert!(all.len() > 1 && all.iter().all(|canary| canary.len() > 6), "{all:?}");
        all
    }

    /// What the first side tells over the link whoever has the other one's key has none of its canaries.
    fn tells_nothing_private(&mut self) {
        self.kill(1);
        let [own, peer] = [1, 0].map(|side| Identity::load(&self.home(side).join("own.key")).expect("a key"));
        let mut stream = dial(&own, peer.fingerprint(), &self.link(0));
        stream.sock.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
        let id = self.status(0)["proposal"].as_str().and_then(base::unhex::<16>).expect("an identifier");
        send(&mut stream, 1, &[&id[..], &[0; 4]].concat()).expect("the link stands");
        let (mut told, until) = (Vec::new(), Instant::now() + Duration::from_secs(10));
        while let Ok(message) = receive(&mut stream)
            && Instant::now() < until
        {
            told.extend(message);
        }
        let holds = |text: &str| told.windows(text.len()).any(|part| part == text.as_bytes());
        let study = std::fs::read_to_string(self.folder.path().join("study.toml")).expect("a study");
        let title = study.lines().find_map(|line| line.strip_prefix("name = \"")).expect("a name");
        assert!(holds(title.trim_end_matches('"')), "statements: {} bytes came", told.len());
        self.canaries(0).iter().for_each(|canary| assert!(!holds(canary), "{canary} was told"));
    }

    /// Neither the store nor the folders of runs nor the log of a side have identifiers that the other one
    /// alone knows, or where its files lie.
    fn has_nothing_of_the_other(&self, side: usize) {
        let canaries = self.canaries(1 - side);
        let mut folders = vec![self.home(side)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap_or_default();
                for canary in &canaries {
                    let found = bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
                    assert!(!found, "{canary} of {} is in {}", NAMES[1 - side], path.display());
                }
            }
        }
    }
}

/// Data and policy of a side, and what else they say.
pub fn sets(side: usize, [of_data, of_policy]: [&str; 2]) -> String {
    let columns = [r#"["id", "arm", "seen", "impressions"]"#, r#"["id", "bought", "amount"]"#][side];
    format!(
        r#"
        [data.rows]
        path = "rows.csv"
        lineage = "{name}"
        columns = {columns}
        peers = ["{peer}"]
        {of_data}
        least_rows = 2
        budget = 10
        delta = "1e-3"
        [policy]
        kinds = ["lift"]
        max_rho = 1
        max_delta = "1e-3"
        {of_policy}
        "#,
        name = NAMES[side],
        peer = NAMES[1 - side],
    )
}

fn began(status: &Value) -> bool {
    status["runs"].as_array().is_some_and(|runs| runs.iter().any(|run| !run["begun_ms"].is_null()))
}

#[test]
fn a_study_goes_from_proposal_to_both_reports_through_kills() {
    let mut two = Two::new();
    // One side has a program that hears of it; that of the other one is not there, which stops nothing.
    let heard = two.home(1).join("heard");
    let write = format!("printf '%s %s\\n' $# \"$*\" >> {}", heard.display());
    for (side, program) in [(0, vec!["/nowhere/at-all"]), (1, vec!["/bin/sh", "-c", &write, "notify"])] {
        let path = two.home(side).join("service.toml");
        let text = std::fs::read_to_string(&path).expect("rules");
        let line = format!("\nnotify = {}\n", serde_json::to_string(&program).expect("JSON"));
        std::fs::write(&path, text + &line).expect("written");
        two.tacit(side, &["accept"], &[]);
    }
    two.kill(1);
    two.propose();
    two.start(1);
    two.until(1, "the proposal", |status| status["state"] == "proposed");
    two.consent(0);
    two.kill(0);
    two.consent(1);
    two.start(0);
    two.until(0, "the run", began);
    two.kill(0);
    two.start(0);
    two.is_answered_once();
    [0, 1].into_iter().for_each(|side| two.has_nothing_of_the_other(side));
    // A word and the study's hash are all that the program is given.
    let until = Instant::now() + Duration::from_secs(60);
    let words = loop {
        let text = std::fs::read_to_string(&heard).unwrap_or_default();
        let words: BTreeSet<String> = text.lines().map(str::to_owned).collect();
        if words.iter().any(|line| line.contains("answered")) || Instant::now() > until {
            break words;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    let may = ["proposed", "consented", "failed", "answered"].map(|word| format!("2 {word} {}", two.hash));
    assert!(words.iter().all(|line| may.contains(line)), "{words:?}");
    assert!([0, 1, 3].iter().all(|word| words.contains(&may[*word])), "{words:?}");
    two.tells_nothing_private();
    // Its party file holds the run to the consent: of other data it says so before it meets anybody.
    let jobs =
        std::fs::read_dir(two.home(0).join("jobs")).expect("jobs").next().expect("one").expect("reads");
    let path = jobs.path().join("party.toml");
    let text = std::fs::read_to_string(&path).expect("a party file");
    let (before, data) = text.rsplit_once("\ndata = \"").expect("a name");
    std::fs::write(&path, format!("{before}\ndata = \"{}{}", "0".repeat(64), &data[64..])).expect("written");
    let refused = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let done = command.args(["run", "party.toml", "--new-lineage"]).current_dir(jobs.path()).output();
        let done = done.expect("tacit starts");
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(!done.status.success(), "{error}");
        error
    };
    assert!(refused().contains("not those that were consented to"), "{}", refused());
    // Nor is another account charged than that of the consent, though its data be called new.
    let own = format!("\nlineage = \"{}\"\n", NAMES[0]);
    assert_eq!(text.matches(&own).count(), 2, "{text}");
    std::fs::write(&path, text.replacen(&own, "\nlineage = \"other\"\n", 1)).expect("written");
    assert!(refused().contains("would be charged to the lineage other"), "{}", refused());
    // Nor is another study run in its place.
    std::fs::write(&path, text).expect("written");
    let path = jobs.path().join("study.toml");
    let study = std::fs::read_to_string(&path).expect("a study");
    let other = study.replace("clamp = 100", "clamp = 90");
    assert_ne!(other, study);
    std::fs::write(&path, other).expect("written");
    assert!(refused().contains("is not on this party's list"), "{}", refused());
}

#[test]
fn a_study_that_the_rules_refuse_is_refused_by_the_service() {
    let mut two = Two::new();
    let path = two.folder.path().join("study.toml");
    let study = std::fs::read_to_string(&path).expect("a study");
    std::fs::write(&path, study.replace("rho = 0.1", "rho = 2")).expect("written");
    // Nobody proposes what nobody here could consent to.
    let shown = path.to_str().expect("UTF-8");
    let done = two.command(0, &["propose"]).arg(shown).output().expect("tacit starts");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(5) && error.contains("policy.max_rho is 1"), "{error}");
    let rules = two.home(0).join("service.toml");
    let text = std::fs::read_to_string(&rules).expect("rules");
    std::fs::write(&rules, text.replace("max_rho = 1", "max_rho = 3")).expect("written");
    two.tacit(0, &["accept"], &[]);
    two.propose();
    let status = two.until(0, "the refusal", |status| status["state"] == "closed");
    let said = status["statements"].as_array().expect("statements");
    assert!(said.iter().any(|one| one["by"] == NAMES[1] && one["said"] == "study refused"), "{status:#}");
}

#[test]
fn a_withdrawal_by_command_holds_what_it_cannot_say_yet_and_strangers_are_not_proposed_to() {
    let mut two = Two::new();
    let path = two.folder.path().join("study.toml");
    let study = std::fs::read_to_string(&path).expect("a study");
    let other = Identity::generate().expect("a key").fingerprint().to_string();
    std::fs::write(&path, study.replace(&two.keys[1], &other)).expect("written");
    let failed = |words: &[&str], more: &[&str], why: &str| {
        let done = two.command(0, words).args(more).output().expect("tacit starts");
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && error.contains(why), "{why}: {error}");
    };
    let shown = path.to_str().expect("UTF-8");
    failed(&["propose"], &[shown], "has a key that service.toml does not name among its peers");
    std::fs::write(&path, &study).expect("written");
    two.propose();
    // Nobody is there to say what it has.
    two.kill(1);
    two.strike(0);
    let words = [two.hash.as_str(), "--text", "Not so."];
    let done = two.command(0, &["withdraw"]).args(words).output().expect("tacit starts");
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && error.contains("Until then it is held"), "{error}");
    let status = two.status(0);
    assert_eq!((&status["held"], &status["state"]), (&"stopped".into(), &"proposed".into()), "{status:#}");
}

#[test]
fn a_consent_waits_for_a_stewards_own_key() {
    let mut two = Two::new();
    let path = |name: &str| two.folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let [own, other] = ["steward.key", "other.key"].map(|name| {
        let identity = Identity::generate().expect("a key");
        identity.save(&two.folder.path().join(name)).expect("saved");
        identity.fingerprint().to_string()
    });
    let rules = two.home(0).join("service.toml");
    let text = std::fs::read_to_string(&rules).expect("rules");
    let keyed = text.replace("budget = 10", &format!("budget = 10\nsteward_keys = [\"{own}\"]"));
    std::fs::write(&rules, keyed).expect("written");
    two.tacit(0, &["accept"], &[]);
    let (request, keys) = (path("request.json"), [path("steward.key"), path("other.key")]);
    two.propose();
    let consent = |more: &[&str]| {
        let words = [&[two.hash.as_str(), "--data", "rows"], more].concat();
        two.command(0, &["consent"]).args(words).output().expect("tacit starts")
    };
    let failed = |more: &[&str], why: &str| {
        let done = consent(more);
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && error.contains(why), "{why}: {error}");
    };
    failed(&["--yes"], "takes the signature of a steward's own key");
    failed(&["--seal", "tacit-seal1:00"], "this is no steward's signature");
    let asked = consent(&["--request", &request]);
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    assert_eq!(two.status(0)["state"], "proposed");
    let sign = |key: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let done = command.args(["consent", "sign", &request, "--key", key, "--json"]).output();
        let told: Value = serde_json::from_slice(&done.expect("tacit starts").stdout).expect("JSON");
        told["seal"].as_str().expect("a seal").to_owned()
    };
    failed(&["--seal", &sign(&keys[1])], &format!("{other} is no key of a steward of rows"));
    let seal = sign(&keys[0]);
    // Asked again, other terms wait, and the signature is for those of before.
    assert!(consent(&["--request", &request]).status.success());
    failed(&["--seal", &seal], "the signature is for something else");
    let done = consent(&["--seal", &sign(&keys[0])]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    failed(&["--seal", &seal], "nothing waits for a steward's signature");
    [0, 1].into_iter().for_each(|side| two.strike(side));
    let status = two.until(1, "the consent", |status| status["state"] == "consented");
    let said = status["statements"].as_array().expect("statements");
    let signed = format!("A steward signed with the key {own}");
    assert!(
        said.iter().any(|one| one["words"].as_str().is_some_and(|one| one.contains(&signed))),
        "{status:#}"
    );
}

/// Each side is killed (SIGKILL) as soon as a word is said that closes a study, and once more when the other
/// one has heard it.
#[test]
fn kills_at_words_that_close_end_alike() {
    let mut two = Two::new();
    for (side, word, said) in [(1, "refuse", "study refused"), (0, "withdraw", "study withdrawn")] {
        two.propose();
        two.until(1, "the proposal", |status| status["state"] == "proposed");
        if side == 0 {
            two.consent_once_heard(0);
            two.until(1, "a consent", |status| status["state"] == "consented");
        }
        let hash = two.hash.clone();
        two.say_once_heard(side, &[word], &[&hash, "--text", "Not so."]);
        two.strike(side);
        two.until(1 - side, "the word", has_said(side, said));
        two.strike(1 - side);
        for at in [0, 1] {
            let status = two.until(at, "the end", |status| status["state"] == "closed");
            let all = status["statements"].as_array().expect("statements");
            assert_eq!(all.iter().filter(|one| one["said"] == said).count(), 1, "{status:#}");
            assert!(!has_said(0, "run offered")(&status) && !has_said(1, "run offered")(&status));
        }
    }
}

#[test]
fn kills_at_other_moments_end_alike() {
    let kills: u64 = std::env::var("TACIT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(0);
    let mut rng = Seed::from_bytes([7; 32]).into_rng();
    for _ in 0..kills {
        let mut two = Two::new();
        two.propose();
        two.until(1, "the proposal", |status| status["state"] == "proposed");
        [0, 1].into_iter().for_each(|side| two.consent(side));
        for _ in 0..2 {
            let victim = usize::try_from(rng.below(2)).expect("a side");
            std::thread::sleep(Duration::from_millis(rng.below(8_000)));
            two.kill(victim);
            two.start(victim);
        }
        two.is_answered_once();
    }
}

/// A side has said this, as the log calls it.
pub fn has_said(side: usize, what: &'static str) -> impl Fn(&Value) -> bool {
    move |status| {
        let said = status["statements"].as_array();
        said.is_some_and(|all| all.iter().any(|one| one["by"] == NAMES[side] && one["said"] == what))
    }
}

/// Either daemon is killed (SIGKILL) as soon as each transition shows: proposed, consented, held, ready,
/// started, running, ended, answered. Whose turn it is follows from the order's bits.
fn killed_at_every_transition(order: u64) {
    let victim = |at: u32| usize::try_from(order >> at & 1).expect("a side");
    let mut two = Two::new();
    two.propose();
    two.until(1, "the proposal", |status| status["state"] == "proposed");
    two.strike(victim(0));
    two.consent_once_heard(0);
    two.until(1, "a consent", |status| status["state"] == "consented");
    two.strike(victim(1));
    // Data that were written again hold the study until somebody takes them.
    let rows = two.home(0).join("data/rows.csv");
    std::fs::copy(&rows, two.home(0).join("again")).expect("copied");
    std::fs::rename(two.home(0).join("again"), &rows).expect("moved");
    two.consent_once_heard(1);
    let held = |status: &Value| status["held"] == "data";
    two.until(0, "the hold", held);
    two.strike(victim(2));
    two.until(0, "the hold after a kill", held);
    two.tacit(0, &["start"], &[&two.hash]);
    two.until_again(victim(3), "an offer", has_said(victim(3), "run offered"));
    two.strike(victim(3));
    two.until_again(victim(4), "a start", has_said(victim(4), "run started"));
    two.strike(victim(4));
    two.until_again(victim(5), "a run", |status| status["state"] == "running");
    two.strike(victim(5));
    two.until_again(victim(6), "an end", has_said(victim(6), "run ended"));
    two.strike(victim(6));
    for side in [victim(7), 1 - victim(7)] {
        two.until_again(side, "the answer", |status| status["state"] == "answered");
        two.strike(side);
    }
    two.is_answered_once();
}

#[test]
fn kills_at_every_transition_end_alike() {
    let orders: u64 = std::env::var("TACIT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(2);
    // Each second order differs from the one before in all places.
    for number in 0..orders {
        let order = 0b0110_1001 ^ (number / 2).wrapping_mul(0b1011_0101);
        killed_at_every_transition(if number % 2 == 0 { order } else { !order });
    }
}

#[test]
fn a_study_that_a_rule_names_needs_no_steward() {
    let hash = |study: &str| {
        let text = study::canonical("the study", study).expect("a study");
        study::StudyFile::parse("the study", &text).expect("a study").hash().full()
    };
    let mut two = Two::with(|side, study| match side {
        1 => format!("# by rule: {}\n", hash(study)),
        _ => String::new(),
    });
    // The rule stands in [policy], which is the file's last section.
    let path = two.home(1).join("service.toml");
    let text = std::fs::read_to_string(&path).expect("rules");
    let named = text.split_once("# by rule: ").expect("a hash").1[..64].to_owned();
    std::fs::write(&path, format!("{text}\nauto = [\"{named}\"]\n")).expect("written");
    two.tacit(1, &["accept"], &[]);
    two.propose();
    two.consent(0);
    two.is_answered_once();
    let status = two.status(0);
    let said = status["statements"].as_array().expect("statements");
    let consent = said.iter().find(|one| one["by"] == NAMES[1] && one["said"] == "study consented to");
    let words = consent.and_then(|one| one["words"].as_str()).expect("words");
    assert!(words.contains("A rule agreed, without a person."), "{words}");
}
