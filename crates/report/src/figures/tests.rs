use super::*;
use crate::html::tests::all;
use std::collections::BTreeSet;

/// A picture that was taken apart again.
struct Decoded {
    size: (u32, u32),
    colours: Vec<[u8; 4]>,
    texts: Vec<(String, String)>,
}

impl Decoded {
    fn of(bytes: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a picture");
        let mut pixels = vec![0; reader.output_buffer_size().expect("fits")];
        let frame = reader.next_frame(&mut pixels).expect("whole");
        let texts = reader.info().utf8_text.iter();
        let texts = texts.map(|text| (text.keyword.clone(), text.get_text().expect("text"))).collect();
        let colours = pixels.chunks_exact(4).map(|four| [four[0], four[1], four[2], four[3]]).collect();
        Self { size: (frame.width, frame.height), colours, texts }
    }

    /// The colour at a place of the figure.
    fn at(&self, x: u32, y: u32) -> [u8; 3] {
        let [red, green, blue, _] = self.colours[(2 * y * self.size.0 + 2 * x) as usize];
        [red, green, blue]
    }

    /// In how many columns of a range there is ink between two heights.
    fn ink(&self, columns: std::ops::Range<u32>, (top, bottom): (u32, u32)) -> usize {
        columns.filter(|x| (top..bottom).any(|y| self.at(*x, y)[0] < 0x60)).count()
    }
}

/// A figure as the page has it, standing alone.
fn figure(height: u32, parts: Vec<Markup>, beside: Vec<Markup>) -> ReportFigure {
    let drawn = svg::figure("one", "A title", "What is seen", height, parts);
    let figure = element("figure", &[], [drawn].into_iter().chain(beside));
    let [title, facts, run] = ["A study", "Of whom, when", "Whose run"].map(str::to_owned);
    let source = FigureSource { title, facts, run };
    ReportFigure::all(&[figure], &source).expect("well-formed").pop().expect("a figure")
}

/// Where the inner figure begins under two titles of one line.
const TOP: u32 = MARGIN + 2 * TITLE_LINE + 8;
const CARD: [u8; 3] = [0xf5, 0xf7, 0xf9];

#[test]
fn bars_lines_and_dots_have_the_colours_of_the_sheet() {
    let parts = vec![
        svg::bar(50.0, 75.0, 10, 20, "test"),
        svg::horizontal("0%", "25%", 50, "noise"),
        element("g", &[], [svg::dot("90%", 50, "estimate")]),
    ];
    let figure = figure(60, parts, Vec::new());
    let picture = Decoded::of(&figure.png().expect("drawn"));
    assert_eq!(picture.size, (2 * WIDTH, 2 * (TOP + 60 + LINE + MARGIN)));
    assert!(picture.colours.iter().all(|colour| colour[3] == 0xff));
    let at = |x: u32, y: u32| picture.at(MARGIN + x, TOP + y);
    assert_eq!(picture.at(1, 1), CARD);
    assert_eq!(at(500, 20), [0x16, 0x67, 0xa8]);
    assert_eq!(at(700, 20), CARD, "a quarter of the width");
    assert_eq!(at(100, 45), [0xe0, 0xa0, 0x30], "16 pixels high");
    assert_eq!(at(684, 50), [0x1c, 0x25, 0x30]);
    let texts = [("Title", "A study: A title"), ("Description", "What is seen")];
    assert_eq!(picture.texts, texts.map(|(name, text)| (name.to_owned(), text.to_owned())));
}

#[test]
fn words_stand_where_the_sheet_anchors_them_and_are_cut_where_they_would_not_fit() {
    let ink = |part, from: u32, to: u32| {
        let figure = figure(40, vec![part], Vec::new());
        let picture = Decoded::of(&figure.png().expect("drawn"));
        assert!(picture.ink(MARGIN..MARGIN + 60, (MARGIN, MARGIN + 16)) > 20, "the title");
        picture.ink(MARGIN + from..MARGIN + to, (TOP + 10, TOP + 34))
    };
    let word = "Effect, \u{2212}1.5 \u{03c1}";
    let (end, start) = (|| svg::label("100%", 30, "value", word), || svg::label("0", 30, "name", word));
    assert!(ink(end(), 660, 760) > 20 && ink(end(), 0, 600) == 0);
    assert!(ink(start(), 0, 100) > 20 && ink(start(), 200, 760) == 0);
    let long = "word ".repeat(90);
    assert!(ink(svg::label("0", 30, "name", &long), 400, 750) > 100);
    assert_eq!(ink(svg::cut_label(30, 50, "name", &long), 382, 750), 0);
}

#[test]
fn legend_and_caption_go_along() {
    let key = |class: &str, name: &str| {
        let mark = page::markup::words("span", &format!("swatch {class}"), "");
        element("span", &[("class", "key")], [mark, text(name)])
    };
    let keys = [key("noise", "noise <alone>"), key("who who-1 striped twice", "sent by b"), key("open", "o")];
    let beside =
        vec![element("p", &[("class", "legend")], keys), page::markup::words("figcaption", "", "In words.")];
    let figure = figure(30, vec![svg::bar(0.0, 1.0, 1, 1, "test")], beside);
    for said in ["noise &lt;alone&gt;", "sent by b", "In words.", "Of whom, when", "class=\"full open\""] {
        assert!(figure.svg.contains(said), "{said}: {}", figure.svg);
    }
    let picture = Decoded::of(&figure.png().expect("drawn"));
    let first = TOP + 30 + LINE;
    assert_eq!(picture.at(MARGIN + 4, first - 4), [0xe0, 0xa0, 0x30]);
    let second = first + LINE - 10;
    assert_eq!(picture.at(MARGIN + 4, second + 6), [0xe6, 0x9f, 0x00]);
    assert_eq!([2, 8].map(|down| picture.at(MARGIN + 4, second + down)), [CARD; 2], "stripes");
    assert_eq!(picture.size.1, 2 * (first + 4 * LINE + MARGIN));
}

/// A figure that was taken along has what the page has of it; each class has a rule, and each is drawn.
#[test]
fn all_figures_of_reports_are_drawn() {
    let mut classes = BTreeSet::new();
    let mut figures = 0;
    for (name, report) in all() {
        let page = html::render(&report);
        let all = ReportFigure::of(&report, Some("2026-11-28")).expect("well-formed");
        assert_eq!(all.len(), page.matches("role=\"img\"").count(), "{name}");
        let names: BTreeSet<&str> = all.iter().map(|figure| &*figure.name).collect();
        assert_eq!(names.len(), all.len(), "{name}");
        for figure in &all {
            let document = Document::parse(&figure.svg).expect("well-formed");
            let said = words_of(document.root_element());
            let first = report.study.title.split_whitespace().next().expect("a title");
            let whose = if OF_RUN.contains(&&*figure.name) { "the run of" } else { "seen by" };
            for part in [first, &figure.title, &label(&report.study.name), whose, "2026-11-28"] {
                let part = text(part).into_string();
                assert!(figure.svg.contains(&part) || said.contains(&part), "{name}: {part}: {said}");
            }
            let texts = document.descendants().filter(|node| node.has_tag_name("text"));
            let numbers = texts.filter(|node| node.attribute("class") == Some("value"));
            for number in numbers.filter_map(|node| node.text()) {
                let escaped = text(number).into_string();
                assert!(page.contains(&escaped), "{name}, {}: {number}", figure.name);
            }
            classes
                .extend(document.descendants().filter_map(|node| node.attribute("class")).map(str::to_owned));
            let root = document.root_element();
            let size = ["width", "height"].map(|side| root.attribute(side).unwrap().parse::<u32>().unwrap());
            let bytes = figure.png().unwrap_or_else(|error| panic!("{name}, {}: {error}", figure.name));
            let picture = Decoded::of(&bytes);
            let scale = picture.size.0 / size[0];
            assert_eq!(picture.size, (scale * size[0], scale * size[1]), "{name}");
            let colours: BTreeSet<_> = picture.colours.iter().collect();
            assert!(colours.len() > 20, "{name}, {}: blank", figure.name);
            figures += 1;
        }
        if let Ok(public) = PublicReport::of(&report) {
            let all = ReportFigure::of_public(&public).expect("well-formed");
            assert_eq!(all.len(), html::render_public(&public).matches("role=\"img\"").count(), "{name}");
        }
    }
    assert!(figures > 10);
    let has_rule = |class: &str| {
        page::SHEET.contains(&format!("svg .{class} {{"))
            || page::SHEET.contains(&format!("svg line.{class} {{"))
            || page::SHEET.contains(&format!("\n.{class} {{"))
            || page::SHEET.contains(&format!("}} .{class} {{"))
    };
    for class in classes.iter().flat_map(|classes| classes.split_whitespace()) {
        assert!(has_rule(class) || ["striped", "twice"].contains(&class), "{class} has no look");
    }
}

#[test]
fn a_picture_has_a_largest_size() {
    let wide = |height| {
        let figure = figure(height, vec![svg::bar(0.0, 50.0, 0, 5, "test")], Vec::new());
        let bytes = figure.png();
        assert_eq!(figure.fits_picture(), bytes.is_ok());
        bytes.map(|bytes| Decoded::of(&bytes).size.0)
    };
    assert_eq!([2_360, 2_460, 9_860].map(|height| wide(height).expect("fits")), [2 * WIDTH, WIDTH, WIDTH]);
    let refused = wide(10_000).expect_err("too large").to_string();
    assert!(refused.contains("rows of pixels of a picture"), "{refused}");
}
