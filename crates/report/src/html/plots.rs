//! The figures of a lift study and of cost.

use super::tables::sent_by;
use crate::wording::{LABEL_CHARS, MeanScale, cell_names, label, quantity_title, told_apart};
use crate::{CellView, LiftView, RunReport};
use page::lines::wrapped;
use page::markup::{Markup, element, minus, text, words};
use page::numbers::{bytes, duration};
use page::svg::{self, Axis};
use release::modes::ArmRate;

/// Height of a row: its words above, its mark below.
const ROW: u32 = 48;
/// Where the words of a row end and its marks begin.
const MARKS: u32 = 23;
/// Percent of the width that a name may take beside its number.
const WORDS: u32 = 48;
/// Height of a line of words.
const LINE: u32 = 17;
/// Characters of a name and of a number that stand in one line on a phone.
const NAME_CHARS: usize = 17;
const NUMBER_CHARS: usize = 23;
/// Characters of a name that has lines of its own, of a phone's width.
const LINE_CHARS: usize = 38;

/// How far the mark of noise reaches above and below its line: past the dot.
pub const NOISE_REACH: u32 = 8;

/// How the rows of a figure look: a name and a number over a mark, in one line; or, where a phone would cut a
/// name, each in lines of its own.
#[derive(Clone, Copy)]
pub struct FigureRows {
    lines: u32,
}

/// A name in lines that fit a phone.
fn name_lines(name: &str) -> Vec<String> {
    wrapped(name, LINE_CHARS, "", "")
}

impl FigureRows {
    pub fn of<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (mut fits, mut lines) = (true, 1);
        for (name, number) in rows {
            fits &= name.chars().count() <= NAME_CHARS && number.chars().count() <= NUMBER_CHARS;
            lines = lines.max(name_lines(name).len() as u32);
        }
        Self { lines: if fits { 1 } else { lines + 1 } }
    }

    fn height(self) -> u32 {
        ROW + (self.lines - 1) * LINE
    }

    /// The upper ends of so many rows.
    pub fn tops(self, rows: usize) -> impl Iterator<Item = u32> {
        (0..rows as u32).map(move |row| row * self.height())
    }

    /// The lower end of the last of them.
    pub fn bottom(self, rows: usize) -> u32 {
        rows as u32 * self.height()
    }

    /// Where marks stand, row by row: the grid is drawn here, not behind the words.
    pub fn strips(self, rows: usize) -> Vec<(u32, u32)> {
        let marks = MARKS + (self.lines - 1) * LINE;
        self.tops(rows).map(|top| (top + marks, top + self.height())).collect()
    }

    /// The middle of a row's mark.
    pub fn mark(self, top: u32) -> u32 {
        top + self.lines * LINE + 15
    }

    /// Name and number of a row.
    pub fn words(self, top: u32, name: &str, number: &str) -> Vec<Markup> {
        let (share, names) = match self.lines {
            1 => (WORDS, vec![name.to_owned()]),
            _ => (100, name_lines(name)),
        };
        let tops = (top + LINE..).step_by(LINE as usize);
        let mut parts: Vec<Markup> =
            tops.zip(&names).map(|(y, name)| svg::cut_label(y, share, "name", name)).collect();
        parts.push(svg::label("100%", top + self.lines * LINE, "value", &minus(number)));
        parts
    }

    /// The same of an arm of a group, whose name stands beside the number where that has a line of its own.
    fn words_of_arm(self, top: u32, (group, arm): (&str, &str), number: &str) -> Vec<Markup> {
        if self.lines == 1 || group.is_empty() {
            return self.words(top, &of_group(group, arm), number);
        }
        let mut parts = self.words(top, group, number);
        parts.push(svg::cut_label(top + self.lines * LINE, WORDS, "of-name", arm));
        parts
    }
}

/// An arm of a group in one line; of all people the arm alone.
fn of_group(group: &str, arm: &str) -> String {
    if group.is_empty() { arm.to_owned() } else { format!("{group}, {arm}") }
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
    let names = cell_names(view);
    let shown = |cell: &CellView| match &cell.estimate {
        Some(estimate) => format!("{} {}", scale.show(estimate.lift), scale.interval(estimate.interval)),
        None => "refused".to_owned(),
    };
    let numbers: Vec<String> = view.cells.iter().map(shown).collect();
    let words = || names.iter().map(String::as_str).zip(numbers.iter().map(String::as_str));
    let shape = FigureRows::of(words());
    let rows = view.cells.len();
    let bottom = shape.bottom(rows);
    let title = format!("difference, {}", quantity_title(view, scale));
    let (mut parts, height) = (axis.draw(&shape.strips(rows), bottom, &title), bottom + Axis::height(&title));
    for ((cell, (name, number)), top) in view.cells.iter().zip(words()).zip(shape.tops(rows)) {
        let mut row = shape.words(top, name, number);
        row.extend(difference_marks(cell, scale, &axis, shape.mark(top)));
        parts.push(element("g", &[], row));
    }
    let title = "Difference between the arms, with intervals";
    let description = "One row per group: the difference, its full interval and the part of it from privacy \
                       noise. The table beside it holds the same numbers.";
    let level = page::numbers::percent(view.confidence);
    framed(
        &format!("{} minus {}. The line at 0 means no difference.", label(&view.test), label(&view.control)),
        [
            svg::figure(&format!("{ids}forest"), title, description, height, parts),
            legend(&[
                ("full", format!("{level} interval: chance and noise")),
                ("noise", "of which privacy noise alone".to_owned()),
            ]),
        ],
    )
}

/// A difference with its intervals; nothing of a refused cell.
fn difference_marks(cell: &CellView, scale: &MeanScale, axis: &Axis, mark_y: u32) -> Vec<Markup> {
    let Some(estimate) = cell.estimate.as_ref().filter(|of| axis.shows(scale.value(of.lift))) else {
        return Vec::new();
    };
    let x = |value: f64| axis.x(scale.value(value));
    let ends = estimate.interval.map(x);
    let mut parts = vec![svg::horizontal(&ends[0], &ends[1], mark_y, "full")];
    parts.extend(ends.iter().map(|end| svg::vertical(end, mark_y - 5, mark_y + 5, "full")));
    let noise = estimate.noise_interval.map(x);
    parts.push(svg::horizontal(&noise[0], &noise[1], mark_y, "noise"));
    // Higher than the dot and with ends: the narrowest noise shows behind it.
    let ends = |end: &String| svg::vertical(end, mark_y - NOISE_REACH, mark_y + NOISE_REACH, "noise-end");
    parts.extend(noise.iter().map(ends));
    parts.push(svg::dot(&x(estimate.lift), mark_y, "estimate"));
    parts
}

/// The mean of each arm with its interval; nothing where the mode does not release them.
pub fn means(view: &LiftView, scale: &MeanScale, ids: &str) -> Option<Markup> {
    let named = view.cells.iter().zip(cell_names(view));
    let cells: Vec<_> =
        named.filter_map(|(cell, name)| Some((cell, name, cell.estimate.as_ref()?.rates?))).collect();
    if cells.is_empty() {
        return None;
    }
    let all = cells.iter().flat_map(|(_, _, rates)| rates);
    let ends = all.flat_map(|rate| [-1.0, 1.0].map(|sign| scale.value(rate.mean + sign * rate.half_width)));
    let axis = Axis::around(ends);
    let arms = [(&view.test, "test"), (&view.control, "control")];
    let rows = cells.iter().flat_map(|(cell, name, rates)| {
        arms.iter().zip(rates).map(move |((arm, class), rate)| {
            let group = if cell.family == "overall" { "" } else { name };
            let shown = format!("{} ± {}", scale.show(rate.mean), scale.show(rate.half_width));
            ((group, label(arm)), shown, class, rate)
        })
    });
    let rows: Vec<_> = rows.collect();
    let names: Vec<String> = rows.iter().map(|((group, arm), ..)| of_group(group, arm)).collect();
    let shape = FigureRows::of(names.iter().zip(&rows).map(|(name, row)| (name.as_str(), row.1.as_str())));
    let bottom = shape.bottom(rows.len());
    let title = quantity_title(view, scale);
    let mut parts = axis.draw(&shape.strips(rows.len()), bottom, &title);
    for (((group, arm), shown, class, rate), top) in rows.iter().zip(shape.tops(rows.len())) {
        let mut row = shape.words_of_arm(top, (group, arm), shown);
        row.extend(mean_marks(rate, class, scale, &axis, shape.mark(top)));
        parts.push(element("g", &[], row));
    }
    let description =
        "One bar per group and arm: the mean, and its interval. The table above holds the same numbers.";
    let caption = "Mean clamped outcome of each arm, with its own interval.";
    let id = format!("{ids}means");
    let height = bottom + Axis::height(&title);
    Some(framed(caption, [svg::figure(&id, "Mean of each arm", description, height, parts)]))
}

/// A bar from 0 to a mean, with its interval.
fn mean_marks(rate: &ArmRate, class: &str, scale: &MeanScale, axis: &Axis, mark_y: u32) -> Vec<Markup> {
    let mean = scale.value(rate.mean);
    if !axis.shows(mean) {
        return Vec::new();
    }
    let end = |sign: f64| scale.value(rate.mean + sign * rate.half_width);
    let ends = [axis.x(end(-1.0)), axis.x(end(1.0))];
    let mut parts = vec![
        svg::axis_bar(axis, (0.0, mean), (mark_y - 7, 14), class),
        svg::horizontal(&ends[0], &ends[1], mark_y, "whisker"),
    ];
    parts.extend(ends.iter().map(|end| svg::vertical(end, mark_y - 4, mark_y + 4, "whisker")));
    parts
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

/// Ends of classes of bars, and their stripes in pixels from the top of a bar.
const STRIPES: [(&str, &[u32]); 3] = [("", &[]), (" striped", &[5]), (" striped twice", &[2, 8])];

/// The stripes of a bar of a class.
pub fn stripes(class: &str) -> &'static [u32] {
    STRIPES.iter().rev().find(|(end, _)| class.ends_with(end)).map_or(&[], |(_, stripes)| *stripes)
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

    /// The mark of a participant by its place: another one for each of 24, more than a run has.
    fn of(place: usize) -> Self {
        let colours = Self::COLOURS.len();
        Self { colour: Self::COLOURS[place % colours], stripes: place / colours % 3 }
    }

    fn class(&self) -> String {
        format!("{}{}", self.colour, STRIPES[self.stripes].0)
    }

    /// A part of a bar, both ends in percent.
    fn bar(&self, from: f64, to: f64, top: u32) -> impl Iterator<Item = Markup> {
        let stripes =
            STRIPES[self.stripes].1.iter().map(move |down| svg::bar(from, to, top + down, 2, "stripe"));
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
