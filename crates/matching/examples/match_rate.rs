//! Rows per second of Private-ID, both parties in this process with one core each, half of the rows shared.
//!
//! `cargo run --release -p matching --example match_rate --
//! [rows per side] [rows of the other side] [MiB per party]`

use matching::{FlatIdentifiers, MatchOptions, Matcher, PairSizes, PrivateId, pid};
use net::cluster::Cluster;
use std::time::Instant;

/// User and system seconds of this process so far, and its peak memory in bytes.
fn usage() -> (f64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: u64 = stat.split(' ').skip(13).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    (ticks as f64 / 100.0, peak.unwrap_or(0u64) * 1024)
}

fn main() {
    let mut rows = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number of rows"));
    let n_c = rows.next().unwrap_or(20_000);
    let n_p = rows.next().unwrap_or(n_c);
    let memory = rows.next().map(|mebibytes| mebibytes << 20);
    let shared = n_c.min(n_p) / 2;
    let column = |start: u64, n: u64| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(n as usize));
        for i in start..start + n {
            bytes.extend(format!("person-{i:09}@example.org").bytes());
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    };
    let columns = [column(0, n_c), column(n_c - shared, n_p)];
    let (cpu_before, memory_before) = usage();
    let start = Instant::now();
    let done = Cluster::new(2, 1).run(|session| {
        let (bytes, ends) = &columns[session.me().index()];
        let options = MatchOptions { threads: 1, memory, ..MatchOptions::default() };
        let spine = PrivateId.run(session, &FlatIdentifiers::new(bytes, ends)?, None, &options)?;
        Ok((spine.disclosed.union, session.ledger().sent("")))
    });
    let seconds = start.elapsed().as_secs_f64();
    let (cpu, peak) = usage();
    let parties: Vec<_> = done.into_iter().map(|d| d.expect("an honest run succeeds")).collect();
    let union = parties[0].0;
    let bytes: u64 = parties.iter().map(|p| p.1).sum();
    let sizes = PairSizes { rows: [n_c, n_p], union };
    let operations = 2 * pid::multiplications(sizes) + n_c + n_p;
    let larger = n_c.max(n_p) as f64;
    println!(
        "{n_c} x {n_p} rows, union {union}: {seconds:.2} s, {:.0} rows/s of the larger side",
        larger / seconds
    );
    println!(
        "  {:.1} CPU s of both, {:.1} us per group operation",
        cpu - cpu_before,
        (cpu - cpu_before) * 1e6 / operations as f64
    );
    println!(
        "  {:.0} bytes sent per row of the larger side, {:.0} bytes of memory per row of one side and party, \
         {} MB in all",
        bytes as f64 / larger,
        (peak - memory_before) as f64 / (n_c + n_p) as f64,
        peak / 1_000_000
    );
}
