//! The pages of `tacit service` in a real browser: `make test-browser`; elsewhere the tests say that they are
//! skipped. Pictures of every page go to target/browser.

mod demo;
mod driver;
#[allow(dead_code, reason = "the browser asks for less than the tests of tests/service")]
#[path = "../service/house.rs"]
mod house;
mod life;
mod rare;
#[path = "../service/sides.rs"]
mod sides;
mod two;

use driver::Browser;
use house::{House, password};
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tab, and the key that sends.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

/// A browser, or a word that none was asked for.
fn browser(width: u32) -> Option<Browser> {
    if std::env::var("TACIT_BROWSER").as_deref() != Ok("required") {
        // Not by a macro, whose words tests that pass keep to themselves.
        let _ = std::io::stderr().write_all(b"SKIPPED: `make test-browser` opens a browser\n");
        return None;
    }
    Some(
        Browser::open(width)
            .expect("there is a chromedriver; on Debian: sudo apt-get install chromium-driver"),
    )
}

/// Where pictures go.
fn pictures() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("browser");
    std::fs::create_dir_all(&folder).expect("made");
    folder
}

fn at(house: &House, path: &str) -> String {
    format!("https://{}{path}", house.address)
}

/// Follows a link in the browser, and sets the password of its person.
fn enter(browser: &Browser, house: &House, name: &str, link: &str) {
    let path = link.split_once("/enter/").expect("a link").1;
    browser.go(&at(house, &format!("/enter/{path}")));
    browser.fill("New password", &password(name));
    browser.click("Set password");
}

/// What axe-core finds wrong on the page, a line each.
fn violations(browser: &Browser) -> Vec<String> {
    let file = std::env::var_os("TACIT_AXE").expect("TACIT_AXE names axe-core, as in `make test-browser`");
    let axe = std::fs::read_to_string(file).expect("axe-core");
    let run = "const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: \
               ['violations']}) .then(found => done(found.violations.flatMap(v => v.nodes.map(n => v.id + \
               ': ' + n.html)))) .catch(error => done(['axe failed: ' + error]));";
    let found = browser.run_until_done(&format!("{axe};\n{run}"));
    let said = |line: &serde_json::Value| line.as_str().expect("text").to_owned();
    found.as_array().expect("a list").iter().map(said).collect()
}

/// Looks at a page: nothing is cut off at the side, axe has nothing to say in light and in dark, a picture.
#[track_caller]
fn look(browser: &Browser, name: &str, width: u32) {
    browser.picture(&pictures().join(format!("{name}-{width}.png")));
    let over =
        browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
    assert_eq!(over, 0, "{name} is wider than {width} pixels");
    let found = violations(browser);
    assert!(found.is_empty(), "{name}, {width}: {found:#?}");
    let theme = |value: &str| json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
    browser.devtools("Emulation.setEmulatedMedia", &theme("dark"));
    let found = violations(browser);
    assert!(found.is_empty(), "{name}, {width}, dark: {found:#?}");
    browser.picture(&pictures().join(format!("{name}-{width}-dark.png")));
    browser.devtools("Emulation.setEmulatedMedia", &theme("light"));
}

/// Everything there is, by clicks: an operator comes in and adds a steward, another steward confirms that,
/// and the new one checks data and reads budgets.
fn walk(browser: &Browser, house: &House, seen: &dyn Fn(&str)) {
    browser.go(&at(house, "/"));
    seen("sign-in");
    let added = house.tacit(&["account", "add"], &["olga", "--role", "operator"]);
    enter(browser, house, "olga", added["link"].as_str().expect("a link"));
    seen("home");
    house.person("sam", &["steward"]);
    for (link, name) in [
        ("Accounts", "accounts"),
        ("Rules", "rules"),
        ("Peers", "peers"),
        ("hospitals", "one-peer"),
        ("Test", "peer-test"),
        ("Operate", "operate"),
        ("Audit", "audit"),
        ("Verify now", "audit-verified"),
        ("About this page", "help-page"),
        ("Help", "help"),
        ("Errors: all causes and texts", "help-errors"),
        ("All of the help", "help-again"),
        ("Rho", "help-word"),
        ("Your account", "account"),
        ("Set up a second step", "second-step"),
    ] {
        browser.click(link);
        seen(name);
    }
    browser.click("Rules");
    browser.choose("Rule", "policy.max_rho");
    browser.fill("Value", "0.2");
    browser.click("See the difference");
    seen("rule-difference");
    browser.click("Change the rule");
    seen("rule-changed");
    browser.click("Accounts");
    browser.fill("Name", "stella");
    browser.choose("Role", "steward");
    browser.choose("For", "trial");
    browser.click("Add account");
    seen("proposed");
    let text = browser.text();
    let link = text.split_whitespace().find(|word| word.contains("/enter/")).expect("a link").to_owned();
    browser.click("To what waits");
    seen("waits");
    browser.click("Accounts");
    browser.click("sam");
    seen("one-account");
    browser.click("Sign out");
    browser.fill("Name", "sam");
    browser.fill("Password", &password("sam"));
    browser.click("Sign in");
    seen("home-to-confirm");
    browser.click("Confirm or refuse");
    seen("to-confirm");
    browser.click("Confirm");
    seen("confirmed");
    let text = browser.text();
    let is_code = |word: &&str| word.len() == 14 && word.bytes().filter(|byte| *byte == b'-').count() == 2;
    let code = text.split_whitespace().find(is_code).expect("a code").to_owned();
    browser.click("Sign out");
    let path = link.split_once("/enter/").expect("a link").1;
    browser.go(&at(house, &format!("/enter/{path}")));
    seen("enter");
    browser.fill("Code", &code);
    browser.fill("New password", "short");
    browser.click("Set password");
    seen("enter-refused");
    browser.fill("Code", &code);
    browser.fill("New password", &password("stella"));
    browser.click("Set password");
    browser.click("Check it");
    browser.click("Check");
    while browser.text().contains("The files are being read.") {
        browser.click("Look again");
    }
    seen("data-set");
    for (link, name) in [("Data", "data"), ("Budget", "budget")] {
        browser.click(link);
        seen(name);
    }
    browser.go(&at(house, "/accounts"));
    seen("denied");
    browser.go(&at(house, "/nothing"));
    seen("missing");
    browser.click("Sign out");
    browser.fill("Name", "stella");
    browser.fill("Password", "not it");
    browser.click("Sign in");
    seen("sign-in-refused");
}

#[test]
fn every_page_at_two_widths_in_light_and_dark() {
    for width in [1280, 360] {
        let Some(browser) = browser(width) else { return };
        let house = House::begin("[policy]\nkinds = [\"lift\"]\nmax_rho = 0.3");
        walk(&browser, &house, &|name| look(&browser, name, width));
        let bad: Vec<String> = browser
            .complaints()
            .into_iter()
            .filter(|said| !said.contains("responded with a status of 4"))
            .collect();
        assert!(bad.is_empty(), "{bad:?}");
    }
}

#[test]
fn the_same_without_a_script() {
    let Some(browser) = browser(1280) else { return };
    let house = House::begin("[policy]\nkinds = [\"lift\"]\nmax_rho = 0.3");
    browser.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    walk(&browser, &house, &|_| ());
    assert!(browser.text().contains("Name and password do not belong together"));
}

#[test]
fn the_keyboard_is_enough() {
    let Some(browser) = browser(1280) else { return };
    let house = House::begin("");
    house.person("olga", &["operator"]);
    browser.go(&at(&house, "/"));
    browser.press(TAB);
    assert_eq!(browser.focus(), "Skip to the content");
    browser.press(TAB);
    assert_eq!(browser.focus(), "Name");
    browser.press(&format!("olga{TAB}{}{ENTER}", password("olga")));
    let until = Instant::now() + Duration::from_secs(60);
    while !browser.title().starts_with("Home") {
        assert!(Instant::now() < until, "{}", browser.text());
        std::thread::sleep(Duration::from_millis(50));
    }
    browser.press(&format!("{TAB}{ENTER}"));
    assert!(browser.url().ends_with("/#main"), "{}", browser.url());
    browser.press(TAB);
    assert_eq!(browser.focus(), "Check it", "what waits comes first");
}

#[test]
fn a_screen_reader_hears_what_eyes_see() {
    let Some(browser) = browser(1280) else { return };
    let house = House::begin("[policy]\nmax_rho = 0.3");
    let added = house.tacit(&["account", "add"], &["stella", "--role", "steward=trial"]);
    enter(&browser, &house, "stella", added["link"].as_str().expect("a link"));
    browser.click("Budget");
    let figure = browser.read_aloud("//*[name()='svg']");
    assert_eq!(figure, ("image".to_owned(), "Budget spent Spent 0 of 1; 1 are left.".to_owned()));
    assert_eq!(browser.read_aloud("//nav"), ("navigation".to_owned(), "Pages".to_owned()));
    let here = browser.run("return document.querySelector('[aria-current]').textContent");
    assert_eq!(here, "Budget");
    // Printed, there is the content and nothing to click.
    browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    let hidden = "return [...document.querySelectorAll('nav, button')].every(e => !e.checkVisibility())";
    assert_eq!(browser.run(hidden), true);
    browser.picture(&pictures().join("budget-print.png"));
}

#[test]
fn what_others_write_is_text_and_nothing_runs() {
    let Some(browser) = browser(1280) else { return };
    let house = House::begin("");
    let added = house.tacit(&["account", "add"], &["stella", "--role", "steward=trial"]);
    enter(&browser, &house, "stella", added["link"].as_str().expect("a link"));
    browser.click("Check it");
    browser.click("Check");
    while browser.text().contains("The files are being read.") {
        browser.click("Look again");
    }
    assert!(browser.text().contains("<img src=x onerror=alert(1)>"));
    let ours =
        "return [document.images.length, ...[...document.scripts].map(s => new URL(s.src).pathname)].join()";
    let ours = browser.run(ours);
    let only = |path: &str| path.starts_with("0,/assets/") && path.ends_with("/app.js");
    assert!(ours.as_str().is_some_and(only), "{ours}");
    assert_eq!(browser.run("return document.cookie"), "", "no script can see the session");
    browser.complaints();
    let plant = "const made = document.createElement('div');
                 try { made.innerHTML = '<img src=x onerror=\"document.title = 1\">' }
                 catch (error) { return 'refused: ' + error.name }
                 document.body.append(made); return 'planted'";
    assert_eq!(browser.run(plant), "refused: TypeError", "trusted types stop it");
    assert!(browser.title().starts_with("trial"));
}
