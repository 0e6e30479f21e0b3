//! Studies of more than two organisations, with a service each: three that measure together, and two owners
//! with four servers. What one says goes to all others over pairwise links, and what one hears may come in
//! any order.

use crate::houses::Houses;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use serde_json::Value;

const SHOPS: [&str; 3] = ["paper", "bakery", "cinema"];

/// Data and policy of one of the shops.
fn sets(side: usize) -> String {
    let columns =
        [r#"["id", "arm", "seen"]"#, r#"["id", "bought", "amount"]"#, r#"["id", "visited", "spent"]"#];
    let peers: Vec<String> =
        SHOPS.iter().filter(|name| **name != SHOPS[side]).map(|name| format!("\"{name}\"")).collect();
    format!(
        r#"
        [data.rows]
        path = "rows.csv"
        lineage = "{name}"
        columns = {columns}
        peers = [{peers}]
        least_rows = 2
        budget = 10
        delta = "1e-3"
        [policy]
        kinds = ["lift"]
        max_rho = 1
        max_delta = "1e-3"
        jobs_memory = "1G"
        "#,
        name = SHOPS[side],
        columns = columns[side],
        peers = peers.join(", "),
    )
}

/// A publisher and two advertisers, with the study of the examples.
fn shops() -> Houses {
    let mut houses = Houses::new(&SHOPS);
    let mut study = include_str!("../../../../examples/lift-several.toml").to_owned();
    for (key, digit) in houses.keys.iter().zip(["1", "2", "3"]) {
        study = study.replace(&format!("tacit1:{}", digit.repeat(32)), key);
    }
    let format = FileFormat::Csv;
    let options =
        LiftOptions { rows: 2_600, overlap: 0.6, max_events: 4, clamp: 100, seed: 5, format, files: 1 };
    let made = lift(houses.folder.path(), &options, &|_, _| ()).expect("made");
    let events = std::fs::read_to_string(&made.advertiser).expect("reads");
    let renamed = events.replacen("bought", "visited", 1).replacen("amount", "spent", 1);
    let rows = |side: usize| houses.home(side).join("data/rows.csv");
    std::fs::rename(&made.publisher, rows(0)).expect("moved");
    std::fs::write(rows(1), events).expect("written");
    std::fs::write(rows(2), renamed).expect("written");
    (0..SHOPS.len()).for_each(|side| houses.rule(side, &sets(side)));
    houses.begin(&study);
    houses
}

fn is(state: &'static str) -> impl Fn(&Value) -> bool {
    move |status| status["state"] == state
}

#[test]
fn three_go_from_a_proposal_to_one_public_result_through_kills() {
    let mut shops = shops();
    shops.kill(2);
    shops.propose();
    shops.until(1, "the proposal", is("proposed"));
    // The cinema hears of a consent to what it may not have heard of yet.
    shops.consent(1);
    shops.start(2);
    shops.until(2, "proposal and consent", is("consented"));
    shops.consent_once_heard(2);
    shops.consent(0);
    let running = |status: &Value| {
        let mut runs = status["runs"].as_array().into_iter().flatten();
        runs.any(|run| !run["begun_ms"].is_null())
    };
    shops.until(1, "the run", running);
    shops.strike(1);
    let status = [0, 1, 2].map(|side| shops.until_again(side, "the answer", is("answered")));
    let public = status.each_ref().map(|status| &status["report"]["public"]);
    assert!(public[0].is_object() && public.iter().all(|one| *one == public[0]), "{public:?}");
    for side in 0..SHOPS.len() {
        shops.verifies(side, &shops.home(side).join("own.ledger"));
    }
}

#[test]
fn one_of_three_refuses_and_the_others_read_why() {
    let mut shops = shops();
    shops.propose();
    shops.until(2, "the proposal", is("proposed"));
    shops.consent(0);
    shops.tacit(2, &["refuse"], &[&shops.hash, "--text", "Not for us."]);
    for side in [0, 1] {
        let status = shops.until(side, "the refusal", is("closed"));
        let words = status["words"].as_str().expect("words");
        assert!(words.contains("cinema") && words.contains("Not for us."), "{words}");
    }
}

/// Servers before owners: each goes to those before it.
const SERVED: [&str; 6] = ["server-1", "server-2", "server-3", "server-4", "publisher", "advertiser"];
const SERVERS: usize = 4;
const OWNERS: [usize; 2] = [4, 5];

/// Two owners and four servers, of which the first three compute the study by rule.
fn served() -> Houses {
    let mut houses = Houses::new(&SERVED);
    let format = FileFormat::Csv;
    let options =
        LiftOptions { rows: 3_000, overlap: 0.5, max_events: 4, clamp: 100, seed: 7, format, files: 1 };
    lift(houses.folder.path(), &options, &|_, _| ()).expect("made");
    let section = |side: usize| format!("[server.{}]\nkey = \"{}\"\n", SERVED[side], houses.keys[side]);
    let study = lift_study(&options, &houses.keys[4], &houses.keys[5], false).replacen(
        "\"pid\"",
        "\"salted-key\"",
        1,
    ) + &(0..SERVERS).map(section).collect::<String>()
        + "[compute]\nengine = \"ring4\"\n";
    study::salt::create(&houses.folder.path().join("owners.salt")).expect("made");
    let text = study::canonical("the study", &study).expect("a study");
    let hash = study::StudyFile::parse("the study", &text).expect("a study").hash().full();
    for side in 0..SERVERS {
        let auto = if side < 3 { format!("auto = [\"{hash}\"]") } else { String::new() };
        houses.rule(side, &format!("[policy]\nkinds = [\"lift\"]\n{auto}"));
    }
    let columns = [r#"["id", "arm", "seen", "impressions"]"#, r#"["id", "bought", "amount"]"#];
    for (side, columns) in OWNERS.into_iter().zip(columns) {
        let name = SERVED[side];
        let rows = houses.folder.path().join(format!("{name}.csv"));
        std::fs::rename(rows, houses.home(side).join("data/rows.csv")).expect("moved");
        houses.rule(
            side,
            &format!(
                r#"
                [data.rows]
                path = "rows.csv"
                lineage = "{name}"
                salt = "../owners.salt"
                columns = {columns}
                peers = ["{other}"]
                servers = ["server-1", "server-2", "server-3", "server-4"]
                least_rows = 2
                budget = 10
                [policy]
                kinds = ["lift"]
                max_rho = 1
                dummies = "any"
                "#,
                other = SERVED[9 - side],
            ),
        );
    }
    houses.begin(&study);
    houses
}

#[test]
fn servers_compute_by_rule_or_by_a_persons_word_and_owners_hear_who_refuses() {
    let mut served = served();
    served.propose_by(OWNERS[0]);
    let by_rule = |status: &Value| {
        let said = status["statements"].as_array().into_iter().flatten();
        let rule = |one: &&Value| {
            one["words"].as_str().is_some_and(|words| words.contains("A rule agreed, without a person."))
        };
        said.filter(rule).count() == 3
    };
    served.until(OWNERS[1], "three consents by rule", by_rule);
    served.tacit(3, &["refuse"], &[&served.hash, "--text", "Not this week."]);
    for side in 0..SERVED.len() {
        let status = served.until(side, "the refusal", is("closed"));
        let words = status["words"].as_str().expect("words");
        assert!(words.contains("server-4") && words.contains("Not this week."), "{words}");
    }
    // A rule agrees once: this time people do.
    served.propose_by(OWNERS[0]);
    for server in 0..SERVERS {
        served.until(server, "the proposal", |status| status["state"] != "closed");
        served.tacit(server, &["consent"], &[&served.hash, "--runs", "5", "--yes"]);
    }
    for owner in OWNERS {
        served.until(owner, "the proposal", |status| status["state"] != "closed");
        served.consent(owner);
    }
    let status: Vec<Value> =
        (0..SERVED.len()).map(|side| served.until_again(side, "the answer", is("answered"))).collect();
    let [one, other] = OWNERS.map(|side| &status[side]["report"]["public"]);
    assert!(one.is_object() && one == other, "{one} {other}");
    assert!(status[..SERVERS].iter().all(|status| status["report"].is_null()), "servers have shares alone");
    for side in OWNERS {
        served.verifies(side, &served.home(side).join("own.ledger"));
    }
}
