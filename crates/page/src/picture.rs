//! Pictures in SVG of a fixed size, placed by pixels. Each stands alone: no style, script or font from
//! outside.

use crate::markup::{Markup, element, text};

/// Colour of words.
pub const INK: &str = "#1c2530";
/// Colour of words beside others.
pub const SOFT: &str = "#5b6673";
/// Colour of frames and axes.
pub const RULE: &str = "#d9dfe5";
/// Colour of paper.
pub const PAPER: &str = "#ffffff";
/// Colours of what is shown: dark enough for marks in the colour of paper on them.
pub const BLUE: &str = "#1667a8";
/// See [`BLUE`].
pub const TEAL: &str = "#2a9187";
/// See [`BLUE`].
pub const VIOLET: &str = "#6a3d9a";
/// See [`BLUE`].
pub const GREEN: &str = "#3f7d20";
/// See [`BLUE`].
pub const RUST: &str = "#b3541e";
/// What others are compared with.
pub const SLATE: &str = "#8fa3b5";
/// For parts of a bar, beside blue.
pub const AMBER: &str = "#e0a030";
/// See [`AMBER`].
pub const PALE: &str = "#c9d1d9";
/// From little to much.
pub const BLUES: [&str; 4] = ["#b9d3ea", "#6fa8d6", BLUE, "#0b3558"];
/// Words that name something.
pub const HEADING: [(&str, &str); 2] = [("font-weight", "600"), ("fill", INK)];
/// Words beside others.
pub const BESIDE: [(&str, &str); 1] = [("fill", SOFT)];
/// A number on a drawing, around which the drawing is left out.
pub const VALUE: [(&str, &str); 5] =
    [("font-size", "11"), ("fill", INK), ("stroke", PAPER), ("stroke-width", "3"), ("paint-order", "stroke")];
const FONT: &str = "system-ui,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";

/// A whole picture on paper, with a title for those who do not see it.
pub fn picture(
    title: &str,
    (width, height): (f64, f64),
    content: impl IntoIterator<Item = Markup>,
) -> Markup {
    let (w, h) = (number(width), number(height));
    let view = format!("0 0 {w} {h}");
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("role", "img"),
        ("aria-label", title),
        ("width", &w),
        ("height", &h),
        ("viewBox", &view),
        ("font-family", FONT),
        ("font-size", "13"),
    ];
    let paper = rect((0.0, 0.0), (width, height), PAPER);
    element("svg", &attributes, [element("title", &[], [text(title)]), paper].into_iter().chain(content))
}

/// A box by its upper left corner.
pub fn rect((x, y): (f64, f64), (width, height): (f64, f64), fill: &str) -> Markup {
    let attributes = [("x", x), ("y", y), ("width", width), ("height", height)];
    placed("rect", &attributes, &[("fill", fill)], [])
}

/// A rule.
pub fn line(from: (f64, f64), to: (f64, f64)) -> Markup {
    let attributes = [("x1", from.0), ("y1", from.1), ("x2", to.0), ("y2", to.1)];
    placed("line", &attributes, &[("stroke", RULE)], [])
}

/// Words whose `anchor` (start, middle or end) is at a place; `look` is for further attributes.
pub fn label((x, y): (f64, f64), anchor: &str, look: &[(&'static str, &str)], shown: &str) -> Markup {
    let attributes = [&[("text-anchor", anchor)], look].concat();
    placed("text", &[("x", x), ("y", y)], &attributes, [text(shown)])
}

/// An element whose first attributes are numbers.
fn placed(
    name: &'static str,
    numbers: &[(&'static str, f64)],
    others: &[(&'static str, &str)],
    content: impl IntoIterator<Item = Markup>,
) -> Markup {
    let numbers: Vec<(&'static str, String)> =
        numbers.iter().map(|(name, value)| (*name, number(*value))).collect();
    let numbers = numbers.iter().map(|(name, value)| (*name, value.as_str()));
    let attributes: Vec<(&'static str, &str)> = numbers.chain(others.iter().copied()).collect();
    element(name, &attributes, content)
}

/// With at most one decimal.
fn number(value: f64) -> String {
    let shown = format!("{value:.1}");
    shown.strip_suffix(".0").map_or(shown.clone(), str::to_owned)
}
