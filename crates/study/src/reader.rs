//! Reading a TOML file so that every complaint names file, line, column, the value met and what to write
//! instead.
//!
//! The files are small and written by people, so the walk is over the parsed tree with its spans rather than
//! through `serde`: a derived reader knows neither the neighbours of a misspelt key nor the exact text of a
//! decimal.

use base::{Error, ErrorPlace};
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest text a study or party file may hold in one place (labels, column names, titles), in bytes.
pub(crate) const TEXT_BYTES: usize = 200;

/// A file's name and text: turns byte offsets into lines and columns.
#[derive(Clone, Copy)]
pub struct TomlSource<'a> {
    /// What messages call the file.
    pub file: &'a str,
    /// What it holds.
    pub text: &'a str,
}

impl<'a> TomlSource<'a> {
    /// Parses the text.
    ///
    /// # Errors
    /// Where it stops being TOML.
    pub fn table(self) -> Result<Spanned<DeTable<'a>>, Error> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.error(at, format!("not valid TOML: {}", error.message().replace('\n', ", ")))
        })
    }

    /// Line and column (both from 1, columns in characters) of a byte offset.
    pub fn place(self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
        (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
    }

    /// The line on which the content of a string literal begins: the next one when the quotes end their line.
    pub fn text_line(self, span: std::ops::Range<usize>) -> usize {
        let literal = &self.text[span.clone()];
        let content = literal.strip_prefix("\"\"\"").or_else(|| literal.strip_prefix("'''")).unwrap_or("");
        self.place(span.start).0 + usize::from(content.starts_with('\n') || content.starts_with("\r\n"))
    }

    /// An error at a byte offset.
    pub fn error(self, offset: usize, text: impl std::fmt::Display) -> Error {
        let (line, column) = self.place(offset);
        let (file, column_text) = (self.file.to_owned(), Some(column.to_string()));
        Error::input(format!("{file}, line {line}, column {column}: {text}")).standing_at(vec![ErrorPlace {
            file,
            line: line as u64,
            column: column_text,
        }])
    }
}

/// One table whose keys are all known.
pub struct TomlSection<'s, 'a> {
    source: TomlSource<'a>,
    path: String,
    at: usize,
    table: &'s DeTable<'a>,
}

/// One value with its path (`match.duplicates`) and place.
pub struct TomlItem<'s, 'a> {
    pub(crate) source: TomlSource<'a>,
    /// Its name with those of the tables around it.
    pub path: String,
    pub(crate) value: &'s Spanned<DeValue<'a>>,
}

impl<'s, 'a> TomlSection<'s, 'a> {
    /// The whole file, with the keys it may have.
    ///
    /// # Errors
    /// When it has another one.
    pub fn root(
        source: TomlSource<'a>,
        table: &'s Spanned<DeTable<'a>>,
        keys: &[&str],
    ) -> Result<Self, Error> {
        Self { source, path: String::new(), at: 0, table: table.get_ref() }.known(keys)
    }

    fn known(self, keys: &[&str]) -> Result<Self, Error> {
        let mut unknown: Vec<_> =
            self.table.keys().filter(|key| !keys.contains(&key.get_ref().as_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        let Some(key) = unknown.first() else { return Ok(self) };
        let name = key.get_ref();
        let hint = nearest(name, keys).map_or(String::new(), |near| format!("did you mean \"{near}\"? "));
        let text = format!(
            "unknown key \"{}\" in {}; {hint}known here: {}",
            printable(name),
            self.title(),
            keys.join(", ")
        );
        Err(self.source.error(key.span().start, text))
    }

    /// How messages call this table.
    #[must_use]
    pub fn title(&self) -> String {
        if self.path.is_empty() { "the file".into() } else { format!("[{}]", self.path) }
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`, if the file has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<TomlItem<'s, 'a>> {
        let value = self.table.get(key)?;
        Some(TomlItem { source: self.source, path: self.join(key), value })
    }

    /// The value of `key`; `example` is a line that would be right.
    ///
    /// # Errors
    /// When the file has none.
    pub fn need(&self, key: &str, example: &str) -> Result<TomlItem<'s, 'a>, Error> {
        self.get(key).ok_or_else(|| {
            self.source.error(self.at, format!("{} has no \"{key}\"; add: {example}", self.title()))
        })
    }

    /// All entries in the order of the file.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'s str, TomlItem<'s, 'a>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let item = |(key, value): (&'s Spanned<std::borrow::Cow<'a, str>>, &'s Spanned<DeValue<'a>>)| {
            (key.get_ref().as_ref(), TomlItem { source: self.source, path: self.join(key.get_ref()), value })
        };
        entries.into_iter().map(item).collect()
    }

    /// An error that points at the head of this table.
    #[must_use]
    pub fn error(&self, text: impl std::fmt::Display) -> Error {
        self.source.error(self.at, text)
    }
}

impl<'s, 'a> TomlItem<'s, 'a> {
    /// Where it begins, in bytes.
    #[must_use]
    pub fn at(&self) -> usize {
        self.value.span().start
    }

    /// Where it stands: `party.toml, line 8, column 11`.
    pub fn place(&self) -> String {
        let (line, column) = self.source.place(self.at());
        format!("{}, line {line}, column {column}", self.source.file)
    }

    /// An error at this value.
    pub fn error(&self, text: impl std::fmt::Display) -> Error {
        self.source.error(self.at(), text)
    }

    /// `path is VALUE; what`: an error that shows the value met.
    pub fn refuse(&self, what: impl std::fmt::Display) -> Error {
        self.error(format!("{} is {}; {what}", self.path, self.shown()))
    }

    fn shown(&self) -> String {
        match self.value.get_ref() {
            DeValue::String(text) => format!("\"{}\"", printable(text)),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
            _ => printable(&self.source.text[self.value.span()]),
        }
    }

    /// A table here, with the keys it may have.
    ///
    /// # Errors
    /// When it is no table, or has another key.
    pub fn section(&self, keys: &[&str]) -> Result<TomlSection<'s, 'a>, Error> {
        self.open_section()?.known(keys)
    }

    /// A table here whose keys are names chosen by the user.
    ///
    /// # Errors
    /// When it is no table.
    pub fn open_section(&self) -> Result<TomlSection<'s, 'a>, Error> {
        let DeValue::Table(table) = self.value.get_ref() else {
            return Err(self.refuse(format!("write a table: [{}] or {{ ... }}", self.path)));
        };
        Ok(TomlSection { source: self.source, path: self.path.clone(), at: self.at(), table })
    }

    /// A list; its items are named `path[0]`, `path[1]`, ...
    ///
    /// # Errors
    /// When it is no list.
    pub fn list(&self) -> Result<Vec<TomlItem<'s, 'a>>, Error> {
        let DeValue::Array(items) = self.value.get_ref() else {
            return Err(self.refuse("write a list in [ ]"));
        };
        let item = |(i, value)| TomlItem { source: self.source, path: format!("{}[{i}]", self.path), value };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// Any text, of any length and with line breaks.
    ///
    /// # Errors
    /// When it is no text.
    pub fn long_text(&self) -> Result<&'s str, Error> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.refuse("write text in quotes")),
        }
    }

    /// A label: text that is not empty, not long, and without control characters (it is printed on
    /// terminals).
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self) -> Result<&'s str, Error> {
        let text = self.long_text()?;
        if text.is_empty() {
            return Err(self.refuse("it must not be empty"));
        }
        if text.len() > TEXT_BYTES {
            return Err(self.error(format!(
                "{} is {} bytes long; the limit is {TEXT_BYTES}",
                self.path,
                text.len()
            )));
        }
        if text.chars().any(char::is_control) {
            return Err(self.refuse("control characters are not allowed here"));
        }
        Ok(text)
    }

    /// A text in a form of its own; `parse` says the rule that it breaks.
    ///
    /// # Errors
    /// That rule.
    pub fn parsed<T, R: std::fmt::Display>(&self, parse: impl Fn(&str) -> Result<T, R>) -> Result<T, Error> {
        parse(self.text()?).map_err(|rule| self.refuse(rule))
    }

    /// Lower-case letters, digits, `-` and `_`: a name that is safe in paths and messages.
    ///
    /// # Errors
    /// When it is no such name.
    pub fn name(&self) -> Result<&'s str, Error> {
        let text = self.text()?;
        if is_name(text) { Ok(text) } else { Err(self.refuse(NAME_RULE)) }
    }

    /// A whole number in `range`.
    ///
    /// # Errors
    /// When it is none.
    pub fn integer(&self, range: RangeInclusive<u64>) -> Result<u64, Error> {
        let rule = || format!("use a whole number from {} to {}", range.start(), range.end());
        let DeValue::Integer(integer) = self.value.get_ref() else { return Err(self.refuse(rule())) };
        let value = u64::from_str_radix(integer.as_str(), integer.radix());
        value.ok().filter(|value| range.contains(value)).ok_or_else(|| self.refuse(rule()))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// When it is neither.
    pub fn boolean(&self) -> Result<bool, Error> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.refuse("use true or false")),
        }
    }

    /// The text of a number as written (without `_`): decimals are kept exact.
    ///
    /// # Errors
    /// When it is no number.
    pub fn number_text(&self) -> Result<String, Error> {
        match self.value.get_ref() {
            DeValue::Integer(value) if value.radix() == 10 => Ok(value.as_str().into()),
            DeValue::Float(value) => Ok(value.as_str().into()),
            _ => Err(self.refuse("use a decimal number such as 0.1")),
        }
    }

    /// One of `choices` by name. What is planned but not built is refused as such, not as a spelling mistake.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)], planned: &[&str]) -> Result<T, Error> {
        let names: Vec<&str> = choices.iter().map(|&(name, _)| name).collect();
        let DeValue::String(text) = self.value.get_ref() else {
            return Err(self.refuse(format!("use {}", either(&names))));
        };
        if let Some((_, value)) = choices.iter().find(|(name, _)| name == text) {
            return Ok(*value);
        }
        if planned.contains(&text.as_ref()) {
            return Err(self.refuse(format!("not available in this version: use {}", either(&names))));
        }
        let hint = nearest(text, &names).map_or(String::new(), |near| format!(" (did you mean \"{near}\"?)"));
        Err(self.refuse(format!("use {}{hint}", either(&names))))
    }
}

/// What a name may look like, for messages.
pub const NAME_RULE: &str =
    "a name has 1 to 64 lower-case letters, digits, \"-\" or \"_\" and begins with a letter";

/// Lower-case letters, digits, `-` and `_`, beginning with a letter, at most 64.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let good = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    text.len() <= 64 && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase) && text.bytes().all(good)
}

/// `"a", "b" or "c"`.
pub(crate) fn either(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

/// At most 60 characters of `text` with control characters escaped: safe to print whoever wrote it.
pub fn printable(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    let mut shown: String = text.chars().take(60).map(escaped).collect();
    if text.chars().nth(60).is_some() {
        shown.push_str("...");
    }
    shown
}

/// The known name nearest to a misspelt one: fewest edits, at most a third of its length (and at least one).
pub fn nearest<'n>(met: &str, known: &[&'n str]) -> Option<&'n str> {
    let met: String = met.chars().take(64).collect::<String>().to_lowercase();
    let allowed = (met.chars().count() / 3).max(1);
    let distance = |name: &&'n str| strsim::osa_distance(&met, &name.to_lowercase());
    known
        .iter()
        .map(|name| (distance(name), *name))
        .filter(|&(d, _)| d <= allowed)
        .min()
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("titel", &["name", "title", "kind"]), Some("title"));
        assert_eq!(nearest("Duplicate", &["identifiers", "duplicates"]), Some("duplicates"));
        assert_eq!(nearest("colour", &["name", "title"]), None);
        assert_eq!(nearest("lifts", &["lift", "first"]), Some("lift"));
        assert_eq!(nearest("firts", &["lists", "first"]), Some("first"), "a swap is one edit");
    }

    #[test]
    fn columns_count_characters() {
        let source = TomlSource { file: "f", text: "a = 1\nb = \"é\" # x\n" };
        assert_eq!(source.place(0), (1, 1));
        let offset = source.text.find('#').expect("there is one");
        assert_eq!(source.place(offset), (2, 9));
    }
}
