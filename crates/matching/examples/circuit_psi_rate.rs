//! How fast circuit-PSI runs in one process, a thread per party: `cargo run --release -p matching --example
//! circuit_psi_rate -- [rows] [payload bytes] [back end]`. Both sides have as many rows, half of them shared.
//!
//! Prints bytes per row by step and party, and seconds of wall clock and of each party's processor time,
//! which a busy machine does not change much (Linux only).

use base::Error;
use matching::{
    CircuitJoin, FlatIdentifiers, JoinedPart, MatchOptions, Matcher, PayloadLayout, PayloadTable, TableField,
    ValidEntries, circuit_psi,
};
use net::cluster::Cluster;
use std::time::Instant;

/// Identifiers of 16 bytes from `start` on.
fn column(start: u64, rows: u64) -> (Vec<u8>, Vec<u64>) {
    let name = |i: u64| format!("{:016x}", (start + i).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    ((0..rows).flat_map(|i| name(i).into_bytes()).collect(), (1..=rows).map(|i| 16 * i).collect())
}

/// Seconds that this thread has spent computing.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let mut number = |usual: u64| args.next().map_or(usual, |arg| arg.parse().expect("a number"));
    let (rows, bytes) = (number(1_000_000), number(64) as usize);
    let ot = args.next().map_or(Ok(MatchOptions::default().ot), |name| name.parse())?;
    let layout = PayloadLayout::new(std::iter::repeat_n(TableField::number(8), bytes / 8))?;
    let mut payload = PayloadTable::zeros(layout.clone(), rows)?;
    (0..rows).for_each(|row| (0..bytes / 8).for_each(|field| payload.set(row, field, u128::from(row))));
    let columns = [column(0, rows), column(rows / 2, rows)];
    let options = MatchOptions { ot, ..MatchOptions::default() };
    let start = Instant::now();
    let done = Cluster::new(2, 1).run(|session| {
        let me = session.me().index();
        let own = FlatIdentifiers::new(&columns[me].0, &columns[me].1)?;
        let before = cpu();
        let joined = CircuitJoin
            .run(
                session,
                &own,
                (me == 1).then_some(&payload),
                &with_layouts(&options, [PayloadLayout::default(), (&layout).clone()]),
            )?
            .joined;
        Ok((joined, session.ledger().clone(), cpu() - before))
    });
    let wall = start.elapsed().as_secs_f64();
    let done = done.into_iter().collect::<Result<Vec<_>, Error>>()?;
    for (name, (_, ledger, seconds)) in ["receiver", "sender"].iter().zip(&done) {
        println!("{name:8} {seconds:.2} s of processor time");
        for entry in ledger.entries() {
            println!("  {:32} {:9.2} B/row", entry.step, entry.sent as f64 / rows as f64);
        }
    }
    let bits = |party: usize| match &done[party].0.valid {
        ValidEntries::Shared(bits) => bits,
        _ => unreachable!("validity is shared"),
    };
    let matched: u32 = bits(0).iter().zip(bits(1)).map(|(a, b)| (a ^ b).count_ones()).sum();
    assert_eq!(u64::from(matched), rows - rows / 2, "half of the rows match");
    assert!(matches!(done[1].0.parts[0], JoinedPart::Theirs));
    let sent: u64 = done.iter().map(|(_, ledger, _)| ledger.sent("")).sum();
    assert_eq!(sent, circuit_psi::price([rows; 2], &layout, ot).bytes(), "the price");
    let per_row = sent as f64 / rows as f64;
    println!(
        "{rows} x {rows} rows, {bytes} B, {ot}: {wall:.2} s, {:.0} rows/s, {per_row:.1} B/row",
        rows as f64 / wall
    );
    Ok(())
}
