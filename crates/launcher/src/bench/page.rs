//! `--out`: the result as one page that loads nothing and runs nothing, and its pictures as files of their
//! own.

use super::args::BenchEngine;
use super::picture::{BarScale, Panel, StackedBar, draw};
use super::row::{BenchRow, SkippedRun};
use ::page::markup::{Markup, element, style_sheet, words};
use ::page::numbers::{binary, count};
use base::Error;
use std::path::Path;
use terminal::values::NamedValue as _;

/// The page.
pub const FILE: &str = "report.html";
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const MIB: f64 = (1 << 20) as f64;

/// A picture: the name of its file, its heading, what it shows.
struct Figure {
    file: &'static str,
    title: &'static str,
    caption: &'static str,
    panels: Vec<Panel>,
}

/// Writes the page and the pictures into a folder, which is made where there is none.
///
/// # Errors
/// When a file cannot be written.
pub fn write(dir: &Path, rows: &[BenchRow], skipped: &[SkippedRun]) -> Result<(), Error> {
    let put = |name: &str, content: &str| {
        let path = dir.join(name);
        std::fs::write(&path, content).map_err(|e| Error::io(format!("cannot write {}", path.display()), &e))
    };
    std::fs::create_dir_all(dir).map_err(|e| Error::io(format!("cannot create {}", dir.display()), &e))?;
    let figures = figures(rows);
    for figure in &figures {
        put(figure.file, &draw(figure.title, &figure.panels).into_string())?;
    }
    put(FILE, &page(&figures, rows, skipped))?;
    eprintln!("pictures: {}", dir.join(FILE).display());
    Ok(())
}

/// One value of every row, in groups by workload.
fn grouped(rows: &[BenchRow], parts: fn(&BenchRow) -> Vec<f64>) -> Vec<(String, Vec<StackedBar>)> {
    let mut groups: Vec<(String, Vec<StackedBar>)> = Vec::new();
    for row in rows {
        let name = row.workload.word();
        if groups.last().is_none_or(|(last, _)| *last != name) {
            groups.push((name, Vec::new()));
        }
        let bar = StackedBar { engine: row.engine, parts: parts(row) };
        groups.last_mut().expect("a group was just pushed").1.push(bar);
    }
    groups
}

/// Counts span decades; of sums and of times that are read side by side, half as high is half as much.
fn panel(title: &str, scale: BarScale, rows: &[BenchRow], parts: fn(&BenchRow) -> Vec<f64>) -> Panel {
    Panel { title: title.to_owned(), scale, groups: grouped(rows, parts) }
}

/// User, system and blocked time over the time of the unbounded run.
fn breakdown(row: &BenchRow) -> Vec<f64> {
    let figures = &row.figures;
    let unbounded = figures.seconds / row.ratio_to_unbounded;
    let blocked = figures.blocked_s.min(figures.seconds);
    let (computing, cpu) = (figures.seconds - blocked, figures.user_s + figures.system_s);
    let user = if cpu > 0.0 { computing * figures.user_s / cpu } else { computing };
    [user, computing - user, blocked].map(|seconds| seconds / unbounded).to_vec()
}

fn figures(rows: &[BenchRow]) -> [Figure; 6] {
    use BarScale::{Linear, Log};
    const TIMES: &str = "Time, unbounded = 1";
    [
        Figure {
            file: "faults.svg",
            title: "Page faults",
            caption: "All parties together, between the marks of the program (the paper's figure 6.1). Both \
                      axes are logarithmic; a bar without height is 0.",
            panels: vec![
                panel("Major faults", Log, rows, |row| vec![row.figures.major_faults as f64]),
                panel("Minor faults", Log, rows, |row| vec![row.figures.minor_faults as f64]),
            ],
        },
        Figure {
            file: "switches.svg",
            title: "Context switches",
            caption: "All threads of all parties (the paper's figure 6.2). Both axes are logarithmic. \
                      Waiting for the other party is in them, and so it is in the unbounded run.",
            panels: vec![
                panel("Voluntary switches", Log, rows, |row| vec![row.figures.voluntary_switches as f64]),
                panel("Involuntary switches", Log, rows, |row| vec![row.figures.involuntary_switches as f64]),
            ],
        },
        Figure {
            file: "time.svg",
            title: "Time",
            caption: "Wall seconds over those of the unbounded run (the paper's figure 6.3).",
            panels: vec![panel(TIMES, Linear, rows, |row| vec![row.ratio_to_unbounded])],
        },
        Figure {
            file: "breakdown.svg",
            title: "Where time goes",
            caption: "The time of the compute thread over the wall seconds of the unbounded run (the paper's \
                      figure 6.4): blocked, and computing, which is divided into user and system as the CPU \
                      of all threads is. Threads beside it, such as the pager's (pager_cpu_s), add nothing \
                      to a bar.",
            panels: vec![panel(TIMES, Linear, rows, breakdown)],
        },
        Figure {
            file: "bytes.svg",
            title: "Bytes moved",
            caption: "What paging read and wrote, all parties together. For hint and swap: pages that the \
                      system swapped during the whole run.",
            panels: vec![
                panel("Read, MiB", Linear, rows, |row| vec![row.figures.bytes_read as f64 / MIB]),
                panel("Written, MiB", Linear, rows, |row| vec![row.figures.bytes_written as f64 / MIB]),
            ],
        },
        Figure {
            file: "planning.svg",
            title: "Planning",
            caption: "Time of planning, all parties together, and wall time of the slower speculative pass, \
                      which makes the trace that is planned by. 0 where nothing is planned; of a speculative \
                      pass also where it ran beside the program.",
            panels: vec![
                panel("Planning, milliseconds", Linear, rows, |row| vec![row.figures.plan_s * 1e3]),
                panel("Speculative pass, milliseconds", Linear, rows, |row| {
                    vec![row.figures.speculation_s * 1e3]
                }),
            ],
        },
    ]
}

fn page(figures: &[Figure], rows: &[BenchRow], skipped: &[SkippedRun]) -> String {
    let title = "Osprey: workloads in a part of their memory";
    let head = element(
        "head",
        &[],
        [
            element("meta", &[("charset", "utf-8")], []),
            element("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)], []),
            element("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")], []),
            words("title", "", title),
            style_sheet(include_str!("page.css")),
        ],
    );
    let mut parts = vec![words("h1", "", title), words("p", "", lead(rows))];
    if !skipped.is_empty() {
        let titles: Vec<String> = skipped.iter().map(SkippedRun::title).collect();
        parts.push(words(
            "p",
            "",
            format!("Not in the pictures, for the reasons below: {}.", titles.join("; ")),
        ));
    }
    for figure in figures {
        parts.push(words("h2", "", figure.title));
        let drawn = [draw(figure.title, &figure.panels), words("figcaption", "", figure.caption)];
        parts.push(element("figure", &[], drawn));
    }
    parts.push(words("h2", "", "All figures"));
    parts.push(element("div", &[("class", "wide")], [table(rows)]));
    let told = told(rows, skipped);
    if !told.is_empty() {
        parts.push(words("h2", "", "Warnings, and what was skipped"));
        parts.extend(told.iter().map(|told| words("p", "", told)));
    }
    let body = element("body", &[], parts);
    let page = element("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], [head, body]);
    format!("<!DOCTYPE html>\n{}\n", page.into_string())
}

/// What runs warned of, and why others were skipped.
fn told(rows: &[BenchRow], skipped: &[SkippedRun]) -> Vec<String> {
    let reasons = skipped.iter().map(|one| format!("{}: {}", one.title(), one.skipped));
    rows.iter().flat_map(BenchRow::told).chain(reasons).collect()
}

fn lead(rows: &[BenchRow]) -> String {
    let wrong = rows.iter().filter(|row| !row.correct).count();
    let planned = rows.iter().filter(|row| row.engine == BenchEngine::Move);
    let worst = planned.map(|row| row.ratio_to_unbounded).fold(f64::NAN, f64::max);
    let mut lead = if worst.is_nan() {
        String::new()
    } else {
        format!("With the engine move, the slowest workload took {worst:.2} times its unbounded time. ")
    };
    lead.push_str(match wrong {
        0 => "All results are correct.",
        _ => "Some results are wrong: see the table.",
    });
    lead
}

const HEAD: [&str; 19] = [
    "workload",
    "size",
    "engine",
    "mode",
    "memory",
    "time",
    "ratio",
    "bound",
    "major",
    "minor",
    "voluntary",
    "involuntary",
    "user",
    "system",
    "blocked",
    "plan",
    "read",
    "written",
    "result",
];

fn table(rows: &[BenchRow]) -> Markup {
    let cells = HEAD.iter().enumerate().map(|(at, name)| words("th", class(at), name));
    let head = element("thead", &[], [element("tr", &[], cells)]);
    element("table", &[], [head, element("tbody", &[], rows.iter().map(table_row))])
}

fn class(column: usize) -> &'static str {
    if matches!(column, 0 | 2 | 3) { "word" } else { "" }
}

fn table_row(row: &BenchRow) -> Markup {
    let none = || "\u{2013}".to_owned();
    let setting = [
        row.workload.word(),
        count(row.size),
        row.engine.word(),
        row.mode.map_or_else(none, |mode| mode.word()),
        row.memory_bytes.map_or_else(none, binary),
    ];
    let cells: Vec<String> = setting.into_iter().chain(row.cells()).collect();
    let cells = cells.iter().enumerate().map(|(at, cell)| words("td", class(at), cell));
    let result = if row.correct { words("td", "", "correct") } else { words("td", "bad", "WRONG") };
    element("tr", &[], cells.chain([result]))
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::rows;
    use super::super::workload::BenchWorkload;
    use super::*;
    use clap::ValueEnum;

    fn made_up() -> Vec<BenchRow> {
        let engines = [(BenchEngine::Move, 1), (BenchEngine::Hint, 2), (BenchEngine::Swap, 7)];
        BenchWorkload::value_variants().iter().flat_map(|workload| rows(*workload, &engines)).collect()
    }

    #[test]
    fn page_and_pictures_are_complete() {
        let dir = tempfile::tempdir().expect("a folder");
        let skipped = SkippedRun {
            workload: BenchWorkload::Merge,
            engine: BenchEngine::File,
            skipped: "<no> & why".into(),
            denied: true,
        };
        write(&dir.path().join("new"), &made_up(), &[skipped]).expect("written");
        let pictures = figures(&made_up()).map(|figure| figure.file);
        for file in std::iter::once(FILE).chain(pictures) {
            let content = std::fs::read_to_string(dir.path().join("new").join(file)).expect(file);
            assert!(!content.contains("<script") && !content.contains("src="), "{file}");
            assert!(content.contains("t_rmatmul"), "{file}");
        }
        let page = std::fs::read_to_string(dir.path().join("new").join(FILE)).expect("the page");
        assert!(page.contains("&lt;no&gt; &amp; why") && page.contains("All results are correct"));
        assert_eq!(page.matches("<svg").count(), 6);
        assert_eq!(page.matches("<tr>").count(), 41);
    }

    #[test]
    fn a_wrong_result_is_said_first() {
        let mut rows = made_up();
        rows[3].correct = false;
        let page = page(&figures(&rows), &rows, &[]);
        assert!(page.contains("Some results are wrong") && page.contains("WRONG"));
    }
}
