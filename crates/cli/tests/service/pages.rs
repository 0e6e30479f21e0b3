//! What people see and do.

use crate::house::{House, Person, ROWS, password};

/// Pages that a person sees, with whether an operator, a steward of `trial`, an analyst, a viewer may.
const PAGES: [(&str, [bool; 4]); 14] = [
    ("/", [true, true, true, true]),
    ("/account", [true, true, true, true]),
    ("/data", [true, true, true, false]),
    ("/data/trial", [true, true, true, false]),
    ("/data/other", [true, false, true, false]),
    ("/budget", [true, true, false, false]),
    ("/rules", [true, true, false, false]),
    ("/confirmations", [true, true, false, false]),
    ("/peers", [true, true, false, false]),
    ("/audit", [true, true, false, false]),
    ("/operate", [true, false, false, false]),
    ("/help", [true, true, true, true]),
    ("/accounts", [true, false, false, false]),
    ("/accounts/stella", [true, false, false, false]),
];

#[test]
fn pages_are_for_those_whose_roles_say_so_and_are_well_formed() {
    let house = House::begin("");
    let people = [
        house.person("olga", &["operator"]),
        house.person("stella", &["steward=trial"]),
        house.person("anna", &["analyst"]),
        house.person("vera", &["viewer"]),
    ];
    for (path, allowed) in PAGES {
        for (person, allowed) in people.iter().zip(allowed) {
            let reply = house.get(person, path);
            let shown = reply.status == 200;
            assert_eq!(shown, allowed, "{path} for {}: {}", person.name, reply.status);
            assert!(shown || [403, 404].contains(&reply.status), "{path}: {}", reply.status);
            well_formed(&reply.body);
            let offered = reply.body.contains(&format!("<a href=\"{path}\""));
            assert!(shown || !offered, "{path} is offered to {}, who may not see it", person.name);
        }
    }
    for path in ["/sign-in", "/nothing", "/enter/00"] {
        well_formed(&house.ask("GET", path, &[], "").body);
    }
    let style = house.ask("GET", "/sign-in", &[], "").body;
    let style =
        style.split_once("href=\"/assets/").expect("a style sheet").1.split_once('"').expect("ends").0;
    house.ask("GET", &format!("/assets/{style}"), &[], "").is(200).says(":root");
    assert_eq!(house.log(), "");
}

/// Well-formed, one heading of the first order, a label for each field, names of rows and columns.
fn well_formed(page: &str) {
    let (kind, page) = page.split_once('\n').expect("a first line");
    assert_eq!(kind, "<!DOCTYPE html>");
    let tree = roxmltree::Document::parse(page).unwrap_or_else(|e| panic!("{e}:\n{page}"));
    let all = |name: &'static str| tree.descendants().filter(move |node| node.tag_name().name() == name);
    assert_eq!((all("h1").count(), all("main").count(), all("title").count() > 0), (1, 1, true), "{page}");
    let labels: Vec<&str> = all("label").filter_map(|label| label.attribute("for")).collect();
    for field in all("input").chain(all("select")).filter(|field| field.attribute("type") != Some("hidden")) {
        if field.attribute("hidden").is_some() {
            continue;
        }
        let id = field.attribute("id").expect("an id");
        assert!(labels.contains(&id), "{id} has no label:\n{page}");
    }
    for table in all("table") {
        assert!(table.children().any(|child| child.tag_name().name() == "caption"), "{page}");
        let heads = table.descendants().filter(|node| node.tag_name().name() == "th");
        assert!(heads.into_iter().all(|head| head.attribute("scope").is_some()), "{page}");
    }
    for node in tree.descendants() {
        let active = node.attributes().any(|one| one.name().starts_with("on") || one.name() == "style");
        assert!(!active, "a handler or a style in an element:\n{page}");
    }
}

#[test]
fn data_are_checked_and_shown_as_text() {
    let house = House::begin("");
    let (olga, stella) = (house.person("olga", &["operator"]), house.person("stella", &["steward=trial"]));
    house.get(&stella, "/").is(200).says("The data set trial was never checked.").never_says("other");
    house.do_it(&stella, "/data/trial", "/data/trial/check", &[]).is(303);
    let page = checked(&house, &stella, "trial");
    assert!(page.contains("The files have what service.toml says of them."), "{page}");
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;"), "{page}");
    house.get(&stella, "/data").says("<td data-label=\"Rows\">3</td>");
    // Whoever runs the machine sees how many rows there are, and not what is in them.
    house.get(&olga, "/data/trial").says("stella").never_says("child_id");
    house.do_it(&olga, "/data/other", "/data/other/check", &[]).is(303);
    let page = checked(&house, &olga, "other");
    assert!(page.contains("The check failed.") && !page.contains("other.csv"), "{page}");
    house.get(&olga, "/").says("The check of other failed.");
    house.get(&olga, "/rules").says("A study may read 2 columns").never_says("child_id");
    house.get(&stella, "/rules").says("child_id, arm");
    // A check is against the rules that hold, whatever the file says by now; its problems name no column to
    // those who see none.
    let text = std::fs::read_to_string(house.path("service.toml")).expect("reads");
    let changed = text.replace("\"child_id\", \"arm\"", "\"secret_code\"");
    std::fs::write(house.path("service.toml"), changed).expect("written");
    house.do_it(&stella, "/data/trial", "/data/trial/check", &[]).is(303);
    let page = checked(&house, &stella, "trial");
    assert!(page.contains("The files have what service.toml says of them."), "{page}");
    house.tacit(&["accept"], &[]);
    let mut house = house;
    house.kill();
    house.start();
    house.do_it(&stella, "/data/trial", "/data/trial/check", &[]).is(303);
    assert!(checked(&house, &stella, "trial").contains("secret_code"));
    house.get(&olga, "/data/trial").says("columns that the files do not have").never_says("secret_code");
    std::fs::write(house.path("service.toml"), text).expect("written");
    house.tacit(&["accept"], &[]);
    // What was done is one log, which whoever audits the organisation checks.
    let store = rusqlite::Connection::open(house.path("service.db")).expect("opens");
    assert!(trail::verify(&store).expect("a chain").last > 5);
    let found = house.tacit(&["data"], &["trial"]);
    assert_eq!((found["rows"].as_u64(), found["columns"].as_array().map(Vec::len)), (Some(3), Some(3)));
    assert_eq!(ROWS.lines().count(), 4);
}

/// Loads the page of a data set until its check is over.
fn checked(house: &House, person: &Person, data: &str) -> String {
    loop {
        let page = house.get(person, &format!("/data/{data}")).is(200).body;
        if !page.contains("The files are being read.") {
            return page;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn an_operator_adds_people_and_changes_what_they_may() {
    let house = House::begin("");
    let mut olga = house.person("olga", &["operator"]);
    let sam = house.person("sam", &["steward"]);
    let add = [("name", "anna"), ("role", "analyst"), ("data", "trial")];
    house
        .do_it(&olga, "/accounts", "/accounts", &[("name", "Anna!"), ("role", "analyst")])
        .is(422)
        .says("1 to 40");
    let page = house.do_it(&olga, "/accounts", "/accounts", &add).is(200).says("It is not shown again.").body;
    let page_of_code = house.do_it(&sam, "/confirmations", "/confirmations/1/confirm", &[]).is(200).body;
    let code = page_of_code.split_once("<p class=\"link\">").expect("a code").1[..14].to_owned();
    let link = page.split_once("/enter/").expect("a link").1[..64].to_owned();
    house.do_it(&olga, "/accounts", "/accounts", &add).is(422).says("Names are not given twice");
    let path = format!("/enter/{link}");
    house.ask("GET", &path, &[], "").is(200).says("For the account anna at registry.");
    house.send(&path, None, &[("new", "passwordpassword")]).is(422).says("guessed first");
    house.send(&path, None, &[("new", &password("anna"))]).is(422).says("The code is another one");
    let new = [("new", password("anna")), ("code", code)];
    let new = [("new", new[0].1.as_str()), ("code", new[1].1.as_str())];
    let cookie = house.send(&path, None, &new).is(303).cookie().expect("signed in");
    let anna = Person { name: "anna".into(), cookie };
    house.ask("GET", &path, &[], "").is(404).says("This link does not hold");
    house.send(&path, None, &[("new", &password("anna"))]).is(404);
    house.get(&anna, "/data/trial").is(200);
    // A change of roles signs out, and holds at the next sign-in.
    let give = [("role", "steward"), ("data", "trial")];
    house
        .do_it(&olga, "/accounts/anna", "/accounts/anna/give", &give)
        .is(200)
        .says("A second person confirms");
    house.get(&anna, "/budget").is(403);
    house.do_it(&sam, "/confirmations", "/confirmations/2/confirm", &[]).is(303);
    house.get(&anna, "/").is(303);
    let anna =
        Person { cookie: house.sign_in("anna", &password("anna")).is(303).cookie().expect("in"), ..anna };
    house.get(&anna, "/budget").is(200).says("Towards <bdi>hospitals</bdi>");
    // Nobody changes their own roles; another operator does.
    house
        .get(&olga, "/accounts/olga")
        .is(200)
        .says("Nobody changes their own roles here")
        .never_says("Give role");
    let word = house.get(&olga, "/accounts").word("/accounts");
    house.send("/accounts/olga/give", Some(&olga.cookie), &[("csrf", &word), ("role", "steward")]).is(403);
    // The own password can be changed, which ends what else is open.
    let other = house.sign_in("olga", &password("olga")).is(303).cookie().expect("in");
    let fields = [("password", "wrong"), ("new", "lantern orbit mustard viola")];
    house.do_it(&olga, "/account", "/account/password", &fields).is(403);
    let fields = [("password", password("olga")), ("new", "lantern orbit mustard viola".to_owned())];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let changed = house.do_it(&olga, "/account", "/account/password", &fields).is(303);
    house.get(&olga, "/").is(303);
    olga.cookie = changed.cookie().expect("goes on");
    house.get(&olga, "/").is(200);
    house.ask("GET", "/", &[("Cookie", &other)], "").is(303);
    house.do_it(&olga, "/accounts/anna", "/accounts/anna/end", &[]).is(303);
    house.get(&olga, "/accounts/anna").says("State: ended.").never_says("Give role");
    house.sign_in("anna", &password("anna")).is(401);
}

#[test]
fn rules_hold_as_they_were_accepted() {
    let mut house = House::begin("[policy]\nkinds = [\"lift\"]\nmax_rho = 0.3");
    let olga = house.person("olga", &["operator"]);
    house.get(&olga, "/budget").says("<b>3</b> more studies at the most that the rules allow, at 0.3.");
    house.get(&olga, "/rules").says("Allowed kinds: lift.").never_says("was changed");
    house.kill();
    house.write_rules("", "[policy]\nkinds = [\"lift\"]\nmax_rho = 0.9\nseparate_duties = false");
    assert_eq!(house.start()["accepted"], false);
    house.get(&olga, "/budget").says("at 0.3.").says("service.toml was changed and nobody has accepted");
    house.kill();
    std::fs::write(house.path("service.toml"), "format = 1").expect("written");
    let refused = house.try_tacit(&["check"], &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("line 1, column 10"), "{said}");
    house.write_rules("", "[policy]\nkinds = [\"lift\"]\nmax_rho = 0.9\nseparate_duties = false");
    house.tacit(&["accept"], &[]);
    assert_eq!(house.start()["accepted"], true);
    house
        .get(&olga, "/budget")
        .says("at 0.9.")
        .says("Duties are not separate here")
        .never_says("was changed");
    house.get(&olga, "/accounts/olga").is(200).says("Give role").never_says("another operator");
}

#[test]
fn budgets_are_those_of_the_ledger() {
    let house = House::begin("[policy]\nmax_rho = 0.3");
    let demo = house.path("demo");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tacit"));
    let done =
        command.args(["demo", "--scale", "20", "--json", "--out"]).arg(&demo).output().expect("tacit starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    std::fs::copy(demo.join("registry.ledger"), house.path("registry.ledger")).expect("copied");
    let olga = house.person("olga", &["operator"]);
    // What was spent stands under the lineage of the rules, not under a name of a data set.
    house.get(&olga, "/budget").is(200).says("Spent 0 of 1; 1 are left.");
    let text = std::fs::read_to_string(house.path("service.toml")).expect("reads");
    let text = text.replace("lineage = \"trial\"", "lineage = \"registry\"");
    std::fs::write(house.path("service.toml"), text).expect("written");
    house.tacit(&["accept"], &[]);
    let mut house = house;
    house.kill();
    house.start();
    house
        .get(&olga, "/budget")
        .is(200)
        .says("Spent 0.11 of 1; 0.89 are left.")
        .says("<b>8</b> more studies like the last one, at 0.11.")
        .says("<b>2</b> more studies at the most that the rules allow, at 0.3.")
        .says("Towards <bdi>everybody, by public results</bdi>")
        .says("All viewers together have had 0.11 of lineage registry");
}
