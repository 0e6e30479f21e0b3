//! Rules by page: tightened by one person, loosened by two, and never over what an editor wrote.

use super::{Guest, PageShown, Rooms};

const POLICY: &str = "[policy]\nkinds = [\"lift\"]\nmax_rho = 0.5 # for a study\n";

fn file(rooms: &Rooms) -> String {
    std::fs::read_to_string(rooms.path("service.toml")).expect("reads")
}

/// Looks at the difference, and sends what stands beneath it.
#[track_caller]
fn change(rooms: &Rooms, who: &Guest, rule: &str, value: &str) -> PageShown {
    let fields = [("rule", rule), ("value", value)];
    let shown = rooms.deed(who, "/rules", "/rules/preview", &fields);
    if shown.status != 200 {
        return shown;
    }
    let to = shown.body.split_once("action=\"/rules/change/").expect("a form").1;
    let to = format!("/rules/change/{}", to.split_once('"').expect("ends").0);
    let word = shown.word(&to);
    rooms.send(Some(who), &to, &[fields[0], fields[1], ("csrf", &word)])
}

#[test]
fn one_person_tightens_and_two_loosen() {
    let rooms = Rooms::begin(POLICY);
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    let stella = rooms.guest("stella", &["steward=trial"]);
    change(&rooms, &olga, "policy.max_rho", "0.3").is(303);
    assert!(file(&rooms).ends_with("max_rho = 0.3 # for a study\n"), "{}", file(&rooms));
    rooms.get(&sam, "/rules").says("at most 0.3 (rho)").says("Accepted by olga").never_says("was changed");
    // Looser: the file and what holds stay until a steward says so.
    change(&rooms, &olga, "policy.max_rho", "0.9").is(200).says("A second person confirms this: sam.");
    assert!(file(&rooms).contains("max_rho = 0.3"));
    rooms.get(&stella, "/confirmations").says("policy.max_rho: allows more").says("for somebody else");
    rooms.get(&olga, "/confirmations").never_says("/confirmations/1/confirm");
    let page = rooms.get(&sam, "/confirmations").says("Every study: A study may spend at most 0.3");
    page.says("Every study: A study may spend at most 0.9");
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(303);
    assert!(file(&rooms).contains("max_rho = 0.9"));
    rooms.get(&olga, "/rules").says("at most 0.9 (rho)").says("Accepted by sam");
    // A steward of one data set, about it; an operator confirms.
    change(&rooms, &stella, "policy.max_rho", "0.1").is(422);
    change(&rooms, &stella, "data.other.budget", "0.1").is(422);
    change(&rooms, &stella, "data.trial.budget", "0.5").is(303);
    change(&rooms, &stella, "data.trial.budget", "2").is(200).says("olga");
    let forged = [("csrf", sam.word("confirm", "2"))];
    rooms.send(Some(&sam), "/confirmations/2/confirm", &[("csrf", &forged[0].1)]).is(403);
    rooms.deed(&olga, "/confirmations", "/confirmations/2/confirm", &[]).is(303);
    rooms.get(&stella, "/budget").says("Spent 0 of 2; 2 are left.");
    // Both texts are in the log.
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    trail::verify(&store).expect("a chain");
    let all = trail::entries(&store, 0, 1_000, Some("service.toml")).expect("reads");
    let last = all.last().expect("an entry");
    let detail: serde_json::Value = serde_json::from_str(&last.detail).expect("JSON");
    assert_eq!(last.action, "confirmed for stella: rules changed: data.trial.budget");
    assert!(detail["before"].as_str().is_some_and(|text| text.contains("budget = 0.5")), "{detail}");
    assert!(detail["after"].as_str().is_some_and(|text| text.contains("budget = 2")), "{detail}");
}

#[test]
fn a_proposal_is_about_the_rules_that_it_was_made_of() {
    let rooms = Rooms::begin(POLICY);
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    change(&rooms, &olga, "policy.max_rho", "0.9").is(200);
    change(&rooms, &sam, "policy.max_cells", "5").is(303);
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(409);
    assert!(file(&rooms).contains("max_rho = 0.5") && file(&rooms).contains("max_cells = 5"));
    // What does not parse, is no rule of the page, or tries to be more than a value.
    for (rule, value) in [
        ("policy.max_rho", "much"),
        ("policy.max_rho", "-1"),
        ("policy.notify", "[\"/bin/sh\"]"),
        ("name", "\"eve\""),
        ("data.trial.path", "\"other.csv\""),
        ("policy.max_rho", "0.1\nallow_exact = true"),
        ("policy.max_rho", "0.5"),
    ] {
        change(&rooms, &olga, rule, value).is(422);
    }
    // Names of columns are not an operator's.
    rooms.get(&olga, "/rules").never_says("data.trial.columns").never_says("child_id");
    change(&rooms, &olga, "data.trial.columns", "[]").is(422);
    change(&rooms, &sam, "data.trial.columns", "[\"child_id\"]").is(303);
    change(&rooms, &sam, "policy.max_rho", "unsaid").is(303);
    rooms.get(&olga, "/rules").says("No study may spend anything").says("A study may read 1 column");
}

#[test]
fn what_an_editor_wrote_is_seen_accepted_and_never_written_over() {
    let rooms = Rooms::begin(POLICY);
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    let seen = || rooms.house.rules.look(&rooms.house.store, super::now());
    let write = |text: &str| std::fs::write(rooms.path("service.toml"), text).expect("written");
    let before = file(&rooms);
    write(&before.replace("max_rho = 0.5", "max_rho = 0.2"));
    seen();
    let page =
        rooms.get(&olga, "/rules").says("The file was changed").says("at most 0.2").says("at most 0.5");
    let hash = page.body.split_once("action=\"/rules/accept/").expect("a form").1[..64].to_owned();
    change(&rooms, &olga, "policy.max_cells", "5").is(422).says("accept it, or take it back");
    rooms.deed(&olga, "/rules", &format!("/rules/accept/{hash}"), &[]).is(303);
    rooms.get(&olga, "/rules").never_says("The file was changed").says("at most 0.2");
    // Looser by an editor is looser; another text than the one that was looked at is not accepted.
    write(&before.replace("max_rho = 0.5", "max_rho = 0.7"));
    seen();
    let page = rooms.get(&olga, "/rules");
    let hash = page.body.split_once("action=\"/rules/accept/").expect("a form").1[..64].to_owned();
    let (to, word) = (format!("/rules/accept/{hash}"), olga.word("accept rules", &hash));
    write(&before.replace("max_rho = 0.5", "max_rho = 0.8"));
    rooms.send(Some(&olga), &to, &[("csrf", &word)]).is(422).says("changed meanwhile");
    write(&before.replace("max_rho = 0.5", "max_rho = 0.7"));
    rooms.send(Some(&olga), &to, &[("csrf", &word)]).is(200).says("A second person confirms this: sam.");
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(303);
    rooms.get(&sam, "/rules").says("at most 0.7").never_says("The file was changed");
    // What is about the machine is accepted on the machine.
    write(&file(&rooms).replace("name = \"registry\"", "name = \"eve\""));
    seen();
    let page = rooms.get(&olga, "/rules").says("tacit service accept").never_says("action=\"/rules/accept");
    page.says("name is about the machine");
}

#[test]
fn several_rules_are_one_change() {
    let rooms = Rooms::begin(POLICY);
    let (olga, sam) = (rooms.guest("olga", &["operator"]), rooms.guest("sam", &["steward"]));
    let first = [("rule", "policy.max_rho"), ("value", "0.9")];
    let shown = rooms.deed(&olga, "/rules", "/rules/preview", &first).is(200);
    let shown = shown.says("Another rule in the same change").says("policy.max_rho: allows more");
    let both = [first[0], first[1], ("rule", "policy.max_cells"), ("value", "5")];
    let word = shown.word("/rules/preview");
    let shown = rooms.send(Some(&olga), "/rules/preview", &[&both[..], &[("csrf", &word)]].concat()).is(200);
    let shown = shown.says("policy.max_rho: allows more").says("policy.max_cells: allows less");
    let to = shown.body.split_once("action=\"/rules/change/").expect("a form").1;
    let to = format!("/rules/change/{}", to.split_once('"').expect("ends").0);
    let word = shown.word(&to);
    rooms.send(Some(&olga), &to, &[&both[..], &[("csrf", &word)]].concat()).is(200).says("sam");
    rooms.deed(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(303);
    let file = file(&rooms);
    assert!(file.contains("max_rho = 0.9 # for a study") && file.contains("max_cells = 5"), "{file}");
    // Of two, one that this person may not change stops both.
    let stella = rooms.guest("stella", &["steward=trial"]);
    let both =
        [("rule", "data.trial.budget"), ("value", "0.5"), ("rule", "policy.max_cells"), ("value", "2")];
    rooms.deed(&stella, "/rules", "/rules/preview", &both).is(422);
}
