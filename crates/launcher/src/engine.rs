//! Which paging engine, and why.

use crate::args::{OspreyRun, RunEngine};
use crate::attempt;
use osprey::PagingEngine;
use std::path::Path;

/// Engines that encrypt what they write, best first.
pub const ENCRYPTED: [PagingEngine; 2] = [PagingEngine::Move, PagingEngine::Copy];
/// Engines that write memory to disk as it is, best first.
pub const PLAINTEXT: [PagingEngine; 2] = [PagingEngine::File, PagingEngine::Hint];

/// How the program is paged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenPaging {
    /// By whom.
    pub by: By,
    /// Why, in words.
    pub reason: String,
    /// What is wrong with it, in words.
    pub warning: Option<String>,
}

/// Who pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Nobody, and there is no limit.
    Nobody,
    /// The system, under a limit that may swap.
    System,
    /// The runtime.
    Runtime(PagingEngine),
}

/// Chooses by what was asked for and what the machine allows.
pub fn choose(args: &OspreyRun) -> ChosenPaging {
    let by = match args.engine {
        RunEngine::Unbounded => By::Nobody,
        RunEngine::Swap => By::System,
        RunEngine::Auto if args.speculative_only => By::Runtime(PagingEngine::None),
        named => match named.named() {
            Some(engine) => By::Runtime(engine),
            None => return best(args),
        },
    };
    ChosenPaging { by, reason: "asked for".into(), warning: plaintext(by) }
}

/// What writes memory to disk as it is says so.
fn plaintext(by: By) -> Option<String> {
    let swaps = matches!(by, By::System | By::Runtime(PagingEngine::Hint));
    if swaps && !has_swap() {
        return Some(
            "this machine has no swap (swapon FILE): the program can only use what the limit allows".into(),
        );
    }
    (swaps || by == By::Runtime(PagingEngine::File))
        .then(|| "this engine writes the program's memory to disk as it is, not encrypted".into())
}

/// Whether a swap file or partition is on. The list has a line above them.
pub fn has_swap() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

/// The engine that is best here, with the reason. Those that come first encrypt what they write.
///
/// # Errors
/// In words: why none works.
pub fn automatic(spill: &Path, allow_plaintext: bool) -> Result<(PagingEngine, String), String> {
    let mut others = Vec::new();
    for engine in ENCRYPTED.into_iter().chain(PLAINTEXT.into_iter().filter(|_| allow_plaintext)) {
        match attempt::engine(engine, spill) {
            Ok(()) if others.is_empty() => return Ok((engine, "the fastest one, and it works here".into())),
            Ok(()) => return Ok((engine, reasons(&others))),
            Err(why) => {
                others.push((engine.to_string(), why.replace(&format!("engine {engine}"), "this engine")));
            }
        }
    }
    let mut why = reasons(&others);
    if !allow_plaintext {
        why += "; --allow-plaintext lets others be chosen, which write memory to disk as it is";
    }
    Err(why)
}

/// Engines that do not work, those with the same reason together.
fn reasons(engines: &[(String, String)]) -> String {
    let mut told: Vec<(Vec<&str>, &str)> = Vec::new();
    for (engine, why) in engines {
        match told.iter_mut().find(|(_, known)| known == why) {
            Some((names, _)) => names.push(engine),
            None => told.push((vec![engine], why)),
        }
    }
    let line = |(names, why): &(Vec<&str>, &str)| {
        let verb = if names.len() == 1 { "does" } else { "do" };
        format!("{} {verb} not work: {why}", names.join(" and "))
    };
    told.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Nothing can be paged: the program gets its limit and no more.
fn best(args: &OspreyRun) -> ChosenPaging {
    match automatic(&args.spill, args.allow_plaintext) {
        Ok((engine, reason)) => {
            let by = By::Runtime(engine);
            ChosenPaging { by, reason, warning: plaintext(by) }
        }
        Err(why) => ChosenPaging {
            by: By::Runtime(PagingEngine::None),
            warning: Some(format!(
                "no paging engine works: {why}; the program runs unpaged{}",
                if args.allow_plaintext && has_swap() {
                    ", and the system may swap: it writes the program's memory to disk as it is, not \
                     encrypted"
                } else {
                    ""
                }
            )),
            reason: why,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn a_reason_that_engines_share_is_said_once() {
        let told = |engines: &[(&str, &str)]| {
            let engines: Vec<_> = engines.iter().map(|(name, why)| ((*name).into(), (*why).into())).collect();
            reasons(&engines)
        };
        assert_eq!(told(&[("move", "no"), ("copy", "no")]), "move and copy do not work: no");
        let each = "move and hint do not work: no; copy does not work: old";
        assert_eq!(told(&[("move", "no"), ("copy", "old"), ("hint", "no")]), each);
    }
}
