use super::{render, samples};
use crate::wording::{self, MeanScale, label};
use crate::{CellView, DerivedView, LiftView, ResultView, RunReport};
use page::numbers::{grouped, p_value, significant};
use page::svg;
use roxmltree::{Document, Node, ParsingOptions};

/// All samples, by name.
pub(crate) fn all() -> Vec<(&'static str, RunReport)> {
    vec![
        ("registry", samples::registry()),
        ("hospitals", samples::hospitals()),
        ("shop", samples::shop()),
        ("program", samples::program()),
        ("derived", samples::derived()),
        ("both derived", samples::both_derived()),
        ("hostile", samples::hostile()),
        ("broken", samples::broken_numbers()),
        ("stored", samples::stored()),
        ("both", samples::both()),
        ("both by groups", samples::both_by_groups()),
        ("both of a program", samples::both_of_a_program()),
        ("nothing", samples::nothing()),
        ("many", samples::many()),
    ]
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn words(page: &str) -> String {
    let document = parse(page);
    document.root_element().descendants().filter_map(|node| node.text()).collect()
}

/// A formatted number as the page has it.
fn number(shown: &str) -> String {
    let parts = shown.split(", ").map(|part| match part.strip_prefix('[').unwrap_or(part) {
        // A sign begins a number; a hyphen stands inside a name.
        signed if signed.starts_with('-') => part.replacen('-', "\u{2212}", 1),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn text_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|part| part.text()).collect()
}

/// The cells of all rows of tables.
fn table_rows(page: &str) -> Vec<Vec<String>> {
    let document = parse(page);
    let rows = document.descendants().filter(|node| node.has_tag_name("tr"));
    let cells = |row: Node<'_, '_>| {
        let cells = row.children().filter(|node| node.has_tag_name("td") || node.has_tag_name("th"));
        cells.map(text_of).collect()
    };
    rows.map(cells).collect()
}

/// Every page is well-formed, self-contained and inert: the only elements and attributes are those we write.
#[test]
fn pages_are_well_formed_and_inert() {
    let elements = [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "main",
        "header",
        "h1",
        "h2",
        "h3",
        "p",
        "b",
        "bdi",
        "section",
        "figure",
        "figcaption",
        "svg",
        "g",
        "line",
        "rect",
        "circle",
        "text",
        "desc",
        "div",
        "details",
        "summary",
        "span",
        "strong",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "code",
        "footer",
    ];
    for (name, report) in all() {
        let page = render(&report);
        let document = parse(&page);
        for node in document.descendants().filter(|node| node.is_element()) {
            assert!(elements.contains(&node.tag_name().name()), "{name}: {:?}", node.tag_name());
            for attribute in node.attributes() {
                let attribute_name = attribute.name();
                assert!(
                    !attribute_name.starts_with("on") && !["href", "src", "style"].contains(&attribute_name),
                    "{name}"
                );
                assert!(
                    !attribute.value().contains("NaN") && !attribute.value().contains("inf%"),
                    "{name}: {attribute:?}"
                );
            }
        }
        assert!(!page.contains("url(") && !page.contains("@import"), "{name}");
        assert!(!words(&page).contains("NaN"), "{name}");
        let has_bad = |c: char| c.is_control() && c != '\n' || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!page.contains(has_bad), "{name}");
    }
}

/// A reader of many intervals is told how many of them chance alone misleads by.
#[test]
fn many_intervals_come_with_what_chance_shows() {
    let mut told = 0;
    for (name, report) in all() {
        let ResultView::Lift(view) = &report.view else { continue };
        let shown = view.cells.iter().filter(|cell| cell.estimate.is_some()).count();
        assert_eq!(words(&render(&report)).contains("miss the truth by chance"), shown >= 2, "{name}");
        told += usize::from(shown >= 2);
    }
    assert!(told > 0);
}

/// Figures have a title and a description, the ids they name exist, and no id is used twice.
#[test]
fn figures_are_named() {
    for (name, report) in all() {
        let page = render(&report);
        let document = parse(&page);
        let ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
        let unique: std::collections::HashSet<&&str> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len(), "{name}");
        for figure in document.descendants().filter(|node| node.attribute("role") == Some("img")) {
            let labels = figure.attribute("aria-labelledby").unwrap();
            assert!(labels.split(' ').all(|label| ids.contains(&label)), "{name}: {labels}");
        }
        let figures = page.matches("role=\"img\"").count();
        let views = [Some(&report.view), report.public.as_ref()];
        let drawn = |view: &&ResultView| matches!(view, ResultView::Lift(view) if !view.cells.is_empty());
        let lifts = views.into_iter().flatten().filter(drawn).count();
        let groups = |view: &ResultView| match view {
            ResultView::Program { derived, .. } => {
                let ends = |view: &DerivedView| view.intervals.iter().flatten().any(Option::is_some);
                let drawn = derived.iter().filter(|view| view.value.is_some() || ends(view));
                wording::derived_groups(&drawn.cloned().collect::<Vec<_>>()).len()
            }
            ResultView::Lift(_) => 0,
        };
        let groups: usize = views.into_iter().flatten().map(groups).sum();
        let expected = 2 * lifts + groups + if report.stages.is_empty() { 0 } else { 2 };
        assert_eq!(figures, expected, "{name}");
    }
}

#[test]
fn hostile_text_stays_text() {
    let page = render(&samples::hostile());
    let shown = words(&page);
    for text in [
        "<script>alert('x')</script> & \"quotes\"",
        "<b onmouseover=\"x\">",
        "&amp; <a href=\"javascript:x\">",
        "1<2",
        "<!-- refused",
    ] {
        assert!(shown.contains(text), "{text}");
    }
    assert!(shown.contains("\u{5e9}\u{5dc}\u{5d5}\u{5dd}"));
    assert!(!page.contains("<script") && !page.contains("<b on") && !page.contains("<iframe"));
}

#[test]
fn the_page_says_what_an_analyst_needs() {
    let shown = words(&render(&samples::registry()));
    for text in [
        "The vaccine group had 40.8 fewer cases per 100,000 people than the placebo group (72 % fewer).",
        "95 % interval, from chance and privacy noise: 28.4 fewer to 53.2 fewer.",
        "in favour of vaccine",
        "Do not pass on this report.",
        "Do not show this report to hospitals: it drew the noise in it.",
        "rho 0.11 for this view (0.1 release, 0.01 sizes)",
        "difference of clamped means",
        "402,263",
        "noise candidates 64, 63 opened and checked",
        "10⁻⁶",
        "For you only",
        "[\u{2212}53.2, \u{2212}28.4]",
        "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50",
        "7c41 09aa 5be2",
    ] {
        assert!(shown.contains(text), "{text}");
    }
    let noised = words(&render(&samples::hospitals()));
    let own = "Do not pass on this report. This view is for hospitals alone: its noise is made for the rows";
    assert!(noised.contains(own) && !noised.contains("contains exact numbers"), "{noised}");
    assert!(noised.contains("Do not show this report to registry: it drew the noise in it."));
    assert!(!noised.contains("exact\n"));
}

#[test]
fn refusals_programs_and_stored_answers_are_shown() {
    let shop = words(&render(&samples::shop()));
    assert!(shop.contains("refused: the test group has about 412 rows"));
    assert!(shop.contains("1 of 5 groups was refused") && shop.contains("not held: 27.0 MB"));
    assert!(shop.contains("41.0 cent per person higher") && shop.contains("11 % higher"));
    let program = words(&render(&samples::program()));
    assert!(program.contains("\u{2212}170,141,183,460,469,231,731,687,303,715,884,105,728"));
    assert!(program.contains("Do not pass on") && program.contains("customers of both"));
    assert!(program.contains("computed from noised values") && program.contains("4,000"));
    assert!(!program.contains("4,000.0") && program.contains("Do not show this report to hospitals"));
    let stored = words(&render(&samples::stored()));
    assert!(stored.contains("stored answer of an earlier run") && stored.contains("Nothing was computed"));
}

#[test]
fn a_refused_overall_has_no_headline_number() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!() };
    view.cells[0].estimate = None;
    view.cells[0].refused = Some("too few rows".into());
    let shown = words(&render(&report));
    assert!(
        shown.contains("There is no overall result for vaccine against placebo.\nRefused: too few rows.")
    );
    assert!(!shown.contains("This mode releases") && !shown.contains("Mean of each arm"));
    assert!(!shown.contains("in favour") && !shown.contains("The line at 0 means"));
}

#[test]
fn markup_escapes_text_and_attributes() {
    let made = page::markup::element("p", &[("class", "a\"b<c>&'")], [page::markup::text("<&>\u{0}")]);
    assert_eq!(made.into_string(), "<p class=\"a&quot;b&lt;c&gt;&amp;&#39;\">&lt;&amp;&gt;\u{fffd}</p>\n");
    assert_eq!(page::markup::minus("[-1.5, -2·10⁻⁶]"), "[\u{2212}1.5, \u{2212}2·10⁻⁶]");
}

/// Values come in order, inside the figure, and zero is always shown.
#[test]
fn axes_hold_their_values() {
    for values in
        [vec![-53.2, -28.4], vec![0.0], vec![], vec![1e-12, 3e-12], vec![-1e90, 1e90], vec![f64::NAN, 7.0]]
    {
        let axis = svg::Axis::around(values.iter().copied());
        let x = |value: f64| axis.x(value).trim_end_matches('%').parse::<f64>().unwrap();
        assert!(axis.shows(0.0));
        for &value in values.iter().filter(|value| value.is_finite()) {
            assert!(axis.shows(value), "{value} of {values:?}");
            assert!((4.0..=96.0).contains(&x(value)));
            assert!((x(value) < x(0.0)) == (value < 0.0) || value == 0.0);
        }
        let ticks = axis.draw(&[(0, 10)], 10, "title").len() / 2;
        assert!((3..=12).contains(&ticks), "{ticks} ticks of {values:?}");
    }
}

/// Levels far from 0 are not drawn from 0; where nothing differs they are.
#[test]
fn axes_without_a_reference_are_around_their_values() {
    let levels = svg::Axis::over([120.4, 131.0], None);
    assert!(levels.shows(120.4) && levels.shows(131.0) && !levels.shows(0.0));
    let same = svg::Axis::over([7.0, 7.0], None);
    assert!(same.shows(0.0) && same.shows(7.0) && !same.x(7.0).contains("NaN"));
    let ratio = svg::Axis::over([3.1, 4.9], Some(1.0));
    let lines = ratio.draw(&[(0, 10)], 10, "title");
    let drawn: String = lines.into_iter().map(page::markup::Markup::into_string).collect();
    assert!(ratio.shows(1.0) && drawn.matches("class=\"zero\"").count() == 1, "{drawn}");
}

/// Rows that a lift view must have in a table, each with how the last cells of its row look.
fn expected_rows(view: &LiftView) -> Vec<Vec<String>> {
    let scale = MeanScale::of([view]);
    let names = wording::cell_names(view);
    let mut rows = Vec::new();
    let tests = view.cells.iter().filter(|cell| cell.holm.is_some()).count();
    for (CellView { estimate, counts, holm, .. }, name) in view.cells.iter().zip(names) {
        if let Some(estimate) = estimate {
            let rates = estimate.rates.expect("samples have rates").map(|rate| scale.show(rate.mean));
            let relative = wording::relative(view, estimate.relative.expect("samples have it"));
            let [interval, noise] = [estimate.interval, estimate.noise_interval].map(|of| scale.interval(of));
            let [test, control] = rates;
            let cells = [
                test,
                control,
                scale.show(estimate.lift),
                interval,
                noise,
                relative,
                p_value(estimate.p_value),
            ];
            let holm = holm.filter(|_| tests > 1).map(p_value);
            let cells = cells.into_iter().chain(holm);
            rows.push([name.clone()].into_iter().chain(cells.map(|cell| number(&cell))).collect());
        }
        for count in counts {
            let arm = if count.arm.as_deref() == Some("test") { &view.test } else { &view.control };
            let sigma = count.sigma.map_or("exact".to_owned(), |sigma| significant(sigma, 3));
            let quantity = wording::quantity(&count.quantity);
            rows.push(vec![quantity, label(arm), number(&grouped(&count.value)), sigma]);
        }
    }
    rows
}

/// Rows that derived numbers must have in a table.
fn derived_rows(derived: &[DerivedView]) -> Vec<Vec<String>> {
    let groups = wording::derived_groups(derived);
    let tested = derived.iter().any(|number| number.holm.is_some());
    let row = |of: &wording::DerivedNumber<'_>| {
        // A column of each, where one number has them.
        let tests = tested.then(|| of.tests.clone().unwrap_or_default());
        let shown = [of.of.label.clone(), of.with_unit(), of.interval.clone(), of.noise.clone()];
        shown.iter().chain(tests.iter().flatten()).map(|cell| number(cell)).collect()
    };
    groups.iter().flat_map(|group| &group.numbers).map(row).collect()
}

/// What notes, warnings and counts call by its name in code is code on the page, and bare in text.
#[test]
fn no_backtick_is_shown() {
    for (name, mut report) in all() {
        report.warnings.push("rows lie outside `memory`".into());
        report.own_warnings.push("is `lineage` right?".into());
        report.inputs.filtered = 3;
        let (page, text) = (render(&report), crate::summary::terminal(&report, 110));
        for code in ["<code>memory</code>", "is <code>lineage</code> right?", "<code>where</code> does not"] {
            assert!(page.contains(code), "{name}: {code}");
        }
        assert!(text.contains("outside memory") && text.contains("is lineage right?"), "{text}");
        let public = crate::PublicReport::of(&report).map(|public| super::render_public(&public));
        for shown in [page, text, public.unwrap_or_default()] {
            assert!(!shown.contains('`'), "{name}: {shown}");
        }
    }
}

/// Every number of the JSON is on the page, once for each view that holds it: of what everybody sees, too.
#[test]
fn every_number_of_a_report_is_on_its_page() {
    let mut views = 0;
    for (name, report) in all().into_iter().filter(|(name, _)| !["broken", "hostile"].contains(name)) {
        let mut on_page = table_rows(&render(&report));
        for view in [Some(&report.view), report.public.as_ref()].into_iter().flatten() {
            views += 1;
            let expected = match view {
                ResultView::Lift(view) => expected_rows(view),
                ResultView::Program { outputs, derived, .. } => {
                    let values = wording::output_values(outputs);
                    let rows = outputs.iter().zip(values);
                    let value = |key: bool, value: &str| if key { value.to_owned() } else { number(value) };
                    let cells = |(output, shown): (&crate::ProgramOutput, String)| {
                        vec![value(output.key.is_some(), &shown), wording::noise(output)]
                    };
                    rows.map(cells).chain(derived_rows(derived)).collect()
                }
            };
            for row in expected {
                let place = on_page.iter().position(|cells| cells.ends_with(&row));
                on_page.remove(place.unwrap_or_else(|| panic!("{name}: no {row:?}")));
            }
        }
    }
    assert!(views > 12);
}

/// What anybody may publish stands first and is marked as that; the other view as what must not be passed on.
#[test]
fn a_page_tells_the_public_result_from_its_partys_own() {
    for report in [samples::both(), samples::both_by_groups(), samples::both_of_a_program()] {
        let shown = words(&render(&report));
        let place = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what}: {shown}"));
        let [public, own] = ["What everybody sees", "What registry alone sees"].map(place);
        assert!(public < place(wording::PUBLIC) && place(wording::PUBLIC) < own);
        assert!(own < place("Do not pass on what registry alone sees."));
        let text = crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS);
        assert!(text.contains("Do not pass on what registry alone sees: this view"), "{text}");
    }
    let mut report = samples::hospitals();
    report.public = Some(report.view.clone());
    let shown = words(&render(&report));
    assert!(shown.contains(wording::PUBLIC) && !shown.contains("Do not pass on"));
    assert!(!shown.contains("alone sees"));
}

/// A count of the numbers holds for the page.
#[test]
fn the_text_counts_the_numbers_of_both_views() {
    let text = crate::summary::terminal(&samples::both(), crate::summary::USUAL_COLUMNS);
    assert!(text.contains("  12 released numbers are in report.html.\n"), "{text}");
    assert_eq!(text.matches("released numbers").count(), 1);
    // As many as the stage says, whose values are those of both.
    assert!(text.contains("handled 12 values: those for all viewers."), "{text}");
}

/// A party that sees nothing reads who does, and no table of nothing.
#[test]
fn a_report_without_a_result_says_who_has_it() {
    let mut program = samples::program();
    program.view = ResultView::Program { outputs: Vec::new(), lists: Vec::new(), derived: Vec::new() };
    (program.party, program.shown_to) = ("hospitals".into(), Vec::new());
    for report in [samples::nothing(), program.clone()] {
        let (page, text) =
            (render(&report), crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS));
        let shown = words(&page);
        let who = "This study shows hospitals no result: registry alone sees it.";
        assert!(shown.contains(who) && text.contains(who), "{shown}{text}");
        for absent in ["no overall result", "Effect", "Outputs", "Every number released", "Do not pass on"] {
            assert!(!shown.contains(absent), "{absent}");
        }
        assert!(!text.contains("noise sigma") && !text.contains("what hospitals sees"), "{text}");
        let document = parse(&page);
        let bodies = document.descendants().filter(|node| node.has_tag_name("tbody"));
        assert!(bodies.into_iter().all(|body| body.children().any(|node| node.is_element())), "{page}");
    }
    program.shown_to = ["a", "b", "c"].map(str::to_owned).to_vec();
    assert!(words(&render(&program)).contains("no result: a, b and c see theirs."));
}

/// Rows of a table that say different things look different, however long their names are.
#[test]
fn no_two_names_are_cut_alike() {
    let report = samples::many();
    let rows = table_rows(&render(&report));
    let names = |part: &str| {
        let names = rows.iter().map(|row| row[0].as_str()).filter(|name| name.contains(part));
        names.collect::<std::collections::HashSet<_>>().len()
    };
    // Of the two outputs one is called as the first count is.
    assert_eq!(names("identifiers that exactly"), 15 + 1);
    let text = crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS);
    assert!(text.contains("district-1, internet-provider-of-district-3 have"), "{text}");
}

/// Names keep their hyphens; numbers have minus signs.
#[test]
fn hyphens_of_names_stay() {
    let shown = words(&render(&samples::many()));
    assert!(shown.contains("peer-00377") && shown.contains("server-4") && shown.contains("\u{2212}41"));
    assert!(!shown.contains("peer\u{2212}"));
}

/// The engine is shown whole.
#[test]
fn the_engine_is_not_cut() {
    let report = samples::many();
    let engine = "yao (softspoken:4, shallow circuit: measured 369 Mb/s, 0.0 ms)";
    assert!(words(&render(&report)).contains(engine));
    let text = crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS);
    let line = text.lines().find(|line| line.contains(engine)).unwrap_or_else(|| panic!("{text}"));
    assert!(line.chars().count() <= 110, "{line}");
}

/// What a server saw is running text: it wraps. Of many participants no table has a column for each.
#[test]
fn words_wrap_and_tables_stay_narrow() {
    let page = render(&samples::many());
    let document = parse(&page);
    let cells = document.descendants().filter(|node| node.has_tag_name("td"));
    let wide = cells.filter(|cell| text_of(*cell).len() > 40 && text_of(*cell).contains(char::is_alphabetic));
    let mut seen = 0;
    for cell in wide {
        assert_ne!(cell.attribute("class"), Some("num"), "{}", text_of(cell));
        seen += 1;
    }
    assert!(seen >= 4);
    assert!(table_rows(&page).iter().all(|row| row.len() <= 10));
}

/// On a telephone a row is a block of lines: each cell says by itself of which column it is, and nothing
/// keeps a line from wrapping.
#[test]
fn tables_fit_a_telephone() {
    let (mut labelled, mut spanning) = (0, 0);
    for (name, report) in all() {
        let page = render(&report);
        let document = parse(&page);
        for table in document.descendants().filter(|node| node.has_tag_name("table")) {
            let container = table.parent().expect("it is in a box");
            assert!(container.attribute("class").is_some_and(|class| class.starts_with("wide")), "{name}");
            let part = |tag: &str| table.children().find(|node| node.has_tag_name(tag));
            let titles: Vec<String> = part("thead").map_or_else(Vec::new, |head| {
                head.descendants().filter(|node| node.has_tag_name("th")).map(text_of).collect()
            });
            let rows = part("tbody").expect("a body").children().filter(|node| node.has_tag_name("tr"));
            for row in rows {
                let cells: Vec<_> = row.children().filter(Node::is_element).collect();
                for (cell, title) in cells.iter().zip(&titles).skip(1) {
                    spanning += usize::from(cell.attribute("colspan").is_some());
                    labelled += usize::from(cell.attribute("data-label").is_some());
                    let says = cell.attribute("data-label") == Some(title.as_str());
                    assert!(says || cell.attribute("colspan").is_some(), "{name}: {title}");
                }
            }
        }
    }
    assert!(labelled > 500 && spanning > 0, "{labelled} {spanning}");
    let style = page::SHEET;
    let narrow = style.split_once("@media screen and (max-width: 46rem) {").expect("a rule").1;
    let narrow = narrow.split_once("@media print").expect("it ends").0;
    for rule in [
        ".wide tr, .wide th, .wide td, .wide caption { display: block; }",
        ".wide thead { display: none; }",
        ".wide td.num { white-space: normal; overflow-wrap: anywhere; }",
        "content: attr(data-label)",
        "max-width: none; min-width: 0;",
    ] {
        assert!(narrow.contains(rule), "{rule}");
    }
}

/// A column for Holm's p-values, and a sentence on them, where a view compares more than one thing.
#[test]
fn several_comparisons_are_adjusted() {
    let titles = |report: &RunReport| {
        table_rows(&render(report)).into_iter().filter(|row| row.contains(&"Holm".to_owned())).count()
    };
    assert_eq!([titles(&samples::registry()), titles(&samples::shop())], [0, 1]);
    assert_eq!([titles(&samples::derived()), titles(&samples::both_by_groups())], [1, 2]);
    let page = words(&render(&samples::shop()));
    assert!(page.contains("adjusted for all 4 differences of this view"), "{page}");
    assert!(words(&render(&samples::derived())).contains("adjusted for all such hypotheses of this view"));
    // 2e-11 twice, 0.21 twice: times 4, 3, 2, 1, none below the one before.
    let ResultView::Lift(view) = samples::shop().view else { panic!("a lift report") };
    let holm: Vec<Option<f64>> = view.cells.iter().map(|cell| cell.holm).collect();
    assert_eq!(holm[2..], [Some(0.42), Some(0.42), None]);
    assert!(holm[..2].iter().all(|holm| holm.is_some_and(|holm| (holm - 8e-11).abs() < 1e-20)), "{holm:?}");
}

/// Each participant's bytes have their own look, up to more than a run has.
#[test]
fn senders_are_told_apart() {
    let page = render(&samples::many());
    let document = parse(&page);
    let swatches = document.descendants().filter_map(|node| node.attribute("class"));
    let swatches: Vec<&str> = swatches.filter(|class| class.starts_with("swatch who")).collect();
    let different: std::collections::HashSet<&&str> = swatches.iter().collect();
    assert_eq!((swatches.len(), different.len()), (20, 20));
    let style = page::SHEET;
    let colours: std::collections::HashSet<&str> =
        (0..8).map(|i| style.split_once(&format!(".who-{i} {{ --who: ")).expect("a colour").1).collect();
    let colours: std::collections::HashSet<&str> =
        colours.into_iter().map(|rest| rest.split_once(';').expect("an end").0).collect();
    assert_eq!(colours.len(), 8);
}

/// The part of an interval that is noise shows behind the dot, however narrow it is.
#[test]
fn narrow_noise_shows_beside_the_dot() {
    let page = render(&samples::registry());
    let document = parse(&page);
    let class = |name| document.descendants().filter(move |node| node.attribute("class") == Some(name));
    let dot = class("estimate").next().expect("a dot");
    let number = |node: Node<'_, '_>, name| node.attribute(name).unwrap().parse::<i32>().unwrap();
    let ends: Vec<_> = class("noise-end").collect();
    assert_eq!(ends.len(), 2);
    for end in ends {
        assert!(number(end, "y1") < number(dot, "cy") - number(dot, "r"));
        assert!(number(end, "y2") > number(dot, "cy") + number(dot, "r"));
    }
}

/// Noise alone, which is not cut, is drawn no further than an interval that is.
#[test]
fn noise_is_drawn_within_a_cut_interval() {
    let mut report = samples::derived();
    let ResultView::Program { derived, .. } = &mut report.view else { panic!("a program's") };
    let one = derived.iter().find(|view| view.statistic == "mean").expect("a mean").clone();
    *derived = vec![DerivedView {
        label: "correlation of spent with age".into(),
        statistic: "correlation".into(),
        unit: String::new(),
        value: Some(-0.62),
        intervals: vec![[Some(-1.0), Some(0.13)]],
        noise: Some(0.81),
        range: Some([Some(-1.0), Some(1.0)]),
        ..one
    }];
    let page = render(&report);
    let document = parse(&page);
    let line = |class: &str| {
        let lines = document.descendants().filter(|node| node.has_tag_name("line"));
        let flat = |node: &Node<'_, '_>| node.attribute("y1") == node.attribute("y2");
        let found = lines.into_iter().find(|node| node.attribute("class") == Some(class) && flat(node));
        let found = found.expect("a line");
        ["x1", "x2"].map(|x| found.attribute(x).unwrap().trim_end_matches('%').parse::<f64>().unwrap())
    };
    let (whole, noise) = (line("full"), line("noise"));
    assert!(noise[0] >= whole[0] && noise[1] <= whole[1] && noise[0] < noise[1], "{whole:?} {noise:?}");
    assert!(words(&page).contains("cut at \u{2212}1.00"), "{}", words(&page));
}

/// A phone cuts no name: what is longer than its line goes on in the next one.
#[test]
fn long_names_of_a_figure_have_several_lines() {
    let mut report = samples::derived();
    let ResultView::Program { derived, .. } = &mut report.view else { panic!("a program's") };
    let name = "segment = Mens E-Mail, newbie = 1 against segment = No E-Mail, newbie = 1";
    derived[3].label = format!("mean of spent, {name}");
    let page = render(&report);
    let document = parse(&page);
    let names: Vec<String> = document
        .descendants()
        .filter(|node| node.has_tag_name("text") && node.attribute("class") == Some("name"))
        .map(text_of)
        .collect();
    let parts = ["segment = Mens E-Mail, newbie = 1", "against segment = No E-Mail, newbie =", "1"];
    assert!(names.windows(3).any(|lines| lines == parts), "{names:?}");
}

/// A publisher has a report for each advertiser that it measures apart: page, title and text name it.
#[test]
fn the_advertiser_of_a_part_is_named() {
    let mut report = samples::hospitals();
    (report.party, report.role) = ("registry".into(), "publisher".into());
    report.public = Some(report.view.clone());
    let page = render(&report);
    let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).expect("one").0;
    assert!(title.ends_with(": report of registry with hospitals"), "{title}");
    let seen = "everybody, as registry with hospitals has it";
    assert!(
        words(&page).contains(seen)
            && crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS).contains(seen)
    );
    report.party = "hospitals".into();
    report.role = "advertiser".into();
    assert!(words(&render(&report)).contains("everybody, as hospitals has it"));
}

/// All people of a study are not those who see it.
#[test]
fn the_group_of_all_is_no_audience() {
    let mut report = samples::shop();
    let shown = words(&render(&report));
    assert!(shown.contains("all people") && !shown.contains("everybody"), "{shown}");
    report.public = Some(report.view.clone());
    assert!(crate::to_json(&report).unwrap().contains("\"label\": \"overall\""));
}

/// What a program derives comes first; the noised sums are folded behind it, and what is none of them is not.
#[test]
fn derived_numbers_come_before_their_sums() {
    let page = render(&samples::derived());
    let document = parse(&page);
    let folded = document.descendants().find(|node| node.has_tag_name("details")).expect("sums are folded");
    assert_eq!(folded.attribute("open"), None);
    let inside = text_of(folded);
    assert!(inside.starts_with("Noised sums from which these are computed (2)"), "{inside}");
    assert!(inside.contains("customers of both") && !inside.contains("largest limit"), "{inside}");
    let shown = words(&page);
    let place = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what}: {shown}"));
    let order = ["Mean of spent, EUR", "sampling and noise", "Noised sums from which", "largest limit"];
    assert!(order.map(place).is_sorted(), "{shown}");
    assert!(!words(&render(&samples::program())).contains("Noised sums from which"));
}

/// The lines of a figure's intervals, each by its ends and its class.
fn lines<'a>(document: &'a Document<'_>, figure: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let labelled = |node: &Node<'_, '_>| {
        node.attribute("aria-labelledby").is_some_and(|ids| ids.starts_with(&format!("{figure}-title")))
    };
    let svg = document.descendants().find(labelled).expect("the figure is there");
    let of = |node: Node<'a, '_>| {
        Some((node.attribute("x1")?, node.attribute("x2")?, node.attribute("class").unwrap_or_default()))
    };
    let lines = svg.descendants().filter(|node| node.has_tag_name("line") && node.parent() != Some(svg));
    lines.filter_map(of).filter(|(from, to, _)| from != to).collect()
}

/// An end that is open is drawn to the edge, and not as an end; both sides of a number needed to treat meet
/// where there is no difference.
#[test]
fn open_ends_are_drawn_as_open() {
    let page = render(&samples::derived());
    let document = parse(&page);
    let ratio = lines(&document, "derived-2");
    assert!(ratio[0].2 == "full" && ratio[1].2 == "noise", "{ratio:?}");
    assert!(ratio[2].1 == "100%" && ratio[2].2 == "full open" && ratio.len() == 3, "{ratio:?}");
    let treat = lines(&document, "derived-3");
    assert!(treat[0].1 == treat[1].0 && treat[0].2 == "full", "{treat:?}");
    // What may be anywhere in its range does not flatten the others.
    let mean = lines(&document, "derived-1");
    assert!(mean[4] == ("0%", "100%", "full open") && mean.len() == 5, "{mean:?}");
    assert!(words(&page).contains("Covariance of spent with ill, EUR: not determined by these sums."));
    let percent = |x: &str| x.trim_end_matches('%').parse::<f64>().unwrap();
    // -1/25.31, 0 and 1/142 on one axis with -1/13.2.
    let [low, zero, high] = [treat[0].0, treat[0].1, treat[1].1].map(percent);
    assert!(((zero - low) / (high - zero) - 142.0 / 25.31).abs() < 0.01, "{treat:?}");
}

/// Powers of ten are raised, for people: nothing is in e-notation, in the terminal or on the page.
#[test]
fn no_report_has_a_number_in_e_notation() {
    let is_power = |word: &&str| {
        let word = word.trim_matches(['(', ')', '[', ']', ',', ';', ':', '.']).replace('\u{2212}', "-");
        word.contains('e') && word.parse::<f64>().is_ok()
    };
    let mut raised = 0;
    for (name, report) in all() {
        for text in
            [words(&render(&report)), crate::summary::terminal(&report, crate::summary::USUAL_COLUMNS)]
        {
            let power = text.split_whitespace().find(is_power);
            assert_eq!(power, None, "{name}: {text}");
            raised += text.matches("10\u{207b}").count();
        }
    }
    assert!(raised > 10, "{raised}");
}

/// A symbol on a page is explained on it, and a quantity has one name everywhere.
#[test]
fn every_quantity_is_named_once_and_explained() {
    let mut report = samples::registry();
    let ResultView::Lift(view) = &mut report.view else { panic!("a lift report") };
    for (count, quantity) in view.cells[0].counts.iter_mut().zip(["centred_value", "centred_tail", "tail"]) {
        count.quantity = quantity.into();
    }
    let page = render(&report);
    let shown = words(&page);
    for text in [
        "Centred value: twice the value, less the clamp for each row.",
        "Centred tail: 32 times the tail (the clamp times the value, less the squares), less the square of",
        "Tail: the clamp times the value, less the squares.",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let csv = crate::NumberTable::of(&report).csv();
    let rows = table_rows(&page);
    for name in ["centred value", "centred tail", "tail"] {
        assert!(csv.contains(&format!(",{name},")), "{csv}");
        assert!(rows.iter().flatten().any(|cell| cell == name), "{name}");
    }
    assert!(!shown.contains(" R "), "{shown}");
}

/// Many released numbers are one click away, with how many there are; what is left of a page stays short.
#[test]
fn many_released_numbers_are_folded() {
    for (report, folded) in [(samples::registry(), false), (samples::shop(), true)] {
        let page = render(&report);
        let document = parse(&page);
        let summary = document.descendants().find(|node| node.has_tag_name("summary")).map(text_of);
        assert_eq!(summary.is_some_and(|text| text.contains("released numbers are in this table")), folded);
        assert!(words(&page).contains("released numbers are in this table"));
    }
}

/// On a phone a long name does not run into its number, and both arms of a group are told apart.
#[test]
fn long_names_have_a_line_of_their_own() {
    let texts = |report: &RunReport| {
        let page = render(report);
        let document = parse(&page);
        let figure = document
            .descendants()
            .find(|node| node.attribute("aria-labelledby").is_some_and(|ids| ids.starts_with("means")));
        let texts = figure.expect("a figure").descendants().filter(|node| node.has_tag_name("text"));
        let of = |class| texts.clone().filter(|node| node.attribute("class") == Some(class)).collect();
        let [names, values]: [Vec<_>; 2] = ["name", "value"].map(of);
        let place =
            |node: &Node<'_, '_>| node.attribute("y").expect("a place").parse::<u32>().expect("of it");
        names.iter().zip(&values).map(|(name, value)| [place(name), place(value)]).collect::<Vec<_>>()
    };
    let mut report = samples::registry();
    assert!(texts(&report).iter().all(|[name, value]| name == value));
    let ResultView::Lift(view) = &mut report.view else { panic!("a lift report") };
    view.test = "A vaccine with quite a long name".into();
    let long = texts(&report);
    assert!(long.len() == 2 && long.iter().all(|[name, value]| name < value), "{long:?}");
}

/// How files are written stands beside what was counted in them, not in its place.
#[test]
fn what_is_no_count_is_no_count() {
    let mut report = samples::registry();
    report.inputs.forms = vec!["separator \";\"".into()];
    let rows = table_rows(&render(&report));
    assert!(rows.contains(&vec!["form".to_owned(), "separator \";\"".to_owned()]), "{rows:?}");
    report.disclosed.dummies = Some(crate::DummiesInfo::default());
    assert!(words(&render(&report)).contains("rows, made-up ones among them"));
}
