//! Who begins runs, with a store of another organisation and no link between them.

use super::*;
use crate::agree::{AgreeOrder, agree};
use crate::store::OwnConsent;
use crate::web::tests::Pair;
use crate::web::tests::serving::served;
use crate::weigh::{WeighedCharge, WeighedStudy};
use privacy::ledger::{Debit, Ledger};
use release::rational::{Rational, ratio};
use statements::{ChargeBound, ClosingCode, ClosingReason, Naming, ProposalId, ProposalState, ProposedStudy};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU8;

mod loose;
mod waits;

#[test]
fn a_port_that_is_in_use_is_not_offered() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    assert_eq!(free_port(port..=port, &[], "127.0.0.1"), None, "another program has it");
    drop(listener);
    assert_eq!(free_port(port..=port, &[port], "127.0.0.1"), None, "a run has it");
}

#[test]
fn each_failure_waits_longer_than_the_one_before() {
    let row = |outcome: Option<&str>| RunRow {
        proposal: ProposalId([1; 16]),
        run: 1,
        port: 0,
        made_ms: 0,
        begun_ms: None,
        ended_ms: None,
        outcome: outcome.map(str::to_owned),
        kind: None,
        code: None,
        message: None,
    };
    let next = |outcomes: &[&str]| {
        let over = outcomes.iter().map(|outcome| row(Some(outcome)));
        next_try(&over.chain([row(None)]).collect::<Vec<_>>(), 0) / 1_000
    };
    assert_eq!(next(&[]), 2);
    assert_eq!(next(&["failed"]), 60);
    assert_eq!(next(&["failed", "answered"]), 2);
    assert_eq!(next(&["failed"; 9]), 7_200);
}

fn row(pair: &Pair, id: &ProposalId) -> ProposalRow {
    pair.house.store().proposal(id).expect("reads").expect("there")
}

fn words(pair: &Pair, id: &ProposalId) -> String {
    let record = pair.house.store().standing(id).expect("reads").expect("there");
    record.state_words(Naming(&["a".into(), "b".into()]))
}

/// The sizes of one match of the study: rho and delta.
fn sizes(pair: &Pair, id: &ProposalId) -> [Rational; 2] {
    let record = pair.house.store().standing(id).expect("reads").expect("there");
    let file = StudyFile::parse("the study", &record.proposed().text).expect("a study");
    let charge = privacy::dummies::charge(file.first(), base::PartyId(0)).expect("priced").expect("dummies");
    [charge.rho, charge.delta]
}

/// What the ledger books for one match.
fn debit(pair: &Pair, id: &ProposalId, release: u8) -> Debit {
    let [rho, delta] = sizes(pair, id);
    let peer = pair.peer.fingerprint().to_string();
    Debit {
        lineage: "trial".into(),
        viewer_key: peer.clone(),
        peer_key: peer,
        study: *row(pair, id).study.as_bytes(),
        my_tag: [2; 32],
        peer_tag: [3; 32],
        release_id: [release; 32],
        rho,
        budget: ratio(10, 1),
        total: None,
        period: None,
        delta,
        most_delta: ratio(1, 1),
        tau: ratio(0, 1),
        agreed: None,
        protects: true,
    }
}

/// Both consent to one release of rho 0.1 and the sizes of one match.
fn consented(pair: &Pair, id: &ProposalId) -> OwnConsent {
    let [rho, delta] = sizes(pair, id);
    let viewer = Some(pair.peer.fingerprint());
    let bound = |value: Rational| crate::agree::bound(&value);
    let charge = ChargeBound { viewer, rho: bound(rho + ratio(1, 10)), delta: bound(delta) };
    let version = crate::data_version(&pair.house.rules().settings, "trial").expect("there");
    let own = OwnConsent { version, ..pair.own_consent() };
    let terms = statements::ConsentTerms { charges: vec![charge], runs: 1, ..pair.terms(id) };
    pair.consented_to(id, &own, terms);
    own
}

#[test]
fn no_run_begins_where_what_was_consented_to_is_charged() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    consented(&pair, &id);
    let mut ledger = Ledger::open(&pair.path("registry.ledger")).expect("opens");
    let look = || {
        super::look(&pair.house, false).expect("looks");
        let runs = pair.house.store().runs(&id).expect("reads");
        let last = runs.last().and_then(|run| run.kind.clone());
        (last, row(&pair, &id).held)
    };
    pair.ready(&id);
    assert_eq!(look(), (None, None), "it waits for the link alone");
    // The peer deletes its half each time, and its data change: the sizes are charged again, and what is left
    // does not pay the release.
    for release in 1..=2 {
        ledger.debit(&debit(&pair, &id, release)).expect("charged");
    }
    let me = |look: &Look<'_>| consented::is_spent(look, false).expect("looks").map(|spent| spent.why);
    let row_now = row(&pair, &id);
    let at = Look::of(&pair.house, &row_now).expect("looks").expect("there");
    let why = me(&at).expect("held");
    assert!(why.contains("of rho") && why.contains("proposes the study again"), "{why}");
    assert_eq!(row(&pair, &id).held.as_deref(), Some("budget"));
    assert_eq!(look().0.as_deref(), Some("budget"), "what was offered does not begin");
    let why = why_waiting(&pair.house, &row(&pair, &id), true).expect("looks").expect("it waits");
    assert!(why.contains("what was consented to is charged"), "{why}");
    // A person who says that it goes on does not raise what was consented to.
    pair.house.store().hold(&pair.act_of("run allowed"), &id, None, 0).expect("held");
    let row_now = row(&pair, &id);
    let at = Look::of(&pair.house, &row_now).expect("looks").expect("there");
    assert!(me(&at).is_some());
}

/// Owners may say as often as they like that they go on: nothing that a server holds would show it.
#[test]
fn a_server_computes_in_as_many_runs_as_it_consented_to() {
    let pair = Pair::new("");
    let (id, _) = served(&pair);
    pair.serves(&id, 2);
    let raw = rusqlite::Connection::open(pair.path("service.db")).expect("opens");
    let sql = "INSERT INTO runs (proposal, run, port, made_ms) VALUES (?1, ?2, 0, 1)";
    (1..4).for_each(|run| _ = raw.execute(sql, rusqlite::params![id.0, run]).expect("written"));
    let line = |run: u32, line: &str| _ = job::keep_lines(&pair.house, &id, run, line.as_bytes());
    let spent = || {
        let row = row(&pair, &id);
        let look = Look::of(&pair.house, &row).expect("looks").expect("there");
        consented::is_spent(&look, true).expect("looks").map(|spent| (spent.kind, spent.why))
    };
    line(1, r#"{"event":"waiting","text":"waits"}"#);
    line(2, r#"{"event":"stage","name":"match","rows":0}"#);
    line(2, r#"{"event":"stage-done","name":"match","seconds":1.0,"rows":0,"bytes":9}"#);
    assert_eq!(spent(), None, "one run met nobody, and one computed");
    // Lines that cannot be kept count none the less.
    raw.execute_batch(
        "CREATE TRIGGER full BEFORE INSERT ON run_lines BEGIN SELECT RAISE(ABORT, 'full'); END",
    )
    .expect("made");
    line(3, r#"{"event":"stage","name":"match","rows":0}"#);
    let (kind, why) = spent().expect("held");
    assert!(kind == "runs" && why.contains("in 2 runs") && why.contains("proposes the study again"), "{why}");
    assert_eq!(row(&pair, &id).held.as_deref(), Some("runs"));
    assert!(spent().is_some());
    // The owners read it, once.
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    let me = record.place(&pair.house.identity().expect("a key").fingerprint()).expect("a party");
    let notes = record.chain(me).iter().filter(|one| matches!(one.body().said, Said::Note(_)));
    assert_eq!(notes.count(), 1);
}

#[test]
fn a_run_goes_on_only_from_what_is_there() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let own = consented(&pair, &id);
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    let me = record.place(&pair.house.identity().expect("a key").fingerprint()).expect("a party");
    let settings = pair.house.rules().settings;
    let set = &settings.data["trial"];
    let bounds = consented::bounds(&record, me, &own, set).expect("numbers").expect("a consent");
    assert_eq!((bounds.matches, bounds.data, bounds.rows), (1, Some([2; 32]), 1));
    let run = RunRow {
        proposal: id,
        run: 1,
        port: 0,
        made_ms: 1,
        begun_ms: Some(2),
        ended_ms: Some(3),
        outcome: Some("failed".into()),
        kind: None,
        code: None,
        message: None,
    };
    let (jobs, path) = (pair.house.jobs_folder(), settings.ledger.clone());
    let goes_on =
        |runs: &[RunRow]| consented::goes_on(&jobs, &path, (&record, 0), runs, &bounds).expect("looks");
    assert!(!goes_on(&[]), "the first run begins anew");
    assert!(goes_on(std::slice::from_ref(&run)), "nothing was charged: no match has begun");
    let mut ledger = Ledger::open(&path).expect("opens");
    ledger.debit(&debit(&pair, &id, 1)).expect("charged");
    // Before, that the ledger had a row of the study was enough, for ever.
    assert!(!goes_on(std::slice::from_ref(&run)), "a match was charged, and nothing of it is here");
    ledger.store_outputs(&[1; 32], 0, &pair.peer.fingerprint().to_string(), &[]).expect("kept");
    assert!(goes_on(std::slice::from_ref(&run)), "what it gave is here");
}

#[test]
fn a_party_file_holds_a_run_to_the_consent() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let own = consented(&pair, &id);
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    let me = record.place(&pair.house.identity().expect("a key").fingerprint()).expect("a party");
    let mut settings = (*pair.house.rules().settings).clone();
    settings.link =
        Some(crate::settings::LinkSettings { listen: "127.0.0.1:1".into(), run_ports: 7001..=7001 });
    let offer = RunOffer { run: 1, goes_on: false, nonce: [3; 16], earliest_ms: 1, latest_ms: 2, port: 7001 };
    let mut offers = [offer; 2];
    offers[1 - me].port = 0;
    let order = job::JobOrder { record: &record, me, run: 1, offers: &offers, consent: &own };
    let folder = job::write(&settings, &pair.house.jobs_folder(), &order).expect("written");
    let read = |folder: &std::path::Path| {
        let (path, flags) = (folder.join("party.toml"), study::party::PartySettings::default());
        flags.over(&path).and_then(study::party::PartySettings::complete).expect("reads").policy
    };
    assert_eq!(read(&folder).studies, Some(vec![record.study()]), "this study alone");
    let set = &settings.data["trial"];
    let bounds = consented::bounds(&record, me, &own, set).expect("numbers");
    assert_eq!(read(&folder).agreed, bounds);
    // Whoever took other data since took these.
    let taken = OwnConsent { taken: Some([9; 32]), ..own.clone() };
    let order = job::JobOrder { consent: &taken, ..order };
    let folder = job::write(&settings, &pair.house.jobs_folder(), &order).expect("written");
    assert_eq!(read(&folder).agreed.expect("bounds").data, Some([9; 32]));
}

#[test]
fn what_is_offered_takes_no_place_and_no_peer_has_the_last_one() {
    let clinic = "[peers.clinic]\nkey = \"tacit1:3f9a1c0b7d5e42886b10a97f5d2c4e11\"";
    let pair = Pair::new(clinic);
    let (one, _) = pair.proposed("A question", "");
    pair.offered(&one);
    let (two, _) = pair.proposed("Another question", "");
    pair.offered(&two);
    let place = |id: &ProposalId| {
        let row = row(&pair, id);
        let look = Look::of(&pair.house, &row).expect("looks").expect("there");
        has_no_place(&look).expect("looks")
    };
    assert_eq!(place(&two), None, "an offer holds none");
    pair.house.store().start_run(pair.we(), &one, 1, vec![[3; 16]; 2]).expect("starts");
    assert_eq!(place(&two), Some("another run with this organisation goes first"));
    pair.tightened("max_rho = 0.3", "max_rho = 0.3\nmax_jobs = 1");
    assert_eq!(place(&two), Some("other runs go first"));
    pair.tightened("max_jobs = 1", "max_jobs = 3");
    assert_eq!(place(&two), None);
    // Where nobody else could come, all places are for the one.
    pair.tightened("max_jobs = 3", "max_jobs = 2");
    pair.tightened(clinic, "");
    assert_eq!(place(&two), None);
}

#[test]
fn who_is_ready_early_begins_once_an_hour_before_its_time() {
    let (jobs, id) = (Jobs::default(), ProposalId([1; 16]));
    assert!(jobs.may_be_early(&id, 1_000));
    jobs.was_early(id, 1_000);
    assert!(!jobs.may_be_early(&id, 3_600_999) && jobs.may_be_early(&id, 3_601_000));
}

#[test]
fn a_run_that_takes_too_long_is_ended() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let limit = |more: &str| {
        pair.tightened("max_rho = 0.3", &format!("max_rho = 0.3{more}"));
        let row = row(&pair, &id);
        job::longest(&Look::of(&pair.house, &row).expect("looks").expect("there")).as_secs()
    };
    assert_eq!(limit(""), 24 * 3_600, "nothing is known of its rows");
    assert_eq!(limit("\nlongest_run = \"2h\""), 7_200);
    let mut sleep = Command::new("sleep");
    let child = sleep.arg("600").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let stop = AtomicU8::new(0);
    let ended = job::watch(&pair.house, (&id, 1), child, (&stop, Duration::ZERO));
    let error = ended.error.expect("an error");
    assert_eq!((error[0].as_str(), error[1].as_str()), ("peer", "too-long"));
}

#[test]
fn what_the_rules_refuse_is_refused_by_the_next_look_with_the_name_of_the_rule_alone() {
    let pair = Pair::new("");
    pair.tightened("max_delta = \"1e-6\"", "max_delta = \"1e-12\"");
    // As if the service had been killed after it had kept the proposal: nothing else makes it refuse.
    let (id, _) = pair.proposed("A question", "");
    assert_eq!(row(&pair, &id).state, ProposalState::Proposed);
    super::look(&pair.house, false).expect("looks");
    assert_eq!(row(&pair, &id).state, ProposalState::Closed);
    let words = words(&pair, &id);
    assert!(
        words.contains("a rule here does not allow it: policy.max_delta") && !words.contains("1e-"),
        "{words}"
    );
    // The peer's own kinds are one of them, and its name here is nobody's affair.
    let pair = Pair::new("");
    pair.tightened("kinds = [\"lift\"]\n[data", "kinds = []\n[data");
    let (id, _) = pair.proposed("A question", "");
    super::look(&pair.house, false).expect("looks");
    let words = self::words(&pair, &id);
    assert!(words.contains("kinds, of this peer") && !words.contains("hospitals"), "{words}");
}

#[test]
fn a_rule_decides_on_one_data_set_that_one_steward_could_decide_on() {
    let pair = Pair::new("");
    let (id, path) = pair.proposed("A question", "");
    let hash = path.rsplit('/').next().expect("a hash").to_owned();
    let named = format!("max_rho = 0.3\nauto = [\"{hash}\"]");
    let settings = |pair: &Pair| pair.house.rules().settings;
    let order = AgreeOrder {
        by: BY_RULE.to_owned(),
        id,
        data: "trial".to_owned(),
        runs: 2,
        days: 30,
        words: "by rule".to_owned(),
        rules: None,
    };
    let hex = |byte: u8| base::hex(&[byte; 32]);
    let program = pair.house.store().standing(&id).expect("reads").expect("there").proposed().program;
    let weighed = WeighedStudy {
        tag: hex(2),
        version: hex(3),
        program: base::hex(&program),
        charges: Vec::new(),
        rows: 1,
        refusals: Vec::new(),
    };
    let tried = |order: &AgreeOrder| agree(pair.house.store(), &settings(&pair), order, &weighed).map(drop);
    let why = tried(&order).expect_err("no rule names it").to_string();
    assert!(why.contains("no rule consents to this study"), "{why}");
    pair.tightened("max_rho = 0.3", &named);
    // By rules that are not those that hold, nothing is signed.
    let why = tried(&order).expect_err("other rules").to_string();
    assert!(why.contains("nothing was signed") || why.contains("nothing was"), "{why}");
    pair.tightened("least_rows = 1", "least_rows = 1\ntwo_person = true");
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    let order = AgreeOrder { rules, ..order };
    assert!(tried(&order).is_err(), "never where two decide");
    pair.tightened("two_person = true", "two_person = false");
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    tried(&AgreeOrder { rules, ..order.clone() }).expect("by rule");
    let record = pair.house.store().standing(&id).expect("reads").expect("there");
    let own = pair.house.store().own_consent(&id).expect("reads").expect("there");
    let me = record.place(&pair.house.identity().expect("a key").fingerprint()).expect("a party");
    assert_eq!((own.by.as_str(), record.terms(me).expect("terms").persons), (BY_RULE, 0));
    let first = |data: &str| {
        let own = pair.house.identity().expect("a key").fingerprint();
        pair.house.store().may_consent_by_rule(&record.study(), data, own).expect("reads")
    };
    assert!(!first("trial") && first("other"), "once with each data set");
    // A copy of before has lost with which, and the peer has sent the consent back.
    let raw = |sql: &str| {
        let opened = rusqlite::Connection::open(pair.path("service.db")).expect("opens");
        opened.execute_batch(sql).expect("written");
    };
    raw("CREATE TABLE lost AS SELECT * FROM consents; DELETE FROM consents");
    assert!(!first("trial") && !first("other"), "it may have been either");
    raw("INSERT INTO consents SELECT * FROM lost; DROP TABLE lost");
    assert!(first("other"));
    // The peer breaks off, withdraws and proposes the same again: a person decides.
    let why = ClosingReason { code: ClosingCode::Other, text: "Not so.".to_owned() };
    pair.store.say(pair.they(), &id, Said::Withdraw(why.clone())).expect("withdrawn");
    let again = ProposedStudy { nonce: [8; 16], ..record.proposed().clone() };
    let again = pair.store.propose(pair.they(), again).expect("proposed").id();
    pair.meet();
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    let why_not = tried(&AgreeOrder { rules, id: again, ..order }).expect_err("once").to_string();
    assert!(why_not.contains("a rule consents to a study once"), "{why_not}");
    super::look(&pair.house, false).expect("looks");
    assert!(pair.house.store().weighed(&again).expect("reads").is_none(), "no file is read for it");
    // Nor does a rule go beyond somebody's no.
    pair.house.store().say(pair.we(), &again, Said::Refuse(why)).expect("refused");
    assert!(!first("other"));
    // It holds as long as the rule does.
    pair.tightened(&named, "max_rho = 0.3");
    let row = row(&pair, &id);
    let look = Look::of(&pair.house, &row).expect("looks").expect("there");
    let why = against_rules(&look).expect("looks").expect("against it");
    assert!(why.contains("policy.auto, which does not name it any more"), "{why}");
}

/// The copy lacks what a rule consented to since, and who proposed need not give it back.
#[test]
fn in_a_copy_no_rule_consents_before_somebody_accepts_it_again() {
    let pair = Pair::new("");
    let (id, path) = pair.proposed("A question", "");
    let hash = path.rsplit('/').next().expect("a hash").to_owned();
    pair.tightened("max_rho = 0.3", &format!("max_rho = 0.3\nauto = [\"{hash}\"]"));
    let (store, now) = (pair.house.store(), now_ms() / 1_000);
    let study = row(&pair, &id).study;
    let own = pair.we().identity.fingerprint();
    let may = || store.may_consent_by_rule(&study, "trial", own).expect("reads");
    assert!(may());
    store.use_copy("today", now + 1).expect("restored");
    assert!(!may());
    store.hear_anew(&[pair.peer.fingerprint()]).expect("begins");
    store.heard(pair.peer.fingerprint(), &[], &[]).expect("written");
    super::look(&pair.house, false).expect("looks");
    assert!(store.weighed(&id).expect("reads").is_none(), "no file is read for it");
    // A change of one rule by page is no look at all of them; nor is the log needed, which may be cut.
    let opened = rusqlite::Connection::open(pair.path("service.db")).expect("opens");
    let by_page = "INSERT INTO accepted (at, by, hash, text) SELECT at + 9, 'stella', hash, text \
                   FROM accepted ORDER BY number DESC LIMIT 1";
    assert_eq!(opened.execute(by_page, []).expect("written"), 1);
    assert!(!may());
    opened.execute_batch("DROP TRIGGER audit_no_delete; DELETE FROM audit").expect("cut");
    assert!(!may());
    // Nor does what was weighed before the copy was used.
    let settings = pair.house.rules().settings;
    let accepted = store.accepted().expect("reads").expect("accepted");
    let words = "by rule".to_owned();
    let (by, data) = (BY_RULE.to_owned(), "trial".to_owned());
    let rules = Some(accepted.hash);
    let order = AgreeOrder { by, id, data, runs: 2, days: 30, words, rules };
    let program = store.standing(&id).expect("reads").expect("there").proposed().program;
    let weighed = WeighedStudy {
        tag: base::hex(&[2; 32]),
        version: base::hex(&[3; 32]),
        program: base::hex(&program),
        charges: Vec::new(),
        rows: 1,
        refusals: Vec::new(),
    };
    let why = agree(store, &settings, &order, &weighed).map(drop).expect_err("of before").to_string();
    assert!(why.contains("accepted service.toml once more"), "{why}");
    let act = RecordedAct { at: now + 2, ..pair.act_of("service.toml accepted") };
    store.accept(&act, &accepted.text, &accepted.hash).expect("accepted");
    assert!(may());
    agree(store, &settings, &order, &weighed).expect("by rule");
}

#[test]
fn of_two_data_sets_that_fit_a_person_says_which() {
    let pair = Pair::new("");
    let (id, path) = pair.proposed("A question", "");
    let hash = path.rsplit('/').next().expect("a hash").to_owned();
    let other = "[data.other]\npath = \"trial.csv\"\nlineage = \"other\"\ncolumns = [\"child_id\", \"arm\", \
                 \"injected\"]\npeers = [\"hospitals\"]\nleast_rows = 1\nbudget = 1.0\n\
                 delta = \"1e-6\"\n[policy]";
    pair.tightened("[policy]", other);
    pair.tightened("max_rho = 0.3", &format!("max_rho = 0.3\nauto = [\"{hash}\"]"));
    super::look(&pair.house, false).expect("looks");
    assert!(pair.house.store().weighed(&id).expect("reads").is_none());
    assert_eq!(row(&pair, &id).state, ProposalState::Proposed);
    // One person alone can take a peer out of one of them, and chooses the other one by that for nobody.
    let study = row(&pair, &id).study;
    let with = || pair.house.rules().settings.consents_with(&study).map(str::to_owned);
    pair.tightened("peers = [\"hospitals\"]\nleast_rows = 1\nbudget = 1.0", "peers = []\nbudget = 1.0");
    assert_eq!(with(), None);
    pair.tightened(&format!("[\"{hash}\"]"), &format!("[\"{hash} other\"]"));
    assert_eq!(with().as_deref(), Some("other"));
    pair.tightened(&format!("[\"{hash} other\"]"), &format!("[\"{hash} other\", \"{hash} trial\"]"));
    assert_eq!(with(), None);
}

#[test]
fn a_consent_without_the_key_that_the_rules_name_by_now_does_not_run() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    let peer = pair.peer.fingerprint();
    pair.tightened("least_rows = 1", &format!("least_rows = 1\nsteward_keys = [\"{peer}\"]"));
    let row = row(&pair, &id);
    let look = Look::of(&pair.house, &row).expect("looks").expect("there");
    let why = against_rules(&look).expect("looks").expect("against it");
    assert!(why.contains("none of the keys that steward_keys names has signed"), "{why}");
    super::look(&pair.house, true).expect("looks");
    assert_eq!(pair.house.store().runs(&id).expect("reads")[0].kind.as_deref(), Some("policy"));
}

/// What is kept of the own consent, and `service.toml`, may change; what was signed does not.
#[test]
fn a_consent_charges_the_lineage_that_it_was_signed_for() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let own = consented(&pair, &id);
    let against = || {
        let row = row(&pair, &id);
        let look = Look::of(&pair.house, &row).expect("looks").expect("there");
        against_rules(&look).expect("looks")
    };
    assert_eq!(against(), None);
    pair.tightened("lineage = \"trial\"", "lineage = \"fresh\"");
    let why = against().expect("against it");
    assert!(
        why.contains("charged to the lineage fresh, and what was consented to is charged to trial"),
        "{why}"
    );
    // Whoever writes the store as well cannot sign for it.
    let sql = "UPDATE consents SET lineage = 'fresh'";
    let raw = || rusqlite::Connection::open(pair.path("service.db")).expect("opens");
    raw().execute(sql, []).expect("written");
    let why = against().expect("against it");
    assert!(why.contains("is not what was signed"), "{why}");
    raw().execute("UPDATE consents SET lineage = NULL", []).expect("written");
    assert!(against().expect("against it").contains("is not what was signed"), "nor as one of before");
    // A consent of before binds the data alone.
    let before = OwnConsent { lineage: None, ..own };
    assert!(before.opens(&statements::commit_to_data(&before.salt, &before.tag, None)));
    assert!(!before.opens(&pair.terms(&id).data));
}

#[test]
fn a_consent_allows_no_more_delta_than_a_study_may_have() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    let peer = pair.peer.fingerprint().to_string();
    let hex = |byte: u8| base::hex(&[byte; 32]);
    let program = pair.house.store().standing(&id).expect("reads").expect("there").proposed().program;
    // A match has 10⁻⁶, all that a study may have; four are charged where five runs may begin anew.
    let weighed = WeighedStudy {
        tag: hex(2),
        version: hex(3),
        program: base::hex(&program),
        charges: vec![WeighedCharge {
            viewer: Some(peer),
            release: "1/10".to_owned(),
            sizes: ["1/100".to_owned(), "1/1000000".to_owned()],
        }],
        rows: 1,
        refusals: Vec::new(),
    };
    let against = |runs| {
        let settings = pair.house.rules().settings;
        crate::agree::stands_against(&settings, runs, &weighed).expect("numbers").join("\n")
    };
    assert_eq!([1, 2].map(against), ["", ""]);
    assert!(against(3).contains("and a study may have at most 1e-6 (policy.max_delta)"), "{}", against(3));
    let rules = pair.house.store().accepted().expect("reads").map(|accepted| accepted.hash);
    let (by, words) = (crate::store::COMMAND_LINE.to_owned(), "read".to_owned());
    let order = AgreeOrder { by, id, data: "trial".to_owned(), runs: 5, days: 30, words, rules };
    let settings = pair.house.rules().settings;
    let why = agree(pair.house.store(), &settings, &order, &weighed).expect_err("too much").to_string();
    assert!(why.contains("let fewer runs begin anew"), "{why}");
    agree(pair.house.store(), &settings, &AgreeOrder { runs: 2, ..order }, &weighed).expect("consents");
    // Where the rule becomes tighter, what was consented to before does not run.
    let against = || {
        let row = row(&pair, &id);
        let look = Look::of(&pair.house, &row).expect("looks").expect("there");
        against_rules(&look).expect("looks").unwrap_or_default()
    };
    assert!(!against().contains("all matches that it allows"), "{}", against());
    pair.tightened("max_delta = \"1e-6\"", "max_delta = \"1e-7\"");
    assert!(against().contains("all matches that it allows"), "{}", against());
}

#[test]
fn nothing_is_said_before_the_peer_was_heard() {
    let pair = Pair::new("");
    let (id, _) = pair.proposed("A question", "");
    pair.offered(&id);
    let peer = pair.peer.fingerprint();
    pair.house.store().hear_anew(&[peer]).expect("written");
    pair.tightened("peers = [\"hospitals\"]", "peers = []");
    super::look(&pair.house, true).expect("looks");
    assert!(pair.house.store().runs(&id).expect("reads")[0].outcome.is_none(), "not even that it is over");
    let said = pair.house.store().say(pair.we(), &id, Said::Note("Well?".to_owned()));
    assert_eq!(said.expect_err("unheard").to_string(), UNHEARD);
    let why = why_waiting(&pair.house, &row(&pair, &id), true).expect("looks");
    assert!(why.is_none_or(|why| why == UNHEARD));
    // The peer has more of the own chain than there is here.
    pair.house.store().heard(peer, &[id], &[]).expect("written");
    assert!(pair.house.store().is_unheard(&id).expect("reads"));
    pair.house.store().heard(peer, &[], &[]).expect("written");
    // Nor does who says later that it has more, and gives nothing of it.
    pair.house.store().heard(peer, &[id], &[]).expect("written");
    assert!(!pair.house.store().is_unheard(&id).expect("reads"));
    pair.house.store().heard(peer, &[id], &[id]).expect("written");
    assert!(pair.house.store().is_unheard(&id).expect("reads"));
    pair.house.store().heard(peer, &[], &[]).expect("written");
    // Who is no party of it stops nothing, and neither does a proposal that is not there.
    let stranger = KeyFingerprint::from_bytes([5; 16]);
    pair.house.store().heard(stranger, &[id], &[id]).expect("written");
    pair.house.store().heard(peer, &[ProposalId([9; 16])], &[ProposalId([9; 16])]).expect("written");
    assert!(!pair.house.store().is_unheard(&id).expect("reads"));
    super::look(&pair.house, true).expect("looks");
    assert_eq!(pair.house.store().runs(&id).expect("reads")[0].kind.as_deref(), Some("policy"));
}
