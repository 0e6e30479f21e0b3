//! The result as a table for people.

use super::row::{BenchRow, SkippedRun};
use terminal::values::NamedValue as _;

const HEAD: [&str; 15] = [
    "workload", "engine", "time", "ratio", "bound", "major", "minor", "switches", "user", "system",
    "blocked", "plan", "read", "written", "",
];

/// A line for every row, then what was skipped and what the runtime warned of.
pub fn text(rows: &[BenchRow], skipped: &[SkippedRun]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 15] = std::array::from_fn(width);
    let mut text: Vec<String> = lines.iter().map(|line| aligned(line, &widths)).collect();
    text.extend(rows.iter().flat_map(BenchRow::told));
    for one in skipped {
        text.push(format!("{}: skipped: {}", one.title(), one.skipped));
    }
    text.join("\n")
}

/// Words to the left, numbers to the right.
fn aligned(line: &[String; 15], widths: &[usize; 15]) -> String {
    let cell = |(column, (text, width)): (usize, (&String, &usize))| {
        if column < 2 { format!("{text:<width$}") } else { format!("{text:>width$}") }
    };
    let cells: Vec<String> = line.iter().zip(widths).enumerate().map(cell).collect();
    cells.join("  ").trim_end().to_owned()
}

fn cells(row: &BenchRow) -> [String; 15] {
    let [time, ratio, bound, major, minor, switches, _, user, system, blocked, plan, read, written] =
        row.cells();
    let result = if row.correct { "correct" } else { "WRONG" }.to_owned();
    let (workload, engine) = (row.workload.word(), row.engine.word());
    let [ratio, bound] = [ratio, bound].map(|times| times + "x");
    [
        workload, engine, time, ratio, bound, major, minor, switches, user, system, blocked, plan, read,
        written, result,
    ]
}

#[cfg(test)]
mod tests {
    use super::super::args::BenchEngine;
    use super::super::row::tests::rows;
    use super::super::workload::BenchWorkload;
    use super::*;

    #[test]
    fn columns_are_aligned_and_nothing_is_left_out() {
        let mut rows = rows(BenchWorkload::Binfclayer, &[(BenchEngine::Move, 1), (BenchEngine::Swap, 300)]);
        rows[2].correct = false;
        rows[1].warnings.push("the trace did not fit".into());
        let skipped = [SkippedRun {
            workload: BenchWorkload::Merge,
            engine: BenchEngine::Hint,
            skipped: "not permitted".into(),
            denied: true,
        }];
        let text = text(&rows, &skipped);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "{text}");
        let at = lines[0].find(" ratio").expect("a column") + " ratio".len();
        let ends: Vec<&str> = lines[1..4].iter().map(|line| &line[at - 1..at]).collect();
        assert_eq!(ends, ["x", "x", "x"], "{text}");
        assert!(lines[1].ends_with("correct") && lines[3].ends_with("WRONG"), "{text}");
        assert!(text.contains("binfclayer, move: the trace did not fit"), "{text}");
        assert!(text.contains("merge, hint: skipped: not permitted"), "{text}");
    }
}
