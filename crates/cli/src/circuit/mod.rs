//! `tacit circuit`: boolean circuits in files.

mod args;
mod config;
mod hosts;
mod info;
mod inputs;
mod run;

pub use args::CircuitArgs;

use args::{CircuitCommand, Convert, Emit, Optimise};
use base::Error;
use circuits::Wired;
use circuits::files::{self, NetlistFormat};
use circuits::optimise::optimise;
use circuits::standard;
use page::numbers::count;
use serde::Serialize;
use std::io::BufReader;
use std::path::Path;
use terminal::output;

/// Does what was asked for.
///
/// # Errors
/// When a file cannot be read or written or is malformed, inputs do not fit, or an engine fails.
pub fn run(args: &CircuitArgs) -> Result<(), Error> {
    match &args.action {
        CircuitCommand::Run(run) => run::run(run, args.json),
        CircuitCommand::Info(info) => info::run(&info.file, args.json),
        CircuitCommand::Convert(convert) => self::convert(convert, args.json),
        CircuitCommand::Optimise(optimise) => self::shrink(optimise, args.json),
        CircuitCommand::Emit(emit) => self::emit(emit, args.json),
    }
}

/// Reads a circuit file.
fn read(path: &Path) -> Result<(Wired, NetlistFormat), Error> {
    let failed = |e: std::io::Error| Error::reading(format!("cannot read {}", path.display()), &e);
    let file = std::fs::File::open(path).map_err(failed)?;
    files::read(BufReader::with_capacity(1 << 16, file), &path.display().to_string())
}

/// What decides the cost of a circuit.
#[derive(Clone, Copy, Debug, Serialize)]
struct Size {
    and_gates: usize,
    xor_gates: usize,
    depth: usize,
}

impl Size {
    fn of(wired: &Wired) -> Self {
        Self { and_gates: wired.and_gates(), xor_gates: wired.xor_gates(), depth: wired.depth() }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [ands, xors] = [self.and_gates, self.xor_gates].map(|n| count(n as u64));
        write!(f, "{ands} AND, {xors} XOR, depth {}", self.depth)
    }
}

fn name(format: NetlistFormat) -> &'static str {
    match format {
        NetlistFormat::Bristol => "bristol",
        NetlistFormat::Gmw => "gmw",
    }
}

/// What was written.
#[derive(Serialize)]
struct Written {
    format: &'static str,
    #[serde(flatten)]
    size: Size,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Size>,
}

fn convert(args: &Convert, json: bool) -> Result<(), Error> {
    let (wired, _) = read(&args.file)?;
    put(&wired, args.to.into(), args.output.as_deref(), json, None)
}

fn shrink(args: &Optimise, json: bool) -> Result<(), Error> {
    let (wired, format) = read(&args.file)?;
    put(&optimise(&wired), format, args.output.as_deref(), json, Some(Size::of(&wired)))
}

fn emit(args: &Emit, json: bool) -> Result<(), Error> {
    put(&named(&args.name)?, args.to.into(), args.output.as_deref(), json, None)
}

/// A standard circuit, or a marketplace: `market:PROBLEM:ROWS:SHAPE`.
fn named(text: &str) -> Result<Wired, Error> {
    if let Some(circuit) = standard::ALL.iter().find(|s| s.name == text) {
        return Ok((circuit.build)());
    }
    let parts: Vec<&str> = text.split(':').collect();
    let &["market", problem, rows, shape] = parts.as_slice() else {
        let known: Vec<&str> = standard::ALL.iter().map(|s| s.name).collect();
        return Err(Error::input(format!(
            "there is no circuit {text:?}; there are {} and marketplaces such as market:p2p:100:paper",
            known.join(", ")
        )));
    };
    let rows = rows.parse().map_err(|_| Error::input(format!("{rows:?} is no number of resources")))?;
    studies::market::wired(problem, rows, shape.parse()?)
}

/// Writes a circuit to standard output, or to a file and then says what was written.
fn put(
    wired: &Wired,
    format: NetlistFormat,
    to: Option<&Path>,
    json: bool,
    before: Option<Size>,
) -> Result<(), Error> {
    if to.is_none() && json {
        return Err(Error::input(
            "the circuit goes to standard output, and so does --json; give a file with -o",
        ));
    }
    let mut text = Vec::new();
    files::write(wired, format, &mut text)?;
    let Some(path) = to else {
        return output::print(String::from_utf8_lossy(&text).trim_end());
    };
    output::write_file(path, &text)?;
    let written = Written { format: name(format), size: Size::of(wired), before };
    if json {
        return output::print_json(&written);
    }
    let before = before.map_or_else(String::new, |before| format!(" (before: {before})"));
    output::print(&format!("{}: {}, {}{before}", path.display(), written.format, written.size))
}
