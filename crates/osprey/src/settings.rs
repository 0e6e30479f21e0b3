//! What the launcher tells the runtime: environment variables, one place for their names, units and ranges.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

/// What a process is run for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PassMode {
    /// Not under the launcher: the region is ordinary memory, nothing is traced or paged.
    #[default]
    Off,
    /// The speculative pass: region aliased to few pages, stubs, trace written.
    Speculate,
    /// The programmed pass: paging by a trace file made before.
    Programmed,
    /// The programmed pass while the speculative process streams its trace through a ring.
    Concurrent,
    /// Paging without a trace, by what the program faults on.
    Reactive,
}

/// How chunks get in and out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PagingEngine {
    /// userfaultfd MISSING and UFFDIO_MOVE, io_uring on an unlinked file, encrypted.
    Move,
    /// As `Move` for kernels without UFFDIO_MOVE: write-protect and UFFDIO_COPY.
    Copy,
    /// A shared mapping of an unlinked file, populated and written back by plan. Not encrypted.
    File,
    /// `madvise` on anonymous memory and the system's swap: the method of the paper. Not encrypted.
    Hint,
    /// No paging of ours.
    #[default]
    None,
}

/// All settings of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessSettings {
    /// What it is run for.
    pub mode: PassMode,
    /// How chunks get in and out.
    pub engine: PagingEngine,
    /// Bytes of memory the whole process may use; 0 when unbounded.
    pub memory: u64,
    /// Bytes per chunk: a power of two, [`CHUNK_MIN`] ..= [`CHUNK_MAX`].
    pub chunk: usize,
    /// Chunks that one block of a trace covers: see [`crate::trace`]. 2 ..= [`MICROSET_MAX`].
    pub microset: usize,
    /// Bytes of address space of the region; a multiple of `chunk`.
    pub region: u64,
    /// Trace file: written when speculating, read when programmed.
    pub trace: Option<PathBuf>,
    /// Descriptor of the shared ring that a trace is streamed through ([`PassMode::Concurrent`] and its
    /// speculation).
    pub ring: Option<i32>,
    /// Entries of the trace that a plan looks ahead; 0: [`crate::plan::window`], so that a plan's memory is
    /// bounded.
    pub lookahead: u64,
    /// Directory for the unlinked file that chunks are written to.
    pub spill: PathBuf,
    /// Hash of binary and arguments, by the launcher: a trace with another is refused.
    pub key: u128,
    /// Where [`crate::Stats`] go as JSON when the process ends.
    pub report: Option<PathBuf>,
    /// Descriptor that becomes readable (an eventfd) when a thread waits for memory of the process's group.
    pub pressure: Option<i32>,
}

/// Smallest chunk.
pub const CHUNK_MIN: usize = 4 << 10;
/// Largest chunk.
pub const CHUNK_MAX: usize = 4 << 20;
/// The chunk for labels and shares.
pub const CHUNK: usize = 64 << 10;
/// Most chunks per block of a trace.
pub const MICROSET_MAX: usize = 1024;
/// Address space reserved unless told otherwise.
pub const REGION: u64 = 64 << 30;
/// Most address space of a region: 16 TiB.
pub const REGION_MAX: u64 = 16 << 40;
/// Chunks of a region at most: their numbers are 32 bits wide.
pub const CHUNKS_MAX: u64 = 1 << 32;

impl Default for ProcessSettings {
    fn default() -> Self {
        Self {
            mode: PassMode::Off,
            engine: PagingEngine::None,
            memory: 0,
            chunk: CHUNK,
            microset: microset(CHUNK),
            region: REGION,
            trace: None,
            ring: None,
            lookahead: 0,
            spill: PathBuf::from("/var/tmp"),
            key: 0,
            report: None,
            pressure: None,
        }
    }
}

/// Has the child that `command` starts get an environment as of [`ProcessSettings::to_env`].
pub fn apply<N: AsRef<OsStr>>(
    env: impl IntoIterator<Item = (N, Option<OsString>)>,
    command: &mut Command,
) -> &mut Command {
    for (name, value) in env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

/// Chunks per block of a trace where nobody says otherwise: small chunks go by 32, large ones by 8, so that
/// the two blocks a plan must keep resident are 4 to 32 MiB.
#[must_use]
pub fn microset(chunk: usize) -> usize {
    if chunk > 512 << 10 { 8 } else { 32 }
}

/// Number of a descriptor with a single token: the other variables are for the process that takes it, and for
/// whoever reads them where this one is not set. What a program starts inherits its environment, and would
/// write over its trace and report; a script that wraps a program does not use the runtime and leaves the
/// token to it.
pub const CLAIM: &str = "OSPREY_CLAIM";

/// Name of [`ProcessSettings::pressure`], which the launcher's guard sets: it has the group.
pub const PRESSURE: &str = "OSPREY_PRESSURE";

const NAMES: [&str; 13] = [
    "OSPREY_MODE",
    "OSPREY_ENGINE",
    "OSPREY_MEMORY",
    "OSPREY_CHUNK",
    "OSPREY_MICROSET",
    "OSPREY_REGION",
    "OSPREY_TRACE",
    "OSPREY_RING",
    "OSPREY_LOOKAHEAD",
    "OSPREY_SPILL",
    "OSPREY_KEY",
    "OSPREY_REPORT",
    PRESSURE,
];

impl ProcessSettings {
    /// The settings of this process.
    ///
    /// # Errors
    /// A variable that is not of its form or range, by name, with what is allowed.
    pub fn from_env() -> Result<Self, String> {
        Self::read(std::env::var_os)
    }

    /// The settings that `get` gives for the names of the environment.
    ///
    /// # Errors
    /// As [`ProcessSettings::from_env`].
    pub fn read(get: impl Fn(&'static str) -> Option<OsString>) -> Result<Self, String> {
        let text = |name: &'static str| -> Result<Option<String>, String> {
            get(name).map(|v| v.into_string().map_err(|_| format!("{name} is not text"))).transpose()
        };
        let number = |name: &'static str, default: u64| -> Result<u64, String> {
            let parse = |v: String| v.parse().map_err(|_| format!("{name} = {v}: expected a whole number"));
            text(name)?.map_or(Ok(default), parse)
        };
        let descriptor = |name: &'static str| -> Result<Option<i32>, String> {
            let parse = |v: String| v.parse().map_err(|_| format!("{name} = {v}: expected a descriptor"));
            text(name)?.map(parse).transpose()
        };
        let base = Self::default();
        let mut settings = Self {
            mode: text("OSPREY_MODE")?.map_or(Ok(base.mode), |v| v.parse())?,
            engine: text("OSPREY_ENGINE")?.map_or(Ok(base.engine), |v| v.parse())?,
            memory: number("OSPREY_MEMORY", 0)?,
            chunk: number("OSPREY_CHUNK", CHUNK as u64)? as usize,
            microset: 0,
            region: number("OSPREY_REGION", REGION)?,
            trace: get("OSPREY_TRACE").map(PathBuf::from),
            ring: descriptor("OSPREY_RING")?,
            lookahead: number("OSPREY_LOOKAHEAD", 0)?,
            spill: get("OSPREY_SPILL").map_or(base.spill, PathBuf::from),
            key: text("OSPREY_KEY")?.map_or(Ok(0), |v| {
                u128::from_str_radix(&v, 16)
                    .map_err(|_| format!("OSPREY_KEY = {v}: expected 32 hexadecimal digits"))
            })?,
            report: get("OSPREY_REPORT").map(PathBuf::from),
            pressure: descriptor(PRESSURE)?,
        };
        settings.microset = number("OSPREY_MICROSET", microset(settings.chunk) as u64)? as usize;
        settings.check()?;
        Ok(settings)
    }

    /// The environment that makes a child have these settings: set what has a value, remove what has none.
    #[must_use]
    pub fn to_env(&self) -> Vec<(&'static str, Option<OsString>)> {
        let values = [
            (self.mode != PassMode::Off).then(|| self.mode.to_string().into()),
            Some(self.engine.to_string().into()),
            Some(self.memory.to_string().into()),
            Some(self.chunk.to_string().into()),
            Some(self.microset.to_string().into()),
            Some(self.region.to_string().into()),
            self.trace.clone().map(PathBuf::into_os_string),
            self.ring.map(|fd| fd.to_string().into()),
            Some(self.lookahead.to_string().into()),
            Some(self.spill.clone().into_os_string()),
            Some(format!("{:032x}", self.key).into()),
            self.report.clone().map(PathBuf::into_os_string),
            self.pressure.map(|fd| fd.to_string().into()),
        ];
        NAMES.into_iter().zip(values).chain([(CLAIM, None)]).collect()
    }

    /// Gives these settings to the child that `command` starts.
    pub fn apply_to<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        apply(self.to_env(), command)
    }

    /// Chunks of the region.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.region / self.chunk as u64
    }

    fn check(&self) -> Result<(), String> {
        if !self.chunk.is_power_of_two() || !(CHUNK_MIN..=CHUNK_MAX).contains(&self.chunk) {
            return Err(format!(
                "OSPREY_CHUNK = {}: expected a power of two from 4096 to 4194304 bytes",
                self.chunk
            ));
        }
        if !(2..=MICROSET_MAX).contains(&self.microset) {
            return Err(format!("OSPREY_MICROSET = {}: expected 2 to {MICROSET_MAX} chunks", self.microset));
        }
        let whole = self.region > 0 && self.region.is_multiple_of(self.chunk as u64);
        if !whole || self.region > REGION_MAX || self.chunks() > CHUNKS_MAX {
            return Err(format!(
                "OSPREY_REGION = {}: expected a multiple of the chunk ({}) up to {REGION_MAX} bytes and 2^32 \
                 chunks",
                self.region, self.chunk
            ));
        }
        if self.mode != PassMode::Off
            && self.mode != PassMode::Reactive
            && self.trace.is_none()
            && self.ring.is_none()
        {
            return Err(format!("OSPREY_MODE = {} needs OSPREY_TRACE or OSPREY_RING", self.mode));
        }
        Ok(())
    }
}

macro_rules! names {
    ($type:ty, $what:literal, $($variant:ident = $name:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $name),+ })
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok(Self::$variant),)+
                    _ => Err(format!(concat!("{} is no ", $what, "; there are: \
                        {}"), text, [$($name),+].join(", "))),
                }
            }
        }
    };
}

names!(
    PassMode,
    "mode",
    Off = "off",
    Speculate = "speculate",
    Programmed = "programmed",
    Concurrent = "concurrent",
    Reactive = "reactive"
);
names!(
    PagingEngine,
    "paging engine",
    Move = "move",
    Copy = "copy",
    File = "file",
    Hint = "hint",
    None = "none"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &str)]) -> Result<ProcessSettings, String> {
        ProcessSettings::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v)))
    }

    #[test]
    fn settings_survive_the_environment() {
        let settings = ProcessSettings {
            mode: PassMode::Concurrent,
            engine: PagingEngine::Move,
            memory: 256 << 20,
            chunk: 2 << 20,
            microset: 16,
            region: 1 << 40,
            trace: Some("a b.trace".into()),
            ring: Some(7),
            lookahead: 1000,
            spill: "/spill".into(),
            key: 1 << 100 | 5,
            report: Some("r.json".into()),
            pressure: Some(9),
        };
        let env = settings.to_env();
        let again =
            ProcessSettings::read(|name| env.iter().find(|(n, _)| *n == name).and_then(|(_, v)| v.clone()));
        assert_eq!(again, Ok(settings));
        assert_eq!(read(&[]), Ok(ProcessSettings::default()));
    }

    #[test]
    fn a_wrong_variable_is_named_with_what_is_allowed() {
        for (pairs, expected) in [
            (&[("OSPREY_MODE", "fast")][..], "fast is no mode; there are: off, speculate"),
            (&[("OSPREY_ENGINE", "warp")], "warp is no paging engine; there are: move, copy"),
            (&[("OSPREY_CHUNK", "5000")], "OSPREY_CHUNK = 5000: expected a power of two"),
            (&[("OSPREY_MEMORY", "much")], "OSPREY_MEMORY = much: expected a whole number"),
            (&[("OSPREY_MICROSET", "1")], "OSPREY_MICROSET = 1"),
            (&[("OSPREY_REGION", "65537")], "OSPREY_REGION = 65537: expected a multiple"),
            (&[("OSPREY_PRESSURE", "high")], "OSPREY_PRESSURE = high: expected a descriptor"),
            (&[("OSPREY_KEY", "xyz")], "OSPREY_KEY = xyz"),
            (&[("OSPREY_MODE", "programmed")], "programmed needs OSPREY_TRACE or OSPREY_RING"),
        ] {
            let error = read(pairs).expect_err("refused");
            assert!(error.contains(expected), "{error}");
        }
    }
}
