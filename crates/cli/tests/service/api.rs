//! Programs that speak to services by tokens: the whole life of a study on both sides, and what is refused.

use crate::agreed::{NAMES, sets};
use crate::house::{House, OURS, Reply};
use crate::sides::rules;
use data::generate::{FileFormat, LiftOptions, lift, lift_study};
use net::Identity;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::time::{Duration, Instant};

/// Longest wait for anything: a machine may be slow.
const PATIENCE: Duration = Duration::from_secs(180);

/// A program with a token.
struct ApiProgram<'h> {
    house: &'h House,
    token: String,
}

impl<'h> ApiProgram<'h> {
    /// With a new token of an account.
    fn of(house: &'h House, account: &str, scopes: &str) -> Self {
        let mut words = vec![account.to_owned(), format!("{account}-{}", scopes.len())];
        words.extend(scopes.split(' ').flat_map(|scope| ["--scope".to_owned(), scope.to_owned()]));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let made = house.tacit(&["token", "add"], &words);
        Self { house, token: made["token"].as_str().expect("a token").to_owned() }
    }

    fn ask(&self, method: &str, path: &str, more: &[(&str, &str)], body: &str) -> Reply {
        let bearer = format!("Bearer {}", self.token);
        let headers = [&[("Authorization", bearer.as_str())], more].concat();
        self.house.ask(method, &format!("/api/v1{path}"), &headers, body)
    }

    #[track_caller]
    fn get(&self, path: &str) -> Value {
        json_of(&self.ask("GET", path, &[], "").is(200))
    }

    #[track_caller]
    fn post(&self, path: &str, body: &Value, status: u16) -> Value {
        let kind = [("Content-Type", "application/json")];
        json_of(&self.ask("POST", path, &kind, &body.to_string()).is(status))
    }

    /// Waits until something holds of what is at a path.
    #[track_caller]
    fn until(&self, path: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let reply = self.ask("GET", path, &[], "");
            let value = if reply.status == 200 { json_of(&reply) } else { Value::Null };
            if holds(&value) {
                return value;
            }
            assert!(Instant::now() < until, "never {what}: {value:#}\n{}", self.house.log());
            std::thread::sleep(Duration::from_millis(300));
        }
    }
}

#[track_caller]
fn json_of(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).unwrap_or_else(|e| panic!("{e}: {}", reply.body))
}

/// Two organisations that run, with rows of both, and the text of a study of them.
fn two() -> ([House; 2], String) {
    let made = tempfile::tempdir().expect("a folder");
    let format = FileFormat::Csv;
    let options =
        LiftOptions { rows: 3_000, overlap: 0.5, max_events: 4, clamp: 100, seed: 7, format, files: 1 };
    lift(made.path(), &options, &|_, _| ()).expect("made");
    let ports: Vec<String> = (0..6).map(|_| base::free_address().expect("a port")).collect();
    let own = [0, 1].map(|_| Identity::generate().expect("a key"));
    let keys = [0, 1].map(|side: usize| own[side].fingerprint().to_string());
    let houses = [0, 1].map(|side| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("data")).expect("made");
        own[side].save(&folder.path().join("own.key")).expect("saved");
        let rows = made.path().join(format!("{}.csv", NAMES[side]));
        std::fs::copy(rows, folder.path().join("data/rows.csv")).expect("copied");
        let more = ["stewards = [\"stella\"]", "consent_by_token = true"];
        let text = rules(side, &NAMES, &keys, &ports, &sets(side, more));
        // The client of these tests knows this name.
        let text = text.replace("[link]", "names = [\"tacit.registry.example\"]\n[link]");
        std::fs::write(folder.path().join("service.toml"), text).expect("written");
        House::of(folder, ports[side].parse().expect("an address"))
    });
    (houses, lift_study(&options, &keys[0], &keys[1], false))
}

#[test]
fn a_study_goes_from_draft_to_both_reports_by_programs_alone() {
    let (houses, text) = two();
    for house in &houses {
        house.tacit(&["account", "add"], &["stella", "--role", "steward"]);
    }
    houses[0].tacit(&["account", "add"], &["ann", "--role", "analyst"]);
    let ann = ApiProgram::of(&houses[0], "ann", "studies propose consent run reports");
    let stewards = [0, 1].map(|side: usize| {
        ApiProgram::of(&houses[side], "stella", "studies consent run reports data budget audit")
    });
    let mut events = ann.house.connect();
    let head = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: tacit.registry.example\r\nAuthorization: Bearer {}\r\n\r\n",
        ann.token
    );
    events.write_all(head.as_bytes()).and_then(|()| events.flush()).expect("asks");
    let mut events = BufReader::new(events).lines();
    let first = events.next().expect("it answers").expect("text");
    assert!(first.contains("200"), "{first}");

    let draft = ann.post("/drafts", &json!({ "title": "Spring", "text": text }), 200);
    let path = format!("/drafts/{}", draft["id"]);
    let study = ann.get(&format!("{path}/preview"))["study"].as_str().expect("a hash").to_owned();
    let key = [("Content-Type", "application/json"), ("Idempotency-Key", "k1")];
    let body = json!({ "study": study }).to_string();
    let done = json_of(&ann.ask("POST", &format!("{path}/propose"), &key, &body).is(200));
    let again = ann.ask("POST", &format!("{path}/propose"), &key, &body).is(200);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(json_of(&again), done);

    let at = |rest: &str| format!("/studies/{study}{rest}");
    for steward in &stewards {
        let seen = steward.until(&at(""), "proposed here", |study| study["state"].is_string());
        let words = steward.get(&at("/summary"))["words"].clone();
        let consent = json!({
            "proposal": seen["proposal"], "words": words, "data": "rows", "runs": 2, "days": 30,
        });
        // With the same scopes an analyst does not.
        let refused = ann.house.ask("GET", "/health", &[], "").is(200);
        assert!(refused.body.is_empty());
        if std::ptr::eq(steward.house, ann.house) {
            ann.post(&at("/consent"), &consent, 403);
        }
        assert_eq!(steward.post(&at("/consent"), &consent, 200)["done"], "weighing");
    }
    for program in stewards.iter().chain([&ann]) {
        let answered = |study: &Value| study["state"] == "answered" && study["reported"] == true;
        program.until(&at(""), "answered", answered);
        let report = program.get(&at("/report"));
        assert_eq!(report["study"]["full_hash"].as_str().or(report["full_hash"].as_str()), Some(&*study));
        assert!(program.ask("GET", &at("/report?as=csv"), &[], "").is(200).body.lines().count() > 1);
        let course = program.get(&at("/run"));
        assert!(course["runs"].as_array().is_some_and(|runs| !runs.is_empty()), "{course:#}");
    }
    for steward in &stewards {
        let budget = steward.get("/budget");
        let viewers = budget["sets"][0]["viewers"].as_array().expect("viewers").iter();
        let charged = viewers.flat_map(|viewer| viewer["debits"].as_array()).flatten().count();
        assert!(charged > 0, "{budget:#}");
        assert_eq!(steward.post("/audit/verify", &json!({}), 200)["fits"], true);
        let log = steward.get(&format!("/audit?subject={study}"));
        assert!(log["entries"].as_array().is_some_and(|entries| entries.len() > 3), "{log:#}");
    }
    let heard = |line: &str| line.starts_with("data:") && line.contains("\"state\":\"answered\"");
    assert!(events.map_while(Result::ok).any(|line| heard(&line)), "no event said that it was answered");
}

#[test]
fn what_no_program_may() {
    let mut house = House::begin("");
    let ann = house.person("ann", &["analyst", "operator"]);
    let program = ApiProgram::of(&house, "ann", "studies propose operate");
    program.get("/me");
    // A cookie is nothing here, and a token is nothing on pages.
    let cookie = [("Cookie", ann.cookie.as_str())];
    let refused = house.ask("GET", "/api/v1/me", &cookie, "").is(401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let bearer = format!("Bearer {}", program.token);
    let shown = house.ask("GET", "/studies", &[("Authorization", &bearer)], "").is(303);
    assert_eq!(shown.header("location"), Some("/sign-in?to=/studies"));
    for path in ["/me?token=x".to_owned(), format!("/studies?after={}", program.token)] {
        program.ask("GET", &path, &[], "").is(400).says("a token in an address");
    }
    let json = ("Content-Type", "application/json");
    let body = json!({ "title": "t", "text": "x" }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/json2"] {
        program.ask("POST", "/drafts", &[("Content-Type", kind), OURS], &body).is(415);
    }
    let wrong = json_of(&program.ask("POST", "/drafts", &[json], "{\n\"title\": 1}").is(422));
    assert_eq!(wrong["error"]["places"][0]["line"], 2, "{wrong:#}");
    program.ask("POST", "/drafts", &[json], &body.replace("title", "tittle")).is(422).says("tittle");
    let large = json!({ "title": "t", "text": "x".repeat(3 << 20) }).to_string();
    program.ask("POST", "/drafts", &[json], &large).is(413);
    let large = json!({ "paused": true, "why": "x".repeat(70_000) }).to_string();
    program.ask("POST", "/peers/hospitals/pause", &[json], &large).is(413);
    program.ask("PATCH", "/drafts", &[json], "{}").is(405).says("\"error\"");
    program.ask("GET", "/none", &[], "").is(404).says("openapi.json");
    program.ask("GET", "/data", &[], "").is(403).says("the scope data");
    let other = House::begin("");
    other.ask("GET", "/api/v1/me", &[("Authorization", &bearer)], "").is(401);
    let last = if program.token.ends_with('A') { 'B' } else { 'A' };
    let wrong = format!("{}{last}", &program.token[..program.token.len() - 1]);
    house.ask("GET", "/api/v1/me", &[("Authorization", &format!("Bearer {wrong}"))], "").is(401);
    let token = program.token;
    house.kill();
    let log = house.log() + &other.log();
    assert!(!log.contains(&token), "a token is in the log");
}

#[test]
fn a_token_ends_by_a_button_by_time_and_by_other_roles() {
    let house = House::begin("");
    let stella = house.person("stella", &["steward"]);
    let fields = [("name", "nightly"), ("days", "30"), ("scope-budget", "yes"), ("data", "trial")];
    let page = house.do_it(&stella, "/account/tokens", "/account/tokens", &fields).is(200);
    let token = page.body.split("tacit_").nth(1).and_then(|rest| rest.split('<').next()).expect("a token");
    let made = ApiProgram { house: &house, token: format!("tacit_{token}") };
    let budget = made.get("/budget");
    assert_eq!(budget["sets"].as_array().map(Vec::len), Some(1), "of its data alone: {budget:#}");
    house.get(&stella, "/account/tokens").is(200).says("nightly").never_says(token);
    house.get(&stella, "/account").is(200).says("token made: nightly").never_says(token);
    house.do_it(&stella, "/account/tokens", "/account/tokens/1/end", &[]).is(303);
    made.ask("GET", "/budget", &[], "").is(401);
    let fields = [("name", "other"), ("days", "366"), ("scope-budget", "yes")];
    house.do_it(&stella, "/account/tokens", "/account/tokens", &fields).is(422).says("from 1 to 365");

    let timed = ApiProgram::of(&house, "stella", "budget");
    let roles = ApiProgram::of(&house, "stella", "budget data");
    timed.get("/budget");
    let store = rusqlite::Connection::open(house.path("service.db")).expect("opens");
    let past = store.execute("UPDATE tokens SET until = 1000 WHERE name = 'stella-6'", []);
    assert_eq!(past.expect("written"), 1);
    timed.ask("GET", "/budget", &[], "").is(401);
    roles.get("/budget");
    house.tacit(&["account", "take"], &["stella", "steward"]);
    roles.ask("GET", "/budget", &[], "").is(401);
    let all = house.tacit(&["token", "list"], &[]);
    let ended = all["tokens"].as_array().expect("tokens").iter().find(|one| one["name"] == "stella-11");
    assert!(ended.is_some_and(|one| one["ended"].is_u64()), "{all:#}");
    let none = house.try_tacit(&["token", "end"], &["stella", "stella-11"]);
    assert_eq!(none.status.code(), Some(2));
}
