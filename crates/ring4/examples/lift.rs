//! Rows of a lift study on four servers, owners and all in one process:
//! `lift [ROWS [K [CHUNK]]] [semi-honest|malicious] [cuda]`; with `cuda` the servers share the first GPU.
//!
//! Prints rows/s, ANDs/s, bytes per row and product, semi-honest and malicious, and compares the totals with
//! the study's definitions.

use accel::DeviceQueue;
use accel_cuda::Cuda;
use base::{Error, PartyId};
use engine::{Engine, RowInput, RowSource, Share, Shares, StagePrice};
use net::cluster::Cluster;
use ring4::{Ring4, Security, Settings, TagHash};
use std::time::{Duration, Instant};
use studies::lift::{BenchRows, LiftParameters, bench_truth, build};

const SERVERS: [PartyId; 4] = [PartyId(2), PartyId(3), PartyId(4), PartyId(5)];

/// The devices of a server.
fn devices() -> Result<DeviceQueue, Error> {
    if std::env::args().any(|text| text == "cuda") {
        return Ok(DeviceQueue::new(vec![Box::new(Cuda::new(0)?)]).with_cpu());
    }
    Ok(DeviceQueue::default())
}

fn main() -> Result<(), Error> {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let rows = numbers.next().unwrap_or(100_000);
    let lift = LiftParameters::bench(numbers.next().unwrap_or(4) as u8);
    let chunk = numbers.next();
    let (program, layout) = build(&lift)?;
    let wanted = |name: &str| {
        !std::env::args().any(|text| ["semi-honest", "malicious"].contains(&&*text) && text != name)
    };
    let models = [(Security::SemiHonest, "semi-honest"), (Security::Malicious, "malicious")];
    for (security, _) in models.into_iter().filter(|(_, name)| wanted(name)) {
        let settings = Settings { security, hash: TagHash::Keyed, masked: security == Security::Malicious };
        let engine = || Ring4::new(settings, SERVERS, devices);
        let ring4 = chunk.map_or_else(engine, |rows| engine().with_chunk(rows as usize));
        let stage = ring4.rows(&program, RowSource::Owned)?;
        let start = Instant::now();
        let done = Cluster::new(6, 1).deadline(Duration::from_secs(600)).run(|session| {
            let mut part = BenchRows::new(&lift, &layout, Some(session.me()), rows, 7);
            let shares = stage.run(RowInput::Owned(&mut part), session)?;
            Ok((shares, session.traffic().sent("")))
        });
        let seconds = start.elapsed().as_secs_f64();
        let done: Vec<(Shares, u64)> = done.into_iter().collect::<Result<_, _>>()?;
        let truth = bench_truth(&lift, rows, 7);
        let right = layout.totals.iter().all(|total| {
            let fold = total.fold as usize;
            let held = done.iter().map(|(shares, _)| &shares.folds()[fold]);
            let want = truth.get(total.cell, total.arm, total.quantity);
            whole(held, program.folds[fold].ty().mask()) == Some(want)
        });
        let StagePrice { cost: price, and_gates: ands, .. } = stage.price(rows);
        let sent: Vec<u64> = done.iter().map(|(_, sent)| *sent).collect();
        let (owners, servers) = (sent[..2].iter().sum::<u64>(), sent[2..].iter().sum::<u64>());
        println!(
            "{security:?}: {rows} rows in {seconds:.2} s = {:.0} rows/s; {} ANDs per row, {:.1} M AND/s; \
             bytes per row: owners {:.0}, servers {:.0}; {:.2} bits per AND; {} rounds; totals {}, price {}",
            rows as f64 / seconds,
            ands / rows,
            ands as f64 / seconds / 1e6,
            owners as f64 / rows as f64,
            servers as f64 / rows as f64,
            8.0 * servers as f64 / ands as f64,
            price.rounds,
            if right { "right" } else { "WRONG" },
            if price.sent == sent { "exact" } else { "WRONG" },
        );
    }
    Ok(())
}

/// A total from what everybody holds of it.
fn whole<'a>(held: impl Iterator<Item = &'a Share>, mask: u128) -> Option<u128> {
    let mut summands = [None; 4];
    for share in held {
        match share {
            Share::Known(total) => return Some(*total),
            Share::Replicated(held) => summands.iter_mut().zip(held).for_each(|(s, h)| *s = s.or(*h)),
            _ => {}
        }
    }
    summands.into_iter().try_fold(0u128, |sum, s| Some(sum.wrapping_add(s?))).map(|sum| sum & mask)
}
