//! Rows per second of multi-identifier Private-ID (two parties) and of Private-ID among n parties, all in
//! this process with one core each. Half of the rows are shared: with everybody's next party, where there are
//! more than two.
//!
//! `cargo run --release -p matching --example multi_rate -- [rows per side] [identifiers of a row]`
//! `cargo run --release -p matching --example multi_rate -- [rows per side] parties [parties]`

use base::{Error, PartyId};
use matching::{
    IdentifierSource, ManyId, MatchOptions, MatchSizes, Matcher, MultiId, PairSizes, many_pid, multi_pid,
};
use net::cluster::Cluster;
use std::io::Write;
use std::time::Instant;

/// People `start..start + rows`; of two identifiers every tenth row lacks one.
struct People {
    start: u64,
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
        into.clear();
        let person = self.start + u64::from(row);
        if self.keys > 1 && person % 10 == key as u64 {
            return Ok(());
        }
        write!(into, "{key}-person-{person:09}@example.org").map_err(|e| Error::io("writing to memory", &e))
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
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| args.get(at).and_then(|a| a.parse::<u64>().ok());
    let rows = number(0).unwrap_or(20_000);
    let among = args.get(1).is_some_and(|word| word == "parties");
    let parties = if among { number(2).unwrap_or(3) as usize } else { 2 };
    let keys = if among { 1 } else { number(1).unwrap_or(2) };
    let (before, start) = (usage(), Instant::now());
    let done = Cluster::new(parties, 1).deadline(std::time::Duration::from_secs(600)).run(|session| {
        let me = session.me().index() as u64;
        let people = People { start: me * rows / 2, rows, keys: keys as usize };
        let union = if among {
            ManyId.run(session, &people, None, &MatchOptions { threads: 1, ..Default::default() })?.spine.rows
        } else {
            MultiId
                .run(session, &people, None, &MatchOptions { threads: 1, ..Default::default() })?
                .spine
                .rows
        };
        Ok((union, session.ledger().sent("")))
    });
    let seconds = start.elapsed().as_secs_f64();
    let after = usage();
    let done: Vec<_> = done.into_iter().map(|d| d.expect("an honest run succeeds")).collect();
    let union = done[0].0;
    assert_eq!(union, rows + (parties as u64 - 1) * (rows - rows / 2), "the union is the one made up");
    let products: u64 = (0..parties)
        .map(|party| match among {
            true => many_pid::multiplications(&MatchSizes { rows: vec![rows; parties], union }, party),
            false => {
                let sizes = PairSizes { rows: [rows; 2], keys: [keys; 2], union };
                multi_pid::multiplications(sizes, PartyId(party as u8))
            }
        })
        .sum();
    let sent: u64 = done.iter().map(|party| party.1).sum();
    println!("{parties} parties of {rows} rows, {keys} identifiers each, union {union}: {seconds:.2} s");
    println!("  {:.0} rows/s, {:.1} CPU s of all", rows as f64 / seconds, after.0 - before.0);
    println!("  {products} products, {:.2} us each", (after.0 - before.0) * 1e6 / products as f64);
    println!(
        "  {:.0} bytes sent per row of one side, {:.0} bytes of memory per row of one side and party",
        sent as f64 / rows as f64,
        (after.1 - before.1) as f64 / (parties as u64 * rows) as f64
    );
}
