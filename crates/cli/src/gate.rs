//! `tacit gate`: one public port before a party's coordinator and workers.

use base::Error;
use clap::Args;
use net::gate::{GateEvent, GateSetup, PublicGate};
use net::{Identity, IpNetwork, KeyFingerprint};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use study::party::host_and_port;
use terminal::output::log_line;

const TEACH: &str = "\
A party that listens has one port to the outside, whatever its coordinator and workers are and wherever they
run: the gate's. It hands every connection on by the name that TLS asks for, and ends no TLS: it learns
names, addresses, lengths and times. Coordinators register where names go, at --inside, and prove one of the
keys under --coordinator; nobody else can. What they registered ends with their connection.

  1  on the gate's machine, once:      tacit keygen --out gate.key
  2  there, with the key of the party: tacit gate --listen 0.0.0.0:7001 --inside 10.0.0.5:7002 \\
                                         --identity gate.key --coordinator tacit1:3f9a..
  3  in the party file:                listen = \"0.0.0.0:7000\"       # reached by the gate alone
                                       [workers]
                                       expose = \"gate\"
                                       gate = \"10.0.0.5:7002\"
                                       gate_key = \"tacit1:..\"         # as step 1 printed it
  4  in the peer's:                    peer = \"gate.example.org:7001\"

--inside is for this organisation's network: let nobody else reach it. SIGTERM and SIGINT end the gate, and
the connections that go through it. What strangers can do: docs/protocols/wire.md, \"Gates\".";

/// Hands the peers of a party on to its coordinator and workers: one public port, TLS end to end
#[derive(Debug, Args)]
#[command(after_help = TEACH)]
pub struct GateArgs {
    /// The public address
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub listen: String,
    /// The address at which coordinators register; not for the public
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    pub inside: String,
    /// The gate's own identity file, of `tacit keygen`; no party's
    #[arg(long, value_name = "FILE")]
    pub identity: PathBuf,
    /// The key of a party whose coordinator may register; again for each
    #[arg(long = "coordinator", value_name = "KEY", required = true, value_parser = key)]
    pub coordinators: Vec<KeyFingerprint>,
    /// Take public connections from this network only; again for each
    #[arg(long, value_name = "NETWORK")]
    pub allow: Vec<IpNetwork>,
    /// Connect to coordinators and workers in this network only; again for each
    #[arg(long, value_name = "NETWORK")]
    pub to: Vec<IpNetwork>,
    /// The log as JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// End with the process that started this one
    #[arg(long, hide = true)]
    pub child: bool,
}

fn key(text: &str) -> Result<KeyFingerprint, String> {
    text.parse().map_err(|e: Error| e.to_string())
}

/// Runs a gate until a signal.
///
/// # Errors
/// When the identity cannot be read, or an address cannot be used.
pub fn run(args: GateArgs) -> Result<(), Error> {
    if args.child {
        terminal::machine::end_with_parent();
    }
    let identity = Arc::new(Identity::load(&args.identity)?);
    if args.coordinators.contains(&identity.fingerprint()) {
        return Err(Error::input(
            "the gate's identity is a coordinator's: a gate is exposed and must have no party's key; make it \
             one of its own, tacit keygen --out gate.key",
        ));
    }
    let own = identity.fingerprint();
    let GateArgs { listen, inside, coordinators, allow, to, json, .. } = args;
    let gate = PublicGate::open(&GateSetup { listen, inside, identity, coordinators, allow, to })?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        let failed = |e: std::io::Error| Error::io("cannot catch signals", &e);
        signal_hook::flag::register(signal, stop.clone()).map_err(failed)?;
    }
    let [public, inside] = gate.addresses();
    let text = format!("hands on from {public}; coordinators register at {inside}; gate_key = \"{own}\"");
    let more = json!({ "listen": public, "inside": inside, "key": own.to_string() });
    log_line(json, "ready", &text, more);
    gate.serve(&stop, &|event| say(&event, json));
    drop(gate);
    log_line(json, "stopped", "stopped", json!({}));
    Ok(())
}

fn say(event: &GateEvent, json: bool) {
    match event {
        GateEvent::Coordinator { key, from } => {
            let text = format!("{key} registers, from {from}");
            log_line(json, "coordinator", &text, json!({ "key": key.to_string(), "from": from }));
        }
        GateEvent::CoordinatorLeft { key, routes } => {
            let text = format!("{key} has left; {routes} routes with it");
            log_line(json, "left", &text, json!({ "key": key.to_string(), "routes": routes }));
        }
        GateEvent::Routed { name, to } => {
            log_line(json, "routed", &format!("{name} goes to {to}"), json!({ "name": name, "to": to }));
        }
        GateEvent::Carried { name, from } => {
            let text = format!("{from} comes for {name}");
            log_line(json, "carried", &text, json!({ "name": name, "from": from }));
        }
        GateEvent::Ended { name, bytes } => {
            let text = format!("{name} ended: {} bytes from outside, {} back", bytes[0], bytes[1]);
            log_line(json, "ended", &text, json!({ "name": name, "bytes": bytes }));
        }
        GateEvent::Refused { from, why } => {
            log_line(json, "refused", &format!("refused {from}: {why}"), json!({ "from": from, "why": why }));
        }
        GateEvent::More { refused, carried, ended } => {
            let text =
                format!("within a second {refused} more refused, {carried} more came, {ended} more ended");
            let more = json!({ "refused": refused, "carried": carried, "ended": ended });
            log_line(json, "more", &text, more);
        }
    }
}
