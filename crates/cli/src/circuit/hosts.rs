//! `tacit circuit run --config`: this process is one of several hosts.

use super::args::{CircuitRun, EngineName};
use super::config::Config;
use super::inputs;
use super::run::{CircuitSummary, EngineOptions, evaluate, packed};
use base::{Error, Roster, Seed};
use circuits::Wired;
use net::{ChannelSecurity, Identity, Meet, Meeting, OperatorTerms, Session, Status};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use terminal::progress::{Board, ProgressLine};

/// What the parties agree on, and their lines, in words.
const TERMS: OperatorTerms = OperatorTerms {
    document: "computation",
    differ: "circuit file, --engine, --ot and --party-of-input must be the same at all parties",
    key: "the line `k` of {party} in the configuration",
    keys: "the lines `k` of the configuration",
    identity: "the line `s` of this party's configuration",
    address: "its line `a`",
    allow: "nowhere: it takes connections from everywhere",
};

/// Reads configuration, circuit and input, meets the other hosts, and prints what this party learns.
///
/// # Errors
/// When a file is refused, another party does not come, is not who it should be or holds something else, or
/// the protocol fails: party, peer and step.
pub fn run(args: &CircuitRun, config: &Path, json: bool) -> Result<(), Error> {
    let config = Config::read(config)?;
    let chosen = chosen(args, &config)?;
    let file = args.file.as_deref().or(config.circuit.as_deref()).ok_or_else(|| {
        Error::input("no circuit: name its file on the command line, or as `c FILE` in the configuration")
    })?;
    let (wired, format) = super::read(file)?;
    let wired = inputs::deal(wired, format, Some(config.parties as u8), &args.party_of_input)?;
    let mut values =
        inputs::own(&wired, config.me, args.input.as_deref().or(config.input.as_deref()))?.into_iter();
    let own = |word: &circuits::InputWord| match word.owner == config.me {
        true => values.next().map(|value| packed(&value)).unwrap_or_default(),
        false => Vec::new(),
    };
    let inputs: Vec<_> = wired.inputs.iter().map(own).collect();

    let roster = Roster::new((1..=config.parties).map(|p| format!("party {p}")));
    let mut meeting = meet(&config, &roster, agreement(&wired, chosen))?;
    // Between two parties the channel that breaks says enough.
    let farewell = if config.parties > 2 { Some(meeting.farewell()?) } else { None };
    let mut session = Session::new(config.me, roster, meeting.control, Seed::from_system());
    let start = Instant::now();
    let done = evaluate(chosen, &wired, &inputs, &mut session);
    let view = done.map_err(|error| match &farewell {
        Some(farewell) => farewell.stop(error),
        None => error,
    })?;
    let seconds = start.elapsed().as_secs_f64();
    CircuitSummary::of_host(config.me, chosen, &wired, view, seconds).print(json)
}

fn chosen(args: &CircuitRun, config: &Config) -> Result<EngineOptions, Error> {
    let chosen = EngineOptions::of(args, EngineName::Gmw)?;
    match chosen.name {
        EngineName::Clear => {
            Err(Error::input("the clear engine is no protocol; hosts run --engine gmw or yao"))
        }
        EngineName::Yao if config.parties != 2 => Err(Error::input(format!(
            "the yao engine is for two parties, this configuration for {}; use --engine gmw",
            config.parties
        ))),
        _ => Ok(chosen),
    }
}

/// What all parties must share: the circuit with its parties, the engine, and the OTs that it makes.
fn agreement(wired: &Wired, chosen: EngineOptions) -> [u8; 32] {
    let engine = match chosen.name {
        EngineName::Gmw => format!("gmw, {}", chosen.ot),
        EngineName::Yao => "yao".to_owned(),
        EngineName::Clear => "clear".to_owned(),
    };
    *Seed::from_bytes(wired.hash()).fork(&format!("tacit circuit run: {engine}")).expose()
}

fn meet(config: &Config, roster: &Roster, agreement: [u8; 32]) -> Result<Meeting, Error> {
    let transport = match &config.keys {
        None => ChannelSecurity::Tcp,
        Some(keys) => ChannelSecurity::Tls {
            identity: Arc::new(Identity::load(&keys.identity)?),
            keys: keys.all.clone(),
        },
    };
    let board = Board::stderr();
    let (listen, dial) = (config.listen.clone(), config.dial.clone());
    Meet::all(config.me, roster.clone(), listen, dial, transport, agreement)
        .terms(TERMS)
        .patience(config.deadline)
        .deadline(config.deadline)
        .watch(move |status: &Status| board.show(&ProgressLine::Waiting { text: status.to_string() }))
        .meet(0)
}
