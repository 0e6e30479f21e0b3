use super::render;
use super::samples;
use crate::{ResultView, RunReport};
use page::svg;
use roxmltree::{Document, ParsingOptions};

fn all() -> Vec<(&'static str, RunReport)> {
    vec![
        ("registry", samples::registry()),
        ("hospitals", samples::hospitals()),
        ("shop", samples::shop()),
        ("program", samples::program()),
        ("hostile", samples::hostile()),
        ("broken", samples::broken_numbers()),
        ("stored", samples::stored()),
    ]
}

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn words(page: &str) -> String {
    let document = parse(page);
    let text: String = document.root_element().descendants().filter_map(|node| node.text()).collect();
    text.replace('\u{2212}', "-")
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
        assert_eq!(words(&render(&report)).contains("miss the truth by chance"), shown >= 4, "{name}");
        told += usize::from(shown >= 4);
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
        let expected = match (&report.view, report.stages.is_empty()) {
            (ResultView::Lift(_), false) => 4,
            (ResultView::Lift(_), true) | (ResultView::Program { .. }, false) => 2,
            (ResultView::Program { .. }, true) => 0,
        };
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
        "1e-6",
        "For you only",
        "[-53.2, -28.4]",
        "tacit1:b07e66d2915c4fa3a2d8017b34ce9f50",
        "7c41 09aa 5be2",
    ] {
        assert!(shown.contains(text), "{text}");
    }
    let noised = words(&render(&samples::hospitals()));
    assert!(!noised.contains("Do not pass on"));
    assert!(noised.contains("Do not show this report to registry: it drew the noise in it."));
    assert!(!noised.contains("exact\n"));
}

#[test]
fn refusals_programs_and_stored_answers_are_shown() {
    let shop = words(&render(&samples::shop()));
    assert!(shop.contains("refused: the test group has about 412 rows"));
    assert!(shop.contains("1 of 5 groups was refused") && shop.contains("not held: 27 MB"));
    assert!(shop.contains("41.0 cent per person higher") && shop.contains("11 % higher"));
    let program = words(&render(&samples::program()));
    assert!(program.contains("-170,141,183,460,469,231,731,687,303,715,884,105,728"));
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
    assert!(!shown.contains("This mode releases") && !shown.contains("Rates per arm"));
    assert!(!shown.contains("in favour") && !shown.contains("The line at 0 means"));
}

#[test]
fn markup_escapes_text_and_attributes() {
    let made = page::markup::element("p", &[("class", "a\"b<c>&'")], [page::markup::text("<&>\u{0}")]);
    assert_eq!(made.into_string(), "<p class=\"a&quot;b&lt;c&gt;&amp;&#39;\">&lt;&amp;&gt;\u{fffd}</p>\n");
    assert_eq!(page::markup::minus("[-1.5, -2e-6]"), "[\u{2212}1.5, \u{2212}2e\u{2212}6]");
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
