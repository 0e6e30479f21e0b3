//! The figures of a lift study and of cost.

use super::tables::sent_by;
use crate::wording::{LABEL_CHARS, MeanScale, cell_names, label, quantity_title, told_apart};
use crate::{CellView, LiftView, RunReport};
use page::markup::{Markup, element, minus, text, words};
use page::numbers::{bytes, duration};
use page::svg::{self, AXIS_HEIGHT, Axis};

/// Height of a row: its words above, its mark below.
pub const ROW: u32 = 48;
/// Where the words of a row end and its marks begin.
pub const MARKS: u32 = 23;
/// Percent of the width that the words of a row may take.
pub const WORDS: u32 = 48;

/// How far the mark of noise reaches above and below its line: past the dot.
pub const NOISE_REACH: u32 = 8;

/// Where marks stand, row by row: the grid is drawn here, not behind the words.
fn strips(rows: usize) -> Vec<(u32, u32)> {
    (0..rows as u32).map(|row| (row * ROW + MARKS, (row + 1) * ROW)).collect()
}

pub fn legend(entries: &[(&str, String)]) -> Markup {
    let entry = |(class, name): &(&str, String)| {
        element("span", &[("class", "key")], [words("span", &format!("swatch {class}"), ""), text(name)])
    };
    element("p", &[("class", "legend")], entries.iter().map(entry))
}

fn framed(caption: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    let caption = words("figcaption", "", caption);
    element("figure", &[], parts.into_iter().chain([caption]))
}

/// The difference with both intervals, for every cell. `ids` tells figures of one page apart.
pub fn forest(view: &LiftView, scale: &MeanScale, ids: &str) -> Markup {
    let estimates = view.cells.iter().filter_map(|cell| cell.estimate.as_ref());
    let axis = Axis::around(estimates.flat_map(|e| e.interval).map(|value| scale.value(value)));
    let bottom = ROW * view.cells.len() as u32;
    let mut parts =
        axis.draw(&strips(view.cells.len()), bottom, &format!("difference, {}", quantity_title(view, scale)));
    let names = cell_names(view);
    for ((cell, name), top) in view.cells.iter().zip(&names).zip((0..).step_by(ROW as usize)) {
        parts.push(forest_row((cell, name), scale, &axis, top));
    }
    let title = "Difference between the arms, with intervals";
    let description = "One row per group: the difference, its full interval and the part of it from privacy \
                       noise. The table below holds the same numbers.";
    let level = page::numbers::percent(view.confidence);
    framed(
        &format!("{} minus {}. The line at 0 means no difference.", label(&view.test), label(&view.control)),
        [
            svg::figure(&format!("{ids}forest"), title, description, bottom + AXIS_HEIGHT, parts),
            legend(&[
                ("full", format!("{level} interval: chance and noise")),
                ("noise", "of which privacy noise alone".to_owned()),
            ]),
        ],
    )
}

fn forest_row((cell, name): (&CellView, &str), scale: &MeanScale, axis: &Axis, top: u32) -> Markup {
    let (words_y, mark_y) = (top + 17, top + 32);
    let mut parts = vec![svg::cut_label(words_y, WORDS, "name", name)];
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
        // Higher than the dot and with ends: the narrowest noise shows behind it.
        let ends = |end: &String| svg::vertical(end, mark_y - NOISE_REACH, mark_y + NOISE_REACH, "noise-end");
        parts.extend(noise.iter().map(ends));
        parts.push(svg::dot(&x(estimate.lift), mark_y, "estimate"));
    }
    element("g", &[], parts)
}

/// The mean of each arm with its interval; nothing where the mode does not release them.
pub fn rates(view: &LiftView, scale: &MeanScale, ids: &str) -> Option<Markup> {
    let named = view.cells.iter().zip(cell_names(view));
    let cells: Vec<_> =
        named.filter_map(|(cell, name)| Some((cell, name, cell.estimate.as_ref()?.rates?))).collect();
    if cells.is_empty() {
        return None;
    }
    let all = cells.iter().flat_map(|(_, _, rates)| rates);
    let ends = all.map(|rate| scale.value(rate.mean + rate.half_width));
    let axis = Axis::around(ends);
    let arms = [(&view.test, "test"), (&view.control, "control")];
    let mut rows = Vec::new();
    let mut top = 0;
    for (cell, name, rates) in &cells {
        for ((arm, class), rate) in arms.iter().zip(rates) {
            let name = match cell.family.as_str() {
                "overall" => label(arm),
                _ => format!("{name}, {}", label(arm)),
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
    let id = format!("{ids}rates");
    Some(framed(caption, [svg::figure(&id, "Rates per arm", description, top + AXIS_HEIGHT, parts)]))
}

/// Seconds and bytes of every stage.
pub fn stages(report: &RunReport) -> Vec<Markup> {
    let finite = |seconds: f64| if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
    let names: Vec<&str> = report.stages.iter().map(|stage| stage.name.as_str()).collect();
    let names = told_apart(&names, LABEL_CHARS);
    let time = report.stages.iter().map(|stage| (vec![finite(stage.seconds)], duration(stage.seconds)));
    let sent = report.stages.iter().map(|stage| {
        let total = stage.bytes_sent.iter().fold(0u64, |sum, &sent| sum.saturating_add(sent));
        (stage.bytes_sent.iter().map(|&sent| sent as f64).collect(), bytes(total))
    });
    let parties = report.participants();
    let marks: Vec<SenderMark> = (0..parties.len()).map(SenderMark::of).collect();
    let classes = marks.iter().map(SenderMark::class).collect::<Vec<_>>();
    let keys = classes.iter().zip(&parties).map(|(class, party)| (class.as_str(), sent_by(report, party)));
    let keys: Vec<_> = keys.collect();
    let whole = [SenderMark { colour: "time", stripes: 0 }];
    vec![
        framed(
            "Time at this party, by stage.",
            [stacked("time", "Where time went", &names, &whole, time.collect())],
        ),
        framed(
            "Application bytes sent, by stage and party.",
            [stacked("bytes", "Where bytes went", &names, &marks, sent.collect()), legend(&keys)],
        ),
    ]
}

/// How a participant's part of a bar looks: a colour, and stripes along it where colours are used up. So many
/// colours are told apart also by those who see fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SenderMark {
    colour: &'static str,
    stripes: usize,
}

impl SenderMark {
    const COLOURS: [&str; 8] = [
        "who who-0",
        "who who-1",
        "who who-2",
        "who who-3",
        "who who-4",
        "who who-5",
        "who who-6",
        "who who-7",
    ];

    /// Pixels from the top of a bar.
    const STRIPES: [&[u32]; 3] = [&[], &[5], &[2, 8]];

    /// The mark of a participant by its place: another one for each of 24, more than a run has.
    fn of(place: usize) -> Self {
        let colours = Self::COLOURS.len();
        Self { colour: Self::COLOURS[place % colours], stripes: place / colours % 3 }
    }

    fn class(&self) -> String {
        let stripes = ["", " striped", " striped twice"][self.stripes];
        format!("{}{stripes}", self.colour)
    }

    /// A part of a bar, both ends in percent.
    fn bar(&self, from: f64, to: f64, top: u32) -> impl Iterator<Item = Markup> {
        let stripes =
            Self::STRIPES[self.stripes].iter().map(move |down| svg::bar(from, to, top + down, 2, "stripe"));
        [svg::bar(from, to, top, 12, self.colour)].into_iter().chain(stripes)
    }
}

fn stacked(
    id: &str,
    title: &str,
    names: &[String],
    marks: &[SenderMark],
    rows: Vec<(Vec<f64>, String)>,
) -> Markup {
    let largest = rows.iter().map(|(parts, _)| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let mut parts = Vec::new();
    for ((name, (values, shown)), top) in names.iter().zip(&rows).zip((0..).step_by(42)) {
        parts.push(svg::cut_label(top + 15, WORDS, "name", name));
        parts.push(svg::label("100%", top + 15, "value", shown));
        parts.push(svg::bar(0.0, 100.0, top + 22, 12, "track"));
        let mut from = 0.0;
        for (value, mark) in values.iter().zip(marks.iter().cycle()) {
            let to = if largest > 0.0 { from + 100.0 * value / largest } else { from };
            parts.extend(mark.bar(from, to, top + 22));
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
