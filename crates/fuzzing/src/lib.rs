//! Every decoder as a function of bytes.
//!
//! A [`Target`] is such a function with inputs to begin with. `fuzz/` (a workspace of its own: it needs a C++
//! compiler) runs them under libFuzzer, `make fuzz`; `tests/replay.rs` runs the kept corpora and the seeds
//! through the same functions, with Rust alone. A target must not panic, overflow, hang or take memory beyond
//! its input's worth; some also assert that what was read is written back the same. `docs/fuzzing.md` has the
//! list and what was run.
//!
//! Functions are deterministic: no clock, no network, seeds fixed. Files lie in memory ([`disk`]).

pub mod corpus;
pub mod disk;
mod files;
mod jobs;
mod talk;
mod talks;
mod texts;
mod words;

/// A decoder under test.
pub struct Target {
    /// Its name: of its corpus and on the command line.
    pub name: &'static str,
    /// Feeds it.
    pub run: fn(&[u8]),
    /// Inputs to begin with: what the decoder takes.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Executions at least before a release.
    pub least: u64,
    /// Checks that the target is what it says, such as that an honest run succeeds.
    pub check: fn() -> Result<(), String>,
}

impl Target {
    const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Self {
        Self { name, run, seeds, least: 100_000, check: || Ok(()) }
    }

    const fn least(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    const fn check(mut self, check: fn() -> Result<(), String>) -> Self {
        self.check = check;
        self
    }
}

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [texts::TARGETS, files::TARGETS, words::TARGETS, jobs::TARGETS, talks::TARGETS].into_iter().flatten()
}

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
}

/// The input as text, where it is text.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}
