//! `--figure`: how the releases of each number lie around the exact one.

use base::Error;
use job::simulate::{SimulatedNumber, Simulation};
use page::markup::{Markup, element, words};
use page::numbers::{count, percent};
use page::picture::{BLUE, INK, RUST, label, line, picture, rect};
use page::plot::FigurePage;
use std::path::Path;
use terminal::output;

/// Plotting area of one number.
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 20.0;
const BOTTOM: f64 = 36.0;
/// Most numbers that are drawn: the table has them all.
const DRAWN: usize = 60;

/// A number with where it stands.
struct Placed<'a> {
    viewer: &'a str,
    part: &'a str,
    number: &'a SimulatedNumber,
}

/// Writes the page.
///
/// # Errors
/// When nothing was drawn, or the file cannot be written.
pub fn write(file: &Path, simulation: &Simulation) -> Result<(), Error> {
    let all = numbers(simulation);
    if all.iter().all(|placed| placed.number.spread.is_none()) {
        return Err(Error::input(
            "--figure shows how noise spreads, and nothing is noised here: remove --figure, or --noise off",
        ));
    }
    let drawn = all.iter().filter_map(histogram).take(DRAWN);
    let about = [
        simulation.warning.clone(),
        format!(
            "Each figure shows where {} releases of a number lie, and as a line the exact number. The table \
             has all numbers.",
            count(simulation.draws)
        ),
    ];
    let page = FigurePage {
        name: "tacit simulate",
        title: &format!("{}: what noise does to each number", simulation.title),
        about: about.map(|text| words("p", "", text)).into(),
        figures: drawn.collect(),
        head: &["seen by", "part", "number", "exact", "95 % of releases", "mean error", "deviation", "held"],
        rows: all.iter().map(row).collect(),
    };
    output::write_file(file, page.html().as_bytes())
}

fn numbers(simulation: &Simulation) -> Vec<Placed<'_>> {
    let views = simulation.runs.iter().flat_map(|run| &run.views);
    let parts = views.flat_map(|view| view.parts.iter().map(|part| (&*view.viewer, part)));
    let numbers = |(viewer, part)| -> Vec<Placed<'_>> { placed(viewer, part) };
    parts.flat_map(numbers).collect()
}

fn placed<'a>(viewer: &'a str, part: &'a job::simulate::SimulatedPart) -> Vec<Placed<'a>> {
    part.numbers.iter().map(|number| Placed { viewer, part: &part.title, number }).collect()
}

fn row(placed: &Placed<'_>) -> [String; 8] {
    let Placed { viewer, part, number } = placed;
    let exact = number.shown(number.exact);
    let names = [(*viewer).to_owned(), (*part).to_owned(), number.label.clone(), exact];
    let spread = match &number.spread {
        None => Default::default(),
        Some(spread) => [
            number.spread_words(),
            number.apart(spread.mean_error),
            number.apart(spread.deviation),
            spread.interval_held.or(spread.noise_held).map_or_else(String::new, percent),
        ],
    };
    let [a, b, c, d] = names;
    let [e, f, g, h] = spread;
    [a, b, c, d, e, f, g, h]
}

/// Bars of how often releases lie where, and the exact number.
fn histogram(placed: &Placed<'_>) -> Option<Markup> {
    let number = placed.number;
    let bins = number.spread.as_ref()?.bins.as_ref()?;
    let most = bins.counts.iter().copied().max().filter(|most| *most > 0)? as f64;
    let (right, below) = (WIDTH - LEFT, HEIGHT - BOTTOM);
    let across = |value: f64| LEFT + (value - bins.from) / (bins.to - bins.from) * (right - LEFT);
    let width = (right - LEFT) / bins.counts.len() as f64;
    let mut parts = vec![line((LEFT, below), (right, below))];
    for (at, count) in bins.counts.iter().enumerate() {
        let height = *count as f64 / most * (below - 24.0);
        parts.push(rect((LEFT + at as f64 * width, below - height), ((width - 1.0).max(0.5), height), BLUE));
    }
    let ends = [(bins.from, "start"), (bins.to, "end")];
    parts.extend(ends.map(|(value, anchor)| {
        label((across(value), below + 16.0), anchor, &[("fill", INK)], &number.shown(Some(value)))
    }));
    if let Some(exact) = number.exact {
        parts.push(rect((across(exact) - 1.0, 20.0), (2.0, below - 20.0), RUST));
        let words = format!("exact {}", number.shown(number.exact));
        let at = across(exact).clamp(LEFT + 60.0, right - 60.0);
        parts.push(label((at, 14.0), "middle", &[("fill", RUST)], &words));
    }
    let unit = if number.unit.is_empty() { String::new() } else { format!(", {}", number.unit) };
    let title = format!("{}{unit} ({}, seen by {})", number.label, placed.part, placed.viewer);
    let drawn = picture(&title, (WIDTH, HEIGHT), parts);
    Some(element("figure", &[], [words("figcaption", "", &title), drawn]))
}
