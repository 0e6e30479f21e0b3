use super::sessions::SESSIONS;
use super::*;
use crate::reckoned::SaidSizes;
use crate::roles::{Grant, HouseRole};
use crate::secrets::SecretToken;
use std::os::unix::fs::PermissionsExt;

const NOW: u64 = 1_800_000_000;

fn act<'a>(what: &'a str, to: &'a str, at: u64) -> RecordedAct<'a> {
    RecordedAct { by: "olga", what, to, at }
}

/// A store with an account that has a password.
fn with_account(name: &str) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(&folder.path().join("service.db")).expect("opens");
    let grant = Grant { role: HouseRole::Steward, data: Some("a".into()) };
    let link = store.add_account(&act("account added", name, NOW), &[grant]).expect("added").expect("new");
    assert!(
        store.set_password(&act("password", name, NOW), "hash", PasswordRight::Link(&link)).expect("set")
    );
    (folder, store)
}

fn begin(store: &Store, name: &str, at: u64) -> SecretToken {
    store.begin_session(&act("signed in", name, at), "hash", None, false).expect("begins").expect("right")
}

#[test]
fn the_file_is_private_and_keeps_what_it_was_told() {
    let (folder, store) = with_account("ann");
    let path = folder.path().join("service.db");
    let mode = std::fs::metadata(&path).expect("is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = begin(&store, "ann", NOW);
    drop(store);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("set");
    let store = Store::open(&path).expect("opens again");
    assert_eq!(std::fs::metadata(&path).expect("is there").permissions().mode() & 0o777, 0o600);
    let session = store.session(&token, NOW).expect("reads").expect("holds");
    assert_eq!(session.account, "ann");
    assert_eq!(session.grants, [Grant { role: HouseRole::Steward, data: Some("a".into()) }]);
}

#[test]
fn a_session_ends_when_idle_and_in_the_end() {
    let (_folder, store) = with_account("ann");
    let token = begin(&store, "ann", NOW);
    let holds = |at| store.session(&token, at).expect("reads").is_some();
    assert!(holds(NOW + 29 * 60) && holds(NOW + 58 * 60), "used, it goes on");
    assert!(!holds(NOW + 58 * 60 + 30 * 60), "unused, it does not");
    let token = begin(&store, "ann", NOW);
    let used = |at| store.session(&token, at).expect("reads").is_some();
    let minutes = (0..12 * 60 - 1).step_by(20);
    assert!(minutes.map(|minute| NOW + minute * 60).all(used) && !used(NOW + 12 * 3600));
}

#[test]
fn a_password_counts_as_given_for_five_minutes_and_a_cookie_once() {
    let (_folder, store) = with_account("ann");
    let token = begin(&store, "ann", NOW);
    let proven =
        |token: &SecretToken, at| store.session(token, at).expect("reads").map(|session| session.proven);
    assert_eq!((proven(&token, NOW + 299), proven(&token, NOW + 300)), (Some(true), Some(false)));
    let again = act("again", "ann", NOW + 600);
    let next = store.begin_session(&again, "hash", Some(&token), true).expect("begins").expect("right");
    assert_eq!((proven(&token, NOW + 600), proven(&next, NOW + 600)), (None, Some(true)));
    let begun = store.session(&next, NOW + 600).expect("reads").expect("holds").begun;
    assert_eq!(begun, NOW, "it ends no later than the one before");
}

#[test]
fn an_account_has_ten_sessions_at_most() {
    let (_folder, store) = with_account("ann");
    let first = begin(&store, "ann", NOW);
    for later in 1..=SESSIONS {
        begin(&store, "ann", NOW + u64::from(later));
    }
    assert_eq!(store.sessions_of("ann", NOW + 20).expect("reads").len(), 10);
    assert!(store.session(&first, NOW + 20).expect("reads").is_none(), "the oldest made room");
}

#[test]
fn roles_passwords_links_and_the_end_close_sessions() {
    let grant = Grant { role: HouseRole::Viewer, data: None };
    let changes: [&dyn Fn(&Store); 5] = [
        &|store| store.give_role(&act("given", "ann", NOW), &grant).expect("given"),
        &|store| store.take_role(&act("taken", "ann", NOW), &grant).expect("taken"),
        &|store| {
            assert!(
                store
                    .set_password(&act("set", "ann", NOW), "other", PasswordRight::Old("hash"))
                    .expect("set")
            )
        },
        &|store| drop(store.new_link(&act("link", "ann", NOW), None).expect("made").expect("a link")),
        &|store| store.end_account(&act("ended", "ann", NOW)).expect("ended"),
    ];
    for change in changes {
        let (_folder, store) = with_account("ann");
        let token = begin(&store, "ann", NOW);
        change(&store);
        assert!(store.session(&token, NOW).expect("reads").is_none());
    }
}

#[test]
fn a_link_holds_a_day_and_is_used_once() {
    let (_folder, store) = with_account("ann");
    let link = store.new_link(&act("link", "ann", NOW), None).expect("made").expect("a link");
    assert_eq!(store.password_of("ann").expect("reads"), None, "the password until now no longer holds");
    assert!(store.link_is_for(&link, NOW + 24 * 3600).expect("reads").is_none());
    let set =
        |at| store.set_password(&act("set", "ann", at), "new", PasswordRight::Link(&link)).expect("asks");
    assert!(!set(NOW + 24 * 3600), "too late");
    assert!(set(NOW + 60) && !set(NOW + 61), "once");
    let newer = store.new_link(&act("link", "ann", NOW), None).expect("made").expect("a link");
    store.new_link(&act("link", "ann", NOW), None).expect("made").expect("a link");
    assert!(store.link_is_for(&newer, NOW).expect("reads").is_none(), "only the newest holds");
}

#[test]
fn names_are_not_given_twice() {
    let (_folder, store) = with_account("ann");
    assert!(store.add_account(&act("account added", "ann", NOW), &[]).expect("asks").is_none());
    store.end_account(&act("ended", "ann", NOW)).expect("ended");
    assert!(store.add_account(&act("account added", "ann", NOW), &[]).expect("asks").is_none());
    assert!(store.new_link(&act("link", "ann", NOW), None).is_err() && store.account("ann", NOW).is_ok());
}

#[test]
fn wrong_passwords_wait_by_name_and_by_address() {
    let (folder, store) = with_account("ann");
    let wrong = |name: &str, address: &str, at| store.count_wrong(name, address, at).expect("counted");
    let may = |name: &str, address: &str, at| store.may_try(name, Some(address), at).expect("reads");
    for name in ["ann", "nobody"] {
        (0..4).for_each(|_| wrong(name, "10.0.0.1", NOW));
        assert_eq!(may(name, "10.0.0.2", NOW), Allowed::Now);
        wrong(name, "10.0.0.1", NOW);
        assert_eq!(may(name, "10.0.0.2", NOW), Allowed::In(1), "known or not, {name} waits");
        (0..3).for_each(|_| wrong(name, "10.0.0.1", NOW));
        assert_eq!(may(name, "10.0.0.2", NOW), Allowed::In(8));
        (0..9).for_each(|_| wrong(name, "10.0.0.3", NOW));
        assert_eq!(may(name, "10.0.0.2", NOW), Allowed::In(900), "at most a quarter of an hour");
    }
    let acts = store.acts_of("ann", 100).expect("reads");
    assert!(acts.iter().any(|act| act.what.starts_with("wrong password") && act.by == "address 10.0.0.1"));
    assert!(store.acts_of("nobody", 100).expect("reads").is_empty());
    (0..30).for_each(|at| wrong(&format!("n{at}"), "10.9.9.9", NOW));
    assert_eq!(may("someone", "10.9.9.9", NOW), Allowed::In(600));
    assert_eq!(may("someone", "10.9.9.9", NOW + 600), Allowed::Now);
    drop(store);
    let store = Store::open(&folder.path().join("service.db")).expect("opens");
    assert_ne!(
        store.may_try("ann", Some("10.0.0.2"), NOW).expect("reads"),
        Allowed::Now,
        "a restart forgives nothing"
    );
    // A session, begun from a browser with a count of its own, forgives the name nothing.
    begin(&store, "ann", NOW);
    assert_ne!(store.may_try("ann", Some("10.0.0.2"), NOW).expect("reads"), Allowed::Now);
    store.forget_tries("ann").expect("forgotten");
    assert_eq!(store.may_try("ann", Some("10.0.0.2"), NOW).expect("reads"), Allowed::Now);
}

#[test]
fn five_wrong_passwords_within_a_session_end_it() {
    let (_folder, store) = with_account("ann");
    let token = begin(&store, "ann", NOW);
    for times in 1..=5 {
        let session = store.session(&token, NOW).expect("reads").expect("holds");
        store.wrong_within(&session).expect("counted");
        assert_eq!(store.session(&token, NOW).expect("reads").is_none(), times == 5);
    }
    assert_eq!(store.may_try("ann", Some("10.0.0.1"), NOW).expect("reads"), Allowed::Now);
}

#[test]
fn what_was_done_stays() {
    let (folder, store) = with_account("ann");
    store.accept(&act("service.toml accepted", "", NOW), "text", &[7; 32]).expect("accepted");
    assert_eq!(store.accepted().expect("reads").map(|accepted| accepted.text), Some("text".to_owned()));
    let other = rusqlite::Connection::open(folder.path().join("service.db")).expect("opens");
    for sql in [
        "UPDATE audit SET actor = 'x'",
        "DELETE FROM audit",
        "DELETE FROM accepted",
        "UPDATE accepted SET text = ''",
    ] {
        let refused = other.execute(sql, []).expect_err(sql).to_string();
        assert!(refused.contains("never") || refused.contains("only grows"), "{refused}");
    }
    // What whoever audits the organisation checks.
    let log = trail::verify(&other).expect("a chain");
    assert_eq!((log.first, log.last), (1, 3));
}

#[test]
fn what_was_changed_meanwhile_stays_changed() {
    // A sign-in, and a change of the password, that compared with the hash of before.
    let (_folder, store) = with_account("ann");
    let link = store.new_link(&act("link", "ann", NOW), None).expect("made").expect("a link");
    let begun = store.begin_session(&act("signed in", "ann", NOW), "hash", None, false);
    assert!(begun.expect("asks").is_none());
    let set = store.set_password(&act("set", "ann", NOW), "mine", PasswordRight::Old("hash"));
    assert!(!set.expect("asks") && store.link_is_for(&link, NOW).expect("reads").is_some());
    store.rehash("ann", "hash", "hash under other costs").expect("asks");
    assert_eq!(store.password_of("ann").expect("reads"), None);
    // A session that was ended while its person gave the password again.
    let (_folder, store) = with_account("ann");
    let token = begin(&store, "ann", NOW);
    let id = store.session(&token, NOW).expect("reads").expect("holds").id;
    store.end_session(&act("ended a session", "ann", NOW), id).expect("ended");
    let again = store.begin_session(&act("again", "ann", NOW), "hash", Some(&token), true);
    assert!(again.expect("asks").is_none() && store.sessions_of("ann", NOW).expect("reads").is_empty());
}

#[test]
fn a_wrong_password_and_its_line_are_one_transaction() {
    let (folder, store) = with_account("ann");
    (0..4).for_each(|_| store.count_wrong("ann", "10.0.0.1", NOW).expect("counted"));
    let other = rusqlite::Connection::open(folder.path().join("service.db")).expect("opens");
    let full = "CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'full'); END";
    other.execute_batch(full).expect("made");
    assert!(store.count_wrong("ann", "10.0.0.1", NOW).is_err());
    assert_eq!(store.may_try("ann", Some("10.0.0.2"), NOW).expect("reads"), Allowed::Now);
}

#[test]
fn a_data_set_is_no_account() {
    let (_folder, store) = with_account("ann");
    store.keep_check("stella", "ann", NOW, "{}").expect("kept");
    assert!(store.acts_of("ann", 9).expect("reads").iter().all(|act| act.what != "data checked"));
    assert_eq!(store.acts_of("stella", 9).expect("reads")[0].to, "data ann");
}

#[test]
fn what_fails_changes_nothing_and_writes_no_line() {
    let (_folder, store) = with_account("ann");
    let before = store.acts_of("olga", 100).expect("reads").len();
    let refused = store.begin_session(&act("signed in", "nobody", NOW), "hash", None, false);
    assert!(refused.expect("asks").is_none());
    assert_eq!(store.acts_of("olga", 100).expect("reads").len(), before);
}

/// Stores of each version of the layout that a commit of the main branch had, as text.
const FIXTURES: [(i32, &str); 11] = [
    (1, include_str!("fixtures/v1.sql")),
    (2, include_str!("fixtures/v2.sql")),
    (3, include_str!("fixtures/v3.sql")),
    (5, include_str!("fixtures/v5.sql")),
    (6, include_str!("fixtures/v6.sql")),
    (7, include_str!("fixtures/v7.sql")),
    (9, include_str!("fixtures/v9.sql")),
    (10, include_str!("fixtures/v10.sql")),
    (11, include_str!("fixtures/v11.sql")),
    (12, include_str!("fixtures/v12.sql")),
    (13, include_str!("fixtures/v13.sql")),
];

#[test]
fn stores_of_before_are_read_and_brought_up_to_date() {
    let newest = FIXTURES[FIXTURES.len() - 1].0;
    assert_eq!(newest + 1, layout::VERSION, "keep a store of the layout before: sqlite3 service.db .dump");
    for (version, fixture) in FIXTURES {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("service.db");
        rusqlite::Connection::open(&path).and_then(|made| made.execute_batch(fixture)).expect("a fixture");
        let store = Store::open(&path).unwrap_or_else(|e| panic!("version {version}: {e}"));
        let account = store.account("ann", NOW).expect("reads").expect("is there");
        assert_eq!((account.state, account.grants.len()), (AccountState::Active, 1));
        assert_eq!(store.checks_of("a", 9).expect("reads").len(), 1);
        assert_eq!(store.accepted().expect("reads").expect("accepted").by, COMMAND_LINE);
        let acts = store.acts_of("ann", 99).expect("reads");
        let first = acts.last().expect("written down");
        assert_eq!((first.what.as_str(), first.at), ("account added", NOW));
        if version >= 3 {
            studies_of(version, &store);
        }
        if version >= 5 {
            what_people_have(version, &store);
        }
        drop(store);
        Store::open(&path).expect("and again");
        let raw = rusqlite::Connection::open(&path).expect("opens");
        let log = trail::verify(&raw).expect("a chain");
        assert!(log.last == 1 || version > 1, "{log:?}");
        assert_eq!(schema(&raw), schema(&Store::open(&folder.path().join("new")).expect("made").lock()));
    }
}

/// Tables with their columns, indices and triggers: a store that was brought up to date is as a new one.
fn schema(connection: &rusqlite::Connection) -> Vec<String> {
    let sql = "SELECT o.type || ' ' || o.name || ' ' || coalesce((SELECT group_concat(c.name || ' ' || \
               c.type || ' ' || c.\"notnull\" || ' ' || coalesce(c.dflt_value, '-')) \
               FROM pragma_table_info(o.name) AS c), '') FROM sqlite_schema AS o ORDER BY o.type, o.name";
    let mut select = connection.prepare(sql).expect("reads");
    let rows = select.query_map([], |row| row.get(0)).expect("reads");
    rows.collect::<Result<_, _>>().expect("reads")
}

/// One study that was answered, and one that is open.
fn studies_of(version: i32, store: &Store) {
    let rows = store.list(&ProposalFilter::default(), None).expect("reads");
    let [open, answered] = &rows[..] else { panic!("version {version}: {} studies", rows.len()) };
    for row in [open, answered] {
        let record = store.standing(&row.id).expect("reads").expect("is there");
        assert_eq!(record.study(), row.study, "what was signed is read and checked");
    }
    let record = store.standing(&answered.id).expect("reads").expect("is there");
    let own = store.own_consent(&answered.id).expect("reads").expect("consented");
    let terms = record.terms(record.proposer()).expect("consented");
    assert!(own.lineage.is_none() && own.opens(&terms.data), "consents of before bind the data alone");
    let taken = (version >= 11).then_some([9; 32]);
    // Of data that were taken the name was not kept: they are taken once more.
    let seen = if (7..11).contains(&version) { [0; 32] } else { [3; 32] };
    assert_eq!((own.taken, own.version), (taken, seen), "version {version}");
    let runs = store.runs(&answered.id).expect("reads");
    assert_eq!(runs[0].outcome.as_deref(), Some("answered"));
    assert_eq!(store.lines(&answered.id, 1, 0, 9).expect("reads").len(), 1);
    assert_eq!(store.computed_runs(&answered.id).expect("reads"), 1, "its lines say so");
    let report = store.report_file(&answered.id, "report.json").expect("reads").expect("is there");
    assert_eq!(&report.content[..], b"{}");
    assert!(store.own_consent(&open.id).expect("reads").is_none());
    assert_eq!(store.is_unheard(&open.id).expect("reads"), version >= 7);
    let asked = store.request(&open.id, NOW).expect("reads");
    let lineage = (version >= 12).then(|| "trial".to_owned());
    assert_eq!(asked.map(|asked| (asked.own.lineage, asked.days)), (version >= 9).then_some((lineage, 30)));
    assert_eq!(store.sizes_said(&open.id).expect("reads"), SaidSizes::default());
    // Who agreed before it was kept to what agrees again.
    assert_eq!(store.approvals(&open.id, NOW).expect("reads").len(), usize::from(version >= 6));
}

/// What people have beside what organisations say.
fn what_people_have(version: i32, store: &Store) {
    let rows = store.list(&ProposalFilter::default(), None).expect("reads");
    assert_eq!(store.drafts("ann").expect("reads")[0].title, "A draft");
    assert_eq!(store.given_to(&rows[1].id).expect("reads"), ["vic"]);
    let weighed = store.weighed(&rows[0].id).expect("reads").expect("is there");
    assert_eq!((&*weighed.1, &*weighed.2), ("a", "too few rows"));
    let paused = if version >= 9 { ("ann".to_owned(), true) } else { (String::new(), false) };
    assert_eq!(store.paused_by("clinic").expect("reads"), Some(paused));
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        store.lock().query_row(&sql, [], |row| row.get::<_, u32>(0)).expect("reads")
    };
    assert_eq!(["confirmations", "recovery", "copies"].map(count), [1; 3]);
    let tokens = store.tokens_of(Some("ann")).expect("reads");
    assert_eq!(
        tokens.iter().map(|token| token.name.as_str()).collect::<Vec<_>>(),
        match version {
            10.. => vec!["night"],
            _ => Vec::new(),
        }
    );
}

#[test]
fn other_files_and_newer_stores_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(
        path("text"),
        "this is no database, and long enough to be taken for a header of one\n".repeat(9),
    )
    .expect("written");
    let refused = Store::open(&path("text")).err().expect("refused").to_string();
    assert!(refused.contains("no store of a service"), "{refused}");
    let other = rusqlite::Connection::open(path("other")).expect("made");
    other.execute_batch("CREATE TABLE t (x)").expect("made");
    let refused = Store::open(&path("other")).err().expect("refused").to_string();
    assert!(refused.contains("no store of a service"), "{refused}");
    drop(Store::open(&path("newer")).expect("made"));
    let newer = rusqlite::Connection::open(path("newer")).expect("opens");
    newer.pragma_update(None, "user_version", 1_000).expect("set");
    let refused = Store::open(&path("newer")).err().expect("refused").to_string();
    assert!(refused.contains("written by a newer tacit"), "{refused}");
}
