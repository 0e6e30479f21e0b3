//! What a run used: as a line for people and as one JSON object.

use osprey::Stats;
use page::numbers::{binary, count, duration};
use serde::{Deserialize, Serialize};

/// The report of `osprey run`: what the runtime counted in the last pass, and what the launcher knows
/// besides.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OspreyReport {
    /// The runtime's counters of the program's own pass (of the speculative one with `--speculative-only`);
    /// all zero when the program does not use the runtime.
    #[serde(flatten)]
    pub run: Stats,
    /// The exit code, or 128 + signal.
    pub exit_code: u8,
    /// Whether the program uses the runtime.
    pub uses_runtime: bool,
    /// Whether the system ended it because it reached its limit.
    #[serde(default)]
    pub out_of_memory: bool,
    /// What was asked for: how accesses come to be known.
    pub asked_mode: String,
    /// Why this engine.
    pub engine_reason: String,
    /// Why chunks are as large as they are.
    #[serde(default)]
    pub chunk_reason: String,
    /// Bytes of memory that the program was given; 0 for no limit.
    pub memory: u64,
    /// What it needs without a limit, by the trace: bytes of the region and beside it.
    pub needed: Option<u64>,
    /// Who enforces the limit.
    pub limit: String,
    /// Most bytes it used, where that is known.
    pub peak_bytes: Option<u64>,
    /// Wall seconds of the program's own pass.
    pub run_s: f64,
    /// Wall seconds of all, from start to end.
    pub total_s: f64,
    /// The speculative pass, if there was one.
    pub speculation: Option<SpeculationReport>,
    /// Warnings of the launcher; those of the runtime are in `warnings`.
    pub launcher_warnings: Vec<String>,
}

/// A speculative pass.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SpeculationReport {
    /// Wall seconds; of both, where the chunk had to be made smaller.
    pub seconds: f64,
    /// Most bytes of memory.
    pub peak_bytes: Option<u64>,
    /// The runtime's counters.
    pub stats: Option<Stats>,
}

/// How many times over all that the region holds is read before the summary says what that comes of.
const SWEPT: u64 = 8;
/// How often a trace comes back to every chunk before the summary says the same of addresses that jump.
const SCATTERED: u64 = 64;

impl OspreyReport {
    /// What to change in a program whose accesses cost far more than their data; nothing of others.
    pub fn advice(&self) -> Option<String> {
        let held = self.run.peak_chunks * self.run.chunk;
        match self.run.bytes_read.checked_div(held) {
            Some(times) if times >= SWEPT => Some(format!(
                "it read {times} times the {} that its region holds: it goes over all of that again and \
                 again. Let its loops finish a part that fits into memory before they begin the next one, or \
                 give it more memory (docs/osprey/patterns.md)",
                binary(held)
            )),
            _ => self.scattered(),
        }
    }

    /// What is said of a trace that comes back to its chunks all the time, as addresses do that jump about.
    fn scattered(&self) -> Option<String> {
        let passes = [self.speculation.as_ref().and_then(|pass| pass.stats.as_ref()), Some(&self.run)];
        let of = passes.into_iter().flatten().find(|stats| stats.trace_entries > 0)?;
        let times = of.trace_entries.checked_div(of.peak_chunks).filter(|times| *times >= SCATTERED)?;
        Some(format!(
            "its trace comes back {} times to each of the {} chunks of {} that its region holds: its \
             addresses jump about, and each jump costs the speculative pass a fault, and a run with less \
             memory may read a chunk for it. Put together what is used together; smaller chunks (--chunk \
             64K) read less that is not used (docs/osprey/patterns.md)",
            count(times),
            count(of.peak_chunks),
            binary(of.chunk)
        ))
    }

    /// The summary.
    pub fn summary(&self) -> String {
        let memory = match (self.memory, self.needed) {
            (0, Some(needed)) => format!("needs {}", binary(needed)),
            (0, None) => "no limit".to_owned(),
            (memory, Some(needed)) if needed > 0 => {
                let percent = 100.0 * memory as f64 / needed as f64;
                format!("{} of {} ({percent:.0} %)", binary(memory), binary(needed))
            }
            (memory, _) => binary(memory),
        };
        let mut parts = vec![memory];
        if !self.limit.is_empty() {
            parts.push(self.limit.clone());
        }
        if let Some(peak) = self.peak_bytes {
            parts.push(format!("peak {}", binary(peak)));
        }
        let mut text = parts.join(", ");
        let mut times = Vec::new();
        if let Some(speculation) = &self.speculation {
            times.push(format!("speculation {}", duration(speculation.seconds)));
        }
        if self.run_s > 0.0 {
            times.push(format!("run {}", duration(self.run_s)));
        }
        text += &format!("; {}", times.join(", "));
        if self.run.trace_bytes > 0 && self.run_s == 0.0 {
            let (bytes, chunk) = (binary(self.run.trace_bytes), binary(self.run.chunk));
            text += &format!("; {} touches of chunks of {chunk}, a trace of {bytes}", self.run.trace_entries);
        }
        if self.uses_runtime && self.run_s > 0.0 && self.run.engine != "none" {
            text += &format!(
                "; {} read, {} written, {} stalls; {}, engine {}, chunks of {}",
                binary(self.run.bytes_read),
                binary(self.run.bytes_written),
                self.run.stalls,
                self.run.mode,
                self.run.engine,
                binary(self.run.chunk)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_reads_all_of_it_many_times_is_told() {
        let of = |sweeps: u64| {
            let run = Stats {
                peak_chunks: 256,
                chunk: 2 << 20,
                bytes_read: sweeps * (512 << 20) + 5,
                ..Stats::default()
            };
            OspreyReport { run, ..OspreyReport::default() }.advice()
        };
        assert_eq!(of(SWEPT - 1), None);
        let advice = of(109).expect("it sweeps");
        assert!(advice.starts_with("it read 109 times the 512 MiB that its region holds"), "{advice}");
    }

    /// Whoever sweeps a few times does not jump about.
    #[test]
    fn whoever_jumps_about_is_told_by_the_speculative_pass() {
        let of = |touches: u64| {
            let stats =
                Stats { peak_chunks: 512, chunk: 2 << 20, trace_entries: touches * 512, ..Stats::default() };
            let speculation = SpeculationReport { stats: Some(stats), ..SpeculationReport::default() };
            OspreyReport { speculation: Some(speculation), ..OspreyReport::default() }.advice()
        };
        assert_eq!(of(SCATTERED - 1), None);
        let advice = of(2_500).expect("it jumps");
        assert!(
            advice.starts_with("its trace comes back 2,500 times to each of the 512 chunks of 2 MiB"),
            "{advice}"
        );
    }

    #[test]
    fn a_summary_says_memory_times_and_bytes() {
        let run = Stats {
            mode: "programmed".into(),
            engine: "move".into(),
            chunk: 2 << 20,
            bytes_read: 3 << 20,
            stalls: 5,
            ..Stats::default()
        };
        let report = OspreyReport {
            run,
            uses_runtime: true,
            memory: 256 << 20,
            needed: Some(1 << 30),
            limit: "memory cgroup".into(),
            run_s: 12.0,
            speculation: Some(SpeculationReport { seconds: 1.5, ..SpeculationReport::default() }),
            ..OspreyReport::default()
        };
        let expected = "256 MiB of 1 GiB (25 %), memory cgroup; speculation 1.5 s, run 12.0 s; 3 MiB read, 0 \
                        B written, 5 stalls; programmed, engine move, chunks of 2 MiB";
        assert_eq!(report.summary(), expected);
        assert_eq!(report.advice(), None, "all that it held is not known");
        let json = serde_json::to_value(&report).expect("JSON");
        let again: Stats = serde_json::from_value(json).expect("the runtime's counters are at the top");
        assert_eq!(again, report.run);
    }
}
