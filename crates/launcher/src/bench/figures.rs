//! Figures of a run: what its reports say between the program's marks `start` and `stop`, over all parties.

use crate::report::OspreyReport;
use ::page::numbers::median;
use base::Error;
use osprey::{Mark, Stats};
use serde::Serialize;
use std::ops::Range;

/// What one party reports.
#[derive(Clone, Debug, Default)]
pub struct PartyFigures {
    /// That of its `osprey run`.
    pub report: OspreyReport,
    /// Whether the program found its result to be right.
    pub correct: bool,
    /// Size as the program states it.
    pub size: u64,
}

/// What was measured, the clock starting after all inputs are read. `docs/osprey/bench.md` has the
/// definitions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PassFigures {
    /// Wall seconds of the slower party.
    pub seconds: f64,
    /// Major faults of all parties.
    pub major_faults: u64,
    /// Minor faults of all parties.
    pub minor_faults: u64,
    /// Voluntary context switches of all threads of all parties.
    pub voluntary_switches: u64,
    /// Those of the compute threads.
    pub thread_voluntary_switches: u64,
    /// Involuntary context switches of all threads of all parties.
    pub involuntary_switches: u64,
    /// CPU seconds in user mode, of all threads of all parties.
    pub user_s: f64,
    /// CPU seconds in the kernel, likewise.
    pub system_s: f64,
    /// Seconds in which the compute thread did not compute: mean over parties.
    pub blocked_s: f64,
    /// Seconds of planning, of all parties, in the whole run.
    pub plan_s: f64,
    /// CPU seconds of the pagers' threads, of all parties, in the whole run.
    pub pager_cpu_s: f64,
    /// Bytes read by paging.
    pub bytes_read: u64,
    /// Bytes written by paging.
    pub bytes_written: u64,
    /// Touches that waited because a chunk was late.
    pub stalls: u64,
    /// Times that a pager gave frames up because a thread waited for memory, in the whole run.
    pub reliefs: u64,
    /// Wall seconds of the slower process from its start to its end, inputs and check included.
    pub total_s: f64,
    /// Most bytes resident at once, of the larger party.
    pub peak_bytes: u64,
    /// Wall seconds of the slower speculative pass between the marks; 0 where it ran beside the programmed
    /// pass or none was needed.
    pub speculation_s: f64,
    /// Most bytes resident in the larger speculative pass.
    pub speculation_peak_bytes: u64,
    /// Bytes of all traces.
    pub trace_bytes: u64,
}

/// Between `start` and `stop`.
struct Span<'a> {
    start: &'a Mark,
    stop: &'a Mark,
}

impl Span<'_> {
    fn seconds(&self) -> f64 {
        self.stop.at_s - self.start.at_s
    }

    fn of(&self, value: impl Fn(&Mark) -> f64) -> f64 {
        (value(self.stop) - value(self.start)).max(0.0)
    }

    fn count(&self, value: impl Fn(&Mark) -> u64) -> u64 {
        value(self.stop).saturating_sub(value(self.start))
    }
}

fn span(stats: &Stats) -> Result<Span<'_>, Error> {
    let mark = |name: &str| {
        let found = stats.marks.iter().find(|mark| mark.name == name);
        found.ok_or_else(|| {
            let text = format!(
                "the program set no mark `{name}`; a workload marks where its clock starts and stops"
            );
            Error::input(text)
        })
    };
    Ok(Span { start: mark("start")?, stop: mark("stop")? })
}

/// Bytes of a trace that came from a pass beside the program.
fn streamed(party: &PartyFigures) -> Option<u64> {
    Some(party.report.speculation.as_ref()?.stats.as_ref()?.trace_bytes)
}

/// The figures of a run, without those of a speculative pass before it.
///
/// # Errors
/// When a report lacks a mark.
pub fn of_run(parties: &[PartyFigures]) -> Result<PassFigures, Error> {
    let spans = parties.iter().map(|party| span(&party.report.run)).collect::<Result<Vec<_>, _>>()?;
    let count = |value: fn(&Mark) -> u64| spans.iter().map(|span| span.count(value)).sum();
    let cpu = |value: fn(&Mark) -> f64| spans.iter().map(|span| span.of(value)).sum();
    let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let blocked: f64 = spans.iter().map(|span| (span.seconds() - span.of(|m| m.thread_s)).max(0.0)).sum();
    Ok(PassFigures {
        seconds: largest(&mut spans.iter().map(Span::seconds)),
        major_faults: count(|m| m.major_faults),
        minor_faults: count(|m| m.minor_faults),
        voluntary_switches: count(|m| m.voluntary_switches),
        thread_voluntary_switches: count(|m| m.thread_voluntary_switches),
        involuntary_switches: count(|m| m.involuntary_switches),
        user_s: cpu(|m| m.user_s),
        system_s: cpu(|m| m.system_s),
        blocked_s: blocked / parties.len().max(1) as f64,
        plan_s: parties.iter().map(|party| party.report.run.plan_s).sum(),
        pager_cpu_s: parties.iter().map(|party| party.report.run.pager_cpu_s).sum(),
        bytes_read: count(|m| m.bytes_read),
        bytes_written: count(|m| m.bytes_written),
        stalls: count(|m| m.stalls),
        reliefs: parties.iter().map(|party| party.report.run.reliefs).sum(),
        total_s: largest(&mut parties.iter().map(|party| party.report.total_s)),
        speculation_peak_bytes: speculation_peak(parties),
        trace_bytes: parties.iter().filter_map(streamed).sum(),
        peak_bytes: parties.iter().filter_map(|party| party.report.peak_bytes).max().unwrap_or(0),
        ..PassFigures::default()
    })
}

/// Most bytes that a speculative pass of these parties had resident, be it a run of its own or beside the
/// program.
pub fn speculation_peak(parties: &[PartyFigures]) -> u64 {
    let peak = |party: &PartyFigures| party.report.speculation.as_ref()?.peak_bytes;
    parties.iter().filter_map(peak).max().unwrap_or(0)
}

/// A speculative pass that was a run of its own.
#[derive(Clone, Debug, Default)]
pub struct SpeculationRun {
    /// For each party, what its program counted between the marks.
    pub events: Vec<Range<u64>>,
    /// Bytes per chunk of the largest.
    pub chunk: usize,
    seconds: f64,
    peak_bytes: u64,
    trace_bytes: u64,
}

impl SpeculationRun {
    /// From its reports.
    ///
    /// # Errors
    /// When a report lacks a mark.
    pub fn of(parties: &[PartyFigures]) -> Result<Self, Error> {
        let runs = || parties.iter().map(|party| &party.report.run);
        let events = |run| span(run).map(|span| span.start.events..span.stop.events);
        Ok(Self {
            events: runs().map(events).collect::<Result<_, _>>()?,
            chunk: runs().map(|run| run.chunk as usize).max().unwrap_or(0),
            seconds: of_run(parties)?.seconds,
            peak_bytes: speculation_peak(parties),
            trace_bytes: runs().map(|run| run.trace_bytes).sum(),
        })
    }

    /// Adds it to the figures of the programmed pass; `in_sequence` counts its seconds, too.
    pub fn join(&self, figures: &mut PassFigures, in_sequence: bool) {
        figures.speculation_s = self.seconds;
        figures.speculation_peak_bytes = self.peak_bytes;
        figures.trace_bytes = self.trace_bytes;
        if in_sequence {
            figures.seconds += self.seconds;
        }
    }
}

macro_rules! medians {
    ($runs:expr; $($field:ident),+ ; $($count:ident),+) => {
        PassFigures {
            $($field: median($runs.iter().map(|run| run.$field)),)+
            $($count: median($runs.iter().map(|run| run.$count as f64)).round() as u64,)+
        }
    };
}

/// Figure by figure, the median over repeated runs.
pub fn medians(runs: &[PassFigures]) -> PassFigures {
    medians!(runs;
        seconds, user_s, system_s, blocked_s, plan_s, pager_cpu_s, total_s, speculation_s;
        major_faults, minor_faults, voluntary_switches, thread_voluntary_switches, involuntary_switches,
        bytes_read,
        bytes_written, stalls, reliefs, peak_bytes, speculation_peak_bytes, trace_bytes)
}

/// The least that paging takes: bytes that must move at the bandwidth of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskBound {
    /// Bytes that a plan by MIN moves.
    pub bytes: u64,
    /// Bytes per second of the disk.
    pub bytes_per_s: f64,
}

impl DiskBound {
    /// Seconds.
    pub fn seconds(&self) -> f64 {
        if self.bytes_per_s > 0.0 { self.bytes as f64 / self.bytes_per_s } else { 0.0 }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report whose marks are `scale` apart in everything.
    pub fn party(scale: u64) -> PartyFigures {
        let mark = |name: &str, times: u64| Mark {
            name: name.into(),
            at_s: 100.0 + (times * scale * 4) as f64,
            user_s: (times * scale * 2) as f64,
            system_s: (times * scale) as f64,
            thread_s: (times * scale * 3) as f64,
            major_faults: 7 + times * scale,
            minor_faults: 7 + 10 * times * scale,
            voluntary_switches: 100 * times * scale,
            thread_voluntary_switches: 50 * times * scale,
            involuntary_switches: 3 * times * scale,
            stalls: 2 * times * scale,
            bytes_read: 1000 * times * scale,
            bytes_written: 500 * times * scale,
            ..Mark::default()
        };
        let marks = vec![mark("start", 0), mark("between", 9), mark("stop", 1)];
        let stats = Stats { marks, plan_s: 0.25, reliefs: 3, trace_bytes: 10, ..Stats::default() };
        let speculation =
            crate::report::SpeculationReport { peak_bytes: Some(scale << 10), ..Default::default() };
        let report = OspreyReport {
            run: stats,
            peak_bytes: Some(scale << 20),
            total_s: 5.0 * scale as f64,
            speculation: Some(speculation),
            ..OspreyReport::default()
        };
        PartyFigures { report, correct: true, size: 64 }
    }

    #[test]
    fn time_is_the_slower_partys_and_counts_are_sums() {
        let figures = of_run(&[party(1), party(2)]).expect("marks");
        let expected = PassFigures {
            seconds: 8.0,
            major_faults: 3,
            minor_faults: 30,
            voluntary_switches: 300,
            thread_voluntary_switches: 150,
            involuntary_switches: 9,
            user_s: 6.0,
            system_s: 3.0,
            blocked_s: 1.5,
            plan_s: 0.5,
            bytes_read: 3000,
            bytes_written: 1500,
            stalls: 6,
            reliefs: 6,
            total_s: 10.0,
            peak_bytes: 2 << 20,
            speculation_peak_bytes: 2 << 10,
            ..PassFigures::default()
        };
        assert_eq!(figures, expected);
    }

    #[test]
    fn a_speculative_pass_counts_where_it_is_waited_for() {
        let speculation = SpeculationRun::of(&[party(1), party(1)]).expect("marks");
        let mut programmed = of_run(&[party(2)]).expect("marks");
        let mut sequence = programmed.clone();
        speculation.join(&mut programmed, false);
        speculation.join(&mut sequence, true);
        assert_eq!((programmed.seconds, programmed.speculation_s, programmed.trace_bytes), (8.0, 4.0, 20));
        assert_eq!((sequence.seconds, sequence.speculation_s), (12.0, 4.0));
    }

    #[test]
    fn a_missing_mark_is_named() {
        let mut one = party(1);
        one.report.run.marks.pop();
        let error = of_run(&[one]).expect_err("no stop").to_string();
        assert!(error.contains("no mark `stop`"), "{error}");
    }

    #[test]
    fn medians_are_figure_by_figure() {
        let runs = [1, 5, 2].map(|scale| of_run(&[party(scale)]).expect("marks"));
        let middle = medians(&runs);
        assert_eq!((middle.seconds, middle.major_faults, middle.bytes_read), (8.0, 2, 2000));
    }

    #[test]
    fn a_bound_is_bytes_over_bandwidth() {
        assert!((DiskBound { bytes: 3000, bytes_per_s: 1500.0 }.seconds() - 2.0).abs() < 1e-9);
        assert!(DiskBound::default().seconds().abs() < 1e-9);
    }
}
