//! Rows per second of PS3I, both parties in this process with one core each, half of the rows shared.
//!
//! `cargo run --release -p matching --example ps3i_rate -- [rows per side] [bytes of payload] [OTs]`

use matching::{
    FlatIdentifiers, InnerJoin, MatchOptions, Matcher, PayloadLayout, PayloadTable, ShareBackend, TableField,
    ps3i,
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

/// Seconds since the last call.
fn lap(from: &mut Instant) -> f64 {
    let now = Instant::now();
    now.duration_since(std::mem::replace(from, now)).as_secs_f64()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, usual: u64| arguments.get(i).map_or(usual, |a| a.parse().expect("a number"));
    let (rows, width) = (number(0, 20_000), number(1, 64));
    let ot = arguments.get(2).map_or(Ok(ot::OtKind::default()), |a| a.parse()).expect("a kind of OT");
    let column = |start: u64| {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows as usize));
        for i in start..start + rows {
            bytes.extend(format!("person-{i:09}@example.org").bytes());
            ends.push(bytes.len() as u64);
        }
        (bytes, ends)
    };
    let columns = [column(0), column(rows - rows / 2)];
    let layout = PayloadLayout::new(vec![TableField::number(8); width as usize / 8]).expect("narrow enough");
    let tables = [0, 1].map(|_| PayloadTable::zeros(layout.clone(), rows).expect("it fits"));
    let ((cpu_before, before), mut clock) = (usage(), Instant::now());
    let done = Cluster::new(2, 1).run(|session| {
        let me = session.me().index();
        let (bytes, ends) = &columns[me];
        let options = MatchOptions { threads: 1, ot, ..MatchOptions::default() };
        let matched = InnerJoin.run(
            session,
            &FlatIdentifiers::new(bytes, ends)?,
            Some(&tables[me]),
            &with_layouts(&options, LAYOUTS),
        )?;
        Ok((matched.disclosed.matched, session.ledger().clone()))
    });
    let seconds = lap(&mut clock);
    let (cpu, peak) = usage();
    let parties: Vec<_> = done.into_iter().map(|d| d.expect("an honest run succeeds")).collect();
    let sizes = Sizes { rows: [rows, rows], matched: parties[0].0 };
    let layouts = [layout.clone(), layout];
    let price = ps3i::price(sizes, &layouts, ShareBackend::PermuteShare, ot);
    let bytes: u64 = parties.iter().map(|(_, ledger)| ledger.sent("")).sum();
    assert_eq!(price.bytes(), bytes, "the price is the ledger");
    let per_row = |x: f64| x / rows as f64;
    println!("{rows} rows of {width} bytes each, {} matches, {ot}", sizes.matched);
    println!(
        "  {seconds:.2} s, {:.0} rows/s, {:.1} CPU us per row of both",
        1.0 / per_row(seconds),
        per_row(cpu - cpu_before) * 1e6
    );
    println!("  {:.0} bytes sent per row, {} OTs", per_row(bytes as f64), price.ots);
    println!(
        "  {:.0} bytes of memory per row and party, inputs aside",
        per_row((peak - before) as f64) / 2.0
    );
}
