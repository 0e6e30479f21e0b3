//! `tacit service demo` in the browser: from its links to the report of both sides by clicks alone, which are
//! counted.
//!
//! With `TACIT_DEMO_SCALE=1` it is measured over the whole trial, without pictures.

use super::driver::Browser;
use super::{browser, look};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for anything: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(300);
/// Most clicks and fields, of both sides together; those for signing in do not count.
const MOST: u32 = 20;
/// Most milliseconds to the first paint, and most seconds from the command to the second report, where that
/// is measured; elsewhere the machine does other things.
const MOST_PAINT: f64 = 1_000.0;
const MOST_SECONDS: f64 = 180.0;
const TITLE: &str = "Did the vaccine prevent polio? The field trial of 1954";

/// The command, and who is led by it.
struct Newcomer {
    demo: Child,
    told: Value,
    browser: Browser,
    measured: bool,
    clicks: Cell<u32>,
    /// First paint of each page, in milliseconds.
    paints: RefCell<Vec<f64>>,
}

impl Newcomer {
    fn begin(browser: Browser) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
        let scale = std::env::var("TACIT_DEMO_SCALE");
        let measured = scale.is_ok();
        let scale = scale.unwrap_or_else(|_| "20".to_owned());
        let command = command.args(["service", "demo", "--json", "--scale", &scale]);
        let mut demo = command.stdout(Stdio::piped()).spawn().expect("tacit starts");
        let mut line = String::new();
        BufReader::new(demo.stdout.take().expect("piped")).read_line(&mut line).expect("it speaks");
        let told = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        Self { demo, told, browser, measured, clicks: Cell::default(), paints: RefCell::default() }
    }

    /// Opens the link of a role, and signs in by it.
    fn enter(&self, side: usize, account: &str) {
        let people = self.told["organisations"][side]["people"].as_array().expect("people");
        let person = people.iter().find(|person| person["account"] == account).expect("the role");
        self.browser.go(person["link"].as_str().expect("a link"));
        self.seen(&format!("enter-{side}-{account}"));
        self.browser.click("Sign in");
        self.painted();
    }

    /// A click that counts, and how the page looks that comes of it.
    fn click(&self, said: &str, name: &str) {
        self.clicks.set(self.clicks.get() + 1);
        self.browser.click(said);
        self.seen(name);
    }

    fn painted(&self) {
        let asked = "const [paint] = performance.getEntriesByName('first-contentful-paint'); return \
                     paint ? paint.startTime : null";
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(paint) = self.browser.run(asked).as_f64() {
                self.paints.borrow_mut().push(paint);
                return;
            }
            assert!(Instant::now() < until, "nothing was painted: {}", self.browser.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Looks at the page at both widths.
    fn seen(&self, name: &str) {
        self.painted();
        for width in [360, 1280].into_iter().filter(|_| !self.measured) {
            let size = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
            self.browser.devtools("Emulation.setDeviceMetricsOverride", &size);
            look(&self.browser, &format!("demo-{name}"), width);
        }
    }

    /// Waits until the page says something by itself, as its script lets it.
    #[track_caller]
    fn wait(&self, said: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.browser.text().contains(said) {
            assert!(Instant::now() < until, "never {said:?}: {}", self.browser.text());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Consents as the steward of a side.
    fn consent(&self, side: usize) {
        self.enter(side, "steward");
        self.wait(&format!("Decide: {TITLE}"));
        self.seen(&format!("home-{side}"));
        self.click(TITLE, &format!("decide-{side}"));
        self.click("Consent and sign", &format!("decided-{side}"));
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        // Its services end with it.
        let _ = self.demo.kill();
        let _ = self.demo.wait();
    }
}

#[test]
fn a_newcomer_reaches_both_reports_with_few_clicks() {
    let Some(browser) = browser(1280) else { return };
    let begun = Instant::now();
    let new = Newcomer::begin(browser);
    new.enter(0, "analyst");
    new.seen("home-analyst");
    new.click("Propose a study", "propose");
    new.click(TITLE, "draft");
    new.click("Preview", "preview");
    new.click("Propose", "proposed");
    new.consent(0);
    new.consent(1);
    new.wait("Answered: all parties have the result.");
    new.seen("answered");
    new.click("The report", "report-1");
    let headline = "return document.querySelector('.headline').textContent";
    let theirs = new.browser.run(headline);
    // The other side's page is open in the browser, and signed in still.
    new.browser.go(new.told["organisations"][0]["page"].as_str().expect("an address"));
    new.clicks.set(new.clicks.get() + 1);
    new.click("All studies", "studies");
    new.click(TITLE, "answered-0");
    new.click("The report", "report-0");
    let seconds = begun.elapsed().as_secs_f64();
    assert_eq!(new.browser.run(headline), theirs, "both sides read the same number");
    let complaints = new.browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
    let (clicks, paints) = (new.clicks.get(), new.paints.borrow());
    let slowest = paints.iter().copied().fold(0.0, f64::max);
    let first = paints[0];
    // Not by a macro, whose words tests that pass keep to themselves.
    let said = format!(
        "demo: {clicks} clicks, 0 fields; first paint {first:.0} ms at the first page, {slowest:.0} ms at \
         the slowest; {seconds:.1} s from the command to the second report{}\n",
        if new.measured { "" } else { ", pictures and axe included" }
    );
    let _ = std::io::stderr().write_all(said.as_bytes());
    assert!(clicks <= MOST, "{clicks} clicks");
    if new.measured {
        assert!(slowest < MOST_PAINT, "a page was painted after {slowest:.0} ms");
        assert!(seconds < MOST_SECONDS, "{seconds:.1} s to the second report");
    }
}
