//! `bench market --figures`: figures 3 to 5 of Choi et al. (2012) again, with time and bytes of ours, as one
//! page.

use super::gmw::TravelTime;
use super::market::{MarketArgs, MarketSummary};
use super::names::TransportName;
use base::Error;
use page::markup::{Markup, element, style_sheet, words};
use page::numbers::{bytes, count, with_unit};
use page::picture::{BLUE, GREEN, INK, RUST, VIOLET, label, line, picture};
use program::lower::combine::SelectionCircuit;
use std::path::Path;
use terminal::output;

/// Settings of the local network: every circuit, all parties and resources.
const PARTIES: [usize; 6] = [3, 5, 7, 9, 11, 13];
const RESOURCES: [u64; 5] = [100, 400, 1_000, 2_000, 5_000];
/// Settings of the wide-area network: fewer, because a round takes its time.
const FAR_PARTIES: [usize; 3] = [3, 7, 13];
const FAR_RESOURCES: [u64; 2] = [100, 5_000];
const ROUND_TRIPS_MS: [u64; 3] = [50, 100, 200];

/// Plotting area.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 40.0;
/// Colours that are told apart without colour vision, with a dash each.
const LINES: [(&str, &str); 6] =
    [(BLUE, ""), (RUST, "6 3"), (GREEN, "2 3"), (VIOLET, "8 3 2 3"), ("#7a7a00", "1 4"), (INK, "10 4")];

/// A line of a plot.
pub struct PlotLine {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// How values lie across a plot.
#[derive(Clone, Copy)]
pub enum AxisScale {
    Linear,
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

/// Measures everything, prints a line per setting, writes the page. Whether all results are correct.
pub fn run(args: &MarketArgs, file: &Path, json: bool) -> Result<bool, Error> {
    let mut lan = Vec::new();
    for circuit in [SelectionCircuit::Paper, SelectionCircuit::Small] {
        for parties in PARTIES {
            for resources in RESOURCES {
                lan.push(one(&MarketArgs { circuit, parties, resources, ..args.clone() }, json)?);
            }
        }
    }
    let mut wan = Vec::new();
    for (circuit, parties) in [SelectionCircuit::Paper, SelectionCircuit::Shallow]
        .into_iter()
        .flat_map(|c| FAR_PARTIES.map(|p| (c, p)))
    {
        for (resources, round_trip) in FAR_RESOURCES.into_iter().flat_map(|r| ROUND_TRIPS_MS.map(|t| (r, t)))
        {
            // Pipes have no delay: what the engine usually takes is in their place.
            let transport = args.transport.filter(|name| *name != TransportName::Memory);
            let far =
                MarketArgs { delay: TravelTime { delay_ms: round_trip / 2 }, transport, ..args.clone() };
            wan.push(one(&MarketArgs { circuit, parties, resources, ..far }, json)?);
        }
    }
    output::write_file(file, page(&lan, &wan).as_bytes())?;
    output::print(&format!("figures: {}", file.display()))?;
    Ok(lan.iter().chain(&wan).all(|s| s.correct))
}

fn one(args: &MarketArgs, json: bool) -> Result<MarketSummary, Error> {
    let summary = args.measure()?;
    super::tell(&summary, json, |summary| {
        let MarketSummary { resources, parties, circuit, round_trip_ms, seconds, .. } = summary;
        format!(
            "{circuit:8} {resources:>5} resources {parties:>3} parties {round_trip_ms:>4} ms: {seconds:>8.3} \
             s {:>10}",
            bytes(summary.bytes)
        )
    })?;
    Ok(summary)
}

fn page(lan: &[MarketSummary], wan: &[MarketSummary]) -> String {
    let mut figures = Vec::new();
    let seconds = |s: &MarketSummary| s.seconds;
    let bytes = |s: &MarketSummary| s.bytes as f64;
    for circuit in [SelectionCircuit::Paper, SelectionCircuit::Small] {
        let of: Vec<&MarketSummary> = lan.iter().filter(|s| s.circuit == circuit.to_string()).collect();
        for (title, value) in [
            (
                format!("Time on one machine, s ({circuit} circuit)"),
                &seconds as &dyn Fn(&MarketSummary) -> f64,
            ),
            (format!("Bytes between all parties ({circuit} circuit)"), &bytes),
        ] {
            figures.push(plot(&title, "parties", AxisScale::Linear, &by_resources(&of, value)));
        }
    }
    for round_trip in ROUND_TRIPS_MS {
        let of: Vec<&MarketSummary> = wan.iter().filter(|s| s.round_trip_ms == round_trip).collect();
        let title = format!("Time with {round_trip} ms round trips, s");
        figures.push(plot(&title, "parties", AxisScale::Linear, &by_circuit(&of, &seconds)));
    }
    let about = "A customer and n - 1 providers, all on one machine; time from the first connection to the \
                 customer's answer. Wide-area runs go through a relay that delays every byte.";
    FigurePage {
        name: "tacit bench market",
        title: "Best of many resources: figures 3 to 5 of Choi et al. (2012), measured again",
        about: vec![words("p", "", about)],
        figures,
        head: &[
            "circuit",
            "resources",
            "parties",
            "round trip, ms",
            "AND gates",
            "depth",
            "rounds",
            "seconds",
            "bytes",
        ],
        rows: lan.iter().chain(wan).map(table_row).collect(),
    }
    .html()
}

/// A page: a text, figures, and a table of everything.
pub struct FigurePage<'a, const COLUMNS: usize> {
    /// In the frame of a window.
    pub name: &'a str,
    pub title: &'a str,
    pub about: Vec<Markup>,
    pub figures: Vec<Markup>,
    pub head: &'a [&'a str; COLUMNS],
    pub rows: Vec<[String; COLUMNS]>,
}

const STYLE: &str = "\
body{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em}
figure{display:inline-block;margin:0 1em 1em 0}
td,th{padding:0 .8em 0 0;text-align:right}
";

impl<const COLUMNS: usize> FigurePage<'_, COLUMNS> {
    /// As HTML.
    pub fn html(self) -> String {
        let head = self.head.iter().map(|cell| words("th", "", cell));
        let row = |cells: [String; COLUMNS]| element("tr", &[], cells.map(|cell| words("td", "", cell)));
        let table = [element("tr", &[], head)].into_iter().chain(self.rows.into_iter().map(row));
        let names =
            [element("meta", &[("charset", "utf-8")], []), words("title", "", self.name), style_sheet(STYLE)];
        let body = [words("h1", "", self.title)]
            .into_iter()
            .chain(self.about)
            .chain(self.figures)
            .chain([element("table", &[], table)]);
        let page = [element("head", &[], names), element("body", &[], body)];
        format!("<!doctype html>\n{}\n", element("html", &[("lang", "en")], page).into_string())
    }
}

fn table_row(s: &MarketSummary) -> [String; 9] {
    [
        s.circuit.clone(),
        s.resources.to_string(),
        s.parties.to_string(),
        s.round_trip_ms.to_string(),
        s.and_gates.to_string(),
        s.depth.map_or_else(String::new, |depth| depth.to_string()),
        s.rounds.to_string(),
        format!("{:.3}", s.seconds),
        count(s.bytes),
    ]
}

fn by_resources(of: &[&MarketSummary], value: &dyn Fn(&MarketSummary) -> f64) -> Vec<PlotLine> {
    let curve = |resources: u64| {
        let points = of.iter().filter(|s| s.resources == resources);
        let points = points.map(|s| (s.parties as f64, value(s))).collect();
        PlotLine { name: format!("{} resources", count(resources)), points }
    };
    RESOURCES.into_iter().map(curve).collect()
}

fn by_circuit(of: &[&MarketSummary], value: &dyn Fn(&MarketSummary) -> f64) -> Vec<PlotLine> {
    let mut curves: Vec<PlotLine> = Vec::new();
    for s in of {
        let name = format!("{}, {}", s.circuit, count(s.resources));
        let at = curves.iter().position(|c| c.name == name).unwrap_or_else(|| {
            curves.push(PlotLine { name, points: Vec::new() });
            curves.len() - 1
        });
        curves[at].points.push((s.parties as f64, value(s)));
    }
    curves
}

/// A line plot, logarithmic upwards: the values span decades.
pub fn plot(title: &str, across: &str, scale: AxisScale, curves: &[PlotLine]) -> Markup {
    let points = || curves.iter().flat_map(|c| &c.points);
    let (first, last) =
        points().map(|(x, _)| scale.place(*x)).fold((f64::MAX, f64::MIN), |(l, h), x| (l.min(x), h.max(x)));
    let (low, high) = points().fold((f64::MAX, f64::MIN), |(l, h), (_, y)| (l.min(*y), h.max(*y)));
    let (low, high) = (low.max(1e-6).log10().floor(), high.max(1e-6).log10().ceil());
    let span = if last > first { last - first } else { 1.0 };
    let x = |v: f64| LEFT + (scale.place(v) - first) / span * (WIDTH - LEFT - 20.0);
    let y = |v: f64| {
        let up = (v.max(1e-6).log10() - low) / (high - low).max(1.0);
        HEIGHT - BOTTOM - up * (HEIGHT - BOTTOM - 20.0)
    };
    let (right, below) = (WIDTH - 20.0, HEIGHT - BOTTOM);
    let mut parts = Vec::new();
    for decade in low as i32..=high as i32 {
        let value = 10f64.powi(decade);
        let at = y(value);
        parts.push(line((LEFT, at), (right, at)));
        let shown = if decade < 0 { value.to_string() } else { with_unit(value, "").trim_end().to_owned() };
        parts.push(label((LEFT - 6.0, at + 4.0), "end", &[], &shown));
    }
    let mut ticks: Vec<f64> = points().map(|p| p.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    parts.extend(ticks.iter().map(|tick| label((x(*tick), below + 16.0), "middle", &[], &tick.to_string())));
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
        assert_eq!(html.matches(escaped).count(), 10, "{html}");
    }
}
