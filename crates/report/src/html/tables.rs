//! The tables of the page: every number of the report, each with what it needs to be read.

use super::paragraph;
use crate::wording;
use crate::wording::{
    DerivedGroup, LABEL_CHARS, MeanScale, NO_NOISE, amount, capital, cell_names, charged_to, drew_the_noise,
    label, noise, noise_of, output_names, output_values, quantity, quantity_title, relative, spent,
    told_apart,
};
use crate::{
    CellView, DerivedView, LiftView, ProgramList, ProgramOutput, PublicTerms, RunReport, StageReport,
    StudyInfo,
};
use page::markup::{Markup, element, minus, number, spans, text, words};
use page::numbers::{
    MISSING, bytes, count, duration, grouped, p_value, percent, power, rho, scaled, short, significant, up,
};

/// Longest name of a row.
const ROW_NAME_CHARS: usize = 120;

/// A column: its title, and whether it holds numbers.
type Column<'a> = (&'a str, bool);

/// A cell of a table, before it is known in which column it stands.
pub struct PageCell {
    class: &'static str,
    /// Columns that it takes.
    span: usize,
    inside: Markup,
}

impl PageCell {
    fn new(class: &'static str, inside: Markup) -> Self {
        Self { class, span: 1, inside }
    }

    /// With the title of its column, which stands beside it where the page is narrow.
    fn markup(self, title: &str) -> Markup {
        let span = self.span.to_string();
        let mut attributes = Vec::new();
        attributes.extend((!self.class.is_empty()).then_some(("class", self.class)));
        attributes.extend((self.span > 1).then_some(("colspan", &*span)));
        attributes.extend((self.span == 1 && !title.is_empty()).then_some(("data-label", title)));
        element("td", &attributes, [self.inside])
    }
}

/// A row of a table: what it is of, and its cells.
pub struct PageRow {
    heading: Markup,
    cells: Vec<PageCell>,
}

impl PageRow {
    fn markup(self, columns: &[Column<'_>]) -> Markup {
        let titles = columns.iter().skip(1).map(|(title, _)| *title).chain(std::iter::repeat(""));
        let cells = self.cells.into_iter().zip(titles).map(|(cell, title)| cell.markup(title));
        element("tr", &[], [self.heading].into_iter().chain(cells))
    }
}

/// A table whose rows become blocks of lines where the page is narrow. Without columns it is a list of facts.
fn table(caption: &str, columns: &[Column<'_>], rows: impl IntoIterator<Item = PageRow>) -> Markup {
    let title = |(title, is_number): &Column<'_>| {
        let class = if *is_number { "num" } else { "" };
        element("th", &[("scope", "col"), ("class", class)], [text(title)])
    };
    let head = element("thead", &[], [element("tr", &[], columns.iter().map(title))]);
    let body = element("tbody", &[], rows.into_iter().map(|row| row.markup(columns)));
    let caption_part = words("caption", "", caption);
    let table = match columns {
        [] => element("table", &[], [caption_part, body]),
        _ => element("table", &[], [caption_part, head, body]),
    };
    let class = if columns.is_empty() { "wide facts" } else { "wide" };
    element(
        "div",
        &[("class", class), ("role", "region"), ("tabindex", "0"), ("aria-label", caption)],
        [table],
    )
}

/// Rows by their names, of which no two are cut alike.
fn rows<N: AsRef<str>>(named: impl IntoIterator<Item = (N, Vec<PageCell>)>) -> Vec<PageRow> {
    let (names, cells): (Vec<N>, Vec<_>) = named.into_iter().unzip();
    let names = told_apart(&names, ROW_NAME_CHARS);
    names.iter().zip(cells).map(|(name, cells)| row(name, cells)).collect()
}

fn row(name: &str, cells: Vec<PageCell>) -> PageRow {
    PageRow { heading: heading([text(name)]), cells }
}

fn heading(name: impl IntoIterator<Item = Markup>) -> Markup {
    element("th", &[("scope", "row")], [element("bdi", &[], name)])
}

fn cell(shown: &str) -> PageCell {
    PageCell::new("num", number(shown))
}

fn plain(shown: impl AsRef<str>) -> PageCell {
    PageCell::new("", text(shown))
}

/// Words where a column has numbers otherwise.
fn beside(shown: impl AsRef<str>) -> PageCell {
    PageCell::new("said", text(shown))
}

/// A key or a hash.
fn keyed(key: &str) -> PageCell {
    PageCell::new("", words("code", "", key))
}

fn sigma(shown: Option<String>) -> PageCell {
    match shown {
        Some(shown) => cell(&shown),
        None => PageCell::new("num exact", text("exact")),
    }
}

/// Difference, intervals, p-value and rates of every cell.
pub fn effects(view: &LiftView, scale: &MeanScale) -> Markup {
    let (test, control) = (label(&view.test), label(&view.control));
    let interval = format!("{} interval", percent(view.confidence));
    let mut columns = vec![
        ("group", false),
        (test.as_str(), true),
        (control.as_str(), true),
        ("difference", true),
        (interval.as_str(), true),
        ("noise alone", true),
        ("relative", true),
        ("p-value", true),
    ];
    let several = view.cells.iter().filter(|cell| cell.holm.is_some()).count() > 1;
    columns.extend(several.then_some(("Holm", true)));
    let span = columns.len() - 1;
    let cells = |of: &CellView| {
        let Some(estimate) = &of.estimate else {
            let why = format!("refused: {}", of.refused.as_deref().unwrap_or("no reason given"));
            return vec![PageCell { span, ..plain(why) }];
        };
        let mean = |arm: usize| {
            estimate.rates.map_or_else(|| MISSING.to_owned(), |rates| scale.show(rates[arm].mean))
        };
        let part = estimate.relative.filter(|part| part.is_finite());
        let holm = of.holm.map_or_else(|| MISSING.to_owned(), p_value);
        let cells = [
            mean(0),
            mean(1),
            scale.show(estimate.lift),
            scale.interval(estimate.interval),
            scale.interval(estimate.noise_interval),
            part.map_or_else(|| MISSING.to_owned(), |part| relative(view, part)),
            p_value(estimate.p_value),
        ];
        cells.iter().chain(several.then_some(&holm)).map(|shown| cell(shown)).collect()
    };
    let title = format!("Mean clamped outcome and difference: {}", quantity_title(view, scale));
    table(&title, &columns, rows(cell_names(view).into_iter().zip(view.cells.iter().map(cells))))
}

/// Every number that left the computation.
pub fn released(view: &LiftView) -> Markup {
    let columns =
        [("group", false), ("quantity", false), ("arm", false), ("value", true), ("noise sigma", true)];
    let names = cell_names(view);
    let rows = view.cells.iter().zip(&names).flat_map(|(of, name)| {
        of.counts.iter().enumerate().map(move |(i, released)| {
            let arm = match released.arm.as_deref() {
                Some("test") => label(&view.test),
                Some("control") => label(&view.control),
                Some(other) => label(other),
                None => "both".to_owned(),
            };
            let heading = match i {
                0 => heading([text(name)]),
                _ => element("td", &[], []),
            };
            let shown = released.sigma.map(|sigma| significant(sigma, 3));
            let cells = vec![
                plain(if released.derived {
                    format!("{}, computed", quantity(&released.quantity))
                } else {
                    quantity(&released.quantity)
                }),
                plain(arm),
                cell(&amount(released)),
                sigma(shown),
            ];
            PageRow { heading, cells }
        })
    });
    let derived = view.cells.iter().flat_map(|cell| &cell.counts).any(|count| count.derived);
    let caption = match derived {
        true => {
            "As released, but for those marked \"computed\", which are made of released ones. Sigma is \
             the standard deviation of the noise."
        }
        false => "As released. Sigma is the standard deviation of the noise.",
    };
    let parts = wording::parts(view).map_or(String::new(), |parts| format!(" {parts}"));
    table(&format!("{caption}{parts}"), &columns, rows)
}

/// What a program derives.
pub fn derived(groups: &[DerivedGroup<'_>], level: &str) -> Markup {
    let mut columns = vec![("number", false), ("value", true), (level, true), ("noise alone, ±", true)];
    let tests = groups.iter().flat_map(|group| &group.numbers).any(|number| number.tests.is_some());
    columns.extend(tests.then_some([("p-value", true), ("Holm", true)]).into_iter().flatten());
    let said = |is_number: bool, shown: &str| match is_number {
        true => cell(shown),
        false => PageCell::new("said", number(shown)),
    };
    let rows = rows(groups.iter().flat_map(|group| &group.numbers).map(|number| {
        let DerivedView { label, value, noise, intervals, .. } = number.of;
        let is_cut = wording::cut(number.of) != [false; 2];
        let closed = number.interval.starts_with('[') && intervals.len() == 1 && !is_cut;
        let mut cells = vec![
            said(value.is_some(), &number.with_unit()),
            said(closed, &number.interval),
            said(noise.is_some(), &number.noise),
        ];
        if tests {
            let shown = number.tests.clone().unwrap_or_default();
            cells.extend(shown.iter().map(|shown| cell(shown)));
        }
        (label, cells)
    }));
    table("Computed from noised sums, at no further cost in privacy.", &columns, rows)
}

/// The outputs of a program.
pub fn outputs(outputs: &[ProgramOutput]) -> Markup {
    let columns = [("output", false), ("value", true), ("noise sigma", true)];
    let names = output_names(outputs, ROW_NAME_CHARS);
    let rows = names.iter().zip(outputs).zip(output_values(outputs)).map(|((name, output), value)| {
        let value = if output.key.is_some() { beside(value) } else { cell(&value) };
        let class = if output.is_exact() { "said exact" } else { "said" };
        row(name, vec![value, PageCell::new(class, text(noise(output)))])
    });
    table("Values revealed. Sigma is the standard deviation of the noise.", &columns, rows)
}

/// Facts by name: numbers in a [`cell`], words [`beside`] them.
fn facts<N: AsRef<str>>(caption: &str, facts: impl IntoIterator<Item = (N, PageCell)>) -> Markup {
    table(caption, &[], rows(facts.into_iter().map(|(name, shown)| (name, vec![shown]))))
}

/// What the view cost.
pub fn privacy(report: &RunReport) -> Vec<Markup> {
    let privacy = &report.privacy;
    let (Some(epsilon), Some(delta)) = (privacy.epsilon, privacy.delta) else {
        let no_noise = capital(NO_NOISE);
        if report.disclosed.dummies.is_none() {
            return vec![paragraph("note", format!("{no_noise}. Nothing was charged."))];
        }
        let note = format!("{no_noise}. The sizes that the match showed were charged.");
        return vec![paragraph("note", note), ledger(report)];
    };
    let (cost, epsilon, delta) = match &privacy.total {
        Some(total) => (charged_to(report, total), up(total.epsilon, 3), up(total.delta, 3)),
        None => (
            format!("{} for the release alone", label(&rho(&privacy.rho, privacy.rho_value))),
            short(epsilon, 3),
            short(delta, 3),
        ),
    };
    let mut rows = vec![
        ("zero-concentrated privacy charged", beside(&cost)),
        ("the same as epsilon", cell(&epsilon)),
        ("at delta", cell(&delta)),
        ("the noise", beside(noise_of(privacy))),
    ];
    let unit = privacy.unit.as_ref();
    rows.extend(unit.map(|unit| ("covers", beside(format!("one {unit}, as the study says")))));
    let secret = "The other party drew the noise in this view, to protect its own people. Shown these \
                  numbers, it could \
        take the noise out again and read exact values, which depend on your data too.";
    let mut parts = vec![facts("What this view cost", rows), ledger(report)];
    if drew_the_noise(report).is_some() {
        parts.push(paragraph("note", secret));
    }
    parts
}

/// What the public result costs whoever reads it and nothing else.
pub fn public_cost(terms: &PublicTerms) -> Markup {
    let (Some(epsilon), Some(delta)) = (terms.epsilon, terms.delta) else {
        return paragraph("note", format!("{}.", capital(NO_NOISE)));
    };
    let mut rows = vec![
        ("zero-concentrated privacy charged, rho", beside(label(&rho(&terms.rho, terms.rho_value)))),
        ("the same as epsilon", cell(&up(epsilon, 3))),
        ("at delta", cell(&up(delta, 3))),
    ];
    let unit = terms.unit.as_ref();
    rows.extend(unit.map(|unit| ("covers", beside(format!("one {unit}, as the study says")))));
    rows.extend(terms.attempt.map(|attempt| ("attempt at this release", cell(&count(attempt.into())))));
    facts("What this result costs whoever reads it alone", rows)
}

/// Which study and which program, for who compares them, and how these were computed.
pub fn computed(study: &StudyInfo, mode: &str, engine: Option<String>) -> Markup {
    let whole = study.part_of.iter().map(|whole| ("the whole study, of several runs", keyed(whole)));
    // An earlier version did not say the whole hash.
    let hash = if study.full_hash.is_empty() { &study.hash } else { &study.full_hash };
    let hashes = [("hash of the study", keyed(hash)), ("of the program", keyed(&study.program))];
    let short = ("as shown", plain(label(&study.hash)));
    let engine = engine.map(|engine| ("engine", plain(engine)));
    let facts_of_it = engine.into_iter().chain([("mode", plain(label(mode)))]).chain(hashes);
    facts("Engine, mode and hashes", facts_of_it.chain([short]).chain(whole))
}

/// What each other party has spent on this party's data.
fn ledger(report: &RunReport) -> Markup {
    let spent = spent(report);
    let rows = spent.iter().filter_map(|text| text.split_once(": "));
    facts(
        "What this party's ledger said was spent after this result, rho",
        // Our own words and numbers: no name is in them.
        rows.map(|(who, spent)| (who, beside(minus(spent)))),
    )
}

/// Which rows matched.
pub fn lists(lists: &[ProgramList]) -> Vec<Markup> {
    let shown = lists.iter().map(|list| {
        let rows = rows(list.keys.iter().map(|key| (key, Vec::new())));
        let others = (list.others > 0).then(|| row(&format!("{} others", count(list.others)), Vec::new()));
        table(&label(&list.label), &[("identifier", false)], rows.into_iter().chain(others))
    });
    shown.collect()
}

/// What both sides learned besides.
pub fn disclosed(report: &RunReport) -> Vec<Markup> {
    let disclosed = &report.disclosed;
    let made_up = wording::made_up_rows(report);
    let names = report.parties.iter().map(|party| format!("rows of {}{made_up}", label(&party.name)));
    let counted = |n: u64| cell(&count(n));
    let mut rows: Vec<(String, PageCell)> = names
        .chain(std::iter::repeat(format!("rows{made_up}")))
        .zip(disclosed.rows.iter().map(|&rows| counted(rows)))
        .collect();
    if disclosed.public_keys {
        rows.push((
            "identifiers, the same in all files and public to the parties".into(),
            counted(disclosed.union),
        ));
    } else if disclosed.size_hidden {
        let to = crate::wording::counter(disclosed);
        let told = to.map_or("not disclosed to anybody".into(), |to| format!("known to {} alone", label(to)));
        rows.push(("size of the match".into(), beside(told)));
    } else {
        rows.push((format!("size of the union{made_up}"), counted(disclosed.union)));
        let matched = wording::disclosed_match(report).map(|matched| match disclosed.dummies {
            Some(_) => beside(matched),
            None => cell(&matched),
        });
        rows.extend(matched.map(|matched| ("size of the match".into(), matched)));
    }
    if let Some(dummies) = &disclosed.dummies {
        rows.push(("charged for these sizes, rho".into(), cell(&dummies.rho)));
        rows.push(("charged for these sizes, delta".into(), cell(&power(&dummies.delta))));
    }
    if let Some([test, control]) = disclosed.published_groups {
        rows.push(("rows of the test group, public in this mode".into(), counted(test)));
        rows.push(("rows of the control group, public in this mode".into(), counted(control)));
    }
    let first = report.parties.first().map_or("", |party| party.name.as_str());
    if crate::wording::overlaps(disclosed, first).is_some() {
        let to = format!("{} alone", label(first));
        rows.push(("identifiers of every set of parties, counted by".into(), beside(to)));
    }
    let title = match (&disclosed.dummies, disclosed.kept_spine) {
        (None, false) => "Exact, and known to all sides",
        (Some(_), false) => "With made-up rows that hide the exact numbers; known to all sides",
        (None, true) => "Exact, and known to all sides since the kept spine was made",
        (Some(_), true) => "With made-up rows; known to all sides since the kept spine was made",
    };
    let mut shown = vec![facts(title, rows)];
    if !disclosed.counts.is_empty() {
        let own = disclosed.counts.iter().map(|met| (&met.what, counted(met.count)));
        shown.push(facts(&format!("What this party counted in the match{made_up}"), own));
    }
    shown
}

/// Own input, for its owner.
pub fn inputs(report: &RunReport) -> Vec<Markup> {
    // One list of counts and words for terminal and page.
    let shown = report.inputs.to_string();
    let rows = shown.lines().filter_map(|line| line.trim().split_once(' ')).map(|(first, rest)| {
        match first.starts_with(|c: char| c.is_ascii_digit()) {
            true => PageRow { heading: heading(spans(rest)), cells: vec![cell(&grouped(first))] },
            // How the file is written, not how many.
            false => row(first, vec![beside(rest)]),
        }
    });
    let note = format!("{}: no other party sees these counts.", crate::wording::FOR_YOU);
    let matched = wording::own_match(report).map(|text| paragraph("note", text));
    [paragraph("note", note), table("Rows and events", &[], rows)].into_iter().chain(matched).collect()
}

/// Study and parties.
pub fn parties(report: &RunReport) -> Vec<Markup> {
    let members =
        report.parties.iter().map(|party| (&party.name, vec![keyed(&party.key), cell(&count(party.rows))]));
    let counted = format!("rows{}", wording::made_up_rows(report));
    let columns = [("party", false), ("key", false), (counted.as_str(), true)];
    let mut shown = vec![table("Parties, as their keys proved", &columns, rows(members))];
    if let Some(servers) = &report.servers {
        let members =
            servers.members.iter().map(|server| (&server.name, vec![keyed(&server.key), plain(&server.saw)]));
        let title = format!("Servers, one of which may be {}, and what each saw", label(&servers.security));
        shown.push(table(&title, &[("server", false), ("key", false), ("saw", false)], rows(members)));
    }
    shown
}

/// Where time and bytes went, against what was stated before. Of more than two participants, whose bytes they
/// are is a table of its own: a column for each would pass the edge of a page.
pub fn stages(report: &RunReport) -> Vec<Markup> {
    let senders = report.participants();
    let sent: Vec<String> = match senders.len() {
        0..=2 => senders.iter().map(|name| sent_by(report, name)).collect(),
        _ => vec!["bytes".to_owned()],
    };
    let mut columns = vec![("stage", false), ("time", true), ("rows or values", true), ("per s", true)];
    columns.extend(sent.iter().map(|title| (title.as_str(), true)));
    columns.extend([("AND gates", true), ("OTs", true), ("rounds", true), ("stated cost", false)]);
    let cells = |stage: &StageReport| {
        let mut cells = vec![cell(&duration(stage.seconds)), cell(&count(stage.rows)), cell(&rate(stage))];
        match senders.len() {
            0..=2 => cells.extend((0..senders.len()).map(|sender| bytes_of(stage, sender))),
            _ => cells.push(cell(&bytes(added(&stage.bytes_sent)))),
        }
        let price = &stage.price;
        cells.extend([price.and_gates, price.ots, price.rounds].map(|n| cell(&count(n))));
        cells.push(if stage.price_held {
            plain("held")
        } else {
            PageCell::new("exact", text(format!("not held: {}", bytes(added(&price.sent)))))
        });
        cells
    };
    let went_on = report.stages.iter().any(|stage| stage.before.is_some());
    if went_on {
        columns.push(("before this run went on", true));
    }
    let cells = |stage: &StageReport| {
        let before = || cell(&wording::before(stage).unwrap_or_else(|| MISSING.to_owned()));
        cells(stage).into_iter().chain(went_on.then(before)).collect::<Vec<_>>()
    };
    let title = "Cost by stage. \"Held\": the bytes counted are the bytes stated beforehand.";
    let by_stage = rows(report.stages.iter().map(|stage| (&stage.name, cells(stage))));
    let mut shown = vec![table(title, &columns, by_stage)];
    if senders.len() > 2 {
        shown.push(sent_table(report));
    }
    shown
}

/// Who sent how much in which stage.
fn sent_table(report: &RunReport) -> Markup {
    let names: Vec<&str> = report.stages.iter().map(|stage| stage.name.as_str()).collect();
    let names = told_apart(&names, LABEL_CHARS);
    let mut columns = vec![("participant", false)];
    columns.extend(names.iter().map(|name| (name.as_str(), true)));
    let sent = report.participants().into_iter().enumerate().map(|(sender, name)| {
        let cells = report.stages.iter().map(|stage| bytes_of(stage, sender)).collect();
        (sent_by(report, name), cells)
    });
    table("Application bytes by participant and stage.", &columns, rows(sent))
}

fn bytes_of(stage: &StageReport, sender: usize) -> PageCell {
    cell(&stage.bytes_sent.get(sender).map_or_else(|| MISSING.to_owned(), |&sent| bytes(sent)))
}

fn added(sent: &[u64]) -> u64 {
    sent.iter().fold(0, |sum, &sent| sum.saturating_add(sent))
}

/// Whose bytes a column or a bar holds: of two parties all, of more those that this one sent or received.
pub fn sent_by(report: &RunReport, participant: &str) -> String {
    let name = label(participant);
    match report.participants().len() {
        3.. if participant != report.party => format!("sent by {name} to {}", label(&report.party)),
        _ => format!("sent by {name}"),
    }
}

fn rate(stage: &StageReport) -> String {
    if stage.seconds > 0.0 { scaled(stage.rows as f64 / stage.seconds) } else { MISSING.to_owned() }
}

/// The run as a whole.
pub fn totals(report: &RunReport) -> Markup {
    // Of three and more parties, what the others say to each other is not seen here.
    let whose = match report.participants().len() {
        0..=2 => "application bytes of all parties, before TLS",
        _ => "application bytes that this party sent and received, before TLS",
    };
    let mut facts_of_it = vec![
        ("from the first byte of matching to this report", duration(report.seconds)),
        (whose, bytes(report.bytes)),
        ("largest memory of each process", wording::peaks(report)),
        ("CPU time of this process", duration(report.cpu_seconds)),
        ("worker pairs", count(u64::from(report.shards))),
    ];
    if let Some(workers) = &report.workers {
        facts_of_it.push(("units of rows", count(workers.units)));
        if workers.computed_before > 0 {
            facts_of_it.push(("of them computed before this run went on", count(workers.computed_before)));
        }
        if workers.match_units > 0 {
            facts_of_it.push(("units of the match that went to workers", count(workers.match_units)));
        }
        if workers.match_done_before > 0 {
            facts_of_it.push(("of them done before this run went on", count(workers.match_done_before)));
        }
        if let Some(failed) = wording::failed_units(workers) {
            facts_of_it.push(("attempts at units that failed", failed));
        }
    }
    if let Some(before) = wording::all_before(report) {
        facts_of_it.push(("besides, before this run went on", before));
    }
    facts("The run as a whole", facts_of_it.into_iter().map(|(name, shown)| (name, cell(&shown))))
}
