//! Studies of three parties and more, and lift with several advertisers: threads of one process, TLS on
//! loopback.

mod common;

use base::Error;
use base::free_address;
use common::parties::{PartyFile, make_key};
use common::{ALIGNED, CLINICS, DISTRICTS, cases, total, write_clinics};
use data::generate::{FileFormat, LiftOptions, lift};
use job::plan::{BillTerms, plan_priced};
use job::prepare::Opened;
use job::run::{Event, Watch, run, run_parts};
use privacy::ledger::{Ledger, PUBLIC};
use report::{ResultView, RunReport};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use store::{StateStore, StoreOptions};
use study::party::{Address, PartySetup};
use tempfile::TempDir;

const SEVERAL: &str = include_str!("../../../examples/lift-several.toml");

/// Writes a study with real keys of these parties, in the order in which the text names them.
fn with_keys(folder: &Path, names: &[&str], mut text: String) {
    for (name, digit) in names.iter().zip(["1", "2", "3", "4"]) {
        text = text.replace(&format!("tacit1:{}", digit.repeat(32)), &make_key(folder, name));
    }
    std::fs::write(folder.join("study.toml"), text).unwrap();
}

/// An owner that waits at `listen`, where it is given, and knows these peers.
fn party(folder: &Path, name: &str, listen: Option<&str>, peers: &[(&str, &str)]) -> PartySetup {
    let listen = listen.map(|at| format!("listen = \"{at}\"")).unwrap_or_default();
    PartyFile::owner(folder, name)
        .with(&listen)
        .peers(peers.iter().copied())
        .policy("kinds = [\"lift\", \"program\"]\nallow_exact = true")
        .setup()
}

/// Three parties with their own orders of the same districts.
fn clinics(edit: &dyn Fn(String) -> String) -> (TempDir, Vec<PartySetup>) {
    let folder = TempDir::new().unwrap();
    with_keys(folder.path(), &CLINICS, edit(ALIGNED.to_owned()));
    write_clinics(folder.path());
    let [east, north, west] = [0; 3].map(|_| free_address().unwrap());
    let parties = vec![
        party(folder.path(), "east", Some(&east), &[]),
        party(folder.path(), "north", Some(&north), &[("east", &east), ("west", &west)]),
        party(folder.path(), "west", None, &[("east", &east), ("north", &north)]),
    ];
    (folder, parties)
}

fn all(parties: &[PartySetup], watch: impl Fn(usize) -> Watch + Sync) -> Vec<Result<RunReport, Error>> {
    let watch = &watch;
    std::thread::scope(|scope| {
        let start = |(i, party)| scope.spawn(move || run(party, &watch(i)));
        let threads: Vec<_> = parties.iter().enumerate().map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

#[test]
fn three_parties_run_a_program_over_aligned_rows() {
    let (_folder, parties) = clinics(&|s| s);
    let reports: Vec<RunReport> = all(&parties, |_| Watch::none()).into_iter().map(Result::unwrap).collect();
    let hits: Vec<usize> = (0..DISTRICTS).filter(|d| total(*d) > 99).collect();
    let worst = *hits.iter().max_by_key(|d| (total(**d), std::cmp::Reverse(**d))).unwrap();
    let sum: u64 = (0..DISTRICTS).map(total).sum();
    let seen = |report: &RunReport| match &report.view {
        ResultView::Program { outputs, lists, .. } => (outputs.clone(), lists.clone()),
        ResultView::Lift(_) => panic!("a program has no lift view"),
    };
    let ([east, north, west], names) = ([0, 1, 2].map(|i| seen(&reports[i])), |d: usize| format!("d{d:03}"));
    let values = |outputs: &[report::ProgramOutput]| -> Vec<String> {
        outputs.iter().map(|output| output.value.clone()).collect()
    };
    assert_eq!(values(&east.0), [sum.to_string(), hits.len().to_string()]);
    assert_eq!(values(&north.0), [hits.len().to_string()]);
    assert_eq!(north.1[0].keys, hits.iter().map(|d| names(*d)).collect::<Vec<_>>());
    assert_eq!(values(&west.0)[0], "1");
    assert_eq!(west.0[1].key.as_deref(), Some(&*names(worst)));
    assert!(east.1.is_empty() && west.1.is_empty());
    for report in &reports {
        assert_eq!((&*report.engine, &report.settings), ("gmw", &reports[0].settings));
        assert!(report.settings.contains(" circuit: measured ") && report.stages[0].name == "link");
        assert_eq!((report.disclosed.rows.len(), report.disclosed.public_keys), (3, true));
        for stage in &report.stages {
            assert!(stage.price_held, "{}: {stage:?}", report.party);
        }
        assert!(report.guarantee.iter().any(|line| line.contains("public to all parties")));
        let page = report::html::render(report);
        assert!(page.contains("sent by west"), "every party has its bytes");
    }
    // The stored answers, without another run.
    let again = all(&parties, |_| Watch::none());
    assert!(again.into_iter().all(|report| report.unwrap().stored));
}

/// The same program when nobody may know which districts the others have: matched in private, made-up rows
/// included. A district counts as soon as one party has it: where another has not, it adds no cases.
#[test]
fn three_parties_run_a_program_over_privately_matched_rows() {
    privately_matched(false);
}

/// The same where two of them have their rows in their state.
#[test]
fn three_parties_match_rows_that_lie_in_their_state() {
    privately_matched(true);
}

fn privately_matched(in_state: bool) {
    let (folder, mut parties) = clinics(&|s| {
        let own = |s: String, letter: &str, party: &str| {
            let column = format!("{letter}0 = column cases_{party}\n");
            let here = format!(
                "{letter}1 = column cases_{party}\n{letter}2 = present {party}\n{letter}0 = select {letter}2 \
                 {letter}1 no\n"
            );
            assert!(s.contains(&column));
            s.replace(&column, &here)
        };
        let s = s.replace("\"aligned\"", "\"pid\"").replace("rows aligned", "rows any");
        let s = s.replace("\nrow\n", "\nrow\nno = const 0 u16\n");
        own(own(own(s, "e", "east"), "n", "north"), "w", "west")
    });
    const WEST: usize = 250;
    let rows: String = (0..WEST).map(|d| format!("d{d:03},{}\n", cases(2, d))).collect();
    std::fs::write(folder.path().join("west.csv"), format!("district,patients\n{rows}")).unwrap();
    for party in parties.iter_mut().take(if in_state { 2 } else { 0 }) {
        let state = folder.path().join(format!("{}-state", party.as_party));
        (party.state, party.spool) = (Some(state.display().to_string()), true);
    }
    let done = all(&parties, |_| Watch::none());
    let reports: Vec<RunReport> = done.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
    let total = |d: usize| total(d) - if d < WEST { 0 } else { cases(2, d) };
    let hits: Vec<String> = (0..DISTRICTS).filter(|d| total(*d) > 99).map(|d| format!("d{d:03}")).collect();
    let seen = |report: &RunReport| match &report.view {
        ResultView::Program { outputs, lists, .. } => (outputs.clone(), lists.clone()),
        ResultView::Lift(_) => panic!("a program has no lift view"),
    };
    let (east, north) = (seen(&reports[0]), seen(&reports[1]));
    assert_eq!(east.0[0].value, (0..DISTRICTS).map(total).sum::<u64>().to_string());
    assert_eq!(east.0[1].value, hits.len().to_string());
    let mut keys = north.1[0].keys.clone();
    keys.sort();
    assert_eq!((keys, north.1[0].others), (hits, 0));
    for (report, party) in reports.iter().zip(&parties) {
        if let Some(state) = &party.state {
            assert_eq!(report.inputs.memory, 0, "no columns are held");
            let state = StateStore::open(state, &StoreOptions::default()).unwrap();
            assert!(state.list("").unwrap().is_empty());
        }
        let told = &report.disclosed;
        assert!(told.dummies.is_some() && !told.public_keys && told.union > DISTRICTS as u64, "{told:?}");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        // Towards both peers.
        let ledger = Ledger::open(&folder.path().join(format!("{}.ledger", report.party))).unwrap();
        assert_eq!(ledger.entries().unwrap().len(), 2);
        // The report says it of each, delta included.
        let spent = &report.privacy.viewers;
        assert!(spent.len() == 2 && spent.iter().all(|s| s.rho == 0.01 && s.delta != "0"), "{spent:?}");
        assert!(report.privacy.spent == 0.01);
        let text = report::summary::terminal(report, report::summary::USUAL_COLUMNS);
        assert_eq!(text.matches("  ledger    after this result, spent by ").count(), 2, "{text}");
    }
}

/// Without a word the rows are those that all three have, as if the files held no others.
#[test]
fn three_parties_count_the_rows_that_all_of_them_have() {
    let (folder, parties) = clinics(&|s| s.replace("\"aligned\"", "\"pid\"").replace("rows aligned\n", ""));
    const NORTH: usize = 40;
    const WEST: usize = 250;
    let file = |name: &str, column: &str, districts: std::ops::Range<usize>| {
        let group = CLINICS.iter().position(|clinic| *clinic == name).unwrap();
        let rows: String = districts.map(|d| format!("d{d:03},{}\n", cases(group, d))).collect();
        std::fs::write(folder.path().join(format!("{name}.csv")), format!("district,{column}\n{rows}"))
            .unwrap();
    };
    file("north", "cases", NORTH..DISTRICTS);
    file("west", "patients", 0..WEST);
    let done = all(&parties, |_| Watch::none());
    let reports: Vec<RunReport> = done.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
    let hits: Vec<String> = (NORTH..WEST).filter(|d| total(*d) > 99).map(|d| format!("d{d:03}")).collect();
    let (east, (_, mut keys, _)) = (common::outputs(&reports[0]), common::outputs(&reports[1]));
    assert_eq!(east.0, [(NORTH..WEST).map(total).sum::<u64>().to_string(), hits.len().to_string()]);
    keys.sort();
    assert_eq!(keys, hits);
    assert!(reports.iter().flat_map(|report| &report.stages).all(|stage| stage.price_held));
}

/// Two parties may run what three can: best rows and lists, at the stated price of bytes, gates and
/// transfers.
#[test]
fn two_parties_find_the_best_row_of_aligned_rows() {
    let two = |s: String| {
        let cut = |s: String, from: &str, to: &str| {
            let (a, b) = (s.find(from).unwrap(), s.find(to).unwrap());
            format!("{}{}", &s[..a], &s[b..])
        };
        let s = cut(s, "[party.west]", "[match]");
        let s = cut(s, "cases_west  =", "[program]");
        let s = s.replace("party west\n", "").replace("column cases_west u16 west\n", "");
        let s = s.replace("w0 = column cases_west\nw = cast w0 u20\n", "").replace("sum = add en w\n", "");
        let s = s.replace("en = add e n", "sum = add e n").replace(" west \"", " east \"");
        s.replace("engine  = \"gmw\"", "engine  = \"auto\"")
    };
    let (_folder, mut parties) = clinics(&two);
    parties.truncate(2);
    let Address::Listen(east) = parties[0].address.clone() else { panic!("east listens") };
    parties[1].address = Address::Peer(east);
    let reports: Vec<RunReport> = all(&parties, |_| Watch::none()).into_iter().map(Result::unwrap).collect();
    let total = |d: usize| cases(0, d) + cases(1, d);
    let hits: Vec<usize> = (0..DISTRICTS).filter(|d| total(*d) > 99).collect();
    let worst = *hits.iter().max_by_key(|d| (total(**d), std::cmp::Reverse(**d))).unwrap();
    let ResultView::Program { outputs, .. } = &reports[0].view else { panic!("a program view") };
    assert_eq!(outputs[3].key.as_deref(), Some(&*format!("d{worst:03}")));
    let ResultView::Program { lists, .. } = &reports[1].view else { panic!("a program view") };
    assert_eq!(lists[0].keys.len(), hits.len());
    for stage in reports.iter().flat_map(|report| &report.stages) {
        assert!(stage.price_held, "{stage:?}");
    }
}

#[test]
fn rows_that_are_not_aligned_are_named_by_party_and_never_by_key() {
    let (folder, parties) = clinics(&|s| s);
    let path = folder.path().join("north.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}secretville,3\n")).unwrap();
    let errors: Vec<String> =
        all(&parties, |_| Watch::none()).into_iter().map(|r| r.unwrap_err().to_string()).collect();
    assert!(
        errors[0].contains("this party has 300 rows, north has 301 rows; all files must hold"),
        "{errors:?}"
    );
    assert!(errors[1].contains("301 rows, east has 300 rows, west has 300 rows"), "{errors:?}");
    std::fs::write(&path, text.replace("d007,", "secretville,")).unwrap();
    let errors: Vec<String> =
        all(&parties, |_| Watch::none()).into_iter().map(|r| r.unwrap_err().to_string()).collect();
    assert!(errors[2].contains("north has as many rows, but other identifiers"), "{errors:?}");
    assert!(!errors.concat().contains("secretville"));
}

#[test]
fn everybody_must_allow_exact_results() {
    let (_folder, mut parties) = clinics(&|s| s);
    parties[1].policy.allow_exact = false;
    let error = job::run::check(&parties[1]).err().unwrap().to_string();
    assert!(error.contains("R6 (exact)"), "{error}");
}

#[test]
fn what_more_parties_cannot_do_is_said_before_anything_is_sent() {
    let refused = |from: &str, to: &str| {
        let (_folder, parties) = clinics(&|s| {
            assert!(s.contains(from));
            s.replacen(from, to, 1)
        });
        job::run::check(&parties[0]).err().unwrap().to_string()
    };
    let error = refused("class exact", "class dp");
    assert!(error.contains("a dp program has sums only"), "{error}");
    let error = refused("engine  = \"gmw\"", "engine  = \"yao\"");
    assert!(error.contains("compute.engine: yao runs sums between two parties"), "{error}");
}

#[test]
fn a_missing_address_is_named() {
    let (_folder, mut parties) = clinics(&|s| s);
    let fails = |party: &PartySetup| run(party, &Watch::none()).unwrap_err().to_string();
    parties[1].address = Address::Listen("127.0.0.1:1".into());
    assert!(fails(&parties[1]).starts_with("no address of east: parties go to those before them"));
    assert!(!parties[1].ledger.exists(), "what is wrong in a party file is said before a ledger is made");
    parties[0].address = Address::Peer("127.0.0.1:1".into());
    assert!(fails(&parties[0]).starts_with("`peer` is for two parties and this study has 3"));
    let peers = [("oest".to_owned(), "127.0.0.1:1".to_owned())].into();
    parties[2].address = Address::Peers { listen: None, peers };
    assert!(fails(&parties[2]).contains("[peers] names oest, who is no party of the study"));
}

/// A party that dies while rows are computed: the others end, and both name it.
#[test]
fn everybody_names_a_party_that_died() {
    let (_folder, parties) = clinics(&|s| s);
    let dead = Arc::new(AtomicBool::new(false));
    let errors = std::thread::scope(|scope| {
        let threads: Vec<_> = parties
            .iter()
            .enumerate()
            .map(|(i, party)| {
                let dead = dead.clone();
                let watch = Watch {
                    progress: net::RowProgress::none(),
                    events: Arc::new(move |event| {
                        let compute = matches!(&event, Event::Stage { name, .. } if name == "compute");
                        if i == 2 && compute && !dead.swap(true, Ordering::Relaxed) {
                            panic!("killed on purpose");
                        }
                    }),
                    ..Watch::none()
                };
                scope.spawn(move || run(party, &watch))
            })
            .collect();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    for (i, error) in errors.into_iter().enumerate().take(2) {
        let error = error.unwrap().unwrap_err();
        assert_eq!(error.at().party, CLINICS[i]);
        assert_eq!(error.at().peer.as_deref(), Some("west"), "{error}");
        assert!(error.at().step.starts_with("compute"), "{error}");
    }
}

/// The example, with the advertisers apart and a release to each party.
fn apart() -> String {
    let to = |name: &str| format!("[release.to.{name}]\nrho = 0.1\n");
    let text = SEVERAL.replace("\"together\"", "\"apart\"");
    let at = text.find("[release.public]").unwrap();
    text[..at].to_owned() + &["paper", "bakery", "cinema"].map(to).concat()
}

/// People of both lift tests here.
fn lift_options(rows: u32) -> LiftOptions {
    LiftOptions { rows, overlap: 0.6, max_events: 4, clamp: 100, seed: 5, format: FileFormat::Csv, files: 1 }
}

/// The publisher and two advertisers with the same purchases, in files of their own columns.
fn advertisers(rows: u32) -> (TempDir, Vec<PartySetup>, f64) {
    let folder = TempDir::new().unwrap();
    let options = lift_options(rows);
    let made = lift(folder.path(), &options, &|_, _| ()).unwrap();
    with_keys(folder.path(), &["paper", "bakery", "cinema"], apart());
    std::fs::rename(&made.publisher, folder.path().join("paper.csv")).unwrap();
    let events = std::fs::read_to_string(&made.advertiser).unwrap();
    let renamed = events.replacen("bought", "visited", 1).replacen("amount", "spent", 1);
    std::fs::write(folder.path().join("bakery.csv"), events).unwrap();
    std::fs::write(folder.path().join("cinema.csv"), renamed).unwrap();
    let [bakery, cinema] = [0; 2].map(|_| free_address().unwrap());
    let parties = vec![
        party(folder.path(), "paper", None, &[("bakery", &bakery), ("cinema", &cinema)]),
        party(folder.path(), "bakery", Some(&bakery), &[]),
        party(folder.path(), "cinema", Some(&cinema), &[]),
    ];
    (folder, parties, made.truth.lift())
}

fn off(report: &RunReport, truth: f64) -> f64 {
    let ResultView::Lift(view) = &report.view else { panic!("a lift view") };
    let estimate = view.cells[0].estimate.as_ref().expect("large enough groups");
    (estimate.lift - truth).abs() / estimate.standard_error
}

#[test]
fn a_publisher_measures_lift_with_each_advertiser() {
    let (_folder, parties, truth) = advertisers(4000);
    let stages = Arc::new(Mutex::new(Vec::new()));
    let log = stages.clone();
    let watch = Watch {
        progress: net::RowProgress::none(),
        events: Arc::new(move |event| {
            if let Event::Stage { name, .. } = event {
                log.lock().unwrap().push(name);
            }
        }),
        ..Watch::none()
    };
    let (parts, own) = std::thread::scope(|scope| {
        let own = [1, 2].map(|i| {
            let party = &parties[i];
            scope.spawn(move || run(party, &Watch::none()).unwrap())
        });
        let parts = run_parts(&parties[0], &Opened::of(&parties[0]).unwrap(), &watch).unwrap();
        (parts, own.map(|t| t.join().unwrap()))
    });
    assert_eq!(parts.iter().map(|part| &*part.with).collect::<Vec<_>>(), ["bakery", "cinema"]);
    let parts: Vec<RunReport> = parts.into_iter().map(|part| part.report.unwrap()).collect();
    for (part, theirs) in parts.iter().zip(&own) {
        // Eight standard deviations: fails once in 10^14 runs if the program is right.
        assert!(off(part, truth) < 8.0 && off(theirs, truth) < 8.0);
        assert_eq!(part.study.hash, theirs.study.hash);
        assert_eq!(
            (part.privacy.rho_value, part.privacy.spent),
            (0.1, 0.11),
            "what its release and the sizes of the match were charged"
        );
        assert!(part.stages.iter().all(|stage| stage.price_held));
        // The other advertiser of the same study is no stranger, whichever run is charged first.
        assert!(!part.own_warnings.iter().any(|text| text.contains("for the first time")));
        assert!(part.study.part_of.is_some() && part.study.part_of == theirs.study.part_of);
    }
    assert_eq!(parts[0].study.part_of, parts[1].study.part_of);
    assert_ne!(parts[0].study.hash, parts[1].study.hash);
    assert_ne!(parts[0].view, parts[1].view, "each release has noise of its own");
    let stages = stages.lock().unwrap();
    assert!(stages.contains(&"bakery/match".to_owned()) && stages.contains(&"cinema/release".to_owned()));
    // A charge for each release, towards each viewer.
    let ledger = Ledger::open(&parties[0].ledger).unwrap();
    let viewers: std::collections::BTreeSet<String> =
        ledger.entries().unwrap().into_iter().filter(|row| row.protects).map(|row| row.viewer_key).collect();
    assert_eq!(viewers.len(), 2);
}

#[test]
fn one_advertiser_that_is_missing_does_not_stop_the_other() {
    let (_folder, mut parties, truth) = advertisers(3000);
    parties[0].deadline_ms = 4_000;
    let (parts, bakery) = std::thread::scope(|scope| {
        let bakery = scope.spawn(|| run(&parties[1], &Watch::none()).unwrap());
        (
            run_parts(&parties[0], &Opened::of(&parties[0]).unwrap(), &Watch::none()).unwrap(),
            bakery.join().unwrap(),
        )
    });
    assert!(off(parts[0].report.as_ref().unwrap(), truth) < 8.0 && off(&bakery, truth) < 8.0);
    let error = parts[1].report.as_ref().unwrap_err().to_string();
    assert!(error.contains("no answer from cinema"), "{error}");
}

#[test]
fn with_several_advertisers_the_publisher_goes_to_each() {
    let (_folder, mut parties, _) = advertisers(3000);
    let fails = |party: &PartySetup| {
        Opened::of(party)
            .and_then(|opened| run_parts(party, &opened, &Watch::none()))
            .err()
            .unwrap()
            .to_string()
    };
    parties[0].address = Address::Listen("127.0.0.1:1".into());
    assert!(fails(&parties[0]).starts_with("with several advertisers the publisher goes to each"));
    let peers = [("bakery".to_owned(), "127.0.0.1:1".to_owned())].into();
    parties[0].address = Address::Peers { listen: None, peers };
    assert!(fails(&parties[0]).starts_with("no address of cinema"));
    parties[1].address = Address::Peer("127.0.0.1:1".into());
    assert!(fails(&parties[1]).starts_with("with several advertisers each of them listens"));
}

/// Three advertisers with a third of the purchases each, and the publisher: one study on one spine.
fn together(rows: u32) -> (TempDir, Vec<PartySetup>, f64) {
    const NAMES: [&str; 4] = ["paper", "bakery", "cinema", "market"];
    let folder = TempDir::new().unwrap();
    let options = lift_options(rows);
    let made = lift(folder.path(), &options, &|_, _| ()).unwrap();
    let market = "[party.market]\nrole = \"advertiser\"\nkey  = \
                  \"tacit1:44444444444444444444444444444444\"\n\n[match]";
    let columns = SEVERAL.split("[advertiser.cinema]").nth(1).unwrap().split("[lift]").next().unwrap();
    let text = SEVERAL.replacen("[match]", market, 1);
    let text = text.replacen("[lift]", &format!("[advertiser.market]{columns}[lift]"), 1);
    with_keys(folder.path(), &NAMES, text);
    std::fs::rename(&made.publisher, folder.path().join("paper.csv")).unwrap();
    let events = std::fs::read_to_string(&made.advertiser).unwrap();
    let (head, lines) = events.split_once('\n').unwrap();
    for (i, name) in NAMES[1..].iter().enumerate() {
        let renamed = head.replacen("bought", "visited", 1).replacen("amount", "spent", 1);
        let own = lines.lines().skip(i).step_by(3).map(|line| format!("{line}\n")).collect::<String>();
        let head = if i == 0 { head.to_owned() } else { renamed };
        std::fs::write(folder.path().join(format!("{name}.csv")), format!("{head}\n{own}")).unwrap();
    }
    let addresses: Vec<_> = NAMES.iter().map(|_| free_address().unwrap()).collect();
    let one = |(i, name): (usize, &&str)| {
        let peers: Vec<_> = NAMES.iter().zip(&addresses).take(i).map(|(name, at)| (*name, &**at)).collect();
        party(folder.path(), name, Some(&addresses[i]), &peers)
    };
    let parties = NAMES.iter().enumerate().map(one).collect();
    (folder, parties, made.truth.lift())
}

/// A public lift of three advertisers and one publisher: one number for all, one charge in each ledger.
#[test]
fn a_publisher_and_three_advertisers_see_one_public_lift() {
    let (folder, parties, truth) = together(4000);
    let reports: Vec<RunReport> = all(&parties, |_| Watch::none())
        .into_iter()
        .map(|report| report.unwrap_or_else(|e| panic!("{e}")))
        .collect();
    for report in &reports {
        // Eight standard deviations: fails once in 10^14 runs if the program is right.
        assert!(off(report, truth) < 8.0, "{:?} {truth}", report.view);
        assert_eq!(report.public, reports[0].public, "the same for all");
        assert!(report.is_public() && report.engine == "gmw" && report.parties.len() == 4);
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        let ledger = Ledger::open(&folder.path().join(format!("{}.ledger", report.party))).unwrap();
        let spent = |viewer: &str| ledger.spent(&report.party, viewer).unwrap();
        let rows: Vec<_> = ledger.entries().unwrap().into_iter().filter(|row| row.protects).collect();
        let public: Vec<_> = rows.iter().filter(|row| row.viewer_key.contains(PUBLIC)).collect();
        assert_eq!(public.len(), 1, "one row for one number");
        assert_eq!(spent(PUBLIC), release::rational::ratio(1, 10));
        for other in reports[0].parties.iter().filter(|other| other.name != report.party) {
            assert!(spent(&other.key) >= release::rational::ratio(1, 10), "{}", other.name);
        }
    }
}

/// The districts' figures with noise that nobody knows: one result for all three, and one for the north
/// alone.
fn noised(text: String) -> String {
    let text = text
        .replace("class exact", "class dp")
        .replace("sum = add en w", "whole = add en w\nsum = clamp whole 200");
    let (head, rest) = text.split_once("worst = greatest").unwrap();
    let (_, tail) = rest.split_once("\"\"\"\n\n[compute]").unwrap();
    let release = "release\nall-noised = gaussian public 1/8 all\nmany-noised = gaussian public 1/8 \
                   districts\n\
                   for-north = gaussian north 1/8 districts\na = noised all-noised 0\nb = noised many-noised \
                   0\n\
                   c = noised for-north 0\nreveal a public \"cases\"\nreveal b public \"districts\"\n\
                   reveal c north \"districts\"\n\"\"\"\n[release.public]\nrho = \
                   0.25\n[release.to.north]\nrho = 0.125\n";
    format!("{head}{release}[compute]{tail}")
}

#[test]
fn three_parties_see_one_number_that_nobody_knows_the_noise_of() {
    let (folder, parties) = clinics(&noised);
    let reports: Vec<RunReport> = all(&parties, |_| Watch::none())
        .into_iter()
        .map(|report| report.unwrap_or_else(|e| panic!("{e}")))
        .collect();
    let shown = |report: &RunReport| match report.public.as_ref() {
        Some(ResultView::Program { outputs, .. }) => {
            outputs.iter().map(|output| output.value.parse::<f64>().unwrap()).collect::<Vec<f64>>()
        }
        _ => panic!("a public result"),
    };
    let numbers: Vec<Vec<f64>> = reports.iter().map(shown).collect();
    assert!(numbers.iter().all(|all| *all == numbers[0]), "{numbers:?}");
    let clamped: u64 = (0..DISTRICTS).map(|d| total(d).min(200)).sum();
    let hits = (0..DISTRICTS).filter(|d| total(*d) > 99).count() as f64;
    // sigma = D / sqrt(2 rho): 400 and 2; ten of them.
    assert!((numbers[0][0] - clamped as f64).abs() < 4_000.0, "{} from {clamped}", numbers[0][0]);
    assert!((numbers[0][1] - hits).abs() < 20.0, "{} from {hits}", numbers[0][1]);
    for (report, name) in reports.iter().zip(CLINICS) {
        assert_eq!(report.is_public(), name != "north");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        let ledger = Ledger::open(&folder.path().join(format!("{name}.ledger"))).unwrap();
        let charged = |row: &privacy::ledger::EntryRow| row.protects.then(|| row.rho.clone());
        let rows: Vec<String> = ledger.entries().unwrap().iter().filter_map(charged).collect();
        // One row for what all see, one for the north's view of the others' data.
        assert_eq!(rows, if name == "north" { vec!["0.25"] } else { vec!["0.125", "0.25"] }, "{name}");
        ledger.verify().unwrap();
        assert!(ledger.spent(name, PUBLIC).unwrap() == release::rational::ratio(1, 4));
    }
    let again: Vec<RunReport> = all(&parties, |_| Watch::none()).into_iter().map(Result::unwrap).collect();
    assert!(again.iter().all(|report| report.stored));
}

/// What a bill pays for are the bytes that a run says: rows are aligned, so that all sizes are known before.
#[test]
fn a_bill_has_the_bytes_that_a_run_says() {
    let edit = |text: String| text.replace("\"auto\"", "\"softspoken:4\"");
    let (folder, parties) =
        clinics(&|s| edit(s).replace("circuit = \"softspoken:4\"", "circuit = \"small\""));
    let reports: Vec<RunReport> = all(&parties, |_| Watch::none()).into_iter().map(Result::unwrap).collect();
    let (file, _) = study::StudyFile::read(&folder.path().join("study.toml")).unwrap();
    let list = study::prices::PriceList::parse("prices.toml", include_str!("../../../docs/prices-2026.toml"));
    let prices = list.unwrap();
    let terms = BillTerms { prices: &prices, between: study::prices::BytePath::Zones };
    let link = job::plan::Link { bits_per_s: 1e9, round_trip_s: 1e-3 };
    let assumed = job::plan::Assumed { rows: [DISTRICTS as u64; 2], both: None, outcome: None };
    let plan = plan_priced(&file, &assumed, link, job::plan::Speeds::default(), &terms).unwrap();
    let said = |name: &str| {
        let own = |(i, report): (usize, &RunReport)| {
            report.stages.iter().find(|stage| stage.name == name).map_or(0, |stage| stage.bytes_sent[i])
        };
        reports.iter().enumerate().map(own).sum::<u64>()
    };
    let bill = plan.bill.unwrap();
    assert!(said("match") > 0 && said("compute") > 0 && said("release") > 0);
    for stage in &bill.stages {
        assert_eq!(stage.bytes, said(&stage.name), "{}", stage.name);
    }
    assert_eq!(bill.total.bytes, bill.stages.iter().map(|stage| stage.bytes).sum::<u64>());
}
