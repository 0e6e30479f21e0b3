//! `docs/errors.md` has what the service tells people: the page *Errors* shows that list and nothing else.

use std::path::Path;
use tidy::{read, sources};

/// Whose errors are looked up.
const OF: [&str; 4] =
    ["crates/service/src/", "crates/statements/src/", "crates/cli/src/service/", "crates/trail/src/"];
/// What makes an error that somebody can mend; `misuse` is ours.
const MADE: [&str; 2] = ["Error::input(", "Error::refused("];
/// A part of a text by which it is known, in bytes at the least and at the most.
const LEAST: usize = 12;
const MOST: usize = 60;

/// The text of a string literal that begins the code, with breaks taken out.
fn literal(code: &str) -> Option<String> {
    let code = code.trim_start();
    let code = code.strip_prefix("format!(").map_or(code, str::trim_start);
    let mut letters = code.strip_prefix('"')?.chars();
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => match letters.next()? {
                '\n' => letters = letters.as_str().trim_start().chars(),
                letter => text.push(letter),
            },
            letter => text.push(letter),
        }
    }
}

/// What of a text is the same each time: its first part without a value that is long enough, else its
/// longest.
fn known_by(text: &str) -> String {
    let parts = text.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest).trim());
    let parts: Vec<&str> = parts.collect();
    let first = parts.iter().find(|part| part.len() >= LEAST);
    let part = first.or(parts.iter().max_by_key(|part| part.len())).expect("a text has a part");
    part.chars().take(MOST).collect()
}

#[test]
fn every_error_of_the_service_is_in_the_list() {
    let listed = read(Path::new("docs/errors.md"));
    let (mut missing, mut seen) = (Vec::new(), 0);
    for source in sources() {
        let path = source.path.display().to_string();
        if !OF.iter().any(|of| path.starts_with(of)) || path.contains("tests") {
            continue;
        }
        for made in MADE {
            for (at, _) in source.text.match_indices(made) {
                let Some(text) = literal(&source.text[at + made.len()..]) else { continue };
                seen += 1;
                if !listed.contains(&known_by(&text)) {
                    let line = source.text[..at].lines().count();
                    missing.push(format!("{path}:{line}: {text}"));
                }
            }
        }
    }
    assert!(seen > 70, "{seen} errors were found: are they made in another way now?");
    assert!(missing.is_empty(), "docs/errors.md does not have:\n  {}", missing.join("\n  "));
}

#[test]
fn texts_are_read_from_code_as_people_see_them() {
    assert_eq!(
        literal("\n  format!(\n \"a \\\"{b}\\\" \\\n    c {} d\"))").as_deref(),
        Some("a \"{b}\" c {} d")
    );
    assert_eq!(literal("text)"), None);
    assert_eq!(known_by("{key} is no key of a steward"), "is no key of a steward");
    assert_eq!(known_by("{a}: {b}"), ":");
}
