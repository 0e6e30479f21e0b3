//! One text for all study files that say the same.

use crate::reader::TomlSource;
use base::Error;
use std::fmt::Write;
use toml::{Table, Value};

/// Keys and sections of a study, in the order of `docs/studies/lift.md`; others follow by name.
const ORDER: [&str; 18] = [
    "format",
    "name",
    "kind",
    "title",
    "party",
    "server",
    "ring4",
    "match",
    "privacy",
    "time",
    "columns",
    "publisher",
    "advertiser",
    "lift",
    "program",
    "release",
    "compute",
    "transport",
];
/// Sections whose own sections have headers.
const NESTED: [&str; 3] = ["party", "release", "server"];

/// The text of a study file as this program writes it: the same for all files that say the same in the same
/// words, without comments. It says what `text` says, and has its hash. `file` is its name in messages.
///
/// # Errors
/// When the text is no TOML.
pub fn canonical(file: &str, text: &str) -> Result<String, Error> {
    // Says where a text stops being TOML.
    TomlSource { file, text }.table()?;
    let table: Table = text.parse().map_err(|e| Error::input(format!("{file}: not valid TOML: {e}")))?;
    let (mut head, mut sections) = (String::new(), String::new());
    for (key, value) in ordered(&table) {
        match value {
            Value::Table(section) => write_section(&mut sections, key, section),
            other => line(&mut head, key, other),
        }
    }
    Ok(head + &sections)
}

fn ordered(table: &Table) -> Vec<(&String, &Value)> {
    let place = |key: &str| ORDER.iter().position(|known| *known == key).unwrap_or(ORDER.len());
    let mut all: Vec<(&String, &Value)> = table.iter().collect();
    all.sort_by_key(|(key, _)| (place(key), key.as_str()));
    all
}

fn write_section(out: &mut String, path: &str, section: &Table) {
    let nested = NESTED.contains(&path);
    let is_section = |value: &Value| nested && value.is_table();
    if section.is_empty() || section.values().any(|value| !is_section(value)) {
        let _ = write!(out, "\n[{path}]\n");
    }
    section.iter().filter(|(_, value)| !is_section(value)).for_each(|(key, value)| line(out, key, value));
    for (key, value) in section {
        match value {
            Value::Table(inner) if nested && path == "release" && key == "to" => {
                inner.iter().for_each(|(to, own)| own_section(out, &format!("release.to.{}", word(to)), own));
            }
            own @ Value::Table(_) if nested => own_section(out, &format!("{path}.{}", word(key)), own),
            _ => {}
        }
    }
}

fn own_section(out: &mut String, path: &str, section: &Value) {
    let _ = write!(out, "\n[{path}]\n");
    section.as_table().into_iter().flatten().for_each(|(key, value)| line(out, key, value));
}

fn line(out: &mut String, key: &str, value: &Value) {
    let _ = writeln!(out, "{} = {}", word(key), written(value));
}

/// A key, bare where it may be.
fn word(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

/// A value on one line, but for a text of several.
fn written(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains('\n') => {
            let lines: Vec<String> = text.split('\n').map(escaped).collect();
            format!("\"\"\"\n{}\"\"\"", lines.join("\n"))
        }
        Value::String(text) => quoted(text),
        Value::Array(all) => format!("[{}]", all.iter().map(written).collect::<Vec<_>>().join(", ")),
        Value::Table(table) => {
            let pairs = table.iter().map(|(key, value)| format!("{} = {}", word(key), written(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        plain => plain.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => _ = write!(out, "\\u{:04X}", u32::from(c)),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StudyFile;

    /// Every example, and texts that no TOML says without a quote.
    #[test]
    fn the_canonical_text_says_the_same_and_is_its_own() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut studies = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|end| end != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if StudyFile::parse("study", &text).is_err() {
                continue; // A party file.
            }
            studies += 1;
            let odd = text.replace("title  = \"", "title  = \"\\\"\\\\ ä ");
            for text in [text, odd] {
                let own = StudyFile::parse("study", &text).unwrap();
                let written = canonical("study", &text).unwrap();
                let again = StudyFile::parse("canonical", &written).unwrap();
                assert_eq!((again.hash(), &again.parties), (own.hash(), &own.parties), "{written}");
                assert_eq!(canonical("canonical", &written).unwrap(), written);
            }
        }
        assert!(studies >= 10, "{studies} studies");
    }

    #[test]
    fn the_order_of_a_file_is_none_of_the_text() {
        let text = "kind = \"lift\"\nname = \"x\"\n[match]\nb = 1.5\na = [{ y = 2, x = \"z\" }]\n";
        let other = "# said\nname = 'x'\nkind = 'lift'\n[match]\na = [{ x = 'z', y = 0x2 }]\nb = 1.50\n";
        let written = canonical("a", text).unwrap();
        assert_eq!(written, canonical("b", other).unwrap());
        let shown = "name = \"x\"\nkind = \"lift\"\n\n[match]\na = [{ x = \"z\", y = 2 }]\nb = 1.5\n";
        assert_eq!(written, shown);
        let control = canonical("a", "title = \"\\u0007\\t\\u007f\"").unwrap();
        assert_eq!(control, "title = \"\\u0007\\t\\u007F\"\n");
        let told = canonical("study.toml", "name = \n").unwrap_err().to_string();
        assert!(told.contains("study.toml, line 1"), "{told}");
    }
}
