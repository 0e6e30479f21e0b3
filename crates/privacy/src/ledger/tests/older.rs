//! Ledgers that earlier versions wrote.

use super::*;

/// A ledger that a version of layout 2 wrote, of the publisher of a small trial.
fn of_layout_2(folder: &TempDir) -> std::path::PathBuf {
    let path = folder.path().join("l");
    std::fs::write(&path, include_bytes!("../../../tests/fixtures/layout-2/pub-ledger.db")).unwrap();
    path
}

/// Ledgers of earlier layouts go on with what they hold: budgets, deltas, answers; and a release that had
/// ended bars nobody.
#[test]
fn older_ledgers_are_brought_up_to_date() {
    for layout in [1, 2] {
        let folder = folder();
        let path = of_layout_2(&folder);
        if layout == 1 {
            let raw = Connection::open(&path).unwrap();
            raw.execute_batch("ALTER TABLE debits DROP COLUMN delta; PRAGMA user_version = 1").unwrap();
        }
        let mut ledger = Ledger::open(&path).unwrap();
        let entries = ledger.entries().unwrap();
        assert_eq!(entries.iter().map(|e| &*e.rho).collect::<Vec<_>>(), ["0.01", "0.1", "0.1"]);
        let viewer = entries[0].viewer_key.clone();
        // The advertiser is the peer of all three, of the publisher's own view too.
        assert!(entries.iter().all(|e| e.peer_key == viewer && e.lineage == "lin-pub"));
        assert_eq!(ledger.spent("lin-pub", &viewer).unwrap(), ratio(11, 100));
        assert_eq!(ledger.spent_delta("lin-pub", &viewer).unwrap().is_zero(), layout == 1);
        assert_eq!(ledger.answers().unwrap()[0].name, "kept");
        let towards = PeerLineage { peer: viewer.clone(), lineage: "lin-pub".into() };
        assert_eq!(ledger.barred(&towards, &[]).unwrap(), None);
        assert_eq!(ledger.broken_off(&viewer).unwrap(), PeerRecord::default());
        let sound = ledger.verify().unwrap();
        assert_eq!((sound.len(), &sound[0].peer, sound[0].count), (1, &viewer, 13));
        let debit = |release, rho| Debit {
            lineage: "lin-pub".into(),
            viewer_key: viewer.clone(),
            peer_key: viewer.clone(),
            ..debit(release, rho, ratio(2, 10))
        };
        assert!(text(ledger.debit(&debit(9, ratio(1, 10)))).starts_with("budget: 0.11 of 0.2"));
        ledger.debit(&debit(9, ratio(9, 100))).unwrap();
        drop(ledger);
        assert_eq!(Ledger::open(&path).unwrap().spent("lin-pub", &viewer).unwrap(), ratio(1, 5));
    }
}

/// A bar of before holds towards the peer whom the study names, and is lifted like any other.
#[test]
fn bars_of_older_ledgers_hold() {
    let folder = folder();
    let path = of_layout_2(&folder);
    let raw = Connection::open(&path).unwrap();
    raw.execute_batch(
        "INSERT INTO bars SELECT 1, 1, release, 0, 'silence' FROM debits WHERE row = 2; \
         INSERT INTO reopened SELECT release, 0, 1, 'agreed' FROM debits WHERE row = 2; \
         INSERT INTO bars SELECT 2, 1, release, 1, 'silence again' FROM debits WHERE row = 2",
    )
    .unwrap();
    drop(raw);
    let mut ledger = Ledger::open(&path).unwrap();
    let entry = ledger.entries().unwrap().remove(1);
    let towards = PeerLineage { peer: entry.peer_key.clone(), lineage: entry.lineage };
    assert!(ledger.barred(&towards, &[]).unwrap().is_some());
    let id = study::StudyHash::parse(&entry.release).unwrap();
    assert_eq!(ledger.next_attempt(id.as_bytes()).unwrap(), 2);
    ledger.allow(&entry.peer_key, None, "").unwrap();
    assert_eq!(ledger.barred(&towards, &[]).unwrap(), None);
}

/// A ledger as version 2 left it; with `version` 1 without what version 2 added.
fn older(path: &Path, version: i32) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(include_str!("../fixtures/version-2.sql")).unwrap();
    if version == 1 {
        connection.execute_batch("ALTER TABLE debits DROP COLUMN delta; PRAGMA user_version = 1").unwrap();
    }
}

/// What an older program wrote is read, counts, and only grows; so does what this version adds.
#[test]
fn ledgers_of_older_versions_go_on() {
    const VIEWER: &str = "tacit1:d1cb2f114f47bf8cc6e3cbf7e6011cd1";
    for version in [1, 2] {
        let folder = folder();
        let path = folder.path().join("l");
        older(&path, version);
        let ledger = Ledger::open(&path).unwrap();
        assert_eq!(ledger.spent("registry", VIEWER).unwrap(), ratio(11, 100), "version {version}");
        assert_eq!(ledger.spent_delta("registry", VIEWER).unwrap().is_zero(), version == 1);
        assert_eq!((ledger.entries().unwrap().len(), ledger.answers().unwrap().len()), (3, 1));
        let stored: String =
            ledger.connection.query_row("SELECT report FROM answers", [], |row| row.get(0)).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&stored).unwrap();
        assert_eq!(answer["privacy"]["rho"], "1/10");
        drop(ledger);
        let raw = Connection::open(&path).unwrap();
        raw.execute("INSERT INTO matches (at, id, nonce) VALUES (1, x'01', x'02')", []).unwrap();
        for table in ["debits", "matches"] {
            let error = raw.execute(&format!("DELETE FROM {table}"), []).unwrap_err().to_string();
            assert!(error.contains("the ledger only grows"), "version {version}, {table}: {error}");
        }
        drop(raw);
        assert_eq!(Ledger::open(&path).unwrap().entries().unwrap().len(), 3);
    }
}

/// A ledger of the version without deltas goes on with what it holds.
#[test]
fn an_older_ledger_is_brought_up_to_date() {
    let folder = folder();
    let path = folder.path().join("l");
    older(&path, 1);
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.debit(&debit(1, ratio(1, 2), ratio(1, 1))).unwrap();
    drop(ledger);
    let mut ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 2));
    assert!(ledger.spent_delta("hospitals", "key-of-registry").unwrap().is_zero());
    ledger
        .debit(&Debit { delta: ratio(1, 8), most_delta: ratio(1, 4), ..debit(2, ratio(1, 4), ratio(1, 1)) })
        .unwrap();
    assert!(text(ledger.debit(&debit(3, ratio(1, 2), ratio(1, 1)))).starts_with("budget: 0.75 of 1"));
    drop(ledger);
    assert_eq!(
        Ledger::open(&path).unwrap().spent_delta("hospitals", "key-of-registry").unwrap(),
        ratio(1, 8)
    );
}

/// A ledger of layout 4, of the clinic of a public result that was opened, and of another one of which its
/// share went out and no outcome came; with `layout` 3 without what layout 4 added. What was spent counts,
/// and what is open stays open.
#[test]
fn what_layout_4_holds_stays_held_and_counts() {
    let bytes: [&[u8]; 2] = [
        include_bytes!("../../../tests/fixtures/layout-4/clinic-ledger.db"),
        include_bytes!("../../../tests/fixtures/layout-4/works-ledger.db"),
    ];
    for (layout, party) in [(4, 0), (4, 1), (3, 0)] {
        let folder = folder();
        let path = folder.path().join("l");
        std::fs::write(&path, bytes[party]).unwrap();
        if layout == 3 {
            let raw = Connection::open(&path).unwrap();
            // Then no column said what the noise was off by, and a release was by candidates.
            raw.execute_batch(
                "DROP TABLE voids; DROP TABLE held; DROP TABLE sent; DROP TRIGGER debits_UPDATE; DROP \
                 TRIGGER debits_DELETE; DROP TRIGGER chain_DELETE; DELETE FROM chain; ALTER TABLE debits \
                 DROP COLUMN tau; ALTER TABLE allows DROP COLUMN numbers; PRAGMA user_version = 3",
            )
            .unwrap();
        }
        let mut ledger = Ledger::open(&path).unwrap();
        let entries = ledger.entries().unwrap();
        assert_eq!(entries.iter().map(|e| &*e.rho).collect::<Vec<_>>(), ["0.01", "0.1", "0.01", "0.1"]);
        let (lineage, peer) = (entries[0].lineage.clone(), entries[0].peer_key.clone());
        assert_eq!(ledger.spent(&lineage, &peer).unwrap(), ratio(22, 100));
        assert_eq!(ledger.spent(&lineage, PUBLIC).unwrap(), ratio(2, 10));
        assert_eq!(ledger.spent_by_all(&lineage).unwrap(), ratio(22, 100));
        assert!(entries.iter().all(|entry| entry.period.is_none() && !entry.given_back));
        // They count in a period by their dates.
        let period = Period { seconds: 3650 * 86_400, budget: ratio(3, 10) };
        assert_eq!(ledger.spent_within(&lineage, &peer, &period).unwrap(), ratio(22, 100));
        assert!(text(ledger.check_period((&lineage, &peer), &ratio(1, 10), &period)).contains("0.22 of 0.3"));
        let signed = check_signatures(&entries, &ledger.signatures().unwrap()).unwrap();
        assert_eq!((signed.by_all, signed.not_by_all, signed.signatures), (0, 4, 0));
        let release = *study::StudyHash::parse(&entries[3].release).unwrap().as_bytes();
        let held = ledger.held_share(&release).unwrap();
        match (layout, party) {
            (4, 0) => {
                assert_eq!(held.unwrap().1, ShareProgress::Sent);
                assert_eq!(ledger.broken_off(&peer).unwrap().after_payment, 1);
                // It is never given back.
                assert_eq!(ledger.give_back(&peer, &lineage, &[]).unwrap(), 0);
            }
            (4, _) => {
                let (held, progress) = held.unwrap();
                assert_eq!((progress, held.share.is_empty()), (ShareProgress::Held, false));
                assert!(ledger.is_paid(&release).unwrap());
                assert_eq!(ledger.give_back(&peer, &lineage, &[]).unwrap(), 1);
                assert_eq!(ledger.spent(&lineage, &peer).unwrap(), ratio(12, 100));
            }
            _ => assert!(held.is_none()),
        }
        if layout == 4 {
            ledger.verify().unwrap();
            ledger.export().unwrap().verify().unwrap();
        }
        drop(ledger);
        Ledger::open(&path).unwrap();
    }
}
