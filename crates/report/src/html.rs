//! The report as one HTML page: nothing is loaded from anywhere, nothing runs, and every text is escaped.
//!
//! The page is for an analyst: the answer first, then how sure it is, then what was paid for it in privacy,
//! time and bytes. It carries no date, so the same report gives the same page.

mod derived;
mod plots;
#[cfg(test)]
pub(crate) mod samples;
mod tables;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use plots::stripes;

use crate::wording::{self, IntervalVerdict, KeptView, MeanScale, label};
use crate::{DerivedView, LiftView, ProgramList, ProgramOutput, PublicReport, ResultView, RunReport};
use base::clean;
use page::markup::{Markup, element, prose, text, words};

/// Nothing but the page's own style may load, whatever a browser or an editor of the file adds.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// What makes the page of the public result, beside that of a report.
const PASS_ON: &str = "tacit report --public report.json --html public.html";

/// As many released numbers stand on the page without a click.
const UNFOLDED: usize = 12;

/// The page of one party's report: HTML that is also well-formed XML. All charts are SVG in the page.
#[must_use]
pub fn render(report: &RunReport) -> String {
    let title = match report.is_public() {
        true => format!("{}: report of {}", clean(&report.study.title), wording::whose(report)),
        false => format!("{}: what {} sees", clean(&report.study.title), wording::whose(report)),
    };
    let parts = [header(report)].into_iter().chain(sections(report, PageStands::InFolder)).collect();
    let footer = format!(
        "Made by Tacit. The file report.json beside this page holds the same numbers for programs, in the \
         format {}.",
        clean(&report.format)
    );
    page(title, parts, footer)
}

/// Where a page of a report stands, and so how its reader makes what may be passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageStands {
    /// In a file beside `report.json`: by a command.
    InFolder,
    /// In a service, which has it ready.
    Served,
}

/// All of a report beneath its title, for a page that has a frame of its own.
#[must_use]
pub fn sections(report: &RunReport, stands: PageStands) -> Vec<Markup> {
    let mut parts = results(report, stands);
    parts.push(section("Privacy", tables::privacy(report)));
    parts.push(section("Disclosed beyond the result", tables::disclosed(report)));
    parts.push(section("What the guarantee covers", [list(&report.guarantee)]));
    let own_warnings = report.own_warnings.iter().map(|warning| paragraph("", warning));
    let own_warnings = (!report.own_warnings.is_empty()).then(|| boxed("box", own_warnings));
    parts.push(section(wording::OWN_FILES, tables::inputs(report).into_iter().chain(own_warnings)));
    parts.push(section("Parties", tables::parties(report)));
    let computed = tables::computed(&report.study, &report.mode, Some(wording::engine(report)));
    parts.push(section(wording::COMPUTED, [computed].into_iter().chain(cost(report))));
    parts
}

/// The page of a public result by itself: the same at all parties.
#[must_use]
pub fn render_public(public: &PublicReport) -> String {
    let study = &public.study;
    let mut shown_facts = vec![("study", label(&study.name)), ("parties", wording::names(&public.parties))];
    if !public.servers.is_empty() {
        shown_facts.push(("computed by", wording::names(&public.servers)));
    }
    let parts = [titled(&study.title, &shown_facts)].into_iter().chain(public_sections(public)).collect();
    let footer = format!(
        "Made by Tacit of what all parties of the study have alike, in the format {}.",
        clean(&public.format)
    );
    page(format!("{}: public result", clean(&study.title)), parts, footer)
}

/// All of a public result beneath its title.
#[must_use]
pub fn public_sections(public: &PublicReport) -> Vec<Markup> {
    let (mode, view, parties) = (&public.mode, &public.public, &public.parties);
    let shown = Shown { mode, view, parties, heading: "h2", ids: "" };
    let may = boxed("box good", [paragraph("", wording::public(Some(&public.public_terms)))]);
    let lost = match &public.public {
        ResultView::Lift(view) => wording::lost_in_noise(view),
        ResultView::Program { .. } => None,
    };
    let lost = lost.map(|why| boxed("box", [paragraph("", why)]));
    let mut parts = result(shown, Markup::all([may].into_iter().chain(lost)));
    parts.push(section("Privacy", [tables::public_cost(&public.public_terms)]));
    parts.push(section("What the guarantee covers", [list(&public.public_terms.guarantee)]));
    parts.push(section(wording::COMPUTED, [tables::computed(&public.study, &public.mode, None)]));
    parts
}

fn page(title: String, parts: Vec<Markup>, footer: String) -> String {
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
            page::markup::style_sheet(page::SHEET),
        ],
    );
    let main = element("main", &[], parts);
    let body = element("body", &[], [main, words("footer", "", footer)]);
    let page = element("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], [head, body]);
    format!("<!DOCTYPE html>\n{}\n", page.into_string())
}

fn section(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    headed("h2", title, parts)
}

fn headed(heading: &'static str, title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("section", &[], [words(heading, "", title)].into_iter().chain(parts))
}

fn paragraph(class: &str, said: impl AsRef<str>) -> Markup {
    prose("p", class, said)
}

fn list(items: &[String]) -> Markup {
    element("ul", &[], items.iter().map(|item| prose("li", "", item)))
}

fn header(report: &RunReport) -> Markup {
    let facts = [("seen by", wording::seen_by(report)), ("study", label(&report.study.name))];
    titled(&report.study.title, &facts)
}

fn titled(title: &str, facts: &[(&str, String)]) -> Markup {
    let facts = facts.iter().enumerate().flat_map(|(i, (name, value))| {
        let gap = if i == 0 { "" } else { " · " };
        [text(format!("{gap}{name} ")), words("b", "", value)]
    });
    let title = element("h1", &[], [element("bdi", &[], [text(title)])]);
    element("header", &[], [title, element("p", &[("class", "meta")], facts)])
}

/// One view on the page, alone or as one of two.
#[derive(Clone, Copy)]
struct Shown<'a> {
    /// Of the release.
    mode: &'a str,
    view: &'a ResultView,
    /// Names of all parties of the study.
    parties: &'a [String],
    /// Of its sections.
    heading: &'static str,
    /// Before the ids of its figures.
    ids: &'static str,
}

impl Shown<'_> {
    fn section(&self, title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
        headed(self.heading, title, parts)
    }
}

/// What anybody may publish first, then what this party alone sees.
fn results(report: &RunReport, stands: PageStands) -> Vec<Markup> {
    let run = run_notices(report);
    if let Some(nothing) = wording::nothing_seen(report) {
        return vec![paragraph("headline", nothing), run];
    }
    let parties = &wording::parties(report);
    let own = Shown { mode: &report.mode, view: &report.view, parties, heading: "h2", ids: "" };
    let all_see = || {
        let how = match stands {
            PageStands::InFolder => {
                element("p", &[], [text("In the folder of this page: "), words("code", "", PASS_ON)])
            }
            PageStands::Served => {
                paragraph("", "Take along public.html, public.json or public.csv for that.")
            }
        };
        Markup::all([public_box(report), boxed("box", [paragraph("", wording::own_report(report)), how])])
    };
    match &report.public {
        None => result(own, Markup::all([own_notices(report), run])),
        Some(_) if report.is_public() => result(own, Markup::all([all_see(), own_notices(report), run])),
        Some(public) => {
            let everybody = Shown { view: public, heading: "h3", ids: "public-", ..own };
            let own = Shown { heading: "h3", ..own };
            vec![
                section("What everybody sees", result(everybody, Markup::all([all_see(), run]))),
                section(
                    &format!("What {} alone sees", label(&report.party)),
                    result(own, own_notices(report)),
                ),
            ]
        }
    }
}

/// What may be done with the public result, and what it costs who reads it.
fn public_box(report: &RunReport) -> Markup {
    let cost = report.public_terms.as_ref().and_then(wording::public_cost);
    let all = [wording::public(report.public_terms.as_ref()).to_owned()].into_iter().chain(cost);
    boxed("box good", all.map(|sentence| paragraph("", sentence)))
}

fn result(shown: Shown<'_>, notices: Markup) -> Vec<Markup> {
    match shown.view {
        ResultView::Lift(view) => lift(shown, view, notices),
        ResultView::Program { outputs, lists, derived } => program(shown, (outputs, lists, derived), notices),
    }
}

fn program(
    shown: Shown<'_>,
    (outputs, lists, derived): (&[ProgramOutput], &[ProgramList], &[DerivedView]),
    notices: Markup,
) -> Vec<Markup> {
    let mut parts = vec![notices];
    let (behind, outputs) = wording::behind(outputs, derived);
    if !derived.is_empty() {
        let folded = (!behind.is_empty()).then(|| derived::behind(&behind));
        parts.push(shown.section("Results", derived::numbers(derived, shown.ids).into_iter().chain(folded)));
    }
    if !outputs.is_empty() {
        parts.push(shown.section("Outputs", [tables::outputs(&outputs)]));
    }
    if !lists.is_empty() {
        parts.push(shown.section("Rows that matched", tables::lists(lists)));
    }
    parts
}

fn boxed(class: &str, inside: impl IntoIterator<Item = Markup>) -> Markup {
    element("div", &[("class", class), ("role", "note")], inside)
}

/// What must be read before this party's own numbers are used.
fn own_notices(report: &RunReport) -> Markup {
    let mut parts = Vec::new();
    let stop = |what: &str, why: &str| {
        boxed("box stop", [element("p", &[], [words("strong", "", what), text(why)])])
    };
    if let Some(peer) = wording::drew_the_noise(report) {
        let what = format!("Do not show this report to {peer}: it drew the noise in it. ");
        let why = "It could take the noise out again and read exact values: the noise protects the data only \
                   as long as it does not see these numbers.";
        parts.push(stop(&what, why));
    }
    if let Some(kept) = KeptView::of(report) {
        let why = match kept.exact {
            true => {
                "It contains exact numbers, without noise (marked \"exact\" below). The guarantee holds for \
                 the party that reads this report, not for anyone it is shown to."
            }
            false => &format!("{}.", wording::capital(&kept.why)),
        };
        parts.push(stop(&format!("{}. ", kept.what), why));
    }
    Markup::all(parts)
}

/// What must be read before any number is used.
fn run_notices(report: &RunReport) -> Markup {
    let mut parts = Vec::new();
    let mut note = |inside: Vec<Markup>| parts.push(boxed("box", inside));
    if report.stored {
        let what = "This is the stored answer of an earlier run of the same study on the same data: no new \
                    noise was drawn and nothing was charged.";
        note(vec![paragraph("", what)]);
    }
    if !report.broke_off.is_empty() {
        let counts = report.broke_off.iter().map(|count| paragraph("", format!("{}.", count.text())));
        note(counts.collect());
    }
    if !report.warnings.is_empty() {
        note(report.warnings.iter().map(|warning| paragraph("", warning)).collect());
    }
    Markup::all(parts)
}

fn lift(shown: Shown<'_>, view: &LiftView, notices: Markup) -> Vec<Markup> {
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
    parts.push(notices);
    let clamp = format!(
        "The interval covers the difference of clamped means: no person adds more than {} to a total. Where \
         people were clamped, the difference without the clamp may be another.",
        wording::clamp(view)
    );
    if view.cells.iter().all(|cell| cell.estimate.is_none()) {
        // No axis, no rates: there is nothing to draw.
        parts.push(shown.section("Effect", [tables::effects(view, &scale)]));
    } else {
        let notes = wording::multiplicity(view).into_iter().chain(wording::no_relative(view));
        let notes = [wording::whose_means(view, shown.parties)].into_iter().chain(notes);
        let notes = notes.chain(wording::means_beyond(view)).chain([clamp]);
        let effect = [plots::forest(view, &scale, shown.ids), tables::effects(view, &scale)];
        parts.push(
            shown.section("Effect", effect.into_iter().chain(notes.map(|note| paragraph("note", note)))),
        );
        let why = match shown.mode {
            "sums" => "The result for all people was refused, and with it the mean of each arm.",
            _ => "This mode releases the difference only, not the mean of each arm.",
        };
        let means = plots::means(view, &scale, shown.ids).unwrap_or_else(|| paragraph("note", why));
        let beyond = wording::ends_beyond(view).map(str::to_owned);
        let notes = beyond.into_iter().chain(wording::noise_alone(view)).map(|text| paragraph("note", text));
        parts.push(shown.section("Mean of each arm", [means].into_iter().chain(notes)));
    }
    parts.push(shown.section("Every number released", released(view)));
    parts
}

/// The numbers behind an estimate, folded where there are many: who checks an estimate needs them.
fn released(view: &LiftView) -> Vec<Markup> {
    let numbers: usize = view.cells.iter().map(|cell| cell.counts.len()).sum();
    let told = wording::numbers_told([view], "this table");
    let notes = wording::negative_numbers(view).map(|text| paragraph("note", text));
    let quantities = (numbers > 0).then(|| list(&wording::quantities(view)));
    match numbers {
        0 => vec![paragraph("note", told)],
        1..=UNFOLDED => [paragraph("note", told), tables::released(view)]
            .into_iter()
            .chain(quantities)
            .chain(notes)
            .collect(),
        _ => {
            let inside = [tables::released(view)].into_iter().chain(quantities).chain(notes);
            vec![folded(told.trim_end_matches('.'), inside)]
        }
    }
}

/// What is one click away.
fn folded(summary: &str, inside: impl IntoIterator<Item = Markup>) -> Markup {
    element("details", &[], [words("summary", "", summary)].into_iter().chain(inside))
}

fn cost(report: &RunReport) -> Vec<Markup> {
    let mut parts = Vec::new();
    if report.stages.is_empty() {
        parts.push(paragraph("note", "Nothing was computed in this run."));
    } else {
        parts.push(element("div", &[("class", "pair")], plots::stages(report)));
        parts.extend(tables::stages(report));
        parts.extend(wording::values_released(report).map(|text| paragraph("note", text)));
    }
    parts.push(tables::totals(report));
    parts
}
