//! Conformance of engines that run stand-alone circuits: results, viewers, and price against ledger.
//!
//! Expectations of the standard circuits come from the standards and from machine arithmetic; those of random
//! circuits from the definition of a circuit.

use crate::CircuitEngine;
use base::{Cost, Error, Fault, PartyId, Rng, Roster, Seed, limits};
use circuits::files::values;
use circuits::standard;
use circuits::{CircuitBuilder, InputBit, Lit};
use circuits::{InputWord, OutputWord, Viewers, Wired};
use net::Session;
use net::cluster::Cluster;

/// Makes one party's engine.
pub type MakeCircuits<'a> = dyn Fn(&mut Session) -> Result<Box<dyn CircuitEngine>, Error> + Sync + 'a;

/// Lanes of every bit of every word: `[word][bit][lane / 64]`.
pub type CaseLanes = Vec<Vec<Vec<u64>>>;

/// A circuit with its inputs and what must come of it.
#[derive(Clone, Debug)]
pub struct CircuitCase {
    /// What it is about; a failure names it.
    pub name: String,
    /// The circuit.
    pub wired: Wired,
    /// Number of lanes.
    pub lanes: usize,
    /// Inputs of all parties.
    pub inputs: CaseLanes,
    /// All outputs.
    pub outputs: CaseLanes,
}

const SEED: u64 = 0xc19c;
const BARRIER: &str = "conformance-barrier";

/// The cases for so many parties: the standard circuits with the vectors of FIPS 197 and FIPS 180-4 and with
/// words of machine arithmetic, inputs dealt to the parties in turn; and random circuits with constants and
/// equal wires as operands, outputs for everyone, for some and for nobody, parties without inputs, and 1 to
/// 1,100 lanes.
#[must_use]
pub fn suite(parties: usize) -> Vec<CircuitCase> {
    let mut cases = vectors(parties);
    cases.extend(arithmetic(parties));
    let mut rng = Seed::from_bytes([parties as u8; 32]).into_rng();
    for (i, lanes) in [1, 2, 63, 64, 65, 128, 700, 1100, 3, 3, 3, 3, 3, 3, 0].into_iter().enumerate() {
        let wired = random(&mut rng, parties, i);
        let inputs = noise(&mut rng, &wired, lanes);
        cases.push(CircuitCase {
            name: format!("random circuit {i}"),
            outputs: evaluate(&wired, lanes, &inputs),
            wired,
            lanes,
            inputs,
        });
    }
    cases
}

fn dealt(wired: Wired, parties: usize) -> Wired {
    wired.deal(parties, &|i| PartyId((i % parties) as u8)).expect("a standard circuit goes to any parties")
}

/// Values of one word in all lanes, as bits.
fn pack(values: &[Vec<bool>]) -> Vec<Vec<u64>> {
    let bit = |bit: usize| {
        let mut lanes = vec![0; values.len().div_ceil(64)];
        values.iter().enumerate().for_each(|(i, v)| lanes[i / 64] |= u64::from(v[bit]) << (i % 64));
        lanes
    };
    (0..values.first().map_or(0, Vec::len)).map(bit).collect()
}

fn vectors(parties: usize) -> Vec<CircuitCase> {
    let hex = |digits: &str| {
        values::parse(&format!("0x{digits}"), 4 * digits.len() as u32).expect("a vector of the standard")
    };
    let case = |name: &str, wired: Wired, rows: &[[&str; 3]]| {
        let word = |i: usize| pack(&rows.iter().map(|row| hex(row[i])).collect::<Vec<_>>());
        let wired = dealt(wired, parties);
        CircuitCase {
            name: name.into(),
            wired,
            lanes: rows.len(),
            inputs: vec![word(0), word(1)],
            outputs: vec![word(2)],
        }
    };
    let start = "6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19";
    let abc = format!("61626380{}18", "0".repeat(118));
    let empty = format!("80{}", "0".repeat(126));
    vec![
        case(
            "AES-128, FIPS 197",
            standard::aes128(),
            &[
                [
                    "2b7e151628aed2a6abf7158809cf4f3c",
                    "3243f6a8885a308d313198a2e0370734",
                    "3925841d02dc09fbdc118597196a0b32",
                ],
                [
                    "000102030405060708090a0b0c0d0e0f",
                    "00112233445566778899aabbccddeeff",
                    "69c4e0d86a7b0430d8cdb78070b4c55a",
                ],
            ],
        ),
        case(
            "SHA-256, FIPS 180-4",
            standard::sha256(),
            &[
                [&abc, start, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"],
                [&empty, start, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
            ],
        ),
    ]
}

/// What a circuit computes, in machine arithmetic.
type Operation = fn(u64, u64) -> u64;

fn arithmetic(parties: usize) -> Vec<CircuitCase> {
    let operations: [(&str, Wired, Operation); 6] = [
        ("a + b", standard::add64(), u64::wrapping_add),
        ("a - b", standard::sub64(), u64::wrapping_sub),
        ("a * b", standard::mul64(), u64::wrapping_mul),
        ("a / b", standard::div64(), |a, b| a.checked_div(b).unwrap_or(u64::MAX)),
        ("a < b", standard::lt64(), |a, b| u64::from(a < b)),
        ("a = b", standard::eq64(), |a, b| u64::from(a == b)),
    ];
    let pairs =
        [(0, 0), (1, 0), (7, 3), (3, 7), (u64::MAX, 2), (1 << 63, u64::MAX), (0x0123_4567_89ab_cdef, 12345)];
    let bits = |v: u64, width: usize| (0..width).map(|i| v >> i & 1 == 1).collect::<Vec<bool>>();
    let case = |(name, wired, of): (&str, Wired, Operation)| {
        let width = wired.outputs[0].bits.len();
        let column = |value: &dyn Fn(u64, u64) -> u64, width| {
            pack(&pairs.iter().map(|(a, b)| bits(value(*a, *b), width)).collect::<Vec<_>>())
        };
        let inputs = vec![column(&|a, _| a, 64), column(&|_, b| b, 64)];
        let outputs = vec![column(&of, width)];
        CircuitCase { name: name.into(), wired: dealt(wired, parties), lanes: pairs.len(), inputs, outputs }
    };
    operations.into_iter().map(case).collect()
}

/// A random circuit. Number 0 has no gate, number 1 no AND, number 2 inputs of party 0 alone, number 3
/// outputs for the last party alone, number 4 no input, number 5 outputs for nobody.
fn random(rng: &mut Rng, parties: usize, number: usize) -> Wired {
    let mut g = CircuitBuilder::default();
    let mut lits = vec![Lit::FALSE, Lit::TRUE];
    let mut inputs = Vec::new();
    for word in 0..if number == 4 { 0 } else { 2 * parties as u32 } {
        let owner = PartyId(if number == 2 { 0 } else { rng.below(parties as u64) as u8 });
        let width = 1 + rng.below(9) as u32;
        inputs.push(InputWord { owner, width });
        lits.extend((0..width).map(|bit| g.input(InputBit { owner: Some(owner), word, bit: bit as u16 })));
    }
    for _ in 0..if number == 0 { 0 } else { 60 } {
        let mut pick = || lits[rng.below(lits.len() as u64) as usize].flip(rng.below(2) == 1);
        let (a, b) = (pick(), pick());
        let gate = if number != 1 && rng.below(2) == 1 { g.and_gate(a, b) } else { g.xor(a, b) };
        lits.push(gate);
    }
    let outputs = (0..4u32).map(|k| {
        let to = match number {
            3 => Viewers::Parties(vec![PartyId(parties as u8 - 1)]),
            5 => Viewers::Parties(Vec::new()),
            _ if k == 0 => Viewers::Everyone,
            _ => {
                let some = (0..parties as u8).filter(|_| rng.below(2) == 1).map(PartyId).collect();
                Viewers::Parties(some)
            }
        };
        let bits = (0..1 + rng.below(70)).map(|_| lits[rng.below(lits.len() as u64) as usize]);
        OutputWord { to, bits: bits.collect() }
    });
    let outputs = outputs.collect();
    Wired { circuit: g.finish(), inputs, outputs, parties }
}

/// Random inputs; bits past the last lane are random too, and count nowhere.
fn noise(rng: &mut Rng, wired: &Wired, lanes: usize) -> CaseLanes {
    let mut word = |width: u32| {
        let mut bit = || (0..lanes.div_ceil(64)).map(|_| u64::from_le_bytes(rng.bytes())).collect();
        (0..width).map(|_| bit()).collect()
    };
    wired.inputs.iter().map(|w| word(w.width)).collect()
}

/// All outputs by the definition of a circuit, row by row.
fn evaluate(wired: &Wired, lanes: usize, inputs: &CaseLanes) -> CaseLanes {
    let mut outputs: CaseLanes =
        wired.outputs.iter().map(|o| vec![vec![0; lanes.div_ceil(64)]; o.bits.len()]).collect();
    for lane in 0..lanes {
        let bit = |bits: &Vec<u64>| bits[lane / 64] >> (lane % 64) & 1 == 1;
        let wires = wired.circuit.evaluate(|i| bit(&inputs[i.word as usize][usize::from(i.bit)]));
        for (word, output) in outputs.iter_mut().zip(&wired.outputs) {
            for (out, lit) in word.iter_mut().zip(&output.bits) {
                out[lane / 64] |= u64::from(wires[lit.wire()] ^ lit.inverted()) << (lane % 64);
            }
        }
    }
    outputs
}

/// What one party saw.
struct View {
    outputs: Vec<Option<Vec<Vec<u64>>>>,
    price: Cost,
    sent: u64,
    /// Turns with the peer with whom there were most.
    turns: u64,
    and_gates: u64,
    ots: u64,
}

/// Runs the whole suite among so many parties, each with its own inputs only: outputs, who gets them, and the
/// price against the ledger.
///
/// # Errors
/// The first case that fails, and how.
pub fn check(make: &MakeCircuits<'_>, parties: usize) -> Result<(), String> {
    check_served(make, parties, 0)
}

/// As [`check`] with so many servers after the parties in the roster, which have no inputs and see no
/// outputs.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_served(make: &MakeCircuits<'_>, parties: usize, servers: usize) -> Result<(), String> {
    assert!((2..=limits::PARTIES).contains(&parties), "a conversation takes two");
    let run = |case: &CircuitCase| run_served(make, case, servers);
    suite(parties).iter().try_for_each(|case| run(case).map_err(|text| format!("{}: {text}", case.name)))
}

/// Runs the whole suite with an engine that holds all inputs in one process.
///
/// # Errors
/// The first case that fails, and how.
pub fn check_alone(make: &MakeCircuits<'_>) -> Result<(), String> {
    for case in suite(3) {
        let fails = |text: String| format!("{}: {text}", case.name);
        let mut session = Session::alone(Roster::new(["all"]), Seed::from_bytes([3; 32]));
        let engine = make(&mut session).map_err(|e| fails(e.to_string()))?;
        let stage = engine.circuit(&case.wired).map_err(|e| fails(e.to_string()))?;
        let outputs = stage.run(case.lanes, &case.inputs, &mut session).map_err(|e| fails(e.to_string()))?;
        let expected: Vec<_> = case.outputs.iter().cloned().map(Some).collect();
        if outputs != expected {
            return Err(fails("the outputs are not those of the circuit".into()));
        }
    }
    Ok(())
}

/// Runs one case among its parties.
///
/// # Errors
/// What differs from what the case expects.
pub fn run(make: &MakeCircuits<'_>, case: &CircuitCase) -> Result<(), String> {
    run_served(make, case, 0)
}

/// Runs one case among its parties and so many servers.
///
/// # Errors
/// What differs from what the case expects.
pub fn run_served(make: &MakeCircuits<'_>, case: &CircuitCase, servers: usize) -> Result<(), String> {
    let parties = case.wired.parties;
    let done = Cluster::new(parties + servers, SEED).run(|session| play(make, case, session));
    let (views, mut errors): (Vec<_>, Vec<_>) = done.into_iter().partition(Result::is_ok);
    // A broken connection is what another party's error looks like.
    let is_cause = |e: &Result<View, Error>| matches!(e, Err(e) if !matches!(e.kind(), Fault::Channel(_)));
    if !errors.is_empty() {
        let cause = errors.iter().position(is_cause).unwrap_or(0);
        return Err(errors.swap_remove(cause).err().map_or_else(String::new, |e| e.to_string()));
    }
    let views: Vec<View> = views.into_iter().flatten().collect();
    for (p, view) in views.iter().enumerate() {
        let outputs = case.wired.outputs.iter().zip(&case.outputs);
        let expected: Vec<_> = outputs
            .map(|(o, bits)| (p < parties && o.to.has(PartyId(p as u8))).then(|| bits.clone()))
            .collect();
        if view.outputs != expected {
            return Err(format!("party {p} learns other outputs than it should"));
        }
        if view.price != views[0].price {
            return Err(format!("the parties state two prices, {:?} and {:?}", views[0].price, view.price));
        }
    }
    compare_price(&views)
}

/// One party's half of a case, whatever comes of it.
///
/// # Errors
/// Those of the engine and of the conversation.
pub fn half(make: &MakeCircuits<'_>, case: &CircuitCase, session: &mut Session) -> Result<(), Error> {
    play(make, case, session).map(drop)
}

/// The case of this name for so many parties.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn case(parties: usize, name: &str) -> CircuitCase {
    let found = suite(parties).into_iter().find(|case| case.name == name);
    found.unwrap_or_else(|| panic!("no case {name}"))
}

fn play(make: &MakeCircuits<'_>, case: &CircuitCase, session: &mut Session) -> Result<View, Error> {
    let me = session.me();
    let engine = session.step("setup", make)?;
    let words = case.wired.inputs.iter().zip(&case.inputs);
    let own: CaseLanes =
        words.map(|(w, bits)| if w.owner == me { bits.clone() } else { Vec::new() }).collect();
    // The next receive of any party is not an answer to anything.
    session.step(BARRIER, |s| {
        let peers: Vec<PartyId> = s.roster().parties().filter(|p| *p != me).collect();
        peers.into_iter().try_for_each(|peer| s.link(peer).exchange(&[0], &mut [0]))
    })?;
    let stage = engine.circuit(&case.wired)?;
    let price = stage.price(case.lanes);
    let outputs = session.step("run", |s| stage.run(case.lanes, &own, s))?;
    let ledger = session.traffic();
    let turns_with = |peer: PartyId| {
        let entries = ledger.entries().iter().filter(|e| e.peer == peer && e.step.starts_with("run"));
        entries.map(|e| e.turns).sum::<u64>()
    };
    let turns = session.roster().parties().map(turns_with).max().unwrap_or(0);
    let (sent, and_gates, ots) = (ledger.sent("run"), ledger.and_gates("run"), ledger.ots("run"));
    Ok(View { outputs, price, sent, turns, and_gates, ots })
}

fn compare_price(views: &[View]) -> Result<(), String> {
    let price = &views[0].price;
    let sent: Vec<u64> = views.iter().map(|v| v.sent).collect();
    if price.sent != sent {
        return Err(format!("priced at {:?} bytes, sent {sent:?}", price.sent));
    }
    // A gate is worked off with every peer, an oblivious transfer at both of its ends.
    let ands = price.and_gates * (views.len() as u64 - 1);
    if let Some(view) = views.iter().find(|v| v.and_gates != ands) {
        return Err(format!("priced at {} ANDs, {} booked with all peers", price.and_gates, view.and_gates));
    }
    let ots: u64 = views.iter().map(|v| v.ots).sum();
    if 2 * price.ots != ots {
        return Err(format!("priced at {} OTs, {ots} booked at both ends", price.ots));
    }
    let turns = views.iter().map(|v| v.turns).max().unwrap_or(0);
    if price.rounds != turns {
        return Err(format!("priced at {} rounds, took {turns}", price.rounds));
    }
    Ok(())
}
