//! From the text to what it says, or to the first thing that is wrong with it.

use super::{
    AutoStudy, DataSet, FORMAT, HouseSettings, KeepRule, LinkSettings, QuietHours, ServicePeer,
    ServicePolicy, WebProxy, WebSettings,
};
use crate::names::{ACCOUNT_RULE, is_account_name};
use crate::roles::HouseRole;
use base::Error;
use net::KeyFingerprint;
use release::Rational;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use study::party::{host_and_port, parse_memory, parse_rho};
use study::reader::{TomlItem, TomlSection, TomlSource};
use study::{StudyHash, parse_delta};

const ROOT: &[&str] = &[
    "format",
    "name",
    "identity",
    "store",
    "ledger",
    "data_root",
    "web",
    "link",
    "peers",
    "data",
    "policy",
    "keep",
];
const WEB: &[&str] = &["listen", "names", "tls", "proxy", "metrics"];
pub(super) const PEER: &[&str] =
    &["key", "address", "run_ports", "proposals_open", "proposals_per_day", "kinds"];
pub(super) const DATA: &[&str] = &[
    "path",
    "lineage",
    "salt",
    "columns",
    "peers",
    "servers",
    "stewards",
    "least_rows",
    "budget",
    "period",
    "delta",
    "data_change",
    "two_person",
    "steward_keys",
];
pub(super) const POLICY: &[&str] = &[
    "kinds",
    "studies",
    "auto",
    "max_rho",
    "max_delta",
    "max_cells",
    "minimum_group",
    "allow_exact",
    "dummies",
    "candidates",
    "quiet_hours",
    "max_jobs",
    "jobs_memory",
    "longest_run",
    "separate_duties",
    "consent_by_token",
    "second_step",
    "notify",
];

/// Kinds of studies.
const KINDS: [(&str, &str); 3] = [("lift", "lift"), ("program", "program"), ("match", "match")];

/// Reads a text; relative paths in it are relative to `home`.
pub(super) fn parse(file: &str, home: &Path, text: &str) -> Result<HouseSettings, Error> {
    let source = TomlSource { file, text };
    let tree = source.table()?;
    let root = TomlSection::root(source, &tree, ROOT)?;
    let format = root.need("format", &format!("format = \"{FORMAT}\""))?;
    format.choice(&[(FORMAT, ())], &[])?;
    let path = |key: &str, example: &str| -> Result<PathBuf, Error> {
        Ok(home.join(root.need(key, example)?.text()?))
    };
    let peers = named(&root, "peers", peer)?;
    let data = named(&root, "data", |item| data_set(item, home, &peers))?;
    let policy = policy(root.get("policy"), &data)?;
    let settings = HouseSettings {
        name: root.need("name", "name = \"hospitals\"")?.name()?.to_owned(),
        identity: path("identity", "identity = \"hospitals.key\"")?,
        store: path("store", "store = \"service.db\"")?,
        ledger: path("ledger", "ledger = \"hospitals.ledger\"")?,
        data_root: root.get("data_root").map(|item| item.text()).transpose()?.map(|text| home.join(text)),
        web: web(root.get("web"), home)?,
        link: root.get("link").map(|item| link(&item)).transpose()?,
        peers,
        data,
        policy,
        keep: root.get("keep").map_or(Ok(KeepRule::default()), |item| keep(&item, home))?,
    };
    if let (Some(item), None) = (root.get("data"), &settings.data_root) {
        return Err(item.error("there are data and no data_root; add: data_root = \"/srv/tacit/data\""));
    }
    alone(&root, &settings)?;
    Ok(settings)
}

/// Refuses two peers with one key, and two data sets with one budget.
fn alone(root: &TomlSection<'_, '_>, settings: &HouseSettings) -> Result<(), Error> {
    let mut keys = BTreeMap::new();
    for (name, peer) in &settings.peers {
        if let Some(other) = keys.insert(peer.key, name) {
            return Err(root.error(format!("[peers.{other}] and [peers.{name}] have one key: one is wrong")));
        }
    }
    let mut lineages = BTreeMap::new();
    for (name, data) in &settings.data {
        if let Some(other) = lineages.insert(&data.lineage, name) {
            return Err(root.error(format!(
                "[data.{other}] and [data.{name}] have one lineage, {}: a budget is of the same rows, and \
                 its name is never used for others",
                data.lineage
            )));
        }
    }
    Ok(())
}

/// A table of tables whose names people choose.
fn named<T>(
    root: &TomlSection<'_, '_>,
    key: &str,
    read: impl Fn(&TomlItem<'_, '_>) -> Result<T, Error>,
) -> Result<BTreeMap<String, T>, Error> {
    let Some(item) = root.get(key) else { return Ok(BTreeMap::new()) };
    let mut all = BTreeMap::new();
    for (name, item) in item.open_section()?.entries() {
        if !study::reader::is_name(name) {
            return Err(item.error(format!("{key}.{name}: {}", study::reader::NAME_RULE)));
        }
        all.insert(name.to_owned(), read(&item)?);
    }
    Ok(all)
}

fn web(item: Option<TomlItem<'_, '_>>, home: &Path) -> Result<WebSettings, Error> {
    let listen = SocketAddr::from(([127, 0, 0, 1], 8443));
    let mut web = WebSettings { listen, names: Vec::new(), tls: None, proxy: None, metrics: None };
    let Some(item) = item else { return Ok(web) };
    let section = item.section(WEB)?;
    if let Some(item) = section.get("listen") {
        web.listen = item.parsed(|text| {
            text.parse().map_err(|_| "write an address of this machine and a port: 127.0.0.1:8443")
        })?;
    }
    if let Some(item) = section.get("names") {
        web.names = list(&item, |item| item.parsed(host_name))?;
    }
    if let Some(item) = section.get("tls") {
        let tls = item.section(&["cert", "key"])?;
        let path = |key: &str| -> Result<PathBuf, Error> {
            Ok(home.join(tls.need(key, "tls = { cert = \"web.pem\", key = \"web.key\" }")?.text()?))
        };
        web.tls = Some((path("cert")?, path("key")?));
    }
    web.proxy = section.get("proxy").map(|item| proxy(&item, home)).transpose()?;
    web.metrics = section.get("metrics").map(|item| Ok::<_, Error>(home.join(item.text()?))).transpose()?;
    if web.names.is_empty() && !web.listen.ip().is_loopback() {
        return Err(section.error(
            "[web] listens beyond this machine and has no names, so that no browser would be answered; add: \
             names = [\"tacit.example.org\"]",
        ));
    }
    Ok(web)
}

fn proxy(item: &TomlItem<'_, '_>, home: &Path) -> Result<WebProxy, Error> {
    let section = item.section(&["socket", "uid", "user_header"])?;
    let header = section.need("user_header", "user_header = \"X-Forwarded-User\"")?.parsed(|text| {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let good = !text.is_empty() && text.len() <= 64 && text.chars().all(plain);
        if good { Ok(text.to_ascii_lowercase()) } else { Err("write the name of a header: X-Forwarded-User") }
    })?;
    let uid = section.need("uid", "uid = 33")?.integer(0..=u64::from(u32::MAX))?;
    Ok(WebProxy {
        socket: home.join(section.need("socket", "socket = \"/run/tacit/web.sock\"")?.text()?),
        uid: u32::try_from(uid).unwrap_or(u32::MAX),
        user_header: header,
    })
}

/// A name of the page as browsers send it.
fn host_name(text: &str) -> Result<String, &'static str> {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let named = !host.is_empty() && host.len() <= 253 && host.chars().all(good);
    match port.map(str::parse::<u16>) {
        Some(Err(_)) => Err("the port is a number: tacit.example.org:8443"),
        _ if !named => Err("write a host's name, with its port if it is not 443: tacit.example.org:8443"),
        Some(Ok(443)) => Ok(host.to_ascii_lowercase()),
        _ => Ok(text.to_ascii_lowercase()),
    }
}

fn link(item: &TomlItem<'_, '_>) -> Result<LinkSettings, Error> {
    let section = item.section(&["listen", "run_ports"])?;
    let listen = section.need("listen", "listen = \"0.0.0.0:7000\"")?.parsed(host_and_port)?;
    let run_ports = section.need("run_ports", "run_ports = \"7001-7008\"")?.parsed(ports)?;
    Ok(LinkSettings { listen, run_ports })
}

fn ports(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if (1024..=last).contains(&first) => Ok(first..=last),
        _ => Err("write two ports from 1024, the lower one first: \"7001-7008\""),
    }
}

fn peer(item: &TomlItem<'_, '_>) -> Result<ServicePeer, Error> {
    let section = item.section(PEER)?;
    let key = section.need("key", "key = \"tacit1:...\", as `tacit keygen` prints it there")?;
    Ok(ServicePeer {
        key: key.text()?.parse::<KeyFingerprint>().map_err(|e| key.error(e))?,
        address: section.get("address").map(|item| item.parsed(host_and_port)).transpose()?,
        run_ports: section.get("run_ports").map(|item| item.parsed(ports)).transpose()?,
        proposals_open: number(&section, "proposals_open", 0..=1_000, 20)?,
        proposals_per_day: number(&section, "proposals_per_day", 0..=10_000, 100)?,
        kinds: kinds(&section)?,
    })
}

fn data_set(
    item: &TomlItem<'_, '_>,
    home: &Path,
    known: &BTreeMap<String, ServicePeer>,
) -> Result<DataSet, Error> {
    let section = item.section(DATA)?;
    let path = section.need("path", "path = \"admissions/\"")?;
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !Path::new(path.text()?).components().all(inside) {
        return Err(path.refuse("write a path below data_root, without .. and not from /"));
    }
    let named = |key: &str| {
        texts(&section, key, |item| {
            let name = item.name()?;
            match known.contains_key(name) {
                true => Ok(name.to_owned()),
                false => Err(item.refuse(format!("there is no [peers.{name}]"))),
            }
        })
    };
    let (peers, servers) = (named("peers")?, named("servers")?);
    let stewards = texts(&section, "stewards", |item| {
        let name = item.text()?;
        if is_account_name(name) { Ok(name.to_owned()) } else { Err(item.refuse(ACCOUNT_RULE)) }
    })?;
    let period = section.get("period").map(|item| {
        let period = item.section(&["days", "rho"])?;
        let example = "period = { days = 90, rho = 0.3 }";
        let days = period.need("days", example)?.integer(1..=3650)?;
        Ok::<_, Error>((days, rho(&period.need("rho", example)?)?))
    });
    let change = section.get("data_change").map(|item| item.choice(&[("ask", false), ("allow", true)], &[]));
    Ok(DataSet {
        path: path.text()?.to_owned(),
        lineage: section.need("lineage", "lineage = \"admissions\"")?.name()?.to_owned(),
        salt: section.get("salt").map(|item| item.text().map(|text| home.join(text))).transpose()?,
        columns: texts(&section, "columns", |item| item.text().map(str::to_owned))?,
        peers,
        servers,
        stewards,
        least_rows: number(&section, "least_rows", 0..=1 << 40, 1_000)?,
        budget: rho(&section.need("budget", "budget = 1.0")?)?,
        period: period.transpose()?,
        delta_places: section.get("delta").map(|item| item.parsed(parse_delta)).transpose()?,
        changes_allowed: change.transpose()?.unwrap_or(false),
        two_person: boolean(&section, "two_person", false)?,
        steward_keys: texts(&section, "steward_keys", steward_key)?,
    })
}

/// A key that `tacit keygen` made, or one of SSH.
fn steward_key(item: &TomlItem<'_, '_>) -> Result<KeyFingerprint, Error> {
    let text = item.text()?;
    if text.starts_with("ssh-") {
        let rule = "write the line of an Ed25519 key: ssh-ed25519 AAAA..";
        return statements::ssh_key(text).ok_or_else(|| item.refuse(rule));
    }
    text.parse::<KeyFingerprint>().map_err(|e| item.error(e))
}

/// `HASH` or `HASH DATA`.
fn auto(item: &TomlItem<'_, '_>, data: &BTreeMap<String, DataSet>) -> Result<AutoStudy, Error> {
    let text = item.text()?;
    let (hash, name) = text.split_once(' ').map_or((text, None), |(hash, name)| (hash, Some(name.trim())));
    let study = StudyHash::parse(hash)
        .ok_or_else(|| item.refuse("write all 64 hex digits of its hash, and after a space its data set"))?;
    match name.filter(|name| !data.contains_key(*name)) {
        Some(name) => Err(item.refuse(format!("there is no [data.{name}]"))),
        None => Ok(AutoStudy { study, data: name.map(str::to_owned) }),
    }
}

fn policy(item: Option<TomlItem<'_, '_>>, data: &BTreeMap<String, DataSet>) -> Result<ServicePolicy, Error> {
    let nothing = TomlSource { file: "", text: "" };
    let empty = nothing.table()?;
    let section = match &item {
        Some(item) => item.section(POLICY)?,
        None => TomlSection::root(nothing, &empty, POLICY)?,
    };
    let hashes = |key: &str| {
        texts(&section, key, |item| {
            StudyHash::parse(item.text()?).ok_or_else(|| item.refuse("write all 64 hex digits of its hash"))
        })
    };
    let dummies = section.get("dummies").map(|item| item.choice(&[("required", false), ("any", true)], &[]));
    Ok(ServicePolicy {
        kinds: kinds(&section)?,
        studies: hashes("studies")?,
        auto: texts(&section, "auto", |item| auto(item, data))?,
        max_rho: section.get("max_rho").map(|item| rho(&item)).transpose()?,
        max_delta_places: section.get("max_delta").map(|item| item.parsed(parse_delta)).transpose()?,
        max_cells: number(&section, "max_cells", 0..=1_000_000, 20)?,
        minimum_group: number(&section, "minimum_group", 0..=1 << 40, 1_000)?,
        allow_exact: boolean(&section, "allow_exact", false)?,
        without_dummies: dummies.transpose()?.unwrap_or(false),
        candidates: number(&section, "candidates", 2..=1024, 64)?,
        quiet_hours: texts(&section, "quiet_hours", |item| item.parsed(str::parse::<QuietHours>))?,
        max_jobs: number(&section, "max_jobs", 0..=64, 2)?,
        jobs_memory: section
            .get("jobs_memory")
            .map(|item| item.parsed(parse_memory))
            .transpose()?
            .unwrap_or(1 << 30),
        longest_run: section.get("longest_run").map(|item| item.parsed(span)).transpose()?,
        separate_duties: boolean(&section, "separate_duties", true)?,
        consent_by_token: boolean(&section, "consent_by_token", false)?,
        second_step: texts(&section, "second_step", |item| {
            let name = item.text()?;
            let role = HouseRole::named(name)
                .ok_or_else(|| item.refuse("write viewer, analyst, steward or operator"));
            role.map(|role| role.name().to_owned())
        })?,
        notify: texts(&section, "notify", |item| item.text().map(str::to_owned))?,
    })
}

/// Seconds of a time that a run may take.
fn span(text: &str) -> Result<u64, &'static str> {
    const RULE: &str = "write a whole number with m, h or d, from 1m to 30d: 6h";
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3_600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        _ => return Err(RULE),
    };
    let count: u64 = digits.parse().map_err(|_| RULE)?;
    count.checked_mul(unit).filter(|seconds| (60..=30 * 86_400).contains(seconds)).ok_or(RULE)
}

fn keep(item: &TomlItem<'_, '_>, home: &Path) -> Result<KeepRule, Error> {
    let section = item.section(&["log_days", "reports_days", "folder"])?;
    let days = |key: &str| section.get(key).map(|item| item.integer(30..=36_500)).transpose();
    let folder = section.get("folder").map(|item| item.text().map(|text| home.join(text))).transpose()?;
    let keep = KeepRule { log_days: days("log_days")?, reports_days: days("reports_days")?, folder };
    match &keep.folder {
        None if keep.log_days.or(keep.reports_days).is_some() => Err(section.error(
            "[keep] takes away what is old, and no folder says where it is written before; add: folder = \
             \"kept\"",
        )),
        _ => Ok(keep),
    }
}

fn kinds(section: &TomlSection<'_, '_>) -> Result<Vec<String>, Error> {
    texts(section, "kinds", |item| item.choice(&KINDS, &[]).map(str::to_owned))
}

fn texts<T>(
    section: &TomlSection<'_, '_>,
    key: &str,
    read: impl Fn(&TomlItem<'_, '_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    section.get(key).map_or(Ok(Vec::new()), |item| list(&item, read))
}

fn list<T>(
    item: &TomlItem<'_, '_>,
    read: impl Fn(&TomlItem<'_, '_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    item.list()?.iter().map(read).collect()
}

fn number(
    section: &TomlSection<'_, '_>,
    key: &str,
    range: RangeInclusive<u64>,
    unsaid: u64,
) -> Result<u64, Error> {
    section.get(key).map_or(Ok(unsaid), |item| item.integer(range))
}

fn boolean(section: &TomlSection<'_, '_>, key: &str, unsaid: bool) -> Result<bool, Error> {
    section.get(key).map_or(Ok(unsaid), |item| item.boolean())
}

fn rho(item: &TomlItem<'_, '_>) -> Result<Rational, Error> {
    parse_rho(&item.number_text()?).map_err(|rule| item.refuse(rule))
}
