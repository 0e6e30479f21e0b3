//! A study's pages in the browser: written, previewed, proposed, decided on.

use super::driver::Browser;
use super::house::House;
use super::{at, browser, enter, look};
use std::process::Command;

/// What this organisation allows, and data that studies may use.
const MORE: &str = "[data.cases]
    path = \"trial.csv\"
    lineage = \"cases\"
    columns = [\"child_id\", \"arm\", \"injected\"]
    peers = [\"hospitals\"]
    stewards = [\"stella\"]
    least_rows = 1
    budget = 1.0
    [policy]
    kinds = [\"lift\"]
    max_rho = 0.3
    max_delta = \"1e-7\"";

/// Gives the organisation its key, which a service reads when it begins.
fn keygen(house: &mut House) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let made =
        command.args(["keygen", "--out"]).arg(house.path("registry.key")).output().expect("tacit starts");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    house.kill();
    house.start();
}

/// Fills in the form of a lift study: eleven fields, the others stand as they are.
pub fn fill_in(browser: &Browser, title: &str) {
    for (label, text) in [
        ("Title", title),
        ("Name", "polio-1954"),
        ("Matched by the column", "child_id"),
        ("Column of the arm", "arm"),
        ("Treated are", "vaccine"),
        ("Compared with", "placebo"),
        ("Column of the day of treatment", "injected"),
        // As a browser in English takes a day that is typed.
        ("First day", "01011954"),
        ("Last day", "01011955"),
        ("Column of the day of the outcome", "onset"),
    ] {
        browser.fill(label, text);
    }
    browser.choose("In the report", "less is better");
}

fn walk(browser: &Browser, house: &House, seen: &dyn Fn(&str)) {
    let link = |name: &str, role: &str| {
        let added = house.tacit(&["account", "add"], &[name, "--role", role]);
        added["link"].as_str().expect("a link").to_owned()
    };
    enter(browser, house, "ana", &link("ana", "analyst"));
    browser.click("Studies");
    seen("studies-none");
    browser.click("Propose a study");
    seen("propose");
    browser.click("Questions about columns of both sides: counts, means, shares, quantiles and more");
    seen("propose-program");
    for (label, text) in [
        ("Title", "Illness by dose"),
        ("Name", "illness"),
        ("Matched by the column", "child_id"),
        ("Name in the file", "ill"),
        ("Of the column", "cost"),
    ] {
        browser.fill(label, text);
    }
    browser.choose("Asked is", "the median");
    browser.click("Preview");
    assert!(browser.text().contains("Question 1: name one of the columns above: ill."), "{}", browser.text());
    seen("propose-program-wrong");
    browser.click("A study file of any kind, pasted");
    seen("propose-file");
    browser.click("A lift study: did a treatment change an outcome?");
    fill_in(browser, "<script>alert(1)</script> Did the vaccine help?");
    browser.fill("Note to the others", "We would like to know before the winter.");
    browser.click("Preview");
    seen("preview");
    assert!(browser.text().contains("What hospitals will learn"), "{}", browser.text());
    browser.click("Save draft");
    seen("drafts");
    browser.click("<script>alert(1)</script> Did the vaccine help?");
    browser.click("Rehearse");
    while browser.text().contains("Rows are being made up") {
        browser.go(&browser.url());
    }
    assert!(browser.text().contains("What everybody would see"), "{}", browser.text());
    seen("rehearsal");
    browser.click("The draft");
    browser.click("Preview");
    browser.click("Propose");
    seen("study-proposed");
    assert!(browser.text().contains("To be decided by"), "{}", browser.text());
    browser.click("Studies");
    seen("studies");
    browser.click("Sign out");
    enter(browser, house, "stella", &link("stella", "steward=cases"));
    seen("home-to-decide");
    browser.click("<script>alert(1)</script> Did the vaccine help?");
    seen("study-to-decide");
    browser.fill("In your words", "Not in this winter.");
    browser.click("Refuse");
    seen("study-refused");
    assert!(browser.text().contains("Not in this winter."), "{}", browser.text());
    browser.go(&format!("{}/run", browser.url()));
    seen("run-none");
}

#[test]
fn a_study_is_proposed_and_refused_at_two_widths() {
    for width in [1280, 360] {
        let Some(browser) = browser(width) else { return };
        let mut house = House::begin(MORE);
        keygen(&mut house);
        walk(&browser, &house, &|name| look(&browser, name, width));
        // A form with a mistake in it is answered by 422.
        let bad =
            browser.complaints().into_iter().filter(|said| !said.contains("responded with a status of 4"));
        let bad: Vec<String> = bad.collect();
        assert!(bad.is_empty(), "{bad:?}");
        assert_eq!(browser.title(), "Run of <script>alert(1)</script> Did the vaccine help? - registry");
    }
}

#[test]
fn a_study_is_proposed_and_refused_without_a_script() {
    let Some(browser) = browser(1280) else { return };
    let mut house = House::begin(MORE);
    keygen(&mut house);
    let off = serde_json::json!({ "value": true });
    browser.devtools("Emulation.setScriptExecutionDisabled", &off);
    walk(&browser, &house, &|_| ());
    browser.go(&at(&house, "/studies/new?as=file"));
    assert!(
        !browser.text().contains("Or take it from a file"),
        "what needs a script is not shown without it"
    );
}
