//! Releases of studies that four servers compute, where one of them deviates after all hold the result, or
//! before: owners and servers are threads of one process, TLS on loopback, real ledgers and files.

mod common;

use common::{PEOPLE, SALTED, SERVERS, World, all, dies, off, quiet, trial, whole};
use data::generate::lift;
use privacy::ledger::Ledger;
use report::RunReport;
use rusqlite::Connection;
use std::path::PathBuf;
use study::party::ServerSetup;
use tempfile::TempDir;

const OWNERS: [&str; 2] = ["publisher", "advertiser"];

/// The file in which a server keeps its shares.
fn held(world: &World, server: &str) -> PathBuf {
    world.nodes().iter().find(|node| node.name == server).map(ServerSetup::held).unwrap()
}

/// A participant stops before it writes to a table.
fn cut(file: &PathBuf, table: &str) {
    drop(Ledger::open(file).unwrap());
    let cut = format!("CREATE TRIGGER cut BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'gone'); END");
    Connection::open(file).unwrap().execute_batch(&cut).unwrap();
}

fn mend(file: &PathBuf) {
    Connection::open(file).unwrap().execute_batch("DROP TRIGGER cut").unwrap();
}

fn owner_file(world: &World, owner: &str) -> PathBuf {
    world.folder.path().join(format!("{owner}.ledger"))
}

fn charged(world: &World) -> [usize; 2] {
    OWNERS.map(|owner| world.entries(owner))
}

fn names(report: &RunReport, server: &str) -> bool {
    let said = format!(
        "{server} gave another share of the result than the one that two other servers hold, or none"
    );
    report.warnings.iter().any(|warning| warning.starts_with(&said))
}

/// Everybody holds the result and has paid; the publisher stops before it keeps what it opened. Then
/// `deviate` changes what a server holds: both owners have their result, it is paid for once, and the server
/// is named.
fn after_held(culprit: &str, deviate: impl Fn(&PathBuf)) {
    let (world, truth) = trial(&|s| s);
    for owner in OWNERS {
        cut(&owner_file(&world, owner), "outputs");
    }
    let (reports, _) = all(&world.owners(SALTED), &world.nodes(), quiet);
    assert!(reports.iter().all(Result::is_err), "nobody keeps a result");
    assert_eq!(charged(&world), [1, 1]);
    for owner in OWNERS {
        mend(&owner_file(&world, owner));
    }
    deviate(&held(&world, culprit));
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    for report in &reports {
        assert!(off(report, truth) < 5.0, "{culprit}: {} from {truth}", off(report, truth));
        assert!(names(report, culprit), "{culprit}: {:?}", report.warnings);
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        assert_eq!(report.privacy.attempt, None);
    }
    assert!(servers.iter().all(|server| server.stages.iter().all(|stage| stage.price_held)));
    assert_eq!(charged(&world), [1, 1], "{culprit}");
}

#[test]
fn a_server_that_bends_its_share_is_named_and_the_result_is_right() {
    after_held("birch", |file| {
        let connection = Connection::open(file).unwrap();
        let mut share: Vec<u8> =
            connection.query_row("SELECT share FROM held", [], |row| row.get(0)).unwrap();
        share[1] ^= 0x40;
        assert_eq!(connection.execute("UPDATE held SET share = ?1", [share]).unwrap(), 1);
    });
}

#[test]
fn a_server_that_lost_its_share_is_named_and_the_result_is_right() {
    after_held("elm", |file| std::fs::remove_file(file).unwrap());
}

/// A server that goes once all hold the result: the owners have it all the same, paid for once.
#[test]
fn a_server_that_goes_before_the_opening_stops_nobody() {
    let (world, truth) = trial(&|s| s);
    cut(&held(&world, "cedar"), "sent");
    let (reports, servers) = all(&world.owners(SALTED), &world.nodes(), quiet);
    let error = servers[2].as_ref().expect_err("cedar stopped").to_string();
    assert!(error.contains("gone"), "{error}");
    for report in reports {
        let report = report.unwrap_or_else(|error| panic!("{error}"));
        assert!(off(&report, truth) < 5.0 && names(&report, "cedar"), "{:?}", report.warnings);
    }
    assert_eq!(charged(&world), [1, 1]);
}

/// A server that stops before it draws, computes or commits, again and again: nothing is ever charged. One
/// that has committed and cannot keep its share stops nobody.
#[test]
fn a_server_that_stops_before_all_hold_costs_nothing() {
    let (world, truth) = trial(&|s| s);
    let file = held(&world, "ash");
    cut(&file, "held");
    for stage in ["noise", "compute", "release"] {
        let watch = |name: &str| if name == "ash" { dies(stage) } else { quiet(name) };
        let (reports, servers) = all(&world.owners(SALTED), &world.nodes(), watch);
        assert!(reports.iter().all(Result::is_err) && servers.iter().all(Result::is_err), "{stage}");
        assert_eq!(charged(&world), [0, 0], "{stage}");
    }
    let (reports, _) = all(&world.owners(SALTED), &world.nodes(), quiet);
    for report in reports.iter().map(|report| report.as_ref().unwrap_or_else(|e| panic!("{e}"))) {
        assert!(off(report, truth) < 5.0 && names(report, "ash"), "{:?}", report.warnings);
        assert_eq!(report.privacy.attempt, None);
    }
    assert_eq!(charged(&world), [1, 1]);
}

/// One publisher and two advertisers with half of the purchases each, as one study that servers compute.
fn several() -> (World, f64) {
    const NAMES: [&str; 3] = ["paper", "bakery", "cinema"];
    let folder = TempDir::new().unwrap();
    let made = lift(folder.path(), &PEOPLE, &|_, _| ()).unwrap();
    let mut text = include_str!("../../../examples/lift-several.toml").to_owned();
    for (name, digit) in NAMES.iter().zip(["1", "2", "3"]) {
        text = text.replace(&format!("tacit1:{}", digit.repeat(32)), &format!("@{name}"));
    }
    let text = text.replacen("protocol    = \"pid\"", "protocol = \"salted-key\"", 1);
    let (text, _) = text.split_once("[compute]").unwrap_or((&text, ""));
    let servers: String = SERVERS.iter().map(|s| format!("[server.{s}]\nkey = \"@{s}\"\n")).collect();
    std::fs::rename(&made.publisher, folder.path().join("paper.csv")).unwrap();
    let events = std::fs::read_to_string(&made.advertiser).unwrap();
    let (head, lines) = events.split_once('\n').unwrap();
    for (i, name) in NAMES[1..].iter().enumerate() {
        let renamed = head.replacen("bought", "visited", 1).replacen("amount", "spent", 1);
        let own = lines.lines().skip(i).step_by(2).map(|line| format!("{line}\n")).collect::<String>();
        let head = if i == 0 { head } else { &renamed };
        std::fs::write(folder.path().join(format!("{name}.csv")), format!("{head}\n{own}")).unwrap();
    }
    let study = format!("{text}\n{servers}[compute]\nengine = \"ring4\"\n");
    (World::new(folder, &NAMES, &SERVERS, &study), made.truth.lift())
}

#[test]
fn several_advertisers_are_one_study_of_four_servers() {
    let (world, truth) = several();
    let (reports, servers) = whole(all(&world.owners(SALTED), &world.nodes(), quiet));
    for report in &reports {
        assert!(off(report, truth) < 8.0, "{} from {truth}", off(report, truth));
        assert!(report.public == reports[0].public && report.is_public() && report.engine == "ring4");
        assert!(report.stages.iter().all(|stage| stage.price_held), "{:?}", report.stages);
        assert_eq!(world.entries(&report.party), 1);
    }
    assert!(servers.iter().all(|server| server.stages.iter().all(|stage| stage.price_held)));
}
