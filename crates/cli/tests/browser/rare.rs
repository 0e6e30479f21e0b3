//! Pages that a walk through everything does not meet: tokens, a second step that is refused, what stands on
//! every page where one person is enough or the rules were changed, and who has to wait.

use super::driver::Browser;
use super::house::{House, password};
use super::{ENTER, TAB, at, browser, enter, look};
use std::time::{Duration, Instant};

/// Longest wait for what a page says after a while.
const PATIENCE: Duration = Duration::from_secs(60);
/// Wrong passwords after which somebody has waited, however slow the machine is.
const TRIES: usize = 12;

fn account(browser: &Browser, seen: &dyn Fn(&str)) {
    browser.click("Your account");
    browser.click("Your tokens");
    seen("tokens");
    browser.fill("Its name", "nightly");
    browser.tick("scope-studies");
    browser.click("Make the token");
    assert!(browser.text().contains("tacit_"), "{}", browser.text());
    seen("token-once");
    browser.click("Your tokens");
    assert!(browser.text().contains("nightly"), "{}", browser.text());
    seen("tokens-one");
    browser.click("Your account");
    browser.click("Set up a second step");
    browser.fill("Code", "000000");
    browser.click("It works");
    seen("second-step-refused");
}

/// Waits until the page says something by itself.
#[track_caller]
fn comes(browser: &Browser, said: &str) {
    let until = Instant::now() + PATIENCE;
    while !browser.text_by_now().contains(said) {
        assert!(Instant::now() < until, "never {said:?}: {}", browser.text_by_now());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Loads the page again until it says something.
#[track_caller]
fn wait(browser: &Browser, said: &str) {
    let until = Instant::now() + PATIENCE;
    while !browser.text().contains(said) {
        assert!(Instant::now() < until, "never {said:?}: {}", browser.text());
        std::thread::sleep(Duration::from_millis(200));
        browser.go(&browser.url());
    }
}

#[test]
fn what_is_seen_rarely_at_two_widths() {
    for width in [1280, 360] {
        let Some(browser) = browser(width) else { return };
        let house = House::begin("[policy]\nmax_rho = 0.3\nseparate_duties = false");
        let seen = |name: &str| look(&browser, name, width);
        let added = house.tacit(&["account", "add"], &["olga", "--role", "operator", "--role", "steward"]);
        enter(&browser, &house, "olga", added["link"].as_str().expect("a link"));
        assert!(browser.text().contains("Duties are not separate here"), "{}", browser.text());
        seen("one-person");
        account(&browser, &seen);
        house.write_rules("", "[policy]\nmax_rho = 0.2\nseparate_duties = false");
        browser.go(&at(&house, "/rules"));
        wait(&browser, "nobody has accepted the change");
        seen("rules-changed");
        browser.click("Sign out");
        for _ in 0..TRIES {
            if browser.text().contains("before the next try") {
                break;
            }
            // The form of before has the name.
            browser.go(&at(&house, "/sign-in"));
            browser.fill("Name", "olga");
            browser.fill("Password", "not it");
            browser.click("Sign in");
        }
        assert!(browser.text().contains("before the next try"), "{}", browser.text());
        seen("sign-in-waits");
    }
}

/// Moves the focus by keys until it is on what says so.
fn to(browser: &Browser, said: &str) {
    for _ in 0..100 {
        browser.press(TAB);
        if browser.focus() == said {
            return;
        }
    }
    panic!("no key leads to {said}: {}", browser.text());
}

#[test]
fn a_token_is_made_by_keys_alone_and_its_form_is_heard() {
    let Some(browser) = browser(1280) else { return };
    let house = House::begin("[policy]\nmax_rho = 0.3");
    house.person("olga", &["operator"]);
    browser.go(&at(&house, "/"));
    browser.press(&format!("{TAB}{TAB}olga{TAB}{}{ENTER}", password("olga")));
    comes(&browser, "Sign out");
    browser.go(&at(&house, "/account/tokens"));
    let field = browser.read_aloud("//input[@name='name' and not(@type='hidden')]");
    assert_eq!(field, ("textbox".to_owned(), "Its name".to_owned()));
    let (role, said) = browser.read_aloud("//input[@name='scope-studies']");
    assert!(role == "checkbox" && said.starts_with("studies: "), "{role}: {said}");
    to(&browser, "Its name");
    browser.press("nightly");
    browser.press(&format!("{TAB} "));
    to(&browser, "Make the token");
    browser.press(ENTER);
    comes(&browser, "tacit_");
}
