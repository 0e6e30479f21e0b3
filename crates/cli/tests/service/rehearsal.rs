//! A study tried on made-up rows, by the page and by a token: a process of its own, and nothing charged.

use crate::house::{House, OURS};
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(180);

fn fields(what: &'static str) -> Vec<(&'static str, &'static str)> {
    let text = "as=program;title=Illness by dose;name=dose;peer=hospitals;identifier=child_id;alike=plain;\
                col-1=ill;whose-1=them;is-1=bit;col-2=dose;whose-2=us;is-2=label;values-2=none, low;\
                col-3=cost;whose-3=them;is-3=amount;low-3=0;high-3=500;unit-3=EUR;\
                count=yes;by=dose;ask-1=risk;of-1=ill;ask-2=median;of-2=cost;ask-3=correlation;of-3=cost;\
                with-3=ill;rho=1;days=30";
    text.split(';').filter_map(|field| field.split_once('=')).chain([("do", what)]).collect()
}

#[test]
fn a_draft_is_rehearsed_and_nothing_is_charged() {
    let mut house = House::begin("[policy]\nkinds = [\"program\"]\nmax_rho = 1.0");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacit"));
    let made = command.args(["keygen", "--out"]).arg(house.path("registry.key")).output();
    assert!(made.expect("tacit starts").status.success());
    house.kill();
    house.start();
    let ana = house.person("ana", &["analyst"]);
    let new = "/studies/new?as=program";
    let begun = house.do_it(&ana, new, "/studies/new", &fields("rehearse")).is(303);
    let place = begun.header("location").expect("a page").to_owned();
    assert!(place.starts_with("/drafts/") && place.ends_with("/rehearsal"), "{place}");
    let until = Instant::now() + PATIENCE;
    let page = loop {
        let page = house.get(&ana, &place).is(200);
        if !page.body.contains("Rows are being made up") {
            break page;
        }
        assert!(Instant::now() < until, "{}", house.log());
        std::thread::sleep(Duration::from_millis(200));
    };
    let page = page.says("Made up: rehearsal of Illness by dose").says("What everybody would see");
    let page = page.says("share of ill, dose = low").says("median of cost, dose = none, EUR");
    let page = page.says("correlation of cost with ill, dose = low").says("95 of 100 results");
    page.says("Made-up rows: 10,000 of ").never_says("There is no rehearsal");
    assert!(!house.path("registry.ledger").exists(), "nothing was charged, or could be");
    // The same for programs, of the same draft.
    let scopes = ["ana", "a-program", "--scope", "propose"];
    let token = house.tacit(&["token", "add"], &scopes)["token"].as_str().expect("a token").to_owned();
    let bearer = format!("Bearer {token}");
    let api = format!("/api/v1{place}");
    let found = house.ask("GET", &api, &[("Authorization", &bearer), OURS], "").is(200);
    let found: Value = serde_json::from_str(&found.body).expect("JSON");
    assert_eq!(
        (found["made_up"].as_bool(), found["state"].as_str()),
        (Some(true), Some("done")),
        "{found:#}"
    );
    let numbers = found["numbers"].as_array().expect("numbers");
    assert!(numbers.iter().any(|one| one["unit"] == "EUR" && one["released"].is_f64()), "{found:#}");
    // What is no study that can be tried says why, and the page stays.
    let kind = ("Content-Type", "application/json");
    let headers = [("Authorization", bearer.as_str()), kind];
    let again = api.replace("rehearsal", "rehearse");
    house.ask("POST", &again, &headers, "{\"rows\":[0,5]}").is(422);
    house.ask("POST", &again, &headers, "{\"rows\":[50,40]}").is(200);
    assert_eq!(house.log(), "");
}
