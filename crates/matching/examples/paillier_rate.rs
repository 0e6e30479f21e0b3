//! Rows per second that Paillier encryption moves into shares, both parties in this process with one core
//! each; the taker asks for half of the rows, each a number of 8 bytes.
//!
//! `cargo run --release -p matching --example paillier_rate -- [rows]`

use base::PartyId;
use matching::paillier::{self, PayloadGiver, key::SecretKey};
use matching::{PayloadLayout, PayloadTable, TableField};
use net::cluster::Cluster;
use std::time::Instant;

/// Seconds of one call, the mean of a few.
fn seconds(mut work: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..8).for_each(|_| work());
    start.elapsed().as_secs_f64() / 8.0
}

fn main() {
    let rows = std::env::args().nth(1).map_or(500, |a| a.parse::<u64>().expect("a number of rows"));
    let mut rng = base::Seed::from_bytes([1; 32]).into_rng();
    let mut key = SecretKey::generate(&mut rng);
    let fresh = seconds(|| key = SecretKey::generate(&mut rng));
    let own = seconds(|| drop(key.randomiser(&mut rng)));
    let theirs = seconds(|| drop(key.public().randomiser(&mut rng)));
    let sealed = key.encrypt(&paillier::key::Plaintext::from_limbs([1; 32]), key.randomiser(&mut rng));
    let open = seconds(|| drop(key.decrypt(&sealed)));
    println!(
        "milliseconds: key {:.0}, randomiser by factors {:.2}, without {:.2}, decryption {:.2}",
        fresh * 1e3,
        own * 1e3,
        theirs * 1e3,
        open * 1e3
    );

    let layout = PayloadLayout::new([TableField::number(8)]).expect("a narrow row");
    let table = PayloadTable::zeros(layout, rows).expect("few rows");
    let map: Vec<u32> = (0..rows as u32 / 2).collect();
    let start = Instant::now();
    let done = Cluster::new(2, 1).run(|session| {
        if session.me() == PartyId(0) {
            let seed = session.fork_seed("giver");
            let giver = PayloadGiver::prepare(&seed, rows, table.layout(), 1);
            giver.give(session, &table, map.len() as u64)?;
        } else {
            paillier::take(session, table.layout(), rows, &map, 1)?;
        }
        Ok(session.traffic().sent(""))
    });
    let seconds = start.elapsed().as_secs_f64();
    let bytes: u64 = done.into_iter().map(|sent| sent.expect("an honest run succeeds")).sum();
    println!("{rows} rows, {} asked for: {seconds:.2} s, {:.0} rows/s", map.len(), rows as f64 / seconds);
    println!("  {:.0} bytes per row", bytes as f64 / rows as f64);
}
