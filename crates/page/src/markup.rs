//! Markup that cannot be malformed: elements are built, never pasted, and text and attribute values are escaped where they
//! enter. The output is HTML that is also well-formed XML.

use base::clean;
use std::fmt::Write;

/// Finished markup.
#[derive(Clone, Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// Its text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Several pieces, one after the other.
    pub fn all(parts: impl IntoIterator<Item = Markup>) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

/// Elements without content, which HTML wants unclosed and XML closed: `<br/>` is both.
const VOID: [&str; 5] = ["meta", "br", "rect", "line", "circle"];

/// Text, escaped and cleaned of what could deceive.
pub fn text(text: impl AsRef<str>) -> Markup {
    Markup(escaped(text.as_ref()))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// A style sheet of ours, which must hold no `<` and no `&`.
pub fn style_sheet(css: &'static str) -> Markup {
    debug_assert!(!css.contains(['<', '&']), "the style sheet would need escaping");
    Markup(format!("<style>\n{css}</style>\n"))
}

/// An element. Names of elements and attributes are ours; values are escaped.
pub fn element(
    name: &'static str,
    attributes: &[(&'static str, &str)],
    content: impl IntoIterator<Item = Markup>,
) -> Markup {
    let mut out = format!("<{name}");
    for (attribute, value) in attributes {
        let _ = write!(out, " {attribute}=\"{}\"", escaped(value));
    }
    if VOID.contains(&name) {
        out.push_str("/>");
        return Markup(out);
    }
    out.push('>');
    content.into_iter().for_each(|part| out.push_str(&part.0));
    let _ = write!(out, "</{name}>");
    if matches!(name, "section" | "tr" | "table" | "p" | "h2" | "svg" | "g" | "div" | "figure" | "head") {
        out.push('\n');
    }
    Markup(out)
}

/// An element with a class and text only.
pub fn words(name: &'static str, class: &str, words: impl AsRef<str>) -> Markup {
    let attributes = [("class", class)];
    element(name, if class.is_empty() { &[] } else { &attributes }, [text(words)])
}

/// A number, with a typographic minus sign.
pub fn number(shown: &str) -> Markup {
    text(minus(shown))
}

/// ASCII minus signs of a formatted number, or of an interval, as U+2212.
pub fn minus(shown: &str) -> String {
    shown.replace('-', "\u{2212}")
}
