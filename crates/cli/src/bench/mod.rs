//! `tacit bench`: measurements over loopback. Here those of two parties that are processes, each on one core; those among
//! threads are in [`gmw`], [`ot`] and [`market`], and that of four processes in [`ring4`].

pub mod engines;
mod figures;
pub mod flags;
pub mod gates;
pub mod gmw;
pub mod joined;
pub mod market;
pub mod matches;
pub mod ot;
pub mod party;
pub mod people;
pub mod ring4;
pub mod spine;

use crate::args::{Bench, EngineName, Protocol, TransportName, What};
use crate::follow::Children;
use crate::progress::{Board, Line, Working};
use crate::{machine, output};
use base::{Error, PartyId};
use net::Identity;
use party::{Found, Job, Keys, Measured, Part, Task};
use program::Program;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use studies::lift::{Arm, Cell, Layout, Lift, Quantity, bench_truth};

/// The parties of every measurement.
pub const PARTIES: [&str; 2] = ["publisher", "advertiser"];
/// Everything measured is a function of it.
pub const SEED: u64 = 1;
/// K of `bench lift`.
pub const LIFT_EVENTS: u8 = 4;

/// The JSON of `tacit bench --json`.
#[derive(Debug, Serialize)]
struct Summary {
    what: What,
    engine: Option<EngineName>,
    protocol: Option<Protocol>,
    transport: &'static str,
    shards: u32,
    k: u32,
    /// What makes the OTs; gmw only.
    ot: Option<String>,
    /// Whether every party had a core of its own.
    core_each: bool,
    rows: u64,
    seconds: f64,
    rows_per_s: f64,
    and_per_s: f64,
    /// Application bytes of all parties over the rows of one side.
    bytes_per_row: f64,
    /// Correlated OTs in both directions; gmw only.
    cots_per_row: Option<f64>,
    bytes: u64,
    peak_memory_bytes: BTreeMap<String, u64>,
    cpu_seconds: BTreeMap<String, f64>,
    /// Rows of both sides without repeats; `match` only.
    union: Option<u64>,
    /// Of the group, by both parties, over the rows of one side; `match` only.
    multiplications_per_row: Option<f64>,
    /// Columns of 64 bits that each side brings; `match` by a protocol that joins to shares.
    columns: Option<u8>,
    correct: bool,
}

/// Measures and prints.
///
/// # Errors
/// When a party fails, or the result is wrong.
pub fn run(args: &Bench) -> Result<(), Error> {
    if args.what == What::Gmw {
        return gmw::run(args);
    }
    if args.what == What::Ot {
        return ot::run(args);
    }
    if args.what == What::Market {
        return market::run(args);
    }
    if args.what == What::Engines {
        return engines::run(args);
    }
    if args.what == What::Ring4 {
        return ring4::run(args);
    }
    if args.transport == TransportName::Memory {
        return Err(Error::input(
            "--transport memory is for bench gmw, bench ot, bench market; the parties of this one are processes of \
             their own: use --transport tcp or tls",
        ));
    }
    if args.engine == EngineName::Ring4 {
        return Err(Error::input(
            "--engine ring4 is for bench market; bench engines runs lift on it, and bench ring4 measures products",
        ));
    }
    if args.what != What::Lift && args.engine == EngineName::Gmw {
        return Err(Error::input("--engine gmw measures lift; use bench gmw for AND gates"));
    }
    let board = Board::stderr();
    let folder = tempfile::tempdir().map_err(|e| Error::io("cannot make a temporary folder", &e))?;
    let (names, parties) = match args.engine {
        EngineName::Clear => (vec!["clear"], clear(args, &board)?),
        EngineName::Yao | EngineName::Gmw | EngineName::Ring4 => {
            (PARTIES.to_vec(), two(args, &board, folder.path())?)
        }
    };
    board.end();
    let working = Working::on("checking the result");
    let correct = correct(args, &parties)?;
    drop(working);
    let summary = summary(args, &names, &parties, correct)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&text(&summary))?;
    }
    if correct {
        Ok(())
    } else {
        Err(Error::misuse("the result is wrong; this must not happen, please report it"))
    }
}

fn task(args: &Bench, party: u8) -> Result<Task, Error> {
    Ok(Task {
        what: args.what,
        engine: args.engine,
        rows: args.rows,
        k: args.k,
        ot: gmw::kind(args)?.to_string(),
        shards: args.shards,
        matching: matches::Setting::of(args),
        party,
        peer: None,
        tls: None,
        core: None,
    })
}

fn start(children: &mut Children, name: &str, job: &Job) -> Result<(), Error> {
    let task =
        serde_json::to_string(job).map_err(|e| Error::misuse(format!("a task does not serialise: {e}")))?;
    children.start(name, &["bench-party", &task].map(OsStr::new))
}

fn clear(args: &Bench, board: &Board) -> Result<Vec<Measured>, Error> {
    let mut children = Children::default();
    let task = Task { core: machine::cores().first().copied(), ..task(args, 0)? };
    start(&mut children, "clear", &Job::Two(Box::new(task)))?;
    children.finish(|_, line| board.show(line))
}

fn two(args: &Bench, board: &Board, folder: &Path) -> Result<Vec<Measured>, Error> {
    let cores = core_each();
    let secrets = keys(args.transport, &PARTIES, folder)?;
    let tls = |party: usize| secrets.as_ref().map(|keys| keys[party].clone());
    let mut children = Children::default();
    let task = |party| task(args, party).map(|task| task.keeping(folder));
    let first = Task { core: cores.map(|c| c[0]), tls: tls(0), ..task(0)? };
    start(&mut children, PARTIES[0], &Job::Two(Box::new(first)))?;
    let address = children.until(|_, line| match line {
        Line::Waiting { text } => Some(text.clone()),
        _ => None,
    })?;
    let second = Task { core: cores.map(|c| c[1]), tls: tls(1), peer: Some(address), ..task(1)? };
    start(&mut children, PARTIES[1], &Job::Two(Box::new(second)))?;
    // Both report the same progress: one is enough.
    children.finish(|index, line| {
        if index == 1 {
            board.show(line);
        }
    })
}

/// Two cores, where this machine has them to give.
fn core_each() -> Option<[usize; 2]> {
    match machine::cores()[..] {
        [first, second, ..] => Some([first, second]),
        _ => None,
    }
}

/// Keys of this measurement only, one per name, where parties meet over TLS.
fn keys(transport: TransportName, names: &[&str], folder: &Path) -> Result<Option<Vec<Keys>>, Error> {
    if !transport.meets_by_tls() {
        return Ok(None);
    }
    let identities = names.iter().map(|_| Identity::generate()).collect::<Result<Vec<_>, Error>>()?;
    let fingerprints: Vec<_> = identities.iter().map(|identity| identity.fingerprint().to_string()).collect();
    let saved = names.iter().zip(&identities).map(|(name, key)| {
        let identity = folder.join(name);
        key.save(&identity)?;
        Ok(Keys { identity, fingerprints: fingerprints.clone() })
    });
    saved.collect::<Result<_, Error>>().map(Some)
}

fn correct(args: &Bench, parties: &[Measured]) -> Result<bool, Error> {
    if args.what == What::Match {
        return matches::correct(&matches::Setting::of(args), [&parties[0].found, &parties[1].found]);
    }
    let (program, lift) = party::program(args.what)?;
    let Some(totals) = totals(&program, parties) else { return Ok(false) };
    Ok(match lift {
        None => totals == [u128::from(gates::truth(args.rows))],
        Some((lift, layout)) => lift_correct(&lift, &layout, args.rows, &totals),
    })
}

/// The totals, put together from the parties' shares.
fn totals(program: &Program, parties: &[Measured]) -> Option<Vec<u128>> {
    let mut shares = Vec::new();
    for party in parties {
        let Found::Shares(parts) = &party.found else { return None };
        shares.push(parts);
    }
    let number = |text: &str| u128::from_str_radix(text, 16).ok();
    let total = |(index, fold): (usize, &program::Fold)| {
        let (mut total, mut summands) = (0u128, None);
        for parts in &shares {
            match parts.get(index)? {
                Part::Additive(text) => total = total.wrapping_add(number(text)?),
                Part::Known(text) => return number(text),
                // Every summand is held by three: it counts once.
                Part::Replicated(held) => {
                    let all = summands.get_or_insert([const { None }; ::engine::SERVERS]);
                    all.iter_mut().zip(held).for_each(|(one, held)| *one = one.or(held.as_ref()));
                }
                Part::Absent => {}
            }
        }
        for summand in summands.into_iter().flatten() {
            total = total.wrapping_add(number(summand?)?);
        }
        Some(total & fold.ty().mask())
    };
    program.folds.iter().enumerate().map(total).collect()
}

fn lift_correct(lift: &Lift, layout: &Layout, rows: u64, totals: &[u128]) -> bool {
    let truth = bench_truth(lift, rows, SEED);
    let known = |arm, quantity| truth.get(Cell::Overall, arm, quantity);
    let of = |arm, quantity| {
        let fold = layout.fold(Cell::Overall, arm, quantity)?;
        totals.get(fold as usize).copied()
    };
    Arm::BOTH.iter().all(|&arm| Quantity::CORE.iter().all(|&q| of(arm, q) == Some(known(arm, q))))
}

fn summary(args: &Bench, names: &[&str], parties: &[Measured], correct: bool) -> Result<Summary, Error> {
    let is_match = args.what == What::Match;
    // The party that connects comes last and waits for nobody.
    let seconds = parties.last().map_or(0.0, |party| party.seconds);
    let bytes: u64 = parties.iter().map(|party| party.bytes_sent).sum();
    let by_ot = (args.engine == EngineName::Gmw).then(|| prepared(args)).transpose()?;
    let gates = match &by_ot {
        _ if is_match => 0,
        Some(prepared) => prepared.price(args.rows).and_gates,
        None => and_gates(args)?,
    };
    let matched = is_match.then(|| matches::Setting::of(args));
    let by_party = names.iter().map(|name| (*name).to_owned());
    Ok(Summary {
        what: args.what,
        engine: (!is_match).then_some(args.engine),
        protocol: is_match.then_some(args.protocol),
        transport: match args.engine {
            EngineName::Clear => "none",
            EngineName::Yao | EngineName::Gmw | EngineName::Ring4 => args.transport.word(),
        },
        shards: args.shards,
        k: args.k,
        ot: by_ot.is_some().then(|| gmw::kind(args)).transpose()?.map(|kind| kind.to_string()),
        core_each: names.len() < 2 || core_each().is_some(),
        rows: args.rows,
        seconds,
        rows_per_s: args.rows as f64 / seconds,
        and_per_s: gates as f64 / seconds,
        bytes_per_row: bytes as f64 / args.rows as f64,
        cots_per_row: by_ot.map(|prepared| prepared.cots_per_row() as f64),
        bytes,
        peak_memory_bytes: by_party.clone().zip(parties.iter().map(|p| p.peak_memory_bytes)).collect(),
        cpu_seconds: by_party.zip(parties.iter().map(|p| p.cpu_seconds)).collect(),
        union: matched.as_ref().map(matches::Setting::union),
        multiplications_per_row: matched.as_ref().map(|m| m.products() as f64 / args.rows as f64),
        columns: matched.and_then(|m| m.columns()),
        correct,
    })
}

/// The rows as gmw runs them.
fn prepared(args: &Bench) -> Result<sums::Prepared, Error> {
    let (program, _) = party::program(args.what)?;
    sums::Prepared::new(&program, PartyId(0), gmw::kind(args)?, sums::LANES)
}

/// AND gates of the rows, as yao counts them.
fn and_gates(args: &Bench) -> Result<u64, Error> {
    if args.what == What::Yao {
        return Ok(gates::GATES * args.rows);
    }
    let (program, _) = party::program(args.what)?;
    let garbler = yao::Yao::new(args.k).garbler(&program);
    Ok(program::lower::lower_row(&program, garbler).circuit.and_gates() as u64 * args.rows)
}

fn text(summary: &Summary) -> String {
    let Summary { rows, seconds, rows_per_s, and_per_s, bytes_per_row, .. } = summary;
    let mut lines = vec![format!(
        "{} rows in {}: {} rows/s over {}",
        output::grouped(*rows),
        output::duration(*seconds),
        output::scaled(*rows_per_s).trim_end(),
        summary.transport
    )];
    if *and_per_s > 0.0 {
        lines.push(format!("  {} AND/s", output::scaled(*and_per_s).trim_end()));
    }
    if let Some((cots, ot)) = summary.cots_per_row.zip(summary.ot.as_ref()) {
        lines.push(format!("  {cots} correlated OTs per row by {ot}"));
    }
    lines
        .push(format!("  {bytes_per_row:.1} bytes per row, both parties ({})", output::bytes(summary.bytes)));
    for (name, peak) in &summary.peak_memory_bytes {
        let cpu = summary.cpu_seconds.get(name).copied().unwrap_or_default();
        lines.push(format!("  {name:12} {cpu:>8.2} CPU s   peak memory {}", output::bytes(*peak)));
    }
    if let Some(union) = summary.union {
        lines.push(format!("  union of both sides: {} rows", output::grouped(union)));
    }
    if let Some(products) = summary.multiplications_per_row {
        lines.push(format!("  {products:.2} multiplications of the group per row, both parties"));
    }
    if !summary.core_each {
        lines.push("  note: both parties shared one core".to_owned());
    }
    lines.push(format!("  result {}", if summary.correct { "correct" } else { "WRONG" }));
    lines.join("\n")
}

/// A bijection of 64 bits that scatters neighbours (the finaliser of SplitMix64).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}
