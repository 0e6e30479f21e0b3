//! Periods, rates, successions, signatures and exports.

use super::*;
use net::{Identity, Succession};
use study::party::RunRate;

const DAY: i64 = 86_400;

/// Dates all rows of a table so many seconds from now, as a clock would have.
fn date_rows(ledger: &Ledger, table: &str, seconds: i64) {
    let raw = Connection::open(ledger.path()).unwrap();
    raw.execute_batch(&format!("DROP TRIGGER IF EXISTS {table}_UPDATE")).unwrap();
    raw.execute(&format!("UPDATE {table} SET at = ?1"), [now() + seconds]).unwrap();
}

fn key(identity: &Identity) -> String {
    identity.fingerprint().to_string()
}

#[test]
fn a_period_bounds_every_span_and_refills_nothing() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let period = Some(Period { seconds: 90 * DAY as u64, budget: ratio(1, 2) });
    let of = |release| Debit { period: period.clone(), ..debit(release, ratio(1, 4), ratio(1, 1)) };
    ledger.debit(&of(1)).unwrap();
    ledger.debit(&of(2)).unwrap();
    let refused = text(ledger.debit(&of(3)));
    assert!(
        refused
            .starts_with("policy.period_budget: 0.5 of 0.5 in 90 days spent on lineage hospitals by viewer"),
        "{refused}"
    );
    let free = moment(now() + 90 * DAY);
    assert!(refused.contains(&format!("it may be made at {}", &free[..10])), "{refused}");
    // Another viewer and other data have periods of their own.
    ledger.check_debit(&Debit { viewer_key: "other".into(), ..of(4) }).unwrap();
    ledger.check_debit(&Debit { lineage: "other".into(), ..of(4) }).unwrap();
    // A clock that was set back: rows of the future count.
    date_rows(&ledger, "debits", 400 * DAY);
    assert!(text(ledger.debit(&of(3))).starts_with("policy.period_budget: 0.5 of 0.5"));
    date_rows(&ledger, "debits", -89 * DAY);
    assert!(text(ledger.debit(&of(3))).starts_with("policy.period_budget: 0.5 of 0.5"));
    // The span is over, and the budget is not refilled.
    date_rows(&ledger, "debits", -91 * DAY);
    ledger.debit(&of(3)).unwrap();
    ledger.debit(&of(4)).unwrap();
    assert!(text(ledger.debit(&of(5))).starts_with("budget: 1 of 1 spent"));
    date_rows(&ledger, "debits", -4000 * DAY);
    assert!(text(ledger.debit(&of(5))).starts_with("budget: 1 of 1 spent"));
    // Several that are about to be made are looked at together; what never fits says so.
    let wide = |release| Debit { budget: ratio(9, 1), rho: ratio(3, 10), ..of(release) };
    assert!(text(ledger.check_together(&[wide(6), wide(7)])).contains("is more than any period allows"));
    ledger.check_together(&[wide(6)]).unwrap();
}

#[test]
fn runs_are_counted_per_peer_and_the_next_time_is_said() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let rate = Some(RunRate::parse("2/day").unwrap());
    let (registry, other) = (("key-of-registry", "registry"), ("other", "other"));
    for _ in 0..2 {
        ledger.may_begin(registry, rate).unwrap();
        ledger.begin_run(registry, &[1; 32], rate).unwrap();
    }
    let free = moment(now() + DAY);
    for refused in [ledger.begin_run(registry, &[2; 32], rate), ledger.may_begin(registry, rate)] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused.kind(), Fault::Refused(_)));
        let refused = refused.to_string();
        assert!(
            refused.starts_with("policy.runs: 2 runs with registry have begun, and 2/day may"),
            "{refused}"
        );
        assert!(refused.contains(&format!("may begin at {}", &free[..10])), "{refused}");
    }
    ledger.begin_run(other, &[1; 32], rate).unwrap();
    ledger.begin_run(registry, &[1; 32], None).unwrap();
    date_rows(&ledger, "runs", 40 * DAY);
    assert!(ledger.may_begin(registry, rate).is_err());
    date_rows(&ledger, "runs", -DAY - 1);
    ledger.begin_run(registry, &[1; 32], rate).unwrap();
    for wrong in ["20", "0/day", "20/month", "/day", "-1/day", "20/ day"] {
        assert!(RunRate::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(RunRate::parse("7/week").unwrap().words(), "7/week");
}

/// Two runs that begin at once cannot both be the last.
#[test]
fn runs_that_begin_together_keep_to_the_rate() {
    let folder = folder();
    let path = folder.path().join("l");
    drop(Ledger::open(&path).unwrap());
    let barrier = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (path, barrier) = (path.clone(), barrier.clone());
            std::thread::spawn(move || {
                let mut ledger = Ledger::open(&path).unwrap();
                barrier.wait();
                ledger.begin_run(("key", "peer"), &[1; 32], Some(RunRate { runs: 1, seconds: 60 })).is_ok()
            })
        })
        .collect();
    let begun = threads.into_iter().map(|thread| u32::from(thread.join().unwrap())).sum::<u32>();
    assert_eq!(begun, 1);
}

/// Budgets, periods, bars, open numbers, rates and chains of a key go on under the one that takes its place,
/// and under the next.
#[test]
fn a_new_key_inherits_what_the_old_one_has_spent() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let [a, b, c, other] = [0; 4].map(|_| Identity::generate().unwrap());
    let to = |identity: &Identity, release, rho| Debit {
        viewer_key: key(identity),
        peer_key: key(identity),
        ..debit(release, rho, ratio(1, 1))
    };
    let towards = |identity: &Identity| PeerLineage { peer: key(identity), lineage: "hospitals".into() };
    ledger.debit(&to(&a, 1, ratio(1, 2))).unwrap();
    ledger.bar(&[1; 32], &towards(&a), "silence").unwrap();
    for number in [2, 3] {
        let held = HeldShare { attempt: 0, ..share(number) };
        ledger.hold(&[number; 32], &held, &key(&a), "hospitals").unwrap();
        ledger.send(&[number; 32], &[]).unwrap();
    }
    ledger.begin_run((&key(&a), "a"), &[1; 32], None).unwrap();
    let before = ledger.chain(&key(&a)).unwrap();
    let rate = Some(RunRate { runs: 1, seconds: 60 });
    // Another key has nothing of it.
    assert_eq!(ledger.barred(&towards(&b), &[]).unwrap(), None);
    assert!(ledger.succeed(&Succession::sign(&a, &b).unwrap()).unwrap());
    assert!(ledger.succeed(&Succession::sign(&b, &c).unwrap()).unwrap());
    // Known already, signed at another time.
    assert!(!ledger.succeed(&Succession::sign(&a, &b).unwrap()).unwrap());
    for heir in [&b, &c] {
        assert_eq!(ledger.spent("hospitals", &key(heir)).unwrap(), ratio(1, 2));
        assert!(text(ledger.check_debit(&to(heir, 9, ratio(2, 3)))).starts_with("budget: 0.5 of 1"));
        assert_eq!(ledger.barred(&towards(heir), &[]).unwrap().as_deref(), Some("silence"));
        let open = ledger.open_numbers(&key(heir), "hospitals", &[]).unwrap();
        assert!(open.is_some_and(|text| text.starts_with("2 results")));
        assert!(ledger.may_begin((&key(heir), "heir"), rate).is_err());
        assert_eq!(ledger.broken_off(&key(heir)).unwrap().after_payment, 2);
    }
    ledger.may_begin((&key(&other), "other"), rate).unwrap();
    // What the new one spends counts for the line, and is one viewer's.
    ledger.allow(&key(&c), None, "new key, same people").unwrap();
    assert_eq!(ledger.barred(&towards(&a), &[]).unwrap(), None);
    ledger.debit(&to(&c, 9, ratio(1, 4))).unwrap();
    assert_eq!(ledger.spent("hospitals", &key(&a)).unwrap(), ratio(3, 4));
    assert_eq!(ledger.viewers_of("hospitals").unwrap(), [key(&c)]);
    assert_eq!(ledger.peer_by(&key(&a)[..20]).unwrap(), key(&c));
    // The chain goes on, and is sound; the hash where the old one stood is known.
    assert_eq!(ledger.hash_at(&key(&c), before.count).unwrap(), before.hash);
    assert!(ledger.chain(&key(&c)).unwrap().count > before.count);
    ledger.verify().unwrap();
    assert_eq!(ledger.successor(&key(&a)).unwrap().map(|(key, _)| key), Some(key(&b)));
    assert_eq!(ledger.newest(&key(&a)).unwrap(), key(&c));
}

#[test]
fn a_key_has_one_successor() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let [old, new, second] = [0; 3].map(|_| Identity::generate().unwrap());
    ledger.succeed(&Succession::sign(&old, &new).unwrap()).unwrap();
    let error = ledger.succeed(&Succession::sign(&old, &second).unwrap()).unwrap_err();
    assert!(matches!(error.kind(), Fault::Refused(_)));
    let error = error.to_string();
    for named in [&old, &new, &second] {
        assert!(error.contains(&key(named)), "{error}");
    }
    // Nobody else signs for it.
    let mut forged = Succession::sign(&second, &new).unwrap().bytes();
    forged[..32].copy_from_slice(&old.public_key().unwrap());
    let forged = Succession::read(&forged).unwrap();
    assert!(text(ledger.succeed(&forged)).contains("did not sign"));
    assert_eq!(ledger.newest(&key(&second)).unwrap(), key(&second));
    // What the peer signed with its old key, towards an old key of this party's, is found under the new ones.
    let [own, heir] = [0; 2].map(|_| Identity::generate().unwrap());
    let head = ChainHead { count: 3, hash: [1; 32] };
    let (rho, delta) = (ratio(1, 2), ratio(0, 1));
    let said = Statement::sign(&old, own.fingerprint(), head, 9, (&rho, &delta)).unwrap();
    ledger.keep_statement(&key(&old), own.fingerprint(), &said).unwrap();
    assert_eq!(ledger.held(&key(&new), heir.fingerprint()).unwrap(), None);
    ledger.succeed(&Succession::sign(&own, &heir).unwrap()).unwrap();
    assert_eq!(ledger.held(&key(&new), heir.fingerprint()).unwrap(), Some(said));
    assert_eq!(ledger.held(&key(&second), heir.fingerprint()).unwrap(), None);
    ledger.verify().unwrap();
}

/// A debit with the signatures of both, in a ledger of the registry's peer.
fn signed(ledger: &mut Ledger) -> (Debit, [Identity; 2]) {
    let both = [0; 2].map(|_| Identity::generate().unwrap());
    let [own, peer] = &both;
    let debit = Debit {
        viewer_key: format!("{} {PUBLIC}", key(peer)),
        peer_key: key(peer),
        ..debit(11, ratio(1, 10), ratio(1, 1))
    };
    let terms = debit.terms(format!("{} {} {PUBLIC}", key(own), key(peer)));
    ledger.hold(&debit.release_id, &share(5), &key(peer), "hospitals").unwrap();
    let number = ([5; 32], 0);
    let mine = PaymentProof::sign(own, &terms, (&number.0, 0)).unwrap();
    ledger.pay(&debit, (&number.0, 0), (&key(own), &mine)).unwrap();
    // As it comes over the wire.
    let said = PaymentProof::sign(peer, &terms, (&number.0, 0)).unwrap().bytes();
    let heard = PaymentProof::read(&said, &key(peer), &terms, (&number.0, 0)).unwrap().unwrap();
    ledger.send(&number.0, &[(key(peer), heard)]).unwrap();
    (debit, both)
}

#[test]
fn both_signatures_are_kept_and_checked() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let (debit, [own, peer]) = signed(&mut ledger);
    let (entries, signatures) = (ledger.entries().unwrap(), ledger.signatures().unwrap());
    let all = check_signatures(&entries, &signatures).unwrap();
    assert_eq!((all.by_all, all.not_by_all, all.signatures), (1, 0, 2));
    assert!(ledger.signature_of(&[5; 32], &key(&peer)).unwrap().unwrap().holds());
    ledger.verify().unwrap();
    // No word of what is its owner's alone.
    assert!(signatures.iter().all(|one| !one.text.contains("hospitals") && !one.text.contains("budget")));
    // One signature alone is not both.
    assert_eq!(check_signatures(&entries, &signatures[..1]).unwrap().not_by_all, 1);
    // Any bit that is bent, and any charge that is not the one that was signed.
    for (i, change) in [("rho", "rho 1/11"), ("tau", "tau 0")].into_iter().enumerate() {
        let mut bent = signatures.clone();
        let was = format!("{} {}", change.0, bent[i].says(change.0).unwrap());
        bent[i].text = bent[i].text.replace(&was, change.1);
        assert!(check_signatures(&entries, &bent).unwrap_err().contains("does not hold"));
    }
    let cheaper = EntryRow { exact_rho: "1/100".into(), ..entries[0].clone() };
    let error = check_signatures(&[cheaper], &signatures).unwrap_err();
    assert!(
        error.contains("signed rho 1/10 of number 050505050505, and row 1 of debits says 1/100"),
        "{error}"
    );
    // What a peer says of other terms, or another number, is not taken; nor what somebody else signed.
    let terms = debit.terms(format!("{} {} {PUBLIC}", key(&own), key(&peer)));
    let said = |identity: &Identity, number: u8| {
        PaymentProof::sign(identity, &terms, (&[number; 32], 0)).unwrap().bytes()
    };
    let read = |said: &[u8; PAID_BYTES]| PaymentProof::read(said, &key(&peer), &terms, (&[6; 32], 0));
    assert!(read(&said(&peer, 6)).unwrap().is_some());
    assert!(read(&said(&peer, 5)).is_err() && read(&said(&own, 6)).is_err());
    assert_eq!(read(&UNPAID).unwrap(), None);
    let cheap = DebitTerms { rho: ratio(1, 100), ..terms.clone() };
    let said = PaymentProof::sign(&peer, &cheap, (&[6; 32], 0)).unwrap().bytes();
    assert!(read(&said).is_err());
}

/// An auditor gets everything but what could be used: no share, salt, key of tags, seed or result.
#[test]
fn an_export_holds_no_secret_and_is_checked() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut ledger = filled(&path);
    signed(&mut ledger);
    let [old, new] = [0; 2].map(|_| Identity::generate().unwrap());
    ledger.succeed(&Succession::sign(&old, &new).unwrap()).unwrap();
    ledger
        .hold(&[6; 32], &HeldShare { salt: [0xab; 32], ..share(6) }, "key-of-registry", "hospitals")
        .unwrap();
    let export = ledger.export().unwrap();
    let json = serde_json::to_string_pretty(&export).unwrap();
    let raw = Connection::open(&path).unwrap();
    let secrets = [
        "SELECT value FROM settings",
        "SELECT salt FROM held WHERE dropped = 0",
        "SELECT salt FROM chain WHERE salt <> zeroblob(32)",
        "SELECT nonce FROM matches",
        "SELECT sketch FROM sketches",
    ];
    for sql in secrets {
        let mut query = raw.prepare(sql).unwrap();
        let all: Vec<Vec<u8>> =
            query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
        assert!(!all.is_empty(), "{sql}");
        assert!(all.iter().all(|secret| !json.contains(&hex(secret))), "{sql}");
    }
    let record: String = raw.query_row("SELECT record FROM transcripts", [], |row| row.get(0)).unwrap();
    assert!(record.contains("seed") && !json.contains("seed"), "{record}");
    assert!(!json.contains(&hex(&[6; 3])[..]) || !json.contains("\"share\""));
    // It is read again, and every part of it is checked.
    let file = folder.path().join("export.json");
    std::fs::write(&file, &json).unwrap();
    let read = Export::read(&file).unwrap();
    let checked = read.verify().unwrap();
    assert_eq!((checked.debits, checked.signed.by_all, checked.successions), (3, 1, 2));
    assert_eq!(read.numbers.iter().filter(|number| number.state == "sent").count(), 1);
    assert_eq!(read.voids.len(), 1);
    assert_eq!(read.debits[0].period.as_deref(), Some("1 in 1 day"));
    for (what, from, to) in [
        ("a charge", "\"exact_rho\": \"1/10\"", "\"exact_rho\": \"1/20\""),
        ("a charge as people read it", "\"rho\": \"0.1\"", "\"rho\": \"0.01\""),
        ("a delta as people read it", "\"delta\": \"0\"", "\"delta\": \"1e-9\""),
        ("who sees it", " public\",\n      \"peer_key\"", "\",\n      \"peer_key\""),
        ("a debit that counts", "\"given_back\": false", "\"given_back\": true"),
        ("a successor", &*key(&new), &*key(&old)),
        ("a void", "\"debit\": 2", "\"debit\": 1"),
    ] {
        assert!(json.contains(from), "{what}");
        std::fs::write(&file, json.replacen(from, to, 1)).unwrap();
        assert!(text(Export::read(&file).unwrap().verify()).contains("was changed"), "{what}");
    }
    std::fs::write(&file, "{}").unwrap();
    assert!(text(Export::read(&file)).contains("tacit ledger export"));
    let csv = export.csv();
    assert_eq!(csv.lines().count(), 4);
    let width = csv.lines().next().unwrap().split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == width), "{csv}");
    // A ledger that was changed is not exported.
    raw.execute_batch("DROP TRIGGER debits_UPDATE; UPDATE debits SET rho = '1/1000' WHERE row = 1").unwrap();
    assert!(text(ledger.export()).contains("was changed by another program"));
}
