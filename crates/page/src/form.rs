//! Forms: every field has a label, and an error stands beside its field.

use crate::markup::{Markup, element, prose, spans, text, text_lines, words};
use std::fmt;

/// What is wrong with what somebody filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormMistake {
    /// The field, where it is one's.
    pub field: String,
    /// What people read there.
    pub label: String,
    /// What is wrong and what to do, to stand behind a colon.
    pub said: String,
}

impl FormMistake {
    /// One of a field.
    pub fn of(field: &str, label: &str, said: impl Into<String>) -> Self {
        Self { field: field.to_owned(), label: label.to_owned(), said: said.into() }
    }

    /// One of the form as a whole.
    pub fn of_all(said: impl Into<String>) -> Self {
        Self { said: said.into(), ..Self::default() }
    }

    /// What stands beside the field: a sentence.
    fn sentence(&self) -> String {
        let mut letters = self.said.chars();
        let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
        first + letters.as_str()
    }
}

impl fmt::Display for FormMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label.is_empty() {
            true => f.write_str(&self.sentence()),
            false => write!(f, "{}: {}", self.label, self.said),
        }
    }
}

/// All that is wrong with a form, said above it; each leads to its field, where it is said again.
#[must_use]
pub fn mistakes_of(all: &[FormMistake]) -> Markup {
    boxed(all.iter().map(|one| {
        let said = one.to_string();
        let to = format!("#{}", one.field);
        match one.field.is_empty() {
            true => prose("p", "", &said),
            false => element("p", &[], [element("a", &[("href", &to)], spans(&said))]),
        }
    }))
}

/// What is wrong with a form, said above it in a box that takes the focus. Nothing where nothing is wrong.
#[must_use]
pub fn mistakes(said: &[String]) -> Markup {
    boxed(said.iter().map(|one| prose("p", "", one)))
}

fn boxed(said: impl ExactSizeIterator<Item = Markup>) -> Markup {
    if said.len() == 0 {
        return Markup::default();
    }
    let place =
        [("class", "box stop"), ("role", "alert"), ("tabindex", "-1"), ("autofocus", ""), ("id", "mistakes")];
    element("div", &place, said)
}

/// What says of a field that something is wrong with it.
const INVALID: (&str, &str) = ("aria-invalid", "true");

/// Fields that are seldom needed, beneath a line that opens them; open where something is wrong with one.
#[must_use]
pub fn folded(title: &str, parts: impl IntoIterator<Item = Markup>) -> Markup {
    let parts = Markup::all(parts);
    // Nobody's text has a quote in it: those are escaped.
    let open = parts.as_str().contains(&format!("{}=\"{}\"", INVALID.0, INVALID.1));
    let place: &[(&'static str, &str)] = if open { &[("open", "")] } else { &[] };
    element("details", place, [words("summary", "", title), parts])
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
        self.field(true, None)
    }

    /// Its markup, where it may stay empty.
    #[must_use]
    pub fn optional(&self) -> Markup {
        self.field(false, None)
    }

    /// Its markup with what is wrong beside it, of all that is wrong.
    #[must_use]
    pub fn among(&self, needed: bool, all: &[FormMistake]) -> Markup {
        self.field(needed, all.iter().find(|one| one.field == self.name))
    }

    fn field(&self, needed: bool, wrong: Option<&FormMistake>) -> Markup {
        let [help, why] = ["help", "wrong"].map(|what| format!("{}-{what}", self.name));
        let mut attributes = vec![
            ("id", self.name),
            ("name", self.name),
            ("type", self.kind),
            ("autocomplete", self.fill),
            ("autocapitalize", "none"),
            ("spellcheck", "false"),
        ];
        attributes.extend(needed.then_some(("required", "")));
        if self.kind != "password" {
            attributes.push(("value", self.value));
        }
        let mut parts = vec![element("label", &[("for", self.name)], [text(self.label)])];
        let mut described = Vec::new();
        if !self.help.is_empty() {
            described.push(help.as_str());
            parts.push(element("p", &[("class", "note"), ("id", &help)], spans(self.help)));
        }
        if let Some(wrong) = wrong {
            described.push(why.as_str());
            attributes.push(INVALID);
            parts.push(element("p", &[("class", "wrong"), ("id", &why)], spans(&wrong.sentence())));
        }
        let described = described.join(" ");
        if !described.is_empty() {
            attributes.push(("aria-describedby", &described));
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
pub fn lines_field(name: &str, label: &str, shown: (&str, u32), help: &str) -> Markup {
    lines_of(name, label, shown, help, false)
}

/// A field of several lines, in which something has to be said.
#[must_use]
pub fn needed_lines(name: &str, label: &str, shown: (&str, u32), help: &str) -> Markup {
    lines_of(name, label, shown, help, true)
}

fn lines_of(name: &str, label: &str, (value, lines): (&str, u32), help: &str, needed: bool) -> Markup {
    let (told, lines) = (format!("{name}-help"), lines.to_string());
    let mut attributes = vec![("id", name), ("name", name), ("rows", lines.as_str())];
    attributes.extend((!help.is_empty()).then_some(("aria-describedby", told.as_str())));
    attributes.extend(needed.then_some(("required", "")));
    let label = element("label", &[("for", name)], [text(label)]);
    let help = (!help.is_empty()).then(|| element("p", &[("class", "note"), ("id", &told)], spans(help)));
    let area = element("textarea", &attributes, [text_lines(value)]);
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

/// The same for what ends something: less to the eye than the button that goes on.
#[must_use]
pub fn quiet_button(label: &str) -> Markup {
    element("button", &[("type", "submit"), ("class", "plain")], [text(label)])
}

/// A button that says, in the field `do`, what is to be done with the form. `class` is how it looks.
#[must_use]
pub fn button_to(label: &str, what: &str, class: &str) -> Markup {
    let attributes = [("type", "submit"), ("name", "do"), ("value", what), ("class", class)];
    element("button", &attributes[..if class.is_empty() { 3 } else { 4 }], [text(label)])
}

/// The same for what keeps a form as it is: no field has to be filled in for that.
#[must_use]
pub fn button_to_keep(label: &str, what: &str) -> Markup {
    let attributes = [("type", "submit"), ("name", "do"), ("value", what), ("class", "plain")];
    element("button", &[&attributes[..], &[("formnovalidate", "")]].concat(), [text(label)])
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
    fn what_is_wrong_stands_beside_its_field_and_leads_there() {
        let field = FormField { name: "n", label: "Name", kind: "text", fill: "off", value: "", help: "So." };
        let wrong = [FormMistake::of("n", "Name", "it has no letters."), FormMistake::of_all("no.")];
        let shown = field.among(true, &wrong);
        assert!(shown.as_str().contains("id=\"n-wrong\">It has no letters.</p>"), "{}", shown.as_str());
        assert!(shown.as_str().contains("aria-describedby=\"n-help n-wrong\""), "{}", shown.as_str());
        assert!(folded("More", [shown]).as_str().starts_with("<details open"));
        let other = FormField { name: "m", value: "aria-invalid=\"true\"", ..field };
        assert!(folded("More", [other.among(true, &wrong)]).as_str().starts_with("<details>"));
        let above = mistakes_of(&wrong);
        let above = above.as_str();
        assert!(above.contains("<a href=\"#n\">Name: it has no letters.</a>"), "{above}");
        assert!(above.contains("<p>No.</p>") && mistakes_of(&[]).as_str().is_empty(), "{above}");
    }

    #[test]
    fn lines_are_kept_and_escaped() {
        let area = lines_field("t", "Text", ("a <b>\nc\u{202e}d", 3), "").into_string();
        assert!(area.contains("a &lt;b&gt;\nc\u{fffd}d</textarea>"), "{area}");
        assert!(!area.contains("required"), "{area}");
        let needed = needed_lines("t", "Text", ("", 3), "Say it.").into_string();
        assert!(needed.contains("aria-describedby=\"t-help\" required=\"\">"), "{needed}");
        let both = [("a".to_owned(), "A".to_owned()), ("b".to_owned(), "B".to_owned())];
        let chosen = choice("c", "C", &both, "b").into_string();
        assert!(chosen.contains("value=\"b\" selected=\"\">B") && !chosen.contains("\"a\" selected"));
    }
}
