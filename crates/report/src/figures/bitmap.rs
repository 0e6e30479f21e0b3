//! Figures as PNG. A figure is texts, lines, bars and dots in SVG, and its style sheet says what each looks
//! like: both are read here, and drawn twice as fine.

use super::{ReportFigure, WIDTH};
use base::Error;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use tiny_skia::{
    Color, FillRule, LineJoin, Mask, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// Letters of pictures; `fonts/README.md` says whose they are.
const FONT: &[u8] = include_bytes!("fonts/roboto.ttf");
/// Height of the largest figure: 32 MB while it is drawn, as of a quarter of it, drawn twice as fine.
const TALLEST: u32 = 10_000;
/// Pixels to a metre of a picture that is drawn once as fine: 72 to an inch.
const DENSITY: u32 = 2_835;

/// What a selector of the sheet says: its element, its class, and what follows from it.
struct SheetRule<'s> {
    element: Option<&'s str>,
    class: Option<&'s str>,
    says: Vec<(&'s str, &'s str)>,
}

/// What an element looks like.
type DrawnLook<'s> = BTreeMap<&'s str, &'s str>;

/// How fine a figure is drawn: twice, or once where it is tall; none: not at all.
pub fn scale(figure: &ReportFigure) -> Option<u32> {
    match figure.height {
        height if height <= TALLEST / 4 => Some(2),
        height if height <= TALLEST => Some(1),
        _ => None,
    }
}

/// A figure as PNG.
///
/// # Errors
/// When it has what cannot be drawn, or is too large for a picture.
pub fn png(figure: &ReportFigure) -> Result<Vec<u8>, Error> {
    let document = Document::parse(&figure.svg).map_err(wrong)?;
    let root = document.root_element();
    let scale = scale(figure);
    let scale = scale
        .ok_or_else(|| Error::limit("rows of pixels of a picture", figure.height.into(), TALLEST.into()))?;
    let pixmap = Pixmap::new(WIDTH * scale, figure.height * scale);
    let sheet = root.children().find(|node| node.has_tag_name("style")).and_then(|node| node.text());
    let mut plate = Plate {
        pixmap: pixmap.ok_or_else(|| wrong("it has no size"))?,
        face: Face::parse(FONT, 0).map_err(wrong)?,
        rules: rules(sheet.unwrap_or_default()),
        masks: Vec::new(),
        mask: None,
        scale: scale as f32,
    };
    plate.inside(root, DrawnFrame { left: 0.0, top: 0.0, width: WIDTH as f32 })?;
    encoded(figure, &plate.pixmap, scale).map_err(wrong)
}

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::misuse(format!("a figure: {what}"))
}

/// The file. Nothing shines through the paper of a figure, so colours are as they were drawn.
fn encoded(figure: &ReportFigure, pixmap: &Pixmap, scale: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let density = DENSITY * scale;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: density,
        yppu: density,
        unit: png::Unit::Meter,
    }));
    encoder.add_itxt_chunk("Title".to_owned(), figure.named.clone())?;
    encoder.add_itxt_chunk("Description".to_owned(), figure.about.clone())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixmap.data())?;
    writer.finish()?;
    Ok(out)
}

/// Where percentages are of.
#[derive(Clone, Copy)]
struct DrawnFrame {
    left: f32,
    top: f32,
    width: f32,
}

impl DrawnFrame {
    /// A place or a width across: pixels, or percent of the frame.
    fn across(self, node: Node<'_, '_>, name: &str) -> f32 {
        let Some(text) = node.attribute(name) else { return 0.0 };
        let part = text.strip_suffix('%').and_then(|text| text.parse::<f32>().ok());
        part.map_or_else(|| text.parse().unwrap_or(0.0), |part| self.width * part / 100.0)
    }

    fn x(self, node: Node<'_, '_>, name: &str) -> f32 {
        self.left + self.across(node, name)
    }

    fn y(self, node: Node<'_, '_>, name: &str) -> f32 {
        self.top + number(node, name)
    }
}

/// What is drawn on.
struct Plate<'s> {
    pixmap: Pixmap,
    face: Face<'static>,
    rules: Vec<SheetRule<'s>>,
    /// Of frames by where they begin and how wide they are, to cut off what does not fit.
    masks: Vec<((f32, f32), Mask)>,
    /// Which of them holds.
    mask: Option<usize>,
    scale: f32,
}

impl<'s> Plate<'s> {
    fn inside(&mut self, parent: Node<'_, '_>, frame: DrawnFrame) -> Result<(), Error> {
        for node in parent.children().filter(Node::is_element) {
            let look = self.look(node);
            match node.tag_name().name() {
                "title" | "desc" | "style" => {}
                "g" => self.inside(node, frame)?,
                "text" => {
                    let at = (frame.x(node, "x"), frame.y(node, "y"));
                    self.text(node.text().unwrap_or_default(), at, &look);
                }
                "line" => {
                    let mut path = PathBuilder::new();
                    path.move_to(frame.x(node, "x1"), frame.y(node, "y1"));
                    path.line_to(frame.x(node, "x2"), frame.y(node, "y2"));
                    self.stroke(path.finish().as_ref(), &look);
                }
                "rect" => {
                    let (width, height) = (frame.across(node, "width"), number(node, "height"));
                    let rect = Rect::from_xywh(frame.x(node, "x"), frame.y(node, "y"), width, height);
                    self.fill(rect.map(PathBuilder::from_rect).as_ref(), &look);
                }
                "circle" => {
                    let (x, y) = (frame.x(node, "cx"), frame.y(node, "cy"));
                    let path = PathBuilder::from_circle(x, y, number(node, "r"));
                    self.fill(path.as_ref(), &look);
                    self.stroke(path.as_ref(), &look);
                }
                "svg" => {
                    let width = frame.across(node, "width");
                    let inner = DrawnFrame { left: frame.x(node, "x"), top: frame.y(node, "y"), width };
                    let outer = self.mask;
                    self.mask = self.only(inner).or(outer);
                    self.inside(node, inner)?;
                    self.mask = outer;
                }
                name => return Err(wrong(format!("<{name}> cannot be drawn"))),
            }
        }
        Ok(())
    }

    /// The mask that leaves a frame alone.
    fn only(&mut self, frame: DrawnFrame) -> Option<usize> {
        let key = (frame.left, frame.width);
        if let Some(known) = self.masks.iter().position(|(of, _)| *of == key) {
            return Some(known);
        }
        let (width, height) = (self.pixmap.width(), self.pixmap.height());
        let mut mask = Mask::new(width, height)?;
        let rect = Rect::from_xywh(frame.left, 0.0, frame.width, height as f32)?;
        mask.fill_path(&PathBuilder::from_rect(rect), FillRule::Winding, true, self.whole());
        self.masks.push((key, mask));
        Some(self.masks.len() - 1)
    }

    fn whole(&self) -> Transform {
        Transform::from_scale(self.scale, self.scale)
    }

    /// What the sheet says of an element; what is said more narrowly goes before.
    fn look(&self, node: Node<'_, '_>) -> DrawnLook<'s> {
        let (name, classes) = (node.tag_name().name(), node.attribute("class").unwrap_or_default());
        let fits = |rule: &&SheetRule<'_>| {
            rule.element.is_none_or(|element| element == name)
                && rule.class.is_none_or(|class| classes.split_whitespace().any(|own| own == class))
        };
        let mut found: Vec<&SheetRule<'s>> = self.rules.iter().filter(fits).collect();
        found.sort_by_key(|rule| (rule.class.is_some(), rule.element.is_some()));
        found.iter().flat_map(|rule| rule.says.iter().copied()).collect()
    }

    /// A colour, by its digits or by its name in the sheet.
    fn colour(&self, said: &str, look: &DrawnLook<'_>) -> Option<Color> {
        let mut said = said;
        while let Some(name) = said.strip_prefix("var(").and_then(|rest| rest.strip_suffix(')')) {
            let roots = self.rules.iter().filter(|rule| rule.element == Some(":root"));
            let root = roots.flat_map(|rule| &rule.says).find(|(known, _)| *known == name);
            said = look.get(name).copied().or(root.map(|(_, value)| *value))?;
        }
        let digits = u32::from_str_radix(said.strip_prefix('#')?, 16).ok()?;
        let [_, red, green, blue] = digits.to_be_bytes();
        Some(Color::from_rgba8(red, green, blue, 255))
    }

    fn paint(&self, of: &str, look: &DrawnLook<'_>) -> Option<Paint<'static>> {
        let mut colour = self.colour(look.get(of)?, look)?;
        colour.apply_opacity(look.get("opacity").and_then(|text| text.parse().ok()).unwrap_or(1.0));
        let mut paint = Paint::default();
        paint.set_color(colour);
        Some(paint)
    }

    fn fill(&mut self, path: Option<&Path>, look: &DrawnLook<'_>) {
        let (Some(path), Some(paint)) = (path, self.paint("fill", look)) else { return };
        let (whole, mask) = (self.whole(), self.mask.map(|place| &self.masks[place].1));
        self.pixmap.fill_path(path, &paint, FillRule::Winding, whole, mask);
    }

    fn stroke(&mut self, path: Option<&Path>, look: &DrawnLook<'_>) {
        let (Some(path), Some(paint)) = (path, self.paint("stroke", look)) else { return };
        let dash =
            look.get("stroke-dasharray").map(|text| text.split(' ').filter_map(|one| one.parse().ok()));
        let mut stroke = Stroke { width: pixels(look, "stroke-width", 1.0), ..Stroke::default() };
        stroke.dash = dash.and_then(|dash| StrokeDash::new(dash.collect(), 0.0));
        stroke.line_join = LineJoin::Round;
        let (whole, mask) = (self.whole(), self.mask.map(|place| &self.masks[place].1));
        self.pixmap.stroke_path(path, &paint, &stroke, whole, mask);
    }

    /// Words from a place, up to it or around it. What goes under them is held off by a rim.
    fn text(&mut self, words: &str, (x, y): (f32, f32), look: &DrawnLook<'_>) {
        let scale = pixels(look, "font-size", 13.0) / f32::from(self.face.units_per_em());
        let glyphs: Vec<(GlyphId, f32)> = words.chars().map(|letter| self.glyph(letter)).collect();
        let wide: f32 = glyphs.iter().map(|(_, wide)| wide * scale).sum();
        let from = match look.get("text-anchor") {
            Some(&"end") => x - wide,
            Some(&"middle") => x - wide / 2.0,
            _ => x,
        };
        let mut pen = Pen { path: PathBuilder::new(), x: from, y, scale };
        for (glyph, wide) in glyphs {
            self.face.outline_glyph(glyph, &mut pen);
            pen.x += wide * scale;
        }
        let path = pen.path.finish();
        self.stroke(path.as_ref(), look);
        if look.contains_key("font-weight") {
            let ink = look.get("fill").copied().unwrap_or_default();
            let bold = DrawnLook::from([("stroke", ink), ("stroke-width", "0.6")]);
            self.stroke(path.as_ref(), &bold);
        }
        self.fill(path.as_ref(), look);
    }

    /// The shape of a letter and how far it goes, in the font's units; a sign of its own for those that the
    /// font has not.
    fn glyph(&self, letter: char) -> (GlyphId, f32) {
        let known = |letter| self.face.glyph_index(letter);
        let glyph = known(letter).or_else(|| known('\u{fffd}')).unwrap_or_default();
        (glyph, f32::from(self.face.glyph_hor_advance(glyph).unwrap_or(0)))
    }
}

fn number(node: Node<'_, '_>, name: &str) -> f32 {
    node.attribute(name).and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn pixels(look: &DrawnLook<'_>, name: &str, unsaid: f32) -> f32 {
    look.get(name).and_then(|text| text.trim_end_matches("px").parse().ok()).unwrap_or(unsaid)
}

/// Draws outlines of letters at a place: they count upwards, and pictures downwards.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// The rules of a sheet that figures go by: `svg text`, `svg .grid`, `svg line.full`, `.who-1`, `:root`.
fn rules(sheet: &str) -> Vec<SheetRule<'_>> {
    let mut all = Vec::new();
    let mut rest = sheet;
    while let Some((head, after)) = rest.split_once('{') {
        // What holds for narrow, dark or printed pages alone is not for pictures.
        if head.trim_start().starts_with('@') {
            let mut depth = 1;
            let end = after.find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth == 0
            });
            rest = end.map_or("", |end| &after[end + 1..]);
            continue;
        }
        let Some((body, after)) = after.split_once('}') else { break };
        rest = after;
        for selector in head.split(',') {
            let selector = selector.trim();
            let selector = selector.strip_prefix("svg ").unwrap_or(selector);
            let (element, class) = match selector.split_once('.') {
                Some(("", class)) => (None, Some(class)),
                Some((element, class)) => (Some(element), Some(class)),
                None => (Some(selector), None),
            };
            let says = body.split(';').filter_map(|one| one.split_once(':'));
            let says = says.map(|(name, value)| (name.trim(), value.trim())).collect();
            all.push(SheetRule { element, class, says });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_light_pages() {
        let all = rules(page::SHEET);
        let says = |element: Option<&str>, class: Option<&str>, name: &str| {
            let found = all.iter().filter(|rule| (rule.element, rule.class) == (element, class));
            let mut found = found.flat_map(|rule| &rule.says).filter(|(known, _)| *known == name);
            let value = found.next().map(|(_, value)| *value);
            assert!(found.next().is_none(), "{element:?} {class:?} {name}");
            value
        };
        assert_eq!(says(Some(":root"), None, "--ink"), Some("#1c2530"));
        assert_eq!(says(Some("line"), Some("noise"), "stroke-width"), Some("16"));
        assert_eq!(says(None, Some("tick"), "text-anchor"), Some("middle"));
        assert_eq!(says(Some("text"), None, "font-size"), Some("13px"));
        assert_eq!(says(None, Some("who-6"), "--who"), Some("#cdbb1a"));
        assert_eq!(says(None, Some("striped"), "fill"), None);
    }

    #[test]
    fn signs_that_reports_have_are_in_the_font() {
        let face = Face::parse(FONT, 0).expect("a font");
        let signs = "0123456789.,+±·×%()[]<>≤≥=≈√∞…–—‘’“”°²³µ€⁻⁰¹²³⁴⁵⁶⁷⁸⁹\u{2212}\u{fffd}";
        for sign in signs.chars().chain('a'..='z').chain('A'..='Z').chain('α'..='ω').chain('а'..='я') {
            assert!(face.glyph_index(sign).is_some(), "{sign}");
        }
    }
}
