//! Markup that cannot be malformed: elements are built, never pasted, and text and attribute values are
//! escaped where they enter. The output is HTML that is also well-formed XML.

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

    /// The same, which stays.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Several pieces, one after the other.
    pub fn all(parts: impl IntoIterator<Item = Markup>) -> Self {
        Self(parts.into_iter().map(|part| part.0).collect())
    }
}

/// Elements without content, which HTML wants unclosed and XML closed: `<br/>` is both.
const VOID: [&str; 9] = ["meta", "link", "br", "input", "rect", "line", "circle", "path", "polyline"];

/// Text, escaped and cleaned of what could deceive.
pub fn text(text: impl AsRef<str>) -> Markup {
    Markup(escaped(text.as_ref()))
}

/// Text of several lines, which keep their breaks; each is escaped and cleaned.
pub fn text_lines(text: &str) -> Markup {
    Markup(text.lines().map(escaped).collect::<Vec<_>>().join("\n"))
}

fn escaped(text: &str) -> String {
    let text = clean(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.push_str(&rest[..at]);
        out.push_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
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
    let block = ["section", "tr", "table", "p", "h1", "h2", "svg", "g", "div", "figure", "head"];
    if block.contains(&name) {
        out.push('\n');
    }
    Markup(out)
}

/// An element with a class and text only.
pub fn words(name: &'static str, class: &str, words: impl AsRef<str>) -> Markup {
    let attributes = [("class", class)];
    element(name, if class.is_empty() { &[] } else { &attributes }, [text(words)])
}

/// An element with a class and running text. What stands between backticks in it is code; one without another
/// stays as it is.
pub fn prose(name: &'static str, class: &str, said: impl AsRef<str>) -> Markup {
    let attributes = [("class", class)];
    element(name, if class.is_empty() { &[] } else { &attributes }, spans(said.as_ref()))
}

/// Running text, as in [`prose`].
pub fn spans(mut rest: &str) -> Vec<Markup> {
    let mut all = Vec::new();
    while let Some((before, (code, after))) =
        rest.split_once('`').and_then(|(before, from)| Some((before, from.split_once('`')?)))
    {
        all.extend([text(before), words("code", "", code)]);
        rest = after;
    }
    all.push(text(rest));
    all
}

/// The same of several lines, which keep their breaks.
pub fn span_lines(said: &str) -> Vec<Markup> {
    let mut all = Vec::new();
    for (at, line) in said.lines().enumerate() {
        all.extend((at > 0).then(|| Markup("\n".to_owned())));
        all.extend(spans(line));
    }
    all
}

/// A number, with a typographic minus sign.
pub fn number(shown: &str) -> Markup {
    text(minus(shown))
}

/// The minus signs of formatted numbers as U+2212: those before a digit that begin a word or an interval.
/// Hyphens inside names stay.
pub fn minus(shown: &str) -> String {
    let chars: Vec<char> = shown.chars().collect();
    let before = |at: usize| at.checked_sub(1).map(|place| chars[place]);
    let is_minus = |at: usize| {
        let begins = before(at).is_none_or(|c| c.is_whitespace() || matches!(c, '[' | '('));
        begins && chars.get(at + 1).is_some_and(char::is_ascii_digit)
    };
    let sign = |(at, &c)| if c == '-' && is_minus(at) { '\u{2212}' } else { c };
    chars.iter().enumerate().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether every element that is opened is closed, in order, and attributes are quoted.
    fn is_well_formed(markup: &str) -> Result<(), String> {
        let mut open = Vec::new();
        let mut rest = markup;
        while let Some(at) = rest.find('<') {
            let end = rest[at..].find('>').ok_or("a tag without an end")? + at;
            let tag = &rest[at + 1..end];
            rest = &rest[end + 1..];
            if tag.matches('"').count() % 2 == 1 || tag.contains('<') {
                return Err(format!("quotes in <{tag}>"));
            }
            let name = tag.trim_matches('/').split_whitespace().next().unwrap_or("").to_owned();
            if tag.starts_with('!') || tag.starts_with('?') || tag.ends_with('/') {
                continue;
            }
            if tag.starts_with('/') {
                if open.pop().as_ref() != Some(&name) {
                    return Err(format!("</{name}> closes another element"));
                }
            } else {
                open.push(name);
            }
        }
        if open.is_empty() { Ok(()) } else { Err(format!("left open: {open:?}")) }
    }

    #[test]
    fn only_numbers_get_a_minus_sign() {
        for (shown, expected) in [
            ("-5", "\u{2212}5"),
            ("[-1.5, -2·10⁻⁶]", "[\u{2212}1.5, \u{2212}2·10⁻⁶]"),
            ("12.88 [-0.2, 3]", "12.88 [\u{2212}0.2, 3]"),
            ("peer-00377", "peer-00377"),
            ("known to shop-1 alone", "known to shop-1 alone"),
            ("node-e-5 - 1954-04-26", "node-e-5 - 1954-04-26"),
            ("-", "-"),
        ] {
            assert_eq!(minus(shown), expected);
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        for (said, expected) in [
            ("by `a <b`, or `c`.", "by <code>a &lt;b</code>, or <code>c</code>."),
            ("a ` alone", "a ` alone"),
            ("`a` and a ` alone", "<code>a</code> and a ` alone"),
            ("none", "none"),
        ] {
            assert_eq!(prose("li", "", said).into_string(), format!("<li>{expected}</li>"));
        }
        assert_eq!(Markup::all(span_lines("a ` b\nc `d`\n")).into_string(), "a ` b\nc <code>d</code>");
    }

    #[test]
    fn text_is_escaped_and_elements_are_closed() {
        let made =
            element("p", &[("title", "a \"b\"")], [text("1 < 2 & 3"), element("line", &[("x", "1")], [])]);
        let made = made.into_string();
        assert_eq!(made, "<p title=\"a &quot;b&quot;\">1 &lt; 2 &amp; 3<line x=\"1\"/></p>\n");
        is_well_formed(&made).expect("well formed");
        assert!(is_well_formed("<a><b></a></b>").is_err() && is_well_formed("<a>").is_err());
    }
}
