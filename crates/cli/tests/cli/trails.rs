//! A ledger with what the organisations' services kept, as an auditor meets it. The study runs as ever; the
//! stores are those that services make, of statements under the parties' own keys.

use crate::support::{Pair, read, tacit};
use net::identity::Identity;
use rusqlite::Connection;
use serde_json::json;
use statements::{
    ChargeBound, ConsentFile, ConsentRequest, ConsentTerms, ProposalId, ProposalRecord, ProposedStudy,
    RunOffer, Said, SignedStatement, StatementBody, StewardSeal, commit_to_data, digest_of_words,
};
use study::StudyFile;
use trail::NewEntry;

const AT: u64 = 1_795_000_000_000;
const PARTIES: [&str; 2] = ["publisher", "advertiser"];

/// What both said of the study of a pair, each consenting to so much.
fn agreed(pair: &Pair, rho: &str) -> ProposalRecord {
    let keys = PARTIES.map(|name| Identity::load(&pair.path(&format!("{name}.key"))).unwrap());
    let text = study::canonical("study", &read(&pair.path("study.toml"))).unwrap();
    let (study, author) = (StudyFile::parse("study", &text).unwrap().hash(), keys[0].public_key().unwrap());
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
    let mut record = ProposalRecord::open(SignedStatement::sign(body, &keys[0]).unwrap()).unwrap();
    for own in &keys {
        let charge = |viewer| ChargeBound { viewer, rho: rho.to_owned(), delta: "1/1000".to_owned() };
        let mut viewers: Vec<_> = keys.iter().map(|key| Some(key.fingerprint())).collect();
        viewers.retain(|viewer| *viewer != Some(own.fingerprint()));
        let terms = ConsentTerms {
            program: [2; 32],
            charges: [None].into_iter().chain(viewers).map(charge).collect(),
            words: digest_of_words("read"),
            data: commit_to_data(&[3; 32], &[4; 32], None),
            expires_ms: AT + 1_000_000,
            windows: Vec::new(),
            runs: 5,
            persons: 1,
            seal: None,
        };
        let said = record.say(own, AT, Said::Consent(Box::new(terms))).unwrap();
        record.keep(said).unwrap();
    }
    let offer =
        RunOffer { run: 1, goes_on: false, nonce: [5; 16], earliest_ms: AT, latest_ms: AT + 1, port: 0 };
    for said in [Said::Ready(offer), Said::Started { run: 1, nonces: vec![[5; 16]; 2] }] {
        for own in &keys {
            record.keep(record.say(own, AT, said.clone()).unwrap()).unwrap();
        }
    }
    record
}

/// The folder of a service that keeps it.
fn service(pair: &Pair, name: &str, record: &ProposalRecord) -> String {
    let folder = pair.path(name);
    std::fs::create_dir(&folder).unwrap();
    let mut store = Connection::open(folder.join(trail::STORE_FILE)).unwrap();
    trail::create(&store).unwrap();
    let proposer = |party: &usize| matches!(record.chain(*party)[0].body().said, Said::Propose(_));
    let mut parties: Vec<usize> = vec![0, 1];
    parties.sort_by_key(|party| !proposer(party));
    for said in parties.into_iter().flat_map(|party| record.chain(party)) {
        let (detail, subject) = (json!({ "number": said.body().number }), record.study().full());
        let entry =
            NewEntry { at_ms: AT, actor: "service", action: "statement", subject: &subject, detail: &detail };
        trail::record(&mut store, &entry, |write| trail::keep_statement(write, AT, said)).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn an_auditor_sees_that_what_was_charged_was_agreed_to() {
    let pair = Pair::csv(400);
    for done in pair.both([&[], &[]]) {
        done.fine();
    }
    let path = |name: &str| pair.path(name).to_str().unwrap().to_owned();
    let ledgers = PARTIES.map(|name| path(&format!("{name}.ledger")));
    let record = agreed(&pair, "1/2");
    let folders = PARTIES.map(|name| service(&pair, &format!("{name}-service"), &record));
    let told = tacit(["ledger", "verify", &ledgers[0], "--service", &folders[0], "--json"]).fine().json();
    assert_eq!(told["proposals"][0]["state"], "running");
    assert_eq!(
        (told["proposals"][0]["statements"].as_u64(), told["log"]["last"].as_u64()),
        (Some(7), Some(7))
    );
    assert!(told["agreed"].as_u64() > Some(0), "{told}");
    let files = PARTIES.map(|name| path(&format!("{name}.jsonl")));
    for (name, (at, file)) in PARTIES.into_iter().zip((0..).zip(&files)) {
        let key = path(&format!("{name}.key"));
        let export =
            ["ledger", "export", &ledgers[at], "--service", &folders[at], "--identity", &key, "--out", file];
        let said = tacit(export).fine().stdout;
        assert!(said.contains("is signed by tacit1:") && said.contains("up to entry 7"), "{said}");
        tacit(export).failed(2, &["is there already, and an export never replaces a file"]);
        let text = read(&pair.path(&format!("{name}.jsonl")));
        // No share, salt, seed or key of tags: the names of what holds them are not even there.
        for secret in ["share", "salt", "seed", "transcript\"", "PRIVATE"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
    let words = tacit(["ledger", "verify", &files[0], "--peer", &files[1]]).fine().stdout;
    for part in [
        "The chain of the audit log fits up to entry 7",
        "Run 1 is under way.",
        "Both sides hold 7 statements",
    ] {
        assert!(words.contains(part), "{words}");
    }
    // Whoever re-signs a file is named, and is not who was expected.
    let keys = PARTIES
        .map(|name| Identity::load(&pair.path(&format!("{name}.key"))).unwrap().fingerprint().to_string());
    assert!(words.contains(&format!("The file is signed by {}.", keys[0])), "{words}");
    tacit(["ledger", "verify", &files[0], "--signer", &keys[0]]).fine();
    tacit(["ledger", "verify", &files[0], "--signer", &keys[1]]).failed(2, &["is signed by", "not by"]);
    let one = path("one.jsonl");
    let (hash, key) = (record.study().full(), path("publisher.key"));
    tacit([
        "ledger",
        "export",
        &ledgers[0],
        "--service",
        &folders[0],
        "--identity",
        &key,
        "--study",
        &hash,
        "--out",
        &one,
    ])
    .fine();
    tacit(["ledger", "verify", &one]).fine();
    let bent = read(&pair.path("publisher.jsonl")).replace("\"actor\":\"service\"", "\"actor\":\"sarvice\"");
    std::fs::write(pair.path("bent.jsonl"), bent).unwrap();
    tacit(["ledger", "verify", &path("bent.jsonl")]).failed(2, &["the signature is not of these lines"]);
    // The other organisation's service has written down consents to less than its ledger was charged.
    let less = service(&pair, "less", &agreed(&pair, "1/1000"));
    tacit(["ledger", "verify", &ledgers[0], "--service", &less])
        .failed(2, &["the ledger charged", "the consents are to 0.001 at most"]);
    tacit(["ledger", "verify", &ledgers[0], "--service", &path("nowhere")])
        .failed(2, &["is no folder of a service"]);
    tacit(["ledger", "verify", &ledgers[0], "--peer", &files[1]]).failed(2, &["--peer compares statements"]);
}

#[test]
fn a_steward_signs_what_is_shown_with_a_key_of_their_own() {
    let pair = Pair::csv(400);
    let record = agreed(&pair, "1/2");
    let organisation = Identity::load(&pair.path("advertiser.key")).unwrap().fingerprint();
    let place = record.parties().iter().position(|party| *party == organisation).unwrap();
    let request = ConsentRequest {
        study: record.study(),
        proposal: record.id(),
        organisation,
        recipients: record.parties().iter().filter(|party| **party != organisation).copied().collect(),
        terms: record.terms(place).unwrap().clone(),
    };
    let path = |name: &str| pair.path(name).to_str().unwrap().to_owned();
    let (file, key) = (path("request.json"), path("steward.key"));
    let text = ConsentFile::text(&request, "read", &record.proposed().text);
    std::fs::write(&file, &text).unwrap();
    tacit(["keygen", "--out", &key]).fine();
    let shown = tacit(["consent", "show", &file]).fine().stdout;
    assert!(
        shown.contains("rho 0.5 and delta 10⁻³ to publisher") && !shown.contains("tacit-seal1:"),
        "{shown}"
    );
    let signed = tacit(["consent", "sign", &file, "--key", &key]).fine().stdout;
    let seal = StewardSeal::parse(signed.lines().last().unwrap()).unwrap();
    assert!(seal.is_of(&request));
    let told = tacit(["consent", "sign", &file, "--key", &key, "--json"]).fine().json();
    assert_eq!((&told["seal"], &told["words"]), (&json!(seal.text()), &json!("read")));
    tacit(["consent", "sign", &file, "--key", &path("advertiser.key")])
        .failed(2, &["this is the key of the organisation"]);
    // A key of OpenSSH: where that is not installed, CI says so.
    let ssh = path("id_ed25519");
    let made =
        std::process::Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &ssh]).status();
    if made.is_ok_and(|made| made.success()) {
        let signed = tacit(["consent", "sign", &file, "--ssh", &ssh]).fine().stdout;
        let seal = StewardSeal::parse(signed.lines().last().unwrap()).unwrap();
        assert!(seal.is_of(&request));
        let line = read(&pair.path("id_ed25519.pub"));
        assert_eq!(statements::ssh_key(&line), Some(seal.steward()));
        let other = ConsentRequest { proposal: ProposalId([9; 16]), ..request.clone() };
        assert!(!seal.is_of(&other));
    } else {
        eprintln!("SKIPPED: there is no ssh-keygen here, so no key of OpenSSH has signed");
    }
    std::fs::write(&file, text.replace("\"read\"", "\"nothing is revealed\"")).unwrap();
    tacit(["consent", "sign", &file, "--key", &key]).failed(2, &["shows other words than would be signed"]);
}
