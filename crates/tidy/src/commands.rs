//! Command lines that pages show.

use crate::DocPage;

/// A command line of a page.
pub struct Shown {
    /// The page and the line.
    pub place: String,
    /// Its words, the program's name first.
    pub words: Vec<String>,
    /// Whether it stands in a block, as a reader would type it. Within a sentence flags that must be given
    /// may be left out.
    pub whole: bool,
}

/// What pages show of a program: blocks (indented by four spaces, or fenced as `console` or `sh`) line by
/// line, and code spans. Decisions and the changelog say what was.
#[must_use]
pub fn shown(program: &str) -> Vec<Shown> {
    let of_now = |page: &DocPage| {
        let past = page.path.starts_with("docs/decisions") || page.path.ends_with("CHANGELOG.md");
        !past
    };
    crate::pages().iter().filter(|page| of_now(page)).flat_map(|page| in_page(page, program)).collect()
}

fn in_page(page: &DocPage, program: &str) -> Vec<Shown> {
    let mut found = Vec::new();
    let (mut fence, mut open) = (None, String::new());
    for (number, line) in (1..).zip(page.text.lines()) {
        let bare = line.trim_start();
        if let Some(language) = bare.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language.to_owned()) };
            continue;
        }
        let block = match fence.as_deref() {
            Some(language) => ["console", "sh", "bash"].contains(&language),
            None => line.starts_with("    "),
        };
        let place = format!("{}:{number}", page.path.display());
        if block || !open.is_empty() {
            open.push_str(without_comment(bare));
            if open.ends_with('\\') {
                open.pop();
                continue;
            }
            let line = std::mem::take(&mut open);
            found.extend(commands(&line, program).map(|words| Shown {
                place: place.clone(),
                words,
                whole: true,
            }));
        } else if fence.is_none() {
            let spans = line.split('`').skip(1).step_by(2);
            let named =
                spans.filter(|span| span.strip_prefix(program).is_some_and(|rest| rest.starts_with(' ')));
            let lines = named.flat_map(|span| commands(span, program)).filter(|words| is_command(words));
            found.extend(lines.map(|words| Shown { place: place.clone(), words, whole: false }));
        }
    }
    found
}

/// No label of a hash or of a signed text (`tacit 2026-01 ..`, `tacit succession 1`), no `COMMAND`.
fn is_command(words: &[String]) -> bool {
    let begins = |word: &String| word.starts_with(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
    let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
    let is_label = words.get(1).is_some_and(begins) || words.len() == 3 && is_number(&words[2]);
    !is_label
}

fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default().trim_end()
}

/// The commands of a shell's line that call a program. A line with `...` leaves something out.
fn commands(line: &str, program: &str) -> impl Iterator<Item = Vec<String>> {
    let elided = line.contains("...") || line.contains('\u{2026}');
    // What ends a command ends it with or without a space before.
    let spaced =
        line.replace("\\|", ";").replace([';', '|'], " ; ").replace("&&", " ; ").replace(" &", " ; ");
    let words: Vec<String> = spaced.split_whitespace().map(str::to_owned).collect();
    let called = words.split(|word| word == ";").filter_map(|command| call(command, program));
    called.filter(|_| !elided).collect::<Vec<_>>().into_iter()
}

/// A command from its program on, if it calls `program`: without prompt, settings, redirections and the
/// brackets of a synopsis.
fn call(command: &[String], program: &str) -> Option<Vec<String>> {
    let before = |word: &&String| {
        let setting = word
            .split_once('=')
            .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'));
        setting || ["$", "do", "sudo", "then", "time"].contains(&word.as_str())
    };
    let mut words = command.iter().skip_while(before);
    let name = words.next()?.trim_start_matches("$ ");
    if name.rsplit('/').next() != Some(program) {
        return None;
    }
    let given = words
        .take_while(|word| !word.starts_with(['>', '<']) && !word.starts_with("2>") && *word != "[flags]");
    let plain = |word: &String| word.replace(['[', ']', '"', '\''], "").replace('$', "").replace('*', "1");
    Some(std::iter::once(program.to_owned()).chain(given.map(plain)).collect())
}
