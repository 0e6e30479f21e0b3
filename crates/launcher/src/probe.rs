//! `osprey probe`: what this machine allows, and which engine is chosen by it.

use crate::args::ProbeArgs;
use crate::engine::{self, ENCRYPTED, PLAINTEXT};
use crate::{attempt, folders};
use base::Error;
use osprey::PagingEngine;
use serde::Serialize;
use std::path::Path;
use terminal::output;

const NO_SWAP: &str =
    "this machine has no swap: make a swap file and switch it on (mkswap FILE, then swapon FILE)";

/// Something that a machine allows or not.
#[derive(Debug, Serialize)]
struct Capability {
    name: String,
    works: bool,
    /// What it is for, or how it is done here.
    what: String,
    /// Why it does not work, and what would change that.
    why_not: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    capabilities: Vec<Capability>,
    /// What `--engine auto` chooses; `None` when nothing is left.
    engine: Option<String>,
    reason: String,
}

/// Prints what this machine allows.
///
/// # Errors
/// When standard output cannot be written, or a disk that is to be measured fails.
pub fn run(args: &ProbeArgs) -> Result<(), Error> {
    if args.disk {
        return crate::bench::disk::probe(&args.spill, args.json);
    }
    let answer = ask(&args.spill);
    if args.json { output::print_json(&answer) } else { output::print(&table(&answer)) }
}

fn ask(spill: &Path) -> Answer {
    let mut capabilities = Vec::new();
    let mut add = |name: &str, what: &str, tried: Result<String, String>| {
        let works = tried.is_ok();
        let (what, why_not) = match tried {
            Ok(how) if how.is_empty() => (what.to_owned(), None),
            Ok(how) => (how, None),
            Err(why) => (what.to_owned(), Some(why)),
        };
        capabilities.push(Capability { name: name.into(), works, what, why_not });
    };
    let empty = |tried: Result<(), String>| tried.map(|()| String::new());
    // A run refuses such a folder before it tries anything.
    let folder = folders::spill(spill, false);
    for engine in ENCRYPTED.into_iter().chain(PLAINTEXT) {
        let tried = match engine {
            PagingEngine::Hint if !engine::has_swap() => Err(NO_SWAP.into()),
            PagingEngine::Hint => empty(attempt::engine(engine, spill)),
            _ => empty(folder.clone().and_then(|()| attempt::engine(engine, spill))),
        };
        add(&format!("engine {engine}"), describe(engine), tried);
    }
    add(
        "speculation",
        "a trace is made by touches of memory (userfaultfd)",
        empty(attempt::speculation(spill)),
    );
    add(
        "isolation",
        "namespaces and overlays cut the speculative pass off",
        empty(attempt::isolation(spill)),
    );
    add("limit", "the system enforces the limit of memory (cgroup)", attempt::limit().map_err(with_remedy));
    let chosen = folder.and_then(|()| engine::automatic(spill, false));
    let (engine, reason) = match chosen {
        Ok((engine, reason)) => (Some(engine.to_string()), reason),
        Err(why) => (None, why),
    };
    Answer { capabilities, engine, reason }
}

/// What to do where no group of memory can be made.
fn with_remedy(why: String) -> String {
    format!(
        "{why}; run as root, or in a scope of its own (systemd-run --user --scope osprey run ...); without \
         it the runtime keeps to the limit itself"
    )
}

fn describe(engine: PagingEngine) -> &'static str {
    match engine {
        PagingEngine::Move => "chunks are moved (userfaultfd) and go to disk encrypted (io_uring)",
        PagingEngine::Copy => "as move, with a copy in memory, for older kernels",
        PagingEngine::File => "a mapped file; written to disk as it is",
        PagingEngine::Hint => "advice to the system about its swap; written to disk as it is",
        PagingEngine::None => "no paging",
    }
}

fn table(answer: &Answer) -> String {
    let width = answer.capabilities.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in &answer.capabilities {
        let works = if row.works { "yes" } else { "no " };
        lines.push(format!("{:width$}  {works}  {}", row.name, row.what));
        lines.extend(row.why_not.iter().map(|why| format!("{:width$}       {why}", "")));
    }
    let engine = answer.engine.as_deref().unwrap_or("none");
    lines.push(format!("\n--engine auto is {engine}: {}", answer.reason));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_comes_with_a_remedy() {
        assert!(NO_SWAP.contains("swapon FILE"));
        let text = with_remedy("no memory group can be made (/sys/fs/cgroup: read-only)".into());
        assert!(text.starts_with("no memory group") && text.contains("systemd-run --user --scope"), "{text}");
    }

    #[test]
    fn a_table_has_reasons() {
        let row = |name: &str, why: Option<&str>| Capability {
            name: name.into(),
            works: why.is_none(),
            what: "what".into(),
            why_not: why.map(str::to_owned),
        };
        let answer = Answer {
            capabilities: vec![row("engine move", Some("forbidden")), row("limit", None)],
            engine: None,
            reason: "nothing works".into(),
        };
        let expected = "engine move  no   what\n                  forbidden\nlimit        yes  what\n\n\
                        --engine auto is none: nothing works";
        assert_eq!(table(&answer), expected);
    }
}
