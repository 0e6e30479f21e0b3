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
    let asked = |by| Ok(Paging { by, reason: "asked for".into() });
    match args.engine {
        EngineChoice::Unbounded => asked(By::Nobody),
        EngineChoice::Swap => asked(By::System),
        EngineChoice::Auto => automatic(args),
        named => asked(By::Runtime(named.named().unwrap_or(Engine::None))),
    }
}

fn automatic(_args: &Run) -> Result<Paging, Failure> {
    Ok(Paging { by: By::Runtime(Engine::Move), reason: "the first of those that this machine allows".into() })
}
