//! Bar charts in SVG, in the manner of figures 6.1 to 6.4 of the paper: a group of bars for each workload, a
//! bar for each engine, told apart by pattern as well as by colour.

use super::args::BenchEngine;
use ::page::markup::{Markup, element};
use ::page::picture::{
    AMBER, BESIDE, BLUE, GREEN, HEADING, INK, PALE, PAPER, RUST, SLATE, TEAL, VALUE, VIOLET, label, line,
    picture, rect,
};
use terminal::values::NamedValue as _;

const LEFT: f64 = 70.0;
const RIGHT: f64 = 16.0;
const TITLE: f64 = 34.0;
const PLOT: f64 = 190.0;
const BELOW: f64 = 46.0;
/// Room for the engines' letters below stacked bars.
const LETTERS: f64 = 14.0;
/// A line of the legend.
const LEGEND: f64 = 26.0;
/// Width of a bar with the gap after it, and between groups.
const PITCH: f64 = 30.0;
const BAR: f64 = 25.0;
const GROUP: f64 = 26.0;
/// No picture is narrower: the legend needs it.
const NARROWEST: f64 = 620.0;

/// User, system, blocked.
const PARTS: [(&str, &str); 3] = [("user", BLUE), ("system", AMBER), ("blocked", PALE)];

/// How values become heights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarScale {
    /// For counts that span decades; what is below one has no height.
    Log,
    /// For ratios and for amounts that compare.
    Linear,
}

/// One bar: its engine, and the parts it is stacked from.
#[derive(Clone, Debug)]
pub struct StackedBar {
    /// Which engine.
    pub engine: BenchEngine,
    /// From the bottom up.
    pub parts: Vec<f64>,
}

/// One plotting area.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What its axis shows.
    pub title: String,
    /// How.
    pub scale: BarScale,
    /// A name and its bars.
    pub groups: Vec<(String, Vec<StackedBar>)>,
}

/// Colour and pattern of an engine.
fn look(engine: BenchEngine) -> (&'static str, &'static str) {
    match engine {
        BenchEngine::Unbounded => (SLATE, ""),
        BenchEngine::Move => (BLUE, "dots"),
        BenchEngine::Copy => (TEAL, "cross"),
        BenchEngine::File => (VIOLET, "level"),
        BenchEngine::Hint => (GREEN, "back"),
        BenchEngine::Swap => (RUST, "slash"),
    }
}

/// A whole picture: its panels one above the other, and what bars stand for.
pub fn draw(title: &str, panels: &[Panel]) -> Markup {
    let engines = engines(panels);
    let stacked =
        panels.iter().flat_map(|p| &p.groups).flat_map(|(_, bars)| bars).any(|bar| bar.parts.len() > 1);
    let inner = panels.iter().map(|p| width(&p.groups)).fold(0.0, f64::max);
    let whole = (LEFT + inner + RIGHT).max(NARROWEST);
    let mut parts = vec![element("defs", &[], ["dots", "cross", "level", "back", "slash"].map(pattern))];
    let mut top = 0.0;
    for panel in panels {
        parts.extend(plot(panel, top, whole, stacked));
        top += TITLE + PLOT + BELOW + if stacked { LETTERS } else { 0.0 };
    }
    parts.extend(legend(&engines, stacked, top));
    picture(title, (whole, top + LEGEND * if stacked { 2.0 } else { 1.0 }), parts)
}

fn engines(panels: &[Panel]) -> Vec<BenchEngine> {
    let mut engines = Vec::new();
    for bar in panels.iter().flat_map(|p| &p.groups).flat_map(|(_, bars)| bars) {
        if !engines.contains(&bar.engine) {
            engines.push(bar.engine);
        }
    }
    engines
}

fn width(groups: &[(String, Vec<StackedBar>)]) -> f64 {
    groups.iter().map(|(name, bars)| group_width(name, bars)).sum()
}

/// Room for the bars, or for the name when that is wider.
fn group_width(name: &str, bars: &[StackedBar]) -> f64 {
    (bars.len() as f64 * PITCH).max(name.chars().count() as f64 * 8.0) + GROUP
}

/// The values of an axis: its top, and its ticks with their labels.
struct Axis {
    scale: BarScale,
    top: f64,
    ticks: Vec<(f64, String)>,
}

impl Axis {
    fn over(panel: &Panel) -> Self {
        let sums = panel.groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.parts.iter().sum::<f64>());
        let largest = sums.filter(|sum| sum.is_finite()).fold(0.0, f64::max);
        match panel.scale {
            BarScale::Log => {
                let decades = largest.max(10.0).log10().ceil() as i32;
                let every = (decades / 7 + 1).max(1);
                let tick = |decade: i32| (10f64.powi(decade), short(10f64.powi(decade)));
                let ticks = (0..=decades).step_by(every as usize).map(tick).collect();
                Self { scale: BarScale::Log, top: f64::from(decades), ticks }
            }
            BarScale::Linear => {
                let step = nice(largest.max(1e-9) / 5.0);
                let count = (largest / step).ceil().max(1.0);
                let tick = |n: i32| (f64::from(n) * step, short(f64::from(n) * step));
                Self {
                    scale: BarScale::Linear,
                    top: count * step,
                    ticks: (0..=count as i32).map(tick).collect(),
                }
            }
        }
    }

    /// Height above the base.
    fn height(&self, value: f64) -> f64 {
        let share = match self.scale {
            BarScale::Log if value < 1.0 => 0.0,
            BarScale::Log => value.log10() / self.top,
            BarScale::Linear => value / self.top,
        };
        PLOT * share.clamp(0.0, 1.0)
    }
}

/// The least of 1, 2, 5 times a power of ten that is no less.
fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|part| part * power)
        .into_iter()
        .find(|&nice| nice >= step * 0.999)
        .unwrap_or(10.0 * power)
}

fn plot(panel: &Panel, top: f64, whole: f64, stacked: bool) -> Vec<Markup> {
    let axis = Axis::over(panel);
    let base = top + TITLE + PLOT;
    let mut parts = vec![label((LEFT - 54.0, top + 18.0), "start", &HEADING, &panel.title)];
    for (value, shown) in &axis.ticks {
        let y = base - axis.height(*value);
        parts.push(line((LEFT, y), (whole - RIGHT, y)));
        parts.push(label((LEFT - 8.0, y + 4.0), "end", &BESIDE, shown));
    }
    let mut x = LEFT + GROUP / 2.0;
    for (name, bars) in &panel.groups {
        let room = group_width(name, bars) - GROUP;
        let mut at = x + (room - bars.len() as f64 * PITCH) / 2.0;
        for bar in bars {
            parts.extend(drawn(bar, &axis, at, base, stacked));
            at += PITCH;
        }
        let below = if stacked { 34.0 } else { 20.0 };
        parts.push(label((x + room / 2.0, base + below), "middle", &HEADING, name));
        x += room + GROUP;
    }
    parts
}

/// A bar with its value above; a stacked one has its engine below, since colours tell its parts.
fn drawn(bar: &StackedBar, axis: &Axis, x: f64, base: f64, stacked: bool) -> Vec<Markup> {
    let (colour, fill) = look(bar.engine);
    let (mut parts, mut sum) = (Vec::new(), 0.0);
    for (value, (_, part)) in bar.parts.iter().zip(PARTS.iter().cycle()) {
        let from = axis.height(sum);
        sum += value;
        let to = axis.height(sum);
        let (at, size) = ((x, base - to), (BAR, to - from));
        if stacked {
            parts.push(rect(at, size, part));
        } else {
            parts.extend(filled(at, size, colour, fill));
        }
    }
    let middle = x + BAR / 2.0;
    parts.push(label((middle, base - axis.height(sum) - 4.0), "middle", &VALUE, &short(sum)));
    if stacked {
        parts.push(label((middle, base + 15.0), "middle", &BESIDE, &letter(bar.engine)));
    }
    parts
}

fn letter(engine: BenchEngine) -> String {
    engine.word()[..1].to_owned()
}

/// What bars stand for; of stacked ones first what their parts are, then, on a line of its own, what the
/// letters are.
fn legend(engines: &[BenchEngine], stacked: bool, top: f64) -> Vec<Markup> {
    let coloured = |engine: &BenchEngine| {
        let (colour, fill) = look(*engine);
        (colour, fill, engine.word().to_owned())
    };
    if !stacked {
        return entries(engines.iter().map(coloured), top);
    }
    let mut parts = entries(PARTS.iter().map(|(name, colour)| (*colour, "", (*name).to_owned())), top);
    let lettered = |engine: &BenchEngine| ("", "", format!("{} {}", letter(*engine), engine.word()));
    parts.extend(entries(engines.iter().map(lettered), top + LEGEND));
    parts
}

/// A line of colours, where there are any, with their patterns and names.
fn entries<'a>(of: impl Iterator<Item = (&'a str, &'a str, String)>, top: f64) -> Vec<Markup> {
    let mut parts = Vec::new();
    let mut x = LEFT;
    for (colour, fill, name) in of {
        if !colour.is_empty() {
            parts.extend(filled((x, top - 2.0), (22.0, 12.0), colour, fill));
            x += 28.0;
        }
        parts.push(label((x, top + 9.0), "start", &[("fill", INK)], &name));
        x += 22.0 + name.chars().count() as f64 * 7.5;
    }
    parts
}

/// A box in a colour with the marks of a pattern, if any, on it.
fn filled(at: (f64, f64), size: (f64, f64), colour: &str, pattern: &str) -> Vec<Markup> {
    let mut parts = vec![rect(at, size, colour)];
    if !pattern.is_empty() {
        parts.push(rect(at, size, &format!("url(#{pattern})")));
    }
    parts
}

/// White marks on the colour of an engine.
fn pattern(id: &str) -> Markup {
    let stroke = |path: &str| {
        let stroke = [("d", path), ("stroke", PAPER), ("stroke-width", "1.6"), ("fill", "none")];
        element("path", &stroke, [])
    };
    let mark = match id {
        "dots" => element("circle", &[("cx", "4"), ("cy", "4"), ("r", "1.7"), ("fill", PAPER)], []),
        "cross" => stroke("M0 4H8M4 0V8"),
        "level" => stroke("M0 4H8"),
        "back" => stroke("M-2 -2L10 10M-2 6L2 10M6 -2L10 2"),
        _ => stroke("M-2 10L10 -2M-2 2L2 -2M6 10L10 6"),
    };
    let size = [("id", id), ("width", "8"), ("height", "8"), ("patternUnits", "userSpaceOnUse")];
    element("pattern", &size, [mark])
}

/// Few characters, so that it fits above a bar: `0`, `0.05`, `1.05`, `12`, `1.2k`, `340k`, `5M`.
fn short(value: f64) -> String {
    let (mut value, mut unit) = (value, "");
    for next in ["k", "M", "G", "T"] {
        if value < 999.5 {
            break;
        }
        (value, unit) = (value / 1e3, next);
    }
    let digits = match value {
        v if v >= 9.95 => 0,
        v if !unit.is_empty() || v >= 9.945 => 1,
        v if v >= 0.1 || v <= 0.0 => 2,
        // Two digits that say something, of a speculative pass of milliseconds.
        v => (1 - v.log10().floor() as i32).min(9) as usize,
    };
    let shown = format!("{value:.digits$}");
    let shown = if shown.contains('.') { shown.trim_end_matches('0').trim_end_matches('.') } else { &shown };
    format!("{shown}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn panel(scale: BarScale, values: &[f64]) -> Panel {
        let engines = [BenchEngine::Unbounded, BenchEngine::Move, BenchEngine::Swap];
        let bars = engines.into_iter().zip(values).map(|(engine, &v)| StackedBar { engine, parts: vec![v] });
        Panel { title: "Major <faults>".into(), scale, groups: vec![("n_rmatmul".into(), bars.collect())] }
    }

    /// The values of an attribute.
    fn all<'a>(svg: &'a str, element: &str, attribute: &str) -> Vec<&'a str> {
        let tags = svg.split('<').filter(|tag| tag.starts_with(element));
        tags.filter_map(|tag| tag.split(&format!(" {attribute}=\"")).nth(1)?.split('"').next()).collect()
    }

    #[test]
    fn a_picture_keeps_its_bars_inside() {
        for scale in [BarScale::Log, BarScale::Linear] {
            let svg =
                draw("Faults", &[panel(scale, &[0.0, 12.0, 340_000.0]), panel(scale, &[1.0, 1.05, 8.4])]);
            let svg = svg.into_string();
            let height: f64 = all(&svg, "svg", "height")[0].parse().expect("a height");
            for (y, h) in all(&svg, "rect", "y").iter().zip(all(&svg, "rect", "height")) {
                let (y, h): (f64, f64) = (y.parse().expect("a number"), h.parse().expect("a number"));
                assert!(y >= 0.0 && h >= 0.0 && y + h <= height, "{y} {h}");
            }
            for name in ["unbounded", "move", "swap", "n_rmatmul", "340k", "Major &lt;faults&gt;"] {
                assert!(svg.contains(name), "{name}");
            }
        }
    }

    /// With one group, which is the narrowest picture, and all engines.
    #[test]
    fn a_legend_stays_inside() {
        for parts in [1, 3] {
            let bars = BenchEngine::value_variants()
                .iter()
                .map(|&engine| StackedBar { engine, parts: vec![1.0; parts] });
            let groups = vec![("merge".into(), bars.collect())];
            let panel = Panel { title: "Time".into(), scale: BarScale::Linear, groups };
            let svg = draw("Time", &[panel]).into_string();
            let size = |name| all(&svg, "svg", name)[0].parse::<f64>().expect("a number");
            let places = all(&svg, "text", "x").into_iter().zip(all(&svg, "text", "y"));
            for (x, y) in places {
                let (x, y): (f64, f64) = (x.parse().expect("a number"), y.parse().expect("a number"));
                assert!(x + 60.0 <= size("width") && y < size("height"), "{parts}: {x} {y}");
            }
        }
    }

    #[test]
    fn heights_follow_the_scale() {
        let axis = Axis::over(&panel(BarScale::Log, &[0.0, 10.0, 10_000.0]));
        let heights = [0.0, 1.0, 10.0, 100.0, 10_000.0].map(|value| axis.height(value) / PLOT);
        for (height, expected) in heights.into_iter().zip([0.0, 0.0, 0.25, 0.5, 1.0]) {
            assert!((height - expected).abs() < 1e-9, "{heights:?}");
        }
        let axis = Axis::over(&panel(BarScale::Linear, &[1.0, 1.05, 8.4]));
        let ticks: Vec<&str> = axis.ticks.iter().map(|(_, shown)| shown.as_str()).collect();
        assert_eq!(ticks, ["0", "2", "4", "6", "8", "10"]);
        assert!((axis.height(5.0) / PLOT - 0.5).abs() < 1e-9);
    }

    #[test]
    fn values_are_short() {
        let shown = [0.0, 0.05, 1.0, 1.049, 12.4, 999.0, 1200.0, 340_000.0, 5e6].map(short);
        assert_eq!(shown, ["0", "0.05", "1", "1.05", "12", "999", "1.2k", "340k", "5M"]);
        assert_eq!([0.0046, 0.000_31, 0.05].map(short), ["0.0046", "0.00031", "0.05"]);
    }
}
