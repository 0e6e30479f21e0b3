//! The whole life of a study by clicks: proposed at one organisation, consented to at both, run by two
//! daemons, read on both sides.

use super::driver::Browser;
use super::house::password;
use super::life::fill_in;
use super::sides::rules;
use super::{browser, look};
use data::generate::polio_thinned;
use net::Identity;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NAMES: [&str; 2] = ["registry", "hospitals"];
/// Longest wait for anything: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(300);
/// Fewer clicks and fields than this take a study of two people from the form to both reports; those for
/// signing in do not count.
const MOST: u32 = 40;

/// A daemon of one organisation.
struct Daemon {
    home: PathBuf,
    address: String,
    child: Child,
}

impl Daemon {
    fn begin(home: &Path, address: &str) -> Self {
        let file = home.join("service.toml");
        let tacit = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
            command.arg("service");
            command
        };
        let accepted = tacit().arg("accept").arg(&file).output().expect("tacit starts");
        assert!(accepted.status.success(), "{}", String::from_utf8_lossy(&accepted.stderr));
        let log = std::fs::File::create(home.join("log")).expect("a log");
        let mut command = tacit();
        let command = command.arg("run").arg(&file).arg("--json").stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("tacit starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        assert!(line.contains("page"), "{line}");
        Self { home: home.to_owned(), address: address.to_owned(), child }
    }

    /// Adds an account and enters by its link.
    fn enter(&self, browser: &Browser, name: &str, role: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let command = command.args(["service", "account", "add"]).arg(self.home.join("service.toml"));
        let added = command.args([name, "--role", role, "--json"]).output().expect("tacit starts");
        let added: serde_json::Value = serde_json::from_slice(&added.stdout).expect("JSON");
        let path = added["link"].as_str().and_then(|link| link.split_once("/enter/")).expect("a link").1;
        browser.go(&format!("https://{}/enter/{path}", self.address));
        browser.fill("New password", &password(name));
        browser.click("Set password");
    }

    /// Loads the page again until it says something.
    #[track_caller]
    fn wait(&self, browser: &Browser, said: &str) {
        let until = Instant::now() + PATIENCE;
        while !browser.text().contains(said) {
            let log = || std::fs::read_to_string(self.home.join("log")).unwrap_or_default();
            assert!(Instant::now() < until, "never {said:?}: {}\n{}", browser.text(), log());
            std::thread::sleep(Duration::from_millis(300));
            browser.go(&browser.url());
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Data and policy of a side, of which the registry's consents take the signatures of `keys`.
fn sets(side: usize, keys: &str) -> String {
    let keys = if side == 0 { keys } else { "" };
    let columns =
        [r#"["child_id", "arm", "injected", "region"]"#, r#"["child_id", "onset", "severity", "age_group"]"#]
            [side];
    format!(
        r#"
        [data.polio]
        path = "{name}.csv"
        lineage = "{name}"
        columns = {columns}
        peers = ["{peer}"]
        stewards = ["stella"]
        least_rows = 100
        budget = 1.0
        delta = "1e-6"
        steward_keys = [{keys}]
        [policy]
        kinds = ["lift"]
        max_rho = 0.3
        max_delta = "1e-7"
        "#,
        name = NAMES[side],
        peer = NAMES[1 - side],
    )
}

/// Two daemons on this machine, with one child in twenty of the field trial, and all the cases.
fn two(folder: &Path, stewards: &str) -> [Daemon; 2] {
    let ports: Vec<String> = (0..6).map(|_| base::free_address().expect("a port")).collect();
    polio_thinned(folder, 7, 20).expect("made");
    let keys = NAMES.map(|name| {
        std::fs::create_dir_all(folder.join(name).join("data")).expect("made");
        let identity = Identity::generate().expect("a key");
        identity.save(&folder.join(name).join("own.key")).expect("saved");
        let rows = format!("{name}.csv");
        std::fs::rename(folder.join(&rows), folder.join(name).join("data").join(&rows)).expect("moved");
        identity.fingerprint().to_string()
    });
    [0, 1].map(|side| {
        let home = folder.join(NAMES[side]);
        std::fs::write(home.join("service.toml"), rules(side, &NAMES, &keys, &ports, &sets(side, stewards)))
            .expect("written");
        Daemon::begin(&home, &ports[side])
    })
}

/// Consents to the study that waits on the first page.
fn consent(browser: &Browser, daemon: &Daemon, title: &str, seen: &dyn Fn(&Browser, &str)) {
    daemon.wait(browser, &format!("Decide: {title}"));
    browser.click(title);
    seen(browser, "decide");
    browser.click("Consent and sign");
    seen(browser, "decided");
    daemon.wait(browser, "consents until");
}

#[test]
fn a_study_lives_from_the_form_to_the_report_on_both_sides() {
    let (Some(ours), Some(theirs)) = (browser(1280), browser(360)) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let [registry, hospitals] = two(folder.path(), "");
    let wide = |browser: &Browser, name: &str| look(browser, &format!("life-{name}"), 1280);
    let narrow = |browser: &Browser, name: &str| look(browser, &format!("life-{name}"), 360);
    let title = "Did the vaccine help?";
    registry.enter(&ours, "ana", "analyst");
    ours.counted();
    ours.click("Propose a study");
    fill_in(&ours, title);
    ours.click("Preview");
    ours.click("Propose");
    let mut clicks = ours.counted();
    ours.click("Sign out");
    registry.enter(&ours, "stella", "steward");
    ours.counted();
    consent(&ours, &registry, title, &wide);
    hospitals.enter(&theirs, "stella", "steward");
    theirs.go(&format!("https://{}/", hospitals.address));
    theirs.counted();
    consent(&theirs, &hospitals, title, &narrow);
    for (browser, daemon, seen) in
        [(&ours, &registry, &wide as &dyn Fn(&Browser, &str)), (&theirs, &hospitals, &narrow)]
    {
        daemon.wait(browser, "Answered: all parties have the result.");
        seen(browser, "answered");
        browser.click("The run");
        seen(browser, "run");
        assert!(browser.text().contains("match") && browser.text().contains("done"), "{}", browser.text());
        browser.click("The report");
        clicks += browser.counted();
        seen(browser, "report");
        heard_and_printed(browser, title);
        assert!(browser.text().contains("all its parties have the same number"), "{}", browser.text());
        browser.click("Home");
        seen(browser, "home");
        browser.click("Budget");
        seen(browser, "budget");
        assert!(browser.complaints().is_empty());
    }
    // Both sides read the same public number.
    let headline = "return document.querySelector('.headline').textContent";
    let numbers = [(&ours, &registry), (&theirs, &hospitals)].map(|(browser, daemon)| {
        browser.go(&format!("https://{}/studies", daemon.address));
        browser.click(title);
        browser.click("The report");
        browser.run(headline)
    });
    assert_eq!(numbers[0], numbers[1]);
    assert!(clicks < MOST, "{clicks} clicks and fields");
}

/// A report as a screen reader says it and a printer prints it.
fn heard_and_printed(browser: &Browser, title: &str) {
    let heading = browser.read_aloud("//h1");
    assert!(heading.0 == "heading" && heading.1.contains(title), "{heading:?}");
    let (role, said) = browser.read_aloud("//*[name()='svg']");
    assert!(role == "image" && said.len() > 20, "{role}: {said}");
    let media = |value: &str| browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": value }));
    media("print");
    let hidden = "return [...document.querySelectorAll('nav, button')].every(e => !e.checkVisibility())";
    assert_eq!(browser.run(hidden), true);
    let shown = "return document.querySelector('.headline').checkVisibility()";
    assert_eq!(browser.run(shown), true);
    let printed = browser.devtools("Page.printToPDF", &json!({ "paperWidth": 8.3, "paperHeight": 11.7 }));
    assert!(printed["data"].as_str().is_some_and(|data| data.starts_with("JVBERi0")), "no PDF");
    media("");
}

#[test]
fn a_steward_signs_with_a_key_of_their_own_by_clicks() {
    let Some(browser) = browser(360) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("steward.key");
    let steward = Identity::generate().expect("a key");
    steward.save(&key).expect("saved");
    let [registry, _hospitals] = two(folder.path(), &format!("\"{}\"", steward.fingerprint()));
    let title = "Did the vaccine help?";
    registry.enter(&browser, "ana", "analyst");
    browser.click("Propose a study");
    fill_in(&browser, title);
    browser.click("Preview");
    browser.click("Propose");
    browser.click("Sign out");
    registry.enter(&browser, "stella", "steward");
    registry.wait(&browser, &format!("Decide: {title}"));
    browser.click(title);
    browser.click("Consent and sign");
    registry.wait(&browser, "Nothing stands against it.");
    look(&browser, "own-key", 360);
    let script = "const done = arguments[arguments.length - 1]; const link = \
                  document.querySelector('a[download]'); fetch(link.href).then(got => \
                  got.text()).then(done);";
    let request = browser.run_until_done(script);
    let file = folder.path().join("request.json");
    std::fs::write(&file, request.as_str().expect("text")).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let command = command.args(["consent", "sign"]).arg(&file).arg("--key").arg(&key).arg("--json");
    let signed = command.output().expect("tacit starts");
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let signed: serde_json::Value = serde_json::from_slice(&signed.stdout).expect("JSON");
    browser.fill("Signature", signed["seal"].as_str().expect("a seal"));
    browser.click("Consent with it");
    registry.wait(&browser, &format!("A steward signed with the key {}", steward.fingerprint()));
    assert!(browser.complaints().is_empty());
}
