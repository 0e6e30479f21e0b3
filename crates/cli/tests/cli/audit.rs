//! `tacit audit`: what it prints is what the documentation says, and a study of the user's own is audited.

use crate::support::tacit;

const PAGE: &str = include_str!("../../../../docs/protocols/release.md");

/// What the page says that a command prints: the block of text, or the table, after the line with the
/// command.
fn printed(command: &str) -> Vec<&'static str> {
    let start = PAGE.find(&format!("`{command}`")).unwrap_or_else(|| panic!("the page has {command}"));
    PAGE[start..]
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .collect()
}

fn table(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('|')).collect()
}

/// A part of the table, of which each cell is the one of the whole table at the same seed.
#[test]
fn the_page_has_the_table_that_is_printed() {
    let command = "tacit audit coverage --rows 10k --rho 0.1 --trials 2500";
    let done = tacit(command.split(' ').skip(1)).fine();
    assert_eq!(table(&done.stdout), printed(command), "{}", done.stdout);
    assert!(done.stdout.contains("by more than 0.5 points: none."), "{}", done.stdout);
    assert!(done.stderr.contains("parts"), "{}", done.stderr);
}

/// The whole table takes minutes: `make soak`.
#[test]
#[ignore = "the whole table takes minutes: make soak"]
fn the_page_has_the_whole_table() {
    let done = tacit(["audit", "coverage"]).fine();
    assert_eq!(table(&done.stdout), printed("tacit audit coverage"), "{}", done.stdout);
}

/// Every view at 20,000 runs a side, as the page says.
#[test]
#[ignore = "every view takes minutes: make soak"]
fn no_view_costs_more_than_is_charged() {
    let done = tacit(["audit", "epsilon", "--json"]).fine().json();
    let views = done["views"].as_array().unwrap();
    assert!(views.len() >= 21 && views.iter().all(|view| view["passes"] == true), "{done}");
}

#[test]
fn a_study_of_the_users_own_is_audited() {
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lift.toml");
    let words =
        ["audit", "coverage", study, "--rows", "200k,190k", "--rate", "0.0004", "--trials", "1k", "--json"];
    let done = tacit(words).fine().json();
    let [cell] = &done["cells"].as_array().unwrap()[..] else { panic!("{done}") };
    assert_eq!(cell["rows"], serde_json::json!([200_000, 190_000]));
    let covered = cell["levels"][1]["covered"].as_f64().unwrap();
    assert!(cell["levels"][1]["nominal"] == 0.95 && covered > 0.92, "{done}");
    let done = tacit(["audit", "epsilon", study, "--runs", "4k", "--json"]).fine().json();
    let [view] = &done["views"].as_array().unwrap()[..] else { panic!("{done}") };
    assert_eq!((view["viewer"].as_str(), view["rho"].as_f64()), (Some("public"), Some(0.1)));
    assert!(view["rho_seen"].as_f64().unwrap() < 0.1 && view["passes"] == true, "{done}");
}

#[test]
fn what_cannot_be_audited_is_refused() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/program.toml");
    tacit(["audit", "coverage", program]).failed(2, &["no lift study"]);
    tacit(["audit", "epsilon", program, "--json"]).failed(2, &["no lift study", "`tacit audit` takes"]);
    let study = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lift.toml");
    tacit(["audit", "coverage", study, "--rows", "500"]).failed(2, &["minimum group", "--rows"]);
    tacit(["audit", "epsilon", "--confidence", "1"]).failed(2, &["--confidence 1"]);
    tacit(["audit", "coverage", "--rate", "2"]).failed(2, &["the rate is between 0 and 1"]);
    tacit(["audit", "coverage", "--mode", "median"]).failed(2, &["algorithm1"]);
}
