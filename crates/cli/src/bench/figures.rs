//! `bench market --figures`: figures 3 to 5 of Choi et al. (2012) again, with time and bytes of ours, as one page.

use super::market::{Summary, measure};
use crate::args::{Bench, EngineName, TransportName};
use crate::output;
use base::Error;
use program::lower::combine::Shape;
use std::fmt::Write;
use std::path::Path;

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
const LINES: [(&str, &str); 6] = [
    ("#0b5fa5", ""),
    ("#b3541e", "6 3"),
    ("#3f7d20", "2 3"),
    ("#6a3d9a", "8 3 2 3"),
    ("#7a7a00", "1 4"),
    ("#444444", "10 4"),
];

/// A line of a plot.
pub(super) struct Curve {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// How values lie across a plot.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Linear,
    Log,
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.max(1e-6).log10(),
        }
    }
}

/// Measures everything, prints a line per setting, writes the page. Whether all results are correct.
///
/// # Errors
/// When a party fails, or the page cannot be written.
pub fn run(args: &Bench, file: &Path) -> Result<bool, Error> {
    let near = Bench { delay_ms: 0, ..args.clone() };
    let mut lan = Vec::new();
    for circuit in [Shape::Paper, Shape::Small] {
        for parties in PARTIES {
            for resources in RESOURCES {
                lan.push(one(&Bench { circuit, parties, resources, ..near.clone() })?);
            }
        }
    }
    let mut wan = Vec::new();
    for (circuit, parties) in
        [Shape::Paper, Shape::Shallow].into_iter().flat_map(|c| FAR_PARTIES.map(|p| (c, p)))
    {
        for (resources, round_trip) in FAR_RESOURCES.into_iter().flat_map(|r| ROUND_TRIPS_MS.map(|t| (r, t)))
        {
            // Pipes have no delay, and four servers want private channels.
            let transport = match args.transport {
                TransportName::Memory if args.engine == EngineName::Ring4 => TransportName::Tls,
                TransportName::Memory => TransportName::Tcp,
                other => other,
            };
            let far = Bench { delay_ms: round_trip / 2, transport, ..args.clone() };
            wan.push(one(&Bench { circuit, parties, resources, ..far })?);
        }
    }
    std::fs::write(file, page(&lan, &wan))
        .map_err(|e| Error::io(format!("cannot write {}", file.display()), &e))?;
    output::print(&format!("figures: {}", file.display()))?;
    Ok(lan.iter().chain(&wan).all(|s| s.correct))
}

fn one(args: &Bench) -> Result<Summary, Error> {
    let summary = measure(args)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        let Summary { resources, parties, circuit, round_trip_ms, seconds, bytes, .. } = &summary;
        output::print(&format!(
            "{circuit:8} {resources:>5} resources {parties:>3} parties {round_trip_ms:>4} ms: {seconds:>8.3} s {:>10}",
            output::bytes(*bytes)
        ))?;
    }
    Ok(summary)
}

fn page(lan: &[Summary], wan: &[Summary]) -> String {
    let mut figures = String::new();
    let seconds = |s: &Summary| s.seconds;
    let bytes = |s: &Summary| s.bytes as f64;
    for circuit in [Shape::Paper, Shape::Small] {
        let of: Vec<&Summary> = lan.iter().filter(|s| s.circuit == circuit.to_string()).collect();
        for (title, value) in [
            (format!("Time on one machine, s ({circuit} circuit)"), &seconds as &dyn Fn(&Summary) -> f64),
            (format!("Bytes between all parties ({circuit} circuit)"), &bytes),
        ] {
            figures.push_str(&plot(&title, "parties", Scale::Linear, &by_resources(&of, value)));
        }
    }
    for round_trip in ROUND_TRIPS_MS {
        let of: Vec<&Summary> = wan.iter().filter(|s| s.round_trip_ms == round_trip).collect();
        let title = format!("Time with {round_trip} ms round trips, s");
        figures.push_str(&plot(&title, "parties", Scale::Linear, &by_circuit(&of, &seconds)));
    }
    let rows: String = lan.iter().chain(wan).map(table_row).collect();
    page_of(
        "tacit bench market",
        "Best of many resources: figures 3 to 5 of Choi et al. (2012), measured again",
        "<p>A customer and n - 1 providers, all on one machine; time from the first connection to the customer's answer. \
         Wide-area runs go through a relay that delays every byte.</p>",
        &figures,
        "<th>circuit<th>resources<th>parties<th>round trip, ms<th>AND gates<th>depth<th>rounds<th>seconds<th>bytes",
        &rows,
    )
}

/// A page: a text, figures, and a table of everything.
pub(super) fn page_of(name: &str, title: &str, text: &str, figures: &str, head: &str, rows: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{name}</title>\n\
         <style>body{{font:15px/1.5 system-ui,sans-serif;max-width:62em;margin:2em auto;padding:0 1em}}\
         figure{{display:inline-block;margin:0 1em 1em 0}}td,th{{padding:0 .8em 0 0;text-align:right}}</style>\n\
         <h1>{title}</h1>\n{text}\n{figures}\n<table><tr>{head}</tr>\n{rows}</table></html>\n"
    )
}

fn table_row(s: &Summary) -> String {
    format!(
        "<tr><td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{:.3}<td>{}</tr>\n",
        s.circuit,
        s.resources,
        s.parties,
        s.round_trip_ms,
        s.and_gates,
        s.depth.map_or_else(String::new, |depth| depth.to_string()),
        s.rounds,
        s.seconds,
        output::grouped(s.bytes)
    )
}

fn by_resources(of: &[&Summary], value: &dyn Fn(&Summary) -> f64) -> Vec<Curve> {
    let curve = |resources: u64| {
        let points = of.iter().filter(|s| s.resources == resources);
        let points = points.map(|s| (s.parties as f64, value(s))).collect();
        Curve { name: format!("{} resources", output::grouped(resources)), points }
    };
    RESOURCES.into_iter().map(curve).collect()
}

fn by_circuit(of: &[&Summary], value: &dyn Fn(&Summary) -> f64) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for s in of {
        let name = format!("{}, {}", s.circuit, output::grouped(s.resources));
        let at = curves.iter().position(|c| c.name == name).unwrap_or_else(|| {
            curves.push(Curve { name, points: Vec::new() });
            curves.len() - 1
        });
        curves[at].points.push((s.parties as f64, value(s)));
    }
    curves
}

/// A line plot, logarithmic upwards: the values span decades.
pub(super) fn plot(title: &str, across: &str, scale: Scale, curves: &[Curve]) -> String {
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
    let legend = 18.0 * curves.len() as f64;
    let mut svg = format!(
        "<figure><figcaption>{title}</figcaption><svg width=\"{WIDTH}\" height=\"{}\" role=\"img\" \
         aria-label=\"{title}\" font-size=\"12\">",
        HEIGHT + legend
    );
    for decade in low as i32..=high as i32 {
        let (at, value) = (y(10f64.powi(decade)), 10f64.powi(decade));
        let label = if decade < 0 { format!("{value}") } else { output::scaled(value).trim().to_owned() };
        // Writing to a string does not fail, here and below.
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ccc\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            WIDTH - 20.0,
            LEFT - 6.0,
            at + 4.0
        );
    }
    let mut ticks: Vec<f64> = points().map(|p| p.0).collect();
    ticks.sort_by(f64::total_cmp);
    ticks.dedup();
    for tick in ticks {
        let (at, below) = (x(tick), HEIGHT - BOTTOM + 16.0);
        let _ = write!(svg, "<text x=\"{at:.1}\" y=\"{below}\" text-anchor=\"middle\">{tick}</text>");
    }
    let (middle, below) = ((LEFT + WIDTH - 20.0) / 2.0, HEIGHT - BOTTOM + 32.0);
    let _ = write!(svg, "<text x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">{across}</text>");
    for (index, (curve, (colour, dash))) in curves.iter().zip(LINES.iter().cycle()).enumerate() {
        let places: Vec<String> =
            curve.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let style =
            format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"");
        let at = HEIGHT + 18.0 * index as f64 + 8.0;
        let _ = write!(
            svg,
            "<polyline points=\"{}\" {style}/><path d=\"M{LEFT} {at}h40\" {style}/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            places.join(" "),
            LEFT + 48.0,
            at + 4.0,
            curve.name
        );
    }
    svg.push_str("</svg></figure>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plot_keeps_its_points_inside() {
        let points = vec![(3.0, 0.04), (13.0, 2.5)];
        let svg = plot("t", "parties", Scale::Linear, &[Curve { name: "100 resources".into(), points }]);
        let line = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
        for place in line.split(' ') {
            let (x, y) = place.split_once(',').expect("a point");
            let (x, y): (f64, f64) = (x.parse().expect("a number"), y.parse().expect("a number"));
            assert!((LEFT..WIDTH).contains(&x) && (0.0..HEIGHT).contains(&y), "{place}");
        }
        assert!(svg.contains("100 resources"));
    }
}
