use super::layout::VERSION;
use super::*;
use base::Fault;
use release::choose::{CutAndChooseSide, Draw, Drawer, NoiseContext, Setup};
use release::rational::ratio;
use std::sync::{Arc, Barrier};
use tempfile::TempDir;

mod charges;
mod governance;
mod older;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// What a ledger of this crate's tests books.
pub(crate) fn debit(release: u8, rho: Rational, budget: Rational) -> Debit {
    Debit {
        lineage: "hospitals".into(),
        viewer_key: "key-of-registry".into(),
        peer_key: "key-of-registry".into(),
        study: [1; 32],
        my_tag: [2; 32],
        peer_tag: [3; 32],
        release_id: [release; 32],
        rho,
        budget,
        total: None,
        period: None,
        delta: Rational::zero(),
        most_delta: Rational::zero(),
        tau: ratio(1, 1u64 << 60),
        agreed: None,
        protects: true,
    }
}

fn towards() -> PeerLineage {
    debit(1, ratio(1, 2), ratio(1, 1)).towards()
}

/// What the owner of this identity signs of a number of a release.
fn paid(identity: &net::Identity, debit: &Debit, number: (&Bytes32, u32)) -> PaymentProof {
    PaymentProof::sign(identity, &debit.terms(debit.viewer_key.clone()), number).unwrap()
}

/// Pays for a number of a release.
/// Holds a number, unless it is held, and pays for it.
fn pay(ledger: &mut Ledger, debit: &Debit, number: u8, attempt: u32) -> Result<(), Error> {
    let held = ledger.held_share(&debit.release_id)?;
    if held.is_none_or(|(held, _)| held.number != [number; 32]) {
        let held = HeldShare { attempt, ..share(number) };
        ledger.hold(&debit.release_id, &held, &debit.peer_key, &debit.lineage)?;
    }
    pay_held(ledger, debit, number, attempt)
}

fn pay_held(ledger: &mut Ledger, debit: &Debit, number: u8, attempt: u32) -> Result<(), Error> {
    let own = net::Identity::generate().unwrap();
    let number = ([number; 32], attempt);
    let signed = paid(&own, debit, (&number.0, attempt));
    ledger.pay(debit, (&number.0, attempt), (&own.fingerprint().to_string(), &signed))
}

fn text<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn sums_are_exact_and_a_budget_is_a_bound() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    assert!(ledger.is_new());
    // Ten times a tenth is one, and nothing is left: in floating point it would be less than one.
    for release in 0..10 {
        ledger.debit(&debit(release, ratio(1, 10), ratio(1, 1))).unwrap();
    }
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 1));
    let tiny = Rational::new(1.into(), num_bigint::BigInt::from(10).pow(40));
    let refused = ledger.debit(&debit(10, tiny, ratio(1, 1))).unwrap_err();
    assert!(matches!(refused.kind(), Fault::Refused(_)));
    let short = refused.shortfall().expect("its numbers");
    assert_eq!([short.bound, &short.spent, &short.budget], ["policy.budget", "1", "1"]);
    assert_eq!(short.asked, format!("1/1{}", "0".repeat(40)));
    assert_eq!(
        text(ledger.debit(&debit(10, ratio(1, 3), ratio(1, 1)))),
        "budget: 1 of 1 spent on lineage hospitals by viewer key-of-registry; this release needs 1/3: agree \
         on less rho, or raise policy.budget, which bounds what this viewer learns of these data in all"
    );
    assert!(text(ledger.check_debit(&debit(10, ratio(1, 4), ratio(11, 10)))).contains("1 of 1.1 spent"));
    // Another viewer and other data have budgets of their own.
    ledger.debit(&Debit { viewer_key: "other".into(), ..debit(11, ratio(1, 1), ratio(1, 1)) }).unwrap();
    ledger.debit(&Debit { lineage: "other".into(), ..debit(12, ratio(1, 1), ratio(1, 1)) }).unwrap();
    // What this party saw as a viewer is recorded and limits nothing.
    let record = Debit { protects: false, ..debit(13, ratio(5, 1), ratio(1, 1)) };
    ledger.debit(&record).unwrap();
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 1));
    assert_eq!(ledger.entries().unwrap().len(), 13);
}

#[test]
fn a_release_is_charged_once_per_attempt() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let first = debit(1, ratio(1, 2), ratio(1, 1));
    let row = ledger.debit(&first).unwrap();
    assert_eq!(ledger.debit(&first).unwrap(), row);
    // The budget was lowered meanwhile: what is paid is paid.
    assert_eq!(ledger.debit(&Debit { budget: ratio(1, 10), ..first.clone() }).unwrap(), row);
    let other = Debit { rho: ratio(1, 4), ..first.clone() };
    assert!(matches!(ledger.debit(&other).unwrap_err().kind(), Fault::Misuse(_)));
    let key = "key-of-registry";
    assert!(text(ledger.allow(key, None, "")).contains("nothing bars key-of-registry"));
    ledger.bar(&[1; 32], &towards(), "silence").unwrap();
    ledger.bar(&[1; 32], &towards(), "a later reason").unwrap();
    assert_eq!(ledger.barred(&towards(), &[]).unwrap().as_deref(), Some("silence"));
    let barred = text(ledger.debit(&first));
    assert!(barred.contains("barred (silence)"), "{barred}");
    let command = format!(
        "tacit ledger allow {} key-of-registry --lineage hospitals --reason \"...\"",
        quoted(&ledger.path().display().to_string())
    );
    assert!(barred.ends_with(&command), "{barred}");
    // Other data of this party and other peers are not concerned; other lineages are not lifted.
    let other = PeerLineage { lineage: "registry".into(), ..towards() };
    assert_eq!(ledger.barred(&other, &[]).unwrap(), None);
    assert_eq!(ledger.barred(&PeerLineage { peer: "other".into(), ..towards() }, &[]).unwrap(), None);
    assert!(ledger.allow(key, Some("registry"), "").is_err());
    assert_eq!(ledger.allow(key, Some("hospitals"), "agreed by telephone").unwrap().len(), 1);
    assert_eq!(ledger.barred(&towards(), &[]).unwrap(), None);
    assert_eq!(ledger.next_attempt(&[1; 32]).unwrap(), 1);
    ledger.begin_attempt(&[1; 32], 1, key).unwrap();
    assert_ne!(ledger.debit(&first).unwrap(), row);
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 1));
    let entries = ledger.entries().unwrap();
    assert_eq!(entries.iter().map(|e| (e.attempt, e.lifted)).collect::<Vec<_>>(), [(0, true), (1, false)]);
    assert_eq!(entries[0].barred.as_deref(), Some("silence"));
    assert_eq!(entries[0].rho, "0.5");
    // A third attempt does not fit the budget, and what breaks off later bars again.
    ledger.bar(&[1; 32], &towards(), "silence").unwrap();
    assert!(ledger.barred(&towards(), &[]).unwrap().is_some());
    ledger.allow(key, None, "").unwrap();
    ledger.begin_attempt(&[1; 32], 2, key).unwrap();
    assert!(text(ledger.debit(&first)).starts_with("budget: 1 of 1"));
    ledger.verify().unwrap();
}

#[test]
fn tags_name_data_and_say_nothing() {
    let folder = folder();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    let tag = |path: &Path, person: u8| {
        Ledger::open(path).unwrap().data_tag(&[1; 32], &[], &data_set(&[person])).unwrap()
    };
    assert_eq!(tag(&a, 1), tag(&a, 1));
    assert_ne!(tag(&a, 1), tag(&a, 2));
    assert_ne!(tag(&a, 1), tag(&b, 1));
    assert_ne!(tag(&a, 1), [1; 32]);
    let towards = |peer: &str| tag_towards(&tag(&a, 1), peer);
    assert_eq!(towards("tacit1:aa"), towards("tacit1:aa"));
    assert!(towards("tacit1:aa") != towards("tacit1:bb") && towards("tacit1:aa") != tag(&a, 1));
    let ids = [
        release_id(&[1; 32], &[[2; 32], [3; 32]], PartyId(0).into()),
        release_id(&[1; 32], &[[2; 32], [3; 32]], PartyId(1).into()),
        release_id(&[1; 32], &[[3; 32], [2; 32]], PartyId(0).into()),
        release_id(&[2; 32], &[[2; 32], [3; 32]], PartyId(0).into()),
    ];
    assert!((0..4).all(|i| (0..i).all(|j| ids[i] != ids[j])));
}

/// A program's rows of so many people.
fn data_set(people: &[u8]) -> data::RowStore {
    let mut rows = data::ProgramRows { names: vec!["n".into()], ..Default::default() };
    people.iter().for_each(|person| rows.identifiers.push(&[*person]));
    rows.columns.push(people.iter().map(|person| i64::from(*person)).collect());
    data::Rows::Program(rows).into()
}

#[test]
fn what_was_paid_or_answered_under_the_name_of_before_is_found() {
    let folder = folder();
    let path = folder.path().join("ledger");
    let mut ledger = Ledger::open(&path).unwrap();
    let (people, others) = (data_set(&[1, 2, 3]), data_set(&[1, 2, 4]));
    let (study, keys) = ([1; 32], ["tacit1:aa", "tacit1:bb"]);
    let tag = ledger.data_tag(&study, &keys, &people).unwrap();
    assert_eq!(tag, ledger.data_tag(&study, &keys, &data_set(&[3, 1, 2])).unwrap(), "any order");
    assert_ne!(tag, ledger.data_tag(&study, &keys, &data_set(&[1, 2, 3, 3])).unwrap(), "rows are counted");
    let key: [u8; 32] = ledger.key().unwrap();
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(b"tacit data tag 1").update(people.ordered_hash().unwrap().as_bytes());
    let before = *hasher.finalize().as_bytes();
    // As two parties tell it, as a party among more keeps it, and as it was before peers had theirs.
    for (n, told) in [tag_towards(&before, keys[1]), tag_towards(&before, keys[0]), before].iter().enumerate()
    {
        let study = [10 + n as u8; 32];
        let answer = AnswerKey { study, my_tag: *told, ..answer() };
        ledger.store_answer(&answer, &[keys[1]], "{}").unwrap();
        assert_eq!(ledger.data_tag(&study, &keys, &people).unwrap(), before);
        assert_ne!(ledger.data_tag(&study, &keys, &others).unwrap(), before);
    }
    let paid = Debit {
        study: [20; 32],
        my_tag: tag_towards(&before, keys[1]),
        ..debit(9, ratio(1, 10), ratio(1, 1))
    };
    ledger.debit(&paid).unwrap();
    assert_eq!(ledger.data_tag(&[20; 32], &keys, &people).unwrap(), before);
    assert_eq!(ledger.data_tag(&study, &keys, &people).unwrap(), tag, "another study has the new name");
    // What is written under the new name goes on under it.
    let answer = AnswerKey { study: [10; 32], my_tag: tag_towards(&tag, keys[1]), ..answer() };
    ledger.store_answer(&answer, &[keys[1]], "{}").unwrap();
    assert_eq!(ledger.data_tag(&[10; 32], &keys, &people).unwrap(), tag);
}

fn sketch(key: u8, people: std::ops::Range<u32>) -> data::sketch::Sketch {
    let mut all = data::RowKeys::new(1);
    people.for_each(|i| all.push(format!("person {i}").as_bytes()));
    let rows = data::Rows::Program(data::ProgramRows { identifiers: all, ..Default::default() });
    data::sketch::Sketch::all(&Seed::from_bytes([key; 32]), &rows.into()).unwrap()[0]
}

/// A ledger with a row in most tables.
fn filled(path: &Path) -> Ledger {
    let mut ledger = Ledger::open(path).unwrap();
    let key = "key-of-registry";
    let period = Some(Period { seconds: 86_400, budget: ratio(1, 1) });
    ledger.debit(&Debit { period, ..debit(1, ratio(1, 2), ratio(1, 1)) }).unwrap();
    ledger.bar(&[1; 32], &towards(), "x").unwrap();
    ledger.allow(key, None, "x").unwrap();
    ledger.begin_attempt(&[1; 32], 1, key).unwrap();
    ledger.store_outputs(&[1; 32], 0, key, &[1, 2]).unwrap();
    ledger.store_answer(&answer(), &[key], "{}").unwrap();
    ledger.save_transcript(&[1; 32], CutAndChooseSide::Drawer, &towards(), committed().transcript()).unwrap();
    ledger.keep_sketch("hospitals", &sketch(1, 0..120), None).unwrap();
    ledger.begin_match(&[4; 32], &|_| Ok(Vec::new())).unwrap();
    ledger.hold(&[9; 32], &share(1), key, "hospitals").unwrap();
    pay(&mut ledger, &debit(9, ratio(1, 8), ratio(1, 1)), 9, 0).unwrap();
    assert_eq!(ledger.give_back(key, "hospitals", &[]).unwrap(), 1);
    let [old, new] = [0; 2].map(|_| net::Identity::generate().unwrap());
    ledger.succeed(&net::Succession::sign(&old, &new).unwrap()).unwrap();
    ledger.begin_run((key, "registry"), &[1; 32], None).unwrap();
    ledger
}

/// A share of the number so named.
fn share(number: u8) -> HeldShare {
    let (share, commitments) = (vec![number; 3].into(), vec![[number; 32]; 2]);
    HeldShare { number: [number; 32], attempt: 0, share, salt: [7; 32], commitments, tau: None }
}

const FILLED: [&str; 14] = [
    "debits",
    "voids",
    "bars",
    "allows",
    "attempts",
    "outputs",
    "answers",
    "transcripts",
    "chain",
    "sketches",
    "matches",
    "successions",
    "signatures",
    "runs",
];

#[test]
fn nothing_is_changed_or_deleted() {
    let folder = folder();
    let path = folder.path().join("l");
    let ledger = filled(&path);
    // Not through this crate: the triggers are in the file.
    let raw = Connection::open(&path).unwrap();
    for table in FILLED {
        for statement in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET row = 100")] {
            let error = raw.execute(&statement, []).unwrap_err().to_string();
            assert!(error.contains("the ledger only grows"), "{statement}: {error}");
        }
    }
    assert!(ledger.connection.execute(CHEAPER, []).is_err());
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 2));
}

/// Makes every debit a millionth.
const CHEAPER: &str = "INSERT OR REPLACE INTO debits SELECT row, at, release, attempt, lineage, viewer, \
                       peer, study, my_tag, peer_tag, '1/1000000', budget, protects, delta, tau, period, \
                       period_budget FROM debits";

/// Triggers are gone around by a connection with SQLite's own defaults. The chains find what was done.
#[test]
fn what_goes_around_the_triggers_is_named() {
    let cases = [
        ("INSERT OR REPLACE", CHEAPER.to_owned(), "row 1 of debits (entry 1) was changed"),
        (
            "DELETE",
            "DROP TRIGGER bars_DELETE; DELETE FROM bars".to_owned(),
            "row 1 of bars (entry 2) is missing",
        ),
        (
            "a row of one's own",
            "INSERT INTO allows VALUES (7, 1, 'key-of-registry', '', 9, 9, 'mine', 9)".to_owned(),
            "row 7 of allows was added",
        ),
        (
            "a link",
            "DROP TRIGGER chain_DELETE; DELETE FROM chain WHERE count = 3".to_owned(),
            "entry 3 is missing of the chain with key-of-registry",
        ),
    ];
    for (what, statements, expected) in cases {
        let folder = folder();
        let path = folder.path().join("l");
        let ledger = filled(&path);
        let sound = ledger.verify().unwrap();
        assert_eq!((sound.len(), &*sound[0].peer, sound[0].count), (2, "key-of-registry", 10));
        let raw = Connection::open(&path).unwrap();
        raw.execute_batch(&statements).unwrap_or_else(|e| panic!("{what}: {e}"));
        let error = text(ledger.verify());
        assert!(error.contains(expected), "{what}: {error}");
        assert!(error.contains("tacit ledger recover"), "{error}");
    }
}

/// Every row of every table is in a chain: each one that is changed is found.
#[test]
fn every_table_is_in_the_chains() {
    for (table, columns) in super::chain::LINKED {
        let folder = folder();
        let path = folder.path().join("l");
        let mut ledger = filled(&path);
        let identity = net::identity::Identity::generate().unwrap();
        let own = identity.fingerprint();
        let statement = ledger.statement(&identity, own).unwrap();
        ledger.met(&towards(), own, &statement, &None, &[0; 32]).unwrap();
        let later = Statement::sign(
            &identity,
            own,
            ChainHead { count: 9, hash: [1; 32] },
            9,
            (&ratio(1, 1), &ratio(0, 1)),
        );
        assert!(ledger.claim(&later.unwrap(), own, own).unwrap().is_some());
        ledger.verify().unwrap();
        for column in columns.split(", ").skip(1) {
            let raw = Connection::open(&path).unwrap();
            let value = format!("SELECT typeof({column}) FROM {table} WHERE row = 1");
            let kind: String = raw.query_row(&value, [], |row| row.get(0)).unwrap();
            let other = match kind.as_str() {
                "text" => format!("{column} || 'x'"),
                "blob" => format!("CAST({column} || x'00' AS BLOB)"),
                _ => format!("{column} + 1"),
            };
            let update = format!(
                "SAVEPOINT s; DROP TRIGGER {table}_UPDATE; UPDATE {table} SET {column} = {other} WHERE row = \
                 1"
            );
            raw.execute_batch(&update).unwrap_or_else(|e| panic!("{update}: {e}"));
            let walked = super::chain::walk(&raw, &peer_of(&raw, table)).unwrap();
            assert!(walked.wrong.is_some(), "{table}.{column}");
            raw.execute_batch("ROLLBACK TO s; RELEASE s").unwrap();
        }
    }
}

fn peer_of(connection: &Connection, table: &str) -> String {
    let sql = "SELECT peer FROM chain WHERE source = ?1 AND item = 1";
    connection.query_row(sql, [table], |row| row.get(0)).unwrap()
}

#[cfg(unix)]
#[test]
fn only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let path = folder.path().join("l");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    Ledger::open(&path).unwrap();
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(!Ledger::open(&path).unwrap().is_new());
    assert_eq!(mode(), 0o600);
}

#[test]
fn other_files_are_refused_and_left_alone() {
    let folder = folder();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "these are my notes, ".repeat(100)).unwrap();
    assert!(text(Ledger::open(&path)).contains("is not a privacy ledger"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "these are my notes, ".repeat(100));
    let other = folder.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(text(Ledger::open(&other)).contains("is not a privacy ledger"));
    let empty = folder.path().join("empty");
    std::fs::write(&empty, "").unwrap();
    assert!(text(Ledger::open(&empty)).contains("put back a backup"));
    let newer = folder.path().join("newer");
    Ledger::open(&newer).unwrap().connection.pragma_update(None, "user_version", VERSION + 1).unwrap();
    let error = text(Ledger::open(&newer));
    assert!(error.contains(&format!("format {}, written by a newer tacit", VERSION + 1)), "{error}");
    let nowhere = folder.path().join("no/such/folder");
    assert!(text(Ledger::open(&nowhere)).contains("cannot create the ledger"));
    // Damage after the first page.
    let damaged = folder.path().join("damaged");
    drop(Ledger::open(&damaged).unwrap());
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[4096..].fill(0xa5);
    std::fs::write(&damaged, bytes).unwrap();
    let outcome = Ledger::open(&damaged).and_then(|mut l| l.debit(&debit(1, ratio(1, 2), ratio(1, 1))));
    assert!(text(outcome).contains("damaged"));
}

#[test]
fn two_handles_never_overspend() {
    let folder = folder();
    let path = Arc::new(folder.path().join("l"));
    let start = Arc::new(Barrier::new(4));
    let threads: Vec<_> = (0..4u8)
        .map(|thread| {
            let (path, start) = (path.clone(), start.clone());
            std::thread::spawn(move || {
                // All four also race to make the file.
                start.wait();
                let mut ledger = Ledger::open(&path).unwrap();
                let one = |i: u8| ledger.debit(&debit(20 * thread + i, ratio(1, 10), ratio(1, 1))).is_ok();
                (0..5).map(one).filter(|ok| *ok).count()
            })
        })
        .collect();
    let granted: usize = threads.into_iter().map(|t| t.join().unwrap()).sum();
    assert_eq!(granted, 10);
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 1));
}

#[test]
fn a_held_ledger_says_by_whom() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut waiting = Ledger::open_waiting(&path, Duration::from_millis(50)).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = text(waiting.debit(&debit(1, ratio(1, 2), ratio(1, 1))));
    #[cfg(target_os = "linux")]
    assert!(error.contains(&format!("process {} holds it; wait", std::process::id())), "{error}");
    assert!(error.contains("holds it; wait for that run to end"), "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    waiting.debit(&debit(1, ratio(1, 2), ratio(1, 1))).unwrap();
}

#[test]
fn a_full_disk_charges_nothing() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path).unwrap();
    let pages: i64 = ledger.connection.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
    ledger.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
    let mut granted = 0;
    let error = loop {
        match ledger.debit(&debit(granted, ratio(1, 1000), ratio(1, 1))) {
            Ok(_) => granted += 1,
            Err(error) => break error,
        }
    };
    let shown = path.display();
    assert!(matches!(error.kind(), Fault::Io(_)));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot debit the ledger {shown}: the disk is full; nothing was recorded: free some space and \
             run again"
        )
    );
    assert_eq!(ledger.spent("hospitals", "key-of-registry").unwrap(), ratio(granted, 1000));
    // With room again, it goes on.
    ledger.connection.pragma_update_and_check(None, "max_page_count", 1000, |_| Ok(())).unwrap();
    ledger.debit(&debit(granted, ratio(1, 1000), ratio(1, 1))).unwrap();
}

/// What a dead process leaves is what is in its files at that moment.
#[test]
fn a_crash_keeps_what_was_committed_and_nothing_else() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path).unwrap();
    ledger.debit(&debit(1, ratio(1, 4), ratio(1, 1))).unwrap();
    // The charge is in the file when the call returns: a copy made now has it.
    let copy = |name: &str| {
        let to = folder.path().join(name);
        std::fs::copy(&path, &to).unwrap();
        let journal = folder.path().join("l-journal");
        if journal.exists() {
            std::fs::copy(journal, folder.path().join(format!("{name}-journal"))).unwrap();
        }
        to
    };
    let open = |name: &str| Ledger::open(&copy(name)).unwrap();
    assert_eq!(open("after").spent("hospitals", "key-of-registry").unwrap(), ratio(1, 4));
    // Half a transaction, so large that part of it is in the file already.
    ledger.connection.pragma_update(None, "cache_size", 2).unwrap();
    let before = std::fs::metadata(&path).unwrap().len();
    ledger.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    for release in 2..200u8 {
        let sql = "INSERT INTO debits SELECT NULL, at, ?1, attempt, lineage, viewer, peer, zeroblob(4000), \
                   my_tag, peer_tag, \
                   rho, budget, protects, delta, tau, period, period_budget FROM debits WHERE row = 1";
        ledger.connection.execute(sql, [[release; 32]]).unwrap();
    }
    assert!(
        std::fs::metadata(&path).unwrap().len() > before,
        "the pages have to reach the file for this test"
    );
    // Who only looks finds the same.
    let seen = Ledger::look(&copy("looked at")).unwrap();
    assert_eq!(seen.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 4));
    let mut crashed = open("during");
    assert_eq!(crashed.spent("hospitals", "key-of-registry").unwrap(), ratio(1, 4));
    crashed.debit(&debit(2, ratio(3, 4), ratio(1, 1))).unwrap();
    // A process that ends without a commit, too.
    drop(ledger);
    assert_eq!(Ledger::open(&path).unwrap().spent("hospitals", "key-of-registry").unwrap(), ratio(1, 4));
}

fn answer() -> AnswerKey {
    AnswerKey { study: [1; 32], program: [2; 32], my_tag: [3; 32], peer_tag: [4; 32], party: PartyId(0) }
}

#[test]
fn the_first_answer_stays() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.answer(&answer()).unwrap(), None);
    ledger.store_answer(&answer(), &["p"], "{\"lift\": 1}").unwrap();
    ledger.store_answer(&answer(), &["p"], "{\"lift\": 2}").unwrap();
    let ledger = Ledger::open(&path).unwrap();
    assert_eq!(ledger.answer(&answer()).unwrap().as_deref(), Some("{\"lift\": 1}"));
    let named = "{\"study\": {\"name\": \"hubs\"}, \"privacy\": {\"rho\": \"0\"}}";
    let mut listed = Ledger::open(&path).unwrap();
    listed.store_answer(&AnswerKey { study: [7; 32], ..answer() }, &["p"], named).unwrap();
    let shown: Vec<_> = listed.answers().unwrap().into_iter().map(|a| (a.name, a.exact)).collect();
    assert_eq!(shown, [(String::new(), false), ("hubs".to_owned(), true)]);
    let others = [
        AnswerKey { study: [9; 32], ..answer() },
        AnswerKey { program: [9; 32], ..answer() },
        AnswerKey { my_tag: [9; 32], ..answer() },
        AnswerKey { peer_tag: [9; 32], ..answer() },
        AnswerKey { party: PartyId(1), ..answer() },
    ];
    assert!(others.iter().all(|key| ledger.answer(key).unwrap().is_none()));
}

fn context(release: u8) -> NoiseContext {
    NoiseContext {
        study: [1; 32],
        release: [release; 32],
        session: [1; 32],
        data: vec![[2; 32], [3; 32]],
        viewer: PartyId(0),
        drawer: PartyId(1),
    }
}

fn committed() -> Drawer {
    let context = context(1);
    let setup = Setup::new(context, vec![Draw { sigma2: ratio(9, 1), width: 12 }], 4).unwrap();
    Drawer::commit(setup, &mut base::Seed::from_bytes([7; 32]).into_rng()).0
}

#[test]
fn a_transcript_only_goes_forward() {
    let folder = folder();
    let path = folder.path().join("l");
    let mut ledger = Ledger::open(&path).unwrap();
    let release = [1; 32];
    let drawer = committed();
    ledger.save_transcript(&release, CutAndChooseSide::Drawer, &towards(), drawer.transcript()).unwrap();
    // A second run of the same release would make other seeds.
    assert!(
        text(ledger.save_transcript(
            &release,
            CutAndChooseSide::Drawer,
            &towards(),
            committed().transcript()
        ))
        .contains("another run")
    );
    let committed_record = ledger.transcript(&release, CutAndChooseSide::Drawer).unwrap().unwrap();
    let drawn = drawer.draw(&[5; 128]).unwrap();
    ledger.save_transcript(&release, CutAndChooseSide::Drawer, &towards(), drawn.transcript()).unwrap();
    assert!(
        ledger.save_transcript(&release, CutAndChooseSide::Drawer, &towards(), &committed_record).is_err()
    );
    let mut ledger = Ledger::open(&path).unwrap();
    let latest = ledger.transcript(&release, CutAndChooseSide::Drawer).unwrap().unwrap();
    assert_eq!(latest.shared_digest(), drawn.transcript().shared_digest());
    assert_eq!(TranscriptStage::of(&latest), TranscriptStage::Seeded);
    let first = ledger
        .transcript_at(&release, CutAndChooseSide::Drawer, TranscriptStage::Committed)
        .unwrap()
        .unwrap();
    assert_eq!(first.shared_digest(), committed_record.shared_digest());
    assert!(ledger.transcript(&release, CutAndChooseSide::Checker).unwrap().is_none());
    // A new attempt starts without a transcript, and outputs end it for good.
    ledger.begin_attempt(&release, 1, "key-of-registry").unwrap();
    assert!(ledger.transcript(&release, CutAndChooseSide::Drawer).unwrap().is_none());
    ledger.store_outputs(&release, 0, "key-of-registry", &[0, u128::MAX]).unwrap();
    assert_eq!(ledger.outputs(&release).unwrap(), Some(vec![0, u128::MAX]));
    ledger.store_outputs(&release, 0, "key-of-registry", &[7]).unwrap();
    assert_eq!(ledger.outputs(&release).unwrap(), Some(vec![0, u128::MAX]));
}

/// Who leaves after the seeds, again and again with other data, picks among honest noises: the viewer asks
/// its operator.
#[test]
fn releases_that_stop_after_the_seeds_are_counted() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let record = |ledger: &mut Ledger, release: u8| {
        let setup = Setup::new(context(release), vec![Draw { sigma2: ratio(9, 1), width: 12 }], 4).unwrap();
        let mut rng = base::Seed::from_bytes([release; 32]).into_rng();
        let (_, commitments) = Drawer::commit(setup.clone(), &mut rng);
        let (checker, _) = release::choose::Checker::new(setup, &commitments, &mut rng).unwrap();
        ledger
            .save_transcript(&[release; 32], CutAndChooseSide::Checker, &towards(), checker.transcript())
            .unwrap();
    };
    record(&mut ledger, 1);
    assert_eq!(ledger.barred(&towards(), &[([2; 32], 0)]).unwrap(), None);
    record(&mut ledger, 2);
    // The one that goes on is not counted.
    assert_eq!(ledger.barred(&towards(), &[([2; 32], 0)]).unwrap(), None);
    let reason = ledger.barred(&towards(), &[([3; 32], 0)]).unwrap().unwrap();
    assert!(reason.starts_with("2 attempts at releases stopped after the seeds"), "{reason}");
    assert_eq!(
        ledger.broken_off("key-of-registry").unwrap(),
        PeerRecord { releases: 2, ..PeerRecord::default() }
    );
    ledger.allow("key-of-registry", None, "asked them").unwrap();
    assert_eq!(ledger.barred(&towards(), &[([3; 32], 0)]).unwrap(), None);
    assert_eq!(ledger.broken_off("key-of-registry").unwrap().releases, 2);
}

/// What a peer gives back counts where this party's own key signed it towards that peer, and it says more
/// than the ledger.
#[test]
fn only_an_own_signature_is_a_claim() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let [own, peer, other] = [0; 3].map(|_| net::identity::Identity::generate().unwrap());
    let zero = ratio(0, 1);
    let said = |by: &net::identity::Identity, to: &net::identity::Identity, count, at| {
        let head = ChainHead { count, hash: [count as u8; 32] };
        Statement::sign(by, to.fingerprint(), head, at, (&ratio(1, 2), &zero)).unwrap()
    };
    let (me, them) = (own.fingerprint(), peer.fingerprint());
    for foreign in [said(&peer, &own, 9, 5), said(&other, &peer, 9, 5), said(&own, &other, 9, 5)] {
        assert_eq!(ledger.claim(&foreign, me, them).unwrap(), None);
    }
    // What fits the chain is none either.
    let fits = ledger.statement(&own, them).unwrap();
    assert_eq!(ledger.claim(&fits, me, them).unwrap(), None);
    assert!(ledger.claims().unwrap().is_empty());
    let claim = said(&own, &peer, 9, 5);
    assert_eq!(ledger.claim(&claim, me, them).unwrap(), Some(claim.clone()));
    assert_eq!(ledger.claims().unwrap(), [(them.to_string(), claim.clone())]);
    // Settled by the operator: older ones count no longer, later ones do.
    ledger.settle(&them.to_string(), &claim).unwrap();
    assert_eq!(ledger.claim(&said(&own, &peer, 8, 4), me, them).unwrap(), None);
    assert!(ledger.claims().unwrap().is_empty());
    let later = said(&own, &peer, 20, u64::from(u32::MAX));
    assert_eq!(ledger.claim(&later, me, them).unwrap(), Some(later.clone()));
    ledger.verify().unwrap();
}

/// Chains fit all the same: a debit beyond its budget that was written with its link, and a trigger that was
/// taken away and changed nothing yet.
#[test]
fn a_debit_beyond_its_budget_and_a_missing_trigger_are_found() {
    let folder = folder();
    let path = folder.path().join("l");
    let ledger = filled(&path);
    ledger.check_triggers().unwrap();
    let mut rows = ledger.entries().unwrap();
    check_budgets(&rows).unwrap();
    let more = EntryRow { row: 99, exact_rho: "51/100".to_owned(), ..rows[0].clone() };
    rows.push(more);
    let error = check_budgets(&rows).unwrap_err();
    assert!(
        error.starts_with("debit 99 brings what") && error.ends_with("to 1.01, of 1 that it may be"),
        "{error}"
    );
    Connection::open(&path).unwrap().execute_batch("DROP TRIGGER voids_UPDATE").unwrap();
    ledger.verify().unwrap();
    let error = text(ledger.check_triggers());
    assert!(error.contains("its trigger voids_UPDATE is not there"), "{error}");
}

/// The same rows towards two peers, and in two ledgers, have heads that nobody can compare; one peer's do not
/// move another's.
#[test]
fn chains_tell_one_peer_nothing_of_another() {
    let folder = folder();
    let [mut a, mut b] = ["a", "b"].map(|name| Ledger::open(&folder.path().join(name)).unwrap());
    for ledger in [&mut a, &mut b] {
        ledger.debit(&debit(1, ratio(1, 2), ratio(1, 1))).unwrap();
    }
    let head = |ledger: &Ledger, peer: &str| ledger.chain(peer).unwrap();
    assert_eq!(head(&a, "key-of-registry").count, 1);
    assert_ne!(head(&a, "key-of-registry").hash, head(&b, "key-of-registry").hash);
    let before = head(&a, "key-of-registry");
    let other =
        Debit { viewer_key: "other".into(), peer_key: "other".into(), ..debit(2, ratio(1, 2), ratio(1, 1)) };
    a.debit(&other).unwrap();
    assert_eq!((head(&a, "key-of-registry"), head(&a, "other").count), (before, 1));
}

#[test]
fn peers_are_found_by_the_beginning_of_their_keys() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    assert!(text(ledger.peer_by("a")).contains("knows no peer yet"));
    for (release, key) in (1..).zip(["tacit1:aabb", "tacit1:aacc"]) {
        let towards = PeerLineage { peer: key.into(), lineage: "x".into() };
        ledger.bar(&[release; 32], &towards, "x").unwrap();
    }
    assert_eq!(ledger.peer_by("tacit1:aab").unwrap(), "tacit1:aabb");
    assert_eq!(ledger.peer_by("aac").unwrap(), "tacit1:aacc");
    assert!(text(ledger.peer_by("aa")).contains("several peers"));
    assert!(text(ledger.peer_by("ff")).contains("it knows tacit1:aabb, tacit1:aacc"));
}

#[test]
fn a_backup_is_whole_private_and_replaces_nothing() {
    let folder = folder();
    let (path, copy) = (folder.path().join("l"), folder.path().join("copy"));
    let ledger = filled(&path);
    ledger.backup(&copy).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    }
    assert!(text(ledger.backup(&copy)).contains("never replaces a file"));
    assert!(text(ledger.backup(&folder.path().join("no/copy"))).contains("cannot write the backup"));
    let copied = Ledger::open(&copy).unwrap();
    assert_eq!(copied.verify().unwrap(), ledger.verify().unwrap());
    assert_eq!(copied.entries().unwrap(), ledger.entries().unwrap());
}

#[test]
fn deltas_add_up_to_a_bound_of_their_own() {
    let folder = folder();
    let mut ledger = Ledger::open(&folder.path().join("l")).unwrap();
    let nano = |n: u64| ratio(n, 1_000_000_000u64);
    let with =
        |release, delta| Debit { delta, most_delta: nano(3), ..debit(release, ratio(1, 100), ratio(1, 1)) };
    for release in 0..3 {
        assert!(!ledger.is_charged(&with(release, nano(1))).unwrap());
        ledger.debit(&with(release, nano(1))).unwrap();
        assert!(ledger.is_charged(&with(release, nano(1))).unwrap());
    }
    assert_eq!(ledger.spent_delta("hospitals", "key-of-registry").unwrap(), nano(3));
    assert_eq!(
        text(ledger.debit(&with(3, ratio(12, 100_000_000_000u64)))),
        "delta: 3·10⁻⁹ of 3·10⁻⁹ spent on lineage hospitals by viewer key-of-registry; this match needs \
         1.2·10⁻¹⁰: raise policy.delta, or agree on a smaller delta of match.dummies"
    );
    // What has no delta is not concerned, and what is charged already stays so.
    ledger.debit(&debit(4, ratio(1, 100), ratio(1, 1))).unwrap();
    ledger.debit(&Debit { most_delta: nano(1), ..with(0, nano(1)) }).unwrap();
    assert_eq!(ledger.entries().unwrap()[0].delta, "1e-9");
}

#[test]
fn dummies_are_the_same_for_the_same_data_of_all_and_nobody_elses() {
    let folder = folder();
    let [a, b] = ["a", "b"].map(|name| Ledger::open(&folder.path().join(name)).unwrap());
    let seed = |ledger: &Ledger, study, tags: &[Bytes32]| {
        *ledger.dummies_seed(&[study; 32], tags, None).unwrap().expose()
    };
    let tags = [[2; 32], [3; 32]];
    assert_eq!(seed(&a, 1, &tags), seed(&a, 1, &tags));
    let others =
        [seed(&a, 1, &tags), seed(&b, 1, &tags), seed(&a, 2, &tags), seed(&a, 1, &[[2; 32], [4; 32]])];
    assert!((0..4).all(|i| (0..i).all(|j| others[i] != others[j])));
    assert_ne!(match_id(&[1; 32], &tags, PartyId(0)), release_id(&[1; 32], &tags, PartyId(0).into()));
    assert_ne!(match_id(&[1; 32], &tags, PartyId(0)), match_id(&[1; 32], &tags, PartyId(1)));
}
