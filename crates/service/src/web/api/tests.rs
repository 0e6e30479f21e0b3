//! The addresses against their document: each is in it, each answers, and what comes back is of the shape
//! that it names.

use super::door::{ApiBack, ApiRoute};
use super::routes::table;
use super::{BASE, document};
use crate::roles::Grant;
use crate::store::{COMMAND_LINE, NewApiToken, PeerSender, RecordedAct, Speaker, TokenScope};
use crate::web::now;
use crate::web::staff_tests::{PageShown, Rooms};
use crate::web::tests::serving::SERVED;
use axum::body::{Body, Bytes};
use axum::http::{Method, Request};
use futures_util::stream::poll_fn;
use net::Identity;
use serde_json::{Value, json};
use statements::{ProposalId, ProposalRecord, ProposedStudy, Said};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::task::Poll;

const LIFT: &str = include_str!("../../../../../examples/lift.toml");
/// The key of `hospitals` in the rules of [`Rooms`].
const HOSPITALS: &str = "tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11";
const MORE: &str = r#"
[data.shop]
path = "shop.csv"
lineage = "shop"
columns = ["id"]
peers = ["hospitals"]
stewards = ["stella"]
budget = 1.0
[data.pair]
path = "pair.csv"
lineage = "pair"
peers = ["hospitals"]
stewards = ["stella"]
budget = 1.0
two_person = true
[policy]
kinds = ["lift"]
max_rho = 0.3
max_delta = "1e-6"
"#;
const BY_TOKEN: &str = "consent_by_token = true\n";

/// A service, and programs that speak to it.
struct ApiDesk {
    rooms: Rooms,
    own: Identity,
    document: Value,
}

impl ApiDesk {
    fn new(more: &str) -> Self {
        Self::with(MORE, more)
    }

    fn with(sets: &str, more: &str) -> Self {
        let own = Identity::generate().expect("a key");
        let rooms = Rooms::with_key(&own, &format!("{sets}{more}"));
        std::fs::create_dir(rooms.path("data")).expect("made");
        std::fs::write(rooms.path("data/shop.csv"), "id\n1\n").expect("written");
        Self { rooms, own, document: serde_json::from_slice(document::text()).expect("JSON") }
    }

    /// A token of an account with roles, which is new unless it is there.
    fn token(&self, account: &str, roles: &[&str], scopes: &[TokenScope], data: Option<&str>) -> String {
        let store = &self.rooms.house.store;
        let act = |what| RecordedAct { by: COMMAND_LINE, what, to: account, at: now() };
        let grants: Vec<Grant> = roles.iter().map(|role| Grant::parse(role).expect("a role")).collect();
        store.add_account(&act("account added"), &grants).expect("adds");
        let data = data.map(|data| vec![data.to_owned()]);
        let (name, scopes, until) = (format!("t{}", scopes.len()), scopes.to_vec(), now() + 1_000);
        let new = NewApiToken { name, scopes, data, until };
        store.add_token(&act("token made"), &new).expect("makes").expect("a new name")
    }

    fn all(&self, account: &str, roles: &[&str]) -> String {
        self.token(account, roles, &TokenScope::ALL, None)
    }

    fn request(
        &self,
        method: &Method,
        token: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> PageShown {
        let mut request = Request::builder().method(method).uri(format!("{BASE}{path}"));
        request = request.header("host", "tacit.registry.example");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        self.rooms.ask(request.body(Body::from(body.to_owned())).expect("a request"))
    }

    #[track_caller]
    fn get(&self, token: &str, path: &str) -> Value {
        let shown = self.request(&Method::GET, token, path, &[], "").is(200);
        self.fits(&Method::GET, path, &shown)
    }

    #[track_caller]
    fn send(&self, method: Method, token: &str, path: &str, body: &Value, status: u16) -> Value {
        let kind = ("content-type", "application/json");
        let shown = self.request(&method, token, path, &[kind], &body.to_string()).is(status);
        self.fits(&method, path, &shown)
    }

    #[track_caller]
    fn post(&self, token: &str, path: &str, body: &Value) -> Value {
        self.send(Method::POST, token, path, body, 200)
    }

    /// An answer, which is of the shape that the document has for it.
    #[track_caller]
    fn fits(&self, method: &Method, path: &str, shown: &PageShown) -> Value {
        let route = table().into_iter().find(|route| route.method == *method && is_of(route, path));
        let route = route.unwrap_or_else(|| panic!("no address is {method} {path}"));
        let value: Value =
            serde_json::from_str(&shown.body).unwrap_or_else(|e| panic!("{e}: {}", shown.body));
        let operation =
            &self.document["paths"][format!("{BASE}{}", route.path)][method.as_str().to_lowercase()];
        let status = if shown.status < 300 { shown.status.to_string() } else { "default".to_owned() };
        let schema = &operation["responses"][&status]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path} has no {status}: {operation:#}");
        fits(&self.document, schema, &value, "answer")
            .unwrap_or_else(|why| panic!("{path}: {why}: {value:#}"));
        value
    }

    fn study(&self) -> String {
        let mut keys = LIFT.split('"').filter(|text| text.starts_with("tacit1:"));
        let (first, second) = (keys.next().expect("a key"), keys.next().expect("another"));
        LIFT.replace(first, &self.own.fingerprint().to_string()).replace(second, HOSPITALS)
    }

    /// A study that was proposed by a token: hash and proposal.
    fn proposed(&self, token: &str) -> (String, String) {
        let draft = self.post(token, "/drafts", &json!({ "title": "Spring", "text": self.study() }));
        let id = &draft["id"];
        let study = self.get(token, &format!("/drafts/{id}/preview"))["study"].clone();
        let done = self.post(token, &format!("/drafts/{id}/propose"), &json!({ "study": study }));
        let text = |name: &str| done[name].as_str().expect("a text").to_owned();
        assert_eq!(done["study"], study);
        (text("study"), text("proposal"))
    }
}

/// Whether a path is of an address.
fn is_of(route: &ApiRoute, path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let (of, parts): (Vec<&str>, Vec<&str>) = (route.path.split('/').collect(), path.split('/').collect());
    of.len() == parts.len() && of.iter().zip(&parts).all(|(of, part)| of.starts_with('{') || of == part)
}

/// What a schema says of a value, in the words that ours use; what it says nothing of is not in the value.
fn fits(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let place = name.strip_prefix('#').ok_or("a reference from elsewhere")?;
        let schema = document.pointer(place).ok_or_else(|| format!("there is no {name}"))?;
        return fits(document, schema, value, at);
    }
    for word in ["allOf", "oneOf"] {
        let Some(all) = schema[word].as_array() else { continue };
        let results = all.iter().map(|one| fits_loosely(document, one, value, at));
        let results: Vec<Result<(), String>> = results.collect();
        match word {
            "allOf" => results.into_iter().collect::<Result<(), _>>()?,
            _ if results.iter().any(Result::is_ok) => {}
            _ => return Err(format!("{at} is none of {all:?}")),
        }
    }
    let known = names(document, schema);
    if let (false, Some(object)) = (known.is_empty(), value.as_object())
        && let Some(other) = object.keys().find(|name| !known.contains(name.as_str()))
    {
        return Err(format!("{at}.{other} is not in the document"));
    }
    fits_loosely(document, schema, value, at)
}

/// The names of all properties that a schema has.
fn names(document: &Value, schema: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    if let Some(name) = schema["$ref"].as_str() {
        return names(document, document.pointer(&name[1..]).unwrap_or(&Value::Null));
    }
    all.extend(schema["properties"].as_object().into_iter().flat_map(|all| all.keys().cloned()));
    for part in schema["allOf"].as_array().into_iter().flatten() {
        all.extend(names(document, part));
    }
    all
}

fn fits_loosely(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if schema["$ref"].is_string() {
        return match schema["$ref"].as_str().and_then(|name| document.pointer(&name[1..])) {
            Some(schema) => fits_loosely(document, schema, value, at),
            None => Err(format!("there is no {}", schema["$ref"])),
        };
    }
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let good = |kind: &Value| kind == is || (kind == "number" && is == "integer");
    let fitting = match &schema["type"] {
        Value::Null => true,
        Value::Array(kinds) => kinds.iter().any(good),
        kind => good(kind),
    };
    if !fitting {
        return Err(format!("{at} is {is}, and not {}", schema["type"]));
    }
    if let Some(among) = schema["enum"].as_array()
        && !among.contains(value)
    {
        return Err(format!("{at} is none of {among:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            return Err(format!("{at}.{name} is missing"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            fits(document, schema, value, &format!("{at}.{name}"))?;
        }
    }
    for (number, value) in value.as_array().into_iter().flatten().enumerate() {
        if schema["items"].is_object() {
            fits(document, &schema["items"], value, &format!("{at}[{number}]"))?;
        }
    }
    Ok(())
}

#[test]
fn every_address_is_in_the_document_and_every_one_of_it_answers() {
    let desk = ApiDesk::new("");
    let token = desk.all("ann", &["analyst", "steward", "operator"]);
    let mut told = BTreeSet::new();
    for (path, item) in desk.document["paths"].as_object().expect("paths") {
        told.extend(item.as_object().expect("an item").keys().map(|method| format!("{method} {path}")));
    }
    let mut all = BTreeSet::new();
    for route in table() {
        all.insert(format!("{} {BASE}{}", route.method.as_str().to_lowercase(), route.path));
        let path = route.path.replace("{hash}", &"0".repeat(64)).replace("{id}", "9");
        let path = path.replace("{name}", "none").replace("{peer}", "none").replace("{file}", "none");
        let kind = [("content-type", "application/json")];
        let shown = desk.request(&route.method, &token, &path, &kind, "");
        assert!(shown.status < 500 && shown.status != 405, "{path}: {} {}", shown.status, shown.body);
        assert!(!shown.body.contains("there is no such address"), "{path}");
        match &route.back {
            ApiBack::File(_) if shown.status == 200 => {}
            _ => _ = desk.fits(&route.method, &path, &shown),
        }
    }
    for path in ["events", "health", "openapi.json"] {
        all.insert(format!("get {BASE}/{path}"));
        let shown = desk.request(&Method::GET, "", &format!("/{path}"), &[], "");
        assert_eq!(shown.status, if path == "events" { 401 } else { 200 }, "{path}");
    }
    assert_eq!(all, told);
    let version = desk.document["openapi"].as_str().expect("a version");
    assert!(version.starts_with("3.1"), "{version}");
}

#[test]
fn the_document_in_the_repository_is_that_of_the_program() {
    const PLACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    if std::env::var_os("TACIT_WRITE_OPENAPI").is_some() {
        std::fs::write(PLACE, [document::text(), b"\n"].concat()).expect("written");
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(PLACE).expect("it is there")).expect("JSON");
    let ours: Value = serde_json::from_slice(document::text()).expect("JSON");
    // Its version changes with every release.
    let same = |mut value: Value| {
        value["info"]["version"] = json!("");
        value
    };
    let said = "TACIT_WRITE_OPENAPI=1 cargo test -p service the_document writes docs/openapi.json anew";
    assert!(same(kept) == same(ours), "{said}");
}

#[test]
fn statements_come_the_newest_first_and_go_on_below_a_place() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let (study, proposal) = desk.proposed(&ann);
    let id = ProposalId(base::unhex(&proposal).expect("an id"));
    for number in 1..=4 {
        let speaker = Speaker { by: "ann", identity: &desk.own, at_ms: 1_000 * (now() + 1) + number };
        desk.rooms.house.store.say(speaker, &id, Said::Note(format!("Question {number}."))).expect("said");
    }
    let at = |after: &str| format!("/studies/{study}/statements{after}");
    let numbers = |page: &Value| -> Vec<u64> {
        let all = page["statements"].as_array().expect("a list").iter();
        all.map(|one| one["number"].as_u64().expect("a number")).collect()
    };
    let newest = desk.get(&ann, &at(""));
    assert_eq!(numbers(&newest), [4, 3, 2, 1, 0]);
    let older = desk.get(&ann, &at(&format!("?after={}-0-2", newest["statements"][2]["at_ms"])));
    assert_eq!((numbers(&older), &older["next"]), (vec![1, 0], &Value::Null));
    for wrong in ["soon", "1-0", "1-0-x", "1-0-1-1"] {
        let shown = desk.request(&Method::GET, &ann, &at(&format!("?after={wrong}")), &[], "").is(422);
        assert!(shown.body.contains("after is `next` of the list before"), "{}", shown.body);
    }
}

#[test]
fn answers_are_of_the_shapes_that_the_document_has() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let stella = desk.all("stella", &["steward"]);
    let olga = desk.all("olga", &["operator"]);
    let (study, proposal) = desk.proposed(&ann);
    let at = |rest: &str| format!("/studies/{study}{rest}");
    assert_eq!(desk.get(&ann, "/me")["account"], "ann");
    let listed = desk.get(&ann, "/studies?open=yes&peer=hospitals");
    assert_eq!(listed["studies"][0]["proposal"], json!(proposal));
    assert_eq!(desk.get(&ann, &at(""))["by"], "ann");
    assert_eq!(desk.get(&ann, &at(&format!("?proposal={proposal}")))["by"], "ann");
    desk.request(&Method::GET, &ann, &at(&format!("?proposal={}", "0".repeat(32))), &[], "").is(404);
    let note = json!({ "proposal": proposal, "text": "Is a week enough?" });
    desk.post(&ann, &at("/notes"), &note);
    let said = desk.get(&stella, &at("/statements"));
    assert_eq!(said["statements"][0]["said"], "note written");
    assert_eq!(said["statements"][0]["received"], false);
    assert_eq!(said["next"], Value::Null);
    let summary = desk.get(&stella, &at("/summary"));
    assert!(summary["sections"].as_array().is_some_and(|all| all.len() > 3), "{summary:#}");
    let decides: Vec<&Value> = summary["sets"].as_array().expect("sets").iter().collect();
    assert!(decides.iter().any(|set| set["data"] == "shop" && set["decides"] == true), "{summary:#}");
    desk.get(&stella, &at("/plan?rows=50000,40000"));
    let course = desk.get(&ann, &at("/run"));
    assert_eq!(course["runs"], json!([]));
    let budget = desk.get(&stella, "/budget");
    assert_eq!(budget["sets"].as_array().map(Vec::len), Some(4));
    desk.get(&stella, "/budget/shop/hospitals");
    assert_eq!(desk.get(&olga, "/data/shop")["rows"], Value::Null);
    desk.get(&olga, "/data");
    assert_eq!(desk.get(&olga, "/peers")["peers"][0]["key"], HOSPITALS);
    assert_eq!(desk.post(&olga, "/peers/hospitals/pause", &json!({ "paused": true }))["paused"], true);
    desk.get(&olga, "/policy");
    let log = desk.get(&stella, "/audit");
    let entries = log["entries"].as_array().expect("entries");
    let asked = "by token t9: POST /studies/{hash}/notes";
    assert!(entries.iter().any(|one| one["action"] == asked && one["actor"] == "ann"), "{log:#}");
    assert_eq!(desk.post(&stella, "/audit/verify", &json!({}))["fits"], true);
    let lines = desk.request(&Method::GET, &stella, "/audit/export?actor=ann", &[], "").is(200).body;
    assert!(lines.lines().count() > 3 && lines.lines().all(|line| line.contains("\"actor\":\"ann\"")));
    let reason = json!({ "proposal": proposal, "code": "other", "text": "A mistake." });
    assert_eq!(desk.post(&ann, &at("/withdraw"), &reason)["done"], "withdrawn");
    assert_eq!(desk.get(&ann, &at(""))["state"], "closed");
    let wrong = desk.send(Method::POST, &ann, &at("/withdraw"), &reason, 409);
    assert_eq!(wrong["error"]["kind"], "refused");
}

#[test]
fn drafts_are_kept_changed_and_dropped() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let broken = desk.study().replace("rho = ", "rhoo = ");
    let draft = desk.post(&ann, "/drafts", &json!({ "title": "Spring", "text": broken }));
    let path = format!("/drafts/{}", draft["id"]);
    let wrong = desk.request(&Method::GET, &ann, &format!("{path}/preview"), &[], "").is(422);
    let wrong = desk.fits(&Method::GET, &format!("{path}/preview"), &wrong);
    let line = 1 + broken.lines().position(|line| line.contains("rhoo")).expect("a line");
    assert_eq!(wrong["error"]["places"][0]["line"], json!(line), "{wrong:#}");
    let other = |version: &Value| json!({ "title": "Spring", "text": desk.study(), "version": version });
    desk.send(Method::PUT, &ann, &path, &other(&json!("00")), 409);
    let changed = desk.send(Method::PUT, &ann, &path, &other(&draft["version"]), 200);
    assert_eq!(changed["id"], draft["id"]);
    assert_eq!(desk.get(&ann, &format!("{path}/preview"))["against"], json!([]));
    // What own rules do not allow is told, and not proposed.
    let over = desk.study().replace("rho = 0.1", "rho = 0.5");
    let over = desk.post(&ann, "/drafts", &json!({ "title": "Too much", "text": over }));
    let beyond = format!("/drafts/{}", over["id"]);
    let preview = desk.get(&ann, &format!("{beyond}/preview"));
    assert!(preview["against"][0].as_str().is_some_and(|why| why.contains("max_rho")), "{preview:#}");
    let sent = json!({ "study": preview["study"] });
    let refused = desk.send(Method::POST, &ann, &format!("{beyond}/propose"), &sent, 409);
    assert!(refused.to_string().contains("nobody here could consent to it"), "{refused:#}");
    desk.send(Method::DELETE, &ann, &beyond, &json!({}), 200);
    let bob = desk.all("bob", &["analyst"]);
    desk.request(&Method::GET, &bob, &path, &[], "").is(404);
    let stale = json!({ "study": "0".repeat(64) });
    desk.send(Method::POST, &ann, &format!("{path}/propose"), &stale, 409);
    desk.send(Method::DELETE, &ann, &path, &json!({}), 200);
    assert_eq!(desk.get(&ann, "/drafts")["drafts"], json!([]));
}

#[test]
fn a_token_decides_only_where_a_rule_says_so_and_never_for_two() {
    for (more, by_rule) in [("", 403), (BY_TOKEN, 200)] {
        let desk = ApiDesk::new(more);
        let (ann, stella) = (desk.all("ann", &["analyst"]), desk.all("stella", &["steward"]));
        let (study, proposal) = desk.proposed(&ann);
        let path = |what: &str| format!("/studies/{study}/{what}");
        let words = desk.get(&stella, &path("summary"))["words"].clone();
        let consent = |data: &str, proposal: &str| {
            json!({
                "proposal": proposal, "words": words, "data": data, "runs": 2, "days": 30,
            })
        };
        // Two stewards decide on it, each on the page.
        desk.send(Method::POST, &stella, &path("consent"), &consent("pair", &proposal), 403);
        // An analyst decides on nothing, with any scope.
        desk.send(Method::POST, &ann, &path("consent"), &consent("shop", &proposal), 403);
        desk.send(Method::POST, &stella, &path("consent"), &consent("shop", &"0".repeat(32)), 409);
        let reason = json!({ "proposal": proposal, "code": "purpose", "text": "Not for this." });
        desk.send(Method::POST, &ann, &path("refuse"), &reason, 403);
        // It would be refused for the data of two, too.
        desk.send(Method::POST, &stella, &path("refuse"), &reason, 403);
        let desk = ApiDesk::with(&MORE.replace("two_person = true\n", ""), more);
        let (ann, stella) = (desk.all("ann", &["analyst"]), desk.all("stella", &["steward"]));
        let (study, proposal) = desk.proposed(&ann);
        let reason = json!({ "proposal": proposal, "code": "purpose", "text": "Not for this." });
        let path = format!("/studies/{study}/refuse");
        let done = desk.send(Method::POST, &stella, &path, &reason, by_rule);
        assert_eq!(done["done"] == "refused", by_rule == 200, "{done:#}");
    }
}

/// Four servers compute it, of which this organisation is one.
#[test]
fn a_token_of_a_steward_of_everything_consents_for_a_server() {
    for (more, by_rule) in [("", 403), (BY_TOKEN, 200)] {
        let desk = ApiDesk::new(more);
        let (own, peer) = (desk.own.fingerprint(), Identity::generate().expect("a key"));
        let text = SERVED.replace(&format!("tacit1:{}", "2".repeat(32)), &own.to_string());
        let text = text.replace("tacit1:b07e66d2915c4fa3a2d8017b34ce9f50", &peer.fingerprint().to_string());
        let told = crate::told::tell(&text, "", &crate::reckoned::ReckonedFor::default()).expect("a study");
        let proposed = ProposedStudy {
            text: told.text.clone(),
            program: base::unhex(&told.program).expect("a hash"),
            note: String::new(),
            expires_ms: (now() + 86_400) * 1_000,
            windows: Vec::new(),
            nonce: [7; 16],
        };
        let first = ProposalRecord::propose(&peer, now() * 1_000, proposed).expect("proposed");
        let from = PeerSender { name: "peer", key: peer.fingerprint(), most_open: 9, most_per_day: 9 };
        let store = &desk.rooms.house.store;
        store.absorb(own, from, now() * 1_000, &first.bytes()).expect("taken");
        let (stella, otto) = (desk.all("stella", &["steward"]), desk.all("otto", &["steward=shop"]));
        let path = |what: &str| format!("/studies/{}/{what}", told.file.hash().full());
        let summary = desk.get(&stella, &path("summary"));
        assert_eq!((&summary["serves"], &summary["sets"]), (&json!(true), &json!([])));
        assert_eq!(desk.get(&otto, &path("summary"))["serves"], false);
        let proposal = base::hex(&first.body().proposal.0);
        let consent = json!({ "proposal": proposal, "words": summary["words"], "runs": 1, "days": 30 });
        desk.send(Method::POST, &otto, &path("consent"), &consent, 403);
        let done = desk.send(Method::POST, &stella, &path("consent"), &consent, by_rule);
        assert_eq!(done["done"] == "weighing", by_rule == 200, "{done:#}");
        let reason = json!({ "proposal": proposal, "code": "other", "text": "Not this week." });
        desk.send(Method::POST, &otto, &path("refuse"), &reason, 403);
        desk.send(Method::POST, &otto, &path("withdraw"), &reason, 403);
    }
}

#[test]
fn a_token_has_its_scopes_its_data_and_the_roles_of_now() {
    let desk = ApiDesk::new("");
    let narrow = desk.token("stella", &["steward"], &[TokenScope::Studies, TokenScope::Budget], Some("shop"));
    let sets = desk.get(&narrow, "/budget")["sets"].clone();
    assert_eq!(sets.as_array().map(Vec::len), Some(1));
    assert_eq!(sets[0]["data"], "shop");
    let wrong = desk.request(&Method::GET, &narrow, "/data", &[], "").is(403).says("the scope data");
    desk.fits(&Method::GET, "/data", &wrong);
    let store = &desk.rooms.house.store;
    let steward = Grant::parse("steward").expect("a role");
    let act = RecordedAct { by: "olga", what: "role taken", to: "stella", at: now() };
    store.take_role(&act, &steward).expect("taken");
    desk.request(&Method::GET, &narrow, "/budget", &[], "").is(401);
}

#[test]
fn what_comes_twice_with_a_key_is_done_once() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let headers = [("content-type", "application/json"), ("idempotency-key", "one")];
    let body = json!({ "title": "Spring", "text": desk.study() }).to_string();
    let first = desk.request(&Method::POST, &ann, "/drafts", &headers, &body).is(200).body;
    assert_eq!(desk.request(&Method::POST, &ann, "/drafts", &headers, &body).is(200).body, first);
    assert_eq!(desk.get(&ann, "/drafts")["drafts"].as_array().map(Vec::len), Some(1));
    desk.request(&Method::POST, &ann, "/drafts", &headers, &body.replace("Spring", "Fall")).is(422);
    let other = [headers[0], ("idempotency-key", "two")];
    desk.request(&Method::POST, &ann, "/drafts", &other, &body).is(200);
    assert_eq!(desk.get(&ann, "/drafts")["drafts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn each_role_sees_of_a_study_what_its_page_shows() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let (study, proposal) = desk.proposed(&ann);
    let path = format!("/studies/{study}");
    let proposal = statements::ProposalId(base::unhex(&proposal).expect("a proposal"));
    let act = RecordedAct { by: "paula", what: "consent weighed", to: &study, at: now() };
    desk.rooms.house.store.keep_weighed(&act, &proposal, "pair", "pair.csv, line 7").expect("kept");
    for (account, role, reads, against, sets) in [
        ("ann", "analyst", true, false, 0),
        ("olga", "operator", false, false, 3),
        ("sam", "steward=shop", true, false, 1),
        ("paula", "steward=pair", true, true, 1),
    ] {
        let token = desk.token(account, &[role], &[TokenScope::Studies], None);
        let seen = desk.get(&token, &path);
        assert_eq!(seen["text"].is_string(), reads, "{account}: {seen:#}");
        assert_eq!(seen["against"].is_string(), against, "{account}: {seen:#}");
        let summary = desk.get(&token, &format!("{path}/summary"));
        assert_eq!(summary["sets"].as_array().map(Vec::len), Some(sets), "{account}: {summary:#}");
    }
}

#[test]
fn nothing_is_read_of_who_may_not_send_it() {
    let desk = ApiDesk::new("");
    let narrow = desk.token("ann", &["analyst"], &[TokenScope::Studies], None);
    for (token, status) in [("", 401), (narrow.as_str(), 403)] {
        let unread = poll_fn(|_| -> Poll<Option<Result<Bytes, Infallible>>> { panic!("the body was read") });
        let request = Request::builder().method(Method::POST).uri(format!("{BASE}/drafts"));
        let request = request.header("host", "tacit.registry.example");
        let request = request.header("authorization", format!("Bearer {token}"));
        desk.rooms.ask(request.body(Body::from_stream(unread)).expect("a request")).is(status);
    }
}

#[test]
fn streams_of_events_have_places_and_a_measure() {
    let desk = ApiDesk::new("");
    let narrow = desk.token("ann", &["analyst"], &[TokenScope::Budget], None);
    let listen = |token: &str| desk.request(&Method::GET, token, "/events", &[], "").status;
    assert_eq!(listen(&narrow), 403);
    let ann = desk.all("ann", &["analyst"]);
    let held: Vec<_> = std::iter::from_fn(|| desk.rooms.house.listeners.take("ann".to_owned())).collect();
    assert_eq!((held.len(), listen(&ann)), (8, 429));
    let slow = (0..400).find(|_| listen("") == 429);
    assert!(slow.is_some(), "four hundred strangers at once were answered");
}

#[test]
fn who_asks_too_fast_waits() {
    let desk = ApiDesk::new("");
    let ann = desk.all("ann", &["analyst"]);
    let slow = (0..400).find(|_| desk.request(&Method::GET, &ann, "/me", &[], "").status == 429);
    assert!(slow.is_some(), "four hundred at once were answered");
}
