//! What a program derives: a figure for each group of numbers, and one table of all.

use super::plots::{FigureRows, NOISE_REACH, legend};
use super::{paragraph, tables};
use crate::wording::{self, DerivedGroup, DerivedNumber, is_needed_to_treat, is_ratio};
use crate::{DerivedView, ProgramOutput};
use page::markup::{Markup, element, words};
use page::svg::{self, Axis};

/// Figures, table, and what the intervals cover. `ids` tells figures of one page apart.
pub fn numbers(derived: &[DerivedView], ids: &str) -> Vec<Markup> {
    let groups = wording::derived_groups(derived);
    let level = wording::level(derived);
    let figures =
        groups.iter().enumerate().map(|(at, group)| figure(group, &format!("{ids}derived-{at}"), &level));
    let notes = wording::covered(derived).into_iter().map(|note| paragraph("note", note));
    figures.chain([tables::derived(&groups, &level)]).chain(notes).collect()
}

/// Noised sums, folded: who reads what is computed from them needs them to check it alone.
pub fn behind(outputs: &[ProgramOutput]) -> Markup {
    super::folded(&format!("{} ({})", wording::BEHIND, outputs.len()), [tables::outputs(outputs)])
}

/// Where a number stands on the axis of its group. One needed to treat is drawn as the difference that it is
/// one over: so both sides of its interval meet where there is none.
fn place(of: &DerivedView, value: f64) -> f64 {
    if is_needed_to_treat(of) { 1.0 / value } else { value }
}

/// Ends of an interval on the axis; an end that is open is none.
fn places(of: &DerivedView, ends: &[Option<f64>; 2]) -> [Option<f64>; 2] {
    match is_needed_to_treat(of) {
        true => [ends[1], ends[0]].map(|end| Some(end.map_or(0.0, |end| 1.0 / end))),
        false => *ends,
    }
}

/// The ends that the axis shows.
fn on_axis(of: &DerivedView, ends: &[Option<f64>; 2], axis: &Axis) -> [Option<f64>; 2] {
    places(of, ends).map(|end| end.filter(|end| axis.shows(*end)))
}

/// None where all is open: there is nothing to draw.
fn axis(group: &DerivedGroup<'_>) -> Option<Axis> {
    let first = group.numbers[0].of;
    let places_of = |number: &DerivedNumber<'_>| -> Vec<f64> {
        let value = number.of.value.map(|value| place(number.of, value));
        let ends = number.of.intervals.iter().flat_map(|ends| places(number.of, ends));
        ends.chain([value]).flatten().collect()
    };
    // What is not determined may be anywhere in its range, and would leave others no room to differ.
    let (told, not_told): (Vec<_>, Vec<_>) =
        group.numbers.iter().partition(|number| number.of.value.is_some());
    let numbers = if told.is_empty() { not_told } else { told };
    let all: Vec<f64> = numbers.into_iter().flat_map(places_of).collect();
    // From where there is no difference, or nothing; a level has no such place.
    let reference = match &*first.statistic {
        "mean" | "variance" | "standard-deviation" | "quantile" => None,
        _ if is_ratio(first) => Some(1.0),
        _ => Some(0.0),
    };
    (!all.is_empty()).then(|| Axis::over(all, reference))
}

fn figure(group: &DerivedGroup<'_>, id: &str, level: &str) -> Markup {
    let Some(axis) = axis(group) else {
        return paragraph(
            "note",
            format!("{}: not determined by these sums.", wording::capital(&group.title())),
        );
    };
    let shape = FigureRows::of(group.numbers.iter().map(|number| (&*number.name, &*number.short)));
    let rows = group.numbers.len();
    let bottom = shape.bottom(rows);
    let of = group.numbers[0].of;
    let title = match (is_needed_to_treat(of), &*group.unit) {
        (true, _) => "one over the number: difference of the shares",
        (false, unit) => unit,
    };
    let mut parts = axis.draw(&shape.strips(rows), bottom, title);
    for (number, top) in group.numbers.iter().zip(shape.tops(rows)) {
        let mut row = shape.words(top, &number.name, &number.short);
        row.extend(marks(number, shape.mark(top), &axis, group.is_of_totals()));
        parts.push(element("g", &[], row));
    }
    let description =
        "One row per number: its value and its interval. The table beside it holds the same numbers.";
    let mut keys = match group.is_of_totals() {
        true => vec![("whisker", format!("{level}: noise alone"))],
        false => vec![
            ("full", format!("{level}: sampling and noise")),
            ("noise", "of which privacy noise alone".to_owned()),
        ],
    };
    let is_open = |number: &DerivedNumber<'_>| {
        number.of.intervals.iter().any(|ends| on_axis(number.of, ends, &axis).contains(&None))
    };
    if group.numbers.iter().any(is_open) {
        keys.push(("open", "an end not determined, or beyond this axis".to_owned()));
    }
    let heading = words("figcaption", "over", wording::capital(&group.title()));
    let drawn = svg::figure(id, &group.title(), description, bottom + Axis::height(title), parts);
    element("figure", &[], [heading, drawn, legend(&keys)])
}

fn marks(number: &DerivedNumber<'_>, mark_y: u32, axis: &Axis, is_total: bool) -> Vec<Markup> {
    let of = number.of;
    let mut parts = Vec::new();
    let value = of.value.map(|value| place(of, value)).filter(|value| axis.shows(*value));
    if let (Some(value), true) = (value, is_total) {
        parts.push(svg::axis_bar(axis, (0.0, value), (mark_y - 7, 14), "test"));
    }
    let line = if is_total { "whisker" } else { "full" };
    for ends in &of.intervals {
        let ends = on_axis(of, ends, axis);
        let class = if ends.contains(&None) { format!("{line} open") } else { line.to_owned() };
        let x = [(ends[0], "0%"), (ends[1], "100%")];
        let [from, to] = x.map(|(end, edge)| end.map_or_else(|| edge.to_owned(), |end| axis.x(end)));
        parts.push(svg::horizontal(&from, &to, mark_y, &class));
        let closed = ends.into_iter().flatten().filter(|end| !is_needed_to_treat(of) || *end != 0.0);
        parts.extend(closed.map(|end| svg::vertical(&axis.x(end), mark_y - 5, mark_y + 5, line)));
    }
    if let (Some(value), false) = (value, is_total) {
        parts.extend(noise(of, value, axis, mark_y));
        parts.push(svg::dot(&axis.x(value), mark_y, "estimate"));
    }
    parts
}

/// What noise alone leaves, around a value on the axis.
fn noise(of: &DerivedView, value: f64, axis: &Axis, y: u32) -> Vec<Markup> {
    let Some(noise) = of.noise else { return Vec::new() };
    // A difference is one over the number: its noise is that of the number times its square.
    let noise = if is_needed_to_treat(of) { noise * value * value } else { noise };
    // No further than the interval: what is beyond its cut end cannot be, whatever noise would leave. The two
    // of a number needed to treat meet where there is no difference.
    let [low, high] = match &of.intervals[..] {
        [ends] if !is_needed_to_treat(of) => *ends,
        _ => [None; 2],
    };
    let from = low.map_or(value - noise, |low| low.max(value - noise));
    let to = high.map_or(value + noise, |high| high.min(value + noise));
    let ends = [from, to].map(|end| axis.x(end));
    let end = |x: &String| svg::vertical(x, y - NOISE_REACH, y + NOISE_REACH, "noise-end");
    [svg::horizontal(&ends[0], &ends[1], y, "noise")].into_iter().chain(ends.iter().map(end)).collect()
}
