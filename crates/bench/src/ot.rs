//! `bench ot`: correlated OTs with random choices in one direction, the parties threads of this process, each
//! on a core of its own where there are two.

use super::gmw::{Threads, TravelTime};
use super::names::{OtChoice, TransportName, only};
use super::{expect, tell, two, verdict};
use base::{Error, PartyId};
use clap::Args;
use job::usage;
use kernels::{Block, bit};
use net::{Session, Traffic};
use ot::{ExtensionCost, OtKind, PriceMeter};
use page::numbers::{bytes, count, duration, scaled};
use serde::Serialize;
use std::time::Instant;
use terminal::machine;
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// OTs of one call.
const CALL: usize = 1 << 14;
/// OTs of each call that are checked.
const SAMPLE: usize = 64;

/// Measures correlated OTs.
#[derive(Clone, Debug, Args)]
pub struct OtArgs {
    /// Correlated OTs to make
    #[arg(long, value_name = "N", value_parser = terminal::values::count, default_value = "20M")]
    ots: u64,
    #[command(flatten)]
    ots_by: OtChoice,
    /// How bytes travel
    #[arg(long, value_name = "NAME", default_value = "tcp", value_parser = only(&TransportName::THREADS))]
    transport: TransportName,
}

/// The JSON of `tacit bench ot --json`.
#[derive(Debug, Serialize)]
struct Summary {
    what: &'static str,
    ot: String,
    transport: String,
    core_each: bool,
    ots: u64,
    /// Of one core pair, after set-up.
    cot_per_s: f64,
    /// Application bits of both parties per OT, after set-up.
    bits_per_cot: f64,
    /// Set-up included, from the first connection's use to the last OT.
    seconds: f64,
    seconds_setup: f64,
    /// Application bytes of both parties.
    bytes_setup: u64,
    bytes: u64,
    /// Whether the ledger books what was priced, to the byte.
    price_held: bool,
    /// Of both parties together.
    peak_memory_bytes: u64,
    cpu_seconds: f64,
    correct: bool,
}

/// What one party found.
struct Done {
    seconds: f64,
    setup: f64,
    ledger: Traffic,
    /// The sender's Delta.
    delta: Block,
    /// q or t of the first OTs of every call.
    sample: Vec<Block>,
    /// The receiver's bits for them, one word per call.
    choices: Vec<u64>,
}

const SENDER: PartyId = PartyId(0);

impl OtArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        let summary = self.measure()?;
        tell(&summary, json, text)?;
        expect(summary.correct && summary.price_held)
    }

    fn measure(&self) -> Result<Summary, Error> {
        let (kind, ots) = (self.ots_by.kind()?, self.ots);
        let cores = two::core_each();
        let working = Working::on("computing");
        let threads = Threads { parties: 2, transport: self.transport, delay: TravelTime::default() };
        let done = threads.run(|session| {
            if let Some(cores) = cores {
                machine::stay_on(cores[session.me().index()])?;
            }
            party(session, kind, ots)
        })?;
        let (peak_memory_bytes, cpu_seconds) = (usage::peak_memory_bytes(), usage::cpu_seconds());
        drop(working);
        let (sender, receiver) = (&done[0], &done[1]);
        let seconds = sender.seconds.max(receiver.seconds);
        let seconds_setup = sender.setup.max(receiver.setup);
        let sent = |step: &str| sender.ledger.sent(step) + receiver.ledger.sent(step);
        Ok(Summary {
            what: "ot",
            ot: kind.to_string(),
            transport: self.transport.word(),
            core_each: cores.is_some(),
            ots,
            cot_per_s: ots as f64 / (seconds - seconds_setup),
            bits_per_cot: sent("make") as f64 * 8.0 / ots as f64,
            seconds,
            seconds_setup,
            bytes_setup: sent("setup"),
            bytes: sent("setup") + sent("make"),
            price_held: price_held(kind, ots, sender, receiver),
            peak_memory_bytes,
            cpu_seconds,
            correct: correct(sender, receiver),
        })
    }
}

/// One party's part. Both are there before the clock starts, and done before it stops.
fn party(session: &mut Session, kind: OtKind, ots: u64) -> Result<Done, Error> {
    let peer = session.me().other();
    meet(session, "begin")?;
    let start = Instant::now();
    let (mut sample, mut choices, mut out, mut drawn) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let calls = (0..ots).step_by(CALL).map(|at| (ots - at).min(CALL as u64) as usize);
    let (delta, setup);
    if session.me() == SENDER {
        delta = ot::fresh_delta(&mut session.fork_seed("Delta").into_rng());
        let mut cot = session.step("setup", |s| kind.sender(s, peer, delta, ots))?;
        setup = start.elapsed().as_secs_f64();
        for n in calls {
            out.clear();
            session.step("make", |s| cot.correlated_random(s, n, &mut out))?;
            sample.extend_from_slice(&out[..n.min(SAMPLE)]);
        }
    } else {
        delta = Block::ZERO;
        let mut cot = session.step("setup", |s| kind.receiver(s, peer, ots))?;
        setup = start.elapsed().as_secs_f64();
        for n in calls {
            out.clear();
            session.step("make", |s| cot.correlated_random(s, n, &mut drawn, &mut out))?;
            sample.extend_from_slice(&out[..n.min(SAMPLE)]);
            choices.push(drawn[0]);
        }
    }
    meet(session, "end")?;
    let seconds = start.elapsed().as_secs_f64();
    session.finish()?;
    Ok(Done { seconds, setup, ledger: session.traffic().clone(), delta, sample, choices })
}

fn meet(session: &mut Session, step: &str) -> Result<(), Error> {
    let peer = session.me().other();
    session.step(step, |s| s.link(peer).exchange(&[0], &mut [0]))
}

/// q + b Delta = t on the sample. Only here does anybody see both sides.
fn correct(sender: &Done, receiver: &Done) -> bool {
    let pairs = sender.sample.iter().zip(&receiver.sample).enumerate();
    sender.sample.len() == receiver.sample.len()
        && pairs.into_iter().all(|(i, (&q, &t))| q ^ t == sender.delta.when(bit(&receiver.choices, i)))
}

fn price_held(kind: OtKind, ots: u64, sender: &Done, receiver: &Done) -> bool {
    let mut meter = PriceMeter::new(kind, ots);
    meter.base();
    meter.setup();
    let held = |step: &str, price: ExtensionCost, before: ExtensionCost| {
        sender.ledger.sent(step) == price.sender - before.sender
            && receiver.ledger.sent(step) == price.receiver - before.receiver
    };
    let setup = meter.price();
    let setup_held = held("setup", setup, ExtensionCost::default());
    meter.correlated_random(ots as usize);
    setup_held && held("make", meter.price(), setup)
}

fn text(summary: &Summary) -> String {
    [
        format!(
            "{} correlated OTs by {} over {}: {} COT/s",
            count(summary.ots),
            summary.ot,
            summary.transport,
            scaled(summary.cot_per_s)
        ),
        format!(
            "  {:.3} bits per OT, after a set-up of {} and {}",
            summary.bits_per_cot,
            bytes(summary.bytes_setup),
            duration(summary.seconds_setup)
        ),
        format!(
            "  {} in all; both parties {:.2} CPU s, peak memory {}",
            duration(summary.seconds),
            summary.cpu_seconds,
            bytes(summary.peak_memory_bytes)
        ),
        verdict(summary.correct),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: OtArgs,
    }

    #[test]
    fn every_back_end_and_transport_is_measured() {
        for line in
            ["ferret --transport memory", "softspoken:4 --transport tcp", "softspoken --k 3 --transport tls"]
        {
            let line = format!("ot --ots 100k --ot {line}");
            let summary = Cli::try_parse_from(line.split(' ')).unwrap().args.measure().unwrap();
            assert!(summary.correct && summary.price_held, "{line}");
            assert_eq!(summary.ots, 100_000);
            let bits = match summary.ot.as_str() {
                "ferret" => 1.4..1.5,
                "softspoken:4" => 31.0..31.1,
                "softspoken:3" => 42.0..42.1,
                other => panic!("{other}"),
            };
            assert!(bits.contains(&summary.bits_per_cot), "{line}: {}", summary.bits_per_cot);
            assert!(text(&summary).ends_with("result correct"));
        }
    }

    #[test]
    fn a_wrong_bit_is_noticed() {
        let done = |sample, choices| Done {
            seconds: 1.0,
            setup: 0.0,
            ledger: Traffic::default(),
            delta: Block(7),
            sample,
            choices,
        };
        let sender = done(vec![Block(8), Block(16)], Vec::new());
        let received = |bits| done(vec![Block(8), Block(16 ^ 7)], vec![bits]);
        assert!(correct(&sender, &received(0b10)));
        assert!(!correct(&sender, &received(0b11)) && !correct(&sender, &received(0)));
        assert!(!correct(&sender, &done(Vec::new(), Vec::new())));
    }
}
