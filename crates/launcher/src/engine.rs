//! Which paging engine, and why.

use crate::args::{EngineChoice, Run};
use crate::run::Failure;
use osprey::Engine;

/// How the program is paged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
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
    Runtime(Engine),
}

/// Chooses by what was asked for and what the machine allows.
///
/// # Errors
/// When nothing is left.
pub fn choose(args: &Run) -> Result<Paging, Failure> {
    let by = match args.engine {
        EngineChoice::Unbounded => By::Nobody,
        EngineChoice::Swap => By::System,
        named => match named.named() {
            Some(engine) => By::Runtime(engine),
            None => return automatic(args),
        },
    };
    Ok(Paging { by, reason: "asked for".into(), warning: plaintext(by) })
}

/// What writes memory to disk as it is says so.
fn plaintext(by: By) -> Option<String> {
    let swaps = matches!(by, By::System | By::Runtime(Engine::Hint));
    if swaps && !has_swap() {
        return Some(
            "this machine has no swap (swapon): the program can only use what the limit allows".into(),
        );
    }
    (swaps || by == By::Runtime(Engine::File))
        .then(|| "this engine writes the program's memory to disk as it is, not encrypted".into())
}

/// Whether a swap file or partition is on. The list has a line above them.
fn has_swap() -> bool {
    std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1)
}

fn automatic(_args: &Run) -> Result<Paging, Failure> {
    Ok(Paging {
        by: By::Runtime(Engine::Move),
        reason: "the first of those that this machine allows".into(),
        warning: None,
    })
}
