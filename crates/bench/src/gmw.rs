//! `bench gmw`: ANDs among n parties, all of them threads of this process, in wide layers or as one binary
//! tree.
//!
//! Wide: every lane has [`GATES`] ANDs of bits of two neighbouring parties, XORed into one bit that everybody
//! sees. Tree: the AND of 2^D shared bits, level by level; every bit is 1, so a single wrong gate shows in
//! the result.

use super::names::{OtChoice, TransportName, only, parties};
use super::{SEED, expect, mix, tell, two, verdict};
use base::{Error, Fault, PartyId, Roster, Seed, free_address};
use circuits::{Circuit, CircuitBuilder, InputBit, Lit, Viewers};
use clap::Args;
use gmw::{GateParty, Layers, Times};
use job::usage;
use net::relay::Relay;
use net::{ChannelSecurity, Channels, Identity, Meet, Session, Traffic, TrafficEntry};
use ot::OtKind;
use page::numbers::{bytes, count, counted, duration, scaled};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use terminal::progress::Working;
use terminal::values::NamedValue as _;

/// ANDs of one lane of the wide workload.
const GATES: u32 = 64;
/// Lanes evaluated at once: a layer is one opening.
const LANES: usize = (gmw::OPEN_ANDS / GATES as u64) as usize;
/// Deepest tree: its first level is one evaluation.
const TREE_MAX: u32 = 26;
/// How long one party waits for another.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures AND gates among n parties.
#[derive(Clone, Debug, Args)]
pub struct GmwArgs {
    /// Parties
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parties)]
    parties: usize,
    /// AND gates, in wide layers; rounded up to a multiple of 64
    #[arg(long, value_name = "M", value_parser = terminal::values::count, default_value = "10M")]
    ands: u64,
    /// Instead of wide layers one full binary tree of this depth, 2^D - 1 AND gates
    #[arg(long, value_name = "D", conflicts_with = "ands",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(TREE_MAX)))]
    tree: Option<u32>,
    #[command(flatten)]
    ots: OtChoice,
    /// How bytes travel
    #[arg(long, value_name = "NAME", default_value = "tcp", value_parser = only(&TransportName::THREADS))]
    transport: TransportName,
    #[command(flatten)]
    delay: TravelTime,
}

/// How long bytes travel.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct TravelTime {
    /// Delay of every byte on its way, in milliseconds: half a round trip
    #[arg(long, value_name = "MS", default_value_t = 0,
          value_parser = clap::value_parser!(u64).range(0..=10_000))]
    pub delay_ms: u64,
}

/// Parties that are threads of this process, and what is between them.
#[derive(Clone, Copy, Debug)]
pub struct Threads {
    pub parties: usize,
    pub transport: TransportName,
    pub delay: TravelTime,
}

/// The JSON of `tacit bench gmw --json`.
#[derive(Debug, Serialize)]
struct Summary {
    what: &'static str,
    parties: usize,
    transport: String,
    ot: String,
    tree: Option<u32>,
    ands: u64,
    /// ANDs over the time after set-up, offline and online.
    and_per_s: f64,
    /// Application bytes that one party sends after set-up, the busiest one's.
    bytes_per_and: f64,
    /// Turns online with one peer: one per layer and output.
    rounds: u64,
    /// Turns with one peer while triples are made. They are streamed: most are no wait.
    turns_offline: u64,
    /// From the first connection to the last result.
    seconds: f64,
    seconds_setup: f64,
    seconds_offline: f64,
    seconds_online: f64,
    /// Of all parties together.
    peak_memory_bytes: u64,
    cpu_seconds: f64,
    correct: bool,
}

/// What one party found.
struct Done {
    times: Times,
    ledger: Traffic,
    correct: bool,
}

impl GmwArgs {
    /// Measures and prints.
    pub fn run(&self, json: bool) -> Result<(), Error> {
        let kind = self.ots.kind()?;
        let ands = match self.tree {
            Some(depth) => (1 << depth) - 1,
            None => self.ands.next_multiple_of(GATES.into()),
        };
        let working = Working::on("computing");
        let start = Instant::now();
        let threads = Threads { parties: self.parties, transport: self.transport, delay: self.delay };
        let done = threads.run(|session| party(self, kind, ands, session))?;
        let seconds = start.elapsed().as_secs_f64();
        drop(working);
        let summary = summary(self, kind, ands, seconds, &done);
        let asked = self.tree.is_none().then_some(self.ands);
        tell(&summary, json, |summary| text(summary, asked))?;
        expect(summary.correct)
    }
}

/// One party's part.
fn party(args: &GmwArgs, kind: OtKind, ands: u64, session: &mut Session) -> Result<Done, Error> {
    let mut party = GateParty::new(session, kind, ands)?;
    party.reserve(ands);
    let correct = match args.tree {
        Some(depth) => tree(&mut party, depth, args.parties, session)?,
        None => wide(&mut party, ands, args.parties, session)?,
    };
    session.finish()?;
    Ok(Done { times: party.times(), ledger: session.traffic().clone(), correct })
}

/// Input word `word` of 64 lanes: a function of the seed, so that everybody can check the result.
fn bits(word: u32, block: u64) -> u64 {
    mix(SEED ^ mix(block << 16 | u64::from(word)))
}

fn wide_circuit(parties: usize) -> (Circuit, Lit) {
    let mut g = CircuitBuilder::default();
    let mut all = Lit::FALSE;
    for gate in 0..GATES {
        let [a, b] = [0, 1].map(|side| {
            let owner = Some(PartyId(((gate + side) as usize % parties) as u8));
            g.input(InputBit { owner, word: 2 * gate + side, bit: 0 })
        });
        let and = g.and(a, b);
        all = g.xor(all, and);
    }
    (g.finish(), all)
}

fn wide(party: &mut GateParty, ands: u64, parties: usize, session: &mut Session) -> Result<bool, Error> {
    let (circuit, root) = wide_circuit(parties);
    let layers = Layers::new(&circuit, &[root]);
    let lanes = (ands / u64::from(GATES)) as usize;
    let mut correct = true;
    for from in (0..lanes).step_by(LANES) {
        let (lanes, first) = (LANES.min(lanes - from), (from / 64) as u64);
        let mut known = |input: &InputBit, into: &mut [u64]| {
            (first..).zip(into).for_each(|(block, out)| *out = bits(input.word, block));
            Ok(())
        };
        let shares = party.eval(&layers, lanes, &mut known, session)?;
        let seen = party.reveal(shares, lanes, &[&Viewers::Everyone], session)?;
        let seen = seen.into_iter().next().flatten().unwrap_or_default();
        // One party checks: the measurement is of the protocol.
        correct &= party.me().0 != 0
            || (first..).zip(&seen).all(|(block, word)| {
                let truth = (0..GATES).fold(0, |sum, g| sum ^ (bits(2 * g, block) & bits(2 * g + 1, block)));
                let live = u64::MAX >> (64 - (lanes - 64 * (block - first) as usize).min(64));
                truth & live == *word
            });
    }
    Ok(correct)
}

/// The AND of two shared bits.
fn node() -> Layers {
    let mut g = CircuitBuilder::default();
    let [a, b] = [0, 1].map(|word| g.input(InputBit { owner: None, word, bit: 0 }));
    let and = g.and(a, b);
    Layers::with_shared(&g.finish(), &[and], &|_| true)
}

fn tree(party: &mut GateParty, depth: u32, parties: usize, session: &mut Session) -> Result<bool, Error> {
    let layers = node();
    let mut shares = leaves(party.me(), depth, parties);
    for level in (0..depth).rev() {
        let lanes = 1usize << level;
        let upper: Vec<u64> = match lanes / 64 {
            0 => vec![shares[0] >> lanes],
            words => shares.split_off(words),
        };
        let mut known = |input: &InputBit, into: &mut [u64]| {
            into.copy_from_slice(if input.word == 0 { &shares } else { &upper });
            Ok(())
        };
        let next = party.eval(&layers, lanes, &mut known, session)?;
        shares = next.into_iter().next().unwrap_or_default();
    }
    let seen = party.reveal(vec![shares], 1, &[&Viewers::Everyone], session)?;
    Ok(seen == [Some(vec![1])])
}

/// This party's shares of 2^depth bits that are all 1.
fn leaves(me: PartyId, depth: u32, parties: usize) -> Vec<u64> {
    let own = |party: usize, block: u64| bits(party as u32, block);
    let share = |block| match me.index() {
        0 => !(1..parties).fold(0, |sum, party| sum ^ own(party, block)),
        me => own(me, block),
    };
    (0..(1u64 << depth).div_ceil(64)).map(share).collect()
}

impl Threads {
    /// Runs `work` for every party on a thread of its own; results in party order.
    pub fn run<T: Send>(
        &self,
        work: impl Fn(&mut Session) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let roster = Roster::new((0..self.parties).map(|i| format!("p{i}")));
        let (work, roster) = (&work, &roster);
        let relays = self.relays(roster)?;
        let ways = self.ways(roster, &relays)?;
        std::thread::scope(|scope| {
            let thread = |(me, way): (usize, Way)| {
                scope.spawn(move || {
                    let (channels, _meeting) = match way {
                        Way::Memory(channels) => (channels, None),
                        Way::Net(meet) => {
                            let mut meeting = meet.meet(0)?;
                            (std::mem::take(&mut meeting.control), Some(meeting))
                        }
                    };
                    let me = PartyId(me as u8);
                    work(&mut Session::new(me, roster.clone(), channels, Seed::from_system()))
                })
            };
            let threads: Vec<_> = ways.into_iter().enumerate().map(thread).collect();
            let done = threads
                .into_iter()
                .map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect();
            together(done)
        })
    }

    fn relays(&self, roster: &Roster) -> Result<Vec<Reached>, Error> {
        let delay = Duration::from_millis(self.delay.delay_ms);
        if self.transport == TransportName::Memory {
            return match delay.is_zero() {
                true => Ok(Vec::new()),
                false => Err(Error::input("pipes have no delay; use --transport tcp or tls with --delay-ms")),
            };
        }
        let reached = |_| {
            let listen = free_address()?;
            let (dial, relay) = two::path(&listen, delay)?;
            Ok(Reached { listen, dial, _relay: relay })
        };
        roster.parties().map(reached).collect()
    }

    fn ways(&self, roster: &Roster, relays: &[Reached]) -> Result<Vec<Way>, Error> {
        if self.transport == TransportName::Memory {
            let mut ends: Vec<Channels> = roster.parties().map(|_| Vec::new()).collect();
            for (a, b) in roster.parties().flat_map(|b| (0..b.0).map(move |a| (PartyId(a), b))) {
                let (at_a, at_b) = net::pair(PATIENCE);
                ends[a.index()].push((b, at_a));
                ends[b.index()].push((a, at_b));
            }
            return Ok(ends.into_iter().map(Way::Memory).collect());
        }
        let identities = roster.parties().map(|_| Identity::generate().map(Arc::new));
        let identities = identities.collect::<Result<Vec<_>, Error>>()?;
        let keys: Vec<_> = identities.iter().map(|identity| identity.fingerprint()).collect();
        let way = |(me, identity): (usize, &Arc<Identity>)| {
            let dial: BTreeMap<_, _> =
                roster.parties().zip(relays.iter().map(|at| at.dial.clone())).take(me).collect();
            let transport = match self.transport {
                TransportName::Tls => ChannelSecurity::Tls { identity: identity.clone(), keys: keys.clone() },
                _ => ChannelSecurity::Tcp,
            };
            let (listen, agreement) = (Some(relays[me].listen.clone()), [0; 32]);
            let meet = Meet::all(PartyId(me as u8), roster.clone(), listen, dial, transport, agreement);
            Way::Net(Box::new(meet.patience(PATIENCE).deadline(PATIENCE)))
        };
        Ok(identities.iter().enumerate().map(way).collect())
    }
}

/// All results, or the error that came first: a lost connection is what another party's error looks like.
fn together<T>(done: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let (mut results, mut errors) = (Vec::new(), Vec::new());
    for result in done {
        result.map_or_else(|e| errors.push(e), |r| results.push(r));
    }
    let cause = errors.iter().position(|e| !matches!(e.kind(), Fault::Channel(_))).unwrap_or(0);
    if errors.is_empty() { Ok(results) } else { Err(errors.swap_remove(cause)) }
}

/// How a party comes to its channels.
enum Way {
    Memory(Channels),
    Net(Box<Meet>),
}

/// Where a party listens, where others reach it, and what delays the way between, if anything does.
struct Reached {
    listen: String,
    dial: String,
    _relay: Option<Relay>,
}

fn summary(args: &GmwArgs, kind: OtKind, ands: u64, seconds: f64, done: &[Done]) -> Summary {
    let slowest = |of: &dyn Fn(&Times) -> Duration| {
        done.iter().map(|d| of(&d.times)).max().unwrap_or_default().as_secs_f64()
    };
    let after = |ledger: &Traffic| ledger.sent("") - ledger.sent("setup");
    let bytes = done.iter().map(|d| after(&d.ledger)).max().unwrap_or(0);
    let turns = |offline: bool| {
        let of = |e: &&TrafficEntry, peer: usize| {
            e.peer.index() == peer && !e.step.starts_with("setup") && (e.step == "triples") == offline
        };
        let with = |ledger: &Traffic, peer| {
            ledger.entries().iter().filter(|e| of(e, peer)).map(|e| e.turns).sum::<u64>()
        };
        let most = done.iter().flat_map(|d| (0..args.parties).map(move |p| with(&d.ledger, p))).max();
        most.unwrap_or(0)
    };
    let busy = slowest(&|times| times.offline + times.online);
    Summary {
        what: "gmw",
        parties: args.parties,
        transport: args.transport.word(),
        ot: kind.to_string(),
        tree: args.tree,
        ands,
        and_per_s: ands as f64 / busy,
        bytes_per_and: bytes as f64 / ands as f64,
        rounds: turns(false),
        turns_offline: turns(true),
        seconds,
        seconds_setup: slowest(&|times| times.setup),
        seconds_offline: slowest(&|times| times.offline),
        seconds_online: slowest(&|times| times.online),
        peak_memory_bytes: usage::peak_memory_bytes(),
        cpu_seconds: usage::cpu_seconds(),
        correct: done.iter().all(|d| d.correct),
    }
}

fn text(summary: &Summary, asked: Option<u64>) -> String {
    let mut shape = summary.tree.map_or_else(String::new, |depth| format!(" in a tree of depth {depth}"));
    if let Some(asked) = asked.filter(|asked| *asked != summary.ands) {
        shape = format!(" ({} rounded up to a multiple of {GATES})", count(asked));
    }
    [
        format!(
            "{}{shape} among {} parties over {}: {} AND/s",
            counted(summary.ands, "AND gate"),
            summary.parties,
            summary.transport,
            scaled(summary.and_per_s)
        ),
        format!(
            "  {} in all: set-up {}, triples {}, online {} ({})",
            duration(summary.seconds),
            duration(summary.seconds_setup),
            duration(summary.seconds_offline),
            duration(summary.seconds_online),
            summary.ot
        ),
        format!(
            "  {:.2} bytes per AND and party, {} online",
            summary.bytes_per_and,
            counted(summary.rounds, "round")
        ),
        format!(
            "  all parties: {:.2} CPU s, peak memory {}",
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

    #[test]
    fn leaves_are_shares_of_one() {
        for parties in [2, 3, 5] {
            let shares: Vec<Vec<u64>> = (0..parties).map(|p| leaves(PartyId(p as u8), 8, parties)).collect();
            let sums = (0..4).map(|i| shares.iter().fold(0, |sum, share| sum ^ share[i]));
            assert!(sums.into_iter().all(|sum| sum == u64::MAX));
        }
    }

    #[test]
    fn a_lane_has_the_gates_it_says() {
        for parties in [2, 3, 13] {
            let (circuit, root) = wide_circuit(parties);
            let layers = Layers::new(&circuit, &[root]);
            assert_eq!((layers.and_gates(), layers.depth()), (GATES.into(), 1));
        }
    }
}
