//! Markup that cannot be malformed: elements are built, and text and values are escaped where they enter.

use std::fmt::Write;

/// Finished markup.
#[derive(Clone, Debug, Default)]
pub struct Markup(String);

impl Markup {
    /// Its text.
    pub fn into_string(self) -> String {
        self.0
    }
}

impl AsRef<str> for Markup {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Text, escaped.
pub fn text(words: impl AsRef<str>) -> Markup {
    let mut out = String::new();
    for c in words.as_ref().chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    Markup(out)
}

/// A style sheet of ours, without `<` and `&`.
pub fn style(css: &'static str) -> Markup {
    Markup(format!("<style>\n{css}</style>\n"))
}

/// An element; without content it closes itself.
pub fn element(name: &str, attributes: &[(&str, &str)], content: impl IntoIterator<Item = Markup>) -> Markup {
    let mut out = format!("<{name}");
    for (attribute, value) in attributes {
        // Writing to a string does not fail.
        let _ = write!(out, " {attribute}=\"{}\"", text(value).0);
    }
    let inner: String = content.into_iter().map(|part| part.0).collect();
    let void = matches!(name, "rect" | "line" | "circle" | "path" | "meta");
    if void && inner.is_empty() {
        out.push_str("/>");
    } else {
        let _ = write!(out, ">{inner}</{name}>");
    }
    if matches!(name, "svg" | "figure" | "tr" | "p" | "g" | "h1" | "h2" | "table") {
        out.push('\n');
    }
    Markup(out)
}

/// An element with a class and text alone.
pub fn words(name: &str, class: &str, words: impl AsRef<str>) -> Markup {
    let class = [("class", class)];
    element(name, if class[0].1.is_empty() { &[] } else { &class }, [text(words)])
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Whether every element that is opened is closed, in order, and attributes are quoted.
    pub fn is_well_formed(markup: &str) -> Result<(), String> {
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
    fn text_is_escaped_and_elements_are_closed() {
        let made =
            element("p", &[("title", "a \"b\"")], [text("1 < 2 & 3"), element("line", &[("x", "1")], [])]);
        let made = made.into_string();
        assert_eq!(made, "<p title=\"a &quot;b&quot;\">1 &lt; 2 &amp; 3<line x=\"1\"/></p>\n");
        is_well_formed(&made).expect("well formed");
        assert!(is_well_formed("<a><b></a></b>").is_err() && is_well_formed("<a>").is_err());
    }
}
