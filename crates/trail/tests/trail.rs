//! A store as a service keeps it, edits of every kind, and the signed file.

use net::identity::{Identity, KeyFingerprint};
use privacy::ledger::{EntryRow, Ledger};
use rusqlite::{Connection, params};
use serde_json::json;
use statements::{
    ChargeBound, ConsentTerms, KeptStatement, ProposalId, ProposalRecord, ProposedStudy, RunOffer, Said,
    SignedStatement, StatementBody, commit_to_data, digest_of_words,
};
use std::path::{Path, PathBuf};
use study::StudyFile;
use tempfile::TempDir;
use trail::{LogWitnesses, NewEntry, SignedTrail, TrailScope, VerifiedLog, WitnessStanding};

const LIFT: &str = include_str!("../../../examples/lift.toml");
const AT: u64 = 1_795_000_000_000;

/// Two organisations, and a store of the first with a proposal, consents and a log.
struct Office {
    folder: TempDir,
    keys: [Identity; 2],
    record: ProposalRecord,
}

fn entry<'a>(number: u64, detail: &'a serde_json::Value) -> NewEntry<'a> {
    NewEntry { at_ms: AT + 1_000 * number, actor: "steward-1", action: "consent", subject: "study", detail }
}

impl Office {
    fn new() -> Self {
        let keys = [(); 2].map(|()| Identity::generate().unwrap());
        let mut text = study::canonical("lift", LIFT).unwrap();
        let places: Vec<usize> = text.match_indices("\"tacit1:").map(|(at, _)| at + 1).collect();
        for (at, key) in places.into_iter().zip(&keys) {
            text.replace_range(at..at + 39, &key.fingerprint().to_string());
        }
        let (study, author) =
            (StudyFile::parse("lift", &text).unwrap().hash(), keys[0].public_key().unwrap());
        let proposed = ProposedStudy {
            text,
            program: [2; 32],
            note: String::new(),
            expires_ms: AT + 1_000_000,
            windows: Vec::new(),
            nonce: [8; 16],
        };
        let body = StatementBody {
            study,
            proposal: ProposalId::of(&author, &study, &proposed),
            author,
            recipients: vec![keys[1].fingerprint()],
            number: 0,
            previous: [0; 32],
            seen: [0; 32],
            at_ms: AT,
            said: Said::Propose(Box::new(proposed)),
        };
        let record = ProposalRecord::open(SignedStatement::sign(body, &keys[0]).unwrap()).unwrap();
        let mut office = Self { folder: tempfile::tempdir().unwrap(), keys, record };
        let mut store = office.store();
        trail::create(&store).unwrap();
        let first = office.all().remove(0);
        let detail = json!({ "expires": "soon" });
        let kept = trail::record(&mut store, &entry(1, &detail), |w| trail::keep_statement(w, AT, &first));
        assert!(kept.unwrap());
        for number in [0, 1] {
            let consent = office.consent(number, "1/10");
            let kept =
                trail::record(&mut store, &entry(2, &detail), |w| trail::keep_statement(w, AT, &consent));
            assert!(kept.unwrap());
        }
        office
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn store(&self) -> Connection {
        let store = Connection::open(self.path(trail::STORE_FILE)).unwrap();
        store.pragma_update(None, "recursive_triggers", true).unwrap();
        store
    }

    fn all(&self) -> Vec<SignedStatement> {
        (0..2).flat_map(|party| self.record.chain(party).to_vec()).collect()
    }

    fn consent(&mut self, who: usize, rho: &str) -> SignedStatement {
        let viewer = Some(self.keys[1 - who].fingerprint());
        let terms = ConsentTerms {
            program: [2; 32],
            charges: vec![ChargeBound { viewer, rho: rho.to_owned(), delta: "0".to_owned() }],
            words: digest_of_words("read"),
            data: commit_to_data(&[3; 32], &[4; 32], None),
            expires_ms: AT + 1_000_000,
            windows: Vec::new(),
            runs: 5,
            persons: 1,
            seal: None,
        };
        let said = self.record.say(&self.keys[who], AT, Said::Consent(Box::new(terms))).unwrap();
        assert_eq!(self.record.keep(said.clone()).unwrap(), KeptStatement::New { counts: true });
        said
    }

    /// Both are ready, and have begun.
    fn begin_run(&mut self) {
        let offer =
            RunOffer { run: 1, goes_on: false, nonce: [5; 16], earliest_ms: AT, latest_ms: AT + 1, port: 0 };
        for said in [Said::Ready(offer), Said::Started { run: 1, nonces: vec![[5; 16]; 2] }] {
            for key in &self.keys {
                let said = self.record.say(key, AT, said.clone()).unwrap();
                assert_eq!(self.record.keep(said).unwrap(), KeptStatement::New { counts: true });
            }
        }
    }

    fn export(&self, name: &str) -> VerifiedLog {
        let (store, out) = (trail::open_store(self.folder.path()).unwrap(), self.path(name));
        let ledger = Ledger::open(&self.path("a.ledger")).unwrap().export().unwrap();
        let scope = TrailScope { ledger, store: Some(&store), study: None, made_ms: AT };
        scope.write(&self.keys[0], std::fs::File::create(out).unwrap()).unwrap().unwrap()
    }
}

/// Goes around the triggers, as a program that means it does, and puts them back.
fn edit(store: &Connection, sql: &str) {
    let triggers: Vec<(String, String)> = {
        let mut select = store.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").unwrap();
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.map(Result::unwrap).collect()
    };
    triggers.iter().for_each(|(name, _)| store.execute_batch(&format!("DROP TRIGGER {name}")).unwrap());
    store.execute_batch(sql).unwrap();
    triggers.iter().for_each(|(_, sql)| store.execute_batch(sql).unwrap());
}

#[test]
fn a_log_that_was_edited_is_found() {
    let office = Office::new();
    let mut store = office.store();
    for number in 4..20 {
        let detail = json!({ "number": number });
        trail::record(&mut store, &entry(number, &detail), |_| Ok(())).unwrap();
    }
    let whole = trail::verify(&store).unwrap();
    assert_eq!((whole.first, whole.last), (1, 19));
    // The triggers hold against mistakes.
    for sql in [
        "UPDATE audit SET actor = 'x'",
        "DELETE FROM audit WHERE number = 3",
        "DELETE FROM statements",
        "REPLACE INTO audit SELECT number, at_ms, 'x', action, subject, detail, previous, hash FROM audit",
    ] {
        let told = store.execute(sql, []).unwrap_err().to_string();
        assert!(told.contains("only grows"), "{told}");
    }
    assert_eq!(trail::verify(&store).unwrap(), whole);
    let mut edits: Vec<String> = vec![
        "UPDATE audit SET number = number + 100 WHERE number > 10".to_owned(),
        "UPDATE audit SET number = 99 WHERE number = 7; UPDATE audit SET number = 7 WHERE number = 8; \
         UPDATE audit SET number = 8 WHERE number = 99"
            .to_owned(),
        "INSERT INTO audit_cuts VALUES (5, 1, zeroblob(32))".to_owned(),
        "DROP TRIGGER IF EXISTS audit_no_update".to_owned(),
        "CREATE TRIGGER quiet BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END".to_owned(),
        // A beginning that is left out, as if it had been cut.
        "INSERT INTO audit_cuts SELECT number, 1, hash FROM audit WHERE number = 5; \
         DELETE FROM audit WHERE number <= 5"
            .to_owned(),
    ];
    for number in [1, 10, 19] {
        for column in [
            "at_ms = at_ms + 1",
            "actor = 'x'",
            "action = 'x'",
            "subject = 'x'",
            "detail = '{}'",
            "previous = zeroblob(32)",
            "hash = randomblob(32)",
        ] {
            if (number, column) != (1, "previous = zeroblob(32)") {
                edits.push(format!("UPDATE audit SET {column} WHERE number = {number}"));
            }
        }
    }
    edits.extend([1, 10].map(|number| format!("DELETE FROM audit WHERE number = {number}")));
    for sql in edits {
        let copy = office.path("copy.db");
        let _ = std::fs::remove_file(&copy);
        store.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let copied = Connection::open(&copy).unwrap();
        assert_eq!(trail::verify(&copied).unwrap(), whole);
        match sql.starts_with("DROP") {
            true => copied.execute_batch(&sql).unwrap(),
            false => edit(&copied, &sql),
        }
        assert!(trail::verify(&copied).is_err(), "{sql}");
    }
}

#[test]
fn nothing_happens_that_is_not_written_down() {
    let office = Office::new();
    let mut store = office.store();
    store.execute_batch("CREATE TABLE things (name TEXT) STRICT").unwrap();
    let detail = json!(null);
    let long = "x".repeat(201);
    let wrong = NewEntry { actor: &long, ..entry(9, &detail) };
    let before = trail::verify(&store).unwrap();
    let done = trail::record(&mut store, &wrong, |w| {
        w.execute("INSERT INTO things VALUES ('a')", []).unwrap();
        Ok(())
    });
    assert!(done.unwrap_err().to_string().contains("bytes of an audit entry"));
    let refused: Result<(), _> = trail::record(&mut store, &entry(9, &detail), |w| {
        w.execute("INSERT INTO things VALUES ('a')", []).unwrap();
        Err(base::Error::input("no"))
    });
    assert!(refused.is_err());
    let things: u32 = store.query_row("SELECT COUNT(*) FROM things", [], |row| row.get(0)).unwrap();
    assert_eq!((things, trail::verify(&store).unwrap()), (0, before));
}

#[test]
fn an_entry_that_is_ignored_is_an_error() {
    let office = Office::new();
    let mut store = office.store();
    store
        .execute_batch("CREATE TRIGGER quiet BEFORE INSERT ON audit BEGIN SELECT RAISE(IGNORE); END")
        .unwrap();
    let told = trail::record(&mut store, &entry(9, &json!({})), |_| Ok(())).unwrap_err().to_string();
    assert!(told.contains("took no entry"), "{told}");
}

#[test]
fn what_is_cut_was_exported_and_the_chain_goes_on() {
    let office = Office::new();
    let mut store = office.store();
    let exported = office.export("all.jsonl");
    let detail = json!({});
    for number in 4..10 {
        trail::record(&mut store, &entry(number, &detail), |_| Ok(())).unwrap();
    }
    let by = NewEntry { action: "audit.cut", ..entry(20, &detail) };
    let other = VerifiedLog { hash: "0".repeat(64), ..exported.clone() };
    let told = trail::cut_before(&mut store, u64::MAX >> 1, &other, &by).unwrap_err().to_string();
    assert!(told.contains("another log than this one"), "{told}");
    // What is about one study is not the log: nothing can be cut by it.
    let (read, ledger) = (trail::open_store(office.folder.path()).unwrap(), office.path("a.ledger"));
    let ledger = Ledger::open(&ledger).unwrap().export().unwrap();
    let study = Some(office.record.study());
    let scope = TrailScope { ledger, store: Some(&read), study, made_ms: AT };
    assert_eq!(scope.write(&office.keys[0], Vec::new()).unwrap(), None);
    // Nothing is old enough; then all are, and only what was exported goes.
    assert_eq!(trail::cut_before(&mut store, AT, &exported, &by).unwrap(), 0);
    assert_eq!(trail::cut_before(&mut store, u64::MAX >> 1, &exported, &by).unwrap(), exported.last);
    let left = trail::verify(&store).unwrap();
    assert_eq!((left.first, left.last), (exported.last + 1, 10));
    assert_eq!(trail::entries(&store, 0, 100, None).unwrap().last().unwrap().action, "audit.cut");
    let told = store.execute("DELETE FROM audit", []).unwrap_err().to_string();
    assert!(told.contains("only grows"), "{told}");
    let again = office.export("rest.jsonl");
    let file = SignedTrail::read(&office.path("rest.jsonl")).unwrap();
    assert_eq!(
        (file.header.log.as_ref(), file.entries.len() as u64),
        (Some(&again), again.last + 1 - again.first)
    );
}

#[test]
fn a_log_is_held_against_what_others_saw_of_it() {
    let mut office = Office::new();
    let mut store = office.store();
    let own = office.keys[0].fingerprint();
    let other = office.keys[1].fingerprint();
    let mut said = |who: usize, of, entry: u64, hash: [u8; 32], at| {
        let word = Said::Witness { of, entry, hash };
        let word = office.record.say(&office.keys[who], at, word).unwrap();
        office.record.keep(word.clone()).unwrap();
        word
    };
    let keep = |store: &mut Connection, word: &SignedStatement| {
        let nothing = json!(null);
        trail::record(store, &entry(9, &nothing), |w| trail::keep_statement(w, AT, word)).unwrap();
    };
    let head = trail::log_head(&store).unwrap();
    assert_eq!(head, trail::verify(&store).unwrap());
    let hash = base::unhex(&head.hash).unwrap();
    let mut witnesses = LogWitnesses::default();
    let mut standing = |store: &Connection| {
        witnesses.read(store).unwrap();
        let found = witnesses.of_own(store, own).unwrap();
        let bent: Vec<bool> = witnesses.of_peers(own).iter().map(|(_, _, bent)| *bent).collect();
        (found.into_iter().map(|(peer, _, standing)| (peer, standing)).collect::<Vec<_>>(), bent)
    };
    assert_eq!(standing(&store), (vec![], vec![]));
    keep(&mut store, &said(1, own, head.last, hash, AT + 1));
    assert_eq!(standing(&store).0, [(other, WitnessStanding::Fits)]);
    // What this side saw of the other's log: it grows, and then goes back.
    keep(&mut store, &said(0, other, 5, [5; 32], AT + 2));
    keep(&mut store, &said(0, other, 7, [7; 32], AT + 3));
    assert_eq!(standing(&store).1, [false]);
    keep(&mut store, &said(0, other, 6, [6; 32], AT + 4));
    assert_eq!(standing(&store).1, [true]);
    // The other has seen more of this log than there is, as after a restored copy.
    keep(&mut store, &said(1, own, head.last + 100, [1; 32], AT + 5));
    assert_eq!(standing(&store).0, [(other, WitnessStanding::Gone)]);
    // Another entry under a number that was seen.
    let last = trail::log_head(&store).unwrap().last;
    (last..=head.last + 100).for_each(|_| {
        let nothing = json!(null);
        trail::record(&mut store, &entry(9, &nothing), |_| Ok(())).unwrap();
    });
    assert_eq!(standing(&store).0, [(other, WitnessStanding::Another)]);
}

#[test]
fn a_file_that_was_changed_is_found() {
    let office = Office::new();
    office.export("all.jsonl");
    let path = office.path("all.jsonl");
    assert!(trail::is_trail(&path));
    let file = SignedTrail::read(&path).unwrap();
    assert_eq!((file.statements.len(), file.entries.len()), (3, 3));
    assert_eq!(file.proposals().unwrap()[0].heads(), office.record.heads());
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let broken = |text: String| {
        std::fs::write(office.path("bent.jsonl"), text).unwrap();
        SignedTrail::read(&office.path("bent.jsonl")).map(|_| ()).expect_err("it was changed").to_string()
    };
    for left_out in 0..lines.len() {
        let rest: Vec<&str> = (0..lines.len()).filter(|at| *at != left_out).map(|at| lines[at]).collect();
        broken(rest.join("\n") + "\n");
    }
    let told = broken(text.replace("steward-1", "steward-2"));
    assert!(told.contains("the signature is not of these lines"), "{told}");
    broken(text.clone() + "{}\n");
    broken(text.trim_end().to_owned());
    // Another organisation's signature under the same lines.
    let key = base::hex(&office.keys[0].public_key().unwrap());
    broken(text.replace(&key, &base::hex(&office.keys[1].public_key().unwrap())));
    assert!(!trail::is_trail(Path::new("/nowhere")));
}

#[test]
fn two_sides_hold_the_same() {
    let mut office = Office::new();
    let store = office.store();
    let ledger = Ledger::open(&office.path("a.ledger")).unwrap().export().unwrap();
    let whole = SignedTrail::here(ledger.clone(), &store).unwrap();
    let less = SignedTrail {
        statements: whole.statements[..2].to_vec(),
        ..SignedTrail::here(ledger, &store).unwrap()
    };
    let found = trail::compare(&whole, &less).unwrap();
    assert_eq!((found.both, found.here, found.there), (2, 1, 0));
    let nothing = SignedTrail {
        statements: Vec::new(),
        ..SignedTrail::here(Ledger::open(&office.path("a.ledger")).unwrap().export().unwrap(), &store)
            .unwrap()
    };
    let found = trail::compare(&whole, &nothing).unwrap();
    assert_eq!((found.proposals_here, found.proposals_there), (1, 0));
    let found = trail::compare(&nothing, &whole).unwrap();
    assert_eq!((found.proposals_here, found.proposals_there), (0, 1));
    // The first organisation has consented to something else towards the other side.
    office.record = trail::proposals(&whole.statements[..1]).unwrap().remove(0);
    let other = office.consent(0, "1/5");
    let theirs = SignedTrail { statements: vec![whole.statements[0].clone(), other], ..less };
    let told = trail::compare(&whole, &theirs).unwrap_err().to_string();
    let author = office.keys[0].fingerprint();
    assert!(told.contains(&format!("{author} has said two things under number 1")), "{told}");
}

fn debit(study: &str, viewer: KeyFingerprint, rho: &str) -> EntryRow {
    let key = viewer.to_string();
    EntryRow {
        row: 1,
        at: 0,
        release: String::new(),
        attempt: 0,
        lineage: "trial".to_owned(),
        viewer_key: key.clone(),
        peer_key: key,
        study: study.to_owned(),
        rho: rho.to_owned(),
        budget: "1".to_owned(),
        period: None,
        delta: "0".to_owned(),
        exact_rho: rho.to_owned(),
        exact_delta: "0".to_owned(),
        tau: "0".to_owned(),
        protects: true,
        barred: None,
        lifted: false,
        given_back: false,
    }
}

#[test]
fn what_was_charged_was_consented_to() {
    let mut office = Office::new();
    let study = office.record.study().full();
    let [own, peer] = [0, 1].map(|who: usize| office.keys[who].fingerprint());
    // Where no run began, what was charged was charged by hand.
    let before = office.record.clone();
    let check = |debits: &[EntryRow]| trail::check_consents(debits, std::slice::from_ref(&before), Some(own));
    assert_eq!(check(&[debit(&study, peer, "9")]), Ok(0));
    office.begin_run();
    let check = |debits: &[EntryRow]| {
        // A proposal that came to nothing allows nothing more.
        let all = [office.record.clone(), before.clone()];
        let told = trail::check_consents(debits, &all, Some(own));
        assert_eq!(told, trail::check_consents(debits, &all, None));
        told
    };
    let delta = EntryRow { exact_delta: "1/10".to_owned(), ..debit(&study, peer, "1/10") };
    let told = check(&[delta]).unwrap_err().to_string();
    assert!(told.contains("charged 0.1 (delta)"), "{told}");
    let small = format!("1/1{}", "0".repeat(60));
    let delta = EntryRow { exact_delta: small, ..debit(&study, peer, "1/10") };
    assert!(check(&[delta]).unwrap_err().to_string().contains("(delta)"), "it has more digits than 2^128");
    assert_eq!(check(&[debit(&study, peer, "1/10")]), Ok(1));
    let by_hand = debit(&"7".repeat(64), peer, "9");
    assert_eq!(check(&[debit(&study, peer, "1/20"), debit(&study, peer, "1/20"), by_hand]), Ok(2));
    let told = check(&[debit(&study, peer, "1/10"), debit(&study, peer, "1/100")]).unwrap_err().to_string();
    assert!(
        told.contains("charged 0.11 (rho)") && told.contains("the consents are to 0.1 at most"),
        "{told}"
    );
    let given_back = EntryRow { given_back: true, ..debit(&study, peer, "1") };
    assert_eq!(check(&[given_back]), Ok(0));
}

#[test]
fn statements_are_those_that_were_signed() {
    let office = Office::new();
    let store = office.store();
    let kept = trail::statements(&store, Some(&office.record.study())).unwrap();
    assert_eq!(kept.len(), 3);
    assert_eq!(trail::proposals(&kept).unwrap()[0].view(), office.record.view());
    edit(&store, "UPDATE statements SET statement = zeroblob(300) WHERE row = 2");
    let told = trail::statements(&store, None).unwrap_err().to_string();
    assert!(told.contains("statement 2 of the store was changed"), "{told}");
    let row: i64 = store.query_row("SELECT COUNT(*) FROM statements", params![], |row| row.get(0)).unwrap();
    assert_eq!(row, 3);
}
