//! `tacit demo ring4`: the study of the main demo, computed by four servers. Two owners and four servers are
//! six processes; three of the servers are headless nodes, which the fourth one tells to begin.

use super::DemoArgs;
use super::files::{Folder, polio};
use super::{Summary, story, summary};
use base::Error;
use base::free_address;
use job::run::ServerReport;
use net::KeyFingerprint;
use page::lines::fitted;
use page::numbers::{bytes, count, duration};
use report::RunReport;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use study::Study;
use study::salt;
use terminal::progress::Working;
use terminal::{output, width};

/// The owners, then the servers: the order of the keys in the study.
pub const PARTIES: [&str; 6] = ["registry", "hospitals", "server-1", "server-2", "server-3", "server-4"];
const OWNERS: usize = 2;
/// The server that is started by hand and tells the others to begin.
const HOST: usize = 2;
/// The study, but for the keys.
const STUDY: &str = include_str!("../../../../examples/lift-ring4.toml");
/// What the owners share.
pub const SALT: &str = "owners.salt";

/// The JSON of `tacit demo ring4 --json`: that of the main demo, and the servers.
#[derive(Debug, Serialize)]
struct Served {
    #[serde(flatten)]
    owners: Summary,
    /// By server: what it saw.
    servers: BTreeMap<String, Seen>,
    /// What one server may do.
    security: String,
    /// Servers that waited for word to begin.
    headless: Vec<String>,
}

/// What one server did.
#[derive(Debug, Serialize)]
struct Seen {
    saw: String,
    headless: bool,
    price_held: bool,
    seconds: f64,
}

/// Runs the demo.
///
/// # Errors
/// When the folder is not a demo's, a process fails, or an interval misses the truth.
pub fn run(args: &DemoArgs) -> Result<(), Error> {
    let folder = Folder::claim(&args.out, &PARTIES)?;
    let working = Working::on(format!("making data, keys and study in {}", args.out.display()));
    let scale = args.scale.unwrap_or(1);
    let (generated, study) = (polio(&folder, scale)?, folder.agree(STUDY)?);
    salt::create(&folder.file(SALT))?;
    let addresses = PARTIES.iter().map(|_| free_address()).collect::<Result<Vec<_>, Error>>()?;
    for (index, party) in PARTIES.iter().enumerate() {
        let text = party_text(index, &addresses, &study);
        output::write_file(&folder.party_file(party), text.as_bytes())?;
    }
    drop(working);
    let truth = generated.truth.lift();
    let rows = [generated.publisher_rows, generated.advertiser_rows];
    let tell = |text: &str| if args.json { Ok(()) } else { output::print(text) };
    tell(&opening(&study, rows, scale)?)?;
    tell(&format!("  Stages as {} sees them; bytes are those to and from it.", PARTIES[0]))?;
    let (owners, servers) = follow(&folder, args.json)?;
    let [first, second] = &owners[..] else { return Err(Error::misuse("the demo has two owners")) };
    let served = served(summary(&[first, second], truth)?, &owners, &servers)?;
    if args.json {
        output::print_json(&served)?;
    } else {
        output::print(&closing([first, second], &servers, truth, &served, &folder))?;
    }
    if served.owners.contains_truth {
        return Ok(());
    }
    Err(Error::misuse(super::MISSED))
}

/// A party file as its owner would write it.
fn party_text(index: usize, addresses: &[String], study: &Study) -> String {
    let (name, owner) = (PARTIES[index], index < OWNERS);
    let mut text = format!(
        "# The settings of {name} in the demo; see docs/protocols/ring4.md.\nstudy    = \
         \"study.toml\"\nas       = \"{name}\"\n\
         identity = \"{name}.key\"\nlisten   = \"{}\"\ndeadline = \"2m\"\n",
        addresses[index]
    );
    if owner {
        text += &format!(
            "data     = \"{name}.csv\"\nsalt     = \"{SALT}\"\nledger   = \"{name}.ledger\"\nlineage  = \
             \"{name}\"\nreport   = \"{name}\"\n"
        );
    }
    if index == HOST {
        text += "trigger  = true\n";
    }
    // Servers go to those before them, and the host must find those that it tells; owners go to all.
    let others = (0..PARTIES.len()).filter(|other| *other != index);
    let others: Vec<usize> = match owner {
        true => others.filter(|other| *other >= OWNERS || *other < index).collect(),
        false => others.filter(|other| *other >= OWNERS && (*other < index || index == HOST)).collect(),
    };
    text += "\n[peers]\n";
    others.iter().for_each(|other| text += &format!("{} = \"{}\"\n", PARTIES[*other], addresses[*other]));
    if !owner {
        text += &format!("\n[policy]\nstudies = [\"{}\"]\n", study.hash().full());
    }
    text
}

/// Owners and host run, the other servers wait until the host tells them to begin; all reports.
fn follow(folder: &Folder, json: bool) -> Result<(Vec<RunReport>, Vec<ServerReport>), Error> {
    let words = |index: usize| -> &[&str] {
        if index <= HOST { &["run", "--json", "--events"] } else { &["serve", "--once", "--json", "--child"] }
    };
    let processes = PARTIES.iter().enumerate().map(|(index, party)| (*party, words(index)));
    let mut done: Vec<Value> = super::finish(folder, processes, json)?;
    let servers = done.split_off(OWNERS);
    Ok((revived(done)?, revived(servers)?))
}

fn revived<T: serde::de::DeserializeOwned>(values: Vec<Value>) -> Result<Vec<T>, Error> {
    let read = |value| {
        serde_json::from_value(value).map_err(|e| Error::misuse(format!("a report cannot be read: {e}")))
    };
    values.into_iter().map(read).collect()
}

/// Who takes part and what they agreed on.
fn opening(study: &Study, rows: [u64; 2], scale: u64) -> Result<String, Error> {
    let mut lines = vec![
        "Tacit demo: the 1954 poliomyelitis field trial (Francis 1955), computed by four servers.".to_owned(),
        "Two owners and four servers, six processes, mutually authenticated TLS 1.3. No server holds a row."
            .to_owned(),
        String::new(),
    ];
    if scale > 1 {
        lines.insert(1, format!("A small variant: one child in {scale}, but all the cases."));
    }
    let roles = ["children: arm, injection date", "records: onset date, severity"];
    for (index, (name, key)) in study.everybody().into_iter().enumerate() {
        let key: KeyFingerprint = key.parse()?;
        let (rows, what) = match index {
            0 | 1 => (count(rows[index]), roles[index]),
            HOST => (String::new(), "computes, and tells the others to begin"),
            _ => (String::new(), "computes, headless: waits to be told"),
        };
        lines.push(format!("  {name:10} {rows:>9} {what:40} key {}", key.short()));
    }
    lines.push(format!("  study      {}, hash {}", study.name, study.hash()));
    lines.push(format!("  besides    {}\n", study.matching.tells(&study.parties[0].name)));
    Ok(lines.join("\n"))
}

fn served(owners: Summary, reports: &[RunReport], servers: &[ServerReport]) -> Result<Served, Error> {
    let security = reports.iter().filter_map(|report| report.servers.as_ref()).next();
    let security =
        security.ok_or_else(|| Error::misuse("the report of an outsourced study names servers"))?;
    let headless = |name: &str| name != PARTIES[HOST];
    let seen = |server: &ServerReport| {
        let seen = Seen {
            saw: server.saw.clone(),
            headless: headless(&server.server),
            price_held: server.stages.iter().all(|stage| stage.price_held),
            seconds: server.seconds,
        };
        (server.server.clone(), seen)
    };
    let all: u64 = reports.iter().map(sent).sum::<u64>() + servers.iter().map(sent_by_server).sum::<u64>();
    Ok(Served {
        owners: Summary { bytes: all, ..owners },
        servers: servers.iter().map(seen).collect(),
        security: security.security.clone(),
        headless: servers.iter().map(|s| s.server.clone()).filter(|name| headless(name)).collect(),
    })
}

/// What a party itself sent, by what it stated before: the price is what is sent, to the byte.
fn sent(report: &RunReport) -> u64 {
    let me = PARTIES.iter().position(|party| *party == report.party).unwrap_or_default();
    report.stages.iter().map(|stage| stage.bytes_sent[me]).sum()
}

fn sent_by_server(report: &ServerReport) -> u64 {
    let me = PARTIES.iter().position(|party| *party == report.server).unwrap_or_default();
    report.stages.iter().map(|stage| stage.bytes_sent[me]).sum()
}

/// What each owner sees beside the truth, and what the servers saw.
fn closing(
    reports: [&RunReport; 2],
    servers: &[ServerReport],
    truth: f64,
    served: &Served,
    folder: &Folder,
) -> String {
    let summary = &served.owners;
    let mut out = story::ledger(reports);
    out += "\n\n";
    out += &story::table(reports, truth);
    out += &format!(
        "\n  The truth is from the published counts of cases, 33 and 115.   {}\n",
        if summary.contains_truth { "OK" } else { "NOT OK" }
    );
    out += &format!("  What both owners learned besides: {}\n\n", report::summary::besides(reports[0]));
    for server in servers {
        out += &format!("  {} saw {}\n", server.server, server.saw);
    }
    let held = reports.iter().flat_map(|report| &report.stages).all(|stage| stage.price_held)
        && served.servers.values().all(|server| server.price_held);
    let pages =
        PARTIES[..OWNERS].iter().map(|party| folder.report(party).join("report.html").display().to_string());
    out += &format!(
        "\n  {}: a server that deviates is noticed before anything is revealed.\n  Reports: {} (and \
         .json).\n  Total {}, {} sent by all six{}",
        reports[0].engine_text(),
        pages.collect::<Vec<_>>().join(", "),
        duration(summary.seconds),
        bytes(summary.bytes),
        if held { ", as priced to the byte" } else { ", NOT as priced" },
    );
    let next = [
        "docs/protocols/ring4.md".to_owned(),
        format!("tacit serve {}", folder.party_file(PARTIES[HOST + 1]).display()),
        format!("tacit run {}", folder.party_file(PARTIES[HOST]).display()),
    ];
    format!("{}\n{}", fitted(&out, Some(width::columns()), 2), story::next(&next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use study::party::PartySettings;

    #[test]
    fn party_files_parse_and_say_where_to_go() {
        let study = Study::parse("study.toml", STUDY).unwrap();
        let addresses: Vec<String> = (0..6).map(|i| format!("127.0.0.1:{}", 7000 + i)).collect();
        for index in 0..PARTIES.len() {
            let settings =
                PartySettings::parse("party.toml", &party_text(index, &addresses, &study)).unwrap();
            assert_eq!(settings.serves(&study), index >= OWNERS);
            match index < OWNERS {
                true => assert!(settings.complete().unwrap().salt.is_some()),
                false => {
                    let node = settings.complete_node().unwrap();
                    node.admit(&study).unwrap();
                    assert_eq!(node.trigger, index == HOST);
                }
            }
        }
    }
}
