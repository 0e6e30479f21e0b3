//! What a run took in all of its meetings and processes: what was there before it went on, what failed, and
//! the memory of its processes.

use super::label;
use crate::{ProcessPeak, RunReport, StageBefore, StageReport, WorkersInfo};
use page::numbers::{bytes, duration};

/// What was there from an earlier process of this run, where it went on.
pub fn resumed(report: &RunReport) -> Option<String> {
    let of_match = report.workers.as_ref().map(|workers| (workers.match_done_before, workers.match_units));
    if let (false, Some((before @ 1.., of))) = (report.disclosed.resumed, of_match) {
        return Some(format!(
            "This run went on with one that broke off in its match, of which {before} of {of} units were \
             done before."
        ));
    }
    if !report.disclosed.resumed {
        return None;
    }
    let units = report.workers.as_ref().map(|workers| (workers.computed_before, workers.units));
    let computed = units.filter(|(before, _)| *before > 0);
    let computed = computed.map(|(before, of)| format!("; {before} of {of} units were computed before"));
    Some(format!(
        "This run went on with one that broke off: its rows were read and matched before{}.",
        computed.unwrap_or_default()
    ))
}

/// Attempts that failed, by cause; nothing where none did.
pub fn failed_units(workers: &WorkersInfo) -> Option<String> {
    let in_all = workers.failed_in_all();
    if in_all == 0 {
        return None;
    }
    let mut causes: Vec<(&str, u64)> = Vec::new();
    let before = workers.failed_before_by.iter().map(|of| (&*of.cause, of.count));
    for (cause, more) in before.chain(workers.failed.iter().map(|failed| (&*failed.cause, 1))) {
        match causes.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, count)) => *count += more,
            None => causes.push((cause, more)),
        }
    }
    let all: Vec<String> = causes.into_iter().map(|(cause, count)| format!("{count}: {cause}")).collect();
    let before = match workers.failed_before {
        0 => String::new(),
        before => format!("; {before} of them before this run went on"),
    };
    let attempts = if in_all == 1 { "1 attempt".to_owned() } else { format!("{in_all} attempts") };
    Some(format!("{attempts} of units failed ({}){before}", all.join("; ")))
}

/// What a stage took before the run went on, if anything.
pub fn before(stage: &StageReport) -> Option<String> {
    let StageBefore { seconds, bytes_sent } = stage.before.as_ref()?;
    let sent = bytes_sent.iter().fold(0, |sum: u64, &sent| sum.saturating_add(sent));
    Some(format!("{}, {}", duration(*seconds), bytes(sent)))
}

/// What all stages took before the run went on, if anything.
pub fn all_before(report: &RunReport) -> Option<String> {
    let of_stages = report.stages.iter().filter_map(|stage| stage.before.as_ref());
    let (mut all, mut any) = (StageBefore { seconds: 0.0, bytes_sent: vec![0] }, false);
    for StageBefore { seconds, bytes_sent } in of_stages {
        any = true;
        all.seconds += seconds;
        all.bytes_sent[0] = bytes_sent.iter().fold(all.bytes_sent[0], |sum, &sent| sum.saturating_add(sent));
    }
    any.then(|| format!("{}, {}", duration(all.seconds), bytes(all.bytes_sent[0])))
}

/// The largest memory of each process, with those of one sort together: `112 MB (coordinator); 17.0 MB at
/// most of 3 workers of the match`. Of a run without workers that are processes, that of this process.
pub fn peaks(report: &RunReport) -> String {
    let memory = report.workers.as_ref().map_or(&[][..], |workers| &workers.memory);
    if memory.is_empty() {
        return bytes(report.peak_memory_bytes);
    }
    let mut sorts: Vec<(&ProcessPeak, u64, usize)> = Vec::new();
    for peak in memory {
        let same = |of: &&mut (&ProcessPeak, u64, usize)| {
            (&of.0.process, &of.0.stage, of.0.before) == (&peak.process, &peak.stage, peak.before)
        };
        match sorts.iter_mut().find(same) {
            Some((_, most, count)) => (*most, *count) = ((*most).max(peak.peak_memory_bytes), *count + 1),
            None => sorts.push((peak, peak.peak_memory_bytes, 1)),
        }
    }
    let one = |(peak, most, count): &(&ProcessPeak, u64, usize)| {
        let (process, stage) = (label(&peak.process), label(&peak.stage));
        match (&*peak.process, peak.before) {
            ("coordinator", false) => format!("{} (coordinator)", bytes(*most)),
            ("coordinator", true) => format!("{} (coordinator before this run went on)", bytes(*most)),
            (_, true) => format!("{} ({process}s of {stage} before this run went on)", bytes(*most)),
            (_, false) if *count == 1 => format!("{} ({process} of {stage})", bytes(*most)),
            _ => format!("{} at most ({count} {process}s of {stage})", bytes(*most)),
        }
    };
    sorts.iter().map(one).collect::<Vec<_>>().join("; ")
}
