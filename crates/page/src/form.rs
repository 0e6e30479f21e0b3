//! Forms: every field has a label, and an error stands beside its field.

use crate::markup::{Markup, element, text, text_lines, words};

/// What is wrong with a form, said above it in a box that takes the focus. Nothing where nothing is wrong.
#[must_use]
pub fn mistakes(said: &[String]) -> Markup {
    if said.is_empty() {
        return Markup::default();
    }
    let place =
        [("class", "box stop"), ("role", "alert"), ("tabindex", "-1"), ("autofocus", ""), ("id", "mistakes")];
    element("div", &place, said.iter().map(|one| words("p", "", one)))
}

/// A field of one line.
#[derive(Clone, Copy, Debug)]
pub struct FormField<'a> {
    /// What the form calls it; its id, too.
    pub name: &'a str,
    /// What people read.
    pub label: &'a str,
    /// `text`, `password` or `date`.
    pub kind: &'a str,
    /// What browsers may fill in: `username`, `current-password`, `new-password`, `off`.
    pub fill: &'a str,
    /// What it holds.
    pub value: &'a str,
    /// What helps, beneath the label; empty: nothing.
    pub help: &'a str,
}

impl FormField<'_> {
    /// Its markup. It must be filled in.
    #[must_use]
    pub fn markup(&self) -> Markup {
        self.field(&[("required", "")])
    }

    /// Its markup, where it may stay empty.
    #[must_use]
    pub fn optional(&self) -> Markup {
        self.field(&[])
    }

    fn field(&self, needed: &[(&'static str, &str)]) -> Markup {
        let help = format!("{}-help", self.name);
        let mut attributes = vec![
            ("id", self.name),
            ("name", self.name),
            ("type", self.kind),
            ("autocomplete", self.fill),
            ("autocapitalize", "none"),
            ("spellcheck", "false"),
        ];
        attributes.extend(needed);
        if self.kind != "password" {
            attributes.push(("value", self.value));
        }
        let mut parts = vec![element("label", &[("for", self.name)], [text(self.label)])];
        if !self.help.is_empty() {
            attributes.push(("aria-describedby", &help));
            parts.push(element("p", &[("class", "note"), ("id", &help)], [text(self.help)]));
        }
        parts.push(element("input", &attributes, []));
        element("div", &[("class", "field")], parts)
    }
}

/// A choice of one among several: what is sent, and what people read; `chosen` is what stands there first.
#[must_use]
pub fn choice(name: &str, label: &str, among: &[(String, String)], chosen: &str) -> Markup {
    let options = among.iter().map(|(value, shown)| {
        let attributes = [("value", value.as_str()), ("selected", "")];
        let given = if value == chosen { 2 } else { 1 };
        element("option", &attributes[..given], [text(shown)])
    });
    let select = element("select", &[("id", name), ("name", name)], options);
    element("div", &[("class", "field")], [element("label", &[("for", name)], [text(label)]), select])
}

/// A field of several lines, which may stay empty.
#[must_use]
pub fn lines_field(name: &str, label: &str, (value, lines): (&str, u32), help: &str) -> Markup {
    let (told, lines) = (format!("{name}-help"), lines.to_string());
    let attributes = [("id", name), ("name", name), ("rows", &lines), ("aria-describedby", &told)];
    let given = if help.is_empty() { 3 } else { 4 };
    let label = element("label", &[("for", name)], [text(label)]);
    let help = (!help.is_empty()).then(|| element("p", &[("class", "note"), ("id", &told)], [text(help)]));
    let area = element("textarea", &attributes[..given], [text_lines(value)]);
    element("div", &[("class", "field")], [label].into_iter().chain(help).chain([area]))
}

/// Something that is so or not so.
#[must_use]
pub fn tick(name: &str, label: &str, on: bool) -> Markup {
    let attributes = [("id", name), ("name", name), ("type", "checkbox"), ("value", "yes"), ("checked", "")];
    let given = if on { 5 } else { 4 };
    let label = element("label", &[("for", name)], [text(label)]);
    element("div", &[("class", "field tick")], [element("input", &attributes[..given], []), label])
}

/// A form that is sent to `path` with the word that proves where it came from, if there is one.
#[must_use]
pub fn form(path: &str, word: Option<&str>, parts: impl IntoIterator<Item = Markup>) -> Markup {
    let word = word.map(|word| hidden("csrf", word));
    element("form", &[("method", "post"), ("action", path)], word.into_iter().chain(parts))
}

/// A form that asks for a page and changes nothing.
#[must_use]
pub fn query_form(path: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    element("form", &[("method", "get"), ("action", path)], parts)
}

/// A field that people do not see.
#[must_use]
pub fn hidden(name: &str, value: &str) -> Markup {
    element("input", &[("type", "hidden"), ("name", name), ("value", value)], [])
}

/// Whose password a form has, for programs that keep passwords; people read it elsewhere on the page.
#[must_use]
pub fn whose(name: &str) -> Markup {
    let of = [("type", "text"), ("name", "username"), ("autocomplete", "username"), ("value", name)];
    element("input", &[&of[..], &[("readonly", ""), ("hidden", "")]].concat(), [])
}

/// The button that sends a form. Where several on a page say the same, `about` tells them apart aloud.
#[must_use]
pub fn button(label: &str, about: &str) -> Markup {
    let told = format!("{label} {about}");
    let attributes = [("type", "submit"), ("aria-label", told.as_str())];
    element("button", if about.is_empty() { &attributes[..1] } else { &attributes }, [text(label)])
}

/// A button that says, in the field `do`, what is to be done with the form. `class` is how it looks.
#[must_use]
pub fn button_to(label: &str, what: &str, class: &str) -> Markup {
    let attributes = [("type", "submit"), ("name", "do"), ("value", what), ("class", class)];
    element("button", &attributes[..if class.is_empty() { 3 } else { 4 }], [text(label)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_passwords_are_never_in_a_page() {
        let value = "\"><script>";
        let field = FormField { name: "n", label: "Name", kind: "text", fill: "off", value, help: "" };
        let shown = field.markup().into_string();
        assert!(
            shown.contains("value=\"&quot;&gt;&lt;script&gt;\"") && !shown.contains("<script"),
            "{shown}"
        );
        let hidden = FormField { kind: "password", ..field }.markup().into_string();
        assert!(!hidden.contains("value="), "{hidden}");
        assert!(form("/x", Some("w"), []).into_string().contains("name=\"csrf\" value=\"w\""));
    }

    #[test]
    fn lines_are_kept_and_escaped() {
        let area = lines_field("t", "Text", ("a <b>\nc\u{202e}d", 3), "").into_string();
        assert!(area.contains("a &lt;b&gt;\nc\u{fffd}d</textarea>"), "{area}");
        let both = [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        let chosen = choice("c", "C", &both, "b").into_string();
        assert!(chosen.contains("value=\"b\" selected=\"\">B") && !chosen.contains("\"a\" selected"));
    }
}
