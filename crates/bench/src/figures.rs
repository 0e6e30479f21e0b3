//! `bench market --figures`: figures 3 to 5 of Choi et al. (2012) again, with time and bytes of ours, as one
//! page.

use super::gmw::TravelTime;
use super::market::{MarketArgs, MarketSummary};
use super::names::TransportName;
use base::Error;
use page::markup::words;
use page::numbers::{bytes, count};
use page::plot::{AxisScale, FigurePage, PlotLine, plot};
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
