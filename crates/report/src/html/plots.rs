//! The three figures of the page.

use super::tables::sent_by;
use crate::wording::{MeanScale, cell_name, label, quantity_title};
use crate::{CellView, LiftView, RunReport};
use page::markup::{Markup, element, minus, text, words};
use page::numbers::{bytes, duration};
use page::svg::{self, AXIS_HEIGHT, Axis};

/// Height of a row: its words above, its mark below.
const ROW: u32 = 48;
/// Where the words of a row end and its marks begin.
const MARKS: u32 = 23;
/// Percent of the width that the words of a row may take.
const WORDS: u32 = 48;

/// Where marks stand, row by row: the grid is drawn here, not behind the words.
fn strips(rows: usize) -> Vec<(u32, u32)> {
    (0..rows as u32).map(|row| (row * ROW + MARKS, (row + 1) * ROW)).collect()
}

fn legend(entries: &[(&str, String)]) -> Markup {
    let entry = |(class, name): &(&str, String)| {
        element("span", &[("class", "key")], [words("span", &format!("swatch {class}"), ""), text(name)])
    };
    element("p", &[("class", "legend")], entries.iter().map(entry))
}

fn framed(caption: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    let caption = words("figcaption", "", caption);
    element("figure", &[], parts.into_iter().chain([caption]))
}

/// The difference with both intervals, for every cell.
pub fn forest(view: &LiftView, scale: &MeanScale) -> Markup {
    let estimates = view.cells.iter().filter_map(|cell| cell.estimate.as_ref());
    let axis = Axis::around(estimates.flat_map(|e| e.interval).map(|value| scale.value(value)));
    let bottom = ROW * view.cells.len() as u32;
    let mut parts =
        axis.draw(&strips(view.cells.len()), bottom, &format!("difference, {}", quantity_title(view, scale)));
    for (cell, top) in view.cells.iter().zip((0..).step_by(ROW as usize)) {
        parts.push(forest_row(cell, scale, &axis, top));
    }
    let title = "Difference between the arms, with intervals";
    let description = "One row per group: the difference, its full interval and the part of it from privacy \
                       noise. The table below holds the same numbers.";
    let level = page::numbers::percent(view.confidence);
    framed(
        &format!("{} minus {}. The line at 0 means no difference.", label(&view.test), label(&view.control)),
        [
            svg::figure("forest", title, description, bottom + AXIS_HEIGHT, parts),
            legend(&[
                ("full", format!("{level} interval: chance and noise")),
                ("noise", "of which privacy noise alone".to_owned()),
            ]),
        ],
    )
}

fn forest_row(cell: &CellView, scale: &MeanScale, axis: &Axis, top: u32) -> Markup {
    let (words_y, mark_y) = (top + 17, top + 32);
    let mut parts = vec![svg::cut_label(words_y, WORDS, "name", &cell_name(cell))];
    let Some(estimate) = &cell.estimate else {
        parts.push(svg::label("100%", words_y, "value", "refused"));
        return element("g", &[], parts);
    };
    let shown = format!("{} {}", scale.show(estimate.lift), scale.interval(estimate.interval));
    parts.push(svg::label("100%", words_y, "value", &minus(&shown)));
    let place = |value: f64| scale.value(value);
    if axis.shows(place(estimate.lift)) {
        let x = |value: f64| axis.x(place(value));
        let ends = estimate.interval.map(x);
        parts.push(svg::horizontal(&ends[0], &ends[1], mark_y, "full"));
        parts.extend(ends.iter().map(|end| svg::vertical(end, mark_y - 5, mark_y + 5, "full")));
        let noise = estimate.noise_interval.map(x);
        parts.push(svg::horizontal(&noise[0], &noise[1], mark_y, "noise"));
        parts.push(svg::dot(&x(estimate.lift), mark_y, "estimate"));
    }
    element("g", &[], parts)
}

/// The mean of each arm with its interval; nothing where the mode does not release them.
pub fn rates(view: &LiftView, scale: &MeanScale) -> Option<Markup> {
    let cells: Vec<_> =
        view.cells.iter().filter_map(|cell| Some((cell, cell.estimate.as_ref()?.rates?))).collect();
    if cells.is_empty() {
        return None;
    }
    let ends = cells.iter().flat_map(|(_, rates)| rates).map(|rate| scale.value(rate.mean + rate.half_width));
    let axis = Axis::around(ends);
    let arms = [(&view.test, "test"), (&view.control, "control")];
    let mut rows = Vec::new();
    let mut top = 0;
    for (cell, rates) in &cells {
        for ((arm, class), rate) in arms.iter().zip(rates) {
            let name = match cell.family.as_str() {
                "overall" => label(arm),
                _ => format!("{}, {}", cell_name(cell), label(arm)),
            };
            let half = scale.show(rate.half_width);
            let mut parts = vec![
                svg::cut_label(top + 17, WORDS + 10, "name", &name),
                svg::label("100%", top + 17, "value", &minus(&format!("{} ± {half}", scale.show(rate.mean)))),
            ];
            let mean = scale.value(rate.mean);
            if axis.shows(mean) {
                parts.push(svg::axis_bar(&axis, 0.0, mean, top + 25, class));
                let end = |sign: f64| scale.value((rate.mean + sign * rate.half_width).max(0.0));
                let ends = [axis.x(end(-1.0)), axis.x(end(1.0))];
                parts.push(svg::horizontal(&ends[0], &ends[1], top + 32, "whisker"));
                parts.extend(ends.iter().map(|end| svg::vertical(end, top + 28, top + 36, "whisker")));
            }
            rows.push(element("g", &[], parts));
            top += ROW;
        }
    }
    let mut parts = axis.draw(&strips(rows.len()), top, &quantity_title(view, scale));
    parts.extend(rows);
    let description =
        "One bar per group and arm: the mean, and its interval. The table above holds the same numbers.";
    let caption = "Mean clamped outcome of each arm, with its own interval.";
    Some(framed(caption, [svg::figure("rates", "Rates per arm", description, top + AXIS_HEIGHT, parts)]))
}

/// Seconds and bytes of every stage.
pub fn stages(report: &RunReport) -> Vec<Markup> {
    let finite = |seconds: f64| if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    let names: Vec<&str> = report.stages.iter().map(|stage| stage.name.as_str()).collect();
    let time = report.stages.iter().map(|stage| (vec![finite(stage.seconds)], duration(stage.seconds)));
    let sent = report.stages.iter().map(|stage| {
        let total = stage.bytes_sent.iter().fold(0u64, |sum, &sent| sum.saturating_add(sent));
        (stage.bytes_sent.iter().map(|&sent| sent as f64).collect(), bytes(total))
    });
    let parties = report.participants().into_iter().zip(PARTY_CLASSES.into_iter().cycle());
    let keys: Vec<_> = parties.map(|(party, class)| (class, sent_by(report, party))).collect();
    vec![
        framed(
            "Time at this party, by stage.",
            [stacked("time", "Where time went", &names, &["time"], time.collect())],
        ),
        framed(
            "Application bytes sent, by stage and party.",
            [stacked("bytes", "Where bytes went", &names, &PARTY_CLASSES, sent.collect()), legend(&keys)],
        ),
    ]
}

/// Colours of the parties, in the order of the roster.
const PARTY_CLASSES: [&str; 2] = ["test", "control"];

fn stacked(
    id: &str,
    title: &str,
    names: &[&str],
    classes: &[&'static str],
    rows: Vec<(Vec<f64>, String)>,
) -> Markup {
    let largest = rows.iter().map(|(parts, _)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let mut parts = Vec::new();
    for ((name, (values, shown)), top) in names.iter().zip(&rows).zip((0..).step_by(42)) {
        parts.push(svg::cut_label(top + 15, WORDS, "name", &label(name)));
        parts.push(svg::label("100%", top + 15, "value", shown));
        parts.push(svg::bar(0.0, 100.0, top + 22, 12, "track"));
        let mut from = 0.0;
        for (value, class) in values.iter().zip(classes.iter().cycle()) {
            let to = if largest > 0.0 { from + 100.0 * value / largest } else { from };
            parts.push(svg::bar(from, to, top + 22, 12, class));
            from = to;
        }
    }
    svg::figure(
        id,
        title,
        "One bar per stage. The cost table holds the same numbers.",
        42 * rows.len() as u32,
        parts,
    )
}
