//! A study file as text in sections, each with the comments that say why: one party writes its own, the other
//! adds to them.

use base::Error;
use page::lines::wrapped;
use std::path::Path;
use study::StudyFile;

/// Columns of a comment, at most.
const WIDTH: usize = 100;

/// A study file that is being written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StudyDraft {
    sections: Vec<DraftSection>,
}

/// A section with its heading and the comments before it; what stands before all others has no name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DraftSection {
    name: String,
    text: String,
}

/// Sections in the order in which they are read.
const ORDER: [&str; 14] = [
    "",
    "party",
    "match",
    "privacy",
    "time",
    "publisher",
    "advertiser",
    "lift",
    "columns",
    "program",
    "release",
    "release.public",
    "release.to",
    "compute",
];

impl StudyDraft {
    /// A study that says nothing yet.
    pub fn new(root: String) -> Self {
        Self { sections: vec![DraftSection { name: String::new(), text: root }] }
    }

    /// Takes a study file apart.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Ok(Self::of(&study::read_text(path)?))
    }

    fn of(text: &str) -> Self {
        let mut draft = Self::new(String::new());
        // Comments and empty lines stand with what follows them.
        let (mut waiting, mut quoted) = (String::new(), false);
        for line in text.lines() {
            let heading = line.strip_prefix('[').filter(|_| !quoted).and_then(|rest| rest.split_once(']'));
            if line.matches("\"\"\"").count() % 2 == 1 {
                quoted = !quoted;
            }
            let line = format!("{line}\n");
            if let Some((name, _)) = heading {
                let text = std::mem::take(&mut waiting) + &line;
                draft.sections.push(DraftSection { name: name.trim().to_owned(), text });
            } else if !quoted && (line.starts_with('#') || line.trim().is_empty()) {
                waiting += &line;
            } else {
                let last = draft.sections.last_mut().expect("there is a first");
                last.text += &(std::mem::take(&mut waiting) + &line);
            }
        }
        draft.sections.last_mut().expect("there is a first").text += &waiting;
        draft
    }

    /// The text of a section.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.sections.iter().find(|section| section.name == name).map(|section| section.text.as_str())
    }

    /// Names of the parties that it has.
    pub fn parties(&self) -> impl Iterator<Item = &str> {
        self.sections.iter().filter_map(|section| section.name.strip_prefix("party."))
    }

    /// Puts a section in its place, in that of one of this name where there is one.
    pub fn set(&mut self, name: &str, text: String) {
        let rank = |name: &str| {
            let general = ["party", "release.to"].into_iter().find(|of| name.starts_with(&format!("{of}.")));
            ORDER.iter().position(|other| *other == general.unwrap_or(name)).unwrap_or(ORDER.len())
        };
        let section = DraftSection { name: name.to_owned(), text };
        match self.sections.iter_mut().find(|section| section.name == name) {
            Some(old) => *old = section,
            None => {
                let at = self.sections.partition_point(|other| rank(&other.name) <= rank(name));
                self.sections.insert(at, section);
            }
        }
    }

    /// What the study says of matching, counting, noise and price: who completes it agrees to that.
    pub fn proposed(&self) -> Vec<(String, String)> {
        let said = |section: &&DraftSection| {
            ["match", "privacy", "lift", "release", "ask"]
                .iter()
                .any(|name| section.name == *name || section.name.starts_with(&format!("{name}.")))
        };
        let lines = self.sections.iter().filter(said).flat_map(|section| {
            section.text.lines().filter_map(|line| Some((&*section.name, line.trim().split_once('=')?)))
        });
        lines
            .filter(|(_, (key, _))| !key.trim_start().starts_with('#'))
            .map(|(section, (key, value))| (format!("{section}.{}", key.trim()), value.trim().to_owned()))
            .collect()
    }

    /// The value of a line of the first section: `unfinished = "advertiser"`.
    pub fn root_value(&self, key: &str) -> Option<String> {
        let mut lines = self.get("")?.lines().filter_map(|line| line.split_once('='));
        unquoted(lines.find(|(name, _)| name.trim() == key)?.1)
    }

    /// Without the line that says that it is unfinished, and its comment.
    pub fn finished(mut self) -> Self {
        let root = &mut self.sections[0].text;
        if let Some((before, after)) = root.split_once("# UNFINISHED") {
            let rest = after.split_once("unfinished = ").and_then(|(_, rest)| rest.split_once('\n'));
            let rest = rest.map_or("", |(_, rest)| rest);
            *root = format!("{}\n", format!("{before}{rest}").trim_end());
        }
        self
    }

    /// The whole file.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            if !text.is_empty() && !text.ends_with("\n\n") && !section.text.starts_with('\n') {
                text.push('\n');
            }
            text += &section.text;
        }
        format!("{}\n", text.trim_end())
    }

    /// The study that it is.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(&self, file: &str) -> Result<StudyFile, Error> {
        StudyFile::parse(file, &self.text())
    }
}

/// A comment, in lines.
pub fn comment(text: &str) -> String {
    wrapped(text, WIDTH, "# ", "# ").join("\n") + "\n"
}

/// A line with the comment that says why.
pub fn said(why: &str, line: &str) -> String {
    format!("{}{line}\n", comment(why))
}

/// Text in quotes, as TOML has it.
pub fn quoted(text: &str) -> String {
    // All that JSON escapes TOML escapes alike; of the others TOML takes one character less.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The text in quotes at the beginning of another, as it was written here.
pub fn unquoted(text: &str) -> Option<String> {
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// A list of such.
pub fn list<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    format!("[{}]", texts.into_iter().map(quoted).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_added_in_their_place_and_keep_what_others_say() {
        let text = "# a\nname = \"n\"\n\n# UNFINISHED: b\n# c\nunfinished = \"x\"\n\n# of a\n[party.a]\nkey \
         = 1\n\n\
                    [match]\nprotocol = \"pid\"\n\n[program]\ntext = \"\"\"\n[not]\n# kept\n\"\"\"\n";
        let mut draft = StudyDraft::of(text);
        assert_eq!(draft.text(), text);
        assert_eq!((draft.root_value("unfinished"), draft.root_value("kind")), (Some("x".into()), None));
        draft.set("party.b", "[party.b]\n".to_owned());
        draft.set("match", "[match]\n# new\n".to_owned());
        let draft = draft.finished();
        assert_eq!(draft.parties().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(
            draft.text(),
            "# a\nname = \"n\"\n\n# of a\n[party.a]\nkey = 1\n\n[party.b]\n\n[match]\n# new\n\n\
             [program]\ntext = \"\"\"\n[not]\n# kept\n\"\"\"\n"
        );
    }

    #[test]
    fn text_in_quotes_is_read_again() {
        for text in ["He said \"x\"", "a\\b", "a\nb\u{7f}", "\u{e4} = ]"] {
            let draft = StudyDraft::of(&format!("title = {} # and why\n", quoted(text)));
            assert_eq!(draft.root_value("title").as_deref(), Some(text));
            assert!(quoted(text).chars().all(|c| !c.is_control()), "{text:?}");
        }
    }

    #[test]
    fn comments_are_wrapped() {
        assert!(
            comment(&"word ".repeat(50)).lines().all(|line| line.starts_with("# ") && line.len() <= WIDTH)
        );
    }
}
