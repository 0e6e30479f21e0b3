//! `tacit circuit info`.

use base::{Error, PartyId};
use circuits::WireDriver;
use circuits::Wired;
use page::numbers::{count, counted};
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;
use terminal::output;

/// Rows of the histogram of layers, at most.
const ROWS: usize = 16;

/// The JSON of `tacit circuit info --json`.
#[derive(Serialize)]
struct Info {
    format: &'static str,
    parties: usize,
    /// AND, XOR and INV gates.
    gates: usize,
    and_gates: usize,
    xor_gates: usize,
    /// Wires whose complement is used.
    inv_gates: usize,
    depth: usize,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// AND gates by layer.
    layers: Vec<usize>,
}

#[derive(Serialize)]
struct Input {
    party: usize,
    bits: u32,
}

#[derive(Serialize)]
struct Output {
    parties: Vec<usize>,
    bits: usize,
}

/// Describes a circuit file.
///
/// # Errors
/// When the file cannot be read or is malformed.
pub fn run(path: &Path, json: bool) -> Result<(), Error> {
    let (wired, format) = super::read(path)?;
    let info = info(&wired, super::name(format));
    if json { output::print_json(&info) } else { output::print(&text(&info)) }
}

fn info(wired: &Wired, format: &'static str) -> Info {
    let mut complements = HashSet::new();
    let operands = wired.circuit.wires.iter().flat_map(|wire| match wire {
        WireDriver::And(a, b) => vec![*a, *b],
        _ => Vec::new(),
    });
    complements.extend(operands.chain(wired.roots()).filter(|l| l.inverted() && l.wire() > 0));
    let (and_gates, xor_gates, inv_gates) = (wired.and_gates(), wired.xor_gates(), complements.len());
    let seen = |k: usize| {
        let parties = (0..wired.parties).filter(|p| wired.outputs[k].to.has(PartyId(*p as u8)));
        parties.map(|p| p + 1).collect()
    };
    let output = |k: usize| Output { parties: seen(k), bits: wired.outputs[k].bits.len() };
    let input = |w: &circuits::InputWord| Input { party: w.owner.index() + 1, bits: w.width };
    Info {
        format,
        parties: wired.parties,
        gates: and_gates + xor_gates + inv_gates,
        and_gates,
        xor_gates,
        inv_gates,
        depth: wired.depth(),
        inputs: wired.inputs.iter().map(input).collect(),
        outputs: (0..wired.outputs.len()).map(output).collect(),
        layers: wired.layers(),
    }
}

fn text(info: &Info) -> String {
    let grouped = |n: usize| count(n as u64);
    let mut lines = vec![
        format!("format   {}, {} parties", info.format, info.parties),
        format!(
            "gates    {}: {} AND, {} XOR, {} INV; depth {}",
            grouped(info.gates),
            grouped(info.and_gates),
            grouped(info.xor_gates),
            grouped(info.inv_gates),
            info.depth
        ),
    ];
    for party in 1..=info.parties {
        let own: Vec<u32> = info.inputs.iter().filter(|i| i.party == party).map(|i| i.bits).collect();
        let seen: Vec<usize> =
            info.outputs.iter().filter(|o| o.parties.contains(&party)).map(|o| o.bits).collect();
        let bits = |n: usize, words: usize| {
            format!("{} in {}", counted(n as u64, "bit"), counted(words as u64, "word"))
        };
        let entered = bits(own.iter().sum::<u32>() as usize, own.len());
        lines
            .push(format!("party {party}  enters {entered}, learns {}", bits(seen.iter().sum(), seen.len())));
    }
    let step = info.layers.len().div_ceil(ROWS).max(1);
    let sums: Vec<usize> = info.layers.chunks(step).map(|layers| layers.iter().sum()).collect();
    let most = sums.iter().copied().max().unwrap_or(1);
    for (row, sum) in sums.iter().enumerate() {
        let (from, to) = (row * step + 1, ((row + 1) * step).min(info.layers.len()));
        let range = if from == to { format!("{from}") } else { format!("{from}-{to}") };
        let bar = "#".repeat((40 * sum).div_ceil(most));
        lines.push(format!("layer {range:>11}  {:>9} AND  {bar}", count(*sum as u64)));
    }
    lines.join("\n")
}
