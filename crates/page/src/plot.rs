//! Line plots, and pages of them with a table of what they show.

use crate::markup::{Markup, element, style_sheet, text, words};
use crate::numbers::short;
use crate::picture::{BLUE, GREEN, INK, RUST, VIOLET, label, line, picture};

/// Plotting area.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 40.0;
/// Room for half of the last tick's words.
const RIGHT: f64 = 34.0;
/// Colours that are told apart without colour vision, with a dash each.
const LINES: [(&str, &str); 6] =
    [(BLUE, ""), (RUST, "6 3"), (GREEN, "2 3"), (VIOLET, "8 3 2 3"), ("#7a7a00", "1 4"), (INK, "10 4")];

/// A line of a plot.
pub struct PlotLine {
    /// What the legend says.
    pub name: String,
    /// Across and up, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

/// How values lie across a plot.
#[derive(Clone, Copy)]
pub enum AxisScale {
    /// By their differences.
    Linear,
    /// By their ratios.
    Log,
}

impl AxisScale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-6).log10(),
        }
    }
}

/// A page: a text, figures, and a table of everything.
pub struct FigurePage<'a, const COLUMNS: usize> {
    /// In the frame of a window.
    pub name: &'a str,
    /// The heading.
    pub title: &'a str,
    /// What stands before the figures.
    pub about: Vec<Markup>,
    /// The figures.
    pub figures: Vec<Markup>,
    /// Names of the table's columns.
    pub head: &'a [&'a str; COLUMNS],
    /// The table.
    pub rows: Vec<[String; COLUMNS]>,
}

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:66em;margin:2em auto;padding:0 1em}
figure{display:inline-block;margin:0 .6em 1em 0;max-width:100%}
svg{max-width:100%;height:auto}
td,th{padding:0 .8em 0 0;text-align:right}
@media screen and (max-width:46rem){
body{margin:1em auto}figure{margin:0 0 1em}table,tbody,tr,td{display:block}tr:first-child{display:none}
tr{border-bottom:1px solid #ccc;padding:.4em 0}td:empty{display:none}
td{display:flex;justify-content:space-between;gap:1em;padding:0;overflow-wrap:anywhere}
td::before{content:attr(data-label);text-align:left;color:#555}
}
";

impl<const COLUMNS: usize> FigurePage<'_, COLUMNS> {
    /// As HTML.
    pub fn html(self) -> String {
        let head = self.head.iter().map(|cell| words("th", "", cell));
        // A narrow page shows each row as lines, with the names of the columns before their cells.
        let row = |cells: [String; COLUMNS]| {
            let named = self.head.iter().zip(cells);
            let cell = |(name, cell): (&&str, String)| element("td", &[("data-label", *name)], [text(cell)]);
            element("tr", &[], named.map(cell))
        };
        let table = [element("tr", &[], head)].into_iter().chain(self.rows.into_iter().map(row));
        let width = [("name", "viewport"), ("content", "width=device-width, initial-scale=1")];
        let names = [
            element("meta", &[("charset", "utf-8")], []),
            element("meta", &width, []),
            words("title", "", self.name),
            style_sheet(STYLE),
        ];
        let body = [words("h1", "", self.title)]
            .into_iter()
            .chain(self.about)
            .chain(self.figures)
            .chain([element("table", &[], table)]);
        let page = [element("head", &[], names), element("body", &[], body)];
        format!("<!doctype html>\n{}\n", element("html", &[("lang", "en")], page).into_string())
    }
}

/// A value at an axis: large numbers by the letter of their thousands.
fn tick_text(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{} G", short(value / 1e9, 3)),
        size if size >= 1e6 => format!("{} M", short(value / 1e6, 3)),
        size if size >= 1e3 => format!("{} k", short(value / 1e3, 3)),
        _ => short(value, 3),
    }
}

/// Round values from one to another on an axis of ratios: decades, 1, 2 and 5 of each where these are few, or
/// equal steps within less than that.
fn round_values(low: f64, high: f64) -> Vec<f64> {
    let decades = || (low.log10().floor() as i32..=high.log10().ceil() as i32).map(|of| 10f64.powi(of));
    let inside = |value: &f64| (low * 0.999..=high * 1.001).contains(value);
    let of = |digits: &[f64]| -> Vec<f64> {
        decades().flat_map(|decade| digits.iter().map(move |digit| decade * digit)).filter(inside).collect()
    };
    let all = of(&[1.0, 2.0, 5.0]);
    match all.len() {
        8.. => of(&[1.0]),
        3.. => all,
        _ => {
            let power = 10f64.powf(((high - low) / 4.0).log10().floor());
            let step =
                [1.0, 2.0, 5.0, 10.0].map(|of| of * power).into_iter().find(|of| (high - low) / of < 6.0);
            let step = step.unwrap_or(10.0 * power);
            let first = (low / step).ceil() as i64;
            (first..first + 8).map(|of| of as f64 * step).filter(inside).collect()
        }
    }
}

/// Room for a tick across.
const TICK: f64 = 40.0;

/// A line plot, logarithmic upwards: the values span decades.
pub fn plot(title: &str, across: &str, scale: AxisScale, curves: &[PlotLine]) -> Markup {
    let points = || curves.iter().flat_map(|c| &c.points);
    let (first, last) =
        points().map(|(x, _)| scale.place(*x)).fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
    let (low, high) = points().fold((f64::MAX, f64::MIN), |(l, h), (_, y)| (l.min(*y), h.max(*y)));
    // As high as the lines and a little more: of one height there is room around it.
    let room = if high > 1.5 * low { 1.05 } else { 1.25 };
    let (lowest, highest) = (low.max(1e-6) / room, high.max(1e-6) * room);
    let (low, high) = (lowest.log10(), highest.log10());
    let span = if last > first { last - first } else { 1.0 };
    let x = |v: f64| LEFT + (scale.place(v) - first) / span * (WIDTH - LEFT - RIGHT);
    let y = |v: f64| {
        let up = (v.max(1e-6).log10() - low) / (high - low);
        HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 20.0)
    };
    let (right, below) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut parts = Vec::new();
    for value in round_values(lowest, highest) {
        let at = y(value);
        parts.push(line((LEFT, at), (right, at)));
        parts.push(label((LEFT - 6.0, at + 4.0), "end", &[], &tick_text(value)));
    }
    let mut ticks: Vec<f64> = points().map(|p| p.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    let mut end = f64::MIN;
    ticks.retain(|tick| {
        let free = x(*tick) - end >= TICK;
        end = if free { x(*tick) } else { end };
        free
    });
    parts.extend(ticks.iter().map(|tick| label((x(*tick), below + 16.0), "middle", &[], &tick_text(*tick))));
    parts.push(label(((LEFT + right) / 2.0, below + 32.0), "middle", &[], across));
    for (index, (curve, (colour, dash))) in curves.iter().zip(LINES.iter().cycle()).enumerate() {
        let places: Vec<String> =
            curve.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let at = HEIGHT + 18.0 * index as f64 + 8.0;
        let drawn = |name, place: (&'static str, &str)| {
            let look =
                [("fill", "none"), ("stroke", *colour), ("stroke-width", "2"), ("stroke-dasharray", *dash)];
            element(name, &[&[place][..], &look].concat(), [])
        };
        parts.push(drawn("polyline", ("points", &places.join(" "))));
        parts.push(drawn("path", ("d", &format!("M{LEFT} {at}h40"))));
        parts.push(label((LEFT + 48.0, at + 4.0), "start", &[], &curve.name));
    }
    let size = (WIDTH, HEIGHT + 18.0 * curves.len() as f64);
    element("figure", &[], [words("figcaption", "", title), picture(title, size, parts)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_keeps_its_points_inside() {
        let points = vec![(3.0, 0.04), (13.0, 2.5)];
        let curves = [PlotLine { name: "100 resources".into(), points }];
        let svg = plot("t", "parties", AxisScale::Linear, &curves).into_string();
        let line = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        for place in line.split(' ') {
            let (x, y) = place.split_once(',').expect("a point");
            let (x, y): (f64, f64) = (x.parse().expect("a number"), y.parse().expect("a number"));
            assert!((LEFT..WIDTH).contains(&x) && (0.0..HEIGHT).contains(&y), "{place}");
        }
        assert!(svg.contains("100 resources"));
    }

    /// Values can be read off, and no half of the plot is empty.
    #[test]
    fn axes_have_round_values_around_the_lines() {
        assert_eq!(round_values(0.4, 6.0), [0.5, 1.0, 2.0, 5.0]);
        assert_eq!(round_values(0.01, 1_000.0), [0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0]);
        let steps = round_values(1.1, 1.8);
        assert!(steps.len() > 2 && steps.iter().all(|of| (of * 10.0).fract().abs() < 1e-6), "{steps:?}");
        assert_eq!([5_000.0, 10_000.0, 250.0, 3_200_000.0].map(tick_text), ["5 k", "10 k", "250", "3.2 M"]);
        let points = (1..20).map(|of| (f64::from(of), 0.8 - 0.01 * f64::from(of))).collect();
        let svg = plot("t", "rows", AxisScale::Log, &[PlotLine { name: "a".into(), points }]).into_string();
        let line = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        let heights: Vec<f64> = line
            .split(' ')
            .map(|place| place.split_once(',').expect("a point").1.parse().expect("a number"))
            .collect();
        let span = heights.iter().fold(0.0, |most, of| f64::max(most, *of))
            - heights.iter().fold(f64::MAX, |least, of| f64::min(least, *of));
        assert!(span > 0.3 * (HEIGHT - BOTTOM - 20.0), "{heights:?}");
    }

    #[test]
    fn a_hostile_name_is_escaped_wherever_it_is_shown() {
        let hostile = "\"'><script>alert(1)</script>&";
        let curves = [PlotLine { name: hostile.into(), points: vec![(1.0, 1.0)] }];
        let page = FigurePage {
            name: hostile,
            title: hostile,
            about: vec![words("p", "", hostile)],
            figures: vec![plot(hostile, hostile, AxisScale::Log, &curves)],
            head: &[hostile],
            rows: vec![[hostile.to_owned()]],
        };
        let html = page.html();
        assert!(!html.contains("<script") && !html.contains("\"'>"), "{html}");
        let escaped = "&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;";
        assert_eq!(html.matches(escaped).count(), 11, "{html}");
    }

    /// Half of `3.20 M` in the font's widest is beside the last tick; cells say which column they are of.
    #[test]
    fn the_last_tick_and_narrow_tables_are_whole() {
        let curves = [PlotLine { name: "rows".into(), points: vec![(100.0, 1.0), (3_200_000.0, 2.0)] }];
        let svg = plot("t", "rows", AxisScale::Log, &curves).into_string();
        let (before, _) = svg.split_once(&tick_text(3_200_000.0)).expect("the last tick");
        let at = before.rsplit(" x=\"").next().and_then(|rest| rest.split('"').next()).expect("a place");
        let room = WIDTH - at.parse::<f64>().expect("a number");
        let half = 0.5 * 9.0 * tick_text(3_200_000.0).len() as f64;
        assert!(room >= half, "{room} of {half}");
        let (name, title, about, figures) = ("n", "t", Vec::new(), Vec::new());
        let page = FigurePage { name, title, about, figures, head: &["rows"], rows: vec![["5".to_owned()]] };
        let html = page.html();
        assert!(html.contains("<td data-label=\"rows\">5</td>"), "{html}");
        assert!(html.contains("width=device-width"), "{html}");
    }
}
