//! Help by page, by role and by word, and what can go wrong: the texts of `docs/help.md` and of
//! `docs/errors.md`, which are in the program.

use crate::roles::{Action, Subject};
use crate::web::answer::Answer;
use crate::web::shell::{page, section, table};
use crate::web::visit::{Stop, Visit};
use page::form::{FormField, button, query_form};
use page::markup::{Markup, element, text, words};

const HELP: &str = include_str!("../../../../../docs/help.md");
const ERRORS: &str = include_str!("../../../../../docs/errors.md");
/// Errors that are shown of those that were looked for.
const FOUND: usize = 50;

/// The part of the help that is about a page.
pub fn about(path: &str) -> Option<&'static str> {
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let part = match parts.as_slice() {
        [""] => "home",
        ["studies"] => "studies",
        ["studies", "new"] => "propose-a-study",
        ["studies", _, "run" | "stop" | "start" | "take"] => "the-run",
        ["studies", _, "report", ..] => "the-report",
        ["studies" | "drafts", _, "rehearsal" | "rehearse"] => "rehearsal",
        ["studies", ..] => "a-study",
        ["data", ..] => "data",
        ["budget"] => "budget",
        ["rules", ..] => "rules",
        ["accounts", ..] => "accounts",
        ["confirmations", ..] => "to-confirm",
        ["peers", ..] => "peers",
        ["operate", ..] => "operate",
        ["audit", ..] => "audit",
        ["account", ..] => "your-account",
        _ => return None,
    };
    Some(part)
}

/// What can go wrong: under which heading, why, and what is said then.
struct ErrorRow {
    heading: &'static str,
    why: &'static str,
    said: &'static str,
}

fn errors() -> Vec<ErrorRow> {
    let mut heading = "";
    let mut all = Vec::new();
    let mut lines = ERRORS.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("##") {
            let title = line.trim_start_matches('#').trim();
            heading = title.split(" (").next().unwrap_or(title);
        }
        // The head of a table stands over its rule.
        let is_head = lines.peek().is_some_and(|next| next.starts_with("|--"));
        let Some(row) = line.strip_prefix("| ").filter(|_| !is_head) else { continue };
        let mut cells = row.split(" | ").map(str::trim);
        if let (Some(why), Some(said)) = (cells.next(), cells.next()) {
            all.push(ErrorRow { heading, why, said });
        }
    }
    all
}

/// Rows of a table of errors.
fn listed<'e>(caption: &str, all: impl IntoIterator<Item = &'e ErrorRow>) -> Markup {
    let cells = |one: &ErrorRow| {
        let cell = |said| element("bdi", &[("class", "lines")], inline(said));
        vec![cell(one.why), cell(one.said)]
    };
    table(caption, &["When", "What is said"], all.into_iter().map(cells).collect::<Vec<_>>())
}

/// All errors, by what they are about.
pub fn all_errors(visit: &Visit<'_>) -> Result<Answer, Stop> {
    visit.must(Action::SeeOwn, Subject::House)?;
    let all = errors();
    let mut parts = vec![element("p", &[], [element("a", &[("href", "/help")], [text("All of the help")])])];
    for one in all.chunk_by(|one, next| one.heading == next.heading) {
        let heading = one[0].heading;
        let list = listed("Causes, and texts that say what to do", one);
        let title = words("summary", "", heading.replace('`', ""));
        parts.push(element("details", &[], [title, list]));
    }
    Ok(page(visit, "Errors", parts))
}

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
    let known = errors();
    let words_of = |one: &ErrorRow| format!("{} {} {}", one.heading, one.why, one.said).to_lowercase();
    let fits = |one: &&ErrorRow| {
        let all = words_of(one);
        sought.split_whitespace().all(|word| all.contains(word))
    };
    let wrong: Vec<&ErrorRow> =
        known.iter().filter(|_| !sought.is_empty()).filter(fits).take(FOUND).collect();
    let item = |part: &&HelpPart| {
        let path = format!("/help/{}", part.path());
        element("li", &[], [element("a", &[("href", &path)], [text(part.title)])])
    };
    shown.extend(match found.is_empty() {
        true if wrong.is_empty() => Some(words("p", "", "Nothing is said of that here.")),
        true => None,
        false => Some(section("By role, page and word", [element("ul", &[], found.iter().map(item))])),
    });
    if !wrong.is_empty() {
        let list = listed("Causes, and texts that say what to do", wrong);
        shown.push(section("Errors", [list]));
    }
    let errors = element("a", &[("href", "/help/errors")], [text("Errors: all causes and texts")]);
    shown.push(element("p", &[], [errors]));
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
        for path in ["/", "/studies", "/studies/new", "/studies/00", "/studies/00/run", "/studies/00/report"]
        {
            let part = about(path).expect("a part");
            assert!(all.iter().any(|one| one.path() == part), "{path}: {part}");
        }
        for path in
            ["data", "budget", "rules", "accounts", "confirmations", "peers", "operate", "audit", "account"]
        {
            let part = about(&format!("/{path}")).expect("a part");
            assert!(all.iter().any(|one| one.path() == part), "{path}: {part}");
        }
        let shown = Markup::all(inline("a `b*c` *d* [`e`](f.md) g")).into_string();
        assert_eq!(shown, "a <code>b*c</code> <em>d</em> <span>e</span> g");
        assert!(all.iter().all(|part| part.paragraphs.iter().all(|one| !one.contains("\n#"))));
    }

    #[test]
    fn errors_have_a_cause_and_a_text() {
        let all = errors();
        assert!(all.len() > 250, "{}", all.len());
        let found = all.iter().find(|one| one.why == "a misspelt key").expect("of the service");
        assert!(found.said.contains("did you mean \"budget\"?") && found.heading.contains("tacit service"));
        assert!(all.iter().all(|one| !one.heading.is_empty() && !one.said.is_empty()));
    }
}
