//! The audit log by page, and what a retention rule leaves of it.

use super::{Rooms, now};
use crate::web::watch;
use net::identity::Identity;
use trail::SignedTrail;

#[test]
fn entries_are_found_paged_and_exported() {
    let rooms = Rooms::begin("");
    let (olga, anna) = (rooms.guest("olga", &["operator"]), rooms.guest("anna", &["analyst"]));
    let sam = rooms.guest("sam", &["steward"]);
    rooms.get(&anna, "/audit").is(403);
    let act = |to: &'static str| crate::store::RecordedAct { by: "olga", what: "looked", to, at: now() };
    (0..120).for_each(|_| rooms.house.store.record(&act("\"><b>x</b>")).expect("written"));
    let page = rooms.get(&olga, "/audit?action=looked&actor=olga").is(200);
    assert_eq!(page.body.matches("<td data-label=\"What\">looked</td>").count(), 50);
    let page = page.says("&lt;b&gt;x").never_says("<b>x</b>");
    // Pages go on where the one before ended, and the last one says so.
    let mut seen = 50;
    let mut page = page;
    while let Some((_, rest)) = page.body.split_once("href=\"/audit?below=") {
        let rest = rest.split_once('"').expect("ends").0.replace("&amp;", "&");
        page = rooms.get(&olga, &format!("/audit?below={rest}")).is(200);
        seen += page.body.matches("<td data-label=\"What\">looked</td>").count();
    }
    assert_eq!(seen, 120);
    rooms.get(&olga, "/audit?actor=nobody").says("There is no such entry.");
    rooms.get(&olga, "/audit?from=yesterday").is(422).says("yesterday is no day");
    rooms.get(&olga, "/audit?from=2020-01-01&until=2020-01-02").says("There is no such entry.");
    rooms.get(&olga, "/audit?subject=anna&until=2999-01-01").says("account added").never_says("looked");
    // The chain is computed when somebody asks, and that is an entry.
    rooms.get(&olga, "/audit").says("Nobody has computed the chain");
    rooms.deed(&olga, "/audit", "/audit/verify", &[]).is(303);
    rooms.get(&sam, "/audit").says("The chain fits up to entry").says("audit log verified");
    // As JSON lines, oldest first; texts of rules are for who sees columns.
    rooms.house.store.propose_change("sam", &rules(), now()).expect("written");
    rooms.house.store.change_rules("sam", &change(&rooms), now(), &|_| Ok(())).expect("written");
    let lines = |who| {
        let file = rooms.deed(who, "/audit", "/audit/export", &[("subject", "service.toml")]).is(200);
        let line = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
        file.body.lines().map(line).collect::<Vec<_>>()
    };
    let (of_olga, of_sam) = (lines(&olga), lines(&sam));
    assert_eq!(of_sam.len(), 2);
    assert!(of_sam[1]["detail"].as_str().is_some_and(|text| text.contains("child_id")), "{of_sam:?}");
    assert!(!of_olga[1].to_string().contains("child_id"), "{of_olga:?}");
    assert!(of_sam[0]["number"].as_u64() < of_sam[1]["number"].as_u64());
    // A log that was changed is found, and every page of who answers for it says so.
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    let edit = "DROP TRIGGER audit_no_update; UPDATE audit SET actor = 'x' WHERE number = 3;";
    store.execute_batch(edit).expect("edited");
    rooms.deed(&olga, "/audit", "/audit/verify", &[]).is(303);
    rooms.get(&sam, "/").says("the trigger audit_no_update of the audit log is not there");
    rooms.get(&anna, "/").never_says("audit_no_update");
}

fn rules() -> crate::changes::ProposedChange {
    let (before, after) = (String::new(), String::new());
    let rules = vec![("policy.max_rho".to_owned(), true)];
    crate::changes::ProposedChange::Rules(crate::changes::RulesChange {
        before,
        after,
        rules,
        data: None,
        as_steward: true,
    })
}

fn change(rooms: &Rooms) -> crate::changes::RulesChange {
    let before = rooms.house.store.accepted().expect("reads").expect("accepted").text;
    let after = format!("{before}\n# more\n");
    crate::changes::RulesChange { before, after, rules: Vec::new(), data: None, as_steward: true }
}

#[test]
fn what_is_too_old_is_written_out_and_taken_away() {
    let rooms = Rooms::begin("[keep]\nlog_days = 30\nreports_days = 30\nfolder = \"kept\"\n");
    let olga = rooms.guest("olga", &["operator"]);
    let identity = Identity::generate().expect("a key");
    identity.save(&rooms.path("registry.key")).expect("saved");
    rooms.get(&olga, "/rules").says("Entries of the audit log older than 30 days are written into");
    let store = rusqlite::Connection::open(rooms.path("service.db")).expect("opens");
    let sql = "INSERT INTO report_files (proposal, name, run, at_ms, content) \
               VALUES (?1, 'report.json', 1, ?2, ?3)";
    let values = rusqlite::params![[7u8; 16], 1_000, b"{\"answer\": 1}"];
    store.execute(sql, values).expect("written");
    // Nothing of it is old: the report alone is.
    watch::look(&rooms.house, now());
    assert_eq!(trail::verify(&store).expect("a chain").first, 1);
    let files = || {
        let all = std::fs::read_dir(rooms.path("kept")).expect("there");
        let mut names: Vec<String> =
            all.map(|file| file.expect("there").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let names = files();
    assert!(names.len() == 1 && names[0].starts_with("reports-"), "{names:?}");
    let line = std::fs::read_to_string(rooms.path("kept").join(&names[0])).expect("reads");
    assert!(line.contains("\"content\":\"{\\\"answer\\\": 1}\""), "{line}");
    let left: i64 =
        store.query_row("SELECT count(*) FROM report_files", [], |row| row.get(0)).expect("reads");
    assert_eq!(left, 0);
    let last = trail::verify(&store).expect("a chain").last;
    // In forty days all but the newest entry are too old.
    let later = now() + 40 * 24 * 3600;
    watch::look(&rooms.house, later);
    let log = trail::verify(&store).expect("a chain");
    assert_eq!((log.first, log.last), (last, last + 1));
    let trail = files().into_iter().find(|name| name.starts_with("trail-")).expect("a file");
    let file = SignedTrail::read(&rooms.path("kept").join(trail)).expect("signed");
    assert_eq!(file.organisation(), Some(identity.fingerprint()));
    assert_eq!(file.entries.len() as u64, last);
    rooms.get(&olga, "/audit").says("Those before were written out and taken away.").says("audit.cut");
    // Where it cannot be written nothing is taken away, and who answers for it is told.
    std::fs::remove_file(rooms.path("registry.key")).expect("removed");
    watch::look(&rooms.house, later + 40 * 24 * 3600);
    assert_eq!(trail::verify(&store).expect("a chain"), log);
    rooms.get(&olga, "/").says("registry.key");
}
