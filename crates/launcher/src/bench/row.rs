//! Lines of the result.

use super::args::{BenchEngine, ModeName};
use super::figures::{DiskBound, PartyFigures, PassFigures, medians};
use super::workload::BenchWorkload;
use ::page::numbers::{binary, count, duration};
use serde::Serialize;
use terminal::values::NamedValue as _;

/// A workload under an engine.
#[derive(Clone, Debug, Serialize)]
pub struct BenchRow {
    /// Which workload.
    pub workload: BenchWorkload,
    /// Its size, in what the program counts.
    pub size: u64,
    /// Processes that computed it.
    pub parties: usize,
    /// How it was paged.
    pub engine: BenchEngine,
    /// How the plan was come by; none for runs without one.
    pub mode: Option<ModeName>,
    /// Bytes of memory that the largest party was allowed; none when unbounded.
    pub memory_bytes: Option<u64>,
    /// Runs that the figures are medians of.
    pub repeat: usize,
    /// What was measured.
    #[serde(flatten)]
    pub figures: PassFigures,
    /// `seconds` over those of the unbounded run.
    pub ratio_to_unbounded: f64,
    /// Seconds that moving the bytes takes at least; 0 when unbounded.
    pub bound_s: f64,
    /// The same over the seconds of the unbounded run.
    pub bound_ratio: f64,
    /// Bytes per second of the disk, measured just before; none when unbounded.
    pub bandwidth_bytes_per_s: Option<f64>,
    /// Whether every party found its result to be right, in every run.
    pub correct: bool,
    /// What the runtime warned of.
    pub warnings: Vec<String>,
}

impl BenchRow {
    /// What the runtime warned of, a line each.
    pub fn told(&self) -> impl Iterator<Item = String> {
        let title = format!("{}, {}", self.workload.word(), self.engine.word());
        self.warnings.iter().map(move |warning| format!("{title}: {warning}"))
    }

    /// What tables show of the figures: time, over the unbounded run's, bound; faults; voluntary and
    /// involuntary switches; user, system, blocked, plan; read and written.
    pub fn cells(&self) -> [String; 13] {
        let f = &self.figures;
        let [seconds, user, system, blocked, plan] =
            [f.seconds, f.user_s, f.system_s, f.blocked_s, f.plan_s].map(duration);
        let [major, minor] = [f.major_faults, f.minor_faults].map(count);
        let [voluntary, involuntary] = [f.voluntary_switches, f.involuntary_switches].map(count);
        let [ratio, bound] = [self.ratio_to_unbounded, self.bound_ratio].map(|times| format!("{times:.2}"));
        let [read, written] = [f.bytes_read, f.bytes_written].map(binary);
        [
            seconds,
            ratio,
            bound,
            major,
            minor,
            voluntary,
            involuntary,
            user,
            system,
            blocked,
            plan,
            read,
            written,
        ]
    }
}

/// An engine that could not be measured, and why.
#[derive(Clone, Debug, Serialize)]
pub struct SkippedRun {
    /// Which workload.
    pub workload: BenchWorkload,
    /// Which engine.
    pub engine: BenchEngine,
    /// Why.
    pub skipped: String,
    /// Whether the machine is the reason, which does not permit it, and not what was asked for.
    #[serde(skip)]
    pub denied: bool,
}

impl SkippedRun {
    /// What was skipped.
    pub fn title(&self) -> String {
        format!("{}, {}", self.workload.word(), self.engine.word())
    }
}

/// Repeated runs of an engine.
#[derive(Debug, Default)]
pub struct RepeatedRuns {
    figures: Vec<PassFigures>,
    wrong: bool,
    warnings: Vec<String>,
    size: u64,
    parties: usize,
}

impl RepeatedRuns {
    /// Adds one.
    pub fn add(&mut self, parties: &[PartyFigures], figures: PassFigures) {
        self.wrong |= parties.iter().any(|party| !party.correct);
        self.size = parties.first().map_or(0, |party| party.size);
        self.parties = parties.len();
        let reports = || parties.iter().map(|party| &party.report);
        for warning in
            reports().flat_map(|report| report.run.warnings.iter().chain(&report.launcher_warnings))
        {
            if !self.warnings.contains(warning) {
                self.warnings.push(warning.clone());
            }
        }
        self.figures.push(figures);
    }

    /// Whether no run had bytes moved.
    pub fn moved_nothing(&self) -> bool {
        self.figures.iter().all(|figures| figures.bytes_read + figures.bytes_written == 0)
    }

    /// Adds a warning.
    pub fn warn(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }

    /// The line of the unbounded run.
    pub fn unbounded(self, workload: BenchWorkload) -> BenchRow {
        BenchRow {
            workload,
            size: self.size,
            parties: self.parties,
            engine: BenchEngine::Unbounded,
            mode: None,
            memory_bytes: None,
            repeat: self.figures.len(),
            figures: medians(&self.figures),
            ratio_to_unbounded: 1.0,
            bound_s: 0.0,
            bound_ratio: 0.0,
            bandwidth_bytes_per_s: None,
            correct: !self.wrong,
            warnings: self.warnings,
        }
    }

    /// The line of an engine, beside the unbounded run's.
    pub fn paged(
        self,
        unbounded: &BenchRow,
        engine: BenchEngine,
        mode: Option<ModeName>,
        memory_bytes: u64,
        bound: DiskBound,
    ) -> BenchRow {
        let row = self.unbounded(unbounded.workload);
        let bound_s = bound.seconds();
        BenchRow {
            engine,
            mode,
            memory_bytes: Some(memory_bytes),
            ratio_to_unbounded: row.figures.seconds / unbounded.figures.seconds,
            bound_s,
            bound_ratio: bound_s / unbounded.figures.seconds,
            bandwidth_bytes_per_s: Some(bound.bytes_per_s),
            ..row
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::figures::of_run;
    use super::super::figures::tests::party;
    use super::*;

    /// Made-up lines: the unbounded run, and an engine that takes `times` as long.
    pub fn rows(workload: BenchWorkload, engines: &[(BenchEngine, u64)]) -> Vec<BenchRow> {
        let runs = |scale: u64| {
            let parties = [party(scale), party(scale)];
            let mut runs = RepeatedRuns::default();
            runs.add(&parties, of_run(&parties).expect("marks"));
            runs
        };
        let unbounded = runs(10).unbounded(workload);
        let bound = DiskBound { bytes: 30_000, bytes_per_s: 1500.0 };
        let paged = engines.iter().map(|&(engine, times)| {
            runs(10 * times).paged(&unbounded, engine, Some(ModeName::Programmed), 256 << 20, bound)
        });
        std::iter::once(unbounded.clone()).chain(paged.collect::<Vec<_>>()).collect()
    }

    /// The keys are listed here again, and once more in `tests/bench`: a key that is renamed in the code must
    /// break tests, since other programs rely on it.
    #[test]
    fn lines_hold_the_whole_contract() {
        let rows = rows(BenchWorkload::NRmatmul, &[(BenchEngine::Move, 2)]);
        for row in &rows {
            let json = serde_json::to_value(row).expect("JSON");
            for key in [
                "seconds",
                "ratio_to_unbounded",
                "bound_ratio",
                "major_faults",
                "minor_faults",
                "voluntary_switches",
                "user_s",
                "system_s",
                "blocked_s",
                "plan_s",
                "bytes_read",
                "bytes_written",
                "reliefs",
            ] {
                assert!(json[key].is_number(), "{key}: {}", json[key]);
            }
            assert_eq!((&json["correct"], &json["workload"]), (&true.into(), &"n_rmatmul".into()));
        }
        let [unbounded, paged] = &rows[..] else { panic!("two lines") };
        assert!((unbounded.ratio_to_unbounded - 1.0).abs() < 1e-9 && unbounded.memory_bytes.is_none());
        assert!((paged.ratio_to_unbounded - 2.0).abs() < 1e-9);
        // 20 s at least, beside 40 s unbounded.
        assert!((paged.bound_ratio - 0.5).abs() < 1e-9);
    }

    #[test]
    fn one_wrong_run_makes_the_line_wrong() {
        let mut runs = RepeatedRuns::default();
        for correct in [true, false, true] {
            let parties = [PartyFigures { correct, ..party(1) }];
            runs.add(&parties, of_run(&parties).expect("marks"));
        }
        let row = runs.unbounded(BenchWorkload::Merge);
        assert!(!row.correct && row.repeat == 3);
    }
}
