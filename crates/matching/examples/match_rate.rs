//! Rows per second of a matching protocol, all parties in this process on one thread each, half of the rows
//! shared, and its price held against what was sent.
//!
//! `cargo run --release -p matching --example match_rate -- [NAME=VALUE ...]`, where names are `protocol`
//! (`pid`, `ps3i`, `collecting`, `circuit-psi`), `rows` of each side, `parties`, `keys` (identifiers of a
//! row), `bytes` (of payload), `ot`, `slots`, `degree`, `partitions` and `mib` (memory of each party).

use base::Error;
use matching::{IdentifierSource, MatchOptions, PayloadLayout, PayloadTable, TableField, matcher};
use net::cluster::Cluster;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Made-up people from a number on, each with as many identifiers.
struct People {
    from: u64,
    rows: u64,
    keys: usize,
}

impl IdentifierSource for People {
    fn rows(&self) -> u64 {
        self.rows
    }

    fn keys(&self) -> usize {
        self.keys
    }

    fn read(&self, row: u32, key: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        let person = self.from + u64::from(row);
        into.clear();
        into.extend_from_slice(format!("person-{person:09}@example-{key}.org").as_bytes());
        Ok(())
    }
}

/// User and system seconds of this process so far, and its peak memory in bytes.
fn usage() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    (ticks as f64 / 100.0, peak.unwrap_or(0u64) * 1024)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let set: BTreeMap<&str, &str> =
        arguments.iter().map(|text| text.split_once('=').expect("NAME=VALUE")).collect();
    let number = |name: &str, usual: u64| set.get(name).map_or(usual, |text| text.parse().expect("a number"));
    let (rows, parties, keys) =
        (number("rows", 100_000), number("parties", 2) as usize, number("keys", 1) as usize);
    let name = set.get("protocol").copied().unwrap_or("pid");
    let matcher = matcher(name, parties, keys).expect("a protocol for so many parties and identifiers");
    let layout = PayloadLayout::new(vec![TableField::number(8); number("bytes", 64) as usize / 8]);
    let layout = layout.expect("narrow enough");
    let options = MatchOptions {
        threads: 1,
        partitions: number("partitions", 1) as u32,
        memory: set.get("mib").map(|text| text.parse::<u64>().expect("a number") << 20),
        slots: number("slots", 4) as u32,
        degree: number("degree", 1) as u32,
        ot: set.get("ot").map(|text| text.parse().expect("a kind of OT")),
        layouts: [layout.clone(), layout.clone()],
        ..MatchOptions::default()
    };
    let shared = matcher.features().form.shared();
    let ((cpu_before, before), start) = (usage(), Instant::now());
    let done = Cluster::new(parties, 1).deadline(Duration::from_secs(600)).run(|session| {
        let me = session.me().index();
        let people = People { from: me as u64 * (rows - rows / 2), rows, keys };
        let brings = shared.is_some_and(|shared| shared[me]);
        let payload = brings.then(|| PayloadTable::zeros(layout.clone(), rows)).transpose()?;
        let outcome = matcher.run(session, &people, payload.as_ref().map(|table| table as _), &options)?;
        Ok((outcome.disclosed.sizes, session.traffic().sent("")))
    });
    let seconds = start.elapsed().as_secs_f64();
    let (cpu, peak) = usage();
    let told: Vec<_> = done.into_iter().map(|party| party.expect("an honest run succeeds")).collect();
    let (sizes, bytes) = (&told[0].0, told.iter().map(|(_, sent)| sent).sum::<u64>());
    let price = matcher.price(sizes, &options);
    assert_eq!(price.bytes(), bytes, "the price is the ledger");
    let per_row = |x: f64| x / rows as f64;
    println!("{name}: {rows} rows of each of {parties}, union {} as far as told", sizes.union);
    println!(
        "  {seconds:.2} s, {:.0} rows/s, {:.1} CPU us per row of all",
        rows as f64 / seconds,
        per_row(cpu - cpu_before) * 1e6
    );
    println!("  {:.0} bytes sent per row, {} OTs", per_row(bytes as f64), price.ots);
    println!(
        "  {:.0} bytes of memory per row and party, inputs aside",
        per_row((peak - before) as f64) / parties as f64
    );
}
