//! Anchors per second of Collecting PS3I, both parties in this process with one core each: one identifier per
//! row, half of the anchors match one row, the others none.
//!
//! `cargo run --release -p matching --example collecting_rate -- [rows per side] [slots] [degree]`

use base::PartyId;
use matching::{
    CollectingJoin, FlatIdentifiers, MatchOptions, Matcher, PayloadLayout, PayloadTable, ShareBackend,
    TableField,
};
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
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<u64>().expect("a number"));
    let rows = numbers.next().unwrap_or(20_000);
    let [slots, degree] = [numbers.next().unwrap_or(2), numbers.next().unwrap_or(1)].map(|n| n as u32);
    let column = |start: u64| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows as usize));
        for i in start..start + rows {
            bytes.extend(format!("person-{i:09}@example.org").bytes());
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    };
    let columns = [column(0), column(rows / 2)];
    let layouts = [vec![TableField::bits(8)], vec![TableField::number(8), TableField::bits(32)]]
        .map(|fields| PayloadLayout::new(fields).expect("narrow rows"));
    let (cpu_before, memory_before) = usage();
    let start = Instant::now();
    let done = Cluster::new(2, 1).run(|session| {
        let me = session.me().index();
        let (bytes, ends) = &columns[me];
        let payload = PayloadTable::zeros(layouts[me].clone(), rows)?;
        let options = MatchOptions { threads: 1, slots, degree, ..MatchOptions::default() };
        let own = FlatIdentifiers::new(bytes, ends)?;
        let collected =
            CollectingJoin.run(session, &own, Some(&payload), &with_layouts(&options, LAYOUTS))?;
        Ok((collected.disclosed.graph, session.ledger().sent("")))
    });
    let seconds = start.elapsed().as_secs_f64();
    let (cpu, peak) = usage();
    let sizes = Sizes { rows: [rows; 2], keys: [1; 2], slots, degree };
    let estimated: u64 =
        [0, 1].map(|party| memory(PartyId(party), sizes, &layouts, ShareBackend::PermuteShare)).iter().sum();
    let parties: Vec<_> = done.into_iter().map(|d| d.expect("an honest run succeeds")).collect();
    let pairs = parties[0].0.map_or(0, |graph| graph.pairs);
    let bytes: u64 = parties.iter().map(|p| p.1).sum();
    println!("{rows} x {rows} rows, {slots} slots, degree {degree}, {pairs} pairs: {seconds:.2} s");
    println!(
        "  {:.1} CPU s, {:.0} MB of memory of both, {:.0} MB estimated",
        cpu - cpu_before,
        (peak - memory_before) as f64 / 1e6,
        estimated as f64 / 1e6
    );
    println!("  {:.0} anchors/s, {:.0} bytes per anchor", rows as f64 / seconds, bytes as f64 / rows as f64);
}
