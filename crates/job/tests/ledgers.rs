//! Privacy ledgers against a party that leaves, forgets or rewrites, and the cut-and-choose of noise that
//! they keep: two parties in two threads, TLS on loopback, real files.

mod pair;

use base::Error;
use job::run::{Event, Watch, run};
use pair::parties::PartyFile;
use pair::{both, whole};
use privacy::ledger::{Ledger, PeerLineage, check_signatures};
use release::rational::ratio;
use report::RunReport;
use rusqlite::Connection;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use study::party::PartySetup;
use tempfile::TempDir;

/// A viewer, and the drawer of its noise; studies that differ in their titles.
struct World(pair::World);

impl Deref for World {
    type Target = pair::World;

    fn deref(&self) -> &pair::World {
        &self.0
    }
}

impl World {
    fn new() -> Self {
        Self::with_budget("5")
    }

    /// Of both parties, towards the other.
    fn with_budget(budget: &'static str) -> Self {
        let noise = "[release]\nnoise = \"cut-and-choose\"\n";
        let study = |keys: &[String; 2]| pair::example(keys).replace("[release]\n", noise);
        Self(pair::World { budget, ..pair::World::of(study) })
    }

    fn parties(&self, title: &str) -> [PartySetup; 2] {
        self.parties_of(&pair::titled(&self.study, title))
    }

    fn run(&self, title: &str) -> [Result<RunReport, Error>; 2] {
        both(&self.parties(title), &Watch::none())
    }

    /// A run in which the drawer, whose program is modified, leaves as soon as it knows the index.
    fn leave(&self, title: &str) -> [String; 2] {
        drop(self.ledger(1));
        let leave = "CREATE TRIGGER leave BEFORE INSERT ON transcripts WHEN NEW.side = 'drawer' AND \
                     NEW.stage = 3 BEGIN SELECT RAISE(ABORT, 'gone'); END";
        self.raw(1).execute_batch(leave).unwrap();
        let errors = texts(self.run(title));
        self.raw(1).execute_batch("DROP TRIGGER leave").unwrap();
        errors
    }

    /// The drawer begins with a new ledger and other data.
    fn forget(&self, more: u32) {
        std::fs::remove_file(self.path("works.ledger")).unwrap();
        self.data_of_works(more);
    }

    fn allow(&self, party: usize) {
        let mut ledger = self.ledger(party);
        let peer = ledger.peer_by(&self.keys[1 - party][..20]).unwrap();
        assert_eq!(peer, self.keys[1 - party]);
        ledger.allow(&peer, None, "looked into").unwrap();
    }
}

/// A watch, and the notes that it hears.
fn listening() -> (Watch, Arc<Mutex<Vec<String>>>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let heard = notes.clone();
    let note = move |event| {
        if let Event::Note(text) = event {
            heard.lock().unwrap().push(text);
        }
    };
    (Watch { events: Arc::new(note), ..Watch::none() }, notes)
}

fn texts(done: [Result<RunReport, Error>; 2]) -> [String; 2] {
    done.map(|done| done.map(|_| ()).expect_err("it must not run").to_string())
}

/// M1 of the review of releases: with files, not with constant tags.
#[test]
fn a_drawer_that_left_is_barred_whatever_it_changes() {
    let world = World::new();
    world.leave("first");
    // The same again; a row more; another study; its ledger deleted.
    for (title, change) in [("first", 0), ("first", 1), ("second", 2)] {
        world.data_of_works(change);
        let [clinic, works] = texts(world.run(title));
        assert!(clinic.contains("are barred (silence after the noise index was named"), "{clinic}");
        let command = format!("clinic.ledger {} --lineage data-clinic --reason", world.keys[1]);
        assert!(clinic.contains("tacit ledger allow") && clinic.contains(&command), "{clinic}");
        assert!(works.contains("the index of a release's noise was named on"), "{works}");
    }
    for title in ["first", "third"] {
        world.forget(7);
        let [clinic, works] = texts(world.run(title));
        assert!(clinic.contains("the ledger of works went back from"), "{clinic}");
        assert!(works.contains("clinic holds a statement that this party signed on"), "{works}");
    }
    // Its operator goes on without what it lost: the bar at the clinic holds all the same.
    world.forget(8);
    let mut parties = world.parties("first");
    parties[1].new_ledger = true;
    let [clinic, works] = texts(both(&parties, &Watch::none()));
    assert!(clinic.contains("the ledger of works went back from"), "{clinic}");
    assert!(works.contains("the peer's privacy ledger does not allow this study"), "{works}");
    let ledger = world.ledger(0);
    let count = ledger.broken_off(&world.keys[1]).unwrap();
    assert_eq!((count.releases, count.after_index), (1, 1));
    assert!(ledger.answers().unwrap().is_empty());
}

/// The review's fourteen runs in a row, none of which an operator looked at: no answer came of them.
#[test]
fn thirteen_times_and_never_an_answer() {
    let world = World::new();
    world.leave("study");
    for more in 1..13 {
        world.forget(more);
        let mut parties = world.parties("study");
        parties[1].new_ledger = true;
        let [clinic, _] = texts(both(&parties, &Watch::none()));
        assert!(clinic.contains("tacit ledger allow"), "{clinic}");
    }
    assert!(world.ledger(0).answers().unwrap().is_empty());
    assert!(world.ledger(1).answers().unwrap().is_empty());
}

/// The viewer's operator alone ends what the drawer began by leaving, although that side has done nothing but
/// forget.
#[test]
fn one_operator_suffices_for_its_own_side() {
    let world = World::new();
    whole(world.run("before"));
    world.leave("study");
    world.forget(1);
    texts(world.run("study"));
    world.allow(0);
    let (watch, notes) = listening();
    let mut parties = world.parties("study");
    parties[1].new_ledger = true;
    let [clinic, works] = whole(both(&parties, &watch));
    let text = "1 release with works broke off, 1 after the noise index was named";
    assert_eq!(clinic.broke_off.iter().map(|count| count.text()).collect::<Vec<_>>(), [text]);
    assert!(notes.lock().unwrap().iter().any(|note| note == text), "{notes:?}");
    assert!(works.broke_off.is_empty());
    assert!(clinic.warnings.iter().any(|w| w.contains("the ledger of works went back from")));
    for shown in
        [report::summary::terminal(&clinic, report::summary::USUAL_COLUMNS), report::html::render(&clinic)]
    {
        assert!(shown.replace("\n  ", " ").contains(text), "{shown}");
    }
}

/// A drawer with modified software leaves once the seeds are exchanged, and names a later attempt of the same
/// release each time: every attempt is other noise, so the third asks the viewer's operator.
#[test]
fn attempts_of_one_release_are_no_free_draws() {
    let world = World::new();
    drop(world.ledger(1));
    let leave = "CREATE TRIGGER leave BEFORE INSERT ON transcripts WHEN NEW.side = 'drawer' AND NEW.stage = \
                 1 BEGIN SELECT RAISE(ABORT, 'gone'); END";
    world.raw(1).execute_batch(leave).unwrap();
    for attempt in 1..3 {
        let [clinic, _] = texts(world.run("study"));
        assert!(!clinic.contains("barred"), "{clinic}");
        let sql = "SELECT release FROM transcripts LIMIT 1";
        let release: [u8; 32] = world.raw(1).query_row(sql, [], |row| row.get(0)).unwrap();
        world.ledger(1).begin_attempt(&release, attempt, &world.keys[0]).unwrap();
    }
    world.raw(1).execute_batch("DROP TRIGGER leave").unwrap();
    let [clinic, _] = texts(world.run("study"));
    assert!(clinic.contains("2 attempts at releases stopped after the seeds"), "{clinic}");
    world.allow(0);
    whole(world.run("study"));
}

/// Both are cut when the viewer has its outputs and neither has its answer: the rerun costs nothing, though
/// the budget does not pay a second time.
#[test]
fn outputs_that_are_kept_are_not_paid_again() {
    let world = World::with_budget("0.11");
    let cut = "CREATE TRIGGER cut BEFORE INSERT ON answers BEGIN SELECT RAISE(ABORT, 'gone'); END";
    for party in [0, 1] {
        drop(world.ledger(party));
        world.raw(party).execute_batch(cut).unwrap();
    }
    texts(world.run("study"));
    for party in [0, 1] {
        world.raw(party).execute_batch("DROP TRIGGER cut").unwrap();
    }
    whole(world.run("study"));
    let entries = world.ledger(1).entries().unwrap();
    assert_eq!(
        entries.iter().filter(|e| e.delta == "0").map(|e| (e.attempt, &*e.rho)).collect::<Vec<_>>(),
        [(0, "0.1")]
    );
    let attempts = world.raw(1).query_row("SELECT count(*) FROM attempts", [], |row| row.get::<_, i64>(0));
    assert_eq!(attempts.unwrap(), 0);
}

/// After a crash of both each operator allows for its own side; the new attempt is charged again at the side
/// that protects.
#[test]
fn a_new_attempt_is_agreed_on_and_charged_again() {
    let world = World::new();
    world.leave("study");
    world.allow(0);
    let [_, works] = texts(world.run("study"));
    assert!(works.contains("works.ledger") && works.contains("tacit ledger allow"), "{works}");
    world.allow(1);
    whole(world.run("study"));
    let entries = world.ledger(1).entries().unwrap();
    let charged: Vec<_> = entries.iter().filter(|e| e.delta == "0").map(|e| (e.attempt, &*e.rho)).collect();
    assert_eq!(charged, [(0, "0.1"), (1, "0.1")]);
    assert_eq!(entries[entries.len() - 1].release, entries[entries.len() - 2].release);
    // Now it is an answer like any other.
    assert!(whole(world.run("study")).iter().all(|report| report.stored));
}

/// The peer names a ledger that was put back from an older copy, with both counts; what it signed itself
/// leads back.
#[test]
fn an_older_copy_is_named_and_recovered() {
    let world = World::new();
    whole(world.run("first"));
    let totals = world.ledger(1).totals().unwrap();
    assert_eq!((&*totals[0].rho, &*totals[0].total.sizes), ("0.11", "1/100"));
    let copy = world.path("copy.ledger");
    world.ledger(1).backup(&copy).unwrap();
    whole(world.run("second"));
    whole(world.run("third"));
    let newest = world.path("newest.ledger");
    world.ledger(1).backup(&newest).unwrap();
    let count = world.ledger(1).chain(&world.keys[0]).unwrap().count;
    std::fs::copy(&copy, world.path("works.ledger")).unwrap();
    let old = world.ledger(1).chain(&world.keys[0]).unwrap().count;
    let [clinic, works] = texts(world.run("fourth"));
    assert!(clinic.contains("the ledger of works went back from"), "{clinic}");
    assert!(
        clinic.contains(&format!("to {old}: it was made anew or put back from an older copy")),
        "{clinic}"
    );
    assert!(works.contains("clinic holds a statement that this party signed on"), "{works}");
    // Both operators read the same count.
    assert!(works.contains(&format!("works.ledger has {old} and is not that ledger")), "{works}");
    // A check refuses as a run does, as long as nobody knows better.
    let stands = |title: &str| {
        let [clinic, _] = world.parties(title);
        let refusals = job::budget::outlook(&clinic, &job::run::check(&clinic).unwrap()).unwrap().refusals;
        let bars = world.ledger(0).bars().unwrap();
        assert_eq!(refusals.is_empty(), !bars.iter().any(|bar| bar.stands), "{refusals:?}, {bars:?}");
        (bars.len(), refusals.join("; "))
    };
    let (bars, refusal) = stands("fourth");
    assert_eq!(bars, 1);
    assert!(refusal.starts_with("the ledger of works went back from"), "{refusal}");
    assert!(refusal.contains(&format!(" to {old}: ")) && refusal.contains("tacit ledger allow"), "{refusal}");
    for way in ["Put the newest copy back", "tacit ledger recover", "--new-ledger"] {
        assert!(works.contains(way), "{works}");
    }
    // It is said again without meeting anybody.
    let again = run(&world.parties("fourth")[1], &Watch::none()).unwrap_err().to_string();
    assert!(again.contains("clinic holds a statement"), "{again}");
    // The first way out.
    std::fs::copy(&newest, world.path("works.ledger")).unwrap();
    assert!(world.ledger(1).chain(&world.keys[0]).unwrap().count == count);
    whole(world.run("fourth"));
    assert_eq!(stands("fifth"), (1, String::new()));
    // The second: the clinic's operator is not needed. It signed for three studies, and the fourth was begun
    // after that.
    std::fs::copy(&copy, world.path("works.ledger")).unwrap();
    let [_, works] = texts(world.run("fifth"));
    assert!(works.contains("tacit ledger recover"), "{works}");
    let mut ledger = world.ledger(1);
    let spent = ledger.spent("data-works", &world.keys[0]).unwrap();
    let recovered = ledger.recover(None, None).unwrap();
    assert_eq!((recovered.len(), &*recovered[0].lineage), (1, "data-works"));
    assert!(
        recovered[0].barred && ledger.spent("data-works", &world.keys[0]).unwrap() > &spent * ratio(2, 1)
    );
    ledger.verify().unwrap();
    let signed = check_signatures(&ledger.entries().unwrap(), &ledger.signatures().unwrap()).unwrap();
    assert_eq!((signed.recovered, signed.sizes), (1, 1), "{signed:?}");
    // A statement does not say on which lineage: all wait for the operator, who may look at one.
    let on = |lineage: &str| PeerLineage { peer: world.keys[0].clone(), lineage: lineage.into() };
    assert!(ledger.barred(&on("another"), &[]).unwrap().is_some());
    let [clinic, works] = texts(world.run("fifth"));
    assert!(
        works.contains("recovered from a statement of") && !clinic.contains("went back"),
        "{works}, {clinic}"
    );
    ledger.allow(&world.keys[0], Some("another"), "looked").unwrap();
    let bar = ledger.bars().unwrap().pop().unwrap();
    assert!(bar.stands && bar.lineage.is_empty() && bar.allowed == ["another"], "{bar:?}");
    world.allow(1);
    assert!(!ledger.bars().unwrap().iter().any(|bar| bar.stands));
    whole(world.run("fifth"));
    assert!(world.ledger(1).recover(None, None).unwrap_err().to_string().contains("nothing to recover"));
}

/// What was spent is known from reports: it is charged, and nothing is barred.
#[test]
fn what_the_operator_says_was_spent_is_charged() {
    let world = World::new();
    whole(world.run("first"));
    whole(world.run("second"));
    std::fs::remove_file(world.path("works.ledger")).unwrap();
    texts(world.run("third"));
    let mut ledger = world.ledger(1);
    assert!(ledger.recover(None, Some(&ratio(1, 1))).unwrap_err().to_string().contains("--lineage"));
    let recovered = ledger.recover(Some("data-works"), Some(&ratio(7, 10))).unwrap();
    assert!(!recovered[0].barred && recovered[0].charged == "0.7", "{recovered:?}");
    assert_eq!(ledger.spent("data-works", &world.keys[0]).unwrap(), ratio(7, 10));
    drop(ledger);
    whole(world.run("third"));
}

/// M4 of the review: debits made cheaper by another program. The party's own run stops, and its peer names
/// it.
#[test]
fn a_rewritten_ledger_is_named_on_both_sides() {
    let world = World::new();
    whole(world.run("first"));
    whole(world.run("second"));
    let cheaper = "INSERT OR REPLACE INTO debits SELECT row, at, release, attempt, lineage, viewer, peer, \
                   study, my_tag, \
                   peer_tag, '1/1000000', budget, protects, delta, tau, period, period_budget FROM debits";
    world.raw(1).execute_batch(cheaper).unwrap();
    let [clinic, works] = texts(world.run("third"));
    assert!(clinic.contains("the ledger of works was rewritten: entry"), "{clinic}");
    assert!(works.contains("was changed by another program: row"), "{works}");
    // It is said again without meeting anybody, in whatever words.
    let again = run(&world.parties("third")[1], &Watch::none()).unwrap_err().to_string();
    assert!(again.contains("clinic holds a statement"), "{again}");
}

/// What is allowed on one lineage leaves what was noticed on another.
#[test]
fn an_allowance_is_for_its_lineage() {
    let world = World::new();
    whole(world.run("first"));
    world.forget(1);
    let mut parties = world.parties("second");
    parties[1].new_ledger = true;
    texts(both(&parties, &Watch::none()));
    let mut ledger = world.ledger(0);
    let another = PeerLineage { peer: world.keys[1].clone(), lineage: "another".into() };
    ledger.bar(&[7; 32], &another, "silence").unwrap();
    assert_eq!(ledger.allow(&world.keys[1], Some("another"), "looked into").unwrap().len(), 1);
    assert!(ledger.noticed(&world.keys[1]).unwrap().is_empty());
    let [clinic, _] = texts(both(&parties, &Watch::none()));
    assert!(clinic.contains("the ledger of works went back from"), "{clinic}");
    assert_eq!(ledger.allow(&world.keys[1], Some("data-clinic"), "looked into").unwrap().len(), 1);
    whole(both(&parties, &Watch::none()));
    assert_eq!(ledger.noticed(&world.keys[1]).unwrap().len(), 1);
}

/// What both operators had reopened under layout 2 is allowed, and what they had not is barred.
#[test]
fn what_was_reopened_in_an_older_file_stays_allowed() {
    let folder = TempDir::new().unwrap();
    let fixture =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../privacy/tests/fixtures/layout-2/adv-ledger.db");
    let barred = |reopened: bool| {
        let path = folder.path().join(format!("{reopened}.ledger"));
        std::fs::copy(&fixture, &path).unwrap();
        let raw = Connection::open(&path).unwrap();
        let sql = "SELECT release, viewer FROM debits WHERE protects = 1 ORDER BY row DESC LIMIT 1";
        let of = |row: &rusqlite::Row<'_>| Ok((row.get::<_, [u8; 32]>(0)?, row.get::<_, String>(1)?));
        let (release, peer) = raw.query_row(sql, [], of).unwrap();
        raw.execute(
            "INSERT INTO bars (at, release, attempt, reason) VALUES (1, ?1, 0, 'silence')",
            [release],
        )
        .unwrap();
        if reopened {
            raw.execute("INSERT INTO reopened VALUES (?1, 0, 2, 'both agreed')", [release]).unwrap();
        }
        drop(raw);
        let ledger = Ledger::open(&path).unwrap();
        ledger.verify().unwrap();
        ledger.barred(&PeerLineage { peer, lineage: "lin-adv".into() }, &[]).unwrap()
    };
    assert_eq!(barred(true), None);
    assert_eq!(barred(false).as_deref(), Some("silence"));
}

/// A mistyped path is not a new budget.
#[test]
fn a_new_ledger_is_announced_and_asked_for_where_there_was_one() {
    let world = World::new();
    let parties = world.parties("study");
    let (watch, notes) = listening();
    let [_, works] = whole(both(&parties, &watch));
    let mut said = notes.lock().unwrap().clone();
    said.sort();
    let line = |name: &str| {
        let path = world.path(name);
        format!("a new privacy ledger was made at {}: what was spent before is not in it", path.display())
    };
    assert_eq!(said, [line("clinic.ledger"), line("works.ledger")]);
    std::fs::create_dir(world.path("out-works")).unwrap();
    let report = world.path("out-works/report.json");
    std::fs::write(&report, report::to_json(&works).unwrap()).unwrap();
    let mut party = parties[1].clone();
    party.ledger = world.path("typo.ledger");
    let error = run(&party, &Watch::none()).unwrap_err().to_string();
    assert!(error.contains("there is no ledger at") && error.contains("add --new-ledger"), "{error}");
    assert!(error.contains(&report.display().to_string()), "{error}");
    assert!(error.contains("take over what peers keep of it: tacit ledger recover"), "{error}");
    assert!(!world.path("typo.ledger").exists());
    // The report of another party says nothing of this one.
    let other = report::RunReport { party: "others".into(), ..works };
    std::fs::write(&report, report::to_json(&other).unwrap()).unwrap();
    let mut parties = world.parties("study");
    parties[1].ledger = world.path("typo.ledger");
    let [_, works] = texts(both(&parties, &Watch::none()));
    assert!(works.contains("clinic holds a statement that this party signed"), "{works}");
}

/// A lost ledger beside the report of an earlier run: who goes on with a new one hears that it is this the
/// peer refuses; an empty one that `tacit ledger recover` made takes over what the peer gives back.
#[test]
fn a_lost_ledger_is_recovered_beside_a_report() {
    let world = World::new();
    let [_, works] = whole(world.run("first"));
    std::fs::create_dir_all(world.path("out-works")).unwrap();
    std::fs::write(world.path("out-works/report.json"), report::to_json(&works).unwrap()).unwrap();
    let lose = || std::fs::remove_file(world.path("works.ledger")).unwrap();
    lose();
    let mut parties = world.parties("second");
    parties[1].new_ledger = true;
    let [_, works] = texts(both(&parties, &Watch::none()));
    assert!(works.contains("because this party's ledger is another one"), "{works}");
    assert!(works.contains("move this ledger away, then tacit ledger recover"), "{works}");
    lose();
    drop(world.ledger(1));
    let [_, works] = texts(world.run("second"));
    assert!(works.contains("clinic holds a statement that this party signed"), "{works}");
    let recovered = world.ledger(1).recover(Some("data-works"), Some(&ratio(1, 2))).unwrap();
    assert_eq!(recovered.len(), 1);
    let [clinic, works] = whole(world.run("second"));
    // Its own ledger does not know all of it any more, and whoever quotes the total reads that.
    let total = works.privacy.total.as_ref().unwrap();
    let text = report::wording::charged_to(&works, total);
    assert!(text.contains("since its ledger was recovered on 20") && text.contains("do not quote"), "{text}");
    assert!(works.own_warnings.iter().any(|warning| warning.contains("runs before are not in it")));
    assert_eq!(clinic.privacy.total.as_ref().unwrap().since, None);
}

/// Two parties whose ledgers a version of layout 2 wrote find the answer of then, although tags are others
/// now.
#[test]
fn an_answer_of_an_older_version_is_found() {
    let folder = TempDir::new().unwrap();
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../privacy/tests/fixtures/layout-2");
    let to = |name: &str| folder.path().join(name);
    // Person i: arm by i % 2, seen on day 100 + i % 50; every third has an outcome.
    let rows = |header: &str, lines: &mut dyn Iterator<Item = String>| {
        std::iter::once(header.to_owned()).chain(lines).map(|line| line + "\n").collect::<String>()
    };
    let mut lines = (0..2400).map(|i| format!("u{i},{},{}", ["t", "c"][i % 2], 100 + i % 50));
    std::fs::write(to("pub.csv"), rows("id,arm,seen", &mut lines)).unwrap();
    let mut lines = (0..3000).step_by(3).map(|i| format!("u{i},{},{}", 200 + i % 100, 1 + i % 7));
    std::fs::write(to("adv.csv"), rows("id,at,amount", &mut lines)).unwrap();
    std::fs::copy(fixtures.join("study.toml"), to("study.toml")).unwrap();
    let at = base::free_address().unwrap();
    let sides = [("pub", format!("listen = \"{at}\"")), ("adv", format!("peer = \"{at}\""))];
    let parties = sides.map(|(name, side)| {
        std::fs::copy(fixtures.join(format!("{name}-ledger.db")), to(&format!("{name}.ledger"))).unwrap();
        let key = to(&format!("{name}.key"));
        std::fs::copy(fixtures.join(format!("{name}-key.pem")), &key).unwrap();
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let lines = format!("{side}\nlineage = \"lin-{name}\"\ndeadline = \"20s\"");
        let file = PartyFile::owner(folder.path(), name).with(&lines).policy("candidates = 4");
        file.settings().complete().unwrap()
    });
    let reports = whole(both(&parties, &Watch::none()));
    assert!(reports.iter().all(|report| report.stored));
    for name in ["pub", "adv"] {
        assert_eq!(Ledger::open(&to(&format!("{name}.ledger"))).unwrap().entries().unwrap().len(), 3);
    }
    // With other data at one side there is no such answer, and the study is run and charged.
    let data = std::fs::read_to_string(to("adv.csv")).unwrap();
    std::fs::write(to("adv.csv"), data + "newcomer,300,1\n").unwrap();
    let reports = whole(both(&parties, &Watch::none()));
    assert!(reports.iter().all(|report| !report.stored));
    let ledger = Ledger::open(&to("pub.ledger")).unwrap();
    assert_eq!(ledger.entries().unwrap().iter().filter(|e| e.rho == "0.1").count(), 4);
}

/// The viewer begins several studies with one peer at once; the drawer, modified, leaves each after the
/// seeds. Bars that are asked for at the beginning alone would be too late.
#[test]
fn runs_begun_together_are_no_free_tries() {
    let world = World::new();
    whole(world.run("warm"));
    let leave = "CREATE TRIGGER leave BEFORE INSERT ON transcripts WHEN NEW.side = 'drawer' AND NEW.stage = \
                 1 BEGIN SELECT RAISE(ABORT, 'gone'); END";
    world.raw(1).execute_batch(leave).unwrap();
    let all: Vec<[PartySetup; 2]> = (0..5)
        .map(|i| {
            let mut parties = world.parties(&format!("study {i}"));
            let study = world.path(&format!("study-{i}.toml"));
            std::fs::copy(world.path("study.toml"), &study).unwrap();
            for party in &mut parties {
                party.study.clone_from(&study);
                party.report = world.path(&format!("out-{i}-{}", party.as_party));
            }
            parties
        })
        .collect();
    std::thread::scope(|scope| {
        all.iter().for_each(|parties| _ = scope.spawn(|| texts(both(parties, &Watch::none()))));
    });
    let sql = "SELECT count(*) FROM (SELECT release FROM transcripts AS t WHERE side = 'checker' AND NOT \
               EXISTS (SELECT 1 FROM outputs WHERE outputs.release = t.release) GROUP BY release HAVING \
               max(stage) >= 1)";
    let seeded: u32 = world.raw(0).query_row(sql, [], |row| row.get(0)).unwrap();
    assert!(seeded <= 2, "{seeded} noises to choose from");
}

/// The command that takes a peer's new ledger lifts bars as well, so the refusal says which, and it is for
/// one lineage.
#[test]
fn a_changed_ledger_is_refused_with_what_else_is_barred() {
    let world = World::new();
    whole(world.run("warm"));
    world.leave("first");
    world.forget(1);
    let mut parties = world.parties("second");
    parties[1].new_ledger = true;
    let [clinic, _] = texts(both(&parties, &Watch::none()));
    assert!(clinic.contains("went back from") && clinic.contains("No row was sent"), "{clinic}");
    assert!(clinic.contains("barred as well, and this would lift that: silence"), "{clinic}");
    assert!(clinic.contains(&format!("{} --lineage data-clinic --reason", world.keys[1])), "{clinic}");
    let lifted = world.ledger(0).allow(&world.keys[1], Some("data-clinic"), "looked into").unwrap();
    assert_eq!(lifted.len(), 2, "{lifted:?}");
    assert!(lifted[0].contains("silence after the noise index was named"), "{lifted:?}");
    assert!(lifted[1].contains("went back from"), "{lifted:?}");
}

/// After an honest loss this ledger does not know what the recovered data look like: another name is asked
/// about.
#[test]
fn a_recovered_lineage_is_not_renamed_in_silence() {
    let world = World::new();
    world.data_of_works(60);
    whole(world.run("first"));
    std::fs::remove_file(world.path("works.ledger")).unwrap();
    std::fs::remove_dir_all(world.path("out-works")).ok();
    texts(world.run("second"));
    world.ledger(1).recover(Some("data-works"), Some(&ratio(7, 10))).unwrap();
    let mut works = world.parties("third").into_iter().nth(1).unwrap();
    works.lineage = Some("dated".into());
    let error = run(&works, &Watch::none()).unwrap_err().to_string();
    assert!(error.contains("does not know what the data of lineage data-works look like"), "{error}");
    assert!(error.contains("use lineage = \"data-works\"") && error.contains("--new-lineage"), "{error}");
}

/// What was charged is not taken again while the data stay; when one side's change, both hear that it is
/// another release.
#[test]
fn changed_data_are_another_release_and_that_is_said() {
    let world = World::new();
    let charged = || {
        let works = &world.parties("study")[1];
        let checked = job::run::check(works).unwrap();
        job::budget::outlook(works, &checked).unwrap().towards.remove(0)
    };
    let before = charged();
    assert_eq!(before.charged, "0");
    whole(world.run("study"));
    assert_eq!(charged().charged, before.takes);
    world.data_of_works(1);
    assert_eq!(charged().charged, "0");
    let reports = whole(world.run("study"));
    let [clinic, works] = [
        "the data of works are not those that this study was charged for before, or the ledger of works, \
         which names them, was made anew",
        "these data are not those that this study was charged for before: this is another release",
    ];
    for (report, text) in reports.iter().zip([clinic, works]) {
        let said = &report.own_warnings;
        assert!(said.iter().any(|warning| warning.starts_with(text)), "{said:?}");
        assert!(!report.warnings.iter().any(|warning| warning.contains("charged for before")));
    }
}
