//! Help by role and by word: the text of `docs/help.md`, which is in the program.

use crate::roles::{Action, Subject};
use crate::web::answer::Answer;
use crate::web::shell::{page, section};
use crate::web::visit::{Stop, Visit};
use page::form::{FormField, button, query_form};
use page::markup::{Markup, element, text, words};

const HELP: &str = include_str!("../../../../../docs/help.md");

/// A part of the text: its heading, and its paragraphs.
struct HelpPart {
    title: &'static str,
    paragraphs: Vec<&'static str>,
}

impl HelpPart {
    /// What a path calls it.
    fn path(&self) -> String {
        self.title.to_lowercase().replace(' ', "-")
    }

    fn has(&self, sought: &str) -> bool {
        let all = format!("{} {}", self.title, self.paragraphs.join(" ")).to_lowercase();
        sought.split_whitespace().all(|word| all.contains(word))
    }

    fn markup(&self) -> Vec<Markup> {
        self.paragraphs.iter().map(|paragraph| element("p", &[], inline(paragraph))).collect()
    }
}

fn parts() -> Vec<HelpPart> {
    let part = |text: &'static str| {
        let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
        HelpPart {
            title: title.trim(),
            paragraphs: rest.split("\n\n").map(str::trim).filter(|one| !one.is_empty()).collect(),
        }
    };
    HELP.split("\n## ").skip(1).map(part).collect()
}

/// `code`, *emphasis*, and of a link its words: what it leads to lies beside the program, not here.
fn inline(mut rest: &str) -> Vec<Markup> {
    let mut all = Vec::new();
    while let Some(at) = rest.find(['`', '*', '[']) {
        let (before, from) = rest.split_at(at);
        all.push(text(before));
        let (open, close, name) = match from.as_bytes()[0] {
            b'`' => ("`", "`", "code"),
            b'*' => ("*", "*", "em"),
            _ => ("[", "]", "span"),
        };
        let inner = &from[open.len()..];
        let Some((inside, after)) = inner.split_once(close) else {
            all.push(text(from));
            return all;
        };
        all.push(words(name, "", inside.trim_matches('`')));
        rest = match after.strip_prefix('(').filter(|_| name == "span").and_then(|link| link.split_once(')'))
        {
            Some((_, after)) => after,
            None => after,
        };
    }
    all.push(text(rest));
    all
}

/// All headings, or those in which something is said of what is sought.
pub fn list(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeOwn, Subject::House)?;
    let sought = visit.field("q").to_lowercase();
    let own: Vec<String> =
        visit.signed()?.actor.grants.iter().map(|grant| grant.role.name().to_owned()).collect();
    let all = parts();
    let found: Vec<&HelpPart> = all.iter().filter(|part| part.has(&sought)).collect();
    let help = FormField {
        name: "q",
        label: "Look for",
        kind: "text",
        fill: "off",
        value: visit.field("q"),
        help: "",
    };
    let mut shown = vec![query_form("/help", [help.optional(), button("Look", "")])];
    // First what one's own roles are about.
    if sought.is_empty() {
        let of_role = all.iter().filter(|part| own.contains(&part.path()));
        shown.extend(of_role.map(|part| section(part.title, part.markup())));
    }
    let item = |part: &&HelpPart| {
        let path = format!("/help/{}", part.path());
        element("li", &[], [element("a", &[("href", &path)], [text(part.title)])])
    };
    shown.push(match found.is_empty() {
        true => words("p", "", "Nothing is said of that here."),
        false => section("By role and by word", [element("ul", &[], found.iter().map(item))]),
    });
    Ok(page(visit, "Help", shown))
}

/// One part.
pub fn one(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeOwn, Subject::House)?;
    let all = parts();
    let part = all.iter().find(|part| part.path() == visit.part("word")).ok_or(Stop::Missing)?;
    let back = element("p", &[], [element("a", &[("href", "/help")], [text("All of the help")])]);
    Ok(page(visit, part.title, part.markup().into_iter().chain([back])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roles::HouseRole;

    #[test]
    fn every_role_has_a_part_and_marks_are_read() {
        let all = parts();
        for role in HouseRole::ALL {
            assert!(all.iter().any(|part| part.path() == role.name() && !part.paragraphs.is_empty()));
        }
        let shown = Markup::all(inline("a `b*c` *d* [`e`](f.md) g")).into_string();
        assert_eq!(shown, "a <code>b*c</code> <em>d</em> <span>e</span> g");
        assert!(all.iter().all(|part| part.paragraphs.iter().all(|one| !one.contains("\n#"))));
    }
}
