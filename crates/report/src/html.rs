//! The report as one HTML page: nothing is loaded from anywhere, nothing runs, and every text is escaped.
//!
//! The page is for an analyst: the answer first, then how sure it is, then what was paid for it in privacy,
//! time and bytes. It carries no date, so the same report gives the same page.

mod plots;
#[cfg(test)]
pub(crate) mod samples;
mod tables;
#[cfg(test)]
mod tests;

use crate::summary::has_exact_numbers;
use crate::wording::{self, IntervalVerdict, MeanScale, label};
use crate::{LiftView, ResultView, RunReport};
use base::clean;
use page::markup::{Markup, element, text, words};

/// Nothing but the page's own style may load, whatever a browser or an editor of the file adds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// The page of one party's report: HTML that is also well-formed XML. All charts are SVG in the page.
#[must_use]
pub fn render(report: &RunReport) -> String {
    let title = format!("{}: what {} sees", clean(&report.study.title), label(&report.party));
    let head = element(
        "head",
        &[],
        [
            element("meta", &[("charset", "utf-8")], []),
            element("meta", &[("http-equiv", "Content-Security-Policy"), ("content", POLICY)], []),
            element("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")], []),
            element("meta", &[("name", "referrer"), ("content", "no-referrer")], []),
            element("meta", &[("name", "robots"), ("content", "noindex")], []),
            words("title", "", title),
            page::markup::style_sheet(include_str!("html/style.css")),
        ],
    );
    let mut parts = vec![header(report)];
    match &report.view {
        ResultView::Lift(view) => parts.extend(lift(report, view)),
        ResultView::Program { outputs, lists } => {
            parts.push(notices(report));
            parts.push(section("Outputs", [tables::outputs(outputs)]));
            if !lists.is_empty() {
                parts.push(section("Rows that matched", tables::lists(lists)));
            }
        }
    }
    parts.push(section("Privacy", tables::privacy(report)));
    parts.push(section("Disclosed beyond the result", tables::disclosed(report)));
    parts.push(section("What the guarantee covers", [list(&report.guarantee)]));
    parts.push(section("Where time and bytes went", cost(report)));
    parts.push(section("Reading of your own files", tables::inputs(&report.inputs)));
    parts.push(section("Study and parties", tables::parties(report)));
    let footer = format!(
        "Made by Tacit. The file report.json beside this page holds the same numbers for programs, in the \
         format {}.",
        clean(&report.format)
    );
    let main = element("main", &[], parts);
    let body = element("body", &[], [main, words("footer", "", footer)]);
    let page = element("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], [head, body]);
    format!("<!DOCTYPE html>\n{}\n", page.into_string())
}

fn section(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("section", &[], [words("h2", "", title)].into_iter().chain(parts))
}

fn paragraph(class: &str, words: impl AsRef<str>) -> Markup {
    page::markup::words("p", class, words)
}

fn list(items: &[String]) -> Markup {
    element("ul", &[], items.iter().map(|item| words("li", "", item)))
}

fn header(report: &RunReport) -> Markup {
    let facts = [
        ("seen by", wording::seen_by(report)),
        ("study", label(&report.study.name)),
        ("hash", label(&report.study.hash)),
        ("engine", label(&report.engine_text())),
        ("mode", label(&report.mode)),
    ];
    let facts = facts.iter().enumerate().flat_map(|(i, (name, value))| {
        let gap = if i == 0 { "" } else { " · " };
        [text(format!("{gap}{name} ")), words("b", "", value)]
    });
    let title = element("h1", &[], [element("bdi", &[], [text(&report.study.title)])]);
    element("header", &[], [title, element("p", &[("class", "meta")], facts)])
}

/// What must be read before the numbers are used.
fn notices(report: &RunReport) -> Markup {
    let mut parts = Vec::new();
    let mut note = |class: &str, inside: Vec<Markup>| {
        parts.push(element("div", &[("class", class), ("role", "note")], inside));
    };
    let stop = |what: &str, why: &str| vec![element("p", &[], [words("strong", "", what), text(why)])];
    if let Some(peer) = wording::drew_the_noise(report) {
        let what = format!("Do not show this report to {peer}: it drew the noise in it. ");
        let why = "It could take the noise out again and read exact values: the noise protects the data only \
                   as long as it does not see these numbers.";
        note("box stop", stop(&what, why));
    }
    if has_exact_numbers(&report.view) {
        let why = "It contains exact numbers, without noise (marked \"exact\" below). The guarantee holds \
                   for the party that reads this report, not for anyone it is shown to.";
        note("box stop", stop("Do not pass on this report. ", why));
    }
    if report.stored {
        let what = "This is the stored answer of an earlier run of the same study on the same data: no new \
                    noise was drawn and nothing was charged.";
        note("box", vec![paragraph("", what)]);
    }
    if !report.broke_off.is_empty() {
        let counts = report.broke_off.iter().map(|count| paragraph("", format!("{}.", count.text())));
        note("box", counts.collect());
    }
    if !report.warnings.is_empty() {
        note("box", report.warnings.iter().map(|warning| paragraph("", warning)).collect());
    }
    Markup::all(parts)
}

fn lift(report: &RunReport, view: &LiftView) -> Vec<Markup> {
    let scale = MeanScale::of([view]);
    let [headline, interval] = wording::headline(view, &scale);
    let mut parts = vec![paragraph("headline", headline), paragraph("lead", interval)];
    if let Some(estimate) = wording::overall(view).and_then(|cell| cell.estimate) {
        let class = match wording::verdict(view, &estimate) {
            IntervalVerdict::Test => "chip good",
            IntervalVerdict::Control => "chip bad",
            IntervalVerdict::Unclear => "chip",
        };
        let verdict = words("span", class, wording::verdict_words(view, &estimate));
        parts.push(element("p", &[], [verdict, words("span", "note", wording::better(view))]));
    }
    parts.push(notices(report));
    let clamp = format!(
        "The interval covers the difference of clamped means: no person adds more than {} to a total. Where \
         people were clamped, the difference without the clamp may be another.",
        page::numbers::count(view.clamp)
    );
    if view.cells.iter().all(|cell| cell.estimate.is_none()) {
        // No axis, no rates: there is nothing to draw.
        parts.push(section("Effect", [tables::effects(view, &scale)]));
    } else {
        let notes = wording::multiplicity(view).into_iter().chain([clamp]);
        let shown = [plots::forest(view, &scale), tables::effects(view, &scale)];
        parts.push(section("Effect", shown.into_iter().chain(notes.map(|note| paragraph("note", note)))));
        let why = match &*report.mode {
            "sums" => "The result for everybody was refused, and with it the rate of each arm.",
            _ => "This mode releases the difference only, not the rate of each arm.",
        };
        let rates = plots::rates(view, &scale).unwrap_or_else(|| paragraph("note", why));
        parts.push(section("Rates per arm", [rates]));
    }
    let released = match view.cells.iter().all(|cell| cell.counts.is_empty()) {
        true => paragraph("note", "No number was released."),
        false => tables::released(view),
    };
    parts.push(section("Every number released", [released]));
    parts
}

fn cost(report: &RunReport) -> Vec<Markup> {
    let mut parts = Vec::new();
    if report.stages.is_empty() {
        parts.push(paragraph("note", "Nothing was computed in this run."));
    } else {
        parts.push(element("div", &[("class", "pair")], plots::stages(report)));
        parts.push(tables::stages(report));
    }
    parts.push(tables::totals(report));
    parts
}
