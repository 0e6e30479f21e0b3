//! Whole jobs: two parties in two threads, TLS on loopback, files in, reports out.

mod both;
mod parties;

use base::{ChannelError, Fault};
use both::{both, whole};
use data::InputReport;
use data::generate::{FileFormat, Generated, LiftOptions, lift, lift_study};
use job::prepare::Opened;
use job::run::{Event, Watch, run, run_parts};
use net::{RowProgress, StopSwitch};
use parties::{PartyFile, make_key};
use release::rational::decimal;
use report::{LiftView, ResultView, RunReport};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use store::{StateStore, StoreOptions};
use study::party::PartySetup;
use tempfile::TempDir;

/// Two parties with keys, data and party settings in a folder.
struct World {
    folder: TempDir,
    generated: Generated,
    parties: [PartySetup; 2],
}

const NAMES: [&str; 2] = ["publisher", "advertiser"];

fn world(rows: u32, edit: &dyn Fn(String) -> String) -> World {
    let folder = TempDir::new().unwrap();
    let options = LiftOptions {
        rows,
        overlap: 0.6,
        max_events: 3,
        clamp: 100,
        seed: 11,
        format: FileFormat::Csv,
        files: 1,
    };
    let generated = lift(folder.path(), &options, &|_, _| ()).unwrap();
    let keys = NAMES.map(|name| make_key(folder.path(), name));
    let study = edit(lift_study(&options, &keys[0], &keys[1], false));
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let parties = PartyFile::pair(folder.path(), NAMES).map(|file| file.setup());
    World { folder, generated, parties }
}

fn reports(world: &World) -> [RunReport; 2] {
    whole(both(&world.parties, &Watch::none()))
}

fn view(report: &RunReport) -> &LiftView {
    match &report.view {
        ResultView::Lift(view) => view,
        ResultView::Program { .. } => panic!("a lift study has a lift view"),
    }
}

#[test]
fn both_parties_see_the_truth_within_their_intervals_at_the_stated_price() {
    for mode in ["sums", "variance", "algorithm1", "algorithm1-as-published"] {
        let world = world(4000, &|s| s.replace("mode = \"sums\"", &format!("mode = \"{mode}\"")));
        let truth = world.generated.truth.lift();
        let reports = reports(&world);
        for report in &reports {
            let estimate = view(report).cells[0].estimate.as_ref().expect("large enough groups");
            // Eight standard deviations: fails once in 10^14 runs if the program is right.
            let room = 8.0 * estimate.standard_error;
            let off = (estimate.lift - truth).abs();
            assert!(off < room, "{mode}, {}: {} is {off} from {truth}, {room}", report.party, estimate.lift);
            assert_eq!(report.mode, mode);
            // Made-up rows hide the true number: at most four lists' worth of them.
            let room = report.disclosed.union.checked_sub(world.generated.truth.union);
            assert!(report.disclosed.dummies.is_some() && room.is_some_and(|room| (1..3000).contains(&room)));
            for stage in &report.stages {
                assert!(stage.price_held, "{mode}, {}: {stage:?}", report.party);
            }
            let cut = report.inputs.events_cut;
            assert!(report.warnings.is_empty(), "{:?}", report.warnings);
            assert_eq!(report.own_warnings.len(), usize::from(cut > 0), "{:?}", report.own_warnings);
            assert_ne!(report.inputs, InputReport::default());
            let [test, control] = [1, 0].map(|arm| world.generated.truth.overall[arm].rows);
            let published = (mode != "sums").then_some([test, control]);
            assert_eq!(report.disclosed.published_groups, published);
        }
        assert_eq!(reports[0].bytes, reports[1].bytes, "both ledgers count the same bytes");
    }
}

/// Every back end computes at the price that was stated, link included; `shards` changes nothing.
#[test]
fn back_ends_are_settled_alike_and_cost_what_was_stated() {
    for ot in ["auto", "softspoken:4", "ferret"] {
        let world = world(3000, &|s| s + &format!("\n[compute]\nshards = 3\not = \"{ot}\"\n"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let watch = Watch {
            progress: RowProgress::none(),
            events: Arc::new({
                let seen = seen.clone();
                move |e| {
                    if let Event::Settled(text) = e {
                        seen.lock().unwrap().push(text)
                    }
                }
            }),
            ..Watch::none()
        };
        let reports = both(&world.parties, &watch).map(|r| r.unwrap_or_else(|e| panic!("{e}")));
        let names: Vec<&str> = reports[0].stages.iter().map(|s| &*s.name).collect();
        let measures = ot == "auto";
        assert_eq!(names.contains(&"link"), measures, "{names:?}");
        for report in &reports {
            assert_eq!((report.shards, &report.settings), (1, &reports[0].settings));
            let workers = report.workers.as_ref().expect("two owners have workers");
            assert_eq!((workers.units, workers.processes, &workers.failed[..]), (1, false, &[][..]));
            assert!(report.stages.iter().all(|s| s.price_held), "{ot}: {:?}", report.stages);
            let settled = report.settings.contains(": measured ");
            assert!(settled == measures && (settled || report.settings == ot), "{}", report.settings);
        }
        let seen = seen.lock().unwrap();
        let expected =
            if measures { vec![format!("engine gmw, {}", reports[0].settings); 2] } else { Vec::new() };
        assert_eq!(*seen, expected);
    }
}

#[test]
fn a_rerun_returns_the_stored_answer_and_charges_nothing() {
    let world = world(3000, &|s| s);
    let first = reports(&world);
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = events.clone();
    let watch = Watch {
        progress: RowProgress::none(),
        events: Arc::new(move |e| seen.lock().unwrap().push(format!("{e:?}"))),
        ..Watch::none()
    };
    let again = both(&world.parties, &watch).map(Result::unwrap);
    for (first, again) in first.iter().zip(&again) {
        assert!(again.stored && !first.stored);
        assert_eq!(RunReport { stored: false, ..again.clone() }, *first);
    }
    let events = events.lock().unwrap();
    assert_eq!(events.iter().filter(|e| *e == "Stored").count(), 2);
    assert!(!events.iter().any(|e| e.starts_with("Stage ")), "{events:?}");
}

#[test]
fn a_spent_budget_refuses_before_anything_is_revealed() {
    let mut world = world(3000, &|s| s);
    for party in &mut world.parties {
        party.policy.budget = decimal("0.01").unwrap();
    }
    for error in both(&world.parties, &Watch::none()) {
        let error = error.expect_err("the budget is too small");
        assert!(error.to_string().contains("budget"), "{error}");
    }
}

#[test]
fn different_studies_never_start() {
    let world = world(1500, &|s| s);
    let other = world.folder.path().join("other.toml");
    let text = std::fs::read_to_string(&world.parties[0].study).unwrap();
    std::fs::write(&other, text.replace("confidence = 0.95", "confidence = 0.90")).unwrap();
    let mut parties = world.parties.clone();
    parties[1].study = other;
    let started = Arc::new(Mutex::new(false));
    let seen = started.clone();
    let watch = Watch {
        progress: RowProgress::none(),
        events: Arc::new(move |e| *seen.lock().unwrap() |= matches!(e, Event::Stage { .. })),
        ..Watch::none()
    };
    let errors = both(&parties, &watch).map(|r| r.expect_err("the studies differ").to_string());
    assert!(errors.iter().any(|e| e.contains("study")), "{errors:?}");
    assert!(!*started.lock().unwrap());
}

#[test]
fn breakdowns_cohorts_and_counts_are_released_too() {
    let folder_study = |s: String| {
        s.replace(
            "[release]\n",
            "[release]\nalso = [\"converters\", \"conversions\", \"matches\", \"clamped_users\"]\n",
        )
    };
    let world = world(6000, &folder_study);
    let truth = &world.generated.truth;
    for report in reports(&world) {
        let cell = &view(&report).cells[0];
        for (arm, name) in [(1, "test"), (0, "control")] {
            let exact = &truth.overall[arm];
            let expected = [
                ("converters", exact.converters as f64),
                ("conversions", exact.conversions as f64),
                ("matches", exact.matches as f64),
                ("value", exact.sum as f64),
                ("rows", exact.rows as f64),
            ];
            for (quantity, expected) in expected {
                let found =
                    cell.counts.iter().find(|c| c.quantity == quantity && c.arm.as_deref() == Some(name));
                let found = found.unwrap_or_else(|| panic!("{quantity} of {name} is not released"));
                let value: f64 = found.value.parse().unwrap();
                let room = 8.0 * found.sigma.unwrap_or(0.0) + 0.5;
                assert!(
                    (value - expected).abs() < room,
                    "{}: {quantity} {name}: {value}, {expected}",
                    report.party
                );
            }
        }
    }
}

/// The example of a user's own program, with real keys. Each party has people that the other has not.
fn program_world(edit: &dyn Fn(String) -> String) -> (TempDir, [PartySetup; 2]) {
    let folder = TempDir::new().unwrap();
    let names = ["clinic", "works"];
    let keys = names.map(|name| make_key(folder.path(), name));
    let study = include_str!("../../../examples/program.toml")
        .replace("tacit1:00112233445566778899aabbccddeeff", &keys[0])
        .replace("tacit1:ffeeddccbbaa99887766554433221100", &keys[1]);
    std::fs::write(folder.path().join("study.toml"), edit(study)).unwrap();
    // Person i is ill when i is even and was exposed i % 60 days; the works know two thirds of the clinic's
    // people.
    let clinic: String = (0..600).map(|i| format!("p{i},{}\n", ["ill", "healthy"][i % 2])).collect();
    let works: String = (200..900).map(|i| format!("P{i} ,{}\n", i % 60)).collect();
    std::fs::write(folder.path().join("clinic.csv"), format!("person,diagnosis\n{clinic}")).unwrap();
    std::fs::write(folder.path().join("works.csv"), format!("person,exposed_days\n{works}")).unwrap();
    let files = PartyFile::pair(folder.path(), names);
    let parties = files.map(|file| file.policy("kinds = [\"lift\", \"program\"]").setup());
    (folder, parties)
}

fn outputs(report: &RunReport) -> Vec<(String, f64)> {
    match &report.view {
        ResultView::Program { outputs, .. } => {
            outputs.iter().map(|o| (o.label.clone(), o.value.parse().unwrap())).collect()
        }
        ResultView::Lift(_) => panic!("a program study has a program view"),
    }
}

#[test]
fn a_users_own_program_runs_from_its_text() {
    let (_folder, parties) = program_world(&|s| s);
    let [clinic, works] = both(&parties, &Watch::none()).map(|r| r.unwrap_or_else(|e| panic!("{e}")));
    let count = |of: fn(&i32) -> bool| (200..600).filter(of).count() as f64;
    let truth = [
        ("healthy, exposed for more than 29 days", count(|i| i % 2 == 1 && i % 60 > 29)),
        ("ill, exposed for more than 29 days", count(|i| i % 2 == 0 && i % 60 > 29)),
        ("healthy", count(|i| i % 2 == 1)),
        ("ill", count(|i| i % 2 == 0)),
    ];
    let seen = outputs(&clinic);
    assert_eq!(seen.len(), truth.len());
    for ((label, value), (wanted, count)) in seen.iter().zip(truth) {
        // sigma^2 = 1 / (2 rho) = 10: the viewer's own column tells the cells apart.
        assert!(label == wanted && (value - count).abs() < 8.0 * 10f64.sqrt(), "{seen:?}, {count}");
    }
    assert!(outputs(&works).is_empty());
    assert!([&clinic, &works].iter().all(|r| r.stages.iter().all(|s| s.price_held)));
}

#[test]
fn an_exact_program_needs_every_owners_consent() {
    let exact = |s: String| {
        let s = s.replace("class dp ", "class exact ");
        let s = s.replace("exposed = gaussian clinic 1/20 healthy-exposed ill-exposed\n", "");
        let s = s.replace("all = gaussian clinic 1/20 healthy-all ill-all\n", "");
        let folds = ["healthy-exposed", "ill-exposed", "healthy-all", "ill-all"];
        (0..4).fold(s, |s, i| {
            let mechanism = ["exposed", "all"][i / 2];
            s.replace(&format!("noised {mechanism} {}\n", i % 2), &format!("total {}\n", folds[i]))
        })
    };
    let (_folder, mut parties) = program_world(&exact);
    let refused = both(&parties, &Watch::none()).map(|r| r.expect_err("nobody consented").to_string());
    assert!(refused.iter().all(|e| e.contains("R6 (exact)")), "{refused:?}");
    parties.iter_mut().for_each(|p| p.policy.allow_exact = true);
    let [clinic, _] = both(&parties, &Watch::none()).map(|r| r.unwrap_or_else(|e| panic!("{e}")));
    // Over the rows that both have, with made-up rows among the others.
    let count = |of: fn(&i32) -> bool| (200..600).filter(of).count() as f64;
    let seen: Vec<f64> = outputs(&clinic).into_iter().map(|(_, value)| value).collect();
    assert_eq!(seen[0], count(|i| i % 2 == 1 && i % 60 > 29));
    assert_eq!(seen[1], count(|i| i % 2 == 0 && i % 60 > 29));
    assert_eq!(seen[2..], [200.0, 200.0]);
}

/// With a place for them, rows that do not fit give the result of all rows, whatever the shards are; what was
/// answered is found again where they fit, and nothing stays behind.
#[test]
fn rows_that_do_not_fit_lie_in_the_state() {
    for shards in [1, 3] {
        let mut world = world(4000, &|s| s + &format!("\n[compute]\nshards = {shards}\n"));
        let roomy = world.parties.clone();
        for party in &mut world.parties {
            party.memory = 64 << 10;
            party.state =
                Some(world.folder.path().join(format!("{}-state", party.as_party)).display().to_string());
        }
        let first = reports(&world);
        let truth = world.generated.truth.lift();
        for report in &first {
            let estimate = view(report).cells[0].estimate.as_ref().expect("large enough groups");
            assert!((estimate.lift - truth).abs() < 8.0 * estimate.standard_error, "{}", estimate.lift);
            assert!(report.stages.iter().all(|stage| stage.price_held));
            assert_eq!(report.inputs.memory, 0, "no columns are held");
        }
        for party in &world.parties {
            let state = StateStore::open(party.state.as_ref().unwrap(), &StoreOptions::default()).unwrap();
            assert!(state.list("").unwrap().is_empty());
        }
        let again = both(&roomy, &Watch::none()).map(|report| report.unwrap_or_else(|e| panic!("{e}")));
        assert!(again.iter().all(|report| report.stored), "the same data have the same name");
        assert_eq!(view(&again[0]), view(&first[0]));
    }
}

#[test]
fn too_little_memory_is_an_error_before_anything_is_sent() {
    let world = world(3000, &|s| s);
    let mut party = world.parties[0].clone();
    party.memory = 64 << 10;
    let error = job::run::check(&party).err().expect("3000 rows need more").to_string();
    assert!(error.contains("need about 1 MiB") && error.contains("allows 0 MiB"), "{error}");
}

/// Of what PS3I and Collecting cannot move to disk they say so before anything is sent.
#[test]
fn what_a_match_holds_of_rows_in_the_state_has_to_fit() {
    for (protocol, need) in [("protocol = \"ps3i\"", 6), ("protocol = \"collecting\"\nslots = 2", 9)] {
        let world = world(50_000, &|s| s.replace("protocol = \"pid\"", protocol));
        let mut party = world.parties[0].clone();
        party.memory = 1 << 20;
        party.state = Some(world.folder.path().join("state").display().to_string());
        let error = job::run::check(&party).err().expect("50,000 rows need more").to_string();
        assert!(error.contains(&format!("need about {need} MiB")), "{error}");
        assert!(error.contains("so much of this match cannot be moved to `state`"), "{error}");
        party.memory = 16 << 20;
        job::run::check(&party).unwrap();
    }
}

/// So does circuit-PSI, of which each party holds something else.
#[test]
fn what_circuit_psi_holds_of_rows_in_the_state_has_to_fit() {
    let world = world(5_000, &|s| s.replace("protocol = \"pid\"", "protocol = \"circuit-psi\""));
    for party in &world.parties {
        let mut party = party.clone();
        party.state = Some(world.folder.path().join("state").display().to_string());
        (party.memory, party.spool) = (200 << 20, true);
        let error = job::run::check(&party).err().expect("its back ends need more").to_string();
        assert!(error.contains("so much of this match cannot be moved to `state`"), "{error}");
        party.memory = 512 << 20;
        job::run::check(&party).unwrap();
    }
}

#[test]
fn a_name_the_study_does_not_know() {
    let world = world(100, &|s| s);
    let mut party = world.parties[0].clone();
    party.as_party = "publishers".into();
    let error = job::run::check(&party).err().expect("nobody has this name").to_string();
    let study = party.study.display();
    assert_eq!(
        error,
        format!(
            "this party is \"publishers\", but the study {study} names publisher, advertiser; check `as` in \
             the party file"
        )
    );
}

#[test]
fn a_program_must_fit_its_study() {
    let edits: [(&str, &str, &str); 3] = [
        ("party clinic\nparty works", "party works\nparty clinic", "it names the parties"),
        (
            "column exposed u16 works",
            "column exposed u16 clinic",
            "belongs to clinic in the program and to works",
        ),
        ("column state u2 clinic", "column state u2t clinic", "column 14: expected a type"),
    ];
    for (from, to, expected) in edits {
        let (_folder, parties) = program_world(&|s| s.replace(from, to));
        let error = job::run::check(&parties[0]).err().expect("the program does not fit").to_string();
        assert!(error.starts_with("the program that begins at line 23 of the study: "), "{error}");
        assert!(error.contains(expected), "{error}");
        let is_placed = error.contains(": line 7, column 14") && error.ends_with(" (line 29 of the study)");
        assert_eq!(error.contains("column 14"), is_placed, "{error}");
    }
}

#[test]
fn the_true_charge_of_the_published_algorithm_meets_the_cap_first() {
    let published = |s: String| {
        let s = s.replace("mode = \"sums\"", "mode = \"algorithm1-as-published\"");
        s.replace("[release.public]\nrho = 0.1", "[release.public]\nrho = 0.4")
    };
    let world = world(1500, &published);
    let error = job::run::check(&world.parties[0]).err().expect("0.4 costs up to 0.6").to_string();
    assert_eq!(
        error,
        "the study can charge up to rho 0.614000 to advertiser, the sizes of the match included; this \
         party's policy.max_rho is 0.5 (the default; a line max_rho under [policy] of the party file says \
         otherwise)"
    );
}

#[test]
fn a_group_too_small_to_publish_is_not_said() {
    let world = world(1500, &|s| s.replace("mode = \"sums\"", "mode = \"variance\""));
    let checked = job::run::check(&world.parties[0]).unwrap();
    assert!(checked[0].too_small[0].contains("fewer than the study's minimum_group of 1,000"));
    assert!(job::run::check(&world.parties[1]).unwrap()[0].too_small.is_empty());
    let [publisher, advertiser] =
        both(&world.parties, &Watch::none()).map(|r| r.expect_err("groups of 750").to_string());
    assert!(publisher.contains("minimum"), "{publisher}");
    // The advertiser heard nothing at this step: the connection ended instead.
    assert!(advertiser.starts_with("advertiser at publish with publisher: the "), "{advertiser}");
    assert!(!advertiser.contains("minimum"), "{advertiser}");
}

/// Renames every table of a ledger: until they are named back, whatever its party does with it fails.
fn rename_tables(ledger: &Path, from: &str, to: &str) {
    let open = rusqlite::Connection::open(ledger).unwrap();
    let mut names = open.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").unwrap();
    let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    for name in
        names.iter().filter_map(|name| name.strip_prefix(from).filter(|_| !name.starts_with("sqlite_")))
    {
        open.execute_batch(&format!("ALTER TABLE \"{from}{name}\" RENAME TO \"{to}{name}\"")).unwrap();
    }
}

/// The publisher's answer is complete when the advertiser's disk fails: it is handed on at once, given with
/// the error, kept, and given again when the next run fails before its release.
#[test]
fn an_answer_that_is_complete_is_given_though_the_run_breaks() {
    let own = "[release.to.publisher]\nrho = 0.1\n[release.to.advertiser]\nrho = 0.1";
    let world = world(1500, &|s| s.replace("[release.public]\nrho = 0.1", own));
    let theirs = world.parties[1].ledger.clone();
    let early = Arc::new(Mutex::new(None));
    let (seen, again) = (early.clone(), Arc::new(AtomicBool::new(false)));
    let second = again.clone();
    let watch = Watch {
        progress: RowProgress::none(),
        events: Arc::new(move |event| match event {
            Event::Answer { with: None, report } => {
                rename_tables(&theirs, "", "gone_");
                *seen.lock().unwrap() = Some(*report);
            }
            Event::Stage { .. } if second.swap(false, Ordering::Relaxed) => {
                rename_tables(&theirs, "", "gone_")
            }
            _ => {}
        }),
        ..Watch::none()
    };
    let both = || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(&world.parties[1], &Watch::none()));
            let mut own =
                run_parts(&world.parties[0], &Opened::of(&world.parties[0]).unwrap(), &watch).unwrap();
            assert!(other.join().unwrap().is_err());
            own.pop().unwrap()
        })
    };
    let broken = both();
    broken.report.expect_err("the advertiser failed");
    let kept = broken.own_answer.expect("its own answer");
    assert_eq!(early.lock().unwrap().take().as_ref(), Some(&kept));
    assert!(!view(&kept).cells.is_empty());
    assert!(
        kept.warnings.iter().any(|text| text.contains("complete before the run ended")),
        "{:?}",
        kept.warnings
    );
    rename_tables(&world.parties[1].ledger, "gone_", "");
    again.store(true, Ordering::Relaxed);
    let failed = both();
    failed.report.expect_err("the advertiser fails again");
    let stored = failed.own_answer.expect("the stored answer");
    assert_eq!((stored.stored, RunReport { stored: false, ..stored }), (true, kept));
    // Once its disk is whole, the advertiser gets its answer, and the publisher the one that it has.
    rename_tables(&world.parties[1].ledger, "gone_", "");
    assert!(reports(&world)[0].warnings.iter().any(|text| text.contains("complete before the run ended")));
}

/// A peer that states more rows than there are columns for in this party's `memory` is refused before any of
/// them come, whichever of the two it is.
#[test]
fn a_peer_of_more_rows_than_memory_has_columns_for_is_refused() {
    const LONG: u32 = 117_000;
    for (small, protocol) in [(0, "pid"), (1, "pid"), (0, "ps3i")] {
        let mut world = world(LONG, &|s| s.replace("\"pid\"", &format!("\"{protocol}\"")));
        let file = world.folder.path().join(format!("{}.csv", NAMES[small]));
        let lines = std::fs::read_to_string(&file).unwrap();
        let some: Vec<&str> = lines.lines().take(2_001).collect();
        std::fs::write(&file, some.join("\n") + "\n").unwrap();
        let party = &mut world.parties[small];
        (party.memory, party.spool) = (4 << 20, true);
        party.state = Some(world.folder.path().join("state").display().to_string());
        let ends = both(&world.parties, &Watch::none()).map(|end| end.unwrap_err().to_string());
        let [me, peer] = [NAMES[small], NAMES[1 - small]];
        let most = matching::spill::most_rows(2 << 20);
        let says = format!("{me} at match/{protocol}/count with {peer}: rows of the peer: ");
        let rows = ends[small].strip_prefix(&says).unwrap_or_else(|| panic!("{ends:?}"));
        let (rows, limit) = rows.split_once(" is over the limit of ").unwrap();
        assert!(rows.parse::<u32>().unwrap() >= LONG && limit.starts_with(&most.to_string()), "{ends:?}");
        assert!(limit.contains("has no columns for so many rows: raise it to "), "{ends:?}");
        assert!(ends[1 - small].contains(me), "{ends:?}");
        let left = StateStore::open(world.parties[small].state.as_ref().unwrap(), &StoreOptions::default());
        assert!(left.unwrap().list("").unwrap().iter().all(|(name, _)| !name.contains("columns")));
    }
}

/// The publisher's operator ends the run in the midst of its match: that side says so, the other one finds
/// the connection at its end, and both can run it again.
#[test]
fn who_is_stopped_ends_at_its_next_wait() {
    let world = world(2000, &|s| s);
    let stop = StopSwitch::default();
    let [publisher, advertiser] = &world.parties;
    let (mine, theirs) = std::thread::scope(|scope| {
        let switch = stop.clone();
        let events = move |event: Event| {
            if matches!(&event, Event::Stage { name, .. } if name == "match") {
                switch.stop();
            }
        };
        let watch = Watch { events: Arc::new(events), stop: stop.clone(), ..Watch::none() };
        let mine = scope.spawn(move || run(publisher, &watch));
        let theirs = scope.spawn(|| run(advertiser, &Watch::none()));
        (mine.join().unwrap(), theirs.join().unwrap())
    });
    let (mine, theirs) = (mine.expect_err("stopped"), theirs.expect_err("its peer is gone"));
    assert_eq!(*mine.kind(), Fault::Channel(ChannelError::Stopped), "{mine}");
    assert!(matches!(theirs.kind(), Fault::Channel(_)), "{theirs}");
    reports(&world);
}
