//! The result on a terminal: one party's report, or the views of both side by side as `tacit demo` shows
//! them.
//!
//! Our own words are ASCII; names and labels come from the study and the peer, so they are cleaned of control
//! and bidi characters and shortened.

mod derived;
#[cfg(test)]
mod tests;

use crate::wording::{self, KeptView, LABEL_CHARS, MeanScale, label};
use crate::{
    CellView, CountView, LiftView, ProgramList, ProgramOutput, PublicReport, ResultView, RunReport,
    StageReport,
};
use base::clean;
use page::lines::{plain, wrapped};
use page::numbers::{
    bytes, count, duration, handled, p_value, percent, power, rho, scaled, short, significant,
};
use std::fmt::Write;

/// Columns of the label in front of the numbers.
const LABEL_WIDTH: usize = 38;
/// Columns of one party's numbers, without a breakdown and with one.
const VIEW_WIDTH: usize = 26;
const VIEW_WIDTH_WITH_CELLS: usize = 30;
/// Columns of the name of a stage, at least.
const STAGE_WIDTH: usize = 9;
/// Columns of running text where no terminal says how many there are.
pub const USUAL_COLUMNS: usize = 110;
/// Text that is being written, in lines of so many columns.
struct SummaryText {
    text: String,
    columns: usize,
}

impl SummaryText {
    fn new(columns: usize) -> Self {
        Self { text: String::new(), columns }
    }
}

/// One party's report, in lines of so many columns. Lines end with a newline.
#[must_use]
pub fn terminal(report: &RunReport, columns: usize) -> String {
    told(report, columns, "report.html")
}

/// The same for who has the report in hand: all numbers are in `numbers_in`.
#[must_use]
pub fn told(report: &RunReport, columns: usize, numbers_in: &str) -> String {
    let mut out = SummaryText::new(columns);
    line(&mut out, &clean(&report.study.title));
    facts(&mut out, &[label(&report.study.name), format!("seen by {}", wording::seen_by(report))]);
    if report.stored {
        line(&mut out, "Stored answer of an earlier run: no new noise, no charge.");
    }
    line(&mut out, "");
    match (wording::nothing_seen(report), &report.public) {
        (Some(nothing), _) => paragraph(&mut out, "  ", &nothing),
        (None, None) => {
            let party = label(&report.party);
            let shown = [ShownView { party: &party, view: &report.view }];
            result_lines(&mut out, &shown, &wording::parties(report), numbers_in);
        }
        (None, Some(public)) => public_and_own(&mut out, report, (public, numbers_in)),
    }
    line(&mut out, "");
    privacy_lines(&mut out, report);
    paragraph(&mut out, "  ", &format!("Learned besides: {}", besides(report)));
    for server in report.servers.iter().flat_map(|servers| &servers.members) {
        let saw = clean(&server.saw);
        paragraph(&mut out, "  ", &format!("{} saw {saw}.", label(&server.name)));
    }
    for count in &report.broke_off {
        paragraph(&mut out, "  ", &clean(&format!("{}.", count.text())));
    }
    for warning in &report.warnings {
        paragraph(&mut out, "  ", &format!("warning: {}", clean(warning)));
    }
    if let Some(peer) = wording::drew_the_noise(report) {
        let peer = label(&peer);
        let what = format!("Do not show this report to {peer}: it drew the noise in it and can take it out.");
        paragraph(&mut out, "  ", &what);
    }
    if let Some(kept) = KeptView::of(report) {
        let what = kept.what.trim_end_matches(" this report");
        paragraph(&mut out, "  ", &format!("{what}: {}.", kept.why));
    }
    own_lines(&mut out, report);
    computed_lines(&mut out, report);
    out.text
}

/// What reading this party's own files did, and what follows from it.
fn own_lines(out: &mut SummaryText, report: &RunReport) {
    line(out, "");
    line(out, &format!("{}. {}", wording::OWN_FILES, wording::FOR_YOU));
    let columns = out.columns;
    wording::input_lines(&report.inputs, columns).iter().for_each(|text| line(out, text));
    wording::own_match(report).iter().for_each(|text| paragraph(out, "  ", text));
    for warning in &report.own_warnings {
        paragraph(out, "  ", &format!("warning: {}", clean(warning)));
    }
}

/// Which study by which engine, and what each stage took.
fn computed_lines(out: &mut SummaryText, report: &RunReport) {
    line(out, "");
    line(out, wording::COMPUTED);
    let of = [
        format!("  engine {}", wording::engine(report)),
        format!("mode {}", label(&report.mode)),
        format!("hash {}", label(&report.study.hash)),
    ];
    facts(out, &of);
    derived::sums_behind(out, report);
    stage_lines(out, &report.stages);
    worker_lines(out, report);
    wording::values_released(report).iter().for_each(|text| paragraph(out, "  ", text));
    let total = format!(
        "Total {}, {}{}, peak {}",
        duration(report.seconds),
        bytes(report.bytes),
        whose_bytes(report),
        wording::peaks(report)
    );
    paragraph(out, "  ", &total);
    if let Some(before) = wording::all_before(report) {
        line(out, &format!("  Before this run went on, in earlier meetings and processes: {before}"));
    }
}

/// What failed in the computation, and what was there before.
fn worker_lines(out: &mut SummaryText, report: &RunReport) {
    if let Some(failed) = report.workers.as_ref().and_then(wording::failed_units) {
        line(out, &format!("  workers   {failed}; these units alone were computed again"));
    }
    if let Some(resumed) = wording::resumed(report) {
        paragraph(out, "  ", &resumed);
    }
}

/// The public result by itself: the same text at all parties, in lines of so many columns.
#[must_use]
pub fn public(public: &PublicReport, columns: usize) -> String {
    let mut out = SummaryText::new(columns);
    let study = &public.study;
    line(&mut out, &clean(&study.title));
    let mut first = vec![label(&study.name), format!("parties {}", wording::names(&public.parties))];
    if !public.servers.is_empty() {
        first.push(format!("computed by {}", wording::names(&public.servers)));
    }
    facts(&mut out, &first);
    line(&mut out, "");
    let shown = ShownView { party: EVERYBODY, view: &public.public };
    let all_in = "what --html, --csv, --excel and --json write";
    result_lines(&mut out, &[shown], &public.parties, all_in);
    line(&mut out, "");
    if let ResultView::Lift(view) = &public.public {
        wording::lost_in_noise(view).into_iter().for_each(|why| paragraph(&mut out, "  ", why));
    }
    paragraph(&mut out, "  ", wording::public(Some(&public.public_terms)));
    let cost = wording::public_cost(&public.public_terms);
    paragraph(&mut out, "  ", &cost.unwrap_or_else(|| format!("{}.", wording::capital(wording::NO_NOISE))));
    line(&mut out, "");
    for sentence in &public.public_terms.guarantee {
        paragraph(&mut out, "  ", &clean(sentence));
    }
    line(&mut out, "");
    line(&mut out, wording::COMPUTED);
    line(&mut out, &format!("  mode      {}, hash {}", label(&public.mode), label(&study.hash)));
    line(&mut out, &format!("  study     {}", label_in_full(&study.full_hash)));
    if let Some(whole) = &study.part_of {
        line(&mut out, &format!("  part of   {}", label_in_full(whole)));
    }
    line(&mut out, &format!("  program   {}", label_in_full(&study.program)));
    out.text
}

/// A hash: longer than a label, and nothing but hex digits where nobody changed it.
fn label_in_full(hash: &str) -> String {
    wording::shortened(hash, 64)
}

/// Who sees a public result.
const EVERYBODY: &str = "everybody";

/// A view, and who sees it.
#[derive(Clone, Copy)]
struct ShownView<'a> {
    party: &'a str,
    view: &'a ResultView,
}

/// What anybody may publish first, marked as that, then what this party alone sees.
fn public_and_own(out: &mut SummaryText, report: &RunReport, (public, numbers_in): (&ResultView, &str)) {
    let everybody = ShownView { party: EVERYBODY, view: public };
    let party = label(&report.party);
    let own = ShownView { party: &party, view: &report.view };
    let shown = if report.is_public() { vec![everybody] } else { vec![everybody, own] };
    if let [_, _] = shown[..] {
        line(out, "What everybody sees");
    }
    view_lines(out, everybody);
    line(out, "");
    paragraph(out, "  ", wording::public(report.public_terms.as_ref()));
    let cost = report.public_terms.as_ref().and_then(wording::public_cost);
    cost.iter().for_each(|cost| paragraph(out, "  ", cost));
    paragraph(out, "  ", &wording::own_report(report));
    line(out, "");
    if let [_, own] = shown[..] {
        line(out, &format!("What {party} alone sees"));
        view_lines(out, own);
    }
    numbers_shown(out, &shown, &wording::parties(report), numbers_in);
}

/// Views with what is said of their numbers.
fn result_lines(out: &mut SummaryText, views: &[ShownView<'_>], parties: &[String], all_in: &str) {
    views.iter().for_each(|view| view_lines(out, *view));
    numbers_shown(out, views, parties, all_in);
}

/// How many numbers there are and where all of them are, and how often intervals mislead.
fn numbers_shown(out: &mut SummaryText, views: &[ShownView<'_>], parties: &[String], all_in: &str) {
    let sums = views.iter().map(|shown| match shown.view {
        ResultView::Lift(_) => 0,
        ResultView::Program { outputs, derived, .. } => wording::behind(outputs, derived).0.len(),
    });
    let sums: usize = sums.sum();
    if sums > 0 {
        paragraph(out, "  ", &format!("{} ({sums}) are in {all_in}.", wording::BEHIND));
    }
    let lifts = || {
        views.iter().filter_map(|shown| match shown.view {
            ResultView::Lift(view) => Some(view),
            ResultView::Program { .. } => None,
        })
    };
    if lifts().next().is_none() {
        return;
    }
    paragraph(out, "  ", &wording::numbers_told(lifts(), all_in));
    // Views of one study have it alike, but for cells that one of them has not.
    let whose = lifts().map(|view| wording::whose_means(view, parties)).max_by_key(String::len);
    whose.iter().for_each(|note| paragraph(out, "  ", note));
    lifts().filter_map(wording::multiplicity).for_each(|note| paragraph(out, "  ", &note));
    lifts().filter_map(wording::no_relative).for_each(|note| paragraph(out, "  ", &note));
    lifts().flat_map(wording::means_beyond).for_each(|note| paragraph(out, "  ", &note));
    lifts().filter_map(wording::noise_alone).for_each(|note| paragraph(out, "  ", &note));
}

/// One view.
fn view_lines(out: &mut SummaryText, shown: ShownView<'_>) {
    match shown.view {
        ResultView::Lift(view) => {
            lift_lines(out, &[Column { party: shown.party.to_owned(), view }], None);
            verdict_line(out, view);
            also_released(out, view);
        }
        ResultView::Program { outputs, lists, derived } => {
            let (_, outputs) = wording::behind(outputs, derived);
            derived::table(out, derived);
            if !derived.is_empty() && !outputs.is_empty() {
                line(out, "");
            }
            program_table(out, "Output", &outputs);
            program_lists(out, lists);
        }
    }
}

/// Of two parties one knows all that was sent; of more, what it sent and got itself.
fn whose_bytes(report: &RunReport) -> &'static str {
    let several = report.parties.len() > 2 || report.servers.is_some();
    if several { " to and from this party, as in every line above" } else { "" }
}

/// The lift views of several parties side by side. `truth` is the true difference of means per person, where
/// it is known. Reports of programs are left out; without a lift view the text is empty.
#[must_use]
pub fn lift_table(views: &[&RunReport], truth: Option<f64>, columns: usize) -> String {
    let mut out = SummaryText::new(columns);
    let columns: Vec<Column<'_>> = views
        .iter()
        .filter_map(|report| match &report.view {
            ResultView::Lift(view) => {
                let party = if report.is_public() { EVERYBODY.to_owned() } else { label(&report.party) };
                Some(Column { party, view })
            }
            ResultView::Program { .. } => None,
        })
        .collect();
    lift_lines(&mut out, &columns, truth);
    out.text
}

fn lift_lines(out: &mut SummaryText, columns: &[Column<'_>], truth: Option<f64>) {
    let Some(first) = columns.first() else { return };
    let scale = MeanScale::of(columns.iter().map(|column| column.view));
    let heading = format!("{} {}", wording::capital(&label(&wording::noun(first.view))), scale.per());
    let names = columns.iter().flat_map(|column| wording::cell_names(column.view));
    let arms = [&first.view.test, &first.view.control].map(|arm| label(arm));
    let labels = widest(names.chain(arms), LABEL_WIDTH - 2).max(heading.chars().count() - 2) + 4;
    let table = Table { scale, columns, labels };
    let seen: Vec<String> = columns.iter().map(|column| format!("what {} sees", column.party)).collect();
    table.line(out, 2, &heading, &seen);
    table.overall(out);
    table.other_cells(out);
    if let Some(truth) = truth {
        table.truth(out, truth);
    }
}

/// What was disclosed to both sides besides the result, in one sentence.
#[must_use]
pub fn besides(report: &RunReport) -> String {
    let disclosed = &report.disclosed;
    let rows: Vec<String> = disclosed.rows.iter().map(|&rows| count(rows)).collect();
    let mut text = if disclosed.public_keys {
        format!(
            "that all files hold the same {} identifiers, which are public to the parties",
            count(disclosed.union)
        )
    } else if disclosed.size_hidden {
        let rows = rows.join(" and ");
        match wording::counter(disclosed) {
            None => format!("the sizes of the sets ({rows}), not that of the match"),
            Some(to) => {
                format!("the sizes of the sets ({rows}); that of the match {} alone", label(to))
            }
        }
    } else {
        let (rows, union) = (rows.join(" and "), count(disclosed.union));
        match wording::disclosed_match(report) {
            Some(matched) => format!(
                "the sizes of the sets ({rows}), of their union ({union}) and of the match ({matched})"
            ),
            None => format!(
                "the sizes of the sets ({rows}) and of their union ({union}), which do not tell how many \
                 rows any of them have in common"
            ),
        }
    };
    if disclosed.dummies.is_some() {
        text += ", with made-up rows in them that hide the exact ones";
    }
    if let Some(told) = wording::not_covered(disclosed) {
        let _ = write!(text, "; and, which no noise covers, {told}");
    }
    if disclosed.kept_spine {
        text += "; all of it when the kept spine was made";
    }
    let first = report.parties.first().map_or("", |party| party.name.as_str());
    text += &wording::overlaps(disclosed, first).map_or_else(String::new, |counted| format!("; {counted}"));
    if let Some([test, control]) = disclosed.published_groups {
        let _ = write!(text, ", and the exact sizes of the groups ({} and {})", count(test), count(control));
    }
    let model = match &report.servers {
        None => "Semi-honest parties".to_owned(),
        Some(servers) => format!("Of four servers at most one {}", label(&servers.security)),
    };
    text + &format!(". {model}; not reviewed.")
}

/// Whether a view holds a number without noise.
#[must_use]
pub fn has_exact_numbers(view: &ResultView) -> bool {
    match view {
        ResultView::Lift(view) => {
            view.cells.iter().flat_map(|cell| &cell.counts).any(|count| count.sigma.is_none())
        }
        ResultView::Program { outputs, lists, .. } => {
            !lists.is_empty() || outputs.iter().any(ProgramOutput::is_exact)
        }
    }
}

struct Column<'a> {
    party: String,
    view: &'a LiftView,
}

struct Table<'a> {
    scale: MeanScale,
    columns: &'a [Column<'a>],
    /// Columns of the label, its indent included.
    labels: usize,
}

impl Table<'_> {
    fn width(&self) -> usize {
        let with_cells = self.columns.iter().any(|column| column.view.cells.len() > 1);
        let least = if with_cells { VIEW_WIDTH_WITH_CELLS } else { VIEW_WIDTH };
        // Wide numbers push all columns out alike rather than one row out of line.
        let widest = self.columns.iter().flat_map(|column| {
            let cells = column.view.cells.iter().map(|cell| self.difference_and_interval(cell).len());
            let shown = |cell: &CellView| cell.estimate.map_or(0, |e| self.scale.interval(e.interval).len());
            cells.filter(|_| with_cells).chain(column.view.cells.iter().map(shown)).chain([column
                .party
                .chars()
                .count()
                + 10])
        });
        widest.map(|width| width + 3).max().unwrap_or(least).max(least)
    }

    fn row(&self, indent: usize, label: &str, values: &[String]) -> String {
        let mut row = format!("{:indent$}{label:<width$}", "", width = self.labels - indent);
        for value in values {
            let _ = write!(row, " {value:>width$}", width = self.width());
        }
        row.trim_end().to_owned()
    }

    /// A row, or where the table is too wide its cells behind its name.
    fn line(&self, out: &mut SummaryText, indent: usize, label: &str, values: &[String]) {
        let fits = self.labels + self.columns.len() * (self.width() + 1) <= out.columns;
        row_line(out, fits, &self.row(indent, label, values), (indent, label), values);
    }

    /// A row of the overall cells; left out when no column has a value for it.
    fn values(
        &self,
        out: &mut SummaryText,
        label: &str,
        value: impl Fn(&LiftView, &CellView) -> Option<String>,
    ) {
        let shown = self.columns.iter().map(|column| value(column.view, wording::overall(column.view)?));
        let shown: Vec<Option<String>> = shown.collect();
        if shown.iter().any(Option::is_some) {
            let shown: Vec<String> = shown.into_iter().map(Option::unwrap_or_default).collect();
            self.line(out, 4, label, &shown);
        }
    }

    fn overall(&self, out: &mut SummaryText) {
        let view = self.columns[0].view;
        let scale = &self.scale;
        for (arm, name) in [&view.test, &view.control].into_iter().enumerate() {
            let mean =
                |_: &LiftView, cell: &CellView| cell.estimate?.rates.map(|rates| scale.show(rates[arm].mean));
            self.values(out, &label(name), mean);
        }
        self.values(out, "difference", |_, cell| {
            Some(cell.estimate.map_or_else(|| "refused".to_owned(), |estimate| scale.show(estimate.lift)))
        });
        let level = percent(view.confidence);
        let interval = format!("{level} interval (chance and noise)");
        self.values(out, &interval, |_, cell| Some(scale.interval(cell.estimate?.interval)));
        self.values(out, "of which noise alone", |_, cell| {
            Some(scale.interval(cell.estimate?.noise_interval))
        });
        self.values(out, "relative", |view, cell| {
            cell.estimate?.relative.filter(|part| part.is_finite()).map(|part| wording::relative(view, part))
        });
        self.values(out, "p-value of no difference", |_, cell| Some(p_value(cell.estimate?.p_value)));
        let tests = |view: &LiftView| view.cells.iter().filter(|cell| cell.holm.is_some()).count();
        self.values(out, "the same by Holm, of all groups", |view, cell| {
            cell.holm.filter(|_| tests(view) > 1).map(p_value)
        });
        for column in self.columns {
            let reason = wording::overall(column.view).and_then(|cell| cell.refused.as_deref());
            if let Some(reason) = reason {
                self.refused(out, "    ", column, reason);
            }
        }
    }

    /// Why a cell has no numbers; and to whom, where several views are side by side.
    fn refused(&self, out: &mut SummaryText, indent: &str, column: &Column<'_>, reason: &str) {
        let to = if self.columns.len() > 1 { format!(" to {}", column.party) } else { String::new() };
        paragraph(out, indent, &format!("refused{to}: {}", clean(reason)));
    }

    fn difference_and_interval(&self, cell: &CellView) -> String {
        let Some(estimate) = &cell.estimate else { return "refused".to_owned() };
        let holm = cell.holm.map_or_else(String::new, |holm| format!("{:>10}", p_value(holm)));
        format!("{}  {}{holm}", self.scale.show(estimate.lift), self.scale.interval(estimate.interval))
    }

    fn other_cells(&self, out: &mut SummaryText) {
        for family in ["breakdown", "cohort"] {
            let mut all: Vec<&CellView> = Vec::new();
            for cell in self.columns.iter().flat_map(|column| &column.view.cells) {
                if cell.family == family && !all.iter().any(|known| known.label == cell.label) {
                    all.push(cell);
                }
            }
            if !all.is_empty() {
                let level = percent(self.columns[0].view.confidence);
                let heading = vec![format!("{level} interval{:>10}", "Holm"); self.columns.len()];
                self.line(out, 2, &format!("Difference by {family}"), &heading);
            }
            let names: Vec<String> = all.iter().map(|cell| wording::cell_name(cell)).collect();
            for (known, name) in all.iter().zip(wording::told_apart(&names, LABEL_CHARS)) {
                let of = |cell: &&CellView| cell.family == family && cell.label == known.label;
                let text = |cell: Option<&CellView>| {
                    cell.map_or_else(String::new, |cell| self.difference_and_interval(cell))
                };
                let shown: Vec<String> =
                    self.columns.iter().map(|column| text(column.view.cells.iter().find(of))).collect();
                self.line(out, 4, &name, &shown);
                for column in self.columns {
                    let cell = column.view.cells.iter().find(of);
                    if let Some(reason) = cell.and_then(|cell| cell.refused.as_deref()) {
                        self.refused(out, "      ", column, reason);
                    }
                }
            }
        }
    }

    fn truth(&self, out: &mut SummaryText, truth: f64) {
        let intervals: Vec<(&str, Option<[f64; 2]>)> = self
            .columns
            .iter()
            .map(|column| {
                let estimate = wording::overall(column.view).and_then(|cell| cell.estimate);
                (column.party.as_str(), estimate.map(|estimate| estimate.interval))
            })
            .collect();
        let contains = |[low, high]: [f64; 2]| low <= truth && truth <= high;
        let missed: Vec<&str> = intervals
            .iter()
            .filter(|(_, interval)| interval.is_some_and(|interval| !contains(interval)))
            .map(|(party, _)| *party)
            .collect();
        let known = intervals.iter().filter(|(_, interval)| interval.is_some()).count();
        let every = if known == 2 { "Both intervals contain it." } else { "Every interval contains it." };
        let chance = percent(1.0 - self.columns[0].view.confidence);
        let remark = match (known, missed.as_slice()) {
            (0, _) => "No interval to compare it with.".to_owned(),
            (1, []) => "The interval contains it.   OK".to_owned(),
            (_, []) => format!("{every}   OK"),
            (_, missed) => {
                format!(
                    "Outside the interval of {}: chance does that in {chance} of runs.",
                    missed.join(" and ")
                )
            }
        };
        line(out, "");
        line(out, &format!("  True difference: {}.   {remark}", self.scale.show(truth)));
    }
}

fn verdict_line(out: &mut SummaryText, view: &LiftView) {
    let Some(estimate) = wording::overall(view).and_then(|cell| cell.estimate) else {
        return;
    };
    let words = wording::verdict_words(view, &estimate);
    line(out, "");
    let better = wording::capital(&wording::better(view));
    paragraph(out, "  ", &format!("{better}: {words}. {}", clamp_note(view)));
}

/// The counts released for all people that no estimate was made of.
fn also_released(out: &mut SummaryText, view: &LiftView) {
    let counts = wording::overall(view).map_or(&[][..], |cell| &cell.counts);
    let mut shown: Vec<&str> = Vec::new();
    let fits = LABEL_WIDTH + VIEW_WIDTH + 17 <= out.columns;
    for released in counts.iter().filter(|released| !wording::is_core(&released.quantity)) {
        let name = released.quantity.as_str();
        if shown.contains(&name) {
            continue;
        }
        if shown.is_empty() {
            let heading = "Also released, test / control";
            let row = format!("  {heading:<LABEL_WIDTH$} {:>VIEW_WIDTH$}   noise sigma", "count");
            row_line(out, fits, &row, (2, heading), &["count, noise sigma".to_owned()]);
        }
        shown.push(name);
        let both: Vec<&CountView> = counts.iter().filter(|other| other.quantity == name).collect();
        let values: Vec<String> = both.iter().map(|count| wording::amount(count)).collect();
        let sigma = released.sigma.map_or_else(|| "exact".to_owned(), |sigma| significant(sigma, 3));
        let (name, values) = (label(&wording::quantity(name)), values.join(" / "));
        let row = format!("    {name:<width$} {values:>VIEW_WIDTH$}   {sigma}", width = LABEL_WIDTH - 2);
        row_line(out, fits, &row, (4, name.as_str()), &[values, sigma]);
    }
    if let (false, Some(parts)) = (shown.is_empty(), wording::parts(view)) {
        line(out, &format!("    {parts}"));
    }
}

/// What the interval is about, which is not the unclamped mean.
fn clamp_note(view: &LiftView) -> String {
    format!("The intervals are for outcomes clamped at {} per person.", wording::clamp(view))
}

fn program_table(out: &mut SummaryText, title: &str, outputs: &[ProgramOutput]) {
    if outputs.is_empty() {
        return;
    }
    let values = wording::output_values(outputs);
    let wide = widest(&values, VIEW_WIDTH);
    let labels = wording::output_names(outputs, LABEL_CHARS);
    let width = widest(&labels, LABEL_WIDTH - 2).max(title.len() - 2);
    let (under, fits) = (width + 2, width + wide + 19 <= out.columns);
    let heading = format!("  {title:<under$} {:>wide$}   noise sigma", "value");
    row_line(out, fits, &heading, (2, title), &["value, noise sigma".to_owned()]);
    for ((output, value), name) in outputs.iter().zip(&values).zip(&labels) {
        let sigma = wording::noise(output);
        let row = format!("    {name:<width$} {value:>wide$}   {sigma}");
        row_line(out, fits, &row, (4, name.as_str()), &[value.clone(), sigma]);
    }
}

fn program_lists(out: &mut SummaryText, lists: &[ProgramList]) {
    for list in lists {
        let shown = wording::told_apart(&list.keys, LABEL_CHARS);
        let others =
            if list.others > 0 { format!(" and {} others", count(list.others)) } else { String::new() };
        let all = if shown.is_empty() && others.is_empty() { "none".to_owned() } else { shown.join(", ") };
        paragraph(out, "  ", &format!("{}: {all}{others}", label(&list.label)));
    }
}

fn stage_lines(out: &mut SummaryText, stages: &[StageReport]) {
    let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
    let names = wording::told_apart(&names, LABEL_CHARS);
    let width = widest(&names, STAGE_WIDTH);
    let fits = width + 66 <= out.columns;
    for (stage, name) in stages.iter().zip(&names) {
        let rate = if stage.seconds > 0.0 { stage.rows as f64 / stage.seconds } else { 0.0 };
        let rate =
            if rate >= 1.0 { format!("{} {}/s", scaled(rate), handled(&stage.name)) } else { String::new() };
        let held = if stage.price_held { "" } else { "   cost not as stated" };
        let (rows, what, time) = (count(stage.rows), handled(&stage.name), duration(stage.seconds));
        let sent = bytes(stage.bytes_sent.iter().fold(0, |sum, &sent| sum.saturating_add(sent)));
        let row = format!("  {name:<width$} {rows:>14} {what:<6} {time:>10} {sent:>9}   {rate:>16}{held}");
        row_line(
            out,
            fits,
            row.trim_end(),
            (2, name.as_str()),
            &[format!("{rows} {what}"), time, sent, rate + held],
        );
        if let Some(before) = wording::before(stage) {
            line(out, &format!("  {:<width$} {before} before this run went on", ""));
        }
    }
}

fn privacy_lines(out: &mut SummaryText, report: &RunReport) {
    let privacy = &report.privacy;
    let (Some(epsilon), Some(delta)) = (privacy.epsilon, privacy.delta) else {
        named(out, "privacy", wording::NO_NOISE);
        let charged = match &report.disclosed.dummies {
            Some(dummies) => {
                format!("charged for the sizes shown: rho {}, delta {}", dummies.rho, power(&dummies.delta))
            }
            None => "nothing was charged".to_owned(),
        };
        named(out, "ledger", &label(&charged));
        if report.disclosed.dummies.is_some() {
            spent_lines(out, report);
        }
        return;
    };
    let paid = match &privacy.total {
        Some(total) => format!("{} = {}", clean(&wording::charged_to(report, total)), total.words()),
        // A stored answer of an earlier version knows its release alone.
        None => format!(
            "rho {} for this release = ({}, {})-DP",
            label(&rho(&privacy.rho, privacy.rho_value)),
            short(epsilon, 3),
            short(delta, 3)
        ),
    };
    named(out, "privacy", &format!("{paid}; {}", wording::noise_of(privacy)));
    if let Some(unit) = &privacy.unit {
        named(out, "unit", &format!("one {}, as the study says", label(unit)));
    }
    spent_lines(out, report);
}

/// What each other viewer has spent on this party's data.
fn spent_lines(out: &mut SummaryText, report: &RunReport) {
    for spent in wording::spent(report) {
        named(out, "ledger", &format!("after this result, spent by {spent}"));
    }
}

/// The most characters of a column, and no fewer than so many.
fn widest(texts: impl IntoIterator<Item = impl AsRef<str>>, least: usize) -> usize {
    texts.into_iter().map(|text| text.as_ref().chars().count()).fold(least, usize::max)
}

/// Facts side by side, on further lines where they do not fit.
fn facts(out: &mut SummaryText, facts: &[String]) {
    let mut text = String::new();
    for fact in facts {
        if text.is_empty() {
            text.clone_from(fact);
        } else if text.chars().count() + 3 + fact.chars().count() <= out.columns {
            text = format!("{text}   {fact}");
        } else {
            line(out, &text);
            text = format!("  {fact}");
        }
    }
    line(out, &text);
}

/// One line; of several empty ones one.
fn line(out: &mut SummaryText, text: &str) {
    if text.is_empty() && out.text.ends_with("\n\n") {
        return;
    }
    out.text.push_str(text);
    out.text.push('\n');
}

/// Lines of fewer columns are of a telephone, or of a part of a screen.
const NARROW: usize = 80;

/// A row of a table; where tables do not fit into narrow lines, its cells behind its name, as running text.
fn row_line(out: &mut SummaryText, fits: bool, row: &str, (indent, name): (usize, &str), cells: &[String]) {
    if fits || out.columns >= NARROW {
        return line(out, row);
    }
    let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).filter(|cell| !cell.is_empty()).collect();
    paragraph(out, &" ".repeat(indent), &format!("{name}: {}", cells.join(", ")));
}

/// Running text; all lines but the first stand two further in.
fn paragraph(out: &mut SummaryText, indent: &str, text: &str) {
    let lines = wrapped(&plain(text), out.columns, indent, &format!("{indent}  "));
    lines.iter().for_each(|text| line(out, text));
}

/// What is said of something with a name, under each other.
fn named(out: &mut SummaryText, name: &str, text: &str) {
    let lines = wrapped(&plain(text), out.columns, &format!("  {name:<10}"), &" ".repeat(12));
    lines.iter().for_each(|text| line(out, text));
}
