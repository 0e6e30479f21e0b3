//! `bench ring4`: products of shared vectors among four computing parties, each a process of its own.

mod scaling;
mod seat;

pub use seat::Task;

use super::party::Job;
use super::{keys, start};
use crate::args::{Bench, Bits, HashName, SecurityName, TransportName};
use crate::follow::Children;
use crate::progress::Working;
use crate::{machine, output};
use base::Error;
use net::connect::free_address;
use seat::{Measured, NAMES, Run, Setting};
use serde::Serialize;
use std::collections::BTreeMap;

/// Blocks of one vector unless the command line says otherwise.
const VECTOR_BLOCKS: u64 = 1 << 14;
/// Blocks of one run: about a second.
const RUN_BLOCKS: u64 = 16 << 20;
/// Dependent products of one run: fewer where a run is a short one.
const CHAIN: u64 = 2_000;
/// What `--all` runs over.
const SECURITY: [SecurityName; 2] = [SecurityName::SemiHonest, SecurityName::Malicious];
const BITS: [Bits; 3] = [Bits::Z128, Bits::Z64, Bits::Z2];
const TRANSPORTS: [TransportName; 2] = [TransportName::Tcp, TransportName::Tls];

/// The JSON of `tacit bench ring4 --json`.
#[derive(Debug, Serialize)]
struct Summary {
    what: &'static str,
    security: SecurityName,
    /// What tags are made of; malicious only.
    hash: Option<HashName>,
    bits: u32,
    device: &'static str,
    /// Of each party.
    devices: usize,
    transport: &'static str,
    /// Whether messages were hidden from the fourth party.
    masked: bool,
    /// Cores that the four parties shared.
    cores: usize,
    /// Of one run.
    products: u64,
    /// Elements multiplied in one round.
    vector: u64,
    repeat: u32,
    /// Medians over the runs, from here on.
    seconds: f64,
    products_per_s: f64,
    /// Of all four processes.
    cpu_ns_per_product: f64,
    /// Elements that all four send, tags apart.
    bytes_per_product: f64,
    /// Tags that all four send in one round.
    tag_bytes_per_round: u64,
    /// Elements that one party sends: what its device gives to the network.
    gbit_per_s: f64,
    /// Products of one block that wait for each other.
    rounds_per_s: f64,
    peak_memory_bytes: BTreeMap<&'static str, u64>,
    /// Whether every party sent what the price says.
    as_priced: bool,
    /// Whether factors and products that were opened fit, and the bytes are those of the price.
    correct: bool,
    elsewhere: Option<Elsewhere>,
}

/// A figure that others report for the same work.
#[derive(Debug, Serialize)]
struct Elsewhere {
    system: &'static str,
    products_per_s: f64,
    note: &'static str,
}

/// Several settings in one table.
#[derive(Debug, Serialize)]
struct Table {
    what: &'static str,
    settings: Vec<Summary>,
    correct: bool,
}

/// Measures and prints.
///
/// # Errors
/// When a party fails, or a result is wrong.
pub fn run(args: &Bench) -> Result<(), Error> {
    if args.scaling {
        return scaling::run(args, &setting(args)?);
    }
    let correct = if args.all { grid(args)? } else { one(args)? };
    if correct {
        return Ok(());
    }
    Err(Error::misuse("the result is wrong; this must not happen, please report it"))
}

fn one(args: &Bench) -> Result<bool, Error> {
    let summary = measure(&setting(args)?)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&text(&summary))?;
    }
    Ok(summary.correct)
}

fn grid(args: &Bench) -> Result<bool, Error> {
    let mut settings = Vec::new();
    if !args.json {
        output::print(&heading())?;
    }
    for (security, transport) in SECURITY.into_iter().flat_map(|s| TRANSPORTS.map(|t| (s, t))) {
        for bits in BITS {
            let summary = measure(&setting(&Bench { security, bits, transport, ..args.clone() })?)?;
            if !args.json {
                output::print(&row(&summary))?;
            }
            settings.push(summary);
        }
    }
    let correct = settings.iter().all(|summary| summary.correct);
    if args.json {
        output::print_json(&Table { what: "ring4", settings, correct })?;
    } else {
        output::print(&note())?;
    }
    Ok(correct)
}

/// What the command line asks for.
fn setting(args: &Bench) -> Result<Setting, Error> {
    let Bench { security, hash, bits, device, devices, transport, repeat, .. } = *args;
    let lanes = u64::from(128 / bits.count());
    let vector = args.vector.unwrap_or(VECTOR_BLOCKS * lanes).next_multiple_of(lanes);
    let products = args.products.unwrap_or(RUN_BLOCKS * lanes);
    let vector = vector.min(products.next_multiple_of(lanes));
    if vector > ::ring4::ELEMENTS as u64 {
        return Err(Error::limit("ring4::ELEMENTS", vector, ::ring4::ELEMENTS as u64));
    }
    let rounds = products.div_ceil(vector);
    let devices = usize::from(devices);
    let (chain, sample) = (CHAIN.min(products), u64::from(std::process::id()));
    Ok(Setting { security, hash, bits, device, devices, transport, vector, rounds, repeat, chain, sample })
}

/// Runs the four parties.
fn measure(setting: &Setting) -> Result<Summary, Error> {
    let working = Working::on(format!("{} products", output::grouped(setting.vector * setting.rounds)));
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a temporary folder", &e))?;
    let secrets = keys(setting.transport, &NAMES, folder.path())?;
    let addresses = NAMES.iter().map(|_| free_address()).collect::<Result<Vec<_>, Error>>()?;
    let cores = machine::cores();
    let mut children = Children::default();
    for (seat, name) in NAMES.into_iter().enumerate() {
        let task = Task {
            setting: setting.clone(),
            seat: seat as u8,
            addresses: addresses.clone(),
            tls: secrets.as_ref().map(|keys| keys[seat].clone()),
            core: None,
        };
        start(&mut children, name, &Job::Ring4(Box::new(task)))?;
    }
    let seats: Vec<Measured> = children.finish(|_, _| ())?;
    drop(working);
    Ok(summary(setting, cores.len(), &seats))
}

fn summary(setting: &Setting, cores: usize, seats: &[Measured]) -> Summary {
    let products = setting.vector * setting.rounds;
    let over = |of: fn(&Measured) -> &[Run], pick: fn(f64, &Run) -> f64| {
        let runs = 0..setting.repeat as usize;
        median(runs.map(|run| seats.iter().fold(0.0, |all, seat| pick(all, &of(seat)[run]))).collect())
    };
    let slowest = |of| over(of, |all, run| run.seconds.max(all));
    let seconds = slowest(|seat| &seat.runs);
    let cpu_seconds = over(|seat| &seat.runs, |all, run| all + run.cpu_seconds);
    let price = setting.price();
    let as_priced = seats.iter().zip(&price).all(|(seat, price)| seat.bytes_sent == seat.rounds * price);
    let rounds: u64 = seats[0].rounds;
    let sent: u64 = seats.iter().map(|seat| seat.bytes_sent).sum();
    let tags = setting.tags();
    let bytes_per_product = (sent - rounds * tags) as f64 / (rounds * setting.vector) as f64;
    let products_per_s = products as f64 / seconds;
    Summary {
        what: "ring4",
        security: setting.security,
        hash: (setting.security == SecurityName::Malicious).then_some(setting.hash),
        bits: setting.bits.count(),
        device: setting.device.word(),
        devices: setting.devices,
        transport: setting.transport.word(),
        masked: setting.masked(),
        cores,
        products,
        vector: setting.vector,
        repeat: setting.repeat,
        seconds,
        products_per_s,
        cpu_ns_per_product: cpu_seconds * 1e9 / products as f64,
        bytes_per_product,
        tag_bytes_per_round: tags,
        gbit_per_s: products_per_s * bytes_per_product / seats.len() as f64 * 8e-9,
        rounds_per_s: setting.chain as f64 / slowest(|seat| &seat.chains),
        peak_memory_bytes: NAMES.into_iter().zip(seats.iter().map(|seat| seat.peak_memory_bytes)).collect(),
        as_priced,
        // Six elements, whatever the ring: what the design says, beside what the price says.
        correct: as_priced && bytes_per_product == expected(setting) && seats.iter().all(|seat| seat.correct),
        elsewhere: elsewhere(setting),
    }
}

/// Six elements of so many bits.
fn expected(setting: &Setting) -> f64 {
    6.0 * f64::from(setting.bits.count()) / 8.0
}

/// The middle value; of an even number, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n % 2 {
        _ if n == 0 => 0.0,
        1 => values[n / 2],
        _ => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

/// The fastest that is known for four parties on one machine over plain TCP.
fn elsewhere(setting: &Setting) -> Option<Elsewhere> {
    use SecurityName::{Malicious, SemiHonest};
    const REP4: &str = "MP-SPDZ rep4-ring, four processes on two cores over plain TCP";
    const F4: &str = "HPMPC Fantastic Four, checks put off to the end: weaker than what runs here";
    let (system, products_per_s, note) = match (setting.security, setting.bits) {
        (SemiHonest, Bits::Z128) => ("MP-SPDZ", 8.66e6, REP4),
        (Malicious, Bits::Z128) => ("MP-SPDZ", 3.80e6, REP4),
        (Malicious, Bits::Z64) => ("HPMPC", 8.8e6, F4),
        (Malicious, Bits::Z2) => ("HPMPC", 588e6, F4),
        (SemiHonest, Bits::Z64 | Bits::Z2) => return None,
    };
    Some(Elsewhere { system, products_per_s, note })
}

fn text(summary: &Summary) -> String {
    let peak: u64 = summary.peak_memory_bytes.values().sum();
    let mut lines = vec![
        format!(
            "{} of {} bits among four parties, {}, over {}: {} products/s",
            output::counted(summary.products, "product"),
            summary.bits,
            how(summary.security, summary.hash),
            summary.transport,
            output::scaled(summary.products_per_s).trim_end()
        ),
        format!(
            "  {} a run (median of {}), vectors of {}; {:.2} CPU ns per product in all, {}",
            output::duration(summary.seconds),
            summary.repeat,
            output::grouped(summary.vector),
            summary.cpu_ns_per_product,
            output::counted(summary.cores as u64, "core")
        ),
        format!(
            "  {} bytes per product in all, {} of tags per round; each party sends {:.2} Gb/s",
            summary.bytes_per_product, summary.tag_bytes_per_round, summary.gbit_per_s
        ),
        format!("  {} dependent rounds/s", output::scaled(summary.rounds_per_s).trim_end()),
        format!("  peak memory of all four {}", output::bytes(peak)),
    ];
    if let Some(Elsewhere { system, products_per_s, note }) = &summary.elsewhere {
        let ratio = summary.products_per_s / products_per_s;
        let theirs = output::scaled(*products_per_s);
        lines.push(format!(
            "  {system}, measured elsewhere: {} products/s, {ratio:.1} times less ({note})",
            theirs.trim_end()
        ));
    }
    lines.push(format!("  result {}", if summary.correct { "correct, bytes as priced" } else { "WRONG" }));
    lines.join("\n")
}

fn how(security: SecurityName, hash: Option<HashName>) -> String {
    match (security, hash) {
        (SecurityName::Malicious, Some(HashName::Blake3)) => "malicious (BLAKE3)".to_owned(),
        (SecurityName::Malicious, _) => "malicious".to_owned(),
        (SecurityName::SemiHonest, _) => "semi-honest".to_owned(),
    }
}

fn heading() -> String {
    format!(
        "{:12} {:9} {:>4}  {:>12} {:>9} {:>8} {:>7} {:>9}  {:>12}",
        "security", "transport", "bits", "products/s", "CPU ns", "B", "Gb/s", "rounds/s", "elsewhere"
    )
}

fn row(summary: &Summary) -> String {
    let theirs = summary.elsewhere.as_ref().map(|e| output::scaled(e.products_per_s));
    format!(
        "{:12} {:9} {:>4}  {:>12} {:>9.2} {:>8} {:>7.2} {:>9}  {:>12}{}",
        how(summary.security, summary.hash),
        summary.transport,
        summary.bits,
        output::scaled(summary.products_per_s).trim_end(),
        summary.cpu_ns_per_product,
        summary.bytes_per_product,
        summary.gbit_per_s,
        output::scaled(summary.rounds_per_s).trim_end(),
        theirs.as_deref().unwrap_or("").trim_end(),
        if summary.correct { "" } else { "  WRONG" }
    )
}

fn note() -> String {
    "CPU ns and B: of all four per product; Gb/s: sent by each; elsewhere: MP-SPDZ (128 bits) and HPMPC (64, 1; checks put\n\
     off to the end), as measured elsewhere, four processes over plain TCP"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(Vec::new()), 0.0);
    }
}
