//! Studies that four servers compute: owners and servers are threads of one process, TLS on loopback.

use base::{Error, Kind};
use job::generate::{Format, LiftOptions, lift};
use job::ledger::Ledger;
use job::party::{Node, Party, PartySettings};
use job::report::{Disclosed, Report, View};
use job::run::{Event, NodeEvent, ServerReport, Watch, compute_study, run, serve};
use job::study::Study;
use net::connect::free_address;
use net::identity::Identity;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const ALIGNED: &str = include_str!("../../../examples/aligned.toml");
const LIFT: &str = include_str!("../../../examples/lift-ring4.toml");
const SERVERS: [&str; 4] = ["ash", "birch", "cedar", "elm"];

/// The participants of a study in a folder of theirs.
struct World {
    folder: TempDir,
    owners: Vec<String>,
    /// Servers that own nothing.
    servers: Vec<String>,
    addresses: BTreeMap<String, String>,
}

impl World {
    /// Writes `study` with a key for everybody: `@NAME` stands for the key of NAME.
    fn new(folder: TempDir, owners: &[&str], servers: &[&str], study: &str) -> Self {
        let mut text = study.to_owned();
        let mut addresses = BTreeMap::new();
        for name in owners.iter().chain(servers) {
            let identity = Identity::generate().unwrap();
            identity.save(&folder.path().join(format!("{name}.key"))).unwrap();
            text = text.replace(&format!("@{name}\""), &format!("{}\"", identity.fingerprint()));
            addresses.insert((*name).to_owned(), free_address().unwrap());
        }
        assert!(!text.contains('@'), "{text}");
        std::fs::write(folder.path().join("study.toml"), text).unwrap();
        job::salt::create(&folder.path().join("owners.salt")).unwrap();
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self { owners: own(owners), servers: own(servers), addresses, folder }
    }

    fn study(&self) -> Study {
        Study::read(&self.folder.path().join("study.toml")).unwrap().0
    }

    fn settings(&self, name: &str, more: &str) -> PartySettings {
        let peers: String = self
            .addresses
            .iter()
            .filter(|(peer, _)| *peer != name)
            .fold(String::from("[peers]\n"), |text, (peer, at)| text + &format!("{peer} = \"{at}\"\n"));
        let text = format!(
            "study = \"study.toml\"\nas = \"{name}\"\nidentity = \"{name}.key\"\nlisten = \"{}\"\ndeadline = \"60s\"\n\
             {more}\n{peers}\n[policy]\nkinds = [\"lift\", \"program\"]\nallow_exact = true\nmax_rho = 60\nbudget = 100\n\
             studies = [\"{}\"]\n",
            self.addresses[name],
            self.study().hash().full()
        );
        let path = self.folder.path().join(format!("{name}.toml"));
        std::fs::write(&path, text).unwrap();
        PartySettings::read(&path).unwrap()
    }

    fn owner(&self, name: &str, more: &str) -> Party {
        let data =
            format!("data = \"{name}.csv\"\nledger = \"{name}.ledger\"\nreport = \"out-{name}\"\n{more}");
        self.settings(name, &data).complete().unwrap()
    }

    fn owners(&self, more: &str) -> Vec<Party> {
        self.owners.iter().map(|name| self.owner(name, more)).collect()
    }

    fn nodes(&self) -> Vec<Node> {
        self.servers.iter().map(|name| self.settings(name, "").complete_node().unwrap()).collect()
    }

    fn entries(&self, owner: &str) -> usize {
        let ledger = Ledger::open(&self.folder.path().join(format!("{owner}.ledger"))).unwrap();
        ledger.entries().unwrap().len()
    }
}

type Ran = (Vec<Result<Report, Error>>, Vec<Result<ServerReport, Error>>);

/// Everybody runs the study once.
fn all(owners: &[Party], nodes: &[Node], watch: impl Fn(&str) -> Watch + Sync) -> Ran {
    let watch = &watch;
    std::thread::scope(|scope| {
        let start = |party| scope.spawn(move || run(party, &watch(&party.as_party)));
        let owners: Vec<_> = owners.iter().map(start).collect();
        let start = |node: &'_ Node| {
            let node = node.clone();
            scope.spawn(move || compute_study(&node, &node.studies[0], &watch(&node.name)))
        };
        let nodes: Vec<_> = nodes.iter().map(start).collect();
        let owners = owners.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::misuse("it died"))));
        let owners = owners.collect();
        let nodes = nodes.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(Error::misuse("it died"))));
        (owners, nodes.collect())
    })
}

fn quiet(_: &str) -> Watch {
    Watch::none()
}

fn whole((owners, servers): Ran) -> (Vec<Report>, Vec<ServerReport>) {
    let owners = owners.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect();
    (owners, servers.into_iter().map(|r| r.unwrap_or_else(|e| panic!("{e}"))).collect())
}

const CLINICS: [&str; 3] = ["east", "north", "west"];
const DISTRICTS: usize = 300;

fn cases(group: usize, district: usize) -> u64 {
    (district as u64 * [7, 11, 13][group] + 3 * group as u64) % 60
}

fn total(district: usize) -> u64 {
    (0..3).map(|group| cases(group, district)).sum()
}

/// Three owners with their own orders of the same districts. With `shared` the first server is an owner.
fn clinics(shared: bool, edit: &dyn Fn(String) -> String) -> World {
    let folder = TempDir::new().unwrap();
    let mut study = ALIGNED.to_owned();
    for (name, digit) in CLINICS.iter().zip(["1", "2", "3"]) {
        study = study.replace(&format!("\"tacit1:{}\"", digit.repeat(32)), &format!("\"@{name}\""));
    }
    let servers: Vec<&str> = if shared { SERVERS[1..].to_vec() } else { SERVERS.to_vec() };
    let mut sections: String = servers.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    if shared {
        sections += "[server.north]\n";
    }
    let (head, _) = study.split_once("[compute]").unwrap();
    let study = edit(format!("{head}{sections}[compute]\nengine = \"ring4\"\n"));
    for (group, name) in CLINICS.iter().enumerate() {
        let column = if *name == "west" { "patients" } else { "cases" };
        let row = |i: usize| {
            let district = (i * [1, 7, 11][group]) % DISTRICTS;
            format!("{}{district:03},{}\n", [" D", "d", "D"][group], cases(group, district))
        };
        let rows: String = (0..DISTRICTS).map(row).collect();
        let file = folder.path().join(format!("{name}.csv"));
        std::fs::write(file, format!("district,{column}\n{rows}")).unwrap();
    }
    World::new(folder, &CLINICS, &servers, &study)
}

/// What a party of the clinics' program is shown.
fn outputs(report: &Report) -> (Vec<String>, Vec<String>, Option<String>) {
    let View::Program { outputs, lists } = &report.view else { panic!("a program view") };
    let values = outputs.iter().map(|output| output.value.clone()).collect();
    let keys = lists.iter().flat_map(|list| list.keys.clone()).collect();
    (values, keys, outputs.iter().find_map(|output| output.key.clone()))
}

fn check_clinics(reports: &[Report]) {
    let hits: Vec<usize> = (0..DISTRICTS).filter(|d| total(*d) > 99).collect();
    let worst = *hits.iter().max_by_key(|d| (total(**d), std::cmp::Reverse(**d))).unwrap();
    let (sum, count): (u64, _) = ((0..DISTRICTS).map(total).sum(), hits.len().to_string());
    let name = |d: &usize| format!("d{d:03}");
    let [east, north, west] = [0, 1, 2].map(|i| outputs(&reports[i]));
    assert_eq!(east.0, [sum.to_string(), count.clone()]);
    assert_eq!((north.0, north.1), (vec![count], hits.iter().map(name).collect()));
    assert_eq!((&*west.0[0], west.2), ("1", Some(name(&worst))));
}

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
            let page = job::html::render(report);
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

/// A lift study by keyed hashes; without noise worth the name. Its true lift.
fn trial(edit: &dyn Fn(String) -> String) -> (World, f64) {
    let folder = TempDir::new().unwrap();
    let options =
        LiftOptions { rows: 3000, overlap: 0.6, max_events: 4, clamp: 100, seed: 5, format: Format::Csv };
    let made = lift(folder.path(), &options).unwrap();
    std::fs::rename(&made.publisher, folder.path().join("publisher.csv")).unwrap();
    std::fs::rename(&made.advertiser, folder.path().join("advertiser.csv")).unwrap();
    let base = job::generate::lift_study(&options, "@publisher", "@advertiser", false);
    let (before, rest) = base.split_once("protocol = \"pid\"").expect("a protocol");
    let base = format!("{before}protocol = \"salted-key\"{rest}");
    let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    let study = edit(format!("{base}\n{servers}[compute]\nengine = \"ring4\"\n"));
    (World::new(folder, &["publisher", "advertiser"], &SERVERS, &study), made.truth.lift())
}

const SALTED: &str = "salt = \"owners.salt\"";

fn off(report: &Report, truth: f64) -> f64 {
    let View::Lift(view) = &report.view else { panic!("a lift view") };
    let estimate = view.cells[0].estimate.as_ref().expect("large enough groups");
    (estimate.lift - truth).abs() / estimate.standard_error
}

#[test]
fn servers_join_rows_by_keyed_hashes_and_compute_a_lift() {
    let (world, truth) = trial(&|s| s);
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    for report in &reports {
        assert!(off(report, truth) < 5.0, "{} from {truth}", off(report, truth));
        assert_eq!((report.disclosed.rows.len(), report.disclosed.public_keys), (2, false));
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        let text = job::summary::terminal(report);
        assert!(text.contains("ash saw keyed hashes"), "{text}");
        assert!(report.guarantee.iter().any(|line| line.contains("Whoever holds the salt")));
    }
    let told = &reports[0].disclosed;
    assert_eq!(told.rows.iter().sum::<u64>(), told.union + told.matched_upper_bound);
    for (server, joins) in servers.iter().zip([true, true, false, false]) {
        assert_eq!(server.saw.contains("keyed hashes"), joins, "{}", server.saw);
        assert_eq!(server.disclosed, Disclosed { uncovered: Vec::new(), ..told.clone() });
        assert!(server.stages.iter().all(|stage| stage.price_held), "{:?}", server.stages);
    }
    // Both views were paid for before anything was revealed.
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [2, 2]);
}

#[test]
fn a_plan_prices_what_a_run_costs() {
    let (world, _) = trial(&|s| s);
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    let told = &reports[0].disclosed;
    assert_eq!(told.rows.len(), 2);
    let link = job::plan::Link { bits_per_s: 1e9, round_trip_s: 1e-3 };
    let assumed = job::plan::Assumed { rows: [told.rows[0], told.rows[1]], mean: 0.01 };
    let plan = job::plan::plan(&world.study(), &assumed, link, job::plan::Speeds::default()).unwrap();
    let by_name = |stage: &str, name: &str| {
        plan.stages.iter().find(|s| s.name == stage).map(|s| s.bytes_sent[name]).unwrap()
    };
    let everybody = world.study();
    for (at, (name, _)) in everybody.everybody().into_iter().enumerate() {
        let stages = match at {
            0 | 1 => &reports[at].stages,
            _ => &servers[at - 2].stages,
        };
        let sent = |stage: &str| stages.iter().find(|s| s.name == stage).unwrap().bytes_sent[at];
        for stage in ["match", "release"] {
            assert_eq!(by_name(stage, name), sent(stage), "{name}, {stage}");
        }
        // A plan takes nobody to be in both files.
        assert!(by_name("compute", name) >= sent("compute"), "{name}");
    }
}

#[test]
fn another_salt_is_found_before_anything_is_sent() {
    let (world, _) = trial(&|s| s);
    job::salt::create(&world.folder.path().join("other.salt")).unwrap();
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
    owners[0].policy.budget = job::study::Decimal::parse("0.001").unwrap();
    let (reports, servers) = all(&owners, &world.nodes(), quiet);
    assert!(reports.iter().all(|r| matches!(r.as_ref().unwrap_err().kind(), Kind::Refused(_))));
    for server in servers {
        let error = server.unwrap_err();
        assert!(error.to_string().contains("the owners do not run this study"), "{error}");
    }
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
}

/// A watch that dies when a stage begins.
fn dies(at: &'static str) -> Watch {
    let events = move |event: Event| {
        if matches!(&event, Event::Stage { name, .. } if name == at) {
            panic!("killed on purpose");
        }
    };
    Watch { progress: net::Progress::none(), events: Arc::new(events) }
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

/// Three nodes and a host that tells them to begin, several times; one run fails and the nodes go on.
#[test]
fn nodes_begin_when_they_are_told_and_outlive_a_run_that_fails() {
    let (world, truth) = trial(&|s| s);
    let (host, nodes) = (world.nodes().remove(0), world.nodes().split_off(1));
    let host = Node { trigger: true, ..host };
    let (stop, logs) = (AtomicBool::new(false), [0; 3].map(|_| Log::default()));
    std::thread::scope(|scope| {
        let (stop, world) = (&stop, &world);
        let serving: Vec<_> = nodes
            .iter()
            .zip(logs.clone())
            .map(|(node, log)| {
                scope.spawn(move || serve(node, false, stop, &|event| log.note(&event), &Watch::none()))
            })
            .collect();
        let once = |owners: &[Party]| all(owners, std::slice::from_ref(&host), quiet);
        let mut refusing = world.owners(SALTED);
        refusing[1].policy.budget = job::study::Decimal::parse("0.001").unwrap();
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
        let stranger = Node {
            studies: vec![world.folder.path().join("other.toml")],
            allowed: Some(vec![other.hash()]),
            ..host.clone()
        };
        let error = compute_study(&stranger, &stranger.studies[0], &Watch::none()).unwrap_err().to_string();
        assert!(error.contains("birch does not begin this study"), "{error}");
        stop.store(true, Ordering::Relaxed);
        serving.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
    });
    for (log, name) in logs.iter().zip(&SERVERS[1..]) {
        let said = log.all();
        let at = |text: &str| said.iter().filter(|line| line.starts_with(text)).count();
        assert_eq!((at("begun by ash"), at("failed: "), at("done, ")), (3, 1, 2), "{name}: {said:?}");
        assert_eq!(at("refused: "), usize::from(*name == "birch"), "{name}: {said:?}");
        assert_eq!(said.last().map(String::as_str), Some("stopped"));
    }
}

#[test]
fn a_node_wants_a_list_and_a_study_that_names_it() {
    let (world, _) = trial(&|s| s);
    let mut node = world.nodes().remove(0);
    let fails = |node: &Node| {
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
    assert!(fails("engine  = \"ring4\"", "engine = \"ring4\"\nshards = 2").contains("compute in one shard"));
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
    // Every setting is part of what all agree on.
    let other = parse(&|s| s.replace("hash     = \"keyed\"", "hash = \"blake3\"")).unwrap();
    assert_ne!(other, parse(&|s| s).unwrap());
}
