//! Figures in SVG without a view box: horizontal places are percentages, vertical ones pixels. So a figure
//! fills any width, from a phone to a printed page, and its text never shrinks.

use crate::lines::wrapped;
use crate::markup::{Markup, element, text};

/// Where the plotting area begins and ends, in percent; the rest keeps the outer tick labels inside.
const LEFT: f64 = 4.0;
const RIGHT: f64 = 96.0;
/// Ticks wanted on an axis.
const TICKS: f64 = 5.0;
/// Height of the axis with a title of one line, in pixels, and of each further line.
const AXIS_HEIGHT: u32 = 34;
const TITLE_LINE: u32 = 15;
/// Characters of an axis' title that stand in one line on a phone.
const TITLE_CHARS: usize = 42;

/// A linear axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    step: f64,
    reference: Option<f64>,
}

impl Axis {
    /// Over all finite values, widened to round numbers. Zero is always on it.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        Self::over(values, Some(0.0))
    }

    /// The same with another value that is always on it, and has a line of its own; or with none.
    pub fn over(values: impl IntoIterator<Item = f64>, reference: Option<f64>) -> Self {
        // Beyond this a difference would overflow; nothing true is so large.
        let finite = values.into_iter().chain(reference).filter(|value| value.abs() < 1e100);
        let ends = finite.fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((low, high)) => Some((value.min(low), value.max(high))),
        });
        let (mut low, mut high): (f64, f64) = ends.unwrap_or_default();
        // Values that are the same, but for the last digits of a float, are seen from 0.
        if high - low <= 1e-9 * low.abs().max(high.abs()) {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-100 {
            high = low + 1.0;
        }
        let step = nice((high - low) / TICKS);
        Self { low: (low / step).floor() * step, high: (high / step).ceil() * step, step, reference }
    }

    fn percent(&self, value: f64) -> f64 {
        let inside = value.clamp(self.low, self.high);
        LEFT + (RIGHT - LEFT) * (inside - self.low) / (self.high - self.low)
    }

    /// Whether the axis can show the value.
    pub fn shows(&self, value: f64) -> bool {
        value.is_finite() && (self.low..=self.high).contains(&value)
    }

    /// The place of a value, for an attribute.
    pub fn x(&self, value: f64) -> String {
        format!("{:.3}%", self.percent(value))
    }

    /// The height of an axis with this title, in pixels.
    pub fn height(title: &str) -> u32 {
        let lines = wrapped(title, TITLE_CHARS, "", "").len() as u32;
        AXIS_HEIGHT + (lines - 1) * TITLE_LINE
    }

    /// Grid lines over the strips of marks (top and bottom of each), so that none crosses the words between
    /// them; tick labels below `bottom`, and the title of the axis.
    pub fn draw(&self, strips: &[(u32, u32)], bottom: u32, title: &str) -> Vec<Markup> {
        let count = ((self.high - self.low) / self.step).round() as i32;
        let decimals = (-self.step.log10().floor()).clamp(0.0, 12.0) as usize;
        let mut parts = Vec::new();
        for tick in 0..=count {
            let value = self.low + f64::from(tick) * self.step;
            let is_zero = value.abs() < 0.5 * self.step;
            let is_reference = self.reference.is_some_and(|at| (value - at).abs() < 1e-6 * self.step);
            let strips = strips.iter().filter(|_| !is_reference);
            parts.extend(strips.map(|&(from, to)| vertical(&self.x(value), from, to, "grid")));
            let shown = crate::numbers::fixed(if is_zero { 0.0 } else { value }, decimals);
            parts.push(label(&self.x(value), bottom + 14, "tick", &crate::markup::minus(&shown)));
        }
        let zero = self.reference.map(|value| self.x(value));
        let lines = zero.iter().flat_map(|x| strips.iter().map(|&(from, to)| vertical(x, from, to, "zero")));
        parts.extend(lines);
        let titles = (bottom + 30..).step_by(TITLE_LINE as usize).zip(wrapped(title, TITLE_CHARS, "", ""));
        parts.extend(titles.map(|(y, line)| label("50%", y, "tick", &line)));
        parts
    }
}

/// The least of 1, 2, 5 times a power of ten that is no less.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|part| part * power)
        .find(|&nice| nice >= step * 0.999)
        .unwrap_or(step)
}

/// Text at a place; the class decides the anchor.
pub fn label(x: &str, y: u32, class: &str, words: &str) -> Markup {
    element("text", &[("x", x), ("y", &y.to_string()), ("class", class)], [text(words)])
}

/// Text that is cut where it would run into the number on its right.
pub fn cut_label(y: u32, share: u32, class: &str, words: &str) -> Markup {
    let width = format!("{share}%");
    let place = [("x", "0"), ("y", "0"), ("width", width.as_str()), ("height", "100%")];
    element("svg", &place, [label("0", y, class, words)])
}

/// A horizontal line.
pub fn horizontal(from: &str, to: &str, y: u32, class: &str) -> Markup {
    let y = y.to_string();
    element("line", &[("x1", from), ("x2", to), ("y1", &y), ("y2", &y), ("class", class)], [])
}

/// A vertical line.
pub fn vertical(x: &str, top: u32, bottom: u32, class: &str) -> Markup {
    let (top, bottom) = (top.to_string(), bottom.to_string());
    element("line", &[("x1", x), ("x2", x), ("y1", &top), ("y2", &bottom), ("class", class)], [])
}

/// A dot.
pub fn dot(x: &str, y: u32, class: &str) -> Markup {
    element("circle", &[("cx", x), ("cy", &y.to_string()), ("r", "5"), ("class", class)], [])
}

/// A bar from `from` to `to`, both in percent of the whole figure.
pub fn bar(from: f64, to: f64, y: u32, height: u32, class: &str) -> Markup {
    let (x, width) = (format!("{from:.3}%"), format!("{:.3}%", (to - from).max(0.0)));
    let (y, height) = (y.to_string(), height.to_string());
    let place = [("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height), ("class", class)];
    element("rect", &place, [])
}

/// A bar on an axis, from `y` down.
pub fn axis_bar(axis: &Axis, (from, to): (f64, f64), (y, height): (u32, u32), class: &str) -> Markup {
    bar(axis.percent(from.min(to)), axis.percent(from.max(to)), y, height, class)
}

/// A whole figure: named and described for readers who do not see it, with the table that says the same.
pub fn figure(id: &str, title: &str, description: &str, height: u32, parts: Vec<Markup>) -> Markup {
    let (title_id, desc_id) = (format!("{id}-title"), format!("{id}-desc"));
    let labels = format!("{title_id} {desc_id}");
    let height = height.to_string();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("role", "img"),
        ("aria-labelledby", labels.as_str()),
        ("width", "100%"),
        ("height", &height),
    ];
    let names = [
        element("title", &[("id", title_id.as_str())], [text(title)]),
        element("desc", &[("id", desc_id.as_str())], [text(description)]),
    ];
    element("svg", &attributes, names.into_iter().chain(parts))
}
