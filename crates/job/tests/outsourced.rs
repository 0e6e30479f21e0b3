//! Studies that four servers compute: owners and servers are threads of one process, TLS on loopback.

mod common;

use base::{Error, Fault};
use common::{SALTED, SERVERS, all, check_clinics, clinics, dies, off, quiet, trial, whole};
use job::run::{NodeEvent, Watch, compute_study, serve};
use privacy::ledger::Ledger;
use release::rational::decimal;
use report::Disclosure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use study::Study;
use study::party::{PartySetup, ServerSetup};

const LIFT: &str = include_str!("../../../examples/lift-ring4.toml");

#[test]
fn three_owners_get_the_outputs_of_a_program_over_aligned_rows() {
    for (shared, security) in [
        (false, ""),
        (true, "[ring4]\nhash = \"blake3\"\n"),
        (false, "[ring4]\nsecurity = \"semi-honest\"\n"),
    ] {
        let world = clinics(shared, &|s| s.replace("[compute]", &format!("{security}[compute]")));
        let (reports, servers) = whole(all(&world.owners(""), &world.nodes(), quiet));
        check_clinics(&reports);
        for report in &reports {
            let told = report.servers.as_ref().expect("servers");
            assert!(told.members.iter().all(|server| server.saw == "the number of rows (300)"), "{told:?}");
            assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
            assert!(
                report.guarantee.iter().any(|line| line.contains("Two of them together learn everything"))
            );
            assert_eq!(&*report.engine, "ring4");
            let page = report::html::render(report);
            assert!(page.contains("the number of rows (300)"), "{page}");
        }
        for server in &servers {
            assert!(server.stages.iter().all(|stage| stage.price_held), "{:?}", server.stages);
            assert_eq!((server.disclosed.union, server.stored), (300, false));
        }
        // The stored answers, without another computation.
        let (reports, servers) = whole(all(&world.owners(""), &world.nodes(), quiet));
        assert!(reports.iter().all(|report| report.stored) && servers.iter().all(|server| server.stored));
    }
}

#[test]
fn servers_join_rows_by_keyed_hashes_and_compute_a_lift() {
    let (world, truth) = trial(&|s| s);
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    for report in &reports {
        assert!(off(report, truth) < 5.0, "{} from {truth}", off(report, truth));
        assert_eq!((report.disclosed.rows.len(), report.disclosed.public_keys), (2, false));
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        let text = report::summary::terminal(report, report::summary::USUAL_COLUMNS);
        assert!(text.contains("ash saw keyed hashes"), "{text}");
        assert!(report.guarantee.iter().any(|line| line.contains("Whoever holds the salt")));
    }
    let told = &reports[0].disclosed;
    assert_eq!(told.rows.iter().sum::<u64>(), told.union + told.matched_upper_bound);
    for (server, joins) in servers.iter().zip([true, true, false, false]) {
        assert_eq!(server.saw.contains("keyed hashes"), joins, "{}", server.saw);
        assert_eq!(server.disclosed, Disclosure { uncovered: Vec::new(), ..told.clone() });
        assert!(server.stages.iter().all(|stage| stage.price_held), "{:?}", server.stages);
    }
    // One row for what all see.
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [1, 1]);
}

/// Ranges of rows at once, over TLS and over shared memory: the same result, at the price of all lanes.
#[test]
fn servers_compute_ranges_of_rows_at_once() {
    for transport in ["", "transport = \"shm\"\ntrusted_network = true\n"] {
        let (world, truth) = trial(&|s| s.replace("engine = \"ring4\"", "engine = \"ring4\"\nshards = 3"));
        let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes_with(transport), quiet));
        for report in &reports {
            assert!(off(report, truth) < 5.0, "{} from {truth}", off(report, truth));
            assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
            assert_eq!(report.shards, 3);
        }
        for server in &servers {
            assert!(server.stages.iter().all(|stage| stage.price_held), "{:?}", server.stages);
            assert_eq!(server.device, "cpu");
        }
    }
}

#[test]
fn a_plan_prices_what_a_run_costs() {
    let (world, _) = trial(&|s| s);
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    let told = &reports[0].disclosed;
    assert_eq!(told.rows.len(), 2);
    let link = job::plan::Link { bits_per_s: 1e9, round_trip_s: 1e-3 };
    let assumed = job::plan::Assumed { rows: [told.rows[0], told.rows[1]], both: None, outcome: None };
    let plan = job::plan::plan(&world.study(), &assumed, link, job::plan::Speeds::default()).unwrap();
    let by_name = |stage: &str, name: &str| {
        plan.stages.iter().find(|s| s.name == stage).map(|s| s.bytes_sent[name]).unwrap()
    };
    let release = plan.stages.iter().find(|stage| stage.name == "release").unwrap();
    assert!((1..=8).contains(&release.rounds), "{} round trips after the totals", release.rounds);
    assert_eq!(release.and_gates, 0, "numbers are added up, not gates");
    let everybody = world.study();
    for (at, (name, _)) in everybody.everybody().into_iter().enumerate() {
        let stages = match at {
            0 | 1 => &reports[at].stages,
            _ => &servers[at - 2].stages,
        };
        let sent = |stage: &str| stages.iter().find(|s| s.name == stage).unwrap().bytes_sent[at];
        for stage in ["match", "noise", "release"] {
            assert_eq!(by_name(stage, name), sent(stage), "{name}, {stage}");
        }
        // Of sums: tops, echoes, commitments, held, paid, shares; and what an owner enters.
        let release = stages.iter().find(|s| s.name == "release").unwrap();
        assert!(release.price.rounds <= 8, "{} rounds", release.price.rounds);
        // A plan takes nobody to be in both files.
        assert!(by_name("compute", name) >= sent("compute"), "{name}");
    }
}

/// The figures of `docs/protocols/ring4.md`: as `tacit plan --rows 401974,1488` says them of the example.
#[test]
fn a_release_of_sums_takes_eight_round_trips_at_most() {
    let link = job::plan::Link { bits_per_s: 1e9, round_trip_s: 1e-3 };
    let assumed = job::plan::Assumed { rows: [401_974, 1_488], both: None, outcome: None };
    let own = LIFT.replace("[release.public]", "[release.to.registry]");
    let variance = own.replace("mode       = \"sums\"", "mode = \"variance\"");
    for (text, sums) in [(LIFT, true), (&own, true), (&variance, false)] {
        let study = Study::parse("study.toml", text).unwrap();
        let plan = job::plan::plan(&study, &assumed, link, job::plan::Speeds::default()).unwrap();
        for stage in plan.stages.iter().filter(|stage| stage.name != "match") {
            let bytes: u64 = stage.bytes_sent.values().sum();
            println!("{}: {} round trips, {} ANDs, {bytes} B", stage.name, stage.rounds, stage.and_gates);
        }
        let names: Vec<&str> = plan.stages.iter().map(|stage| &*stage.name).collect();
        let before: &[&str] =
            if sums { &["match", "noise", "compute"] } else { &["match", "compute", "publish", "noise"] };
        assert!(names.starts_with(before), "group sizes are published before they scale noise: {names:?}");
        let release = plan.stages.last().unwrap();
        assert_eq!((release.rounds <= 8, release.and_gates == 0), (sums, sums), "{release:?}");
    }
}

#[test]
fn another_salt_is_found_before_anything_is_sent() {
    let (world, _) = trial(&|s| s);
    study::salt::create(&world.folder.path().join("other.salt")).unwrap();
    let owners = [world.owner("publisher", SALTED), world.owner("advertiser", "salt = \"other.salt\"")];
    let (reports, servers) = all(&owners, &world.nodes(), quiet);
    let texts: Vec<String> = reports.into_iter().map(|r| r.unwrap_err().to_string()).collect();
    assert!(texts.iter().any(|text| text.contains("is another one than this party's")), "{texts:?}");
    assert!(servers.iter().all(Result::is_err));
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
    // And one that is missing before anybody is met.
    let error = job::run::check(&world.owner("publisher", "")).err().unwrap().to_string();
    assert!(error.starts_with("no salt: "), "{error}");
    let error = job::run::check(&clinics(false, &|s| s).owner("east", SALTED)).err().unwrap().to_string();
    assert!(error.contains("uses no salt"), "{error}");
}

#[test]
fn an_owner_that_may_not_stops_the_servers_before_a_row_is_shared() {
    let (world, _) = trial(&|s| s);
    let mut owners = world.owners(SALTED);
    owners[0].policy.budget = decimal("0.001").unwrap();
    let (reports, servers) = all(&owners, &world.nodes(), quiet);
    assert!(reports.iter().all(|r| matches!(r.as_ref().unwrap_err().kind(), Fault::Refused(_))));
    for server in servers {
        let error = server.unwrap_err();
        assert!(error.to_string().contains("the owners do not run this study"), "{error}");
    }
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
}

/// Whoever dies, owner or server, and whenever: nobody gets an output, and everybody names who it was.
#[test]
fn nobody_gets_an_output_when_anybody_dies() {
    for (who, stage) in
        [("birch", "match"), ("elm", "compute"), ("ash", "release"), ("advertiser", "compute")]
    {
        let (world, _) = trial(&|s| s);
        let watch = |name: &str| if name == who { dies(stage) } else { Watch::none() };
        let (reports, servers) = all(&world.owners(SALTED), &world.nodes(), watch);
        let errors: Vec<Error> = reports
            .into_iter()
            .filter_map(Result::err)
            .chain(servers.into_iter().filter_map(Result::err))
            .collect();
        assert_eq!(errors.len(), 6, "{who} at {stage}");
        let named = errors.iter().filter(|error| error.at().peer.as_deref() == Some(who)).count();
        assert_eq!(named, 5, "{who} at {stage}: {errors:?}");
        // Before a release nothing is charged, and outputs are nowhere.
        for owner in &world.owners {
            let ledger = Ledger::open(&world.folder.path().join(format!("{owner}.ledger"))).unwrap();
            assert_eq!(ledger.entries().unwrap().len(), 0, "{who} at {stage}");
        }
    }
}

/// What a node says of itself, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, event: &NodeEvent) {
        let text = match event {
            NodeEvent::Closed { why, .. } => format!("closed: {why}"),
            NodeEvent::Waiting { .. } => "waiting".to_owned(),
            NodeEvent::Refused { why, .. } => format!("refused: {why}"),
            NodeEvent::Begun { by, .. } => format!("begun by {by}"),
            NodeEvent::Done(report) => format!("done, stored: {}", report.stored),
            NodeEvent::Failed(error) => format!("failed: {error}"),
            NodeEvent::Stopped => "stopped".to_owned(),
        };
        self.0.lock().unwrap().push(text);
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Nodes stop when it goes, also with a test that fails.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Three nodes and a host that tells them to begin, several times; one run fails and the nodes go on.
#[test]
fn nodes_begin_when_they_are_told_and_outlive_a_run_that_fails() {
    let (world, truth) = trial(&|s| s);
    let (host, nodes) = (world.nodes().remove(0), world.nodes().split_off(1));
    let host = ServerSetup { trigger: true, ..host };
    let (stop, logs) = (AtomicBool::new(false), [0; 3].map(|_| Log::default()));
    std::thread::scope(|scope| {
        let (stop, world) = (&stop, &world);
        let stopping = Stopping(stop);
        let serving: Vec<_> = nodes
            .iter()
            .zip(logs.clone())
            .map(|(node, log)| {
                scope.spawn(move || serve(node, false, stop, &|event| log.note(&event), &Watch::none()))
            })
            .collect();
        let once = |owners: &[PartySetup]| all(owners, std::slice::from_ref(&host), quiet);
        let mut refusing = world.owners(SALTED);
        refusing[1].policy.budget = decimal("0.001").unwrap();
        assert!(once(&refusing).0.iter().all(Result::is_err));
        let (reports, _) = whole(once(&world.owners(SALTED)));
        assert!(reports.iter().all(|report| off(report, truth) < 5.0));
        let (reports, servers) = whole(once(&world.owners(SALTED)));
        assert!(reports.iter().all(|report| report.stored) && servers[0].stored);
        // A study that is not on their list: nobody begins anything.
        let other = std::fs::read_to_string(world.folder.path().join("study.toml")).unwrap();
        let other = other.replace("clamp = 100", "clamp = 101");
        std::fs::write(world.folder.path().join("other.toml"), &other).unwrap();
        let other = Study::parse("other.toml", &other).unwrap();
        let stranger = ServerSetup {
            studies: vec![world.folder.path().join("other.toml")],
            allowed: Some(vec![other.hash()]),
            ..host.clone()
        };
        let error = common::opened(&stranger)
            .and_then(|opened| compute_study(&stranger, opened, &Watch::none()))
            .unwrap_err()
            .to_string();
        assert!(error.contains("does not begin this study"), "{error}");
        drop(stopping);
        serving.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    for (log, name) in logs.iter().zip(&SERVERS[1..]) {
        let said = log.all();
        let at = |text: &str| said.iter().filter(|line| line.starts_with(text)).count();
        assert_eq!((at("begun by ash"), at("failed: "), at("done, ")), (3, 1, 2), "{name}: {said:?}");
        // All are told at the same time, and the first refusal ends it.
        assert!(at("refused: ") <= 1, "{name}: {said:?}");
        assert_eq!(said.last().map(String::as_str), Some("stopped"));
    }
    assert!(logs.iter().any(|log| log.all().iter().any(|line| line.starts_with("refused: "))));
}

#[test]
fn a_node_wants_a_list_and_a_study_that_names_it() {
    let (world, _) = trial(&|s| s);
    let mut node = world.nodes().remove(0);
    let fails = |node: &ServerSetup| {
        let stop = AtomicBool::new(true);
        serve(node, true, &stop, &|_| (), &Watch::none()).unwrap_err().to_string()
    };
    let listed = node.allowed.take();
    assert!(fails(&node).contains("list their full hashes under policy.studies"));
    node.allowed = Some(Vec::new());
    assert!(fails(&node).contains("is not on this party's list"));
    node.allowed = listed;
    node.name = "oak".into();
    assert!(fails(&node).contains("has the servers ash, birch, cedar, elm"));
    node.name = "birch".into();
    assert!(fails(&node).contains("check `identity`"));
    let error = world.settings("ash", SALTED).complete_node().unwrap_err().to_string();
    assert!(error.contains("`salt` is for parties that own some"), "{error}");
}

#[test]
fn what_four_servers_do_not_run_is_said_at_once() {
    let parse = |edit: &dyn Fn(String) -> String| {
        let text = edit(LIFT.to_owned());
        Study::parse("study.toml", &text).map(|study| study.hash()).map_err(|e| e.to_string())
    };
    let fails = |from: &str, to: &str| {
        assert!(LIFT.contains(from), "{from}");
        parse(&|s| s.replacen(from, to, 1)).unwrap_err()
    };
    parse(&|s| s).unwrap();
    assert!(fails("\"salted-key\"", "\"pid\"").contains("rows that are \"aligned\", or join them"));
    assert!(
        fails("engine  = \"ring4\"", "engine = \"gmw\"").contains("is for studies that four servers compute")
    );
    assert!(fails("[server.server-4]", "[server.registry]").contains("is a party of the study"));
    assert!(
        fails("engine  = \"ring4\"", "engine = \"ring4\"\nshards = 33").contains("over 32 lanes at most")
    );
    assert!(fails("engine  = \"ring4\"", "engine = \"ring4\"\not = \"ferret\"").contains("a setting of gmw"));
    assert!(
        fails("security = \"malicious\"", "security = \"covert\"")
            .contains("\"malicious\" or \"semi-honest\"")
    );
    assert!(fails("security = \"malicious\"", "security = \"semi-honest\"").contains("vouch for nothing"));
    let three = |s: String| {
        let (head, tail) = s.split_once("[server.server-4]").unwrap();
        format!("{head}{}", &tail[tail.find("[ring4]").unwrap()..])
    };
    assert!(parse(&three).unwrap_err().contains("3 servers; ring4 has exactly 4"));
    let chosen = |s: String| {
        let own = s.replace("[release.public]", "[release.to.registry]");
        own.replace("noise      = \"inside\"", "noise = \"cut-and-choose\"")
    };
    assert!(parse(&chosen).unwrap_err().contains("four servers draw noise that nobody knows"));
    // Every setting is part of what all agree on.
    let other = parse(&|s| s.replace("hash     = \"keyed\"", "hash = \"blake3\"")).unwrap();
    assert_ne!(other, parse(&|s| s).unwrap());
}
