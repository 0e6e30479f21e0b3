//! The figures of a report as files of their own: SVG with title, legend and caption, and the same drawn as
//! PNG. Both are taken from the page, so all show the same.

mod bitmap;
#[cfg(test)]
mod tests;

use crate::html::{self, PageStands};
use crate::wording::{self, label, names, seen_by, whose};
use crate::{PublicReport, RunReport, StudyInfo};
use base::Error;
use page::lines::wrapped;
use page::markup::{Markup, element, text};
use page::svg;
use roxmltree::{Document, Node};

/// The width of a figure that stands alone and the room around it, in pixels.
const WIDTH: u32 = 800;
const MARGIN: u32 = 20;
/// Height of a line of the title and of a line below the figure.
const TITLE_LINE: u32 = 20;
const LINE: u32 = 20;
/// Characters that stand in such a line.
const TITLE_CHARS: usize = 84;
const LINE_CHARS: usize = 100;
/// Of a study's title.
const STUDY_CHARS: usize = 300;
/// Where the mark of a key ends and its words begin.
const MARK: u32 = MARGIN + 18;
const WORDS: u32 = MARK + 8;

/// A figure that stands alone.
pub struct ReportFigure {
    /// Its file, without an ending.
    pub name: String,
    /// What it is called.
    pub title: String,
    /// What is seen on it, for those who do not see it.
    pub about: String,
    /// The figure.
    pub svg: String,
    /// What it is called where nothing else says of which study it is.
    named: String,
    height: u32,
}

/// Of what figures are, which stands on each: nobody who sees one by itself has the page.
struct FigureSource {
    /// The title of the study.
    title: String,
    /// Its name and hash, who sees it, and of which day it is.
    facts: String,
    /// The same of figures of the run, which are one party's.
    run: String,
}

/// Figures of the run.
const OF_RUN: [&str; 2] = ["time", "bytes"];

impl FigureSource {
    fn of(study: &StudyInfo, [whose, run]: [&str; 2], day: Option<&str>) -> Self {
        let hash = label(&study.hash);
        let facts = |whose: &str| {
            let facts = [format!("study {} ({hash})", label(&study.name)), whose.to_owned()];
            facts.into_iter().chain(day.map(str::to_owned)).collect::<Vec<_>>().join(" · ")
        };
        let title = wording::shortened(&study.title, STUDY_CHARS);
        Self { title, facts: facts(whose), run: facts(run) }
    }
}

impl ReportFigure {
    /// Those of a report, of a day where somebody knows it: a report has none.
    ///
    /// # Errors
    /// When the page is not well-formed, which a test rules out.
    pub fn of(report: &RunReport, day: Option<&str>) -> Result<Vec<Self>, Error> {
        Self::on_page(report, day, &html::sections(report, PageStands::Served))
    }

    /// The same, of the [`html::sections`] that somebody has already.
    ///
    /// # Errors
    /// See [`Self::of`].
    pub fn on_page(report: &RunReport, day: Option<&str>, sections: &[Markup]) -> Result<Vec<Self>, Error> {
        let (shown, run) = (format!("seen by {}", seen_by(report)), format!("the run of {}", whose(report)));
        let source = FigureSource::of(&report.study, [&shown, &run], day);
        Self::all(sections, &source)
    }

    /// Those of a public result.
    ///
    /// # Errors
    /// See [`Self::of`].
    pub fn of_public(public: &PublicReport) -> Result<Vec<Self>, Error> {
        let whose = format!("public result of {}", names(&public.parties));
        Self::all(&html::public_sections(public), &FigureSource::of(&public.study, [&whose; 2], None))
    }

    fn all(sections: &[Markup], source: &FigureSource) -> Result<Vec<Self>, Error> {
        let sections: String = sections.iter().map(Markup::as_str).collect();
        let page = format!("<main>{sections}</main>");
        let page = Document::parse(&page).map_err(|error| Error::misuse(format!("a page: {error}")))?;
        let figures = page.descendants().filter(|node| node.has_tag_name("figure"));
        Ok(figures.filter_map(|figure| standing_alone(figure, source)).collect())
    }

    /// Whether it fits into a picture: one of hundreds of rows does as a drawing alone.
    #[must_use]
    pub fn fits_picture(&self) -> bool {
        bitmap::scale(self).is_some()
    }

    /// The figure as PNG, twice as fine, with its title and what is seen on it as texts of the file.
    ///
    /// # Errors
    /// Where it does not fit.
    pub fn png(&self) -> Result<Vec<u8>, Error> {
        bitmap::png(self)
    }
}

/// A figure of a page with all that belongs to it.
fn standing_alone(figure: Node<'_, '_>, source: &FigureSource) -> Option<ReportFigure> {
    let inner = figure.children().find(|node| node.attribute("role") == Some("img"))?;
    let child = |name| inner.children().find(|node| node.has_tag_name(name));
    let (title, about) = (child("title")?, child("desc")?);
    let (ids, name) = (inner.attribute("aria-labelledby")?, title.attribute("id")?.strip_suffix("-title")?);
    let height: u32 = inner.attribute("height")?.parse().ok()?;
    let drawn = &figure.document().input_text()[about.range().end..inner.last_child()?.range().end];
    let named = [title, about].map(|node| words_of(node));
    let [shown, seen] = &named;
    let whole = format!("{}: {shown}", source.title);
    let lines = |text, class| wrapped(text, TITLE_CHARS, "", "").into_iter().map(move |line| (class, line));
    let lines: Vec<_> = lines(&source.title, "heading").chain(lines(shown, "name")).collect();
    let top = MARGIN + TITLE_LINE * lines.len() as u32 + 8;
    let place = |x: u32| x.to_string();
    let heading = (MARGIN + 15..).step_by(TITLE_LINE as usize).zip(&lines);
    let heading = heading.map(|(y, (class, line))| svg::label(&place(MARGIN), y, class, line));
    let facts = if OF_RUN.contains(&name) { &source.run } else { &source.facts };
    let (below, end) = below(figure, top + height + LINE, facts);
    let names = [(title, &whole), (about, seen)].map(|(node, words)| {
        let name = if node == title { "title" } else { "desc" };
        element(name, &[("id", node.attribute("id").unwrap_or_default())], [text(words)])
    });
    let names = Markup::all(names).into_string();
    let paper = rect((0, 0), (WIDTH, end), "paper");
    let before = Markup::all([paper].into_iter().chain(heading)).into_string();
    let (width, below) = (WIDTH - 2 * MARGIN, Markup::all(below).into_string());
    // What was drawn for the page stands here as it is.
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-labelledby=\"{ids}\" width=\"{WIDTH}\" \
         height=\"{end}\">{names}<style>{}</style>{before}<svg x=\"{MARGIN}\" y=\"{top}\" \
         width=\"{width}\" height=\"{height}\">{drawn}</svg>\n{below}</svg>\n",
        page::SHEET
    );
    let [title, about] = named;
    Some(ReportFigure { name: name.to_owned(), title, about, svg, named: whole, height: end })
}

/// Legend, caption and facts from a line on, and where they end.
fn below(figure: Node<'_, '_>, mut y: u32, facts: &str) -> (Vec<Markup>, u32) {
    let of =
        |class: &'static str| figure.descendants().filter(move |node| node.attribute("class") == Some(class));
    let mut parts = Vec::new();
    for key in of("key") {
        let class = key.first_element_child().and_then(|node| node.attribute("class")).unwrap_or_default();
        parts.extend(mark(class.strip_prefix("swatch ").unwrap_or(class), y - 4));
        for line in wrapped(&words_of(key), LINE_CHARS, "", "") {
            parts.push(svg::label(&WORDS.to_string(), y, "of-name", &line));
            y += LINE;
        }
    }
    // What stands over a figure is its title once more.
    let caption = figure.children().find(|node| node.has_tag_name("figcaption"));
    let caption = caption.filter(|node| node.attribute("class").is_none()).map(words_of);
    let texts = caption.iter().map(String::as_str).chain([facts]);
    for line in texts.flat_map(|text| wrapped(text, LINE_CHARS, "", "")) {
        parts.push(svg::label(&MARGIN.to_string(), y, "of-name", &line));
        y += LINE;
    }
    (parts, y - LINE + MARGIN)
}

/// The mark of a key: a line where such lines are drawn, a bar otherwise.
fn mark(class: &str, y: u32) -> Vec<Markup> {
    let [from, to] = [MARGIN, MARK].map(|x| x.to_string());
    match class {
        "full" | "noise" | "whisker" => vec![svg::horizontal(&from, &to, y, class)],
        "open" => vec![svg::horizontal(&from, &to, y, "full open")],
        _ => {
            let size = |height| (MARK - MARGIN, height);
            let stripes = html::stripes(class).iter();
            let stripes = stripes.map(|down| rect((MARGIN, y - 6 + down), size(2), "stripe"));
            [rect((MARGIN, y - 6), size(12), class)].into_iter().chain(stripes).collect()
        }
    }
}

fn rect((x, y): (u32, u32), (width, height): (u32, u32), class: &str) -> Markup {
    let [x, y, width, height] = [x, y, width, height].map(|pixels| pixels.to_string());
    let place = [("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height), ("class", class)];
    element("rect", &place, [])
}

/// All text of an element.
fn words_of(node: Node<'_, '_>) -> String {
    node.descendants().filter(|node| node.is_text()).filter_map(|node| node.text()).collect()
}
