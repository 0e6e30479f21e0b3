//! Studies whose servers compute over shared memory and libfabric: the same outputs, the price held, and
//! refusals.

mod common;

use base::Error;
use common::{SALTED, SERVERS, World, all, check_clinics, clinics, dies, off, quiet, trial, whole};
use job::run::{ServerReport, Watch};
use report::{RunReport, StageReport};
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};
use study::party::{PartySetup, ServerSetup};
use study::transport::ServerTransport;

fn over(transport: &str) -> String {
    format!("transport = \"{transport}\"\ntrusted_network = true\n")
}

/// Whether this machine has a shim to libfabric: built beside this test, where it is looked for.
fn libfabric() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    let build = || {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs", "libfabric"]).output().ok()?;
        let flags = String::from_utf8(flags.status.success().then_some(flags.stdout)?).ok()?;
        let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let made: PathBuf = folder.join(format!("shim-{}.so", std::process::id()));
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../fabric/shim/tacit_fabric.c");
        let built = Command::new("cc")
            .args(["-std=c11", "-O2", "-fPIC", "-shared", source])
            .args(flags.split_whitespace())
            .arg("-o")
            .arg(&made)
            .status();
        assert!(built.is_ok_and(|status| status.success()), "libfabric is here: the shim must build");
        std::fs::rename(made, folder.join("libtacit_fabric.so")).unwrap();
        Some(())
    };
    *THERE.get_or_init(|| build().is_some())
}

/// The transports that this machine has, and what is used where they are set.
fn transports() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![("tls", "tls"), ("auto", "shm"), ("shm", "shm")];
    match libfabric() {
        true => all.extend([("fabric", "fabric-tcp"), ("fabric-shm", "fabric-shm")]),
        false => println!("skipped: fabric, fabric-shm: no libfabric-dev, pkg-config or cc"),
    }
    all
}

/// The owner that holds a seat, the others, and the servers that own nothing.
fn seated(world: &World, transport: &str) -> (Vec<PartySetup>, Vec<ServerSetup>) {
    let seat =
        |name: &String| SERVERS.contains(&name.as_str()) || world.servers.len() == 3 && name == "north";
    let owner = |name: &String| world.owner(name, if seat(name) { transport } else { "" });
    (world.owners.iter().map(owner).collect(), world.nodes_with(transport))
}

fn stage<'a>(stages: &'a [StageReport], name: &str) -> Option<&'a StageReport> {
    stages.iter().find(|stage| stage.name == name)
}

fn check(transport: &str, reports: &[RunReport], servers: &[ServerReport]) {
    for report in reports {
        let told = report.servers.as_ref().expect("servers");
        assert_eq!(told.transport, transport);
        let named = report.engine_text().ends_with(&format!(", over {transport})"));
        assert_eq!(named, transport != "tls", "{}", report.engine_text());
        let says = |text: &str| report.guarantee.iter().any(|line| line.contains(text));
        assert_eq!(says("in plain text under masks"), transport != "tls", "{:?}", report.guarantee);
        assert_eq!(says("Whoever administers that host"), transport == "shm");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{transport}: {:?}", report.stages);
        let seat = told.members.iter().any(|server| server.name == report.party);
        assert_eq!(stage(&report.stages, "upgrade").is_some(), seat && transport != "tls");
    }
    for server in servers {
        assert_eq!(server.transport, transport);
        assert!(server.stages.iter().all(|stage| stage.price_held), "{transport}: {:?}", server.stages);
        let made = stage(&server.stages, "upgrade");
        assert_eq!(made.is_some(), transport != "tls");
        assert!(made.is_none_or(|stage| stage.price.bytes() > 0));
        let text = server.text();
        assert!(text.contains(&study::transport::protects(transport)), "{text}");
    }
}

/// Held by tests that look what is left in /dev/shm: files of this process are those of all its tests.
static ALONE: Mutex<()> = Mutex::new(());

/// What libfabric would leave of this process.
fn left_behind() -> Vec<String> {
    let own = format!("-{}:", std::process::id());
    let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(&own)).collect()
}

#[test]
fn a_study_gives_the_same_over_every_transport() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (shared, security) in [(true, ""), (false, "[ring4]\nsecurity = \"semi-honest\"\n")] {
        let mut computed = None;
        for (set, used) in transports() {
            let world = clinics(shared, &|s| s.replace("[compute]", &format!("{security}[compute]")));
            let (owners, nodes) = seated(&world, &over(set));
            let (reports, servers) = whole(all(&owners, &nodes, quiet));
            check_clinics(&reports);
            check(used, &reports, &servers);
            // The computation sends the same; making channels is a stage of its own.
            let bytes: Vec<_> =
                servers.iter().map(|s| stage(&s.stages, "compute").unwrap().bytes_sent.clone()).collect();
            assert_eq!(*computed.get_or_insert(bytes.clone()), bytes, "{set}");
        }
    }
    assert_eq!(left_behind(), [""; 0]);
}

#[test]
fn a_lift_over_shared_memory_costs_what_its_plan_says() {
    let (world, truth) = trial(&|s| s);
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes_with(&over("shm")), quiet));
    check("shm", &reports, &servers);
    assert!(reports.iter().all(|report| off(report, truth) < 5.0));
    let told = &reports[0].disclosed;
    let link = job::plan::Link { bits_per_s: 1e9, round_trip_s: 1e-3 };
    let assumed = job::plan::Assumed { rows: [told.rows[0], told.rows[1]], both: None, outcome: None };
    let study = world.study();
    let plan = job::plan::plan(&study, &assumed, link, job::plan::Speeds::default()).unwrap();
    let plan = plan.over(&study, &ServerTransport::parse("shm").unwrap(), link).unwrap();
    assert!(plan.assumptions["transport"].starts_with("shm: The servers run on one host"));
    let planned = &plan.stages[0];
    assert_eq!(planned.name, "upgrade");
    for (i, server) in servers.iter().enumerate() {
        let sent = stage(&server.stages, "upgrade").unwrap().bytes_sent[2 + i];
        assert_eq!(planned.bytes_sent[&server.server], sent, "{}", server.server);
    }
}

#[test]
fn plain_text_wants_a_trusted_network_and_a_seat() {
    let world = clinics(true, &|s| s);
    for transport in ["shm", "auto", "fabric"] {
        let line = format!("transport = \"{transport}\"\n");
        let error = world.settings("birch", &line).complete_node().unwrap_err().to_string();
        assert!(error.contains("messages travel in plain text"), "{error}");
        assert!(error.contains("trusted_network = true") && error.contains("transport = \"tls\""), "{error}");
    }
    let error = job::run::check(&world.owner("east", &over("shm"))).err().unwrap().to_string();
    assert!(error.starts_with("east is none of the four servers that compute this study"), "{error}");
    job::run::check(&world.owner("north", &over("shm"))).unwrap();
}

#[test]
fn servers_that_are_set_to_different_transports_stop_before_a_row_is_shared() {
    let (world, _) = trial(&|s| s);
    let mut nodes = world.nodes_with(&over("shm"));
    nodes[2] = world.settings("cedar", "").complete_node().unwrap();
    let (reports, servers) = all(&world.owners(SALTED), &nodes, quiet);
    assert!(reports.iter().all(Result::is_err));
    let texts: Vec<String> = servers.into_iter().map(|server| server.unwrap_err().to_string()).collect();
    let says = |me: &str, mine: &str, peer: &str, theirs: &str| {
        let text = format!("{me} to \"{mine}\" and {peer} to \"{theirs}\"");
        texts.iter().any(|error| error.contains(&text) && error.contains("`transport` and `trusted_network`"))
    };
    assert!(says("cedar", "tls", "ash", "shm") || says("ash", "shm", "cedar", "tls"), "{texts:?}");
    assert!(texts.iter().all(|text| text.contains("cedar")), "{texts:?}");
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
}

/// A plain channel ends with the TLS channel under it: whoever dies is named by all others, and nobody gets
/// an output.
#[test]
fn a_server_that_dies_over_a_plain_transport_is_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for (transport, _) in transports().into_iter().filter(|(set, _)| ["shm", "fabric"].contains(set)) {
        for (who, at) in [("elm", "compute"), ("birch", "release")] {
            let (world, _) = trial(&|s| s);
            let watch = |name: &str| if name == who { dies(at) } else { Watch::none() };
            let (reports, servers) = all(&world.owners(SALTED), &world.nodes_with(&over(transport)), watch);
            let reports = reports.into_iter().filter_map(Result::err);
            let errors: Vec<Error> = reports.chain(servers.into_iter().filter_map(Result::err)).collect();
            assert_eq!(errors.len(), 6, "{transport}: {who} at {at}");
            let named = errors.iter().filter(|error| error.at().peer.as_deref() == Some(who)).count();
            assert_eq!(named, 5, "{transport}: {who} at {at}: {errors:?}");
            assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
        }
    }
    assert_eq!(left_behind(), [""; 0]);
}

/// An owner without a seat says "tls", and the servers are set to shared memory: nothing is shared.
#[test]
fn an_owner_that_wants_tls_stops_before_a_row_is_shared() {
    let (world, _) = trial(&|s| s);
    let mut owners = world.owners(SALTED);
    owners[0] = world.owner("publisher", &format!("{SALTED}\ntransport = \"tls\"\n"));
    let (reports, servers) = all(&owners, &world.nodes_with(&over("shm")), quiet);
    let error = reports[0].as_ref().unwrap_err();
    assert!(matches!(error.kind(), base::Fault::Refused(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("the servers compute over shm") && text.contains("no row was shared"), "{text}");
    assert!(reports[1].is_err() && servers.iter().all(Result::is_err));
    assert_eq!([world.entries("publisher"), world.entries("advertiser")], [0, 0]);
    // Servers that keep TLS are what it asked for.
    let (reports, _) = whole(all(&owners, &world.nodes(), quiet));
    check("tls", &reports, &[]);
}

/// What the owners agreed on is in the study, and in its hash; a server that is set to something else does
/// not begin.
#[test]
fn a_study_says_what_its_servers_compute_over() {
    let agreed = |name: &str| {
        let section = format!("[ring4]\ntransport = \"{name}\"\n[compute]");
        trial(&move |s| s.replace("[compute]", &section)).0
    };
    let world = agreed("shm");
    assert_ne!(world.study().hash(), {
        let mut silent = world.study();
        silent.servers.as_mut().unwrap().transport = None;
        silent.hash()
    });
    let node = world.settings("ash", "").complete_node().unwrap();
    let error = job::run::compute_study(&node, common::opened(&node).unwrap(), &Watch::none())
        .unwrap_err()
        .to_string();
    let words = "the study says [ring4] transport = \"shm\", and this server is set to \"tls\"";
    assert!(error.starts_with(words), "{error}");
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes_with(&over("shm")), quiet));
    check("shm", &reports, &servers);
}
